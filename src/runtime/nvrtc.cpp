#include "runtime/nvrtc.h"

#include <fmt/format.h>
#include <glob.h>

#include <cstdlib>
#include <filesystem>
#include <iterator>

#include "runtime/dynamic_library.h"
#include "support/diagnostic.h"

namespace tilewright::runtime {
namespace {

using Program = struct _nvrtcProgram*;
using Result = int;

constexpr Result kSuccess = 0;
constexpr Result kErrorInvalidOption = 5;
constexpr Result kErrorCompilation = 6;
constexpr Result kErrorBuiltins = 7;

struct ArchRequirement {
  std::string_view arch;
  int major, minor;
};

// The first NVRTC that compiles for each architecture (12.3 for sm_90a: the first whose ptxas
// reports wgmma serialisation by code).
constexpr ArchRequirement kRequirements[] = {
    {"sm_90a", 12, 3},  {"sm_100a", 12, 8}, {"sm_103a", 12, 9},
    {"sm_110a", 13, 0}, {"sm_120a", 12, 8},
};

constexpr const char* kHowToGet =
    "install the CUDA toolkit's NVRTC (Debian/Ubuntu with NVIDIA's repository: apt install "
    "cuda-nvrtc-13-0; any system: pip install nvidia-cuda-nvrtc), or set TILEWRIGHT_NVRTC to the "
    "path of libnvrtc.so";

void add_matches(const std::string& pattern, std::vector<std::string>& found) {
  glob_t matches = {};
  if (glob(pattern.c_str(), 0, nullptr, &matches) == 0) {
    // The newest version sorts last.
    for (size_t i = matches.gl_pathc; i > 0; --i) found.emplace_back(matches.gl_pathv[i - 1]);
  }
  globfree(&matches);
}

// Where pip puts packages.
void add_python_folder(const std::string& packages, std::vector<std::string>& found) {
  for (const char* folder : {"cu13", "cuda_nvrtc"}) {
    add_matches(fmt::format("{}/nvidia/{}/lib/libnvrtc.so.1[0-9]", packages, folder), found);
  }
}

void add_python_packages(std::vector<std::string>& found) {
  // pip puts NVIDIA's packages beside tilewright/lib/libtilewright.so.
  const std::filesystem::path own = own_folder();
  if (own.filename() == "lib") add_python_folder(own.parent_path().parent_path().string(), found);
  std::vector<std::string> roots = {"/usr/lib", "/usr/local/lib"};
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const char* prefix = std::getenv(variable);
    if (prefix != nullptr && *prefix != '\0') {
      add_matches(fmt::format("{}/lib/libnvrtc.so.*", prefix), found);
      roots.push_back(fmt::format("{}/lib", prefix));
    }
  }
  if (const char* home = std::getenv("HOME")) {
    roots.push_back(fmt::format("{}/.local/lib", home));
    roots.push_back(fmt::format("{}/.pyenv/versions/*/lib", home));
  }
  for (const std::string& root : roots) {
    for (const char* packages : {"site-packages", "dist-packages"}) {
      add_python_folder(fmt::format("{}/python3*/{}", root, packages), found);
    }
  }
}

}  // namespace

struct Nvrtc::Library {
  DynamicLibrary builtins;
  DynamicLibrary nvrtc;
  int major = 0, minor = 0;

  Result (*version)(int*, int*);
  const char* (*error_text)(Result);
  Result (*create)(Program*, const char*, const char*, int, const char* const*, const char* const*);
  Result (*destroy)(Program*);
  Result (*compile)(Program, int, const char* const*);
  Result (*log_size)(Program, size_t*);
  Result (*log)(Program, char*);
  Result (*cubin_size)(Program, size_t*);
  Result (*cubin)(Program, char*);
  Result (*ptx_size)(Program, size_t*);
  Result (*ptx)(Program, char*);

  void check(Result code, const char* call, std::string_view what) const {
    if (code != kSuccess) raise(code, call, what);
  }

  [[noreturn]] void raise(Result code, const char* call, std::string_view what) const {
    Diagnostic({}, fmt::format("{}: {} ({}), for {}", call, error_text(code), code, what),
               ErrorKind::internal)
        .raise();
  }

