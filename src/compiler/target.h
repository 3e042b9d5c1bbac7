#pragma once

#include <string>
#include <string_view>

namespace tilewright::compiler {

struct Target {
  // passes: on a simulated GPU, before and after every pass.
  // cpu: this processor, natively.
  enum class Kind { interpreter, cpu, simulator, passes, cuda, architecture };
  Kind kind = Kind::interpreter;
  std::string name;  // as it was asked for
  // The GPU that is compiled for, "sm_90a": also the one that is here or simulated.
  std::string arch;
  // Whose schedules of the library serve; "" for the interpreter, which takes the tile level.
  std::string_view scheduled_for() const {
    return kind == Kind::cpu ? std::string_view("cpu") : std::string_view(arch);
  }
};

// An unknown name is a usage error that lists the known ones; one that this version cannot compile
// for, and cuda without a GPU, are Error(unavailable).
Target parse_target(std::string_view name, int device = 0);

// Whether it is a core with explicit memories, which is simulated only.
bool has_explicit_memories(const Target& target);

// What is run on where nobody names a target: "cuda" where this machine has a GPU that has a
// record, else "cpu".
std::string_view target_of_machine();

// What is compiled for where nobody names a target.
std::string default_arch();

}  // namespace tilewright::compiler
