#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright::runtime {

// What a cubin says about one function of it. A field that it does not state is -1.
struct CubinFunction {
  std::string name;
  bool is_kernel = false;
  int registers = -1;
  int stack_bytes = -1;
  int parameter_bytes = -1;  // kernels only
};

// Reads the ELF image. Every offset is checked: bytes that are no cubin give Error(internal), never
// a read outside them.
std::vector<CubinFunction> read_cubin(std::string_view image);

// The 8 bytes that a global variable of the image begins with; nothing where it has none of that
// name.
std::optional<std::uint64_t> cubin_variable(std::string_view image, std::string_view name);

}  // namespace tilewright::runtime
