#include <gtest/gtest.h>

#include <cmath>

#include "language/misuse.h"
#include "tilewright/program.h"

namespace tilewright {
namespace {

using test::misuse;

Kernel copy_rows() {
  Kernel kernel("copy_rows");
  const Dim rows = kernel.dim("rows");
  const Tensor X = kernel.in("X", f32, {rows, 32}), Y = kernel.out("Y", f32, {rows, 32});
  const auto [x] = kernel.grid(ceil_div(rows, 16));
  const Block block = rows.block(x, 16);
  store(Y(block, all), load(X(block, all)));
  return kernel;
}

class ProgramErrorsTest : public testing::Test {
 protected:
  Program program{"sample", 2};
  Buffer x = program.buffer("x", f32, {64, 32});
  Buffer narrow = program.buffer("narrow", f32, {64, 16});
  Buffer half = program.buffer("half", bf16, {64, 32});
  Buffer ready = program.signals("ready", 4);
  Stream stream = program.rank(0).stream();
};

TEST_F(ProgramErrorsTest, ABufferThatNobodyMade) {
  misuse("launch", {"no program has made", "Program::buffer"}, [&] {
    stream.launch(copy_rows(), {x, Buffer()});
  });
  misuse("copy", {"no program has made"}, [&] { stream.copy(Buffer(), x); });
  misuse("wait", {"no program has made"}, [&] { stream.wait(Buffer()[0], 1); });
}

TEST_F(ProgramErrorsTest, ABufferOfAnotherProgram) {
  Program other("other");
  const Buffer y = other.buffer("y", f32, {64, 32});
  misuse("launch", {"buffer y is of program other, not of sample"}, [&] {
    stream.launch(copy_rows(), {x, y});
  });
  misuse("copy", {"buffer y is of program other"}, [&] { stream.copy(x, y); });
}

TEST_F(ProgramErrorsTest, ShapesThatDoNotMatchTheKernel) {
  misuse("launch", {"narrow", "size 16", "32", "copy_rows"}, [&] {
    stream.launch(copy_rows(), {x, narrow});
  });
  misuse("launch", {"half is bf16", "f32"}, [&] { stream.launch(copy_rows(), {x, half}); });
  misuse("launch", {"rows"}, [&] { stream.launch(copy_rows(), {x, x.rows(0, 32)}); });
  misuse("launch", {"gives 1 tensor, and Y is missing"}, [&] { stream.launch(copy_rows(), {x}); });
  misuse("launch", {"gives 3 tensors, and it takes 2"}, [&] {
    stream.launch(copy_rows(), {x, x, x});
  });
  misuse("launch", {"takes 0 scalars, and the launch gives 1"}, [&] {
    stream.launch(copy_rows(), {x, x}, {2});
  });
  misuse("launch", {"x of rank 1", "on rank 0", "symmetric"}, [&] {
    stream.launch(copy_rows(), {x, x.on(1)});
  });
}

TEST_F(ProgramErrorsTest, CopiesOfDifferentShapes) {
  misuse("copy", {"x f32 {64, 32} from narrow f32 {64, 16}"}, [&] { stream.copy(x, narrow); });
  misuse("copy", {"f32", "bf16"}, [&] { stream.copy(x.on(1), half); });
}

TEST_F(ProgramErrorsTest, PartsOutsideOfTheBuffer) {
  misuse("rows", {"{40, 32} elements from {32, 0} on are not inside of x {64, 32}"},
         [&] { stream.copy(x.rows(32, 40), x.rows(0, 40)); });
  misuse("on", {"x of rank 2", "ranks 0 to 1"}, [&] { stream.copy(x.on(2), x); });
  misuse("[", {"{1} elements from {-1} on are not inside of ready {4}"},
         [&] { stream.write(ready[-1], 1); });
  const Buffer number = program.buffer("number", f32, {});
  misuse("rows", {"{1} elements from {0} on are not inside of number {}"},
         [&] { stream.copy(number.rows(0, 1), number); });
}

TEST_F(ProgramErrorsTest, CopiesWithinABuffer) {
  misuse("copy", {"x {32, 32} from {16, 0} on overlaps what is copied, from {0, 0} on"},
         [&] { stream.copy(x.rows(16, 32), x.rows(0, 32)); });
  stream.copy(x.rows(32, 32), x.rows(0, 32));
  stream.copy(x.on(1).rows(0, 32), x.rows(0, 32));
}

TEST_F(ProgramErrorsTest, DimsOfAnotherProgram) {
  const Dim rows = program.dim("rows");
  misuse("late", {"late: program sample has no dim keys", "program.dim(\"keys\")"},
         [&] { program.in("late", f32, {Dim::symbol("keys")}); });
  misuse("rows", {"rows: program sample has no dim keys"},
         [&] { stream.copy(x.rows(0, Dim::symbol("keys") * 2), x); });
  misuse("dim", {"\"rows\" is declared twice"}, [&] { program.dim("rows"); });
  misuse("dim", {"\"multiprocessors\""}, [&] { program.dim("multiprocessors"); });
  misuse("launch", {"program sample has no dim keys"}, [&] {
    stream.launch(copy_rows(), {x, x}, {Dim::symbol("keys")});
  });
  misuse("launch", {"program sample has no scalar factor"}, [&] {
    stream.launch(copy_rows(), {x, x}, {Program("other").scalar("factor", f32)});
  });
  misuse("factor", {"scalar factor of bf16", "f32 or i32"},
         [&] { program.scalar("factor", bf16); });
}

TEST_F(ProgramErrorsTest, WhatIsWrongWhateverTheDimsAre) {
  const Dim rows = program.dim("rows");
  const Buffer own = program.buffer("own", f32, {rows, 32});
  misuse("launch", {"narrow", "size 16", "32"}, [&] { stream.launch(copy_rows(), {own, narrow}); });
  misuse("launch", {"half is bf16"}, [&] { stream.launch(copy_rows(), {own, half}); });
  misuse("copy", {"own f32 {rows, 32} from narrow f32 {64, 16}"},
         [&] { stream.copy(own, narrow); });
  misuse("rows", {"{-1, 32} elements from {0, 0} on are not inside of own {rows, 32}"},
         [&] { stream.copy(own.rows(0, -1), x.rows(0, 1)); });
  // What may fit.
  stream.launch(copy_rows(), {own, x});
  stream.copy(own.rows(8, 8), x.rows(0, 8));
}

TEST_F(ProgramErrorsTest, WhatACallerPassesToBeRead) {
  const Buffer given = program.in("given", f32, {64, 32});
  misuse("launch", {"given is passed to be read, and copy_rows, as its Y, writes it", "inout"},
         [&] {
           stream.launch(copy_rows(), {x, given});
         });
  misuse("copy", {"given is passed to be read"}, [&] { stream.copy(given, x); });
  misuse("zero", {"given is passed to be read"}, [&] { stream.zero(given); });
}

TEST_F(ProgramErrorsTest, ZerosOfAnotherRank) {
  const Buffer sums = program.zeroed("sums", f32, {64, 32});
  misuse("zero", {"sums of rank 1 is set to zero in a stream of rank 0"},
         [&] { stream.zero(sums.on(1)); });
  misuse("copy", {"sums of rank 1 begins as zeros", "a stream of rank 0", "stream.zero(sums)"},
         [&] { stream.copy(sums.on(1), x); });
  stream.copy(x, sums);
}

TEST_F(ProgramErrorsTest, WordsThatAreNone) {
  misuse("write", {"x {64, 32} is not one word of signals"}, [&] { stream.write(x, 1); });
  misuse("wait", {"ready {4} is not one word", "ready[0]"}, [&] { stream.wait(ready, 1); });
}

TEST_F(ProgramErrorsTest, WordsHoldIntegers) {
  misuse("write", {"0 + 0.5 * run is no integer of 32 bits"},
         [&] { stream.write(ready[0], program.run() * 0.5); });
  misuse("wait", {"10000000000 + 0 * run is no integer of 32 bits"},
         [&] { stream.wait(ready[0], 1e10); });
  stream.write(ready[0], 4294967295.0);  // modulo 2^32
  stream.write(ready[0], 2 * program.run() - 1);
}

TEST_F(ProgramErrorsTest, RanksAroundTheEnd) {
  EXPECT_EQ(program.rank(0).next(), 1);
  EXPECT_EQ(program.rank(1).next(), 0);
  EXPECT_EQ(program.rank(0).next(-1), 1);
  EXPECT_EQ(program.rank(1).next(-3), 0);
}

TEST_F(ProgramErrorsTest, MemoryOfABufferThatItDoesNotHave) {
  ProgramMemory memory(program);
  misuse("at", {"no such buffer in rank 2", "rank 0 to 1"}, [&] { memory.at(x, 2); });
  const Buffer late = program.buffer("late", f32, {4});
  misuse("at", {"no such buffer in rank 0"}, [&] { memory.at(late); });
}

// Else what no launch writes would look written.
TEST_F(ProgramErrorsTest, WhatRunsOnlyWriteIsNoNumberBefore) {
  const Buffer written = program.out("written", f32, {4});
  ProgramMemory memory(program);
  EXPECT_TRUE(std::isnan(memory.at(written).flat(3)));
  EXPECT_FALSE(std::isnan(memory.at(x).flat(0)));
}

TEST_F(ProgramErrorsTest, EventsThatNobodyRecorded) {
  misuse("wait", {"stream main waits for an event that no stream has recorded", "record"},
         [&] { stream.wait(Event()); });
  Program other("other");
  const Event foreign = other.rank(0).stream().record();
  misuse("wait", {"the event is of program other"}, [&] { stream.wait(foreign); });
  const Event distant = program.rank(1).stream("far").record();
  misuse("wait", {"rank 0 waits for an event of rank 1", "signals"}, [&] { stream.wait(distant); });
}

TEST_F(ProgramErrorsTest, NamesAndRanks) {
  misuse("x", {"there is a buffer x already"}, [&] { program.buffer("x", f32, {1}); });
  misuse("buffer", {"buffer: \"a.b\" is no name"}, [&] { program.buffer("a.b", f32, {1}); });
  misuse("stream", {"stream: \"\" is no name"}, [&] { program.rank(0).stream(""); });
  misuse("big", {"buffer big: shape", "less than 2^63 bytes"}, [&] {
    program.buffer("big", f32, {std::int64_t{1} << 40, std::int64_t{1} << 40});
  });
  misuse("less", {"buffer less: shape {-1}"}, [&] { program.buffer("less", f32, {-1}); });
  misuse("rank", {"rank 2", "ranks 0 to 1"}, [&] { program.rank(2); });
  misuse("Program", {"9 ranks, expected 1 to 8"}, [] { Program("many", 9); });
}

}  // namespace
}  // namespace tilewright
