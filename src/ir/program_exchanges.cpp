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

void check_exchanges(const Program& program) {
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
