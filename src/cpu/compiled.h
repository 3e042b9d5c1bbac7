#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "cpu/kernels.h"
#include "cpu/program.h"
#include "ir/ir.h"
#include "support/arguments.h"
#include "tilewright/numerics.h"

namespace tilewright::cpu {

struct RunOptions {
  unsigned threads = 0;  // 0: thread_count()
  // Values of the dimensions that no axis of a tensor is alone.
  std::map<std::string, std::int64_t> dims = {};
};

// A kernel of the tile form, ready to run. It may run in several threads at once.
class CompiledKernel {
 public:
  // `kernels`: of the instruction set that is meant; null: this machine's.
  CompiledKernel(const ir::Kernel& kernel, const Numerics& numerics,
                 const Kernels* kernels = nullptr);

  // Raises what the interpreter raises for arguments that do not fit, for an index outside of its
  // tensor, for blocks that integers of the launch put outside of theirs, and for scalars that
  // overflow.
  void run(const Arguments& arguments, const RunOptions& options = {}) const;

  const Program& program() const { return program_; }
  const Kernels& kernels() const { return kernels_; }

 private:
  const ir::Kernel kernel_;
  const Kernels& kernels_;
  const Program program_;
};

}  // namespace tilewright::cpu
