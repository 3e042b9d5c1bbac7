#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "simulator/machine/world.h"
#include "support/number_formats.h"

namespace tilewright::simulator {
namespace {

// One element of a register array as it lies in memory.
void to_bytes(RegisterArray& array, DType dtype, int element, int lane, std::byte* to) {
  if (is_float(dtype)) return from_float(dtype, array.row<float>(element) + lane, to, 1);
  if (is_integer(dtype)) return from_integer(dtype, array.row<std::int64_t>(element)[lane], to);
  *to = std::byte{array.row<std::uint8_t>(element)[lane]};
}

// Added to what is there, rounded to the dtype; integers modulo their range.
void add_bytes(RegisterArray& array, DType dtype, int element, int lane, std::byte* to) {
  if (is_integer(dtype)) {
    const auto before = static_cast<std::uint64_t>(to_integer(dtype, to));
    const auto value = static_cast<std::uint64_t>(array.row<std::int64_t>(element)[lane]);
    return from_integer(dtype, static_cast<std::int64_t>(before + value), to);
  }
  float sum = 0;
  to_float(dtype, to, &sum, 1);
  sum += array.row<float>(element)[lane];
  from_float(dtype, &sum, to, 1);
}

void from_bytes(RegisterArray& array, DType dtype, int element, int lane, const std::byte* from) {
  if (is_float(dtype)) {
    to_float(dtype, from, array.row<float>(element) + lane, 1);
  } else {
    array.row<std::int64_t>(element)[lane] = to_integer(dtype, from);
  }
}

// What was in memory before, to all lanes that hold the element.
void give_to_all(RegisterArray& array, DType dtype, const Spread& spread, int element, int lane,
                 const std::byte* before) {
  const auto* const coordinates = spread.lane.data();
  for (int other = 0; other < kLanes; ++other) {
    if (!std::equal(coordinates + lane * spread.rank, coordinates + (lane + 1) * spread.rank,
                    coordinates + other * spread.rank)) {
      continue;
    }
    from_bytes(array, dtype, element, other, before);
  }
}

int position_in_role(const Launch& launch, const Warp& warp) {
  return warp.index - launch.kernel.roles[warp.role].first_warp;
}

// The allocation's place of a scalar, or -1 after a fault.
std::int64_t scalar_address(Launch& launch, const Warp& warp, const Instruction& instruction) {
  const Allocation& allocation = launch.kernel.allocations[instruction.object];
  const std::int64_t address = allocation.offset + warp.integer(instruction.a) * 4;
  return launch.inside(warp, instruction, instruction.object, address, 4) ? address : -1;
}

// The CTA of the warp's cluster that a remote access names; null after a fault.
Cta* other_cta(Launch& launch, const Warp& warp, const Instruction& instruction) {
  const std::int64_t rank = warp.integer(instruction.b);
  const auto& ctas = warp.cta->cluster->ctas;
  if (rank < 0 || rank >= static_cast<std::int64_t>(ctas.size())) {
    launch.log.add({"out_of_bounds",
                    instruction.where(),
                    {},
                    fmt::format("out of bounds: CTA {} of a cluster of {}\n{}", rank, ctas.size(),
                                launch.access("read", instruction, warp)),
                    {}});
    return nullptr;
  }
  if (ctas[rank]->live > 0) return ctas[rank].get();
  launch.log.add({"exit",
                  instruction.where(),
                  {},
                  fmt::format("exit: a read of shared memory of CTA {}, which has ended\n{}",
                              ctas[rank]->index, launch.access("read", instruction, warp)),
                  "cluster_sync before the kernel ends"});
  return nullptr;
}

// The bytes of all elements of the warp that exist.
void add_runs(Launch& launch, const GlobalAccess& access, int position,
              const std::vector<std::int64_t>& starts, const std::vector<std::int64_t>& ends,
              const std::byte* data) {
  const TensorArgument& tensor = *access.tensor;
  const int size = size_of(tensor.dtype);
  for (const ElementRun& run : access.runs) {
    std::int64_t offset = 0, count = run.count;
    for (std::size_t axis = 0; axis < starts.size() && count > 0; ++axis) {
      const int tile_axis = access.tile_axis[axis];
      std::int64_t at = starts[axis] + run.first[axis];
      if (tile_axis >= 0) at += access.spread.of_warp(tile_axis, position);
      if (static_cast<int>(axis) == access.run_axis) {
        const std::int64_t end = std::min(at + count, ends[axis]);
        at = std::max<std::int64_t>(at, 0);
        count = end - at;
      } else if (at < 0 || at >= ends[axis]) {
        count = 0;
      }
      offset += at * tensor.strides[axis];
    }
    if (count <= 0) continue;
    launch.order.bytes.add(reinterpret_cast<std::uint64_t>(data + offset * size), count * size);
  }
}

}  // namespace

void access_global(Launch& launch, Warp& warp, const Instruction& instruction) {
  const GlobalAccess& access = launch.kernel.global_accesses[instruction.detail];
  const RegisterInfo& info = launch.kernel.registers[access.array];
  const TensorArgument& tensor = *access.tensor;
  const ir::OpInfo& record = ir::info(instruction.op);
  const bool loads = !record.writes(ir::Memory::global);
  const bool adds = !loads && record.reads(ir::Memory::global);
  if (!loads) read_all(launch, warp, instruction, access.array);
  if (loads || access.returns) write_all(launch, warp, instruction, access.array);
  if ((loads || access.returns) && launch.provenance) launch.provenance->forget(warp, access.array);
  RegisterArray& array = warp.arrays[access.array];
  const int position = position_in_role(launch, warp);
  std::byte* const data = data_in_rank(launch, warp, instruction, tensor, access.rank);
  if (!data) return;
  for (const analysis::AxisCheck& check : access.checks) {
    if (!launch.fits(warp, instruction, tensor, check, warp.integer(access.starts[check.axis]),
                     warp.integer(access.limits[check.axis]))) {
      return;
    }
  }
  const std::size_t rank = tensor.shape.size();
  const int size = size_of(tensor.dtype);
  constexpr std::byte kZero[8]{};
  const bool ordered = launch.order.is_written(data);
  if (!loads && access.repeated_warp[position % access.spread.warps]) return;
  if (!ordered && !instruction.valued) return;
  static thread_local std::vector<std::int64_t> starts, ends;
  starts.resize(rank);
  ends.resize(rank);
  for (std::size_t axis = 0; axis < rank; ++axis) {
    starts[axis] = warp.integer(access.starts[axis]);
    ends[axis] = std::min(tensor.shape[axis], warp.integer(access.limits[axis]));
  }
  if (ordered && !access.order) add_runs(launch, access, position, starts, ends, data);
  if (instruction.valued || access.order) {
    const TensorPlaces& places =
        launch.tensor_places.of(instruction.detail, position, access.spread.warps,
                                [&] { return tensor_places(access, info.elements, position); });
    std::int64_t first = 0;
    bool all_exist = true;
    for (std::size_t axis = 0; axis < rank; ++axis) {
      all_exist = all_exist && starts[axis] + places.low[axis] >= 0 &&
                  starts[axis] + places.high[axis] < ends[axis];
      first += starts[axis] * tensor.strides[axis];
    }
    const auto exists = [&](int i, int l) {
      for (std::size_t axis = 0; axis < rank && !all_exist; ++axis) {
        const int tile_axis = access.tile_axis[axis];
        const std::int64_t at =
            starts[axis] + (tile_axis < 0 ? 0 : access.spread.at(tile_axis, i, l, position));
        if (at < 0 || at >= ends[axis]) return false;
      }
      return true;
    };
    const bool row_by_row = is_float(tensor.dtype) && !access.order && !adds && !access.returns;
    std::byte row[kLanes * 8];
    for (int i = 0; i < info.elements; ++i) {
      const std::int64_t* const elements = places.elements.data() + std::ptrdiff_t{i} * kLanes;
      if (row_by_row && !loads) from_float(tensor.dtype, array.row<float>(i), row, kLanes);
      for (int l = 0; l < kLanes; ++l) {
        if (!loads && access.repeated_lane[l]) continue;
        const bool is_there = exists(i, l);
        std::byte* const at = data + (first + elements[l]) * size;
        if (row_by_row) {
          if (loads) {
            std::memcpy(row + l * size, is_there ? at : kZero, size);
          } else if (is_there) {
            std::memcpy(at, row + l * size, size);
          }
          continue;
        }
        if (is_there && access.order) {
          launch.order.word(warp, instruction, {at, size, *access.order, loads || adds, !loads});
        }
        if (!instruction.valued) continue;
        if (loads) {
          from_bytes(array, tensor.dtype, i, l, is_there ? at : kZero);
        } else if (is_there) {
          std::byte before[8];
          std::memcpy(before, at, size);
          (adds ? add_bytes : to_bytes)(array, tensor.dtype, i, l, at);
          if (access.order) launch.world.changed(at, size);
          if (access.returns) give_to_all(array, tensor.dtype, access.spread, i, l, before);
        }
      }
      if (row_by_row && loads) to_float(tensor.dtype, row, array.row<float>(i), kLanes);
    }
  }
  if (access.order) return;
  launch.order.global(warp,
                      launch.order.by_threads(warp, instruction, {!loads, false, access.atomic}),
                      launch.order.bytes);
}

void move_matrix(Launch& launch, Warp& warp, const Instruction& instruction) {
  const MatrixStore& store = launch.kernel.matrix_stores[instruction.detail];
  const int allocation = static_cast<int>(instruction.value);
  const DType dtype = launch.kernel.registers[instruction.object].dtype;
  int elements[8];
  std::iota(elements, elements + 2 * store.count, store.first_element);
  const bool load = ir::info(instruction.op).reads(ir::Memory::shared);
  if (load && launch.provenance) launch.provenance->forget(warp, instruction.object);
  (load ? write_registers : read_registers)(launch, warp, instruction, instruction.object, elements,
                                            2 * store.count);
  RegisterArray& array = warp.arrays[instruction.object];
  const std::int64_t base =
      launch.kernel.allocations[allocation].offset + warp.integer(instruction.a) + store.step;
  const std::int64_t first = store.chunk + (store.has_chunk ? warp.integer(instruction.c) : 0);
  SharedMemory& shared = warp.cta->shared;
  for (int giver = 0; giver < 8 * store.count; ++giver) {
    const int below = store.transposed ? giver % 8 + giver / 16 * 8 : giver % 16;
    const int beside = store.transposed ? giver / 8 % 2 : giver / 16;
    const std::int64_t row = warp.integer(instruction.b) + below;
    const std::int64_t chunk = (first + beside) ^ (row / store.divisor & store.mask);
    const std::int64_t address = base + row * store.row_bytes + chunk * 16;
    if (!launch.inside(warp, instruction, allocation, address, 16))
      return launch.order.bytes.clear();
    launch.order.bytes.add(address, 16);
    // Of matrix giver / 8, lane 4 r + c holds columns 2c and 2c + 1 of row r. The giver's row in
    // memory is its row giver % 8, or that column of a transposed one.
    const auto element = [&](int column) {
      return elements[giver / 8 * 2 + (store.transposed ? giver : column) % 2];
    };
    const auto lane = [&](int column) {
      return store.transposed ? column * 4 + giver % 8 / 2 : giver % 8 * 4 + column / 2;
    };
    if (load) {
      launch.check_held(warp, instruction, *warp.cta, allocation, address, 16);
      if (!launch.kernel.valued) continue;
      for (int column = 0; column < 8; ++column) {
        from_bytes(array, dtype, element(column), lane(column), shared.at(address + column * 2));
      }
      continue;
    }
    std::byte bytes[16] = {};
    for (int column = 0; column < 8 && launch.kernel.valued; ++column) {
      to_bytes(array, dtype, element(column), lane(column), bytes + column * 2);
    }
    shared.write(address, bytes, 16);
    if (launch.provenance) launch.provenance->forget(*warp.cta, address, 16);
  }
  launch.order.shared(warp, launch.order.by_threads(warp, instruction, {!load}), *warp.cta,
                      allocation, launch.order.bytes);
}

void access_elements(Launch& launch, Warp& warp, const Instruction& instruction) {
  const ElementAccess& access = launch.kernel.element_accesses[instruction.detail];
  const int allocation = static_cast<int>(instruction.value);
  const RegisterInfo& info = launch.kernel.registers[instruction.object];
  const bool load = ir::info(instruction.op).reads(ir::Memory::shared);
  if (load && launch.provenance) launch.provenance->forget(warp, instruction.object);
  if (load) {
    write_all(launch, warp, instruction, instruction.object);
  } else {
    read_all(launch, warp, instruction, instruction.object);
  }
  RegisterArray& array = warp.arrays[instruction.object];
  SharedMemory& shared = warp.cta->shared;
  const std::int64_t base =
      launch.kernel.allocations[allocation].offset + warp.integer(instruction.a);
  const int position = position_in_role(launch, warp);
  const int size = size_of(info.dtype);
  if (!load && access.repeated_warp[position % access.spread.warps]) return;
  const SharedPlaces& places = launch.shared_places.of(
      instruction.detail, position, access.spread.warps,
      [&] { return shared_places(access, info.elements, size, !load, position); });
  const bool valued = launch.kernel.valued;
  // The elements of one access lie side by side.
  const int bytes = size * access.vector;
  const Allocation& place = launch.kernel.allocations[allocation];
  const bool fits = base % 16 == 0 && places.aligned && base + places.low >= place.offset &&
                    base + places.high <= place.offset + place.bytes();
  const std::int64_t first_cell = base / 16;
  const bool held = load && fits && shared.initialised(places.cells, first_cell);
  const bool by_row = is_float(info.dtype) && valued;
  static thread_local std::vector<std::byte> rows;
  rows.resize(static_cast<std::size_t>(bytes) * kLanes);
  const auto row_of = [&](int j) { return rows.data() + std::ptrdiff_t{j} * kLanes * size; };
  const bool looks_at_each = valued || !fits || (load && !held) || launch.provenance;
  for (int i = 0; i < info.elements && looks_at_each; i += access.vector) {
    for (int j = 0; j < access.vector && by_row && !load; ++j) {
      from_float(info.dtype, array.row<float>(i + j), row_of(j), kLanes);
    }
    for (int l = 0; l < kLanes; ++l) {
      if (!load && access.repeated_lane[l]) continue;
      const std::int64_t address = base + places.bytes[i / access.vector * kLanes + l];
      if (!fits) {
        if (!launch.inside(warp, instruction, allocation, address, bytes) ||
            !launch.aligned(warp, instruction, allocation, address, bytes)) {
          return launch.order.bytes.clear();
        }
        launch.order.bytes.add(address, bytes);
      }
      if (load && !held) {
        launch.check_held(warp, instruction, *warp.cta, allocation, address, bytes);
      }
      for (int j = 0; j < access.vector && valued; ++j) {
        std::byte element[8];
        std::byte* const at = by_row ? row_of(j) + l * size : element;
        if (!load) {
          if (!by_row) to_bytes(array, info.dtype, i + j, l, at);
          shared.put(address + j * size, at, size);
        } else if (by_row) {
          std::memcpy(at, shared.at(address + j * size), size);
        } else {
          from_bytes(array, info.dtype, i + j, l, shared.at(address + j * size));
        }
      }
      if (load) continue;
      if (!fits) shared.hold(address, bytes);
      if (launch.provenance) launch.provenance->forget(*warp.cta, address, bytes);
    }
    for (int j = 0; j < access.vector && by_row && load; ++j) {
      to_float(info.dtype, row_of(j), array.row<float>(i + j), kLanes);
    }
  }
  if (fits) {
    launch.order.bytes.add(places.cells, first_cell);
    if (!load) shared.hold(places.cells, first_cell);
  }
  launch.order.shared(warp, launch.order.by_threads(warp, instruction, {!load}), *warp.cta,
                      allocation, launch.order.bytes);
}

void move_words(Launch& launch, Warp& warp, const Instruction& instruction) {
  const int allocation = static_cast<int>(instruction.value);
  const RegisterInfo& info = launch.kernel.registers[instruction.object];
  const bool load = ir::info(instruction.op).reads(ir::Memory::shared);
  if (load && launch.provenance) launch.provenance->forget(warp, instruction.object);
  (load ? write_all : read_all)(launch, warp, instruction, instruction.object);
  Cta* cta = instruction.detail ? other_cta(launch, warp, instruction) : warp.cta;
  if (!cta) return;
  RegisterArray& array = warp.arrays[instruction.object];
  const std::int64_t first =
      launch.kernel.allocations[allocation].offset + warp.integer(instruction.a);
  const std::int64_t bytes = std::int64_t{info.elements} * kLanes * 4;
  if (!launch.inside(warp, instruction, allocation, first, bytes)) return;
  const Access access = launch.order.by_threads(warp, instruction, {!load});
  launch.order.shared(warp, access, *cta, allocation, first, bytes);
  if (load) launch.check_held(warp, instruction, *cta, allocation, first, bytes);
  if (cta != warp.cta) {
    ForeignUse use;
    use.access = access;
    use.verb = "read";
    cta->foreign_uses.add(std::move(use));
  }
  if (!load && launch.provenance) launch.provenance->forget(*cta, first, bytes);
  if (!launch.kernel.valued) {
    if (!load) cta->shared.hold(first, bytes);
    return;
  }
  for (int i = 0; i < info.elements; ++i) {
    for (int l = 0; l < kLanes; ++l) {
      const std::int64_t address = first + i / 4 * 512 + l * 16 + i % 4 * 4;
      if (load) {
        from_bytes(array, info.dtype, i, l, cta->shared.at(address));
      } else {
        std::byte word[4];
        to_bytes(array, info.dtype, i, l, word);
        cta->shared.write(address, word, 4);
      }
    }
  }
}

void shared_scalar(Launch& launch, Warp& warp, const Instruction& instruction) {
  const std::int64_t address = scalar_address(launch, warp, instruction);
  if (address < 0) return;
  Cta& cta = *warp.cta;
  const bool store = ir::info(instruction.op).writes(ir::Memory::shared);
  launch.order.shared(warp, launch.order.by_threads(warp, instruction, {store}), cta,
                      instruction.object, address, 4);
  std::int32_t value = 0;
  if (store) {
    value = static_cast<std::int32_t>(warp.integer(instruction.b));
    cta.shared.write(address, reinterpret_cast<const std::byte*>(&value), 4);
    if (launch.provenance) launch.provenance->forget(cta, address, 4);
  } else {
    launch.check_held(warp, instruction, cta, instruction.object, address, 4);
    std::memcpy(&value, cta.shared.at(address), 4);
    warp.scalars[instruction.b] = {value, static_cast<double>(value)};
  }
}

}  // namespace tilewright::simulator
