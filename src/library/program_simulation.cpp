#include "library/program_simulation.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "compiler/simulation.h"
#include "simulator/machine/streams.h"

namespace tilewright::library {
namespace {

// The buffers of all ranks, each from a multiple of 1024 bytes on, as of a GPU's allocator: what is
// found then depends on the seed alone.
class AlignedMemory {
 public:
  AlignedMemory(const ir::Program& program, const ProgramTensors& tensors)
      : bytes_(tensors.size()) {
    for (std::size_t rank = 0; rank < bytes_.size(); ++rank) {
      for (std::size_t i = 0; i < program.buffers.size(); ++i) {
        const auto size = static_cast<std::size_t>(program.buffers[i].bytes());
        bytes_[rank].emplace_back(size + kAlignment);
        if (size == 0) continue;
        std::byte* const first = at(static_cast<int>(i), static_cast<int>(rank));
        switch (program.buffers[i].kind) {
          case ir::ProgramBuffer::Kind::tensor:
          case ir::ProgramBuffer::Kind::in:
          case ir::ProgramBuffer::Kind::out:
            std::memcpy(first, tensors[rank][i].data(), size);
            break;
          case ir::ProgramBuffer::Kind::scratch:
          case ir::ProgramBuffer::Kind::zeroed:
            std::memset(first, 0xFF, size);  // NaN: nobody may count on what is there
            break;
          case ir::ProgramBuffer::Kind::signals:
          case ir::ProgramBuffer::Kind::workspace:
            break;  // zeros, as they begin
        }
      }
    }
  }
  std::byte* at(int buffer, int rank) const {
    std::byte* const first = const_cast<std::byte*>(bytes_[rank][buffer].data());
    const auto past = reinterpret_cast<std::uintptr_t>(first) % kAlignment;
    return past == 0 ? first : first + (kAlignment - past);
  }
  void copy_to(ProgramTensors& tensors) const {
    for (std::size_t rank = 0; rank < bytes_.size(); ++rank) {
      for (std::size_t i = 0; i < tensors[rank].size(); ++i) {
        HostTensor& tensor = tensors[rank][i];
        if (tensor.size_bytes() == 0) continue;
        std::memcpy(tensor.data(), at(static_cast<int>(i), static_cast<int>(rank)),
                    tensor.size_bytes());
      }
    }
  }

