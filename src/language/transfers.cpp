#include <algorithm>

#include "language/explicit_tracing.h"
#include "language/view.h"

namespace tilewright {

using ir::Key;
using ir::Op;
using ir::Type;

namespace {

// The tensor map through which a view's box moves: one for each tensor, box and swizzle.
ir::ValueId tensor_map(Tracer& tracer, const ResolvedView& view, const SharedView& shared,
                       const char* what, SourceLocation where) {
  const auto [rows, columns] = ExplicitTracing::shape(shared);
  const ir::ValueId shared_id = ExplicitTracing::shared(shared);
  const ir::SharedLayout layout = tracer.place_operation(shared_id).attributes.shared_layout();
  const DType dtype = tracer.type(shared_id).dtype;
  // Axes before the last one follow each other as rows.
  std::int64_t view_rows = 1;
  for (std::size_t axis = 0; axis + 1 < view.shape.size(); ++axis) view_rows *= view.shape[axis];
  if (view.shape.size() < 2 || view_rows != rows || view.shape.back() != columns ||
      view.sizes.back() == 0 || dtype != view.parameter->dtype) {
    std::string shape;
    for (const std::int64_t n : view.shape)
      shape += (shape.empty() ? "" : ", ") + std::to_string(n);
    Diagnostic(where, std::string(what) + ": the part of " + view.parameter->name + " is " +
                          std::string(name_of(view.parameter->dtype)) + " {" + shape +
                          "}, the shared tile is " + std::string(name_of(dtype)) + " {" +
                          std::to_string(rows) + ", " + std::to_string(columns) + "}")
        .token(what)
        .note(view.parameter->where, view.parameter->name + " is declared")
        .fix("both must agree; the innermost axis is the tile's columns, the others its rows")
        .raise();
  }
  const auto panels = layout.as_panels();
  std::vector<std::int64_t> box;
  for (const std::int64_t size : view.sizes) box.push_back(size == 0 ? 1 : size);
  box.back() = std::min(columns, panels->span);
  if (rows > 256) {
    Diagnostic(where, std::string(what) + ": " + std::to_string(rows) +
                          " rows; one copy takes at most 256")
        .token(what)
        .fix("copy runs of rows: view.rows(start, 256)")
        .raise();
  }
  const std::int64_t swizzle = panels->swizzle_bytes;
  std::string name = view.parameter->name;
  for (std::size_t axis = 0; axis + 1 < view.shape.size(); ++axis) {
    name += axis == 0 ? '_' : 'x';
    name += std::to_string(view.shape[axis]);
  }
  name += "x" + std::to_string(box.back());
  return tracer.tensor_map(
      view.tensor,
      {{Key::name, std::move(name)}, {Key::box, std::move(box)}, {Key::swizzle, swizzle}}, where);
}

}  // namespace

void tma_load(const TensorView& from, const SharedView& to, TmaOptions options,
              SourceLocation where) {
  Tracer& tracer = in_role("tma_load", where);
  if (!tracer.filling || tracer.filling->depth != tracer.depth()) {
    Diagnostic(where, tracer.filling ? "tma_load: inside a loop or condition of Ring::produce"
                                     : "tma_load: outside Ring::produce")
        .token("tma_load")
        .fix(
            "a stage's loads are counted by its full barrier: call it in the function given to "
            "produce, unconditionally")
        .raise();
  }
  const ResolvedView view = resolve(tracer, from, "tma_load", where);
  const ir::ValueId shared = ExplicitTracing::emit(tracer, to, "tma_load", where);
  const ir::ValueId map = tensor_map(tracer, view, to, "tma_load", where);
  std::vector<ir::ValueId> operands{map, shared, tracer.filling->barriers, tracer.filling->stage};
  operands.insert(operands.end(), view.starts.begin(), view.starts.end());
  const std::int64_t cluster = tracer.kernel().cluster;
  const bool multicast = options.multicast && cluster > 1;
  ir::Attributes attributes{{Key::cache, std::int64_t(options.cache)}};
  if (multicast && !tracer.filling->multicast) {
    Diagnostic(where, "tma_load: multicast into a ring that is not multicast")
        .token("tma_load")
        .fix("declare it as Ring(...).multicast()")
        .raise();
  }
  if (multicast) attributes.set(Key::multicast, (std::int64_t{1} << cluster) - 1);
  plain(tracer, Op::tma_load_tile, std::move(operands), std::move(attributes), where);
  const auto [rows, columns] = ExplicitTracing::shape(to);
  // Each CTA of the cluster sends its share to all of them.
  tracer.filling->bytes +=
      rows * columns * size_of(view.parameter->dtype) * (multicast ? cluster : 1);
}

void tma_store(const TensorView& to, const SharedView& from, SourceLocation where) {
  Tracer& tracer = in_role("tma_store", where);
  const ResolvedView view = resolve(tracer, to, "tma_store", where);
  if (view.parameter->kind == ir::Parameter::Kind::in) {
    Diagnostic(where, "tma_store: " + view.parameter->name + " is an input")
        .token("tma_store")
        .note(view.parameter->where, view.parameter->name + " is declared")
        .fix("declare it with Kernel::out")
        .raise();
  }
  const ir::ValueId shared = ExplicitTracing::emit(tracer, from, "tma_store", where);
  std::vector<ir::ValueId> operands{tensor_map(tracer, view, from, "tma_store", where), shared};
  operands.insert(operands.end(), view.starts.begin(), view.starts.end());
  plain(tracer, Op::tma_store_tile, std::move(operands), {}, where);
}

void bulk_commit(SourceLocation where) {
  plain(in_role("bulk_commit", where), Op::bulk_commit, {}, {}, where);
}
void bulk_wait_read(int groups, SourceLocation where) {
  plain(in_role("bulk_wait_read", where), Op::bulk_wait, {},
        {{Key::count, std::int64_t{groups}}, {Key::read, std::int64_t{1}}}, where);
}
void bulk_wait(int groups, SourceLocation where) {
  plain(in_role("bulk_wait", where), Op::bulk_wait, {},
        {{Key::count, std::int64_t{groups}}, {Key::read, std::int64_t{0}}}, where);
}

}  // namespace tilewright
