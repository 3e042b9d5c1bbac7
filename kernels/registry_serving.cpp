#include "kernels/registry_serving.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "kernels/kv_append_check.h"
#include "kernels/reference_serving.h"
#include "kernels/registry_options.h"
#include "tilewright/kernels/merge_states.h"

namespace tilewright::kernels {
namespace {

// What a cache has: rows as they are, in e4m3, or of keys that are values too.
enum class Appends : std::uint8_t { plain, quantised, latent };

KvAppend append_of(const OptionValues& options, Appends what) {
  KvAppend a;
  a.latent = what == Appends::latent;
  a.kv_heads = a.latent ? 1 : static_cast<int>(options.integer("kv_heads"));
  a.dim = static_cast<int>(options.integer("dim"));
  if (!a.latent) a.dim_v = static_cast<int>(options.integer("dim_v"));
  a.page = static_cast<int>(options.integer("page"));
  a.dtype = options.dtype("dtype");
  a.cache = what == Appends::quantised ? f8e4m3 : a.dtype;
  a.rotary_dim = options.boolean("rotary") ? static_cast<int>(options.integer("rotary_dim")) : 0;
  return a;
}

// 0 to count - 1 in random order.
std::vector<std::int64_t> shuffled(std::int64_t count, std::uint64_t seed) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  std::mt19937_64 generator(seed);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[generator() % i]);
  return order;
}

// Each page once, in random order; -1 where there are too few.
HostTensor random_pages(const OptionValues& o, std::uint64_t seed) {
  const std::int64_t batch = o.integer("batch"), columns = o.integer("max_pages");
  const std::vector<std::int64_t> order = shuffled(o.integer("pages"), seed + 1);
  std::vector<double> table(static_cast<std::size_t>(batch * columns), -1);
  std::copy_n(order.begin(), std::min(order.size(), table.size()), table.begin());
  return HostTensor::from_values(i32, {batch, columns}, table);
}

// Of each token its sequence and position: different places of those that the table has room for.
// Every seventh token, and those for whom there is none, pad: their position is negative.
struct AppendPlaces {
  std::vector<double> sequences, positions;
};
AppendPlaces random_places(const OptionValues& o, std::uint64_t seed) {
  const std::int64_t slots = o.integer("max_pages") * o.integer("page");
  const std::vector<std::int64_t> order = shuffled(o.integer("batch") * slots, seed + 2);
  AppendPlaces places;
  for (std::size_t token = 0; token < static_cast<std::size_t>(o.integer("tokens")); ++token) {
    const bool is_there = token < order.size() && token % 7 != 6;
    places.sequences.push_back(is_there ? static_cast<double>(order[token] / slots) : -1);
    places.positions.push_back(is_there ? static_cast<double>(order[token] % slots) : -1);
  }
  return places;
}

HostTensor cos_sin(const OptionValues& o) {
  const std::int64_t positions = o.integer("max_pages") * o.integer("page");
  const std::int64_t half = o.integer("rotary_dim") / 2;
  std::vector<double> values;
  for (std::int64_t position = 0; position < positions; ++position) {
    const auto angle = [&](std::int64_t i) {
      return static_cast<double>(position) *
             std::pow(1e4, -static_cast<double>(i) / static_cast<double>(half));
    };
    for (std::int64_t i = 0; i < half; ++i) values.push_back(std::cos(angle(i)));
    for (std::int64_t i = 0; i < half; ++i) values.push_back(std::sin(angle(i)));
  }
  return HostTensor::from_values(f32, {positions, 2 * half}, values);
}

// Some so small that the largest numbers are cut to what a byte holds.
HostTensor random_scales(const OptionValues& o, std::uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::vector<double> values;
  for (std::int64_t head = 0; head < o.integer("kv_heads"); ++head) {
    values.push_back(std::ldexp(1 + static_cast<double>(generator() % 256) / 256, -8));
  }
  return HostTensor::from_values(f32, {o.integer("kv_heads")}, values);
}

