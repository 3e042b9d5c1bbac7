#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "ptx/matrix.h"
#include "ptx/typed.h"
#include "simulator/machine/instruction_descriptor.h"

// tcgen05. A product is done when it is issued, and a commit arrives at once: whether a kernel
// waits for them as it has to is what the virtual GPU looks at. Here its text is held against that.
namespace tilewright::ptx {
namespace {

constexpr int kTensorLanes = 128, kTensorColumns = 512, kWindowLanes = 32, kHalfLanes = 16;

struct TensorPlace {
  int lane = 0, column = 0;
  explicit TensorPlace(std::uint64_t address)
      : lane(static_cast<int>(address >> 16 & 0xffff)),
        column(static_cast<int>(address & 0xffff)) {}
};

bool is_pair(const Instruction& i) { return i.has(Modifier::cta_group_2); }

// Whether somebody has taken the columns, all of them together.
bool holds(const Cta& cta, int first, int count) {
  return std::any_of(cta.tensor_held.begin(), cta.tensor_held.end(), [&](const auto& held) {
    return first >= held.first && first + count <= held.first + held.second;
  });
}

void need_held(const Execution& x, const Cta& cta, int first, int count) {
  if (holds(cta, first, count)) return;
  x.fail("tensor_memory", fmt::format("of columns {} to {}, which CTA {} does not hold", first,
                                      first + count - 1, cta.index));
}

// The last columns that are free, so that the address is seldom 0.
void allocate(Execution& x) {
  x.need_whole_warp();
  Cta& cta = x.cta();
  const auto count = static_cast<int>(x.uniform(1));
  if (count < kWindowLanes || count > kTensorColumns || (count & (count - 1)) != 0) {
    x.fail("tensor_memory", fmt::format("of {} columns, no power of two from 32 to 512", count));
  }
  int first = kTensorColumns - count;
  const auto taken = [&] {
    return std::any_of(cta.tensor_held.begin(), cta.tensor_held.end(), [&](const auto& held) {
      return first < held.first + held.second && held.first < first + count;
    });
  };
  while (first >= 0 && taken()) first -= count;
  if (first < 0) x.fail("tensor_memory", fmt::format("of {} columns, which are not free", count));
  cta.tensor.resize(std::size_t{kTensorLanes} * kTensorColumns);
  cta.tensor_written.resize(cta.tensor.size());
  cta.tensor_held[first] = count;
  std::fill_n(cta.tensor_written.begin() + std::ptrdiff_t{first} * kTensorLanes,
              std::ptrdiff_t{count} * kTensorLanes, 0);
  const auto [to, at] = x.machine.shared(x, x.addresses(x.operand(0))[x.first_lane()], 4);
  touch(x, *to, at, 4, Accessor::store);
  const auto base = static_cast<std::uint32_t>(first);
  std::memcpy(to->shared.data() + at, &base, 4);
  std::fill_n(to->held.begin() + static_cast<std::ptrdiff_t>(at), 4, 1);
}

void deallocate(Execution& x) {
  x.need_whole_warp();
  const TensorPlace place(x.uniform(0));
  const auto count = static_cast<int>(x.uniform(1));
  const auto held = x.cta().tensor_held.find(place.column);
  if (place.lane != 0 || held == x.cta().tensor_held.end() || held->second != count) {
    x.fail("tensor_memory", fmt::format("of {} columns at lane {}, column {}, which are not held",
                                        count, place.lane, place.column));
  }
  x.cta().tensor_held.erase(held);
}

void relinquish(Execution& x) { x.need_whole_warp(); }

void nothing(Execution&) {}

int repeats_of(Execution& x) {
  constexpr std::pair<Modifier, int> kCounts[] = {
      {Modifier::x1, 1},   {Modifier::x2, 2},   {Modifier::x4, 4},   {Modifier::x8, 8},
      {Modifier::x16, 16}, {Modifier::x32, 32}, {Modifier::x64, 64}, {Modifier::x128, 128}};
  for (const auto& [modifier, count] : kCounts) {
    if (x.instruction.has(modifier)) return count;
  }
  x.unsupported();
}

// What register i of a thread holds, behind the address (PTX ISA 9.0, tcgen05.ld: .32x32b, .16x128b
// and .16x256b).
std::size_t place_of(Execution& x, int i, int thread) {
  const auto at = [](int lane, int column) {
    return static_cast<std::size_t>(kTensorLanes) * column + lane;
  };
  if (x.instruction.has(Modifier::matrix_128)) {
    return at(thread / 4 + 8 * (i & 1), 4 * (i >> 1) + thread % 4);
  }
  if (x.instruction.has(Modifier::matrix_256)) {
    return at(thread / 4 + 8 * (i >> 1 & 1), 8 * (i >> 2) + 2 * (thread % 4) + (i & 1));
  }
  return at(thread, i);
}

// Calls `visit(register, places)` for the registers of a load or a store: of each lane of the warp.
template <typename Visit>
void for_registers(Execution& x, const Operand& registers, const Operand& address, Visit visit) {
  x.need_whole_warp();
  const bool is_window = x.instruction.has(Modifier::window);
  const int each = is_window ? 1 : x.instruction.has(Modifier::matrix_128) ? 2 : 4;
  const int count = each * repeats_of(x);
  if (registers.kind != Operand::Kind::vector ||
      static_cast<int>(registers.parts.size()) != count) {
    x.unsupported();
  }
  const TensorPlace place(x.addresses(address)[0]);
  const int own = x.warp.index % 4 * kWindowLanes;
  if (place.lane != own && (is_window || place.lane != own + kHalfLanes)) {
    x.fail("tensor_memory", fmt::format("of lanes from {} on by a warp that reaches {} to {}",
                                        place.lane, own, own + kWindowLanes - 1));
  }
  need_held(x, x.cta(), place.column, is_window ? count : 2 * count);
  const std::size_t first = std::size_t{kTensorLanes} * place.column + place.lane;
  for (int i = 0; i < count; ++i) {
    std::array<std::size_t, kLanes> places;
    for (int lane = 0; lane < kLanes; ++lane) places[lane] = first + place_of(x, i, lane);
    visit(registers.parts[i], places);
  }
}

void load(Execution& x) {
  Cta& cta = x.cta();
  for_registers(x, x.operand(0), x.operand(1), [&](const Operand& to, const auto& places) {
    Lanes& lanes = x.target(to);
    for (int lane = 0; lane < kLanes; ++lane) {
      const std::size_t at = places[lane];
      if (!cta.tensor_written[at]) {
        x.fail("uninitialised", fmt::format("of tensor memory, lane {}, column {}",
                                            at % kTensorLanes, at / kTensorLanes));
      }
      lanes[lane] = cta.tensor[at];
    }
  });
}

void store(Execution& x) {
  Cta& cta = x.cta();
  for_registers(x, x.operand(1), x.operand(0), [&](const Operand& from, const auto& places) {
    const Lanes& lanes = x.read(from, 0);
    for (int lane = 0; lane < kLanes; ++lane) {
      cta.tensor[places[lane]] = static_cast<std::uint32_t>(lanes[lane]);
      cta.tensor_written[places[lane]] = 1;
    }
  });
}

Type type_of(DType dtype) {
  return dtype == DType::bf16 ? Type::bf16 : dtype == DType::f16 ? Type::f16 : Type::e4m3;
}

// What a product is told, and who multiplies.
struct TensorCores {
  simulator::InstructionDescriptor shape;
  int element = 2, k = 16, rows = 0, columns = 0;  // of one CTA
  std::vector<Cta*> ctas;

