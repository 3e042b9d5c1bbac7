#include "codegen/cuda/prelude.h"

#include <cctype>
#include <iterator>
#include <vector>

#include "codegen/cuda/prelude_pieces.h"

namespace tilewright::codegen {
namespace {

// These may call arithmetic_pieces() and those above them.
constexpr Piece kPieces[] = {
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
    {"cluster_copy",
     R"(__device__ __forceinline__ void cluster_copy(u32 to, u32 from, u32 bytes, u32 barrier, u32 cta) {
  asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
               ::"r"(in_cta(to, cta)), "r"(from), "r"(bytes), "r"(in_cta(barrier, cta)) : "memory");
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
    {"red_add", R"(__device__ __forceinline__ void red_add(float* address, float v) {
  asm volatile("red.relaxed.gpu.global.add.f32 [%0], %1;" :: "l"(address), "f"(v) : "memory");
}
)"},
    {"red_add_vector_8",
     R"(__device__ __forceinline__ void red_add_vector_8(float* address, const float* r, bool aligned) {
  if (!aligned) {
    red_add(address, r[0]);
    red_add(address + 1, r[1]);
  } else {
    asm volatile("red.relaxed.gpu.global.add.v2.f32 [%0], {%1, %2};"
                 :: "l"(address), "f"(r[0]), "f"(r[1]) : "memory");
  }
}
)"},
    {"red_add_vector_16",
     R"(__device__ __forceinline__ void red_add_vector_16(float* address, const float* r, bool aligned) {
  if (!aligned) {
    red_add_vector_8(address, r, false);
    red_add_vector_8(address + 2, r + 2, false);
  } else {
    asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};"
                 :: "l"(address), "f"(r[0]), "f"(r[1]), "f"(r[2]), "f"(r[3]) : "memory");
  }
}
)"},
    {"here",
     R"(// The number, computed where it is used: kept over a loop, places would take the accumulators'
// registers.
__device__ __forceinline__ int here(int x) {
  asm volatile("" : "+r"(x));
  return x;
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
    // What L2 evicts first.
    {"load_streamed_vector_4", R"(template <typename T>
__device__ __forceinline__ void load_streamed_vector_4(T* r, const void* address, bool exists) {
  u32 v = 0;
  if (exists) v = __ldcs((const u32*)address);
  set_word(r[0], v);
}
)"},
    {"load_streamed_vector_8", R"(template <typename T>
__device__ __forceinline__ void load_streamed_vector_8(T* r, const void* address, bool exists) {
  uint2 v = make_uint2(0, 0);
  if (exists) v = __ldcs((const uint2*)address);
  set_word(r[0], v.x); set_word(r[1], v.y);
}
)"},
    {"load_streamed_vector_16", R"(template <typename T>
__device__ __forceinline__ void load_streamed_vector_16(T* r, const void* address, bool exists) {
  uint4 v = make_uint4(0, 0, 0, 0);
  if (exists) v = __ldcs((const uint4*)address);
  set_word(r[0], v.x); set_word(r[1], v.y); set_word(r[2], v.z); set_word(r[3], v.w);
}
)"},
    // Whole registers of shared memory.
    {"load_shared_4", R"(template <typename T>
__device__ __forceinline__ void load_shared_4(u32 address, T* r) {
  u32 v0;
  asm volatile("ld.shared.b32 %0, [%1];" : "=r"(v0) : "r"(address) : "memory");
  set_word(r[0], v0);
}
)"},
    {"store_shared_4", R"(template <typename T>
__device__ __forceinline__ void store_shared_4(u32 address, const T* r) {
  asm volatile("st.shared.b32 [%0], %1;" ::"r"(address), "r"(word(r[0])) : "memory");
}
)"},
    {"load_shared_8", R"(template <typename T>
__device__ __forceinline__ void load_shared_8(u32 address, T* r) {
  u32 v0, v1;
  asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];" : "=r"(v0), "=r"(v1) : "r"(address) : "memory");
  set_word(r[0], v0); set_word(r[1], v1);
}
)"},
    {"store_shared_8", R"(template <typename T>
__device__ __forceinline__ void store_shared_8(u32 address, const T* r) {
  asm volatile("st.shared.v2.b32 [%0], {%1, %2};" ::"r"(address), "r"(word(r[0])), "r"(word(r[1]))
               : "memory");
}
)"},
    {"load_shared_16", R"(template <typename T>
__device__ __forceinline__ void load_shared_16(u32 address, T* r) {
  u32 v0, v1, v2, v3;
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v0), "=r"(v1), "=r"(v2), "=r"(v3) : "r"(address) : "memory");
  set_word(r[0], v0); set_word(r[1], v1); set_word(r[2], v2); set_word(r[3], v3);
}
)"},
    {"store_shared_16", R"(template <typename T>
__device__ __forceinline__ void store_shared_16(u32 address, const T* r) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(word(r[0])),
               "r"(word(r[1])), "r"(word(r[2])), "r"(word(r[3])) : "memory");
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
    // The host reads the report once the launch has failed. Who finds it taken waits for it, since
    // a
    // trap ends all threads; reading it back, both know that it has reached the host.
    {"stop_at_check",
     R"(__device__ __forceinline__ void stop_at_check(i64* report, int check, int warp, i64 a, i64 b, i64 c, i64 d) {
  i64 before;
  asm volatile("atom.relaxed.sys.global.cas.b64 %0, [%1], %2, %3;"
               : "=l"(before) : "l"(report + 1), "l"(0ll), "l"(1ll) : "memory");
  if (before == 0) {
    const i64 words[7] = {check, (i64)blockIdx.x, warp, a, b, c, d};
#pragma unroll
    for (int i = 0; i < 7; ++i) {
      asm volatile("st.relaxed.sys.global.b64 [%0], %1;" ::"l"(report + 2 + i), "l"(words[i]) : "memory");
    }
    asm volatile("st.release.sys.global.b64 [%0], %1;" ::"l"(report), "l"(1ll) : "memory");
  }
  i64 written;
  do {
    asm volatile("ld.acquire.sys.global.b64 %0, [%1];" : "=l"(written) : "l"(report) : "memory");
  } while (written == 0);
  asm volatile("trap;");
}
)"},
    // Waits that report themselves. Times are those of the GPU, which start anew in none of them.
    {"nanoseconds", R"(__device__ __forceinline__ u64 nanoseconds() {
  u64 now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}
)"},
    {"late_at", R"(// When a wait that begins now has lasted too long, by what the host has written.
__device__ __forceinline__ u64 late_at(const i64* watch, int times) {
  u64 limit;
  asm volatile("ld.relaxed.sys.global.b64 %0, [%1];" : "=l"(limit) : "l"(watch) : "memory");
  return nanoseconds() + times * limit;
}
)"},
    // One lane of those that wait together reports. The others' reports are given time to come,
    // since
    // the trap ends all threads of the GPU.
    {"report_wait",
     R"(__device__ __forceinline__ void report_wait(i64* watch, int number, int warp, i64 index, i64 value, i64 found, i64 outer, i64 inner) {
  const u32 waiting = __activemask();
  if ((waiting & ((1u << (threadIdx.x & 31u)) - 1u)) == 0) {
    i64 place;
    asm volatile("atom.relaxed.sys.global.add.u64 %0, [%1], %2;"
                 : "=l"(place) : "l"(watch + 1), "l"(1ll) : "memory");
    if (place < 32) {
      i64* const record = watch + 2 + place * 9;
      const i64 words[8] = {number, (i64)blockIdx.x, warp, index, value, found, outer, inner};
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        asm volatile("st.relaxed.sys.global.b64 [%0], %1;" ::"l"(record + 1 + i), "l"(words[i]) : "memory");
      }
      asm volatile("st.release.sys.global.b64 [%0], %1;" ::"l"(record), "l"(1ll) : "memory");
    }
  }
  const u64 end = nanoseconds() + 300000000ull;
  while (nanoseconds() < end) {}
  asm volatile("trap;");
}
)"},
    // Twice as long as a wait for a word, which may be what keeps the others from coming.
    {"mbarrier_wait_watched",
     R"(__device__ __forceinline__ void mbarrier_wait_watched(u32 barrier, u32 parity, i64* watch, int number, int warp, i64 index, i64 outer, i64 inner) {
  const u64 late = late_at(watch, 2);
  for (;;) {
    int done;
    asm volatile(
        "{ .reg .pred done;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;\n"
        "selp.s32 %0, 1, 0, done; }"
        : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
    if (done) return;
    if (nanoseconds() > late) report_wait(watch, number, warp, index, parity, 0, outer, inner);
  }
}
)"},
    {"descriptor",
     R"(// Of a matrix at a shared address that is a multiple of 16. It is made where it is used: kept over a
// loop, those of all products would take the accumulators' registers.
__device__ __forceinline__ u64 descriptor(u32 high, u32 low, u32 address) {
  asm volatile("" : "+r"(address));
  return (u64)high << 32 | (low + (address >> 4));
}
)"},
    {"descriptor_in_cluster",
     R"(// The upper bits of such an address are the CTA's rank in its cluster.
__device__ __forceinline__ u64 descriptor_in_cluster(u32 high, u32 low, u32 address) {
  asm volatile("" : "+r"(address));
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

std::vector<Piece> all_pieces() {
  const std::span<const Piece> arithmetic = arithmetic_pieces();
  std::vector<Piece> pieces(arithmetic.begin(), arithmetic.end());
  const std::span<const Piece> tensor_memory = tensor_memory_pieces();
  pieces.insert(pieces.end(), tensor_memory.begin(), tensor_memory.end());
  pieces.insert(pieces.end(), std::begin(kPieces), std::end(kPieces));
  return pieces;
}

}  // namespace

std::vector<std::string_view> prelude_names() {
  std::vector<std::string_view> names;
  for (const Piece& piece : all_pieces()) {
    if (!piece.name.empty()) names.push_back(piece.name);
  }
  return names;
}

std::string prelude_for(std::string_view text) {
  const std::vector<Piece> pieces = all_pieces();
  std::vector<std::string_view> used;
  for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece) {
    bool needed = piece->name.empty() || mentions(text, piece->name);
    for (const std::string_view other : used) needed = needed || mentions(other, piece->name);
    if (needed) used.push_back(piece->text);
  }
  std::string result;
  for (auto piece = used.rbegin(); piece != used.rend(); ++piece) result += *piece;
  return result;
}

}  // namespace tilewright::codegen
