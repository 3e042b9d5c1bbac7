#pragma once

#include <vector>

#include "language/tracer.h"

namespace tilewright {

// A TensorView as the operands of an operation: a start and a limit an axis.
struct ResolvedView {
  ir::ValueId tensor = ir::kNoValue;
  const ir::Parameter* parameter = nullptr;
  std::vector<ir::ValueId> starts, limits;
  std::vector<std::int64_t> sizes;  // 0: indexed away
  std::vector<std::int64_t> shape;  // the sizes that are not 0
};
ResolvedView resolve(Tracer& tracer, const TensorView& view, const char* what,
                     SourceLocation where);

}  // namespace tilewright
