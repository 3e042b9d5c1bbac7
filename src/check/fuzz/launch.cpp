#include "check/fuzz/launch.h"

#include <algorithm>
#include <cmath>

namespace tilewright::checks::fuzz {
namespace {

constexpr std::int64_t kRowAlignment = 16;  // bytes, of every stride that TMA takes

std::vector<std::int64_t> padded(DType dtype, std::vector<std::int64_t> shape) {
  const std::int64_t step = kRowAlignment / size_of(dtype);
  // A tensor of one axis has no stride; whatever follows it is padding all the same.
  shape.back() = (shape.back() + 2 * step - 1) / step * step;
  return shape;
}

}  // namespace

LaunchTensor::LaunchTensor(std::string name, DType dtype, std::vector<std::int64_t> shape)
    : name(std::move(name)),
      shape(std::move(shape)),
      memory(HostTensor::poisoned(dtype, padded(dtype, this->shape))) {}

void LaunchTensor::fill_randomly(std::uint64_t seed) {
  const HostTensor values = HostTensor::random_normal(f32, memory.shape(), seed);
  const std::int64_t row = shape.back(), width = memory.shape().back();
  for (std::int64_t i = 0; i < memory.elements(); ++i) {
    if (i % width >= row) continue;
    const double value = values.flat(i);
    memory.set_flat(i, is_integer(memory.dtype()) ? std::round(4 * value) : value);
  }
}

TensorArgument LaunchTensor::argument() {
  return {name, memory.dtype(), shape, memory.strides(), memory.data()};
}

Arguments Launch::arguments() {
  Arguments arguments;
  for (LaunchTensor& tensor : tensors) arguments.tensors.push_back(tensor.argument());
  arguments.scalars = scalars;
  return arguments;
}

}  // namespace tilewright::checks::fuzz
