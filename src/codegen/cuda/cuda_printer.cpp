#include "codegen/cuda/cuda_printer.h"

#include <optional>

#include "codegen/cuda/delays.h"
#include "codegen/cuda/operations.h"
#include "support/diagnostic.h"

namespace tilewright::codegen {

using ir::Op;

OperationPrinter printer_of(Op op) {
  switch (op) {
    case Op::constant:
      return print_constant;
    case Op::dim:
      return print_dim;
    case Op::cta_index:
    case Op::cta_count:
    case Op::cluster_rank:
    case Op::warp_index:
      return print_position;
    case Op::rank:
      return print_rank;
    case Op::epoch:
      return print_epoch;
    case Op::peer:
      return print_peer;
    case Op::peer_map:
      return print_peer_map;
    case Op::for_loop:
      return print_for_loop;
    case Op::while_loop:
      return print_while_loop;
    case Op::if_then:
      return print_if_then;
    case Op::yield:
      return print_yield;
    case Op::role:
      return print_role;
    case Op::elect:
      return print_elect;
    case Op::mbarriers:
      return print_mbarriers;
    case Op::mbarrier_init:
      return print_mbarrier_init;
    case Op::fence_barrier_init:
      return print_fence_barrier_init;
    case Op::mbarrier_expect_tx:
      return print_mbarrier_expect_tx;
    case Op::mbarrier_arrive:
      return print_mbarrier_arrive;
    case Op::mbarrier_wait:
      return print_mbarrier_wait;
    case Op::named_sync:
    case Op::named_arrive:
      return print_named_barrier;
    case Op::fence_proxy_async:
      return print_fence_proxy_async;
    case Op::bulk_commit:
      return print_bulk_commit;
    case Op::bulk_wait:
      return print_bulk_wait;
    case Op::fence_cluster:
      return print_fence_cluster;
    case Op::warp_sync:
      return print_warp_sync;
    case Op::cta_sync:
      return print_cta_sync;
    case Op::cluster_sync:
      return print_cluster_sync;
    case Op::set_max_registers:
      return print_set_max_registers;
    case Op::registers:
      return print_registers;
    case Op::fill:
      return print_fill;
    case Op::copy:
      return print_copy;
    case Op::compute:
      return print_compute;
    case Op::coordinate:
      return print_coordinate;
    case Op::reduce_registers:
      return print_reduce_registers;
    case Op::any_register:
      return print_any_register;
    case Op::reduce_lanes:
      return print_reduce_lanes;
    case Op::shared:
      return print_shared;
    case Op::shared_load:
      return print_shared_load;
    case Op::shared_store:
      return print_shared_store;
    case Op::atomic_add:
      return print_atomic_add;
    case Op::load_index:
      return print_load_index;
    case Op::store_index:
      return print_store_index;
    case Op::reduce_add:
      return print_reduce_add;
    case Op::wait_flag:
      return print_wait_flag;
    case Op::fence:
      return print_fence;
    case Op::fence_proxy_async_global:
      return print_fence_proxy_async_global;
    case Op::load_registers:
    case Op::store_registers:
      return print_global_access;
    case Op::store_matrix:
    case Op::load_matrix:
      return print_matrix;
    case Op::store_elements:
    case Op::load_elements:
      return print_shared_elements;
    case Op::store_words:
    case Op::load_words:
      return print_words;
    case Op::prefetch_map:
      return print_prefetch_map;
    case Op::tensor_map:
      return print_tensor_map;
    case Op::tma_load:
    case Op::tma_store:
      return print_tma;
    case Op::wgmma_ss:
    case Op::wgmma_rs:
      return print_wgmma;
    case Op::wgmma_fence:
      return print_wgmma_fence;
    case Op::wgmma_commit:
      return print_wgmma_commit;
    case Op::wgmma_wait:
      return print_wgmma_wait;
    default:
      return ir::info(op).elementwise() ? print_elementwise : nullptr;
  }
}

namespace {

CudaSource print(const ir::Kernel& machine, std::optional<std::uint64_t> delay_seed) {
  if (machine.form != ir::Form::machine) {
    Diagnostic(machine.where,
               "kernel " + machine.name + " is in the " + std::string(ir::name_of(machine.form)) +
                   " form; only the machine form is printed",
               ErrorKind::internal)
        .raise();
  }
  Emitter emitter(machine, delay_seed);
  emitter.print_block(machine.body);
  return emitter.finish();
}

}  // namespace

CudaSource print_cuda(const ir::Kernel& machine) { return print(machine, std::nullopt); }

CudaSource print_cuda_with_delays(const ir::Kernel& machine, std::uint64_t seed) {
  return print(machine, seed);
}

}  // namespace tilewright::codegen
