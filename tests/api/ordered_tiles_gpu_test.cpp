#include <gtest/gtest.h>

#include <vector>

#include "common/barrier_kernels.h"
#include "common/ordered_tiles_kernel.h"
#include "compiler/device_tensors.h"
#include "kernels/gpu.h"
#include "tilewright/compile.h"

// Elements in an order of PTX, barriers, and waits of streams, on GPUs that are there.
namespace tilewright {
namespace {

class OrderedTilesGpuTest : public test::HopperTest {};

TEST_F(OrderedTilesGpuTest, AddAndFindWhatWasThereBefore) {
  for (const DType dtype : {i32, u32, i64, f32, f16, bf16}) {
    for (const test::OrderedPlace& place : test::ordered_places()) {
      SCOPED_TRACE(testing::Message() << name_of(dtype) << ", " << place.columns << " columns of "
                                      << place.width << " from " << place.base);
      test::OrderedSums sums(dtype, place);
      std::vector<HostTensor> tensors = {sums.X, sums.memory, sums.before};
      compiler::DeviceTensors on_device(tensors);
      std::vector<TensorRef> refs = on_device.refs();
      refs[1] = sums.Y(static_cast<std::byte*>(refs[1].data));
      compile(test::add_in_order(dtype, place.columns), "cuda").run(refs);
      on_device.synchronize();
      on_device.download(tensors);
      sums.memory = tensors[1];
      sums.before = tensors[2];
      EXPECT_EQ(sums.mistake(), "");
    }
  }
}

void expect_passed(const Kernel& kernel, int ranks) {
  test::PassOn passes(kernel, ranks);
  ProgramExecutable executable = compile(passes.program, "cuda");
  for (int turn = 0; turn < 5; ++turn) {
    ProgramMemory memory(passes.program, 100 + turn);
    executable.load(memory);
    executable.run(200);
    executable.store(memory);
    for (int rank = 0; rank < ranks; ++rank) {
      EXPECT_TRUE(passes.is_passed(memory, rank, (rank + 1) % ranks)) << turn << ", rank " << rank;
    }
  }
}

TEST_F(OrderedTilesGpuTest, CtasOfTheGridMeet) {
  expect_passed(test::pass_on<GridBarrier>(false, 2), 1);
}

TEST_F(OrderedTilesGpuTest, CtasOfAllRanksMeet) {
  if (runtime::Device::count() < 2) GTEST_SKIP() << "one GPU, and ranks take two";
  expect_passed(test::pass_on<RankBarrier>(true, 2), 2);
}

TEST_F(OrderedTilesGpuTest, StreamsWaitOnAnyComparison) {
  Program program("compares");
  const Buffer x = program.buffer("x", i32, {6}), y = program.buffer("y", i32, {6});
  const Buffer word = program.signals("word", 2);
  const Stream counts = program.rank(0).stream("counts"), waits = program.rank(0).stream("waits");
  const std::pair<Compare, int> comparisons[] = {{Compare::eq, 1}, {Compare::ne, 1},
                                                 {Compare::gt, 2}, {Compare::ge, 4},
                                                 {Compare::lt, 0}, {Compare::le, -2}};
  constexpr int kWritten[] = {1, 2, 3, 4, -1, -2};
  for (int i = 0; i < 6; ++i) {
    // The next number comes when this one has been seen.
    counts.write(word[0], kWritten[i]);
    counts.wait(word[1], Compare::eq, i + 1);
    waits.wait(word[0], comparisons[i].first, comparisons[i].second);
    waits.copy(y.rows(i, 1), x.rows(i, 1));
    waits.write(word[1], i + 1);
  }
  ProgramExecutable executable = compile(program, "cuda");
  ProgramMemory memory(program);
  for (int i = 0; i < 6; ++i) memory.at(x).set_flat(i, i + 10);
  executable.load(memory);
  executable.run(1);
  executable.store(memory);
  EXPECT_EQ(memory.at(y), memory.at(x));
}

}  // namespace
}  // namespace tilewright
