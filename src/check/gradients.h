#pragma once

#include <functional>
#include <vector>

#include "ir/ir.h"
#include "ir/program.h"
#include "tilewright/check_gradients.h"
#include "tilewright/host_tensor.h"

namespace tilewright::checks {

// A forward or a backward pass, which must outlive this.
class GradientPass {
 public:
  explicit GradientPass(const ir::Kernel& kernel) : kernel_(&kernel), signature_(kernel) {
    signature_.body = {};
    signature_.grid.clear();
  }
  explicit GradientPass(const ir::Program& program)
      : program_(&program), signature_(ir::signature_of(program)) {}

  // Its parameters, and no more.
  const ir::Kernel& signature() const { return signature_; }
  // Raises a usage error unless the interpreter takes it.
  void check_tile_level() const;
  // In float64, on tensors whose floating elements are doubles. With `rounding`, which may be null,
  // each result is changed as rounding may change it. `sizes` are of dims that no axis names.
  void run_in_float64(const Arguments& arguments, const DimValues& sizes,
                      const std::uint64_t* rounding) const;
  // In its own types.
  void run(const Arguments& arguments, const DimValues& sizes) const;

 private:
  void run(const Arguments& arguments, const DimValues& sizes, bool float64,
           const std::uint64_t* rounding) const;
  const ir::Kernel* kernel_ = nullptr;
  const ir::Program* program_ = nullptr;
  ir::Kernel signature_;
};

// Runs the backward pass in its own types: tensors and scalars in the order of its parameters.
using RunBackward =
    std::function<void(std::vector<HostTensor>& tensors, const std::vector<double>& scalars)>;

// GradientOptions::target is the caller's, who runs on it.
GradientReport check_gradients(const GradientPass& forward, const GradientPass& backward,
                               const GradientOptions& options, const RunBackward& run_backward);

}  // namespace tilewright::checks
