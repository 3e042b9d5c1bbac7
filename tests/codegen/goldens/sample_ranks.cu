// exchange: 128 threads, 1152 bytes of shared memory.
#pragma nv_diag_suppress 177
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
struct alignas(64) TensorMap { u64 words[16]; };
struct PeerMaps { TensorMap rank[8]; };
template <typename T>
struct Peers { T* rank[8]; };
// Of operands that are not negative. With inverse = min(2^31 / b, 2^31 - 1) the product falls
// short of a / b by one at most.
__device__ __forceinline__ int dim_div(int a, int b, int inverse) {
  const int q = (int)__umulhi(2u * (u32)a, (u32)inverse);
  return q + (int)(a - q * b >= b);
}
__device__ __forceinline__ int dim_mod(int a, int b, int inverse) {
  return a - dim_div(a, b, inverse) * b;
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
__device__ __forceinline__ void mbarrier_wait(u32 barrier, u32 parity) {
  asm volatile(
      "{ .reg .pred done;\n"
      "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@done bra end;\n"
      "bra again;\n"
      "end: }" ::"r"(barrier), "r"(parity) : "memory");
}
__device__ __forceinline__ void fence_proxy_async_global() {
  asm volatile("fence.proxy.async.global;" ::: "memory");
}
__device__ __forceinline__ void bulk_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
template <int kGroups>
__device__ __forceinline__ void bulk_wait() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(kGroups) : "memory");
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
__device__ __forceinline__ void set_word(u32& r, u32 v) { r = v; }
__device__ __forceinline__ void set_word(int& r, u32 v) { r = (int)v; }
__device__ __forceinline__ void set_word(float& r, u32 v) { r = __uint_as_float(v); }
template <typename T>
__device__ __forceinline__ void load_vector_8(T* r, const void* address, bool exists) {
  uint2 v = make_uint2(0, 0);
  if (exists) v = *(const uint2*)address;
  set_word(r[0], v.x); set_word(r[1], v.y);
}
__device__ __forceinline__ int atomic_add_acq_rel_cluster(int* address, int v) {
  int old;
  asm volatile("atom.acq_rel.cluster.add.s32 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ int atomic_add_acq_rel_cta(int* address, int v) {
  int old;
  asm volatile("atom.acq_rel.cta.add.s32 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ int atomic_add_acq_rel_gpu(int* address, int v) {
  int old;
  asm volatile("atom.acq_rel.gpu.add.s32 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ int atomic_add_acq_rel_sys(int* address, int v) {
  int old;
  asm volatile("atom.acq_rel.sys.add.s32 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ int atomic_add_acquire_cluster(int* address, int v) {
  int old;
  asm volatile("atom.acquire.cluster.add.s32 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ int atomic_add_acquire_cta(int* address, int v) {
  int old;
  asm volatile("atom.acquire.cta.add.s32 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ int atomic_add_acquire_gpu(int* address, int v) {
  int old;
  asm volatile("atom.acquire.gpu.add.s32 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ int atomic_add_acquire_sys(int* address, int v) {
  int old;
  asm volatile("atom.acquire.sys.add.s32 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ int atomic_add_relaxed_cluster(int* address, int v) {
  int old;
  asm volatile("atom.relaxed.cluster.add.s32 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ int atomic_add_relaxed_cta(int* address, int v) {
  int old;
  asm volatile("atom.relaxed.cta.add.s32 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ int atomic_add_relaxed_gpu(int* address, int v) {
  int old;
  asm volatile("atom.relaxed.gpu.add.s32 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ int atomic_add_relaxed_sys(int* address, int v) {
  int old;
  asm volatile("atom.relaxed.sys.add.s32 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ int atomic_add_release_cluster(int* address, int v) {
  int old;
  asm volatile("atom.release.cluster.add.s32 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ int atomic_add_release_cta(int* address, int v) {
  int old;
  asm volatile("atom.release.cta.add.s32 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ int atomic_add_release_gpu(int* address, int v) {
  int old;
  asm volatile("atom.release.gpu.add.s32 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ int atomic_add_release_sys(int* address, int v) {
  int old;
  asm volatile("atom.release.sys.add.s32 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(v) : "memory");
  return old;
}
__device__ __forceinline__ void atomic_add_unread_relaxed_cluster(int* address, int v) {
  asm volatile("red.relaxed.cluster.global.add.u32 [%0], %1;" ::"l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void atomic_add_unread_relaxed_cta(int* address, int v) {
  asm volatile("red.relaxed.cta.global.add.u32 [%0], %1;" ::"l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void atomic_add_unread_relaxed_gpu(int* address, int v) {
  asm volatile("red.relaxed.gpu.global.add.u32 [%0], %1;" ::"l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void atomic_add_unread_relaxed_sys(int* address, int v) {
  asm volatile("red.relaxed.sys.global.add.u32 [%0], %1;" ::"l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void atomic_add_unread_release_cluster(int* address, int v) {
  asm volatile("red.release.cluster.global.add.u32 [%0], %1;" ::"l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void atomic_add_unread_release_cta(int* address, int v) {
  asm volatile("red.release.cta.global.add.u32 [%0], %1;" ::"l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void atomic_add_unread_release_gpu(int* address, int v) {
  asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void atomic_add_unread_release_sys(int* address, int v) {
  asm volatile("red.release.sys.global.add.u32 [%0], %1;" ::"l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void fence_acq_rel_cluster() {
  asm volatile("fence.acq_rel.cluster;" ::: "memory");
}
__device__ __forceinline__ void fence_acq_rel_cta() {
  asm volatile("fence.acq_rel.cta;" ::: "memory");
}
__device__ __forceinline__ void fence_acq_rel_gpu() {
  asm volatile("fence.acq_rel.gpu;" ::: "memory");
}
__device__ __forceinline__ void fence_acq_rel_sys() {
  asm volatile("fence.acq_rel.sys;" ::: "memory");
}
__device__ __forceinline__ int load_acquire_cluster(const int* address) {
  int v;
  asm volatile("ld.acquire.cluster.b32 %0, [%1];" : "=r"(v) : "l"(address) : "memory");
  return v;
}
__device__ __forceinline__ int load_acquire_cta(const int* address) {
  int v;
  asm volatile("ld.acquire.cta.b32 %0, [%1];" : "=r"(v) : "l"(address) : "memory");
  return v;
}
__device__ __forceinline__ int load_acquire_gpu(const int* address) {
  int v;
  asm volatile("ld.acquire.gpu.b32 %0, [%1];" : "=r"(v) : "l"(address) : "memory");
  return v;
}
__device__ __forceinline__ int load_acquire_sys(const int* address) {
  int v;
  asm volatile("ld.acquire.sys.b32 %0, [%1];" : "=r"(v) : "l"(address) : "memory");
  return v;
}
__device__ __forceinline__ int load_relaxed_cluster(const int* address) {
  int v;
  asm volatile("ld.relaxed.cluster.b32 %0, [%1];" : "=r"(v) : "l"(address) : "memory");
  return v;
}
__device__ __forceinline__ int load_relaxed_cta(const int* address) {
  int v;
  asm volatile("ld.relaxed.cta.b32 %0, [%1];" : "=r"(v) : "l"(address) : "memory");
  return v;
}
__device__ __forceinline__ int load_relaxed_gpu(const int* address) {
  int v;
  asm volatile("ld.relaxed.gpu.b32 %0, [%1];" : "=r"(v) : "l"(address) : "memory");
  return v;
}
__device__ __forceinline__ int load_relaxed_sys(const int* address) {
  int v;
  asm volatile("ld.relaxed.sys.b32 %0, [%1];" : "=r"(v) : "l"(address) : "memory");
  return v;
}
__device__ __forceinline__ void reduce_add_relaxed_cluster(int* address, int v) {
  asm volatile("red.relaxed.cluster.global.add.u32 [%0], %1;" ::"l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void reduce_add_relaxed_cta(int* address, int v) {
  asm volatile("red.relaxed.cta.global.add.u32 [%0], %1;" ::"l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void reduce_add_relaxed_gpu(int* address, int v) {
  asm volatile("red.relaxed.gpu.global.add.u32 [%0], %1;" ::"l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void reduce_add_relaxed_sys(int* address, int v) {
  asm volatile("red.relaxed.sys.global.add.u32 [%0], %1;" ::"l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void reduce_add_release_cluster(int* address, int v) {
  asm volatile("red.release.cluster.global.add.u32 [%0], %1;" ::"l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void reduce_add_release_cta(int* address, int v) {
  asm volatile("red.release.cta.global.add.u32 [%0], %1;" ::"l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void reduce_add_release_gpu(int* address, int v) {
  asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void reduce_add_release_sys(int* address, int v) {
  asm volatile("red.release.sys.global.add.u32 [%0], %1;" ::"l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void store_relaxed_cluster(int* address, int v) {
  asm volatile("st.relaxed.cluster.b32 [%0], %1;" ::"l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void store_relaxed_cta(int* address, int v) {
  asm volatile("st.relaxed.cta.b32 [%0], %1;" ::"l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void store_relaxed_gpu(int* address, int v) {
  asm volatile("st.relaxed.gpu.b32 [%0], %1;" ::"l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void store_relaxed_sys(int* address, int v) {
  asm volatile("st.relaxed.sys.b32 [%0], %1;" ::"l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void store_release_cluster(int* address, int v) {
  asm volatile("st.release.cluster.b32 [%0], %1;" ::"l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void store_release_cta(int* address, int v) {
  asm volatile("st.release.cta.b32 [%0], %1;" ::"l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void store_release_gpu(int* address, int v) {
  asm volatile("st.release.gpu.b32 [%0], %1;" ::"l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void store_release_sys(int* address, int v) {
  asm volatile("st.release.sys.b32 [%0], %1;" ::"l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void store_weak(int* address, int v) {
  asm volatile("st.weak.b32 [%0], %1;" ::"l"(address), "r"(v) : "memory");
}
__device__ __forceinline__ void tma_load_3d(u32 address, const TensorMap& map, int x0, int x1, int x2, u32 barrier) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];"
               ::"r"(address), "l"(&map), "r"(x0), "r"(x1), "r"(x2), "r"(barrier) : "memory");
}
__device__ __forceinline__ void tma_store_3d(u32 address, const TensorMap& map, int x0, int x1, int x2) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%1, {%2, %3, %4}], [%0];"
               ::"r"(address), "l"(&map), "r"(x0), "r"(x1), "r"(x2) : "memory");
}
__device__ __forceinline__ void wait_flag_eq_acquire_cluster(const int* address, int value) {
  int v;
  do {
    asm volatile("ld.acquire.cluster.b32 %0, [%1];" : "=r"(v) : "l"(address) : "memory");
  } while (!(v == value));
}
__device__ __forceinline__ void wait_flag_eq_acquire_cta(const int* address, int value) {
  int v;
  do {
    asm volatile("ld.acquire.cta.b32 %0, [%1];" : "=r"(v) : "l"(address) : "memory");
  } while (!(v == value));
}
__device__ __forceinline__ void wait_flag_eq_acquire_gpu(const int* address, int value) {
  int v;
  do {
    asm volatile("ld.acquire.gpu.b32 %0, [%1];" : "=r"(v) : "l"(address) : "memory");
  } while (!(v == value));
}
__device__ __forceinline__ void wait_flag_eq_acquire_sys(const int* address, int value) {
  int v;
  do {
    asm volatile("ld.acquire.sys.b32 %0, [%1];" : "=r"(v) : "l"(address) : "memory");
  } while (!(v == value));
}
__device__ __forceinline__ void wait_flag_ge_acquire_cluster(const int* address, int value) {
  int v;
  do {
    asm volatile("ld.acquire.cluster.b32 %0, [%1];" : "=r"(v) : "l"(address) : "memory");
  } while (!((int)((u32)v - (u32)value) >= 0));
}
__device__ __forceinline__ void wait_flag_ge_acquire_cta(const int* address, int value) {
  int v;
  do {
    asm volatile("ld.acquire.cta.b32 %0, [%1];" : "=r"(v) : "l"(address) : "memory");
  } while (!((int)((u32)v - (u32)value) >= 0));
}
__device__ __forceinline__ void wait_flag_ge_acquire_gpu(const int* address, int value) {
  int v;
  do {
    asm volatile("ld.acquire.gpu.b32 %0, [%1];" : "=r"(v) : "l"(address) : "memory");
  } while (!((int)((u32)v - (u32)value) >= 0));
}
__device__ __forceinline__ void wait_flag_ge_acquire_sys(const int* address, int value) {
  int v;
  do {
    asm volatile("ld.acquire.sys.b32 %0, [%1];" : "=r"(v) : "l"(address) : "memory");
  } while (!((int)((u32)v - (u32)value) >= 0));
}
__device__ __forceinline__ void wait_flag_gt_acquire_cluster(const int* address, int value) {
  int v;
  do {
    asm volatile("ld.acquire.cluster.b32 %0, [%1];" : "=r"(v) : "l"(address) : "memory");
  } while (!((int)((u32)v - (u32)value) > 0));
}
__device__ __forceinline__ void wait_flag_gt_acquire_cta(const int* address, int value) {
  int v;
  do {
    asm volatile("ld.acquire.cta.b32 %0, [%1];" : "=r"(v) : "l"(address) : "memory");
  } while (!((int)((u32)v - (u32)value) > 0));
}
__device__ __forceinline__ void wait_flag_gt_acquire_gpu(const int* address, int value) {
  int v;
  do {
    asm volatile("ld.acquire.gpu.b32 %0, [%1];" : "=r"(v) : "l"(address) : "memory");
  } while (!((int)((u32)v - (u32)value) > 0));
}
__device__ __forceinline__ void wait_flag_gt_acquire_sys(const int* address, int value) {
  int v;
  do {
    asm volatile("ld.acquire.sys.b32 %0, [%1];" : "=r"(v) : "l"(address) : "memory");
  } while (!((int)((u32)v - (u32)value) > 0));
}
__device__ __forceinline__ void wait_flag_le_relaxed_cluster(const int* address, int value) {
  int v;
  do {
    asm volatile("ld.relaxed.cluster.b32 %0, [%1];" : "=r"(v) : "l"(address) : "memory");
  } while (!((int)((u32)v - (u32)value) <= 0));
}
__device__ __forceinline__ void wait_flag_le_relaxed_cta(const int* address, int value) {
  int v;
  do {
    asm volatile("ld.relaxed.cta.b32 %0, [%1];" : "=r"(v) : "l"(address) : "memory");
  } while (!((int)((u32)v - (u32)value) <= 0));
}
__device__ __forceinline__ void wait_flag_le_relaxed_gpu(const int* address, int value) {
  int v;
  do {
    asm volatile("ld.relaxed.gpu.b32 %0, [%1];" : "=r"(v) : "l"(address) : "memory");
  } while (!((int)((u32)v - (u32)value) <= 0));
}
__device__ __forceinline__ void wait_flag_le_relaxed_sys(const int* address, int value) {
  int v;
  do {
    asm volatile("ld.relaxed.sys.b32 %0, [%1];" : "=r"(v) : "l"(address) : "memory");
  } while (!((int)((u32)v - (u32)value) <= 0));
}
__device__ __forceinline__ void wait_flag_lt_relaxed_cluster(const int* address, int value) {
  int v;
  do {
    asm volatile("ld.relaxed.cluster.b32 %0, [%1];" : "=r"(v) : "l"(address) : "memory");
  } while (!((int)((u32)v - (u32)value) < 0));
}
__device__ __forceinline__ void wait_flag_lt_relaxed_cta(const int* address, int value) {
  int v;
  do {
    asm volatile("ld.relaxed.cta.b32 %0, [%1];" : "=r"(v) : "l"(address) : "memory");
  } while (!((int)((u32)v - (u32)value) < 0));
}
__device__ __forceinline__ void wait_flag_lt_relaxed_gpu(const int* address, int value) {
  int v;
  do {
    asm volatile("ld.relaxed.gpu.b32 %0, [%1];" : "=r"(v) : "l"(address) : "memory");
  } while (!((int)((u32)v - (u32)value) < 0));
}
__device__ __forceinline__ void wait_flag_lt_relaxed_sys(const int* address, int value) {
  int v;
  do {
    asm volatile("ld.relaxed.sys.b32 %0, [%1];" : "=r"(v) : "l"(address) : "memory");
  } while (!((int)((u32)v - (u32)value) < 0));
}
__device__ __forceinline__ void wait_flag_ne_acquire_cluster(const int* address, int value) {
  int v;
  do {
    asm volatile("ld.acquire.cluster.b32 %0, [%1];" : "=r"(v) : "l"(address) : "memory");
  } while (!(v != value));
}
__device__ __forceinline__ void wait_flag_ne_acquire_cta(const int* address, int value) {
  int v;
  do {
    asm volatile("ld.acquire.cta.b32 %0, [%1];" : "=r"(v) : "l"(address) : "memory");
  } while (!(v != value));
}
__device__ __forceinline__ void wait_flag_ne_acquire_gpu(const int* address, int value) {
  int v;
  do {
    asm volatile("ld.acquire.gpu.b32 %0, [%1];" : "=r"(v) : "l"(address) : "memory");
  } while (!(v != value));
}
__device__ __forceinline__ void wait_flag_ne_acquire_sys(const int* address, int value) {
  int v;
  do {
    asm volatile("ld.acquire.sys.b32 %0, [%1];" : "=r"(v) : "l"(address) : "memory");
  } while (!(v != value));
}
extern "C" __device__ unsigned long long tilewright_form = 0xacd025e342a14e5b;
extern "C" __global__ void __launch_bounds__(128, 1)
exchange(const __grid_constant__ PeerMaps parts_4, int rank, int epoch, const __grid_constant__ Peers<float> parts_1_peers, const __grid_constant__ Peers<int> flags_2_peers, i64 parts_1_stride0, i64 parts_1_stride1, int* flags_2, int dim_ranks, int dim1) {
  extern __shared__ __align__(1024) u8 dynamic_shared[];
  const u32 shared = (u32)__cvta_generic_to_shared(dynamic_shared);
  const int warp = __shfl_sync(0xffffffffu, (int)threadIdx.x / 32, 0);
  const int lane = (int)(threadIdx.x & 31u);
  // kernel.tw:10
  const u32 tile_3 = shared + 0;
  // kernel.tw:12
  const u32 full_5 = shared + 1024;
  // kernel.tw:18
  const int v11 = rank + 1;
  // kernel.tw:19
  const int v12 = dim_mod(v11, dim_ranks, dim1);
  // kernel.tw:21
  if (threadIdx.x == 0) mbarrier_init(full_5, 1);
  // kernel.tw:22
  if (threadIdx.x == 0) fence_barrier_init();
  // kernel.tw:23
  __syncthreads();
  // kernel.tw:24
  if (warp < 4) {
    // only
    // kernel.tw:25
    const TensorMap& v15 = parts_4.rank[v12];
    // kernel.tw:26
    float* const v16 = parts_1_peers.rank[v12];
    // kernel.tw:27
    int* const v17 = flags_2_peers.rank[v12];
    // kernel.tw:28
    float row_18[2];
    // kernel.tw:29
    compiler_fence();
    {
      const int c0 = 0;
      const int e0 = dim_ranks;
      const int c1 = lane / 8 + warp * 4;
      const int e1 = 16;
      const int c2 = lane % 8 * 2;
      const int e2 = 16;
      float* const first = v16 + (i64)c0 * parts_1_stride0 + (i64)c1 * parts_1_stride1 + (i64)c2;
      const bool aligned = (((u64)v16 | (u64)(parts_1_stride0 * 4) | (u64)(parts_1_stride1 * 4) | (u64)(c2 * 4)) & 7) == 0 && ((e2 - c2) & 1) == 0;
      #pragma unroll
      for (int i = 0; i < 2; i += 2) {
        load_vector_8(row_18 + i, first + (i), aligned && c0 < e0 && c1 < e1 && c2 + i < e2);
      }
      if (!aligned) {
        #pragma unroll
        for (int i = 0; i < 2; ++i) {
          row_18[i] = c0 < e0 && c1 < e1 && c2 + i < e2 ? first[(i)] : (float)0;
        }
      }
    }
    compiler_fence();
    // kernel.tw:30
    {
      const int c0 = here(rank);
      const int e0 = dim_ranks;
      const int c1 = here(lane / 8 + warp * 4);
      const int e1 = 16;
      const int c2 = here(lane % 8 * 2);
      const int e2 = 16;
      float* const first = v16 + (i64)c0 * parts_1_stride0 + (i64)c1 * parts_1_stride1 + (i64)c2;
      const bool aligned = (((u64)first) & 7) == 0;
      #pragma unroll
      for (int i = 0; i < 2; i += 2) {
        if (aligned && c0 < e0 && c1 < e1 && c2 + i + 2 <= e2) {
          store_vector_8(first + (i), row_18 + i);
        }
        else {
          #pragma unroll
          for (int j = i; j < i + 2; ++j) {
            if (c0 < e0 && c1 < e1 && c2 + j < e2) first[(j)] = row_18[j];
          }
        }
      }
    }
    // kernel.tw:31
    if (lane == 0) {
      // kernel.tw:32
      mbarrier_expect_tx(full_5, 1024);
      // kernel.tw:33
      tma_load_3d(tile_3, v15, 0, 0, rank, full_5);
    }
    // kernel.tw:36
    mbarrier_wait(full_5, 0);
    // kernel.tw:37
    fence_proxy_async_global();
    // kernel.tw:38
    if (lane == 0) tma_store_3d(tile_3, v15, 0, 0, rank);
    // kernel.tw:39
    if (lane == 0) bulk_commit();
    // kernel.tw:40
    if (lane == 0) bulk_wait<0>();
    // kernel.tw:41
    if (lane == 0) store_weak(v17 + rank, epoch);
    // kernel.tw:42
    const int v19 = __shfl_sync(0xffffffffu, *(flags_2 + rank), 0);
    // kernel.tw:43
    if (lane == 0) store_relaxed_gpu(v17 + v19, epoch);
    // kernel.tw:44
    fence_acq_rel_cta();
    // kernel.tw:45
    const int v20 = __shfl_sync(0xffffffffu, load_relaxed_cta(flags_2 + rank), 0);
    // kernel.tw:46
    if (lane == 0) store_release_cta(v17 + v20, epoch);
    // kernel.tw:47
    const int v21 = __shfl_sync(0xffffffffu, load_acquire_cta(flags_2 + rank), 0);
    // kernel.tw:48
    if (lane == 0) store_release_cta(v17 + v21, epoch);
    // kernel.tw:49
    if (lane == 0) reduce_add_relaxed_cta(v17 + rank, 1);
    // kernel.tw:50
    if (lane == 0) reduce_add_release_cta(v17 + rank, 1);
    // kernel.tw:51
    if (lane == 0) atomic_add_unread_relaxed_cta(v17 + rank, 1);
    // kernel.tw:52
    int v23 = 0;
    if (lane == 0) v23 = atomic_add_relaxed_cta(v17 + rank, 1);
    v23 = __shfl_sync(0xffffffffu, v23, 0);
    // kernel.tw:53
    if (lane == 0) store_relaxed_cta(v17 + v23, epoch);
    // kernel.tw:54
    int v24 = 0;
    if (lane == 0) v24 = atomic_add_acquire_cta(v17 + rank, 1);
    v24 = __shfl_sync(0xffffffffu, v24, 0);
    // kernel.tw:55
    int v25 = 0;
    if (lane == 0) v25 = atomic_add_acquire_cta(v17 + rank, 1);
    v25 = __shfl_sync(0xffffffffu, v25, 0);
    // kernel.tw:56
    if (lane == 0) store_relaxed_cta(v17 + v25, epoch);
    // kernel.tw:57
    if (lane == 0) atomic_add_unread_release_cta(v17 + rank, 1);
    // kernel.tw:58
    int v27 = 0;
    if (lane == 0) v27 = atomic_add_release_cta(v17 + rank, 1);
    v27 = __shfl_sync(0xffffffffu, v27, 0);
    // kernel.tw:59
    if (lane == 0) store_relaxed_cta(v17 + v27, epoch);
    // kernel.tw:60
    int v28 = 0;
    if (lane == 0) v28 = atomic_add_acq_rel_cta(v17 + rank, 1);
    v28 = __shfl_sync(0xffffffffu, v28, 0);
    // kernel.tw:61
    int v29 = 0;
    if (lane == 0) v29 = atomic_add_acq_rel_cta(v17 + rank, 1);
    v29 = __shfl_sync(0xffffffffu, v29, 0);
    // kernel.tw:62
    if (lane == 0) store_relaxed_cta(v17 + v29, epoch);
    // kernel.tw:63
    wait_flag_eq_acquire_cta(flags_2 + rank, epoch);
    // kernel.tw:64
    wait_flag_ne_acquire_cta(flags_2 + rank, epoch);
    // kernel.tw:65
    wait_flag_lt_relaxed_cta(flags_2 + rank, epoch);
    // kernel.tw:66
    wait_flag_le_relaxed_cta(flags_2 + rank, epoch);
    // kernel.tw:67
    wait_flag_gt_acquire_cta(flags_2 + rank, epoch);
    // kernel.tw:68
    wait_flag_ge_acquire_cta(flags_2 + rank, epoch);
    // kernel.tw:69
    fence_acq_rel_cluster();
    // kernel.tw:70
    const int v30 = __shfl_sync(0xffffffffu, load_relaxed_cluster(flags_2 + rank), 0);
    // kernel.tw:71
    if (lane == 0) store_release_cluster(v17 + v30, epoch);
    // kernel.tw:72
    const int v31 = __shfl_sync(0xffffffffu, load_acquire_cluster(flags_2 + rank), 0);
    // kernel.tw:73
    if (lane == 0) store_release_cluster(v17 + v31, epoch);
    // kernel.tw:74
    if (lane == 0) reduce_add_relaxed_cluster(v17 + rank, 1);
    // kernel.tw:75
    if (lane == 0) reduce_add_release_cluster(v17 + rank, 1);
    // kernel.tw:76
    if (lane == 0) atomic_add_unread_relaxed_cluster(v17 + rank, 1);
    // kernel.tw:77
    int v33 = 0;
    if (lane == 0) v33 = atomic_add_relaxed_cluster(v17 + rank, 1);
    v33 = __shfl_sync(0xffffffffu, v33, 0);
    // kernel.tw:78
    if (lane == 0) store_relaxed_cluster(v17 + v33, epoch);
    // kernel.tw:79
    int v34 = 0;
    if (lane == 0) v34 = atomic_add_acquire_cluster(v17 + rank, 1);
    v34 = __shfl_sync(0xffffffffu, v34, 0);
    // kernel.tw:80
    int v35 = 0;
    if (lane == 0) v35 = atomic_add_acquire_cluster(v17 + rank, 1);
    v35 = __shfl_sync(0xffffffffu, v35, 0);
    // kernel.tw:81
    if (lane == 0) store_relaxed_cluster(v17 + v35, epoch);
    // kernel.tw:82
    if (lane == 0) atomic_add_unread_release_cluster(v17 + rank, 1);
    // kernel.tw:83
    int v37 = 0;
    if (lane == 0) v37 = atomic_add_release_cluster(v17 + rank, 1);
    v37 = __shfl_sync(0xffffffffu, v37, 0);
    // kernel.tw:84
    if (lane == 0) store_relaxed_cluster(v17 + v37, epoch);
    // kernel.tw:85
    int v38 = 0;
    if (lane == 0) v38 = atomic_add_acq_rel_cluster(v17 + rank, 1);
    v38 = __shfl_sync(0xffffffffu, v38, 0);
    // kernel.tw:86
    int v39 = 0;
    if (lane == 0) v39 = atomic_add_acq_rel_cluster(v17 + rank, 1);
    v39 = __shfl_sync(0xffffffffu, v39, 0);
    // kernel.tw:87
    if (lane == 0) store_relaxed_cluster(v17 + v39, epoch);
    // kernel.tw:88
    wait_flag_eq_acquire_cluster(flags_2 + rank, epoch);
    // kernel.tw:89
    wait_flag_ne_acquire_cluster(flags_2 + rank, epoch);
    // kernel.tw:90
    wait_flag_lt_relaxed_cluster(flags_2 + rank, epoch);
    // kernel.tw:91
    wait_flag_le_relaxed_cluster(flags_2 + rank, epoch);
    // kernel.tw:92
    wait_flag_gt_acquire_cluster(flags_2 + rank, epoch);
    // kernel.tw:93
    wait_flag_ge_acquire_cluster(flags_2 + rank, epoch);
    // kernel.tw:94
    fence_acq_rel_gpu();
    // kernel.tw:95
    const int v40 = __shfl_sync(0xffffffffu, load_relaxed_gpu(flags_2 + rank), 0);
    // kernel.tw:96
    if (lane == 0) store_release_gpu(v17 + v40, epoch);
    // kernel.tw:97
    const int v41 = __shfl_sync(0xffffffffu, load_acquire_gpu(flags_2 + rank), 0);
    // kernel.tw:98
    if (lane == 0) store_release_gpu(v17 + v41, epoch);
    // kernel.tw:99
    if (lane == 0) reduce_add_relaxed_gpu(v17 + rank, 1);
    // kernel.tw:100
    if (lane == 0) reduce_add_release_gpu(v17 + rank, 1);
    // kernel.tw:101
    if (lane == 0) atomic_add_unread_relaxed_gpu(v17 + rank, 1);
    // kernel.tw:102
    int v43 = 0;
    if (lane == 0) v43 = atomic_add_relaxed_gpu(v17 + rank, 1);
    v43 = __shfl_sync(0xffffffffu, v43, 0);
    // kernel.tw:103
    if (lane == 0) store_relaxed_gpu(v17 + v43, epoch);
    // kernel.tw:104
    int v44 = 0;
    if (lane == 0) v44 = atomic_add_acquire_gpu(v17 + rank, 1);
    v44 = __shfl_sync(0xffffffffu, v44, 0);
    // kernel.tw:105
    int v45 = 0;
    if (lane == 0) v45 = atomic_add_acquire_gpu(v17 + rank, 1);
    v45 = __shfl_sync(0xffffffffu, v45, 0);
    // kernel.tw:106
    if (lane == 0) store_relaxed_gpu(v17 + v45, epoch);
    // kernel.tw:107
    if (lane == 0) atomic_add_unread_release_gpu(v17 + rank, 1);
    // kernel.tw:108
    int v47 = 0;
    if (lane == 0) v47 = atomic_add_release_gpu(v17 + rank, 1);
    v47 = __shfl_sync(0xffffffffu, v47, 0);
    // kernel.tw:109
    if (lane == 0) store_relaxed_gpu(v17 + v47, epoch);
    // kernel.tw:110
    int v48 = 0;
    if (lane == 0) v48 = atomic_add_acq_rel_gpu(v17 + rank, 1);
    v48 = __shfl_sync(0xffffffffu, v48, 0);
    // kernel.tw:111
    int v49 = 0;
    if (lane == 0) v49 = atomic_add_acq_rel_gpu(v17 + rank, 1);
    v49 = __shfl_sync(0xffffffffu, v49, 0);
    // kernel.tw:112
    if (lane == 0) store_relaxed_gpu(v17 + v49, epoch);
    // kernel.tw:113
    wait_flag_eq_acquire_gpu(flags_2 + rank, epoch);
    // kernel.tw:114
    wait_flag_ne_acquire_gpu(flags_2 + rank, epoch);
    // kernel.tw:115
    wait_flag_lt_relaxed_gpu(flags_2 + rank, epoch);
    // kernel.tw:116
    wait_flag_le_relaxed_gpu(flags_2 + rank, epoch);
    // kernel.tw:117
    wait_flag_gt_acquire_gpu(flags_2 + rank, epoch);
    // kernel.tw:118
    wait_flag_ge_acquire_gpu(flags_2 + rank, epoch);
    // kernel.tw:119
    fence_acq_rel_sys();
    // kernel.tw:120
    const int v50 = __shfl_sync(0xffffffffu, load_relaxed_sys(flags_2 + rank), 0);
    // kernel.tw:121
    if (lane == 0) store_release_sys(v17 + v50, epoch);
    // kernel.tw:122
    const int v51 = __shfl_sync(0xffffffffu, load_acquire_sys(flags_2 + rank), 0);
    // kernel.tw:123
    if (lane == 0) store_release_sys(v17 + v51, epoch);
    // kernel.tw:124
    if (lane == 0) reduce_add_relaxed_sys(v17 + rank, 1);
    // kernel.tw:125
    if (lane == 0) reduce_add_release_sys(v17 + rank, 1);
    // kernel.tw:126
    if (lane == 0) atomic_add_unread_relaxed_sys(v17 + rank, 1);
    // kernel.tw:127
    int v53 = 0;
    if (lane == 0) v53 = atomic_add_relaxed_sys(v17 + rank, 1);
    v53 = __shfl_sync(0xffffffffu, v53, 0);
    // kernel.tw:128
    if (lane == 0) store_relaxed_sys(v17 + v53, epoch);
    // kernel.tw:129
    int v54 = 0;
    if (lane == 0) v54 = atomic_add_acquire_sys(v17 + rank, 1);
    v54 = __shfl_sync(0xffffffffu, v54, 0);
    // kernel.tw:130
    int v55 = 0;
    if (lane == 0) v55 = atomic_add_acquire_sys(v17 + rank, 1);
    v55 = __shfl_sync(0xffffffffu, v55, 0);
    // kernel.tw:131
    if (lane == 0) store_relaxed_sys(v17 + v55, epoch);
    // kernel.tw:132
    if (lane == 0) atomic_add_unread_release_sys(v17 + rank, 1);
    // kernel.tw:133
    int v57 = 0;
    if (lane == 0) v57 = atomic_add_release_sys(v17 + rank, 1);
    v57 = __shfl_sync(0xffffffffu, v57, 0);
    // kernel.tw:134
    if (lane == 0) store_relaxed_sys(v17 + v57, epoch);
    // kernel.tw:135
    int v58 = 0;
    if (lane == 0) v58 = atomic_add_acq_rel_sys(v17 + rank, 1);
    v58 = __shfl_sync(0xffffffffu, v58, 0);
    // kernel.tw:136
    int v59 = 0;
    if (lane == 0) v59 = atomic_add_acq_rel_sys(v17 + rank, 1);
    v59 = __shfl_sync(0xffffffffu, v59, 0);
    // kernel.tw:137
    if (lane == 0) store_relaxed_sys(v17 + v59, epoch);
    // kernel.tw:138
    wait_flag_eq_acquire_sys(flags_2 + rank, epoch);
    // kernel.tw:139
    wait_flag_ne_acquire_sys(flags_2 + rank, epoch);
    // kernel.tw:140
    wait_flag_lt_relaxed_sys(flags_2 + rank, epoch);
    // kernel.tw:141
    wait_flag_le_relaxed_sys(flags_2 + rank, epoch);
    // kernel.tw:142
    wait_flag_gt_acquire_sys(flags_2 + rank, epoch);
    // kernel.tw:143
    wait_flag_ge_acquire_sys(flags_2 + rank, epoch);
  }
}
