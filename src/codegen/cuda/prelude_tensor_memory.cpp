#include "codegen/cuda/prelude_pieces.h"

namespace tilewright::codegen {
namespace {

// What says whose tensor memory it is: one value of .cta_group stands in all of a kernel.
#define TW_GROUP_PIECES(suffix, group)                                                          \
  {"tcgen05_alloc" suffix,                                                                      \
   "template <int kColumns>\n"                                                                  \
   "__device__ __forceinline__ void tcgen05_alloc" suffix                                       \
   "(u32 place) {\n"                                                                            \
   "  asm volatile(\"tcgen05.alloc.cta_group::" group                                           \
   ".sync.aligned.shared::cta.b32 [%0], %1;\" ::\"r\"(place), \"n\"(kColumns) : \"memory\");\n" \
   "}\n"},                                                                                      \
      {"tcgen05_dealloc" suffix,                                                                \
       "template <int kColumns>\n"                                                              \
       "__device__ __forceinline__ void tcgen05_dealloc" suffix                                 \
       "(u32 columns) {\n"                                                                      \
       "  asm volatile(\"tcgen05.dealloc.cta_group::" group                                     \
       ".sync.aligned.b32 %0, %1;\" ::\"r\"(columns), \"n\"(kColumns) : \"memory\");\n"         \
       "}\n"},                                                                                  \
      {"tcgen05_relinquish" suffix,                                                             \
       "__device__ __forceinline__ void tcgen05_relinquish" suffix                              \
       "() {\n"                                                                                 \
       "  asm volatile(\"tcgen05.relinquish_alloc_permit.cta_group::" group                     \
       ".sync.aligned;\" ::: \"memory\");\n"                                                    \
       "}\n"},                                                                                  \
  {                                                                                             \
    "tcgen05_commit" suffix,                                                                    \
        "__device__ __forceinline__ void tcgen05_commit" suffix                                 \
        "(u32 barrier) {\n"                                                                     \
        "  asm volatile(\"tcgen05.commit.cta_group::" group                                     \
        ".mbarrier::arrive::one.shared::cluster.b64 [%0];\" ::\"r\"(barrier) : \"memory\");\n"  \
        "}\n"                                                                                   \
  }

constexpr Piece kTensorMemoryPieces[] = {
    TW_GROUP_PIECES("", "1"),
    TW_GROUP_PIECES("_pair", "2"),
    {"tcgen05_commit_multicast_pair",
     R"(__device__ __forceinline__ void tcgen05_commit_multicast_pair(u32 barrier, u16 ctas) {
  asm volatile(
      "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;"
      ::"r"(barrier), "h"(ctas) : "memory");
}
)"},
    {"tcgen05_shift", R"(__device__ __forceinline__ void tcgen05_shift(u32 columns) {
  asm volatile("tcgen05.shift.cta_group::1.down [%0];" ::"r"(columns) : "memory");
}
)"},
    {"tcgen05_wait_ld", R"(__device__ __forceinline__ void tcgen05_wait_ld() {
  asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
}
)"},
    {"tcgen05_wait_st", R"(__device__ __forceinline__ void tcgen05_wait_st() {
  asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
}
)"},
    {"tcgen05_fence_before", R"(__device__ __forceinline__ void tcgen05_fence_before() {
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
}
)"},
    {"tcgen05_fence_after", R"(__device__ __forceinline__ void tcgen05_fence_after() {
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
}
)"},
    {"try_cancel", R"(__device__ __forceinline__ void try_cancel(u32 answer, u32 barrier) {
  asm volatile(
      "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%0], [%1];"
      ::"r"(answer), "r"(barrier) : "memory");
}
)"},
    {"try_cancel_cluster",
     R"(__device__ __forceinline__ void try_cancel_cluster(u32 answer, u32 barrier) {
  asm volatile(
      "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes"
      ".multicast::cluster::all.b128 [%0], [%1];" ::"r"(answer), "r"(barrier) : "memory");
}
)"},
    {"query_cancel", R"(__device__ __forceinline__ int query_cancel(u32 answer) {
  int first;
  asm volatile(
      "{ .reg .b128 bits;\n"
      ".reg .pred is;\n"
      "ld.shared.b128 bits, [%1];\n"
      "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 is, bits;\n"
      "mov.s32 %0, -1;\n"
      "@is clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %0, bits; }"
      : "=&r"(first) : "r"(answer) : "memory");
  return __shfl_sync(0xffffffffu, first, 0);
}
)"},
};

#undef TW_GROUP_PIECES

}  // namespace

std::span<const Piece> tensor_memory_pieces() { return kTensorMemoryPieces; }

}  // namespace tilewright::codegen
