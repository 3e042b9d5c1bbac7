#pragma once

#include <cstddef>
#include <cstdint>

// The CPU's whole-tile operations: each is one function, compiled ahead of time once for every
// instruction set, and found in a table of pointers. This header is read by files that are compiled
// for instruction sets which a machine may lack. So it has no inline function and no template of
// the standard library: the linker would merge them into code that runs everywhere.
//
// Two kinds of memory hold elements.
//   A tile of the arena: rows begin at multiples of 16 elements, the first of them at a multiple of
//     64 bytes. So a row has room for its columns rounded up to 16. Kernels that work on tiles
//     alone may read and write all of that room. Nobody reads what they leave in it.
//   A tensor, or anything else with strides: nothing past the rows and columns is touched. Kernels
//     that say "exactly" keep to this for that operand.
// Elements lie as they do in memory: a boolean is a byte 0 or 1. What the columns past the valid
// ones hold may be any bits, also of integers that a division would trap on.
namespace tilewright::cpu {

// In the order of DType (tilewright/dtype.h).
enum class Element : std::uint8_t { f32, f16, bf16, f8e4m3, i32, i64, i8, u8, u32, boolean, count };

// What arithmetic is done in. Narrow floats are widened before, and rounded behind.
enum class Lane : std::uint8_t { f32, i32, i64, boolean, count };

// The elementwise functions, by the names of the IR's (ir/operations.def). `op(name)`.
#define TW_CPU_FUNCTIONS(op)                                                                    \
  op(add) op(sub) op(mul) op(div) op(mod) op(ceildiv) op(min) op(max) op(fma) op(neg) op(abs)   \
      op(exp) op(exp2) op(log) op(log2) op(sqrt) op(rsqrt) op(rcp) op(tanh) op(log1p) op(expm1) \
          op(erf) op(sin) op(cos) op(floor) op(ceil) op(rint) op(lt) op(le) op(eq) op(ne)       \
              op(logical_and) op(logical_or) op(logical_not) op(bit_and) op(bit_or) op(bit_xor) \
                  op(bit_not) op(shift_left) op(shift_right)
enum class Function : std::uint8_t {
#define TW_CPU_NAME(name) name,
  TW_CPU_FUNCTIONS(TW_CPU_NAME)
#undef TW_CPU_NAME
      count
};

enum class Reduction : std::uint8_t { add, min, max, count };

// Memory that is needed next. Elementwise functions from f32 to f32 but sin and cos, sums in parts
// and chains ask for it while they compute, so many lines of 64 bytes of both for each 64 elements:
// memory and arithmetic are busy at once. No other function reads it.
struct Ahead {
  const char *first, *second;
  std::int64_t lines;
};

// The valid rows and columns of a call. Both may be 0.
struct Shape {
  std::int64_t rows, columns;
  const Ahead* ahead = nullptr;
};

// An operand of an elementwise function. A row stride of 0 repeats one row; `repeats`: the first
// element of each row stands for all of it. Both together are a scalar. Strides are in bytes.
struct Operand {
  const void* data;
  std::int64_t row_stride;
  bool repeats;
};

struct Result {
  void* data;
  std::int64_t row_stride;
};

// Elements with any strides, in bytes, also 0 and less than 0.
struct Matrix {
  void* data;
  std::int64_t row_stride, column_stride;
};

// How the products of two elements are rounded on their way into the sum, whose terms come in
// ascending order of k with one sum an element in any case.
enum class Rounding : std::uint8_t {
  apart,  // the product, then the sum. Equal to `fused` where an f32 holds every product exactly
  fused,  // once, where the machine has such an instruction
  pairs,  // two terms of bf16 at a time by the machine's bf16 instruction, if it has one
};

// Called behind rows of a product that are whole, in ascending order and up to `end`: the
// first-level cache still has them. Products of some shapes call it late, or not at all. It throws
// nothing.
struct RowsDone {
  void (*call)(void* context, std::int64_t end);
  void* context;
};

// Tiles that products to come will read in tensors. Products of pairs ask for their lines of memory
// while they compute, a few at a time.
struct TilesAhead {
  struct Rows {
    const char* data;
    std::int64_t stride, bytes, count;  // to the next row, of each, and how many there are
  };
  static constexpr int kMost = 4;
  Rows tiles[kMost];  // the next one first
  int count;
  std::int64_t at;  // so many bytes of the first row have been asked for
};

// b of a product as it is packed, which products to come may find there.
struct Packs {
  float* at;  // 64-byte aligned. Behind the product it is the end of them
  bool are_there;
};
// Products of up to so many rows read b where it lies, and pack nothing.
constexpr std::int64_t kFewRows = 4;

// c = a b, or c + a b, with a {m, k}, b {k, n}: f32 sums of floats, wrapping i32 ones of i32 and
// i64 elements. a and b are read exactly. c is a tile of the arena, of f32 or i32; its strides are
// those of rows.
struct Product {
  std::int64_t m, n, k;
  Matrix a, b;
  Element element;  // of a and b
  Result c;
  bool accumulates;
  Rounding rounding;
  void* scratch;  // product_scratch bytes, 64-byte aligned
  // Booleans {m, n}, side by side along n: only where they are true is c needed, and may hold
  // anything elsewhere. Without data all of c is needed.
  Matrix needed = {};
  // Terms whose factors of a are 0 may be left out, whatever b holds there.
  bool skips_zeros = false;
  const RowsDone* done = nullptr;
  // With room for 4 bytes an element of b, and of columns up to the next multiple of 64.
  Packs* packs = nullptr;
  TilesAhead* ahead = nullptr;
};

using Elementwise = void (*)(Shape shape, const Operand* operands, Result result);
using Select = void (*)(Shape shape, const Operand& condition, const Operand& yes,
                        const Operand& no, Result result);
using Convert = void (*)(Shape shape, const Operand& source, Result result);
using Copy = void (*)(Shape shape, const Matrix& source, const Matrix& target);
using Fill = void (*)(Shape shape, const void* value, Result result);
using Reduce = void (*)(Shape shape, const Operand& source, void* result);
using ReduceProducts = void (*)(Shape shape, const Operand& a, const Operand& b, void* result);

// One of a chain: elementwise functions of f32 that take what the one before gave, which stays in
// registers. A chain begins with a load and ends with a store or a sum. `square`: the value times
// itself. `sum`: of each row, as sum_along_row_in_parts has it.
enum class StepKind : std::uint8_t { load, store, function, square, sum };
struct Step {
  StepKind kind;
  Element element = Element::f32;     // in memory, of loads and stores: f32, f16 or bf16
  Function function = Function::add;  // one that asks for memory (Ahead)
  std::uint8_t place = 0;             // of the value among the function's operands
  // Of a store: nobody reads the rows soon. They go past the caches, where the machine can, and
  // begin at multiples of 64 bytes. Others see them behind end_far_stores.
  bool is_far = false;
  // The other operands in their order, as an Operand has them. Of loads, stores and sums the first.
  // `of_strip`: its rows begin at FirstRow::of_strip.
  bool repeats[2] = {}, of_strip[2] = {};
  const void* operands[2] = {};
  std::int64_t row_strides[2] = {};
};
constexpr int kMaximumSteps = 16;
// The row of its operands that a chain begins with.
struct FirstRow {
  std::int64_t of_all = 0, of_strip = 0;
};
using Chain = void (*)(Shape shape, const Step* steps, int count, FirstRow first);

struct Kernels {
  const char* name;  // of the instruction set, as TILEWRIGHT_CPU_ISA takes it

