#include "schedules/timeline.h"

#include <algorithm>
#include <deque>
#include <map>
#include <unordered_map>
#include <vector>

#include "target/target.h"

namespace tilewright::schedules {
namespace {

using ir::Key;
using ir::Op;
using ir::Operation;
using ir::ValueId;

// An innermost loop of more turns is followed for its first turns, and the rest is like the last of
// them: a turn's number changes no instruction but those of masks.
constexpr std::int64_t kFollowedTurns = 6;
constexpr int kMostTurns =
    1 << 16;  // of a loop whose end the kernel decides: none is followed for ever

std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

bool has_loop(const ir::Block& block) {
  bool found = false;
  ir::for_each(block, [&](const Operation& operation) {
    found = found || operation.op == Op::for_loop || operation.op == Op::while_loop;
  });
  return found;
}

// A scalar that may be unknown: what was read from a tile.
struct Scalar {
  std::int64_t value = 0;
  bool known = false;
};

// Numbers that one role hands to another through shared memory, element by element.
using Numbers = std::map<std::pair<ValueId, std::int64_t>, std::vector<Scalar>>;

// One warp, or a warpgroup's four in step.
class Follower {
 public:
  Follower(const ir::Kernel& kernel, const ir::Binding& binding, std::int64_t cta,
           std::int64_t ctas, const target::Device& device, Numbers& numbers, CtaTimeline& total)
      : kernel_(kernel),
        binding_(binding),
        limits_(target::target_of(kernel).limits),
        rates_(target::target_of(kernel).rates),
        reached_(device.reached),
        cta_(cta),
        ctas_(ctas),
        numbers_(numbers),
        total_(total),
        scalars_(kernel.types.size()) {}

  void run(const ir::Block& block) {
    for (const Operation& operation : block.body) execute(operation);
  }

  void execute(const Operation& operation);

  double now() const { return std::max(now_, free_); }
  double issued() const { return issued_; }
  void set_groups(std::int64_t groups) { groups_ = static_cast<double>(groups); }
  void set(ValueId value, std::int64_t number) { scalars_[value] = {number, true}; }

 private:
  Scalar scalar(ValueId value) const { return scalars_[value]; }

  void spend(double cycles) {
    now_ += cycles;
    issued_ += cycles;
  }

  double elements(ValueId array) const {
    return static_cast<double>(kernel_.type(array).elements());
  }

  void result(const Operation& operation, std::int64_t value) {
    scalars_[operation.results[0]] = {value, true};
  }

  std::int64_t dim_value(const Operation& operation) {
    const auto [found, is_new] = dims_.try_emplace(&operation, 0);
    if (is_new) found->second = binding_.evaluate(operation.attributes.dim());
    return found->second;
  }

  // Binds a block's arguments and runs it; the values that it yields.
  std::vector<Scalar> enter(const ir::Block& block, const std::vector<Scalar>& arguments) {
    for (std::size_t i = 0; i < block.arguments.size() && i < arguments.size(); ++i) {
      scalars_[block.arguments[i]] = arguments[i];
    }
    run(block);
    std::vector<Scalar> yielded;
    for (const ValueId value : block.body.back().operands) yielded.push_back(scalar(value));
    return yielded;
  }

  std::vector<Scalar> carried(const Operation& operation, std::size_t first) const {
    std::vector<Scalar> values;
    for (std::size_t i = first; i < operation.operands.size(); ++i) {
      values.push_back(scalar(operation.operands[i]));
    }
    return values;
  }

  void finish(const Operation& operation, const std::vector<Scalar>& values) {
    for (std::size_t i = 0; i < operation.results.size(); ++i) {
      scalars_[operation.results[i]] = i < values.size() ? values[i] : Scalar{};
    }
  }

