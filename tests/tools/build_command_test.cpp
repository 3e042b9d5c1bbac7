#include <gtest/gtest.h>

#include "run_command.h"

namespace tilewright::test {
namespace {

TEST(BuildCommand, NamesWhatItDoesNotTake) {
  expect_failure("build gemm --target cpu --out /tmp/nowhere", 2,
                 {"target cpu alone has no form in C", "sm_90a,cpu"});
  expect_failure("build gemm --target sm_90a,interpreter --out /tmp/nowhere", 2,
                 {"target interpreter has no form in C", "sm_90a,sm_100a,cpu"});
  expect_failure("build gemm --target sm_90a,cpu,cpu --out /tmp/nowhere", 2,
                 {"target cpu is named twice"});
  expect_failure("build gemm --target sm_90a,sm_90a --out /tmp/nowhere", 2,
                 {"target sm_90a is named twice"});
  expect_failure("build gemm --target sm_90a", 2, {"--out"});
  expect_failure("build gemm --target sm_90a --out /tmp/nowhere --sizes p=3", 2,
                 {"gemm has no length 'p'", "m, n, k"});
  expect_failure("build gemm_reduce_scatter --target sm_90a --out /tmp/nowhere", 2,
                 {"it runs on several ranks"});
  expect_failure("build nothing --target sm_90a --out /tmp/nowhere", 2,
                 {"there is no kernel 'nothing'"});
}

}  // namespace
}  // namespace tilewright::test
