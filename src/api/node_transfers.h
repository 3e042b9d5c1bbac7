#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ir/program_exchanges.h"
#include "runtime/nccl.h"
#include "tilewright/distributed.h"

namespace tilewright {

// Raises a usage error, at the line and with both ranks, where a program reaches the memory of
// another node other than by exchanges, or a rank exchanges with other nodes in several streams.
// `nodes`: of each rank.
void check_nodes(const ir::Program& recorded, const std::vector<int>& nodes);

// Which ranks send to each other across nodes, directly or by way of others: each of these sets is
// a communicator. Of each rank the lowest one of its set.
std::vector<int> communicators(const ir::Program& recorded, const std::vector<int>& nodes);

// What a rank of a group sends to other nodes in the exchanges of a program, and gets from there.
class NodeTransfers {
 public:
  // By all ranks of the group, of a program that was checked.
  NodeTransfers(const ir::Program& recorded, const Group& group, const runtime::Device& own);

  // Of one exchange of the rank.
  struct Transfer {
    std::string about;
    SourceLocation where;
    std::vector<runtime::NcclTransfer> parts;
  };
  // Whether a transfer takes the place of the operation.
  bool replaces(const ir::Program& program, const ir::ProgramOperation& operation) const;
  // What takes place behind the operation, an exchange's last one of the rank, so that in all ranks
  // of a node what they do among themselves comes first. Without parts: nothing does.
  Transfer behind(const ir::Program& bound, const ir::ProgramOperation& operation,
                  const ir::BufferAddress& address) const;
  void queue(const Transfer& transfer, const runtime::Stream& stream, std::int64_t run) const;

  // Raises what has failed since it was queued.
  void require_sound() const;
  void abort() noexcept;

 private:
  const Group group_;
  const std::string name_;  // of the program
  // null: the rank exchanges with none on another node
  std::unique_ptr<runtime::NcclCommunicator> communicator_;
};

}  // namespace tilewright
