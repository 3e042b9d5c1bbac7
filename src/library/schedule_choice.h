#pragma once

#include "library/schedule_rules.h"
#include "tilewright/library.h"

namespace tilewright::library {

// The rules among which the options leave a choice: those of the schedule that is set, or all.
// Raises when that schedule is for another target.
CompiledRules open_rules(const LibraryKernel& kernel, const OptionValues& options,
                         std::string_view target, const std::string& folder);

// What the rule chooses, with what the options set themselves.
ScheduleChoice choice_of(const LibraryKernel& kernel, const OptionValues& options,
                         const Rule& rule);

// The variants among which the kernel's rules choose by lengths, in their order: what a kernel with
// these options is built as, at most.
std::vector<std::string> variant_names(const LibraryKernel& kernel, const OptionValues& options,
                                       std::string_view target);

// Why there is no such variant; empty where there is one.
std::string refusal_of(const ScheduleChoice& choice);

// "sm90 block_m=128 block_n=256"
std::string name_of(const LibraryKernel& kernel, const ScheduleChoice& choice);

}  // namespace tilewright::library
