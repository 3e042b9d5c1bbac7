#if defined(__x86_64__)

#define TW_LEVEL v2
#include "cpu/kernels/table.h"
#include "cpu/kernels/tables.h"

namespace tilewright::cpu {

constinit const Kernels kKernelsV2 = v2::table("v2");

}  // namespace tilewright::cpu

#endif
