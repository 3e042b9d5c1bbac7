#pragma once

#include <vector>

#include "ir/ir.h"

namespace tilewright::target {

// How a machine of NVIDIA's multiplies. What else its programs are made of is alike in all of them.
enum class Products {
  warpgroup,      // wgmma, whose results are in registers
  tensor_memory,  // tcgen05, whose results are in a memory of its own
};

// The families of operations of the scheduled and the machine form that such a machine has.
std::vector<ir::Family> families_of(Products products);

}  // namespace tilewright::target
