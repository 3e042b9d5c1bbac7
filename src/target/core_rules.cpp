#include "target/core_rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/type_rules.h"

namespace tilewright::target {
namespace {

bool is_of(const Core& core, std::string_view unit, std::string_view sequencer) {
  const CoreUnit* found = core.unit(unit);
  return found != nullptr && found->sequencer == sequencer;
}

// Of those that fit the one that the sequencer has, else the first.
template <typename Entry, typename Fits>
const Entry* best(const Core& core, const std::vector<Entry>& entries, std::string_view sequencer,
                  Fits fits) {
  const Entry* first = nullptr;
  for (const Entry& each : entries) {
    if (!fits(each)) continue;
    if (is_of(core, each.unit, sequencer)) return &each;
    if (first == nullptr) first = &each;
  }
  return first;
}

std::string space_text(const Core& core, const CoreOperand& operand) {
  return core.space_name(operand.name());
}

std::string dtype_list(const std::vector<DType>& dtypes) {
  std::string list;
  for (const DType each : dtypes) list += (list.empty() ? "" : ", ") + std::string(name_of(each));
  return list;
}

CoreProblem check_extents(std::int64_t rows, std::int64_t columns, ir::Extent2 extent,
                          std::string_view unit) {
  if (extent.rows <= rows && extent.columns <= columns) return {};
  return {fmt::format("{} rows of {} elements", extent.rows, extent.columns),
          fmt::format("{} takes at most {} of {}", unit, rows, columns)};
}

bool has_name(const std::vector<std::string>& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

}  // namespace

CoreProblem check_unit(const Core& core, std::string_view unit, std::string_view sequencer) {
  const CoreUnit* found = core.unit(unit);
  if (found == nullptr) {
    std::string list;
    for (const CoreUnit& each : core.units) list += (list.empty() ? "" : ", ") + each.name;
    return {fmt::format("there is no unit {}", unit), "the units are " + list};
  }
  if (found->sequencer == sequencer) return {};
  std::string own;
  for (const CoreUnit& each : core.units) {
    if (each.sequencer == sequencer) own += (own.empty() ? "" : ", ") + each.name;
  }
  return {fmt::format("{} does it, which the role \"{}\" has not", unit, sequencer),
          fmt::format("do it in the role \"{}\"; this one has {}", found->sequencer, own)};
}

CoreProblem find_move(const Core& core, const CoreOperand& to, const CoreOperand& from,
                      std::string_view sequencer, std::string_view unit, const CoreMove*& found) {
  found = best(core, core.moves, sequencer, [&](const CoreMove& each) {
    return each.from == from.name() && each.to == to.name() && (unit.empty() || each.unit == unit);
  });
  if (found == nullptr) {
    const std::string ways = core.moves_from(from.name());
    return {fmt::format("nothing moves from {} to {}{}", space_text(core, from),
                        space_text(core, to), unit.empty() ? "" : fmt::format(" by {}", unit)),
            ways.empty()
                ? fmt::format("nothing leaves {} but what computes there", space_text(core, from))
                : fmt::format("from {} there is a way to {}", space_text(core, from), ways)};
  }
  if (const CoreProblem problem = check_unit(core, found->unit, sequencer); !problem.none()) {
    return problem;
  }
  if (to.transposed != from.transposed && !found->transposes) {
    return {fmt::format("{} does not transpose from {} to {}", found->unit, space_text(core, from),
                        space_text(core, to)),
            "leave .T() out, or transpose on another way"};
  }
  const std::pair conversion{from.lying.dtype, to.lying.dtype};
  const auto& known = found->conversions;
  if (conversion.first != conversion.second &&
      std::find(known.begin(), known.end(), conversion) == known.end()) {
    std::string list;
    for (const auto& [a, b] : known) {
      list += fmt::format("{}{} to {}", list.empty() ? "" : ", ", name_of(a), name_of(b));
    }
    return {fmt::format("{} makes no {} of {} on the way from {} to {}", found->unit,
                        name_of(conversion.second), name_of(conversion.first),
                        space_text(core, from), space_text(core, to)),
            list.empty() ? "move it as it is" : "it converts " + list};
  }
  const std::int64_t matrices = std::max(to.matrices, from.matrices);
  if (matrices > found->matrices) {
    return {fmt::format("{} matrices whose rows lie below each other", matrices),
            fmt::format("{} takes at most {} from {} to {}: move them one by one", found->unit,
                        found->matrices, space_text(core, from), space_text(core, to))};
  }
  // As it lies in the memory, or in the first of them.
  const Matrix& lying = (to.space != nullptr ? to : from).lying;
  return check_extents(found->rows, found->columns, {lying.rows, lying.columns}, found->unit);
}

CoreProblem find_product(const Core& core, const CoreOperand& result, const CoreOperand& left,
                         const CoreOperand& right, std::string_view sequencer,
                         const CoreProduct*& found) {
  found = best(core, core.products, sequencer, [&](const CoreProduct& each) {
    return each.left == left.name() && each.right == right.name() && each.result == result.name();
  });
  if (found == nullptr) {
    std::string list;
    for (const CoreProduct& each : core.products) {
      list += fmt::format("{}{} x {} -> {}", list.empty() ? "" : ", ", each.left, each.right,
                          each.result);
    }
    return {
        fmt::format("no unit multiplies {} x {} into {}", left.name(), right.name(), result.name()),
        "there is " + list};
  }
  if (const CoreProblem problem = check_unit(core, found->unit, sequencer); !problem.none()) {
    return problem;
  }
  if (left.transposed != found->left_transposed || right.transposed || result.transposed) {
    return {fmt::format("left is {}, right {}, the result {}",
                        left.transposed ? "transposed" : "as it lies",
                        right.transposed ? "transposed" : "as it lies",
                        result.transposed ? "transposed" : "as it lies"),
            fmt::format("{} takes {}, and the others as they lie", found->unit,
                        found->left_transposed ? "its first operand as {k, m}: give left.T()"
                                               : "left as {m, k}")};
  }
  const DType dtype = left.lying.dtype, sums = ir::accumulator_dtype(dtype);
  const auto& known = found->dtypes;
  if (right.lying.dtype != dtype || std::find(known.begin(), known.end(), dtype) == known.end() ||
      result.lying.dtype != sums) {
    return {fmt::format("{} x {} into {}", name_of(dtype), name_of(right.lying.dtype),
                        name_of(result.lying.dtype)),
            fmt::format("{} takes two of one of {}, and sums in {}", found->unit, dtype_list(known),
                        name_of(sums))};
  }
  const ir::Extent2 m_k = left.seen(), k_n = right.seen();
  if (m_k.columns != k_n.rows || result.seen() != ir::Extent2{m_k.rows, k_n.columns}) {
    return {fmt::format("left {} x right {} into {}", ir::to_string(m_k), ir::to_string(k_n),
                        ir::to_string(result.seen())),
            "left is {m, k}, right {k, n} and the result {m, n}"};
  }
  if (m_k.rows > found->m || k_n.columns > found->n || m_k.columns > found->k) {
    return {fmt::format("m = {}, n = {}, k = {}", m_k.rows, k_n.columns, m_k.columns),
            fmt::format("{} takes at most {}, {} and {}: multiply parts", found->unit, found->m,
                        found->n, found->k)};
  }
  if (found->sums_pad && m_k.columns * size_of(dtype) % found->piece_k_bytes != 0) {
    return {fmt::format("k = {} of {}", m_k.columns, name_of(dtype)),
            fmt::format("{} sums whole pieces of {} bytes of k: take a multiple, and give the k "
                        "that exists",
                        found->unit, found->piece_k_bytes)};
  }
  return {};
}

CoreProblem find_functions(const Core& core, const CoreOperand& to,
                           const std::vector<CoreOperand>& from, std::string_view function,
                           bool is_fill, std::string_view sequencer, std::string_view unit,
                           const CoreFunctions*& found) {
  const auto fits = [&](const CoreFunctions& each) {
    return has_name(each.writes, to.name()) && (is_fill || !each.only_fills) &&
           (unit.empty() || each.unit == unit) &&
           std::all_of(from.begin(), from.end(),
                       [&](const CoreOperand& f) { return has_name(each.reads, f.name()); });
  };
  found = best(core, core.functions, sequencer, fits);
  if (found == nullptr) {
    std::string read, list;
    for (const CoreOperand& f : from) read += (read.empty() ? "" : ", ") + std::string(f.name());
    for (const CoreFunctions& each : core.functions) {
      list += fmt::format("{}{} {}", list.empty() ? "" : ", ", each.unit,
                          each.only_fills ? "fills" : "computes in");
      for (const std::string& space : each.writes) list += " " + space;
    }
    if (!unit.empty() && is_fill) {
      return {fmt::format("{} does not fill {}", unit, to.name()), list};
    }
    return {fmt::format("no unit computes {}{}{}", read, read.empty() ? "in " : " -> ", to.name()),
            list};
  }
  if (std::find(found->lacks.begin(), found->lacks.end(), function) != found->lacks.end()) {
    return {fmt::format("{} has no {}", found->unit, function),
            "make it of functions that the unit has"};
  }
  if (to.transposed ||
      std::any_of(from.begin(), from.end(), [](const CoreOperand& f) { return f.transposed; })) {
    return {"a window is transposed", found->unit + " takes them as they lie"};
  }
  return check_unit(core, found->unit, sequencer);
}

CoreProblem check_event(const Core& core, std::string_view from, std::string_view to, bool is_set,
                        std::string_view sequencer) {
  if (core.event(from, to) == nullptr) {
    return {fmt::format("there is no event from {} to {}", from, to),
            "there are " + core.events_text()};
  }
  return check_unit(core, is_set ? from : to, sequencer);
}

CoreProblem check_memory(const Core& core, std::string_view space, const Matrix& matrix) {
  const CoreSpace* found = core.space(space);
  if (found == nullptr) {
    return {fmt::format("there is no memory {}", space), "the memories are " + core.spaces_text()};
  }
  if (matrix.rows <= 0 || matrix.columns <= 0) {
    return {fmt::format("{} rows of {} elements", matrix.rows, matrix.columns),
            "both must be positive"};
  }
  if (found->partitions > 1 && matrix.rows > found->partitions) {
    return {
        fmt::format("{} rows", matrix.rows),
        fmt::format("{} has {} partitions, and each holds a row", found->name, found->partitions)};
  }
  return {};
}

CoreProblem check_start(const CoreSpace& space, const Matrix& whole, std::int64_t row,
                        std::int64_t column) {
  const std::int64_t offset = space.layout->offset(whole, row, column);
  if (offset % space.granule == 0) return {};
  return {fmt::format("row {}, column {} lies at byte {}", row, column, offset),
          fmt::format("in {} ({}) take one at a multiple of {}", space.name, space.layout->text,
                      space.granule)};
}

}  // namespace tilewright::target
