#include "passes/check_accesses.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/access_bounds.h"
#include "analysis/definitions.h"
#include "ir/builder.h"

namespace tilewright::passes {
namespace {

using analysis::AxisCheck;
using analysis::BoundsFault;
using ir::Key;
using ir::Op;
using ir::Operation;
using ir::ValueId;

// A number of the kernel, or one that is known.
struct Number {
  Number(ValueId value) : value(value) {}
  Number(Dim dim) : dim(std::move(dim)) {}
  ValueId value = ir::kNoValue;
  Dim dim;  // where there is no value
};

class CheckingAccesses {
 public:
  // The facts are of the kernel as it was; the copy keeps them while this one is rewritten.
  explicit CheckingAccesses(ir::Kernel& kernel)
      : kernel_(kernel),
        before_(kernel),
        integers_(before_),
        definitions_(analysis::definitions(before_)),
        is_there_(before_.types.size()) {}

  int run() {
    visit(kernel_.body);
    return count_;
  }

 private:
  void visit(ir::Block& block) {
    std::vector<Operation> old = std::move(block.body);
    block.body.clear();
    std::vector<ValueId> own;
    for (Operation& operation : old) {
      for (ir::Block& inner : operation.blocks) visit(inner);
      ir::Builder builder(kernel_, block, operation.where);
      check(builder, operation);
      for (const ValueId result : operation.results) {
        is_there_[result] = true;
        own.push_back(result);
      }
      const bool claims = operation.op == Op::load_index && analysis::IndexClaim(operation).counted;
      const Operation claimed = claims ? operation : Operation();
      // The kernel itself sees to them.
      for (const Key key : {Key::counted, Key::ascending, Key::at_most}) {
        if (claims) operation.attributes.erase(key);
      }
      block.body.push_back(std::move(operation));
      if (claims) check_claim(builder, claimed);
    }
    for (const ValueId value : own) is_there_[value] = false;
  }

  void check(ir::Builder& at, const Operation& o) {
    const ir::OpInfo& record = ir::info(o.op);
    if (record.family == ir::Family::global_access) {
      const ValueId tensor = o.operands[record.writes(ir::Memory::global) ? 0 : 1];
      const std::size_t rank = parameter(tensor).shape.size();
      for (const AxisCheck& axis : analysis::axis_checks(o, 2, integers_)) {
        check_axis(at, tensor, axis, o.operands[2 + axis.axis], o.operands[2 + rank + axis.axis]);
      }
    } else if (record.family == ir::Family::word || record.family == ir::Family::word_wait) {
      const std::size_t rank = parameter(o.operands[0]).shape.size();
      for (const AxisCheck& axis : analysis::word_checks(o, rank, integers_)) {
        check_index(at, o.operands[0], axis, o.operands[1 + axis.axis]);
      }
    } else if (record.family == ir::Family::bulk_copy &&
               record.touches(ir::Memory::global, ir::Proxy::async)) {
      check_copy(at, o, record.completion == ir::Completion::mbarrier ? 5 : 3);
    } else if (o.op == Op::peer || o.op == Op::peer_map) {
      check_rank(at, o);
    }
  }

  // What a load gives, behind it.
  void check_claim(ir::Builder& at, const Operation& o) {
    const analysis::IndexClaim claim(o);
    ValueId least = at.constant(0);
    if (claim.ascending) {
      const ValueId before =
          at.binary(Op::max, at.binary(Op::sub, o.operands[1], at.constant(1)), at.constant(0));
      least = at.binary(Op::max, least,
                        at.value(Op::load_index, {o.operands[0], before}, ir::Type::scalar(i32)));
    }
    const ValueId value = o.results[0];
    const ValueId most = at.dim(claim.at_most.value_or(Dim(std::int64_t{INT32_MAX})));
    emit(at, parameter(o.operands[0]).name + " gives {}, and may give {} to {} there",
         both(at, le(at, least, value), le(at, value, most)), {value, least, most}, ir::kNoValue);
  }

  // Without a limit the access ends with its tensor, as copies do.
  void check_axis(ir::Builder& at, ValueId tensor, const AxisCheck& axis, ValueId start,
                  std::optional<ValueId> limit) {
    if (axis.size == 0) return check_index(at, tensor, axis, start);
    check_begin(at, tensor, axis, start, limit);
    if (!axis.loaded_end) return;
    // The end of what is accessed: the limit, or where the block ends.
    const Dim extent = this->extent(tensor, axis);
    const ValueId holds =
        any(at, {le(at, *limit, start), le(at, *limit, extent), le(at, start, extent - axis.size)});
    emit(at, BoundsFault::end, tensor, axis, holds, {start, *limit});
  }

  void check_index(ir::Builder& at, ValueId tensor, const AxisCheck& axis, ValueId start) {
    const Dim extent = this->extent(tensor, axis);
    const auto known = number(start);
    if (known && *known >= 0 && extent.is_constant() && *known < extent.constant()) return;
    const ValueId holds = both(at, le(at, Dim(0), start), lt(at, start, extent));
    emit(at, BoundsFault::index, tensor, axis, holds, {start});
  }

  void check_begin(ir::Builder& at, ValueId tensor, const AxisCheck& axis, ValueId start,
                   std::optional<ValueId> limit) {
    if (!axis.counted && !axis.placed) return;
    ValueId holds = axis.counted ? le(at, Dim(0), start) : lt(at, Dim(-axis.size), start);
    if (axis.placed) holds = both(at, holds, lt(at, start, extent(tensor, axis)));
    if (axis.loaded_end) holds = any(at, {le(at, *limit, start), holds});
    emit(at, BoundsFault::begin, tensor, axis, holds, {start});
  }

