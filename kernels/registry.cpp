#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <string>
#include <string_view>
#include <utility>

#include "kernels/attention_parameters.h"
#include "kernels/reference.h"
#include "kernels/registry_attention.h"
#include "kernels/registry_gemm.h"
#include "kernels/registry_options.h"
#include "kernels/registry_paged.h"
#include "kernels/registry_ranks.h"
#include "kernels/registry_rows.h"
#include "kernels/registry_serving.h"
#include "kernels/schedule_rules.h"
#include "tilewright/library.h"

namespace tilewright::kernels {
namespace {

Attention with_few_queries(Attention a) {
  a.block_q = 16;
  a.block_k = 512;
  return a;
}
constexpr std::pair<int, int> kSmallBlocks[] = {{128, 128}, {64, 128}, {64, 64}, {32, 64},
                                                {32, 32},   {16, 32},  {16, 16}};
// Panels of shared memory that rows fill, fill in part, and several of them.
const Values kDims = {"64", "32", "80", "128", "192", "256"};
const Values kValueDims = {"dim", "32", "80", "128", "256"};

// For machines whose memories are small.
std::vector<LibrarySchedule> attention_blocks(Kernel (*make)(const Attention&, SourceLocation)) {
  std::vector<LibrarySchedule> all;
  for (const auto& [queries, keys] : kSmallBlocks) {
    const auto name = "tile_" + std::to_string(queries) + "x" + std::to_string(keys);
    all.push_back({name, "", "the tile level in blocks of so many queries and keys",
                   [make, queries = queries, keys = keys](const OptionValues& options) {
                     Attention a = attention_of(options);
                     a.block_q = queries;
                     a.block_k = keys;
                     return make(a, {});
                   }});
  }
  return all;
}

}  // namespace

KernelOption l2_option(const char* little) {
  return count_option("l2_bytes", "sm_90a: of L2, for keys and values that several CTAs read",
                      std::to_string(Attention().l2_bytes), kMaximumSize,
                      {std::to_string(Attention().l2_bytes), little});
}
KernelOption scale_option() {
  return number_option("scale", "scores are so many times Q K^T; 0 for 1 / sqrt(dim)", {"0"});
}
KernelOption softcap_option() {
  return number_option("softcap", "scores s become softcap * tanh(s / softcap); 0 for none",
                       {"0", "20"});
}

double score_scale_of(const OptionValues& options) {
  const double scale = options.number("scale");
  return scale > 0 ? scale : 1 / std::sqrt(static_cast<double>(options.integer("dim")));
}

HostTensor random_offsets(std::int64_t batch, std::int64_t rows, std::uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::vector<double> offsets(static_cast<std::size_t>(batch) + 1);
  for (double& cut : offsets) {
    cut = std::floor(std::ldexp(static_cast<double>(generator() >> 11), -53) *
                     static_cast<double>(rows));
  }
  offsets.front() = 0;
  offsets.back() = static_cast<double>(rows);
  std::sort(offsets.begin(), offsets.end());
  return HostTensor::from_values(i32, {batch + 1}, offsets);
}

Attention attention_shape_of(const OptionValues& options) {
  Attention a;
  a.heads = static_cast<int>(options.integer("heads"));
  a.kv_heads = static_cast<int>(options.integer("kv_heads"));
  a.dim = static_cast<int>(options.integer("dim"));
  a.dim_v = static_cast<int>(options.integer("dim_v"));
  a.causal = options.boolean("causal");
  a.dtype = options.dtype("dtype");
  a.scale = options.number("scale");
  return a;
}

std::vector<KernelOption> attention_shape_options(const char* dim, Values dims, Values value_dims) {
  return {
      length_option("batch", "sequences", "1"),
      count_option("heads", "query heads", "8", 65535, {"8", "6", "32"}),
      count_option("kv_heads", "heads of K and V; a divisor of heads", "heads", 65535,
                   {"heads", "1", "2"}),
      length_option("queries", "query rows of a sequence", "1024"),
      length_option("keys", "key rows of a sequence", "queries"),
      count_option("dim", "elements of a query and key row", dim, kMaximumDim, std::move(dims)),
      count_option("dim_v", "elements of a value row", "dim", kMaximumDim, std::move(value_dims)),
      flag_option("causal", "query i sees keys up to i + keys - queries")};
}

Attention attention_of(const OptionValues& options) {
  Attention a = attention_shape_of(options);
  a.window = static_cast<int>(options.integer("window"));
  a.softcap = options.number("softcap");
  a.sinks = options.has("sinks") && options.boolean("sinks");
  a.l2_bytes = static_cast<int>(options.integer("l2_bytes"));
  return a;
}

AttentionSizes attention_sizes_of(const OptionValues& o) {
  return {o.integer("batch"),    o.integer("queries"), o.integer("keys"),  o.integer("heads"),
          o.integer("kv_heads"), o.integer("dim"),     o.integer("dim_v"), o.boolean("causal"),
          o.integer("window"),   score_scale_of(o),    o.number("softcap")};
}

double attention_operations(const OptionValues& options, double scores) {
  const AttentionSizes s = attention_sizes_of(options);
  return 2 * scores * static_cast<double>(s.heads) * static_cast<double>(s.dim + s.dim_v) *
         (s.causal ? 0.5 : 1);
}

namespace {

using Sm100Kernel = Kernel (*)(const Attention&, AttentionRoles, SourceLocation);
using Sm100Blocks = Attention (*)(Attention, AttentionRoles, SourceLocation);

// Of either forward pass, the best first.
std::vector<LibrarySchedule> sm100_schedules(Sm100Kernel make, Sm100Blocks with_blocks) {
  const auto schedule = [=](const char* name, const char* description, AttentionRoles roles) {
    return LibrarySchedule{name, "sm_100a", description, [=](const OptionValues& options) {
                             return make(with_blocks(attention_of(options), roles, {}), roles, {});
                           }};
  };
  return {
      schedule("sm100",
               "roles that load, multiply, weigh two tiles of 128 queries in turn, and rescale; "
               "weights in tensor memory; bf16 and f16, dims up to 256 in multiples of 16, "
               "dim_v up to 240",
               AttentionRoles::ping_pong),
      schedule("sm100_ts", "one tile, whose only warpgroup also rescales; dim_v up to 256",
               AttentionRoles::one_tile),
      schedule("sm100_ss", "the same with the weights in shared memory",
               AttentionRoles::one_tile_shared)};
}

}  // namespace

LibraryKernel attention_forward_entry() {
  LibraryKernel kernel;
  kernel.name = "attention_forward";
  kernel.description = "O = softmax(Q K^T / sqrt(dim)) V, and the log-sum-exp of each row";
  kernel.options = attention_shape_options("64", kDims, kValueDims);
  kernel.options.insert(
      kernel.options.end(),
      {integer_option("window", "causal only: the last so many of those keys; 0 for all",
                      {"0", "40", "150", "450"}, true),
       scale_option(), softcap_option(),
       flag_option("sinks", "each head has a logit more, whose value is 0"),
       l2_option("262144"),  // groups have twice as many heads as fit
       dtype_option()});
  kernel.tensors = {{"Q", {"batch", "queries", "heads", "dim"}, false, {}},
                    {"K", {"batch", "keys", "kv_heads", "dim"}, false, {}},
                    {"V", {"batch", "keys", "kv_heads", "dim_v"}, false, {}},
                    {"O", {"batch", "queries", "heads", "dim_v"}, true, {}},
                    {"LSE", {"batch", "heads", "queries"}, true, f32},
                    {"sinks", {"heads"}, false, f32, {}, "sinks"}};
  kernel.tensors[1].online_axis = 1;
  kernel.schedules = {
      {"sm90", "sm_90a",
       "a producer warp, and two or three warpgroups that overlap products with the softmax; "
       "bf16 and f16, dims up to 256 in multiples of 16",
       [](const OptionValues& options) {
         return attention_forward_sm90(with_sm90_blocks(attention_of(options), {}), {});
       }},
      {"sm90_pairs", "sm_90a",
       "sm90, where clusters of two CTAs take neighbouring tiles and load the keys for each other; "
       "without a window",
       [](const OptionValues& options) {
         Attention a = attention_of(options);
         a.in_pairs = true;
         return attention_forward_sm90(with_sm90_blocks(a, {}), {});
       }},
      {"sm90_parts", "sm_90a",
       "sm90, where keys of the tiles that do not fill a round of all multiprocessors are divided, "
       "up to dim 128; without a window",
       [](const OptionValues& options) {
         Attention a = attention_of(options);
         a.in_parts = true;
         return attention_forward_sm90(with_sm90_blocks(a, {}), {});
       }},
      {"sm90_few", "sm_90a", "sm90 for few tiles: they have 128 rows",
       [](const OptionValues& options) {
         Attention a = attention_of(options);
         a.few_tiles = true;
         return attention_forward_sm90(with_sm90_blocks(a, {}), {});
       }},
      {"cpu", "cpu", kOfCpu,
       [](const OptionValues& options) {
         return attention_forward(with_cpu_blocks(attention_of(options)), {});
       }},
      {"cpu_few_queries", "cpu", "the tile level in blocks of 16 queries and 512 keys",
       [](const OptionValues& options) {
         return attention_forward(with_few_queries(attention_of(options)), {});
       }}};
  for (LibrarySchedule& schedule : sm100_schedules(attention_forward_sm100, with_sm100_blocks)) {
    kernel.schedules.push_back(std::move(schedule));
  }
  kernel.rules = schedule_rules(kernel.name);
  kernel.build = [](const OptionValues& options) {
    return attention_forward(with_tile_blocks(attention_of(options)), {});
  };
  kernel.blocks = attention_blocks(attention_forward);
  kernel.check = [](const OptionValues& options) {
    check_attention(attention_of(options), {"attention_forward", {}});
  };
  kernel.reference = [](const OptionValues& options, const std::vector<HostTensor>& inputs) {
    return attention_reference(attention_sizes_of(options), inputs);
  };
  kernel.floating_operations = [](const OptionValues& o, const std::vector<HostTensor>&) {
    return attention_operations(o, static_cast<double>(o.integer("batch")) *
                                       static_cast<double>(o.integer("queries")) *
                                       static_cast<double>(o.integer("keys")));
  };
  return kernel;
}

namespace {

Attention decode_of(const OptionValues& options) {
  Attention a;
  a.kv_heads = static_cast<int>(options.integer("kv_heads"));
  a.heads = a.kv_heads * static_cast<int>(options.integer("group"));
  a.dim = static_cast<int>(options.integer("dim"));
  a.dim_v = static_cast<int>(options.integer("dim_v"));
  a.dtype = options.dtype("dtype");
  a.scale = options.number("scale");
  a.softcap = options.number("softcap");
  return a;
}

LibraryKernel attention_decode_entry() {
  LibraryKernel kernel;
  kernel.name = "attention_decode";
  kernel.description = "attention of one query a sequence, its keys divided among CTAs";
  kernel.options = {
      length_option("batch", "sequences", "1"),
      count_option("kv_heads", "heads of K and V", "8", 65535),
      count_option("group", "query heads that share a head of K and V", "4", 128,
                   {"4", "1", "24", "64", "100"}),
      length_option("keys", "key rows of a sequence", "4096"),
      count_option("dim", "elements of a query and key row", "128", kMaximumDim, kDims),
      count_option("dim_v", "elements of a value row", "dim", kMaximumDim, kValueDims),
      scale_option(),
      softcap_option(),
      dtype_option(),
  };
  kernel.tensors = {{"Q", {"batch", "kv_heads", "group", "dim"}, false, {}},
                    {"K", {"batch", "keys", "kv_heads", "dim"}, false, {}},
                    {"V", {"batch", "keys", "kv_heads", "dim_v"}, false, {}},
                    {"O", {"batch", "kv_heads", "group", "dim_v"}, true, {}},
                    {"LSE", {"batch", "kv_heads", "group"}, true, f32}};
  kernel.tensors[1].online_axis = 1;
  kernel.build_program = [](const OptionValues& options) {
    return attention_decode(decode_of(options), {});
  };
  kernel.check = [](const OptionValues& options) {
    check_attention(decode_of(options), {"attention_decode", {}});
  };
  const auto sizes_of = [](const OptionValues& o) {
    const Attention a = decode_of(o);
    return AttentionSizes{o.integer("batch"),
                          1,
                          o.integer("keys"),
                          a.heads,
                          a.kv_heads,
                          a.dim,
                          a.dim_v,
                          false,
                          0,
                          score_scale_of(o),
                          a.softcap};
  };
  kernel.reference = [sizes_of](const OptionValues& options,
                                const std::vector<HostTensor>& inputs) {
    return attention_reference(sizes_of(options), inputs);
  };
  kernel.floating_operations = [sizes_of](const OptionValues& o, const std::vector<HostTensor>&) {
    const AttentionSizes s = sizes_of(o);
    return 2.0 * static_cast<double>(s.batch * s.heads) * static_cast<double>(s.keys) *
           static_cast<double>(s.dim + s.dim_v);
  };
  return kernel;
}

// Of packed sequences: "128,77,0".
KernelOption lengths_option(std::string name, std::string description, std::string standard,
                            std::string sum) {
  KernelOption option{std::move(name),
                      std::move(description),
                      Kind::lengths,
                      std::move(standard),
                      0,
                      kMaximumSize,
                      {},
                      true};
  option.count = "batch";
  option.sum = std::move(sum);
  return option;
}

}  // namespace

LibraryKernel attention_varlen_forward_entry() {
  LibraryKernel kernel = attention_forward_entry();
  kernel.name = "attention_varlen_forward";
  kernel.description = "attention_forward of packed sequences, each with its own lengths";
  for (KernelOption& option : kernel.options) {
    if (option.name == "batch") {
      option.standard = "4";
      option.minimum = 1;
    }
    if (option.name == "queries") option.description = "query rows of all sequences together";
    if (option.name == "keys") option.description = "key rows of all sequences together";
    if (option.name == "causal")
      option.description = "query i of a sequence sees its keys up to i + keys - queries";
  }
  kernel.options.push_back(
      lengths_option("lengths_q", "query rows of each sequence: 128,77,0", "", "queries"));
  kernel.options.push_back(
      lengths_option("lengths_k", "key rows of each sequence", "lengths_q", "keys"));
  const auto offsets_of = [](const char* total) {
    return [total](const OptionValues& o, std::uint64_t seed, const std::vector<HostTensor>&) {
      return random_offsets(o.integer("batch"), o.integer(total), seed);
    };
  };
  kernel.tensors = {
      {"Q", {"queries", "heads", "dim"}, false, {}},
      {"K", {"keys", "kv_heads", "dim"}, false, {}},
      {"V", {"keys", "kv_heads", "dim_v"}, false, {}},
      {"cu_seqlens_q", {"batch + 1"}, false, i32, offsets_of("queries"), {}, "lengths_q"},
      {"cu_seqlens_k", {"batch + 1"}, false, i32, offsets_of("keys"), {}, "lengths_k"},
      {"O", {"queries", "heads", "dim_v"}, true, {}},
      {"LSE", {"heads", "queries"}, true, f32},
      {"sinks", {"heads"}, false, f32, {}, "sinks"}};
  kernel.tensors[1].online_axis = 0;
  kernel.check = [](const OptionValues& options) {
    check_attention(attention_of(options), {"attention_varlen_forward", {}});
  };
  kernel.blocks = attention_blocks(attention_varlen_forward);
  // No pairs or parts, and nothing for few queries: of their lengths only the sum is known.
  const auto named = [all = kernel.schedules](std::string_view name) {
    return *std::find_if(all.begin(), all.end(),
                         [&](const LibrarySchedule& each) { return each.name == name; });
  };
  kernel.schedules = {named("sm90"), named("cpu")};
  kernel.rules = schedule_rules(kernel.name);
  kernel.schedules[0].build = [](const OptionValues& options) {
    return attention_varlen_forward_sm90(with_sm90_varlen_blocks(attention_of(options), {}), {});
  };
  kernel.schedules[1].build = [](const OptionValues& options) {
    return attention_varlen_forward(with_cpu_blocks(attention_of(options)), {});
  };
  for (LibrarySchedule& schedule :
       sm100_schedules(attention_varlen_forward_sm100, with_sm100_varlen_blocks)) {
    kernel.schedules.push_back(std::move(schedule));
  }
  kernel.build = [](const OptionValues& options) {
    return attention_varlen_forward(attention_of(options), {});
  };
  kernel.reference = [](const OptionValues& options, const std::vector<HostTensor>& inputs) {
    return attention_varlen_reference(attention_sizes_of(options), inputs);
  };
  kernel.floating_operations = [](const OptionValues& o, const std::vector<HostTensor>& inputs) {
    const std::vector<std::int64_t> of_q = o.lengths("lengths_q"), of_k = o.lengths("lengths_k");
    if (inputs.empty() && !of_q.empty() && !of_k.empty()) {
      return attention_operations(o, static_cast<double>(std::inner_product(
                                         of_q.begin(), of_q.end(), of_k.begin(), std::int64_t{0})));
    }
    if (inputs.empty()) {
      return attention_operations(o, static_cast<double>(o.integer("queries")) *
                                         static_cast<double>(o.integer("keys")) /
                                         static_cast<double>(o.integer("batch")));
    }
    double scores = 0;
    for (std::int64_t b = 0; b < o.integer("batch"); ++b) {
      scores +=
          (inputs[3].flat(b + 1) - inputs[3].flat(b)) * (inputs[4].flat(b + 1) - inputs[4].flat(b));
    }
    return attention_operations(o, scores);
  };
  return kernel;
}

}  // namespace tilewright::kernels

