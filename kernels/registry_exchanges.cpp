#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kernels/all_to_all_parts.h"
#include "kernels/collectives_sm90.h"
#include "kernels/projection_all_to_all.h"
#include "kernels/reference_exchanges.h"
#include "kernels/registry_options.h"
#include "kernels/registry_ranks.h"
#include "kernels/schedule_rules.h"

namespace tilewright::kernels {
namespace {

AllToAll all_to_all_of(const OptionValues& options, bool packed, bool back) {
  AllToAll o;
  o.packed = packed;
  o.dtype = options.dtype("dtype");
  o.ranks = static_cast<int>(options.integer("ranks"));
  o.heads = static_cast<int>(options.integer("heads"));
  o.dim_v = static_cast<int>(options.integer("dim_v"));
  o.kv_heads = o.heads;
  o.dim = o.dim_v;
  if (back) return o;
  o.kv_heads = static_cast<int>(options.integer("kv_heads"));
  o.dim = static_cast<int>(options.integer("dim"));
  return o;
}

ExchangedHeadCounts heads_of(const AllToAll& o) { return {o.ranks, o.heads, o.kv_heads, o.packed}; }

// Where the parts of packed sequences begin in each rank: its tokens, cut at random places. The
// same in all ranks, by the same seed.
std::function<HostTensor(const OptionValues&, std::uint64_t, const std::vector<HostTensor>&)>
random_first_rows(const char* tokens) {
  return [tokens](const OptionValues& o, std::uint64_t seed, const std::vector<HostTensor>&) {
    const std::int64_t ranks = o.integer("ranks"), batch = o.integer("batch");
    std::mt19937_64 generator(seed);
    std::vector<double> all;
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      std::vector<double> rows(static_cast<std::size_t>(batch) + 1);
      for (double& row : rows) {
        row = static_cast<double>(generator() % static_cast<std::uint64_t>(o.integer(tokens) + 1));
      }
      rows.front() = 0;
      rows.back() = static_cast<double>(o.integer(tokens));
      std::sort(rows.begin(), rows.end());
      all.insert(all.end(), rows.begin(), rows.end());
    }
    return HostTensor::from_values(i32, {ranks, batch + 1}, all);
  };
}

std::vector<KernelOption> exchange_options(bool packed, bool back) {
  const std::string of = packed ? " of all sequences together, of a rank" : " of a rank";
  std::vector<KernelOption> options = {
      ranks_option(),
      length_option("batch", "sequences", packed ? "4" : "1"),
      length_option("queries", "query rows" + of, "512"),
      count_option("heads", "query heads of all ranks; a multiple of ranks", "8", 65535,
                   {"8", "30"}),
      count_option("dim_v", "elements of a value row", back ? "128" : "dim", kMaximumDim,
                   {"128", "80"}),
      dtype_option(),
  };
  if (packed) options[1].minimum = 1;
  if (back) return options;
  options[4].worth_trying = {"dim", "80"};
  options.insert(options.begin() + 3, length_option("keys", "key rows" + of, "queries"));
  options.insert(
      options.begin() + 5,
      {count_option("kv_heads",
                    "heads of K and V; a divisor of heads, and a multiple or divisor of ranks",
                    "heads", 65535, {"heads", "1", "2"}),
       count_option("dim", "elements of a query and key row", "128", kMaximumDim, {"128", "64"})});
  return options;
}

std::vector<LibraryTensor> exchange_tensors(bool packed, bool back) {
  const auto shape = [&](const char* tokens, const char* heads, const char* dim) {
    std::vector<std::string> axes = {tokens, heads, dim};
    if (!packed) axes.insert(axes.begin(), "batch");
    return axes;
  };
  const char *all_queries = "ranks * queries", *own_heads = "heads / ranks";
  const LibraryTensor first_queries{
      "cu_seqlens_q", {"ranks", "batch + 1"}, false, i32, random_first_rows("queries")};
  std::vector<LibraryTensor> tensors;
  if (back) {
    tensors = {{"O_all", shape(all_queries, own_heads, "dim_v"), false, {}}};
    if (packed) tensors.push_back(first_queries);
    tensors.push_back({"O", shape("queries", "heads", "dim_v"), true, {}});
    return tensors;
  }
  tensors = {{"Q", shape("queries", "heads", "dim"), false, {}},
             {"K", shape("keys", "kv_heads", "dim"), false, {}},
             {"V", shape("keys", "kv_heads", "dim_v"), false, {}}};
  if (packed) {
    tensors.push_back(first_queries);
    tensors.push_back(
        {"cu_seqlens_k", {"ranks", "batch + 1"}, false, i32, random_first_rows("keys")});
  }
  const char *all_keys = "ranks * keys", *own_kv_heads = "max(kv_heads / ranks, 1)";
  tensors.push_back({"Q_all", shape(all_queries, own_heads, "dim"), true, {}});
  tensors.push_back({"K_all", shape(all_keys, own_kv_heads, "dim"), true, {}});
  tensors.push_back({"V_all", shape(all_keys, own_kv_heads, "dim_v"), true, {}});
  return tensors;
}

double no_arithmetic(const OptionValues&, const std::vector<HostTensor>&) { return 0; }

LibraryKernel exchange_entry(bool packed, bool back) {
  LibraryKernel kernel;
  kernel.name = std::string("all_to_all") + (packed ? "_varlen" : "") + (back ? "_back" : "");
  kernel.over_ranks = true;
  kernel.description =
      std::string(back ? "from all tokens of own heads to own tokens of all heads"
                       : "from own tokens of all heads to all tokens of own heads") +
      ", Q, K and V of which each rank has a part" +
      (packed ? ": packed sequences, each divided among the ranks" : "");
  if (back) {
    kernel.description = std::string("the way back of all_to_all") + (packed ? "_varlen" : "") +
                         ": O from all tokens of own heads to own tokens of all heads";
  }
  kernel.options = exchange_options(packed, back);
  kernel.tensors = exchange_tensors(packed, back);
  const auto add = [&](const char* name, const char* description,
                       Program (*build)(const AllToAll&, SourceLocation)) {
    LibrarySchedule schedule{name, "sm_90a", description, nullptr};
    schedule.build_program = [=](const OptionValues& options) {
      return build(all_to_all_of(options, packed, back), {});
    };
    kernel.schedules.push_back(std::move(schedule));
  };
  add("push", "one kernel that pushes tiles by TMA; rows of whole 16 bytes",
      back ? all_to_all_back_sm90 : all_to_all_sm90);
  if (!packed) {
    add("copy", "copies of the copy engines, which leave the multiprocessors to others",
        back ? all_to_all_back_copied : all_to_all_copied);
  }
  kernel.rules = schedule_rules(kernel.name);
  kernel.build_program = [=](const OptionValues& options) {
    const AllToAll o = all_to_all_of(options, packed, back);
    return back ? all_to_all_back(o, {}) : all_to_all(o, {});
  };
  kernel.check = [name = kernel.name, packed, back](const OptionValues& options) {
    check_all_to_all(all_to_all_of(options, packed, back), {name.c_str(), {}});
  };
  kernel.reference = [=](const OptionValues& options, const std::vector<HostTensor>& inputs) {
    const ExchangedHeadCounts heads = heads_of(all_to_all_of(options, packed, back));
    return back ? all_to_all_back_reference(heads, inputs) : all_to_all_reference(heads, inputs);
  };
  kernel.floating_operations = no_arithmetic;
  return kernel;
}

ProjectionAllToAll projection_of(const OptionValues& options, bool packed) {
  ProjectionAllToAll o;
  o.heads.packed = packed;
  o.heads.dtype = options.dtype("dtype");
  o.heads.ranks = static_cast<int>(options.integer("ranks"));
  o.heads.heads = static_cast<int>(options.integer("heads"));
  o.heads.kv_heads = static_cast<int>(options.integer("kv_heads"));
  o.heads.dim = o.heads.dim_v = static_cast<int>(options.integer("dim"));
  o.bias = options.boolean("bias");
  return o;
}

LibraryKernel projection_entry(bool packed) {
  LibraryKernel kernel;
  kernel.name = std::string("projection_all_to_all") + (packed ? "_varlen" : "");
  kernel.over_ranks = true;
  kernel.description =
      std::string("all_to_all") + (packed ? "_varlen" : "") +
      " behind a projection: Q, K and V are X W^T + bias, and heads go to their ranks as they are "
      "made";
  const std::vector<KernelOption> of_exchange = exchange_options(packed, /*back=*/false);
  const auto option = [&](const std::string& name) {
    return *std::find_if(of_exchange.begin(), of_exchange.end(),
                         [&](const KernelOption& each) { return each.name == name; });
  };
  kernel.options = {option("ranks"),
                    option("batch"),
                    length_option("tokens", "rows of X, of a rank", "512"),
                    length_option("k", "columns of X and W", "512"),
                    option("heads"),
                    option("kv_heads"),
                    count_option("dim", "elements of a head", "128", kMaximumDim, {"128", "80"}),
                    dtype_option(),
                    flag_option("bias", "bias is added to each row")};
  const auto of_tokens = [&](std::vector<std::string> axes) {
    if (!packed) axes.insert(axes.begin(), "batch");
    return axes;
  };
  const char *columns = "(heads + 2 * kv_heads) * dim", *all_tokens = "ranks * tokens";
  kernel.tensors = {{"X", of_tokens({"tokens", "k"}), false, {}},
                    {"W", {columns, "k"}, false, {}},
                    {"bias", {columns}, false, {}, {}, "bias"}};
  if (packed) {
    kernel.tensors.push_back(
        {"cu_seqlens", {"ranks", "batch + 1"}, false, i32, random_first_rows("tokens")});
  }
  for (const char* name : {"Q_all", "K_all", "V_all"}) {
    const char* const heads = name[0] == 'Q' ? "heads / ranks" : "max(kv_heads / ranks, 1)";
    kernel.tensors.push_back({name, of_tokens({all_tokens, heads, "dim"}), true, {}});
  }
  LibrarySchedule schedule{"push", "sm_90a",
                           "one persistent kernel, whose warps store heads where they belong by "
                           "TMA; bf16 and f16, k a multiple of 8, heads of at most 256 elements",
                           nullptr};
  schedule.build_program = [packed](const OptionValues& options) {
    return projection_all_to_all_sm90(projection_of(options, packed), {});
  };
  kernel.schedules = {schedule};
  kernel.build_program = [packed](const OptionValues& options) {
    return projection_all_to_all(projection_of(options, packed), {});
  };
  kernel.check = [name = kernel.name, packed](const OptionValues& options) {
    check_projection(projection_of(options, packed), {name.c_str(), {}});
  };
  kernel.reference = [packed](const OptionValues& options, const std::vector<HostTensor>& inputs) {
    const ProjectionAllToAll o = projection_of(options, packed);
    return projection_all_to_all_reference(heads_of(o.heads), o.heads.dim, o.bias, inputs);
  };
  kernel.floating_operations = [packed](const OptionValues& o, const std::vector<HostTensor>&) {
    const std::int64_t tokens = o.integer("tokens") * (packed ? 1 : o.integer("batch"));
    const std::int64_t heads = o.integer("heads") + 2 * o.integer("kv_heads");
    return 2.0 * static_cast<double>(o.integer("ranks") * tokens) *
           static_cast<double>(heads * o.integer("dim")) * static_cast<double>(o.integer("k"));
  };
  return kernel;
}

Collective collective_of(const OptionValues& options) {
  return {options.dtype("dtype"), static_cast<int>(options.integer("ranks"))};
}

// The entry of a collective, without schedules and reference.
LibraryKernel collective_entry(
    const char* name, const char* description,
    const std::function<Program(const Collective&, const OptionValues&)>& meaning) {
  LibraryKernel kernel;
  kernel.name = name;
  kernel.over_ranks = true;
  kernel.description = description;
  kernel.options = {ranks_option(), length_option("count", "elements of a vector", "65536"),
                    dtype_option()};
  kernel.tensors = {{"X", {"count"}, false, {}}, {"Y", {"count"}, true, {}}};
  kernel.rules = schedule_rules(kernel.name);
  kernel.build_program = [meaning](const OptionValues& options) {
    return meaning(collective_of(options), options);
  };
  kernel.check = [](const OptionValues&) {};
  kernel.floating_operations = no_arithmetic;
  return kernel;
}

void add_schedule(LibraryKernel& kernel, const char* name, const char* description,
                  const std::function<Program(const Collective&, const OptionValues&)>& build) {
  LibrarySchedule schedule{name, "sm_90a", description, nullptr};
  schedule.build_program = [build](const OptionValues& options) {
    return build(collective_of(options), options);
  };
  kernel.schedules.push_back(std::move(schedule));
}

constexpr const char* kPush = "one kernel whose threads push; vectors of whole 16 bytes";
constexpr const char* kOneShot = "each rank sends all it has to all others; whole 16 bytes";
constexpr const char* kTwoShots =
    "in parts, each through one rank that hands it to the others; whole 16 bytes";

// Y is a sum of numbers that are added.
double additions(const OptionValues& options, const std::vector<HostTensor>&) {
  return static_cast<double>(options.integer("ranks") - 1) *
         static_cast<double>(options.integer("count")) *
         static_cast<double>(options.integer("ranks"));
}

}  // namespace

