#pragma once

#include <string>

#include "support/diagnostic.h"
#include "tilewright/program.h"

// Programs that are simulated, and run where there are GPUs.
namespace tilewright::test {

inline constexpr int kRows = 64, kColumns = 32;

// Y = factor X.
inline Kernel scale() {
  Kernel kernel("scale");
  const Dim rows = kernel.dim("rows");
  const Tensor X = kernel.in("X", f32, {rows, kColumns}),
               Y = kernel.out("Y", f32, {rows, kColumns});
  const Scalar factor = kernel.scalar("factor", f32);
  const auto [x] = kernel.grid(ceil_div(rows, 16));
  const Block block = rows.block(x, 16);
  store(Y(block, all), load(X(block, all)) * factor);
  return kernel;
}

// Y += X, in blocks of 16 rows.
inline Kernel add() {
  Kernel kernel("add");
  const Dim rows = kernel.dim("rows");
  const Tensor X = kernel.in("X", f32, {rows, kColumns}),
               Y = kernel.inout("Y", f32, {rows, kColumns});
  const auto [x] = kernel.grid(ceil_div(rows, 16));
  const Block block = rows.block(x, 16);
  store(Y(block, all), load(Y(block, all)) + load(X(block, all)));
  return kernel;
}

// y = (rows + run) x in the first rows, and half of it, by way of scratch and of zeros, behind.
struct AllLengths {
  AllLengths() : program("all_lengths"), rows(program.dim("rows", at_most(1000))) {
    x = program.in("x", f32, {rows, kColumns});
    y = program.out("y", f32, {2 * rows, kColumns});
    scaled = program.scratch("scaled", f32, {rows, kColumns});
    sum = program.zeroed("sum", f32, {rows, kColumns});
    const Stream stream = program.rank(0).stream();
    stream.launch(scale(), {x, scaled}, {RunNumber(rows) + program.run()});
    stream.copy(y.rows(0, rows), scaled);
    stream.launch(scale(), {scaled, scaled}, {0.5});
    stream.launch(add(), {scaled, sum});
    stream.copy(y.rows(rows, rows), sum);
  }
  Program program;
  Dim rows;
  Buffer x, y, scaled, sum;
};

struct TwoKernels {
  explicit TwoKernels(const char* second_stream, bool event)
      : program("two_kernels"),
        x(program.buffer("x", f32, {kRows, kColumns})),
        y(program.buffer("y", f32, {kRows, kColumns})),
        z(program.buffer("z", f32, {kRows, kColumns})) {
    const Stream first = program.rank(0).stream("first");
    const Stream second = program.rank(0).stream(second_stream);
    first_line = line_of(here());
    first.launch(scale(), {x, y}, {2});
    if (event) second.wait(first.record());
    second_line = line_of(here());
    second.launch(scale(), {y, z}, {program.run()});
  }
  static std::string line_of(SourceLocation before) {
    return "launched at " + format_location({before.file, before.line + 1});
  }
  Program program;
  Buffer x, y, z;
  std::string first_line, second_line;
};

// Each rank pushes its rows to its neighbour by the copy engine, and says so in a word there.
struct Push {
  explicit Push(bool waits, int ranks = 3) : program("push", ranks) {
    x = program.buffer("x", f32, {kRows, kColumns});
    y = program.buffer("y", f32, {kRows, kColumns});
    z = program.buffer("z", f32, {kRows, kColumns});
    const Buffer here_words = program.signals("arrived", 1), free = program.signals("free", 1);
    program.on_each_rank([&](const Rank& rank) {
      const Stream push = rank.stream("push"), math = rank.stream("math");
      // The neighbour has read what the run before brought.
      push.wait(free[0], program.run() - 1);
      push.copy(y.on(rank.next()), x);
      push.write(here_words.on(rank.next())[0], program.run());
      if (waits) math.wait(here_words[0], program.run());
      math.launch(scale(), {y, z}, {3});
      math.write(free.on(rank.next(rank.count() - 1))[0], program.run());
    });
  }
  Program program;
  Buffer x, y, z;
};

// Each rank waits for the word of the other before it writes its own.
inline Program no_wait_is_over() {
  Program program("no_wait", 2);
  const Buffer ready = program.signals("ready", 1);
  program.on_each_rank([&](const Rank& rank) {
    const Stream stream = rank.stream();
    stream.wait(ready[0], 1);
    stream.write(ready.on(rank.next())[0], 1);
  });
  return program;
}

}  // namespace tilewright::test
