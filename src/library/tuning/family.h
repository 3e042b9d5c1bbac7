#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler/target.h"
#include "ir/ir.h"
#include "schedules/model.h"
#include "tilewright/library.h"

// All variants of a kernel for a target, with what the model says of them.
namespace tilewright::library {

struct FamilyMember {
  std::string name;
  ScheduleChoice choice;
  // The machine form, made when the model first asks: it is the same for all lengths.
  mutable std::unique_ptr<const ir::Kernel> machine;
};

// Every schedule for the architecture and the tile-level definition, or the one that is set.
std::vector<FamilyMember> family_of(const LibraryKernel& kernel, const OptionValues& options,
                                    const std::string& arch);

// `options` has the lengths. An Error(usage) that says why when the member cannot be compiled, or
// not for such lengths.
schedules::Estimate estimate(const LibraryKernel& kernel, const FamilyMember& member,
                             const OptionValues& options, int multiprocessors);

}  // namespace tilewright::library
