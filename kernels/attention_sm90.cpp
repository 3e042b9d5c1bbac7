#include "kernels/attention_sm90_forward.h"

namespace tilewright::kernels {
namespace {

struct PartsParameters : AttentionParameters {
  PartsParameters(Kernel& kernel, const Attention& a)
      : AttentionParameters(kernel, a), parts(kernel, a) {}
  SplitMemory parts;
};

// The keys of the last tiles are divided.
class PartsOrder : public BatchOrder {
 public:
  using Parameters = PartsParameters;
  static constexpr bool kHasNeighbours = false;

  PartsOrder(const PartsParameters& p, const Attention& a, const TilePlan& plan)
      : BatchOrder(p, a, plan),
        split_(SplitTiles(p.parts, a, BatchOrder::runs(), ceil_div(p.keys, a.block_k))) {}
  const std::optional<SplitTiles>& split() const { return split_; }
  Dim runs() const { return split_->runs(); }
  Run run(const Index& number) const {
    Run run = BatchOrder::run(split_->tile(number));
    run.first.part = split_->part(number);
    return run;
  }

 private:
  std::optional<SplitTiles> split_;
};

template <typename Order>
Kernel forward_sm90(const Attention& a, const Caller& caller) {
  check_attention(a, caller);
  const Sm90Plan plan = sm90_plan(a, Order::kHasNeighbours, caller);
  Kernel kernel(caller.function);
  Forward<Order>(kernel, a, plan);
  return kernel;
}

}  // namespace

Kernel attention_forward_sm90(const Attention& a, SourceLocation where) {
  const Caller caller{"attention_forward_sm90", where};
  if (a.in_parts) return forward_sm90<PartsOrder>(a, caller);
  return a.in_pairs ? forward_sm90<PairOrder>(a, caller) : forward_sm90<BatchOrder>(a, caller);
}

Kernel attention_varlen_forward_sm90(const Attention& a, SourceLocation where) {
  const Caller caller{"attention_varlen_forward_sm90", where};
  if (a.in_pairs) {
    caller.refuse("in_pairs is set", "leave it out: pairs take sequences of one length");
  }
  if (a.in_parts || a.few_tiles) {
    caller.refuse(a.in_parts ? "in_parts is set" : "few_tiles is set",
                  "leave it out: it is for sequences of one length");
  }
  return forward_sm90<PackedOrder>(a, caller);
}

}  // namespace tilewright::kernels
