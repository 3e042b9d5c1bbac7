#include "ir/program.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/binding.h"
#include "support/diagnostic.h"

namespace tilewright::ir {

std::int64_t ProgramBuffer::bytes() const {
  std::int64_t bytes = size_of(dtype);
  for (const std::int64_t extent : shape) bytes *= extent;
  return bytes;
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

void check_launch(const Program& program, const ProgramOperation& launch) {
  const Kernel& kernel = *program.kernels[launch.kernel];
  std::vector<TensorShape> shapes;
  for (const ProgramPart& part : launch.tensors) {
    const TensorArgument tensor =
        argument_of(program, part, [](int, int) -> std::byte* { return nullptr; });
    shapes.push_back({tensor.name, tensor.dtype, tensor.shape, tensor.strides});
  }
  ir::bind(kernel, shapes, 1, given_ranks(kernel, program.ranks));
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

void for_each_run(const TensorArgument& to, const TensorArgument& from,
                  const std::function<void(std::byte*, std::byte*, std::int64_t)>& copy) {
  const std::size_t rank = to.shape.size();
  if (std::find(to.shape.begin(), to.shape.end(), 0) != to.shape.end()) return;
  // Axes from here on lie in one piece in both.
  std::size_t inner = rank;
  std::int64_t elements = 1;
  while (inner > 0 && to.strides[inner - 1] == elements && from.strides[inner - 1] == elements) {
    elements *= to.shape[--inner];
  }
  const std::int64_t size = size_of(to.dtype);
  std::vector<std::int64_t> at(inner, 0);
  while (true) {
    std::int64_t to_offset = 0, from_offset = 0;
    for (std::size_t axis = 0; axis < inner; ++axis) {
      to_offset += at[axis] * to.strides[axis];
      from_offset += at[axis] * from.strides[axis];
    }
    copy(to.data + to_offset * size, from.data + from_offset * size, elements * size);
    std::size_t axis = inner;
    while (axis > 0 && ++at[axis - 1] == to.shape[axis - 1]) at[--axis] = 0;
    if (axis == 0) return;
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
