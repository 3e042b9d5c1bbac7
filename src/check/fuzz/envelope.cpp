#include "check/fuzz/envelope.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "ir/binding.h"
#include "support/diagnostic.h"
#include "support/number_formats.h"

namespace tilewright::checks::fuzz {
namespace {

using ir::Key;
using ir::Op;
using ir::Operation;
using ir::ValueId;
using Shape = std::vector<std::int64_t>;

struct Value {
  Shape shape, extents;
  std::vector<Interval> elements;  // row-major in `shape`
};

std::int64_t count(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

Value made(const Shape& shape) {
  return {shape, shape, std::vector<Interval>(static_cast<std::size_t>(count(shape)), kAnything)};
}

std::size_t place(const Shape& shape, const Shape& index) {
  std::int64_t at = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) at = at * shape[i] + index[i];
  return static_cast<std::size_t>(at);
}

template <typename Visit>
void each(const Shape& extents, Visit&& visit) {
  if (std::count_if(extents.begin(), extents.end(), [](std::int64_t e) { return e <= 0; })) return;
  Shape index(extents.size(), 0);
  for (;;) {
    visit(index);
    std::size_t axis = extents.size();
    while (axis > 0 && ++index[axis - 1] == extents[axis - 1]) index[--axis] = 0;
    if (axis == 0) return;
  }
}

class Evaluation {
 public:
  Evaluation(const ir::Kernel& kernel, Launch& launch, const Precision& precision)
      : kernel_(kernel), precision_(precision), values_(kernel.types.size()) {
    std::vector<ir::TensorShape> shapes;
    for (LaunchTensor& tensor : launch.tensors) {
      shapes.push_back({tensor.name, tensor.memory.dtype(), tensor.shape, tensor.memory.strides()});
    }
    binding_ = ir::bind(kernel, shapes, 1);
    std::size_t tensor = 0, scalar = 0;
    for (const ir::Parameter& parameter : kernel.parameters) {
      if (parameter.is_tensor()) {
        tensor_of_[parameter.value] = tensor++;
      } else {
        double value = launch.scalars[scalar++];
        if (parameter.dtype == f32) value = static_cast<float>(value);
        set_scalar(parameter.value, value);
      }
    }
    for (LaunchTensor& from : launch.tensors) {
      TensorEnvelope memory;
      for (std::int64_t i = 0; i < from.memory.elements(); ++i) {
        const double value = from.memory.flat(i);
        memory.values.push_back({value, value});
        memory.written.push_back(false);
      }
      memory_.push_back(std::move(memory));
      tensors_.push_back(&from);
    }
  }

  std::vector<TensorEnvelope> run() {
    Shape grid;
    for (const Dim& extent : kernel_.grid) grid.push_back(binding_.evaluate(extent));
    each(grid, [&](const Shape& index) {
      for (std::size_t i = 0; i < index.size(); ++i) {
        set_scalar(kernel_.body.arguments[i], static_cast<double>(index[i]));
      }
      run(kernel_.body);
    });
    return std::move(memory_);
  }

 private:
  void set_scalar(ValueId id, double value) { values_[id] = {{}, {}, {{value, value}}}; }
  const Value& operand(const Operation& o, std::size_t i) const { return values_[o.operands[i]]; }
  Value result(const Operation& o) const { return made(kernel_.type(o.results[0]).shape); }
  DType dtype(const Operation& o) const { return kernel_.type(o.results[0]).dtype; }
  double scalar(const Operation& o, std::size_t i) const {
    const Interval x = operand(o, i).elements[0];
    if (!x.exact()) throw Undecided();
    return x.lo;
  }
  std::int64_t integer(const Operation& o, std::size_t i) const {
    return static_cast<std::int64_t>(scalar(o, i));
  }

  std::vector<Value> run(const ir::Block& block) {
    for (const Operation& o : block.body) {
      if (o.op == Op::yield) {
        std::vector<Value> yielded;
        for (const ValueId id : o.operands) yielded.push_back(values_[id]);
        return yielded;
      }
      run(o);
    }
    return {};
  }

