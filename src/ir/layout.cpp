#include "ir/layout.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "ir/modes.h"
#include "support/hash.h"

namespace tilewright::ir {
namespace {

using Coordinates = std::vector<std::int64_t>;

constexpr std::int64_t kMaximumRegisters = 1 << 16;  // of a lane, far above what any GPU has

// Adds what position `index` of the modes contributes to the coordinates.
void distribute_position(const std::vector<Mode>& modes, std::int64_t index,
                         Coordinates& coordinates) {
  for (const Mode& mode : modes) {
    if (mode.kind == ModeKind::distribute && mode.size > 1) {
      coordinates[mode.axis] += index % mode.size * mode.stride;
    }
    index /= mode.size;
  }
}

Coordinates distributed(const std::vector<Mode>& modes, std::int64_t index, std::size_t rank) {
  Coordinates coordinates(rank, 0);
  distribute_position(modes, index, coordinates);
  return coordinates;
}

// Which of the partial sums over each axis position `index` of the modes holds.
Coordinates partial_sums(const std::vector<Mode>& modes, std::int64_t index, std::size_t rank) {
  Coordinates sums(rank, 0);
  Coordinates counts(rank, 1);
  for (const Mode& mode : modes) {
    if (mode.kind == ModeKind::partial && mode.size > 1) {
      sums[mode.axis] += index % mode.size * counts[mode.axis];
      counts[mode.axis] *= mode.size;
    }
    index /= mode.size;
  }
  return sums;
}

// Modes of one axis reach every coordinate once only if, sorted, each starts where the last ends.
std::optional<std::string> covering_problem(std::vector<Mode> modes, int axis,
                                            std::int64_t extent) {
  std::sort(modes.begin(), modes.end(),
            [](const Mode& a, const Mode& b) { return a.stride < b.stride; });
  std::int64_t covered = 1;
  for (const Mode& mode : modes) {
    if (mode.stride != covered) {
      return fmt::format("axis {}: the {} positions at stride {} should be at stride {}", axis,
                         mode.size, mode.stride, covered);
    }
    covered *= mode.size;
    if (covered > extent) break;
  }
  if (covered == extent) return std::nullopt;
  return fmt::format("axis {} has size {} but its modes cover {}", axis, extent, covered);
}

std::vector<IndexTerm> merged(std::vector<IndexTerm> terms) {
  std::sort(terms.begin(), terms.end(),
            [](const IndexTerm& a, const IndexTerm& b) { return a.divisor < b.divisor; });
  std::vector<IndexTerm> result;
  for (const IndexTerm& term : terms) {
    if (!result.empty()) {
      IndexTerm& last = result.back();
      if (term.divisor == last.divisor * last.modulus &&
          term.stride == last.stride * last.modulus) {
        last.modulus *= term.modulus;
        continue;
      }
    }
    result.push_back(term);
  }
  return result;
}

// Where lanes (or warps) of the operand hold other coordinates than the result asks for.
std::string position_mismatch(const RegisterLayout& result, const RegisterLayout& operand,
                              const std::vector<Mode>& wanted, const std::vector<Mode>& held,
                              std::int64_t count, std::string_view unit) {
  const std::size_t rank = result.shape.size();
  for (std::int64_t position = 0; position < count; ++position) {
    const Coordinates want = distributed(wanted, position, rank);
    const Coordinates have = distributed(held, position, rank);
    const Coordinates want_sum = partial_sums(wanted, position, rank);
    const Coordinates have_sum = partial_sums(held, position, rank);
    for (std::size_t axis = 0; axis < rank; ++axis) {
      if (operand.shape[axis] != 1 && want[axis] != have[axis]) {
        return fmt::format("{} {} starts at {} on axis {} in {} but at {} in {}", unit, position,
                           want[axis], axis, result.to_string(), have[axis], operand.to_string());
      }
      if (operand.is_partial(static_cast<int>(axis)) && want_sum[axis] != have_sum[axis]) {
        return fmt::format("{} {} holds a partial sum over axis {} in {} but not the same in {}",
                           unit, position, axis, operand.to_string(), result.to_string());
      }
    }
  }
  return {};
}

// Elements of a row-major tile from one coordinate on `axis` to the next.
std::int64_t elements_behind(const std::vector<std::int64_t>& shape, int axis) {
  std::int64_t elements = 1;
  for (std::size_t next = axis + 1; next < shape.size(); ++next) elements *= shape[next];
  return elements;
}

}  // namespace

std::int64_t evaluate(const std::vector<IndexTerm>& terms, std::int64_t index) {
  std::int64_t value = 0;
  for (const IndexTerm& term : terms) value += index / term.divisor % term.modulus * term.stride;
  return value;
}

std::int64_t RegisterLayout::register_count() const { return total_size(registers); }

std::int64_t RegisterLayout::warp_count() const { return total_size(warps); }

Coordinates RegisterLayout::coordinates(std::int64_t reg, std::int64_t lane,
                                        std::int64_t warp) const {
  Coordinates coordinates(shape.size(), 0);
  distribute_position(registers, reg, coordinates);
  distribute_position(lanes, lane, coordinates);
  distribute_position(warps, warp, coordinates);
  return coordinates;
}

bool RegisterLayout::is_partial(int axis) const {
  const auto holds_partial = [axis](const Mode& mode) {
    return mode.kind == ModeKind::partial && mode.axis == axis && mode.size > 1;
  };
  return std::any_of(lanes.begin(), lanes.end(), holds_partial) ||
         std::any_of(warps.begin(), warps.end(), holds_partial);
}

bool RegisterLayout::is_partial() const {
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (is_partial(static_cast<int>(axis))) return true;
  }
  return false;
}

