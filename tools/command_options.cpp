#include "command_line.h"

#include <CLI/CLI.hpp>

#include <string>

#include "check/fuzz/campaign.h"
#include "tilewright/check_gradients.h"

// Commands of many options.
namespace tilewright::tools {

void CommandLine::add_simulate() {
  CLI::App* simulate =
      add("simulate", "Execute what ships to the GPU on a simulated one", tools::simulate);
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
  simulate->add_option("--threads", request_.threads, "Of --faults; 0: as many as the machine has")
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
      ->add_option(
          "--judged", request_.judged,
          "FILE: each fault's result of --faults is a line of JSON there once it is known, "
          "so that a run that is ended leaves what it has found")
      ->needs("--faults")
      ->excludes("--list-mutants");
  simulate
      ->add_option("--more-schedules", request_.more_schedules,
                   "Of --faults, at most so many of each size, without arithmetic: for a fault "
                   "that is not found before and that depends on the order of the work")
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
                 "places of their tensors that belong together; of sm_90a")
      ->excludes("--faults");
  simulate
      ->add_option("--launch", request_.launch,
                   "Of a FILE.ptx that another compiler made: the JSON file with its grid, block "
                   "and arguments [FILE.json]")
      ->type_name("FILE");
  simulate
      ->add_flag("--printed", request_.printed,
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
                 "One schedule alone of each size in which nothing depends on the order of the "
                 "work: it stands for all (docs/proof.md). Other sizes share the "
                 "schedules: each has one, and small ones have most")
      ->excludes("--faults")
      ->excludes("--time");
  simulate
      ->add_option("--valued-operations", request_.valued_operations,
                   "Of --one-for-all: once warps have executed so many, larger sizes are executed "
                   "without arithmetic")
      ->needs("--one-for-all")
      ->check(CLI::Range(std::int64_t{1}, INT64_MAX));
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
      ->excludes("--time");
  timeout(simulate);
  checked(simulate)->excludes("--faults");
  simulate
      ->add_option("--max-operations", request_.max_operations,
                   "End with status 1 once warps have executed so many, of all schedules: for a "
                   "kernel that may never come to its end")
      ->check(CLI::Range(std::int64_t{1}, INT64_MAX))
      ->excludes("--faults");
  inputs(simulate)->excludes("--printed");
  seed(simulate, "Of the random inputs and of the first schedule");
  simulate->add_option("--input-seed", request_.input_seed,
                       "Of the random inputs, where --seed is to be of the schedule alone");
  json(simulate);
}

void CommandLine::add_tune() {
  CLI::App* tune =
      add("tune",
          "Measure a kernel's variants, and write which serves which sizes: rules over "
          "ranges, or, where the rules compare estimates, those with factors refitted. With "
          "--set schedule=tile, and of a .tw file: try what --schedule may state, and print "
          "what is fastest",
          tools::tune);
  kernel(tune, "cuda (the GPU that is here), or with --model-only sm_90a or sm_100a", Named::always,
         "");
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

void CommandLine::add_build() {
  CLI::App* build =
      add("build",
          "Write a kernel as two C files that need the NVIDIA driver alone, with all of its "
          "variants: NAME.c and NAME.h (docs/build.md)",
          tools::build);
  kernel(build, "sm_90a, sm_100a, or several as sm_90a,sm_100a", Named::always);
  build->add_option("--out", request_.folder, "Where to write them")->type_name("DIR")->required();
  build
      ->add_option("--sizes", request_.sizes,
                   "Keep those variants alone that serve such sizes, as m=1,16,4096; all "
                   "combinations of several --sizes. The last serves the other sizes")
      ->type_name("NAME=SIZES")
      ->allow_extra_args(false);
  timeout(build);
  json(build);
}

void CommandLine::add_fuzz() {
  CLI::App* fuzz = add("fuzz",
                       "Compile random kernels, and compare what they compute with bounds that "
                       "follow from each",
                       tools::fuzz);
  fuzz->add_option("--target", request_.target,
                   "interpreter; cpu: this processor, by each of its instruction sets; sm_90a: "
                   "what ships to the GPU too, on a simulated one; cuda: on "
                   "the GPU that is here too")
      ->default_str(checks::fuzz::CampaignOptions{}.machine)
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

void CommandLine::add_stress() {
  CLI::App* stress =
      add("stress",
          "Simulate a kernel or a program of the library, then run it on the GPU with "
          "injected delays, and count hangs and mismatches",
          tools::stress);
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

void CommandLine::add_check_gradients() {
  CLI::App* check =
      add("check-gradients",
          "Compare the gradients that a kernel computes with derivatives of its forward pass",
          tools::check_gradients);
  check
      ->add_option("kernel", request_.kernel,
                   "The name of a kernel that computes gradients, or of its forward pass; or the "
                   "forward pass as a file that ends in .tw")
      ->required();
  check->add_option("--backward", request_.backward, "The kernel of the gradients, of such a file")
      ->type_name("FILE");
  check
      ->add_option("--target", request_.target,
                   "Where the gradients are computed in the kernel's own types: cpu, "
                   "interpreter, sim:sm_90a, or cuda (the GPU that is here). In float64 the "
                   "interpreter computes them")
      ->default_str(GradientOptions{}.target)
      ->check(problem_of_target);
  settings(check);
  check
      ->add_option("--directions", request_.directions, "Random ones, in which each input is moved")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  timeout(check);
  seed(check, "Of the random inputs and directions");
  json(check);
}

void CommandLine::add_golden() {
  CLI::App* golden =
      add("golden",
          "Write inputs and float64 results as safetensors, with a manifest, that any "
          "implementation can be checked with (docs/golden.md)",
          tools::golden);
  golden
      ->add_option("kernel", request_.kernel,
                   std::string("The name of a kernel (tilewright list)") + kKernelFile)
      ->required();
  settings(golden);
  inputs(golden);
  golden->add_option("--out", request_.folder, "Where to write them")->type_name("DIR")->required();
  timeout(golden);
  seed(golden, "Of the random inputs");
  json(golden);

  CLI::App* check =
      add("check",
          "Hold outputs against golden data: each case's CASE.outputs.safetensors, with the "
          "outputs by their names",
          tools::check);
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

}  // namespace tilewright::tools
