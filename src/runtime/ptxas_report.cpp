#include "runtime/ptxas_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "runtime/cubin.h"
#include "support/diagnostic.h"

namespace tilewright::runtime {
namespace {

// The number that stands directly before `label`, as in "128 bytes stack frame".
std::optional<int> number_before(std::string_view line, std::string_view label) {
  const size_t at = line.find(label);
  if (at == std::string_view::npos || at == 0) return std::nullopt;
  size_t first = at;
  while (first > 0 && line[first - 1] >= '0' && line[first - 1] <= '9') --first;
  int value = 0;
  const auto parsed = std::from_chars(line.data() + first, line.data() + at, value);
  if (parsed.ec != std::errc{} || parsed.ptr != line.data() + at) return std::nullopt;
  return value;
}

void read_number(std::string_view line, std::string_view label, int& field) {
  if (const auto value = number_before(line, label)) field = *value;
}

std::optional<std::string_view> text_after(std::string_view line, std::string_view label) {
  const size_t at = line.find(label);
  if (at == std::string_view::npos) return std::nullopt;
  return line.substr(at + label.size());
}

std::optional<PtxasMessage> coded_message(std::string_view line) {
  const size_t at = line.find("(C");
  if (at == std::string_view::npos) return std::nullopt;
  PtxasMessage message;
  const char* const digits = line.data() + at + 2;
  const char* const end = line.data() + line.size();
  const auto parsed = std::from_chars(digits, end, message.code);
  if (parsed.ec != std::errc{} || parsed.ptr == end || *parsed.ptr != ')') return std::nullopt;
  message.text = line.substr(at);
  return message;
}

const char* fix_for(int code) {
  switch (code) {
    case 7508:
      return "give the kernel a maximum thread count and one block per multiprocessor "
             "(__launch_bounds__(threads, 1)), so that setmaxnreg knows the registers at entry";
    case 7509:
      return "no call may stand between wgmma instructions: inline the callee (math functions "
             "with a slow path are calls too)";
    case 7510:
      return "issue and wait for wgmma in one function: inline the functions that hold them";
    case 7511:
    case 7512:
      return "the accumulators and operands in flight do not fit into the registers: use a smaller "
             "tile, another warpgroup, or fewer products in flight, and do not modify an "
             "accumulator before it is waited for";
    case 7514:
      return "wait for the product before its accumulator is read; an accumulator array indexed "
             "at run time has the same effect, so unroll the loop over it";
    case 7515:
      return "wait for the product before its accumulator or its register operand is written";
    default:
      return "let nothing but wgmma touch the accumulators between the first product and its wait";
  }
}

}  // namespace

const FunctionResources* PtxasReport::find(std::string_view name) const {
  for (const FunctionResources& function : functions) {
    if (function.name == name) return &function;
  }
  return nullptr;
}

FunctionResources& PtxasReport::function(std::string_view name) {
  for (FunctionResources& known : functions) {
    if (known.name == name) return known;
  }
  functions.emplace_back().name = name;
  return functions.back();
}

PtxasReport parse_ptxas_log(std::string_view log) {
  PtxasReport report;
  std::string properties_of;  // the function that the "stack frame" line belongs to
  std::string entry;          // the kernel that the "Used N registers" line belongs to
  while (!log.empty()) {
    const size_t end = log.find('\n');
    const std::string_view line = log.substr(0, end);
    log.remove_prefix(end == std::string_view::npos ? log.size() : end + 1);
    if (line.find("ptxas") == std::string_view::npos) continue;

    if (auto message = coded_message(line)) {
      report.messages.push_back(std::move(*message));
    } else if (const auto quoted = text_after(line, "Compiling entry function '")) {
      entry = quoted->substr(0, quoted->find('\''));
      report.function(entry).is_kernel = true;
    } else if (const auto name = text_after(line, "Function properties for ")) {
      properties_of = *name;
    } else if (line.find(" bytes stack frame") != std::string_view::npos) {
      FunctionResources& function = report.function(properties_of);
      read_number(line, " bytes stack frame", function.stack_bytes);
      read_number(line, " bytes spill stores", function.spill_store_bytes);
      read_number(line, " bytes spill loads", function.spill_load_bytes);
    } else if (number_before(line, " registers")) {
      FunctionResources& function = report.function(entry);
      function.shared_bytes = 0;  // not printed when there is none
      read_number(line, " registers", function.registers);
      read_number(line, " barriers", function.barriers);
      read_number(line, " bytes smem", function.shared_bytes);
      int cumulative = 0;
      read_number(line, " bytes cumulative stack size", cumulative);
      // Includes the frames of the functions that the kernel calls.
      if (cumulative > function.stack_bytes) function.stack_bytes = cumulative;
    }
  }
  return report;
}

PtxasReport make_report(std::string_view log, std::string_view cubin) {
  PtxasReport report = parse_ptxas_log(log);
  const auto complete = [](int& field, int value) {
    if (field < 0) field = value;
  };
  for (const CubinFunction& stated : read_cubin(cubin)) {
    FunctionResources& function = report.function(stated.name);
    function.is_kernel = stated.is_kernel;
    complete(function.registers, stated.registers);
    complete(function.stack_bytes, stated.stack_bytes);
    complete(function.parameter_bytes, stated.parameter_bytes);
  }
  return report;
}

bool is_fatal(const PtxasMessage& message) { return message.code >= 7508 && message.code <= 7516; }

void check_report(const PtxasReport& report, const ResourcePolicy& policy, std::string_view what,
                  SourceLocation where) {
  for (const PtxasMessage& message : report.messages) {
    if (!is_fatal(message) || policy.allow_serialized) continue;
    Diagnostic error(where, fmt::format("{}: ptxas: {}", what, message.text));
    error.fix(fix_for(message.code)).raise();
  }
  if (policy.allow_stack_frame) return;
  for (const FunctionResources& function : report.functions) {
    if (!function.is_kernel || function.stack_bytes <= 0) continue;
    const int spilled = std::max(function.spill_store_bytes, function.spill_load_bytes);
    Diagnostic error(
        where, fmt::format("{}: kernel {} has a stack frame of {} bytes, where 0 are "
                           "allowed ({} bytes of registers spilled)",
                           what, function.name, function.stack_bytes, spilled > 0 ? spilled : 0));
    if (spilled > 0) {
      error.fix(
          "keep fewer values in registers: a smaller tile, more warpgroups, or a larger "
          "register budget for the role");
    } else {
      error.fix(
          "index register arrays with constants only: unroll the loop whose variable "
          "indexes them");
    }
    error.raise();
  }
}

std::vector<std::string> warnings_of(const PtxasReport& report) {
  std::vector<std::string> warnings;
  for (const PtxasMessage& message : report.messages) {
    if (!is_fatal(message)) warnings.push_back(message.text);
  }
  return warnings;
}

}  // namespace tilewright::runtime
