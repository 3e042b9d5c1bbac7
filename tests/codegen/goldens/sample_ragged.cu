// ragged: 128 threads, 1152 bytes of shared memory.
#pragma nv_diag_suppress 177
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
struct alignas(64) TensorMap { u64 words[16]; };
struct RaggedMap { TensorMap outside[2]; };
struct PeerRaggedMaps { RaggedMap rank[8]; };
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
__device__ __forceinline__ void tma_load_3d(u32 address, const TensorMap& map, int x0, int x1, int x2, u32 barrier) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];"
               ::"r"(address), "l"(&map), "r"(x0), "r"(x1), "r"(x2), "r"(barrier) : "memory");
}
__device__ __forceinline__ void tma_load_4d(u32 address, const TensorMap& map, int x0, int x1, int x2, int x3, u32 barrier) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], [%6];"
               ::"r"(address), "l"(&map), "r"(x0), "r"(x1), "r"(x2), "r"(x3), "r"(barrier) : "memory");
}
extern "C" __device__ unsigned long long tilewright_form = 0x961a37e98e8c827b;
extern "C" __global__ void __launch_bounds__(128, 1)
ragged(const __grid_constant__ PeerRaggedMaps parts_3, const __grid_constant__ RaggedMap X_4, int rank) {
  extern __shared__ __align__(1024) u8 dynamic_shared[];
  const u32 shared = (u32)__cvta_generic_to_shared(dynamic_shared);
  const int warp = __shfl_sync(0xffffffffu, (int)threadIdx.x / 32, 0);
  const int lane = (int)(threadIdx.x & 31u);
  // kernel.tw:9
  const u32 tile_2 = shared + 0;
  // kernel.tw:12
  const u32 full_5 = shared + 1024;
  // kernel.tw:16
  if (threadIdx.x == 0) mbarrier_init(full_5, 1);
  // kernel.tw:17
  if (threadIdx.x == 0) fence_barrier_init();
  // kernel.tw:18
  __syncthreads();
  // kernel.tw:19
  if (warp < 4) {
    // only
    // kernel.tw:20
    const bool v10 = rank == 0;
    // kernel.tw:21
    const RaggedMap& v11 = parts_3.rank[rank];
    // kernel.tw:22
    const TensorMap& v12 = v11.outside[v10];
    // kernel.tw:23
    const TensorMap& v13 = X_4.outside[v10];
    // kernel.tw:24
    if (lane == 0) {
      // kernel.tw:25
      mbarrier_expect_tx(full_5, 2048);
      // kernel.tw:26
      tma_load_4d(tile_2, v12, 16, 0, 0, rank, full_5);
      // kernel.tw:27
      tma_load_3d(tile_2, v13, 16, 0, 0, full_5);
    }
    // kernel.tw:30
    mbarrier_wait(full_5, 0);
  }
}
