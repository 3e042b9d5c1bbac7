#include "tilewright/c_api.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "api/c_api_objects.h"
#include "api/host_call.h"
#include "compiler/compile_traced.h"
#include "compiler/target.h"
#include "cpu/pool.h"
#include "library/kernel_source.h"
#include "library/workload.h"
#include "support/messages.h"
#include "tilewright/compile.h"
#include "tilewright/library_executable.h"
#include "tilewright/version.h"

struct tilewright_kernel {
  tilewright::library::KernelSource source;
  bool is_in_group;
  std::vector<const tilewright::LibraryTensor*> parameters;
  std::vector<tilewright::DType> dtypes;  // of these
  // The second: of a text.
  std::variant<tilewright::LibraryExecutable, tilewright::Executable> executable;

  const tilewright::LibraryKernel& entry() const { return source.entry(); }
  const tilewright::Executable* own() const {
    return std::get_if<tilewright::Executable>(&executable);
  }
  const tilewright::LibraryExecutable& of_library() const {
    if (own() == nullptr) return std::get<tilewright::LibraryExecutable>(executable);
    tilewright::c_api::fail(entry().name + " is a kernel of one GPU", "call tilewright_kernel_run");
  }
};

namespace {

static_assert(TILEWRIGHT_ERROR_RESULT == static_cast<int>(tilewright::ErrorKind::result) &&
              TILEWRIGHT_ERROR_USAGE == static_cast<int>(tilewright::ErrorKind::usage) &&
              TILEWRIGHT_ERROR_UNAVAILABLE ==
                  static_cast<int>(tilewright::ErrorKind::unavailable) &&
              TILEWRIGHT_ERROR_INTERNAL == static_cast<int>(tilewright::ErrorKind::internal));

using LiveKernels = tilewright::c_api::Live<tilewright_kernel>;
using tilewright::c_api::fail;
using tilewright::c_api::guarded;
using tilewright::c_api::required;

LiveKernels& live() { return LiveKernels::all(); }

// What errors of a call name in place of a line; none where it has no kernel, and where the caller
// has the kernel's text.
const tilewright::LibraryKernel* entry_of(const tilewright_kernel* kernel) {
  return live().has(kernel) && kernel->own() == nullptr ? &kernel->entry() : nullptr;
}

void require_live(const tilewright_kernel* kernel) { live().require(kernel, "kernel"); }

std::vector<std::string> split(const char* list) {
  std::vector<std::string> words;
  if (list == nullptr) return words;
  std::string rest = list;
  while (!rest.empty()) {
    const std::size_t at = rest.find(',');
    words.push_back(rest.substr(0, at));
    rest = at == std::string::npos ? "" : rest.substr(at + 1);
  }
  return words;
}

tilewright::DType dtype_of(const tilewright_tensor& tensor, const std::string& name) {
  try {
    return tilewright::parse_dtype(tensor.dtype);
  } catch (const tilewright::Error& error) {
    fail(fmt::format("tensor {}: {}", name, error.message()), error.fix());
  }
}

tilewright::TensorRef tensor_of(const tilewright_kernel& kernel, std::size_t index,
                                const tilewright_tensor& tensor) {
  const tilewright::LibraryTensor& declared = *kernel.parameters[index];
  const std::size_t rank = declared.shape.size();
  // Before so many sizes and strides are read.
  if (tensor.rank != static_cast<std::int64_t>(rank) || tensor.shape == nullptr) {
    const std::string has =
        tensor.shape == nullptr ? "no shape" : fmt::format("rank {}", tensor.rank);
    fail(fmt::format("tensor {} has {}, and {} takes rank {}", declared.name, has,
                     kernel.entry().name, rank),
         fmt::format("pass one size for each of its axes: {}", fmt::join(declared.shape, ", ")));
  }
  tilewright::TensorRef result;
  result.data = tensor.data;
  result.dtype = tensor.dtype == nullptr ? kernel.dtypes[index] : dtype_of(tensor, declared.name);
  result.shape.assign(tensor.shape, tensor.shape + rank);
  if (tensor.strides != nullptr) result.strides.assign(tensor.strides, tensor.strides + rank);
  return result;
}

bool has_tensor(const tilewright_kernel* kernel, int32_t index) {
  return index >= 0 && index < tilewright_kernel_tensor_count(kernel);
}

}  // namespace

const char* tilewright_version(void) { return TILEWRIGHT_VERSION; }

