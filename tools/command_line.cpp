#include "command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <regex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/diagnostic.h"
#include "tilewright/error.h"
#include "tilewright/version.h"
#include "timeout.h"

namespace tilewright::tools {
namespace {

// Within a kernel no length at all stands for lengths that are not set. Who writes it means
// something else.
std::string problem_of_setting(const std::string& word) {
  const std::size_t at = word.find('=');
  if (at == std::string::npos || at + 1 < word.size()) return "";
  if (at == 0) return "'" + word + "' names nothing: write NAME=VALUE";
  const std::string name = word.substr(0, at);
  return name + " has no value: write " + name + "=VALUE, or leave it out";
}

// What CLI11 would wrap around, or take for the largest number.
std::string problem_of_seed(const std::string& word) {
  if (word.rfind('-', 0) == 0) return word + " is negative";
  std::uint64_t seed = 0;
  const auto read = std::from_chars(word.data(), word.data() + word.size(), seed);
  return read.ec == std::errc::result_out_of_range ? word + " is above 2^64 - 1" : "";
}

// A NaN lies inside of every CLI::Range.
std::string problem_of_seconds(const std::string& word) {
  return std::isnan(std::strtod(word.c_str(), nullptr)) ? word + " is no number" : "";
}

// An option that takes one value, and may be given again, is not one that takes several.
class Help : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    constexpr std::string_view kSeveral = " ...";
    std::string text = Formatter::make_option_opts(option);
    const std::size_t at = text.find(kSeveral);
    if (option->get_allow_extra_args() || at == std::string::npos) return text;
    return text.replace(at, kSeveral.size(), " (repeatable)");
  }
};

}  // namespace

// An empty variable of a script is no wish for the target of this machine.
std::string problem_of_target(const std::string& word) {
  return word.empty() ? "no target is named" : "";
}

CommandLine::CommandLine()
    : app_(std::make_unique<CLI::App>("GPU kernels as operations on tiles", "tilewright")) {
  app_->formatter(std::make_shared<Help>());
  app_->set_version_flag("--version", TILEWRIGHT_VERSION);
  app_->footer(
      "Exit status: 0 as asked; 1 a result falls short; 2 bad usage or input; 3 the target is "
      "not\n"
      "available here (tilewright doctor says what is missing); 4 a bug of Tilewright.");

  CLI::App* list = add("list", "The kernels that come with Tilewright", tools::list);
  list->add_option("kernel", request_.kernel, "Of one kernel alone, or of a file that ends in .tw");
  list->add_flag("--cases", request_.cases,
                 "Settings that together come to every case of the kernels' plans, and to every "
                 "two cases that go together: what scripts/prove runs. With --set the cases of "
                 "those settings");
  list->add_option("--set", request_.settings, "Of --cases: an option of the kernel, or schedule")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  list->add_option(
      "--target", request_.target,
      "The schedules of this target alone. With --cases those of sm_90a, of sm_100a with "
      "the kernels that have schedules for it, or of a core with explicit memories with "
      "the kernels that compile for it [sm_90a]");
  seed(list, "Of the settings that --cases draws");
  json(list);

  CLI::App* run = add("run", "Run a kernel on tensors", tools::run);
  kernel(run,
         "cpu, interpreter, sim:sm_90a (a simulated GPU), passes:sm_90a (the same before and "
         "after every pass of the compiler), or cuda (the GPU that is here)",
         Named::or_of_machine);
  inputs(run);
  run->add_option("--out", request_.outputs, "y.npy; bf16 is written as f32")
      ->type_name("NAME=FILE")
      ->allow_extra_args(false);
  run->add_flag("--check", request_.check, "Compare with a float64 reference");
  checked(run);
  timeout(run);
  seed(run, "Of the random inputs");
  json(run);

  CLI::App* explain = add("explain", "What a kernel is compiled to", tools::explain);
  kernel(explain, "cpu, interpreter, cuda, sm_90a or incore", Named::or_of_machine);
  explain
      ->add_option("--dump", request_.dump,
                   "Write every stage and its difference, the source, PTX and SASS to DIR")
      ->type_name("DIR");
  explain
      ->add_option("--html", request_.html,
                   "Write a page with source and CUDA side by side, pipeline, stages and roofline")
      ->type_name("FILE");
  explain
      ->add_option("--layouts", request_.layouts,
                   "Draw the layouts of registers and shared memory to DIR, as SVG")
      ->type_name("DIR");
  explain->add_flag("--diff", request_.diff, "Show what each stage changed");
  checked(explain);
  timeout(explain);
  json(explain);

  add_simulate();

  CLI::App* bench =
      add("bench", "Time a kernel; or `bench link`: rates and latencies between two GPUs",
          tools::bench);
  kernel(bench, "cpu, interpreter, or cuda (the GPU that is here); not for `link`",
         Named::or_of_machine);
  inputs(bench);
  bench->add_option("--gpus", request_.gpus, "Of `link`: two numbers [0,1]")->delimiter(',');
  bench->add_option("--mib", request_.mebibytes, "Of `link`: what a copy moves")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 14))
      ->capture_default_str();
  checked(bench);
  timeout(bench);
  seed(bench, "Of the random inputs");
  json(bench);

  add_tune();
  add_build();
  add_fuzz();
  add_stress();
  add_check_gradients();
  add_golden();

  CLI::App* doctor = add("doctor", "What this machine has, and what is missing", tools::doctor);
  json(doctor);

  CLI::App* cache = add(
      "cache", "Where built kernels are kept, how many, and whether they are used", tools::cache);
  cache->add_flag("--clear", request_.clear,
                  "Remove them, and let nobody else write to the folder");
  cache
      ->add_option("--ship", request_.ship,
                   "Write their cubins to DIR: as `cubins` beside a library they need no compiler")
      ->type_name("DIR")
      ->excludes("--clear");
  json(cache);
}

