#include "schedules/timeline.h"

#include <algorithm>
#include <bit>
#include <initializer_list>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "schedules/completed_barriers.h"
#include "schedules/followed_copies.h"
#include "schedules/followed_scalars.h"
#include "schedules/followed_words.h"
#include "schedules/handed_numbers.h"
#include "schedules/warp_clock.h"
#include "target/target.h"

namespace tilewright::schedules {
namespace {

using ir::Family;
using ir::Key;
using ir::Op;
using ir::Operation;
using ir::ValueId;

// An innermost loop of more turns is followed for its first turns, and the rest is like the last of
// them: a turn's number changes no instruction but those of masks. Where one of the last turns
// takes the CTA's next tile, these are followed too.
constexpr std::int64_t kFollowedTurns = 6, kLastTurns = 6;
constexpr int kMostTurns = 1 << 16;  // of a loop whose end the kernel decides

bool has_any(const ir::Block& block, std::initializer_list<Op> wanted) {
  bool found = false;
  ir::for_each(block, [&](const Operation& operation) {
    found = found || std::find(wanted.begin(), wanted.end(), operation.op) != wanted.end();
  });
  return found;
}

// The warps of a role, in step.
class Follower {
 public:
  Follower(const ir::Kernel& kernel, const ir::Binding& binding, std::int64_t cta,
           std::int64_t ctas, const target::Device& device, HandedNumbers::Written& numbers,
           TurnsOfSums& turns, const CompletedBarriers& completed, CtaTimeline& total)
      : kernel_(kernel),
        binding_(binding),
        limits_(target::target_of(kernel).limits),
        rates_(target::target_of(kernel).rates),
        reached_(device.reached),
        cta_(cta),
        ctas_(ctas),
        total_(total),
        clock_(kernel, device, total),
        scalars_(kernel.types.size()),
        handed_(numbers),
        turns_(turns),
        copies_(kernel, binding, device.reached),
        completed_(completed) {}

  void run(const ir::Block& block) {
    for (const Operation& operation : block.body) execute(operation);
  }

  void execute(const Operation& operation);
  void control(const Operation& operation);
  void position(const Operation& operation);

  WarpClock& clock() { return clock_; }
  std::int64_t taken() const { return tiles_; }
  void set(ValueId value, std::int64_t number) { scalars_[value] = {number, true}; }

 private:
  FollowedScalar scalar(ValueId value) const { return scalars_[value]; }

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
  std::vector<FollowedScalar> enter(const ir::Block& block,
                                    const std::vector<FollowedScalar>& arguments) {
    for (std::size_t i = 0; i < block.arguments.size() && i < arguments.size(); ++i) {
      scalars_[block.arguments[i]] = arguments[i];
    }
    run(block);
    std::vector<FollowedScalar> yielded;
    for (const ValueId value : block.body.back().operands) yielded.push_back(scalar(value));
    return yielded;
  }

  std::vector<FollowedScalar> carried(const Operation& operation, std::size_t first) const {
    std::vector<FollowedScalar> values;
    for (std::size_t i = first; i < operation.operands.size(); ++i) {
      values.push_back(scalar(operation.operands[i]));
    }
    return values;
  }

  void finish(const Operation& operation, const std::vector<FollowedScalar>& values) {
    for (std::size_t i = 0; i < operation.results.size(); ++i) {
      scalars_[operation.results[i]] = i < values.size() ? values[i] : FollowedScalar{};
    }
  }

  void for_loop(const Operation& operation) {
    std::vector<FollowedScalar> values = carried(operation, 3);
    const FollowedScalar low = scalar(operation.operands[0]), high = scalar(operation.operands[1]);
    const FollowedScalar step = scalar(operation.operands[2]);
    const bool known = low.known && high.known && step.known && step.value > 0;
    const std::int64_t turns =
        known ? std::max<std::int64_t>(
                    0, floor_div(high.value - low.value + step.value - 1, step.value))
              : 1;
    const bool is_innermost = !has_any(operation.blocks[0], {Op::for_loop, Op::while_loop});
    const std::int64_t at_end = has_any(operation.blocks[0], {Op::atomic_add}) ? kLastTurns : 0;
    const bool is_long = is_innermost && turns > kFollowedTurns + at_end;
    const std::int64_t at_begin = is_long ? kFollowedTurns : turns;
    const std::int64_t left_out = is_long ? turns - kFollowedTurns - at_end : 0;
    const bool outside = clock_.begin_loop(is_innermost);
    for (std::int64_t turn = 0; turn < turns; ++turn) {
      const WarpClock::State before = clock_.state();
      const double computed = clock_.computed();
      std::vector<FollowedScalar> arguments = {{low.value + turn * step.value, known}};
      arguments.insert(arguments.end(), values.begin(), values.end());
      values = enter(operation.blocks[0], arguments);
      clock_.end_turn(before.total.products, computed);
      if (turn + 1 != at_begin) continue;
      clock_.repeat(before, static_cast<double>(left_out));
      turn += left_out;
    }
    clock_.end_loop(outside);
    finish(operation, values);
  }

