#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "simulator/evaluate_elementwise.h"
#include "simulator/machine/launch.h"
#include "support/number_formats.h"

namespace tilewright::simulator {
namespace {

using ir::Op;

constexpr std::size_t kWidth = kLanes;

// Calls `visit(T{})` with the type that holds elements of the dtype.
template <typename Visit>
void with_held_type(DType dtype, Visit visit) {
  if (is_float(dtype)) return visit(float{});
  if (is_integer(dtype)) return visit(std::int64_t{});
  visit(std::uint8_t{});
}

// The product in flight that uses one of the elements, if any.
const PendingProduct* conflict(const PreparedKernel& kernel, const Warp& warp, int array,
                               const int* elements, std::size_t count) {
  for (const PendingProduct& pending : warp.products) {
    const Product& product = kernel.products[pending.instruction->detail];
    if (product.accumulator == array) return &pending;
    if (product.a_array != array) continue;
    const int end = product.a_element + 16 / size_of(product.dtype);
    const bool overlaps = std::any_of(elements, elements + count, [&](int element) {
      return element >= product.a_element && element < end;
    });
    if (overlaps) return &pending;
  }
  return nullptr;
}

// Registers that a load from tensor memory may still write.
void check_loading(Launch& launch, Warp& warp, const Instruction& instruction, int array,
                   const char* verb) {
  const Instruction* const load = warp.arrays[array].loading;
  if (!load) return;
  launch.log.add(
      {"tcgen05", load->where(), instruction.where(),
       fmt::format("tcgen05: {} is being loaded\n{}\n{}", launch.kernel.registers[array].name,
                   launch.access("issue", *load, warp), launch.access(verb, instruction, warp)),
       "tcgen05_wait_ld between them"});
}

void check_flight(Launch& launch, Warp& warp, const Instruction& instruction, int array,
                  const int* elements, std::size_t count, const char* verb) {
  const PendingProduct* pending = conflict(launch.kernel, warp, array, elements, count);
  if (!pending) return;
  const bool accumulator =
      launch.kernel.products[pending->instruction->detail].accumulator == array;
  Fault fault{"wgmma", instruction.where(), pending->instruction->where(), {}, {}};
  fault.message = fmt::format(
      "wgmma: {} is in flight as {}\n{}\n{}", launch.kernel.registers[array].name,
      accumulator ? "an accumulator" : "a product's A operand",
      launch.access("issue", *pending->instruction, warp), launch.access(verb, instruction, warp));
  fault.missing =
      pending->group < 0 ? "wgmma_commit and wgmma_wait between them" : "wgmma_wait between them";
  launch.log.add(std::move(fault));
}

// 0, 1, 2, ...: the elements of a whole array.
const int* all_elements(std::size_t count) {
  static thread_local std::vector<int> numbers;
  while (numbers.size() < count) numbers.push_back(static_cast<int>(numbers.size()));
  return numbers.data();
}

// Marks the array as used. Whether its elements have to be looked at.
bool use(Warp& warp, int array) {
  RegisterArray& state = warp.arrays[array];
  state.used_behind = warp.wgmma_fences;
  return state.in_flight > 0 || state.unwritten > 0 || state.loading != nullptr;
}

template <typename T>
T held(const Scalar& scalar) {
  if constexpr (std::is_same_v<T, float>) return static_cast<float>(scalar.f);
  return static_cast<T>(scalar.i);
}

// All elements of a source of compute: where they are, or copied to where the index wants them.
template <typename T>
const T* gather(Warp& warp, const Compute& compute, std::size_t operand, int elements) {
  static thread_local std::vector<T> copies[3];
  const RegisterSource& source = compute.sources[operand];
  std::vector<T>& copy = copies[operand];
  if (source.array < 0) {
    copy.assign(elements * kWidth, held<T>(warp.scalars[source.scalar]));
    return copy.data();
  }
  RegisterArray& array = warp.arrays[source.array];
  if (source.first >= 0) return array.row<T>(source.first);
  copy.resize(elements * kWidth);
  for (int i = 0; i < elements; ++i) {
    std::copy_n(array.row<T>(source.index[i]), kWidth, copy.data() + i * kWidth);
  }
  return copy.data();
}

void compute_all(Warp& warp, const Compute& compute, DType type, int elements,
                 SourceLocation where) {
  RegisterArray& to = warp.arrays[compute.destination];
  const std::size_t count = elements * kWidth;
  if (compute.function == Op::cast) {
    with_held_type(compute.operand_type, [&](auto from_zero) {
      using From = decltype(from_zero);
      const From* const source = gather<From>(warp, compute, 0, elements);
      with_held_type(type, [&](auto to_zero) {
        using To = decltype(to_zero);
        convert<From, To>({Op::cast, type, where}, count, source, to.row<To>(0));
      });
    });
  } else if (ir::info(compute.function).is_comparison()) {
    with_held_type(compute.operand_type, [&](auto zero) {
      using T = decltype(zero);
      compare<T>({compute.function, compute.operand_type, where}, count,
                 gather<T>(warp, compute, 0, elements), gather<T>(warp, compute, 1, elements),
                 to.row<std::uint8_t>(0));
    });
  } else if (compute.function == Op::select) {
    with_held_type(type, [&](auto zero) {
      using T = decltype(zero);
      select<T>(count, gather<std::uint8_t>(warp, compute, 0, elements),
                gather<T>(warp, compute, 1, elements), gather<T>(warp, compute, 2, elements),
                to.row<T>(0));
    });
  } else {
    with_held_type(type, [&](auto zero) {
      using T = decltype(zero);
      const T* operands[3] = {};
      for (std::size_t i = 0; i < compute.sources.size(); ++i) {
        operands[i] = gather<T>(warp, compute, i, elements);
      }
      evaluate({compute.function, type, where, true, compute.by_instructions}, count, operands,
               to.row<T>(0));
    });
  }
}

void execute_compute(Launch& launch, Warp& warp, const Instruction& instruction) {
  const Compute& compute = launch.kernel.computes[instruction.detail];
  const RegisterInfo& info = launch.kernel.registers[compute.destination];
  for (const RegisterSource& source : compute.sources) {
    if (source.array < 0) continue;
    read_registers(launch, warp, instruction, source.array, source.index.data(),
                   source.index.size());
  }
  write_all(launch, warp, instruction, compute.destination);
  if (!instruction.valued) return;
  compute_all(warp, compute, info.dtype, info.elements, instruction.where());
}

void fill(Launch& launch, Warp& warp, const Instruction& instruction) {
  write_all(launch, warp, instruction, instruction.object);
  if (!instruction.valued) return;
  const RegisterInfo& info = launch.kernel.registers[instruction.object];
  with_held_type(info.dtype, [&](auto zero) {
    using T = decltype(zero);
    T* to = warp.arrays[instruction.object].row<T>(0);
    std::fill(to, to + info.elements * kWidth, held<T>(warp.scalars[instruction.a]));
  });
}

void copy(Launch& launch, Warp& warp, const Instruction& instruction) {
  read_all(launch, warp, instruction, instruction.detail);
  write_all(launch, warp, instruction, instruction.object);
  if (!instruction.valued) return;
  const RegisterInfo& info = launch.kernel.registers[instruction.object];
  with_held_type(info.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* from = warp.arrays[instruction.detail].row<T>(static_cast<int>(instruction.value));
    std::copy(from, from + info.elements * kWidth, warp.arrays[instruction.object].row<T>(0));
  });
}

void coordinate(Launch& launch, Warp& warp, const Instruction& instruction) {
  write_all(launch, warp, instruction, instruction.object);
  if (!instruction.valued) return;
  const Spread& spread = launch.kernel.spreads[instruction.detail];
  const RegisterInfo& info = launch.kernel.registers[instruction.object];
  const int position = warp.index - launch.kernel.roles[warp.role].first_warp;
  const int axis = static_cast<int>(instruction.value);
  with_held_type(info.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (int i = 0; i < info.elements; ++i) {
      T* to = warp.arrays[instruction.object].row<T>(i);
      for (int l = 0; l < kLanes; ++l) to[l] = static_cast<T>(spread.at(axis, i, l, position));
    }
  });
}

