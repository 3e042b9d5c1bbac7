#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "command.h"
#include "json_text.h"
#include "runtime/build_cache.h"
#include "runtime/cubin_cache.h"
#include "support/escape.h"

namespace tilewright::tools {

int cache(const Request& request) {
  const runtime::BuildCache cache(runtime::BuildCache::default_folder());
  if (!request.ship.empty()) {
    const int count = runtime::ship_cubins(cache, runtime::BuildCache(request.ship));
    fmt::print("{}: {} cubins\n", escaped_lines(request.ship), count);
    return 0;
  }
  const runtime::BuildCache::State state = request.clear ? cache.clear() : cache.state();
  const std::string folder = cache.folder().string();
  if (request.json) {
    nlohmann::ordered_json json = {{"folder", nullptr},
                                   {"entries", state.entries},
                                   {"bytes", state.bytes},
                                   {"cleared", request.clear},
                                   {"unusable", nullptr}};
    if (!folder.empty()) json["folder"] = folder;
    if (!state.unusable.empty() && !request.clear) json["unusable"] = state.unusable;
    fmt::print("{}\n", json_text(json));
    return 0;
  }
  if (folder.empty()) {
    fmt::print("there is no cache: {}\n", state.unusable);
    return 0;
  }
  fmt::print("{}{}: {} built kernels, {:.1f} MB\n", escaped_lines(folder),
             request.clear ? " is cleared" : "", state.entries,
             static_cast<double>(state.bytes) / 1e6);
  if (!state.unusable.empty() && !request.clear) {
    fmt::print(
        "it is not used: {}\n  fix: set TILEWRIGHT_CACHE to another; where it is yours, and others "
        "may write to it, `tilewright cache --clear` ends that\n",
        state.unusable);
  }
  return 0;
}

}  // namespace tilewright::tools
