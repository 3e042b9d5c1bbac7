#if !defined(__x86_64__)

#define TW_LEVEL baseline
#include "cpu/kernels/table.h"
#include "cpu/kernels/tables.h"

namespace tilewright::cpu {

#if defined(__aarch64__)
constinit const Kernels kKernelsBaseline = baseline::table("neon");
#else
constinit const Kernels kKernelsBaseline = baseline::table("baseline");
#endif

}  // namespace tilewright::cpu

#endif
