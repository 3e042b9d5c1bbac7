#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <regex>

#include "common/temporary_folder.h"
#include "library/tensor_file.h"
#include "runtime/nvrtc_available.h"
#include "tilewright/host_tensor.h"
#include "tools/run_command.h"

// What the command does with files that somebody else has written, and where it writes.
namespace tilewright::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;
using Clock = std::chrono::steady_clock;

// The address sanitizer's shadow takes terabytes of addresses.
#ifdef __SANITIZE_ADDRESS__
constexpr bool kLimitsMemory = false;
#else
constexpr bool kLimitsMemory = true;
#endif

// Through a shell, for redirections and limits: "$TILEWRIGHT" is the command.
Answer shell(const std::string& line) {
  setenv("TILEWRIGHT", TILEWRIGHT_COMMAND, 1);
  const runtime::ProcessResult result = runtime::run_process({"sh", "-c", line});
  return {result.status, result.output};
}

// Adds 1 to A {axis}, in tiles of 16 elements.
std::string add_one(const std::string& dims, const std::string& axis, const std::string& grid,
                    const std::string& name = "add_one") {
  return "kernel \"" + name + "\" tile\n" + dims + "in A: f32[" + axis + "] = %0\nout C: f32[" +
         axis + "] = %1\ngrid (" + grid + R"()
body (%2: i32) {
  %3: i32 = constant {value = 16}
  %4: i32 = mul %2, %3
  %5: i32 = dim {dim = dim()" +
         axis + R"()}
  %6: tile<f32, 16> = load %0, %4, %5 {sizes = [16]}
  %7: f32 = constant {value = 1.0}
  %8: tile<f32, 16> = splat %7
  %9: tile<f32, 16> = add %6, %8
  store %1, %9, %4, %5 {sizes = [16]}
}
)";
}

class FilesCommandTest : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return folder_ / name;
  }
  const TemporaryFolder folder_;
};

TEST_F(FilesCommandTest, EveryCommandChecksItsOutput) {
  for (const char* line :
       {"list", "list --json", "explain gemm --target interpreter",
        "explain gemm --target interpreter --json", "doctor", "cache", "--help", "--version",
        "run gemm --target interpreter --set m=4 --set n=4 --set k=4",
        "fuzz --target interpreter --count 1"}) {
    const Answer answer = shell("\"$TILEWRIGHT\" " + std::string(line) + " >/dev/full");
    EXPECT_EQ(answer.status, 2) << line << answer.output;
    EXPECT_THAT(answer.output, HasSubstr("standard output cannot be written")) << line;
  }
}

// C[i] += scale * A[i + skip].
constexpr const char* kAddsScaled = R"(kernel "adds_scaled" tile
dim n
dim more
in A: f32[more] = %0
inout C: f32[n] = %1
scalar scale: f32 = %2
scalar skip: i32 = %3
grid (ceil_div(n, 16))
body (%4: i32) {
  %5: i32 = constant {value = 16}
  %6: i32 = mul %4, %5
  %7: i32 = dim {dim = dim(n)}
  %8: i32 = dim {dim = dim(more)}
  %9: i32 = add %6, %3
  %10: tile<f32, 16> = load %0, %9, %8 {sizes = [16]}
  %11: tile<f32, 16> = load %1, %6, %7 {sizes = [16]}
  %12: tile<f32, 16> = splat %2
  %13: tile<f32, 16> = mul %10, %12
  %14: tile<f32, 16> = add %11, %13
  store %1, %14, %6, %7 {sizes = [16]}
}
)";

