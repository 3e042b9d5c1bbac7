#pragma once

#include <gtest/gtest.h>

#include <string>

#include "codegen/nvrtc_build.h"

namespace tilewright::test {

// The source becomes a cubin, whose entry has no stack and spills no registers. Needs NVRTC.
inline void expect_no_stack(const codegen::CudaSource& source, const std::string& arch) {
  const runtime::CompiledKernel kernel = codegen::built(source, arch);
  EXPECT_FALSE(kernel.cubin.empty());
  const runtime::FunctionResources* resources = kernel.report.find(source.entry);
  ASSERT_NE(resources, nullptr);
  EXPECT_EQ(resources->stack_bytes, 0);
  EXPECT_EQ(resources->spill_store_bytes, 0);
}

}  // namespace tilewright::test
