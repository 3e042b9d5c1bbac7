#pragma once

// CUDA sources that the runtime's tests build.
namespace tilewright::runtime {

inline constexpr const char* kScaleSource = R"(
extern "C" __global__ void __launch_bounds__(128, 1) scale(float* x, float factor, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= factor;
})";

inline constexpr const char* kIndexedRegistersSource = R"(
extern "C" __global__ void indexed(float* x, int n, int k) {
  float values[32];
  for (int i = 0; i < 32; ++i) values[i] = x[i + threadIdx.x];
  for (int i = 0; i < n; ++i) values[(k + i) & 31] += x[i];
  float sum = 0;
  for (int i = 0; i < 32; ++i) sum += values[i];
  x[threadIdx.x] = sum;
})";

// One m64n8k16 product a step; BETWEEN stands between the product's commit and its wait.
inline constexpr const char* kWgmmaSource = R"(
extern "C" __global__ void __launch_bounds__(128, 1)
product(float* x, unsigned long long a, unsigned long long b, int steps) {
  float d[4] = {};
  for (int step = 0; step < steps; ++step) {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a), "l"(b) : "memory");
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    BETWEEN
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  }
  for (int i = 0; i < 4; ++i) x[threadIdx.x * 4 + i] = d[i];
})";

// Tensor memory and tcgen05 exist on sm_100a only.
inline constexpr const char* kTensorMemorySource = R"(
extern "C" __global__ void __launch_bounds__(128, 1) tensor_memory(unsigned* x) {
  __shared__ unsigned slot;
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(&slot));
  if (threadIdx.x < 32) {
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 32;" :: "r"(address));
  }
  __syncthreads();
  x[threadIdx.x] = slot;
  __syncthreads();
  if (threadIdx.x < 32) {
    asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 32;" :: "r"(slot));
  }
})";

inline constexpr const char* kSharedSource = R"(
extern "C" __global__ void nothing() {
  __shared__ int values[100];
  values[threadIdx.x % 100] = 1;
  __syncthreads();
  if (values[(threadIdx.x * 7) % 100] == 3) asm volatile("trap;");
})";

}  // namespace tilewright::runtime