// An inout tensor is given and written, and a scalar is set as a dim is.
TEST_F(FilesCommandTest, GivesInoutTensorsAndScalars) {
  const std::string file = write("adds_scaled.tw", kAddsScaled);
  HostTensor A = HostTensor::random_normal(f32, {64}, 1),
             C = HostTensor::random_normal(f32, {32}, 2);
  library::write_tensor(folder_ / "a.npy", A);
  library::write_tensor(folder_ / "c.npy", C);
  const std::string given = file + " --in A=" + std::string(folder_ / "a.npy") +
                            " --in C=" + std::string(folder_ / "c.npy") +
                            " --set scale=-2.5 --set skip=20";
  for (const char* target : {"interpreter", "sim:sm_90a"}) {
    const std::string out = folder_ / "out.npy";
    const Answer run =
        tilewright("run " + given + " --target " + target + " --check --out C=" + out);
    ASSERT_EQ(run.status, 0) << run.output;
    const HostTensor got = library::read_tensor(out, "C", f32);
    for (std::int64_t i = 0; i < 32; ++i) {
      EXPECT_NEAR(got.flat(i), C.flat(i) - 2.5 * A.flat(i + 20), 1e-5) << target << " at " << i;
    }
  }
  // Each launch finds what was given, and not what the one before it has left.
  for (const char* line : {"simulate %s --target sm_90a --schedules 2 --launches 3",
                           "bench %s --target interpreter"}) {
    const Answer answer = tilewright(std::regex_replace(line, std::regex("%s"), given));
    EXPECT_EQ(answer.status, 0) << line << answer.output;
  }
  const Answer program = tilewright(
      "simulate attention_decode --target sm_90a --set keys=20 --in Q=uniform:-1:1 --in K=arange");
  EXPECT_EQ(program.status, 0) << program.output;
  expect_failure("simulate all_gather --target sm_90a --in X=x.npy", 2,
                 {"x.npy: X is there in each rank of all_gather", "--in X=uniform:-1:1"});
  expect_failure("simulate layer.twp --target sm_90a --in X=zeros", 2, {"layer.twp: cannot read"});
  expect_failure("run " + file + " --target interpreter --set scale=nan", 2,
                 {"scale = 'nan' is no finite number", "fix: set scale=0.5"});
  expect_failure("run " + file + " --target interpreter --set scale=1e39", 2,
                 {"scale = '1e39' lies beyond f32, which ends at 3.4028235e+38"});
  expect_failure("run " + file + " --target interpreter --set skip=1.5", 2,
                 {"skip = '1.5' is no integer"});
  expect_failure("run " + given + " --target interpreter --out C=" + std::string(folder_ / "a.npy"),
                 2, {"a.npy: it is the file of the input A", "a file of its own"});
  EXPECT_EQ(library::read_tensor(folder_ / "a.npy", "A", f32).elements(), 64);
  EXPECT_EQ(
      tilewright("run " + given + " --target interpreter --out C=" + std::string(folder_ / "c.npy"))
          .status,
      0);
  expect_failure("run " + file + " --target interpreter --in D=x.npy", 2,
                 {"has no input 'D'", "name one of: A, C"});
}

TEST_F(FilesCommandTest, WarnsOfWhatAGpuDoesNotTake) {
  const std::string small = add_one("dim n\n", "n", "ceil_div(n, 16)");
  const std::string large = std::regex_replace(small, std::regex("\\b16\\b"), "65536");
  const Answer fits = tilewright("run " + write("small.tw", small) + " --target interpreter");
  EXPECT_EQ(fits.status, 0);
  EXPECT_THAT(fits.output, Not(HasSubstr("warning")));
  const Answer warned = tilewright("run " + write("large.tw", large) + " --target interpreter");
  EXPECT_EQ(warned.status, 0) << warned.output;
  EXPECT_THAT(warned.output, HasSubstr("warning: add_one does not compile for sm_90a"));
  EXPECT_THAT(warned.output, HasSubstr("a tile of 65536 elements"));
}

TEST_F(FilesCommandTest, SaysWhichCommandTakesAFile) {
  const std::string kernel = write("add.tw", add_one("dim n\n", "n", "ceil_div(n, 16)"));
  const Answer tuned = tilewright("tune " + kernel + " --target sm_90a --model-only");
  EXPECT_EQ(tuned.status, 0);
  EXPECT_THAT(tuned.output, HasSubstr("the compiler's choice"));
  for (const char* command : {"run", "explain"}) {
    expect_failure(std::string(command) + " program.twp --target sm_90a", 2,
                   {"program.twp: a program's file is simulated alone",
                    "fix: tilewright simulate program.twp --target sm_90a"});
  }
}