  void while_loop(const Operation& operation) {
    FollowedScalar going = scalar(operation.operands[0]);
    std::vector<FollowedScalar> values = carried(operation, 1);
    ++whiles_;
    for (int turn = 0; turn < kMostTurns && (!going.known || going.value != 0); ++turn) {
      const bool once = !going.known;
      const double products = total_.products;
      if (whiles_ == 1) loaded_before_ = total_.load_bytes;
      values = enter(operation.blocks[0], values);
      if (whiles_ == 1) note_tile(static_cast<std::size_t>(turn), total_.products - products);
      going = values.front();
      values.erase(values.begin());
      if (once || !going.known) break;
    }
    --whiles_;
    finish(operation, values);
  }

  void note_tile(std::size_t turn, double products) {
    if (products == 0) return;
    total_.tiles.resize(std::max(total_.tiles.size(), turn + 1));
    total_.tiles[turn] += products;
  }

  void if_then(const Operation& operation) {
    const FollowedScalar condition = scalar(operation.operands[0]);
    const bool taken = !condition.known || condition.value != 0;
    const bool by_rank = by_rank_.count(operation.operands[0]) != 0;
    ranks_ += by_rank;
    finish(operation, enter(operation.blocks[taken ? 0 : 1], {}));
    ranks_ -= by_rank;
  }

  void store_number(const Operation& operation) {
    clock_.issue();
    const FollowedScalar element = scalar(operation.operands[1]);
    if (element.known) {
      handed_.store({operation.operands[0], element.value}, scalar(operation.operands[2]));
    }
  }

  void load_number(const Operation& operation) {
    clock_.spend(rates_.barrier);
    const ValueId index = operation.operands[1];
    const FollowedScalar element = scalar(index);
    scalars_[operation.results[0]] =
        element.known ? handed_.load({operation.operands[0], element.value}, index)
                      : FollowedScalar{};
  }

  // CTAs take tiles in turn, in a loop that ends when there are none. Of a cluster each one does,
  // or one for all of it. Whatever else is counted is not known: CTAs meet, and come behind the
  // stores before.
  void count(const Operation& operation) {
    clock_.issue();
    const FollowedScalar amount = scalar(operation.operands[2]);
    const bool is_tile = whiles_ > 0 && amount.known && amount.value == 1;
    const std::int64_t together = ranks_ > 0 ? kernel_.cluster : 1;
    if (!is_tile) clock_.wait(rates_.global_latency);
    total_.counts_tiles = total_.counts_tiles || is_tile;
    total_.takes_ahead = total_.takes_ahead || (is_tile && total_.load_bytes == loaded_before_);
    total_.counts_for_cluster = total_.counts_for_cluster || (is_tile && together > 1);
    scalars_[operation.results[0]] =
        is_tile ? FollowedScalar{cta_ / together + ctas_ / together * tiles_++, true}
                : FollowedScalar{};
  }

  void computation(const Operation& operation) {
    const ValueId array = operation.operands[0];
    switch (ir::as<ir::ComputationOp>(operation.op)) {
      case ir::ComputationOp::compute:
        clock_.need_loads();
        return clock_.apply(operation.attributes.function(), elements(array), array);
      case ir::ComputationOp::reduce_registers:
        return clock_.apply(operation.attributes.function(), elements(operation.operands[1]),
                            array);
      case ir::ComputationOp::reduce_lanes:
        return clock_.calculate(
            static_cast<double>(operation.attributes.integers(Key::masks).size()) *
            elements(array) * (rates_.issue_shuffle + rates_.issue_integer));
      case ir::ComputationOp::any_register:  // a question that is asked because it is rarely so
        scalars_[operation.results[0]] = {0, true};
        return clock_.calculate(elements(array) * rates_.issue_integer + rates_.barrier);
      case ir::ComputationOp::coordinate:
        return clock_.issue();
      case ir::ComputationOp::fill:  // registers are renamed, for the most part
      case ir::ComputationOp::copy:
        return;
    }
  }

