#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/error_text.h"
#include "kernels/paged_alone.h"
#include "library/accuracy.h"
#include "tilewright/compile.h"
#include "tilewright/kernels/attention_paged.h"
#include "tilewright/library_executable.h"

// fixed_split_size: what a sequence gets does not depend on what else is in the batch.
namespace tilewright {
namespace {

struct AloneCase {
  const char* target;
  const char* schedule;
  const char* kernel;
  std::vector<std::string> settings;
};
std::ostream& operator<<(std::ostream& out, const AloneCase& each) {
  out << each.kernel << " on " << each.target << " schedule=" << each.schedule;
  for (const std::string& setting : each.settings) out << " " << setting;
  return out;
}

library::Workload batch_of(const AloneCase& c, const char* split_size) {
  std::vector<std::string> settings = c.settings;
  settings.emplace_back(std::string("schedule=") + c.schedule);
  settings.emplace_back(std::string("fixed_split_size=") + split_size);
  return library::make_workload(find_kernel(c.kernel), settings, {}, 5);
}

void run_on(library::Workload& work, const char* target) {
  std::vector<TensorRef> tensors;
  for (HostTensor& tensor : work.tensors) tensors.push_back(ref(tensor));
  compile(*work.kernel, work.options, target).run(tensors);
}

class PagedAlone : public testing::TestWithParam<AloneCase> {};

TEST_P(PagedAlone, HasTheBitsThatItHasAmongOthers) {
  const char* target = GetParam().target;
  library::Workload batch = batch_of(GetParam(), "64");
  run_on(batch, target);
  const library::Comparison comparison = library::compare(batch, library::reference_of(batch));
  EXPECT_TRUE(comparison.ok()) << comparison.text();
  for (const std::int64_t b : {0, 1}) {
    library::Workload own = test::alone(batch, b, 20 * b);
    run_on(own, target);
    EXPECT_TRUE(test::same_bits(batch, b, own)) << "sequence " << b;
  }
}

std::vector<AloneCase> alone_cases() {
  // Several parts, and queries that fill no tile.
  const std::vector<std::string> decode = {"dim=64", "heads=4", "kv_heads=2", "max_pages=14",
                                           "pages=300"};
  std::vector<std::string> chunks = decode;
  chunks.insert(chunks.end(),
                {"lengths_q=5,20,0,1", "causal=true", "window=100", "sinks=true", "softcap=5"});
  const std::vector<std::string> latent = {"dim=192",     "dim_v=128", "heads=4",
                                           "max_pages=9", "pages=40",  "batch=3"};
  std::vector<AloneCase> list;
  for (const char* target : {"interpreter", "cpu", "sim:sm_90a"}) {
    list.push_back({target, "tile", "attention_paged", decode});
    list.push_back({target, "tile", "attention_paged", chunks});
  }
  list.push_back({"sim:sm_90a", "sm90_split", "attention_paged", decode});
  list.push_back({"sim:sm_90a", "sm90_planned", "attention_paged", chunks});
  list.push_back({"sim:sm_90a", "sm90_planned", "attention_paged_fp8", decode});
  list.push_back({"sim:sm_90a", "sm90_planned", "attention_paged_mla", latent});
  // Sequences that fill the GPU have several parts too.
  std::vector<std::string> many = decode;
  many.emplace_back("batch=40");
  list.push_back({"cpu", "tile", "attention_paged", many});
  list.push_back({"sim:sm_90a", "sm90_split", "attention_paged", many});
  return list;
}
INSTANTIATE_TEST_SUITE_P(Sizes, PagedAlone, testing::ValuesIn(alone_cases()));

// Where parts fill the GPU, what a sequence gets does depend on the batch: the test above would see
// it.
TEST(PagedAloneTest, PartsThatFillTheGpuDependOnTheBatch) {
  AloneCase decode = alone_cases().front();
  decode.settings.emplace_back("batch=20");
  library::Workload batch = batch_of(decode, "0");
  run_on(batch, decode.target);
  library::Workload own = test::alone(batch, 0, 0);
  run_on(own, decode.target);
  EXPECT_FALSE(test::same_bits(batch, 0, own));
}

// Rules ask nothing that hangs on the batch: another schedule would sum in another order.
TEST(PagedAloneTest, RulesChooseOneScheduleForAllBatches) {
  for (const char* name : {"attention_paged", "attention_paged_fp8", "attention_paged_mla"}) {
    for (const std::vector<std::string>& sizes : {std::vector<std::string>{"batch=1"},
                                                  {"batch=64"},
                                                  {"batch=1", "queries=4096", "page=64"},
                                                  {"batch=300", "queries=9000"}}) {
      std::vector<std::string> settings = sizes;
      settings.emplace_back("fixed_split_size=2048");
      const LibraryKernel& kernel = find_kernel(name);
      const ScheduleChoice choice =
          choose_schedule(kernel, resolve_options(kernel, settings), "sm_90a");
      ASSERT_NE(choice.schedule, nullptr);
      EXPECT_EQ(choice.schedule->name, "sm90_planned") << name << " " << sizes[0];
    }
  }
}

TEST(PagedAloneTest, WhatItRefuses) {
  using testing::HasSubstr;
  kernels::PagedAttention a;
  a.fixed_split_size = 100;
  EXPECT_THAT(test::usage_error_of([&] { kernels::attention_paged(a); }),
              testing::AllOf(HasSubstr("fixed_split_size is 100"), HasSubstr("a multiple of 64")));
  a.fixed_split_size = 128;
  a.dim = a.dim_v = 64;
  EXPECT_THAT(
      test::usage_error_of([&] { kernels::attention_paged_sm90(a, kernels::KeyParts::one); }),
      testing::AllOf(HasSubstr("fixed_split_size is 128"), HasSubstr("divides no keys")));
  EXPECT_THAT(test::usage_error_of([&] { kernels::attention_paged_chunks_sm90(a); }),
              HasSubstr("divides no keys"));
}

}  // namespace
}  // namespace tilewright
