#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "common/error_text.h"
#include "library/accuracy.h"
#include "tilewright/kernels/attention.h"
#include "tilewright/library_executable.h"

// A library operation that is a program, on every target without a GPU.
namespace tilewright {
namespace {

using testing::TestWithParam;

struct Decode {
  const char* target;
  std::vector<std::string> settings;
};

class AttentionDecode : public TestWithParam<Decode> {};

TEST_P(AttentionDecode, AgreesWithFloat64) {
  const LibraryKernel& entry = find_kernel("attention_decode");
  library::Workload work = library::make_workload(entry, GetParam().settings, {}, 5);
  const LibraryExecutable executable = compile(entry, work.options, GetParam().target);
  std::vector<TensorRef> tensors;
  for (HostTensor& tensor : work.tensors) tensors.push_back(ref(tensor));
  executable.run(tensors);
  const library::Comparison comparison = library::compare(work, library::reference_of(work));
  EXPECT_TRUE(comparison.ok()) << comparison.text();
}

// Groups that do not fill a tile, or fill two; lengths of one key, of no multiple of a block, of
// more blocks than parts; dims apart.
const std::vector<std::string> kSmall[] = {
    {"kv_heads=1", "group=1", "keys=1", "dim=64"},
    {"kv_heads=2", "group=3", "keys=65", "dim=64", "batch=2"},
    {"kv_heads=1", "group=7", "keys=1000", "dim=64", "dim_v=32"},
    {"kv_heads=1", "group=70", "keys=130", "dim=64", "dtype=f16"},
    {"kv_heads=3", "group=2", "keys=200", "dim=64", "batch=50", "softcap=5"},
    // Five blocks of keys in three parts.
    {"kv_heads=3", "group=2", "keys=300", "dim=64", "batch=14"},
};

std::vector<Decode> cases() {
  std::vector<Decode> list;
  for (const char* target : {"interpreter", "sim:sm_90a"}) {
    for (std::size_t i = 0; i < std::size(kSmall); ++i) {
      const bool is_large = i >= 4 && std::string(target) != "interpreter";
      if (!is_large) list.push_back({target, kSmall[i]});
    }
  }
  list.push_back({"passes:sm_90a", kSmall[1]});
  return list;
}
INSTANTIATE_TEST_SUITE_P(Sizes, AttentionDecode, testing::ValuesIn(cases()));

// One executable for all lengths, and no keys at all.
TEST(AttentionDecodeTest, OneExecutableServesAllLengths) {
  const LibraryKernel& entry = find_kernel("attention_decode");
  const std::vector<std::string> fixed{"kv_heads=1", "group=4", "dim=64"};
  const LibraryExecutable executable = compile(entry, resolve_options(entry, fixed), "interpreter");
  for (const char* keys : {"0", "64", "257"}) {
    SCOPED_TRACE(keys);
    std::vector<std::string> settings = fixed;
    settings.push_back(std::string("keys=") + keys);
    library::Workload work = library::make_workload(entry, settings, {}, 6);
    std::vector<TensorRef> tensors;
    for (HostTensor& tensor : work.tensors) tensors.push_back(ref(tensor));
    executable.run(tensors);
    if (std::string(keys) != "0") {
      EXPECT_TRUE(library::compare(work, library::reference_of(work)).ok());
      continue;
    }
    for (std::int64_t i = 0; i < work.tensors[3].elements(); ++i) {
      ASSERT_EQ(work.tensors[3].flat(i), 0) << i;
    }
    EXPECT_EQ(work.tensors[4].flat(3), -std::numeric_limits<double>::infinity());
  }
}

// What a part has summed up may be too large for the others' scale: the join takes the largest.
TEST(AttentionDecodeTest, OnePartHasMuchLargerScores) {
  const LibraryKernel& entry = find_kernel("attention_decode");
  const std::vector<std::string> settings{"kv_heads=1", "group=4", "keys=400", "dim=64"};
  const LibraryExecutable executable =
      compile(entry, resolve_options(entry, settings), "interpreter");
  for (const std::int64_t block : {0, 3, 5}) {
    SCOPED_TRACE(block);
    library::Workload work = library::make_workload(entry, settings, {}, 6);
    HostTensor& keys = work.tensors[1];
    ASSERT_EQ(keys.shape(), (std::vector<std::int64_t>{1, 400, 1, 64}));
    for (std::int64_t i = block * 64 * 64; i < (block + 1) * 64 * 64; ++i) {
      keys.set_flat(i, 100 * keys.flat(i));
    }
    std::vector<TensorRef> tensors;
    for (HostTensor& tensor : work.tensors) tensors.push_back(ref(tensor));
    executable.run(tensors);
    const library::Comparison comparison = library::compare(work, library::reference_of(work));
    EXPECT_TRUE(comparison.ok()) << comparison.text();
  }
}

// All sums are so small that 1 would hide them.
TEST(AttentionDecodeTest, ScoresFarBelowZero) {
  const LibraryKernel& entry = find_kernel("attention_decode");
  const std::vector<std::string> settings{"kv_heads=1", "group=4", "keys=400", "dim=64"};
  library::Workload work = library::make_workload(entry, settings, {}, 6);
  HostTensor &queries = work.tensors[0], &keys = work.tensors[1];
  for (std::int64_t i = 0; i < queries.elements(); ++i) queries.set_flat(i, 8);
  for (std::int64_t i = 0; i < keys.elements(); ++i) {
    keys.set_flat(i, -8 + 0.0625 * keys.flat(i));
  }
  const LibraryExecutable executable = compile(entry, work.options, "interpreter");
  std::vector<TensorRef> tensors;
  for (HostTensor& tensor : work.tensors) tensors.push_back(ref(tensor));
  executable.run(tensors);
  EXPECT_LT(work.tensors[4].flat(0), -200);
  const library::Comparison comparison = library::compare(work, library::reference_of(work));
  EXPECT_TRUE(comparison.ok()) << comparison.text();
}

TEST(AttentionDecodeTest, WhatItRefuses) {
  kernels::Attention a;
  a.heads = 8;
  a.kv_heads = 3;
  const auto refused = [&] { return test::usage_error_of([&] { kernels::attention_decode(a); }); };
  EXPECT_NE(refused().find("heads 8 is not a multiple of kv_heads 3"), std::string::npos);
  a.kv_heads = 1;
  a.heads = 129;
  EXPECT_NE(refused().find("heads / kv_heads is 129"), std::string::npos);
  a.heads = 8;
  a.sinks = true;
  EXPECT_NE(refused().find("sinks is true"), std::string::npos);
}

}  // namespace
}  // namespace tilewright
