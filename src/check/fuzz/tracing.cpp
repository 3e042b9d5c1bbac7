#include "check/fuzz/tracing.h"

#include <algorithm>
#include <cmath>

namespace tilewright::checks::fuzz {
namespace {

constexpr std::size_t kMostAxes = 5;  // of a tensor
constexpr int kInputPairs = 2;        // tensors in one, told apart by a leading axis

bool real(const TileValue& v) { return is_float(v.tile.dtype()); }
bool flat(const TileValue& v) { return v.axes.size() == 2; }

Tile as_real(const Tile& tile) {
  return tile.dtype() == f8e4m3 || !is_float(tile.dtype()) ? tile.cast(f32) : tile;
}

std::vector<Axis> joined(const std::vector<Axis>& a, const std::vector<Axis>& b) {
  std::vector<Axis> result = a;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == Axis::one) result[i] = b[i];
  }
  return result;
}

Tile of_one(int n, const Tile& x) {
  switch (n % 24) {
    case 0:
      return -x;
    case 1:
      return abs(x);
    case 2:
      return exp(x * 0.25);
    case 3:
      return exp2(min(x, 3));
    case 4:
      return log(abs(x) + 1.5);
    case 5:
      return log2(abs(x) + 1.25);
    case 6:
      return sqrt(abs(x));
    case 7:
      return rsqrt(abs(x) + 0.5);
    case 8:
      return rcp(abs(x) + 0.5);
    case 9:
      return tanh(x);
    case 10:
      return x * 0.5 + 1;
    case 11:
      return x / (1 + exp(-x));
    case 12:
      return x * x;
    case 13:
      return log1p(abs(x));
    case 14:
      return expm1(min(x, 3));
    case 15:
      return erf(x);
    case 16:
      return sin(x);
    case 17:
      return cos(x);
    case 18:
      return floor(x);
    case 19:
      return ceil(x);
    case 20:
      return rint(x * 4);
    case 21:
      return sigmoid(x);
    case 22:
      return clamp(x, -1, 1.5);
    default:
      return max(x, 0);
  }
}

Tile of_bits(int n, const Tile& x, const Tile& y) {
  switch (n % 6) {
    case 0:
      return x & y;
    case 1:
      return x | y;
    case 2:
      return x ^ y;
    case 3:
      return ~x % ((y & 15) + 1);
    case 4:
      return (x & 255) << (y & 15);
    default:
      return x >> y;
  }
}

Tile of_two(int n, const Tile& x, const Tile& y) {
  const bool integers = is_integer(x.dtype());
  if (integers && n % 2 != 0) return of_bits(n / 2, x, y);
  switch (n % 7) {
    case 0:
    case 1:
      return x + y;
    case 2:
      return x - y;
    case 3:
      return x * y;
    case 4:
      return min(x, y);
    case 5:
      return max(x, y);
    default:
      return integers ? x / (abs(y) + 1) : x / (abs(y) + 0.5);
  }
}

Tile compared(int n, const Tile& x, const Tile& y) {
  switch (n % 4) {
    case 0:
      return x < y;
    case 1:
      return x <= y;
    case 2:
      return x > y;
    default:
      return x >= y;
  }
}

}  // namespace

Tracing::Tracing(Kernel& kernel, const Recipe& recipe, Launch& launch)
    : rows(kernel.dim("m")),
      columns(kernel.dim("n", recipe.grid_of_columns ? DimFacts{} : at_most(recipe.block_columns))),
      depth(kernel.dim("k")),
      kernel_(kernel),
      recipe_(recipe),
      launch_(launch) {}

void Tracing::run(const Place& place, const std::vector<TileValue>& given) {
  place_.emplace(place);
  values_ = given;
  numbers_.clear();
  const std::int64_t row_blocks =
      (recipe_.sizes.rows + recipe_.block_rows - 1) / recipe_.block_rows;
  numbers_.push_back(
      {place.row_number, ceil_div(rows, recipe_.block_rows), row_blocks, Axis::rows});
  if (place.column_number) {
    const std::int64_t column_blocks =
        (recipe_.sizes.columns + recipe_.block_columns - 1) / recipe_.block_columns;
    numbers_.push_back({*place.column_number, ceil_div(columns, recipe_.block_columns),
                        column_blocks, Axis::columns});
  }
  if (values_.empty()) {
    values_.push_back(loaded({Axis::rows, Axis::columns}, f32, false));
  }
  steps(recipe_.steps);
  // Nothing but what is stored matters.
  const std::size_t last = values_.size();
  for (std::size_t i = last; i-- > 0 && i + 2 >= last;) {
    const TileValue value = values_[i];
    store(value, real(value) ? f32 : value.tile.dtype());
  }
}

