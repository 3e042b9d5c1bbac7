// synchronisation: 384 threads, 24576 bytes of shared memory.
#pragma nv_diag_suppress 177
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
struct alignas(64) TensorMap { u64 words[16]; };
__device__ __forceinline__ void prefetch_map(const TensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
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
__device__ __forceinline__ void mbarrier_arrive(u32 barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ __forceinline__ void mbarrier_arrive_remote(u32 barrier, u32 cta) {
  asm volatile(
      "{ .reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [remote]; }" ::"r"(barrier), "r"(cta) : "memory");
}
__device__ __forceinline__ void mbarrier_wait(u32 barrier, u32 parity) {
  asm volatile(
      "{ .reg .pred done;\n"
      "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@done bra end;\n"
      "bra again;\n"
      "end: }" ::"r"(barrier), "r"(parity) : "memory");
}
template <int kBarrier, int kThreads>
__device__ __forceinline__ void named_sync() {
  asm volatile("bar.sync %0, %1;" ::"n"(kBarrier), "n"(kThreads) : "memory");
}
template <int kBarrier, int kThreads>
__device__ __forceinline__ void named_arrive() {
  asm volatile("bar.arrive %0, %1;" ::"n"(kBarrier), "n"(kThreads) : "memory");
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
__device__ __forceinline__ void fence_proxy_async() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
__device__ __forceinline__ void fence_cluster() {
  asm volatile("fence.acq_rel.cluster;" ::: "memory");
}
__device__ __forceinline__ void bulk_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
template <int kGroups>
__device__ __forceinline__ void bulk_wait() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(kGroups) : "memory");
}
template <int kGroups>
__device__ __forceinline__ void bulk_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kGroups) : "memory");
}
template <int kCount>
__device__ __forceinline__ void increase_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kCount));
}
template <int kCount>
__device__ __forceinline__ void decrease_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kCount));
}
// An address of this CTA's shared memory as one of another CTA of the cluster.
__device__ __forceinline__ u32 in_cta(u32 address, u32 cta) {
  u32 remote;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(address), "r"(cta));
  return remote;
}
__device__ __forceinline__ void cluster_copy(u32 to, u32 from, u32 bytes, u32 barrier, u32 cta) {
  asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
               ::"r"(in_cta(to, cta)), "r"(from), "r"(bytes), "r"(in_cta(barrier, cta)) : "memory");
}
__device__ __forceinline__ void load_words(u32 address, float* r) {
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(r[0]), "=f"(r[1]), "=f"(r[2]), "=f"(r[3]) : "r"(address) : "memory");
}
__device__ __forceinline__ void load_words_cluster(u32 address, float* r) {
  asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(r[0]), "=f"(r[1]), "=f"(r[2]), "=f"(r[3]) : "r"(address) : "memory");
}
__device__ __forceinline__ void store_words(u32 address, const float* r) {
  asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(address), "f"(r[0]), "f"(r[1]), "f"(r[2]),
               "f"(r[3]) : "memory");
}
__device__ __forceinline__ void named_arrive_1_to_2_of_256(int index) {
  asm volatile(
      "{ .reg .pred p;\n"
      "setp.eq.s32 p, %0, 0;\n"
      "@p bar.arrive 1, 256;\n"
      "setp.eq.s32 p, %0, 1;\n"
      "@p bar.arrive 2, 256;\n"
      "}" ::"r"(index) : "memory");
}
__device__ __forceinline__ void named_sync_1_to_2_of_256(int index) {
  asm volatile(
      "{ .reg .pred p;\n"
      "setp.eq.s32 p, %0, 0;\n"
      "@p bar.sync 1, 256;\n"
      "setp.eq.s32 p, %0, 1;\n"
      "@p bar.sync 2, 256;\n"
      "}" ::"r"(index) : "memory");
}
__device__ __forceinline__ void tma_load_2d_hint(u32 address, const TensorMap& map, int x0, int x1, u32 barrier, u64 policy) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, {%2, %3}], [%4], %5;"
               ::"r"(address), "l"(&map), "r"(x0), "r"(x1), "r"(barrier), "l"(policy) : "memory");
}
__device__ __forceinline__ void tma_load_2d_multicast(u32 address, const TensorMap& map, int x0, int x1, u32 barrier, u16 ctas) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;"
               ::"r"(address), "l"(&map), "r"(x0), "r"(x1), "r"(barrier), "h"(ctas) : "memory");
}
__device__ __forceinline__ void tma_load_2d_multicast_hint(u32 address, const TensorMap& map, int x0, int x1, u32 barrier, u16 ctas, u64 policy) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint [%0], [%1, {%2, %3}], [%4], %5, %6;"
               ::"r"(address), "l"(&map), "r"(x0), "r"(x1), "r"(barrier), "h"(ctas), "l"(policy) : "memory");
}
__device__ __forceinline__ void tma_reduce_add_2d(u32 address, const TensorMap& map, int x0, int x1) {
  asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%1, {%2, %3}], [%0];"
               ::"r"(address), "l"(&map), "r"(x0), "r"(x1) : "memory");
}
__device__ __forceinline__ void tma_reduce_max_2d(u32 address, const TensorMap& map, int x0, int x1) {
  asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.max.tile.bulk_group [%1, {%2, %3}], [%0];"
               ::"r"(address), "l"(&map), "r"(x0), "r"(x1) : "memory");
}
__device__ __forceinline__ void tma_reduce_min_2d(u32 address, const TensorMap& map, int x0, int x1) {
  asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.min.tile.bulk_group [%1, {%2, %3}], [%0];"
               ::"r"(address), "l"(&map), "r"(x0), "r"(x1) : "memory");
}
__device__ __forceinline__ void tma_store_2d(u32 address, const TensorMap& map, int x0, int x1) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%1, {%2, %3}], [%0];"
               ::"r"(address), "l"(&map), "r"(x0), "r"(x1) : "memory");
}
extern "C" __device__ unsigned long long tilewright_form = 0x35144170825b07c1;
extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(384, 1)
synchronisation(const __grid_constant__ TensorMap A_6, const __grid_constant__ TensorMap C_7) {
  extern __shared__ __align__(1024) u8 dynamic_shared[];
  const u32 shared = (u32)__cvta_generic_to_shared(dynamic_shared);
  const int warp = __shfl_sync(0xffffffffu, (int)threadIdx.x / 32, 0);
  const int lane = (int)(threadIdx.x & 31u);
  // kernel.tw:9
  const u32 parts_2 = shared + 17408;
  // kernel.tw:10
  const u32 tiles_3 = shared + 0;
  // kernel.tw:11
  const u32 full_4 = shared + 16384;
  // kernel.tw:12
  const u32 empty_5 = shared + 16400;
  // kernel.tw:17
  const int v10 = cluster_rank();
  // kernel.tw:18
  if (threadIdx.x == 0) prefetch_map(A_6);
  // kernel.tw:19
  if (threadIdx.x == 0) prefetch_map(C_7);
  // kernel.tw:20
  if (threadIdx.x == 0) for (int i = 0; i < 2; ++i) mbarrier_init(full_4 + 8 * i, 1);
  // kernel.tw:21
  if (threadIdx.x == 0) for (int i = 0; i < 2; ++i) mbarrier_init(empty_5 + 8 * i, 2);
  // kernel.tw:22
  if (threadIdx.x == 0) fence_barrier_init();
  // kernel.tw:23
  cluster_sync();
  // kernel.tw:24
  if (warp < 4) {
    decrease_registers<24>();
    // kernel.tw:25
    if (warp == 0) {
      // load
      // kernel.tw:26
      mbarrier_wait(empty_5 + 8 * v10, 1);
      // kernel.tw:27
      if (lane == 0) mbarrier_expect_tx(full_4 + 8 * v10, 8192);
      // kernel.tw:28
      if (lane == 0) tma_load_2d_multicast(tiles_3, A_6, 0, 0, full_4 + 8 * v10, 0x3);
      // kernel.tw:29
      if (lane == 0) tma_load_2d_multicast_hint(tiles_3 + 8192, A_6, 0, 0, full_4 + 8 * v10, 0x3, 0x14f0000000000000ull);
      // kernel.tw:30
      if (lane == 0) tma_load_2d_hint(tiles_3 + 8192, A_6, 0, 0, full_4 + 8, 0x12f0000000000000ull);
      // kernel.tw:31
      if (lane == 0) cluster_copy(tiles_3 + 8192, tiles_3, 4096, full_4 + 8, v10);
    }
    // kernel.tw:34
    else if (warp == 1) {
      // store
      // kernel.tw:35
      if (lane == 0) tma_store_2d(tiles_3, C_7, 0, 0);
      // kernel.tw:36
      if (lane == 0) tma_reduce_add_2d(tiles_3, C_7, 0, 0);
      // kernel.tw:37
      if (lane == 0) tma_reduce_min_2d(tiles_3 + 8192, C_7, 0, 0);
      // kernel.tw:38
      if (lane == 0) tma_reduce_max_2d(tiles_3, C_7, 0, 0);
      // kernel.tw:39
      if (lane == 0) bulk_commit();
      // kernel.tw:40
      if (lane == 0) bulk_wait_read<0>();
      // kernel.tw:41
      if (lane == 0) bulk_wait<0>();
    }
  }
  // kernel.tw:44
  else if (warp >= 4) {
    // math
    const int v13 = (warp - 4) / 4;
    // kernel.tw:45
    increase_registers<240>();
    // kernel.tw:46
    named_sync_1_to_2_of_256(v13);
    // kernel.tw:47
    named_arrive_1_to_2_of_256(v13);
    // kernel.tw:48
    named_sync<3, 128>();
    // kernel.tw:49
    named_arrive<4, 128>();
    // kernel.tw:50
    if (lane == 0) mbarrier_arrive(empty_5);
    // kernel.tw:51
    float part_14[4];
    // kernel.tw:53
    #pragma unroll
    for (int i = 0; i < 4; ++i)
      part_14[i] = 1.5f;
    // kernel.tw:54
    {
      const u32 address = parts_2 + lane * 16;
      #pragma unroll
      for (int i = 0; i < 1; ++i) store_words(address + 512 * i, part_14 + 4 * i);
    }
    // kernel.tw:55
    fence_cluster();
    // kernel.tw:56
    if (lane == 0) mbarrier_arrive_remote(empty_5 + 8, v10);
    // kernel.tw:57
    {
      const u32 address = parts_2 + lane * 16;
      #pragma unroll
      for (int i = 0; i < 1; ++i) load_words(address + 512 * i, part_14 + 4 * i);
    }
    // kernel.tw:58
    {
      const u32 address = in_cta(parts_2 + lane * 16, v10);
      #pragma unroll
      for (int i = 0; i < 1; ++i) load_words_cluster(address + 512 * i, part_14 + 4 * i);
    }
    // kernel.tw:59
    fence_proxy_async();
  }
  // kernel.tw:62
  cluster_sync();
}