void reduce_registers(Launch& launch, Warp& warp, const Instruction& instruction) {
  const RegisterReduction& reduction = launch.kernel.reductions[instruction.detail];
  const RegisterInfo& info = launch.kernel.registers[reduction.destination];
  read_all(launch, warp, instruction, reduction.source);
  write_all(launch, warp, instruction, reduction.destination);
  if (!instruction.valued) return;
  // Narrow sums are rounded once, when they are complete.
  const DType type = is_float(info.dtype) ? DType::f32 : info.dtype;
  const Elementwise function{reduction.function, type, instruction.where()};
  with_held_type(info.dtype, [&](auto zero) {
    using T = decltype(zero);
    RegisterArray& to = warp.arrays[reduction.destination];
    RegisterArray& from = warp.arrays[reduction.source];
    std::vector<const T*> rows;
    for (int element = 0; element < info.elements; ++element) {
      rows.clear();
      for (const int source : reduction.sources[element]) rows.push_back(from.row<T>(source));
      if (rows.empty()) continue;
      T* const target = to.row<T>(element);
      std::copy_n(rows[0], kWidth, target);
      fold(function, rows.size() - 1, kWidth, rows.data() + 1, target);
    }
    if constexpr (std::is_same_v<T, float>)
      round_to(info.dtype, to.row<float>(0), info.elements * kWidth);
  });
}

