#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "common/processes.h"
#include "distributed/entrance.h"
#include "distributed/lobby.h"
#include "distributed/members.h"
#include "distributed/ranks.h"

// Ranks that say that they are on different machines: then they talk by TCP.
namespace tilewright {
namespace {

using distributed::Clock;
using test::kPatience;
using test::Processes;
using test::Voice;
using testing::HasSubstr;

Group::Members join(const std::string& path, int rank, const std::string& address) {
  const distributed::Lobby lobby{2, kPatience, Clock::now() + kPatience};
  distributed::Member own = distributed::introduce(rank);
  own.machine += std::to_string(rank);
  const distributed::Entrance entrance(own, address);
  const Rendezvous rendezvous = Rendezvous::file(path);
  distributed::Meeting meeting = meet(rendezvous.way(), own, address, lobby);
  std::vector<FileDescriptor> connections = entrance.connect(meeting, rank, lobby);
  return Group::Members(std::move(meeting), rank, std::move(connections), test::rank_of(rank, 2));
}

TEST(Machines, TalkByTheAddressesThatTheyAreGiven) {
  const test::FileRanks job;
  Processes ranks(2, [&](int rank, const Voice& voice) {
    Group::Members members = join(job.path(), rank, "127.0.0.1");
    // More than a socket holds at a time.
    const std::string own(std::size_t{4} << 20, static_cast<char>('0' + rank));
    const auto all = members.exchange(own, "rows");
    voice.say(all[1 - rank].payload == std::string(own.size(), static_cast<char>('1' - rank))
                  ? "whole"
                  : "broken");
    voice.say(members.shares_memory(1 - rank) ? " beside it " : " apart ");
    voice.say(members.nodes() == std::vector<int>{0, 1} ? "" : "in other nodes ");
    if (rank == 1) raise(SIGKILL);
    members.exchange("", "more");
  });
  EXPECT_THAT(ranks.said(0), HasSubstr("whole apart unavailable: error: lost rank 1 (process "));
}

TEST(Machines, WithoutAddressesAreAnError) {
  const test::FileRanks job;
  Processes ranks(2, [&](int rank, const Voice&) { join(job.path(), rank, ""); });
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_THAT(ranks.said(rank), HasSubstr("is on another machine than rank"));
    EXPECT_THAT(ranks.said(rank), HasSubstr("fix: GroupOptions::address in each rank"));
  }
}

}  // namespace
}  // namespace tilewright
