#include <algorithm>

#include "check/shrunken_sizes.h"

namespace tilewright::checks {
namespace {

bool hangs_on(const Dim& dim, const std::string& name) {
  if (dim.is_constant()) return false;
  if (dim.kind() == Dim::Kind::symbol) return dim.name() == name;
  return hangs_on(dim.lhs(), name) || hangs_on(dim.rhs(), name);
}

bool waits(const ir::Kernel& machine) {
  bool found = false;
  ir::for_each(machine.body, [&](const ir::Operation& operation) {
    found = found || operation.op == ir::Op::wait_flag;
  });
  return found;
}

}  // namespace

std::int64_t largest_cluster(const std::vector<ir::Kernel>& machine) {
  std::int64_t ctas = 1;
  for (const ir::Kernel& kernel : machine) ctas = std::max(ctas, kernel.cluster);
  return ctas;
}

std::vector<std::int64_t> shrunken_multiprocessors(const ir::Program& program,
                                                   const std::vector<ir::Kernel>& machine,
                                                   std::int64_t usual) {
  std::int64_t least = 1;
  for (const ir::Kernel& kernel : machine) {
    least = std::max(least, shrunken_multiprocessors(kernel));
  }
  const auto depends = [](const std::vector<Dim>& dims) {
    return std::any_of(dims.begin(), dims.end(),
                       [](const Dim& dim) { return hangs_on(dim, ir::kMultiprocessors); });
  };
  const bool divides =
      std::any_of(program.buffers.begin(), program.buffers.end(),
                  [&](const ir::ProgramBuffer& buffer) { return depends(buffer.shape); }) ||
      std::any_of(program.operations.begin(), program.operations.end(),
                  [&](const ir::ProgramOperation& operation) {
                    return std::any_of(operation.tensors.begin(), operation.tensors.end(),
                                       [&](const ir::ProgramPart& part) {
                                         return depends(part.starts) || depends(part.sizes);
                                       });
                  });
  std::vector<std::int64_t> counts{least};
  if (divides && least < usual) counts.push_back(usual);
  const std::int64_t one_cluster = largest_cluster(machine);
  if (one_cluster < least) counts.push_back(one_cluster);
  return counts;
}

std::int64_t shrunken_multiprocessors(const ir::Kernel& machine, bool further) {
  // CTAs of other ranks are waited for in no order.
  if (!ir::is_cooperative(machine)) return (waits(machine) ? 2 : 1) * machine.cluster;
  // Of 9 tiles one is left over for two clusters, of 16 one for five. Of larger clusters one more:
  // a kernel may count on GPCs whose multiprocessors they do not divide evenly.
  const std::int64_t clusters = (further ? 5 : 2) + (machine.cluster > 2 ? 1 : 0);
  return clusters * machine.cluster;
}

}  // namespace tilewright::checks
