#pragma once

#include <string>
#include <string_view>

#include "tilewright/kernel.h"
#include "tilewright/numerics.h"
#include "tilewright/program.h"
#include "tilewright/schedule.h"

// What `tilewright explain` says, of a kernel of one's own, for the targets that it takes, such as
// "sm_90a", "cuda" or "cpu". A kernel that cannot be compiled raises as compile() does. Claims that
// do not hold, and a missing NVRTC, are part of the answer.
namespace tilewright {

// As `tilewright explain --json`, without the roofline: sizes are known when a kernel is launched.
std::string explain_json(const Kernel& kernel, std::string_view target,
                         const Numerics& numerics = {}, const Schedule& schedule = {});
// As `tilewright explain --html`: one document that needs nothing else.
std::string explain_page(const Kernel& kernel, std::string_view target,
                         const Numerics& numerics = {}, const Schedule& schedule = {});

// The same of a program: what it queues, in order, and each of its kernels. Its dims need no
// values.
std::string explain_json(const Program& program, std::string_view target,
                         const Numerics& numerics = {});
std::string explain_page(const Program& program, std::string_view target,
                         const Numerics& numerics = {});

}  // namespace tilewright
