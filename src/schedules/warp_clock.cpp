#include "schedules/warp_clock.h"

#include <algorithm>
#include <utility>

namespace tilewright::schedules {

using ir::Key;
using ir::Op;
using ir::Operation;
using ir::ValueId;

WarpClock::WarpClock(const ir::Kernel& kernel, const target::Device& device, CtaTimeline& total)
    : kernel_(kernel),
      limits_(target::target_of(kernel).limits),
      rates_(target::target_of(kernel).rates),
      reached_(device.reached),
      total_(total) {}

// Before the first tile's turns nobody is out of step: at its start, and before its first turn.
constexpr std::size_t kInStep = 2;

double WarpClock::now() const { return std::max(own_.now, own_.free); }

double WarpClock::pauses() const {
  const Pause last = {std::max(0.0, own_.now - own_.free), 0};
  double sum = own_.pauses + (own_.free > 0 ? last.cycles : 0);
  for (std::size_t i = 0; i < outside_.size(); ++i) {
    sum += i < kInStep ? outside_[i].cycles : shown(outside_[i]);
  }
  return sum;
}

// Warpgroups that compute between products come out of step: one computes while the others
// multiply. Each then finds the units that compute free, and of the time that it needs the others'
// products of a turn hide as much as they take.
double WarpClock::shown(const Pause& pause) const {
  if (turn_computes_ == 0 || groups_ == 1 || turn_meets_) return pause.cycles;
  const double latency = std::min(pause.exposed, pause.cycles);
  const double own = latency + (pause.cycles - latency) / groups_;
  return std::max(0.0, own - turn_multiplies_ * (groups_ - 1) / groups_);
}

void WarpClock::set_warps(std::int64_t warps) {
  groups_ = static_cast<double>(std::max<std::int64_t>(1, warps / limits_.group_warps));
  share_ = static_cast<double>(std::min(warps, limits_.group_warps)) /
           static_cast<double>(limits_.group_warps);
}

void WarpClock::wait(double cycles) {
  own_.now += cycles;
  own_.exposed += cycles;
}

void WarpClock::scalar_step() {
  spend(0.5 * rates_.issue_integer);  // for the most part in the uniform pipe, beside the others
  own_.exposed += reached_.scalar_latency;
}

void WarpClock::issue() {
  spend(rates_.issue_integer);
  own_.exposed += rates_.issue_asynchronous;
}

void WarpClock::pass_shared(double bytes_of_warp) {
  const double cycles = limits_.group_warps * bytes_of_warp / rates_.shared_bytes;
  total_.shared += scheduled() * cycles;
  spend(cycles);
}

WarpClock::UnitCycles WarpClock::cycles_of(Op function, ValueId destination) const {
  const auto plain = static_cast<double>(rates_.issue_float);
  const auto special = static_cast<double>(rates_.issue_special);
  switch (ir::info(function).pipe) {
    case ir::Pipe::arithmetic:
      return {is_float(kernel_.type(destination).dtype) ? plain
                                                        : static_cast<double>(rates_.issue_integer),
              0};
    case ir::Pipe::special:
      return {0, special};
    case ir::Pipe::reduced_special:
      return {4 * plain, special};
    case ir::Pipe::polynomial:
      return {16 * plain, special};
    case ir::Pipe::split_exponent:
      return {8 * plain + 3 * static_cast<double>(rates_.issue_integer), 0};
    case ir::Pipe::conversion:  // two elements an instruction at half the rate
      return {plain, 0};
    case ir::Pipe::integer:
      break;
  }
  return {static_cast<double>(rates_.issue_integer), 0};
}

void WarpClock::calculate(double cycles) {
  use(&CtaTimeline::arithmetic, cycles);
  spend(cycles);
}

void WarpClock::apply(Op function, double count, ValueId destination) {
  const UnitCycles each = cycles_of(function, destination);
  calculate(count * each.arithmetic);
  use(&CtaTimeline::special, count * each.special);
  spend(count * each.special);
}

void WarpClock::access_tensor_memory(const Operation& operation) {
  const auto columns = static_cast<double>(operation.attributes.integer(Key::count));
  const double cycles = columns * limits_.tensor_lanes * 4 / reached_.tensor_bytes;
  total_.tensor_memory += scheduled() * cycles;
  spend(cycles);
}

void WarpClock::product(const Operation& operation) {
  const bool a_is_shared = operation.op == Op::wgmma_ss || operation.op == Op::tcgen05_mma_ss;
  const ValueId b = operation.operands[operation.operands.size() - 3];  // offset, accumulate
  const double n = static_cast<double>(operation.attributes.integer(Key::n));
  const double k = static_cast<double>(operation.attributes.integer(Key::k));
  const double size = size_of(kernel_.type(b).dtype);
  const double ctas = kernel_.cta_pairs ? 2 : 1;  // each has its rows, and its columns of b
  const double m =
      static_cast<double>(operation.attributes.integer_or(Key::m, limits_.group_rows)) / ctas;
  const double reading = (n / ctas + (a_is_shared ? m : 0)) * k * size / rates_.shared_bytes;
  const bool in_tensor_memory = ir::info(operation.op).writes(ir::Memory::tensor);
  // Products of fewer rows than there are lanes leave the others idle.
  const double lanes =
      in_tensor_memory ? std::max(m, static_cast<double>(limits_.tensor_lanes)) : m;
  const double cycles =
      std::max(lanes * n * k / (rates_.fma * reached_.product_share * 2 / size), reading);
  spend(1);
  total_.shared += groups_ * reading;
  if (in_tensor_memory) {
    const double sums = m * n * 4, a_bytes = a_is_shared ? 0 : m * k * size;
    total_.tensor_memory += groups_ * (sums + a_bytes) / reached_.tensor_bytes;
  }
  note_pause();
  own_.free = std::max(own_.free, own_.now) + groups_ * cycles;
  total_.products += groups_ * cycles;
  total_.fma += groups_ * m * n * k;
}

void WarpClock::note_pause() {
  const Pause pause = {std::max(0.0, own_.now - own_.free), own_.exposed - exposed_before_};
  if (!in_turns_ || !has_multiplied_) {
    if (pause.cycles > 0) outside_.push_back(pause);
  } else {
    own_.pauses += shown({std::min(pause.cycles, pause.exposed), pause.exposed});
  }
  exposed_before_ = own_.exposed;
  has_multiplied_ = true;
}

void WarpClock::end_turn(double products, double computed) {
  if (!in_turns_ || total_.products == products) return;
  turn_multiplies_ = total_.products - products;
  turn_computes_ = computed_ - computed;
}

bool WarpClock::begin_loop(bool is_innermost) {
  has_multiplied_ = false;
  return std::exchange(in_turns_, is_innermost);
}

void WarpClock::end_loop(bool before) {
  has_multiplied_ = false;
  in_turns_ = before;
}

void WarpClock::load_global(double bytes) {
  spend(bytes / reached_.l2_bytes);
  loaded_ = own_.now + rates_.global_latency;
}

void WarpClock::store_global(double bytes) { spend(bytes / reached_.thread_store_bytes); }

void WarpClock::need_loads() { wait(std::max(0.0, loaded_ - own_.now)); }

void WarpClock::wait_for_stores(std::int64_t in_flight, bool read) {
  const double latency = read ? reached_.store_read_latency : rates_.store_latency;
  while (static_cast<std::int64_t>(stores_in_flight_.size()) > in_flight) {
    wait(std::max(0.0, stores_in_flight_.front() + latency - own_.now));
    stores_in_flight_.pop_front();
  }
}

void WarpClock::wait_for_products(std::int64_t in_flight) {
  ++own_.product_waits;
  while (static_cast<std::int64_t>(groups_in_flight_.size()) > in_flight) {
    own_.now = std::max(own_.now, groups_in_flight_.front());
    groups_in_flight_.pop_front();
  }
}

void WarpClock::repeat(const State& before, double times) {
  const double elapsed = std::max(own_.now - before.own.now, own_.free - before.own.free) * times;
  for (const auto field :
       {&Times::exposed, &Times::pauses, &Times::stages, &Times::product_waits}) {
    own_.*field += times * (own_.*field - before.own.*field);
  }
  for (const auto field : {&CtaTimeline::products, &CtaTimeline::loads, &CtaTimeline::load_bytes,
                           &CtaTimeline::store_bytes, &CtaTimeline::added_bytes, &CtaTimeline::fma,
                           &CtaTimeline::arithmetic, &CtaTimeline::special, &CtaTimeline::shared,
                           &CtaTimeline::tensor_memory, &CtaTimeline::received_bytes,
                           &CtaTimeline::remote_bytes, &CtaTimeline::shared_zeros}) {
    total_.*field += times * (total_.*field - before.total.*field);
  }
  own_.now += elapsed;
  if (own_.free > 0) own_.free += elapsed;  // else they have none under way
  loaded_ += elapsed;
  exposed_before_ = own_.exposed;
  for (double& end : groups_in_flight_) end += elapsed;
  for (double& start : stores_in_flight_) start += elapsed;
}

}  // namespace tilewright::schedules
