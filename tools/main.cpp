#include <CLI/CLI.hpp>

#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <new>
#include <string>
#include <vector>

#include "check/fuzz/campaign.h"
#include "command.h"
#include "support/diagnostic.h"
#include "support/file.h"
#include "tilewright/check_gradients.h"
#include "tilewright/error.h"
#include "tilewright/version.h"
#include "timeout.h"

namespace {

using tilewright::tools::Request;

constexpr int kUsage = static_cast<int>(tilewright::ErrorKind::usage);
constexpr int kInternal = static_cast<int>(tilewright::ErrorKind::internal);
// What may stand in place of a kernel's name.
constexpr const char* kKernelFile =
    "; or a file that ends in .tw, as TILEWRIGHT_DUMP makes them of your kernels";

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

// An empty variable of a script is no wish for the target of this machine.
std::string problem_of_target(const std::string& word) {
  return word.empty() ? "no target is named" : "";
}

class CommandLine {
 public:
  CommandLine() : app_("GPU kernels as operations on tiles", "tilewright") {
    app_.set_version_flag("--version", TILEWRIGHT_VERSION);
    app_.footer(
        "Exit status: 0 as asked; 1 a result falls short; 2 bad usage or input; 3 the target is "
        "not\n"
        "available here (tilewright doctor says what is missing); 4 a bug of Tilewright.");

    CLI::App* list = add("list", "The kernels that come with Tilewright", tilewright::tools::list);
    list->add_option("kernel", request_.kernel, "Of one kernel alone");
    list->add_flag("--cases", request_.cases,
                   "Settings that together come to every case of the kernels' plans, and to every "
                   "two cases that go together: what scripts/prove runs. With --set the cases of "
                   "those settings");
    list->add_option("--set", request_.settings, "Of --cases: an option of the kernel, or schedule")
        ->type_name("NAME=VALUE")
        ->allow_extra_args(false);
    list->add_option("--target", request_.target,
                     "The schedules of this target alone. With --cases those of sm_90a, or of "
                     "sm_100a with the kernels that have schedules for it [sm_90a]")
        ->check(CLI::IsMember({"sm_90a", "sm_100a"}));
    seed(list, "Of the settings that --cases draws");
    json(list);

    CLI::App* run = add("run", "Run a kernel on tensors", tilewright::tools::run);
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

    CLI::App* explain = add("explain", "What a kernel is compiled to", tilewright::tools::explain);
    kernel(explain, "cpu, interpreter, cuda, sm_90a or incore", Named::or_of_machine);
    explain
        ->add_option("--dump", request_.dump,
                     "Write every stage and its difference, the source, PTX and SASS to DIR")
        ->type_name("DIR");
    explain
        ->add_option(
            "--html", request_.html,
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
            tilewright::tools::bench);
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

    CLI::App* doctor =
        add("doctor", "What this machine has, and what is missing", tilewright::tools::doctor);
    json(doctor);

    CLI::App* cache =
        add("cache", "Where built kernels are kept, how many, and whether they are used",
            tilewright::tools::cache);
    cache->add_flag("--clear", request_.clear, "Remove them, and make the folder yours alone");
    cache
        ->add_option(
            "--ship", request_.ship,
            "Write their cubins to DIR: as `cubins` beside a library they need no compiler")
        ->type_name("DIR")
        ->excludes("--clear");
    json(cache);
  }

  int execute(int count, char** words) {
    if (count > 1 && words[1][0] != '-') check_command(words[1]);
    try {
      app_.parse(count, words);
    } catch (const CLI::ParseError& error) {
      if (error.get_exit_code() == 0) return app_.exit(error);  // --help
      refuse(error);
    }
    if (command_ == nullptr) {
      std::fputs(app_.help().c_str(), stderr);
      return kUsage;
    }
    if (request_.timeout > 0) tilewright::tools::end_after(request_.timeout);
    return command_(request_);
  }