  // Of a warpgroup's threads.
  double register_bytes(ValueId array) const {
    return elements(array) * limits_.group_threads() * size_of(kernel_.type(array).dtype);
  }
  void store_global(const Operation& operation) {
    const double bytes = register_bytes(operation.operands[1]);
    total_.store_bytes += clock_.groups() * bytes;
    if (ir::info(operation.op).reads(ir::Memory::global)) {
      total_.added_bytes += clock_.groups() * bytes;
    }
    clock_.store_global(bytes);
  }

  void copy_bulk(const Operation& operation) {
    if (ir::info(operation.op).writes(ir::Memory::shared)) {
      const auto bytes = static_cast<double>(operation.attributes.integer(Key::bytes));
      const auto mask =
          static_cast<std::uint64_t>(operation.attributes.integer_or(Key::multicast, 1));
      total_.load_bytes += bytes;
      total_.loads += bytes / reached_.l2_bytes * (1 + copies_.longer_by_rows(operation));
      // Each of those that it reaches asks for as much, for all of them.
      const int receivers = std::popcount(mask);
      receive(bytes * receivers);
      if (receivers > 1) {
        total_.shared_zeros +=
            bytes * copies_.behind_ends(operation, [&](ValueId value) { return scalar(value); });
      }
    } else {
      // Each warp of the group stores its own part.
      const double bytes =
          clock_.groups() * limits_.group_warps * copies_.stored_bytes(operation.operands[0]);
      total_.store_bytes += bytes;
      if (ir::info(operation.op).reads(ir::Memory::global)) total_.added_bytes += bytes;
      total_.shared += bytes / rates_.shared_bytes;
    }
    clock_.issue();
  }

  void receive(double bytes) {
    total_.received_bytes += bytes;
    total_.shared += bytes / rates_.shared_bytes;
  }

  void commit(const Operation& operation) {
    switch (ir::as<ir::CommitOp>(operation.op)) {
      case ir::CommitOp::bulk_commit:
        clock_.commit_stores();
        return clock_.issue();
      case ir::CommitOp::wgmma_commit:
        clock_.commit_products();
        return;
    }
  }

  void wait_for_groups(const Operation& operation) {
    const std::int64_t count = operation.attributes.integer(Key::count);
    switch (ir::as<ir::GroupWaitOp>(operation.op)) {
      case ir::GroupWaitOp::bulk_wait:
        clock_.wait_for_stores(count, operation.attributes.integer_or(Key::read, 0) != 0);
        return clock_.issue();
      case ir::GroupWaitOp::wgmma_wait:
        return clock_.wait_for_products(count);
    }
  }

  void mbarrier(const Operation& operation) {
    switch (ir::as<ir::MbarrierOp>(operation.op)) {
      case ir::MbarrierOp::mbarrier_wait:
        handed_.wait(operation.operands[0], operation.operands[1],
                     scalar(operation.operands[1]).value);
        wait_for_stage(operation.operands[0]);
        return clock_.spend(rates_.barrier);
      case ir::MbarrierOp::mbarrier_init:
      case ir::MbarrierOp::mbarrier_expect_tx:
      case ir::MbarrierOp::mbarrier_arrive:
        return clock_.issue();
    }
  }

  void wait_for_stage(ValueId barriers) {
    if (completed_.by_copies.count(barriers) != 0) {
      clock_.wait_for_stage(kernel_.type(barriers).elements());
    }
    if (completed_.by_products.count(barriers) != 0) clock_.wait_for_others();
    // A ring's stages are waited for ahead of what needs them.
    if (completed_.by_others.count(barriers) != 0 && kernel_.type(barriers).elements() == 1) {
      clock_.wait(reached_.cluster_wait +
                  reached_.cluster_wait_each * static_cast<double>(kernel_.cluster));
    }
  }

  void fence(const Operation& operation) {
    switch (ir::as<ir::FenceOp>(operation.op)) {
      case ir::FenceOp::fence_proxy_async:
        return;
      case ir::FenceOp::fence_proxy_async_global:
      case ir::FenceOp::fence_cluster:
      case ir::FenceOp::fence:
      case ir::FenceOp::fence_barrier_init:
        return clock_.issue();
    }
  }

  void word(const Operation& operation) {
    switch (ir::as<ir::WordOp>(operation.op)) {
      case ir::WordOp::atomic_add:
        count_up(operation);
        return count(operation);
      case ir::WordOp::load_index:
        return unknown(operation);
      case ir::WordOp::reduce_add:
        count_up(operation);
        return clock_.issue();
      case ir::WordOp::store_index:
        return clock_.issue();
    }
  }

