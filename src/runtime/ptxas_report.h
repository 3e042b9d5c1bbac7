#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tilewright/error.h"

namespace tilewright::runtime {

// What the assembler made of one function. A field is -1 where nothing stated it.
struct FunctionResources {
  std::string name;
  bool is_kernel = false;
  int registers = -1;
  int barriers = -1;
  int stack_bytes = -1;
  int spill_store_bytes = -1;
  int spill_load_bytes = -1;
  int shared_bytes = -1;  // static
  int parameter_bytes = -1;

  // Stores and loads together; -1 where neither is stated.
  int spill_bytes() const {
    if (spill_store_bytes < 0 && spill_load_bytes < 0) return -1;
    return (spill_store_bytes > 0 ? spill_store_bytes : 0) +
           (spill_load_bytes > 0 ? spill_load_bytes : 0);
  }
};

// A line that ptxas marked with a code: C7514 is {7514, "(C7514) Potential ..."}.
struct PtxasMessage {
  int code = 0;
  std::string text;
};

struct PtxasReport {
  std::vector<FunctionResources> functions;
  std::vector<PtxasMessage> messages;

  const FunctionResources* find(std::string_view function) const;
  FunctionResources& function(std::string_view name);
};

PtxasReport parse_ptxas_log(std::string_view log);

// The report of a build: the log, and the cubin's own records for what the log does not state.
PtxasReport make_report(std::string_view log, std::string_view cubin);

// ptxas serialised wgmma or ignored setmaxnreg: the code runs, at a fraction of its speed.
bool is_fatal(const PtxasMessage& message);

struct ResourcePolicy {
  bool allow_stack_frame = false;
  bool allow_serialized = false;  // of what does not ship: no message is fatal
};

// Throws Error(usage) for the first fatal message, and for a kernel with a stack frame unless the
// policy allows it. `what` names the build ("attention_forward for sm_90a"), `where` its source.
void check_report(const PtxasReport& report, const ResourcePolicy& policy, std::string_view what,
                  SourceLocation where = {});

// The messages that are worth telling and do not fail a build.
std::vector<std::string> warnings_of(const PtxasReport& report);

}  // namespace tilewright::runtime
