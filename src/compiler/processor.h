#pragma once

#include <string>
#include <vector>

// What the target cpu finds on this machine.
namespace tilewright::compiler {

struct Processor {
  std::vector<std::string> instruction_sets;  // of its operations: those that are here
  std::string instruction_set;                // the one in use
  unsigned affinity = 0, quota = 0;           // processors that they allow; 0: there is no quota
  unsigned threads = 0;                       // that a launch takes
  // What TILEWRIGHT_CPU_ISA or TILEWRIGHT_THREADS asks for that is not there.
  std::vector<std::string> problems;
};
Processor examine_processor();

}  // namespace tilewright::compiler
