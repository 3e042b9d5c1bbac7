#include "schedules/tensor_products.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "language/explicit_tracing.h"

namespace tilewright::schedules {
namespace {

// Registers of a result that is added to what others hold: of more there are not enough for both,
// and the sum is brought to tensor memory before.
constexpr int kMostAdded = 64;

}  // namespace

using ir::Key;
using ir::Op;
using ir::Operation;
using ir::Type;
using ir::ValueId;

ProductsInTensorMemory::Completion ProductsInTensorMemory::completion(const std::string& name,
                                                                      SourceLocation where) {
  const Type type = Type::of(Type::Kind::mbarriers, DType::i64, {placement_.groups});
  return {tracer_.place(Op::mbarriers, {}, type,
                        {{Key::name, name}, {Key::arrivals, std::int64_t{1}}}, where),
          nullptr};
}

bool ProductsInTensorMemory::declare() {
  const SourceLocation where = placement_.kernel.where;
  memory_.emplace(values_.kernel(), "tensor_memory", places_.columns(), where);
  group_.emplace(values_.kernel(), target::kGroupThreads, placement_.groups, where);
  int number = 0;
  ir::for_each(placement_.kernel.body, [&](const Operation& o) {
    if (o.op != Op::dot || !places_.is_awaited(o)) return;
    completions_[&o] = completion("product" + std::to_string(number++), o.where);
  });
  late_ = completion("products", where);
  return true;
}

void ProductsInTensorMemory::by_first_warp(const std::function<void()>& body,
                                           SourceLocation where) const {
  when(warp_index(where) == 0, body, {}, where);
}

void ProductsInTensorMemory::begin_role(std::optional<NamedBarrier>& all) {
  const SourceLocation where = placement_.kernel.where;
  const auto allocate = [&] {
    memory_->allocate(where);
    relinquish_tensor_memory(where);
  };
  when(values_.group() * target::kGroupWarps + warp_index(where) == 0, allocate, {}, where);
  all->sync();
  const TensorColumns taken = memory_->attach(where);
  const Index group = values_.group();
  const int sharing = places_.groups_of_columns();
  own_ = taken.columns(group / sharing * places_.width(), places_.width());
  if (sharing > 1) own_ = own_->half(group % sharing);
  for (auto& [dot, each] : completions_) {
    each.phase = std::make_unique<Cell<Index>>(Index(0, dot->where), dot->where);
  }
  late_.phase = std::make_unique<Cell<Index>>(Index(0, where), where);
}

void ProductsInTensorMemory::end_role(std::optional<NamedBarrier>& all) {
  const SourceLocation where = placement_.kernel.where;
  late_.phase.reset();
  for (auto& [dot, each] : completions_) each.phase.reset();
  all->sync();  // nobody reads what is freed
  when(
      values_.group() * target::kGroupWarps + warp_index(where) == 0, [&] { memory_->free(where); },
      {}, where);
}

TensorColumns ProductsInTensorMemory::columns(const TensorPlan::Columns& part,
                                              SourceLocation where) const {
  return own_->columns({Index(part.first, where), where}, part.count);
}

void ProductsInTensorMemory::commit(const Completion& to, SourceLocation where) {
  plain(tracer_, Op::tcgen05_commit, {to.barriers, values_.id(values_.group())}, {}, where);
}

void ProductsInTensorMemory::wait(Completion& for_, SourceLocation where) {
  const Index phase = *for_.phase;
  tracer_.append(Op::mbarrier_wait, {for_.barriers, values_.id(values_.group()), values_.id(phase)},
                 {}, {}, where);
  *for_.phase = 1 - phase;
}

// All warps of the warpgroup have, behind it.
void ProductsInTensorMemory::store(const TensorColumns& to, ValueId tile, SourceLocation where) {
  tilewright::store(to, Tile(tracer_.handle(tile)), where);
  group_->sync(values_.group());
}

void ProductsInTensorMemory::issue(const Operation& o) {
  const ValueId result = o.results[0];
  const Source a = placement_.source_of(o.operands[0]),
               second = placement_.source_of(o.operands[1]);
  const SharedView b = right(second, result);
  const TensorColumns to = columns(places_.result(result), o.where);
  const ValueId sum = o.operands.size() > 2 ? o.operands[2] : ir::kNoValue;
  const bool in_place = sum != ir::kNoValue && places_.stays(sum);
  const bool brought =
      sum != ir::kNoValue && !in_place &&
      (places_.stays(result) || to.count() / places_.groups_of_columns() > kMostAdded);
  if (brought) store(to, values_[sum], o.where);
  if (in_place && places_.is_mixed(result)) finish_all(o.where);
  std::optional<TensorColumns> operand;
  if (places_.has_operand(o)) {
    operand = columns(places_.operand(o), o.where);
    store(*operand, values_[o.operands[0]], o.where);
  } else if (!in_place && !brought) {
    // Nobody reads any more what was in these columns.
    group_->sync(values_.group());
  }
  const auto completes = completions_.find(&o);
  const auto multiply = [&](const auto& first) {
    by_first_warp(
        [&] {
          mma(to, first, b, Condition(in_place || brought, o.where), o.where);
          if (completes != completions_.end()) commit(completes->second, o.where);
        },
        o.where);
  };
  if (operand) {
    multiply(*operand);
  } else {
    multiply(left(a, result));
  }
  const std::size_t number = issued_++;
  if (completes == completions_.end()) return;
  const ValueId added = in_place || brought || sum == ir::kNoValue ? ir::kNoValue : values_[sum];
  in_flight_.push_back({number, result, added, &o});
}

// What products read of it is behind a commit; registers have been read before.
void ProductsInTensorMemory::release_behind(ValueId load, const Operation& o) {
  loads_.release_read(o);
  loads_.release(load, o);
}

// What a loop carries in tensor memory is brought there.
void ProductsInTensorMemory::enter(const Operation& o) {
  constexpr std::size_t kLoopOperands = 3;
  for (std::size_t i = 0; o.op == Op::for_loop && i < o.results.size(); ++i) {
    const ValueId initial = o.operands[kLoopOperands + i];
    if (!places_.made_there(o.results[i]) || places_.stays(initial)) continue;
    store(columns(places_.result(o.results[i]), o.where), values_[initial], o.where);
  }
}

void ProductsInTensorMemory::leave(const Operation& o) {
  for (const ValueId result : o.results) {
    if (!places_.made_there(result) || places_.stays(result)) continue;
    in_flight_.push_back({issued_++, result, ir::kNoValue, nullptr});
  }
}

void ProductsInTensorMemory::finish_for(const Operation& o) {
  std::set<ValueId> read(o.operands.begin(), o.operands.end());
  for (const ir::Block& inner : o.blocks) {
    ir::for_each(inner, [&](const Operation& nested) {
      read.insert(nested.operands.begin(), nested.operands.end());
    });
  }
  std::vector<InFlight> all = std::exchange(in_flight_, {});
  for (const InFlight& product : all) {
    if (!places_.stays(product.result) && read.count(product.result) != 0) {
      finish(product, true, o);
    } else {
      in_flight_.push_back(product);
    }
  }
}

void ProductsInTensorMemory::finish_value(ValueId value, const Operation& o) {
  const auto found = std::find_if(in_flight_.begin(), in_flight_.end(),
                                  [&](const InFlight& p) { return p.result == value; });
  if (found == in_flight_.end()) return;
  finish(*found, true, o);
  in_flight_.erase(found);
}

void ProductsInTensorMemory::finish_from(std::size_t count, const Operation& o) {
  std::vector<InFlight> all = std::exchange(in_flight_, {});
  for (const InFlight& product : all) {
    if (product.number >= count) {
      finish(product, false, o);
    } else {
      in_flight_.push_back(product);
    }
  }
}

// Waits for all products.
void ProductsInTensorMemory::finish_all(SourceLocation where) {
  group_->sync(values_.group());  // all have waited for the commit before
  by_first_warp([&] { commit(late_, where); }, where);
  wait(late_, where);
  over_ = issued_;
}

void ProductsInTensorMemory::finish(const InFlight& product, bool is_read, const Operation& o) {
  if (product.by) {
    wait(completions_.at(product.by), o.where);
  } else if (product.number >= over_) {
    finish_all(o.where);
  }
  if (!is_read) return;
  const SourceLocation where = product.by ? product.by->where : o.where;
  ValueId value = values_.id(load(columns(places_.result(product.result), where), where));
  if (product.sum != ir::kNoValue) {
    value = tracer_.emit(Op::add, {product.sum, value}, tracer_.type(value), {}, where);
  }
  values_[product.result] = value;
}

}  // namespace tilewright::schedules
