#include "ir/binding.h"

#include <fmt/format.h>

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "ir/dim_values.h"
#include "ir/overlap.h"
#include "support/arguments.h"
#include "support/counted.h"
#include "support/diagnostic.h"

namespace tilewright::ir {
namespace {

constexpr std::int64_t kMaximumSize = INT32_MAX;

class Solver {
 public:
  Solver(const Kernel& kernel, const std::vector<TensorShape>& shapes)
      : kernel_(kernel), shapes_(shapes) {}

  Binding solve(std::int64_t multiprocessors, const std::map<std::string, std::int64_t>& given) {
    if (multiprocessors < 1) {
      fail(kernel_.where, fmt::format("{} multiprocessors, expected at least 1", multiprocessors),
           "pass the number of the device that the launch is for");
    }
    set(kMultiprocessors, multiprocessors, "the device");
    if (given.count(kRanks) == 0 && declares(kRanks)) set(kRanks, 1, "the launch");
    for (const auto& [name, value] : given) bind_given(name, value);
    match_tensors();
    for (const Dim& dim : kernel_.dims) {
      if (bound_.count(dim.name()) != 0) continue;
      refuse_unbound(dim.name());
    }
    for (const Dim& dim : kernel_.dims) check_facts(dim);
    Binding binding(std::move(values_), kernel_.where);
    for (const auto& [parameter, shape] : tensors_) check_sizes(binding, *parameter, *shape);
    check_grid(binding);
    return binding;
  }

  void check_known() {
    partial_ = true;
    match_tensors();
    for (const Dim& dim : kernel_.dims) {
      if (bound_.count(dim.name()) != 0) check_facts(dim);
    }
    const Binding binding(values_, kernel_.where);
    for (const auto& [parameter, shape] : tensors_) check_sizes(binding, *parameter, *shape);
  }

 private:
  bool is_unknown(std::int64_t size) const { return partial_ && size == kUnknownSize; }
  bool is_known(const Dim& dim) const {
    if (dim.is_constant()) return true;
    if (dim.kind() == Dim::Kind::symbol) return bound_.count(dim.name()) != 0;
    return is_known(dim.lhs()) && is_known(dim.rhs());
  }

  std::string prefix() const { return fmt::format("{}: ", kernel_.name); }

  [[noreturn]] void fail(SourceLocation where, const std::string& message,
                         const std::string& fix) const {
    Diagnostic(where, prefix() + message).fix(fix).raise();
  }

  static std::string axes_of(const Parameter& parameter) {
    std::vector<std::string> axes;
    for (const Dim& dim : parameter.shape) axes.push_back(dim.to_string());
    return fmt::format("{}", fmt::join(axes, ", "));
  }

  static std::string axis_of(const TensorShape& shape, std::size_t axis) {
    return fmt::format("axis {} of {}", axis, shape.name);
  }

  void set(const std::string& name, std::int64_t value, std::string from) {
    values_[name] = value;
    bound_[name] = std::move(from);
  }

  bool declares(const std::string& name) const {
    return std::any_of(kernel_.dims.begin(), kernel_.dims.end(),
                       [&name](const Dim& dim) { return dim.name() == name; });
  }

  void bind_given(const std::string& name, std::int64_t value) {
    if (!declares(name)) {
      std::string known;
      for (const Dim& dim : kernel_.dims) known += (known.empty() ? "" : ", ") + dim.name();
      Diagnostic(kernel_.where, prefix() + fmt::format("there is no dim {}", name))
          .fix(known.empty() ? "leave it out: the kernel has no dims" : "use one of " + known)
          .raise();
    }
    check_range(name, value, "the value given");
    set(name, value, "the value given");
  }

  void check_range(const std::string& name, std::int64_t value, const std::string& from) const {
    if (value >= 0 && value <= kMaximumSize) return;
    fail(kernel_.where,
         fmt::format("the dim {} is {} by {}, expected 0 to 2^31 - 1", name, value, from),
         value < 0 ? "give the number of its elements" : "split the launch into smaller ones");
  }