  FollowedWord word_of(const Operation& operation) const {
    const FollowedScalar element = scalar(operation.operands[1]);
    return {operation.operands[0], element.known ? std::optional(element.value) : std::nullopt};
  }

  // What is taken away sets the word back, as the next launch wants it.
  void count_up(const Operation& operation) {
    const FollowedScalar amount = scalar(operation.operands[2]);
    if (!amount.known || amount.value > 0) turns_.add(word_of(operation));
  }

  // At least as long as it takes to see that it is there.
  void wait_for_word(const Operation& operation) {
    clock_.wait(rates_.global_latency);
    clock_.issue();
    const bool tells_tiles = tiles_ > 0;  // to the other CTA of a pair, for whose answer it waits
    const FollowedScalar others = scalar(operation.operands[2]);
    if (!tells_tiles && others.known) turns_.wait(word_of(operation), others.value);
  }

  void constant(const Operation& operation) {
    if (operation.op == Op::dim) return result(operation, dim_value(operation));
    const ir::Attribute* value = operation.attributes.find(Key::value);
    const auto* integer = std::get_if<std::int64_t>(value);
    scalars_[operation.results[0]] = integer ? FollowedScalar{*integer, true} : FollowedScalar{};
  }

  // All warpgroups of a role ask at the same time.
  void load_remote(ValueId destination) {
    const double bytes = register_bytes(destination) * clock_.groups();
    total_.remote_bytes += bytes;
    clock_.wait(bytes / reached_.remote_bytes);
  }

  void unknown(const Operation& operation) {
    clock_.scalar_step();
    for (const ValueId operand : operation.operands) {
      handed_.compute(operation.results[0], operand);
    }
    scalars_[operation.results[0]] = {};
  }

  // Integers and booleans; anything else is not known.
  void scalar_function(const Operation& operation) {
    unknown(operation);
    FollowedScalar in[3];
    bool known = true;
    for (std::size_t i = 0; i < operation.operands.size(); ++i) {
      in[i] = scalar(operation.operands[i]);
      known = known && in[i].known;
      if (by_rank_.count(operation.operands[i]) != 0) by_rank_.insert(operation.results[0]);
    }
    FollowedScalar& out = scalars_[operation.results[0]];
    if (operation.op == Op::select && in[0].known) {
      out = in[0].value != 0 ? in[1] : in[2];
      return;
    }
    out = known ? evaluate_scalar(operation.op, in[0].value, in[1].value) : FollowedScalar{};
  }