TEST_F(FilesCommandTest, NamesLongerThanFilesHave) {
  const std::string name(300, 'x'), sizes = " --set m=4 --set n=4 --set k=4 ";
  for (const std::string& line : {"golden gemm" + sizes + "--out " + name, "check " + name,
                                  "run gemm --target cpu" + sizes + "--out C=" + name + ".npy",
                                  "run gemm --target cpu" + sizes + "--in A=" + name + ".npy",
                                  "run " + name + ".tw --target cpu"}) {
    expect_failure(line, 2, {name});
  }
}

TEST_F(FilesCommandTest, NumbersThatAreNone) {
  expect_failure("run gemm --target interpreter --seed 18446744073709551616", 2,
                 {"--seed", "18446744073709551616 is above 2^64 - 1"});
  expect_failure("run gemm --target interpreter --timeout nan", 2,
                 {"--timeout", "nan is no number"});
}

TEST_F(FilesCommandTest, RunsBenchesAndExplainsAFile) {
  const std::string file = write("add.tw", add_one("dim n\n", "n", "ceil_div(n, 16)"));
  const Answer run = tilewright("run " + file + " --target interpreter --set n=100 --check --json");
  EXPECT_EQ(run.status, 0) << run.output;
  EXPECT_EQ(run.json()["ok"], true);
  EXPECT_EQ(run.json()["kernel"], "add_one");
  EXPECT_EQ(tilewright("run " + file + " --target sim:sm_90a --set n=100 --check").status, 0);
  EXPECT_EQ(tilewright("run " + file + " --target passes:sm_90a --set n=100 --check").status, 0);
  const Answer bench = tilewright("bench " + file + " --target interpreter --set n=32 --json");
  EXPECT_EQ(bench.status, 0) << bench.output;
  EXPECT_TRUE(bench.json()["tflops"].is_null());
  EXPECT_THAT(tilewright("bench " + file + " --target interpreter --set n=32").output,
              Not(HasSubstr("TFLOP")));
  const WithoutNvrtc without;
  const Answer explained = tilewright("explain " + file + " --target interpreter --json");
  EXPECT_EQ(explained.status, 0) << explained.output;
  EXPECT_EQ(explained.json()["kernel"], "add_one");
  EXPECT_EQ(tilewright("explain " + file + " --target sm_90a --dump " + (folder_ / "dump")).status,
            3);
  EXPECT_TRUE(fs::exists(folder_ / "dump/kernel.cu"));
  expect_failure("run " + file + ".none.tw --target interpreter", 2, {"cannot read"});
}

TEST_F(FilesCommandTest, AnyGridAndAnyAxis) {
  const std::string groups =
      write("groups.tw",
            add_one("dim groups\n", "groups * 2048", "groups * 128")
                .insert(add_one("dim groups\n", "", "").find("in A"), "in S: i32[groups] = %20\n"));
  const std::string heads = write(
      "heads.tw", add_one("dim heads\ndim queries\n", "(heads * ceil_div(queries, 128) + 1) * 16",
                          "heads * ceil_div(queries, 128) + 1")
                      .insert(add_one("dim heads\ndim queries\n", "", "").find("in A"),
                              "in S: i32[heads, queries] = %20\n"));
  for (const std::string& line :
       {groups + " --set groups=3", heads + " --set heads=3 --set queries=200",
        groups + " --shrunken", heads + " --shrunken"}) {
    const Answer answer = tilewright("simulate " + line + " --target sm_90a --json");
    EXPECT_EQ(answer.status, 0) << line << answer.output;
    EXPECT_EQ(answer.json()["ok"], true);
  }
  EXPECT_EQ(tilewright("run " + heads + " --target interpreter --check --set heads=2").status, 0);
  expect_failure("simulate " + write("less.tw", add_one("dim n\n", "n - 300", "1")) +
                     " --target sm_90a --set n=10",
                 2, {"is -290"});
}

