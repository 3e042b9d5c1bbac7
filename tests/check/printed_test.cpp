#include "check/printed.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>

#include "check/printed_faults.h"
#include "check/shrunken_sizes.h"
#include "codegen/print.h"
#include "common/loaded_bounds.h"
#include "compiler/compile_to_machine.h"
#include "compiler/compiled.h"
#include "compiler/simulation.h"
#include "compiler/target.h"
#include "ir/text.h"
#include "library/library_build.h"
#include "library/program_simulation.h"
#include "library/workload.h"
#include "runtime/nvrtc_available.h"
#include "tilewright/error.h"

// The PTX of printed kernels beside their machine forms.
namespace tilewright::checks {
namespace {

using runtime::why_no_nvrtc;

std::string text_of(const PrintedDifference& difference) {
  return difference.none() ? "" : difference.kind + ": " + difference.message;
}

std::string difference_of(const ir::Kernel& machine, const Arguments& arguments,
                          const PrintedOptions& options) {
  const codegen::CudaSource source = codegen::print(machine);
  return text_of(compare_printed(machine, source.parameters, printed_ptx(machine, source),
                                 arguments, options));
}

// A kernel of the library in the machine form, and shrunken sizes for it.
struct Entry {
  const char* kernel;
  std::vector<std::string> settings;
};

struct Built {
  ir::Kernel machine;
  std::vector<std::vector<std::string>> settings;  // with each choice of sizes
};

Built built(const Entry& entry, const char* name = "sm_90a") {
  const LibraryKernel& kernel = find_kernel(entry.kernel);
  const compiler::Target target = compiler::parse_target(name);
  const auto machine = [&](const std::vector<std::string>& settings) {
    const Kernel traced = library::trace_entry(kernel, resolve_options(kernel, settings), target);
    return compiler::machine_forms(traced.finish(), name).back().kernel;
  };
  Built made;
  const auto choices =
      shrunken_sizes(kernel, entry.settings, resolve_options(kernel, entry.settings),
                     machine(entry.settings), Sizes::usual);
  for (const std::vector<std::string>& sizes : choices) {
    made.settings.push_back(entry.settings);
    made.settings.back().insert(made.settings.back().end(), sizes.begin(), sizes.end());
  }
  made.machine = machine(made.settings.front());
  return made;
}

PrintedOptions options_for(const ir::Kernel& machine) {
  PrintedOptions options;
  options.multiprocessors = shrunken_multiprocessors(machine);
  return options;
}

// In one of their sizes; scripts/prove does the others.
TEST(Printed, LibraryKernels) {
  if (const std::string why = why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  const Entry entries[] = {
      {"attention_forward", {"schedule=sm90", "causal=true", "window=150"}},
      {"attention_forward", {"schedule=tile", "softcap=20", "sinks=true"}},
      {"attention_forward", {"schedule=sm90", "dim=192", "dim_v=128"}},
      {"attention_varlen_forward", {"schedule=sm90", "dim=128", "causal=true"}},
      {"gemm", {"schedule=tile"}},
      {"gemm", {"schedule=128x208_b2_grid"}},
      {"gemm", {"schedule=64x96_a2_b2_split4"}},
      {"gemm", {"schedule=16x64x256_t", "dtype=f16"}},
      {"gemm_fp8", {"schedule=128x96_a2_b4"}},
  };
  for (const Entry& entry : entries) {
    SCOPED_TRACE(fmt::format("{} {}", entry.kernel, fmt::join(entry.settings, " ")));
    const Built made = built(entry);
    library::Workload workload =
        library::make_workload(find_kernel(entry.kernel), made.settings[1], {}, 1);
    workload.poison_outputs();
    EXPECT_EQ(difference_of(made.machine, workload.arguments(), options_for(made.machine)), "");
  }
}

// A product for Blackwell as its text says it, which may be changed.
class BlackwellProduct {
 public:
  explicit BlackwellProduct(const std::vector<std::string>& settings)
      : machine_(built({"gemm", settings}, "sm_100a").machine),
        workload_(library::make_workload(find_kernel("gemm"), settings, {}, 1)),
        source_(codegen::print(machine_)),
        text(printed_ptx_text(machine_, source_)) {
    workload_.poison_outputs();
  }
  // Of what executes that text, and of the machine form.
  std::string difference(const std::string& ptx) {
    return text_of(compare_printed(machine_, source_.parameters, ptx::parse(ptx, "k.ptx"),
                                   workload_.arguments(), options_for(machine_)));
  }

 private:
  const ir::Kernel machine_;
  library::Workload workload_;
  const codegen::CudaSource source_;

 public:
  const std::string text;
};

// Whose results are in tensor memory, of one CTA and of pairs. What executes the text says what is
// wrong with it.
TEST(Printed, ProductsOfBlackwell) {
  if (const std::string why = why_no_nvrtc("sm_100a"); !why.empty()) GTEST_SKIP() << why;
  for (const char* schedule : {"schedule=sm100", "schedule=sm100_pairs"}) {
    SCOPED_TRACE(schedule);
    BlackwellProduct product({schedule, "m=130", "n=72", "k=136"});
    EXPECT_EQ(product.difference(product.text), "");
    // What is left out shows.
    for (const char* name : {"tcgen05.alloc.", "tcgen05.mma.", "tcgen05.commit.", "tcgen05.ld."}) {
      const std::size_t at = product.text.find(name);
      ASSERT_NE(at, std::string::npos) << name;
      std::string other = product.text;
      EXPECT_NE(product.difference(other.erase(at, other.find(';', at) - at)), "") << name;
    }
  }
}

// Clusters take over the places of those that have not started, as the virtual GPU has drawn them.
TEST(Printed, TilesByLaunchControl) {
  if (const std::string why = why_no_nvrtc("sm_100a"); !why.empty()) GTEST_SKIP() << why;
  BlackwellProduct product({"schedule=sm100_handed_out", "m=1100", "n=72", "k=24"});
  EXPECT_EQ(product.difference(product.text), "");
  // Without the places that it gives, or the request.
  for (const char* name : {"get_first_ctaid", "try_cancel"}) {
    const std::size_t at = product.text.find(name), line = product.text.rfind('\n', at) + 1;
    ASSERT_NE(at, std::string::npos) << name;
    std::string other = product.text;
    EXPECT_NE(product.difference(other.erase(line, other.find(';', at) + 1 - line)), "") << name;
  }
}

// Of the program's launches, in each of its machine forms.
void expect_program_agrees(const Entry& named, std::uint64_t seed = 0) {
  const LibraryKernel& entry = find_kernel(named.kernel);
  library::Workload workload = library::make_workload(entry, named.settings, {}, 1);
  std::vector<ir::TensorShape> shapes;
  for (const HostTensor& tensor : workload.tensors) {
    shapes.push_back(
        {entry.tensors[shapes.size()].name, tensor.dtype(), tensor.shape(), tensor.strides()});
  }
  const Program traced = build_program(entry, choose_schedule(entry, workload.options, "sm_90a"));
  const ir::Program program = ir::bind_program(traced.finish(), shapes, 8);
  std::vector<HostTensor> before;
  std::size_t next = 0;
  for (const ir::ProgramBuffer& buffer : program.buffers) {
    before.push_back(buffer.is_passed() ? workload.tensors[next++] : HostTensor());
  }
  PrintedOptions options;
  options.seed = seed;
  options.multiprocessors = 8;
  for (const std::vector<ir::Kernel>& machine :
       library::machine_forms(program, ir::default_target())) {
    std::vector<HostTensor> buffers = before;
    EXPECT_EQ(text_of(compare_printed(program, machine, buffers, options)), "");
  }
}

TEST(Printed, AProgramOfSeveralKernels) {
  if (const std::string why = why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  expect_program_agrees({"attention_decode", {"keys=600", "dim=64"}});
}

// With an odd seed the virtual GPU would have CTAs that count beside each other.
TEST(Printed, CtasThatTakeNumbersFromACounter) {
  if (const std::string why = why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  for (const std::uint64_t seed : {0, 1}) {
    expect_program_agrees({"attention_paged", {"schedule=sm90_planned"}}, seed);
  }
}

// CTAs ask for words that others write, while copies are under way.
TEST(Printed, SumsInTheirOrder) {
  if (const std::string why = why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  for (const char* dim : {"dim=64", "dim=256"}) {
    expect_program_agrees(
        {"attention_backward",
         {"schedule=ordered", dim, "queries=130", "keys=200", "heads=1", "batch=1"}});
  }
}

// What shows where the printed additions change what they add by so much.
std::string difference_of_sums(Order order, const char* factor) {
  Kernel kernel("sums");
  const Dim rows = kernel.dim("rows");
  const Tensor X = kernel.in("X", f32, {rows, 64}), Y = kernel.inout("Y", f32, {64, 64});
  const auto [at] = kernel.grid(ceil_div(rows, 64));
  add(Y(all, all), load(X(rows.block(at, 64), all)), order);
  const ir::Kernel machine = compiler::machine_forms(kernel.finish(), "sm_90a").back().kernel;
  codegen::CudaSource source = codegen::print(machine);
  const std::string added = "\"f\"(r[0])", changed = std::string("\"f\"(r[0] * ") + factor + ")";
  std::size_t places = 0;
  for (std::size_t i = source.text.find(added); i != std::string::npos;
       i = source.text.find(added, i + changed.size()), ++places) {
    source.text.replace(i, added.size(), changed);
  }
  EXPECT_GT(places, 0u);
  HostTensor x = HostTensor::random_normal(f32, {200, 64}, 1), y = HostTensor::zeros(f32, {64, 64});
  return text_of(compare_printed(machine, source.parameters, printed_ptx(machine, source),
                                 compiler::make_arguments(machine, {ref(x), ref(y)}, {}),
                                 options_for(machine)));
}

TEST(Printed, SumsInAnyOrderMayRoundDifferently) {
  if (const std::string why = why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  EXPECT_EQ(difference_of_sums(Order::any, "1.0f"), "");
  EXPECT_EQ(difference_of_sums(Order::any, "1.0000001f"), "");
  EXPECT_THAT(difference_of_sums(Order::any, "1.0001f"), testing::StartsWith("result"));
  EXPECT_EQ(difference_of_sums(Order::blocks, "1.0f"), "");
  EXPECT_THAT(difference_of_sums(Order::blocks, "1.0000001f"), testing::StartsWith("result"));
}

// The list names blocks of X, of which there are two.
TEST(Printed, ChecksThatFailAndThatHold) {
  if (const std::string why = why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  for (const bool products : {false, true}) {
    compiler::MachineOptions how;
    how.checked = true;
    const ir::Kernel machine =
        compiler::machine_forms(test::blocks_by_number(products).finish(), "sm_90a", how)
            .back()
            .kernel;
    for (const std::vector<int>& list :
         {std::vector<int>{1, 0, 1}, std::vector<int>{0, 2}, std::vector<int>{0, -1, 0}}) {
      SCOPED_TRACE(fmt::format("{} {}", products, list[1]));
      HostTensor names = test::list_of(list), x = HostTensor::random_normal(bf16, {128, 64}, 1);
      HostTensor y = HostTensor::poisoned(f32, {64, 64});
      const Arguments arguments =
          compiler::make_arguments(machine, {ref(names), ref(x), ref(y)}, {});
      EXPECT_EQ(difference_of(machine, arguments, options_for(machine)), "");
    }
  }
}

TEST(Printed, RandomKernels) {
  if (const std::string why = why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  constexpr std::uint64_t kFirst = 4000, kCount = 20;
  constexpr std::uint64_t kBytesBesideErf = 28;  // stores u8, and has a bound for its floats
  std::vector<std::uint64_t> seeds = {kBytesBesideErf};
  for (std::uint64_t i = 0; i < kCount; ++i) seeds.push_back(kFirst + i);
  std::uint64_t compared = 0;
  for (const std::uint64_t seed : seeds) {
    for (const PrintedSubject& subject : random_subjects(seed)) {
      EXPECT_EQ(difference_of(subject), "") << subject.name;
      ++compared;
    }
  }
  EXPECT_GT(compared, kCount / 2);
}

// Some of each sort; `tilewright fuzz --printed --seeded-faults` has all.
TEST(Printed, FaultsOfThePrinterShow) {
  if (const std::string why = why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  std::vector<const PrintedFault*> faults;
  std::size_t in_prelude = 0;
  for (const PrintedFault& fault : printed_faults()) in_prelude += fault.in_prelude;
  EXPECT_GE(in_prelude, 15u);
  EXPECT_GE(printed_faults().size(), 57u);
  for (const char* name :
       {"a - b as b - a", "a loop's step", "a full wait as .read", "halves of bf16",
        "threads of a named barrier", "the parity of a wait", "one lane as two",
        "a wait that does not wait", "coordinates of a load", "a proxy fence left out",
        "the stride of an operand", "the rank in a descriptor", "words of a vector loaded"}) {
    const auto found = std::find_if(printed_faults().begin(), printed_faults().end(),
                                    [&](const PrintedFault& fault) { return fault.name == name; });
    ASSERT_NE(found, printed_faults().end()) << name;
    faults.push_back(&*found);
  }
  for (const PrintedFaultResult& result :
       prove_printer(printed_subjects(4, find_kernel), 4, faults)) {
    EXPECT_TRUE(result.caught) << result.fault->name << ": " << result.how;
    // It is in a text that is whole but for the fault.
    EXPECT_EQ(result.how.find("the PTX has"), std::string::npos) << result.fault->name;
  }
}

TEST(Printed, EveryPatternIsItsOwn) {
  std::set<std::string_view> names;
  for (const PrintedFault& fault : printed_faults()) {
    EXPECT_TRUE(names.insert(fault.name).second) << fault.name;
  }
}

// PTX that NVRTC made is kept with its machine form, so that the interpreter is tested where there
// is no NVRTC. TILEWRIGHT_UPDATE_GOLDENS=1 makes it anew where there is one.
struct Kept {
  const char* name;
  Entry entry;
};
const Kept kCorpus[] = {
    {"gemm_64x48x128", {"gemm", {"schedule=64x48x128"}}},
    {"gemm_16x64x256_t", {"gemm", {"schedule=16x64x256_t"}}},
    {"gemm_128x96_a2_b4", {"gemm", {"schedule=128x96_a2_b4"}}},
    {"attention_sm90", {"attention_forward", {"schedule=sm90", "dim=16", "causal=true"}}},
};

std::string path_of(const Kept& kept, const char* extension) {
  return fmt::format("{}/tests/ptx/corpus/{}.{}", TILEWRIGHT_SOURCE_DIR, kept.name, extension);
}
std::string contents(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

PrintedDifference compare_kept(const Kept& kept, const std::string& ptx, bool late = true) {
  const ir::Kernel machine = ir::parse_text(contents(path_of(kept, "tw")), path_of(kept, "tw"));
  const LibraryKernel& kernel = find_kernel(kept.entry.kernel);
  std::vector<std::string> settings = kept.entry.settings;
  const auto sizes =
      shrunken_sizes(kernel, settings, resolve_options(kernel, settings), machine, Sizes::usual);
  settings.insert(settings.end(), sizes.front().begin(), sizes.front().end());
  library::Workload workload = library::make_workload(kernel, settings, {}, 1);
  workload.poison_outputs();
  PrintedOptions options = options_for(machine);
  options.late = late;
  options.check_order = !late;
  return compare_printed(machine, codegen::print(machine).parameters,
                         ptx::parse(ptx, path_of(kept, "ptx")), workload.arguments(), options);
}

TEST(Printed, CorpusOfKeptPtx) {
  for (const Kept& kept : kCorpus) {
    SCOPED_TRACE(kept.name);
    if (std::getenv("TILEWRIGHT_UPDATE_GOLDENS") && why_no_nvrtc().empty()) {
      const ir::Kernel machine = built(kept.entry).machine;
      std::ofstream(path_of(kept, "tw")) << ir::to_text(machine);
      std::ofstream(path_of(kept, "ptx")) << printed_ptx_text(machine, codegen::print(machine));
    }
    EXPECT_EQ(text_of(compare_kept(kept, contents(path_of(kept, "ptx")))), "");
  }
}

TEST(Printed, KeptPtxHasNoRaces) {
  for (const std::size_t kept : {0, 1, 2, 3}) {
    EXPECT_EQ(text_of(compare_kept(kCorpus[kept], contents(path_of(kCorpus[kept], "ptx")), false)),
              "");
  }
}

// What is changed in it shows, at the line.
TEST(Printed, ChangesOfKeptPtxShow) {
  struct Change {
    std::size_t kept;
    const char *from, *to, *kind;
  };
  const Change changes[] = {
      {0, "wgmma.wait_group.sync.aligned 0", "wgmma.wait_group.sync.aligned 1", "order"},
      {0, "bar.sync \t0;", "bar.warp.sync \t-1;", "order"},
      {0, "mbarrier.arrive.expect_tx", "mbarrier.expect_tx", "order"},
      {1, "cvt.rn.bf16x2.f32", "cvt.rn.f16x2.f32", "result"},
      {2, ".multicast::cluster", "", "order"},
      {3, "ex2.approx.ftz.f32", "lg2.approx.f32", "result"},
      {3, "max.f32", "min.f32", "result"},
  };
  for (const Change& change : changes) {
    SCOPED_TRACE(change.from);
    std::string text = contents(path_of(kCorpus[change.kept], "ptx"));
    const std::size_t at = text.find(change.from);
    ASSERT_NE(at, std::string::npos);
    for (std::size_t i = at; i != std::string::npos; i = text.find(change.from, i)) {
      text.replace(i, std::string_view(change.from).size(), change.to);
      i += std::string_view(change.to).size();
    }
    try {
      EXPECT_EQ(compare_kept(kCorpus[change.kept], text, false).kind, change.kind);
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(".ptx:"));
    }
  }
}

// Without the machine form beside it, the execution itself finds what is left out of the PTX.
TEST(Printed, WhatIsLeftOutOfKeptPtxIsAFaultOfItsExecution) {
  struct Left {
    const char *line, *fault;
  };
  const std::string clean = contents(path_of(kCorpus[0], "ptx"));
  const Left all[] = {
      {"fence.proxy.async.shared::cta;", "with no fence.proxy.async between them"},
      {"cp.async.bulk.wait_group.read 1;", "with no wait for its group between them"},
      {"cp.async.bulk.wait_group.read 0;", "bulk: a store may still read shared memory"},
      {"wgmma.wait_group.sync.aligned 1;", "with no wait for its group between them"},
      {"wgmma.wait_group.sync.aligned 0;", "wgmma: "},
  };
  for (const Left& left : all) {
    SCOPED_TRACE(left.line);
    std::string text = clean;
    std::size_t count = 0;
    for (std::size_t at = text.find(left.line); at != std::string::npos;
         at = text.find(left.line)) {
      text.erase(at, std::string_view(left.line).size());
      ++count;
    }
    ASSERT_GT(count, 0u);
    EXPECT_THAT(text_of(compare_kept(kCorpus[0], text, false)), testing::HasSubstr(left.fault));
  }
}

}  // namespace
}  // namespace tilewright::checks
