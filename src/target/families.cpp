#include "target/families.h"

namespace tilewright::target {
namespace {

// Every family is named here, so that a new one does not compile before somebody says whose it is.
constexpr bool has(Products products, ir::Family family) {
  using ir::Family;
  switch (family) {
    // Of the scheduled form alone.
    case Family::tile:
    case Family::tile_access:
    case Family::tile_copy:
    case Family::view:
    case Family::shared_tile:
    case Family::own_rows:
    // Of both.
    case Family::constant:
    case Family::position:
    case Family::peer:
    case Family::map_choice:
    case Family::control:
    case Family::place:
    case Family::function:
    case Family::shared_word:
    case Family::word:
    case Family::word_wait:
    case Family::mbarrier:
    case Family::named_barrier:
    case Family::cta_barrier:
    case Family::cluster_barrier:
    case Family::fence:
    case Family::lane_order:
    case Family::commit:
    case Family::group_wait:
    case Family::prefetch:
    // Of the machine form.
    case Family::array:
    case Family::computation:
    case Family::global_access:
    case Family::matrix_access:
    case Family::element_access:
    case Family::bulk_copy:
    case Family::check:
    case Family::register_budget:
      return true;
    case Family::tile_product:
    case Family::pending:
    case Family::fragment_tile:  // in the order in which results of wgmma lie
    case Family::fragment_access:
    case Family::product:
    case Family::product_fence:
      return products == Products::warpgroup;
    case Family::tensor_tile:
    case Family::tensor_tile_product:
    case Family::tensor_allocation:
    case Family::tensor_access:
    case Family::tensor_wait:
    case Family::tensor_product:
    case Family::tensor_copy:
    case Family::tensor_commit:
    case Family::tensor_fence:
    case Family::launch_control:
      return products == Products::tensor_memory;
    case Family::core_memory:
    case Family::core_window:
    case Family::core_copy:
    case Family::core_compute:
    case Family::core_event:
      return false;
  }
  return false;
}

}  // namespace

std::vector<ir::Family> families_of(Products products) {
  std::vector<ir::Family> all;
  for (const ir::Family family : ir::kFamilies) {
    if (has(products, family)) all.push_back(family);
  }
  return all;
}

}  // namespace tilewright::target
