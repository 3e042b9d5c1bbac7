#include "ir/program.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/binding.h"
#include "support/diagnostic.h"

namespace tilewright::ir {
namespace {

// An axis of a copy, with its strides, in bytes.
struct CopiedAxis {
  std::int64_t extent, to, from;
};

// The innermost first: bytes. Axes that follow each other without a gap on both sides are one.
std::vector<CopiedAxis> joined_axes(const TensorArgument& to, const TensorArgument& from) {
  const std::int64_t size = size_of(to.dtype);
  std::vector<CopiedAxis> axes{{size, 1, 1}};
  for (std::size_t axis = to.shape.size(); axis-- > 0;) {
    if (to.shape[axis] == 1) continue;
    const CopiedAxis next{to.shape[axis], to.strides[axis] * size, from.strides[axis] * size};
    CopiedAxis& inner = axes.back();
    if (next.to == inner.to * inner.extent && next.from == inner.from * inner.extent) {
      inner.extent *= next.extent;
    } else {
      axes.push_back(next);
    }
  }
  return axes;
}

}  // namespace

std::int64_t ProgramBuffer::bytes() const {
  std::int64_t bytes = size_of(dtype);
  for (const std::int64_t extent : shape) bytes *= extent;
  return bytes;
}

ProgramBuffer::Kind owned_kind(const Parameter& parameter) {
  switch (parameter.kind) {
    case Parameter::Kind::workspace:
      return ProgramBuffer::Kind::workspace;
    case Parameter::Kind::scratch:
      return ProgramBuffer::Kind::scratch;
    case Parameter::Kind::in:
    case Parameter::Kind::out:
    case Parameter::Kind::inout:
    case Parameter::Kind::scalar:
    case Parameter::Kind::symmetric:
    case Parameter::Kind::signals:
      break;
  }
  return ProgramBuffer::Kind::signals;
}

TensorArgument argument_of(const Program& program, const ProgramPart& part,
                           const BufferAddress& address) {
  const ProgramBuffer& buffer = program.buffers[part.buffer];
  TensorArgument tensor;
  tensor.name = buffer.name;
  tensor.dtype = buffer.dtype;
  tensor.shape = part.sizes;
  tensor.strides.assign(buffer.shape.size(), 1);
  std::int64_t stride = 1, offset = 0;
  for (std::size_t axis = buffer.shape.size(); axis-- > 0;) {
    tensor.strides[axis] = stride;
    offset += part.starts[axis] * stride;
    stride *= buffer.shape[axis];
  }
  offset *= size_of(buffer.dtype);
  tensor.data = address(part.buffer, part.rank) + offset;
  for (int rank = 0; rank < program.ranks && program.ranks > 1; ++rank) {
    tensor.peers.push_back(address(part.buffer, rank) + offset);
  }
  return tensor;
}

Arguments arguments_of(const Program& program, const ProgramOperation& launch, std::int64_t run,
                       const BufferAddress& address) {
  Arguments arguments;
  for (const ProgramPart& part : launch.tensors) {
    arguments.tensors.push_back(argument_of(program, part, address));
  }
  for (const RunNumber& scalar : launch.scalars) arguments.scalars.push_back(scalar.at(run));
  arguments.rank = program.streams[launch.stream].rank;
  arguments.ranks = program.ranks;
  arguments.epoch = static_cast<int>(launch.epoch + (run - 1) * launch.epochs_per_run);
  return arguments;
}

void check_launch(const Program& program, const ProgramOperation& launch) {
  const Kernel& kernel = *program.kernels[launch.kernel];
  std::vector<TensorShape> shapes;
  for (const ProgramPart& part : launch.tensors) {
    const TensorArgument tensor =
        argument_of(program, part, [](int, int) -> std::byte* { return nullptr; });
    shapes.push_back({tensor.name, tensor.dtype, tensor.shape, tensor.strides});
  }
  std::vector<double> scalars;
  for (const RunNumber& scalar : launch.scalars) scalars.push_back(scalar.at(1));
  ir::bind(kernel, shapes, 1, given_ranks(kernel, program.ranks));
  ir::check_scalars(kernel, scalars);
}

std::vector<std::vector<HostTensor>> initial_tensors(const Program& program, std::uint64_t seed) {
  std::vector<std::vector<HostTensor>> tensors;
  for (int rank = 0; rank < program.ranks; ++rank) {
    std::vector<HostTensor>& buffers = tensors.emplace_back();
    for (const ProgramBuffer& buffer : program.buffers) {
      buffers.push_back(is_float(buffer.dtype)
                            ? HostTensor::random_normal(buffer.dtype, buffer.shape, seed++)
                            : HostTensor::zeros(buffer.dtype, buffer.shape));
    }
  }
  return tensors;
}

std::int32_t word_value(const RunNumber& value, std::int64_t run) {
  return static_cast<std::int32_t>(static_cast<std::int64_t>(value.at(run)));
}

void check_count(const Program& program, const char* what, std::int64_t count) {
  if (count >= 1) return;
  Diagnostic(program.where, fmt::format("program {}: {} {}", program.name, count, what))
      .fix("ask for one or more")
      .raise();
}

void check_tensors(const Program& program, const std::vector<std::vector<HostTensor>>& tensors) {
  const auto fail = [&program](const std::string& problem) {
    Diagnostic(program.where, fmt::format("program {}: {}", program.name, problem))
        .fix("make the ProgramMemory of this program, when all of its buffers are there")
        .raise();
  };
  if (tensors.size() != static_cast<std::size_t>(program.ranks)) {
    fail(fmt::format("memory of {} ranks for {}", tensors.size(), program.ranks));
  }
  for (int rank = 0; rank < program.ranks; ++rank) {
    const std::vector<HostTensor>& given = tensors[rank];
    if (given.size() > program.buffers.size()) {
      fail(fmt::format("memory of {} buffers for {}", given.size(), program.buffers.size()));
    }
    for (std::size_t i = 0; i < program.buffers.size(); ++i) {
      const ProgramBuffer& buffer = program.buffers[i];
      const std::string name = name_of(program, static_cast<int>(i), rank);
      if (i >= given.size()) {
        if (buffer.kind == ProgramBuffer::Kind::tensor) fail("the memory has no " + name);
        continue;
      }
      if (given[i].dtype() == buffer.dtype && given[i].shape() == buffer.shape) continue;
      fail(fmt::format("the memory has {} {{{}}} for {}, which is {} {{{}}}",
                       tilewright::name_of(given[i].dtype()), fmt::join(given[i].shape(), ", "),
                       name, tilewright::name_of(buffer.dtype), fmt::join(buffer.shape, ", ")));
    }
  }
}

void for_each_rows(const TensorArgument& to, const TensorArgument& from,
                   const std::function<void(const CopiedRows&)>& copy) {
  if (std::find(to.shape.begin(), to.shape.end(), 0) != to.shape.end()) return;
  const std::vector<CopiedAxis> axes = joined_axes(to, from);
  const CopiedAxis rows = axes.size() > 1 ? axes[1] : CopiedAxis{1, 0, 0};
  std::int64_t pieces = 1;
  for (std::size_t axis = 2; axis < axes.size(); ++axis) pieces *= axes[axis].extent;
  for (std::int64_t piece = 0; piece < pieces; ++piece) {
    std::int64_t rest = piece, to_offset = 0, from_offset = 0;
    for (std::size_t axis = 2; axis < axes.size(); ++axis) {
      const std::int64_t at = rest % axes[axis].extent;
      rest /= axes[axis].extent;
      to_offset += at * axes[axis].to;
      from_offset += at * axes[axis].from;
    }
    copy({to.data + to_offset, from.data + from_offset, axes[0].extent, rows.extent, rows.to,
          rows.from});
  }
}

std::string name_of(const Program& program, int buffer, int rank) {
  const std::string& name = program.buffers[buffer].name;
  return program.ranks > 1 ? fmt::format("{} of rank {}", name, rank) : name;
}

std::string ranks_text(int ranks) { return fmt::format("{} rank{}", ranks, ranks == 1 ? "" : "s"); }

std::string name_of(const Program& program, const ProgramStream& stream) {
  return program.ranks > 1 ? fmt::format("stream {} of rank {}", stream.name, stream.rank)
                           : "stream " + stream.name;
}

}  // namespace tilewright::ir
