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
  // What the model reads, made when it first asks: it is the same for all lengths.
  struct Lowered {
    ir::Program program;  // of an entry that is one; else empty
    std::vector<ir::Kernel> machine;
  };
  mutable std::unique_ptr<const Lowered> lowered;
};

// Every schedule for the architecture and the tile-level definition, or the one that is set.
std::vector<FamilyMember> family_of(const LibraryKernel& kernel, const OptionValues& options,
                                    const std::string& arch);

// Of a program the sum over its launches; what else it queues takes its bytes through memory.
// `options` has the lengths. An Error(usage) that says why when the member cannot be compiled, or
// not for such lengths.
schedules::Estimate estimate(const LibraryKernel& kernel, const FamilyMember& member,
                             const OptionValues& options, int multiprocessors);
// The same on another device than the first of the target's.
schedules::Estimate estimate(const LibraryKernel& kernel, const FamilyMember& member,
                             const OptionValues& options, const target::Device& device);

// Additions and multiplications of the products that its launches execute (schedules/model.h).
double product_flops(const LibraryKernel& kernel, const FamilyMember& member,
                     const OptionValues& options, int multiprocessors);

}  // namespace tilewright::library
