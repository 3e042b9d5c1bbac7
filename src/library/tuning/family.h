#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler/target.h"
#include "ir/ir.h"
#include "ir/program.h"
#include "schedules/model.h"
#include "target/devices.h"
#include "tilewright/library.h"

// All variants of a kernel for a target, with what the model says of them.
namespace tilewright::library {

struct FamilyMember {
  std::string name, target;
  ScheduleChoice choice;
  // The machine forms that the model reads. They are made at the first estimate, and serve all
  // lengths.
  struct Lowered {
    ir::Program program;  // empty for an entry that is a kernel
    std::vector<ir::Kernel> machine;
  };
  mutable std::unique_ptr<const Lowered> lowered;
};

// Every schedule for the architecture and the tile-level definition, or the one that is set.
std::vector<FamilyMember> family_of(const LibraryKernel& kernel, const OptionValues& options,
                                    const std::string& arch);

// The model's time for a launch. A program's time is the sum over its launches, and of the bytes
// that its other operations move. `options` has the lengths. Raises Error(usage), with the reason,
// if the member cannot be compiled or does not take such lengths.
schedules::Estimate estimate(const LibraryKernel& kernel, const FamilyMember& member,
                             const OptionValues& options, int multiprocessors);
// The same for this device instead of the target's first one.
schedules::Estimate estimate(const LibraryKernel& kernel, const FamilyMember& member,
                             const OptionValues& options, const target::Device& device);

// Additions and multiplications of the products that its launches execute (schedules/model.h).
double product_flops(const LibraryKernel& kernel, const FamilyMember& member,
                     const OptionValues& options, int multiprocessors);

}  // namespace tilewright::library