std::vector<LibraryKernel> exchange_entries() {
  return {exchange_entry(false, false), exchange_entry(false, true), exchange_entry(true, false),
          exchange_entry(true, true),   projection_entry(false),     projection_entry(true)};
}

LibraryKernel all_gather_entry() {
  LibraryKernel kernel =
      collective_entry("all_gather", "Y[s] = X of rank s, in each rank",
                       [](const Collective& c, const OptionValues&) { return all_gather(c, {}); });
  kernel.tensors[1].shape = {"ranks", "count"};
  add_schedule(kernel, "push", kPush,
               [](const Collective& c, const OptionValues&) { return all_gather_sm90(c, {}); });
  kernel.reference = [](const OptionValues&, const std::vector<HostTensor>& inputs) {
    return gathered_reference(inputs);
  };
  return kernel;
}

LibraryKernel reduce_scatter_entry() {
  LibraryKernel kernel = collective_entry(
      "reduce_scatter", "Y = sum over the ranks s of X_s[rank]; the same bits in every run",
      [](const Collective& c, const OptionValues&) { return reduce_scatter(c, {}); });
  kernel.tensors[0].shape = {"ranks", "count"};
  add_schedule(kernel, "push", kPush,
               [](const Collective& c, const OptionValues&) { return reduce_scatter_sm90(c, {}); });
  kernel.reference = [](const OptionValues&, const std::vector<HostTensor>& inputs) {
    return parts_summed_reference(inputs);
  };
  kernel.floating_operations = additions;
  return kernel;
}