  std::string text(Program program, Result (*size)(Program, size_t*), Result (*get)(Program, char*),
                   const char* call, std::string_view what) const {
    size_t bytes = 0;
    check(size(program, &bytes), call, what);
    std::string result(bytes, '\0');
    if (bytes > 0) check(get(program, result.data()), call, what);
    return result;
  }

  // The compiler's texts end with a null character that is counted.
  static std::string without_terminator(std::string text) {
    while (!text.empty() && text.back() == '\0') text.pop_back();
    return text;
  }

  // libnvrtc opens its built-ins by soname, which the loader does not look for beside libnvrtc
  // itself: a copy that is already in the process is found, so it must be opened before compiling.
  void open_builtins() {
    const std::filesystem::path folder = std::filesystem::path(nvrtc.path()).parent_path();
    if (folder.empty()) return;
    const std::string name = fmt::format("libnvrtc-builtins.so.{}.{}", major, minor);
    builtins = DynamicLibrary::try_open((folder / name).string());
  }
};

Nvrtc::Nvrtc(const LibraryRequest& request) : library_(std::make_unique<Library>()) {
  Library& lib = *library_;
  lib.nvrtc = DynamicLibrary::open_first(request);
  const auto bind = [&](auto& function, const char* symbol) {
    if (lib.nvrtc.bind(function, symbol)) return;
    Diagnostic({},
               fmt::format("{} has no {}: it is no NVRTC, or one older than 11.1", lib.nvrtc.path(),
                           symbol),
               ErrorKind::unavailable)
        .fix(kHowToGet)
        .raise();
  };
  bind(lib.version, "nvrtcVersion");
  bind(lib.error_text, "nvrtcGetErrorString");
  bind(lib.create, "nvrtcCreateProgram");
  bind(lib.destroy, "nvrtcDestroyProgram");
  bind(lib.compile, "nvrtcCompileProgram");
  bind(lib.log_size, "nvrtcGetProgramLogSize");
  bind(lib.log, "nvrtcGetProgramLog");
  bind(lib.cubin_size, "nvrtcGetCUBINSize");
  bind(lib.cubin, "nvrtcGetCUBIN");
  bind(lib.ptx_size, "nvrtcGetPTXSize");
  bind(lib.ptx, "nvrtcGetPTX");
  lib.check(lib.version(&lib.major, &lib.minor), "nvrtcVersion", lib.nvrtc.path());
  lib.open_builtins();
}

Nvrtc::~Nvrtc() = default;

const Nvrtc& Nvrtc::get() {
  static const Nvrtc* const compiler = new Nvrtc(nvrtc_request());
  return *compiler;
}

const std::string& Nvrtc::path() const { return library_->nvrtc.path(); }
int Nvrtc::major() const { return library_->major; }
int Nvrtc::minor() const { return library_->minor; }
std::string Nvrtc::version() const { return fmt::format("{}.{}", major(), minor()); }

std::string Nvrtc::identity() const {
  std::error_code failed;
  const auto bytes = std::filesystem::file_size(path(), failed);
  return fmt::format("nvrtc {} of {} bytes", version(), failed ? 0 : bytes);
}

void Nvrtc::require_arch(std::string_view arch) const {
  for (const ArchRequirement& needed : kRequirements) {
    if (needed.arch != arch) continue;
    if (major() > needed.major || (major() == needed.major && minor() >= needed.minor)) return;
    Diagnostic({},
               fmt::format("{} needs NVRTC {}.{} or newer, and {} is {}", arch, needed.major,
                           needed.minor, path(), version()),
               ErrorKind::unavailable)
        .fix(kHowToGet)
        .raise();
  }
}

void Nvrtc::refuse(const CompileRequest& request, const std::string& log, int status) const {
  const std::string what = fmt::format("{} for {}", request.name, request.arch);
  switch (status) {
    case kErrorCompilation:
      if (log.find("(C7602)") != std::string::npos) {  // where ptxas ends, whatever else is right
        Diagnostic(request.where,
                   fmt::format("{}: a product takes more registers than a thread has where so many "
                               "start:\n{}",
                               what, log))
            .fix("use fewer columns a product, or fewer warps a CTA")
            .raise();
      }
      Diagnostic(request.where,
                 fmt::format("NVRTC {} does not compile {}:\n{}", version(), what, log),
                 ErrorKind::internal)
          .raise();
    case kErrorInvalidOption:
      Diagnostic(request.where,
                 fmt::format("NVRTC {} refuses the options of {}: {}", version(), what, log))
          .fix("use an architecture and options that this NVRTC knows: " + path())
          .raise();
    case kErrorBuiltins:
      Diagnostic(request.where,
                 fmt::format("NVRTC {} ({}) does not find its libnvrtc-builtins.so.{}", version(),
                             path(), version()),
                 ErrorKind::unavailable)
          .fix(
              "install the library of the same version beside libnvrtc.so, or add its folder to "
              "LD_LIBRARY_PATH")
          .raise();
    default:
      library_->raise(status, "nvrtcCompileProgram", what);
  }
}

