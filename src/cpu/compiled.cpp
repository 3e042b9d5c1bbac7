#include "cpu/compiled.h"

#include <time.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <vector>

#include "cpu/lower.h"
#include "cpu/pool.h"
#include "cpu/present.h"
#include "cpu/processors.h"
#include "cpu/together.h"
#include "ir/binding.h"
#include "support/diagnostic.h"
#include "support/number_formats.h"

namespace tilewright::cpu {
namespace {

// Of more blocks than this none is so long that it keeps the others waiting.
constexpr std::int64_t kMostSorted = 1 << 16;

ir::TensorShape shape_of(const TensorArgument& tensor) {
  return {tensor.name, tensor.dtype, tensor.shape, tensor.strides};
}

LaunchBytes launch_bytes_of(const ir::Kernel& kernel, const std::vector<ir::TensorShape>& tensors) {
  LaunchBytes bytes;
  auto tensor = tensors.begin();
  for (const ir::Parameter& parameter : kernel.parameters) {
    if (!parameter.is_tensor() || tensor == tensors.end()) continue;
    double of_tensor = static_cast<double>(size_of(tensor->dtype));
    for (const std::int64_t size : tensor->sizes) of_tensor *= static_cast<double>(size);
    bytes.all += of_tensor;
    if (parameter.kind == ir::Parameter::Kind::out) bytes.stored += of_tensor;
    ++tensor;
  }
  return bytes;
}

ir::Binding bind_dims(const ir::Kernel& kernel, const Arguments& arguments,
                      const RunOptions& options) {
  std::vector<ir::TensorShape> shapes;
  for (const TensorArgument& tensor : arguments.tensors) shapes.push_back(shape_of(tensor));
  std::map<std::string, std::int64_t> given = ir::given_ranks(kernel, arguments.ranks);
  given.insert(options.dims.begin(), options.dims.end());
  return ir::bind(kernel, shapes, 1, given);
}

void set_dims(const Program& program, const ir::Kernel& kernel, const ir::Binding& binding,
              std::vector<Scalar>& scalars) {
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
}

void set_parameters(const Program& program, const Arguments& arguments,
                    std::vector<Scalar>& scalars) {
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
}

// That it computed: what others compute on its processor meanwhile takes no part.
double seconds_of_thread() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace

struct CompiledKernel::Bound {
  bool is_of(const Arguments& arguments, const RunOptions& options) const {
    const auto alike = [](const TensorArgument& tensor, const ir::TensorShape& shape) {
      return tensor.dtype == shape.dtype && tensor.shape == shape.sizes &&
             tensor.strides == shape.strides;
    };
    return ranks == arguments.ranks && dims == options.dims &&
           std::equal(arguments.tensors.begin(), arguments.tensors.end(), tensors.begin(),
                      tensors.end(), alike);
  }

  // Of the launch that it was made for.
  std::vector<ir::TensorShape> tensors;
  std::map<std::string, std::int64_t> dims;
  int ranks = 1;

