#include "kernels/attention_parameters.h"

#include <string>
#include <utility>

#include "tilewright/plan_case.h"

namespace tilewright::kernels {
namespace {

// A number that stands for a default at 0.
void check_factor(const char* name, double value, const char* none, const Caller& caller) {
  if (value >= 0 && std::isfinite(value)) return;
  caller.refuse(std::string(name) + " is " + std::to_string(value),
                std::string(name) + " is positive, or 0 for " + none);
}

double scale_of(const Attention& a) { return a.scale > 0 ? a.scale : 1 / std::sqrt(a.dim); }

Tensor declare_keys(Kernel& kernel, const char* name, const Attention& a, std::vector<Dim> shape,
                    KeysFrom from) {
  return from == KeysFrom::ranks ? kernel.symmetric(name, a.dtype, std::move(shape))
                                 : kernel.in(name, a.dtype, std::move(shape));
}

}  // namespace

void check_attention(const Attention& a, const Caller& caller) {
  caller.check_positive("heads", a.heads);
  caller.check_positive("kv_heads", a.kv_heads);
  caller.check_positive("dim", a.dim);
  caller.check_positive("dim_v", a.dim_v);
  caller.check_positive("block_q", a.block_q);
  caller.check_positive("block_k", a.block_k);
  caller.check_positive("l2_bytes", a.l2_bytes);
  if (a.heads % a.kv_heads != 0) {
    caller.refuse("heads " + std::to_string(a.heads) + " is not a multiple of kv_heads " +
                      std::to_string(a.kv_heads),
                  "set kv_heads to a divisor of heads");
  }
  if (a.window < 0) {
    caller.refuse("window is " + std::to_string(a.window), "0 stands for no window");
  }
  if (a.window > 0 && !a.causal) {
    caller.refuse("window is " + std::to_string(a.window) + ", and causal is false",
                  "a window is a part of the causal mask: set causal = true");
  }
  check_factor("scale", a.scale, "1 / sqrt(dim)", caller);
  check_factor("softcap", a.softcap, "none", caller);
  if (a.dtype != f32 && a.dtype != f16 && a.dtype != bf16) {
    caller.refuse("dtype is " + std::string(name_of(a.dtype)), "take bf16, f16 or f32");
  }
}

void check_dims(const Attention& a, int widest, const Caller& caller,
                const std::string& otherwise) {
  for (const auto& [name, dim] : {std::pair("dim", a.dim), {"dim_v", a.dim_v}}) {
    if (dim > 0 && dim % 16 == 0 && dim <= widest) continue;
    caller.refuse(std::string(name) + " is " + std::to_string(dim),
                  "take a multiple of 16 up to " + std::to_string(widest) + otherwise);
  }
}

void check_elements(const Attention& a, const Caller& caller) {
  if (size_of(a.dtype) == 2) return;
  caller.refuse("dtype is " + std::string(name_of(a.dtype)),
                std::string("take bf16 or f16") + kOtherTarget);
}

int l2_bytes(const Attention& a) {
  plan_case("less L2 than is measured", a.l2_bytes < Attention().l2_bytes);
  return a.l2_bytes;
}

Mask attention_mask(const Sequence& queries, const Sequence& keys, bool is_causal, int window) {
  plan_case("window", window > 0);
  return plan_case("causal", is_causal) ? causal(queries, keys, window) : everything();
}

AttentionScores::AttentionScores(const Attention& a)
    : group(a.heads / a.kv_heads),
      scale(a.softcap > 0 ? a.softcap : scale_of(a)),
      product_scale(scale_of(a)),
      softcap_(a.softcap),
      heads_(a.heads) {}

bool AttentionScores::is_capped() const { return plan_case("capped scores", softcap_ > 0); }

// The softmax scales what it is given, so that the cap's own factor costs nothing.
Tile AttentionScores::capped(const Tile& products) const {
  return is_capped() ? tanh(products * (product_scale / softcap_)) : products;
}

std::optional<Tile> AttentionScores::sink(const Index& head) const {
  return sinks(Dim(heads_).block(head, 1), 1);
}

std::optional<Tile> AttentionScores::sinks(const Block& heads, std::int64_t rows) const {
  if (!sinks_) return std::nullopt;
  const std::int64_t count = heads.size();
  const Tile of_heads = load((*sinks_)(heads)).reshape({1, count});
  if (plan_case("a sink of one head", count == 1)) return of_heads;
  return (zeros({rows / count, count}) + of_heads).reshape({rows, 1});
}

void AttentionScores::declare_sinks(Kernel& kernel, const Attention& a) {
  if (plan_case("sinks", a.sinks)) sinks_ = kernel.in("sinks", f32, {a.heads});
}

AttentionParameters::AttentionParameters(Kernel& kernel, const Attention& a, KeysFrom from)
    : AttentionScores(a),
      BatchShapes(kernel, a),
      Q(kernel.in("Q", a.dtype, of_queries(a.dim))),
      K(declare_keys(kernel, "K", a, of_keys(a.dim), from)),
      V(declare_keys(kernel, "V", a, of_keys(a.dim_v), from)),
      O(kernel.out("O", a.dtype, of_queries(a.dim_v))),
      LSE(kernel.out("LSE", f32, of_rows())),
      mask(attention_mask(queries, keys, a.causal, a.window)) {
  declare_sinks(kernel, a);
}

AttentionParameters::AttentionParameters(Kernel& kernel, const Attention& a,
                                         const BatchShapes& shapes, const Tensors& tensors)
    : AttentionScores(a),
      BatchShapes(shapes),
      Q(tensors.Q),
      K(tensors.K),
      V(tensors.V),
      O(tensors.O),
      LSE(tensors.LSE),
      mask(attention_mask(queries, keys, a.causal, a.window)) {
  declare_sinks(kernel, a);
}

VarlenParameters::VarlenParameters(Kernel& kernel, const Attention& a, KeysFrom from)
    : AttentionScores(a),
      PackedShapes(kernel, a),
      Q(kernel.in("Q", a.dtype, of_queries(a.dim))),
      K(declare_keys(kernel, "K", a, of_keys(a.dim), from)),
      V(declare_keys(kernel, "V", a, of_keys(a.dim_v), from)),
      cu_seqlens_q(kernel.in("cu_seqlens_q", i32, of_first_rows())),
      cu_seqlens_k(kernel.in("cu_seqlens_k", i32, of_first_rows())),
      O(kernel.out("O", a.dtype, of_queries(a.dim_v))),
      LSE(kernel.out("LSE", f32, of_rows())),
      queries(total_queries, cu_seqlens_q),
      keys(total_keys, cu_seqlens_k),
      causal_(a.causal),
      window_(a.window) {
  declare_sinks(kernel, a);
}

Mask VarlenParameters::mask(const Sequence& queries, const Sequence& keys) const {
  return attention_mask(queries, keys, causal_, window_);
}

}  // namespace tilewright::kernels
