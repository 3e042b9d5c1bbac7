#include "target/sm_100a.h"

#include "target/families.h"
#include "target/sm_90a.h"

// "PTX": the PTX ISA, 9.0, chapter "TensorCore 5th generation"; "guide": as in sm_90a.cpp, whose
// numbers hold here too where none is named.
namespace tilewright::target {
namespace {

using ir::Family;
using ir::Memory;

void change_limits(TargetLimits& l) {
  l.product_column_unit = 16;   // PTX, tcgen05.mma: of M = 128 with 8-bit B it is 16, else 8
  l.product_groups = 0;         // a product is waited for by an mbarrier
  l.tensor_lanes = 128;         // PTX, "tensor memory"
  l.tensor_columns = 512;       // the same
  l.least_tensor_columns = 32;  // PTX, tcgen05.alloc
}

void change_rates(Rates& r) {
  r.fma = 4096;  // data sheet of the B200: 2250 TFLOP/s at 148 multiprocessors x 1.86 GHz
}

void change_units(std::vector<Unit>& units) {
  for (Unit& unit : units) {
    if (unit.name == "tensor cores") unit.families = {Family::tensor_product};
  }
  units.push_back({"tensor memory", {Family::tensor_access, Family::tensor_copy}, {}});
  units.push_back({"launch control", {Family::launch_control}, {}});
}

// PTX, tcgen05.mma with .block_scale.
std::vector<ScaledProducts> scaled_products() {
  return {{"mxf8f6f4", {"e4m3", "e5m2", "e2m3", "e3m2", "e2m1"}, {"ue8m0"}, {32}, 32},
          {"mxf4", {"e2m1"}, {"ue8m0"}, {32}, 64},
          {"mxf4nvf4", {"e2m1"}, {"ue8m0", "ue4m3"}, {16, 32}, 64}};
}

}  // namespace

Target sm_100a() {
  Target t = sm_90a();
  t.name = "sm_100a";
  t.chips = "NVIDIA Blackwell: B200, GB200";
  change_limits(t.limits);
  change_rates(t.rates);
  t.operations = families_of(Products::tensor_memory);
  t.scaled_products = scaled_products();
  t.float_pairs = true;  // PTX, fma.rn.f32x2
  t.without = {ir::Op::wgmma_commit, ir::Op::wgmma_wait};
  change_units(t.units);
  t.spaces.push_back({Memory::tensor, "tensor memory", "a multiprocessor",
                      t.limits.tensor_lanes * t.limits.tensor_columns * 4});
  // Products read shared memory, and leave their results in tensor memory.
  t.moves.insert(t.moves.end(), {{Memory::shared, Memory::tensor},
                                 {Memory::tensor, Memory::registers},
                                 {Memory::registers, Memory::tensor}});
  // A warpgroup moves results of 64 rows to and from tensor memory, and operands, as wgmma has them
  // in registers (PTX, tcgen05.ld: 16x256b, 16x128b).
  return t;
}

// PTX, "target architecture": it lacks .scale-input-d of tcgen05.mma and redux.sync of f32, and has
// .kind::i8. No operation here stands for any of them.
Target sm_110a() {
  Target t = sm_100a();
  t.takes_kernels_of = t.name;
  t.name = "sm_110a";
  t.chips = "NVIDIA Blackwell: Jetson Thor";
  return t;
}

}  // namespace tilewright::target