  void run(const Operation& o) {
    if (o.op == Op::for_loop) return for_loop(o);
    if (o.op == Op::if_then) return set_results(o, run(o.blocks[scalar(o, 0) != 0 ? 0 : 1]));
    if (o.op == Op::store) return store(o);
    values_[o.results[0]] = evaluate(o);
    if (o.op == Op::dot) rounded_[o.results[0]] = rounded_of_sum(o);
  }

  void set_results(const Operation& o, std::vector<Value> values) {
    for (std::size_t i = 0; i < values.size(); ++i) values_[o.results[i]] = std::move(values[i]);
  }

  void for_loop(const Operation& o) {
    std::vector<Value> carried;
    for (std::size_t i = 3; i < o.operands.size(); ++i) carried.push_back(operand(o, i));
    const std::int64_t low = integer(o, 0), high = integer(o, 1), step = integer(o, 2);
    const ir::Block& body = o.blocks[0];
    for (std::int64_t i = low; i < high; i += step) {
      set_scalar(body.arguments[0], static_cast<double>(i));
      for (std::size_t k = 0; k < carried.size(); ++k) {
        values_[body.arguments[k + 1]] = std::move(carried[k]);
      }
      carried = run(body);
    }
    set_results(o, std::move(carried));
  }

  Value evaluate(const Operation& o) {
    if (ir::info(o.op).elementwise()) return elementwise(o);
    if (ir::info(o.op).family == ir::Family::tile) return tile(o);
    if (o.op == Op::constant) return constant(o);
    if (o.op == Op::load) return load(o);
    if (o.op == Op::dot) return dot(o);
    if (o.op != Op::dim) refuse(o);
    const auto value = static_cast<double>(binding_.evaluate(o.attributes.dim()));
    return {{}, {}, {{value, value}}};
  }

  [[noreturn]] static void refuse(const Operation& o) {
    Diagnostic(o.where, "the envelope does not know " + std::string(ir::info(o.op).name),
               ErrorKind::internal)
        .raise();
  }

  Value tile(const Operation& o) {
    switch (ir::as<ir::TileOp>(o.op)) {
      case ir::TileOp::splat:
        return elementwise(o);
      case ir::TileOp::iota: {
        Value r = result(o);
        const auto axis = static_cast<std::size_t>(o.attributes.integer(Key::axis));
        each(r.shape, [&](const Shape& at) {
          const auto coordinate = static_cast<double>(at[axis]);
          r.elements[place(r.shape, at)] = {coordinate, coordinate};
        });
        return r;
      }
      case ir::TileOp::reduce:
        return reduce(o);
      case ir::TileOp::any:
        return any(o);
      case ir::TileOp::transpose: {
        const auto& axes = o.attributes.integers(Key::permutation);
        return rearranged(o, axes, Shape(axes.size(), 0));
      }
      case ir::TileOp::slice: {
        Shape axes(operand(o, 0).shape.size());
        std::iota(axes.begin(), axes.end(), 0);
        return rearranged(o, axes, o.attributes.integers(Key::offsets));
      }
      case ir::TileOp::reshape:
        return reshape(o);
      case ir::TileOp::convert:
        return operand(o, 0);
      case ir::TileOp::complete:  // of the scheduled form
        break;
    }
    refuse(o);
  }

  Value any(const Operation& o) {
    const Value& x = operand(o, 0);
    Interval found{0, 0};
    each(x.extents, [&](const Shape& at) {
      const Interval e = x.elements[place(x.shape, at)];
      found = {std::max(found.lo, e.lo), std::max(found.hi, e.hi)};
    });
    // Warps need not agree.
    if (o.attributes.integer_or(Key::partial, 0) != 0 && found.hi != 0) throw Undecided();
    return {{}, {}, {found}};
  }

