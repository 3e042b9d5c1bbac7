#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ir/ir.h"

namespace tilewright::simulator {

// How the interpreter holds an element: as Real (float or double), int64_t or uint8_t.
enum class Held : std::uint8_t { real, integer, boolean };
inline Held held(DType dtype) {
  return is_float(dtype) ? Held::real : dtype == DType::boolean ? Held::boolean : Held::integer;
}

// Calls `visit(T{})` with the type that holds the elements.
template <typename Real, typename Visit>
void with_element(Held kind, Visit&& visit) {
  switch (kind) {
    case Held::real:
      return visit(Real{});
    case Held::integer:
      return visit(std::int64_t{});
    case Held::boolean:
      return visit(std::uint8_t{});
  }
}

// A tile, or a scalar as a tile of rank 0. Elements are row-major in the type's shape; those
// outside the valid extents are never read, and are all ones (a NaN) so that a read of one would
// show. Copies share the elements.
class Value {
 public:
  Value() = default;
  // All of it exists.
  Value(const ir::Type& type, std::size_t real_bytes);

  const ir::Type& type() const { return *type_; }
  Held kind() const { return held(type_->dtype); }
  std::size_t element_bytes() const { return element_bytes_; }
  std::size_t rank() const { return extents_.size(); }
  const std::vector<std::int64_t>& extents() const { return extents_; }
  std::vector<std::int64_t>& extents() { return extents_; }
  bool is_whole() const { return extents_ == type_->shape; }
  // The same elements, as a tile of another shape that exists wholly.
  Value with_type(const ir::Type& type) const;

  std::byte* bytes() { return elements_ ? elements_.get() : scalar_; }
  const std::byte* bytes() const { return elements_ ? elements_.get() : scalar_; }
  template <typename T>
  T* data() {
    return reinterpret_cast<T*>(bytes());
  }
  template <typename T>
  const T* data() const {
    return reinterpret_cast<const T*>(bytes());
  }

 private:
  const ir::Type* type_ = nullptr;
  std::size_t element_bytes_ = 0;
  std::vector<std::int64_t> extents_;
  std::shared_ptr<std::byte[]> elements_;  // none of a rank 0 value
  alignas(8) std::byte scalar_[8] = {};
};

// "{64, 32}"
std::string shape_text(const std::vector<std::int64_t>& extents);

// Steps `index` to the next element of `extents`, last axis fastest; false after the last one.
bool advance(std::vector<std::int64_t>& index, const std::vector<std::int64_t>& extents);
bool any_empty(const std::vector<std::int64_t>& extents);

// Takes `count` elements of each operand to as many of the result.
class RowFunction {
 public:
  virtual ~RowFunction() = default;
  virtual void run(std::size_t count, const std::byte* const* operands, std::byte* result) = 0;
};

// Sets the result's extents to the smaller of the operands' and applies the function to all
// elements within them. An operand's axis of size 1 stretches; a scalar stretches along every axis.
void apply_elementwise(const std::vector<const Value*>& operands, Value& result,
                       RowFunction& function);

}  // namespace tilewright::simulator