LibraryKernel all_reduce_entry() {
  LibraryKernel kernel = collective_entry(
      "all_reduce", "Y = sum of X over the ranks; the same bits in every rank and run",
      [](const Collective& c, const OptionValues&) { return all_reduce(c, {}); });
  add_schedule(kernel, "one_shot", kOneShot, [](const Collective& c, const OptionValues&) {
    return all_reduce_sm90(c, Shots::one, {});
  });
  add_schedule(kernel, "two_shots", kTwoShots, [](const Collective& c, const OptionValues&) {
    return all_reduce_sm90(c, Shots::two, {});
  });
  kernel.reference = [](const OptionValues&, const std::vector<HostTensor>& inputs) {
    return summed_reference(inputs);
  };
  kernel.floating_operations = additions;
  return kernel;
}

LibraryKernel broadcast_entry() {
  const auto root_of = [](const OptionValues& options) {
    return static_cast<int>(options.integer("root"));
  };
  LibraryKernel kernel = collective_entry(
      "broadcast", "Y = X of rank root, in each rank",
      [=](const Collective& c, const OptionValues& o) { return broadcast(c, root_of(o), {}); });
  kernel.options.push_back(integer_option("root", "the rank whose X it is", {"0"}));
  add_schedule(kernel, "one_shot", kOneShot, [=](const Collective& c, const OptionValues& o) {
    return broadcast_sm90(c, root_of(o), Shots::one, {});
  });
  add_schedule(kernel, "two_shots", kTwoShots, [=](const Collective& c, const OptionValues& o) {
    return broadcast_sm90(c, root_of(o), Shots::two, {});
  });
  kernel.check = [=](const OptionValues& o) {
    check_root(collective_of(o), root_of(o), {"broadcast", {}});
  };
  kernel.reference = [=](const OptionValues& options, const std::vector<HostTensor>& inputs) {
    return broadcast_reference(root_of(options), inputs);
  };
  return kernel;
}

}  // namespace tilewright::kernels
