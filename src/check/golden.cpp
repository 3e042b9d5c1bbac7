#include "check/golden.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "check/data_weakness.h"
#include "library/accuracy.h"
#include "library/stated_input.h"
#include "library/tensor_file.h"
#include "simulator/interpreter.h"
#include "simulator/read_map.h"
#include "support/diagnostic.h"
#include "support/file.h"
#include "support/folder.h"
#include "support/hash.h"
#include "support/safetensors.h"

namespace tilewright::checks {
namespace {

using library::Workload;

// An error of the size of what is wanted allows anything.
constexpr double kLooseBound = 0.5;

std::string hash_of(const HostTensor& tensor) {
  return content_hash({reinterpret_cast<const char*>(tensor.data()), tensor.size_bytes()});
}

bool is_poison(const HostTensor& tensor, std::size_t element) {
  const auto size = static_cast<std::size_t>(size_of(tensor.dtype()));
  const std::byte* const first = tensor.data() + element * size;
  return std::all_of(first, first + size, [](std::byte b) { return b == std::byte{0xff}; });
}

void check_alone(const LibraryKernel& entry) {
  if (!entry.over_ranks) return;
  Diagnostic({}, fmt::format("{} runs over ranks, and golden data is of one", entry.name))
      .fix(fmt::format("tilewright run {} --target interpreter --check", entry.name))
      .raise();
}

// Of each tensor of the workload, the elements that the kernel's meaning reads; nothing where it
// has none that the interpreter runs.
std::vector<std::optional<std::vector<bool>>> elements_read(const library::KernelSource& source,
                                                            const Workload& workload) {
  std::vector<std::optional<std::vector<bool>>> read(workload.tensors.size());
  Workload run = workload;
  run.poison_outputs();
  const Arguments arguments = run.arguments();
  simulator::ReadMap map(arguments.tensors);
  simulator::InterpreterOptions how;
  how.threads = 0;
  how.reads = &map;
  if (source.is_file()) {
    const ir::Kernel kernel = source.traced(run.options, compiler::parse_target("interpreter"));
    if (kernel.form != ir::Form::tile) return read;
    simulator::interpret(kernel, arguments, how);
  } else {
    library::run_meaning(run, how);
  }
  for (std::size_t i = 0; i < read.size(); ++i) read[i] = map.elements_read(i);
  return read;
}

std::vector<std::string> weaknesses_of(const library::KernelSource& source,
                                       const GoldenData& data) {
  const Workload& workload = data.workload;
  const auto read = elements_read(source, workload);
  std::vector<std::string> all;
  const auto add = [&](const std::vector<std::string>& more) {
    all.insert(all.end(), more.begin(), more.end());
  };
  std::size_t output = 0;
  std::vector<InputData> inputs;
  for (std::size_t i = 0; i < workload.tensors.size(); ++i) {
    const LibraryTensor& parameter = *workload.parameters[i];
    if (parameter.is_input()) {
      const auto given = workload.given.find(i);
      InputData input{parameter.name,
                      given == workload.given.end() ? &workload.tensors[i] : &given->second};
      input.read = read[i];
      input.keeps_unread = parameter.is_inout;
      input.may_be_in_order = !parameter.lengths.empty();
      add(checks::weaknesses_of(input));
      inputs.push_back(std::move(input));
    }
    if (parameter.is_output) {
      add(weaknesses_of_result(parameter.name, data.expected[output++]));
    }
  }
  add(weaknesses_among(inputs));
  return all;
}

// NaN for what nobody reads; how many elements.
std::int64_t poison_unread(HostTensor& tensor, const std::vector<bool>& read) {
  const auto size = static_cast<std::size_t>(size_of(tensor.dtype()));
  std::int64_t count = 0;
  for (std::size_t i = 0; i < read.size(); ++i) {
    if (read[i]) continue;
    std::memset(tensor.data() + i * size, 0xff, size);
    ++count;
  }
  return count;
}

bool has_nan(const library::Reference& reference) {
  return std::any_of(reference.values.begin(), reference.values.end(), [](const auto& values) {
    return std::any_of(values.begin(), values.end(), [](double v) { return std::isnan(v); });
  });
}

library::Reference results_of(const Workload& workload) {
  return library::reference_of(workload, library::Executed::by_hardware);
}

// Poisons the inputs, except where the reference itself reads what the kernel does not.
library::Reference poisoned_results(const library::KernelSource& source, Workload& workload,
                                    std::map<std::size_t, std::int64_t>& poisoned) {
  const auto read = elements_read(source, workload);
  const std::vector<HostTensor> clean = workload.tensors;
  for (std::size_t i = 0; i < workload.tensors.size(); ++i) {
    const LibraryTensor& parameter = *workload.parameters[i];
    if (!read[i] || parameter.is_output || !is_float(workload.tensors[i].dtype())) continue;
    if (const std::int64_t count = poison_unread(workload.tensors[i], *read[i]); count > 0) {
      poisoned[i] = count;
    }
  }
  library::Reference results = results_of(workload);
  if (poisoned.empty() || !has_nan(results)) return results;
  workload.tensors = clean;
  poisoned.clear();
  return results_of(workload);
}

// All options, so that a later default changes nothing. Lengths are those of the inputs.
std::vector<std::string> settings_of(const Workload& workload) {
  std::map<std::string, std::string> values = workload.options.all();
  for (const KernelOption& option : workload.kernel->options) {
    if (option.kind == KernelOption::Kind::lengths) values.erase(option.name);
  }
  std::vector<std::string> settings;
  for (const auto& [name, value] : values) settings.push_back(fmt::format("{}={}", name, value));
  return settings;
}

GoldenInput input_of(const Workload& workload, std::size_t number,
                     const std::map<std::string, std::string>& inputs, std::uint64_t seed) {
  const HostTensor& tensor = workload.tensors[number];
  GoldenInput input{workload.parameters[number]->name, tensor.dtype(), tensor.shape()};
  input.hash = hash_of(tensor);
  const auto said = inputs.find(input.name);
  if (said == inputs.end()) return input;
  if (const auto stated = library::StatedInput::parse(said->second, input.name)) {
    input.stated = stated->text();
    input.seed = seed + number;
  }
  return input;
}

NpyArray doubles_of(const std::vector<double>& values, const std::vector<std::int64_t>& shape) {
  NpyArray array{"<f8", shape, std::vector<std::byte>(values.size() * sizeof(double))};
  if (!values.empty()) std::memcpy(array.data.data(), values.data(), array.data.size());
  return array;
}

void write_case(const std::string& folder, const GoldenData& data) {
  std::vector<std::pair<std::string, NpyArray>> inputs, expected;
  const Workload& workload = data.workload;
  for (std::size_t i = 0; i < workload.tensors.size(); ++i) {
    const LibraryTensor& parameter = *workload.parameters[i];
    const HostTensor& tensor = workload.tensors[i];
    if (parameter.is_input()) inputs.emplace_back(parameter.name, library::array_of(tensor));
    if (parameter.is_output) {
      expected.emplace_back(parameter.name,
                            doubles_of(data.expected[expected.size()], tensor.shape()));
    }
  }
  write_safetensors(folder + "/" + data.description.inputs_file(), inputs);
  write_safetensors(folder + "/" + data.description.expected_file(), expected);
}

}  // namespace

GoldenData make_golden(const library::KernelSource& source, const GoldenSizes& sizes,
                       const std::map<std::string, std::string>& given, std::uint64_t seed) {
  check_alone(source.entry());
  std::map<std::string, std::string> inputs = given;
  inputs.insert(sizes.inputs.begin(), sizes.inputs.end());
  GoldenData data;
  data.workload = library::make_workload(source.entry(), sizes.settings, inputs, seed);
  std::map<std::size_t, std::int64_t> poisoned;
  library::Reference results = poisoned_results(source, data.workload, poisoned);
  data.expected = std::move(results.values);
  data.description.name = sizes.name;
  data.description.settings = settings_of(data.workload);
  const Workload& workload = data.workload;
  for (std::size_t i = 0; i < workload.tensors.size(); ++i) {
    const LibraryTensor& parameter = *workload.parameters[i];
    const HostTensor& tensor = workload.tensors[i];
    if (parameter.is_input()) {
      GoldenInput input = input_of(workload, i, inputs, seed);
      if (const auto found = poisoned.find(i); found != poisoned.end()) {
        input.poisoned = found->second;
      }
      data.description.inputs.push_back(std::move(input));
    }
    if (parameter.is_output) {
      data.description.outputs.push_back({parameter.name, tensor.dtype(), tensor.shape(),
                                          results.allowed[data.description.outputs.size()]});
    }
  }
  data.description.weaknesses = weaknesses_of(source, data);
  return data;
}

void write_golden(const std::string& folder, const library::KernelSource& source,
                  const std::vector<GoldenData>& all) {
  make_folder(folder);
  GoldenManifest manifest;
  manifest.kernel = source.is_file() ? kGoldenKernel : source.entry().name;
  for (const GoldenData& data : all) {
    write_case(folder, data);
    manifest.cases.push_back(data.description);
  }
  if (source.is_file()) {
    write_text(folder + "/" + kGoldenKernel, source.file_text());
  }
  write_text(folder + "/" + kGoldenManifest, manifest_text(manifest));
}

namespace {

library::KernelSource source_of(const std::string& path_of_kernel, const GoldenManifest& manifest,
                                const std::function<const LibraryKernel&(std::string_view)>& find) {
  if (manifest.kernel == kGoldenKernel) {
    return library::KernelSource::of_file(path_of_kernel);
  }
  return library::KernelSource(find(manifest.kernel));
}

template <typename Described>
void check_tensor(const std::string& file, const GoldenCase& of, const Described& described,
                  const HostTensor& tensor) {
  if (described.dtype == tensor.dtype() && described.shape == tensor.shape()) return;
  Diagnostic({}, fmt::format("{}: case {}: {} is {} {{{}}}, and the settings make it {} {{{}}}",
                             file, of.name, described.name, name_of(described.dtype),
                             fmt::join(described.shape, ", "), name_of(tensor.dtype()),
                             fmt::join(tensor.shape(), ", ")))
      .fix("run tilewright golden again")
      .raise();
}

}  // namespace

GoldenFolder::GoldenFolder(std::string folder,
                           const std::function<const LibraryKernel&(std::string_view)>& find)
    : folder_(std::move(folder)),
      manifest_(read_manifest(path(kGoldenManifest))),
      source_(source_of(path(kGoldenKernel), manifest_, find)) {
  check_alone(source_.entry());
}

std::string GoldenFolder::path_in(const std::string& folder, const std::string& file) {
  namespace fs = std::filesystem;
  std::string path = folder + "/" + file;
  std::error_code unresolved;
  const fs::path inside = fs::weakly_canonical(folder, unresolved);
  const fs::path target = unresolved ? fs::path() : fs::weakly_canonical(path, unresolved);
  // Whoever opens what cannot be resolved says why.
  if (unresolved || target.parent_path() == inside) return path;
  Diagnostic({},
             fmt::format("{}: is a link to {}, which is not in that folder", path, target.string()))
      .fix("copy the folder with what its links lead to: cp -rL")
      .raise();
}

// The file's numbers; without a file those that the manifest states.
std::string GoldenFolder::input_words(const GoldenCase& of, const GoldenInput& input) const {
  const std::string file = path(of.inputs_file());
  const auto is_in_file = [&] {
    const std::vector<std::string> keys = safetensors_keys(file);
    return std::find(keys.begin(), keys.end(), input.name) != keys.end();
  };
  if (input.stated.empty()) return file + ":" + input.name;
  const auto stated = library::StatedInput::parse(input.stated, input.name);
  if (!stated) {
    Diagnostic({}, fmt::format("{}: case {}: {} is stated as '{}', a file", path(kGoldenManifest),
                               of.name, input.name, input.stated))
        .fix("leave it out: numbers of files lie in " + of.inputs_file())
        .raise();
  }
  if (!std::filesystem::exists(file) || !is_in_file()) return stated->with_seed(input.seed);
  return file + ":" + input.name;
}

void GoldenFolder::check_tensors(const GoldenCase& of, const Workload& workload) const {
  const std::string file = path(kGoldenManifest);
  const auto find = [&](const auto& all, const std::string& name, const char* what) {
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const auto& each) { return each.name == name; });
    if (found != all.end()) return found;
    Diagnostic({}, fmt::format("{}: case {} does not describe {} {} of {}", file, of.name, what,
                               name, source_.entry().name))
        .fix("run tilewright golden again")
        .raise();
  };
  for (std::size_t i = 0; i < workload.tensors.size(); ++i) {
    const LibraryTensor& parameter = *workload.parameters[i];
    if (parameter.is_input()) {
      check_tensor(file, of, *find(of.inputs, parameter.name, "input"), workload.tensors[i]);
    }
    if (parameter.is_output) {
      check_tensor(file, of, *find(of.outputs, parameter.name, "output"), workload.tensors[i]);
    }
  }
}