  // By Function and Lane; null where the IR has no such function. Comparisons give booleans, all
  // others the lane's type. A result may lie where an operand of the same strides lies. Floats: the
  // IEEE operations round as the interpreter's do; rsqrt is within 1.5 units of the last place, erf
  // within three, the others within two. min and max ignore a NaN. Integers wrap. Divisions by 0
  // give 0 and so does that of the lowest number by -1. Divisions round toward minus infinity, mod
  // has the divisor's sign, ceildiv rounds up. A shift by less than 0 or all bits leaves 0, or the
  // sign.
  Elementwise elementwise[static_cast<int>(Function::count)][static_cast<int>(Lane::count)];

  // Gives the bits that the functions give one by one.
  Chain chain;
  void (*end_far_stores)();

  // By the elements' bytes: 1, 2, 4 and 8 at 0 to 3.
  Select select[4];
  // Both sides exactly. Rows and columns may be swapped by their strides.
  Copy copy[4];
  // Of a tile.
  Fill fill[4];

  // By from and to, both exactly; null where two steps are needed, through f32. There are those
  // between f32 and every other element, between any two integers, and from booleans to f32, i32
  // and i64. To the nearest, ties to even, as support/number_formats.h. A float becomes the nearest
  // bound of an integer, a NaN 0. To i8, u8 and u32 integers saturate; i64 to i32 wraps.
  Convert convert[static_cast<int>(Element::count)][static_cast<int>(Element::count)];

  // {0, 1, 2, ...} along columns (each row the same), or along rows, in i32; of a tile.
  void (*iota_columns)(Shape shape, Result result);
  void (*iota_rows)(Shape shape, Result result);

  // By Reduction and Lane f32, i32, i64. The results lie one after the other, as many as rows
  // (along each row) or columns, with room up to the next multiple of 16.
  // Sums are added in ascending order. Of nothing: 0, the greatest or the lowest number of the lane
  // (infinities).
  Reduce reduce_along_row[static_cast<int>(Reduction::count)][static_cast<int>(Lane::count)];
  Reduce reduce_along_column[static_cast<int>(Reduction::count)][static_cast<int>(Lane::count)];
  // The same of f32 in 16 parts, which are added in one order on every machine (kernels/reduce.h).
  Reduce sum_along_row_in_parts;
  // Of the products of two tiles, which are rounded before. Neither repeats its elements.
  ReduceProducts sum_of_products_in_parts;
  // Whether a boolean is true.
  bool (*any)(Shape shape, const Operand& source);

  std::int64_t (*product_scratch)(std::int64_t m, std::int64_t n, std::int64_t k, Element element);
  void (*product)(const Product& product);
};

// The best instruction set of this machine, or the one that TILEWRIGHT_CPU_ISA names: a name that
// is not known and a set that the machine lacks are usage errors.
const Kernels& kernels();
// That choice for what the variable holds: null or nothing means the best.
const Kernels& choose_kernels(const char* asked);
// The one of that name; null where there is none or the machine lacks it.
const Kernels* find_kernels(const char* name);

}  // namespace tilewright::cpu
