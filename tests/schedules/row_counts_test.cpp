#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "codegen/nvrtc_build.h"
#include "compiler/build.h"
#include "compiler/compile_to_machine.h"
#include "language/misuse.h"
#include "schedules/row_counts_kernels.h"
#include "tilewright/compile.h"
#include "tilewright/host_tensor.h"

// Products of different row counts in one kernel of the tile level.
namespace tilewright {
namespace {

using Values = std::vector<std::vector<double>>;

double relative(const HostTensor& got, const std::vector<double>& wanted) {
  double error = 0, size = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const double difference = got.flat(static_cast<std::int64_t>(i)) - wanted[i];
    error += difference * difference;
    size += wanted[i] * wanted[i];
  }
  return std::sqrt(error / std::max(size, 1e-30));  // NaN for what nobody has written
}

std::string partition_of(const Kernel& kernel) {
  const compiler::MachineForm form =
      compiler::compile_to_machine(kernel.finish(), ir::default_target());
  const auto at = std::find_if(form.schedule.begin(), form.schedule.end(),
                               [](const auto& field) { return field.name == "partition"; });
  return at->value;
}

constexpr char kInParts[] = " rows a part of the columns";
constexpr char kRepeated[] = " rows what others have as well";

// Tails, one row, and none.
TEST(RowCounts, GradientsOfAttentionInOneKernel) {
  struct Case {
    std::int64_t queries, keys;
    int dim;
  };
  for (const auto& [queries, keys, dim] :
       {Case{70, 150, 64}, {1, 1, 128}, {65, 129, 128}, {0, 5, 64}}) {
    const std::int64_t sizes[] = {queries, keys, keys, queries};
    std::vector<HostTensor> before;
    for (const std::int64_t rows : sizes) {
      before.push_back(HostTensor::random_normal(bf16, {rows, dim}, before.size() + 1));
    }
    for (const int seed : {5, 6})
      before.push_back(HostTensor::random_normal(bf16, {queries}, seed));
    for (int i = 0; i < 2; ++i) before.push_back(HostTensor::poisoned(bf16, {keys, dim}));
    before.push_back(HostTensor::random_normal(f32, {queries, dim}, 9));
    Values wanted;
    for (const HostTensor& tensor : before) {
      wanted.emplace_back();
      for (std::int64_t i = 0; i < tensor.elements(); ++i) wanted.back().push_back(tensor.flat(i));
    }
    test::become_gradients(wanted, queries, keys, dim);
    const Kernel kernel = test::gradients_in_one(Order::blocks, dim);
    for (const char* target : {"interpreter", "cpu", "sim:sm_90a", "sim:sm_100a"}) {
      std::vector<HostTensor> tensors = before;
      std::vector<TensorRef> refs;
      for (HostTensor& tensor : tensors) refs.push_back(ref(tensor));
      compile(kernel, target).run(refs);
      for (const int result : {6, 7, 8}) {
        EXPECT_LE(relative(tensors[result], wanted[result]), 6e-3)
            << target << ", tensor " << result << ", " << queries << " queries, " << keys
            << " keys of " << dim;
      }
    }
  }
}

// Of 64 columns of a key's 128 each warpgroup has 64, and 64 are too few to have 32 each.
TEST(RowCounts, WarpgroupsDivideTheColumnsWhereTheyCan) {
  EXPECT_THAT(partition_of(test::gradients_in_one(Order::any, 128)), testing::HasSubstr(kInParts));
  EXPECT_THAT(partition_of(test::gradients_in_one(Order::any, 64)), testing::HasSubstr(kRepeated));
  if (const std::string why = codegen::why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  for (const int dim : {64, 128}) {
    const Kernel kernel = test::gradients_in_one(Order::blocks, dim);
    codegen::expect_builds(compiler::choose_form(kernel.finish(), ir::default_target()).source);
  }
  codegen::expect_builds(
      compiler::choose_form(test::two_row_counts(128, 64, 64, true).finish(), "sm_100a").source,
      /*exact=*/false, "sm_100a");
}

TEST(RowCounts, OfTwoSums) {
  struct Case {
    int first, second;
    bool minus_most;
    const char* partition;
  };
  constexpr std::int64_t kColumns = 64, kDepth = 72;
  for (const auto& [first, second, minus_most, partition] :
       {Case{128, 64, false, "64 rows a part of the columns"},
        {64, 256, false, "64 rows a part of the columns"},
        {256, 128, false, "128 rows a part of the columns"},
        {128, 256, true, "128 rows a part of the columns"},
        {256, 128, true, kRepeated},
        {64, 192, true, "64 rows what"},
        {192, 64, true, kRepeated},
        {192, 128, false, kRepeated}}) {
    SCOPED_TRACE(testing::Message() << first << " and " << second << " rows " << minus_most);
    const Kernel kernel = test::two_row_counts(first, second, kColumns, minus_most);
    const std::int64_t m = first + 1, other = second + 9;
    const HostTensor a = HostTensor::random_normal(bf16, {m, kDepth}, 1),
                     c = HostTensor::random_normal(bf16, {other, kDepth}, 2),
                     b = HostTensor::random_normal(bf16, {kColumns, kDepth}, 3),
                     scales = HostTensor::random_normal(f32, {other}, 4);
    const auto product = [&](const HostTensor& rows, std::int64_t i, std::int64_t j) {
      double sum = 0;
      for (std::int64_t d = 0; d < kDepth; ++d) sum += rows.at({i, d}) * b.at({j, d});
      return sum;
    };
    std::vector<double> wanted_x, wanted_y;
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < kColumns; ++j) wanted_x.push_back(product(a, i, j));
    }
    for (std::int64_t i = 0; i < other; ++i) {
      for (std::int64_t j = 0; j < kColumns; ++j) {
        wanted_y.push_back(product(c, i, j) * scales.flat(i));
      }
      const auto row = wanted_y.end() - kColumns;
      const double most = minus_most ? *std::max_element(row, wanted_y.end()) : 0;
      std::for_each(row, wanted_y.end(), [&](double& y) { y -= most; });
    }
    EXPECT_THAT(partition_of(kernel), testing::HasSubstr(partition));
    for (const char* target : {"interpreter", "sim:sm_90a", "sim:sm_100a"}) {
      HostTensor x = HostTensor::poisoned(bf16, {m, kColumns}),
                 y = HostTensor::poisoned(f32, {other, kColumns});
      HostTensor in[] = {a, c, b, scales};
      compile(kernel, target).run({ref(in[0]), ref(in[1]), ref(in[2]), ref(in[3]), ref(x), ref(y)});
      EXPECT_LE(relative(x, wanted_x), 3e-3) << target;
      EXPECT_LE(relative(y, wanted_y), 1e-5) << target;
    }
  }
}

