#include "library/workload.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cmath>
#include <limits>
#include <span>

#include "library/tensor_file.h"
#include "support/diagnostic.h"

namespace tilewright::library {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("{{{}}}", fmt::join(shape, ", "));
}

// The dtypes before the sizes are known: some of these are the files'.
OptionValues provisional_options(LibraryKernel kernel, const std::vector<std::string>& settings) {
  kernel.check = [](const OptionValues&) {};
  return resolve_options(kernel, settings);
}

struct FileSize {
  std::int64_t size = 0;
  std::string tensor;
  std::string file;
};

void check_rank(const LibraryTensor& tensor, const HostTensor& read, const std::string& file) {
  if (read.shape().size() == tensor.shape.size()) return;
  Diagnostic({}, fmt::format("{}: has shape {}, and tensor {} has {} axes: {{{}}}", file,
                             shape_text(read.shape()), tensor.name, tensor.shape.size(),
                             fmt::join(tensor.shape, ", ")))
      .fix("save the array in that shape")
      .raise();
}

// Axes of two files that are the same option have one size.
void note_sizes(const LibraryTensor& tensor, const HostTensor& read, const std::string& file,
                std::map<std::string, FileSize>& sizes) {
  for (std::size_t axis = 0; axis < tensor.shape.size(); ++axis) {
    const LibraryAxis known = parse_axis(tensor.shape[axis]);
    if (known.is_expression) continue;  // it is held against the options' shape
    const std::int64_t size = read.shape()[axis] - known.more;
    if (known.option.empty()) {
      if (size == 0) continue;
      Diagnostic({}, fmt::format("{}: axis {} has size {}, and that of tensor {} has size {}", file,
                                 axis, read.shape()[axis], tensor.name, known.more))
          .fix("save the array in that shape")
          .raise();
    }
    const auto [found, is_new] = sizes.try_emplace(known.option, FileSize{size, tensor.name, file});
    if (is_new || found->second.size == size) continue;
    Diagnostic(
        {}, fmt::format("{}: {} is {} in {} and {} in {} ({})", file, known.option, size,
                        tensor.name, found->second.size, found->second.tensor, found->second.file))
        .fix(fmt::format("give tensors that agree on {}", known.option))
        .raise();
  }
}

// Bytes of all tensors; raises when they do not fit into the host's memory.
void check_memory(const LibraryKernel& kernel, const OptionValues& options) {
  const double available =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE));
  double total = 0;
  for (std::size_t i = 0; i < tensor_count(kernel, options); ++i) {
    const LibraryTensor& tensor = kernel.tensors[i];
    const std::vector<std::int64_t> shape = shape_of(tensor, options);
    double bytes = size_of(dtype_of(tensor, options));
    for (const std::int64_t extent : shape) bytes *= static_cast<double>(extent);
    total += bytes;
    if (total > available) {
      Diagnostic({}, fmt::format("{}: with {} {} the tensors take {:.3g} GB, and this machine has "
                                 "{:.3g} GB of memory",
                                 kernel.name, tensor.name, shape_text(shape), total / 1e9,
                                 available / 1e9))
          .fix(fmt::format("set smaller sizes ({})", fmt::join(tensor.shape, ", ")))
          .raise();
    }
  }
}

std::string index_text(const std::vector<std::int64_t>& shape, std::int64_t index) {
  std::vector<std::int64_t> indices(shape.size());
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    indices[axis] = index % shape[axis];
    index /= shape[axis];
  }
  return fmt::format("[{}]", fmt::join(indices, ", "));
}

double error_of(double got, double want, double scale) {
  if (got == want) return 0;
  if (!std::isfinite(got) || !std::isfinite(want)) return kInfinity;
  const double magnitude = std::max(std::abs(want), scale);
  return std::abs(got - want) / magnitude;
}

double root_mean_square(std::span<const double> values) {
  double sum = 0, count = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    sum += value * value;
    ++count;
  }
  return count == 0 ? 0 : std::sqrt(sum / count);
}

}  // namespace

std::vector<HostTensor> Workload::inputs() const {
  std::vector<HostTensor> inputs;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!kernel->tensors[i].is_output) inputs.push_back(tensors[i]);
  }
  return inputs;
}

void Workload::poison_outputs() {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!kernel->tensors[i].is_output) continue;
    tensors[i] = HostTensor::poisoned(tensors[i].dtype(), tensors[i].shape());
  }
}

Arguments Workload::arguments() {
  Arguments arguments;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    HostTensor& tensor = tensors[i];
    arguments.tensors.push_back(
        {kernel->tensors[i].name, tensor.dtype(), tensor.shape(), tensor.strides(), tensor.data()});
  }
  return arguments;
}

