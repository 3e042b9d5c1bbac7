#include "tilewright/kernels/nodes.h"
#include "tilewright/function_ref.h"

#include <string>
#include <vector>

#include "kernels/nodes_check.h"

namespace tilewright::kernels {

void check_nodes(const NodeCollective& c, const Caller& caller) {
  if (c.nodes >= 1 && c.vectors.ranks % c.nodes == 0) return;
  caller.refuse(
      std::to_string(c.nodes) + " nodes for " + std::to_string(c.vectors.ranks) + " ranks",
      "each node has as many: take a divisor of the ranks");
}

namespace {

constexpr int kNodeBlock = 1024;  // of a vector

// A rank among those of its node, and its node among all.
struct RankPlace {
  int node, number;
};

// A program over nodes, as each rank sees it.
class NodeProgram {
 public:
  NodeProgram(const NodeCollective& c, const Caller& caller)
      : nodes(c.nodes),
        of_node(c.vectors.ranks / c.nodes),
        ranks(c.vectors.ranks),
        dtype(c.vectors.dtype),
        program(caller.function, ranks, caller.where),
        count(program.dim("count")) {}

  int rank(int node, int number) const { return node * of_node + number; }
  RankPlace place(const Rank& rank) const {
    return {rank.number() / of_node, rank.number() % of_node};
  }
  std::vector<Dim> vectors(int how_many) const { return {how_many, count}; }

  // Between a rank and the others of its node, the next one first: what it sends to each.
  void exchange_in_node(const Rank& rank,
                        FunctionRef<void(int number, int of_rank, std::vector<Sent>&)> send) const {
    const RankPlace me = place(rank);
    std::vector<Sent> sent;
    std::vector<int> others;
    for (int d = 1; d < of_node; ++d) {
      const int number = (me.number + d) % of_node;
      others.push_back(this->rank(me.node, number));
      send(number, others.back(), sent);
    }
    if (!others.empty()) rank.stream().exchange("in_node", sent, others);
  }
  // Between the ranks of its number, around the ring of the nodes.
  void exchange_between_nodes(const Rank& rank,
                              FunctionRef<Sent(int node, int of_rank)> send) const {
    const RankPlace me = place(rank);
    std::vector<Sent> sent;
    std::vector<int> others;
    for (int d = 1; d < nodes; ++d) {
      const int node = (me.node + d) % nodes;
      others.push_back(this->rank(node, me.number));
      sent.push_back(send(node, others.back()));
    }
    if (!others.empty()) rank.stream().exchange("between_nodes", sent, others);
  }

