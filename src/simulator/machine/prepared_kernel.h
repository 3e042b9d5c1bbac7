#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/access_bounds.h"
#include "ir/ir.h"
#include "support/arguments.h"
#include "target/target.h"
#include "tilewright/memory_order.h"

// A machine-form kernel prepared for execution: one flat list of instructions with jumps, whose
// operands are numbers of scalar slots, register arrays, allocations and barriers.
namespace tilewright::simulator {

// A scalar slot is the ValueId of the kernel.
using Slot = ir::ValueId;

// One scalar, uniform over a warp: floats in `f`, integers and booleans in `i`.
struct Scalar {
  std::int64_t i = 0;
  double f = 0;
};

struct Allocation {
  std::string name;
  DType dtype = DType::i32;
  std::int64_t offset = 0;
  std::int64_t stages = 1;
  std::int64_t stage_bytes = 0;
  SourceLocation where;
  std::int64_t bytes() const { return stages * stage_bytes; }
  // "K[stage 1] +0x400..0x7ff", of absolute shared addresses.
  std::string describe(std::int64_t address, std::int64_t bytes) const;
  // "K[stage 1]".
  std::string stage_name(std::int64_t address) const;
  std::int64_t stage_of(std::int64_t address) const;
};

struct BarrierArray {
  std::string name;
  std::int64_t offset = 0;
  int first = 0;  // in the CTA's list of barriers
  int count = 0;
  int arrivals = 0;
  SourceLocation where;
  std::vector<int> signallers;  // roles that arrive or copy onto it
  std::vector<int> waiters;     // roles that wait for it
  bool transactions = false;    // copies complete on it
};

// Dimensions are innermost first.
struct TensorMap {
  std::string name;
  const ir::Operation* operation = nullptr;  // that declares it
  const TensorArgument* tensor = nullptr;
  const ir::Parameter* parameter = nullptr;
  int rank = 0;
  std::array<std::int64_t, 5> extents{}, strides{}, box{};  // strides in bytes
  // Bytes from `data` to where the coordinates are all 0, but in a ragged map for boxes outside,
  // which begins with the tensor.
  std::int64_t origin = 0;
  int ragged_axis = -1;  // whose coordinate the last one shifts, by as much as the origin
  int element_bytes = 0;
  int swizzle = 0;
  SourceLocation where;
  std::int64_t row_bytes() const { return box[0] * element_bytes; }
  std::int64_t box_bytes() const;
  // The XOR that TMA applies to absolute shared addresses: 16-byte chunks of rows of `swizzle`
  // bytes are permuted by the address bits from 128 bytes up.
  std::int64_t swizzled(std::int64_t address) const {
    if (swizzle == 0) return address;
    return address ^ ((address >> 7 & (swizzle / 16 - 1)) << 4);
  }
};

struct Role {
  std::string name;
  int first_warp = 0;
  int warps = 0;
  SourceLocation where;
  bool has(int warp) const { return warp >= first_warp && warp < first_warp + warps; }
};

struct RegisterInfo {
  std::string name;
  DType dtype = DType::f32;
  int elements = 0;
  SourceLocation where;
  bool valued = true;  // else its elements have no values, as keep_control_only finds
};

// Flow of control, or what the operations of a family do.
enum class Code : std::uint8_t {
  end,
  move,
  jump,
  loop_test,
  loop_next,
  branch_unless,
  parted,  // one lane comes to what all of its warp execute together
  enter_role,
  leave_role,
#define TW_FAMILY(name)
#define TW_INSTRUCTION_FAMILY(name) name,
#include "ir/families.def"
};
constexpr bool is_flow(Code code) { return code <= Code::leave_role; }

// What the fields hold is said where prepared_kernel.cpp fills them.
struct Instruction {
  Code code = Code::end;
  ir::Op op = ir::Op::yield;  // of the operation
  bool valued = true;         // else it is checked and computes nothing
  bool once = false;          // by one lane, outside every role: warp 0 alone executes it
  bool elected = false;       // by one lane of the warp
  int object = 0;             // register array, allocation, barrier array or role
  int detail = 0;             // in the list of its code
  int target = 0;             // of a jump
  Slot a = 0, b = 0, c = 0;
  Slot loop = ir::kNoValue;  // the index of the innermost for_loop
  std::int64_t value = 0;
  const ir::Operation* operation = nullptr;
  SourceLocation where() const { return operation ? operation->where : SourceLocation{}; }
};

struct ScalarOperation {
  ir::Op function = ir::Op::add;
  DType operand_type = DType::i32;  // of the last operand
  DType type = DType::i32;
  std::vector<Slot> operands;
  Slot result = 0;
  bool by_instructions = false;  // Elementwise::by_instructions
};

// A source of compute: a register array seen through `index`, or a scalar.
struct RegisterSource {
  int array = -1;
  Slot scalar = 0;
  std::vector<int> index;
  int first = -1;  // where the index is first, first + 1, ...
};

struct Compute {
  ir::Op function = ir::Op::add;
  DType operand_type = DType::f32;  // of the last operand
  int destination = 0;
  std::vector<RegisterSource> sources;
  bool by_instructions = false;  // Elementwise::by_instructions
};

struct RegisterReduction {
  ir::Op function = ir::Op::add;
  int destination = 0, source = 0;
  std::vector<std::vector<int>> sources;  // of each of the destination's elements, in order
};

struct LaneReduction {
  ir::Op function = ir::Op::add;
  int array = 0;
  std::vector<int> masks;
};

// A register layout as sums: the coordinate on an axis is reg + lane + warp.
struct Spread {
  int rank = 0;
  int warps = 1;
  std::vector<std::int64_t> reg, lane, warp;  // [index * rank + axis]
  std::int64_t at(int axis, int r, int l, int w) const {
    return reg[r * rank + axis] + lane[l * rank + axis] + of_warp(axis, w);
  }
  std::int64_t of_warp(int axis, int w) const { return warp[w % warps * rank + axis]; }
};

// Elements of a tile that lie one behind the other along one axis of a tensor: the coordinate of
// the first one on each axis, in the tile.
struct ElementRun {
  std::vector<std::int64_t> first;
  std::int64_t count = 1;
};

struct GlobalAccess {
  const TensorArgument* tensor = nullptr;
  Slot rank = ir::kNoValue;  // whose tensor; none: this rank's
  int array = 0;
  std::vector<Slot> starts, limits;
  std::vector<int> tile_axis;  // of each tensor axis; -1 where it is indexed away
  std::vector<analysis::AxisCheck> checks;
  Spread spread;
  // Lanes, warps that hold what an earlier one holds too: of these, stores leave it to that one.
  std::vector<bool> repeated_lane, repeated_warp;
  // All elements of the layout's first warp, in the order of their coordinates, each once. Those of
  // other warps lie beside them.
  std::vector<ElementRun> runs;
  int run_axis = -1;  // of the tensor, whose elements follow each other in memory
  // Additions in any order, which do not race with each other. Those that the kernel says it orders
  // are held to that.
  bool atomic = false;
  bool returns = false;              // the array has then what was in memory
  std::optional<MemoryOrder> order;  // of each element, where the kernel says one
};

struct MatrixStore {
  int first_element = 0;
  int count = 4;  // matrices of 8 x 8, two elements a lane each
  bool transposed = false;
  bool has_chunk = false;
  std::int64_t step = 0, row_bytes = 0, chunk = 0, divisor = 1, mask = 0;
};

struct ElementAccess {
  Spread spread;
  std::vector<bool> repeated_lane, repeated_warp;  // as of a global access
  std::int64_t row_bytes = 0, divisor = 1, mask = 0, panel_columns = 0, panel_bytes = 0;
  int vector = 1;  // elements of one access
};

// An i32 element of a tensor: a coordinate an axis.
struct WordAccess {
  int tensor = 0;
  Slot rank = ir::kNoValue;  // as of a global access
  std::vector<Slot> coordinates;
  std::vector<analysis::AxisCheck> checks;
  std::optional<analysis::IndexClaim> claim;  // of an element that is loaded
  std::optional<std::int64_t> at_most;        // of the claim
  MemoryOrder order{Semantics::weak, Scope::gpu};
  Compare compare = Compare::ge;  // of wait_flag
  Slot value = ir::kNoValue, result = ir::kNoValue;
  bool takes = false;  // the kernel uses the result
  // Of a word that counts who leaves: this one does, and the last one finds so much there; or it
  // takes back, as the last one, what all have added.
  Slot last_finds = ir::kNoValue;
  bool takes_back = false;
};

struct Transfer {
  int map = -1;     // of a copy to a CTA of the cluster none
  int source = -1;  // of such a copy: the allocation that it reads
  Slot source_offset = 0, cta = 0;
  std::int64_t bytes = 0;       // that each of the receivers gets, or that leave
  Slot rank = ir::kNoValue;     // as of a global access
  Slot outside = ir::kNoValue;  // of a ragged map: whether it is that for boxes outside
  Slot offset = 0;
  std::int64_t step = 0;
  int barriers = -1;
  Slot barrier_index = 0;
  std::uint64_t multicast = 0;
  int multicast_group = 0;  // 0: the cluster
  bool pair = false;        // the barrier is that of the first CTA of a receiver's pair
  std::vector<Slot> coordinates;
  std::vector<analysis::AxisCheck> checks;  // of coordinates that come from what the launch gives
  // Whether another CTA's barrier expects the bytes, perhaps after they have come.
  bool is_for_others() const { return multicast != 0 || pair || source >= 0; }
};

// A matrix in shared memory as wgmma is told of it.
struct MatrixOperand {
  int allocation = 0;
  Slot offset = 0;
  std::int64_t step = 0;
  std::uint64_t descriptor = 0;  // without its start address
  bool transposed = false;
};

struct Product {
  int n = 0, k = 0;
  DType dtype = DType::bf16;
  int accumulator = 0;
  int a_array = -1;  // else `a` in shared memory
  int a_element = 0;
  MatrixOperand a, b;
  Slot accumulate = 0;
  // Products that one line makes of the same views, without anything between them: their number
  // for the first one, 0 for the others.
  int run = 1;
};

struct TensorAllocation {
  std::string name;
  int columns = 0;
  SourceLocation where;
};

// Between a register array and tensor memory.
struct TensorAccess {
  int memory = 0, array = 0;
  Slot address = 0;
  int first = 0, count = 0;  // 32-bit registers
  int beside = 0;            // of a matrix's rows, that a thread has; 0: none, a lane for each
  int columns() const { return beside == 0 ? count : 2 * count; }
  int lanes() const { return beside == 0 ? 32 : 16; }
  // Of the thread's register `first` + i, behind the access's address.
  int lane_of(int i, int thread) const {
    return beside == 0 ? thread : thread / 4 + 8 * (i / beside % 2);
  }
  int column_of(int i, int thread) const {
    if (beside == 0) return i;
    return 4 * beside * (i / (2 * beside)) + beside * (thread % 4) + i % beside;
  }
};

// A product whose result is in tensor memory.
struct TensorProduct {
  int memory = 0;
  Slot address = 0;
  std::uint32_t instruction = 0;  // the descriptor
  DType dtype = DType::bf16;      // of the opcode's kind
  int k = 0;
  int a_memory = -1;  // of an a in tensor memory
  Slot a_address = 0;
  MatrixOperand a, b;
  Slot accumulate = 0;
};

// Rows of shared memory that come to tensor memory, or, without rows, a shift there.
struct TensorCopy {
  int memory = 0;
  Slot address = 0;
  MatrixOperand from;
  int rows = 0, row_bytes = 0;
  static constexpr int kShifted = 8;  // columns
  int columns() const { return rows == 0 ? kShifted : row_bytes / 4; }
};

struct PreparedKernel {
  std::string name;
  SourceLocation where;
  const ir::Kernel* source = nullptr;  // what it was prepared from, and lives as long
  bool cooperative = false;            // all CTAs have to run at once
  bool changes_words = false;          // of global memory, such as a counter of tiles
  bool valued = true;  // else bytes in shared memory and in tensors have no values, but for scalars
  int warps = 0;
  std::int64_t ctas = 0, cluster = 1, shared_bytes = 0;
  bool cta_pairs = false;                  // tensor memory is of two CTAs of a cluster each
  int launch_registers = 0;                // of a thread
  const target::Target* target = nullptr;  // its limits, and how fast it is
  std::vector<Allocation> allocations;
  std::vector<BarrierArray> barrier_arrays;
  int barriers = 0;
  std::vector<TensorMap> maps;
  std::vector<Role> roles;                       // role 0 is the kernel's own body
  std::vector<int> role_of_warp;                 // 0 for a warp in no role
  std::array<std::vector<int>, 16> named_users;  // by barrier: roles that come there
  std::vector<int> registers_of_warp;  // of a thread, as set_max_registers asks for; 0 without one
  std::vector<RegisterInfo> registers;
  std::vector<Scalar> scalars;  // constants and dims in place
  std::vector<std::pair<Slot, ir::PositionOp>> positions;

