#include "api/node_transfers.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <numeric>
#include <utility>

#include "distributed/packing.h"
#include "distributed/shared_failure.h"
#include "support/diagnostic.h"

namespace tilewright {

using ir::ExchangeSide;
using ir::ProgramOperation;
using Kind = ProgramOperation::Kind;

namespace {

// A program over nodes, and what in it none of them can do.
class NodesCheck {
 public:
  NodesCheck(const ir::Program& program, const std::vector<int>& nodes)
      : program_(program), nodes_(nodes) {}

  void run() const {
    for (const ProgramOperation& operation : program_.operations) {
      if (operation.exchange < 0) check(operation);
    }
    check_streams();
  }

 private:
  int node(int rank) const { return nodes_[static_cast<std::size_t>(rank)]; }
  int rank_of(const ProgramOperation& operation) const {
    return program_.streams[operation.stream].rank;
  }

  void check(const ProgramOperation& operation) const {
    switch (operation.kind) {
      case Kind::copy:
        check(operation, operation.to);
        return check(operation, operation.from);
      case Kind::write:
      case Kind::wait:
        return check(operation, operation.to);
      case Kind::launch:
        return check_kernel(operation);
      case Kind::zero:
      case Kind::record:
      case Kind::wait_event:
        return;
    }
  }

  void check(const ProgramOperation& operation, const ir::ProgramPart& part) const {
    const int own = rank_of(operation);
    if (node(own) == node(part.rank)) return;
    const std::string verb(ir::name_of(operation.kind));
    Diagnostic(operation.where,
               fmt::format("{}: rank {} is on node {}, and {} is on node {}", verb, own, node(own),
                           name_of(program_, part.buffer, part.rank), node(part.rank)))
        .token(verb)
        .note(program_.buffers[part.buffer].where, program_.buffers[part.buffer].name + " is made")
        .fix("Stream::exchange, by which ranks of different nodes send to each other")
        .raise();
  }

  // A kernel computes which ranks it reaches: those of other nodes may be among them.
  void check_kernel(const ProgramOperation& launch) const {
    const ir::Kernel& kernel = *program_.kernels[launch.kernel];
    const int own = rank_of(launch);
    const auto other =
        std::find_if(nodes_.begin(), nodes_.end(), [&](int each) { return each != node(own); });
    ir::for_each(kernel.body, [&](const ir::Operation& operation) {
      if (operation.op != ir::Op::peer || other == nodes_.end()) return;
      const ir::Parameter* const tensor = kernel.parameter_of(operation.operands[0]);
      Diagnostic(operation.where,
                 fmt::format("kernel {} reaches {} of other ranks: rank {}, where it is launched, "
                             "is on node {}, and rank {} on node {}",
                             kernel.name, tensor != nullptr ? tensor->name : "the tensor", own,
                             node(own), other - nodes_.begin(), *other))
          .note(launch.where, "it is launched")
          .fix(
              "Stream::exchange between kernels, by which ranks of different nodes send to each "
              "other")
          .raise();
    });
  }

  // One communicator does what it is given in order: of two streams one would wait for the other.
  void check_streams() const {
    std::map<int, ExchangeSide> first;
    for (const ExchangeSide& side : exchange_sides(program_)) {
      const auto crosses = [&](int rank) { return node(rank) != node(side.rank); };
      if (!std::any_of(side.receivers.begin(), side.receivers.end(), crosses) &&
          !std::any_of(side.senders.begin(), side.senders.end(), crosses)) {
        continue;
      }
      const ExchangeSide& before = first.try_emplace(side.rank, side).first->second;
      if (before.stream == side.stream) continue;
      Diagnostic(side.where,
                 fmt::format("exchange {}: rank {} sends to other nodes in {}, and before in {}",
                             program_.buffers[side.words].name, side.rank,
                             name_of(program_, program_.streams[side.stream]),
                             name_of(program_, program_.streams[before.stream])))
          .token("exchange")
          .note(before.where, "it does so before")
          .fix("one stream of a rank for all exchanges between nodes")
          .raise();
    }
  }

