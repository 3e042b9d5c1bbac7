#include "runtime/tensor_map.h"

#include <fmt/format.h>

#include "runtime/cuda_api.h"
#include "support/diagnostic.h"

namespace tilewright::runtime {
namespace {

constexpr uint64_t kAlignment = 16;
constexpr uint64_t kMaxSize = uint64_t{1} << 32;
constexpr uint64_t kMaxStride = uint64_t{1} << 40;
constexpr uint32_t kMaxBox = 256;
constexpr uint32_t kMaxElementStride = 8;
constexpr const char* kOtherCopy = ", or pass a copy of it that lies so";

[[noreturn]] void fail(const TensorMapSpec& spec, const std::string& why, const std::string& fix) {
  Diagnostic(spec.where, fmt::format("tensor map of {}: {}", spec.name, why))
      .token(spec.name)
      .fix(fix)
      .raise();
}

void check_base(const TensorMapSpec& spec, const void* base) {
  const auto address = reinterpret_cast<uintptr_t>(base);
  if (address == 0) fail(spec, "its base address is null", "allocate the tensor before the launch");
  if (address % kAlignment != 0) {
    fail(spec,
         fmt::format("its base address 0x{:x} is not a multiple of {} bytes (it is {} past one)",
                     address, kAlignment, address % kAlignment),
         fmt::format("start the tensor at a multiple of {} elements of its allocation{}",
                     kAlignment / static_cast<uint64_t>(size_of(spec.type)), kOtherCopy));
  }
}

uint32_t swizzle_bytes(TensorMapSwizzle swizzle) {
  return swizzle == TensorMapSwizzle::none ? 0 : 16u << static_cast<int>(swizzle);
}

bool is_floating(TensorMapType type) { return static_cast<int>(type) >= 6; }

}  // namespace

int size_of(TensorMapType type) {
  switch (type) {
    case TensorMapType::u8:
      return 1;
    case TensorMapType::u16:
    case TensorMapType::f16:
    case TensorMapType::bf16:
      return 2;
    case TensorMapType::u32:
    case TensorMapType::i32:
    case TensorMapType::f32:
    case TensorMapType::tf32:
      return 4;
    case TensorMapType::u64:
    case TensorMapType::i64:
    case TensorMapType::f64:
      return 8;
  }
  return 0;
}

void check(const TensorMapSpec& spec) {
  if (spec.rank < 1 || spec.rank > 5) {
    fail(spec, fmt::format("it has {} axes, and TMA takes 1 to 5", spec.rank),
         "merge axes whose strides follow from each other, or slice the tensor");
  }
  check_base(spec, spec.base);
  for (int axis = 0; axis < spec.rank; ++axis) {
    if (spec.sizes[axis] == 0 || spec.sizes[axis] > kMaxSize) {
      fail(spec,
           fmt::format("axis {} has {} elements, and TMA takes 1 to {}", axis, spec.sizes[axis],
                       kMaxSize),
           spec.sizes[axis] == 0 ? "do not launch the kernel on an empty tensor"
                                 : "split the axis in two");
    }
    if (spec.box[axis] == 0 || spec.box[axis] > kMaxBox) {
      fail(spec,
           fmt::format("the box has {} elements along axis {}, and TMA takes 1 to {}",
                       spec.box[axis], axis, kMaxBox),
           "use a smaller tile, or copy it as several boxes");
    }
    if (spec.element_strides[axis] == 0 || spec.element_strides[axis] > kMaxElementStride) {
      fail(spec,
           fmt::format("the element stride of axis {} is {}, and TMA takes 1 to {}", axis,
                       spec.element_strides[axis], kMaxElementStride),
           "use an axis of its own for the larger step");
    }
  }
  for (int axis = 1; axis < spec.rank; ++axis) {
    const uint64_t stride = spec.strides[axis - 1];
    if (stride % kAlignment != 0) {
      fail(spec,
           fmt::format("the stride of axis {} is {} bytes, no multiple of {}", axis, stride,
                       kAlignment),
           fmt::format("pad it to {} bytes{}", stride / kAlignment * kAlignment + kAlignment,
                       kOtherCopy));
    }
    if (stride >= kMaxStride) {
      fail(spec,
           fmt::format("the stride of axis {} is {} bytes, and TMA takes less than {}", axis,
                       stride, kMaxStride),
           "split the tensor");
    }
  }

  const uint32_t inner_bytes = spec.box[0] * static_cast<uint32_t>(size_of(spec.type));
  if (inner_bytes % kAlignment != 0) {
    fail(spec, fmt::format("the box is {} bytes wide, no multiple of {}", inner_bytes, kAlignment),
         "use a tile whose rows are a multiple of 16 bytes");
  }
  const uint32_t span = swizzle_bytes(spec.swizzle);
  if (span != 0 && inner_bytes > span) {
    fail(spec,
         fmt::format("the box is {} bytes wide, and its {}-byte swizzle takes at most {}",
                     inner_bytes, span, span),
         fmt::format("copy the tile as boxes of {} elements, or use a wider swizzle",
                     span / static_cast<uint32_t>(size_of(spec.type))));
  }
  if (spec.fill == TensorMapFill::nan && !is_floating(spec.type)) {
    fail(spec, "elements outside it are to be NaN, and its type is an integer",
         "fill with zero, or use a floating-point type");
  }
}

TensorMap encode(const TensorMapSpec& spec) {
  check(spec);
  const CudaDriver& driver = cuda_driver();
  TensorMap map = {};
  check_cuda(driver,
             driver.cuTensorMapEncodeTiled(
                 &map, static_cast<int>(spec.type), static_cast<uint32_t>(spec.rank), spec.base,
                 spec.sizes, spec.strides, spec.box, spec.element_strides, 0,
                 static_cast<int>(spec.swizzle), static_cast<int>(spec.promotion),
                 static_cast<int>(spec.fill)),
             "cuTensorMapEncodeTiled", "tensor " + spec.name);
  return map;
}

}  // namespace tilewright::runtime
