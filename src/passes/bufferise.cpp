#include "passes/bufferise.h"

#include <algorithm>
#include <set>

#include "passes/lowering/conversions.h"
#include "passes/lowering/outside_boxes.h"
#include "passes/lowering/products.h"
#include "passes/lowering/reductions.h"
#include "passes/lowering/role_code.h"
#include "passes/lowering/tensor_memory.h"
#include "passes/lowering/transfers.h"
#include "passes/lowering/views.h"
#include "support/diagnostic.h"
#include "target/target.h"

namespace tilewright::passes {
namespace {

using ir::Family;
using ir::Key;
using ir::Op;
using ir::Operation;
using ir::ValueId;

// A role's operations in their order, with its loops and branches; the rest by subject.
class RoleLowering {
 public:
  RoleLowering(ir::Kernel& kernel, const Places& places, const OutsideBoxes& outside,
               const Operation& role)
      : code_(kernel, role.blocks[0]),
        views_(places, code_),
        reductions_(role, code_),
        conversions_(role, code_),
        products_(kernel, role.blocks[0], code_, views_),
        tensor_memory_(kernel, code_, views_),
        transfers_(places, outside, code_, views_) {}

  void lower(ir::Block& block) {
    std::vector<Operation> source = std::move(block.body);
    std::vector<Operation> outer = code_.begin_block();
    for (Operation& operation : source) visit(operation);
    block.body = code_.end_block(std::move(outer));
  }

  std::vector<Operation> declarations(SourceLocation where) const {
    return code_.declarations(where);
  }

 private:
  void visit(Operation& o) {
    switch (ir::info(o.op).family) {
      case Family::function:
        if (code_.in_registers(o.results[0])) return elementwise(o);
        return code_.append(std::move(o));
      case Family::view:
        return views_.add(o);
      case Family::control:
        return control(o);
      case Family::tile:
        return tile(o);
      case Family::tile_product:
        return product(o);
      case Family::pending:
        return pending(o);
      case Family::tensor_tile_product:
        return tensor_memory_.product(o);
      case Family::tensor_tile:
        return o.op == Op::tcgen05_load ? tensor_memory_.load(o) : tensor_memory_.store(o);
      case Family::shared_tile:
        return o.op == Op::store_tile ? transfers_.store_tile(o) : transfers_.load_tile(o);
      case Family::fragment_tile:
        return o.op == Op::store_fragment ? transfers_.store_fragment(o)
                                          : transfers_.load_fragment(o);
      case Family::tile_access:
        return o.op == Op::load          ? transfers_.load(o)
               : o.op == Op::atomic_tile ? transfers_.atomic(o)
                                         : transfers_.store(o);
      case Family::tile_copy:
        return o.op == Op::cluster_copy_tile ? transfers_.cluster_copy(o) : transfers_.tma(o);
      case Family::map_choice:
        transfers_.choose_map(o);
        return code_.append(std::move(o));
      case Family::constant:  // these are the same in the machine form
      case Family::position:
      case Family::peer:
      case Family::place:
      case Family::shared_word:
      case Family::word:
      case Family::word_wait:
      case Family::mbarrier:
      case Family::named_barrier:
      case Family::cta_barrier:
      case Family::cluster_barrier:
      case Family::fence:
      case Family::lane_order:
      case Family::commit:
      case Family::group_wait:
      case Family::tensor_allocation:
      case Family::tensor_commit:
      case Family::tensor_fence:
      case Family::launch_control:
        return code_.append(std::move(o));
      case Family::own_rows:  // of the tile form
      case Family::array:     // these are made here
      case Family::computation:
      case Family::global_access:
      case Family::matrix_access:
      case Family::element_access:
      case Family::fragment_access:
      case Family::bulk_copy:
      case Family::prefetch:
      case Family::product:
      case Family::product_fence:
      case Family::tensor_access:
      case Family::tensor_wait:
      case Family::tensor_product:
      case Family::tensor_copy:
      case Family::check:
      case Family::register_budget:
      case Family::core_memory:
      case Family::core_window:
      case Family::core_copy:
      case Family::core_compute:
      case Family::core_event:
        Diagnostic(o.where,
                   std::string(ir::info(o.op).name) + ": not an operation of the scheduled form",
                   ErrorKind::internal)
            .raise();
    }
  }

