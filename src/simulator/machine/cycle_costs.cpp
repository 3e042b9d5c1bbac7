#include "simulator/machine/cycle_costs.h"

#include <algorithm>

namespace tilewright::simulator {
namespace {

std::int64_t element_cycles(const target::Rates& rates, ir::Op function, DType type) {
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
      return rates.issue_special;
    case ir::Op::sin:
    case ir::Op::cos:
      return rates.issue_special + 4 * rates.issue_float;
    case ir::Op::erf:
    case ir::Op::log1p:
    case ir::Op::expm1:
      return rates.issue_special + 16 * rates.issue_float;
    case ir::Op::add:
    case ir::Op::sub:
    case ir::Op::mul:
    case ir::Op::fma:
      return type == DType::f32 ? rates.issue_float : rates.issue_integer;
    default:
      return rates.issue_integer;
  }
}

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

std::int64_t warp_bytes(const RegisterInfo& array) {
  return static_cast<std::int64_t>(array.elements) * 32 * size_of(array.dtype);
}

}  // namespace

std::int64_t issue_cycles(const PreparedKernel& kernel, const Instruction& instruction) {
  const target::Rates& rates = kernel.target->rates;
  const auto elements = [&](int array) { return kernel.registers[array].elements; };
  const auto shared = [&](std::int64_t bytes) { return ceil_div(bytes, rates.shared_bytes); };
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
      return rates.issue_control;
    case Code::scalar:
      return rates.issue_scalar;
    case Code::fill:
    case Code::copy:
    case Code::coordinate:
      return elements(instruction.object);
    case Code::compute: {
      const Compute& compute = kernel.computes[instruction.detail];
      return elements(compute.destination) *
             element_cycles(rates, compute.function, compute.operand_type);
    }
    case Code::reduce_registers: {
      const RegisterReduction& reduction = kernel.reductions[instruction.detail];
      return elements(reduction.source) *
             element_cycles(rates, reduction.function, kernel.registers[reduction.source].dtype);
    }
    case Code::any_register:
      return elements(instruction.object) * rates.issue_integer + rates.issue_shuffle;
    case Code::reduce_lanes: {
      const LaneReduction& reduction = kernel.lane_reductions[instruction.detail];
      const auto steps = static_cast<std::int64_t>(reduction.masks.size());
      const DType type = kernel.registers[reduction.array].dtype;
      return elements(reduction.array) * steps *
             (rates.issue_shuffle + element_cycles(rates, reduction.function, type));
    }
    case Code::load_registers:
    case Code::store_registers: {
      const GlobalAccess& access = kernel.global_accesses[instruction.detail];
      const std::int64_t bytes = warp_bytes(kernel.registers[access.array]);
      return port_cycles(kernel, bytes) +
             (instruction.code == Code::load_registers ? rates.global_latency : 0);
    }
    case Code::store_matrix:
      return shared(512);  // four 8 x 8 matrices of 16 bits
    case Code::load_matrix:
      return shared(512) + rates.shared_latency;
    case Code::store_elements:
    case Code::store_words:
      return shared(warp_bytes(kernel.registers[instruction.object]));
    case Code::load_elements:
    case Code::load_words:
      return shared(warp_bytes(kernel.registers[instruction.object])) + rates.shared_latency;
    case Code::shared_load:
      return rates.shared_latency;
    case Code::shared_store:
      return rates.issue_scalar;
    case Code::store_index:
    case Code::reduce_add:
      return rates.issue_asynchronous;
    case Code::atomic_add:
    case Code::load_index:
      return rates.global_latency;
    case Code::tma_load:
    case Code::tma_store:
    case Code::wgmma:
    case Code::wgmma_commit:
    case Code::bulk_commit:
      return rates.issue_asynchronous;
    default:
      return rates.barrier;
  }
}

std::int64_t product_cycles(const PreparedKernel& kernel, const Product& product) {
  const std::int64_t fma = kernel.target->limits.group_rows * product.n * product.k;
  return ceil_div(fma, kernel.target->rates.fma * (size_of(product.dtype) == 1 ? 2 : 1));
}

std::int64_t port_cycles(const PreparedKernel& kernel, std::int64_t bytes) {
  return ceil_div(bytes, kernel.target->rates.l2_port_bytes);
}

}  // namespace tilewright::simulator
