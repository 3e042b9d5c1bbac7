#include "simulator/machine/provenance.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "simulator/machine/launch.h"

namespace tilewright::simulator {
namespace {

using Term = ArrayOrigin::Term;

const TensorArgument* tensor_of(const Origin& origin) { return origin.copy->map->tensor; }

// "K[0, 2, 128, 0]".
std::string describe(const Origin& origin) {
  const std::size_t rank = tensor_of(origin)->shape.size();
  const std::vector<std::int64_t> at(origin.at.rend() - rank, origin.at.rend());
  return fmt::format("{}[{}]", tensor_of(origin)->name, fmt::join(at, ", "));
}

// The size of an axis as the kernel's parameters say it.
const Dim& size_of_axis(const OperandOrigin& operand) {
  const std::vector<Dim>& shape = operand.first.copy->map->parameter->shape;
  return shape[shape.size() - 1 - operand.axis];
}

// Whether `next` may stand behind `previous` in a box that begins with `start`: coordinates step
// on or return to where the box begins. Those along which copies take one element, such as heads or
// the pages of a cache, are indices, which may become any other. `inner` is the step of the
// innermost axis.
bool continues(const Origin& start, const Origin& previous, const Origin& next, int inner) {
  bool advances = false;
  for (std::size_t axis = 0; axis < next.at.size(); ++axis) {
    const std::int64_t at = next.at[axis], before = previous.at[axis];
    if (at == before) continue;
    if (next.copy->map->box[axis] == 1 || at == before + (axis == 0 ? inner : 1)) {
      advances = true;
    } else if (at != start.at[axis]) {
      return false;
    }
  }
  return advances;
}

// The one axis along which element after element steps on; -1 if there is none.
template <typename At>
int stepping_axis(std::size_t count, int inner, At at) {
  int found = -1;
  for (std::size_t i = 1; i < count; ++i) {
    for (int axis = 0; axis < 5; ++axis) {
      const std::int64_t moved = at(i).at[axis] - at(0).at[axis];
      if (moved == 0) continue;
      if (found >= 0 && found != axis) return -1;
      found = axis;
      if (moved != static_cast<std::int64_t>(i) * (axis == 0 ? inner : 1)) return -1;
    }
  }
  return found;
}

// The cells of 16 bytes of an operand, as rows of chunks: K-major ones hold elements of K, MN-major
// ones of M or N.
struct Grid {
  std::vector<const Origin*> cells;
  std::size_t rows = 0, steps = 0;    // of M or N, of K, in units of cells
  int inner_row = 0, inner_step = 0;  // by how much they move the innermost coordinate
  const Origin& at(std::size_t row, std::size_t step) const { return *cells[row * steps + step]; }

