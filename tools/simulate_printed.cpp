#include "simulate_printed.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "check/printed.h"
#include "check/shrunken_sizes.h"
#include "compiler/build.h"
#include "simulate_faults.h"
#include "support/diagnostic.h"

namespace tilewright::tools {

int simulate_printed(const Request& request, const library::KernelSource& source,
                     const compiler::Target& target) {
  using Json = nlohmann::ordered_json;
  Subject subject = subject_of(request, source, target);
  Json cases = Json::array();
  bool all = true;
  std::size_t number = 0;
  for (const ir::Kernel& form : subject.forms) {
    ++number;
    const compiler::GpuProgram program{form, codegen::print(form)};
    const ptx::Module module =
        ptx::parse(compiler::build_ptx(program, target.arch), form.name + ".ptx");
    for (std::size_t i = 0; i < subject.workloads.size(); ++i) {
      library::Workload& workload = subject.workloads[i];
      workload.poison_outputs();
      checks::PrintedOptions options;
      options.seed = request.seed;
      options.multiprocessors = checks::shrunken_multiprocessors(form);
      const checks::PrintedDifference difference = checks::compare_printed(
          form, program.source.parameters, module, workload.arguments(), options);
      all = all && difference.none();
      Json& made = cases.emplace_back();
      made = {{"form", number}, {"sizes", subject.sizes[i]}, {"agrees", difference.none()}};
      if (!difference.none()) {
        made["kind"] = difference.kind;
        made["line"] = difference.line;
        made["message"] = difference.message;
      }
      if (request.json) continue;
      fmt::print("  form {}, {}: {}\n", number,
                 subject.sizes[i].empty() ? std::string("as set") : subject.sizes[i],
                 difference.none() ? "agrees"
                                   : fmt::format("{}, line {} of the PTX\n    {}", difference.kind,
                                                 difference.line, difference.message));
    }
  }
  if (request.json) {
    const Json report = {{"kernel", source.entry().name}, {"agrees", all}, {"cases", cases}};
    fmt::print("{}\n", report.dump(2));
  } else {
    fmt::print("{}: the PTX of the printed kernel {} in {} launches\n", source.entry().name,
               all ? "does what the machine form does" : "differs from the machine form",
               cases.size());
  }
  return all ? 0 : static_cast<int>(ErrorKind::result);
}

}  // namespace tilewright::tools