  Value constant(const Operation& o) const {
    const ir::Attribute& value = *o.attributes.find(Key::value);
    const auto* whole = std::get_if<std::int64_t>(&value);
    double number = whole ? static_cast<double>(*whole) : std::get<double>(value);
    if (dtype(o) == f32) number = static_cast<float>(number);
    return {{}, {}, {widened({number, number}, 0, is_float(dtype(o)) ? dtype(o) : f32)}};
  }

  Value elementwise(const Operation& o) const {
    Value r = result(o);
    const std::size_t n = o.operands.size(), rank = r.shape.size();
    // The step of each operand along each axis: 0 where it stretches.
    std::vector<Shape> steps(n, Shape(rank, 0));
    for (std::size_t k = 0; k < n; ++k) {
      const Value& x = operand(o, k);
      std::int64_t step = 1;
      for (std::size_t axis = x.shape.size(); axis-- > 0; step *= x.shape[axis]) {
        const bool stretches = x.shape[axis] == 1 && r.shape[axis] != 1;
        if (!stretches) steps[k][axis] = step;
        // An axis of size 1 that does not exist makes all that it stretches to empty.
        if (!stretches || x.extents[axis] == 0) {
          r.extents[axis] = std::min(r.extents[axis], x.extents[axis]);
        }
      }
    }
    const DType from = kernel_.type(o.operands.back()).dtype, to = dtype(o);
    each(r.extents, [&](const Shape& at) {
      Interval x[3];
      for (std::size_t k = 0; k < n; ++k) {
        std::int64_t offset = 0;
        for (std::size_t axis = 0; axis < rank; ++axis) offset += at[axis] * steps[k][axis];
        x[k] = operand(o, k).elements[static_cast<std::size_t>(offset)];
      }
      Interval& made = r.elements[place(r.shape, at)];
      made = ir::info(o.op).elementwise() && o.op != Op::cast
                 ? fuzz::evaluate(o.op, x, o.op == Op::select ? to : from, precision_)
                 : cast(x[0], from, to);
      if (o.op != Op::add && o.op != Op::sub) return;
      // The product's sum may begin with the other operand (fold_accumulators, begin_sums).
      for (std::size_t k = 0; k < 2; ++k) {
        const auto product = rounded_.find(o.operands[k]);
        if (product == rounded_.end()) continue;
        const double more = product->second * x[1 - k].magnitude();
        made = widened({made.lo - more, made.hi + more}, 0, to);
      }
    });
    return r;
  }

  // What the additions of a product's sum lose of what it begins with, relative to that.
  double rounded_of_sum(const Operation& o) const {
    const Value &a = operand(o, 0), &b = operand(o, 1);
    const bool narrow = size_of(kernel_.type(o.operands[0]).dtype) == 1;
    const std::int64_t terms = std::min(a.extents[1], b.extents[0]) + 2;
    return static_cast<double>(terms) * (narrow ? precision_.narrow_sum : precision_.sum);
  }

  static Interval cast(Interval x, DType from, DType to) {
    if (to == from) return x;
    if (is_float(to)) return widened(x, is_integer(from) ? 0x1p-24 : 0, to);
    Interval whole{std::nearbyint(x.lo), std::nearbyint(x.hi)};
    if (is_memory_format(to)) {
      const auto low = static_cast<double>(range_of(to).low);
      const auto high = static_cast<double>(range_of(to).high);
      whole = {std::clamp(whole.lo, low, high), std::clamp(whole.hi, low, high)};
    }
    if (!(whole.magnitude() <= INT32_MAX)) throw Undecided();
    return whole;
  }

