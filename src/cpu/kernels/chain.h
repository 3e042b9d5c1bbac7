#pragma once

#include "cpu/kernels/linear.h"

// Elementwise functions of f32 one behind the other, whose values stay in registers between them.
// Each step is a function that ends with a call of the next one. It has the values in its
// parameters, which the calling convention keeps in vector registers, and compilers make jumps of
// such calls. A jump takes as long as arithmetic on a vector or two, so that a step has as many
// vectors as there are such registers, or half of them, or one.
namespace tilewright::cpu::TW_LEVEL {
namespace {

// A sum of each row, as sum_along_row_in_parts has it: element i goes to part i mod kParts.
constexpr std::int64_t kParts = 4 * kBlock;
struct SumOfRow {
  alignas(TW_VECTOR_BYTES) float parts[kParts];
  std::int64_t columns;  // of the row
};

struct ReadyStep;
template <int>
using Value = Floats;
template <int... numbers>
struct Numbers {
  // For so many vectors, of which the first one's first element is at `column`.
  using Take = void (*)(const ReadyStep* step, std::int64_t column, Value<numbers>... values);
};
using One = Numbers<0>;
using Four = Numbers<0, 1, 2, 3>;
using Eight = Numbers<0, 1, 2, 3, 4, 5, 6, 7>;
// Functions that take long have none for eight: a jump is nothing beside them.
struct StepCode {
  One::Take one;
  Four::Take four;
  Eight::Take eight = nullptr;
};
struct ReadyStep {
  StepCode code;
  const void* operands[2];
};

TW_INLINE One::Take code_of(const ReadyStep* step, One) { return step->code.one; }
TW_INLINE Four::Take code_of(const ReadyStep* step, Four) { return step->code.four; }
TW_INLINE Eight::Take code_of(const ReadyStep* step, Eight) { return step->code.eight; }

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
// Four of its values are computed at once.
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

template <typename F, typename Count>
struct StepOf;
template <typename F, int... numbers>
struct StepOf<F, Numbers<numbers...>> {
  static void take(const ReadyStep* step, std::int64_t column, Value<numbers>... given) {
    Floats values[] = {given...};
    if constexpr (kTakesTurns<F>) {
      constexpr int kTurns = sizeof...(numbers) == 1 ? 1 : 4;
      unrolled<static_cast<int>(sizeof...(numbers)) / kTurns>([&](auto part) {
        Floats some[kTurns];
        unrolled<kTurns>([&](auto i) { some[i.value] = values[part.value * kTurns + i.value]; });
        erf_of(some);
        unrolled<kTurns>([&](auto i) { values[part.value * kTurns + i.value] = some[i.value]; });
      });
    } else {
      ((values[numbers] = F::next(values[numbers], step, column + numbers * kLanes)), ...);
    }
    return code_of(step + 1, Numbers<numbers...>{})(step + 1, column, values[numbers]...);
  }
};

// The last step of a chain has none behind it; others go on with the value.
template <typename T, bool far, typename Count>
struct StoreStep;
template <typename T, bool far, int... numbers>
struct StoreStep<T, far, Numbers<numbers...>> {
  static void take(const ReadyStep* step, std::int64_t column, Value<numbers>... given) {
    const Floats values[] = {given...};
    store_floats<far>(static_cast<T*>(const_cast<void*>(step->operands[0])) + column, values);
    if (!step[1].code.one) return;
    return code_of(step + 1, Numbers<numbers...>{})(step + 1, column, given...);
  }
};

// Ends a chain. What a row has room for behind its last column takes no part.
template <typename Count>
struct SumStep;
template <int... numbers>
struct SumStep<Numbers<numbers...>> {
  static void take(const ReadyStep* step, std::int64_t column, Value<numbers>... values) {
    auto* const sum = static_cast<SumOfRow*>(const_cast<void*>(step->operands[1]));
    const auto add = [&](std::int64_t at, Floats value) {
      float* const part = sum->parts + at % kParts;
      store(part, load(part) + value);
    };
    if constexpr (sizeof...(numbers) == 1) {
      const Ints exists = lane_numbers() < static_cast<std::int32_t>(sum->columns - column);
      (add(column, choose(exists, values, splat(Add::kNeutral))), ...);
    } else {
      (add(column + numbers * kLanes, values), ...);
    }
  }
};

TW_INLINE void begin_sum(SumOfRow* sum) {
  for (std::int64_t i = 0; i < kParts; ++i) sum->parts[i] = Add::kNeutral;
}
TW_INLINE float end_sum(const SumOfRow* sum) {
  const auto block = [&](int i) { return load_block(sum->parts + i * kBlock); };
  return tree<Add>(combine_blocks<Add>(combine_blocks<Add>(block(0), block(1)),
                                       combine_blocks<Add>(block(2), block(3))));
}

template <typename F>
constexpr StepCode kLongStep = {StepOf<F, One>::take, StepOf<F, Four>::take};
template <typename F>
constexpr StepCode kStep = {StepOf<F, One>::take, StepOf<F, Four>::take,
                            kIsUsual ? StepOf<F, Eight>::take : nullptr};
template <typename T, bool far>
constexpr StepCode kStore = {StoreStep<T, false, One>::take, StoreStep<T, far, Four>::take,
                             kIsUsual ? StoreStep<T, far, Eight>::take : nullptr};
constexpr StepCode kSum = {SumStep<One>::take, SumStep<Four>::take,
                           kIsUsual ? SumStep<Eight>::take : nullptr};

template <typename F>
constexpr StepCode of_one() {
  return kStep<OfValue<F>>;
}
template <typename F>
constexpr StepCode takes_long() {
  return kLongStep<OfValue<F>>;
}

// By the value's place and whether the other one repeats.
struct CodesOfTwo {
  StepCode codes[2][2];
};
template <typename F>
constexpr CodesOfTwo of_two() {
  return {{{kStep<OfTwo<F, 0, false>>, kStep<OfTwo<F, 0, true>>},
           {kStep<OfTwo<F, 1, false>>, kStep<OfTwo<F, 1, true>>}}};
}

// By the value's place and by which of the others repeat.
struct CodesOfThree {
  StepCode codes[3][2][2];
};
template <typename F, int place>
constexpr void list_places(StepCode (&codes)[2][2]) {
  codes[0][0] = kStep<OfThree<F, place, false, false>>;
  codes[0][1] = kStep<OfThree<F, place, false, true>>;
  codes[1][0] = kStep<OfThree<F, place, true, false>>;
  codes[1][1] = kStep<OfThree<F, place, true, true>>;
}
template <typename F>
constexpr CodesOfThree of_three() {
  CodesOfThree of = {};
  list_places<F, 0>(of.codes[0]);
  list_places<F, 1>(of.codes[1]);
  list_places<F, 2>(of.codes[2]);
  return of;
}

// Functions of one value and of two, of which the latter are the IR's first.
constexpr int kFunctionsOfTwo = static_cast<int>(Function::fma);
struct Steps {
  StepCode of_one[static_cast<int>(Function::count)];
  CodesOfTwo of_two[kFunctionsOfTwo];
  CodesOfThree fma;
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
#define TW_ONE(name) steps.of_one[static_cast<int>(Function::name)] = of_one<name##_vector>()
#define TW_LONG(name) steps.of_one[static_cast<int>(Function::name)] = takes_long<name##_vector>()
#define TW_TWO(name) steps.of_two[static_cast<int>(Function::name)] = of_two<name##_vector>()
  TW_TWO(add);
  TW_TWO(sub);
  TW_TWO(mul);
  TW_TWO(div);
  TW_TWO(min);
  TW_TWO(max);
  TW_ONE(neg);
  TW_ONE(abs);
  TW_ONE(exp);
  TW_ONE(exp2);
  TW_LONG(log);
  TW_LONG(log2);
  TW_LONG(sqrt);
  TW_LONG(rsqrt);
  TW_LONG(rcp);
  TW_LONG(tanh);
  TW_LONG(log1p);
  TW_LONG(expm1);
  TW_ONE(erf);
  TW_ONE(floor);
  TW_ONE(ceil);
  TW_ONE(rint);
#undef TW_ONE
#undef TW_LONG
#undef TW_TWO
  steps.fma = of_three<fma_vector>();
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
  if (step.function == Function::fma) {
    return kSteps.fma.codes[step.place][step.repeats[0]][step.repeats[1]];
  }
  const int function = static_cast<int>(step.function);
  if (function < kFunctionsOfTwo) return kSteps.of_two[function].codes[step.place][step.repeats[0]];
  return kSteps.of_one[function];
}

// From the first step on, which loads the values.
template <int... numbers>
TW_INLINE void take(Numbers<numbers...> count, const ReadyStep* first, std::int64_t column) {
  code_of(first, count)(first, column, Value<numbers>{}...);
}

void end_far_stores() { wait_for_far_stores(); }

void chain(Shape shape, const Step* steps, int count, FirstRow first) {
  if (compute_if_linear(shape, steps, count, first)) return;
  ReadyStep ready[kMaximumSteps + 1];
  struct {
    const void** data;
    std::int64_t stride;
  } moving[2 * kMaximumSteps];  // operands, from row to row
  int moves = 0;
  for (int i = 0; i < count; ++i) {
    ready[i].code = code_of(steps[i]);
    for (int j = 0; j < 2; ++j) {
      ready[i].operands[j] = operand_of(steps[i], j, first);
      const std::int64_t stride = steps[i].row_strides[j];
      if (stride != 0) moving[moves++] = {&ready[i].operands[j], stride};
    }
  }
  ready[count].code = {};
  SumOfRow sum;
  sum.columns = shape.columns;
  const bool sums = steps[count - 1].kind == StepKind::sum;
  if (sums) ready[count - 1].operands[1] = &sum;
  ResultsOfRows results(static_cast<float*>(const_cast<void*>(ready[count - 1].operands[0])));
  bool by_eight = true;
  for (int i = 0; i < count; ++i) by_eight = by_eight && ready[i].code.eight != nullptr;
  const std::int64_t end_of_eight = by_eight ? shape.columns : 0;
  Asking asking(shape.ahead);
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    if (sums) begin_sum(&sum);
    std::int64_t column = 0;
    for (; column + 2 * Asking::kRound <= end_of_eight; column += 2 * Asking::kRound) {
      asking.next();
      asking.next();
      take(Eight{}, ready, column);
    }
    for (; column + Asking::kRound <= shape.columns; column += Asking::kRound) {
      asking.next();
      take(Four{}, ready, column);
    }
    for (; column < shape.columns; column += kLanes) take(One{}, ready, column);
    if (sums) results.add(end_sum(&sum));
    for (int i = 0; i < moves; ++i) {
      *moving[i].data = static_cast<const char*>(*moving[i].data) + moving[i].stride;
    }
  }
  if (sums) results.end();
}

}  // namespace
}  // namespace tilewright::cpu::TW_LEVEL