  void control(Operation& o) {
    switch (ir::as<ir::ControlOp>(o.op)) {
      case ir::ControlOp::for_loop:
        return loop(o, 3, 0);
      case ir::ControlOp::while_loop:
        return loop(o, 1, 1);
      case ir::ControlOp::if_then:
        return branch(o);
      case ir::ControlOp::elect:
        lower(o.blocks[0]);
        return code_.append(std::move(o));
      case ir::ControlOp::yield:
      case ir::ControlOp::role:
        return code_.append(std::move(o));
    }
  }

  void product(const Operation& o) {
    switch (ir::as<ir::TileProductOp>(o.op)) {
      case ir::TileProductOp::wgmma:
        return products_.product(o);
      case ir::TileProductOp::dot:  // of the tile form
        return;
    }
  }

  void pending(const Operation& o) {
    switch (ir::as<ir::PendingOp>(o.op)) {
      case ir::PendingOp::as_pending:
        code_.mark_complete(o.results[0]);
        return code_.copy(o.results[0], o.operands[0], o.where);
      case ir::PendingOp::wait:
      case ir::PendingOp::retire:
        return products_.wait(o);
    }
  }

  void tile(const Operation& o) {
    switch (ir::as<ir::TileOp>(o.op)) {
      case ir::TileOp::splat:
        return code_.emit(Op::fill, {code_.array(o.results[0]), o.operands[0]}, {}, o.where);
      case ir::TileOp::iota:
        return code_.emit(Op::coordinate, {code_.array(o.results[0])},
                          {{Key::axis, o.attributes.integer(Key::axis)},
                           {Key::layout, code_.layout(o.results[0])}},
                          o.where);
      case ir::TileOp::any:
        code_.emit(Op::any_register, {code_.array(o.operands[0])}, {}, o.where);
        code_.last().results = o.results;
        return;
      case ir::TileOp::reduce:
        return reductions_.reduce(o, loops_ > 0);
      case ir::TileOp::complete:
        return reductions_.complete(o, loops_ > 0);
      case ir::TileOp::convert:
        return conversions_.convert(o, loops_ > 0);
      case ir::TileOp::reshape:
      case ir::TileOp::transpose:
        return code_.copy(o.results[0], o.operands[0], o.where);
      case ir::TileOp::slice:
        return slice(o);
    }
  }

  void elementwise(const Operation& o) {
    const ValueId result = o.results[0];
    std::vector<ValueId> operands{code_.array(result)};
    std::vector<ir::IndexMap> maps;
    for (const ValueId operand : o.operands) {
      if (!code_.in_registers(operand)) {
        operands.push_back(operand);
        maps.push_back({});
        continue;
      }
      const ir::RegisterMap map = ir::register_map(code_.layout(result), code_.layout(operand));
      if (!map.ok()) {
        Diagnostic(o.where,
                   std::string(ir::info(o.op).name) +
                       ": operands lie differently in registers: " + map.mismatch,
                   ErrorKind::internal)
            .raise();
      }
      operands.push_back(code_.array(operand));
      maps.push_back(map.terms);
    }
    code_.emit(Op::compute, std::move(operands),
               {{Key::function, o.op}, {Key::maps, std::move(maps)}}, o.where);
  }

  void slice(const Operation& o) {
    const ir::RegisterLayout from = code_.layout(o.operands[0]).canonical();
    const std::vector<std::int64_t>& offsets = o.attributes.integers(Key::offsets);
    std::int64_t first = 0;
    // Of one element a thread, the part is the whole.
    if (!from.registers.empty()) {
      const ir::Mode& last = from.registers.back();
      const std::int64_t below = from.register_count() / last.size;
      first = offsets[last.axis] / last.stride * below;
    }
    code_.emit(Op::copy, {code_.array(o.results[0]), code_.array(o.operands[0])},
               {{Key::offset, first}}, o.where);
  }

