#include "ir/program_exchanges.h"

#include <fmt/format.h>

#include <algorithm>

#include "support/diagnostic.h"

namespace tilewright::ir {
namespace {

using Kind = ProgramOperation::Kind;

void add(const Program& program, const ProgramOperation& operation, ExchangeSide& side) {
  side.last = &operation;
  if (operation.kind == Kind::copy) {
    side.copies.push_back(&operation);
    side.receivers.insert(operation.to.rank);
  }
  // Who sends is told that this rank has come.
  const bool tells = operation.kind == Kind::write &&
                     constant(operation.to.starts.front()) < std::int64_t{program.ranks};
  if (tells) side.senders.insert(operation.to.rank);
}

[[noreturn]] void refuse(const Program& program, const ExchangeSide& side,
                         const ExchangeSide* other, const std::string& what, int other_rank,
                         const std::string& lacks) {
  Diagnostic diagnostic(
      side.where,
      fmt::format("exchange {}: rank {} {} rank {}, which {}", program.buffers[side.words].name,
                  side.rank, what, other_rank, other != nullptr ? lacks : "does not come to it"));
  if (other != nullptr) diagnostic.note(other->where, fmt::format("rank {} comes", other_rank));
  diagnostic.token("exchange")
      .fix("the same pairs in both ranks: what the one sends, the other gets from it")
      .raise();
}

bool is_barrier(const Program& program, const ProgramBuffer& buffer) {
  return buffer.is_meeting && buffer.shape.front() == Dim(program.ranks);
}

// Where the rank comes to the meeting of these words.
std::optional<SourceLocation> place_of(const Program& program, int words, int rank) {
  for (const ProgramOperation& each : program.operations) {
    const bool is_word = each.kind == Kind::write || each.kind == Kind::wait;
    if (is_word && each.to.buffer == words && program.streams[each.stream].rank == rank) {
      return each.where;
    }
  }
  return {};
}

void check_barrier(const Program& program, int words) {
  std::vector<int> absent;
  std::optional<SourceLocation> first;
  for (int rank = 0; rank < program.ranks; ++rank) {
    const std::optional<SourceLocation> place = place_of(program, words, rank);
    if (!place) absent.push_back(rank);
    if (!first) first = place;
  }
  if (absent.empty()) return;
  const std::string& name = program.buffers[words].name;
  Diagnostic(*first, absent.size() == 1 ? fmt::format("barrier {}: rank {} never comes to it", name,
                                                      absent.front())
                                        : fmt::format("barrier {}: ranks {} never come to it", name,
                                                      fmt::join(absent, ", ")))
      .token("barrier")
      .fix(
          "a barrier of this name in a stream of every rank; words that Program::signals makes "
          "are for some of them")
      .raise();
}

}  // namespace

std::vector<ExchangeSide> exchange_sides(const Program& program) {
  std::vector<ExchangeSide> sides;
  for (const ProgramOperation& operation : program.operations) {
    if (operation.exchange < 0) continue;
    const auto found = std::find_if(sides.begin(), sides.end(), [&](const ExchangeSide& side) {
      return side.words == operation.exchange && side.stream == operation.stream;
    });
    ExchangeSide& side = found == sides.end() ? sides.emplace_back() : *found;
    side.words = operation.exchange;
    side.stream = operation.stream;
    side.rank = program.streams[operation.stream].rank;
    side.where = operation.where;
    add(program, operation, side);
  }
  return sides;
}

const ExchangeSide* find_side(const std::vector<ExchangeSide>& sides, int words, int rank) {
  const auto found = std::find_if(sides.begin(), sides.end(), [&](const ExchangeSide& side) {
    return side.words == words && side.rank == rank;
  });
  return found == sides.end() ? nullptr : &*found;
}

int other_rank(const Program& program, const ProgramOperation& operation) {
  const int own = program.streams[operation.stream].rank;
  if (operation.kind != Kind::wait) return operation.to.rank;
  // A wait is for a word of its own rank, which the other one writes.
  const auto number = static_cast<int>(constant(operation.to.starts.front()));
  return operation.to.rank == own ? number % program.ranks : operation.to.rank;
}

std::optional<MeetingWait> meeting_wait(const Program& program, const ProgramOperation& wait) {
  const ProgramBuffer& words = program.buffers[wait.to.buffer];
  if (wait.kind != Kind::wait || !words.is_meeting) return {};
  const int other = other_rank(program, wait);
  const bool for_data = constant(wait.to.starts.front()) >= program.ranks;
  const char* const what = is_barrier(program, words) ? "rank {} at barrier {}"
                           : for_data                 ? "what rank {} sends in exchange {}"
                                                      : "rank {} at exchange {}";
  return MeetingWait{fmt::format(fmt::runtime(what), other, words.name),
                     place_of(program, wait.to.buffer, other)};
}

void check_meetings(const Program& program) {
  for (std::size_t i = 0; i < program.buffers.size(); ++i) {
    if (is_barrier(program, program.buffers[i])) check_barrier(program, static_cast<int>(i));
  }
  const std::vector<ExchangeSide> sides = exchange_sides(program);
  for (const ExchangeSide& side : sides) {
    for (const int receiver : side.receivers) {
      const ExchangeSide* const other = find_side(sides, side.words, receiver);
      if (other != nullptr && other->senders.count(side.rank) != 0) continue;
      refuse(program, side, other, "sends to", receiver, "gets nothing from it");
    }
    for (const int sender : side.senders) {
      const ExchangeSide* const other = find_side(sides, side.words, sender);
      if (other != nullptr && other->receivers.count(side.rank) != 0) continue;
      refuse(program, side, other, "gets from", sender, "sends nothing to it");
    }
  }
}

}  // namespace tilewright::ir