  void for_loop(const Operation& operation) {
    std::vector<Scalar> values = carried(operation, 3);
    const Scalar low = scalar(operation.operands[0]), high = scalar(operation.operands[1]);
    const Scalar step = scalar(operation.operands[2]);
    const bool known = low.known && high.known && step.known && step.value > 0;
    const std::int64_t turns =
        known ? std::max<std::int64_t>(
                    0, floor_div(high.value - low.value + step.value - 1, step.value))
              : 1;
    const bool is_innermost = !has_loop(operation.blocks[0]);
    const std::int64_t followed = is_innermost ? std::min(turns, kFollowedTurns) : turns;
    for (std::int64_t turn = 0; turn < followed; ++turn) {
      const State before = state();
      std::vector<Scalar> arguments = {{low.value + turn * step.value, known}};
      arguments.insert(arguments.end(), values.begin(), values.end());
      values = enter(operation.blocks[0], arguments);
      if (turn + 1 == followed) repeat(before, static_cast<double>(turns - followed));
    }
    finish(operation, values);
  }

  void while_loop(const Operation& operation) {
    Scalar going = scalar(operation.operands[0]);
    std::vector<Scalar> values = carried(operation, 1);
    for (int turn = 0; turn < kMostTurns && (!going.known || going.value != 0); ++turn) {
      const bool once = !going.known;
      values = enter(operation.blocks[0], values);
      going = values.front();
      values.erase(values.begin());
      if (once || !going.known) break;
    }
    finish(operation, values);
  }

  void if_then(const Operation& operation) {
    const Scalar condition = scalar(operation.operands[0]);
    const bool taken = !condition.known || condition.value != 0;
    finish(operation, enter(operation.blocks[taken ? 0 : 1], {}));
  }

  void store_number(const Operation& operation) {
    spend(rates_.issue_integer);
    const Scalar element = scalar(operation.operands[1]);
    if (!element.known) return;
    numbers_[{operation.operands[0], element.value}].push_back(scalar(operation.operands[2]));
  }

  // The number behind the one that was read before this warp last waited for the element's stage.
  void load_number(const Operation& operation) {
    spend(rates_.barrier);
    const ValueId index = operation.operands[1];
    Scalar& value = scalars_[operation.results[0]];
    value = {};
    if (!scalar(index).known) return;
    const auto place = std::make_pair(operation.operands[0], scalar(index).value);
    Read& read = reads_[place];
    const std::int64_t waits = waits_[stage_of(index)];
    if (read.waits != waits) {
      if (read.waits >= 0) ++read.next;
      read.waits = waits;
    }
    const auto found = numbers_.find(place);
    if (found != numbers_.end() && read.next < found->second.size()) {
      value = found->second[read.next];
    }
  }

  // What was waited for, if the value was computed from it: of a stage with several numbers, the
  // element is.
  ValueId stage_of(ValueId value) const {
    const auto found = stages_.find(value);
    return waits_.count(value) != 0 || found == stages_.end() ? value : found->second;
  }

  // CTAs take tiles in turn; whatever else is counted is not known.
  void count_tile(const Operation& operation) {
    spend(rates_.issue_integer);
    const Scalar amount = scalar(operation.operands[2]);
    scalars_[operation.results[0]] =
        amount.known && amount.value == 1 ? Scalar{cta_ + ctas_ * tiles_++, true} : Scalar{};
  }

