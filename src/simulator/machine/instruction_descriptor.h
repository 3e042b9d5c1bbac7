#pragma once

#include <cstdint>
#include <string>

#include "tilewright/dtype.h"

// What tcgen05.mma is told, decoded from its bits by the tables of the PTX ISA, on purpose without
// what made them.
namespace tilewright::simulator {

// The instruction descriptor of .kind::f16 and .kind::f8f6f4.
struct InstructionDescriptor {
  int m = 0, n = 0;
  DType a = DType::bf16, b = DType::bf16;
  bool a_is_mn_major = false, b_is_mn_major = false;
  std::string problem;  // why it is none that the virtual GPU executes; empty where it is
};
// `element_bytes` of the operands say the kind, `ctas` are those of .cta_group.
InstructionDescriptor decode_instruction(std::uint32_t bits, int element_bytes, int ctas = 1);

// Why the bits of a shared-memory descriptor are none of tcgen05's that the virtual GPU reads.
std::string problem_of_descriptor(std::uint64_t descriptor);

}  // namespace tilewright::simulator
