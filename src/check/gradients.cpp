#include "check/gradients.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "compiler/host_program.h"
#include "ir/binding.h"
#include "simulator/interpreter.h"
#include "support/diagnostic.h"
#include "support/random.h"

namespace tilewright::checks {
namespace {

using ir::Parameter;
using Numbers = std::vector<double>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// Of a direction's length, relative to the input's: errors of differences are of its fourth power,
// and of rounding divided by it.
constexpr double kStep = 1e-3;
// A gradient that is small by cancellation, as that of a softmax over one key, is held to this much
// of what the loss changes by if an input does by its own size.
constexpr double kCancelled = 1e-3;
// Runs with random rounding errors, what is allowed of theirs, and of sums in another order.
constexpr int kRoundings = 3;
constexpr double kRoom = 2, kLeast = 1e-7;

double norm(const Numbers& numbers) {
  double sum = 0;
  for (const double number : numbers) sum += number * number;
  return std::sqrt(sum);
}

double root_mean_square(const Numbers& numbers) {
  return numbers.empty() ? 0 : norm(numbers) / std::sqrt(static_cast<double>(numbers.size()));
}

double distance(const Numbers& a, const Numbers& b) {
  Numbers difference(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) difference[i] = a[i] - b[i];
  return norm(difference);
}

// 0 / 0 is no error, and what is no number is an infinite one.
double relative(double error, double scale) {
  if (error == 0) return 0;
  return scale > 0 && std::isfinite(error) ? error / scale : kInfinity;
}

Numbers numbers_of(const HostTensor& tensor) {
  Numbers numbers(static_cast<std::size_t>(tensor.elements()));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = tensor.flat(static_cast<std::int64_t>(i));
  }
  return numbers;
}

bool is_written(const Parameter& parameter) { return parameter.kind != Parameter::Kind::in; }

[[noreturn]] void refuse(const Parameter& parameter, const std::string& what,
                         const std::string& fix) {
  Diagnostic(parameter.where, what).token(parameter.name).fix(fix).raise();
}

std::vector<const Parameter*> tensors_of(const ir::Kernel& signature) {
  std::vector<const Parameter*> tensors;
  for (const Parameter& parameter : signature.parameters) {
    if (!parameter.is_tensor()) continue;
    if (parameter.kind != Parameter::Kind::in && parameter.kind != Parameter::Kind::out) {
      refuse(parameter,
             fmt::format("check_gradients: {} is {} in {}", parameter.name,
                         ir::name_of(parameter.kind), signature.name),
             "gradients are checked of kernels whose tensors are in or out");
    }
    tensors.push_back(&parameter);
  }
  return tensors;
}

std::string names_of(const std::vector<const Parameter*>& tensors) {
  std::string names;
  for (const Parameter* each : tensors) names += (names.empty() ? "" : ", ") + each->name;
  return names;
}

std::optional<std::size_t> find(const std::vector<const Parameter*>& tensors,
                                const std::string& name) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i]->name == name) return i;
  }
  return std::nullopt;
}

// What a tensor of the backward pass is, beside the forward pass's number `of`.
enum class Role : std::uint8_t { same, of_output, of_input };
struct Part {
  const Parameter* parameter;
  Role role;
  std::size_t of;
};

class GradientChecker {
 public:
  GradientChecker(const GradientPass& forward, const GradientPass& backward,
                  const GradientOptions& options, const RunBackward& run_backward)
      : forward_(forward),
        backward_(backward),
        options_(options),
        run_backward_(run_backward),
        tensors_(tensors_of(forward.signature())) {
    forward.check_tile_level();
    backward.check_tile_level();
    if (options.directions < 1) {
      Diagnostic({}, fmt::format("check_gradients: {} directions", options.directions))
          .fix("take at least 1")
          .raise();
    }
    check_names();
    for (const Parameter* each : tensors_of(backward.signature())) parts_.push_back(part_of(*each));
    check_gradients_are_there();
    bind_forward();
    bind_backward();
  }