// The reference of a machine form is an execution too, which leaves out the same.
TEST_F(FilesCommandTest, ElementsThatNobodyWrites) {
  const auto text = [](const std::string& rows, const std::string& more) {
    return R"(kernel "rows" machine
dim rows
in X: f32[rows, 32] = %0
)" + more + R"(out Y: f32[rows, 32] = %1
grid (ceil_div(rows, 4))
threads 128
body () {
  role {name = "rows", first_warp = 0, warps = 4, registers = 128, threads = 128} (%4: i32) {
    %9: registers<f32, 1> = registers {name = "r4"}
    %30: i32 = cta_index
    %25: i32 = constant {value = 32}
    %29: i32 = constant {value = 4}
    %26: i32 = mul %30, %29
    %27: i32 = constant {value = 0}
    %28: i32 = dim {dim = dim(rows)}
    load_registers %9, %0, %26, %27, %28, %25 {sizes = [4, 32], layout = register_layout[4x32|l:32@1:1|w:4@0:1]}
    compute %9, %9, %9 {function = div, maps = maps[[1:1:1], [1:1:1]]}
    store_registers %1, %9, %26, %27, )" +
           rows + R"(, %25 {sizes = [4, 32], layout = register_layout[4x32|l:32@1:1|w:4@0:1]}
    yield
  }
}
)";
  };
  const std::string line = " --target sm_90a --set rows=6";
  const std::string whole = write("whole.tw", text("%28", ""));
  EXPECT_EQ(tilewright("simulate " + whole + line).status, 0);
  // 0 / 0 is no number, which is written all the same.
  EXPECT_EQ(tilewright("simulate " + whole + line + " --in X=zeros").status, 0);
  const std::string part = write("part.tw", text("%29", ""));
  expect_failure("simulate " + part + line, 1, {"nobody writes Y[4, 0]", "64 of 192 elements"});
  // Where numbers are given, they may say which elements there are.
  const std::string given = write("given.tw", text("%29", "in table: i32[rows] = %2\n"));
  EXPECT_EQ(tilewright("simulate " + given + line).status, 0);
}

// All of each row but what begins with its length's last element. No change to the mask's bound
// shows where lengths are zeros, as they are where nobody says more.
constexpr const char* kLengths = R"(kernel "lengths" tile
dim n
in L: i32[n] = %0
in X: f32[n, 64] = %1
out Y: f32[n, 64] = %2
grid (n)
body (%3: i32) {
  %4: i32 = constant {value = 0}
  %5: i32 = constant {value = 64}
  %6: i32 = dim {dim = dim(n)}
  %7: i32 = load_index %0, %3
  %8: tile<f32, 64> = load %1, %3, %4, %6, %5 {sizes = [0, 64]}
  %9: tile<i32, 64> = iota {axis = 0}
  %15: i32 = constant {value = 1}
  %16: i32 = sub %7, %15
  %10: tile<i32, 64> = splat %16
  %11: tile<bool, 64> = lt %9, %10
  %12: f32 = constant {value = 0.0}
  %13: tile<f32, 64> = splat %12
  %14: tile<f32, 64> = select %11, %8, %13
  store %2, %14, %3, %4, %6, %5 {sizes = [0, 64]}
}
)";

