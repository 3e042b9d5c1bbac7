#pragma once

#include "library/schedule_rules.h"
#include "tilewright/library.h"

namespace tilewright::library {

// The kernel's rules, or a single one for the schedule that is set. Raises when that is for another
// target.
CompiledRules open_rules(const LibraryKernel& kernel, const OptionValues& options,
                         std::string_view target, const std::string& folder);

ScheduleChoice choice_of(const LibraryKernel& kernel, const OptionValues& options,
                         const Rule& rule);

// The variants among which the kernel's rules choose by lengths, in their order: what a kernel with
// these options is built as, at most.
std::vector<std::string> variant_names(const LibraryKernel& kernel, const OptionValues& options,
                                       std::string_view target);

// Of the first GPU that is known of the target; an H200's where the target is none.
int multiprocessors_of(std::string_view target);

// "128x256"; "tile".
std::string name_of(const ScheduleChoice& choice);

}  // namespace tilewright::library
