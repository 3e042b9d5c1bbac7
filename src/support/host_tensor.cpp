#include "tilewright/host_tensor.h"

#include <cmath>
#include <cstring>
#include <utility>

#include "support/diagnostic.h"
#include "support/number_formats.h"
#include "support/random.h"

namespace tilewright {
namespace {

std::string braces(const std::vector<std::int64_t>& numbers) {
  std::string text = "{";
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    text += (i ? ", " : "") + std::to_string(numbers[i]);
  }
  return text + "}";
}

std::int64_t checked_elements(DType dtype, const std::vector<std::int64_t>& shape) {
  std::int64_t bytes = size_of(dtype);
  for (const std::int64_t extent : shape) {
    if (extent < 0) Diagnostic({}, "a tensor's shape " + braces(shape) + " is negative").raise();
    if (__builtin_mul_overflow(bytes, extent, &bytes)) {
      Diagnostic({}, "a tensor of shape " + braces(shape) + " does not fit 64 bits").raise();
    }
  }
  return bytes / size_of(dtype);
}

std::int64_t nearest_integer(DType dtype, double value) {
  const auto [lowest, highest] = range_of(dtype);
  const double rounded = std::nearbyint(value);
  if (std::isnan(rounded)) return 0;
  if (rounded <= static_cast<double>(lowest)) return lowest;
  if (rounded >= static_cast<double>(highest)) return highest;
  return static_cast<std::int64_t>(rounded);
}

}  // namespace

HostTensor::HostTensor(DType dtype, std::vector<std::int64_t> shape, std::byte fill)
    : dtype_(dtype), shape_(std::move(shape)) {
  const std::int64_t count = checked_elements(dtype_, shape_);
  const std::size_t bytes =
      static_cast<std::size_t>(count) * static_cast<std::size_t>(size_of(dtype_));
  try {
    bytes_.assign(bytes, fill);
  } catch (const std::exception&) {  // bad_alloc or length_error
    Diagnostic({},
               "there is no memory for a tensor of shape " + braces(shape_) + ": " +
                   std::to_string(bytes) + " bytes",
               ErrorKind::unavailable)
        .fix("take a smaller one")
        .raise();
  }
}

HostTensor HostTensor::zeros(DType dtype, std::vector<std::int64_t> shape) {
  return HostTensor(dtype, std::move(shape), std::byte{0});
}

HostTensor HostTensor::poisoned(DType dtype, std::vector<std::int64_t> shape) {
  return HostTensor(dtype, std::move(shape), std::byte{0xff});
}

HostTensor HostTensor::random_normal(DType dtype, std::vector<std::int64_t> shape,
                                     std::uint64_t seed) {
  HostTensor tensor = zeros(dtype, std::move(shape));
  Random random(seed);
  const std::int64_t count = tensor.elements();
  for (std::int64_t i = 0; i < count; i += 2) {  // Box and Muller: two numbers a step
    const double radius = std::sqrt(-2 * std::log(random.uniform()));
    const double angle = 6.283185307179586 * random.uniform();
    tensor.set_flat(i, radius * std::cos(angle));
    if (i + 1 < count) tensor.set_flat(i + 1, radius * std::sin(angle));
  }
  return tensor;
}

HostTensor HostTensor::from_bytes(DType dtype, std::vector<std::int64_t> shape,
                                  std::vector<std::byte> bytes) {
  const std::size_t expected = static_cast<std::size_t>(checked_elements(dtype, shape)) *
                               static_cast<std::size_t>(size_of(dtype));
  if (bytes.size() != expected) {
    Diagnostic({}, "a tensor of " + std::string(name_of(dtype)) + " " + braces(shape) + " has " +
                       std::to_string(expected) + " bytes, but " + std::to_string(bytes.size()) +
                       " are given")
        .raise();
  }
  HostTensor tensor;
  tensor.dtype_ = dtype;
  tensor.shape_ = std::move(shape);
  tensor.bytes_ = std::move(bytes);
  return tensor;
}

HostTensor HostTensor::from_values(DType dtype, std::vector<std::int64_t> shape,
                                   const std::vector<double>& values) {
  HostTensor tensor = zeros(dtype, std::move(shape));
  if (static_cast<std::int64_t>(values.size()) != tensor.elements()) {
    Diagnostic({}, "a tensor of shape " + braces(tensor.shape_) + " has " +
                       std::to_string(tensor.elements()) + " elements, but " +
                       std::to_string(values.size()) + " values are given")
        .raise();
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    tensor.set_flat(static_cast<std::int64_t>(i), values[i]);
  }
  return tensor;
}

std::vector<std::int64_t> HostTensor::strides() const {
  std::vector<std::int64_t> result(shape_.size());
  std::int64_t stride = 1;
  for (std::size_t i = shape_.size(); i-- > 0;) {
    result[i] = stride;
    stride *= shape_[i];
  }
  return result;
}

std::int64_t HostTensor::elements() const {
  return static_cast<std::int64_t>(bytes_.size()) / size_of(dtype_);
}

std::int64_t HostTensor::flat_index(const std::vector<std::int64_t>& indices) const {
  bool inside = indices.size() == shape_.size();
  std::int64_t index = 0;
  for (std::size_t i = 0; inside && i < shape_.size(); ++i) {
    inside = indices[i] >= 0 && indices[i] < shape_[i];
    index = index * shape_[i] + indices[i];
  }
  if (!inside) {
    Diagnostic({}, "element " + braces(indices) + " is outside a tensor of shape " + braces(shape_))
        .raise();
  }
  return index;
}

double HostTensor::at(const std::vector<std::int64_t>& indices) const {
  return flat(flat_index(indices));
}

void HostTensor::set(const std::vector<std::int64_t>& indices, double value) {
  set_flat(flat_index(indices), value);
}

double HostTensor::flat(std::int64_t index) const {
  if (index < 0 || index >= elements()) {
    Diagnostic({}, "element " + std::to_string(index) + " is outside a tensor of " +
                       std::to_string(elements()) + " elements")
        .raise();
  }
  const std::byte* source = data() + index * size_of(dtype_);
  if (dtype_ == DType::boolean) return *source != std::byte{0};
  if (is_integer(dtype_)) return static_cast<double>(to_integer(dtype_, source));
  float value = 0;
  to_float(dtype_, source, &value, 1);
  return value;
}

void HostTensor::set_flat(std::int64_t index, double value) {
  flat(index);  // checks the index
  std::byte* target = data() + index * size_of(dtype_);
  if (dtype_ == DType::boolean) {
    *target = std::byte{value != 0};
  } else if (is_integer(dtype_)) {
    from_integer(dtype_, nearest_integer(dtype_, value), target);
  } else {
    const float narrow = static_cast<float>(value);
    from_float(dtype_, &narrow, target, 1);
  }
}

bool operator==(const HostTensor& a, const HostTensor& b) {
  return a.dtype_ == b.dtype_ && a.shape_ == b.shape_ && a.bytes_ == b.bytes_;
}

}  // namespace tilewright
