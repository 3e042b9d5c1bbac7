#include <functional>
#include <limits>
#include <optional>
#include <utility>

#include "language/misuse.h"
#include "tilewright/hopper.h"
#include "tilewright/kernel.h"

// Misuse of the tile level: each error names the user's line, the object, what disagrees and a fix.
namespace tilewright {
namespace {

using test::misuse;

// A kernel with the usual parameters, being traced.
struct Traced {
  Kernel kernel{"k"};
  Dim rows = kernel.dim("rows");
  Tensor X = kernel.in("X", bf16, {rows, 64});
  Tensor Y = kernel.out("Y", f32, {rows, 64});
  std::array<Index, 1> grid = kernel.grid(ceil_div(rows, 64));
  Block block = rows.block(grid[0], 64);
  Tile x() { return load(X(block, all)); }
};

// What belongs to one kernel is never recorded into the next.
TEST(KernelErrors, AKernelBehindTheNext) {
  Kernel first("first");
  const Dim n = first.dim("n");
  Kernel second("second");
  const std::pair<const char*, std::function<void()>> uses[] = {
      {"dim", [&] { first.dim("m"); }},
      {"{", [&] { first.in("X", f32, {n}); }},
      {"{", [&] { first.scalar("a", f32); }},
      {"{", [&] { first.workspace("w", 1); }},
      {"grid", [&] { first.grid(3); }},
      {"rank", [&] { first.rank(); }},
      {"target", [&] { first.target("sm_90a"); }},
      {"ctas", [&] { first.ctas(3); }},
      {"roles", [&] { first.roles({role("one", warps(1), registers(24), [] {})}); }},
      {"NamedBarrier", [&] { NamedBarrier barrier(first, 32); }},
      {"ClusterBarrier", [&] { ClusterBarrier barrier(first, "met"); }},
      {"Ring",
       [&] {
         Ring ring(first, "ring", stages(2), {{bf16, 64, 64}});
       }},
      {"SharedTile", [&] { SharedTile tile(first, "tile", bf16, 64, 64); }},
      {"SharedIntegers", [&] { SharedIntegers integers(first, "integers", 4); }},
      {"SharedFragments", [&] { SharedFragments parts(first, "parts", 1, 64); }},
  };
  for (const auto& [caret, use] : uses) {
    SCOPED_TRACE(caret);
    misuse(caret,
           {"\"first\" is not being traced any more", "\"second\" begins at", "fix: record all"},
           use);
  }
  EXPECT_EQ(second.grid(1).size(), 1u);  // none of it went there
}

TEST(KernelErrors, AMovedKernelAndValuesOfOneThatIsGone) {
  Kernel first("first");
  const Dim rows = first.dim("rows");
  Kernel second = std::move(first);
  const std::function<void()> uses[] = {
      [&] { first.dim("n"); },
      [&] { first.in("X", f32, {rows}); },
      [&] { first.scalar("a", f32); },
      [&] { first.workspace("w", 1); },
      [&] { first.grid(rows); },
      [&] { first.grid(rows, 1, 1); },
      [&] { (void)first.name(); },
      [&] { first.finish(); },
      [&] { first.rank(); },
      [&] { first.ranks(); },
      [&] {
        first.require({Claim(Claim::Figure::registers, "", Claim::Relation::at_most, 1, here())});
      },
  };
  for (const auto& use : uses) {
    const std::string text = test::usage_error_of(use);
    EXPECT_NE(text.find("has been moved into another Kernel"), std::string::npos) << text;
  }
  EXPECT_EQ(second.name(), "first");
  first = Kernel("third");
  EXPECT_EQ(first.name(), "third");

  std::optional<Traced> gone(std::in_place);
  const Tile tile = zeros({64, 64});
  EXPECT_EQ(tile.shape().size(), 2u);
  gone.reset();
  for (const auto& text : {test::usage_error_of([&] { (void)tile.shape(); }),
                           test::usage_error_of([&] { (void)tile.dtype(); })}) {
    EXPECT_NE(text.find("its kernel is not there any more"), std::string::npos) << text;
  }
}

TEST(ProductErrors, InnerDimensions) {
  Traced t;
  const Tile a = zeros({64, 128}), b = zeros({64, 96});
  misuse("dot(a, b.T())",
         {"error: dot: inner dimensions differ: a {64, 128} x b {96, 64}", "a is made at",
          "b is made at", "fix: b must have 128 rows"},
         [&] { dot(a, b.T()); });
}

TEST(ProductErrors, DTypesRanksAndAccumulator) {
  Traced t;
  const Tile a = zeros({64, 64}), b = zeros({64, 64}, bf16), flat = zeros({64});
  misuse("dot(a, b)", {"dtypes differ: a f32 {64, 64}, b bf16 {64, 64}", "fix: convert one"},
         [&] { dot(a, b); });
  misuse("dot(a, flat)", {"two axes: a {64, 64}, b {64}", "fix: "}, [&] { dot(a, flat); });
  misuse("dot(a, a, flat)", {"the accumulator is f32 {64}, the product f32 {64, 64}", "fix: "},
         [&] { dot(a, a, flat); });
  misuse("dot(a, 2)", {"an operand is a number", "fix: use *"}, [&] { dot(a, 2); });
  const Tile condition = a < 1;
  misuse("dot(condition, condition)", {"the dtype bool has no product", "fix: "},
         [&] { dot(condition, condition); });
}

TEST(ScalarErrors, DTypesAndNames) {
  Traced t;
  const Scalar alpha = t.kernel.scalar("alpha", f32);
  const Tile a = zeros({64, 64}, bf16);
  misuse("* a; }",
         {"*: a scalar of f32 and a tile of bf16", "the scalar is made", "the tile is computed",
          "fix: convert the tile with .cast(f32)"},
         [&] { alpha* a; });
  const Index three = 3;
  misuse("+ three",
         {"+: a scalar of i32 and a tile of bf16", "the scalar is made", "the tile is computed",
          "make the scalar a tile: Tile({1, ...}, scalar).cast(bf16)"},
         [&] { a + three; });
  misuse("[&] { range(alpha)", {"a scalar of f32 as an index", "fix: declare it as i32"},
         [&] { range(alpha); });
  misuse("beta\", bf16", {"scalar \"beta\": of bf16", "fix: a scalar is f32 or i32"},
         [&] { t.kernel.scalar("beta", bf16); });
}

TEST(ElementwiseErrors, ShapesDTypesAndRanks) {
  Traced t;
  const Tile a = zeros({64, 64}), b = zeros({64, 32}), c = zeros({64, 64}, bf16), d = zeros({64});
  misuse("+ b",
         {"shapes differ: f32 {64, 64} and f32 {64, 32}", "the first is computed at",
          "the second is computed at", "fix: an axis stretches only from size 1"},
         [&] { a + b; });
  misuse("* c", {"dtypes differ: f32 {64, 64} and bf16 {64, 64}", "fix: convert one with .cast"},
         [&] { a* c; });
  misuse("max(a, d)", {"ranks differ: f32 {64, 64} and f32 {64}", "fix: give both as many axes"},
         [&] { max(a, d); });
  misuse("where(a < 0, a, b)", {"shapes differ"}, [&] { where(a < 0, a, b); });
  misuse("where(b < 0, a, a)", {"the condition is {64, 32}, the alternatives {64, 64}", "fix: "},
         [&] { where(b < 0, a, a); });
}

TEST(ElementwiseErrors, BooleanArithmetic) {
  Traced t;
  const Tile a = zeros({64, 64}), condition = a < 1;
  misuse("+ condition", {"+: operands are bool", "fix: use where(condition, a, b)"},
         [&] { condition + condition; });
  misuse("&& a", {"&&: operands are f32", "fix: compare first"}, [&] { a&& a; });
  misuse("where(a, a, a)",
         {"the condition is not a tile of booleans but f32 {64, 64}", "fix: compare first"},
         [&] { where(a, a, a); });
  misuse("where(condition, 0, 1)", {"both alternatives are numbers", "fix: "},
         [&] { where(condition, 0, 1); });
  misuse("reduce_sum(condition, 1)", {"the tile is bool", "fix: "},
         [&] { reduce_sum(condition, 1); });
  misuse("cast(DType::boolean)", {"the tile f32 {64, 64} has no cast to bool", "fix: compare"},
         [&] { a.cast(DType::boolean); });
}

TEST(ElementwiseErrors, FunctionsOfOneKindOfNumber) {
  Traced t;
  const Tile whole = iota({64, 64}, 0), real = zeros({64, 64});
  misuse("exp(whole)", {"exp: operand 0 is i32, expected a floating-point number", "fix: "},
         [&] { exp(whole); });
  misuse("fma(whole, whole, whole)", {"fma: operand 0 is i32", "fix: "},
         [&] { fma(whole, whole, whole); });
  misuse("% 2", {"%: operand 0 is f32, expected an integer", "fix: "}, [&] { real % 2; });
  misuse("<< 2", {"<<: operand 0 is f32, expected an integer", "fix: convert it with .cast(i32)"},
         [&] { real << 2; });
  misuse("~(whole < 0)", {"~: operands are bool", "fix: write !condition"}, [&] { ~(whole < 0); });
  misuse("sigmoid(whole)", {"sigmoid: operand 0 is i32", "fix: convert it with .cast(f32)"},
         [&] { sigmoid(whole); });
  misuse("clamp(real, whole, 1)", {"clamp: dtypes differ: f32 {64, 64} and i32 {64, 64}"},
         [&] { clamp(real, whole, 1); });
}

TEST(ElementwiseErrors, BytesAreNotComputedWith) {
  Traced t;
  const Tile bytes = zeros({64, 64}, i8);
  const std::string what = "operand 0 is i8, a format of memory alone";
  misuse("+ bytes", {"+: " + what, "fix: convert it with .cast(f32)"}, [&] { bytes + bytes; });
  misuse("& 15", {"&: " + what, "fix: convert it with .cast(i32)"}, [&] { bytes & 15; });
  misuse("< 0", {"<: " + what}, [&] { bytes < 0; });
  misuse("reduce_max(bytes, 1)", {"reduce_max: the tile is i8", "fix: convert it with .cast(i32)"},
         [&] { reduce_max(bytes, 1); });
  misuse("dot(bytes, bytes)", {"the dtype i8 has no product", "fix: convert with .cast(bf16)"},
         [&] { dot(bytes, bytes); });
  misuse("full({4, 4}, 200, i8)", {"full: the number 200 is no i8", "fix: use a number"}, [&] {
    full({4, 4}, 200, i8);
  });
  misuse("store(t.Y(t.block, all), bytes)", {"store: the tile is i8, Y is f32", "fix: "},
         [&] { store(t.Y(t.block, all), bytes); });
}

TEST(ElementwiseErrors, NumbersThatTheOtherOperandCannotHold) {
  Traced t;
  const Tile whole = iota({64, 64}, 0);
  misuse("+ 0.5", {"+: the number 0.5 is no i32", "fix: "}, [&] { whole + 0.5; });
  misuse("+ 1e10", {"the number 1e+10 is no i32", "fix: "}, [&] { whole + 1e10; });
  const double infinity = std::numeric_limits<double>::infinity();
  misuse("full({64}, infinity, i32)", {"the number inf is no i32", "fix: "},
         [&] { full({64}, infinity, i32); });
  misuse("+", {"+: no operand is a tile", "fix: "},
         [] { operator+(TileOperand(1), TileOperand(2)); });
}

TEST(ShapeErrors, AxesSlicesReshapesSizes) {
  Traced t;
  const Tile a = zeros({64, 32});
  misuse("reduce_max(a, 2)",
         {"reduce_max: axis 2 of a tile f32 {64, 32}", "fix: axes count from 0 to 1"},
         [&] { reduce_max(a, 2); });
  misuse("reduce_sum(a, -1)", {"axis -1", "fix: "}, [&] { reduce_sum(a, -1); });
  misuse("iota({64}, 1)", {"axis 1 of a tile {64}", "fix: "}, [&] { iota({64}, 1); });
  misuse("slice({0, 8}, {64, 32})",
         {"offsets {0, 8} with sizes {64, 32} do not lie inside the tile {64, 32}", "fix: "}, [&] {
           a.slice({0, 8}, {64, 32});
         });
  misuse("slice({0}, {64})", {"do not lie inside the tile {64, 32}"}, [&] { a.slice({0}, {64}); });
  misuse("reshape({64, 64})", {"{64, 32} has 2048 elements, {64, 64} has 4096", "fix: "}, [&] {
    a.reshape({64, 64});
  });
  misuse("reshape({-64, -32})", {"{-64, -32}"}, [&] { a.reshape({-64, -32}); });
  misuse("T()", {"T: the tile f32 {64}", "fix: "}, [&] { zeros({64}).T(); });
  misuse("full({64, 0}, 1)", {"axis 1 has the size 0", "fix: "}, [&] { full({64, 0}, 1); });
  misuse("block(t.grid[0], 0)", {"the size 0 is not positive", "fix: "},
         [&] { t.rows.block(t.grid[0], 0); });
  misuse("part(0, 48)", {"a block of 64 elements does not divide into parts of 48", "fix: "},
         [&] { t.block.part(0, 48); });
  misuse("ceil_div(t.rows, 0)", {"a dimension is divided by zero: ", "fix: "},
         [&] { (void)ceil_div(t.rows, 0); });
  misuse("/ 0", {"a dimension is divided by zero: ", "fix: "}, [&] { (void)(t.rows / 0); });
  misuse("/ 0", {"/: an integer is divided by 0", "fix: "}, [&] { (void)(t.grid[0] / 0); });
  misuse("% 0", {"%: an integer is divided by 0", "fix: "}, [&] { (void)(iota({64}, 0) % 0); });
  misuse("% Dim(0)", {"a dimension is divided by zero: ", "fix: "}, [&] { (void)(64 % Dim(0)); });
  misuse("blocks(t.rows, 0)", {"the size 0 is not positive", "fix: "}, [&] {
    for (Block b : blocks(t.rows, 0)) (void)b;
  });
  for (const int size : {0, -3}) {
    misuse("X(", {"load: the block on axis 0 of X has the size " + std::to_string(size), "fix: "},
           [&] { load(t.X(Block(t.grid[0], size, Index(t.rows)), all)); });
  }
  misuse("blocks(t.rows, -1)", {"the size -1 is not positive", "fix: "}, [&] {
    for (Block b : blocks(t.rows, -1)) load(t.X(b, all));
  });
}

TEST(AccessErrors, DirectionsAndSelectors) {
  Traced t;
  misuse("X(t.block, all), t.x()", {"store: X is an input", "X is declared at", "fix: declare it"},
         [&] { store(t.X(t.block, all), t.x().cast(f32)); });
  misuse("Y(t.block, all)",
         {"load: Y is an output", "Y is declared at", "fix: declare it with Kernel::inout"},
         [&] { load(t.Y(t.block, all)); });
  misuse("all, all)",
         {"`all` on axis 0 of X, whose size rows is symbolic", "X is declared at",
          "fix: take a block of it: rows.block(i, size)"},
         [&] { load(t.X(all, all)); });
  misuse("X(t.block)",
         {"X has 2 axes, but 1 selector is given", "fix: give one index, block or `all`"},
         [&] { load(t.X(t.block)); });
  misuse("store(t.Y(t.block, all), zeros({64, 32}))",
         {"the tile is tile<f32, 64x32>, the place in Y is tile<f32, 64x64>",
          "the tile is computed at", "fix: "},
         [&] {
           store(t.Y(t.block, all), zeros({64, 32}));
         });
  misuse("store(t.Y(t.block, all), iota({64, 64}, 0))",
         {"the tile is i32, Y is f32", "fix: convert it"}, [&] {
           store(t.Y(t.block, all), iota({64, 64}, 0));
         });
}

TEST(ScopeErrors, AValueDoesNotLeaveItsLoop) {
  Traced t;
  std::optional<Tile> last;
  for (Index i : range(4)) last = t.x().cast(f32) * Tile({64, 64}, i).cast(f32);
  misuse("store(t.Y(t.block, all), *last)",
         {"store: an operand was computed inside a loop", "it is computed at",
          "fix: keep it in a Var"},
         [&] { store(t.Y(t.block, all), *last); });
}

TEST(ScopeErrors, AConditionsBranchIsAScope) {
  Traced t;
  std::optional<Index> inside;
  when(t.grid[0] > 0, [&] { inside = t.grid[0] + 1; });
  misuse("+ 1",
         {"+: an operand was computed inside a loop, condition or role that has ended", "fix: "},
         [&] { *inside + 1; });
}

TEST(LoopErrors, BreakAndReturn) {
  misuse("for (Index i : range(4)) {",
         {"the body of a traced loop was left early", "fix: no break"}, [] {
           Traced t;
           for (Index i : range(4)) {
             (void)i;
             break;
           }
         });
  misuse("for (Block b : blocks(t.rows, 64)) {", {"left early", "use when(condition, ...)"}, [] {
    const auto build = []() -> Kernel {
      Traced t;
      for (Block b : blocks(t.rows, 64)) {
        load(t.X(b, all));
        return std::move(t.kernel);
      }
      return std::move(t.kernel);
    };
    build();
  });
  EXPECT_NO_THROW(Kernel("after_an_error")) << "nothing of the broken kernel is left behind";
}

TEST(LoopErrors, ARangeIsLoopedOverOnce) {
  Traced t;
  misuse("range(4)", {"a traced range is not looped over", "fix: "}, [] { range(4); });
  misuse("range(5)", {"looped over twice", "fix: "}, [] {
    auto twice = range(5);
    for (Index i : twice) (void)i;
    for (Index i : twice) (void)i;
  });
}

TEST(LoopErrors, AStepIsPositive) {
  Traced t;
  misuse("range(0, 8, 0)", {"range: the step is 0", "fix: "}, [] {
    for (Index i : range(0, 8, 0)) (void)i;
  });
}

TEST(VariableErrors, AnotherShapeOrDType) {
  Traced t;
  Var sum{zeros({64, 1})};
  const Tile wide = zeros({64, 64});
  misuse("= wide",
         {"the variable holds tile<f32, 64x1>, the value is tile<f32, 64x64>",
          "the variable is made at", "fix: give both the same shape and dtype"},
         [&] { sum = wide; });
  const Tile narrow = zeros({64, 1}, bf16);
  misuse("= narrow", {"tile<f32, 64x1>", "tile<bf16, 64x1>", "fix: "}, [&] { sum = narrow; });
}

TEST(KernelErrors, NoKernelIsTraced) {
  misuse("zeros({64, 64})", {"no kernel is being traced", "fix: make a Kernel first"}, [] {
    zeros({64, 64});
  });
  const auto loop = [] { range(4); };
  misuse("const auto loop", {"no kernel is being traced", "fix: "}, loop);
  misuse("Index(4)", {"no kernel is being traced", "fix: "}, [] { Index(4); });
}

TEST(KernelErrors, HandlesOfAnotherKernel) {
  std::optional<Tile> tile;
  std::optional<Index> index;
  {
    Traced t;
    tile = t.x();
    index = t.grid[0];
  }
  Traced t;
  const Tile foreign = *tile;
  misuse("* 2",
         {"*: an operand belongs to another kernel than \"k\"", "fix: make every value inside"},
         [&] { foreign * 2; });
  misuse("+ 2", {"belongs to another kernel"}, [&] { *index + 2; });
  misuse("load(t.X(*index, all))", {"load: an operand belongs to another kernel"},
         [&] { load(t.X(*index, all)); });
}

TEST(KernelErrors, DimensionsOfAnotherKernel) {
  const Dim foreign = Kernel("other").dim("elsewhere");
  Traced t;
  const std::vector<std::string> parts{"the dimension \"elsewhere\" is not one of \"k\"",
                                       "fix: declare it"};
  const auto declare = [&] { t.kernel.in("Z", f32, {foreign, 4}); };
  const auto take = [&] { foreign.block(t.grid[0], 64); };
  const auto add = [&] { t.grid[0] + foreign; };
  misuse("const auto declare", parts, declare);
  misuse("const auto take", parts, take);
  misuse("const auto add", parts, add);
}

TEST(KernelErrors, NestedKernels) {
  misuse("Kernel inner(\"inner\")",
         {"\"inner\" begins inside a loop, condition or role of \"k\"", "fix: "}, [] {
           Traced t;
           for (Index i : range(4)) {
             (void)i;
             Kernel inner("inner");
           }
         });
}

TEST(KernelErrors, AFinishedKernelTakesNothingMore) {
  Traced t;
  const Tile x = t.x();
  t.kernel.finish();
  misuse("* 2", {"no kernel is being traced", "fix: "}, [&] { x * 2; });
  const auto declare = [&] { t.kernel.in("Z", f32, {4}); };
  const auto add_dim = [&] { t.kernel.dim("z"); };
  misuse("const auto declare", {"parameter: \"k\" is already finished", "fix: "}, declare);
  misuse("dim(\"z\")", {"dim: \"k\" is already finished", "fix: "}, add_dim);
}

TEST(KernelErrors, Declarations) {
  Traced t;
  misuse("dim(\"rows\")", {"dim: \"rows\" is declared twice", "fix: "},
         [&] { t.kernel.dim("rows"); });
  misuse("dim(\"n\", DimFacts{8, 16, 4})",
         {"impossible facts of \"n\": multiple of 8, from 16 to 4", "fix: "}, [&] {
           t.kernel.dim("n", DimFacts{8, 16, 4});
         });
  misuse("dim(\"m\", DimFacts{8, 9, 15})", {"impossible facts of \"m\"", "2^31 - 1"}, [&] {
    t.kernel.dim("m", DimFacts{8, 9, 15});
  });
  misuse("dim(\"m\", multiple_of(0))", {"multiple of 0", "fix: "},
         [&] { t.kernel.dim("m", multiple_of(0)); });
  misuse("X\", f32, {4})", {"parameter \"X\": the name is declared twice", "fix: "},
         [&] { t.kernel.out("X", f32, {4}); });
  misuse("C\", DType::boolean, {4})", {"bool has no place in memory", "fix: "},
         [&] { t.kernel.in("C", DType::boolean, {4}); });
  misuse("N\", f32, {-4})", {"the size -4 is negative", "fix: "},
         [&] { t.kernel.in("N", f32, {-4}); });
  const auto no_axis = [&] { t.kernel.in("S", f32, {}); };
  misuse("S\", f32, {})", {"1 to 5 axes, not 0", "fix: "}, no_axis);
}

TEST(KernelErrors, Names) {
  misuse("Kernel(", {"Kernel: \"a b\" is no name", "letters, digits and _"}, [] { Kernel("a b"); });
  misuse("Kernel(", {"Kernel: \"\" is no name"}, [] { Kernel(""); });
  Traced t;
  misuse("dim(", {"dim: \"2n\" is no name"}, [&] { t.kernel.dim("2n"); });
  misuse("", {"parameter: \"größe\" is no name"}, [&] { t.kernel.in("größe", f32, {4}); });
  misuse("dim(", {"is what multiprocessors() gives"}, [&] { t.kernel.dim("multiprocessors"); });
}

TEST(KernelErrors, AGridOfNumbers) {
  misuse("grid(-1)", {"grid: -1 blocks", "0 to 2^31 - 1"}, [] { Kernel("k").grid(-1); });
  misuse("grid(4, ", {"grid: 4294967296 blocks"},
         [] { Kernel("k").grid(4, std::int64_t{1} << 32); });
}

TEST(ShapeErrors, MoreThanATileCanHave) {
  Traced t;
  misuse("full(", {"has more than 2^31 - 1 elements", "smaller blocks"}, [&] {
    full({1 << 16, 1 << 16}, 1);
  });
  const Block wide = t.rows.block(0, 1 << 30);
  misuse("load(", {"has more than 2^31 - 1 elements"}, [&] { load(t.X(wide, all)); });
}

TEST(AccessErrors, AnIndexOutsideOfItsAxis) {
  Traced t;
  misuse("X(t.block, 64)",
         {"load: index 64 on axis 1 of X, whose size is 64", "X is declared",
          "fix: take an index from 0 to 63"},
         [&] { load(t.X(t.block, 64)); });
  misuse("Y(-1, all)",
         {"store: index -1 on axis 0 of Y, whose size is rows",
          "fix: indices count from 0, and end one before the size"},
         [&] { store(t.Y(-1, all), 0); });
}

TEST(KernelErrors, OneGrid) {
  Traced t;
  misuse("grid(4)", {"grid: the grid of \"k\" is declared twice", "fix: call Kernel::grid"},
         [&] { t.kernel.grid(4); });
}

void nest_loops(int count) {
  if (count == 0) return;
  for ([[maybe_unused]] Index i : range(0, 2)) nest_loops(count - 1);
}

TEST(KernelErrors, LoopsThatAreNestedTooDeep) {
  {
    Traced t;
    nest_loops(120);
  }
  Traced t;
  misuse("for (", {"for_loop: blocks are nested more than 128 deep", "fix: put fewer loops"},
         [&] { nest_loops(3000); });
}

TEST(KernelErrors, IntegersOf32Bits) {
  Traced t;
  misuse("[&] {", {"the integer 1099511627776 does not fit 32 bits", "fix: "},
         [&] { t.grid[0] + (std::int64_t{1} << 40); });
}

TEST(AtomicErrors, OneElementOfAnIntegerVector) {
  Traced t;
  misuse("atomic_add(t.X(t.grid[0], 0), 1)",
         {"X is not one element of an i32 vector", "fix: declare it"},
         [&] { atomic_add(t.X(t.grid[0], 0), 1); });
}

TEST(MaskErrors, RowsThatAreNoMultipleOfTheQueries) {
  Traced t;
  const Mask mask = causal(t.rows, t.rows);
  const Tile scores = zeros({80, 64});
  misuse("apply(", {"Mask: scores of 80 rows for 64 queries", "fix: "},
         [&] { mask.apply(scores, t.block, t.block); });
}

}  // namespace
}  // namespace tilewright
