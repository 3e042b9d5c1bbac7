// ordered: 128 threads, 0 bytes of shared memory.
#pragma nv_diag_suppress 177
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
__device__ __forceinline__ u32 round_u32(float x) { return __float2uint_rn(x); }
template <typename T>
__device__ __forceinline__ u32 saturate_u32(T a) {
  return (u32)(a < 0 ? 0 : a > 4294967295ll ? 4294967295ll : a);
}
__device__ __forceinline__ u32 word(u32 v) { return v; }
__device__ __forceinline__ u32 word(int v) { return (u32)v; }
__device__ __forceinline__ u32 word(float v) { return __float_as_uint(v); }
template <typename T>
__device__ __forceinline__ void store_vector_8(void* address, const T* r) {
  *(uint2*)address = make_uint2(word(r[0]), word(r[1]));
}
// The number, computed where it is used: kept over a loop, places would take the accumulators'
// registers.
__device__ __forceinline__ int here(int x) {
  asm volatile("" : "+r"(x));
  return x;
}
__device__ __forceinline__ void compiler_fence() { asm volatile("" ::: "memory"); }
__device__ __forceinline__ u16 atom_bf16_acq_rel_cluster(u16* address, u16 v) {
  u16 old;
  asm volatile("atom.acq_rel.cluster.global.add.noftz.bf16 %0, [%1], %2;" : "=h"(old) : "l"(address), "h"(v) : "memory");
  return old;
}
__device__ __forceinline__ u16 atom_bf16_acq_rel_cta(u16* address, u16 v) {
  u16 old;
  asm volatile("atom.acq_rel.cta.global.add.noftz.bf16 %0, [%1], %2;" : "=h"(old) : "l"(address), "h"(v) : "memory");
  return old;
}
__device__ __forceinline__ u16 atom_bf16_acq_rel_gpu(u16* address, u16 v) {
  u16 old;
  asm volatile("atom.acq_rel.gpu.global.add.noftz.bf16 %0, [%1], %2;" : "=h"(old) : "l"(address), "h"(v) : "memory");
  return old;
}
__device__ __forceinline__ u16 atom_bf16_acq_rel_sys(u16* address, u16 v) {
  u16 old;
  asm volatile("atom.acq_rel.sys.global.add.noftz.bf16 %0, [%1], %2;" : "=h"(old) : "l"(address), "h"(v) : "memory");
  return old;
}
__device__ __forceinline__ u16 atom_bf16_acquire_cluster(u16* address, u16 v) {
  u16 old;
  asm volatile("atom.acquire.cluster.global.add.noftz.bf16 %0, [%1], %2;" : "=h"(old) : "l"(address), "h"(v) : "memory");
  return old;
}
__device__ __forceinline__ u16 atom_bf16_acquire_cta(u16* address, u16 v) {
  u16 old;
  asm volatile("atom.acquire.cta.global.add.noftz.bf16 %0, [%1], %2;" : "=h"(old) : "l"(address), "h"(v) : "memory");
  return old;
}
__device__ __forceinline__ u16 atom_bf16_acquire_gpu(u16* address, u16 v) {
  u16 old;
  asm volatile("atom.acquire.gpu.global.add.noftz.bf16 %0, [%1], %2;" : "=h"(old) : "l"(address), "h"(v) : "memory");
  return old;
}
__device__ __forceinline__ u16 atom_bf16_acquire_sys(u16* address, u16 v) {
  u16 old;
  asm volatile("atom.acquire.sys.global.add.noftz.bf16 %0, [%1], %2;" : "=h"(old) : "l"(address), "h"(v) : "memory");
  return old;
}
__device__ __forceinline__ u16 atom_bf16_relaxed_cluster(u16* address, u16 v) {
  u16 old;
  asm volatile("atom.relaxed.cluster.global.add.noftz.bf16 %0, [%1], %2;" : "=h"(old) : "l"(address), "h"(v) : "memory");
  return old;
}
__device__ __forceinline__ u16 atom_bf16_relaxed_cta(u16* address, u16 v) {
  u16 old;
  asm volatile("atom.relaxed.cta.global.add.noftz.bf16 %0, [%1], %2;" : "=h"(old) : "l"(address), "h"(v) : "memory");
  return old;
}
__device__ __forceinline__ u16 atom_bf16_relaxed_gpu(u16* address, u16 v) {
  u16 old;
  asm volatile("atom.relaxed.gpu.global.add.noftz.bf16 %0, [%1], %2;" : "=h"(old) : "l"(address), "h"(v) : "memory");
  return old;
}
__device__ __forceinline__ u16 atom_bf16_relaxed_sys(u16* address, u16 v) {
  u16 old;
  asm volatile("atom.relaxed.sys.global.add.noftz.bf16 %0, [%1], %2;" : "=h"(old) : "l"(address), "h"(v) : "memory");
  return old;
}
__device__ __forceinline__ u16 atom_bf16_release_cluster(u16* address, u16 v) {
  u16 old;
  asm volatile("atom.release.cluster.global.add.noftz.bf16 %0, [%1], %2;" : "=h"(old) : "l"(address), "h"(v) : "memory");
  return old;
}
__device__ __forceinline__ u16 atom_bf16_release_cta(u16* address, u16 v) {
  u16 old;
  asm volatile("atom.release.cta.global.add.noftz.bf16 %0, [%1], %2;" : "=h"(old) : "l"(address), "h"(v) : "memory");
  return old;
}
__device__ __forceinline__ u16 atom_bf16_release_gpu(u16* address, u16 v) {
  u16 old;
  asm volatile("atom.release.gpu.global.add.noftz.bf16 %0, [%1], %2;" : "=h"(old) : "l"(address), "h"(v) : "memory");
  return old;
}
__device__ __forceinline__ u16 atom_bf16_release_sys(u16* address, u16 v) {
  u16 old;
  asm volatile("atom.release.sys.global.add.noftz.bf16 %0, [%1], %2;" : "=h"(old) : "l"(address), "h"(v) : "memory");
  return old;
}
__device__ __forceinline__ u32 atom_bf16x2_acq_rel_cluster(u32* address, u32 v) {
  u32 old;
  asm volatile("atom.acq_rel.cluster.global.add.noftz.bf16x2 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ u32 atom_bf16x2_acq_rel_cta(u32* address, u32 v) {
  u32 old;
  asm volatile("atom.acq_rel.cta.global.add.noftz.bf16x2 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ u32 atom_bf16x2_acq_rel_gpu(u32* address, u32 v) {
  u32 old;
  asm volatile("atom.acq_rel.gpu.global.add.noftz.bf16x2 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ u32 atom_bf16x2_acq_rel_sys(u32* address, u32 v) {
  u32 old;
  asm volatile("atom.acq_rel.sys.global.add.noftz.bf16x2 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ u32 atom_bf16x2_acquire_cluster(u32* address, u32 v) {
  u32 old;
  asm volatile("atom.acquire.cluster.global.add.noftz.bf16x2 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ u32 atom_bf16x2_acquire_cta(u32* address, u32 v) {
  u32 old;
  asm volatile("atom.acquire.cta.global.add.noftz.bf16x2 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ u32 atom_bf16x2_acquire_gpu(u32* address, u32 v) {
  u32 old;
  asm volatile("atom.acquire.gpu.global.add.noftz.bf16x2 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ u32 atom_bf16x2_acquire_sys(u32* address, u32 v) {
  u32 old;
  asm volatile("atom.acquire.sys.global.add.noftz.bf16x2 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ u32 atom_bf16x2_relaxed_cluster(u32* address, u32 v) {
  u32 old;
  asm volatile("atom.relaxed.cluster.global.add.noftz.bf16x2 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ u32 atom_bf16x2_relaxed_cta(u32* address, u32 v) {
  u32 old;
  asm volatile("atom.relaxed.cta.global.add.noftz.bf16x2 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ u32 atom_bf16x2_relaxed_gpu(u32* address, u32 v) {
  u32 old;
  asm volatile("atom.relaxed.gpu.global.add.noftz.bf16x2 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ u32 atom_bf16x2_relaxed_sys(u32* address, u32 v) {
  u32 old;
  asm volatile("atom.relaxed.sys.global.add.noftz.bf16x2 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ u32 atom_bf16x2_release_cluster(u32* address, u32 v) {
  u32 old;
  asm volatile("atom.release.cluster.global.add.noftz.bf16x2 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ u32 atom_bf16x2_release_cta(u32* address, u32 v) {
  u32 old;
  asm volatile("atom.release.cta.global.add.noftz.bf16x2 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ u32 atom_bf16x2_release_gpu(u32* address, u32 v) {
  u32 old;
  asm volatile("atom.release.gpu.global.add.noftz.bf16x2 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ u32 atom_bf16x2_release_sys(u32* address, u32 v) {
  u32 old;
  asm volatile("atom.release.sys.global.add.noftz.bf16x2 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ u16 atom_f16_acq_rel_cluster(u16* address, u16 v) {
  u16 old;
  asm volatile("atom.acq_rel.cluster.global.add.noftz.f16 %0, [%1], %2;" : "=h"(old) : "l"(address), "h"(v) : "memory");
  return old;
}
__device__ __forceinline__ u16 atom_f16_acq_rel_cta(u16* address, u16 v) {
  u16 old;
  asm volatile("atom.acq_rel.cta.global.add.noftz.f16 %0, [%1], %2;" : "=h"(old) : "l"(address), "h"(v) : "memory");
  return old;
}
__device__ __forceinline__ u16 atom_f16_acq_rel_gpu(u16* address, u16 v) {
  u16 old;
  asm volatile("atom.acq_rel.gpu.global.add.noftz.f16 %0, [%1], %2;" : "=h"(old) : "l"(address), "h"(v) : "memory");
  return old;
}
__device__ __forceinline__ u16 atom_f16_acq_rel_sys(u16* address, u16 v) {
  u16 old;
  asm volatile("atom.acq_rel.sys.global.add.noftz.f16 %0, [%1], %2;" : "=h"(old) : "l"(address), "h"(v) : "memory");
  return old;
}
__device__ __forceinline__ u16 atom_f16_acquire_cluster(u16* address, u16 v) {
  u16 old;
  asm volatile("atom.acquire.cluster.global.add.noftz.f16 %0, [%1], %2;" : "=h"(old) : "l"(address), "h"(v) : "memory");
  return old;
}
__device__ __forceinline__ u16 atom_f16_acquire_cta(u16* address, u16 v) {
  u16 old;
  asm volatile("atom.acquire.cta.global.add.noftz.f16 %0, [%1], %2;" : "=h"(old) : "l"(address), "h"(v) : "memory");
  return old;
}
__device__ __forceinline__ u16 atom_f16_acquire_gpu(u16* address, u16 v) {
  u16 old;
  asm volatile("atom.acquire.gpu.global.add.noftz.f16 %0, [%1], %2;" : "=h"(old) : "l"(address), "h"(v) : "memory");
  return old;
}
__device__ __forceinline__ u16 atom_f16_acquire_sys(u16* address, u16 v) {
  u16 old;
  asm volatile("atom.acquire.sys.global.add.noftz.f16 %0, [%1], %2;" : "=h"(old) : "l"(address), "h"(v) : "memory");
  return old;
}
__device__ __forceinline__ u16 atom_f16_relaxed_cluster(u16* address, u16 v) {
  u16 old;
  asm volatile("atom.relaxed.cluster.global.add.noftz.f16 %0, [%1], %2;" : "=h"(old) : "l"(address), "h"(v) : "memory");
  return old;
}
__device__ __forceinline__ u16 atom_f16_relaxed_cta(u16* address, u16 v) {
  u16 old;
  asm volatile("atom.relaxed.cta.global.add.noftz.f16 %0, [%1], %2;" : "=h"(old) : "l"(address), "h"(v) : "memory");
  return old;
}
__device__ __forceinline__ u16 atom_f16_relaxed_gpu(u16* address, u16 v) {
  u16 old;
  asm volatile("atom.relaxed.gpu.global.add.noftz.f16 %0, [%1], %2;" : "=h"(old) : "l"(address), "h"(v) : "memory");
  return old;
}
__device__ __forceinline__ u16 atom_f16_relaxed_sys(u16* address, u16 v) {
  u16 old;
  asm volatile("atom.relaxed.sys.global.add.noftz.f16 %0, [%1], %2;" : "=h"(old) : "l"(address), "h"(v) : "memory");
  return old;
}
__device__ __forceinline__ u16 atom_f16_release_cluster(u16* address, u16 v) {
  u16 old;
  asm volatile("atom.release.cluster.global.add.noftz.f16 %0, [%1], %2;" : "=h"(old) : "l"(address), "h"(v) : "memory");
  return old;
}
__device__ __forceinline__ u16 atom_f16_release_cta(u16* address, u16 v) {
  u16 old;
  asm volatile("atom.release.cta.global.add.noftz.f16 %0, [%1], %2;" : "=h"(old) : "l"(address), "h"(v) : "memory");
  return old;
}
__device__ __forceinline__ u16 atom_f16_release_gpu(u16* address, u16 v) {
  u16 old;
  asm volatile("atom.release.gpu.global.add.noftz.f16 %0, [%1], %2;" : "=h"(old) : "l"(address), "h"(v) : "memory");
  return old;
}
__device__ __forceinline__ u16 atom_f16_release_sys(u16* address, u16 v) {
  u16 old;
  asm volatile("atom.release.sys.global.add.noftz.f16 %0, [%1], %2;" : "=h"(old) : "l"(address), "h"(v) : "memory");
  return old;
}
__device__ __forceinline__ u32 atom_f16x2_acq_rel_cluster(u32* address, u32 v) {
  u32 old;
  asm volatile("atom.acq_rel.cluster.global.add.noftz.f16x2 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ u32 atom_f16x2_acq_rel_cta(u32* address, u32 v) {
  u32 old;
  asm volatile("atom.acq_rel.cta.global.add.noftz.f16x2 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ u32 atom_f16x2_acq_rel_gpu(u32* address, u32 v) {
  u32 old;
  asm volatile("atom.acq_rel.gpu.global.add.noftz.f16x2 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ u32 atom_f16x2_acq_rel_sys(u32* address, u32 v) {
  u32 old;
  asm volatile("atom.acq_rel.sys.global.add.noftz.f16x2 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ u32 atom_f16x2_acquire_cluster(u32* address, u32 v) {
  u32 old;
  asm volatile("atom.acquire.cluster.global.add.noftz.f16x2 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ u32 atom_f16x2_acquire_cta(u32* address, u32 v) {
  u32 old;
  asm volatile("atom.acquire.cta.global.add.noftz.f16x2 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ u32 atom_f16x2_acquire_gpu(u32* address, u32 v) {
  u32 old;
  asm volatile("atom.acquire.gpu.global.add.noftz.f16x2 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ u32 atom_f16x2_acquire_sys(u32* address, u32 v) {
  u32 old;
  asm volatile("atom.acquire.sys.global.add.noftz.f16x2 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ u32 atom_f16x2_relaxed_cluster(u32* address, u32 v) {
  u32 old;
  asm volatile("atom.relaxed.cluster.global.add.noftz.f16x2 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ u32 atom_f16x2_relaxed_cta(u32* address, u32 v) {
  u32 old;
  asm volatile("atom.relaxed.cta.global.add.noftz.f16x2 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ u32 atom_f16x2_relaxed_gpu(u32* address, u32 v) {
  u32 old;
  asm volatile("atom.relaxed.gpu.global.add.noftz.f16x2 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ u32 atom_f16x2_relaxed_sys(u32* address, u32 v) {
  u32 old;
  asm volatile("atom.relaxed.sys.global.add.noftz.f16x2 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ u32 atom_f16x2_release_cluster(u32* address, u32 v) {
  u32 old;
  asm volatile("atom.release.cluster.global.add.noftz.f16x2 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ u32 atom_f16x2_release_cta(u32* address, u32 v) {
  u32 old;
  asm volatile("atom.release.cta.global.add.noftz.f16x2 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ u32 atom_f16x2_release_gpu(u32* address, u32 v) {
  u32 old;
  asm volatile("atom.release.gpu.global.add.noftz.f16x2 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ u32 atom_f16x2_release_sys(u32* address, u32 v) {
  u32 old;
  asm volatile("atom.release.sys.global.add.noftz.f16x2 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ float atom_f32_acq_rel_cluster(float* address, float v) {
  float old;
  asm volatile("atom.acq_rel.cluster.global.add.f32 %0, [%1], %2;" : "=f"(old) : "l"(address), "f"(v) : "memory");
  return old;
}
__device__ __forceinline__ float atom_f32_acq_rel_cta(float* address, float v) {
  float old;
  asm volatile("atom.acq_rel.cta.global.add.f32 %0, [%1], %2;" : "=f"(old) : "l"(address), "f"(v) : "memory");
  return old;
}
__device__ __forceinline__ float atom_f32_acq_rel_gpu(float* address, float v) {
  float old;
  asm volatile("atom.acq_rel.gpu.global.add.f32 %0, [%1], %2;" : "=f"(old) : "l"(address), "f"(v) : "memory");
  return old;
}
__device__ __forceinline__ float atom_f32_acq_rel_sys(float* address, float v) {
  float old;
  asm volatile("atom.acq_rel.sys.global.add.f32 %0, [%1], %2;" : "=f"(old) : "l"(address), "f"(v) : "memory");
  return old;
}
__device__ __forceinline__ float atom_f32_acquire_cluster(float* address, float v) {
  float old;
  asm volatile("atom.acquire.cluster.global.add.f32 %0, [%1], %2;" : "=f"(old) : "l"(address), "f"(v) : "memory");
  return old;
}
__device__ __forceinline__ float atom_f32_acquire_cta(float* address, float v) {
  float old;
  asm volatile("atom.acquire.cta.global.add.f32 %0, [%1], %2;" : "=f"(old) : "l"(address), "f"(v) : "memory");
  return old;
}
__device__ __forceinline__ float atom_f32_acquire_gpu(float* address, float v) {
  float old;
  asm volatile("atom.acquire.gpu.global.add.f32 %0, [%1], %2;" : "=f"(old) : "l"(address), "f"(v) : "memory");
  return old;
}
__device__ __forceinline__ float atom_f32_acquire_sys(float* address, float v) {
  float old;
  asm volatile("atom.acquire.sys.global.add.f32 %0, [%1], %2;" : "=f"(old) : "l"(address), "f"(v) : "memory");
  return old;
}
__device__ __forceinline__ float atom_f32_relaxed_cluster(float* address, float v) {
  float old;
  asm volatile("atom.relaxed.cluster.global.add.f32 %0, [%1], %2;" : "=f"(old) : "l"(address), "f"(v) : "memory");
  return old;
}
__device__ __forceinline__ float atom_f32_relaxed_cta(float* address, float v) {
  float old;
  asm volatile("atom.relaxed.cta.global.add.f32 %0, [%1], %2;" : "=f"(old) : "l"(address), "f"(v) : "memory");
  return old;
}
__device__ __forceinline__ float atom_f32_relaxed_gpu(float* address, float v) {
  float old;
  asm volatile("atom.relaxed.gpu.global.add.f32 %0, [%1], %2;" : "=f"(old) : "l"(address), "f"(v) : "memory");
  return old;
}
__device__ __forceinline__ float atom_f32_relaxed_sys(float* address, float v) {
  float old;
  asm volatile("atom.relaxed.sys.global.add.f32 %0, [%1], %2;" : "=f"(old) : "l"(address), "f"(v) : "memory");
  return old;
}
__device__ __forceinline__ float atom_f32_release_cluster(float* address, float v) {
  float old;
  asm volatile("atom.release.cluster.global.add.f32 %0, [%1], %2;" : "=f"(old) : "l"(address), "f"(v) : "memory");
  return old;
}
__device__ __forceinline__ float atom_f32_release_cta(float* address, float v) {
  float old;
  asm volatile("atom.release.cta.global.add.f32 %0, [%1], %2;" : "=f"(old) : "l"(address), "f"(v) : "memory");
  return old;
}
__device__ __forceinline__ float atom_f32_release_gpu(float* address, float v) {
  float old;
  asm volatile("atom.release.gpu.global.add.f32 %0, [%1], %2;" : "=f"(old) : "l"(address), "f"(v) : "memory");
  return old;
}
__device__ __forceinline__ float atom_f32_release_sys(float* address, float v) {
  float old;
  asm volatile("atom.release.sys.global.add.f32 %0, [%1], %2;" : "=f"(old) : "l"(address), "f"(v) : "memory");
  return old;
}
__device__ __forceinline__ int atom_i32_acq_rel_cluster(int* address, int v) {
  int old;
  asm volatile("atom.acq_rel.cluster.global.add.s32 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ int atom_i32_acq_rel_cta(int* address, int v) {
  int old;
  asm volatile("atom.acq_rel.cta.global.add.s32 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ int atom_i32_acq_rel_gpu(int* address, int v) {
  int old;
  asm volatile("atom.acq_rel.gpu.global.add.s32 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ int atom_i32_acq_rel_sys(int* address, int v) {
  int old;
  asm volatile("atom.acq_rel.sys.global.add.s32 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ int atom_i32_acquire_cluster(int* address, int v) {
  int old;
  asm volatile("atom.acquire.cluster.global.add.s32 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ int atom_i32_acquire_cta(int* address, int v) {
  int old;
  asm volatile("atom.acquire.cta.global.add.s32 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ int atom_i32_acquire_gpu(int* address, int v) {
  int old;
  asm volatile("atom.acquire.gpu.global.add.s32 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ int atom_i32_acquire_sys(int* address, int v) {
  int old;
  asm volatile("atom.acquire.sys.global.add.s32 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ int atom_i32_relaxed_cluster(int* address, int v) {
  int old;
  asm volatile("atom.relaxed.cluster.global.add.s32 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ int atom_i32_relaxed_cta(int* address, int v) {
  int old;
  asm volatile("atom.relaxed.cta.global.add.s32 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ int atom_i32_relaxed_gpu(int* address, int v) {
  int old;
  asm volatile("atom.relaxed.gpu.global.add.s32 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ int atom_i32_relaxed_sys(int* address, int v) {
  int old;
  asm volatile("atom.relaxed.sys.global.add.s32 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ int atom_i32_release_cluster(int* address, int v) {
  int old;
  asm volatile("atom.release.cluster.global.add.s32 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ int atom_i32_release_cta(int* address, int v) {
  int old;
  asm volatile("atom.release.cta.global.add.s32 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ int atom_i32_release_gpu(int* address, int v) {
  int old;
  asm volatile("atom.release.gpu.global.add.s32 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ int atom_i32_release_sys(int* address, int v) {
  int old;
  asm volatile("atom.release.sys.global.add.s32 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ i64 atom_i64_acq_rel_cluster(i64* address, i64 v) {
  i64 old;
  asm volatile("atom.acq_rel.cluster.global.add.u64 %0, [%1], %2;" : "=l"(old) : "l"(address), "l"(v) : "memory");
  return old;
}
__device__ __forceinline__ i64 atom_i64_acq_rel_cta(i64* address, i64 v) {
  i64 old;
  asm volatile("atom.acq_rel.cta.global.add.u64 %0, [%1], %2;" : "=l"(old) : "l"(address), "l"(v) : "memory");
  return old;
}
__device__ __forceinline__ i64 atom_i64_acq_rel_gpu(i64* address, i64 v) {
  i64 old;
  asm volatile("atom.acq_rel.gpu.global.add.u64 %0, [%1], %2;" : "=l"(old) : "l"(address), "l"(v) : "memory");
  return old;
}
__device__ __forceinline__ i64 atom_i64_acq_rel_sys(i64* address, i64 v) {
  i64 old;
  asm volatile("atom.acq_rel.sys.global.add.u64 %0, [%1], %2;" : "=l"(old) : "l"(address), "l"(v) : "memory");
  return old;
}
__device__ __forceinline__ i64 atom_i64_acquire_cluster(i64* address, i64 v) {
  i64 old;
  asm volatile("atom.acquire.cluster.global.add.u64 %0, [%1], %2;" : "=l"(old) : "l"(address), "l"(v) : "memory");
  return old;
}
__device__ __forceinline__ i64 atom_i64_acquire_cta(i64* address, i64 v) {
  i64 old;
  asm volatile("atom.acquire.cta.global.add.u64 %0, [%1], %2;" : "=l"(old) : "l"(address), "l"(v) : "memory");
  return old;
}
__device__ __forceinline__ i64 atom_i64_acquire_gpu(i64* address, i64 v) {
  i64 old;
  asm volatile("atom.acquire.gpu.global.add.u64 %0, [%1], %2;" : "=l"(old) : "l"(address), "l"(v) : "memory");
  return old;
}
__device__ __forceinline__ i64 atom_i64_acquire_sys(i64* address, i64 v) {
  i64 old;
  asm volatile("atom.acquire.sys.global.add.u64 %0, [%1], %2;" : "=l"(old) : "l"(address), "l"(v) : "memory");
  return old;
}
__device__ __forceinline__ i64 atom_i64_relaxed_cluster(i64* address, i64 v) {
  i64 old;
  asm volatile("atom.relaxed.cluster.global.add.u64 %0, [%1], %2;" : "=l"(old) : "l"(address), "l"(v) : "memory");
  return old;
}
__device__ __forceinline__ i64 atom_i64_relaxed_cta(i64* address, i64 v) {
  i64 old;
  asm volatile("atom.relaxed.cta.global.add.u64 %0, [%1], %2;" : "=l"(old) : "l"(address), "l"(v) : "memory");
  return old;
}
__device__ __forceinline__ i64 atom_i64_relaxed_gpu(i64* address, i64 v) {
  i64 old;
  asm volatile("atom.relaxed.gpu.global.add.u64 %0, [%1], %2;" : "=l"(old) : "l"(address), "l"(v) : "memory");
  return old;
}
__device__ __forceinline__ i64 atom_i64_relaxed_sys(i64* address, i64 v) {
  i64 old;
  asm volatile("atom.relaxed.sys.global.add.u64 %0, [%1], %2;" : "=l"(old) : "l"(address), "l"(v) : "memory");
  return old;
}
__device__ __forceinline__ i64 atom_i64_release_cluster(i64* address, i64 v) {
  i64 old;
  asm volatile("atom.release.cluster.global.add.u64 %0, [%1], %2;" : "=l"(old) : "l"(address), "l"(v) : "memory");
  return old;
}
__device__ __forceinline__ i64 atom_i64_release_cta(i64* address, i64 v) {
  i64 old;
  asm volatile("atom.release.cta.global.add.u64 %0, [%1], %2;" : "=l"(old) : "l"(address), "l"(v) : "memory");
  return old;
}
__device__ __forceinline__ i64 atom_i64_release_gpu(i64* address, i64 v) {
  i64 old;
  asm volatile("atom.release.gpu.global.add.u64 %0, [%1], %2;" : "=l"(old) : "l"(address), "l"(v) : "memory");
  return old;
}
__device__ __forceinline__ i64 atom_i64_release_sys(i64* address, i64 v) {
  i64 old;
  asm volatile("atom.release.sys.global.add.u64 %0, [%1], %2;" : "=l"(old) : "l"(address), "l"(v) : "memory");
  return old;
}
__device__ __forceinline__ u32 atom_u32_acq_rel_cluster(u32* address, u32 v) {
  u32 old;
  asm volatile("atom.acq_rel.cluster.global.add.s32 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ u32 atom_u32_acq_rel_cta(u32* address, u32 v) {
  u32 old;
  asm volatile("atom.acq_rel.cta.global.add.s32 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ u32 atom_u32_acq_rel_gpu(u32* address, u32 v) {
  u32 old;
  asm volatile("atom.acq_rel.gpu.global.add.s32 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ u32 atom_u32_acq_rel_sys(u32* address, u32 v) {
  u32 old;
  asm volatile("atom.acq_rel.sys.global.add.s32 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ u32 atom_u32_acquire_cluster(u32* address, u32 v) {
  u32 old;
  asm volatile("atom.acquire.cluster.global.add.s32 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ u32 atom_u32_acquire_cta(u32* address, u32 v) {
  u32 old;
  asm volatile("atom.acquire.cta.global.add.s32 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ u32 atom_u32_acquire_gpu(u32* address, u32 v) {
  u32 old;
  asm volatile("atom.acquire.gpu.global.add.s32 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ u32 atom_u32_acquire_sys(u32* address, u32 v) {
  u32 old;
  asm volatile("atom.acquire.sys.global.add.s32 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ u32 atom_u32_relaxed_cluster(u32* address, u32 v) {
  u32 old;
  asm volatile("atom.relaxed.cluster.global.add.s32 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ u32 atom_u32_relaxed_cta(u32* address, u32 v) {
  u32 old;
  asm volatile("atom.relaxed.cta.global.add.s32 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ u32 atom_u32_relaxed_gpu(u32* address, u32 v) {
  u32 old;
  asm volatile("atom.relaxed.gpu.global.add.s32 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ u32 atom_u32_relaxed_sys(u32* address, u32 v) {
  u32 old;
  asm volatile("atom.relaxed.sys.global.add.s32 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ u32 atom_u32_release_cluster(u32* address, u32 v) {
  u32 old;
  asm volatile("atom.release.cluster.global.add.s32 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ u32 atom_u32_release_cta(u32* address, u32 v) {
  u32 old;
  asm volatile("atom.release.cta.global.add.s32 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ u32 atom_u32_release_gpu(u32* address, u32 v) {
  u32 old;
  asm volatile("atom.release.gpu.global.add.s32 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ u32 atom_u32_release_sys(u32* address, u32 v) {
  u32 old;
  asm volatile("atom.release.sys.global.add.s32 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ u16 ld_bf16_acquire_cluster(const u16* address) {
  u16 old;
  asm volatile("ld.acquire.cluster.global.b16 %0, [%1];" : "=h"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ u16 ld_bf16_acquire_cta(const u16* address) {
  u16 old;
  asm volatile("ld.acquire.cta.global.b16 %0, [%1];" : "=h"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ u16 ld_bf16_acquire_gpu(const u16* address) {
  u16 old;
  asm volatile("ld.acquire.gpu.global.b16 %0, [%1];" : "=h"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ u16 ld_bf16_acquire_sys(const u16* address) {
  u16 old;
  asm volatile("ld.acquire.sys.global.b16 %0, [%1];" : "=h"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ u16 ld_bf16_relaxed_cluster(const u16* address) {
  u16 old;
  asm volatile("ld.relaxed.cluster.global.b16 %0, [%1];" : "=h"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ u16 ld_bf16_relaxed_cta(const u16* address) {
  u16 old;
  asm volatile("ld.relaxed.cta.global.b16 %0, [%1];" : "=h"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ u16 ld_bf16_relaxed_gpu(const u16* address) {
  u16 old;
  asm volatile("ld.relaxed.gpu.global.b16 %0, [%1];" : "=h"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ u16 ld_bf16_relaxed_sys(const u16* address) {
  u16 old;
  asm volatile("ld.relaxed.sys.global.b16 %0, [%1];" : "=h"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ u16 ld_bf16_weak(const u16* address) {
  u16 old;
  asm volatile("ld.weak.global.b16 %0, [%1];" : "=h"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ u16 ld_f16_acquire_cluster(const u16* address) {
  u16 old;
  asm volatile("ld.acquire.cluster.global.b16 %0, [%1];" : "=h"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ u16 ld_f16_acquire_cta(const u16* address) {
  u16 old;
  asm volatile("ld.acquire.cta.global.b16 %0, [%1];" : "=h"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ u16 ld_f16_acquire_gpu(const u16* address) {
  u16 old;
  asm volatile("ld.acquire.gpu.global.b16 %0, [%1];" : "=h"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ u16 ld_f16_acquire_sys(const u16* address) {
  u16 old;
  asm volatile("ld.acquire.sys.global.b16 %0, [%1];" : "=h"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ u16 ld_f16_relaxed_cluster(const u16* address) {
  u16 old;
  asm volatile("ld.relaxed.cluster.global.b16 %0, [%1];" : "=h"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ u16 ld_f16_relaxed_cta(const u16* address) {
  u16 old;
  asm volatile("ld.relaxed.cta.global.b16 %0, [%1];" : "=h"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ u16 ld_f16_relaxed_gpu(const u16* address) {
  u16 old;
  asm volatile("ld.relaxed.gpu.global.b16 %0, [%1];" : "=h"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ u16 ld_f16_relaxed_sys(const u16* address) {
  u16 old;
  asm volatile("ld.relaxed.sys.global.b16 %0, [%1];" : "=h"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ u16 ld_f16_weak(const u16* address) {
  u16 old;
  asm volatile("ld.weak.global.b16 %0, [%1];" : "=h"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ float ld_f32_acquire_cluster(const float* address) {
  float old;
  asm volatile("ld.acquire.cluster.global.f32 %0, [%1];" : "=f"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ float ld_f32_acquire_cta(const float* address) {
  float old;
  asm volatile("ld.acquire.cta.global.f32 %0, [%1];" : "=f"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ float ld_f32_acquire_gpu(const float* address) {
  float old;
  asm volatile("ld.acquire.gpu.global.f32 %0, [%1];" : "=f"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ float ld_f32_acquire_sys(const float* address) {
  float old;
  asm volatile("ld.acquire.sys.global.f32 %0, [%1];" : "=f"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ float ld_f32_relaxed_cluster(const float* address) {
  float old;
  asm volatile("ld.relaxed.cluster.global.f32 %0, [%1];" : "=f"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ float ld_f32_relaxed_cta(const float* address) {
  float old;
  asm volatile("ld.relaxed.cta.global.f32 %0, [%1];" : "=f"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ float ld_f32_relaxed_gpu(const float* address) {
  float old;
  asm volatile("ld.relaxed.gpu.global.f32 %0, [%1];" : "=f"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ float ld_f32_relaxed_sys(const float* address) {
  float old;
  asm volatile("ld.relaxed.sys.global.f32 %0, [%1];" : "=f"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ float ld_f32_weak(const float* address) {
  float old;
  asm volatile("ld.weak.global.f32 %0, [%1];" : "=f"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ int ld_i32_acquire_cluster(const int* address) {
  int old;
  asm volatile("ld.acquire.cluster.global.b32 %0, [%1];" : "=r"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ int ld_i32_acquire_cta(const int* address) {
  int old;
  asm volatile("ld.acquire.cta.global.b32 %0, [%1];" : "=r"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ int ld_i32_acquire_gpu(const int* address) {
  int old;
  asm volatile("ld.acquire.gpu.global.b32 %0, [%1];" : "=r"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ int ld_i32_acquire_sys(const int* address) {
  int old;
  asm volatile("ld.acquire.sys.global.b32 %0, [%1];" : "=r"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ int ld_i32_relaxed_cluster(const int* address) {
  int old;
  asm volatile("ld.relaxed.cluster.global.b32 %0, [%1];" : "=r"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ int ld_i32_relaxed_cta(const int* address) {
  int old;
  asm volatile("ld.relaxed.cta.global.b32 %0, [%1];" : "=r"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ int ld_i32_relaxed_gpu(const int* address) {
  int old;
  asm volatile("ld.relaxed.gpu.global.b32 %0, [%1];" : "=r"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ int ld_i32_relaxed_sys(const int* address) {
  int old;
  asm volatile("ld.relaxed.sys.global.b32 %0, [%1];" : "=r"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ int ld_i32_weak(const int* address) {
  int old;
  asm volatile("ld.weak.global.b32 %0, [%1];" : "=r"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ i64 ld_i64_acquire_cluster(const i64* address) {
  i64 old;
  asm volatile("ld.acquire.cluster.global.b64 %0, [%1];" : "=l"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ i64 ld_i64_acquire_cta(const i64* address) {
  i64 old;
  asm volatile("ld.acquire.cta.global.b64 %0, [%1];" : "=l"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ i64 ld_i64_acquire_gpu(const i64* address) {
  i64 old;
  asm volatile("ld.acquire.gpu.global.b64 %0, [%1];" : "=l"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ i64 ld_i64_acquire_sys(const i64* address) {
  i64 old;
  asm volatile("ld.acquire.sys.global.b64 %0, [%1];" : "=l"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ i64 ld_i64_relaxed_cluster(const i64* address) {
  i64 old;
  asm volatile("ld.relaxed.cluster.global.b64 %0, [%1];" : "=l"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ i64 ld_i64_relaxed_cta(const i64* address) {
  i64 old;
  asm volatile("ld.relaxed.cta.global.b64 %0, [%1];" : "=l"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ i64 ld_i64_relaxed_gpu(const i64* address) {
  i64 old;
  asm volatile("ld.relaxed.gpu.global.b64 %0, [%1];" : "=l"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ i64 ld_i64_relaxed_sys(const i64* address) {
  i64 old;
  asm volatile("ld.relaxed.sys.global.b64 %0, [%1];" : "=l"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ i64 ld_i64_weak(const i64* address) {
  i64 old;
  asm volatile("ld.weak.global.b64 %0, [%1];" : "=l"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ u32 ld_u32_acquire_cluster(const u32* address) {
  u32 old;
  asm volatile("ld.acquire.cluster.global.b32 %0, [%1];" : "=r"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ u32 ld_u32_acquire_cta(const u32* address) {
  u32 old;
  asm volatile("ld.acquire.cta.global.b32 %0, [%1];" : "=r"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ u32 ld_u32_acquire_gpu(const u32* address) {
  u32 old;
  asm volatile("ld.acquire.gpu.global.b32 %0, [%1];" : "=r"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ u32 ld_u32_acquire_sys(const u32* address) {
  u32 old;
  asm volatile("ld.acquire.sys.global.b32 %0, [%1];" : "=r"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ u32 ld_u32_relaxed_cluster(const u32* address) {
  u32 old;
  asm volatile("ld.relaxed.cluster.global.b32 %0, [%1];" : "=r"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ u32 ld_u32_relaxed_cta(const u32* address) {
  u32 old;
  asm volatile("ld.relaxed.cta.global.b32 %0, [%1];" : "=r"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ u32 ld_u32_relaxed_gpu(const u32* address) {
  u32 old;
  asm volatile("ld.relaxed.gpu.global.b32 %0, [%1];" : "=r"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ u32 ld_u32_relaxed_sys(const u32* address) {
  u32 old;
  asm volatile("ld.relaxed.sys.global.b32 %0, [%1];" : "=r"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ u32 ld_u32_weak(const u32* address) {
  u32 old;
  asm volatile("ld.weak.global.b32 %0, [%1];" : "=r"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ u16 ld_u8_acquire_cluster(const u8* address) {
  u16 old;
  asm volatile("ld.acquire.cluster.global.b8 %0, [%1];" : "=h"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ u16 ld_u8_acquire_cta(const u8* address) {
  u16 old;
  asm volatile("ld.acquire.cta.global.b8 %0, [%1];" : "=h"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ u16 ld_u8_acquire_gpu(const u8* address) {
  u16 old;
  asm volatile("ld.acquire.gpu.global.b8 %0, [%1];" : "=h"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ u16 ld_u8_acquire_sys(const u8* address) {
  u16 old;
  asm volatile("ld.acquire.sys.global.b8 %0, [%1];" : "=h"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ u16 ld_u8_relaxed_cluster(const u8* address) {
  u16 old;
  asm volatile("ld.relaxed.cluster.global.b8 %0, [%1];" : "=h"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ u16 ld_u8_relaxed_cta(const u8* address) {
  u16 old;
  asm volatile("ld.relaxed.cta.global.b8 %0, [%1];" : "=h"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ u16 ld_u8_relaxed_gpu(const u8* address) {
  u16 old;
  asm volatile("ld.relaxed.gpu.global.b8 %0, [%1];" : "=h"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ u16 ld_u8_relaxed_sys(const u8* address) {
  u16 old;
  asm volatile("ld.relaxed.sys.global.b8 %0, [%1];" : "=h"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ u16 ld_u8_weak(const u8* address) {
  u16 old;
  asm volatile("ld.weak.global.b8 %0, [%1];" : "=h"(old) : "l"(address) : "memory");
  return old;
}
__device__ __forceinline__ void red_bf16_relaxed_cluster(u16* address, u16 v) {
  asm volatile("red.relaxed.cluster.global.add.noftz.bf16 [%0], %1;" :  : "l"(address), "h"(v) : "memory");
}
__device__ __forceinline__ void red_bf16_relaxed_cta(u16* address, u16 v) {
  asm volatile("red.relaxed.cta.global.add.noftz.bf16 [%0], %1;" :  : "l"(address), "h"(v) : "memory");
}
__device__ __forceinline__ void red_bf16_relaxed_gpu(u16* address, u16 v) {
  asm volatile("red.relaxed.gpu.global.add.noftz.bf16 [%0], %1;" :  : "l"(address), "h"(v) : "memory");
}
__device__ __forceinline__ void red_bf16_relaxed_sys(u16* address, u16 v) {
  asm volatile("red.relaxed.sys.global.add.noftz.bf16 [%0], %1;" :  : "l"(address), "h"(v) : "memory");
}
__device__ __forceinline__ void red_bf16_release_cluster(u16* address, u16 v) {
  asm volatile("red.release.cluster.global.add.noftz.bf16 [%0], %1;" :  : "l"(address), "h"(v) : "memory");
}
__device__ __forceinline__ void red_bf16_release_cta(u16* address, u16 v) {
  asm volatile("red.release.cta.global.add.noftz.bf16 [%0], %1;" :  : "l"(address), "h"(v) : "memory");
}
__device__ __forceinline__ void red_bf16_release_gpu(u16* address, u16 v) {
  asm volatile("red.release.gpu.global.add.noftz.bf16 [%0], %1;" :  : "l"(address), "h"(v) : "memory");
}
__device__ __forceinline__ void red_bf16_release_sys(u16* address, u16 v) {
  asm volatile("red.release.sys.global.add.noftz.bf16 [%0], %1;" :  : "l"(address), "h"(v) : "memory");
}
__device__ __forceinline__ void red_bf16x2_relaxed_cluster(u32* address, u32 v) {
  asm volatile("red.relaxed.cluster.global.add.noftz.bf16x2 [%0], %1;" :  : "l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void red_bf16x2_relaxed_cta(u32* address, u32 v) {
  asm volatile("red.relaxed.cta.global.add.noftz.bf16x2 [%0], %1;" :  : "l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void red_bf16x2_relaxed_gpu(u32* address, u32 v) {
  asm volatile("red.relaxed.gpu.global.add.noftz.bf16x2 [%0], %1;" :  : "l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void red_bf16x2_relaxed_sys(u32* address, u32 v) {
  asm volatile("red.relaxed.sys.global.add.noftz.bf16x2 [%0], %1;" :  : "l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void red_bf16x2_release_cluster(u32* address, u32 v) {
  asm volatile("red.release.cluster.global.add.noftz.bf16x2 [%0], %1;" :  : "l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void red_bf16x2_release_cta(u32* address, u32 v) {
  asm volatile("red.release.cta.global.add.noftz.bf16x2 [%0], %1;" :  : "l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void red_bf16x2_release_gpu(u32* address, u32 v) {
  asm volatile("red.release.gpu.global.add.noftz.bf16x2 [%0], %1;" :  : "l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void red_bf16x2_release_sys(u32* address, u32 v) {
  asm volatile("red.release.sys.global.add.noftz.bf16x2 [%0], %1;" :  : "l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void red_f16_relaxed_cluster(u16* address, u16 v) {
  asm volatile("red.relaxed.cluster.global.add.noftz.f16 [%0], %1;" :  : "l"(address), "h"(v) : "memory");
}
__device__ __forceinline__ void red_f16_relaxed_cta(u16* address, u16 v) {
  asm volatile("red.relaxed.cta.global.add.noftz.f16 [%0], %1;" :  : "l"(address), "h"(v) : "memory");
}
__device__ __forceinline__ void red_f16_relaxed_gpu(u16* address, u16 v) {
  asm volatile("red.relaxed.gpu.global.add.noftz.f16 [%0], %1;" :  : "l"(address), "h"(v) : "memory");
}
__device__ __forceinline__ void red_f16_relaxed_sys(u16* address, u16 v) {
  asm volatile("red.relaxed.sys.global.add.noftz.f16 [%0], %1;" :  : "l"(address), "h"(v) : "memory");
}
__device__ __forceinline__ void red_f16_release_cluster(u16* address, u16 v) {
  asm volatile("red.release.cluster.global.add.noftz.f16 [%0], %1;" :  : "l"(address), "h"(v) : "memory");
}
__device__ __forceinline__ void red_f16_release_cta(u16* address, u16 v) {
  asm volatile("red.release.cta.global.add.noftz.f16 [%0], %1;" :  : "l"(address), "h"(v) : "memory");
}
__device__ __forceinline__ void red_f16_release_gpu(u16* address, u16 v) {
  asm volatile("red.release.gpu.global.add.noftz.f16 [%0], %1;" :  : "l"(address), "h"(v) : "memory");
}
__device__ __forceinline__ void red_f16_release_sys(u16* address, u16 v) {
  asm volatile("red.release.sys.global.add.noftz.f16 [%0], %1;" :  : "l"(address), "h"(v) : "memory");
}
__device__ __forceinline__ void red_f16x2_relaxed_cluster(u32* address, u32 v) {
  asm volatile("red.relaxed.cluster.global.add.noftz.f16x2 [%0], %1;" :  : "l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void red_f16x2_relaxed_cta(u32* address, u32 v) {
  asm volatile("red.relaxed.cta.global.add.noftz.f16x2 [%0], %1;" :  : "l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void red_f16x2_relaxed_gpu(u32* address, u32 v) {
  asm volatile("red.relaxed.gpu.global.add.noftz.f16x2 [%0], %1;" :  : "l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void red_f16x2_relaxed_sys(u32* address, u32 v) {
  asm volatile("red.relaxed.sys.global.add.noftz.f16x2 [%0], %1;" :  : "l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void red_f16x2_release_cluster(u32* address, u32 v) {
  asm volatile("red.release.cluster.global.add.noftz.f16x2 [%0], %1;" :  : "l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void red_f16x2_release_cta(u32* address, u32 v) {
  asm volatile("red.release.cta.global.add.noftz.f16x2 [%0], %1;" :  : "l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void red_f16x2_release_gpu(u32* address, u32 v) {
  asm volatile("red.release.gpu.global.add.noftz.f16x2 [%0], %1;" :  : "l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void red_f16x2_release_sys(u32* address, u32 v) {
  asm volatile("red.release.sys.global.add.noftz.f16x2 [%0], %1;" :  : "l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void red_f32_relaxed_cluster(float* address, float v) {
  asm volatile("red.relaxed.cluster.global.add.f32 [%0], %1;" :  : "l"(address), "f"(v) : "memory");
}
__device__ __forceinline__ void red_f32_relaxed_cta(float* address, float v) {
  asm volatile("red.relaxed.cta.global.add.f32 [%0], %1;" :  : "l"(address), "f"(v) : "memory");
}
__device__ __forceinline__ void red_f32_relaxed_gpu(float* address, float v) {
  asm volatile("red.relaxed.gpu.global.add.f32 [%0], %1;" :  : "l"(address), "f"(v) : "memory");
}
__device__ __forceinline__ void red_f32_relaxed_sys(float* address, float v) {
  asm volatile("red.relaxed.sys.global.add.f32 [%0], %1;" :  : "l"(address), "f"(v) : "memory");
}
__device__ __forceinline__ void red_f32_release_cluster(float* address, float v) {
  asm volatile("red.release.cluster.global.add.f32 [%0], %1;" :  : "l"(address), "f"(v) : "memory");
}
__device__ __forceinline__ void red_f32_release_cta(float* address, float v) {
  asm volatile("red.release.cta.global.add.f32 [%0], %1;" :  : "l"(address), "f"(v) : "memory");
}
__device__ __forceinline__ void red_f32_release_gpu(float* address, float v) {
  asm volatile("red.release.gpu.global.add.f32 [%0], %1;" :  : "l"(address), "f"(v) : "memory");
}
__device__ __forceinline__ void red_f32_release_sys(float* address, float v) {
  asm volatile("red.release.sys.global.add.f32 [%0], %1;" :  : "l"(address), "f"(v) : "memory");
}
__device__ __forceinline__ void red_i32_relaxed_cluster(int* address, int v) {
  asm volatile("red.relaxed.cluster.global.add.s32 [%0], %1;" :  : "l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void red_i32_relaxed_cta(int* address, int v) {
  asm volatile("red.relaxed.cta.global.add.s32 [%0], %1;" :  : "l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void red_i32_relaxed_gpu(int* address, int v) {
  asm volatile("red.relaxed.gpu.global.add.s32 [%0], %1;" :  : "l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void red_i32_relaxed_sys(int* address, int v) {
  asm volatile("red.relaxed.sys.global.add.s32 [%0], %1;" :  : "l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void red_i32_release_cluster(int* address, int v) {
  asm volatile("red.release.cluster.global.add.s32 [%0], %1;" :  : "l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void red_i32_release_cta(int* address, int v) {
  asm volatile("red.release.cta.global.add.s32 [%0], %1;" :  : "l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void red_i32_release_gpu(int* address, int v) {
  asm volatile("red.release.gpu.global.add.s32 [%0], %1;" :  : "l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void red_i32_release_sys(int* address, int v) {
  asm volatile("red.release.sys.global.add.s32 [%0], %1;" :  : "l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void red_i64_relaxed_cluster(i64* address, i64 v) {
  asm volatile("red.relaxed.cluster.global.add.u64 [%0], %1;" :  : "l"(address), "l"(v) : "memory");
}
__device__ __forceinline__ void red_i64_relaxed_cta(i64* address, i64 v) {
  asm volatile("red.relaxed.cta.global.add.u64 [%0], %1;" :  : "l"(address), "l"(v) : "memory");
}
__device__ __forceinline__ void red_i64_relaxed_gpu(i64* address, i64 v) {
  asm volatile("red.relaxed.gpu.global.add.u64 [%0], %1;" :  : "l"(address), "l"(v) : "memory");
}
__device__ __forceinline__ void red_i64_relaxed_sys(i64* address, i64 v) {
  asm volatile("red.relaxed.sys.global.add.u64 [%0], %1;" :  : "l"(address), "l"(v) : "memory");
}
__device__ __forceinline__ void red_i64_release_cluster(i64* address, i64 v) {
  asm volatile("red.release.cluster.global.add.u64 [%0], %1;" :  : "l"(address), "l"(v) : "memory");
}
__device__ __forceinline__ void red_i64_release_cta(i64* address, i64 v) {
  asm volatile("red.release.cta.global.add.u64 [%0], %1;" :  : "l"(address), "l"(v) : "memory");
}
__device__ __forceinline__ void red_i64_release_gpu(i64* address, i64 v) {
  asm volatile("red.release.gpu.global.add.u64 [%0], %1;" :  : "l"(address), "l"(v) : "memory");
}
__device__ __forceinline__ void red_i64_release_sys(i64* address, i64 v) {
  asm volatile("red.release.sys.global.add.u64 [%0], %1;" :  : "l"(address), "l"(v) : "memory");
}
__device__ __forceinline__ void red_u32_relaxed_cluster(u32* address, u32 v) {
  asm volatile("red.relaxed.cluster.global.add.s32 [%0], %1;" :  : "l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void red_u32_relaxed_cta(u32* address, u32 v) {
  asm volatile("red.relaxed.cta.global.add.s32 [%0], %1;" :  : "l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void red_u32_relaxed_gpu(u32* address, u32 v) {
  asm volatile("red.relaxed.gpu.global.add.s32 [%0], %1;" :  : "l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void red_u32_relaxed_sys(u32* address, u32 v) {
  asm volatile("red.relaxed.sys.global.add.s32 [%0], %1;" :  : "l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void red_u32_release_cluster(u32* address, u32 v) {
  asm volatile("red.release.cluster.global.add.s32 [%0], %1;" :  : "l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void red_u32_release_cta(u32* address, u32 v) {
  asm volatile("red.release.cta.global.add.s32 [%0], %1;" :  : "l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void red_u32_release_gpu(u32* address, u32 v) {
  asm volatile("red.release.gpu.global.add.s32 [%0], %1;" :  : "l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void red_u32_release_sys(u32* address, u32 v) {
  asm volatile("red.release.sys.global.add.s32 [%0], %1;" :  : "l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void st_bf16_relaxed_cluster(u16* address, u16 v) {
  asm volatile("st.relaxed.cluster.global.b16 [%0], %1;" :  : "l"(address), "h"(v) : "memory");
}
__device__ __forceinline__ void st_bf16_relaxed_cta(u16* address, u16 v) {
  asm volatile("st.relaxed.cta.global.b16 [%0], %1;" :  : "l"(address), "h"(v) : "memory");
}
__device__ __forceinline__ void st_bf16_relaxed_gpu(u16* address, u16 v) {
  asm volatile("st.relaxed.gpu.global.b16 [%0], %1;" :  : "l"(address), "h"(v) : "memory");
}
__device__ __forceinline__ void st_bf16_relaxed_sys(u16* address, u16 v) {
  asm volatile("st.relaxed.sys.global.b16 [%0], %1;" :  : "l"(address), "h"(v) : "memory");
}
__device__ __forceinline__ void st_bf16_release_cluster(u16* address, u16 v) {
  asm volatile("st.release.cluster.global.b16 [%0], %1;" :  : "l"(address), "h"(v) : "memory");
}
__device__ __forceinline__ void st_bf16_release_cta(u16* address, u16 v) {
  asm volatile("st.release.cta.global.b16 [%0], %1;" :  : "l"(address), "h"(v) : "memory");
}
__device__ __forceinline__ void st_bf16_release_gpu(u16* address, u16 v) {
  asm volatile("st.release.gpu.global.b16 [%0], %1;" :  : "l"(address), "h"(v) : "memory");
}
__device__ __forceinline__ void st_bf16_release_sys(u16* address, u16 v) {
  asm volatile("st.release.sys.global.b16 [%0], %1;" :  : "l"(address), "h"(v) : "memory");
}
__device__ __forceinline__ void st_bf16_weak(u16* address, u16 v) {
  asm volatile("st.weak.global.b16 [%0], %1;" :  : "l"(address), "h"(v) : "memory");
}
__device__ __forceinline__ void st_f16_relaxed_cluster(u16* address, u16 v) {
  asm volatile("st.relaxed.cluster.global.b16 [%0], %1;" :  : "l"(address), "h"(v) : "memory");
}
__device__ __forceinline__ void st_f16_relaxed_cta(u16* address, u16 v) {
  asm volatile("st.relaxed.cta.global.b16 [%0], %1;" :  : "l"(address), "h"(v) : "memory");
}
__device__ __forceinline__ void st_f16_relaxed_gpu(u16* address, u16 v) {
  asm volatile("st.relaxed.gpu.global.b16 [%0], %1;" :  : "l"(address), "h"(v) : "memory");
}
__device__ __forceinline__ void st_f16_relaxed_sys(u16* address, u16 v) {
  asm volatile("st.relaxed.sys.global.b16 [%0], %1;" :  : "l"(address), "h"(v) : "memory");
}
__device__ __forceinline__ void st_f16_release_cluster(u16* address, u16 v) {
  asm volatile("st.release.cluster.global.b16 [%0], %1;" :  : "l"(address), "h"(v) : "memory");
}
__device__ __forceinline__ void st_f16_release_cta(u16* address, u16 v) {
  asm volatile("st.release.cta.global.b16 [%0], %1;" :  : "l"(address), "h"(v) : "memory");
}
__device__ __forceinline__ void st_f16_release_gpu(u16* address, u16 v) {
  asm volatile("st.release.gpu.global.b16 [%0], %1;" :  : "l"(address), "h"(v) : "memory");
}
__device__ __forceinline__ void st_f16_release_sys(u16* address, u16 v) {
  asm volatile("st.release.sys.global.b16 [%0], %1;" :  : "l"(address), "h"(v) : "memory");
}
__device__ __forceinline__ void st_f16_weak(u16* address, u16 v) {
  asm volatile("st.weak.global.b16 [%0], %1;" :  : "l"(address), "h"(v) : "memory");
}
__device__ __forceinline__ void st_f32_relaxed_cluster(float* address, float v) {
  asm volatile("st.relaxed.cluster.global.f32 [%0], %1;" :  : "l"(address), "f"(v) : "memory");
}
__device__ __forceinline__ void st_f32_relaxed_cta(float* address, float v) {
  asm volatile("st.relaxed.cta.global.f32 [%0], %1;" :  : "l"(address), "f"(v) : "memory");
}
__device__ __forceinline__ void st_f32_relaxed_gpu(float* address, float v) {
  asm volatile("st.relaxed.gpu.global.f32 [%0], %1;" :  : "l"(address), "f"(v) : "memory");
}
__device__ __forceinline__ void st_f32_relaxed_sys(float* address, float v) {
  asm volatile("st.relaxed.sys.global.f32 [%0], %1;" :  : "l"(address), "f"(v) : "memory");
}
__device__ __forceinline__ void st_f32_release_cluster(float* address, float v) {
  asm volatile("st.release.cluster.global.f32 [%0], %1;" :  : "l"(address), "f"(v) : "memory");
}
__device__ __forceinline__ void st_f32_release_cta(float* address, float v) {
  asm volatile("st.release.cta.global.f32 [%0], %1;" :  : "l"(address), "f"(v) : "memory");
}
__device__ __forceinline__ void st_f32_release_gpu(float* address, float v) {
  asm volatile("st.release.gpu.global.f32 [%0], %1;" :  : "l"(address), "f"(v) : "memory");
}
__device__ __forceinline__ void st_f32_release_sys(float* address, float v) {
  asm volatile("st.release.sys.global.f32 [%0], %1;" :  : "l"(address), "f"(v) : "memory");
}
__device__ __forceinline__ void st_f32_weak(float* address, float v) {
  asm volatile("st.weak.global.f32 [%0], %1;" :  : "l"(address), "f"(v) : "memory");
}
__device__ __forceinline__ void st_i32_relaxed_cluster(int* address, int v) {
  asm volatile("st.relaxed.cluster.global.b32 [%0], %1;" :  : "l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void st_i32_relaxed_cta(int* address, int v) {
  asm volatile("st.relaxed.cta.global.b32 [%0], %1;" :  : "l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void st_i32_relaxed_gpu(int* address, int v) {
  asm volatile("st.relaxed.gpu.global.b32 [%0], %1;" :  : "l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void st_i32_relaxed_sys(int* address, int v) {
  asm volatile("st.relaxed.sys.global.b32 [%0], %1;" :  : "l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void st_i32_release_cluster(int* address, int v) {
  asm volatile("st.release.cluster.global.b32 [%0], %1;" :  : "l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void st_i32_release_cta(int* address, int v) {
  asm volatile("st.release.cta.global.b32 [%0], %1;" :  : "l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void st_i32_release_gpu(int* address, int v) {
  asm volatile("st.release.gpu.global.b32 [%0], %1;" :  : "l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void st_i32_release_sys(int* address, int v) {
  asm volatile("st.release.sys.global.b32 [%0], %1;" :  : "l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void st_i32_weak(int* address, int v) {
  asm volatile("st.weak.global.b32 [%0], %1;" :  : "l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void st_i64_relaxed_cluster(i64* address, i64 v) {
  asm volatile("st.relaxed.cluster.global.b64 [%0], %1;" :  : "l"(address), "l"(v) : "memory");
}
__device__ __forceinline__ void st_i64_relaxed_cta(i64* address, i64 v) {
  asm volatile("st.relaxed.cta.global.b64 [%0], %1;" :  : "l"(address), "l"(v) : "memory");
}
__device__ __forceinline__ void st_i64_relaxed_gpu(i64* address, i64 v) {
  asm volatile("st.relaxed.gpu.global.b64 [%0], %1;" :  : "l"(address), "l"(v) : "memory");
}
__device__ __forceinline__ void st_i64_relaxed_sys(i64* address, i64 v) {
  asm volatile("st.relaxed.sys.global.b64 [%0], %1;" :  : "l"(address), "l"(v) : "memory");
}
__device__ __forceinline__ void st_i64_release_cluster(i64* address, i64 v) {
  asm volatile("st.release.cluster.global.b64 [%0], %1;" :  : "l"(address), "l"(v) : "memory");
}
__device__ __forceinline__ void st_i64_release_cta(i64* address, i64 v) {
  asm volatile("st.release.cta.global.b64 [%0], %1;" :  : "l"(address), "l"(v) : "memory");
}
__device__ __forceinline__ void st_i64_release_gpu(i64* address, i64 v) {
  asm volatile("st.release.gpu.global.b64 [%0], %1;" :  : "l"(address), "l"(v) : "memory");
}
__device__ __forceinline__ void st_i64_release_sys(i64* address, i64 v) {
  asm volatile("st.release.sys.global.b64 [%0], %1;" :  : "l"(address), "l"(v) : "memory");
}
__device__ __forceinline__ void st_i64_weak(i64* address, i64 v) {
  asm volatile("st.weak.global.b64 [%0], %1;" :  : "l"(address), "l"(v) : "memory");
}
__device__ __forceinline__ void st_u32_relaxed_cluster(u32* address, u32 v) {
  asm volatile("st.relaxed.cluster.global.b32 [%0], %1;" :  : "l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void st_u32_relaxed_cta(u32* address, u32 v) {
  asm volatile("st.relaxed.cta.global.b32 [%0], %1;" :  : "l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void st_u32_relaxed_gpu(u32* address, u32 v) {
  asm volatile("st.relaxed.gpu.global.b32 [%0], %1;" :  : "l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void st_u32_relaxed_sys(u32* address, u32 v) {
  asm volatile("st.relaxed.sys.global.b32 [%0], %1;" :  : "l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void st_u32_release_cluster(u32* address, u32 v) {
  asm volatile("st.release.cluster.global.b32 [%0], %1;" :  : "l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void st_u32_release_cta(u32* address, u32 v) {
  asm volatile("st.release.cta.global.b32 [%0], %1;" :  : "l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void st_u32_release_gpu(u32* address, u32 v) {
  asm volatile("st.release.gpu.global.b32 [%0], %1;" :  : "l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void st_u32_release_sys(u32* address, u32 v) {
  asm volatile("st.release.sys.global.b32 [%0], %1;" :  : "l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void st_u32_weak(u32* address, u32 v) {
  asm volatile("st.weak.global.b32 [%0], %1;" :  : "l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void st_u8_relaxed_cluster(u8* address, u16 v) {
  asm volatile("st.relaxed.cluster.global.b8 [%0], %1;" :  : "l"(address), "h"(v) : "memory");
}
__device__ __forceinline__ void st_u8_relaxed_cta(u8* address, u16 v) {
  asm volatile("st.relaxed.cta.global.b8 [%0], %1;" :  : "l"(address), "h"(v) : "memory");
}
__device__ __forceinline__ void st_u8_relaxed_gpu(u8* address, u16 v) {
  asm volatile("st.relaxed.gpu.global.b8 [%0], %1;" :  : "l"(address), "h"(v) : "memory");
}
__device__ __forceinline__ void st_u8_relaxed_sys(u8* address, u16 v) {
  asm volatile("st.relaxed.sys.global.b8 [%0], %1;" :  : "l"(address), "h"(v) : "memory");
}
__device__ __forceinline__ void st_u8_release_cluster(u8* address, u16 v) {
  asm volatile("st.release.cluster.global.b8 [%0], %1;" :  : "l"(address), "h"(v) : "memory");
}
__device__ __forceinline__ void st_u8_release_cta(u8* address, u16 v) {
  asm volatile("st.release.cta.global.b8 [%0], %1;" :  : "l"(address), "h"(v) : "memory");
}
__device__ __forceinline__ void st_u8_release_gpu(u8* address, u16 v) {
  asm volatile("st.release.gpu.global.b8 [%0], %1;" :  : "l"(address), "h"(v) : "memory");
}
__device__ __forceinline__ void st_u8_release_sys(u8* address, u16 v) {
  asm volatile("st.release.sys.global.b8 [%0], %1;" :  : "l"(address), "h"(v) : "memory");
}
__device__ __forceinline__ void st_u8_weak(u8* address, u16 v) {
  asm volatile("st.weak.global.b8 [%0], %1;" :  : "l"(address), "h"(v) : "memory");
}
extern "C" __device__ unsigned long long tilewright_form = 0xf7a222dbb4190f64;
extern "C" __global__ void __launch_bounds__(128, 1)
ordered(float* f32_out_1, i64 f32_out_1_stride0, u16* f16_out_2, i64 f16_out_2_stride0, u16* bf16_out_3, i64 bf16_out_3_stride0, int* i32_out_4, i64 i32_out_4_stride0, u32* u32_out_5, i64 u32_out_5_stride0, i64* i64_out_6, i64 i64_out_6_stride0, u8* u8_out_7, i64 u8_out_7_stride0, int dim_columns, float x_0) {
  const int warp = __shfl_sync(0xffffffffu, (int)threadIdx.x / 32, 0);
  const int lane = (int)(threadIdx.x & 31u);
  // kernel.tw:18
  const i64 v11 = (i64)dim_columns;
  // kernel.tw:19
  const u32 v12 = round_u32(x_0);
  // kernel.tw:20
  const u32 v13 = saturate_u32(v11);
  // kernel.tw:21
  const u32 v14 = saturate_u32(dim_columns);
  // kernel.tw:22
  if (warp < 4) {
    // only
    // kernel.tw:23
    float held_16[2];
    // kernel.tw:24
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        held_16[i] = c0 < e0 && c1 + i < e1 ? ld_f32_weak(first + (i)) : (float)0;
      }
    }
    // kernel.tw:25
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_f32_weak(first + (i), held_16[i]);
      }
    }
    // kernel.tw:26
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        held_16[i] = c0 < e0 && c1 + i < e1 ? ld_f32_relaxed_cta(first + (i)) : (float)0;
      }
    }
    // kernel.tw:27
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        held_16[i] = c0 < e0 && c1 + i < e1 ? ld_f32_acquire_cta(first + (i)) : (float)0;
      }
    }
    // kernel.tw:28
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_f32_relaxed_cta(first + (i), held_16[i]);
      }
    }
    // kernel.tw:29
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_f32_release_cta(first + (i), held_16[i]);
      }
    }
    // kernel.tw:30
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) red_f32_relaxed_cta(first + (i), held_16[i]);
      }
    }
    // kernel.tw:31
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) red_f32_release_cta(first + (i), held_16[i]);
      }
    }
    // kernel.tw:32
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_16[i] = atom_f32_relaxed_cta(first + (i), held_16[i]);
      }
    }
    // kernel.tw:33
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_16[i] = atom_f32_acquire_cta(first + (i), held_16[i]);
      }
    }
    // kernel.tw:34
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_16[i] = atom_f32_release_cta(first + (i), held_16[i]);
      }
    }
    // kernel.tw:35
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_16[i] = atom_f32_acq_rel_cta(first + (i), held_16[i]);
      }
    }
    // kernel.tw:36
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        held_16[i] = c0 < e0 && c1 + i < e1 ? ld_f32_relaxed_cluster(first + (i)) : (float)0;
      }
    }
    // kernel.tw:37
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        held_16[i] = c0 < e0 && c1 + i < e1 ? ld_f32_acquire_cluster(first + (i)) : (float)0;
      }
    }
    // kernel.tw:38
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_f32_relaxed_cluster(first + (i), held_16[i]);
      }
    }
    // kernel.tw:39
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_f32_release_cluster(first + (i), held_16[i]);
      }
    }
    // kernel.tw:40
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) red_f32_relaxed_cluster(first + (i), held_16[i]);
      }
    }
    // kernel.tw:41
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) red_f32_release_cluster(first + (i), held_16[i]);
      }
    }
    // kernel.tw:42
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_16[i] = atom_f32_relaxed_cluster(first + (i), held_16[i]);
      }
    }
    // kernel.tw:43
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_16[i] = atom_f32_acquire_cluster(first + (i), held_16[i]);
      }
    }
    // kernel.tw:44
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_16[i] = atom_f32_release_cluster(first + (i), held_16[i]);
      }
    }
    // kernel.tw:45
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_16[i] = atom_f32_acq_rel_cluster(first + (i), held_16[i]);
      }
    }
    // kernel.tw:46
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        held_16[i] = c0 < e0 && c1 + i < e1 ? ld_f32_relaxed_gpu(first + (i)) : (float)0;
      }
    }
    // kernel.tw:47
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        held_16[i] = c0 < e0 && c1 + i < e1 ? ld_f32_acquire_gpu(first + (i)) : (float)0;
      }
    }
    // kernel.tw:48
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_f32_relaxed_gpu(first + (i), held_16[i]);
      }
    }
    // kernel.tw:49
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_f32_release_gpu(first + (i), held_16[i]);
      }
    }
    // kernel.tw:50
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) red_f32_relaxed_gpu(first + (i), held_16[i]);
      }
    }
    // kernel.tw:51
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) red_f32_release_gpu(first + (i), held_16[i]);
      }
    }
    // kernel.tw:52
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_16[i] = atom_f32_relaxed_gpu(first + (i), held_16[i]);
      }
    }
    // kernel.tw:53
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_16[i] = atom_f32_acquire_gpu(first + (i), held_16[i]);
      }
    }
    // kernel.tw:54
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_16[i] = atom_f32_release_gpu(first + (i), held_16[i]);
      }
    }
    // kernel.tw:55
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_16[i] = atom_f32_acq_rel_gpu(first + (i), held_16[i]);
      }
    }
    // kernel.tw:56
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        held_16[i] = c0 < e0 && c1 + i < e1 ? ld_f32_relaxed_sys(first + (i)) : (float)0;
      }
    }
    // kernel.tw:57
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        held_16[i] = c0 < e0 && c1 + i < e1 ? ld_f32_acquire_sys(first + (i)) : (float)0;
      }
    }
    // kernel.tw:58
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_f32_relaxed_sys(first + (i), held_16[i]);
      }
    }
    // kernel.tw:59
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_f32_release_sys(first + (i), held_16[i]);
      }
    }
    // kernel.tw:60
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) red_f32_relaxed_sys(first + (i), held_16[i]);
      }
    }
    // kernel.tw:61
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) red_f32_release_sys(first + (i), held_16[i]);
      }
    }
    // kernel.tw:62
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_16[i] = atom_f32_relaxed_sys(first + (i), held_16[i]);
      }
    }
    // kernel.tw:63
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_16[i] = atom_f32_acquire_sys(first + (i), held_16[i]);
      }
    }
    // kernel.tw:64
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_16[i] = atom_f32_release_sys(first + (i), held_16[i]);
      }
    }
    // kernel.tw:65
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_16[i] = atom_f32_acq_rel_sys(first + (i), held_16[i]);
      }
    }
    // kernel.tw:66
    float held_17[1];
    // kernel.tw:67
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        held_17[i] = c0 < e0 && c1 < e1 ? ld_f32_weak(first + 0) : (float)0;
      }
    }
    // kernel.tw:68
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_f32_weak(first + 0, held_17[i]);
      }
    }
    // kernel.tw:69
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        held_17[i] = c0 < e0 && c1 < e1 ? ld_f32_relaxed_cta(first + 0) : (float)0;
      }
    }
    // kernel.tw:70
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        held_17[i] = c0 < e0 && c1 < e1 ? ld_f32_acquire_cta(first + 0) : (float)0;
      }
    }
    // kernel.tw:71
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_f32_relaxed_cta(first + 0, held_17[i]);
      }
    }
    // kernel.tw:72
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_f32_release_cta(first + 0, held_17[i]);
      }
    }
    // kernel.tw:73
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) red_f32_relaxed_cta(first + 0, held_17[i]);
      }
    }
    // kernel.tw:74
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) red_f32_release_cta(first + 0, held_17[i]);
      }
    }
    // kernel.tw:75
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        held_17[i] = c0 < e0 && c1 < e1 ? ld_f32_relaxed_cluster(first + 0) : (float)0;
      }
    }
    // kernel.tw:76
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        held_17[i] = c0 < e0 && c1 < e1 ? ld_f32_acquire_cluster(first + 0) : (float)0;
      }
    }
    // kernel.tw:77
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_f32_relaxed_cluster(first + 0, held_17[i]);
      }
    }
    // kernel.tw:78
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_f32_release_cluster(first + 0, held_17[i]);
      }
    }
    // kernel.tw:79
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) red_f32_relaxed_cluster(first + 0, held_17[i]);
      }
    }
    // kernel.tw:80
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) red_f32_release_cluster(first + 0, held_17[i]);
      }
    }
    // kernel.tw:81
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        held_17[i] = c0 < e0 && c1 < e1 ? ld_f32_relaxed_gpu(first + 0) : (float)0;
      }
    }
    // kernel.tw:82
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        held_17[i] = c0 < e0 && c1 < e1 ? ld_f32_acquire_gpu(first + 0) : (float)0;
      }
    }
    // kernel.tw:83
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_f32_relaxed_gpu(first + 0, held_17[i]);
      }
    }
    // kernel.tw:84
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_f32_release_gpu(first + 0, held_17[i]);
      }
    }
    // kernel.tw:85
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) red_f32_relaxed_gpu(first + 0, held_17[i]);
      }
    }
    // kernel.tw:86
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) red_f32_release_gpu(first + 0, held_17[i]);
      }
    }
    // kernel.tw:87
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        held_17[i] = c0 < e0 && c1 < e1 ? ld_f32_relaxed_sys(first + 0) : (float)0;
      }
    }
    // kernel.tw:88
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        held_17[i] = c0 < e0 && c1 < e1 ? ld_f32_acquire_sys(first + 0) : (float)0;
      }
    }
    // kernel.tw:89
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_f32_relaxed_sys(first + 0, held_17[i]);
      }
    }
    // kernel.tw:90
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_f32_release_sys(first + 0, held_17[i]);
      }
    }
    // kernel.tw:91
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) red_f32_relaxed_sys(first + 0, held_17[i]);
      }
    }
    // kernel.tw:92
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) red_f32_release_sys(first + 0, held_17[i]);
      }
    }
    // kernel.tw:93
    float one_18[1];
    // kernel.tw:94
    compiler_fence();
    {
      const int c0 = warp;
      const int e0 = 16;
      const int c1 = 0;
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        one_18[i] = c0 < e0 && c1 < e1 ? first[0] : (float)0;
      }
    }
    compiler_fence();
    // kernel.tw:95
    if (lane == 0) {
      const int c0 = here(warp);
      const int e0 = 16;
      const int c1 = here(0);
      const int e1 = dim_columns;
      float* const first = f32_out_1 + (i64)c0 * f32_out_1_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) one_18[i] = atom_f32_acq_rel_sys(first + 0, one_18[i]);
      }
    }
    #pragma unroll
    for (int i = 0; i < 1; ++i) one_18[i] = __shfl_sync(0xffffffffu, one_18[i], lane - lane / 1 % 32 * 1);
    // kernel.tw:96
    u32 held_19[1];
    // kernel.tw:97
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        const u32 element = c0 < e0 && c1 + i < e1 ? ld_f16_weak(first + (i)) : (u16)0;
        held_19[i / 2] = (i % 2 == 0 ? 0 : held_19[i / 2]) | element << i % 2 * 16;
      }
    }
    // kernel.tw:98
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_f16_weak(first + (i), (u16)(held_19[(i) / 2] >> (i) % 2 * 16));
      }
    }
    // kernel.tw:99
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        const u32 element = c0 < e0 && c1 + i < e1 ? ld_f16_relaxed_cta(first + (i)) : (u16)0;
        held_19[i / 2] = (i % 2 == 0 ? 0 : held_19[i / 2]) | element << i % 2 * 16;
      }
    }
    // kernel.tw:100
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        const u32 element = c0 < e0 && c1 + i < e1 ? ld_f16_acquire_cta(first + (i)) : (u16)0;
        held_19[i / 2] = (i % 2 == 0 ? 0 : held_19[i / 2]) | element << i % 2 * 16;
      }
    }
    // kernel.tw:101
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_f16_relaxed_cta(first + (i), (u16)(held_19[(i) / 2] >> (i) % 2 * 16));
      }
    }
    // kernel.tw:102
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_f16_release_cta(first + (i), (u16)(held_19[(i) / 2] >> (i) % 2 * 16));
      }
    }
    // kernel.tw:103
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      const bool aligned = (((u64)first) & 3) == 0;
      #pragma unroll
      for (int i = 0; i < 2; i += 2) {
        if (aligned && c0 < e0 && c1 + i + 2 <= e1) {
          red_f16x2_relaxed_cta((u32*)(first + (i)), held_19[i / 2]);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 2; ++j) {
            if (c0 < e0 && c1 + j < e1) red_f16_relaxed_cta(first + (j), (u16)(held_19[(j) / 2] >> (j) % 2 * 16));
          }
        }
      }
    }
    // kernel.tw:104
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      const bool aligned = (((u64)first) & 3) == 0;
      #pragma unroll
      for (int i = 0; i < 2; i += 2) {
        if (aligned && c0 < e0 && c1 + i + 2 <= e1) {
          red_f16x2_release_cta((u32*)(first + (i)), held_19[i / 2]);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 2; ++j) {
            if (c0 < e0 && c1 + j < e1) red_f16_release_cta(first + (j), (u16)(held_19[(j) / 2] >> (j) % 2 * 16));
          }
        }
      }
    }
    // kernel.tw:105
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      const bool aligned = (((u64)first) & 3) == 0;
      #pragma unroll
      for (int i = 0; i < 2; i += 2) {
        if (aligned && c0 < e0 && c1 + i + 2 <= e1) {
          held_19[i / 2] = atom_f16x2_relaxed_cta((u32*)(first + (i)), held_19[i / 2]);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 2; ++j) {
            if (c0 < e0 && c1 + j < e1) held_19[j / 2] = (held_19[j / 2] & ~(0xffffu << j % 2 * 16)) | (u32)atom_f16_relaxed_cta(first + (j), (u16)(held_19[(j) / 2] >> (j) % 2 * 16)) << j % 2 * 16;
          }
        }
      }
    }
    // kernel.tw:106
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      const bool aligned = (((u64)first) & 3) == 0;
      #pragma unroll
      for (int i = 0; i < 2; i += 2) {
        if (aligned && c0 < e0 && c1 + i + 2 <= e1) {
          held_19[i / 2] = atom_f16x2_acquire_cta((u32*)(first + (i)), held_19[i / 2]);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 2; ++j) {
            if (c0 < e0 && c1 + j < e1) held_19[j / 2] = (held_19[j / 2] & ~(0xffffu << j % 2 * 16)) | (u32)atom_f16_acquire_cta(first + (j), (u16)(held_19[(j) / 2] >> (j) % 2 * 16)) << j % 2 * 16;
          }
        }
      }
    }
    // kernel.tw:107
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      const bool aligned = (((u64)first) & 3) == 0;
      #pragma unroll
      for (int i = 0; i < 2; i += 2) {
        if (aligned && c0 < e0 && c1 + i + 2 <= e1) {
          held_19[i / 2] = atom_f16x2_release_cta((u32*)(first + (i)), held_19[i / 2]);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 2; ++j) {
            if (c0 < e0 && c1 + j < e1) held_19[j / 2] = (held_19[j / 2] & ~(0xffffu << j % 2 * 16)) | (u32)atom_f16_release_cta(first + (j), (u16)(held_19[(j) / 2] >> (j) % 2 * 16)) << j % 2 * 16;
          }
        }
      }
    }
    // kernel.tw:108
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      const bool aligned = (((u64)first) & 3) == 0;
      #pragma unroll
      for (int i = 0; i < 2; i += 2) {
        if (aligned && c0 < e0 && c1 + i + 2 <= e1) {
          held_19[i / 2] = atom_f16x2_acq_rel_cta((u32*)(first + (i)), held_19[i / 2]);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 2; ++j) {
            if (c0 < e0 && c1 + j < e1) held_19[j / 2] = (held_19[j / 2] & ~(0xffffu << j % 2 * 16)) | (u32)atom_f16_acq_rel_cta(first + (j), (u16)(held_19[(j) / 2] >> (j) % 2 * 16)) << j % 2 * 16;
          }
        }
      }
    }
    // kernel.tw:109
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        const u32 element = c0 < e0 && c1 + i < e1 ? ld_f16_relaxed_cluster(first + (i)) : (u16)0;
        held_19[i / 2] = (i % 2 == 0 ? 0 : held_19[i / 2]) | element << i % 2 * 16;
      }
    }
    // kernel.tw:110
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        const u32 element = c0 < e0 && c1 + i < e1 ? ld_f16_acquire_cluster(first + (i)) : (u16)0;
        held_19[i / 2] = (i % 2 == 0 ? 0 : held_19[i / 2]) | element << i % 2 * 16;
      }
    }
    // kernel.tw:111
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_f16_relaxed_cluster(first + (i), (u16)(held_19[(i) / 2] >> (i) % 2 * 16));
      }
    }
    // kernel.tw:112
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_f16_release_cluster(first + (i), (u16)(held_19[(i) / 2] >> (i) % 2 * 16));
      }
    }
    // kernel.tw:113
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      const bool aligned = (((u64)first) & 3) == 0;
      #pragma unroll
      for (int i = 0; i < 2; i += 2) {
        if (aligned && c0 < e0 && c1 + i + 2 <= e1) {
          red_f16x2_relaxed_cluster((u32*)(first + (i)), held_19[i / 2]);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 2; ++j) {
            if (c0 < e0 && c1 + j < e1) red_f16_relaxed_cluster(first + (j), (u16)(held_19[(j) / 2] >> (j) % 2 * 16));
          }
        }
      }
    }
    // kernel.tw:114
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      const bool aligned = (((u64)first) & 3) == 0;
      #pragma unroll
      for (int i = 0; i < 2; i += 2) {
        if (aligned && c0 < e0 && c1 + i + 2 <= e1) {
          red_f16x2_release_cluster((u32*)(first + (i)), held_19[i / 2]);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 2; ++j) {
            if (c0 < e0 && c1 + j < e1) red_f16_release_cluster(first + (j), (u16)(held_19[(j) / 2] >> (j) % 2 * 16));
          }
        }
      }
    }
    // kernel.tw:115
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      const bool aligned = (((u64)first) & 3) == 0;
      #pragma unroll
      for (int i = 0; i < 2; i += 2) {
        if (aligned && c0 < e0 && c1 + i + 2 <= e1) {
          held_19[i / 2] = atom_f16x2_relaxed_cluster((u32*)(first + (i)), held_19[i / 2]);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 2; ++j) {
            if (c0 < e0 && c1 + j < e1) held_19[j / 2] = (held_19[j / 2] & ~(0xffffu << j % 2 * 16)) | (u32)atom_f16_relaxed_cluster(first + (j), (u16)(held_19[(j) / 2] >> (j) % 2 * 16)) << j % 2 * 16;
          }
        }
      }
    }
    // kernel.tw:116
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      const bool aligned = (((u64)first) & 3) == 0;
      #pragma unroll
      for (int i = 0; i < 2; i += 2) {
        if (aligned && c0 < e0 && c1 + i + 2 <= e1) {
          held_19[i / 2] = atom_f16x2_acquire_cluster((u32*)(first + (i)), held_19[i / 2]);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 2; ++j) {
            if (c0 < e0 && c1 + j < e1) held_19[j / 2] = (held_19[j / 2] & ~(0xffffu << j % 2 * 16)) | (u32)atom_f16_acquire_cluster(first + (j), (u16)(held_19[(j) / 2] >> (j) % 2 * 16)) << j % 2 * 16;
          }
        }
      }
    }
    // kernel.tw:117
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      const bool aligned = (((u64)first) & 3) == 0;
      #pragma unroll
      for (int i = 0; i < 2; i += 2) {
        if (aligned && c0 < e0 && c1 + i + 2 <= e1) {
          held_19[i / 2] = atom_f16x2_release_cluster((u32*)(first + (i)), held_19[i / 2]);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 2; ++j) {
            if (c0 < e0 && c1 + j < e1) held_19[j / 2] = (held_19[j / 2] & ~(0xffffu << j % 2 * 16)) | (u32)atom_f16_release_cluster(first + (j), (u16)(held_19[(j) / 2] >> (j) % 2 * 16)) << j % 2 * 16;
          }
        }
      }
    }
    // kernel.tw:118
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      const bool aligned = (((u64)first) & 3) == 0;
      #pragma unroll
      for (int i = 0; i < 2; i += 2) {
        if (aligned && c0 < e0 && c1 + i + 2 <= e1) {
          held_19[i / 2] = atom_f16x2_acq_rel_cluster((u32*)(first + (i)), held_19[i / 2]);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 2; ++j) {
            if (c0 < e0 && c1 + j < e1) held_19[j / 2] = (held_19[j / 2] & ~(0xffffu << j % 2 * 16)) | (u32)atom_f16_acq_rel_cluster(first + (j), (u16)(held_19[(j) / 2] >> (j) % 2 * 16)) << j % 2 * 16;
          }
        }
      }
    }
    // kernel.tw:119
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        const u32 element = c0 < e0 && c1 + i < e1 ? ld_f16_relaxed_gpu(first + (i)) : (u16)0;
        held_19[i / 2] = (i % 2 == 0 ? 0 : held_19[i / 2]) | element << i % 2 * 16;
      }
    }
    // kernel.tw:120
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        const u32 element = c0 < e0 && c1 + i < e1 ? ld_f16_acquire_gpu(first + (i)) : (u16)0;
        held_19[i / 2] = (i % 2 == 0 ? 0 : held_19[i / 2]) | element << i % 2 * 16;
      }
    }
    // kernel.tw:121
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_f16_relaxed_gpu(first + (i), (u16)(held_19[(i) / 2] >> (i) % 2 * 16));
      }
    }
    // kernel.tw:122
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_f16_release_gpu(first + (i), (u16)(held_19[(i) / 2] >> (i) % 2 * 16));
      }
    }
    // kernel.tw:123
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      const bool aligned = (((u64)first) & 3) == 0;
      #pragma unroll
      for (int i = 0; i < 2; i += 2) {
        if (aligned && c0 < e0 && c1 + i + 2 <= e1) {
          red_f16x2_relaxed_gpu((u32*)(first + (i)), held_19[i / 2]);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 2; ++j) {
            if (c0 < e0 && c1 + j < e1) red_f16_relaxed_gpu(first + (j), (u16)(held_19[(j) / 2] >> (j) % 2 * 16));
          }
        }
      }
    }
    // kernel.tw:124
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      const bool aligned = (((u64)first) & 3) == 0;
      #pragma unroll
      for (int i = 0; i < 2; i += 2) {
        if (aligned && c0 < e0 && c1 + i + 2 <= e1) {
          red_f16x2_release_gpu((u32*)(first + (i)), held_19[i / 2]);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 2; ++j) {
            if (c0 < e0 && c1 + j < e1) red_f16_release_gpu(first + (j), (u16)(held_19[(j) / 2] >> (j) % 2 * 16));
          }
        }
      }
    }
    // kernel.tw:125
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      const bool aligned = (((u64)first) & 3) == 0;
      #pragma unroll
      for (int i = 0; i < 2; i += 2) {
        if (aligned && c0 < e0 && c1 + i + 2 <= e1) {
          held_19[i / 2] = atom_f16x2_relaxed_gpu((u32*)(first + (i)), held_19[i / 2]);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 2; ++j) {
            if (c0 < e0 && c1 + j < e1) held_19[j / 2] = (held_19[j / 2] & ~(0xffffu << j % 2 * 16)) | (u32)atom_f16_relaxed_gpu(first + (j), (u16)(held_19[(j) / 2] >> (j) % 2 * 16)) << j % 2 * 16;
          }
        }
      }
    }
    // kernel.tw:126
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      const bool aligned = (((u64)first) & 3) == 0;
      #pragma unroll
      for (int i = 0; i < 2; i += 2) {
        if (aligned && c0 < e0 && c1 + i + 2 <= e1) {
          held_19[i / 2] = atom_f16x2_acquire_gpu((u32*)(first + (i)), held_19[i / 2]);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 2; ++j) {
            if (c0 < e0 && c1 + j < e1) held_19[j / 2] = (held_19[j / 2] & ~(0xffffu << j % 2 * 16)) | (u32)atom_f16_acquire_gpu(first + (j), (u16)(held_19[(j) / 2] >> (j) % 2 * 16)) << j % 2 * 16;
          }
        }
      }
    }
    // kernel.tw:127
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      const bool aligned = (((u64)first) & 3) == 0;
      #pragma unroll
      for (int i = 0; i < 2; i += 2) {
        if (aligned && c0 < e0 && c1 + i + 2 <= e1) {
          held_19[i / 2] = atom_f16x2_release_gpu((u32*)(first + (i)), held_19[i / 2]);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 2; ++j) {
            if (c0 < e0 && c1 + j < e1) held_19[j / 2] = (held_19[j / 2] & ~(0xffffu << j % 2 * 16)) | (u32)atom_f16_release_gpu(first + (j), (u16)(held_19[(j) / 2] >> (j) % 2 * 16)) << j % 2 * 16;
          }
        }
      }
    }
    // kernel.tw:128
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      const bool aligned = (((u64)first) & 3) == 0;
      #pragma unroll
      for (int i = 0; i < 2; i += 2) {
        if (aligned && c0 < e0 && c1 + i + 2 <= e1) {
          held_19[i / 2] = atom_f16x2_acq_rel_gpu((u32*)(first + (i)), held_19[i / 2]);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 2; ++j) {
            if (c0 < e0 && c1 + j < e1) held_19[j / 2] = (held_19[j / 2] & ~(0xffffu << j % 2 * 16)) | (u32)atom_f16_acq_rel_gpu(first + (j), (u16)(held_19[(j) / 2] >> (j) % 2 * 16)) << j % 2 * 16;
          }
        }
      }
    }
    // kernel.tw:129
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        const u32 element = c0 < e0 && c1 + i < e1 ? ld_f16_relaxed_sys(first + (i)) : (u16)0;
        held_19[i / 2] = (i % 2 == 0 ? 0 : held_19[i / 2]) | element << i % 2 * 16;
      }
    }
    // kernel.tw:130
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        const u32 element = c0 < e0 && c1 + i < e1 ? ld_f16_acquire_sys(first + (i)) : (u16)0;
        held_19[i / 2] = (i % 2 == 0 ? 0 : held_19[i / 2]) | element << i % 2 * 16;
      }
    }
    // kernel.tw:131
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_f16_relaxed_sys(first + (i), (u16)(held_19[(i) / 2] >> (i) % 2 * 16));
      }
    }
    // kernel.tw:132
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_f16_release_sys(first + (i), (u16)(held_19[(i) / 2] >> (i) % 2 * 16));
      }
    }
    // kernel.tw:133
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      const bool aligned = (((u64)first) & 3) == 0;
      #pragma unroll
      for (int i = 0; i < 2; i += 2) {
        if (aligned && c0 < e0 && c1 + i + 2 <= e1) {
          red_f16x2_relaxed_sys((u32*)(first + (i)), held_19[i / 2]);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 2; ++j) {
            if (c0 < e0 && c1 + j < e1) red_f16_relaxed_sys(first + (j), (u16)(held_19[(j) / 2] >> (j) % 2 * 16));
          }
        }
      }
    }
    // kernel.tw:134
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      const bool aligned = (((u64)first) & 3) == 0;
      #pragma unroll
      for (int i = 0; i < 2; i += 2) {
        if (aligned && c0 < e0 && c1 + i + 2 <= e1) {
          red_f16x2_release_sys((u32*)(first + (i)), held_19[i / 2]);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 2; ++j) {
            if (c0 < e0 && c1 + j < e1) red_f16_release_sys(first + (j), (u16)(held_19[(j) / 2] >> (j) % 2 * 16));
          }
        }
      }
    }
    // kernel.tw:135
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      const bool aligned = (((u64)first) & 3) == 0;
      #pragma unroll
      for (int i = 0; i < 2; i += 2) {
        if (aligned && c0 < e0 && c1 + i + 2 <= e1) {
          held_19[i / 2] = atom_f16x2_relaxed_sys((u32*)(first + (i)), held_19[i / 2]);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 2; ++j) {
            if (c0 < e0 && c1 + j < e1) held_19[j / 2] = (held_19[j / 2] & ~(0xffffu << j % 2 * 16)) | (u32)atom_f16_relaxed_sys(first + (j), (u16)(held_19[(j) / 2] >> (j) % 2 * 16)) << j % 2 * 16;
          }
        }
      }
    }
    // kernel.tw:136
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      const bool aligned = (((u64)first) & 3) == 0;
      #pragma unroll
      for (int i = 0; i < 2; i += 2) {
        if (aligned && c0 < e0 && c1 + i + 2 <= e1) {
          held_19[i / 2] = atom_f16x2_acquire_sys((u32*)(first + (i)), held_19[i / 2]);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 2; ++j) {
            if (c0 < e0 && c1 + j < e1) held_19[j / 2] = (held_19[j / 2] & ~(0xffffu << j % 2 * 16)) | (u32)atom_f16_acquire_sys(first + (j), (u16)(held_19[(j) / 2] >> (j) % 2 * 16)) << j % 2 * 16;
          }
        }
      }
    }
    // kernel.tw:137
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      const bool aligned = (((u64)first) & 3) == 0;
      #pragma unroll
      for (int i = 0; i < 2; i += 2) {
        if (aligned && c0 < e0 && c1 + i + 2 <= e1) {
          held_19[i / 2] = atom_f16x2_release_sys((u32*)(first + (i)), held_19[i / 2]);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 2; ++j) {
            if (c0 < e0 && c1 + j < e1) held_19[j / 2] = (held_19[j / 2] & ~(0xffffu << j % 2 * 16)) | (u32)atom_f16_release_sys(first + (j), (u16)(held_19[(j) / 2] >> (j) % 2 * 16)) << j % 2 * 16;
          }
        }
      }
    }
    // kernel.tw:138
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      const bool aligned = (((u64)first) & 3) == 0;
      #pragma unroll
      for (int i = 0; i < 2; i += 2) {
        if (aligned && c0 < e0 && c1 + i + 2 <= e1) {
          held_19[i / 2] = atom_f16x2_acq_rel_sys((u32*)(first + (i)), held_19[i / 2]);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 2; ++j) {
            if (c0 < e0 && c1 + j < e1) held_19[j / 2] = (held_19[j / 2] & ~(0xffffu << j % 2 * 16)) | (u32)atom_f16_acq_rel_sys(first + (j), (u16)(held_19[(j) / 2] >> (j) % 2 * 16)) << j % 2 * 16;
          }
        }
      }
    }
    // kernel.tw:139
    u32 held_20[1];
    // kernel.tw:140
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        const u32 element = c0 < e0 && c1 < e1 ? ld_f16_weak(first + 0) : (u16)0;
        held_20[i / 2] = (i % 2 == 0 ? 0 : held_20[i / 2]) | element << i % 2 * 16;
      }
    }
    // kernel.tw:141
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_f16_weak(first + 0, (u16)(held_20[(i) / 2] >> (i) % 2 * 16));
      }
    }
    // kernel.tw:142
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        const u32 element = c0 < e0 && c1 < e1 ? ld_f16_relaxed_cta(first + 0) : (u16)0;
        held_20[i / 2] = (i % 2 == 0 ? 0 : held_20[i / 2]) | element << i % 2 * 16;
      }
    }
    // kernel.tw:143
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        const u32 element = c0 < e0 && c1 < e1 ? ld_f16_acquire_cta(first + 0) : (u16)0;
        held_20[i / 2] = (i % 2 == 0 ? 0 : held_20[i / 2]) | element << i % 2 * 16;
      }
    }
    // kernel.tw:144
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_f16_relaxed_cta(first + 0, (u16)(held_20[(i) / 2] >> (i) % 2 * 16));
      }
    }
    // kernel.tw:145
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_f16_release_cta(first + 0, (u16)(held_20[(i) / 2] >> (i) % 2 * 16));
      }
    }
    // kernel.tw:146
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) red_f16_relaxed_cta(first + 0, (u16)(held_20[(i) / 2] >> (i) % 2 * 16));
      }
    }
    // kernel.tw:147
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) red_f16_release_cta(first + 0, (u16)(held_20[(i) / 2] >> (i) % 2 * 16));
      }
    }
    // kernel.tw:148
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        const u32 element = c0 < e0 && c1 < e1 ? ld_f16_relaxed_cluster(first + 0) : (u16)0;
        held_20[i / 2] = (i % 2 == 0 ? 0 : held_20[i / 2]) | element << i % 2 * 16;
      }
    }
    // kernel.tw:149
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        const u32 element = c0 < e0 && c1 < e1 ? ld_f16_acquire_cluster(first + 0) : (u16)0;
        held_20[i / 2] = (i % 2 == 0 ? 0 : held_20[i / 2]) | element << i % 2 * 16;
      }
    }
    // kernel.tw:150
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_f16_relaxed_cluster(first + 0, (u16)(held_20[(i) / 2] >> (i) % 2 * 16));
      }
    }
    // kernel.tw:151
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_f16_release_cluster(first + 0, (u16)(held_20[(i) / 2] >> (i) % 2 * 16));
      }
    }
    // kernel.tw:152
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) red_f16_relaxed_cluster(first + 0, (u16)(held_20[(i) / 2] >> (i) % 2 * 16));
      }
    }
    // kernel.tw:153
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) red_f16_release_cluster(first + 0, (u16)(held_20[(i) / 2] >> (i) % 2 * 16));
      }
    }
    // kernel.tw:154
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        const u32 element = c0 < e0 && c1 < e1 ? ld_f16_relaxed_gpu(first + 0) : (u16)0;
        held_20[i / 2] = (i % 2 == 0 ? 0 : held_20[i / 2]) | element << i % 2 * 16;
      }
    }
    // kernel.tw:155
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        const u32 element = c0 < e0 && c1 < e1 ? ld_f16_acquire_gpu(first + 0) : (u16)0;
        held_20[i / 2] = (i % 2 == 0 ? 0 : held_20[i / 2]) | element << i % 2 * 16;
      }
    }
    // kernel.tw:156
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_f16_relaxed_gpu(first + 0, (u16)(held_20[(i) / 2] >> (i) % 2 * 16));
      }
    }
    // kernel.tw:157
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_f16_release_gpu(first + 0, (u16)(held_20[(i) / 2] >> (i) % 2 * 16));
      }
    }
    // kernel.tw:158
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) red_f16_relaxed_gpu(first + 0, (u16)(held_20[(i) / 2] >> (i) % 2 * 16));
      }
    }
    // kernel.tw:159
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) red_f16_release_gpu(first + 0, (u16)(held_20[(i) / 2] >> (i) % 2 * 16));
      }
    }
    // kernel.tw:160
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        const u32 element = c0 < e0 && c1 < e1 ? ld_f16_relaxed_sys(first + 0) : (u16)0;
        held_20[i / 2] = (i % 2 == 0 ? 0 : held_20[i / 2]) | element << i % 2 * 16;
      }
    }
    // kernel.tw:161
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        const u32 element = c0 < e0 && c1 < e1 ? ld_f16_acquire_sys(first + 0) : (u16)0;
        held_20[i / 2] = (i % 2 == 0 ? 0 : held_20[i / 2]) | element << i % 2 * 16;
      }
    }
    // kernel.tw:162
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_f16_relaxed_sys(first + 0, (u16)(held_20[(i) / 2] >> (i) % 2 * 16));
      }
    }
    // kernel.tw:163
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_f16_release_sys(first + 0, (u16)(held_20[(i) / 2] >> (i) % 2 * 16));
      }
    }
    // kernel.tw:164
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) red_f16_relaxed_sys(first + 0, (u16)(held_20[(i) / 2] >> (i) % 2 * 16));
      }
    }
    // kernel.tw:165
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) red_f16_release_sys(first + 0, (u16)(held_20[(i) / 2] >> (i) % 2 * 16));
      }
    }
    // kernel.tw:166
    u32 one_21[1];
    // kernel.tw:167
    compiler_fence();
    {
      const int c0 = warp;
      const int e0 = 16;
      const int c1 = 0;
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        const u32 element = c0 < e0 && c1 < e1 ? first[0] : (u16)0;
        one_21[i / 2] = (i % 2 == 0 ? 0 : one_21[i / 2]) | element << i % 2 * 16;
      }
    }
    compiler_fence();
    // kernel.tw:168
    if (lane == 0) {
      const int c0 = here(warp);
      const int e0 = 16;
      const int c1 = here(0);
      const int e1 = dim_columns;
      u16* const first = f16_out_2 + (i64)c0 * f16_out_2_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) one_21[i / 2] = (one_21[i / 2] & ~(0xffffu << i % 2 * 16)) | (u32)atom_f16_acq_rel_sys(first + 0, (u16)(one_21[(i) / 2] >> (i) % 2 * 16)) << i % 2 * 16;
      }
    }
    #pragma unroll
    for (int i = 0; i < 1; ++i) one_21[i] = __shfl_sync(0xffffffffu, one_21[i], lane - lane / 1 % 32 * 1);
    // kernel.tw:169
    u32 held_22[1];
    // kernel.tw:170
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        const u32 element = c0 < e0 && c1 + i < e1 ? ld_bf16_weak(first + (i)) : (u16)0;
        held_22[i / 2] = (i % 2 == 0 ? 0 : held_22[i / 2]) | element << i % 2 * 16;
      }
    }
    // kernel.tw:171
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_bf16_weak(first + (i), (u16)(held_22[(i) / 2] >> (i) % 2 * 16));
      }
    }
    // kernel.tw:172
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        const u32 element = c0 < e0 && c1 + i < e1 ? ld_bf16_relaxed_cta(first + (i)) : (u16)0;
        held_22[i / 2] = (i % 2 == 0 ? 0 : held_22[i / 2]) | element << i % 2 * 16;
      }
    }
    // kernel.tw:173
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        const u32 element = c0 < e0 && c1 + i < e1 ? ld_bf16_acquire_cta(first + (i)) : (u16)0;
        held_22[i / 2] = (i % 2 == 0 ? 0 : held_22[i / 2]) | element << i % 2 * 16;
      }
    }
    // kernel.tw:174
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_bf16_relaxed_cta(first + (i), (u16)(held_22[(i) / 2] >> (i) % 2 * 16));
      }
    }
    // kernel.tw:175
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_bf16_release_cta(first + (i), (u16)(held_22[(i) / 2] >> (i) % 2 * 16));
      }
    }
    // kernel.tw:176
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      const bool aligned = (((u64)first) & 3) == 0;
      #pragma unroll
      for (int i = 0; i < 2; i += 2) {
        if (aligned && c0 < e0 && c1 + i + 2 <= e1) {
          red_bf16x2_relaxed_cta((u32*)(first + (i)), held_22[i / 2]);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 2; ++j) {
            if (c0 < e0 && c1 + j < e1) red_bf16_relaxed_cta(first + (j), (u16)(held_22[(j) / 2] >> (j) % 2 * 16));
          }
        }
      }
    }
    // kernel.tw:177
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      const bool aligned = (((u64)first) & 3) == 0;
      #pragma unroll
      for (int i = 0; i < 2; i += 2) {
        if (aligned && c0 < e0 && c1 + i + 2 <= e1) {
          red_bf16x2_release_cta((u32*)(first + (i)), held_22[i / 2]);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 2; ++j) {
            if (c0 < e0 && c1 + j < e1) red_bf16_release_cta(first + (j), (u16)(held_22[(j) / 2] >> (j) % 2 * 16));
          }
        }
      }
    }
    // kernel.tw:178
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      const bool aligned = (((u64)first) & 3) == 0;
      #pragma unroll
      for (int i = 0; i < 2; i += 2) {
        if (aligned && c0 < e0 && c1 + i + 2 <= e1) {
          held_22[i / 2] = atom_bf16x2_relaxed_cta((u32*)(first + (i)), held_22[i / 2]);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 2; ++j) {
            if (c0 < e0 && c1 + j < e1) held_22[j / 2] = (held_22[j / 2] & ~(0xffffu << j % 2 * 16)) | (u32)atom_bf16_relaxed_cta(first + (j), (u16)(held_22[(j) / 2] >> (j) % 2 * 16)) << j % 2 * 16;
          }
        }
      }
    }
    // kernel.tw:179
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      const bool aligned = (((u64)first) & 3) == 0;
      #pragma unroll
      for (int i = 0; i < 2; i += 2) {
        if (aligned && c0 < e0 && c1 + i + 2 <= e1) {
          held_22[i / 2] = atom_bf16x2_acquire_cta((u32*)(first + (i)), held_22[i / 2]);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 2; ++j) {
            if (c0 < e0 && c1 + j < e1) held_22[j / 2] = (held_22[j / 2] & ~(0xffffu << j % 2 * 16)) | (u32)atom_bf16_acquire_cta(first + (j), (u16)(held_22[(j) / 2] >> (j) % 2 * 16)) << j % 2 * 16;
          }
        }
      }
    }
    // kernel.tw:180
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      const bool aligned = (((u64)first) & 3) == 0;
      #pragma unroll
      for (int i = 0; i < 2; i += 2) {
        if (aligned && c0 < e0 && c1 + i + 2 <= e1) {
          held_22[i / 2] = atom_bf16x2_release_cta((u32*)(first + (i)), held_22[i / 2]);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 2; ++j) {
            if (c0 < e0 && c1 + j < e1) held_22[j / 2] = (held_22[j / 2] & ~(0xffffu << j % 2 * 16)) | (u32)atom_bf16_release_cta(first + (j), (u16)(held_22[(j) / 2] >> (j) % 2 * 16)) << j % 2 * 16;
          }
        }
      }
    }
    // kernel.tw:181
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      const bool aligned = (((u64)first) & 3) == 0;
      #pragma unroll
      for (int i = 0; i < 2; i += 2) {
        if (aligned && c0 < e0 && c1 + i + 2 <= e1) {
          held_22[i / 2] = atom_bf16x2_acq_rel_cta((u32*)(first + (i)), held_22[i / 2]);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 2; ++j) {
            if (c0 < e0 && c1 + j < e1) held_22[j / 2] = (held_22[j / 2] & ~(0xffffu << j % 2 * 16)) | (u32)atom_bf16_acq_rel_cta(first + (j), (u16)(held_22[(j) / 2] >> (j) % 2 * 16)) << j % 2 * 16;
          }
        }
      }
    }
    // kernel.tw:182
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        const u32 element = c0 < e0 && c1 + i < e1 ? ld_bf16_relaxed_cluster(first + (i)) : (u16)0;
        held_22[i / 2] = (i % 2 == 0 ? 0 : held_22[i / 2]) | element << i % 2 * 16;
      }
    }
    // kernel.tw:183
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        const u32 element = c0 < e0 && c1 + i < e1 ? ld_bf16_acquire_cluster(first + (i)) : (u16)0;
        held_22[i / 2] = (i % 2 == 0 ? 0 : held_22[i / 2]) | element << i % 2 * 16;
      }
    }
    // kernel.tw:184
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_bf16_relaxed_cluster(first + (i), (u16)(held_22[(i) / 2] >> (i) % 2 * 16));
      }
    }
    // kernel.tw:185
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_bf16_release_cluster(first + (i), (u16)(held_22[(i) / 2] >> (i) % 2 * 16));
      }
    }
    // kernel.tw:186
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      const bool aligned = (((u64)first) & 3) == 0;
      #pragma unroll
      for (int i = 0; i < 2; i += 2) {
        if (aligned && c0 < e0 && c1 + i + 2 <= e1) {
          red_bf16x2_relaxed_cluster((u32*)(first + (i)), held_22[i / 2]);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 2; ++j) {
            if (c0 < e0 && c1 + j < e1) red_bf16_relaxed_cluster(first + (j), (u16)(held_22[(j) / 2] >> (j) % 2 * 16));
          }
        }
      }
    }
    // kernel.tw:187
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      const bool aligned = (((u64)first) & 3) == 0;
      #pragma unroll
      for (int i = 0; i < 2; i += 2) {
        if (aligned && c0 < e0 && c1 + i + 2 <= e1) {
          red_bf16x2_release_cluster((u32*)(first + (i)), held_22[i / 2]);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 2; ++j) {
            if (c0 < e0 && c1 + j < e1) red_bf16_release_cluster(first + (j), (u16)(held_22[(j) / 2] >> (j) % 2 * 16));
          }
        }
      }
    }
    // kernel.tw:188
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      const bool aligned = (((u64)first) & 3) == 0;
      #pragma unroll
      for (int i = 0; i < 2; i += 2) {
        if (aligned && c0 < e0 && c1 + i + 2 <= e1) {
          held_22[i / 2] = atom_bf16x2_relaxed_cluster((u32*)(first + (i)), held_22[i / 2]);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 2; ++j) {
            if (c0 < e0 && c1 + j < e1) held_22[j / 2] = (held_22[j / 2] & ~(0xffffu << j % 2 * 16)) | (u32)atom_bf16_relaxed_cluster(first + (j), (u16)(held_22[(j) / 2] >> (j) % 2 * 16)) << j % 2 * 16;
          }
        }
      }
    }
    // kernel.tw:189
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      const bool aligned = (((u64)first) & 3) == 0;
      #pragma unroll
      for (int i = 0; i < 2; i += 2) {
        if (aligned && c0 < e0 && c1 + i + 2 <= e1) {
          held_22[i / 2] = atom_bf16x2_acquire_cluster((u32*)(first + (i)), held_22[i / 2]);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 2; ++j) {
            if (c0 < e0 && c1 + j < e1) held_22[j / 2] = (held_22[j / 2] & ~(0xffffu << j % 2 * 16)) | (u32)atom_bf16_acquire_cluster(first + (j), (u16)(held_22[(j) / 2] >> (j) % 2 * 16)) << j % 2 * 16;
          }
        }
      }
    }
    // kernel.tw:190
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      const bool aligned = (((u64)first) & 3) == 0;
      #pragma unroll
      for (int i = 0; i < 2; i += 2) {
        if (aligned && c0 < e0 && c1 + i + 2 <= e1) {
          held_22[i / 2] = atom_bf16x2_release_cluster((u32*)(first + (i)), held_22[i / 2]);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 2; ++j) {
            if (c0 < e0 && c1 + j < e1) held_22[j / 2] = (held_22[j / 2] & ~(0xffffu << j % 2 * 16)) | (u32)atom_bf16_release_cluster(first + (j), (u16)(held_22[(j) / 2] >> (j) % 2 * 16)) << j % 2 * 16;
          }
        }
      }
    }
    // kernel.tw:191
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      const bool aligned = (((u64)first) & 3) == 0;
      #pragma unroll
      for (int i = 0; i < 2; i += 2) {
        if (aligned && c0 < e0 && c1 + i + 2 <= e1) {
          held_22[i / 2] = atom_bf16x2_acq_rel_cluster((u32*)(first + (i)), held_22[i / 2]);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 2; ++j) {
            if (c0 < e0 && c1 + j < e1) held_22[j / 2] = (held_22[j / 2] & ~(0xffffu << j % 2 * 16)) | (u32)atom_bf16_acq_rel_cluster(first + (j), (u16)(held_22[(j) / 2] >> (j) % 2 * 16)) << j % 2 * 16;
          }
        }
      }
    }
    // kernel.tw:192
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        const u32 element = c0 < e0 && c1 + i < e1 ? ld_bf16_relaxed_gpu(first + (i)) : (u16)0;
        held_22[i / 2] = (i % 2 == 0 ? 0 : held_22[i / 2]) | element << i % 2 * 16;
      }
    }
    // kernel.tw:193
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        const u32 element = c0 < e0 && c1 + i < e1 ? ld_bf16_acquire_gpu(first + (i)) : (u16)0;
        held_22[i / 2] = (i % 2 == 0 ? 0 : held_22[i / 2]) | element << i % 2 * 16;
      }
    }
    // kernel.tw:194
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_bf16_relaxed_gpu(first + (i), (u16)(held_22[(i) / 2] >> (i) % 2 * 16));
      }
    }
    // kernel.tw:195
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_bf16_release_gpu(first + (i), (u16)(held_22[(i) / 2] >> (i) % 2 * 16));
      }
    }
    // kernel.tw:196
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      const bool aligned = (((u64)first) & 3) == 0;
      #pragma unroll
      for (int i = 0; i < 2; i += 2) {
        if (aligned && c0 < e0 && c1 + i + 2 <= e1) {
          red_bf16x2_relaxed_gpu((u32*)(first + (i)), held_22[i / 2]);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 2; ++j) {
            if (c0 < e0 && c1 + j < e1) red_bf16_relaxed_gpu(first + (j), (u16)(held_22[(j) / 2] >> (j) % 2 * 16));
          }
        }
      }
    }
    // kernel.tw:197
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      const bool aligned = (((u64)first) & 3) == 0;
      #pragma unroll
      for (int i = 0; i < 2; i += 2) {
        if (aligned && c0 < e0 && c1 + i + 2 <= e1) {
          red_bf16x2_release_gpu((u32*)(first + (i)), held_22[i / 2]);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 2; ++j) {
            if (c0 < e0 && c1 + j < e1) red_bf16_release_gpu(first + (j), (u16)(held_22[(j) / 2] >> (j) % 2 * 16));
          }
        }
      }
    }
    // kernel.tw:198
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      const bool aligned = (((u64)first) & 3) == 0;
      #pragma unroll
      for (int i = 0; i < 2; i += 2) {
        if (aligned && c0 < e0 && c1 + i + 2 <= e1) {
          held_22[i / 2] = atom_bf16x2_relaxed_gpu((u32*)(first + (i)), held_22[i / 2]);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 2; ++j) {
            if (c0 < e0 && c1 + j < e1) held_22[j / 2] = (held_22[j / 2] & ~(0xffffu << j % 2 * 16)) | (u32)atom_bf16_relaxed_gpu(first + (j), (u16)(held_22[(j) / 2] >> (j) % 2 * 16)) << j % 2 * 16;
          }
        }
      }
    }
    // kernel.tw:199
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      const bool aligned = (((u64)first) & 3) == 0;
      #pragma unroll
      for (int i = 0; i < 2; i += 2) {
        if (aligned && c0 < e0 && c1 + i + 2 <= e1) {
          held_22[i / 2] = atom_bf16x2_acquire_gpu((u32*)(first + (i)), held_22[i / 2]);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 2; ++j) {
            if (c0 < e0 && c1 + j < e1) held_22[j / 2] = (held_22[j / 2] & ~(0xffffu << j % 2 * 16)) | (u32)atom_bf16_acquire_gpu(first + (j), (u16)(held_22[(j) / 2] >> (j) % 2 * 16)) << j % 2 * 16;
          }
        }
      }
    }
    // kernel.tw:200
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      const bool aligned = (((u64)first) & 3) == 0;
      #pragma unroll
      for (int i = 0; i < 2; i += 2) {
        if (aligned && c0 < e0 && c1 + i + 2 <= e1) {
          held_22[i / 2] = atom_bf16x2_release_gpu((u32*)(first + (i)), held_22[i / 2]);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 2; ++j) {
            if (c0 < e0 && c1 + j < e1) held_22[j / 2] = (held_22[j / 2] & ~(0xffffu << j % 2 * 16)) | (u32)atom_bf16_release_gpu(first + (j), (u16)(held_22[(j) / 2] >> (j) % 2 * 16)) << j % 2 * 16;
          }
        }
      }
    }
    // kernel.tw:201
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      const bool aligned = (((u64)first) & 3) == 0;
      #pragma unroll
      for (int i = 0; i < 2; i += 2) {
        if (aligned && c0 < e0 && c1 + i + 2 <= e1) {
          held_22[i / 2] = atom_bf16x2_acq_rel_gpu((u32*)(first + (i)), held_22[i / 2]);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 2; ++j) {
            if (c0 < e0 && c1 + j < e1) held_22[j / 2] = (held_22[j / 2] & ~(0xffffu << j % 2 * 16)) | (u32)atom_bf16_acq_rel_gpu(first + (j), (u16)(held_22[(j) / 2] >> (j) % 2 * 16)) << j % 2 * 16;
          }
        }
      }
    }
    // kernel.tw:202
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        const u32 element = c0 < e0 && c1 + i < e1 ? ld_bf16_relaxed_sys(first + (i)) : (u16)0;
        held_22[i / 2] = (i % 2 == 0 ? 0 : held_22[i / 2]) | element << i % 2 * 16;
      }
    }
    // kernel.tw:203
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        const u32 element = c0 < e0 && c1 + i < e1 ? ld_bf16_acquire_sys(first + (i)) : (u16)0;
        held_22[i / 2] = (i % 2 == 0 ? 0 : held_22[i / 2]) | element << i % 2 * 16;
      }
    }
    // kernel.tw:204
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_bf16_relaxed_sys(first + (i), (u16)(held_22[(i) / 2] >> (i) % 2 * 16));
      }
    }
    // kernel.tw:205
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_bf16_release_sys(first + (i), (u16)(held_22[(i) / 2] >> (i) % 2 * 16));
      }
    }
    // kernel.tw:206
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      const bool aligned = (((u64)first) & 3) == 0;
      #pragma unroll
      for (int i = 0; i < 2; i += 2) {
        if (aligned && c0 < e0 && c1 + i + 2 <= e1) {
          red_bf16x2_relaxed_sys((u32*)(first + (i)), held_22[i / 2]);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 2; ++j) {
            if (c0 < e0 && c1 + j < e1) red_bf16_relaxed_sys(first + (j), (u16)(held_22[(j) / 2] >> (j) % 2 * 16));
          }
        }
      }
    }
    // kernel.tw:207
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      const bool aligned = (((u64)first) & 3) == 0;
      #pragma unroll
      for (int i = 0; i < 2; i += 2) {
        if (aligned && c0 < e0 && c1 + i + 2 <= e1) {
          red_bf16x2_release_sys((u32*)(first + (i)), held_22[i / 2]);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 2; ++j) {
            if (c0 < e0 && c1 + j < e1) red_bf16_release_sys(first + (j), (u16)(held_22[(j) / 2] >> (j) % 2 * 16));
          }
        }
      }
    }
    // kernel.tw:208
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      const bool aligned = (((u64)first) & 3) == 0;
      #pragma unroll
      for (int i = 0; i < 2; i += 2) {
        if (aligned && c0 < e0 && c1 + i + 2 <= e1) {
          held_22[i / 2] = atom_bf16x2_relaxed_sys((u32*)(first + (i)), held_22[i / 2]);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 2; ++j) {
            if (c0 < e0 && c1 + j < e1) held_22[j / 2] = (held_22[j / 2] & ~(0xffffu << j % 2 * 16)) | (u32)atom_bf16_relaxed_sys(first + (j), (u16)(held_22[(j) / 2] >> (j) % 2 * 16)) << j % 2 * 16;
          }
        }
      }
    }
    // kernel.tw:209
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      const bool aligned = (((u64)first) & 3) == 0;
      #pragma unroll
      for (int i = 0; i < 2; i += 2) {
        if (aligned && c0 < e0 && c1 + i + 2 <= e1) {
          held_22[i / 2] = atom_bf16x2_acquire_sys((u32*)(first + (i)), held_22[i / 2]);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 2; ++j) {
            if (c0 < e0 && c1 + j < e1) held_22[j / 2] = (held_22[j / 2] & ~(0xffffu << j % 2 * 16)) | (u32)atom_bf16_acquire_sys(first + (j), (u16)(held_22[(j) / 2] >> (j) % 2 * 16)) << j % 2 * 16;
          }
        }
      }
    }
    // kernel.tw:210
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      const bool aligned = (((u64)first) & 3) == 0;
      #pragma unroll
      for (int i = 0; i < 2; i += 2) {
        if (aligned && c0 < e0 && c1 + i + 2 <= e1) {
          held_22[i / 2] = atom_bf16x2_release_sys((u32*)(first + (i)), held_22[i / 2]);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 2; ++j) {
            if (c0 < e0 && c1 + j < e1) held_22[j / 2] = (held_22[j / 2] & ~(0xffffu << j % 2 * 16)) | (u32)atom_bf16_release_sys(first + (j), (u16)(held_22[(j) / 2] >> (j) % 2 * 16)) << j % 2 * 16;
          }
        }
      }
    }
    // kernel.tw:211
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      const bool aligned = (((u64)first) & 3) == 0;
      #pragma unroll
      for (int i = 0; i < 2; i += 2) {
        if (aligned && c0 < e0 && c1 + i + 2 <= e1) {
          held_22[i / 2] = atom_bf16x2_acq_rel_sys((u32*)(first + (i)), held_22[i / 2]);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 2; ++j) {
            if (c0 < e0 && c1 + j < e1) held_22[j / 2] = (held_22[j / 2] & ~(0xffffu << j % 2 * 16)) | (u32)atom_bf16_acq_rel_sys(first + (j), (u16)(held_22[(j) / 2] >> (j) % 2 * 16)) << j % 2 * 16;
          }
        }
      }
    }
    // kernel.tw:212
    u32 held_23[1];
    // kernel.tw:213
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        const u32 element = c0 < e0 && c1 < e1 ? ld_bf16_weak(first + 0) : (u16)0;
        held_23[i / 2] = (i % 2 == 0 ? 0 : held_23[i / 2]) | element << i % 2 * 16;
      }
    }
    // kernel.tw:214
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_bf16_weak(first + 0, (u16)(held_23[(i) / 2] >> (i) % 2 * 16));
      }
    }
    // kernel.tw:215
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        const u32 element = c0 < e0 && c1 < e1 ? ld_bf16_relaxed_cta(first + 0) : (u16)0;
        held_23[i / 2] = (i % 2 == 0 ? 0 : held_23[i / 2]) | element << i % 2 * 16;
      }
    }
    // kernel.tw:216
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        const u32 element = c0 < e0 && c1 < e1 ? ld_bf16_acquire_cta(first + 0) : (u16)0;
        held_23[i / 2] = (i % 2 == 0 ? 0 : held_23[i / 2]) | element << i % 2 * 16;
      }
    }
    // kernel.tw:217
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_bf16_relaxed_cta(first + 0, (u16)(held_23[(i) / 2] >> (i) % 2 * 16));
      }
    }
    // kernel.tw:218
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_bf16_release_cta(first + 0, (u16)(held_23[(i) / 2] >> (i) % 2 * 16));
      }
    }
    // kernel.tw:219
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) red_bf16_relaxed_cta(first + 0, (u16)(held_23[(i) / 2] >> (i) % 2 * 16));
      }
    }
    // kernel.tw:220
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) red_bf16_release_cta(first + 0, (u16)(held_23[(i) / 2] >> (i) % 2 * 16));
      }
    }
    // kernel.tw:221
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        const u32 element = c0 < e0 && c1 < e1 ? ld_bf16_relaxed_cluster(first + 0) : (u16)0;
        held_23[i / 2] = (i % 2 == 0 ? 0 : held_23[i / 2]) | element << i % 2 * 16;
      }
    }
    // kernel.tw:222
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        const u32 element = c0 < e0 && c1 < e1 ? ld_bf16_acquire_cluster(first + 0) : (u16)0;
        held_23[i / 2] = (i % 2 == 0 ? 0 : held_23[i / 2]) | element << i % 2 * 16;
      }
    }
    // kernel.tw:223
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_bf16_relaxed_cluster(first + 0, (u16)(held_23[(i) / 2] >> (i) % 2 * 16));
      }
    }
    // kernel.tw:224
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_bf16_release_cluster(first + 0, (u16)(held_23[(i) / 2] >> (i) % 2 * 16));
      }
    }
    // kernel.tw:225
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) red_bf16_relaxed_cluster(first + 0, (u16)(held_23[(i) / 2] >> (i) % 2 * 16));
      }
    }
    // kernel.tw:226
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) red_bf16_release_cluster(first + 0, (u16)(held_23[(i) / 2] >> (i) % 2 * 16));
      }
    }
    // kernel.tw:227
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        const u32 element = c0 < e0 && c1 < e1 ? ld_bf16_relaxed_gpu(first + 0) : (u16)0;
        held_23[i / 2] = (i % 2 == 0 ? 0 : held_23[i / 2]) | element << i % 2 * 16;
      }
    }
    // kernel.tw:228
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        const u32 element = c0 < e0 && c1 < e1 ? ld_bf16_acquire_gpu(first + 0) : (u16)0;
        held_23[i / 2] = (i % 2 == 0 ? 0 : held_23[i / 2]) | element << i % 2 * 16;
      }
    }
    // kernel.tw:229
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_bf16_relaxed_gpu(first + 0, (u16)(held_23[(i) / 2] >> (i) % 2 * 16));
      }
    }
    // kernel.tw:230
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_bf16_release_gpu(first + 0, (u16)(held_23[(i) / 2] >> (i) % 2 * 16));
      }
    }
    // kernel.tw:231
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) red_bf16_relaxed_gpu(first + 0, (u16)(held_23[(i) / 2] >> (i) % 2 * 16));
      }
    }
    // kernel.tw:232
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) red_bf16_release_gpu(first + 0, (u16)(held_23[(i) / 2] >> (i) % 2 * 16));
      }
    }
    // kernel.tw:233
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        const u32 element = c0 < e0 && c1 < e1 ? ld_bf16_relaxed_sys(first + 0) : (u16)0;
        held_23[i / 2] = (i % 2 == 0 ? 0 : held_23[i / 2]) | element << i % 2 * 16;
      }
    }
    // kernel.tw:234
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        const u32 element = c0 < e0 && c1 < e1 ? ld_bf16_acquire_sys(first + 0) : (u16)0;
        held_23[i / 2] = (i % 2 == 0 ? 0 : held_23[i / 2]) | element << i % 2 * 16;
      }
    }
    // kernel.tw:235
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_bf16_relaxed_sys(first + 0, (u16)(held_23[(i) / 2] >> (i) % 2 * 16));
      }
    }
    // kernel.tw:236
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_bf16_release_sys(first + 0, (u16)(held_23[(i) / 2] >> (i) % 2 * 16));
      }
    }
    // kernel.tw:237
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) red_bf16_relaxed_sys(first + 0, (u16)(held_23[(i) / 2] >> (i) % 2 * 16));
      }
    }
    // kernel.tw:238
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) red_bf16_release_sys(first + 0, (u16)(held_23[(i) / 2] >> (i) % 2 * 16));
      }
    }
    // kernel.tw:239
    u32 one_24[1];
    // kernel.tw:240
    compiler_fence();
    {
      const int c0 = warp;
      const int e0 = 16;
      const int c1 = 0;
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        const u32 element = c0 < e0 && c1 < e1 ? first[0] : (u16)0;
        one_24[i / 2] = (i % 2 == 0 ? 0 : one_24[i / 2]) | element << i % 2 * 16;
      }
    }
    compiler_fence();
    // kernel.tw:241
    if (lane == 0) {
      const int c0 = here(warp);
      const int e0 = 16;
      const int c1 = here(0);
      const int e1 = dim_columns;
      u16* const first = bf16_out_3 + (i64)c0 * bf16_out_3_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) one_24[i / 2] = (one_24[i / 2] & ~(0xffffu << i % 2 * 16)) | (u32)atom_bf16_acq_rel_sys(first + 0, (u16)(one_24[(i) / 2] >> (i) % 2 * 16)) << i % 2 * 16;
      }
    }
    #pragma unroll
    for (int i = 0; i < 1; ++i) one_24[i] = __shfl_sync(0xffffffffu, one_24[i], lane - lane / 1 % 32 * 1);
    // kernel.tw:242
    int held_25[2];
    // kernel.tw:243
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        held_25[i] = c0 < e0 && c1 + i < e1 ? ld_i32_weak(first + (i)) : (int)0;
      }
    }
    // kernel.tw:244
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_i32_weak(first + (i), held_25[i]);
      }
    }
    // kernel.tw:245
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        held_25[i] = c0 < e0 && c1 + i < e1 ? ld_i32_relaxed_cta(first + (i)) : (int)0;
      }
    }
    // kernel.tw:246
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        held_25[i] = c0 < e0 && c1 + i < e1 ? ld_i32_acquire_cta(first + (i)) : (int)0;
      }
    }
    // kernel.tw:247
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_i32_relaxed_cta(first + (i), held_25[i]);
      }
    }
    // kernel.tw:248
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_i32_release_cta(first + (i), held_25[i]);
      }
    }
    // kernel.tw:249
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) red_i32_relaxed_cta(first + (i), held_25[i]);
      }
    }
    // kernel.tw:250
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) red_i32_release_cta(first + (i), held_25[i]);
      }
    }
    // kernel.tw:251
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_25[i] = atom_i32_relaxed_cta(first + (i), held_25[i]);
      }
    }
    // kernel.tw:252
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_25[i] = atom_i32_acquire_cta(first + (i), held_25[i]);
      }
    }
    // kernel.tw:253
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_25[i] = atom_i32_release_cta(first + (i), held_25[i]);
      }
    }
    // kernel.tw:254
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_25[i] = atom_i32_acq_rel_cta(first + (i), held_25[i]);
      }
    }
    // kernel.tw:255
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        held_25[i] = c0 < e0 && c1 + i < e1 ? ld_i32_relaxed_cluster(first + (i)) : (int)0;
      }
    }
    // kernel.tw:256
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        held_25[i] = c0 < e0 && c1 + i < e1 ? ld_i32_acquire_cluster(first + (i)) : (int)0;
      }
    }
    // kernel.tw:257
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_i32_relaxed_cluster(first + (i), held_25[i]);
      }
    }
    // kernel.tw:258
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_i32_release_cluster(first + (i), held_25[i]);
      }
    }
    // kernel.tw:259
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) red_i32_relaxed_cluster(first + (i), held_25[i]);
      }
    }
    // kernel.tw:260
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) red_i32_release_cluster(first + (i), held_25[i]);
      }
    }
    // kernel.tw:261
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_25[i] = atom_i32_relaxed_cluster(first + (i), held_25[i]);
      }
    }
    // kernel.tw:262
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_25[i] = atom_i32_acquire_cluster(first + (i), held_25[i]);
      }
    }
    // kernel.tw:263
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_25[i] = atom_i32_release_cluster(first + (i), held_25[i]);
      }
    }
    // kernel.tw:264
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_25[i] = atom_i32_acq_rel_cluster(first + (i), held_25[i]);
      }
    }
    // kernel.tw:265
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        held_25[i] = c0 < e0 && c1 + i < e1 ? ld_i32_relaxed_gpu(first + (i)) : (int)0;
      }
    }
    // kernel.tw:266
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        held_25[i] = c0 < e0 && c1 + i < e1 ? ld_i32_acquire_gpu(first + (i)) : (int)0;
      }
    }
    // kernel.tw:267
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_i32_relaxed_gpu(first + (i), held_25[i]);
      }
    }
    // kernel.tw:268
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_i32_release_gpu(first + (i), held_25[i]);
      }
    }
    // kernel.tw:269
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) red_i32_relaxed_gpu(first + (i), held_25[i]);
      }
    }
    // kernel.tw:270
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) red_i32_release_gpu(first + (i), held_25[i]);
      }
    }
    // kernel.tw:271
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_25[i] = atom_i32_relaxed_gpu(first + (i), held_25[i]);
      }
    }
    // kernel.tw:272
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_25[i] = atom_i32_acquire_gpu(first + (i), held_25[i]);
      }
    }
    // kernel.tw:273
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_25[i] = atom_i32_release_gpu(first + (i), held_25[i]);
      }
    }
    // kernel.tw:274
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_25[i] = atom_i32_acq_rel_gpu(first + (i), held_25[i]);
      }
    }
    // kernel.tw:275
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        held_25[i] = c0 < e0 && c1 + i < e1 ? ld_i32_relaxed_sys(first + (i)) : (int)0;
      }
    }
    // kernel.tw:276
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        held_25[i] = c0 < e0 && c1 + i < e1 ? ld_i32_acquire_sys(first + (i)) : (int)0;
      }
    }
    // kernel.tw:277
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_i32_relaxed_sys(first + (i), held_25[i]);
      }
    }
    // kernel.tw:278
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_i32_release_sys(first + (i), held_25[i]);
      }
    }
    // kernel.tw:279
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) red_i32_relaxed_sys(first + (i), held_25[i]);
      }
    }
    // kernel.tw:280
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) red_i32_release_sys(first + (i), held_25[i]);
      }
    }
    // kernel.tw:281
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_25[i] = atom_i32_relaxed_sys(first + (i), held_25[i]);
      }
    }
    // kernel.tw:282
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_25[i] = atom_i32_acquire_sys(first + (i), held_25[i]);
      }
    }
    // kernel.tw:283
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_25[i] = atom_i32_release_sys(first + (i), held_25[i]);
      }
    }
    // kernel.tw:284
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_25[i] = atom_i32_acq_rel_sys(first + (i), held_25[i]);
      }
    }
    // kernel.tw:285
    int held_26[1];
    // kernel.tw:286
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        held_26[i] = c0 < e0 && c1 < e1 ? ld_i32_weak(first + 0) : (int)0;
      }
    }
    // kernel.tw:287
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_i32_weak(first + 0, held_26[i]);
      }
    }
    // kernel.tw:288
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        held_26[i] = c0 < e0 && c1 < e1 ? ld_i32_relaxed_cta(first + 0) : (int)0;
      }
    }
    // kernel.tw:289
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        held_26[i] = c0 < e0 && c1 < e1 ? ld_i32_acquire_cta(first + 0) : (int)0;
      }
    }
    // kernel.tw:290
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_i32_relaxed_cta(first + 0, held_26[i]);
      }
    }
    // kernel.tw:291
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_i32_release_cta(first + 0, held_26[i]);
      }
    }
    // kernel.tw:292
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) red_i32_relaxed_cta(first + 0, held_26[i]);
      }
    }
    // kernel.tw:293
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) red_i32_release_cta(first + 0, held_26[i]);
      }
    }
    // kernel.tw:294
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        held_26[i] = c0 < e0 && c1 < e1 ? ld_i32_relaxed_cluster(first + 0) : (int)0;
      }
    }
    // kernel.tw:295
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        held_26[i] = c0 < e0 && c1 < e1 ? ld_i32_acquire_cluster(first + 0) : (int)0;
      }
    }
    // kernel.tw:296
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_i32_relaxed_cluster(first + 0, held_26[i]);
      }
    }
    // kernel.tw:297
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_i32_release_cluster(first + 0, held_26[i]);
      }
    }
    // kernel.tw:298
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) red_i32_relaxed_cluster(first + 0, held_26[i]);
      }
    }
    // kernel.tw:299
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) red_i32_release_cluster(first + 0, held_26[i]);
      }
    }
    // kernel.tw:300
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        held_26[i] = c0 < e0 && c1 < e1 ? ld_i32_relaxed_gpu(first + 0) : (int)0;
      }
    }
    // kernel.tw:301
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        held_26[i] = c0 < e0 && c1 < e1 ? ld_i32_acquire_gpu(first + 0) : (int)0;
      }
    }
    // kernel.tw:302
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_i32_relaxed_gpu(first + 0, held_26[i]);
      }
    }
    // kernel.tw:303
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_i32_release_gpu(first + 0, held_26[i]);
      }
    }
    // kernel.tw:304
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) red_i32_relaxed_gpu(first + 0, held_26[i]);
      }
    }
    // kernel.tw:305
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) red_i32_release_gpu(first + 0, held_26[i]);
      }
    }
    // kernel.tw:306
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        held_26[i] = c0 < e0 && c1 < e1 ? ld_i32_relaxed_sys(first + 0) : (int)0;
      }
    }
    // kernel.tw:307
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        held_26[i] = c0 < e0 && c1 < e1 ? ld_i32_acquire_sys(first + 0) : (int)0;
      }
    }
    // kernel.tw:308
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_i32_relaxed_sys(first + 0, held_26[i]);
      }
    }
    // kernel.tw:309
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_i32_release_sys(first + 0, held_26[i]);
      }
    }
    // kernel.tw:310
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) red_i32_relaxed_sys(first + 0, held_26[i]);
      }
    }
    // kernel.tw:311
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) red_i32_release_sys(first + 0, held_26[i]);
      }
    }
    // kernel.tw:312
    int one_27[1];
    // kernel.tw:313
    compiler_fence();
    {
      const int c0 = warp;
      const int e0 = 16;
      const int c1 = 0;
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        one_27[i] = c0 < e0 && c1 < e1 ? first[0] : (int)0;
      }
    }
    compiler_fence();
    // kernel.tw:314
    if (lane == 0) {
      const int c0 = here(warp);
      const int e0 = 16;
      const int c1 = here(0);
      const int e1 = dim_columns;
      int* const first = i32_out_4 + (i64)c0 * i32_out_4_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) one_27[i] = atom_i32_acq_rel_sys(first + 0, one_27[i]);
      }
    }
    #pragma unroll
    for (int i = 0; i < 1; ++i) one_27[i] = __shfl_sync(0xffffffffu, one_27[i], lane - lane / 1 % 32 * 1);
    // kernel.tw:315
    u32 held_28[2];
    // kernel.tw:316
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        held_28[i] = c0 < e0 && c1 + i < e1 ? ld_u32_weak(first + (i)) : (u32)0;
      }
    }
    // kernel.tw:317
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_u32_weak(first + (i), held_28[i]);
      }
    }
    // kernel.tw:318
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        held_28[i] = c0 < e0 && c1 + i < e1 ? ld_u32_relaxed_cta(first + (i)) : (u32)0;
      }
    }
    // kernel.tw:319
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        held_28[i] = c0 < e0 && c1 + i < e1 ? ld_u32_acquire_cta(first + (i)) : (u32)0;
      }
    }
    // kernel.tw:320
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_u32_relaxed_cta(first + (i), held_28[i]);
      }
    }
    // kernel.tw:321
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_u32_release_cta(first + (i), held_28[i]);
      }
    }
    // kernel.tw:322
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) red_u32_relaxed_cta(first + (i), held_28[i]);
      }
    }
    // kernel.tw:323
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) red_u32_release_cta(first + (i), held_28[i]);
      }
    }
    // kernel.tw:324
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_28[i] = atom_u32_relaxed_cta(first + (i), held_28[i]);
      }
    }
    // kernel.tw:325
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_28[i] = atom_u32_acquire_cta(first + (i), held_28[i]);
      }
    }
    // kernel.tw:326
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_28[i] = atom_u32_release_cta(first + (i), held_28[i]);
      }
    }
    // kernel.tw:327
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_28[i] = atom_u32_acq_rel_cta(first + (i), held_28[i]);
      }
    }
    // kernel.tw:328
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        held_28[i] = c0 < e0 && c1 + i < e1 ? ld_u32_relaxed_cluster(first + (i)) : (u32)0;
      }
    }
    // kernel.tw:329
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        held_28[i] = c0 < e0 && c1 + i < e1 ? ld_u32_acquire_cluster(first + (i)) : (u32)0;
      }
    }
    // kernel.tw:330
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_u32_relaxed_cluster(first + (i), held_28[i]);
      }
    }
    // kernel.tw:331
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_u32_release_cluster(first + (i), held_28[i]);
      }
    }
    // kernel.tw:332
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) red_u32_relaxed_cluster(first + (i), held_28[i]);
      }
    }
    // kernel.tw:333
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) red_u32_release_cluster(first + (i), held_28[i]);
      }
    }
    // kernel.tw:334
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_28[i] = atom_u32_relaxed_cluster(first + (i), held_28[i]);
      }
    }
    // kernel.tw:335
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_28[i] = atom_u32_acquire_cluster(first + (i), held_28[i]);
      }
    }
    // kernel.tw:336
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_28[i] = atom_u32_release_cluster(first + (i), held_28[i]);
      }
    }
    // kernel.tw:337
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_28[i] = atom_u32_acq_rel_cluster(first + (i), held_28[i]);
      }
    }
    // kernel.tw:338
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        held_28[i] = c0 < e0 && c1 + i < e1 ? ld_u32_relaxed_gpu(first + (i)) : (u32)0;
      }
    }
    // kernel.tw:339
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        held_28[i] = c0 < e0 && c1 + i < e1 ? ld_u32_acquire_gpu(first + (i)) : (u32)0;
      }
    }
    // kernel.tw:340
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_u32_relaxed_gpu(first + (i), held_28[i]);
      }
    }
    // kernel.tw:341
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_u32_release_gpu(first + (i), held_28[i]);
      }
    }
    // kernel.tw:342
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) red_u32_relaxed_gpu(first + (i), held_28[i]);
      }
    }
    // kernel.tw:343
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) red_u32_release_gpu(first + (i), held_28[i]);
      }
    }
    // kernel.tw:344
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_28[i] = atom_u32_relaxed_gpu(first + (i), held_28[i]);
      }
    }
    // kernel.tw:345
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_28[i] = atom_u32_acquire_gpu(first + (i), held_28[i]);
      }
    }
    // kernel.tw:346
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_28[i] = atom_u32_release_gpu(first + (i), held_28[i]);
      }
    }
    // kernel.tw:347
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_28[i] = atom_u32_acq_rel_gpu(first + (i), held_28[i]);
      }
    }
    // kernel.tw:348
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        held_28[i] = c0 < e0 && c1 + i < e1 ? ld_u32_relaxed_sys(first + (i)) : (u32)0;
      }
    }
    // kernel.tw:349
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        held_28[i] = c0 < e0 && c1 + i < e1 ? ld_u32_acquire_sys(first + (i)) : (u32)0;
      }
    }
    // kernel.tw:350
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_u32_relaxed_sys(first + (i), held_28[i]);
      }
    }
    // kernel.tw:351
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_u32_release_sys(first + (i), held_28[i]);
      }
    }
    // kernel.tw:352
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) red_u32_relaxed_sys(first + (i), held_28[i]);
      }
    }
    // kernel.tw:353
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) red_u32_release_sys(first + (i), held_28[i]);
      }
    }
    // kernel.tw:354
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_28[i] = atom_u32_relaxed_sys(first + (i), held_28[i]);
      }
    }
    // kernel.tw:355
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_28[i] = atom_u32_acquire_sys(first + (i), held_28[i]);
      }
    }
    // kernel.tw:356
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_28[i] = atom_u32_release_sys(first + (i), held_28[i]);
      }
    }
    // kernel.tw:357
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_28[i] = atom_u32_acq_rel_sys(first + (i), held_28[i]);
      }
    }
    // kernel.tw:358
    u32 held_29[1];
    // kernel.tw:359
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        held_29[i] = c0 < e0 && c1 < e1 ? ld_u32_weak(first + 0) : (u32)0;
      }
    }
    // kernel.tw:360
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_u32_weak(first + 0, held_29[i]);
      }
    }
    // kernel.tw:361
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        held_29[i] = c0 < e0 && c1 < e1 ? ld_u32_relaxed_cta(first + 0) : (u32)0;
      }
    }
    // kernel.tw:362
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        held_29[i] = c0 < e0 && c1 < e1 ? ld_u32_acquire_cta(first + 0) : (u32)0;
      }
    }
    // kernel.tw:363
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_u32_relaxed_cta(first + 0, held_29[i]);
      }
    }
    // kernel.tw:364
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_u32_release_cta(first + 0, held_29[i]);
      }
    }
    // kernel.tw:365
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) red_u32_relaxed_cta(first + 0, held_29[i]);
      }
    }
    // kernel.tw:366
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) red_u32_release_cta(first + 0, held_29[i]);
      }
    }
    // kernel.tw:367
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        held_29[i] = c0 < e0 && c1 < e1 ? ld_u32_relaxed_cluster(first + 0) : (u32)0;
      }
    }
    // kernel.tw:368
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        held_29[i] = c0 < e0 && c1 < e1 ? ld_u32_acquire_cluster(first + 0) : (u32)0;
      }
    }
    // kernel.tw:369
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_u32_relaxed_cluster(first + 0, held_29[i]);
      }
    }
    // kernel.tw:370
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_u32_release_cluster(first + 0, held_29[i]);
      }
    }
    // kernel.tw:371
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) red_u32_relaxed_cluster(first + 0, held_29[i]);
      }
    }
    // kernel.tw:372
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) red_u32_release_cluster(first + 0, held_29[i]);
      }
    }
    // kernel.tw:373
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        held_29[i] = c0 < e0 && c1 < e1 ? ld_u32_relaxed_gpu(first + 0) : (u32)0;
      }
    }
    // kernel.tw:374
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        held_29[i] = c0 < e0 && c1 < e1 ? ld_u32_acquire_gpu(first + 0) : (u32)0;
      }
    }
    // kernel.tw:375
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_u32_relaxed_gpu(first + 0, held_29[i]);
      }
    }
    // kernel.tw:376
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_u32_release_gpu(first + 0, held_29[i]);
      }
    }
    // kernel.tw:377
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) red_u32_relaxed_gpu(first + 0, held_29[i]);
      }
    }
    // kernel.tw:378
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) red_u32_release_gpu(first + 0, held_29[i]);
      }
    }
    // kernel.tw:379
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        held_29[i] = c0 < e0 && c1 < e1 ? ld_u32_relaxed_sys(first + 0) : (u32)0;
      }
    }
    // kernel.tw:380
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        held_29[i] = c0 < e0 && c1 < e1 ? ld_u32_acquire_sys(first + 0) : (u32)0;
      }
    }
    // kernel.tw:381
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_u32_relaxed_sys(first + 0, held_29[i]);
      }
    }
    // kernel.tw:382
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_u32_release_sys(first + 0, held_29[i]);
      }
    }
    // kernel.tw:383
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) red_u32_relaxed_sys(first + 0, held_29[i]);
      }
    }
    // kernel.tw:384
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) red_u32_release_sys(first + 0, held_29[i]);
      }
    }
    // kernel.tw:385
    u32 one_30[1];
    // kernel.tw:386
    compiler_fence();
    {
      const int c0 = warp;
      const int e0 = 16;
      const int c1 = 0;
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        one_30[i] = c0 < e0 && c1 < e1 ? first[0] : (u32)0;
      }
    }
    compiler_fence();
    // kernel.tw:387
    if (lane == 0) {
      const int c0 = here(warp);
      const int e0 = 16;
      const int c1 = here(0);
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) one_30[i] = atom_u32_acq_rel_sys(first + 0, one_30[i]);
      }
    }
    #pragma unroll
    for (int i = 0; i < 1; ++i) one_30[i] = __shfl_sync(0xffffffffu, one_30[i], lane - lane / 1 % 32 * 1);
    // kernel.tw:388
    i64 held_31[2];
    // kernel.tw:389
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        held_31[i] = c0 < e0 && c1 + i < e1 ? ld_i64_weak(first + (i)) : (i64)0;
      }
    }
    // kernel.tw:390
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_i64_weak(first + (i), held_31[i]);
      }
    }
    // kernel.tw:391
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        held_31[i] = c0 < e0 && c1 + i < e1 ? ld_i64_relaxed_cta(first + (i)) : (i64)0;
      }
    }
    // kernel.tw:392
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        held_31[i] = c0 < e0 && c1 + i < e1 ? ld_i64_acquire_cta(first + (i)) : (i64)0;
      }
    }
    // kernel.tw:393
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_i64_relaxed_cta(first + (i), held_31[i]);
      }
    }
    // kernel.tw:394
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_i64_release_cta(first + (i), held_31[i]);
      }
    }
    // kernel.tw:395
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) red_i64_relaxed_cta(first + (i), held_31[i]);
      }
    }
    // kernel.tw:396
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) red_i64_release_cta(first + (i), held_31[i]);
      }
    }
    // kernel.tw:397
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_31[i] = atom_i64_relaxed_cta(first + (i), held_31[i]);
      }
    }
    // kernel.tw:398
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_31[i] = atom_i64_acquire_cta(first + (i), held_31[i]);
      }
    }
    // kernel.tw:399
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_31[i] = atom_i64_release_cta(first + (i), held_31[i]);
      }
    }
    // kernel.tw:400
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_31[i] = atom_i64_acq_rel_cta(first + (i), held_31[i]);
      }
    }
    // kernel.tw:401
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        held_31[i] = c0 < e0 && c1 + i < e1 ? ld_i64_relaxed_cluster(first + (i)) : (i64)0;
      }
    }
    // kernel.tw:402
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        held_31[i] = c0 < e0 && c1 + i < e1 ? ld_i64_acquire_cluster(first + (i)) : (i64)0;
      }
    }
    // kernel.tw:403
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_i64_relaxed_cluster(first + (i), held_31[i]);
      }
    }
    // kernel.tw:404
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_i64_release_cluster(first + (i), held_31[i]);
      }
    }
    // kernel.tw:405
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) red_i64_relaxed_cluster(first + (i), held_31[i]);
      }
    }
    // kernel.tw:406
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) red_i64_release_cluster(first + (i), held_31[i]);
      }
    }
    // kernel.tw:407
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_31[i] = atom_i64_relaxed_cluster(first + (i), held_31[i]);
      }
    }
    // kernel.tw:408
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_31[i] = atom_i64_acquire_cluster(first + (i), held_31[i]);
      }
    }
    // kernel.tw:409
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_31[i] = atom_i64_release_cluster(first + (i), held_31[i]);
      }
    }
    // kernel.tw:410
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_31[i] = atom_i64_acq_rel_cluster(first + (i), held_31[i]);
      }
    }
    // kernel.tw:411
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        held_31[i] = c0 < e0 && c1 + i < e1 ? ld_i64_relaxed_gpu(first + (i)) : (i64)0;
      }
    }
    // kernel.tw:412
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        held_31[i] = c0 < e0 && c1 + i < e1 ? ld_i64_acquire_gpu(first + (i)) : (i64)0;
      }
    }
    // kernel.tw:413
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_i64_relaxed_gpu(first + (i), held_31[i]);
      }
    }
    // kernel.tw:414
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_i64_release_gpu(first + (i), held_31[i]);
      }
    }
    // kernel.tw:415
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) red_i64_relaxed_gpu(first + (i), held_31[i]);
      }
    }
    // kernel.tw:416
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) red_i64_release_gpu(first + (i), held_31[i]);
      }
    }
    // kernel.tw:417
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_31[i] = atom_i64_relaxed_gpu(first + (i), held_31[i]);
      }
    }
    // kernel.tw:418
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_31[i] = atom_i64_acquire_gpu(first + (i), held_31[i]);
      }
    }
    // kernel.tw:419
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_31[i] = atom_i64_release_gpu(first + (i), held_31[i]);
      }
    }
    // kernel.tw:420
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_31[i] = atom_i64_acq_rel_gpu(first + (i), held_31[i]);
      }
    }
    // kernel.tw:421
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        held_31[i] = c0 < e0 && c1 + i < e1 ? ld_i64_relaxed_sys(first + (i)) : (i64)0;
      }
    }
    // kernel.tw:422
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        held_31[i] = c0 < e0 && c1 + i < e1 ? ld_i64_acquire_sys(first + (i)) : (i64)0;
      }
    }
    // kernel.tw:423
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_i64_relaxed_sys(first + (i), held_31[i]);
      }
    }
    // kernel.tw:424
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_i64_release_sys(first + (i), held_31[i]);
      }
    }
    // kernel.tw:425
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) red_i64_relaxed_sys(first + (i), held_31[i]);
      }
    }
    // kernel.tw:426
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) red_i64_release_sys(first + (i), held_31[i]);
      }
    }
    // kernel.tw:427
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_31[i] = atom_i64_relaxed_sys(first + (i), held_31[i]);
      }
    }
    // kernel.tw:428
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_31[i] = atom_i64_acquire_sys(first + (i), held_31[i]);
      }
    }
    // kernel.tw:429
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_31[i] = atom_i64_release_sys(first + (i), held_31[i]);
      }
    }
    // kernel.tw:430
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) held_31[i] = atom_i64_acq_rel_sys(first + (i), held_31[i]);
      }
    }
    // kernel.tw:431
    i64 held_32[1];
    // kernel.tw:432
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        held_32[i] = c0 < e0 && c1 < e1 ? ld_i64_weak(first + 0) : (i64)0;
      }
    }
    // kernel.tw:433
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_i64_weak(first + 0, held_32[i]);
      }
    }
    // kernel.tw:434
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        held_32[i] = c0 < e0 && c1 < e1 ? ld_i64_relaxed_cta(first + 0) : (i64)0;
      }
    }
    // kernel.tw:435
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        held_32[i] = c0 < e0 && c1 < e1 ? ld_i64_acquire_cta(first + 0) : (i64)0;
      }
    }
    // kernel.tw:436
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_i64_relaxed_cta(first + 0, held_32[i]);
      }
    }
    // kernel.tw:437
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_i64_release_cta(first + 0, held_32[i]);
      }
    }
    // kernel.tw:438
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) red_i64_relaxed_cta(first + 0, held_32[i]);
      }
    }
    // kernel.tw:439
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) red_i64_release_cta(first + 0, held_32[i]);
      }
    }
    // kernel.tw:440
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        held_32[i] = c0 < e0 && c1 < e1 ? ld_i64_relaxed_cluster(first + 0) : (i64)0;
      }
    }
    // kernel.tw:441
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        held_32[i] = c0 < e0 && c1 < e1 ? ld_i64_acquire_cluster(first + 0) : (i64)0;
      }
    }
    // kernel.tw:442
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_i64_relaxed_cluster(first + 0, held_32[i]);
      }
    }
    // kernel.tw:443
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_i64_release_cluster(first + 0, held_32[i]);
      }
    }
    // kernel.tw:444
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) red_i64_relaxed_cluster(first + 0, held_32[i]);
      }
    }
    // kernel.tw:445
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) red_i64_release_cluster(first + 0, held_32[i]);
      }
    }
    // kernel.tw:446
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        held_32[i] = c0 < e0 && c1 < e1 ? ld_i64_relaxed_gpu(first + 0) : (i64)0;
      }
    }
    // kernel.tw:447
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        held_32[i] = c0 < e0 && c1 < e1 ? ld_i64_acquire_gpu(first + 0) : (i64)0;
      }
    }
    // kernel.tw:448
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_i64_relaxed_gpu(first + 0, held_32[i]);
      }
    }
    // kernel.tw:449
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_i64_release_gpu(first + 0, held_32[i]);
      }
    }
    // kernel.tw:450
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) red_i64_relaxed_gpu(first + 0, held_32[i]);
      }
    }
    // kernel.tw:451
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) red_i64_release_gpu(first + 0, held_32[i]);
      }
    }
    // kernel.tw:452
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        held_32[i] = c0 < e0 && c1 < e1 ? ld_i64_relaxed_sys(first + 0) : (i64)0;
      }
    }
    // kernel.tw:453
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        held_32[i] = c0 < e0 && c1 < e1 ? ld_i64_acquire_sys(first + 0) : (i64)0;
      }
    }
    // kernel.tw:454
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_i64_relaxed_sys(first + 0, held_32[i]);
      }
    }
    // kernel.tw:455
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_i64_release_sys(first + 0, held_32[i]);
      }
    }
    // kernel.tw:456
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) red_i64_relaxed_sys(first + 0, held_32[i]);
      }
    }
    // kernel.tw:457
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) red_i64_release_sys(first + 0, held_32[i]);
      }
    }
    // kernel.tw:458
    i64 one_33[1];
    // kernel.tw:459
    compiler_fence();
    {
      const int c0 = warp;
      const int e0 = 16;
      const int c1 = 0;
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        one_33[i] = c0 < e0 && c1 < e1 ? first[0] : (i64)0;
      }
    }
    compiler_fence();
    // kernel.tw:460
    if (lane == 0) {
      const int c0 = here(warp);
      const int e0 = 16;
      const int c1 = here(0);
      const int e1 = dim_columns;
      i64* const first = i64_out_6 + (i64)c0 * i64_out_6_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) one_33[i] = atom_i64_acq_rel_sys(first + 0, one_33[i]);
      }
    }
    #pragma unroll
    for (int i = 0; i < 1; ++i) one_33[i] = __shfl_sync(0xffffffffu, one_33[i], lane - lane / 1 % 32 * 1);
    // kernel.tw:461
    u32 held_34[1];
    // kernel.tw:462
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      u8* const first = u8_out_7 + (i64)c0 * u8_out_7_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        const u32 element = c0 < e0 && c1 + i < e1 ? ld_u8_weak(first + (i)) : (u8)0;
        held_34[i / 4] = (i % 4 == 0 ? 0 : held_34[i / 4]) | element << i % 4 * 8;
      }
    }
    // kernel.tw:463
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u8* const first = u8_out_7 + (i64)c0 * u8_out_7_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_u8_weak(first + (i), (u8)(held_34[(i) / 4] >> (i) % 4 * 8));
      }
    }
    // kernel.tw:464
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      u8* const first = u8_out_7 + (i64)c0 * u8_out_7_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        const u32 element = c0 < e0 && c1 + i < e1 ? ld_u8_relaxed_cta(first + (i)) : (u8)0;
        held_34[i / 4] = (i % 4 == 0 ? 0 : held_34[i / 4]) | element << i % 4 * 8;
      }
    }
    // kernel.tw:465
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      u8* const first = u8_out_7 + (i64)c0 * u8_out_7_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        const u32 element = c0 < e0 && c1 + i < e1 ? ld_u8_acquire_cta(first + (i)) : (u8)0;
        held_34[i / 4] = (i % 4 == 0 ? 0 : held_34[i / 4]) | element << i % 4 * 8;
      }
    }
    // kernel.tw:466
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u8* const first = u8_out_7 + (i64)c0 * u8_out_7_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_u8_relaxed_cta(first + (i), (u8)(held_34[(i) / 4] >> (i) % 4 * 8));
      }
    }
    // kernel.tw:467
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u8* const first = u8_out_7 + (i64)c0 * u8_out_7_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_u8_release_cta(first + (i), (u8)(held_34[(i) / 4] >> (i) % 4 * 8));
      }
    }
    // kernel.tw:468
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      u8* const first = u8_out_7 + (i64)c0 * u8_out_7_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        const u32 element = c0 < e0 && c1 + i < e1 ? ld_u8_relaxed_cluster(first + (i)) : (u8)0;
        held_34[i / 4] = (i % 4 == 0 ? 0 : held_34[i / 4]) | element << i % 4 * 8;
      }
    }
    // kernel.tw:469
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      u8* const first = u8_out_7 + (i64)c0 * u8_out_7_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        const u32 element = c0 < e0 && c1 + i < e1 ? ld_u8_acquire_cluster(first + (i)) : (u8)0;
        held_34[i / 4] = (i % 4 == 0 ? 0 : held_34[i / 4]) | element << i % 4 * 8;
      }
    }
    // kernel.tw:470
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u8* const first = u8_out_7 + (i64)c0 * u8_out_7_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_u8_relaxed_cluster(first + (i), (u8)(held_34[(i) / 4] >> (i) % 4 * 8));
      }
    }
    // kernel.tw:471
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u8* const first = u8_out_7 + (i64)c0 * u8_out_7_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_u8_release_cluster(first + (i), (u8)(held_34[(i) / 4] >> (i) % 4 * 8));
      }
    }
    // kernel.tw:472
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      u8* const first = u8_out_7 + (i64)c0 * u8_out_7_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        const u32 element = c0 < e0 && c1 + i < e1 ? ld_u8_relaxed_gpu(first + (i)) : (u8)0;
        held_34[i / 4] = (i % 4 == 0 ? 0 : held_34[i / 4]) | element << i % 4 * 8;
      }
    }
    // kernel.tw:473
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      u8* const first = u8_out_7 + (i64)c0 * u8_out_7_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        const u32 element = c0 < e0 && c1 + i < e1 ? ld_u8_acquire_gpu(first + (i)) : (u8)0;
        held_34[i / 4] = (i % 4 == 0 ? 0 : held_34[i / 4]) | element << i % 4 * 8;
      }
    }
    // kernel.tw:474
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u8* const first = u8_out_7 + (i64)c0 * u8_out_7_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_u8_relaxed_gpu(first + (i), (u8)(held_34[(i) / 4] >> (i) % 4 * 8));
      }
    }
    // kernel.tw:475
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u8* const first = u8_out_7 + (i64)c0 * u8_out_7_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_u8_release_gpu(first + (i), (u8)(held_34[(i) / 4] >> (i) % 4 * 8));
      }
    }
    // kernel.tw:476
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      u8* const first = u8_out_7 + (i64)c0 * u8_out_7_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        const u32 element = c0 < e0 && c1 + i < e1 ? ld_u8_relaxed_sys(first + (i)) : (u8)0;
        held_34[i / 4] = (i % 4 == 0 ? 0 : held_34[i / 4]) | element << i % 4 * 8;
      }
    }
    // kernel.tw:477
    {
      const int c0 = lane / 8 + warp * 4;
      const int e0 = 16;
      const int c1 = lane % 8 * 2;
      const int e1 = dim_columns;
      u8* const first = u8_out_7 + (i64)c0 * u8_out_7_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        const u32 element = c0 < e0 && c1 + i < e1 ? ld_u8_acquire_sys(first + (i)) : (u8)0;
        held_34[i / 4] = (i % 4 == 0 ? 0 : held_34[i / 4]) | element << i % 4 * 8;
      }
    }
    // kernel.tw:478
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u8* const first = u8_out_7 + (i64)c0 * u8_out_7_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_u8_relaxed_sys(first + (i), (u8)(held_34[(i) / 4] >> (i) % 4 * 8));
      }
    }
    // kernel.tw:479
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u8* const first = u8_out_7 + (i64)c0 * u8_out_7_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (c0 < e0 && c1 + i < e1) st_u8_release_sys(first + (i), (u8)(held_34[(i) / 4] >> (i) % 4 * 8));
      }
    }
    // kernel.tw:480
    u32 held_35[1];
    // kernel.tw:481
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      u8* const first = u8_out_7 + (i64)c0 * u8_out_7_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        const u32 element = c0 < e0 && c1 < e1 ? ld_u8_weak(first + 0) : (u8)0;
        held_35[i / 4] = (i % 4 == 0 ? 0 : held_35[i / 4]) | element << i % 4 * 8;
      }
    }
    // kernel.tw:482
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      u8* const first = u8_out_7 + (i64)c0 * u8_out_7_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_u8_weak(first + 0, (u8)(held_35[(i) / 4] >> (i) % 4 * 8));
      }
    }
    // kernel.tw:483
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      u8* const first = u8_out_7 + (i64)c0 * u8_out_7_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        const u32 element = c0 < e0 && c1 < e1 ? ld_u8_relaxed_cta(first + 0) : (u8)0;
        held_35[i / 4] = (i % 4 == 0 ? 0 : held_35[i / 4]) | element << i % 4 * 8;
      }
    }
    // kernel.tw:484
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      u8* const first = u8_out_7 + (i64)c0 * u8_out_7_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        const u32 element = c0 < e0 && c1 < e1 ? ld_u8_acquire_cta(first + 0) : (u8)0;
        held_35[i / 4] = (i % 4 == 0 ? 0 : held_35[i / 4]) | element << i % 4 * 8;
      }
    }
    // kernel.tw:485
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      u8* const first = u8_out_7 + (i64)c0 * u8_out_7_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_u8_relaxed_cta(first + 0, (u8)(held_35[(i) / 4] >> (i) % 4 * 8));
      }
    }
    // kernel.tw:486
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      u8* const first = u8_out_7 + (i64)c0 * u8_out_7_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_u8_release_cta(first + 0, (u8)(held_35[(i) / 4] >> (i) % 4 * 8));
      }
    }
    // kernel.tw:487
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      u8* const first = u8_out_7 + (i64)c0 * u8_out_7_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        const u32 element = c0 < e0 && c1 < e1 ? ld_u8_relaxed_cluster(first + 0) : (u8)0;
        held_35[i / 4] = (i % 4 == 0 ? 0 : held_35[i / 4]) | element << i % 4 * 8;
      }
    }
    // kernel.tw:488
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      u8* const first = u8_out_7 + (i64)c0 * u8_out_7_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        const u32 element = c0 < e0 && c1 < e1 ? ld_u8_acquire_cluster(first + 0) : (u8)0;
        held_35[i / 4] = (i % 4 == 0 ? 0 : held_35[i / 4]) | element << i % 4 * 8;
      }
    }
    // kernel.tw:489
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      u8* const first = u8_out_7 + (i64)c0 * u8_out_7_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_u8_relaxed_cluster(first + 0, (u8)(held_35[(i) / 4] >> (i) % 4 * 8));
      }
    }
    // kernel.tw:490
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      u8* const first = u8_out_7 + (i64)c0 * u8_out_7_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_u8_release_cluster(first + 0, (u8)(held_35[(i) / 4] >> (i) % 4 * 8));
      }
    }
    // kernel.tw:491
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      u8* const first = u8_out_7 + (i64)c0 * u8_out_7_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        const u32 element = c0 < e0 && c1 < e1 ? ld_u8_relaxed_gpu(first + 0) : (u8)0;
        held_35[i / 4] = (i % 4 == 0 ? 0 : held_35[i / 4]) | element << i % 4 * 8;
      }
    }
    // kernel.tw:492
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      u8* const first = u8_out_7 + (i64)c0 * u8_out_7_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        const u32 element = c0 < e0 && c1 < e1 ? ld_u8_acquire_gpu(first + 0) : (u8)0;
        held_35[i / 4] = (i % 4 == 0 ? 0 : held_35[i / 4]) | element << i % 4 * 8;
      }
    }
    // kernel.tw:493
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      u8* const first = u8_out_7 + (i64)c0 * u8_out_7_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_u8_relaxed_gpu(first + 0, (u8)(held_35[(i) / 4] >> (i) % 4 * 8));
      }
    }
    // kernel.tw:494
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      u8* const first = u8_out_7 + (i64)c0 * u8_out_7_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_u8_release_gpu(first + 0, (u8)(held_35[(i) / 4] >> (i) % 4 * 8));
      }
    }
    // kernel.tw:495
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      u8* const first = u8_out_7 + (i64)c0 * u8_out_7_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        const u32 element = c0 < e0 && c1 < e1 ? ld_u8_relaxed_sys(first + 0) : (u8)0;
        held_35[i / 4] = (i % 4 == 0 ? 0 : held_35[i / 4]) | element << i % 4 * 8;
      }
    }
    // kernel.tw:496
    {
      const int c0 = 0;
      const int e0 = 16;
      const int c1 = lane / 8;
      const int e1 = dim_columns;
      u8* const first = u8_out_7 + (i64)c0 * u8_out_7_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        const u32 element = c0 < e0 && c1 < e1 ? ld_u8_acquire_sys(first + 0) : (u8)0;
        held_35[i / 4] = (i % 4 == 0 ? 0 : held_35[i / 4]) | element << i % 4 * 8;
      }
    }
    // kernel.tw:497
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      u8* const first = u8_out_7 + (i64)c0 * u8_out_7_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_u8_relaxed_sys(first + 0, (u8)(held_35[(i) / 4] >> (i) % 4 * 8));
      }
    }
    // kernel.tw:498
    if (lane % 8 == 0 && warp == 0) {
      const int c0 = here(0);
      const int e0 = 16;
      const int c1 = here(lane / 8);
      const int e1 = dim_columns;
      u8* const first = u8_out_7 + (i64)c0 * u8_out_7_stride0 + (i64)c1;
      #pragma unroll
      for (int i = 0; i < 1; ++i) {
        if (c0 < e0 && c1 < e1) st_u8_release_sys(first + 0, (u8)(held_35[(i) / 4] >> (i) % 4 * 8));
      }
    }
    // kernel.tw:499
    u32 u32_36[2];
    // kernel.tw:500
    #pragma unroll
    for (int i = 0; i < 2; ++i)
      u32_36[i] = v12;
    // kernel.tw:501
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      const bool aligned = (((u64)first) & 7) == 0;
      #pragma unroll
      for (int i = 0; i < 2; i += 2) {
        if (aligned && c0 < e0 && c1 + i + 2 <= e1) {
          store_vector_8(first + (i), u32_36 + i);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 2; ++j) {
            if (c0 < e0 && c1 + j < e1) first[(j)] = u32_36[j];
          }
        }
      }
    }
    // kernel.tw:502
    u32 u32_37[2];
    // kernel.tw:503
    #pragma unroll
    for (int i = 0; i < 2; ++i)
      u32_37[i] = v13;
    // kernel.tw:504
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      const bool aligned = (((u64)first) & 7) == 0;
      #pragma unroll
      for (int i = 0; i < 2; i += 2) {
        if (aligned && c0 < e0 && c1 + i + 2 <= e1) {
          store_vector_8(first + (i), u32_37 + i);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 2; ++j) {
            if (c0 < e0 && c1 + j < e1) first[(j)] = u32_37[j];
          }
        }
      }
    }
    // kernel.tw:505
    u32 u32_38[2];
    // kernel.tw:506
    #pragma unroll
    for (int i = 0; i < 2; ++i)
      u32_38[i] = v14;
    // kernel.tw:507
    {
      const int c0 = here(lane / 8 + warp * 4);
      const int e0 = 16;
      const int c1 = here(lane % 8 * 2);
      const int e1 = dim_columns;
      u32* const first = u32_out_5 + (i64)c0 * u32_out_5_stride0 + (i64)c1;
      const bool aligned = (((u64)first) & 7) == 0;
      #pragma unroll
      for (int i = 0; i < 2; i += 2) {
        if (aligned && c0 < e0 && c1 + i + 2 <= e1) {
          store_vector_8(first + (i), u32_38 + i);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 2; ++j) {
            if (c0 < e0 && c1 + j < e1) first[(j)] = u32_38[j];
          }
        }
      }
    }
  }
}
