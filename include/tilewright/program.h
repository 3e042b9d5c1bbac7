#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/compile.h"
#include "tilewright/dim.h"
#include "tilewright/dtype.h"
#include "tilewright/error.h"
#include "tilewright/function_ref.h"
#include "tilewright/host_tensor.h"
#include "tilewright/kernel.h"
#include "tilewright/memory_order.h"

// The host's side of kernels, on the GPU of one or of several ranks: what is launched and copied on
// which stream, and what waits for what. It is recorded once, by ordinary C++, and then simulated
// or run, as often as one likes. Its shapes may depend on dims, which each run binds: one recording
// serves all lengths.
//
// Every function that records raises Error(usage) at its caller's line: for names that are taken,
// for what is of another program, for parts outside of their buffer, for tensors or scalars that
// the kernel does not take, and, in a program of one rank without words, for reading scratch or
// outputs that nothing has written. Sizes, starts and counts are in elements. What depends on dims
// is checked by the run that binds them, and raises Error(usage) at the same line.
namespace tilewright {

namespace ir {
struct Program;
}
class Group;
class Program;

// The values of a program's dims, by name.
using DimValues = std::map<std::string, std::int64_t>;

// A number that may depend on how often the program has run, and on what a run is given:
// base + per_run * (1, 2, 3, ...) + the terms. That of a word is an integer, and counts modulo
// 2^32.
struct RunNumber {
  // A factor times a scalar of the program, by its name, or times a dim where the name is empty.
  struct Term {
    double factor = 1;
    std::string scalar;
    Dim dim = 0;
  };
  RunNumber(double base, double per_run = 0) : base(base), per_run(per_run) {}
  RunNumber(const Dim& dim);
  // Once a run is bound: before, without the terms.
  double at(std::int64_t run) const { return base + per_run * static_cast<double>(run); }
  // Friends, so that arithmetic on dims stays that of dims.
  friend RunNumber operator+(RunNumber a, const RunNumber& b);
  friend RunNumber operator-(RunNumber a, const RunNumber& b);
  friend RunNumber operator*(RunNumber a, double factor);
  friend RunNumber operator*(double factor, RunNumber a);
  double base = 0, per_run = 0;
  std::vector<Term> terms;
};

// Which element of a vector; notes the line.
struct ElementNumber {
  ElementNumber(std::int64_t number, SourceLocation where = here())
      : number(number), where(where) {}
  ElementNumber(const Dim& number, SourceLocation where = here()) : number(number), where(where) {}
  Dim number;
  SourceLocation where;
};

// A box of a buffer's elements, in one rank. What no sizes of the dims bring inside of the part
// that it is cut from raises Error(usage) at once. The rest is held against the buffer by the run
// that binds the dims.
class Part {
 public:
  // Rows first .. first + count - 1 of the part's first axis.
  Part rows(const Dim& first, const Dim& count, SourceLocation where = here()) const;
  // The box of these starts and sizes, one of each for an axis.
  Part box(const std::vector<Dim>& starts, const std::vector<Dim>& sizes,
           SourceLocation where = here()) const;
  // One element of a vector, such as a word of signals.
  Part operator[](const ElementNumber& element) const;

 private:
  friend class Buffer;
  friend class Program;
  friend class Stream;
  Part narrowed(const std::vector<Dim>& starts, const std::vector<Dim>& sizes,
                std::string_view verb, SourceLocation where) const;
  std::shared_ptr<ir::Program> program_;  // null: no buffer
  int buffer_ = 0;
  int rank_ = -1;  // -1: that of the stream where it is used
  std::vector<Dim> starts_, sizes_;
};

// Memory that every rank has, of the same shape. Where a rank is not said it is the one whose
// stream uses it.
class Buffer {
 public:
  Buffer() = default;  // none: an error wherever it is used
  operator Part() const;
  Part on(int rank, SourceLocation where = here()) const;
  Part rows(const Dim& first, const Dim& count, SourceLocation where = here()) const;
  Part operator[](const ElementNumber& element) const;