GoldenData GoldenFolder::read(const GoldenCase& of) const {
  GoldenData data;
  data.description = of;
  std::map<std::string, std::string> inputs;
  for (const GoldenInput& input : of.inputs) inputs[input.name] = input_words(of, input);
  data.workload = library::make_workload(source_.entry(), of.settings, inputs, 0);
  check_tensors(of, data.workload);
  // In the order of the kernel.
  for (std::size_t i = 0; i < data.workload.tensors.size(); ++i) {
    if (!data.workload.parameters[i]->is_output) continue;
    const std::string& name = data.workload.parameters[i]->name;
    const std::string file = path(of.expected_file()) + ":" + name;
    const NpyArray array = read_safetensors(file);
    if (array.descr != "<f8" || array.shape != data.workload.tensors[i].shape()) {
      Diagnostic({}, fmt::format("{}: holds {} of shape {{{}}}, and the results of {} are F64 "
                                 "{{{}}}",
                                 file, array.descr, fmt::join(array.shape, ", "), name,
                                 fmt::join(data.workload.tensors[i].shape(), ", ")))
          .fix("run tilewright golden again")
          .raise();
    }
    std::vector<double>& values = data.expected.emplace_back(array.data.size() / sizeof(double));
    if (!values.empty()) std::memcpy(values.data(), array.data.data(), array.data.size());
  }
  return data;
}

