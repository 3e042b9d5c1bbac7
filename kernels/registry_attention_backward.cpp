#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/attention_parameters.h"
#include "kernels/reference.h"
#include "kernels/registry_attention.h"
#include "kernels/registry_options.h"
#include "kernels/schedule_rules.h"

namespace tilewright::kernels {
namespace {

// Turns the entry of the forward pass into that of its gradients. If it is `packed`, the vectors
// cu_seqlens_q and cu_seqlens_k follow Q, K and V.
LibraryKernel backward_of(LibraryKernel kernel, bool packed) {
  kernel.backward_of = kernel.name;
  kernel.blocks.clear();
  for (KernelOption& option : kernel.options) {
    if (option.name == "l2_bytes") option = l2_option("524288");
  }
  const std::size_t inputs = packed ? 5 : 3;
  const LibraryTensor O = kernel.tensors[inputs], LSE = kernel.tensors[inputs + 1];
  const LibraryTensor sinks = kernel.tensors.back();
  const auto forward = kernel.reference;
  // O and LSE are computed from the inputs before them, so that they fit these.
  const auto output_of_forward = [=](LibraryTensor tensor, std::size_t number) {
    tensor.is_output = false;
    tensor.values = [=](const OptionValues& o, std::uint64_t, const std::vector<HostTensor>& all) {
      const std::size_t count = inputs + (o.boolean("sinks") ? 1 : 0);
      return HostTensor::from_values(
          dtype_of(tensor, o), shape_of(tensor, o),
          forward(o, {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count)})[number]);
    };
    return tensor;
  };
  const auto as = [](LibraryTensor tensor, const char* name, bool is_output) {
    tensor.name = name;
    tensor.is_output = is_output;
    return tensor;
  };
  // No tile of the gradients has rows of several heads, so that more heads make no other code.
  for (KernelOption& option : kernel.options) {
    if (option.name == "heads") option.worth_trying = {"8", "6"};
  }
  kernel.options.push_back(flag_option("lse_gradient", "LSE has a gradient too, dLSE"));
  std::vector<LibraryTensor> tensors(kernel.tensors.begin(),
                                     kernel.tensors.begin() + static_cast<std::ptrdiff_t>(inputs));
  LibraryTensor dLSE = as(LSE, "dLSE", false);
  dLSE.option = "lse_gradient";
  tensors.insert(tensors.end(),
                 {sinks, output_of_forward(O, 0), output_of_forward(LSE, 1), as(O, "dO", false),
                  dLSE, as(tensors[0], "dQ", true), as(tensors[1], "dK", true),
                  as(tensors[2], "dV", true), as(sinks, "dsinks", true)});
  kernel.tensors = std::move(tensors);
  kernel.schedules.clear();
  kernel.build = nullptr;
  kernel.reference = [=](const OptionValues& o, const std::vector<HostTensor>& given) {
    const HostTensor none = HostTensor::zeros(f32, {0});
    const bool has_sinks = o.boolean("sinks");
    const std::size_t at = inputs + (has_sinks ? 1 : 0);  // of O, LSE and dO
    const std::vector<HostTensor> offsets(given.begin() + 3,
                                          given.begin() + static_cast<std::ptrdiff_t>(inputs));
    return attention_backward_reference(attention_sizes_of(o),
                                        {given[0], given[1], given[2], given[at + 2],
                                         o.boolean("lse_gradient") ? given[at + 3] : none,
                                         has_sinks ? given[inputs] : none, given[at]},
                                        offsets);
  };
  const auto floating_operations = kernel.floating_operations;
  kernel.floating_operations = [=](const OptionValues& o, const std::vector<HostTensor>& given) {
    return floating_operations(o, given) * attention_backward_products(o);
  };
  return kernel;
}

// Those of the explicit kernels, the best first.
std::vector<LibrarySchedule> adding_schedules(Program (*make)(const Attention&, bool, Order,
                                                              KeySums, SourceLocation)) {
  const auto schedule = [make](const char* name, const char* description, Order order,
                               KeySums keys = KeySums::in_turn) {
    LibrarySchedule adding{name, "sm_90a", description, nullptr};
    adding.build_program = [make, order, keys](const OptionValues& options) {
      return make(with_sm90_backward_blocks(attention_of(options)), options.boolean("lse_gradient"),
                  order, keys, {});
    };
    return adding;
  };
  return {
      schedule("ordered",
               "two warpgroups with dK and dV in registers, above 128 columns pairs of CTAs that "
               "share dQ; dQ is summed in the order of the keys: the same bits in every run; bf16 "
               "and f16, dims up to 256, multiples of 16; where shared heads leave few blocks of "
               "keys, parts of the heads add dK and dV to one f32 workspace, in their order",
               Order::blocks),
      schedule("atomic",
               "the same, but sums are added in any order, so that their last bits differ from "
               "run to run",
               Order::any),
      schedule("split",
               "as ordered, but parts of shared heads keep f32 dK and dV each, which a kernel of "
               "its own adds: as many workspaces as parts, and no waits for dK and dV",
               Order::blocks, KeySums::apart)};
}

std::vector<LibrarySchedule> sm100_backward_schedules(Program (*make)(const Attention&, bool, Order,
                                                                      KeySums, SourceLocation)) {
  const auto schedule = [make](const char* name, const char* description,
                               Attention (*with_blocks)(Attention), Order order,
                               KeySums keys = KeySums::in_turn) {
    LibrarySchedule adding{name, "sm_100a", description, nullptr};
    adding.build_program = [make, with_blocks, order, keys](const OptionValues& options) {
      return make(with_blocks(attention_of(options)), options.boolean("lse_gradient"), order, keys,
                  {});
    };
    return adding;
  };
  return {
      schedule("sm100",
               "roles that load, multiply, compute P and dS, and add dQ to memory in the order "
               "of the keys; dK and dV in tensor memory; bf16 and f16, dims up to 128 in "
               "multiples of 16; parts of shared heads as `ordered` has them",
               with_sm100_backward_blocks, Order::blocks),
      schedule("sm100_atomic",
               "the same, but sums are added in any order, so that their last bits differ from "
               "run to run",
               with_sm100_backward_blocks, Order::any),
      schedule("sm100_split",
               "as sm100, but parts of shared heads keep f32 dK and dV each, which a kernel of "
               "its own adds",
               with_sm100_backward_blocks, Order::blocks, KeySums::apart),
      schedule("sm100_pairs",
               "as sm100, by pairs of CTAs with 256 keys that exchange dS, so that each adds dQ "
               "of half of the queries; dims 64 and 128",
               with_sm100_backward_pair_blocks, Order::blocks),
      schedule("sm100_pairs_atomic", "the same, but sums are added in any order",
               with_sm100_backward_pair_blocks, Order::any)};
}

}  // namespace

