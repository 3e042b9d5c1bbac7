#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "check/core_proof.h"
#include "compiler/compile_to_machine.h"
#include "incore_products.h"
#include "simulator/faults/core_faults.h"
#include "simulator/machine/machine.h"

// What is seeded into kernels for cores with explicit memories is found, and called by its name.
namespace tilewright::simulator {
namespace {

using ir::Key;
using ir::Op;
using ir::Operation;
using testing::HasSubstr;
using testing::Not;

TEST(IncoreFaults, AreFoundAtEverySite) {
  // The last piece of k has one element: else it would be summed with one less, too.
  std::vector<checks::CoreCase> cases;
  for (const auto& [m, n, k] : {std::tuple{34, 50, 209}, {40, 50, 136}}) {
    cases.push_back([m = m, n = n, k = k](const std::vector<ir::Kernel>& kernels,
                                          MachineOptions options, const ProgramMutant*) {
      Product product(m, n, k);
      options.multiprocessors = 1;
      checks::CoreRun made;
      made.report = run_machine(kernels.front(), product.arguments(), options);
      made.bits = checks::bits_of({product.C});
      if (!product.is_right()) made.mismatch = "C";
      return made;
    });
  }
  checks::ProofOptions how;
  how.schedules = 1;  // each finds the same
  how.threads = 1;
  using Verdict = checks::MutantResult::Verdict;
  // A third of each kernel's. `simulate --faults` makes all of them.
  how.parts = 3;
  for (const ir::Kernel& machine : explicit_products()) {
    int caught = 0;
    for (const checks::MutantResult& result : checks::prove_cores({machine}, cases, {}, how)) {
      SCOPED_TRACE(machine.target + ": " + std::string(result.kind->name) + ": " +
                   result.mutant.operation + " " + result.mutant.change);
      EXPECT_NE(result.verdict, Verdict::undecided) << result.reason;
      EXPECT_NE(result.verdict, Verdict::unreached);
      // Ends that tensors have by themselves.
      if (result.kind->number != 55) {
        EXPECT_NE(result.verdict, Verdict::equivalent);
      }
      caught += result.verdict == Verdict::caught;
      if (result.verdict != Verdict::caught || result.fault.kind == "mismatch") continue;
      EXPECT_NE(result.fault.first.file, nullptr) << result.fault.message;
    }
    EXPECT_GE(caught, 25) << machine.target;
    ++how.part;
  }
}

// Of zeros no sum shows how it begins: other inputs show it.
TEST(IncoreFaults, UnusualInputsShowWhatUsualOnesHide) {
  const ir::Kernel machine = machine_form(partitions_product());
  const auto case_of = [](bool is_zero) {
    return [=](const std::vector<ir::Kernel>& kernels, const MachineOptions& options,
               const ProgramMutant*) {
      Product product(40, 50, 136);
      if (is_zero) product.A = HostTensor::zeros(bf16, {40, 136});
      checks::CoreRun made;
      made.report = run_machine(kernels.front(), product.arguments(), options);
      made.bits = checks::bits_of({product.C});
      if (!is_zero && !product.is_right()) made.mismatch = "C";
      return made;
    };
  };
  checks::ProofOptions how;
  how.schedules = 1;
  how.threads = 1;
  how.mutants.emplace();
  const std::vector<checks::MutantResult> all = checks::list_core_mutants({machine});
  for (std::size_t i = 0; i < all.size(); ++i) {
    // k one less.
    if (all[i].kind->number == 53 && all[i].mutant.change == "sums one less") {
      how.mutants->insert(i);
    }
  }
  const auto result_of = [&](const std::vector<checks::UnusualCoreCase>& unusual) {
    return checks::prove_cores({machine}, {case_of(true)}, unusual, how).front();
  };
  using Verdict = checks::MutantResult::Verdict;
  EXPECT_EQ(result_of({}).verdict, Verdict::undecided);
  const checks::MutantResult shown = result_of({{"A is as usual", case_of(false)}});
  EXPECT_EQ(shown.verdict, Verdict::caught);
  EXPECT_THAT(shown.fault.message, HasSubstr("(where A is as usual)"));
}

// A quotient of what nobody has written is found where it is used. One that is not defined is
// found, too, and ends no table.
TEST(IncoreFaults, DivisionsByNothingAreFound) {
  Kernel kernel("quotients");
  const Dim rows = kernel.dim("rows");
  const Tensor X = kernel.in("X", i32, {rows, 16}), Y = kernel.out("Y", i32, {rows, 16});
  const auto [i] = kernel.grid(ceil_div(rows, 16));
  const Block own = rows.block(i, 16);
  Var ones{zeros({16, 16}, i32)};
  for ([[maybe_unused]] Index step : range(ceil_div(rows, 64))) ones = ones + 1;
  store(Y(own, all), 100 / (load(X(own, all)) + ones));
  const ir::Kernel traced = kernel.finish();
  const ir::Kernel machine = compiler::compile_to_machine(traced, "incore_unified").kernel;
  const checks::CoreCase zeros = [](const std::vector<ir::Kernel>& kernels, MachineOptions how,
                                    const ProgramMutant*) {
    HostTensor x = HostTensor::zeros(i32, {40, 16}), y = HostTensor::zeros(i32, {40, 16});
    Arguments arguments;
    arguments.tensors = {given("X", x), given("Y", y)};
    how.multiprocessors = 2;
    checks::CoreRun made;
    made.report = run_machine(kernels.front(), arguments, how);
    made.bits = checks::bits_of({y});
    for (std::int64_t at = 0; at < y.elements(); ++at) {
      if (y.flat(at) != 100) made.mismatch = "Y";
    }
    return made;
  };
  checks::ProofOptions how;
  how.schedules = 1;
  how.threads = 1;
  std::map<std::string, std::string> found;  // of each kind of instruction left out
  int hidden = 0;                            // by what lay there before
  for (const checks::MutantResult& result : checks::prove_cores({machine}, {zeros}, {}, how)) {
    if (result.kind->number != kInstructionKind) continue;
    found[result.mutant.operation.substr(0, result.mutant.operation.find(' '))] +=
        result.fault.kind + " ";
    if (result.shown_by != "with what nobody has written in its place") continue;
    ++hidden;
    EXPECT_EQ(result.verdict, checks::MutantResult::Verdict::caught);
  }
  EXPECT_GT(hidden, 0);
  EXPECT_THAT(found["core_load"], HasSubstr("uninitialised"));
  EXPECT_THAT(found["core_load"], Not(HasSubstr("refused")));
  EXPECT_THAT(found["core_vector"], HasSubstr("refused"));
}

// An index that is read may be any number of turns. A run of many times the usual has no end.
TEST(IncoreFaults, ManyTurnsAreWithoutAnEnd) {
  Kernel kernel("turns");
  const Tensor X = kernel.in("X", f32, {16, 16}), counts = kernel.in("counts", i32, {2});
  const Tensor Y = kernel.out("Y", f32, {16, 16});
  kernel.grid(1);
  const Tile x = load(X(all, all));
  Var sum{zeros({16, 16})};
  for ([[maybe_unused]] Index turn : range(load_index(counts(0)))) sum = sum + x;
  store(Y(all, all), sum);
  const ir::Kernel machine = compiler::compile_to_machine(kernel.finish(), "incore_unified").kernel;
  const checks::CoreCase twice = [](const std::vector<ir::Kernel>& kernels,
                                    const MachineOptions& how, const ProgramMutant*) {
    HostTensor x = HostTensor::random_normal(f32, {16, 16}, 1);
    HostTensor counts = HostTensor::from_values(i32, {2}, {2, 30'000});
    HostTensor y = HostTensor::poisoned(f32, {16, 16});
    Arguments arguments;
    arguments.tensors = {given("X", x), given("counts", counts), given("Y", y)};
    checks::CoreRun made;
    made.report = run_machine(kernels.front(), arguments, how);
    made.bits = checks::bits_of({y});
    for (std::int64_t at = 0; at < y.elements(); ++at) {
      if (y.flat(at) != 2 * x.flat(at)) made.mismatch = "Y";
    }
    return made;
  };
  checks::ProofOptions how;
  how.schedules = 1;
  how.threads = 1;
  std::string found;
  for (const checks::MutantResult& result : checks::prove_cores({machine}, {twice}, {}, how)) {
    if (result.kind->number == 57) found += result.fault.message;
  }
  EXPECT_THAT(found, HasSubstr("deadlock: without an end"));
}

// Whether a fault shows depends on no seed, so that one schedule stands for all.
TEST(IncoreFaults, ShowInEveryOrderOrInNone) {
  for (const ir::Kernel& machine : explicit_products()) {
    int shown = 0, hidden = 0;
    for (const FaultKind& kind : core_fault_kinds()) {
      if (kind.number > 48) continue;  // those of order
      const std::vector<Mutant> mutants = mutants_of(kind, machine);
      for (std::size_t i = 0; i < mutants.size(); i += 4) {
        const ir::Kernel changed = mutants[i].apply(machine);
        std::vector<bool> clean;
        for (std::uint64_t seed = 0; seed < 4; ++seed) {
          Product product(34, 50, 136);
          MachineOptions options;
          options.seed = seed;
          options.timing = true;
          options.multiprocessors = 1;
          const MachineReport report = run_machine(changed, product.arguments(), options);
          clean.push_back(report.ok() && product.is_right());
          if (report.ok()) {
            EXPECT_EQ(report.timing + report.words, "");
          }
        }
        EXPECT_EQ(clean, std::vector<bool>(clean.size(), clean.front()))
            << machine.target << ": " << kind.name << ": " << mutants[i].operation << " "
            << mutants[i].change;
        ++(clean.front() ? hidden : shown);
      }
    }
    EXPECT_GE(shown, 10) << machine.target;
    EXPECT_LE(hidden, 5) << machine.target;
  }
}

// What is fine by chance in many orders: an event that is down again when it is raised once more,
// and a place that was read before it is written again.
TEST(IncoreFaults, ChanceHidesNothing) {
  for (const std::string kind : {"event", "race"}) {
    Kernel kernel("by_chance");
    kernel.target("incore_unified");
    const Tensor X = kernel.in("X", f32, {16, 32});
    kernel.ctas(1);
    CoreMemory x(kernel, "Vec", "x", f32, 16, 32), y(kernel, "Vec", "y", f32, 16, 32);
    CoreEvent event(kernel, "MTE2", "V");
    kernel.roles({sequencer("core", [&] {
      move(x, X(all, all));
      event.set();
      event.wait();
      vector(VectorFunction::add, y, {x, 1});
      if (kind == "event") {
        event.set();
        event.wait();
      } else {
        unit_barrier("MTE2");
        move(x, X(all, all));
      }
    })});
    const ir::Kernel machine = machine_form(kernel);
    HostTensor values = HostTensor::zeros(f32, {16, 32});
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      Arguments arguments;
      arguments.tensors = {{"X", f32, {16, 32}, {}, static_cast<std::byte*>(values.data()), {}}};
      MachineOptions options;
      options.seed = seed;
      const MachineReport report = run_machine(machine, arguments, options);
      ASSERT_FALSE(report.ok()) << kind << " " << seed;
      EXPECT_EQ(report.faults.front().kind, kind);
    }
  }
}

// The kinds that some schedule shows, and a message of each: what is found first depends on it.
std::map<std::string, std::string> messages(const ir::Kernel& mutant) {
  std::map<std::string, std::string> found;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    Product product(70, 50, 200);
    for (const Fault& fault : run_product(mutant, product, seed).faults) {
      found[fault.kind] += fault.message + "\n" + fault.missing + "\n";
    }
  }
  return found;
}

// What a fault is called, and which lines and fix it names.
TEST(IncoreFaults, AreNamed) {
  const ir::Kernel machine = example_product("incore", "cube");
  const auto is_of = [](const Operation& o, const char* from, const char* to) {
    return ir::info(o.op).family == ir::Family::core_event && o.op != Op::unit_barrier &&
           o.attributes.text(Key::from) == from && o.attributes.text(Key::to) == to;
  };
  const auto without = [&](Op op, const char* from, const char* to, int site) {
    ir::Kernel mutant = machine;
    EXPECT_TRUE(
        drop(mutant, site, [&](const Operation& o) { return o.op == op && is_of(o, from, to); }));
    return messages(mutant);
  };
  const auto without_any = [&](const char* from, const char* to) {
    ir::Kernel mutant = machine;
    while (drop(mutant, 0, [&](const Operation& o) { return is_of(o, from, to); })) {
    }
    return messages(mutant);
  };
  // Nothing says that what is read has been loaded.
  std::string message = without_any("MTE2", "MTE1")["race"];
  EXPECT_THAT(message, HasSubstr("(MTE1) may read a[stage 0] (Mat) before "
                                 "core_load at "));
  EXPECT_THAT(message, HasSubstr("incore_gemm.cpp:44 (MTE2) is over"));
  EXPECT_THAT(message, HasSubstr("an event from MTE2, set behind the first, to MTE1"));
  // Nothing says that a stage is free again: one buffer late.
  message = without_any("MTE1", "MTE2")["race"];
  EXPECT_THAT(message, HasSubstr("(MTE2) may write a[stage"));
  // The wait alone is missing: what it is for is raised twice.
  message = without(Op::event_wait, "MTE1", "MTE2", 0)["event"];
  EXPECT_THAT(message, HasSubstr("event 0 from MTE1 to MTE2 may be set while it is still up"));
  // The set that a wait is for.
  message = without(Op::event_set, "MTE2", "MTE1", 0)["deadlock"];
  EXPECT_THAT(message, HasSubstr("MTE1 waits for event"));
  // What takes the last events back.
  message = without(Op::event_wait, "FIX", "M", 1)["exit"];
  EXPECT_THAT(message, HasSubstr("from FIX to M is still up at the end"));
  // A result of what nobody loaded.
  ir::Kernel unloaded = machine;
  EXPECT_TRUE(drop(unloaded, 1, [](const Operation& o) { return o.op == Op::core_load; }));
  message = messages(unloaded)["uninitialised"];
  EXPECT_THAT(message, HasSubstr("writes an element of C that was made of row 0, column 0 of b "
                                 "(Mat), which nobody has written"));
}

}  // namespace
}  // namespace tilewright::simulator