std::optional<std::string> RegisterLayout::problem() const {
  const int rank = static_cast<int>(shape.size());
  std::vector<std::vector<Mode>> by_axis(shape.size());
  for (const std::vector<Mode>* modes : {&registers, &lanes, &warps}) {
    for (const Mode& mode : *modes) {
      if (mode.size < 1) return fmt::format("a mode has size {}", mode.size);
      if (mode.size == 1 || mode.kind == ModeKind::replicate) continue;
      if (mode.axis < 0 || mode.axis >= rank) {
        return fmt::format("a mode is on axis {} of a shape of rank {}", mode.axis, rank);
      }
      if (mode.kind == ModeKind::distribute) {
        by_axis[mode.axis].push_back(mode);
      } else if (modes == &registers) {
        return fmt::format("registers hold partial sums over axis {}; only lanes and warps may",
                           mode.axis);
      } else if (shape[mode.axis] != 1) {
        return fmt::format("partial sums over axis {} which has size {}, not 1", mode.axis,
                           shape[mode.axis]);
      }
    }
  }
  if (total_size(lanes, kLanes) != kLanes) return "the sizes of the lane modes do not make 32";
  if (total_size(warps, kMaximumWarps) > kMaximumWarps) return "more than 32 warps";
  if (total_size(registers, kMaximumRegisters) > kMaximumRegisters) {
    return fmt::format("more than {} registers of a lane", kMaximumRegisters);
  }
  for (int axis = 0; axis < rank; ++axis) {
    if (auto problem = covering_problem(by_axis[axis], axis, shape[axis])) return problem;
  }
  return std::nullopt;
}

RegisterLayout RegisterLayout::reduce(int axis, Reduction reduction) const {
  RegisterLayout result = *this;
  result.shape[axis] = 1;
  const auto on_axis = [axis](const Mode& mode) {
    return mode.kind != ModeKind::replicate && mode.axis == axis;
  };
  std::erase_if(result.registers, on_axis);
  for (std::vector<Mode>* modes : {&result.lanes, &result.warps}) {
    for (Mode& mode : *modes) {
      if (!on_axis(mode)) continue;
      mode.stride = 0;
      mode.kind = reduction == Reduction::partial ? ModeKind::partial : ModeKind::replicate;
    }
  }
  return result.canonical();
}

std::vector<int> RegisterLayout::shuffle_distances(int axis) const {
  std::vector<int> distances;
  std::int64_t distance = 1;
  for (const Mode& mode : lanes) {
    const bool sums = mode.kind != ModeKind::replicate && mode.axis == axis;
    for (std::int64_t step = 1; sums && step < mode.size; step *= 2) {
      distances.push_back(static_cast<int>(distance * step));
    }
    distance *= mode.size;
  }
  return distances;
}

std::int64_t RegisterLayout::adjacent() const {
  if (registers.empty()) return 1;
  const Mode& first = registers.front();
  const bool neighbours = first.kind == ModeKind::distribute && first.stride == 1 &&
                          first.axis + 1 == static_cast<int>(shape.size());
  return neighbours ? first.size : 1;
}

RegisterLayout RegisterLayout::transposed() const {
  return {{shape[1], shape[0]},
          with_axes_swapped(registers),
          with_axes_swapped(lanes),
          with_axes_swapped(warps)};
}

std::optional<RegisterLayout> RegisterLayout::reshaped(const std::vector<std::int64_t>& to) const {
  RegisterLayout result{to, {}, {}, {}};
  const std::pair<const std::vector<Mode>*, std::vector<Mode>*> sections[] = {
      {&registers, &result.registers}, {&lanes, &result.lanes}, {&warps, &result.warps}};
  for (const auto& [from, into] : sections) {
    for (const Mode& mode : *from) {
      if (mode.kind != ModeKind::distribute) {
        into->push_back({mode.size, 0, mode.stride, mode.kind});
        continue;
      }
      std::int64_t stride = mode.stride * elements_behind(shape, mode.axis), left = mode.size;
      for (int axis = static_cast<int>(to.size()) - 1; axis >= 0 && left > 1; --axis) {
        const std::int64_t behind = elements_behind(to, axis), end = behind * to[axis];
        if (stride >= end) continue;
        const std::int64_t digits = std::min(left, end / stride);
        if (stride % behind != 0 || end % stride != 0 || left % digits != 0) return std::nullopt;
        into->push_back({digits, axis, stride / behind, ModeKind::distribute});
        left /= digits;
        stride *= digits;
      }
      if (left > 1) return std::nullopt;
    }
  }
  if (result.problem()) return std::nullopt;
  return result.canonical();
}

