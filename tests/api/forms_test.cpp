#include <gtest/gtest.h>

#include <cmath>

#include "compiler/compile_to_machine.h"
#include "tilewright/compile.h"
#include "tilewright/kernel.h"
#include "tilewright/program.h"

// A kernel that may ship in one of two forms is simulated in both, and its tensors are changed
// once.
namespace tilewright {
namespace {

constexpr std::int64_t kQueries = 64, kSeen = 128;

// Y += exp2(X K^T) V, with products that may overlap.
Kernel sums() {
  Kernel kernel("sums");
  const Tensor X = kernel.in("X", bf16, {kQueries, 64}), K = kernel.in("K", bf16, {kSeen, 64});
  const Tensor V = kernel.in("V", bf16, {kSeen, 64});
  const Tensor Y = kernel.inout("Y", f32, {kQueries, 64});
  kernel.grid(1);
  const Tile x = load(X(all, all));
  Var sum{zeros({kQueries, 64})};
  for (Block keys : blocks(Dim(kSeen), 64)) {
    const Tile weights = exp2(dot(x, load(K(keys, all)).T())).cast(bf16);
    sum = dot(weights, load(V(keys, all)), sum);
  }
  store(Y(all, all), load(Y(all, all)) + sum);
  return kernel;
}

class TwoForms : public testing::Test {
 protected:
  TwoForms() {
    for (std::int64_t i = 0; i < x_.elements(); ++i) x_.set_flat(i, 0.01 * x_.flat(i));
  }
  void SetUp() override {
    ASSERT_EQ(compiler::machine_forms(sums().finish(), "sm_90a").size(), 2u);
  }
  // 3, and the sum once.
  void check() const {
    for (const std::int64_t row : {0, 17, 63}) {
      for (const std::int64_t column : {0, 40}) {
        double wanted = 3;
        for (std::int64_t key = 0; key < kSeen; ++key) {
          double score = 0;
          for (std::int64_t d = 0; d < 64; ++d) score += x_.at({row, d}) * k_.at({key, d});
          wanted += std::exp2(score) * v_.at({key, column});
        }
        EXPECT_NEAR(y_.at({row, column}), wanted, 0.3) << row << ", " << column;
      }
    }
  }
  HostTensor x_ = HostTensor::random_normal(bf16, {kQueries, 64}, 1);
  HostTensor k_ = HostTensor::random_normal(bf16, {kSeen, 64}, 2), v_ = k_;
  HostTensor y_ =
      HostTensor::from_values(f32, {kQueries, 64}, std::vector<double>(kQueries * 64, 3.0));
};

TEST_F(TwoForms, OfAKernel) {
  compile(sums(), "sim:sm_90a").run({ref(x_), ref(k_), ref(v_), ref(y_)});
  check();
}

TEST_F(TwoForms, OfAProgram) {
  Program program("sums");
  const Buffer X = program.in("X", bf16, {kQueries, 64}), K = program.in("K", bf16, {kSeen, 64});
  const Buffer V = program.in("V", bf16, {kSeen, 64});
  const Buffer Y = program.inout("Y", f32, {kQueries, 64});
  program.rank(0).stream().launch(sums(), {X, K, V, Y});
  compile(program, "sim:sm_90a").run({ref(x_), ref(k_), ref(v_), ref(y_)});
  check();
}

}  // namespace
}  // namespace tilewright
