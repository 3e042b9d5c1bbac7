#include "ir/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>

#include "ir/samples.h"
#include "ir/verifier.h"

namespace tilewright::ir {
namespace {

class Samples : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Forms, Samples,
                         testing::Values(kTileSample, kScheduledSample, kMachineSample,
                                         kRanksSample));

TEST_P(Samples, AreWellFormed) { EXPECT_NO_THROW(verify(parse_text(GetParam(), "sample.tw"))); }

TEST_P(Samples, RoundTrip) {
  const Kernel kernel = parse_text(GetParam(), "");
  const std::string text = to_text(kernel);
  const Kernel again = parse_text(text, "");
  EXPECT_TRUE(equal(kernel, again)) << text;
  EXPECT_EQ(to_text(again), text);
}

TEST_P(Samples, KeepTheirMeaningWhenRenumbered) {
  const Kernel kernel = parse_text(GetParam(), "");
  Kernel shifted = kernel;
  canonicalise(shifted);
  EXPECT_TRUE(equal(kernel, shifted));
  EXPECT_EQ(to_text(kernel), to_text(shifted)) << "the samples are numbered canonically";
}

TEST_P(Samples, AreReadFromTheirOwnPrint) {
  const Kernel kernel = parse_text(GetParam(), "");
  EXPECT_TRUE(equal(kernel, parse_text(to_text(kernel, {.locations = false}), "")));
}

// Whatever is cut off or overwritten: an error with a place, or a kernel, never a crash. The
// verifier gets what parses, since passes hand it broken kernels too.
void survives(const std::string& text) {
  try {
    const Kernel kernel = parse_text(text, "broken.tw");
    (void)to_text(kernel);
    verify(kernel);
  } catch (const Error& error) {
    EXPECT_FALSE(error.message().empty());
  }
}

TEST_P(Samples, SurviveTruncation) {
  const std::string text = GetParam();
  for (std::size_t length = 0; length < text.size(); ++length) survives(text.substr(0, length));
}

TEST_P(Samples, SurviveMutation) {
  const std::string text = GetParam();
  std::mt19937 random(20261121);
  const std::string alphabet = "%{}()[]<>=:,\"@.-*/|x0123456789 \n\\eabcdfinot_\xff";
  const auto pick = [&random](std::size_t count) {
    return static_cast<std::size_t>(random() % count);
  };
  for (int round = 0; round < 4000; ++round) {
    std::string broken = text;
    for (int change = 0; change < 1 + round % 3; ++change) {
      const std::size_t at = pick(broken.size());
      switch (pick(4)) {
        case 0:
          broken[at] = alphabet[pick(alphabet.size())];
          break;
        case 1:
          broken.erase(at, 1 + pick(8));
          break;
        case 2:
          broken.insert(at, 1, alphabet[pick(alphabet.size())]);
          break;
        default:
          broken.insert(at, broken.substr(pick(broken.size()), 1 + pick(20)));
      }
    }
    survives(broken);
  }
}

// A kernel with one operation that has the attribute.
Kernel with_attribute(Attribute attribute) {
  Kernel kernel;
  kernel.name = "attributes";
  kernel.dims = {Dim::symbol("n", multiple_of(4))};
  kernel.grid = {Dim(1)};
  Operation operation;
  operation.op = Op::fence_proxy_async;
  operation.attributes.set(Key::value, std::move(attribute));
  kernel.body.body.push_back(std::move(operation));
  return kernel;
}

TEST(AttributeText, EveryTypeRoundTrips) {
  const Dim n = Dim::symbol("n", multiple_of(4));
  const double infinity = std::numeric_limits<double>::infinity();
  const Attribute attributes[] = {
      std::int64_t{0},
      std::int64_t{-1},
      std::numeric_limits<std::int64_t>::max(),
      std::numeric_limits<std::int64_t>::min(),
      0.0,
      -0.0,
      4.0,
      0.1,
      -1e300,
      5e-324,
      1.4426950408889634,
      infinity,
      -infinity,
      std::nan(""),
      std::nan("5"),
      std::copysign(std::nan(""), -1.0),
      std::string(),
      std::string("a \"quoted\" text \\ with \xc3\xa9 and } , ) ]"),
      std::vector<std::int64_t>{},
      std::vector<std::int64_t>{1, -2, 3},
      Op::exp2,
      Op::exp,
      Op::dim,
      Op::shared,
      n,
      Dim(7),
      ceil_div(n + 3, 5) * max(n % 3, 1) - min(n, 9) / 2,
      wgmma_accumulator(64, 32),
      SharedLayout::panels(64, 128, 2, 128),
      std::vector<IndexMap>{},
      std::vector<IndexMap>{{}, {{1, 64, 1}}, {{2, 4, 8}, {16, 2, 1}}},
  };
  for (const Attribute& attribute : attributes) {
    const Kernel kernel = with_attribute(attribute);
    const std::string text = to_text(kernel);
    const Kernel again = parse_text(text, "");
    EXPECT_TRUE(equal(kernel, again)) << text;
    EXPECT_EQ(to_text(again), text);
  }
}

// They would end a comment of the printed source, or a line of a terminal.
TEST(AttributeText, ControlCharactersAreRefusedAtTheirLine) {
  for (const char* text : {"a\\nb", "\\x1b[0m", "\\x7f", "\\xc2\\x9b"}) {
    const std::string quote = '"' + std::string(text) + '"';
    for (const std::string& whole :
         {"kernel " + quote + " tile\ngrid (1)\nbody (%0: i32) {\n}\n",
          "kernel \"k\" tile @" + quote + ":3\ngrid (1)\nbody (%0: i32) {\n}\n",
          "\nkernel \"k\" machine\ngrid (1)\nthreads 128\nbody () {\n  role {name = " + quote +
              ", first_warp = 0, warps = 4} (%0: i32) {\n    yield\n  }\n}\n"}) {
      try {
        parse_text(whole, "hostile.tw");
        ADD_FAILURE() << whole;
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::usage);
        EXPECT_STREQ(error.location().file, "hostile.tw");
        EXPECT_EQ(error.location().line, whole[0] == '\n' ? 6 : 1);
        EXPECT_NE(error.message().find("control character"), std::string::npos) << error.what();
      }
    }
  }
}

