#pragma once

#include "tilewright/kernels/collectives.h"

// Collectives over nodes, in two levels: among the ranks of a node, which reach each other's
// memory, and among ranks of the same number in different nodes. Ranks of one node follow each
// other: rank r of all is rank r % (ranks / nodes) of node r / (ranks / nodes). All that passes
// between ranks does so by Stream::exchange. So a program runs over any ranks, of one node or of
// several; that it is told the right number of nodes makes it send less between them.
//
// The meaning of the first two is that of collectives.h. What a function refuses is a usage error
// at its caller's line, `where`.
namespace tilewright::kernels {

struct NodeCollective {
  Collective vectors;
  int nodes = 2;  // divides the ranks
};

// X {count} -> Y {ranks, count}. Between nodes each rank sends its own X, and then to the other
// ranks of its node what it has of all nodes.
Program all_gather_nodes(const NodeCollective& collective, SourceLocation where = here());

// X {ranks, count} -> Y {count}. The ranks of a node send each other what they add, for all nodes;
// sums are in f32 in the order of the ranks, and pass between nodes as f32, where they are added in
// the order of the nodes and rounded once.
Program reduce_scatter_nodes(const NodeCollective& collective, SourceLocation where = here());

// X {ranks, count} -> Y {ranks, count}: in rank r Y[s] = X_s[r].
Program vector_all_to_all(const Collective& collective, SourceLocation where = here());
// What goes to other nodes is first with the rank that is of the receiver's number: each rank sends
// one piece to each other node.
Program vector_all_to_all_nodes(const NodeCollective& collective, SourceLocation where = here());

}  // namespace tilewright::kernels