  std::vector<Instruction> code;
  std::vector<std::vector<std::pair<Slot, Slot>>> moves;  // {to, from}, at once
  std::vector<ScalarOperation> scalar_operations;
  std::vector<Compute> computes;
  std::vector<RegisterReduction> reductions;
  std::vector<LaneReduction> lane_reductions;
  std::vector<Spread> spreads;
  std::vector<GlobalAccess> global_accesses;
  std::vector<MatrixStore> matrix_stores;
  std::vector<ElementAccess> element_accesses;
  std::vector<WordAccess> words;
  std::vector<Transfer> transfers;
  std::vector<Product> products;
  std::vector<TensorAllocation> tensor_memories;
  std::vector<TensorAccess> tensor_accesses;
  std::vector<TensorProduct> tensor_products;
  std::vector<TensorCopy> tensor_copies;

  // The tensor of `arguments` that the instruction accesses; null where there is none.
  const TensorArgument* tensor_of(const Instruction& instruction, const Arguments& arguments) const;
  // The allocation that the instruction reads or writes; -1 where there is none, or two.
  int allocation_of(const Instruction& instruction) const;
};

// Raises a usage error for what the machine cannot execute. `arguments` must outlive what is
// prepared.
PreparedKernel prepare(const ir::Kernel& kernel, const Arguments& arguments,
                       std::int64_t multiprocessors);

}  // namespace tilewright::simulator