  void instruction(const Operation& operation) {
    switch (operation.op) {
      case Op::compute:
        return spend(elements(operation.operands[0]) *
                     cycles_of(operation.attributes.function(), operation.operands[0]));
      case Op::reduce_registers:
        return spend(elements(operation.operands[1]) *
                     cycles_of(operation.attributes.function(), operation.operands[0]));
      case Op::reduce_lanes:
        return spend(static_cast<double>(operation.attributes.integers(Key::masks).size()) *
                     elements(operation.operands[0]) *
                     (rates_.issue_shuffle + rates_.issue_integer));
      case Op::any_register:
        scalars_[operation.results[0]] = {};
        return spend(elements(operation.operands[0]) * rates_.issue_integer + rates_.barrier);
      case Op::store_matrix:
      case Op::load_matrix:
        return spend(limits_.group_warps * 512 / rates_.shared_bytes);
      case Op::store_elements:
        return spend(elements(operation.operands[0]) * limits_.group_warps);
      case Op::load_words:
        if (operation.operands.size() > 3) return load_remote(operation.operands[0]);
        [[fallthrough]];
      case Op::load_elements:
        return spend(elements(operation.operands[0]) * limits_.group_warps);
      case Op::store_registers: {
        const double bytes = elements(operation.operands[1]) * limits_.group_threads() *
                             size_of(kernel_.type(operation.operands[1]).dtype);
        total_.store_bytes += groups_ * bytes;
        return spend(bytes / reached_.l2_bytes);
      }
      case Op::tma_load:
        total_.load_bytes += static_cast<double>(operation.attributes.integer(Key::bytes));
        return spend(rates_.issue_integer);
      case Op::tma_store:
        // Each warp of the group stores its own part.
        total_.store_bytes += groups_ * limits_.group_warps * stored_bytes(operation.operands[0]);
        return spend(rates_.issue_integer);
      case Op::bulk_wait:
        if (operation.attributes.integer(Key::count) == 0 &&
            operation.attributes.integer(Key::read) == 0) {
          now_ += rates_.store_latency;
        }
        return spend(rates_.issue_integer);
      case Op::wgmma_ss:
        return product(operation, operation.operands[3], true);
      case Op::wgmma_rs:
        return product(operation, operation.operands[2], false);
      case Op::wgmma_commit:
        groups_in_flight_.push_back(free_);
        return;
      case Op::wgmma_wait:
        return wait_for_products(operation.attributes.integer(Key::count));
      case Op::mbarrier_wait:
        ++waits_[operation.operands[1]];
        return spend(rates_.barrier);
      case Op::named_sync:
      case Op::cta_sync:
      case Op::cluster_sync:
        return spend(rates_.barrier);
      case Op::shared:
      case Op::mbarriers:
      case Op::tensor_map:
      case Op::peer_map:
      case Op::registers:
      case Op::fill:  // registers are renamed, for the most part
      case Op::copy:
      case Op::yield:
      case Op::wgmma_fence:
      case Op::fence_proxy_async:
      case Op::set_max_registers:
        return note(operation);
      default:
        return scalar_function(operation);
    }
  }

  void note(const Operation& operation) {
    if (operation.op == Op::tensor_map) maps_[operation.results[0]] = &operation;
    if (operation.op == Op::peer_map) {
      maps_[operation.results[0]] = maps_.at(operation.operands[0]);
    }
  }

  double stored_bytes(ValueId map) const {
    const auto found = maps_.find(map);
    if (found == maps_.end()) return 0;
    double bytes = size_of(kernel_.type(found->second->operands[0]).dtype);
    for (const std::int64_t extent : found->second->attributes.integers(Key::box)) {
      bytes *= static_cast<double>(std::max<std::int64_t>(extent, 1));
    }
    return bytes;
  }

  double cycles_of(Op function, ValueId destination) const {
    switch (function) {
      case Op::add:
      case Op::sub:
      case Op::mul:
      case Op::fma:
      case Op::neg:
      case Op::abs:
        return is_float(kernel_.type(destination).dtype) ? rates_.issue_float
                                                         : rates_.issue_integer;
      case Op::exp:
      case Op::exp2:
      case Op::log:
      case Op::log2:
      case Op::sqrt:
      case Op::rsqrt:
      case Op::rcp:
      case Op::tanh:
      case Op::div:
        return rates_.issue_special;
      case Op::sin:
      case Op::cos:
        return rates_.issue_special + 4 * rates_.issue_float;  // the reduction of the argument
      case Op::erf:
      case Op::log1p:
      case Op::expm1:
        return rates_.issue_special + 16 * rates_.issue_float;  // a polynomial of CUDA's library
      case Op::cast:
        return rates_.issue_float;  // two elements an instruction at half the rate
      default:
        return rates_.issue_integer;
    }
  }

