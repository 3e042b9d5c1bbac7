#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "common/error_text.h"
#include "kernels/library_case.h"
#include "library/workload.h"
#include "tilewright/compile.h"
#include "tilewright/kernels/attention.h"
#include "tilewright/kernels/kv_append.h"
#include "tilewright/kernels/merge_states.h"
#include "tilewright/library_executable.h"

// What servers do around attention: appending to a cache in pages, and merging parts. On every
// target without a GPU, against float64.
namespace tilewright {
namespace {

using test::expect_right_everywhere;
using test::LibraryCase;
using test::run;
using testing::AllOf;
using testing::HasSubstr;

std::vector<std::string> with(std::vector<std::string> settings,
                              const std::vector<std::string>& more) {
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

// Heads that fill no tile, or several; pages of one slot and of many; more tokens than places, so
// that some pad; a table with pages that are not there; keys rotated in part and as a whole.
TEST(KvAppendTest, AgreesWithFloat64) {
  const std::vector<std::string> small = {"tokens=23", "batch=3", "pages=9", "max_pages=4"};
  const LibraryCase cases[] = {
      {"kv_append", with(small, {"kv_heads=3", "dim=64", "page=16"})},
      {"kv_append", with(small, {"kv_heads=40", "dim=64", "dim_v=32", "page=1"})},
      {"kv_append", with(small, {"kv_heads=2", "dim=96", "dim_v=64", "rotary=true"})},
      {"kv_append", with(small, {"kv_heads=1", "dim=576", "dim_v=512", "rotary=true",
                                 "rotary_dim=64", "dtype=f16"})},
      {"kv_append_mla", with(small, {"dim=96", "page=16", "rotary=true", "rotary_dim=32"})},
      {"kv_append_mla", with(small, {"page=1", "dtype=f16"})},
      // A row of one vector a thread, some of which lie behind its end; and of two pieces.
      {"kv_append_mla", with(small, {"dim=104", "page=16"})},
      {"kv_append_mla", with(small, {"dim=36", "page=16"})},
      // Behind that end stands what is rotated.
      {"kv_append_mla", with(small, {"dim=136", "page=16", "rotary=true", "rotary_dim=32"})},
      {"kv_append_fp8", with(small, {"kv_heads=5", "dim=64"})},
      {"kv_append_fp8", with(small, {"kv_heads=2", "dim=128", "rotary=true", "rotary_dim=32"})},
  };
  for (const LibraryCase& each : cases) expect_right_everywhere(each);
}

// Otherwise a kernel that takes one for the other would be found right.
TEST(KvAppendTest, ScalesOfKeysAreNotThoseOfValues) {
  const library::Workload work =
      library::make_workload(find_kernel("kv_append_fp8"), {"tokens=1"}, {}, 1);
  const auto scales = [&](const char* name) {
    const auto& tensors = work.kernel->tensors;
    const auto at = std::find_if(tensors.begin(), tensors.end(),
                                 [&](const LibraryTensor& each) { return each.name == name; });
    return work.tensors[static_cast<std::size_t>(at - tensors.begin())];
  };
  EXPECT_NE(scales("K_scale"), scales("V_scale"));
}

// What no token is written to keeps every bit, NaN too, and padding reads no table.
TEST(KvAppendTest, LeavesTheRestAlone) {
  const LibraryKernel& entry = find_kernel("kv_append");
  library::Workload work = library::make_workload(
      entry, {"tokens=3", "batch=1", "pages=2", "max_pages=2", "page=4", "kv_heads=1", "dim=32"},
      {}, 1);
  enum : std::size_t { kK, kV, kSequences, kPositions, kTable, kKeys, kValues };
  work.tensors[kSequences] = HostTensor::from_values(i32, {3}, {0, 1000, 0});
  work.tensors[kPositions] = HostTensor::from_values(i32, {3}, {5, -1, 2});
  work.tensors[kTable] = HostTensor::from_values(i32, {1, 2}, {-1, 0});
  for (const std::size_t cache : {kKeys, kValues}) {
    work.tensors[cache] = HostTensor::poisoned(bf16, {2, 4, 1, 32});
  }
  run(compile(entry, work.options, "sim:sm_90a"), work);
  for (std::int64_t slot = 0; slot < 8; ++slot) {
    for (std::int64_t i = 0; i < 32; ++i) {
      const double key = work.tensors[kKeys].flat(slot * 32 + i);
      if (slot == 1) {
        EXPECT_EQ(key, work.tensors[kK].flat(i));  // position 5: slot 1 of page 0
      } else {
        EXPECT_TRUE(std::isnan(key)) << slot;
      }
    }
  }
}

// A page that does not exist is a fault at the kernel's line, and so is a position behind the
// table.
TEST(KvAppendTest, NumbersOutsideAreFaults) {
  const LibraryKernel& entry = find_kernel("kv_append");
  const auto error_with = [&](double position, double page) {
    library::Workload work = library::make_workload(
        entry, {"tokens=1", "batch=1", "pages=2", "max_pages=1", "kv_heads=1", "dim=32"}, {}, 1);
    work.tensors[2] = HostTensor::from_values(i32, {1}, {0});
    work.tensors[3] = HostTensor::from_values(i32, {1}, {position});
    work.tensors[4] = HostTensor::from_values(i32, {1, 1}, {page});
    return test::usage_error_of([&] { run(compile(entry, work.options, "interpreter"), work); });
  };
  EXPECT_THAT(error_with(0, 2),
              AllOf(HasSubstr("kv_append.cpp"), HasSubstr("index 2 on axis 0 of V_cache")));
  EXPECT_THAT(error_with(16, 0), AllOf(HasSubstr("kv_append.cpp"), HasSubstr("block_table")));
}

TEST(KvAppendTest, WhatItRefuses) {
  const auto refused = [](const kernels::KvAppend& a) {
    return test::usage_error_of([&] { kernels::kv_append(a); });
  };
  EXPECT_THAT(refused({.dim = 64, .rotary_dim = 66}),
              AllOf(HasSubstr("serving_test.cpp"), HasSubstr("rotary_dim is 66, and dim is 64")));
  EXPECT_THAT(refused({.rotary_dim = 7}), HasSubstr("an even number"));
  EXPECT_THAT(refused({.dtype = f16, .cache = bf16}),
              HasSubstr("the cache is bf16, and the new rows are f16"));
  EXPECT_THAT(refused({.page = 0}), HasSubstr("page is 0"));
  EXPECT_THAT(refused({.cache = f8e4m3, .latent = true}),
              HasSubstr("latent is set, and the cache is f8e4m3"));
}

// Parts that are empty for some rows, whose outputs are NaN, and rows that are so in every part;
// one part, and none.
TEST(MergeStatesTest, AgreesWithFloat64) {
  const LibraryCase cases[] = {
      {"merge_states", {"parts=5", "rows=11", "heads=3", "dim=64"}},
      {"merge_states", {"parts=2", "rows=3", "heads=40", "dim=128", "dtype=f16"}},
      {"merge_states", {"parts=1", "rows=7", "heads=8", "dim=96"}},
      {"merge_states", {"parts=9", "rows=2", "heads=16", "dim=256", "dtype=f32"}},
      {"merge_states", {"parts=0", "rows=2", "heads=4", "dim=64"}},
  };
  for (const LibraryCase& each : cases) expect_right_everywhere(each);
}

struct States {
  HostTensor outputs, sums;
};

// Of parts first to last - 1 of {parts, rows, heads, dim}.
States merged(const States& parts, std::int64_t first, std::int64_t last) {
  std::vector<std::int64_t> shape = parts.outputs.shape();
  const auto part_of = [&](const HostTensor& tensor) {
    std::vector<std::int64_t> own = tensor.shape();
    own[0] = last - first;
    const std::int64_t bytes =
        tensor.shape()[0] == 0 ? 0
                               : static_cast<std::int64_t>(tensor.size_bytes()) / tensor.shape()[0];
    return HostTensor::from_bytes(tensor.dtype(), own,
                                  {tensor.data() + first * bytes, tensor.data() + last * bytes});
  };
  HostTensor O = part_of(parts.outputs), L = part_of(parts.sums);
  States result{HostTensor::poisoned(O.dtype(), {shape[1], shape[2], shape[3]}),
                HostTensor::poisoned(f32, {shape[1], shape[2]})};
  kernels::MergeStates m;
  m.heads = static_cast<int>(shape[2]);
  m.dim = static_cast<int>(shape[3]);
  m.dtype = O.dtype();
  compile(kernels::merge_states(m), "interpreter")
      .run({ref(O), ref(L), ref(result.outputs), ref(result.sums)});
  return result;
}

States stacked(const std::vector<States>& parts) {
  const auto stack = [&](HostTensor States::*which) {
    std::vector<std::int64_t> shape = (parts[0].*which).shape();
    shape.insert(shape.begin(), static_cast<std::int64_t>(parts.size()));
    std::vector<std::byte> bytes;
    for (const States& part : parts) {
      const HostTensor& tensor = part.*which;
      bytes.insert(bytes.end(), tensor.data(), tensor.data() + tensor.size_bytes());
    }
    return HostTensor::from_bytes((parts[0].*which).dtype(), shape, bytes);
  };
  return {stack(&States::outputs), stack(&States::sums)};
}

void expect_near(const HostTensor& got, const HostTensor& wanted, double bound) {
  ASSERT_EQ(got.shape(), wanted.shape());
  for (std::int64_t i = 0; i < got.elements(); ++i) {
    if (got.flat(i) == wanted.flat(i)) continue;  // -inf too
    ASSERT_NEAR(got.flat(i), wanted.flat(i), bound) << i;
  }
}

// However parts are grouped, and with parts that are empty for every row among them.
TEST(MergeStatesTest, AnyGroupingIsTheSame) {
  const library::Workload work = library::make_workload(
      find_kernel("merge_states"), {"parts=6", "rows=5", "heads=4", "dim=32", "dtype=f32"}, {}, 2);
  const States parts{work.tensors[0], work.tensors[1]};
  const States whole = merged(parts, 0, 6);
  const States empty{
      HostTensor::poisoned(f32, {5, 4, 32}),
      HostTensor::from_values(f32, {5, 4},
                              std::vector<double>(20, -std::numeric_limits<double>::infinity()))};
  for (const std::int64_t cut : {1, 3, 5}) {
    SCOPED_TRACE(cut);
    const States grouped =
        merged(stacked({merged(parts, 0, cut), empty, merged(parts, cut, 6)}), 0, 3);
    expect_near(grouped.outputs, whole.outputs, 1e-5);
    expect_near(grouped.sums, whole.sums, 1e-5);
  }
}

// Sequences that share a prefix: attention to it, once for all, and to what each has behind it.
TEST(MergeStatesTest, ASharedPrefix) {
  constexpr std::int64_t kRows = 6, kPrefix = 40, kOwn = 7, kDim = 32;
  constexpr int kHeads = 2;
  const HostTensor q = HostTensor::random_normal(f32, {kRows, 1, kHeads, kDim}, 1);
  const HostTensor prefix_k = HostTensor::random_normal(f32, {1, kPrefix, kHeads, kDim}, 2);
  const HostTensor prefix_v = HostTensor::random_normal(f32, {1, kPrefix, kHeads, kDim}, 3);
  const HostTensor own_k = HostTensor::random_normal(f32, {kRows, kOwn, kHeads, kDim}, 4);
  const HostTensor own_v = HostTensor::random_normal(f32, {kRows, kOwn, kHeads, kDim}, 5);
  kernels::Attention a;
  a.heads = a.kv_heads = kHeads;
  a.dim = a.dim_v = kDim;
  a.dtype = f32;
  a.block_q = a.block_k = 16;
  const Executable attention = compile(kernels::attention_forward(a), "interpreter");
  // O {rows, heads, dim} and LSE {rows, heads} of so many sequences.
  const auto attend = [&](HostTensor queries, HostTensor k, HostTensor v) {
    const std::int64_t batch = queries.shape()[0], rows = queries.shape()[1];
    HostTensor o = HostTensor::poisoned(f32, {batch, rows, kHeads, kDim});
    HostTensor lse = HostTensor::poisoned(f32, {batch, kHeads, rows});
    attention.run({ref(queries), ref(k), ref(v), ref(o), ref(lse)});
    States states{
        HostTensor::from_bytes(f32, {kRows, kHeads, kDim}, {o.data(), o.data() + o.size_bytes()}),
        HostTensor::zeros(f32, {kRows, kHeads})};
    for (std::int64_t row = 0; row < kRows; ++row) {
      for (std::int64_t head = 0; head < kHeads; ++head) {
        states.sums.set({row, head}, batch == 1 ? lse.at({0, head, row}) : lse.at({row, head, 0}));
      }
    }
    return states;
  };
  HostTensor together =
      HostTensor::from_bytes(f32, {1, kRows, kHeads, kDim}, {q.data(), q.data() + q.size_bytes()});
  const States got =
      merged(stacked({attend(together, prefix_k, prefix_v), attend(q, own_k, own_v)}), 0, 2);
  // Each sequence with a prefix of its own.
  const auto joined = [&](const HostTensor& prefix, const HostTensor& own) {
    std::vector<std::byte> bytes;
    const std::size_t each = own.size_bytes() / kRows;
    for (std::size_t row = 0; row < kRows; ++row) {
      bytes.insert(bytes.end(), prefix.data(), prefix.data() + prefix.size_bytes());
      bytes.insert(bytes.end(), own.data() + row * each, own.data() + (row + 1) * each);
    }
    return HostTensor::from_bytes(f32, {kRows, kPrefix + kOwn, kHeads, kDim}, bytes);
  };
  const States wanted = attend(q, joined(prefix_k, own_k), joined(prefix_v, own_v));
  expect_near(got.outputs, wanted.outputs, 1e-5);
  expect_near(got.sums, wanted.sums, 1e-5);
}

}  // namespace
}  // namespace tilewright