// What it says of a place that the text names would not help who has written the text.
TEST(ReadVerified, ErrorsNameTheTextsOwnLines) {
  const std::string text =
      "kernel \"k\" tile @\"a.cpp\":7\nin X: f32[16] = %0\ngrid (1)\nbody (%1: i32) {\n"
      "  %2: i32 = neg %0 @\"a.cpp\":70\n}\n";
  try {
    read_verified(text, "mine.tw", [](const Kernel& kernel) { verify(kernel, ErrorKind::usage); });
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_STREQ(error.location().file, "mine.tw");
    EXPECT_EQ(error.location().line, 5);
  }
  const std::string sound = "kernel \"k\" tile @\"a.cpp\":7\ngrid (1)\nbody (%1: i32) {\n}\n";
  EXPECT_STREQ(read_verified(sound, "mine.tw", [](const Kernel&) {}).where.file, "a.cpp");
}

TEST(AttributeText, IntegersAndNumbersDiffer) {
  EXPECT_FALSE(equal(with_attribute(std::int64_t{4}), with_attribute(4.0)));
  EXPECT_NE(to_text(with_attribute(std::int64_t{4})), to_text(with_attribute(4.0)));
  EXPECT_FALSE(equal(with_attribute(0.0), with_attribute(-0.0)));
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Equality, SeesEveryDifference) {
  const Kernel kernel = parse_text(kTileSample, "");
  const std::pair<const char*, const char*> changes[] = {
      {"\"row_sums\"", "\"other\""},      {"multiple_of(8)", "multiple_of(16)"},
      {"at_most(4096)", "at_most(4097)"}, {"in X", "inout X"},
      {"scale: f32", "other: f32"},       {"min(columns, 4)", "min(columns, 5)"},
      {"axis = 1", "axis = 0"},           {"value = 64", "value = 65"},
      {"lt %3, %4", "lt %4, %3"},         {"function = add", "function = max"},
      {"yield %20", "yield %14"},         {"exp2", "exp"},
  };
  for (const auto& [from, to] : changes) {
    EXPECT_FALSE(equal(kernel, parse_text(replaced(kTileSample, from, to), ""))) << to;
  }
  EXPECT_TRUE(
      equal(kernel, parse_text(replaced(kTileSample, "\"sums.cpp\":8", "\"x.cpp\":9"), "")));
  const Kernel machine = parse_text(kMachineSample, "");
  for (const auto& [from, to] : {std::pair{"threads 256", "threads 384"},
                                 {"resident 2", "resident 1"},
                                 {"cluster 1", "cluster 2"},
                                 {"shared_bytes 16400", "shared_bytes 16408"}}) {
    EXPECT_FALSE(equal(machine, parse_text(replaced(kMachineSample, from, to), ""))) << to;
  }
}

