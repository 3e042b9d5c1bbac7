#include <algorithm>

#include "language/explicit_tracing.h"
#include "language/view.h"
#include "tilewright/target.h"

namespace tilewright {

using ir::Key;
using ir::Op;
using ir::Type;

namespace {

[[noreturn]] void refuse(const ResolvedView& view, const char* what, const std::string& problem,
                         const std::string& fix, SourceLocation where) {
  Diagnostic(where, std::string(what) + ": " + problem)
      .token(what)
      .note(view.parameter->where, view.parameter->name + " is declared")
      .fix(fix)
      .raise();
}

// The axis on which the view ends before its tensor may; -1 where it ends with it.
int ragged_axis(const Tracer& tracer, const ResolvedView& view, const char* what,
                SourceLocation where) {
  int ragged = -1;
  const int rank = static_cast<int>(view.sizes.size());
  for (int axis = 0; axis < rank; ++axis) {
    const Dim& size = view.parameter->shape[axis];
    if (view.sizes[axis] == 0 || tracer.reaches(view.limits[axis], size)) continue;
    const bool last = axis == rank - 1;
    if (last || rank > 4 || ragged >= 0) {
      const std::string other =
          last       ? "the last axis of a copy ends with the tensor"
          : rank > 4 ? "of at most 4 axes one may end before the tensor does"
                     : "axis " + std::to_string(ragged) + " does so too, and one axis may";
      refuse(view, what,
             "on axis " + std::to_string(axis) + " the part of " + view.parameter->name +
                 " ends before " + size.to_string(),
             "take the block of the axis's own dimension; " + other, where);
    }
    ragged = axis;
  }
  return ragged;
}

// Where a copy is on the axes of its map, outermost first; operations.def says what a ragged axis
// makes of it.
std::vector<ir::ValueId> coordinates(Tracer& tracer, const ResolvedView& view, int ragged,
                                     bool stores, SourceLocation where) {
  if (ragged < 0) return view.starts;
  std::vector<ir::ValueId> result = view.starts;
  const ir::ValueId size = tracer.dim(view.parameter->shape[ragged], where);
  ir::ValueId limit = tracer.arithmetic(Op::min, view.limits[ragged], size, where);
  // Stores take no negative number anywhere.
  if (stores) limit = tracer.arithmetic(Op::max, limit, tracer.integer(0, where), where);
  const ir::ValueId behind = tracer.arithmetic(Op::sub, size, limit, where);
  result[ragged] = tracer.arithmetic(Op::add, behind, result[ragged], where);
  result.insert(result.begin(), limit);
  return result;
}

// The tensor map through which a view's box moves: one for each tensor, box, swizzle and ragged
// axis. Of peers it is an array, and this is that of the view's rank.
ir::ValueId tensor_map(Tracer& tracer, const ResolvedView& view, int ragged,
                       const SharedView& shared, const char* what, SourceLocation where) {
  if (ExplicitTracing::is_transposed(shared)) {
    Diagnostic(where, std::string(what) + ": the shared view is transposed")
        .token(what)
        .fix("copies keep the order of the axes: store(view.T(), tile) turns a tile in registers")
        .raise();
  }
  const auto [rows, columns] = ExplicitTracing::shape(shared);
  const ir::ValueId shared_id = ExplicitTracing::shared(shared);
  const DType dtype = tracer.type(shared_id).dtype;
  // Axes before the last one follow each other as rows.
  std::int64_t view_rows = 1;
  for (std::size_t axis = 0; axis + 1 < view.shape.size(); ++axis) view_rows *= view.shape[axis];
  if (view.shape.size() < 2 || view_rows != rows || view.shape.back() != columns ||
      view.sizes.back() == 0 || dtype != view.parameter->dtype) {
    std::string shape;
    for (const std::int64_t n : view.shape)
      shape += (shape.empty() ? "" : ", ") + std::to_string(n);
    refuse(view, what,
           "the part of " + view.parameter->name + " is " +
               std::string(name_of(view.parameter->dtype)) + " {" + shape +
               "}, the shared tile is " + std::string(name_of(dtype)) + " {" +
               std::to_string(rows) + ", " + std::to_string(columns) + "}",
           "both must agree; the innermost axis is the tile's columns, the others its rows", where);
  }
  const ir::Panels panels = copied_panels(tracer, shared, what, where);
  std::vector<std::int64_t> box, single;
  for (const std::int64_t size : view.sizes) {
    if (size == 1) single.push_back(static_cast<std::int64_t>(box.size()));
    box.push_back(size == 0 ? 1 : size);
  }
  box.back() = std::min(columns, panels.span);
  const std::int64_t most = target_limits(tracer.kernel().target).copy_extent;
  if (rows > most) {
    Diagnostic(where, std::string(what) + ": " + std::to_string(rows) +
                          " rows; one copy takes at most " + std::to_string(most))
        .token(what)
        .fix("copy runs of rows: view.rows(start, " + std::to_string(most) + ")")
        .raise();
  }
  if (box.back() > most) {
    Diagnostic(where, std::string(what) + ": panels of " + std::to_string(box.back()) +
                          " columns; one copy takes at most " + std::to_string(most))
        .token(what)
        .note(tracer.place_operation(shared_id).where, "the shared tile is declared")
        .fix("declare it with narrower panels: SharedMap{.panel = " + std::to_string(most) + "}")
        .raise();
  }
  const std::int64_t swizzle = panels.swizzle_bytes;
  const bool is_peer = tracer.type(view.tensor).is_peer();
  std::string name = view.parameter->name + (is_peer ? "_peers" : "");
  for (std::size_t axis = 0; axis + 1 < view.shape.size(); ++axis) {
    name += axis == 0 ? '_' : 'x';
    name += std::to_string(view.shape[axis]);
  }
  name += 'x';
  name += std::to_string(box.back());
  ir::Attributes attributes{
      {Key::name, std::move(name)}, {Key::box, std::move(box)}, {Key::swizzle, swizzle}};
  if (!single.empty()) attributes.set(Key::single, std::move(single));
  if (ragged >= 0) attributes.set(Key::ragged, std::int64_t{ragged});
  if (!is_peer) return tracer.tensor_map(view.tensor, std::move(attributes), where);
  attributes.set(Key::peers, std::int64_t{1});
  const ir::ValueId maps = tracer.tensor_map(view.parameter->value, std::move(attributes), where);
  return tracer.emit(Op::peer_map, {maps, tracer.rank_of_peer.at(view.tensor)},
                     Type::of(Type::Kind::tensor_map), {}, where);
}

// What every copy names: the map, the part of shared memory, and where the part of the tensor is.
std::vector<ir::ValueId> copied(Tracer& tracer, const ResolvedView& view, const SharedView& shared,
                                bool stores, const char* what, SourceLocation where) {
  const ir::ValueId part = ExplicitTracing::emit(tracer, shared, what, where);
  const int ragged = ragged_axis(tracer, view, what, where);
  std::vector<ir::ValueId> operands{tensor_map(tracer, view, ragged, shared, what, where), part};
  const std::vector<ir::ValueId> at = coordinates(tracer, view, ragged, stores, where);
  operands.insert(operands.end(), at.begin(), at.end());
  return operands;
}

void require_written(const ResolvedView& view, const char* what, const char* kind,
                     SourceLocation where) {
  if (view.parameter->kind != ir::Parameter::Kind::in) return;
  refuse(view, what, view.parameter->name + " is an input",
         std::string("declare it with Kernel::") + kind, where);
}

// The tracer while a stage is being filled.
Tracer& filling(const char* what, SourceLocation where) {
  Tracer& tracer = in_role(what, where);
  if (!tracer.filling || tracer.filling->depth != tracer.depth()) {
    Diagnostic(where,
               std::string(what) + (tracer.filling ? ": inside a loop or condition of Ring::produce"
                                                   : ": outside Ring::produce"))
        .token(what)
        .fix(
            "a stage's loads are counted by its full barrier: call it in the function given to "
            "produce, unconditionally")
        .raise();
  }
  return tracer;
}

void require_multicast_ring(const Tracer& tracer, const char* what, SourceLocation where) {
  if (tracer.filling->multicast != 0) return;
  Diagnostic(where, std::string(what) + ": multicast into a ring that is not multicast")
      .token(what)
      .fix("declare it as Ring(...).multicast()")
      .raise();
}

}  // namespace

void tma_load(const TensorView& from, const SharedView& to, TmaOptions options,
              SourceLocation where) {
  Tracer& tracer = filling("tma_load", where);
  const ResolvedView view = resolve(tracer, from, "tma_load", where);
  std::vector<ir::ValueId> operands = copied(tracer, view, to, false, "tma_load", where);
  operands.insert(operands.begin() + 2, {tracer.filling->barriers, tracer.filling->stage});
  const std::int64_t cluster = tracer.kernel().cluster;
  const std::int64_t group = tracer.filling->multicast;
  const bool multicast = options.multicast && cluster > 1;
  ir::Attributes attributes{{Key::cache, std::int64_t(options.cache)}};
  if (multicast) require_multicast_ring(tracer, "tma_load", where);
  if (tracer.filling->pair) attributes.set(Key::pair, std::int64_t{1});
  const std::int64_t receivers = options.receivers == 0 ? group : options.receivers;
  if (multicast) {
    const std::int64_t reach = receivers * options.stride;
    if (options.receivers < 0 || options.stride < 1 || group % reach != 0) {
      Diagnostic(where, "tma_load: multicast to " + std::to_string(options.receivers) +
                            " CTAs that are " + std::to_string(options.stride) +
                            " apart, in a ring for groups of " + std::to_string(group))
          .token("tma_load")
          .fix("receivers * stride must divide the group of Ring::multicast")
          .raise();
    }
    std::int64_t mask = 0;
    for (std::int64_t i = 0; i < receivers; ++i) mask |= std::int64_t{1} << i * options.stride;
    attributes.set(Key::multicast, mask);
    if (reach < cluster || options.stride > 1) attributes.set(Key::multicast_group, reach);
  }
  plain(tracer, Op::tma_load_tile, std::move(operands), std::move(attributes), where);
  const auto [rows, columns] = ExplicitTracing::shape(to);
  // Each of the receivers sends its share to all of them.
  tracer.filling->bytes +=
      rows * columns * size_of(view.parameter->dtype) * (multicast ? receivers : 1);
}

void cluster_copy(const SharedView& from, const SharedView& to, const IndexOperand& cta,
                  SourceLocation where) {
  Tracer& tracer = filling("cluster_copy", where);
  require_multicast_ring(tracer, "cluster_copy", where);
  if (tracer.filling->pair) {
    Diagnostic(where, "cluster_copy: into a ring of pairs, whose stages are announced to one CTA")
        .token("cluster_copy")
        .fix("copy into a ring without pairs()")
        .raise();
  }
  const ir::ValueId source = ExplicitTracing::emit(tracer, from, "cluster_copy", where);
  const ir::ValueId target = ExplicitTracing::emit(tracer, to, "cluster_copy", where);
  const Type &copied = tracer.type(source), &place = tracer.type(target);
  const auto span = [&](const SharedView& view) {
    const ir::ValueId shared = ExplicitTracing::shared(view);
    return tracer.place_operation(shared).attributes.shared_layout().as_panels()->span;
  };
  const bool transposed =
      ExplicitTracing::is_transposed(from) || ExplicitTracing::is_transposed(to);
  if (transposed || copied.dtype != place.dtype || copied.shape != place.shape ||
      span(from) != span(to) || copied.shape[1] % span(to) != 0) {
    const auto text = [&](const SharedView& view, const Type& type) {
      return type.to_string() + (ExplicitTracing::is_transposed(view) ? " (transposed)" : "") +
             " in panels of " + std::to_string(span(view));
    };
    Diagnostic(where, "cluster_copy: from " + text(from, copied) + " to " + text(to, place))
        .token("cluster_copy")
        .fix("copy whole panels to panels of the same width: both views of one shape and dtype")
        .raise();
  }
  const std::int64_t bytes = copied.elements() * size_of(copied.dtype);
  plain(tracer, Op::cluster_copy_tile,
        {source, target, tracer.filling->barriers, tracer.filling->stage,
         tracer.use(cta.index.handle(), "cluster_copy", where)},
        {}, where);
  tracer.filling->bytes += bytes;  // of the copy that comes from another CTA
}

void tma_store(const TensorView& to, const SharedView& from, SourceLocation where) {
  Tracer& tracer = in_role("tma_store", where);
  const ResolvedView view = resolve(tracer, to, "tma_store", where);
  require_written(view, "tma_store", "out", where);
  plain(tracer, Op::tma_store_tile, copied(tracer, view, from, true, "tma_store", where), {},
        where);
}

void tma_reduce(const TensorView& to, const SharedView& from, Reduction how, SourceLocation where) {
  constexpr Op kFunctions[] = {Op::add, Op::min, Op::max};
  const Op function = kFunctions[static_cast<int>(how)];
  Tracer& tracer = in_role("tma_reduce", where);
  const ResolvedView view = resolve(tracer, to, "tma_reduce", where);
  require_written(view, "tma_reduce", "inout", where);
  const std::string problem =
      ir::info(Op::tma_reduce_tile).function_problem(function, view.parameter->dtype);
  if (!problem.empty()) {
    refuse(view, "tma_reduce", problem,
           "take what there is, or another dtype of " + view.parameter->name, where);
  }
  plain(tracer, Op::tma_reduce_tile, copied(tracer, view, from, true, "tma_reduce", where),
        {{Key::function, function}}, where);
}

void bulk_commit(SourceLocation where) {
  plain(in_role("bulk_commit", where), Op::bulk_commit, {}, {}, where);
}
namespace {

void wait_for_groups(const char* what, int groups, bool read, SourceLocation where) {
  if (groups < 0) {
    Diagnostic(where, std::string(what) + ": " + std::to_string(groups) + " groups")
        .token(what)
        .fix("give how many may be under way: 0 or more")
        .raise();
  }
  plain(in_role(what, where), Op::bulk_wait, {},
        {{Key::count, std::int64_t{groups}}, {Key::read, std::int64_t{read}}}, where);
}

}  // namespace

void bulk_wait_read(int groups, SourceLocation where) {
  wait_for_groups("bulk_wait_read", groups, true, where);
}
void bulk_wait(int groups, SourceLocation where) {
  wait_for_groups("bulk_wait", groups, false, where);
}

}  // namespace tilewright
