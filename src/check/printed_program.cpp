#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "check/printed.h"
#include "codegen/print.h"
#include "compiler/build.h"
#include "support/diagnostic.h"

namespace tilewright::checks {
namespace {

// Buffers of a program where TMA takes them.
class Buffers {
 public:
  Buffers(const ir::Program& program, const std::vector<HostTensor>& before) {
    for (std::size_t i = 0; i < program.buffers.size(); ++i) {
      const auto size = static_cast<std::size_t>(program.buffers[i].bytes());
      bytes_.emplace_back(size + kAlignment);
      if (i < before.size() && before[i].size_bytes() > 0) {
        std::memcpy(at(static_cast<int>(i)), before[i].data(), before[i].size_bytes());
      }
    }
  }
  std::byte* at(int buffer) {
    auto& bytes = bytes_[static_cast<std::size_t>(buffer)];
    void* start = bytes.data();
    std::size_t space = bytes.size();
    return static_cast<std::byte*>(std::align(kAlignment, space - kAlignment, start, space));
  }

 private:
  static constexpr std::size_t kAlignment = 1024;
  std::vector<std::vector<std::byte>> bytes_;
};

}  // namespace

codegen::CudaSource printed_source(const ir::Kernel& machine) { return codegen::print(machine); }

std::string printed_ptx_text(const ir::Kernel& machine, const codegen::CudaSource& source) {
  const std::string target(machine.target.empty() ? ir::default_target() : machine.target);
  return compiler::build_ptx({machine, source}, target);
}

ptx::Module printed_ptx(const ir::Kernel& machine, const codegen::CudaSource& source) {
  return ptx::parse(printed_ptx_text(machine, source), source.entry + ".ptx");
}

PrintedDifference compare_printed(const ir::Program& program,
                                  const std::vector<ir::Kernel>& machine,
                                  std::vector<HostTensor>& before, const PrintedOptions& options) {
  using Kind = ir::ProgramOperation::Kind;
  if (program.ranks > 1) {
    Diagnostic(program.where,
               fmt::format("program {} is of {} ranks, and the PTX of one is compared",
                           program.name, program.ranks))
        .raise();
  }
  Buffers buffers(program, before);
  const ir::BufferAddress address = [&](int buffer, int) { return buffers.at(buffer); };
  for (const ir::ProgramOperation& operation : program.operations) {
    if (operation.kind == Kind::zero) {
      const TensorArgument to = argument_of(program, operation.to, address);
      ir::for_each_rows(to, to, [](const ir::CopiedRows& rows) {
        for (std::int64_t i = 0; i < rows.rows; ++i) {
          std::memset(rows.to + i * rows.to_pitch, 0, static_cast<std::size_t>(rows.bytes));
        }
      });
    } else if (operation.kind == Kind::copy) {
      ir::for_each_rows(
          argument_of(program, operation.to, address),
          argument_of(program, operation.from, address), [](const ir::CopiedRows& rows) {
            for (std::int64_t i = 0; i < rows.rows; ++i) {
              std::memcpy(rows.to + i * rows.to_pitch, rows.from + i * rows.from_pitch,
                          static_cast<std::size_t>(rows.bytes));
            }
          });
    }
    if (operation.kind != Kind::launch) continue;
    const ir::Kernel& kernel = machine.at(static_cast<std::size_t>(operation.kernel));
    Arguments arguments = ir::arguments_of(program, operation, 0, address);
    // What the runtime owns each execution gets anew.
    std::size_t number = 0;
    std::vector<TensorArgument> given;
    for (const ir::Parameter& parameter : kernel.parameters) {
      if (!parameter.is_tensor()) continue;
      if (number < arguments.tensors.size() && !parameter.is_owned()) {
        given.push_back(arguments.tensors[number]);
      }
      ++number;
    }
    arguments.tensors = std::move(given);
    const codegen::CudaSource source = codegen::print(kernel);
    PrintedDifference difference =
        compare_printed(kernel, source.parameters, printed_ptx(kernel, source), arguments, options);
    if (!difference.none()) {
      difference.message = kernel.name + ": " + difference.message;
      return difference;
    }
  }
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (before[i].size_bytes() == 0) continue;
    std::memcpy(before[i].data(), buffers.at(static_cast<int>(i)), before[i].size_bytes());
  }
  return {};
}

}  // namespace tilewright::checks
