#include "library/stated_input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "common/error_text.h"
#include "common/temporary_folder.h"
#include "library/tensor_file.h"
#include "library/workload.h"

namespace tilewright::library {
namespace {

using test::usage_error_of;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<double> values_of(const HostTensor& tensor) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < tensor.elements(); ++i) values.push_back(tensor.flat(i));
  return values;
}

HostTensor made(const std::string& text, DType dtype, const std::vector<std::int64_t>& shape,
                std::uint64_t seed = 1) {
  return StatedInput::parse(text, "X")->values(dtype, shape, seed);
}

std::string error_of(const std::string& text, DType dtype, std::int64_t elements = 4) {
  return usage_error_of([&] { made(text, dtype, {elements}); });
}

TEST(StatedInputTest, WhatTheWordsSay) {
  EXPECT_THAT(values_of(made("arange", bf16, {2, 2})), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(values_of(made("zeros", i32, {2})), ElementsAre(0, 0));
  EXPECT_THAT(values_of(made("full:-2.5", f16, {2})), ElementsAre(-2.5, -2.5));
  EXPECT_THAT(values_of(made("full:-3", i8, {2})), ElementsAre(-3, -3));
  EXPECT_TRUE(std::isnan(made("full:nan", f32, {1}).flat(0)));
  EXPECT_EQ(made("normal:9", f32, {5}), HostTensor::random_normal(f32, {5}, 9));
  EXPECT_EQ(made("arange", f32, {0, 3}).elements(), 0);
}

TEST(StatedInputTest, RangesAreFilledAndKept) {
  std::set<double> integers;
  for (const double value : values_of(made("uniform:-2:3", i32, {500}))) integers.insert(value);
  EXPECT_THAT(integers, ElementsAre(-2, -1, 0, 1, 2));
  const std::vector<double> reals = values_of(made("uniform:2:4", bf16, {500}));
  EXPECT_THAT(reals, testing::Each(AllOf(testing::Ge(2), testing::Le(4))));
  EXPECT_LT(*std::min_element(reals.begin(), reals.end()), 2.1);
  EXPECT_GT(*std::max_element(reals.begin(), reals.end()), 3.9);
}

TEST(StatedInputTest, APermutationHasEachNumberOnceAndInNoOrder) {
  const std::vector<double> values = values_of(made("permutation", i32, {8, 8}));
  std::vector<double> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < sorted.size(); ++i) EXPECT_EQ(sorted[i], static_cast<double>(i));
  EXPECT_NE(values, sorted);
  // Files name a seed: what it draws stays what it was.
  EXPECT_THAT(values_of(made("permutation:7", i32, {8})), ElementsAre(1, 4, 5, 2, 6, 0, 3, 7));
}

TEST(StatedInputTest, SeedsDrawOthers) {
  for (const char* words : {"uniform:0:1", "permutation", "normal"}) {
    const DType dtype = std::string(words) == "permutation" ? i32 : f32;
    EXPECT_EQ(made(words, dtype, {50}, 1), made(words, dtype, {50}, 1)) << words;
    EXPECT_NE(made(words, dtype, {50}, 1), made(words, dtype, {50}, 2)) << words;
    const std::string seeded = std::string(words) + ":2";
    EXPECT_EQ(made(seeded, dtype, {50}, 1), made(words, dtype, {50}, 2)) << words;
    EXPECT_EQ(StatedInput::parse(words, "X")->with_seed(2), seeded);
    EXPECT_EQ(StatedInput::parse(seeded, "X")->with_seed(3), seeded);
  }
  EXPECT_EQ(StatedInput::parse("arange", "X")->with_seed(2), "arange");
}

TEST(StatedInputTest, NamesOfFilesAreNoWords) {
  for (const char* file : {"x.npy", "folder/x", "x.safetensors:key", "zeros.npy", "./zeros"}) {
    EXPECT_FALSE(StatedInput::parse(file, "X")) << file;
  }
}

