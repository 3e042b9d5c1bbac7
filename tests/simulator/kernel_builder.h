#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "ir/ir.h"

namespace tilewright::simulator {

// Writes a kernel in the tile form operation by operation. Operation n stands on line n of
// "kernel.cpp".
class KernelBuilder {
 public:
  using Id = ir::ValueId;
  using Shape = std::vector<std::int64_t>;

  explicit KernelBuilder(std::vector<Dim> grid = {1}) {
    kernel_.name = "kernel";
    kernel_.where = {"kernel.cpp", 1};
    kernel_.grid = std::move(grid);
    open();
    for (std::size_t i = 0; i < kernel_.grid.size(); ++i) argument(ir::Type::scalar(i32));
  }

  Dim dim(const std::string& name) {
    kernel_.dims.push_back(Dim::symbol(name));
    return kernel_.dims.back();
  }
  void set_grid(std::vector<Dim> grid) { kernel_.grid = std::move(grid); }
  Id tensor(const std::string& name, DType dtype, std::vector<Dim> shape) {
    const auto rank = static_cast<std::int64_t>(shape.size());
    return parameter(ir::Parameter::Kind::inout, name, dtype, std::move(shape),
                     ir::Type::of(ir::Type::Kind::tensor, dtype, {rank}));
  }
  Id scalar(const std::string& name, DType dtype) {
    return parameter(ir::Parameter::Kind::scalar, name, dtype, {}, ir::Type::scalar(dtype));
  }
  Id grid(std::size_t axis) { return blocks_[0].arguments[axis]; }

  Id add(ir::Op op, std::vector<Id> operands, ir::Type type, ir::Attributes attributes = {}) {
    const Id result = kernel_.add_value(std::move(type));
    append({op, std::move(operands), {result}, std::move(attributes), {}, {}});
    return result;
  }
  Id integer(std::int64_t value, DType dtype = i32) {
    return add(ir::Op::constant, {}, ir::Type::scalar(dtype), {{ir::Key::value, value}});
  }
  Id number(double value, DType dtype = f32) {
    return add(ir::Op::constant, {}, ir::Type::scalar(dtype), {{ir::Key::value, value}});
  }
  Id dim_value(const Dim& dim) {
    return add(ir::Op::dim, {}, ir::Type::scalar(i32), {{ir::Key::dim, dim}});
  }
  // Elementwise: the shape is the operands' broadcast one, the dtype the last operand's.
  Id fn(ir::Op op, std::vector<Id> operands, DType dtype) {
    ir::Type type = ir::Type::scalar(dtype);
    for (const Id id : operands) {
      const ir::Type& of = kernel_.types[id];
      if (!of.is_tile()) continue;
      if (!type.is_tile()) type = ir::Type::tile(dtype, of.shape);
      for (std::size_t i = 0; i < of.shape.size(); ++i) {
        type.shape[i] = std::max(type.shape[i], of.shape[i]);
      }
    }
    return add(op, std::move(operands), type);
  }
  Id fn(ir::Op op, std::vector<Id> operands) {
    const DType dtype = kernel_.types[operands.back()].dtype;
    return fn(op, std::move(operands), dtype);
  }
  Id splat(Shape shape, Id value) {
    return add(ir::Op::splat, {value},
               ir::Type::tile(kernel_.types[value].dtype, std::move(shape)));
  }
  Id iota(Shape shape, std::int64_t axis) {
    return add(ir::Op::iota, {}, ir::Type::tile(i32, std::move(shape)), {{ir::Key::axis, axis}});
  }
  Id cast(Id value, DType dtype) { return fn(ir::Op::cast, {value}, dtype); }
  Id load(Id tensor, std::vector<Id> starts, const std::vector<Id>& limits, Shape sizes) {
    Shape shape;
    for (const std::int64_t size : sizes) {
      if (size != 0) shape.push_back(size);
    }
    std::vector<Id> operands = {tensor};
    operands.insert(operands.end(), starts.begin(), starts.end());
    operands.insert(operands.end(), limits.begin(), limits.end());
    return add(ir::Op::load, std::move(operands),
               ir::Type::tile(kernel_.types[tensor].dtype, shape), {{ir::Key::sizes, sizes}});
  }
  void store(Id tensor, Id tile, std::vector<Id> starts, const std::vector<Id>& limits,
             Shape sizes) {
    std::vector<Id> operands = {tensor, tile};
    operands.insert(operands.end(), starts.begin(), starts.end());
    operands.insert(operands.end(), limits.begin(), limits.end());
    append({ir::Op::store, std::move(operands), {}, {{ir::Key::sizes, sizes}}, {}, {}});
  }
  Id transpose(Id tile) {
    const ir::Type& of = kernel_.types[tile];
    return add(ir::Op::transpose, {tile}, ir::Type::tile(of.dtype, {of.shape[1], of.shape[0]}),
               {{ir::Key::permutation, Shape{1, 0}}});
  }
  Id reduce(ir::Op function, Id tile, std::int64_t axis) {
    ir::Type type = kernel_.types[tile];
    type.shape[static_cast<std::size_t>(axis)] = 1;
    return add(ir::Op::reduce, {tile}, type,
               {{ir::Key::function, function}, {ir::Key::axis, axis}});
  }
  Id dot(Id a, Id b, DType dtype = f32) {
    return add(ir::Op::dot, {a, b},
               ir::Type::tile(dtype, {kernel_.types[a].shape[0], kernel_.types[b].shape[1]}));
  }
  Id dot_add(Id a, Id b, Id accumulator) {
    return add(ir::Op::dot, {a, b, accumulator}, kernel_.types[accumulator]);
  }

  // Between open() and close_*() operations go to a block of their own.
  void open() { blocks_.emplace_back(); }
  Id argument(ir::Type type) {
    blocks_.back().arguments.push_back(kernel_.add_value(std::move(type)));
    return blocks_.back().arguments.back();
  }
  ir::Block close(std::vector<Id> yielded) {
    append({ir::Op::yield, std::move(yielded), {}, {}, {}, {}});
    ir::Block block = std::move(blocks_.back());
    blocks_.pop_back();
    return block;
  }
  std::vector<Id> control(ir::Op op, std::vector<Id> operands, std::size_t leading,
                          std::vector<ir::Block> blocks) {
    std::vector<Id> results;
    const std::vector<Id>& yielded = blocks[0].body.back().operands;
    for (std::size_t i = leading; i < yielded.size(); ++i) {
      results.push_back(kernel_.add_value(kernel_.types[yielded[i]]));
    }
    append({op, std::move(operands), results, {}, std::move(blocks), {}});
    return results;
  }

  int line() const { return line_; }  // of the last operation
  ir::Kernel finish() {
    kernel_.body = std::move(blocks_[0]);
    return std::move(kernel_);
  }

 private:
  Id parameter(ir::Parameter::Kind kind, const std::string& name, DType dtype,
               std::vector<Dim> shape, ir::Type type) {
    const Id value = kernel_.add_value(std::move(type));
    kernel_.parameters.push_back({kind, name, dtype, std::move(shape), value, kernel_.where});
    return value;
  }
  void append(ir::Operation operation) {
    operation.where = {"kernel.cpp", ++line_};
    blocks_.back().body.push_back(std::move(operation));
  }

  ir::Kernel kernel_;
  std::vector<ir::Block> blocks_;
  int line_ = 0;
};

}  // namespace tilewright::simulator
