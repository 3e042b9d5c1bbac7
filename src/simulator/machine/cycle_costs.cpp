#include "simulator/machine/cycle_costs.h"

#include <algorithm>

namespace tilewright::simulator {
namespace {

std::int64_t element_cycles(ir::Op function, DType type) {
  switch (function) {
    case ir::Op::exp:
    case ir::Op::exp2:
    case ir::Op::log:
    case ir::Op::log2:
    case ir::Op::sqrt:
    case ir::Op::rsqrt:
    case ir::Op::rcp:
    case ir::Op::div:
    case ir::Op::tanh:
      return kCycleCosts.special_element;
    case ir::Op::sin:
    case ir::Op::cos:
      return kCycleCosts.special_element + 4 * kCycleCosts.float_element;
    case ir::Op::erf:
    case ir::Op::log1p:
    case ir::Op::expm1:
      return kCycleCosts.special_element + 16 * kCycleCosts.float_element;
    case ir::Op::add:
    case ir::Op::sub:
    case ir::Op::mul:
    case ir::Op::fma:
      return type == DType::f32 ? kCycleCosts.float_element : kCycleCosts.integer_element;
    default:
      return kCycleCosts.integer_element;
  }
}

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

std::int64_t warp_bytes(const RegisterInfo& array) {
  return static_cast<std::int64_t>(array.elements) * 32 * size_of(array.dtype);
}

}  // namespace

std::int64_t issue_cycles(const PreparedKernel& kernel, const Instruction& instruction) {
  const CycleCosts& costs = kCycleCosts;
  const auto elements = [&](int array) { return kernel.registers[array].elements; };
  const auto shared = [&](std::int64_t bytes) {
    return ceil_div(bytes, costs.shared_bytes_per_cycle);
  };
  switch (instruction.code) {
    case Code::end:
    case Code::registers:
    case Code::enter_role:
    case Code::leave_role:
    case Code::move:  // values that the compiler keeps where they are
      return 0;
    case Code::jump:
    case Code::loop_test:
    case Code::loop_next:
    case Code::branch_unless:
      return costs.control;
    case Code::scalar:
      return costs.scalar;
    case Code::fill:
    case Code::copy:
    case Code::coordinate:
      return elements(instruction.object);
    case Code::compute: {
      const Compute& compute = kernel.computes[instruction.detail];
      return elements(compute.destination) * element_cycles(compute.function, compute.operand_type);
    }
    case Code::reduce_registers: {
      const RegisterReduction& reduction = kernel.reductions[instruction.detail];
      return elements(reduction.source) *
             element_cycles(reduction.function, kernel.registers[reduction.source].dtype);
    }
    case Code::any_register:
      return elements(instruction.object) * costs.integer_element + costs.shuffle;
    case Code::reduce_lanes: {
      const LaneReduction& reduction = kernel.lane_reductions[instruction.detail];
      const auto steps = static_cast<std::int64_t>(reduction.masks.size());
      const DType type = kernel.registers[reduction.array].dtype;
      return elements(reduction.array) * steps *
             (costs.shuffle + element_cycles(reduction.function, type));
    }
    case Code::load_registers:
    case Code::store_registers: {
      const GlobalAccess& access = kernel.global_accesses[instruction.detail];
      const std::int64_t bytes = warp_bytes(kernel.registers[access.array]);
      return ceil_div(bytes, costs.copy_bytes_per_cycle) +
             (instruction.code == Code::load_registers ? costs.global_latency : 0);
    }
    case Code::store_matrix:
      return shared(512);  // four 8 x 8 matrices of 16 bits
    case Code::load_matrix:
      return shared(512) + costs.shared_latency;
    case Code::store_elements:
    case Code::store_words:
      return shared(warp_bytes(kernel.registers[instruction.object]));
    case Code::load_elements:
    case Code::load_words:
      return shared(warp_bytes(kernel.registers[instruction.object])) + costs.shared_latency;
    case Code::shared_load:
      return costs.shared_latency;
    case Code::shared_store:
      return costs.scalar;
    case Code::store_index:
    case Code::reduce_add:
      return costs.issue;
    case Code::atomic_add:
    case Code::load_index:
      return costs.global_latency;
    case Code::tma_load:
    case Code::tma_store:
    case Code::wgmma:
    case Code::wgmma_commit:
    case Code::bulk_commit:
      return costs.issue;
    default:
      return costs.barrier;
  }
}

std::int64_t product_cycles(const Product& product) {
  const std::int64_t fma = std::int64_t{64} * product.n * product.k;
  return ceil_div(fma, kCycleCosts.fma_per_cycle * (size_of(product.dtype) == 1 ? 2 : 1));
}

}  // namespace tilewright::simulator
