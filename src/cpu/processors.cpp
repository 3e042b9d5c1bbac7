#include "cpu/processors.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <thread>

namespace tilewright::cpu {
namespace {

// Of "max 100000" or "150000 100000"; -1, which version 1 has, is no quota either.
double processors_of(std::istream& text) {
  double quota = 0, period = 0;
  return text >> quota >> period && quota > 0 && period > 0 ? quota / period : INFINITY;
}

// By version 2 of cgroups.
double quota_of_unified(const std::string& folder) {
  std::ifstream both(folder + "/cpu.max");
  return processors_of(both);
}

// By version 1.
double quota_of_controller(const std::string& folder) {
  std::ifstream quota(folder + "/cpu.cfs_quota_us"), period(folder + "/cpu.cfs_period_us");
  std::stringstream both;
  if (quota && period) both << quota.rdbuf() << ' ' << period.rdbuf();
  return processors_of(both);
}

// The least of a group's own and of all around it. In a container the group's path may be that of
// the host, which is not there: the root is then the group.
template <typename Quota>
double least_of(const std::string& root, std::string group, const Quota& quota_of) {
  double least = quota_of(root);
  for (; group.size() > 1; group.erase(group.rfind('/'))) {
    least = std::min(least, quota_of(root + group));
  }
  return least;
}

bool names_cpu(const std::string& controllers) {
  return ("," + controllers + ",").find(",cpu,") != std::string::npos;
}

}  // namespace

unsigned allowed_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) {
    return static_cast<unsigned>(std::max(CPU_COUNT(&set), 1));
  }
  return std::max(std::thread::hardware_concurrency(), 1u);
}

unsigned quota_processors(const std::string& groups, const std::string& root) {
  std::istringstream lines(groups);
  double least = INFINITY;
  std::string line;
  while (std::getline(lines, line)) {  // "4:cpu,cpuacct:/a/b"; of version 2 "0::/a/b"
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (controllers.empty()) {
      least = std::min(least, least_of(root, group, quota_of_unified));
    } else if (names_cpu(controllers)) {
      for (const std::string& hierarchy : {std::string("cpu"), controllers}) {
        least = std::min(least, least_of(root + "/" + hierarchy, group, quota_of_controller));
      }
    }
  }
  return std::isinf(least) ? 0 : static_cast<unsigned>(std::ceil(least));
}

unsigned quota_processors() {
  std::ifstream file("/proc/self/cgroup");
  std::stringstream groups;
  if (file) groups << file.rdbuf();
  return quota_processors(groups.str(), "/sys/fs/cgroup");
}

std::int64_t last_level_cache(const std::string& folder) {
  std::int64_t highest = 0, kilobytes = 0;
  for (int i = 0;; ++i) {
    const std::string cache = folder + "/index" + std::to_string(i);
    std::ifstream level(cache + "/level"), size(cache + "/size");
    std::int64_t number = 0, count = 0;
    if (!(level >> number && size >> count)) break;  // "1024K"
    if (number < highest) continue;
    highest = number;
    kilobytes = count;
  }
  return kilobytes << 10;
}

std::int64_t last_level_cache() { return last_level_cache("/sys/devices/system/cpu/cpu0/cache"); }

}  // namespace tilewright::cpu