int32_t tilewright_abi_version(void) { return TILEWRIGHT_ABI; }

void tilewright_set_log(tilewright_log log, void* context) {
  if (log == nullptr) return tilewright::send_messages_to({});
  tilewright::send_messages_to([=](tilewright::Message kind, const std::string& text) {
    log(context, kind == tilewright::Message::warning ? 1 : 0, text.c_str());
  });
}

tilewright_status tilewright_set_parallel_for(tilewright_parallel_for parallel_for, void* context,
                                              int32_t threads) {
  return guarded(nullptr, [&] {
    constexpr int32_t kMost = tilewright::cpu::kMostThreads;
    if (parallel_for != nullptr && (threads < 1 || threads > kMost)) {
      fail(fmt::format("parallel_for has {} threads", threads),
           fmt::format("say how many may compute at a time: 1 to {}", kMost));
    }
    if (parallel_for == nullptr) return tilewright::cpu::use_host_threads({});
    // For ever: a run that began with it may still be under way.
    static auto& loops = *new std::deque<tilewright::c_api::HostLoop>;
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    tilewright::cpu::use_host_threads({tilewright::c_api::call_host,
                                       &loops.emplace_back(parallel_for, context),
                                       static_cast<unsigned>(threads)});
  });
}

// A literal: it ends with a zero.
const char* tilewright_default_target(void) { return tilewright::default_target().data(); }

const char* tilewright_last_error(void) { return tilewright::c_api::last_error.c_str(); }

namespace {

// How a kernel is to be made, but for its name and options.
struct Wanted {
  const char* target;  // NULL: the default
  int32_t device;
  bool checked = false;
  const tilewright_group* group = nullptr;
};

bool names_ranks(const std::vector<std::string>& settings) {
  return std::any_of(settings.begin(), settings.end(),
                     [](const std::string& setting) { return setting.rfind("ranks=", 0) == 0; });
}

tilewright::LibraryExecutable build(const tilewright::LibraryKernel& entry,
                                    const tilewright::OptionValues& values, const Wanted& wanted) {
  tilewright::CompileOptions how;
  how.device = wanted.device;
  how.checked = wanted.checked;
  const std::string_view target = wanted.target ? wanted.target : tilewright::default_target();
  if (wanted.group == nullptr) return tilewright::compile(entry, values, target, how);
  return tilewright::compile(entry, values, target, wanted.group->group, how);
}

tilewright_status create(const char* name, const char* options, const Wanted& wanted,
                         tilewright_kernel** kernel) {
  if (kernel != nullptr) *kernel = nullptr;
  return guarded(nullptr, [&] {
    if (kernel == nullptr) fail("the place for the kernel is NULL", "pass its address");
    const tilewright::LibraryKernel& entry = tilewright::find_kernel(required(name, "the kernel"));
    std::vector<std::string> settings = split(options);
    for (const std::string& word : settings) {
      if (word.find('=') != std::string::npos) continue;
      fail(fmt::format("'{}' of \"{}\" is no setting", word, options),
           "write name=value, with commas between; leave lengths out, which those of the tensors "
           "say");
    }
    // As many as there are, unless the caller says another number, which is then an error.
    if (wanted.group != nullptr && entry.over_ranks && !names_ranks(settings)) {
      settings.push_back(fmt::format("ranks={}", wanted.group->group.size()));
    }
    const tilewright::OptionValues values = tilewright::resolve_options(entry, settings);
    const std::vector<const tilewright::LibraryTensor*> of_rank =
        tilewright::tensors_of(entry, values);
    const int ranks = wanted.group ? 1 : tilewright::library::ranks_of(entry, values);
    std::vector<const tilewright::LibraryTensor*> parameters;
    for (int rank = 0; rank < ranks; ++rank) {
      parameters.insert(parameters.end(), of_rank.begin(), of_rank.end());
    }
    std::vector<tilewright::DType> dtypes;
    for (const tilewright::LibraryTensor* parameter : parameters) {
      dtypes.push_back(tilewright::dtype_of(*parameter, values));
    }
    auto made = std::unique_ptr<tilewright_kernel>(new tilewright_kernel{
        tilewright::library::KernelSource(entry), wanted.group != nullptr, std::move(parameters),
        std::move(dtypes), build(entry, values, wanted)});
    live().add(made.get());
    *kernel = made.release();
  });
}

// A kernel that runs alone: a text may hold others.
void require_runnable(const tilewright::library::KernelSource& source) {
  const std::string& name = source.entry().name;
  if (source.reaches_ranks()) fail(name + " reaches other ranks", "run it in a Program of C++");
  if (source.is_compiled()) {
    fail(name + " is in the machine form, which is simulated and not run",
         "pass the text of the kernel as it was traced: 01-trace.tw of a dump");
  }
}

}  // namespace

