#include "compiler/compile_to_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "analysis/numbered_blocks.h"
#include "compiler/build.h"
#include "compiler/stopwatch.h"
#include "ir/schedule.h"
#include "ir/text.h"
#include "passes/allocate_shared.h"
#include "passes/check_accesses.h"
#include "passes/overlap_products.h"
#include "passes/pipeline.h"
#include "passes/watch_waits.h"
#include "schedules/schedule.h"
#include "support/counted.h"
#include "support/diagnostic.h"
#include "target/target.h"
#include "target/verify.h"

namespace tilewright::compiler {
namespace {

constexpr const char* kOverlap = "overlap_products";
constexpr const char* kJoin = "join_steps";
constexpr const char* kIssue = "issue_products";
constexpr const char* kChecks = "check_accesses";
constexpr std::int64_t kLeastReserved = 1024;  // bytes, so that few schedules are made

void check_target(const ir::Kernel& kernel, std::string_view target) {
  if (kernel.form == ir::Form::tile || target::takes_kernels(target, kernel.target)) return;
  Diagnostic(kernel.where, fmt::format("kernel {} is written for {}, and is compiled for {}",
                                       kernel.name, kernel.target, target))
      .fix(fmt::format("compile it for {}, or write it at the tile level, which has no target",
                       kernel.target))
      .raise();
}

// Only the tile level leaves anything to say.
void check_schedule(const ir::Kernel& kernel, const MachineOptions& options) {
  if (kernel.form == ir::Form::tile) return;
  for (const ir::StatedField& field :
       ir::stated_fields(ir::merged(options.schedule, kernel.schedule))) {
    Diagnostic(field.where,
               fmt::format("schedule: {} = {}: {} is written at the explicit level, which says "
                           "itself how it is compiled",
                           field.name, field.value, kernel.name))
        .token(field.name)
        .fix("state it with the tile-level kernel (in the library: schedule=tile), or leave it out")
        .raise();
  }
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
      : traced_(traced),
        target_(target),
        options_(options),
        observer_(observer),
        schedule_(ir::merged(options.schedule, traced.schedule)) {
    ir::check_ranges(schedule_);
    rewrites_.allowed = options.numerics;
    rewrites_.overlap_products = options.overlap_products && schedule_.overlap.value_or(true);
    rewrites_.convert_layouts = options.taken_up || is_tile();
    rewrites_.check_accesses = options.checked;
  }

  ir::Kernel prepared() {
    ir::Kernel kernel = traced_;
    if (is_tile()) kernel.schedule = schedule_;
    if (!options_.taken_up) passes::prepare_for_schedule(kernel, target_, record_, rewrites_);
    return kernel;
  }

  MachineForm run() {
    MachineForm form;
    if (is_tile()) {
      const ir::Kernel tile = prepared();
      if (!options_.taken_up) check_overlap();
      if (rewrites_.overlap_products && target_overlaps()) note_sums_in_turn(tile);
      form.kernel = of_joined_steps(tile);
      fields_.push_back(schedules::chosen("overlap", schedule_.overlap, overlap_text()));
      form.schedule = std::move(fields_);
    } else {
      form.kernel = traced_;
      form.kernel.target = target_;
      passes::lower_to_machine(form.kernel, record_, rewrites_);
    }
    form.applied = std::move(rewrites_.applied);
    if (const int loops = overlapped(form.applied)) {
      decisions_.push_back({kOverlap, "products of " + counted(loops, "loop") +
                                          " in flight while what others read is computed"});
      if (!schedule_.overlap.is_set()) {
        form.otherwise = options_;
        form.otherwise->overlap_products = false;
      }
    }
    if (options_.checked) decisions_.push_back(checked(form.applied[kChecks]));
    if (options_.watched) passes::watch_waits(form.kernel);
    form.checked = options_.checked || options_.watched;
    form.decisions = std::move(decisions_);
    return form;
  }

 private:
  bool is_tile() const { return traced_.form == ir::Form::tile; }

  // Whether the pass is on a kernel's way there.
  bool target_overlaps() const {
    const auto& passes = target::find_target(target_).preparation;
    return std::find(passes.begin(), passes.end(), kOverlap) != passes.end();
  }

  // How many loops have products in flight for which other work was moved.
  static int overlapped(const std::map<std::string, int>& applied) {
    int loops = 0;
    for (const char* pass : {kOverlap, kIssue}) {
      const auto at = applied.find(pass);
      if (at != applied.end()) loops = std::max(loops, at->second);
    }
    return loops;
  }

  std::string overlap_text() const {
    return overlapped(rewrites_.applied) ? "true"
           : rewrites_.overlap_products  ? "none: no loop has products for it"
                                         : "false";
  }

  // Where products do not run beside each other although the pass looks for such. What peel_masks
  // has doubled is said once.
  void note_sums_in_turn(const ir::Kernel& tile) {
    std::set<std::string> said;
    for (const passes::SumInTurn& sum : passes::sums_in_turn(tile)) {
      const std::string what = fmt::format("{}: the sum at {} waits for its operands", kOverlap,
                                           format_location(sum.where));
      if (said.insert(what + sum.why).second) decisions_.push_back({what, sum.why});
    }
  }

  // Stages of several steps take room that a kernel may not have, or registers.
  ir::Kernel of_joined_steps(const ir::Kernel& tile) {
    const std::vector<Decision> decisions = decisions_;
    note_numbered_blocks(tile);
    if (rewrites_.applied[kJoin] == 0) return scheduled_and_lowered(tile);
    try {
      return scheduled_and_lowered(tile);
    } catch (const Error& error) {
      decisions_ = decisions;
      rewrites_.join_copies = false;
      rewrites_.applied.clear();
      ir::Kernel kernel = scheduled_and_lowered(prepared());
      decisions_.push_back({"tiers: each step loads its blocks by itself",
                            "joined steps do not fit: " + error.message()});
      return kernel;
    }
  }

  // How many steps of a loop load blocks together, as tiers of pages do.
  void note_numbered_blocks(const ir::Kernel& tile) {
    std::set<std::string> said;
    for (const analysis::NumberedBlock& each : analysis::numbered_blocks(tile)) {
      const bool joined = each.together > 1;
      const std::string steps = joined ? fmt::format("{} steps", each.together) : "a step";
      const std::string what =
          fmt::format("tiers: {} of the loop at {} ", steps, format_location(each.loop)) +
          (joined ? fmt::format("load one stage of {}", each.tensor)
                  : fmt::format("loads one block of {} by itself", each.tensor));
      if (!said.insert(what).second) continue;
      decisions_.push_back(
          {what, joined ? "its blocks are summed one behind the other, as by a step each: the bits "
                          "are the same"
                        : fmt::format("its place is the number that {} loads, and {}",
                                      format_location(each.number), each.alone)});
    }
  }

  // How many loops the pass would change if it were left to the compiler. It is stated as false,
  // which the passes take for not stated.
  int could_overlap() const {
    passes::Rewrites rewrites;
    rewrites.allowed = options_.numerics;
    ir::Kernel kernel = traced_;
    kernel.schedule = schedule_;
    passes::prepare_for_schedule(kernel, target_, {}, rewrites);
    return overlapped(rewrites.applied);
  }

  void check_overlap() {
    const ScheduleField<bool>& stated = schedule_.overlap;
    if (!stated.is_set()) return;
    const std::string why = fmt::format(
        "no loop of {} sums products of what it computes from other products, or has products that "
        "can begin earlier than they are written",
        traced_.name);
    if (stated.value() && overlapped(rewrites_.applied) == 0) {
      schedules::refused("overlap", stated, why).fix("leave it out").raise();
    }
    if (!stated.value() && could_overlap() == 0) {
      decisions_.push_back({"schedule: overlap = false changes nothing",
                            why + ", or they have no registers for it", true});
    }
  }

  // What lies in shared memory beside the schedule's own tiles shows when layouts are assigned:
  // conversions, reductions over warps, padding. Where that finds no room, the schedule is made
  // again and leaves more to it, until it is left with one stage a ring.
  ir::Kernel scheduled_and_lowered(const ir::Kernel& prepared) {
    const std::int64_t most = target::find_target(target_).limits.shared_bytes;
    for (std::int64_t reserved = 0, step = kLeastReserved;; step *= 2) {
      try {
        return scheduled_and_lowered(prepared, reserved);
      } catch (const passes::SharedMemoryExceeded& exceeded) {
        if (reserved >= most) refuse_room(exceeded);
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
    schedules::Scheduled scheduled = schedules::schedule_for_target(prepared, reserved);
    fields_ = std::move(scheduled.fields);
    ir::Kernel kernel = std::move(scheduled.kernel);
    kernel.claims = traced_.claims;
    kernel.tile_grid = traced_.grid;
    record_("schedule", kernel, stopwatch.milliseconds(), true);
    passes::lower_to_machine(kernel, record_, rewrites_);
    check_share(kernel);
    return kernel;
  }

  // Of what a multiprocessor has, where the schedule states how many CTAs share it.
  void check_share(const ir::Kernel& kernel) const {
    const TargetLimits& limits = target::find_target(target_).limits;
    const std::int64_t share = limits.multiprocessor_shared_bytes / schedule_.ctas.value_or(1) -
                               limits.reserved_shared_bytes;
    if (kernel.shared_bytes <= share) return;
    const std::string message =
        fmt::format("\"{}\" needs {} bytes of shared memory, and its share is {}", kernel.name,
                    kernel.shared_bytes, share);
    std::vector<passes::SharedMemoryExceeded::Use> uses;
    for (const SharedUse& use : shared_use(kernel)) {
      uses.emplace_back(use.where, fmt::format("{} bytes: {}", use.bytes, use.name));
    }
    throw passes::SharedMemoryExceeded(Error(ErrorKind::usage, kernel.where, message, message), 0,
                                       kernel.shared_bytes - share, std::move(uses));
  }

  // No schedule leaves enough: the field that takes the room is at fault, where one is stated.
  [[noreturn]] void refuse_room(const passes::SharedMemoryExceeded& exceeded) const {
    const auto refuse = [&](const char* name, const ScheduleField<int>& field) {
      Diagnostic error = schedules::refused(name, field, exceeded.message());
      for (const auto& [where, use] : exceeded.uses) error.note(where, use);
      error.fix("state fewer, or take smaller blocks").raise();
    };
    if (schedule_.stages.value_or(1) > 1) refuse("stages", schedule_.stages);
    if (schedule_.ctas.value_or(1) > 1) refuse("ctas", schedule_.ctas);
    throw exceeded;
  }

  const ir::Kernel& traced_;
  const std::string_view target_;
  const MachineOptions& options_;
  const StageObserver& observer_;
  passes::Rewrites rewrites_;
  const Schedule schedule_;
  std::vector<Decision> decisions_;
  std::vector<schedules::ChosenField> fields_;
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
  check_schedule(kernel, options);
  if (kernel.form == ir::Form::machine) {
    target::verify(kernel);
    MachineForm form{kernel, {}, {}, {}, {}, options.checked || options.watched};
    if (options.watched) passes::watch_waits(form.kernel);
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
