#include "ir/program_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error_text.h"

namespace tilewright::ir {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// As a program is written that hands x on to the next rank.
constexpr const char* kText = R"(program "layer" 2 ranks @"layer.cpp":10
tensor "x": f32[8, 32] @"layer.cpp":11
tensor "y": f32[16, 32] @"layer.cpp":12
signals "made": i32[2] @"layer.cpp":13
stream "math" of 0 @"layer.cpp":14
stream "pull" of 1 @"layer.cpp":15
kernel "twice" tile @"twice.cpp":3
dim rows
in X: f32[rows, 32] = %0 @"twice.cpp":4
out Y: f32[rows, 32] = %1 @"twice.cpp":5
scalar factor: f32 = %2 @"twice.cpp":6
grid (1)
body (%3: i32) {
}
launch "math" of 0 kernel 0 ("x" of 0 [0, 0] [8, 32], "y" of 0 [8, 0] [8, 32]) scalars (0.5 + 2 run) epochs 1 of 1 @"layer.cpp":16
write "math" of 0 "made" of 1 [1] [1] value -1 + 1 run @"layer.cpp":17
wait "pull" of 1 "made" of 1 [1] [1] value 0 + 1 run @"layer.cpp":18
copy "pull" of 1 to "y" of 1 [0, 0] [8, 32] from "x" of 0 [0, 0] [8, 32] @"layer.cpp":19
record "pull" of 1 event 0 @"layer.cpp":20
wait_event "pull" of 1 event 0 @"layer.cpp":21
)";

TEST(ProgramText, ReadsWhatItWrites) {
  const Program program = parse_program(kText, "layer.twp");
  EXPECT_EQ(to_text(program), kText);
  EXPECT_EQ(program.ranks, 2);
  ASSERT_EQ(program.operations.size(), 6u);
  const ProgramOperation& launch = program.operations[0];
  EXPECT_EQ(constants(launch.tensors[1].starts), (std::vector<std::int64_t>{8, 0}));
  EXPECT_EQ(launch.scalars[0].at(3), 6.5);
  EXPECT_EQ(program.operations[1].value.at(1), 0);
  EXPECT_EQ(program.operations[3].to.rank, 1);
  EXPECT_EQ(program.operations[3].from.rank, 0);
  EXPECT_EQ(program.events, 1);
  EXPECT_STREQ(program.operations[5].where.file, "layer.cpp");
}

std::string error_of(const std::string& from, const std::string& to) {
  std::string text = kText;
  const std::size_t at = text.find(from);
  if (at == std::string::npos) return "no such passage";
  text.replace(at, from.size(), to);
  return test::usage_error_of([&] { parse_program(text, "layer.twp"); });
}

