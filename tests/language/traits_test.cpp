#include <gtest/gtest.h>

#include <type_traits>
#include <utility>

#include "tilewright/hopper.h"

// What must not compile. The tests run so that the file is seen to be built.
namespace tilewright {
namespace {

template <typename A, typename B>
concept Adds = requires(const A& a, const B& b) {
  a + b;
};
template <typename T>
concept Selects = requires(const T& t, const Tensor& tensor) {
  tensor(t);
};

// Values are known when the kernel runs, C++'s `if` and `while` decide when it is traced.
static_assert(!std::is_constructible_v<bool, Tile>);
static_assert(!std::is_constructible_v<bool, Var>);
static_assert(!std::is_constructible_v<bool, Index>);
static_assert(!std::is_constructible_v<bool, Condition>);
static_assert(!std::is_constructible_v<bool, Cell<Condition>>);
static_assert(!std::is_constructible_v<bool, Pending>);
static_assert(!std::is_constructible_v<int, Index>);
// Nor does the kernel decide what is known by then: whether two Dims are one term, say.
template <typename T>
concept Decides = requires(const T& condition, const Index& i) {
  select(condition, i, 0);
  when(condition, [] {});
  when(
      condition, [] {}, [] {});
};
static_assert(Decides<Condition> && Decides<Cell<Condition>>);
static_assert(!Decides<bool> && !Decides<decltype(Dim(1) == 0)>);

// `auto x = var` would be a second variable, or an alias that follows it: neither is meant.
static_assert(!std::is_copy_constructible_v<Var>);
static_assert(!std::is_move_constructible_v<Var>);
static_assert(!std::is_copy_constructible_v<Cell<Index>>);
static_assert(!std::is_convertible_v<Tile, Var>);
// Reading and assigning it is.
static_assert(std::is_convertible_v<const Var&, Tile>);
static_assert(std::is_assignable_v<Var&, Tile>);
static_assert(std::is_assignable_v<Var&, const Var&>);

// What is recorded next may move the kernel's own types.
static_assert(!std::is_reference_v<decltype(std::declval<const Tile&>().shape())>);

// A product in flight is unreadable until it is waited for.
static_assert(!std::is_constructible_v<TileOperand, Pending>);
static_assert(!Adds<Pending, Tile>);
static_assert(Adds<Tile, Tile> && Adds<Var, Tile> && Adds<Tile, double>);

// An index beside a tile makes a tile; without one, an index.
template <typename A, typename B, typename Sum>
constexpr bool kAddsTo =
    std::is_same_v<decltype(std::declval<const A&>() + std::declval<const B&>()), Sum>;
static_assert(kAddsTo<Tile, Index, Tile> && kAddsTo<Index, Tile, Tile>);
static_assert(kAddsTo<Var, Cell<Index>, Tile> && kAddsTo<Dim, Tile, Tile>);
static_assert(kAddsTo<Index, Index, Index> && kAddsTo<Index, int, Index>);
static_assert(kAddsTo<int, Tile, Tile> && kAddsTo<Dim, Index, Index> && kAddsTo<Dim, int, Dim>);
static_assert(!Adds<Tile, Condition>);

// Tensors are read by load, addressed by indices and blocks.
static_assert(!std::is_constructible_v<TileOperand, Tensor>);
static_assert(!std::is_constructible_v<TileOperand, TensorView>);
static_assert(!Selects<Tile>);
static_assert(!Selects<double*>);
static_assert(Selects<Index> && Selects<Block> && Selects<All> && Selects<int>);

// One kernel is traced once.
static_assert(!std::is_copy_constructible_v<Kernel>);
static_assert(std::is_move_constructible_v<Kernel>);
static_assert(!std::is_constructible_v<Tile, Tensor>);

TEST(Traits, AreCheckedByTheCompiler) { SUCCEED(); }

}  // namespace
}  // namespace tilewright
