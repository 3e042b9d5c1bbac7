#include "tilewright/c_api.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/c_api_objects.h"
#include "cpu/pool.h"
#include "library/workload.h"
#include "tilewright/library_executable.h"
#include "tilewright/version.h"

struct tilewright_kernel {
  const tilewright::LibraryKernel* entry;
  bool is_in_group;
  std::vector<const tilewright::LibraryTensor*> parameters;
  std::vector<tilewright::DType> dtypes;  // of these
  tilewright::LibraryExecutable executable;
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

// What errors of a call name; none where it has no kernel.
const tilewright::LibraryKernel* entry_of(const tilewright_kernel* kernel) {
  return live().has(kernel) ? kernel->entry : nullptr;
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

tilewright::TensorRef tensor_of(const tilewright_kernel& kernel, std::size_t index,
                                const tilewright_tensor& tensor) {
  const tilewright::LibraryTensor& declared = *kernel.parameters[index];
  const std::size_t rank = declared.shape.size();
  // Before so many sizes and strides are read.
  if (tensor.rank != static_cast<std::int64_t>(rank) || tensor.shape == nullptr) {
    fail(fmt::format("tensor {} has rank {} and {} shape, and {} takes rank {}", declared.name,
                     tensor.rank, tensor.shape == nullptr ? "no" : "a", kernel.entry->name, rank),
         fmt::format("pass one size for each of its axes: {}", fmt::join(declared.shape, ", ")));
  }
  tilewright::TensorRef result;
  result.data = tensor.data;
  result.dtype =
      tensor.dtype == nullptr ? kernel.dtypes[index] : tilewright::parse_dtype(tensor.dtype);
  result.shape.assign(tensor.shape, tensor.shape + rank);
  if (tensor.strides != nullptr) result.strides.assign(tensor.strides, tensor.strides + rank);
  return result;
}

bool has_tensor(const tilewright_kernel* kernel, int32_t index) {
  return index >= 0 && index < tilewright_kernel_tensor_count(kernel);
}

}  // namespace

const char* tilewright_version(void) { return TILEWRIGHT_VERSION; }

tilewright_status tilewright_set_parallel_for(tilewright_parallel_for parallel_for, void* context,
                                              int32_t threads) {
  return guarded(nullptr, [&] {
    constexpr int32_t kMost = tilewright::cpu::kMostThreads;
    if (parallel_for != nullptr && (threads < 1 || threads > kMost)) {
      fail(fmt::format("parallel_for has {} threads", threads),
           fmt::format("say how many may compute at a time: 1 to {}", kMost));
    }
    tilewright::cpu::use_host_threads({parallel_for, context, static_cast<unsigned>(threads)});
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
    auto made = std::unique_ptr<tilewright_kernel>(
        new tilewright_kernel{&entry, wanted.group != nullptr, std::move(parameters),
                              std::move(dtypes), build(entry, values, wanted)});
    live().add(made.get());
    *kernel = made.release();
  });
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

int32_t tilewright_kernel_variant_count(const tilewright_kernel* kernel) {
  return live().has(kernel) ? static_cast<int32_t>(kernel->executable.variants().size()) : 0;
}

tilewright_status tilewright_kernel_prepare(const tilewright_kernel* kernel) {
  return guarded(entry_of(kernel), [&] {
    require_live(kernel);
    kernel->executable.prepare();
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
      fail(fmt::format("{} takes {} tensors, and {} are given", kernel->entry->name,
                       kernel->dtypes.size(), count),
           kFix);
    }
    if (tensors == nullptr)
      fail(fmt::format("the tensors of {} are NULL", kernel->entry->name), kFix);
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
    if (kernel->is_in_group) return kernel->executable.run_in_group(refs, stream);
    kernel->executable.run(refs, stream);
  });
}

tilewright_status tilewright_kernel_prepare_run(const tilewright_kernel* kernel,
                                                const tilewright_tensor* tensors, int32_t count,
                                                void* stream) {
  return with_tensors(kernel, tensors, count,
                      [&](const auto& refs) { kernel->executable.prepare(refs, stream); });
}

tilewright_status tilewright_kernel_run_on_gpus(const tilewright_kernel* kernel,
                                                const tilewright_tensor* tensors, int32_t count,
                                                void* const* streams, int32_t gpus) {
  return with_tensors(kernel, tensors, count, [&](const auto& refs) {
    std::vector<void*> queues;
    if (streams != nullptr) queues.assign(streams, streams + std::max(gpus, 0));
    kernel->executable.run_on_gpus(refs, queues);
  });
}

tilewright_status tilewright_kernel_synchronize(const tilewright_kernel* kernel) {
  return guarded(entry_of(kernel), [&] {
    require_live(kernel);
    kernel->executable.synchronize();
  });
}
