#include "passes/convert_layouts.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "passes/assign_layouts.h"
#include "passes/drop_conversions.h"

namespace tilewright::passes {
namespace {

using ir::Key;
using ir::Op;
using ir::Operation;
using ir::RegisterLayout;
using ir::Type;
using ir::ValueId;
using At = LayoutConflict::At;

constexpr int kMost = 200;          // conversions of a kernel
constexpr std::size_t kChain = 12;  // operations that are done twice rather than convert

class Converting {
 public:
  explicit Converting(ir::Kernel& kernel) : kernel_(kernel) {}

  int run() {
    int left = 0;
    for (int made = 0; made < kMost; ++made) {
      const std::vector<Type> types = kernel_.types;
      std::optional<LayoutConflict> conflict = find_layout_conflict(kernel_);
      if (!conflict) drop_conversions(kernel_, false);  // those that were not needed after all
      left = count();
      kernel_.types = types;
      // What cannot be resolved, assign_layouts reports.
      if (!conflict || !resolve(std::move(*conflict))) break;
    }
    return left;
  }

 private:
  int count() const {
    int conversions = 0;
    ir::for_each(kernel_.body, [&](const Operation& o) {
      conversions +=
          o.op == Op::convert && !moves_nothing(kernel_, o) && !stays_in_lanes(kernel_, o);
    });
    return conversions;
  }

  bool resolve(LayoutConflict conflict) {
    if (conflict.at == At::nothing) return false;
    if (const Operation* product = narrow_product()) {
      return apply({product, At::operand, 0, {}, {}, {}, {}}, kernel_.body);
    }
    const Operation& o = *conflict.operation;
    if (conflict.at == At::itself) {
      // Parts of tiles of more axes are runs of one of them.
      if (o.op == Op::slice && cut_axes(o) > 1 && kernel_.type(o.results[0]).shape.size() > 2) {
        return false;
      }
    } else {
      const ValueId value =
          conflict.at == At::operand ? o.operands[conflict.index] : o.results[conflict.index];
      if (!kernel_.type(value).is_tile()) return false;
      if (conflict.wanted && conflict.wanted->is_partial()) return false;
    }
    return apply(conflict, kernel_.body);
  }

  std::int64_t cut_axes(const Operation& slice) const {
    const Type &from = kernel_.type(slice.operands[0]), &to = kernel_.type(slice.results[0]);
    std::int64_t cut = 0;
    for (std::size_t i = 0; i < from.shape.size(); ++i) cut += from.shape[i] != to.shape[i];
    return cut;
  }

  // A product whose first operand is computed and of bytes: these lie as no other tile does, and
  // are best moved when they are as narrow as that.
  const Operation* narrow_product() const {
    std::map<ValueId, const Operation*> made;
    const Operation* found = nullptr;
    ir::for_each(kernel_.body, [&](const Operation& o) {
      for (const ValueId result : o.results) made[result] = &o;
      if (!ir::info(o.op).is_asynchronous_product()) return;
      const Type& a = kernel_.type(o.operands[0]);
      if (!a.is_tile() || size_of(a.dtype) != 1) return;
      const auto by = made.find(o.operands[0]);
      if (by == made.end() || by->second->op != Op::convert) found = &o;
    });
    return found;
  }

  bool apply(const LayoutConflict& conflict, ir::Block& block) {
    for (std::size_t i = 0; i < block.body.size(); ++i) {
      Operation& o = block.body[i];
      for (ir::Block& inner : o.blocks) {
        if (apply(conflict, inner)) return true;
      }
      if (&o != conflict.operation) continue;
      if (conflict.at == At::itself) {
        std::vector<Operation> made;
        convert(o.operands[0], o.results[0], o.where, made);
        for (Operation& part : made) {
          if (part.op == Op::convert) part.attributes = o.attributes;
        }
        block.body.erase(block.body.begin() + static_cast<std::ptrdiff_t>(i));
        insert(block, i, std::move(made));
        return true;
      }
      const bool before = conflict.at == At::operand;
      ValueId& value = before ? o.operands[conflict.index] : o.results[conflict.index];
      if (before && converted_.count(value) != 0) return choose(value, conflict);
      const ValueId other = kernel_.add_value(unlaid(value));
      std::vector<Operation> made;
      if (!before) {
        convert(other, value, o.where, made);
      } else if (!compute_again(value, other, made)) {
        convert(value, other, o.where, made);
      }
      if (o.op == Op::reduce && before) {
        made.back().attributes.set(Key::layout, *conflict.wanted);
      }
      value = other;
      insert(block, before ? i : i + 1, std::move(made));
      return true;
    }
    return false;
  }

