#pragma once

#include <string>
#include <string_view>

#include "runtime/nvrtc.h"
#include "tilewright/error.h"

namespace tilewright::runtime {

// Why no CUDA source can be compiled here; empty when it can.
inline std::string why_no_nvrtc(std::string_view arch = "sm_90a") {
  try {
    Nvrtc::get().require_arch(arch);
    return {};
  } catch (const Error& error) {
    return error.message();
  }
}

}  // namespace tilewright::runtime