  const ir::Program& program_;
  const std::vector<int>& nodes_;
};

// Of the set that contains the rank.
int lowest(std::vector<int>& sets, int rank) {
  while (sets[static_cast<std::size_t>(rank)] != rank) rank = sets[static_cast<std::size_t>(rank)];
  return rank;
}

std::vector<int> members_of(const std::vector<int>& sets, int lowest) {
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < sets.size(); ++rank) {
    if (sets[rank] == lowest) ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

// The id of each communicator, which its lowest rank draws; in all ranks what fails in one.
std::vector<std::string> exchange_ids(const Group& group, const std::vector<int>& sets,
                                      const std::string& what) {
  const int own = group.rank(), set = sets[static_cast<std::size_t>(own)];
  std::string id;
  distributed::SharedFailure loading;
  loading.attempt([&] {
    if (members_of(sets, set).size() == 1) return;
    runtime::nccl();
    if (set == own) id = runtime::new_nccl_id();
  });
  std::vector<std::string> ids, failures;
  for (const std::string& text : group.all_gather(distributed::pack({id, loading.text()}), what)) {
    auto fields = distributed::unpack(text).value_or(std::vector<std::string>());
    fields.resize(2);
    ids.push_back(fields[0]);
    failures.push_back(fields[1]);
  }
  loading.raise_any(failures);
  return ids;
}

// Raises what ends a wait of this host for other ranks.
runtime::NcclCommunicator::KeepWaiting patience_of(const Group& group, std::string what) {
  using Clock = std::chrono::steady_clock;
  return [&group, what = std::move(what), deadline = Clock::now() + group.patience()] {
    group.require_all(what);
    if (Clock::now() < deadline) return;
    Diagnostic(
        {},
        fmt::format("{} has not come in rank {} within the group's patience of {} ms, and no "
                    "rank has died",
                    what, group.rank(), group.patience().count()),
        ErrorKind::unavailable)
        .fix("look what the other ranks do, or raise the group's patience")
        .raise();
  };
}

}  // namespace

void check_nodes(const ir::Program& recorded, const std::vector<int>& nodes) {
  NodesCheck(recorded, nodes).run();
}

std::vector<int> communicators(const ir::Program& recorded, const std::vector<int>& nodes) {
  std::vector<int> sets(nodes.size());
  std::iota(sets.begin(), sets.end(), 0);
  for (const ExchangeSide& side : exchange_sides(recorded)) {
    for (const int receiver : side.receivers) {
      if (nodes[static_cast<std::size_t>(receiver)] == nodes[static_cast<std::size_t>(side.rank)]) {
        continue;
      }
      const auto [low, high] = std::minmax({lowest(sets, side.rank), lowest(sets, receiver)});
      sets[static_cast<std::size_t>(high)] = low;
    }
  }
  for (int& set : sets) set = lowest(sets, set);
  return sets;
}

NodeTransfers::NodeTransfers(const ir::Program& recorded, const Group& group,
                             const runtime::Device& own)
    : group_(group), name_(recorded.name) {
  const std::vector<int> sets = communicators(recorded, group.nodes());
  const std::string what = "the communicators of program " + name_;
  const std::vector<std::string> ids = exchange_ids(group, sets, what);
  const int set = sets[static_cast<std::size_t>(group.rank())];
  std::vector<int> ranks = members_of(sets, set);
  if (ranks.size() == 1) return;
  communicator_ = std::make_unique<runtime::NcclCommunicator>(
      own, ids[static_cast<std::size_t>(set)], group.rank(), std::move(ranks),
      patience_of(group_, what));
}

bool NodeTransfers::replaces(const ir::Program& program, const ProgramOperation& operation) const {
  if (operation.exchange < 0) return false;
  const std::vector<int>& nodes = group_.nodes();
  const int own = program.streams[operation.stream].rank;
  return nodes[static_cast<std::size_t>(own)] !=
         nodes[static_cast<std::size_t>(other_rank(program, operation))];
}

NodeTransfers::Transfer NodeTransfers::behind(const ir::Program& bound,
                                              const ProgramOperation& operation,
                                              const ir::BufferAddress& address) const {
  Transfer transfer;
  if (operation.exchange < 0) return transfer;
  const int own = bound.streams[operation.stream].rank;
  const std::vector<ExchangeSide> sides = exchange_sides(bound);
  const ExchangeSide& side = *find_side(sides, operation.exchange, own);
  if (side.last != &operation) return transfer;
  transfer.about = fmt::format("exchange {} of rank {}", bound.buffers[side.words].name, own);
  transfer.where = side.where;
  // Both ranks find the same rows of a copy, by the shapes alone.
  const auto here = [&](int buffer, int) { return address(buffer, own); };
  const auto add = [&](const ProgramOperation& copy, runtime::NcclTransfer::Kind kind, int other) {
    if (!replaces(bound, copy)) return;
    const bool sends = kind == runtime::NcclTransfer::Kind::send;
    ir::for_each_rows(argument_of(bound, copy.to, here), argument_of(bound, copy.from, here),
                      [&](const ir::CopiedRows& rows) {
                        for (std::int64_t row = 0; row < rows.rows; ++row) {
                          transfer.parts.push_back({kind, other,
                                                    sends ? rows.from + row * rows.from_pitch
                                                          : rows.to + row * rows.to_pitch,
                                                    static_cast<std::size_t>(rows.bytes)});
                        }
                      });
  };
  for (const ProgramOperation* copy : side.copies) {
    add(*copy, runtime::NcclTransfer::Kind::send, copy->to.rank);
  }
  for (const int sender : side.senders) {
    for (const ProgramOperation* copy : find_side(sides, side.words, sender)->copies) {
      if (copy->to.rank == own) add(*copy, runtime::NcclTransfer::Kind::receive, sender);
    }
  }
  return transfer;
}

void NodeTransfers::queue(const Transfer& transfer, const runtime::Stream& stream,
                          std::int64_t run) const {
  const std::string about = fmt::format("{}, run {} of program {}, at {}", transfer.about, run,
                                        name_, format_location(transfer.where));
  communicator_->queue(transfer.parts, stream, patience_of(group_, about), about);
}

void NodeTransfers::require_sound() const {
  if (communicator_) communicator_->require_sound("program " + name_);
}

void NodeTransfers::abort() noexcept {
  if (communicator_) communicator_->abort();
}

}  // namespace tilewright
