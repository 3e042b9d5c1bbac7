#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "common/error_text.h"
#include "ir/ir.h"
#include "ir/program.h"
#include "library/library_build.h"
#include "library/workload.h"
#include "tilewright/library.h"

namespace tilewright {
namespace {

using test::usage_error_of;
using testing::AllOf;
using testing::HasSubstr;

const LibraryKernel& attention() { return find_kernel("attention_forward"); }

std::string error_of(const std::vector<std::string>& settings) {
  return usage_error_of([&] { resolve_options(attention(), settings); });
}

TEST(OptionsTest, UnknownKernelListsTheKnownOnes) {
  EXPECT_THAT(usage_error_of([] { find_kernel("atention"); }),
              AllOf(HasSubstr("there is no kernel 'atention'\n"), HasSubstr("attention_forward"),
                    HasSubstr("gemm")));
  EXPECT_THAT(usage_error_of([] { find_kernel("atention_forward"); }),
              HasSubstr("no kernel 'atention_forward'; the nearest name is attention_forward\n"));
}

TEST(OptionsTest, UnsetOptionsTakeTheirStandardOrFollowAnother) {
  const OptionValues options = resolve_options(attention(), {"heads=6", "queries=100", "dim=32"});
  EXPECT_EQ(options.integer("batch"), 1);
  EXPECT_EQ(options.integer("kv_heads"), 6);
  EXPECT_EQ(options.integer("keys"), 100);
  EXPECT_EQ(options.integer("dim_v"), 32);
  EXPECT_FALSE(options.boolean("causal"));
  EXPECT_EQ(options.dtype("dtype"), bf16);
}

TEST(OptionsTest, AskedForWhatItIsNot) {
  const OptionValues options = resolve_options(attention(), {});
  EXPECT_THAT(usage_error_of([&] { options.text("lengths"); }),
              AllOf(HasSubstr("no option 'lengths'"), HasSubstr("ask for one of: batch, causal")));
  EXPECT_THAT(usage_error_of([&] { options.integer("dtype"); }),
              HasSubstr("option dtype = 'bf16' is no integer"));
  EXPECT_THAT(usage_error_of([&] { options.boolean("heads"); }),
              HasSubstr("option heads = '8' is neither true nor false"));
  EXPECT_THAT(usage_error_of([&] { options.dtype("heads"); }), HasSubstr("unknown dtype \"8\""));
  EXPECT_THAT(usage_error_of([] { parse_axis("batch + one"); }),
              HasSubstr("'batch + one' is no axis"));
  EXPECT_THAT(usage_error_of([] { parse_axis("99999999999999999999"); }), HasSubstr("is no axis"));
  EXPECT_EQ(parse_axis("batch + 1").more, 1);
  EXPECT_EQ(parse_axis("12").more, 12);
}

TEST(OptionsTest, GivenSizesAreWeakerThanSettings) {
  const OptionValues options =
      resolve_options(attention(), {"queries=100"}, {{"queries", 7}, {"batch", 3}});
  EXPECT_EQ(options.integer("queries"), 100);
  EXPECT_EQ(options.integer("batch"), 3);
  EXPECT_THAT(usage_error_of([] {
                resolve_options(attention(), {}, {{"dim", 100000}});
              }),
              HasSubstr("dim = '100000' is outside 1 to 4096"));
}

TEST(OptionsTest, WrongSettingsSayWhatWouldBeRight) {
  EXPECT_THAT(
      error_of({"hads=8"}),
      AllOf(HasSubstr("attention_forward has no option 'hads'; the nearest name is heads\n"),
            HasSubstr("kv_heads"), HasSubstr("schedule")));
  EXPECT_THAT(error_of({"heads"}),
              AllOf(HasSubstr("'heads' is no setting"), HasSubstr("name=value")));
  EXPECT_THAT(error_of({"heads=eight"}), HasSubstr("heads = 'eight' is no integer"));
  EXPECT_THAT(error_of({"heads="}), HasSubstr("heads = '' is no integer"));
  EXPECT_THAT(error_of({"heads=8x"}), HasSubstr("is no integer"));
  EXPECT_THAT(error_of({"queries=-1"}), HasSubstr("queries = '-1' is outside 0 to 2147483647"));
  EXPECT_THAT(error_of({"queries=99999999999999999999"}), HasSubstr("is outside 0 to"));
  EXPECT_THAT(error_of({"causal=yes"}), HasSubstr("neither true nor false"));
  EXPECT_THAT(error_of({"dtype=fp8"}),
              AllOf(HasSubstr("dtype = 'fp8' is not known\n"), HasSubstr("bf16, f16, f32")));
  EXPECT_THAT(error_of({"dtype=fp16"}),
              HasSubstr("dtype = 'fp16' is not known; the nearest name is f16\n"));
  EXPECT_THAT(error_of({"schedule=fast"}),
              AllOf(HasSubstr("there is no schedule 'fast'"), HasSubstr("tile, sm90")));
  EXPECT_THAT(error_of({"dim=64", "dim=128"}), HasSubstr("dim is set twice"));
  EXPECT_THAT(error_of({"heads=6", "kv_heads=4"}),
              AllOf(HasSubstr("heads 6"), HasSubstr("kv_heads 4"), HasSubstr("divisor")));
  EXPECT_THAT(error_of({"window=5"}), AllOf(HasSubstr("window is 5"), HasSubstr("causal = true")));
}

TEST(OptionsTest, TheScheduleFitsTheTarget) {
  const OptionValues unset = resolve_options(attention(), {});
  EXPECT_EQ(choose_schedule(attention(), unset, "").schedule, nullptr);
  ASSERT_NE(choose_schedule(attention(), unset, "sm_90a").schedule, nullptr);
  EXPECT_EQ(choose_schedule(attention(), unset, "sm_90a").schedule->name, "sm90_few");

  const auto error = [](const char* schedule, const char* target) {
    const OptionValues options =
        resolve_options(attention(), {std::string("schedule=") + schedule});
    return usage_error_of(
        [&] { library::trace_entry(attention(), options, compiler::parse_target(target)); });
  };
  EXPECT_THAT(error("sm90", "interpreter"),
              AllOf(HasSubstr("schedule sm90 is for sm_90a, and the target is interpreter"),
                    HasSubstr("tile")));
  // The tile level is compiled by the automatic schedule.
  EXPECT_EQ(library::trace_entry(attention(), resolve_options(attention(), {"schedule=tile"}),
                                 compiler::parse_target("sm_90a"))
                .name(),
            "attention_forward");
}

// Short lengths, with the flags that are named.
std::vector<std::string> settings_of(const LibraryKernel& entry,
                                     const std::vector<std::string>& flags) {
  std::vector<std::string> settings;
  for (const KernelOption& option : entry.options) {
    const bool is_size = option.is_length && option.kind == KernelOption::Kind::integer;
    if (is_size) settings.push_back(option.name + "=8");
  }
  for (const std::string& flag : flags) settings.push_back(flag + "=true");
  return settings;
}

void expect_agreement(const LibraryKernel& entry, const std::vector<std::string>& flags) {
  SCOPED_TRACE(testing::PrintToString(flags));
  const std::vector<std::string> settings = settings_of(entry, flags);
  const OptionValues options = resolve_options(entry, settings);
  std::vector<ir::Kernel> kernels;
  const auto add = [&](const ScheduleChoice& choice) {
    kernels.push_back(entry.is_program() ? signature_of(build_program(entry, choice).finish())
                                         : build_choice(entry, choice).finish());
  };
  add(choose_schedule(entry, options, ""));
  for (const LibrarySchedule& schedule : entry.schedules) {
    std::vector<std::string> set = settings;
    set.push_back("schedule=" + schedule.name);
    const ScheduleChoice choice =
        choose_schedule(entry, resolve_options(entry, set), schedule.target);
    const auto is_refused = [&schedule](const std::string& flag) {
      return schedule.description.find("no " + flag) != std::string::npos;
    };
    if (std::any_of(flags.begin(), flags.end(), is_refused)) {
      EXPECT_FALSE(usage_error_of([&] { add(choice); }).empty()) << schedule.name;
    } else {
      add(choice);
    }
  }
  const library::Workload workload = library::make_workload(entry, settings, {}, 1);
  const std::vector<const LibraryTensor*>& tensors = workload.parameters;
  for (const ir::Kernel& traced : kernels) {
    ASSERT_GE(traced.parameters.size(), tensors.size());
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const ir::Parameter& parameter = traced.parameters[i];
      EXPECT_EQ(parameter.name, workload.name_of(i));
      EXPECT_EQ(parameter.dtype, dtype_of(*tensors[i], options));
      EXPECT_EQ(parameter.shape.size(), tensors[i]->shape.size());
      EXPECT_EQ(parameter.kind == ir::Parameter::Kind::inout, tensors[i]->is_inout);
      EXPECT_EQ(parameter.kind != ir::Parameter::Kind::in, tensors[i]->is_output);
    }
    for (std::size_t i = tensors.size(); i < traced.parameters.size(); ++i) {
      EXPECT_TRUE(traced.parameters[i].is_of_stream()) << traced.parameters[i].name;
    }
  }
  EXPECT_GE(entry.floating_operations(options, workload.inputs()), 0);  // 0: it moves data
  const std::vector<std::vector<double>> reference = entry.reference(options, workload.inputs());
  std::size_t outputs = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i]->is_output) continue;
    ASSERT_LT(outputs, reference.size());
    EXPECT_EQ(reference[outputs++].size(),
              static_cast<std::size_t>(workload.tensors[i].elements()));
  }
  EXPECT_EQ(outputs, reference.size());
}

// Of every entry: what it says of its tensors is what its kernels declare, and its reference gives
// its outputs, whichever of its flags are set.
TEST(OptionsTest, EntriesAgreeWithTheirKernels) {
  for (const LibraryKernel& entry : kernel_library()) {
    SCOPED_TRACE(entry.name);
    std::vector<std::string> flags;
    for (const KernelOption& option : entry.options) {
      if (option.kind == KernelOption::Kind::boolean) flags.push_back(option.name);
    }
    expect_agreement(entry, {});
    for (const std::string& flag : flags) expect_agreement(entry, {flag});
    if (flags.size() > 1) expect_agreement(entry, flags);
  }
}

}  // namespace
}  // namespace tilewright
