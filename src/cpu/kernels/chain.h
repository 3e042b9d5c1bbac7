#pragma once

#include "cpu/kernels/linear.h"

// Elementwise functions of f32 one behind the other, whose values stay in registers between them.
// Each step is a function that ends with a call of the next one. It has the values in its
// parameters, which the calling convention keeps in vector registers, and compilers make jumps of
// such calls.
namespace tilewright::cpu::TW_LEVEL {
namespace {

// A sum of each row, as sum_along_row_in_parts has it: element i goes to part i mod kParts.
constexpr std::int64_t kParts = 4 * kBlock;
struct SumOfRow {
  alignas(TW_VECTOR_BYTES) float parts[kParts];
  std::int64_t columns;  // of the row
};

struct ReadyStep;
// For four vectors, whose first element is at `column`, or for `a` alone.
using TakeValues = void (*)(Floats a, Floats b, Floats c, Floats d, const ReadyStep* step,
                            std::int64_t column);
// Of both kinds.
struct StepCode {
  TakeValues four, one;
};
struct ReadyStep {
  StepCode code;
  const void* operands[2];
};

template <int vectors>
TW_INLINE TakeValues function_of(const ReadyStep* step) {
  return vectors == 4 ? step->code.four : step->code.one;
}

// An operand of a step.
template <bool repeats>
TW_INLINE Floats operand(const ReadyStep* step, int which, std::int64_t column) {
  const auto* const data = static_cast<const float*>(step->operands[which]);
  return repeats ? splat(*data) : load(data + column);
}

// What follows are the kinds of steps: the value after each.
template <typename F>
struct OfValue {
  TW_INLINE static Floats next(Floats value, const ReadyStep*, std::int64_t) { return F{}(value); }
};
// Four values take turns.
template <>
struct OfValue<erf_vector> {
  TW_INLINE static Floats next(Floats value, const ReadyStep*, std::int64_t) {
    return erf_of(value);
  }
  TW_INLINE static void take_turns(Floats& a, Floats& b, Floats& c, Floats& d) {
    Floats all[4] = {a, b, c, d};
    erf_of(all);
    a = all[0];
    b = all[1];
    c = all[2];
    d = all[3];
  }
};
template <typename F>
constexpr bool kTakesTurns = false;
template <>
constexpr bool kTakesTurns<OfValue<erf_vector>> = true;
struct Square {
  TW_INLINE static Floats next(Floats value, const ReadyStep*, std::int64_t) {
    return value * value;
  }
};
template <typename F, int place, bool repeats>
struct OfTwo {
  TW_INLINE static Floats next(Floats value, const ReadyStep* step, std::int64_t column) {
    const Floats other = operand<repeats>(step, 0, column);
    return place == 0 ? F{}(value, other) : F{}(other, value);
  }
};
template <typename F, int place, bool first_repeats, bool second_repeats>
struct OfThree {
  TW_INLINE static Floats next(Floats value, const ReadyStep* step, std::int64_t column) {
    const Floats first = operand<first_repeats>(step, 0, column);
    const Floats second = operand<second_repeats>(step, 1, column);
    return place == 0   ? F{}(value, first, second)
           : place == 1 ? F{}(first, value, second)
                        : F{}(first, second, value);
  }
};

template <typename T, bool repeats>
struct Begin {
  TW_INLINE static Floats next(Floats, const ReadyStep* step, std::int64_t column) {
    const auto* const data = static_cast<const T*>(step->operands[0]);
    return repeats ? splat(widen(*data)) : load_as_floats(data + column);
  }
};

template <typename F, int vectors>
void take_step(Floats a, Floats b, Floats c, Floats d, const ReadyStep* step, std::int64_t column) {
  if constexpr (kTakesTurns<F> && vectors == 4) {
    F::take_turns(a, b, c, d);
  } else {
    a = F::next(a, step, column);
    if constexpr (vectors == 4) {
      b = F::next(b, step, column + kLanes);
      c = F::next(c, step, column + 2 * kLanes);
      d = F::next(d, step, column + 3 * kLanes);
    }
  }
  return function_of<vectors>(step + 1)(a, b, c, d, step + 1, column);
}

// The last step of a chain has none behind it; others go on with the value.
template <typename T, int vectors, bool far = false>
void store_step(Floats a, Floats b, Floats c, Floats d, const ReadyStep* step,
                std::int64_t column) {
  auto* const to = static_cast<T*>(const_cast<void*>(step->operands[0])) + column;
  if constexpr (vectors == 4) {
    const Floats values[] = {a, b, c, d};
    store_floats<far>(to, values);
  } else {
    const Floats values[] = {a};
    store_floats(to, values);
  }
  if (!step[1].code.four) return;
  return function_of<vectors>(step + 1)(a, b, c, d, step + 1, column);
}

// Ends a chain. What a row has room for behind its last column takes no part.
template <int vectors>
void sum_step(Floats a, Floats b, Floats c, Floats d, const ReadyStep* step, std::int64_t column) {
  auto* const sum = static_cast<SumOfRow*>(const_cast<void*>(step->operands[1]));
  float* const parts = sum->parts + column % kParts;
  if constexpr (vectors == 4) {
    store(parts, load(parts) + a);
    store(parts + kLanes, load(parts + kLanes) + b);
    store(parts + 2 * kLanes, load(parts + 2 * kLanes) + c);
    store(parts + 3 * kLanes, load(parts + 3 * kLanes) + d);
  } else {
    const Ints exists = lane_numbers() < static_cast<std::int32_t>(sum->columns - column);
    store(parts, load(parts) + choose(exists, a, splat(Add::kNeutral)));
  }
}

TW_INLINE void begin_sum(SumOfRow* sum) {
  for (std::int64_t i = 0; i < kParts; ++i) sum->parts[i] = Add::kNeutral;
}
TW_INLINE float end_sum(const SumOfRow* sum) {
  const auto block = [&](int i) { return load_block(sum->parts + i * kBlock); };
  return tree<Add>(combine_blocks<Add>(combine_blocks<Add>(block(0), block(1)),
                                       combine_blocks<Add>(block(2), block(3))));
}

template <typename F>
constexpr StepCode kStep = {take_step<F, 4>, take_step<F, 1>};
template <typename T, bool far>
constexpr StepCode kStore = {store_step<T, 4, far>, store_step<T, 1>};
constexpr StepCode kSum = {sum_step<4>, sum_step<1>};

// By the value's place and by which of the others repeat.
struct CodesOfFunction {
  StepCode codes[3][2][2];
};

template <typename F>
constexpr CodesOfFunction one_operand() {
  return {{{{kStep<OfValue<F>>}}}};
}
template <typename F>
constexpr CodesOfFunction two_operands() {
  return {{{{kStep<OfTwo<F, 0, false>>}, {kStep<OfTwo<F, 0, true>>}},
           {{kStep<OfTwo<F, 1, false>>}, {kStep<OfTwo<F, 1, true>>}}}};
}
template <typename F, int place>
constexpr void list_places(StepCode (&codes)[2][2]) {
  codes[0][0] = kStep<OfThree<F, place, false, false>>;
  codes[0][1] = kStep<OfThree<F, place, false, true>>;
  codes[1][0] = kStep<OfThree<F, place, true, false>>;
  codes[1][1] = kStep<OfThree<F, place, true, true>>;
}
template <typename F>
constexpr CodesOfFunction three_operands() {
  CodesOfFunction of = {};
  list_places<F, 0>(of.codes[0]);
  list_places<F, 1>(of.codes[1]);
  list_places<F, 2>(of.codes[2]);
  return of;
}

struct Steps {
  CodesOfFunction functions[static_cast<int>(Function::count)];
  StepCode loads[static_cast<int>(Element::count)][2], stores[static_cast<int>(Element::count)][2];
};

template <typename T>
constexpr void list_memory(Steps& steps, Element element) {
  StepCode* const loads = steps.loads[static_cast<int>(element)];
  loads[0] = kStep<Begin<T, false>>;
  loads[1] = kStep<Begin<T, true>>;
  StepCode* const stores = steps.stores[static_cast<int>(element)];
  stores[0] = kStore<T, false>;
  stores[1] = kStore<T, !__is_same(T, F16)>;
}

constexpr Steps list_steps() {
  Steps steps = {};
#define TW_STEPS(name, operands) \
  steps.functions[static_cast<int>(Function::name)] = operands<name##_vector>()
#define TW_ONE(name) TW_STEPS(name, one_operand)
#define TW_TWO(name) TW_STEPS(name, two_operands)
  TW_TWO(add);
  TW_TWO(sub);
  TW_TWO(mul);
  TW_TWO(div);
  TW_TWO(min);
  TW_TWO(max);
  TW_STEPS(fma, three_operands);
  TW_ONE(neg);
  TW_ONE(abs);
  TW_ONE(exp);
  TW_ONE(exp2);
  TW_ONE(log);
  TW_ONE(log2);
  TW_ONE(sqrt);
  TW_ONE(rsqrt);
  TW_ONE(rcp);
  TW_ONE(tanh);
  TW_ONE(log1p);
  TW_ONE(expm1);
  TW_ONE(erf);
  TW_ONE(floor);
  TW_ONE(ceil);
  TW_ONE(rint);
#undef TW_ONE
#undef TW_TWO
#undef TW_STEPS
  list_memory<float>(steps, Element::f32);
  list_memory<F16>(steps, Element::f16);
  list_memory<Bf16>(steps, Element::bf16);
  return steps;
}
constexpr Steps kSteps = list_steps();

TW_INLINE StepCode code_of(const Step& step) {
  switch (step.kind) {
    case StepKind::load:
      return kSteps.loads[static_cast<int>(step.element)][step.repeats[0]];
    case StepKind::store:
      return kSteps.stores[static_cast<int>(step.element)][step.is_far];
    case StepKind::square:
      return kStep<Square>;
    case StepKind::sum:
      return kSum;
    case StepKind::function:
      break;
  }
  return kSteps.functions[static_cast<int>(step.function)]
      .codes[step.place][step.repeats[0]][step.repeats[1]];
}

void end_far_stores() { wait_for_far_stores(); }

void chain(Shape shape, const Step* steps, int count) {
  if (compute_if_linear(shape, steps, count)) return;
  ReadyStep ready[kMaximumSteps + 1];
  for (int i = 0; i < count; ++i) {
    ready[i] = {code_of(steps[i]), {steps[i].operands[0], steps[i].operands[1]}};
  }
  ready[count].code = {};
  SumOfRow sum;
  sum.columns = shape.columns;
  const bool sums = steps[count - 1].kind == StepKind::sum;
  if (sums) ready[count - 1].operands[1] = &sum;
  ResultsOfRows results(static_cast<float*>(const_cast<void*>(steps[count - 1].operands[0])));
  Asking asking(shape.ahead);
  const Floats none = {};
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    if (sums) begin_sum(&sum);
    std::int64_t column = 0;
    for (; column + Asking::kRound <= shape.columns; column += Asking::kRound) {
      asking.next();
      ready->code.four(none, none, none, none, ready, column);
    }
    for (; column < shape.columns; column += kLanes) {
      ready->code.one(none, none, none, none, ready, column);
    }
    if (sums) results.add(end_sum(&sum));
    for (int i = 0; i < count; ++i) {
      for (int j = 0; j < 2; ++j) {
        ready[i].operands[j] =
            static_cast<const char*>(ready[i].operands[j]) + steps[i].row_strides[j];
      }
    }
  }
  if (sums) results.end();
}

}  // namespace
}  // namespace tilewright::cpu::TW_LEVEL
