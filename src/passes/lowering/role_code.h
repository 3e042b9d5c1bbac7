#pragma once

#include <set>
#include <utility>
#include <vector>

#include "ir/ir.h"
#include "passes/buffers.h"

namespace tilewright::passes {

// The machine form of a role while it is written: a register array for each group of tiles that
// share one, and the instructions so far of the block that is lowered.
class RoleCode {
 public:
  using Moves = std::vector<std::pair<ir::ValueId, ir::ValueId>>;  // to, from

  RoleCode(ir::Kernel& kernel, const ir::Block& role);

  const ir::Kernel& kernel() const { return kernel_; }
  const ir::Type& type(ir::ValueId id) const { return kernel_.type(id); }
  const ir::RegisterLayout& layout(ir::ValueId tile) const { return type(tile).layout; }
  bool in_registers(ir::ValueId id) const { return Buffers::in_registers(type(id)); }
  // Of a tile or pending product.
  ir::ValueId array(ir::ValueId tile) const { return arrays_[buffers_.of(tile)]; }
  // One more array, which no tile names.
  ir::ValueId add_array(DType dtype, std::int64_t registers);
  std::vector<ir::Operation> declarations(SourceLocation where) const;

  void emit(ir::Op op, std::vector<ir::ValueId> operands, ir::Attributes attributes,
            SourceLocation where);
  ir::ValueId new_value(ir::Type type) { return kernel_.add_value(std::move(type)); }
  void append(ir::Operation operation) { out_.push_back(std::move(operation)); }
  ir::Operation& last() { return out_.back(); }
  // Begins the instructions of an inner block, and gives those of the outer one ...
  std::vector<ir::Operation> begin_block() { return std::exchange(out_, {}); }
  // ... which go on where it ends.
  std::vector<ir::Operation> end_block(std::vector<ir::Operation> outer) {
    return std::exchange(out_, std::move(outer));
  }

  ir::ValueId scalar(ir::Op op, std::vector<ir::ValueId> operands, ir::Attributes attributes,
                     DType dtype, SourceLocation where);
  ir::ValueId integer(std::int64_t value, SourceLocation where);
  ir::ValueId boolean(bool value, SourceLocation where);
  ir::ValueId add(ir::ValueId a, ir::ValueId b, SourceLocation where);
  ir::ValueId scale(ir::ValueId a, std::int64_t factor, SourceLocation where);

  // The pending value is a tile that is complete: unlike a product in flight it may be copied.
  void mark_complete(ir::ValueId pending) { complete_.insert(pending); }
  // Whether they lie in different arrays; throws where a product in flight would have to be copied.
  bool must_move(ir::ValueId to, ir::ValueId from, SourceLocation where) const;
  void copy(ir::ValueId to, ir::ValueId from, SourceLocation where);
  void copy_all(const Moves& moves, SourceLocation where);

 private:
  ir::Kernel& kernel_;
  Buffers buffers_;
  std::vector<ir::ValueId> arrays_;
  std::vector<ir::Operation> out_;
  std::set<ir::ValueId> complete_;
};

}  // namespace tilewright::passes
