// product: 256 threads, 16400 bytes of shared memory.
#pragma nv_diag_suppress 177
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
struct alignas(64) TensorMap { u64 words[16]; };
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
template <int kCount>
__device__ __forceinline__ void decrease_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kCount));
}
__device__ __forceinline__ u32 word(u32 v) { return v; }
__device__ __forceinline__ u32 word(int v) { return (u32)v; }
__device__ __forceinline__ u32 word(float v) { return __float_as_uint(v); }
template <typename T>
__device__ __forceinline__ void store_vector_8(void* address, const T* r) {
  *(uint2*)address = make_uint2(word(r[0]), word(r[1]));
}
// Keeps the registers of an array where they are across an asynchronous product.
template <int kCount>
__device__ __forceinline__ void pin(float (&r)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(r[i])::"memory");
}
template <int kCount>
__device__ __forceinline__ void pin(u32 (&r)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+r"(r[i])::"memory");
}
__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int kGroups>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kGroups) : "memory");
}
// Of a matrix at a shared address that is a multiple of 16. It is made where it is used: kept over a
// loop, those of all products would take the accumulators' registers.
__device__ __forceinline__ u64 descriptor(u32 high, u32 low, u32 address) {
  asm volatile("" : "+r"(address));
  return (u64)high << 32 | (low + (address >> 4));
}
__device__ __forceinline__ void tma_load_2d(u32 address, const TensorMap& map, int x0, int x1, u32 barrier) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
               ::"r"(address), "l"(&map), "r"(x0), "r"(x1), "r"(barrier) : "memory");
}
__device__ __forceinline__ void wgmma_ss_m64n64k16_bf16(float* d, u64 a, u64 b, bool accumulate) {
  asm volatile(
      "{ .reg .pred p;\n"
      "setp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, p, 1, 1, 0, 0; }"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
      : "l"(a), "l"(b), "r"((int)accumulate));
}
extern "C" __device__ unsigned long long tilewright_form = 0x28e6e69dc98b230c;
extern "C" __global__ void __launch_bounds__(256, 1)
product(const __grid_constant__ TensorMap A_5, const __grid_constant__ TensorMap B_6, float* C_2, i64 C_2_stride0) {
  extern __shared__ __align__(1024) u8 dynamic_shared[];
  const u32 shared = (u32)__cvta_generic_to_shared(dynamic_shared);
  const int warp = __shfl_sync(0xffffffffu, (int)threadIdx.x / 32, 0);
  const int lane = (int)(threadIdx.x & 31u);
  // product.cpp:8
  const u32 tiles_3 = shared + 0;
  // product.cpp:9
  const u32 full_4 = shared + 16384;
  if (threadIdx.x == 0) mbarrier_init(full_4, 1);
  if (threadIdx.x == 0) fence_barrier_init();
  __syncthreads();
  // product.cpp:18
  if (warp < 4) {
    // math
    decrease_registers<240>();
    // product.cpp:20
    float sums_13[32];
    // product.cpp:19
    mbarrier_wait(full_4, 0);
    // product.cpp:20
    pin(sums_13);
    wgmma_fence();
    wgmma_ss_m64n64k16_bf16(sums_13, descriptor(0x40000040, 0x10000, tiles_3), descriptor(0x40000040, 0x10000, tiles_3 + 8192), false);
    wgmma_ss_m64n64k16_bf16(sums_13, descriptor(0x40000040, 0x10000, tiles_3) + 2, descriptor(0x40000040, 0x10000, tiles_3 + 8192) + 2, true);
    wgmma_ss_m64n64k16_bf16(sums_13, descriptor(0x40000040, 0x10000, tiles_3) + 4, descriptor(0x40000040, 0x10000, tiles_3 + 8192) + 4, true);
    wgmma_ss_m64n64k16_bf16(sums_13, descriptor(0x40000040, 0x10000, tiles_3) + 6, descriptor(0x40000040, 0x10000, tiles_3 + 8192) + 6, true);
    wgmma_commit();
    // product.cpp:21
    wgmma_wait<0>();
    pin(sums_13);
    // product.cpp:22
    {
      const int c0 = lane / 4 + warp % 4 * 16;
      const int e0 = 64;
      const int c1 = lane % 4 * 2;
      const int e1 = 64;
      float* const first = C_2 + (i64)c0 * C_2_stride0 + (i64)c1;
      const bool aligned = (((u64)first | (u64)(C_2_stride0 * 4)) & 7) == 0;
      #pragma unroll
      for (int i = 0; i < 32; i += 2) {
        if (aligned && c0 + i / 2 % 2 * 8 < e0 && c1 + i % 2 + i / 4 * 8 + 2 <= e1) {
          store_vector_8(first + (i / 2 % 2 * 8) * C_2_stride0 + (i % 2 + i / 4 * 8), sums_13 + i);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 2; ++j) {
            if (c0 + j / 2 % 2 * 8 < e0 && c1 + j % 2 + j / 4 * 8 < e1) first[(j / 2 % 2 * 8) * C_2_stride0 + (j % 2 + j / 4 * 8)] = sums_13[j];
          }
        }
      }
    }
  }
  // product.cpp:12
  else if (warp >= 4) {
    decrease_registers<24>();
    if (warp == 4) {
      // load
      // product.cpp:13
      if (lane == 0) mbarrier_expect_tx(full_4, 16384);
      // product.cpp:14
      if (lane == 0) tma_load_2d(tiles_3, A_5, 0, 0, full_4);
      // product.cpp:15
      if (lane == 0) tma_load_2d(tiles_3 + 8192, B_6, 0, 0, full_4);
    }
  }
}
