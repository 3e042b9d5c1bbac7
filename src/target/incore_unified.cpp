#include "target/incore.h"

#include <utility>

namespace tilewright::target {
namespace {

constexpr std::int64_t kUnifiedKib = 1024;

}  // namespace

Target incore_unified() {
  Core c;
  c.global_name = "GM";
  c.sequencers = {{"core", 1, 4}};
  c.units = {{"MTE2", "core", 32}, {"MTE1", "core", 32}, {"M", "core", 32, true},
             {"FIX", "core", 32},  {"V", "core", 32},    {"MTE3", "core", 32}};
  // Left has the layout of Mat here.
  c.spaces = {{"Mat", "core", 512 * kUnifiedKib, 1, 32, &fractal_columns_layout()},
              {"Left", "core", 64 * kUnifiedKib, 1, 512, &fractal_columns_layout()},
              {"Right", "core", 64 * kUnifiedKib, 1, 512, &fractal_turned_layout()},
              {"Acc", "core", 256 * kUnifiedKib, 1, 64, &square_columns_layout()},
              {"Vec", "core", 256 * kUnifiedKib, 1, 32, &rows_layout()}};
  c.moves = {
      {"", "Mat", "MTE2", false, {}, 32, 16384, 65535, 64, 300, 4095, 16 * kUnifiedKib},
      {"", "Vec", "MTE2", false, {}, 32, 4095, 65535, 64, 300, 4095, 16 * kUnifiedKib},
      {"Mat", "Left", "MTE1", true, {}, 0, 4096, 4096, 256, 28},
      {"Mat", "Right", "MTE1", true, {}, 0, 4096, 4096, 128, 28},
      {"Acc", "", "FIX", false, {{f32, f16}, {f32, bf16}}, 0, 4096, 4096, 128, 40, 4095},
      {"Acc", "Vec", "FIX", false, {{f32, f16}, {f32, bf16}}, 0, 4096, 4096, 128, 20},
      {"Vec", "Mat", "MTE3", false, {}, 0, 4095, 65535, 128, 40},
      {"Vec", "", "MTE3", false, {}, 0, 4095, 65535, 64, 200, 4095, 16 * kUnifiedKib},
  };
  c.products = {fractal_product()};
  // Vector work goes through registers there, in order.
  c.units[4].orders_itself = true;
  c.functions = vector_functions(
      {{"V", {"Vec"}, {"Vec"}, false, 256, 20}, {"MTE2", {}, {"Mat", "Vec"}, true, 256, 20}});
  for (const CoreUnit& a : c.units) {
    for (const CoreUnit& b : c.units) {
      if (a.name != b.name) c.events.push_back({a.name, b.name, 8, 1});
    }
  }
  return core_target("incore_unified", "a made-up core: all units and memories in one",
                     std::move(c));
}

}  // namespace tilewright::target
