#pragma once

#include "tilewright/program.h"

// What a link between two GPUs is measured with: rows of one rank that come into another's memory,
// in every way that there is, and words that go to and fro. What a function refuses is a usage
// error at its caller's line, `where`.
namespace tilewright::kernels {

// Who moves the data. A push is done by the rank that has it, a pull by the one that gets it.
enum class Transfer { engine_push, engine_pull, thread_push, thread_pull, tma_push, tma_pull };

struct LinkCopy {
  Transfer how = Transfer::engine_push;
  int ranks = 2;           // 2 to 8
  int from = 0, to = 1;    // which of them
  bool both_ways = false;  // the other direction at the same time
  bool scratch = false;    // x and y are not kept, so that no host tensor is as large
};

inline constexpr int kLinkColumns = 128;

// In each run y of rank `to` becomes x of rank `from`. Both are f32 {rows, kLinkColumns}, and
// `rows` is a dim. For sm_90a, by all its multiprocessors where it is not by copy engine.
Program link_copy(const LinkCopy& copy, SourceLocation where = here());

// In each run ranks `one` and `other` set a word of each other's `rounds` times, each when its own
// has come. `by_streams`: streams write and wait, else a kernel of one CTA for each rank.
struct LinkSignal {
  int ranks = 2;
  int one = 0, other = 1;
  int rounds = 1;
  bool by_streams = false;
};
Program link_signal(const LinkSignal& signal, SourceLocation where = here());

}  // namespace tilewright::kernels
