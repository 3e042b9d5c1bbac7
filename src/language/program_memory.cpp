#include <fmt/format.h>

#include <utility>

#include "ir/binding.h"
#include "ir/program.h"
#include "support/diagnostic.h"
#include "tilewright/program.h"

namespace tilewright {

ProgramMemory::ProgramMemory(const Program& program, std::uint64_t seed)
    : ProgramMemory(program, DimValues(), seed) {}

ProgramMemory::ProgramMemory(const Program& program, DimValues sizes, std::uint64_t seed)
    : tensors(ir::initial_tensors(program.finish(), sizes, seed)),
      sizes_(std::move(sizes)),
      program_(program.program_) {}

HostTensor& ProgramMemory::at(const Buffer& buffer, int rank, SourceLocation where) {
  const bool known = buffer.program_ == program_ && rank >= 0 && rank < program_->ranks &&
                     buffer.number_ < static_cast<int>(tensors[rank].size()) &&
                     program_->buffers[buffer.number_].outlives_runs();
  if (!known) {
    Diagnostic(where, fmt::format("at: the memory of program {} has no such buffer in rank {}",
                                  program_->name, rank))
        .token("at")
        .note(program_->where, program_->name + " is made")
        .fix(fmt::format("take a buffer that was made before the memory and is no scratch, in rank "
                         "0 to {}",
                         program_->ranks - 1))
        .raise();
  }
  return tensors[rank][buffer.number_];
}

}  // namespace tilewright
