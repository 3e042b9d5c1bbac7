#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/attention_ranks.h"
#include "kernels/registry_attention.h"
#include "kernels/registry_options.h"
#include "kernels/registry_ranks.h"
#include "kernels/schedule_rules.h"

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

// Of each head, of one sequence that has all rows.
double scores_of_ranks(const OptionValues& o) {
  const auto ranks = static_cast<double>(o.integer("ranks"));
  return ranks * ranks * static_cast<double>(o.integer("queries")) *
         static_cast<double>(o.integer("keys"));
}

// What the entries make of those of one GPU.
void divide_among_ranks(LibraryKernel& kernel) {
  kernel.over_ranks = true;
  kernel.rules.clear();
  kernel.build = nullptr;
  kernel.options.insert(kernel.options.begin(), {ranks_option(), shards_option()});
  for (LibraryTensor& tensor : kernel.tensors) {
    if (tensor.name != "sinks") continue;  // the same in every rank
    tensor.values = [](const OptionValues& o, std::uint64_t seed, const auto&) {
      return HostTensor::random_normal(f32, {o.integer("heads")}, seed);
    };
  }
}

void describe(LibraryKernel& kernel, const std::string& option, const char* description) {
  for (KernelOption& each : kernel.options) {
    if (each.name == option) each.description = description;
  }
}

// An input that is what the forward pass makes of Q, K, V, of packed sequences where they begin,
// and the sinks, the first tensors of all ranks.
void fit_forward(LibraryTensor& tensor, const LibraryKernel& forward, std::size_t output) {
  tensor.values = nullptr;
  const auto first_output =
      std::find_if(forward.tensors.begin(), forward.tensors.end(),
                   [](const LibraryTensor& each) { return each.name == "O"; });
  const auto inputs_of = static_cast<std::size_t>(first_output - forward.tensors.begin());
  tensor.values_of_ranks = [tensor, reference = forward.reference, output, inputs_of](
                               const OptionValues& o, const std::vector<HostTensor>& before) {
    const auto ranks = static_cast<std::size_t>(o.integer("ranks"));
    const std::size_t of_rank = before.size() / ranks;
    std::vector<HostTensor> inputs, values;
    const std::size_t count = inputs_of + (o.boolean("sinks") ? 1 : 0);
    for (std::size_t i = 0; i < before.size(); ++i) {
      if (i % of_rank < count) inputs.push_back(before[i]);
    }
    const std::vector<std::vector<double>> outputs = reference(o, inputs);
    for (std::size_t i = output; i < outputs.size(); i += 2) {
      values.push_back(
          HostTensor::from_values(dtype_of(tensor, o), shape_of(tensor, o), outputs[i]));
    }
    return values;
  };
}

LibrarySchedule gathering(std::function<Program(const OptionValues&)> build) {
  return {"sm90", "sm_90a",
          "the kernel of one GPU's sm90, its own keys first, while warps of it push them to others",
          nullptr, std::move(build)};
}
LibrarySchedule gathering_by_copies(std::function<Program(const OptionValues&)> build) {
  return {"sm90_copied", "sm_90a", "the same kernel, while copy engines bring the others' keys",
          nullptr, std::move(build)};
}

