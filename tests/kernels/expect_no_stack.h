#pragma once

#include <gtest/gtest.h>

#include <string>

#include "codegen/print.h"
#include "runtime/nvrtc.h"

namespace tilewright::test {

// The source becomes a cubin, whose entry has no stack and spills no registers. Needs NVRTC.
inline void expect_no_stack(const codegen::CudaSource& source, const std::string& arch) {
  runtime::CompileRequest request;
  request.name = source.entry;
  request.source = source.text;
  request.arch = arch;
  const runtime::CompiledKernel built = runtime::Nvrtc::get().compile(request);
  EXPECT_FALSE(built.cubin.empty());
  const runtime::FunctionResources* resources = built.report.find(source.entry);
  ASSERT_NE(resources, nullptr);
  EXPECT_EQ(resources->stack_bytes, 0);
  EXPECT_EQ(resources->spill_store_bytes, 0);
}

}  // namespace tilewright::test