 private:
  static constexpr std::size_t kAlignment = 1024;
  std::vector<std::vector<std::vector<std::byte>>> bytes_;  // of each rank, each buffer's
};

// Buffers that operations of such a sort touch, of all launches.
std::set<int> touched_by(const ir::Program& program, const std::vector<ir::Kernel>& machine,
                         bool (*is_such)(const ir::Operation&)) {
  std::set<int> buffers;
  for (const ir::ProgramOperation& launch : program.operations) {
    if (launch.kind != ir::ProgramOperation::Kind::launch) continue;
    const ir::Kernel& kernel = machine[launch.kernel];
    std::map<const ir::Parameter*, int> of_parameter;
    std::size_t tensor = 0;
    for (const ir::Parameter& parameter : kernel.parameters) {
      if (!parameter.is_tensor() || tensor == launch.tensors.size()) continue;
      of_parameter[&parameter] = launch.tensors[tensor++].buffer;
    }
    ir::for_each(kernel.body, [&](const ir::Operation& operation) {
      if (!is_such(operation)) return;
      for (const ir::ValueId operand : operation.operands) {
        const auto found = of_parameter.find(kernel.parameter_of(operand));
        if (found != of_parameter.end()) buffers.insert(found->second);
      }
    });
  }
  return buffers;
}

// Whether a kernel takes numbers from memory that another one fills from registers. They are not
// there where control alone is simulated.
bool hands_on_numbers(const ir::Program& program, const std::vector<ir::Kernel>& machine) {
  const std::set<int> filled = touched_by(program, machine, [](const ir::Operation& operation) {
    const ir::OpInfo& record = ir::info(operation.op);
    return record.family == ir::Family::global_access && record.writes(ir::Memory::global);
  });
  const std::set<int> read = touched_by(program, machine, [](const ir::Operation& operation) {
    return operation.op == ir::Op::load_index || operation.op == ir::Op::wait_flag;
  });
  return std::any_of(read.begin(), read.end(),
                     [&](int buffer) { return filled.count(buffer) != 0; });
}

}  // namespace

std::string target_of(const ir::Program& program) {
  for (const auto& kernel : program.kernels) {
    if (!kernel->target.empty()) return kernel->target;
  }
  return std::string(ir::default_target());
}

std::vector<std::vector<ir::Kernel>> machine_forms(const ir::Program& program,
                                                   std::string_view target,
                                                   const compiler::MachineOptions& options) {
  std::vector<std::vector<ir::Kernel>> of_kernels;
  std::size_t most = 1;
  for (const auto& kernel : program.kernels) {
    of_kernels.push_back(compiler::simulated_forms(*kernel, target, options));
    most = std::max(most, of_kernels.back().size());
  }
  std::vector<std::vector<ir::Kernel>> lists(most);
  for (std::size_t i = 0; i < most; ++i) {
    for (const std::vector<ir::Kernel>& forms : of_kernels) {
      lists[i].push_back(forms[std::min(i, forms.size() - 1)]);
    }
  }
  return lists;
}

simulator::MachineReport simulate_program(const ir::Program& program,
                                          const std::vector<ir::Kernel>& machine,
                                          const ProgramTensors& before, ProgramTensors* after,
                                          const simulator::MachineOptions& options,
                                          std::int64_t runs) {
  AlignedMemory memory(program, before);
  const auto address = [&](int buffer, int rank) { return memory.at(buffer, rank); };
  simulator::MachineOptions how = options;
  if (how.control_only) how.control_only = !hands_on_numbers(program, machine);
  simulator::MachineReport report = simulator::run_program(program, machine, address, how, runs);
  if (after) {
    if (after->size() != before.size()) *after = before;
    memory.copy_to(*after);
  }
  return report;
}

ProgramTensors ProgramWorkload::before() const {
  ProgramTensors tensors(static_cast<std::size_t>(program.ranks));
  std::size_t next = 0;
  for (std::vector<HostTensor>& of_rank : tensors) {
    for (const ir::ProgramBuffer& buffer : program.buffers) {
      of_rank.push_back(buffer.is_passed() ? workload.tensors[next++] : HostTensor());
    }
  }
  return tensors;
}

void ProgramWorkload::take(const ProgramTensors& after) {
  std::size_t next = 0;
  for (const std::vector<HostTensor>& of_rank : after) {
    for (std::size_t i = 0; i < program.buffers.size(); ++i) {
      if (program.buffers[i].is_passed()) workload.tensors[next++] = of_rank[i];
    }
  }
}

ir::Program with_callers(ir::Program program) {
  const bool has_signals = std::any_of(
      program.buffers.begin(), program.buffers.end(),
      [](const auto& buffer) { return buffer.kind == ir::ProgramBuffer::Kind::signals; });
  if (program.ranks == 1 || !has_signals) return program;
  using Operation = ir::ProgramOperation;
  std::vector<Operation> before;
  const std::vector<ir::ProgramStream> streams = program.streams;
  for (int rank = 0; rank < program.ranks; ++rank) {
    const int caller = static_cast<int>(program.streams.size());
    program.streams.push_back({"of the caller", rank, program.where});
    const auto add = [&](Operation::Kind kind, int stream, SourceLocation where) -> Operation& {
      Operation& made = before.emplace_back();
      made.kind = kind;
      made.stream = stream;
      made.where = where;
      return made;
    };
    for (std::size_t i = 0; i < program.buffers.size(); ++i) {
      const ir::ProgramBuffer& buffer = program.buffers[i];
      if (!buffer.is_passed()) continue;
      Operation& use = add(Operation::Kind::copy, caller, buffer.where);
      use.to = {static_cast<int>(i), rank, std::vector<Dim>(buffer.shape.size(), 0), buffer.shape};
      use.from = use.to;
    }
    const int over = program.events++;
    add(Operation::Kind::record, caller, program.where).event = over;
    for (std::size_t i = 0; i < streams.size(); ++i) {
      if (streams[i].rank != rank) continue;
      add(Operation::Kind::wait_event, static_cast<int>(i), program.where).event = over;
    }
  }
  program.operations.insert(program.operations.begin(), before.begin(), before.end());
  return program;
}

ir::Program bind_workload(const ir::Program& recorded, const Workload& workload,
                          std::int64_t multiprocessors) {
  std::vector<ir::TensorShape> shapes;
  for (const HostTensor& tensor : workload.tensors) {
    shapes.push_back(
        {workload.name_of(shapes.size()), tensor.dtype(), tensor.shape(), tensor.strides()});
  }
  return ir::bind_program(recorded, shapes, multiprocessors);
}

Comparison compare_buffers(const ir::Program& program, const ProgramTensors& got,
                           const ProgramTensors& wanted) {
  Comparison result;
  for (std::size_t rank = 0; rank < got.size(); ++rank) {
    for (std::size_t i = 0; i < got[rank].size(); ++i) {
      if (!program.buffers[i].is_passed()) continue;
      if (got[rank][i] == wanted[rank][i]) continue;
      std::vector<double> values;
      for (std::int64_t j = 0; j < wanted[rank][i].elements(); ++j) {
        values.push_back(wanted[rank][i].flat(j));
      }
      // Both round.
      Errors allowed = allowed_errors({}, got[rank][i].dtype(), got[rank][i].shape());
      for (double* each : {&allowed.whole, &allowed.row, &allowed.element}) *each *= 2;
      result.outputs.push_back(compare_tensor(
          got[rank][i], values, name_of(program, static_cast<int>(i), static_cast<int>(rank)),
          allowed, "in the first execution"));
      compare_factor(got[rank][i], values, result.outputs.back());
    }
  }
  return result;
}

}  // namespace tilewright::library
