#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error_text.h"
#include "common/schedules.h"
#include "ir/program_text.h"
#include "tilewright/compile.h"
#include "tilewright/program.h"

// What ranks send each other at one point of their streams.
namespace tilewright {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Every rank sends x to the next one, which hands on what has come.
struct HandedOn {
  explicit HandedOn(int ranks = 3) : program("handed_on", ranks) {
    x = program.buffer("x", f32, {64});
    const Buffer y = program.buffer("y", f32, {64});
    z = program.buffer("z", f32, {64});
    program.on_each_rank([&](const Rank& rank) {
      rank.stream().exchange("first", {{y.on(rank.next()), x}}, {rank.next(-1)});
      rank.stream().exchange("second", {{z.on(rank.next()), y}}, {rank.next(-1)});
    });
  }
  Program program;
  Buffer x, z;
};

TEST(Exchanges, BringWhatIsSent) {
  HandedOn handed;
  test::expect_clean(handed.program, {6, 3}, [&](ProgramMemory& memory) {
    for (int rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(memory.at(handed.z, rank), memory.at(handed.x, (rank + 1) % 3));
    }
  });
}

TEST(Exchanges, HaveAText) {
  const HandedOn handed(2);
  const std::string whole = ir::to_text(handed.program.finish());
  EXPECT_EQ(ir::to_text(ir::parse_program(whole, "program.tw")), whole);
  EXPECT_THAT(whole, HasSubstr("exchange \"second\""));
}

// A program of three ranks, whose rank 0 comes so, and the others do not.
std::string refused(const std::vector<int>& to, const std::vector<int>& from, int sends_of = -1) {
  return test::usage_error_of([&] {
    Program program("refused", 3);
    const Buffer x = program.buffer("x", f32, {64}), y = program.buffer("y", f32, {64});
    std::vector<Sent> sent;
    for (const int rank : to) sent.push_back({y.on(rank), sends_of < 0 ? Part(x) : x.on(sends_of)});
    program.rank(0).stream().exchange("met", sent, from);
    compile(program, "interpreter");
  });
}

TEST(Exchanges, WhatDoesNotFitIsAnError) {
  EXPECT_THAT(refused({0}, {}), HasSubstr("exchange: rank 0 sends to rank 0"));
  EXPECT_THAT(refused({}, {3}), HasSubstr("exchange: rank 0 gets from rank 3"));
  EXPECT_THAT(refused({1}, {}, 2), HasSubstr("exchange: rank 0 sends what rank 2 has"));
  EXPECT_THAT(refused({1}, {}),
              AllOf(HasSubstr("exchanges_test.cpp"),
                    HasSubstr("rank 0 sends to rank 1, which does not come to it")));
  EXPECT_THAT(refused({}, {2}), HasSubstr("rank 0 gets from rank 2, which does not come to it"));
  EXPECT_THAT(test::usage_error_of([] {
                Program program("one_way", 2);
                const Buffer x = program.buffer("x", f32, {64});
                program.on_each_rank([&](const Rank& rank) {
                  const int other = rank.next();
                  rank.stream().exchange("met", {{x.on(other).rows(0, 32), x.rows(32, 32)}}, {});
                });
                compile(program, "interpreter");
              }),
              HasSubstr("exchange met: rank 0 sends to rank 1, which gets nothing from it"));
  EXPECT_THAT(test::usage_error_of([] {
                const HandedOn handed(2);
                handed.program.rank(1).stream().exchange("first", {}, {0});
              }),
              HasSubstr("exchange: rank 1 comes to the exchange first twice in a run"));
}

}  // namespace
}  // namespace tilewright