  // All warpgroups of a role ask at the same time.
  void load_remote(ValueId destination) {
    const double bytes = elements(destination) * size_of(kernel_.type(destination).dtype) *
                         limits_.group_threads() * groups_;
    now_ += bytes / reached_.remote_bytes;
  }

  // One warpgroup's product: as fast as the tensor cores, or as shared memory feeds them.
  void product(const Operation& operation, ValueId b, bool a_is_shared) {
    const double n = static_cast<double>(operation.attributes.integer(Key::n));
    const double k = static_cast<double>(operation.attributes.integer(Key::k));
    const double size = size_of(kernel_.type(b).dtype);
    const auto m = static_cast<double>(limits_.group_rows);
    const double cycles = std::max(m * n * k / (rates_.fma * reached_.product_share * 2 / size),
                                   (n + (a_is_shared ? m : 0)) * k * size / rates_.shared_bytes);
    spend(1);
    free_ = std::max(free_, now_) + cycles;
    total_.products += groups_ * cycles;
    total_.fma += groups_ * m * n * k;
  }

  void wait_for_products(std::int64_t in_flight) {
    while (static_cast<std::int64_t>(groups_in_flight_.size()) > in_flight) {
      now_ = std::max(now_, groups_in_flight_.front());
      groups_in_flight_.pop_front();
    }
  }

  // Integers and booleans; anything else is not known.
  void scalar_function(const Operation& operation) {
    if (operation.results.size() != 1) return spend(rates_.issue_integer);
    spend(0.5 * rates_.issue_integer);  // for the most part in the uniform pipe, beside the others
    Scalar in[3];
    bool known = operation.operands.size() <= 3 && !operation.operands.empty();
    for (std::size_t i = 0; i < operation.operands.size() && i < 3; ++i) {
      in[i] = scalar(operation.operands[i]);
      known = known && in[i].known;
      const ValueId stage = stage_of(operation.operands[i]);
      if (waits_.count(stage) != 0) stages_[operation.results[0]] = stage;
    }
    Scalar& out = scalars_[operation.results[0]];
    if (operation.op == Op::select && in[0].known) {
      out = in[0].value != 0 ? in[1] : in[2];
      return;
    }
    out = known ? evaluate(operation.op, in[0].value, in[1].value) : Scalar{};
  }

  static Scalar evaluate(Op op, std::int64_t a, std::int64_t b) {
    const bool divides = op == Op::div || op == Op::mod || op == Op::ceildiv;
    if (divides && b <= 0) return {};
    switch (op) {
      case Op::add:
        return {a + b, true};
      case Op::sub:
        return {a - b, true};
      case Op::mul:
        return {a * b, true};
      case Op::div:
        return {floor_div(a, b), true};
      case Op::mod:
        return {a - floor_div(a, b) * b, true};
      case Op::ceildiv:
        return {floor_div(a + b - 1, b), true};
      case Op::min:
        return {std::min(a, b), true};
      case Op::max:
        return {std::max(a, b), true};
      case Op::neg:
        return {-a, true};
      case Op::abs:
        return {std::abs(a), true};
      case Op::lt:
        return {a < b, true};
      case Op::le:
        return {a <= b, true};
      case Op::eq:
        return {a == b, true};
      case Op::ne:
        return {a != b, true};
      case Op::logical_and:
        return {a != 0 && b != 0, true};
      case Op::logical_or:
        return {a != 0 || b != 0, true};
      case Op::logical_not:
        return {a == 0, true};
      case Op::cast:
        return {a, true};
      default:
        return {};
    }
  }

  struct State {
    double now, issued, free;
    CtaTimeline total;
  };
  State state() const { return {now_, issued_, free_, total_}; }