void Tracing::bind_dimensions() {
  for (const Axis axis : {Axis::rows, Axis::columns, Axis::depth}) {
    if (bound_.count(axis) == 0) input({axis}, f32, false);
  }
}

void Tracing::steps(const std::vector<Step>& steps) {
  for (const Step& s : steps) step(s);
}

void Tracing::step(const Step& s) {
  using Kind = Step::Kind;
  switch (s.kind) {
    case Kind::load:
      return load(s);
    case Kind::unary:
      return unary(s);
    case Kind::binary:
      return binary(s);
    case Kind::select:
      return select(s);
    case Kind::mask:
      return mask(s);
    case Kind::cast:
      return cast(s);
    case Kind::reduce:
      return reduce(s);
    case Kind::dot:
      return dot(s);
    case Kind::dot_of_parts:
      return dot_of_parts(s);
    case Kind::reshape:
      return reshape(s);
    case Kind::slice:
      return slice(s);
    case Kind::transpose:
      return transpose(s);
    case Kind::scalar:
      return scalar(s);
    case Kind::coordinates:
      return coordinates(s);
    case Kind::loop:
      return loop(s);
    case Kind::when:
      return when(s);
    case Kind::update:
      return update(s);
    case Kind::nest:
      return nest(s);
    case Kind::store: {
      const auto value = pick(s.a, [](const TileValue&) { return true; });
      if (!value) return;
      const DType narrow[] = {f32, bf16, f16, f32, i8, u8};
      return store(*value, real(*value) ? narrow[s.n % 6] : value->tile.dtype());
    }
  }
}

std::optional<TileValue> Tracing::pick(int which, const Predicate& fits) const {
  std::vector<const TileValue*> found;
  for (const TileValue& value : values_) {
    if (fits(value)) found.push_back(&value);
  }
  if (found.empty()) return {};
  return *found[found.size() - 1 - static_cast<std::size_t>(which) % found.size()];
}

std::optional<TileValue> Tracing::pick_real(int which) const {
  std::optional<TileValue> value = pick(which, real);
  if (value) value->tile = as_real(value->tile);
  return value;
}

std::optional<Block> Tracing::block_of(Axis axis) const {
  if (axis == Axis::rows) return place_->rows;
  if (axis == Axis::columns) return place_->columns;
  if (axis == Axis::depth) return depth_;
  return {};
}

int Tracing::block_size(Axis axis) const {
  if (axis == Axis::inner) return recipe_.inner;
  return block_of(axis)->size();
}

Dim Tracing::dim_of(Axis axis) const {
  if (axis == Axis::rows) return rows;
  if (axis == Axis::columns) return columns;
  return axis == Axis::depth ? depth : Dim(recipe_.inner);
}

std::int64_t Tracing::size_of_axis(Axis axis) const {
  if (axis == Axis::rows) return recipe_.sizes.rows;
  if (axis == Axis::columns) return recipe_.sizes.columns;
  return axis == Axis::depth ? recipe_.sizes.depth : recipe_.inner;
}

Axis Tracing::reduction_axis(int n) const {
  if (depth_ && n % 3 != 2) return Axis::depth;
  return n % 3 == 0 ? Axis::columns : Axis::inner;
}

Tensor Tracing::input(const std::vector<Axis>& axes, DType dtype, bool pair) {
  std::string key = std::string(name_of(dtype)) + (pair ? "2" : "1");
  std::vector<Dim> shape;
  std::vector<std::int64_t> sizes;
  if (pair) {
    shape.emplace_back(kInputPairs);
    sizes.push_back(kInputPairs);
  }
  for (const Axis axis : axes) {
    key += static_cast<char>('a' + static_cast<int>(axis));
    shape.push_back(dim_of(axis));
    sizes.push_back(size_of_axis(axis));
    bound_.insert(axis);
  }
  const auto known = inputs_.find(key);
  if (known != inputs_.end()) return known->second;
  const std::string name = "X" + std::to_string(launch_.tensors.size());
  LaunchTensor& tensor = launch_.tensors.emplace_back(name, dtype, sizes);
  tensor.fill_randomly(recipe_.seed + launch_.tensors.size());
  return inputs_.emplace(key, kernel_.in(name, dtype, shape)).first->second;
}

