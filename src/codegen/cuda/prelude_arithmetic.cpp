#include "codegen/cuda/prelude_pieces.h"

namespace tilewright::codegen {
namespace {

// Of two numbers at a time.
#define TW_PAIR_PIECE(name)                                                                    \
  {                                                                                            \
    name "_pair",                                                                              \
        "__device__ __forceinline__ void " name                                                \
        "_pair(float* d, float a, float a1, float b, float b1) {\n"                            \
        "  asm(\"{ .reg .b64 a, b;\\n\"\n"                                                     \
        "      \"mov.b64 a, {%2, %3};\\n\"\n"                                                  \
        "      \"mov.b64 b, {%4, %5};\\n\"\n"                                                  \
        "      \"" name                                                                        \
        ".rn.f32x2 a, a, b;\\n\"\n"                                                            \
        "      \"mov.b64 {%0, %1}, a; }\"\n"                                                   \
        "      : \"=f\"(d[0]), \"=f\"(d[1]) : \"f\"(a), \"f\"(a1), \"f\"(b), \"f\"(b1));\n}\n" \
  }

constexpr Piece kArithmeticPieces[] = {
    {"", R"(typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
)"},
    {"TensorMap", R"(struct alignas(64) TensorMap { u64 words[16]; };
)"},
    {"RaggedMap", R"(struct RaggedMap { TensorMap outside[2]; };
)"},
    {"PeerMaps", R"(struct PeerMaps { TensorMap rank[8]; };
)"},
    {"PeerRaggedMaps", R"(struct PeerRaggedMaps { RaggedMap rank[8]; };
)"},
    {"Peers", R"(template <typename T>
struct Peers { T* rank[8]; };
)"},
    {"prefetch_map", R"(__device__ __forceinline__ void prefetch_map(const TensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}
)"},
    // Integers.
    {"unsigned_div", R"(// Of operands that are not negative.
__device__ __forceinline__ int unsigned_div(int a, int b) { return (int)((u32)a / (u32)b); }
__device__ __forceinline__ i64 unsigned_div(i64 a, i64 b) { return (i64)((u64)a / (u64)b); }
)"},
    {"unsigned_mod",
     R"(__device__ __forceinline__ int unsigned_mod(int a, int b) { return (int)((u32)a % (u32)b); }
__device__ __forceinline__ i64 unsigned_mod(i64 a, i64 b) { return (i64)((u64)a % (u64)b); }
)"},
    {"dim_div",
     R"(// Of operands that are not negative. With inverse = min(2^31 / b, 2^31 - 1) the product falls
// short of a / b by one at most.
__device__ __forceinline__ int dim_div(int a, int b, int inverse) {
  const int q = (int)__umulhi(2u * (u32)a, (u32)inverse);
  return q + (int)(a - q * b >= b);
}
)"},
    {"dim_mod", R"(__device__ __forceinline__ int dim_mod(int a, int b, int inverse) {
  return a - dim_div(a, b, inverse) * b;
}
)"},
    {"floor_div", R"(template <typename T>
__device__ __forceinline__ T floor_div(T a, T b) {
  const T q = a / b;
  return q - (T)(a % b != 0 && (a < 0) != (b < 0));
}
)"},
    {"floor_mod", R"(template <typename T>
__device__ __forceinline__ T floor_mod(T a, T b) {
  return a - floor_div(a, b) * b;
}
)"},
    {"ceil_div", R"(template <typename T>
__device__ __forceinline__ T ceil_div(T a, T b) {
  const T q = a / b;
  return q + (T)(a % b != 0 && (a < 0) == (b < 0));
}
)"},
    {"minimum", R"(template <typename T>
__device__ __forceinline__ T minimum(T a, T b) {
  return a < b ? a : b;
}
)"},
    {"maximum", R"(template <typename T>
__device__ __forceinline__ T maximum(T a, T b) {
  return a < b ? b : a;
}
)"},
    {"shift_left",
     R"(__device__ __forceinline__ int shift_left(int a, int b) { return (u32)b < 32 ? (int)((u32)a << b) : 0; }
__device__ __forceinline__ i64 shift_left(i64 a, i64 b) { return (u64)b < 64 ? (i64)((u64)a << b) : 0; }
)"},
    {"shift_right",
     R"(__device__ __forceinline__ int shift_right(int a, int b) { return a >> ((u32)b < 32 ? b : 31); }
__device__ __forceinline__ i64 shift_right(i64 a, i64 b) { return a >> ((u64)b < 64 ? b : 63); }
)"},
    // Floats.
    TW_PAIR_PIECE("add"),
    TW_PAIR_PIECE("sub"),
    TW_PAIR_PIECE("mul"),
    {"fma_pair",
     R"(__device__ __forceinline__ void fma_pair(float* d, float a, float a1, float b, float b1, float c, float c1) {
  asm("{ .reg .b64 a, b, c;\n"
      "mov.b64 a, {%2, %3};\n"
      "mov.b64 b, {%4, %5};\n"
      "mov.b64 c, {%6, %7};\n"
      "fma.rn.f32x2 a, a, b, c;\n"
      "mov.b64 {%0, %1}, a; }"
      : "=f"(d[0]), "=f"(d[1])
      : "f"(a), "f"(a1), "f"(b), "f"(b1), "f"(c), "f"(c1));
}
)"},
    {"exp2_approx", R"(__device__ __forceinline__ float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
)"},
    {"exp2_polynomial",
     R"(// 2^floor(x) times a polynomial of what is left. From -127 down it is 0, from 128 up infinity.
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
)"},
    {"log2_approx", R"(__device__ __forceinline__ float log2_approx(float x) {
  float y;
  asm("lg2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
)"},
    {"rcp_approx", R"(__device__ __forceinline__ float rcp_approx(float x) {
  float y;
  asm("rcp.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
)"},
    {"sqrt_approx", R"(__device__ __forceinline__ float sqrt_approx(float x) {
  float y;
  asm("sqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
)"},
    {"rsqrt_approx", R"(__device__ __forceinline__ float rsqrt_approx(float x) {
  float y;
  asm("rsqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
)"},
    {"tanh_approx", R"(__device__ __forceinline__ float tanh_approx(float x) {
  float y;
  asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
)"},
    {"angle_rest",
     R"(// x less the nearest multiple of 2 pi = 6.28318548 - 1.74845553e-7: the inner step is exact.
__device__ __forceinline__ float angle_rest(float x) {
  const float turns = rintf(x * 0.159154943f);
  return __fmaf_rn(turns, 1.74845553e-7f, __fmaf_rn(turns, -6.28318548f, x));
}
)"},
    {"sin_approx", R"(__device__ __forceinline__ float sin_approx(float x) {
  float y;
  asm("sin.approx.f32 %0, %1;" : "=f"(y) : "f"(angle_rest(x)));
  return y;
}
)"},
    {"cos_approx", R"(__device__ __forceinline__ float cos_approx(float x) {
  float y;
  asm("cos.approx.f32 %0, %1;" : "=f"(y) : "f"(angle_rest(x)));
  return y;
}
)"},
    {"div_full", R"(__device__ __forceinline__ float div_full(float a, float b) {
  float y;
  asm("div.full.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}
)"},
    // Packed elements: element 0 lies lowest.
    {"pack_bf16", R"(__device__ __forceinline__ u32 pack_bf16(float low, float high) {
  u32 r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
}
)"},
    {"pack_f16", R"(__device__ __forceinline__ u32 pack_f16(float low, float high) {
  u32 r;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
}
)"},
    {"pack_e4m3", R"(__device__ __forceinline__ u32 pack_e4m3(float a, float b, float c, float d) {
  u32 r;
  asm("{ .reg .b16 low, high;\n"
      "cvt.rn.satfinite.e4m3x2.f32 low, %2, %1;\n"
      "cvt.rn.satfinite.e4m3x2.f32 high, %4, %3;\n"
      "mov.b32 %0, {low, high}; }"
      : "=r"(r) : "f"(a), "f"(b), "f"(c), "f"(d));
  return r;
}
)"},
    {"pack_bytes", R"(__device__ __forceinline__ u32 pack_bytes(int a, int b, int c, int d) {
  return __byte_perm(__byte_perm(a, b, 0x0040), __byte_perm(c, d, 0x0040), 0x5410);
}
)"},
    {"round_i8", R"(__device__ __forceinline__ int round_i8(float x) {
  int y;
  asm("cvt.rni.sat.s8.f32 %0, %1;" : "=r"(y) : "f"(x));
  return y;
}
)"},
    {"round_u8", R"(__device__ __forceinline__ int round_u8(float x) {
  int y;
  asm("cvt.rni.sat.u8.f32 %0, %1;" : "=r"(y) : "f"(x));
  return y;
}
)"},
    {"saturate_i8", R"(template <typename T>
__device__ __forceinline__ int saturate_i8(T a) {
  return (int)(a < -128 ? -128 : a > 127 ? 127 : a);
}
)"},
    {"saturate_u8", R"(template <typename T>
__device__ __forceinline__ int saturate_u8(T a) {
  return (int)(a < 0 ? 0 : a > 255 ? 255 : a);
}
)"},
    {"round_u32",
     R"(__device__ __forceinline__ u32 round_u32(float x) { return __float2uint_rn(x); }
)"},
    {"saturate_u32", R"(template <typename T>
__device__ __forceinline__ u32 saturate_u32(T a) {
  return (u32)(a < 0 ? 0 : a > 4294967295ll ? 4294967295ll : a);
}
)"},
    {"from_i8",
     R"(__device__ __forceinline__ int from_i8(u32 bits) { return (int)(signed char)bits; }
)"},
    {"from_u8",
     R"(__device__ __forceinline__ int from_u8(u32 bits) { return (int)(bits & 0xff); }
)"},
    {"from_bf16",
     R"(__device__ __forceinline__ float from_bf16(u32 bits) { return __uint_as_float(bits << 16); }
)"},
    {"from_f16", R"(__device__ __forceinline__ float from_f16(u32 bits) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"((u16)bits));
  return y;
}
)"},
    {"from_e4m3", R"(__device__ __forceinline__ float from_e4m3(u32 bits) {
  float y;
  asm("{ .reg .b32 pair; .reg .b16 low, high;\n"
      "cvt.rn.f16x2.e4m3x2 pair, %1;\n"
      "mov.b32 {low, high}, pair;\n"
      "cvt.f32.f16 %0, low; }"
      : "=f"(y) : "h"((u16)(bits & 0xff)));
  return y;
}
)"},
    {"bf16_at", R"(__device__ __forceinline__ float bf16_at(const u32* r, int i) {
  return i & 1 ? __uint_as_float(r[i / 2] & 0xffff0000u) : __uint_as_float(r[i / 2] << 16);
}
)"},
    {"f16_at",
     R"(__device__ __forceinline__ float f16_at(const u32* r, int i) { return from_f16(r[i / 2] >> i % 2 * 16); }
)"},
    {"e4m3_at",
     R"(__device__ __forceinline__ float e4m3_at(const u32* r, int i) { return from_e4m3(r[i / 4] >> i % 4 * 8); }
)"},
    {"subtract_bf16", R"(__device__ __forceinline__ u32 subtract_bf16(u32 a, u32 b) {
  u32 d;
  asm("sub.rn.bf16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
  return d;
}
)"},
    {"subtract_f16", R"(__device__ __forceinline__ u32 subtract_f16(u32 a, u32 b) {
  u32 d;
  asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
  return d;
}
)"},
    {"f16_of_f8e4m3", R"(__device__ __forceinline__ void f16_of_f8e4m3(u32* r, u32 bytes) {
  asm("{ .reg .b16 low, high;\n"
      "mov.b32 {low, high}, %2;\n"
      "cvt.rn.f16x2.e4m3x2 %0, low;\n"
      "cvt.rn.f16x2.e4m3x2 %1, high; }"
      : "=r"(r[0]), "=r"(r[1]) : "r"(bytes));
}
)"},
    {"bf16_of_f8e4m3", R"(__device__ __forceinline__ void bf16_of_f8e4m3(u32* r, u32 bytes) {
  u32 halves[2];
  f16_of_f8e4m3(halves, bytes);
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    r[i] = pack_bf16(from_f16(halves[i]), from_f16(halves[i] >> 16));
  }
}
)"},
    {"bf16_of_i8",
     R"(// 0x4300 is 128 of bf16, whose last seven bits count on from there; with the eighth it is 256.
__device__ __forceinline__ void bf16_of_i8(u32* r, u32 bytes) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const u32 apart = __byte_perm(bytes, 0, i == 0 ? 0x4140 : 0x4342);
    r[i] = subtract_bf16((apart & 0x7f007f) | 0x43004300, (apart & 0x800080) | 0x43004300);
  }
}
)"},
    {"bf16_of_u8", R"(// As of i8, 128 less, and 128 more.
__device__ __forceinline__ void bf16_of_u8(u32* r, u32 bytes) {
  bf16_of_i8(r, bytes ^ 0x80808080);
#pragma unroll
  for (int i = 0; i < 2; ++i) r[i] = subtract_bf16(r[i], 0xc300c300);
}
)"},
    {"f16_of_u8", R"(// 0x6400 is 1024 of f16, whose last eight bits count on from there.
__device__ __forceinline__ void f16_of_u8(u32* r, u32 bytes) {
  r[0] = subtract_f16(__byte_perm(bytes, 0x64646464, 0x4140), 0x64006400);
  r[1] = subtract_f16(__byte_perm(bytes, 0x64646464, 0x4342), 0x64006400);
}
)"},
    {"f16_of_i8", R"(// 1152 is 128 more.
__device__ __forceinline__ void f16_of_i8(u32* r, u32 bytes) {
  bytes ^= 0x80808080;
  r[0] = subtract_f16(__byte_perm(bytes, 0x64646464, 0x4140), 0x64806480);
  r[1] = subtract_f16(__byte_perm(bytes, 0x64646464, 0x4342), 0x64806480);
}
)"},
    {"i8_at",
     R"(__device__ __forceinline__ int i8_at(const u32* r, int i) { return from_i8(r[i / 4] >> i % 4 * 8); }
)"},
    {"u8_at",
     R"(__device__ __forceinline__ int u8_at(const u32* r, int i) { return from_u8(r[i / 4] >> i % 4 * 8); }
)"},
};

}  // namespace

std::span<const Piece> arithmetic_pieces() { return kArithmeticPieces; }

}  // namespace tilewright::codegen
