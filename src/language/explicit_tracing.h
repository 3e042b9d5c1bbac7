#pragma once

#include <string>
#include <utility>

#include "ir/padded_panels.h"
#include "language/tracer.h"
#include "tilewright/hopper.h"

// What the recording functions of the explicit level share.
namespace tilewright {

// The tracer of a kernel that is, or becomes, one of the explicit level.
Tracer& scheduled(const char* what, SourceLocation where);
// The same; raises outside the body of a role.
Tracer& in_role(const char* what, SourceLocation where);
// Records an operation without a result.
void plain(Tracer& tracer, ir::Op op, std::vector<ir::ValueId> operands, ir::Attributes attributes,
           SourceLocation where);
// Shared memory of `stages` tiles.
ir::ValueId shared_place(Tracer& tracer, const std::string& name, const TileShape& tile, int stages,
                         SourceLocation where);
// The panels of a view that TMA copies, or a product reads, with rows side by side. Raises at the
// operation's line for a tile that is declared otherwise.
ir::Panels copied_panels(Tracer& tracer, const SharedView& view, const char* what,
                         SourceLocation where);
ir::Type as_tile(ir::Type type);

// Reads and makes views of shared memory.
class ExplicitTracing {
 public:
  // As `scheduled`, of this kernel. Raises where it is not the one that is being traced.
  static Tracer& scheduled(const Kernel& kernel, const char* what, SourceLocation where) {
    kernel.tracer(where).require_open(what, where);
    return tilewright::scheduled(what, where);
  }

  static SharedView view(Tracer& tracer, ir::ValueId shared, const Index& stage, int rows,
                         int columns) {
    SharedView view;
    view.shared_ = tracer.handle(shared);
    view.stage_ = stage.handle();
    view.row_ = Index(0).handle();
    view.row_count_ = rows;
    view.column_count_ = columns;
    return view;
  }

  // The `view` operation; its type is the part as it lies in memory.
  static ir::ValueId emit(Tracer& tracer, const SharedView& view, const char* what,
                          SourceLocation where) {
    const ir::ValueId shared = tracer.use(view.shared_, what, where);
    const ir::Type type = ir::Type::of(ir::Type::Kind::view, tracer.type(shared).dtype,
                                       {view.row_count_, view.column_count_});
    std::vector<ir::ValueId> operands{shared, tracer.use(view.stage_, what, where),
                                      tracer.use(view.row_, what, where)};
    if (view.panel_.tracer()) operands.push_back(tracer.use(view.panel_, what, where));
    return tracer.emit(ir::Op::view, std::move(operands), type,
                       {{ir::Key::column, std::int64_t{view.column_}},
                        {ir::Key::transposed, std::int64_t{view.transposed_}}},
                       where);
  }

  // As it lies in memory, and as a product sees it.
  static std::pair<std::int64_t, std::int64_t> shape(const SharedView& view) {
    return {view.row_count_, view.column_count_};
  }
  static std::pair<std::int64_t, std::int64_t> product_shape(const SharedView& view) {
    if (view.transposed_) return {view.column_count_, view.row_count_};
    return {view.row_count_, view.column_count_};
  }
  static ir::ValueId shared(const SharedView& view) { return view.shared_.id(); }
  static SharedView rows(const SharedView& from, const IndexOperand& start, int count) {
    Tracer& tracer = Tracer::get("rows", start.where);
    const std::int64_t unit =
        ir::rows_of_views(tracer.place_operation(tracer.use(from.shared_, "rows", start.where))
                              .attributes.shared_layout());
    const auto fail = [&](const std::string& problem) {
      const std::string units = "a multiple of " + std::to_string(unit);
      Diagnostic(start.where, "rows: " + problem)
          .token("rows")
          .fix("take " + units + " rows that lies inside, from " + units + ", before .T()")
          .raise();
    };
    const std::string of = " of a view of " + std::to_string(from.row_count_) +
                           (from.transposed_ ? " (transposed)" : "");
    if (from.transposed_ || count <= 0 || count > from.row_count_ || count % unit != 0) {
      fail(std::to_string(count) + " rows" + of);
    }
    if (const auto first = tracer.known(tracer.use(start.index.handle(), "rows", start.where))) {
      if (*first % unit != 0) {
        fail("from row " + std::to_string(*first) + ", no multiple of " + std::to_string(unit));
      }
      if (*first < 0 || *first + count > from.row_count_) {
        fail("[" + std::to_string(*first) + ", " + std::to_string(*first + count) + ")" + of);
      }
    }
    SharedView view = from;
    view.row_ = (Index(tracer.handle(tracer.use(from.row_, "rows", start.where))) + start).handle();
    view.row_count_ = count;
    return view;
  }
  // The first row alone: a row or a column of numbers, which no product reads.
  static SharedView first_row(const SharedView& from) {
    SharedView view = from;
    view.row_count_ = 1;
    return view;
  }
  static SharedView columns(const SharedView& from, int start, int count, SourceLocation where) {
    SharedView view = from;
    if (from.transposed_ || start < 0 || count <= 0 || start + count > from.column_count_) {
      Diagnostic(where, "columns: [" + std::to_string(start) + ", " +
                            std::to_string(start + count) + ") of a view of " +
                            std::to_string(from.column_count_) + " columns")
          .token("columns")
          .fix("take columns that lie inside, before .T()")
          .raise();
    }
    view.column_ += start;
    view.column_count_ = count;
    return view;
  }
  static SharedView column_part(const SharedView& from, const IndexOperand& index, int size) {
    Tracer& tracer = Tracer::get("column_part", index.where);
    const ir::ValueId shared = tracer.use(from.shared_, "column_part", index.where);
    const std::int64_t span =
        ir::padded_panels(tracer.place_operation(shared).attributes.shared_layout())->span;
    if (from.transposed_ || size <= 0 || size % span != 0 || from.column_count_ % size != 0) {
      Diagnostic(index.where, "column_part: runs of " + std::to_string(size) +
                                  " columns of a view of " + std::to_string(from.column_count_) +
                                  (from.transposed_ ? " (transposed)" : "") + ", in panels of " +
                                  std::to_string(span))
          .token("column_part")
          .fix("take runs of whole panels that divide the view, before .T()")
          .raise();
    }
    const auto number = tracer.known(tracer.use(index.index.handle(), "column_part", index.where));
    if (number && (*number < 0 || *number >= from.column_count_ / size)) {
      Diagnostic(index.where, "column_part: run " + std::to_string(*number) + " of " +
                                  std::to_string(from.column_count_ / size))
          .token("column_part")
          .fix("take a run that lies inside")
          .raise();
    }
    SharedView view = from;
    const Index panels = index * (size / span);
    view.panel_ = (from.panel_.tracer() ? Index(from.panel_) + panels : panels).handle();
    view.column_count_ = size;
    return view;
  }
  static bool is_transposed(const SharedView& view) { return view.transposed_; }
  static SharedView transpose(const SharedView& from) {
    SharedView view = from;
    view.transposed_ = !view.transposed_;
    return view;
  }
};

// Raises where every warp of a role of several would do what one does.
void require_one_warp(const Tracer& tracer, const char* what, SourceLocation where);

}  // namespace tilewright
