#include "kernels/registry_rows.h"

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <utility>

#include "kernels/caller.h"
#include "kernels/reference_rows.h"
#include "kernels/registry_options.h"
#include "kernels/schedule_rules.h"
#include "tilewright/kernels/rotary.h"
#include "tilewright/kernels/rows.h"

namespace tilewright::kernels {
namespace {

using Numbers = std::vector<double>;
using RowInputs = std::vector<HostTensor>;

const char* const kRowAxis = "rows";
const char* const kColumnAxis = "columns";

std::vector<KernelOption> matrix_options(const char* columns) {
  return {length_option("rows", "rows", "512"), length_option("columns", columns, "1024")};
}

// How a row is gone over. One that fits a tile is read once, and stays in registers.
struct RowSchedule {
  const char *name, *target, *description;
  RowBlocks blocks;
};
const RowSchedule kRowSchedules[] = {
    {"row1024", "sm_90a", "four rows a CTA, each read once: at most 1024 columns", {4, 1024, true}},
    {"row4096", "sm_90a", "a row a CTA, read once: at most 4096 columns", {1, 4096, true}},
    {"row8192", "sm_90a", "a row a CTA, read once: at most 8192 columns", {1, 8192, true}},
    {"cpu256", "cpu", "blocks of 64 rows, each read once: at most 256 columns", {64, 256, true}},
    {"cpu1024", "cpu", "blocks of 64 rows, each read once: at most 1024 columns", {64, 1024, true}},
    {"cpu4096", "cpu", "blocks of 16 rows, each read once: at most 4096 columns", {16, 4096, true}},
    {"cpu", "cpu", "the tile level in blocks of 16 rows", {16, 1024, false}}};

// `set` has the function's own settings; `build` makes its kernel or program of them.
template <typename Settings, typename Builder>
void add_row_schedules(LibraryKernel& kernel, Settings (*set)(const OptionValues&), Builder build) {
  for (const RowSchedule& each : kRowSchedules) {
    LibrarySchedule schedule{each.name, each.target, each.description, nullptr};
    const auto with_blocks = [=, blocks = each.blocks](const OptionValues& options) {
      Settings settings = set(options);
      settings.blocks = blocks;
      return build(settings, {});
    };
    if constexpr (std::is_same_v<decltype(build(Settings(), {})), Program>) {
      schedule.build_program = with_blocks;
    } else {
      schedule.build = with_blocks;
    }
    kernel.schedules.push_back(std::move(schedule));
  }
  kernel.rules = schedule_rules("rms_norm");
}

// What a forward pass has made of the tensors before: output number `which` of a reference.
LibraryTensor made_before(std::string name, std::vector<std::string> shape,
                          std::optional<DType> dtype,
                          std::function<Numbers(const OptionValues&, const RowInputs&)> make) {
  LibraryTensor tensor{std::move(name), std::move(shape), false, dtype};
  tensor.values = [make = std::move(make), shape = tensor.shape, dtype](
                      const OptionValues& o, std::uint64_t, const RowInputs& before) {
    std::vector<std::int64_t> sizes;
    for (const std::string& axis : shape) sizes.push_back(o.integer(axis));
    return HostTensor::from_values(dtype.value_or(o.dtype("dtype")), sizes, make(o, before));
  };
  return tensor;
}

std::function<double(const OptionValues&, const RowInputs&)> operations_an_element(double count) {
  return [count](const OptionValues& o, const RowInputs&) {
    return count * static_cast<double>(o.integer(kRowAxis)) *
           static_cast<double>(o.integer(kColumnAxis));
  };
}

template <bool kCentred>
Norm norm_of(const OptionValues& options) {
  Norm n;
  n.centred = kCentred;
  n.dtype = options.dtype("dtype");
  n.weight = options.boolean("weight");
  n.bias = options.boolean("bias");
  n.epsilon = options.number("epsilon");
  return n;
}
NormSizes norm_sizes(const Norm& n) { return {n.centred, n.weight, n.bias, n.epsilon}; }

template <bool kCentred>
LibraryKernel norm_entry() {
  LibraryKernel kernel;
  kernel.name = kCentred ? "layer_norm" : "rms_norm";
  kernel.description =
      kCentred ? "each row less its mean, over its deviation, times weight, plus bias"
               : "each row over the root of the mean of its squares, times weight, plus bias";
  kernel.options = matrix_options("elements of a row");
  for (const char* name : {"weight", "bias"}) {
    KernelOption option = flag_option(name, std::string("there is a ") + name);
    if (kCentred || option.name == "weight") option.standard = "true";
    kernel.options.push_back(option);
  }
  KernelOption epsilon = number_option("epsilon", "added to the variance", {"1e-5"});
  epsilon.standard = "1e-5";
  kernel.options.push_back(epsilon);
  kernel.options.push_back(dtype_option());
  kernel.tensors = {{"X", {kRowAxis, kColumnAxis}, false, {}},
                    {"weight", {kColumnAxis}, false, {}, {}, "weight"},
                    {"bias", {kColumnAxis}, false, {}, {}, "bias"},
                    {"Y", {kRowAxis, kColumnAxis}, true, {}}};
  if (kCentred) kernel.tensors.push_back({"MEAN", {kRowAxis}, true, f32});
  kernel.tensors.push_back({"RSTD", {kRowAxis}, true, f32});
  add_row_schedules(kernel, norm_of<kCentred>, norm);
  kernel.build = [](const OptionValues& o) { return norm(norm_of<kCentred>(o), {}); };
  kernel.check = [](const OptionValues& o) { norm(norm_of<kCentred>(o), {}); };
  kernel.reference = [](const OptionValues& o, const RowInputs& inputs) {
    return norm_reference(norm_sizes(norm_of<kCentred>(o)), inputs);
  };
  kernel.floating_operations = operations_an_element(kCentred ? 8 : 5);
  return kernel;
}

template <bool kCentred>
LibraryKernel norm_backward_entry() {
  LibraryKernel kernel = norm_entry<kCentred>();
  kernel.backward_of = kernel.name;
  kernel.name += "_backward";
  kernel.description = "dX, dweight and dbias of " + kernel.backward_of + ", from dY";
  // Of X alone: what a mean and a deviation are.
  const auto made = [](std::size_t from_end) {
    return [from_end](const OptionValues& o, const RowInputs& before) {
      const auto outputs =
          norm_reference({kCentred, false, false, o.number("epsilon")}, {before[0]});
      return outputs[outputs.size() - from_end];
    };
  };
  kernel.tensors = {{"X", {kRowAxis, kColumnAxis}, false, {}},
                    {"weight", {kColumnAxis}, false, {}, {}, "weight"}};
  if (kCentred) kernel.tensors.push_back(made_before("MEAN", {kRowAxis}, f32, made(2)));
  kernel.tensors.push_back(made_before("RSTD", {kRowAxis}, f32, made(1)));
  kernel.tensors.push_back({"dY", {kRowAxis, kColumnAxis}, false, {}});
  kernel.tensors.push_back({"dX", {kRowAxis, kColumnAxis}, true, {}});
  kernel.tensors.push_back({"dweight", {kColumnAxis}, true, {}, {}, "weight"});
  kernel.tensors.push_back({"dbias", {kColumnAxis}, true, {}, {}, "bias"});
  kernel.schedules.clear();
  add_row_schedules(kernel, norm_of<kCentred>, norm_backward);
  kernel.build = nullptr;
  kernel.build_program = [](const OptionValues& o) {
    return norm_backward(norm_of<kCentred>(o), {});
  };
  kernel.reference = [](const OptionValues& o, const RowInputs& inputs) {
    return norm_backward_reference(norm_sizes(norm_of<kCentred>(o)), inputs);
  };
  kernel.floating_operations = operations_an_element(kCentred ? 15 : 12);
  return kernel;
}

Softmax softmax_of(const OptionValues& options) {
  Softmax s;
  s.dtype = options.dtype("dtype");
  return s;
}

LibraryKernel softmax_entry() {
  LibraryKernel kernel;
  kernel.name = "softmax";
  kernel.description = "the exponentials of each row over their sum";
  kernel.options = matrix_options("elements of a row");
  kernel.options.push_back(dtype_option());
  kernel.tensors = {{"X", {kRowAxis, kColumnAxis}, false, {}},
                    {"Y", {kRowAxis, kColumnAxis}, true, {}}};
  kernel.tensors[0].online_axis = 1;
  add_row_schedules(kernel, softmax_of, softmax);
  kernel.build = [](const OptionValues& o) { return softmax(softmax_of(o), {}); };
  kernel.check = [](const OptionValues&) {};
  kernel.reference = [](const OptionValues&, const RowInputs& inputs) {
    return softmax_reference(inputs);
  };
  kernel.floating_operations = operations_an_element(5);
  return kernel;
}

LibraryKernel softmax_backward_entry() {
  LibraryKernel kernel = softmax_entry();
  kernel.backward_of = kernel.name;
  kernel.name = "softmax_backward";
  kernel.description = "dX of softmax, from Y and dY";
  LibraryTensor Y{"Y", {kRowAxis, kColumnAxis}, false, {}};
  Y.values = [](const OptionValues& o, std::uint64_t seed, const RowInputs&) {
    const std::vector<std::int64_t> shape = {o.integer(kRowAxis), o.integer(kColumnAxis)};
    const HostTensor x = HostTensor::random_normal(f32, shape, seed);
    return HostTensor::from_values(o.dtype("dtype"), shape, softmax_reference({x})[0]);
  };
  kernel.tensors = {
      Y, {"dY", {kRowAxis, kColumnAxis}, false, {}}, {"dX", {kRowAxis, kColumnAxis}, true, {}}};
  kernel.schedules.clear();
  add_row_schedules(kernel, softmax_of, softmax_backward);
  kernel.build = [](const OptionValues& o) { return softmax_backward(softmax_of(o), {}); };
  kernel.reference = [](const OptionValues&, const RowInputs& inputs) {
    return softmax_backward_reference(inputs);
  };
  kernel.floating_operations = operations_an_element(4);
  return kernel;
}

CrossEntropy loss_of(const OptionValues& options) {
  CrossEntropy c;
  c.dtype = options.dtype("dtype");
  c.smoothing = options.number("smoothing");
  c.ignore_index = static_cast<int>(options.integer("ignore_index"));
  return c;
}

// Classes; every seventh row has none.
HostTensor random_targets(const OptionValues& o, std::uint64_t seed, const RowInputs&) {
  std::mt19937_64 generator(seed);
  Numbers targets;
  const std::int64_t columns = o.integer(kColumnAxis);
  for (std::int64_t row = 0; row < o.integer(kRowAxis); ++row) {
    const bool is_ignored = row % 7 == 6 || columns == 0;
    targets.push_back(static_cast<double>(
        is_ignored ? o.integer("ignore_index")
                   : static_cast<std::int64_t>(generator() % static_cast<std::uint64_t>(columns))));
  }
  return HostTensor::from_values(i64, {o.integer(kRowAxis)}, targets);
}

LibraryKernel cross_entropy_entry() {
  LibraryKernel kernel;
  kernel.name = "cross_entropy";
  kernel.description = "the loss of each row's target class: LSE - X[target]";
  kernel.options = matrix_options("classes");
  kernel.options.push_back(
      number_option("smoothing", "the part of the target that all classes share", {"0", "0.1"}));
  KernelOption ignored = integer_option("ignore_index", "the target of rows without a loss", {});
  ignored.standard = "-100";
  ignored.minimum = INT32_MIN;
  kernel.options.push_back(ignored);
  kernel.options.push_back(dtype_option());
  kernel.tensors = {{"X", {kRowAxis, kColumnAxis}, false, {}},
                    {"targets", {kRowAxis}, false, i64, random_targets},
                    {"loss", {kRowAxis}, true, f32},
                    {"LSE", {kRowAxis}, true, f32}};
  add_row_schedules(kernel, loss_of, cross_entropy);
  kernel.build = [](const OptionValues& o) { return cross_entropy(loss_of(o), {}); };
  kernel.check = [](const OptionValues& o) { cross_entropy(loss_of(o), {}); };
  kernel.reference = [](const OptionValues& o, const RowInputs& inputs) {
    return cross_entropy_reference(o.number("smoothing"), o.integer("ignore_index"), inputs);
  };
  kernel.floating_operations = operations_an_element(5);
  return kernel;
}

LibraryKernel cross_entropy_backward_entry() {
  LibraryKernel kernel = cross_entropy_entry();
  kernel.backward_of = kernel.name;
  kernel.name = "cross_entropy_backward";
  kernel.description = "dX of cross_entropy, from X, LSE and dloss";
  const auto sums = [](const OptionValues& o, const RowInputs& before) {
    return cross_entropy_reference(0, o.integer("ignore_index"), before)[1];
  };
  kernel.tensors = {kernel.tensors[0],
                    kernel.tensors[1],
                    made_before("LSE", {kRowAxis}, f32, sums),
                    {"dloss", {kRowAxis}, false, f32},
                    {"dX", {kRowAxis, kColumnAxis}, true, {}}};
  // Each element by itself: the tile level is as good as any.
  kernel.schedules.clear();
  kernel.rules.clear();
  kernel.build = [](const OptionValues& o) { return cross_entropy_backward(loss_of(o), {}); };
  kernel.reference = [](const OptionValues& o, const RowInputs& inputs) {
    return cross_entropy_backward_reference(o.number("smoothing"), o.integer("ignore_index"),
                                            inputs);
  };
  kernel.floating_operations = operations_an_element(4);
  return kernel;
}

Rotary rotary_of(const OptionValues& options) {
  Rotary r;
  r.heads = static_cast<int>(options.integer("heads"));
  r.dim = static_cast<int>(options.integer("dim"));
  r.half = static_cast<int>(options.integer("half"));
  r.dtype = options.dtype("dtype");
  r.interleaved = options.boolean("interleaved");
  r.positions = options.boolean("positions");
  r.inverse = options.boolean("inverse");
  return r;
}

HostTensor angles(const OptionValues& o, double (*function)(double)) {
  const std::int64_t table = o.integer("table"), half = o.integer("half");
  Numbers values;
  for (std::int64_t position = 0; position < table; ++position) {
    for (std::int64_t i = 0; i < half; ++i) {
      const double turns = -static_cast<double>(i) / static_cast<double>(half);
      values.push_back(function(static_cast<double>(position) * std::pow(1e4, turns)));
    }
  }
  return HostTensor::from_values(f32, {table, half}, values);
}

LibraryKernel rotary_entry() {
  LibraryKernel kernel;
  kernel.name = "rotary";
  kernel.description = "heads whose pairs of elements are turned by their positions' angles";
  kernel.options = {length_option("batch", "sequences", "2"),
                    length_option("length", "tokens of a sequence", "128"),
                    length_option("table", "positions that the angles are given for", "length"),
                    count_option("heads", "heads", "8", 65535, {"8", "3", "40"}),
                    count_option("dim", "elements of a head", "128", kMaximumDim, {"128", "96"}),
                    count_option("half", "pairs that are turned", "32", kMaximumDim, {"32", "48"}),
                    flag_option("interleaved", "pairs are neighbours, not halves"),
                    flag_option("positions", "positions are given, not the tokens' places"),
                    flag_option("inverse", "turns back, as the gradient does"),
                    dtype_option()};
  const auto table_of = [](double (*function)(double)) {
    return [function](const OptionValues& o, std::uint64_t, const RowInputs&) {
      return angles(o, function);
    };
  };
  const auto positions = [](const OptionValues& o, std::uint64_t seed, const RowInputs&) {
    std::mt19937_64 generator(seed);
    const std::int64_t table = o.integer("table");
    Numbers drawn;
    for (std::int64_t i = 0; i < o.integer("batch") * o.integer("length"); ++i) {
      drawn.push_back(static_cast<double>(generator() % static_cast<std::uint64_t>(table)));
    }
    return HostTensor::from_values(i32, {o.integer("batch"), o.integer("length")}, drawn);
  };
  const std::vector<std::string> shape = {"batch", "length", "heads", "dim"};
  kernel.tensors = {{"X", shape, false, {}},
                    {"cos", {"table", "half"}, false, f32, table_of(std::cos)},
                    {"sin", {"table", "half"}, false, f32, table_of(std::sin)},
                    {"positions", {"batch", "length"}, false, i32, positions, "positions"},
                    {"Y", shape, true, {}}};
  kernel.build = [](const OptionValues& o) { return rotary(rotary_of(o), {}); };
  kernel.check = [](const OptionValues& o) {
    rotary(rotary_of(o), {});
    const std::int64_t table = o.integer("table"), length = o.integer("length");
    const bool given = o.boolean("positions");
    const std::int64_t least = o.integer("batch") * length == 0 ? 0 : given ? 1 : length;
    if (table >= least) return;
    Caller{"rotary", {}}.refuse(
        "table is " + std::to_string(table) + ", and " +
            (given ? "positions are drawn below it" : "length is " + std::to_string(length)),
        "set table to " + std::to_string(least) + " or more");
  };
  kernel.reference = [](const OptionValues& o, const RowInputs& inputs) {
    return rotary_reference(
        {o.boolean("interleaved"), o.boolean("positions"), o.boolean("inverse")}, inputs);
  };
  // Of each turned element two products and a sum.
  kernel.floating_operations = [](const OptionValues& o, const RowInputs&) {
    return 6.0 * static_cast<double>(o.integer("batch") * o.integer("length")) *
           static_cast<double>(o.integer("heads") * o.integer("half"));
  };
  return kernel;
}

}  // namespace

std::vector<LibraryKernel> row_entries() {
  return {norm_entry<false>(),   norm_backward_entry<false>(),
          norm_entry<true>(),    norm_backward_entry<true>(),
          softmax_entry(),       softmax_backward_entry(),
          cross_entropy_entry(), cross_entropy_backward_entry(),
          rotary_entry()};
}

}  // namespace tilewright::kernels
