#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/host_tensor.h"
#include "tilewright/kernel.h"
#include "tilewright/program.h"

// Whether a kernel computes the gradients of another one: the backward pass of a layer against its
// forward pass, without a formula of either.
namespace tilewright {

struct GradientOptions {
  // Values of the forward pass's dims, where no tensor of `inputs` has an axis that long.
  DimValues sizes = {};
  // Inputs of the forward pass by their names. Those that are not here are normal random numbers,
  // and integers zeros.
  std::map<std::string, HostTensor> inputs = {};
  // Scalars of both passes, by their names.
  std::map<std::string, double> scalars = {};
  // By the name of a tensor of the backward pass: that of the forward pass whose gradient it is.
  // Other tensors named dX are the gradient of X.
  std::map<std::string, std::string> gradients = {};
  // Floating inputs of the forward pass that have no gradient.
  std::vector<std::string> constants = {};
  int directions = 2;  // random ones, for each gradient; at least 1
  double tolerance = 1e-6;
  std::uint64_t seed = 0;  // of the random numbers
  // Where the backward pass runs in its own types: "cpu", "interpreter", "sim:sm_90a" or "cuda".
  std::string target = "cpu";
};

// One gradient that the backward pass computes.
struct GradientCheck {
  std::string gradient, of;  // the tensor's name, and the input's that it is the gradient of
  // In float64: derivatives of the loss in random directions against what the gradient says of
  // them. The largest difference, relative to the gradient's norm, and both in that direction.
  double error = 0;
  double by_differences = 0, by_gradient = 0;
  double allowed = 0;  // the tolerance
  // In the passes' own types, against float64: the norm of the difference relative to that of the
  // gradient. Twice what random rounding errors of the same types make of it is allowed.
  double own_error = 0, own_allowed = 0;
  bool ok() const { return error <= allowed && own_error <= own_allowed; }
};

struct GradientReport {
  std::vector<GradientCheck> gradients;  // in the order of the backward pass's tensors
  bool ok() const;
  // A line for each gradient.
  std::string text() const;
};

// Both passes are kernels of the tile level, or programs of them on one rank and one stream. A
// tensor of the backward pass is one of these, by its name:
//   an input of the forward pass;
//   an output of the forward pass: it is given what the forward pass has written;
//   in:  the gradient of an output of the forward pass: it is random. The loss is the sum of the
//        products of those outputs with their gradients. An output without one is not part of it.
//   out: the gradient of an input of the forward pass. Each floating input has one, but for
//        GradientOptions::constants.
// In float64 no result is rounded, also where a kernel stores it in between, and so derivatives by
// differences are exact to some 1e-10. Numbers of the forward pass's outputs that are infinite are
// left out of the loss: they must be the same in all directions.
//
// Raises Error(usage), with the tensor's name and line, for a gradient that is missing or whose
// shape is not its tensor's, for tensors that are none of these, and for passes that are no tile
// level; what compile() and running for the target raise.
GradientReport check_gradients(const Kernel& forward, const Kernel& backward,
                               const GradientOptions& options = {});
GradientReport check_gradients(const Kernel& forward, const Program& backward,
                               const GradientOptions& options = {});
GradientReport check_gradients(const Program& forward, const Kernel& backward,
                               const GradientOptions& options = {});
GradientReport check_gradients(const Program& forward, const Program& backward,
                               const GradientOptions& options = {});

}  // namespace tilewright
