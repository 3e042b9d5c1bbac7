#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ir/ir.h"
#include "support/arguments.h"
#include "tilewright/program.h"

// What tilewright::Program records.
namespace tilewright::ir {

struct ProgramBuffer {
  // Signals are zeros at first; so are workspaces, which launches leave zero. What is in scratch
  // memory no launch leaves to the next.
  enum class Kind : std::uint8_t { tensor, signals, workspace, scratch };
  Kind kind = Kind::tensor;
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  SourceLocation where;
  std::int64_t bytes() const;
};

// Of a parameter that the runtime owns.
ProgramBuffer::Kind owned_kind(const Parameter& parameter);

// A box of a buffer in one rank.
struct ProgramPart {
  int buffer = 0, rank = 0;
  std::vector<std::int64_t> starts, sizes;
};

struct ProgramStream {
  std::string name;
  int rank = 0;
  SourceLocation where;
};

struct ProgramOperation {
  enum class Kind : std::uint8_t { launch, copy, write, wait, record, wait_event };
  Kind kind = Kind::launch;
  int stream = 0;
  SourceLocation where;
  // launch: all that the kernel's tensor parameters are, also what no caller passes
  int kernel = 0;
  std::vector<ProgramPart> tensors;
  std::vector<RunNumber> scalars;
  std::int64_t epoch = 0;  // of the first run, from 1, and how many there are in a run
  std::int64_t epochs_per_run = 0;
  // copy; the word is `to`
  ProgramPart to, from;
  RunNumber value = 0;
  int event = 0;  // by number; each is recorded once
};

struct Program {
  std::string name;
  int ranks = 1;
  SourceLocation where;
  std::vector<ProgramBuffer> buffers;
  std::vector<ProgramStream> streams;
  std::vector<std::shared_ptr<const Kernel>> kernels;
  std::vector<std::string> kernel_texts;
  std::vector<ProgramOperation> operations;
  int events = 0;
};

// Where a buffer lies in a rank.
using BufferAddress = std::function<std::byte*(int buffer, int rank)>;

// The part as a tensor; the peers' too where there are several ranks.
TensorArgument argument_of(const Program& program, const ProgramPart& part,
                           const BufferAddress& address);
Arguments arguments_of(const Program& program, const ProgramOperation& launch, std::int64_t run,
                       const BufferAddress& address);

// Raises a usage error where the kernel does not take what the launch gives it.
void check_launch(const Program& program, const ProgramOperation& launch);

// What the buffers hold at first, of each rank each buffer's: normal random numbers, and zero
// integers. What nobody passes is zeros.
std::vector<std::vector<HostTensor>> initial_tensors(const Program& program, std::uint64_t seed);

// What a word is to be, or to be waited for, in a run: modulo 2^32.
std::int32_t word_value(const RunNumber& value, std::int64_t run);

// Raises a usage error where somebody asks for no runs, or schedules.
void check_count(const Program& program, const char* what, std::int64_t count);

// Raises a usage error where these are not what the program's buffers hold, of each rank each
// buffer's; of memory that no caller passes nothing need be there.
void check_tensors(const Program& program, const std::vector<std::vector<HostTensor>>& tensors);

// Rows of bytes that are contiguous in both parts; a pitch leads from one row to the next.
struct CopiedRows {
  std::byte *to, *from;
  std::int64_t bytes, rows;  // of a row; how many
  std::int64_t to_pitch, from_pitch;
};
// A copy as the fewest such pieces that the strides allow.
void for_each_rows(const TensorArgument& to, const TensorArgument& from,
                   const std::function<void(const CopiedRows&)>& copy);

// "x of rank 1", or "x" where there is one rank.
std::string name_of(const Program& program, int buffer, int rank);
// "3 ranks", "1 rank".
std::string ranks_text(int ranks);
// "stream main of rank 1".
std::string name_of(const Program& program, const ProgramStream& stream);

}  // namespace tilewright::ir
