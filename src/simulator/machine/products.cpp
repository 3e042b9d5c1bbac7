#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "simulator/machine/fragment_product.h"
#include "simulator/machine/launch.h"
#include "simulator/machine/matrix_reader.h"

// wgmma: operands are read as descriptors say, see matrix_descriptor.h.
namespace tilewright::simulator {
namespace {

constexpr int kRows = 16;  // of m64, of each of the four warps
constexpr int kWarpsOfGroup = 4;

enum Timing { at_issue, in_between, at_wait };

// The `rows` from `first` on of an operand in shared memory, `size` floats that `put(values, mn, k,
// of)` fills for 8 rows at a time. They are read once for all who start the same descriptor at the
// same address, until a byte of them changes.
template <typename Put>
const float* decoded(Launch& launch, Warp& warp, const PendingProduct& pending,
                     const MatrixOperand& operand, std::int64_t address, int first, int rows,
                     std::size_t size, Put put) {
  const Product& product = launch.kernel.products[pending.instruction->detail];
  Cta& cta = *warp.cta;
  cta.decoded.resize(launch.kernel.products.size() * 2);
  std::vector<DecodedOperand>& kept =
      cta.decoded[pending.instruction->detail * 2 + (&operand == &product.b)];
  const auto same = [&](const DecodedOperand& each) {
    return each.address == address && each.row == first;
  };
  auto at = std::find_if(kept.begin(), kept.end(), same);
  if (at == kept.end()) {
    at = kept.emplace(at);
    at->address = address;
    at->row = first;
  }
  if (at->valid && cta.shared.last_change(at->first, at->last) <= at->time) {
    return at->values.data();
  }
  at->values.resize(size);
  float* const values = at->values.data();
  MatrixReader reader(launch, warp, *warp.cta, *pending.instruction, operand);
  read_matrix(product.dtype, reader, decode_descriptor(operand, address), first, rows, product.k,
              [&](int mn, int k, const float* of) { put(values, mn, k, of); });
  at->valid = reader.first() <= reader.last();
  at->first = reader.first();
  at->last = reader.last();
  at->time = cta.shared.time();
  return values;
}

const float* read_b(Launch& launch, Warp& warp, const PendingProduct& pending,
                    const Product& product) {
  const int n = product.n;
  return decoded(launch, warp, pending, product.b, pending.b, 0, n,
                 static_cast<std::size_t>(n) * product.k,
                 [n](float* to, int column, int k, const float* values) {
                   float* const group = to + spread_b(n, column, k);
                   for (int i = 0; i < 4; ++i) {
                     group[i] = values[2 * i];
                     group[4 + i] = values[2 * i + 1];
                   }
                 });
}

void put_a(float* to, int row, int k, const float* values) {
  for (int i = 0; i < 8; ++i) std::fill_n(to + spread_a(row + i, k), 4, values[i]);
}

// From registers they go to `buffer`.
const float* read_a(Launch& launch, Warp& warp, const PendingProduct& pending,
                    const Product& product, float* buffer) {
  if (product.a_array < 0) {
    return decoded(launch, warp, pending, product.a, pending.a, warp.index % 4 * kRows, kRows,
                   spread_a(0, product.k), put_a);
  }
  spread_registers(4 / size_of(product.dtype),
                   warp.arrays[product.a_array].row<float>(product.a_element), buffer);
  return buffer;
}

// Whether no wgmma_fence stands behind the last use of the array by other instructions.
bool needs_fence(const Warp& warp, int array) {
  return warp.arrays[array].used_behind == warp.wgmma_fences;
}

void report_fence(Launch& launch, Warp& warp, const Instruction& instruction, int array) {
  const RegisterInfo& info = launch.kernel.registers[array];
  launch.log.add(
      {"wgmma", instruction.where(), info.where,
       fmt::format("wgmma: {} may still be in use by earlier instructions\n{}", info.name,
                   launch.access("issue", instruction, warp)),
       fmt::format("wgmma_fence between the last use of {} and the product", info.name)});
}

// Products of one shape are in order on an accumulator; those of different shapes only behind a
// fence, waited for or not.
void check_shape(Launch& launch, Warp& warp, const Instruction& instruction,
                 const Product& product) {
  RegisterArray& accumulator = warp.arrays[product.accumulator];
  const Instruction* const last = std::exchange(accumulator.product, &instruction);
  const std::int64_t fences = std::exchange(accumulator.product_behind, warp.wgmma_fences);
  if (!last || last == &instruction || fences != warp.wgmma_fences) return;
  const Product& other = launch.kernel.products[last->detail];
  if (other.n == product.n && other.k == product.k) return;
  const std::string& name = launch.kernel.registers[product.accumulator].name;
  launch.log.add(
      {"wgmma", last->where(), instruction.where(),
       fmt::format(
           "wgmma: products of shapes m64n{}k{} and m64n{}k{} follow each other on {}\n{}\n{}",
           other.n, other.k, product.n, product.k, name, launch.access("issue", *last, warp),
           launch.access("issue", instruction, warp)),
       fmt::format("wgmma_fence of {} between the two: only products of one shape are in order",
                   name)});
}

void check_registers(Launch& launch, Warp& warp, const Instruction& instruction,
                     const Product& product, bool accumulate) {
  check_shape(launch, warp, instruction, product);
  if (needs_fence(warp, product.accumulator)) {
    report_fence(launch, warp, instruction, product.accumulator);
  }
  // An accumulator that a product in flight writes is read by the next one in order.
  if (accumulate) check_written(launch, warp, instruction, product.accumulator, 0, product.n / 2);
  if (product.a_array < 0) return;
  // Accumulators are f32 and fragments of A are not: no product in flight writes this one.
  if (needs_fence(warp, product.a_array)) {
    report_fence(launch, warp, instruction, product.a_array);
  }
  check_written(launch, warp, instruction, product.a_array, product.a_element,
                16 / size_of(product.dtype));
}

int base_offset(const MatrixOperand& operand) {
  return static_cast<int>(operand.descriptor >> 49 & 7);
}

void report_base_offset(Launch& launch, const Warp& warp, const Instruction& instruction,
                        const MatrixOperand& operand, char name) {
  launch.log.add({"wgmma",
                  instruction.where(),
                  {},
                  fmt::format("wgmma: descriptor_{} {:#x} has base offset {}; patterns start at "
                              "aligned addresses here, so that it is 0\n{}",
                              name, operand.descriptor, base_offset(operand),
                              launch.access("issue", instruction, warp)),
                  {}});
}

// A product is one instruction of four warps: each has to issue the same ones in the same order, on
// the same operands.
void join_issue(Launch& launch, Warp& warp, const PendingProduct& pending) {
  SharedIssues& shared = warp.cta->issues[warp.index / kWarpsOfGroup];
  const std::size_t place = pending.sequence - shared.first;
  if (place == shared.issues.size()) {
    shared.issues.push_back(
        {launch.order.by_threads(warp, *pending.instruction, {}), pending.a, pending.b, 0});
  }
  SharedIssue& issue = shared.issues[place];
  const bool same_instruction = issue.access.instruction == pending.instruction;
  if (!same_instruction || issue.a != pending.a || issue.b != pending.b) {
    launch.log.add(
        {"wgmma", pending.instruction->where(), issue.access.instruction->where(),
         fmt::format("wgmma: the warps of a warpgroup issue different products{}\n{}\n{}",
                     same_instruction ? ": their operands lie in different places" : "",
                     launch.access_line("issue", issue.access),
                     launch.access("issue", *pending.instruction, warp)),
         "the same products, in the same order and on the same operands, in all four "
         "warps of the warpgroup"});
  }
  issue.warps |= 1 << warp.index % kWarpsOfGroup;
  if (shared.issues.front().warps == 0b1111) {
    shared.issues.pop_front();
    ++shared.first;
  }
}

// Tells that the product reads its operands from now until its group is waited for.
void read_operands(Launch& launch, const Warp& warp, const Instruction& instruction,
                   const PendingProduct& pending) {
  if (!launch.order.enabled()) return;
  const Product& product = launch.kernel.products[instruction.detail];
  if (product.run == 0) return;  // the first of the run has told
  const int agent =
      launch.order.agents().at(warp.cta->cluster_rank(), Agents::Kind::products, warp.index);
  const Access access = launch.order.by_unit(warp, instruction, {false, /*async=*/true, false},
                                             agent, static_cast<Epoch>(warp.product_groups + 1));
  const auto read = [&](const MatrixOperand& operand, std::int64_t start, int first, int rows) {
    const Footprint& touched =
        launch.footprints.of(launch.kernel, operand, product, start, first, rows);
    for (const BlockRun& run : touched.runs) {
      launch.order.shared(warp, access, *warp.cta, operand.allocation, run);
    }
  };
  read(product.b, pending.b, 0, product.n);
  if (product.a_array < 0) read(product.a, pending.a, warp.index % 4 * kRows, kRows);
}

// Without values: that the operands of a run of products lie in their allocation and hold
// something.
void check_operands(Launch& launch, Warp& warp, const PendingProduct& pending,
                    const Product& product) {
  if (product.run == 0) return;  // the first of the run has looked
  const auto check = [&](const MatrixOperand Product::*member, std::int64_t start, int first,
                         int rows) {
    const MatrixOperand& operand = product.*member;
    const SharedMemory& shared = warp.cta->shared;
    const Footprint& covered =
        launch.footprints.of(launch.kernel, operand, product, start, first, rows);
    const bool inside =
        covered.cells == std::int64_t{product.run} * rows * product.k * size_of(product.dtype) / 16;
    if (inside && std::all_of(covered.runs.begin(), covered.runs.end(), [&](const BlockRun& run) {
          return shared.chunks_initialised(run.first, run.count, run.bytes.cells);
        })) {
      return;
    }
    for (const Product* each = &product; each < &product + product.run; ++each) {
      const MatrixOperand& other = each->*member;
      MatrixReader reader(launch, warp, *warp.cta, *pending.instruction, other);
      read_matrix(each->dtype, reader, decode_descriptor(other, start + other.step - operand.step),
                  first, rows, each->k, [](int, int, const float*) {});
    }
  };
  if (product.a_array < 0) check(&Product::a, pending.a, warp.index % 4 * kRows, kRows);
  check(&Product::b, pending.b, 0, product.n);
}

}  // namespace

void issue_product(Launch& launch, Warp& warp, const Instruction& instruction) {
  const Product& product = launch.kernel.products[instruction.detail];
  PendingProduct pending;
  pending.instruction = &instruction;
  pending.accumulate = warp.integer(product.accumulate) != 0;
  pending.sequence = ++warp.product_sequence;
  const auto start = [&](const MatrixOperand& operand, char name) {
    if (base_offset(operand) != 0) report_base_offset(launch, warp, instruction, operand, name);
    return launch.kernel.allocations[operand.allocation].offset + warp.integer(operand.offset) +
           operand.step;
  };
  check_registers(launch, warp, instruction, product, pending.accumulate);
  pending.b = start(product.b, 'b');
  if (product.a_array < 0) {
    pending.a = start(product.a, 'a');
  } else {
    ++warp.arrays[product.a_array].in_flight;
  }
  join_issue(launch, warp, pending);
  read_operands(launch, warp, instruction, pending);
  RegisterArray& accumulator = warp.arrays[product.accumulator];
  ++accumulator.in_flight;
  if (accumulator.unwritten > 0) {
    std::fill(accumulator.written.begin(), accumulator.written.end(), 1);
    accumulator.unwritten = 0;
  }

  const bool first_of_group = warp.products.empty() || warp.products.back().group >= 0;
  if (first_of_group) warp.product_timing = static_cast<int>(launch.random.below(3));
  warp.products.push_back(pending);
  if (warp.product_timing == at_issue) run_products(launch, warp, pending.sequence);
}

void run_products(Launch& launch, Warp& warp, std::uint64_t last) {
  float buffer[spread_a(0, 32)];
  for (; warp.products_done < warp.products.size(); ++warp.products_done) {
    const PendingProduct& pending = warp.products[warp.products_done];
    if (pending.sequence > last) break;
    if (launch.provenance) launch.provenance->product(warp, pending);
    const Product& product = launch.kernel.products[pending.instruction->detail];
    if (!launch.kernel.valued) {
      check_operands(launch, warp, pending, product);
      continue;
    }
    const float* a = read_a(launch, warp, pending, product, buffer);
    const float* b = read_b(launch, warp, pending, product);
    multiply_fragment(product.n, product.k, a, b, pending.accumulate,
                      warp.arrays[product.accumulator].row<float>(0));
  }
}

void commit_products(Launch& launch, Warp& warp) {
  const bool any = !warp.products.empty() && warp.products.back().group < 0;
  for (auto each = warp.products.rbegin(); each != warp.products.rend(); ++each) {
    if (each->group >= 0) break;
    each->group = warp.product_groups;
  }
  ++warp.product_groups;
  if (!any || warp.product_timing != in_between) return;
  Event event;
  event.kind = Event::Kind::products;
  event.issuer = &warp;
  event.sequence = warp.product_sequence;
  launch.add_event(std::move(event));
}

void wait_products(Launch& launch, Warp& warp, const Instruction& instruction) {
  const std::int64_t groups = warp.product_groups - instruction.value;
  launch.order.complete(warp, instruction.elected, Agents::Kind::products, warp.index, groups);
  const auto awaited = [&](const PendingProduct& pending) {
    return pending.group >= 0 && pending.group < groups;
  };
  std::uint64_t last = 0;
  for (const PendingProduct& pending : warp.products) {
    if (!awaited(pending)) break;
    last = pending.sequence;
  }
  run_products(launch, warp, last);
  while (!warp.products.empty() && awaited(warp.products.front())) {
    const Product& product = launch.kernel.products[warp.products.front().instruction->detail];
    --warp.arrays[product.accumulator].in_flight;
    if (product.a_array >= 0) --warp.arrays[product.a_array].in_flight;
    warp.products.pop_front();
    --warp.products_done;
  }
}

void check_issues(Launch& launch, const Warp& ended) {
  for (const SharedIssue& issue : ended.cta->issues[ended.index / kWarpsOfGroup].issues) {
    if (issue.warps >> ended.index % kWarpsOfGroup & 1) continue;
    launch.log.add({"wgmma", issue.access.instruction->where(),
                    launch.kernel.roles[issue.access.role].where,
                    fmt::format("wgmma: {} ends without a product that the others of its warpgroup "
                                "issue\n{}",
                                launch.describe(issue.access.role, ended.index, ended.cta->index),
                                launch.access_line("issue", issue.access)),
                    "the same products in all four warps of the warpgroup"});
    return;
  }
}

}  // namespace tilewright::simulator
