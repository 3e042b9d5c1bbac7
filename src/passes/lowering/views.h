#pragma once

#include <map>
#include <optional>

#include "ir/ir.h"
#include "passes/lowering/role_code.h"

namespace tilewright::passes {

// The operation that declares each place (a tensor map, a shared allocation, ...).
using Places = std::map<ir::ValueId, const ir::Operation*>;

// A `view` operation's operands and what its shared allocation is.
struct View {
  ir::ValueId shared, stage, row;
  std::optional<ir::ValueId> panel;
  std::int64_t column = 0;
  bool transposed = false;
  const ir::SharedLayout* layout = nullptr;
  ir::Panels panels;
};

// The views of a role, and the code that computes where they lie.
class Views {
 public:
  Views(const Places& places, RoleCode& code) : places_(places), code_(code) {}
  void add(const ir::Operation& o);
  const View& at(ir::ValueId value) const { return views_.at(value); }
  // Bytes from the allocation's start to the view's stage, first panel and row.
  ir::ValueId offset(const View& view, bool with_row, SourceLocation where);
  // Bytes to the panel in which the view's columns begin; throws where they begin inside of one.
  std::int64_t panel_step(const View& view, const ir::Operation& o) const;

 private:
  const Places& places_;
  RoleCode& code_;
  std::map<ir::ValueId, View> views_;
};

}  // namespace tilewright::passes
