// stores: 256 threads, 65536 bytes of shared memory.
#pragma nv_diag_suppress 177
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
template <typename T>
__device__ __forceinline__ T minimum(T a, T b) {
  return a < b ? a : b;
}
__device__ __forceinline__ u32 pack_bf16(float low, float high) {
  u32 r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
}
__device__ __forceinline__ u32 pack_f16(float low, float high) {
  u32 r;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
}
__device__ __forceinline__ u32 pack_e4m3(float a, float b, float c, float d) {
  u32 r;
  asm("{ .reg .b16 low, high;\n"
      "cvt.rn.satfinite.e4m3x2.f32 low, %2, %1;\n"
      "cvt.rn.satfinite.e4m3x2.f32 high, %4, %3;\n"
      "mov.b32 %0, {low, high}; }"
      : "=r"(r) : "f"(a), "f"(b), "f"(c), "f"(d));
  return r;
}
__device__ __forceinline__ u32 pack_bytes(int a, int b, int c, int d) {
  return __byte_perm(__byte_perm(a, b, 0x0040), __byte_perm(c, d, 0x0040), 0x5410);
}
__device__ __forceinline__ int round_i8(float x) {
  int y;
  asm("cvt.rni.sat.s8.f32 %0, %1;" : "=r"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ int round_u8(float x) {
  int y;
  asm("cvt.rni.sat.u8.f32 %0, %1;" : "=r"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ int from_i8(u32 bits) { return (int)(signed char)bits; }
__device__ __forceinline__ int from_u8(u32 bits) { return (int)(bits & 0xff); }
__device__ __forceinline__ float from_bf16(u32 bits) { return __uint_as_float(bits << 16); }
__device__ __forceinline__ float from_f16(u32 bits) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"((u16)bits));
  return y;
}
__device__ __forceinline__ float from_e4m3(u32 bits) {
  float y;
  asm("{ .reg .b32 pair; .reg .b16 low, high;\n"
      "cvt.rn.f16x2.e4m3x2 pair, %1;\n"
      "mov.b32 {low, high}, pair;\n"
      "cvt.f32.f16 %0, low; }"
      : "=f"(y) : "h"((u16)(bits & 0xff)));
  return y;
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
__device__ __forceinline__ void store_shared(u32 address, int v) {
  asm volatile("st.shared.b32 [%0], %1;" ::"r"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void store_shared(u32 address, u32 v) { store_shared(address, (int)v); }
__device__ __forceinline__ void store_shared(u32 address, float v) { store_shared(address, __float_as_int(v)); }
__device__ __forceinline__ void store_shared(u32 address, i64 v) {
  asm volatile("st.shared.b64 [%0], %1;" ::"r"(address), "l"(v) : "memory");
}
__device__ __forceinline__ void store_shared(u32 address, u16 v) {
  asm volatile("st.shared.b16 [%0], %1;" ::"r"(address), "h"(v) : "memory");
}
__device__ __forceinline__ void store_shared(u32 address, u8 v) {
  asm volatile("st.shared.u8 [%0], %1;" ::"r"(address), "r"((u32)v) : "memory");
}
__device__ __forceinline__ void stmatrix_x4(u32 address, const u32* r) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared::cta.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(r[0]),
               "r"(r[1]), "r"(r[2]), "r"(r[3]) : "memory");
}
__device__ __forceinline__ void ldmatrix_x4(u32 address, u32* r) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared::cta.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address) : "memory");
}
__device__ __forceinline__ void stmatrix_x4_trans(u32 address, const u32* r) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared::cta.b16 [%0], {%1, %2, %3, %4};"
               :: "r"(address), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]) : "memory");
}
__device__ __forceinline__ void stmatrix_x2(u32 address, const u32* r) {
  asm volatile("stmatrix.sync.aligned.m8n8.x2.shared::cta.b16 [%0], {%1, %2};"
               :: "r"(address), "r"(r[0]), "r"(r[1]) : "memory");
}
__device__ __forceinline__ void stmatrix_x2_trans(u32 address, const u32* r) {
  asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared::cta.b16 [%0], {%1, %2};"
               :: "r"(address), "r"(r[0]), "r"(r[1]) : "memory");
}
__device__ __forceinline__ void ldmatrix_x4_trans(u32 address, u32* r) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared::cta.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address) : "memory");
}
__device__ __forceinline__ void ldmatrix_x2(u32 address, u32* r) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared::cta.b16 {%0, %1}, [%2];"
               : "=r"(r[0]), "=r"(r[1]) : "r"(address) : "memory");
}
__device__ __forceinline__ void ldmatrix_x2_trans(u32 address, u32* r) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared::cta.b16 {%0, %1}, [%2];"
               : "=r"(r[0]), "=r"(r[1]) : "r"(address) : "memory");
}
__device__ __forceinline__ u32 word(u32 v) { return v; }
__device__ __forceinline__ u32 word(int v) { return (u32)v; }
__device__ __forceinline__ u32 word(float v) { return __float_as_uint(v); }
template <typename T>
__device__ __forceinline__ void store_vector_4(void* address, const T* r) {
  *(u32*)address = word(r[0]);
}
template <typename T>
__device__ __forceinline__ void store_vector_8(void* address, const T* r) {
  *(uint2*)address = make_uint2(word(r[0]), word(r[1]));
}
template <typename T>
__device__ __forceinline__ void store_vector_16(void* address, const T* r) {
  *(uint4*)address = make_uint4(word(r[0]), word(r[1]), word(r[2]), word(r[3]));
}
__device__ __forceinline__ void red_add(float* address, float v) {
  asm volatile("red.relaxed.gpu.global.add.f32 [%0], %1;" :: "l"(address), "f"(v) : "memory");
}
__device__ __forceinline__ void red_add_vector_8(float* address, const float* r, bool aligned) {
  if (!aligned) {
    red_add(address, r[0]);
    red_add(address + 1, r[1]);
  } else {
    asm volatile("red.relaxed.gpu.global.add.v2.f32 [%0], {%1, %2};"
                 :: "l"(address), "f"(r[0]), "f"(r[1]) : "memory");
  }
}
__device__ __forceinline__ void red_add_vector_16(float* address, const float* r, bool aligned) {
  if (!aligned) {
    red_add_vector_8(address, r, false);
    red_add_vector_8(address + 2, r + 2, false);
  } else {
    asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};"
                 :: "l"(address), "f"(r[0]), "f"(r[1]), "f"(r[2]), "f"(r[3]) : "memory");
  }
}
// The number, computed where it is used: kept over a loop, places would take the accumulators'
// registers.
__device__ __forceinline__ int here(int x) {
  asm volatile("" : "+r"(x));
  return x;
}
__device__ __forceinline__ void compiler_fence() { asm volatile("" ::: "memory"); }
__device__ __forceinline__ void set_word(u32& r, u32 v) { r = v; }
__device__ __forceinline__ void set_word(int& r, u32 v) { r = (int)v; }
__device__ __forceinline__ void set_word(float& r, u32 v) { r = __uint_as_float(v); }
template <typename T>
__device__ __forceinline__ void load_vector_4(T* r, const void* address, bool exists) {
  u32 v = 0;
  if (exists) v = *(const u32*)address;
  set_word(r[0], v);
}
template <typename T>
__device__ __forceinline__ void load_vector_8(T* r, const void* address, bool exists) {
  uint2 v = make_uint2(0, 0);
  if (exists) v = *(const uint2*)address;
  set_word(r[0], v.x); set_word(r[1], v.y);
}
template <typename T>
__device__ __forceinline__ void load_vector_16(T* r, const void* address, bool exists) {
  uint4 v = make_uint4(0, 0, 0, 0);
  if (exists) v = *(const uint4*)address;
  set_word(r[0], v.x); set_word(r[1], v.y); set_word(r[2], v.z); set_word(r[3], v.w);
}
template <typename T>
__device__ __forceinline__ void load_streamed_vector_4(T* r, const void* address, bool exists) {
  u32 v = 0;
  if (exists) v = __ldcs((const u32*)address);
  set_word(r[0], v);
}
template <typename T>
__device__ __forceinline__ void load_streamed_vector_8(T* r, const void* address, bool exists) {
  uint2 v = make_uint2(0, 0);
  if (exists) v = __ldcs((const uint2*)address);
  set_word(r[0], v.x); set_word(r[1], v.y);
}
template <typename T>
__device__ __forceinline__ void load_streamed_vector_16(T* r, const void* address, bool exists) {
  uint4 v = make_uint4(0, 0, 0, 0);
  if (exists) v = __ldcs((const uint4*)address);
  set_word(r[0], v.x); set_word(r[1], v.y); set_word(r[2], v.z); set_word(r[3], v.w);
}
template <typename T>
__device__ __forceinline__ void load_shared_4(u32 address, T* r) {
  u32 v0;
  asm volatile("ld.shared.b32 %0, [%1];" : "=r"(v0) : "r"(address) : "memory");
  set_word(r[0], v0);
}
template <typename T>
__device__ __forceinline__ void store_shared_4(u32 address, const T* r) {
  asm volatile("st.shared.b32 [%0], %1;" ::"r"(address), "r"(word(r[0])) : "memory");
}
template <typename T>
__device__ __forceinline__ void load_shared_8(u32 address, T* r) {
  u32 v0, v1;
  asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];" : "=r"(v0), "=r"(v1) : "r"(address) : "memory");
  set_word(r[0], v0); set_word(r[1], v1);
}
template <typename T>
__device__ __forceinline__ void store_shared_8(u32 address, const T* r) {
  asm volatile("st.shared.v2.b32 [%0], {%1, %2};" ::"r"(address), "r"(word(r[0])), "r"(word(r[1]))
               : "memory");
}
template <typename T>
__device__ __forceinline__ void load_shared_16(u32 address, T* r) {
  u32 v0, v1, v2, v3;
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v0), "=r"(v1), "=r"(v2), "=r"(v3) : "r"(address) : "memory");
  set_word(r[0], v0); set_word(r[1], v1); set_word(r[2], v2); set_word(r[3], v3);
}
template <typename T>
__device__ __forceinline__ void store_shared_16(u32 address, const T* r) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(word(r[0])),
               "r"(word(r[1])), "r"(word(r[2])), "r"(word(r[3])) : "memory");
}
extern "C" __device__ unsigned long long tilewright_form = 0x62dbdb3e3c4879e2;
extern "C" __global__ void __launch_bounds__(256, 1)
stores(float* f32_out_0, i64 f32_out_0_stride0, i64 f32_out_0_stride1, u16* bf16_out_1, i64 bf16_out_1_stride0, i64 bf16_out_1_stride1, u16* f16_out_2, i64 f16_out_2_stride0, i64 f16_out_2_stride1, u8* e4m3_out_3, i64 e4m3_out_3_stride0, i64 e4m3_out_3_stride1, int* i32_out_4, i64 i32_out_4_stride0, i64 i32_out_4_stride1, i64* i64_out_5, i64 i64_out_5_stride0, i64 i64_out_5_stride1, u8* i8_out_6, i64 i8_out_6_stride0, i64 i8_out_6_stride1, u8* u8_out_7, i64 u8_out_7_stride0, i64 u8_out_7_stride1, int dim_columns, int dim1, int dim_rows) {
  extern __shared__ __align__(1024) u8 dynamic_shared[];
  const u32 shared = (u32)__cvta_generic_to_shared(dynamic_shared);
  const int warp = __shfl_sync(0xffffffffu, (int)threadIdx.x / 32, 0);
  const int lane = (int)(threadIdx.x & 31u);
  // kernel.tw:17
  const int v9 = (int)blockIdx.x;
  // kernel.tw:22
  const u32 f32_14 = shared + 0;
  // kernel.tw:23
  const u32 bf16_15 = shared + 8192;
  // kernel.tw:24
  const u32 f16_16 = shared + 16384;
  // kernel.tw:25
  const u32 f8e4m3_17 = shared + 24576;
  // kernel.tw:26
  const u32 i32_18 = shared + 32768;
  // kernel.tw:27
  const u32 i64_19 = shared + 40960;
  // kernel.tw:28
  const u32 i8_20 = shared + 49152;
  // kernel.tw:29
  const u32 u8_21 = shared + 57344;
  // kernel.tw:30
  if (warp < 2) {
    // idle
  }
  // kernel.tw:33
  else if (warp >= 4) {
    // store
    // kernel.tw:34
    float held_24[8];
    // kernel.tw:35
    const float v25 = __int_as_float(0x7fc00000);
    // kernel.tw:36
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      held_24[i] = v25;
    // kernel.tw:37
    compiler_fence();
    {
      const int c0 = v9 + lane / 4 + warp % 4 * 16;
      const int e0 = minimum(dim1, dim_rows);
      const int c1 = 2;
      const int e1 = 2;
      const int c2 = lane % 4 * 2;
      const int e2 = dim_columns;
      float* const first = f32_out_0 + (i64)c0 * f32_out_0_stride0 + (i64)c1 * f32_out_0_stride1 + (i64)c2;
      const bool aligned = (((u64)f32_out_0 | (u64)(f32_out_0_stride0 * 4) | (u64)(f32_out_0_stride1 * 4) | (u64)(c2 * 4)) & 7) == 0 && ((e2 - c2) & 1) == 0;
      #pragma unroll
      for (int i = 0; i < 8; i += 2) {
        load_vector_8(held_24 + i, first + (i / 2 % 2 * 8) * f32_out_0_stride0 + (i % 2 + i / 4 * 8), aligned && c0 + i / 2 % 2 * 8 < e0 && c1 < e1 && c2 + i % 2 + i / 4 * 8 < e2);
      }
      if (!aligned) {
        #pragma unroll
        for (int i = 0; i < 8; ++i) {
          held_24[i] = c0 + i / 2 % 2 * 8 < e0 && c1 < e1 && c2 + i % 2 + i / 4 * 8 < e2 ? first[(i / 2 % 2 * 8) * f32_out_0_stride0 + (i % 2 + i / 4 * 8)] : (float)0;
        }
      }
    }
    compiler_fence();
    // kernel.tw:38
    compiler_fence();
    {
      const int c0 = v9 + lane / 4 + warp % 4 * 16;
      const int e0 = minimum(dim1, dim_rows);
      const int c1 = 2;
      const int e1 = 2;
      const int c2 = lane % 4 * 2;
      const int e2 = dim_columns;
      float* const first = f32_out_0 + (i64)c0 * f32_out_0_stride0 + (i64)c1 * f32_out_0_stride1 + (i64)c2;
      const bool aligned = (((u64)f32_out_0 | (u64)(f32_out_0_stride0 * 4) | (u64)(f32_out_0_stride1 * 4) | (u64)(c2 * 4)) & 7) == 0 && ((e2 - c2) & 1) == 0;
      #pragma unroll
      for (int i = 0; i < 8; i += 2) {
        load_streamed_vector_8(held_24 + i, first + (i / 2 % 2 * 8) * f32_out_0_stride0 + (i % 2 + i / 4 * 8), aligned && c0 + i / 2 % 2 * 8 < e0 && c1 < e1 && c2 + i % 2 + i / 4 * 8 < e2);
      }
      if (!aligned) {
        #pragma unroll
        for (int i = 0; i < 8; ++i) {
          held_24[i] = c0 + i / 2 % 2 * 8 < e0 && c1 < e1 && c2 + i % 2 + i / 4 * 8 < e2 ? first[(i / 2 % 2 * 8) * f32_out_0_stride0 + (i % 2 + i / 4 * 8)] : (float)0;
        }
      }
    }
    compiler_fence();
    // kernel.tw:39
    {
      const int c0 = v9 + lane / 4 + warp % 4 * 16;
      const int e0 = minimum(dim1, dim_rows);
      const int c1 = 2;
      const int e1 = 2;
      const int c2 = lane % 4 * 2;
      const int e2 = dim_columns;
      float* const first = f32_out_0 + (i64)c0 * f32_out_0_stride0 + (i64)c1 * f32_out_0_stride1 + (i64)c2;
      const bool aligned = (((u64)first | (u64)(f32_out_0_stride0 * 4)) & 7) == 0;
      #pragma unroll
      for (int i = 0; i < 8; i += 2) {
        if (aligned && c0 + i / 2 % 2 * 8 < e0 && c1 < e1 && c2 + i % 2 + i / 4 * 8 + 2 <= e2) {
          store_vector_8(first + (i / 2 % 2 * 8) * f32_out_0_stride0 + (i % 2 + i / 4 * 8), held_24 + i);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 2; ++j) {
            if (c0 + j / 2 % 2 * 8 < e0 && c1 < e1 && c2 + j % 2 + j / 4 * 8 < e2) first[(j / 2 % 2 * 8) * f32_out_0_stride0 + (j % 2 + j / 4 * 8)] = held_24[j];
          }
        }
      }
    }
    // kernel.tw:40
    {
      const int c0 = here(v9 + lane / 4 + warp % 4 * 16);
      const int e0 = minimum(dim1, dim_rows);
      const int c1 = here(2);
      const int e1 = 2;
      const int c2 = here(lane % 4 * 2);
      const int e2 = dim_columns;
      float* const first = f32_out_0 + (i64)c0 * f32_out_0_stride0 + (i64)c1 * f32_out_0_stride1 + (i64)c2;
      const bool aligned = (((u64)first | (u64)(f32_out_0_stride0 * 4)) & 7) == 0;
      #pragma unroll
      for (int i = 0; i < 8; i += 2) {
        if (c0 + i / 2 % 2 * 8 < e0 && c1 < e1 && c2 + i % 2 + i / 4 * 8 + 2 <= e2) red_add_vector_8(first + (i / 2 % 2 * 8) * f32_out_0_stride0 + (i % 2 + i / 4 * 8), held_24 + i, aligned);
        else {
          #pragma unroll
          for (int j = i; j < i + 2; ++j) {
            if (c0 + j / 2 % 2 * 8 < e0 && c1 < e1 && c2 + j % 2 + j / 4 * 8 < e2) red_add(first + (j / 2 % 2 * 8) * f32_out_0_stride0 + (j % 2 + j / 4 * 8), held_24[j]);
          }
        }
      }
    }
    // kernel.tw:41
    #pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int row = i / 2 % 2 * 8 + lane / 4 + warp % 4 * 16;
      const int column = i % 2 + i / 4 * 8 + lane % 4 * 2;
      const u32 address = f32_14 + row * 64 + column / 16 * 1024 + ((column % 16 * 4) ^ ((row / 4 & 1) * 16));
      store_shared(address, held_24[i]);
    }
    // kernel.tw:42
    #pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int row = i / 2 % 2 * 8 + lane / 4 + warp % 4 * 16;
      const int column = i % 2 + i / 4 * 8 + lane % 4 * 2;
      const u32 address = f32_14 + row * 64 + column / 16 * 1024 + ((column % 16 * 4) ^ ((row / 4 & 1) * 16));
      held_24[i] = load_shared<float>(address);
    }
    // kernel.tw:43
    float held_26[8];
    // kernel.tw:44
    const float v27 = __int_as_float(0x7fc00000);
    // kernel.tw:45
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      held_26[i] = v27;
    // kernel.tw:46
    compiler_fence();
    {
      const int c0 = v9 + lane / 2 + warp % 4 * 16;
      const int e0 = minimum(dim1, dim_rows);
      const int c1 = 2;
      const int e1 = 2;
      const int c2 = lane % 2 * 8;
      const int e2 = dim_columns;
      float* const first = f32_out_0 + (i64)c0 * f32_out_0_stride0 + (i64)c1 * f32_out_0_stride1 + (i64)c2;
      const bool aligned = (((u64)f32_out_0 | (u64)(f32_out_0_stride0 * 4) | (u64)(f32_out_0_stride1 * 4) | (u64)(c2 * 4)) & 15) == 0 && ((e2 - c2) & 3) == 0;
      #pragma unroll
      for (int i = 0; i < 8; i += 4) {
        load_vector_16(held_26 + i, first + (i), aligned && c0 < e0 && c1 < e1 && c2 + i < e2);
      }
      if (!aligned) {
        #pragma unroll
        for (int i = 0; i < 8; ++i) {
          held_26[i] = c0 < e0 && c1 < e1 && c2 + i < e2 ? first[(i)] : (float)0;
        }
      }
    }
    compiler_fence();
    // kernel.tw:47
    compiler_fence();
    {
      const int c0 = v9 + lane / 2 + warp % 4 * 16;
      const int e0 = minimum(dim1, dim_rows);
      const int c1 = 2;
      const int e1 = 2;
      const int c2 = lane % 2 * 8;
      const int e2 = dim_columns;
      float* const first = f32_out_0 + (i64)c0 * f32_out_0_stride0 + (i64)c1 * f32_out_0_stride1 + (i64)c2;
      const bool aligned = (((u64)f32_out_0 | (u64)(f32_out_0_stride0 * 4) | (u64)(f32_out_0_stride1 * 4) | (u64)(c2 * 4)) & 15) == 0 && ((e2 - c2) & 3) == 0;
      #pragma unroll
      for (int i = 0; i < 8; i += 4) {
        load_streamed_vector_16(held_26 + i, first + (i), aligned && c0 < e0 && c1 < e1 && c2 + i < e2);
      }
      if (!aligned) {
        #pragma unroll
        for (int i = 0; i < 8; ++i) {
          held_26[i] = c0 < e0 && c1 < e1 && c2 + i < e2 ? first[(i)] : (float)0;
        }
      }
    }
    compiler_fence();
    // kernel.tw:48
    {
      const int c0 = v9 + lane / 2 + warp % 4 * 16;
      const int e0 = minimum(dim1, dim_rows);
      const int c1 = 2;
      const int e1 = 2;
      const int c2 = lane % 2 * 8;
      const int e2 = dim_columns;
      float* const first = f32_out_0 + (i64)c0 * f32_out_0_stride0 + (i64)c1 * f32_out_0_stride1 + (i64)c2;
      const bool aligned = (((u64)first) & 15) == 0;
      #pragma unroll
      for (int i = 0; i < 8; i += 4) {
        if (aligned && c0 < e0 && c1 < e1 && c2 + i + 4 <= e2) {
          store_vector_16(first + (i), held_26 + i);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 4; ++j) {
            if (c0 < e0 && c1 < e1 && c2 + j < e2) first[(j)] = held_26[j];
          }
        }
      }
    }
    // kernel.tw:49
    {
      const int c0 = here(v9 + lane / 2 + warp % 4 * 16);
      const int e0 = minimum(dim1, dim_rows);
      const int c1 = here(2);
      const int e1 = 2;
      const int c2 = here(lane % 2 * 8);
      const int e2 = dim_columns;
      float* const first = f32_out_0 + (i64)c0 * f32_out_0_stride0 + (i64)c1 * f32_out_0_stride1 + (i64)c2;
      const bool aligned = (((u64)first) & 15) == 0;
      #pragma unroll
      for (int i = 0; i < 8; i += 4) {
        if (c0 < e0 && c1 < e1 && c2 + i + 4 <= e2) red_add_vector_16(first + (i), held_26 + i, aligned);
        else {
          #pragma unroll
          for (int j = i; j < i + 4; ++j) {
            if (c0 < e0 && c1 < e1 && c2 + j < e2) red_add(first + (j), held_26[j]);
          }
        }
      }
    }
    // kernel.tw:50
    {
      const u32 begin = here(f32_14 + (lane / 2 + warp % 4 * 16) * 64 + (lane % 2 * 8) * 4);
      #pragma unroll
      for (int i = 0; i < 8; i += 2) {
        const u32 address = begin + i * 4;
        store_shared_8(address, held_26 + i);
      }
    }
    // kernel.tw:51
    {
      const u32 begin = here(f32_14 + (lane / 2 + warp % 4 * 16) * 64 + (lane % 2 * 8) * 4);
      #pragma unroll
      for (int i = 0; i < 8; i += 2) {
        const u32 address = begin + i * 4;
        load_shared_8(address, held_26 + i);
      }
    }
    // kernel.tw:52
    {
      const u32 begin = here(f32_14 + (lane / 2 + warp % 4 * 16) * 64 + (lane % 2 * 8) * 4);
      #pragma unroll
      for (int i = 0; i < 8; i += 4) {
        const u32 address = begin + i * 4;
        store_shared_16(address, held_26 + i);
      }
    }
    // kernel.tw:53
    {
      const u32 begin = here(f32_14 + (lane / 2 + warp % 4 * 16) * 64 + (lane % 2 * 8) * 4);
      #pragma unroll
      for (int i = 0; i < 8; i += 4) {
        const u32 address = begin + i * 4;
        load_shared_16(address, held_26 + i);
      }
    }
    // kernel.tw:54
    {
      const u32 begin = here(f32_14 + (lane / 2 + warp % 4 * 16) * 64 + (lane % 2 * 8) * 4);
      #pragma unroll
      for (int i = 0; i < 8; ++i) {
        const u32 address = begin + i * 4;
        store_shared(address, held_26[i]);
      }
    }
    // kernel.tw:55
    {
      const u32 begin = here(f32_14 + (lane / 2 + warp % 4 * 16) * 64 + (lane % 2 * 8) * 4);
      #pragma unroll
      for (int i = 0; i < 8; ++i) {
        const u32 address = begin + i * 4;
        held_26[i] = load_shared<float>(address);
      }
    }
    // kernel.tw:56
    float held_28[2];
    // kernel.tw:57
    const float v29 = __int_as_float(0x7fc00000);
    // kernel.tw:58
    #pragma unroll
    for (int i = 0; i < 2; ++i)
      held_28[i] = v29;
    // kernel.tw:59
    compiler_fence();
    {
      const int c0 = v9 + lane / 4 + warp % 4 * 16;
      const int e0 = minimum(dim1, dim_rows);
      const int c1 = 2;
      const int e1 = 2;
      const int c2 = 0;
      const int e2 = dim_columns;
      float* const first = f32_out_0 + (i64)c0 * f32_out_0_stride0 + (i64)c1 * f32_out_0_stride1 + (i64)c2;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        held_28[i] = c0 + i * 8 < e0 && c1 < e1 && c2 < e2 ? first[(i * 8) * f32_out_0_stride0] : (float)0;
      }
    }
    compiler_fence();
    // kernel.tw:60
    if (lane % 4 == 0) {
      const int c0 = here(v9 + lane / 4 + warp % 4 * 16);
      const int e0 = minimum(dim1, dim_rows);
      const int c1 = here(2);
      const int e1 = 2;
      const int c2 = here(0);
      const int e2 = dim_columns;
      float* const first = f32_out_0 + (i64)c0 * f32_out_0_stride0 + (i64)c1 * f32_out_0_stride1 + (i64)c2;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 + i * 8 < e0 && c1 < e1 && c2 < e2) first[(i * 8) * f32_out_0_stride0] = held_28[i];
      }
    }
    // kernel.tw:61
    if (lane % 4 == 0) {
      const int c0 = here(v9 + lane / 4 + warp % 4 * 16);
      const int e0 = minimum(dim1, dim_rows);
      const int c1 = here(2);
      const int e1 = 2;
      const int c2 = here(0);
      const int e2 = dim_columns;
      float* const first = f32_out_0 + (i64)c0 * f32_out_0_stride0 + (i64)c1 * f32_out_0_stride1 + (i64)c2;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 + i * 8 < e0 && c1 < e1 && c2 < e2) red_add(first + (i * 8) * f32_out_0_stride0, held_28[i]);
      }
    }
    // kernel.tw:62
    u32 held_30[4];
    // kernel.tw:63
    const u32 v31 = pack_bf16(__int_as_float(0x7fc00000), 0.0f);
    // kernel.tw:64
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      held_30[i / 2] = pack_bf16(from_bf16(v31), from_bf16(v31));
    // kernel.tw:65
    compiler_fence();
    {
      const int c0 = v9 + lane / 4 + warp % 4 * 16;
      const int e0 = minimum(dim1, dim_rows);
      const int c1 = 2;
      const int e1 = 2;
      const int c2 = lane % 4 * 2;
      const int e2 = dim_columns;
      u16* const first = bf16_out_1 + (i64)c0 * bf16_out_1_stride0 + (i64)c1 * bf16_out_1_stride1 + (i64)c2;
      const bool aligned = (((u64)bf16_out_1 | (u64)(bf16_out_1_stride0 * 2) | (u64)(bf16_out_1_stride1 * 2) | (u64)(c2 * 2)) & 3) == 0 && ((e2 - c2) & 1) == 0;
      #pragma unroll
      for (int i = 0; i < 8; i += 2) {
        load_vector_4(held_30 + i / 2, first + (i / 2 % 2 * 8) * bf16_out_1_stride0 + (i % 2 + i / 4 * 8), aligned && c0 + i / 2 % 2 * 8 < e0 && c1 < e1 && c2 + i % 2 + i / 4 * 8 < e2);
      }
      if (!aligned) {
        #pragma unroll
        for (int i = 0; i < 8; ++i) {
          const u32 element = c0 + i / 2 % 2 * 8 < e0 && c1 < e1 && c2 + i % 2 + i / 4 * 8 < e2 ? first[(i / 2 % 2 * 8) * bf16_out_1_stride0 + (i % 2 + i / 4 * 8)] : (u16)0;
          held_30[i / 2] = (i % 2 == 0 ? 0 : held_30[i / 2]) | element << i % 2 * 16;
        }
      }
    }
    compiler_fence();
    // kernel.tw:66
    compiler_fence();
    {
      const int c0 = v9 + lane / 4 + warp % 4 * 16;
      const int e0 = minimum(dim1, dim_rows);
      const int c1 = 2;
      const int e1 = 2;
      const int c2 = lane % 4 * 2;
      const int e2 = dim_columns;
      u16* const first = bf16_out_1 + (i64)c0 * bf16_out_1_stride0 + (i64)c1 * bf16_out_1_stride1 + (i64)c2;
      const bool aligned = (((u64)bf16_out_1 | (u64)(bf16_out_1_stride0 * 2) | (u64)(bf16_out_1_stride1 * 2) | (u64)(c2 * 2)) & 3) == 0 && ((e2 - c2) & 1) == 0;
      #pragma unroll
      for (int i = 0; i < 8; i += 2) {
        load_streamed_vector_4(held_30 + i / 2, first + (i / 2 % 2 * 8) * bf16_out_1_stride0 + (i % 2 + i / 4 * 8), aligned && c0 + i / 2 % 2 * 8 < e0 && c1 < e1 && c2 + i % 2 + i / 4 * 8 < e2);
      }
      if (!aligned) {
        #pragma unroll
        for (int i = 0; i < 8; ++i) {
          const u32 element = c0 + i / 2 % 2 * 8 < e0 && c1 < e1 && c2 + i % 2 + i / 4 * 8 < e2 ? first[(i / 2 % 2 * 8) * bf16_out_1_stride0 + (i % 2 + i / 4 * 8)] : (u16)0;
          held_30[i / 2] = (i % 2 == 0 ? 0 : held_30[i / 2]) | element << i % 2 * 16;
        }
      }
    }
    compiler_fence();
    // kernel.tw:67
    {
      const int c0 = v9 + lane / 4 + warp % 4 * 16;
      const int e0 = minimum(dim1, dim_rows);
      const int c1 = 2;
      const int e1 = 2;
      const int c2 = lane % 4 * 2;
      const int e2 = dim_columns;
      u16* const first = bf16_out_1 + (i64)c0 * bf16_out_1_stride0 + (i64)c1 * bf16_out_1_stride1 + (i64)c2;
      const bool aligned = (((u64)first | (u64)(bf16_out_1_stride0 * 2)) & 3) == 0;
      #pragma unroll
      for (int i = 0; i < 8; i += 2) {
        if (aligned && c0 + i / 2 % 2 * 8 < e0 && c1 < e1 && c2 + i % 2 + i / 4 * 8 + 2 <= e2) {
          store_vector_4(first + (i / 2 % 2 * 8) * bf16_out_1_stride0 + (i % 2 + i / 4 * 8), held_30 + i / 2);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 2; ++j) {
            if (c0 + j / 2 % 2 * 8 < e0 && c1 < e1 && c2 + j % 2 + j / 4 * 8 < e2) first[(j / 2 % 2 * 8) * bf16_out_1_stride0 + (j % 2 + j / 4 * 8)] = (u16)(held_30[(j) / 2] >> (j) % 2 * 16);
          }
        }
      }
    }
    // kernel.tw:68
    #pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int row = i / 2 % 2 * 8 + lane / 4 + warp % 4 * 16;
      const int column = i % 2 + i / 4 * 8 + lane % 4 * 2;
      const u32 address = bf16_15 + row * 32 + column / 16 * 1024 + ((column % 16 * 2) ^ ((row / 4 & 1) * 16));
      store_shared(address, (u16)(held_30[i / 2] >> i % 2 * 16));
    }
    // kernel.tw:69
    #pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int row = i / 2 % 2 * 8 + lane / 4 + warp % 4 * 16;
      const int column = i % 2 + i / 4 * 8 + lane % 4 * 2;
      const u32 address = bf16_15 + row * 32 + column / 16 * 1024 + ((column % 16 * 2) ^ ((row / 4 & 1) * 16));
      held_30[i / 2] = (i % 2 == 0 ? 0 : held_30[i / 2]) | (u32)load_shared<u16>(address) << i % 2 * 16;
    }
    // kernel.tw:70
    {
      const int row = here(v9 + lane % 16);
      stmatrix_x4(bf16_15 + row * 32 + (lane / 16) * 16, held_30 + 0);
    }
    // kernel.tw:71
    {
      const int row = here(v9 + lane % 8 + lane / 16 * 8);
      stmatrix_x4_trans(bf16_15 + row * 32 + (lane / 8 % 2) * 16, held_30 + 0);
    }
    // kernel.tw:72
    {
      const int row = here(v9 + lane % 16);
      stmatrix_x2(bf16_15 + row * 32 + (lane / 16) * 16, held_30 + 0);
    }
    // kernel.tw:73
    {
      const int row = here(v9 + lane % 8);
      stmatrix_x2_trans(bf16_15 + row * 32 + (lane / 8 % 2) * 16, held_30 + 0);
    }
    // kernel.tw:74
    {
      const int row = here(v9 + lane % 16);
      ldmatrix_x4(bf16_15 + row * 32 + (lane / 16) * 16, held_30 + 0);
    }
    // kernel.tw:75
    {
      const int row = here(v9 + lane % 8 + lane / 16 * 8);
      ldmatrix_x4_trans(bf16_15 + row * 32 + (lane / 8 % 2) * 16, held_30 + 0);
    }
    // kernel.tw:76
    {
      const int row = here(v9 + lane % 16);
      ldmatrix_x2(bf16_15 + row * 32 + (lane / 16) * 16, held_30 + 0);
    }
    // kernel.tw:77
    {
      const int row = here(v9 + lane % 8);
      ldmatrix_x2_trans(bf16_15 + row * 32 + (lane / 8 % 2) * 16, held_30 + 0);
    }
    // kernel.tw:78
    u32 held_32[4];
    // kernel.tw:79
    const u32 v33 = pack_bf16(__int_as_float(0x7fc00000), 0.0f);
    // kernel.tw:80
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      held_32[i / 2] = pack_bf16(from_bf16(v33), from_bf16(v33));
    // kernel.tw:81
    compiler_fence();
    {
      const int c0 = v9 + lane / 2 + warp % 4 * 16;
      const int e0 = minimum(dim1, dim_rows);
      const int c1 = 2;
      const int e1 = 2;
      const int c2 = lane % 2 * 8;
      const int e2 = dim_columns;
      u16* const first = bf16_out_1 + (i64)c0 * bf16_out_1_stride0 + (i64)c1 * bf16_out_1_stride1 + (i64)c2;
      const bool aligned = (((u64)bf16_out_1 | (u64)(bf16_out_1_stride0 * 2) | (u64)(bf16_out_1_stride1 * 2) | (u64)(c2 * 2)) & 15) == 0 && ((e2 - c2) & 7) == 0;
      #pragma unroll
      for (int i = 0; i < 8; i += 8) {
        load_vector_16(held_32 + i / 2, first + (i), aligned && c0 < e0 && c1 < e1 && c2 + i < e2);
      }
      if (!aligned) {
        #pragma unroll
        for (int i = 0; i < 8; ++i) {
          const u32 element = c0 < e0 && c1 < e1 && c2 + i < e2 ? first[(i)] : (u16)0;
          held_32[i / 2] = (i % 2 == 0 ? 0 : held_32[i / 2]) | element << i % 2 * 16;
        }
      }
    }
    compiler_fence();
    // kernel.tw:82
    compiler_fence();
    {
      const int c0 = v9 + lane / 2 + warp % 4 * 16;
      const int e0 = minimum(dim1, dim_rows);
      const int c1 = 2;
      const int e1 = 2;
      const int c2 = lane % 2 * 8;
      const int e2 = dim_columns;
      u16* const first = bf16_out_1 + (i64)c0 * bf16_out_1_stride0 + (i64)c1 * bf16_out_1_stride1 + (i64)c2;
      const bool aligned = (((u64)bf16_out_1 | (u64)(bf16_out_1_stride0 * 2) | (u64)(bf16_out_1_stride1 * 2) | (u64)(c2 * 2)) & 15) == 0 && ((e2 - c2) & 7) == 0;
      #pragma unroll
      for (int i = 0; i < 8; i += 8) {
        load_streamed_vector_16(held_32 + i / 2, first + (i), aligned && c0 < e0 && c1 < e1 && c2 + i < e2);
      }
      if (!aligned) {
        #pragma unroll
        for (int i = 0; i < 8; ++i) {
          const u32 element = c0 < e0 && c1 < e1 && c2 + i < e2 ? first[(i)] : (u16)0;
          held_32[i / 2] = (i % 2 == 0 ? 0 : held_32[i / 2]) | element << i % 2 * 16;
        }
      }
    }
    compiler_fence();
    // kernel.tw:83
    {
      const int c0 = v9 + lane / 2 + warp % 4 * 16;
      const int e0 = minimum(dim1, dim_rows);
      const int c1 = 2;
      const int e1 = 2;
      const int c2 = lane % 2 * 8;
      const int e2 = dim_columns;
      u16* const first = bf16_out_1 + (i64)c0 * bf16_out_1_stride0 + (i64)c1 * bf16_out_1_stride1 + (i64)c2;
      const bool aligned = (((u64)first) & 15) == 0;
      #pragma unroll
      for (int i = 0; i < 8; i += 8) {
        if (aligned && c0 < e0 && c1 < e1 && c2 + i + 8 <= e2) {
          store_vector_16(first + (i), held_32 + i / 2);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 8; ++j) {
            if (c0 < e0 && c1 < e1 && c2 + j < e2) first[(j)] = (u16)(held_32[(j) / 2] >> (j) % 2 * 16);
          }
        }
      }
    }
    // kernel.tw:84
    {
      const u32 begin = here(bf16_15 + (lane / 2 + warp % 4 * 16) * 32 + (lane % 2 * 8) * 2);
      #pragma unroll
      for (int i = 0; i < 8; i += 2) {
        const u32 address = begin + i * 2;
        store_shared_4(address, held_32 + i / 2);
      }
    }
    // kernel.tw:85
    {
      const u32 begin = here(bf16_15 + (lane / 2 + warp % 4 * 16) * 32 + (lane % 2 * 8) * 2);
      #pragma unroll
      for (int i = 0; i < 8; i += 2) {
        const u32 address = begin + i * 2;
        load_shared_4(address, held_32 + i / 2);
      }
    }
    // kernel.tw:86
    {
      const u32 begin = here(bf16_15 + (lane / 2 + warp % 4 * 16) * 32 + (lane % 2 * 8) * 2);
      #pragma unroll
      for (int i = 0; i < 8; i += 4) {
        const u32 address = begin + i * 2;
        store_shared_8(address, held_32 + i / 2);
      }
    }
    // kernel.tw:87
    {
      const u32 begin = here(bf16_15 + (lane / 2 + warp % 4 * 16) * 32 + (lane % 2 * 8) * 2);
      #pragma unroll
      for (int i = 0; i < 8; i += 4) {
        const u32 address = begin + i * 2;
        load_shared_8(address, held_32 + i / 2);
      }
    }
    // kernel.tw:88
    {
      const u32 begin = here(bf16_15 + (lane / 2 + warp % 4 * 16) * 32 + (lane % 2 * 8) * 2);
      #pragma unroll
      for (int i = 0; i < 8; i += 8) {
        const u32 address = begin + i * 2;
        store_shared_16(address, held_32 + i / 2);
      }
    }
    // kernel.tw:89
    {
      const u32 begin = here(bf16_15 + (lane / 2 + warp % 4 * 16) * 32 + (lane % 2 * 8) * 2);
      #pragma unroll
      for (int i = 0; i < 8; i += 8) {
        const u32 address = begin + i * 2;
        load_shared_16(address, held_32 + i / 2);
      }
    }
    // kernel.tw:90
    {
      const u32 begin = here(bf16_15 + (lane / 2 + warp % 4 * 16) * 32 + (lane % 2 * 8) * 2);
      #pragma unroll
      for (int i = 0; i < 8; ++i) {
        const u32 address = begin + i * 2;
        store_shared(address, (u16)(held_32[i / 2] >> i % 2 * 16));
      }
    }
    // kernel.tw:91
    {
      const u32 begin = here(bf16_15 + (lane / 2 + warp % 4 * 16) * 32 + (lane % 2 * 8) * 2);
      #pragma unroll
      for (int i = 0; i < 8; ++i) {
        const u32 address = begin + i * 2;
        held_32[i / 2] = (i % 2 == 0 ? 0 : held_32[i / 2]) | (u32)load_shared<u16>(address) << i % 2 * 16;
      }
    }
    // kernel.tw:92
    {
      const int row = here(v9 + lane % 16);
      stmatrix_x4(bf16_15 + row * 32 + ((lane / 16) ^ (row / 4 & 1)) * 16, held_32 + 0);
    }
    // kernel.tw:93
    {
      const int row = here(v9 + lane % 8 + lane / 16 * 8);
      stmatrix_x4_trans(bf16_15 + row * 32 + ((lane / 8 % 2) ^ (row / 4 & 1)) * 16, held_32 + 0);
    }
    // kernel.tw:94
    {
      const int row = here(v9 + lane % 16);
      stmatrix_x2(bf16_15 + row * 32 + ((lane / 16) ^ (row / 4 & 1)) * 16, held_32 + 0);
    }
    // kernel.tw:95
    {
      const int row = here(v9 + lane % 8);
      stmatrix_x2_trans(bf16_15 + row * 32 + ((lane / 8 % 2) ^ (row / 4 & 1)) * 16, held_32 + 0);
    }
    // kernel.tw:96
    {
      const int row = here(v9 + lane % 16);
      ldmatrix_x4(bf16_15 + row * 32 + ((lane / 16) ^ (row / 4 & 1)) * 16, held_32 + 0);
    }
    // kernel.tw:97
    {
      const int row = here(v9 + lane % 8 + lane / 16 * 8);
      ldmatrix_x4_trans(bf16_15 + row * 32 + ((lane / 8 % 2) ^ (row / 4 & 1)) * 16, held_32 + 0);
    }
    // kernel.tw:98
    {
      const int row = here(v9 + lane % 16);
      ldmatrix_x2(bf16_15 + row * 32 + ((lane / 16) ^ (row / 4 & 1)) * 16, held_32 + 0);
    }
    // kernel.tw:99
    {
      const int row = here(v9 + lane % 8);
      ldmatrix_x2_trans(bf16_15 + row * 32 + ((lane / 8 % 2) ^ (row / 4 & 1)) * 16, held_32 + 0);
    }
    // kernel.tw:100
    u32 held_34[1];
    // kernel.tw:101
    const u32 v35 = pack_bf16(__int_as_float(0x7fc00000), 0.0f);
    // kernel.tw:102
    held_34[0] = pack_bf16(from_bf16(v35), from_bf16(v35));
    // kernel.tw:103
    compiler_fence();
    {
      const int c0 = v9 + lane / 4 + warp % 4 * 16;
      const int e0 = minimum(dim1, dim_rows);
      const int c1 = 2;
      const int e1 = 2;
      const int c2 = 0;
      const int e2 = dim_columns;
      u16* const first = bf16_out_1 + (i64)c0 * bf16_out_1_stride0 + (i64)c1 * bf16_out_1_stride1 + (i64)c2;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        const u32 element = c0 + i * 8 < e0 && c1 < e1 && c2 < e2 ? first[(i * 8) * bf16_out_1_stride0] : (u16)0;
        held_34[i / 2] = (i % 2 == 0 ? 0 : held_34[i / 2]) | element << i % 2 * 16;
      }
    }
    compiler_fence();
    // kernel.tw:104
    if (lane % 4 == 0) {
      const int c0 = here(v9 + lane / 4 + warp % 4 * 16);
      const int e0 = minimum(dim1, dim_rows);
      const int c1 = here(2);
      const int e1 = 2;
      const int c2 = here(0);
      const int e2 = dim_columns;
      u16* const first = bf16_out_1 + (i64)c0 * bf16_out_1_stride0 + (i64)c1 * bf16_out_1_stride1 + (i64)c2;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 + i * 8 < e0 && c1 < e1 && c2 < e2) first[(i * 8) * bf16_out_1_stride0] = (u16)(held_34[(i) / 2] >> (i) % 2 * 16);
      }
    }
    // kernel.tw:105
    u32 held_36[4];
    // kernel.tw:106
    const u32 v37 = pack_f16(__int_as_float(0x7fc00000), 0.0f);
    // kernel.tw:107
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      held_36[i / 2] = pack_f16(from_f16(v37), from_f16(v37));
    // kernel.tw:108
    compiler_fence();
    {
      const int c0 = v9 + lane / 4 + warp % 4 * 16;
      const int e0 = minimum(dim1, dim_rows);
      const int c1 = 2;
      const int e1 = 2;
      const int c2 = lane % 4 * 2;
      const int e2 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1 * f16_out_2_stride1 + (i64)c2;
      const bool aligned = (((u64)f16_out_2 | (u64)(f16_out_2_stride0 * 2) | (u64)(f16_out_2_stride1 * 2) | (u64)(c2 * 2)) & 3) == 0 && ((e2 - c2) & 1) == 0;
      #pragma unroll
      for (int i = 0; i < 8; i += 2) {
        load_vector_4(held_36 + i / 2, first + (i / 2 % 2 * 8) * f16_out_2_stride0 + (i % 2 + i / 4 * 8), aligned && c0 + i / 2 % 2 * 8 < e0 && c1 < e1 && c2 + i % 2 + i / 4 * 8 < e2);
      }
      if (!aligned) {
        #pragma unroll
        for (int i = 0; i < 8; ++i) {
          const u32 element = c0 + i / 2 % 2 * 8 < e0 && c1 < e1 && c2 + i % 2 + i / 4 * 8 < e2 ? first[(i / 2 % 2 * 8) * f16_out_2_stride0 + (i % 2 + i / 4 * 8)] : (u16)0;
          held_36[i / 2] = (i % 2 == 0 ? 0 : held_36[i / 2]) | element << i % 2 * 16;
        }
      }
    }
    compiler_fence();
    // kernel.tw:109
    {
      const int c0 = v9 + lane / 4 + warp % 4 * 16;
      const int e0 = minimum(dim1, dim_rows);
      const int c1 = 2;
      const int e1 = 2;
      const int c2 = lane % 4 * 2;
      const int e2 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1 * f16_out_2_stride1 + (i64)c2;
      const bool aligned = (((u64)first | (u64)(f16_out_2_stride0 * 2)) & 3) == 0;
      #pragma unroll
      for (int i = 0; i < 8; i += 2) {
        if (aligned && c0 + i / 2 % 2 * 8 < e0 && c1 < e1 && c2 + i % 2 + i / 4 * 8 + 2 <= e2) {
          store_vector_4(first + (i / 2 % 2 * 8) * f16_out_2_stride0 + (i % 2 + i / 4 * 8), held_36 + i / 2);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 2; ++j) {
            if (c0 + j / 2 % 2 * 8 < e0 && c1 < e1 && c2 + j % 2 + j / 4 * 8 < e2) first[(j / 2 % 2 * 8) * f16_out_2_stride0 + (j % 2 + j / 4 * 8)] = (u16)(held_36[(j) / 2] >> (j) % 2 * 16);
          }
        }
      }
    }
    // kernel.tw:110
    #pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int row = i / 2 % 2 * 8 + lane / 4 + warp % 4 * 16;
      const int column = i % 2 + i / 4 * 8 + lane % 4 * 2;
      const u32 address = f16_16 + row * 32 + column / 16 * 1024 + ((column % 16 * 2) ^ ((row / 4 & 1) * 16));
      store_shared(address, (u16)(held_36[i / 2] >> i % 2 * 16));
    }
    // kernel.tw:111
    #pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int row = i / 2 % 2 * 8 + lane / 4 + warp % 4 * 16;
      const int column = i % 2 + i / 4 * 8 + lane % 4 * 2;
      const u32 address = f16_16 + row * 32 + column / 16 * 1024 + ((column % 16 * 2) ^ ((row / 4 & 1) * 16));
      held_36[i / 2] = (i % 2 == 0 ? 0 : held_36[i / 2]) | (u32)load_shared<u16>(address) << i % 2 * 16;
    }
    // kernel.tw:112
    {
      const int row = here(v9 + lane % 16);
      stmatrix_x4(f16_16 + row * 32 + (lane / 16) * 16, held_36 + 0);
    }
    // kernel.tw:113
    {
      const int row = here(v9 + lane % 8 + lane / 16 * 8);
      stmatrix_x4_trans(f16_16 + row * 32 + (lane / 8 % 2) * 16, held_36 + 0);
    }
    // kernel.tw:114
    {
      const int row = here(v9 + lane % 16);
      stmatrix_x2(f16_16 + row * 32 + (lane / 16) * 16, held_36 + 0);
    }
    // kernel.tw:115
    {
      const int row = here(v9 + lane % 8);
      stmatrix_x2_trans(f16_16 + row * 32 + (lane / 8 % 2) * 16, held_36 + 0);
    }
    // kernel.tw:116
    {
      const int row = here(v9 + lane % 16);
      ldmatrix_x4(f16_16 + row * 32 + (lane / 16) * 16, held_36 + 0);
    }
    // kernel.tw:117
    {
      const int row = here(v9 + lane % 8 + lane / 16 * 8);
      ldmatrix_x4_trans(f16_16 + row * 32 + (lane / 8 % 2) * 16, held_36 + 0);
    }
    // kernel.tw:118
    {
      const int row = here(v9 + lane % 16);
      ldmatrix_x2(f16_16 + row * 32 + (lane / 16) * 16, held_36 + 0);
    }
    // kernel.tw:119
    {
      const int row = here(v9 + lane % 8);
      ldmatrix_x2_trans(f16_16 + row * 32 + (lane / 8 % 2) * 16, held_36 + 0);
    }
    // kernel.tw:120
    u32 held_38[4];
    // kernel.tw:121
    const u32 v39 = pack_f16(__int_as_float(0x7fc00000), 0.0f);
    // kernel.tw:122
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      held_38[i / 2] = pack_f16(from_f16(v39), from_f16(v39));
    // kernel.tw:123
    compiler_fence();
    {
      const int c0 = v9 + lane / 2 + warp % 4 * 16;
      const int e0 = minimum(dim1, dim_rows);
      const int c1 = 2;
      const int e1 = 2;
      const int c2 = lane % 2 * 8;
      const int e2 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1 * f16_out_2_stride1 + (i64)c2;
      const bool aligned = (((u64)f16_out_2 | (u64)(f16_out_2_stride0 * 2) | (u64)(f16_out_2_stride1 * 2) | (u64)(c2 * 2)) & 15) == 0 && ((e2 - c2) & 7) == 0;
      #pragma unroll
      for (int i = 0; i < 8; i += 8) {
        load_vector_16(held_38 + i / 2, first + (i), aligned && c0 < e0 && c1 < e1 && c2 + i < e2);
      }
      if (!aligned) {
        #pragma unroll
        for (int i = 0; i < 8; ++i) {
          const u32 element = c0 < e0 && c1 < e1 && c2 + i < e2 ? first[(i)] : (u16)0;
          held_38[i / 2] = (i % 2 == 0 ? 0 : held_38[i / 2]) | element << i % 2 * 16;
        }
      }
    }
    compiler_fence();
    // kernel.tw:124
    {
      const int c0 = v9 + lane / 2 + warp % 4 * 16;
      const int e0 = minimum(dim1, dim_rows);
      const int c1 = 2;
      const int e1 = 2;
      const int c2 = lane % 2 * 8;
      const int e2 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1 * f16_out_2_stride1 + (i64)c2;
      const bool aligned = (((u64)first) & 15) == 0;
      #pragma unroll
      for (int i = 0; i < 8; i += 8) {
        if (aligned && c0 < e0 && c1 < e1 && c2 + i + 8 <= e2) {
          store_vector_16(first + (i), held_38 + i / 2);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 8; ++j) {
            if (c0 < e0 && c1 < e1 && c2 + j < e2) first[(j)] = (u16)(held_38[(j) / 2] >> (j) % 2 * 16);
          }
        }
      }
    }
    // kernel.tw:125
    {
      const u32 begin = here(f16_16 + (lane / 2 + warp % 4 * 16) * 32 + (lane % 2 * 8) * 2);
      #pragma unroll
      for (int i = 0; i < 8; i += 2) {
        const u32 address = begin + i * 2;
        store_shared_4(address, held_38 + i / 2);
      }
    }
    // kernel.tw:126
    {
      const u32 begin = here(f16_16 + (lane / 2 + warp % 4 * 16) * 32 + (lane % 2 * 8) * 2);
      #pragma unroll
      for (int i = 0; i < 8; i += 2) {
        const u32 address = begin + i * 2;
        load_shared_4(address, held_38 + i / 2);
      }
    }
    // kernel.tw:127
    {
      const u32 begin = here(f16_16 + (lane / 2 + warp % 4 * 16) * 32 + (lane % 2 * 8) * 2);
      #pragma unroll
      for (int i = 0; i < 8; i += 4) {
        const u32 address = begin + i * 2;
        store_shared_8(address, held_38 + i / 2);
      }
    }
    // kernel.tw:128
    {
      const u32 begin = here(f16_16 + (lane / 2 + warp % 4 * 16) * 32 + (lane % 2 * 8) * 2);
      #pragma unroll
      for (int i = 0; i < 8; i += 4) {
        const u32 address = begin + i * 2;
        load_shared_8(address, held_38 + i / 2);
      }
    }
    // kernel.tw:129
    {
      const u32 begin = here(f16_16 + (lane / 2 + warp % 4 * 16) * 32 + (lane % 2 * 8) * 2);
      #pragma unroll
      for (int i = 0; i < 8; i += 8) {
        const u32 address = begin + i * 2;
        store_shared_16(address, held_38 + i / 2);
      }
    }
    // kernel.tw:130
    {
      const u32 begin = here(f16_16 + (lane / 2 + warp % 4 * 16) * 32 + (lane % 2 * 8) * 2);
      #pragma unroll
      for (int i = 0; i < 8; i += 8) {
        const u32 address = begin + i * 2;
        load_shared_16(address, held_38 + i / 2);
      }
    }
    // kernel.tw:131
    {
      const u32 begin = here(f16_16 + (lane / 2 + warp % 4 * 16) * 32 + (lane % 2 * 8) * 2);
      #pragma unroll
      for (int i = 0; i < 8; ++i) {
        const u32 address = begin + i * 2;
        store_shared(address, (u16)(held_38[i / 2] >> i % 2 * 16));
      }
    }
    // kernel.tw:132
    {
      const u32 begin = here(f16_16 + (lane / 2 + warp % 4 * 16) * 32 + (lane % 2 * 8) * 2);
      #pragma unroll
      for (int i = 0; i < 8; ++i) {
        const u32 address = begin + i * 2;
        held_38[i / 2] = (i % 2 == 0 ? 0 : held_38[i / 2]) | (u32)load_shared<u16>(address) << i % 2 * 16;
      }
    }
    // kernel.tw:133
    {
      const int row = here(v9 + lane % 16);
      stmatrix_x4(f16_16 + row * 32 + ((lane / 16) ^ (row / 4 & 1)) * 16, held_38 + 0);
    }
    // kernel.tw:134
    {
      const int row = here(v9 + lane % 8 + lane / 16 * 8);
      stmatrix_x4_trans(f16_16 + row * 32 + ((lane / 8 % 2) ^ (row / 4 & 1)) * 16, held_38 + 0);
    }
    // kernel.tw:135
    {
      const int row = here(v9 + lane % 16);
      stmatrix_x2(f16_16 + row * 32 + ((lane / 16) ^ (row / 4 & 1)) * 16, held_38 + 0);
    }
    // kernel.tw:136
    {
      const int row = here(v9 + lane % 8);
      stmatrix_x2_trans(f16_16 + row * 32 + ((lane / 8 % 2) ^ (row / 4 & 1)) * 16, held_38 + 0);
    }
    // kernel.tw:137
    {
      const int row = here(v9 + lane % 16);
      ldmatrix_x4(f16_16 + row * 32 + ((lane / 16) ^ (row / 4 & 1)) * 16, held_38 + 0);
    }
    // kernel.tw:138
    {
      const int row = here(v9 + lane % 8 + lane / 16 * 8);
      ldmatrix_x4_trans(f16_16 + row * 32 + ((lane / 8 % 2) ^ (row / 4 & 1)) * 16, held_38 + 0);
    }
    // kernel.tw:139
    {
      const int row = here(v9 + lane % 16);
      ldmatrix_x2(f16_16 + row * 32 + ((lane / 16) ^ (row / 4 & 1)) * 16, held_38 + 0);
    }
    // kernel.tw:140
    {
      const int row = here(v9 + lane % 8);
      ldmatrix_x2_trans(f16_16 + row * 32 + ((lane / 8 % 2) ^ (row / 4 & 1)) * 16, held_38 + 0);
    }
    // kernel.tw:141
    u32 held_40[1];
    // kernel.tw:142
    const u32 v41 = pack_f16(__int_as_float(0x7fc00000), 0.0f);
    // kernel.tw:143
    held_40[0] = pack_f16(from_f16(v41), from_f16(v41));
    // kernel.tw:144
    compiler_fence();
    {
      const int c0 = v9 + lane / 4 + warp % 4 * 16;
      const int e0 = minimum(dim1, dim_rows);
      const int c1 = 2;
      const int e1 = 2;
      const int c2 = 0;
      const int e2 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1 * f16_out_2_stride1 + (i64)c2;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        const u32 element = c0 + i * 8 < e0 && c1 < e1 && c2 < e2 ? first[(i * 8) * f16_out_2_stride0] : (u16)0;
        held_40[i / 2] = (i % 2 == 0 ? 0 : held_40[i / 2]) | element << i % 2 * 16;
      }
    }
    compiler_fence();
    // kernel.tw:145
    if (lane % 4 == 0) {
      const int c0 = here(v9 + lane / 4 + warp % 4 * 16);
      const int e0 = minimum(dim1, dim_rows);
      const int c1 = here(2);
      const int e1 = 2;
      const int c2 = here(0);
      const int e2 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1 * f16_out_2_stride1 + (i64)c2;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 + i * 8 < e0 && c1 < e1 && c2 < e2) first[(i * 8) * f16_out_2_stride0] = (u16)(held_40[(i) / 2] >> (i) % 2 * 16);
      }
    }
    // kernel.tw:146
    u32 held_42[2];
    // kernel.tw:147
    const u32 v43 = pack_e4m3(__int_as_float(0x7fc00000), 0.0f, 0.0f, 0.0f);
    // kernel.tw:148
    #pragma unroll
    for (int i = 0; i < 8; i += 4)
      held_42[i / 4] = pack_e4m3(from_e4m3(v43), from_e4m3(v43), from_e4m3(v43), from_e4m3(v43));
    // kernel.tw:149
    compiler_fence();
    {
      const int c0 = v9 + lane / 4 + warp % 4 * 16;
      const int e0 = minimum(dim1, dim_rows);
      const int c1 = 2;
      const int e1 = 2;
      const int c2 = lane % 4 * 2;
      const int e2 = dim_columns;
      u8* const first = e4m3_out_3 + (i64)c0 * e4m3_out_3_stride0 + (i64)c1 * e4m3_out_3_stride1 + (i64)c2;
      #pragma unroll
      for (int i = 0; i < 8; ++i) {
        const u32 element = c0 + i / 2 % 2 * 8 < e0 && c1 < e1 && c2 + i % 2 + i / 4 * 8 < e2 ? first[(i / 2 % 2 * 8) * e4m3_out_3_stride0 + (i % 2 + i / 4 * 8)] : (u8)0;
        held_42[i / 4] = (i % 4 == 0 ? 0 : held_42[i / 4]) | element << i % 4 * 8;
      }
    }
    compiler_fence();
    // kernel.tw:150
    {
      const int c0 = v9 + lane / 4 + warp % 4 * 16;
      const int e0 = minimum(dim1, dim_rows);
      const int c1 = 2;
      const int e1 = 2;
      const int c2 = lane % 4 * 2;
      const int e2 = dim_columns;
      u8* const first = e4m3_out_3 + (i64)c0 * e4m3_out_3_stride0 + (i64)c1 * e4m3_out_3_stride1 + (i64)c2;
      #pragma unroll
      for (int i = 0; i < 8; ++i) {
        if (c0 + i / 2 % 2 * 8 < e0 && c1 < e1 && c2 + i % 2 + i / 4 * 8 < e2) first[(i / 2 % 2 * 8) * e4m3_out_3_stride0 + (i % 2 + i / 4 * 8)] = (u8)(held_42[(i) / 4] >> (i) % 4 * 8);
      }
    }
    // kernel.tw:151
    #pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int row = i / 2 % 2 * 8 + lane / 4 + warp % 4 * 16;
      const int column = i % 2 + i / 4 * 8 + lane % 4 * 2;
      const u32 address = f8e4m3_17 + row * 16 + column / 16 * 1024 + ((column % 16 * 1) ^ ((row / 4 & 1) * 16));
      store_shared(address, (u8)(held_42[i / 4] >> i % 4 * 8));
    }
    // kernel.tw:152
    #pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int row = i / 2 % 2 * 8 + lane / 4 + warp % 4 * 16;
      const int column = i % 2 + i / 4 * 8 + lane % 4 * 2;
      const u32 address = f8e4m3_17 + row * 16 + column / 16 * 1024 + ((column % 16 * 1) ^ ((row / 4 & 1) * 16));
      held_42[i / 4] = (i % 4 == 0 ? 0 : held_42[i / 4]) | (u32)load_shared<u8>(address) << i % 4 * 8;
    }
    // kernel.tw:153
    u32 held_44[2];
    // kernel.tw:154
    const u32 v45 = pack_e4m3(__int_as_float(0x7fc00000), 0.0f, 0.0f, 0.0f);
    // kernel.tw:155
    #pragma unroll
    for (int i = 0; i < 8; i += 4)
      held_44[i / 4] = pack_e4m3(from_e4m3(v45), from_e4m3(v45), from_e4m3(v45), from_e4m3(v45));
    // kernel.tw:156
    compiler_fence();
    {
      const int c0 = v9 + lane / 2 + warp % 4 * 16;
      const int e0 = minimum(dim1, dim_rows);
      const int c1 = 2;
      const int e1 = 2;
      const int c2 = lane % 2 * 8;
      const int e2 = dim_columns;
      u8* const first = e4m3_out_3 + (i64)c0 * e4m3_out_3_stride0 + (i64)c1 * e4m3_out_3_stride1 + (i64)c2;
      const bool aligned = (((u64)e4m3_out_3 | (u64)(e4m3_out_3_stride0 * 1) | (u64)(e4m3_out_3_stride1 * 1) | (u64)(c2 * 1)) & 7) == 0 && ((e2 - c2) & 7) == 0;
      #pragma unroll
      for (int i = 0; i < 8; i += 8) {
        load_vector_8(held_44 + i / 4, first + (i), aligned && c0 < e0 && c1 < e1 && c2 + i < e2);
      }
      if (!aligned) {
        #pragma unroll
        for (int i = 0; i < 8; ++i) {
          const u32 element = c0 < e0 && c1 < e1 && c2 + i < e2 ? first[(i)] : (u8)0;
          held_44[i / 4] = (i % 4 == 0 ? 0 : held_44[i / 4]) | element << i % 4 * 8;
        }
      }
    }
    compiler_fence();
    // kernel.tw:157
    {
      const int c0 = v9 + lane / 2 + warp % 4 * 16;
      const int e0 = minimum(dim1, dim_rows);
      const int c1 = 2;
      const int e1 = 2;
      const int c2 = lane % 2 * 8;
      const int e2 = dim_columns;
      u8* const first = e4m3_out_3 + (i64)c0 * e4m3_out_3_stride0 + (i64)c1 * e4m3_out_3_stride1 + (i64)c2;
      const bool aligned = (((u64)first) & 7) == 0;
      #pragma unroll
      for (int i = 0; i < 8; i += 8) {
        if (aligned && c0 < e0 && c1 < e1 && c2 + i + 8 <= e2) {
          store_vector_8(first + (i), held_44 + i / 4);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 8; ++j) {
            if (c0 < e0 && c1 < e1 && c2 + j < e2) first[(j)] = (u8)(held_44[(j) / 4] >> (j) % 4 * 8);
          }
        }
      }
    }
    // kernel.tw:158
    {
      const u32 begin = here(f8e4m3_17 + (lane / 2 + warp % 4 * 16) * 16 + (lane % 2 * 8) * 1);
      #pragma unroll
      for (int i = 0; i < 8; i += 4) {
        const u32 address = begin + i * 1;
        store_shared_4(address, held_44 + i / 4);
      }
    }
    // kernel.tw:159
    {
      const u32 begin = here(f8e4m3_17 + (lane / 2 + warp % 4 * 16) * 16 + (lane % 2 * 8) * 1);
      #pragma unroll
      for (int i = 0; i < 8; i += 4) {
        const u32 address = begin + i * 1;
        load_shared_4(address, held_44 + i / 4);
      }
    }
    // kernel.tw:160
    {
      const u32 begin = here(f8e4m3_17 + (lane / 2 + warp % 4 * 16) * 16 + (lane % 2 * 8) * 1);
      #pragma unroll
      for (int i = 0; i < 8; i += 8) {
        const u32 address = begin + i * 1;
        store_shared_8(address, held_44 + i / 4);
      }
    }
    // kernel.tw:161
    {
      const u32 begin = here(f8e4m3_17 + (lane / 2 + warp % 4 * 16) * 16 + (lane % 2 * 8) * 1);
      #pragma unroll
      for (int i = 0; i < 8; i += 8) {
        const u32 address = begin + i * 1;
        load_shared_8(address, held_44 + i / 4);
      }
    }
    // kernel.tw:162
    {
      const u32 begin = here(f8e4m3_17 + (lane / 2 + warp % 4 * 16) * 16 + (lane % 2 * 8) * 1);
      #pragma unroll
      for (int i = 0; i < 8; ++i) {
        const u32 address = begin + i * 1;
        store_shared(address, (u8)(held_44[i / 4] >> i % 4 * 8));
      }
    }
    // kernel.tw:163
    {
      const u32 begin = here(f8e4m3_17 + (lane / 2 + warp % 4 * 16) * 16 + (lane % 2 * 8) * 1);
      #pragma unroll
      for (int i = 0; i < 8; ++i) {
        const u32 address = begin + i * 1;
        held_44[i / 4] = (i % 4 == 0 ? 0 : held_44[i / 4]) | (u32)load_shared<u8>(address) << i % 4 * 8;
      }
    }
    // kernel.tw:164
    u32 held_46[1];
    // kernel.tw:165
    const u32 v47 = pack_e4m3(__int_as_float(0x7fc00000), 0.0f, 0.0f, 0.0f);
    // kernel.tw:166
    held_46[0] = pack_e4m3(from_e4m3(v47), from_e4m3(v47), 0.0f, 0.0f);
    // kernel.tw:167
    compiler_fence();
    {
      const int c0 = v9 + lane / 4 + warp % 4 * 16;
      const int e0 = minimum(dim1, dim_rows);
      const int c1 = 2;
      const int e1 = 2;
      const int c2 = 0;
      const int e2 = dim_columns;
      u8* const first = e4m3_out_3 + (i64)c0 * e4m3_out_3_stride0 + (i64)c1 * e4m3_out_3_stride1 + (i64)c2;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        const u32 element = c0 + i * 8 < e0 && c1 < e1 && c2 < e2 ? first[(i * 8) * e4m3_out_3_stride0] : (u8)0;
        held_46[i / 4] = (i % 4 == 0 ? 0 : held_46[i / 4]) | element << i % 4 * 8;
      }
    }
    compiler_fence();
    // kernel.tw:168
    if (lane % 4 == 0) {
      const int c0 = here(v9 + lane / 4 + warp % 4 * 16);
      const int e0 = minimum(dim1, dim_rows);
      const int c1 = here(2);
      const int e1 = 2;
      const int c2 = here(0);
      const int e2 = dim_columns;
      u8* const first = e4m3_out_3 + (i64)c0 * e4m3_out_3_stride0 + (i64)c1 * e4m3_out_3_stride1 + (i64)c2;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 + i * 8 < e0 && c1 < e1 && c2 < e2) first[(i * 8) * e4m3_out_3_stride0] = (u8)(held_46[(i) / 4] >> (i) % 4 * 8);
      }
    }
    // kernel.tw:169
    int held_48[8];
    // kernel.tw:170
    const int v49 = __float2int_rn(__int_as_float(0x7fc00000));
    // kernel.tw:171
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      held_48[i] = v49;
    // kernel.tw:172
    compiler_fence();
    {
      const int c0 = v9 + lane / 4 + warp % 4 * 16;
      const int e0 = minimum(dim1, dim_rows);
      const int c1 = 2;
      const int e1 = 2;
      const int c2 = lane % 4 * 2;
      const int e2 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1 * i32_out_4_stride1 + (i64)c2;
      const bool aligned = (((u64)i32_out_4 | (u64)(i32_out_4_stride0 * 4) | (u64)(i32_out_4_stride1 * 4) | (u64)(c2 * 4)) & 7) == 0 && ((e2 - c2) & 1) == 0;
      #pragma unroll
      for (int i = 0; i < 8; i += 2) {
        load_vector_8(held_48 + i, first + (i / 2 % 2 * 8) * i32_out_4_stride0 + (i % 2 + i / 4 * 8), aligned && c0 + i / 2 % 2 * 8 < e0 && c1 < e1 && c2 + i % 2 + i / 4 * 8 < e2);
      }
      if (!aligned) {
        #pragma unroll
        for (int i = 0; i < 8; ++i) {
          held_48[i] = c0 + i / 2 % 2 * 8 < e0 && c1 < e1 && c2 + i % 2 + i / 4 * 8 < e2 ? first[(i / 2 % 2 * 8) * i32_out_4_stride0 + (i % 2 + i / 4 * 8)] : (int)0;
        }
      }
    }
    compiler_fence();
    // kernel.tw:173
    {
      const int c0 = v9 + lane / 4 + warp % 4 * 16;
      const int e0 = minimum(dim1, dim_rows);
      const int c1 = 2;
      const int e1 = 2;
      const int c2 = lane % 4 * 2;
      const int e2 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1 * i32_out_4_stride1 + (i64)c2;
      const bool aligned = (((u64)first | (u64)(i32_out_4_stride0 * 4)) & 7) == 0;
      #pragma unroll
      for (int i = 0; i < 8; i += 2) {
        if (aligned && c0 + i / 2 % 2 * 8 < e0 && c1 < e1 && c2 + i % 2 + i / 4 * 8 + 2 <= e2) {
          store_vector_8(first + (i / 2 % 2 * 8) * i32_out_4_stride0 + (i % 2 + i / 4 * 8), held_48 + i);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 2; ++j) {
            if (c0 + j / 2 % 2 * 8 < e0 && c1 < e1 && c2 + j % 2 + j / 4 * 8 < e2) first[(j / 2 % 2 * 8) * i32_out_4_stride0 + (j % 2 + j / 4 * 8)] = held_48[j];
          }
        }
      }
    }
    // kernel.tw:174
    #pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int row = i / 2 % 2 * 8 + lane / 4 + warp % 4 * 16;
      const int column = i % 2 + i / 4 * 8 + lane % 4 * 2;
      const u32 address = i32_18 + row * 64 + column / 16 * 1024 + ((column % 16 * 4) ^ ((row / 4 & 1) * 16));
      store_shared(address, held_48[i]);
    }
    // kernel.tw:175
    #pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int row = i / 2 % 2 * 8 + lane / 4 + warp % 4 * 16;
      const int column = i % 2 + i / 4 * 8 + lane % 4 * 2;
      const u32 address = i32_18 + row * 64 + column / 16 * 1024 + ((column % 16 * 4) ^ ((row / 4 & 1) * 16));
      held_48[i] = load_shared<int>(address);
    }
    // kernel.tw:176
    int held_50[8];
    // kernel.tw:177
    const int v51 = __float2int_rn(__int_as_float(0x7fc00000));
    // kernel.tw:178
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      held_50[i] = v51;
    // kernel.tw:179
    compiler_fence();
    {
      const int c0 = v9 + lane / 2 + warp % 4 * 16;
      const int e0 = minimum(dim1, dim_rows);
      const int c1 = 2;
      const int e1 = 2;
      const int c2 = lane % 2 * 8;
      const int e2 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1 * i32_out_4_stride1 + (i64)c2;
      const bool aligned = (((u64)i32_out_4 | (u64)(i32_out_4_stride0 * 4) | (u64)(i32_out_4_stride1 * 4) | (u64)(c2 * 4)) & 15) == 0 && ((e2 - c2) & 3) == 0;
      #pragma unroll
      for (int i = 0; i < 8; i += 4) {
        load_vector_16(held_50 + i, first + (i), aligned && c0 < e0 && c1 < e1 && c2 + i < e2);
      }
      if (!aligned) {
        #pragma unroll
        for (int i = 0; i < 8; ++i) {
          held_50[i] = c0 < e0 && c1 < e1 && c2 + i < e2 ? first[(i)] : (int)0;
        }
      }
    }
    compiler_fence();
    // kernel.tw:180
    {
      const int c0 = v9 + lane / 2 + warp % 4 * 16;
      const int e0 = minimum(dim1, dim_rows);
      const int c1 = 2;
      const int e1 = 2;
      const int c2 = lane % 2 * 8;
      const int e2 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1 * i32_out_4_stride1 + (i64)c2;
      const bool aligned = (((u64)first) & 15) == 0;
      #pragma unroll
      for (int i = 0; i < 8; i += 4) {
        if (aligned && c0 < e0 && c1 < e1 && c2 + i + 4 <= e2) {
          store_vector_16(first + (i), held_50 + i);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 4; ++j) {
            if (c0 < e0 && c1 < e1 && c2 + j < e2) first[(j)] = held_50[j];
          }
        }
      }
    }
    // kernel.tw:181
    {
      const u32 begin = here(i32_18 + (lane / 2 + warp % 4 * 16) * 64 + (lane % 2 * 8) * 4);
      #pragma unroll
      for (int i = 0; i < 8; i += 2) {
        const u32 address = begin + i * 4;
        store_shared_8(address, held_50 + i);
      }
    }
    // kernel.tw:182
    {
      const u32 begin = here(i32_18 + (lane / 2 + warp % 4 * 16) * 64 + (lane % 2 * 8) * 4);
      #pragma unroll
      for (int i = 0; i < 8; i += 2) {
        const u32 address = begin + i * 4;
        load_shared_8(address, held_50 + i);
      }
    }
    // kernel.tw:183
    {
      const u32 begin = here(i32_18 + (lane / 2 + warp % 4 * 16) * 64 + (lane % 2 * 8) * 4);
      #pragma unroll
      for (int i = 0; i < 8; i += 4) {
        const u32 address = begin + i * 4;
        store_shared_16(address, held_50 + i);
      }
    }
    // kernel.tw:184
    {
      const u32 begin = here(i32_18 + (lane / 2 + warp % 4 * 16) * 64 + (lane % 2 * 8) * 4);
      #pragma unroll
      for (int i = 0; i < 8; i += 4) {
        const u32 address = begin + i * 4;
        load_shared_16(address, held_50 + i);
      }
    }
    // kernel.tw:185
    {
      const u32 begin = here(i32_18 + (lane / 2 + warp % 4 * 16) * 64 + (lane % 2 * 8) * 4);
      #pragma unroll
      for (int i = 0; i < 8; ++i) {
        const u32 address = begin + i * 4;
        store_shared(address, held_50[i]);
      }
    }
    // kernel.tw:186
    {
      const u32 begin = here(i32_18 + (lane / 2 + warp % 4 * 16) * 64 + (lane % 2 * 8) * 4);
      #pragma unroll
      for (int i = 0; i < 8; ++i) {
        const u32 address = begin + i * 4;
        held_50[i] = load_shared<int>(address);
      }
    }
    // kernel.tw:187
    int held_52[2];
    // kernel.tw:188
    const int v53 = __float2int_rn(__int_as_float(0x7fc00000));
    // kernel.tw:189
    #pragma unroll
    for (int i = 0; i < 2; ++i)
      held_52[i] = v53;
    // kernel.tw:190
    compiler_fence();
    {
      const int c0 = v9 + lane / 4 + warp % 4 * 16;
      const int e0 = minimum(dim1, dim_rows);
      const int c1 = 2;
      const int e1 = 2;
      const int c2 = 0;
      const int e2 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1 * i32_out_4_stride1 + (i64)c2;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        held_52[i] = c0 + i * 8 < e0 && c1 < e1 && c2 < e2 ? first[(i * 8) * i32_out_4_stride0] : (int)0;
      }
    }
    compiler_fence();
    // kernel.tw:191
    if (lane % 4 == 0) {
      const int c0 = here(v9 + lane / 4 + warp % 4 * 16);
      const int e0 = minimum(dim1, dim_rows);
      const int c1 = here(2);
      const int e1 = 2;
      const int c2 = here(0);
      const int e2 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1 * i32_out_4_stride1 + (i64)c2;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 + i * 8 < e0 && c1 < e1 && c2 < e2) first[(i * 8) * i32_out_4_stride0] = held_52[i];
      }
    }
    // kernel.tw:192
    i64 held_54[8];
    // kernel.tw:193
    const i64 v55 = __float2ll_rn(__int_as_float(0x7fc00000));
    // kernel.tw:194
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      held_54[i] = v55;
    // kernel.tw:195
    compiler_fence();
    {
      const int c0 = v9 + lane / 4 + warp % 4 * 16;
      const int e0 = minimum(dim1, dim_rows);
      const int c1 = 2;
      const int e1 = 2;
      const int c2 = lane % 4 * 2;
      const int e2 = dim_columns;
      i64* const first = i64_out_5 + (i64)c0 * i64_out_5_stride0 + (i64)c1 * i64_out_5_stride1 + (i64)c2;
      #pragma unroll
      for (int i = 0; i < 8; ++i) {
        held_54[i] = c0 + i / 2 % 2 * 8 < e0 && c1 < e1 && c2 + i % 2 + i / 4 * 8 < e2 ? first[(i / 2 % 2 * 8) * i64_out_5_stride0 + (i % 2 + i / 4 * 8)] : (i64)0;
      }
    }
    compiler_fence();
    // kernel.tw:196
    {
      const int c0 = v9 + lane / 4 + warp % 4 * 16;
      const int e0 = minimum(dim1, dim_rows);
      const int c1 = 2;
      const int e1 = 2;
      const int c2 = lane % 4 * 2;
      const int e2 = dim_columns;
      i64* const first = i64_out_5 + (i64)c0 * i64_out_5_stride0 + (i64)c1 * i64_out_5_stride1 + (i64)c2;
      #pragma unroll
      for (int i = 0; i < 8; ++i) {
        if (c0 + i / 2 % 2 * 8 < e0 && c1 < e1 && c2 + i % 2 + i / 4 * 8 < e2) first[(i / 2 % 2 * 8) * i64_out_5_stride0 + (i % 2 + i / 4 * 8)] = held_54[i];
      }
    }
    // kernel.tw:197
    #pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int row = i / 2 % 2 * 8 + lane / 4 + warp % 4 * 16;
      const int column = i % 2 + i / 4 * 8 + lane % 4 * 2;
      const u32 address = i64_19 + row * 128 + column / 16 * 1024 + ((column % 16 * 8) ^ ((row / 4 & 1) * 16));
      store_shared(address, held_54[i]);
    }
    // kernel.tw:198
    #pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int row = i / 2 % 2 * 8 + lane / 4 + warp % 4 * 16;
      const int column = i % 2 + i / 4 * 8 + lane % 4 * 2;
      const u32 address = i64_19 + row * 128 + column / 16 * 1024 + ((column % 16 * 8) ^ ((row / 4 & 1) * 16));
      held_54[i] = load_shared<i64>(address);
    }
    // kernel.tw:199
    i64 held_56[8];
    // kernel.tw:200
    const i64 v57 = __float2ll_rn(__int_as_float(0x7fc00000));
    // kernel.tw:201
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      held_56[i] = v57;
    // kernel.tw:202
    compiler_fence();
    {
      const int c0 = v9 + lane / 2 + warp % 4 * 16;
      const int e0 = minimum(dim1, dim_rows);
      const int c1 = 2;
      const int e1 = 2;
      const int c2 = lane % 2 * 8;
      const int e2 = dim_columns;
      i64* const first = i64_out_5 + (i64)c0 * i64_out_5_stride0 + (i64)c1 * i64_out_5_stride1 + (i64)c2;
      #pragma unroll
      for (int i = 0; i < 8; ++i) {
        held_56[i] = c0 < e0 && c1 < e1 && c2 + i < e2 ? first[(i)] : (i64)0;
      }
    }
    compiler_fence();
    // kernel.tw:203
    {
      const int c0 = v9 + lane / 2 + warp % 4 * 16;
      const int e0 = minimum(dim1, dim_rows);
      const int c1 = 2;
      const int e1 = 2;
      const int c2 = lane % 2 * 8;
      const int e2 = dim_columns;
      i64* const first = i64_out_5 + (i64)c0 * i64_out_5_stride0 + (i64)c1 * i64_out_5_stride1 + (i64)c2;
      #pragma unroll
      for (int i = 0; i < 8; ++i) {
        if (c0 < e0 && c1 < e1 && c2 + i < e2) first[(i)] = held_56[i];
      }
    }
    // kernel.tw:204
    {
      const u32 begin = here(i64_19 + (lane / 2 + warp % 4 * 16) * 128 + (lane % 2 * 8) * 8);
      #pragma unroll
      for (int i = 0; i < 8; ++i) {
        const u32 address = begin + i * 8;
        store_shared(address, held_56[i]);
      }
    }
    // kernel.tw:205
    {
      const u32 begin = here(i64_19 + (lane / 2 + warp % 4 * 16) * 128 + (lane % 2 * 8) * 8);
      #pragma unroll
      for (int i = 0; i < 8; ++i) {
        const u32 address = begin + i * 8;
        held_56[i] = load_shared<i64>(address);
      }
    }
    // kernel.tw:206
    i64 held_58[2];
    // kernel.tw:207
    const i64 v59 = __float2ll_rn(__int_as_float(0x7fc00000));
    // kernel.tw:208
    #pragma unroll
    for (int i = 0; i < 2; ++i)
      held_58[i] = v59;
    // kernel.tw:209
    compiler_fence();
    {
      const int c0 = v9 + lane / 4 + warp % 4 * 16;
      const int e0 = minimum(dim1, dim_rows);
      const int c1 = 2;
      const int e1 = 2;
      const int c2 = 0;
      const int e2 = dim_columns;
      i64* const first = i64_out_5 + (i64)c0 * i64_out_5_stride0 + (i64)c1 * i64_out_5_stride1 + (i64)c2;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        held_58[i] = c0 + i * 8 < e0 && c1 < e1 && c2 < e2 ? first[(i * 8) * i64_out_5_stride0] : (i64)0;
      }
    }
    compiler_fence();
    // kernel.tw:210
    if (lane % 4 == 0) {
      const int c0 = here(v9 + lane / 4 + warp % 4 * 16);
      const int e0 = minimum(dim1, dim_rows);
      const int c1 = here(2);
      const int e1 = 2;
      const int c2 = here(0);
      const int e2 = dim_columns;
      i64* const first = i64_out_5 + (i64)c0 * i64_out_5_stride0 + (i64)c1 * i64_out_5_stride1 + (i64)c2;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 + i * 8 < e0 && c1 < e1 && c2 < e2) first[(i * 8) * i64_out_5_stride0] = held_58[i];
      }
    }
    // kernel.tw:211
    u32 held_60[2];
    // kernel.tw:212
    const u32 v61 = pack_bytes(round_i8(__int_as_float(0x7fc00000)), 0, 0, 0);
    // kernel.tw:213
    #pragma unroll
    for (int i = 0; i < 8; i += 4)
      held_60[i / 4] = pack_bytes(from_i8(v61), from_i8(v61), from_i8(v61), from_i8(v61));
    // kernel.tw:214
    compiler_fence();
    {
      const int c0 = v9 + lane / 4 + warp % 4 * 16;
      const int e0 = minimum(dim1, dim_rows);
      const int c1 = 2;
      const int e1 = 2;
      const int c2 = lane % 4 * 2;
      const int e2 = dim_columns;
      u8* const first = i8_out_6 + (i64)c0 * i8_out_6_stride0 + (i64)c1 * i8_out_6_stride1 + (i64)c2;
      #pragma unroll
      for (int i = 0; i < 8; ++i) {
        const u32 element = c0 + i / 2 % 2 * 8 < e0 && c1 < e1 && c2 + i % 2 + i / 4 * 8 < e2 ? first[(i / 2 % 2 * 8) * i8_out_6_stride0 + (i % 2 + i / 4 * 8)] : (u8)0;
        held_60[i / 4] = (i % 4 == 0 ? 0 : held_60[i / 4]) | element << i % 4 * 8;
      }
    }
    compiler_fence();
    // kernel.tw:215
    {
      const int c0 = v9 + lane / 4 + warp % 4 * 16;
      const int e0 = minimum(dim1, dim_rows);
      const int c1 = 2;
      const int e1 = 2;
      const int c2 = lane % 4 * 2;
      const int e2 = dim_columns;
      u8* const first = i8_out_6 + (i64)c0 * i8_out_6_stride0 + (i64)c1 * i8_out_6_stride1 + (i64)c2;
      #pragma unroll
      for (int i = 0; i < 8; ++i) {
        if (c0 + i / 2 % 2 * 8 < e0 && c1 < e1 && c2 + i % 2 + i / 4 * 8 < e2) first[(i / 2 % 2 * 8) * i8_out_6_stride0 + (i % 2 + i / 4 * 8)] = (u8)(held_60[(i) / 4] >> (i) % 4 * 8);
      }
    }
    // kernel.tw:216
    #pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int row = i / 2 % 2 * 8 + lane / 4 + warp % 4 * 16;
      const int column = i % 2 + i / 4 * 8 + lane % 4 * 2;
      const u32 address = i8_20 + row * 16 + column / 16 * 1024 + ((column % 16 * 1) ^ ((row / 4 & 1) * 16));
      store_shared(address, (u8)(held_60[i / 4] >> i % 4 * 8));
    }
    // kernel.tw:217
    #pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int row = i / 2 % 2 * 8 + lane / 4 + warp % 4 * 16;
      const int column = i % 2 + i / 4 * 8 + lane % 4 * 2;
      const u32 address = i8_20 + row * 16 + column / 16 * 1024 + ((column % 16 * 1) ^ ((row / 4 & 1) * 16));
      held_60[i / 4] = (i % 4 == 0 ? 0 : held_60[i / 4]) | (u32)load_shared<u8>(address) << i % 4 * 8;
    }
    // kernel.tw:218
    u32 held_62[2];
    // kernel.tw:219
    const u32 v63 = pack_bytes(round_i8(__int_as_float(0x7fc00000)), 0, 0, 0);
    // kernel.tw:220
    #pragma unroll
    for (int i = 0; i < 8; i += 4)
      held_62[i / 4] = pack_bytes(from_i8(v63), from_i8(v63), from_i8(v63), from_i8(v63));
    // kernel.tw:221
    compiler_fence();
    {
      const int c0 = v9 + lane / 2 + warp % 4 * 16;
      const int e0 = minimum(dim1, dim_rows);
      const int c1 = 2;
      const int e1 = 2;
      const int c2 = lane % 2 * 8;
      const int e2 = dim_columns;
      u8* const first = i8_out_6 + (i64)c0 * i8_out_6_stride0 + (i64)c1 * i8_out_6_stride1 + (i64)c2;
      const bool aligned = (((u64)i8_out_6 | (u64)(i8_out_6_stride0 * 1) | (u64)(i8_out_6_stride1 * 1) | (u64)(c2 * 1)) & 7) == 0 && ((e2 - c2) & 7) == 0;
      #pragma unroll
      for (int i = 0; i < 8; i += 8) {
        load_vector_8(held_62 + i / 4, first + (i), aligned && c0 < e0 && c1 < e1 && c2 + i < e2);
      }
      if (!aligned) {
        #pragma unroll
        for (int i = 0; i < 8; ++i) {
          const u32 element = c0 < e0 && c1 < e1 && c2 + i < e2 ? first[(i)] : (u8)0;
          held_62[i / 4] = (i % 4 == 0 ? 0 : held_62[i / 4]) | element << i % 4 * 8;
        }
      }
    }
    compiler_fence();
    // kernel.tw:222
    {
      const int c0 = v9 + lane / 2 + warp % 4 * 16;
      const int e0 = minimum(dim1, dim_rows);
      const int c1 = 2;
      const int e1 = 2;
      const int c2 = lane % 2 * 8;
      const int e2 = dim_columns;
      u8* const first = i8_out_6 + (i64)c0 * i8_out_6_stride0 + (i64)c1 * i8_out_6_stride1 + (i64)c2;
      const bool aligned = (((u64)first) & 7) == 0;
      #pragma unroll
      for (int i = 0; i < 8; i += 8) {
        if (aligned && c0 < e0 && c1 < e1 && c2 + i + 8 <= e2) {
          store_vector_8(first + (i), held_62 + i / 4);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 8; ++j) {
            if (c0 < e0 && c1 < e1 && c2 + j < e2) first[(j)] = (u8)(held_62[(j) / 4] >> (j) % 4 * 8);
          }
        }
      }
    }
    // kernel.tw:223
    {
      const u32 begin = here(i8_20 + (lane / 2 + warp % 4 * 16) * 16 + (lane % 2 * 8) * 1);
      #pragma unroll
      for (int i = 0; i < 8; i += 4) {
        const u32 address = begin + i * 1;
        store_shared_4(address, held_62 + i / 4);
      }
    }
    // kernel.tw:224
    {
      const u32 begin = here(i8_20 + (lane / 2 + warp % 4 * 16) * 16 + (lane % 2 * 8) * 1);
      #pragma unroll
      for (int i = 0; i < 8; i += 4) {
        const u32 address = begin + i * 1;
        load_shared_4(address, held_62 + i / 4);
      }
    }
    // kernel.tw:225
    {
      const u32 begin = here(i8_20 + (lane / 2 + warp % 4 * 16) * 16 + (lane % 2 * 8) * 1);
      #pragma unroll
      for (int i = 0; i < 8; i += 8) {
        const u32 address = begin + i * 1;
        store_shared_8(address, held_62 + i / 4);
      }
    }
    // kernel.tw:226
    {
      const u32 begin = here(i8_20 + (lane / 2 + warp % 4 * 16) * 16 + (lane % 2 * 8) * 1);
      #pragma unroll
      for (int i = 0; i < 8; i += 8) {
        const u32 address = begin + i * 1;
        load_shared_8(address, held_62 + i / 4);
      }
    }
    // kernel.tw:227
    {
      const u32 begin = here(i8_20 + (lane / 2 + warp % 4 * 16) * 16 + (lane % 2 * 8) * 1);
      #pragma unroll
      for (int i = 0; i < 8; ++i) {
        const u32 address = begin + i * 1;
        store_shared(address, (u8)(held_62[i / 4] >> i % 4 * 8));
      }
    }
    // kernel.tw:228
    {
      const u32 begin = here(i8_20 + (lane / 2 + warp % 4 * 16) * 16 + (lane % 2 * 8) * 1);
      #pragma unroll
      for (int i = 0; i < 8; ++i) {
        const u32 address = begin + i * 1;
        held_62[i / 4] = (i % 4 == 0 ? 0 : held_62[i / 4]) | (u32)load_shared<u8>(address) << i % 4 * 8;
      }
    }
    // kernel.tw:229
    u32 held_64[1];
    // kernel.tw:230
    const u32 v65 = pack_bytes(round_i8(__int_as_float(0x7fc00000)), 0, 0, 0);
    // kernel.tw:231
    held_64[0] = pack_bytes(from_i8(v65), from_i8(v65), 0, 0);
    // kernel.tw:232
    compiler_fence();
    {
      const int c0 = v9 + lane / 4 + warp % 4 * 16;
      const int e0 = minimum(dim1, dim_rows);
      const int c1 = 2;
      const int e1 = 2;
      const int c2 = 0;
      const int e2 = dim_columns;
      u8* const first = i8_out_6 + (i64)c0 * i8_out_6_stride0 + (i64)c1 * i8_out_6_stride1 + (i64)c2;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        const u32 element = c0 + i * 8 < e0 && c1 < e1 && c2 < e2 ? first[(i * 8) * i8_out_6_stride0] : (u8)0;
        held_64[i / 4] = (i % 4 == 0 ? 0 : held_64[i / 4]) | element << i % 4 * 8;
      }
    }
    compiler_fence();
    // kernel.tw:233
    if (lane % 4 == 0) {
      const int c0 = here(v9 + lane / 4 + warp % 4 * 16);
      const int e0 = minimum(dim1, dim_rows);
      const int c1 = here(2);
      const int e1 = 2;
      const int c2 = here(0);
      const int e2 = dim_columns;
      u8* const first = i8_out_6 + (i64)c0 * i8_out_6_stride0 + (i64)c1 * i8_out_6_stride1 + (i64)c2;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 + i * 8 < e0 && c1 < e1 && c2 < e2) first[(i * 8) * i8_out_6_stride0] = (u8)(held_64[(i) / 4] >> (i) % 4 * 8);
      }
    }
    // kernel.tw:234
    u32 held_66[2];
    // kernel.tw:235
    const u32 v67 = pack_bytes(round_u8(__int_as_float(0x7fc00000)), 0, 0, 0);
    // kernel.tw:236
    #pragma unroll
    for (int i = 0; i < 8; i += 4)
      held_66[i / 4] = pack_bytes(from_u8(v67), from_u8(v67), from_u8(v67), from_u8(v67));
    // kernel.tw:237
    compiler_fence();
    {
      const int c0 = v9 + lane / 4 + warp % 4 * 16;
      const int e0 = minimum(dim1, dim_rows);
      const int c1 = 2;
      const int e1 = 2;
      const int c2 = lane % 4 * 2;
      const int e2 = dim_columns;
      u8* const first = u8_out_7 + (i64)c0 * u8_out_7_stride0 + (i64)c1 * u8_out_7_stride1 + (i64)c2;
      #pragma unroll
      for (int i = 0; i < 8; ++i) {
        const u32 element = c0 + i / 2 % 2 * 8 < e0 && c1 < e1 && c2 + i % 2 + i / 4 * 8 < e2 ? first[(i / 2 % 2 * 8) * u8_out_7_stride0 + (i % 2 + i / 4 * 8)] : (u8)0;
        held_66[i / 4] = (i % 4 == 0 ? 0 : held_66[i / 4]) | element << i % 4 * 8;
      }
    }
    compiler_fence();
    // kernel.tw:238
    {
      const int c0 = v9 + lane / 4 + warp % 4 * 16;
      const int e0 = minimum(dim1, dim_rows);
      const int c1 = 2;
      const int e1 = 2;
      const int c2 = lane % 4 * 2;
      const int e2 = dim_columns;
      u8* const first = u8_out_7 + (i64)c0 * u8_out_7_stride0 + (i64)c1 * u8_out_7_stride1 + (i64)c2;
      #pragma unroll
      for (int i = 0; i < 8; ++i) {
        if (c0 + i / 2 % 2 * 8 < e0 && c1 < e1 && c2 + i % 2 + i / 4 * 8 < e2) first[(i / 2 % 2 * 8) * u8_out_7_stride0 + (i % 2 + i / 4 * 8)] = (u8)(held_66[(i) / 4] >> (i) % 4 * 8);
      }
    }
    // kernel.tw:239
    #pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int row = i / 2 % 2 * 8 + lane / 4 + warp % 4 * 16;
      const int column = i % 2 + i / 4 * 8 + lane % 4 * 2;
      const u32 address = u8_21 + row * 16 + column / 16 * 1024 + ((column % 16 * 1) ^ ((row / 4 & 1) * 16));
      store_shared(address, (u8)(held_66[i / 4] >> i % 4 * 8));
    }
    // kernel.tw:240
    #pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int row = i / 2 % 2 * 8 + lane / 4 + warp % 4 * 16;
      const int column = i % 2 + i / 4 * 8 + lane % 4 * 2;
      const u32 address = u8_21 + row * 16 + column / 16 * 1024 + ((column % 16 * 1) ^ ((row / 4 & 1) * 16));
      held_66[i / 4] = (i % 4 == 0 ? 0 : held_66[i / 4]) | (u32)load_shared<u8>(address) << i % 4 * 8;
    }
    // kernel.tw:241
    u32 held_68[2];
    // kernel.tw:242
    const u32 v69 = pack_bytes(round_u8(__int_as_float(0x7fc00000)), 0, 0, 0);
    // kernel.tw:243
    #pragma unroll
    for (int i = 0; i < 8; i += 4)
      held_68[i / 4] = pack_bytes(from_u8(v69), from_u8(v69), from_u8(v69), from_u8(v69));
    // kernel.tw:244
    compiler_fence();
    {
      const int c0 = v9 + lane / 2 + warp % 4 * 16;
      const int e0 = minimum(dim1, dim_rows);
      const int c1 = 2;
      const int e1 = 2;
      const int c2 = lane % 2 * 8;
      const int e2 = dim_columns;
      u8* const first = u8_out_7 + (i64)c0 * u8_out_7_stride0 + (i64)c1 * u8_out_7_stride1 + (i64)c2;
      const bool aligned = (((u64)u8_out_7 | (u64)(u8_out_7_stride0 * 1) | (u64)(u8_out_7_stride1 * 1) | (u64)(c2 * 1)) & 7) == 0 && ((e2 - c2) & 7) == 0;
      #pragma unroll
      for (int i = 0; i < 8; i += 8) {
        load_vector_8(held_68 + i / 4, first + (i), aligned && c0 < e0 && c1 < e1 && c2 + i < e2);
      }
      if (!aligned) {
        #pragma unroll
        for (int i = 0; i < 8; ++i) {
          const u32 element = c0 < e0 && c1 < e1 && c2 + i < e2 ? first[(i)] : (u8)0;
          held_68[i / 4] = (i % 4 == 0 ? 0 : held_68[i / 4]) | element << i % 4 * 8;
        }
      }
    }
    compiler_fence();
    // kernel.tw:245
    {
      const int c0 = v9 + lane / 2 + warp % 4 * 16;
      const int e0 = minimum(dim1, dim_rows);
      const int c1 = 2;
      const int e1 = 2;
      const int c2 = lane % 2 * 8;
      const int e2 = dim_columns;
      u8* const first = u8_out_7 + (i64)c0 * u8_out_7_stride0 + (i64)c1 * u8_out_7_stride1 + (i64)c2;
      const bool aligned = (((u64)first) & 7) == 0;
      #pragma unroll
      for (int i = 0; i < 8; i += 8) {
        if (aligned && c0 < e0 && c1 < e1 && c2 + i + 8 <= e2) {
          store_vector_8(first + (i), held_68 + i / 4);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 8; ++j) {
            if (c0 < e0 && c1 < e1 && c2 + j < e2) first[(j)] = (u8)(held_68[(j) / 4] >> (j) % 4 * 8);
          }
        }
      }
    }
    // kernel.tw:246
    {
      const u32 begin = here(u8_21 + (lane / 2 + warp % 4 * 16) * 16 + (lane % 2 * 8) * 1);
      #pragma unroll
      for (int i = 0; i < 8; i += 4) {
        const u32 address = begin + i * 1;
        store_shared_4(address, held_68 + i / 4);
      }
    }
    // kernel.tw:247
    {
      const u32 begin = here(u8_21 + (lane / 2 + warp % 4 * 16) * 16 + (lane % 2 * 8) * 1);
      #pragma unroll
      for (int i = 0; i < 8; i += 4) {
        const u32 address = begin + i * 1;
        load_shared_4(address, held_68 + i / 4);
      }
    }
    // kernel.tw:248
    {
      const u32 begin = here(u8_21 + (lane / 2 + warp % 4 * 16) * 16 + (lane % 2 * 8) * 1);
      #pragma unroll
      for (int i = 0; i < 8; i += 8) {
        const u32 address = begin + i * 1;
        store_shared_8(address, held_68 + i / 4);
      }
    }
    // kernel.tw:249
    {
      const u32 begin = here(u8_21 + (lane / 2 + warp % 4 * 16) * 16 + (lane % 2 * 8) * 1);
      #pragma unroll
      for (int i = 0; i < 8; i += 8) {
        const u32 address = begin + i * 1;
        load_shared_8(address, held_68 + i / 4);
      }
    }
    // kernel.tw:250
    {
      const u32 begin = here(u8_21 + (lane / 2 + warp % 4 * 16) * 16 + (lane % 2 * 8) * 1);
      #pragma unroll
      for (int i = 0; i < 8; ++i) {
        const u32 address = begin + i * 1;
        store_shared(address, (u8)(held_68[i / 4] >> i % 4 * 8));
      }
    }
    // kernel.tw:251
    {
      const u32 begin = here(u8_21 + (lane / 2 + warp % 4 * 16) * 16 + (lane % 2 * 8) * 1);
      #pragma unroll
      for (int i = 0; i < 8; ++i) {
        const u32 address = begin + i * 1;
        held_68[i / 4] = (i % 4 == 0 ? 0 : held_68[i / 4]) | (u32)load_shared<u8>(address) << i % 4 * 8;
      }
    }
    // kernel.tw:252
    u32 held_70[1];
    // kernel.tw:253
    const u32 v71 = pack_bytes(round_u8(__int_as_float(0x7fc00000)), 0, 0, 0);
    // kernel.tw:254
    held_70[0] = pack_bytes(from_u8(v71), from_u8(v71), 0, 0);
    // kernel.tw:255
    compiler_fence();
    {
      const int c0 = v9 + lane / 4 + warp % 4 * 16;
      const int e0 = minimum(dim1, dim_rows);
      const int c1 = 2;
      const int e1 = 2;
      const int c2 = 0;
      const int e2 = dim_columns;
      u8* const first = u8_out_7 + (i64)c0 * u8_out_7_stride0 + (i64)c1 * u8_out_7_stride1 + (i64)c2;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        const u32 element = c0 + i * 8 < e0 && c1 < e1 && c2 < e2 ? first[(i * 8) * u8_out_7_stride0] : (u8)0;
        held_70[i / 4] = (i % 4 == 0 ? 0 : held_70[i / 4]) | element << i % 4 * 8;
      }
    }
    compiler_fence();
    // kernel.tw:256
    if (lane % 4 == 0) {
      const int c0 = here(v9 + lane / 4 + warp % 4 * 16);
      const int e0 = minimum(dim1, dim_rows);
      const int c1 = here(2);
      const int e1 = 2;
      const int c2 = here(0);
      const int e2 = dim_columns;
      u8* const first = u8_out_7 + (i64)c0 * u8_out_7_stride0 + (i64)c1 * u8_out_7_stride1 + (i64)c2;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 + i * 8 < e0 && c1 < e1 && c2 < e2) first[(i * 8) * u8_out_7_stride0] = (u8)(held_70[(i) / 4] >> (i) % 4 * 8);
      }
    }
  }
}
