#include "compiler/compile_to_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "compiler/stopwatch.h"
#include "ir/text.h"
#include "passes/allocate_shared.h"
#include "passes/check_accesses.h"
#include "passes/pipeline.h"
#include "schedules/schedule.h"
#include "support/counted.h"
#include "support/diagnostic.h"
#include "target/target.h"
#include "target/verify.h"

namespace tilewright::compiler {
namespace {

constexpr const char* kOverlap = "overlap_products";
constexpr const char* kChecks = "check_accesses";
constexpr std::int64_t kLeastReserved = 1024;  // bytes, so that few schedules are made

void check_target(const ir::Kernel& kernel, std::string_view target) {
  if (kernel.form == ir::Form::tile || kernel.target == target) return;
  Diagnostic(kernel.where, fmt::format("kernel {} is written for {}, and is compiled for {}",
                                       kernel.name, kernel.target, target))
      .fix(fmt::format("compile it for {}, or write it at the tile level, which has no target",
                       kernel.target))
      .raise();
}

Decision checked(int checks) {
  return {kChecks, checks > 0 ? counted(checks, "check") +
                                    " of indices, blocks and ends while the kernel runs"
                              : "the launch decides no index, block or end that could be wrong"};
}

class Compilation {
 public:
  Compilation(const ir::Kernel& traced, std::string_view target, const MachineOptions& options,
              const StageObserver& observer)
      : traced_(traced), target_(target), options_(options), observer_(observer) {
    rewrites_.allowed = options.numerics;
    rewrites_.overlap_products = options.overlap_products;
    rewrites_.convert_layouts = options.taken_up || is_tile();
    rewrites_.check_accesses = options.checked;
  }

  ir::Kernel prepared() {
    ir::Kernel kernel = traced_;
    if (!options_.taken_up) passes::prepare_for_schedule(kernel, target_, record_, rewrites_);
    return kernel;
  }

  MachineForm run() {
    MachineForm form;
    if (is_tile()) {
      form.kernel = scheduled_and_lowered(prepared());
    } else {
      form.kernel = traced_;
      passes::lower_to_machine(form.kernel, record_, rewrites_);
    }
    form.applied = std::move(rewrites_.applied);
    const auto overlapped = form.applied.find(kOverlap);
    if (overlapped != form.applied.end() && overlapped->second > 0) {
      decisions_.push_back({kOverlap, counted(overlapped->second, "product") +
                                          " in flight while what others read is computed"});
      form.otherwise = options_;
      form.otherwise->overlap_products = false;
    }
    if (options_.checked) decisions_.push_back(checked(form.applied[kChecks]));
    form.checked = options_.checked;
    form.decisions = std::move(decisions_);
    return form;
  }

 private:
  bool is_tile() const { return traced_.form == ir::Form::tile; }

  // What lies in shared memory beside the schedule's own tiles shows when layouts are assigned:
  // conversions, reductions over warps, padding. Where that finds no room, the schedule is made
  // again and leaves more to it, until it is left with one stage a ring.
  ir::Kernel scheduled_and_lowered(const ir::Kernel& prepared) {
    const std::int64_t most = target::find_target(target_).limits.shared_bytes;
    for (std::int64_t reserved = 0, step = kLeastReserved;; step *= 2) {
      try {
        return scheduled_and_lowered(prepared, reserved);
      } catch (const passes::SharedMemoryExceeded& exceeded) {
        if (reserved >= most) throw;
        if (reserved > 0) decisions_.pop_back();
        const bool first = reserved == 0 && exceeded.conversions > 0;
        reserved = first ? exceeded.conversions
                         : std::min(most, reserved + std::max(exceeded.excess, step));
        decisions_.push_back(
            {"reserve shared memory",
             fmt::format("{} bytes, which {} found no room for beside the rings", reserved,
                         exceeded.conversions > 0 ? "conversions of layouts"
                                                  : "reductions and exchanges over warps")});
      }
    }
  }

  ir::Kernel scheduled_and_lowered(const ir::Kernel& prepared, std::int64_t reserved) {
    const Stopwatch stopwatch;
    ir::Kernel kernel = schedules::schedule_for_target(prepared, reserved);
    kernel.claims = traced_.claims;
    kernel.tile_grid = traced_.grid;
    record_("schedule", kernel, stopwatch.milliseconds(), true);
    passes::lower_to_machine(kernel, record_, rewrites_);
    return kernel;
  }

  const ir::Kernel& traced_;
  const std::string_view target_;
  const MachineOptions& options_;
  const StageObserver& observer_;
  passes::Rewrites rewrites_;
  std::vector<Decision> decisions_;
  std::set<std::string, std::less<>> of_tile_;  // passes
  const passes::PassObserver record_ = [this](std::string_view name, const ir::Kernel& after,
                                              double milliseconds, bool changed) {
    if (!observer_) return;
    // Some passes of the tile form are run again on the schedule that was made of it.
    const bool again = after.form != ir::Form::tile && of_tile_.count(name) != 0;
    if (after.form == ir::Form::tile) of_tile_.emplace(name);
    observer_({std::string(name) + (again ? "_scheduled" : ""), milliseconds, changed}, after);
  };
};

}  // namespace

MachineForm compile_to_machine(const ir::Kernel& kernel, std::string_view target,
                               const MachineOptions& options, const StageObserver& observer) {
  check_target(kernel, target);
  if (kernel.form == ir::Form::machine) {
    target::verify(kernel);
    MachineForm form{kernel, {}, {}, {}, options.checked};
    if (options.checked) {
      form.decisions.push_back(checked(passes::check_accesses(form.kernel)));
      ir::canonicalise(form.kernel);
      target::verify(form.kernel);
    }
    return form;
  }
  return Compilation(kernel, target, options, observer).run();
}

ir::Kernel prepare(const ir::Kernel& kernel, std::string_view target, const MachineOptions& options,
                   const StageObserver& observer) {
  return Compilation(kernel, target, options, observer).prepared();
}

std::vector<MachineForm> machine_forms(const ir::Kernel& kernel, std::string_view target,
                                       const MachineOptions& options) {
  std::vector<MachineForm> forms;
  std::optional<MachineOptions> next = options;
  while (next) {
    forms.push_back(compile_to_machine(kernel, target, *next));
    next = forms.back().otherwise;
  }
  return forms;
}

}  // namespace tilewright::compiler
