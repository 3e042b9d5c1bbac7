#include "runtime/cuda_api.h"

#include <fmt/format.h>

#include <cstdlib>
#include <mutex>
#include <set>
#include <utility>

#include "support/diagnostic.h"

namespace tilewright::runtime {
namespace {

struct CodeAdvice {
  cuda::Result code;
  ErrorKind kind;
  const char* fix;
};

constexpr const char* kFaultFix =
    "`tilewright simulate` the kernel: it names the access and the kernel's source line; this "
    "process can no longer use the GPU and must be restarted";

constexpr CodeAdvice kAdvice[] = {
    {2, ErrorKind::unavailable,
     "free device memory, use smaller tensors, or stop other processes on this GPU (nvidia-smi "
     "lists them)"},
    {34, ErrorKind::unavailable,
     "the stub library of the toolkit was loaded: remove its folder from LD_LIBRARY_PATH, or "
     "install the NVIDIA driver"},
    {36, ErrorKind::unavailable, "install a newer NVIDIA driver"},
    {46, ErrorKind::unavailable,
     "another process holds the GPU in exclusive mode: stop it, or `nvidia-smi -c DEFAULT`"},
    {100, ErrorKind::unavailable,
     "run on a machine with an NVIDIA GPU, pass the GPU into the container (docker --gpus all), or "
     "check CUDA_VISIBLE_DEVICES; the target `cpu` needs no GPU"},
    {101, ErrorKind::usage, "use a device number below the count that `tilewright doctor` lists"},
    {200, ErrorKind::unavailable,
     "the driver cannot read this binary: update the NVIDIA driver to at least the CUDA version of "
     "the NVRTC that built it (`tilewright doctor` shows both), or use an older NVRTC "
     "(TILEWRIGHT_NVRTC=/path/to/libnvrtc.so)"},
    {209, ErrorKind::usage,
     "compile for the architecture of this GPU (`tilewright doctor` shows it): sm_90a runs on "
     "compute capability 9.0 only, sm_100a on 10.0 only"},
    {222, ErrorKind::unavailable,
     "update the NVIDIA driver, or use an NVRTC of the driver's CUDA version or older "
     "(TILEWRIGHT_NVRTC=/path/to/libnvrtc.so)"},
    {700, ErrorKind::result, kFaultFix},
    {701, ErrorKind::usage,
     "use fewer threads, registers or bytes of shared memory per block: `tilewright explain` lists "
     "them"},
    {702, ErrorKind::result,
     "the kernel ran into the display's time limit or waits forever: `tilewright simulate` finds "
     "deadlocks"},
    {714, ErrorKind::result, kFaultFix},
    {715, ErrorKind::result, kFaultFix},
    {716, ErrorKind::result, kFaultFix},
    {717, ErrorKind::result, kFaultFix},
    {718, ErrorKind::result, kFaultFix},
    {719, ErrorKind::result, kFaultFix},
    {720, ErrorKind::usage,
     "launch no more blocks than fit on the GPU at once (a persistent grid), or drop the "
     "cooperative launch"},
    {802, ErrorKind::unavailable,
     "the GPUs are not ready: start the NVIDIA fabric manager (systemctl start "
     "nvidia-fabricmanager)"},
    {803, ErrorKind::unavailable,
     "the kernel module and libcuda.so.1 have different versions: reboot, or reinstall the driver"},
    {804, ErrorKind::unavailable,
     "this GPU does not support CUDA's forward-compatibility package: install a newer driver"},
    {912, ErrorKind::usage,
     "use a cluster of at most 8 blocks whose sides divide the grid; 16 need a kernel that allows "
     "large clusters"},
};

struct Reporters {
  std::mutex mutex;
  std::set<const FaultReporter*> all;
};

Reporters& reporters() {
  // Never destroyed: kernels of static objects may outlive it otherwise.
  static auto* const reporters = new Reporters;
  return *reporters;
}

const CodeAdvice* advice_for(cuda::Result code) {
  for (const CodeAdvice& advice : kAdvice) {
    if (advice.code == code) return &advice;
  }
  return nullptr;
}

}  // namespace

CudaDriver::CudaDriver(const LibraryRequest& request)
    : library(DynamicLibrary::open_first(request)) {
  // Read first, so that a missing function can be reported with the driver's version.
  if (library.bind(cuDriverGetVersion, "cuDriverGetVersion")) cuDriverGetVersion(&version);

  const auto bind = [this](auto& function, const char* symbol) {
    if (!library.bind(function, symbol)) raise_missing_function(*this, symbol);
  };
#define TILEWRIGHT_BIND(member, symbol, parameters) bind(member, symbol);
  TILEWRIGHT_CUDA_DRIVER_FUNCTIONS(TILEWRIGHT_BIND)
#undef TILEWRIGHT_BIND

  const cuda::Result started = cuInit(0);
  if (started != cuda::kErrorNoDevice) check_cuda(*this, started, "cuInit");
}

void raise_missing_function(const CudaDriver& driver, const char* symbol) {
  Diagnostic({},
             fmt::format("the NVIDIA driver {} (CUDA {}) has no {}", driver.library.path(),
                         cuda_version_text(driver.version), symbol),
             ErrorKind::unavailable)
      .fix("install a driver for CUDA 12.0 or newer (525.60 or later)")
      .raise();
}

LibraryRequest cuda_driver_request() {
  LibraryRequest request;
  request.what = "the NVIDIA driver's library libcuda.so.1";
  request.how_to_get_it =
      "install the NVIDIA driver (525.60 or newer), or run the container with its GPU support "
      "(docker --gpus all); the target `cpu` needs no driver";
  if (const char* chosen = std::getenv("TILEWRIGHT_CUDA_DRIVER");
      chosen != nullptr && *chosen != '\0') {
    request.what = "the NVIDIA driver's library named by TILEWRIGHT_CUDA_DRIVER";
    request.candidates = {chosen};
    request.how_to_get_it = "unset TILEWRIGHT_CUDA_DRIVER, or set it to the path of libcuda.so.1";
    return request;
  }
  request.candidates = {"libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1",
                        "/usr/lib/x86_64-linux-gnu/libcuda.so.1", "/usr/lib64/libcuda.so.1",
                        "/usr/lib/wsl/lib/libcuda.so.1"};
  return request;
}

const CudaDriver& cuda_driver() {
  // Never destroyed: other static objects may still free device memory while the process ends.
  static const CudaDriver* const driver = new CudaDriver(cuda_driver_request());
  return *driver;
}

std::string cuda_version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

FaultReporter::FaultReporter(std::function<void()> raise) : raise_(std::move(raise)) {
  const std::lock_guard lock(reporters().mutex);
  reporters().all.insert(this);
}

FaultReporter::~FaultReporter() {
  const std::lock_guard lock(reporters().mutex);
  reporters().all.erase(this);
}

void raise_reported() {
  const std::lock_guard lock(reporters().mutex);
  for (const FaultReporter* reporter : reporters().all) reporter->raise_();
}

void raise_cuda_error(const CudaDriver& driver, cuda::Result code, const char* call,
                      std::string_view about) {
  raise_reported();
  const char* name = nullptr;
  const char* meaning = nullptr;
  if (driver.cuGetErrorName(code, &name) != cuda::kSuccess || name == nullptr)
    name = "unknown code";
  if (driver.cuGetErrorString(code, &meaning) != cuda::kSuccess) meaning = nullptr;
  std::string message = fmt::format("{}: {} ({})", call, name, code);
  if (meaning != nullptr) message += fmt::format(": {}", meaning);
  if (!about.empty()) message += fmt::format("; {}", about);

  const CodeAdvice* advice = advice_for(code);
  Diagnostic error({}, std::move(message), advice ? advice->kind : ErrorKind::internal);
  if (advice != nullptr) error.fix(advice->fix);
  error.raise();
}

}  // namespace tilewright::runtime
