#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "analysis/access_bounds.h"
#include "ir/ir.h"
#include "simulator/output_shadow.h"
#include "simulator/read_map.h"
#include "simulator/tensor_access.h"
#include "simulator/tile_value.h"
#include "support/arguments.h"
#include "support/random.h"

namespace tilewright::simulator {

// How the axes of each load and store are held against their tensors.
using AccessChecks = std::unordered_map<const ir::Operation*, std::vector<analysis::AxisCheck>>;
AccessChecks access_checks(const ir::Kernel& kernel);

// What all blocks of a launch share.
struct TileLaunch {
  const ir::Kernel* kernel;
  const Arguments* arguments;
  std::function<std::int64_t(const Dim&)> evaluate;  // of the dimensions that the launch binds
  std::int64_t while_limit;
  const AccessChecks* checks;
  OutputShadow* shadow = nullptr;                             // null: outputs are not checked
  std::optional<std::uint64_t> rounding_seed = std::nullopt;  // of double
  ReadMap* reads = nullptr;                                   // null: nobody asks
};

// Runs blocks of a kernel in the tile form, one after the other. Real is float, or double for the
// oracle, which does not round.
template <typename Real>
class TileEvaluator {
 public:
  explicit TileEvaluator(const TileLaunch& launch);
  // `block`: its number in the grid.
  void run_block(const std::vector<std::int64_t>& grid_index, std::int64_t block);

 private:
  // The values that the block's yield names.
  std::vector<Value> run(const ir::Block& block);
  void run(const ir::Operation& operation);
  void set(ir::ValueId id, Value value) { values_[id] = std::move(value); }
  Value make(ir::ValueId id) const;
  const Value& operand(const ir::Operation& operation, std::size_t i) const {
    return values_[operation.operands[i]];
  }
  std::int64_t integer(const ir::Operation& operation, std::size_t i) const;
  bool boolean(const Value& value) const { return *value.data<std::uint8_t>() != 0; }
  Value integer_value(ir::ValueId id, std::int64_t number, const ir::Operation& operation) const;
  Value number_value(ir::ValueId id, double number) const;

  // With a rounding_seed, changes what was computed by a random part of its rounding error; of a
  // sum of so many terms in f32.
  void vary(Value& result, std::int64_t terms = 1);

  [[noreturn]] void refuse(const ir::Operation& operation) const;
  void control(const ir::Operation& operation);
  void position(const ir::Operation& operation);
  void own_rows(const ir::Operation& operation);
  void tile(const ir::Operation& operation);
  void elementwise(const ir::Operation& operation);
  void for_loop(const ir::Operation& operation);
  void while_loop(const ir::Operation& operation);
  void if_then(const ir::Operation& operation);
  void constant(const ir::Operation& operation);
  // What a load or store names; its bounds are the operands from `first` on.
  Box box(const ir::Operation& operation, std::size_t first) const;
  [[noreturn]] void refuse_access(const ir::Operation& operation, const analysis::AxisCheck& check,
                                  const std::string& fault) const;
  void load(const ir::Operation& operation);
  void load_index(const ir::Operation& operation);
  void peer(const ir::Operation& operation);
  void store(const ir::Operation& operation);
  Value added(const ir::Operation& operation, const Box& box);
  void dot(const ir::Operation& operation);
  void iota(const ir::Operation& operation);
  void any(const ir::Operation& operation);
  void reduce(const ir::Operation& operation);
  // transpose and slice: result axis i runs along the operand's axes[i] from offsets[i].
  void rearrange(const ir::Operation& operation, const std::vector<std::int64_t>& axes,
                 const std::vector<std::int64_t>& offsets);

  const TileLaunch& launch_;
  std::int64_t block_ = 0;  // its number in the grid
  Random rounding_{0};      // of this block
  const ir::Kernel& kernel_;
  std::vector<Value> values_;                   // by ValueId
  std::vector<const TensorArgument*> tensors_;  // by ValueId
  std::map<ir::ValueId, TensorArgument> peers_;
};

extern template class TileEvaluator<float>;
extern template class TileEvaluator<double>;

}  // namespace tilewright::simulator