  static void insert(ir::Block& block, std::size_t at, std::vector<Operation> made) {
    block.body.insert(block.body.begin() + static_cast<std::ptrdiff_t>(at),
                      std::make_move_iterator(made.begin()), std::make_move_iterator(made.end()));
  }

  Type unlaid(ValueId value) const {
    return Type::tile(kernel_.type(value).dtype, kernel_.type(value).shape);
  }

  // Shared memory holds numbers: booleans pass as 0 and 1.
  void convert(ValueId from, ValueId to, SourceLocation where, std::vector<Operation>& made) {
    const auto append = [&](Op op, std::vector<ValueId> operands, ValueId result) {
      Operation o;
      o.op = op;
      o.operands = std::move(operands);
      o.results = {result};
      o.where = where;
      made.push_back(std::move(o));
      return result;
    };
    if (kernel_.type(from).dtype != DType::boolean) {
      converted_.insert(append(Op::convert, {from}, to));
      return;
    }
    const auto number = [&](std::int64_t n) {
      const ValueId value = append(Op::constant, {}, kernel_.add_value(Type::scalar(DType::i32)));
      made.back().attributes = {{Key::value, n}};
      return value;
    };
    const Type type = Type::tile(DType::i32, kernel_.type(from).shape);
    const Type as = Type::tile(DType::i32, kernel_.type(to).shape);
    const ValueId zero = number(0), one = number(1);
    const ValueId chosen = append(Op::select, {from, one, zero}, kernel_.add_value(type));
    const ValueId moved = append(Op::convert, {chosen}, kernel_.add_value(as));
    converted_.insert(moved);
    append(Op::ne, {moved, zero}, to);
  }

  // What is made of indices and numbers alone is computed once more, as it is needed here.
  bool compute_again(ValueId value, ValueId as, std::vector<Operation>& made) {
    std::map<ValueId, const Operation*> definitions;
    ir::for_each(kernel_.body, [&](const Operation& o) {
      for (const ValueId result : o.results) definitions[result] = &o;
    });
    std::vector<const Operation*> chain;
    if (!collect(value, definitions, chain)) return false;
    std::map<ValueId, ValueId> instead{{value, as}};
    for (const Operation* o : chain) {
      Operation copy = *o;
      copy.attributes.erase(Key::layout);
      for (ValueId& operand : copy.operands) {
        if (const auto at = instead.find(operand); at != instead.end()) operand = at->second;
      }
      const ValueId was = o->results[0];
      if (was != value) instead[was] = kernel_.add_value(unlaid(was));
      copy.results = {instead.at(was)};
      made.push_back(std::move(copy));
    }
    return true;
  }
  // The operations that make the value, operands first; false where they are many, or not pure
  // arithmetic.
  bool collect(ValueId value, const std::map<ValueId, const Operation*>& definitions,
               std::vector<const Operation*>& chain) const {
    if (!kernel_.type(value).is_tile()) return true;
    const auto at = definitions.find(value);
    if (at == definitions.end()) return false;
    const Operation& o = *at->second;
    if (std::find(chain.begin(), chain.end(), &o) != chain.end()) return true;
    if (o.op != Op::splat && o.op != Op::iota && !ir::info(o.op).elementwise()) return false;
    for (const ValueId operand : o.operands) {
      if (!collect(operand, definitions, chain)) return false;
    }
    chain.push_back(&o);
    return chain.size() <= kChain;
  }

