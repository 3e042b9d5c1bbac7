#include "passes/lowering/views.h"

#include <string>

#include "ir/padded_panels.h"
#include "support/diagnostic.h"

namespace tilewright::passes {

using ir::Key;
using ir::Operation;
using ir::ValueId;

void Views::add(const Operation& o) {
  View view;
  view.shared = o.operands[0];
  view.stage = o.operands[1];
  view.row = o.operands[2];
  if (o.operands.size() > 3) view.panel = o.operands[3];
  view.column = o.attributes.integer(Key::column);
  view.transposed = o.attributes.integer(Key::transposed) != 0;
  view.layout = &places_.at(view.shared)->attributes.shared_layout();
  view.panels = *ir::padded_panels(*view.layout);
  views_[o.results[0]] = view;
}

ValueId Views::offset(const View& view, bool with_row, SourceLocation where) {
  ValueId place = code_.scale(view.stage, view.layout->size_bytes(), where);
  if (view.panel) {
    place = code_.add(place, code_.scale(*view.panel, view.panels.distance, where), where);
  }
  return with_row ? code_.add(place, code_.scale(view.row, view.panels.span_bytes, where), where)
                  : place;
}

std::int64_t Views::panel_step(const View& view, const Operation& o) const {
  if (view.column % view.panels.span != 0) {
    Diagnostic(o.where, "columns from " + std::to_string(view.column) +
                            " of a shared tile whose panels are " +
                            std::to_string(view.panels.span) + " wide")
        .fix("begin at a multiple of the panel's width")
        .raise();
  }
  return view.column / view.panels.span * view.panels.distance;
}

}  // namespace tilewright::passes
