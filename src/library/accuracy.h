#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "library/workload.h"
#include "tilewright/host_tensor.h"

namespace tilewright::simulator {
struct InterpreterOptions;
}

// How far from float64 a result may lie: as far as rounding takes the kernel's own meaning, and not
// as far as a wrong mask or weight would.
namespace tilewright::library {

// Of one output. Each is relative to the magnitude of what is wanted: `whole` is the root mean
// square of all errors over that of all elements. `row` is the largest of the same of one row of
// the last axis, and `element` the largest of one element, relative to the larger of it and its
// row. Infinite where one side is not a number, or infinite alone. `least` is the magnitude that
// they are relative to at least.
struct Errors {
  double whole = 0, row = 0, element = 0, least = 0;
};

// A sum that is off by a small part of itself shifts its logarithm by as much, however near 0 that
// is: the errors of logarithms are relative to this at least.
constexpr double kLogarithm = 1;

// Of a tensor of this shape, in its order.
Errors errors_of(std::span<const double> got, std::span<const double> wanted,
                 const std::vector<std::int64_t>& shape, double least = 0);

// What rounding explains: the errors of the kernel's meaning in its own types, with room for sums
// in another order, and at least those of rounding to the output's dtype.
Errors allowed_errors(const Errors& measured, DType dtype, const std::vector<std::int64_t>& shape);

struct OutputComparison {
  std::string name;
  Errors errors, allowed;
  std::string worst;  // the element that is furthest off: where, and both values; empty: none is
  // The errors' part along what is wanted: by which factor all of it is too large, less 1.
  double factor = 0, allowed_factor = std::numeric_limits<double>::infinity();
  // Elements that nobody has written, where all are to be: one is wrong.
  std::int64_t unwritten = 0;
  // The largest error, as a share of what is allowed: above 1 it is wrong.
  double share() const;
};

struct Comparison {
  std::vector<OutputComparison> outputs;
  bool ok() const { return share() <= 1; }
  double share() const;
  // The output with the largest share: its errors, what is allowed, and the worst element.
  std::string text() const;
};

// What a workload's outputs are held against.
struct Reference {
  std::vector<std::vector<double>> values;  // of each output, in float64
  std::vector<Errors> allowed;
  // By which factor rounding takes all of each output at least; of no bound where it is infinite.
  std::vector<double> allowed_factors;
};

// Interprets the tile-level definition of an entry of the library on the workload's tensors.
void run_meaning(Workload& run, const simulator::InterpreterOptions& how);

enum class Executed : std::uint8_t { by_simulator, by_hardware };

// The kernel's reference of the workload's inputs, and what the interpreter's run of its tile-level
// definition on them allows. Tensor cores sum products of 8-bit floats with few bits: what hardware
// executes is allowed that too.
Reference reference_of(const Workload& workload, Executed by = Executed::by_simulator);

Comparison compare(const Workload& workload, const Reference& reference);

// `tensor` beside another execution's: "Y[0, 3] is 1, and 2 `of_what`". The orders of sums may
// differ.
OutputComparison compare_tensor(const HostTensor& tensor, const std::vector<double>& wanted,
                                const std::string& name, const Errors& allowed,
                                const std::string& of_what);

// Holds the factor against what rounding explains, which is as often too large as too small.
void compare_factor(const HostTensor& tensor, const std::vector<double>& wanted,
                    OutputComparison& result);

}  // namespace tilewright::library