 private:
  friend class Program;
  friend class ProgramMemory;
  Buffer(std::shared_ptr<ir::Program> program, int number)
      : program_(std::move(program)), number_(number) {}
  std::shared_ptr<ir::Program> program_;
  int number_ = 0;
};

// A point in a stream's work.
class Event {
 public:
  Event() = default;  // not recorded: an error where it is waited for

 private:
  friend class Stream;
  std::shared_ptr<ir::Program> program_;
  int number_ = 0;
};

// What an exchange sends: a part of this rank's memory, to one of another rank's, of the same shape
// and dtype.
struct Sent {
  Part to, from;
};

// An ordered queue of one rank's work. What is queued on two streams is not ordered, unless by
// events, or by words that the one writes and the other waits for.
class Stream {
 public:
  // The kernel's tensors in the order of its parameters, then, if they are given, its signals: else
  // the program has signals of its own for the kernel. Symmetric tensors and signals are those of
  // all ranks. The kernel's dims are bound through its tensors; what cannot be known before a run
  // binds the program's is checked then.
  void launch(const Kernel& kernel, const std::vector<Part>& tensors,
              const std::vector<RunNumber>& scalars = {}, SourceLocation where = here()) const;
  // By the copy engine: parts of the same shape and dtype, of any rank, that do not overlap.
  void copy(const Part& to, const Part& from, SourceLocation where = here()) const;
  // Sets all bytes of the part, of the same rank, to zero.
  void zero(const Part& part, SourceLocation where = here()) const;
  // One of the words that Program::signals makes. What came before in this stream is there for who
  // waits for the value.
  void write(const Part& word, const RunNumber& value, SourceLocation where = here()) const;
  // Until the word is at least the value, by the sign of the difference modulo 2^32.
  void wait(const Part& word, const RunNumber& value, SourceLocation where = here()) const;
  // Until the word compares so; lt, le, gt and ge by that sign. On a GPU ge, gt and eq are the
  // driver's own waits, and the others a kernel of one warp, which needs a place on the GPU.
  void wait(const Part& word, Compare compare, const RunNumber& value,
            SourceLocation where = here()) const;
  // Until a stream of every rank has come to the barrier of that name in this run: each rank comes
  // once in a run. What came before in these streams is there behind it, for all of them.
  void barrier(const std::string& name, SourceLocation where = here()) const;
  // Sends to other ranks, and gets what the ranks of `from` send to this one. It comes when this
  // stream and theirs have come to the exchange of that name in this run: each rank comes once in a
  // run, and says of the same ranks that they send to it as send. Between nodes, whose ranks do not
  // reach each other's memory, this is how data passes, by NCCL; a rank does so in one stream.
  void exchange(const std::string& name, const std::vector<Sent>& sent,
                const std::vector<int>& from, SourceLocation where = here()) const;
  // The event of all that is in this stream so far.
  Event record(SourceLocation where = here()) const;
  // What follows in this stream begins behind the event, which is of the same rank.
  void wait(const Event& event, SourceLocation where = here()) const;

 private:
  friend class Rank;
  Stream(std::shared_ptr<ir::Program> program, int number)
      : program_(std::move(program)), number_(number) {}
  std::shared_ptr<ir::Program> program_;
  int number_;
};

// One GPU of those that run the program.
class Rank {
 public:
  int number() const { return number_; }
  int count() const;
  // The rank that is `distance` further on, around the end; a negative distance goes back.
  int next(int distance = 1) const {
    const int moved = (number_ + distance % count()) % count();
    return moved < 0 ? moved + count() : moved;
  }
  // The same for the same name.
  Stream stream(const std::string& name = "main", SourceLocation where = here()) const;

