#include "tilewright/c_api.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <new>
#include <shared_mutex>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "library/workload.h"
#include "support/diagnostic.h"
#include "tilewright/library_executable.h"
#include "tilewright/version.h"

struct tilewright_kernel {
  const tilewright::LibraryKernel* entry;
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

thread_local std::string last_error;

// A caller of C has no source of the kernel: its name stands for the line. What the simulated GPU
// reports is about that source, and keeps its lines.
std::string told_to_caller(const tilewright::Error& error,
                           const tilewright::LibraryKernel* kernel) {
  const bool names_line = error.location().file != nullptr;
  if (!kernel || !names_line || error.kind() != tilewright::ErrorKind::usage) return error.what();
  const bool named = error.message().rfind(kernel->name, 0) == 0;
  std::string text = fmt::format("error: {}{}", named ? "" : kernel->name + ": ", error.message());
  if (!error.fix().empty()) text += "\n  fix: " + error.fix();
  return text;
}

template <typename Action>
tilewright_status guarded(const tilewright::LibraryKernel* kernel, const Action& action) noexcept {
  try {
    action();
    return TILEWRIGHT_OK;
  } catch (const tilewright::Error& error) {
    last_error = told_to_caller(error, kernel);
    return static_cast<tilewright_status>(error.kind());
  } catch (const std::bad_alloc&) {
    // Short enough for the string's own storage: nothing is allocated.
    last_error = "out of memory";
    return TILEWRIGHT_ERROR_UNAVAILABLE;
  } catch (const std::exception& error) {
    last_error = std::string("internal error: ") + error.what();
    return TILEWRIGHT_ERROR_INTERNAL;
  }
}

[[noreturn]] void fail(const std::string& message, const std::string& fix) {
  tilewright::Diagnostic({}, message).fix(fix).raise();
}

// The kernels that were created and not destroyed: what a caller passes may be neither.
class LiveKernels {
 public:
  void add(const tilewright_kernel* kernel) {
    const std::unique_lock lock(mutex_);
    kernels_.insert(kernel);
  }
  // Whether it was there.
  bool remove(const tilewright_kernel* kernel) {
    const std::unique_lock lock(mutex_);
    return kernels_.erase(kernel) != 0;
  }
  bool has(const tilewright_kernel* kernel) {
    const std::shared_lock lock(mutex_);
    return kernels_.count(kernel) != 0;
  }

 private:
  std::shared_mutex mutex_;
  std::unordered_set<const tilewright_kernel*> kernels_;
};

// Never destroyed: a kernel may be used while a program ends.
LiveKernels& live() {
  static auto& kernels = *new LiveKernels;
  return kernels;
}

// What errors of a call name; none where it has no kernel.
const tilewright::LibraryKernel* entry_of(const tilewright_kernel* kernel) {
  return live().has(kernel) ? kernel->entry : nullptr;
}

void require_live(const tilewright_kernel* kernel) {
  if (kernel == nullptr) fail("the kernel is NULL", "create it, and check that it succeeded");
  if (live().has(kernel)) return;
  fail("the kernel is not there: it was destroyed, or never created",
       "destroy it behind its last run");
}

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

const char* required(const char* text, const char* what) {
  if (text == nullptr) fail(fmt::format("{} is NULL", what), "pass its name");
  return text;
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

const char* tilewright_last_error(void) { return last_error.c_str(); }

namespace {

tilewright_status create(const char* name, const char* options, const char* target, int32_t device,
                         bool checked, tilewright_kernel** kernel) {
  if (kernel != nullptr) *kernel = nullptr;
  return guarded(nullptr, [&] {
    if (kernel == nullptr) fail("the place for the kernel is NULL", "pass its address");
    const tilewright::LibraryKernel& entry = tilewright::find_kernel(required(name, "the kernel"));
    const tilewright::OptionValues values = tilewright::resolve_options(entry, split(options));
    const char* wanted = required(target, "the target");
    const std::vector<const tilewright::LibraryTensor*> of_rank =
        tilewright::tensors_of(entry, values);
    std::vector<const tilewright::LibraryTensor*> parameters;
    for (int rank = 0; rank < tilewright::library::ranks_of(entry, values); ++rank) {
      parameters.insert(parameters.end(), of_rank.begin(), of_rank.end());
    }
    std::vector<tilewright::DType> dtypes;
    for (const tilewright::LibraryTensor* parameter : parameters) {
      dtypes.push_back(tilewright::dtype_of(*parameter, values));
    }
    tilewright::CompileOptions how;
    how.device = device;
    how.checked = checked;
    auto made = std::unique_ptr<tilewright_kernel>(
        new tilewright_kernel{&entry, std::move(parameters), std::move(dtypes),
                              tilewright::compile(entry, values, wanted, how)});
    live().add(made.get());
    *kernel = made.release();
  });
}

}  // namespace

tilewright_status tilewright_kernel_create(const char* name, const char* options,
                                           const char* target, int32_t device,
                                           tilewright_kernel** kernel) {
  return create(name, options, target, device, /*checked=*/false, kernel);
}

tilewright_status tilewright_kernel_create_checked(const char* name, const char* options,
                                                   const char* target, int32_t device,
                                                   tilewright_kernel** kernel) {
  return create(name, options, target, device, /*checked=*/true, kernel);
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
  return with_tensors(kernel, tensors, count,
                      [&](const auto& refs) { kernel->executable.run(refs, stream); });
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
