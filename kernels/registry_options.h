#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tilewright/library.h"

// The options that entries of the library share.
namespace tilewright::kernels {

using Kind = KernelOption::Kind;

inline constexpr int kMaximumSize = INT32_MAX;
inline constexpr int kMaximumDim = 4096;

// What a schedule for the CPU is, where it is the tile level.
inline constexpr const char* kOfCpu = "the tile level in blocks for the caches of a processor";

inline KernelOption length_option(std::string name, std::string description, std::string standard) {
  return {std::move(name),
          std::move(description),
          Kind::integer,
          std::move(standard),
          0,
          kMaximumSize,
          {},
          true};
}

using Values = std::vector<std::string>;  // worth trying

inline KernelOption count_option(std::string name, std::string description, std::string standard,
                                 int maximum, Values values = {}) {
  return {
      std::move(name), std::move(description), Kind::integer, std::move(standard), 1, maximum, {},
      false,           std::move(values)};
}

inline KernelOption integer_option(std::string name, std::string description, Values values,
                                   bool counts_rows = false) {
  return {std::move(name), std::move(description), Kind::integer, "0", 0, kMaximumSize, {},
          false,           std::move(values),      counts_rows};
}

inline KernelOption number_option(std::string name, std::string description, Values values) {
  return {std::move(name), std::move(description), Kind::number, "0", 0, 0, {},
          false,           std::move(values)};
}

inline KernelOption flag_option(std::string name, std::string description) {
  return {std::move(name), std::move(description), Kind::boolean, "false", 0, 0, {}};
}

// Of f32 there are products for the interpreter alone.
inline KernelOption dtype_option() {
  return {"dtype", "element type of the tensors", Kind::dtype, "bf16",         0,
          0,       {"bf16", "f16", "f32"},        false,       {"bf16", "f16"}};
}

}  // namespace tilewright::kernels
