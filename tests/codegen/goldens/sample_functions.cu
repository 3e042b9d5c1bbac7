// functions: 128 threads, 0 bytes of shared memory.
#pragma nv_diag_suppress 177
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
template <typename T>
__device__ __forceinline__ T floor_div(T a, T b) {
  const T q = a / b;
  return q - (T)(a % b != 0 && (a < 0) != (b < 0));
}
template <typename T>
__device__ __forceinline__ T floor_mod(T a, T b) {
  return a - floor_div(a, b) * b;
}
template <typename T>
__device__ __forceinline__ T ceil_div(T a, T b) {
  const T q = a / b;
  return q + (T)(a % b != 0 && (a < 0) == (b < 0));
}
template <typename T>
__device__ __forceinline__ T minimum(T a, T b) {
  return a < b ? a : b;
}
template <typename T>
__device__ __forceinline__ T maximum(T a, T b) {
  return a < b ? b : a;
}
__device__ __forceinline__ int shift_left(int a, int b) { return (u32)b < 32 ? (int)((u32)a << b) : 0; }
__device__ __forceinline__ i64 shift_left(i64 a, i64 b) { return (u64)b < 64 ? (i64)((u64)a << b) : 0; }
__device__ __forceinline__ int shift_right(int a, int b) { return a >> ((u32)b < 32 ? b : 31); }
__device__ __forceinline__ i64 shift_right(i64 a, i64 b) { return a >> ((u64)b < 64 ? b : 63); }
__device__ __forceinline__ float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
// 2^floor(x) times a polynomial of what is left. From -127 down it is 0, from 128 up infinity.
__device__ __forceinline__ float exp2_polynomial(float x) {
  float y;
  asm("{ .reg .f32 limited, turned, rest, sum;\n"
      ".reg .b32 power;\n"
      "max.NaN.f32 limited, %1, 0fC2FE0000;\n"
      "min.NaN.f32 limited, limited, 0f43000000;\n"
      "add.rm.f32 turned, limited, 0f4B400000;\n"
      "sub.rn.f32 rest, turned, 0f4B400000;\n"
      "sub.rn.f32 rest, limited, rest;\n"
      "fma.rn.f32 sum, rest, 0f3C5BFC1A, 0f3D55FC00;\n"
      "fma.rn.f32 sum, sum, rest, 0f3E77122F;\n"
      "fma.rn.f32 sum, sum, rest, 0f3F316B63;\n"
      "fma.rn.f32 sum, sum, rest, 0f3F800000;\n"
      "mov.b32 power, turned;\n"
      "shl.b32 power, power, 23;\n"
      "add.s32 power, power, 0x3F800000;\n"
      "mov.b32 rest, power;\n"
      "mul.rn.f32 %0, sum, rest; }"
      : "=f"(y) : "f"(x));
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
__device__ __forceinline__ float sqrt_approx(float x) {
  float y;
  asm("sqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ float rsqrt_approx(float x) {
  float y;
  asm("rsqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ float tanh_approx(float x) {
  float y;
  asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
// x less the nearest multiple of 2 pi = 6.28318548 - 1.74845553e-7: the inner step is exact.
__device__ __forceinline__ float angle_rest(float x) {
  const float turns = rintf(x * 0.159154943f);
  return __fmaf_rn(turns, 1.74845553e-7f, __fmaf_rn(turns, -6.28318548f, x));
}
__device__ __forceinline__ float sin_approx(float x) {
  float y;
  asm("sin.approx.f32 %0, %1;" : "=f"(y) : "f"(angle_rest(x)));
  return y;
}
__device__ __forceinline__ float cos_approx(float x) {
  float y;
  asm("cos.approx.f32 %0, %1;" : "=f"(y) : "f"(angle_rest(x)));
  return y;
}
__device__ __forceinline__ float div_full(float a, float b) {
  float y;
  asm("div.full.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
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
template <typename T>
__device__ __forceinline__ int saturate_i8(T a) {
  return (int)(a < -128 ? -128 : a > 127 ? 127 : a);
}
template <typename T>
__device__ __forceinline__ int saturate_u8(T a) {
  return (int)(a < 0 ? 0 : a > 255 ? 255 : a);
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
__device__ __forceinline__ float bf16_at(const u32* r, int i) {
  return i & 1 ? __uint_as_float(r[i / 2] & 0xffff0000u) : __uint_as_float(r[i / 2] << 16);
}
__device__ __forceinline__ float f16_at(const u32* r, int i) { return from_f16(r[i / 2] >> i % 2 * 16); }
__device__ __forceinline__ float e4m3_at(const u32* r, int i) { return from_e4m3(r[i / 4] >> i % 4 * 8); }
__device__ __forceinline__ u32 subtract_bf16(u32 a, u32 b) {
  u32 d;
  asm("sub.rn.bf16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
  return d;
}
__device__ __forceinline__ u32 subtract_f16(u32 a, u32 b) {
  u32 d;
  asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
  return d;
}
__device__ __forceinline__ void f16_of_f8e4m3(u32* r, u32 bytes) {
  asm("{ .reg .b16 low, high;\n"
      "mov.b32 {low, high}, %2;\n"
      "cvt.rn.f16x2.e4m3x2 %0, low;\n"
      "cvt.rn.f16x2.e4m3x2 %1, high; }"
      : "=r"(r[0]), "=r"(r[1]) : "r"(bytes));
}
__device__ __forceinline__ void bf16_of_f8e4m3(u32* r, u32 bytes) {
  u32 halves[2];
  f16_of_f8e4m3(halves, bytes);
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    r[i] = pack_bf16(from_f16(halves[i]), from_f16(halves[i] >> 16));
  }
}
// 0x4300 is 128 of bf16, whose last seven bits count on from there; with the eighth it is 256.
__device__ __forceinline__ void bf16_of_i8(u32* r, u32 bytes) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const u32 apart = __byte_perm(bytes, 0, i == 0 ? 0x4140 : 0x4342);
    r[i] = subtract_bf16((apart & 0x7f007f) | 0x43004300, (apart & 0x800080) | 0x43004300);
  }
}
// As of i8, 128 less, and 128 more.
__device__ __forceinline__ void bf16_of_u8(u32* r, u32 bytes) {
  bf16_of_i8(r, bytes ^ 0x80808080);
#pragma unroll
  for (int i = 0; i < 2; ++i) r[i] = subtract_bf16(r[i], 0xc300c300);
}
// 0x6400 is 1024 of f16, whose last eight bits count on from there.
__device__ __forceinline__ void f16_of_u8(u32* r, u32 bytes) {
  r[0] = subtract_f16(__byte_perm(bytes, 0x64646464, 0x4140), 0x64006400);
  r[1] = subtract_f16(__byte_perm(bytes, 0x64646464, 0x4342), 0x64006400);
}
// 1152 is 128 more.
__device__ __forceinline__ void f16_of_i8(u32* r, u32 bytes) {
  bytes ^= 0x80808080;
  r[0] = subtract_f16(__byte_perm(bytes, 0x64646464, 0x4140), 0x64806480);
  r[1] = subtract_f16(__byte_perm(bytes, 0x64646464, 0x4342), 0x64806480);
}
__device__ __forceinline__ int i8_at(const u32* r, int i) { return from_i8(r[i / 4] >> i % 4 * 8); }
__device__ __forceinline__ int u8_at(const u32* r, int i) { return from_u8(r[i / 4] >> i % 4 * 8); }
// The number, computed where it is used: kept over a loop, places would take the accumulators'
// registers.
__device__ __forceinline__ int here(int x) {
  asm volatile("" : "+r"(x));
  return x;
}
extern "C" __device__ unsigned long long tilewright_form = 0x3ebd3f007fdea813;
extern "C" __global__ void __launch_bounds__(128, 1)
functions(float* Y_0, float alpha_1, int number_2, i64 wide_3) {
  const int warp = __shfl_sync(0xffffffffu, (int)threadIdx.x / 32, 0);
  const int lane = (int)(threadIdx.x & 31u);
  // kernel.tw:10
  if (warp < 4) {
    // only
    // kernel.tw:11
    float f32_5[8];
    // kernel.tw:12
    u32 bf16_6[4];
    // kernel.tw:13
    u32 f16_7[4];
    // kernel.tw:14
    u32 e4m3_8[2];
    // kernel.tw:15
    int i32_9[8];
    // kernel.tw:16
    i64 i64_10[8];
    // kernel.tw:17
    u32 i8_11[2];
    // kernel.tw:18
    u32 u8_12[2];
    // kernel.tw:19
    bool truth_13[8];
    // kernel.tw:20
    float one_14[1];
    // kernel.tw:21
    const bool v15 = number_2 < 0;
    // kernel.tw:22
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      f32_5[i] = alpha_1;
    // kernel.tw:23
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      truth_13[i] = v15;
    // kernel.tw:24
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      f32_5[i] = alpha_1;
    // kernel.tw:25
    const u32 v16 = pack_bf16(alpha_1, 0.0f);
    // kernel.tw:26
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      bf16_6[i / 2] = pack_bf16(from_bf16(v16), from_bf16(v16));
    // kernel.tw:27
    const u32 v17 = pack_f16(alpha_1, 0.0f);
    // kernel.tw:28
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      f16_7[i / 2] = pack_f16(from_f16(v17), from_f16(v17));
    // kernel.tw:29
    const u32 v18 = pack_e4m3(alpha_1, 0.0f, 0.0f, 0.0f);
    // kernel.tw:30
    #pragma unroll
    for (int i = 0; i < 8; i += 4)
      e4m3_8[i / 4] = pack_e4m3(from_e4m3(v18), from_e4m3(v18), from_e4m3(v18), from_e4m3(v18));
    // kernel.tw:31
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      i32_9[i] = number_2;
    // kernel.tw:32
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      i64_10[i] = wide_3;
    // kernel.tw:33
    const u32 v19 = pack_bytes(round_i8(alpha_1), 0, 0, 0);
    // kernel.tw:34
    #pragma unroll
    for (int i = 0; i < 8; i += 4)
      i8_11[i / 4] = pack_bytes(from_i8(v19), from_i8(v19), from_i8(v19), from_i8(v19));
    // kernel.tw:35
    const u32 v20 = pack_bytes(round_u8(alpha_1), 0, 0, 0);
    // kernel.tw:36
    #pragma unroll
    for (int i = 0; i < 8; i += 4)
      u8_12[i / 4] = pack_bytes(from_u8(v20), from_u8(v20), from_u8(v20), from_u8(v20));
    // kernel.tw:37
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      f32_5[i] = f32_5[i] + alpha_1;
    // kernel.tw:38
    const float v21 = alpha_1 + alpha_1;
    // kernel.tw:39
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      bf16_6[i / 2] = pack_bf16(bf16_at(bf16_6, i) + from_bf16(v16), bf16_at(bf16_6, i + 1) + from_bf16(v16));
    // kernel.tw:40
    const u32 v22 = pack_bf16(from_bf16(v16) + from_bf16(v16), 0.0f);
    // kernel.tw:41
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      f16_7[i / 2] = pack_f16(f16_at(f16_7, i) + from_f16(v17), f16_at(f16_7, i + 1) + from_f16(v17));
    // kernel.tw:42
    const u32 v23 = pack_f16(from_f16(v17) + from_f16(v17), 0.0f);
    // kernel.tw:43
    #pragma unroll
    for (int i = 0; i < 8; i += 4)
      e4m3_8[i / 4] = pack_e4m3(e4m3_at(e4m3_8, i) + from_e4m3(v18), e4m3_at(e4m3_8, i + 1) + from_e4m3(v18), e4m3_at(e4m3_8, i + 2) + from_e4m3(v18), e4m3_at(e4m3_8, i + 3) + from_e4m3(v18));
    // kernel.tw:44
    const u32 v24 = pack_e4m3(from_e4m3(v18) + from_e4m3(v18), 0.0f, 0.0f, 0.0f);
    // kernel.tw:45
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      i32_9[i] = i32_9[i] + number_2;
    // kernel.tw:46
    const int v25 = number_2 + number_2;
    // kernel.tw:47
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      i64_10[i] = i64_10[i] + wide_3;
    // kernel.tw:48
    const i64 v26 = wide_3 + wide_3;
    // kernel.tw:49
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      f32_5[i] = f32_5[i] - alpha_1;
    // kernel.tw:50
    const float v27 = alpha_1 - alpha_1;
    // kernel.tw:51
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      bf16_6[i / 2] = pack_bf16(bf16_at(bf16_6, i) - from_bf16(v16), bf16_at(bf16_6, i + 1) - from_bf16(v16));
    // kernel.tw:52
    const u32 v28 = pack_bf16(from_bf16(v16) - from_bf16(v16), 0.0f);
    // kernel.tw:53
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      f16_7[i / 2] = pack_f16(f16_at(f16_7, i) - from_f16(v17), f16_at(f16_7, i + 1) - from_f16(v17));
    // kernel.tw:54
    const u32 v29 = pack_f16(from_f16(v17) - from_f16(v17), 0.0f);
    // kernel.tw:55
    #pragma unroll
    for (int i = 0; i < 8; i += 4)
      e4m3_8[i / 4] = pack_e4m3(e4m3_at(e4m3_8, i) - from_e4m3(v18), e4m3_at(e4m3_8, i + 1) - from_e4m3(v18), e4m3_at(e4m3_8, i + 2) - from_e4m3(v18), e4m3_at(e4m3_8, i + 3) - from_e4m3(v18));
    // kernel.tw:56
    const u32 v30 = pack_e4m3(from_e4m3(v18) - from_e4m3(v18), 0.0f, 0.0f, 0.0f);
    // kernel.tw:57
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      i32_9[i] = i32_9[i] - number_2;
    // kernel.tw:58
    const int v31 = number_2 - number_2;
    // kernel.tw:59
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      i64_10[i] = i64_10[i] - wide_3;
    // kernel.tw:60
    const i64 v32 = wide_3 - wide_3;
    // kernel.tw:61
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      f32_5[i] = f32_5[i] * alpha_1;
    // kernel.tw:62
    const float v33 = alpha_1 * alpha_1;
    // kernel.tw:63
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      bf16_6[i / 2] = pack_bf16(bf16_at(bf16_6, i) * from_bf16(v16), bf16_at(bf16_6, i + 1) * from_bf16(v16));
    // kernel.tw:64
    const u32 v34 = pack_bf16(from_bf16(v16) * from_bf16(v16), 0.0f);
    // kernel.tw:65
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      f16_7[i / 2] = pack_f16(f16_at(f16_7, i) * from_f16(v17), f16_at(f16_7, i + 1) * from_f16(v17));
    // kernel.tw:66
    const u32 v35 = pack_f16(from_f16(v17) * from_f16(v17), 0.0f);
    // kernel.tw:67
    #pragma unroll
    for (int i = 0; i < 8; i += 4)
      e4m3_8[i / 4] = pack_e4m3(e4m3_at(e4m3_8, i) * from_e4m3(v18), e4m3_at(e4m3_8, i + 1) * from_e4m3(v18), e4m3_at(e4m3_8, i + 2) * from_e4m3(v18), e4m3_at(e4m3_8, i + 3) * from_e4m3(v18));
    // kernel.tw:68
    const u32 v36 = pack_e4m3(from_e4m3(v18) * from_e4m3(v18), 0.0f, 0.0f, 0.0f);
    // kernel.tw:69
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      i32_9[i] = i32_9[i] * number_2;
    // kernel.tw:70
    const int v37 = number_2 * number_2;
    // kernel.tw:71
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      i64_10[i] = i64_10[i] * wide_3;
    // kernel.tw:72
    const i64 v38 = wide_3 * wide_3;
    // kernel.tw:73
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      f32_5[i] = div_full(f32_5[i], alpha_1);
    // kernel.tw:74
    const float v39 = div_full(alpha_1, alpha_1);
    // kernel.tw:75
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      bf16_6[i / 2] = pack_bf16(div_full(bf16_at(bf16_6, i), from_bf16(v16)), div_full(bf16_at(bf16_6, i + 1), from_bf16(v16)));
    // kernel.tw:76
    const u32 v40 = pack_bf16(div_full(from_bf16(v16), from_bf16(v16)), 0.0f);
    // kernel.tw:77
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      f16_7[i / 2] = pack_f16(div_full(f16_at(f16_7, i), from_f16(v17)), div_full(f16_at(f16_7, i + 1), from_f16(v17)));
    // kernel.tw:78
    const u32 v41 = pack_f16(div_full(from_f16(v17), from_f16(v17)), 0.0f);
    // kernel.tw:79
    #pragma unroll
    for (int i = 0; i < 8; i += 4)
      e4m3_8[i / 4] = pack_e4m3(div_full(e4m3_at(e4m3_8, i), from_e4m3(v18)), div_full(e4m3_at(e4m3_8, i + 1), from_e4m3(v18)), div_full(e4m3_at(e4m3_8, i + 2), from_e4m3(v18)), div_full(e4m3_at(e4m3_8, i + 3), from_e4m3(v18)));
    // kernel.tw:80
    const u32 v42 = pack_e4m3(div_full(from_e4m3(v18), from_e4m3(v18)), 0.0f, 0.0f, 0.0f);
    // kernel.tw:81
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      i32_9[i] = floor_div(i32_9[i], number_2);
    // kernel.tw:82
    const int v43 = floor_div(number_2, number_2);
    // kernel.tw:83
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      i64_10[i] = floor_div(i64_10[i], wide_3);
    // kernel.tw:84
    const i64 v44 = floor_div(wide_3, wide_3);
    // kernel.tw:85
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      i32_9[i] = floor_mod(i32_9[i], number_2);
    // kernel.tw:86
    const int v45 = floor_mod(number_2, number_2);
    // kernel.tw:87
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      i64_10[i] = floor_mod(i64_10[i], wide_3);
    // kernel.tw:88
    const i64 v46 = floor_mod(wide_3, wide_3);
    // kernel.tw:89
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      i32_9[i] = ceil_div(i32_9[i], number_2);
    // kernel.tw:90
    const int v47 = ceil_div(number_2, number_2);
    // kernel.tw:91
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      i64_10[i] = ceil_div(i64_10[i], wide_3);
    // kernel.tw:92
    const i64 v48 = ceil_div(wide_3, wide_3);
    // kernel.tw:93
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      f32_5[i] = fminf(f32_5[i], alpha_1);
    // kernel.tw:94
    const float v49 = fminf(alpha_1, alpha_1);
    // kernel.tw:95
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      bf16_6[i / 2] = pack_bf16(fminf(bf16_at(bf16_6, i), from_bf16(v16)), fminf(bf16_at(bf16_6, i + 1), from_bf16(v16)));
    // kernel.tw:96
    const u32 v50 = pack_bf16(fminf(from_bf16(v16), from_bf16(v16)), 0.0f);
    // kernel.tw:97
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      f16_7[i / 2] = pack_f16(fminf(f16_at(f16_7, i), from_f16(v17)), fminf(f16_at(f16_7, i + 1), from_f16(v17)));
    // kernel.tw:98
    const u32 v51 = pack_f16(fminf(from_f16(v17), from_f16(v17)), 0.0f);
    // kernel.tw:99
    #pragma unroll
    for (int i = 0; i < 8; i += 4)
      e4m3_8[i / 4] = pack_e4m3(fminf(e4m3_at(e4m3_8, i), from_e4m3(v18)), fminf(e4m3_at(e4m3_8, i + 1), from_e4m3(v18)), fminf(e4m3_at(e4m3_8, i + 2), from_e4m3(v18)), fminf(e4m3_at(e4m3_8, i + 3), from_e4m3(v18)));
    // kernel.tw:100
    const u32 v52 = pack_e4m3(fminf(from_e4m3(v18), from_e4m3(v18)), 0.0f, 0.0f, 0.0f);
    // kernel.tw:101
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      i32_9[i] = minimum(i32_9[i], number_2);
    // kernel.tw:102
    const int v53 = minimum(number_2, number_2);
    // kernel.tw:103
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      i64_10[i] = minimum(i64_10[i], wide_3);
    // kernel.tw:104
    const i64 v54 = minimum(wide_3, wide_3);
    // kernel.tw:105
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      f32_5[i] = fmaxf(f32_5[i], alpha_1);
    // kernel.tw:106
    const float v55 = fmaxf(alpha_1, alpha_1);
    // kernel.tw:107
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      bf16_6[i / 2] = pack_bf16(fmaxf(bf16_at(bf16_6, i), from_bf16(v16)), fmaxf(bf16_at(bf16_6, i + 1), from_bf16(v16)));
    // kernel.tw:108
    const u32 v56 = pack_bf16(fmaxf(from_bf16(v16), from_bf16(v16)), 0.0f);
    // kernel.tw:109
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      f16_7[i / 2] = pack_f16(fmaxf(f16_at(f16_7, i), from_f16(v17)), fmaxf(f16_at(f16_7, i + 1), from_f16(v17)));
    // kernel.tw:110
    const u32 v57 = pack_f16(fmaxf(from_f16(v17), from_f16(v17)), 0.0f);
    // kernel.tw:111
    #pragma unroll
    for (int i = 0; i < 8; i += 4)
      e4m3_8[i / 4] = pack_e4m3(fmaxf(e4m3_at(e4m3_8, i), from_e4m3(v18)), fmaxf(e4m3_at(e4m3_8, i + 1), from_e4m3(v18)), fmaxf(e4m3_at(e4m3_8, i + 2), from_e4m3(v18)), fmaxf(e4m3_at(e4m3_8, i + 3), from_e4m3(v18)));
    // kernel.tw:112
    const u32 v58 = pack_e4m3(fmaxf(from_e4m3(v18), from_e4m3(v18)), 0.0f, 0.0f, 0.0f);
    // kernel.tw:113
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      i32_9[i] = maximum(i32_9[i], number_2);
    // kernel.tw:114
    const int v59 = maximum(number_2, number_2);
    // kernel.tw:115
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      i64_10[i] = maximum(i64_10[i], wide_3);
    // kernel.tw:116
    const i64 v60 = maximum(wide_3, wide_3);
    // kernel.tw:117
    {
      float f32_5_before[8];
      #pragma unroll
      for (int i = 0; i < 8; ++i) f32_5_before[i] = f32_5[i];
      #pragma unroll
      for (int i = 0; i < 8; ++i)
        f32_5[i] = __fmaf_rn(f32_5_before[i], alpha_1, f32_5_before[i / 2 * 2 + i % 2]);
    }
    // kernel.tw:118
    const float v61 = __fmaf_rn(alpha_1, alpha_1, alpha_1);
    // kernel.tw:119
    {
      u32 bf16_6_before[4];
      #pragma unroll
      for (int i = 0; i < 4; ++i) bf16_6_before[i] = bf16_6[i];
      #pragma unroll
      for (int i = 0; i < 8; i += 2)
        bf16_6[i / 2] = pack_bf16(__fmaf_rn(bf16_at(bf16_6_before, i), from_bf16(v16), bf16_at(bf16_6_before, i / 2 * 2 + i % 2)), __fmaf_rn(bf16_at(bf16_6_before, i + 1), from_bf16(v16), bf16_at(bf16_6_before, (i + 1) / 2 * 2 + (i + 1) % 2)));
    }
    // kernel.tw:120
    const u32 v62 = pack_bf16(__fmaf_rn(from_bf16(v16), from_bf16(v16), from_bf16(v16)), 0.0f);
    // kernel.tw:121
    {
      u32 f16_7_before[4];
      #pragma unroll
      for (int i = 0; i < 4; ++i) f16_7_before[i] = f16_7[i];
      #pragma unroll
      for (int i = 0; i < 8; i += 2)
        f16_7[i / 2] = pack_f16(__fmaf_rn(f16_at(f16_7_before, i), from_f16(v17), f16_at(f16_7_before, i / 2 * 2 + i % 2)), __fmaf_rn(f16_at(f16_7_before, i + 1), from_f16(v17), f16_at(f16_7_before, (i + 1) / 2 * 2 + (i + 1) % 2)));
    }
    // kernel.tw:122
    const u32 v63 = pack_f16(__fmaf_rn(from_f16(v17), from_f16(v17), from_f16(v17)), 0.0f);
    // kernel.tw:123
    {
      u32 e4m3_8_before[2];
      #pragma unroll
      for (int i = 0; i < 2; ++i) e4m3_8_before[i] = e4m3_8[i];
      #pragma unroll
      for (int i = 0; i < 8; i += 4)
        e4m3_8[i / 4] = pack_e4m3(__fmaf_rn(e4m3_at(e4m3_8_before, i), from_e4m3(v18), e4m3_at(e4m3_8_before, i / 2 * 2 + i % 2)), __fmaf_rn(e4m3_at(e4m3_8_before, i + 1), from_e4m3(v18), e4m3_at(e4m3_8_before, (i + 1) / 2 * 2 + (i + 1) % 2)), __fmaf_rn(e4m3_at(e4m3_8_before, i + 2), from_e4m3(v18), e4m3_at(e4m3_8_before, (i + 2) / 2 * 2 + (i + 2) % 2)), __fmaf_rn(e4m3_at(e4m3_8_before, i + 3), from_e4m3(v18), e4m3_at(e4m3_8_before, (i + 3) / 2 * 2 + (i + 3) % 2)));
    }
    // kernel.tw:124
    const u32 v64 = pack_e4m3(__fmaf_rn(from_e4m3(v18), from_e4m3(v18), from_e4m3(v18)), 0.0f, 0.0f, 0.0f);
    // kernel.tw:125
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      f32_5[i] = -f32_5[i];
    // kernel.tw:126
    const float v65 = -alpha_1;
    // kernel.tw:127
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      bf16_6[i / 2] = pack_bf16(-bf16_at(bf16_6, i), -bf16_at(bf16_6, i + 1));
    // kernel.tw:128
    const u32 v66 = pack_bf16(-from_bf16(v16), 0.0f);
    // kernel.tw:129
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      f16_7[i / 2] = pack_f16(-f16_at(f16_7, i), -f16_at(f16_7, i + 1));
    // kernel.tw:130
    const u32 v67 = pack_f16(-from_f16(v17), 0.0f);
    // kernel.tw:131
    #pragma unroll
    for (int i = 0; i < 8; i += 4)
      e4m3_8[i / 4] = pack_e4m3(-e4m3_at(e4m3_8, i), -e4m3_at(e4m3_8, i + 1), -e4m3_at(e4m3_8, i + 2), -e4m3_at(e4m3_8, i + 3));
    // kernel.tw:132
    const u32 v68 = pack_e4m3(-from_e4m3(v18), 0.0f, 0.0f, 0.0f);
    // kernel.tw:133
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      i32_9[i] = -i32_9[i];
    // kernel.tw:134
    const int v69 = -number_2;
    // kernel.tw:135
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      i64_10[i] = -i64_10[i];
    // kernel.tw:136
    const i64 v70 = -wide_3;
    // kernel.tw:137
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      f32_5[i] = fabsf(f32_5[i]);
    // kernel.tw:138
    const float v71 = fabsf(alpha_1);
    // kernel.tw:139
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      bf16_6[i / 2] = pack_bf16(fabsf(bf16_at(bf16_6, i)), fabsf(bf16_at(bf16_6, i + 1)));
    // kernel.tw:140
    const u32 v72 = pack_bf16(fabsf(from_bf16(v16)), 0.0f);
    // kernel.tw:141
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      f16_7[i / 2] = pack_f16(fabsf(f16_at(f16_7, i)), fabsf(f16_at(f16_7, i + 1)));
    // kernel.tw:142
    const u32 v73 = pack_f16(fabsf(from_f16(v17)), 0.0f);
    // kernel.tw:143
    #pragma unroll
    for (int i = 0; i < 8; i += 4)
      e4m3_8[i / 4] = pack_e4m3(fabsf(e4m3_at(e4m3_8, i)), fabsf(e4m3_at(e4m3_8, i + 1)), fabsf(e4m3_at(e4m3_8, i + 2)), fabsf(e4m3_at(e4m3_8, i + 3)));
    // kernel.tw:144
    const u32 v74 = pack_e4m3(fabsf(from_e4m3(v18)), 0.0f, 0.0f, 0.0f);
    // kernel.tw:145
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      i32_9[i] = maximum(i32_9[i], -i32_9[i]);
    // kernel.tw:146
    const int v75 = maximum(number_2, -number_2);
    // kernel.tw:147
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      i64_10[i] = maximum(i64_10[i], -i64_10[i]);
    // kernel.tw:148
    const i64 v76 = maximum(wide_3, -wide_3);
    // kernel.tw:149
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      f32_5[i] = exp2_approx(f32_5[i] * 1.44269504f);
    // kernel.tw:150
    const float v77 = exp2_approx(alpha_1 * 1.44269504f);
    // kernel.tw:151
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      bf16_6[i / 2] = pack_bf16(exp2_approx(bf16_at(bf16_6, i) * 1.44269504f), exp2_approx(bf16_at(bf16_6, i + 1) * 1.44269504f));
    // kernel.tw:152
    const u32 v78 = pack_bf16(exp2_approx(from_bf16(v16) * 1.44269504f), 0.0f);
    // kernel.tw:153
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      f16_7[i / 2] = pack_f16(exp2_approx(f16_at(f16_7, i) * 1.44269504f), exp2_approx(f16_at(f16_7, i + 1) * 1.44269504f));
    // kernel.tw:154
    const u32 v79 = pack_f16(exp2_approx(from_f16(v17) * 1.44269504f), 0.0f);
    // kernel.tw:155
    #pragma unroll
    for (int i = 0; i < 8; i += 4)
      e4m3_8[i / 4] = pack_e4m3(exp2_approx(e4m3_at(e4m3_8, i) * 1.44269504f), exp2_approx(e4m3_at(e4m3_8, i + 1) * 1.44269504f), exp2_approx(e4m3_at(e4m3_8, i + 2) * 1.44269504f), exp2_approx(e4m3_at(e4m3_8, i + 3) * 1.44269504f));
    // kernel.tw:156
    const u32 v80 = pack_e4m3(exp2_approx(from_e4m3(v18) * 1.44269504f), 0.0f, 0.0f, 0.0f);
    // kernel.tw:157
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      f32_5[i] = exp2_approx(f32_5[i]);
    // kernel.tw:158
    const float v81 = exp2_approx(alpha_1);
    // kernel.tw:159
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      bf16_6[i / 2] = pack_bf16(exp2_approx(bf16_at(bf16_6, i)), exp2_approx(bf16_at(bf16_6, i + 1)));
    // kernel.tw:160
    const u32 v82 = pack_bf16(exp2_approx(from_bf16(v16)), 0.0f);
    // kernel.tw:161
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      f16_7[i / 2] = pack_f16(exp2_approx(f16_at(f16_7, i)), exp2_approx(f16_at(f16_7, i + 1)));
    // kernel.tw:162
    const u32 v83 = pack_f16(exp2_approx(from_f16(v17)), 0.0f);
    // kernel.tw:163
    #pragma unroll
    for (int i = 0; i < 8; i += 4)
      e4m3_8[i / 4] = pack_e4m3(exp2_approx(e4m3_at(e4m3_8, i)), exp2_approx(e4m3_at(e4m3_8, i + 1)), exp2_approx(e4m3_at(e4m3_8, i + 2)), exp2_approx(e4m3_at(e4m3_8, i + 3)));
    // kernel.tw:164
    const u32 v84 = pack_e4m3(exp2_approx(from_e4m3(v18)), 0.0f, 0.0f, 0.0f);
    // kernel.tw:165
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      f32_5[i] = exp2_polynomial(f32_5[i]);
    // kernel.tw:166
    const float v85 = exp2_polynomial(alpha_1);
    // kernel.tw:167
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      bf16_6[i / 2] = pack_bf16(exp2_polynomial(bf16_at(bf16_6, i)), exp2_polynomial(bf16_at(bf16_6, i + 1)));
    // kernel.tw:168
    const u32 v86 = pack_bf16(exp2_polynomial(from_bf16(v16)), 0.0f);
    // kernel.tw:169
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      f16_7[i / 2] = pack_f16(exp2_polynomial(f16_at(f16_7, i)), exp2_polynomial(f16_at(f16_7, i + 1)));
    // kernel.tw:170
    const u32 v87 = pack_f16(exp2_polynomial(from_f16(v17)), 0.0f);
    // kernel.tw:171
    #pragma unroll
    for (int i = 0; i < 8; i += 4)
      e4m3_8[i / 4] = pack_e4m3(exp2_polynomial(e4m3_at(e4m3_8, i)), exp2_polynomial(e4m3_at(e4m3_8, i + 1)), exp2_polynomial(e4m3_at(e4m3_8, i + 2)), exp2_polynomial(e4m3_at(e4m3_8, i + 3)));
    // kernel.tw:172
    const u32 v88 = pack_e4m3(exp2_polynomial(from_e4m3(v18)), 0.0f, 0.0f, 0.0f);
    // kernel.tw:173
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      f32_5[i] = log2_approx(f32_5[i]) * 0.693147181f;
    // kernel.tw:174
    const float v89 = log2_approx(alpha_1) * 0.693147181f;
    // kernel.tw:175
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      bf16_6[i / 2] = pack_bf16(log2_approx(bf16_at(bf16_6, i)) * 0.693147181f, log2_approx(bf16_at(bf16_6, i + 1)) * 0.693147181f);
    // kernel.tw:176
    const u32 v90 = pack_bf16(log2_approx(from_bf16(v16)) * 0.693147181f, 0.0f);
    // kernel.tw:177
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      f16_7[i / 2] = pack_f16(log2_approx(f16_at(f16_7, i)) * 0.693147181f, log2_approx(f16_at(f16_7, i + 1)) * 0.693147181f);
    // kernel.tw:178
    const u32 v91 = pack_f16(log2_approx(from_f16(v17)) * 0.693147181f, 0.0f);
    // kernel.tw:179
    #pragma unroll
    for (int i = 0; i < 8; i += 4)
      e4m3_8[i / 4] = pack_e4m3(log2_approx(e4m3_at(e4m3_8, i)) * 0.693147181f, log2_approx(e4m3_at(e4m3_8, i + 1)) * 0.693147181f, log2_approx(e4m3_at(e4m3_8, i + 2)) * 0.693147181f, log2_approx(e4m3_at(e4m3_8, i + 3)) * 0.693147181f);
    // kernel.tw:180
    const u32 v92 = pack_e4m3(log2_approx(from_e4m3(v18)) * 0.693147181f, 0.0f, 0.0f, 0.0f);
    // kernel.tw:181
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      f32_5[i] = log2_approx(f32_5[i]);
    // kernel.tw:182
    const float v93 = log2_approx(alpha_1);
    // kernel.tw:183
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      bf16_6[i / 2] = pack_bf16(log2_approx(bf16_at(bf16_6, i)), log2_approx(bf16_at(bf16_6, i + 1)));
    // kernel.tw:184
    const u32 v94 = pack_bf16(log2_approx(from_bf16(v16)), 0.0f);
    // kernel.tw:185
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      f16_7[i / 2] = pack_f16(log2_approx(f16_at(f16_7, i)), log2_approx(f16_at(f16_7, i + 1)));
    // kernel.tw:186
    const u32 v95 = pack_f16(log2_approx(from_f16(v17)), 0.0f);
    // kernel.tw:187
    #pragma unroll
    for (int i = 0; i < 8; i += 4)
      e4m3_8[i / 4] = pack_e4m3(log2_approx(e4m3_at(e4m3_8, i)), log2_approx(e4m3_at(e4m3_8, i + 1)), log2_approx(e4m3_at(e4m3_8, i + 2)), log2_approx(e4m3_at(e4m3_8, i + 3)));
    // kernel.tw:188
    const u32 v96 = pack_e4m3(log2_approx(from_e4m3(v18)), 0.0f, 0.0f, 0.0f);
    // kernel.tw:189
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      f32_5[i] = sqrt_approx(f32_5[i]);
    // kernel.tw:190
    const float v97 = sqrt_approx(alpha_1);
    // kernel.tw:191
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      bf16_6[i / 2] = pack_bf16(sqrt_approx(bf16_at(bf16_6, i)), sqrt_approx(bf16_at(bf16_6, i + 1)));
    // kernel.tw:192
    const u32 v98 = pack_bf16(sqrt_approx(from_bf16(v16)), 0.0f);
    // kernel.tw:193
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      f16_7[i / 2] = pack_f16(sqrt_approx(f16_at(f16_7, i)), sqrt_approx(f16_at(f16_7, i + 1)));
    // kernel.tw:194
    const u32 v99 = pack_f16(sqrt_approx(from_f16(v17)), 0.0f);
    // kernel.tw:195
    #pragma unroll
    for (int i = 0; i < 8; i += 4)
      e4m3_8[i / 4] = pack_e4m3(sqrt_approx(e4m3_at(e4m3_8, i)), sqrt_approx(e4m3_at(e4m3_8, i + 1)), sqrt_approx(e4m3_at(e4m3_8, i + 2)), sqrt_approx(e4m3_at(e4m3_8, i + 3)));
    // kernel.tw:196
    const u32 v100 = pack_e4m3(sqrt_approx(from_e4m3(v18)), 0.0f, 0.0f, 0.0f);
    // kernel.tw:197
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      f32_5[i] = rsqrt_approx(f32_5[i]);
    // kernel.tw:198
    const float v101 = rsqrt_approx(alpha_1);
    // kernel.tw:199
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      bf16_6[i / 2] = pack_bf16(rsqrt_approx(bf16_at(bf16_6, i)), rsqrt_approx(bf16_at(bf16_6, i + 1)));
    // kernel.tw:200
    const u32 v102 = pack_bf16(rsqrt_approx(from_bf16(v16)), 0.0f);
    // kernel.tw:201
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      f16_7[i / 2] = pack_f16(rsqrt_approx(f16_at(f16_7, i)), rsqrt_approx(f16_at(f16_7, i + 1)));
    // kernel.tw:202
    const u32 v103 = pack_f16(rsqrt_approx(from_f16(v17)), 0.0f);
    // kernel.tw:203
    #pragma unroll
    for (int i = 0; i < 8; i += 4)
      e4m3_8[i / 4] = pack_e4m3(rsqrt_approx(e4m3_at(e4m3_8, i)), rsqrt_approx(e4m3_at(e4m3_8, i + 1)), rsqrt_approx(e4m3_at(e4m3_8, i + 2)), rsqrt_approx(e4m3_at(e4m3_8, i + 3)));
    // kernel.tw:204
    const u32 v104 = pack_e4m3(rsqrt_approx(from_e4m3(v18)), 0.0f, 0.0f, 0.0f);
    // kernel.tw:205
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      f32_5[i] = rcp_approx(f32_5[i]);
    // kernel.tw:206
    const float v105 = rcp_approx(alpha_1);
    // kernel.tw:207
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      bf16_6[i / 2] = pack_bf16(rcp_approx(bf16_at(bf16_6, i)), rcp_approx(bf16_at(bf16_6, i + 1)));
    // kernel.tw:208
    const u32 v106 = pack_bf16(rcp_approx(from_bf16(v16)), 0.0f);
    // kernel.tw:209
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      f16_7[i / 2] = pack_f16(rcp_approx(f16_at(f16_7, i)), rcp_approx(f16_at(f16_7, i + 1)));
    // kernel.tw:210
    const u32 v107 = pack_f16(rcp_approx(from_f16(v17)), 0.0f);
    // kernel.tw:211
    #pragma unroll
    for (int i = 0; i < 8; i += 4)
      e4m3_8[i / 4] = pack_e4m3(rcp_approx(e4m3_at(e4m3_8, i)), rcp_approx(e4m3_at(e4m3_8, i + 1)), rcp_approx(e4m3_at(e4m3_8, i + 2)), rcp_approx(e4m3_at(e4m3_8, i + 3)));
    // kernel.tw:212
    const u32 v108 = pack_e4m3(rcp_approx(from_e4m3(v18)), 0.0f, 0.0f, 0.0f);
    // kernel.tw:213
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      f32_5[i] = tanh_approx(f32_5[i]);
    // kernel.tw:214
    const float v109 = tanh_approx(alpha_1);
    // kernel.tw:215
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      bf16_6[i / 2] = pack_bf16(tanh_approx(bf16_at(bf16_6, i)), tanh_approx(bf16_at(bf16_6, i + 1)));
    // kernel.tw:216
    const u32 v110 = pack_bf16(tanh_approx(from_bf16(v16)), 0.0f);
    // kernel.tw:217
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      f16_7[i / 2] = pack_f16(tanh_approx(f16_at(f16_7, i)), tanh_approx(f16_at(f16_7, i + 1)));
    // kernel.tw:218
    const u32 v111 = pack_f16(tanh_approx(from_f16(v17)), 0.0f);
    // kernel.tw:219
    #pragma unroll
    for (int i = 0; i < 8; i += 4)
      e4m3_8[i / 4] = pack_e4m3(tanh_approx(e4m3_at(e4m3_8, i)), tanh_approx(e4m3_at(e4m3_8, i + 1)), tanh_approx(e4m3_at(e4m3_8, i + 2)), tanh_approx(e4m3_at(e4m3_8, i + 3)));
    // kernel.tw:220
    const u32 v112 = pack_e4m3(tanh_approx(from_e4m3(v18)), 0.0f, 0.0f, 0.0f);
    // kernel.tw:221
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      f32_5[i] = log1pf(f32_5[i]);
    // kernel.tw:222
    const float v113 = log1pf(alpha_1);
    // kernel.tw:223
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      bf16_6[i / 2] = pack_bf16(log1pf(bf16_at(bf16_6, i)), log1pf(bf16_at(bf16_6, i + 1)));
    // kernel.tw:224
    const u32 v114 = pack_bf16(log1pf(from_bf16(v16)), 0.0f);
    // kernel.tw:225
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      f16_7[i / 2] = pack_f16(log1pf(f16_at(f16_7, i)), log1pf(f16_at(f16_7, i + 1)));
    // kernel.tw:226
    const u32 v115 = pack_f16(log1pf(from_f16(v17)), 0.0f);
    // kernel.tw:227
    #pragma unroll
    for (int i = 0; i < 8; i += 4)
      e4m3_8[i / 4] = pack_e4m3(log1pf(e4m3_at(e4m3_8, i)), log1pf(e4m3_at(e4m3_8, i + 1)), log1pf(e4m3_at(e4m3_8, i + 2)), log1pf(e4m3_at(e4m3_8, i + 3)));
    // kernel.tw:228
    const u32 v116 = pack_e4m3(log1pf(from_e4m3(v18)), 0.0f, 0.0f, 0.0f);
    // kernel.tw:229
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      f32_5[i] = expm1f(f32_5[i]);
    // kernel.tw:230
    const float v117 = expm1f(alpha_1);
    // kernel.tw:231
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      bf16_6[i / 2] = pack_bf16(expm1f(bf16_at(bf16_6, i)), expm1f(bf16_at(bf16_6, i + 1)));
    // kernel.tw:232
    const u32 v118 = pack_bf16(expm1f(from_bf16(v16)), 0.0f);
    // kernel.tw:233
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      f16_7[i / 2] = pack_f16(expm1f(f16_at(f16_7, i)), expm1f(f16_at(f16_7, i + 1)));
    // kernel.tw:234
    const u32 v119 = pack_f16(expm1f(from_f16(v17)), 0.0f);
    // kernel.tw:235
    #pragma unroll
    for (int i = 0; i < 8; i += 4)
      e4m3_8[i / 4] = pack_e4m3(expm1f(e4m3_at(e4m3_8, i)), expm1f(e4m3_at(e4m3_8, i + 1)), expm1f(e4m3_at(e4m3_8, i + 2)), expm1f(e4m3_at(e4m3_8, i + 3)));
    // kernel.tw:236
    const u32 v120 = pack_e4m3(expm1f(from_e4m3(v18)), 0.0f, 0.0f, 0.0f);
    // kernel.tw:237
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      f32_5[i] = erff(f32_5[i]);
    // kernel.tw:238
    const float v121 = erff(alpha_1);
    // kernel.tw:239
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      bf16_6[i / 2] = pack_bf16(erff(bf16_at(bf16_6, i)), erff(bf16_at(bf16_6, i + 1)));
    // kernel.tw:240
    const u32 v122 = pack_bf16(erff(from_bf16(v16)), 0.0f);
    // kernel.tw:241
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      f16_7[i / 2] = pack_f16(erff(f16_at(f16_7, i)), erff(f16_at(f16_7, i + 1)));
    // kernel.tw:242
    const u32 v123 = pack_f16(erff(from_f16(v17)), 0.0f);
    // kernel.tw:243
    #pragma unroll
    for (int i = 0; i < 8; i += 4)
      e4m3_8[i / 4] = pack_e4m3(erff(e4m3_at(e4m3_8, i)), erff(e4m3_at(e4m3_8, i + 1)), erff(e4m3_at(e4m3_8, i + 2)), erff(e4m3_at(e4m3_8, i + 3)));
    // kernel.tw:244
    const u32 v124 = pack_e4m3(erff(from_e4m3(v18)), 0.0f, 0.0f, 0.0f);
    // kernel.tw:245
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      f32_5[i] = sin_approx(f32_5[i]);
    // kernel.tw:246
    const float v125 = sin_approx(alpha_1);
    // kernel.tw:247
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      bf16_6[i / 2] = pack_bf16(sin_approx(bf16_at(bf16_6, i)), sin_approx(bf16_at(bf16_6, i + 1)));
    // kernel.tw:248
    const u32 v126 = pack_bf16(sin_approx(from_bf16(v16)), 0.0f);
    // kernel.tw:249
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      f16_7[i / 2] = pack_f16(sin_approx(f16_at(f16_7, i)), sin_approx(f16_at(f16_7, i + 1)));
    // kernel.tw:250
    const u32 v127 = pack_f16(sin_approx(from_f16(v17)), 0.0f);
    // kernel.tw:251
    #pragma unroll
    for (int i = 0; i < 8; i += 4)
      e4m3_8[i / 4] = pack_e4m3(sin_approx(e4m3_at(e4m3_8, i)), sin_approx(e4m3_at(e4m3_8, i + 1)), sin_approx(e4m3_at(e4m3_8, i + 2)), sin_approx(e4m3_at(e4m3_8, i + 3)));
    // kernel.tw:252
    const u32 v128 = pack_e4m3(sin_approx(from_e4m3(v18)), 0.0f, 0.0f, 0.0f);
    // kernel.tw:253
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      f32_5[i] = cos_approx(f32_5[i]);
    // kernel.tw:254
    const float v129 = cos_approx(alpha_1);
    // kernel.tw:255
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      bf16_6[i / 2] = pack_bf16(cos_approx(bf16_at(bf16_6, i)), cos_approx(bf16_at(bf16_6, i + 1)));
    // kernel.tw:256
    const u32 v130 = pack_bf16(cos_approx(from_bf16(v16)), 0.0f);
    // kernel.tw:257
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      f16_7[i / 2] = pack_f16(cos_approx(f16_at(f16_7, i)), cos_approx(f16_at(f16_7, i + 1)));
    // kernel.tw:258
    const u32 v131 = pack_f16(cos_approx(from_f16(v17)), 0.0f);
    // kernel.tw:259
    #pragma unroll
    for (int i = 0; i < 8; i += 4)
      e4m3_8[i / 4] = pack_e4m3(cos_approx(e4m3_at(e4m3_8, i)), cos_approx(e4m3_at(e4m3_8, i + 1)), cos_approx(e4m3_at(e4m3_8, i + 2)), cos_approx(e4m3_at(e4m3_8, i + 3)));
    // kernel.tw:260
    const u32 v132 = pack_e4m3(cos_approx(from_e4m3(v18)), 0.0f, 0.0f, 0.0f);
    // kernel.tw:261
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      f32_5[i] = floorf(f32_5[i]);
    // kernel.tw:262
    const float v133 = floorf(alpha_1);
    // kernel.tw:263
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      bf16_6[i / 2] = pack_bf16(floorf(bf16_at(bf16_6, i)), floorf(bf16_at(bf16_6, i + 1)));
    // kernel.tw:264
    const u32 v134 = pack_bf16(floorf(from_bf16(v16)), 0.0f);
    // kernel.tw:265
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      f16_7[i / 2] = pack_f16(floorf(f16_at(f16_7, i)), floorf(f16_at(f16_7, i + 1)));
    // kernel.tw:266
    const u32 v135 = pack_f16(floorf(from_f16(v17)), 0.0f);
    // kernel.tw:267
    #pragma unroll
    for (int i = 0; i < 8; i += 4)
      e4m3_8[i / 4] = pack_e4m3(floorf(e4m3_at(e4m3_8, i)), floorf(e4m3_at(e4m3_8, i + 1)), floorf(e4m3_at(e4m3_8, i + 2)), floorf(e4m3_at(e4m3_8, i + 3)));
    // kernel.tw:268
    const u32 v136 = pack_e4m3(floorf(from_e4m3(v18)), 0.0f, 0.0f, 0.0f);
    // kernel.tw:269
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      f32_5[i] = ceilf(f32_5[i]);
    // kernel.tw:270
    const float v137 = ceilf(alpha_1);
    // kernel.tw:271
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      bf16_6[i / 2] = pack_bf16(ceilf(bf16_at(bf16_6, i)), ceilf(bf16_at(bf16_6, i + 1)));
    // kernel.tw:272
    const u32 v138 = pack_bf16(ceilf(from_bf16(v16)), 0.0f);
    // kernel.tw:273
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      f16_7[i / 2] = pack_f16(ceilf(f16_at(f16_7, i)), ceilf(f16_at(f16_7, i + 1)));
    // kernel.tw:274
    const u32 v139 = pack_f16(ceilf(from_f16(v17)), 0.0f);
    // kernel.tw:275
    #pragma unroll
    for (int i = 0; i < 8; i += 4)
      e4m3_8[i / 4] = pack_e4m3(ceilf(e4m3_at(e4m3_8, i)), ceilf(e4m3_at(e4m3_8, i + 1)), ceilf(e4m3_at(e4m3_8, i + 2)), ceilf(e4m3_at(e4m3_8, i + 3)));
    // kernel.tw:276
    const u32 v140 = pack_e4m3(ceilf(from_e4m3(v18)), 0.0f, 0.0f, 0.0f);
    // kernel.tw:277
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      f32_5[i] = rintf(f32_5[i]);
    // kernel.tw:278
    const float v141 = rintf(alpha_1);
    // kernel.tw:279
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      bf16_6[i / 2] = pack_bf16(rintf(bf16_at(bf16_6, i)), rintf(bf16_at(bf16_6, i + 1)));
    // kernel.tw:280
    const u32 v142 = pack_bf16(rintf(from_bf16(v16)), 0.0f);
    // kernel.tw:281
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      f16_7[i / 2] = pack_f16(rintf(f16_at(f16_7, i)), rintf(f16_at(f16_7, i + 1)));
    // kernel.tw:282
    const u32 v143 = pack_f16(rintf(from_f16(v17)), 0.0f);
    // kernel.tw:283
    #pragma unroll
    for (int i = 0; i < 8; i += 4)
      e4m3_8[i / 4] = pack_e4m3(rintf(e4m3_at(e4m3_8, i)), rintf(e4m3_at(e4m3_8, i + 1)), rintf(e4m3_at(e4m3_8, i + 2)), rintf(e4m3_at(e4m3_8, i + 3)));
    // kernel.tw:284
    const u32 v144 = pack_e4m3(rintf(from_e4m3(v18)), 0.0f, 0.0f, 0.0f);
    // kernel.tw:285
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      truth_13[i] = f32_5[i] < alpha_1;
    // kernel.tw:286
    const bool v145 = alpha_1 < alpha_1;
    // kernel.tw:287
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      truth_13[i] = bf16_at(bf16_6, i) < from_bf16(v16);
    // kernel.tw:288
    const bool v146 = from_bf16(v16) < from_bf16(v16);
    // kernel.tw:289
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      truth_13[i] = f16_at(f16_7, i) < from_f16(v17);
    // kernel.tw:290
    const bool v147 = from_f16(v17) < from_f16(v17);
    // kernel.tw:291
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      truth_13[i] = e4m3_at(e4m3_8, i) < from_e4m3(v18);
    // kernel.tw:292
    const bool v148 = from_e4m3(v18) < from_e4m3(v18);
    // kernel.tw:293
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      truth_13[i] = i32_9[i] < number_2;
    // kernel.tw:294
    const bool v149 = number_2 < number_2;
    // kernel.tw:295
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      truth_13[i] = i64_10[i] < wide_3;
    // kernel.tw:296
    const bool v150 = wide_3 < wide_3;
    // kernel.tw:297
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      truth_13[i] = f32_5[i] <= alpha_1;
    // kernel.tw:298
    const bool v151 = alpha_1 <= alpha_1;
    // kernel.tw:299
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      truth_13[i] = bf16_at(bf16_6, i) <= from_bf16(v16);
    // kernel.tw:300
    const bool v152 = from_bf16(v16) <= from_bf16(v16);
    // kernel.tw:301
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      truth_13[i] = f16_at(f16_7, i) <= from_f16(v17);
    // kernel.tw:302
    const bool v153 = from_f16(v17) <= from_f16(v17);
    // kernel.tw:303
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      truth_13[i] = e4m3_at(e4m3_8, i) <= from_e4m3(v18);
    // kernel.tw:304
    const bool v154 = from_e4m3(v18) <= from_e4m3(v18);
    // kernel.tw:305
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      truth_13[i] = i32_9[i] <= number_2;
    // kernel.tw:306
    const bool v155 = number_2 <= number_2;
    // kernel.tw:307
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      truth_13[i] = i64_10[i] <= wide_3;
    // kernel.tw:308
    const bool v156 = wide_3 <= wide_3;
    // kernel.tw:309
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      truth_13[i] = f32_5[i] == alpha_1;
    // kernel.tw:310
    const bool v157 = alpha_1 == alpha_1;
    // kernel.tw:311
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      truth_13[i] = bf16_at(bf16_6, i) == from_bf16(v16);
    // kernel.tw:312
    const bool v158 = from_bf16(v16) == from_bf16(v16);
    // kernel.tw:313
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      truth_13[i] = f16_at(f16_7, i) == from_f16(v17);
    // kernel.tw:314
    const bool v159 = from_f16(v17) == from_f16(v17);
    // kernel.tw:315
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      truth_13[i] = e4m3_at(e4m3_8, i) == from_e4m3(v18);
    // kernel.tw:316
    const bool v160 = from_e4m3(v18) == from_e4m3(v18);
    // kernel.tw:317
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      truth_13[i] = i32_9[i] == number_2;
    // kernel.tw:318
    const bool v161 = number_2 == number_2;
    // kernel.tw:319
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      truth_13[i] = i64_10[i] == wide_3;
    // kernel.tw:320
    const bool v162 = wide_3 == wide_3;
    // kernel.tw:321
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      truth_13[i] = f32_5[i] != alpha_1;
    // kernel.tw:322
    const bool v163 = alpha_1 != alpha_1;
    // kernel.tw:323
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      truth_13[i] = bf16_at(bf16_6, i) != from_bf16(v16);
    // kernel.tw:324
    const bool v164 = from_bf16(v16) != from_bf16(v16);
    // kernel.tw:325
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      truth_13[i] = f16_at(f16_7, i) != from_f16(v17);
    // kernel.tw:326
    const bool v165 = from_f16(v17) != from_f16(v17);
    // kernel.tw:327
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      truth_13[i] = e4m3_at(e4m3_8, i) != from_e4m3(v18);
    // kernel.tw:328
    const bool v166 = from_e4m3(v18) != from_e4m3(v18);
    // kernel.tw:329
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      truth_13[i] = i32_9[i] != number_2;
    // kernel.tw:330
    const bool v167 = number_2 != number_2;
    // kernel.tw:331
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      truth_13[i] = i64_10[i] != wide_3;
    // kernel.tw:332
    const bool v168 = wide_3 != wide_3;
    // kernel.tw:333
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      truth_13[i] = truth_13[i] & truth_13[i];
    // kernel.tw:334
    const bool v169 = v15 & v15;
    // kernel.tw:335
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      truth_13[i] = truth_13[i] | truth_13[i];
    // kernel.tw:336
    const bool v170 = v15 | v15;
    // kernel.tw:337
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      truth_13[i] = !truth_13[i];
    // kernel.tw:338
    const bool v171 = !v15;
    // kernel.tw:339
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      f32_5[i] = truth_13[i] ? f32_5[i] : alpha_1;
    // kernel.tw:340
    const float v172 = v15 ? alpha_1 : alpha_1;
    // kernel.tw:341
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      bf16_6[i / 2] = pack_bf16(truth_13[i] ? bf16_at(bf16_6, i) : from_bf16(v16), truth_13[i + 1] ? bf16_at(bf16_6, i + 1) : from_bf16(v16));
    // kernel.tw:342
    const u32 v173 = pack_bf16(v15 ? from_bf16(v16) : from_bf16(v16), 0.0f);
    // kernel.tw:343
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      f16_7[i / 2] = pack_f16(truth_13[i] ? f16_at(f16_7, i) : from_f16(v17), truth_13[i + 1] ? f16_at(f16_7, i + 1) : from_f16(v17));
    // kernel.tw:344
    const u32 v174 = pack_f16(v15 ? from_f16(v17) : from_f16(v17), 0.0f);
    // kernel.tw:345
    #pragma unroll
    for (int i = 0; i < 8; i += 4)
      e4m3_8[i / 4] = pack_e4m3(truth_13[i] ? e4m3_at(e4m3_8, i) : from_e4m3(v18), truth_13[i + 1] ? e4m3_at(e4m3_8, i + 1) : from_e4m3(v18), truth_13[i + 2] ? e4m3_at(e4m3_8, i + 2) : from_e4m3(v18), truth_13[i + 3] ? e4m3_at(e4m3_8, i + 3) : from_e4m3(v18));
    // kernel.tw:346
    const u32 v175 = pack_e4m3(v15 ? from_e4m3(v18) : from_e4m3(v18), 0.0f, 0.0f, 0.0f);
    // kernel.tw:347
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      i32_9[i] = truth_13[i] ? i32_9[i] : number_2;
    // kernel.tw:348
    const int v176 = v15 ? number_2 : number_2;
    // kernel.tw:349
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      i64_10[i] = truth_13[i] ? i64_10[i] : wide_3;
    // kernel.tw:350
    const i64 v177 = v15 ? wide_3 : wide_3;
    // kernel.tw:351
    #pragma unroll
    for (int i = 0; i < 8; i += 4)
      i8_11[i / 4] = pack_bytes(truth_13[i] ? i8_at(i8_11, i) : from_i8(v19), truth_13[i + 1] ? i8_at(i8_11, i + 1) : from_i8(v19), truth_13[i + 2] ? i8_at(i8_11, i + 2) : from_i8(v19), truth_13[i + 3] ? i8_at(i8_11, i + 3) : from_i8(v19));
    // kernel.tw:352
    const u32 v178 = pack_bytes(v15 ? from_i8(v19) : from_i8(v19), 0, 0, 0);
    // kernel.tw:353
    #pragma unroll
    for (int i = 0; i < 8; i += 4)
      u8_12[i / 4] = pack_bytes(truth_13[i] ? u8_at(u8_12, i) : from_u8(v20), truth_13[i + 1] ? u8_at(u8_12, i + 1) : from_u8(v20), truth_13[i + 2] ? u8_at(u8_12, i + 2) : from_u8(v20), truth_13[i + 3] ? u8_at(u8_12, i + 3) : from_u8(v20));
    // kernel.tw:354
    const u32 v179 = pack_bytes(v15 ? from_u8(v20) : from_u8(v20), 0, 0, 0);
    // kernel.tw:355
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      i32_9[i] = i32_9[i] & number_2;
    // kernel.tw:356
    const int v180 = number_2 & number_2;
    // kernel.tw:357
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      i64_10[i] = i64_10[i] & wide_3;
    // kernel.tw:358
    const i64 v181 = wide_3 & wide_3;
    // kernel.tw:359
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      i32_9[i] = i32_9[i] | number_2;
    // kernel.tw:360
    const int v182 = number_2 | number_2;
    // kernel.tw:361
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      i64_10[i] = i64_10[i] | wide_3;
    // kernel.tw:362
    const i64 v183 = wide_3 | wide_3;
    // kernel.tw:363
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      i32_9[i] = i32_9[i] ^ number_2;
    // kernel.tw:364
    const int v184 = number_2 ^ number_2;
    // kernel.tw:365
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      i64_10[i] = i64_10[i] ^ wide_3;
    // kernel.tw:366
    const i64 v185 = wide_3 ^ wide_3;
    // kernel.tw:367
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      i32_9[i] = ~i32_9[i];
    // kernel.tw:368
    const int v186 = ~number_2;
    // kernel.tw:369
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      i64_10[i] = ~i64_10[i];
    // kernel.tw:370
    const i64 v187 = ~wide_3;
    // kernel.tw:371
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      i32_9[i] = shift_left(i32_9[i], number_2);
    // kernel.tw:372
    const int v188 = shift_left(number_2, number_2);
    // kernel.tw:373
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      i64_10[i] = shift_left(i64_10[i], wide_3);
    // kernel.tw:374
    const i64 v189 = shift_left(wide_3, wide_3);
    // kernel.tw:375
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      i32_9[i] = shift_right(i32_9[i], number_2);
    // kernel.tw:376
    const int v190 = shift_right(number_2, number_2);
    // kernel.tw:377
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      i64_10[i] = shift_right(i64_10[i], wide_3);
    // kernel.tw:378
    const i64 v191 = shift_right(wide_3, wide_3);
    // kernel.tw:379
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      f32_5[i] = f32_5[i];
    // kernel.tw:380
    const float v192 = alpha_1;
    // kernel.tw:381
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      bf16_6[i / 2] = pack_bf16(f32_5[i], f32_5[i + 1]);
    // kernel.tw:382
    const u32 v193 = pack_bf16(alpha_1, 0.0f);
    // kernel.tw:383
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      f16_7[i / 2] = pack_f16(f32_5[i], f32_5[i + 1]);
    // kernel.tw:384
    const u32 v194 = pack_f16(alpha_1, 0.0f);
    // kernel.tw:385
    #pragma unroll
    for (int i = 0; i < 8; i += 4)
      e4m3_8[i / 4] = pack_e4m3(f32_5[i], f32_5[i + 1], f32_5[i + 2], f32_5[i + 3]);
    // kernel.tw:386
    const u32 v195 = pack_e4m3(alpha_1, 0.0f, 0.0f, 0.0f);
    // kernel.tw:387
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      i32_9[i] = __float2int_rn(f32_5[i]);
    // kernel.tw:388
    const int v196 = __float2int_rn(alpha_1);
    // kernel.tw:389
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      i64_10[i] = __float2ll_rn(f32_5[i]);
    // kernel.tw:390
    const i64 v197 = __float2ll_rn(alpha_1);
    // kernel.tw:391
    #pragma unroll
    for (int i = 0; i < 8; i += 4)
      i8_11[i / 4] = pack_bytes(round_i8(f32_5[i]), round_i8(f32_5[i + 1]), round_i8(f32_5[i + 2]), round_i8(f32_5[i + 3]));
    // kernel.tw:392
    const u32 v198 = pack_bytes(round_i8(alpha_1), 0, 0, 0);
    // kernel.tw:393
    #pragma unroll
    for (int i = 0; i < 8; i += 4)
      u8_12[i / 4] = pack_bytes(round_u8(f32_5[i]), round_u8(f32_5[i + 1]), round_u8(f32_5[i + 2]), round_u8(f32_5[i + 3]));
    // kernel.tw:394
    const u32 v199 = pack_bytes(round_u8(alpha_1), 0, 0, 0);
    // kernel.tw:395
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      f32_5[i] = bf16_at(bf16_6, i);
    // kernel.tw:396
    const float v200 = from_bf16(v16);
    // kernel.tw:397
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      bf16_6[i / 2] = pack_bf16(bf16_at(bf16_6, i), bf16_at(bf16_6, i + 1));
    // kernel.tw:398
    const u32 v201 = pack_bf16(from_bf16(v16), 0.0f);
    // kernel.tw:399
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      f16_7[i / 2] = pack_f16(bf16_at(bf16_6, i), bf16_at(bf16_6, i + 1));
    // kernel.tw:400
    const u32 v202 = pack_f16(from_bf16(v16), 0.0f);
    // kernel.tw:401
    #pragma unroll
    for (int i = 0; i < 8; i += 4)
      e4m3_8[i / 4] = pack_e4m3(bf16_at(bf16_6, i), bf16_at(bf16_6, i + 1), bf16_at(bf16_6, i + 2), bf16_at(bf16_6, i + 3));
    // kernel.tw:402
    const u32 v203 = pack_e4m3(from_bf16(v16), 0.0f, 0.0f, 0.0f);
    // kernel.tw:403
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      i32_9[i] = __float2int_rn(bf16_at(bf16_6, i));
    // kernel.tw:404
    const int v204 = __float2int_rn(from_bf16(v16));
    // kernel.tw:405
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      i64_10[i] = __float2ll_rn(bf16_at(bf16_6, i));
    // kernel.tw:406
    const i64 v205 = __float2ll_rn(from_bf16(v16));
    // kernel.tw:407
    #pragma unroll
    for (int i = 0; i < 8; i += 4)
      i8_11[i / 4] = pack_bytes(round_i8(bf16_at(bf16_6, i)), round_i8(bf16_at(bf16_6, i + 1)), round_i8(bf16_at(bf16_6, i + 2)), round_i8(bf16_at(bf16_6, i + 3)));
    // kernel.tw:408
    const u32 v206 = pack_bytes(round_i8(from_bf16(v16)), 0, 0, 0);
    // kernel.tw:409
    #pragma unroll
    for (int i = 0; i < 8; i += 4)
      u8_12[i / 4] = pack_bytes(round_u8(bf16_at(bf16_6, i)), round_u8(bf16_at(bf16_6, i + 1)), round_u8(bf16_at(bf16_6, i + 2)), round_u8(bf16_at(bf16_6, i + 3)));
    // kernel.tw:410
    const u32 v207 = pack_bytes(round_u8(from_bf16(v16)), 0, 0, 0);
    // kernel.tw:411
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      f32_5[i] = f16_at(f16_7, i);
    // kernel.tw:412
    const float v208 = from_f16(v17);
    // kernel.tw:413
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      bf16_6[i / 2] = pack_bf16(f16_at(f16_7, i), f16_at(f16_7, i + 1));
    // kernel.tw:414
    const u32 v209 = pack_bf16(from_f16(v17), 0.0f);
    // kernel.tw:415
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      f16_7[i / 2] = pack_f16(f16_at(f16_7, i), f16_at(f16_7, i + 1));
    // kernel.tw:416
    const u32 v210 = pack_f16(from_f16(v17), 0.0f);
    // kernel.tw:417
    #pragma unroll
    for (int i = 0; i < 8; i += 4)
      e4m3_8[i / 4] = pack_e4m3(f16_at(f16_7, i), f16_at(f16_7, i + 1), f16_at(f16_7, i + 2), f16_at(f16_7, i + 3));
    // kernel.tw:418
    const u32 v211 = pack_e4m3(from_f16(v17), 0.0f, 0.0f, 0.0f);
    // kernel.tw:419
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      i32_9[i] = __float2int_rn(f16_at(f16_7, i));
    // kernel.tw:420
    const int v212 = __float2int_rn(from_f16(v17));
    // kernel.tw:421
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      i64_10[i] = __float2ll_rn(f16_at(f16_7, i));
    // kernel.tw:422
    const i64 v213 = __float2ll_rn(from_f16(v17));
    // kernel.tw:423
    #pragma unroll
    for (int i = 0; i < 8; i += 4)
      i8_11[i / 4] = pack_bytes(round_i8(f16_at(f16_7, i)), round_i8(f16_at(f16_7, i + 1)), round_i8(f16_at(f16_7, i + 2)), round_i8(f16_at(f16_7, i + 3)));
    // kernel.tw:424
    const u32 v214 = pack_bytes(round_i8(from_f16(v17)), 0, 0, 0);
    // kernel.tw:425
    #pragma unroll
    for (int i = 0; i < 8; i += 4)
      u8_12[i / 4] = pack_bytes(round_u8(f16_at(f16_7, i)), round_u8(f16_at(f16_7, i + 1)), round_u8(f16_at(f16_7, i + 2)), round_u8(f16_at(f16_7, i + 3)));
    // kernel.tw:426
    const u32 v215 = pack_bytes(round_u8(from_f16(v17)), 0, 0, 0);
    // kernel.tw:427
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      f32_5[i] = e4m3_at(e4m3_8, i);
    // kernel.tw:428
    const float v216 = from_e4m3(v18);
    // kernel.tw:429
    #pragma unroll
    for (int i = 0; i < 2; ++i) bf16_of_f8e4m3(bf16_6 + 2 * i, e4m3_8[i]);
    // kernel.tw:430
    const u32 v217 = pack_bf16(from_e4m3(v18), 0.0f);
    // kernel.tw:431
    #pragma unroll
    for (int i = 0; i < 2; ++i) f16_of_f8e4m3(f16_7 + 2 * i, e4m3_8[i]);
    // kernel.tw:432
    const u32 v218 = pack_f16(from_e4m3(v18), 0.0f);
    // kernel.tw:433
    #pragma unroll
    for (int i = 0; i < 8; i += 4)
      e4m3_8[i / 4] = pack_e4m3(e4m3_at(e4m3_8, i), e4m3_at(e4m3_8, i + 1), e4m3_at(e4m3_8, i + 2), e4m3_at(e4m3_8, i + 3));
    // kernel.tw:434
    const u32 v219 = pack_e4m3(from_e4m3(v18), 0.0f, 0.0f, 0.0f);
    // kernel.tw:435
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      i32_9[i] = __float2int_rn(e4m3_at(e4m3_8, i));
    // kernel.tw:436
    const int v220 = __float2int_rn(from_e4m3(v18));
    // kernel.tw:437
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      i64_10[i] = __float2ll_rn(e4m3_at(e4m3_8, i));
    // kernel.tw:438
    const i64 v221 = __float2ll_rn(from_e4m3(v18));
    // kernel.tw:439
    #pragma unroll
    for (int i = 0; i < 8; i += 4)
      i8_11[i / 4] = pack_bytes(round_i8(e4m3_at(e4m3_8, i)), round_i8(e4m3_at(e4m3_8, i + 1)), round_i8(e4m3_at(e4m3_8, i + 2)), round_i8(e4m3_at(e4m3_8, i + 3)));
    // kernel.tw:440
    const u32 v222 = pack_bytes(round_i8(from_e4m3(v18)), 0, 0, 0);
    // kernel.tw:441
    #pragma unroll
    for (int i = 0; i < 8; i += 4)
      u8_12[i / 4] = pack_bytes(round_u8(e4m3_at(e4m3_8, i)), round_u8(e4m3_at(e4m3_8, i + 1)), round_u8(e4m3_at(e4m3_8, i + 2)), round_u8(e4m3_at(e4m3_8, i + 3)));
    // kernel.tw:442
    const u32 v223 = pack_bytes(round_u8(from_e4m3(v18)), 0, 0, 0);
    // kernel.tw:443
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      f32_5[i] = (float)i32_9[i];
    // kernel.tw:444
    const float v224 = (float)number_2;
    // kernel.tw:445
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      bf16_6[i / 2] = pack_bf16((float)i32_9[i], (float)i32_9[i + 1]);
    // kernel.tw:446
    const u32 v225 = pack_bf16((float)number_2, 0.0f);
    // kernel.tw:447
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      f16_7[i / 2] = pack_f16((float)i32_9[i], (float)i32_9[i + 1]);
    // kernel.tw:448
    const u32 v226 = pack_f16((float)number_2, 0.0f);
    // kernel.tw:449
    #pragma unroll
    for (int i = 0; i < 8; i += 4)
      e4m3_8[i / 4] = pack_e4m3((float)i32_9[i], (float)i32_9[i + 1], (float)i32_9[i + 2], (float)i32_9[i + 3]);
    // kernel.tw:450
    const u32 v227 = pack_e4m3((float)number_2, 0.0f, 0.0f, 0.0f);
    // kernel.tw:451
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      i32_9[i] = (int)i32_9[i];
    // kernel.tw:452
    const int v228 = (int)number_2;
    // kernel.tw:453
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      i64_10[i] = (i64)i32_9[i];
    // kernel.tw:454
    const i64 v229 = (i64)number_2;
    // kernel.tw:455
    #pragma unroll
    for (int i = 0; i < 8; i += 4)
      i8_11[i / 4] = pack_bytes(saturate_i8(i32_9[i]), saturate_i8(i32_9[i + 1]), saturate_i8(i32_9[i + 2]), saturate_i8(i32_9[i + 3]));
    // kernel.tw:456
    const u32 v230 = pack_bytes(saturate_i8(number_2), 0, 0, 0);
    // kernel.tw:457
    #pragma unroll
    for (int i = 0; i < 8; i += 4)
      u8_12[i / 4] = pack_bytes(saturate_u8(i32_9[i]), saturate_u8(i32_9[i + 1]), saturate_u8(i32_9[i + 2]), saturate_u8(i32_9[i + 3]));
    // kernel.tw:458
    const u32 v231 = pack_bytes(saturate_u8(number_2), 0, 0, 0);
    // kernel.tw:459
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      f32_5[i] = (float)i64_10[i];
    // kernel.tw:460
    const float v232 = (float)wide_3;
    // kernel.tw:461
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      bf16_6[i / 2] = pack_bf16((float)i64_10[i], (float)i64_10[i + 1]);
    // kernel.tw:462
    const u32 v233 = pack_bf16((float)wide_3, 0.0f);
    // kernel.tw:463
    #pragma unroll
    for (int i = 0; i < 8; i += 2)
      f16_7[i / 2] = pack_f16((float)i64_10[i], (float)i64_10[i + 1]);
    // kernel.tw:464
    const u32 v234 = pack_f16((float)wide_3, 0.0f);
    // kernel.tw:465
    #pragma unroll
    for (int i = 0; i < 8; i += 4)
      e4m3_8[i / 4] = pack_e4m3((float)i64_10[i], (float)i64_10[i + 1], (float)i64_10[i + 2], (float)i64_10[i + 3]);
    // kernel.tw:466
    const u32 v235 = pack_e4m3((float)wide_3, 0.0f, 0.0f, 0.0f);
    // kernel.tw:467
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      i32_9[i] = (int)i64_10[i];
    // kernel.tw:468
    const int v236 = (int)wide_3;
    // kernel.tw:469
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      i64_10[i] = (i64)i64_10[i];
    // kernel.tw:470
    const i64 v237 = (i64)wide_3;
    // kernel.tw:471
    #pragma unroll
    for (int i = 0; i < 8; i += 4)
      i8_11[i / 4] = pack_bytes(saturate_i8(i64_10[i]), saturate_i8(i64_10[i + 1]), saturate_i8(i64_10[i + 2]), saturate_i8(i64_10[i + 3]));
    // kernel.tw:472
    const u32 v238 = pack_bytes(saturate_i8(wide_3), 0, 0, 0);
    // kernel.tw:473
    #pragma unroll
    for (int i = 0; i < 8; i += 4)
      u8_12[i / 4] = pack_bytes(saturate_u8(i64_10[i]), saturate_u8(i64_10[i + 1]), saturate_u8(i64_10[i + 2]), saturate_u8(i64_10[i + 3]));
    // kernel.tw:474
    const u32 v239 = pack_bytes(saturate_u8(wide_3), 0, 0, 0);
    // kernel.tw:475
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      f32_5[i] = (float)i8_at(i8_11, i);
    // kernel.tw:476
    const float v240 = (float)from_i8(v19);
    // kernel.tw:477
    #pragma unroll
    for (int i = 0; i < 2; ++i) bf16_of_i8(bf16_6 + 2 * i, i8_11[i]);
    // kernel.tw:478
    const u32 v241 = pack_bf16((float)from_i8(v19), 0.0f);
    // kernel.tw:479
    #pragma unroll
    for (int i = 0; i < 2; ++i) f16_of_i8(f16_7 + 2 * i, i8_11[i]);
    // kernel.tw:480
    const u32 v242 = pack_f16((float)from_i8(v19), 0.0f);
    // kernel.tw:481
    #pragma unroll
    for (int i = 0; i < 8; i += 4)
      e4m3_8[i / 4] = pack_e4m3((float)i8_at(i8_11, i), (float)i8_at(i8_11, i + 1), (float)i8_at(i8_11, i + 2), (float)i8_at(i8_11, i + 3));
    // kernel.tw:482
    const u32 v243 = pack_e4m3((float)from_i8(v19), 0.0f, 0.0f, 0.0f);
    // kernel.tw:483
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      i32_9[i] = (int)i8_at(i8_11, i);
    // kernel.tw:484
    const int v244 = (int)from_i8(v19);
    // kernel.tw:485
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      i64_10[i] = (i64)i8_at(i8_11, i);
    // kernel.tw:486
    const i64 v245 = (i64)from_i8(v19);
    // kernel.tw:487
    #pragma unroll
    for (int i = 0; i < 8; i += 4)
      i8_11[i / 4] = pack_bytes(saturate_i8(i8_at(i8_11, i)), saturate_i8(i8_at(i8_11, i + 1)), saturate_i8(i8_at(i8_11, i + 2)), saturate_i8(i8_at(i8_11, i + 3)));
    // kernel.tw:488
    const u32 v246 = pack_bytes(saturate_i8(from_i8(v19)), 0, 0, 0);
    // kernel.tw:489
    #pragma unroll
    for (int i = 0; i < 8; i += 4)
      u8_12[i / 4] = pack_bytes(saturate_u8(i8_at(i8_11, i)), saturate_u8(i8_at(i8_11, i + 1)), saturate_u8(i8_at(i8_11, i + 2)), saturate_u8(i8_at(i8_11, i + 3)));
    // kernel.tw:490
    const u32 v247 = pack_bytes(saturate_u8(from_i8(v19)), 0, 0, 0);
    // kernel.tw:491
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      f32_5[i] = (float)u8_at(u8_12, i);
    // kernel.tw:492
    const float v248 = (float)from_u8(v20);
    // kernel.tw:493
    #pragma unroll
    for (int i = 0; i < 2; ++i) bf16_of_u8(bf16_6 + 2 * i, u8_12[i]);
    // kernel.tw:494
    const u32 v249 = pack_bf16((float)from_u8(v20), 0.0f);
    // kernel.tw:495
    #pragma unroll
    for (int i = 0; i < 2; ++i) f16_of_u8(f16_7 + 2 * i, u8_12[i]);
    // kernel.tw:496
    const u32 v250 = pack_f16((float)from_u8(v20), 0.0f);
    // kernel.tw:497
    #pragma unroll
    for (int i = 0; i < 8; i += 4)
      e4m3_8[i / 4] = pack_e4m3((float)u8_at(u8_12, i), (float)u8_at(u8_12, i + 1), (float)u8_at(u8_12, i + 2), (float)u8_at(u8_12, i + 3));
    // kernel.tw:498
    const u32 v251 = pack_e4m3((float)from_u8(v20), 0.0f, 0.0f, 0.0f);
    // kernel.tw:499
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      i32_9[i] = (int)u8_at(u8_12, i);
    // kernel.tw:500
    const int v252 = (int)from_u8(v20);
    // kernel.tw:501
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      i64_10[i] = (i64)u8_at(u8_12, i);
    // kernel.tw:502
    const i64 v253 = (i64)from_u8(v20);
    // kernel.tw:503
    #pragma unroll
    for (int i = 0; i < 8; i += 4)
      i8_11[i / 4] = pack_bytes(saturate_i8(u8_at(u8_12, i)), saturate_i8(u8_at(u8_12, i + 1)), saturate_i8(u8_at(u8_12, i + 2)), saturate_i8(u8_at(u8_12, i + 3)));
    // kernel.tw:504
    const u32 v254 = pack_bytes(saturate_i8(from_u8(v20)), 0, 0, 0);
    // kernel.tw:505
    #pragma unroll
    for (int i = 0; i < 8; i += 4)
      u8_12[i / 4] = pack_bytes(saturate_u8(u8_at(u8_12, i)), saturate_u8(u8_at(u8_12, i + 1)), saturate_u8(u8_at(u8_12, i + 2)), saturate_u8(u8_at(u8_12, i + 3)));
    // kernel.tw:506
    const u32 v255 = pack_bytes(saturate_u8(from_u8(v20)), 0, 0, 0);
    // kernel.tw:507
    float part_256[4];
    // kernel.tw:508
    #pragma unroll
    for (int i = 0; i < 4; ++i) part_256[i] = f32_5[4 + i];
    // kernel.tw:509
    #pragma unroll
    for (int i = 0; i < 4; ++i) part_256[i] = f32_5[1 + i];
    // kernel.tw:510
    {
      float sums[4];
      #pragma unroll
      for (int i = 0; i < 4; ++i) sums[i] = -0.0f;
      #pragma unroll
      for (int i = 0; i < 8; ++i) sums[i / 2] = sums[i / 2] + f32_5[i];
      #pragma unroll
      for (int i = 0; i < 4; ++i)
        part_256[i] = sums[i];
    }
    // kernel.tw:511
    #pragma unroll
    for (int i = 0; i < 4; ++i)
      part_256[i] = part_256[i] + __shfl_xor_sync(0xffffffffu, part_256[i], 1);
    #pragma unroll
    for (int i = 0; i < 4; ++i)
      part_256[i] = part_256[i] + __shfl_xor_sync(0xffffffffu, part_256[i], 16);
    // kernel.tw:512
    {
      float sums[4];
      #pragma unroll
      for (int i = 7; i >= 0; --i) sums[i / 2] = f32_5[i];
      #pragma unroll
      for (int i = 0; i < 8; ++i) sums[i / 2] = fminf(sums[i / 2], f32_5[i]);
      #pragma unroll
      for (int i = 0; i < 4; ++i)
        part_256[i] = sums[i];
    }
    // kernel.tw:513
    #pragma unroll
    for (int i = 0; i < 4; ++i)
      part_256[i] = fminf(part_256[i], __shfl_xor_sync(0xffffffffu, part_256[i], 1));
    #pragma unroll
    for (int i = 0; i < 4; ++i)
      part_256[i] = fminf(part_256[i], __shfl_xor_sync(0xffffffffu, part_256[i], 16));
    // kernel.tw:514
    {
      float sums[4];
      #pragma unroll
      for (int i = 7; i >= 0; --i) sums[i / 2] = f32_5[i];
      #pragma unroll
      for (int i = 0; i < 8; ++i) sums[i / 2] = fmaxf(sums[i / 2], f32_5[i]);
      #pragma unroll
      for (int i = 0; i < 4; ++i)
        part_256[i] = sums[i];
    }
    // kernel.tw:515
    #pragma unroll
    for (int i = 0; i < 4; ++i)
      part_256[i] = fmaxf(part_256[i], __shfl_xor_sync(0xffffffffu, part_256[i], 1));
    #pragma unroll
    for (int i = 0; i < 4; ++i)
      part_256[i] = fmaxf(part_256[i], __shfl_xor_sync(0xffffffffu, part_256[i], 16));
    // kernel.tw:516
    {
      float part_256_before[4];
      #pragma unroll
      for (int i = 0; i < 4; ++i) part_256_before[i] = part_256[i];
      #pragma unroll
      for (int i = 0; i < 4; ++i)
        part_256[i] = part_256_before[i] + part_256_before[i / 2];
    }
    // kernel.tw:517
    u32 part_257[2];
    // kernel.tw:518
    #pragma unroll
    for (int i = 0; i < 2; ++i) part_257[i] = bf16_6[2 + i];
    // kernel.tw:519
    #pragma unroll
    for (int i = 0; i < 4; i += 2)
      part_257[i / 2] = pack_bf16(bf16_at(bf16_6, 1 + i), bf16_at(bf16_6, 1 + i + 1));
    // kernel.tw:520
    {
      float sums[4];
      #pragma unroll
      for (int i = 0; i < 4; ++i) sums[i] = -0.0f;
      #pragma unroll
      for (int i = 0; i < 8; ++i) sums[i / 2] = sums[i / 2] + bf16_at(bf16_6, i);
      #pragma unroll
      for (int i = 0; i < 4; i += 2)
        part_257[i / 2] = pack_bf16(sums[i], sums[i + 1]);
    }
    // kernel.tw:521
    #pragma unroll
    for (int i = 0; i < 4; i += 2)
      part_257[i / 2] = pack_bf16(bf16_at(part_257, i) + __shfl_xor_sync(0xffffffffu, bf16_at(part_257, i), 1), bf16_at(part_257, i + 1) + __shfl_xor_sync(0xffffffffu, bf16_at(part_257, i + 1), 1));
    #pragma unroll
    for (int i = 0; i < 4; i += 2)
      part_257[i / 2] = pack_bf16(bf16_at(part_257, i) + __shfl_xor_sync(0xffffffffu, bf16_at(part_257, i), 16), bf16_at(part_257, i + 1) + __shfl_xor_sync(0xffffffffu, bf16_at(part_257, i + 1), 16));
    // kernel.tw:522
    {
      float sums[4];
      #pragma unroll
      for (int i = 7; i >= 0; --i) sums[i / 2] = bf16_at(bf16_6, i);
      #pragma unroll
      for (int i = 0; i < 8; ++i) sums[i / 2] = fminf(sums[i / 2], bf16_at(bf16_6, i));
      #pragma unroll
      for (int i = 0; i < 4; i += 2)
        part_257[i / 2] = pack_bf16(sums[i], sums[i + 1]);
    }
    // kernel.tw:523
    #pragma unroll
    for (int i = 0; i < 4; i += 2)
      part_257[i / 2] = pack_bf16(fminf(bf16_at(part_257, i), __shfl_xor_sync(0xffffffffu, bf16_at(part_257, i), 1)), fminf(bf16_at(part_257, i + 1), __shfl_xor_sync(0xffffffffu, bf16_at(part_257, i + 1), 1)));
    #pragma unroll
    for (int i = 0; i < 4; i += 2)
      part_257[i / 2] = pack_bf16(fminf(bf16_at(part_257, i), __shfl_xor_sync(0xffffffffu, bf16_at(part_257, i), 16)), fminf(bf16_at(part_257, i + 1), __shfl_xor_sync(0xffffffffu, bf16_at(part_257, i + 1), 16)));
    // kernel.tw:524
    {
      float sums[4];
      #pragma unroll
      for (int i = 7; i >= 0; --i) sums[i / 2] = bf16_at(bf16_6, i);
      #pragma unroll
      for (int i = 0; i < 8; ++i) sums[i / 2] = fmaxf(sums[i / 2], bf16_at(bf16_6, i));
      #pragma unroll
      for (int i = 0; i < 4; i += 2)
        part_257[i / 2] = pack_bf16(sums[i], sums[i + 1]);
    }
    // kernel.tw:525
    #pragma unroll
    for (int i = 0; i < 4; i += 2)
      part_257[i / 2] = pack_bf16(fmaxf(bf16_at(part_257, i), __shfl_xor_sync(0xffffffffu, bf16_at(part_257, i), 1)), fmaxf(bf16_at(part_257, i + 1), __shfl_xor_sync(0xffffffffu, bf16_at(part_257, i + 1), 1)));
    #pragma unroll
    for (int i = 0; i < 4; i += 2)
      part_257[i / 2] = pack_bf16(fmaxf(bf16_at(part_257, i), __shfl_xor_sync(0xffffffffu, bf16_at(part_257, i), 16)), fmaxf(bf16_at(part_257, i + 1), __shfl_xor_sync(0xffffffffu, bf16_at(part_257, i + 1), 16)));
    // kernel.tw:526
    {
      u32 part_257_before[2];
      #pragma unroll
      for (int i = 0; i < 2; ++i) part_257_before[i] = part_257[i];
      #pragma unroll
      for (int i = 0; i < 4; i += 2)
        part_257[i / 2] = pack_bf16(bf16_at(part_257_before, i) + bf16_at(part_257_before, i / 2), bf16_at(part_257_before, i + 1) + bf16_at(part_257_before, (i + 1) / 2));
    }
    // kernel.tw:527
    u32 part_258[2];
    // kernel.tw:528
    #pragma unroll
    for (int i = 0; i < 2; ++i) part_258[i] = f16_7[2 + i];
    // kernel.tw:529
    #pragma unroll
    for (int i = 0; i < 4; i += 2)
      part_258[i / 2] = pack_f16(f16_at(f16_7, 1 + i), f16_at(f16_7, 1 + i + 1));
    // kernel.tw:530
    {
      float sums[4];
      #pragma unroll
      for (int i = 0; i < 4; ++i) sums[i] = -0.0f;
      #pragma unroll
      for (int i = 0; i < 8; ++i) sums[i / 2] = sums[i / 2] + f16_at(f16_7, i);
      #pragma unroll
      for (int i = 0; i < 4; i += 2)
        part_258[i / 2] = pack_f16(sums[i], sums[i + 1]);
    }
    // kernel.tw:531
    #pragma unroll
    for (int i = 0; i < 4; i += 2)
      part_258[i / 2] = pack_f16(f16_at(part_258, i) + __shfl_xor_sync(0xffffffffu, f16_at(part_258, i), 1), f16_at(part_258, i + 1) + __shfl_xor_sync(0xffffffffu, f16_at(part_258, i + 1), 1));
    #pragma unroll
    for (int i = 0; i < 4; i += 2)
      part_258[i / 2] = pack_f16(f16_at(part_258, i) + __shfl_xor_sync(0xffffffffu, f16_at(part_258, i), 16), f16_at(part_258, i + 1) + __shfl_xor_sync(0xffffffffu, f16_at(part_258, i + 1), 16));
    // kernel.tw:532
    {
      float sums[4];
      #pragma unroll
      for (int i = 7; i >= 0; --i) sums[i / 2] = f16_at(f16_7, i);
      #pragma unroll
      for (int i = 0; i < 8; ++i) sums[i / 2] = fminf(sums[i / 2], f16_at(f16_7, i));
      #pragma unroll
      for (int i = 0; i < 4; i += 2)
        part_258[i / 2] = pack_f16(sums[i], sums[i + 1]);
    }
    // kernel.tw:533
    #pragma unroll
    for (int i = 0; i < 4; i += 2)
      part_258[i / 2] = pack_f16(fminf(f16_at(part_258, i), __shfl_xor_sync(0xffffffffu, f16_at(part_258, i), 1)), fminf(f16_at(part_258, i + 1), __shfl_xor_sync(0xffffffffu, f16_at(part_258, i + 1), 1)));
    #pragma unroll
    for (int i = 0; i < 4; i += 2)
      part_258[i / 2] = pack_f16(fminf(f16_at(part_258, i), __shfl_xor_sync(0xffffffffu, f16_at(part_258, i), 16)), fminf(f16_at(part_258, i + 1), __shfl_xor_sync(0xffffffffu, f16_at(part_258, i + 1), 16)));
    // kernel.tw:534
    {
      float sums[4];
      #pragma unroll
      for (int i = 7; i >= 0; --i) sums[i / 2] = f16_at(f16_7, i);
      #pragma unroll
      for (int i = 0; i < 8; ++i) sums[i / 2] = fmaxf(sums[i / 2], f16_at(f16_7, i));
      #pragma unroll
      for (int i = 0; i < 4; i += 2)
        part_258[i / 2] = pack_f16(sums[i], sums[i + 1]);
    }
    // kernel.tw:535
    #pragma unroll
    for (int i = 0; i < 4; i += 2)
      part_258[i / 2] = pack_f16(fmaxf(f16_at(part_258, i), __shfl_xor_sync(0xffffffffu, f16_at(part_258, i), 1)), fmaxf(f16_at(part_258, i + 1), __shfl_xor_sync(0xffffffffu, f16_at(part_258, i + 1), 1)));
    #pragma unroll
    for (int i = 0; i < 4; i += 2)
      part_258[i / 2] = pack_f16(fmaxf(f16_at(part_258, i), __shfl_xor_sync(0xffffffffu, f16_at(part_258, i), 16)), fmaxf(f16_at(part_258, i + 1), __shfl_xor_sync(0xffffffffu, f16_at(part_258, i + 1), 16)));
    // kernel.tw:536
    {
      u32 part_258_before[2];
      #pragma unroll
      for (int i = 0; i < 2; ++i) part_258_before[i] = part_258[i];
      #pragma unroll
      for (int i = 0; i < 4; i += 2)
        part_258[i / 2] = pack_f16(f16_at(part_258_before, i) + f16_at(part_258_before, i / 2), f16_at(part_258_before, i + 1) + f16_at(part_258_before, (i + 1) / 2));
    }
    // kernel.tw:537
    u32 part_259[1];
    // kernel.tw:538
    #pragma unroll
    for (int i = 0; i < 1; ++i) part_259[i] = e4m3_8[1 + i];
    // kernel.tw:539
    part_259[0] = pack_e4m3(e4m3_at(e4m3_8, 1 + 0), e4m3_at(e4m3_8, 1 + 1), e4m3_at(e4m3_8, 1 + 2), e4m3_at(e4m3_8, 1 + 3));
    // kernel.tw:540
    {
      float sums[4];
      #pragma unroll
      for (int i = 0; i < 4; ++i) sums[i] = -0.0f;
      #pragma unroll
      for (int i = 0; i < 8; ++i) sums[i / 2] = sums[i / 2] + e4m3_at(e4m3_8, i);
      part_259[0] = pack_e4m3(sums[0], sums[1], sums[2], sums[3]);
    }
    // kernel.tw:541
    part_259[0] = pack_e4m3(e4m3_at(part_259, 0) + __shfl_xor_sync(0xffffffffu, e4m3_at(part_259, 0), 1), e4m3_at(part_259, 1) + __shfl_xor_sync(0xffffffffu, e4m3_at(part_259, 1), 1), e4m3_at(part_259, 2) + __shfl_xor_sync(0xffffffffu, e4m3_at(part_259, 2), 1), e4m3_at(part_259, 3) + __shfl_xor_sync(0xffffffffu, e4m3_at(part_259, 3), 1));
    part_259[0] = pack_e4m3(e4m3_at(part_259, 0) + __shfl_xor_sync(0xffffffffu, e4m3_at(part_259, 0), 16), e4m3_at(part_259, 1) + __shfl_xor_sync(0xffffffffu, e4m3_at(part_259, 1), 16), e4m3_at(part_259, 2) + __shfl_xor_sync(0xffffffffu, e4m3_at(part_259, 2), 16), e4m3_at(part_259, 3) + __shfl_xor_sync(0xffffffffu, e4m3_at(part_259, 3), 16));
    // kernel.tw:542
    {
      float sums[4];
      #pragma unroll
      for (int i = 7; i >= 0; --i) sums[i / 2] = e4m3_at(e4m3_8, i);
      #pragma unroll
      for (int i = 0; i < 8; ++i) sums[i / 2] = fminf(sums[i / 2], e4m3_at(e4m3_8, i));
      part_259[0] = pack_e4m3(sums[0], sums[1], sums[2], sums[3]);
    }
    // kernel.tw:543
    part_259[0] = pack_e4m3(fminf(e4m3_at(part_259, 0), __shfl_xor_sync(0xffffffffu, e4m3_at(part_259, 0), 1)), fminf(e4m3_at(part_259, 1), __shfl_xor_sync(0xffffffffu, e4m3_at(part_259, 1), 1)), fminf(e4m3_at(part_259, 2), __shfl_xor_sync(0xffffffffu, e4m3_at(part_259, 2), 1)), fminf(e4m3_at(part_259, 3), __shfl_xor_sync(0xffffffffu, e4m3_at(part_259, 3), 1)));
    part_259[0] = pack_e4m3(fminf(e4m3_at(part_259, 0), __shfl_xor_sync(0xffffffffu, e4m3_at(part_259, 0), 16)), fminf(e4m3_at(part_259, 1), __shfl_xor_sync(0xffffffffu, e4m3_at(part_259, 1), 16)), fminf(e4m3_at(part_259, 2), __shfl_xor_sync(0xffffffffu, e4m3_at(part_259, 2), 16)), fminf(e4m3_at(part_259, 3), __shfl_xor_sync(0xffffffffu, e4m3_at(part_259, 3), 16)));
    // kernel.tw:544
    {
      float sums[4];
      #pragma unroll
      for (int i = 7; i >= 0; --i) sums[i / 2] = e4m3_at(e4m3_8, i);
      #pragma unroll
      for (int i = 0; i < 8; ++i) sums[i / 2] = fmaxf(sums[i / 2], e4m3_at(e4m3_8, i));
      part_259[0] = pack_e4m3(sums[0], sums[1], sums[2], sums[3]);
    }
    // kernel.tw:545
    part_259[0] = pack_e4m3(fmaxf(e4m3_at(part_259, 0), __shfl_xor_sync(0xffffffffu, e4m3_at(part_259, 0), 1)), fmaxf(e4m3_at(part_259, 1), __shfl_xor_sync(0xffffffffu, e4m3_at(part_259, 1), 1)), fmaxf(e4m3_at(part_259, 2), __shfl_xor_sync(0xffffffffu, e4m3_at(part_259, 2), 1)), fmaxf(e4m3_at(part_259, 3), __shfl_xor_sync(0xffffffffu, e4m3_at(part_259, 3), 1)));
    part_259[0] = pack_e4m3(fmaxf(e4m3_at(part_259, 0), __shfl_xor_sync(0xffffffffu, e4m3_at(part_259, 0), 16)), fmaxf(e4m3_at(part_259, 1), __shfl_xor_sync(0xffffffffu, e4m3_at(part_259, 1), 16)), fmaxf(e4m3_at(part_259, 2), __shfl_xor_sync(0xffffffffu, e4m3_at(part_259, 2), 16)), fmaxf(e4m3_at(part_259, 3), __shfl_xor_sync(0xffffffffu, e4m3_at(part_259, 3), 16)));
    // kernel.tw:546
    {
      u32 part_259_before[1];
      #pragma unroll
      for (int i = 0; i < 1; ++i) part_259_before[i] = part_259[i];
      part_259[0] = pack_e4m3(e4m3_at(part_259_before, 0) + e4m3_at(part_259_before, 0), e4m3_at(part_259_before, 1) + e4m3_at(part_259_before, 0), e4m3_at(part_259_before, 2) + e4m3_at(part_259_before, 1), e4m3_at(part_259_before, 3) + e4m3_at(part_259_before, 1));
    }
    // kernel.tw:547
    int part_260[4];
    // kernel.tw:548
    #pragma unroll
    for (int i = 0; i < 4; ++i) part_260[i] = i32_9[4 + i];
    // kernel.tw:549
    #pragma unroll
    for (int i = 0; i < 4; ++i) part_260[i] = i32_9[1 + i];
    // kernel.tw:550
    {
      int sums[4];
      #pragma unroll
      for (int i = 0; i < 4; ++i) sums[i] = 0;
      #pragma unroll
      for (int i = 0; i < 8; ++i) sums[i / 2] = sums[i / 2] + i32_9[i];
      #pragma unroll
      for (int i = 0; i < 4; ++i)
        part_260[i] = sums[i];
    }
    // kernel.tw:551
    #pragma unroll
    for (int i = 0; i < 4; ++i)
      part_260[i] = part_260[i] + __shfl_xor_sync(0xffffffffu, part_260[i], 1);
    #pragma unroll
    for (int i = 0; i < 4; ++i)
      part_260[i] = part_260[i] + __shfl_xor_sync(0xffffffffu, part_260[i], 16);
    // kernel.tw:552
    {
      int sums[4];
      #pragma unroll
      for (int i = 7; i >= 0; --i) sums[i / 2] = i32_9[i];
      #pragma unroll
      for (int i = 0; i < 8; ++i) sums[i / 2] = minimum(sums[i / 2], i32_9[i]);
      #pragma unroll
      for (int i = 0; i < 4; ++i)
        part_260[i] = sums[i];
    }
    // kernel.tw:553
    #pragma unroll
    for (int i = 0; i < 4; ++i)
      part_260[i] = minimum(part_260[i], __shfl_xor_sync(0xffffffffu, part_260[i], 1));
    #pragma unroll
    for (int i = 0; i < 4; ++i)
      part_260[i] = minimum(part_260[i], __shfl_xor_sync(0xffffffffu, part_260[i], 16));
    // kernel.tw:554
    {
      int sums[4];
      #pragma unroll
      for (int i = 7; i >= 0; --i) sums[i / 2] = i32_9[i];
      #pragma unroll
      for (int i = 0; i < 8; ++i) sums[i / 2] = maximum(sums[i / 2], i32_9[i]);
      #pragma unroll
      for (int i = 0; i < 4; ++i)
        part_260[i] = sums[i];
    }
    // kernel.tw:555
    #pragma unroll
    for (int i = 0; i < 4; ++i)
      part_260[i] = maximum(part_260[i], __shfl_xor_sync(0xffffffffu, part_260[i], 1));
    #pragma unroll
    for (int i = 0; i < 4; ++i)
      part_260[i] = maximum(part_260[i], __shfl_xor_sync(0xffffffffu, part_260[i], 16));
    // kernel.tw:556
    {
      int part_260_before[4];
      #pragma unroll
      for (int i = 0; i < 4; ++i) part_260_before[i] = part_260[i];
      #pragma unroll
      for (int i = 0; i < 4; ++i)
        part_260[i] = part_260_before[i] + part_260_before[i / 2];
    }
    // kernel.tw:557
    i64 part_261[4];
    // kernel.tw:558
    #pragma unroll
    for (int i = 0; i < 4; ++i) part_261[i] = i64_10[4 + i];
    // kernel.tw:559
    #pragma unroll
    for (int i = 0; i < 4; ++i) part_261[i] = i64_10[1 + i];
    // kernel.tw:560
    {
      i64 sums[4];
      #pragma unroll
      for (int i = 0; i < 4; ++i) sums[i] = 0;
      #pragma unroll
      for (int i = 0; i < 8; ++i) sums[i / 2] = sums[i / 2] + i64_10[i];
      #pragma unroll
      for (int i = 0; i < 4; ++i)
        part_261[i] = sums[i];
    }
    // kernel.tw:561
    #pragma unroll
    for (int i = 0; i < 4; ++i)
      part_261[i] = part_261[i] + __shfl_xor_sync(0xffffffffu, part_261[i], 1);
    #pragma unroll
    for (int i = 0; i < 4; ++i)
      part_261[i] = part_261[i] + __shfl_xor_sync(0xffffffffu, part_261[i], 16);
    // kernel.tw:562
    {
      i64 sums[4];
      #pragma unroll
      for (int i = 7; i >= 0; --i) sums[i / 2] = i64_10[i];
      #pragma unroll
      for (int i = 0; i < 8; ++i) sums[i / 2] = minimum(sums[i / 2], i64_10[i]);
      #pragma unroll
      for (int i = 0; i < 4; ++i)
        part_261[i] = sums[i];
    }
    // kernel.tw:563
    #pragma unroll
    for (int i = 0; i < 4; ++i)
      part_261[i] = minimum(part_261[i], __shfl_xor_sync(0xffffffffu, part_261[i], 1));
    #pragma unroll
    for (int i = 0; i < 4; ++i)
      part_261[i] = minimum(part_261[i], __shfl_xor_sync(0xffffffffu, part_261[i], 16));
    // kernel.tw:564
    {
      i64 sums[4];
      #pragma unroll
      for (int i = 7; i >= 0; --i) sums[i / 2] = i64_10[i];
      #pragma unroll
      for (int i = 0; i < 8; ++i) sums[i / 2] = maximum(sums[i / 2], i64_10[i]);
      #pragma unroll
      for (int i = 0; i < 4; ++i)
        part_261[i] = sums[i];
    }
    // kernel.tw:565
    #pragma unroll
    for (int i = 0; i < 4; ++i)
      part_261[i] = maximum(part_261[i], __shfl_xor_sync(0xffffffffu, part_261[i], 1));
    #pragma unroll
    for (int i = 0; i < 4; ++i)
      part_261[i] = maximum(part_261[i], __shfl_xor_sync(0xffffffffu, part_261[i], 16));
    // kernel.tw:566
    {
      i64 part_261_before[4];
      #pragma unroll
      for (int i = 0; i < 4; ++i) part_261_before[i] = part_261[i];
      #pragma unroll
      for (int i = 0; i < 4; ++i)
        part_261[i] = part_261_before[i] + part_261_before[i / 2];
    }
    // kernel.tw:567
    u32 part_262[1];
    // kernel.tw:568
    #pragma unroll
    for (int i = 0; i < 1; ++i) part_262[i] = i8_11[1 + i];
    // kernel.tw:569
    part_262[0] = pack_bytes(i8_at(i8_11, 1 + 0), i8_at(i8_11, 1 + 1), i8_at(i8_11, 1 + 2), i8_at(i8_11, 1 + 3));
    // kernel.tw:570
    {
      u32 part_262_before[1];
      #pragma unroll
      for (int i = 0; i < 1; ++i) part_262_before[i] = part_262[i];
      part_262[0] = pack_bytes(truth_13[0] ? i8_at(part_262_before, 0) : i8_at(part_262_before, 0), truth_13[1] ? i8_at(part_262_before, 1) : i8_at(part_262_before, 0), truth_13[2] ? i8_at(part_262_before, 2) : i8_at(part_262_before, 1), truth_13[3] ? i8_at(part_262_before, 3) : i8_at(part_262_before, 1));
    }
    // kernel.tw:571
    u32 part_263[1];
    // kernel.tw:572
    #pragma unroll
    for (int i = 0; i < 1; ++i) part_263[i] = u8_12[1 + i];
    // kernel.tw:573
    part_263[0] = pack_bytes(u8_at(u8_12, 1 + 0), u8_at(u8_12, 1 + 1), u8_at(u8_12, 1 + 2), u8_at(u8_12, 1 + 3));
    // kernel.tw:574
    {
      u32 part_263_before[1];
      #pragma unroll
      for (int i = 0; i < 1; ++i) part_263_before[i] = part_263[i];
      part_263[0] = pack_bytes(truth_13[0] ? u8_at(part_263_before, 0) : u8_at(part_263_before, 0), truth_13[1] ? u8_at(part_263_before, 1) : u8_at(part_263_before, 0), truth_13[2] ? u8_at(part_263_before, 2) : u8_at(part_263_before, 1), truth_13[3] ? u8_at(part_263_before, 3) : u8_at(part_263_before, 1));
    }
    // kernel.tw:575
    bool v264_of_lane = false;
    #pragma unroll
    for (int i = 0; i < 8; ++i) v264_of_lane |= truth_13[i];
    const bool v264 = __any_sync(0xffffffffu, v264_of_lane);
    // kernel.tw:576
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      i32_9[i] = i + lane * 8 + warp * 256;
    // kernel.tw:577
    {
      float sums[1];
      #pragma unroll
      for (int i = 0; i < 1; ++i) sums[i] = -0.0f;
      #pragma unroll
      for (int i = 0; i < 8; ++i) sums[0] = sums[0] + f32_5[i];
      one_14[0] = sums[0];
    }
    // kernel.tw:580
    {
      const int c0 = here(lane + warp * 32);
      const int e0 = 128;
      float* const first = Y_0 + (i64)c0;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0) first[0] = one_14[i];
      }
    }
  }
}
