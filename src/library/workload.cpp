#include "library/workload.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "library/present_tensors.h"
#include "library/stated_input.h"
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

// What the caller says of inputs.
struct Given {
  std::map<const LibraryTensor*, std::string> files;
  std::map<const LibraryTensor*, StatedInput> stated;
};

Given given_of(const LibraryKernel& kernel, const std::map<std::string, std::string>& inputs) {
  Given given;
  for (const auto& [name, text] : inputs) {
    const LibraryTensor& tensor = find_tensor(kernel, name, false);
    if (const std::optional<StatedInput> stated = StatedInput::parse(text, name)) {
      given.stated.emplace(&tensor, *stated);
    } else {
      given.files.emplace(&tensor, text);
    }
  }
  return given;
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
  for (const LibraryTensor* each : tensors_of(kernel, options)) {
    const LibraryTensor& tensor = *each;
    const std::vector<std::int64_t> shape = shape_of(tensor, options);
    double bytes = size_of(dtype_of(tensor, options));
    for (const std::int64_t extent : shape) bytes *= static_cast<double>(extent);
    total += bytes * ranks_of(kernel, options);
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

std::vector<double> scalars_of(const LibraryKernel& kernel, const OptionValues& options) {
  std::vector<double> scalars;
  for (const std::string& option : kernel.scalars) scalars.push_back(options.number(option));
  return scalars;
}

int ranks_of(const LibraryKernel& kernel, const OptionValues& options) {
  return kernel.over_ranks ? static_cast<int>(options.integer("ranks")) : 1;
}

std::string Workload::name_of(std::size_t parameter) const {
  const std::string& name = parameters[parameter]->name;
  if (ranks == 1) return name;
  const std::size_t of_rank = parameters.size() / static_cast<std::size_t>(ranks);
  return fmt::format("{} of rank {}", name, parameter / of_rank);
}

std::vector<HostTensor> Workload::inputs() const {
  std::vector<HostTensor> inputs;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!parameters[i]->is_input()) continue;
    const auto own = given.find(i);
    inputs.push_back(own == given.end() ? tensors[i] : own->second);
  }
  return inputs;
}

void Workload::poison_outputs() {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!parameters[i]->is_output) continue;
    const auto own = given.find(i);
    tensors[i] = own == given.end() ? HostTensor::poisoned(tensors[i].dtype(), tensors[i].shape())
                                    : own->second;
  }
}

Arguments Workload::arguments() {
  Arguments arguments;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    HostTensor& tensor = tensors[i];
    arguments.tensors.push_back(
        {name_of(i), tensor.dtype(), tensor.shape(), tensor.strides(), tensor.data()});
  }
  arguments.scalars = scalars_of(*kernel, options);
  return arguments;
}

const LibraryTensor& find_tensor(const LibraryKernel& kernel, const std::string& name,
                                 bool is_output) {
  std::vector<std::string> known;
  for (const LibraryTensor& tensor : kernel.tensors) {
    if (!(is_output ? tensor.is_output : tensor.is_input())) continue;
    if (tensor.name == name) return tensor;
    known.push_back(tensor.name);
  }
  Diagnostic({},
             fmt::format("{} has no {} '{}'", kernel.name, is_output ? "output" : "input", name))
      .fix(fmt::format("name one of: {}", fmt::join(known, ", ")))
      .raise();
}

namespace {

void check_present(const LibraryKernel& kernel, const OptionValues& options,
                   const LibraryTensor& tensor, const std::string& file) {
  if (is_present(tensor, options)) return;
  const bool is_negated = tensor.option[0] == '!';
  const std::string option = tensor.option.substr(is_negated ? 1 : 0);
  Diagnostic({},
             fmt::format("{}: {} has no {} {} while {} is {}", file, kernel.name,
                         tensor.is_output ? "output" : "input", tensor.name, option, is_negated))
      .fix(fmt::format("set {}={}", option, !is_negated))
      .raise();
}

}  // namespace

namespace {

bool has_lengths(const LibraryTensor& tensor, const OptionValues& options) {
  return !tensor.lengths.empty() && !options.text(tensor.lengths).empty();
}

void check_lengths_are_not_set(const LibraryTensor& tensor, const OptionValues& options,
                               const std::string& given) {
  if (!has_lengths(tensor, options)) return;
  Diagnostic({}, fmt::format("{}: {} comes from --in, and {} is set to '{}'", given, tensor.name,
                             tensor.lengths, options.text(tensor.lengths)))
      .fix("leave one of them out")
      .raise();
}

HostTensor first_rows(const std::vector<std::int64_t>& lengths) {
  std::vector<double> rows = {0};
  for (const std::int64_t length : lengths) {
    rows.push_back(rows.back() + static_cast<double>(length));
  }
  return HostTensor::from_values(i32, {static_cast<std::int64_t>(rows.size())}, rows);
}

}  // namespace

const HostTensor& Workload::output(const std::string& name, const std::string& file) const {
  const LibraryTensor& tensor = find_tensor(*kernel, name, true);
  check_present(*kernel, options, tensor, file);
  const auto at = std::find(parameters.begin(), parameters.end(), &tensor);
  return tensors[static_cast<std::size_t>(at - parameters.begin())];
}

