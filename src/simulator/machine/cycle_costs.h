#pragma once

#include <cstdint>

#include "simulator/machine/prepared_kernel.h"

// What an operation takes on the time axis of a trace, in cycles, by the rates of the kernel's
// target. It is a model to draw overlaps by, not a measurement: warps do not slow each other here,
// except at the tensor cores and where bytes pass.
namespace tilewright::simulator {

// How long the instruction keeps its warp, waits aside.
std::int64_t issue_cycles(const PreparedKernel& kernel, const Instruction& instruction);
// What a warp holds of the array.
std::int64_t warp_bytes(const RegisterInfo& array);
// How long the product keeps the tensor cores.
std::int64_t product_cycles(const PreparedKernel& kernel, const Product& product);
// The same of one whose result is in tensor memory, of operands of the dtype.
std::int64_t product_cycles(const PreparedKernel& kernel, const ir::Operation& product,
                            DType dtype);
// How long the bytes keep the port to L2.
std::int64_t port_cycles(const PreparedKernel& kernel, std::int64_t bytes);
// How long L2 sends a box to the multiprocessor that asks for it, and how long its bytes come to
// the shared memory of any that receives it: by what the target's device was seen to reach.
std::int64_t l2_cycles(const PreparedKernel& kernel, const TensorMap& map, std::int64_t bytes);
std::int64_t received_cycles(const PreparedKernel& kernel, std::int64_t bytes);

}  // namespace tilewright::simulator