TEST_F(FilesCommandTest, DataThatSaysLittleIsAWarning) {
  const std::string file = write("lengths.tw", kLengths);
  const std::string weak = "warning: weak data: ", table = "L: every number is 0",
                    result = "Y: every expected number is 0";
  for (const std::string& line : {"run " + file + " --target cpu --check --set n=5",
                                  "simulate " + file + " --target sm_90a --set n=5",
                                  "simulate " + file + " --target sm_90a --shrunken"}) {
    SCOPED_TRACE(line);
    const Answer zeros = tilewright(line);
    EXPECT_EQ(zeros.status, 0);
    EXPECT_THAT(zeros.output, HasSubstr(weak + table));
    EXPECT_THAT(zeros.output, HasSubstr(weak + result));
    EXPECT_THAT(zeros.output, HasSubstr("fix: say what inputs hold"));
    EXPECT_EQ(tilewright(line + " --json").json()["weak"].size(), 2u);
    const Answer drawn = tilewright(line + " --in L=uniform:0:65");
    EXPECT_EQ(drawn.status, 0);
    EXPECT_THAT(drawn.output, Not(HasSubstr("weak")));
    EXPECT_EQ(tilewright(line + " --in L=uniform:0:65 --json").json()["weak"].size(), 0u);
  }
  if (runtime::why_no_nvrtc().empty()) {
    const Answer stressed = tilewright("stress " + file + " --target sm_90a --schedules 1");
    EXPECT_EQ(stressed.status, 0);
    EXPECT_THAT(stressed.output, HasSubstr(weak + table));
    EXPECT_THAT(stressed.output, HasSubstr(weak + result));
    EXPECT_THAT(stressed.output, HasSubstr("fix: tilewright simulate takes what inputs hold"));
  }
  const Answer nan =
      tilewright("run " + file + " --target cpu --check --set n=5 --in L=full:9 --in X=full:nan");
  EXPECT_EQ(nan.status, 0);
  EXPECT_THAT(nan.output, HasSubstr(weak + "Y: 40 of 320 expected numbers are NaN, as what nobody "
                                           "writes is"));
}

// What words say of inputs fits each of the sizes; a file fits one.
TEST_F(FilesCommandTest, FaultsOfWhatLoadedNumbersDecide) {
  const std::string line = "simulate " + write("lengths.tw", kLengths) + " --target sm_90a";
  const auto undecided = [&](const std::string& inputs) {
    const auto kinds = tilewright(line + " --faults --json" + inputs).json()["kinds"];
    int count = 0;
    for (const auto& kind : kinds) count += kind.value("undecided", 0);
    return count;
  };
  EXPECT_GT(undecided(""), 0);
  EXPECT_EQ(undecided(" --in L=uniform:0:65"), 0);
  for (const char* chosen : {"--faults", "--shrunken"}) {
    expect_failure(line + " --in L=lengths.npy " + chosen, 2,
                   {"--in L=lengths.npy: with ", chosen, "has several sizes, and a file has one",
                    "fix: say in words what it holds: --in L=uniform:0:8"});
  }
  expect_failure(line + " --faults --shrunken", 2,
                 {"shrunken sizes anyway", "leave --shrunken out"});
}

// Its memory would be 16 GB, were a list of its CTAs made.
TEST_F(FilesCommandTest, AGridTakesNoMemoryByItsSize) {
  std::string text = add_one("dim n\n", "n", "2147483647");
  text.replace(text.find("mul %2, %3"), 10, "max %2, %3");  // behind the tensor's end
  const std::string file = write("many.tw", text);
  const std::string limits = kLimitsMemory ? "ulimit -v 4000000; " : "";
  const Answer answer = shell(limits + "\"$TILEWRIGHT\" simulate " + file +
                              " --target sm_90a --set n=16 --control-only --max-operations 2000");
  EXPECT_EQ(answer.status, 1) << answer.output;
  EXPECT_THAT(answer.output, HasSubstr("2000 operations"));
  EXPECT_THAT(answer.output, HasSubstr("--max-operations"));
}

// What `--time` does not do is refused, rather than left out.
TEST_F(FilesCommandTest, TimeAlonePredicts) {
  const std::string line = "simulate gemm --target sm_90a --set m=64 --set n=64 --set k=64 --time";
  const Answer answer = tilewright(line);
  EXPECT_EQ(answer.status, 0);
  EXPECT_THAT(answer.output, HasSubstr("predicted time"));
  for (const char* other :
       {" --trace trace.html", " --shrunken", " --provenance", " --faults", " --schedules 5",
        " --search delays", " --strict", " --one-for-all", " --break release"}) {
    expect_failure(line + other, 2, {"excludes"});
  }
  for (const char* file : {"made.twp", "made.ptx"}) {
    expect_failure(std::string("simulate ") + file + " --target sm_90a --time", 2,
                   {"--time", file, "fix: "});
  }
  expect_failure(line + " --max-operations 5", 1, {"warps have executed 5 operations", "fix: "});
}