  void match_tensors() {
    for (const Parameter& parameter : kernel_.parameters) {
      if (!parameter.is_tensor()) continue;
      if (tensors_.size() < shapes_.size()) {
        tensors_.emplace_back(&parameter, &shapes_[tensors_.size()]);
      } else {
        fail(kernel_.where,
             fmt::format("the launch gives {}, and {} is missing",
                         counted(shapes_.size(), "tensor"), parameter.name),
             "pass every tensor, in the order of their declaration");
      }
    }
    if (tensors_.size() != shapes_.size()) {
      fail(kernel_.where,
           fmt::format("the launch gives {}, and it takes {}", counted(shapes_.size(), "tensor"),
                       tensors_.size()),
           "pass every tensor, in the order of their declaration");
    }
    for (const auto& [parameter, shape] : tensors_) {
      check_tensor(*parameter, *shape);
      for (std::size_t axis = 0; axis < parameter->shape.size(); ++axis) {
        bind_axis(*parameter, *shape, axis);
      }
    }
  }

  void check_tensor(const Parameter& parameter, const TensorShape& shape) const {
    if (shape.dtype != parameter.dtype) {
      fail(parameter.where,
           fmt::format("{} is {}, but the kernel declares {} as {}", shape.name,
                       name_of(shape.dtype), parameter.name, name_of(parameter.dtype)),
           fmt::format("convert {} to {}, or build the kernel for {}", shape.name,
                       name_of(parameter.dtype), name_of(shape.dtype)));
    }
    if (shape.sizes.size() != parameter.shape.size()) {
      fail(parameter.where,
           fmt::format("{} has rank {}, but the kernel declares {} with rank {}", shape.name,
                       shape.sizes.size(), parameter.name, parameter.shape.size()),
           fmt::format("pass {} with the axes {{{}}}", shape.name, axes_of(parameter)));
    }
    if (!shape.strides.empty() && shape.strides.size() != shape.sizes.size()) {
      fail(parameter.where,
           fmt::format("{} has {} for {} {}", shape.name, counted(shape.strides.size(), "stride"),
                       shape.sizes.size(), shape.sizes.size() == 1 ? "axis" : "axes"),
           "pass one stride for each axis, or none for a contiguous tensor");
    }
    for (std::size_t axis = 0; axis < shape.sizes.size(); ++axis) {
      const std::int64_t size = shape.sizes[axis];
      if ((size >= 0 && size <= kMaximumSize) || is_unknown(size)) continue;
      fail(parameter.where,
           fmt::format("{} has size {}, expected 0 to 2^31 - 1", axis_of(shape, axis), size),
           size < 0 ? "pass the number of its elements" : "split the tensor into smaller ones");
    }
    if (partial_) return;
    check_strides(parameter, shape);
    check_extent(parameter, shape);
    if (parameter.kind == Parameter::Kind::out || parameter.kind == Parameter::Kind::inout) {
      check_overlap(parameter, shape);
    }
  }

  // An axis of at most one element is never stepped along, so its stride says nothing.
  void check_strides(const Parameter& parameter, const TensorShape& shape) const {
    if (std::count(shape.sizes.begin(), shape.sizes.end(), 0) != 0) return;
    for (std::size_t axis = 0; axis < shape.strides.size(); ++axis) {
      if (shape.sizes[axis] <= 1) continue;
      const bool innermost = axis + 1 == shape.strides.size();
      const std::int64_t stride = shape.strides[axis];
      if (innermost ? stride == 1 : stride >= 1) continue;
      Diagnostic(
          parameter.where,
          prefix() + fmt::format("{} has stride {}, expected {}", axis_of(shape, axis), stride,
                                 innermost ? "1 on the innermost axis" : "a positive one"))
          .fix(parameter.kind == Parameter::Kind::out
                   ? fmt::format("pass a contiguous tensor as {}, and copy it afterwards",
                                 shape.name)
                   : fmt::format("copy {} to a contiguous tensor", shape.name))
          .raise();
    }
  }

  void check_extent(const Parameter& parameter, const TensorShape& shape) const {
    std::int64_t elements = size_of(shape.dtype), extent = elements, step = 0;
    bool overflow = false;
    for (std::size_t axis = 0; axis < shape.sizes.size(); ++axis) {
      const std::int64_t size = shape.sizes[axis];
      if (size == 0) return;
      overflow |= __builtin_mul_overflow(elements, size, &elements);
      if (shape.strides.empty() || size == 1) continue;
      overflow |= __builtin_mul_overflow(shape.strides[axis], size - 1, &step) ||
                  __builtin_mul_overflow(step, size_of(shape.dtype), &step) ||
                  __builtin_add_overflow(extent, step, &extent);
    }
    if (overflow) {
      fail(parameter.where,
           fmt::format("{} with sizes {{{}}} spans more than 2^63 bytes", shape.name,
                       fmt::join(shape.sizes, ", ")),
           "check the sizes and strides that the launch passes");
    }
  }

