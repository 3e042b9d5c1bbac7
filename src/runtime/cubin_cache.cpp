#include "runtime/cubin_cache.h"

#include <fmt/format.h>

#include "runtime/build_cache.h"

namespace tilewright::runtime {
namespace {

enum Part : size_t { cubin, ptx, log, part_count };

}  // namespace

Build build_cubin(const CompileRequest& request, const ResourcePolicy& policy,
                  const Nvrtc& compiler, const BuildCache& cache) {
  compiler.require_arch(request.arch);
  const std::string identity = compiler.identity();
  BuildCache::Inputs inputs = {"cubin", identity, request.arch, request.name, request.source};
  for (const std::string& option : request.options) inputs.push_back(option);
  Build build;
  auto parts = request.afresh ? std::nullopt : cache.load(inputs);
  if (parts && parts->size() == part_count) {
    build.from_cache = true;
    build.kernel.cubin = std::move((*parts)[cubin]);
    build.kernel.ptx = std::move((*parts)[ptx]);
    build.kernel.log = std::move((*parts)[log]);
    build.kernel.report = make_report(build.kernel.log, build.kernel.cubin);
  } else {
    build.kernel = compiler.compile(request);
    cache.store(inputs, {build.kernel.cubin, build.kernel.ptx, build.kernel.log});
  }
  check_report(build.kernel.report, policy, fmt::format("{} for {}", request.name, request.arch),
               request.where);
  return build;
}

Build build_cubin(const CompileRequest& request, const ResourcePolicy& policy) {
  return build_cubin(request, policy, Nvrtc::get(), BuildCache(BuildCache::default_folder()));
}

}  // namespace tilewright::runtime
