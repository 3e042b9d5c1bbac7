#include "kernels/gemm_sm90_plan.h"

#include <algorithm>
#include <string>
#include <utility>

#include "tilewright/plan_case.h"
#include "tilewright/target.h"

namespace tilewright::kernels {
namespace {

constexpr int kPanel = 64;  // 16-bit elements of a swizzled row of shared memory

const TargetLimits& limits() { return target_limits("sm_90a"); }

// Runs of `widest` columns, and narrower ones for the rest; of rows, which a copy takes as they
// come, as few as there can be, of about one length.
SharedPlan plan_shared(const Gemm& g, int widest, DType staged, int others) {
  SharedPlan plan;
  const int blocks = divided(g) / 64 / g.warpgroups;
  int left_over = undivided(g) / g.split;
  if (g.exchanged) {
    const int runs = (left_over + widest - 1) / widest;
    widest = (left_over / 8 + runs - 1) / runs * 8;
    for (; left_over > 0; left_over -= plan.runs.back()) {
      plan.runs.push_back(std::min(widest, left_over));
    }
    plan.staging[widest] = std::min(blocks * runs, 2);
  }
  for (int width = widest; left_over > 0; width /= 2) {
    for (; left_over >= width; left_over -= width) {
      plan.runs.push_back(width);
      plan.staging[width] = std::min(plan.staging[width] + blocks, 2);
    }
  }
  constexpr int kBarriers = 1024, kMost = 8;
  int left = static_cast<int>(limits().shared_bytes) - kBarriers - others;
  if (g.split > 1) left -= g.block_m * g.block_n * size_of(f32);
  for (const auto& [width, count] : plan.staging) {
    left -= 64 * g.warpgroups * width * count * size_of(staged);
  }
  plan.stages = std::min(left / ((g.block_m + g.block_n) * g.block_k * size_of(g.dtype)), kMost);
  return plan;
}

// Rows of 128 bytes. Those that meet in a grid split share a tile by its runs.
int widest_run(const Gemm& g, DType staged) {
  if (!g.grid_split) return 128 / size_of(staged);
  return undivided(g) > 64 ? 32 : 16;
}

}  // namespace

SharedPlan plan_shared(const Gemm& g, const Caller& caller, DType staged, int others) {
  if (undivided(g) % (8 * g.split) != 0) {
    const char* const block = g.exchanged ? "block_m" : "block_n";
    caller.refuse(
        "of " + std::to_string(undivided(g)) + (g.exchanged ? " rows" : " columns") + " each of " +
            std::to_string(g.split) + " parts would store no multiple of 8",
        std::string("take a ") + block + " that is a multiple of " + std::to_string(8 * g.split));
  }
  if (divided(g) % (64 * g.warpgroups) != 0) {
    caller.refuse(std::to_string(g.warpgroups) + " warpgroups divide " +
                      std::to_string(divided(g)) + (g.exchanged ? " columns" : " rows"),
                  "each takes a multiple of 64");
  }
  SharedPlan best;
  for (int widest = widest_run(g, staged); widest >= 8;
       widest = g.exchanged ? widest - 8 : widest / 2) {
    if (g.split > 1 && undivided(g) / g.split % widest != 0) continue;
    SharedPlan narrower = plan_shared(g, widest, staged, others);
    const bool saves_stages = widest >= 16 && best.stages < 4 && narrower.stages > best.stages;
    if (best.runs.empty() || saves_stages) best = std::move(narrower);
  }
  if (best.stages < 2) {
    caller.refuse("tiles of " + std::to_string(g.block_m) + " x " + std::to_string(g.block_n) +
                      ", split by " + std::to_string(g.split) + ", leave shared memory for " +
                      std::to_string(best.stages) + " stages; a product in flight needs 2",
                  "take smaller tiles, or split less");
  }
  return best;
}

namespace {

void check_shape(const Gemm& g, const Caller& caller) {
  const int depth = static_cast<int>(limits().product_depth_bytes) / size_of(g.dtype);
  if (g.block_k % depth != 0) {
    caller.refuse("block_k is " + std::to_string(g.block_k),
                  "take a multiple of " + std::to_string(depth));
  }
  if (undivided(g) > limits().product_columns) {
    const char* const name = g.exchanged ? "block_m" : "block_n";
    caller.refuse(std::string(name) + " is " + std::to_string(undivided(g)),
                  "take at most " + std::to_string(limits().product_columns));
  }
  // Beside that of the warp that loads.
  const std::int64_t groups = limits().threads / limits().group_threads() - 1;
  if (g.warpgroups > groups) {
    caller.refuse(std::to_string(g.warpgroups) + " warpgroups",
                  "take at most " + std::to_string(groups));
  }
  const std::int64_t cluster = limits().cluster;
  if (g.share_a > cluster || g.share_b > cluster || g.split > cluster ||
      g.share_a * g.share_b * g.split > cluster) {
    const std::string most = std::to_string(cluster);
    caller.refuse("share_a " + std::to_string(g.share_a) + ", share_b " +
                      std::to_string(g.share_b) + " and split " + std::to_string(g.split) +
                      " make a cluster of more than " + most + " CTAs",
                  "take factors whose product is at most " + most);
  }
}

}  // namespace

void check_tiles(const Gemm& g, const Caller& caller) {
  caller.check_positive("block_m", g.block_m);
  caller.check_positive("block_n", g.block_n);
  caller.check_positive("block_k", g.block_k);
  if (!is_float(g.dtype)) {
    caller.refuse("dtype is " + std::string(name_of(g.dtype)), "take bf16, f16, f32 or f8e4m3");
  }
  if (g.dtype == f8e4m3 && (g.a_along_m || g.b_along_n)) {
    caller.refuse("an operand of f8e4m3 is contiguous along another axis than k",
                  "there is no such product: pass A {m, k} and B {n, k}");
  }
}

void check_sm90(const Gemm& g, const Caller& caller) {
  check_tiles(g, caller);
  caller.check_positive("warpgroups", g.warpgroups);
  caller.check_positive("share_a", g.share_a);
  caller.check_positive("share_b", g.share_b);
  caller.check_positive("split", g.split);
  const auto copied = [&](const char* name, int rows, int sharing) {
    if (sharing > 1 && rows % (8 * sharing) != 0) {
      caller.refuse(
          std::to_string(sharing) + " CTAs share tiles of " + std::to_string(rows) + " rows",
          "each fetches a multiple of 8 of them");
    }
    if (rows / sharing > limits().copy_extent) {
      caller.refuse(std::string(name) + " is " + std::to_string(rows),
                    "take at most " + std::to_string(limits().copy_extent) +
                        " for each CTA that shares it: one copy's rows");
    }
  };
  copied("block_m", g.block_m, g.share_a);
  copied("block_n", g.block_n, g.share_b);
  const auto in_panels = [&](const char* name, int size, int sharing) {
    if (size / sharing % kPanel == 0) return;
    caller.refuse(std::string(name) + " is " + std::to_string(size) + ", of which each of " +
                      std::to_string(sharing) + " CTAs loads a share along memory",
                  "let each load a multiple of " + std::to_string(kPanel));
  };
  if (plan_case("A along m", g.a_along_m)) in_panels("block_m", g.block_m, g.share_a);
  if (plan_case("B along n", g.b_along_n)) in_panels("block_n", g.block_n, g.share_b);
  if (g.dtype != bf16 && g.dtype != f16 && g.dtype != f8e4m3) {
    caller.refuse("there is no product of " + std::string(name_of(g.dtype)),
                  "take bf16, f16 or f8e4m3; the target cpu takes f32 too");
  }
  if (g.grid_split && g.split > 1) {
    caller.refuse("split is " + std::to_string(g.split) + ", and grid_split is set",
                  "divide k among the CTAs of a cluster or among clusters");
  }
  check_shape(g, caller);
}

}  // namespace tilewright::kernels
