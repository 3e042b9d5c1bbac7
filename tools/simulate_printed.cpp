#include "simulate_printed.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "check/printed.h"
#include "check/shrunken_sizes.h"
#include "simulate_faults.h"
#include "support/diagnostic.h"

namespace tilewright::tools {

namespace {

using Json = nlohmann::ordered_json;

// The launches that were compared, as they are printed.
class Cases {
 public:
  explicit Cases(bool json) : json_(json) {}

  void add(std::size_t form, const std::string& sizes,
           const checks::PrintedDifference& difference) {
    all_ = all_ && difference.none();
    Json& made = cases_.emplace_back();
    made = {{"form", form}, {"sizes", sizes}, {"agrees", difference.none()}};
    if (!difference.none()) {
      made["kind"] = difference.kind;
      made["line"] = difference.line;
      made["message"] = difference.message;
    }
    if (json_) return;
    fmt::print("  form {}, {}: {}\n", form, sizes.empty() ? std::string("as set") : sizes,
               difference.none() ? "agrees"
                                 : fmt::format("{}, line {} of the PTX\n    {}", difference.kind,
                                               difference.line, difference.message));
  }
  int finish(const std::string& kernel) const {
    if (json_) {
      const Json report = {{"kernel", kernel}, {"agrees", all_}, {"cases", cases_}};
      fmt::print("{}\n", report.dump(2));
    } else {
      fmt::print("{}: the PTX of the printed kernel {} in {} launches\n", kernel,
                 all_ ? "does what the machine form does" : "differs from the machine form",
                 cases_.size());
    }
    return all_ ? 0 : static_cast<int>(ErrorKind::result);
  }

 private:
  const bool json_;
  Json cases_ = Json::array();
  bool all_ = true;
};

}  // namespace

int simulate_printed_program(const Request& request, const ir::Program& program,
                             const std::vector<std::vector<ir::Kernel>>& forms,
                             const std::vector<HostTensor>& before, std::int64_t multiprocessors) {
  Cases cases(request.json);
  std::size_t number = 0;
  for (const std::vector<ir::Kernel>& machine : forms) {
    std::vector<HostTensor> buffers = before;
    checks::PrintedOptions options;
    options.seed = request.seed;
    options.multiprocessors = multiprocessors;
    cases.add(++number, {}, checks::compare_printed(program, machine, buffers, options));
  }
  return cases.finish(program.name);
}

int simulate_printed(const Request& request, const library::KernelSource& source,
                     const compiler::Target& target) {
  Subject subject = subject_of(request, source, target);
  Cases cases(request.json);
  std::size_t number = 0;
  for (const ir::Kernel& form : subject.forms) {
    ++number;
    const codegen::CudaSource printed = checks::printed_source(form);
    const ptx::Module module = checks::printed_ptx(form, printed);
    for (std::size_t i = 0; i < subject.workloads.size(); ++i) {
      library::Workload& workload = subject.workloads[i];
      workload.poison_outputs();
      checks::PrintedOptions options;
      options.seed = request.seed;
      options.multiprocessors = checks::shrunken_multiprocessors(form);
      cases.add(
          number, subject.sizes[i],
          checks::compare_printed(form, printed.parameters, module, workload.arguments(), options));
    }
  }
  return cases.finish(source.entry().name);
}

}  // namespace tilewright::tools
