#pragma once

#include "kernels/caller.h"
#include "tilewright/kernels/all_to_all.h"

namespace tilewright::kernels {

// What is no projection_all_to_all is a usage error.
void check_projection(const ProjectionAllToAll& o, const Caller& caller);

}  // namespace tilewright::kernels
