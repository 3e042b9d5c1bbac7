#include "library/workload.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "library/tensor_file.h"
#include "support/diagnostic.h"

namespace tilewright::library {
namespace {

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

}  // namespace tilewright::library