void reduce_lanes(Launch& launch, Warp& warp, const Instruction& instruction) {
  const LaneReduction& reduction = launch.kernel.lane_reductions[instruction.detail];
  const RegisterInfo& info = launch.kernel.registers[reduction.array];
  read_all(launch, warp, instruction, reduction.array);
  write_all(launch, warp, instruction, reduction.array);
  if (!instruction.valued) return;
  const Elementwise function{reduction.function, info.dtype, instruction.where()};
  with_held_type(info.dtype, [&](auto zero) {
    using T = decltype(zero);
    T shuffled[kWidth];
    for (int i = 0; i < info.elements; ++i) {
      T* row = warp.arrays[reduction.array].row<T>(i);
      for (const int mask : reduction.masks) {
        for (int l = 0; l < kLanes; ++l) shuffled[l] = row[(l ^ mask) % kLanes];
        const T* const rows[] = {row, shuffled};
        evaluate(function, kWidth, rows, row);
      }
    }
  });
}

void any_register(Launch& launch, Warp& warp, const Instruction& instruction) {
  read_all(launch, warp, instruction, instruction.object);
  Scalar& result = warp.scalars[instruction.b];
  if (instruction.valued) {
    const RegisterInfo& info = launch.kernel.registers[instruction.object];
    const std::uint8_t* truth = warp.arrays[instruction.object].row<std::uint8_t>(0);
    result.i = std::any_of(truth, truth + info.elements * kWidth, [](auto t) { return t != 0; });
  } else {
    result.i = static_cast<std::int64_t>(launch.random.below(2));
  }
  result.f = static_cast<double>(result.i);
}

template <typename T>
void set_scalar(Scalar& to, T value) {
  to.f = static_cast<double>(value);
  if constexpr (!std::is_same_v<T, float>) to.i = static_cast<std::int64_t>(value);
}

}  // namespace

void read_registers(Launch& launch, Warp& warp, const Instruction& instruction, int array,
                    const int* elements, std::size_t count) {
  if (!use(warp, array)) return;
  check_loading(launch, warp, instruction, array, "read");
  const RegisterArray& state = warp.arrays[array];
  if (state.in_flight > 0) {
    check_flight(launch, warp, instruction, array, elements, count, "read");
  }
  if (state.unwritten == 0) return;
  for (std::size_t i = 0; i < count; ++i)
    check_written(launch, warp, instruction, array, elements[i], 1);
}

void check_written(Launch& launch, Warp& warp, const Instruction& instruction, int array, int first,
                   int count) {
  if (warp.arrays[array].unwritten == 0) return;
  const std::vector<std::uint8_t>& written = warp.arrays[array].written;
  const auto at = std::find(written.begin() + first, written.begin() + first + count, 0);
  if (at == written.begin() + first + count) return;
  const RegisterInfo& info = launch.kernel.registers[array];
  launch.log.add(
      {"uninitialised", instruction.where(), info.where,
       fmt::format("uninitialised: element {} of register array {} has not been written\n{}",
                   at - written.begin(), info.name, launch.access("read", instruction, warp)),
       fmt::format("a write of {} before it", info.name)});
}