  struct Box {
    std::size_t tensor;
    Shape starts, sizes, extents;  // extents: of the tile's axes
  };
  Box box_of(const Operation& o, std::size_t first) const {
    Box box{tensor_of_.at(o.operands[0]), {}, o.attributes.integers(Key::sizes), {}};
    const Shape& shape = tensors_[box.tensor]->shape;
    bool exists = true;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      box.starts.push_back(integer(o, first + axis));
      const std::int64_t limit =
          std::min(integer(o, first + shape.size() + axis), shape[axis]) - box.starts[axis];
      if (box.sizes[axis] == 0) {
        exists = exists && limit > 0;
      } else {
        box.extents.push_back(std::clamp<std::int64_t>(limit, 0, box.sizes[axis]));
      }
    }
    if (!exists) box.extents.assign(box.extents.size(), 0);
    if (!exists && box.extents.empty()) box.extents.push_back(0);
    return box;
  }
  // Where an element of the tile lies in the tensor's memory.
  std::size_t memory_place(const Box& box, const Shape& at) const {
    const Shape strides = tensors_[box.tensor]->memory.strides();
    std::int64_t offset = 0;
    std::size_t seen = 0;
    for (std::size_t axis = 0; axis < strides.size(); ++axis) {
      const std::int64_t inside = box.sizes[axis] == 0 ? 0 : at[seen++];
      offset += (box.starts[axis] + inside) * strides[axis];
    }
    return static_cast<std::size_t>(offset);
  }

  Value load(const Operation& o) const {
    const Box box = box_of(o, 1);
    Value r = result(o);
    r.extents = box.extents;
    each(r.extents, [&](const Shape& at) {
      r.elements[place(r.shape, at)] = memory_[box.tensor].values[memory_place(box, at)];
    });
    return r;
  }

  void store(const Operation& o) {
    const Box box = box_of(o, 2);
    const Value& tile = operand(o, 1);
    Shape extents = box.extents;
    for (std::size_t i = 0; i < tile.extents.size(); ++i) {
      extents[i] = std::min(extents[i], tile.extents[i]);
    }
    const DType to = tensors_[box.tensor]->memory.dtype();
    TensorEnvelope& memory = memory_[box.tensor];
    each(extents, [&](const Shape& at) {
      const std::size_t where = memory_place(box, at);
      memory.values[where] =
          cast(tile.elements[place(tile.shape, at)], kernel_.type(o.operands[1]).dtype, to);
      memory.written[where] = true;
    });
  }

  // Whether some order of a sum of these magnitudes leaves what f32 can hold on its way.
  static bool overflows(double magnitudes) {
    return std::isfinite(magnitudes) && magnitudes > std::numeric_limits<float>::max();
  }

  // Midpoints and radii: one pass over k for the value and all its errors.
  Value dot(const Operation& o) const {
    const Value &a = operand(o, 0), &b = operand(o, 1);
    const Value* c = o.operands.size() > 2 ? &operand(o, 2) : nullptr;
    Value r = result(o);
    r.extents = {a.extents[0], b.extents[1]};
    for (std::size_t i = 0; c && i < 2; ++i) r.extents[i] = std::min(r.extents[i], c->extents[i]);
    const std::int64_t depth = std::min(a.extents[1], b.extents[0]), width = r.shape[1];
    const double rounded = rounded_of_sum(o);
    for (std::int64_t i = 0; i < r.extents[0]; ++i) {
      for (std::int64_t j = 0; j < r.extents[1]; ++j) {
        const auto at = static_cast<std::size_t>(i * width + j);
        const Interval begin = c ? c->elements[at] : Interval{0, 0};
        double middle = 0, radius = 0, magnitudes = begin.magnitude();
        for (std::int64_t k = 0; k < depth; ++k) {
          const Interval x = a.elements[static_cast<std::size_t>(i * a.shape[1] + k)];
          const Interval y = b.elements[static_cast<std::size_t>(k * width + j)];
          const double mx = x.middle(), my = y.middle(), ry = (y.hi - y.lo) / 2;
          middle += mx * my;
          radius += std::abs(mx) * ry + (x.hi - x.lo) / 2 * (std::abs(my) + ry);
          magnitudes += std::abs(mx * my);
        }
        radius += rounded * (magnitudes + radius);
        r.elements[at] =
            overflows(magnitudes)
                ? kAnything
                : widened({begin.lo + middle - radius, begin.hi + middle + radius}, 0, dtype(o));
      }
    }
    return r;
  }

