#include "check/ptx_file.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <cmath>
#include <limits>

#include "common/error_text.h"
#include "ptx/module.h"
#include "tilewright/error.h"

// PTX that any compiler made, launched as a JSON file says.
namespace tilewright::checks {
namespace {

using testing::HasSubstr;

// Each warp writes a word of shared memory and reads the next warp's.
constexpr const char* kNeighbours = R"(
.version 8.3
.target sm_90a
.address_size 64
.extern .shared .align 16 .b8 words[];
.visible .entry neighbours(.param .u64 .ptr .global .align 1 p0, .param .u32 p1, .param .f32 p2)
.reqntid 128
{
  .reg .pred %p<2>;
  .reg .b32 %r<12>;
  .reg .f32 %f<4>;
  .reg .b64 %rd<4>;
  ld.param.b64 %rd1, [p0];
  ld.param.b32 %r1, [p1];
  ld.param.f32 %f1, [p2];
  mov.u32 %r2, %tid.x;
  mov.u32 %r3, %ctaid.x;
  mov.b32 %r4, words;
  shr.u32 %r5, %r2, 5;
  shl.b32 %r6, %r5, 2;
  add.s32 %r6, %r6, %r4;
  st.shared.f32 [%r6], %f1;
  bar.sync 0;
  cvt.rn.f32.u32 %f2, %r5;
  st.shared.f32 [%r6], %f2;
  bar.sync 0;
  add.s32 %r7, %r5, 1;
  and.b32 %r7, %r7, 3;
  shl.b32 %r7, %r7, 2;
  add.s32 %r7, %r7, %r4;
  ld.shared.f32 %f3, [%r7];
  add.f32 %f3, %f3, %f1;
  mad.lo.s32 %r8, %r3, %r1, %r2;
  mad.wide.u32 %rd2, %r8, 4, %rd1;
  st.global.f32 [%rd2], %f3;
  ret;
}
)";

constexpr const char* kLaunch = R"({"grid": [3], "block": [128], "shared": 64, "arguments": [
  {"tensor": "y", "dtype": "f32", "shape": [3, 128], "values": "nothing"}, {"i32": 128},
  {"f32": 0.5}]})";

PtxRun run(std::string ptx, const std::string& launch, std::uint64_t seed = 0) {
  return run_ptx(ptx::parse(ptx, "neighbours.ptx"), read_ptx_launch(launch, "l.json", 1), seed);
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(PtxFile, RunsAsItIsLaunched) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const PtxRun made = run(kNeighbours, kLaunch, seed);
    ASSERT_TRUE(made.report.faults.empty()) << made.report.faults[0].message;
    EXPECT_EQ(made.tensors[0].at({2, 0}), 1.5);
    EXPECT_EQ(made.tensors[0].at({1, 127}), 0.5);
  }
}

std::string fault_of(const PtxRun& made) {
  return made.report.faults.empty() ? "" : made.report.faults[0].kind;
}

TEST(PtxFile, FaultsAreFound) {
  // Whatever the order that the seed draws, and though the word holds something.
  const std::string unordered = replaced(kNeighbours, "%f2;\n  bar.sync 0;", "%f2;");
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    EXPECT_EQ(fault_of(run(unordered, kLaunch, seed)), "race") << seed;
  }
  EXPECT_EQ(fault_of(run(kNeighbours, replaced(kLaunch, "[3]", "[4]"))), "out_of_bounds");
  EXPECT_EQ(fault_of(run(kNeighbours, replaced(kLaunch, "\"shared\": 64", "\"shared\": 8"))),
            "out_of_bounds");
}

// Each CTA tells that it has come, and waits for all others. The launch has more CTAs than begin.
constexpr const char* kAllCome = R"(.version 8.0
.target sm_90a
.address_size 64
.visible .entry all_come(.param .u64 p0, .param .u64 p1, .param .u32 p2)
{
  .reg .pred %p<2>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<4>;
  ld.param.b64 %rd1, [p0];
  ld.param.b64 %rd2, [p1];
  ld.param.b32 %r1, [p2];
  mov.u32 %r2, %ctaid.x;
  atom.add.release.gpu.global.u32 %r3, [%rd1], 1;
again:
  ld.acquire.gpu.global.u32 %r3, [%rd1];
  setp.lt.u32 %p1, %r3, %r1;
  @%p1 bra again;
  mad.wide.u32 %rd3, %r2, 4, %rd2;
  st.global.u32 [%rd3], %r3;
  ret;
}
)";

