#include "passes/convert_layouts.h"

#include <gtest/gtest.h>

#include <regex>

#include "passes/allocate_shared.h"
#include "passes/assign_layouts.h"
#include "passes/pass_case.h"
#include "passes/pipeline.h"
#include "passes/share_reductions.h"

namespace tilewright::passes {
namespace {

using test::role_kernel;

void convert(ir::Kernel& kernel) { convert_layouts(kernel); }
void expect_converted(const std::string& input, const std::string& expected) {
  test::expect_pass(convert, role_kernel(input), role_kernel(expected));
}
void expect_unchanged(const std::string& input) { expect_converted(input, input); }

// %20 is a product's result.
const std::string kProduct =
    "    %10: i32 = constant {value = 0}\n    %11: i32 = constant {value = 64}\n"
    "    %15: i32 = constant {value = 1}\n"
    "    %12: view<bf16, 64x64> = view %3, %10, %10 {column = 0, transposed = 0}\n"
    "    %13: view<bf16, 64x64> = view %3, %15, %10 {column = 0, transposed = 1}\n"
    "    %19: pending<f32, 64x64> = wgmma %12, %13\n"
    "    %20: tile<f32, 64x64> = wait %19\n";

std::string stored_part(const std::string& tile, int columns = 64) {
  const std::string end = columns == 64 ? "%11" : "%18";
  const std::string size = std::to_string(columns);
  return (columns == 64 ? "" : "    %18: i32 = constant {value = " + size + "}\n") +
         "    store %1, " + tile + ", %10, %10, %11, " + end + " {sizes = [64, " + size + "]}\n";
}

TEST(ConvertLayoutsTest, NothingWhereLayoutsAgree) {
  expect_unchanged(kProduct +
                   "    %21: tile<f32, 64x1> = reduce %20 {function = max, axis = 1}\n"
                   "    %22: tile<f32, 64x64> = sub %20, %21\n" +
                   stored_part("%22"));
}

TEST(ConvertLayoutsTest, TheOperandThatLiesDifferently) {
  const std::string turned = "    %21: tile<f32, 64x64> = transpose %20 {permutation = [1, 0]}\n";
  expect_converted(
      kProduct + turned + "    %22: tile<f32, 64x64> = add %20, %21\n" + stored_part("%22"),
      kProduct + turned +
          "    %30: tile<f32, 64x64> = convert %21\n"
          "    %22: tile<f32, 64x64> = add %20, %30\n" +
          stored_part("%22"));
}

TEST(ConvertLayoutsTest, ARowThatStretches) {
  const std::string row =
      "    %21: tile<f32, 64x1> = reduce %20 {function = max, axis = 1}\n"
      "    %22: tile<f32, 1x64> = reshape %21\n";
  expect_converted(
      kProduct + row + "    %23: tile<f32, 64x64> = add %20, %22\n" + stored_part("%23"),
      kProduct + row +
          "    %30: tile<f32, 1x64> = convert %22\n"
          "    %23: tile<f32, 64x64> = add %20, %30\n" +
          stored_part("%23"));
}

TEST(ConvertLayoutsTest, PartsThatBeginInsideOfWhatALaneHolds) {
  expect_converted(kProduct + "    %21: tile<f32, 64x32> = slice %20 {offsets = [0, 3]}\n" +
                       stored_part("%21", 32),
                   kProduct + "    %21: tile<f32, 64x32> = convert %20 {offsets = [0, 3]}\n" +
                       stored_part("%21", 32));
  expect_unchanged(kProduct + "    %21: tile<f32, 64x32> = slice %20 {offsets = [0, 8]}\n" +
                   stored_part("%21", 32));
}

TEST(ConvertLayoutsTest, BooleansPassAsNumbers) {
  const auto body = [](const std::string& between, const std::string& condition) {
    return kProduct +
           "    %21: f32 = constant {value = 0.0}\n"
           "    %22: tile<bool, 64x64> = lt %20, %21\n"
           "    %23: tile<bool, 64x64> = transpose %22 {permutation = [1, 0]}\n" +
           between + "    %24: tile<f32, 64x64> = select " + condition + ", %20, %21\n" +
           stored_part("%24");
  };
  expect_converted(body("", "%23"), body("    %30: i32 = constant {value = 0}\n"
                                         "    %31: i32 = constant {value = 1}\n"
                                         "    %32: tile<i32, 64x64> = select %23, %31, %30\n"
                                         "    %33: tile<i32, 64x64> = convert %32\n"
                                         "    %34: tile<bool, 64x64> = ne %33, %30\n",
                                         "%34"));
}

// Rows and columns of the same numbers: they are computed for each.
TEST(ConvertLayoutsTest, IndicesAreComputedAgain) {
  const std::string indices =
      "    %21: tile<f32, 64x1> = splat %14\n"
      "    %22: tile<f32, 64x1> = exp %21\n";
  const std::string uses =
      "    %23: tile<f32, 64x64> = transpose %20 {permutation = [1, 0]}\n"
      "    %24: tile<f32, 64x64> = mul %20, %22\n"
      "    %25: tile<f32, 64x64> = mul %23, ";
  const std::string number = "    %14: f32 = constant {value = 2.0}\n";
  expect_converted(
      number + kProduct + indices + uses + "%22\n" + stored_part("%24") + stored_part("%25"),
      number + kProduct + indices +
          "    %23: tile<f32, 64x64> = transpose %20 {permutation = [1, 0]}\n"
          "    %24: tile<f32, 64x64> = mul %20, %22\n"
          "    %31: tile<f32, 64x1> = splat %14\n"
          "    %32: tile<f32, 64x1> = exp %31\n"
          "    %25: tile<f32, 64x64> = mul %23, %32\n" +
          stored_part("%24") + stored_part("%25"));
}

// What lies as it is needed after all, also inside of loops and where it is used there.
TEST(ConvertLayoutsTest, ConversionsToTheSameLayoutAreDropped) {
  const auto body = [](const std::string& convert, const std::string& first,
                       const std::string& inner, const std::string& second) {
    return kProduct + convert + "    %22: tile<f32, 64x64> = add %20, " + first + "\n" +
           "    %23: tile<f32, 64x64> = for_loop %10, %11, %15, %22 (%24: i32, %25: tile<f32, "
           "64x64>) {\n" +
           inner + "      %27: tile<f32, 64x64> = add %25, " + second +
           "\n      %28: tile<f32, 64x64> = mul %27, " + first + "\n      yield %28\n    }\n" +
           stored_part("%23");
  };
  expect_converted(body("    %21: tile<f32, 64x64> = convert %20\n", "%21",
                        "      %26: tile<f32, 64x64> = convert %25\n", "%26"),
                   body("", "%20", "", "%25"));
}

// Parts of a sum lie as no other tile does: what scales them is not brought there.
TEST(ConvertLayoutsTest, AFactorOfPartsOfASumStaysWhereItIs) {
  expect_unchanged(kProduct +
                   "    %21: tile<f32, 64x1> = reduce %20 {function = add, axis = 1, partial = 1}\n"
                   "    %22: tile<f32, 1x64> = reduce %20 {function = max, axis = 0}\n"
                   "    %23: tile<f32, 64x1> = reshape %22\n"
                   "    %24: tile<f32, 64x1> = mul %21, %23 {partial = 0}\n"
                   "    %25: tile<f32, 64x1> = complete %24 {function = add}\n"
                   "    %26: tile<f32, 64x64> = mul %20, %25\n" +
                   stored_part("%26"));
}

// A kernel whose conversions have places in shared memory.
ir::Kernel placed(const std::string& text) {
  ir::Kernel kernel = test::parsed(text);
  assign_layouts(kernel);
  share_reductions(kernel);
  kernel.form = ir::Form::machine;
  allocate_shared(kernel);
  return kernel;
}

struct Place {
  bool converts = false;
  std::int64_t begin = 0, end = 0, alignment = 0;
};
std::vector<Place> places_of(const ir::Kernel& kernel) {
  std::vector<Place> places;
  for (const ir::Operation& o : kernel.body.body) {
    if (o.op != ir::Op::shared) continue;
    const ir::SharedLayout& layout = o.attributes.shared_layout();
    const std::int64_t begin = o.attributes.integer(ir::Key::offset);
    places.push_back({o.attributes.has(ir::Key::scratch), begin,
                      begin + layout.size_bytes() * o.attributes.integer(ir::Key::stages),
                      layout.alignment()});
  }
  return places;
}

// Few bytes, in plain rows; many, which are swizzled.
const std::string kSmall =
    "    %21: tile<f32, 64x1> = reduce %20 {function = max, axis = 1}\n"
    "    %22: tile<f32, 1x64> = reshape %21\n"
    "    %23: tile<f32, 1x64> = convert %22\n"
    "    %24: tile<f32, 64x64> = add %20, %23\n";
const std::string kLarge =
    "    %25: tile<f32, 64x64> = transpose %20 {permutation = [1, 0]}\n"
    "    %26: tile<f32, 64x64> = convert %25\n"
    "    %27: tile<f32, 64x64> = add %20, %26\n";

// Its parts in four warps take 512 bytes, behind which nothing is aligned for a swizzle.
const std::string kReduced =
    "    %31: tile<f32, 64x32> = slice %20 {offsets = [0, 8]}\n"
    "    %32: tile<f32, 1x32> = reduce %31 {function = max, axis = 0}\n";

// Conversions of a role follow each other.
TEST(ConvertLayoutsTest, AllLieInOnePlace) {
  for (const bool small_first : {true, false}) {
    const std::string both = kReduced + (small_first ? kSmall + kLarge : kLarge + kSmall);
    const ir::Kernel kernel =
        placed(role_kernel(kProduct + both + stored_part("%24") + stored_part("%27")));
    std::int64_t tiles = 0, conversions = 0;
    std::vector<Place> converting;
    for (const Place& place : places_of(kernel)) {
      EXPECT_EQ(place.begin % place.alignment, 0);
      EXPECT_LE(place.end, kernel.shared_bytes);
      if (place.converts) {
        converting.push_back(place);
        conversions = std::max(conversions, place.end - place.begin);
      } else {
        tiles += place.end - place.begin;
      }
    }
    ASSERT_EQ(converting.size(), 2u);
    EXPECT_EQ(converting[0].begin, converting[1].begin);
    EXPECT_EQ(conversions, 64 * 64 * 4);
    const std::int64_t barriers = 16;
    EXPECT_GE(kernel.shared_bytes, tiles + conversions + barriers);
    EXPECT_LE(kernel.shared_bytes, tiles + conversions + barriers + 1024);
    EXPECT_EQ(tiles, 2 * 64 * 64 * 2 + 4 * 32 * 4);
  }
}

// All read what the last conversion wrote before the next one writes; the first one waits for none.
TEST(ConvertLayoutsTest, NobodyWaitsBeforeTheFirst) {
  const auto meetings = [](const std::string& conversions, const std::string& stores) {
    ir::Kernel kernel = ir::parse_text(role_kernel(kProduct + conversions + stores), "kernel.tw");
    lower_to_machine(kernel);
    int count = 0;
    ir::for_each(kernel.body, [&](const ir::Operation& o) { count += o.op == ir::Op::named_sync; });
    return count;
  };
  EXPECT_EQ(meetings(kLarge, stored_part("%27")), 1);
  EXPECT_EQ(meetings(kSmall + kLarge, stored_part("%24") + stored_part("%27")), 3);
}

// A warp that converts what it holds itself waits for no other, which may be at another conversion.
TEST(ConvertLayoutsTest, SingleWarpsHaveAPlaceOfTheirOwn) {
  const ir::Kernel kernel =
      placed(role_kernel(kProduct + kLarge +
                         "    %28: tile<f32, 64x64> = convert %20 "
                         "{layout = register_layout[64x64|r:2@1:32,16@0:1|l:32@1:1|w:4@0:16]}\n" +
                         stored_part("%27") + stored_part("%28")));
  std::vector<Place> converting;
  for (const Place& place : places_of(kernel)) {
    if (place.converts) converting.push_back(place);
  }
  ASSERT_EQ(converting.size(), 2u);
  EXPECT_TRUE(converting[0].end <= converting[1].begin || converting[1].end <= converting[0].begin);
}

// Roles run beside each other: what one converts may not lie where another converts.
TEST(ConvertLayoutsTest, RolesHavePlacesOfTheirOwn) {
  std::string text = role_kernel(kProduct + kLarge + stored_part("%27"));
  const std::size_t role = text.find("  role {");
  std::string second = text.substr(role, text.rfind("}\n") - role);
  second.replace(second.find("first_warp = 0"), 14, "first_warp = 4");
  // With names of its own for what it defines.
  second = std::regex_replace(second, std::regex("%(2:|[0-9]{2})"), "%9$1");
  text.insert(text.rfind("}\n"), second);
  text.replace(text.find("threads 128"), 11, "threads 256");
  const ir::Kernel kernel = placed(text);
  std::vector<Place> converting;
  for (const Place& place : places_of(kernel)) {
    if (place.converts) converting.push_back(place);
  }
  ASSERT_EQ(converting.size(), 2u);
  EXPECT_TRUE(converting[0].end <= converting[1].begin || converting[1].end <= converting[0].begin);
}

}  // namespace
}  // namespace tilewright::passes
