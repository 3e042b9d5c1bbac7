#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ptx/launch.h"

namespace tilewright::ptx {

std::string_view name_of(EventKind kind) {
  switch (kind) {
    case EventKind::mbarrier_init:
      return "mbarrier_init";
    case EventKind::mbarrier_expect_tx:
      return "mbarrier_expect_tx";
    case EventKind::mbarrier_arrive:
      return "mbarrier_arrive";
    case EventKind::mbarrier_arrive_remote:
      return "mbarrier_arrive_remote";
    case EventKind::mbarrier_wait:
      return "mbarrier_wait";
    case EventKind::named_sync:
      return "named_sync";
    case EventKind::named_arrive:
      return "named_arrive";
    case EventKind::cluster_arrive:
      return "cluster_arrive";
    case EventKind::cluster_wait:
      return "cluster_wait";
    case EventKind::warp_sync:
      return "warp_sync";
    case EventKind::fence_barrier_init:
      return "fence_barrier_init";
    case EventKind::fence_proxy_async:
      return "fence_proxy_async";
    case EventKind::fence_proxy_async_global:
      return "fence_proxy_async_global";
    case EventKind::fence:
      return "fence";
    case EventKind::bulk_commit:
      return "bulk_commit";
    case EventKind::bulk_wait:
      return "bulk_wait";
    case EventKind::bulk_wait_read:
      return "bulk_wait_read";
    case EventKind::tensor_load:
      return "tensor_load";
    case EventKind::cluster_copy:
      return "cluster_copy";
    case EventKind::tensor_store:
      return "tensor_store";
    case EventKind::product:
      return "product";
    case EventKind::product_fence:
      return "product_fence";
    case EventKind::product_commit:
      return "product_commit";
    case EventKind::product_wait:
      return "product_wait";
    case EventKind::registers:
      return "registers";
    case EventKind::word_read:
      return "word_read";
    case EventKind::word_write:
      return "word_write";
    case EventKind::word_add:
      return "word_add";
  }
  return {};
}

std::string Event::text() const {
  return fmt::format("{}({}) by lanes {:#x}", name_of(kind), fmt::join(values, ", "), lanes);
}

}  // namespace tilewright::ptx
