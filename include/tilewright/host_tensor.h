#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tilewright/dtype.h"

namespace tilewright {

// A tensor in the host's memory: row-major elements that it owns. Making one raises Error(usage)
// where an extent is negative or the elements that are given are more or fewer than the shape's,
// and Error(unavailable) where there is no memory for it.
class HostTensor {
 public:
  HostTensor() = default;  // f32 of shape {0}
  static HostTensor zeros(DType dtype, std::vector<std::int64_t> shape);
  // Every byte 0xff, which is NaN in the floating dtypes and -1 in the integers (255 in u8): what
  // an output holds before a kernel runs, so that an element that is not written shows.
  static HostTensor poisoned(DType dtype, std::vector<std::int64_t> shape);
  // Standard normal numbers, rounded to the dtype; the same for a seed on every machine.
  static HostTensor random_normal(DType dtype, std::vector<std::int64_t> shape, std::uint64_t seed);
  static HostTensor from_bytes(DType dtype, std::vector<std::int64_t> shape,
                               std::vector<std::byte> bytes);
  // Row-major values, rounded to the dtype.
  static HostTensor from_values(DType dtype, std::vector<std::int64_t> shape,
                                const std::vector<double>& values);

  DType dtype() const { return dtype_; }
  const std::vector<std::int64_t>& shape() const { return shape_; }
  std::vector<std::int64_t> strides() const;  // in elements
  std::int64_t elements() const;
  std::byte* data() { return bytes_.data(); }
  const std::byte* data() const { return bytes_.data(); }
  std::size_t size_bytes() const { return bytes_.size(); }

  // One element; indices out of range are usage errors.
  double at(const std::vector<std::int64_t>& indices) const;
  void set(const std::vector<std::int64_t>& indices, double value);
  // One element by its row-major number; out of range it is a usage error.
  double flat(std::int64_t index) const;
  void set_flat(std::int64_t index, double value);

  // Same dtype, shape and bytes.
  friend bool operator==(const HostTensor& a, const HostTensor& b);
  friend bool operator!=(const HostTensor& a, const HostTensor& b) { return !(a == b); }

 private:
  HostTensor(DType dtype, std::vector<std::int64_t> shape, std::byte fill);
  std::int64_t flat_index(const std::vector<std::int64_t>& indices) const;

  DType dtype_ = DType::f32;
  std::vector<std::int64_t> shape_ = {0};
  std::vector<std::byte> bytes_;
};

}  // namespace tilewright
