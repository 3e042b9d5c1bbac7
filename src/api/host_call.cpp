#include "api/host_call.h"

// src/CMakeLists.txt says how it is compiled.
namespace tilewright::c_api {

void call_host(void* loop, int32_t parts, void (*call)(void* work, int32_t part), void* work) {
  const auto& host = *static_cast<const HostLoop*>(loop);
  host.parallel_for(host.context, parts, call, work);
}

}  // namespace tilewright::c_api