  GradientReport check() {
    const std::vector<Numbers> base = inputs_in_float64();
    const std::vector<Numbers> values = forward_in_float64(base, nullptr);
    check_outputs(values);
    const std::vector<Numbers> gradients = backward_in_float64(values, nullptr);
    const std::vector<std::vector<Numbers>> rounded = with_rounding(base);
    const std::vector<Numbers> own = in_own_types();
    const double size = size_of_loss(values);

    GradientReport report;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (parts_[i].role != Role::of_input) continue;
      const Numbers& input = base[parts_[i].of];
      const double length = root_mean_square(input);
      const double cancelled = length > 0 ? kCancelled * size / length : 0;
      const double gradient_norm = norm(gradients[i]);
      const double scale =
          std::isfinite(gradient_norm) ? std::max(gradient_norm, cancelled) : kInfinity;
      GradientCheck& check = report.gradients.emplace_back();
      check.gradient = parts_[i].parameter->name;
      check.of = tensors_[parts_[i].of]->name;
      check.allowed = options_.tolerance;
      differentiate(check, base, values, gradients[i], parts_[i].of, scale);
      check.own_error = relative(distance(own[i], gradients[i]), scale);
      double squares = 0;
      for (const std::vector<Numbers>& run : rounded) {
        squares += std::pow(relative(distance(run[i], gradients[i]), scale), 2);
      }
      check.own_allowed = kRoom * std::sqrt(squares / kRoundings) + kLeast;
    }
    return report;
  }

 private:
  // Names in the options that nothing has.
  void check_names() const {
    const auto check = [&](const std::string& name, const char* what,
                           const std::vector<const Parameter*>& known) {
      if (find(known, name)) return;
      Diagnostic({},
                 fmt::format("check_gradients: {} {} is no tensor that it could be", what, name))
          .fix("name one of: " + names_of(known))
          .raise();
    };
    std::vector<const Parameter*> inputs;
    for (const Parameter* each : tensors_) {
      if (!is_written(*each)) inputs.push_back(each);
    }
    for (const auto& [name, values] : options_.inputs) check(name, "the input", inputs);
    for (const std::string& name : options_.constants) check(name, "the constant", inputs);
    for (const auto& [gradient, of] : options_.gradients) {
      check(gradient, "the gradient", tensors_of(backward_.signature()));
      check(of, "of a gradient", tensors_);
    }
  }

  Part part_of(const Parameter& parameter) const {
    const bool is_result = is_written(parameter);
    std::optional<std::size_t> of;
    if (const auto named = options_.gradients.find(parameter.name);
        named != options_.gradients.end()) {
      of = find(tensors_, named->second);
    } else {
      if (!is_result) of = find(tensors_, parameter.name);
      if (of) return {&parameter, Role::same, *of};
      if (parameter.name.size() > 1 && parameter.name.front() == 'd') {
        of = find(tensors_, parameter.name.substr(1));
      }
    }
    if (!of || is_written(*tensors_[*of]) == is_result || !is_float(tensors_[*of]->dtype)) {
      refuse(parameter,
             fmt::format("check_gradients: {} {} is {} of {}", is_result ? "output" : "input",
                         parameter.name,
                         is_result ? "no gradient of an input"
                                   : "neither a tensor nor the gradient of an output",
                         forward_.signature().name),
             fmt::format("name it after one of {}, as dX of X, or say in "
                         "GradientOptions::gradients whose gradient it is",
                         names_of(tensors_)));
    }
    return {&parameter, is_result ? Role::of_input : Role::of_output, *of};
  }

  void check_gradients_are_there() const {
    const ir::Kernel& backward = backward_.signature();
    const auto has = [&](Role role, std::optional<std::size_t> of) {
      return std::any_of(parts_.begin(), parts_.end(), [&](const Part& part) {
        return part.role == role && (!of || part.of == *of);
      });
    };
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const Parameter& input = *tensors_[i];
      if (is_written(input) || !is_float(input.dtype) || has(Role::of_input, i)) continue;
      if (std::count(options_.constants.begin(), options_.constants.end(), input.name) != 0) {
        continue;
      }
      Diagnostic(backward.where,
                 fmt::format("check_gradients: {} has no output for the gradient of {}, an input "
                             "of {}",
                             backward.name, input.name, forward_.signature().name))
          .token(backward.name)
          .note(input.where, input.name + " is declared")
          .fix(fmt::format("declare an output d{}, say in GradientOptions::gradients which it is, "
                           "or name {} in GradientOptions::constants",
                           input.name, input.name))
          .raise();
    }
    if (has(Role::of_output, std::nullopt)) return;
    Diagnostic(backward.where,
               fmt::format("check_gradients: {} has no input that is the gradient of an output of "
                           "{}",
                           backward.name, forward_.signature().name))
        .token(backward.name)
        .fix("declare an input dX for an output X")
        .raise();
  }

  // Sizes from the inputs that are given; then all tensors have shapes.
  void bind_forward() {
    ir::Kernel given = forward_.signature();
    std::vector<ir::TensorShape> shapes;
    std::vector<Parameter> parameters;
    for (const Parameter& parameter : given.parameters) {
      const auto values = options_.inputs.find(parameter.name);
      if (!parameter.is_tensor() || values == options_.inputs.end()) continue;
      parameters.push_back(parameter);
      shapes.push_back({parameter.name, values->second.dtype(), values->second.shape(), {}});
    }
    given.parameters = std::move(parameters);
    const ir::Binding binding = ir::bind(given, shapes, 1, options_.sizes);
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const Parameter& parameter = *tensors_[i];
      std::vector<std::int64_t> shape;
      for (const Dim& dim : parameter.shape) shape.push_back(binding.evaluate(dim));
      const auto values = options_.inputs.find(parameter.name);
      if (values != options_.inputs.end()) {
        own_.push_back(values->second);
      } else if (is_written(parameter)) {
        own_.push_back(HostTensor::poisoned(parameter.dtype, shape));
      } else if (is_float(parameter.dtype)) {
        own_.push_back(HostTensor::random_normal(parameter.dtype, shape, options_.seed + i));
      } else {
        own_.push_back(HostTensor::zeros(parameter.dtype, shape));
      }
    }
  }

  // Raises where a gradient has not its tensor's shape.
  void bind_backward() {
    std::vector<ir::TensorShape> shapes;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const Part& part = parts_[i];
      const HostTensor& like = own_[part.of];
      const DType dtype = part.role == Role::same ? like.dtype() : part.parameter->dtype;
      shapes.push_back({part.role == Role::same
                            ? part.parameter->name
                            : fmt::format("{}, the gradient of {},", part.parameter->name,
                                          tensors_[part.of]->name),
                        dtype,
                        like.shape(),
                        {}});
      if (part.role != Role::of_output) {
        output_gradients_.emplace_back();
        continue;
      }
      output_gradients_.push_back(
          HostTensor::random_normal(dtype, like.shape(), options_.seed + 100 + i));
    }
    ir::bind(backward_.signature(), shapes, 1, known_dims(backward_.signature()));
  }

  // Those of the forward pass's sizes that the pass has.
  DimValues known_dims(const ir::Kernel& signature) const {
    DimValues known;
    for (const Dim& dim : signature.dims) {
      if (const auto size = options_.sizes.find(dim.name()); size != options_.sizes.end()) {
        known.insert(*size);
      }
    }
    return known;
  }

  std::vector<double> scalars_of(const ir::Kernel& signature) const {
    std::vector<double> scalars;
    for (const Parameter& parameter : signature.parameters) {
      if (parameter.is_tensor()) continue;
      const auto value = options_.scalars.find(parameter.name);
      if (value == options_.scalars.end()) {
        refuse(parameter,
               fmt::format("check_gradients: the scalar {} of {} has no value", parameter.name,
                           signature.name),
               "give it in GradientOptions::scalars");
      }
      scalars.push_back(value->second);
    }
    return scalars;
  }

  // Of floating numbers, or of what is none: `integers`.
  static TensorArgument argument(const Parameter& parameter, const HostTensor& integers,
                                 Numbers& numbers) {
    const bool is_real = is_float(parameter.dtype);
    auto* const data = is_real ? reinterpret_cast<std::byte*>(numbers.data())
                               : const_cast<std::byte*>(integers.data());
    return {parameter.name, parameter.dtype, integers.shape(), integers.strides(), data, {}, true};
  }

  std::vector<Numbers> inputs_in_float64() const {
    std::vector<Numbers> values(own_.size());
    for (std::size_t i = 0; i < own_.size(); ++i) {
      if (is_float(own_[i].dtype())) values[i] = numbers_of(own_[i]);
    }
    return values;
  }

  // All tensors, with the outputs.
  std::vector<Numbers> forward_in_float64(std::vector<Numbers> values,
                                          const std::uint64_t* rounding) const {
    Arguments arguments;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (is_written(*tensors_[i])) std::fill(values[i].begin(), values[i].end(), kNaN);
      arguments.tensors.push_back(argument(*tensors_[i], own_[i], values[i]));
    }
    arguments.scalars = scalars_of(forward_.signature());
    forward_.run_in_float64(arguments, known_dims(forward_.signature()), rounding);
    return values;
  }

  // Of each part that is a gradient.
  std::vector<Numbers> backward_in_float64(std::vector<Numbers> values,
                                           const std::uint64_t* rounding) const {
    std::vector<Numbers> gradients(parts_.size());
    Arguments arguments;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const Part& part = parts_[i];
      const HostTensor& like = own_[part.of];
      Numbers* numbers = &values[part.of];
      if (part.role != Role::same) {
        numbers = &gradients[i];
        *numbers = part.role == Role::of_output
                       ? numbers_of(output_gradients_[i])
                       : Numbers(static_cast<std::size_t>(like.elements()), kNaN);
      }
      arguments.tensors.push_back(argument(*part.parameter, like, *numbers));
    }
    arguments.scalars = scalars_of(backward_.signature());
    backward_.run_in_float64(arguments, known_dims(backward_.signature()), rounding);
    return gradients;
  }

  std::vector<std::vector<Numbers>> with_rounding(const std::vector<Numbers>& base) const {
    std::vector<std::vector<Numbers>> runs;
    Random seeds(options_.seed);
    for (int i = 0; i < kRoundings; ++i) {
      const std::uint64_t first = seeds.next(), second = seeds.next();
      runs.push_back(backward_in_float64(forward_in_float64(base, &first), &second));
    }
    return runs;
  }

  std::vector<Numbers> in_own_types() const {
    std::vector<HostTensor> tensors = own_;
    Arguments arguments;
    const auto pass = [&](const Parameter& parameter, HostTensor& tensor) {
      arguments.tensors.push_back(
          {parameter.name, tensor.dtype(), tensor.shape(), tensor.strides(), tensor.data()});
    };
    for (std::size_t i = 0; i < tensors.size(); ++i) pass(*tensors_[i], tensors[i]);
    arguments.scalars = scalars_of(forward_.signature());
    forward_.run(arguments, known_dims(forward_.signature()));

    std::vector<HostTensor> given;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const Part& part = parts_[i];
      given.push_back(part.role == Role::same ? tensors[part.of]
                      : part.role == Role::of_output
                          ? output_gradients_[i]
                          : HostTensor::poisoned(part.parameter->dtype, own_[part.of].shape()));
    }
    const std::vector<double> scalars = scalars_of(backward_.signature());
    run_backward_(given, scalars);
    std::vector<Numbers> gradients(parts_.size());
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (parts_[i].role == Role::of_input) gradients[i] = numbers_of(given[i]);
    }
    return gradients;
  }

  // Calls `visit` with each finite output at first, its gradient, its number and its tensor's.
  template <typename Visit>
  void for_loss(const std::vector<Numbers>& base, const Visit& visit) const {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (parts_[i].role != Role::of_output) continue;
      const Numbers& outputs = base[parts_[i].of];
      for (std::size_t j = 0; j < outputs.size(); ++j) {
        if (!std::isfinite(outputs[j])) continue;
        visit(outputs[j], output_gradients_[i].flat(static_cast<std::int64_t>(j)), j, parts_[i].of);
      }
    }
  }

  double size_of_loss(const std::vector<Numbers>& values) const {
    double squares = 0;
    for_loss(values, [&](double output, double gradient, std::size_t, std::size_t) {
      squares += output * gradient * output * gradient;
    });
    return std::sqrt(squares);
  }

  // Of how far the loss of `changed` is from that at first.
  double loss_of(const std::vector<Numbers>& values, const std::vector<Numbers>& changed) const {
    double loss = 0;
    for_loss(values, [&](double output, double gradient, std::size_t number, std::size_t tensor) {
      loss += (changed[tensor][number] - output) * gradient;
    });
    return loss;
  }

  void differentiate(GradientCheck& check, const std::vector<Numbers>& base,
                     const std::vector<Numbers>& values, const Numbers& gradient, std::size_t of,
                     double scale) const {
    const double length = root_mean_square(base[of]);
    const double step = kStep * (length > 0 ? length : 1);
    check.error = -1;
    for (int i = 0; i < options_.directions; ++i) {
      const std::uint64_t seed =
          Random(options_.seed + 1000 * of + static_cast<std::uint64_t>(i)).next();
      const Numbers direction =
          numbers_of(HostTensor::random_normal(DType::f32, own_[of].shape(), seed));
      const auto loss_at = [&](double steps) {
        std::vector<Numbers> moved = base;
        for (std::size_t j = 0; j < direction.size(); ++j) {
          moved[of][j] += steps * step * direction[j];
        }
        return loss_of(values, forward_in_float64(std::move(moved), nullptr));
      };
      const double near = loss_at(1) - loss_at(-1), far = loss_at(2) - loss_at(-2);
      const double by_differences = (8 * near - far) / (12 * step);
      double by_gradient = 0;
      for (std::size_t j = 0; j < direction.size(); ++j) by_gradient += direction[j] * gradient[j];
      const double error = relative(std::abs(by_differences - by_gradient), scale);
      if (error <= check.error) continue;
      check.error = error;
      check.by_differences = by_differences;
      check.by_gradient = by_gradient;
    }
  }

  void check_outputs(const std::vector<Numbers>& values) const {
    for (const Part& part : parts_) {
      if (part.role != Role::of_output) continue;
      const Numbers& outputs = values[part.of];
      if (std::none_of(outputs.begin(), outputs.end(), [](double x) { return std::isnan(x); })) {
        continue;
      }
      refuse(*tensors_[part.of],
             fmt::format("check_gradients: {} leaves NaN in {}", forward_.signature().name,
                         tensors_[part.of]->name),
             "give inputs for which its outputs are numbers");
    }
  }

  const GradientPass& forward_;
  const GradientPass& backward_;
  const GradientOptions& options_;
  const RunBackward& run_backward_;
  const std::vector<const Parameter*> tensors_;  // of the forward pass
  std::vector<HostTensor> own_;                  // of each of them
  std::vector<Part> parts_;                      // of the backward pass
  std::vector<HostTensor> output_gradients_;     // of each part; empty of others
};

}  // namespace