// `forward`: that of the same sequences over ranks.
LibraryKernel gradients_over_ranks(const char* name, LibraryKernel kernel,
                                   const LibraryKernel& forward, bool is_packed) {
  kernel.name = name;
  kernel.description = "gradients of " + forward.name +
                       ": each rank has its rows of what the forward pass took and gave, and of "
                       "dO, and gets those of dQ, dK and dV";
  kernel.backward_of = {};  // whose gradients are checked on one GPU
  kernel.schedules.clear();
  divide_among_ranks(kernel);
  for (KernelOption& option : kernel.options) {
    for (const KernelOption& each : forward.options) {
      if (each.name == option.name) option.description = each.description;
    }
  }
  for (LibraryTensor& tensor : kernel.tensors) {
    if (tensor.name == "O") fit_forward(tensor, forward, 0);
    if (tensor.name == "LSE") fit_forward(tensor, forward, 1);
    for (const LibraryTensor& each : forward.tensors) {
      if (each.name == tensor.name && is_packed && each.dtype == i32) tensor = each;
    }
  }
  kernel.check = [name](const OptionValues& options) {
    check_attention_ranks(operation_of(options), {name, {}});
  };
  kernel.reference = [is_packed](const OptionValues& options,
                                 const std::vector<HostTensor>& inputs) {
    const SequenceParallelAttention o = operation_of(options);
    return sequence_parallel_attention_backward_reference(
        attention_sizes_of(options), o.ranks, o.shards, o.attention.sinks, inputs, is_packed);
  };
  const auto operations = forward.floating_operations;
  kernel.floating_operations = [operations](const OptionValues& o,
                                            const std::vector<HostTensor>& inputs) {
    return operations(o, inputs) * attention_backward_products(o);
  };
  return kernel;
}

// Programs of the tile level alone.
using OfRing = Program (*)(const SequenceParallelAttention&, SourceLocation);
using GradientsOfRing = Program (*)(const SequenceParallelAttention&, bool, SourceLocation);
std::function<Program(const OptionValues&)> built_by(GradientsOfRing make) {
  return [make](const OptionValues& options) {
    SequenceParallelAttention o = operation_of(options);
    o.attention = with_backward_blocks(o.attention);
    return make(o, options.boolean("lse_gradient"), {});
  };
}

LibrarySchedule by_heads(GradientsOfRing make) {
  return {"sm90", "sm_90a",
          "the kernels of one GPU's ordered schedule on each rank's own heads, between two "
          "exchanges; in a ring where kv_heads is no multiple of ranks",
          nullptr, [make](const OptionValues& options) {
            SequenceParallelAttention o = operation_of(options);
            o.attention = divides_heads(o) ? with_sm90_backward_blocks(o.attention)
                                           : with_backward_blocks(o.attention);
            return make(o, options.boolean("lse_gradient"), {});
          }};
}

LibrarySchedule of_all_heads(GradientsOfRing make) {
  return {
      "sm90_heads", "sm_90a",
      "one kernel of all own heads, which waits for each head of keys to come, and sends "
      "gradients straight to their rows' owners; dims up to 128, kv_heads a multiple of ranks, "
      "no sinks, keys a multiple of 256 and queries of 128, of 256 in zig-zag and dims up to 64",
      nullptr, [make](const OptionValues& options) {
        SequenceParallelAttention o = operation_of(options);
        o.attention = with_sm90_backward_blocks(o.attention);
        return make(o, options.boolean("lse_gradient"), {});
      }};
}

LibraryKernel in_ring(LibraryKernel kernel, const char* name) {
  kernel.description = kernel.name + " with memory for the keys of two ranks: they go round";
  kernel.name = name;
  kernel.schedules.clear();
  kernel.rules.clear();
  kernel.check = [name](const OptionValues& options) {
    check_attention_ranks(operation_of(options), {name, {}});
  };
  return kernel;
}
LibraryKernel in_ring(LibraryKernel kernel, const char* name, OfRing make) {
  kernel = in_ring(std::move(kernel), name);
  kernel.build_program = [make](const OptionValues& options) {
    SequenceParallelAttention o = operation_of(options);
    o.attention = with_tile_blocks(o.attention);
    return make(o, {});
  };
  return kernel;
}
LibraryKernel in_ring(LibraryKernel kernel, const char* name, GradientsOfRing make) {
  kernel = in_ring(std::move(kernel), name);
  kernel.build_program = built_by(make);
  return kernel;
}

}  // namespace