  const ir::Kernel& kernel_;
  const ir::Binding& binding_;
  const TargetLimits& limits_;
  const target::Rates& rates_;
  const target::Device::Reached& reached_;
  const std::int64_t cta_, ctas_;
  CtaTimeline& total_;
  WarpClock clock_;
  std::vector<FollowedScalar> scalars_;
  std::unordered_map<const Operation*, std::int64_t> dims_;
  HandedNumbers handed_;
  TurnsOfSums::OfRole turns_;
  FollowedCopies copies_;
  std::int64_t tiles_ = 0;
  int whiles_ = 0;             // loops around, whose end the kernel decides
  double loaded_before_ = 0;   // the turn of the outermost of them
  std::set<ValueId> by_rank_;  // what depends on the place in the cluster, but for a loop's values
  int ranks_ = 0;              // conditions around that do
  const CompletedBarriers& completed_;
};

void Follower::control(const Operation& operation) {
  switch (ir::as<ir::ControlOp>(operation.op)) {
    case ir::ControlOp::for_loop:
      return for_loop(operation);
    case ir::ControlOp::while_loop:
      return while_loop(operation);
    case ir::ControlOp::if_then:
      return if_then(operation);
    case ir::ControlOp::elect:
      return run(operation.blocks[0]);
    case ir::ControlOp::yield:
    case ir::ControlOp::role:  // followed one by one
      return;
  }
}

void Follower::position(const Operation& operation) {
  switch (ir::as<ir::PositionOp>(operation.op)) {
    case ir::PositionOp::cta_index:
      return result(operation, cta_);
    case ir::PositionOp::cta_count:
      return result(operation, ctas_);
    case ir::PositionOp::cluster_rank:
      by_rank_.insert(operation.results[0]);
      return result(operation, cta_ % kernel_.cluster);
    case ir::PositionOp::warp_index:
      return result(operation, 0);
    case ir::PositionOp::rank:
    case ir::PositionOp::epoch:
      return unknown(operation);
  }
}

void Follower::execute(const Operation& operation) {
  const ir::OpInfo& record = ir::info(operation.op);
  switch (record.family) {
    case Family::constant:
      return constant(operation);
    case Family::position:
      return position(operation);
    case Family::control:
      return control(operation);
    case Family::function:
      return scalar_function(operation);
    case Family::place:
    case Family::map_choice:
      return copies_.note(operation);
    case Family::peer:
      return unknown(operation);
    case Family::computation:
      return computation(operation);
    case Family::shared_word:
      return record.reads(ir::Memory::shared) ? load_number(operation) : store_number(operation);
    case Family::word:
      return word(operation);
    case Family::global_access:
      return record.writes(ir::Memory::global)
                 ? store_global(operation)
                 : clock_.load_global(register_bytes(operation.operands[0]));
    case Family::matrix_access:
      return clock_.pass_shared(512);
    case Family::fragment_access:
      if (operation.operands.size() > 3) return load_remote(operation.operands[0]);
      if (!record.reads(ir::Memory::shared)) return clock_.issue();
      return clock_.pass_shared(elements(operation.operands[0]) * 4 * limits_.lanes);
    case Family::element_access:
      return clock_.pass_shared(elements(operation.operands[0]) * 4 * limits_.lanes);
    case Family::tensor_access:
      return clock_.access_tensor_memory(operation);
    case Family::bulk_copy:
      return copy_bulk(operation);
    case Family::commit:
      return commit(operation);
    case Family::group_wait:
      return wait_for_groups(operation);
    case Family::product:
    case Family::tensor_product:
      return clock_.product(operation);
    case Family::mbarrier:
      return mbarrier(operation);
    case Family::fence:
      return fence(operation);
    case Family::named_barrier:
      clock_.meet(operation.attributes.integer(Key::threads));
      return clock_.spend(operation.op == Op::named_sync ? rates_.barrier : rates_.issue_integer);
    case Family::cta_barrier:
    case Family::cluster_barrier:
      return clock_.spend(rates_.barrier);
    case Family::word_wait:
      return wait_for_word(operation);
    case Family::lane_order:
    case Family::check:
    case Family::prefetch:
    case Family::tensor_allocation:
    case Family::tensor_wait:
    case Family::tensor_copy:
    case Family::tensor_commit:
    case Family::tensor_fence:
    case Family::launch_control:
      return clock_.issue();
    case Family::array:  // these take no time
    case Family::product_fence:
    case Family::register_budget:
    case Family::tile:  // the others are of the forms before
    case Family::own_rows:
    case Family::tile_access:
    case Family::tile_product:
    case Family::tile_copy:
    case Family::pending:
    case Family::view:
    case Family::shared_tile:
    case Family::fragment_tile:
    case Family::tensor_tile:
    case Family::tensor_tile_product:
    case Family::core_memory:
    case Family::core_window:
    case Family::core_copy:
    case Family::core_compute:
    case Family::core_event:
      return;
  }
}

}  // namespace

CtaTimeline follow_cta(const ir::Kernel& machine, const ir::Binding& binding, std::int64_t cta,
                       std::int64_t ctas, const target::Device& device) {
  const TargetLimits& limits = target::target_of(machine).limits;
  CtaTimeline total;
  HandedNumbers::Written numbers;
  TurnsOfSums turns;
  const CompletedBarriers completed(machine);
  const auto follow = [&](const ir::Block& body, std::int64_t warps, const Follower& start) {
    Follower role = start;
    role.clock().set_warps(warps);
    if (!body.arguments.empty()) role.set(body.arguments[0], 0);
    role.run(body);
    total.pauses = std::max(total.pauses, role.clock().pauses());
    total.stages = std::max(total.stages, role.clock().stages());
    total.product_waits = std::max(total.product_waits, role.clock().product_waits());
    total.taken = std::max(total.taken, role.taken());
    if (role.clock().now() <= total.chain) return;
    total.chain = role.clock().now();
    total.exposed = role.clock().exposed();
  };
  // What stands outside the roles is run by all warps, before them or between.
  Follower common(machine, binding, cta, ctas, device, numbers, turns, completed, total);
  common.clock().set_warps(
      std::max<std::int64_t>(limits.group_warps, machine.threads / limits.lanes));
  for (const Operation& operation : machine.body.body) {
    if (operation.op != Op::role) {
      common.execute(operation);
      continue;
    }
    follow(operation.blocks[0], operation.attributes.integer(Key::warps), common);
  }
  total.chain = std::max(total.chain, common.clock().now());
  total.turns = static_cast<double>(turns.first());
  return total;
}

}  // namespace tilewright::schedules