// A field that is not stated is the compiler's choice, which may be another value.
TEST(Equality, SeesWhatSchedulesState) {
  const auto kernel = [](const std::string& schedule) {
    return parse_text("kernel \"k\" tile\ngrid (1)\n" + schedule + "body (%0: i32) {\n}\n", "");
  };
  const Kernel stated = kernel("schedule stages = 3\nschedule partition = rows\n");
  EXPECT_TRUE(equal(stated, parse_text(to_text(stated), "")));
  for (const char* other :
       {"", "schedule stages = 3\n", "schedule stages = 2\nschedule partition = rows\n",
        "schedule stages = 3\nschedule partition = columns\n",
        "schedule stages = 3\nschedule partition = rows\nschedule ctas = 1\n"}) {
    EXPECT_FALSE(equal(stated, kernel(other))) << other;
    EXPECT_FALSE(equal(kernel(other), stated)) << other;
  }
}

const std::string kClaimed =
    "kernel \"claimed\" tile\ngrid (1)\n"
    "require registers <= 168 @\"a.cpp\":3\nrequire stages(\"K\") >= 2\n"
    "require stack_bytes == 0\nrequire instructions(\"tma_load\") == 4\n"
    "body (%0: i32) {\n}\n";

TEST(Claims, ReadBackAsTheyWere) {
  const Kernel kernel = parse_text(kClaimed, "claimed.tw");
  ASSERT_EQ(kernel.claims.size(), 4u);
  EXPECT_EQ(kernel.claims[0].bound, 168);
  EXPECT_STREQ(kernel.claims[0].where.file, "a.cpp");
  EXPECT_EQ(kernel.claims[1].name, "K");
  EXPECT_EQ(kernel.claims[1].relation, Claim::Relation::at_least);
  EXPECT_EQ(kernel.claims[2].relation, Claim::Relation::equal);
  EXPECT_TRUE(equal(kernel, parse_text(to_text(kernel), "again.tw")));
  for (const auto& [from, to] : {std::pair{"168", "169"},
                                 {"<=", ">="},
                                 {"\"K\"", "\"V\""},
                                 {"stack", "spill"},
                                 {"require stack_bytes == 0\n", ""},
                                 {"require instructions(\"tma_load\") == 4\n", ""}}) {
    const Kernel other = parse_text(replaced(kClaimed, from, to), "");
    EXPECT_FALSE(equal(kernel, other)) << to;
    EXPECT_FALSE(equal(other, kernel)) << to;
  }
}

TEST(Claims, ThatMeanNothingAreErrors) {
  const std::pair<std::pair<const char*, const char*>, const char*> cases[] = {
      {{"registers <=", "speed <="}, "there is no such figure to make a claim about"},
      {{"registers <=", "registers <"}, "expected '=', found \"168\""},
      {{"registers <=", "registers"}, "expected '=', found \"168\""},
      {{"stages(\"K\")", "stages"}, "expected '(', found '>'"},
      {{"<= 168", "<= many"}, "expected an integer, found \"many\""},
  };
  for (const auto& [change, message] : cases) {
    try {
      (void)parse_text(replaced(kClaimed, change.first, change.second), "claimed.tw");
      ADD_FAILURE() << change.second;
    } catch (const Error& error) {
      EXPECT_EQ(error.message(), message);
      EXPECT_STREQ(error.location().file, "claimed.tw");
    }
  }
}

