#include "simulator/machine/tensor_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <utility>

#include "simulator/machine/launch.h"
#include "support/number_formats.h"

// Allocation of tensor memory, and accesses of threads to it (PTX ISA 9.0, "tensor memory").
namespace tilewright::simulator {

const TensorMemory::Held* TensorMemory::find(int first, int count) const {
  const auto found = std::find_if(held.begin(), held.end(), [&](const Held& each) {
    return first >= each.first && first + count <= each.first + each.count;
  });
  return found == held.end() ? nullptr : &*found;
}

std::vector<int> TensorMemory::places_for(int count, bool of_all) const {
  std::vector<int> places;
  for (int first = 0; first + count <= kColumns; first += count) {
    const auto meets = [&](const TakenColumns::Run& run) {
      return (of_all || run.cta == cta_) && first < run.first + run.count &&
             run.first < first + count;
    };
    if (std::none_of(taken->runs.begin(), taken->runs.end(), meets)) places.push_back(first);
  }
  return places;
}

void TensorMemory::take(Held columns) {
  for (int column = columns.first; column < columns.first + columns.count; ++column) {
    written_[column] = {};
  }
  last_count = columns.count;
  taken->runs.push_back({columns.first, columns.count, cta_});
  held.push_back(columns);
}

void TensorMemory::give_back(int first) {
  std::erase_if(held, [first](const Held& each) { return each.first == first; });
  std::erase_if(taken->runs, [&](const TakenColumns::Run& run) {
    return run.cta == cta_ && run.first == first;
  });
}

bool TensorMemory::Part::meets(const Part& other) const {
  return first < other.first + other.count && other.first < first + count &&
         (half == kBoth || other.half == kBoth || half == other.half);
}

bool TensorMemory::Part::covers(const Part& other) const {
  return first <= other.first && other.first + other.count <= first + count &&
         (half == kBoth || half == other.half);
}

std::vector<TensorMemory::Result> TensorMemory::replace_results(const Part& part) {
  const auto kept =
      std::stable_partition(results_.begin(), results_.end(),
                            [&](const Result& each) { return !part.covers(each.part); });
  std::vector<Result> unread;
  std::copy_if(kept, results_.end(), std::back_inserter(unread),
               [](const Result& each) { return !each.is_read; });
  results_.erase(kept, results_.end());
  return unread;
}

void TensorMemory::leave(const Result& result, bool accumulates) {
  if (accumulates) {
    std::erase_if(results_, [&](const Result& each) { return result.part.meets(each.part); });
  }
  results_.push_back(result);
}

void TensorMemory::note_read(const Part& part) {
  for (Result& each : results_) each.is_read |= part.meets(each.part);
}

void TensorMemory::add(ByteSet& touched, int first, int count, int lane, int lanes) {
  if (lanes == kLanes) {
    return touched.add(static_cast<std::uint64_t>(first) * kHalves, std::int64_t{count} * kHalves);
  }
  for (int column = first; column < first + count; ++column) {
    touched.add(static_cast<std::uint64_t>(column) * kHalves + lane / kHalf, lanes / kHalf);
  }
}

namespace {

void report(Launch& launch, const Warp& warp, const Instruction& instruction, const char* verb,
            const std::string& what, std::string missing, SourceLocation second = {}) {
  launch.log.add(
      {"tensor_memory", instruction.where(), second,
       fmt::format("tensor memory: {}\n{}", what, launch.access(verb, instruction, warp)),
       std::move(missing)});
}

// Whether the CTA may take the columns; else a fault.
void check_allocation(Launch& launch, const Warp& warp, const Instruction& instruction) {
  const TensorMemory& tensor = *warp.cta->tensor;
  const TensorAllocation& memory = launch.kernel.tensor_memories[instruction.value];
  if (tensor.relinquished) {
    report(launch, warp, instruction, "alloc",
           fmt::format("{} is allocated behind tcgen05_relinquish", memory.name),
           "the allocation before it", memory.where);
  }
  if (memory.columns > tensor.last_count) {
    report(launch, warp, instruction, "alloc",
           fmt::format("{} takes {} columns after an allocation of {}, and later ones may not be "
                       "larger",
                       memory.name, memory.columns, tensor.last_count),
           "the largest allocation first", memory.where);
  }
}

void take(Launch& launch, Warp& warp, const Instruction& instruction, int first) {
  const TensorAllocation& memory = launch.kernel.tensor_memories[instruction.value];
  warp.cta->tensor->take({static_cast<int>(instruction.value), first, memory.columns,
                          launch.order.by_threads(warp, instruction, {true, false, false})});
  const Allocation& word = launch.kernel.allocations[instruction.object];
  const std::int64_t address = word.offset + 4 * warp.integer(instruction.a);
  if (!launch.inside(warp, instruction, instruction.object, address, 4)) return;
  const std::int32_t base = first;
  warp.cta->shared.write(address, reinterpret_cast<const std::byte*>(&base), 4);
  launch.order.shared(warp, launch.order.by_threads(warp, instruction, {true, false, false}),
                      *warp.cta, instruction.object, address, 4);
}

// What a warp of each of the CTAs executes that allocate together.
struct Taking {
  Warp* warp;
  const Instruction* instruction;
};

// All get the same place.
void allocate(Launch& launch, const std::vector<Taking>& all) {
  const auto& [warp, instruction] = all[0];
  const TensorAllocation& memory = launch.kernel.tensor_memories[instruction->value];
  std::vector<int> places = warp->cta->tensor->places_for(memory.columns);
  for (const Taking& each : all) {
    check_allocation(launch, *each.warp, *each.instruction);
    const std::vector<int> its = each.warp->cta->tensor->places_for(memory.columns);
    std::erase_if(places,
                  [&](int place) { return !std::binary_search(its.begin(), its.end(), place); });
  }
  for (const Taking& each : all) {
    if (!each.warp->cta->tensor->own_places_for(memory.columns).empty()) continue;
    return report(
        launch, *warp, *instruction, "alloc",
        fmt::format("{} takes {} columns, which nobody gives back", memory.name, memory.columns),
        "a tcgen05_dealloc (TensorMemory::free) before it", memory.where);
  }
  // Until another CTA of the multiprocessor gives back what it has.
  if (places.empty()) {
    for (const Taking& each : all) launch.wait_for_columns(*each.warp, *each.instruction);
    return;
  }
  // Another CTA may hold the first columns: who takes them for granted is always wrong here.
  for (const Taking& each : all) take(launch, *each.warp, *each.instruction, places.back());
}

// Faults where somebody may still use columns that a CTA gives back, as far as each of the warps
// knows: which of them the hardware waits for is not said.
void check_uses(Launch& launch, const std::vector<Taking>& all, Cta& cta,
                const TensorMemory::Held& held) {
  const ShadowMemory before = cta.tensor->shadow;
  for (const auto& [warp, instruction] : all) {
    cta.tensor->shadow = before;
    ByteSet columns;
    TensorMemory::add(columns, held.first, held.count, 0, TensorMemory::kLanes);
    launch.order.tensor(*warp, launch.order.by_threads(*warp, *instruction, {true, false, false}),
                        cta, columns);
  }
}

void free_columns(Launch& launch, const std::vector<Taking>& all) {
  for (const auto& [warp, instruction] : all) {
    const TensorAllocation& memory = launch.kernel.tensor_memories[instruction->value];
    const auto number = instruction->value;
    TensorMemory& tensor = *warp->cta->tensor;
    const TensorAddress at(warp->integer(instruction->a));
    const auto held =
        std::find_if(tensor.held.begin(), tensor.held.end(), [&](const TensorMemory::Held& each) {
          return each.memory == number && each.first == at.column && at.lane == 0;
        });
    if (held == tensor.held.end()) {
      return report(launch, *warp, *instruction, "free",
                    fmt::format("{} is given back at lane {}, column {}, where it is not held",
                                memory.name, at.lane, at.column),
                    "one tcgen05_dealloc for each tcgen05_alloc, of the address that this gave "
                    "(TensorMemory::allocate and free, once each)",
                    memory.where);
    }
    check_uses(launch, all, *warp->cta, *held);
    replace_results(launch, *warp, *instruction, *warp->cta, {held->first, held->count});
    tensor.give_back(held->first);
  }
  launch.look_for_columns();
}

// The 32 bits of register `index` of a lane: narrow elements are packed, the first in the low bits.
std::uint32_t register_bits(const RegisterInfo& info, RegisterArray& array, int index, int lane) {
  if (info.dtype == DType::f32) {
    return std::bit_cast<std::uint32_t>(array.row<float>(index)[lane]);
  }
  const int bytes = size_of(info.dtype), packed = 4 / bytes;
  std::uint32_t bits = 0;
  for (int e = 0; e < packed; ++e) {
    const int element = index * packed + e;
    std::uint32_t part = 0;
    if (info.dtype == DType::bf16) part = float_to_bf16(array.row<float>(element)[lane]);
    if (info.dtype == DType::f16) part = float_to_f16(array.row<float>(element)[lane]);
    if (info.dtype == DType::f8e4m3) part = float_to_f8e4m3(array.row<float>(element)[lane]);
    if (is_integer(info.dtype))
      part = static_cast<std::uint32_t>(array.row<std::int64_t>(element)[lane]);
    if (bytes < 4) part &= (1u << 8 * bytes) - 1;
    bits |= part << 8 * bytes * e;
  }
  return bits;
}

void set_register(const RegisterInfo& info, RegisterArray& array, int index, int lane,
                  std::uint32_t bits) {
  if (info.dtype == DType::f32) {
    array.row<float>(index)[lane] = std::bit_cast<float>(bits);
    return;
  }
  const int bytes = size_of(info.dtype), packed = 4 / bytes;
  for (int e = 0; e < packed; ++e) {
    const int element = index * packed + e;
    const std::uint32_t part = bits >> 8 * bytes * e;
    if (info.dtype == DType::bf16)
      array.row<float>(element)[lane] = bf16_to_float(static_cast<std::uint16_t>(part));
    if (info.dtype == DType::f16)
      array.row<float>(element)[lane] = f16_to_float(static_cast<std::uint16_t>(part));
    if (info.dtype == DType::f8e4m3)
      array.row<float>(element)[lane] = f8e4m3_to_float(static_cast<std::uint8_t>(part));
    if (is_integer(info.dtype))
      array.row<std::int64_t>(element)[lane] = static_cast<std::int32_t>(part);
  }
}

bool in_own_window(Launch& launch, const Warp& warp, const Instruction& instruction,
                   const TensorAccess& access, const char* verb) {
  const TensorAddress at(warp.integer(access.address));
  const int window = warp.index % TensorMemory::kWindows;
  const int first = window * TensorMemory::kWindow;
  const bool upper =
      access.lanes() == TensorMemory::kHalf && at.lane == first + TensorMemory::kHalf;
  if (at.lane == first || upper) return true;
  const TensorAllocation& memory = launch.kernel.tensor_memories[access.memory];
  report(launch, warp, instruction, verb,
         fmt::format("{}: lanes from {} on, and the warp reaches lanes {} to {} alone", memory.name,
                     at.lane, first, first + TensorMemory::kWindow - 1),
         fmt::format("32 * warp_index() in the upper 16 bits of the address"), memory.where);
  return false;
}

// The elements of an array that the access moves.
std::vector<int> elements_of(const TensorAccess& access, const RegisterInfo& info) {
  const int packed = 4 / size_of(info.dtype);
  std::vector<int> elements;
  const int end = std::min((access.first + access.count) * packed, info.elements);
  for (int i = access.first * packed; i < end; ++i) elements.push_back(i);
  return elements;
}

// Calls `each` with the runs of lanes of which the threads' register `first` + i is: the first lane
// and the column, how many, and the first thread and how far the next one is.
template <typename Each>
void for_each_run(const TensorAccess& access, const TensorAddress& at, int i, const Each& each) {
  const int threads = access.beside == 0 ? kLanes : kLanes / 4, step = kLanes / threads;
  for (int thread = 0; thread < step; ++thread) {
    each(at.lane + access.lane_of(i, thread), at.column + access.column_of(i, thread), threads,
         thread, step);
  }
}

void load(Launch& launch, Warp& warp, const Instruction& instruction, const TensorAccess& access,
          const TensorAddress& at) {
  const RegisterInfo& info = launch.kernel.registers[access.array];
  const std::vector<int> elements = elements_of(access, info);
  RegisterArray& array = warp.arrays[access.array];
  // Loads of other parts of the array need not be waited for.
  const Instruction* const loading = std::exchange(array.loading, nullptr);
  write_registers(launch, warp, instruction, access.array, elements.data(), elements.size());
  array.loading = loading ? loading : &instruction;
  const TensorMemory& tensor = *warp.cta->tensor;
  bool held = true;
  for (int i = 0; i < access.count; ++i) {
    for_each_run(access, at, i, [&](int lane, int column, int count, int thread, int step) {
      held = held && tensor.is_written(lane, column, count);
      for (int j = 0; j < count && info.valued; ++j) {
        set_register(info, array, access.first + i, thread + step * j,
                     tensor.bits(lane + j, column));
      }
    });
  }
  if (held) return;
  const TensorAllocation& memory = launch.kernel.tensor_memories[access.memory];
  launch.log.add(
      {"uninitialised", instruction.where(), memory.where,
       fmt::format("uninitialised: tensor memory {}: nothing has written some of columns "
                   "{} to {}\n{}",
                   memory.name, at.column, at.column + access.columns() - 1,
                   launch.access("read", instruction, warp)),
       "a store of all of these columns before, or a product and a wait for its commit"});
}

void store(Launch& launch, Warp& warp, const Instruction& instruction, const TensorAccess& access,
           const TensorAddress& at) {
  const RegisterInfo& info = launch.kernel.registers[access.array];
  const std::vector<int> elements = elements_of(access, info);
  read_registers(launch, warp, instruction, access.array, elements.data(), elements.size());
  TensorMemory& tensor = *warp.cta->tensor;
  for (int i = 0; i < access.count; ++i) {
    for_each_run(access, at, i, [&](int lane, int column, int count, int thread, int step) {
      std::array<float, kLanes> run{};
      for (int j = 0; j < count && info.valued; ++j) {
        run[j] = std::bit_cast<float>(
            register_bits(info, warp.arrays[access.array], access.first + i, thread + step * j));
      }
      tensor.write(lane, column, count, run.data());
    });
  }
}

}  // namespace

namespace {

void execute_together(Launch& launch, const std::vector<Taking>& all) {
  if (all[0].instruction->op == ir::Op::tcgen05_alloc) return allocate(launch, all);
  free_columns(launch, all);
}

// A warp of each CTA of a pair executes it: the first to come waits for the other.
void meet_peer(Launch& launch, Warp& warp, const Instruction& instruction) {
  Cta& peer = warp.cta->peer();
  if (peer.in_step.empty()) {
    if (peer.live == 0) {
      return report(launch, warp, instruction, "wait",
                    fmt::format("CTA {} of the pair has ended", peer.index),
                    "the same operation in both CTAs of a pair");
    }
    warp.cta->in_step.push_back(&warp);
    return launch.block(warp, Warp::State::pair, instruction);
  }
  Warp& other = *peer.in_step.front();
  peer.in_step.pop_front();
  const Instruction& its = *other.waits_at;
  launch.wake(other);
  if (its.op != instruction.op || its.value != instruction.value) {
    return report(
        launch, warp, instruction, "meet",
        fmt::format("CTAs {} and {} of a pair are out of step: the other one executes\n{}",
                    warp.cta->index, peer.index, launch.access("meet", its, other)),
        "the same allocations in the same order in both CTAs", its.where());
  }
  execute_together(launch, {{&warp, &instruction}, {&other, &its}});
}

}  // namespace

void allocate_tensor_memory(Launch& launch, Warp& warp, const Instruction& instruction) {
  ++warp.pc;
  switch (ir::as<ir::TensorAllocationOp>(instruction.op)) {
    case ir::TensorAllocationOp::tcgen05_alloc:
    case ir::TensorAllocationOp::tcgen05_dealloc:
      if (launch.kernel.cta_pairs) return meet_peer(launch, warp, instruction);
      return execute_together(launch, {{&warp, &instruction}});
    case ir::TensorAllocationOp::tcgen05_relinquish:
      warp.cta->tensor->relinquished = true;
      return;
  }
}

const TensorMemory::Held* find_columns(Launch& launch, const Warp& warp,
                                       const Instruction& instruction, const Cta& cta, int memory,
                                       std::int64_t address, int columns) {
  const TensorAddress at(address);
  const TensorMemory::Held* held = cta.tensor->find(at.column, columns);
  if (held && held->memory == memory) return held;
  const TensorAllocation& named = launch.kernel.tensor_memories[memory];
  const TensorMemory& tensor = *cta.tensor;
  const auto own = std::find_if(tensor.held.begin(), tensor.held.end(),
                                [&](const auto& each) { return each.memory == memory; });
  report(launch, warp, instruction, "use",
         own == tensor.held.end() ? fmt::format("columns {} to {} of {}, which is not allocated",
                                                at.column, at.column + columns - 1, named.name)
                                  : fmt::format("columns {} to {}, and {} has {} to {}", at.column,
                                                at.column + columns - 1, named.name, own->first,
                                                own->first + own->count - 1),
         own == tensor.held.end()
             ? "a tcgen05_alloc before it, and no tcgen05_dealloc (TensorMemory::allocate and free)"
             : "",
         named.where);
  return nullptr;
}

void replace_results(Launch& launch, const Warp& warp, const Instruction& instruction, Cta& cta,
                     const TensorMemory::Part& part) {
  for (const TensorMemory::Result& result : cta.tensor->replace_results(part)) {
    const TensorMemory::Held* held = cta.tensor->find(result.part.first, result.part.count);
    if (!held) continue;  // which is a fault by itself
    const TensorAllocation& memory = launch.kernel.tensor_memories[held->memory];
    const int first = result.part.first - held->first;
    launch.log.add({"tensor_memory", result.by.instruction->where(), instruction.where(),
                    fmt::format("tensor memory: nobody reads the result in columns {} to {} of {}\n"
                                "{}\n{}",
                                first, first + result.part.count - 1, memory.name,
                                launch.access_line("issue", result.by),
                                launch.access("lose", instruction, warp)),
                    "a load of these columns between them"});
  }
}

void access_tensor_memory(Launch& launch, Warp& warp, const Instruction& instruction) {
  const TensorAccess& access = launch.kernel.tensor_accesses[instruction.detail];
  const bool loads = instruction.op == ir::Op::tcgen05_ld;
  const std::int64_t address = warp.integer(access.address);
  if (!in_own_window(launch, warp, instruction, access, loads ? "read" : "write")) return;
  if (!find_columns(launch, warp, instruction, *warp.cta, access.memory, address,
                    access.columns())) {
    return;
  }
  const TensorAddress at(address);
  const Agents& agents = launch.order.agents();
  const auto kind = loads ? Agents::Kind::tensor_loads : Agents::Kind::tensor_stores;
  const Epoch waits = loads ? warp.tensor_load_waits : warp.tensor_store_waits;
  ByteSet touched;
  TensorMemory::add(touched, at.column, access.columns(), at.lane, access.lanes());
  launch.order.tensor(
      warp,
      launch.order.by_unit(warp, instruction, {!loads, true, false},
                           agents.at(warp.cta->cluster_rank(), kind, warp.index), waits + 1),
      *warp.cta, touched);
  // Stores that take its place may have to do with what it was.
  const bool both = access.lanes() == TensorMemory::kWindow;
  note_read(launch, *warp.cta,
            {at.column, access.columns(),
             both ? TensorMemory::Part::kBoth : at.lane / TensorMemory::kHalf % 2});
  if (loads) return load(launch, warp, instruction, access, at);
  store(launch, warp, instruction, access, at);
}

void note_read(Launch& launch, Cta& cta, const TensorMemory::Part& part) {
  cta.tensor->note_read(part);
  // A tile of a pair may be without rows for one of them.
  if (launch.kernel.cta_pairs) cta.peer().tensor->note_read(part);
}

void wait_for_tensor_memory(Launch& launch, Warp& warp, const Instruction& instruction) {
  switch (ir::as<ir::TensorWaitOp>(instruction.op)) {
    case ir::TensorWaitOp::tcgen05_wait_ld:
      for (RegisterArray& array : warp.arrays) array.loading = nullptr;
      return launch.order.wait_for_tensor(warp, Agents::Kind::tensor_loads,
                                          ++warp.tensor_load_waits);
    case ir::TensorWaitOp::tcgen05_wait_st:
      return launch.order.wait_for_tensor(warp, Agents::Kind::tensor_stores,
                                          ++warp.tensor_store_waits);
  }
}

void fence_tensor_memory(Launch& launch, Warp& warp, const Instruction& instruction) {
  switch (ir::as<ir::TensorFenceOp>(instruction.op)) {
    case ir::TensorFenceOp::tcgen05_fence_before:
      return launch.order.fence_before(warp, instruction.elected);
    case ir::TensorFenceOp::tcgen05_fence_after:
      return launch.order.fence_after(warp, instruction.elected);
  }
}

void check_tensor_memory(Launch& launch, const Cta& cta) {
  if (!cta.tensor) return;
  for (const TensorMemory::Held& held : cta.tensor->held) {
    const TensorAllocation& memory = launch.kernel.tensor_memories[held.memory];
    launch.log.add({"tensor_memory", held.by.instruction->where(), launch.kernel.where,
                    fmt::format("tensor memory: {} is held when CTA {} ends\n{}", memory.name,
                                cta.index, launch.access_line("alloc", held.by)),
                    "tcgen05_dealloc (TensorMemory::free) before the kernel ends"});
  }
}

}  // namespace tilewright::simulator
