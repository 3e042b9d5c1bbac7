#include "runtime/cubin_cache.h"

#include <fmt/format.h>

#include "runtime/build_cache.h"

namespace tilewright::runtime {
namespace {

enum Part : size_t { cubin, ptx, log, part_count };

// `identity` and the request are in use as long as the answer.
BuildCache::Inputs inputs_of(std::string_view kind, const std::string& identity,
                             const CompileRequest& request) {
  BuildCache::Inputs inputs = {kind, identity, request.arch, request.name, request.source};
  for (const std::string& option : request.options) inputs.push_back(option);
  return inputs;
}

}  // namespace

Build build_cubin(const CompileRequest& request, const ResourcePolicy& policy,
                  const Nvrtc& compiler, const BuildCache& cache) {
  compiler.require_arch(request.arch);
  const std::string identity = compiler.identity();
  const BuildCache::Inputs inputs = inputs_of("cubin", identity, request);
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

std::string build_ptx(const CompileRequest& request, const Nvrtc& compiler,
                      const BuildCache& cache) {
  const std::string identity = compiler.identity();
  const BuildCache::Inputs inputs = inputs_of("ptx", identity, request);
  auto parts = cache.load(inputs);
  if (parts && parts->size() == 1) return std::move(parts->front());
  std::string ptx = compiler.compile_to_ptx(request);
  cache.store(inputs, {ptx});
  return ptx;
}

std::string build_ptx(const CompileRequest& request) {
  return build_ptx(request, Nvrtc::get(), BuildCache(BuildCache::default_folder()));
}

}  // namespace tilewright::runtime
