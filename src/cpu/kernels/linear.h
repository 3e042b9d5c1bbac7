#pragma once

#include "cpu/kernels/convert.h"
#include "cpu/kernels/reduce.h"

// Chains that are linear in the elements of a row, those that sum such rows or their squares, and
// exponentials of such rows with their sums: what normalisations and a softmax do. Each is one
// loop, where a chain goes from step to step.
namespace tilewright::cpu::TW_LEVEL {
namespace {

// `far`: past the caches, where elements are f32 or bf16.
template <bool far = false, typename T, int count>
TW_INLINE void store_floats(T* to, const Floats (&values)[count]) {
  unrolled<count>([&](auto i) {
    alignas(TW_VECTOR_BYTES) float wide[kLanes];
    store(wide, values[i.value]);
    convert_row(wide, to + i.value * kLanes, kLanes);
  });
}
template <bool far = false, int count>
TW_INLINE void store_floats(float* to, const Floats (&values)[count]) {
  unrolled<count>([&](auto i) {
    float* const at = to + i.value * kLanes;
    far ? store_far(at, values[i.value]) : store(at, values[i.value]);
  });
}
// The upper halves of the result are rounded to bf16.
TW_INLINE Ints rounded_to_bf16(Floats value) {
  const Words bits = reinterpret_cast<Words>(value);
  const Words rounded = bits + 0x7fff + ((bits >> 16) & 1);
  return value == value ? reinterpret_cast<Ints>(rounded) : splat_int(0x7fff0000);
}
template <bool far>
TW_INLINE void store_half_words(Bf16* to, HalfWords values) {
  far ? store_far(to, values) : static_cast<void>(__builtin_memcpy(to, &values, sizeof(values)));
}
#if defined(__AVX2__) && !defined(__AVX512F__)
// Two vectors become one.
template <bool far>
TW_INLINE void store_upper_halves(Bf16* to, Ints first, Ints second) {
  const __m256i halves =
      _mm256_packus_epi32((__m256i)((Words)first >> 16), (__m256i)((Words)second >> 16));
  constexpr int kInOrder = 0xd8;  // halves of 128 bits were packed each by itself
  const Floats values = (Floats)_mm256_permute4x64_epi64(halves, kInOrder);
  float* const at = reinterpret_cast<float*>(to);
  far ? store_far(at, values) : store(at, values);
}
#endif
template <bool far = false, int count>
TW_INLINE void store_floats(Bf16* to, const Floats (&values)[count]) {
#if defined(__AVX512BF16__)
  __mmask16 others = rounds_otherwise(values[0]);
  unrolled<count - 1>(
      [&](auto i) { others = _kor_mask16(others, rounds_otherwise(values[i.value + 1])); });
  if (__builtin_expect(_kortestz_mask16_u8(others, others), 1)) {
    return unrolled<count>([&](auto i) {
      const auto rounded = (HalfWords)_mm512_cvtneps_pbh(values[i.value]);
      store_half_words<far>(to + i.value * kLanes, rounded);
    });
  }
#endif
#if defined(__AVX2__) && !defined(__AVX512F__)
  if constexpr (count % 2 == 0) {
    return unrolled<count / 2>([&](auto i) {
      constexpr int kFirst = 2 * i.value;
      store_upper_halves<far>(to + kFirst * kLanes, rounded_to_bf16(values[kFirst]),
                              rounded_to_bf16(values[kFirst + 1]));
    });
  }
#endif
  unrolled<count>([&](auto i) {
    const Words halves = reinterpret_cast<Words>(rounded_to_bf16(values[i.value])) >> 16;
    store_half_words<far>(to + i.value * kLanes, __builtin_convertvector(halves, HalfWords));
  });
}

// (x - less) * factor, and then times a row of weights, or that and a row added, rounded once.
// 0 is taken away, and the factor is 1, where a chain does neither: nothing changes.
constexpr float kNothingLess = 0, kOnce = 1;
struct Linear {
  const void* x;
  std::int64_t x_stride;
  const float *less = &kNothingLess, *factor = &kOnce, *weights = nullptr, *added = nullptr;
  void* to = nullptr;
  std::int64_t less_stride = 0, factor_stride = 0, weights_stride = 0, added_stride = 0,
               to_stride = 0;
  void* sums = nullptr;
  bool squares = false, is_far = false;
};

template <typename T>
TW_INLINE T* moved(T* p, std::int64_t bytes) {
  return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(p) +
                              static_cast<std::uintptr_t>(bytes));
}

// Where an operand's first row is.
TW_INLINE const void* operand_of(const Step& step, int which, FirstRow first) {
  const std::int64_t row = step.of_strip[which] ? first.of_strip : first.of_all;
  return moved(step.operands[which], row * step.row_strides[which]);
}

// Which rows follow behind the factor.
enum class Rows { none, weights, weights_and_added };

template <typename T, Rows rows, int count, bool far = false>
TW_INLINE void store_vectors(const T* x, Floats less, Floats factor, const float* weights,
                             const float* added, T* to, std::int64_t column) {
  Floats values[count];
  unrolled<count>([&](auto i) {
    const std::int64_t at = column + i.value * kLanes;
    Floats value = (load_as_floats(x + at) - less) * factor;
    if (rows == Rows::weights) value = value * load(weights + at);
    if (rows == Rows::weights_and_added) {
      value = fma_vector{}(value, load(weights + at), load(added + at));
    }
    values[i.value] = value;
  });
  store_floats<far>(to + column, values);
}

template <typename T, Rows rows, bool far>
TW_APART void store_linear(Shape shape, const Linear& of) {
  Asking asking(shape.ahead);
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    const auto* const x = static_cast<const T*>(moved(of.x, row * of.x_stride));
    const Floats less = splat(*moved(of.less, row * of.less_stride));
    const Floats factor = splat(*moved(of.factor, row * of.factor_stride));
    const float* const weights = moved(of.weights, row * of.weights_stride);
    const float* const added = moved(of.added, row * of.added_stride);
    auto* const to = static_cast<T*>(moved(of.to, row * of.to_stride));
    std::int64_t column = 0;
    for (; column + Asking::kRound <= shape.columns; column += Asking::kRound) {
      asking.next();
      store_vectors<T, rows, 4, far>(x, less, factor, weights, added, to, column);
    }
    for (; column < shape.columns; column += kLanes) {
      store_vectors<T, rows, 1>(x, less, factor, weights, added, to, column);
    }
  }
}

