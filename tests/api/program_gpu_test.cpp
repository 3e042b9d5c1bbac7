#include <gtest/gtest.h>

#include <optional>

#include "common/programs.h"

namespace tilewright {
namespace {

// Nothing where the GPUs are not here, and why.
std::optional<ProgramExecutable> built(const Program& program, std::string& why) {
  try {
    return compile(program, "cuda");
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::unavailable) throw;
    why = error.what();
    return std::nullopt;
  }
}

void poison(ProgramMemory& memory, const Buffer& buffer, int rank) {
  HostTensor& tensor = memory.at(buffer, rank);
  tensor = HostTensor::poisoned(tensor.dtype(), tensor.shape());
}

TEST(ProgramGpuTest, TwoStreamsAndAnEvent) {
  test::TwoKernels two("second", /*event=*/true);
  std::string why;
  std::optional<ProgramExecutable> executable = built(two.program, why);
  if (!executable) GTEST_SKIP() << why;
  ProgramMemory memory(two.program);
  poison(memory, two.y, 0);
  poison(memory, two.z, 0);
  executable->load(memory);
  executable->run(3);
  executable->store(memory);
  for (std::int64_t i = 0; i < test::kRows * test::kColumns; ++i) {
    ASSERT_EQ(memory.at(two.z).flat(i), static_cast<float>(memory.at(two.x).flat(i) * 6)) << i;
  }
}

TEST(ProgramGpuTest, CopiesOfColumns) {
  Program program("columns");
  const Buffer x = program.buffer("x", i32, {3, 5, 8}), y = program.buffer("y", i32, {3, 5, 6});
  program.rank(0).stream().copy(y.on(0).box({0, 1, 2}, {3, 4, 4}),
                                x.on(0).box({0, 0, 3}, {3, 4, 4}));
  std::string why;
  std::optional<ProgramExecutable> executable = built(program, why);
  if (!executable) GTEST_SKIP() << why;
  ProgramMemory memory(program);
  for (std::int64_t i = 0; i < 3 * 5 * 8; ++i) memory.at(x).set_flat(i, static_cast<double>(i));
  executable->load(memory);
  executable->run(1);
  executable->store(memory);
  for (std::int64_t i = 0; i < 3 * 5 * 6; ++i) {
    const std::int64_t plane = i / 30, row = i / 6 % 5, column = i % 6;
    const bool copied = row >= 1 && column >= 2;
    EXPECT_EQ(memory.at(y).flat(i), copied ? 40 * plane + 8 * (row - 1) + column + 1 : 0) << i;
  }
}

TEST(ProgramGpuTest, RanksPushToEachOther) {
  test::Push push(/*waits=*/true, /*ranks=*/2);
  std::string why;
  std::optional<ProgramExecutable> executable = built(push.program, why);
  if (!executable) GTEST_SKIP() << why;
  ProgramMemory memory(push.program);
  for (int rank = 0; rank < 2; ++rank) {
    poison(memory, push.y, rank);
    poison(memory, push.z, rank);
  }
  executable->load(memory);
  executable->run(100);
  executable->store(memory);
  for (int rank = 0; rank < 2; ++rank) {
    for (std::int64_t i = 0; i < test::kRows * test::kColumns; ++i) {
      const auto pushed = static_cast<float>(memory.at(push.x, rank).flat(i));
      ASSERT_EQ(memory.at(push.z, 1 - rank).flat(i), pushed * 3) << i;
    }
  }
}

}  // namespace
}  // namespace tilewright
