#include "schedules/retracing.h"

namespace tilewright::schedules {
namespace {

Tensor tensor(const ir::Parameter& p, Kernel& kernel) {
  switch (p.kind) {
    case ir::Parameter::Kind::in:
      return kernel.in(p.name, p.dtype, p.shape, p.where);
    case ir::Parameter::Kind::out:
      return kernel.out(p.name, p.dtype, p.shape, p.where);
    case ir::Parameter::Kind::symmetric:
      return kernel.symmetric(p.name, p.dtype, p.shape, p.where);
    default:
      return kernel.inout(p.name, p.dtype, p.shape, p.where);
  }
}

}  // namespace

Parameters redeclare(const ir::Kernel& tile, Kernel& kernel) {
  Parameters parameters;
  for (const Dim& dim : tile.dims) {
    if (dim.name() == ir::kRanks) {
      kernel.ranks(tile.where);
    } else {
      kernel.dim(dim.name(), dim.facts(), tile.where);
    }
  }
  for (const ir::Parameter& p : tile.parameters) {
    if (p.is_tensor()) {
      parameters.tensors.emplace(p.value, tensor(p, kernel));
    } else {
      parameters.scalars.emplace(p.value, kernel.scalar(p.name, p.dtype, p.where));
    }
  }
  return parameters;
}

}  // namespace tilewright::schedules