// Sums take x - less, or its square.
template <typename T, bool squares>
struct LinearRow {
  const T* x;
  Floats less;
  TW_INLINE Block at(std::int64_t column) const {
    Block result;
    for (int i = 0; i < kVectors; ++i) {
      const Floats value = load_as_floats(x + column + i * kLanes) - less;
      result.part[i] = squares ? value * value : value;
    }
    return result;
  }
};
template <typename T, bool squares>
TW_APART void sum_linear(Shape shape, const Linear& of) {
  Asking asking(shape.ahead);
  ResultsOfRows results(static_cast<float*>(of.to));
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    const LinearRow<T, squares> elements{static_cast<const T*>(moved(of.x, row * of.x_stride)),
                                         splat(*moved(of.less, row * of.less_stride))};
    results.add(tree<Add>(parts_of_row<Add>(elements, shape.columns, asking)));
  }
  results.end();
}

// Those of the exponentials of (x - less) * factor, which are stored on the way.
template <typename T, typename F>
struct ExponentialsOfRow {
  const T* x;
  Floats less, factor;
  float* to;
  TW_INLINE Block at(std::int64_t column) const {
    Block result;
    for (int i = 0; i < kVectors; ++i) {
      const std::int64_t place = column + i * kLanes;
      result.part[i] = F{}((load_as_floats(x + place) - less) * factor);
      store(to + place, result.part[i]);
    }
    return result;
  }
};
// The rest of a row comes once, and would be half of the code.
template <typename T, typename F>
TW_APART void store_block(const ExponentialsOfRow<T, F>& row, std::int64_t column) {
  row.at(column);
}
template <typename T, typename F>
TW_INLINE ElementsOfRow rest_of(const ExponentialsOfRow<T, F>& row, std::int64_t column,
                                std::int64_t columns) {
  for (; column < columns; column += kBlock) store_block(row, column);
  return {row.to};
}
template <typename T, typename F>
TW_APART void sum_exponentials(Shape shape, const Linear& of) {
  Asking asking(shape.ahead);
  ResultsOfRows results(static_cast<float*>(of.sums));
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    const ExponentialsOfRow<T, F> elements{static_cast<const T*>(moved(of.x, row * of.x_stride)),
                                           splat(*moved(of.less, row * of.less_stride)),
                                           splat(*moved(of.factor, row * of.factor_stride)),
                                           static_cast<float*>(moved(of.to, row * of.to_stride))};
    results.add(tree<Add>(parts_of_row<Add>(elements, shape.columns, asking)));
  }
  results.end();
}
template <typename T>
void sum_exponentials(Shape shape, const Linear& of, Function function) {
  function == Function::exp ? sum_exponentials<T, exp_vector>(shape, of)
                            : sum_exponentials<T, exp2_vector>(shape, of);
}

