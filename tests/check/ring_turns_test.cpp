#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "check/shrunken_sizes.h"
#include "common/pinned_registers.h"
#include "compiler/target.h"
#include "library/kernel_source.h"
#include "library/program_simulation.h"
#include "library/workload.h"
#include "simulator/machine/launch.h"
#include "simulator/machine/recorder.h"

// In the small sizes in which faults are looked for, each stage of every ring is filled three
// times.
namespace tilewright::checks {
namespace {

constexpr std::uint64_t kTurnsOfARing = 3;
// Multiprocessors where a program divides its work by their number.
constexpr std::int64_t kUsualMultiprocessors = 4;

// The mbarriers that a loop waits for. What waits once is no ring, such as CTAs that meet.
std::set<std::string> barriers_of_loops(const ir::Kernel& machine) {
  std::map<ir::ValueId, std::string> names;
  std::set<std::string> waited;
  const std::function<void(const ir::Block&, bool)> visit = [&](const ir::Block& block,
                                                                bool repeats) {
    for (const ir::Operation& operation : block.body) {
      if (operation.op == ir::Op::mbarriers) {
        names[operation.results[0]] = operation.attributes.text(ir::Key::name);
      }
      if (operation.op == ir::Op::mbarrier_wait && repeats) {
        waited.insert(names.at(operation.operands[0]));
      }
      const bool loops = operation.op == ir::Op::for_loop || operation.op == ir::Op::while_loop;
      for (const ir::Block& inner : operation.blocks) visit(inner, repeats || loops);
    }
  };
  visit(machine.body, false);
  return waited;
}

// How often each barrier of each kernel has completed at most.
class RingTurns : public simulator::Recorder {
 public:
  using Recorder::begin;
  void begin(const simulator::Launch& launch) override {
    const ir::Kernel& machine = *launch.kernel.source;
    const auto [rings, is_new] = rings_.try_emplace(&machine);
    if (is_new) rings->second = barriers_of_loops(machine);
    for (const simulator::BarrierArray& array : launch.kernel.barrier_arrays) {
      if (rings->second.count(array.name) == 0) continue;
      turns_[machine.name + "'s " + array.name].resize(static_cast<std::size_t>(array.count));
    }
  }
  void phase_completed(const simulator::Cta& cta, int barrier) override {
    const simulator::PreparedKernel& kernel = cta.cluster->launch->kernel;
    for (const simulator::BarrierArray& array : kernel.barrier_arrays) {
      const int stage = barrier - array.first;
      if (stage < 0 || stage >= array.count) continue;
      const auto ring = turns_.find(kernel.source->name + "'s " + array.name);
      if (ring == turns_.end()) return;
      std::uint64_t& most = ring->second[static_cast<std::size_t>(stage)];
      most = std::max(most, cta.barriers[static_cast<std::size_t>(barrier)].phase);
    }
  }
  // Of each ring that has not wrapped around so often: the turns of each stage.
  std::vector<std::string> short_of(std::uint64_t wanted) const {
    std::vector<std::string> rings;
    for (const auto& [name, turns] : turns_) {
      if (*std::min_element(turns.begin(), turns.end()) >= wanted) continue;
      rings.push_back(fmt::format("{}: {}", name, fmt::join(turns, " ")));
    }
    return rings;
  }

 private:
  std::map<const ir::Kernel*, std::set<std::string>> rings_;
  std::map<std::string, std::vector<std::uint64_t>> turns_;
};

// One explicit schedule of an entry, in its shrunken sizes.
class SizedSchedule {
 public:
  SizedSchedule(const LibraryKernel& entry, const LibrarySchedule& schedule)
      : entry_(entry), source_(entry), target_(compiler::parse_target(schedule.target)) {
    settings_ = {"schedule=" + schedule.name};
    build();
    // What is no length, such as the number of heads, is the same in all sizes.
    std::vector<std::string> fixed = settings_;
    const std::vector<std::vector<std::string>> usual = sizes(Sizes::usual);
    for (const std::string& size : usual.front()) {
      const std::string name = size.substr(0, size.find('='));
      const auto option = std::find_if(entry.options.begin(), entry.options.end(),
                                       [&](const KernelOption& each) { return each.name == name; });
      if (!option->is_length) fixed.push_back(size);
    }
    if (fixed.size() == settings_.size()) return;
    settings_ = fixed;
    build();
  }
  const std::vector<ir::Kernel>& machine() const { return machine_; }
  // Runs size after size until every ring has wrapped around so often.
  std::vector<std::string> rings_short_of(std::uint64_t wanted) {
    RingTurns turns;
    for (const Sizes which : {Sizes::usual, Sizes::further}) {
      for (const std::vector<std::string>& each : sizes(which)) {
        run(each, which == Sizes::further, turns);
        if (turns.short_of(wanted).empty()) return {};
      }
    }
    return turns.short_of(wanted);
  }