TileValue Tracing::loaded(const std::vector<Axis>& axes, DType dtype, bool pair) {
  const Tensor tensor = input(axes, dtype, pair);
  std::vector<Selector> selectors;
  if (pair) selectors.emplace_back(place_->row_number % kInputPairs);
  for (const Axis axis : axes) {
    const std::optional<Block> block = block_of(axis);
    selectors.push_back(block ? Selector(*block) : Selector(all));
  }
  const Tile tile = tilewright::load(TensorView(tensor.handle(), selectors, here()));
  // Nothing but casts takes bytes.
  return {is_byte_integer(dtype) ? tile.cast(dtype == i8 ? bf16 : i32) : tile, axes, cuts_of(axes)};
}

void Tracing::load(const Step& s) {
  const DType dtypes[] = {f32, f32, bf16, bf16, f16, f8e4m3, i32, f32, i8, u8};
  DType dtype = dtypes[s.n % 10];
  if (recipe_.style == Recipe::Style::products && dtype == f32 && s.n % 3 != 0) dtype = bf16;
  const bool pair = s.b % 7 == 6;
  const Axis other = recipe_.style == Recipe::Style::rows && s.n / 8 % 3 != 0
                         ? Axis::columns
                         : reduction_axis(s.n / 8);
  switch (s.a % 6) {
    case 4: {  // a column
      const TileValue v = loaded({Axis::rows}, dtype, pair);
      return push(v.tile.reshape({block_size(Axis::rows), 1}), {Axis::rows, Axis::one},
                  {v.cuts[0], 0});
    }
    case 5: {  // a row
      const TileValue v = loaded({other}, dtype, pair);
      return push(v.tile.reshape({1, block_size(other)}), {Axis::one, other}, {0, v.cuts[0]});
    }
    default:
      values_.push_back(loaded({Axis::rows, other}, dtype, pair));
  }
}

void Tracing::unary(const Step& s) {
  const auto x = pick_real(s.a);
  if (x) push(of_one(s.n, x->tile), x->axes, x->cuts);
}

void Tracing::binary(const Step& s) {
  const auto x = pick(s.a, [](const TileValue&) { return true; });
  if (!x) return;
  const auto y = pick(s.b, [&](const TileValue& v) { return broadcasts(x->tile, v.tile, true); });
  if (!y) return;
  const bool integers = !real(*x) && !real(*y);
  const Tile a = integers ? x->tile : as_real(x->tile);
  push(of_two(s.n, a, as(y->tile, a.dtype())), joined(x->axes, y->axes), joined(x->cuts, y->cuts));
}

void Tracing::select(const Step& s) {
  const auto x = pick(s.a, [](const TileValue& v) { return flat(v) && real(v); });
  if (!x) return;
  const Tile a = as_real(x->tile);
  const auto y = pick(s.b, [&](const TileValue& v) { return broadcasts(a, v.tile, true); });
  if (!y) return;
  const Tile b = as(y->tile, a.dtype());
  const bool of_sign = s.n / 8 % 2 != 0;
  const Tile condition =
      of_sign ? compared(s.n, b, full({1, 1}, 0, b.dtype())) : compared(s.n, a, b);
  push(where(condition, a, s.n / 16 % 2 == 0 ? b : b * 0.5), joined(x->axes, y->axes),
       joined(x->cuts, y->cuts));
}

void Tracing::mask(const Step& s) {
  const auto x = pick(s.a, [&](const TileValue& v) {
    return flat(v) && real(v) && (block_of(v.axes[0]) || block_of(v.axes[1]));
  });
  if (!x) return;
  const double fills[] = {0, -1e30, 1, -INFINITY};
  const std::optional<Block> row = block_of(x->axes[0]), column = block_of(x->axes[1]);
  const int shift = s.n / 4 % 9 - 4;
  const auto condition = [&]() -> Tile {
    if (!row) return compared(s.n / 64, column->as_row(), full({1, 1}, 3 + shift, i32));
    if (!column) return compared(s.n / 64, row->as_column(), full({1, 1}, 3 + shift, i32));
    return compared(s.n / 64, column->as_row() + shift, row->as_column());
  }();
  const Tile tile = as_real(x->tile);
  push(where(condition, tile, fills[s.n % 4]), x->axes, x->cuts);
}