// Barriers and tensor maps have no elements, so the text names no dtype.
TEST(Equality, IgnoresDTypesThatMeanNothing) {
  using Kind = Type::Kind;
  EXPECT_EQ(Type::of(Kind::mbarriers, DType::i64, {2}), Type::of(Kind::mbarriers, DType::i32, {2}));
  EXPECT_NE(Type::of(Kind::mbarriers, DType::i64, {2}), Type::of(Kind::mbarriers, DType::i64, {3}));
  EXPECT_NE(Type::of(Kind::shared, DType::f16, {1, 2}),
            Type::of(Kind::shared, DType::bf16, {1, 2}));
}

TEST(ParseError, NamesPlaceAndExpectation) {
  struct Case {
    const char* from;
    const char* to;
    const char* message;
    const char* caret;  // the line and the caret under it
  };
  const Case cases[] = {
      {"= neg %12", "= negate %12", "unknown operation \"negate\"",
       "%23: tile<f32, 64x1> = negate %12\n                           ^"},
      {"yield %20", "yield %99", "%99 is used but never defined", "yield %99\n          ^"},
      {"%7: i32 = dim", "%6: i32 = dim", "%6 is defined twice", "^"},
      {"tile<bf16, 64x64>", "tile<bf17, 64x64>", "unknown dtype \"bf17\"", "^"},
      {"{value = 64}", "{value = }", "expected an integer, a number, a text", "^"},
      {"{value = 64}", "{worth = 64}", "unknown attribute \"worth\"", "^"},
      {"{value = 64}", "{value = 64", "expected '}', found '@'", "^"},
      {"{value = 64}", "{value = 64, value = 65}", "value is given twice", "^"},
      {"{value = 64}", "{value = 99999999999999999999}", "out of range", "^"},
      {"dim(rows)", "dim(row)", "unknown dimension \"row\"", "^"},
      {"(columns * 2)", "(columns 2)", "expected an operator", "^"},
      {"dim columns", "dim rows", "dim rows is declared twice", "^"},
      {"\" tile @", "\" flat @", "expected the kernel's form", "^"},
      {"\"row_sums\"", "\"row sums\"", "a kernel's name is of letters, digits and _",
       "kernel \"row sums\" tile @\"sums.cpp\":3\n           ^"},
      {"\"row_sums\"", "\"2sums\"", "a kernel's name is of letters", "^"},
      {"\"row_sums\"", "\"\"", "a kernel's name is of letters", "^"},
      {"at_most(4096)", "at_most(-5)", "no size of rows has these facts",
       "dim rows multiple_of(8) at_least(8) at_most(-5)\n             ^"},
      {"at_least(8)", "at_least(4097)", "no size of rows has these facts", "^"},
      {"at_least(8) at_most(4096)", "at_least(9) at_most(15)", "no size of rows has these", "^"},
      {"at_least(8)", "at_least(-8)", "no size of rows has these facts", "^"},
      {"at_most(4096)", "at_most(9223372036854775807) at_least(2147483648)",
       "no size of rows has these facts", "^"},
      {"\"sums.cpp\":13", "\"sums.cpp:13", "no closing '\"'", "^"},
      {"value = 0.0", "value = nan(7ff8000000000001)", "expected 0x and the bits of a NaN", "^"},
      {"value = 0.0", "value = nan(ff7ff8000000000001)", "expected 0x and the bits", "^"},
      {"value = 0.0", "value = nan(0x7ff8000000000001z)", "expected 0x and the bits", "^"},
      {"value = 0.0", "value = nan(0x3ff0000000000000)", "expected 0x and the bits", "^"},
  };
  const std::string sample = kTileSample;
  for (const Case& each : cases) {
    const auto before = sample.begin() + static_cast<std::ptrdiff_t>(sample.find(each.from));
    const int line = 1 + static_cast<int>(std::count(sample.begin(), before, '\n'));
    try {
      (void)parse_text(replaced(sample, each.from, each.to), "broken.tw");
      ADD_FAILURE() << "accepted: " << each.to;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      EXPECT_STREQ(error.location().file, "broken.tw");
      EXPECT_EQ(error.location().line, line) << error.what();
      EXPECT_NE(error.message().find(each.message), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find(each.caret), std::string::npos) << error.what();
    }
  }
}