 private:
  void build() {
    options_ = resolve_options(entry_, settings_);
    if (entry_.is_program()) {
      recorded_ = source_.program(options_, target_);
      machine_ = library::machine_forms(recorded_, target_.arch).front();
    } else {
      machine_ = {
          compiler::compile_to_machine(source_.traced(options_, target_), target_.arch).kernel};
    }
  }
  std::vector<std::vector<std::string>> sizes(Sizes which) const {
    if (!entry_.is_program()) {
      return shrunken_sizes(entry_, settings_, options_, machine_.front(), which);
    }
    return shrunken_sizes(entry_, settings_, options_, sized_kernels(entry_, recorded_, machine_),
                          which);
  }
  void run(const std::vector<std::string>& sizes, bool further, RingTurns& turns) const {
    std::vector<std::string> settings = settings_;
    settings.insert(settings.end(), sizes.begin(), sizes.end());
    library::ProgramWorkload made;
    made.workload = library::make_workload(entry_, settings, {}, 0, library::Drawn::zeros);
    simulator::MachineOptions options;
    options.control_only = true;
    options.check_order = false;
    options.recorder = &turns;
    if (!entry_.is_program()) {
      options.multiprocessors = shrunken_multiprocessors(machine_.front(), further);
      simulator::run_machine(machine_.front(), made.workload.arguments(), options);
      return;
    }
    std::vector<std::int64_t> counts =
        shrunken_multiprocessors(recorded_, machine_, kUsualMultiprocessors);
    if (further) counts.resize(1);
    for (const std::int64_t count : counts) {
      options.multiprocessors = options.resident = count;
      made.program = library::bind_workload(recorded_, made.workload, count);
      library::simulate_program(made.program, machine_, made.before(), nullptr, options, 1);
    }
  }

  const LibraryKernel& entry_;
  const library::KernelSource source_;
  const compiler::Target target_;
  std::vector<std::string> settings_;
  OptionValues options_;
  ir::Program recorded_;
  std::vector<ir::Kernel> machine_;
};

bool is_simulated(const LibrarySchedule& schedule) {
  return compiler::parse_target(schedule.target).kind == compiler::Target::Kind::architecture;
}

class RingTurnsTest : public testing::TestWithParam<std::string> {};

std::vector<std::string> entries_with_schedules() {
  std::vector<std::string> names;
  for (const LibraryKernel& entry : kernel_library()) {
    const bool is_explicit =
        std::any_of(entry.schedules.begin(), entry.schedules.end(),
                    [](const LibrarySchedule& schedule) { return is_simulated(schedule); });
    if (is_explicit) names.push_back(entry.name);
  }
  return names;
}

TEST_P(RingTurnsTest, EveryRingWrapsThreeTimes) {
  const LibraryKernel& entry = find_kernel(GetParam());
  std::set<std::string> seen;  // targets, of gradients
  for (const LibrarySchedule& schedule : entry.schedules) {
    if (!is_simulated(schedule)) continue;
    // Gradients take seconds to compile and have the same rings in each schedule of a target.
    if (!entry.backward_of.empty() && !seen.insert(schedule.target).second) continue;
    SCOPED_TRACE("schedule=" + schedule.name);
    SizedSchedule sized(entry, schedule);
    EXPECT_THAT(sized.rings_short_of(kTurnsOfARing), testing::IsEmpty());
    for (const ir::Kernel& machine : sized.machine()) {
      EXPECT_THAT(test::unpinned_registers(machine), testing::IsEmpty()) << machine.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Library, RingTurnsTest, testing::ValuesIn(entries_with_schedules()),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace tilewright::checks