  // What is stored to one of two such elements shows in the other.
  void check_overlap(const Parameter& parameter, const TensorShape& shape) const {
    if (shape.strides.empty()) return;
    if (std::count(shape.sizes.begin(), shape.sizes.end(), 0) != 0) return;
    const auto elements = overlap(shape.sizes, shape.strides);
    if (!elements) return;
    const auto text = [](const ElementIndex& index) {
      return fmt::format("[{}]", fmt::join(index, ", "));
    };
    fail(parameter.where,
         fmt::format("{} is stored to, and its strides {{{}}} put {}{} and {}{} in one place",
                     shape.name, fmt::join(shape.strides, ", "), shape.name, text(elements->first),
                     shape.name, text(elements->second)),
         fmt::format("pass strides that keep elements apart; those of a contiguous tensor are "
                     "{{{}}}",
                     fmt::join(row_major_strides(shape.sizes), ", ")));
  }

  // Sizes do not say what the factors of a product are, or the terms of a sum.
  [[noreturn]] void refuse_unbound(const std::string& name) const {
    Diagnostic diagnostic(kernel_.where,
                          prefix() + fmt::format("the dim {} has no value: no axis of a tensor is "
                                                 "{}, or {} plus a number",
                                                 name, name, name));
    std::string fix = fmt::format("make {} the size of a tensor's axis, or leave it out", name);
    for (const auto& [parameter, shape] : tensors_) {
      for (std::size_t axis = 0; axis < parameter->shape.size(); ++axis) {
        const Dim& size = parameter->shape[axis];
        if (!names(size, name)) continue;
        diagnostic.note(parameter->where, fmt::format("it stands within {} alone, which is {}",
                                                      size.to_string(), axis_of(*shape, axis)));
        if (size.kind() == Dim::Kind::mul) {
          fix = fmt::format("give {} an axis for each of {} and {}, or make {} one dim",
                            parameter->name, size.lhs().to_string(), size.rhs().to_string(),
                            size.to_string());
        }
        diagnostic.fix(fix).raise();
      }
    }
    diagnostic.fix(fix).raise();
  }

  static bool names(const Dim& dim, const std::string& name) {
    if (dim.is_constant()) return false;
    if (dim.kind() == Dim::Kind::symbol) return dim.name() == name;
    return names(dim.lhs(), name) || names(dim.rhs(), name);
  }

  void bind_axis(const Parameter& parameter, const TensorShape& shape, std::size_t axis) {
    Dim dim = parameter.shape[axis];
    std::int64_t size = shape.sizes[axis];
    if (is_unknown(size)) return;
    if (dim.kind() == Dim::Kind::add && dim.rhs().is_constant()) {
      size -= dim.rhs().constant();
      dim = dim.lhs();
    }
    if (dim.kind() != Dim::Kind::symbol) return;
    if (size < 0 || size > kMaximumSize) {
      fail(parameter.where,
           fmt::format("{} has size {}, but {} has {} there, which makes {} {}",
                       axis_of(shape, axis), shape.sizes[axis], parameter.name,
                       parameter.shape[axis].to_string(), dim.name(), size),
           fmt::format("pass {} with the elements that {} asks for", shape.name,
                       parameter.shape[axis].to_string()));
    }
    const auto known = bound_.find(dim.name());
    if (known == bound_.end()) {
      set(dim.name(), size, axis_of(shape, axis));
    } else if (values_.at(dim.name()) != size) {
      fail(parameter.where,
           fmt::format("the dim {} is {} by {}, but {} by {}", dim.name(), values_.at(dim.name()),
                       known->second, size, axis_of(shape, axis)),
           fmt::format("tensors that share {} must agree in it", dim.name()));
    }
  }

  void check_facts(const Dim& dim) const {
    const DimFacts& facts = dim.facts();
    const std::int64_t value = values_.at(dim.name());
    std::string fact, fix;
    if (facts.multiple > 1 && value % facts.multiple != 0) {
      fact = fmt::format("a multiple of {}", facts.multiple);
      fix = fmt::format("pad {} to {}, or use a kernel that does not ask for it", dim.name(),
                        (value / facts.multiple + 1) * facts.multiple);
    } else if (value < facts.minimum) {
      fact = fmt::format("at least {}", facts.minimum);
      fix = fmt::format("launch with more of {}, or use a kernel that does not ask for it",
                        dim.name());
    } else if (value > facts.maximum) {
      fact = fmt::format("at most {}", facts.maximum);
      fix = fmt::format("launch with less of {}, or use a kernel that does not ask for it",
                        dim.name());
    } else {
      return;
    }
    fail(kernel_.where,
         fmt::format("the dim {} is {} by {}, but the kernel declares it {}", dim.name(), value,
                     bound_.at(dim.name()), fact),
         fix);
  }