 private:
  friend class Program;
  Rank(std::shared_ptr<ir::Program> program, int number)
      : program_(std::move(program)), number_(number) {}
  std::shared_ptr<ir::Program> program_;
  int number_;
};

// In each rank a run begins when all streams have ended the run before; ranks do not wait for each
// other.
class Program {
 public:
  // 1 to 8 ranks. Names, here and below, are identifiers.
  explicit Program(std::string name, int ranks = 1, SourceLocation where = here());

  // A size that each run binds, as Kernel::dim: to the axis of a tensor that is as long, or to the
  // value that is given for it. Shapes, parts, counts and scalars may be expressions of dims, and
  // of multiprocessors().
  Dim dim(std::string name, DimFacts facts = {}, SourceLocation where = here());
  // A number that each run is given, for scalars of kernels.
  RunNumber scalar(std::string name, DType dtype, SourceLocation where = here());

  // Row-major; a kernel's tensors have 1 to 5 axes. What the caller passes: read and written.
  Buffer buffer(std::string name, DType dtype, std::vector<Dim> shape,
                SourceLocation where = here());
  Buffer inout(std::string name, DType dtype, std::vector<Dim> shape,
               SourceLocation where = here()) {
    return buffer(std::move(name), dtype, std::move(shape), where);
  }
  // What the caller passes: only read, or written without being read before.
  Buffer in(std::string name, DType dtype, std::vector<Dim> shape, SourceLocation where = here());
  Buffer out(std::string name, DType dtype, std::vector<Dim> shape, SourceLocation where = here());
  // Memory of the program's own, in which a run finds anything: in the simulator's first run NaN.
  Buffer scratch(std::string name, DType dtype, std::vector<Dim> shape,
                 SourceLocation where = here());
  // The same, of zeros in every run: the stream that uses it first, in the order of recording, sets
  // it to zero before.
  Buffer zeroed(std::string name, DType dtype, std::vector<Dim> shape,
                SourceLocation where = here());
  // i32 words: zeros before the first run, and then what the runs before have left.
  Buffer signals(std::string name, const Dim& count, SourceLocation where = here());
  // An element of a buffer of integers that Program::in has made, as each run finds it. It stands
  // for a start, a size, a count or a number, as a dim does, and may be negative. An element
  // outside of the buffer, and what does not fit by it, raises Error(usage) at its line when a run
  // finds it. For programs of one rank, as the two below. On a GPU a run first waits for the
  // stream, to read.
  Dim read(std::string name, const Buffer& buffer, const std::vector<Dim>& element,
           SourceLocation where = here());
  // What the body records is done `count` times in each run, in order; it is given the number of
  // the turn, from 0. Words are neither written nor waited for in there.
  void repeat(std::string name, const Dim& count, FunctionRef<void(const Dim& turn)> body,
              SourceLocation where = here());
  // What the body records is done in the runs in which the numbers compare so, and what `otherwise`
  // records in the others. What the bodies read is read in these runs alone.
  void when(const Dim& left, Compare compare, const Dim& right, FunctionRef<void()> body,
            FunctionRef<void()> otherwise = {}, SourceLocation where = here());
  // The number of the run, from 1: a word that counts up to it needs no reset.
  RunNumber run() const { return {0, 1}; }

  Rank rank(int number, SourceLocation where = here()) const;
  void on_each_rank(FunctionRef<void(const Rank&)> record) const;

  const std::string& name() const;
  int ranks() const;
  const ir::Program& finish() const;

 private:
  friend class ProgramMemory;
  std::shared_ptr<ir::Program> program_;
};

// What the buffers that outlive a run hold, on the host: at first normal random numbers, and zero
// integers; NaN in what Program::out makes.
class ProgramMemory {
 public:
  explicit ProgramMemory(const Program& program, std::uint64_t seed = 1);
  // `sizes`: a value for each of the program's dims. Usage errors name a dim that has none, and
  // sizes for which there is no such program.
  ProgramMemory(const Program& program, DimValues sizes, std::uint64_t seed = 1);
  // That of the buffer in the rank. Another tensor may be put there, of the same dtype and shape.
  HostTensor& at(const Buffer& buffer, int rank = 0, SourceLocation where = here());
  const DimValues& sizes() const { return sizes_; }

