#include "driver/explanation.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <set>
#include <span>

#include "ir/text.h"
#include "passes/pipeline.h"
#include "runtime/process.h"
#include "support/diagnostic.h"
#include "support/file.h"

namespace tilewright::driver {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// What does not become an instruction of the GPU.
bool is_structure(const ir::Operation& operation) {
  static const std::set<ir::Op> kStructure = {
      ir::Op::constant, ir::Op::dim,       ir::Op::for_loop,  ir::Op::while_loop,
      ir::Op::if_then,  ir::Op::yield,     ir::Op::role,      ir::Op::elect,
      ir::Op::shared,   ir::Op::mbarriers, ir::Op::registers, ir::Op::tensor_map};
  return kStructure.count(operation.op) != 0;
}

std::map<std::string, std::int64_t> count_instructions(const ir::Kernel& kernel) {
  std::map<std::string, std::int64_t> counts;
  ir::for_each(kernel.body, [&](const ir::Operation& operation) {
    if (is_structure(operation)) return;
    const bool is_product = operation.op == ir::Op::wgmma_ss || operation.op == ir::Op::wgmma_rs;
    ++counts[std::string(ir::info(operation.op).name)];
    if (is_product) ++counts["wgmma"];
  });
  return counts;
}

class Recorder {
 public:
  explicit Recorder(Explanation& explanation) : explanation_(explanation) {}

  void operator()(const Stage& stage, const ir::Kernel& kernel) {
    explanation_.stages.push_back(stage);
    const std::size_t number = explanation_.stages.size();
    // Printing the text is no part of the compilation's time.
    const auto start = Clock::now();
    if (stage.changed && stage.name != "print_cuda") {
      explanation_.dump.push_back(
          {fmt::format("{:02}-{}.tw", number, stage.name), ir::to_text(kernel)});
    }
    excluded_ += milliseconds_since(start);
  }
  double excluded_milliseconds() const { return excluded_; }

 private:
  Explanation& explanation_;
  double excluded_ = 0;
};

void add_build(Explanation& explanation, const GpuProgram& program, const std::string& arch) {
  const auto start = Clock::now();
  try {
    const runtime::Build build = assemble(program, arch);
    explanation.build_milliseconds = milliseconds_since(start);
    explanation.from_cache = build.from_cache;
    const runtime::FunctionResources* function = build.kernel.report.find(program.source.entry);
    if (function != nullptr) {
      explanation.resources.registers = function->registers;
      explanation.resources.stack_bytes = function->stack_bytes;
      explanation.resources.spill_bytes =
          std::max(function->spill_store_bytes, 0) + std::max(function->spill_load_bytes, 0);
    }
    explanation.warnings = runtime::warnings_of(build.kernel.report);
    explanation.dump.push_back({"kernel.ptx", build.kernel.ptx});
    explanation.dump.push_back({"kernel.cubin", build.kernel.cubin});
    explanation.dump.push_back({"nvrtc.log", build.kernel.log});
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::unavailable) throw;
    explanation.no_cubin = error.what();
    explanation.warnings.push_back("not assembled: " + error.message());
  }
}

std::string resource_text(const Explanation& explanation) {
  std::string text;
  const Resources& r = explanation.resources;
  const auto line = [&text](const char* what, std::int64_t value) {
    text +=
        value < 0 ? fmt::format("{:<14} unknown\n", what) : fmt::format("{:<14} {}\n", what, value);
  };
  line("registers", r.registers);
  line("stack bytes", r.stack_bytes);
  line("spill bytes", r.spill_bytes);
  line("shared bytes", r.shared_bytes);
  for (const SharedUse& use : explanation.shared) {
    text += fmt::format("  {:<12} {} {}\n", use.name, use.bytes, format_location(use.where));
  }
  for (const auto& [name, count] : explanation.instructions) {
    text += fmt::format("{:<24} {}\n", name, count);
  }
  for (const std::string& warning : explanation.warnings) text += "warning: " + warning + "\n";
  return text;
}

}  // namespace

Explanation explain(const std::function<Kernel()>& trace, const Target& target) {
  Explanation explanation;
  Recorder record(explanation);
  const auto start = Clock::now();
  const Kernel kernel = trace();
  const ir::Kernel& traced = kernel.finish();
  record({"trace", milliseconds_since(start), true}, traced);

  if (target.kind == Target::Kind::interpreter) {
    ir::Kernel simplified = traced;
    passes::simplify_kernel(simplified, [&](std::string_view name, const ir::Kernel& after,
                                            double milliseconds, bool changed) {
      record({std::string(name), milliseconds, changed}, after);
    });
    explanation.front_end_milliseconds = milliseconds_since(start) - record.excluded_milliseconds();
    explanation.instructions = count_instructions(simplified);
    return explanation;
  }

  const GpuProgram program = translate(traced, std::ref(record));
  explanation.front_end_milliseconds = milliseconds_since(start) - record.excluded_milliseconds();
  explanation.instructions = count_instructions(program.machine);
  explanation.resources.shared_bytes = program.machine.shared_bytes;
  explanation.shared = shared_use(program.machine);
  explanation.dump.push_back({"kernel.cu", program.source.text});
  add_build(explanation, program, target.arch);
  explanation.dump.push_back({"resources.txt", resource_text(explanation)});
  return explanation;
}

namespace {

// Beside the cubin, where one of NVIDIA's disassemblers is installed.
void write_sass(const std::filesystem::path& folder) {
  const std::string cubin = (folder / "kernel.cubin").string();
  std::vector<std::string> command;
  if (const auto path = runtime::find_program("nvdisasm")) {
    command = {*path, cubin};
  } else if (const auto other = runtime::find_program("cuobjdump")) {
    command = {*other, "-sass", cubin};
  } else {
    return;
  }
  const runtime::ProcessResult result = runtime::run_process(command);
  const std::string& text = result.output;
  if (result.status != 0) return;
  write_file((folder / "kernel.sass").string(),
             {std::as_bytes(std::span(text.data(), text.size()))});
}

}  // namespace

void write_dump(const std::string& folder, const std::vector<DumpFile>& files) {
  namespace fs = std::filesystem;
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) {
    Diagnostic({}, fmt::format("{}: cannot make the folder: {}", folder, failed.message()))
        .fix("name a folder that you may write to")
        .raise();
  }
  for (const DumpFile& file : files) {
    const std::string path = (fs::path(folder) / file.name).string();
    write_file(path, {std::as_bytes(std::span(file.text.data(), file.text.size()))});
    if (file.name == "kernel.cubin") write_sass(folder);
  }
}

}  // namespace tilewright::driver