CommandLine::~CommandLine() = default;

int CommandLine::execute(int count, char** words) {
  if (count > 1 && words[1][0] != '-') check_command(words[1]);
  try {
    app_->parse(count, words);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app_->exit(error);  // --help
    refuse(error);
  }
  if (command_ == nullptr) {
    std::fputs(app_->help().c_str(), stderr);
    return static_cast<int>(ErrorKind::usage);
  }
  if (request_.timeout > 0) tools::end_after(request_.timeout);
  return command_(request_);
}

// CLI11 would name all the words behind it too.
void CommandLine::check_command(const std::string& word) {
  std::string known;
  for (const CLI::App* command : app_->get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_name() == word) return;
    known += (known.empty() ? "" : ", ") + command->get_name();
  }
  Diagnostic({}, "there is no command '" + word + "'").fix("use one of: " + known).raise();
}

namespace {

// What CLI11 says of a value, in words of our own: it names the types of C++.
std::string reworded(const std::string& said) {
  std::smatch parts;
  if (std::regex_match(said, parts, std::regex("Could not convert: (\\S+) = (.*)"))) {
    return fmt::format("{}: '{}' is no value that it takes", parts.str(1), parts.str(2));
  }
  if (std::regex_match(said, parts, std::regex("(\\S+): 1 required (\\S+) missing"))) {
    return fmt::format("{}: no value stands behind it", parts.str(1));
  }
  if (std::regex_match(said, parts, std::regex("(\\S+): Value (.*) not in range (.*) to (.*)"))) {
    return fmt::format("{}: '{}' is no number from {} to {}", parts.str(1), parts.str(2),
                       parts.str(3), parts.str(4));
  }
  return said;
}

}  // namespace

// CLI11 would say what is missing rather than what it does not know, often the same word
// misspelt.
void CommandLine::refuse(const CLI::ParseError& error) const {
  const std::vector<const CLI::App*> named = std::as_const(*app_).get_subcommands(
      [](const CLI::App* command) { return command->parsed(); });
  const CLI::App& command = named.empty() ? *app_ : *named.front();
  const std::string name = named.empty() ? "tilewright" : "tilewright " + command.get_name();
  const std::vector<std::string> unknown = command.remaining();
  std::string problem = reworded(error.what());
  if (!unknown.empty()) {
    const std::string& word = unknown.front();
    problem = word[0] == '-' ? "there is no option '" + word + "'"
                             : "nothing is expected where '" + word + "' stands";
  }
  Diagnostic({}, name + ": " + problem).fix(name + " --help lists what there is").raise();
}