  // What is converted already, but lay as before since nobody had asked for anything else yet.
  bool choose(ValueId value, const LayoutConflict& conflict) {
    bool chosen = false;
    ir::for_each(kernel_.body, [&](Operation& o) {
      if (o.op != Op::convert || o.results[0] != value || o.attributes.has(Key::layout)) return;
      o.attributes.set(Key::layout, *conflict.wanted);
      chosen = true;
    });
    return chosen;
  }

  ir::Kernel& kernel_;
  std::set<ValueId> converted_;
};

// The layout of a tile as one of {rows, columns}, as many elements in row-major order. Axes are
// only joined, which no digit stands in the way of.
RegisterLayout as_matrix(const RegisterLayout& layout, std::int64_t rows, std::int64_t columns) {
  return *layout.reshaped({rows, columns});
}

// Elements of the axes before `axis`, and of those behind.
std::pair<std::int64_t, std::int64_t> around(const std::vector<std::int64_t>& shape,
                                             std::size_t axis) {
  std::int64_t before = 1, behind = 1;
  for (std::size_t i = 0; i < axis; ++i) before *= shape[i];
  for (std::size_t i = axis + 1; i < shape.size(); ++i) behind *= shape[i];
  return {before, behind};
}

// Part of a tile: row by row, at plain addresses, since the part may begin anywhere.
Conversion of_part(const Type& from, const Type& to, const std::vector<std::int64_t>& offsets) {
  Conversion made;
  const int bytes = size_of(from.dtype);
  std::size_t axis = 0;  // the last one that is cut
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    if (from.shape[i] != to.shape[i]) axis = i;
  }
  if (from.shape.size() == 2) axis = 1;
  const auto [rows, behind] = around(from.shape, axis);
  const auto [kept_rows, same] = around(to.shape, axis);
  const std::int64_t columns = from.shape[axis] * behind, kept = to.shape[axis] * same;
  made.shared = ir::SharedLayout::row_major({rows, columns}, bytes);
  made.written = as_matrix(from.layout, rows, columns);
  made.read = as_matrix(to.layout, kept_rows, kept);
  const std::int64_t first_row = from.shape.size() == 2 ? offsets[0] : 0;
  made.offset = (first_row * columns + offsets[axis] * behind) * bytes;
  return made;
}

}  // namespace

Conversion conversion(const ir::Kernel& kernel, const Operation& convert) {
  const Type &from = kernel.type(convert.operands[0]), &to = kernel.type(convert.results[0]);
  if (convert.attributes.has(Key::offsets)) {
    return of_part(from, to, convert.attributes.integers(Key::offsets));
  }
  Conversion made;
  const bool matrix = from.shape.size() == 2 && from.shape == to.shape && from.shape[1] > 1;
  const std::int64_t rows = matrix ? from.shape[0] : 1, columns = from.elements() / rows;
  const std::int64_t row_bytes = columns * size_of(from.dtype);
  made.written = as_matrix(from.layout, rows, columns);
  made.read = as_matrix(to.layout, rows, columns);
  // Swizzled, so that what lies below each other is in other banks.
  made.shared = rows % 8 == 0 && row_bytes % 16 == 0
                    ? ir::SharedLayout::panels(rows, columns, size_of(from.dtype),
                                               ir::widest_swizzle(row_bytes), convert.where)
                    : ir::SharedLayout::row_major({rows, columns}, size_of(from.dtype));
  // Of what several warps hold, one alone writes.
  const std::vector<ir::Mode> warps = from.layout.canonical().warps;
  made.within_warps = from.shape == to.shape && warps == to.layout.canonical().warps &&
                      std::none_of(warps.begin(), warps.end(), [](const ir::Mode& mode) {
                        return mode.kind == ir::ModeKind::replicate && mode.size > 1;
                      });
  return made;
}

int convert_layouts(ir::Kernel& kernel) { return Converting(kernel).run(); }

}  // namespace tilewright::passes
