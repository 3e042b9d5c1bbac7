#pragma once

#include "tilewright/c_api.h"

namespace tilewright::c_api {

// A host's function and what it is called with.
struct HostLoop {
  tilewright_parallel_for parallel_for;
  void* context;
};

// Calls it, of a HostLoop. An exception ends here: this function has no table of how to get out, so
// that whoever throws finds nobody who catches. The host's own runtime then says what was thrown
// and ends the process, where the stack still holds who threw.
void call_host(void* loop, int32_t parts, void (*call)(void* work, int32_t part), void* work);

}  // namespace tilewright::c_api
