#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "driver/build.h"
#include "driver/target.h"
#include "tilewright/kernel.h"

namespace tilewright::driver {

// A field is -1 where nothing states it.
struct Resources {
  int registers = -1;
  int stack_bytes = -1;
  int spill_bytes = -1;
  std::int64_t shared_bytes = -1;
};

// A text of the compilation, as `explain --dump` writes it: "03-bufferise.tw", "kernel.cu".
struct DumpFile {
  std::string name;
  std::string text;
};

// What a kernel is compiled to, and how.
struct Explanation {
  std::vector<Stage> stages;
  double front_end_milliseconds = 0;  // from the first line of the trace to the source
  double build_milliseconds = 0;      // of the assembler; 0 when it did not run
  bool from_cache = false;
  Resources resources;
  std::vector<SharedUse> shared;
  std::map<std::string, std::int64_t> instructions;  // operations of the last form, by name
  std::vector<std::string> warnings;
  std::vector<DumpFile> dump;  // in order
  // Why there is no cubin, where that is no fault of the kernel: NVRTC is missing or too old.
  std::optional<std::string> no_cubin;
};

// `trace` makes the kernel: its time counts.
Explanation explain(const std::function<Kernel()>& trace, const Target& target);

// Writes the files into the folder, which is made where it is missing.
void write_dump(const std::string& folder, const std::vector<DumpFile>& files);

}  // namespace tilewright::driver
