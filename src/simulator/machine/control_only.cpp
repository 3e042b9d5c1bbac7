#include "simulator/machine/control_only.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "simulator/machine/preparation.h"

namespace tilewright::simulator {
namespace {

// What an instruction does to the values in register arrays.
struct Flow {
  int to = -1;
  std::vector<int> from;
  bool opaque = false;  // from a product or from memory that the kernel writes
};

class ControlOnly {
 public:
  ControlOnly(PreparedKernel& kernel, const Arguments& arguments)
      : prepared_(kernel),
        arguments_(arguments),
        flows_(kernel.code.size()),
        opaque_(kernel.registers.size()),
        needed_(kernel.registers.size()) {}

  void run() {
    for (std::size_t i = 0; i < flows_.size(); ++i) flows_[i] = flow(prepared_.code[i]);
    check_scalars();
    until_stable([this](const Flow& flow) {
      const bool becomes =
          flow.opaque || std::any_of(flow.from.begin(), flow.from.end(),
                                     [this](int array) { return opaque_[array] != 0; });
      return becomes && set(opaque_, flow.to);
    });
    for (const Instruction& instruction : prepared_.code) {
      if (is_condition(instruction) && !opaque_[instruction.object]) {
        needed_[instruction.object] = 1;
      }
    }
    until_stable([this](const Flow& flow) {
      bool changed = false;
      if (!needed_[flow.to]) return false;
      for (const int array : flow.from) changed = set(needed_, array) || changed;
      return changed;
    });
    mark();
  }

 private:
  static bool is_condition(const Instruction& instruction) {
    return instruction.op == ir::Op::any_register;
  }

  static bool set(std::vector<char>& flags, int index) {
    return std::exchange(flags[index], 1) == 0;
  }

  template <typename Visit>
  void until_stable(Visit visit) {
    bool changed = true;
    while (changed) {
      changed = false;
      for (const Flow& flow : flows_) {
        if (flow.to >= 0) changed = visit(flow) || changed;
      }
    }
  }

  // Words of global and shared memory are written as they will be: their values are known.
  bool writes(const Instruction& instruction, const TensorArgument& tensor) const {
    if (instruction.code == Code::word) return false;
    const TensorArgument* const own = prepared_.tensor_of(instruction, arguments_);
    return own && own->name == tensor.name && ir::info(instruction.op).writes(ir::Memory::global);
  }
  bool writes(const TensorArgument& tensor) const {
    return std::any_of(prepared_.code.begin(), prepared_.code.end(),
                       [&](const Instruction& each) { return writes(each, tensor); });
  }
  bool writes(const Instruction& instruction, int allocation) const {
    // Of words, of the address that an allocation leaves, and of clusters the values are known.
    if (instruction.code == Code::shared_word || instruction.code == Code::tensor_allocation ||
        instruction.code == Code::launch_control) {
      return false;
    }
    return prepared_.allocation_of(instruction) == allocation &&
           ir::info(instruction.op).writes(ir::Memory::shared);
  }
  bool writes(int allocation) const {
    return std::any_of(prepared_.code.begin(), prepared_.code.end(),
                       [&](const Instruction& each) { return writes(each, allocation); });
  }

  Flow computation(const Instruction& instruction) const {
    switch (ir::as<ir::ComputationOp>(instruction.op)) {
      case ir::ComputationOp::fill:
      case ir::ComputationOp::coordinate:
        return {instruction.object, {}};
      case ir::ComputationOp::copy:
        return {instruction.object, {instruction.detail}};
      case ir::ComputationOp::compute: {
        const Compute& compute = prepared_.computes[instruction.detail];
        Flow made{compute.destination, {}};
        for (const RegisterSource& source : compute.sources) {
          if (source.array >= 0) made.from.push_back(source.array);
        }
        return made;
      }
      case ir::ComputationOp::reduce_registers: {
        const RegisterReduction& reduction = prepared_.reductions[instruction.detail];
        return {reduction.destination, {reduction.source}};
      }
      case ir::ComputationOp::reduce_lanes: {
        const int array = prepared_.lane_reductions[instruction.detail].array;
        return {array, {array}};
      }
      case ir::ComputationOp::any_register:
        break;
    }
    return {};
  }

