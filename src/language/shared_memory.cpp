#include "ir/modes.h"
#include "language/explicit_tracing.h"

namespace tilewright {

using ir::Key;
using ir::Op;
using ir::Type;

// Tiles and integers in shared memory.

namespace {

constexpr std::int64_t kMaximumPadding = 1 << 16;  // bytes

// What the author declares, or the widest swizzle. A swizzle is of eight rows: one alone has none.
ir::SharedLayout shared_layout(const std::string& name, const TileShape& tile,
                               SourceLocation where) {
  const int bytes = size_of(tile.dtype);
  const std::int64_t row_bytes = std::int64_t{tile.columns} * bytes;
  if (!tile.map && tile.rows > 1) {
    return ir::SharedLayout::panels(tile.rows, tile.columns, bytes, ir::widest_swizzle(row_bytes),
                                    where);
  }
  const SharedMap map = tile.map.value_or(SharedMap());
  const auto fail = [&](const std::string& problem, const std::string& fix) {
    Diagnostic(where, "shared tile \"" + name + "\": " + problem)
        .token('"' + name + '"')
        .fix(fix)
        .raise();
  };
  const std::string dtype(name_of(tile.dtype));
  if (map.swizzle != 0 && map.swizzle != 32 && map.swizzle != 64 && map.swizzle != 128) {
    fail("a swizzle of " + std::to_string(map.swizzle) + " bytes", "take 0, 32, 64 or 128");
  }
  if (map.swizzle != 0 && tile.rows == 1) {
    fail("a swizzle of " + std::to_string(map.swizzle) + " bytes of one row", "leave it out");
  }
  const int spanned = map.swizzle / bytes;
  if (map.swizzle != 0 && (map.padding != 0 || (map.panel != 0 && map.panel != spanned))) {
    fail("a swizzle of " + std::to_string(map.swizzle) + " bytes in panels of " +
             std::to_string(map.panel) + " " + dtype + " with " + std::to_string(map.padding) +
             " behind each row",
         "with a swizzle leave padding out, and the panel or make it " + std::to_string(spanned));
  }
  const int panel = map.swizzle != 0 ? spanned : map.panel == 0 ? tile.columns : map.panel;
  if (panel < 0 || tile.columns % panel != 0 || panel * bytes % 16 != 0) {
    fail("panels of " + std::to_string(panel) + " of " + std::to_string(tile.columns) +
             " columns of " + dtype,
         "take panels of a multiple of 16 bytes that divide the columns");
  }
  const std::int64_t padding = map.padding;
  if (padding < 0 || padding * bytes % 16 != 0 || padding * bytes > kMaximumPadding) {
    fail("a padding of " + std::to_string(padding) + " " + dtype,
         "take a multiple of 16 bytes, so that rows begin at one, and at most " +
             std::to_string(kMaximumPadding));
  }
  if (map.swizzle != 0) {
    return ir::SharedLayout::panels(tile.rows, tile.columns, bytes, map.swizzle, where);
  }
  ir::SharedLayout layout;
  layout.shape = {tile.rows, tile.columns};
  layout.element_bytes = bytes;
  const std::int64_t row = (panel + padding) * bytes;
  layout.modes = {ir::distribute(tile.rows, 0, row), ir::distribute(panel, 1, bytes),
                  ir::distribute(tile.columns / panel, 1, tile.rows * row)};
  return layout.canonical();
}

}  // namespace

ir::ValueId shared_place(Tracer& tracer, const std::string& name, const TileShape& tile, int stages,
                         SourceLocation where) {
  const auto [dtype, rows, columns, map] = tile;
  if (rows <= 0 || columns <= 0 || stages <= 0 || (rows != 1 && rows % 8 != 0)) {
    Diagnostic(where, "shared tile \"" + name + "\": " + std::to_string(stages) + " stages of " +
                          std::to_string(rows) + " x " + std::to_string(columns))
        .token('"' + name + '"')
        .fix("all positive, the rows a multiple of 8, or one")
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
  return tracer.place(Op::shared, {}, Type::of(Type::Kind::shared, dtype, {stages, rows, columns}),
                      {{Key::name, name},
                       {Key::layout, shared_layout(name, tile, where)},
                       {Key::stages, std::int64_t{stages}}},
                      where);
}

ir::Panels copied_panels(Tracer& tracer, const SharedView& view, const char* what,
                         SourceLocation where) {
  const ir::Operation& place = tracer.place_operation(ExplicitTracing::shared(view));
  const ir::SharedLayout& layout = place.attributes.shared_layout();
  if (const auto panels = layout.as_panels()) return *panels;
  const auto padded = ir::padded_panels(layout);
  Diagnostic(where, std::string(what) + ": rows of \"" + place.attributes.text(Key::name) +
                        "\" lie " + std::to_string(padded->span_bytes) + " bytes apart, and have " +
                        std::to_string(padded->span * layout.element_bytes))
      .token(what)
      .note(place.where, "it is declared")
      .fix("declare it without padding: TMA and products take rows side by side")
      .raise();
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

namespace {

SharedView shared_tile(const Kernel& kernel, const std::string& name, const TileShape& tile,
                       SourceLocation where) {
  Tracer& tracer = ExplicitTracing::scheduled(kernel, "SharedTile", where);
  const ir::ValueId shared = shared_place(tracer, name, tile, 1, where);
  return ExplicitTracing::view(tracer, shared, Index(0, where), tile.rows, tile.columns);
}

}  // namespace

SharedTile::SharedTile(Kernel& kernel, std::string name, DType dtype, int rows, int columns,
                       SourceLocation where)
    : SharedView(shared_tile(kernel, name, {dtype, rows, columns}, where)) {}

SharedTile::SharedTile(Kernel& kernel, std::string name, DType dtype, int rows, int columns,
                       const SharedMap& map, SourceLocation where)
    : SharedView(shared_tile(kernel, name, {dtype, rows, columns, map}, where)) {}

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
