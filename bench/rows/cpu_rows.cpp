// What bench/cpu.py measures beside PyTorch and beside the library's own: functions of rows, as a
// user writes them at the tile level.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/compile.h"
#include "tilewright/kernel.h"

namespace {

using namespace tilewright;

// Rows of a block. They go through the cache a few at a time, and a block's start is shared by all.
constexpr int kRows = 64;
constexpr double kEpsilon = 1e-5;

Tile function_of(std::string_view name, const Tile& x, const Tile& weight, const Tile& bias,
                 int columns) {
  const auto mean = [&](const Tile& of) { return reduce_sum(of, 1) * (1.0 / columns); };
  if (name == "softmax") {
    const Tile weights = exp(x - reduce_max(x, 1));
    return weights * (1 / reduce_sum(weights, 1));
  }
  if (name == "layer_norm") {
    const Tile centred = x - mean(x);
    return centred * rsqrt(mean(centred * centred) + kEpsilon) * weight + bias;
  }
  if (name == "rms_norm") return x * rsqrt(mean(x * x) + kEpsilon) * weight;
  return x * (erf(x * 0.7071067811865476) * 0.5 + 0.5);  // gelu
}

struct Rows {
  Executable executable;
  DType dtype;
  std::int64_t columns;
};

Rows compile_rows(const std::string& name, DType dtype, int columns) {
  Kernel kernel(name);
  const Dim rows = kernel.dim("rows");
  const Tensor X = kernel.in("X", dtype, {rows, columns});
  const Tensor weight = kernel.in("weight", dtype, {columns});
  const Tensor bias = kernel.in("bias", dtype, {columns});
  const Tensor Y = kernel.out("Y", dtype, {rows, columns});
  const auto [number] = kernel.grid(ceil_div(rows, kRows));
  const Block block = rows.block(number, kRows);
  const auto row = [&](const Tensor& tensor) {
    return load(tensor(all)).cast(f32).reshape({1, columns});
  };
  const Tile x = load(X(block, all)).cast(f32);
  store(Y(block, all), function_of(name, x, row(weight), row(bias), columns).cast(dtype));
  return {compile(kernel, "cpu"), dtype, columns};
}

}  // namespace

extern "C" {

void* rows_create(const char* name, const char* dtype, int columns) {
  return std::make_unique<Rows>(compile_rows(name, parse_dtype(dtype), columns)).release();
}

// Runs it so often: one row of few columns is little else than the start of a launch.
void rows_start(const void* made, void* x, void* weight, void* bias, void* y, std::int64_t times) {
  const auto& of = *static_cast<const Rows*>(made);
  const std::vector<std::int64_t> row = {of.columns}, rows = {1, of.columns};
  const std::vector<TensorRef> tensors = {{x, of.dtype, rows, {}},
                                          {weight, of.dtype, row, {}},
                                          {bias, of.dtype, row, {}},
                                          {y, of.dtype, rows, {}}};
  for (std::int64_t i = 0; i < times; ++i) of.executable.run(tensors);
}

void rows_run(const void* made, void* x, void* weight, void* bias, void* y, std::int64_t rows) {
  const auto& of = *static_cast<const Rows*>(made);
  const auto tensor = [&](void* data) { return TensorRef{data, of.dtype, {rows, of.columns}, {}}; };
  const auto row = [&](void* data) { return TensorRef{data, of.dtype, {of.columns}, {}}; };
  of.executable.run({tensor(x), row(weight), row(bias), tensor(y)});
}
}
