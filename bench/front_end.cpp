// What a user waits for without a GPU: from a kernel's definition to CUDA C++, and its execution by
// the interpreter and on the simulated GPU.
#include <benchmark/benchmark.h>

#include "codegen/cuda/cuda_printer.h"
#include "passes/pipeline.h"
#include "tilewright/compile.h"
#include "tilewright/host_tensor.h"
#include "tilewright/kernels/attention.h"
#include "tilewright/kernels/gemm.h"

namespace tilewright {
namespace {

kernels::Attention attention(bool causal) {
  kernels::Attention a;
  a.heads = a.kv_heads = 2;
  a.dim = a.dim_v = 128;
  a.causal = causal;
  return a;
}

void to_cuda(benchmark::State& state, const std::function<Kernel()>& make) {
  for (auto _ : state) {
    ir::Kernel kernel = make().finish();
    passes::lower_to_machine(kernel);
    benchmark::DoNotOptimize(codegen::print_cuda(kernel).text.size());
  }
}

void AttentionToCuda(benchmark::State& state) {
  to_cuda(state, [&] { return kernels::attention_forward_sm90(attention(state.range(0) != 0)); });
}
BENCHMARK(AttentionToCuda)->ArgName("causal")->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

void GemmToCuda(benchmark::State& state) {
  to_cuda(state, [] { return kernels::gemm_sm90({}); });
}
BENCHMARK(GemmToCuda)->Unit(benchmark::kMillisecond);

// One batch of two heads, 256 queries and keys, d128.
void run_attention(benchmark::State& state, const Executable& executable) {
  const std::vector<std::int64_t> shape{1, 256, 2, 128};
  HostTensor q = HostTensor::random_normal(bf16, shape, 1);
  HostTensor k = HostTensor::random_normal(bf16, shape, 2);
  HostTensor v = HostTensor::random_normal(bf16, shape, 3);
  HostTensor o = HostTensor::poisoned(bf16, shape);
  HostTensor lse = HostTensor::poisoned(f32, {1, 2, 256});
  for (auto _ : state) executable.run({ref(q), ref(k), ref(v), ref(o), ref(lse)});
}

void AttentionInterpreted(benchmark::State& state) {
  run_attention(state, compile(kernels::attention_forward(attention(true)), "interpreter"));
}
BENCHMARK(AttentionInterpreted)->Unit(benchmark::kMillisecond);

void AttentionSimulated(benchmark::State& state) {
  run_attention(state, compile(kernels::attention_forward_sm90(attention(true)), "sim:sm_90a"));
}
BENCHMARK(AttentionSimulated)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tilewright
