#include "tilewright/kernels/link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error_text.h"

// What links are measured with moves every element, on simulated GPUs.
namespace tilewright::kernels {
namespace {

constexpr Transfer kAllTransfers[] = {Transfer::engine_push, Transfer::engine_pull,
                                      Transfer::thread_push, Transfer::thread_pull,
                                      Transfer::tma_push,    Transfer::tma_pull};
constexpr std::int64_t kLinkRows = 333;  // the last tile is not full

bool are_equal(const HostTensor& one, const HostTensor& other) {
  for (std::int64_t i = 0; i < one.elements(); ++i) {
    if (one.flat(i) != other.flat(i)) return false;
  }
  return true;
}

SimulationReport run(const Program& program, ProgramMemory& memory) {
  SimulationOptions options;
  options.schedules = 2;
  options.multiprocessors = 2;
  return simulate(program, memory, options);
}

TEST(LinkCopy, EveryWayMovesTheRows) {
  for (const Transfer how : kAllTransfers) {
    SCOPED_TRACE(static_cast<int>(how));
    LinkCopy copy{how, 3, 2, 0, false, false};
    const Program program = link_copy(copy);
    ProgramMemory memory(program, {{"rows", kLinkRows}}, 5);
    for (auto& of_rank : memory.tensors) of_rank[1] = HostTensor::poisoned(f32, of_rank[1].shape());
    const SimulationReport report = run(program, memory);
    ASSERT_TRUE(report.ok()) << report.faults.front().text;
    EXPECT_TRUE(are_equal(memory.tensors[0][1], memory.tensors[2][0]));
    EXPECT_FALSE(are_equal(memory.tensors[2][1], memory.tensors[0][0])) << "one way";
  }
}

TEST(LinkCopy, BothWaysAtOnce) {
  for (const Transfer how : kAllTransfers) {
    SCOPED_TRACE(static_cast<int>(how));
    const Program program = link_copy({how, 2, 0, 1, true, false});
    ProgramMemory memory(program, {{"rows", kLinkRows}}, 5);
    for (auto& of_rank : memory.tensors) of_rank[1] = HostTensor::poisoned(f32, of_rank[1].shape());
    const SimulationReport report = run(program, memory);
    ASSERT_TRUE(report.ok()) << report.faults.front().text;
    EXPECT_TRUE(are_equal(memory.tensors[1][1], memory.tensors[0][0]));
    EXPECT_TRUE(are_equal(memory.tensors[0][1], memory.tensors[1][0]));
  }
}

TEST(LinkSignal, GoesToAndFroAndComesToItsEnd) {
  for (const bool by_streams : {false, true}) {
    const Program program = link_signal({3, 2, 1, 4, by_streams});
    ProgramMemory memory(program);
    const SimulationReport report = run(program, memory);
    EXPECT_TRUE(report.ok()) << report.faults.front().text;
  }
}

TEST(Link, WrongRanksAreRefused) {
  EXPECT_THAT(test::usage_error_of([] {
                link_copy({Transfer::tma_push, 2, 0, 2, false, false});
              }),
              testing::HasSubstr("link_copy: from rank 0 to rank 2 of 2"));
  EXPECT_THAT(test::usage_error_of([] {
                link_signal({2, 1, 1, 1, false});
              }),
              testing::HasSubstr("from rank 1 to rank 1 of 2"));
  EXPECT_THAT(test::usage_error_of([] {
                link_signal({2, 0, 1, 0, false});
              }),
              testing::HasSubstr("rounds is 0"));
}

}  // namespace
}  // namespace tilewright::kernels