TEST(PtxFile, CtasThatWaitForEachOtherRunBesideEachOther) {
  const std::string launch = R"({"grid": [20], "block": [1], "arguments": [
    {"tensor": "came", "dtype": "i32", "shape": [1], "values": "zeros"},
    {"tensor": "y", "dtype": "i32", "shape": [20], "values": "nothing"}, {"i32": 20}]})";
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    const PtxRun made = run(kAllCome, launch, seed);
    ASSERT_TRUE(made.report.faults.empty()) << made.report.faults[0].message;
    EXPECT_EQ(made.tensors[1].at({19}), 20);
  }
  EXPECT_EQ(fault_of(run(kAllCome, replaced(launch, "{\"i32\": 20}", "{\"i32\": 21}"))),
            "deadlock");
}

TEST(PtxFile, AMultiprocessorHasRoomForItsThreadsAndSharedMemory) {
  const auto room = [](std::int64_t threads, std::int64_t declared, std::int64_t dynamic) {
    ptx::Kernel kernel;
    kernel.static_shared_bytes = declared;
    ptx::LaunchInput input;
    input.block = {threads, 1, 1};
    input.dynamic_shared_bytes = dynamic;
    return room_for_ctas(kernel, input) / 132;
  };
  EXPECT_EQ(room(1, 0, 0), 32);
  EXPECT_EQ(room(65, 0, 0), 31);
  EXPECT_EQ(room(1024, 0, 0), 2);
  EXPECT_EQ(room(128, 0, 113 << 10), 2);
  EXPECT_EQ(room(128, 1 << 10, 113 << 10), 1);
  EXPECT_EQ(room(128, 0, 227 << 10), 1);
}

// A lock, whose holder adds one to a word. Thread 0 asks for it and tells the others what it got,
// until it is theirs.
constexpr const char* kLocked = R"(.version 8.0
.target sm_90a
.address_size 64
.visible .entry locked(.param .u64 p0, .param .u64 p1)
{
  .reg .pred %p<4>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<4>;
  .shared .align 4 .b8 got[4];
  ld.param.b64 %rd1, [p0];
  ld.param.b64 %rd2, [p1];
  mov.u32 %r1, %tid.x;
  setp.eq.u32 %p1, %r1, 0;
again:
  bar.sync 0;  // all have read the last answer
  @%p1 atom.global.acq_rel.gpu.cas.b32 %r2, [%rd1], 0, 1;
  @%p1 st.shared.b32 [got], %r2;
  bar.sync 0;
  ld.shared.b32 %r3, [got];
  setp.ne.u32 %p2, %r3, 0;
  @%p2 bra again;
  @%p1 ld.global.u32 %r4, [%rd2];
  @%p1 add.u32 %r4, %r4, 1;
  @%p1 st.global.u32 [%rd2], %r4;
  bar.sync 0;
  @%p1 st.release.gpu.global.u32 [%rd1], 0;
  ret;
}
)";

TEST(PtxFile, ALockIsAskedForAgain) {
  const std::string launch = R"({"grid": [6], "block": [64], "arguments": [
    {"tensor": "lock", "dtype": "i32", "shape": [1], "values": "zeros"},
    {"tensor": "word", "dtype": "i32", "shape": [1], "values": "zeros"}]})";
  const std::string hurried =
      replaced(kLocked, "bar.sync 0;  // all have read the last answer", "");
  int races = 0;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const PtxRun made = run(kLocked, launch, seed);
    ASSERT_TRUE(made.report.faults.empty()) << made.report.faults[0].message;
    EXPECT_EQ(made.tensors[1].at({0}), 6);
    races += fault_of(run(hurried, launch, seed)) == "race" ? 1 : 0;
  }
  EXPECT_GT(races, 0);
}