namespace {

// Where an input is not what its manifest says.
std::optional<std::string> change_of(const GoldenInput& input, const HostTensor& tensor) {
  if (!input.stated.empty()) {
    const auto stated = library::StatedInput::parse(input.stated, input.name);
    if (stated) {
      const HostTensor meant = stated->values(input.dtype, input.shape, input.seed);
      for (std::int64_t i = 0; i < tensor.elements(); ++i) {
        if (is_poison(tensor, static_cast<std::size_t>(i)) || tensor.flat(i) == meant.flat(i)) {
          continue;
        }
        return fmt::format("{}: number {} is {}, and {} is stated, of which it is {}", input.name,
                           i, tensor.flat(i), input.stated, meant.flat(i));
      }
    }
  }
  if (input.hash.empty() || input.hash == hash_of(tensor)) return {};
  return fmt::format("{}: these are not the numbers that the manifest was written with (hash {})",
                     input.name, input.hash);
}

}  // namespace

std::vector<std::string> new_weaknesses(const library::KernelSource& source,
                                        const GoldenData& data) {
  std::vector<std::string> all;
  const Workload& workload = data.workload;
  for (const GoldenInput& input : data.description.inputs) {
    for (std::size_t i = 0; i < workload.tensors.size(); ++i) {
      if (workload.parameters[i]->name != input.name) continue;
      const auto given = workload.given.find(i);
      const HostTensor& tensor =
          given == workload.given.end() ? workload.tensors[i] : given->second;
      if (const auto change = change_of(input, tensor)) all.push_back(*change);
    }
  }
  for (const GoldenOutput& output : data.description.outputs) {
    const library::Errors& allowed = output.allowed;
    const double loosest = std::max({allowed.whole, allowed.row, allowed.element});
    if (loosest <= kLooseBound) continue;
    all.push_back(
        fmt::format("{}: an error of {:.3g} of what is wanted is allowed", output.name, loosest));
  }
  const std::vector<std::string>& known = data.description.weaknesses;
  for (std::string& weakness : weaknesses_of(source, data)) {
    if (std::find(known.begin(), known.end(), weakness) == known.end()) {
      all.push_back(std::move(weakness));
    }
  }
  return all;
}

