#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "check/breakage.h"
#include "command.h"
#include "schedules.h"

// How `simulate` tells what it found: text, JSON, traces.
namespace tilewright::tools {

// What was executed.
struct Title {
  std::string name;    // as the command calls it
  std::string kernel;  // as it calls itself
  std::string target;  // "sm_90a"
  int ranks = 0;       // of a program; 0: a kernel
  // In a schedule: of a kernel, or in each of the program's runs.
  std::int64_t launches = 1;
  std::int64_t runs = 1;
  // Machine forms, of which an assembler settles the one that ships: each was executed.
  std::size_t forms = 1;
  // Whether a program's results are held against a reference, as a kernel's are, or against each
  // other.
  bool against_reference = false;
  std::vector<std::string> weak = {};  // WeakData, where there is a reference
};

// Raises for a --trace whose ending says neither what it is.
void check_traces(const Request& request);
// As text or JSON, and the traces; `breakage` is what was broken on purpose. The exit status.
int report(const Request& request, const Outcome& outcome, const Title& title,
           const std::optional<checks::Breakage>& breakage = {});

}  // namespace tilewright::tools
