#include "target/incore.h"

#include <utility>

// Capacities, granules, layouts and ways are those that public documents give for cores with a
// matrix unit, a vector unit and memories in front of them. Rates and starts are round numbers of
// their order: they are there to compare schedules on one machine.
namespace tilewright::target {

using ir::Family;

Target core_target(std::string name, std::string chips, Core core) {
  Target t;
  t.name = std::move(name);
  t.chips = std::move(chips);
  // A sequencer is a warp of one lane.
  t.limits.lanes = 1;
  t.limits.group_warps = 1;
  t.limits.cluster = 1;
  t.limits.threads = 0;
  for (const CoreSequencer& each : core.sequencers) t.limits.threads += each.count;
  t.spaces = {{ir::Memory::global, core.global_name, "a device", 0}};
  t.moves = {};
  for (const CoreProduct& product : core.products) t.product_dtypes = product.dtypes;
  t.operations = {Family::constant,     Family::position,    Family::control,     Family::function,
                  Family::word,         Family::core_memory, Family::core_window, Family::core_copy,
                  Family::core_compute, Family::core_event};
  t.without = {ir::Op::elect,      ir::Op::rank,       ir::Op::epoch,       ir::Op::cluster_rank,
               ir::Op::warp_index, ir::Op::atomic_add, ir::Op::store_index, ir::Op::reduce_add};
  t.preparation = {"materialise_extents", "drop_selects_of_loads", "eliminate_common_extents",
                   "fold_accumulators", "eliminate_folded"};
  t.schedules = {"core_tiles"};
  t.lowering = {"drop_branches", "place_memories", "simplify_addresses",
                "eliminate_common_addresses", "eliminate_dead_addresses"};
  for (const CoreUnit& each : core.units) t.units.push_back({each.name, {}, {}});
  t.core = std::make_shared<const Core>(std::move(core));
  return t;
}

CoreProduct fractal_product() {
  CoreProduct product{"M", "Left", "Right", "Acc", false, {bf16, f16, f32}, 4096, 4096, 4096};
  product.piece_m = 16;
  product.piece_n = 16;
  product.piece_k_bytes = 32;
  product.sums_pad = true;
  product.start = 20;
  return product;
}

std::vector<CoreFunctions> vector_functions(std::vector<CoreFunctions> units) {
  for (CoreFunctions& each : units) {
    if (!each.only_fills) each.lacks = {"exp2_polynomial", "log1p", "expm1", "erf", "sin", "cos"};
  }
  return units;
}

namespace {

constexpr std::int64_t kKib = 1024;

}  // namespace

Target incore() {
  Core c;
  c.global_name = "GM";
  c.sequencers = {{"cube", 1, 4}, {"vector", 2, 4}};
  c.units = {{"MTE2", "cube", 32},   {"MTE1", "cube", 32}, {"M", "cube", 32, true},
             {"FIX", "cube", 32},    {"V", "vector", 32},  {"VMTE2", "vector", 32},
             {"VMTE3", "vector", 32}};
  c.spaces = {{"Mat", "cube", 512 * kKib, 1, 32, &fractal_columns_layout()},
              {"Left", "cube", 64 * kKib, 1, 512, &fractal_rows_layout()},
              {"Right", "cube", 64 * kKib, 1, 512, &fractal_turned_layout()},
              {"Acc", "cube", 128 * kKib, 1, 64, &square_columns_layout()},
              {"Vec", "vector", 192 * kKib, 1, 32, &rows_layout(), {16, 32}}};
  c.moves = {
      {"", "Mat", "MTE2", false, {}, 32, 16384, 65535, 37, 300, 4095, 16 * kKib},
      {"Mat", "Left", "MTE1", true, {}, 0, 4096, 4096, 256, 28},
      {"Mat", "Right", "MTE1", true, {}, 0, 4096, 4096, 128, 28},
      {"Acc", "", "FIX", false, {{f32, f16}, {f32, bf16}}, 0, 4096, 4096, 128, 40, 4095},
      {"Acc", "Mat", "FIX", false, {{f32, f16}, {f32, bf16}}, 0, 4096, 4096, 128, 20},
      {"", "Vec", "VMTE2", false, {}, 32, 4095, 65535, 37, 300, 4095, 16 * kKib},
      {"Vec", "", "VMTE3", false, {}, 0, 4095, 65535, 37, 200, 4095, 16 * kKib},
  };
  c.products = {fractal_product()};
  c.functions = vector_functions({{"V", {"Vec"}, {"Vec"}, false, 256, 20},
                                  {"MTE2", {}, {"Mat"}, true, 256, 20},
                                  {"VMTE2", {}, {"Vec"}, true, 256, 20}});
  for (const auto& [a, b] : {std::pair{"MTE2", "MTE1"},
                             {"MTE1", "M"},
                             {"M", "FIX"},
                             {"VMTE2", "V"},
                             {"V", "VMTE3"},
                             {"VMTE2", "VMTE3"},
                             {"FIX", "MTE1"},
                             {"FIX", "MTE2"}}) {
    c.events.push_back({a, b, 8, 1});
    c.events.push_back({b, a, 8, 1});
  }
  // Between the cores, of what passes through global memory.
  for (const auto& [a, b] : {std::pair{"FIX", "VMTE2"}, {"VMTE3", "MTE2"}}) {
    c.events.push_back({a, b, 11, 15});
    c.events.push_back({b, a, 11, 15});
  }
  return core_target("incore", "a made-up core: a matrix core and two vector cores", std::move(c));
}

}  // namespace tilewright::target