// Of an operation that there is not, the one that was meant.
TEST(ParseError, NamesTheNearestOperation) {
  const std::pair<std::string, std::string> nearest[] = {{"negat", "neg"},
                                                         {"reduce_", "reduce"},
                                                         {"cta_snyc", "cta_sync"},
                                                         {"tma_stroe", "tma_store"},
                                                         {"mbarrier_waits", "mbarrier_wait"},
                                                         {"barrier_wait", "mbarrier_wait"}};
  for (const auto& [name, wanted] : nearest) {
    try {
      (void)parse_text("kernel \"k\" tile\ngrid (1)\nbody (%0: i32) {\n  " + name + " %0\n}\n", "");
      ADD_FAILURE() << "accepted: " << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.fix(), "the operation whose name is nearest is " + wanted);
    }
  }
}

// By meaning, where it has another name elsewhere; none where all names are far.
TEST(ParseError, NamesTheOperationThatIsMeant) {
  const std::pair<std::string, std::string> meant[] = {
      {"permute", "the operation that does this is transpose"},
      {"where", "the operation that does this is select"},
      {"if", "the operation that does this is if_then"},
      {"softmax", ""},
      {std::string(100, 'x'), ""}};
  for (const auto& [name, wanted] : meant) {
    try {
      (void)parse_text("kernel \"k\" tile\ngrid (1)\nbody (%0: i32) {\n  " + name + " %0\n}\n", "");
      ADD_FAILURE() << "accepted: " << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.fix(), wanted) << name;
    }
  }
}

TEST(ParseError, NothingStandsBehindTheKernel) {
  try {
    (void)parse_text("kernel \"k\" tile\ngrid (1)\nbody (%0: i32) {\n}\nmore\n", "long.tw");
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "expected the end of the text, found \"more\"");
    EXPECT_EQ(error.location().line, 5);
  }
}

TEST(ParseError, SaysThatTheTextEnds) {
  try {
    (void)parse_text("kernel", "cut.tw");
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "expected the kernel's name in quotes, found the end of the text");
  }
}

TEST(ParseError, DeepNestingIsRefused) {
  const std::string header = "kernel \"deep\" tile\ngrid (1)\nbody (%0: i32) {\n";
  std::string blocks = header;
  for (int i = 0; i < 100000; ++i) blocks += "elect () {\n";
  EXPECT_THROW((void)parse_text(blocks, ""), Error);
  const std::string dims = "kernel \"deep\" tile\ngrid (" + std::string(100000, '(') + "1)\n";
  try {
    (void)parse_text(dims, "");
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), testing::HasSubstr("too deep an expression at column 501"));
    EXPECT_LT(error.message().size(), 300u) << "what stands around the place is shown";
  }
  // Side by side they are not.
  std::string sum = "1";
  for (int i = 1; i < 600; ++i) sum += " + (1)";
  const Kernel wide =
      parse_text("kernel \"wide\" machine\ngrid (" + sum + ")\nthreads 32\nbody () {\n}\n", "");
  EXPECT_EQ(wide.grid.at(0).to_string(), "600");
}

TEST(ParseError, OperationsWithoutLocationGetTheirLineOfTheText) {
  const Kernel kernel = parse_text(kScheduledSample, "product.tw");
  EXPECT_STREQ(kernel.body.body[0].where.file, "product.tw");
  EXPECT_EQ(kernel.body.body[0].where.line, 8);
}

}  // namespace
}  // namespace tilewright::ir
