#include <algorithm>

#include "simulator/litmus.h"
#include "simulator/machine/launch.h"
#include "simulator/machine/schedule.h"

// Who goes next: runs are functions of the seed, and delays count through schedules.
namespace tilewright::simulator {
namespace {

struct Result {
  std::int64_t operations = 0, choices = 0;
  std::vector<std::string> faults;
  std::vector<std::int32_t> output;
  bool operator==(const Result& other) const {
    return operations == other.operations && choices == other.choices && faults == other.faults &&
           output == other.output;
  }
};

Result execute(const std::string& text, Search search, std::uint64_t seed) {
  MachineTensor x("X", DType::i32, {64});
  std::fill(x.bytes.begin(), x.bytes.end(), std::byte{0});
  MachineTensor a("A", DType::bf16, {16, 16}), y("Y", DType::bf16, {16, 16});
  a.randomise(1);
  y.randomise(2);
  MachineOptions options;
  options.search = search;
  options.seed = seed;
  options.stop_at_first = false;
  const MachineReport report = run(text, {&x, &a, &y}, options);
  Result result{report.operations, report.choices, {}, {}};
  for (std::size_t i = 0; i < 64; ++i) result.output.push_back(x.integer(i));
  for (const Fault& fault : report.faults) {
    result.faults.push_back(fault.message + fault.missing);
  }
  return result;
}

// Each warp takes a ticket and leaves a mark under its number: the order of the warps shows.
std::string tickets() {
  std::string roles;
  for (int warp = 0; warp < 4; ++warp) {
    const int first = 60 + 4 * warp;
    roles += role(("w" + std::to_string(warp)).c_str(), warp, 1,
                  fmt::format("    %{0}: i32 = atomic_add %90, %0, %1\n"
                              "    %{1}: i32 = add %{0}, %1\n"
                              "    %{2}: i32 = atomic_add %90, %{1}, %{3}\n",
                              first, first + 1, first + 2, warp + 1));
  }
  return litmus(roles);
}

TEST(Schedules, TheSameSeedGivesTheSameRun) {
  // With and without faults.
  const std::string racing =
      changed(tickets(), "    %61: i32 = add %60, %1\n",
              "    %61: i32 = add %60, %1\n    %77: i32 = load_index %90, %0\n");
  for (const Search search : {Search::random, Search::delays, Search::held}) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      EXPECT_EQ(execute(tickets(), search, seed), execute(tickets(), search, seed));
      const Result faulty = execute(racing, search, seed);
      EXPECT_FALSE(faulty.faults.empty());
      EXPECT_EQ(faulty, execute(racing, search, seed));
    }
  }
}

TEST(Schedules, SeedsDiffer) {
  std::set<std::vector<std::int32_t>> orders;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    orders.insert(execute(tickets(), Search::random, seed).output);
  }
  EXPECT_GE(orders.size(), 12u) << "of 24 orders of four warps";
}

TEST(Schedules, DelaysCountThroughAllOrdersThatTheyReach) {
  const std::int64_t choices = execute(tickets(), Search::delays, 0).choices;
  const auto count = static_cast<std::uint64_t>(1 + choices * (choices + 1) / 2);
  ASSERT_GT(count, 20u);
  std::set<std::vector<std::int32_t>> orders;
  for (std::uint64_t seed = 0; seed < count; ++seed) {
    const Result result = execute(tickets(), Search::delays, seed);
    EXPECT_TRUE(result.faults.empty());
    orders.insert(result.output);
  }
  // The warps come one after the other where nobody is delayed.
  const auto in_order = execute(tickets(), Search::delays, 0).output;
  for (int warp = 0; warp < 4; ++warp) EXPECT_EQ(in_order[warp + 1], warp + 1);
  // Two delays carry any warp behind one or two others; they cannot reverse all four.
  EXPECT_GE(orders.size(), 6u);
  EXPECT_LE(orders.size(), 24u);
}

