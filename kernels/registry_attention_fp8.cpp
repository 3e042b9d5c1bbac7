#include <random>
#include <string>
#include <vector>

#include "kernels/attention_fp8.h"
#include "kernels/registry_attention.h"
#include "kernels/registry_options.h"
#include "kernels/schedule_rules.h"

namespace tilewright::kernels {
namespace {

AttentionSizes sizes_of(const OptionValues& o) {
  return {o.integer("batch"),
          o.integer("queries"),
          o.integer("keys"),
          o.integer("heads"),
          o.integer("kv_heads"),
          o.integer("dim"),
          o.integer("dim_v"),
          o.boolean("causal"),
          0,
          score_scale_of(o),
          0};
}

LibraryTensor scales(const char* name, const char* heads) {
  return {
      name,
      {heads},
      false,
      f32,
      [heads](const OptionValues& o, std::uint64_t seed, const std::vector<HostTensor>& before) {
        std::mt19937_64 generator(seed + before.size());  // none is another's
        std::vector<double> values;
        for (std::int64_t i = 0; i < o.integer(heads); ++i) {
          values.push_back(0.5 + static_cast<double>(generator() % 128) / 128);
        }
        return HostTensor::from_values(f32, {o.integer(heads)}, values);
      }};
}

// {batch, rows, heads, dim} times the heads' scales.
HostTensor scaled(const HostTensor& tensor, const HostTensor& scales, std::int64_t dim) {
  std::vector<double> values = numbers_of(tensor);
  const std::vector<double> of_heads = numbers_of(scales);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] *= of_heads[i / static_cast<std::size_t>(dim) % of_heads.size()];
  }
  return HostTensor::from_values(f32, tensor.shape(), values);
}

}  // namespace

LibraryKernel attention_forward_fp8_entry() {
  LibraryKernel kernel;
  kernel.name = "attention_forward_fp8";
  kernel.description = "attention_forward of Q, K and V in e4m3, with a scale for each head";
  kernel.options = attention_shape_options("128", {"128", "64"}, {"dim", "64", "128"});
  kernel.options.insert(kernel.options.end(), {scale_option(),
                                               {"dtype",
                                                "element type of O",
                                                Kind::dtype,
                                                "bf16",
                                                0,
                                                0,
                                                {"bf16", "f16"},
                                                false,
                                                {"bf16", "f16"}}});
  kernel.tensors = {{"Q", {"batch", "queries", "heads", "dim"}, false, f8e4m3},
                    {"K", {"batch", "keys", "kv_heads", "dim"}, false, f8e4m3},
                    {"V", {"batch", "keys", "kv_heads", "dim_v"}, false, f8e4m3},
                    scales("Q_scale", "heads"),
                    scales("K_scale", "kv_heads"),
                    scales("V_scale", "kv_heads"),
                    {"O", {"batch", "queries", "heads", "dim_v"}, true, {}},
                    {"LSE", {"batch", "heads", "queries"}, true, f32}};
  kernel.tensors[1].online_axis = 1;
  LibrarySchedule sm90{"sm90", "sm_90a",
                       "products of e4m3: a kernel turns V over, another one attends, as "
                       "attention_forward does; dims of 64 and 128",
                       nullptr};
  sm90.build_program = [](const OptionValues& options) {
    return attention_forward_fp8_sm90(with_sm90_fp8_blocks(attention_shape_of(options)), {});
  };
  kernel.schedules = {std::move(sm90)};
  kernel.rules = schedule_rules(kernel.name);
  kernel.build_program = [](const OptionValues& options) {
    return attention_forward_fp8(with_tile_blocks(attention_shape_of(options)), {});
  };
  kernel.check = [](const OptionValues& options) {
    check_attention_fp8(attention_shape_of(options), {"attention_forward_fp8", {}});
  };
  kernel.reference = [](const OptionValues& o, const std::vector<HostTensor>& inputs) {
    return attention_reference(sizes_of(o), {scaled(inputs[0], inputs[3], o.integer("dim")),
                                             scaled(inputs[1], inputs[4], o.integer("dim")),
                                             scaled(inputs[2], inputs[5], o.integer("dim_v"))});
  };
  kernel.floating_operations = [](const OptionValues& o, const std::vector<HostTensor>&) {
    const AttentionSizes s = sizes_of(o);
    return 2.0 * static_cast<double>(s.batch * s.queries * s.keys) *
           static_cast<double>(s.heads * (s.dim + s.dim_v)) * (s.causal ? 0.5 : 1);
  };
  return kernel;
}

}  // namespace tilewright::kernels
