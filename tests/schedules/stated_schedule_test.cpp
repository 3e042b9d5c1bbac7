#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "compiler/compile_to_machine.h"
#include "ir/schedule.h"
#include "ir/text.h"
#include "language/misuse.h"
#include "schedules/adding_kernels.h"
#include "schedules/stated_kernels.h"
#include "schedules/two_ways.h"
#include "support/diagnostic.h"
#include "target/target.h"
#include "tilewright/asynchronous.h"
#include "tilewright/check.h"
#include "tilewright/compile.h"
#include "tilewright/explain.h"

// Schedules that authors state: each field changes what it names in the machine form and nothing of
// the results, and what cannot be is an error at its line.
namespace tilewright {
namespace {

using compiler::MachineForm;
using testing::AllOf;
using testing::Contains;
using testing::Field;
using testing::HasSubstr;

MachineForm compiled(const Kernel& kernel, const Schedule& schedule) {
  compiler::MachineOptions options;
  options.schedule = schedule;
  return compiler::compile_to_machine(kernel.finish(), "sm_90a", options);
}

std::int64_t stages_of(const ir::Kernel& machine, const std::string& ring) {
  std::int64_t stages = 0;
  ir::for_each(machine.body, [&](const ir::Operation& o) {
    if (o.op == ir::Op::shared && o.attributes.text(ir::Key::name) == ring) {
      stages = o.attributes.integer(ir::Key::stages);
    }
  });
  return stages;
}

// Of a role by its name.
std::int64_t of_role(const ir::Kernel& machine, const std::string& role, ir::Key key) {
  std::int64_t value = 0;
  ir::for_each(machine.body, [&](const ir::Operation& o) {
    if (o.op == ir::Op::role && o.attributes.text(ir::Key::name) == role) {
      value = o.attributes.integer(key);
    }
  });
  return value;
}

TEST(StatedSchedule, StagesAreThoseOfTheRingsThatLoopsFill) {
  const Kernel kernel = test::stated_gemm(128, 128);
  for (int stages = 1; stages <= 5; ++stages) {
    const MachineForm form = compiled(kernel, {.stages = stages});
    EXPECT_EQ(stages_of(form.kernel, "A"), stages);
    EXPECT_EQ(stages_of(form.kernel, "B"), stages);
  }
  // Q is loaded once for a block: two of it are the compiler's choice.
  const MachineForm form = compiled(test::stated_attention(128, 64, 64), {.stages = 3});
  EXPECT_EQ(stages_of(form.kernel, "K"), 3);
  EXPECT_EQ(stages_of(form.kernel, "V"), 3);
  EXPECT_EQ(stages_of(form.kernel, "Q"), 2);
}

TEST(StatedSchedule, WarpgroupsShareTheColumnsOf64Rows) {
  const Kernel kernel = test::stated_gemm(64, 256);
  EXPECT_EQ(compiled(kernel, {}).kernel.threads, 2 * 128);
  for (const int groups : {2, 4}) {
    const MachineForm form = compiled(kernel, {.warpgroups = groups});
    EXPECT_EQ(form.kernel.threads, (groups + 1) * 128);
    EXPECT_EQ(of_role(form.kernel, "math", ir::Key::warps), 4 * groups);
    ir::for_each(form.kernel.body, [&](const ir::Operation& o) {
      if (ir::info(o.op).family != ir::Family::product) return;
      EXPECT_EQ(form.kernel.type(o.operands[0]).shape[0] * 2, 256 / groups);  // of a thread
    });
  }
  EXPECT_EQ(compiled(kernel, {.partition = Partition::columns}).kernel.threads, 3 * 128);
  EXPECT_EQ(compiled(kernel, {.partition = Partition::rows}).kernel.threads, 2 * 128);
}

TEST(StatedSchedule, CtasShareWhatAMultiprocessorHas) {
  const TargetLimits& limits = target::find_target("sm_90a").limits;
  for (int ctas = 1; ctas <= 3; ++ctas) {
    const MachineForm form = compiled(test::stated_gemm(64, 64), {.ctas = ctas});
    const ir::Kernel& machine = form.kernel;
    EXPECT_EQ(machine.resident, ctas);
    EXPECT_EQ(machine.grid[0].to_string(), (multiprocessors() * ctas).to_string());
    EXPECT_EQ(of_role(machine, "math", ir::Key::registers),
              role_registers(limits, 1, ctas).computing);
    EXPECT_LE(ctas * (machine.shared_bytes + limits.reserved_shared_bytes),
              limits.multiprocessor_shared_bytes);
  }
}

TEST(StatedSchedule, OverlapIsLeftOutOrKept) {
  const Kernel kernel = test::stated_attention(128, 64, 64);
  const MachineForm left = compiled(kernel, {}), with = compiled(kernel, {.overlap = true}),
                    without = compiled(kernel, {.overlap = false});
  EXPECT_EQ(ir::form_hash(left.kernel), ir::form_hash(with.kernel));
  EXPECT_NE(ir::form_hash(left.kernel), ir::form_hash(without.kernel));
  // What is stated is no question to the assembler.
  EXPECT_TRUE(left.otherwise.has_value());
  EXPECT_FALSE(with.otherwise.has_value());
  EXPECT_FALSE(without.otherwise.has_value());
  // There is something to leave out.
  const auto says_nothing_to_leave_out =
      Contains(AllOf(Field(&compiler::Decision::warns, true),
                     Field(&compiler::Decision::what, HasSubstr("overlap = false"))));
  EXPECT_THAT(without.decisions, testing::Not(says_nothing_to_leave_out));
  // Where the compiler does not, for want of registers, an author may.
  const Kernel wide = test::stated_attention(64, 128, 256);
  const std::uint64_t kept = ir::form_hash(compiled(wide, {}).kernel);
  EXPECT_EQ(kept, ir::form_hash(compiled(wide, {.overlap = false}).kernel));
  EXPECT_NE(kept, ir::form_hash(compiled(wide, {.overlap = true}).kernel));
}

TEST(StatedSchedule, WarpsOfAKernelWithoutProducts) {
  const Kernel kernel = test::stated_softmax(4, 1024);
  for (const int groups : {1, 2, 4, 8}) {
    EXPECT_EQ(compiled(kernel, {.warpgroups = groups}).kernel.threads, groups * 128);
  }
  for (const int ctas : {2, 3, 4}) {
    const MachineForm form = compiled(kernel, {.warpgroups = 1, .ctas = ctas});
    EXPECT_EQ(form.kernel.resident, ctas);
  }
  EXPECT_NE(ir::form_hash(compiled(kernel, {.partition = Partition::columns}).kernel),
            ir::form_hash(compiled(kernel, {.partition = Partition::rows}).kernel));
}

// Every combination that is allowed, against the interpreter.
std::string text_of(const Schedule& schedule) {
  std::string text;
  for (const ir::StatedField& field : ir::stated_fields(schedule)) {
    text += field.name + " = " + field.value + " ";
  }
  return text;
}

void expect_same_results(const test::StatedKernel& given, const Schedule& schedule,
                         std::vector<HostTensor>& wanted) {
  SCOPED_TRACE(text_of(schedule));
  const auto run = [&](const Executable& executable) {
    std::vector<HostTensor> tensors = given.tensors;
    std::vector<TensorRef> refs;
    for (HostTensor& tensor : tensors) refs.push_back(ref(tensor));
    executable.run(refs);
    return tensors;
  };
  if (wanted.empty()) wanted = run(compile(given.kernel, "interpreter"));
  const std::vector<HostTensor> got = run(compile(given.kernel, "sim:sm_90a", schedule));
  for (std::size_t i = given.inputs; i < got.size(); ++i) {
    test::expect_near(got[i], wanted[i], given.bound);
  }
}

template <typename T>
using Choices = std::vector<ScheduleField<T>>;

struct AllChoices {
  Choices<int> stages{{}};
  Choices<int> warpgroups{{}};
  Choices<Partition> partition{{}};
  Choices<int> ctas{{}};
  Choices<bool> overlap{{}};
};

// How many are allowed; each of the others is a usage error.
int expect_all(const test::StatedKernel& given, const AllChoices& all) {
  std::vector<HostTensor> wanted;
  std::set<std::uint64_t> forms;
  for (const auto& stages : all.stages) {
    for (const auto& warpgroups : all.warpgroups) {
      for (const auto& partition : all.partition) {
        for (const auto& ctas : all.ctas) {
          for (const auto& overlap : all.overlap) {
            const Schedule schedule{stages, warpgroups, partition, ctas, overlap};
            try {
              const bool is_new =
                  forms.insert(ir::form_hash(compiled(given.kernel, schedule).kernel)).second;
              if (is_new) expect_same_results(given, schedule, wanted);
            } catch (const Error& error) {
              EXPECT_EQ(error.kind(), ErrorKind::usage) << error.what();
              EXPECT_THAT(error.message(), HasSubstr("schedule: "));
              EXPECT_FALSE(error.fix().empty()) << error.what();
            }
          }
        }
      }
    }
  }
  return static_cast<int>(forms.size());
}

TEST(StatedSchedule, ResultsOfAGemmAreTheSame) {
  const AllChoices all{.stages = {{}, 1, 3},
                       .warpgroups = {{}, 1, 2},
                       .partition = {{}, Partition::rows, Partition::columns},
                       .ctas = {{}, 2}};
  EXPECT_GE(expect_all(test::gemm_case(128, 64), all), 6);
  EXPECT_GE(expect_all(test::gemm_case(64, 128), all), 12);
}

TEST(StatedSchedule, ResultsOfAttentionAreTheSame) {
  EXPECT_GE(expect_all(test::attention_case(128, 64, 64), {.stages = {{}, 1, 3},
                                                           .warpgroups = {{}, 2},
                                                           .ctas = {{}, 2},
                                                           .overlap = {{}, true, false}}),
            8);
  // The accumulator's columns are shared, and the scores are computed by both.
  EXPECT_GE(expect_all(
                test::attention_case(64, 64, 128),
                {.stages = {{}, 2}, .partition = {{}, Partition::columns}, .overlap = {{}, false}}),
            4);
}

TEST(StatedSchedule, ResultsOfASoftmaxAreTheSame) {
  EXPECT_GE(expect_all(test::softmax_case(), {.warpgroups = {{}, 1, 2, 4, 8},
                                              .partition = {{}, Partition::columns},
                                              .ctas = {{}, 2, 3}}),
            12);
}

// Blocks wait for each other: all CTAs of a cooperative launch have to run at once.
TEST(StatedSchedule, CtasThatAddInOrderRunTogether) {
  const test::StatedKernel given{
      test::add_products(Order::blocks, 64),
      {test::small_normal({200, 328}, 1), test::small_normal({136, 328}, 2),
       HostTensor::zeros(f32, {200, 136})},
      2,
      1e-3};
  const Kernel without_products = test::add_column_sums(Order::blocks);
  for (const Kernel* each : {&given.kernel, &without_products}) {
    EXPECT_EQ(compiled(*each, {.ctas = 2}).kernel.grid[0].to_string(),
              (multiprocessors() * 2).to_string());
  }
  std::vector<HostTensor> wanted;
  expect_same_results(given, {.ctas = 2}, wanted);
  expect_same_results(given, {.stages = 1, .ctas = 3}, wanted);
}

// The author's own, and who compiles comes before him.
TEST(StatedSchedule, AKernelHasADefault) {
  Kernel kernel = test::stated_gemm(128, 128);
  kernel.schedule({.stages = 2, .ctas = 1});
  EXPECT_EQ(stages_of(compiled(kernel, {}).kernel, "A"), 2);
  EXPECT_EQ(stages_of(compiled(kernel, {.stages = 3}).kernel, "A"), 3);
  Kernel twice = test::stated_gemm(128, 128);
  twice.schedule({.stages = 2, .ctas = 1});
  twice.schedule({.stages = 4});
  EXPECT_EQ(stages_of(compiled(twice, {}).kernel, "A"), 4);
  EXPECT_TRUE(twice.finish().schedule.ctas.is_set());
}

TEST(StatedSchedule, IsPartOfTheKernelsText) {
  Kernel kernel = test::stated_gemm(64, 128);
  const ir::Kernel without = kernel.finish();
  Kernel again = test::stated_gemm(64, 128);
  again.schedule(
      {.stages = 2, .warpgroups = 2, .partition = Partition::columns, .ctas = 1, .overlap = false});
  const ir::Kernel& with = again.finish();
  const std::string text = ir::to_text(with);
  for (const char* line : {"schedule stages = 2 @", "schedule warpgroups = 2 @",
                           "schedule partition = columns @", "schedule overlap = false @"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  const ir::Kernel read = ir::parse_text(text, "read.tw");
  EXPECT_TRUE(ir::equal(read, with));
  EXPECT_FALSE(ir::equal(read, without));
  EXPECT_EQ(ir::to_text(read), text);
  EXPECT_EQ(ir::form_hash(compiler::compile_to_machine(read, "sm_90a").kernel),
            ir::form_hash(compiled(again, {}).kernel));
  EXPECT_NE(ir::form_hash(compiler::compile_to_machine(read, "sm_90a").kernel),
            ir::form_hash(compiler::compile_to_machine(without, "sm_90a").kernel));
}

TEST(StatedSchedule, ATextStatesWhatThereIs) {
  const auto read = [](const std::string& line) {
    return test::usage_error_of([&] {
      ir::parse_text("kernel \"k\" tile\ngrid (1)\n" + line + "\nbody (%0: i32) {\n}\n", "k.tw");
    });
  };
  EXPECT_THAT(read("schedule stage = 2"), HasSubstr("there is no field 'stage'"));
  EXPECT_THAT(read("schedule stages = many"), HasSubstr("'many' is not a number"));
  EXPECT_THAT(read("schedule stages = 99"), HasSubstr("stages = 99"));
  EXPECT_THAT(read("schedule stages = 2\nschedule stages = 3"), HasSubstr("stated twice"));
}

TEST(StatedSchedule, ExplainSaysWhoChoseEachField) {
  Kernel kernel = test::stated_gemm(128, 128);
  const std::string json = explain_json(kernel, "sm_90a", {}, {.stages = 3});
  for (const char* part : {"\"schedule_fields\"", "\"value\": \"A 3, B 3\"", "\"by\": \"author\"",
                           "stated_schedule_test.cpp:", "\"by\": \"compiler\""}) {
    EXPECT_THAT(json, HasSubstr(part));
  }
}

void check_schedule(const Kernel& kernel, const Schedule& schedule) {
  CompileOptions options;
  options.schedule = schedule;
  check(kernel, "sm_90a", options);
}

void refused_schedule(const char* caret, const std::vector<std::string>& parts,
                      const Kernel& kernel, const Schedule& schedule) {
  test::misuse(caret, parts, [&] { check_schedule(kernel, schedule); });
}

TEST(StatedSchedule, StagesThatDoNotFitListWhatTakesTheRoom) {
  refused_schedule("stages",
                   {"schedule: stages = 16: tiles of", "a CTA has 231424 bytes of shared memory",
                    "\"A\": 16 x 16384 bytes", "\"B\": 16 x 16384 bytes", "fix: state at most 7"},
                   test::stated_gemm(128, 128), {.stages = 16});
  EXPECT_NO_THROW(check_schedule(test::stated_gemm(128, 128), {.stages = 6}));
  refused_schedule("stages", {"\"A\": 6 x 16384 bytes", "fix: state at most 4", "or fewer CTAs"},
                   test::stated_gemm(128, 64), {.stages = 6, .ctas = 2});
}

TEST(StatedSchedule, NumbersThatNothingCouldBeCompiledWith) {
  test::misuse("stages", {"schedule: stages = 0", "fix: state 1 to 16"},
               [] { test::stated_gemm(64, 64).schedule({.stages = 0}); });
  test::misuse("warpgroups", {"schedule: warpgroups = 9", "fix: state 1 to 8"},
               [] { test::stated_gemm(64, 64).schedule({.warpgroups = 9}); });
  test::misuse(
      "partition", {"schedule: partition = Partition(7)", "fix: state rows or columns"},
      [] { test::stated_gemm(64, 64).schedule({.partition = static_cast<Partition>(7)}); });
  test::misuse("ctas", {"schedule: ctas = -1", "fix: state 1 to 16"},
               [] { compile(test::stated_gemm(64, 64), "interpreter", Schedule{.ctas = -1}); });
}

TEST(StatedSchedule, WarpgroupsThatDoNotGoIntoTheRows) {
  refused_schedule("warpgroups",
                   {"warpgroups = 3: the products' results have 128 rows", "64 of them",
                    "fix: state 2, or take blocks of 192 rows"},
                   test::stated_gemm(128, 128), {.warpgroups = 3});
  refused_schedule("warpgroups", {"128 columns over 3 warpgroups", "no multiple of 8"},
                   test::stated_gemm(64, 128), {.warpgroups = 3});
  refused_schedule("warpgroups", {"a power of two", "fix: state 1, 2, 4 or 8"},
                   test::stated_softmax(4, 1024), {.warpgroups = 3});
}

// Columns that are divided leave room for other results, which each warpgroup has whole: less of
// it, the more warpgroups share the registers.
TEST(StatedSchedule, MoreWarpgroupsThanResultsBesideDividedOnesLeaveRoomFor) {
  Kernel kernel("beside");
  kernel.grid(1);
  const Tensor A = kernel.in("A", bf16, {64, 64});
  for (const auto& [name, columns] : {std::pair("C", 384), {"D", 256}}) {
    const Tensor B = kernel.in("B" + std::string(name), bf16, {columns, 64});
    const Tensor result = kernel.out(name, f32, {64, columns});
    store(result(all, all), dot(load(A(all, all)), load(B(all, all)).T()));
  }
  refused_schedule(
      "warpgroups",
      {"warpgroups = 3: 64 x 256 results take 128 registers", "with 512 threads there are 128",
       "the product is", "fix: take narrower results"},
      kernel, {.warpgroups = 3});
}

TEST(StatedSchedule, PartitionsThatProductsForbid) {
  refused_schedule("partition",
                   {"partition = columns: the products' results have 128 rows",
                    "fix: state rows, or take blocks of 64 rows"},
                   test::stated_gemm(128, 128), {.partition = Partition::columns});
  refused_schedule(
      "partition",
      {"partition = rows: results are 64 x 512", "at most 256 columns", "fix: state columns"},
      test::stated_gemm(64, 512), {.partition = Partition::rows});
  // The weights are what the next product reads.
  refused_schedule("partition",
                   {"partition = columns: dot: its first operand is spread over warpgroups",
                    "the operation is at", "fix: state partition = rows"},
                   test::stated_attention(64, 64, 64), {.partition = Partition::columns});
  refused_schedule("partition", {"a row of the largest tile, of 32 elements, lies in one warp"},
                   test::stated_softmax(32, 32), {.partition = Partition::columns});
  Kernel cube("cube");
  cube.grid(1);
  const Tensor X = cube.in("X", f32, {8, 16, 64}), Y = cube.out("Y", f32, {8, 16, 64});
  store(Y(all, all, all), load(X(all, all, all)) * 2);
  refused_schedule("partition", {"the largest tile has 3 axes", "fix: leave it out"}, cube,
                   {.partition = Partition::columns});
}

TEST(StatedSchedule, CtasForWhichThereIsNoRoom) {
  refused_schedule(
      "ctas", {"ctas = 4: 128 x 128 results take 64 registers", "there are 40", "fix: state fewer"},
      test::stated_gemm(128, 128), {.ctas = 4});
  refused_schedule("ctas", {"ctas = 2: tiles of", "\"K\": 1 x 49152", "fix: state fewer"},
                   test::stated_attention(64, 128, 192), {.ctas = 2});
  refused_schedule("ctas", {"ctas = 1: of 128 threads", "2 always share", "fix: state 2 or more"},
                   test::stated_softmax(4, 1024), {.warpgroups = 1, .ctas = 1});
  refused_schedule("ctas", {"ctas = 16: a tile of 32768 elements", "fix: state fewer"},
                   test::stated_softmax(8, 4096), {.ctas = 16});
  // There are registers for them.
  refused_schedule("ctas",
                   {"ctas = 9: of 256 threads", "room for 2048 threads", "fix: state fewer"},
                   test::stated_softmax(4, 1024), {.warpgroups = 2, .ctas = 9});
}

TEST(StatedSchedule, WarpgroupsForWhichThereIsNoRoom) {
  refused_schedule("warpgroups", {"warpgroups = 1: a tile of 32768 elements", "fix: state more"},
                   test::stated_softmax(8, 4096), {.warpgroups = 1});
}

TEST(StatedSchedule, NothingIsIgnored) {
  refused_schedule("overlap",
                   {"overlap = true: no loop of stated_gemm",
                    "or has products that can begin earlier", "fix: leave it out"},
                   test::stated_gemm(128, 128), {.overlap = true});
  refused_schedule("overlap", {"overlap = true: no loop of stated_softmax"},
                   test::stated_softmax(4, 1024), {.overlap = true});
  refused_schedule("stages", {"stages = 2: \"stated_softmax\" has no products"},
                   test::stated_softmax(4, 1024), {.stages = 2});
  Kernel one("one_product");
  one.grid(1);
  const Tensor A = one.in("A", bf16, {64, 64}), C = one.out("C", f32, {64, 64});
  const Tile a = load(A(all, all));
  store(C(all, all), dot(a, a.T()));
  refused_schedule("stages", {"stages = 2: no loop of \"one_product\" loads tiles"}, one,
                   {.stages = 2});
  // Nothing to leave out is no error, and said.
  const MachineForm form = compiled(test::stated_gemm(128, 128), {.overlap = false});
  EXPECT_THAT(form.decisions,
              Contains(AllOf(Field(&compiler::Decision::warns, true),
                             Field(&compiler::Decision::what, HasSubstr("overlap = false")))));
}

TEST(StatedSchedule, AnExplicitKernelSaysItItself) {
  Kernel kernel("explicit");
  const Tensor X = kernel.out("X", f32, {64, 64});
  kernel.ctas(1);
  kernel.roles({role("math", warpgroups(1), registers(64), [&] {
    store(X(all, all), zeros({64, 64}));
  })});
  refused_schedule("stages", {"explicit is written at the explicit level"}, kernel, {.stages = 2});
}

// While a stage is held, a condition takes another one of the same ring: one of each is two.
TEST(StatedSchedule, StagesThatAreHeldAroundABlockCount) {
  Kernel kernel("held_around");
  const Tensor A = kernel.in("A", bf16, {256, 64}), B = kernel.in("B", bf16, {64, 64});
  const Tensor Y = kernel.out("Y", f32, {64, 64}), Z = kernel.out("Z", f32, {256, 64});
  kernel.grid(1);
  const Tile b = load(B(all, all));
  Var sum{zeros({64, 64})};
  for (Index i : range(4)) {
    const Tile own = load(A(Block(64 * i, 64, 64 * i + 64), all));
    when(i < 3, [&] {
      const Block next(64 * i + 64, 64, 64 * i + 128);
      store(Z(next, all), dot(load(A(next, all)), b));
    });
    sum = sum + dot(own, b);
  }
  store(Y(all, all), sum);
  const MachineForm form = compiled(kernel, {.stages = 1});
  EXPECT_EQ(stages_of(form.kernel, "A"), 2);
}

}  // namespace
}  // namespace tilewright
