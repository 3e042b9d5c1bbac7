#pragma once

#include <gtest/gtest.h>

#include <string>

#include "codegen/cuda/cuda_printer.h"
#include "compiler/build.h"
#include "ir/text.h"
#include "ir/verifier.h"
#include "runtime/nvrtc_available.h"

namespace tilewright::codegen {

inline ir::Kernel parsed(std::string_view text, std::string_view file = "kernel.tw") {
  ir::Kernel kernel = ir::parse_text(text, file);
  ir::verify(kernel);
  return kernel;
}

using runtime::why_no_nvrtc;

// The source, built as what ships is: a test before this one may have left it in the cache.
inline runtime::CompiledKernel built(const CudaSource& source, const std::string& arch) {
  compiler::GpuProgram program;
  program.source = source;
  return compiler::build(program, arch).kernel;
}

// Builds and holds the result against what the library promises: no stack frame, no spills, no
// serialised wgmma. `exact` also refuses waits that ptxas had to add.
inline void expect_builds(const CudaSource& source, bool exact = false,
                          const std::string& arch = "sm_90a") {
  runtime::CompiledKernel kernel;
  ASSERT_NO_THROW(kernel = built(source, arch)) << source.text;
  ASSERT_NO_THROW(runtime::check_report(kernel.report, {}, source.entry)) << kernel.log;
  const runtime::FunctionResources* resources = kernel.report.find(source.entry);
  ASSERT_NE(resources, nullptr) << kernel.log;
  EXPECT_EQ(resources->stack_bytes, 0);
  EXPECT_LE(resources->spill_store_bytes, 0);
  EXPECT_EQ(kernel.log.find("warning"), std::string::npos) << kernel.log;
  for (const runtime::PtxasMessage& message : kernel.report.messages) {
    EXPECT_FALSE(exact) << message.text;
  }
}

}  // namespace tilewright::codegen
