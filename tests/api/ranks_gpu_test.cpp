#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/ranks_kernels.h"
#include "compiler/device_tensors.h"
#include "examples/all_reduce.h"
#include "kernels/gpu.h"
#include "library/accuracy.h"
#include "tilewright/library_executable.h"
#include "tilewright/program.h"

// What is clean on simulated GPUs, on two that are there.
namespace tilewright {
namespace {

constexpr int kRanks = 2;

class RanksGpuTest : public test::HopperTest {
 protected:
  void SetUp() override {
    test::HopperTest::SetUp();
    if (!IsSkipped() && runtime::Device::count() < kRanks) {
      GTEST_SKIP() << "one GPU, and ranks take two";
    }
  }

  // What rank 0 has sent is in rank 1's Y after so many runs, each time with other numbers.
  static void send(const Kernel& kernel, DType dtype, int runs) {
    Program program("litmus", kRanks);
    const std::vector<Dim> shape{test::kSize, test::kSize};
    const Buffer x = program.buffer("x", dtype, shape), y = program.buffer("y", dtype, shape);
    const Buffer box = program.buffer("box", dtype, shape);
    program.on_each_rank([&](const Rank& rank) { rank.stream().launch(kernel, {x, y, box}); });
    ProgramExecutable executable = compile(program, "cuda");
    for (int turn = 0; turn < 10; ++turn) {
      ProgramMemory memory(program, 100 + turn);
      memory.at(y, 1) = HostTensor::poisoned(dtype, {test::kSize, test::kSize});
      executable.load(memory);
      executable.run(runs);
      executable.store(memory);
      for (std::int64_t i = 0; i < test::kSize * test::kSize; ++i) {
        ASSERT_EQ(memory.at(y, 1).flat(i), memory.at(x, 0).flat(i)) << turn << ", element " << i;
      }
    }
  }
};

TEST_F(RanksGpuTest, ReleaseAndAcquireOfTheSystemOrder) { send(test::Message{}.kernel(), f32, 50); }

TEST_F(RanksGpuTest, FencesOfTheSystemMakeRelaxedAccessesOrder) {
  test::Message message;
  message.signal.semantics = message.wait.semantics = Semantics::relaxed;
  message.signal_fence = message.wait_fence = Scope::system;
  send(message.kernel(), f32, 50);
}

TEST_F(RanksGpuTest, CopiesIntoAndOutOfWhatAPeerWrites) { send(test::Copied{}.kernel(), bf16, 1); }

TEST_F(RanksGpuTest, AnAllReduceHasTheSameBitsInAllRanks) {
  constexpr std::int64_t kRows = 1000, kColumns = examples::kColumns;
  const Kernel kernel = examples::all_reduce();
  Program program("all_reduce", kRanks);
  const Buffer x = program.buffer("x", f32, {kRows, kColumns});
  const Buffer y = program.buffer("y", f32, {kRows, kColumns});
  const Buffer parts = program.buffer("parts", f32, {2 * kRanks, kRows, kColumns});
  program.on_each_rank([&](const Rank& rank) { rank.stream().launch(kernel, {x, y, parts}); });
  ProgramExecutable executable = compile(program, "cuda");
  for (int turn = 0; turn < 10; ++turn) {
    ProgramMemory memory(program, 200 + turn);
    for (int rank = 0; rank < kRanks; ++rank) {
      memory.at(y, rank) = HostTensor::poisoned(f32, {kRows, kColumns});
    }
    executable.load(memory);
    executable.run(1 + 20 * turn);
    executable.store(memory);
    for (std::int64_t i = 0; i < kRows * kColumns; ++i) {
      const float sum =
          static_cast<float>(memory.at(x, 0).flat(i)) + static_cast<float>(memory.at(x, 1).flat(i));
      for (int rank = 0; rank < kRanks; ++rank) {
        ASSERT_EQ(memory.at(y, rank).flat(i), sum) << "rank " << rank << ", element " << i;
      }
    }
  }
}

// The library's operations over ranks on a caller's tensors: outputs poisoned before each of some
// rounds of runs in a row, against float64, and with the same bits in every round.
TEST_F(RanksGpuTest, OperationsOfTheLibrary) {
  const std::vector<std::string> product = {"m=300", "n=520", "k=328"};
  const std::vector<std::string> tokens = {"batch=2", "queries=77", "heads=6"};
  const auto with = [](std::vector<std::string> settings, const std::string& more) {
    settings.push_back(more);
    return settings;
  };
  for (const auto& [name, settings] : std::vector<std::pair<const char*, std::vector<std::string>>>{
           {"gemm_reduce_scatter", with(product, "parts=f32")},
           {"gemm_reduce_scatter", with(product, "bias=true")},
           {"gemm_reduce_scatter", with(product, "schedule=128x256_copied")},
           {"gemm_reduce_scatter", with(product, "schedule=128x256_reduced")},
           {"all_gather_gemm", with(product, "dtype=f16")},
           {"projection_all_to_all",
            {"batch=2", "tokens=77", "heads=6", "kv_heads=2", "bias=true"}},
           {"projection_all_to_all_varlen", {"tokens=300", "k=328", "heads=6", "kv_heads=1"}},
           {"all_to_all", with(tokens, "kv_heads=1")},
           {"all_to_all", with(tokens, "schedule=copy")},
           {"all_to_all_back", with(tokens, "dtype=f32")},
           {"all_to_all_back", with(tokens, "schedule=copy")},
           {"all_to_all_varlen", with(tokens, "keys=300")},
           {"all_to_all_varlen_back", tokens},
           {"all_gather", {"count=10000"}},
           {"reduce_scatter", {"count=10000"}},
           {"all_reduce", {"count=10000", "schedule=one_shot"}},
           {"all_reduce", {"count=100000", "schedule=two_shots"}},
           {"broadcast", {"count=10000", "root=1"}}}) {
    SCOPED_TRACE(testing::Message() << name << ", " << settings.back());
    library::Workload work = library::make_workload(find_kernel(name), settings, {}, 1);
    const LibraryExecutable executable = compile(*work.kernel, work.options, "cuda");
    const auto of_rank = static_cast<std::ptrdiff_t>(work.tensors.size()) / kRanks;
    std::optional<std::vector<HostTensor>> first;
    for (int round = 0; round < 5; ++round) {
      work.poison_outputs();
      std::vector<compiler::DeviceTensors> on_gpus;
      std::vector<TensorRef> tensors;
      for (int rank = 0; rank < kRanks; ++rank) {
        const auto from = work.tensors.begin() + rank * of_rank;
        on_gpus.emplace_back(std::vector<HostTensor>(from, from + of_rank), rank);
        for (const TensorRef& tensor : on_gpus.back().refs()) tensors.push_back(tensor);
      }
      for (int run = 0; run <= 10 * round; ++run) executable.run_on_gpus(tensors);
      for (std::size_t i = 0; i < work.tensors.size(); ++i) {
        const std::size_t own = i % static_cast<std::size_t>(of_rank);
        on_gpus[i / static_cast<std::size_t>(of_rank)].download(own, work.tensors[i]);
      }
      if (!first) first = work.tensors;
      EXPECT_EQ(work.tensors, *first) << round;
    }
    const library::Comparison comparison =
        library::compare(work, library::reference_of(work, library::Executed::by_hardware));
    EXPECT_TRUE(comparison.ok()) << comparison.text();
  }
}

}  // namespace
}  // namespace tilewright
