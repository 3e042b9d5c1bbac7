#include "schedules/tensor_plan.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "support/diagnostic.h"

namespace tilewright::schedules {

using ir::Op;
using ir::Operation;
using ir::ValueId;

namespace {

constexpr std::size_t kLoopOperands = 3;  // begin, end and step
constexpr std::size_t kSumOperand = 2;    // of a product, that it adds to
constexpr int kColumnUnit = 16;           // of a place

}  // namespace

TensorPlan::TensorPlan(const Placement& placement) : placement_(placement) {
  visit(placement.kernel.body);
  find_results();
  find_places();
}

void TensorPlan::visit(const ir::Block& block) {
  for (const ValueId argument : block.arguments) defined_in_[argument] = &block;
  for (const Operation& o : block.body) {
    positions_[&o].begin = position_++;
    block_of_[&o] = &block;
    for (std::size_t i = 0; i < o.operands.size(); ++i)
      uses_[o.operands[i]].push_back({&o, i, &block});
    for (const ValueId result : o.results) defined_in_[result] = &block;
    if (o.op == Op::dot) dots_.push_back(&o);
    if (o.op == Op::for_loop) loops_.push_back(&o);
    for (const ir::Block& inner : o.blocks) visit(inner);
    positions_[&o].end = position_++;
  }
  block_ends_[&block] = position_++;
}

// Whether the value, after products that add to it and loops that carry it, is what the block
// yields as its `index`-th result. `steps` gets the value before and after each of these. A
// condition may use the value in both of its branches; within a branch (`in_branch`) only its own
// uses count.
bool TensorPlan::reaches_yield(ValueId value, const ir::Block& block, std::size_t index,
                               Steps& steps, bool in_branch) {
  while (true) {
    std::vector<Use> uses = uses_[value];
    if (std::exchange(in_branch, false)) {
      std::erase_if(uses, [&](const Use& use) { return use.block != &block; });
    }
    if (uses.size() == 1 && uses[0].block == &block && uses[0].by->op == Op::yield) {
      return uses[0].operand == index;
    }
    ValueId next = uses.size() == 1 ? taken_up(uses[0], block) : ir::kNoValue;
    steps.multiplied |= next != ir::kNoValue;
    if (next == ir::kNoValue && uses.size() == 2) next = through_condition(value, block, steps);
    if (next == ir::kNoValue) return false;
    steps.taken.emplace_back(value, next);
    value = next;
  }
}

// The result of a use that goes on with the value in tensor memory: a product that adds to it, or a
// loop that carries it. Other uses give none.
ValueId TensorPlan::taken_up(const Use& use, const ir::Block& block) {
  if (use.block != &block) return ir::kNoValue;
  const Operation& by = *use.by;
  if (by.op == Op::dot && use.operand == kSumOperand) return by.results[0];
  const bool carries = by.op == Op::for_loop && use.operand >= kLoopOperands &&
                       is_carried(by, use.operand - kLoopOperands);
  return carries ? by.results[use.operand - kLoopOperands] : ir::kNoValue;
}

// The result of a condition of which both branches go on with the value in tensor memory.
ValueId TensorPlan::through_condition(ValueId value, const ir::Block& block, Steps& steps) {
  for (const Operation& o : block.body) {
    if (o.op != Op::if_then) continue;
    for (std::size_t i = 0; i < o.results.size(); ++i) {
      Steps inside = steps;
      const auto goes_on = [&](const ir::Block& branch) {
        const std::vector<Use>& uses = uses_[value];
        const auto here = std::count_if(uses.begin(), uses.end(),
                                        [&](const Use& use) { return use.block == &branch; });
        if (here != 1 || !reaches_yield(value, branch, i, inside, true)) return false;
        inside.taken.emplace_back(branch.body.back().operands[i], o.results[i]);
        return true;
      };
      if (!goes_on(o.blocks[0]) || !goes_on(o.blocks[1])) continue;
      steps = std::move(inside);
      return o.results[i];
    }
  }
  return ir::kNoValue;
}

// Whether the loop's i-th value stays in tensor memory.
bool TensorPlan::is_carried(const Operation& loop, std::size_t i) {
  const auto known = carried_.find({&loop, i});
  if (known != carried_.end()) return known->second;
  const ir::Block& body = loop.blocks[0];
  const ValueId argument = body.arguments[1 + i];
  Steps steps;
  const bool carried = placement_.kernel.type(argument).is_tile() &&
                       reaches_yield(argument, body, i, steps) && steps.multiplied;
  carried_[{&loop, i}] = carried;
  if (!carried) return false;
  const ValueId last = body.body.back().operands[i];
  steps.taken.emplace_back(last, loop.results[i]);
  for (const auto& [from, to] : steps.taken) {
    join(from, to);
    stays_.insert(from);
  }
  join(argument, loop.results[i]);
  stays_.insert(argument);
  return true;
}

// Whether the value's only use is a product or a loop of its own block that goes on with it.
bool TensorPlan::is_taken_up(ValueId value) {
  const std::vector<Use>& uses = uses_[value];
  if (uses.size() != 1) return false;
  const ValueId next = taken_up(uses[0], *defined_in_.at(value));
  if (next == ir::kNoValue) return false;
  join(value, next);
  return true;
}

ValueId TensorPlan::root(ValueId value) const {
  for (ValueId next = web_of_.at(value); next != value; next = web_of_.at(value)) value = next;
  return value;
}

void TensorPlan::join(ValueId a, ValueId b) {
  web_of_.emplace(a, a);
  web_of_.emplace(b, b);
  web_of_[root(a)] = root(b);
}

void TensorPlan::find_results() {
  for (const Operation* loop : loops_) {
    for (std::size_t i = 0; i < loop->results.size(); ++i) (void)is_carried(*loop, i);
  }
  for (const Operation* dot : dots_) join(dot->results[0], dot->results[0]);
  std::vector<ValueId> made;
  for (const auto& [value, next] : web_of_) made.push_back(value);
  for (const ValueId value : made) {
    if (stays_.count(value) == 0 && is_taken_up(value)) stays_.insert(value);
  }
}

int TensorPlan::own_columns(ValueId value) const {
  const ir::Type& type = placement_.kernel.type(value);
  const auto columns = static_cast<int>(type.shape[1] / placement_.column_parts(value) *
                                        std::min(size_of(type.dtype), 4) / 4);
  return (columns + kColumnUnit - 1) / kColumnUnit * kColumnUnit;
}

void TensorPlan::extend(ValueId value, int begin, int end) {
  Span& span = results_.at(root(value)).span;
  span.begin = std::min(span.begin, begin);
  span.end = std::max(span.end, end);
}

// The position from which on nobody needs the value in tensor memory.
int TensorPlan::end_of(ValueId value) const {
  const auto uses = uses_.find(value);
  if (uses == uses_.end() || uses->second.empty()) return block_ends_.at(defined_in_.at(value));
  // A use that goes on with the value has a result with an end of its own.
  int first = position_;
  for (const Use& use : uses->second) first = std::min(first, positions_.at(use.by).begin);
  return first;
}

void TensorPlan::find_places() {
  for (const auto& [value, next] : web_of_) {
    Place& place = results_[root(value)];
    place.span = {position_, 0};
    place.what = "results";
  }
  for (const Operation* dot : dots_) {
    const ValueId result = dot->results[0];
    Place& place = results_.at(root(result));
    if (!place.made) place.made = dot;
    place.columns = own_columns(result);
    extend(result, positions_.at(dot).begin, positions_.at(dot).end);
    const Source a = placement_.source_of(dot->operands[0]),
                 b = placement_.source_of(dot->operands[1]);
    place.kinds.emplace(placement_.kernel.type(dot->operands[0]).dtype, a.transposed,
                        !b.transposed);
    if (a.load || a.transposed) continue;
    const int end = stays(result) ? block_ends_.at(block_of_.at(dot)) : end_of(result);
    operands_[dot] = {{positions_.at(dot).begin, std::max(end, positions_.at(dot).end)},
                      own_columns(dot->operands[0]),
                      0,
                      dot,
                      "a first operand",
                      {}};
  }
  for (const auto& [value, next] : web_of_) {
    const int end = end_of(value);
    extend(value, end, end);
  }
  for (const auto& [loop, carried] : carried_) {
    const Span& span = positions_.at(loop.first);
    if (carried) extend(loop.first->results[loop.second], span.begin, span.end);
  }
  std::vector<Place*> places;
  for (auto& [root, place] : results_) places.push_back(&place);
  for (auto& [dot, place] : operands_) places.push_back(&place);
  place(std::move(places));
}

// The largest first, each at the first columns that are free for as long as it lives.
void TensorPlan::place(std::vector<Place*> places) {
  std::stable_sort(places.begin(), places.end(), [](const Place* a, const Place* b) {
    return a->columns != b->columns ? a->columns > b->columns : a->span.begin < b->span.begin;
  });
  std::vector<const Place*> placed;
  for (Place* place : places) {
    const auto beside = [&](const Place* other) {
      return other->span.begin < place->span.end && place->span.begin < other->span.end &&
             other->first < place->first + place->columns &&
             place->first < other->first + other->columns;
    };
    while (true) {
      const auto other = std::find_if(placed.begin(), placed.end(), beside);
      if (other == placed.end()) break;
      place->first = (*other)->first + (*other)->columns;
    }
    placed.push_back(place);
    width_ = std::max(width_, place->first + place->columns);
  }
  const auto least = static_cast<int>(placement_.limits.least_tensor_columns);
  const auto all = static_cast<unsigned>(runs_of_columns() * width_);
  total_ = std::max(least, static_cast<int>(std::bit_ceil(all)));
  check_capacity(places);
}

int TensorPlan::runs_of_columns() const {
  return (placement_.groups + groups_of_columns() - 1) / groups_of_columns();
}

void TensorPlan::check_capacity(const std::vector<Place*>& places) const {
  const auto has = static_cast<int>(placement_.limits.tensor_columns) / placement_.ctas;
  if (total_ <= has) return;
  const int runs = runs_of_columns();
  const char* const each =
      groups_of_columns() > 1 ? " for each two warpgroups, " : " for each warpgroup, ";
  const std::string why =
      "products take " + std::to_string(runs * width_) + " columns of tensor memory, " +
      (runs > 1 ? std::to_string(width_) + each : "") + "and a CTA has " + std::to_string(has);
  const auto explain = [&](Diagnostic error) {
    for (const Place* place : places) {
      error.note(place->made->where, std::to_string(place->columns) + " columns, from " +
                                         std::to_string(place->first) + " on: " + place->what);
    }
    return error;
  };
  if (placement_.ctas > 1) {
    explain(refused("ctas", placement_.kernel.schedule.ctas, why))
        .fix("state fewer, or take smaller blocks")
        .raise();
  }
  explain(Diagnostic(places.front()->made->where, "schedule: dot: " + why))
      .token("dot")
      .fix("use fewer rows or columns in a block, so that fewer are needed at once")
      .raise();
}

TensorPlan::Columns TensorPlan::result(ValueId value) const {
  const auto columns = static_cast<int>(placement_.kernel.type(value).shape[1]);
  return {results_.at(root(value)).first, columns / placement_.column_parts(value)};
}

bool TensorPlan::is_mixed(ValueId value) const { return results_.at(root(value)).kinds.size() > 1; }

TensorPlan::Columns TensorPlan::operand(const Operation& dot) const {
  const ir::Type& type = placement_.kernel.type(dot.operands[0]);
  return {operands_.at(&dot).first, static_cast<int>(type.shape[1] * size_of(type.dtype) / 4)};
}

bool TensorPlan::is_awaited(const Operation& dot) const {
  if (!stays(dot.results[0])) return true;
  return !placement_.source_of(dot.operands[0]).load || !placement_.source_of(dot.operands[1]).load;
}

}  // namespace tilewright::schedules
