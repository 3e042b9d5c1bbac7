#pragma once

#include <fmt/format.h>

#include <string>

namespace tilewright::codegen {

// Elements of tiles in every order that PTX has, of every dtype: pairs of 16 bits, single ones, and
// one that all lanes hold.
inline std::string ordered_text() {
  const char* const types[] = {"f32", "f16", "bf16", "i32", "u32", "i64", "u8"};
  std::string text = "kernel \"ordered\" machine\ndim columns at_least(1)\nscalar x: f32 = %10\n";
  for (int i = 0; i < 7; ++i) {
    text += fmt::format("inout {0}_out: {0}[16, columns] = %{1}\n", types[i], i);
  }
  text += R"(grid (1)
threads 128
shared_bytes 0
body () {
  %11: i32 = constant {value = 0}
  %12: i32 = constant {value = 16}
  %13: i32 = dim {dim = dim(columns)}
  %14: i64 = cast %13
  %15: u32 = cast %10
  %16: u32 = cast %14
  %17: u32 = cast %13
  role {name = "only", first_warp = 0, warps = 4} (%20: i32) {
)";
  int next = 40;
  for (int i = 0; i < 7; ++i) {
    const char* const layouts[] = {"[16x16|r:2@1:1|l:8@1:2,4@0:1|w:4@0:4]", "[4|l:8*,4@0:1|w:4*]"};
    for (int form = 0; form < 2; ++form) {
      const int array = next++;
      const std::string place =
          fmt::format("%11, %11, %12, %13 {{sizes = [{}], layout = register_layout{}",
                      form == 0 ? "16, 16" : "0, 4", layouts[form]);
      text += fmt::format("    %{}: registers<{}, {}> = registers {{name = \"held\"}}\n", array,
                          types[i], form == 0 ? 2 : 1);
      const auto line = [&](const char* op, const char* sum, const std::string& order) {
        const bool loads = std::string(op) == "load_registers";
        std::string attributes = place;
        if (*sum != 0) attributes.insert(attributes.find('{') + 1, sum);
        text += loads ? fmt::format("    {} %{}, %{}, {}, {}}}\n", op, array, i, attributes, order)
                      : fmt::format("    {} %{}, %{}, {}, {}}}\n", op, i, array, attributes, order);
      };
      line("load_registers", "", "semantics = \"weak\"");
      line("store_registers", "", "semantics = \"weak\"");
      for (const char* scope : {"block", "cluster", "gpu", "system"}) {
        const auto order = [&](const char* semantics) {
          return fmt::format("semantics = \"{}\", scope = \"{}\"", semantics, scope);
        };
        for (const char* semantics : {"relaxed", "acquire"}) {
          line("load_registers", "", order(semantics));
        }
        for (const char* semantics : {"relaxed", "release"}) {
          line("store_registers", "", order(semantics));
        }
        if (i == 6) continue;  // nothing adds bytes
        for (const char* semantics : {"relaxed", "release"}) {
          line("red_registers", "function = add, ", order(semantics));
        }
        // Of what several warps hold one adds, and the others would learn nothing.
        if (form == 1) continue;
        for (const char* semantics : {"relaxed", "acquire", "release", "acq_rel"}) {
          line("atomic_registers", "function = add, ", order(semantics));
        }
      }
    }
    if (i == 6) continue;
    // One element, which all lanes of a warp hold.
    const int array = next++;
    text +=
        fmt::format("    %{}: registers<{}, 1> = registers {{name = \"one\"}}\n", array, types[i]);
    text += fmt::format(
        "    load_registers %{0}, %{1}, %20, %11, %12, %13 {{sizes = [4, 1], layout = "
        "register_layout[4x1|l:32*|w:4@0:1]}}\n",
        array, i);
    text += fmt::format(
        "    atomic_registers %{}, %{}, %20, %11, %12, %13 {{function = add, sizes = [4, 1], "
        "layout "
        "= register_layout[4x1|l:32*|w:4@0:1], semantics = \"acq_rel\", scope = \"system\"}}\n",
        i, array);
  }
  for (const int scalar : {15, 16, 17}) {
    const int array = next++;
    text += fmt::format(
        "    %{0}: registers<u32, 2> = registers {{name = \"u32\"}}\n    fill %{0}, %{1}\n", array,
        scalar);
    text += fmt::format(
        "    store_registers %4, %{}, %11, %11, %12, %13 {{sizes = [16, 16], layout = "
        "register_layout[16x16|r:2@1:1|l:8@1:2,4@0:1|w:4@0:4]}}\n",
        array);
  }
  return text + "    yield\n  }\n}\n";
}

// Waits that report themselves: inside no loop, one and two, by all lanes and by one.
inline std::string watched_text() {
  return R"(kernel "watched" machine
signals flags: i32[8] = %0
grid (1)
threads 32
shared_bytes 16
body () {
  %1: mbarriers<2> = mbarriers {name = "full", arrivals = 1, offset = 0}
  %2: i32 = constant {value = 0}
  %3: i32 = constant {value = 1}
  %4: i32 = constant {value = 4}
  %5: i32 = epoch
  mbarrier_init %1 {arrivals = 1}
  fence_barrier_init
  cta_sync
  role {name = "only", first_warp = 0, warps = 1} (%20: i32) {
    wait_flag %0, %2, %5 {compare = "ge", semantics = "acquire", scope = "system", watched = 0}
    for_loop %2, %4, %3 (%21: i32) {
      mbarrier_wait %1, %3, %3 {watched = 1}
      for_loop %2, %4, %3 (%22: i32) {
        wait_flag %0, %22, %5 {compare = "eq", semantics = "relaxed", scope = "gpu", watched = 2}
        yield
      }
      yield
    }
    elect () {
      mbarrier_wait %1, %2, %3 {watched = 3}
      yield
    }
    yield
  }
}
)";
}

}  // namespace tilewright::codegen
