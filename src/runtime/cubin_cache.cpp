#include "runtime/cubin_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "runtime/build_cache.h"
#include "runtime/dynamic_library.h"
#include "support/diagnostic.h"
#include "support/hash.h"
#include "support/messages.h"

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

// The source is as long as several cubins: its hash stands for it.
BuildCache::Inputs shipped_inputs(const std::string& arch, const std::string& name,
                                  const std::string& source_hash,
                                  const std::vector<std::string>& options) {
  BuildCache::Inputs inputs = {"shipped", arch, name, source_hash};
  for (const std::string& option : options) inputs.push_back(option);
  return inputs;
}

// Without how long the assembler took, so that what is built twice is the same.
std::string without_times(const std::string& log) {
  std::string kept;
  for (std::size_t at = 0; at < log.size();) {
    const std::size_t end = std::min(log.find('\n', at), log.size() - 1) + 1;
    const std::string line = log.substr(at, end - at);
    if (line.find("Compile time") == std::string::npos) kept += line;
    at = end;
  }
  return kept;
}

void check(const Build& build, const CompileRequest& request, const ResourcePolicy& policy) {
  check_report(build.kernel.report, policy, fmt::format("{} for {}", request.name, request.arch),
               request.where);
}

}  // namespace

Build build_cubin(const CompileRequest& request, const ResourcePolicy& policy,
                  const Nvrtc& compiler, const BuildCache& cache) {
  compiler.require_arch(request.arch);
  const std::string identity = compiler.identity();
  const BuildCache::Inputs inputs = inputs_of("cubin", identity, request);
  Build build;
  auto parts = request.afresh ? std::nullopt : cache.load(inputs);
  std::optional<BuildCache::Turn> turn;
  if (!parts && !request.afresh) {
    turn.emplace(cache, inputs);
    parts = cache.load(inputs);
  }
  if (parts && parts->size() == part_count) {
    build.from_cache = true;
    build.kernel.cubin = std::move((*parts)[cubin]);
    build.kernel.ptx = std::move((*parts)[ptx]);
    build.kernel.log = std::move((*parts)[log]);
    build.kernel.report = make_report(build.kernel.log, build.kernel.cubin);
    say(Message::information,
        fmt::format("{} for {}: from {}", request.name, request.arch, cache.folder().string()));
  } else {
    const auto started = std::chrono::steady_clock::now();
    build.kernel = compiler.compile(request);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - started;
    say(Message::information,
        fmt::format("{} for {}: compiled by NVRTC {} in {:.2f} s", request.name, request.arch,
                    compiler.version(), took.count()));
    cache.store(inputs, {build.kernel.cubin, build.kernel.ptx, build.kernel.log});
  }
  check(build, request, policy);
  return build;
}

std::filesystem::path shipped_cubins() {
  const std::filesystem::path own = own_folder();
  return own.empty() ? own : own / "cubins";
}

std::optional<Build> shipped_cubin(const CompileRequest& request, const ResourcePolicy& policy,
                                   const BuildCache& shipped) {
  if (request.afresh) return std::nullopt;
  const std::string source_hash = content_hash(request.source);
  auto parts =
      shipped.load(shipped_inputs(request.arch, request.name, source_hash, request.options));
  if (!parts || parts->size() != part_count) return std::nullopt;
  Build build;
  build.from_cache = true;
  build.kernel.cubin = std::move((*parts)[cubin]);
  build.kernel.log = std::move((*parts)[log]);
  build.kernel.report = make_report(build.kernel.log, build.kernel.cubin);
  say(Message::information,
      fmt::format("{} for {}: from {}", request.name, request.arch, shipped.folder().string()));
  check(build, request, policy);
  return build;
}

int ship_cubins(const BuildCache& cache, const BuildCache& shipped) {
  enum Input : std::size_t { kind, compiler, architecture, name, source, first_option };
  int count = 0;
  for (const BuildCache::Entry& entry : cache.entries()) {
    const std::vector<std::string>& of = entry.inputs;
    if (of.size() < first_option || of[kind] != "cubin" || entry.parts.size() != part_count)
      continue;
    const std::string source_hash = content_hash(of[source]);
    const bool kept = shipped.store(shipped_inputs(of[architecture], of[name], source_hash,
                                                   {of.begin() + first_option, of.end()}),
                                    {entry.parts[cubin], "", without_times(entry.parts[log])});
    if (!kept) {
      Diagnostic({}, fmt::format("{}: cubins cannot be kept there", shipped.folder().string()))
          .fix("name a folder of yours with room for them, that nobody else may write to")
          .raise();
    }
    ++count;
  }
  return count;
}

Build build_cubin(const CompileRequest& request, const ResourcePolicy& policy) {
  static const BuildCache shipped(shipped_cubins());
  if (auto build = shipped_cubin(request, policy, shipped)) return *std::move(build);
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