  const int nodes, of_node, ranks;
  const DType dtype;
  Program program;
  Dim count;
};

// A vector as the only row of a matrix.
Kernel as_row(DType dtype) {
  Kernel kernel("as_row");
  const Dim count = kernel.dim("count");
  const Tensor X = kernel.in("X", dtype, {count});
  const Tensor Y = kernel.out("Y", dtype, {1, count});
  const auto [x] = kernel.grid(ceil_div(count, kNodeBlock));
  const Block block = count.block(x, kNodeBlock);
  store(Y(0, block), load(X(block)));
  return kernel;
}

// P[m] = the sum over the ranks l of a node of S[l * nodes + m].
Kernel sum_in_node(DType dtype, int nodes, int of_node) {
  Kernel kernel("sum_in_node");
  const Dim count = kernel.dim("count");
  const Tensor S = kernel.in("S", dtype, {nodes * of_node, count});
  const Tensor P = kernel.out("P", f32, {nodes, count});
  const auto [x, node] = kernel.grid(ceil_div(count, kNodeBlock), nodes);
  const Block block = count.block(x, kNodeBlock);
  Var sum{zeros({kNodeBlock})};
  for (Index number : range(of_node)) {
    sum = sum + load(S(number * nodes + node, block)).cast(f32);
  }
  store(P(node, block), sum);
  return kernel;
}

// Y = the sum of the rows of T.
Kernel sum_of_nodes(DType dtype, int nodes) {
  Kernel kernel("sum_of_nodes");
  const Dim count = kernel.dim("count");
  const Tensor T = kernel.in("T", f32, {nodes, count});
  const Tensor Y = kernel.out("Y", dtype, {count});
  const auto [x] = kernel.grid(ceil_div(count, kNodeBlock));
  const Block block = count.block(x, kNodeBlock);
  Var sum{zeros({kNodeBlock})};
  for (Index node : range(nodes)) sum = sum + load(T(node, block));
  store(Y(block), Tile(sum).cast(dtype));
  return kernel;
}

}  // namespace

Program all_gather_nodes(const NodeCollective& c, SourceLocation where) {
  const Caller caller{"all_gather_nodes", where};
  check_collective(c.vectors, caller);
  check_nodes(c, caller);
  NodeProgram made(c, caller);
  const Buffer X = made.program.in("X", made.dtype, {made.count});
  const Buffer Y = made.program.out("Y", made.dtype, made.vectors(made.ranks));
  const Buffer all = made.program.scratch("all", made.dtype, made.vectors(made.ranks));
  const Kernel row = as_row(made.dtype);
  made.program.on_each_rank([&](const Rank& rank) {
    const Stream stream = rank.stream();
    const RankPlace me = made.place(rank);
    const Part own = all.rows(rank.number(), 1);
    stream.launch(row, {X, own});
    made.exchange_between_nodes(rank, [&](int, int to) {
      return Sent{all.on(to).rows(rank.number(), 1), own};
    });
    made.exchange_in_node(rank, [&](int, int to, std::vector<Sent>& sent) {
      for (int node = 0; node < made.nodes; ++node) {
        const int from = made.rank(node, me.number);
        sent.push_back({all.on(to).rows(from, 1), all.rows(from, 1)});
      }
    });
    stream.copy(Y, all);
  });
  return made.program;
}

Program reduce_scatter_nodes(const NodeCollective& c, SourceLocation where) {
  const Caller caller{"reduce_scatter_nodes", where};
  check_collective(c.vectors, caller);
  check_nodes(c, caller);
  NodeProgram made(c, caller);
  const Buffer X = made.program.in("X", made.dtype, made.vectors(made.ranks));
  const Buffer Y = made.program.out("Y", made.dtype, {made.count});
  const Buffer slots = made.program.scratch("slots", made.dtype, made.vectors(made.ranks));
  const Buffer parts = made.program.scratch("parts", f32, made.vectors(made.nodes));
  const Buffer sums = made.program.scratch("sums", f32, made.vectors(made.nodes));
  const Kernel in_node = sum_in_node(made.dtype, made.nodes, made.of_node);
  const Kernel of_nodes = sum_of_nodes(made.dtype, made.nodes);
  made.program.on_each_rank([&](const Rank& rank) {
    const Stream stream = rank.stream();
    const RankPlace me = made.place(rank);
    // What this rank adds to the sums of the ranks of that number.
    const auto slot = [&](const Part& of, int node) {
      return of.rows(me.number * made.nodes + node, 1);
    };
    for (int node = 0; node < made.nodes; ++node) {
      stream.copy(slot(slots, node), X.rows(made.rank(node, me.number), 1));
    }
    made.exchange_in_node(rank, [&](int number, int to, std::vector<Sent>& sent) {
      for (int node = 0; node < made.nodes; ++node) {
        sent.push_back({slot(slots.on(to), node), X.rows(made.rank(node, number), 1)});
      }
    });
    stream.launch(in_node, {slots, parts});
    stream.copy(sums.rows(me.node, 1), parts.rows(me.node, 1));
    made.exchange_between_nodes(rank, [&](int node, int to) {
      return Sent{sums.on(to).rows(me.node, 1), parts.rows(node, 1)};
    });
    stream.launch(of_nodes, {sums, Y});
  });
  return made.program;
}

Program vector_all_to_all(const Collective& c, SourceLocation where) {
  const Caller caller{"vector_all_to_all", where};
  check_collective(c, caller);
  Kernel kernel(caller.function);
  const Dim count = kernel.dim("count");
  const Tensor X = kernel.symmetric("X", c.dtype, {c.ranks, count});
  const Tensor Y = kernel.out("Y", c.dtype, {c.ranks, count});
  const auto [x, from] = kernel.grid(ceil_div(count, kNodeBlock), c.ranks);
  const Block block = count.block(x, kNodeBlock);
  const Index me = kernel.rank();
  store(Y(from, block), load(X.at(from)(me, block)));
  Program program(caller.function, c.ranks, where);
  const Dim elements = program.dim("count");
  const Buffer from_all = program.in("X", c.dtype, {c.ranks, elements});
  const Buffer of_all = program.out("Y", c.dtype, {c.ranks, elements});
  program.on_each_rank([&](const Rank& rank) { rank.stream().launch(kernel, {from_all, of_all}); });
  return program;
}

Program vector_all_to_all_nodes(const NodeCollective& c, SourceLocation where) {
  const Caller caller{"vector_all_to_all_nodes", where};
  check_collective(c.vectors, caller);
  check_nodes(c, caller);
  NodeProgram made(c, caller);
  const Buffer X = made.program.in("X", made.dtype, made.vectors(made.ranks));
  const Buffer Y = made.program.out("Y", made.dtype, made.vectors(made.ranks));
  // What the ranks of the node have for those of this number, node by node; and what comes to it.
  const Buffer passing = made.program.scratch("passing", made.dtype, made.vectors(made.ranks));
  const Buffer all = made.program.scratch("all", made.dtype, made.vectors(made.ranks));
  made.program.on_each_rank([&](const Rank& rank) {
    const Stream stream = rank.stream();
    const RankPlace me = made.place(rank);
    const auto of_node = [&](const Part& part, int node) {
      return part.rows(node * made.of_node, made.of_node);
    };
    for (int node = 0; node < made.nodes; ++node) {
      const int to = made.rank(node, me.number);
      stream.copy(passing.rows(to, 1), X.rows(to, 1));
    }
    made.exchange_in_node(rank, [&](int number, int to, std::vector<Sent>& sent) {
      for (int node = 0; node < made.nodes; ++node) {
        sent.push_back({passing.on(to).rows(made.rank(node, me.number), 1),
                        X.rows(made.rank(node, number), 1)});
      }
    });
    stream.copy(of_node(all, me.node), of_node(passing, me.node));
    made.exchange_between_nodes(rank, [&](int node, int to) {
      return Sent{of_node(all.on(to), me.node), of_node(passing, node)};
    });
    stream.copy(Y, all);
  });
  return made.program;
}

}  // namespace tilewright::kernels
