// gemm: 384 threads, 230464 bytes of shared memory.
#pragma nv_diag_suppress 177
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
struct alignas(64) TensorMap { u64 words[16]; };
// Of operands that are not negative. With inverse = min(2^31 / b, 2^31 - 1) the product falls
// short of a / b by one at most.
__device__ __forceinline__ int dim_div(int a, int b, int inverse) {
  const int q = (int)__umulhi(2u * (u32)a, (u32)inverse);
  return q + (int)(a - q * b >= b);
}
__device__ __forceinline__ int dim_mod(int a, int b, int inverse) {
  return a - dim_div(a, b, inverse) * b;
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
__device__ __forceinline__ void fence_proxy_async() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
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
__device__ __forceinline__ void stmatrix_x4(u32 address, const u32* r) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared::cta.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(r[0]),
               "r"(r[1]), "r"(r[2]), "r"(r[3]) : "memory");
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
__device__ __forceinline__ void tma_load_2d(u32 address, const TensorMap& map, int x0, int x1, u32 barrier) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
               ::"r"(address), "l"(&map), "r"(x0), "r"(x1), "r"(barrier) : "memory");
}
__device__ __forceinline__ void tma_store_2d(u32 address, const TensorMap& map, int x0, int x1) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%1, {%2, %3}], [%0];"
               ::"r"(address), "l"(&map), "r"(x0), "r"(x1) : "memory");
}
__device__ __forceinline__ void wgmma_ss_m64n256k16_bf16(float* d, u64 a, u64 b, bool accumulate) {
  asm volatile(
      "{ .reg .pred p;\n"
      "setp.ne.b32 p, %130, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, %128, %129, p, 1, 1, 0, 0; }"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63]), "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67]), "+f"(d[68]), "+f"(d[69]), "+f"(d[70]), "+f"(d[71]), "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]), "+f"(d[76]), "+f"(d[77]), "+f"(d[78]), "+f"(d[79]), "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83]), "+f"(d[84]), "+f"(d[85]), "+f"(d[86]), "+f"(d[87]), "+f"(d[88]), "+f"(d[89]), "+f"(d[90]), "+f"(d[91]), "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), "+f"(d[95]), "+f"(d[96]), "+f"(d[97]), "+f"(d[98]), "+f"(d[99]), "+f"(d[100]), "+f"(d[101]), "+f"(d[102]), "+f"(d[103]), "+f"(d[104]), "+f"(d[105]), "+f"(d[106]), "+f"(d[107]), "+f"(d[108]), "+f"(d[109]), "+f"(d[110]), "+f"(d[111]), "+f"(d[112]), "+f"(d[113]), "+f"(d[114]), "+f"(d[115]), "+f"(d[116]), "+f"(d[117]), "+f"(d[118]), "+f"(d[119]), "+f"(d[120]), "+f"(d[121]), "+f"(d[122]), "+f"(d[123]), "+f"(d[124]), "+f"(d[125]), "+f"(d[126]), "+f"(d[127])
      : "l"(a), "l"(b), "r"((int)accumulate));
}
extern "C" __device__ unsigned long long tilewright_form = 0x9b89ca8034382114;
extern "C" __global__ void __launch_bounds__(384, 1)
gemm(const __grid_constant__ TensorMap map_a_8, const __grid_constant__ TensorMap map_b_9, const __grid_constant__ TensorMap map_c_10, int dim0, int dim1, int dim2, int dim3) {
  extern __shared__ __align__(1024) u8 dynamic_shared[];
  const u32 shared = (u32)__cvta_generic_to_shared(dynamic_shared);
  const int warp = __shfl_sync(0xffffffffu, (int)threadIdx.x / 32, 0);
  const int lane = (int)(threadIdx.x & 31u);
  // kernel.tw:12
  const u32 a_3 = shared + 0;
  // kernel.tw:13
  const u32 b_4 = shared + 65536;
  // kernel.tw:14
  const u32 c_5 = shared + 196608;
  // kernel.tw:15
  const u32 full_6 = shared + 229376;
  // kernel.tw:16
  const u32 empty_7 = shared + 229408;
  // kernel.tw:27
  const int v18 = (int)blockIdx.x;
  // kernel.tw:28
  const int v19 = (int)gridDim.x;
  // kernel.tw:31
  if (threadIdx.x == 0) for (int i = 0; i < 4; ++i) mbarrier_init(full_6 + 8 * i, 1);
  // kernel.tw:32
  if (threadIdx.x == 0) for (int i = 0; i < 4; ++i) mbarrier_init(empty_7 + 8 * i, 8);
  // kernel.tw:33
  if (threadIdx.x == 0) fence_barrier_init();
  // kernel.tw:34
  __syncthreads();
  // kernel.tw:35
  if (warp < 4) {
    // load
    // kernel.tw:36
    decrease_registers<40>();
    // kernel.tw:37
    const int v23 = warp % 4;
    // kernel.tw:38
    const bool v24 = v23 == 0;
    // kernel.tw:39
    if (v24) {
      // kernel.tw:40
      if (lane == 0) {
        // kernel.tw:41
        int v25 = 0;
        int v26 = 1;
        #pragma unroll 1
        for (int v27 = v18; v27 < dim1; v27 += v19) {
          // kernel.tw:42
          const int v30 = dim_mod(v27, dim0, dim3);
          // kernel.tw:43
          const int v31 = v30 * 128;
          // kernel.tw:44
          const int v32 = dim_div(v27, dim0, dim3);
          // kernel.tw:45
          const int v33 = v32 * 256;
          // kernel.tw:46
          int v34 = v25;
          int v35 = v26;
          #pragma unroll 1
          for (int v36 = 0; v36 < dim2; v36 += 1) {
            // kernel.tw:47
            const int v39 = v36 * 64;
            // kernel.tw:48
            mbarrier_wait(empty_7 + 8 * v34, v35);
            // kernel.tw:49
            mbarrier_expect_tx(full_6 + 8 * v34, 49152);
            // kernel.tw:51
            const int v41 = v34 * 16384;
            // kernel.tw:53
            const int v43 = v34 * 32768;
            // kernel.tw:54
            tma_load_2d(a_3 + v41, map_a_8, v39, v31, full_6 + 8 * v34);
            // kernel.tw:55
            tma_load_2d(b_4 + v43, map_b_9, v39, v33, full_6 + 8 * v34);
            // kernel.tw:58
            const int v46 = v34 + 1;
            // kernel.tw:60
            const bool v48 = v46 == 4;
            // kernel.tw:61
            const int v49 = 1 - v35;
            // kernel.tw:62
            const int v50 = v48 ? 0 : v46;
            // kernel.tw:63
            const int v51 = v48 ? v49 : v35;
            // kernel.tw:64
            v34 = v50;
            v35 = v51;
          }
          // kernel.tw:66
          v25 = v34;
          v26 = v35;
        }
      }
    }
  }
  // kernel.tw:77
  else if (warp >= 4) {
    // math
    const int v52 = (warp - 4) / 4;
    // kernel.tw:78
    increase_registers<232>();
    // kernel.tw:79
    float sums_53[128];
    // kernel.tw:80
    u32 rounded_54[64];
    // kernel.tw:81
    const int v55 = warp % 4;
    // kernel.tw:82
    int v56 = 0;
    int v57 = 0;
    #pragma unroll 1
    for (int v58 = v18; v58 < dim1; v58 += v19) {
      // kernel.tw:83
      const int v61 = dim_mod(v58, dim0, dim3);
      // kernel.tw:84
      const int v62 = v61 * 128;
      // kernel.tw:85
      const int v63 = dim_div(v58, dim0, dim3);
      // kernel.tw:86
      const int v64 = v63 * 256;
      // kernel.tw:87
      int v65 = v56;
      int v66 = v57;
      int v67 = 0;
      #pragma unroll 1
      for (int v68 = 0; v68 < dim2; v68 += 1) {
        // kernel.tw:88
        mbarrier_wait(full_6 + 8 * v65, v66);
        // kernel.tw:89
        pin(sums_53);
        wgmma_fence();
        // kernel.tw:91
        const int v73 = v65 * 16384;
        // kernel.tw:93
        const int v75 = v52 * 8192;
        // kernel.tw:94
        const int v76 = v73 + v75;
        // kernel.tw:96
        const int v78 = v65 * 32768;
        // kernel.tw:97
        const bool v79 = 0 < v68;
        // kernel.tw:98
        wgmma_ss_m64n256k16_bf16(sums_53, descriptor(0x40000040, 0x10000, a_3 + v76), descriptor(0x40000040, 0x10000, b_4 + v78), v79);
        // kernel.tw:99
        wgmma_ss_m64n256k16_bf16(sums_53, descriptor(0x40000040, 0x10000, a_3 + v76) + 2, descriptor(0x40000040, 0x10000, b_4 + v78) + 2, true);
        // kernel.tw:100
        wgmma_ss_m64n256k16_bf16(sums_53, descriptor(0x40000040, 0x10000, a_3 + v76) + 4, descriptor(0x40000040, 0x10000, b_4 + v78) + 4, true);
        // kernel.tw:101
        wgmma_ss_m64n256k16_bf16(sums_53, descriptor(0x40000040, 0x10000, a_3 + v76) + 6, descriptor(0x40000040, 0x10000, b_4 + v78) + 6, true);
        // kernel.tw:102
        wgmma_commit();
        // kernel.tw:103
        wgmma_wait<1>();
        // kernel.tw:104
        if (v79) {
          // kernel.tw:105
          if (lane == 0) mbarrier_arrive(empty_7 + 8 * v67);
        }
        // kernel.tw:113
        const int v82 = v65 + 1;
        // kernel.tw:115
        const bool v84 = v82 == 4;
        // kernel.tw:116
        const int v85 = 1 - v66;
        // kernel.tw:117
        const int v86 = v84 ? 0 : v82;
        // kernel.tw:118
        const int v87 = v84 ? v85 : v66;
        // kernel.tw:119
        const int next_v67 = v65;
        v65 = v86;
        v66 = v87;
        v67 = next_v67;
      }
      // kernel.tw:121
      wgmma_wait<0>();
      pin(sums_53);
      // kernel.tw:122
      if (lane == 0) mbarrier_arrive(empty_7 + 8 * v67);
      // kernel.tw:123
      #pragma unroll
      for (int i = 0; i < 128; i += 2)
        rounded_54[i / 2] = pack_bf16(sums_53[i], sums_53[i + 1]);
      // kernel.tw:125
      const int v89 = v52 * 4;
      // kernel.tw:126
      const int v90 = v89 + v55;
      // kernel.tw:128
      const int v92 = v90 * 2048;
      // kernel.tw:130
      const int v94 = v90 * 16;
      // kernel.tw:131
      const int v95 = v62 + v94;
      // kernel.tw:132
      if (lane == 0) bulk_wait_read<0>();
      // kernel.tw:133
      {
        const int row = here(lane % 16);
        stmatrix_x4(c_5 + v92 + row * 128 + ((lane / 16) ^ (row & 7)) * 16, rounded_54 + 0);
      }
      // kernel.tw:134
      {
        const int row = here(lane % 16);
        stmatrix_x4(c_5 + v92 + row * 128 + ((2 + lane / 16) ^ (row & 7)) * 16, rounded_54 + 4);
      }
      // kernel.tw:135
      {
        const int row = here(lane % 16);
        stmatrix_x4(c_5 + v92 + row * 128 + ((4 + lane / 16) ^ (row & 7)) * 16, rounded_54 + 8);
      }
      // kernel.tw:136
      {
        const int row = here(lane % 16);
        stmatrix_x4(c_5 + v92 + row * 128 + ((6 + lane / 16) ^ (row & 7)) * 16, rounded_54 + 12);
      }
      // kernel.tw:137
      fence_proxy_async();
      // kernel.tw:139
      const int v97 = v64 + 0;
      // kernel.tw:140
      if (lane == 0) tma_store_2d(c_5 + v92, map_c_10, v97, v95);
      // kernel.tw:141
      if (lane == 0) bulk_commit();
      // kernel.tw:142
      if (lane == 0) bulk_wait_read<0>();
      // kernel.tw:143
      {
        const int row = here(lane % 16);
        stmatrix_x4(c_5 + v92 + row * 128 + ((lane / 16) ^ (row & 7)) * 16, rounded_54 + 16);
      }
      // kernel.tw:144
      {
        const int row = here(lane % 16);
        stmatrix_x4(c_5 + v92 + row * 128 + ((2 + lane / 16) ^ (row & 7)) * 16, rounded_54 + 20);
      }
      // kernel.tw:145
      {
        const int row = here(lane % 16);
        stmatrix_x4(c_5 + v92 + row * 128 + ((4 + lane / 16) ^ (row & 7)) * 16, rounded_54 + 24);
      }
      // kernel.tw:146
      {
        const int row = here(lane % 16);
        stmatrix_x4(c_5 + v92 + row * 128 + ((6 + lane / 16) ^ (row & 7)) * 16, rounded_54 + 28);
      }
      // kernel.tw:147
      fence_proxy_async();
      // kernel.tw:149
      const int v99 = v64 + 64;
      // kernel.tw:150
      if (lane == 0) tma_store_2d(c_5 + v92, map_c_10, v99, v95);
      // kernel.tw:151
      if (lane == 0) bulk_commit();
      // kernel.tw:152
      if (lane == 0) bulk_wait_read<0>();
      // kernel.tw:153
      {
        const int row = here(lane % 16);
        stmatrix_x4(c_5 + v92 + row * 128 + ((lane / 16) ^ (row & 7)) * 16, rounded_54 + 32);
      }
      // kernel.tw:154
      {
        const int row = here(lane % 16);
        stmatrix_x4(c_5 + v92 + row * 128 + ((2 + lane / 16) ^ (row & 7)) * 16, rounded_54 + 36);
      }
      // kernel.tw:155
      {
        const int row = here(lane % 16);
        stmatrix_x4(c_5 + v92 + row * 128 + ((4 + lane / 16) ^ (row & 7)) * 16, rounded_54 + 40);
      }
      // kernel.tw:156
      {
        const int row = here(lane % 16);
        stmatrix_x4(c_5 + v92 + row * 128 + ((6 + lane / 16) ^ (row & 7)) * 16, rounded_54 + 44);
      }
      // kernel.tw:157
      fence_proxy_async();
      // kernel.tw:159
      const int v101 = v64 + 128;
      // kernel.tw:160
      if (lane == 0) tma_store_2d(c_5 + v92, map_c_10, v101, v95);
      // kernel.tw:161
      if (lane == 0) bulk_commit();
      // kernel.tw:162
      if (lane == 0) bulk_wait_read<0>();
      // kernel.tw:163
      {
        const int row = here(lane % 16);
        stmatrix_x4(c_5 + v92 + row * 128 + ((lane / 16) ^ (row & 7)) * 16, rounded_54 + 48);
      }
      // kernel.tw:164
      {
        const int row = here(lane % 16);
        stmatrix_x4(c_5 + v92 + row * 128 + ((2 + lane / 16) ^ (row & 7)) * 16, rounded_54 + 52);
      }
      // kernel.tw:165
      {
        const int row = here(lane % 16);
        stmatrix_x4(c_5 + v92 + row * 128 + ((4 + lane / 16) ^ (row & 7)) * 16, rounded_54 + 56);
      }
      // kernel.tw:166
      {
        const int row = here(lane % 16);
        stmatrix_x4(c_5 + v92 + row * 128 + ((6 + lane / 16) ^ (row & 7)) * 16, rounded_54 + 60);
      }
      // kernel.tw:167
      fence_proxy_async();
      // kernel.tw:169
      const int v103 = v64 + 192;
      // kernel.tw:170
      if (lane == 0) tma_store_2d(c_5 + v92, map_c_10, v103, v95);
      // kernel.tw:171
      if (lane == 0) bulk_commit();
      // kernel.tw:172
      v56 = v65;
      v57 = v66;
    }
    // kernel.tw:174
    if (lane == 0) bulk_wait<0>();
  }
}