  // As much again as since `before`, so many times.
  void repeat(const State& before, double times) {
    const auto add = [times](double& now, double then) { now += times * (now - then); };
    const double elapsed = std::max(now_ - before.now, free_ - before.free) * times;
    add(issued_, before.issued);
    add(total_.products, before.total.products);
    add(total_.load_bytes, before.total.load_bytes);
    add(total_.store_bytes, before.total.store_bytes);
    add(total_.fma, before.total.fma);
    now_ += elapsed;
    free_ += elapsed;
    for (double& end : groups_in_flight_) end += elapsed;
  }

  struct Read {
    std::size_t next = 0;
    std::int64_t waits = -1;  // for the stage, when it was read last
  };

  const ir::Kernel& kernel_;
  const ir::Binding& binding_;
  const TargetLimits& limits_;
  const target::Rates& rates_;
  const target::Device::Reached& reached_;
  const std::int64_t cta_, ctas_;
  Numbers& numbers_;
  CtaTimeline& total_;
  std::vector<Scalar> scalars_;
  std::unordered_map<const Operation*, std::int64_t> dims_;
  std::unordered_map<ValueId, const Operation*> maps_;
  std::unordered_map<ValueId, std::int64_t> waits_;  // by the index that was waited for
  std::unordered_map<ValueId, ValueId> stages_;      // that values were computed from
  std::map<std::pair<ValueId, std::int64_t>, Read> reads_;
  std::deque<double> groups_in_flight_;  // when each will be complete
  std::int64_t tiles_ = 0;
  double groups_ = 1;
  double now_ = 0, issued_ = 0, free_ = 0;  // free: when the tensor cores have done this warp's
};

void Follower::execute(const Operation& operation) {
  switch (operation.op) {
    case Op::constant: {
      const ir::Attribute* value = operation.attributes.find(Key::value);
      const auto* integer = std::get_if<std::int64_t>(value);
      scalars_[operation.results[0]] = integer ? Scalar{*integer, true} : Scalar{};
      return;
    }
    case Op::dim:
      return result(operation, dim_value(operation));
    case Op::cta_index:
      return result(operation, cta_);
    case Op::cta_count:
      return result(operation, ctas_);
    case Op::cluster_rank:
      return result(operation, cta_ % kernel_.cluster);
    case Op::warp_index:
      return result(operation, 0);
    case Op::for_loop:
      return for_loop(operation);
    case Op::while_loop:
      return while_loop(operation);
    case Op::if_then:
      return if_then(operation);
    case Op::elect:
      return run(operation.blocks[0]);
    case Op::shared_store:
      return store_number(operation);
    case Op::shared_load:
      return load_number(operation);
    case Op::atomic_add:
      return count_tile(operation);
    default:
      return instruction(operation);
  }
}

}  // namespace

CtaTimeline follow_cta(const ir::Kernel& machine, const ir::Binding& binding, std::int64_t cta,
                       std::int64_t ctas, const target::Device& device) {
  const TargetLimits& limits = target::target_of(machine).limits;
  CtaTimeline total;
  Numbers numbers;
  const auto follow = [&](const ir::Block& body, std::int64_t warps, const Follower& start) {
    Follower role = start;
    const std::int64_t groups = std::max<std::int64_t>(1, warps / limits.group_warps);
    role.set_groups(groups);
    if (!body.arguments.empty()) role.set(body.arguments[0], 0);
    role.run(body);
    const double share = static_cast<double>(std::min(warps, limits.group_warps)) /
                         static_cast<double>(limits.group_warps);
    total.issue += role.issued() * share * static_cast<double>(groups);
    total.chain = std::max(total.chain, role.now());
  };
  // What stands outside the roles is run by all warps, before them or between.
  Follower common(machine, binding, cta, ctas, device, numbers, total);
  common.set_groups(std::max<std::int64_t>(1, machine.threads / limits.group_threads()));
  for (const Operation& operation : machine.body.body) {
    if (operation.op != Op::role) {
      common.execute(operation);
      continue;
    }
    follow(operation.blocks[0], operation.attributes.integer(Key::warps), common);
  }
  total.chain = std::max(total.chain, common.now());
  return total;
}

}  // namespace tilewright::schedules
