#pragma once

#include <functional>
#include <string>
#include <vector>

#include "passes/pipeline.h"
#include "simulator/machine/machine.h"
#include "tilewright/hopper.h"
#include "tilewright/host_tensor.h"

namespace tilewright::test {

// A kernel of one CTA: a warp loads A and B, 64 x 64 of bf16, into a ring of two stages, as often
// as the math role consumes; the math role's body is the test's. Its result goes to C, f32 64 x 64.
// Errors that name the kernel name the test's line.
class ExplicitKernel {
 public:
  explicit ExplicitKernel(int loads = 1, SourceLocation where = here())
      : kernel("explicit", where),
        rows(kernel.dim("rows")),
        A(kernel.in("A", bf16, {rows, 64})),
        B(kernel.in("B", bf16, {rows, 64})),
        C(kernel.out("C", f32, {rows, 64})),
        ring(kernel, "ab", stages(2), {{bf16, 64, 64}, {bf16, 64, 64}}),
        loads_(loads) {
    kernel.ctas(1);
  }

  Block block() const { return rows.block(0, 64); }
  void save(const Tile& tile) { store(C(block(), all), tile); }
  // B is transposed by the product: C = A B^T.
  Pending product(const Slot& slot) { return wgmma(slot[0], slot[1].T()); }
  Pending product(const Slot& slot, const Tile& sum) { return wgmma(slot[0], slot[1].T(), sum); }
  Pending product(const Slot& slot, const Pending& sum) { return wgmma(slot[0], slot[1].T(), sum); }

  // The machine form.
  ir::Kernel lower(const std::function<void()>& math) {
    ir::Kernel lowered = trace(math);
    passes::lower_to_machine(lowered);
    return lowered;
  }
  ir::Kernel trace(const std::function<void()>& math) {
    const auto load = [&] {
      for (Index i : range(loads_)) {
        (void)i;
        ring.produce([&](const Slot& slot) {
          tma_load(A(block(), all), slot[0]);
          tma_load(B(block(), all), slot[1]);
        });
      }
    };
    kernel.roles({role("load", warps(1), registers(24), load),
                  role("math", warpgroups(1), registers(240), math)});
    return kernel.finish();
  }

  Kernel kernel;
  Dim rows;
  Tensor A, B, C;
  Ring ring;

 private:
  int loads_;
};

inline TensorArgument argument(const char* name, HostTensor& tensor) {
  return {name, tensor.dtype(), tensor.shape(), tensor.strides(), tensor.data()};
}

// What the kernel leaves in C, and A B^T in float64.
struct ExplicitResult {
  HostTensor c;
  std::vector<double> product;
  std::vector<simulator::Fault> faults;
};
inline ExplicitResult run(const ir::Kernel& machine, std::uint64_t seed = 1) {
  HostTensor a = HostTensor::random_normal(bf16, {64, 64}, 11);
  HostTensor b = HostTensor::random_normal(bf16, {64, 64}, 12);
  ExplicitResult result{HostTensor::poisoned(f32, {64, 64}), {}, {}};
  Arguments arguments;
  arguments.tensors = {argument("A", a), argument("B", b), argument("C", result.c)};
  simulator::MachineOptions options;
  options.seed = seed;
  options.multiprocessors = 1;
  result.faults = simulator::run_machine(machine, arguments, options).faults;
  for (std::int64_t i = 0; i < 64; ++i) {
    for (std::int64_t j = 0; j < 64; ++j) {
      double sum = 0;
      for (std::int64_t k = 0; k < 64; ++k) sum += a.at({i, k}) * b.at({j, k});
      result.product.push_back(sum);
    }
  }
  return result;
}

}  // namespace tilewright::test