  // Of each rank, those of the buffers that the program had when this was made, in their order;
  // empty ones for scratch.
  std::vector<std::vector<HostTensor>> tensors;

 private:
  DimValues sizes_;
  std::shared_ptr<ir::Program> program_;
};

struct SimulationOptions {
  std::uint64_t seed = 0;
  int schedules = 1;  // at least 1: of seeds seed, seed + 1, ...
  int runs = 2;       // at least 1: in a row, in each schedule
  // Of each rank's device: also how many CTAs it executes at a time.
  int multiprocessors = 8;
  bool strict = false;        // also proxy fences between reads and asynchronous writes
  bool control_only = false;  // without arithmetic on tiles: memory is then left alone
};

struct SimulationFault {
  std::string kind;              // "race", "deadlock", ...: docs/debugging.md#kinds-of-faults
  SourceLocation first, second;  // the accesses, or the waits; the second may be none
  std::string text;              // for a person: places, lines, what is missing
};

struct SimulationReport {
  std::vector<SimulationFault> faults;  // of the first schedule with one
  std::uint64_t seed = 0;               // of that schedule
  int schedules = 0;                    // executed
  std::int64_t operations = 0;          // executed by warps
  // Of modelled time, on cores with explicit memories: all runs of the first schedule.
  std::int64_t cycles = 0;
  bool ok() const { return faults.empty(); }
};

// Executes the program on simulated GPUs, one for each rank; what the memory holds is the same
// before each schedule, and afterwards what the last one made of it. Where ranks tell each other by
// signals, callers use all tensors between the runs, and what the program does to them then is a
// race. A program with dims needs a memory, whose sizes they are. Faults are in the report and are not raised. Raises Error(usage)
// for fewer than one schedule or run, for a dim without a value, and for scalars, which only a
// caller's run is given.
SimulationReport simulate(const Program& program, ProgramMemory& memory,
                          const SimulationOptions& options = {});
SimulationReport simulate(const Program& program, const SimulationOptions& options = {});

// A program built for a target. One of a single rank, a single stream and without signals runs on
// the tensors of a caller. So does one of several ranks on the host, or on the GPUs of this
// process, where rank n is GPU n: it takes all tensors of rank 0, then all of rank 1, and so on.
// Any program runs on memory of its own on these GPUs.
class ProgramExecutable {
 public:
  ~ProgramExecutable();
  ProgramExecutable(ProgramExecutable&&) noexcept;
  ProgramExecutable& operator=(ProgramExecutable&&) noexcept;

  // As Executable::run: `tensors` for the buffers that are in, out or inout, and `scalars`, in the
  // order in which the program has made them. The tensors' sizes bind the dims. On cuda the program
  // is queued on `stream`, a CUstream (null: the default stream), and nothing waits for it; scratch
  // is allocated at the first run of a stream and size, and kept, so that later runs can be
  // captured in a CUDA graph. A graph works in the scratch of the stream that was captured: it must
  // not run at the same time as that stream's runs, or as itself. It may be called by several
  // threads at once. Raises a usage error for a program that depends on more than that, for tensors
  // that do not fit, and for a capture of a first run; Error(unavailable) for a target that only
  // builds; Error(result) for a fault on a simulated GPU.
  void run(const std::vector<TensorRef>& tensors, const std::vector<double>& scalars = {},
           void* stream = nullptr) const;
  // All of such a run but the work: then it can be captured.
  void prepare(const std::vector<TensorRef>& tensors, const std::vector<double>& scalars = {},
               void* stream = nullptr) const;

