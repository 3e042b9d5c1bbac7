#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "common/error_text.h"
#include "kernels/library_case.h"
#include "tilewright/compile.h"
#include "tilewright/kernels/gemm.h"

// What a linear layer computes, forward and backward: products of every layout, what stands behind
// them, and the gradients of that.
namespace tilewright {
namespace {

using kernels::Activation;
using kernels::Gemm;
using test::expect_right;
using test::expect_right_everywhere;
using testing::AllOf;
using testing::HasSubstr;

const std::vector<std::string> kAll = {"bias=true", "activation=silu", "residual=true",
                                       "keep_sums=true"};

std::vector<std::string> sizes(const char* m, const char* n, const char* k,
                               std::vector<std::string> more) {
  more.insert(more.end(), {std::string("m=") + m, std::string("n=") + n, std::string("k=") + k});
  return more;
}

// Tiles that are not whole in any axis, and sums of nothing.
TEST(LinearTest, EveryLayoutAgreesWithFloat64) {
  for (const char* kernel : {"gemm_nt", "gemm_nn", "gemm_tn", "gemm_tt"}) {
    expect_right_everywhere({kernel, sizes("136", "72", "104", {})});
    expect_right_everywhere({kernel, sizes("72", "40", "0", {"bias=true"})});
    for (const LibrarySchedule& schedule : find_kernel(kernel).schedules) {
      if (schedule.target != "sm_90a") continue;
      std::vector<std::string> settings = kAll;
      settings.push_back("schedule=" + schedule.name);
      expect_right({kernel, sizes("200", "264", "136", settings)}, "sim:sm_90a");
    }
  }
}

TEST(LinearTest, EpiloguesAgreeWithFloat64) {
  for (const char* activation : {"relu", "gelu", "gelu_tanh"}) {
    expect_right_everywhere(
        {"gemm_nt", sizes("72", "40", "104",
                          {"bias=true", "dtype=f16", std::string("activation=") + activation})});
  }
}

// Each way to divide the work ends its sums in a place of its own: a whole tile, an exchanged one,
// a cluster's parts, and the grid's.
TEST(LinearTest, EveryWayToDivideTheWorkHasEpilogues) {
  const std::vector<std::string> plain =
      sizes("200", "264", "136", {"bias=true", "activation=silu", "residual=true"});
  const LibraryKernel& entry = find_kernel("gemm_nt");
  for (const char* name : {"128x256", "144x128_t_a2_b2", "64x96x128_b4_split4",
                           "48x64x128_t_split6", "128x88_grid", "104x192_t_b2_grid"}) {
    SCOPED_TRACE(name);
    const auto variant =
        std::find_if(kernels::gemm_variants().begin(), kernels::gemm_variants().end(),
                     [&](const auto& each) { return each.name == name; });
    ASSERT_NE(variant, kernels::gemm_variants().end());
    Gemm g;
    g.bias = g.residual = true;
    g.activation = Activation::silu;
    library::Workload work = library::make_workload(entry, plain, {}, 7);
    std::vector<TensorRef> tensors;
    for (HostTensor& tensor : work.tensors) tensors.push_back(ref(tensor));
    compile(kernels::gemm_sm90(kernels::with_variant(g, *variant)), "sim:sm_90a").run(tensors);
    const library::Comparison comparison = library::compare(work, library::reference_of(work));
    EXPECT_TRUE(comparison.ok()) << comparison.text();
  }
}

// A warp that stores no run of the tile waits for the other parts all the same. One of its lanes
// may be the last to leave their word, which it sets back.
TEST(LinearTest, LanesOfAGridMeetBeforeTheirWordIsSetBack) {
  expect_right({"gemm", {"m=40", "n=40", "k=3568", "schedule=64x64x128_grid"}}, "sim:sm_90a");
}

TEST(LinearTest, GradientsAgreeWithFloat64) {
  for (const char* activation : {"relu", "gelu", "gelu_tanh", "silu"}) {
    expect_right_everywhere(
        {"activation_backward",
         {"rows=130", "columns=70", "bias=true", std::string("activation=") + activation}});
  }
  expect_right_everywhere({"activation_backward", {"rows=5", "columns=8", "dtype=f32"}});
  expect_right_everywhere({"column_sums", {"rows=4200", "columns=70", "dtype=f16"}});
  expect_right_everywhere({"column_sums", {"rows=0", "columns=70"}});
}

// No entry of the library asks for it.
TEST(LinearTest, NoActivationLeavesATileAsItIs) {
  Kernel kernel("none");
  const Dim rows = kernel.dim("rows");
  const Tensor x = kernel.in("x", f32, {rows});
  const Tensor y = kernel.out("y", f32, {rows}), slope = kernel.out("slope", f32, {rows});
  const auto [block] = kernel.grid(ceil_div(rows, 16));
  const Block own = rows.block(block, 16);
  store(y(own), kernels::activate(Activation::none, load(x(own))));
  store(slope(own), kernels::derivative(Activation::none, load(x(own))));
  HostTensor given = HostTensor::from_values(f32, {3}, {-2, 0, 5});
  HostTensor same = HostTensor::poisoned(f32, {3}), one = HostTensor::poisoned(f32, {3});
  compile(kernel, "interpreter").run({ref(given), ref(same), ref(one)});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(same.flat(i), given.flat(i));
    EXPECT_EQ(one.flat(i), 1);
  }
}

TEST(LinearTest, WhatIsRefused) {
  const auto refused = [](const Gemm& g) {
    return test::usage_error_of([&] { kernels::gemm_sm90(g); });
  };
  EXPECT_THAT(refused({.dtype = f8e4m3, .b_along_n = true}),
              AllOf(HasSubstr("linear_test.cpp"), HasSubstr("another axis than k")));
  EXPECT_THAT(refused({.b_along_n = true, .block_n = 144}),
              AllOf(HasSubstr("block_n is 144"), HasSubstr("multiple of 64")));
  EXPECT_THAT(refused({.a_along_m = true, .share_a = 4}), HasSubstr("of which each of 4 CTAs"));
  EXPECT_THAT(
      test::usage_error_of([] { kernels::activation_backward({.activation = Activation::none}); }),
      HasSubstr("take column_sums"));
}

}  // namespace
}  // namespace tilewright