void Tracing::cast(const Step& s) {
  const DType dtypes[] = {bf16, f16, f32, bf16, i8, u8};
  const auto x = pick(s.a, [](const TileValue&) { return true; });
  if (!x) return;
  const DType dtype = dtypes[s.n % 6];
  const Tile tile = x->tile.cast(dtype);
  push(is_byte_integer(dtype) ? tile.cast(s.n / 6 % 2 == 0 ? f32 : i32) : tile, x->axes, x->cuts);
}

void Tracing::reduce(const Step& s) {
  const auto x = pick(s.a, flat);
  if (!x) return;
  // At the explicit level rows that do not exist are no zeros once something was computed of them.
  const bool rows_only = recipe_.style == Recipe::Style::explicit_level
                             ? recipe_.sizes.rows % recipe_.block_rows != 0
                             : recipe_.style == Recipe::Style::products && s.n / 4 % 4 > 1;
  const int axis = rows_only ? 1 : s.n / 4 % 2;
  const Tile tile = x->tile.dtype() == f8e4m3 ? x->tile.cast(f32) : x->tile;
  std::vector<Axis> axes = x->axes;
  Cuts cuts = x->cuts;
  axes[static_cast<std::size_t>(axis)] = Axis::one;
  cuts[static_cast<std::size_t>(axis)] = 0;
  push(s.n % 4 == 3   ? reduce_min(tile, axis)
       : s.n % 4 == 2 ? reduce_max(tile, axis)
                      : reduce_sum(tile, axis),
       axes, cuts);
}

void Tracing::dot(const Step& s) {
  auto a = pick(s.a, [&](const TileValue& v) {
    return flat(v) && real(v) && v.tile.shape()[0] == recipe_.block_rows &&
           v.tile.shape()[1] % 16 == 0 && v.axes[1] != Axis::part && v.axes[1] != Axis::one;
  });
  if (!a || s.n % 5 == 0) a = loaded({Axis::rows, reduction_axis(s.n / 5)}, bf16, false);
  const DType dtype = a->tile.dtype() == f32 ? (s.n % 3 == 0 ? f16 : bf16) : a->tile.dtype();
  const Tile left = as(a->tile, dtype);
  const Axis k = a->axes[1];
  Axis n = Axis::columns;
  if (s.b % 3 == 1) n = Axis::inner;
  if (s.b % 3 == 2 && depth_) n = Axis::depth;
  const bool transposed = s.c % 2 == 0 || dtype == f8e4m3;
  auto b = pick(s.c, [&](const TileValue& v) {
    return flat(v) && real(v) && v.tile.shape()[0] == left.shape()[1] &&
           v.tile.shape()[1] % 16 == 0;
  });
  if (!b || s.n / 4 % 4 != 0) {
    b = transposed ? loaded({n, k}, dtype, false) : loaded({k, n}, dtype, false);
    if (transposed) b = TileValue{b->tile.T(), {k, n}, {b->cuts[1], b->cuts[0]}};
  }
  const Tile right = as(b->tile, dtype);
  const std::int64_t wide = right.shape()[1];
  const auto sum = pick(s.n / 64, [&](const TileValue& v) {
    return v.tile.dtype() == f32 &&
           v.tile.shape() == std::vector<std::int64_t>{left.shape()[0], wide};
  });
  const std::vector<Axis> axes{a->axes[0], b->axes[1]};
  const Cuts cuts{a->cuts[0], b->cuts[1]};
  if (sum && s.n / 16 % 3 == 0) {
    return push(tilewright::dot(left, right, sum->tile), axes, joined(cuts, sum->cuts));
  }
  push(tilewright::dot(left, right), axes, cuts);
}

