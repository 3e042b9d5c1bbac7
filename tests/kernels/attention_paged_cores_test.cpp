#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/error_text.h"
#include "kernels/library_case.h"
#include "tilewright/library_executable.h"

// Latent attention over pages on cores with explicit memories: a key's first elements are its
// value, which products load by themselves.
namespace tilewright {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kLatent = "attention_paged_mla";

// The last page has a tail, as have the heads of a tile; one sequence has no query.
TEST(AttentionPagedCores, LatentKeysAreTheirValues) {
  for (const char* target : {"sim:incore", "sim:incore_unified"}) {
    test::expect_right({kLatent,
                        {"heads=5", "batch=3", "max_pages=3", "pages=9", "lengths_q=1,2,0",
                         "causal=true", "sinks=true"}},
                       target);
    test::expect_right(
        {kLatent,
         {"page=64", "heads=37", "batch=1", "max_pages=2", "pages=2", "dtype=f16", "csr=true"}},
        target);
  }
}

// A part of a row alone, and keys one by one, also where a row lies in a partition each.
TEST(AttentionPagedCores, SmallLatentKeysFitAll) {
  for (const char* target : {"sim:incore", "sim:incore_unified", "sim:incore_partitions"}) {
    test::expect_right({kLatent,
                        {"dim=80", "dim_v=64", "heads=5", "batch=2", "max_pages=3", "pages=6",
                         "lengths_q=7,1", "causal=true", "window=20"}},
                       target);
    test::expect_right(
        {kLatent,
         {"dim=48", "dim_v=32", "page=1", "heads=3", "batch=2", "max_pages=9", "pages=18"}},
        target);
  }
}

TEST(AttentionPagedCores, WhatDoesNotFitSaysHowMuchIsThere) {
  const auto error = [](const char* target, const char* setting) {
    const LibraryKernel& entry = find_kernel(kLatent);
    library::Workload work = library::make_workload(entry, {setting}, {}, 7);
    return test::usage_error_of([&] { compile(entry, work.options, target); });
  };
  EXPECT_THAT(error("sim:incore_partitions", "heads=8"),
              AllOf(HasSubstr("kernels/attention_paged.cpp"),
                    HasSubstr("576 rows of SBUF, which has 128 partitions of a row each")));
  EXPECT_THAT(error("sim:incore", "dtype=f32"),
              HasSubstr("147456 bytes of Left are taken with it, and incore has 65536"));
}

}  // namespace
}  // namespace tilewright