LibraryKernel sequence_parallel_attention_entry() {
  LibraryKernel kernel = attention_forward_entry();
  kernel.name = "sequence_parallel_attention";
  kernel.blocks.clear();
  kernel.description =
      "attention_forward of sequences whose rows are divided among ranks: each has its rows of Q, "
      "K and V, and gets those of O and LSE";
  divide_among_ranks(kernel);
  describe(kernel, "queries", "query rows of a sequence that a rank has");
  describe(kernel, "keys", "key rows of a sequence that a rank has");
  describe(kernel, "causal", "query i of all sees keys up to i + all keys - all queries");
  kernel.schedules = {gathering([](const OptionValues& options) {
    SequenceParallelAttention o = operation_of(options);
    o.attention = with_sm90_blocks(o.attention, {});
    return sequence_parallel_attention_sm90(o, {});
  })};
  kernel.schedules.push_back(gathering_by_copies([](const OptionValues& options) {
    SequenceParallelAttention o = operation_of(options);
    o.attention = with_sm90_blocks(o.attention, {});
    return sequence_parallel_attention_copied_sm90(o, {});
  }));
  kernel.schedules.push_back(
      {"sm90_heads", "sm_90a",
       "each rank attends with its own heads, group by group as all rows of them come, and sends "
       "tiles of O back; heads and kv_heads are multiples of ranks, or kv_heads a divisor",
       nullptr, [](const OptionValues& options) {
         SequenceParallelAttention o = operation_of(options);
         o.attention = with_sm90_blocks(o.attention, {});
         return sequence_parallel_attention_heads_sm90(o, {});
       }});
  kernel.rules = schedule_rules(kernel.name);
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
  kernel.floating_operations = [](const OptionValues& o, const std::vector<HostTensor>&) {
    return attention_operations(o, scores_of_ranks(o) * static_cast<double>(o.integer("batch")));
  };
  return kernel;
}

LibraryKernel sequence_parallel_varlen_attention_entry() {
  LibraryKernel kernel = attention_varlen_forward_entry();
  kernel.name = "sequence_parallel_varlen_attention";
  kernel.description =
      "attention_varlen_forward of packed axes that are divided among ranks, wherever sequences "
      "begin";
  // The sum of the sequences' lengths is that of all ranks' rows.
  kernel.options.resize(kernel.options.size() - 2);
  divide_among_ranks(kernel);
  describe(kernel, "queries", "query rows of all sequences together that a rank has");
  describe(kernel, "keys", "key rows of all sequences together that a rank has");
  const auto offsets_of = [](const char* rows) {
    return [rows](const OptionValues& o, std::uint64_t seed, const std::vector<HostTensor>&) {
      return random_offsets(o.integer("batch"), o.integer("ranks") * o.integer(rows), seed);
    };
  };
  for (LibraryTensor& tensor : kernel.tensors) {
    tensor.lengths.clear();
    if (tensor.name == "cu_seqlens_q") tensor.values = offsets_of("queries");
    if (tensor.name == "cu_seqlens_k") tensor.values = offsets_of("keys");
  }
  kernel.schedules = {gathering([](const OptionValues& options) {
    SequenceParallelAttention o = operation_of(options);
    o.attention = with_sm90_varlen_blocks(o.attention, {});
    return sequence_parallel_varlen_attention_sm90(o, {});
  })};
  kernel.schedules.push_back(gathering_by_copies([](const OptionValues& options) {
    SequenceParallelAttention o = operation_of(options);
    o.attention = with_sm90_varlen_blocks(o.attention, {});
    return sequence_parallel_varlen_attention_copied_sm90(o, {});
  }));
  kernel.rules = schedule_rules(kernel.name);
  kernel.build_program = [](const OptionValues& options) {
    return sequence_parallel_varlen_attention(operation_of(options), {});
  };
  kernel.check = [](const OptionValues& options) {
    check_attention_ranks(operation_of(options), {"sequence_parallel_varlen_attention", {}});
  };
  kernel.reference = [](const OptionValues& options, const std::vector<HostTensor>& inputs) {
    const SequenceParallelAttention o = operation_of(options);
    return sequence_parallel_attention_reference(attention_sizes_of(options), o.ranks, o.shards,
                                                 inputs, true);
  };
  kernel.floating_operations = [](const OptionValues& o, const std::vector<HostTensor>& inputs) {
    const std::int64_t batch = o.integer("batch");
    if (inputs.empty()) {
      return attention_operations(o, scores_of_ranks(o) / static_cast<double>(batch));
    }
    double scores = 0;
    for (std::int64_t b = 0; b < batch; ++b) {
      scores +=
          (inputs[3].flat(b + 1) - inputs[3].flat(b)) * (inputs[4].flat(b + 1) - inputs[4].flat(b));
    }
    return attention_operations(o, scores);
  };
  return kernel;
}

