#pragma once

#include "tilewright/kernels/attention.h"

namespace tilewright::kernels {

// How the shared memory of a CTA and the registers of its threads are divided for given blocks.
struct Sm90Plan {
  int q_stages, kv_stages;
  // The output leaves through `o_buffers` buffers of so many columns in turn.
  int o_columns, o_buffers;
  int load_registers, math_registers;  // a thread
};
// Raises for blocks that do not fit.
Sm90Plan sm90_plan(const Attention& attention);

}  // namespace tilewright::kernels
