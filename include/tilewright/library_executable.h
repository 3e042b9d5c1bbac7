#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/compile.h"
#include "tilewright/distributed.h"
#include "tilewright/library.h"

namespace tilewright {

// An operation of the library, a kernel or a program, ready for launches of every length. A
// launch's sizes choose a variant by the kernel's rules; each variant is built once, when a launch
// first needs it. It may be run from several threads at once. The entry must outlive it.
class LibraryExecutable {
 public:
  ~LibraryExecutable();
  LibraryExecutable(LibraryExecutable&&) noexcept;
  LibraryExecutable& operator=(LibraryExecutable&&) noexcept;

  // As Executable::run, or ProgramExecutable::run, and raises what that raises. The first launch
  // that needs a variant waits for its build, and raises what compile() raises: call prepare()
  // before where that must not happen.
  void run(const std::vector<TensorRef>& tensors, void* stream = nullptr) const;
  // Of an operation over ranks, on cuda: as ProgramExecutable::run_on_gpus, and raises what that
  // raises. An operation of one rank is a usage error.
  void run_on_gpus(const std::vector<TensorRef>& tensors,
                   const std::vector<void*>& streams = {}) const;

  // Of one that was compiled with a group: as ProgramExecutable::run_in_group, and its synchronize.
  // The first run that needs a variant is a build in all ranks.
  void run_in_group(const std::vector<TensorRef>& tensors, void* stream = nullptr) const;
  void synchronize() const;
  // The operation's meaning with float64 in place of all floats: of those `data` are doubles,
  // whatever the dtype. By the interpreter, for checks of gradients. One of several ranks or
  // streams is a usage error.
  void run_in_float64(const std::vector<TensorRef>& tensors) const;
  // Of an operation over ranks, for each tensor of a run of these sizes: whether other ranks reach
  // it, so that it lies in memory that the ranks share. Of the tensors their sizes count alone.
  std::vector<bool> reached_by_others(const std::vector<TensorRef>& tensors) const;

  struct Variant {
    std::string name;  // "sm90 block_m=128 block_n=256"
    bool built = false;
  };
  // All that the rules may choose for these options, whatever the sizes, in the rules' order.
  std::vector<Variant> variants() const;
  // Builds all of them. Raises what compile() raises, at the first that cannot be built.
  void prepare() const;
  // All of a run but the work, on cuda: such a run can then be captured in a CUDA graph
  // (program.h). Raises what run raises. On other targets it only builds the variant.
  void prepare(const std::vector<TensorRef>& tensors, void* stream = nullptr) const;

 private:
  friend LibraryExecutable compile(const LibraryKernel&, const OptionValues&, std::string_view,
                                   const CompileOptions&);
  friend LibraryExecutable compile(const LibraryKernel&, const OptionValues&, std::string_view,
                                   const Group&, const CompileOptions&);
  struct State;
  explicit LibraryExecutable(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// The variant for the options' own sizes is built at once, so that what is wrong is known. Raises
// what compile(const Kernel&) raises, and Error(usage) for rules that cannot be read.
LibraryExecutable compile(const LibraryKernel& kernel, const OptionValues& options,
                          std::string_view target = default_target(),
                          const CompileOptions& how = {});
// The same of an operation over ranks, for the processes of a group, by all of them: each runs its
// rank's part on the GPU of its options. Raises besides what compile(const Program&, target, group)
// raises, and Error(usage) for a kernel of one GPU.
LibraryExecutable compile(const LibraryKernel& kernel, const OptionValues& options,
                          std::string_view target, const Group& group,
                          const CompileOptions& how = {});

}  // namespace tilewright
