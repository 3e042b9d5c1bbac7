#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/loaded_integers.h"
#include "cpu/kernels.h"
#include "cpu/program.h"
#include "ir/ir.h"
#include "tilewright/numerics.h"

namespace tilewright::cpu {

// One run of lower(): goes over the kernel's operations and appends those of the CPU to the block
// at hand.
class Lowering {
 public:
  Lowering(const ir::Kernel& kernel, const Kernels& kernels, const Numerics& numerics);
  Program run();

 private:
  // Of a scalar or of a tile.
  struct Place {
    bool is_scalar;
    std::uint32_t id;
    friend bool operator==(const Place&, const Place&) = default;
  };
  // An operand of a product, as it is read.
  struct Factor {
    TileId tile;
    bool transposed;
  };

  [[noreturn]] void refuse(const ir::Operation& operation) const;
  const ir::Type& type(ir::ValueId value) const { return kernel_.types[value]; }
  // As made for the operation at hand.
  template <typename Made>
  void append(Made made) {
    if constexpr (requires { made.where; }) made.where = where_;
    block_->push_back(std::move(made));
  }

  // lower.cpp: what is known at the launch, control flow, scalars.
  void bind_parameters();
  void visit(const ir::Block& block);
  void visit(const ir::Operation& operation);
  void constant(const ir::Operation& operation);
  void control(const ir::Operation& operation);
  void for_loop(const ir::Operation& operation);
  void while_loop(const ir::Operation& operation);
  void if_then(const ir::Operation& operation);
  void compute(const ir::Operation& operation);
  template <typename End>
  void lower_block(const ir::Block& from, Block& to, End end);
  Place place(ir::ValueId value) const;
  Place new_place(const ir::Type& type);
  void copy(Place to, Place from);
  // Places for what is carried, which begin with the given values and end as the results.
  std::vector<Place> begin_variables(const std::vector<ir::ValueId>& variables,
                                     const std::vector<ir::ValueId>& results,
                                     const std::vector<ir::ValueId>& initial);
  // Brings values to the variables, as if all at once.
  void assign(const std::vector<Place>& variables, const std::vector<ir::ValueId>& values);
  void share(ir::ValueId same, ir::ValueId value);
  ScalarId new_scalar(Scalar initial = {});
  ScalarId scalar(ir::ValueId value) const { return scalars_[value]; }
  ScalarId define_scalar(ir::ValueId value);

  // lower_access.cpp
  void peer(const ir::Operation& operation);
  void load_index(const ir::Operation& operation);
  void access(const ir::Operation& operation);
  void add(const ir::Operation& operation, Box box);
  Box box(const ir::Operation& operation, std::size_t first) const;
  bool is_constant(const ir::Operation& load) const;
  bool is_read_in_place(const ir::Operation& load) const;
  bool is_read_by_rows(const ir::Operation& load) const;
  bool is_read_often(const ir::Operation& load) const;
  void store(const ir::Operation& operation, Box to);
  const ir::Operation* product_that_updates(const ir::Operation& load) const;

  // lower_tiles.cpp
  void tile(const ir::Operation& operation);
  void elementwise(const ir::Operation& operation);
  void count(const ir::Operation& operation);
  void reduce(const ir::Operation& operation);
  void take_product(Fold& fold);
  void any(const ir::Operation& operation);
  void move(const ir::Operation& operation);
  void reshape(const ir::Operation& operation);
  void product(const ir::Operation& operation);
  Factor factor(ir::ValueId value) const;
  TileId needed_of(ir::ValueId product) const;
  bool is_for_next_round(ir::ValueId value) const;
  Rounding rounding(DType element) const;
  // Whether products alone read the tile, or a transposition of it.
  bool is_factor_alone(ir::ValueId value) const;
  // Whether this use is such a product or transposition.
  bool takes_factor(const ir::Operation& use, ir::ValueId value) const;
  void apply(Apply::Run run, const char* name, std::vector<Source> operands, TileId result,
             Function function = Function::count);
  Source source(ir::ValueId value) const;
  void copy_tile(TileId from, TileId to);
  // Tiles of another element type.
  TileId converted(TileId tile, Element to);
  void convert(TileId from, TileId to);
  // The tile itself, or a copy in which every element has a place.
  TileId whole(TileId tile);
  TileId new_tile(Tile tile);
  TileId define_tile(ir::ValueId value, const std::vector<bool>& held);
  TileId define_tile(ir::ValueId value);
  std::vector<std::int64_t> shape_of(TileId tile) const;

  const ir::Kernel& kernel_;
  const Kernels& kernels_;
  const Numerics& numerics_;
  const analysis::LoadedIntegers integers_;
  std::vector<const ir::Operation*> definitions_;        // by ValueId
  std::vector<std::vector<const ir::Operation*>> uses_;  // by ValueId
  std::vector<TileId> tiles_;                            // these by ValueId too
  std::vector<ScalarId> scalars_;
  std::vector<TensorId> tensors_;
  Program program_;
  Block* block_ = nullptr;
  const ir::Block* visited_ = nullptr;
  const ir::Operation* loop_ = nullptr;  // the innermost one that counts
  SourceLocation where_;                 // of the operation at hand
};

}  // namespace tilewright::cpu