// What a hand may get wrong is an error at the line of the text.
TEST(ProgramText, NamesTheLineOfWhatIsWrong) {
  const struct {
    const char *from, *to, *line, *message;
  } cases[] = {
      {"2 ranks", "0 ranks", "layer.twp:1", "1 to 8 ranks"},
      {"2 ranks", "9 ranks", "layer.twp:1", "1 to 8 ranks"},
      {"tensor \"y\"", "tensor \"x\"", "layer.twp:3", "such a buffer already"},
      {"f32[16, 32]", "f32[-16, 32]", "layer.twp:3", "no such shape"},
      {"f32[16, 32]", "f32[16777216, 9223372036854775807]", "layer.twp:3", "no such shape"},
      {"i32[2]", "f32[2]", "layer.twp:4", "expected i32"},
      {"stream \"pull\" of 1", "stream \"pull\" of 2", "layer.twp:6", "a rank from 0 to 1"},
      {"in X: f32[rows", "in X: f32[columns", "layer.twp:9", "columns"},
      {"launch \"math\" of 0", "launch \"math\" of 1", "layer.twp:15", "no stream math of rank 1"},
      {"kernel 0 (", "kernel 1 (", "layer.twp:15", "there is no kernel 1"},
      {"(\"x\" of 0 [0, 0] [8", "(\"x\" of 0 [1, 0] [8", "layer.twp:15", "not inside of x"},
      {"(\"x\" of 0", "(\"x\" of 1", "layer.twp:15", "tensors of its own rank"},
      {"(\"x\" of 0", "(\"z\" of 0", "layer.twp:15", "no such buffer"},
      {"(\"x\" of 0 [0, 0] [8", "(\"x\" of 0 [0, 0] [7", "layer.twp:15", "rows"},
      {"(0.5 + 2 run)", "()", "layer.twp:15", "1 scalar"},
      {"write \"math\" of 0 \"made\" of 1 [1] [1]", "write \"math\" of 0 \"made\" of 1 [0] [2]",
       "layer.twp:16", "one word of signals"},
      {"wait \"pull\" of 1 \"made\"", "wait \"pull\" of 1 \"x\"", "layer.twp:17",
       "not inside of x"},
      {"to \"y\" of 1 [0, 0] [8, 32]", "to \"y\" of 1 [0, 0] [8, 31]", "layer.twp:18",
       "copy: y f32 {8, 31} from x"},
      {"wait_event \"pull\" of 1 event 0", "wait_event \"pull\" of 1 event 1", "layer.twp:20",
       "not recorded before"},
      {"wait_event \"pull\" of 1", "wait_event \"math\" of 0", "layer.twp:20", "the same rank"},
      {"grid (1)", "grid (1, 1)", "layer.twp:7", "the body has 1 arguments"},
      {"epochs 1 of 1", "epochs 2 of 1", "layer.twp:15", "number among those of a run"},
      {"i32[2]", "i32[2, 1]", "layer.twp:4", "one axis"},
      {"record", "recite", "layer.twp:19",
       "expected dim, scalar, read, repeat, when, end, stream, kernel, tensor"},
  };
  for (const auto& each : cases) {
    SCOPED_TRACE(each.to);
    EXPECT_THAT(error_of(each.from, each.to), AllOf(HasSubstr(each.line), HasSubstr(each.message)));
  }
}

