#include "runtime/nvrtc.h"

#include <fmt/format.h>

#include <fstream>
#include <thread>

#include "common/temporary_folder.h"
#include "runtime/cubin.h"
#include "runtime/dynamic_library.h"
#include "runtime/kernels.h"
#include "runtime/nvrtc_available.h"
#include "runtime/runtime_test.h"

namespace tilewright::runtime {
namespace {

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  return text.replace(text.find(what), what.size(), by);
}

class NvrtcTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
    compiler_ = &Nvrtc::get();
  }

  void require(std::string_view arch) {
    if (const std::string why = why_no_nvrtc(arch); !why.empty()) GTEST_SKIP() << why;
  }

  CompiledKernel compile(const std::string& source, const std::string& arch = "sm_90a") const {
    return compiler_->compile({"kernel", source, arch, {}});
  }

  const Nvrtc* compiler_ = nullptr;
};

TEST_F(NvrtcTest, CompilesWgmmaWithoutAWarning) {
  const CompiledKernel kernel = compile(replaced(kWgmmaSource, "BETWEEN", ""));
  EXPECT_EQ(kernel.cubin.substr(1, 3), "ELF");
  EXPECT_THAT(kernel.ptx, testing::HasSubstr("wgmma.mma_async.sync.aligned.m64n8k16"));
  EXPECT_NE(kernel.ptx.back(), '\0');
  EXPECT_TRUE(kernel.report.messages.empty()) << kernel.log;
  const FunctionResources* product = kernel.report.find("product");
  ASSERT_NE(product, nullptr);
  EXPECT_TRUE(product->is_kernel);
  EXPECT_GT(product->registers, 8);
  EXPECT_EQ(product->stack_bytes, 0);
  EXPECT_EQ(product->spill_store_bytes, 0);
  EXPECT_EQ(product->parameter_bytes, 28);
  EXPECT_NO_THROW(check_report(kernel.report, {}, "product"));
}

TEST_F(NvrtcTest, AnAccumulatorReadBeforeItsWaitFails) {
  const CompiledKernel kernel = compile(replaced(kWgmmaSource, "BETWEEN", "x[step] = d[0];"));
  expect_error(ErrorKind::usage, {"C7514", "wait for the product"},
               [&] { check_report(kernel.report, {}, "product"); });
  EXPECT_THAT(warnings_of(kernel.report), testing::ElementsAre(testing::HasSubstr("C7517")));
}

TEST_F(NvrtcTest, ARegisterArrayIndexedAtRunTimeFails) {
  const CompiledKernel kernel = compile(kIndexedRegistersSource);
  expect_error(ErrorKind::usage, {"kernel indexed", "stack frame of 128 bytes", "constants only"},
               [&] { check_report(kernel.report, {}, "indexed for sm_90a"); });
}

TEST_F(NvrtcTest, TheCubinSaysWhatTheLogLeavesOut) {
  for (const char* source : {kIndexedRegistersSource, kSharedSource}) {
    const CompiledKernel kernel = compile(source);
    const PtxasReport from_log = parse_ptxas_log(kernel.log);
    const PtxasReport from_cubin = make_report("", kernel.cubin);
    ASSERT_EQ(from_log.functions.size(), 1U);
    ASSERT_EQ(from_cubin.functions.size(), 1U);
    const FunctionResources& log = from_log.functions[0];
    const FunctionResources& cubin = from_cubin.functions[0];
    EXPECT_EQ(cubin.name, log.name);
    EXPECT_TRUE(cubin.is_kernel);
    EXPECT_EQ(cubin.registers, log.registers);
    EXPECT_EQ(cubin.stack_bytes, log.stack_bytes);
    EXPECT_EQ(cubin.parameter_bytes, source == kSharedSource ? 0 : 16);
    EXPECT_EQ(cubin.spill_store_bytes, -1) << "a cubin does not state spills";
    // What the log says of called functions' frames is not in the cubin.
    const PtxasReport both =
        make_report("ptxas info    : Compiling entry function '" + log.name +
                        "' for 'sm_90a'\nptxas info    : Used 99 registers, 512 "
                        "bytes cumulative stack size\n",
                    kernel.cubin);
    EXPECT_EQ(both.functions.front().registers, 99);
    EXPECT_EQ(both.functions.front().stack_bytes, 512);
  }
}

TEST_F(NvrtcTest, ADamagedCubinIsNeverReadOutside) {
  const std::string cubin = compile(kScaleSource).cubin;
  ASSERT_EQ(read_cubin(cubin).size(), 1U);
  // Either an Error or other facts, and never a read outside the bytes.
  const auto read_damaged = [](const std::string& damaged) {
    try {
      read_cubin(damaged);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::internal);
    }
  };
  for (size_t size = 0; size < cubin.size(); size += 61) read_damaged(cubin.substr(0, size));
  for (size_t i = 0; i < cubin.size(); ++i) {
    std::string damaged = cubin;
    damaged[i] = static_cast<char>(~damaged[i]);
    read_damaged(damaged);
  }
  expect_error(ErrorKind::internal, {"no ELF header"}, [] { read_cubin(std::string(4096, 'x')); });
}

