#include "simulator/machine/launch_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "simulator/machine/cycle_costs.h"
#include "simulator/machine/world.h"
#include "support/diagnostic.h"
#include "support/same_line.h"
#include "target/devices.h"

namespace tilewright::simulator {
namespace {

using Kind = TraceSlice::Kind;

std::string name_of(const PreparedKernel& kernel, const Instruction& instruction) {
  if (instruction.code == Code::function) return "scalars";
  const bool computes = instruction.op == ir::Op::compute;
  const ir::Op what = computes ? kernel.computes[instruction.detail].function : instruction.op;
  return std::string(ir::info(what).name);
}

// "mul, fma, exp2": each once, while they are few.
std::string joined(const std::string& names, const std::string& name) {
  constexpr std::size_t kLongest = 40;
  if ((", " + names + ",").find(", " + name + ",") != std::string::npos) return names;
  if (names.size() + name.size() < kLongest) return names + ", " + name;
  return names.size() > 3 && names.substr(names.size() - 3) == "..." ? names : names + ", ...";
}

}  // namespace

int TraceContext::text(const std::string& words) {
  if (words.empty()) return 0;
  const auto [entry, is_new] = numbers_.emplace(words, static_cast<int>(trace.texts.size()));
  if (is_new) trace.texts.push_back(words);
  return entry->second;
}

LaunchTrace::LaunchTrace(TraceContext& context, const Launch& launch, std::int64_t start)
    : context_(context),
      trace_(context.trace),
      launch_(&launch),
      number_(static_cast<int>(context.trace.launches.size())),
      start_(start),
      end_(start) {
  const PreparedKernel& kernel = launch.kernel;
  TraceLaunch& own = trace_.launches.emplace_back();
  own.name = launch.place.name;
  own.rank = launch.place.rank;
  own.product_unit = kernel.target
                         ->unit_of(kernel.tensor_products.empty() ? ir::Family::product
                                                                  : ir::Family::tensor_product)
                         .name;
  own.copy_unit = kernel.target->unit_of(ir::Family::bulk_copy).name;
  for (const Role& role : kernel.roles) own.roles.push_back(role.name);
  for (const BarrierArray& array : kernel.barrier_arrays) {
    for (int i = 0; i < array.count; ++i) {
      own.barriers.push_back(
          {launch.barrier_name(array.first + i), static_cast<int>(own.barrier_arrays.size())});
    }
    own.barrier_arrays.push_back(array.name);
  }
  for (int pc = 0; pc < static_cast<int>(kernel.code.size()); ++pc) {
    const Instruction& instruction = kernel.code[pc];
    const bool jumps = instruction.code == Code::jump || instruction.code == Code::loop_next;
    if (jumps && instruction.target <= pc) loops_.push_back({instruction.target, pc});
  }
  // Outer loops first.
  std::sort(loops_.begin(), loops_.end(), [](const Loop& a, const Loop& b) {
    return a.first != b.first ? a.first < b.first : a.last > b.last;
  });
}

LaunchTrace::CtaState& LaunchTrace::state_of(const Cta& cta) {
  std::unique_ptr<CtaState>& state = ctas_[cta.index];
  if (state) return *state;
  state = std::make_unique<CtaState>();
  state->trace = trace_.ctas.size();
  TraceCta& trace = trace_.ctas.emplace_back();
  trace.launch = number_;
  trace.index = cta.index;
  trace.start = trace.end = start_time(cta);
  const PreparedKernel& kernel = launch_->kernel;
  trace.lanes.resize(kernel.warps);
  state->warps.resize(kernel.warps);
  state->barriers.resize(kernel.barriers);
  for (int i = 0; i < kernel.warps; ++i) {
    const int role = kernel.role_of_warp[i];
    trace.lanes[i] = {role, i, i - kernel.roles[role].first_warp, {}};
    WarpState& warp = state->warps[i];
    warp.cta = state->trace;
    warp.index = i;
    warp.clock = trace.start;
    warp.iterations.assign(loops_.size(), 0);
  }
  return *state;
}

// One CTA a multiprocessor; a cluster starts as a whole.
std::int64_t LaunchTrace::start_time(const Cta& cta) {
  const std::int64_t size = launch_->kernel.cluster;
  const auto [start, is_new] = cluster_starts_.emplace(cta.index / size, start_);
  if (!is_new) return start->second;
  const auto started = static_cast<std::int64_t>(cluster_starts_.size());
  const target::Device& device = target::device_of(launch_->kernel.target->name);
  if (started * size > device.multiprocessors && !free_from_.empty()) {
    start->second = free_from_.begin()->first;
    free_from_.erase(free_from_.begin());
  }
  return start->second;
}

// "2.5": the third time through the outer loop, the sixth through the inner one.
int LaunchTrace::iteration_text(const WarpState& warp, int pc) {
  std::string words;
  for (std::size_t i = 0; i < loops_.size(); ++i) {
    if (pc < loops_[i].first || pc > loops_[i].last) continue;
    words += (words.empty() ? "" : ".") + std::to_string(warp.iterations[i]);
  }
  return text([&] { return words; });
}

void LaunchTrace::count_iterations(WarpState& warp, const Instruction& instruction) {
  const int pc = static_cast<int>(&instruction - launch_->kernel.code.data());
  for (std::size_t i = 0; i < loops_.size(); ++i) {
    if (loops_[i].last == pc) {
      ++warp.iterations[i];
      ++warp.jumps_back;
    } else if (loops_[i].first >= instruction.target && loops_[i].last < pc) {
      warp.iterations[i] = 0;
    }
  }
}

void LaunchTrace::starts(const Warp& warp, const Instruction& instruction) {
  current_warp_ = &warp;
  current_ = &instruction;
  state_of(*warp.cta);
}

void LaunchTrace::executed(const Warp& warp, const Instruction& instruction) {
  current_ = nullptr;
  WarpState& state = state_of(warp);
  const bool retries = launch_->looks_again(warp, instruction) || warp.state == Warp::State::pool ||
                       warp.state == Warp::State::columns || warp.state == Warp::State::word;
  state.waiting =
      warp.state == Warp::State::runnable || warp.state == Warp::State::ended ? nullptr : &warp;
  if (!retries) step(warp, state, instruction);
}

void LaunchTrace::slice(WarpState& warp, TraceSlice::Kind kind, const Instruction& instruction,
                        int name, int detail, std::int64_t cycles) {
  const std::int64_t start = warp.clock;
  warp.clock += cycles;
  ends_at(warp.clock);
  if (!context_.draws) return;
  const int pc = static_cast<int>(&instruction - launch_->kernel.code.data());
  TraceSlice made;
  made.kind = kind;
  made.start = start;
  made.end = warp.clock;
  made.name = name;
  made.detail = detail;
  made.iteration = iteration_text(warp, pc);
  made.where = instruction.where();
  warp.slice_jumps_back = warp.jumps_back;
  trace_of(warp).lanes[warp.index].slices.push_back(made);
}

// As part of the slice before, where that is of the same kind, line and iteration.
void LaunchTrace::merge(WarpState& warp, TraceSlice::Kind kind, const Instruction& instruction,
                        int detail) {
  merge(warp, kind, instruction, detail, issue_cycles(launch_->kernel, instruction));
}

void LaunchTrace::merge(WarpState& warp, TraceSlice::Kind kind, const Instruction& instruction,
                        int detail, std::int64_t cycles) {
  if (cycles == 0) return;
  if (!context_.draws) return slice(warp, kind, instruction, 0, 0, cycles);
  const int name = text([&] { return name_of(launch_->kernel, instruction); });
  std::vector<TraceSlice>& slices = trace_of(warp).lanes[warp.index].slices;
  if (slices.empty() || slices.back().kind != kind || slices.back().end != warp.clock ||
      !same_line(slices.back().where, instruction.where()) ||
      warp.slice_jumps_back != warp.jumps_back) {
    slice(warp, kind, instruction, name, detail, cycles);
    return;
  }
  TraceSlice& last = slices.back();
  last.name = text([&] { return joined(trace_.texts[last.name], trace_.texts[name]); });
  last.end = warp.clock += cycles;
  ends_at(warp.clock);
  ++last.count;
}

// Draws a wait where the signal comes later than the warp.
void LaunchTrace::wait_until(WarpState& warp, const Instruction& instruction, int name,
                             const TraceSignal& signal) {
  if (signal.time <= warp.clock) return;
  slice(warp, Kind::wait, instruction, name, signal.cause, signal.time - warp.clock);
}

void LaunchTrace::step(const Warp& warp, WarpState& state, const Instruction& instruction) {
  switch (instruction.code) {
    case Code::end:
      if (warp.cta->live == 0) end_cta(*warp.cta);
      return;
    case Code::jump:
    case Code::loop_next:
      merge(state, Kind::compute, instruction, 0);
      return count_iterations(state, instruction);
    case Code::mbarrier:
      return step_mbarrier(warp, state, instruction);
    case Code::named_barrier:
    case Code::cta_barrier: {
      const std::int64_t number = instruction.detail + warp.integer(instruction.a);
      if (number < 0 || number > 15) return;
      return join(state_of(*warp.cta).named[number], state, instruction, instruction.value / 32,
                  [&] { return fmt::format("named barrier {}", number); });
    }
    case Code::cluster_barrier:
      return join(cluster_meetings_[warp.cta->cluster], state, instruction,
                  static_cast<std::int64_t>(warp.cta->cluster->ctas.size()) * launch_->kernel.warps,
                  [] { return std::string("the cluster's barrier"); });
    case Code::register_budget:
      return change_registers(warp, state, instruction);
    case Code::word_wait:
      return pass_word(warp, state, instruction);
    case Code::product:
      return issue_product(warp, state, instruction);
    case Code::group_wait:
      return wait_for_groups(warp, state, instruction);
    case Code::bulk_copy:
      return issue_copy(warp, state, instruction);
    case Code::tensor_product:
      return issue_tensor_product(warp, state, instruction);
    case Code::tensor_commit:
      merge(state, Kind::issue, instruction, 0);
      for (int i = 0; i < std::max(std::popcount(static_cast<std::uint64_t>(instruction.value)), 1);
           ++i) {
        state.commits.push_back({&instruction, tensor_work_end(warp)});  // one arrival each
      }
      return;
    case Code::commit:
      return merge(state, Kind::issue, instruction, 0);
    case Code::fence:
      return merge(state, Kind::barrier, instruction, 0,
                   fence_cycles(state_of(*warp.cta), state, instruction));
    case Code::lane_order:
    case Code::product_fence:
    case Code::tensor_allocation:
    case Code::tensor_wait:
    case Code::tensor_fence:
      return merge(state, Kind::barrier, instruction, 0);
    case Code::global_access:
      return merge(state, Kind::memory, instruction, 0,
                   access_cycles(warp, state_of(*warp.cta), state, instruction));
    case Code::word:
      return merge(state, Kind::memory, instruction, 0,
                   word_cycles(warp, state_of(*warp.cta), state, instruction));
    case Code::matrix_access:
    case Code::element_access:
    case Code::fragment_access:
    case Code::shared_word:
    case Code::tensor_access:
    case Code::tensor_copy:
    case Code::launch_control:
      return merge(state, Kind::memory, instruction, 0);
    case Code::move:
    case Code::loop_test:
    case Code::branch_unless:
    case Code::parted:
    case Code::enter_role:
    case Code::leave_role:
    case Code::function:
    case Code::array:
    case Code::computation:
    case Code::check:
      return merge(state, Kind::compute, instruction, 0);
  }
}

void LaunchTrace::step_mbarrier(const Warp& warp, WarpState& state,
                                const Instruction& instruction) {
  switch (ir::as<ir::MbarrierOp>(instruction.op)) {
    case ir::MbarrierOp::mbarrier_init:
      return merge(state, Kind::compute, instruction, 0);
    case ir::MbarrierOp::mbarrier_wait:
      return pass_mbarrier(warp, state, instruction);
    case ir::MbarrierOp::mbarrier_expect_tx:
    case ir::MbarrierOp::mbarrier_arrive: {
      const int barrier = barrier_of(warp, instruction);
      slice(state, Kind::barrier, instruction,
            text([&] { return name_of(launch_->kernel, instruction); }),
            text([&] { return barrier < 0 ? "no barrier" : launch_->barrier_name(barrier); }),
            issue_cycles(launch_->kernel, instruction));
      return;
    }
  }
}

int LaunchTrace::barrier_of(const Warp& warp, const Instruction& instruction) const {
  const BarrierArray& array = launch_->kernel.barrier_arrays[instruction.object];
  const std::int64_t index = warp.integer(instruction.a);
  return index >= 0 && index < array.count ? array.first + static_cast<int>(index) : -1;
}

void LaunchTrace::pass_mbarrier(const Warp& warp, WarpState& state,
                                const Instruction& instruction) {
  const int barrier = barrier_of(warp, instruction);
  if (barrier < 0) return;
  const BarrierState& signals = state_of(*warp.cta).barriers[barrier];
  const std::int64_t phase = signals.phases - 1;
  const auto name = [&] { return launch_->barrier_name(barrier); };
  if (phase >= 0) {
    wait_until(state, instruction,
               text([&] { return fmt::format("waits for {} phase {}", name(), phase); }),
               signals.last);
  }
  slice(state, Kind::barrier, instruction, text([&] { return "mbarrier_wait"; }), text([&] {
          return fmt::format("{} {}", name(),
                             phase < 0 ? "no phase yet" : fmt::format("phase {}", phase));
        }),
        issue_cycles(launch_->kernel, instruction));
}

// The write that the wait saw, or one before it.
void LaunchTrace::pass_word(const Warp& warp, WarpState& state, const Instruction& instruction) {
  const auto name = [&] {
    return launch_->world.memory.describe(warp.word.word, sizeof(std::int32_t));
  };
  if (const auto found = context_.words.find(warp.word.word); found != context_.words.end()) {
    wait_until(state, instruction, text([&] { return "waits for " + name(); }), found->second);
  }
  slice(state, Kind::barrier, instruction, text([&] { return "wait_flag"; }), text(name),
        issue_cycles(launch_->kernel, instruction));
}

void LaunchTrace::changed(const std::byte* first, std::int64_t bytes) {
  if (current_ == nullptr || current_->code != Code::word || bytes != sizeof(std::int32_t)) return;
  const CtaState& cta = state_of(*current_warp_->cta);
  const WarpState& state = state_of(*current_warp_);
  const std::int64_t written = state.clock + word_cycles(*current_warp_, cta, state, *current_);
  const bool travels = peer_with(first) >= 0;
  const target::Link& link = context_.links.link();
  context_.words[first].add({written + (travels ? context_.links.cycles(link.word) : 0), text([&] {
                               return fmt::format(
                                   "{}{} writes it ({})", who(trace_of(state), state.index),
                                   launch_->place.label, format_location(current_->where()));
                             })});
}

void LaunchTrace::join(Meeting& meeting, WarpState& state, const Instruction& instruction,
                       std::int64_t wanted, const std::function<std::string()>& name) {
  ++meeting.arrived;
  meeting.last.add({state.clock, text([&] {
                      return fmt::format("{} comes last ({})", who(trace_of(state), state.index),
                                         format_location(instruction.where()));
                    })});
  const bool waits = instruction.op != ir::Op::named_arrive;
  if (waits) meeting.waiting.push_back({&state, &instruction});
  if (!waits) merge(state, Kind::barrier, instruction, text(name));
  if (meeting.arrived < wanted) return;
  const Meeting complete = std::exchange(meeting, {});
  for (const Arrival& arrival : complete.waiting) {
    wait_until(*arrival.warp, *arrival.instruction, text([&] { return "waits at " + name(); }),
               complete.last);
    slice(*arrival.warp, Kind::barrier, *arrival.instruction,
          text([&] { return name_of(launch_->kernel, *arrival.instruction); }), text(name),
          issue_cycles(launch_->kernel, *arrival.instruction));
  }
}

// The pool has what decreases gave back.
void LaunchTrace::change_registers(const Warp& warp, WarpState& state,
                                   const Instruction& instruction) {
  TraceSignal& pool = state_of(*warp.cta).pool;
  if (instruction.detail != 0) {
    wait_until(state, instruction, text([&] {
                 return fmt::format("waits for {} registers a thread", instruction.value);
               }),
               pool);
  } else {
    pool.add({state.clock,
              text([&] { return who(trace_of(state), state.index) + " gives registers back"; })});
  }
  merge(state, Kind::barrier, instruction,
        text([&] { return fmt::format("{} a thread", instruction.value); }));
}

void LaunchTrace::arrived(const Warp& warp, const Cta& cta, int barrier) {
  WarpState& state = state_of(warp);
  // Between instructions it is a commit that arrives, each in its turn.
  Commit arrival{current_, state.clock};
  if (!current_ && !state.commits.empty()) {
    arrival = state.commits.front();
    state.commits.pop_front();
  }
  state_of(cta).barriers[barrier].now.add(
      {arrival.end, text([&] {
         return fmt::format("{} {} ({})", who(trace_of(state), state.index),
                            current_ ? "arrives" : "has committed",
                            format_location(arrival.instruction ? arrival.instruction->where()
                                                                : SourceLocation{}));
       })});
}

void LaunchTrace::phase_completed(const Cta& cta, int barrier) {
  CtaState& state = state_of(cta);
  BarrierState& signals = state.barriers[barrier];
  signals.last = signals.now;
  const auto phase = static_cast<std::uint64_t>(signals.phases++);
  if (!context_.draws) return;
  trace_.ctas[state.trace].flips.push_back({signals.now.time, barrier, phase, signals.now.cause});
}

void LaunchTrace::end_cta(const Cta& cta) {
  CtaState& state = state_of(cta);
  TraceCta& trace = trace_.ctas[state.trace];
  for (const WarpState& warp : state.warps) trace.end = std::max(trace.end, warp.clock);
  for (TraceFlight& flight : trace.flights) {
    if (flight.kind == TraceFlight::Kind::store) flight.complete = true;
  }
  if (cta.cluster->live == 0) {
    free_from_.emplace(trace.end, cta.index);
    cluster_meetings_.erase(cta.cluster);
  }
}

std::string LaunchTrace::who(const TraceCta& cta, int warp) const {
  return fmt::format("{} warp {}", trace_.launches[number_].roles[cta.lanes[warp].role],
                     cta.lanes[warp].number);
}

void LaunchTrace::finish_cut_short() {
  if (current_ == nullptr || current_->operation == nullptr) return;
  WarpState& warp = state_of(*current_warp_);
  cut_short_ = TraceMark{warp.cta, warp.index, -1, -1, warp.clock, current_->where()};
  slice(warp, Kind::issue, *current_, text([&] { return name_of(launch_->kernel, *current_); }), 0,
        std::max<std::int64_t>(issue_cycles(launch_->kernel, *current_), 1));
}

void LaunchTrace::end_open_waits(std::int64_t end) {
  for (const auto& [index, cta] : ctas_) {
    for (WarpState& warp : cta->warps) {
      if (warp.waiting == nullptr) continue;
      const Instruction& instruction = *warp.waiting->waits_at;
      const int barrier =
          instruction.op == ir::Op::mbarrier_wait ? barrier_of(*warp.waiting, instruction) : -1;
      const std::string what =
          barrier >= 0 ? fmt::format("waits for {} phase {}", launch_->barrier_name(barrier),
                                     cta->barriers[barrier].phases)
          : warp.waiting->state == Warp::State::word
              ? "waits for " + launch_->world.wait_text(warp.waiting->word)
              : "waits at " + name_of(launch_->kernel, instruction);
      slice(warp, Kind::wait, instruction, text([&] { return what; }),
            text([&] { return "which did not come"; }), end - warp.clock);
    }
  }
}

}  // namespace tilewright::simulator