// Each names the argument, the problem and what to write.
TEST(StatedInputTest, WhatIsWrongIsAnError) {
  EXPECT_THAT(error_of("zeroes", f32),
              AllOf(HasSubstr("--in X=zeroes: 'zeroes' is neither a kind of numbers nor a file"),
                    HasSubstr("uniform:-1:1"), HasSubstr("x.npy")));
  EXPECT_THAT(error_of("unifrm:0.5:1", f32), HasSubstr("'unifrm' is neither"));
  EXPECT_THAT(error_of("", f32), HasSubstr("'' is neither"));
  EXPECT_THAT(error_of(std::string(5000, 'x'), f32), HasSubstr("is neither a kind of numbers"));
  EXPECT_THAT(error_of("full", f32), AllOf(HasSubstr("full takes 1 number, and 0 stand there"),
                                           HasSubstr("--in X=full:0.5")));
  EXPECT_THAT(error_of("zeros:1", f32), HasSubstr("zeros takes 0 numbers, and 1 stand there"));
  EXPECT_THAT(error_of("full:half", f32), HasSubstr("'half' is no number"));
  EXPECT_THAT(error_of("uniform:1:-1", f32), AllOf(HasSubstr("nothing from 1 to below -1"),
                                                   HasSubstr("the smaller number first")));
  EXPECT_THAT(error_of("uniform:1:1", f32), HasSubstr("nothing from 1"));
  EXPECT_THAT(error_of("uniform:0:inf", f32), HasSubstr("nothing from 0 to below inf"));
  EXPECT_THAT(error_of("permutation:-1", i32), HasSubstr("'-1' is no seed"));
  EXPECT_THAT(error_of("permutation", bf16),
              AllOf(HasSubstr("X is bf16, and a permutation is one of indices"),
                    HasSubstr("--in X=uniform:-1:1")));
  EXPECT_THAT(error_of("normal", i32), HasSubstr("normal numbers are no integers"));
  EXPECT_THAT(error_of("full:1.5", i32), HasSubstr("1.5 is no integer"));
  EXPECT_THAT(error_of("full:-129", i8), HasSubstr("from -128 to 127, and -129 lies outside"));
  EXPECT_THAT(error_of("full:inf", f8e4m3), HasSubstr("ends at 448, and inf lies beyond"));
  EXPECT_THAT(error_of("full:300", u8), HasSubstr("from 0 to 255, and 300 lies outside"));
  EXPECT_THAT(error_of("arange", i8, 129), HasSubstr("128 lies outside"));
  EXPECT_THAT(error_of("permutation", i8, 200), HasSubstr("199 lies outside"));
  EXPECT_THAT(error_of("full:70000", f16), HasSubstr("ends at 65504, and 70000 lies beyond"));
  EXPECT_THAT(error_of("uniform:0:500", f8e4m3), HasSubstr("ends at 448"));
  EXPECT_EQ(made("uniform:0:128", i8, {4}).elements(), 4);
}

TEST(StatedInputTest, StandsBesideFilesAndSizes) {
  const test::TemporaryFolder folder;
  write_tensor(folder / "a.npy", HostTensor::zeros(f32, {3, 4}));
  const Workload workload = make_workload(find_kernel("gemm"), {"dtype=f32", "n=2"},
                                          {{"A", folder / "a.npy"}, {"B", "arange"}}, 0);
  EXPECT_THAT(values_of(workload.tensors[1]), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(usage_error_of([] {
                make_workload(find_kernel("gemm"), {}, {{"D", "zeros"}}, 0);
              }),
              AllOf(HasSubstr("gemm has no input 'D'"), HasSubstr("name one of: A, B")));
  EXPECT_THAT(usage_error_of([] {
                make_workload(find_kernel("attention_forward"), {}, {{"sinks", "zeros"}}, 0);
              }),
              HasSubstr("has no input sinks while sinks is false"));
}

// What each rank has is drawn from seeds of its own.
TEST(StatedInputTest, EachRankHasItsOwn) {
  const Workload workload =
      make_workload(find_kernel("all_gather"), {"ranks=2"}, {{"X", "uniform:0:1"}}, 0);
  std::vector<HostTensor> inputs = workload.inputs();
  ASSERT_EQ(inputs.size(), 2u);
  EXPECT_NE(inputs[0], inputs[1]);
  EXPECT_GE(inputs[1].flat(0), 0);
}

}  // namespace
}  // namespace tilewright::library
