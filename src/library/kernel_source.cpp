#include "library/kernel_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "compiler/build.h"
#include "compiler/rewrites.h"
#include "compiler/simulation.h"
#include "ir/binding.h"
#include "ir/schedule.h"
#include "ir/text.h"
#include "library/library_build.h"
#include "library/program_source.h"
#include "library/stated_schedule.h"
#include "library/workload.h"
#include "simulator/interpreter.h"
#include "support/diagnostic.h"
#include "support/file.h"
#include "target/verify.h"

namespace tilewright::library {
namespace {

ir::Kernel read_kernel(const std::string& text, const std::string& path) {
  return ir::read_verified(text, path,
                           [](const ir::Kernel& read) { target::verify(read, ErrorKind::usage); });
}

// How LibraryTensor writes an axis.
std::string axis_text(const Dim& extent) {
  if (extent.is_constant() || extent.kind() == Dim::Kind::symbol) return extent.to_string();
  if (extent.kind() == Dim::Kind::add && extent.lhs().kind() == Dim::Kind::symbol &&
      extent.rhs().is_constant()) {
    return fmt::format("{} + {}", extent.lhs().to_string(), extent.rhs().to_string());
  }
  return extent.to_string();
}

// Of a kernel that reaches other ranks: what shrunken sizes follow from.
LibraryTensor tensor_of_ranks(const ir::Parameter& parameter) {
  LibraryTensor tensor;
  tensor.name = parameter.name;
  tensor.dtype = parameter.dtype;
  tensor.is_output = parameter.kind == ir::Parameter::Kind::out;
  for (const Dim& extent : parameter.shape) {
    const bool is_dim = extent.kind() == Dim::Kind::symbol && extent.name() != ir::kRanks;
    tensor.shape.push_back(is_dim ? extent.name() : "1");
  }
  return tensor;
}

LibraryTensor library_tensor(const ir::Parameter& parameter) {
  LibraryTensor tensor;
  tensor.name = parameter.name;
  tensor.dtype = parameter.dtype;
  tensor.is_inout = parameter.kind == ir::Parameter::Kind::inout;
  tensor.is_output = parameter.kind == ir::Parameter::Kind::out || tensor.is_inout;
  for (const Dim& extent : parameter.shape) tensor.shape.push_back(axis_text(extent));
  // Which numbers a kernel takes as indices nobody knows; 0 is one wherever there is something.
  if (is_integer(parameter.dtype)) {
    tensor.values = [own = tensor](const OptionValues& options, std::uint64_t,
                                   const std::vector<HostTensor>&) {
      return HostTensor::zeros(*own.dtype, shape_of(own, options));
    };
  }
  return tensor;
}

KernelOption length_option(const Dim& dim) {
  constexpr std::int64_t kUsual = 256;
  const DimFacts& facts = dim.facts();
  const auto multiple_of = [&](std::int64_t size) {
    return size / facts.multiple * facts.multiple;
  };
  std::int64_t usual = multiple_of(std::clamp(kUsual, facts.minimum, facts.maximum));
  if (usual < std::max(facts.minimum, std::int64_t{1})) usual += facts.multiple;
  KernelOption option;
  option.name = dim.name();
  option.description = "a length";
  option.standard = std::to_string(usual);
  option.minimum = facts.minimum;
  option.maximum = facts.maximum;
  option.is_length = true;
  return option;
}

// A scalar is set as a dim is. As an index 0 is there wherever there is something.
KernelOption scalar_option(const ir::Parameter& parameter) {
  KernelOption option;
  option.name = parameter.name;
  option.description = "a scalar of " + std::string(name_of(parameter.dtype));
  option.minimum = INT32_MIN;
  if (is_float(parameter.dtype)) option.kind = KernelOption::Kind::number;
  option.standard = is_float(parameter.dtype) ? "1" : "0";
  return option;
}

void check_multiples(const ir::Kernel& kernel, const OptionValues& options) {
  for (const Dim& dim : kernel.dims) {
    if (!options.has(dim.name())) continue;  // how many ranks there are
    const std::int64_t size = options.integer(dim.name()), multiple = dim.facts().multiple;
    if (size % multiple == 0) continue;
    Diagnostic(kernel.where,
               fmt::format("{} = {} is not a multiple of {}", dim.name(), size, multiple))
        .fix(fmt::format("set {}={}", dim.name(), (size / multiple + 1) * multiple))
        .raise();
  }
}

// The outputs of one execution: of the tile form by the interpreter, in float64 or as its own types
// round them; of others by the simulated GPU.
std::vector<std::vector<double>> outputs_of(const LibraryKernel& entry, const ir::Kernel& kernel,
                                            const OptionValues& options,
                                            const std::vector<HostTensor>& inputs, bool float64) {
  Workload workload{&entry, options, tensors_of(entry, options), {}};
  std::size_t next = 0;
  for (const LibraryTensor& tensor : entry.tensors) {
    workload.tensors.push_back(
        tensor.is_input() ? inputs.at(next++)
                          : HostTensor::poisoned(*tensor.dtype, shape_of(tensor, options)));
  }
  if (kernel.form == ir::Form::tile) {
    simulator::InterpreterOptions how;
    how.float64 = float64;
    how.threads = 0;
    simulator::interpret(kernel, workload.arguments(), how);
  } else {
    const simulator::MachineReport report = compiler::simulate(
        compiler::compile_to_machine(kernel, kernel.target).kernel, workload.arguments(), {});
    if (!report.ok()) compiler::diagnostic_of(report.faults.front()).raise();
  }
  std::vector<std::vector<double>> outputs;
  for (std::size_t i = 0; i < workload.tensors.size(); ++i) {
    if (!workload.parameters[i]->is_output) continue;
    const HostTensor& tensor = workload.tensors[i];
    std::vector<double>& values = outputs.emplace_back();
    for (std::int64_t j = 0; j < tensor.elements(); ++j) values.push_back(tensor.flat(j));
  }
  return outputs;
}

std::shared_ptr<LibraryKernel> entry_of(const std::shared_ptr<const ir::Kernel>& kernel) {
  auto entry = std::make_shared<LibraryKernel>();
  entry->name = kernel->name;
  entry->description = "of a file";
  const bool ranks = reaches_ranks(*kernel);
  for (const Dim& dim : kernel->dims) {
    if (!ranks || dim.name() != ir::kRanks) entry->options.push_back(length_option(dim));
  }
  for (const ir::Parameter& parameter : kernel->parameters) {
    if (!parameter.is_tensor()) {
      entry->options.push_back(scalar_option(parameter));
      entry->scalars.push_back(parameter.name);
    } else if (!parameter.is_of_stream()) {
      entry->tensors.push_back(ranks ? tensor_of_ranks(parameter) : library_tensor(parameter));
    }
  }
  entry->check = [kernel](const OptionValues& options) { check_multiples(*kernel, options); };
  const LibraryKernel* const own = entry.get();
  entry->reference = [own, kernel](const OptionValues& options,
                                   const std::vector<HostTensor>& inputs) {
    return outputs_of(*own, *kernel, options, inputs, /*float64=*/true);
  };
  if (kernel->form == ir::Form::tile) {
    entry->rounded = [own, kernel](const OptionValues& options,
                                   const std::vector<HostTensor>& inputs) {
      return outputs_of(*own, *kernel, options, inputs, /*float64=*/false);
    };
  }
  entry->floating_operations = [](const OptionValues&, const std::vector<HostTensor>&) {
    return 0.0;
  };
  return entry;
}

}  // namespace

KernelSource KernelSource::of_file(const std::string& path) {
  return of_text(read_text(path), path);
}

KernelSource KernelSource::of_text(std::string text, const std::string& path) {
  KernelSource source;
  source.text_ = std::move(text);
  source.file_ = std::make_shared<const ir::Kernel>(read_kernel(source.text_, path));
  source.own_ = entry_of(source.file_);
  source.entry_ = source.own_.get();
  return source;
}

bool KernelSource::is_compiled() const { return file_ && file_->form == ir::Form::machine; }

bool KernelSource::reaches_ranks() const { return file_ && library::reaches_ranks(*file_); }

std::int64_t KernelSource::multiple_of(const std::string& option) const {
  if (!file_) return 1;
  for (const Dim& dim : file_->dims) {
    if (dim.name() == option) return dim.facts().multiple;
  }
  return 1;
}

std::vector<std::int64_t> KernelSource::shape_of(
    std::size_t tensor, const std::map<std::size_t, std::vector<std::int64_t>>& known) const {
  ir::Kernel signature;
  signature.name = file_->name;
  signature.where = file_->where;
  signature.dims = file_->dims;
  std::vector<ir::TensorShape> shapes;
  const std::vector<Dim>* wanted = nullptr;
  std::size_t number = 0;
  for (const ir::Parameter& parameter : file_->parameters) {
    if (!parameter.is_tensor() || parameter.is_of_stream()) continue;
    if (number == tensor) wanted = &parameter.shape;
    if (const auto given = known.find(number); given != known.end()) {
      signature.parameters.push_back(parameter);
      shapes.push_back({parameter.name, parameter.dtype, given->second, {}});
    }
    ++number;
  }
  const ir::Binding binding = ir::bind(signature, shapes, /*multiprocessors=*/1);
  std::vector<std::int64_t> sizes;
  for (const Dim& extent : *wanted) sizes.push_back(binding.evaluate(extent));
  return sizes;
}

ir::Kernel KernelSource::traced(const OptionValues& options, const compiler::Target& target) const {
  if (!file_) return trace_entry(*entry_, options, target).finish();
  check_fields(options, target);
  ir::Kernel kernel = *file_;
  kernel.schedule = ir::merged(stated_schedule(options), kernel.schedule);
  return kernel;
}

ir::Program KernelSource::program(const OptionValues& options,
                                  const compiler::Target& target) const {
  return trace_program(*entry_, options, target).finish();
}

}  // namespace tilewright::library
