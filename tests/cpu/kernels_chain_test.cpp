#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "cpu/kernel_sets.h"

namespace tilewright::cpu {
namespace {

// Whole rounds of eight vectors of any set and of four, vectors behind them, and a part of one.
constexpr std::int64_t kRows = 3, kColumns = 128 + 64 + 16 + 5;

struct Inputs {
  TestTile<float> a{kRows, kColumns}, b{kRows, kColumns}, c{kRows, kColumns};
  Inputs() {
    std::mt19937 random(7);
    const auto next = [&] { return std::normal_distribution<float>(0.5f)(random); };
    for (TestTile<float>* const tile : {&a, &b, &c}) tile->fill(next);
    a.at(0, 10) = 1e-20f;  // whose square is subnormal
    a.at(1, 2) = std::numeric_limits<float>::quiet_NaN();
    b.at(0, 3) = -std::numeric_limits<float>::infinity();
  }
};

Step load(Operand from, Element element = Element::f32) {
  return {.kind = StepKind::load,
          .element = element,
          .repeats = {from.repeats},
          .operands = {from.data},
          .row_strides = {from.row_stride}};
}
Step store(Result to, Element element = Element::f32) {
  return {.kind = StepKind::store,
          .element = element,
          .operands = {to.data},
          .row_strides = {to.row_stride}};
}
// `given`: all operands of the function; the one at `place` is the value.
Step step(Function function, int place, const Operand (&given)[3]) {
  Step made{
      .kind = StepKind::function, .function = function, .place = static_cast<std::uint8_t>(place)};
  int count = 0;
  for (int i = 0; i < 3; ++i) {
    if (i == place || given[i].data == nullptr || count == 2) continue;
    made.repeats[count] = given[i].repeats;
    made.operands[count] = given[i].data;
    made.row_strides[count++] = given[i].row_stride;
  }
  return made;
}

int operands_of(Function function) {
  if (function == Function::fma) return 3;
  return function <= Function::max ? 2 : 1;
}

template <typename T>
void expect_same_bits(const TestTile<T>& made, const TestTile<T>& wanted, const std::string& what) {
  for (std::int64_t i = 0; i < kRows; ++i) {
    ASSERT_EQ(std::memcmp(made.row(i), wanted.row(i), kColumns * sizeof(T)), 0) << what;
  }
  EXPECT_TRUE(made.is_closed()) << what;
}

TEST(CpuKernelsChain, EachFunctionIsWhatItIsByItself) {
  const Inputs in;
  for (const Kernels* const set : sets_here()) {
    for (int f = 0; f <= static_cast<int>(Function::rint); ++f) {
      const auto function = static_cast<Function>(f);
      const Elementwise alone = set->elementwise[f][static_cast<int>(Lane::f32)];
      if (!alone || function == Function::sin || function == Function::cos) continue;
      const int count = operands_of(function);
      for (int variant = 0; variant < count * 4; ++variant) {
        const int place = variant / 4;
        const Broadcast kinds[] = {(variant & 1) != 0 ? Broadcast::column : Broadcast::row,
                                   (variant & 2) != 0 ? Broadcast::scalar : Broadcast::full};
        Operand operands[3] = {};
        for (int i = 0, other = 0; i < count; ++i) {
          const TestTile<float>& tile = i == 0 ? in.a : i == 1 ? in.b : in.c;
          operands[i] = i == place ? tile.operand() : broadcast(tile, kinds[other++]);
        }
        TestTile<float> made(kRows, kColumns), wanted(kRows, kColumns);
        alone({kRows, kColumns}, operands, wanted.result());
        const Step steps[] = {load(operands[place]), step(function, place, operands),
                              store(made.result())};
        set->chain({kRows, kColumns}, steps, 3, {});
        expect_same_bits(made, wanted,
                         std::string(set->name) + " function " + std::to_string(f) + " variant " +
                             std::to_string(variant));
      }
    }
  }
}

TEST(CpuKernelsChain, ConversionsAtItsEndsAndAStoreBetweenAreThoseOfTheFunctions) {
  const Inputs in;
  const Shape shape{kRows, kColumns};
  for (const Kernels* const set : sets_here()) {
    for (const Element narrow : {Element::bf16, Element::f16}) {
      const int from = static_cast<int>(narrow), wide = static_cast<int>(Element::f32);
      TestTile<std::uint16_t> x(kRows, kColumns), made(kRows, kColumns), wanted(kRows, kColumns);
      set->convert[wide][from](shape, in.a.operand(), x.result());

      TestTile<float> values(kRows, kColumns), products(kRows, kColumns), squares(kRows, kColumns);
      set->convert[from][wide](shape, x.operand(), values.result());
      const auto mul =
          set->elementwise[static_cast<int>(Function::mul)][static_cast<int>(Lane::f32)];
      const Operand factors[] = {values.operand(), in.b.column()};
      mul(shape, factors, products.result());
      const Operand twice[] = {products.operand(), products.operand()};
      mul(shape, twice, squares.result());
      set->convert[wide][from](shape, squares.operand(), wanted.result());

      TestTile<float> kept(kRows, kColumns);
      const Operand operands[3] = {{}, in.b.column()};
      const Step steps[] = {load(x.operand(), narrow),
                            step(Function::mul, 0, operands),
                            store(kept.result()),
                            {.kind = StepKind::square},
                            store(made.result(), narrow)};
      set->chain(shape, steps, 5, {});
      expect_same_bits(kept, products, std::string(set->name) + ", kept");
      expect_same_bits(made, wanted, std::string(set->name) + ", narrow");
    }
  }
}

TEST(CpuKernelsChain, ItsResultMayLieWhereAnOperandDoes) {
  for (const Kernels* const set : sets_here()) {
    const Inputs in;
    TestTile<float> wanted(kRows, kColumns), twice(kRows, kColumns), x(kRows, kColumns);
    const auto add = set->elementwise[static_cast<int>(Function::add)][static_cast<int>(Lane::f32)];
    const Operand ones[] = {in.a.operand(), in.b.operand()};
    add({kRows, kColumns}, ones, twice.result());
    const Operand sums[] = {twice.operand(), in.a.operand()};
    add({kRows, kColumns}, sums, wanted.result());
    for (std::int64_t i = 0; i < kRows; ++i) {
      std::memcpy(x.row(i), in.a.row(i), kColumns * sizeof(float));
    }
    const Operand first[3] = {{}, in.b.operand()}, second[3] = {{}, x.operand()};
    const Step steps[] = {load(x.operand()), step(Function::add, 0, first),
                          step(Function::add, 0, second), store(x.result())};
    set->chain({kRows, kColumns}, steps, 4, {});
    expect_same_bits(x, wanted, set->name);
  }
}

// Loads, and takes a number of each row away.
std::vector<Step> less_of_row(const TestTile<float>& x, const TestTile<float>& less) {
  const Operand operands[3] = {{}, less.column()};
  return {load(x.operand()), step(Function::sub, 0, operands)};
}

TEST(CpuKernelsChain, SumsOfRowsAreThoseOfTheFunctionsOneByOne) {
  constexpr int kMul = static_cast<int>(Function::mul), kSub = static_cast<int>(Function::sub);
  constexpr int kFloats = static_cast<int>(Lane::f32), kSums = 20;
  for (const Kernels* const set : sets_here()) {
    // Whole rounds and none, whole vectors and parts of one; more rows than a vector has elements.
    for (const std::int64_t columns : {64 + 16 + 5, 128, 64 + 48, 16, 7, 1}) {
      for (const bool scales : {false, true}) {
        for (const bool squares : {false, true}) {
          TestTile<float> x(kSums, columns), less(kSums, columns), value(kSums, columns);
          std::mt19937 random(3);
          const auto next = [&] { return std::normal_distribution<float>(0.5f)(random); };
          x.fill(next);
          less.fill(next);
          const Shape shape{kSums, columns};
          const Operand pair[] = {x.operand(), less.column()};
          set->elementwise[kSub][kFloats](shape, pair, value.result());
          std::vector<Step> steps = less_of_row(x, less);
          if (scales) {  // which no loop of its own has
            const Operand scaled[] = {value.operand(), less.column()};
            set->elementwise[kMul][kFloats](shape, scaled, value.result());
            const Operand operands[3] = {{}, less.column()};
            steps.push_back(step(Function::mul, 0, operands));
          }
          TestTile<float> made(1, 32), wanted(1, 32);
          if (squares) {
            steps.push_back({.kind = StepKind::square});
            set->sum_of_products_in_parts(shape, value.operand(), value.operand(), wanted.row(0));
          } else {
            set->sum_along_row_in_parts(shape, value.operand(), wanted.row(0));
          }
          steps.push_back({.kind = StepKind::sum, .operands = {made.row(0)}, .row_strides = {4}});
          set->chain(shape, steps.data(), static_cast<int>(steps.size()), {});
          EXPECT_EQ(std::memcmp(made.row(0), wanted.row(0), kSums * sizeof(float)), 0)
              << set->name << ", " << columns << " columns, " << scales << squares;
          EXPECT_TRUE(made.is_closed());
        }
      }
    }
  }
}

// (x - less) * factor, and then nothing, a row of weights, or weights and a row that is added.
TEST(CpuKernelsChain, LinearRowsAreWhatTheFunctionsGive) {
  constexpr std::int64_t kWide = 128 + 64 + 16 + 5;
  std::mt19937 random(11);
  const auto next = [&] { return std::normal_distribution<float>(0.5f)(random); };
  TestTile<float> x(kRows, kWide), less(kRows, kWide), factor(kRows, kWide), weights(kRows, kWide),
      added(kRows, kWide);
  for (TestTile<float>* const tile : {&x, &less, &factor, &weights, &added}) tile->fill(next);
  x.at(0, 10) = 1e-41f;
  x.at(1, 2) = std::numeric_limits<float>::quiet_NaN();
  x.at(2, 130) = std::numeric_limits<float>::infinity();
  less.at(0, 0) = 0;
  const Shape shape{kRows, kWide};
  for (const Kernels* const set : sets_here()) {
    const auto run = [&](Function function, const Operand* operands, TestTile<float>& to) {
      set->elementwise[static_cast<int>(function)][static_cast<int>(Lane::f32)](shape, operands,
                                                                                to.result());
    };
    for (const bool narrow : {false, true}) {
      for (int variant = 0; variant < 12; ++variant) {
        const bool subtracts = (variant & 1) != 0, scales = (variant & 2) != 0;
        const int rows = variant / 4;
        TestTile<std::uint16_t> x16(kRows, kWide), made16(kRows, kWide), wanted16(kRows, kWide);
        TestTile<float> value(kRows, kWide), made(kRows, kWide);
        const int wide = static_cast<int>(Element::f32), bf16 = static_cast<int>(Element::bf16);
        if (narrow) {
          set->convert[wide][bf16](shape, x.operand(), x16.result());
          set->convert[bf16][wide](shape, x16.operand(), value.result());
        } else {
          for (std::int64_t i = 0; i < kRows; ++i) std::memcpy(value.row(i), x.row(i), 4 * kWide);
        }
        std::vector<Step> steps = {narrow ? load(x16.operand(), Element::bf16) : load(x.operand())};
        const auto add = [&](Function function, Operand second, Operand third = {}) {
          const Operand alone[] = {value.operand(), second, third};
          run(function, alone, value);
          const Operand operands[3] = {{}, second, third};
          steps.push_back(step(function, 0, operands));
        };
        if (subtracts) add(Function::sub, less.column());
        if (scales) add(Function::mul, factor.column());
        if (rows == 1) add(Function::mul, weights.repeated_row());
        if (rows == 2) add(Function::fma, weights.repeated_row(), added.repeated_row());
        steps.push_back(narrow ? store(made16.result(), Element::bf16) : store(made.result()));
        set->chain(shape, steps.data(), static_cast<int>(steps.size()), {});
        if (narrow) set->convert[wide][bf16](shape, value.operand(), wanted16.result());
        for (std::int64_t i = 0; i < kRows; ++i) {
          const int same = narrow ? std::memcmp(made16.row(i), wanted16.row(i), 2 * kWide)
                                  : std::memcmp(made.row(i), value.row(i), 4 * kWide);
          EXPECT_EQ(same, 0) << set->name << " variant " << variant << " row " << i;
        }
      }
    }
  }
}

// exp((x - less) * factor), which is stored, and its sums: of more rows than a vector has elements.
TEST(CpuKernelsChain, ExponentialsAndTheirSumsAreWhatTheFunctionsGive) {
  constexpr std::int64_t kSums = 18;
  constexpr int kWide = static_cast<int>(Element::f32), kBf16 = static_cast<int>(Element::bf16);
  for (const Kernels* const set : sets_here()) {
    for (const std::int64_t columns : {256 + 128 + 16 + 5, 64, 7}) {
      const Shape shape{kSums, columns};
      TestTile<float> x(kSums, columns), less(kSums, columns), factor(kSums, columns);
      std::mt19937 random(5);
      const auto next = [&] { return std::normal_distribution<float>(1.0f)(random); };
      for (TestTile<float>* const tile : {&x, &less, &factor}) tile->fill(next);
      x.at(1, 2) = std::numeric_limits<float>::quiet_NaN();
      x.at(2, 3) = -std::numeric_limits<float>::infinity();
      x.at(3, 4) = 300;
      TestTile<std::uint16_t> narrow(kSums, columns);
      set->convert[kWide][kBf16](shape, x.operand(), narrow.result());
      for (int variant = 0; variant < 16; ++variant) {
        const bool is_narrow = (variant & 1) != 0, subtracts = (variant & 2) != 0,
                   scales = (variant & 4) != 0;
        TestTile<float> value(kSums, columns), made(kSums, columns), sums(1, 32), wanted(1, 32);
        if (is_narrow) {
          set->convert[kBf16][kWide](shape, narrow.operand(), value.result());
        } else {
          for (std::int64_t i = 0; i < kSums; ++i) std::memcpy(value.row(i), x.row(i), 4 * columns);
        }
        std::vector<Step> steps = {is_narrow ? load(narrow.operand(), Element::bf16)
                                             : load(x.operand())};
        const auto add = [&](Function function, Operand second) {
          const Operand alone[] = {value.operand(), second}, operands[3] = {{}, second};
          set->elementwise[static_cast<int>(function)][static_cast<int>(Lane::f32)](shape, alone,
                                                                                    value.result());
          steps.push_back(step(function, 0, operands));
        };
        if (subtracts) add(Function::sub, less.column());
        if (scales) add(Function::mul, factor.column());
        add((variant & 8) != 0 ? Function::exp : Function::exp2, {});
        steps.push_back(store(made.result()));
        steps.push_back({.kind = StepKind::sum, .operands = {sums.row(0)}, .row_strides = {4}});
        set->chain(shape, steps.data(), static_cast<int>(steps.size()), {});
        set->sum_along_row_in_parts(shape, value.operand(), wanted.row(0));
        const std::string what = std::string(set->name) + ", " + std::to_string(columns) +
                                 " columns, variant " + std::to_string(variant);
        EXPECT_EQ(std::memcmp(sums.row(0), wanted.row(0), kSums * sizeof(float)), 0) << what;
        for (std::int64_t i = 0; i < kSums; ++i) {
          EXPECT_EQ(std::memcmp(made.row(i), value.row(i), 4 * columns), 0) << what << " row " << i;
        }
        EXPECT_TRUE(made.is_closed() && sums.is_closed()) << what;
      }
    }
  }
}

// Whole lines and what is behind them, in a loop of its own and from step to step.
template <typename T>
void expect_far_as_near(Element element) {
  const Inputs in;
  const Shape shape{kRows, kColumns};
  for (const Kernels* const set : sets_here()) {
    for (const Function last : {Function::mul, Function::erf}) {
      TestTile<T> x(kRows, kColumns), near(kRows, kColumns), far(kRows, kColumns);
      const auto narrow = set->convert[static_cast<int>(Element::f32)][static_cast<int>(element)];
      narrow(shape, in.a.operand(), x.result());
      const Operand operands[3] = {{}, in.b.operand(), {}};
      for (TestTile<T>* const made : {&near, &far}) {
        Step steps[] = {load(x.operand(), element), step(last, 0, operands),
                        store(made->result(), element)};
        steps[2].is_far = made == &far;
        set->chain(shape, steps, 3, {});
        set->end_far_stores();
      }
      expect_same_bits(far, near, std::string(set->name) + " bytes " + std::to_string(sizeof(T)));
    }
  }
}

TEST(CpuKernelsChain, StoresPastTheCachesGiveTheSameBits) {
  expect_far_as_near<float>(Element::f32);
  expect_far_as_near<std::uint16_t>(Element::bf16);
  expect_far_as_near<std::uint16_t>(Element::f16);
}

}  // namespace
}  // namespace tilewright::cpu
