#pragma once

#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ptx/launch.h"

namespace tilewright::ptx::test {

// A kernel `k` whose parameter is the address of `out`.
inline std::string kernel_text(std::string_view declarations, std::string_view body) {
  std::string text = ".version 8.3\n.target sm_90a\n.address_size 64\n";
  text += ".visible .entry k(.param .u64 k_param_0)\n{\n";
  text += ".reg .pred %p<8>;\n.reg .b16 %h<8>;\n.reg .b32 %r<32>;\n.reg .f32 %f<16>;\n";
  text += ".reg .b64 %rd<8>;\n";
  text += std::string(declarations) + "\nld.param.u64 %rd0, [k_param_0];\nmov.u32 %r0, %tid.x;\n";
  text += "mul.wide.u32 %rd1, %r0, 4;\nadd.s64 %rd1, %rd0, %rd1;\n";  // the thread's own word
  return text + std::string(body) + "\nret;\n}\n";
}

// Of so many CTAs, whose accesses have to be ordered.
inline LaunchInput ordered(std::int64_t ctas) {
  LaunchInput input;
  input.grid = {ctas, 1, 1};
  input.check_order = true;
  return input;
}

struct Ran {
  LaunchReport report;
  std::vector<std::uint32_t> out;
  std::string fault() const { return report.faults.empty() ? "" : report.faults[0].kind; }
};

inline Ran run(const std::string& text, std::int64_t threads = 32, LaunchInput input = {}) {
  const Module module = parse(text, "test.ptx");
  Ran ran;
  ran.out.assign(static_cast<std::size_t>(threads), 0xdeadbeef);
  const auto address = reinterpret_cast<std::uint64_t>(ran.out.data());
  std::vector<std::byte> value(8);
  std::memcpy(value.data(), &address, 8);
  input.block = {threads, 1, 1};
  input.parameters.insert(input.parameters.begin(), value);
  input.memory.push_back({"out", address, address + 4 * static_cast<std::uint64_t>(threads)});
  input.most_operations = 1'000'000;
  ran.report = execute(module.kernels.at(0), input);
  return ran;
}

// What `instructions` leave in %r1 of each thread.
inline Ran run_body(std::string_view instructions, std::int64_t threads = 32,
                    std::string_view declarations = "", const LaunchInput& input = {}) {
  return run(kernel_text(declarations, std::string(instructions) + "\nst.global.u32 [%rd1], %r1;"),
             threads, input);
}

}  // namespace tilewright::ptx::test