  // Of a pair with m = 128 the second half of n lies below the first (PTX: layout B).
  bool is_folded() const { return ctas.size() == 2 && rows != kTensorLanes; }
  int result_columns() const { return is_folded() ? shape.n / 2 : shape.n; }
  // Of the result's element, behind the address.
  std::size_t place_of(int row, int n) const {
    const int width = result_columns();
    const int lane = is_folded() ? row + n / width * rows : lane_of(row);
    return std::size_t{kTensorLanes} * (n % width) + lane;
  }
  // Of a row, behind the lane at which rows begin.
  int lane_of(int row) const { return rows == kTensorLanes ? row : row % 16 + row / 16 * 32; }
  void check_lane(const Execution& x, int first) const {
    if (first == 0 || (rows != kTensorLanes && !is_folded() && first == kHalfLanes)) return;
    x.fail("tensor_memory", fmt::format("of {} rows from lane {} on", rows, first));
  }
};

TensorCores tensor_cores(Execution& x) {
  const Instruction& i = x.instruction;
  TensorCores made;
  made.element = i.has(Modifier::kind_f8f6f4) ? 1 : 2;
  made.k = 32 / made.element;
  const int ctas = is_pair(i) ? 2 : 1;
  made.shape =
      simulator::decode_instruction(static_cast<std::uint32_t>(x.uniform(3)), made.element, ctas);
  if (!made.shape.problem.empty()) x.fail("descriptor", made.shape.problem);
  made.rows = made.shape.m / ctas;
  made.columns = made.shape.n / ctas;
  made.ctas.push_back(&x.cta());
  if (ctas == 1) return made;
  if (x.cta().rank % 2 != 0) x.fail("tensor_memory", "by the second CTA of a pair");
  made.ctas.push_back(x.cta().cluster->ctas.at(x.cta().rank + 1).get());
  if (made.ctas[1]->live == 0) x.fail("exit", "of a pair of CTAs, of which one has ended");
  return made;
}

Matrix operand_matrix(Execution& x, std::uint64_t descriptor, bool is_mn_major, int element) {
  if (const std::string problem = simulator::problem_of_descriptor(descriptor); !problem.empty()) {
    x.fail("descriptor", problem);
  }
  return decode_matrix(x, descriptor, is_mn_major, element);
}

// [k][row], of a CTA.
std::vector<float> rows_of_a(Execution& x, Cta& cta, const TensorCores& cores) {
  std::vector<float> values(static_cast<std::size_t>(cores.rows) * cores.k);
  const Operand& a = x.operand(1);
  const Type type = type_of(cores.shape.a);
  if (a.kind != Operand::Kind::address) {
    const Matrix matrix = operand_matrix(x, x.uniform(1), cores.shape.a_is_mn_major, cores.element);
    read_matrix(x, cta, type, matrix, 0, cores.rows, cores.k, [&](int row, int k, float value) {
      values[static_cast<std::size_t>(k) * cores.rows + row] = value;
    });
    return values;
  }
  // It would have to be in both halves of the lanes.
  if (cores.is_folded()) x.unsupported();
  const TensorPlace place(x.addresses(a)[x.first_lane()]);
  cores.check_lane(x, place.lane);
  const int packed = 4 / cores.element;
  need_held(x, cta, place.column, cores.k / packed);
  for (int k = 0; k < cores.k; ++k) {
    for (int row = 0; row < cores.rows; ++row) {
      const std::size_t at =
          std::size_t{kTensorLanes} * (place.column + k / packed) + place.lane + cores.lane_of(row);
      if (!cta.tensor_written[at]) x.fail("uninitialised", "of an operand in tensor memory");
      const std::uint32_t bits = cta.tensor[at] >> 8 * cores.element * (k % packed);
      decode_elements(type, reinterpret_cast<const std::byte*>(&bits), 1,
                      &values[static_cast<std::size_t>(k) * cores.rows + row]);
    }
  }
  return values;
}

// [k][column], of all CTAs.
std::vector<float> columns_of_b(Execution& x, const TensorCores& cores) {
  const int n = cores.shape.n;
  std::vector<float> values(static_cast<std::size_t>(n) * cores.k);
  const Matrix matrix = operand_matrix(x, x.uniform(2), cores.shape.b_is_mn_major, cores.element);
  int first = 0;
  for (Cta* cta : cores.ctas) {
    read_matrix(x, *cta, type_of(cores.shape.b), matrix, 0, cores.columns, cores.k,
                [&](int column, int k, float value) {
                  values[static_cast<std::size_t>(k) * n + first + column] = value;
                });
    first += cores.columns;
  }
  return values;
}

// The terms of a sum are added one by one, as the virtual GPU adds them.
void multiply(Execution& x) {
  const TensorCores cores = tensor_cores(x);
  const TensorPlace d(x.addresses(x.operand(0))[x.first_lane()]);
  cores.check_lane(x, d.lane);
  const bool accumulate = x.uniform(4) & 1;
  const std::vector<float> b = columns_of_b(x, cores);
  const int n = cores.shape.n;
  const std::size_t first = std::size_t{kTensorLanes} * d.column + d.lane;
  for (Cta* cta : cores.ctas) {
    need_held(x, *cta, d.column, cores.result_columns());
    const std::vector<float> a = rows_of_a(x, *cta, cores);
    for (int column = 0; column < n; ++column) {
      for (int row = 0; row < cores.rows; ++row) {
        const std::size_t at = first + cores.place_of(row, column);
        if (accumulate && !cta->tensor_written[at]) {
          x.fail("uninitialised", "of sums in tensor memory that nothing has written");
        }
        float sum = accumulate ? std::bit_cast<float>(cta->tensor[at]) : 0;
        for (int k = 0; k < cores.k; ++k) {
          sum += a[static_cast<std::size_t>(k) * cores.rows + row] *
                 b[static_cast<std::size_t>(k) * n + column];
        }
        cta->tensor[at] = std::bit_cast<std::uint32_t>(sum);
        cta->tensor_written[at] = 1;
      }
    }
  }
}

void commit(Execution& x) {
  const auto lane = static_cast<int>(x.first_lane());
  const BarrierPlace place = barrier_place(x, x.operand(0), lane);
  complete_groups(x, Agent::products, x.warp.product_groups);
  x.warp.groups_over = x.warp.product_groups++;
  if (!x.instruction.has(Modifier::multicast)) return arrive_on(x, place, 1);
  const std::uint64_t receivers = x.uniform(1) & 0xffff;
  for (const auto& cta : x.cta().cluster->ctas) {
    if (receivers >> cta->rank & 1) arrive_on(x, {cta.get(), place.at}, 1);
  }
}

// Rows of 16 or 32 bytes, one a lane; of 32 rows each window has all.
void copy(Execution& x) {
  if (is_pair(x.instruction)) x.unsupported();
  const TensorPlace to(x.addresses(x.operand(0))[x.first_lane()]);
  const bool repeated = x.instruction.has(Modifier::rows_32_128);
  if (repeated != x.instruction.has(Modifier::to_all_windows)) x.unsupported();
  const int chunks = x.instruction.has(Modifier::rows_128_256) ? 2 : 1;
  if (to.lane != 0) x.fail("tensor_memory", fmt::format("of rows from lane {} on", to.lane));
  Cta& cta = x.cta();
  constexpr int kWords = kPiece / 4;
  need_held(x, cta, to.column, kWords * chunks);
  const Matrix matrix = operand_matrix(x, x.uniform(1), /*is_mn_major=*/false, kPiece);
  for (int lane = 0; lane < kTensorLanes; ++lane) {
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const int row = repeated ? lane % kWindowLanes : lane;
      std::array<std::uint32_t, kWords> words;
      std::memcpy(words.data(), operand_piece(x, cta, matrix.address(row, chunk)), kPiece);
      for (int i = 0; i < kWords; ++i) {
        const std::size_t at = std::size_t{kTensorLanes} * (to.column + kWords * chunk + i) + lane;
        cta.tensor[at] = words[i];
        cta.tensor_written[at] = 1;
      }
    }
  }
}

void shift(Execution& x) {
  if (is_pair(x.instruction)) x.unsupported();
  const TensorPlace place(x.addresses(x.operand(0))[x.first_lane()]);
  if (place.lane != 0) x.fail("tensor_memory", fmt::format("of rows from lane {} on", place.lane));
  Cta& cta = x.cta();
  constexpr int kShifted = 8;  // columns
  need_held(x, cta, place.column, kShifted);
  for (int i = 0; i < kShifted; ++i) {
    const std::size_t first = std::size_t{kTensorLanes} * (place.column + i);
    for (std::size_t at = first + kTensorLanes - 1; at > first; --at) {
      if (!cta.tensor_written[at - 1]) x.fail("uninitialised", "of rows that are shifted");
      cta.tensor[at] = cta.tensor[at - 1];
      cta.tensor_written[at] = 1;
    }
  }
}

constexpr std::string_view kGroup = "cta_group::1 cta_group::2 sync aligned shared::cta";
constexpr std::string_view kWindow =
    "sync aligned 32x32b 16x128b 16x256b x1 x2 x4 x8 x16 x32 x64 x128";
constexpr Record kTensorMemoryRecords[] = {
    {"tcgen05.alloc", "as", kGroup, "b32", allocate},
    {"tcgen05.dealloc", "ss", kGroup, "b32", deallocate},
    {"tcgen05.relinquish_alloc_permit", "", kGroup, "", relinquish},
    {"tcgen05.ld", "va", kWindow, "b32", load},
    {"tcgen05.st", "av", kWindow, "b32", store},
    {"tcgen05.wait::ld", "", "sync aligned", "", nothing},
    {"tcgen05.wait::st", "", "sync aligned", "", nothing},
    {"tcgen05.fence::before_thread_sync", "", "", "", nothing},
    {"tcgen05.fence::after_thread_sync", "", "", "", nothing},
    {"tcgen05.mma", "awsss", "cta_group::1 cta_group::2 kind::f16 kind::f8f6f4", "", multiply},
    {"tcgen05.cp", "as", "cta_group::1 cta_group::2 128x256b 128x128b 32x128b warpx4", "", copy},
    {"tcgen05.shift", "a", "cta_group::1 cta_group::2 down", "", shift},
    {"tcgen05.commit", "a?s",
     "cta_group::1 cta_group::2 mbarrier::arrive::one shared::cluster multicast::cluster", "b64",
     commit},
};

}  // namespace

std::span<const Record> tensor_memory_records() { return kTensorMemoryRecords; }

}  // namespace tilewright::ptx
