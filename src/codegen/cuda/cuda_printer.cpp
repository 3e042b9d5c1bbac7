#include "codegen/cuda/cuda_printer.h"

#include "codegen/cuda/delays.h"
#include "codegen/cuda/operations.h"
#include "support/diagnostic.h"

namespace tilewright::codegen {

using ir::Family;
using ir::Op;

namespace {

// Of a family whose members print alike.
OperationPrinter printer_of(Family family) {
  switch (family) {
    case Family::function:
      return print_elementwise;
    case Family::position:
      return print_position;
    case Family::array:
      return print_registers;
    case Family::global_access:
      return print_global_access;
    case Family::matrix_access:
      return print_matrix;
    case Family::element_access:
      return print_shared_elements;
    case Family::fragment_access:
      return print_words;
    case Family::word_wait:
      return print_wait_flag;
    case Family::named_barrier:
      return print_named_barrier;
    case Family::cta_barrier:
      return print_cta_sync;
    case Family::cluster_barrier:
      return print_cluster_sync;
    case Family::lane_order:
      return print_warp_sync;
    case Family::check:
      return print_check;
    case Family::bulk_copy:
      return print_bulk_copy;
    case Family::prefetch:
      return print_prefetch_map;
    case Family::product:
      return print_wgmma;
    case Family::product_fence:
      return print_wgmma_fence;
    case Family::tensor_product:
      return print_tensor_product;
    case Family::tensor_commit:
      return print_tensor_commit;
    case Family::register_budget:
      return print_set_max_registers;
    case Family::constant:  // each member by its own name, below
    case Family::peer:
    case Family::map_choice:
    case Family::control:
    case Family::place:
    case Family::computation:
    case Family::shared_word:
    case Family::word:
    case Family::mbarrier:
    case Family::fence:
    case Family::commit:
    case Family::group_wait:
    case Family::tensor_allocation:
    case Family::tensor_access:
    case Family::tensor_copy:
    case Family::tensor_wait:
    case Family::tensor_fence:
    case Family::launch_control:
    case Family::tile:  // these are of the forms before
    case Family::own_rows:
    case Family::tile_access:
    case Family::tile_product:
    case Family::tile_copy:
    case Family::pending:
    case Family::view:
    case Family::shared_tile:
    case Family::fragment_tile:
    case Family::tensor_tile:
    case Family::tensor_tile_product:
    case Family::core_memory:  // these are no GPU's
    case Family::core_window:
    case Family::core_copy:
    case Family::core_compute:
    case Family::core_event:
      break;
  }
  return nullptr;
}

}  // namespace

OperationPrinter printer_of(Op op) {
  switch (op) {
#define TW_OPERATION(name, family, ...) \
  case Op::name:                        \
    return printer_of(Family::family);
#define TW_PRINTED_BY_NAME(name) \
  case Op::name:                 \
    return print_##name;
#define TW_CONSTANT(name, ...) TW_PRINTED_BY_NAME(name)
#define TW_PEER(name, ...) TW_PRINTED_BY_NAME(name)
#define TW_MAP_CHOICE(name, ...) TW_PRINTED_BY_NAME(name)
#define TW_CONTROL(name, ...) TW_PRINTED_BY_NAME(name)
#define TW_PLACE(name, ...) TW_PRINTED_BY_NAME(name)
#define TW_TENSOR_COPY(name, ...) TW_PRINTED_BY_NAME(name)
#define TW_COMPUTATION(name, ...) TW_PRINTED_BY_NAME(name)
#define TW_SHARED_WORD(name, ...) TW_PRINTED_BY_NAME(name)
#define TW_WORD(name, ...) TW_PRINTED_BY_NAME(name)
#define TW_MBARRIER(name, ...) TW_PRINTED_BY_NAME(name)
#define TW_FENCE(name, ...) TW_PRINTED_BY_NAME(name)
#define TW_COMMIT(name, ...) TW_PRINTED_BY_NAME(name)
#define TW_GROUP_WAIT(name, ...) TW_PRINTED_BY_NAME(name)
#define TW_TENSOR_ALLOCATION(name, ...) TW_PRINTED_BY_NAME(name)
#define TW_TENSOR_ACCESS(name, ...) TW_PRINTED_BY_NAME(name)
#define TW_TENSOR_WAIT(name, ...) TW_PRINTED_BY_NAME(name)
#define TW_TENSOR_FENCE(name, ...) TW_PRINTED_BY_NAME(name)
#define TW_LAUNCH_CONTROL(name, ...) TW_PRINTED_BY_NAME(name)
#include "ir/operations.def"
#undef TW_PRINTED_BY_NAME
  }
  return nullptr;
}

namespace {

CudaSource print(const ir::Kernel& machine, const PrintFlavour& flavour = {}) {
  if (machine.form != ir::Form::machine) {
    Diagnostic(machine.where,
               "kernel " + machine.name + " is in the " + std::string(ir::name_of(machine.form)) +
                   " form; only the machine form is printed",
               ErrorKind::internal)
        .raise();
  }
  Emitter emitter(machine, flavour);
  emitter.print_block(machine.body);
  return emitter.finish();
}

}  // namespace

CudaSource print_cuda(const ir::Kernel& machine) { return print(machine); }

CudaSource print_cuda_with_delays(const ir::Kernel& machine, std::uint64_t seed) {
  return print(machine, {.delay_seed = seed});
}

CudaSource print_cuda_with_epoch_word(const ir::Kernel& machine) {
  return print(machine, {.has_epoch_word = true});
}

}  // namespace tilewright::codegen