  // On cuda, queues a run on the tensors of all ranks, each on its rank's GPU, and on a stream of
  // each, a CUstream (none: the default streams). Nothing waits for it. Words and scratch are the
  // program's, kept from run to run; for other sizes than before they start anew, behind all runs.
  // Every rank's tensors lie alike. Raises a usage error for what does not fit, and for other
  // targets; Error(unavailable) where memory runs out.
  void run_on_gpus(const std::vector<TensorRef>& tensors, const std::vector<void*>& streams = {},
                   const std::vector<double>& scalars = {});

  // The same over the processes of a group, by all of them in the same order: on the tensors of
  // this process's rank, which is alone on its GPU, and on a stream of its own. A tensor that other
  // ranks reach must lie in a SymmetricArena of the group, at the same place in every rank; else it
  // is a usage error in all ranks, at the operation's line. Words and scratch are in memory that
  // all ranks share. For other sizes than before, which are then other ones in all ranks, all runs
  // are waited for. Where a rank has died it is raised by the next call that notices, and waits for
  // words are ended, so that streams come to their end.
  void run_in_group(const std::vector<TensorRef>& tensors, void* stream = nullptr,
                    const std::vector<double>& scalars = {});
  // From the next such run on, its number is kept on each GPU, and counted up by the run itself. So
  // a run that is captured in a CUDA graph is another one each time that the graph is launched, in
  // the order of all runs; before the capture there is one with the same sizes. Copy engines then
  // write the words of other GPUs, and kernels of one warp those of their own, and wait for words:
  // a run that is no graph costs more. A kernel that waits for words begins behind such kernels of
  // the rank's other streams that stand before it. Raises a usage error where a scalar of a kernel
  // depends on the number of the run, and where such a kernel would have to run beside one that
  // waits for what comes behind it. A capture is a usage error without this, under
  // TILEWRIGHT_WATCH, and in a group of several nodes.
  void count_on_gpus();
  // Returns when all such runs have ended, in all ranks of a group: by all of them. Other than a
  // wait for the stream, it raises Error(unavailable) for a rank that has died. The latest run's
  // stream is still there; graphs were launched on it, if there are any.
  void synchronize();

  // These three raise Error(usage) on other targets than cuda; run where dims have no values yet,
  // and store for memory of other sizes than the one that was loaded. Copies the buffers to the
  // GPUs, which hold zeros before; signals are zeros again, and runs are counted from 1.
  void load(const ProgramMemory& memory);
  // So many in a row, at least 1; they have ended at return.
  void run(int runs = 1);
  // Copies the buffers back.
  void store(ProgramMemory& memory) const;

 private:
  friend ProgramExecutable compile(const Program&, std::string_view, const CompileOptions&);
  friend ProgramExecutable compile(const Program&, std::string_view, const Group&,
                                   const CompileOptions&);
  struct State;
  static std::unique_ptr<State> recorded_state(const Program& program, std::string_view target,
                                               const CompileOptions& options);
  explicit ProgramExecutable(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// `target` as for a kernel. On the host all ranks' streams are this process's. The GPU of a program
// of one rank is that of the options. Raises Error(unavailable) where there are fewer GPUs than
// ranks, or GPUs that do not reach each other's memory.
ProgramExecutable compile(const Program& program, std::string_view target = default_target(),
                          const CompileOptions& options = {});

// The same over the processes of a group (tilewright/distributed.h), each of which runs its rank's
// part on the GPU of its options, another one in each; the target is cuda. compile, load and run
// are then done by all ranks in the same order, with memory of the same sizes and as many runs. Of
// the memory load and store move what is of this process's rank. All ranks have ended the runs when
// run returns; between runs the host waits for nothing but room in the driver's queues. A run is
// waited for as long as the group is patient. Raises besides
//   Error(usage) where the group has not as many ranks as the program, two ranks use one GPU, or
//     ranks have recorded different programs;
//   Error(unavailable) with the ranks that have died meanwhile. Waits for words are then ended, so
//     that the GPU comes to rest, and the executable raises the same error ever after.
ProgramExecutable compile(const Program& program, std::string_view target, const Group& group,
                          const CompileOptions& options = {});

}  // namespace tilewright
