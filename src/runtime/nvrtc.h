#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/ptxas_report.h"
#include "tilewright/error.h"

namespace tilewright::runtime {

struct LibraryRequest;

// One self-contained CUDA C++ source to be built for one architecture.
struct CompileRequest {
  std::string name;  // what the log and errors call it: the kernel's name
  std::string source;
  std::string arch;                  // "sm_90a"
  std::vector<std::string> options;  // without the architecture
  SourceLocation where = {};         // of the kernel that the source was printed from, for errors
  bool afresh = false;               // no earlier build of the same is taken
};

struct CompiledKernel {
  std::string cubin;
  std::string ptx;
  std::string log;
  PtxasReport report;
};

// NVIDIA's run-time compiler. Compiling is safe from several threads at once.
class Nvrtc {
 public:
  // Throws Error(unavailable) when it is not found or too old to serve at all.
  explicit Nvrtc(const LibraryRequest& request);
  ~Nvrtc();

  // Loaded at the first call, kept until the process ends. A failure is tried again by the next.
  static const Nvrtc& get();

  const std::string& path() const;
  int major() const;
  int minor() const;
  std::string version() const;  // "13.0"
  // Tells builds of one version apart: NVRTC states no patch number.
  std::string identity() const;

  // Throws Error(unavailable) when this NVRTC is too old for the architecture, naming both
  // versions.
  void require_arch(std::string_view arch) const;

  // What the source's author did wrong is in the report: check_report() decides on it. A source
  // that does not compile gives Error(internal) with the compiler's log; products of more registers
  // than a thread starts with are their author's, Error(usage).
  CompiledKernel compile(const CompileRequest& request) const;
  // The PTX alone, without an assembler's time.
  std::string compile_to_ptx(const CompileRequest& request) const;

 private:
  struct Library;
  // Compiled with an architecture, real or virtual; the log is in `log`.
  class Compilation;
  [[noreturn]] void refuse(const CompileRequest& request, const std::string& log, int status) const;

  std::unique_ptr<Library> library_;
};

// $TILEWRIGHT_NVRTC, when set, is the only place; else the loader's own search, the toolkit's
// folders, and the packages that Python's installers put beside PyTorch.
LibraryRequest nvrtc_request();

}  // namespace tilewright::runtime