  // ", of n = 4, m = 2" behind an expression.
  static std::string of_values(const Binding& binding, const Dim& dim) {
    if (dim.is_constant() || dim.kind() == Dim::Kind::symbol) return {};
    return ", of " + values_text(dim, [&](const std::string& name) { return binding.value(name); });
  }

  void check_sizes(const Binding& binding, const Parameter& parameter,
                   const TensorShape& shape) const {
    for (std::size_t axis = 0; axis < parameter.shape.size(); ++axis) {
      const Dim& dim = parameter.shape[axis];
      if (partial_ && (is_unknown(shape.sizes[axis]) || !is_known(dim))) continue;
      const std::int64_t want = binding.evaluate(dim), have = shape.sizes[axis];
      if (have == want) continue;
      fail(parameter.where,
           dim.is_constant()
               ? fmt::format("{} has size {}, but {} is declared with {} there",
                             axis_of(shape, axis), have, parameter.name, want)
               : fmt::format("{} has size {}, but {} is declared with {} = {} there{}",
                             axis_of(shape, axis), have, parameter.name, dim.to_string(), want,
                             of_values(binding, dim)),
           fmt::format("pass {} with {} elements along axis {}", shape.name, want, axis));
    }
  }

  void check_grid(const Binding& binding) const {
    const std::vector<Dim>& grid = kernel_.tile_grid.empty() ? kernel_.grid : kernel_.tile_grid;
    for (const Dim& extent : grid) {
      const std::int64_t count = binding.evaluate(extent);
      if (count >= 0) continue;
      fail(kernel_.where,
           fmt::format("the grid has {} = {} blocks{}", extent.to_string(), count,
                       of_values(binding, extent)),
           fmt::format("launch with larger sizes, or declare max({}, 0): a grid of 0 does nothing",
                       extent.to_string()));
    }
  }

