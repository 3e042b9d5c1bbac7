#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "codegen/cuda/emitter.h"

namespace tilewright::codegen {

// Types of C++. A 16-bit or 8-bit scalar is held as the bits of an unsigned; arithmetic is in
// float.
std::string_view scalar_type(DType dtype);
std::string_view memory_type(DType dtype);  // of an element in global memory

std::string literal(DType dtype, const ir::Attribute& value);

// How many elements a 32-bit register of an array holds; 1 for wider ones.
int packing(DType dtype);
std::int64_t register_count(const ir::Type& registers);
std::string_view register_type(DType dtype);
// Element `index` of a register array as the type that arithmetic takes.
std::string element(const Emitter& emitter, ir::ValueId registers, const std::string& index);
// The same of a scalar.
std::string operand(const Emitter& emitter, ir::ValueId scalar);
// The held bits of what arithmetic gave: packing(dtype) values, low element first.
std::string packed(DType dtype, const std::vector<std::string>& values);
// What takes the place of elements behind the last of a packed array.
std::string_view nothing(DType dtype);

// The function of operands of type `from`; `nonnegative` says that integer operands are.
std::string function_text(ir::Op function, DType from, DType to,
                          const std::vector<std::string>& operands, bool nonnegative = false);

// evaluate(terms, i) for i below `count`.
std::string index_text(const std::vector<ir::IndexTerm>& terms, const std::string& i,
                       std::int64_t count);
// What the modes add to the coordinate on an axis.
std::vector<ir::IndexTerm> coordinate_terms(const std::vector<ir::Mode>& modes, int axis);
// Of a register layout, what lane and warp add; "0" when nothing.
std::string thread_coordinate(const Emitter& emitter, const ir::RegisterLayout& layout, int axis);
// True for the first of the threads that hold the same elements; empty where each holds others.
std::string owner_condition(const Emitter& emitter, const ir::RegisterLayout& layout);

std::string sum_text(const std::vector<std::string>& terms);

}  // namespace tilewright::codegen
