#pragma once

#include "tilewright/program.h"

// Collectives over ranks, of vectors: any tensor that lies in one piece is one. Sums are in f32, in
// the order of the ranks, and rounded once, so that all ranks and all runs have the same bits,
// whichever form computes them. What a function refuses is a usage error at its caller's line,
// `where`.
//
// The forms for sm_90a are one persistent kernel each, whose threads push into the memory of other
// ranks. A CTA of a rank works with those of the same number in the others alone: a word for each
// tells that its share has arrived. The elements are whole 16 bytes.
namespace tilewright::kernels {

struct Collective {
  DType dtype = bf16;  // bf16, f16 or f32
  int ranks = 2;       // 2 to 8
};

// X {count} -> Y {ranks, count}: Y[s] = X of rank s.
Program all_gather(const Collective& collective, SourceLocation where = here());
Program all_gather_sm90(const Collective& collective, SourceLocation where = here());

// X {ranks, count} -> Y {count}: in rank r the sum over the ranks s of X_s[r].
Program reduce_scatter(const Collective& collective, SourceLocation where = here());
Program reduce_scatter_sm90(const Collective& collective, SourceLocation where = here());

// X {count} -> Y {count}: the sum of X over the ranks.
Program all_reduce(const Collective& collective, SourceLocation where = here());

// X {count} -> Y {count}: X of rank `root`. The X of others is not read.
Program broadcast(const Collective& collective, int root, SourceLocation where = here());

// How often data crosses a link on its way.
enum class Shots {
  one,  // each rank sends what it has to all: the least time for little
  two,  // in parts, each through a rank that sums it or hands it on: the least traffic
};
Program all_reduce_sm90(const Collective& collective, Shots shots, SourceLocation where = here());
Program broadcast_sm90(const Collective& collective, int root, Shots shots,
                       SourceLocation where = here());

}  // namespace tilewright::kernels