  void loop(Operation& o, std::size_t leading, std::size_t extra) {
    ir::Block& body = o.blocks[0];
    const std::size_t first = body.arguments.size() - o.results.size();
    RoleCode::Moves before, after, results;
    Operation lowered;
    lowered.op = o.op;
    lowered.where = o.where;
    lowered.attributes = o.attributes;
    lowered.operands.assign(o.operands.begin(), o.operands.begin() + leading);
    std::vector<ValueId> arguments(body.arguments.begin(), body.arguments.begin() + first);
    const std::vector<ValueId> yielded = body.body.back().operands;
    std::vector<ValueId> kept(yielded.begin(), yielded.begin() + extra);
    for (std::size_t i = 0; i < o.results.size(); ++i) {
      const ValueId argument = body.arguments[first + i];
      if (code_.in_registers(argument)) {
        before.push_back({argument, o.operands[leading + i]});
        after.push_back({argument, yielded[extra + i]});
        results.push_back({o.results[i], argument});
        continue;
      }
      lowered.operands.push_back(o.operands[leading + i]);
      lowered.results.push_back(o.results[i]);
      arguments.push_back(argument);
      kept.push_back(yielded[extra + i]);
    }
    code_.copy_all(before, o.where);
    ++loops_;
    lower_block(body, after, kept);
    --loops_;
    body.arguments = std::move(arguments);
    lowered.blocks.push_back(std::move(body));
    code_.append(std::move(lowered));
    code_.copy_all(results, o.where);
  }

  void branch(Operation& o) {
    Operation lowered;
    lowered.op = o.op;
    lowered.where = o.where;
    lowered.operands = o.operands;
    for (const ValueId result : o.results) {
      if (!code_.in_registers(result)) lowered.results.push_back(result);
    }
    for (ir::Block& block : o.blocks) {
      const std::vector<ValueId> yielded = block.body.back().operands;
      RoleCode::Moves after;
      std::vector<ValueId> kept;
      for (std::size_t i = 0; i < o.results.size(); ++i) {
        if (code_.in_registers(o.results[i])) {
          after.push_back({o.results[i], yielded[i]});
        } else {
          kept.push_back(yielded[i]);
        }
      }
      lower_block(block, after, kept);
      lowered.blocks.push_back(std::move(block));
    }
    code_.append(std::move(lowered));
  }

  // A block whose tiles are passed on by copies (or stay in place) and whose scalars are yielded.
  void lower_block(ir::Block& block, const RoleCode::Moves& moves,
                   const std::vector<ValueId>& yielded) {
    Operation yield = std::move(block.body.back());
    block.body.pop_back();
    yield.operands = yielded;
    std::vector<Operation> outer = code_.begin_block();
    for (Operation& operation : block.body) visit(operation);
    code_.copy_all(moves, yield.where);
    products_.end_block();
    code_.append(std::move(yield));
    block.body = code_.end_block(std::move(outer));
  }

