#pragma once

#include <gtest/gtest.h>

#include <string>

#include "codegen/cuda/cuda_printer.h"
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

// Compiles and holds the result against what the library promises: no stack frame, no
// spills, no serialised wgmma. `exact` also refuses waits that ptxas had to add.
inline void expect_builds(const CudaSource& source, bool exact = false,
                          const std::string& arch = "sm_90a") {
  runtime::CompileRequest request;
  request.name = source.entry;
  request.source = source.text;
  request.arch = arch;
  request.options = {"--fmad=false"};
  runtime::CompiledKernel built;
  ASSERT_NO_THROW(built = runtime::Nvrtc::get().compile(request)) << source.text;
  ASSERT_NO_THROW(runtime::check_report(built.report, {}, source.entry)) << built.log;
  const runtime::FunctionResources* resources = built.report.find(source.entry);
  ASSERT_NE(resources, nullptr) << built.log;
  EXPECT_EQ(resources->stack_bytes, 0);
  EXPECT_LE(resources->spill_store_bytes, 0);
  EXPECT_EQ(built.log.find("warning"), std::string::npos) << built.log;
  for (const runtime::PtxasMessage& message : built.report.messages) {
    EXPECT_FALSE(exact) << message.text;
  }
}

}  // namespace tilewright::codegen