RegisterLayout RegisterLayout::canonical() const {
  return {shape, merged(registers), merged(lanes), merged(warps)};
}

bool RegisterLayout::operator==(const RegisterLayout& other) const {
  return shape == other.shape && merged(registers) == merged(other.registers) &&
         merged(lanes) == merged(other.lanes) && merged(warps) == merged(other.warps);
}

std::size_t RegisterLayout::hash() const { return hash64(to_string()); }

std::string RegisterLayout::to_string() const {
  std::string text = fmt::format("[{}", fmt::join(shape, "x"));
  const std::pair<char, const std::vector<Mode>*> sections[] = {
      {'r', &registers}, {'l', &lanes}, {'w', &warps}};
  for (const auto& [name, modes] : sections) {
    const std::vector<Mode> canonical_modes = merged(*modes);
    if (!canonical_modes.empty()) text += fmt::format("|{}:{}", name, modes_text(canonical_modes));
  }
  return text + "]";
}

RegisterLayout RegisterLayout::parse(std::string_view text, SourceLocation where) {
  LayoutParser parser(text, where);
  RegisterLayout layout;
  parser.expect("[");
  layout.shape = parser.shape();
  if (parser.accept("|r:")) layout.registers = parser.modes(layout.shape.size());
  if (parser.accept("|l:")) layout.lanes = parser.modes(layout.shape.size());
  if (parser.accept("|w:")) layout.warps = parser.modes(layout.shape.size());
  parser.finish();
  parser.check(layout.problem());
  return layout;
}

RegisterMap register_map(const RegisterLayout& result, const RegisterLayout& operand) {
  const std::size_t rank = result.shape.size();
  if (operand.shape.size() != rank) {
    return {{},
            fmt::format("operand of rank {} for a result of rank {}", operand.shape.size(), rank)};
  }
  for (std::size_t axis = 0; axis < rank; ++axis) {
    if (operand.shape[axis] == result.shape[axis] || operand.shape[axis] == 1) continue;
    return {{},
            fmt::format("axis {} has size {} in the operand but {} in the result", axis,
                        operand.shape[axis], result.shape[axis])};
  }
  if (operand.warp_count() != result.warp_count()) {
    return {{},
            fmt::format("the operand lies in {} warps, the result in {}", operand.warp_count(),
                        result.warp_count())};
  }
  std::string mismatch =
      position_mismatch(result, operand, result.lanes, operand.lanes, kLanes, "lane");
  if (mismatch.empty()) {
    mismatch = position_mismatch(result, operand, result.warps, operand.warps, result.warp_count(),
                                 "warp");
  }
  if (!mismatch.empty()) return {{}, std::move(mismatch)};

  // Both layouts split an axis into ranges of strides; each overlap of a result's with an
  // operand's range is one digit of the operand's register index.
  std::vector<IndexTerm> terms;
  std::int64_t operand_position = 1;
  for (const Mode& held : merged(operand.registers)) {
    std::int64_t result_position = 1;
    for (const Mode& wanted : merged(result.registers)) {
      const std::int64_t low = std::max(held.stride, wanted.stride);
      const std::int64_t high = std::min(held.stride * held.size, wanted.stride * wanted.size);
      if (held.kind == ModeKind::distribute && wanted.kind == ModeKind::distribute &&
          held.axis == wanted.axis && low < high) {
        terms.push_back({result_position * (low / wanted.stride), high / low,
                         operand_position * (low / held.stride)});
      }
      result_position *= wanted.size;
    }
    operand_position *= held.size;
  }
  RegisterMap map{merged(std::move(terms)), {}};

  // Ranges whose sizes do not divide each other have no such digits.
  for (std::int64_t reg = 0; reg < result.register_count(); ++reg) {
    Coordinates want = distributed(result.registers, reg, rank);
    for (std::size_t axis = 0; axis < rank; ++axis) {
      if (operand.shape[axis] == 1) want[axis] = 0;
    }
    const std::int64_t source = evaluate(map.terms, reg);
    if (source < operand.register_count() && want == distributed(operand.registers, source, rank)) {
      continue;
    }
    return {{},
            fmt::format("register {} of {} holds element {{{}}} of a lane's, which {} orders "
                        "differently",
                        reg, result.to_string(), fmt::join(want, ", "), operand.to_string())};
  }
  return map;
}

}  // namespace tilewright::ir