 private:
  void add_simulate() {
    CLI::App* simulate = add("simulate", "Execute what ships to the GPU on a simulated one",
                             tilewright::tools::simulate);
    kernel(simulate, "sm_90a, sm_100a or incore", Named::always,
           "; or a file that ends in .tw, as TILEWRIGHT_DUMP makes them of your kernels, or in "
           ".twp, as it makes them of a Program of several kernels and ranks");
    simulate
        ->add_option("--schedules", request_.schedules, "Orders of the concurrent work to execute")
        ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40))
        ->capture_default_str();
    simulate
        ->add_option("--launches", request_.launches,
                     "Launches, one after the other, in each [2]; of a program its runs [2]")
        ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40));
    simulate->add_option("--ranks", request_.ranks,
                         "GPUs that run a kernel which reaches other ranks [2]; of a program's "
                         "file those it was recorded for");
    simulate
        ->add_option("--multiprocessors", request_.multiprocessors,
                     "Of each rank's GPU: how many CTAs a persistent kernel starts [132, or few "
                     "with --shrunken]; of a program as many as it executes at a time [8]")
        ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20));
    simulate->add_flag("--faults", request_.faults,
                       "Seed faults at every site of the kernel, one at a time, and show which of "
                       "them are found; sizes that are not set are shrunken. Of a program: into "
                       "its streams, events and words, and the signals of its kernels");
    simulate
        ->add_option("--threads", request_.threads, "Of --faults; 0: as many as the machine has")
        ->needs("--faults")
        ->check(CLI::Range(0, 1024))
        ->capture_default_str();
    simulate
        ->add_option("--part", request_.part,
                     "I/N: of the places of --faults every N-th, from the I-th on")
        ->needs("--faults")
        ->capture_default_str();
    simulate
        ->add_flag("--list-mutants", request_.list_mutants,
                   "Print the faults of --faults as JSON, and end")
        ->needs("--faults");
    simulate
        ->add_option("--mutants", request_.mutants,
                     "N,N,...: of --faults only those with such numbers in --list-mutants")
        ->delimiter(',')
        ->needs("--faults");
    simulate
        ->add_option("--more-schedules", request_.more_schedules,
                     "Of --faults, at most so many of each size, without arithmetic: for a fault "
                     "that is not found before and that hangs on the order of the work")
        ->needs("--faults")
        ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 40))
        ->capture_default_str();
    simulate
        ->add_flag("--control-only", request_.control_only,
                   "Without arithmetic, many times faster: results are not compared, and "
                   "conditions on what products compute are drawn at random")
        ->excludes("--faults");
    simulate
        ->add_flag("--provenance", request_.provenance,
                   "Also check, whatever the values are, that each product's operands come from "
                   "places of their tensors that belong together")
        ->excludes("--faults");
    simulate
        ->add_option("--launch", request_.launch,
                     "Of a FILE.ptx that another compiler made: the JSON file with its grid, block "
                     "and arguments [FILE.json]")
        ->type_name("FILE");
    simulate
        ->add_flag(
            "--printed", request_.printed,
            "Execute the PTX that NVRTC makes of the printed kernel beside its machine form: "
            "results bit by bit, and each warp's synchronising instructions; sizes that are "
            "not set are shrunken")
        ->excludes("--faults");
    simulate
        ->add_flag("--time", request_.time,
                   "Only predict how long it takes, by the clock of --trace: on 132 "
                   "multiprocessors, at whole sizes; over ranks beside the wire and the "
                   "arithmetic alone")
        ->excludes("--faults")
        ->excludes("--printed")
        ->excludes("--provenance")
        ->excludes("--schedules");
    simulate
        ->add_option("--trace", request_.traces,
                     "Write what ran when: FILE.html a page, FILE.json for Perfetto; of the first "
                     "schedule with a fault, else of the first")
        ->type_name("FILE")
        ->allow_extra_args(false)
        ->excludes("--faults")
        ->excludes("--time");
    simulate
        ->add_option(
            "--break", request_.breakage,
            "Break the kernel first. release: a stage is released before the products "
            "that read it are waited for. warp_sync: one lane releases what others may still "
            "read")
        ->type_name("NAME")
        ->excludes("--faults")
        ->excludes("--time");
    simulate
        ->add_option("--search", request_.search,
                     "random: each schedule is drawn from its seed; delays: a seed counts through "
                     "those with at most two delays, and --schedules are spread evenly over all; "
                     "held: the seed is the number of an arrival on an mbarrier, before which its "
                     "warp stays until nothing else can go on")
        ->check(CLI::IsMember({"random", "delays", "held"}))
        ->take_last()
        ->capture_default_str()
        ->excludes("--faults")
        ->excludes("--time");
    simulate
        ->add_flag("--one-for-all", request_.one_for_all,
                   "One schedule alone of each size in which nothing hangs on the order of the "
                   "work: it stands for all (docs/debugging.md). Other sizes share the "
                   "schedules: each has one, and small ones have most")
        ->excludes("--faults")
        ->excludes("--time");
    simulate
        ->add_flag("--issue-order", request_.issue_order,
                   "Products in tensor memory of one thread follow each other, as programs of "
                   "others suppose. PTX orders only those of one shape on one result")
        ->excludes("--faults")
        ->excludes("--time");
    simulate
        ->add_flag("--strict", request_.strict,
                   "Also report reads before asynchronous writes without a proxy fence, which most "
                   "pipelines leave out")
        ->excludes("--faults")
        ->excludes("--time");
    simulate
        ->add_flag("--shrunken", request_.shrunken,
                   "Sizes that are not set are several small choices, with stages + 1 steps and "
                   "tails, on one multiprocessor for each CTA of a cluster; as with --faults. "
                   "Of a library's program also on as many as it divides its work among")
        ->excludes("--faults")
        ->excludes("--time");
    timeout(simulate);
    checked(simulate)->excludes("--faults");
    simulate
        ->add_option("--max-operations", request_.max_operations,
                     "End with status 1 once warps have executed so many, of all schedules: for a "
                     "kernel that may never come to its end")
        ->check(CLI::Range(std::int64_t{1}, INT64_MAX))
        ->excludes("--faults");
    inputs(simulate)->excludes("--shrunken")->excludes("--faults")->excludes("--printed");
    seed(simulate, "Of the random inputs and of the first schedule");
    simulate->add_option("--input-seed", request_.input_seed,
                         "Of the random inputs, where --seed is to be of the schedule alone");
    json(simulate);
  }
  void add_tune() {
    CLI::App* tune =
        add("tune",
            "Measure a kernel's variants, and write which serves which sizes: rules over "
            "ranges, or, where the rules compare estimates, those with factors refitted. With "
            "--set schedule=tile, and of a .tw file: try what --schedule may state, and print "
            "what is fastest",
            tilewright::tools::tune);
    kernel(tune, "cuda (the GPU that is here), or with --model-only sm_90a", Named::always, "");
    tune->add_option("--sizes", request_.sizes,
                     "Sizes of a length, or of several that change together: m=16,64,128 or "
                     "m=n=k=512,1024; all combinations of several --sizes")
        ->type_name("NAME=SIZES")
        ->allow_extra_args(false);
    tune->add_option("--keep", request_.keep, "Variants to measure for each size: the model's best")
        ->check(CLI::Range(1, 4096))
        ->capture_default_str();
    tune->add_option("--tolerance", request_.tolerance,
                     "Sizes share a rule where its variant is no more than this above the best")
        ->check(CLI::Range(0.0, 1.0))
        ->capture_default_str();
    tune->add_flag("--ranges", request_.ranges,
                   "Write ranges also where the rules that are there compare estimates");
    tune->add_flag("--model-only", request_.model_only, "Rank by the model; needs no GPU");
    tune->add_option("--out", request_.rules_file, "Write the rules there, or update them")
        ->type_name("FILE");
    seed(tune, "Of the random inputs");
    json(tune);
  }
  void add_build() {
    CLI::App* build =
        add("build",
            "Write a kernel as two C files that need the NVIDIA driver alone, with all of its "
            "variants: NAME.c and NAME.h (docs/build.md)",
            tilewright::tools::build);
    kernel(build, "sm_90a, sm_100a, or several as sm_90a,sm_100a", Named::always);
    build->add_option("--out", request_.folder, "Where to write them")
        ->type_name("DIR")
        ->required();
    build
        ->add_option("--sizes", request_.sizes,
                     "Keep those variants alone that serve such sizes, as m=1,16,4096; all "
                     "combinations of several --sizes. The last serves the other sizes")
        ->type_name("NAME=SIZES")
        ->allow_extra_args(false);
    timeout(build);
    json(build);
  }
  void add_fuzz() {
    CLI::App* fuzz = add("fuzz",
                         "Compile random kernels, and compare what they compute with bounds that "
                         "follow from each",
                         tilewright::tools::fuzz);
    fuzz->add_option("--target", request_.target,
                     "interpreter; cpu: this processor, by each of its instruction sets; sm_90a: "
                     "what ships to the GPU too, on a simulated one; cuda: on "
                     "the GPU that is here too")
        ->default_str(tilewright::checks::fuzz::CampaignOptions{}.machine)
        ->check(problem_of_target);
    fuzz->add_option("--count", request_.count, "Kernels")
        ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40))
        ->capture_default_str();
    fuzz->add_option("--threads", request_.threads, "0: as many as the machine has")
        ->check(CLI::Range(0, 1024))
        ->capture_default_str();
    fuzz->add_flag("--first", request_.first,
                   "End with the first kernel that fails, and show it as it is, not shrunken");
    fuzz->add_flag("--seeded-faults", request_.seeded_faults,
                   "Plant faults of a compiler in what it made, and say how many kernels and how "
                   "long it took to notice each; gives up after --count kernels with it");
    fuzz->add_flag(
        "--printed", request_.printed,
        "Execute the PTX that NVRTC makes of each kernel beside its machine form, as simulate "
        "--printed. With --seeded-faults: seed faults of the printer into the text of "
        "kernels of the library and of --count random ones");
    seed(fuzz, "Of the first kernel; the next kernels have the next seeds");
    json(fuzz);
  }
  void add_stress() {
    CLI::App* stress =
        add("stress",
            "Simulate a kernel or a program of the library, then run it on the GPU with "
            "injected delays, and count hangs and mismatches",
            tilewright::tools::stress);
    kernel(stress,
           "cuda (the GPU that is here), or sm_90a: simulate, and assemble with and without delays",
           Named::always);
    stress
        ->add_option("--runs", request_.runs,
                     "With delays, of each size, on all multiprocessors and on one cluster")
        ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40))
        ->capture_default_str();
    stress->add_option("--schedules", request_.schedules, "To simulate first, of each size")
        ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40))
        ->capture_default_str();
    stress->add_option("--patience", request_.patience, "A launch that takes so many seconds hangs")
        ->check(CLI::Range(0.001, 1e6))
        ->capture_default_str();
    CLI::Option* mutant =
        stress->add_option("--mutant", request_.mutant, "Seed this fault of --list-mutants first");
    stress->add_flag("--list-mutants", request_.list_mutants, "Print the faults as JSON, and end")
        ->excludes(mutant);
    stress->add_flag("--no-simulation", request_.no_simulation,
                     "Run on the GPU alone, as under compute-sanitizer");
    seed(stress, "Of the random inputs, the first schedule and the delays");
    json(stress);
  }
  void add_check_gradients() {
    CLI::App* check =
        add("check-gradients",
            "Compare the gradients that a kernel computes with derivatives of its forward pass",
            tilewright::tools::check_gradients);
    check
        ->add_option("kernel", request_.kernel,
                     "The name of a kernel that computes gradients, or of its forward pass; or the "
                     "forward pass as a file that ends in .tw")
        ->required();
    check
        ->add_option("--backward", request_.backward, "The kernel of the gradients, of such a file")
        ->type_name("FILE");
    check
        ->add_option("--target", request_.target,
                     "Where the gradients are computed in the kernel's own types: cpu, "
                     "interpreter, sim:sm_90a, or cuda (the GPU that is here). In float64 the "
                     "interpreter computes them")
        ->default_str(tilewright::GradientOptions{}.target)
        ->check(problem_of_target);
    settings(check);
    check
        ->add_option("--directions", request_.directions,
                     "Random ones, in which each input is moved")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    timeout(check);
    seed(check, "Of the random inputs and directions");
    json(check);
  }
  void add_golden() {
    CLI::App* golden =
        add("golden",
            "Write inputs and float64 results as safetensors, with a manifest, that any "
            "implementation can be checked with (docs/golden.md)",
            tilewright::tools::golden);
    golden
        ->add_option("kernel", request_.kernel,
                     std::string("The name of a kernel (tilewright list)") + kKernelFile)
        ->required();
    settings(golden);
    inputs(golden);
    golden->add_option("--out", request_.folder, "Where to write them")
        ->type_name("DIR")
        ->required();
    timeout(golden);
    seed(golden, "Of the random inputs");
    json(golden);

    CLI::App* check =
        add("check",
            "Hold outputs against golden data: each case's CASE.outputs.safetensors, with the "
            "outputs by their names",
            tilewright::tools::check);
    check->add_option("folder", request_.folder, "What tilewright golden has written")
        ->type_name("DIR")
        ->required();
    check->add_option("--outputs", request_.outputs_folder, "Where the outputs are [DIR]")
        ->type_name("DIR");
    check
        ->add_option("--target", request_.target,
                     "Check Tilewright's own kernel: cpu, interpreter, sim:sm_90a, or cuda")
        ->check(problem_of_target);
    timeout(check);
    json(check);
  }
  // CLI11 would name all the words behind it too.
  void check_command(const std::string& word) {
    std::string known;
    for (const CLI::App* command : app_.get_subcommands([](const CLI::App*) { return true; })) {
      if (command->get_name() == word) return;
      known += (known.empty() ? "" : ", ") + command->get_name();
    }
    tilewright::Diagnostic({}, "there is no command '" + word + "'")
        .fix("use one of: " + known)
        .raise();
  }

  // CLI11 would say what is missing rather than what it does not know, often the same word
  // misspelt.
  [[noreturn]] void refuse(const CLI::ParseError& error) const {
    const std::vector<const CLI::App*> named =
        app_.get_subcommands([](const CLI::App* command) { return command->parsed(); });
    const CLI::App& command = named.empty() ? app_ : *named.front();
    const std::string name = named.empty() ? "tilewright" : "tilewright " + command.get_name();
    const std::vector<std::string> unknown = command.remaining();
    std::string problem = error.what();
    if (!unknown.empty()) {
      const std::string& word = unknown.front();
      problem = word[0] == '-' ? "there is no option '" + word + "'"
                               : "nothing is expected where '" + word + "' stands";
    }
    tilewright::Diagnostic({}, name + ": " + problem)
        .fix(name + " --help lists what there is")
        .raise();
  }

  CLI::App* add(const char* name, const char* description, int (*command)(const Request&)) {
    CLI::App* app = app_.add_subcommand(name, description);
    app->callback([this, command] { command_ = command; });
    return app;
  }
  // Whether a command asks for the name of a target.
  enum class Named { always, or_of_machine };
  void kernel(CLI::App* app, const std::string& targets, Named named,
              const char* files = kKernelFile) {
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
  void schedule(CLI::App* app) {
    app->add_option_function<std::vector<std::string>>(
           "--schedule",
           [this](const std::vector<std::string>& fields) {
             for (const std::string& field : fields) {
               if (field.find('=') == std::string::npos) {
                 tilewright::Diagnostic({}, "--schedule " + field + ": no field and value")
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
  void settings(CLI::App* app) {
    app->add_option("--set", request_.settings,
                    "An option of the kernel, or schedule: dim=128, lengths_q=128,77,0")
        ->type_name("NAME=VALUE")
        ->allow_extra_args(false);
  }
  CLI::Option* inputs(CLI::App* app) {
    return app
        ->add_option(
            "--in", request_.inputs,
            "A file, x.npy or x.safetensors:key; or what it holds: arange, zeros, full:0.5, "
            "uniform:-1:1, permutation or normal, where a seed may follow the last three "
            "(uniform:0:8:7). Inputs that are not named are random")
        ->type_name("NAME=FILE|NUMBERS")
        ->allow_extra_args(false);
  }
  void seed(CLI::App* app, const char* description) {
    app->add_option("--seed", request_.seed, description)
        ->check(problem_of_seed)
        ->take_last()  // what is printed to replay a fault is added to a command
        ->capture_default_str();
  }
  void timeout(CLI::App* app) {
    app->add_option("--timeout", request_.timeout,
                    "End with status 1 after so many seconds, whatever it is at")
        ->check(problem_of_seconds)
        ->check(CLI::Range(0.001, 1e8));
  }
  CLI::Option* checked(CLI::App* app) {
    return app->add_flag("--checked", request_.checked,
                         "The kernel checks loaded indices, blocks and ends while it runs on a "
                         "GPU, and ends with the line, number and bounds of a wrong one "
                         "(docs/debugging.md)");
  }
  void json(CLI::App* app) { app->add_flag("--json", request_.json, "Print JSON"); }

  CLI::App app_;
  Request request_;
  int (*command_)(const Request&) = nullptr;
};

}  // namespace

// The whole command, for a library that has it (scripts/wheel). Its value is the exit status.
extern "C" __attribute__((visibility("default"))) int tilewright_command(int count, char** words);
int tilewright_command(int count, char** words) {
  try {
    tilewright::remove_temporaries_on_signals();
    CommandLine line;
    const int status = line.execute(count, words);
    // An earlier flush may have failed: nothing is left for this one then.
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
  } catch (const tilewright::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.kind());
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "error: the tensors do not fit into memory\n  fix: set smaller sizes\n");
    return kUsage;
  } catch (const std::exception& error) {
    if (std::ferror(stdout) == 0) {
      std::fprintf(stderr, "internal error: %s\n", error.what());
      return kInternal;
    }
  }
  std::fprintf(stderr, "error: standard output cannot be written\n");
  return kUsage;
}

int main(int count, char** words) { return tilewright_command(count, words); }