  RoleCode code_;
  Views views_;
  ReductionLowering reductions_;
  ConversionLowering conversions_;
  ProductLowering products_;
  TensorMemoryLowering tensor_memory_;
  TransferLowering transfers_;
  int loops_ = 0;  // around what is lowered
};

Operation plain(Op op, std::vector<ValueId> operands, ir::Attributes attributes,
                SourceLocation where) {
  Operation o;
  o.op = op;
  o.operands = std::move(operands);
  o.attributes = std::move(attributes);
  o.where = where;
  return o;
}

// Registers that a thread has from the launch: setmaxnreg gives to a role or takes from it.
Operation set_registers(const ir::Kernel& kernel, const Operation& role) {
  const std::int64_t at_launch =
      launch_registers(target::target_of(kernel).limits, kernel.resident * kernel.threads);
  const std::int64_t budget = role.attributes.integer(Key::registers);
  return plain(Op::set_max_registers, {},
               {{Key::count, budget}, {Key::increase, std::int64_t{budget > at_launch}}},
               role.where);
}

// CTAs for which the only role's budget leaves registers.
std::int64_t resident_ctas(const ir::Kernel& kernel, const Operation& role) {
  const std::int64_t registers = kernel.threads * role.attributes.integer(Key::registers);
  return std::max<std::int64_t>(1, target::target_of(kernel).limits.registers / registers);
}

void lower_role(ir::Kernel& kernel, const Places& places, const OutsideBoxes& outside,
                Operation& role, bool sets_registers) {
  RoleLowering lowering(kernel, places, outside, role);
  lowering.lower(role.blocks[0]);
  std::vector<Operation>& lowered = role.blocks[0].body;
  std::vector<Operation> body;
  if (sets_registers) body.push_back(set_registers(kernel, role));
  for (Operation& array : lowering.declarations(role.where)) body.push_back(std::move(array));
  body.insert(body.end(), std::make_move_iterator(lowered.begin()),
              std::make_move_iterator(lowered.end()));
  lowered = std::move(body);
}

}  // namespace

void bufferise(ir::Kernel& kernel) {
  const OutsideBoxes outside(kernel);
  std::vector<Operation> source = std::move(kernel.body.body);
  Places places;
  for (const Operation& o : source) {
    if (ir::info(o.op).is_place()) places[o.results[0]] = &o;
  }
  const target::Target& target = target::target_of(kernel);
  const std::int64_t group_warps = target.limits.group_warps;
  const auto of_warpgroups = [&](const Operation& role) {
    return role.attributes.integer(Key::warps) % group_warps == 0;
  };
  const bool cluster = kernel.cluster > 1;
  // The only role has its registers from the launch, and leaves the others to further CTAs.
  const bool alone = std::count_if(source.begin(), source.end(),
                                   [](const Operation& o) { return o.op == Op::role; }) == 1;
  // Where registers cannot change hands, all threads keep those of the launch.
  const bool budgets = !alone && target.has(ir::info(Op::set_max_registers));
  std::vector<Operation> prefetches, initialise, body, rest;
  for (Operation& o : source) {
    if (o.op == Op::role) lower_role(kernel, places, outside, o, budgets && of_warpgroups(o));
    if (o.op == Op::role && alone) kernel.resident = resident_ctas(kernel, o);
    if (o.op == Op::tensor_map && !o.attributes.has(Key::peers)) {
      prefetches.push_back(plain(Op::prefetch_map, {o.results[0]}, {}, o.where));
    }
    if (o.op != Op::mbarriers) continue;
    const std::int64_t arrivals = o.attributes.integer(Key::arrivals);
    initialise.push_back(
        plain(Op::mbarrier_init, {o.results[0]}, {{Key::arrivals, arrivals}}, o.where));
  }
  // Only now: lowering the roles looks places up where they stand.
  std::set<std::int64_t> shared_warpgroups;
  for (Operation& o : source) {
    if (o.op == Op::role && budgets && !of_warpgroups(o)) {
      const std::int64_t first = o.attributes.integer(Key::first_warp) / group_warps * group_warps;
      if (shared_warpgroups.insert(first).second) {
        rest.push_back(set_registers(kernel, o));
        rest.back().attributes.set(Key::first_warp, first);
      }
    }
    (ir::info(o.op).is_place() ? body : rest).push_back(std::move(o));
  }
  if (!initialise.empty()) {
    initialise.push_back(plain(Op::fence_barrier_init, {}, {}, kernel.where));
    initialise.push_back(plain(cluster ? Op::cluster_sync : Op::cta_sync, {}, {}, kernel.where));
  }
  // A CTA may not end while others of its cluster still arrive on its barriers.
  if (cluster) rest.push_back(plain(Op::cluster_sync, {}, {}, kernel.where));
  for (std::vector<Operation>* part : {&prefetches, &initialise, &rest}) {
    body.insert(body.end(), std::make_move_iterator(part->begin()),
                std::make_move_iterator(part->end()));
  }
  kernel.body.body = std::move(body);
  kernel.form = ir::Form::machine;
}

}  // namespace tilewright::passes
