#include "check/pass_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <ostream>
#include <set>
#include <string>
#include <variant>

#include "common/error_text.h"
#include "library/accuracy.h"
#include "tilewright/library.h"

namespace tilewright::checks {
namespace {

struct Case {
  const char* kernel;
  std::vector<std::string> settings;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.kernel;
  for (const std::string& setting : c.settings) *out << ' ' << setting;
}

// Every kernel of the library, both levels, at sizes with tails.
const Case kCases[] = {
    {"attention_forward", {"schedule=tile", "queries=70", "keys=150", "heads=2", "causal=true"}},
    {"attention_forward", {"queries=70", "keys=150", "heads=2", "window=40", "causal=true"}},
    {"attention_varlen_forward",
     {"schedule=tile", "batch=2", "heads=1", "queries=100", "keys=150"}},
    {"attention_varlen_forward", {"batch=2", "heads=1", "queries=100", "keys=150", "causal=true"}},
    {"gemm", {"schedule=tile", "m=70", "n=136", "k=72"}},
    {"gemm", {"m=70", "n=136", "k=72"}},
    {"gemm_fp8", {"schedule=tile", "m=70", "n=136", "k=80"}},
    {"gemm_fp8", {"m=70", "n=136", "k=80"}},
};

class PassCheck : public testing::TestWithParam<Case> {};

TEST_P(PassCheck, EveryPassKeepsWhatTheKernelComputes) {
  const LibraryKernel& entry = find_kernel(GetParam().kernel);
  library::Workload workload = library::make_workload(entry, GetParam().settings, {}, 1);
  workload.poison_outputs();
  const ScheduleChoice choice = choose_schedule(entry, workload.options, "sm_90a");
  const Kernel kernel = build_choice(entry, choice);
  check_passes(kernel.finish(), ir::default_target(), workload.arguments(), Numerics(), {});
  // What the last pass made is right too.
  const library::Comparison comparison =
      library::compare(workload, library::reference_of(workload));
  EXPECT_TRUE(comparison.ok()) << comparison.text();
}

INSTANTIATE_TEST_SUITE_P(Library, PassCheck, testing::ValuesIn(kCases));

// The pass that is wrong is named, whatever its form.
TEST(PassCheckTest, NamesThePass) {
  library::Workload workload =
      library::make_workload(find_kernel("gemm"), {"schedule=tile", "m=70", "n=40", "k=72"}, {}, 1);
  const Kernel kernel =
      build_choice(*workload.kernel, choose_schedule(*workload.kernel, workload.options, "sm_90a"));
  // Each turns a kernel into one that leaves something out.
  const auto first = [](ir::Op op, const std::function<void(ir::Operation&)>& change) {
    return [op, change](ir::Kernel& spoilt) {
      bool done = false;
      ir::for_each(spoilt.body, [&](ir::Operation& o) {
        if (done || o.op != op) return;
        change(o);
        done = true;
      });
      EXPECT_TRUE(done);
    };
  };
  const auto shorter =
      first(ir::Op::for_loop, [](ir::Operation& o) { o.operands[1] = o.operands[0]; });
  const auto moved = first(ir::Op::wgmma_ss, [](ir::Operation& o) {
    o.attributes.set(ir::Key::step_b, o.attributes.integer_or(ir::Key::step_b, 0) + 32);
  });
  struct Spoilt {
    std::string pass;
    std::string named;
    std::function<void(ir::Kernel&)> how;
  };
  for (const Spoilt& spoilt : {Spoilt{"hoist", "pass hoist", shorter},
                               Spoilt{"hoist_scheduled", "pass hoist_scheduled", shorter},
                               Spoilt{"allocate_shared", "up to allocate_shared", moved},
                               Spoilt{"simplify_addresses", "pass simplify_addresses", moved}}) {
    try {
      check_passes(kernel.finish(), ir::default_target(), workload.arguments(), Numerics(), {},
                   [&](std::string_view pass, ir::Kernel& after) {
                     if (pass == spoilt.pass) spoilt.how(after);
                   });
      ADD_FAILURE() << "nobody noticed " << spoilt.pass;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::result);
      EXPECT_THAT(
          test::without_source_lines(error.what()),
          testing::AllOf(testing::HasSubstr("behind pass"), testing::HasSubstr(spoilt.named)));
    }
  }
}

constexpr double kScale = 0.375;

// Y = kScale A B.
Kernel scaled_product() {
  Kernel kernel("scaled_product");
  const Dim depth = kernel.dim("depth");
  const Tensor A = kernel.in("A", bf16, {64, depth}), B = kernel.in("B", bf16, {64, depth});
  const Tensor Y = kernel.out("Y", f32, {64, 64});
  kernel.grid(1);
  Var sum{zeros({64, 64})};
  for (Block part : blocks(depth, 64)) {
    sum = dot(load(A(all, part)), load(B(all, part)).T(), sum);
  }
  store(Y(all, all), sum * kScale);
  return kernel;
}

// Whether the check notices what `spoil` does to a kernel of the form, behind some pass.
bool notices(ir::Form form, const std::function<void(ir::Kernel&)>& spoil) {
  const Kernel kernel = scaled_product();
  HostTensor a = HostTensor::random_normal(bf16, {64, 128}, 1);
  HostTensor b = HostTensor::random_normal(bf16, {64, 128}, 2);
  const auto check = [&](const Spoil& how) {
    HostTensor y = HostTensor::poisoned(f32, {64, 64});
    const Arguments arguments{{{"A", bf16, {64, 128}, {128, 1}, a.data()},
                               {"B", bf16, {64, 128}, {128, 1}, b.data()},
                               {"Y", f32, {64, 64}, {64, 1}, y.data()}},
                              {}};
    check_passes(kernel.finish(), ir::default_target(), arguments, Numerics(), {}, how);
  };
  std::set<std::string> passes;
  check([&](std::string_view pass, ir::Kernel& after) {
    if (after.form == form) passes.emplace(pass);
  });
  EXPECT_FALSE(passes.empty());
  return std::any_of(passes.begin(), passes.end(), [&](const std::string& pass) {
    try {
      check([&](std::string_view each, ir::Kernel& after) {
        if (each == pass && after.form == form) spoil(after);
      });
    } catch (const Error& error) {
      EXPECT_THAT(test::without_source_lines(error.what()), testing::HasSubstr("behind pass"));
      return true;
    }
    return false;
  });
}

std::function<void(ir::Kernel&)> scaled_by(double factor) {
  return [factor](ir::Kernel& kernel) {
    ir::for_each(kernel.body, [&](ir::Operation& o) {
      if (o.op != ir::Op::constant) return;
      const double* value = std::get_if<double>(o.attributes.find(ir::Key::value));
      if (value && *value == kScale) o.attributes.set(ir::Key::value, kScale * factor);
    });
  };
}

// Passes keep every bit, but where the order of sums, or a rewrite, may change rounding.
TEST(PassCheckTest, NoticesSmallChanges) {
  EXPECT_TRUE(notices(ir::Form::tile, scaled_by(1.0001)));
  EXPECT_TRUE(notices(ir::Form::machine, scaled_by(1.0001)));
  EXPECT_TRUE(notices(ir::Form::scheduled, scaled_by(1.1)));
  EXPECT_FALSE(notices(ir::Form::scheduled, scaled_by(1.001)));
  EXPECT_TRUE(notices(ir::Form::tile, scaled_by(NAN)));
}

// What one execution has stored, the next does not find.
TEST(PassCheckTest, NoticesAStoreThatIsLeftOut) {
  EXPECT_TRUE(notices(ir::Form::tile, [](ir::Kernel& kernel) {
    std::erase_if(kernel.body.body, [](const ir::Operation& o) { return o.op == ir::Op::store; });
  }));
}

}  // namespace
}  // namespace tilewright::checks