namespace tilewright {

const std::vector<LibraryKernel>& kernel_library() {
  static const std::vector<LibraryKernel> library = [] {
    std::vector<LibraryKernel> all = {kernels::attention_forward_entry(),
                                      kernels::attention_forward_fp8_entry(),
                                      kernels::attention_varlen_forward_entry(),
                                      kernels::attention_backward_entry(),
                                      kernels::attention_varlen_backward_entry(),
                                      kernels::attention_decode_entry(),
                                      kernels::gemm_reduce_scatter_entry(),
                                      kernels::all_gather_gemm_entry(),
                                      kernels::sequence_parallel_attention_entry(),
                                      kernels::sequence_parallel_varlen_attention_entry(),
                                      kernels::sequence_parallel_attention_backward_entry(),
                                      kernels::sequence_parallel_varlen_attention_backward_entry()};
    for (LibraryKernel& entry : kernels::ring_entries()) all.push_back(std::move(entry));
    for (LibraryKernel& entry : kernels::gemm_entries()) all.push_back(std::move(entry));
    for (LibraryKernel& entry : kernels::paged_entries()) all.push_back(std::move(entry));
    for (LibraryKernel& entry : kernels::serving_entries()) all.push_back(std::move(entry));
    for (LibraryKernel& entry : kernels::row_entries()) all.push_back(std::move(entry));
    for (LibraryKernel& entry : kernels::exchange_entries()) all.push_back(std::move(entry));
    for (const auto& entry : {kernels::all_gather_entry, kernels::reduce_scatter_entry,
                              kernels::all_reduce_entry, kernels::broadcast_entry}) {
      all.push_back(entry());
    }
    for (LibraryKernel& entry : kernels::node_entries()) all.push_back(std::move(entry));
    return all;
  }();
  return library;
}

const LibraryKernel& find_kernel(std::string_view name) {
  return find_kernel_among(kernel_library(), name);
}

}  // namespace tilewright
