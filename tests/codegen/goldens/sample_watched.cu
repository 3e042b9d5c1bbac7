// watched: 32 threads, 16 bytes of shared memory.
#pragma nv_diag_suppress 177
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
__device__ __forceinline__ void mbarrier_init(u32 barrier, u32 arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
__device__ __forceinline__ void fence_barrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ __forceinline__ u64 nanoseconds() {
  u64 now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}
// When a wait that begins now has lasted too long, by what the host has written.
__device__ __forceinline__ u64 late_at(const i64* watch, int times) {
  u64 limit;
  asm volatile("ld.relaxed.sys.global.b64 %0, [%1];" : "=l"(limit) : "l"(watch) : "memory");
  return nanoseconds() + times * limit;
}
__device__ __forceinline__ void report_wait(i64* watch, int number, int warp, i64 index, i64 value, i64 found, i64 outer, i64 inner) {
  const u32 waiting = __activemask();
  if ((waiting & ((1u << (threadIdx.x & 31u)) - 1u)) == 0) {
    i64 place;
    asm volatile("atom.relaxed.sys.global.add.u64 %0, [%1], %2;"
                 : "=l"(place) : "l"(watch + 1), "l"(1ll) : "memory");
    if (place < 32) {
      i64* const record = watch + 2 + place * 9;
      const i64 words[8] = {number, (i64)blockIdx.x, warp, index, value, found, outer, inner};
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        asm volatile("st.relaxed.sys.global.b64 [%0], %1;" ::"l"(record + 1 + i), "l"(words[i]) : "memory");
      }
      asm volatile("st.release.sys.global.b64 [%0], %1;" ::"l"(record), "l"(1ll) : "memory");
    }
  }
  const u64 end = nanoseconds() + 300000000ull;
  while (nanoseconds() < end) {}
  asm volatile("trap;");
}
__device__ __forceinline__ void mbarrier_wait_watched(u32 barrier, u32 parity, i64* watch, int number, int warp, i64 index, i64 outer, i64 inner) {
  const u64 late = late_at(watch, 2);
  for (;;) {
    int done;
    asm volatile(
        "{ .reg .pred done;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;\n"
        "selp.s32 %0, 1, 0, done; }"
        : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
    if (done) return;
    if (nanoseconds() > late) report_wait(watch, number, warp, index, parity, 0, outer, inner);
  }
}
__device__ __forceinline__ void wait_flag_eq_relaxed_gpu_watched(const int* address, int value, i64* watch, int number, int warp, i64 index, i64 outer, i64 inner) {
  int v;
  const u64 late = late_at(watch, 1);
  for (;;) {
    asm volatile("ld.relaxed.gpu.b32 %0, [%1];" : "=r"(v) : "l"(address) : "memory");
    if (v == value) return;
    if (nanoseconds() > late) report_wait(watch, number, warp, index, value, v, outer, inner);
  }
}
__device__ __forceinline__ void wait_flag_ge_acquire_sys_watched(const int* address, int value, i64* watch, int number, int warp, i64 index, i64 outer, i64 inner) {
  int v;
  const u64 late = late_at(watch, 1);
  for (;;) {
    asm volatile("ld.acquire.sys.b32 %0, [%1];" : "=r"(v) : "l"(address) : "memory");
    if ((int)((u32)v - (u32)value) >= 0) return;
    if (nanoseconds() > late) report_wait(watch, number, warp, index, value, v, outer, inner);
  }
}
extern "C" __device__ unsigned long long tilewright_form = 0xf06304552f3bc0c1;
extern "C" __global__ void __launch_bounds__(32, 1)
watched(int epoch, i64* watch, int* flags_0) {
  extern __shared__ __align__(1024) u8 dynamic_shared[];
  const u32 shared = (u32)__cvta_generic_to_shared(dynamic_shared);
  const int warp = __shfl_sync(0xffffffffu, (int)threadIdx.x / 32, 0);
  const int lane = (int)(threadIdx.x & 31u);
  // kernel.tw:7
  const u32 full_1 = shared + 0;
  // kernel.tw:12
  if (threadIdx.x == 0) for (int i = 0; i < 2; ++i) mbarrier_init(full_1 + 8 * i, 1);
  // kernel.tw:13
  if (threadIdx.x == 0) fence_barrier_init();
  // kernel.tw:14
  __syncthreads();
  // kernel.tw:15
  if (warp == 0) {
    // only
    // kernel.tw:16
    wait_flag_ge_acquire_sys_watched(flags_0 + 0, epoch, watch, 0, warp, 0, 0, 0);
    // kernel.tw:17
    #pragma unroll 1
    for (int v7 = 0; v7 < 4; v7 += 1) {
      // kernel.tw:18
      mbarrier_wait_watched(full_1 + 8, 1, watch, 1, warp, 1, (i64)v7, (i64)v7);
      // kernel.tw:19
      #pragma unroll 1
      for (int v8 = 0; v8 < 4; v8 += 1) {
        // kernel.tw:20
        wait_flag_eq_relaxed_gpu_watched(flags_0 + v8, epoch, watch, 2, warp, v8, (i64)v7, (i64)v8);
      }
    }
    // kernel.tw:25
    if (lane == 0) {
      // kernel.tw:26
      mbarrier_wait_watched(full_1, 1, watch, 3, warp, 0, 0, 0);
    }
  }
}