TEST_F(NvrtcTest, CompilesTensorMemoryForBlackwellOnly) {
  require("sm_100a");
  if (IsSkipped()) return;
  const CompiledKernel kernel = compile(kTensorMemorySource, "sm_100a");
  EXPECT_THAT(kernel.ptx, testing::HasSubstr("tcgen05.alloc"));
  EXPECT_NO_THROW(check_report(kernel.report, {}, "tensor_memory"));
  expect_error(ErrorKind::internal, {"kernel for sm_90a", "tcgen05"},
               [&] { compile(kTensorMemorySource, "sm_90a"); });
}

TEST_F(NvrtcTest, ASourceThatDoesNotCompileGivesTheLog) {
  expect_error(ErrorKind::internal,
               {"NVRTC " + compiler_->version(), "kernel.cu(1)", "undefined_name"},
               [&] { compile("__global__ void f() { undefined_name = 1; }"); });
}

// 640 threads start with 96 registers each, and 64 x 256 results take 128.
TEST_F(NvrtcTest, AProductOfMoreRegistersThanAThreadStartsWithIsItsAuthors) {
  std::string places, registers;
  for (int i = 0; i < 128; ++i) {
    places += fmt::format("{}%{}", i ? ", " : "", i);
    registers += fmt::format("{}\"+f\"(d[{}])", i ? ", " : "", i);
  }
  const std::string source = fmt::format(
      R"(extern "C" __global__ __launch_bounds__(640, 1) void wide(float* x, unsigned long long a) {{
  float d[128] = {{}};
  asm volatile("wgmma.fence.sync.aligned;\n"
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {{{}}}, %128, %128, 1, 1, 1, 0, 0;\n"
      "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" : {} : "l"(a));
  for (int i = 0; i < 128; ++i) x[128 * threadIdx.x + i] = d[i];
}})",
      places, registers);
  expect_error(ErrorKind::usage, {"kernel for sm_90a: a product takes more registers", "C7602"},
               [&] { compile(source); });
}

TEST_F(NvrtcTest, AnUnknownArchitectureIsAUsageError) {
  expect_error(ErrorKind::usage, {"sm_17", "gpu-architecture"},
               [&] { compile(kScaleSource, "sm_17"); });
  expect_error(ErrorKind::usage, {"virtual"}, [&] { compile(kScaleSource, "compute_90a"); });
}

TEST_F(NvrtcTest, ThreadsCompileAtOnce) {
  std::vector<std::string> cubins(4);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < cubins.size(); ++i) {
    threads.emplace_back([&, i] { cubins[i] = compile(kScaleSource).cubin; });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& cubin : cubins) EXPECT_EQ(cubin, cubins[0]);
}

TEST(NvrtcSearch, TheVariableIsTheOnlyPlace) {
  const ScopedVariable variable("TILEWRIGHT_NVRTC", "/nonexistent/libnvrtc.so");
  expect_error(ErrorKind::unavailable,
               {"TILEWRIGHT_NVRTC", "/nonexistent/libnvrtc.so", "unset it", "pip install"},
               [] { Nvrtc compiler(nvrtc_request()); });
}

TEST(NvrtcSearch, PythonPackagesAreFound) {
  const test::TemporaryFolder folder;
  const auto packages = folder.path() / "lib/python3.11/site-packages/nvidia/cuda_nvrtc/lib";
  std::filesystem::create_directories(packages);
  std::ofstream(packages / "libnvrtc.so.12") << "";
  const ScopedVariable none("TILEWRIGHT_NVRTC", "");
  const ScopedVariable environment("VIRTUAL_ENV", folder.path().string());
  EXPECT_THAT(nvrtc_request().candidates,
              testing::Contains((packages / "libnvrtc.so.12").string()));
}

TEST(NvrtcSearch, AnOldOneNamesBothVersions) {
  const Nvrtc old({"a compiler", {TILEWRIGHT_FAKE_CUDA}, "install one"});
  EXPECT_EQ(old.version(), "12.1");
  const auto needs = [&](const char* arch, const char* version) {
    expect_error(ErrorKind::unavailable,
                 {fmt::format("{} needs NVRTC {} or newer", arch, version), "is 12.1", "fix:"},
                 [&] {
                   old.compile({"kernel", kScaleSource, arch, {}});
                 });
  };
  needs("sm_90a", "12.3");
  needs("sm_100a", "12.8");
  needs("sm_110a", "13.0");
  EXPECT_NO_THROW(old.require_arch("sm_80"));
}

TEST(NvrtcSearch, AnotherLibraryIsNamed) {
  expect_error(ErrorKind::unavailable, {"has no nvrtcVersion"}, [] {
    Nvrtc compiler({"a compiler", {"libm.so.6"}, "install one"});
  });
}

}  // namespace
}  // namespace tilewright::runtime
