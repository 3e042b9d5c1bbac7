#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/ir.h"
#include "schedules/chosen.h"
#include "tilewright/numerics.h"

// From a traced kernel to its machine form. There is no other way to one: what is built, simulated,
// checked, proved, explained and estimated has come through here.
namespace tilewright::compiler {

struct Stage {
  std::string name;
  double milliseconds = 0;
  bool changed = false;
};

// Called after each stage with the kernel as the stage left it. An attempt that finds no room is
// followed by the stages of the next one, from the schedule on.
using StageObserver = std::function<void(const Stage&, const ir::Kernel&)>;

// What the compiler did where it could have done otherwise, and why.
struct Decision {
  std::string what, why;
  bool warns = false;  // it costs speed, or is left open
};

struct MachineOptions {
  Numerics numerics;
  // Products may run while what others read is computed, which takes registers.
  bool overlap_products = true;
  // The kernel is what a stage of another compilation has left: one of the tile form is prepared,
  // one of the scheduled form was made by the compiler, which then converts layouts where they
  // disagree. An author of the explicit level does that himself.
  bool taken_up = false;
  // Numbers of the launch that decide where memory is accessed are checked while the kernel runs
  // (CompileOptions::checked).
  bool checked = false;
  // Waits that last too long report themselves and end the kernel (TILEWRIGHT_WATCH).
  bool watched = false;
  // Of a kernel of the tile form; its fields come before the kernel's own.
  Schedule schedule = {};
};

struct MachineForm {
  ir::Kernel kernel;
  std::map<std::string, int> applied;  // how often each rewrite was, by the pass's name
  std::vector<Decision> decisions;
  std::vector<schedules::ChosenField> schedule;  // of a kernel of the tile form
  // What ships in place of this form if an assembler finds too few registers for it; nothing where
  // no assembler is asked.
  std::optional<MachineOptions> otherwise;
  bool checked = false;
};

// `target` names a record of src/target. A kernel of the tile form gets the automatic schedule, one
// of the scheduled form is lowered, one of the machine form is verified; the latter two are for the
// target already, or it is a usage error. The author's claims are not held against the result.
MachineForm compile_to_machine(const ir::Kernel& kernel, std::string_view target,
                               const MachineOptions& options = {},
                               const StageObserver& observer = {});

// A kernel of the tile form as its schedule is made of it.
ir::Kernel prepare(const ir::Kernel& kernel, std::string_view target,
                   const MachineOptions& options = {}, const StageObserver& observer = {});

// Every form of which an assembler's report lets one ship, the one that it is asked about first in
// front. What is found of a kernel without an assembler holds once it holds for all of them.
std::vector<MachineForm> machine_forms(const ir::Kernel& kernel, std::string_view target,
                                       const MachineOptions& options = {});

}  // namespace tilewright::compiler
