#include "passes/simplify.h"

#include "passes/pass_case.h"

namespace tilewright::passes {
namespace {

using test::expect_pass;
using test::expect_unchanged;
using test::tile_kernel;

// The index of a store shows what became of a scalar.
std::string indexed(const std::string& operations, const std::string& index) {
  return tile_kernel(
      "  %10: i32 = constant {value = 0}\n  %11: i32 = dim {dim = dim(n)}\n"
      "  %12: i32 = constant {value = 64}\n" +
      operations + "  %90: tile<f32, 64> = load %0, " + index +
      ", %10, %11, %12 {sizes = [0, 64]}\n"
      "  store %1, %90, " +
      index + ", %10, %11, %12 {sizes = [0, 64]}\n");
}

TEST(SimplifyTest, ConstantsFold) {
  expect_pass(simplify,
              indexed("  %20: i32 = constant {value = 7}\n  %21: i32 = constant {value = 3}\n"
                      "  %22: i32 = mul %20, %21\n  %23: i32 = sub %22, %12\n"
                      "  %24: i32 = mod %23, %20\n",
                      "%24"),
              indexed("  %20: i32 = constant {value = 7}\n  %21: i32 = constant {value = 3}\n"
                      "  %22: i32 = constant {value = 21}\n  %23: i32 = constant {value = -43}\n"
                      "  %24: i32 = constant {value = 6}\n",
                      "%24"));
}

// Of a power of two, which a product beyond 32 bits keeps. 48 would not stay.
TEST(SimplifyTest, WhatIsMultipliedDividesWithoutARest) {
  const auto rest = [](const char* factor, const char* divisor) {
    return indexed(std::string("  %20: i32 = constant {value = ") + factor +
                       "}\n  %21: i32 = constant {value = " + divisor +
                       "}\n  %22: i32 = mul %2, %20\n  %23: i32 = mod %22, %21\n",
                   "%23");
  };
  expect_pass(simplify, rest("48", "16"),
              indexed("  %20: i32 = constant {value = 48}\n  %21: i32 = constant {value = 16}\n"
                      "  %22: i32 = mul %2, %20\n  %23: i32 = constant {value = 0}\n",
                      "%23"));
  expect_unchanged(simplify, rest("48", "32"));
  expect_unchanged(simplify, rest("48", "48"));
}

TEST(SimplifyTest, ArithmeticOnDimensionsIsTheHosts) {
  expect_pass(simplify,
              indexed("  %20: i32 = sub %11, %12\n  %21: i32 = ceildiv %20, %12\n", "%21"),
              indexed("  %20: i32 = dim {dim = dim((n - 64))}\n"
                      "  %21: i32 = dim {dim = dim(ceil_div((n - 64), 64))}\n",
                      "%21"));
}

TEST(SimplifyTest, WhatIsTransposedBackIsWhatItWas) {
  const std::string load =
      "  %10: i32 = constant {value = 0}\n  %11: i32 = dim {dim = dim(n)}\n"
      "  %12: i32 = constant {value = 64}\n"
      "  %20: tile<f32, 8x64> = load %0, %10, %10, %11, %12 {sizes = [8, 64]}\n"
      "  %21: tile<f32, 64x8> = transpose %20 {permutation = [1, 0]}\n";
  const auto stored = [](const std::string& tile) {
    return "  store %1, " + tile + ", %10, %10, %11, %12 {sizes = [8, 64]}\n";
  };
  expect_pass(simplify,
              tile_kernel(load + "  %22: tile<f32, 8x64> = transpose %21 {permutation = [1, 0]}\n" +
                          stored("%22")),
              tile_kernel(load + stored("%20")));
  // Of three axes, two turns in one direction are one in the other.
  const auto turned = [&](const std::string& second, const std::string& shape) {
    return load + "  %23: tile<f32, 2x4x64> = reshape %20\n" +
           "  %24: tile<f32, 4x64x2> = transpose %23 {permutation = [1, 2, 0]}\n" +
           "  %25: tile<f32, " + shape + "> = transpose %24 {permutation = " + second + "}\n" +
           "  %26: tile<f32, 8x64> = reshape %25\n" + stored("%26");
  };
  test::expect_unchanged(simplify, tile_kernel(turned("[1, 2, 0]", "64x2x4")));
  const std::string back = turned("[2, 0, 1]", "2x4x64");
  std::string dropped = back;
  dropped.erase(dropped.find("  %25"), dropped.find("  %26") - dropped.find("  %25"));
  dropped.replace(dropped.find("reshape %25"), 11, "reshape %23");
  expect_pass(simplify, tile_kernel(back), tile_kernel(dropped));
}

TEST(SimplifyTest, Identities) {
  const std::string one = "  %19: i32 = constant {value = 1}\n";
  for (const char* operation :
       {"add %2, %10", "add %10, %2", "sub %2, %10", "mul %2, %19", "mul %19, %2", "div %2, %19",
        "ceildiv %2, %19", "min %2, %2", "max %2, %2"}) {
    expect_pass(simplify, indexed(one + "  %20: i32 = " + operation + "\n", "%20"),
                indexed(one, "%2"));
  }
  expect_pass(simplify, indexed(one + "  %20: i32 = mul %2, %10\n", "%20"), indexed(one, "%10"));
  expect_pass(simplify, indexed(one + "  %20: i32 = mod %2, %19\n", "%20"),
              indexed(one + "  %20: i32 = constant {value = 0}\n", "%20"));
}

TEST(SimplifyTest, ConditionsAndSelections) {
  const std::string yes = "  %20: bool = constant {value = 1}\n";
  expect_pass(simplify, indexed(yes + "  %21: i32 = select %20, %2, %12\n", "%21"),
              indexed(yes, "%2"));
  expect_pass(simplify,
              indexed("  %20: bool = lt %12, %10\n  %21: bool = lt %2, %12\n"
                      "  %22: bool = logical_or %20, %21\n  %23: i32 = select %22, %2, %12\n",
                      "%23"),
              indexed("  %20: bool = constant {value = 0}\n  %21: bool = lt %2, %12\n"
                      "  %23: i32 = select %21, %2, %12\n",
                      "%23"));
  expect_pass(simplify,
              indexed("  %20: bool = lt %2, %12\n  %21: i32 = select %20, %2, %2\n", "%21"),
              indexed("  %20: bool = lt %2, %12\n", "%2"));
}

// A constant decides, on whichever side it stands.
TEST(SimplifyTest, ConditionsThatAConstantDecides) {
  const std::string constants =
      "  %20: bool = constant {value = 1}\n  %21: bool = constant {value = 0}\n";
  const std::string asked = "  %22: bool = lt %2, %12\n", late_yes = "  %23: bool = le %12, %12\n",
                    late_no = "  %23: bool = lt %12, %12\n";
  const auto selected = [](const std::string& condition) {
    return "  %25: i32 = select " + condition + ", %2, %12\n";
  };
  const auto simplified = [&](const std::string& late, const std::string& operation,
                              const std::string& result) {
    const std::string folded =
        "  %23: bool = constant {value = " + std::string(late == late_yes ? "1" : "0") + "}\n";
    expect_pass(
        simplify,
        indexed(constants + asked + late + "  %24: bool = " + operation + "\n" + selected("%24"),
                "%25"),
        result == "%22" ? indexed(constants + asked + folded + selected("%22"), "%25")
                        : indexed(constants + asked + folded, result));
  };
  for (const char* yes : {"%20, %22", "%22, %20", "%22, %23"}) {
    simplified(late_yes, std::string("logical_and ") + yes, "%22");
    simplified(late_yes, std::string("logical_or ") + yes, "%2");
  }
  for (const char* no : {"%21, %22", "%22, %21", "%22, %23"}) {
    simplified(late_no, std::string("logical_and ") + no, "%12");
    simplified(late_no, std::string("logical_or ") + no, "%22");
  }
}

TEST(SimplifyTest, DivisionsThatMayFailStay) {
  expect_unchanged(simplify, indexed("  %20: i32 = div %12, %10\n", "%20"));
  expect_unchanged(simplify, indexed("  %20: i32 = constant {value = -3}\n"
                                     "  %21: i32 = mod %11, %20\n",
                                     "%21"));
}

TEST(SimplifyTest, WhatLeaves32BitsStays) {
  expect_unchanged(simplify, indexed("  %20: i32 = constant {value = 2000000000}\n"
                                     "  %21: i32 = add %20, %20\n",
                                     "%21"));
}

// Numbers are not integers: x + 0.0 is not x for x = -0.0.
TEST(SimplifyTest, FloatingArithmeticStays) {
  expect_unchanged(
      simplify,
      tile_kernel("  %10: i32 = constant {value = 0}\n  %11: i32 = dim {dim = dim(n)}\n"
                  "  %12: i32 = constant {value = 64}\n  %13: f32 = constant {value = 0.0}\n"
                  "  %14: tile<f32, 64> = load %0, %2, %10, %11, %12 {sizes = [0, 64]}\n"
                  "  %15: tile<f32, 64> = add %14, %13\n"
                  "  store %1, %15, %2, %10, %11, %12 {sizes = [0, 64]}\n"));
}

}  // namespace
}  // namespace tilewright::passes
