#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "simulator/machine/instruction_descriptor.h"
#include "simulator/machine/matrix_reader.h"

// tcgen05.mma: the descriptors say what is multiplied, and where operands in shared memory lie.
namespace tilewright::simulator {
namespace {

void refuse(Launch& launch, const Warp& warp, const Instruction& instruction,
            const std::string& what) {
  launch.log.add({"tcgen05",
                  instruction.where(),
                  {},
                  fmt::format("tcgen05: {}\n{}", what, launch.access("issue", instruction, warp)),
                  {}});
}

InstructionDescriptor descriptor_of(const TensorProduct& product) {
  return decode_instruction(product.instruction, size_of(product.dtype));
}

bool check_descriptors(Launch& launch, const Warp& warp, const Instruction& instruction,
                       const TensorProduct& product) {
  const InstructionDescriptor decoded = descriptor_of(product);
  if (!decoded.problem.empty()) {
    refuse(
        launch, warp, instruction,
        fmt::format("the instruction descriptor {:#x}: {}", product.instruction, decoded.problem));
    return false;
  }
  for (const bool is_b : {false, true}) {
    if (!is_b && product.a_memory >= 0) continue;
    const MatrixOperand& operand = is_b ? product.b : product.a;
    const std::string problem = problem_of_descriptor(operand.descriptor);
    if (problem.empty()) continue;
    refuse(launch, warp, instruction,
           fmt::format("descriptor_{} {:#x}: {}", is_b ? 'b' : 'a', operand.descriptor, problem));
    return false;
  }
  return true;
}

// Row i of a result of 64 rows is in the first 16 lanes of a window.
int lane_of(int row, int m) { return m == 128 ? row : row % 16 + row / 16 * 32; }

SharedMatrix matrix_of(const MatrixOperand& operand, std::int64_t start, bool is_mn_major) {
  MatrixOperand described = operand;
  described.transposed = is_mn_major;
  return decode_descriptor(described, start);
}

// The access with which the unit reads and writes: over behind the next commit.
Access access_of(Launch& launch, const Warp& warp, const Instruction& instruction, bool write,
                 std::int64_t address) {
  const int agent =
      launch.order.agents().at(warp.cta->cluster_rank(), Agents::Kind::tensor_products, warp.index);
  Access access = launch.order.by_unit(warp, instruction, {write, /*async=*/true, false}, agent,
                                       warp.tensor_commits + 1);
  access.accumulator = static_cast<std::uint32_t>(address);
  return access;
}

// Tells that an operand in shared memory is read from now until a commit is over.
void read_shared(Launch& launch, const Warp& warp, const Instruction& instruction,
                 const MatrixOperand& operand, const SharedMatrix& matrix, int rows, int k,
                 int element_bytes) {
  if (!launch.order.enabled()) return;
  ByteSet touched;
  const int per_chunk = 16 / element_bytes;
  const Allocation& allocation = launch.kernel.allocations[operand.allocation];
  const auto add = [&](std::int64_t address) {
    const bool inside =
        address >= allocation.offset && address + 16 <= allocation.offset + allocation.bytes();
    if (inside) touched.add(static_cast<std::uint64_t>(address), 16);
  };
  if (matrix.transposed) {
    for (int i = 0; i < k; ++i) {
      for (int mn = 0; mn < rows; mn += per_chunk) add(matrix.mn_major(mn / per_chunk, i));
    }
  } else {
    for (int mn = 0; mn < rows; ++mn) {
      for (int i = 0; i < k; i += per_chunk) add(matrix.k_major(mn, i / per_chunk));
    }
  }
  launch.order.shared(warp, access_of(launch, warp, instruction, false, 0), *warp.cta,
                      operand.allocation, touched);
}

void touch_tensor(Launch& launch, const Warp& warp, const Instruction& instruction, int memory,
                  std::int64_t address, int m, int columns, bool write, std::int64_t accumulator) {
  if (!find_columns(launch, warp, instruction, memory, address, columns)) return;
  const TensorAddress at(address);
  const bool whole = m == TensorMemory::kLanes;
  const bool upper = !whole && at.lane == TensorMemory::kHalf;
  if (at.lane != 0 && !upper) {
    return refuse(launch, warp, instruction,
                  fmt::format("rows from lane {} on of {}; a product of one CTA begins at lane 0{}",
                              at.lane, launch.kernel.tensor_memories[memory].name,
                              whole ? "" : ", or of 64 rows at lane 16"));
  }
  if (at.lane != TensorAddress(accumulator).lane) {
    return refuse(launch, warp, instruction,
                  fmt::format("a from lane {} on and the result from lane {} on", at.lane,
                              TensorAddress(accumulator).lane));
  }
  ByteSet touched;
  if (whole) TensorMemory::add(touched, at.column, columns, 0, TensorMemory::kLanes);
  for (int window = 0; !whole && window < TensorMemory::kWindows; ++window) {
    TensorMemory::add(touched, at.column, columns, window * TensorMemory::kWindow + at.lane,
                      TensorMemory::kHalf);
  }
  launch.order.tensor(warp, access_of(launch, warp, instruction, write, accumulator), *warp.cta,
                      touched);
}

int columns_of_a(const TensorProduct& product) { return product.k * size_of(product.dtype) / 4; }

// [k][rows]
std::vector<float> read_operand(Launch& launch, Warp& warp, const Instruction& instruction,
                                const MatrixOperand& operand, const SharedMatrix& matrix,
                                DType dtype, int rows, int k) {
  std::vector<float> values(static_cast<std::size_t>(rows) * k);
  MatrixReader reader(launch, warp, instruction, operand);
  read_matrix(dtype, reader, matrix, 0, rows, k, [&](int mn, int i, const float* of) {
    std::copy_n(of, 8, values.data() + static_cast<std::size_t>(i) * rows + mn);
  });
  return values;
}

float element_of(std::uint32_t bits, DType dtype, int element) {
  const std::uint32_t part = bits >> 8 * size_of(dtype) * element;
  if (dtype == DType::bf16) return bf16_to_float(static_cast<std::uint16_t>(part));
  if (dtype == DType::f16) return f16_to_float(static_cast<std::uint16_t>(part));
  return f8e4m3_to_float(static_cast<std::uint8_t>(part));
}

void report_unwritten(Launch& launch, const Warp& warp, const Instruction& instruction, int memory,
                      const char* what) {
  const TensorAllocation& named = launch.kernel.tensor_memories[memory];
  launch.log.add({"uninitialised", instruction.where(), named.where,
                  fmt::format("uninitialised: tensor memory {}: nothing has written {}\n{}",
                              named.name, what, launch.access("read", instruction, warp)),
                  "a first product that does not accumulate"});
}

std::vector<float> read_a(Launch& launch, Warp& warp, const TensorWork& work,
                          const TensorProduct& product, const InstructionDescriptor& shape) {
  if (product.a_memory < 0) {
    return read_operand(launch, warp, *work.instruction, product.a,
                        matrix_of(product.a, work.a, shape.a_is_mn_major), shape.a, shape.m,
                        product.k);
  }
  std::vector<float> values(static_cast<std::size_t>(shape.m) * product.k);
  const TensorMemory& tensor = *warp.cta->tensor;
  const TensorAddress at(work.a_address);
  const int packed = 4 / size_of(shape.a);
  bool written = true;
  for (int i = 0; i < product.k; ++i) {
    for (int row = 0; row < shape.m; ++row) {
      const int lane = at.lane + lane_of(row, shape.m), column = at.column + i / packed;
      written = written && tensor.is_written(lane, column);
      values[static_cast<std::size_t>(i) * shape.m + row] =
          element_of(tensor.bits(lane, column), shape.a, i % packed);
    }
  }
  if (!written) report_unwritten(launch, warp, *work.instruction, product.a_memory, "all of a");
  return values;
}

void multiply(Launch& launch, Warp& warp, const TensorWork& work) {
  const TensorProduct& product = launch.kernel.tensor_products[work.instruction->detail];
  const InstructionDescriptor shape = descriptor_of(product);
  TensorMemory& tensor = *warp.cta->tensor;
  const TensorAddress at(work.address);
  if (!tensor.find(at.column, shape.n)) return;  // given back meanwhile, which was a fault
  const std::vector<float> a = read_a(launch, warp, work, product, shape);
  const std::vector<float> b =
      read_operand(launch, warp, *work.instruction, product.b,
                   matrix_of(product.b, work.b, shape.b_is_mn_major), shape.b, shape.n, product.k);
  bool written = true;
  std::vector<float> sums(shape.m);
  for (int column = 0; column < shape.n; ++column) {
    for (int row = 0; row < shape.m; ++row) {
      const int lane = at.lane + lane_of(row, shape.m);
      written = written && (!work.accumulate || tensor.is_written(lane, at.column + column));
      sums[row] = work.accumulate ? std::bit_cast<float>(tensor.bits(lane, at.column + column)) : 0;
    }
    for (int i = 0; i < product.k; ++i) {
      const float factor = b[static_cast<std::size_t>(i) * shape.n + column];
      const float* const rows = a.data() + static_cast<std::size_t>(i) * shape.m;
      for (int row = 0; row < shape.m; ++row) sums[row] += rows[row] * factor;
    }
    for (int row = 0; row < shape.m; ++row) {
      tensor.write(at.lane + lane_of(row, shape.m), at.column + column,
                   std::bit_cast<std::uint32_t>(sums[row]));
    }
  }
  if (!written) {
    report_unwritten(launch, warp, *work.instruction, product.memory, "all that it adds to");
  }
}

void enqueue(Launch& launch, Warp& warp, TensorWork work) {
  work.sequence = ++warp.tensor_sequence;
  warp.tensor_work.push_back(std::move(work));
  Event event;
  event.kind = Event::Kind::tensor_work;
  event.issuer = &warp;
  event.instruction = warp.tensor_work.back().instruction;
  event.sequence = warp.tensor_sequence;
  launch.add_event(std::move(event));
}

}  // namespace

void issue_tensor_product(Launch& launch, Warp& warp, const Instruction& instruction) {
  const TensorProduct& product = launch.kernel.tensor_products[instruction.detail];
  if (!check_descriptors(launch, warp, instruction, product)) return;
  const InstructionDescriptor shape = descriptor_of(product);
  const auto start = [&](const MatrixOperand& operand) {
    return launch.kernel.allocations[operand.allocation].offset + warp.integer(operand.offset) +
           operand.step;
  };
  TensorWork work;
  work.instruction = &instruction;
  work.address = warp.integer(product.address);
  work.accumulate = warp.integer(product.accumulate) != 0;
  work.b = start(product.b);
  const int bytes = size_of(product.dtype);
  read_shared(launch, warp, instruction, product.b,
              matrix_of(product.b, work.b, shape.b_is_mn_major), shape.n, product.k, bytes);
  if (product.a_memory < 0) {
    work.a = start(product.a);
    read_shared(launch, warp, instruction, product.a,
                matrix_of(product.a, work.a, shape.a_is_mn_major), shape.m, product.k, bytes);
  } else {
    work.a_address = warp.integer(product.a_address);
    touch_tensor(launch, warp, instruction, product.a_memory, work.a_address, shape.m,
                 columns_of_a(product), /*write=*/false, work.address);
  }
  touch_tensor(launch, warp, instruction, product.memory, work.address, shape.m, shape.n,
               /*write=*/true, work.address);
  warp.uncommitted = &instruction;
  enqueue(launch, warp, std::move(work));
}

void commit_tensor_products(Launch& launch, Warp& warp, const Instruction& instruction) {
  TensorWork work;
  work.instruction = &instruction;
  work.barrier =
      find_barrier(launch, warp, instruction, instruction.object, warp.integer(instruction.a));
  if (work.barrier < 0 || !usable(launch, warp, instruction, *warp.cta, work.barrier)) return;
  work.commits = ++warp.tensor_commits;
  work.known = warp.view(instruction.elected);
  warp.uncommitted = nullptr;
  enqueue(launch, warp, std::move(work));
}

void run_tensor_work(Launch& launch, Warp& warp, std::uint64_t last) {
  while (!warp.tensor_work.empty() && warp.tensor_work.front().sequence <= last) {
    const TensorWork work = std::move(warp.tensor_work.front());
    warp.tensor_work.pop_front();
    if (work.barrier >= 0) {
      arrive_by_commit(launch, warp, work);
    } else {
      multiply(launch, warp, work);
    }
  }
}

}  // namespace tilewright::simulator
