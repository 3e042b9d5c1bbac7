#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "cpu/kernel_sets.h"

namespace tilewright::cpu {
namespace {

// Whole rounds of four vectors of any set, vectors behind them, and a part of one.
constexpr std::int64_t kRows = 3, kColumns = 64 + 16 + 5;

struct Inputs {
  TestTile<float> a{kRows, kColumns}, b{kRows, kColumns}, c{kRows, kColumns};
  Inputs() {
    std::mt19937 random(7);
    const auto next = [&] { return std::normal_distribution<float>(0.5f)(random); };
    for (TestTile<float>* const tile : {&a, &b, &c}) tile->fill(next);
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
        set->chain({kRows, kColumns}, steps, 3);
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
      set->chain(shape, steps, 5);
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
    set->chain({kRows, kColumns}, steps, 4);
    expect_same_bits(x, wanted, set->name);
  }
}

}  // namespace
}  // namespace tilewright::cpu