std::size_t find_tensor(const LibraryKernel& kernel, const std::string& name, bool is_output) {
  std::vector<std::string> known;
  for (std::size_t i = 0; i < kernel.tensors.size(); ++i) {
    if (kernel.tensors[i].is_output != is_output) continue;
    if (kernel.tensors[i].name == name) return i;
    known.push_back(kernel.tensors[i].name);
  }
  Diagnostic({},
             fmt::format("{} has no {} '{}'", kernel.name, is_output ? "output" : "input", name))
      .fix(fmt::format("name one of: {}", fmt::join(known, ", ")))
      .raise();
}

Workload make_workload(const LibraryKernel& kernel, const std::vector<std::string>& settings,
                       const std::map<std::string, std::string>& files, std::uint64_t seed) {
  const OptionValues provisional = provisional_options(kernel, settings);
  Workload workload{&kernel, {}, std::vector<HostTensor>(kernel.tensors.size())};
  std::map<std::string, FileSize> sizes;
  for (const auto& [name, file] : files) {
    const std::size_t i = find_tensor(kernel, name, false);
    const LibraryTensor& tensor = kernel.tensors[i];
    workload.tensors[i] = read_tensor(file, name, dtype_of(tensor, provisional));
    check_rank(tensor, workload.tensors[i], file);
    note_sizes(tensor, workload.tensors[i], file, sizes);
  }
  std::map<std::string, std::int64_t> known_sizes;
  for (const auto& [option, size] : sizes) known_sizes[option] = size.size;
  workload.options = resolve_options(kernel, settings, known_sizes);
  check_memory(kernel, workload.options);

  const std::size_t count = tensor_count(kernel, workload.options);
  for (const auto& [name, file] : files) {
    const LibraryTensor& tensor = kernel.tensors[find_tensor(kernel, name, false)];
    if (tensor.option.empty() || workload.options.boolean(tensor.option)) continue;
    Diagnostic({}, fmt::format("{}: {} has no input {} while {} is false", file, kernel.name, name,
                               tensor.option))
        .fix(fmt::format("--set {}=true", tensor.option))
        .raise();
  }
  workload.tensors.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    const LibraryTensor& tensor = kernel.tensors[i];
    const std::vector<std::int64_t> shape = shape_of(tensor, workload.options);
    const DType dtype = dtype_of(tensor, workload.options);
    const auto file = files.find(tensor.name);
    if (file != files.end()) {
      if (workload.tensors[i].shape() == shape) continue;
      Diagnostic(
          {}, fmt::format("{}: has shape {}, and the options make tensor {} {}", file->second,
                          shape_text(workload.tensors[i].shape()), tensor.name, shape_text(shape)))
          .fix(fmt::format("leave {} out of --set: sizes are then those of the file",
                           fmt::join(tensor.shape, ", ")))
          .raise();
    }
    workload.tensors[i] = tensor.is_output ? HostTensor::poisoned(dtype, shape)
                          : tensor.values  ? tensor.values(workload.options, seed)
                                           : HostTensor::random_normal(dtype, shape, seed + i);
  }
  return workload;
}

std::vector<std::vector<double>> reference_of(const Workload& workload) {
  return workload.kernel->reference(workload.options, workload.inputs());
}

void compare_tensor(const HostTensor& tensor, const std::vector<double>& wanted,
                    const std::string& name, const std::string& of_what, Comparison& result) {
  const std::size_t row =
      static_cast<std::size_t>(tensor.shape().empty() ? 1 : tensor.shape().back());
  const double whole = root_mean_square(wanted);
  double scale = 0;
  for (std::size_t j = 0; j < wanted.size(); ++j) {
    if (j % row == 0) {
      scale = std::max(whole, root_mean_square(std::span(wanted).subspan(j, row)));
    }
    const double got = tensor.flat(static_cast<std::int64_t>(j));
    const double error = error_of(got, wanted[j], scale);
    if (error <= result.max_relative_error) continue;
    result.max_relative_error = error;
    result.worst = fmt::format("{}{} is {}, and {} {}", name,
                               index_text(tensor.shape(), static_cast<std::int64_t>(j)), got,
                               wanted[j], of_what);
  }
}

Comparison compare(const Workload& workload, const std::vector<std::vector<double>>& reference) {
  Comparison result;
  std::size_t output = 0;
  for (std::size_t i = 0; i < workload.tensors.size(); ++i) {
    if (!workload.kernel->tensors[i].is_output) continue;
    compare_tensor(workload.tensors[i], reference[output++], workload.kernel->tensors[i].name,
                   "in float64", result);
  }
  return result;
}

double tolerance_of(const std::vector<DType>& dtypes) {
  double worst = 2e-5;
  for (const DType dtype : dtypes) {
    if (dtype == DType::f16) worst = std::max(worst, 2.5e-3);
    if (!is_integer(dtype) && size_of(dtype) < 4 && dtype != DType::f16) worst = 2e-2;
  }
  return worst;
}

}  // namespace tilewright::library
