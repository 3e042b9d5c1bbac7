#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ir/binding.h"
#include "ir/ir.h"
#include "support/arguments.h"
#include "tilewright/program.h"

// What tilewright::Program records, and what a run makes of it: a program is bound when it has no
// dims left, and whatever executes one takes a bound one.
namespace tilewright::ir {

struct ProgramBuffer {
  // What callers pass is a tensor, which runs read and write, or in or out, which they only read or
  // only write. Signals are zeros at first; so are workspaces, which launches leave zero. What is
  // in scratch memory no run leaves to the next; zeroed is scratch that operations set to zero.
  enum class Kind : std::uint8_t { tensor, in, out, signals, workspace, scratch, zeroed };
  Kind kind = Kind::tensor;
  std::string name;
  DType dtype = DType::f32;
  std::vector<Dim> shape;
  SourceLocation where;
  std::vector<std::int64_t> strides = {};  // of a caller's, once bound; none: row-major
  bool is_double = false;                  // as TensorArgument's
  bool is_meeting = false;                 // words of Stream::barrier or Stream::exchange
  bool is_passed() const { return kind == Kind::tensor || kind == Kind::in || kind == Kind::out; }
  // Whether the next run finds what this one leaves in it.
  bool outlives_runs() const { return is_passed() || kind == Kind::signals; }
  // Bytes from its first element to behind its last one, once the program is bound.
  std::int64_t bytes() const;
};

// Of a parameter that the runtime owns.
ProgramBuffer::Kind owned_kind(const Parameter& parameter);

// Of dims that are bound: an internal error where one is not.
std::int64_t constant(const Dim& dim);
std::vector<std::int64_t> constants(const std::vector<Dim>& dims);

// A box of a buffer in one rank.
struct ProgramPart {
  int buffer = 0, rank = 0;
  std::vector<Dim> starts, sizes;
};

struct ProgramStream {
  std::string name;
  int rank = 0;
  SourceLocation where;
};

struct ProgramOperation {
  enum class Kind : std::uint8_t { launch, copy, zero, write, wait, record, wait_event };
  Kind kind = Kind::launch;
  int stream = 0;
  SourceLocation where;
  // launch: all that the kernel's tensor parameters are, also what no caller passes
  int kernel = 0;
  std::vector<ProgramPart> tensors;
  std::vector<RunNumber> scalars;
  std::int64_t epoch = 0;  // of the first run, from 1, and how many there are in a run
  std::int64_t epochs_per_run = 0;
  // copy; what is set to zero, and the word, is `to`
  ProgramPart to, from;
  RunNumber value = 0;
  Compare compare = Compare::ge;  // of a wait
  int event = 0;                  // by number; each is recorded once
  // The words of the exchange that a copy, write or wait is part of; -1: of none.
  int exchange = -1;
  int scope = -1;  // the innermost that it stands in
};

// Operations that a run does several times, or not in each run: those of one are neighbours. A
// bound program has none.
struct ProgramScope {
  enum class Kind : std::uint8_t { repeat, when };
  Kind kind = Kind::repeat;
  int parent = -1;  // the scope around it
  SourceLocation where;
  std::string turn = {};  // the number of the turn, by this name
  Dim count = 0;
  Dim left = 0, right = 0;
  Compare compare = Compare::ge;
};

// An element of a buffer that a run finds where its scope begins: a number by a name, as dims are.
struct ProgramRead {
  std::string name;
  int buffer = 0;
  std::vector<Dim> element;
  int scope = -1;
  SourceLocation where;
};

// The operation's name in a program's text: "launch", "wait_event".
std::string_view name_of(ProgramOperation::Kind kind);

// What each run is given.
struct ProgramScalar {
  std::string name;
  DType dtype = DType::f32;
  SourceLocation where;
};

struct Program {
  std::string name;
  int ranks = 1;
  SourceLocation where;
  std::vector<Dim> dims;  // the symbols, in order of declaration
  std::vector<ProgramScalar> scalars;
  std::vector<ProgramBuffer> buffers;
  std::vector<ProgramStream> streams;
  std::vector<std::shared_ptr<const Kernel>> kernels;
  std::vector<std::string> kernel_texts;
  std::vector<ProgramOperation> operations;
  std::vector<ProgramScope> scopes;
  std::vector<ProgramRead> reads;
  int recording = -1;  // the scope that is being recorded
  int events = 0;
  DimValues bound;  // what the dims were, once a run has bound them
};

// Memory that no caller passes, for a parameter of the launched kernel: found again by its name,
// else made.
ProgramPart owned_part(Program& program, const ProgramOperation& launch,
                       const Parameter& parameter);
// Gives launches what the kernels' machine forms ask for beyond what the kernels do.
void add_owned(Program& program, const std::vector<Kernel>& machine);

// What callers see of the program, as a kernel without a body: its dims, and as parameters what
// they pass: of several ranks all of the first, then all of the second, and so on.
Kernel signature_of(const Program& program);

// What a buffer holds when a run begins, from its first element on; no bytes where nobody knows.
struct BufferContents {
  const std::byte* data = nullptr;
  std::int64_t bytes = 0;
};
using ReadBuffer = std::function<BufferContents(int buffer)>;
// The contents of the buffers, from the host's memory that a caller passes, or from a rank's
// tensors.
ReadBuffer contents_of(const Program& program, const std::vector<TensorArgument>& passed);
ReadBuffer contents_of(const std::vector<HostTensor>& tensors);

// The program at one run, on tensors of these shapes: one for each parameter of its signature, in
// order, and for each scalar. `given` holds the values of the dims that no axis names alone, and
// `contents` what the program reads elements of. Raises a usage error where a caller's tensors do
// not fit, and at an operation's line where it does not fit them.
Program bind_program(const Program& program, const std::vector<TensorShape>& shapes,
                     std::int64_t multiprocessors, const std::vector<double>& scalars = {},
                     const DimValues& given = {}, const ReadBuffer& contents = {});

// The same for the sizes alone. Raises a usage error where a dim has no value.
Program bind_program(const Program& program, const DimValues& sizes, std::int64_t multiprocessors,
                     const ReadBuffer& contents = {});

// Makes all floating buffers of a bound program hold doubles.
void hold_doubles(Program& bound);

// The address of a buffer in a rank; null if this process cannot reach it.
using BufferAddress = std::function<std::byte*(int buffer, int rank)>;

// The part as a tensor; the peers' too where there are several ranks.
TensorArgument argument_of(const Program& program, const ProgramPart& part,
                           const BufferAddress& address);
Arguments arguments_of(const Program& program, const ProgramOperation& launch, std::int64_t run,
                       const BufferAddress& address);

// Whether the box lies outside of the shape whatever the dims are.
bool is_outside(const std::vector<Dim>& starts, const std::vector<Dim>& sizes,
                const std::vector<Dim>& of);
// Whether there may be such a shape: no size below 0, fewer than 2^63 bytes.
bool has_room(DType dtype, const std::vector<Dim>& shape);
// "{64, (rows + 1)}", "keys = 7, queries = 3".
std::string braced(const std::vector<Dim>& dims);
std::string values_text(const DimValues& values);

// Raises a usage error where the kernel does not take what the launch gives it; of a program that
// is not bound, whatever its dims are.
void check_launch(const Program& program, const ProgramOperation& launch);
// The same of every operation: parts lie inside of their buffers, copies fit, words are words, and
// nothing is written to what a caller passes to be read.
void check_operation(const Program& program, const ProgramOperation& operation);

// Whether the operation writes to the buffer, as far as the program says.
bool writes(const Program& program, const ProgramOperation& operation, int buffer);

// What the buffers that outlive runs hold at first, of each rank each buffer's: normal random
// numbers, and zero integers; NaN where nobody reads it. Of the others there are empty tensors.
std::vector<std::vector<HostTensor>> initial_tensors(const Program& program, const DimValues& sizes,
                                                     std::uint64_t seed);

// The value that a write gives a word in this run, or that a wait waits for, modulo 2^32.
std::int32_t word_value(const RunNumber& value, std::int64_t run);

// Raises a usage error for fewer than one run or schedule.
void check_count(const Program& program, const char* what, std::int64_t count);

// Raises a usage error where these are not what the bound program's buffers hold, of each rank each
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