// Rows of one product are columns of the other, and numbers of rows go from one to the other.
TEST(RowCounts, TransposedSums) {
  constexpr std::int64_t kQueries = 150, kKeys = 77;
  HostTensor q = HostTensor::random_normal(bf16, {kQueries, 64}, 1),
             k = HostTensor::random_normal(bf16, {kKeys, 64}, 2),
             v = HostTensor::random_normal(bf16, {kKeys, 64}, 3);
  std::vector<double> wanted;
  for (std::int64_t i = 0; i < kQueries; ++i) {
    std::vector<double> sum(64, 0);
    double total = 0;
    for (std::int64_t j = 0; j < kKeys; ++j) {
      double score = 0;
      for (std::int64_t d = 0; d < 64; ++d) score += q.at({i, d}) * k.at({j, d});
      total += std::exp(score);
      for (std::int64_t d = 0; d < 64; ++d) sum[d] += std::exp(score) * v.at({j, d});
    }
    for (const double each : sum) wanted.push_back(each / total);
  }
  for (const char* target : {"interpreter", "sim:sm_90a", "sim:sm_100a"}) {
    HostTensor o = HostTensor::poisoned(bf16, {kQueries, 64});
    compile(test::transposed_attention(), target).run({ref(q), ref(k), ref(v), ref(o)});
    EXPECT_LE(relative(o, wanted), 6e-3) << target;
  }
}

TEST(RowCounts, WhatAScheduleMayNotStateOfThem) {
  const Kernel kernel = test::two_row_counts(128, 64, 64, false);
  const auto refuses = [&](const char* field, const std::vector<std::string>& parts,
                           const Schedule& schedule) {
    test::misuse(field, parts, [&] { compile(kernel, "sm_90a", schedule); });
  };
  refuses("partition", {"the products' results have 128 rows", "fix: state rows"},
          {.partition = Partition::columns});
  refuses("warpgroups", {"the products' results have 128 rows", "fix: state 2"}, {.warpgroups = 3});
}

// Sums along rows that two warpgroups have.
TEST(RowCounts, WhatIsNotTakenNamesBothProducts) {
  test::misuse(
      "reduce",
      {"schedule: reduce: of 128 rows, while products of the kernel have 256",
       "a product of 128 rows is", "one of 256 rows is", "fix: take 64 rows"},
      [] {
        Kernel kernel("sums");
        const Tensor A = kernel.in("A", bf16, {256, 64}), C = kernel.in("C", bf16, {128, 64});
        const Tensor X = kernel.out("X", f32, {256, 64}), Y = kernel.out("Y", f32, {1, 64});
        kernel.grid(1);
        const Tile a = load(A(all, all)), c = load(C(all, all));
        const Tile b = load(C(Block(0, 64, 64), all)).T();
        store(X(all, all), dot(a, b));
        store(Y(all, all), reduce_sum(dot(c, b), 0));
        compile(kernel, "sm_90a");
      });
}

}  // namespace
}  // namespace tilewright
