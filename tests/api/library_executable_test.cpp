#include "tilewright/library_executable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "common/error_text.h"
#include "library/accuracy.h"
#include "tilewright/kernels/gemm.h"

namespace tilewright {
namespace {

using test::usage_error_of;
using testing::ElementsAre;
using testing::HasSubstr;

// The library's gemm in three widths, which the simulated GPU executes.
const LibraryKernel& family() {
  static const LibraryKernel kernel = [] {
    LibraryKernel gemm = find_kernel("gemm");
    gemm.schedules.clear();
    for (const int columns : {64, 128, 256}) {
      gemm.schedules.push_back(
          {std::to_string(columns), "sm_90a", "", [columns](const OptionValues&) {
             kernels::Gemm how;
             how.block_n = columns;
             return kernels::gemm_sm90(how);
           }});
    }
    gemm.rules = {{"sm_90a", "gemm.txt",
                   "gemm sm_90a v1\n"
                   "when n <= 64: schedule=64\n"
                   "when n % 16 == 8: schedule=64\n"
                   "else: schedule=128\n"}};
    return gemm;
  }();
  return kernel;
}

std::vector<std::string> built(const LibraryExecutable& executable) {
  std::vector<std::string> names;
  for (const LibraryExecutable::Variant& variant : executable.variants()) {
    if (variant.built) names.push_back(variant.name);
  }
  return names;
}

void run(const LibraryExecutable& executable, const std::string& n) {
  library::Workload work = library::make_workload(family(), {"m=70", "n=" + n, "k=72"}, {}, 3);
  std::vector<TensorRef> tensors;
  for (HostTensor& tensor : work.tensors) tensors.push_back(ref(tensor));
  executable.run(tensors);
  EXPECT_TRUE(library::compare(work, library::reference_of(work)).ok()) << n;
}

TEST(LibraryExecutableTest, SizesChooseAmongVariantsThatAreBuiltOnce) {
  const LibraryExecutable executable =
      compile(family(), resolve_options(family(), {"n=512"}), "sim:sm_90a");
  EXPECT_EQ(executable.variants().size(), 2u) << "two rules choose the same one";
  EXPECT_THAT(built(executable), ElementsAre("128"));
  run(executable, "96");
  run(executable, "272");
  EXPECT_THAT(built(executable), ElementsAre("128")) << "no length needs another";
  run(executable, "136");
  EXPECT_THAT(built(executable), ElementsAre("64", "128"));
}

TEST(LibraryExecutableTest, AChoiceIsRememberedForItsOwnKernelAlone) {
  LibraryKernel other = family();
  other.rules[0].text = "gemm sm_90a v1\nwhen n <= 64: schedule=128\nelse: schedule=64\n";
  for (int i = 0; i < 2; ++i) {
    const LibraryExecutable first =
        compile(family(), resolve_options(family(), {"n=512"}), "sim:sm_90a");
    const LibraryExecutable second =
        compile(other, resolve_options(other, {"n=512"}), "sim:sm_90a");
    run(first, "48");
    run(second, "48");
    run(second, "48");
    EXPECT_THAT(built(first), ElementsAre("64", "128"));
    EXPECT_THAT(built(second), ElementsAre("128", "64"));
  }
}

// Off a GPU as many as the options say.
TEST(LibraryExecutableTest, MultiprocessorsChooseAVariant) {
  LibraryKernel counted = family();
  counted.rules[0].text =
      "gemm sm_90a v1\nwhen multiprocessors <= 4: schedule=64\n"
      "else: schedule=128\n";
  const auto built_on = [&](int multiprocessors) {
    CompileOptions options;
    options.multiprocessors = multiprocessors;
    return built(compile(counted, resolve_options(counted, {"n=512"}), "sim:sm_90a", options));
  };
  EXPECT_THAT(built_on(4), ElementsAre("64"));
  EXPECT_THAT(built_on(5), ElementsAre("128"));
}

TEST(LibraryExecutableTest, PrepareBuildsAllVariants) {
  const LibraryExecutable executable =
      compile(family(), resolve_options(family(), {}), "sim:sm_90a");
  executable.prepare();
  EXPECT_THAT(built(executable), ElementsAre("64", "128"));
}

// Tiles of a window are neither divided nor in pairs, and their schedules refuse it.
TEST(LibraryExecutableTest, VariantsThatTheOptionsExcludeAreNotBuilt) {
  const LibraryKernel& attention = find_kernel("attention_forward");
  const auto prepared = [&](const std::vector<std::string>& settings) {
    const LibraryExecutable executable =
        compile(attention, resolve_options(attention, settings), "sim:sm_90a");
    executable.prepare();
    return built(executable);
  };
  EXPECT_THAT(prepared({"causal=true", "window=100"}), ElementsAre("sm90"));
  EXPECT_THAT(prepared({"sinks=true"}), ElementsAre("sm90_few", "sm90"));
  EXPECT_THAT(prepared({"dim=256", "dim_v=256"}), ElementsAre("sm90"));
}

TEST(LibraryExecutableTest, AScheduleThatIsSetLeavesOneVariant) {
  const LibraryExecutable executable =
      compile(family(), resolve_options(family(), {"schedule=256"}), "sim:sm_90a");
  EXPECT_THAT(built(executable), ElementsAre("256"));
  run(executable, "8");
}

TEST(LibraryExecutableTest, ThreadsShareTheVariants) {
  const LibraryExecutable executable =
      compile(family(), resolve_options(family(), {}), "sim:sm_90a");
  std::vector<std::thread> threads;
  for (const char* n : {"8", "48", "64", "24"}) {
    threads.emplace_back([&executable, n] { run(executable, n); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(executable.variants().size(), 2u);
}

TEST(LibraryExecutableTest, TensorsOfAWrongShapeAreRefusedAsByOneKernel) {
  const LibraryExecutable executable =
      compile(family(), resolve_options(family(), {}), "sim:sm_90a");
  HostTensor a = HostTensor::poisoned(bf16, {8, 8}), b = HostTensor::poisoned(bf16, {8});
  HostTensor c = HostTensor::poisoned(bf16, {8, 8});
  EXPECT_THAT(usage_error_of([&] {
                executable.run({ref(a), ref(b), ref(c)});
              }),
              HasSubstr("B has rank 1"));
  EXPECT_THAT(usage_error_of([&] { executable.run({}); }), HasSubstr("tensors"));
}

}  // namespace
}  // namespace tilewright
