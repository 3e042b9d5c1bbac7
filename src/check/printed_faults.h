#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/ir.h"
#include "support/arguments.h"
#include "tilewright/library.h"

// Faults of the printer, seeded into what it prints: each has to show where the PTX is executed
// beside the machine form.
namespace tilewright::checks {

// Wherever the printed text matches the pattern, it becomes the replacement (std::regex).
struct PrintedFault {
  std::string_view name;
  bool in_prelude = false;  // in a function of the prelude, not in what the printer writes itself
  std::string_view pattern, replacement;
};
const std::vector<PrintedFault>& printed_faults();

// A kernel to print, and what it is launched with.
struct PrintedSubject {
  std::string name;
  ir::Kernel machine;
  std::int64_t multiprocessors = 1;
  std::function<Arguments()> arguments;  // with outputs that hold nothing yet
};

// How the subject's PTX differs from its machine form; empty where it does not.
std::string difference_of(const PrintedSubject& subject);
// The machine forms of the fuzzer's kernel of that seed; none where the compiler refuses it.
std::vector<PrintedSubject> random_subjects(std::uint64_t seed);

struct PrintedFaultResult {
  const PrintedFault* fault = nullptr;
  bool caught = false;
  std::int64_t subjects = 0;  // whose text it changes, up to the one that shows it
  std::string subject;        // that one
  int line = 0;               // of its text, the first that changes
  std::string how;            // what showed, or why nothing did
};

// Of each fault, by the subjects one after the other until one shows it, at most `patience` of
// those that have a place for it. `advance` is told of each that is done.
std::vector<PrintedFaultResult> prove_printer(const std::vector<PrintedSubject>& subjects,
                                              std::int64_t patience,
                                              const std::vector<const PrintedFault*>& faults,
                                              const std::function<void()>& advance = {});

// Kernels that have places for all of them: of the library, which `find` finds by their names, and
// random ones.
std::vector<PrintedSubject> printed_subjects(
    std::int64_t random, const std::function<const LibraryKernel&(std::string_view)>& find);

}  // namespace tilewright::checks
