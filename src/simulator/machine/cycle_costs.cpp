#include "simulator/machine/cycle_costs.h"

#include <algorithm>
#include <cmath>

#include "target/devices.h"

namespace tilewright::simulator {
namespace {

std::int64_t element_cycles(const target::Rates& rates, ir::Op function, DType type) {
  switch (ir::info(function).pipe) {
    case ir::Pipe::arithmetic:
      return type == DType::f32 ? rates.issue_float : rates.issue_integer;
    case ir::Pipe::special:
      return rates.issue_special;
    case ir::Pipe::reduced_special:
      return rates.issue_special + 4 * rates.issue_float;
    case ir::Pipe::polynomial:
      return rates.issue_special + 16 * rates.issue_float;
    case ir::Pipe::split_exponent:
      return 8 * rates.issue_float + 3 * rates.issue_integer;
    case ir::Pipe::integer:
    case ir::Pipe::conversion:
      break;
  }
  return rates.issue_integer;
}

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

std::int64_t computation_cycles(const PreparedKernel& kernel, const Instruction& instruction) {
  const target::Rates& rates = kernel.target->rates;
  const auto elements = [&](int array) { return kernel.registers[array].elements; };
  switch (ir::as<ir::ComputationOp>(instruction.op)) {
    case ir::ComputationOp::fill:
    case ir::ComputationOp::copy:
    case ir::ComputationOp::coordinate:
      break;
    case ir::ComputationOp::compute: {
      const Compute& compute = kernel.computes[instruction.detail];
      return elements(compute.destination) *
             element_cycles(rates, compute.function, compute.operand_type);
    }
    case ir::ComputationOp::reduce_registers: {
      const RegisterReduction& reduction = kernel.reductions[instruction.detail];
      return elements(reduction.source) *
             element_cycles(rates, reduction.function, kernel.registers[reduction.source].dtype);
    }
    case ir::ComputationOp::any_register:
      return elements(instruction.object) * rates.issue_integer + rates.issue_shuffle;
    case ir::ComputationOp::reduce_lanes: {
      const LaneReduction& reduction = kernel.lane_reductions[instruction.detail];
      const auto steps = static_cast<std::int64_t>(reduction.masks.size());
      const DType type = kernel.registers[reduction.array].dtype;
      return elements(reduction.array) * steps *
             (rates.issue_shuffle + element_cycles(rates, reduction.function, type));
    }
  }
  return elements(instruction.object);
}

// Accesses to shared memory: a load is waited for.
std::int64_t shared_cycles(const target::Rates& rates, const Instruction& instruction,
                           std::int64_t bytes) {
  return ceil_div(bytes, rates.shared_bytes) +
         (ir::info(instruction.op).reads(ir::Memory::shared) ? rates.shared_latency : 0);
}

}  // namespace

std::int64_t warp_bytes(const RegisterInfo& array) {
  return static_cast<std::int64_t>(array.elements) * 32 * size_of(array.dtype);
}

std::int64_t issue_cycles(const PreparedKernel& kernel, const Instruction& instruction) {
  const target::Rates& rates = kernel.target->rates;
  switch (instruction.code) {
    case Code::end:
    case Code::array:
    case Code::parted:
    case Code::enter_role:
    case Code::leave_role:
    case Code::move:  // values that the compiler keeps where they are
      return 0;
    case Code::jump:
    case Code::loop_test:
    case Code::loop_next:
    case Code::branch_unless:
    case Code::check:
      return rates.issue_control;
    case Code::function:
      return rates.issue_scalar;
    case Code::computation:
      return computation_cycles(kernel, instruction);
    case Code::global_access: {
      const GlobalAccess& access = kernel.global_accesses[instruction.detail];
      const bool waits = ir::info(instruction.op).writes(ir::Memory::registers);
      return port_cycles(kernel, warp_bytes(kernel.registers[access.array])) +
             (waits ? rates.global_latency : 0);
    }
    case Code::matrix_access:
      return shared_cycles(rates, instruction, 512);  // four 8 x 8 matrices of 16 bits
    case Code::element_access:
    case Code::fragment_access:
      return shared_cycles(rates, instruction, warp_bytes(kernel.registers[instruction.object]));
    case Code::shared_word:
      return ir::info(instruction.op).reads(ir::Memory::shared) ? rates.shared_latency
                                                                : rates.issue_scalar;
    case Code::word:  // what gives a result is waited for
      return instruction.operation->results.empty() ? rates.issue_asynchronous
                                                    : rates.global_latency;
    case Code::bulk_copy:
    case Code::product:
    case Code::tensor_product:
    case Code::tensor_copy:
    case Code::tensor_access:
    case Code::tensor_commit:
    case Code::tensor_allocation:
    case Code::launch_control:
    case Code::commit:
      return rates.issue_asynchronous;
    case Code::word_wait:
    case Code::mbarrier:
    case Code::named_barrier:
    case Code::cta_barrier:
    case Code::cluster_barrier:
    case Code::fence:
    case Code::lane_order:
    case Code::group_wait:
    case Code::product_fence:
    case Code::tensor_wait:
    case Code::tensor_fence:
    case Code::register_budget:
      break;
  }
  return rates.barrier;
}

namespace {

std::int64_t tensor_core_cycles(const PreparedKernel& kernel, std::int64_t fma, DType dtype) {
  return ceil_div(fma, kernel.target->rates.fma * (size_of(dtype) == 1 ? 2 : 1));
}

}  // namespace

std::int64_t product_cycles(const PreparedKernel& kernel, const Product& product) {
  return tensor_core_cycles(kernel, kernel.target->limits.group_rows * product.n * product.k,
                            product.dtype);
}

std::int64_t product_cycles(const PreparedKernel& kernel, const ir::Operation& product,
                            DType dtype) {
  const ir::Attributes& attributes = product.attributes;
  const std::int64_t ctas = kernel.cta_pairs ? 2 : 1;  // each does its part
  return tensor_core_cycles(kernel,
                            attributes.integer(ir::Key::m) * attributes.integer(ir::Key::n) *
                                attributes.integer(ir::Key::k) / ctas,
                            dtype);
}

std::int64_t port_cycles(const PreparedKernel& kernel, std::int64_t bytes) {
  return ceil_div(bytes, kernel.target->rates.l2_port_bytes);
}

std::int64_t l2_cycles(const PreparedKernel& kernel, const TensorMap& map, std::int64_t bytes) {
  const target::Device& device = target::device_of(kernel.target->name);
  const target::Device::Reached& reached = device.reached;
  double longer = 0;
  for (int axis = 1; axis < map.rank; ++axis) {
    longer = std::max(longer, reached.longer_in_rows(map.strides[axis]));
  }
  // Where few ask, each gets more.
  const double busy =
      std::min(1.0, static_cast<double>(kernel.ctas) / static_cast<double>(device.multiprocessors));
  // Its cycles are those of another clock than the one under products.
  return std::llround(static_cast<double>(bytes) / reached.l2_bytes * reached.product_clock /
                      reached.clock * (1 + longer) * std::max(busy, reached.l2_idle));
}

}  // namespace tilewright::simulator