tilewright_status tilewright_kernel_create(const char* name, const char* options,
                                           const char* target, int32_t device,
                                           tilewright_kernel** kernel) {
  return create(name, options, {target, device}, kernel);
}

tilewright_status tilewright_kernel_create_checked(const char* name, const char* options,
                                                   const char* target, int32_t device,
                                                   tilewright_kernel** kernel) {
  return create(name, options, {target, device, /*checked=*/true}, kernel);
}

tilewright_status tilewright_kernel_create_from_text(const char* text, const char* file,
                                                     const char* schedule, const char* target,
                                                     int32_t device, tilewright_kernel** kernel) {
  if (kernel != nullptr) *kernel = nullptr;
  return guarded(nullptr, [&] {
    if (kernel == nullptr) fail("the place for the kernel is NULL", "pass its address");
    if (text == nullptr) fail("the text of the kernel is NULL", "pass what its file holds");
    auto source = tilewright::library::KernelSource::of_text(text, file ? file : "kernel.tw");
    require_runnable(source);
    std::vector<std::string> settings = split(schedule);
    for (std::string& setting : settings) setting = "schedule." + setting;
    const tilewright::OptionValues values = tilewright::resolve_options(source.entry(), settings);
    std::vector<const tilewright::LibraryTensor*> parameters;
    std::vector<tilewright::DType> dtypes;
    for (const tilewright::LibraryTensor& tensor : source.entry().tensors) {
      parameters.push_back(&tensor);
      dtypes.push_back(*tensor.dtype);
    }
    tilewright::CompileOptions how;
    how.device = device;
    const auto chosen =
        tilewright::compiler::parse_target(target ? target : tilewright::default_target(), device);
    tilewright::Executable executable =
        tilewright::compile_traced(source.traced(values, chosen), chosen.name, how);
    auto made = std::unique_ptr<tilewright_kernel>(new tilewright_kernel{
        std::move(source), false, std::move(parameters), std::move(dtypes), std::move(executable)});
    live().add(made.get());
    *kernel = made.release();
  });
}

tilewright_status tilewright_kernel_create_in_group(const char* name, const char* options,
                                                    const tilewright_group* group, int32_t device,
                                                    tilewright_kernel** kernel) {
  if (kernel != nullptr) *kernel = nullptr;
  const tilewright_status status = guarded(
      nullptr, [&] { tilewright::c_api::Live<tilewright_group>::all().require(group, "group"); });
  if (status != TILEWRIGHT_OK) return status;
  return create(name, options, {"cuda", device, /*checked=*/false, group}, kernel);
}

void tilewright_kernel_destroy(tilewright_kernel* kernel) {
  if (live().remove(kernel)) delete kernel;
}

int32_t tilewright_kernel_tensor_count(const tilewright_kernel* kernel) {
  return live().has(kernel) ? static_cast<int32_t>(kernel->dtypes.size()) : 0;
}

const char* tilewright_kernel_tensor_name(const tilewright_kernel* kernel, int32_t index) {
  if (!has_tensor(kernel, index)) return nullptr;
  return kernel->parameters[static_cast<std::size_t>(index)]->name.c_str();
}

int32_t tilewright_kernel_tensor_is_output(const tilewright_kernel* kernel, int32_t index) {
  if (!has_tensor(kernel, index)) return 0;
  return kernel->parameters[static_cast<std::size_t>(index)]->is_output ? 1 : 0;
}

const char* tilewright_kernel_tensor_dtype(const tilewright_kernel* kernel, int32_t index) {
  if (!has_tensor(kernel, index)) return nullptr;
  return tilewright::name_of(kernel->dtypes[static_cast<std::size_t>(index)]).data();
}

int32_t tilewright_kernel_tensor_is_input(const tilewright_kernel* kernel, int32_t index) {
  if (!has_tensor(kernel, index)) return 0;
  return kernel->parameters[static_cast<std::size_t>(index)]->is_input() ? 1 : 0;
}

