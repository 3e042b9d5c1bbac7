#include <algorithm>

#include "analysis/carried.h"
#include "schedules/declared_maps.h"
#include "schedules/placement.h"
#include "support/diagnostic.h"

// How tiles are spread over warpgroups.
namespace tilewright::schedules {

using ir::Op;
using ir::Operation;
using ir::Type;
using ir::ValueId;

namespace {

constexpr int kWholeRows = 2 * kGroupRows;  // of a product that takes all lanes of tensor memory

}  // namespace

// What the schedule states, and the compiler's choice of the rest.
void Placement::divide() {
  const Schedule& stated = kernel.schedule;
  ctas = stated.ctas.value_or(1);
  const bool whole_rows = takes_whole_lanes();
  const bool whole_columns = !whole_rows && takes_whole_columns();
  if (whole_rows || whole_columns) group_rows = kWholeRows;
  const auto rows_groups = static_cast<int>(rows / group_rows);
  const bool more_groups = rows == kGroupRows && stated.warpgroups.value_or(1) > 1;
  const bool columns_suit = by_columns() || more_groups || whole_columns;
  const Partition usual = columns_suit ? Partition::columns : Partition::rows;
  if (stated.partition.value_or(usual) == Partition::columns) return divide_columns();
  if (by_columns()) {
    refused("partition", stated.partition,
            "results are " + std::to_string(rows) + " x " + std::to_string(wide) +
                ", and a warpgroup's products have at most " +
                std::to_string(limits.product_columns) + " columns")
        .fix("state columns, or take narrower results")
        .raise();
  }
  groups = rows_groups;
  if (stated.warpgroups.value_or(groups) == groups) return;
  const int wanted = stated.warpgroups.value();
  refused("warpgroups", stated.warpgroups,
          "the products' results have " + std::to_string(rows) +
              " rows, and each warpgroup computes " + std::to_string(kGroupRows) + " of them")
      .fix("state " + std::to_string(groups) + ", or take blocks of " +
           std::to_string(wanted * kGroupRows) + " rows" +
           (rows == kGroupRows ? " or partition = columns" : ""))
      .raise();
}

// Whether it is stated that a warpgroup has 128 rows, each in a lane of its own of tensor memory.
bool Placement::takes_whole_lanes() const {
  const Schedule& stated = kernel.schedule;
  const bool whole = std::all_of(row_counts_.begin(), row_counts_.end(),
                                 [](const auto& each) { return each.first % kWholeRows == 0; });
  return in_tensor_memory() && whole && wide == 0 && stated.warpgroups.is_set() &&
         stated.warpgroups.value() == rows / kWholeRows &&
         stated.partition.value_or(Partition::rows) == Partition::rows;
}

// Whether warpgroups share the columns of products of 128 rows: that is stated, or two have half of
// the columns each, and no operation minds. Products of 64 rows by each would take twice as long.
bool Placement::takes_whole_columns() const {
  const Schedule& stated = kernel.schedule;
  if (!in_tensor_memory() || rows != kWholeRows || row_counts_.size() > 1 || wide != 0) {
    return false;
  }
  if (stated.partition.is_set()) return stated.partition.value() == Partition::columns;
  constexpr int kGroups = 2, kLeast = 64;  // columns of each, below which operands bound products
  const std::int64_t own = widest_ / kGroups;
  if (stated.warpgroups.value_or(kGroups) != kGroups || widest_ % kGroups != 0 || own < kLeast ||
      own % limits.product_column_unit != 0 || declares || agrees) {
    return false;
  }
  const auto is_wide = [&](ValueId value) {
    const Type& type = kernel.type(value);
    return type.is_tile() && type.shape.size() == 2 && type.shape[1] == widest_;
  };
  std::vector<bool> read(kernel.types.size(), false);  // by other than products
  ir::for_each(kernel.body, [&](const Operation& o) {
    if (o.op == Op::dot || o.op == Op::transpose || o.op == Op::slice) return;
    for (const ValueId operand : o.operands) read[operand] = true;
  });
  const auto is_operand = [&](const Operation& o) {
    return (o.op == Op::transpose || o.op == Op::slice) && source_of(o.results[0]).load;
  };
  bool fits = true;
  ir::for_each(kernel.body, [&](const Operation& o) {
    if (o.op == Op::dot) {
      const Source a = source_of(o.operands[0]), b = source_of(o.operands[1]);
      fits = fits && is_wide(o.results[0]) && a.load && a.columns != widest_ && b.load &&
             (b.transposed || own % panel_columns(kernel.type(b.value)) == 0);
      return;
    }
    const bool takes = !o.blocks.empty() || ir::info(o.op).elementwise() || o.op == Op::yield ||
                       o.op == Op::load || o.op == Op::store || o.op == Op::splat ||
                       (is_operand(o) && !read[o.results[0]]);
    fits = fits && (takes || (std::none_of(o.operands.begin(), o.operands.end(), is_wide) &&
                              std::none_of(o.results.begin(), o.results.end(), is_wide)));
  });
  return fits;
}

// All warpgroups have the rows of one product, and each a part of its columns.
void Placement::divide_columns() {
  const Schedule& stated = kernel.schedule;
  const auto refuse = [&](const std::string& why, const std::string& fix) {
    if (stated.partition.is_set()) refused("partition", stated.partition, why).fix(fix).raise();
    refused("warpgroups", stated.warpgroups, why).fix(fix).raise();
  };
  if (rows != group_rows) {
    refuse("the products' results have " + std::to_string(rows) +
               " rows, and warpgroups that share columns all have the same " +
               std::to_string(group_rows),
           "state rows, or take blocks of " + std::to_string(group_rows) + " rows");
  }
  const std::int64_t least = (widest_ + limits.product_columns - 1) / limits.product_columns;
  wide = widest_;
  groups = stated.warpgroups.value_or(static_cast<int>(std::max<std::int64_t>(least, 2)));
  const std::int64_t own = wide / groups;
  if (groups < std::max<std::int64_t>(least, 2)) {
    refused("warpgroups", stated.warpgroups,
            std::to_string(wide) + " columns are for " +
                std::to_string(std::max<std::int64_t>(least, 2)) + " warpgroups or more")
        .fix("state more, or partition = rows where the results have at most " +
             std::to_string(limits.product_columns) + " columns")
        .raise();
  }
  if (wide % groups == 0 && own % limits.product_column_unit == 0) return;
  refuse(std::to_string(wide) + " columns over " + std::to_string(groups) +
             " warpgroups are no multiple of " + std::to_string(limits.product_column_unit) +
             " for each",
         "state other warpgroups, or take other columns");
}

// Tiles of one axis that are reshaped from or to a column, and those computed together with them.
void Placement::find_columns() {
  const auto is_vector = [&](ValueId v) {
    return kernel.type(v).is_tile() && kernel.type(v).shape.size() == 1;
  };
  bool changed = true;
  const auto mark = [&](ValueId value) {
    if (!is_vector(value) || columns[value]) return;
    columns[value] = changed = true;
  };
  while (changed) {
    changed = false;
    ir::for_each(kernel.body, [&](const Operation& o) {
      for (std::size_t i = 0; i < o.results.size() && !o.blocks.empty(); ++i) {
        std::vector<ValueId> one{o.results[i]};  // variable, and what it holds by and by
        for (const ir::Block& block : o.blocks) {
          if (o.op != Op::while_loop) one.push_back(block.body.back().operands[i]);
          if (o.op == Op::for_loop) one.push_back(block.arguments[1 + i]);
        }
        if (o.op == Op::for_loop) one.push_back(o.operands[3 + i]);
        if (std::none_of(one.begin(), one.end(), [&](ValueId v) { return columns[v]; })) continue;
        for (const ValueId value : one) mark(value);
      }
      if (o.results.size() != 1) return;
      const ValueId result = o.results[0];
      if (o.op == Op::reshape) {
        const auto is_column = [&](ValueId v) {
          const std::vector<std::int64_t>& shape = kernel.type(v).shape;
          return shape.size() == 2 && shape[1] == 1 && row_counts_.count(shape[0]) != 0;
        };
        if (is_column(result)) mark(o.operands[0]);
        if (is_column(o.operands[0])) mark(result);
      } else if ((ir::info(o.op).elementwise() || is_declared(o)) && is_vector(result)) {
        bool any = columns[result];
        for (const ValueId operand : o.operands) any |= columns[operand];
        if (!any) return;
        mark(result);
        for (const ValueId operand : o.operands) mark(operand);
      }
    });
  }
}

bool Placement::has_rows(ValueId value) const {
  const Type& type = kernel.type(value);
  if (!type.is_tile() || type.shape.empty() || row_counts_.count(type.shape[0]) == 0) return false;
  return type.shape.size() > 1 || columns[value];
}

int Placement::row_parts(ValueId value) const {
  if (by_columns() || !has_rows(value)) return 1;
  return static_cast<int>(kernel.type(value).shape[0] / group_rows);
}

int Placement::column_parts(ValueId value) const {
  if (spread_[value]) return groups / row_parts(value);
  const Type& type = kernel.type(value);
  return by_columns() && type.is_tile() && type.shape.size() == 2 && type.shape[1] == wide ? groups
                                                                                           : 1;
}

// Of columns that lie side by side in shared memory.
std::int64_t Placement::panel_columns(const Type& type) const {
  const int bytes = size_of(type.dtype);
  return std::max<std::int64_t>(ir::widest_swizzle(type.shape[1] * bytes), limits.copy_bytes) /
         bytes;
}

// Whether each of several warpgroups may compute some columns of the product.
bool Placement::takes_parts(const Operation& dot) const {
  const Type& result = kernel.type(dot.results[0]);
  const int parts = groups / row_parts(dot.results[0]);
  const std::int64_t own = result.shape[1] / parts;
  const Source right = source_of(dot.operands[1]);
  return result.shape[1] % parts == 0 && own % limits.product_column_unit == 0 &&
         (right.transposed || own % panel_columns(kernel.type(right.value)) == 0);
}

// Of products with fewer rows than others: what is spread by columns too. Tiles that are read or
// written together are so together.
void Placement::find_spread() {
  for (ValueId v = 0; v < spread_.size(); ++v) {
    const Type& type = kernel.type(v);
    spread_[v] = type.is_tile() && type.shape.size() == 2 && type.shape[0] < rows && has_rows(v) &&
                 groups % (type.shape[0] / group_rows) == 0;
  }
  bool changed = true;
  const auto drop = [&](ValueId value) {
    changed |= spread_[value];
    spread_[value] = false;
  };
  const auto together = [&](ValueId a, ValueId b) {
    if (!spread_[a]) drop(b);
    if (!spread_[b]) drop(a);
  };
  const auto visit = [&](const Operation& o) {
    if (!o.blocks.empty() || o.op == Op::yield) return analysis::for_each_carried(o, together);
    if (o.op == Op::dot) {
      if (!takes_parts(o)) drop(o.results[0]);
      if (o.operands.size() > 2) together(o.results[0], o.operands[2]);
      for (const int side : {0, 1}) {
        drop(o.operands[side]);
        drop(source_of(o.operands[side]).value);
      }
    } else if (ir::info(o.op).elementwise()) {
      for (const ValueId operand : o.operands) {
        const Type& type = kernel.type(operand);
        if (!type.is_tile() || type.shape.back() == 1) continue;
        together(o.results[0], operand);
      }
    } else if (o.op != Op::store && o.op != Op::red_tile && o.op != Op::load && o.op != Op::splat) {
      for (const ValueId value : o.operands) drop(value);
      for (const ValueId value : o.results) drop(value);
    }
  };
  while (changed) {
    changed = false;
    ir::for_each(kernel.body, visit);
  }
}

std::string Placement::partition_text() const {
  std::string text = ir::value_text(by_columns() ? Partition::columns : Partition::rows);
  for (const auto& [count, first] : row_counts_) {
    if (count == rows) break;
    bool in_parts = true;
    ir::for_each(kernel.body, [&, count = count](const Operation& o) {
      if (o.op != Op::dot || kernel.type(o.results[0]).shape[0] != count) return;
      in_parts &= owners(o.results[0]) == groups;
    });
    text += "; of products with " + std::to_string(count) + " rows " +
            (in_parts ? "a part of the columns" : "what others have as well");
  }
  return text;
}

void Placement::unfit_for_rows(const Operation& o) const {
  const std::int64_t count = kernel.type(o.operands[0]).shape[0];
  Diagnostic(o.where, "schedule: " + std::string(ir::info(o.op).name) + ": of " +
                          std::to_string(count) + " rows, while products of the kernel have " +
                          std::to_string(rows) + ": several warpgroups have the same rows")
      .token(ir::info(o.op).name)
      .note(row_counts_.at(count)->where, "a product of " + std::to_string(count) + " rows is")
      .note(row_counts_.at(rows)->where, "one of " + std::to_string(rows) + " rows is")
      .fix("take " + std::to_string(kGroupRows) + " rows, or give both products the same")
      .raise();
}

}  // namespace tilewright::schedules