TEST_F(FilesCommandTest, ATimeoutEndsWhateverItIsAt) {
  const std::string endless = write("endless.tw", R"(kernel "endless" tile
in A: i32[16] = %0
grid (1)
body (%1: i32) {
  %2: bool = constant {value = 1}
  while_loop %2 () {
    yield %2
  }
}
)");
  for (const std::string& line : {"run " + endless + " --target interpreter --timeout 0.3",
                                  "simulate " + endless + " --target sm_90a --timeout 0.3"}) {
    const auto start = Clock::now();
    expect_failure(line, 1, {"longer than --timeout", "fix: "});
    EXPECT_LT(Clock::now() - start, std::chrono::seconds(60));
  }
}

// As deep as the parser lets them be: passes that visit each loop's body twice would never end.
TEST_F(FilesCommandTest, LoopsInLoops) {
  std::string text =
      "kernel \"nest\" tile\nin A: f32[16] = %0\nout C: f32[16] = %1\ngrid (1)\n"
      "body (%2: i32) {\n  %3: i32 = constant {value = 0}\n"
      "  %4: i32 = constant {value = 1}\n  %5: i32 = constant {value = 16}\n"
      "  %6: tile<f32, 16> = load %0, %3, %5 {sizes = [16]}\n";
  constexpr int kDepth = 99;
  const auto loop = [](int i) { return "%" + std::to_string(100 + 3 * i); };
  const auto carried = [](int i) { return "%" + std::to_string(102 + 3 * i); };
  for (int i = 0; i < kDepth; ++i) {
    text += loop(i) + ": tile<f32, 16> = for_loop %3, %4, %4, " + (i == 0 ? "%6" : carried(i - 1)) +
            " (%" + std::to_string(101 + 3 * i) + ": i32, " + carried(i) + ": tile<f32, 16>) {\n";
  }
  text += "%7: tile<f32, 16> = add " + carried(kDepth - 1) + ", " + carried(kDepth - 1) + "\n";
  for (int i = kDepth; i-- > 0;) {
    text += "yield " + (i + 1 == kDepth ? "%7" : loop(i + 1)) + "\n}\n";
  }
  text += "  store %1, " + loop(0) + ", %3, %5 {sizes = [16]}\n}\n";
  const auto start = Clock::now();
  const Answer answer =
      tilewright("simulate " + write("nest.tw", text) + " --target sm_90a --timeout 100");
  EXPECT_EQ(answer.status, 0) << answer.output;
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(20));
  const std::string deeper = "kernel \"nest\" tile\ngrid (1)\nbody (%2: i32) {\n";
  std::string deep = deeper + "  %3: i32 = constant {value = 0}\n";
  for (int i = 0; i < 100'000; ++i)
    deep += "for_loop %3, %3, %3 (%" + std::to_string(i + 9) + ": i32) {\n";
  expect_failure("simulate " + write("deep.tw", deep) + " --target sm_90a", 2,
                 {"deep.tw:164", "nested more than 160 deep"});
}

