#include "codegen/cuda/prelude.h"

#include <cctype>
#include <iterator>
#include <vector>

namespace tilewright::codegen {
namespace {

struct Piece {
  std::string_view name;  // of the function; the first pieces are what all need
  std::string_view text;
};

// A piece may call those above it.
constexpr Piece kPieces[] = {
    {"", R"(typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
)"},
    {"TensorMap", R"(struct alignas(64) TensorMap { u64 words[16]; };
)"},
    {"PeerMaps", R"(struct PeerMaps { TensorMap rank[8]; };
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
    {"exp2_approx", R"(__device__ __forceinline__ float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
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
    {"i8_at",
     R"(__device__ __forceinline__ int i8_at(const u32* r, int i) { return from_i8(r[i / 4] >> i % 4 * 8); }
)"},
    {"u8_at",
     R"(__device__ __forceinline__ int u8_at(const u32* r, int i) { return from_u8(r[i / 4] >> i % 4 * 8); }
)"},
    // Barriers.
    {"mbarrier_init", R"(__device__ __forceinline__ void mbarrier_init(u32 barrier, u32 arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
)"},
    {"fence_barrier_init", R"(__device__ __forceinline__ void fence_barrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
)"},
    {"mbarrier_expect_tx",
     R"(__device__ __forceinline__ void mbarrier_expect_tx(u32 barrier, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
)"},
    {"mbarrier_arrive", R"(__device__ __forceinline__ void mbarrier_arrive(u32 barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
)"},
    // Unqualified: .release.cluster would compile to a fence of the whole GPU.
    {"mbarrier_arrive_remote",
     R"(__device__ __forceinline__ void mbarrier_arrive_remote(u32 barrier, u32 cta) {
  asm volatile(
      "{ .reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [remote]; }" ::"r"(barrier), "r"(cta) : "memory");
}
)"},
    {"mbarrier_wait", R"(__device__ __forceinline__ void mbarrier_wait(u32 barrier, u32 parity) {
  asm volatile(
      "{ .reg .pred done;\n"
      "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@done bra end;\n"
      "bra again;\n"
      "end: }" ::"r"(barrier), "r"(parity) : "memory");
}
)"},
    {"named_sync", R"(template <int kBarrier, int kThreads>
__device__ __forceinline__ void named_sync() {
  asm volatile("bar.sync %0, %1;" ::"n"(kBarrier), "n"(kThreads) : "memory");
}
)"},
    {"named_arrive", R"(template <int kBarrier, int kThreads>
__device__ __forceinline__ void named_arrive() {
  asm volatile("bar.arrive %0, %1;" ::"n"(kBarrier), "n"(kThreads) : "memory");
}
)"},
    {"cluster_sync", R"(__device__ __forceinline__ void cluster_sync() {
  asm volatile(
      "barrier.cluster.arrive.release.aligned;\n"
      "barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
)"},
    {"cluster_rank", R"(__device__ __forceinline__ int cluster_rank() {
  int rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
)"},
    {"fence_proxy_async", R"(__device__ __forceinline__ void fence_proxy_async() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
)"},
    {"fence_proxy_async_global", R"(__device__ __forceinline__ void fence_proxy_async_global() {
  asm volatile("fence.proxy.async.global;" ::: "memory");
}
)"},
    {"fence_cluster", R"(__device__ __forceinline__ void fence_cluster() {
  asm volatile("fence.acq_rel.cluster;" ::: "memory");
}
)"},
    {"bulk_commit",
     R"(__device__ __forceinline__ void bulk_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
)"},
    {"bulk_wait", R"(template <int kGroups>
__device__ __forceinline__ void bulk_wait() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(kGroups) : "memory");
}
)"},
    {"bulk_wait_read", R"(template <int kGroups>
__device__ __forceinline__ void bulk_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kGroups) : "memory");
}
)"},
    {"increase_registers", R"(template <int kCount>
__device__ __forceinline__ void increase_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kCount));
}
)"},
    {"decrease_registers", R"(template <int kCount>
__device__ __forceinline__ void decrease_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kCount));
}
)"},
    // Shared memory.
    {"load_shared", R"(template <typename T>
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
)"},
    {"in_cta", R"(// An address of this CTA's shared memory as one of another CTA of the cluster.
__device__ __forceinline__ u32 in_cta(u32 address, u32 cta) {
  u32 remote;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(address), "r"(cta));
  return remote;
}
)"},
    {"load_words", R"(__device__ __forceinline__ void load_words(u32 address, float* r) {
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(r[0]), "=f"(r[1]), "=f"(r[2]), "=f"(r[3]) : "r"(address) : "memory");
}
)"},
    {"load_words_cluster",
     R"(__device__ __forceinline__ void load_words_cluster(u32 address, float* r) {
  asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(r[0]), "=f"(r[1]), "=f"(r[2]), "=f"(r[3]) : "r"(address) : "memory");
}
)"},
    {"store_words", R"(__device__ __forceinline__ void store_words(u32 address, const float* r) {
  asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(address), "f"(r[0]), "f"(r[1]), "f"(r[2]),
               "f"(r[3]) : "memory");
}
)"},
    {"store_shared", R"(__device__ __forceinline__ void store_shared(u32 address, int v) {
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
)"},
    {"stmatrix_x4", R"(__device__ __forceinline__ void stmatrix_x4(u32 address, const u32* r) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared::cta.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(r[0]),
               "r"(r[1]), "r"(r[2]), "r"(r[3]) : "memory");
}
)"},
    {"ldmatrix_x4", R"(__device__ __forceinline__ void ldmatrix_x4(u32 address, u32* r) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared::cta.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address) : "memory");
}
)"},
    {"stmatrix_x4_trans",
     R"(__device__ __forceinline__ void stmatrix_x4_trans(u32 address, const u32* r) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared::cta.b16 [%0], {%1, %2, %3, %4};"
               :: "r"(address), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]) : "memory");
}
)"},
    {"stmatrix_x2", R"(__device__ __forceinline__ void stmatrix_x2(u32 address, const u32* r) {
  asm volatile("stmatrix.sync.aligned.m8n8.x2.shared::cta.b16 [%0], {%1, %2};"
               :: "r"(address), "r"(r[0]), "r"(r[1]) : "memory");
}
)"},
    {"stmatrix_x2_trans",
     R"(__device__ __forceinline__ void stmatrix_x2_trans(u32 address, const u32* r) {
  asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared::cta.b16 [%0], {%1, %2};"
               :: "r"(address), "r"(r[0]), "r"(r[1]) : "memory");
}
)"},
    {"ldmatrix_x4_trans",
     R"(__device__ __forceinline__ void ldmatrix_x4_trans(u32 address, u32* r) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared::cta.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address) : "memory");
}
)"},
    {"ldmatrix_x2", R"(__device__ __forceinline__ void ldmatrix_x2(u32 address, u32* r) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared::cta.b16 {%0, %1}, [%2];"
               : "=r"(r[0]), "=r"(r[1]) : "r"(address) : "memory");
}
)"},
    {"ldmatrix_x2_trans",
     R"(__device__ __forceinline__ void ldmatrix_x2_trans(u32 address, u32* r) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared::cta.b16 {%0, %1}, [%2];"
               : "=r"(r[0]), "=r"(r[1]) : "r"(address) : "memory");
}
)"},
    // Global memory.
    {"atomic_add",
     R"(__device__ __forceinline__ int atomic_add(int* address, int v) { return atomicAdd(address, v); }
__device__ __forceinline__ i64 atomic_add(i64* address, i64 v) { return (i64)atomicAdd((u64*)address, (u64)v); }
)"},
    {"word", R"(__device__ __forceinline__ u32 word(u32 v) { return v; }
__device__ __forceinline__ u32 word(int v) { return (u32)v; }
__device__ __forceinline__ u32 word(float v) { return __float_as_uint(v); }
)"},
    {"store_vector_4", R"(template <typename T>
__device__ __forceinline__ void store_vector_4(void* address, const T* r) {
  *(u32*)address = word(r[0]);
}
)"},
    {"store_vector_8", R"(template <typename T>
__device__ __forceinline__ void store_vector_8(void* address, const T* r) {
  *(uint2*)address = make_uint2(word(r[0]), word(r[1]));
}
)"},
    {"store_vector_16", R"(template <typename T>
__device__ __forceinline__ void store_vector_16(void* address, const T* r) {
  *(uint4*)address = make_uint4(word(r[0]), word(r[1]), word(r[2]), word(r[3]));
}
)"},
    {"compiler_fence",
     R"(__device__ __forceinline__ void compiler_fence() { asm volatile("" ::: "memory"); }
)"},
    {"set_word", R"(__device__ __forceinline__ void set_word(u32& r, u32 v) { r = v; }
__device__ __forceinline__ void set_word(int& r, u32 v) { r = (int)v; }
__device__ __forceinline__ void set_word(float& r, u32 v) { r = __uint_as_float(v); }
)"},
    {"load_vector_4", R"(template <typename T>
__device__ __forceinline__ void load_vector_4(T* r, const void* address, bool exists) {
  u32 v = 0;
  if (exists) v = *(const u32*)address;
  set_word(r[0], v);
}
)"},
    {"load_vector_8", R"(template <typename T>
__device__ __forceinline__ void load_vector_8(T* r, const void* address, bool exists) {
  uint2 v = make_uint2(0, 0);
  if (exists) v = *(const uint2*)address;
  set_word(r[0], v.x); set_word(r[1], v.y);
}
)"},
    {"load_vector_16", R"(template <typename T>
__device__ __forceinline__ void load_vector_16(T* r, const void* address, bool exists) {
  uint4 v = make_uint4(0, 0, 0, 0);
  if (exists) v = *(const uint4*)address;
  set_word(r[0], v.x); set_word(r[1], v.y); set_word(r[2], v.z); set_word(r[3], v.w);
}
)"},
    // Products.
    {"pin", R"(// Keeps the registers of an array where they are across an asynchronous product.
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
)"},
    {"wgmma_fence",
     R"(__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
)"},
    {"wgmma_commit",
     R"(__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
)"},
    {"wgmma_wait", R"(template <int kGroups>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kGroups) : "memory");
}
)"},
    {"inject_delay", R"(__device__ __forceinline__ void inject_delay(u32 site, int warp) {
  u32 x;
  asm volatile("mov.u32 %0, %%clock;" : "=r"(x));
  x = (x ^ site) + 0x9e3779b9u * (64 * blockIdx.x + (u32)warp);
  x = (x ^ x >> 16) * 0x7feb352du;
  x = (x ^ x >> 15) * 0x846ca68bu;
  x ^= x >> 16;
  // No branch: lanes must not part before what they do together.
  const u32 longest = (x & 63) == 0 ? 0x7fff : (x & 3) == 0 ? 0x7ff : 0;
  asm volatile("nanosleep.u32 %0;" ::"r"(x >> 8 & longest) : "memory");
}
)"},
    {"descriptor", R"(// Of a matrix at a shared address that is a multiple of 16.
__device__ __forceinline__ u64 descriptor(u32 high, u32 low, u32 address) {
  return (u64)high << 32 | (low + (address >> 4));
}
)"},
    {"descriptor_in_cluster",
     R"(// The upper bits of such an address are the CTA's rank in its cluster.
__device__ __forceinline__ u64 descriptor_in_cluster(u32 high, u32 low, u32 address) {
  return (u64)high << 32 | (low + ((address & 0x3ffff) >> 4));
}
)"},
};

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

bool mentions(std::string_view text, std::string_view name) {
  for (std::size_t at = text.find(name); at != std::string_view::npos;
       at = text.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if ((at == 0 || !is_word(text[at - 1])) && (end == text.size() || !is_word(text[end]))) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::string prelude_for(std::string_view text) {
  std::vector<std::string_view> used;
  for (auto piece = std::rbegin(kPieces); piece != std::rend(kPieces); ++piece) {
    bool needed = piece->name.empty() || mentions(text, piece->name);
    for (const std::string_view other : used) needed = needed || mentions(other, piece->name);
    if (needed) used.push_back(piece->text);
  }
  std::string result;
  for (auto piece = used.rbegin(); piece != used.rend(); ++piece) result += *piece;
  return result;
}

}  // namespace tilewright::codegen
