#include "language/explicit_tracing.h"

namespace tilewright {

using ir::Key;
using ir::Op;
using ir::Type;

// Tiles and integers in shared memory.

ir::ValueId shared_place(Tracer& tracer, const std::string& name, DType dtype, int rows,
                         int columns, int stages, SourceLocation where) {
  if (rows <= 0 || columns <= 0 || stages <= 0 || rows % 8 != 0) {
    Diagnostic(where, "shared tile \"" + name + "\": " + std::to_string(stages) + " stages of " +
                          std::to_string(rows) + " x " + std::to_string(columns))
        .token('"' + name + '"')
        .fix("all positive, the rows a multiple of 8")
        .raise();
  }
  if (dtype == DType::boolean) {
    Diagnostic(where, "shared tile \"" + name + "\": bool has no place in memory")
        .token('"' + name + '"')
        .fix("use i32")
        .raise();
  }
  const std::int64_t row_bytes = std::int64_t{columns} * size_of(dtype);
  if (row_bytes % 16 != 0) {
    Diagnostic(where, "shared tile \"" + name + "\": a row of " + std::to_string(columns) + " " +
                          std::string(name_of(dtype)) + " has " + std::to_string(row_bytes) +
                          " bytes")
        .token('"' + name + '"')
        .fix("make rows a multiple of 16 bytes")
        .raise();
  }
  return tracer.place(
      Op::shared, {}, Type::of(Type::Kind::shared, dtype, {stages, rows, columns}),
      {{Key::name, name},
       {Key::layout, ir::SharedLayout::panels(rows, columns, size_of(dtype),
                                              ir::widest_swizzle(row_bytes), where)},
       {Key::stages, std::int64_t{stages}}},
      where);
}

Type as_tile(Type type) {
  type.kind = Type::Kind::tile;
  return type;
}

namespace {

// What a view holds, transposed where it is.
Type held_by(const SharedView& view, const Tracer& tracer, ir::ValueId id) {
  const auto [rows, columns] = ExplicitTracing::product_shape(view);
  return Type::tile(tracer.type(id).dtype, {rows, columns});
}

}  // namespace

SharedView SharedView::rows(const IndexOperand& start, int count) const {
  return ExplicitTracing::rows(*this, start, count);
}
SharedView SharedView::first_row() const { return ExplicitTracing::first_row(*this); }
SharedView SharedView::columns(int start, int count, SourceLocation where) const {
  return ExplicitTracing::columns(*this, start, count, where);
}
SharedView SharedView::column_part(const IndexOperand& index, int size) const {
  return ExplicitTracing::column_part(*this, index, size);
}
SharedView SharedView::T() const { return ExplicitTracing::transpose(*this); }

SharedTile::SharedTile(Kernel& kernel, std::string name, DType dtype, int rows, int columns,
                       SourceLocation where) {
  Tracer& tracer = ExplicitTracing::scheduled(kernel, "SharedTile", where);
  const ir::ValueId shared = shared_place(tracer, name, dtype, rows, columns, 1, where);
  SharedView::operator=(ExplicitTracing::view(tracer, shared, Index(0, where), rows, columns));
}

void store(const SharedView& to, const TileOperand& tile, SourceLocation where) {
  Tracer& tracer = in_role("store", where);
  const ir::ValueId source = tracer.use(tile.handle, "store", where);
  if (ExplicitTracing::is_transposed(to)) {
    return store(to.T(), Tile(tracer.handle(source)).T(where), where);
  }
  const ir::ValueId view = ExplicitTracing::emit(tracer, to, "store", where);
  const Type& from = tracer.type(source);
  Type place = held_by(to, tracer, view);
  if (from.dtype != place.dtype || from.shape != place.shape) {
    place.kind = Type::Kind::view;
    Diagnostic(where,
               "store: the tile is " + from.to_string() + ", the shared view " + place.to_string())
        .token("store")
        .fix("both must agree; .cast(dtype) converts")
        .raise();
  }
  plain(tracer, Op::store_tile, {source, view}, {}, where);
}

Tile load(const SharedView& from, SourceLocation where) {
  Tracer& tracer = in_role("load", where);
  if (ExplicitTracing::is_transposed(from)) return load(from.T(), where).T(where);
  const ir::ValueId view = ExplicitTracing::emit(tracer, from, "load", where);
  return Tile(
      tracer.handle(tracer.emit(Op::load_tile, {view}, held_by(from, tracer, view), {}, where)));
}

SharedIntegers::SharedIntegers(Kernel& kernel, std::string name, int count, SourceLocation where) {
  Tracer& tracer = ExplicitTracing::scheduled(kernel, "SharedIntegers", where);
  if (count <= 0) {
    Diagnostic(where, "\"" + name + "\": " + std::to_string(count) + " integers")
        .token("SharedIntegers")
        .fix("ask for one or more")
        .raise();
  }
  shared_ =
      tracer.handle(tracer.place(Op::shared, {}, Type::of(Type::Kind::shared, i32, {1, 1, count}),
                                 {{Key::name, std::move(name)},
                                  {Key::layout, ir::SharedLayout::row_major({1, count}, 4)},
                                  {Key::stages, std::int64_t{1}}},
                                 where));
}

Index SharedIntegers::load(const IndexOperand& element, SourceLocation where) const {
  Tracer& tracer = in_role("load", where);
  return Index(tracer.handle(tracer.emit(
      Op::shared_load,
      {tracer.use(shared_, "load", where), tracer.use(element.index.handle(), "load", where)},
      Type::scalar(i32), {}, where)));
}

void SharedIntegers::store(const IndexOperand& element, const IndexOperand& value,
                           SourceLocation where) {
  Tracer& tracer = in_role("store", where);
  plain(tracer, Op::shared_store,
        {tracer.use(shared_, "store", where), tracer.use(element.index.handle(), "store", where),
         tracer.use(value.index.handle(), "store", where)},
        {}, where);
}

}  // namespace tilewright
