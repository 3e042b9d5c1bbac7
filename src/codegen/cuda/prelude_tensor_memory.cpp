#include "codegen/cuda/prelude_pieces.h"

namespace tilewright::codegen {
namespace {

// Tensor memory and what orders it, of one CTA: .cta_group::1 stands in all of a kernel.
constexpr Piece kPieces[] = {
    {"tcgen05_alloc", R"(template <int kColumns>
__device__ __forceinline__ void tcgen05_alloc(u32 place) {
  asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(place), "n"(kColumns) : "memory");
}
)"},
    {"tcgen05_dealloc", R"(template <int kColumns>
__device__ __forceinline__ void tcgen05_dealloc(u32 columns) {
  asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(columns), "n"(kColumns) : "memory");
}
)"},
    {"tcgen05_relinquish", R"(__device__ __forceinline__ void tcgen05_relinquish() {
  asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;" ::: "memory");
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
    {"tcgen05_commit", R"(__device__ __forceinline__ void tcgen05_commit(u32 barrier) {
  asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(barrier) : "memory");
}
)"},
};

}  // namespace

std::span<const Piece> tensor_memory_pieces() { return kPieces; }

}  // namespace tilewright::codegen
