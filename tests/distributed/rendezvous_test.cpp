#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <fstream>
#include <string>
#include <thread>

#include "common/processes.h"
#include "distributed/entrance.h"
#include "distributed/lobby.h"
#include "distributed/packing.h"
#include "distributed/ranks.h"
#include "distributed/socket.h"
#include "distributed/system_file.h"
#include "distributed/way.h"
#include "runtime/runtime_test.h"

namespace tilewright {
namespace {

using distributed::Endpoint;
using runtime::ScopedVariable;
using test::FileRanks;
using test::kPatience;
using test::kShortPatience;
using test::Processes;
using test::rank_of;
using test::roll_call;
using test::Voice;
using test::wait_until_there;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

// One that nobody listens at just now.
int free_port() {
  Endpoint endpoint{false, "127.0.0.1", 0};
  const FileDescriptor listener = distributed::listen_at(endpoint);
  return endpoint.port;
}

// Each key is a file. Who asks for one without having waited for it finds what happens to be there.
KeyValueStore store_in(const std::string& folder) {
  KeyValueStore store;
  const auto waited = std::make_shared<std::string>();
  store.set = [folder](const std::string& key, const std::string& value) {
    std::ofstream(folder + "/new") << value;
    std::filesystem::rename(folder + "/new", folder + "/" + key);
  };
  store.get = [folder, waited](const std::string& key) {
    if (*waited != key) return std::string("nothing");
    std::ifstream file(folder + "/" + key);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  store.wait = [folder, waited](const std::string& key, std::chrono::milliseconds) {
    wait_until_there(folder + "/" + key);
    *waited = key;
  };
  return store;
}

// Three processes meet by what `make` makes in each.
void expect_all_meet(const std::function<Rendezvous()>& make) {
  Processes ranks(3, [&](int rank, const Voice& voice) {
    const Group group(make(), rank_of(rank, 3));
    group.barrier();
    voice.say(roll_call(group));
  });
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(ranks.said(rank), std::to_string(rank) + ": 0 1 2");
  }
}

TEST(Rendezvous, ByAFile) {
  const FileRanks job;
  expect_all_meet([&] { return Rendezvous::file(job.path()); });
  EXPECT_TRUE(job.left_nothing());
}

TEST(Rendezvous, BySockets) {
  const int port = free_port();
  expect_all_meet([&] { return Rendezvous::socket("127.0.0.1", port, "a word"); });
}

TEST(Rendezvous, ByTheCallersStore) {
  const test::TemporaryFolder folder;
  expect_all_meet([&] { return Rendezvous::store(store_in(folder.path().string())); });
}

TEST(Rendezvous, ByTheEnvironmentOfTorchrun) {
  const ScopedVariable job("TORCHELASTIC_RUN_ID", std::to_string(getpid())),
      port("MASTER_PORT", "29500"), address("MASTER_ADDR", "127.0.0.1");
  Processes ranks(2, [](int rank, const Voice& voice) {
    const ScopedVariable number("RANK", std::to_string(rank)), size("WORLD_SIZE", "2");
    voice.say(roll_call(Group(Rendezvous::environment())));
  });
  EXPECT_EQ(ranks.said(0), "0: 0 1");
  EXPECT_EQ(ranks.said(1), "1: 0 1");
}

TEST(Rendezvous, ByAnAddressOfTheEnvironmentWhereThereAreSeveralMachines) {
  const ScopedVariable job("TORCHELASTIC_RUN_ID", std::to_string(getpid())),
      address("MASTER_ADDR", "127.0.0.1"), port("MASTER_PORT", std::to_string(free_port() - 1)),
      local("LOCAL_WORLD_SIZE", "1"), own("LOCAL_RANK", "0");
  Processes ranks(2, [](int rank, const Voice& voice) {
    const ScopedVariable number("RANK", std::to_string(rank)), size("WORLD_SIZE", "2");
    GroupOptions options;
    options.address = "127.0.0.1";
    voice.say(roll_call(Group(Rendezvous::environment(), options)));
  });
  EXPECT_EQ(ranks.said(0), "0: 0 1");
  EXPECT_EQ(ranks.said(1), "1: 0 1");
}

class MpiLibraries : public testing::TestWithParam<const char*> {};

TEST_P(MpiLibraries, SayWhoIsWhoAndWhereRankZeroIs) {
  const test::TemporaryFolder folder;
  const ScopedVariable library("TILEWRIGHT_MPI", GetParam()),
      where("FAKE_MPI_FOLDER", folder.path().string()), size("FAKE_MPI_SIZE", "3");
  Processes ranks(3, [](int rank, const Voice& voice) {
    const ScopedVariable number("FAKE_MPI_RANK", std::to_string(rank));
    for (int round = 0; round < 2; ++round) {
      voice.say(roll_call(Group(Rendezvous::mpi())) + "\n");
    }
  });
  for (int rank = 0; rank < 3; ++rank) {
    const std::string all = std::to_string(rank) + ": 0 1 2\n";
    EXPECT_EQ(ranks.said(rank), all + all);
  }
}

TEST_P(MpiLibraries, OfAnotherMpirunAreNamed) {
  const ScopedVariable library("TILEWRIGHT_MPI", GetParam()), size("FAKE_MPI_SIZE", "1"),
      number("FAKE_MPI_RANK", "0");
  for (const char* const variable : {"PMI_SIZE", "OMPI_COMM_WORLD_SIZE"}) {
    Processes ranks(1, [&](int, const Voice& voice) {
      const ScopedVariable started(variable, "2");
      try {
        Rendezvous::mpi();
      } catch (const Error& error) {
        voice.say(error.what());
      }
    });
    EXPECT_THAT(ranks.said(0), AllOf(HasSubstr(GetParam()), HasSubstr("is rank 0 of 1, and"),
                                     HasSubstr(std::string(variable) + " is 2"),
                                     HasSubstr("the mpirun that starts the processes")));
  }
}
INSTANTIATE_TEST_SUITE_P(Rendezvous, MpiLibraries,
                         testing::Values(TILEWRIGHT_FAKE_OPEN_MPI, TILEWRIGHT_FAKE_MPICH));

TEST(Rendezvous, NamesTheMpiThatIsNotThere) {
  const ScopedVariable library("TILEWRIGHT_MPI", "/nowhere/libmpi.so");
  runtime::expect_error(ErrorKind::unavailable, {"TILEWRIGHT_MPI", "/nowhere/libmpi.so"},
                        [] { Rendezvous::mpi(); });
}

// Whose local sockets this process reaches: of this start of this machine, in this namespace.
TEST(Rendezvous, MachinesAreToldApart) {
  const std::string boot = distributed::read_system_file("/proc/sys/kernel/random/boot_id");
  ASSERT_EQ(boot.size(), 37U);
  EXPECT_THAT(distributed::introduce(0).machine, AllOf(StartsWith(boot), HasSubstr("net:[")));
}

TEST(Rendezvous, AlonePassesEverything) {
  const FileRanks job;
  const Group group = job.join(0, 1);
  group.barrier();
  EXPECT_EQ(roll_call(group), "0: 0");
  EXPECT_EQ(group.local_ranks(), std::vector<int>{0});
}

TEST(Rendezvous, NamesTheRanksThatDoNotCome) {
  const FileRanks job;
  Processes ranks(2, [&](int number, const Voice&) { job.join(2 * number, 4, kShortPatience); });
  for (int number = 0; number < 2; ++number) {
    EXPECT_THAT(ranks.said(number), HasSubstr("unavailable: error: ranks 1, 3 of 4 did not come"));
  }
  EXPECT_TRUE(job.left_nothing());
}

TEST(Rendezvous, NamesRankZeroWhereItDoesNotCome) {
  const FileRanks job;
  Processes ranks(1, [&](int, const Voice&) { job.join(1, 2, std::chrono::milliseconds(50)); });
  EXPECT_THAT(ranks.said(0), HasSubstr("rank 0 did not come to the file " + job.path() +
                                       " within 0.05 s: it has not said where it is"));
  const int port = free_port();
  Processes by_socket(1, [&](int, const Voice&) {
    Group(Rendezvous::socket("127.0.0.1", port, "a word"),
          rank_of(1, 2, std::chrono::milliseconds(50)));
  });
  EXPECT_THAT(by_socket.said(0), HasSubstr("nobody listens there"));
}

TEST(Rendezvous, ARankThatNoGroupHasIsAnError) {
  const FileRanks job;
  for (const auto& [rank, size] :
       std::vector<std::pair<int, int>>{{0, 0}, {-2, 2}, {2, 2}, {0, 1025}, {-2, -2}}) {
    GroupOptions options = rank_of(rank, size, std::chrono::milliseconds(50));
    runtime::expect_error(ErrorKind::usage, {fmt::format("rank {} of {} ranks", rank, size)},
                          [&] { job.join(options); });
  }
}

TEST(Rendezvous, AnotherTokenIsTurnedAwayAndTheOthersMeet) {
  const int port = free_port();
  const auto start = [&](int rank, const char* token) {
    return std::make_unique<Processes>(1, [=](int, const Voice& voice) {
      voice.say(roll_call(Group(Rendezvous::socket("127.0.0.1", port, token), rank_of(rank, 2))));
    });
  };
  const auto zero = start(0, "a word"), wrong = start(1, "another word");
  EXPECT_THAT(wrong->said(0), StartsWith("usage: error: rank 1 has another token than rank 0"));
  const auto one = start(1, "a word");
  EXPECT_EQ(zero->said(0), "0: 0 1");
  EXPECT_EQ(one->said(0), "1: 0 1");
}

TEST(Rendezvous, WhoHasWaitedInVainIsToldOfAnotherToken) {
  const int port = free_port();
  const auto join = [=](int rank, const char* token) {
    GroupOptions options = rank_of(rank, 2);
    options.patience = kShortPatience;
    Group(Rendezvous::socket("127.0.0.1", port, token), options);
  };
  Processes ranks(2, [&](int rank, const Voice&) { join(rank, rank == 0 ? "one" : "two"); });
  EXPECT_THAT(ranks.said(1), HasSubstr("rank 1 has another token than rank 0"));
  EXPECT_THAT(ranks.said(0), AllOf(HasSubstr("rank 1 of 2 did not come within"),
                                   HasSubstr("called itself rank 1 had another token"),
                                   HasSubstr("fix: the same token in all ranks")));
}

TEST(Rendezvous, AnotherSizeEndsTheJob) {
  const FileRanks job;
  Processes ranks(2, [&](int rank, const Voice&) { job.join(rank, rank == 0 ? 2 : 4); });
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_THAT(ranks.said(rank),
                HasSubstr("rank 1 says that there are 4 ranks, and rank 0 says 2"));
  }
}

TEST(Rendezvous, ARankThatComesTwiceEndsTheJob) {
  const FileRanks job;
  Processes ranks(3, [&](int number, const Voice&) { job.join(number > 0 ? 1 : 0, 3); });
  EXPECT_THAT(ranks.said(0), AllOf(HasSubstr("usage: error: rank 1 has come twice: process "),
                                   HasSubstr(std::to_string(ranks.process(1))),
                                   HasSubstr(std::to_string(ranks.process(2)))));
}

// What a rank 1 of 3 of some build says first, to a rank 0 that may still have to come.
FileDescriptor said_hello(int port, const std::string& build,
                          distributed::Clock::time_point deadline) {
  std::string why;
  FileDescriptor one;
  while (!one) one = distributed::connect_to({false, "127.0.0.1", port}, deadline, why);
  const std::string hello =
      distributed::pack({build, "a word", "3", "1", "7", "host", "machine", "", "local", "remote"});
  EXPECT_EQ(distributed::send_frame(one, distributed::Frame::Kind::hello, hello, deadline), 0);
  return one;
}

TEST(Rendezvous, AnotherTilewrightEndsTheJob) {
  const int port = free_port();
  Processes zero(1, [&](int, const Voice&) {
    Group(Rendezvous::socket("127.0.0.1", port, "a word"), rank_of(0, 3));
  });
  const auto deadline = distributed::Clock::now() + kPatience;
  const FileDescriptor one = said_hello(port, "0.0.7, frames 1", deadline);
  const std::string failure =
      std::string("rank 1 has Tilewright 0.0.7, frames 1, and rank 0 has ") + distributed::kBuild;
  std::string why;
  const auto answer = distributed::receive_frame(one, deadline, why);
  ASSERT_TRUE(answer.has_value()) << why;
  EXPECT_THAT(answer->payload, HasSubstr(failure));
  EXPECT_THAT(zero.said(0), HasSubstr(failure));
}

// Long before the patience is over. Rank 1 is the test, which says what a rank says first.
TEST(Rendezvous, ARankThatEndsBeforeAllHaveComeEndsTheJob) {
  const int port = free_port();
  Processes zero(1, [&](int, const Voice&) {
    Group(Rendezvous::socket("127.0.0.1", port, "a word"), rank_of(0, 3));
  });
  const auto deadline = distributed::Clock::now() + kPatience;
  std::string why;
  FileDescriptor one = said_hello(port, distributed::kBuild, deadline);
  const auto answer = distributed::receive_frame(one, deadline, why);
  ASSERT_TRUE(answer.has_value()) << why;
  ASSERT_EQ(answer->kind, distributed::Frame::Kind::alive) << answer->payload;
  one = FileDescriptor();
  EXPECT_THAT(zero.said(0),
              HasSubstr("rank 1 (process 7 on host) came and ended before all had come"));
}

// Those who come behind the mistake of another rank hear of it, rather than of nobody.
TEST(Rendezvous, LatecomersAreToldWhatHasFailed) {
  const FileRanks job;
  Processes zero(1, [&](int, const Voice&) { job.join(0, 3); });
  Processes wrong(1, [&](int, const Voice&) { job.join(1, 4); });
  const char* const failure = "rank 1 says that there are 4 ranks, and rank 0 says 3";
  EXPECT_THAT(wrong.said(0), HasSubstr(failure));
  Processes late(1, [&](int, const Voice&) { job.join(2, 3, kShortPatience); });
  EXPECT_THAT(late.said(0), HasSubstr(failure));
  EXPECT_THAT(zero.said(0), HasSubstr(failure));
}

TEST(Rendezvous, TwoJobsWithOnePort) {
  Endpoint endpoint{false, "127.0.0.1", 0};
  const FileDescriptor first = distributed::listen_at(endpoint);
  runtime::expect_error(
      ErrorKind::usage,
      {"tcp:127.0.0.1:" + std::to_string(endpoint.port), "is taken", "rank 0 of another job",
       "a second rank 0"},
      [&] { Group(Rendezvous::socket("127.0.0.1", endpoint.port, "a word"), rank_of(0, 2)); });
}

TEST(Rendezvous, AFileOfAJobThatWasKilledIsReplaced) {
  const FileRanks job;
  {
    Processes killed(1, [&](int, const Voice&) { job.join(0, 2); });
    wait_until_there(job.path());
  }
  ASSERT_FALSE(job.left_nothing());
  expect_all_meet([&] { return Rendezvous::file(job.path()); });
  EXPECT_TRUE(job.left_nothing());
}

TEST(Rendezvous, StrangersDoNotDisturb) {
  const int port = free_port();
  Processes ranks(1, [&](int, const Voice& voice) {
    voice.say(roll_call(Group(Rendezvous::socket("127.0.0.1", port, "a word"), rank_of(0, 2))));
  });
  std::string why;
  FileDescriptor silent, talkative;
  const Endpoint lobby{false, "127.0.0.1", port};
  const auto deadline = distributed::Clock::now() + kPatience;
  while (!silent) silent = distributed::connect_to(lobby, deadline, why);
  talkative = distributed::connect_to(lobby, deadline, why);
  ASSERT_GT(send(talkative.get(), "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL), 0);
  Processes rest(1, [&](int, const Voice& voice) {
    voice.say(roll_call(Group(Rendezvous::socket("127.0.0.1", port, "a word"), rank_of(1, 2))));
  });
  EXPECT_EQ(ranks.said(0), "0: 0 1");
  EXPECT_EQ(rest.said(0), "1: 0 1");
}

TEST(Rendezvous, WhoAnswersAndIsNotRankZeroIsNamed) {
  Endpoint endpoint{false, "127.0.0.1", 0};
  const FileDescriptor listener = distributed::listen_at(endpoint);
  Processes ranks(1, [&](int, const Voice&) {
    GroupOptions options = rank_of(1, 2);
    options.patience = std::chrono::milliseconds(300);
    Group(Rendezvous::socket("127.0.0.1", endpoint.port, "a word"), options);
  });
  std::atomic<bool> has_ended = false;
  std::thread answers([&] {
    std::vector<FileDescriptor> callers;
    while (!has_ended) {
      FileDescriptor caller = distributed::accept_one(listener);
      if (!caller) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        continue;
      }
      send(caller.get(), "HTTP/1.1 400 Bad Request\r\n\r\n", 28, MSG_NOSIGNAL);
      callers.push_back(std::move(caller));
    }
  });
  EXPECT_THAT(ranks.said(0), AllOf(HasSubstr("rank 0 did not come to tcp:127.0.0.1"),
                                   HasSubstr("who answers is not Tilewright")));
  has_ended = true;
  answers.join();
}

// Behind the lobby too: who does not know the word of the job takes nobody's place.
TEST(Rendezvous, AnotherTokenIsTurnedAwayAtTheEntrance) {
  using distributed::Frame;
  const distributed::Lobby lobby{2, kPatience, distributed::Clock::now() + kPatience};
  distributed::Meeting meeting{{distributed::introduce(0), distributed::introduce(1)}, "a word"};
  const distributed::Entrance entrance(meeting.members[0], "");
  const auto call = [&](const std::vector<std::string>& words) {
    std::string why;
    FileDescriptor connection =
        distributed::connect_to(meeting.members[0].local, lobby.deadline, why);
    distributed::send_frame(connection, Frame::Kind::hello, distributed::pack(words),
                            lobby.deadline);
    return connection;
  };
  const FileDescriptor right = call({"a word", "1"}), wrong = call({"another word", "1"}),
                       longer = call({"a word", "0", "1"});
  const std::vector<FileDescriptor> connections = entrance.connect(meeting, 0, lobby);
  distributed::send_frame(connections[1], Frame::Kind::message, "hello", lobby.deadline);
  std::string why;
  EXPECT_TRUE(distributed::receive_frame(right, lobby.deadline, why)) << why;
  for (const FileDescriptor* other : {&wrong, &longer}) {
    EXPECT_FALSE(distributed::receive_frame(*other, lobby.deadline, why));
    EXPECT_EQ(why, "the connection ended");
  }
}

TEST(Rendezvous, AnAnswerThatDoesNotComeIsWaitedForNoLonger) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
  const FileDescriptor own(ends[0]), silent(ends[1]);
  std::string why;
  const auto until = distributed::Clock::now() + std::chrono::milliseconds(20);
  EXPECT_FALSE(distributed::receive_frame(own, until, why));
  EXPECT_EQ(why, "no answer has come");
}

TEST(Rendezvous, EndpointsAreReadAsTheyAreWritten) {
  for (const Endpoint& endpoint : {Endpoint{true, "a:name", 0}, Endpoint{false, "node3", 29500},
                                   Endpoint{false, "fe80::7", 1}}) {
    const std::optional<Endpoint> read = Endpoint::parse(endpoint.text());
    ASSERT_TRUE(read) << endpoint.text();
    EXPECT_EQ(read->is_local, endpoint.is_local) << endpoint.text();
    EXPECT_EQ(read->name, endpoint.name);
    EXPECT_EQ(read->port, endpoint.port);
  }
  for (const char* text : {"", "tcp", "tcp:node3", "tcp:node3:port", "udp:node3:29500"}) {
    EXPECT_FALSE(Endpoint::parse(text)) << text;
  }
}

TEST(Rendezvous, FramesOfNoKindAreForeign) {
  using distributed::Frame;
  using distributed::FrameReader;
  constexpr auto kLast = static_cast<std::uint32_t>(Frame::Kind::leave);
  for (const std::uint32_t kind : {kLast, kLast + 1}) {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    const FileDescriptor to(ends[0]), from(ends[1]);
    distributed::send_frame(to, static_cast<Frame::Kind>(kind), "", distributed::Clock::now());
    Frame frame;
    EXPECT_EQ(FrameReader().read(from, frame),
              kind == kLast ? FrameReader::Result::frame : FrameReader::Result::foreign);
  }
}

// Names in the abstract namespace are open to everybody.
TEST(Rendezvous, OtherUsersAreTurnedAway) {
  constexpr uid_t kNobody = 65534;
  if (geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  const ScopedVariable job("TORCHELASTIC_RUN_ID", std::to_string(getpid())),
      size("WORLD_SIZE", "2"), rank("RANK", "0");
  const Endpoint lobby = Rendezvous::environment().way().fixed()->endpoint;
  Processes ranks(
      1, [](int, const Voice& voice) { voice.say(roll_call(Group(Rendezvous::environment()))); });
  Processes stranger(1, [&](int, const Voice& voice) {
    if (setuid(kNobody) != 0) return;
    std::string why;
    FileDescriptor connection;
    while (!connection) connection = distributed::connect_to(lobby, distributed::Clock::now(), why);
    voice.say(distributed::is_same_user(connection) ? "the same user, " : "another user, ");
    distributed::receive_frame(connection, distributed::Clock::now() + kPatience, why);
    voice.say(why);
  });
  EXPECT_EQ(stranger.said(0), "another user, the connection ended");
  const ScopedVariable other("RANK", "1");
  EXPECT_EQ(roll_call(Group(Rendezvous::environment())), "1: 0 1");
  EXPECT_EQ(ranks.said(0), "0: 0 1");
}

// Nor is a token told to somebody else who listens where rank 0 should be.
TEST(Rendezvous, OtherUsersWhoListenAreNotRankZero) {
  constexpr uid_t kNobody = 65534;
  if (geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  const ScopedVariable job("TORCHELASTIC_RUN_ID", fmt::format("{}-taken", getpid())),
      size("WORLD_SIZE", "2"), rank("RANK", "1");
  Endpoint lobby = Rendezvous::environment().way().fixed()->endpoint;
  Processes stranger(1, [&](int, const Voice& voice) {
    if (setuid(kNobody) != 0) return;
    const FileDescriptor listener = distributed::listen_at(lobby);
    voice.say("listens");
    pause();
  });
  stranger.wait_for(0, "listens");
  GroupOptions options = rank_of(1, 2);
  options.patience = std::chrono::milliseconds(200);
  runtime::expect_error(ErrorKind::unavailable,
                        {"rank 0 did not come", "who listens there belongs to another user"},
                        [&] { Group(Rendezvous::environment(), options); });
}

TEST(Rendezvous, ListensAtNoOtherAddress) {
  Endpoint endpoint{false, "127.0.0.1", 0};
  const FileDescriptor listener = distributed::listen_at(endpoint);
  sockaddr_in bound = {};
  socklen_t bytes = sizeof bound;
  ASSERT_EQ(getsockname(listener.get(), reinterpret_cast<sockaddr*>(&bound), &bytes), 0);
  EXPECT_EQ(bound.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
  runtime::expect_error(ErrorKind::usage, {"tcp:192.0.2.1:7", "this machine's interfaces"},
                        [] { Group(Rendezvous::socket("192.0.2.1", 7, "a word"), rank_of(0, 2)); });
}

TEST(Rendezvous, WhatIsNoRankIsRefused) {
  const FileRanks job;
  runtime::expect_error(ErrorKind::usage, {"rank 2 of 2 ranks"}, [&] { job.join(2, 2); });
  runtime::expect_error(ErrorKind::usage, {"rank 0 of 0 ranks"}, [&] { job.join(0, 0); });
  runtime::expect_error(ErrorKind::usage, {"no launcher has said"},
                        [&] { Group(Rendezvous::file(job.path())); });
  runtime::expect_error(ErrorKind::usage,
                        {"a group of 2 ranks, and which of them", "both rank and"},
                        [&] { job.join(-1, 2); });
  runtime::expect_error(ErrorKind::usage, {"rank 1 of a group whose size was not said"},
                        [&] { job.join(1, -1); });
  runtime::expect_error(ErrorKind::usage, {"port 0"},
                        [] { Rendezvous::socket("127.0.0.1", 0, "a word"); });
  runtime::expect_error(ErrorKind::usage, {"without a token"},
                        [] { Rendezvous::socket("127.0.0.1", 1, ""); });
  for (const auto& take : std::vector<std::function<void(KeyValueStore&)>>{
           [](KeyValueStore& store) { store.set = nullptr; },
           [](KeyValueStore& store) { store.get = nullptr; },
           [](KeyValueStore& store) { store.wait = nullptr; }}) {
    KeyValueStore store = store_in(".");
    take(store);
    runtime::expect_error(ErrorKind::usage, {"a store without set, get or wait"},
                          [&] { Rendezvous::store(store, "key"); });
  }
}

}  // namespace
}  // namespace tilewright