TEST_F(FilesCommandTest, AHostileFileReachesNeitherTerminalNorOtherFiles) {
  const std::string secret = write("shadow", "one\nroot:secret\n");
  // A barrier that nobody has initialised, at a place of the file's choice.
  const std::string at = " @\"" + secret + "\":2\n";
  const std::string text =
      "kernel \"k\" machine" + at +
      "grid (1)\nthreads 128\nshared_bytes 64\nbody () {\n"
      "  %3: i32 = constant {value = 0}" +
      at + "  %7: mbarriers<1> = mbarriers {name = \"b\", arrivals = 1, offset = 0}" + at +
      "  mbarrier_wait %7, %3, %3" + at + "}\n";
  const Answer place = tilewright("simulate " + write("place.tw", text) + " --target sm_90a");
  EXPECT_THAT(place.output, HasSubstr("shadow:2")) << place.output;
  EXPECT_THAT(place.output, Not(HasSubstr("secret")));
  const std::string escape = write("escape.tw", add_one("dim n\n", "n", "1", "\\x1b[2J"));
  const Answer refused = tilewright("simulate " + escape + " --target sm_90a");
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.output, HasSubstr("escape.tw:1: error: the text holds"));
  const std::string raw = write("raw.tw", "kernel \"\x1b[2J\" tile\n");
  for (const std::string& line : {"simulate " + raw + " --target sm_90a",
                                  std::string("run gemm --target interpreter --in \x1b[2J=a.npy"),
                                  std::string("run \x1b[2J --target interpreter")}) {
    const Answer answer = tilewright(line);
    EXPECT_EQ(answer.status, 2);
    EXPECT_THAT(answer.output, Not(HasSubstr("\x1b"))) << line;
  }
  // What the environment says.
  setenv("TILEWRIGHT_CACHE", (folder_.path().string() + "/\x1b[2J").c_str(), 1);
  const Answer machine = tilewright("doctor");
  unsetenv("TILEWRIGHT_CACHE");
  EXPECT_EQ(machine.status, 0) << machine.output;
  EXPECT_THAT(machine.output, testing::AllOf(HasSubstr("\\x1b[2J"), Not(HasSubstr("\x1b"))));
  // Names of files that were asked for.
  const std::string out = folder_.path().string() + "/\x1b[2J";
  for (const std::string& line : {"run rms_norm --target interpreter --out Y=" + out + ".npy",
                                  "golden rms_norm --set rows=2 --set columns=8 --out " + out,
                                  "explain rms_norm --target cpu --html " + out + ".html"}) {
    const Answer answer = tilewright(line);
    EXPECT_EQ(answer.status, 0) << answer.output;
    EXPECT_THAT(answer.output, testing::AllOf(HasSubstr("\\x1b[2J"), Not(HasSubstr("\x1b"))))
        << line;
  }
}

TEST_F(FilesCommandTest, AVerifiersErrorNamesTheFilesLine) {
  std::string text = add_one("dim n\n", "n", "1");
  text.replace(text.find("add %6, %8"), 10, "add %6, %3 @\"elsewhere.cpp\":3");
  expect_failure("simulate " + write("wrong.tw", text) + " --target sm_90a", 2,
                 {"wrong.tw:13: error:", "    %9: tile<f32, 16> = add %6, %3"});
}

TEST_F(FilesCommandTest, ShowsAndClearsTheCache) {
  fs::create_directory(folder_ / "cache");
  write("cache/" + std::string(32, '0') + ".build", "an entry");
  const std::string with = "TILEWRIGHT_CACHE=" + (folder_ / "cache") + " \"$TILEWRIGHT\" cache";
  const Answer shown = shell(with + " --json");
  EXPECT_EQ(shown.status, 0) << shown.output;
  EXPECT_EQ(shown.json()["folder"], folder_ / "cache");
  EXPECT_EQ(shown.json()["entries"], 1);
  EXPECT_EQ(shown.json()["bytes"], 8);
  fs::permissions(folder_ / "cache", fs::perms::all);
  EXPECT_THAT(shell(with).output, HasSubstr("others may write"));
  EXPECT_THAT(shell(with + " --clear").output, HasSubstr("is cleared: 1 built kernels"));
  EXPECT_TRUE(fs::is_empty(folder_ / "cache"));
  EXPECT_EQ(fs::status(folder_ / "cache").permissions(), static_cast<fs::perms>(0755));
  const Answer off = shell("TILEWRIGHT_CACHE=off \"$TILEWRIGHT\" cache");
  EXPECT_EQ(off.status, 0);
  EXPECT_THAT(off.output, HasSubstr("TILEWRIGHT_CACHE is off"));
}

}  // namespace
}  // namespace tilewright::test