// A program of NVRTC, compiled for an architecture, real or virtual.
class Nvrtc::Compilation {
 public:
  Compilation(const Nvrtc& compiler, const CompileRequest& request, const std::string& arch,
              std::vector<const char*> options)
      : lib_(*compiler.library_), what_(fmt::format("{} for {}", request.name, arch)) {
    compiler.require_arch(request.arch);
    lib_.check(lib_.create(&program_, request.source.c_str(), (request.name + ".cu").c_str(), 0,
                           nullptr, nullptr),
               "nvrtcCreateProgram", what_);
    const std::string chosen = "--gpu-architecture=" + arch;
    options.insert(options.begin(), chosen.c_str());
    for (const std::string& option : request.options) options.push_back(option.c_str());
    const Result status = lib_.compile(program_, static_cast<int>(options.size()), options.data());
    log_ = Library::without_terminator(
        lib_.text(program_, lib_.log_size, lib_.log, "nvrtcGetProgramLog", what_));
    if (status == kSuccess) return;
    lib_.destroy(&program_);
    compiler.refuse(request, log_, status);
  }
  ~Compilation() { lib_.destroy(&program_); }
  Compilation(const Compilation&) = delete;

  const std::string& log() const { return log_; }
  std::string cubin() const {
    return lib_.text(program_, lib_.cubin_size, lib_.cubin, "nvrtcGetCUBIN", what_);
  }
  std::string ptx() const {
    return Library::without_terminator(
        lib_.text(program_, lib_.ptx_size, lib_.ptx, "nvrtcGetPTX", what_));
  }

 private:
  const Library& lib_;
  const std::string what_;
  Program program_ = nullptr;
  std::string log_;
};

CompiledKernel Nvrtc::compile(const CompileRequest& request) const {
  // The assembler prints the stack frame, spills and registers only when it is verbose.
  const Compilation compilation(*this, request, request.arch, {"--ptxas-options=-v"});
  CompiledKernel kernel;
  kernel.log = compilation.log();
  kernel.cubin = compilation.cubin();
  kernel.ptx = compilation.ptx();
  if (kernel.cubin.empty()) {
    Diagnostic(request.where,
               fmt::format("NVRTC made no binary for {} for {}: the architecture is a virtual one",
                           request.name, request.arch))
        .fix("compile for sm_... instead of compute_...")
        .raise();
  }
  kernel.report = make_report(kernel.log, kernel.cubin);
  return kernel;
}

std::string Nvrtc::compile_to_ptx(const CompileRequest& request) const {
  const std::size_t number = request.arch.find('_');
  return Compilation(*this, request, "compute" + request.arch.substr(number), {}).ptx();
}

LibraryRequest nvrtc_request() {
  LibraryRequest request;
  request.how_to_get_it = kHowToGet;
  if (const char* chosen = std::getenv("TILEWRIGHT_NVRTC"); chosen != nullptr && *chosen != '\0') {
    request.what = "the NVRTC named by TILEWRIGHT_NVRTC";
    request.candidates = {chosen};
    request.how_to_get_it = "unset it to use the NVRTC that is installed; or ";
    request.how_to_get_it += kHowToGet;
    return request;
  }
  request.what = "NVIDIA's run-time compiler libnvrtc.so (NVRTC)";
  request.candidates = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so",
                        "/usr/local/cuda/lib64/libnvrtc.so"};
  add_matches("/usr/local/cuda-1[2-9]*/lib64/libnvrtc.so", request.candidates);
  add_python_packages(request.candidates);
  return request;
}

}  // namespace tilewright::runtime