// The same for every length.
constexpr const char* kDims = R"(program "layer" 1 ranks
dim rows multiple_of(8)
dim parts at_least(1)
scalar "factor": f32
in "x": f32[rows, 32]
out "y": f32[(rows + 8), 32]
scratch "halves": f32[parts, (rows // 2)]
zeroed "sums": f32[(multiprocessors * 4)]
stream "main" of 0
kernel "twice" tile
dim rows
in X: f32[rows, 32] = %0
out Y: f32[rows, 32] = %1
scalar factor: f32 = %2
grid (1)
body (%3: i32) {
}
zero "main" of 0 "sums" of 0 [0] [(multiprocessors * 4)]
launch "main" of 0 kernel 0 ("x" of 0 [0, 0] [rows, 32], "y" of 0 [8, 0] [rows, 32]) scalars (0.5 + 2 run + 3 dim (rows // 8) + -1 scalar "factor") epochs 1 of 1
copy "main" of 0 to "y" of 0 [0, 0] [8, 32] from "x" of 0 [(rows - 8), 0] [8, 32]
)";

// Without what stands for lines that the text does not give.
std::string without_places(std::string text) {
  for (std::size_t at; (at = text.find(" @\"dims.twp\"")) != std::string::npos;) {
    text.erase(at, text.find('\n', at) - at);
  }
  return text;
}

TEST(ProgramText, DimsScalarsAndRoles) {
  const Program program = parse_program(kDims, "dims.twp");
  EXPECT_EQ(without_places(to_text(program)), kDims);
  const auto shape = [](std::int64_t rows) { return TensorShape{"t", DType::f32, {rows, 32}, {}}; };
  for (const std::int64_t rows : {8, 24, 800}) {
    const Program bound =
        bind_program(program, {shape(rows), shape(rows + 8)}, 7, {1.5}, {{"parts", 3}});
    EXPECT_EQ(constants(bound.buffers[2].shape), (std::vector<std::int64_t>{3, rows / 2}));
    EXPECT_EQ(bound.buffers[3].bytes(), 7 * 4 * 4);
    EXPECT_EQ(constants(bound.operations[2].from.starts), (std::vector<std::int64_t>{rows - 8, 0}));
    const double base = 0.5 + 3 * (static_cast<double>(rows) / 8) - 1.5;
    EXPECT_EQ(bound.operations[1].scalars[0].at(2), base + 4);
    // What is bound is a program that may be written and read as well.
    const std::string text = to_text(bound);
    EXPECT_EQ(to_text(parse_program(text, "dims.twp")), text);
  }
}

TEST(ProgramText, BindingSaysWhatDoesNotFit) {
  const Program program = parse_program(kDims, "dims.twp");
  const auto refused = [&](std::int64_t x, std::int64_t y, const DimValues& given,
                           const std::vector<double>& scalars) {
    return test::usage_error_of([&] {
      bind_program(program, {{"X", DType::f32, {x, 32}, {}}, {"Y", DType::f32, {y, 32}, {}}}, 1,
                   scalars, given);
    });
  };
  EXPECT_THAT(refused(12, 20, {{"parts", 1}}, {1}),
              AllOf(HasSubstr("the dim rows is 12 by axis 0 of X"), HasSubstr("multiple of 8")));
  EXPECT_THAT(refused(16, 16, {{"parts", 1}}, {1}),
              AllOf(HasSubstr("the dim rows is 16 by axis 0 of X, but 8 by axis 0 of Y")));
  EXPECT_THAT(refused(16, 24, {}, {1}), HasSubstr("the dim parts has no value"));
  EXPECT_THAT(refused(16, 24, {{"parts", 0}}, {1}), HasSubstr("at least 1"));
  EXPECT_THAT(refused(16, 24, {{"part", 1}}, {1}), HasSubstr("there is no dim part"));
  EXPECT_THAT(refused(16, 24, {{"parts", 1}}, {}),
              HasSubstr("takes 1 scalar, and the launch gives 0"));
  // A box that ends outside only now.
  EXPECT_THAT(refused(0, 8, {{"parts", 1}}, {1}),
              AllOf(HasSubstr("dims.twp:20"), HasSubstr("copy: {8, 32} elements from {-8, 0} on"),
                    HasSubstr("not inside of x {0, 32}"), HasSubstr("rows = 0")));
  EXPECT_THAT(test::usage_error_of([&] {
                bind_program(program, {{"rows", 8}}, 1);
              }),
              HasSubstr("the dim parts has no value"));
}

TEST(ProgramText, WhatNoRunCanMendIsAnErrorAtItsLine) {
  const struct {
    const char *from, *to, *line, *message;
  } cases[] = {
      {"in \"x\"", "out \"x\"", "", ""},
      {"f32[rows, 32]\nout", "f32[columns, 32]\nout", "dims.twp:5", "unknown dimension"},
      {"dim parts", "dim rows", "dims.twp:3", "declared twice"},
      {"-1 scalar \"factor\"", "-1 scalar \"actor\"", "dims.twp:19", "no such scalar"},
      {"to \"y\" of 0 [0, 0] [8", "to \"y\" of 0 [0, 0] [9", "dims.twp:20", "copy: y f32 {9, 32}"},
      {"to \"y\"", "to \"x\"", "dims.twp:20", "x is passed to be read, and this copy writes it"},
      {"(\"x\" of 0 [0, 0] [rows, 32], \"y\" of 0 [8, 0]",
       "(\"y\" of 0 [0, 0] [rows, 32], \"x\" of 0 [0, 0]", "dims.twp:19",
       "x is passed to be read, and twice, as its Y, writes it"},
      {"[8, 0] [rows, 32])", "[8, 1] [rows, 31])", "dims.twp:19", "size 31"},
  };
  for (const auto& each : cases) {
    SCOPED_TRACE(each.to);
    std::string text = kDims;
    const std::size_t at = text.find(each.from);
    ASSERT_NE(at, std::string::npos);
    text.replace(at, std::string(each.from).size(), each.to);
    if (*each.message == '\0') {
      parse_program(text, "dims.twp");
      continue;
    }
    EXPECT_THAT(test::usage_error_of([&] { parse_program(text, "dims.twp"); }),
                AllOf(HasSubstr(each.line), HasSubstr(each.message)));
  }
}

TEST(ProgramText, EndsInAnErrorWhereverItIsCutOff) {
  const std::string text = kText;
  const std::string kernel = "kernel \"twice\"", end = "}\n";
  const std::size_t first = text.find(kernel), last = text.find(end);
  for (std::size_t size = 0; size < text.size(); size += 7) {
    // Behind the kernel any whole line may be the last one.
    if (size > first && size < last) {
      EXPECT_THROW(parse_program(text.substr(0, size), "layer.twp"), Error) << size;
      continue;
    }
    try {
      parse_program(text.substr(0, size), "layer.twp");
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage) << size;
    }
  }
}

}  // namespace
}  // namespace tilewright::ir