// Warp a's second look at the counter must fall between b's two additions: an interleaving that
// needs a to be passed over once, and b once, each at one instant.
std::string particular() {
  return litmus(
      role("a", 0, 1,
           "    %60: i32 = atomic_add %90, %1, %1\n    %61: i32 = atomic_add %90, %0, %0\n"
           "    %62: bool = eq %61, %1\n    if_then %62 () {\n"
           "      mbarrier_wait %20, %0, %0\n      yield\n    } () {\n      yield\n    }\n") +
      role("b", 1, 1,
           "    %70: i32 = atomic_add %90, %0, %1\n    %71: i32 = atomic_add %90, %2, %1\n"
           "    %72: i32 = atomic_add %90, %0, %1\n"));
}

TEST(Schedules, DelaysFindTheFaultThatNeedsOneOfThem) {
  ASSERT_TRUE(execute(particular(), Search::delays, 0).faults.empty());
  const std::int64_t choices = execute(particular(), Search::delays, 0).choices;
  const auto count = static_cast<std::uint64_t>(1 + choices * (choices + 1) / 2);
  std::vector<std::uint64_t> found;
  for (std::uint64_t seed = 0; seed < count; ++seed) {
    if (!execute(particular(), Search::delays, seed).faults.empty()) found.push_back(seed);
  }
  ASSERT_FALSE(found.empty());
  EXPECT_LT(found.size(), count / 4) << "most of " << count << " schedules do without";
  EXPECT_THAT(execute(particular(), Search::delays, found.front()).faults.front(),
              ::testing::HasSubstr("deadlock"));
}

// Two arrivals of warp a let warp c write what b may still read, if b has not arrived so far.
TEST(Schedules, AWarpIsHeldBeforeEachOfTheArrivals) {
  LitmusSetup setup;
  setup.arrivals = 2;
  const std::string meet = "    warp_sync\n";
  const std::string text =
      litmus(role("b", 0, 1, kLoad + meet + kArrive) + role("a", 1, 1, meet + kArrive + kArrive) +
                 role("c", 2, 1, kWait + kStore),
             setup);
  const Result none = execute(text, Search::held, UINT64_MAX);
  EXPECT_TRUE(none.faults.empty());
  ASSERT_EQ(none.choices, 3);
  EXPECT_THAT(execute(text, Search::held, 0).faults.front(), ::testing::HasSubstr("race"));
  EXPECT_TRUE(execute(text, Search::held, 1).faults.empty());
  EXPECT_TRUE(execute(text, Search::held, 2).faults.empty());
}

// Who goes on of two streams that always can, in the first choices of each seed: how often it is
// another one than before. Each step of a stream is an event of its own.
TEST(Schedules, AStreamIsOneAgentThatFallsBehind) {
  constexpr int kSeeds = 200, kChoices = 40;
  int steady = 0, fallen = 0;
  for (int seed = 0; seed < kSeeds; ++seed) {
    Schedule schedule(Search::random, static_cast<std::uint64_t>(seed));
    std::vector<Warp*> warps;
    int before = -1, switches = 0;
    for (int i = 0; i < kChoices; ++i) {
      std::vector<Event> events(2);
      for (int stream = 0; stream < 2; ++stream) {
        events[stream].kind = Event::Kind::stream;
        events[stream].stream = stream;
      }
      const Schedule::Choice choice = schedule.next(warps, events);
      ASSERT_TRUE(choice.event);
      const int stream = events[choice.index].stream;
      switches += before >= 0 && stream != before;
      before = stream;
    }
    // The other seeds draw uniformly.
    if (switches > 4) continue;
    ++steady;
    fallen += switches > 0;
  }
  EXPECT_GT(steady, kSeeds / 3);
  EXPECT_GT(fallen, steady * 3 / 5);
}

// Below what whole launches do: a warp is always there and never waits.
TEST(Schedules, SomeStreamsStandBelowAllWarps) {
  int last = 0, first = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Schedule schedule(Search::random, seed);
    if (!schedule.until_seen()) continue;  // uniform
    Warp warp;
    std::vector<Warp*> warps{&warp};
    int of_stream = 0;
    for (int i = 0; i < 4; ++i) {
      warp.rank = 0;  // another warp each time
      std::vector<Event> events(1);
      events[0].kind = Event::Kind::stream;
      of_stream += schedule.next(warps, events).event;
    }
    last += of_stream == 0;
    first += of_stream > 0;
  }
  EXPECT_GT(last, first / 2);
  EXPECT_GT(first, last / 4);
}

}  // namespace
}  // namespace tilewright::simulator