namespace {

void check_shape(const LibraryTensor& tensor, const HostTensor& read, const std::string& file,
                 const std::vector<std::int64_t>& shape) {
  if (read.shape() == shape) return;
  Diagnostic({}, fmt::format("{}: has shape {}, and the options make tensor {} {}", file,
                             shape_text(read.shape()), tensor.name, shape_text(shape)))
      .fix(fmt::format("do not set {}: sizes are then those of the file",
                       fmt::join(tensor.shape, ", ")))
      .raise();
}

// Of each rank there would have to be one.
void check_no_files(const LibraryKernel& kernel, const Given& given) {
  if (!kernel.over_ranks || given.files.empty()) return;
  const auto& [tensor, file] = *given.files.begin();
  Diagnostic({}, fmt::format("{}: {} is there in each rank of {}", file, tensor->name, kernel.name))
      .fix(fmt::format("leave it out, or say what it holds: --in {}=uniform:-1:1", tensor->name))
      .raise();
}

// Tensors that depend on what all ranks have.
void fit_ranks(Workload& workload, const Given& given) {
  std::vector<HostTensor>& all = workload.tensors;
  const std::size_t of_rank = all.size() / static_cast<std::size_t>(workload.ranks);
  for (std::size_t place = 0; place < of_rank; ++place) {
    const LibraryTensor& tensor = *workload.parameters[place];
    if (!tensor.values_of_ranks || given.stated.contains(&tensor)) continue;
    std::vector<HostTensor> before;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (i % of_rank < place) before.push_back(all[i]);
    }
    std::size_t i = place;
    for (HostTensor& values : tensor.values_of_ranks(workload.options, before)) {
      all[i] = std::move(values);
      i += of_rank;
    }
  }
}

}  // namespace

namespace {

// What it holds where no file says so.
HostTensor made_tensor(const LibraryTensor& tensor, const Workload& workload, const Given& given,
                       std::uint64_t seed, Drawn drawn) {
  const OptionValues& options = workload.options;
  const std::vector<std::int64_t> shape = shape_of(tensor, options);
  const DType dtype = dtype_of(tensor, options);
  const std::uint64_t own_seed = seed + workload.tensors.size();
  if (!tensor.is_input()) return HostTensor::poisoned(dtype, shape);
  if (const auto stated = given.stated.find(&tensor); stated != given.stated.end()) {
    return stated->second.values(dtype, shape, own_seed);
  }
  if (has_lengths(tensor, options)) return first_rows(options.lengths(tensor.lengths));
  const bool is_zero = drawn == Drawn::zeros && is_float(dtype);
  if (is_zero || tensor.values_of_ranks) return HostTensor::zeros(dtype, shape);
  if (tensor.values) return tensor.values(options, seed, workload.tensors);
  return HostTensor::random_normal(dtype, shape, own_seed);
}

}  // namespace

Workload make_workload(const LibraryKernel& kernel, const std::vector<std::string>& settings,
                       const std::map<std::string, std::string>& inputs, std::uint64_t seed,
                       Drawn drawn) {
  const Given given = given_of(kernel, inputs);
  check_no_files(kernel, given);
  const OptionValues provisional = provisional_options(kernel, settings);
  Workload workload;
  workload.kernel = &kernel;
  std::map<const LibraryTensor*, HostTensor> read;
  std::map<std::string, FileSize> sizes;
  for (const auto& [tensor, file] : given.files) {
    HostTensor& values = read[tensor];
    values = read_tensor(file, tensor->name, dtype_of(*tensor, provisional));
    check_rank(*tensor, values, file);
    note_sizes(*tensor, values, file, sizes);
  }
  std::map<std::string, std::int64_t> known_sizes;
  for (const auto& [option, size] : sizes) known_sizes[option] = size.size;
  workload.options = resolve_options(kernel, settings, known_sizes);
  check_memory(kernel, workload.options);

  for (const auto& [name, text] : inputs) {
    check_lengths_are_not_set(find_tensor(kernel, name, false), workload.options, text);
    check_present(kernel, workload.options, find_tensor(kernel, name, false), text);
  }
  workload.ranks = ranks_of(kernel, workload.options);
  const std::vector<const LibraryTensor*> of_rank = tensors_of(kernel, workload.options);
  for (int rank = 0; rank < workload.ranks; ++rank) {
    workload.parameters.insert(workload.parameters.end(), of_rank.begin(), of_rank.end());
  }
  for (const LibraryTensor* tensor : workload.parameters) {
    const std::size_t number = workload.tensors.size();
    if (const auto file = read.find(tensor); file != read.end()) {
      check_shape(*tensor, file->second, given.files.at(tensor),
                  shape_of(*tensor, workload.options));
      workload.tensors.push_back(std::move(file->second));
    } else {
      workload.tensors.push_back(made_tensor(*tensor, workload, given, seed, drawn));
    }
    if (tensor->is_inout) workload.given.emplace(number, workload.tensors.back());
  }
  if (drawn == Drawn::normal) fit_ranks(workload, given);
  return workload;
}

}  // namespace tilewright::library
