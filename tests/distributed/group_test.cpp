#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <random>
#include <thread>

#include "common/processes.h"
#include "distributed/members.h"
#include "distributed/ranks.h"
#include "support/random.h"

namespace tilewright {
namespace {

using test::FileRanks;
using test::kPatience;
using test::kShortPatience;
using test::open_descriptors;
using test::Processes;
using test::rank_of;
using test::seconds_text;
using test::Voice;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::StartsWith;

// Never comes: of processes that the test ends.
void stay() {
  for (;;) pause();
}

TEST(Group, GathersLargeAndEmptyStrings) {
  const FileRanks job;
  Processes ranks(3, [&](int rank, const Voice& voice) {
    const Group group = job.join(rank, 3);
    const std::string own(static_cast<std::size_t>(rank) << 18, static_cast<char>('a' + rank));
    const auto all = group.all_gather(own, "texts");
    for (int from = 0; from < 3; ++from) {
      const bool is_whole = all[from] == std::string(static_cast<std::size_t>(from) << 18,
                                                     static_cast<char>('a' + from));
      voice.say(is_whole ? "whole " : "broken ");
    }
  });
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(ranks.said(rank), "whole whole whole ");
}

TEST(Group, NobodyWaitsLongerThanForWhoComesLast) {
  const FileRanks job;
  Processes ranks(2, [&](int rank, const Voice& voice) {
    const Group group = job.join(rank, 2);
    if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const auto start = std::chrono::steady_clock::now();
    group.barrier();
    voice.say(std::chrono::steady_clock::now() - start < kPatience / 2 ? "in time" : "late");
    group.barrier("none leaves before, which others would notice");
  });
  for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(ranks.said(rank), "in time");
}

TEST(Group, AnotherOperationIsNamed) {
  const FileRanks job;
  Processes ranks(2, [&](int rank, const Voice&) {
    job.join(rank, 2).barrier(rank == 0 ? "the first step" : "the second step");
  });
  EXPECT_THAT(ranks.said(0), StartsWith("usage: error: rank 1 is at the second step, and rank 0 at "
                                        "the first step"));
  EXPECT_THAT(ranks.said(1), HasSubstr("rank 0 is at the first step"));
}

// And no other: what rank 0 has sent is there when rank 2 comes, which is behind rank 0's error.
TEST(Group, ARankThatDoesNotComeToABarrierIsNamed) {
  const FileRanks job;
  const test::TemporaryFolder folder;
  const std::filesystem::path come = folder.path() / "come";
  Processes ranks(3, [&](int rank, const Voice& voice) {
    const Group group = job.join(rank, 3);
    group.members()->set_patience(kShortPatience);
    if (rank == 1) stay();
    while (rank == 2 && !std::filesystem::exists(come)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    try {
      group.barrier("the end");
    } catch (const Error&) {
      // Behind an error it is the same error again.
      try {
        group.barrier("something else");
      } catch (const Error& again) {
        voice.say(again.what());
        stay();
      }
    }
  });
  for (const int rank : {0, 2}) {
    ranks.wait_for(rank, "fix:");
    if (rank == 0) std::ofstream(come) << "come";
    const std::string who = rank == 0 ? "ranks 1, 2" : "rank 1";
    EXPECT_THAT(ranks.said_so_far(rank),
                StartsWith("error: " + who + " did not come to the end within " +
                           seconds_text(kShortPatience)));
  }
}

TEST(Group, ARankThatIsKilledIsNamedByAllOthers) {
  const FileRanks job;
  Processes ranks(3, [&](int rank, const Voice& voice) {
    const Group group = job.join(rank, 3);
    voice.say("joined");
    if (rank == 1) stay();
    group.barrier();
  });
  for (int rank = 0; rank < 3; ++rank) ranks.wait_for(rank, "joined");
  ranks.signal(1, SIGKILL);
  const std::string name = "rank 1 (process " + std::to_string(ranks.process(1));
  for (const int rank : {0, 2}) {
    EXPECT_THAT(ranks.said(rank), AllOf(StartsWith("joinedunavailable: error: lost " + name),
                                        HasSubstr("waits for barrier")));
  }
}

// As workers that a data loader has forked: they keep its connections open.
TEST(Group, ARankIsMissedAlsoWhereItsChildrenLive) {
  const FileRanks job;
  Processes ranks(2, [&](int rank, const Voice& voice) {
    const Group group = job.join(rank, 2);
    if (rank == 0) return group.barrier();
    const pid_t child = fork();
    if (child == 0) stay();
    voice.say(std::to_string(child) + "\n");
    stay();
  });
  ranks.wait_for(1, "\n");
  ranks.signal(1, SIGKILL);
  EXPECT_THAT(ranks.said(0), HasSubstr("its process has ended"));
  kill(std::stoi(ranks.said_so_far(1)), SIGKILL);
}

// What the parent has is the parent's.
TEST(Group, AForkedChildThatEndsEndsNothing) {
  const FileRanks job;
  Processes ranks(2, [&](int rank, const Voice& voice) {
    auto group = std::make_unique<Group>(job.join(rank, 2));
    const pid_t child = fork();
    if (child == 0) {
      alarm(1);
      group.reset();
      _exit(0);
    }
    waitpid(child, nullptr, 0);
    voice.say(test::roll_call(*group));
  });
  EXPECT_EQ(ranks.said(0), "0: 0 1");
  EXPECT_EQ(ranks.said(1), "1: 0 1");
}

TEST(Group, AForkedChildTakesNoPartInIt) {
  const FileRanks job;
  Processes ranks(2, [&](int rank, const Voice& voice) {
    const Group group = job.join(rank, 2);
    const pid_t child = fork();
    if (child == 0) {
      alarm(1);  // what waits for a thread that is not here waits for ever
      try {
        group.barrier("of the child");
      } catch (const Error& error) {
        voice.say(error.message());
      }
      _exit(0);
    }
    waitpid(child, nullptr, 0);
    voice.say("; " + test::roll_call(group));
  });
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_THAT(ranks.said(rank),
                AllOf(HasSubstr("comes to of the child, and it was forked from process " +
                                std::to_string(ranks.process(rank)) + ", which is rank " +
                                std::to_string(rank)),
                      HasSubstr("; " + std::to_string(rank) + ": 0 1")));
  }
}

// And no other rank, which is heard though it does nothing.
TEST(Group, ARankThatIsStoppedIsMissedByItsSilence) {
  const FileRanks job;
  Processes ranks(3, [&](int rank, const Voice& voice) {
    GroupOptions options = rank_of(rank, 3);
    // Only the one that stops is silent for so long.
    if (rank != 1) options.silence = kShortPatience;
    const Group group = job.join(options);
    voice.say("joined");
    if (rank != 0) stay();
    group.barrier();
  });
  ranks.wait_for(1, "joined");
  const auto before = std::chrono::steady_clock::now();
  ranks.signal(1, SIGSTOP);
  EXPECT_THAT(ranks.said(0),
              AllOf(HasSubstr("nothing has come from it for " + seconds_text(kShortPatience)),
                    testing::Not(HasSubstr("rank 2 ("))));
  EXPECT_LT(std::chrono::steady_clock::now() - before, 3 * kShortPatience);
}

// Who was stopped has heard nobody, and knows nothing of who was stopped with it.
TEST(Group, RanksThatAreStoppedTogetherMissNobody) {
  const FileRanks job;
  const test::TemporaryFolder folder;
  const std::filesystem::path go_on = folder.path() / "go_on";
  Processes ranks(2, [&](int rank, const Voice& voice) {
    GroupOptions options = rank_of(rank, 2);
    options.silence = kShortPatience;
    const Group group = job.join(options);
    voice.say("joined ");
    while (!std::filesystem::exists(go_on)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    voice.say(test::roll_call(group));
  });
  for (const int rank : {0, 1}) ranks.wait_for(rank, "joined");
  for (const int rank : {0, 1}) ranks.signal(rank, SIGSTOP);
  std::this_thread::sleep_for(kShortPatience * 5 / 4);
  for (const int rank : {0, 1}) {
    ranks.signal(rank, SIGCONT);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  std::ofstream(go_on) << "on";
  EXPECT_THAT(ranks.said(0), HasSubstr("0: 0 1"));
  EXPECT_THAT(ranks.said(1), HasSubstr("1: 0 1"));
}

TEST(Group, ARankThatLeavesIsNoLoss) {
  const FileRanks job;
  Processes ranks(3, [&](int rank, const Voice& voice) {
    const Group group = job.join(rank, 3);
    if (rank == 1) return;
    if (rank == 2) group.all_gather("", "something");
    const auto start = std::chrono::steady_clock::now();
    try {
      group.all_gather("", "something");
    } catch (const Error& error) {
      const bool is_at_once = std::chrono::steady_clock::now() - start < kPatience / 2;
      voice.say(std::to_string(group.lost().size()) + " lost" + (is_at_once ? ": " : ", late: ") +
                error.what());
    }
    voice.say_error_of([&] { group.require_all("the end"); });
  });
  EXPECT_THAT(ranks.said(0), AllOf(StartsWith("0 lost: "), HasSubstr("rank 1 (process "),
                                   HasSubstr("has left the group, and rank 0 waits for it in"),
                                   HasSubstr("has left the group, and rank 0 waits for the end")));
}

// What it had sent by then is there.
TEST(Group, AMessageOfALostRankIsStillReceived) {
  const FileRanks job;
  Processes ranks(2, [&](int rank, const Voice& voice) {
    const Group group = job.join(rank, 2);
    if (rank == 1) {
      group.members()->set_patience(kShortPatience);
      try {
        test::roll_call(group);
      } catch (const Error&) {
        voice.say("sent");
        stay();
      }
    }
    while (group.lost().empty()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    voice.say(test::roll_call(group));
  });
  ranks.wait_for(1, "sent");
  ranks.signal(1, SIGKILL);
  EXPECT_EQ(ranks.said(0), "0: 0 1");
}

// Also by those to whom the news comes second.
TEST(Group, TheFirstThatWasLostIsNamedByAll) {
  const FileRanks job;
  Processes ranks(4, [&](int rank, const Voice& voice) {
    const Group group = job.join(rank, 4);
    voice.say("joined");
    if (rank == 3) stay();
    group.barrier();
  });
  for (int rank = 0; rank < 4; ++rank) ranks.wait_for(rank, "joined");
  ranks.signal(3, SIGKILL);
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_THAT(ranks.said(rank), HasSubstr("error: lost rank 3 (process "));
  }
}

// Whom it has lost, for those who have not noticed: to rank 2 the stopped one is not silent yet.
TEST(Group, WhoLeavesSaysWhoIsLost) {
  const FileRanks job;
  Processes ranks(3, [&](int rank, const Voice& voice) {
    GroupOptions options = rank_of(rank, 3);
    if (rank != 1) options.silence = kShortPatience * (rank == 0 ? 1 : 2);
    const Group group = job.join(options);
    voice.say("joined ");
    if (rank == 1) stay();
    group.barrier();
  });
  for (int rank = 0; rank < 3; ++rank) ranks.wait_for(rank, "joined");
  ranks.signal(1, SIGSTOP);
  for (const int rank : {0, 2}) {
    EXPECT_THAT(ranks.said(rank),
                AllOf(HasSubstr("error: lost rank 1 ("),
                      HasSubstr("nothing has come from it for " + seconds_text(kShortPatience))));
  }
}

TEST(Group, LeavesNothingOpen) {
  const FileRanks job;
  Processes ranks(3, [&](int rank, const Voice& voice) {
    const int before = open_descriptors();
    for (int round = 0; round < 5; ++round) {
      const Group group = job.join(rank, 3);
      group.barrier();
    }
    voice.say(open_descriptors() == before ? "as before" : "more");
  });
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(ranks.said(rank), "as before");
  EXPECT_TRUE(job.left_nothing());
}

// The lines that name what a process of the test has made.
std::string named_in(const std::string& list, const Processes& ranks, int count) {
  std::ifstream file(list);
  std::string line, left;
  while (std::getline(file, line)) {
    for (int rank = 0; rank < count; ++rank) {
      const std::string name = "tilewright-" + std::to_string(ranks.process(rank)) + "-";
      if (line.find(name) != std::string::npos) left += line + "\n";
    }
  }
  return left;
}

// What stays of them. The system may take down what a process had open after its last output.
std::string left_in(const std::string& list, const Processes& ranks, int count) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  std::string left = named_in(list, ranks, count);
  while (!left.empty() && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    left = named_in(list, ranks, count);
  }
  return left;
}

// At any moment: while they look for each other, while they wait for each other, while they leave.
TEST(Group, RanksThatAreKilledAtRandomAreNamedAndLeaveNothing) {
  constexpr int kRounds = 8, kRanks = 4;
  for (int round = 0; round < kRounds; ++round) {
    const FileRanks job;
    std::mt19937 random(static_cast<unsigned>(round));
    const int victim = static_cast<int>(random() % kRanks);
    const auto moment = std::chrono::microseconds(random() % 40'000);
    Processes ranks(kRanks, [&](int rank, const Voice& voice) {
      voice.say("here ");
      const Group group = job.join(rank, kRanks, std::chrono::seconds(3));
      voice.say("joined ");
      for (;;) group.barrier();
    });
    const bool is_early = round % 4 == 0;
    for (int rank = 0; rank < kRanks; ++rank) ranks.wait_for(rank, is_early ? "here" : "joined");
    std::this_thread::sleep_for(moment);
    ranks.signal(victim, SIGKILL);
    const std::string name = "rank " + std::to_string(victim);
    for (int rank = 0; rank < kRanks; ++rank) {
      if (rank == victim) continue;
      EXPECT_THAT(ranks.said(rank), AllOf(HasSubstr("unavailable: "), HasSubstr(name)))
          << "round " << round;
    }
    EXPECT_EQ(left_in("/proc/net/unix", ranks, kRanks), "") << "round " << round;
  }
}

}  // namespace
}  // namespace tilewright