LibraryKernel sequence_parallel_attention_backward_entry() {
  LibraryKernel kernel =
      gradients_over_ranks("sequence_parallel_attention_backward", attention_backward_entry(),
                           sequence_parallel_attention_entry(), false);
  kernel.schedules = {by_heads(sequence_parallel_attention_backward_sm90),
                      of_all_heads(sequence_parallel_attention_backward_heads_sm90)};
  kernel.build_program = built_by(sequence_parallel_attention_backward);
  kernel.rules = schedule_rules(kernel.name);
  return kernel;
}

LibraryKernel sequence_parallel_varlen_attention_backward_entry() {
  LibraryKernel kernel = gradients_over_ranks("sequence_parallel_varlen_attention_backward",
                                              attention_varlen_backward_entry(),
                                              sequence_parallel_varlen_attention_entry(), true);
  // The sum of the sequences' lengths is that of all ranks' rows.
  kernel.options.erase(
      std::remove_if(kernel.options.begin(), kernel.options.end(),
                     [](const KernelOption& each) { return each.name.rfind("lengths", 0) == 0; }),
      kernel.options.end());
  kernel.schedules = {by_heads(sequence_parallel_varlen_attention_backward_sm90),
                      of_all_heads(sequence_parallel_varlen_attention_backward_heads_sm90)};
  kernel.build_program = built_by(sequence_parallel_varlen_attention_backward);
  kernel.rules = schedule_rules(kernel.name);
  return kernel;
}

std::vector<LibraryKernel> ring_entries() {
  LibraryKernel forward =
      in_ring(sequence_parallel_attention_entry(), "ring_attention", ring_attention);
  forward.schedules = {{"sm90", "sm_90a",
                        "the kernel of one GPU's sm90 at each step; no window, and under a causal "
                        "mask as many queries as keys",
                        nullptr, [](const OptionValues& options) {
                          SequenceParallelAttention o = operation_of(options);
                          o.attention = with_sm90_blocks(o.attention, {});
                          return ring_attention_sm90(o, {});
                        }}};
  forward.rules = schedule_rules(forward.name);
  LibraryKernel backward = in_ring(sequence_parallel_attention_backward_entry(),
                                   "ring_attention_backward", ring_attention_backward);
  backward.schedules = {
      {"sm90", "sm_90a",
       "the kernel of one GPU's ordered schedule at each step, dims up to 128; no window, and "
       "under a causal mask as many queries as keys",
       nullptr, [](const OptionValues& options) {
         SequenceParallelAttention o = operation_of(options);
         o.attention = with_sm90_backward_blocks(o.attention);
         return ring_attention_backward_sm90(o, options.boolean("lse_gradient"), {});
       }}};
  backward.rules = schedule_rules(backward.name);
  return {std::move(forward),
          in_ring(sequence_parallel_varlen_attention_entry(), "ring_varlen_attention",
                  ring_varlen_attention),
          std::move(backward),
          in_ring(sequence_parallel_varlen_attention_backward_entry(),
                  "ring_varlen_attention_backward", ring_varlen_attention_backward)};
}

}  // namespace tilewright::kernels
