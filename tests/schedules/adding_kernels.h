#pragma once

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "schedules/row_counts_kernels.h"
#include "tilewright/host_tensor.h"
#include "tilewright/kernel.h"

// Kernels of the tile level that add to tensors, with what their sums are in float64: for the
// simulated GPU, and for GPUs.
namespace tilewright::test {

// Every block adds the column sums of its rows to one vector: all blocks meet in each element.
inline Kernel add_column_sums(Order order) {
  Kernel kernel("add_column_sums");
  const Dim rows = kernel.dim("rows"), columns = kernel.dim("columns");
  const Tensor X = kernel.in("X", f32, {rows, columns});
  const Tensor sums = kernel.inout("sums", f32, {columns});
  const auto [x, y] = kernel.grid(ceil_div(columns, 64), ceil_div(rows, 16));
  const Block own = rows.block(y, 16), cols = columns.block(x, 64);
  add(sums(cols), reduce_sum(load(X(own, cols)), 0).reshape({64}), order);
  return kernel;
}

// In loops and conditions, and several times to one place, by tiles that lie otherwise and that end
// before the place does.
inline Kernel add_again(Order order) {
  Kernel kernel("add_again");
  const Dim rows = kernel.dim("rows"), columns = kernel.dim("columns");
  const Tensor X = kernel.in("X", f32, {rows, columns});
  const Tensor sums = kernel.inout("sums", f32, {32, columns});
  const auto [y] = kernel.grid(ceil_div(rows, 32));
  const Block own = rows.block(y, 32), all_own(32 * y, 32, 32 * y + 32);
  for (Block cols : blocks(columns, 32)) {
    const Tile x = load(X(own, cols));
    add(sums(Block(Index(0), 32, Index(rows) - 32 * y), cols), x, order);
    add(sums(Block(Index(0), 32, Index(32)), cols), x + 7, order);
    when(y % 2 == 1, [&] {
      // Squares of the transposed tile: what does not exist is zero, and zeros are added.
      const Tile whole = load(X(all_own, cols));
      add(sums(Block(Index(0), 32, Index(32)), cols), (whole * whole).T().T(), order);
    });
  }
  return kernel;
}

// C += A B^T, whose depth is divided among blocks of the grid. `sums`: the dtype of C.
inline Kernel add_products(Order order, int block_m = 128, DType sums = f32) {
  Kernel kernel("add_products");
  const Dim m = kernel.dim("m"), n = kernel.dim("n"), k = kernel.dim("k");
  const Tensor A = kernel.in("A", bf16, {m, k}), B = kernel.in("B", bf16, {n, k});
  const Tensor C = kernel.inout("C", sums, {m, n});
  const auto [x, y, part] = kernel.grid(ceil_div(n, 64), ceil_div(m, block_m), ceil_div(k, 128));
  const Block rows = m.block(y, block_m), cols = n.block(x, 64);
  Var sum{zeros({rows, cols})};
  for (Index step : range(2 * part, min(2 * part + 2, ceil_div(k, 64)))) {
    const Block depth = k.block(step, 64);
    sum = dot(load(A(rows, depth)), load(B(cols, depth)).T(), sum);
  }
  add(C(rows, cols), Tile(sum).cast(sums), order);
  return kernel;
}

// Adds the transposed product too, and within the loop.
inline Kernel add_products_in_a_loop(Order order) {
  Kernel kernel("add_products_in_a_loop");
  const Dim m = kernel.dim("m"), k = kernel.dim("k");
  const Tensor A = kernel.in("A", bf16, {m, k}), C = kernel.inout("C", f32, {64, 64});
  const auto [y] = kernel.grid(ceil_div(m, 64));
  const Block rows = m.block(y, 64);
  for (Block depth : blocks(k, 64)) {
    const Tile a = load(A(rows, depth));
    const Tile product = dot(a, a.T());
    const Block here(Index(0), 64, Index(m) - 64 * y);
    add(C(here, here), product, order);
    add(C(here, here), product.T(), order);
  }
  return kernel;
}

struct AddingCase {
  std::string name;
  std::function<Kernel(Order)> kernel;
  std::function<std::vector<HostTensor>()> tensors;  // the last is what is added to
  // It afterwards, in float64.
  std::function<std::vector<double>(const std::vector<HostTensor>&)> wanted;
  double bound = 2e-6;  // of the error, relative to it
};

inline void PrintTo(const AddingCase& c, std::ostream* out) { *out << c.name; }

inline std::vector<AddingCase> adding_cases() {
  std::vector<AddingCase> list;
  const auto values_of = [](const HostTensor& tensor) {
    std::vector<double> values;
    for (std::int64_t i = 0; i < tensor.elements(); ++i) values.push_back(tensor.flat(i));
    return values;
  };
  using Shape = std::vector<std::int64_t>;
  using Values = std::vector<std::vector<double>>;
  // `change` adds to the last of the tensors' values.
  const auto add_case = [&](std::string name, std::function<Kernel(Order)> kernel, DType dtype,
                            std::vector<Shape> shapes, std::function<void(Values&)> change,
                            DType of_sums = f32) {
    const auto tensors = [dtype, shapes, of_sums] {
      std::vector<HostTensor> made;
      for (const Shape& shape : shapes) {
        const bool sums = made.size() + 1 == shapes.size();
        made.push_back(HostTensor::random_normal(sums ? of_sums : dtype, shape, made.size() + 1));
      }
      return made;
    };
    const auto wanted = [values_of, change](const std::vector<HostTensor>& before) {
      Values values;
      for (const HostTensor& tensor : before) values.push_back(values_of(tensor));
      change(values);
      return values.back();
    };
    list.push_back({std::move(name), std::move(kernel), tensors, wanted});
  };
  for (const std::int64_t rows : {0, 1, 77, 129}) {
    for (const std::int64_t columns : {1, 77, 200}) {
      const std::string size = std::to_string(rows) + "x" + std::to_string(columns);
      add_case("ColumnSums" + size, add_column_sums, f32, {{rows, columns}, {columns}},
               [=](Values& v) {
                 for (std::int64_t i = 0; i < rows; ++i) {
                   for (std::int64_t j = 0; j < columns; ++j) v[1][j] += v[0][i * columns + j];
                 }
               });
      add_case("Again" + size, add_again, f32, {{rows, columns}, {32, columns}}, [=](Values& v) {
        for (std::int64_t i = 0; i < rows; ++i) {
          for (std::int64_t j = 0; j < columns; ++j) {
            const double x = v[0][i * columns + j];
            v[1][(i % 32) * columns + j] += 2 * x + 7 + (i / 32 % 2 == 1 ? x * x : 0);
          }
        }
      });
    }
  }
  // Of row i of one and row j of another.
  const auto product = [](const std::vector<double>& a, const std::vector<double>& b,
                          std::int64_t i, std::int64_t j, std::int64_t depth) {
    double sum = 0;
    for (std::int64_t k = 0; k < depth; ++k) sum += a[i * depth + k] * b[j * depth + k];
    return sum;
  };
  const auto products = [&](std::int64_t m, std::int64_t n, std::int64_t k, int block_m,
                            DType sums = f32) {
    add_case(
        "Products" + std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k) + "by" +
            std::to_string(block_m) + (sums == f32 ? "" : std::string(name_of(sums))),
        [block_m, sums](Order order) { return add_products(order, block_m, sums); }, bf16,
        {{m, k}, {n, k}, {m, n}},
        [=](Values& v) {
          for (std::int64_t i = 0; i < m; ++i) {
            for (std::int64_t j = 0; j < n; ++j) {
              v[2][i * n + j] += product(v[0], v[1], i, j, k);
            }
          }
        },
        sums);
  };
  products(129, 77, 640, 128);
  products(77, 65, 328, 64);
  products(300, 64, 512, 192);
  products(1, 1, 512, 128);
  products(64, 0, 128, 64);
  products(64, 64, 0, 64);
  // Each part and each addition is rounded. Pairs, and rows in which these do not begin at 4 bytes.
  for (const auto& [sums, bound] : {std::pair(bf16, 4e-3), {f16, 5e-4}}) {
    products(77, 64, 328, 64, sums);
    list.back().bound = bound;
    products(77, 65, 328, 128, sums);
    list.back().bound = bound;
  }
  for (const std::int64_t m : {1, 77, 200}) {
    constexpr std::int64_t kDepth = 136;
    add_case("ProductsInALoop" + std::to_string(m), add_products_in_a_loop, bf16,
             {{m, kDepth}, {64, 64}}, [=](Values& v) {
               for (std::int64_t block = 0; block < m; block += 64) {
                 for (std::int64_t i = 0; i < 64 && block + i < m; ++i) {
                   for (std::int64_t j = 0; j < 64 && block + j < m; ++j) {
                     v[1][i * 64 + j] += 2 * product(v[0], v[0], block + i, block + j, kDepth);
                   }
                 }
               }
             });
  }
  // Products of other rows than those that are added. P and dS are rounded to bf16.
  constexpr std::int64_t kQueries = 70, kKeys = 150, kDim = 64;
  using Shapes = std::vector<Shape>;
  add_case(
      "GradientsInOne", [](Order order) { return gradients_in_one(order, kDim); }, bf16,
      Shapes{{kQueries, kDim},
             {kKeys, kDim},
             {kKeys, kDim},
             {kQueries, kDim},
             {kQueries},
             {kQueries},
             {kKeys, kDim},
             {kKeys, kDim},
             {kQueries, kDim}},
      [](Values& v) { become_gradients(v, kQueries, kKeys, kDim); });
  list.back().bound = 6e-3;
  return list;
}

}  // namespace tilewright::test
