#include "library/program_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "ir/binding.h"
#include "ir/program_text.h"
#include "support/diagnostic.h"
#include "support/file.h"
#include "target/verify.h"

namespace tilewright::library {
namespace {

// Signals and workspaces are the program's, not a caller's.
ir::ProgramBuffer::Kind buffer_kind(const ir::Parameter& parameter) {
  return parameter.is_owned() ? ir::owned_kind(parameter) : ir::ProgramBuffer::Kind::tensor;
}

}  // namespace

ir::Program read_program(const std::string& path) {
  return ir::parse_program(read_text(path), path,
                           [](const ir::Kernel& read) { target::verify(read, ErrorKind::usage); });
}

bool reaches_ranks(const ir::Kernel& kernel) {
  const bool symmetric = std::any_of(kernel.parameters.begin(), kernel.parameters.end(),
                                     [](const ir::Parameter& each) { return each.is_symmetric(); });
  bool asks = std::any_of(kernel.dims.begin(), kernel.dims.end(),
                          [](const Dim& dim) { return dim.name() == ir::kRanks; });
  ir::for_each(kernel.body, [&](const ir::Operation& operation) {
    asks = asks || operation.op == ir::Op::rank;
  });
  return symmetric || asks;
}

ir::Program program_of(const ir::Kernel& kernel, int ranks, const OptionValues& options) {
  ir::Program program;
  program.name = kernel.name;
  program.ranks = ranks;
  program.where = kernel.where;
  std::map<std::string, std::int64_t> values{{ir::kRanks, ranks}};
  for (const Dim& dim : kernel.dims) {
    if (dim.name() != ir::kRanks) values[dim.name()] = options.integer(dim.name());
  }
  const ir::Binding binding(values);
  std::vector<RunNumber> scalars;
  for (const ir::Parameter& parameter : kernel.parameters) {
    if (!parameter.is_tensor()) {
      scalars.emplace_back(options.number(parameter.name));
      continue;
    }
    ir::ProgramBuffer& buffer = program.buffers.emplace_back();
    buffer.kind = buffer_kind(parameter);
    buffer.name = parameter.name;
    buffer.dtype = parameter.dtype;
    buffer.where = parameter.where;
    for (const Dim& extent : parameter.shape) buffer.shape.emplace_back(binding.evaluate(extent));
  }
  program.kernels.push_back(std::make_shared<const ir::Kernel>(kernel));
  for (int rank = 0; rank < ranks; ++rank) {
    program.streams.push_back({"main", rank, kernel.where});
    ir::ProgramOperation launch;
    launch.stream = rank;
    launch.where = kernel.where;
    launch.epoch = launch.epochs_per_run = 1;
    launch.scalars = scalars;
    for (std::size_t i = 0; i < program.buffers.size(); ++i) {
      const std::vector<Dim>& shape = program.buffers[i].shape;
      launch.tensors.push_back(
          {static_cast<int>(i), rank, std::vector<Dim>(shape.size(), 0), shape});
    }
    ir::check_launch(program, launch);
    program.operations.push_back(std::move(launch));
  }
  return program;
}

}  // namespace tilewright::library
