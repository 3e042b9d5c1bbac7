#pragma once

#include "cpu/kernels/chain.h"
#include "cpu/kernels/convert.h"
#include "cpu/kernels/copy.h"
#include "cpu/kernels/elementwise.h"
#include "cpu/kernels/product.h"
#include "cpu/kernels/reduce.h"

// The table of one instruction set.
namespace tilewright::cpu::TW_LEVEL {
namespace {

// Designates an entry of a table by an enumerator.
template <typename Enum>
constexpr int at(Enum value) {
  return static_cast<int>(value);
}

constexpr void list_elementwise(Kernels& k) {
  const auto set = [&k](Function function, Lane lane, Elementwise kernel) {
    k.elementwise[at(function)][at(lane)] = kernel;
  };
#define TW_SET(name, lane) set(Function::name, Lane::lane, name##_##lane);
#define TW_FOR_EACH(op, lane, names) names(op, lane)
#define TW_ORDERED(op, lane) op(lt, lane) op(le, lane) op(eq, lane) op(ne, lane)
#define TW_REALS(op, lane)                                                                     \
  op(exp, lane) op(exp2, lane) op(log, lane) op(log2, lane) op(sqrt, lane) op(rsqrt, lane)     \
      op(rcp, lane) op(tanh, lane) op(log1p, lane) op(expm1, lane) op(erf, lane) op(sin, lane) \
          op(cos, lane) op(floor, lane) op(ceil, lane) op(rint, lane) op(fma, lane)
#define TW_NUMBERS(op, lane)                                                          \
  op(add, lane) op(sub, lane) op(mul, lane) op(div, lane) op(min, lane) op(max, lane) \
      op(neg, lane) op(abs, lane)
#define TW_WHOLE(op, lane)                                                             \
  op(mod, lane) op(ceildiv, lane) op(bit_and, lane) op(bit_or, lane) op(bit_xor, lane) \
      op(bit_not, lane) op(shift_left, lane) op(shift_right, lane)
  TW_NUMBERS(TW_SET, f32)
  TW_REALS(TW_SET, f32)
  TW_ORDERED(TW_SET, f32)
  TW_NUMBERS(TW_SET, i32)
  TW_WHOLE(TW_SET, i32)
  TW_ORDERED(TW_SET, i32)
  TW_NUMBERS(TW_SET, i64)
  TW_WHOLE(TW_SET, i64)
  TW_ORDERED(TW_SET, i64)
  TW_ORDERED(TW_SET, boolean)
  TW_SET(logical_and, boolean)
  TW_SET(logical_or, boolean)
  TW_SET(logical_not, boolean)
  set(Function::min, Lane::boolean, logical_and_boolean);
  set(Function::max, Lane::boolean, logical_or_boolean);
#undef TW_SET
#undef TW_FOR_EACH
#undef TW_ORDERED
#undef TW_REALS
#undef TW_NUMBERS
#undef TW_WHOLE
}

template <typename From>
constexpr void list_conversions_to_integers(Convert* to) {
  to[at(Element::i32)] = convert<From, std::int32_t>;
  to[at(Element::i64)] = convert<From, std::int64_t>;
  to[at(Element::i8)] = convert<From, std::int8_t>;
  to[at(Element::u8)] = convert<From, std::uint8_t>;
  to[at(Element::u32)] = convert<From, std::uint32_t>;
}

template <typename Integer>
constexpr void list_conversions_of(Element integer, Kernels& k) {
  list_conversions_to_integers<Integer>(k.convert[at(integer)]);
  k.convert[at(integer)][at(Element::f32)] = convert<Integer, float>;
  k.convert[at(integer)][at(Element::boolean)] = convert<Integer, Bool>;
}

constexpr void list_conversions(Kernels& k) {
  Convert* const from_f32 = k.convert[at(Element::f32)];
  list_conversions_to_integers<float>(from_f32);
  from_f32[at(Element::f32)] = convert<float, float>;
  from_f32[at(Element::f16)] = convert<float, F16>;
  from_f32[at(Element::bf16)] = convert<float, Bf16>;
  from_f32[at(Element::f8e4m3)] = convert<float, F8>;
  from_f32[at(Element::boolean)] = convert<float, Bool>;
  k.convert[at(Element::f16)][at(Element::f32)] = convert<F16, float>;
  k.convert[at(Element::bf16)][at(Element::f32)] = convert<Bf16, float>;
  k.convert[at(Element::f8e4m3)][at(Element::f32)] = convert<F8, float>;
  list_conversions_of<std::int32_t>(Element::i32, k);
  list_conversions_of<std::int64_t>(Element::i64, k);
  list_conversions_of<std::int8_t>(Element::i8, k);
  list_conversions_of<std::uint8_t>(Element::u8, k);
  list_conversions_of<std::uint32_t>(Element::u32, k);
  Convert* const from_boolean = k.convert[at(Element::boolean)];
  from_boolean[at(Element::f32)] = convert<Bool, float>;
  from_boolean[at(Element::i32)] = convert<Bool, std::int32_t>;
  from_boolean[at(Element::i64)] = convert<Bool, std::int64_t>;
}

template <Reduction function, typename F>
constexpr void list_reduction(Kernels& k) {
  Reduce* const row = k.reduce_along_row[at(function)];
  Reduce* const column = k.reduce_along_column[at(function)];
  if constexpr (function == Reduction::add) {
    row[at(Lane::f32)] = sum_row_floats;
  } else {
    row[at(Lane::f32)] = reduce_row_floats<F>;
  }
  row[at(Lane::i32)] = reduce_row_integers<std::int32_t, function>;
  row[at(Lane::i64)] = reduce_row_integers<std::int64_t, function>;
  column[at(Lane::f32)] = reduce_column_floats<F>;
  column[at(Lane::i32)] = reduce_column_integers<std::int32_t, function>;
  column[at(Lane::i64)] = reduce_column_integers<std::int64_t, function>;
}

template <typename T>
constexpr void list_moves(int size, Kernels& k) {
  k.select[size] = select<T>;
  k.copy[size] = copy<T>;
  k.fill[size] = fill<T>;
}

constexpr Kernels table(const char* name) {
  Kernels k = {};
  k.name = name;
  list_elementwise(k);
  list_conversions(k);
  k.chain = chain;
  k.end_far_stores = end_far_stores;
  list_moves<std::uint8_t>(0, k);
  list_moves<std::uint16_t>(1, k);
  list_moves<std::uint32_t>(2, k);
  list_moves<std::uint64_t>(3, k);
  k.iota_columns = iota_columns;
  k.iota_rows = iota_rows;
  list_reduction<Reduction::add, Add>(k);
  list_reduction<Reduction::min, Min>(k);
  list_reduction<Reduction::max, Max>(k);
  k.sum_along_row_in_parts = sum_row_floats_in_parts;
  k.sum_of_products_in_parts = sum_products_in_parts;
  k.any = any;
  k.product_scratch = product_scratch;
  k.product = product;
  return k;
}

}  // namespace
}  // namespace tilewright::cpu::TW_LEVEL
