// row_sums: 128 threads, 0 bytes of shared memory.
#pragma nv_diag_suppress 177
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
__device__ __forceinline__ float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
// The number, computed where it is used: kept over a loop, places would take the accumulators'
// registers.
__device__ __forceinline__ int here(int x) {
  asm volatile("" : "+r"(x));
  return x;
}
extern "C" __device__ unsigned long long tilewright_form = 0x906fb2fff0fb1e9f;
extern "C" __global__ void __launch_bounds__(128, 1)
row_sums(float* Y_0, int dim_rows, float scale_1) {
  const int warp = __shfl_sync(0xffffffffu, (int)threadIdx.x / 32, 0);
  const int lane = (int)(threadIdx.x & 31u);
  // sums.cpp:4
  const int v4 = (int)blockIdx.x;
  const int v5 = v4 * 64;
  // sums.cpp:5
  if (warp < 4) {
    // math
    // sums.cpp:6
    int column_7[8];
    float value_8[8];
    // sums.cpp:7
    float sum_9[2];
    // sums.cpp:6
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      column_7[i] = i % 2 + i / 4 * 8 + lane % 4 * 2;
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      value_8[i] = (float)column_7[i];
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      value_8[i] = value_8[i] * scale_1;
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      value_8[i] = exp2_approx(value_8[i]);
    // sums.cpp:7
    {
      float sums[2];
      #pragma unroll
      for (int i = 0; i < 2; ++i) sums[i] = -0.0f;
      #pragma unroll
      for (int i = 0; i < 8; ++i) sums[i / 2 % 2] = sums[i / 2 % 2] + value_8[i];
      #pragma unroll
      for (int i = 0; i < 2; ++i)
        sum_9[i] = sums[i];
    }
    #pragma unroll
    for (int i = 0; i < 2; ++i)
      sum_9[i] = sum_9[i] + __shfl_xor_sync(0xffffffffu, sum_9[i], 1);
    #pragma unroll
    for (int i = 0; i < 2; ++i)
      sum_9[i] = sum_9[i] + __shfl_xor_sync(0xffffffffu, sum_9[i], 2);
    // sums.cpp:8
    if (lane % 4 == 0) {
      const int c0 = here(v5 + lane / 4 + warp * 16);
      const int e0 = dim_rows;
      float* const first = Y_0 + (i64)c0;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 + i * 8 < e0) first[(i * 8)] = sum_9[i];
      }
    }
  }
}
