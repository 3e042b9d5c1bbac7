#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

// The instructions of a cubin, by one of NVIDIA's disassemblers.
namespace tilewright::explanations {

struct Sass {
  std::string text;                                  // empty where `missing` says why
  std::map<std::string, std::int64_t> instructions;  // by name without modifiers: HGMMA, UTMALDG
  std::string missing;
};

// nvdisasm or cuobjdump from the PATH, $CUDA_HOME/bin or /usr/local/cuda/bin.
std::optional<std::string> find_disassembler();
Sass disassemble(std::string_view cubin);

// Of a listing such as "/*0a50*/  @!P0 HGMMA.64x128x16.F32.BF16 R24, ... ;".
std::map<std::string, std::int64_t> count_sass(std::string_view listing);

}  // namespace tilewright::explanations
