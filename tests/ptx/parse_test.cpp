#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error_text.h"
#include "ptx/launch_test_kernel.h"
#include "ptx/record.h"
#include "tilewright/error.h"

// What is read of PTX, and how it is refused.
namespace tilewright::ptx {
namespace {

using testing::HasSubstr;

std::string refusal(const std::string& body) {
  try {
    parse(test::kernel_text("", body), "test.ptx");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return tilewright::test::without_source_lines(error.what());
  }
  return "";
}

TEST(PtxParse, ErrorsNameTheLine) {
  EXPECT_EQ(refusal("add.s32 %r1, %r0, 1;"), "");
  EXPECT_THAT(refusal("frobnicate.s32 %r1, %r0, 1;"),
              HasSubstr("test.ptx:16: error: the instruction frobnicate.s32 is not known here"));
  EXPECT_THAT(refusal("add.odd.s32 %r1, %r0, 1;"), HasSubstr("odd of add.odd.s32 is not known"));
  EXPECT_THAT(refusal("add.s32 %r1, %r0;"), HasSubstr("with 2 operands"));
  EXPECT_THAT(refusal("add.s32 %r1, %r99, 1;"), HasSubstr("no register or variable %r99"));
  EXPECT_THAT(refusal("bra nowhere;"), HasSubstr("there is no label nowhere"));
  EXPECT_THAT(refusal("ld.global.u32 %r1, %rd0;"), HasSubstr("operand 2 is of another kind"));
  EXPECT_THAT(refusal("mov.u32 %r1, 0q12;"), HasSubstr("a number that begins with 0q"));
  EXPECT_THAT(refusal("@%p1 add.s32 %r1, %r0, 1"), HasSubstr("expected"));
  EXPECT_THAT(refusal("/* no end"), HasSubstr("a comment that does not end"));
  EXPECT_THAT(refusal(".odd x;"), HasSubstr(".odd is no directive"));
  EXPECT_THAT(refusal(".reg .b32 %x<99999999>;"), HasSubstr("more than"));
  EXPECT_THAT(refusal("call f;"), HasSubstr("not known"));
  EXPECT_THAT(refusal("wgmma.mma_async.sync.aligned.m64n8.f32.bf16.bf16 {%r0}, %rd0, %rd0, 1;"),
              HasSubstr("m64n8 of wgmma"));
}

TEST(PtxParse, ErrorsShowTheLine) {
  try {
    parse(test::kernel_text("", "frobnicate.s32 %r1, %r0, 1;"), "test.ptx");
    FAIL() << "it is read";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("\n    frobnicate.s32 %r1, %r0, 1;\n"));
  }
}

// Before the kernel and behind it, with a body and without one.
TEST(PtxParse, AKernelsShapeHasThreeNumbers) {
  for (const std::string directive : {".maxntid", ".reqntid"}) {
    const Module module =
        parse(".version 8.3\n.target sm_90a\n.address_size 64\n.visible .entry k()\n" + directive +
                  " 64, 2, 3\n.reqnctapercluster 2, 1, 1\n{\nret;\n}\n",
              "test.ptx");
    EXPECT_THAT(module.kernels.at(0).most_threads, testing::ElementsAre(64, 2, 3));
    EXPECT_EQ(module.kernels.at(0).cluster, 2);
  }
}

TEST(PtxParse, FunctionsThatNobodyCallsArePassedOver) {
  const std::string kernel = test::kernel_text("", "mov.u32 %r1, 7;\nst.global.u32 [%rd1], %r1;");
  const std::size_t entry = kernel.find(".visible .entry");
  const std::string functions =
      ".func (.param .b32 r) f (.param .b32 a)\n{\n{ ret; }\n}\n.extern .func g\n(.param .b32 "
      "a)\n;\n";
  const std::string text = kernel.substr(0, entry) + functions + kernel.substr(entry) +
                           ".visible .func h ()\n{\nret;\n}\n";
  const test::Ran ran = test::run(text);
  EXPECT_EQ(ran.fault(), "");
  EXPECT_EQ(ran.out[3], 7u);
}

TEST(PtxParse, CutTextIsRefusedAndNotRead) {
  const std::string text =
      test::kernel_text("", "add.s32 %r1, %r0, 1;\n{ .reg .pred p;\nl: bra l; }");
  for (std::size_t size = 0; size < text.size() - 2; ++size) {
    try {
      EXPECT_TRUE(parse(text.substr(0, size), "test.ptx").kernels.empty()) << size;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
    }
  }
}

// Inline assembly has braces of its own, with registers and labels that others have too.
TEST(PtxParse, NamesOfInnerScopesAreTheirOwn) {
  const test::Ran ran = test::run_body(
      "mov.u32 %r1, 0;\n"
      "{ .reg .b32 t; mov.u32 t, 5; again: add.s32 %r1, %r1, t; bra end; end: }\n"
      "{ .reg .b32 t; mov.u32 t, 7; again: add.s32 %r1, %r1, t; bra end; end: }");
  EXPECT_EQ(ran.fault(), "");
  EXPECT_EQ(ran.out[3], 12u);
}

TEST(PtxParse, EveryModifierAndTypeOfARecordIsKnown) {
  for (const Record* record : all_records()) {
    for (const std::string_view list : {record->modifiers, record->types}) {
      std::string_view rest = list;
      while (!rest.empty()) {
        const std::size_t end = std::min(rest.find(' '), rest.size());
        const std::string word(rest.substr(0, end));
        EXPECT_TRUE(is_known_word(word)) << record->name << " " << word;
        rest.remove_prefix(std::min(end + 1, rest.size()));
      }
    }
    EXPECT_NE(record->execute, nullptr);
  }
}

}  // namespace
}  // namespace tilewright::ptx
