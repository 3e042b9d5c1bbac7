#include "simulator/machine/word_history.h"

#include <gmock/gmock.h>

#include <regex>
#include <string>
#include <vector>

#include "simulator/litmus.h"
#include "simulator/machine_kernels.h"

// Words that warps share: what any of them finds there depends on the order of the work, or does
// not.
namespace tilewright::simulator {
namespace {

constexpr std::uint64_t kHistorySeeds = 40;

enum class Told { never, sometimes, always };

std::string text_of(const std::vector<std::string>& roles) {
  std::string body;
  for (std::size_t i = 0; i < roles.size(); ++i) {
    const std::string name(1, static_cast<char>('a' + i));
    // Values %60 to %69 are the role's own.
    const std::string own =
        std::regex_replace(roles[i], std::regex("%6"), fmt::format("%{}6", i + 1));
    body += role(name.c_str(), static_cast<int>(i), 1, own);
  }
  std::string text = litmus(body);
  ir::verify(ir::parse_text(text, "kernel.tw"));
  return text;
}

// Under how many seeds something depends on who comes first to a word; the runs are clean.
Told told(const std::vector<std::string>& roles) {
  const std::string text = text_of(roles);
  MachineOptions options;
  options.timing = true;
  std::uint64_t count = 0;
  for (options.seed = 0; options.seed < kHistorySeeds; ++options.seed) {
    const MachineReport report = run_litmus(text, options);
    EXPECT_TRUE(report.ok()) << "seed " << options.seed << ": " << first_message(report);
    EXPECT_EQ(report.timing, "");
    count += !report.words.empty();
  }
  return count == 0 ? Told::never : count < kHistorySeeds ? Told::sometimes : Told::always;
}

// Under how many seeds one lane changes a word that others of its warp wait for.
std::uint64_t lanes_that_wait(const std::vector<std::string>& roles) {
  const std::string text = text_of(roles);
  std::uint64_t count = 0;
  for (std::uint64_t seed = 0; seed < kHistorySeeds; ++seed) {
    MachineOptions options;
    options.seed = seed;
    const MachineReport report = run_litmus(text, options);
    count += !report.ok() && report.faults.front().kind == "deadlock" &&
             report.faults.front().missing == "warp_sync between them";
  }
  return count;
}

// At word 0, of the value %N.
std::string add(int value, const std::string& semantics = "release") {
  return fmt::format("    reduce_add %90, %0, %{} {{semantics = \"{}\", scope = \"gpu\"}}\n", value,
                     semantics);
}
std::string wait(int value, const std::string& compare = "ge") {
  return fmt::format(
      "    wait_flag %90, %0, %{} {{compare = \"{}\", semantics = \"acquire\", scope = \"gpu\"}}\n",
      value, compare);
}
const std::string kSubtract =
    "    %60: i32 = sub %0, %1\n    reduce_add %90, %0, %60 {semantics = \"release\", scope = "
    "\"gpu\"}\n";
const std::string kSync = "    warp_sync\n";
const std::string kSet = "    store_index %90, %0, %1 {semantics = \"release\", scope = \"gpu\"}\n";

TEST(WordHistory, AdditionsAlone) {
  EXPECT_EQ(told({add(1), add(2), add(1)}), Told::never);
  EXPECT_EQ(told({add(1), kSet}), Told::always);
}

// Nobody takes the number that the addition gives.
TEST(WordHistory, WhatIsTaken) {
  const std::string take =
      "    %60: i32 = atomic_add %90, %0, %1 {semantics = \"relaxed\", scope = \"gpu\"}\n";
  const std::string use = "    shared_store %22, %5, %60\n";
  EXPECT_EQ(told({take, take}), Told::never);
  EXPECT_EQ(told({take + use, take}), Told::always);
  EXPECT_EQ(told({take + use}), Told::never);
}

// The next number comes once the one before has been taken, by the lane that says so.
TEST(WordHistory, WhatIsHandedOver) {
  const std::string load =
      "    %60: i32 = load_index %90, %0 {semantics = \"acquire\", scope = \"gpu\"}\n"
      "    shared_store %22, %5, %60\n";
  const std::string answer =
      "    reduce_add %90, %1, %1 {semantics = \"release\", scope = \"gpu\"}\n";
  const std::string hear =
      "    wait_flag %90, %1, %1 {compare = \"ge\", semantics = \"acquire\", scope = \"gpu\"}\n";
  EXPECT_EQ(told({add(1) + hear + add(1), wait(1) + load + answer}), Told::never);
  EXPECT_EQ(told({add(1) + add(1), wait(1) + load + answer}), Told::always);
  // A relaxed answer comes behind the number as well, which it was made of.
  const std::string quiet =
      "    reduce_add %90, %1, %1 {semantics = \"relaxed\", scope = \"gpu\"}\n";
  EXPECT_EQ(told({add(1) + hear + add(1), wait(1) + load + quiet}), Told::never);
  // Without the number there may be lanes that still wait for it.
  EXPECT_EQ(told({add(1) + hear + kSync + kSubtract, wait(1) + load + answer}), Told::never);
  EXPECT_EQ(told({add(1) + hear + kSync + kSubtract, wait(1) + answer}), Told::always);
  // The lanes of another warp do not meet with them.
  EXPECT_EQ(told({add(1) + hear + kSync + kSubtract, wait(1) + load + answer, wait(0)}),
            Told::always);
}

TEST(WordHistory, AWaitForAllThatIsAdded) {
  EXPECT_EQ(told({add(1), wait(1)}), Told::never);
  EXPECT_EQ(told({add(1), add(1), wait(2)}), Told::never);
  EXPECT_EQ(told({add(1), add(2), wait(3)}), Told::never);
  // One comes behind another that waits for it.
  EXPECT_EQ(told({add(1), wait(1) + add(1), wait(2)}), Told::never);
}

// Whichever has come first is enough, or is too much.
TEST(WordHistory, AWaitForSomeOfWhatIsAdded) {
  EXPECT_EQ(told({add(1), add(1), wait(1)}), Told::always);
  EXPECT_EQ(told({add(1), add(1), add(1), wait(2)}), Told::always);
  EXPECT_EQ(told({add(2), add(1), wait(2)}), Told::always);
  EXPECT_EQ(told({add(2), add(1), wait(1)}), Told::always);
  EXPECT_EQ(told({add(1), add(1, "relaxed"), wait(1)}), Told::always);
}

// It may be over before the wait has seen it, or may not.
TEST(WordHistory, AWaitForANumberThatGoes) {
  EXPECT_EQ(told({add(1), wait(1, "eq")}), Told::always);
  EXPECT_EQ(told({kSet, wait(1)}), Told::always);
  EXPECT_EQ(told({add(2), wait(1), kSubtract}), Told::always);
  // What takes it away knows of the wait, of all lanes.
  EXPECT_EQ(told({add(1), wait(1) + kSync + kSubtract}), Told::never);
  EXPECT_EQ(lanes_that_wait({add(1), wait(1) + kSubtract}), kHistorySeeds);
}

// What is ordered behind all that the wait needs comes too late, or makes no difference to it where
// it hands nothing on.
TEST(WordHistory, WhatComesBehindWhatAWaitNeeds) {
  const std::string later = wait(1) + add(1, "relaxed");
  EXPECT_EQ(told({add(1), later, wait(1)}), Told::never);
  EXPECT_EQ(told({add(1), later, later, wait(1)}), Told::never);
  // In some schedules the wait acquires what in others it does not.
  EXPECT_EQ(told({add(1), wait(1) + add(1), wait(1)}), Told::sometimes);
}

// All add, wait for each other and leave; the last one takes back what all have added.
std::string leave(const std::string& last_finds, const std::string& then,
                  const std::string& sync = kSync, int added = 1) {
  return add(1) + wait(2) + sync + fmt::format("    %60: i32 = atomic_add %90, %0, %{} ", added) +
         "{semantics = \"relaxed\", scope = \"gpu\"}\n    %61: i32 = " + last_finds +
         "\n    %62: bool = eq %60, %61\n    if_then %62 () {\n"
         "      %63: i32 = sub %0, %4\n" +
         then + "      yield\n    } () {\n      yield\n    }\n";
}
const std::string kTakeBack =
    "      %64: i32 = atomic_add %90, %0, %63 {semantics = \"relaxed\", scope = \"gpu\"}\n";

TEST(WordHistory, WhoIsTheLastToLeave) {
  const std::string three = leave("sub %5, %2", kTakeBack);
  EXPECT_EQ(told({three, three}), Told::never);
  // Others find out, or nobody is the last one, or who that is makes a difference.
  EXPECT_EQ(told({three, three, wait(0)}), Told::always);
  EXPECT_EQ(told({three, leave("sub %9, %2", kTakeBack)}), Told::always);
  EXPECT_EQ(told({leave("sub %5, %1", kTakeBack), leave("sub %5, %1", kTakeBack)}), Told::always);
  const std::string alone = leave("sub %5, %2", kTakeBack, "");
  EXPECT_EQ(lanes_that_wait({alone, alone}), kHistorySeeds);
  // The last one finds 3 where it is the one that adds 2.
  EXPECT_EQ(told({leave("sub %5, %2", kTakeBack, kSync, 2), three}), Told::always);
  const std::string store = "      shared_store %22, %5, %63\n";
  EXPECT_EQ(told({leave("sub %5, %2", store + kTakeBack), three}), Told::always);
  EXPECT_EQ(told({leave("sub %5, %2", kTakeBack + store), three}), Told::always);
}

}  // namespace
}  // namespace tilewright::simulator
