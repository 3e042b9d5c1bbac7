// checks: 128 threads, 0 bytes of shared memory.
#pragma nv_diag_suppress 177
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
// The number, computed where it is used: kept over a loop, places would take the accumulators'
// registers.
__device__ __forceinline__ int here(int x) {
  asm volatile("" : "+r"(x));
  return x;
}
__device__ __forceinline__ void stop_at_check(i64* report, int check, int warp, i64 a, i64 b, i64 c, i64 d) {
  i64 before;
  asm volatile("atom.relaxed.sys.global.cas.b64 %0, [%1], %2, %3;"
               : "=l"(before) : "l"(report + 1), "l"(0ll), "l"(1ll) : "memory");
  if (before == 0) {
    const i64 words[7] = {check, (i64)blockIdx.x, warp, a, b, c, d};
#pragma unroll
    for (int i = 0; i < 7; ++i) {
      asm volatile("st.relaxed.sys.global.b64 [%0], %1;" ::"l"(report + 2 + i), "l"(words[i]) : "memory");
    }
    asm volatile("st.release.sys.global.b64 [%0], %1;" ::"l"(report), "l"(1ll) : "memory");
  }
  i64 written;
  do {
    asm volatile("ld.acquire.sys.global.b64 %0, [%1];" : "=l"(written) : "l"(report) : "memory");
  } while (written == 0);
  asm volatile("trap;");
}
extern "C" __device__ unsigned long long tilewright_form = 0xb7d68b5a504b48a4;
extern "C" __global__ void __launch_bounds__(128, 1)
checks(i64* report, int* names_0, float* Y_1, int dim_count, i64 wide_2) {
  const int warp = __shfl_sync(0xffffffffu, (int)threadIdx.x / 32, 0);
  const int lane = (int)(threadIdx.x & 31u);
  // kernel.tw:10
  const int v3 = (int)blockIdx.x;
  // kernel.tw:12
  const bool v5 = v3 < dim_count;
  // kernel.tw:16
  if (warp < 4) {
    // only
    // kernel.tw:17
    if (!v5) stop_at_check(report, 0, warp, v3, dim_count, 0, 0);
    // kernel.tw:18
    const int v10 = __shfl_sync(0xffffffffu, *(names_0 + v3), 0);
    // kernel.tw:19
    const bool v11 = 0 <= v10;
    // kernel.tw:20
    const bool v12 = v10 < 128;
    // kernel.tw:21
    const bool v13 = v11 & v12;
    // kernel.tw:22
    if (!v13) stop_at_check(report, 1, warp, v10, 128, wide_2, v3);
    // kernel.tw:23
    if (lane == 0) {
      // kernel.tw:24
      if (!v13) stop_at_check(report, 2, warp, 0, 0, 0, 0);
    }
    // kernel.tw:27
    float row_14[1];
    // kernel.tw:28
    row_14[0] = 1.5f;
    // kernel.tw:29
    {
      const int c0 = here(v10 + lane + warp * 32);
      const int e0 = 128;
      float* const first = Y_1 + (i64)c0;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 >= 0 && c0 < e0) first[0] = row_14[i];
      }
    }
  }
}
