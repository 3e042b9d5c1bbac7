#include "api/shared_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "distributed/members.h"
#include "distributed/packing.h"
#include "ir/program_text.h"
#include "support/diagnostic.h"

namespace tilewright {
namespace {

using Kind = ir::ProgramOperation::Kind;

// The tensor of the buffer among those that are passed.
const TensorArgument& argument_of(const ir::Program& program, int buffer,
                                  const std::vector<TensorArgument>& own) {
  const auto end = program.buffers.begin() + buffer;
  return own[static_cast<std::size_t>(
      std::count_if(program.buffers.begin(), end,
                    [](const ir::ProgramBuffer& each) { return each.is_passed(); }))];
}

std::size_t bytes_of(const TensorArgument& tensor) {
  std::int64_t last = 0;
  for (std::size_t axis = 0; axis < tensor.shape.size(); ++axis) {
    if (tensor.shape[axis] == 0) return 0;
    last += (tensor.shape[axis] - 1) * tensor.strides[axis];
  }
  return static_cast<std::size_t>((last + 1) * size_of(tensor.dtype));
}

[[noreturn]] void refuse(const ir::Program& program, const ReachedBuffer& reached,
                         const std::string& what) {
  Diagnostic(
      reached.operation->where,
      fmt::format("program {}: this {} reaches {} of other ranks: {}", program.name,
                  ir::name_of(reached.operation->kind), program.buffers[reached.buffer].name, what))
      .fix(
          "pass a tensor in memory that the ranks share (SymmetricArena, Group.symmetric), which "
          "all of them have at the same place of it; or load a ProgramMemory, run and store it")
      .raise();
}

}  // namespace

std::vector<ReachedBuffer> reached_by_others(const ir::Program& program) {
  std::map<int, ReachedBuffer> reached;
  const auto add = [&](const ir::ProgramOperation& operation, const ir::ProgramPart& part) {
    if (!program.buffers[part.buffer].is_passed()) return;
    reached.try_emplace(part.buffer, ReachedBuffer{part.buffer, &operation});
  };
  for (const ir::ProgramOperation& operation : program.operations) {
    const int rank = program.streams[operation.stream].rank;
    if (operation.kind == Kind::copy) {
      for (const ir::ProgramPart& part : {operation.to, operation.from}) {
        if (part.rank != rank) add(operation, part);
      }
    }
    if (operation.kind != Kind::launch) continue;
    std::size_t next = 0;
    for (const ir::Parameter& parameter : program.kernels[operation.kernel]->parameters) {
      if (!parameter.is_tensor() || next == operation.tensors.size()) continue;
      const ir::ProgramPart& part = operation.tensors[next++];
      if (parameter.is_symmetric()) add(operation, part);
    }
  }
  std::vector<ReachedBuffer> all;
  for (const auto& [buffer, each] : reached) all.push_back(each);
  return all;
}

std::map<int, std::vector<std::byte*>> shared_places(const Group& group, const ir::Program& program,
                                                     const std::vector<ReachedBuffer>& reached,
                                                     const std::vector<TensorArgument>& own) {
  std::map<int, std::vector<std::byte*>> places;
  std::vector<std::string> texts;
  for (const ReachedBuffer& each : reached) {
    const TensorArgument& tensor = argument_of(program, each.buffer, own);
    const auto found = group.members()->regions().find(tensor.data, bytes_of(tensor));
    texts.push_back(
        found ? fmt::format("byte {} of {} (arena {})", found->offset, found->name, found->number)
              : "");
    if (found) places[each.buffer] = found->ranks;
  }
  const std::vector<std::string> all = group.all_gather(
      distributed::pack(texts), fmt::format("the tensors of program {}", program.name));
  for (std::size_t i = 0; i < reached.size(); ++i) {
    if (texts[i].empty()) {
      refuse(program, reached[i],
             fmt::format("rank {} passes a tensor that lies in no memory that they share",
                         group.rank()));
    }
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      auto fields = distributed::unpack(all[rank]).value_or(std::vector<std::string>());
      fields.resize(reached.size());
      if (fields[i] == texts[i]) continue;
      refuse(
          program, reached[i],
          fields[i].empty()
              ? fmt::format("rank {} passes a tensor that lies in no memory that they share", rank)
              : fmt::format("rank {} passes it at {}, rank {} at {}", rank, fields[i], group.rank(),
                            texts[i]));
    }
  }
  return places;
}

}  // namespace tilewright
