#include "incore_products.h"

#include <cmath>
#include <cstddef>

#include "compiler/compile_to_machine.h"
#include "tilewright/compile.h"
#include "tilewright/incore.h"

// Behind the headers, in a namespace of its own.
#define main run_example
namespace incore_gemm {
#include "examples/incore_gemm.cpp"
}  // namespace incore_gemm
#undef main

namespace tilewright::simulator {

Product::Product(std::int64_t m, std::int64_t n, std::int64_t k)
    : A(HostTensor::random_normal(bf16, {m, k}, 1)),
      B(HostTensor::random_normal(bf16, {n, k}, 2)),
      C(HostTensor::poisoned(bf16, {m, n})) {}

Arguments Product::arguments() {
  const auto argument = [](const char* name, HostTensor& tensor) {
    return TensorArgument{
        name, tensor.dtype(), tensor.shape(), {}, static_cast<std::byte*>(tensor.data()), {}};
  };
  Arguments arguments;
  arguments.tensors = {argument("A", A), argument("B", B), argument("C", C)};
  return arguments;
}

double Product::error() const {
  double squares = 0, errors = 0;
  for (std::int64_t i = 0; i < C.shape()[0]; ++i) {
    for (std::int64_t j = 0; j < C.shape()[1]; ++j) {
      double wanted = 0;
      for (std::int64_t d = 0; d < A.shape()[1]; ++d) wanted += A.at({i, d}) * B.at({j, d});
      squares += wanted * wanted;
      errors += (C.at({i, j}) - wanted) * (C.at({i, j}) - wanted);
    }
  }
  return std::sqrt(errors / squares);
}

ir::Kernel machine_form(const Kernel& kernel) {
  const ir::Kernel& traced = kernel.finish();
  return compiler::compile_to_machine(traced, traced.target).kernel;
}

ir::Kernel example_product(const char* target, const char* sequencer) {
  return machine_form(incore_gemm::gemm(target, sequencer, {32, 48, 64}));
}

std::vector<ir::Kernel> explicit_products() {
  std::vector<ir::Kernel> all;
  all.push_back(example_product("incore", "cube"));
  all.push_back(example_product("incore_unified", "core"));
  all.push_back(machine_form(partitions_product()));
  return all;
}

MachineReport run_product(const ir::Kernel& machine, Product& product, std::uint64_t seed,
                          std::int64_t cores) {
  MachineOptions options;
  options.seed = seed;
  options.multiprocessors = cores;
  return run_machine(machine, product.arguments(), options);
}

namespace {

bool drop_site(ir::Block& block, const std::function<bool(const ir::Operation&)>& is_site,
               int& site) {
  for (std::size_t i = 0; i < block.body.size(); ++i) {
    if (is_site(block.body[i]) && site-- == 0) {
      block.body.erase(block.body.begin() + static_cast<std::ptrdiff_t>(i));
      return true;
    }
    for (ir::Block& inner : block.body[i].blocks) {
      if (drop_site(inner, is_site, site)) return true;
    }
  }
  return false;
}

}  // namespace

bool drop(ir::Kernel& kernel, int site, const std::function<bool(const ir::Operation&)>& is_site) {
  return drop_site(kernel.body, is_site, site);
}

}  // namespace tilewright::simulator