std::vector<KernelOption> append_options(Appends what) {
  KernelOption pages = length_option("pages", "pages of the cache", "40");
  KernelOption max_pages = length_option("max_pages", "pages that a sequence may have", "8");
  KernelOption batch = length_option("batch", "sequences", "4");
  for (KernelOption* each : {&pages, &max_pages, &batch}) each->minimum = 1;
  std::vector<KernelOption> options = {
      length_option("tokens", "new tokens", "100"), batch, pages, max_pages,
      count_option("page", "slots of a page", "16", 65536, {"16", "1"})};
  if (what == Appends::latent) {
    options.insert(options.end(),
                   {count_option("dim", "elements of a row", "576", kMaximumDim, {"576", "96"}),
                    flag_option("rotary", "the last elements of a row are rotated by its position"),
                    count_option("rotary_dim", "with rotary: how many of them; even", "64",
                                 kMaximumDim, {"64", "32"})});
  } else {
    options.insert(
        options.end(),
        {count_option("kv_heads", "heads of K and V", "8", 65535, {"8", "3", "20"}),
         count_option("dim", "elements of a key row", "128", kMaximumDim, {"128", "64"}),
         count_option("dim_v", "elements of a value row", "dim", kMaximumDim, {"dim", "64"}),
         flag_option("rotary", "keys are rotated by their positions"),
         count_option("rotary_dim", "with rotary: elements of a key that are rotated; even", "dim",
                      kMaximumDim, {"dim", "32"})});
  }
  options.push_back(dtype_option());
  return options;
}

std::vector<LibraryTensor> append_tensors(Appends what) {
  const auto drawn = [](auto make) {
    return [make](const OptionValues& o, std::uint64_t seed, const std::vector<HostTensor>&) {
      return make(o, seed);
    };
  };
  const auto of_places = [&](std::vector<double> AppendPlaces::*which) {
    return drawn([which](const OptionValues& o, std::uint64_t seed) {
      const AppendPlaces places = random_places(o, seed);
      return HostTensor::from_values(i32, {o.integer("tokens")}, places.*which);
    });
  };
  std::vector<LibraryTensor> tensors = {{"K", {"tokens", "kv_heads", "dim"}, false, {}},
                                        {"V", {"tokens", "kv_heads", "dim_v"}, false, {}}};
  if (what == Appends::latent) tensors = {{"KV", {"tokens", "dim"}, false, {}}};
  const std::vector<LibraryTensor> places = {
      {"sequences", {"tokens"}, false, i32, of_places(&AppendPlaces::sequences)},
      {"positions", {"tokens"}, false, i32, of_places(&AppendPlaces::positions)},
      {"block_table", {"batch", "max_pages"}, false, i32, drawn(random_pages)},
      {"cos_sin",
       {"(max_pages * page)", "rotary_dim"},
       false,
       f32,
       drawn([](const OptionValues& o, std::uint64_t) { return cos_sin(o); }),
       "rotary"}};
  tensors.insert(tensors.end(), places.begin(), places.end());
  if (what == Appends::quantised) {
    tensors.push_back({"K_scale", {"kv_heads"}, false, f32, drawn(random_scales)});
    tensors.push_back(
        {"V_scale", {"kv_heads"}, false, f32, drawn([](const OptionValues& o, std::uint64_t seed) {
           return random_scales(o, seed + 1);
         })});
  }
  std::vector<LibraryTensor> caches = {
      {"K_cache", {"pages", "page", "kv_heads", "dim"}, true, {}},
      {"V_cache", {"pages", "page", "kv_heads", "dim_v"}, true, {}}};
  if (what == Appends::latent) caches = {{"KV_cache", {"pages", "page", "dim"}, true, {}}};
  for (LibraryTensor& cache : caches) {
    if (what == Appends::quantised) cache.dtype = f8e4m3;
    cache.is_inout = true;
    tensors.push_back(std::move(cache));
  }
  return tensors;
}

LibraryKernel append_entry(Appends what, std::string name, std::string description) {
  LibraryKernel kernel;
  kernel.name = std::move(name);
  kernel.description = std::move(description);
  kernel.options = append_options(what);
  kernel.tensors = append_tensors(what);
  kernel.build = [what](const OptionValues& options) {
    return kv_append(append_of(options, what), {});
  };
  kernel.check = [what, name = kernel.name](const OptionValues& options) {
    check_append(append_of(options, what), {name.c_str(), {}});
  };
  kernel.reference = [what](const OptionValues& options, const std::vector<HostTensor>& inputs) {
    const KvAppend a = append_of(options, what);
    return kv_append_reference({a.page, a.rotary_dim, a.cache != a.dtype, a.latent}, inputs);
  };
  // Of each rotated element two products and a sum.
  kernel.floating_operations = [what](const OptionValues& options, const std::vector<HostTensor>&) {
    const KvAppend a = append_of(options, what);
    return 3.0 * static_cast<double>(options.integer("tokens")) * a.kv_heads * a.rotary_dim;
  };
  return kernel;
}