// Parts of loaded tiles, which lie in shared memory: columns of B where these or K lie side by
// side, or both operands along K.
void Tracing::dot_of_parts(const Step& s) {
  const Axis k = reduction_axis(s.n);
  const Axis wide = s.b % 2 == 0 ? Axis::columns : Axis::inner;
  const TileValue a = loaded({Axis::rows, k}, bf16, false);
  const bool k_major = s.n / 3 % 2 == 0;
  TileValue b = k_major ? loaded({wide, k}, bf16, false) : loaded({k, wide}, bf16, false);
  if (k_major) b = TileValue{b.tile.T(), {k, wide}, {b.cuts[1], b.cuts[0]}};
  const std::int64_t rows = a.tile.shape()[0], deep = b.tile.shape()[0], all = b.tile.shape()[1];
  const bool along_k = s.n / 6 % 3 == 0 && deep >= 32;
  // Columns that lie side by side are named by whole runs of a swizzle, which 64 of them fill.
  const std::int64_t unit = k_major ? 16 : 64, size = all / 2;
  if (!along_k && (size % unit != 0 || size == 0)) return;
  const int which = s.c % 2;
  if (along_k) {
    const std::int64_t half = deep / 2;
    if (half % 16 != 0) return;
    push(tilewright::dot(a.tile.slice({0, which * half}, {rows, half}),
                         b.tile.slice({which * half, 0}, {half, all})),
         {a.axes[0], wide}, {a.cuts[0], b.cuts[1]});
  } else {
    push(tilewright::dot(a.tile, b.tile.slice({0, which * size}, {deep, size})),
         {a.axes[0], Axis::part}, {a.cuts[0], kUnknownCut});
  }
}

void Tracing::reshape(const Step& s) {
  const auto x = pick(s.a, [](const TileValue& v) {
    return flat(v) && (v.axes[0] == Axis::one) != (v.axes[1] == Axis::one);
  });
  if (!x) return;
  const bool column = x->axes[1] == Axis::one;
  const std::int64_t size = x->tile.shape()[column ? 0 : 1];
  const Axis axis = x->axes[column ? 0 : 1];
  const unsigned cut = x->cuts[column ? 0 : 1];
  if (s.n % 2 == 0) return push(x->tile.reshape({size}), {axis}, {cut});
  if (column) return push(x->tile.reshape({1, size}), {Axis::one, axis}, {0, cut});
  push(x->tile.reshape({size, 1}), {axis, Axis::one}, {cut, 0});
}

void Tracing::slice(const Step& s) {
  const auto x = pick(s.a, [](const TileValue& v) {
    return flat(v) && (v.tile.shape()[0] >= 32 || v.tile.shape()[1] >= 32);
  });
  if (!x) return;
  std::vector<std::int64_t> size = x->tile.shape(), first{0, 0};
  std::vector<Axis> axes = x->axes;
  Cuts cuts = x->cuts;
  // A half, or a quarter that begins where registers may not.
  const auto cut = [&](std::size_t axis, int part) {
    if (size[axis] < 32) return;
    const std::int64_t all = size[axis];
    size[axis] /= part % 3 == 2 ? 4 : 2;
    // It may begin inside of what a lane holds, where the compiler converts layouts.
    const bool converts = recipe_.style != Recipe::Style::explicit_level;
    const int inside = converts && axis == 1 && s.n % 3 == 0 ? 1 + s.n % 5 : 0;
    first[axis] = std::min(part % 5 * (size[axis] / 2) + inside, all - size[axis]);
    axes[axis] = Axis::part;
    cuts[axis] = kUnknownCut;
  };
  const int both = s.n % 4;
  if (both != 1) cut(1, s.n / 4 % 30);
  if (both == 1 || both == 2) cut(0, s.n / 128 % 30);
  push(x->tile.slice(first, size), axes, cuts);
}

void Tracing::transpose(const Step& s) {
  const auto x = pick(s.a, flat);
  if (!x) return;
  if (s.n % 3 == 0) return permute(s, *x);
  push(x->tile.T(), {x->axes[1], x->axes[0]}, {x->cuts[1], x->cuts[0]});
}

// In any order of three axes, of which the second has one element.
void Tracing::permute(const Step& s, const TileValue& x) {
  const std::vector<std::vector<int>> orders{{0, 2, 1}, {0, 1, 2}, {1, 0, 2},
                                             {2, 1, 0}, {1, 2, 0}, {2, 0, 1}};
  // Rows that warpgroups have parts of stay the first axis.
  const std::size_t count = recipe_.style == Recipe::Style::products ? 2 : orders.size();
  const std::vector<int>& order = orders[static_cast<std::size_t>(s.n / 3) % count];
  const std::vector<std::int64_t>& shape = x.tile.shape();
  const bool turned =
      std::find(order.begin(), order.end(), 2) < std::find(order.begin(), order.end(), 0);
  const std::size_t first = turned ? 1 : 0;
  push(x.tile.reshape({shape[0], 1, shape[1]})
           .permute(order)
           .reshape({shape[first], shape[1 - first]}),
       {x.axes[first], x.axes[1 - first]}, {x.cuts[first], x.cuts[1 - first]});
}

