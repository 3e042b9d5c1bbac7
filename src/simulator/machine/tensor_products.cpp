#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "simulator/machine/instruction_descriptor.h"
#include "simulator/machine/matrix_reader.h"
#include "simulator/vector_clones.h"

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

int ctas_of(const Launch& launch) { return launch.kernel.cta_pairs ? 2 : 1; }

InstructionDescriptor descriptor_of(const Launch& launch, const TensorProduct& product) {
  return decode_instruction(product.instruction, size_of(product.dtype), ctas_of(launch));
}

// What one of the CTAs that multiply has: its rows of a and of the result, and its columns of b.
struct Share {
  int m = 0, n = 0;
  // Of 64 rows in each CTA of a pair the second half of the result's columns is in the second half
  // of the lanes.
  bool halves_columns = false;
  Share(const Launch& launch, const InstructionDescriptor& shape)
      : m(shape.m / ctas_of(launch)),
        n(shape.n / ctas_of(launch)),
        halves_columns(ctas_of(launch) == 2 && shape.m == TensorMemory::kLanes) {}
  // Of the result in tensor memory: its lanes as touch_tensor takes them, and its columns.
  int lanes() const { return halves_columns ? TensorMemory::kLanes : m; }
  int columns(const InstructionDescriptor& shape) const {
    return halves_columns ? shape.n / 2 : shape.n;
  }
};

// The CTA that issues a product, and its peer where pairs multiply.
std::vector<Cta*> multiplying(const Launch& launch, const Warp& warp) {
  if (!launch.kernel.cta_pairs) return {warp.cta};
  return {warp.cta, &warp.cta->peer()};
}