  Flow flow(const Instruction& instruction) const {
    const bool loads =
        !is_flow(instruction.code) && ir::info(instruction.op).writes(ir::Memory::registers);
    switch (instruction.code) {
      case Code::computation:
        return computation(instruction);
      case Code::global_access: {
        if (!loads) break;
        const GlobalAccess& access = prepared_.global_accesses[instruction.detail];
        return {access.array, {}, writes(*access.tensor)};
      }
      case Code::matrix_access:
      case Code::element_access:
      case Code::fragment_access:
        if (!loads) break;
        return {instruction.object, {}, true};
      case Code::tensor_access:
        if (!loads) break;
        return {prepared_.tensor_accesses[instruction.detail].array, {}, true};
      case Code::product:
        return {prepared_.products[instruction.detail].accumulator, {}, true};
      case Code::end:
      case Code::move:
      case Code::jump:
      case Code::loop_test:
      case Code::loop_next:
      case Code::branch_unless:
      case Code::parted:
      case Code::enter_role:
      case Code::leave_role:
      case Code::function:
      case Code::array:
      case Code::shared_word:
      case Code::word:
      case Code::word_wait:
      case Code::mbarrier:
      case Code::named_barrier:
      case Code::cta_barrier:
      case Code::cluster_barrier:
      case Code::fence:
      case Code::lane_order:
      case Code::check:
      case Code::commit:
      case Code::group_wait:
      case Code::bulk_copy:
      case Code::product_fence:
      case Code::tensor_allocation:
      case Code::tensor_wait:
      case Code::tensor_product:
      case Code::tensor_copy:
      case Code::tensor_commit:
      case Code::tensor_fence:
      case Code::launch_control:
      case Code::register_budget:
        break;
    }
    return {};
  }

  // Scalars that the kernel reads must not be among what is not computed.
  void check_scalars() const {
    for (const Instruction& reader : prepared_.code) {
      // Of what is only added to, nobody learns the value.
      const bool word = (reader.code == Code::word && !reader.operation->results.empty()) ||
                        reader.code == Code::word_wait;
      const TensorArgument* tensor = word ? prepared_.tensor_of(reader, arguments_) : nullptr;
      const bool shared = reader.code == Code::shared_word &&
                          ir::info(reader.op).reads(ir::Memory::shared) && writes(reader.object);
      if (!shared && !(tensor && writes(*tensor))) continue;
      refuse(*reader.operation,
             fmt::format("{} is written from registers or by a copy; what is read of it cannot be "
                         "known when control alone is simulated",
                         tensor ? tensor->name : prepared_.allocations[reader.object].name));
    }
  }

  void mark() {
    for (std::size_t array = 0; array < needed_.size(); ++array) {
      prepared_.registers[array].valued = needed_[array] != 0;
    }
    for (std::size_t i = 0; i < flows_.size(); ++i) {
      Instruction& instruction = prepared_.code[i];
      const bool condition = is_condition(instruction);
      const int array = condition ? instruction.object : flows_[i].to;
      if (array >= 0) instruction.valued = needed_[array] != 0;
      if (instruction.code == Code::global_access && flows_[i].to < 0) instruction.valued = false;
    }
    prepared_.valued = false;
  }

  PreparedKernel& prepared_;
  const Arguments& arguments_;
  std::vector<Flow> flows_;
  std::vector<char> opaque_, needed_;  // of each array
};

}  // namespace

void keep_control_only(PreparedKernel& kernel, const Arguments& arguments) {
  ControlOnly(kernel, arguments).run();
}

}  // namespace tilewright::simulator
