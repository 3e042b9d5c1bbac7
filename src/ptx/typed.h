#pragma once

#include <type_traits>

#include "ptx/machine.h"

// Helpers of those files that compute lane by lane.
namespace tilewright::ptx {

// Calls `f` with a value of the integer type that the PTX type stands for.
template <typename F>
void with_integer(Execution& x, Type type, F f) {
  switch (type) {
    case Type::u16:
    case Type::b16:
      return f(std::uint16_t{});
    case Type::s16:
      return f(std::int16_t{});
    case Type::u32:
    case Type::b32:
      return f(std::uint32_t{});
    case Type::s32:
      return f(std::int32_t{});
    case Type::u64:
    case Type::b64:
      return f(std::uint64_t{});
    case Type::s64:
      return f(std::int64_t{});
    case Type::none:
    case Type::pred:
    case Type::b8:
    case Type::u8:
    case Type::s8:
    case Type::f16:
    case Type::f16x2:
    case Type::bf16:
    case Type::bf16x2:
    case Type::f32:
    case Type::f64:
    case Type::tf32:
    case Type::e4m3:
    case Type::e5m2:
    case Type::e4m3x2:
    case Type::e5m2x2:
    case Type::f32x2:
    case Type::b128:
      break;
  }
  x.unsupported();
}

// operand 0 = f(operand 1, ...), of values of type T.
template <typename T, typename F>
void each1(Execution& x, F f) {
  const Lanes& a = x.read(1);
  Lanes& d = x.target(0);
  for_lanes(x.lanes, [&](int lane) { d[lane] = to_bits(f(from_bits<T>(a[lane]))); });
}
template <typename T, typename F>
void each2(Execution& x, F f) {
  const Lanes &a = x.read(1), &b = x.read(2);
  Lanes& d = x.target(0);
  for_lanes(x.lanes,
            [&](int lane) { d[lane] = to_bits(f(from_bits<T>(a[lane]), from_bits<T>(b[lane]))); });
}
template <typename T, typename F>
void each3(Execution& x, F f) {
  const Lanes &a = x.read(1), &b = x.read(2), &c = x.read(3);
  Lanes& d = x.target(0);
  for_lanes(x.lanes, [&](int lane) {
    d[lane] = to_bits(f(from_bits<T>(a[lane]), from_bits<T>(b[lane]), from_bits<T>(c[lane])));
  });
}

}  // namespace tilewright::ptx
