#pragma once

#include <string>
#include <string_view>

namespace tilewright::compiler {

struct Target {
  // passes: on a simulated GPU, before and after every pass.
  enum class Kind { interpreter, simulator, passes, cuda, architecture };
  Kind kind = Kind::interpreter;
  std::string name;  // as it was asked for
  std::string arch;  // what is compiled for, "sm_90a": also of the GPU that is here or simulated
};

// An unknown name is a usage error that lists the known ones; one that this version cannot compile
// for, and cuda without a GPU, are Error(unavailable).
Target parse_target(std::string_view name, int device = 0);

// What is compiled for where nobody names a target.
std::string default_arch();

}  // namespace tilewright::compiler