  Value reduce(const Operation& o) const {
    const Value& x = operand(o, 0);
    Value r = result(o);
    const auto axis = static_cast<std::size_t>(o.attributes.integer(Key::axis));
    const Op function = o.attributes.function();
    const bool integral = is_integer(dtype(o));
    r.extents = x.extents;
    r.extents[axis] = 1;
    each(r.extents, [&](const Shape& at) {
      Shape from = at;
      Interval all{0, 0};
      if (function != Op::add) {
        const double none = function == Op::max ? -INFINITY : INFINITY;
        all = {none, none};
      }
      double magnitudes = 0;
      for (from[axis] = 0; from[axis] < x.extents[axis]; ++from[axis]) {
        const Interval e = x.elements[place(x.shape, from)];
        if (e.anything() || all.anything()) {
          all = kAnything;
        } else if (function == Op::add) {
          all = {all.lo + e.lo, all.hi + e.hi};
          magnitudes += e.magnitude();
        } else if (function == Op::max) {
          all = {std::max(all.lo, e.lo), std::max(all.hi, e.hi)};
        } else {
          all = {std::min(all.lo, e.lo), std::min(all.hi, e.hi)};
        }
      }
      if (integral) {
        if (!(all.magnitude() <= INT32_MAX)) throw Undecided();
      } else if (function == Op::add && overflows(magnitudes)) {
        all = kAnything;
      } else if (function == Op::add && !std::isinf(magnitudes)) {
        const double error = static_cast<double>(x.extents[axis]) * 0x1p-24 * magnitudes;
        all = widened({all.lo - error, all.hi + error}, 0, dtype(o));
      }
      r.elements[place(r.shape, at)] = all;
    });
    return r;
  }

  Value rearranged(const Operation& o, const Shape& axes, const Shape& offsets) const {
    const Value& x = operand(o, 0);
    Value r = result(o);
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const auto axis = static_cast<std::size_t>(axes[i]);
      r.extents[i] = std::clamp<std::int64_t>(x.extents[axis] - offsets[i], 0, r.shape[i]);
    }
    each(r.extents, [&](const Shape& at) {
      Shape from(at.size());
      for (std::size_t i = 0; i < axes.size(); ++i) {
        from[static_cast<std::size_t>(axes[i])] = at[i] + offsets[i];
      }
      r.elements[place(r.shape, at)] = x.elements[place(x.shape, from)];
    });
    return r;
  }

  // Of the kernels that are made only axes of size 1 come and go.
  Value reshape(const Operation& o) const {
    Value r = operand(o, 0);
    Shape extents;
    for (std::size_t i = 0; i < r.shape.size(); ++i) {
      if (r.shape[i] != 1) extents.push_back(r.extents[i]);
    }
    const auto is_empty = [&] { return std::count(r.extents.begin(), r.extents.end(), 0) != 0; };
    const bool was_empty = is_empty();
    r.shape = r.extents = kernel_.type(o.results[0]).shape;
    std::size_t next = 0;
    for (std::size_t i = 0; i < r.shape.size(); ++i) {
      if (r.shape[i] != 1) r.extents[i] = extents.at(next++);
    }
    // The axis that did not exist is gone. Else each keeps what exists of it: the maximum of no
    // columns is -inf in every row.
    if (was_empty && !is_empty()) std::fill(r.extents.begin(), r.extents.end(), 0);
    return r;
  }

  const ir::Kernel& kernel_;
  const Precision& precision_;
  ir::Binding binding_;
  std::vector<Value> values_;
  std::map<ValueId, double> rounded_;  // of products: rounded_of_sum
  std::map<ValueId, std::size_t> tensor_of_;
  std::vector<LaunchTensor*> tensors_;
  std::vector<TensorEnvelope> memory_;
};

}  // namespace

std::vector<TensorEnvelope> envelope_of(const ir::Kernel& kernel, Launch& launch,
                                        const Precision& precision) {
  return Evaluation(kernel, launch, precision).run();
}

}  // namespace tilewright::checks::fuzz