MergeStates merge_of(const OptionValues& options) {
  MergeStates m;
  m.heads = static_cast<int>(options.integer("heads"));
  m.dim = static_cast<int>(options.integer("dim"));
  m.dtype = options.dtype("dtype");
  return m;
}

// Normal numbers. A third of the states have seen no key in a part, some in none.
std::vector<double> random_sums(const OptionValues& o, std::uint64_t seed) {
  const std::int64_t parts = o.integer("parts"), states = o.integer("rows") * o.integer("heads");
  const HostTensor normal = HostTensor::random_normal(f32, {parts, states}, seed + 1);
  std::mt19937_64 generator(seed + 2);
  std::vector<double> sums;
  for (std::int64_t i = 0; i < parts * states; ++i) {
    const bool is_empty = (parts > 1 && generator() % 3 == 0) || (states > 5 && i % states == 5);
    sums.push_back(is_empty ? -std::numeric_limits<double>::infinity() : 3 * normal.flat(i));
  }
  return sums;
}

// What is empty is NaN.
HostTensor random_outputs(const OptionValues& o, std::uint64_t seed) {
  const std::int64_t dim = o.integer("dim");
  HostTensor outputs = HostTensor::random_normal(
      o.dtype("dtype"), {o.integer("parts"), o.integer("rows"), o.integer("heads"), dim}, seed);
  const std::vector<double> sums = random_sums(o, seed);
  for (std::size_t state = 0; state < sums.size(); ++state) {
    if (std::isfinite(sums[state])) continue;
    for (std::int64_t column = 0; column < dim; ++column) {
      outputs.set_flat(static_cast<std::int64_t>(state) * dim + column, std::nan(""));
    }
  }
  return outputs;
}

LibraryKernel merge_entry() {
  LibraryKernel kernel;
  kernel.name = "merge_states";
  kernel.description =
      "joins attention to parts of the keys: O and LSE of the whole, from those of each part";
  kernel.options = {
      length_option("parts", "parts of the keys", "4"), length_option("rows", "query rows", "256"),
      count_option("heads", "query heads", "8", 65535, {"8", "3", "40"}),
      count_option("dim", "elements of a row of O", "128", kMaximumDim, {"128", "64", "256"}),
      dtype_option()};
  const auto sums = [](const OptionValues& o, std::uint64_t seed, const std::vector<HostTensor>&) {
    return HostTensor::from_values(f32, {o.integer("parts"), o.integer("rows"), o.integer("heads")},
                                   random_sums(o, seed));
  };
  const auto outputs = [](const OptionValues& o, std::uint64_t seed,
                          const std::vector<HostTensor>&) { return random_outputs(o, seed); };
  kernel.tensors = {{"O_parts", {"parts", "rows", "heads", "dim"}, false, {}, outputs},
                    {"LSE_parts", {"parts", "rows", "heads"}, false, f32, sums},
                    {"O", {"rows", "heads", "dim"}, true, {}},
                    {"LSE", {"rows", "heads"}, true, f32}};
  kernel.build = [](const OptionValues& options) { return merge_states(merge_of(options), {}); };
  kernel.check = [](const OptionValues&) {};
  kernel.reference = [](const OptionValues&, const std::vector<HostTensor>& inputs) {
    return merge_states_reference(inputs);
  };
  kernel.floating_operations = [](const OptionValues& o, const std::vector<HostTensor>&) {
    return 3.0 * static_cast<double>(o.integer("parts") * o.integer("rows")) *
           static_cast<double>(o.integer("heads") * o.integer("dim"));
  };
  return kernel;
}

}  // namespace

std::vector<LibraryKernel> serving_entries() {
  return {append_entry(Appends::plain, "kv_append",
                       "keys and values of new tokens into a cache in pages, by a table of these; "
                       "keys may be rotated by their positions"),
          append_entry(Appends::quantised, "kv_append_fp8",
                       "kv_append to a cache of e4m3, with a scale for each head of K and V"),
          append_entry(Appends::latent, "kv_append_mla",
                       "kv_append of latent rows, as attention_paged_mla reads them; their last "
                       "elements may be rotated"),
          merge_entry()};
}

}  // namespace tilewright::kernels
