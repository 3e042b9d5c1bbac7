#include "kernels/registry_paged.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "kernels/attention_paged_parameters.h"
#include "kernels/attention_paged_program.h"
#include "kernels/paged_inputs.h"
#include "kernels/reference_paged.h"
#include "kernels/registry_attention.h"
#include "kernels/registry_options.h"
#include "kernels/schedule_rules.h"

namespace tilewright::kernels {
namespace {

PagedAttention paged_of(const OptionValues& options, const PagedCache& cache) {
  PagedAttention a;
  a.quantised = cache.quantised;
  if (cache.quantised) a.scales = static_cast<int>(options.integer("scales"));
  a.latent = cache.latent;
  a.csr = options.boolean("csr");
  a.heads = static_cast<int>(options.integer("heads"));
  a.kv_heads = cache.latent ? 1 : static_cast<int>(options.integer("kv_heads"));
  a.dim = static_cast<int>(options.integer("dim"));
  a.dim_v = static_cast<int>(options.integer("dim_v"));
  a.causal = options.boolean("causal");
  a.window = static_cast<int>(options.integer("window"));
  a.dtype = options.dtype("dtype");
  a.scale = options.number("scale");
  a.softcap = options.number("softcap");
  a.sinks = options.boolean("sinks");
  a.page = static_cast<int>(options.integer("page"));
  a.fixed_split_size = static_cast<int>(options.integer("fixed_split_size"));
  a.planned = options.boolean("planned");
  return a;
}

AttentionSizes sizes_of(const OptionValues& options, const PagedCache& cache) {
  const PagedAttention a = paged_of(options, cache);
  return {options.integer("batch"),
          0,
          0,
          a.heads,
          a.kv_heads,
          a.dim,
          a.dim_v,
          a.causal,
          a.window,
          score_scale_of(options),
          a.softcap};
}

KernelOption batch_option() {
  KernelOption batch = length_option("batch", "sequences", "4");
  batch.minimum = 1;
  return batch;
}

KernelOption query_lengths_option() {
  KernelOption lengths{
      "lengths_q", "query rows of each sequence: 1,1,5", Kind::lengths, "", 0, kMaximumSize, {},
      true};
  lengths.count = "batch";
  lengths.sum = "queries";
  return lengths;
}

KernelOption window_option() {
  return integer_option("window", "causal only: the last so many of those keys; 0 for all",
                        {"0", "40"}, true);
}

KernelOption split_size_option() {
  return integer_option("fixed_split_size",
                        "keys of a part, a multiple of 64: a sequence's result then does not "
                        "depend on the batch; 0: as many parts as fill the GPU",
                        {"0", "64"});
}

std::vector<KernelOption> paged_options(const PagedCache& cache) {
  KernelOption max_pages = length_option("max_pages", "pages that a sequence may have", "16");
  max_pages.minimum = 1;
  max_pages.count = "page";
  KernelOption pages = length_option("pages", "pages of the cache", "64");
  pages.minimum = 1;
  pages.count = "page", pages.sum = "max_pages";
  KernelOption entries =
      length_option("entries", "with csr: pages that all sequences may have together", "pages");
  entries.count = "page", entries.sum = "max_pages";
  std::vector<KernelOption> options{
      batch_option(),
      count_option("heads", "query heads", "8", 65535, {"8", "5", "6", "70"}),
      count_option("kv_heads", "heads of K and V; a divisor of heads", "heads", 65535,
                   {"heads", "1", "2"}),
      length_option("queries", "query rows of all sequences together", "batch"),
      count_option("page", "slots of a page", "16", 65536, {"16", "1", "64", "256", "8"}),
      pages,
      max_pages,
      length_option("keys", "key rows of each sequence; 0: random ones", "0"),
      length_option("holes",
                    "of so many pages of a drawn table one is missing, -1: nobody sees its keys; "
                    "0: none",
                    "0"),
      count_option("dim", "elements of a query and key row", "128", kMaximumDim,
                   {"64", "128", "256"}),
      count_option("dim_v", "elements of a value row", "dim", kMaximumDim, {"dim", "64"}),
      flag_option("causal", "query i of a sequence sees its keys up to i + keys - queries"),
      window_option(),
      scale_option(),
      softcap_option(),
      flag_option("sinks", "each head has a logit more, whose value is 0"),
      dtype_option(),
      split_size_option(),
      flag_option("planned", "the plan is given: attention_paged_plan's, for several layers"),
      flag_option("csr", "the table is in two vectors, indptr and indices"),
      entries,
      query_lengths_option(),
  };
  if (cache.quantised) {
    options.push_back(count_option("scales", "scales of K, and of V: kv_heads, or 1 for all heads",
                                   "kv_heads", 65535, {"kv_heads", "1"}));
  }
  if (!cache.latent) return options;
  std::erase_if(options, [](const KernelOption& option) { return option.name == "kv_heads"; });
  for (KernelOption& option : options) {
    if (option.name == "dim") {
      option.description = "elements of a query and of a latent key";
      option.standard = "576", option.worth_trying = {"576", "80"};
    } else if (option.name == "dim_v") {
      option.description = "the first so many elements of a latent key are its value";
      option.standard = "512", option.worth_trying = {"512", "64"};
    }
  }
  return options;
}

std::vector<LibraryTensor> cache_tensors(const PagedCache& cache) {
  const auto tensor = [&cache](const char* name, std::vector<std::string> shape) {
    LibraryTensor made{name, std::move(shape), false, {}};
    if (cache.quantised) made.dtype = f8e4m3;
    if (name[0] == 'K') made.online_axis = 0;  // pages, of which sequences have some in any order
    made.values = [made](const OptionValues& o, std::uint64_t seed,
                         const std::vector<HostTensor>& before) {
      std::vector<std::int64_t> sizes;
      for (const std::string& axis : made.shape) sizes.push_back(o.integer(axis));
      return poisoned_cache(made.dtype.value_or(o.dtype("dtype")), sizes, seed, before,
                            o.boolean("csr"));
    };
    return made;
  };
  if (cache.latent) return {tensor("KV", {"pages", "page", "dim"})};
  std::vector<LibraryTensor> tensors{tensor("K", {"pages", "page", "kv_heads", "dim"}),
                                     tensor("V", {"pages", "page", "kv_heads", "dim_v"})};
  if (!cache.quantised) return tensors;
  for (const char* name : {"K_scale", "V_scale"}) {
    tensors.push_back(
        {name,
         {"scales"},
         false,
         f32,
         [](const OptionValues& o, std::uint64_t seed, const std::vector<HostTensor>& before) {
           return cache_scales(o, own_seed(seed, before));
         }});
  }
  return tensors;
}

LibraryTensor query_offsets() {
  const auto offsets = [](const OptionValues& o, std::uint64_t seed,
                          const std::vector<HostTensor>&) {
    const std::int64_t batch = o.integer("batch"), queries = o.integer("queries");
    if (batch != queries) return random_offsets(batch, queries, seed);
    std::vector<double> one_each(static_cast<std::size_t>(batch) + 1);
    std::iota(one_each.begin(), one_each.end(), 0);
    return HostTensor::from_values(i32, {batch + 1}, one_each);
  };
  return {"cu_seqlens_q", {"batch + 1"}, false, i32, offsets, {}, "lengths_q"};
}

// Of the GPU that plans are made for where it is not said.
constexpr int kMultiprocessors = 132;

std::vector<double> plan_of(const OptionValues& o, bool latent, std::int64_t multiprocessors,
                            const HostTensor& cu_seqlens_q, const HostTensor& lengths) {
  const auto integer = [&](const char* name) { return static_cast<int>(o.integer(name)); };
  const PlanSizes sizes{integer("heads"),
                        latent ? 1 : integer("kv_heads"),
                        integer("window"),
                        integer("fixed_split_size"),
                        multiprocessors * (latent ? 1 : 2),
                        latent};
  return attention_paged_plan_reference(sizes, cu_seqlens_q, lengths);
}

std::vector<LibraryTensor> paged_tensors(const PagedCache& cache) {
  const auto lengths = [](const OptionValues& o, std::uint64_t seed,
                          const std::vector<HostTensor>&) { return random_lengths(o, seed); };
  const auto table = [](const OptionValues& o, std::uint64_t seed,
                        const std::vector<HostTensor>& before) {
    return random_table(o, seed, before[kLengths]);
  };
  const auto indptr = [](const OptionValues& o, std::uint64_t,
                         const std::vector<HostTensor>& before) {
    return indptr_of(o, before[kLengths]);
  };
  const auto indices = [](const OptionValues& o, std::uint64_t seed,
                          const std::vector<HostTensor>& before) {
    return random_indices(o, seed, before[kBlockTable]);
  };
  constexpr const char* kSomeHoles = "holes=5";
  std::vector<LibraryTensor> tensors{
      {"Q", {"queries", "heads", "dim"}, false, {}},
      query_offsets(),
      {"lengths", {"batch"}, false, i32, lengths},
      {"block_table", {"batch", "max_pages"}, false, i32, table, "!csr"},
      {"indptr", {"batch + 1"}, false, i32, indptr, "csr"},
      {"indices", {"entries"}, false, i32, indices, "csr"}};
  for (const std::size_t table_or_indices : {std::size_t{kBlockTable}, tensors.size() - 1}) {
    tensors[table_or_indices].drawn_with = kSomeHoles;
  }
  for (LibraryTensor& tensor : cache_tensors(cache)) tensors.push_back(std::move(tensor));
  tensors.push_back({"O", {"queries", "heads", "dim_v"}, true, {}});
  tensors.push_back({"LSE", {"queries", "heads"}, true, f32});
  tensors.push_back({"sinks", {"heads"}, false, f32, {}, "sinks"});
  const auto plan = [cache](const OptionValues& o, std::uint64_t,
                            const std::vector<HostTensor>& before) {
    return HostTensor::from_values(
        i32, {o.integer("batch") + 1},
        plan_of(o, cache.latent, kMultiprocessors, before[kCuSeqlensQ], before[kLengths]));
  };
  tensors.push_back({"plan", {"batch + 1"}, false, i32, plan, "planned"});
  return tensors;
}

// Two products of each query with the keys of its sequence; a causal mask counts as half of a
// chunk's own keys.
double paged_operations(const OptionValues& o, const PagedCache& cache,
                        const std::vector<HostTensor>& inputs) {
  const AttentionSizes s = sizes_of(o, cache);
  double scores = static_cast<double>(o.integer("queries")) *
                  static_cast<double>(std::max(o.integer("keys"), std::int64_t{1}));
  if (!inputs.empty()) {
    scores = 0;
    for (std::int64_t b = 0; b < o.integer("batch"); ++b) {
      const double queries = inputs[kCuSeqlensQ].flat(b + 1) - inputs[kCuSeqlensQ].flat(b);
      scores += queries * (inputs[kLengths].flat(b) - (s.causal ? (queries - 1) / 2 : 0));
    }
  }
  return 2 * scores * static_cast<double>(s.heads) * static_cast<double>(s.dim + s.dim_v);
}

LibrarySchedule sm90_schedule(const char* name, const PagedCache& cache, KeyParts keys,
                              const char* description) {
  LibrarySchedule schedule{name, "sm_90a", description, nullptr};
  schedule.build_program = [cache, keys](const OptionValues& options) {
    const PagedAttention a = paged_of(options, cache);
    return a.latent ? attention_paged_mla_sm90(a, keys, {}) : attention_paged_sm90(a, keys, {});
  };
  return schedule;
}

// What the options' ranges do not say. The sequences' keys of one length fit the table.
void check_options(const OptionValues& o, const PagedCache& cache, const Caller& caller) {
  check_paged(paged_of(o, cache), caller);
  const std::int64_t room = o.integer("max_pages") * o.integer("page");
  if (o.integer("keys") > room) {
    caller.refuse("keys is " + std::to_string(o.integer("keys")) +
                      ", and the table has room for max_pages * page = " + std::to_string(room),
                  "set max_pages to ceil(keys / page) or more");
  }
}

LibraryKernel paged_entry(const char* name, const char* description, const PagedCache& cache) {
  LibraryKernel kernel;
  kernel.name = name;
  kernel.description = description;
  kernel.options = paged_options(cache);
  kernel.tensors = paged_tensors(cache);
  kernel.build_program = [cache](const OptionValues& options) {
    return attention_paged(paged_of(options, cache), {});
  };
  for (const int rows : {64, 32, 16}) {
    LibrarySchedule blocks{"tile_" + std::to_string(rows), "",
                           "the tile level in tiles of so many rows, whose keys are not divided",
                           nullptr};
    blocks.build_program = [cache, rows](const OptionValues& options) {
      return attention_paged_undivided(paged_of(options, cache), rows, {});
    };
    kernel.blocks.push_back(std::move(blocks));
  }
  kernel.check = [cache, name](const OptionValues& options) {
    check_options(options, cache, {name, {}});
  };
  kernel.reference = [cache](const OptionValues& options, const std::vector<HostTensor>& inputs) {
    std::vector<HostTensor> given = inputs;
    if (options.boolean("planned")) given.pop_back();
    if (options.boolean("csr")) given = with_block_table(given, options.integer("page"));
    return attention_paged_reference(sizes_of(options, cache), cache, given);
  };
  kernel.floating_operations = [cache](const OptionValues& options,
                                       const std::vector<HostTensor>& inputs) {
    return paged_operations(options, cache, inputs);
  };
  return kernel;
}

LibraryKernel with_schedules(LibraryKernel kernel, const PagedCache& cache, const char* how) {
  kernel.schedules = {
      sm90_schedule("sm90", cache, KeyParts::one, how),
      sm90_schedule("sm90_split", cache, KeyParts::several,
                    "sm90, where the keys of a tile are divided among CTAs"),
      sm90_schedule(
          "sm90_planned", cache, KeyParts::planned,
          "sm90, where keys are divided as a plan says, which a kernel before it makes of "
          "the sequences' lengths")};
  if (!cache.latent) {
    const struct {
      const char *name, *description;
      KeyParts keys;
    } variants[] = {
        {"sm90_keys", "sm90, with keys as the rows of products, for few queries", KeyParts::one},
        {"sm90_keys_split", "sm90_keys, where keys are divided as sm90_split does",
         KeyParts::several},
        {"sm90_keys_planned", "sm90_keys, where keys are divided as sm90_planned does",
         KeyParts::planned}};
    for (const auto& variant : variants) {
      LibrarySchedule made{variant.name, "sm_90a", variant.description, nullptr};
      made.build_program = [cache, keys = variant.keys](const OptionValues& options) {
        return attention_paged_keys_sm90(paged_of(options, cache), keys, {});
      };
      kernel.schedules.push_back(std::move(made));
    }
  }
  if (!cache.quantised && !cache.latent) {
    LibrarySchedule chunks{"sm90_chunks", "sm_90a",
                           "for many queries a sequence: tiles of attention_varlen_forward, whose "
                           "keys come page by page; bf16 and f16, pages of whole 8 slots",
                           nullptr};
    chunks.build_program = [](const OptionValues& options) {
      return attention_paged_chunks_sm90(paged_of(options, {}), {});
    };
    kernel.schedules.push_back(std::move(chunks));
  }
  kernel.rules = schedule_rules(kernel.name);
  return kernel;
}

// Options by which keys are divided, and lengths.
LibraryKernel plan_entry() {
  LibraryKernel kernel;
  kernel.name = "attention_paged_plan";
  kernel.description =
      "how attention_paged with planned=true divides a batch's keys: once, for several layers";
  kernel.options = {
      batch_option(),
      count_option("heads", "query heads", "8", 65535, {"8", "5", "70"}),
      count_option("kv_heads", "heads of K and V; a divisor of heads", "heads", 65535,
                   {"heads", "1"}),
      length_option("queries", "query rows of all sequences together", "batch"),
      length_option("most_keys", "key rows that a sequence may have", "4096"),
      window_option(),
      split_size_option(),
      flag_option("latent", "of attention_paged_mla"),
      count_option("multiprocessors", "of the GPU", std::to_string(kMultiprocessors), 4096),
      query_lengths_option()};
  const auto attention_of = [](const OptionValues& o) {
    PagedAttention a;
    a.latent = o.boolean("latent");
    a.heads = static_cast<int>(o.integer("heads"));
    a.kv_heads = a.latent ? 1 : static_cast<int>(o.integer("kv_heads"));
    a.window = static_cast<int>(o.integer("window"));
    a.causal = a.window > 0;
    a.fixed_split_size = static_cast<int>(o.integer("fixed_split_size"));
    return a;
  };
  const auto lengths = [](const OptionValues& o, std::uint64_t seed,
                          const std::vector<HostTensor>&) {
    const std::int64_t batch = o.integer("batch"), most_keys = o.integer("most_keys");
    return drawn_lengths(batch, {most_keys, 1, batch * most_keys}, 0, seed);
  };
  kernel.tensors = {query_offsets(),
                    {"lengths", {"batch"}, false, i32, lengths},
                    {"plan", {"batch + 1"}, true, i32}};
  kernel.build_program = [attention_of](const OptionValues& o) {
    return attention_paged_plan(attention_of(o), static_cast<int>(o.integer("multiprocessors")),
                                {});
  };
  kernel.check = [attention_of](const OptionValues& o) {
    check_paged(attention_of(o), {"attention_paged_plan", {}});
  };
  kernel.reference = [](const OptionValues& o, const std::vector<HostTensor>& inputs) {
    return std::vector<std::vector<double>>{
        plan_of(o, o.boolean("latent"), o.integer("multiprocessors"), inputs[0], inputs[1])};
  };
  // A few for each sequence.
  kernel.floating_operations = [](const OptionValues& o, const std::vector<HostTensor>&) {
    return static_cast<double>(o.integer("batch"));
  };
  return kernel;
}

}  // namespace

std::vector<LibraryKernel> paged_entries() {
  const char* const two_rings =
      "a CTA has two rings of pages, a warp that loads and a warpgroup for each; bf16 and f16, "
      "dims "
      "64 and 128, pages of whole 8 slots";
  const PagedCache plain, quantised{.quantised = true}, latent{.latent = true};
  return {
      with_schedules(
          paged_entry("attention_paged",
                      "attention to keys and values in pages: decoding, and chunks of queries",
                      plain),
          plain, two_rings),
      with_schedules(
          paged_entry(
              "attention_paged_fp8",
              "attention_paged with a cache of e4m3, and scales for each head of K and V, or all",
              quantised),
          quantised, two_rings),
      with_schedules(
          paged_entry(
              "attention_paged_mla",
              "attention_paged with latent keys, whose first elements are the values: multi-head "
              "latent attention, its projections absorbed",
              latent),
          latent,
          "a warpgroup computes the scores, and two have half of the output's columns each; bf16 "
          "and f16, dim a multiple of 64 up to 576, dim_v of 128 up to 512, pages of whole 8 "
          "slots"),
      plan_entry()};
}

}  // namespace tilewright::kernels
