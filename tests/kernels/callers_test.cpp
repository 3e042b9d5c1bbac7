#include <gtest/gtest.h>

#include <limits>

#include "language/misuse.h"
#include "tilewright/kernels/attention.h"
#include "tilewright/kernels/gemm.h"

// What functions of the library refuse is shown at their callers' lines.
namespace tilewright::kernels {
namespace {

using test::misuse;

TEST(Callers, OfAttention) {
  const Attention heads{.heads = 6, .kv_heads = 4};
  const std::string divisor = ": heads 6 is not a multiple of kv_heads 4";
  misuse("attention_forward(", {"attention_forward" + divisor, "fix: set kv_heads to a divisor"},
         [&] { attention_forward(heads); });
  misuse("attention_varlen_forward(", {"attention_varlen_forward" + divisor},
         [&] { attention_varlen_forward(heads); });
  misuse("attention_forward_sm90(", {"attention_forward_sm90" + divisor},
         [&] { attention_forward_sm90(with_sm90_blocks(heads)); });
  misuse("attention_varlen_forward_sm90(", {"attention_varlen_forward_sm90" + divisor},
         [&] { attention_varlen_forward_sm90(with_sm90_varlen_blocks(heads)); });
}

TEST(Callers, OfAttentionThatCannotBe) {
  const auto refused = [](const Attention& a, const std::string& what) {
    misuse("attention_forward(", {"attention_forward: " + what, "fix: "},
           [&] { attention_forward(a); });
  };
  refused({.heads = 0}, "heads is 0");
  refused({.kv_heads = -1}, "kv_heads is -1");
  refused({.dim = 0}, "dim is 0");
  refused({.block_k = 0}, "block_k is 0");
  refused({.l2_bytes = 0}, "l2_bytes is 0");
  refused({.causal = true, .window = -1}, "window is -1");
  refused({.window = 4}, "window is 4, and causal is false");
  refused({.dtype = i32}, "dtype is i32");
  refused({.dtype = f8e4m3}, "dtype is f8e4m3");
  refused({.scale = -1}, "scale is -1");
  refused({.scale = std::numeric_limits<double>::quiet_NaN()}, "scale is nan");
  refused({.softcap = std::numeric_limits<double>::infinity()}, "softcap is inf");
}

TEST(Callers, OfAttentionForHopper) {
  const auto refused = [](const Attention& a, const std::vector<std::string>& parts) {
    misuse("attention_forward_sm90(", parts, [&] { attention_forward_sm90(a); });
    misuse("attention_varlen_forward_sm90(", parts, [&] { attention_varlen_forward_sm90(a); });
  };
  refused({.dim = 40}, {"dim is 40", "fix: take a multiple of 16 up to 256"});
  refused({.dim_v = 272}, {"dim_v is 272", "or take the target cpu"});
  refused({.dtype = f8e4m3}, {"dtype is f8e4m3", "fix: take bf16"});
  refused({.dtype = f32}, {"dtype is f32", "fix: take bf16 or f16"});
  refused({.block_q = 96}, {"block_q is 96", "fix: take 64, 128 or 192"});
  refused({.block_q = 256}, {"block_q is 256"});
  refused({.block_k = 24}, {"block_k is 24", "fix: take a multiple of 16 up to 256"});
  refused({.block_k = 272}, {"block_k is 272"});
  refused({.dim = 256, .dim_v = 256, .block_k = 256}, {"do not fit", "with_sm90_blocks"});
  misuse("with_sm90_blocks(", {"attention for sm_90a: dim is 8"},
         [] { with_sm90_blocks({.dim = 8}); });
  misuse("with_sm90_varlen_blocks(", {"dim_v is 0"}, [] { with_sm90_varlen_blocks({.dim_v = 0}); });
}

TEST(Callers, OfGemm) {
  misuse("gemm(", {"gemm: block_m is 0", "fix: block_m is at least 1"},
         [] { gemm({.block_m = 0}); });
  misuse("gemm(", {"gemm: dtype is i32", "fix: take bf16"}, [] { gemm({.dtype = i32}); });
  const auto refused = [](const Gemm& g, const std::string& what) {
    misuse("gemm_sm90(", {"gemm_sm90: " + what, "fix: "}, [&] { gemm_sm90(g); });
  };
  refused({.block_n = -8}, "block_n is -8");
  refused({.block_k = 0}, "block_k is 0");
  refused({.warpgroups = 0}, "warpgroups is 0");
  refused({.share_a = -1}, "share_a is -1");
  refused({.split = 0}, "split is 0");
  refused({.block_n = 32, .split = 8}, "of 32 columns each of 8 parts");
  refused({.block_m = 96}, "2 warpgroups divide 96 rows");
  refused({.split = 2}, "tiles of 128 x 256, split by 2");  // too many sums to exchange
  refused({.share_b = 5}, "5 CTAs share tiles of 256 rows");
  refused({.dtype = f32}, "there is no product of f32");
  misuse("gemm_sm90(", {"fix: take bf16, f16 or f8e4m3; the target cpu takes f32 too"},
         [] { gemm_sm90({.dtype = f32}); });
  refused({.block_k = 24}, "block_k is 24");
  refused({.dtype = f8e4m3, .block_k = 16}, "block_k is 16");
  refused({.block_n = 264}, "block_n is 264");
  refused({.block_m = 264, .block_n = 64, .warpgroups = 1, .exchanged = true}, "block_m is 264");
  refused({.block_m = 512, .block_n = 32}, "block_m is 512");
  refused({.block_m = 512, .block_n = 32, .warpgroups = 8, .share_a = 2}, "8 warpgroups");
  refused({.share_a = 8, .share_b = 4}, "share_a 8, share_b 4 and split 1 make a cluster");
}

}  // namespace
}  // namespace tilewright::kernels
