#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/program.h"

// What Stream::exchange has recorded, as one step of each rank that takes part, and what
// Stream::barrier has.
namespace tilewright::ir {

struct ExchangeSide {
  int words = 0;  // the exchange, by the buffer of its words
  int stream = 0, rank = 0;
  SourceLocation where;
  std::vector<const ProgramOperation*> copies;  // to other ranks
  std::set<int> receivers, senders;             // to whom and from whom data goes
  const ProgramOperation* last = nullptr;       // of its operations
};

// In the order in which ranks come to them.
std::vector<ExchangeSide> exchange_sides(const Program& program);
// The one of that exchange in the rank; null: there is none.
const ExchangeSide* find_side(const std::vector<ExchangeSide>& sides, int words, int rank);

// The other rank of an operation of an exchange.
int other_rank(const Program& program, const ProgramOperation& operation);

// Raises a usage error where a rank sends to one that does not expect it, or the other way round,
// and where a rank never comes to a barrier.
void check_meetings(const Program& program);

// Of a wait at a word of a barrier or an exchange: what does not come, "rank 1 at barrier met", and
// where the rank comes to it, if it does. Nothing for other words.
struct MeetingWait {
  std::string text;
  std::optional<SourceLocation> comes;
};
std::optional<MeetingWait> meeting_wait(const Program& program, const ProgramOperation& wait);

}  // namespace tilewright::ir
