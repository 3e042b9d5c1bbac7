#pragma once

#include <string>
#include <vector>

#include "compiler/target.h"
#include "schedules/model.h"
#include "tilewright/library.h"

namespace tilewright::library {

// Why a kernel is built as it is, and what the other ways would cost by the model.
struct ScheduleReport {
  struct Alternative {
    std::string name;
    schedules::Estimate estimate;
    double product_flops = 0;  // that it executes: also what it computes more than once
  };
  std::string chosen;
  std::string why;
  std::size_t variants = 0;  // that the rules choose among for other sizes
  std::string no_estimate;   // why the model says nothing of the chosen one; empty where it does
  schedules::Estimate estimate;           // of the chosen one, at the options' sizes
  double product_flops = 0;               // of it, as of the alternatives
  std::string untried;                    // the device, where nothing has run on one
  std::vector<Alternative> alternatives;  // the others, the fastest first
  std::size_t refused = 0;                // that cannot be built for these options
};

// `options` has the lengths that the costs are for. Nothing is compiled but the front end.
ScheduleReport report_schedule(const LibraryKernel& kernel, const OptionValues& options,
                               const compiler::Target& target);

// With the first alternatives.
std::string to_text(const ScheduleReport& report);

}  // namespace tilewright::library
