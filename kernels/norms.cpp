#include <optional>
#include <string>
#include <vector>

#include "kernels/row_blocks.h"
#include "tilewright/plan_case.h"

// Normalisations of rows, and their gradients.
namespace tilewright::kernels {
namespace {

std::string name_of(const Norm& n) { return n.centred ? "layer_norm" : "rms_norm"; }

void check_norm(const Norm& n, const Caller& caller) {
  check_blocks(n.blocks, caller);
  if (n.epsilon >= 0) return;
  caller.refuse("epsilon is " + std::to_string(n.epsilon), "take a number of at least 0");
}

std::optional<Tensor> vector_where(bool is_there, Kernel& kernel, const char* name, DType dtype,
                                   const Dim& size) {
  if (!is_there) return std::nullopt;
  return kernel.in(name, dtype, {size});
}

// X before and behind its normalisation, of the rows that a block of the grid owns.
struct NormRows {
  NormRows(const Tensor& X, Block own, std::optional<Tile> mean)
      : X(X), own(std::move(own)), mean(std::move(mean)) {}
  Tile centred(const Block& columns) const {
    const Tile x = load(X(own, columns)).cast(f32);
    return mean ? x - *mean : x;
  }
  Tile normal(const Block& columns) const { return centred(columns) * *deviation; }
  const Tensor& X;
  Block own;
  std::optional<Tile> mean, deviation;  // deviation: 1 / that of the row, {rows, 1}
};

}  // namespace

Kernel norm(const Norm& n, SourceLocation where) {
  const std::string name = name_of(n);
  check_norm(n, {name.c_str(), where});
  Kernel kernel(name);
  const Dim rows = kernel.dim("rows"), columns = RowColumns::declare(kernel, n.blocks);
  const Tensor X = kernel.in("X", n.dtype, {rows, columns});
  const bool has_weight = plan_case("a weight", n.weight), has_bias = plan_case("a bias", n.bias);
  const auto weight = vector_where(has_weight, kernel, "weight", n.dtype, columns);
  const auto bias = vector_where(has_bias, kernel, "bias", n.dtype, columns);
  const Tensor Y = kernel.out("Y", n.dtype, {rows, columns});
  std::optional<Tensor> MEAN;
  if (n.centred) MEAN = kernel.out("MEAN", f32, {rows});
  const Tensor RSTD = kernel.out("RSTD", f32, {rows});

  const auto [i] = kernel.grid(ceil_div(rows, n.blocks.rows));
  const RowColumns all_columns(columns, n.blocks);
  NormRows row(X, rows.block(i, n.blocks.rows), std::nullopt);
  if (MEAN) {
    row.mean = all_columns.mean(row.own, [&](const Block& cols) { return row.centred(cols); });
    store_column(*MEAN, row.own, *row.mean);
  }
  const Tile variance = all_columns.mean(row.own, [&](const Block& cols) {
    const Tile x = row.centred(cols);
    return x * x;
  });
  row.deviation = rsqrt(variance + n.epsilon);
  store_column(RSTD, row.own, *row.deviation);
  all_columns.each([&](const Block& cols) {
    Tile y = row.normal(cols);
    if (weight) y = y * load_row(*weight, cols);
    if (bias) y = y + load_row(*bias, cols);
    store(Y(row.own, cols), y.cast(n.dtype));
  });
  return kernel;
}

namespace {

// dX = RSTD (g - mean of g - XN (mean of g XN)), with g = dY weight and XN the normalised X.
Kernel norm_backward_rows(const Norm& n) {
  Kernel kernel(name_of(n) + "_backward_rows");
  const Dim rows = kernel.dim("rows"), columns = RowColumns::declare(kernel, n.blocks);
  const Tensor X = kernel.in("X", n.dtype, {rows, columns});
  const auto weight = vector_where(n.weight, kernel, "weight", n.dtype, columns);
  const auto MEAN = vector_where(n.centred, kernel, "MEAN", f32, rows);
  const Tensor RSTD = kernel.in("RSTD", f32, {rows});
  const Tensor dY = kernel.in("dY", n.dtype, {rows, columns});
  const Tensor dX = kernel.out("dX", n.dtype, {rows, columns});

  const auto [i] = kernel.grid(ceil_div(rows, n.blocks.rows));
  const RowColumns all_columns(columns, n.blocks);
  NormRows row(X, rows.block(i, n.blocks.rows), std::nullopt);
  if (MEAN) row.mean = load_column(*MEAN, row.own);
  row.deviation = load_column(RSTD, row.own);
  const auto gradient = [&](const Block& cols) {
    const Tile g = load(dY(row.own, cols)).cast(f32);
    return weight ? g * load_row(*weight, cols) : g;
  };
  const Tile along = all_columns.mean(
      row.own, [&](const Block& cols) { return gradient(cols) * row.normal(cols); });
  std::optional<Tile> mean;
  if (n.centred) mean = all_columns.mean(row.own, gradient);
  all_columns.each([&](const Block& cols) {
    const Tile g = mean ? gradient(cols) - *mean : gradient(cols);
    store(dX(row.own, cols), ((g - row.normal(cols) * along) * *row.deviation).cast(n.dtype));
  });
  return kernel;
}

// The sums of dY XN and of dY over a part of the rows each, {parts, columns}.
Kernel norm_backward_columns(const Norm& n) {
  constexpr int kColumns = 64;
  Kernel kernel(name_of(n) + "_backward_columns");
  const Dim rows = kernel.dim("rows"), columns = kernel.dim("columns");
  const Dim parts = row_parts(rows);
  const Tensor X = kernel.in("X", n.dtype, {rows, columns});
  const auto MEAN = vector_where(n.centred, kernel, "MEAN", f32, rows);
  const Tensor RSTD = kernel.in("RSTD", f32, {rows});
  const Tensor dY = kernel.in("dY", n.dtype, {rows, columns});
  std::optional<Tensor> of_weight, of_bias;
  if (n.weight) of_weight = kernel.out("of_weight", f32, {parts, columns});
  if (n.bias) of_bias = kernel.out("of_bias", f32, {parts, columns});

  const auto [x, part] = kernel.grid(ceil_div(columns, kColumns), parts);
  const Block own = columns.block(x, kColumns);
  Var weight_sum{zeros({1, own})}, bias_sum{zeros({1, own})};
  for (Block some : runs_of_part(rows, parts, part)) {
    NormRows row(X, some, std::nullopt);
    const Tile g = load(dY(some, own)).cast(f32);
    if (of_weight) {
      if (MEAN) row.mean = load_column(*MEAN, some);
      row.deviation = load_column(RSTD, some);
      weight_sum = weight_sum + reduce_sum(g * row.normal(own), 0);
    }
    if (of_bias) bias_sum = bias_sum + reduce_sum(g, 0);
  }
  const auto store_sum = [&, part = part](const Tensor& to, const Tile& sum) {
    store(to(part, own), sum.reshape({kColumns}));
  };
  if (of_weight) store_sum(*of_weight, weight_sum);
  if (of_bias) store_sum(*of_bias, bias_sum);
  return kernel;
}

}  // namespace

Program norm_backward(const Norm& n, SourceLocation where) {
  const std::string name = name_of(n) + "_backward";
  check_norm(n, {name.c_str(), where});
  Program program(name);
  const Dim rows = program.dim("rows"), columns = program.dim("columns"), parts = row_parts(rows);
  const Buffer X = program.in("X", n.dtype, {rows, columns});
  std::vector<Part> of_rows = {X}, of_columns = {X};
  if (n.weight) of_rows.push_back(program.in("weight", n.dtype, {columns}));
  if (n.centred) {
    const Buffer MEAN = program.in("MEAN", f32, {rows});
    of_rows.push_back(MEAN);
    of_columns.push_back(MEAN);
  }
  for (const Buffer& each :
       {program.in("RSTD", f32, {rows}), program.in("dY", n.dtype, {rows, columns})}) {
    of_rows.push_back(each);
    of_columns.push_back(each);
  }
  of_rows.push_back(program.out("dX", n.dtype, {rows, columns}));
  const Stream stream = program.rank(0).stream();
  stream.launch(norm_backward_rows(n), of_rows);
  std::vector<std::pair<std::string, Part>> sums;  // the parts of each
  if (n.weight) sums.emplace_back("weight", program.scratch("of_weight", f32, {parts, columns}));
  if (n.bias) sums.emplace_back("bias", program.scratch("of_bias", f32, {parts, columns}));
  if (sums.empty()) return program;
  for (const auto& [of, sum_parts] : sums) of_columns.push_back(sum_parts);
  stream.launch(norm_backward_columns(n), of_columns);
  for (const auto& [of, sum_parts] : sums) {
    stream.launch(sum_of_parts(name + "_" + of, n.dtype),
                  {sum_parts, program.out("d" + of, n.dtype, {columns})});
  }
  return program;
}

}  // namespace tilewright::kernels
