#include "language/canonical_order.h"

#include <algorithm>

namespace tilewright {
namespace {

using ir::Op;
using ir::Operation;
using ir::ValueId;

class Ordering {
 public:
  explicit Ordering(ir::Kernel& kernel) : kernel_(kernel), maker_(kernel.types.size()) {}

  void visit(ir::Block& block) {
    for (Operation& operation : block.body) {
      for (ir::Block& inner : operation.blocks) visit(inner);
    }
    source_ = std::move(block.body);
    state_.assign(source_.size(), {});
    for (std::size_t i = 0; i < source_.size(); ++i) {
      state_[i].kind = kind(source_[i]);
      for (const ValueId result : source_[i].results) maker_[result] = static_cast<int>(i) + 1;
    }
    for (std::size_t i = 0; i < source_.size(); ++i) {
      if (state_[i].kind == Kind::effect) need(i);
    }
    ordered_.clear();
    std::vector<std::size_t> tiles;
    for (std::size_t i = 0; i < source_.size(); ++i) {
      if (state_[i].kind == Kind::tile && state_[i].rank >= 0) tiles.push_back(i);
      if (state_[i].kind != Kind::effect) continue;
      // A rank is above those of the operands: sorting keeps definitions before uses.
      std::sort(tiles.begin(), tiles.end(),
                [this](std::size_t a, std::size_t b) { return state_[a].rank < state_[b].rank; });
      for (const std::size_t tile : tiles) place(tile);
      tiles.clear();
      place(i);
    }
    for (const Operation& operation : ordered_) {
      for (const ValueId result : operation.results) maker_[result] = 0;
    }
    block.body = std::move(ordered_);
  }

 private:
  enum class Kind : std::uint8_t { effect, tile, scalar };
  struct State {
    Kind kind = Kind::effect;
    int rank = -1;  // in the order of first need; none yet
    bool placed = false;
  };

  Kind kind(const Operation& o) const {
    // What an input holds is the same at every time.
    const bool constant_load =
        o.op == Op::load && kernel_.parameter_of(o.operands[0])->kind == ir::Parameter::Kind::in;
    if (constant_load) return Kind::tile;
    if (!ir::info(o.op).pure() || !o.blocks.empty()) return Kind::effect;
    const auto is_tile = [this](ValueId id) {
      return kernel_.type(id).is_tile() || kernel_.type(id).is(ir::Type::Kind::pending);
    };
    const bool tile = std::any_of(o.results.begin(), o.results.end(), is_tile) ||
                      std::any_of(o.operands.begin(), o.operands.end(), is_tile);
    return tile ? Kind::tile : Kind::scalar;
  }

  // Calls `action` with the number of each operation of this block whose results `o` reads, in
  // order: its own operands, then those of its blocks.
  template <typename Action>
  void each_source(const Operation& o, Action&& action) const {
    const auto operands = [&](const Operation& reader) {
      for (const ValueId operand : reader.operands) {
        if (maker_[operand] > 0) action(static_cast<std::size_t>(maker_[operand] - 1));
      }
    };
    operands(o);
    for (const ir::Block& inner : o.blocks) ir::for_each(inner, operands);
  }

  void need(std::size_t i) {
    if (state_[i].rank >= 0) return;
    state_[i].rank = 0;  // effects do not need each other: no cycle
    each_source(source_[i], [this](std::size_t source) {
      if (state_[source].kind != Kind::effect) need(source);
    });
    state_[i].rank = next_rank_++;
  }

  void place(std::size_t i) {
    if (state_[i].placed) return;
    state_[i].placed = true;
    each_source(source_[i], [this](std::size_t source) {
      if (state_[source].kind == Kind::scalar) place(source);
    });
    ordered_.push_back(std::move(source_[i]));
  }

  ir::Kernel& kernel_;
  std::vector<int> maker_;  // 1 + the number of the operation in this block; 0: of another block
  std::vector<Operation> source_, ordered_;
  std::vector<State> state_;
  int next_rank_ = 0;
};

}  // namespace

void order_canonically(ir::Kernel& kernel) { Ordering(kernel).visit(kernel.body); }

}  // namespace tilewright
