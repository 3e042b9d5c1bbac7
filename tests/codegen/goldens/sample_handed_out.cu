// handed_out: 32 threads, 64 bytes of shared memory.
#pragma nv_diag_suppress 177
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
__device__ __forceinline__ void try_cancel(u32 answer, u32 barrier) {
  asm volatile(
      "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%0], [%1];"
      ::"r"(answer), "r"(barrier) : "memory");
}
__device__ __forceinline__ int query_cancel(u32 answer) {
  int first;
  asm volatile(
      "{ .reg .b128 bits;\n"
      ".reg .pred is;\n"
      "ld.shared.b128 bits, [%1];\n"
      "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 is, bits;\n"
      "mov.s32 %0, -1;\n"
      "@is clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %0, bits; }"
      : "=&r"(first) : "r"(answer) : "memory");
  return __shfl_sync(0xffffffffu, first, 0);
}
__device__ __forceinline__ void mbarrier_init(u32 barrier, u32 arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
__device__ __forceinline__ void fence_barrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ __forceinline__ void mbarrier_expect_tx(u32 barrier, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
__device__ __forceinline__ void mbarrier_wait(u32 barrier, u32 parity) {
  asm volatile(
      "{ .reg .pred done;\n"
      "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@done bra end;\n"
      "bra again;\n"
      "end: }" ::"r"(barrier), "r"(parity) : "memory");
}
__device__ __forceinline__ void store_weak(int* address, int v) {
  asm volatile("st.weak.b32 [%0], %1;" ::"l"(address), "r"(v) : "memory");
}
extern "C" __device__ unsigned long long tilewright_form = 0x740456ab52dda9a0;
extern "C" __global__ void __launch_bounds__(32, 1)
handed_out(int* X_0) {
  extern __shared__ __align__(1024) u8 dynamic_shared[];
  const u32 shared = (u32)__cvta_generic_to_shared(dynamic_shared);
  const int warp = __shfl_sync(0xffffffffu, (int)threadIdx.x / 32, 0);
  const int lane = (int)(threadIdx.x & 31u);
  // kernel.tw:8
  const u32 answer_1 = shared + 0;
  // kernel.tw:9
  const u32 there_2 = shared + 32;
  // kernel.tw:10
  if (threadIdx.x == 0) mbarrier_init(there_2, 1);
  // kernel.tw:11
  if (threadIdx.x == 0) fence_barrier_init();
  // kernel.tw:12
  __syncthreads();
  // kernel.tw:14
  if (threadIdx.x == 0) mbarrier_expect_tx(there_2, 16);
  // kernel.tw:16
  if (threadIdx.x == 0) try_cancel(answer_1 + 4 * 4, there_2);
  // kernel.tw:17
  mbarrier_wait(there_2, 0);
  // kernel.tw:18
  const int v5 = query_cancel(answer_1 + 4 * 4);
  // kernel.tw:19
  const int v6 = (int)blockIdx.x;
  // kernel.tw:20
  if (threadIdx.x == 0) store_weak(X_0 + v6, v5);
}
