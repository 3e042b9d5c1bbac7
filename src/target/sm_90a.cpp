#include "target/sm_90a.h"

#include "target/families.h"
#include "target/warpgroups.h"

// "guide": the CUDA C++ programming guide, 13.0; "PTX": the PTX ISA, 9.0.
namespace tilewright::target {
namespace {

TargetLimits limits() {
  TargetLimits l;
  // Guide, table "technical specifications per compute capability", 9.0.
  l.shared_bytes = 227 << 10;
  l.multiprocessor_shared_bytes = 228 << 10;
  l.reserved_shared_bytes = 1 << 10;
  l.registers = 64 << 10;
  l.thread_registers = 255;
  l.lanes = 32;
  l.threads = 1024;
  l.multiprocessor_threads = 2048;
  l.shared_alignment = 1024;    // PTX, "shared memory matrix layout": of a 128-byte swizzle
  l.barrier_bytes = 8;          // PTX, "mbarrier object": 64 bits
  l.register_unit = 8;          // PTX, setmaxnreg; so does ptxas share them out
  l.least_role_registers = 24;  // PTX, setmaxnreg
  l.most_role_registers = 256;  // PTX, setmaxnreg
  l.group_warps = kGroupWarps;  // PTX, wgmma: "warpgroup"
  l.group_rows = kGroupRows;    // PTX, wgmma: m64
  l.named_barriers = 16;        // PTX, bar
  l.cluster = 16;               // guide, "thread block clusters": more than 8 are asked for
  l.product_columns = 256;      // PTX, wgmma: n
  l.product_column_unit = 8;    // the same
  l.product_depth_bytes = 32;   // PTX, wgmma: k16 of 2 bytes, k32 of 1
  l.product_groups = 7;         // PTX, wgmma.wait_group: a literal from 0 to 7
  l.copy_axes = 5;              // CUDA driver API, cuTensorMapEncodeTiled
  l.copy_extent = 256;          // the same
  l.copy_bytes = 16;            // the same
  return l;
}

Rates rates() {
  Rates r;
  // Guide, "throughput of native arithmetic instructions", 9.0: 32 lanes over the units of one of
  // the four schedulers.
  r.issue_float = 1;    // 128 results a cycle
  r.issue_integer = 2;  // 64
  r.issue_special = 8;  // 16
  r.issue_shuffle = 4;  // 32
  r.issue_control = 1;
  r.issue_scalar = 2;
  // Assumptions.
  r.issue_asynchronous = 8;
  r.barrier = 20;
  r.shared_latency = 30;
  r.global_latency = 600;
  r.copy_latency = 900;
  r.store_latency = 700;
  r.shared_bytes = 128;  // guide, "shared memory": 32 banks of 4 bytes
  r.l2_port_bytes = 64;
  r.fma = 2048;  // data sheet of the H100: 989 TFLOP/s at 132 multiprocessors x 1.83 GHz
  return r;
}

using ir::Family;
using ir::Memory;

std::vector<Space> spaces(const TargetLimits& l) {
  return {{Memory::global, "global memory", "a device", 0},
          {Memory::shared, "shared memory", "a CTA", l.shared_bytes},
          {Memory::registers, "registers", "a multiprocessor", l.registers * 4}};
}

std::vector<Unit> units() {
  using ir::Pipe;
  return {{"tensor cores", {Family::product}, {}},
          {"TMA", {Family::bulk_copy, Family::prefetch}, {}},
          {"arithmetic units",
           {Family::computation},
           {Pipe::arithmetic, Pipe::integer, Pipe::split_exponent}},
          // Functions of several instructions count where the first of these goes.
          {"special function units", {}, {Pipe::special, Pipe::reduced_special, Pipe::polynomial}},
          {"conversion units", {}, {Pipe::conversion}},
          {"load and store units",
           {Family::global_access, Family::matrix_access, Family::element_access,
            Family::fragment_access, Family::shared_word, Family::word, Family::word_wait,
            Family::mbarrier},
           {}}};
}

ir::RegisterLayout accumulator(std::int64_t rows, std::int64_t columns, DType,
                               SourceLocation where) {
  return ir::wgmma_accumulator(rows, columns, where);
}

ir::RegisterLayout product_operand(std::int64_t rows, std::int64_t columns, DType element,
                                   SourceLocation where) {
  return ir::wgmma_a_fragment(rows, columns, size_of(element), where);
}

}  // namespace

Target sm_90a() {
  Target t;
  t.name = "sm_90a";
  t.chips = "NVIDIA Hopper: H100, H200, GH200";
  t.limits = limits();
  t.rates = rates();
  t.spaces = spaces(t.limits);
  // Between global memory and registers or shared memory, and between these. Words of memory that
  // other CTAs change are read and written in place.
  t.moves = {{Memory::global, Memory::registers}, {Memory::registers, Memory::global},
             {Memory::global, Memory::shared},    {Memory::shared, Memory::global},
             {Memory::shared, Memory::registers}, {Memory::registers, Memory::shared}};
  t.product_dtypes = {DType::bf16, DType::f16, DType::f8e4m3};
  t.accumulator = accumulator;
  t.product_operand = product_operand;
  t.units = units();
  t.operations = families_of(Products::warpgroup);
  t.without = {ir::Op::tensor_memory};
  t.preparation = {// Of the kernel's own starts: later passes shift them.
                   "check_starts", "materialise_extents", "drop_selects", "fold_accumulators",
                   // The passes behind it count who reads a value.
                   "eliminate_folded", "skip_hidden", "skip_identities", "begin_sums",
                   "overlap_products", "issue_products", "peel_masks", "simplify_loops",
                   "eliminate_common_loops", "hoist_loops", "eliminate_loops", "join_steps",
                   // Nothing may merge again what it makes twice.
                   "separate_columns"};
  t.schedules = {"warpgroups", "rows"};
  t.lowering = {"join_copies", "contract_fma", "eliminate_products", "sink_partial_sums",
                "sink_partial_maxima", "eliminate_common_sums", "convert_layouts", "assign_layouts",
                "share_reductions", "check_pair_loads", "check_divergence", "count_waits",
                "bufferise", "allocate_shared",
                // Addresses are scalars now.
                "simplify_addresses", "eliminate_common_addresses", "hoist_addresses",
                "eliminate_common_hoisted_addresses", "eliminate_dead_addresses",
                // Behind all that moves or drops an access to memory.
                "check_accesses", "order_lanes"};
  t.printer = "cuda";
  return t;
}

}  // namespace tilewright::target
