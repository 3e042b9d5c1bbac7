#pragma once

#include "codegen/cuda/emitter.h"
#include "tilewright/memory_order.h"

// One function for each operation, or for each group that prints alike.
namespace tilewright::codegen {

using OperationPrinter = void (*)(Emitter&, const ir::Operation&);
// Of every operation of the machine form; null for the others.
OperationPrinter printer_of(ir::Op op);

// The shared address of barrier `index` of the array.
std::string barrier_address(const Emitter& emitter, ir::ValueId array, ir::ValueId index);

// The address of a byte of a shared allocation: products.cpp.
std::string shared_address(const Emitter& emitter, ir::ValueId shared, ir::ValueId offset,
                           std::int64_t step);
// The descriptor of an operand there; `bits` are those above its address, which has 14.
std::string descriptor(const Emitter& emitter, std::int64_t bits, ir::ValueId shared,
                       ir::ValueId offset, std::int64_t step);
// "%0, %1, %2": `count` times the pattern, with the numbers from `first` on.
std::string list(std::string_view pattern, int count, int first = 0);

// "name" of the wrapper, made where it is not yet: ld with semantics and scope, or atom.add.
std::string ordered_load(Emitter& emitter, MemoryOrder order);
std::string ordered_add(Emitter& emitter, MemoryOrder order);
// The same of one element of a tile, for load_registers, store_registers, red_registers and
// atomic_registers with an order; and of two of 16 bits in a register, for the last two.
std::string ordered_element(Emitter& emitter, const ir::Operation& operation, DType dtype);
std::string ordered_pair(Emitter& emitter, const ir::Operation& operation, DType dtype);

// What a watched wait passes on beside what it waits for: where it reports, and who it is.
std::string watched_arguments(Emitter& emitter, const ir::Operation& operation,
                              const std::string& index);

#define TW_PRINTER(name) void print_##name(Emitter& emitter, const ir::Operation& operation)
// scalars.cpp
TW_PRINTER(constant);
TW_PRINTER(dim);
TW_PRINTER(elementwise);
TW_PRINTER(position);
// control.cpp
TW_PRINTER(for_loop);
TW_PRINTER(while_loop);
TW_PRINTER(if_then);
TW_PRINTER(yield);
TW_PRINTER(set_max_registers);
TW_PRINTER(role);
TW_PRINTER(elect);
TW_PRINTER(check);
// synchronisation.cpp
TW_PRINTER(mbarriers);
TW_PRINTER(mbarrier_init);
TW_PRINTER(fence_barrier_init);
TW_PRINTER(mbarrier_expect_tx);
TW_PRINTER(mbarrier_arrive);
TW_PRINTER(mbarrier_wait);
TW_PRINTER(named_barrier);
TW_PRINTER(fence_proxy_async);
TW_PRINTER(bulk_commit);
TW_PRINTER(bulk_wait);
TW_PRINTER(fence_cluster);
TW_PRINTER(warp_sync);
TW_PRINTER(cta_sync);
TW_PRINTER(cluster_sync);
// ranks.cpp
TW_PRINTER(peer);
TW_PRINTER(peer_map);
TW_PRINTER(ragged_map);
TW_PRINTER(store_index);
TW_PRINTER(reduce_add);
TW_PRINTER(unread_add);  // atomic_add where nobody reads what was there
TW_PRINTER(wait_flag);
TW_PRINTER(fence);
TW_PRINTER(fence_proxy_async_global);
// registers.cpp
TW_PRINTER(registers);
TW_PRINTER(fill);
TW_PRINTER(copy);
TW_PRINTER(compute);
TW_PRINTER(coordinate);
TW_PRINTER(reduce_registers);
TW_PRINTER(reduce_lanes);
TW_PRINTER(any_register);
// memory.cpp
TW_PRINTER(shared);
TW_PRINTER(shared_load);
TW_PRINTER(shared_store);
TW_PRINTER(atomic_add);
TW_PRINTER(load_index);
TW_PRINTER(matrix);
TW_PRINTER(shared_elements);
// global_access.cpp
TW_PRINTER(global_access);
// products.cpp
TW_PRINTER(words);
TW_PRINTER(prefetch_map);
TW_PRINTER(tensor_map);
TW_PRINTER(bulk_copy);
TW_PRINTER(wgmma);
TW_PRINTER(wgmma_fence);
TW_PRINTER(wgmma_commit);
TW_PRINTER(wgmma_wait);
// tensor_memory.cpp
TW_PRINTER(tensor_memory);
TW_PRINTER(tcgen05_alloc);
TW_PRINTER(tcgen05_dealloc);
TW_PRINTER(tcgen05_relinquish);
TW_PRINTER(tcgen05_ld);
TW_PRINTER(tcgen05_st);
TW_PRINTER(tcgen05_wait_ld);
TW_PRINTER(tcgen05_wait_st);
TW_PRINTER(tcgen05_fence_before);
TW_PRINTER(tcgen05_fence_after);
TW_PRINTER(tensor_product);
TW_PRINTER(tcgen05_cp);
TW_PRINTER(tcgen05_shift);
TW_PRINTER(tensor_commit);
TW_PRINTER(try_cancel);
TW_PRINTER(query_cancel);
#undef TW_PRINTER

}  // namespace tilewright::codegen
