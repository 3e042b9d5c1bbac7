// attention: 384 threads, 163968 bytes of shared memory.
#pragma nv_diag_suppress 177
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
struct alignas(64) TensorMap { u64 words[16]; };
// Of operands that are not negative.
__device__ __forceinline__ int unsigned_div(int a, int b) { return (int)((u32)a / (u32)b); }
__device__ __forceinline__ i64 unsigned_div(i64 a, i64 b) { return (i64)((u64)a / (u64)b); }
__device__ __forceinline__ int unsigned_mod(int a, int b) { return (int)((u32)a % (u32)b); }
__device__ __forceinline__ i64 unsigned_mod(i64 a, i64 b) { return (i64)((u64)a % (u64)b); }
// Of operands that are not negative. With inverse = min(2^31 / b, 2^31 - 1) the product falls
// short of a / b by one at most.
__device__ __forceinline__ int dim_div(int a, int b, int inverse) {
  const int q = (int)__umulhi(2u * (u32)a, (u32)inverse);
  return q + (int)(a - q * b >= b);
}
__device__ __forceinline__ int dim_mod(int a, int b, int inverse) {
  return a - dim_div(a, b, inverse) * b;
}
template <typename T>
__device__ __forceinline__ T minimum(T a, T b) {
  return a < b ? a : b;
}
__device__ __forceinline__ float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ float log2_approx(float x) {
  float y;
  asm("lg2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ float rcp_approx(float x) {
  float y;
  asm("rcp.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ u32 pack_bf16(float low, float high) {
  u32 r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
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
__device__ __forceinline__ void mbarrier_wait(u32 barrier, u32 parity) {
  asm volatile(
      "{ .reg .pred done;\n"
      "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@done bra end;\n"
      "bra again;\n"
      "end: }" ::"r"(barrier), "r"(parity) : "memory");
}
template <int kCount>
__device__ __forceinline__ void increase_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kCount));
}
template <int kCount>
__device__ __forceinline__ void decrease_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kCount));
}
__device__ __forceinline__ u32 word(u32 v) { return v; }
__device__ __forceinline__ u32 word(int v) { return (u32)v; }
__device__ __forceinline__ u32 word(float v) { return __float_as_uint(v); }
template <typename T>
__device__ __forceinline__ void store_vector_4(void* address, const T* r) {
  *(u32*)address = word(r[0]);
}
// The number, computed where it is used: kept over a loop, places would take the accumulators'
// registers.
__device__ __forceinline__ int here(int x) {
  asm volatile("" : "+r"(x));
  return x;
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
__device__ __forceinline__ void tma_load_4d_hint(u32 address, const TensorMap& map, int x0, int x1, int x2, int x3, u32 barrier, u64 policy) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, {%2, %3, %4, %5}], [%6], %7;"
               ::"r"(address), "l"(&map), "r"(x0), "r"(x1), "r"(x2), "r"(x3), "r"(barrier), "l"(policy) : "memory");
}
__device__ __forceinline__ void wgmma_rs_m64n128k16_bf16_tb(float* d, const u32* a, u64 b, bool accumulate) {
  asm volatile(
      "{ .reg .pred p;\n"
      "setp.ne.b32 p, %69, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, {%64, %65, %66, %67}, %68, p, 1, 1, 1; }"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"((int)accumulate));
}
__device__ __forceinline__ void wgmma_ss_m64n128k16_bf16(float* d, u64 a, u64 b, bool accumulate) {
  asm volatile(
      "{ .reg .pred p;\n"
      "setp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, %64, %65, p, 1, 1, 0, 0; }"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
      : "l"(a), "l"(b), "r"((int)accumulate));
}
extern "C" __device__ unsigned long long tilewright_form = 0x6aaa2dce96af92c5;
extern "C" __global__ void __launch_bounds__(384, 1)
attention(const __grid_constant__ TensorMap map_q_14, const __grid_constant__ TensorMap map_k_15, const __grid_constant__ TensorMap map_v_16, u16* O_3, i64 O_3_stride0, i64 O_3_stride1, i64 O_3_stride2, float* L_4, i64 L_4_stride0, i64 L_4_stride1, int dim0, int dim_queries, int dim_keys, int dim3, int dim4, float scale_5) {
  extern __shared__ __align__(1024) u8 dynamic_shared[];
  const u32 shared = (u32)__cvta_generic_to_shared(dynamic_shared);
  const int warp = __shfl_sync(0xffffffffu, (int)threadIdx.x / 32, 0);
  const int lane = (int)(threadIdx.x & 31u);
  // kernel.tw:14
  const u32 q_6 = shared + 0;
  // kernel.tw:15
  const u32 k_7 = shared + 32768;
  // kernel.tw:16
  const u32 v_8 = shared + 98304;
  // kernel.tw:17
  const u32 q_full_9 = shared + 163840;
  // kernel.tw:18
  const u32 k_full_10 = shared + 163848;
  // kernel.tw:19
  const u32 k_empty_11 = shared + 163864;
  // kernel.tw:20
  const u32 v_full_12 = shared + 163880;
  // kernel.tw:21
  const u32 v_empty_13 = shared + 163896;
  // kernel.tw:36
  const int v28 = (int)blockIdx.x;
  // kernel.tw:41
  const int v33 = dim_mod(v28, dim0, dim4);
  // kernel.tw:42
  const int v34 = v33 * 128;
  // kernel.tw:43
  const int v35 = dim_div(v28, dim0, dim4);
  // kernel.tw:44
  const int v36 = unsigned_mod(v35, 16);
  // kernel.tw:45
  const int v37 = unsigned_div(v35, 16);
  // kernel.tw:47
  if (threadIdx.x == 0) mbarrier_init(q_full_9, 1);
  // kernel.tw:48
  if (threadIdx.x == 0) for (int i = 0; i < 2; ++i) mbarrier_init(k_full_10 + 8 * i, 1);
  // kernel.tw:49
  if (threadIdx.x == 0) for (int i = 0; i < 2; ++i) mbarrier_init(k_empty_11 + 8 * i, 8);
  // kernel.tw:50
  if (threadIdx.x == 0) for (int i = 0; i < 2; ++i) mbarrier_init(v_full_12 + 8 * i, 1);
  // kernel.tw:51
  if (threadIdx.x == 0) for (int i = 0; i < 2; ++i) mbarrier_init(v_empty_13 + 8 * i, 8);
  // kernel.tw:52
  if (threadIdx.x == 0) fence_barrier_init();
  // kernel.tw:53
  __syncthreads();
  // kernel.tw:54
  if (warp < 4) {
    // load
    // kernel.tw:55
    decrease_registers<24>();
    // kernel.tw:56
    const int v40 = warp % 4;
    // kernel.tw:57
    const bool v41 = v40 == 0;
    // kernel.tw:58
    if (v41) {
      // kernel.tw:59
      if (lane == 0) {
        // kernel.tw:60
        mbarrier_expect_tx(q_full_9, 32768);
        // kernel.tw:61
        tma_load_4d_hint(q_6, map_q_14, 0, v36, v34, v37, q_full_9, 0x12f0000000000000ull);
        // kernel.tw:62
        tma_load_4d_hint(q_6 + 16384, map_q_14, 64, v36, v34, v37, q_full_9, 0x12f0000000000000ull);
        // kernel.tw:63
        int v42 = 0;
        int v43 = 1;
        #pragma unroll 1
        for (int v44 = 0; v44 < dim3; v44 += 1) {
          // kernel.tw:64
          const int v47 = v44 * 128;
          // kernel.tw:65
          const int v49 = v42 * 32768;
          // kernel.tw:66
          mbarrier_wait(k_empty_11 + 8 * v42, v43);
          // kernel.tw:67
          mbarrier_expect_tx(k_full_10 + 8 * v42, 32768);
          // kernel.tw:68
          tma_load_4d_hint(k_7 + v49, map_k_15, 0, v36, v47, v37, k_full_10 + 8 * v42, 0x14f0000000000000ull);
          // kernel.tw:69
          tma_load_4d_hint(k_7 + v49 + 16384, map_k_15, 64, v36, v47, v37, k_full_10 + 8 * v42, 0x14f0000000000000ull);
          // kernel.tw:70
          mbarrier_wait(v_empty_13 + 8 * v42, v43);
          // kernel.tw:71
          mbarrier_expect_tx(v_full_12 + 8 * v42, 32768);
          // kernel.tw:72
          tma_load_4d_hint(v_8 + v49, map_v_16, 0, v36, v47, v37, v_full_12 + 8 * v42, 0x14f0000000000000ull);
          // kernel.tw:73
          tma_load_4d_hint(v_8 + v49 + 16384, map_v_16, 64, v36, v47, v37, v_full_12 + 8 * v42, 0x14f0000000000000ull);
          // kernel.tw:76
          const int v52 = v42 + 1;
          // kernel.tw:78
          const bool v54 = v52 == 2;
          // kernel.tw:79
          const int v55 = 1 - v43;
          // kernel.tw:80
          const int v56 = v54 ? 0 : v52;
          // kernel.tw:81
          const int v57 = v54 ? v55 : v43;
          // kernel.tw:82
          v42 = v56;
          v43 = v57;
        }
      }
    }
  }
  // kernel.tw:92
  else if (warp >= 4) {
    // math
    const int v58 = (warp - 4) / 4;
    // kernel.tw:93
    increase_registers<240>();
    // kernel.tw:94
    float s_59[64];
    // kernel.tw:95
    float o_60[64];
    // kernel.tw:96
    u32 p_61[32];
    // kernel.tw:97
    float highest_62[2];
    // kernel.tw:98
    float before_63[2];
    // kernel.tw:99
    float rescale_64[2];
    // kernel.tw:100
    float sum_65[2];
    // kernel.tw:101
    float shift_66[2];
    // kernel.tw:102
    float part_67[2];
    // kernel.tw:103
    int column_68[64];
    // kernel.tw:104
    bool visible_69[64];
    // kernel.tw:105
    u32 rounded_70[32];
    // kernel.tw:106
    const int v71 = v58 * 64;
    // kernel.tw:107
    #pragma unroll
    for (int i = 0; i < 64; ++i)
      o_60[i] = 0.0f;
    // kernel.tw:108
    #pragma unroll
    for (int i = 0; i < 2; ++i)
      sum_65[i] = 0.0f;
    // kernel.tw:109
    #pragma unroll
    for (int i = 0; i < 2; ++i)
      highest_62[i] = __int_as_float(0xff800000);
    // kernel.tw:110
    mbarrier_wait(q_full_9, 0);
    // kernel.tw:111
    const int v72 = 1 - v58;
    // kernel.tw:112
    const bool v73 = v58 == 1;
    // kernel.tw:113
    if (v73) {
      // kernel.tw:114
      named_arrive_1_to_2_of_256(v72);
    }
    // kernel.tw:119
    mbarrier_wait(k_full_10, 0);
    // kernel.tw:120
    pin(s_59);
    wgmma_fence();
    // kernel.tw:122
    const int v75 = v58 * 8192;
    // kernel.tw:124
    const int v77 = 0 * 32768;
    // kernel.tw:125
    wgmma_ss_m64n128k16_bf16(s_59, descriptor(0x40000040, 0x10000, q_6 + v75), descriptor(0x40000040, 0x10000, k_7 + v77), false);
    // kernel.tw:126
    wgmma_ss_m64n128k16_bf16(s_59, descriptor(0x40000040, 0x10000, q_6 + v75) + 2, descriptor(0x40000040, 0x10000, k_7 + v77) + 2, true);
    // kernel.tw:127
    wgmma_ss_m64n128k16_bf16(s_59, descriptor(0x40000040, 0x10000, q_6 + v75) + 4, descriptor(0x40000040, 0x10000, k_7 + v77) + 4, true);
    // kernel.tw:128
    wgmma_ss_m64n128k16_bf16(s_59, descriptor(0x40000040, 0x10000, q_6 + v75) + 6, descriptor(0x40000040, 0x10000, k_7 + v77) + 6, true);
    // kernel.tw:129
    wgmma_ss_m64n128k16_bf16(s_59, descriptor(0x40000040, 0x10000, q_6 + v75) + 1024, descriptor(0x40000040, 0x10000, k_7 + v77) + 1024, true);
    // kernel.tw:130
    wgmma_ss_m64n128k16_bf16(s_59, descriptor(0x40000040, 0x10000, q_6 + v75) + 1026, descriptor(0x40000040, 0x10000, k_7 + v77) + 1026, true);
    // kernel.tw:131
    wgmma_ss_m64n128k16_bf16(s_59, descriptor(0x40000040, 0x10000, q_6 + v75) + 1028, descriptor(0x40000040, 0x10000, k_7 + v77) + 1028, true);
    // kernel.tw:132
    wgmma_ss_m64n128k16_bf16(s_59, descriptor(0x40000040, 0x10000, q_6 + v75) + 1030, descriptor(0x40000040, 0x10000, k_7 + v77) + 1030, true);
    // kernel.tw:133
    wgmma_commit();
    // kernel.tw:134
    wgmma_wait<0>();
    pin(s_59);
    // kernel.tw:135
    if (lane == 0) mbarrier_arrive(k_empty_11);
    // kernel.tw:136
    #pragma unroll
    for (int i = 0; i < 64; ++i)
      column_68[i] = i % 2 + i / 4 * 8 + lane % 4 * 2;
    // kernel.tw:137
    #pragma unroll
    for (int i = 0; i < 64; ++i)
      visible_69[i] = column_68[i] < dim_keys;
    // kernel.tw:138
    #pragma unroll
    for (int i = 0; i < 64; ++i)
      s_59[i] = visible_69[i] ? s_59[i] : __int_as_float(0xff800000);
    // kernel.tw:139
    #pragma unroll
    for (int i = 0; i < 2; ++i) before_63[i] = highest_62[i];
    // kernel.tw:140
    {
      float sums[2];
      #pragma unroll
      for (int i = 63; i >= 0; --i) sums[i / 2 % 2] = s_59[i];
      #pragma unroll
      for (int i = 0; i < 64; ++i) sums[i / 2 % 2] = fmaxf(sums[i / 2 % 2], s_59[i]);
      #pragma unroll
      for (int i = 0; i < 2; ++i)
        highest_62[i] = sums[i];
    }
    // kernel.tw:141
    #pragma unroll
    for (int i = 0; i < 2; ++i)
      highest_62[i] = fmaxf(highest_62[i], __shfl_xor_sync(0xffffffffu, highest_62[i], 1));
    #pragma unroll
    for (int i = 0; i < 2; ++i)
      highest_62[i] = fmaxf(highest_62[i], __shfl_xor_sync(0xffffffffu, highest_62[i], 2));
    // kernel.tw:142
    #pragma unroll
    for (int i = 0; i < 2; ++i)
      highest_62[i] = fmaxf(highest_62[i], before_63[i]);
    // kernel.tw:143
    #pragma unroll
    for (int i = 0; i < 2; ++i)
      rescale_64[i] = before_63[i] - highest_62[i];
    // kernel.tw:144
    #pragma unroll
    for (int i = 0; i < 2; ++i)
      rescale_64[i] = rescale_64[i] * scale_5;
    // kernel.tw:145
    #pragma unroll
    for (int i = 0; i < 2; ++i)
      rescale_64[i] = exp2_approx(rescale_64[i]);
    // kernel.tw:146
    #pragma unroll
    for (int i = 0; i < 2; ++i)
      shift_66[i] = highest_62[i] * scale_5;
    // kernel.tw:147
    #pragma unroll
    for (int i = 0; i < 2; ++i)
      shift_66[i] = -shift_66[i];
    // kernel.tw:148
    #pragma unroll
    for (int i = 0; i < 64; ++i)
      s_59[i] = __fmaf_rn(s_59[i], scale_5, shift_66[i / 2 % 2]);
    // kernel.tw:149
    #pragma unroll
    for (int i = 0; i < 64; ++i)
      s_59[i] = exp2_approx(s_59[i]);
    // kernel.tw:150
    #pragma unroll
    for (int i = 0; i < 2; ++i)
      sum_65[i] = sum_65[i] * rescale_64[i];
    // kernel.tw:151
    {
      float sums[2];
      #pragma unroll
      for (int i = 0; i < 2; ++i) sums[i] = -0.0f;
      #pragma unroll
      for (int i = 0; i < 64; ++i) sums[i / 2 % 2] = sums[i / 2 % 2] + s_59[i];
      #pragma unroll
      for (int i = 0; i < 2; ++i)
        part_67[i] = sums[i];
    }
    // kernel.tw:152
    #pragma unroll
    for (int i = 0; i < 2; ++i)
      sum_65[i] = sum_65[i] + part_67[i];
    // kernel.tw:153
    #pragma unroll
    for (int i = 0; i < 64; i += 2)
      p_61[i / 2] = pack_bf16(s_59[i], s_59[i + 1]);
    // kernel.tw:154
    int v78 = 1;
    int v79 = 0;
    int v80 = 0;
    int v81 = 0;
    #pragma unroll 1
    for (int v82 = 1; v82 < dim3; v82 += 1) {
      // kernel.tw:155
      mbarrier_wait(k_full_10 + 8 * v78, v79);
      // kernel.tw:156
      named_sync_1_to_2_of_256(v58);
      // kernel.tw:157
      pin(s_59);
      wgmma_fence();
      // kernel.tw:159
      const int v88 = v78 * 32768;
      // kernel.tw:160
      wgmma_ss_m64n128k16_bf16(s_59, descriptor(0x40000040, 0x10000, q_6 + v75), descriptor(0x40000040, 0x10000, k_7 + v88), false);
      // kernel.tw:161
      wgmma_ss_m64n128k16_bf16(s_59, descriptor(0x40000040, 0x10000, q_6 + v75) + 2, descriptor(0x40000040, 0x10000, k_7 + v88) + 2, true);
      // kernel.tw:162
      wgmma_ss_m64n128k16_bf16(s_59, descriptor(0x40000040, 0x10000, q_6 + v75) + 4, descriptor(0x40000040, 0x10000, k_7 + v88) + 4, true);
      // kernel.tw:163
      wgmma_ss_m64n128k16_bf16(s_59, descriptor(0x40000040, 0x10000, q_6 + v75) + 6, descriptor(0x40000040, 0x10000, k_7 + v88) + 6, true);
      // kernel.tw:164
      wgmma_ss_m64n128k16_bf16(s_59, descriptor(0x40000040, 0x10000, q_6 + v75) + 1024, descriptor(0x40000040, 0x10000, k_7 + v88) + 1024, true);
      // kernel.tw:165
      wgmma_ss_m64n128k16_bf16(s_59, descriptor(0x40000040, 0x10000, q_6 + v75) + 1026, descriptor(0x40000040, 0x10000, k_7 + v88) + 1026, true);
      // kernel.tw:166
      wgmma_ss_m64n128k16_bf16(s_59, descriptor(0x40000040, 0x10000, q_6 + v75) + 1028, descriptor(0x40000040, 0x10000, k_7 + v88) + 1028, true);
      // kernel.tw:167
      wgmma_ss_m64n128k16_bf16(s_59, descriptor(0x40000040, 0x10000, q_6 + v75) + 1030, descriptor(0x40000040, 0x10000, k_7 + v88) + 1030, true);
      // kernel.tw:168
      wgmma_commit();
      // kernel.tw:169
      mbarrier_wait(v_full_12 + 8 * v80, v81);
      // kernel.tw:170
      pin(o_60);
      pin(p_61);
      wgmma_fence();
      // kernel.tw:172
      const int v90 = v80 * 32768;
      // kernel.tw:173
      wgmma_rs_m64n128k16_bf16_tb(o_60, p_61 + 0, descriptor(0x40000040, 0x4000000, v_8 + v90), true);
      // kernel.tw:174
      wgmma_rs_m64n128k16_bf16_tb(o_60, p_61 + 4, descriptor(0x40000040, 0x4000000, v_8 + v90) + 128, true);
      // kernel.tw:175
      wgmma_rs_m64n128k16_bf16_tb(o_60, p_61 + 8, descriptor(0x40000040, 0x4000000, v_8 + v90) + 256, true);
      // kernel.tw:176
      wgmma_rs_m64n128k16_bf16_tb(o_60, p_61 + 12, descriptor(0x40000040, 0x4000000, v_8 + v90) + 384, true);
      // kernel.tw:177
      wgmma_rs_m64n128k16_bf16_tb(o_60, p_61 + 16, descriptor(0x40000040, 0x4000000, v_8 + v90) + 512, true);
      // kernel.tw:178
      wgmma_rs_m64n128k16_bf16_tb(o_60, p_61 + 20, descriptor(0x40000040, 0x4000000, v_8 + v90) + 640, true);
      // kernel.tw:179
      wgmma_rs_m64n128k16_bf16_tb(o_60, p_61 + 24, descriptor(0x40000040, 0x4000000, v_8 + v90) + 768, true);
      // kernel.tw:180
      wgmma_rs_m64n128k16_bf16_tb(o_60, p_61 + 28, descriptor(0x40000040, 0x4000000, v_8 + v90) + 896, true);
      // kernel.tw:181
      wgmma_commit();
      // kernel.tw:182
      named_arrive_1_to_2_of_256(v72);
      // kernel.tw:183
      wgmma_wait<1>();
      pin(s_59);
      // kernel.tw:184
      if (lane == 0) mbarrier_arrive(k_empty_11 + 8 * v78);
      // kernel.tw:185
      #pragma unroll
      for (int i = 0; i < 2; ++i) before_63[i] = highest_62[i];
      // kernel.tw:186
      {
        float sums[2];
        #pragma unroll
        for (int i = 63; i >= 0; --i) sums[i / 2 % 2] = s_59[i];
        #pragma unroll
        for (int i = 0; i < 64; ++i) sums[i / 2 % 2] = fmaxf(sums[i / 2 % 2], s_59[i]);
        #pragma unroll
        for (int i = 0; i < 2; ++i)
          highest_62[i] = sums[i];
      }
      // kernel.tw:187
      #pragma unroll
      for (int i = 0; i < 2; ++i)
        highest_62[i] = fmaxf(highest_62[i], __shfl_xor_sync(0xffffffffu, highest_62[i], 1));
      #pragma unroll
      for (int i = 0; i < 2; ++i)
        highest_62[i] = fmaxf(highest_62[i], __shfl_xor_sync(0xffffffffu, highest_62[i], 2));
      // kernel.tw:188
      #pragma unroll
      for (int i = 0; i < 2; ++i)
        highest_62[i] = fmaxf(highest_62[i], before_63[i]);
      // kernel.tw:189
      #pragma unroll
      for (int i = 0; i < 2; ++i)
        rescale_64[i] = before_63[i] - highest_62[i];
      // kernel.tw:190
      #pragma unroll
      for (int i = 0; i < 2; ++i)
        rescale_64[i] = rescale_64[i] * scale_5;
      // kernel.tw:191
      #pragma unroll
      for (int i = 0; i < 2; ++i)
        rescale_64[i] = exp2_approx(rescale_64[i]);
      // kernel.tw:192
      #pragma unroll
      for (int i = 0; i < 2; ++i)
        shift_66[i] = highest_62[i] * scale_5;
      // kernel.tw:193
      #pragma unroll
      for (int i = 0; i < 2; ++i)
        shift_66[i] = -shift_66[i];
      // kernel.tw:194
      #pragma unroll
      for (int i = 0; i < 64; ++i)
        s_59[i] = __fmaf_rn(s_59[i], scale_5, shift_66[i / 2 % 2]);
      // kernel.tw:195
      #pragma unroll
      for (int i = 0; i < 64; ++i)
        s_59[i] = exp2_approx(s_59[i]);
      // kernel.tw:196
      #pragma unroll
      for (int i = 0; i < 2; ++i)
        sum_65[i] = sum_65[i] * rescale_64[i];
      // kernel.tw:197
      {
        float sums[2];
        #pragma unroll
        for (int i = 0; i < 2; ++i) sums[i] = -0.0f;
        #pragma unroll
        for (int i = 0; i < 64; ++i) sums[i / 2 % 2] = sums[i / 2 % 2] + s_59[i];
        #pragma unroll
        for (int i = 0; i < 2; ++i)
          part_67[i] = sums[i];
      }
      // kernel.tw:198
      #pragma unroll
      for (int i = 0; i < 2; ++i)
        sum_65[i] = sum_65[i] + part_67[i];
      // kernel.tw:199
      wgmma_wait<0>();
      pin(o_60);
      pin(p_61);
      // kernel.tw:200
      if (lane == 0) mbarrier_arrive(v_empty_13 + 8 * v80);
      // kernel.tw:201
      #pragma unroll
      for (int i = 0; i < 64; i += 2)
        p_61[i / 2] = pack_bf16(s_59[i], s_59[i + 1]);
      // kernel.tw:202
      #pragma unroll
      for (int i = 0; i < 64; ++i)
        o_60[i] = o_60[i] * rescale_64[i / 2 % 2];
      // kernel.tw:205
      const int v93 = v78 + 1;
      // kernel.tw:207
      const bool v95 = v93 == 2;
      // kernel.tw:208
      const int v96 = 1 - v79;
      // kernel.tw:209
      const int v97 = v95 ? 0 : v93;
      // kernel.tw:210
      const int v98 = v95 ? v96 : v79;
      // kernel.tw:213
      const int v101 = v80 + 1;
      // kernel.tw:215
      const bool v103 = v101 == 2;
      // kernel.tw:216
      const int v104 = 1 - v81;
      // kernel.tw:217
      const int v105 = v103 ? 0 : v101;
      // kernel.tw:218
      const int v106 = v103 ? v104 : v81;
      // kernel.tw:219
      v78 = v97;
      v79 = v98;
      v80 = v105;
      v81 = v106;
    }
    // kernel.tw:221
    mbarrier_wait(v_full_12 + 8 * v80, v81);
    // kernel.tw:222
    pin(o_60);
    pin(p_61);
    wgmma_fence();
    // kernel.tw:224
    const int v108 = v80 * 32768;
    // kernel.tw:225
    wgmma_rs_m64n128k16_bf16_tb(o_60, p_61 + 0, descriptor(0x40000040, 0x4000000, v_8 + v108), true);
    // kernel.tw:226
    wgmma_rs_m64n128k16_bf16_tb(o_60, p_61 + 4, descriptor(0x40000040, 0x4000000, v_8 + v108) + 128, true);
    // kernel.tw:227
    wgmma_rs_m64n128k16_bf16_tb(o_60, p_61 + 8, descriptor(0x40000040, 0x4000000, v_8 + v108) + 256, true);
    // kernel.tw:228
    wgmma_rs_m64n128k16_bf16_tb(o_60, p_61 + 12, descriptor(0x40000040, 0x4000000, v_8 + v108) + 384, true);
    // kernel.tw:229
    wgmma_rs_m64n128k16_bf16_tb(o_60, p_61 + 16, descriptor(0x40000040, 0x4000000, v_8 + v108) + 512, true);
    // kernel.tw:230
    wgmma_rs_m64n128k16_bf16_tb(o_60, p_61 + 20, descriptor(0x40000040, 0x4000000, v_8 + v108) + 640, true);
    // kernel.tw:231
    wgmma_rs_m64n128k16_bf16_tb(o_60, p_61 + 24, descriptor(0x40000040, 0x4000000, v_8 + v108) + 768, true);
    // kernel.tw:232
    wgmma_rs_m64n128k16_bf16_tb(o_60, p_61 + 28, descriptor(0x40000040, 0x4000000, v_8 + v108) + 896, true);
    // kernel.tw:233
    wgmma_commit();
    // kernel.tw:234
    #pragma unroll
    for (int i = 0; i < 2; ++i)
      sum_65[i] = sum_65[i] + __shfl_xor_sync(0xffffffffu, sum_65[i], 1);
    #pragma unroll
    for (int i = 0; i < 2; ++i)
      sum_65[i] = sum_65[i] + __shfl_xor_sync(0xffffffffu, sum_65[i], 2);
    // kernel.tw:235
    #pragma unroll
    for (int i = 0; i < 2; ++i)
      rescale_64[i] = rcp_approx(sum_65[i]);
    // kernel.tw:236
    wgmma_wait<0>();
    pin(o_60);
    pin(p_61);
    // kernel.tw:237
    if (lane == 0) mbarrier_arrive(v_empty_13 + 8 * v80);
    // kernel.tw:238
    const bool v109 = v58 == 0;
    // kernel.tw:239
    if (v109) {
      // kernel.tw:240
      named_sync_1_to_2_of_256(v58);
    }
    // kernel.tw:245
    #pragma unroll
    for (int i = 0; i < 64; ++i)
      o_60[i] = o_60[i] * rescale_64[i / 2 % 2];
    // kernel.tw:246
    #pragma unroll
    for (int i = 0; i < 64; i += 2)
      rounded_70[i / 2] = pack_bf16(o_60[i], o_60[i + 1]);
    // kernel.tw:247
    #pragma unroll
    for (int i = 0; i < 2; ++i)
      sum_65[i] = log2_approx(sum_65[i]);
    // kernel.tw:248
    #pragma unroll
    for (int i = 0; i < 2; ++i)
      sum_65[i] = __fmaf_rn(highest_62[i], scale_5, sum_65[i]);
    // kernel.tw:249
    #pragma unroll
    for (int i = 0; i < 2; ++i)
      sum_65[i] = sum_65[i] * 0.6931472f;
    // kernel.tw:250
    const int v110 = v34 + v71;
    // kernel.tw:251
    const int v111 = v37 + 1;
    // kernel.tw:252
    const int v112 = v36 + 1;
    // kernel.tw:253
    {
      const int c0 = v37;
      const int e0 = minimum(v111, 4);
      const int c1 = v110 + lane / 4 + warp % 4 * 16;
      const int e1 = dim_queries;
      const int c2 = v36;
      const int e2 = minimum(v112, 16);
      const int c3 = lane % 4 * 2;
      const int e3 = 128;
      u16* const first = O_3 + (i64)c0 * O_3_stride0 + (i64)c1 * O_3_stride1 + (i64)c2 * O_3_stride2 + (i64)c3;
      const bool aligned = (((u64)first | (u64)(O_3_stride1 * 2)) & 3) == 0;
      #pragma unroll
      for (int i = 0; i < 64; i += 2) {
        if (aligned && c0 < e0 && c1 + i / 2 % 2 * 8 < e1 && c2 < e2 && c3 + i % 2 + i / 4 * 8 + 2 <= e3) {
          store_vector_4(first + (i / 2 % 2 * 8) * O_3_stride1 + (i % 2 + i / 4 * 8), rounded_70 + i / 2);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 2; ++j) {
            if (c0 < e0 && c1 + j / 2 % 2 * 8 < e1 && c2 < e2 && c3 + j % 2 + j / 4 * 8 < e3) first[(j / 2 % 2 * 8) * O_3_stride1 + (j % 2 + j / 4 * 8)] = (u16)(rounded_70[(j) / 2] >> (j) % 2 * 16);
          }
        }
      }
    }
    // kernel.tw:254
    if (lane % 4 == 0) {
      const int c0 = here(v37);
      const int e0 = minimum(v111, 4);
      const int c1 = here(v36);
      const int e1 = minimum(v112, 16);
      const int c2 = here(v110 + lane / 4 + warp % 4 * 16);
      const int e2 = dim_queries;
      float* const first = L_4 + (i64)c0 * L_4_stride0 + (i64)c1 * L_4_stride1 + (i64)c2;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 < e1 && c2 + i * 8 < e2) first[(i * 8)] = sum_65[i];
      }
    }
  }
}
