#include "simulator/interpreter.h"

#include <algorithm>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "ir/binding.h"
#include "ir/overlap.h"
#include "simulator/tile_evaluator.h"
#include "support/diagnostic.h"
#include "support/parallel.h"

namespace tilewright::simulator {
namespace {

ir::Binding bind_arguments(const ir::Kernel& kernel, const Arguments& arguments,
                           const std::map<std::string, std::int64_t>& dims) {
  std::vector<ir::TensorShape> shapes;
  for (const TensorArgument& tensor : arguments.tensors) {
    shapes.push_back({tensor.name, tensor.dtype, tensor.shape, tensor.strides});
  }
  // A tile kernel does not see how many multiprocessors there are.
  std::map<std::string, std::int64_t> given = ir::given_ranks(kernel, arguments.ranks);
  given.insert(dims.begin(), dims.end());
  ir::Binding binding = ir::bind(kernel, shapes, 1, given);
  ir::check_scalars(kernel, arguments.scalars);
  ir::check_memory(kernel, arguments.tensors);
  return binding;
}

// The launch as if inputs that are outputs too lay elsewhere: they are read as they were before it,
// whatever blocks have stored meanwhile.
class KeptInputs {
 public:
  KeptInputs(const ir::Kernel& kernel, const Arguments& given) : arguments_(given) {
    std::vector<ir::Parameter::Kind> kinds;
    for (const ir::Parameter& parameter : kernel.parameters) {
      if (parameter.is_tensor()) kinds.push_back(parameter.kind);
    }
    using Kind = ir::Parameter::Kind;
    for (std::size_t input = 0; input < kinds.size(); ++input) {
      for (std::size_t output = 0; kinds[input] == Kind::in && output < kinds.size(); ++output) {
        const bool is_stored = kinds[output] == Kind::out || kinds[output] == Kind::inout;
        if (!is_stored || !ir::share_elements(given.tensors[input], given.tensors[output])) {
          continue;
        }
        keep(arguments_.tensors[input]);
        break;
      }
    }
  }
  const Arguments& arguments() const { return arguments_; }

 private:
  void keep(TensorArgument& tensor) {
    std::int64_t elements = 1;
    for (std::size_t axis = 0; axis < tensor.shape.size(); ++axis) {
      elements += (tensor.shape[axis] - 1) * tensor.strides[axis];
    }
    auto& kept = kept_.emplace_back(tensor.data, tensor.data + elements * tensor.element_bytes());
    tensor.data = kept.data();
  }

  Arguments arguments_;
  std::list<std::vector<std::byte>> kept_;
};

// Of several errors that of the first block is raised.
template <typename Real>
void run_blocks(const TileLaunch& launch, const std::vector<std::int64_t>& grid, std::int64_t count,
                unsigned threads) {
  std::vector<std::unique_ptr<TileEvaluator<Real>>> evaluators(threads);
  in_parallel(threads, static_cast<std::size_t>(count), [&](std::size_t block, unsigned thread) {
    std::vector<std::int64_t> index(grid.size());
    auto rest = static_cast<std::int64_t>(block);
    for (std::size_t i = 0; i < grid.size(); ++i) {  // x fastest
      index[i] = rest % grid[i];
      rest /= grid[i];
    }
    auto& evaluator = evaluators[thread];
    if (!evaluator) evaluator = std::make_unique<TileEvaluator<Real>>(launch);
    evaluator->run_block(index, static_cast<std::int64_t>(block));
  });
}

}  // namespace

void interpret(const ir::Kernel& kernel, const Arguments& given,
               const InterpreterOptions& options) {
  if (kernel.form != ir::Form::tile) {
    Diagnostic(kernel.where,
               "kernel " + kernel.name + " is in the " + std::string(ir::name_of(kernel.form)) +
                   " form; interpret() runs the tile form",
               ErrorKind::internal)
        .raise();
  }
  for (const TensorArgument& tensor : given.tensors) {
    if (!tensor.is_double || options.float64) continue;
    Diagnostic(kernel.where, "tensor " + tensor.name + " holds doubles, which float64 alone takes",
               ErrorKind::internal)
        .raise();
  }
  const ir::Binding binding = bind_arguments(kernel, given, options.dims);
  const KeptInputs kept(kernel, given);
  const Arguments& arguments = kept.arguments();
  // Additions come in the order of the blocks.
  bool adds = false;
  ir::for_each(kernel.body, [&](const ir::Operation& o) { adds |= o.op == ir::Op::red_tile; });
  const unsigned threads =
      adds ? 1 : thread_count(static_cast<unsigned>(std::max(options.threads, 0)));
  const AccessChecks checks = access_checks(kernel);
  std::optional<OutputShadow> shadow;
  if (options.check_outputs) shadow.emplace(kernel, arguments, threads > 1);
  const TileLaunch launch{&kernel,
                          &arguments,
                          [&binding](const Dim& dim) { return binding.evaluate(dim); },
                          options.while_limit,
                          &checks,
                          shadow ? &*shadow : nullptr,
                          options.rounding_seed,
                          options.reads};
  std::vector<std::int64_t> grid;
  std::int64_t count = 1;
  bool fits = true;
  for (const Dim& extent : kernel.grid) {
    grid.push_back(binding.evaluate(extent));
    fits = fits && !__builtin_mul_overflow(count, grid.back(), &count) && count <= INT32_MAX;
  }
  const bool has_blocks = std::count(grid.begin(), grid.end(), 0) == 0;
  if (!has_blocks) count = 0;  // a product of those before it may not have fitted
  if (!fits && has_blocks) {
    Diagnostic(kernel.where, "kernel " + kernel.name + " has more than 2^31 - 1 blocks")
        .fix("use larger tiles, or smaller launches")
        .raise();
  }
  if (options.float64) {
    run_blocks<double>(launch, grid, count, threads);
  } else {
    run_blocks<float>(launch, grid, count, threads);
  }
  if (shadow) shadow->check_complete(has_blocks);
}

void check_empty_grid(const ir::Kernel& kernel, const Arguments& arguments) {
  if (kernel.form != ir::Form::tile) return;
  const ir::Binding binding = bind_arguments(kernel, arguments, {});
  const bool has_blocks =
      std::none_of(kernel.grid.begin(), kernel.grid.end(),
                   [&](const Dim& extent) { return binding.evaluate(extent) == 0; });
  if (!has_blocks) OutputShadow(kernel, arguments, false).check_complete(false);
}

void check_written(const ir::Kernel& kernel, const Arguments& arguments,
                   const std::vector<std::vector<std::uint16_t>>& written) {
  if (kernel.form != ir::Form::tile || written.empty()) return;
  OutputShadow shadow(kernel, arguments, false);
  shadow.store_written(written);
  shadow.check_complete(true);
}

}  // namespace tilewright::simulator
