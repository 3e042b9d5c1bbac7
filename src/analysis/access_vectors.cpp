#include "analysis/access_vectors.h"

#include <vector>

namespace tilewright::analysis {

int elements_at_once(const ir::Operation& access, DType dtype) {
  const ir::RegisterLayout& layout = access.attributes.register_layout();
  const std::vector<std::int64_t>& sizes = access.attributes.integers(ir::Key::sizes);
  if (sizes.empty() || sizes.back() == 0 || layout.registers.empty()) return 1;
  int inner = -1;  // the tile's axis of the tensor's last one
  for (const std::int64_t size : sizes) inner += size != 0;
  const ir::Mode& mode = layout.registers.front();
  if (mode.kind != ir::ModeKind::distribute || mode.axis != inner || mode.stride != 1) return 1;
  const int bytes = size_of(dtype);
  if (bytes > 4) return 1;
  int elements = 16 / bytes;
  while (elements > 1 && mode.size % elements != 0) elements /= 2;
  return elements * bytes < 4 ? 1 : elements;
}

}  // namespace tilewright::analysis
