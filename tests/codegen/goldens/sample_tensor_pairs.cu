// tensor_pairs: 160 threads, 24704 bytes of shared memory.
#pragma nv_diag_suppress 177
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
struct alignas(64) TensorMap { u64 words[16]; };
template <int kColumns>
__device__ __forceinline__ void tcgen05_alloc_pair(u32 place) {
  asm volatile("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(place), "n"(kColumns) : "memory");
}
template <int kColumns>
__device__ __forceinline__ void tcgen05_dealloc_pair(u32 columns) {
  asm volatile("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, %1;" ::"r"(columns), "n"(kColumns) : "memory");
}
__device__ __forceinline__ void tcgen05_relinquish_pair() {
  asm volatile("tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void tcgen05_commit_pair(u32 barrier) {
  asm volatile("tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(barrier) : "memory");
}
__device__ __forceinline__ void tcgen05_commit_multicast_pair(u32 barrier, u16 ctas) {
  asm volatile(
      "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;"
      ::"r"(barrier), "h"(ctas) : "memory");
}
__device__ __forceinline__ void try_cancel(u32 answer, u32 barrier) {
  asm volatile(
      "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%0], [%1];"
      ::"r"(answer), "r"(barrier) : "memory");
}
__device__ __forceinline__ void try_cancel_cluster(u32 answer, u32 barrier) {
  asm volatile(
      "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes"
      ".multicast::cluster::all.b128 [%0], [%1];" ::"r"(answer), "r"(barrier) : "memory");
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
__device__ __forceinline__ void cluster_sync() {
  asm volatile(
      "barrier.cluster.arrive.release.aligned;\n"
      "barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
__device__ __forceinline__ int cluster_rank() {
  int rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
template <typename T>
__device__ __forceinline__ T load_shared(u32 address);
template <>
__device__ __forceinline__ int load_shared(u32 address) {
  int v;
  asm volatile("ld.shared.b32 %0, [%1];" : "=r"(v) : "r"(address) : "memory");
  return v;
}
template <>
__device__ __forceinline__ u32 load_shared(u32 address) { return (u32)load_shared<int>(address); }
template <>
__device__ __forceinline__ float load_shared(u32 address) { return __int_as_float(load_shared<int>(address)); }
template <>
__device__ __forceinline__ i64 load_shared(u32 address) {
  i64 v;
  asm volatile("ld.shared.b64 %0, [%1];" : "=l"(v) : "r"(address) : "memory");
  return v;
}
template <>
__device__ __forceinline__ u16 load_shared(u32 address) {
  u16 v;
  asm volatile("ld.shared.b16 %0, [%1];" : "=h"(v) : "r"(address) : "memory");
  return v;
}
template <>
__device__ __forceinline__ u8 load_shared(u32 address) {
  u32 v;
  asm volatile("ld.shared.u8 %0, [%1];" : "=r"(v) : "r"(address) : "memory");
  return (u8)v;
}
// The upper bits of such an address are the CTA's rank in its cluster.
__device__ __forceinline__ u64 descriptor_in_cluster(u32 high, u32 low, u32 address) {
  asm volatile("" : "+r"(address));
  return (u64)high << 32 | (low + ((address & 0x3ffff) >> 4));
}
__device__ __forceinline__ void tcgen05_mma_ss_f16_pair(u32 d, u64 a, u64 b, u32 instruction, bool accumulate) {
  asm volatile(
      "{ .reg .pred p;\n"
      "setp.ne.b32 p, %4, 0;\n"
      "tcgen05.mma.cta_group::2.kind::f16 [%0], %1, %2, %3, p; }"
      ::"r"(d), "l"(a), "l"(b), "r"(instruction), "r"((int)accumulate) : "memory");
}
__device__ __forceinline__ void tcgen05_mma_ts_f16_pair(u32 d, u32 a, u64 b, u32 instruction, bool accumulate) {
  asm volatile(
      "{ .reg .pred p;\n"
      "setp.ne.b32 p, %4, 0;\n"
      "tcgen05.mma.cta_group::2.kind::f16 [%0], [%1], %2, %3, p; }"
      ::"r"(d), "r"(a), "l"(b), "r"(instruction), "r"((int)accumulate) : "memory");
}
__device__ __forceinline__ void tma_load_2d_multicast_pair_hint(u32 address, const TensorMap& map, int x0, int x1, u32 barrier, u16 ctas, u64 policy) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster.cta_group::2.L2::cache_hint [%0], [%1, {%2, %3}], [%4], %5, %6;"
               ::"r"(address), "l"(&map), "r"(x0), "r"(x1), "r"(barrier & 0xfeffffffu), "h"(ctas), "l"(policy) : "memory");
}
__device__ __forceinline__ void tma_load_2d_pair(u32 address, const TensorMap& map, int x0, int x1, u32 barrier) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_group::2 [%0], [%1, {%2, %3}], [%4];"
               ::"r"(address), "l"(&map), "r"(x0), "r"(x1), "r"(barrier & 0xfeffffffu) : "memory");
}
extern "C" __device__ unsigned long long tilewright_form = 0x4c6db0ff197f1659;
extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(160, 1)
tensor_pairs(const __grid_constant__ TensorMap A_map_1) {
  extern __shared__ __align__(1024) u8 dynamic_shared[];
  const u32 shared = (u32)__cvta_generic_to_shared(dynamic_shared);
  const int warp = __shfl_sync(0xffffffffu, (int)threadIdx.x / 32, 0);
  const int lane = (int)(threadIdx.x & 31u);
  // kernel.tw:11
  const u32 a_2 = shared + 0;
  // kernel.tw:12
  const u32 b_3 = shared + 16384;
  // kernel.tw:13
  const u32 address_4 = shared + 20480;
  // kernel.tw:14
  const u32 answer_5 = shared + 20608;
  // kernel.tw:15
  const u32 done_6 = shared + 20544;
  // kernel.tw:18
  if (threadIdx.x == 0) for (int i = 0; i < 2; ++i) mbarrier_init(done_6 + 8 * i, 1);
  // kernel.tw:19
  if (threadIdx.x == 0) fence_barrier_init();
  // kernel.tw:20
  cluster_sync();
  // kernel.tw:25
  if (warp == 4) {
    // multiply
    // kernel.tw:26
    tcgen05_alloc_pair<64>(address_4 + 4 * 0);
    // kernel.tw:27
    tcgen05_alloc_pair<32>(address_4 + 4 * 1);
    // kernel.tw:28
    tcgen05_relinquish_pair();
    // kernel.tw:29
    const int v14 = __shfl_sync(0xffffffffu, load_shared<int>(address_4 + 4 * 0), 0);
    // kernel.tw:30
    const int v15 = __shfl_sync(0xffffffffu, load_shared<int>(address_4 + 4 * 1), 0);
    // kernel.tw:31
    if (lane == 0) tma_load_2d_pair(a_2, A_map_1, 0, 0, done_6);
    // kernel.tw:32
    if (lane == 0) tma_load_2d_multicast_pair_hint(a_2, A_map_1, 0, 0, done_6, 0x3, 0x12f0000000000000ull);
    // kernel.tw:33
    if (lane == 0) tcgen05_mma_ss_f16_pair(v14, descriptor_in_cluster(0x40004040, 0x10000, a_2), descriptor_in_cluster(0x40004040, 0x10000, b_3), 0x10100490, false);
    // kernel.tw:34
    if (lane == 0) tcgen05_mma_ts_f16_pair(v14, v15, descriptor_in_cluster(0x40004040, 0x10000, b_3), 0x10100490, true);
    // kernel.tw:35
    if (lane == 0) tcgen05_commit_pair(done_6);
    // kernel.tw:36
    if (lane == 0) tcgen05_commit_multicast_pair(done_6 + 8, 0x3);
    // kernel.tw:37
    if (lane == 0) tcgen05_commit_multicast_pair(done_6 + 8, 0x1 << cluster_rank() / 1 * 1);
    // kernel.tw:38
    if (lane == 0) try_cancel_cluster(answer_5 + 4 * 0, done_6);
    // kernel.tw:39
    const int v16 = query_cancel(answer_5 + 4 * 0);
    // kernel.tw:40
    const bool v17 = v16 < 0;
    // kernel.tw:41
    if (v17) {
      // kernel.tw:42
      tcgen05_dealloc_pair<32>(v15);
      // kernel.tw:43
      tcgen05_dealloc_pair<64>(v14);
    }
  }
  // kernel.tw:50
  cluster_sync();
}
