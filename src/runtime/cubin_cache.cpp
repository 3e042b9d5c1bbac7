#include "runtime/cubin_cache.h"

#include <fmt/format.h>

#include "runtime/build_cache.h"

namespace tilewright::runtime {
namespace {

enum Part : size_t { cubin, ptx, log, part_count };

std::string key_of(std::string_view kind, const CompileRequest& request, const Nvrtc& compiler) {
  const std::string identity = compiler.identity();
  std::vector<std::string_view> inputs = {kind, identity, request.arch, request.name,
                                          request.source};
  for (const std::string& option : request.options) inputs.push_back(option);
  return BuildCache::key(inputs);
}

}  // namespace

Build build_cubin(const CompileRequest& request, const ResourcePolicy& policy,
                  const Nvrtc& compiler, const BuildCache& cache) {
  compiler.require_arch(request.arch);
  const std::string key = key_of("cubin", request, compiler);
  Build build;
  if (auto parts = cache.load(key); parts && parts->size() == part_count) {
    build.from_cache = true;
    build.kernel.cubin = std::move((*parts)[cubin]);
    build.kernel.ptx = std::move((*parts)[ptx]);
    build.kernel.log = std::move((*parts)[log]);
    build.kernel.report = make_report(build.kernel.log, build.kernel.cubin);
  } else {
    build.kernel = compiler.compile(request);
    cache.store(key, {build.kernel.cubin, build.kernel.ptx, build.kernel.log});
  }
  check_report(build.kernel.report, policy, fmt::format("{} for {}", request.name, request.arch),
               request.where);
  return build;
}

Build build_cubin(const CompileRequest& request, const ResourcePolicy& policy) {
  return build_cubin(request, policy, Nvrtc::get(), BuildCache(BuildCache::default_folder()));
}

std::string build_ptx(const CompileRequest& request, const Nvrtc& compiler,
                      const BuildCache& cache) {
  const std::string key = key_of("ptx", request, compiler);
  if (auto parts = cache.load(key); parts && parts->size() == 1) return std::move(parts->front());
  std::string ptx = compiler.compile_to_ptx(request);
  cache.store(key, {ptx});
  return ptx;
}

std::string build_ptx(const CompileRequest& request) {
  return build_ptx(request, Nvrtc::get(), BuildCache(BuildCache::default_folder()));
}

}  // namespace tilewright::runtime