double attention_backward_products(const OptionValues& options) {
  const AttentionSizes s = attention_sizes_of(options);
  return static_cast<double>(3 * s.dim + 2 * s.dim_v) / static_cast<double>(s.dim + s.dim_v);
}

LibraryKernel attention_backward_entry() {
  LibraryKernel kernel = backward_of(attention_forward_entry(), false);
  kernel.name = "attention_backward";
  kernel.rules = schedule_rules(kernel.name);
  kernel.description =
      "dQ, dK and dV of attention_forward, from dO; by default the same bits in every run";
  kernel.schedules = adding_schedules(attention_backward_sm90);
  for (LibrarySchedule& schedule : sm100_backward_schedules(attention_backward_sm100)) {
    kernel.schedules.push_back(std::move(schedule));
  }
  LibrarySchedule in_parts{"cpu", "cpu",
                           "five products instead of seven: parts of the keys have f32 sums of dQ, "
                           "which are added behind",
                           nullptr};
  in_parts.build_program = [](const OptionValues& options) {
    return attention_backward_in_parts(with_cpu_backward_blocks(attention_of(options)),
                                       options.boolean("lse_gradient"), {});
  };
  kernel.schedules.push_back(std::move(in_parts));
  kernel.build_program = [](const OptionValues& options) {
    return attention_backward(with_backward_blocks(attention_of(options)),
                              options.boolean("lse_gradient"), {});
  };
  kernel.check = [](const OptionValues& options) {
    check_attention(attention_of(options), {"attention_backward", {}});
  };
  return kernel;
}

LibraryKernel attention_varlen_backward_entry() {
  LibraryKernel kernel = backward_of(attention_varlen_forward_entry(), true);
  kernel.name = "attention_varlen_backward";
  kernel.description = "attention_backward of packed sequences, each with its own lengths";
  kernel.rules = schedule_rules(kernel.name);
  kernel.schedules = adding_schedules(attention_varlen_backward_sm90);
  for (LibrarySchedule& schedule : sm100_backward_schedules(attention_varlen_backward_sm100)) {
    kernel.schedules.push_back(std::move(schedule));
  }
  kernel.build_program = [](const OptionValues& options) {
    return attention_varlen_backward(with_backward_blocks(attention_of(options)),
                                     options.boolean("lse_gradient"), {});
  };
  kernel.check = [](const OptionValues& options) {
    check_attention(attention_of(options), {"attention_varlen_backward", {}});
  };
  return kernel;
}

}  // namespace tilewright::kernels
