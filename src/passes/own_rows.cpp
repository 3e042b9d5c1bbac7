#include "passes/own_rows.h"

#include <algorithm>

#include "target/target.h"

namespace tilewright::passes {

using ir::Key;
using ir::Op;
using ir::ValueId;

analysis::OwnRows own_rows(ir::Kernel& kernel) {
  std::int64_t least = INT64_MAX, most = 0;
  ir::for_each(kernel.body, [&](const ir::Operation& o) {
    if (o.op != Op::dot) return;
    const std::int64_t rows = kernel.type(o.results[0]).shape[0];
    least = std::min(least, rows);
    most = std::max(most, rows);
  });
  if (least != most || most <= target::target_of(kernel).limits.group_rows) return {};
  ir::Block begin;
  ir::Builder builder(kernel, begin, kernel.where);
  const ir::Attributes count{{Key::count, most}};
  analysis::OwnRows own;
  own.rows = most;
  own.first = builder.value(Op::own_first, {}, ir::Type::scalar(DType::i32), count);
  own.end = builder.value(Op::own_end, {}, ir::Type::scalar(DType::i32), count);
  kernel.body.body.insert(kernel.body.body.begin(), begin.body.begin(), begin.body.end());
  return own;
}

ValueId without_index(ir::Builder& builder, const analysis::Linear& linear) {
  ValueId result = builder.constant(linear.constant);
  for (const auto& [value, factor] : linear.values) {
    const ValueId term = builder.binary(Op::mul, value, builder.constant(factor));
    result = builder.binary(Op::add, result, term);
  }
  return result;
}

}  // namespace tilewright::passes