void Tracing::scalar(const Step& s) {
  const auto x = pick(s.a, [](const TileValue& v) { return v.tile.dtype() == f32; });
  if (!x) return;
  if (scalars_.size() < 2) {
    launch_.scalars.push_back(0.25 * (s.n % 9) - 1.125);
    scalars_.push_back(kernel_.scalar("alpha" + std::to_string(scalars_.size()), f32));
  }
  push(x->tile * scalars_[static_cast<std::size_t>(s.n) % scalars_.size()], x->axes, x->cuts);
}

void Tracing::coordinates(const Step& s) {
  const bool column = s.n % 2 == 0;
  const Axis axis = column ? Axis::rows : s.n / 2 % 2 == 0 && depth_ ? Axis::depth : Axis::columns;
  const Block block = *block_of(axis);
  const Tile tile = column ? block.as_column() : block.as_row();
  push(s.n / 4 % 2 == 0 ? tile.cast(f32) : tile % 7,
       column ? std::vector<Axis>{axis, Axis::one} : std::vector<Axis>{Axis::one, axis}, {0, 0});
}

std::optional<TensorView> Tracing::own_place(const TileValue& value, DType dtype, bool inout) {
  std::vector<Dim> shape;
  std::vector<std::int64_t> sizes;
  std::vector<Selector> selectors;
  for (const Number& number : numbers_) {
    if (std::count(value.axes.begin(), value.axes.end(), number.covered_by) == 1 &&
        number.covered_by != Axis::one) {
      continue;
    }
    shape.push_back(number.count);
    sizes.push_back(number.size);
    selectors.emplace_back(number.index);
  }
  for (std::size_t i = 0; i < value.axes.size(); ++i) {
    const std::optional<Block> block = block_of(value.axes[i]);
    // An axis that occurs twice is stored as it lies in the tile.
    const bool own = block && std::count(value.axes.begin(), value.axes.end(), value.axes[i]) == 1;
    const std::int64_t size = value.tile.shape()[i];
    shape.push_back(own ? dim_of(value.axes[i]) : Dim(size));
    sizes.push_back(own ? size_of_axis(value.axes[i]) : size);
    selectors.push_back(own ? Selector(*block) : Selector(all));
    if (own) bound_.insert(value.axes[i]);
  }
  if (shape.size() > kMostAxes) return {};
  const std::string name = "Y" + std::to_string(launch_.tensors.size());
  LaunchTensor& tensor = launch_.tensors.emplace_back(name, dtype, sizes);
  if (inout) tensor.fill_randomly(recipe_.seed + launch_.tensors.size());
  const Tensor handle = inout ? kernel_.inout(name, dtype, shape) : kernel_.out(name, dtype, shape);
  return TensorView(handle.handle(), selectors, here());
}

void Tracing::store(const TileValue& value, DType dtype) {
  const std::optional<TensorView> view = own_place(value, dtype, false);
  if (view) tilewright::store(*view, as(value.tile, dtype));
}

void Tracing::update(const Step& s) {
  const auto value = pick_real(s.a);
  if (!value) return;
  const DType dtype = s.n % 2 == 0 ? f32 : bf16;
  const std::optional<TensorView> view = own_place(*value, dtype, true);
  if (!view) return;
  // What is loaded ends where it was stored.
  Cuts own_cuts;
  for (const Axis axis : value->axes) {
    const bool once = std::count(value->axes.begin(), value->axes.end(), axis) == 1;
    own_cuts.push_back(once ? cut_by(axis) : 0);
  }
  const Tile before = tilewright::load(*view);
  const Tile after = as(before, f32) * 0.5 + as(value->tile, f32);
  tilewright::store(*view, as(after, dtype));
  push(s.n / 2 % 2 == 0 ? after : tilewright::load(*view), value->axes,
       joined(value->cuts, own_cuts));
}

}  // namespace tilewright::checks::fuzz
