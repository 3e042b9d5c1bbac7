#include "library/workload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "common/error_text.h"
#include "common/temporary_folder.h"
#include "library/tensor_file.h"

namespace tilewright::library {
namespace {

using test::TemporaryFolder;
using test::usage_error_of;
using testing::AllOf;
using testing::HasSubstr;

const LibraryKernel& gemm() { return find_kernel("gemm"); }

Workload small(std::uint64_t seed = 0) {
  return make_workload(gemm(), {"m=2", "n=3", "k=4", "dtype=f32"}, {}, seed);
}

TEST(WorkloadTest, InputsAreRandomByTheSeedAndOutputsPoisoned) {
  const Workload workload = small(1);
  EXPECT_EQ(workload.tensors[0].shape(), (std::vector<std::int64_t>{2, 4}));
  EXPECT_TRUE(std::isnan(workload.tensors[2].flat(5)));
  EXPECT_EQ(workload.tensors[0], small(1).tensors[0]);
  EXPECT_NE(workload.tensors[0], small(7).tensors[0]);
  EXPECT_NE(workload.tensors[0].flat(0), workload.tensors[1].flat(0));
}

TEST(WorkloadTest, SizesAreThoseOfTheFiles) {
  const TemporaryFolder folder;
  write_tensor(folder / "a.npy", HostTensor::random_normal(f32, {5, 7}, 0));
  write_tensor(folder / "b.npy", HostTensor::random_normal(f32, {6, 7}, 1));
  const Workload workload =
      make_workload(gemm(), {"dtype=f32"}, {{"A", folder / "a.npy"}, {"B", folder / "b.npy"}}, 0);
  EXPECT_EQ(workload.tensors[2].shape(), (std::vector<std::int64_t>{5, 6}));
  EXPECT_EQ(workload.options.integer("k"), 7);
}

TEST(WorkloadTest, OffsetsAscendAndTellTheNumberOfSequences) {
  const LibraryKernel& kernel = find_kernel("attention_varlen_forward");
  const std::vector<std::string> settings = {"queries=100", "keys=50", "heads=1"};
  const Workload workload = make_workload(kernel, settings, {}, 5);
  const HostTensor &queries = workload.tensors[3], &keys = workload.tensors[4];
  EXPECT_EQ(queries.shape(), (std::vector<std::int64_t>{5}));
  EXPECT_EQ(queries.flat(0), 0);
  EXPECT_EQ(queries.flat(4), 100);
  EXPECT_EQ(keys.flat(4), 50);
  for (int i = 0; i < 4; ++i) {
    EXPECT_LE(queries.flat(i), queries.flat(i + 1));
    EXPECT_EQ(keys.flat(i), std::floor(queries.flat(i) / 2)) << "cut at the same places";
  }
  EXPECT_NE(queries, make_workload(kernel, settings, {}, 6).tensors[3]);

  const TemporaryFolder folder;
  write_tensor(folder / "ends.npy", HostTensor::from_values(i32, {3}, {0, 10, 100}));
  const Workload read = make_workload(kernel, settings, {{"cu_seqlens_q", folder / "ends.npy"}}, 5);
  EXPECT_EQ(read.options.integer("batch"), 2);
  EXPECT_EQ(read.tensors[4].shape(), (std::vector<std::int64_t>{3}));
}

TEST(WorkloadTest, SinksAreThereIfTheyAreAskedFor) {
  const LibraryKernel& kernel = find_kernel("attention_forward");
  EXPECT_EQ(make_workload(kernel, {"queries=8"}, {}, 0).tensors.size(), 5u);
  const Workload with = make_workload(kernel, {"queries=8", "heads=3", "sinks=true"}, {}, 0);
  ASSERT_EQ(with.tensors.size(), 6u);
  EXPECT_EQ(with.tensors[5].shape(), (std::vector<std::int64_t>{3}));
  EXPECT_EQ(with.inputs().size(), 4u);
  const TemporaryFolder folder;
  write_tensor(folder / "s.npy", HostTensor::zeros(f32, {8}));
  EXPECT_THAT(
      usage_error_of([&] {
        make_workload(kernel, {"queries=8"}, {{"sinks", folder / "s.npy"}}, 0);
      }),
      AllOf(HasSubstr("has no input sinks while sinks is false"), HasSubstr("set sinks=true")));
}

TEST(WorkloadTest, FilesThatDisagreeAreErrors) {
  const TemporaryFolder folder;
  write_tensor(folder / "a.npy", HostTensor::zeros(f32, {5, 7}));
  write_tensor(folder / "b.npy", HostTensor::zeros(f32, {6, 8}));
  write_tensor(folder / "c.npy", HostTensor::zeros(f32, {5}));
  const auto error = [&](const std::vector<std::string>& settings,
                         const std::map<std::string, std::string>& files) {
    return usage_error_of([&] { make_workload(gemm(), settings, files, 0); });
  };
  EXPECT_THAT(error({"dtype=f32"}, {{"A", folder / "a.npy"}, {"B", folder / "b.npy"}}),
              AllOf(HasSubstr("k is 8 in B and 7 in A"), HasSubstr("a.npy")));
  EXPECT_THAT(error({"dtype=f32"}, {{"A", folder / "c.npy"}}),
              AllOf(HasSubstr("has shape {5}, and tensor A has 2 axes: {m, k}")));
  EXPECT_THAT(error({"dtype=f32", "m=6"}, {{"A", folder / "a.npy"}}),
              AllOf(HasSubstr("has shape {5, 7}, and the options make tensor A {6, 7}"),
                    HasSubstr("do not set m, k: sizes are then those of the file")));
  EXPECT_THAT(error({}, {{"D", folder / "a.npy"}}),
              AllOf(HasSubstr("gemm has no input 'D'"), HasSubstr("A, B")));
  EXPECT_THAT(error({}, {{"C", folder / "a.npy"}}), HasSubstr("gemm has no input 'C'"));
  EXPECT_THAT(error({"dtype=f16"}, {{"A", folder / "a.npy"}}),
              HasSubstr("holds <f4, and tensor A is f16"));
}

TEST(WorkloadTest, SizesThatOverflowOrExceedMemoryAreErrors) {
  EXPECT_THAT(usage_error_of([] {
                make_workload(gemm(), {"m=2147483647", "n=2147483647", "k=2147483647"}, {}, 0);
              }),
              AllOf(HasSubstr("A {2147483647, 2147483647}"), HasSubstr("GB of memory"),
                    HasSubstr("set smaller sizes (m, k)")));
}

TEST(WorkloadTest, EmptyTensorsAreValid) {
  EXPECT_EQ(make_workload(gemm(), {"m=0", "n=3", "k=4"}, {}, 0).tensors[2].elements(), 0);
}

}  // namespace
}  // namespace tilewright::library
