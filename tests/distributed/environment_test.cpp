#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/runtime_test.h"
#include "tilewright/distributed.h"

namespace tilewright {
namespace {

using runtime::expect_error;
using runtime::ScopedVariable;

TEST(RankEnvironment, IsNoneWithoutALauncher) { EXPECT_FALSE(rank_environment()); }

TEST(RankEnvironment, OfTorchrun) {
  const ScopedVariable rank("RANK", "5"), size("WORLD_SIZE", "8"), local("LOCAL_RANK", "1"),
      local_size("LOCAL_WORLD_SIZE", "4"), address("MASTER_ADDR", "node1"),
      port("MASTER_PORT", "29500"), job("TORCHELASTIC_RUN_ID", "seven");
  const std::optional<RankEnvironment> read = rank_environment();
  ASSERT_TRUE(read);
  EXPECT_EQ(read->launcher, "torchrun");
  EXPECT_EQ(read->rank, 5);
  EXPECT_EQ(read->size, 8);
  EXPECT_EQ(read->local_rank, 1);
  EXPECT_EQ(read->local_size, 4);
  EXPECT_EQ(read->address, "node1");
  EXPECT_EQ(read->port, 29500);
  EXPECT_EQ(read->job, "node1:29500:seven:0");
  // Started again it is another job: what is left of the first one must not be met.
  const ScopedVariable restarts("TORCHELASTIC_RESTART_COUNT", "2");
  EXPECT_EQ(rank_environment()->job, "node1:29500:seven:2");
}

TEST(RankEnvironment, OfOpenMpi) {
  const ScopedVariable rank("OMPI_COMM_WORLD_RANK", "1"), size("OMPI_COMM_WORLD_SIZE", "2"),
      local("OMPI_COMM_WORLD_LOCAL_RANK", "0"), local_size("OMPI_COMM_WORLD_LOCAL_SIZE", "1"),
      job("PMIX_NAMESPACE", "prterun-node1-77@1");
  const std::optional<RankEnvironment> read = rank_environment();
  ASSERT_TRUE(read);
  EXPECT_EQ(read->launcher, "mpirun");
  EXPECT_EQ(read->rank, 1);
  EXPECT_EQ(read->local_rank, 0);
  EXPECT_EQ(read->job, "prterun-node1-77@1");
}

TEST(RankEnvironment, OfPmiWithoutNumbersOfTheMachine) {
  const ScopedVariable rank("PMI_RANK", "1"), size("PMI_SIZE", "2");
  const std::optional<RankEnvironment> read = rank_environment();
  ASSERT_TRUE(read);
  EXPECT_EQ(read->launcher, "PMI");
  EXPECT_EQ(read->local_rank, 1);
  EXPECT_EQ(read->local_size, 2);
}

TEST(RankEnvironment, MistakesNameTheVariable) {
  const ScopedVariable rank("RANK", "1");
  expect_error(ErrorKind::usage, {"RANK is set, and WORLD_SIZE is not"}, rank_environment);
  const ScopedVariable size("WORLD_SIZE", "two");
  expect_error(ErrorKind::usage, {"WORLD_SIZE is \"two\""}, rank_environment);
  const ScopedVariable small("WORLD_SIZE", "1");
  expect_error(ErrorKind::usage, {"RANK is 1, and WORLD_SIZE is 1"}, rank_environment);
  const ScopedVariable enough("WORLD_SIZE", "4"), local("LOCAL_RANK", "3"),
      local_size("LOCAL_WORLD_SIZE", "2");
  expect_error(ErrorKind::usage, {"LOCAL_RANK is 3, and LOCAL_WORLD_SIZE is 2"}, rank_environment);
}

}  // namespace
}  // namespace tilewright
