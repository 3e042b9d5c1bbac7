#include "kernels/registry_ranks.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/gemm_ranks_check.h"
#include "kernels/reference.h"
#include "kernels/registry_options.h"
#include "kernels/schedule_rules.h"

namespace tilewright::kernels {
KernelOption ranks_option() {
  KernelOption option = count_option("ranks", "GPUs that run it together", "2", 8, {"2", "3"});
  option.minimum = 2;
  return option;
}

namespace {

GemmReduceScatter reduce_scatter_of(const OptionValues& options) {
  GemmReduceScatter o;
  o.gemm.dtype = options.dtype("dtype");
  o.ranks = static_cast<int>(options.integer("ranks"));
  o.parts = options.dtype("parts");
  o.scale = options.boolean("scale");
  o.bias = options.boolean("bias");
  return o;
}

AllGatherGemm all_gather_of(const OptionValues& options) {
  AllGatherGemm o;
  o.gemm.dtype = options.dtype("dtype");
  o.ranks = static_cast<int>(options.integer("ranks"));
  return o;
}

// Of all ranks: each multiplies as many rows as all of them have.
double product_operations(const OptionValues& options, const std::vector<HostTensor>&) {
  const double ranks = static_cast<double>(options.integer("ranks"));
  return 2.0 * ranks * ranks * static_cast<double>(options.integer("m")) *
         static_cast<double>(options.integer("n")) * static_cast<double>(options.integer("k"));
}

std::vector<LibrarySchedule> schedules_of(
    const std::vector<RankGemmVariant>& variants, const char* description,
    const std::function<Program(const OptionValues&, const RankGemmVariant&)>& build) {
  std::vector<LibrarySchedule> schedules;
  for (const RankGemmVariant& variant : variants) {
    LibrarySchedule schedule{variant.name(), "sm_90a", description, nullptr};
    schedule.build_program = [build, variant](const OptionValues& options) {
      return build(options, variant);
    };
    schedules.push_back(std::move(schedule));
  }
  return schedules;
}

}  // namespace

LibraryKernel gemm_reduce_scatter_entry() {
  LibraryKernel kernel;
  kernel.name = "gemm_reduce_scatter";
  kernel.over_ranks = true;
  kernel.rules = schedule_rules(kernel.name);
  kernel.description =
      "C = scale * (sum over the ranks s of A_s[rank] B_s^T) + bias: of a product whose depth is "
      "divided among ranks each gets its own m rows; the same bits in every run";
  kernel.options = {
      ranks_option(),
      length_option("m", "rows of C, which a rank gets", "512"),
      length_option("n", "rows of B, columns of C", "512"),
      length_option("k", "columns of A and B, which a rank has", "512"),
      dtype_option(),
      {"parts",
       "how the parts of sums travel: as dtype, or f32",
       Kind::dtype,
       "dtype",
       0,
       0,
       {"bf16", "f16", "f32"},
       false,
       {"bf16", "f32"}},
      flag_option("scale", "the sum is multiplied by scale"),
      flag_option("bias", "bias is added to each row"),
  };
  kernel.tensors = {{"A", {"ranks", "m", "k"}, false, {}},
                    {"B", {"n", "k"}, false, {}},
                    {"scale", {"1"}, false, f32, {}, "scale"},
                    {"bias", {"n"}, false, f32, {}, "bias"},
                    {"C", {"m", "n"}, true, {}}};
  kernel.schedules = schedules_of(
      reduce_scatter_variants(),
      "one persistent kernel in such tiles, the next rank's rows first; bf16 and f16, n and k "
      "multiples of 8",
      [](const OptionValues& options, const RankGemmVariant& variant) {
        return gemm_reduce_scatter_sm90(with_variant(reduce_scatter_of(options), variant), {});
      });
  kernel.build_program = [](const OptionValues& options) {
    return gemm_reduce_scatter(reduce_scatter_of(options), {});
  };
  kernel.check = [](const OptionValues& options) {
    check_reduce_scatter(reduce_scatter_of(options), {"gemm_reduce_scatter", {}});
  };
  kernel.reference = [](const OptionValues& options, const std::vector<HostTensor>& inputs) {
    return reduce_scatter_reference(options.integer("ranks"), options.boolean("scale"),
                                    options.boolean("bias"), inputs);
  };
  kernel.floating_operations = product_operations;
  return kernel;
}

LibraryKernel all_gather_gemm_entry() {
  LibraryKernel kernel;
  kernel.name = "all_gather_gemm";
  kernel.over_ranks = true;
  kernel.rules = schedule_rules(kernel.name);
  kernel.description =
      "C[s] = A_s B^T for all ranks s: each rank has its own m rows of A, and columns of C";
  kernel.options = {
      ranks_option(),
      length_option("m", "rows of A, which a rank has", "512"),
      length_option("n", "rows of B, columns of C, which a rank has", "512"),
      length_option("k", "columns of A and B", "512"),
      dtype_option(),
  };
  kernel.tensors = {{"A", {"m", "k"}, false, {}},
                    {"B", {"n", "k"}, false, {}},
                    {"C", {"ranks", "m", "n"}, true, {}}};
  kernel.schedules = schedules_of(
      all_gather_variants(),
      "one persistent kernel in such tiles, its own rows first, while copy engines push the "
      "others, or its warps do; bf16 and f16, n and k multiples of 8",
      [](const OptionValues& options, const RankGemmVariant& variant) {
        return all_gather_gemm_sm90(with_variant(all_gather_of(options), variant), {});
      });
  kernel.build_program = [](const OptionValues& options) {
    return all_gather_gemm(all_gather_of(options), {});
  };
  kernel.check = [](const OptionValues& options) {
    check_all_gather(all_gather_of(options), {"all_gather_gemm", {}});
  };
  kernel.reference = [](const OptionValues& options, const std::vector<HostTensor>& inputs) {
    return all_gather_reference(options.integer("ranks"), inputs);
  };
  kernel.floating_operations = product_operations;
  return kernel;
}

}  // namespace tilewright::kernels
