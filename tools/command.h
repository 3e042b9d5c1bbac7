#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tilewright::tools {

// What the command line asks for.
struct Request {
  std::string kernel;
  std::string target;                 // "": none is named
  std::vector<std::string> settings;  // name=value
  std::vector<std::string> inputs;    // NAME=file
  std::vector<std::string> outputs;   // NAME=file
  std::vector<std::string> numerics;  // strict, or NAME=off
  std::string dump;
  std::string folder;              // of golden data
  std::string outputs_folder;      // of what is checked; empty: the same
  std::vector<std::string> sizes;  // NAME=SIZE,SIZE,...
  std::string backward;            // of check-gradients: the file of the second pass
  std::string rules_file;
  std::string html;
  std::string launch;  // of a PTX file
  std::string layouts;
  std::vector<std::string> traces;
  std::string breakage;
  std::string search = "random";
  std::uint64_t seed = 0;
  std::optional<std::uint64_t> input_seed;  // else `seed`
  std::int64_t keep = 8;
  double tolerance = 0.02;
  double timeout = 0;  // seconds; 0: any time
  std::int64_t max_operations = INT64_MAX;
  std::int64_t count = 100;
  bool seeded_faults = false;
  int threads = 0;
  std::string part = "1/1";
  std::int64_t more_schedules = 1000;
  std::int64_t schedules = 1;
  std::optional<std::int64_t> launches;  // 2; of a program its runs
  std::optional<std::int64_t> ranks, multiprocessors;
  std::int64_t runs = 20;
  std::vector<int> gpus;
  std::int64_t mebibytes = 256;
  int directions = 2;
  double patience = 5;                // seconds
  std::optional<std::size_t> mutant;  // its number in --list-mutants
  std::vector<std::size_t> mutants;   // the same of --faults; none: all
  std::string judged;                 // a file for their results, one by one
  bool list_mutants = false;
  bool no_simulation = false;
  bool cases = false;
  bool check = false;
  bool checked = false;
  bool clear = false;
  std::string ship;  // a folder for cubins
  bool control_only = false;
  bool one_for_all = false;                    // a schedule alone, where nothing depends on it
  std::int64_t valued_operations = INT64_MAX;  // of it: sizes behind them have no values
  bool provenance = false;
  bool diff = false;
  bool faults = false;
  bool first = false;
  bool json = false;
  bool model_only = false;
  bool printed = false;
  bool ranges = false;
  bool shrunken = false;
  bool strict = false;
  bool issue_order = false;
  bool time = false;
};

// Each prints its answer on standard output and returns the exit status; errors are thrown.
int list(const Request& request);
int run(const Request& request);
int explain(const Request& request);
int simulate(const Request& request);
int bench(const Request& request);
int tune(const Request& request);
int build(const Request& request);
int fuzz(const Request& request);
int stress(const Request& request);
int check_gradients(const Request& request);
int golden(const Request& request);
int check(const Request& request);
int doctor(const Request& request);
int cache(const Request& request);

}  // namespace tilewright::tools