  std::vector<std::int64_t> grid;
  std::int64_t blocks = 1;
  std::vector<Scalar> scalars;
  LaunchBytes bytes;
};

CompiledKernel::CompiledKernel(const ir::Kernel& kernel, const Numerics& numerics,
                               const Kernels* kernels)
    : kernel_(kernel),
      numerics_(numerics),
      kernels_(kernels ? *kernels : cpu::kernels()),
      program_(lower(kernel_, kernels_, numerics_)),
      order_(program_),
      loop_(loop_over_tensors(program_)),
      in_place_(find_in_place(kernel_, program_)),
      repeated_stores_(analysis::repeated_stores(kernel_)) {}

CompiledKernel::Bound CompiledKernel::bind_shapes(const Arguments& arguments,
                                                  const RunOptions& options) const {
  const ir::Binding binding = bind_dims(kernel_, arguments, options);
  Bound made;
  for (const TensorArgument& tensor : arguments.tensors) made.tensors.push_back(shape_of(tensor));
  made.bytes = launch_bytes_of(kernel_, made.tensors);
  made.dims = options.dims;
  made.ranks = arguments.ranks;
  made.scalars = program_.scalars;
  bool fits = true;
  for (const Dim& extent : kernel_.grid) {
    made.grid.push_back(binding.evaluate(extent));
    fits = fits && !__builtin_mul_overflow(made.blocks, made.grid.back(), &made.blocks) &&
           made.blocks <= INT32_MAX;
  }
  if (std::count(made.grid.begin(), made.grid.end(), 0) != 0) {
    made.blocks = 0;
    return made;
  }
  if (!fits) {
    Diagnostic(kernel_.where, "kernel " + kernel_.name + " has more than 2^31 - 1 blocks")
        .fix("use larger tiles, or smaller launches")
        .raise();
  }
  set_dims(program_, kernel_, binding, made.scalars);
  return made;
}

std::shared_ptr<const CompiledKernel::Bound> CompiledKernel::bound(
    const Arguments& arguments, const RunOptions& options) const {
  {
    const std::lock_guard lock(mutex_);
    if (last_ != nullptr && last_->is_of(arguments, options)) return last_;
  }
  auto made = std::make_shared<const Bound>(bind_shapes(arguments, options));
  const std::lock_guard lock(mutex_);
  last_ = made;
  return made;
}

void CompiledKernel::check_present(const Arguments& arguments) const {
  const auto alike = [](const TensorArgument& tensor, const auto& known) {
    return tensor.data == known.first && tensor.shape == known.second;
  };
  {
    const std::lock_guard lock(mutex_);
    if (std::equal(arguments.tensors.begin(), arguments.tensors.end(), present_.begin(),
                   present_.end(), alike)) {
      return;
    }
  }
  cpu::check_present(kernel_, arguments.tensors);
  const std::lock_guard lock(mutex_);
  present_.clear();
  for (const TensorArgument& tensor : arguments.tensors) {
    present_.emplace_back(tensor.data, tensor.shape);
  }
}

std::int64_t CompiledKernel::bind(Launch& launch, const Arguments& arguments,
                                  const RunOptions& options, unsigned threads) const {
  const std::shared_ptr<const Bound> bound = this->bound(arguments, options);
  ir::check_scalars(kernel_, arguments.scalars);
  ir::check_memory(kernel_, arguments.tensors);
  check_present(arguments);
  check_in_place(in_place_, kernel_, arguments, bound->grid);
  analysis::check_repeated_stores(repeated_stores_, bound->grid, arguments.tensors);
  launch.program = &program_;
  launch.kernels = &kernels_;
  launch.arguments = &arguments;
  launch.while_limit = options.while_limit;
  launch.where = kernel_.where;
  launch.grid = bound->grid;
  launch.scalars = bound->scalars;
  static const std::int64_t cache = last_level_cache();
  launch.far_stores = {bound->bytes, bound->blocks, threads, cache};
  launch.exceeds_cache = bound->bytes.all > static_cast<double>(cache);
  set_parameters(program_, arguments, launch.scalars);
  return bound->blocks;
}

std::vector<std::int64_t> CompiledKernel::sorted(const Launch& launch, std::int64_t count,
                                                 unsigned threads) const {
  if (!order_.is_uneven() || program_.adds || count < 2 || count > kMostSorted) return {};
  Together one(launch, nullptr);
  return order_.longest_first(one.engine(0), count, threads);
}

std::vector<std::int64_t> CompiledKernel::order_of_blocks(const Arguments& arguments,
                                                          unsigned threads) const {
  Launch launch;
  const std::int64_t count = bind(launch, arguments, {}, threads);
  std::vector<std::int64_t> order = sorted(launch, count, threads);
  if (!order.empty()) return order;
  order.resize(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

void CompiledKernel::run(const Arguments& arguments, const RunOptions& options) const {
  Launch launch;
  const unsigned threads = options.threads ? options.threads : thread_count();
  const std::int64_t count = bind(launch, arguments, options, threads);
  if (const auto copied = copy_inputs(in_place_, arguments)) {
    return run(copied->arguments, options);
  }
  Turns turns;
  if (program_.adds) launch.turns = &turns;
  std::vector<std::unique_ptr<Together>> of_threads(threads);
  std::vector<std::int64_t> order;
  if (threads > 1) order = sorted(launch, count, threads);
  const bool go_together = loop_ != nullptr && launch.exceeds_cache && order.empty() &&
                           goes_over_pages(*loop_, arguments);
  const For* const loop = go_together ? loop_ : nullptr;
  // Each thread has as many blocks as without that, in groups of equal length.
  const std::int64_t of_thread = (count + threads - 1) / threads;
  const std::int64_t groups = (of_thread + Together::kMost - 1) / Together::kMost;
  const std::int64_t at_once =
      loop == nullptr || count == 0 ? 1 : (of_thread + groups - 1) / groups;
  const Dealing dealing = program_.adds || !order.empty() ? Dealing::in_order : Dealing::by_ranges;
  parallel_for(
      threads, static_cast<std::size_t>((count + at_once - 1) / at_once),
      [&](std::size_t i, unsigned thread) {
        std::unique_ptr<Together>& own = of_threads[thread];
        if (!own) own = std::make_unique<Together>(launch, loop);
        const std::int64_t first =
            order.empty() ? static_cast<std::int64_t>(i) * at_once : order[i];
        own->run(first, std::min(first + at_once, count));
      },
      dealing);
}

Measurement CompiledKernel::measure(const Arguments& arguments, double seconds) const {
  Launch launch;
  Measurement made;
  made.blocks = bind(launch, arguments, {}, 1);
  if (made.blocks == 0) return made;
  launch.profile = &made.profile;
  Together one(launch, nullptr);
  Engine& engine = one.engine(0);
  const auto run = [&](std::int64_t block) {
    const double start = seconds_of_thread();
    engine.run_block(block);
    return seconds_of_thread() - start;
  };
  run(made.blocks / 2);  // what is read first comes from far
  const double once = std::max(run(made.blocks / 2), 1e-9);
  made.profile.clear();
  const double most = static_cast<double>(std::min<std::int64_t>(made.blocks, 1024));
  made.measured = static_cast<std::int64_t>(std::clamp(seconds / once, 1.0, most));
  for (std::int64_t i = 0; i < made.measured; ++i) {
    made.seconds += run((2 * i + 1) * made.blocks / (2 * made.measured));
  }
  return made;
}

}  // namespace tilewright::cpu