void write_registers(Launch& launch, Warp& warp, const Instruction& instruction, int array,
                     const int* elements, std::size_t count) {
  if (!use(warp, array)) return;
  check_loading(launch, warp, instruction, array, "write");
  RegisterArray& state = warp.arrays[array];
  if (state.in_flight > 0) {
    check_flight(launch, warp, instruction, array, elements, count, "write");
  }
  if (state.unwritten == 0) return;
  for (std::size_t i = 0; i < count; ++i) {
    std::uint8_t& written = state.written[elements[i]];
    state.unwritten -= !written;
    written = 1;
  }
}

void read_all(Launch& launch, Warp& warp, const Instruction& instruction, int array) {
  if (!use(warp, array)) return;
  const std::size_t count = launch.kernel.registers[array].elements;
  read_registers(launch, warp, instruction, array, all_elements(count), count);
}

void write_all(Launch& launch, Warp& warp, const Instruction& instruction, int array) {
  if (!use(warp, array)) return;
  const std::size_t count = launch.kernel.registers[array].elements;
  write_registers(launch, warp, instruction, array, all_elements(count), count);
}

void declare_registers(Launch& launch, Warp& warp, const Instruction& instruction) {
  RegisterArray& array = warp.arrays[instruction.object];
  const RegisterInfo& info = launch.kernel.registers[instruction.object];
  if (array.in_flight > 0) {
    check_flight(launch, warp, instruction, instruction.object, all_elements(info.elements),
                 info.elements, "write");
  }
  if (launch.provenance) launch.provenance->forget(warp, instruction.object);
  array.declare(info.elements);
}

void execute_registers(Launch& launch, Warp& warp, const Instruction& instruction) {
  if (launch.provenance) launch.provenance->registers(warp, instruction);
  switch (ir::as<ir::ComputationOp>(instruction.op)) {
    case ir::ComputationOp::fill:
      return fill(launch, warp, instruction);
    case ir::ComputationOp::copy:
      return copy(launch, warp, instruction);
    case ir::ComputationOp::compute:
      return execute_compute(launch, warp, instruction);
    case ir::ComputationOp::coordinate:
      return coordinate(launch, warp, instruction);
    case ir::ComputationOp::reduce_registers:
      return reduce_registers(launch, warp, instruction);
    case ir::ComputationOp::reduce_lanes:
      return reduce_lanes(launch, warp, instruction);
    case ir::ComputationOp::any_register:
      return any_register(launch, warp, instruction);
  }
}

void execute_scalar(Launch& launch, Warp& warp, const Instruction& instruction) {
  const ScalarOperation& operation = launch.kernel.scalar_operations[instruction.detail];
  const Elementwise function{operation.function, operation.type, instruction.where(), false,
                             operation.by_instructions};
  const auto operand = [&](std::size_t i) -> const Scalar& {
    return warp.scalars[operation.operands[i]];
  };
  Scalar& result = warp.scalars[operation.result];
  if (operation.function == Op::select) {
    result = operand(0).i ? operand(1) : operand(2);
  } else if (operation.function == Op::cast) {
    with_held_type(operation.operand_type, [&](auto from_zero) {
      const auto value = held<decltype(from_zero)>(operand(0));
      with_held_type(operation.type, [&](auto to_zero) {
        decltype(to_zero) converted{};
        convert(function, 1, &value, &converted);
        set_scalar(result, converted);
      });
    });
  } else if (ir::info(operation.function).is_comparison()) {
    with_held_type(operation.operand_type, [&](auto zero) {
      using T = decltype(zero);
      const T a = held<T>(operand(0)), b = held<T>(operand(1));
      std::uint8_t truth = 0;
      compare<T>({operation.function, operation.operand_type, instruction.where()}, 1, &a, &b,
                 &truth);
      set_scalar(result, truth);
    });
  } else {
    with_held_type(operation.type, [&](auto zero) {
      using T = decltype(zero);
      T values[3] = {}, value{};
      for (std::size_t i = 0; i < operation.operands.size(); ++i) values[i] = held<T>(operand(i));
      const T* const rows[] = {values, values + 1, values + 2};
      evaluate(function, 1, rows, &value);
      set_scalar(result, value);
    });
  }
}

}  // namespace tilewright::simulator
