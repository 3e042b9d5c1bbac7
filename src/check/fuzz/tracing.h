#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "check/fuzz/recipe.h"
#include "check/fuzz/tile_value.h"
#include "tilewright/kernel.h"

namespace tilewright::checks::fuzz {

// Records the steps of a recipe on a kernel, with the public functions of the language, and makes
// the tensors of a launch on the way.
class Tracing {
 public:
  Tracing(Kernel& kernel, const Recipe& recipe, Launch& launch);

  // The part of the grid that is traced: blocks of rows and columns, and their numbers.
  struct Place {
    Block rows, columns;
    Index row_number;
    std::optional<Index> column_number;
  };
  void run(const Place& place, const std::vector<TileValue>& given);
  // Tensors whose axes bind the dimensions that no other tensor binds.
  void bind_dimensions();

  Dim rows, columns, depth;
  // A tensor that is loaded; the same one for the same axes and dtype.
  Tensor input(const std::vector<Axis>& axes, DType dtype, bool pair);

 private:
  struct Number {  // of a place among those of the grid and of loops
    Index index;
    Dim count;
    std::int64_t size;
    Axis covered_by;  // a tile with this axis lies elsewhere for each of them
  };
  using Predicate = std::function<bool(const TileValue&)>;

  void steps(const std::vector<Step>& steps);
  void step(const Step& step);
  void load(const Step& step);
  void unary(const Step& step);
  void binary(const Step& step);
  void select(const Step& step);
  void mask(const Step& step);
  void cast(const Step& step);
  void reduce(const Step& step);
  void dot(const Step& step);
  void dot_of_parts(const Step& step);
  void reshape(const Step& step);
  void slice(const Step& step);
  void transpose(const Step& step);
  void permute(const Step& step, const TileValue& value);
  void scalar(const Step& step);
  void coordinates(const Step& step);
  void loop(const Step& step);
  struct Carried {
    std::unique_ptr<Var> cell;
    std::vector<Axis> axes;
    Cuts cuts;
    bool whole;  // it begins whole, and is cut by what the first turn adds
  };
  std::optional<Carried> carried(const Step& step, int i) const;
  void loop_body(const Step& step, std::vector<Carried>& carried);
  void when(const Step& step);
  void nest(const Step& step);
  Tile term(const Index& turn, Axis wide);
  void store(const TileValue& value, DType dtype);
  void update(const Step& step);

  std::optional<TileValue> pick(int which, const Predicate& fits) const;
  std::optional<TileValue> pick_real(int which) const;
  TileValue loaded(const std::vector<Axis>& axes, DType dtype, bool pair);
  std::optional<Block> block_of(Axis axis) const;
  int block_size(Axis axis) const;
  Dim dim_of(Axis axis) const;
  std::int64_t size_of_axis(Axis axis) const;
  Axis reduction_axis(int n) const;
  void push(const Tile& tile, std::vector<Axis> axes, Cuts cuts) {
    values_.push_back({tile, std::move(axes), std::move(cuts)});
  }
  // The tensor and the view of it that a tile of this block is stored to, and no other is.
  std::optional<TensorView> own_place(const TileValue& value, DType dtype, bool inout);
  TileValue carried_on(const TileValue& before, int n, int which) const;

  Kernel& kernel_;
  const Recipe& recipe_;
  Launch& launch_;
  std::vector<TileValue> values_;
  std::vector<Number> numbers_;
  std::optional<Place> place_;
  std::optional<Block> depth_;
  std::map<std::string, Tensor> inputs_;
  std::set<Axis> bound_;  // by an axis of a tensor
  std::vector<Scalar> scalars_;
};

}  // namespace tilewright::checks::fuzz
