// What the simulated GPU costs: one KV step of an attention tile of 128 queries and 128 keys, d64,
// both products and the softmax, in microseconds of one core. The difference of two lengths, so
// that the kernel's preparation and the tile's ends do not count.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <ctime>
#include <stdexcept>

#include "passes/pipeline.h"
#include "simulator/machine/machine.h"
#include "tilewright/host_tensor.h"
#include "tilewright/kernels/attention.h"

namespace tilewright {
namespace {

constexpr std::int64_t kBlock = 128, kDim = 64;
constexpr std::int64_t kShort = 8, kLong = 40;  // blocks of keys

const ir::Kernel& attention() {
  static const ir::Kernel machine = [] {
    kernels::Attention a;
    a.heads = a.kv_heads = 1;
    a.dim = a.dim_v = kDim;
    a.block_q = a.block_k = kBlock;
    ir::Kernel kernel = kernels::attention_forward_sm90(a).finish();
    passes::lower_to_machine(kernel);
    return kernel;
  }();
  return machine;
}

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

class Tile {
 public:
  explicit Tile(std::int64_t blocks)
      : q_(HostTensor::random_normal(bf16, {1, kBlock, 1, kDim}, 1)),
        k_(HostTensor::random_normal(bf16, {1, blocks * kBlock, 1, kDim}, 2)),
        v_(HostTensor::random_normal(bf16, {1, blocks * kBlock, 1, kDim}, 3)),
        o_(HostTensor::poisoned(bf16, {1, kBlock, 1, kDim})),
        lse_(HostTensor::poisoned(f32, {1, 1, kBlock})) {}

  // Seconds, the least of three runs that do the same: other processes only ever add to a time.
  double least(const simulator::MachineOptions& options) {
    return std::min({simulate(options), simulate(options), simulate(options)});
  }

 private:
  double simulate(const simulator::MachineOptions& options) {
    Arguments arguments;
    const auto add = [&](const char* name, HostTensor& tensor) {
      arguments.tensors.push_back({name, tensor.dtype(), tensor.shape(), {}, tensor.data()});
    };
    add("Q", q_);
    add("K", k_);
    add("V", v_);
    add("O", o_);
    add("LSE", lse_);
    const double begin = thread_seconds();
    const simulator::MachineReport report = run_machine(attention(), arguments, options);
    const double end = thread_seconds();
    if (!report.ok()) throw std::runtime_error(report.faults.front().message);
    return end - begin;
  }

  HostTensor q_, k_, v_, o_, lse_;
};

void kv_step(benchmark::State& state, simulator::MachineOptions options) {
  options.multiprocessors = 1;
  Tile few(kShort), many(kLong);
  for (auto _ : state) {
    // The instants of copies and products depend on the seed, and so does some of the work.
    ++options.seed;
    const double time = many.least(options) - few.least(options);
    state.SetIterationTime(std::max(time, 0.0) / static_cast<double>(kLong - kShort));
  }
}

void KvStep(benchmark::State& state) { kv_step(state, {}); }
void KvStepUnordered(benchmark::State& state) {
  simulator::MachineOptions options;
  options.check_order = false;
  kv_step(state, options);
}
void KvStepControlOnly(benchmark::State& state) {
  simulator::MachineOptions options;
  options.control_only = true;
  kv_step(state, options);
}

void eight_seeds(benchmark::internal::Benchmark* kv_step) {
  kv_step->UseManualTime()
      ->Unit(benchmark::kMicrosecond)
      ->Iterations(8)
      ->Repetitions(5)
      ->ReportAggregatesOnly();
}
BENCHMARK(KvStep)->Apply(eight_seeds);
BENCHMARK(KvStepUnordered)->Apply(eight_seeds);
BENCHMARK(KvStepControlOnly)->Apply(eight_seeds);

}  // namespace
}  // namespace tilewright