  const Kernel& kernel_;
  const std::vector<TensorShape>& shapes_;
  std::vector<std::pair<const Parameter*, const TensorShape*>> tensors_;
  std::map<std::string, std::int64_t> values_;
  std::map<std::string, std::string> bound_;  // what gave each its value
  bool partial_ = false;                      // some sizes are not known
};

}  // namespace

std::int64_t Binding::value(const std::string& symbol) const {
  const auto found = values_.find(symbol);
  if (found != values_.end()) return found->second;
  Diagnostic(where_, fmt::format("the dim {} has no value at this launch", symbol)).raise();
}

std::int64_t Binding::evaluate(const Dim& dim) const {
  const auto lookup = [this](const std::string& symbol) { return value(symbol); };
  try {
    return dim.evaluate(lookup);
  } catch (const Error& error) {
    if (error.location().file) throw;
    Diagnostic(where_, fmt::format("{} at this launch: {}", dim.to_string(), error.message()))
        .fix("launch with other sizes; where a divisor may be 0 divide by max(divisor, 1)")
        .raise();
  }
}

std::map<std::string, std::int64_t> given_ranks(const Kernel& kernel, std::int64_t ranks) {
  const bool declared = std::any_of(kernel.dims.begin(), kernel.dims.end(),
                                    [](const Dim& dim) { return dim.name() == kRanks; });
  if (!declared) return {};
  return {{kRanks, ranks}};
}

void check_scalars(const Kernel& kernel, const std::vector<double>& scalars) {
  std::size_t wanted = 0;
  for (const Parameter& parameter : kernel.parameters) {
    if (parameter.is_tensor() || wanted++ >= scalars.size()) continue;
    const double value = scalars[wanted - 1];
    if (parameter.dtype == DType::f32 && std::isfinite(value) && std::abs(value) > FLT_MAX) {
      Diagnostic(parameter.where, fmt::format("{}: the scalar {} is {}, and f32 ends at {}",
                                              kernel.name, parameter.name, value, FLT_MAX))
          .token(parameter.name)
          .fix("pass a smaller number")
          .raise();
    }
    const bool fits = value >= INT32_MIN && value <= INT32_MAX && value == std::floor(value);
    if (parameter.dtype != DType::i32 || fits) continue;
    Diagnostic(parameter.where, fmt::format("{}: the scalar {} is {}, and i32 holds integers from "
                                            "-2^31 to 2^31 - 1",
                                            kernel.name, parameter.name, value))
        .token(parameter.name)
        .fix("pass such an integer, or declare the scalar as f32")
        .raise();
  }
  if (wanted == scalars.size()) return;
  Diagnostic(kernel.where, fmt::format("{} takes {}, and the launch gives {}", kernel.name,
                                       counted(wanted, "scalar"), scalars.size()))
      .fix("pass one for each parameter, in the order of their declaration")
      .raise();
}

void check_memory(const Parameter& parameter, const TensorArgument& tensor) {
  if (std::count(tensor.shape.begin(), tensor.shape.end(), 0) != 0) return;
  if (!tensor.data) {
    Diagnostic(parameter.where,
               fmt::format("tensor {} has no data: its address is null", parameter.name))
        .token(parameter.name)
        .fix("allocate the tensor before the launch")
        .raise();
  }
  const auto address = reinterpret_cast<std::uintptr_t>(tensor.data);
  const auto unit = static_cast<std::uintptr_t>(tensor.element_bytes());
  if (address % unit == 0) return;
  Diagnostic(parameter.where,
             fmt::format("tensor {} of {} starts at 0x{:x}, no multiple of {} bytes",
                         parameter.name, name_of(tensor.dtype), address, unit))
      .token(parameter.name)
      .fix("start the tensor at a whole element")
      .raise();
}

void check_memory(const Kernel& kernel, const std::vector<TensorArgument>& tensors) {
  std::size_t next = 0;
  for (const Parameter& parameter : kernel.parameters) {
    if (!parameter.is_tensor() || next == tensors.size()) continue;
    check_memory(parameter, tensors[next++]);
  }
  check_aliases(kernel, tensors);
}

namespace {

bool is_stored(const Parameter& parameter) {
  return parameter.kind == Parameter::Kind::out || parameter.kind == Parameter::Kind::inout;
}

// A kernel that works element by element may change a tensor in place, or the first elements of an
// axis: an index names the same place in both.
bool are_in_place(const TensorArgument& a, const TensorArgument& b) {
  if (a.data != b.data || a.dtype != b.dtype || a.strides.size() != b.strides.size()) return false;
  for (std::size_t axis = 0; axis < a.strides.size(); ++axis) {
    const bool is_stepped = a.shape[axis] > 1 && b.shape[axis] > 1;
    if (is_stepped && a.strides[axis] != b.strides[axis]) return false;
  }
  return !a.strides.empty() || a.shape == b.shape;
}

}  // namespace

void check_aliases(const Kernel& kernel, const std::vector<TensorArgument>& tensors) {
  std::vector<const Parameter*> parameters;
  for (const Parameter& parameter : kernel.parameters) {
    if (parameter.is_tensor()) parameters.push_back(&parameter);
  }
  const std::size_t count = std::min(parameters.size(), tensors.size());
  for (std::size_t i = 0; i < count; ++i) {
    if (!is_stored(*parameters[i])) continue;
    for (std::size_t other = 0; other < count; ++other) {
      const bool both = is_stored(*parameters[other]);
      if ((both && other <= i) || parameters[other]->is_owned()) continue;
      if (!both && are_in_place(tensors[i], tensors[other])) continue;
      if (!share_elements(tensors[i], tensors[other])) continue;
      Diagnostic(parameters[i]->where,
                 fmt::format("tensor {} is stored to, and tensor {} lies in the same memory",
                             parameters[i]->name, parameters[other]->name))
          .token(parameters[i]->name)
          .note(parameters[other]->where, parameters[other]->name + " is declared")
          .fix(fmt::format("pass memory of its own for {}; a kernel that reads what it stores has "
                           "one inout tensor for both",
                           parameters[i]->name))
          .raise();
    }
  }
}

Binding bind(const Kernel& kernel, const std::vector<TensorShape>& shapes,
             std::int64_t multiprocessors, const std::map<std::string, std::int64_t>& given) {
  return Solver(kernel, shapes).solve(multiprocessors, given);
}

void check_known(const Kernel& kernel, const std::vector<TensorShape>& shapes) {
  Solver(kernel, shapes).check_known();
}

}  // namespace tilewright::ir