template <typename T, bool far>
void store_linear(Shape shape, const Linear& of) {
  if (of.added != nullptr) return store_linear<T, Rows::weights_and_added, far>(shape, of);
  if (of.weights != nullptr) return store_linear<T, Rows::weights, far>(shape, of);
  store_linear<T, Rows::none, far>(shape, of);
}

template <typename T>
void compute_linear(Shape shape, const Linear& of, bool sums) {
  if (sums && of.squares) return sum_linear<T, true>(shape, of);
  if (sums) return sum_linear<T, false>(shape, of);
  of.is_far ? store_linear<T, true>(shape, of) : store_linear<T, false>(shape, of);
}

// And the store of f32 behind it.
TW_INLINE bool is_exponential(const Step* step) {
  return step->kind == StepKind::function &&
         (step->function == Function::exp || step->function == Function::exp2) &&
         step[1].kind == StepKind::store && step[1].element == Element::f32 && !step[1].is_far;
}

// Whether the steps are one, which is computed then.
TW_INLINE bool compute_if_linear(Shape shape, const Step* steps, int count, FirstRow first) {
  Linear of = {operand_of(steps[0], 0, first), steps[0].row_strides[0]};
  const Step* step = steps + 1;
  const Step* const last = steps + count - 1;
  const auto is = [&](Function function, bool repeats) {
    return step < last && step->kind == StepKind::function && step->function == function &&
           step->repeats[0] == repeats;
  };
  const auto take = [&](const float*& operand, std::int64_t& stride, int which) {
    operand = static_cast<const float*>(operand_of(*step, which, first));
    stride = step->row_strides[which];
  };
  if (is(Function::sub, true) && step->place == 0) take(of.less, of.less_stride, 0), ++step;
  const bool sums = last->kind == StepKind::sum;
  // A sum's results lie one after the other.
  const bool sums_side_by_side = sums && (last->row_strides[0] == 4 || shape.rows == 1);
  const bool is_bf16 = steps[0].element == Element::bf16;
  const bool is_wide = is_bf16 || steps[0].element == Element::f32;
  const Step* const exponential = last - 2;
  if (kIsUsual && sums_side_by_side && is_wide && exponential > steps &&
      is_exponential(exponential)) {
    if (is(Function::mul, true)) take(of.factor, of.factor_stride, 0), ++step;
    if (step != exponential || steps[0].repeats[0]) return false;
    of.to = const_cast<void*>(operand_of(exponential[1], 0, first));
    of.to_stride = exponential[1].row_strides[0];
    of.sums = const_cast<void*>(operand_of(*last, 0, first));
    if constexpr (kIsUsual) {
      is_bf16 ? sum_exponentials<Bf16>(shape, of, exponential->function)
              : sum_exponentials<float>(shape, of, exponential->function);
    }
    return true;
  }
  if (sums) {
    of.squares = step < last && step->kind == StepKind::square;
    if (of.squares) ++step;
  } else if (is(Function::mul, true)) {
    take(of.factor, of.factor_stride, 0), ++step;
  }
  if (is(Function::mul, false)) {
    take(of.weights, of.weights_stride, 0), ++step;
  } else if (is(Function::fma, false) && step->place == 0 && !step->repeats[1]) {
    take(of.weights, of.weights_stride, 0), take(of.added, of.added_stride, 1), ++step;
  }
  const bool fits = step == last && !steps[0].repeats[0] && is_wide &&
                    !(sums && of.weights != nullptr) &&
                    (sums ? sums_side_by_side : last->element == steps[0].element);
  if (!fits) return false;
  of.to = const_cast<void*>(operand_of(*last, 0, first));
  of.to_stride = last->row_strides[0];
  of.is_far = last->is_far;
  is_bf16 ? compute_linear<Bf16>(shape, of, sums) : compute_linear<float>(shape, of, sums);
  return true;
}

}  // namespace
}  // namespace tilewright::cpu::TW_LEVEL
