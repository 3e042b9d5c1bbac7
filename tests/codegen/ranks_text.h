#pragma once

#include <fmt/format.h>

#include <string>

namespace tilewright::codegen {

// Every operation on what other ranks have, in every order and scope that PTX has.
inline std::string ranks_text() {
  std::string text = R"(kernel "exchange" machine
dim ranks at_least(1) at_most(8)
in X: f32[16, 16] = %0
symmetric parts: f32[ranks, 16, 16] = %1
signals flags: i32[8] = %2
grid (1)
threads 128
shared_bytes 1152
body () {
  %3: shared<f32, 1x16x16> = shared {name = "tile", layout = shared_layout[16x16*4|16@0:64,16@1:4], stages = 1, offset = 0}
  %4: tensor_map = tensor_map %1 {name = "parts", box = [1, 16, 16], swizzle = 0, peers = 1}
  %5: mbarriers<1> = mbarriers {name = "full", arrivals = 1, offset = 1024}
  %6: i32 = rank
  %7: i32 = epoch
  %8: i32 = dim {dim = dim(ranks)}
  %9: i32 = constant {value = 0}
  %10: i32 = constant {value = 1}
  %11: i32 = add %6, %10
  %12: i32 = mod %11, %8
  %13: i32 = constant {value = 16}
  mbarrier_init %5 {arrivals = 1}
  fence_barrier_init
  cta_sync
  role {name = "only", first_warp = 0, warps = 4} (%20: i32) {
    %21: tensor_map = peer_map %4, %12
    %22: tensor<f32, 3x1> = peer %1, %12
    %23: tensor<i32, 1x2> = peer %2, %12
    %24: registers<f32, 2> = registers {name = "row"}
    load_registers %24, %22, %9, %9, %9, %8, %13, %13 {sizes = [0, 16, 16], layout = register_layout[16x16|r:2@1:1|l:8@1:2,4@0:1|w:4@0:4]}
    store_registers %22, %24, %6, %9, %9, %8, %13, %13 {sizes = [0, 16, 16], layout = register_layout[16x16|r:2@1:1|l:8@1:2,4@0:1|w:4@0:4]}
    elect () {
      mbarrier_expect_tx %5, %9 {bytes = 1024}
      tma_load %21, %3, %9, %5, %9, %9, %9, %6 {bytes = 1024}
      yield
    }
    mbarrier_wait %5, %9, %9
    fence_proxy_async_global
    tma_store %21, %3, %9, %9, %9, %6
    bulk_commit
    bulk_wait {count = 0}
    store_index %23, %6, %7 {semantics = "weak"}
    %30: i32 = load_index %2, %6 {semantics = "weak"}
    store_index %23, %30, %7 {semantics = "relaxed", scope = "gpu"}
)";
  int next = 40;
  for (const char* scope : {"block", "cluster", "gpu", "system"}) {
    text += fmt::format("    fence {{scope = \"{}\"}}\n", scope);
    const auto order = [&](const char* semantics) {
      return fmt::format("semantics = \"{}\", scope = \"{}\"", semantics, scope);
    };
    for (const char* semantics : {"relaxed", "acquire"}) {
      text += fmt::format("    %{}: i32 = load_index %2, %6 {{{}}}\n", next++, order(semantics));
      text += fmt::format("    store_index %23, %{}, %7 {{{}}}\n", next - 1, order("release"));
    }
    for (const char* semantics : {"relaxed", "release"}) {
      text += fmt::format("    reduce_add %23, %6, %10 {{{}}}\n", order(semantics));
    }
    for (const char* semantics : {"relaxed", "acquire", "release", "acq_rel"}) {
      for (const char* read : {"", "    store_index %23, %{}, %7 {{{}}}\n"}) {
        text += fmt::format("    %{}: i32 = atomic_add %23, %6, %10 {{{}}}\n", next++,
                            order(semantics));
        text += fmt::format(fmt::runtime(read), next - 1, order("relaxed"));
      }
    }
    for (const char* compare : {"eq", "ne", "lt", "le", "gt", "ge"}) {
      text += fmt::format("    wait_flag %2, %6, %7 {{compare = \"{}\", {}}}\n", compare,
                          order(compare[0] == 'l' ? "relaxed" : "acquire"));
    }
  }
  return text + "    yield\n  }\n}\n";
}

}  // namespace tilewright::codegen