int32_t tilewright_kernel_tensor_rank(const tilewright_kernel* kernel, int32_t index) {
  if (!has_tensor(kernel, index)) return 0;
  return static_cast<int32_t>(kernel->parameters[static_cast<std::size_t>(index)]->shape.size());
}

int32_t tilewright_kernel_scalar_count(const tilewright_kernel* kernel) {
  if (!live().has(kernel) || kernel->own() == nullptr) return 0;
  return static_cast<int32_t>(kernel->entry().scalars.size());
}

const char* tilewright_kernel_scalar_name(const tilewright_kernel* kernel, int32_t index) {
  if (index < 0 || index >= tilewright_kernel_scalar_count(kernel)) return nullptr;
  return kernel->entry().scalars[static_cast<std::size_t>(index)].c_str();
}

int32_t tilewright_kernel_variant_count(const tilewright_kernel* kernel) {
  if (!live().has(kernel)) return 0;
  return kernel->own() ? 1 : static_cast<int32_t>(kernel->of_library().variants().size());
}

tilewright_status tilewright_kernel_prepare(const tilewright_kernel* kernel) {
  return guarded(entry_of(kernel), [&] {
    require_live(kernel);
    if (kernel->own() == nullptr) kernel->of_library().prepare();
  });
}

namespace {

// Calls `action` with the tensors as the kernel takes them.
template <typename Action>
tilewright_status with_tensors(const tilewright_kernel* kernel, const tilewright_tensor* tensors,
                               int32_t count, const Action& action) {
  return guarded(entry_of(kernel), [&] {
    require_live(kernel);
    constexpr const char* kFix =
        "pass its inputs and outputs in the order of tilewright_kernel_tensor_name";
    if (count != tilewright_kernel_tensor_count(kernel)) {
      fail(fmt::format("{} takes {} tensors, and {} are given", kernel->entry().name,
                       kernel->dtypes.size(), count),
           kFix);
    }
    if (tensors == nullptr)
      fail(fmt::format("the tensors of {} are NULL", kernel->entry().name), kFix);
    std::vector<tilewright::TensorRef> refs;
    refs.reserve(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      refs.push_back(tensor_of(*kernel, i, tensors[i]));
    }
    action(refs);
  });
}

}  // namespace

tilewright_status tilewright_kernel_run(const tilewright_kernel* kernel,
                                        const tilewright_tensor* tensors, int32_t count,
                                        void* stream) {
  return with_tensors(kernel, tensors, count, [&](const auto& refs) {
    if (kernel->own()) return kernel->own()->run(refs, {}, stream);
    if (kernel->is_in_group) return kernel->of_library().run_in_group(refs, stream);
    kernel->of_library().run(refs, stream);
  });
}

tilewright_status tilewright_kernel_run_flat(const tilewright_kernel* kernel,
                                             const int64_t* numbers, int32_t count, void* stream) {
  std::vector<tilewright_tensor> tensors;
  const tilewright_status status = guarded(entry_of(kernel), [&] {
    require_live(kernel);
    std::size_t wanted = 0;
    for (const tilewright::LibraryTensor* each : kernel->parameters) {
      wanted += 1 + 2 * each->shape.size();
    }
    if (numbers == nullptr || count != static_cast<std::int64_t>(wanted)) {
      fail(fmt::format("{} takes {} numbers, and {} are given", kernel->entry().name, wanted,
                       numbers == nullptr ? "none" : std::to_string(count)),
           "pass the address of each tensor, its sizes and its strides, in the order of "
           "tilewright_kernel_tensor_name");
    }
    for (const tilewright::LibraryTensor* each : kernel->parameters) {
      const std::size_t rank = each->shape.size();
      const auto address = static_cast<std::uintptr_t>(*numbers);
      tensors.push_back({reinterpret_cast<void*>(address), nullptr, static_cast<int32_t>(rank),
                         numbers + 1, numbers + 1 + rank});
      numbers += 1 + 2 * rank;
    }
  });
  if (status != TILEWRIGHT_OK) return status;
  return tilewright_kernel_run(kernel, tensors.data(), static_cast<int32_t>(tensors.size()),
                               stream);
}

