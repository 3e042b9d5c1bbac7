#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "common/error_text.h"
#include "library/accuracy.h"
#include "tilewright/kernels/attention.h"
#include "tilewright/library_executable.h"

// Attention of e4m3, on every target without a GPU.
namespace tilewright {
namespace {

struct Fp8Case {
  const char* target;
  std::vector<std::string> settings;
};
std::ostream& operator<<(std::ostream& out, const Fp8Case& each) {
  out << each.target;
  for (const std::string& setting : each.settings) out << " " << setting;
  return out;
}

void run_fp8(library::Workload& work, const char* target) {
  std::vector<TensorRef> tensors;
  for (HostTensor& tensor : work.tensors) tensors.push_back(ref(tensor));
  compile(*work.kernel, work.options, target).run(tensors);
}

class AttentionFp8 : public testing::TestWithParam<Fp8Case> {};

TEST_P(AttentionFp8, AgreesWithFloat64) {
  const Fp8Case& c = GetParam();
  library::Workload work =
      library::make_workload(find_kernel("attention_forward_fp8"), c.settings, {}, 5);
  run_fp8(work, c.target);
  const library::Comparison comparison = library::compare(work, library::reference_of(work));
  EXPECT_TRUE(comparison.ok()) << comparison.text();
}

// One key, no multiple of 16 or of a tile, several tiles; rows that see nothing; heads that share
// keys in a tile, more of them than fill it, and as many as give it rows of other heads.
const std::vector<std::string> kFp8Sizes[] = {
    {"heads=2", "queries=1", "keys=1"},
    {"heads=4", "kv_heads=2", "queries=70", "keys=300", "causal=true", "dim=64", "batch=2"},
    {"heads=2", "queries=90", "keys=40", "causal=true", "dim_v=64", "dtype=f16"},
    {"heads=6", "kv_heads=2", "queries=20", "keys=600"},
    {"heads=2", "queries=200", "keys=145", "dim=64", "dim_v=128", "scale=0.3"},
};

std::vector<Fp8Case> fp8_cases() {
  std::vector<Fp8Case> list;
  for (const char* target : {"interpreter", "cpu", "sim:sm_90a"}) {
    for (const std::vector<std::string>& sizes : kFp8Sizes) list.push_back({target, sizes});
  }
  list.push_back({"passes:sm_90a", kFp8Sizes[0]});
  list.push_back({"interpreter", {"heads=3", "queries=40", "keys=50", "dim=48", "dim_v=80"}});
  return list;
}
INSTANTIATE_TEST_SUITE_P(Sizes, AttentionFp8, testing::ValuesIn(fp8_cases()));

// One key in 64 counts, and more than the one before by less than the softmax lets the maximum lag:
// its weight grows as large as e4m3 has room for. In either order of the blocks. Step 0: all keys
// count alike, so that sums are the largest.
TEST(AttentionFp8Test, WeightsFitTheirBytes) {
  const LibraryKernel& entry = find_kernel("attention_forward_fp8");
  for (const double step : {0.0, 2.4, 4.0, -2.4, -4.0}) {
    SCOPED_TRACE(step);
    library::Workload work = library::make_workload(
        entry, {"heads=1", "queries=64", "keys=512", "dim=64", "scale=0.6931471805599453"}, {}, 5);
    for (std::int64_t i = 0; i < work.tensors[0].elements(); ++i) {
      work.tensors[0].set_flat(i, i % 64 == 0 ? 1 : 0);
    }
    for (std::int64_t i = 0; i < work.tensors[1].elements(); ++i) {
      const std::int64_t key = i / 64, block = step < 0 ? (511 - key) / 64 : key / 64;
      const bool counts = step == 0 || key % 64 == 5;
      const double score = counts ? std::abs(step) * static_cast<double>(block) : -30;
      work.tensors[1].set_flat(i, i % 64 == 0 ? score : 0);
    }
    for (const std::size_t scales : {3, 4}) work.tensors[scales].set_flat(0, 1);
    for (const char* target : {"interpreter", "sim:sm_90a"}) {
      SCOPED_TRACE(target);
      work.poison_outputs();
      run_fp8(work, target);
      const library::Comparison comparison = library::compare(work, library::reference_of(work));
      EXPECT_TRUE(comparison.ok()) << comparison.text();
    }
  }
}

TEST(AttentionFp8Test, RefusesWhatItDoesNotTake) {
  using kernels::Attention;
  // Each kernel asks for itself.
  for (const auto make : {kernels::attention_forward_fp8, kernels::attention_forward_fp8_sm90}) {
    const auto refused = [&](const std::function<void(Attention&)>& change) {
      Attention a;
      a.causal = true;
      change(a);
      return test::usage_error_of([&] { make(a, here()); });
    };
    EXPECT_THAT(refused([](Attention& a) { a.window = 40; }), testing::HasSubstr("window is 40"));
    EXPECT_THAT(refused([](Attention& a) { a.softcap = 5; }), testing::HasSubstr("softcap is 5"));
    EXPECT_THAT(refused([](Attention& a) { a.sinks = true; }), testing::HasSubstr("sinks is true"));
    EXPECT_THAT(refused([](Attention& a) { a.dtype = f32; }), testing::HasSubstr("dtype is f32"));
  }
  Attention a;
  a.dim = 80;
  EXPECT_THAT(test::usage_error_of([&] { kernels::attention_forward_fp8_sm90(a); }),
              testing::HasSubstr("dim is 80"));
}

}  // namespace
}  // namespace tilewright
