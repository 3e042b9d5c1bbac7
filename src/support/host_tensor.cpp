#include "tilewright/host_tensor.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

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

[[noreturn]] void refuse_tensor(const std::string& problem, const std::string& fix) {
  Diagnostic({}, problem).fix(fix).raise();
}

std::int64_t checked_elements(DType dtype, const std::vector<std::int64_t>& shape) {
  if (dtype == DType::boolean) {
    refuse_tensor("a tensor of bool, which has no place in memory", "use u8 or i32: 0 and 1");
  }
  std::int64_t bytes = size_of(dtype);
  for (const std::int64_t extent : shape) {
    if (extent < 0) {
      refuse_tensor("a tensor's shape " + braces(shape) + " is negative",
                    "sizes are zero or positive");
    }
    if (__builtin_mul_overflow(bytes, extent, &bytes)) {
      refuse_tensor("a tensor of shape " + braces(shape) + " does not fit 64 bits",
                    "check the order and the unit of its sizes");
    }
  }
  return bytes / size_of(dtype);
}

std::string indices_up_to(std::int64_t count) {
  return count == 0 ? "there is no element" : "count from 0 to " + std::to_string(count - 1);
}

// Asked for each element: what is raised stands elsewhere, so that this may be inlined.
[[noreturn]] void refuse_index(std::int64_t index, std::int64_t elements) {
  refuse_tensor("element " + std::to_string(index) + " is outside a tensor of " +
                    std::to_string(elements) + " elements",
                indices_up_to(elements));
}
void check_index(std::int64_t index, std::int64_t elements) {
  if (index < 0 || index >= elements) refuse_index(index, elements);
}

std::int64_t nearest_integer(DType dtype, double value) {
  const auto [lowest, highest] = range_of(dtype);
  const double rounded = std::nearbyint(value);
  if (std::isnan(rounded)) return 0;
  if (rounded <= static_cast<double>(lowest)) return lowest;
  if (rounded >= static_cast<double>(highest)) return highest;
  return static_cast<std::int64_t>(rounded);
}

// Normal numbers that were drawn before. Tensors of a seed begin with the same ones, whatever their
// sizes, and a kernel that is simulated in many sizes asks for them again. The process keeps them,
// up to 64 MB.
class KnownDraws {
 public:
  // Puts the first ones into the tensor, as far as they are known; how many that are.
  std::int64_t take(std::uint64_t seed, HostTensor& tensor) {
    const std::lock_guard lock(mutex_);
    const auto known = draws_.find({tensor.dtype(), seed});
    if (known == draws_.end()) return 0;
    const std::size_t bytes = std::min(known->second.size(), tensor.size_bytes());
    std::copy_n(known->second.begin(), bytes, tensor.data());
    return static_cast<std::int64_t>(bytes) / size_of(tensor.dtype());
  }
  void keep(std::uint64_t seed, const HostTensor& tensor) {
    if (tensor.size_bytes() > kMostBytes) return;
    const std::lock_guard lock(mutex_);
    std::vector<std::byte>& draws = draws_[{tensor.dtype(), seed}];
    if (draws.size() >= tensor.size_bytes()) return;
    bytes_ += tensor.size_bytes() - draws.size();
    draws.assign(tensor.data(), tensor.data() + tensor.size_bytes());
    if (bytes_ <= kMostBytes) return;
    draws_.clear();
    bytes_ = 0;
  }

 private:
  static constexpr std::size_t kMostBytes = std::size_t{64} << 20;
  std::mutex mutex_;
  std::map<std::pair<DType, std::uint64_t>, std::vector<std::byte>> draws_;
  std::size_t bytes_ = 0;
};

KnownDraws& known_draws() {
  static KnownDraws draws;
  return draws;
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
  const std::int64_t known = known_draws().take(seed, tensor) / 2 * 2;
  const std::int64_t count = tensor.elements();
  if (known == count) return tensor;
  Random random(seed);
  random.skip(static_cast<std::uint64_t>(known));
  for (std::int64_t i = known; i < count; i += 2) {  // Box and Muller: two numbers a step
    const double radius = std::sqrt(-2 * std::log(random.uniform()));
    const double angle = 6.283185307179586 * random.uniform();
    tensor.set_flat(i, radius * std::cos(angle));
    if (i + 1 < count) tensor.set_flat(i + 1, radius * std::sin(angle));
  }
  known_draws().keep(seed, tensor);
  return tensor;
}

HostTensor HostTensor::from_bytes(DType dtype, std::vector<std::int64_t> shape,
                                  std::vector<std::byte> bytes) {
  const std::size_t expected = static_cast<std::size_t>(checked_elements(dtype, shape)) *
                               static_cast<std::size_t>(size_of(dtype));
  if (bytes.size() != expected) {
    refuse_tensor("a tensor of " + std::string(name_of(dtype)) + " " + braces(shape) + " has " +
                      std::to_string(expected) + " bytes, but " + std::to_string(bytes.size()) +
                      " are given",
                  "give " + std::to_string(size_of(dtype)) + " for each element of the shape");
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
    refuse_tensor("a tensor of shape " + braces(tensor.shape_) + " has " +
                      std::to_string(tensor.elements()) + " elements, but " +
                      std::to_string(values.size()) + " values are given",
                  "give one for each element, row by row");
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
  const auto outside = [&](const std::string& fix) {
    refuse_tensor("element " + braces(indices) + " is outside a tensor of shape " + braces(shape_),
                  fix);
  };
  if (indices.size() != shape_.size()) {
    outside("give an index for each of its axes, of which there are " +
            std::to_string(shape_.size()));
  }
  std::int64_t index = 0;
  for (std::size_t i = 0; i < shape_.size(); ++i) {
    if (indices[i] < 0 || indices[i] >= shape_[i]) {
      outside("along axis " + std::to_string(i) + ": " + indices_up_to(shape_[i]));
    }
    index = index * shape_[i] + indices[i];
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
  check_index(index, elements());
  const std::byte* source = data() + index * size_of(dtype_);
  if (is_integer(dtype_)) return static_cast<double>(to_integer(dtype_, source));
  float value = 0;
  to_float(dtype_, source, &value, 1);
  return value;
}

void HostTensor::set_flat(std::int64_t index, double value) {
  check_index(index, elements());
  std::byte* target = data() + index * size_of(dtype_);
  if (is_integer(dtype_)) {
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
