#include "cpu/compiled.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "cpu/engine.h"
#include "cpu/lower.h"
#include "cpu/pool.h"
#include "ir/binding.h"
#include "support/diagnostic.h"
#include "support/number_formats.h"

namespace tilewright::cpu {
namespace {

ir::Binding bind_arguments(const ir::Kernel& kernel, const Arguments& arguments,
                           const RunOptions& options) {
  std::vector<ir::TensorShape> shapes;
  for (const TensorArgument& tensor : arguments.tensors) {
    shapes.push_back({tensor.name, tensor.dtype, tensor.shape, tensor.strides});
  }
  std::map<std::string, std::int64_t> given = ir::given_ranks(kernel, arguments.ranks);
  given.insert(options.dims.begin(), options.dims.end());
  ir::Binding binding = ir::bind(kernel, shapes, 1, given);
  ir::check_scalars(kernel, arguments.scalars);
  ir::check_memory(kernel, arguments.tensors);
  return binding;
}

std::vector<Scalar> bound_scalars(const Program& program, const ir::Kernel& kernel,
                                  const Arguments& arguments, const ir::Binding& binding) {
  std::vector<Scalar> scalars = program.scalars;
  for (const BoundScalar& each : program.dims) {
    const std::int64_t value = binding.evaluate(each.dim);
    const IntegerRange range = range_of(each.dtype);
    if (value < range.low || value > range.high) {
      Diagnostic(kernel.where, "kernel " + kernel.name + ": " + each.dim.to_string() + " is " +
                                   std::to_string(value) + ", beyond " +
                                   std::string(name_of(each.dtype)))
          .fix("use smaller launches")
          .raise();
    }
    scalars[each.scalar].whole = value;
  }
  for (std::size_t i = 0; i < program.parameters.size(); ++i) {
    const BoundScalar& each = program.parameters[i];
    const double number = arguments.scalars[i];
    if (is_float(each.dtype)) {
      scalars[each.scalar].real = round_to(each.dtype, static_cast<float>(number));
    } else {
      scalars[each.scalar].whole = static_cast<std::int64_t>(std::nearbyint(number));
    }
  }
  if (program.rank != kNone) scalars[program.rank].whole = arguments.rank;
  if (program.epoch != kNone) scalars[program.epoch].whole = arguments.epoch;
  return scalars;
}

}  // namespace

CompiledKernel::CompiledKernel(const ir::Kernel& kernel, const Numerics& numerics,
                               const Kernels* kernels)
    : kernel_(kernel),
      kernels_(kernels ? *kernels : cpu::kernels()),
      program_(lower(kernel_, kernels_, numerics)) {}

void CompiledKernel::run(const Arguments& arguments, const RunOptions& options) const {
  const ir::Binding binding = bind_arguments(kernel_, arguments, options);
  Launch launch;
  launch.program = &program_;
  launch.kernels = &kernels_;
  launch.arguments = &arguments;
  launch.where = kernel_.where;
  std::int64_t count = 1;
  bool fits = true;
  for (const Dim& extent : kernel_.grid) {
    launch.grid.push_back(binding.evaluate(extent));
    fits = fits && !__builtin_mul_overflow(count, launch.grid.back(), &count) && count <= INT32_MAX;
  }
  if (std::count(launch.grid.begin(), launch.grid.end(), 0) != 0) return;
  if (!fits) {
    Diagnostic(kernel_.where, "kernel " + kernel_.name + " has more than 2^31 - 1 blocks")
        .fix("use larger tiles, or smaller launches")
        .raise();
  }
  launch.scalars = bound_scalars(program_, kernel_, arguments, binding);
  Turns turns;
  if (program_.adds) launch.turns = &turns;
  const unsigned threads = options.threads ? options.threads : thread_count();
  std::vector<std::unique_ptr<Engine>> engines(threads);
  parallel_for(threads, static_cast<std::size_t>(count), [&](std::size_t block, unsigned thread) {
    std::unique_ptr<Engine>& engine = engines[thread];
    if (!engine) engine = std::make_unique<Engine>(launch);
    engine->run_block(static_cast<std::int64_t>(block));
  });
}

}  // namespace tilewright::cpu
