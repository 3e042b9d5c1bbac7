#include "passes/moved_layouts.h"

#include <algorithm>

namespace tilewright::passes {
namespace {

using ir::Mode;
using ir::ModeKind;
using ir::RegisterLayout;

constexpr std::int64_t kFewCopies = 8;

void number_axes(RegisterLayout& layout, const std::vector<int>& numbers) {
  for (std::vector<Mode>* modes : {&layout.registers, &layout.lanes, &layout.warps}) {
    for (Mode& mode : *modes) mode.axis = numbers[static_cast<std::size_t>(mode.axis)];
  }
}

// Whether lanes or warps divide the digit's axis more coarsely than it does.
bool is_divided_beyond(const RegisterLayout& layout, const Mode& digit) {
  for (const std::vector<Mode>* modes : {&layout.lanes, &layout.warps}) {
    for (const Mode& mode : *modes) {
      if (mode.kind == ModeKind::distribute && mode.axis == digit.axis &&
          mode.stride > digit.stride) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace

RegisterLayout completed(RegisterLayout parts) {
  for (std::vector<Mode>* modes : {&parts.lanes, &parts.warps}) {
    for (Mode& mode : *modes) {
      if (mode.kind == ModeKind::partial) mode = {mode.size, 0, 0, ModeKind::replicate};
    }
  }
  return parts;
}

std::optional<RegisterLayout> stretched(const RegisterLayout& from,
                                        const std::vector<std::int64_t>& to) {
  RegisterLayout made = from;
  made.shape.back() = to.back();
  const auto repeats = [](const Mode& mode) {
    return mode.kind != ModeKind::distribute && mode.size > 1;
  };
  for (const std::vector<Mode>* modes : {&from.registers, &from.lanes, &from.warps}) {
    if (std::any_of(modes->begin(), modes->end(), repeats)) return std::nullopt;
  }
  if (from.shape.back() != 1 || to.back() > kFewCopies || made.shape != to) return std::nullopt;
  const int axis = static_cast<int>(to.size()) - 1;
  made.registers.insert(made.registers.begin(), Mode{to.back(), axis, 1});
  return made.canonical();
}

RegisterLayout before_stretching(const RegisterLayout& result,
                                 const std::vector<std::int64_t>& operand) {
  RegisterLayout made = result;
  for (std::size_t axis = 0; axis < operand.size(); ++axis) {
    if (operand[axis] == 1 && result.shape[axis] != 1) {
      made = made.reduce(static_cast<int>(axis), ir::Reduction::complete);
    }
  }
  return made;
}

RegisterLayout permuted(const RegisterLayout& from, const std::vector<std::int64_t>& permutation) {
  RegisterLayout to = from;
  std::vector<int> numbers(permutation.size());
  for (std::size_t axis = 0; axis < permutation.size(); ++axis) {
    const auto source = static_cast<std::size_t>(permutation[axis]);
    to.shape[axis] = from.shape[source];
    numbers[source] = static_cast<int>(axis);
  }
  number_axes(to, numbers);
  return to;
}

RegisterLayout permuted_back(const RegisterLayout& to,
                             const std::vector<std::int64_t>& permutation) {
  RegisterLayout from = to;
  for (std::size_t axis = 0; axis < permutation.size(); ++axis) {
    from.shape[static_cast<std::size_t>(permutation[axis])] = to.shape[axis];
  }
  number_axes(from, {permutation.begin(), permutation.end()});
  return from;
}

// It must begin and end where the fastest digits repeat.
Slice sliced(const RegisterLayout& whole, const std::vector<std::int64_t>& offsets,
             const std::vector<std::int64_t>& sizes) {
  RegisterLayout cut = whole.canonical();
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    if (sizes[axis] == cut.shape[axis]) continue;
    // Only the slowest register digit may shorten.
    Mode* last = cut.registers.empty() ? nullptr : &cut.registers.back();
    if (!last || last->axis != static_cast<int>(axis) || sizes[axis] % last->stride != 0 ||
        offsets[axis] % last->stride != 0 || is_divided_beyond(cut, *last)) {
      return {cut, axis};
    }
    last->size = sizes[axis] / last->stride;
    cut.shape[axis] = sizes[axis];
  }
  return {cut, std::nullopt};
}

std::optional<RegisterLayout> whole_of_slices(RegisterLayout part,
                                              const std::vector<std::int64_t>& offsets,
                                              const std::vector<std::int64_t>& whole) {
  for (std::size_t axis = 0; axis < whole.size(); ++axis) {
    const std::int64_t size = part.shape[axis];
    if (whole[axis] % size != 0 || offsets[axis] % size != 0) return std::nullopt;
    part.registers.push_back(Mode{whole[axis] / size, static_cast<int>(axis), size});
  }
  part.shape = whole;
  return part.canonical();
}

}  // namespace tilewright::passes
