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
      if (instruction.code == Code::any_register && !opaque_[instruction.object]) {
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

  bool writes(const Instruction& instruction, const TensorArgument& tensor) const {
    if (instruction.code == Code::tma_store) {
      return prepared_.maps[prepared_.transfers[instruction.detail].map].name == tensor.name;
    }
    return instruction.code == Code::store_registers &&
           prepared_.global_accesses[instruction.detail].tensor->name == tensor.name;
  }
  bool writes(const TensorArgument& tensor) const {
    return std::any_of(prepared_.code.begin(), prepared_.code.end(),
                       [&](const Instruction& each) { return writes(each, tensor); });
  }
  bool writes(const Instruction& instruction, int allocation) const {
    switch (instruction.code) {
      case Code::store_matrix:
      case Code::store_elements:
      case Code::store_words:
        return instruction.value == allocation;
      case Code::tma_load:
        return instruction.object == allocation;
      default:
        return false;
    }
  }
  bool writes(int allocation) const {
    return std::any_of(prepared_.code.begin(), prepared_.code.end(),
                       [&](const Instruction& each) { return writes(each, allocation); });
  }

  Flow flow(const Instruction& instruction) const {
    switch (instruction.code) {
      case Code::fill:
      case Code::coordinate:
        return {instruction.object, {}};
      case Code::copy:
        return {instruction.object, {instruction.detail}};
      case Code::compute: {
        const Compute& compute = prepared_.computes[instruction.detail];
        Flow made{compute.destination, {}};
        for (const RegisterSource& source : compute.sources) {
          if (source.array >= 0) made.from.push_back(source.array);
        }
        return made;
      }
      case Code::reduce_registers: {
        const RegisterReduction& reduction = prepared_.reductions[instruction.detail];
        return {reduction.destination, {reduction.source}};
      }
      case Code::reduce_lanes: {
        const int array = prepared_.lane_reductions[instruction.detail].array;
        return {array, {array}};
      }
      case Code::load_registers: {
        const GlobalAccess& access = prepared_.global_accesses[instruction.detail];
        return {access.array, {}, writes(*access.tensor)};
      }
      case Code::load_matrix:
      case Code::load_elements:
      case Code::load_words:
        return {instruction.object, {}, true};
      case Code::wgmma:
        return {prepared_.products[instruction.detail].accumulator, {}, true};
      default:
        return {};
    }
  }

  // Scalars that the kernel reads must not be among what is not computed.
  void check_scalars() const {
    for (const Instruction& reader : prepared_.code) {
      const bool word = reader.code == Code::load_index || reader.code == Code::atomic_add ||
                        reader.code == Code::wait_flag;
      const TensorArgument* tensor =
          word ? &arguments_.tensors[prepared_.words[reader.detail].tensor] : nullptr;
      const bool shared = reader.code == Code::shared_load && writes(reader.object);
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
      const bool condition = instruction.code == Code::any_register;
      const int array = condition ? instruction.object : flows_[i].to;
      if (array >= 0) instruction.valued = needed_[array] != 0;
      if (instruction.code == Code::store_registers) instruction.valued = false;
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