bool check_descriptors(Launch& launch, const Warp& warp, const Instruction& instruction,
                       const TensorProduct& product) {
  const InstructionDescriptor decoded = descriptor_of(launch, product);
  if (!decoded.problem.empty()) {
    refuse(
        launch, warp, instruction,
        fmt::format("the instruction descriptor {:#x}: {}", product.instruction, decoded.problem));
    return false;
  }
  if (product.a_memory >= 0 && Share(launch, decoded).halves_columns) {
    refuse(launch, warp, instruction,
           fmt::format("a of a pair in tensor memory, with m = {}: it would have to be there twice",
                       decoded.m));
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

// Whether the pair can multiply; else a fault.
bool check_pair(Launch& launch, const Warp& warp, const Instruction& instruction) {
  if (!launch.kernel.cta_pairs) return true;
  if (!warp.cta->is_first()) {
    refuse(launch, warp, instruction,
           fmt::format("issued by CTA {}, the second one of its pair", warp.cta->index));
    return false;
  }
  if (warp.cta->peer().live > 0) return true;
  launch.log.add({"exit",
                  instruction.where(),
                  {},
                  fmt::format("exit: a product of a pair of CTAs, of which CTA {} has ended\n{}",
                              warp.cta->peer().index, launch.access("issue", instruction, warp)),
                  "cluster_sync before the kernel ends"});
  return false;
}

// The peer's memory is used until a commit is over.
void use_peer(Launch& launch, const Warp& warp, const Access& access) {
  if (!launch.kernel.cta_pairs) return;
  ForeignUse use;
  use.access = access;
  use.verb = "read";
  warp.cta->peer().foreign_uses.add(std::move(use));
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

// Calls `each` with the addresses of an operand's chunks of 16 bytes, as read_matrix reads them.
template <typename Each>
void for_each_chunk(const SharedMatrix& matrix, int rows, int k, int element_bytes,
                    const Each& each) {
  const int per_chunk = 16 / element_bytes;
  if (matrix.transposed) {
    for (int i = 0; i < k; ++i) {
      for (int mn = 0; mn < rows; mn += per_chunk) each(matrix.mn_major(mn / per_chunk, i));
    }
    return;
  }
  for (int mn = 0; mn < rows; mn += 8) {
    for (int i = 0; i < k; i += per_chunk) {
      for (int row = mn; row < std::min(mn + 8, rows); ++row) {
        each(matrix.k_major(row, i / per_chunk));
      }
    }
  }
}

// Tells that an operand in shared memory is read from now until a commit is over.
void read_shared(Launch& launch, const Warp& warp, Cta& cta, const Instruction& instruction,
                 const MatrixOperand& operand, const SharedMatrix& matrix, int rows, int k,
                 int element_bytes) {
  if (!launch.order.enabled()) return;
  ByteSet touched;
  const Allocation& allocation = launch.kernel.allocations[operand.allocation];
  for_each_chunk(matrix, rows, k, element_bytes, [&](std::int64_t address) {
    const bool inside =
        address >= allocation.offset && address + 16 <= allocation.offset + allocation.bytes();
    if (inside) touched.add(static_cast<std::uint64_t>(address), 16);
  });
  launch.order.shared(warp, access_of(launch, warp, instruction, false, 0), cta, operand.allocation,
                      touched);
}

void touch_tensor(Launch& launch, const Warp& warp, Cta& cta, const Instruction& instruction,
                  int memory, std::int64_t address, int m, int columns, bool write,
                  std::int64_t accumulator) {
  if (!find_columns(launch, warp, instruction, cta, memory, address, columns)) return;
  const TensorAddress at(address);
  const bool whole = m == TensorMemory::kLanes;
  const bool upper = !whole && at.lane == TensorMemory::kHalf;
  if (at.lane != 0 && !upper) {
    return refuse(launch, warp, instruction,
                  fmt::format("rows from lane {} on of {}; a product begins at lane 0{}", at.lane,
                              launch.kernel.tensor_memories[memory].name,
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
  launch.order.tensor(warp, access_of(launch, warp, instruction, write, accumulator), cta, touched);
}

// Of a product's operand or result.
TensorMemory::Part part_at(std::int64_t address, int m, int columns) {
  const TensorAddress at(address);
  return {at.column, columns,
          m == TensorMemory::kLanes ? TensorMemory::Part::kBoth : at.lane / TensorMemory::kHalf};
}

int columns_of_a(const TensorProduct& product) { return product.k * size_of(product.dtype) / 4; }

// [k][rows]. Without values it is looked at alone.
std::vector<float> read_operand(Launch& launch, Warp& warp, const Cta& cta,
                                const Instruction& instruction, const MatrixOperand& operand,
                                const SharedMatrix& matrix, DType dtype, int rows, int k) {
  std::vector<float> values(static_cast<std::size_t>(rows) * k);
  MatrixReader reader(launch, warp, cta, instruction, operand);
  if (!launch.kernel.valued) {
    for_each_chunk(matrix, rows, k, size_of(dtype),
                   [&](std::int64_t address) { reader.chunk(address); });
    return values;
  }
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

std::vector<float> read_a(Launch& launch, Warp& warp, const Cta& cta, const TensorWork& work,
                          const TensorProduct& product, const InstructionDescriptor& shape) {
  const int rows = Share(launch, shape).m;
  if (product.a_memory < 0) {
    return read_operand(launch, warp, cta, *work.instruction, product.a,
                        matrix_of(product.a, work.a, shape.a_is_mn_major), shape.a, rows,
                        product.k);
  }
  std::vector<float> values(static_cast<std::size_t>(rows) * product.k);
  const TensorMemory& tensor = *cta.tensor;
  const TensorAddress at(work.a_address);
  const int packed = 4 / size_of(shape.a);
  bool written = true;
  for (int i = 0; i < product.k; ++i) {
    const int column = at.column + i / packed;
    for (int row = 0; row < rows; row += TensorMemory::kHalf) {
      const int first = at.lane + lane_of(row, rows);
      written = written && tensor.is_written(first, column, TensorMemory::kHalf);
      if (!launch.kernel.valued) continue;
      for (int lane = 0; lane < TensorMemory::kHalf; ++lane) {
        values[static_cast<std::size_t>(i) * rows + row + lane] =
            element_of(tensor.bits(first + lane, column), shape.a, i % packed);
      }
    }
  }
  if (!written) report_unwritten(launch, warp, *work.instruction, product.a_memory, "all of a");
  return values;
}

// All columns of b, [k][n]: of a pair each CTA has as many.
std::vector<float> read_b(Launch& launch, Warp& warp, const TensorWork& work,
                          const TensorProduct& product, const InstructionDescriptor& shape) {
  const int own = Share(launch, shape).n;
  std::vector<float> values(static_cast<std::size_t>(product.k) * shape.n);
  int first = 0;
  for (const Cta* cta : multiplying(launch, warp)) {
    const std::vector<float> part =
        read_operand(launch, warp, *cta, *work.instruction, product.b,
                     matrix_of(product.b, work.b, shape.b_is_mn_major), shape.b, own, product.k);
    for (int i = 0; i < product.k; ++i) {
      std::copy_n(part.data() + static_cast<std::size_t>(i) * own, own,
                  values.data() + static_cast<std::size_t>(i) * shape.n + first);
    }
    first += own;
  }
  return values;
}

// Adds to each row's sum its k products with the column's factors, one after the other. `rows` are
// a's, [k][m], where m is 64 or 128; `factors` begins in b's column, whose elements are `stride`
// apart.
TW_VECTOR_CLONES void add_column(int k, int m, const float* rows, const float* factors, int stride,
                                 float* sums) {
  constexpr int kRun = 64;  // of sums that stay in registers
  for (int first = 0; first < m; first += kRun) {
    float run[kRun];
    std::copy_n(sums + first, kRun, run);
    for (int i = 0; i < k; ++i) {
      const float factor = factors[static_cast<std::size_t>(i) * stride];
      const float* const row = rows + static_cast<std::size_t>(i) * m + first;
      for (int r = 0; r < kRun; ++r) run[r] += row[r] * factor;
    }
    std::copy_n(run, kRun, sums + first);
  }
}

// The CTA's rows.
void multiply(Launch& launch, Warp& warp, Cta& cta, const TensorWork& work,
              const std::vector<float>& b) {
  const TensorProduct& product = launch.kernel.tensor_products[work.instruction->detail];
  const InstructionDescriptor shape = descriptor_of(launch, product);
  TensorMemory& tensor = *cta.tensor;
  const TensorAddress at(work.address);
  const Share share(launch, shape);
  const int columns = share.columns(shape), m = share.m;
  if (!tensor.find(at.column, columns)) return;  // given back meanwhile, which was a fault
  // So is a lane that begins no half of a window.
  if (at.lane != 0 &&
      (at.lane != TensorMemory::kHalf || share.lanes() != TensorMemory::kHalf * 4)) {
    return;
  }
  if (product.a_memory >= 0 && TensorAddress(work.a_address).lane != at.lane) return;
  const std::vector<float> a = read_a(launch, warp, cta, work, product, shape);
  const bool whole = m == TensorMemory::kLanes, valued = launch.kernel.valued;
  bool written = true;
  std::vector<float> sums(m);
  // Of column n of the result.
  const auto column_of = [&](int n) { return at.column + n % columns; };
  const auto lane_at = [&](int row, int n) {
    return share.halves_columns ? row + n / columns * m : at.lane + lane_of(row, m);
  };
  const auto take_sums = [&](int n) {
    const int column = column_of(n);
    if (whole && work.accumulate) {
      written = written && tensor.is_written(column);
      return tensor.read(column, sums.data());
    }
    std::fill(sums.begin(), sums.end(), 0.0F);
    for (int row = 0; row < m && work.accumulate; row += TensorMemory::kHalf) {
      written = written && tensor.is_written(lane_at(row, n), column, TensorMemory::kHalf);
      tensor.read(lane_at(row, n), column, TensorMemory::kHalf, sums.data() + row);
    }
  };
  const auto put_sums = [&](int n) {
    const int column = column_of(n);
    if (whole) return tensor.write(column, sums.data());
    for (int row = 0; row < m; row += TensorMemory::kHalf) {
      tensor.write(lane_at(row, n), column, TensorMemory::kHalf, sums.data() + row);
    }
  };
  for (int n = 0; n < shape.n; ++n) {
    if (valued) {
      take_sums(n);
      add_column(product.k, m, a.data(), b.data() + n, shape.n, sums.data());
      put_sums(n);
      continue;
    }
    const int column = column_of(n);
    if (whole) {
      written = written && (!work.accumulate || tensor.is_written(column));
      tensor.mark_written(column);
      continue;
    }
    for (int row = 0; row < m; row += TensorMemory::kHalf) {
      const int lane = lane_at(row, n);
      written =
          written && (!work.accumulate || tensor.is_written(lane, column, TensorMemory::kHalf));
      tensor.mark_written(lane, column, TensorMemory::kHalf);
    }
  }
  if (!written) {
    report_unwritten(launch, warp, *work.instruction, product.memory, "all that it adds to");
  }
}

void multiply(Launch& launch, Warp& warp, const TensorWork& work) {
  const TensorProduct& product = launch.kernel.tensor_products[work.instruction->detail];
  const std::vector<float> b = read_b(launch, warp, work, product, descriptor_of(launch, product));
  for (Cta* cta : multiplying(launch, warp)) multiply(launch, warp, *cta, work, b);
}

// Of 32 rows each window gets all.
void copy_rows(Launch& launch, Warp& warp, const TensorWork& work, const TensorCopy& copy) {
  MatrixReader reader(launch, warp, *warp.cta, *work.instruction, copy.from);
  const SharedMatrix matrix = matrix_of(copy.from, work.b, /*is_mn_major=*/false);
  TensorMemory& tensor = *warp.cta->tensor;
  const TensorAddress at(work.address);
  constexpr int kChunk = 16, kWords = kChunk / 4;
  for (int lane = 0; lane < TensorMemory::kLanes; ++lane) {
    for (int chunk = 0; chunk * kChunk < copy.row_bytes; ++chunk) {
      const std::byte* const from = reader.chunk(matrix.k_major(lane % copy.rows, chunk));
      for (int i = 0; i < kWords; ++i) {
        std::uint32_t bits = 0;
        if (from) std::memcpy(&bits, from + 4 * i, 4);
        tensor.write(lane, at.column + kWords * chunk + i, bits);
      }
    }
  }
}

// Each lane but the first gets what the one before it has.
void shift_lanes(Launch& launch, Warp& warp, const TensorWork& work, const TensorCopy& copy) {
  TensorMemory& tensor = *warp.cta->tensor;
  const TensorAddress at(work.address);
  bool written = true;
  for (int column = at.column; column < at.column + copy.columns(); ++column) {
    for (int lane = TensorMemory::kLanes - 1; lane > 0; --lane) {
      written = written && tensor.is_written(lane - 1, column);
      tensor.write(lane, column, tensor.bits(lane - 1, column));
    }
  }
  if (!written)
    report_unwritten(launch, warp, *work.instruction, copy.memory, "all that it shifts");
}

void copy(Launch& launch, Warp& warp, const TensorWork& work) {
  const TensorCopy& copy = launch.kernel.tensor_copies[work.instruction->detail];
  const TensorAddress at(work.address);
  if (!warp.cta->tensor->find(at.column, copy.columns())) return;  // given back: a fault
  return copy.rows == 0 ? shift_lanes(launch, warp, work, copy)
                        : copy_rows(launch, warp, work, copy);
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
  if (!check_descriptors(launch, warp, instruction, product) ||
      !check_pair(launch, warp, instruction)) {
    return;
  }
  const InstructionDescriptor shape = descriptor_of(launch, product);
  const auto start = [&](const MatrixOperand& operand) {
    return launch.kernel.allocations[operand.allocation].offset + warp.integer(operand.offset) +
           operand.step;
  };
  TensorWork work;
  work.instruction = &instruction;
  work.address = warp.integer(product.address);
  work.accumulate = warp.integer(product.accumulate) != 0;
  work.b = start(product.b);
  if (product.a_memory < 0) work.a = start(product.a);
  if (product.a_memory >= 0) work.a_address = warp.integer(product.a_address);
  const int bytes = size_of(product.dtype);
  const Share share(launch, shape);
  for (Cta* cta : multiplying(launch, warp)) {
    read_shared(launch, warp, *cta, instruction, product.b,
                matrix_of(product.b, work.b, shape.b_is_mn_major), share.n, product.k, bytes);
    if (product.a_memory < 0) {
      read_shared(launch, warp, *cta, instruction, product.a,
                  matrix_of(product.a, work.a, shape.a_is_mn_major), share.m, product.k, bytes);
    } else {
      touch_tensor(launch, warp, *cta, instruction, product.a_memory, work.a_address, share.m,
                   columns_of_a(product), /*write=*/false, work.address);
      note_read(launch, *cta, part_at(work.a_address, share.m, columns_of_a(product)));
    }
    touch_tensor(launch, warp, *cta, instruction, product.memory, work.address, share.lanes(),
                 share.columns(shape), /*write=*/true, work.address);
    const auto part = part_at(work.address, share.lanes(), share.columns(shape));
    if (!work.accumulate) replace_results(launch, warp, instruction, *cta, part);
    const Access by = access_of(launch, warp, instruction, true, work.address);
    cta->tensor->leave({part, by}, work.accumulate);
  }
  use_peer(launch, warp, access_of(launch, warp, instruction, false, 0));
  warp.uncommitted = &instruction;
  enqueue(launch, warp, std::move(work));
}

void issue_tensor_copy(Launch& launch, Warp& warp, const Instruction& instruction) {
  const TensorCopy& copy = launch.kernel.tensor_copies[instruction.detail];
  TensorWork work;
  work.instruction = &instruction;
  work.address = warp.integer(copy.address);
  if (copy.rows > 0) {
    const std::string problem = problem_of_descriptor(copy.from.descriptor);
    if (!problem.empty()) {
      return refuse(launch, warp, instruction,
                    fmt::format("descriptor_a {:#x}: {}", copy.from.descriptor, problem));
    }
    work.b = launch.kernel.allocations[copy.from.allocation].offset +
             warp.integer(copy.from.offset) + copy.from.step;
    read_shared(launch, warp, *warp.cta, instruction, copy.from,
                matrix_of(copy.from, work.b, /*is_mn_major=*/false), copy.rows, copy.row_bytes, 1);
  }
  touch_tensor(launch, warp, *warp.cta, instruction, copy.memory, work.address,
               TensorMemory::kLanes, copy.columns(), /*write=*/true, work.address);
  const auto part = part_at(work.address, TensorMemory::kLanes, copy.columns());
  if (copy.rows > 0) replace_results(launch, warp, instruction, *warp.cta, part);
  warp.uncommitted = &instruction;
  enqueue(launch, warp, std::move(work));
}

namespace {

// The CTAs of the cluster on whose barriers a commit arrives, a bit each.
std::uint64_t receivers_of(const Warp& warp, const Instruction& commit) {
  const auto rank = static_cast<int>(warp.cta->cluster_rank());
  if (commit.value == 0) return std::uint64_t{1} << rank;
  const auto mask = static_cast<std::uint64_t>(commit.value);
  return commit.detail == 0 ? mask : mask << rank / commit.detail * commit.detail;
}

// Whether a commit may arrive at the CTA's barrier.
bool reaches(Launch& launch, const Warp& warp, const Instruction& instruction, Cta& cta,
             int barrier) {
  if (cta.live == 0) {
    launch.log.add(
        {"exit", instruction.where(), launch.barrier_array(barrier).where,
         fmt::format("exit: {} of CTA {}, which has ended\n{}", launch.barrier_name(barrier),
                     cta.index, launch.access("arrive", instruction, warp)),
         "cluster_sync before the kernel ends"});
    return false;
  }
  return usable(launch, warp, instruction, cta, barrier);
}

}  // namespace

void commit_tensor_products(Launch& launch, Warp& warp, const Instruction& instruction) {
  TensorWork work;
  work.instruction = &instruction;
  work.barrier =
      find_barrier(launch, warp, instruction, instruction.object, warp.integer(instruction.a));
  if (work.barrier < 0) return;
  const std::uint64_t receivers = receivers_of(warp, instruction);
  for (const auto& cta : warp.cta->cluster->ctas) {
    if (!(receivers >> cta->cluster_rank() & 1)) continue;
    if (!reaches(launch, warp, instruction, *cta, work.barrier)) continue;
    work.receivers |= std::uint64_t{1} << cta->cluster_rank();
    if (cta.get() == warp.cta) continue;
    ForeignUse use;
    use.access = launch.order.by_threads(warp, instruction, {});
    use.verb = "arrive";
    use.barrier = launch.order.agents().at(cta->cluster_rank(), Agents::Kind::phases, work.barrier);
    use.phase = static_cast<Epoch>(cta->barriers[work.barrier].phase + 1);
    use.by_access = false;
    cta->foreign_uses.add(std::move(use));
  }
  if (work.receivers == 0) return;
  work.commits = ++warp.tensor_commits;
  work.known = warp.view(instruction.elected);
  warp.uncommitted = nullptr;
  enqueue(launch, warp, std::move(work));
}

void run_tensor_work(Launch& launch, Warp& warp, std::uint64_t last) {
  while (!warp.tensor_work.empty() && warp.tensor_work.front().sequence <= last) {
    const TensorWork work = std::move(warp.tensor_work.front());
    warp.tensor_work.pop_front();
    if (work.receivers == 0) {
      work.instruction->code == Code::tensor_copy ? copy(launch, warp, work)
                                                  : multiply(launch, warp, work);
      continue;
    }
    for (const auto& cta : warp.cta->cluster->ctas) {
      if (work.receivers >> cta->cluster_rank() & 1) arrive_by_commit(launch, warp, work, *cta);
    }
  }
}

}  // namespace tilewright::simulator
