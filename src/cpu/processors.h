#pragma once

#include <cstdint>
#include <string>

namespace tilewright::cpu {

// Processors that the calling thread may run on, at least 1.
unsigned allowed_processors();

// As many processors as the quotas of this process's cgroup and of those around it come to, rounded
// up; 0: there is no quota.
unsigned quota_processors();
// The same, where `groups` is what /proc/self/cgroup has, and `root` the folder of the hierarchies.
unsigned quota_processors(const std::string& groups, const std::string& root);

// Bytes of the last-level cache, or 0 where nothing says it.
std::int64_t last_level_cache();
// The same, where `folder` has one for each of a processor's caches.
std::int64_t last_level_cache(const std::string& folder);

}  // namespace tilewright::cpu