  // The cell that does not go on where the one before it ends.
  std::optional<std::pair<const Origin*, const Origin*>> odd() const {
    const Origin* start = &at(0, 0);
    for (std::size_t row = 1; row < rows; ++row) {
      const Origin &before = at(row - 1, 0), &next = at(row, 0);
      if (tensor_of(next) != tensor_of(before)) {
        start = &next;
      } else if (!continues(*start, before, next, inner_row)) {
        return {{&before, &next}};
      }
    }
    for (std::size_t step = 1; step < steps; ++step) {
      if (!continues(at(0, 0), at(0, step - 1), at(0, step), inner_step)) {
        return {{&at(0, step - 1), &at(0, step)}};
      }
    }
    for (std::size_t row = 1; row < rows; ++row) {
      for (std::size_t step = 0; step < steps; ++step) {
        for (int axis = 0; axis < 5; ++axis) {
          const std::int64_t along_k = at(0, step).at[axis] - at(0, 0).at[axis];
          const std::int64_t along_row = at(row, step).at[axis] - at(row, 0).at[axis];
          if (along_k != along_row) return {{&at(row, 0), &at(row, step)}};
        }
      }
    }
    // Rows of one tensor start at one place of what is summed over.
    const int axis = stepping_axis(steps, inner_step, [&](std::size_t i) { return at(0, i); });
    for (std::size_t row = 1; row < rows && axis >= 0; ++row) {
      const Origin &before = at(row - 1, 0), &next = at(row, 0);
      if (tensor_of(next) == tensor_of(before) && next.at[axis] != before.at[axis]) {
        return {{&before, &next}};
      }
    }
    return std::nullopt;
  }
};

// Nothing when it is not known of all cells where they come from.
std::optional<Grid> grid_of(const std::vector<Origin>& origins, const SharedMatrix& matrix,
                            const Product& product, int first, int rows) {
  const int per_chunk = 16 / size_of(product.dtype);
  Grid grid;
  grid.rows = matrix.transposed ? rows / per_chunk : rows;
  grid.steps = matrix.transposed ? product.k : product.k / per_chunk;
  (matrix.transposed ? grid.inner_row : grid.inner_step) = per_chunk;
  for (std::size_t row = 0; row < grid.rows; ++row) {
    for (std::size_t step = 0; step < grid.steps; ++step) {
      const auto i = static_cast<int>(row), k = static_cast<int>(step);
      const std::int64_t address = matrix.transposed ? matrix.mn_major(first / per_chunk + i, k)
                                                     : matrix.k_major(first + i, k);
      const auto cell = static_cast<std::size_t>(address / 16);
      if (cell >= origins.size() || !origins[cell].copy) return std::nullopt;
      grid.cells.push_back(&origins[cell]);
    }
  }
  return grid;
}

// Other coordinates than the one that is summed over.
bool moved_across(const OperandOrigin& now, const OperandOrigin& before) {
  for (int axis = 0; axis < 5; ++axis) {
    if (axis != now.axis && now.first.at[axis] != before.first.at[axis]) return true;
  }
  return false;
}

std::int64_t apart(const Term& term) {
  return term.a.first.at[term.a.axis] - term.b.first.at[term.b.axis];
}

}  // namespace

ArrayOrigin& Provenance::of(Warp& warp, int array) const {
  warp.origins.resize(launch_.kernel.registers.size());
  return warp.origins[array];
}

void Provenance::load(const Event& event) const {
  const Transfer& transfer = launch_.kernel.transfers[event.instruction->detail];
  if (transfer.map < 0) return move(event, transfer.bytes);
  const TensorMap& map = launch_.kernel.maps[transfer.map];
  const auto copy = std::make_shared<const Origin::Copy>(Origin::Copy{event.access, &map});
  std::array<std::int64_t, 5> start = event.coordinates;
  if (map.ragged_axis >= 0) {
    start[map.ragged_axis] += start[map.rank - 1] - (map.extents[map.rank - 1] - 1);
    start[map.rank - 1] = 0;
  }
  std::vector<Origin>& origins = event.destination->origins;
  origins.resize(event.destination->shared.size() / 16 + 1);
  const std::int64_t row_bytes = map.row_bytes();
  for (std::int64_t byte = 0; byte < map.box_bytes(); byte += 16) {
    Origin& origin = origins[map.swizzled(event.address + byte) / 16];
    origin = {copy, start};
    origin.at[0] += byte % row_bytes / map.element_bytes;
    std::int64_t rest = byte / row_bytes;
    for (int axis = 1; axis < map.rank; ++axis) {
      origin.at[axis] += rest % map.box[axis];
      rest /= map.box[axis];
    }
  }
}

void Provenance::move(const Event& event, std::int64_t bytes) const {
  std::vector<Origin>& to = event.destination->origins;
  std::vector<Origin>& from = event.issuer->cta->origins;
  for (std::vector<Origin>* const origins : {&to, &from}) {
    origins->resize(event.destination->shared.size() / 16 + 1);
  }
  for (std::int64_t byte = 0; byte < bytes; byte += 16) {
    to[(event.address + byte) / 16] = from[(event.source + byte) / 16];
  }
}

void Provenance::forget(Cta& cta, std::int64_t address, std::int64_t bytes) const {
  if (cta.origins.empty()) return;
  for (std::int64_t cell = address / 16; cell <= (address + bytes - 1) / 16; ++cell) {
    cta.origins[cell] = {};
  }
}

void Provenance::forget(Warp& warp, int array) const { of(warp, array) = {}; }

void Provenance::registers(Warp& warp, const Instruction& instruction) const {
  switch (ir::as<ir::ComputationOp>(instruction.op)) {
    case ir::ComputationOp::compute:
      return compute(warp, launch_.kernel.computes[instruction.detail]);
    case ir::ComputationOp::copy: {
      const bool whole = launch_.kernel.registers[instruction.detail].elements ==
                         launch_.kernel.registers[instruction.object].elements;
      ArrayOrigin from = whole ? of(warp, instruction.detail) : ArrayOrigin{};
      of(warp, instruction.object) = std::move(from);
      return;
    }
    case ir::ComputationOp::any_register:
      return;
    case ir::ComputationOp::reduce_registers:
      return forget(warp, launch_.kernel.reductions[instruction.detail].destination);
    case ir::ComputationOp::reduce_lanes:
      return forget(warp, launch_.kernel.lane_reductions[instruction.detail].array);
    case ir::ComputationOp::fill:
    case ir::ComputationOp::coordinate:
      return forget(warp, instruction.object);
  }
}

void Provenance::compute(Warp& warp, const Compute& compute) const {
  const auto elements = [&](int array) { return launch_.kernel.registers[array].elements; };
  ArrayOrigin made;
  for (const RegisterSource& source : compute.sources) {
    if (source.array < 0 || source.first != 0 ||
        elements(source.array) != elements(compute.destination)) {
      continue;
    }
    const ArrayOrigin& from = of(warp, source.array);
    if (!made.columns) made.columns = from.columns;
    if (made.terms.empty()) made.terms = from.terms;
  }
  of(warp, compute.destination) = std::move(made);
}

std::optional<OperandOrigin> Provenance::in_shared(const Warp& warp, const PendingProduct& pending,
                                                   const MatrixOperand& operand, std::int64_t start,
                                                   int first, int rows) const {
  const Instruction& instruction = *pending.instruction;
  const Product& product = launch_.kernel.products[instruction.detail];
  const std::optional<Grid> grid =
      grid_of(warp.cta->origins, decode_descriptor(operand, start), product, first, rows);
  if (!grid) return std::nullopt;
  OperandOrigin made;
  made.name = launch_.kernel.allocations[operand.allocation].stage_name(start);
  if (const auto odd = grid->odd()) {
    report_mixed(warp, instruction, made.name, *odd->first, *odd->second);
    return std::nullopt;
  }
  made.first = grid->at(0, 0);
  made.axis =
      stepping_axis(grid->steps, grid->inner_step, [&](std::size_t i) { return grid->at(0, i); });
  for (int row = 0; row < rows && made.axis >= 0; ++row) {
    const int per_cell = rows / static_cast<int>(grid->rows);
    Origin& origin = made.rows.emplace_back(grid->at(row / per_cell, 0));
    origin.at[0] += row % per_cell;
    origin.at[made.axis] = 0;
  }
  return made;
}

std::optional<OperandOrigin> Provenance::in_registers(Warp& warp,
                                                      const PendingProduct& pending) const {
  const Product& product = launch_.kernel.products[pending.instruction->detail];
  const auto& columns = of(warp, product.a_array).columns;
  // A fragment's 16 bytes of each lane are `k` columns.
  const std::size_t first =
      static_cast<std::size_t>(product.a_element) * size_of(product.dtype) / 16 * product.k;
  if (!columns || first + product.k > columns->size()) return std::nullopt;
  const auto at = [&](std::size_t i) -> const Origin& { return (*columns)[first + i]; };
  for (int i = 1; i < product.k; ++i) {
    if (tensor_of(at(i)) != tensor_of(at(0))) return std::nullopt;
  }
  OperandOrigin made;
  made.name = launch_.kernel.registers[product.a_array].name;
  made.first = at(0);
  made.axis = stepping_axis(product.k, 1, at);
  return made;
}

void Provenance::product(Warp& warp, const PendingProduct& pending) const {
  const Product& product = launch_.kernel.products[pending.instruction->detail];
  auto b = in_shared(warp, pending, product.b, pending.b, 0, product.n);
  auto a = product.a_array < 0
               ? in_shared(warp, pending, product.a, pending.a, warp.index % 4 * 16, 16)
               : in_registers(warp, pending);
  ArrayOrigin& sum = of(warp, product.accumulator);
  if (!pending.accumulate) sum = {};
  sum.columns = nullptr;
  if (b && b->axis >= 0) {
    sum.columns = std::make_shared<const std::vector<Origin>>(std::move(b->rows));
  }
  if (!a || !b || a->axis < 0 || b->axis < 0) return;
  Term now{std::move(*a), std::move(*b)};
  now.a.rows.clear();
  now.b.rows.clear();
  const auto before = std::find_if(sum.terms.begin(), sum.terms.end(), [&](const Term& term) {
    return tensor_of(term.a.first) == tensor_of(now.a.first) && term.a.axis == now.a.axis &&
           tensor_of(term.b.first) == tensor_of(now.b.first) && term.b.axis == now.b.axis;
  });
  const bool first = before == sum.terms.end();
  check(warp, *pending.instruction, now, first ? nullptr : &*before);
  if (first) {
    sum.terms.push_back(std::move(now));
  } else {
    *before = std::move(now);
  }
}

void Provenance::check(const Warp& warp, const Instruction& instruction, const Term& now,
                       const Term* before) const {
  const Dim& size = size_of_axis(now.a);
  const std::int64_t distance = apart(now);
  if (distance != 0 && !size.is_constant() && size == size_of_axis(now.b)) {
    report(warp, instruction, now, before,
           fmt::format("{} apart along {}, which the sum runs over", std::abs(distance),
                       size.to_string()));
  } else if (before && distance != apart(*before)) {
    report(
        warp, instruction, now, before,
        fmt::format("{} apart along the sum, {} in its product before", distance, apart(*before)));
  } else if (before && moved_across(now.a, before->a) != moved_across(now.b, before->b)) {
    report(
        warp, instruction, now, before,
        fmt::format("within the sum, only that of {} has changed: from {}",
                    moved_across(now.a, before->a) ? now.a.name : now.b.name,
                    describe(moved_across(now.a, before->a) ? before->a.first : before->b.first)));
  }
}

void Provenance::report(const Warp& warp, const Instruction& instruction, const Term& now,
                        const Term* before, const std::string& disagreement) const {
  const Product& product = launch_.kernel.products[instruction.detail];
  // The one that stayed where it was, if that is known.
  const bool a_stayed = before && now.a.first.at == before->a.first.at;
  const OperandOrigin &late = a_stayed ? now.a : now.b, &other = a_stayed ? now.b : now.a;
  launch_.log.add(
      {"provenance", instruction.where(), late.first.copy->access.instruction->where(),
       fmt::format("provenance: {} adds the product of {}, from {} on, and {}, from {} on: "
                   "{}\n{}\n{}\n{}",
                   launch_.kernel.registers[product.accumulator].name, now.a.name,
                   describe(now.a.first), now.b.name, describe(now.b.first), disagreement,
                   launch_.access_line("write", now.a.first.copy->access),
                   launch_.access_line("write", now.b.first.copy->access),
                   launch_.access("read", instruction, warp)),
       fmt::format("advance {} as {}: the stage that is read, or the coordinates of its copy",
                   tensor_of(late.first)->name, tensor_of(other.first)->name)});
}

void Provenance::report_mixed(const Warp& warp, const Instruction& instruction,
                              const std::string& name, const Origin& before,
                              const Origin& odd) const {
  launch_.log.add(
      {"provenance", instruction.where(), odd.copy->access.instruction->where(),
       fmt::format("provenance: {} is not one box of a tensor: behind {} lies {}\n{}\n{}\n{}", name,
                   describe(before), describe(odd),
                   launch_.access_line("write", before.copy->access),
                   launch_.access_line("write", odd.copy->access),
                   launch_.access("read", instruction, warp)),
       fmt::format("copies into {} whose coordinates go on where those of the one before "
                   "end",
                   name)});
}

}  // namespace tilewright::simulator
