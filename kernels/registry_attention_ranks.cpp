#include <vector>

#include "kernels/attention_ranks.h"
#include "kernels/registry_attention.h"
#include "kernels/registry_options.h"
#include "kernels/registry_ranks.h"

namespace tilewright::kernels {
namespace {

SequenceParallelAttention operation_of(const OptionValues& options) {
  SequenceParallelAttention o;
  o.attention = attention_of(options);
  o.ranks = static_cast<int>(options.integer("ranks"));
  o.shards = options.text("shards") == "zig_zag" ? Shards::zig_zag : Shards::contiguous;
  return o;
}

KernelOption shards_option() {
  KernelOption option;
  option.name = "shards";
  option.description =
      "rows that a rank has: a run of all, or with zig_zag two, as far from the "
      "first as from the last";
  option.kind = Kind::choice;
  option.standard = "contiguous";
  option.choices = {"contiguous", "zig_zag"};
  return option;
}

}  // namespace

LibraryKernel sequence_parallel_attention_entry() {
  LibraryKernel kernel = attention_forward_entry();
  kernel.name = "sequence_parallel_attention";
  kernel.description =
      "attention_forward of sequences whose rows are divided among ranks: each has its rows of Q, "
      "K and V, and gets those of O and LSE";
  kernel.over_ranks = true;
  kernel.rules.clear();
  for (KernelOption& option : kernel.options) {
    if (option.name == "queries") option.description = "query rows of a sequence that a rank has";
    if (option.name == "keys") option.description = "key rows of a sequence that a rank has";
    if (option.name == "causal") {
      option.description = "query i of all sees keys up to i + all keys - all queries";
    }
  }
  kernel.options.insert(kernel.options.begin(), {ranks_option(), shards_option()});
  kernel.schedules = {{"sm90", "sm_90a",
                       "attention_forward's sm90, its own keys first, while copy engines push the "
                       "others'",
                       nullptr, [](const OptionValues& options) {
                         SequenceParallelAttention o = operation_of(options);
                         o.attention = with_sm90_blocks(o.attention, {});
                         return sequence_parallel_attention_sm90(o, {});
                       }}};
  kernel.build = nullptr;
  kernel.build_program = [](const OptionValues& options) {
    SequenceParallelAttention o = operation_of(options);
    o.attention = with_tile_blocks(o.attention);
    return sequence_parallel_attention(o, {});
  };
  kernel.check = [](const OptionValues& options) {
    check_attention_ranks(operation_of(options), {"sequence_parallel_attention", {}});
  };
  kernel.reference = [](const OptionValues& options, const std::vector<HostTensor>& inputs) {
    const SequenceParallelAttention o = operation_of(options);
    return sequence_parallel_attention_reference(attention_sizes_of(options), o.ranks, o.shards,
                                                 inputs);
  };
  kernel.floating_operations = [one = kernel.floating_operations](
                                   const OptionValues& options,
                                   const std::vector<HostTensor>& inputs) {
    const auto ranks = static_cast<double>(options.integer("ranks"));
    return ranks * ranks * one(options, inputs);
  };
  return kernel;
}

}  // namespace tilewright::kernels