TEST(PtxFile, SumsInAnotherOrderAreTheSameResult) {
  const auto is_another = [](DType dtype, const std::vector<double>& a,
                             const std::vector<double>& b) {
    const std::vector<std::int64_t> shape = {static_cast<std::int64_t>(a.size())};
    return is_another_result(HostTensor::from_values(dtype, shape, a),
                             HostTensor::from_values(dtype, shape, b));
  };
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  EXPECT_FALSE(is_another(DType::f32, {1, 0}, {1 + 0x1p-19, 0x1p-20}));
  EXPECT_TRUE(is_another(DType::f32, {1, 0}, {1, 0x1p-17}));
  EXPECT_TRUE(is_another(DType::f32, {1, 0}, {1 + 0x1p-17, 0}));
  EXPECT_FALSE(is_another(DType::f32, {nan, inf}, {nan, inf}));
  EXPECT_TRUE(is_another(DType::f32, {1, 1}, {1, nan}));
  EXPECT_TRUE(is_another(DType::f32, {nan, 1}, {1, 1}));
  EXPECT_TRUE(is_another(DType::f32, {inf, 1}, {-inf, 1}));
  EXPECT_TRUE(is_another(DType::f32, {inf, 1}, {1, 1}));
  EXPECT_TRUE(is_another(DType::f32, {inf, 1}, {inf, 2}));
  EXPECT_FALSE(is_another(DType::bf16, {1}, {1 + 0x1p-7}));
  EXPECT_TRUE(is_another(DType::bf16, {1}, {1 + 0x1p-6}));
  EXPECT_TRUE(is_another(DType::i32, {1 << 20}, {(1 << 20) + 1}));
  EXPECT_TRUE(is_another(DType::f8e4m3, {1}, {1.125}));
}

// An arrival gives a state, which a wait may name in place of a parity.
TEST(PtxFile, WaitsForTheStateOfAnArrival) {
  constexpr const char* kText = R"(.version 8.0
.target sm_90a
.address_size 64
.visible .entry met(.param .u64 p0)
{
  .reg .pred %p<4>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<6>;
  .shared .align 8 .b8 barrier[8];
  .shared .align 4 .b8 words[256];
  ld.param.b64 %rd1, [p0];
  mov.u32 %r1, %tid.x;
  mov.b32 %r2, barrier;
  mov.b32 %r3, words;
  shl.b32 %r4, %r1, 2;
  xor.b32 %r5, %r4, 128;
  add.u32 %r5, %r5, %r3;
  add.u32 %r3, %r3, %r4;
  setp.eq.u32 %p1, %r1, 0;
  @%p1 mbarrier.init.shared.b64 [%r2], 64;
  bar.sync 0;
  st.shared.u32 [%r3], %r1;
  mbarrier.arrive.shared.b64 %rd2, [%r2];
again:
  mbarrier.test_wait.shared.b64 %p2, [%r2], %rd2;
  @!%p2 bra again;
  ld.shared.u32 %r5, [%r5];
  mad.wide.u32 %rd3, %r1, 4, %rd1;
  st.global.u32 [%rd3], %r5;
  ret;
}
)";
  const std::string launch = R"({"grid": [1], "block": [64], "arguments": [
    {"tensor": "y", "dtype": "i32", "shape": [64], "values": "nothing"}]})";
  const std::string early = replaced(kText, "@!%p2 bra again;", "");
  const std::string wild = replaced(kText, "again:", "add.s64 %rd2, %rd2, 1;\nagain:");
  // What the second phase hands over.
  const std::string second =
      replaced(kText, "st.shared.u32 [%r3], %r1;",
               "mbarrier.arrive.shared.b64 %rd2, [%r2];\nonce:\nmbarrier.test_wait.shared.b64 %p2, "
               "[%r2], %rd2;\n@!%p2 bra once;\nst.shared.u32 [%r3], %r1;");
  const std::string old = replaced(
      kText, "again:", "bar.sync 0;\nmbarrier.arrive.shared.b64 %rd4, [%r2];\nbar.sync 0;\nagain:");
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    const PtxRun made = run(kText, launch, seed);
    ASSERT_TRUE(made.report.faults.empty()) << made.report.faults[0].message;
    EXPECT_EQ(made.tensors[0].at({3}), 35);
    EXPECT_NE(fault_of(run(early, launch, seed)), "");
    EXPECT_EQ(fault_of(run(wild, launch, seed)), "mbarrier");
    EXPECT_EQ(fault_of(run(old, launch, seed)), "mbarrier");
    const PtxRun next = run(second, launch, seed);
    ASSERT_TRUE(next.report.faults.empty()) << next.report.faults[0].message;
    EXPECT_EQ(next.tensors[0].at({3}), 35);
  }
  // No other CTA comes to a barrier of this one: none begins for its sake.
  const std::string alone = replaced(kText, "[%r2], 64;", "[%r2], 65;");
  const PtxRun few = run(alone, replaced(launch, "[1], \"block\"", "[4], \"block\""), 0);
  const PtxRun many = run(alone, replaced(launch, "[1], \"block\"", "[40], \"block\""), 0);
  EXPECT_EQ(fault_of(many), "deadlock");
  EXPECT_EQ(many.report.operations, few.report.operations);
  EXPECT_NE(fault_of(run(replaced(kText, "[%r2], 64;", "[%r2], 65;"), launch)), "");
}

