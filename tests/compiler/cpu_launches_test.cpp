#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "compiler/cpu_kernel.h"
#include "tilewright/host_tensor.h"
#include "tilewright/kernel.h"

// Launches of one kernel on the target cpu that differ in what no tensor's shape says.
namespace tilewright::compiler {
namespace {

class Launches {
 public:
  explicit Launches(const Kernel& kernel) : compiled_(compile_for_cpu(kernel.finish())) {}

  // The first element of Y, where X is all ones.
  double run(int ranks, std::map<std::string, std::int64_t> dims) {
    for (std::int64_t i = 0; i < x_.elements(); ++i) x_.set_flat(i, 1);
    Arguments arguments;
    arguments.ranks = ranks;
    arguments.tensors = {{"X", f32, {16}, {1}, x_.data()}, {"Y", f32, {16}, {1}, y_.data()}};
    compiled_->run(arguments, {.dims = std::move(dims)});
    return y_.at({0});
  }

 private:
  std::shared_ptr<const cpu::CompiledKernel> compiled_;
  HostTensor x_ = HostTensor::zeros(f32, {16}), y_ = HostTensor::poisoned(f32, {16});
};

TEST(CpuLaunchesTest, DimensionsThatNoTensorHas) {
  Kernel kernel("repeated");
  const Dim times = kernel.dim("times");
  const Tensor X = kernel.in("X", f32, {16}), Y = kernel.out("Y", f32, {16});
  kernel.grid(1);
  Var sum{zeros({16})};
  for ([[maybe_unused]] const Index i : range(times)) sum = sum + load(X(all));
  store(Y(all), Tile(sum));
  Launches launches(kernel);
  for (const std::int64_t times_now : {3, 5, 5, 2}) {
    EXPECT_EQ(launches.run(1, {{"times", times_now}}), static_cast<double>(times_now));
  }
}

TEST(CpuLaunchesTest, NumbersOfRanks) {
  Kernel kernel("counted");
  const Dim ranks = kernel.ranks();
  const Tensor X = kernel.in("X", f32, {16}), Y = kernel.out("Y", f32, {16});
  kernel.grid(1);
  store(Y(all), load(X(all)) + Tile({16}, Index(ranks)).cast(f32));
  Launches launches(kernel);
  for (const int ranks_now : {2, 4, 4, 1}) EXPECT_EQ(launches.run(ranks_now, {}), 1 + ranks_now);
}

}  // namespace
}  // namespace tilewright::compiler
