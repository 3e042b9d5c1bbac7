#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tilewright/host_tensor.h"

namespace tilewright::checks {

// What makes inputs ones that are not drawn as usual. All of their elements lie far from zero,
// which shows what a mask lets through. Or they grow along an axis, as where a later block of a sum
// has larger elements. Or those at the end of an axis lie apart from all others, so that one
// element outweighs a block before it, which still counts. Or every 32nd
// element of an axis lies apart, from the first on or from the 32nd: one where a block begins, or
// ends, is as much as all that are no such. Or all operands of products have one sign, but for one
// operand: sums then cancel nowhere, and an error of all their terms is one of the result. One more
// may be zero then, which would hide it. Or one alone is zero: weights that follow from it are
// equal, and round to nothing. Or one grows from row to row while every other row of another one is
// small: what some rows need is done to their neighbours, too.
struct InputChange {
  enum class Kind : std::uint8_t { shift, growth, starts, ends, end, sign, zero, rows };
  Kind kind = Kind::shift;
  std::vector<std::size_t> inputs;  // their numbers among all tensors
  double by = 0;  // of `sign`: the sum of products along the last axis; 0: there is none
  std::size_t axis = 0;
  std::size_t other = 0;                 // the input of the other sign, or with small rows
  std::optional<std::size_t> zero = {};  // beside the sign
};

// Of inputs, by their numbers among all tensors: of each one alone, and of those of f32 together.
// These belong to each other, as sums and what is added to them. None of what has no floats.
std::vector<InputChange> changes_of_inputs(
    const std::vector<std::pair<std::size_t, const HostTensor*>>& inputs);
void apply(const InputChange& change, std::size_t input, HostTensor& tensor);
// "Q lies 256 from zero". Of each input its name.
std::string describe(const InputChange& change, const std::vector<std::string>& names);

}  // namespace tilewright::checks