void GradientPass::check_tile_level() const {
  const auto check = [](const ir::Kernel& kernel) {
    if (kernel.form == ir::Form::tile) return;
    Diagnostic(kernel.where, fmt::format("check_gradients: kernel {} is written at the explicit "
                                         "level, and the interpreter runs the tile level",
                                         kernel.name))
        .fix("check the tile-level kernel that it implements")
        .raise();
  };
  if (kernel_) return check(*kernel_);
  for (const auto& kernel : program_->kernels) check(*kernel);
  if (program_->ranks == 1 && program_->streams.size() <= 1) return;
  Diagnostic(program_->where,
             fmt::format("check_gradients: program {} has {} and {} streams", program_->name,
                         ir::ranks_text(program_->ranks), program_->streams.size()))
      .fix("record it for one rank and one stream")
      .raise();
}

void GradientPass::run(const Arguments& arguments, const DimValues& sizes, bool float64,
                       const std::uint64_t* rounding) const {
  simulator::InterpreterOptions how;
  how.threads = 0;
  how.float64 = float64;
  if (rounding) how.rounding_seed = *rounding;
  if (kernel_) {
    how.dims = sizes;
    simulator::interpret(*kernel_, arguments, how);
    return;
  }
  std::vector<ir::TensorShape> shapes;
  for (const TensorArgument& tensor : arguments.tensors) {
    shapes.push_back({tensor.name, tensor.dtype, tensor.shape, tensor.strides});
  }
  ir::Program bound = ir::bind_program(*program_, shapes, 1, arguments.scalars, sizes,
                                       ir::contents_of(*program_, arguments.tensors));
  if (float64) ir::hold_doubles(bound);
  compiler::for_each_launch(bound, arguments,
                            [&](const ir::Kernel& kernel, const Arguments& given) {
                              simulator::interpret(kernel, given, how);
                              if (how.rounding_seed) ++*how.rounding_seed;
                            });
}

void GradientPass::run_in_float64(const Arguments& arguments, const DimValues& sizes,
                                  const std::uint64_t* rounding) const {
  run(arguments, sizes, true, rounding);
}

void GradientPass::run(const Arguments& arguments, const DimValues& sizes) const {
  run(arguments, sizes, false, nullptr);
}

GradientReport check_gradients(const GradientPass& forward, const GradientPass& backward,
                               const GradientOptions& options, const RunBackward& run_backward) {
  return GradientChecker(forward, backward, options, run_backward).check();
}

}  // namespace tilewright::checks
