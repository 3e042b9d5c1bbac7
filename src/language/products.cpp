#include "language/explicit_tracing.h"
#include "target/target.h"

namespace tilewright {

using ir::Key;
using ir::Op;
using ir::Type;

namespace {

struct ProductOperand {
  ir::ValueId id;
  DType dtype;
  std::int64_t rows, columns;
};

// A declared map may be none that products read: they take core matrices or a swizzle.
void check_panels(Tracer& tracer, const SharedView& view, SourceLocation where) {
  constexpr std::int64_t kCoreBytes = 16;
  const ir::Panels panels = copied_panels(tracer, view, "wgmma", where);
  if (panels.swizzle_bytes != 0 || panels.span_bytes == kCoreBytes) return;
  const ir::Operation& place = tracer.place_operation(ExplicitTracing::shared(view));
  Diagnostic(where, "wgmma: \"" + place.attributes.text(Key::name) + "\" lies in panels of " +
                        std::to_string(panels.span_bytes) + " bytes without a swizzle")
      .token("wgmma")
      .note(place.where, "it is declared")
      .fix("declare it with a swizzle of 32, 64 or 128 bytes, or in panels of 16 bytes")
      .raise();
}

ProductOperand shared_operand(Tracer& tracer, const SharedView& view, SourceLocation where) {
  const ir::ValueId id = ExplicitTracing::emit(tracer, view, "wgmma", where);
  check_panels(tracer, view, where);
  const auto [rows, columns] = ExplicitTracing::product_shape(view);
  return {id, tracer.type(id).dtype, rows, columns};
}

ProductOperand register_operand(Tracer& tracer, const TileOperand& tile, SourceLocation where) {
  if (tile.is_number()) {
    Diagnostic(where, "wgmma: a is a number").token("wgmma").fix("use * for scaling").raise();
  }
  const ir::ValueId id = tracer.use(tile.handle, "wgmma", where);
  const Type& type = tracer.type(id);
  if (type.shape.size() != 2) {
    Diagnostic(where, "wgmma: a does not have two axes: " + type.to_string())
        .token("wgmma")
        .fix("reshape({64, k}) gives it two")
        .raise();
  }
  return {id, type.dtype, type.shape[0], type.shape[1]};
}

Pending product(Tracer& tracer, const ProductOperand& a, const SharedView& b_view,
                const Handle* accumulator, SourceLocation where) {
  const ProductOperand b = shared_operand(tracer, b_view, where);
  const auto shape = [](const ProductOperand& o) {
    return std::string(name_of(o.dtype)) + " {" + std::to_string(o.rows) + ", " +
           std::to_string(o.columns) + "}";
  };
  const auto fail = [&](const std::string& problem, const std::string& fix) {
    Diagnostic(where, "wgmma: " + problem + ": a " + shape(a) + " x b " + shape(b))
        .token("wgmma")
        .fix(fix)
        .raise();
  };
  const target::Target& target = target::target_of(tracer.kernel());
  if (!target.has(ir::info(Op::wgmma))) {
    fail(target.name + " has no such operation", "write this kernel with what the target has");
  }
  if (a.columns != b.rows) fail("inner dimensions differ", "b is {k, n}; .T() transposes a view");
  if (a.dtype != b.dtype) fail("dtypes differ", "load both with one dtype");
  const TargetLimits& limits = target.limits;
  if (!target.multiplies(a.dtype)) {
    fail("no such product", "use " + target.product_dtype_list());
  }
  const std::int64_t k = limits.product_depth_bytes / size_of(a.dtype);
  if (a.rows != limits.group_rows) {
    const std::string rows = std::to_string(limits.group_rows);
    fail("a warpgroup multiplies " + rows + " rows",
         "take a.rows(" + rows + " * group, " + rows + ")");
  }
  if (a.columns % k != 0) fail("k is no multiple of " + std::to_string(k), "pad the tile");
  if (b.columns % limits.product_column_unit != 0 || b.columns > limits.product_columns) {
    fail("n is no multiple of " + std::to_string(limits.product_column_unit) + " up to " +
             std::to_string(limits.product_columns),
         "split b");
  }
  std::vector<ir::ValueId> operands{a.id, b.id};
  const Type result = Type::of(Type::Kind::pending, f32, {a.rows, b.columns});
  if (accumulator) {
    operands.push_back(tracer.use(*accumulator, "wgmma", where));
    const Type& type = tracer.type(operands.back());
    if (type.dtype != f32 || type.shape != result.shape) {
      fail("the accumulator is " + type.to_string(), "make it with zeros({64, n})");
    }
  }
  return Pending(tracer.handle(tracer.emit(Op::wgmma, std::move(operands), result, {}, where)));
}

}  // namespace

Pending wgmma(const SharedView& a, const SharedView& b, SourceLocation where) {
  Tracer& tracer = in_role("wgmma", where);
  return product(tracer, shared_operand(tracer, a, where), b, nullptr, where);
}
Pending wgmma(const TileOperand& a, const SharedView& b, SourceLocation where) {
  Tracer& tracer = in_role("wgmma", where);
  return product(tracer, register_operand(tracer, a, where), b, nullptr, where);
}
Pending wgmma(const SharedView& a, const SharedView& b, const Tile& accumulator,
              SourceLocation where) {
  Tracer& tracer = in_role("wgmma", where);
  return product(tracer, shared_operand(tracer, a, where), b, &accumulator.handle(), where);
}
Pending wgmma(const TileOperand& a, const SharedView& b, const Tile& accumulator,
              SourceLocation where) {
  Tracer& tracer = in_role("wgmma", where);
  return product(tracer, register_operand(tracer, a, where), b, &accumulator.handle(), where);
}
Pending wgmma(const SharedView& a, const SharedView& b, const Pending& accumulator,
              SourceLocation where) {
  Tracer& tracer = in_role("wgmma", where);
  return product(tracer, shared_operand(tracer, a, where), b, &accumulator.handle(), where);
}

Pending wgmma(const TileOperand& a, const SharedView& b, const Pending& accumulator,
              SourceLocation where) {
  Tracer& tracer = in_role("wgmma", where);
  return product(tracer, register_operand(tracer, a, where), b, &accumulator.handle(), where);
}

Tile wait(const Pending& pending, SourceLocation where) {
  Tracer& tracer = in_role("wait", where);
  const ir::ValueId id = tracer.use(pending.handle(), "wait", where);
  return Tile(tracer.handle(tracer.emit(Op::wait, {id}, as_tile(tracer.type(id)), {}, where)));
}

void retire(const Pending& pending, SourceLocation where) {
  Tracer& tracer = in_role("retire", where);
  plain(tracer, Op::retire, {tracer.use(pending.handle(), "retire", where)}, {}, where);
}

Pending as_pending(const TileOperand& tile, SourceLocation where) {
  Tracer& tracer = in_role("as_pending", where);
  const ir::ValueId id = tracer.use(tile.handle, "as_pending", where);
  Type type = tracer.type(id);
  type.kind = Type::Kind::pending;
  return Pending(tracer.handle(tracer.emit(Op::as_pending, {id}, type, {}, where)));
}

namespace {

[[noreturn]] void refuse_fragments(const char* what, const Tile& tile, const std::string& wanted,
                                   SourceLocation where) {
  Diagnostic(where, std::string(what) + ": the tile is " +
                        Type::tile(tile.dtype(), tile.shape()).to_string())
      .token(what)
      .fix(wanted)
      .raise();
}

}  // namespace

// Row 16 w + 8 j + g and column 8 m + 2 q + e are register 4 m + 2 j + e of lane 4 g + q in warp w
// (PTX, wgmma: layout of D).
Tile fragments(const Tile& product, SourceLocation where) {
  const std::vector<std::int64_t> shape = product.shape();  // more tiles move the original
  if (shape.size() != 2 || shape[0] != 64 || shape[1] % 8 != 0) {
    refuse_fragments("fragments", product, "give {64, columns}, the columns a multiple of 8",
                     where);
  }
  return product.reshape({4, 2, 8, shape[1] / 8, 4, 2}, where)
      .permute({0, 3, 2, 4, 1, 5}, where)
      .reshape({64 * shape[1]}, where);
}

Tile from_fragments(const Tile& fragments, int columns, SourceLocation where) {
  const std::vector<std::int64_t>& shape = fragments.shape();
  if (columns <= 0 || columns % 8 != 0 || shape != std::vector<std::int64_t>{64 * columns}) {
    refuse_fragments("from_fragments", fragments,
                     "give {64 * columns}, the columns a multiple of 8", where);
  }
  return fragments.reshape({4, columns / 8, 8, 4, 2, 2}, where)
      .permute({0, 4, 2, 1, 3, 5}, where)
      .reshape({64, columns}, where);
}

FragmentTensor::FragmentTensor(const Tensor& tensor, int columns, SourceLocation where)
    : tensor_(tensor), columns_(columns) {
  Tracer& tracer = Tracer::get("FragmentTensor", where);
  const ir::Parameter& parameter =
      *tracer.kernel().parameter_of(tracer.use(tensor.handle(), "FragmentTensor", where));
  const auto fail = [&](const std::string& problem, const std::string& fix) {
    Diagnostic(where, "FragmentTensor: " + problem)
        .token("FragmentTensor")
        .note(parameter.where, parameter.name + " is declared")
        .fix(fix)
        .raise();
  };
  if (columns < 8 || columns > 256 || (columns & (columns - 1)) != 0) {
    fail(std::to_string(columns) + " columns", "take a power of two from 8 to 256");
  }
  const std::vector<Dim>& shape = parameter.shape;
  if (parameter.dtype == f32 && shape.size() == 2 && shape[1].is_constant() &&
      shape[1].constant() == 64 * columns) {
    return;
  }
  std::string extents;
  for (const Dim& extent : shape) extents += (extents.empty() ? "" : ", ") + extent.to_string();
  fail(parameter.name + " is " + std::string(name_of(parameter.dtype)) + " {" + extents +
           "}, and fragments of " + std::to_string(columns) + " columns are f32 {tiles, " +
           std::to_string(64 * columns) + "}",
       "declare it so");
}

Tile FragmentTensor::checked(const char* what, const Tile& tile, SourceLocation where) const {
  if (tile.dtype() == f32 && tile.shape() == std::vector<std::int64_t>{64, columns_}) {
    return fragments(tile, where);
  }
  refuse_fragments(what, tile, "give f32 {64, " + std::to_string(columns_) + "}", where);
}

void FragmentTensor::store(const IndexOperand& number, const Tile& tile,
                           SourceLocation where) const {
  tilewright::store(tensor_(number.index, all), checked("store", tile, where), where);
}

void FragmentTensor::add(const IndexOperand& number, const Tile& tile, Order order,
                         SourceLocation where) const {
  const Tile part = checked("add", tile, where);
  const TensorView row = tensor_(number.index, all);
  const bool is_explicit = Tracer::get("add", where).kernel().form == ir::Form::scheduled;
  if (is_explicit) return atomic_add(row, part, order, where);
  tilewright::add(row, part, order, where);
}

Tile FragmentTensor::load(const IndexOperand& number, SourceLocation where) const {
  return from_fragments(tilewright::load(tensor_(number.index, all), where), columns_, where);
}

SharedFragments::SharedFragments(Kernel& kernel, std::string name, int count, int columns,
                                 SourceLocation where)
    : columns_(columns) {
  Tracer& tracer = ExplicitTracing::scheduled(kernel, "SharedFragments", where);
  const TargetLimits& limits = target::target_of(tracer.kernel()).limits;
  if (count <= 0 || columns <= 0 || columns % limits.product_column_unit != 0 ||
      columns > limits.product_columns) {
    Diagnostic(where, "\"" + name + "\": " + std::to_string(count) + " tiles of " +
                          std::to_string(limits.group_rows) + " x " + std::to_string(columns))
        .token("SharedFragments")
        .fix("ask for one or more, of a multiple of " + std::to_string(limits.product_column_unit) +
             " columns up to " + std::to_string(limits.product_columns))
        .raise();
  }
  const std::int64_t elements = limits.group_rows * columns;
  shared_ = tracer.handle(
      tracer.place(Op::shared, {}, Type::of(Type::Kind::shared, f32, {1, count, elements}),
                   {{Key::name, std::move(name)},
                    {Key::layout, ir::SharedLayout::row_major({count, elements}, 4)},
                    {Key::stages, std::int64_t{1}}},
                   where));
}

void SharedFragments::store(const IndexOperand& place, const TileOperand& tile,
                            SourceLocation where) {
  Tracer& tracer = in_role("store", where);
  const ir::ValueId source = tracer.use(tile.handle, "store", where);
  const Type& type = tracer.type(source);
  if (type.dtype != f32 || type.shape != std::vector<std::int64_t>{64, columns_}) {
    Diagnostic(where, "store: the tile is " + type.to_string() + ", the fragments f32 {64, " +
                          std::to_string(columns_) + "}")
        .token("store")
        .fix("both must agree; .cast(f32) converts")
        .raise();
  }
  plain(tracer, Op::store_fragment,
        {source, tracer.use(shared_, "store", where),
         tracer.use(place.index.handle(), "store", where)},
        {}, where);
}

Tile SharedFragments::load(const IndexOperand& place, SourceLocation where) const {
  return load(place, nullptr, where);
}
Tile SharedFragments::load(const IndexOperand& place, const IndexOperand& cta,
                           SourceLocation where) const {
  return load(place, &cta, where);
}
Tile SharedFragments::load(const IndexOperand& place, const IndexOperand* cta,
                           SourceLocation where) const {
  Tracer& tracer = in_role("load", where);
  std::vector<ir::ValueId> operands{tracer.use(shared_, "load", where),
                                    tracer.use(place.index.handle(), "load", where)};
  if (cta) {
    operands.push_back(tracer.use(cta->index.handle(), "load", where));
    const std::int64_t cluster = tracer.kernel().cluster;
    const auto rank = tracer.known(operands.back());
    if (rank && (*rank < 0 || *rank >= cluster)) {
      Diagnostic(where, "load: CTA " + std::to_string(*rank) + " of a cluster of " +
                            std::to_string(cluster))
          .token("load")
          .fix("CTAs count from 0 to " + std::to_string(cluster - 1) +
               "; Kernel::ctas(count, cluster) says how many there are")
          .raise();
    }
  }
  return Tile(
      tracer.handle(tracer.emit(Op::load_fragment, std::move(operands),
                                Type::of(Type::Kind::tile, f32, {64, columns_}), {}, where)));
}

}  // namespace tilewright
