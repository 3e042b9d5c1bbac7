#pragma once

#include <filesystem>
#include <optional>

#include "runtime/nvrtc.h"

namespace tilewright::runtime {

class BuildCache;

struct Build {
  CompiledKernel kernel;
  bool from_cache = false;
};

// The cubin of the request, from the cache when the same source, options, architecture and compiler
// version were built before. The report is checked against the policy in both cases, so that a
// cached build fails as the first one did; the policy is no part of the key.
Build build_cubin(const CompileRequest& request, const ResourcePolicy& policy,
                  const Nvrtc& compiler, const BuildCache& cache);

// The PTX of the request, from the cache as a cubin is.
std::string build_ptx(const CompileRequest& request, const Nvrtc& compiler,
                      const BuildCache& cache);
std::string build_ptx(const CompileRequest& request);

// Cubins may come with the library: built ahead, in the folder `cubins` beside it. No compiler is
// asked for them, and none is a part of their key.
std::filesystem::path shipped_cubins();
std::optional<Build> shipped_cubin(const CompileRequest& request, const ResourcePolicy& policy,
                                   const BuildCache& shipped);
// Makes such a folder of what the cache has, and says how many cubins.
int ship_cubins(const BuildCache& cache, const BuildCache& shipped);

// One that came with the library, else with the process's compiler and the default cache.
Build build_cubin(const CompileRequest& request, const ResourcePolicy& policy = {});

}  // namespace tilewright::runtime