library::Comparison compare(const GoldenData& data) {
  library::Comparison comparison;
  const Workload& workload = data.workload;
  for (std::size_t i = 0; i < workload.tensors.size(); ++i) {
    if (!workload.parameters[i]->is_output) continue;
    const std::string& name = workload.parameters[i]->name;
    const std::vector<GoldenOutput>& described = data.description.outputs;
    const auto output = std::find_if(described.begin(), described.end(),
                                     [&](const GoldenOutput& each) { return each.name == name; });
    comparison.outputs.push_back(library::compare_tensor(workload.tensors[i],
                                                         data.expected[comparison.outputs.size()],
                                                         name, output->allowed, "is expected"));
  }
  return comparison;
}

void read_outputs(const std::string& file, GoldenData& data) {
  Workload& workload = data.workload;
  for (std::size_t i = 0; i < workload.tensors.size(); ++i) {
    if (!workload.parameters[i]->is_output) continue;
    const std::string& name = workload.parameters[i]->name;
    HostTensor read = library::read_tensor(file + ":" + name, name, workload.tensors[i].dtype());
    if (read.shape() != workload.tensors[i].shape()) {
      Diagnostic({}, fmt::format("{}:{}: has shape {{{}}}, and {{{}}} is expected", file, name,
                                 fmt::join(read.shape(), ", "),
                                 fmt::join(workload.tensors[i].shape(), ", ")))
          .fix("save the output in that shape")
          .raise();
    }
    workload.tensors[i] = std::move(read);
  }
}

}  // namespace tilewright::checks
