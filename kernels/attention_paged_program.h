#pragma once

#include "kernels/attention_paged_parameters.h"

namespace tilewright::kernels {

// The program of attention_paged whose keys are divided: `parts` computes on tiles of such rows,
// and attention_paged_join adds up what it gives.
Program paged_program(const char* name, const PagedAttention& a, const PagedRows& tile,
                      const Kernel& parts);

}  // namespace tilewright::kernels
