#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "common/error_text.h"
#include "library/accuracy.h"
#include "tilewright/compile.h"
#include "tilewright/kernels/attention_paged.h"
#include "tilewright/kernels/kv_append.h"
#include "tilewright/library_executable.h"

// attention_paged with other caches than K and V of the queries' dtype: of e4m3 with scales, and
// latent keys. The workloads are those of attention_paged_test.cpp.
namespace tilewright {
namespace {

using testing::HasSubstr;

struct CacheCase {
  const char* target;
  std::string kernel;
  std::vector<std::string> settings;
};
std::ostream& operator<<(std::ostream& out, const CacheCase& each) {
  out << each.kernel << " on " << each.target;
  for (const std::string& setting : each.settings) out << " " << setting;
  return out;
}

library::Workload cache_workload(const CacheCase& c) {
  return library::make_workload(find_kernel(c.kernel), c.settings, {}, 5);
}

void run_cache(library::Workload& work, const char* target) {
  std::vector<TensorRef> tensors;
  for (HostTensor& tensor : work.tensors) tensors.push_back(ref(tensor));
  compile(*work.kernel, work.options, target).run(tensors);
}

std::string cache_error_of(library::Workload& work, const char* target) {
  try {
    run_cache(work, target);
  } catch (const Error& error) {
    return test::without_source_lines(error.what());
  }
  return "no error was raised";
}

class AttentionPagedCache : public testing::TestWithParam<CacheCase> {};

TEST_P(AttentionPagedCache, AgreesWithFloat64) {
  library::Workload work = cache_workload(GetParam());
  run_cache(work, GetParam().target);
  const library::Comparison comparison = library::compare(work, library::reference_of(work));
  EXPECT_TRUE(comparison.ok()) << comparison.text();
}

std::vector<CacheCase> cache_cases() {
  const std::vector<std::vector<std::string>> quantised = {
      {"dim=64", "heads=5", "kv_heads=1", "max_pages=7"},
      {"dim=64", "heads=6", "kv_heads=2", "max_pages=9", "lengths_q=20,7,0,40", "causal=true",
       "window=40", "sinks=true", "softcap=2.5", "scales=1", "dtype=f16"},
      {"dim=64", "dim_v=32", "page=1", "heads=4", "kv_heads=2", "max_pages=40", "pages=160"},
  };
  const std::vector<std::vector<std::string>> latent = {
      {"dim=80", "dim_v=64", "heads=5", "max_pages=7", "lengths_q=20,7,0,40", "causal=true"},
      {"dim=48", "dim_v=32", "page=1", "heads=3", "max_pages=40", "pages=160"},
      {"page=64", "heads=70", "max_pages=2", "pages=7", "batch=3", "lengths_q=1,2,0",
       "causal=true"},
  };
  const std::vector<std::string> latent_chunks = {
      "dim=192",     "dim_v=128", "heads=5", "max_pages=7", "lengths_q=20,7,0,40",
      "causal=true", "window=40"};
  std::vector<CacheCase> list;
  const auto add = [&](const char* target, const char* schedule, const char* kernel,
                       std::vector<std::string> settings) {
    settings.emplace_back(std::string("schedule=") + schedule);
    list.push_back({target, kernel, std::move(settings)});
  };
  for (const char* target : {"interpreter", "cpu", "sim:sm_90a"}) {
    for (const auto& settings : quantised) add(target, "tile", "attention_paged_fp8", settings);
    for (const auto& settings : latent) add(target, "tile", "attention_paged_mla", settings);
  }
  add("sim:sm_90a", "sm90", "attention_paged_fp8", quantised[0]);
  add("sim:sm_90a", "sm90_planned", "attention_paged_fp8", quantised[1]);
  add("sim:sm_90a", "sm90_split", "attention_paged_fp8", quantised[0]);
  add("sim:sm_90a", "sm90_keys", "attention_paged_fp8",
      {"dim=128", "heads=5", "kv_heads=1", "max_pages=7"});
  add("sim:sm_90a", "sm90_keys_planned", "attention_paged_fp8", quantised[1]);
  // Heads that are loaded together, in two pairs, some of whose CTAs have several items; one too
  // many for pairs; and pages too small for them.
  for (const auto& [heads, page] :
       {std::pair("kv_heads=4", "page=16"), {"kv_heads=3", "page=16"}, {"kv_heads=4", "page=8"}}) {
    for (const char* schedule : {"sm90_keys", "sm90_keys_split"}) {
      add("sim:sm_90a", schedule, "attention_paged_fp8",
          {"dim=64", "heads=12", heads, "max_pages=9", "pages=60", page, "lengths_q=1,9,0,4",
           "causal=true"});
    }
  }
  // By a plan they are where blocks have 128 keys.
  for (const char* heads : {"kv_heads=4", "kv_heads=3"}) {
    for (const char* page : {"page=64", "page=16"}) {
      add("sim:sm_90a", "sm90_keys_planned", "attention_paged_fp8",
          {"dim=64", "heads=12", heads, "max_pages=5", "pages=40", page, "lengths_q=1,9,0,4",
           "causal=true"});
    }
  }
  // Of large pages a block has twice as many keys, but where parts have fewer.
  add("sim:sm_90a", "sm90_keys", "attention_paged_fp8",
      {"dim=64", "page=64", "heads=6", "kv_heads=2", "max_pages=4", "pages=20",
       "lengths_q=20,7,0,40", "causal=true", "window=100", "sinks=true", "dtype=f16"});
  add("sim:sm_90a", "sm90_keys_split", "attention_paged_fp8",
      {"dim=64", "page=64", "heads=4", "kv_heads=2", "max_pages=3", "pages=20",
       "fixed_split_size=64"});
  add("sim:sm_90a", "sm90_keys_split", "attention_paged_fp8",
      {"dim=64", "dim_v=128", "page=2", "heads=4", "kv_heads=2", "max_pages=40", "pages=160"});
  add("sim:sm_90a", "sm90", "attention_paged_mla", latent[2]);
  // More blocks than stages, each of whose warpgroups of values has two pieces, one, or three.
  add("sim:sm_90a", "sm90", "attention_paged_mla",
      {"keys=200", "heads=3", "batch=1", "max_pages=13"});
  add("sim:sm_90a", "sm90", "attention_paged_mla",
      {"dim=320", "dim_v=256", "keys=500", "heads=3", "batch=1", "max_pages=32"});
  add("sim:sm_90a", "sm90", "attention_paged_mla",
      {"dim=448", "dim_v=384", "keys=330", "heads=3", "batch=1", "max_pages=21"});
  add("sim:sm_90a", "sm90_planned", "attention_paged_mla", latent_chunks);
  add("sim:sm_90a", "sm90_split", "attention_paged_mla", latent_chunks);
  // Tables in two vectors.
  const std::vector<std::string> csr = {"csr=true",   "dim=64",      "heads=4",
                                        "kv_heads=2", "max_pages=5", "pages=20"};
  for (const char* target : {"interpreter", "cpu", "sim:sm_90a"}) {
    add(target, "tile", "attention_paged", csr);
  }
  add("sim:sm_90a", "sm90_planned", "attention_paged", csr);
  add("sim:sm_90a", "sm90", "attention_paged_fp8", csr);
  return list;
}
INSTANTIATE_TEST_SUITE_P(Sizes, AttentionPagedCache, testing::ValuesIn(cache_cases()));

// Small ones, everywhere.
std::vector<CacheCase> small_caches() {
  std::vector<CacheCase> list;
  for (const auto& [target, schedule] : {std::pair("interpreter", "tile"),
                                         {"cpu", "tile"},
                                         {"sim:sm_90a", "tile"},
                                         {"sim:sm_90a", "sm90"},
                                         {"sim:sm_90a", "sm90_split"},
                                         {"sim:sm_90a", "sm90_planned"}}) {
    const std::string by = std::string("schedule=") + schedule;
    list.push_back({target,
                    "attention_paged_fp8",
                    {by, "dim=64", "heads=4", "kv_heads=2", "max_pages=8", "pages=32"}});
    list.push_back({target,
                    "attention_paged_mla",
                    {by, "dim=192", "dim_v=128", "heads=4", "max_pages=8", "pages=32"}});
  }
  return list;
}

// Places of the tensors that both have.
enum CacheTensor : std::size_t { kLengthsOfCache = 2, kTableOfCache = 3 };

// Keys of no page are hidden; of a sequence without any page all are. A sequence of one key sees
// that one.
TEST(AttentionPagedCacheTest, HolesInTheTable) {
  for (const CacheCase& each : small_caches()) {
    SCOPED_TRACE(testing::PrintToString(each));
    library::Workload work = cache_workload(each);
    HostTensor& table = work.tensors[kTableOfCache];
    table.set({0, 0}, -1);
    table.set({0, 3}, -1);
    // The first of its block, and it alone.
    table.set({0, 4}, -1);
    work.tensors[kLengthsOfCache].set({0}, 8 * 16);
    for (std::int64_t column = 0; column < 8; ++column) table.set({3, column}, -1);
    work.tensors[kLengthsOfCache].set({1}, 1);
    run_cache(work, each.target);
    const library::Comparison comparison = library::compare(work, library::reference_of(work));
    EXPECT_TRUE(comparison.ok()) << comparison.text();
    const HostTensor& lse = work.tensors.back();
    for (const std::int64_t empty : {2, 3}) {
      EXPECT_EQ(lse.at({empty, 1}), -std::numeric_limits<double>::infinity());
      EXPECT_EQ(work.tensors[work.tensors.size() - 2].at({empty, 1, 5}), 0);
    }
  }
}

// Of so many heads each query is a tile. Those in front of the first sequence, and behind the last,
// are neither read nor written.
TEST(AttentionPagedCacheTest, QueriesOfNoSequence) {
  constexpr double kKept = 77;
  for (const char* schedule : {"sm90", "sm90_planned"}) {
    SCOPED_TRACE(schedule);
    library::Workload work =
        cache_workload({"sim:sm_90a",
                        "attention_paged_mla",
                        {std::string("schedule=") + schedule, "dim=192", "dim_v=128", "heads=70",
                         "max_pages=3", "pages=12", "queries=9"}});
    work.tensors[1] = HostTensor::from_values(i32, {5}, {1, 3, 4, 4, 6});
    const std::vector<double> wanted = library::reference_of(work).values[0];
    HostTensor& O = work.tensors[work.tensors.size() - 2];
    for (std::int64_t i = 0; i < O.elements(); ++i) O.set_flat(i, kKept);
    run_cache(work, "sim:sm_90a");
    double worst = 0;
    for (std::int64_t i = 0; i < O.elements(); ++i) {
      const double got = O.flat(i), right = wanted[static_cast<std::size_t>(i)];
      ASSERT_EQ(got == kKept, std::isnan(right)) << i;
      if (got != kKept) worst = std::max(worst, std::abs(got - right));
    }
    EXPECT_LT(worst, 2e-2);
  }
}

TEST(AttentionPagedCacheTest, NumbersThatAreNoPage) {
  for (const CacheCase& each : small_caches()) {
    SCOPED_TRACE(testing::PrintToString(each));
    library::Workload work = cache_workload(each);
    work.tensors[kTableOfCache].set({0, 2}, 32);
    const std::string cache = each.kernel == "attention_paged_mla" ? "KV" : "K";
    EXPECT_THAT(cache_error_of(work, each.target),
                testing::AllOf(HasSubstr("kernels/attention_paged"),
                               HasSubstr("index 32 on axis 0 of " + cache)));
  }
}

// What kv_append_fp8 stores by its scales, attention_paged_fp8 reads by the same ones.
TEST(AttentionPagedCacheTest, ReadsWhatIsAppended) {
  constexpr std::int64_t kKeys = 40, kHeads = 2, kDim = 64, kPage = 16;
  kernels::KvAppend append{.kv_heads = kHeads, .dim = kDim, .dim_v = kDim, .cache = f8e4m3};
  HostTensor K = HostTensor::random_normal(bf16, {kKeys, kHeads, kDim}, 1);
  HostTensor V = HostTensor::random_normal(bf16, {kKeys, kHeads, kDim}, 2);
  HostTensor sequences = HostTensor::zeros(i32, {kKeys}), positions = sequences;
  for (std::int64_t t = 0; t < kKeys; ++t) positions.set({t}, static_cast<double>(t));
  HostTensor table = HostTensor::from_values(i32, {1, 3}, {2, 0, 1});
  HostTensor K_scale = HostTensor::from_values(f32, {kHeads}, {0.03, 0.01});
  HostTensor V_scale = HostTensor::from_values(f32, {kHeads}, {0.01, 0.05});
  HostTensor K_cache = HostTensor::poisoned(f8e4m3, {3, kPage, kHeads, kDim}), V_cache = K_cache;
  compile(kernels::kv_append(append), "interpreter")
      .run({ref(K), ref(V), ref(sequences), ref(positions), ref(table), ref(K_scale), ref(V_scale),
            ref(K_cache), ref(V_cache)});

  kernels::PagedAttention a;
  a.heads = a.kv_heads = a.scales = kHeads;
  a.dim = a.dim_v = kDim;
  a.page = kPage;
  a.quantised = true;
  HostTensor Q = HostTensor::random_normal(bf16, {1, kHeads, kDim}, 3);
  HostTensor offsets = HostTensor::from_values(i32, {2}, {0, 1});
  HostTensor lengths = HostTensor::from_values(i32, {1}, {kKeys});
  HostTensor O = HostTensor::poisoned(bf16, {1, kHeads, kDim});
  HostTensor LSE = HostTensor::poisoned(f32, {1, kHeads});
  compile(kernels::attention_paged(a), "interpreter")
      .run({ref(Q), ref(offsets), ref(lengths), ref(table), ref(K_cache), ref(V_cache),
            ref(K_scale), ref(V_scale), ref(O), ref(LSE)});
  // e4m3 has three bits behind the first: it rounds by 2^-4 at most.
  for (std::int64_t h = 0; h < kHeads; ++h) {
    std::vector<double> weights;
    double sum = 0, error = 0, size = 0;
    for (std::int64_t j = 0; j < kKeys; ++j) {
      double score = 0;
      for (std::int64_t d = 0; d < kDim; ++d) score += Q.at({0, h, d}) * K.at({j, h, d});
      weights.push_back(std::exp(score / 8));
      sum += weights.back();
    }
    EXPECT_NEAR(LSE.at({0, h}), std::log(sum), 0.05);
    for (std::int64_t d = 0; d < kDim; ++d) {
      double wanted = 0;
      for (std::int64_t j = 0; j < kKeys; ++j) {
        wanted += weights[static_cast<std::size_t>(j)] / sum * V.at({j, h, d});
      }
      error += std::pow(O.at({0, h, d}) - wanted, 2), size += wanted * wanted;
    }
    EXPECT_LT(std::sqrt(error / size), 0.08);
  }
}

// Behind a sequence's pages stand those of the next: they are not its own, however long it says
// that it is.
TEST(AttentionPagedCacheTest, ALengthBeyondItsPages) {
  for (const char* target : {"interpreter", "sim:sm_90a"}) {
    CacheCase each{target,
                   "attention_paged",
                   {"schedule=tile", "csr=true", "dim=64", "heads=4", "kv_heads=2", "max_pages=5",
                    "pages=20"}};
    library::Workload work = cache_workload(each);
    work.tensors[kLengthsOfCache].set({1}, work.tensors[kLengthsOfCache].flat(1) + 16);
    EXPECT_THAT(cache_error_of(work, target),
                testing::AllOf(HasSubstr("kernels/attention_paged"), HasSubstr("20"),
                               HasSubstr("indices")));
  }
}

TEST(AttentionPagedCacheTest, WhatItRefuses) {
  kernels::PagedAttention a;
  const auto refused = [&] { return test::usage_error_of([&] { kernels::attention_paged(a); }); };
  a.latent = true;
  EXPECT_THAT(refused(), HasSubstr("kv_heads is 8 of latent attention"));
  a.kv_heads = 1;
  a.dim_v = 96;
  EXPECT_THAT(refused(), HasSubstr("dim_v is 96, and dim is 64"));
  a.dim_v = 64;
  a.quantised = true;
  EXPECT_THAT(refused(), HasSubstr("latent and quantised"));
  a.latent = false;
  a.kv_heads = 4;
  a.scales = 2;
  EXPECT_THAT(refused(), HasSubstr("scales is 2, and kv_heads is 4"));
}

}  // namespace
}  // namespace tilewright
