#include "kernels/registry_gemm.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "kernels/reference_gemm.h"
#include "kernels/registry_options.h"
#include "kernels/schedule_rules.h"
#include "tilewright/kernels/gemm.h"

namespace tilewright::kernels {
namespace {

const char* const kActivations[] = {"none", "relu", "gelu", "gelu_tanh", "silu"};  // as numbered

Activation activation_of(const OptionValues& options) {
  const auto* const found =
      std::find(std::begin(kActivations), std::end(kActivations), options.text("activation"));
  return static_cast<Activation>(found - std::begin(kActivations));
}

KernelOption activation_option(const char* standard) {
  KernelOption option{"activation", "what follows the sums", Kind::choice, standard, 0, 0, {}};
  const bool may_be_none = std::string(standard) == "none";
  option.choices.assign(std::begin(kActivations) + (may_be_none ? 0 : 1), std::end(kActivations));
  return option;
}

// Which axis A and B are contiguous along: k, or m and n.
struct OperandLayout {
  const char* name;
  bool a_along_m, b_along_n;
};

Gemm linear_of(const OperandLayout& layout, const OptionValues& options) {
  Gemm g;
  g.dtype = options.dtype("dtype");
  g.a_along_m = layout.a_along_m;
  g.b_along_n = layout.b_along_n;
  g.bias = options.boolean("bias");
  g.residual = options.boolean("residual");
  g.activation = activation_of(options);
  g.keep_sums = options.boolean("keep_sums");
  return g;
}

// Of rows, B is packed once for twice as many as on a GPU.
Gemm with_cpu_blocks(Gemm g) {
  g.block_m = 256;
  g.block_n = 128;
  return g;
}

double gemm_operations(const OptionValues& options, const std::vector<HostTensor>&) {
  return 2.0 * static_cast<double>(options.integer("m")) *
         static_cast<double>(options.integer("n")) * static_cast<double>(options.integer("k"));
}

void add_gemm_schedules(LibraryKernel& kernel, const std::vector<GemmVariant>& variants,
                        const char* description,
                        const std::function<Gemm(const OptionValues&)>& of) {
  for (const GemmVariant& variant : variants) {
    kernel.schedules.push_back(
        {variant.name, "sm_90a", description, [of, variant](const OptionValues& options) {
           return gemm_sm90(with_variant(of(options), variant), {});
         }});
  }
  kernel.schedules.push_back({"cpu", "cpu", kOfCpu, [of](const OptionValues& options) {
                                return gemm(with_cpu_blocks(of(options)), {});
                              }});
  kernel.build = [of](const OptionValues& options) { return gemm(of(options), {}); };
}

void add_sm100_schedules(LibraryKernel& kernel,
                         const std::function<Gemm(const OptionValues&)>& of) {
  const auto add = [&](const char* name, const char* description, GemmRoles roles,
                       int columns = 256) {
    kernel.schedules.push_back(
        {name, "sm_100a", description, [of, roles, columns](const OptionValues& options) {
           Gemm g = of(options);
           g.block_n = columns;
           return gemm_sm100(g, roles, {});
         }});
  };
  add("sm100", "persistent, with roles that load, multiply and store", GemmRoles::persistent);
  add("sm100_128", "the same in tiles of 128 columns instead of 256", GemmRoles::persistent, 128);
  add("sm100_64", "the same in tiles of 64 columns", GemmRoles::persistent, 64);
  add("sm100_pairs", "sm100 by products of pairs of CTAs", GemmRoles::pairs);
  add("sm100_pairs_128", "the same in tiles of 128 columns", GemmRoles::pairs, 128);
  add("sm100_handed_out", "sm100_pairs with tiles handed out by cluster launch control",
      GemmRoles::handed_out);
  add("sm100_one_tile", "sm100 with one tile of each CTA", GemmRoles::one_tile);
}

std::vector<KernelOption> gemm_lengths() {
  return {length_option("m", "rows of C", "512"), length_option("n", "columns of C", "512"),
          length_option("k", "elements of a sum", "512")};
}

// The product alone, for which there are many variants.
LibraryKernel gemm_entry() {
  LibraryKernel kernel;
  kernel.name = "gemm";
  kernel.rules = schedule_rules(kernel.name);
  kernel.description = "C = A B^T, with A {m, k}, B {n, k} and sums in f32";
  kernel.options = gemm_lengths();
  kernel.options.push_back(dtype_option());
  kernel.options.push_back(
      {"layout", "nt: both operands are contiguous along k", Kind::choice, "nt", 0, 0, {"nt"}});
  kernel.tensors = {
      {"A", {"m", "k"}, false, {}}, {"B", {"n", "k"}, false, {}}, {"C", {"m", "n"}, true, {}}};
  const auto product_of = [](const OptionValues& options) {
    Gemm g;
    g.dtype = options.dtype("dtype");
    return g;
  };
  add_gemm_schedules(kernel, gemm_variants(),
                     "persistent, in such tiles; bf16 and f16, n and k multiples of 8", product_of);
  add_sm100_schedules(kernel, product_of);
  kernel.check = [](const OptionValues&) {};
  kernel.reference = [](const OptionValues&, const std::vector<HostTensor>& inputs) {
    return gemm_reference(inputs);
  };
  kernel.floating_operations = gemm_operations;
  return kernel;
}

LibraryKernel gemm_fp8_entry() {
  LibraryKernel kernel = gemm_entry();
  kernel.name = "gemm_fp8";
  kernel.description =
      "C = scale_a scale_b A B^T, with A {m, k} and B {n, k} e4m3, C bf16, sums in f32";
  const auto option = [](const KernelOption& o) { return o.name == "dtype"; };
  kernel.options.erase(std::remove_if(kernel.options.begin(), kernel.options.end(), option),
                       kernel.options.end());
  kernel.tensors = {{"A", {"m", "k"}, false, f8e4m3},
                    {"B", {"n", "k"}, false, f8e4m3},
                    {"scale_a", {"1"}, false, f32},
                    {"scale_b", {"1"}, false, f32},
                    {"C", {"m", "n"}, true, bf16}};
  kernel.schedules.clear();
  const auto product_of = [](const OptionValues&) {
    Gemm g;
    g.dtype = f8e4m3;
    g.block_k = 128;
    return g;
  };
  add_gemm_schedules(kernel, gemm_variants(),
                     "persistent, in such tiles; n a multiple of 8, k of 16", product_of);
  add_sm100_schedules(kernel, product_of);
  return kernel;
}

// Of any layout, with what may stand behind it, in variants that leave registers for that.
LibraryKernel linear_entry(const OperandLayout& layout) {
  using Axes = std::vector<std::string>;
  const Axes a = layout.a_along_m ? Axes{"k", "m"} : Axes{"m", "k"};
  const Axes b = layout.b_along_n ? Axes{"k", "n"} : Axes{"n", "k"};
  LibraryKernel kernel;
  kernel.name = layout.name;
  kernel.rules = schedule_rules("gemm_nt");
  kernel.description = "C = activation(A B^T + bias) + residual, with A {" + a[0] + ", " + a[1] +
                       "}, B {" + b[0] + ", " + b[1] + "} and sums in f32";
  kernel.options = gemm_lengths();
  kernel.options.push_back(dtype_option());
  kernel.options.push_back(flag_option("bias", "each column has a number that is added"));
  kernel.options.push_back(activation_option("none"));
  kernel.options.push_back(flag_option("residual", "a matrix is added behind the activation"));
  kernel.options.push_back(flag_option("keep_sums", "Z is what the activation was given"));
  kernel.tensors = {{"A", a, false, {}},
                    {"B", b, false, {}},
                    {"bias", {"n"}, false, {}, {}, "bias"},
                    {"residual", {"m", "n"}, false, {}, {}, "residual"},
                    {"C", {"m", "n"}, true, {}},
                    {"Z", {"m", "n"}, true, {}, {}, "keep_sums"}};
  add_gemm_schedules(kernel, gemm_linear_variants(),
                     "persistent, in such tiles; bf16 and f16, rows of each tensor multiples of 8",
                     [layout](const OptionValues& options) { return linear_of(layout, options); });
  if (!layout.a_along_m && !layout.b_along_n) {
    add_sm100_schedules(
        kernel, [layout](const OptionValues& options) { return linear_of(layout, options); });
  }
  kernel.check = [](const OptionValues&) {};
  kernel.reference = [layout](const OptionValues& o, const std::vector<HostTensor>& inputs) {
    return linear_reference({layout.a_along_m, layout.b_along_n, o.boolean("bias"),
                             o.boolean("residual"), o.boolean("keep_sums"), o.text("activation")},
                            inputs);
  };
  kernel.floating_operations = gemm_operations;
  return kernel;
}

double operations_of_elements(const OptionValues& o, const std::vector<HostTensor>&) {
  return 8.0 * static_cast<double>(o.integer("rows")) * static_cast<double>(o.integer("columns"));
}

LibraryKernel activation_backward_entry() {
  LibraryKernel kernel;
  kernel.name = "activation_backward";
  kernel.description = "dZ of an activation of Z, from dY, and its sums over the rows";
  kernel.options = {length_option("rows", "rows", "512"),
                    length_option("columns", "elements of a row", "512"), dtype_option(),
                    activation_option("relu"), flag_option("bias", "dbias: the sums of dZ")};
  kernel.tensors = {{"Z", {"rows", "columns"}, false, {}},
                    {"dY", {"rows", "columns"}, false, {}},
                    {"dZ", {"rows", "columns"}, true, {}},
                    {"dbias", {"columns"}, true, {}, {}, "bias"}};
  kernel.build_program = [](const OptionValues& o) {
    return activation_backward({o.dtype("dtype"), activation_of(o), o.boolean("bias")}, {});
  };
  kernel.check = [](const OptionValues&) {};
  kernel.reference = [](const OptionValues& o, const std::vector<HostTensor>& inputs) {
    return activation_backward_reference(o.text("activation"), o.boolean("bias"), inputs);
  };
  kernel.floating_operations = operations_of_elements;
  return kernel;
}

LibraryKernel column_sums_entry() {
  LibraryKernel kernel;
  kernel.name = "column_sums";
  kernel.description = "the sums of X over its rows, as a bias's gradient is";
  kernel.options = {length_option("rows", "rows", "512"),
                    length_option("columns", "elements of a row", "512"), dtype_option()};
  kernel.tensors = {{"X", {"rows", "columns"}, false, {}}, {"S", {"columns"}, true, {}}};
  kernel.build_program = [](const OptionValues& o) { return column_sums(o.dtype("dtype"), {}); };
  kernel.check = [](const OptionValues&) {};
  kernel.reference = [](const OptionValues&, const std::vector<HostTensor>& inputs) {
    return column_sums_reference(inputs);
  };
  kernel.floating_operations = operations_of_elements;
  return kernel;
}

}  // namespace

std::vector<LibraryKernel> gemm_entries() {
  return {gemm_entry(),
          linear_entry({"gemm_nt", false, false}),
          linear_entry({"gemm_nn", false, true}),
          linear_entry({"gemm_tn", true, true}),
          linear_entry({"gemm_tt", true, false}),
          gemm_fp8_entry(),
          activation_backward_entry(),
          column_sums_entry()};
}

}  // namespace tilewright::kernels
