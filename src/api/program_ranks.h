#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "ir/program.h"
#include "runtime/device.h"
#include "tilewright/distributed.h"

namespace tilewright {

class NodeTransfers;
class ProgramWatch;

// Which ranks of a program this process runs, on which GPUs, and where the buffers of all ranks
// lie.
class ProgramRanks {
 public:
  using Streams = std::vector<const runtime::Stream*>;

  virtual ~ProgramRanks() = default;

  // Of which other processes run the other ranks; null where this one runs all.
  virtual const Group* group() const { return nullptr; }

  int count() const { return static_cast<int>(devices_.size()); }
  bool runs(int rank) const { return devices_[static_cast<std::size_t>(rank)] != nullptr; }
  // Of a rank that this process runs.
  const runtime::Device& device(int rank) const {
    return *devices_[static_cast<std::size_t>(rank)];
  }
  // In order.
  std::vector<int> own() const;

  // Raises what has ended runs for good: nothing is to be queued behind it.
  virtual void require_usable() const = 0;
  // Memory for all buffers of the bound program, which hold anything. What there was before is
  // gone.
  virtual void allocate(const ir::Program& bound) = 0;
  // null: in a rank of another node
  virtual std::byte* at(int buffer, int rank) const = 0;
  // null: there is one node alone
  virtual const NodeTransfers* nodes() const { return nullptr; }
  // Returns when the ranks of other processes are there too.
  virtual void meet(std::string_view where) = 0;
  // Of what failed while a run was queued: what waits for the rest of it is brought to an end.
  virtual void give_up(const Error&, const Streams&) {}
  // Returns when all that is queued on these streams of the ranks has ended, of all processes.
  virtual void rest(const Streams& streams) = 0;
  // Behind each run that was queued on the streams of this process; may wait for runs before.
  virtual void note_queued(std::int64_t run, const Streams& streams) = 0;
  // Returns when all ranks have ended the run, and those before. Where a watch is given, what
  // stands still is an error that says who waits for what.
  virtual void finish(std::int64_t run, const Streams& streams, const ProgramWatch* watch) = 0;

 protected:
  explicit ProgramRanks(std::vector<const runtime::Device*> devices)
      : devices_(std::move(devices)) {}

 private:
  const std::vector<const runtime::Device*> devices_;  // null: another process's
};

// All ranks, on GPUs 0, 1, ...; the only one of a program of one rank on the GPU of that number.
// Raises Error(unavailable) where there are fewer, or they do not reach each other's memory.
std::unique_ptr<ProgramRanks> ranks_of_this_process(const ir::Program& recorded, int device);

// The group's rank, on the GPU of that number. Raises a usage error where the group has not as many
// ranks as the program, ranks share a GPU, or others run another program.
std::unique_ptr<ProgramRanks> rank_of_group(const ir::Program& recorded, const Group& group,
                                            int device);

}  // namespace tilewright