TEST(PtxFile, EndsAfterSoManyInstructions) {
  const ptx::Module module = ptx::parse(kNeighbours, "neighbours.ptx");
  const PtxRun ended = run_ptx(module, read_ptx_launch(kLaunch, "l.json", 1), 0, 20);
  ASSERT_EQ(ended.report.faults.size(), 1u);
  EXPECT_EQ(ended.report.faults[0].kind, "hang");
  EXPECT_THAT(ended.report.faults[0].message, HasSubstr("more than 20 instructions"));
}

TEST(PtxFile, LaunchesThatMakeNoSenseAreRefused) {
  const auto refusal = [](const std::string& launch) -> std::string {
    try {
      run(kNeighbours, launch);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      return test::without_source_lines(error.what());
    }
    return "";
  };
  EXPECT_THAT(refusal("{"), HasSubstr("l.json: is no JSON"));
  EXPECT_THAT(refusal("[]"), HasSubstr("it is no object"));
  EXPECT_THAT(refusal(R"({"gird": [1]})"), HasSubstr("gird is not known"));
  EXPECT_THAT(refusal(R"({"grid": [0]})"), HasSubstr("take one of 1 to"));
  EXPECT_THAT(refusal(R"({"grid": "many"})"), HasSubstr("a list of one to three"));
  EXPECT_THAT(refusal(R"({"arguments": [7]})"), HasSubstr("argument 0 is 7"));
  EXPECT_THAT(refusal(R"({"arguments": [{"tensor": "x"}]})"), HasSubstr("no dtype or no shape"));
  EXPECT_THAT(refusal(R"({"arguments": [{"tensor": "x", "dtype": "f3", "shape": [1]}]})"),
              HasSubstr("is no dtype"));
  EXPECT_THAT(
      refusal(R"({"arguments": [{"tensor": "x", "dtype": "f32", "shape": [99999, 99999]}]})"),
      HasSubstr("too large"));
  EXPECT_THAT(refusal(R"({"arguments": [{"tensor": "x", "dtype": "i8", "shape": [1]},
                                        {"tensor": "y", "dtype": "i64", "shape": [536870912]}]})"),
              HasSubstr("with tensor y the tensors have 4294967297 bytes"));
  EXPECT_THAT(refusal(R"({"kernel": "other"})"), HasSubstr("one of neighbours"));
  EXPECT_THAT(refusal(R"({"grid": [1], "block": [32], "grid": [2]})"),
              HasSubstr("l.json: \"grid\" is there twice"));
  EXPECT_THAT(refusal(replaced(kLaunch, "{\"i32\": 128},", "")),
              HasSubstr("neighbours has 3 parameters, and 2 are given"));
  EXPECT_THAT(refusal(replaced(kLaunch, "\"block\": [128]", "\"block\": [256]")),
              HasSubstr("256 threads a CTA"));
  for (const char* extents : {"[2147483647, 2147483647, 4]", "[1048576]"}) {
    const std::string grid = std::string("\"grid\": ") + extents;
    EXPECT_THAT(refusal(replaced(kLaunch, "\"grid\": [3]", grid)), HasSubstr("a grid of more"));
    const std::string block = std::string("\"block\": ") + extents;
    EXPECT_THAT(refusal(replaced(kLaunch, "\"block\": [128]", block)), HasSubstr("threads a CTA"));
  }
  EXPECT_THAT(refusal(R"({"arguments": [{"tensor": "x", "dtype": "f32", "shape": [1],
                                         "values": 3}]})"),
              HasSubstr("values of x are 3"));
  for (const char* number : {"1e300", "4294967296", "-2147483649", "1.5", "true"}) {
    EXPECT_THAT(refusal(fmt::format(R"({{"arguments": [{{"i32": {}}}]}})", number)),
                HasSubstr("take one of -2147483648 to 4294967295"));
  }
  EXPECT_THAT(refusal(R"({"arguments": [{"f32": 1e999}]})"), HasSubstr("is too large"));
  const std::string deep(100000, '[');
  EXPECT_THAT(refusal("{\"grid\": " + deep), HasSubstr("nest more than 16 deep"));
}

}  // namespace
}  // namespace tilewright::checks
