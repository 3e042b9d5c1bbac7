#pragma once

#include <cstdint>
#include <string>

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
};

// Raises for a --trace whose ending says neither what it is.
void check_traces(const Request& request);
// To the files of --trace.
void write_traces(const Request& request, const Outcome& outcome, const Title& title);
void print_outcome(const Request& request, const Outcome& outcome, const Title& title);
void print_breakage(const Title& title, const checks::Breakage& breakage);
void print_json(const Request& request, const Outcome& outcome, const Title& title);
// The exit status.
int status_of(const Outcome& outcome);

}  // namespace tilewright::tools
