#include "ir/program.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/binding.h"
#include "support/counted.h"
#include "support/diagnostic.h"

namespace tilewright::ir {
namespace {

// An axis of a copy, with its strides, in bytes.
struct CopiedAxis {
  std::int64_t extent, to, from;
};

// The innermost first: bytes. Axes that follow each other without a gap on both sides are one.
std::vector<CopiedAxis> joined_axes(const TensorArgument& to, const TensorArgument& from) {
  const std::int64_t size = to.element_bytes();
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
  std::int64_t last = 0, stride = 1;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    const std::int64_t extent = constant(shape[axis]);
    if (extent == 0) return 0;
    last += (extent - 1) * (strides.empty() ? stride : strides[axis]);
    stride *= extent;
  }
  TensorArgument element;
  element.dtype = dtype;
  element.is_double = is_double;
  return (last + 1) * element.element_bytes();
}

std::int64_t constant(const Dim& dim) {
  if (dim.is_constant()) return dim.constant();
  Diagnostic({}, fmt::format("the dim {} of a program is not bound", dim.to_string()),
             ErrorKind::internal)
      .raise();
}

std::vector<std::int64_t> constants(const std::vector<Dim>& dims) {
  std::vector<std::int64_t> values;
  values.reserve(dims.size());
  for (const Dim& dim : dims) values.push_back(constant(dim));
  return values;
}

std::string_view name_of(ProgramOperation::Kind kind) {
  constexpr std::string_view kNames[] = {"launch", "copy",   "zero",      "write",
                                         "wait",   "record", "wait_event"};
  return kNames[static_cast<int>(kind)];
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

ProgramPart owned_part(Program& program, const ProgramOperation& launch,
                       const Parameter& parameter) {
  const ProgramStream& stream = program.streams[launch.stream];
  const std::string& kernel = program.kernels[launch.kernel]->name;
  // No two kernels share one, also where they have the same name.
  const auto first = program.kernels.begin();
  const auto earlier = std::count_if(first, first + launch.kernel,
                                     [&](const auto& each) { return each->name == kernel; });
  std::string name = kernel;
  if (earlier != 0) name += fmt::format("#{}", earlier + 1);
  name += "." + parameter.name;
  if (parameter.is_of_stream()) name += " of " + name_of(program, stream);
  auto place = std::find_if(program.buffers.begin(), program.buffers.end(),
                            [&](const ProgramBuffer& each) { return each.name == name; });
  if (place == program.buffers.end()) {
    program.buffers.push_back(
        {owned_kind(parameter), name, parameter.dtype, parameter.shape, parameter.where});
    place = program.buffers.end() - 1;
  }
  return {static_cast<int>(place - program.buffers.begin()), stream.rank,
          std::vector<Dim>(parameter.shape.size(), 0), parameter.shape};
}

void add_owned(Program& program, const std::vector<Kernel>& machine) {
  for (ProgramOperation& operation : program.operations) {
    if (operation.kind != ProgramOperation::Kind::launch) continue;
    std::size_t tensor = 0;
    for (const Parameter& parameter : machine[operation.kernel].parameters) {
      if (!parameter.is_tensor() || tensor++ < operation.tensors.size()) continue;
      operation.tensors.push_back(owned_part(program, operation, parameter));
    }
  }
}

void hold_doubles(Program& bound) {
  for (ProgramBuffer& buffer : bound.buffers) buffer.is_double = true;
}

TensorArgument argument_of(const Program& program, const ProgramPart& part,
                           const BufferAddress& address) {
  const ProgramBuffer& buffer = program.buffers[part.buffer];
  TensorArgument tensor;
  tensor.name = buffer.name;
  tensor.dtype = buffer.dtype;
  tensor.is_double = buffer.is_double;
  tensor.shape = constants(part.sizes);
  tensor.strides = buffer.strides;
  tensor.strides.resize(buffer.shape.size(), 1);
  std::int64_t stride = 1, offset = 0;
  for (std::size_t axis = buffer.shape.size(); axis-- > 0;) {
    if (buffer.strides.empty()) tensor.strides[axis] = stride;
    offset += constant(part.starts[axis]) * tensor.strides[axis];
    stride *= constant(buffer.shape[axis]);
  }
  offset *= tensor.element_bytes();
  tensor.data = address(part.buffer, part.rank) + offset;
  for (int rank = 0; rank < program.ranks && program.ranks > 1; ++rank) {
    std::byte* const peer = address(part.buffer, rank);
    tensor.peers.push_back(peer == nullptr ? nullptr : peer + offset);
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

bool writes(const Program& program, const ProgramOperation& operation, int buffer) {
  switch (operation.kind) {
    case ProgramOperation::Kind::copy:
    case ProgramOperation::Kind::zero:
    case ProgramOperation::Kind::write:
      return operation.to.buffer == buffer;
    case ProgramOperation::Kind::wait:
    case ProgramOperation::Kind::record:
    case ProgramOperation::Kind::wait_event:
      return false;
    case ProgramOperation::Kind::launch:
      break;
  }
  std::size_t tensor = 0;
  for (const Parameter& parameter : program.kernels[operation.kernel]->parameters) {
    if (!parameter.is_tensor()) continue;
    const bool is_it = operation.tensors[tensor++].buffer == buffer;
    if (is_it && parameter.kind != Parameter::Kind::in) return true;
  }
  return false;
}

std::int32_t word_value(const RunNumber& value, std::int64_t run) {
  return static_cast<std::int32_t>(static_cast<std::int64_t>(value.at(run)));
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

std::string ranks_text(int ranks) { return counted(ranks, "rank"); }

std::string name_of(const Program& program, const ProgramStream& stream) {
  return program.ranks > 1 ? fmt::format("stream {} of rank {}", stream.name, stream.rank)
                           : "stream " + stream.name;
}

}  // namespace tilewright::ir