CLI::App* CommandLine::add(const char* name, const char* description,
                           int (*command)(const Request&)) {
  CLI::App* app = app_->add_subcommand(name, description);
  app->callback([this, command] { command_ = command; });
  return app;
}

void CommandLine::kernel(CLI::App* app, const std::string& targets, Named named,
                         const char* files) {
  app->add_option("kernel", request_.kernel,
                  std::string("The name of a kernel, or of an operation that is a program of "
                              "several (tilewright list)") +
                      files)
      ->required();
  const bool is_required = named == Named::always;
  app->add_option("--target", request_.target,
                  targets + (is_required ? ""
                                         : "; else cuda where there is a GPU that is "
                                           "compiled for, and cpu where there is none"))
      ->required(is_required)
      ->check(problem_of_target);
  settings(app);
  app->add_option("--numerics", request_.numerics,
                  "Switch off a rewrite that changes rounding (docs/numerics.md); strict: all")
      ->type_name("strict|NAME=off")
      ->allow_extra_args(false);
  schedule(app);
}

// As --set schedule.FIELD=VALUE, several at a time.
void CommandLine::schedule(CLI::App* app) {
  app->add_option_function<std::vector<std::string>>(
         "--schedule",
         [this](const std::vector<std::string>& fields) {
           for (const std::string& field : fields) {
             if (field.find('=') == std::string::npos) {
               Diagnostic({}, "--schedule " + field + ": no field and value")
                   .fix("write --schedule stages=2,ctas=1")
                   .raise();
             }
             request_.settings.push_back("schedule." + field);
           }
         },
         "How a tile-level kernel (of the library: --set schedule=tile) is compiled: any of "
         "stages=2,warpgroups=2,partition=rows|columns,ctas=2,overlap=true|false; what is not "
         "stated the compiler chooses (docs/schedules.md). The same as --set schedule.stages=2; "
         "of a program's kernel NAME.stages=2")
      ->type_name("FIELD=VALUE,...")
      ->delimiter(',')
      ->allow_extra_args(false);
}

void CommandLine::settings(CLI::App* app) {
  app->add_option("--set", request_.settings,
                  "An option of the kernel, or schedule, each behind a --set of its own: dim=128, "
                  "lengths_q=128,77,0")
      ->type_name("NAME=VALUE")
      ->check(problem_of_setting)
      ->allow_extra_args(false);
}

CLI::Option* CommandLine::inputs(CLI::App* app) {
  return app
      ->add_option(
          "--in", request_.inputs,
          "A file, x.npy or x.safetensors:key; or what it holds: arange, zeros, full:0.5, "
          "uniform:-1:1, permutation, normal or rising:0, where a seed may follow the last four "
          "(uniform:0:8:7). Each behind an --in of its own. Inputs that are not named are "
          "random")
      ->type_name("NAME=FILE|NUMBERS")
      ->allow_extra_args(false);
}

void CommandLine::seed(CLI::App* app, const char* description) {
  app->add_option("--seed", request_.seed, description)
      ->check(problem_of_seed)
      ->take_last()  // what is printed to replay a fault is added to a command
      ->capture_default_str();
}

void CommandLine::timeout(CLI::App* app) {
  app->add_option("--timeout", request_.timeout,
                  "End with status 1 after so many seconds, whatever it is at")
      ->check(problem_of_seconds)
      ->check(CLI::Range(0.001, 1e8));
}

CLI::Option* CommandLine::checked(CLI::App* app) {
  return app->add_flag("--checked", request_.checked,
                       "The kernel checks loaded indices, blocks and ends while it runs on a "
                       "GPU, and ends with the line, number and bounds of a wrong one "
                       "(docs/debugging.md)");
}

void CommandLine::json(CLI::App* app) { app->add_flag("--json", request_.json, "Print JSON"); }

}  // namespace tilewright::tools