tilewright_status tilewright_kernel_run_in_float64(const tilewright_kernel* kernel,
                                                   const tilewright_tensor* tensors,
                                                   int32_t count) {
  std::vector<tilewright_tensor> own;
  const tilewright_status status = guarded(entry_of(kernel), [&] {
    require_live(kernel);
    for (int32_t i = 0; tensors != nullptr && i < count && has_tensor(kernel, i); ++i) {
      tilewright_tensor& tensor = own.emplace_back(tensors[i]);
      const tilewright::DType declared = kernel->dtypes[static_cast<std::size_t>(i)];
      if (!tilewright::is_float(declared)) continue;
      if (tensor.dtype == nullptr || std::string_view(tensor.dtype) != "f64") {
        fail(fmt::format("tensor {} is {}, and the run is in float64",
                         tilewright_kernel_tensor_name(kernel, i),
                         tensor.dtype ? tensor.dtype : "of no dtype"),
             "pass doubles, and say f64");
      }
      tensor.dtype = nullptr;
    }
  });
  if (status != TILEWRIGHT_OK) return status;
  return with_tensors(kernel, tensors ? own.data() : nullptr, count,
                      [&](const auto& refs) { kernel->of_library().run_in_float64(refs); });
}

tilewright_status tilewright_kernel_run_with_scalars(const tilewright_kernel* kernel,
                                                     const tilewright_tensor* tensors,
                                                     int32_t count, const double* scalars,
                                                     int32_t scalar_count, void* stream) {
  return with_tensors(kernel, tensors, count, [&](const auto& refs) {
    std::vector<double> numbers;
    if (scalars != nullptr) numbers.assign(scalars, scalars + std::max(scalar_count, 0));
    if (kernel->own()) return kernel->own()->run(refs, numbers, stream);
    fail(kernel->entry().name + " takes no scalars", "set its options when it is created");
  });
}

tilewright_status tilewright_kernel_tensor_shape(const tilewright_kernel* kernel,
                                                 const tilewright_tensor* tensors, int32_t count,
                                                 int32_t index, int64_t* shape) {
  return guarded(entry_of(kernel), [&] {
    require_live(kernel);
    if (kernel->own() == nullptr) {
      fail(kernel->entry().name + " is of the library, whose shapes its options say",
           "ask it of a kernel that was created from a text");
    }
    if (!has_tensor(kernel, index) || count != tilewright_kernel_tensor_count(kernel) ||
        tensors == nullptr || shape == nullptr) {
      fail(fmt::format("the shape of tensor {} is asked for, with {} tensors", index, count),
           fmt::format("pass all {} of {}, and a place for the shape", kernel->dtypes.size(),
                       kernel->entry().name));
    }
    std::map<std::size_t, std::vector<std::int64_t>> known;
    for (std::size_t i = 0; i < kernel->dtypes.size(); ++i) {
      if (tensors[i].shape != nullptr) known[i] = tensor_of(*kernel, i, tensors[i]).shape;
    }
    const auto sizes = kernel->source.shape_of(static_cast<std::size_t>(index), known);
    std::copy(sizes.begin(), sizes.end(), shape);
  });
}

tilewright_status tilewright_kernel_prepare_run(const tilewright_kernel* kernel,
                                                const tilewright_tensor* tensors, int32_t count,
                                                void* stream) {
  return with_tensors(kernel, tensors, count, [&](const auto& refs) {
    if (kernel->own()) return kernel->own()->prepare(refs, {}, stream);
    kernel->of_library().prepare(refs, stream);
  });
}

tilewright_status tilewright_kernel_run_on_gpus(const tilewright_kernel* kernel,
                                                const tilewright_tensor* tensors, int32_t count,
                                                void* const* streams, int32_t gpus) {
  return with_tensors(kernel, tensors, count, [&](const auto& refs) {
    std::vector<void*> queues;
    if (streams != nullptr) queues.assign(streams, streams + std::max(gpus, 0));
    kernel->of_library().run_on_gpus(refs, queues);
  });
}

tilewright_status tilewright_kernel_shared_tensors(const tilewright_kernel* kernel,
                                                   const tilewright_tensor* tensors, int32_t count,
                                                   int32_t* shared) {
  return with_tensors(kernel, tensors, count, [&](const auto& refs) {
    if (shared == nullptr) fail("the place for what is shared is NULL", "pass one of each tensor");
    const std::vector<bool> reached = kernel->of_library().reached_by_others(refs);
    for (std::size_t i = 0; i < refs.size(); ++i) {
      shared[i] = i < reached.size() && reached[i] ? 1 : 0;
    }
  });
}

tilewright_status tilewright_kernel_synchronize(const tilewright_kernel* kernel) {
  return guarded(entry_of(kernel), [&] {
    require_live(kernel);
    kernel->of_library().synchronize();
  });
}
