#if defined(__x86_64__)

#define TW_LEVEL v4
#include "cpu/kernels/table.h"
#include "cpu/kernels/tables.h"

namespace tilewright::cpu {

constinit const Kernels kKernelsV4 = v4::table("v4");

}  // namespace tilewright::cpu

#endif