  static bool is_choice(const Operation& map) {
    return ir::info(map.op).family == ir::Family::map_choice;
  }

  void check_copy(ir::Builder& at, const Operation& o, std::size_t first) {
    const Operation* map = definitions_[o.operands[0]];
    while (is_choice(*map)) map = definitions_[map->operands[0]];
    const std::size_t rank = map->attributes.integers(Key::box).size();
    for (const AxisCheck& axis : analysis::coordinate_checks(o, first, *map, integers_)) {
      check_axis(at, map->operands[0], axis, o.operands[first + rank - 1 - axis.axis], {});
    }
    if (!map->attributes.has(Key::ragged)) return;
    // What the copy is told there is its row, further on by what of the tensor is behind its end.
    const auto axis = static_cast<std::size_t>(map->attributes.integer(Key::ragged));
    const ValueId told = o.operands[first + rank - 1 - axis], end = o.operands[first + rank];
    const auto source = integers_.source(told);
    if (!source) return;
    const ir::Parameter& tensor = parameter(map->operands[0]);
    const ValueId row =
        at.binary(Op::sub, at.binary(Op::add, told, end), at.dim(tensor.shape[axis]));
    emit(at, "row {} of " + tensor.name + ", by a copy that ends before it does",
         le(at, Dim(0), row), {row}, *source);
  }

  void check_rank(ir::Builder& at, const Operation& o) {
    const ValueId rank = o.operands[1];
    const auto source = integers_.source(rank);
    if (!source) return;
    const Dim ranks = this->ranks();
    const Operation* map = definitions_[o.operands[0]];
    const ValueId tensor = map ? map->operands[0] : o.operands[0];
    const ValueId holds = both(at, le(at, Dim(0), rank), lt(at, rank, ranks));
    emit(at, parameter(tensor).name + " of rank {}, and there are {}", holds, {rank, at.dim(ranks)},
         *source);
  }

  // How many there are. A launch tells it to a kernel that has the dim.
  Dim ranks() {
    const auto named = std::find_if(kernel_.dims.begin(), kernel_.dims.end(),
                                    [](const Dim& dim) { return dim.name() == ir::kRanks; });
    if (named != kernel_.dims.end()) return *named;
    return kernel_.dims.emplace_back(Dim::symbol(ir::kRanks, {1, 1, ir::kMaximumRanks}));
  }

  void emit(ir::Builder& at, BoundsFault fault, ValueId tensor, const AxisCheck& axis,
            ValueId holds, std::vector<ValueId> numbers) {
    numbers.push_back(at.dim(extent(tensor, axis)));
    emit(at, analysis::bounds_message(fault, axis.axis, parameter(tensor).name), holds,
         std::move(numbers), axis.source);
  }

  void emit(ir::Builder& at, std::string message, ValueId holds, std::vector<ValueId> numbers,
            ValueId source) {
    // What a branch or a loop hands on may be made of a number that is not there behind it.
    if (source != ir::kNoValue && (!definitions_[source] || is_there_[source])) {
      message += analysis::source_message();
      numbers.push_back(source);
    }
    numbers.insert(numbers.begin(), holds);
    at.append(Op::check, std::move(numbers), {}, {{Key::message, std::move(message)}});
    ++count_;
  }

  const ir::Parameter& parameter(ValueId tensor) const { return *kernel_.parameter_of(tensor); }
  Dim extent(ValueId tensor, const AxisCheck& axis) const {
    return parameter(tensor).shape[axis.axis];
  }
  std::optional<std::int64_t> number(ValueId value) const {
    return analysis::integer_constant(definitions_[value]);
  }

  // Of the other operand's dtype where one is a dimension.
  ValueId compare(ir::Builder& at, Op op, const Number& a, const Number& b) {
    const DType dtype = kernel_.type(a.value == ir::kNoValue ? b.value : a.value).dtype;
    const auto value = [&](const Number& number) {
      if (number.value != ir::kNoValue) return number.value;
      const ValueId dim = at.dim(number.dim);
      return dtype == DType::i32 ? dim : at.cast(dim, dtype);
    };
    const ValueId left = value(a);
    return at.binary(op, left, value(b));
  }
  ValueId le(ir::Builder& at, const Number& a, const Number& b) {
    return compare(at, Op::le, a, b);
  }
  ValueId lt(ir::Builder& at, const Number& a, const Number& b) {
    return compare(at, Op::lt, a, b);
  }
  static ValueId both(ir::Builder& at, ValueId a, ValueId b) {
    return at.binary(Op::logical_and, a, b);
  }
  static ValueId any(ir::Builder& at, const std::vector<ValueId>& conditions) {
    ValueId result = conditions[0];
    for (std::size_t i = 1; i < conditions.size(); ++i) {
      result = at.binary(Op::logical_or, result, conditions[i]);
    }
    return result;
  }

  ir::Kernel& kernel_;
  const ir::Kernel before_;
  const analysis::LoadedIntegers integers_;
  const std::vector<const Operation*> definitions_;
  std::vector<bool> is_there_;  // of the values of before_: those that the place at hand may read
  int count_ = 0;
};

}  // namespace

int check_accesses(ir::Kernel& kernel) { return CheckingAccesses(kernel).run(); }

}  // namespace tilewright::passes
