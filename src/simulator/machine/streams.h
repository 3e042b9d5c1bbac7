#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ir/program.h"
#include "simulator/core/core_machine.h"
#include "simulator/machine/cta.h"
#include "simulator/machine/machine.h"

// The streams of a program on the virtual GPUs of its ranks: what the host has queued, and the copy
// engines.
namespace tilewright::simulator {

class Launch;
class World;

// One operation of a stream in one run, as faults name it.
struct StreamOperation {
  const ir::ProgramOperation* source = nullptr;
  std::int64_t run = 0;
  std::uint32_t actor = 0;
  const std::byte* word = nullptr;  // that it writes or waits for
  ir::Operation place;              // the program's line, for
  Instruction instruction;          // accesses to memory
};

class Streams {
 public:
  // `kernels` are the machine forms of the program's. All of it must outlive the streams.
  Streams(World& world, const ir::Program& program, const std::vector<ir::Kernel>& kernels,
          ir::BufferAddress address, const MachineOptions& options, std::int64_t runs);

  void begin();
  // The stream's next operation, or the next step of it, takes place.
  void happen(int stream);
  void launch_over(const Launch& launch);
  // Of cores with explicit memories: what their units did, into the report.
  void count() const;
  // Words of global memory have changed, or CTAs have ended.
  void look_again();
  bool done() const;

  // A line of a fault.
  std::string access_line(const Access& access, const StreamOperation& operation) const;
  // Of each stream that waits: the operation's line, and what it waits for.
  struct Waiting {
    SourceLocation where;
    std::string text;
    std::string missing;
    // Nobody else can end the wait: nothing writes the word, or launches hold all multiprocessors,
    // which may wait for what comes behind it.
    bool is_cause = false;
  };
  std::vector<Waiting> waiting() const;

 private:
  enum class State : std::uint8_t { ready, launched, word, event, multiprocessor, run_over };
  struct Stream {
    std::vector<const ir::ProgramOperation*> operations;
    std::size_t next = 0;
    std::int64_t run = 1;
    State state = State::run_over;
    Epoch position = 0;  // operations that are over, of all runs
    std::shared_ptr<const Beyond> known;
    // By waits, of this run: what was not released to streams.
    std::vector<Handed> missed;
    std::int64_t time = 0;               // modelled, of launches on cores with explicit memories
    StreamOperation* current = nullptr;  // once it has begun
    std::vector<std::pair<std::byte*, std::vector<std::byte>>> read;  // by a copy
    const Launch* held_by = nullptr;  // for which a copy has no multiprocessor
  };
  // What a launch needs while shadow memory remembers it.
  struct Prepared {
    Arguments arguments;
    PreparedKernel kernel;
  };

  const ir::ProgramStream& named(const ir::ProgramOperation& operation) const {
    return program_.streams[operation.stream];
  }
  void enter(int stream);
  // Of what the stream is at: whether it is over.
  bool step(Stream& stream);
  void finish(int stream);
  void begin_runs(int rank);
  void learn(Stream& stream, const std::shared_ptr<const Beyond>& known) const;
  void forget_what_is_over(Stream& stream) const;
  WordWait wait_of(const Stream& stream) const;
  // Who leaves no multiprocessor to what the stream is at, if it needs one. A copy within a GPU
  // does: drivers make it by a kernel. Copies to other GPUs have engines of their own.
  const Launch* held_by(const Stream& stream) const;
  bool is_more_than_a_word(const ir::ProgramOperation& operation) const;
  // Whether a stream of the program writes the word, or a kernel may.
  bool has_writer(const ir::ProgramOperation& wait) const;
  // Whether the wait that is over knows of no more than in any other order. One stream alone writes
  // the word, numbers that grow. The wait has found the one it is for, which it would find in each
  // order, or a later one behind it. So what is unordered in another order is unordered here.
  bool knows_least(const Stream& stream) const;
  void find_writers();
  void tell_of_words(const Stream& stream) const;
  std::byte* word_of(const ir::ProgramOperation& operation) const;

  bool copy(Stream& stream);
  void zero(Stream& stream);
  void write(Stream& stream);
  bool wait(Stream& stream);
  void launch(Stream& stream);
  // On a core with explicit memories, at one instant: what its blocks do is in no order with others
  // but by the stream's.
  void launch_on_core(Stream& stream);
  void check_workspaces(const Stream& stream);
  // Faults when the stream's operation is not ordered behind earlier accesses.
  void access(const Stream& stream, const std::byte* first, std::int64_t bytes, bool write,
              bool atomic);
  Access make_access(const StreamOperation& operation, bool write, bool atomic) const;
  void report(const Stream& stream, const Access& earlier, const Access& access,
              const std::byte* first, std::int64_t bytes) const;

  World& world_;
  const ir::Program& program_;
  const std::vector<ir::Kernel>& kernels_;
  const ir::BufferAddress address_;
  const MachineOptions options_;
  const std::int64_t runs_;
  std::vector<Stream> streams_;
  std::map<const std::byte*, int> only_writers_;  // of words that one stream and no kernel writes
  std::deque<StreamOperation> operations_;
  std::vector<std::unique_ptr<Prepared>> prepared_;
  struct Recorded {
    std::int64_t run = 0;  // the last one in which it was; 0: none
    std::shared_ptr<const Beyond> known;
    std::int64_t time = 0;
  };
  std::vector<Recorded> events_;
  std::map<int, CoreDevice> cores_;  // by rank
};

// Runs the program so many times in a row. `kernels` are the machine forms of the program's.
MachineReport run_program(const ir::Program& program, const std::vector<ir::Kernel>& kernels,
                          const ir::BufferAddress& address, const MachineOptions& options,
                          std::int64_t runs);

}  // namespace tilewright::simulator
