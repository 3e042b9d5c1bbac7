#if defined(__x86_64__)

#define TW_LEVEL v3
#include "cpu/kernels/table.h"
#include "cpu/kernels/tables.h"

namespace tilewright::cpu {

constinit const Kernels kKernelsV3 = v3::table("v3");

}  // namespace tilewright::cpu

#endif
