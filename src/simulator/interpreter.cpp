#include "simulator/interpreter.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>

#include "ir/binding.h"
#include "simulator/tile_evaluator.h"
#include "support/diagnostic.h"

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

// Runs `count` blocks on `threads` threads. Of several errors that of the first block is raised.
template <typename Real>
void run_blocks(const TileLaunch& launch, const std::vector<std::int64_t>& grid, std::int64_t count,
                int threads) {
  std::atomic<std::int64_t> next{0};
  std::mutex mutex;
  std::exception_ptr error;
  std::int64_t failed = count;
  const auto work = [&] {
    std::int64_t block = -1;  // none yet
    // No exception may leave a thread: also memory may end.
    try {
      TileEvaluator<Real> evaluator(launch);
      std::vector<std::int64_t> index(grid.size());
      while ((block = next.fetch_add(1)) < count) {
        std::int64_t rest = block;
        for (std::size_t i = 0; i < grid.size(); ++i) {  // x fastest
          index[i] = rest % grid[i];
          rest /= grid[i];
        }
        evaluator.run_block(index);
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (block < failed) {
        failed = block;
        error = std::current_exception();
      }
      next = count;
    }
  };
  std::vector<std::thread> others;
  try {
    for (int i = 1; i < threads; ++i) others.emplace_back(work);
  } catch (const std::system_error&) {
    // The threads that there are do the rest.
  }
  work();
  for (std::thread& other : others) other.join();
  if (error) std::rethrow_exception(error);
}

}  // namespace

void interpret(const ir::Kernel& kernel, const Arguments& arguments,
               const InterpreterOptions& options) {
  if (kernel.form != ir::Form::tile) {
    Diagnostic(kernel.where,
               "kernel " + kernel.name + " is in the " + std::string(ir::name_of(kernel.form)) +
                   " form; interpret() runs the tile form",
               ErrorKind::internal)
        .raise();
  }
  const ir::Binding binding = bind_arguments(kernel, arguments, options.dims);
  const TileLaunch launch{&kernel, &arguments,
                          [&binding](const Dim& dim) { return binding.evaluate(dim); },
                          options.while_limit};
  std::vector<std::int64_t> grid;
  std::int64_t count = 1;
  bool fits = true;
  for (const Dim& extent : kernel.grid) {
    grid.push_back(binding.evaluate(extent));
    fits = fits && !__builtin_mul_overflow(count, grid.back(), &count) && count <= INT32_MAX;
  }
  if (!fits && std::count(grid.begin(), grid.end(), 0) == 0) {
    Diagnostic(kernel.where, "kernel " + kernel.name + " has more than 2^31 - 1 blocks")
        .fix("use larger tiles, or smaller launches")
        .raise();
  }
  const int wanted =
      options.threads > 0 ? options.threads : static_cast<int>(std::thread::hardware_concurrency());
  const int threads =
      static_cast<int>(std::clamp<std::int64_t>(wanted, 1, std::max<std::int64_t>(count, 1)));
  if (options.float64) {
    run_blocks<double>(launch, grid, count, threads);
  } else {
    run_blocks<float>(launch, grid, count, threads);
  }
}

}  // namespace tilewright::simulator
