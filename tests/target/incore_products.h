#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "incore_kernels.h"
#include "ir/ir.h"
#include "simulator/machine/machine.h"
#include "support/arguments.h"
#include "tilewright/host_tensor.h"

// C = A B^T on cores with explicit memories: what tests simulate, whole or changed.
namespace tilewright::simulator {

inline TensorArgument given(const char* name, HostTensor& tensor) {
  return {name, tensor.dtype(), tensor.shape(), {}, static_cast<std::byte*>(tensor.data()), {}};
}

struct Product {
  HostTensor A, B, C;
  Product(std::int64_t m, std::int64_t n, std::int64_t k);
  Arguments arguments();
  // Relative, in the root mean square; NaN where an element was not written.
  double error() const;
  bool is_right() const { return error() < 3e-3; }
};

ir::Kernel machine_form(const Kernel& kernel);
// examples/incore_gemm.cpp in blocks of 32 x 48 and 64, of that sequencer of the target.
ir::Kernel example_product(const char* target, const char* sequencer);
// One for each core of the house.
std::vector<ir::Kernel> explicit_products();

MachineReport run_product(const ir::Kernel& machine, Product& product, std::uint64_t seed,
                          std::int64_t cores = 2);

// Without that one of such operations. Whether there is one.
bool drop(ir::Kernel& kernel, int site, const std::function<bool(const ir::Operation&)>& is_site);

}  // namespace tilewright::simulator
