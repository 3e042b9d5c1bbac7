#include "tilewright/kernels/collectives.h"
#include "tilewright/function_ref.h"

#include <string>
#include <vector>

#include "kernels/collectives_sm90.h"
#include "kernels/nodes_check.h"
#include "kernels/rank_words.h"

namespace tilewright::kernels {

void check_root(const Collective& c, int root, const Caller& caller) {
  if (root >= 0 && root < c.ranks) return;
  caller.refuse("root " + std::to_string(root) + " of " + std::to_string(c.ranks) + " ranks",
                "ranks count from 0");
}

void check_collective(const Collective& c, const Caller& caller) {
  if (c.ranks < 2 || c.ranks > 8) {
    caller.refuse(std::to_string(c.ranks) + " ranks", "there are 2 to 8");
  }
  if (c.dtype == bf16 || c.dtype == f16 || c.dtype == f32) return;
  caller.refuse("vectors of " + std::string(name_of(c.dtype)), "take bf16, f16 or f32");
}

namespace {

constexpr int kVectorBlock = 1024;  // of the tile level

// What a caller passes.
struct VectorProgram {
  VectorProgram(const Collective& c, bool many_x, bool many_y, DimFacts facts, const Caller& caller)
      : program(caller.function, c.ranks, caller.where),
        count(program.dim("count", facts)),
        tensors{program.in("X", c.dtype, shape(c, many_x)),
                program.out("Y", c.dtype, shape(c, many_y))} {}
  // Slots for parts of so many elements.
  void add_slots(const Collective& c, const Dim& part) {
    tensors.push_back(program.scratch("slots", c.dtype, {2, c.ranks, part}));
  }
  void add_words(const char* name, const Dim& count) {
    tensors.push_back(program.signals(name, count));
  }
  Program launching(const Kernel& kernel) const {
    program.on_each_rank([&](const Rank& rank) { rank.stream().launch(kernel, tensors); });
    return program;
  }
  Program program;
  Dim count;
  std::vector<Part> tensors;

 private:
  std::vector<Dim> shape(const Collective& c, bool many) const {
    return many ? std::vector<Dim>{c.ranks, count} : std::vector<Dim>{count};
  }
};

DimFacts whole_vectors(const Collective& c) { return multiple_of(vector_unit(c)); }

// Y {count} of X, which `value` makes of a block.
Program pulled_vector(const Collective& c, bool many_x, const Caller& caller,
                      FunctionRef<Tile(Kernel&, const Tensor& X, const Block&)> value) {
  Kernel kernel(caller.function);
  const Dim count = kernel.dim("count");
  const Tensor X = kernel.symmetric(
      "X", c.dtype, many_x ? std::vector<Dim>{c.ranks, count} : std::vector<Dim>{count});
  const Tensor Y = kernel.out("Y", c.dtype, {count});
  const auto [x] = kernel.grid(ceil_div(count, kVectorBlock));
  const Block block = count.block(x, kVectorBlock);
  store(Y(block), value(kernel, X, block));
  return VectorProgram(c, many_x, false, {}, caller).launching(kernel);
}

Tile sum_over_ranks(const Collective& c, FunctionRef<TensorView(const Index& rank)> of) {
  Var sum{zeros({kVectorBlock})};
  for (Index rank : range(c.ranks)) sum = sum + load(of(rank)).cast(f32);
  return Tile(sum).cast(c.dtype);
}

}  // namespace

Program all_gather(const Collective& c, SourceLocation where) {
  const Caller caller{"all_gather", where};
  check_collective(c, caller);
  Kernel kernel(caller.function);
  const Dim count = kernel.dim("count");
  const Tensor X = kernel.symmetric("X", c.dtype, {count});
  const Tensor Y = kernel.out("Y", c.dtype, {c.ranks, count});
  const auto [x, from] = kernel.grid(ceil_div(count, kVectorBlock), c.ranks);
  const Block block = count.block(x, kVectorBlock);
  store(Y(from, block), load(X.at(from)(block)));
  return VectorProgram(c, false, true, {}, caller).launching(kernel);
}

Program reduce_scatter(const Collective& c, SourceLocation where) {
  const Caller caller{"reduce_scatter", where};
  check_collective(c, caller);
  return pulled_vector(c, true, caller, [&](Kernel& kernel, const Tensor& X, const Block& block) {
    const Index me = kernel.rank();
    return sum_over_ranks(c, [&](const Index& rank) { return X.at(rank)(me, block); });
  });
}

Program all_reduce(const Collective& c, SourceLocation where) {
  const Caller caller{"all_reduce", where};
  check_collective(c, caller);
  return pulled_vector(c, false, caller, [&](Kernel&, const Tensor& X, const Block& block) {
    return sum_over_ranks(c, [&](const Index& rank) { return X.at(rank)(block); });
  });
}

Program broadcast(const Collective& c, int root, SourceLocation where) {
  const Caller caller{"broadcast", where};
  check_collective(c, caller);
  check_root(c, root, caller);
  return pulled_vector(c, false, caller, [&](Kernel&, const Tensor& X, const Block& block) {
    return load(X.at(root)(block));
  });
}

Program all_gather_sm90(const Collective& c, SourceLocation where) {
  const Caller caller{"all_gather_sm90", where};
  check_collective(c, caller);
  VectorProgram made(c, false, true, whole_vectors(c), caller);
  made.add_words("begun", RanksBegin::words(c.ranks));
  made.add_words("arrived", RanksArrive::words(c.ranks));
  return made.launching(all_gather_kernel_sm90(c, caller));
}

Program reduce_scatter_sm90(const Collective& c, SourceLocation where) {
  const Caller caller{"reduce_scatter_sm90", where};
  check_collective(c, caller);
  VectorProgram made(c, true, false, whole_vectors(c), caller);
  made.add_slots(c, made.count);
  made.add_words("arrived", RanksArrive::words(c.ranks));
  return made.launching(reduce_scatter_kernel_sm90(c, caller));
}

Program all_reduce_sm90(const Collective& c, Shots shots, SourceLocation where) {
  const Caller caller{"all_reduce_sm90", where};
  check_collective(c, caller);
  const bool in_parts = shots == Shots::two;
  VectorProgram made(c, false, false, whole_vectors(c), caller);
  made.add_slots(c, in_parts ? part_of_vector(c, made.count, c.ranks) : made.count);
  made.add_words("arrived", RanksArrive::words(c.ranks));
  if (in_parts) made.add_words("summed", RanksArrive::words(c.ranks));
  return made.launching(all_reduce_kernel_sm90(c, shots, caller));
}

Program broadcast_sm90(const Collective& c, int root, Shots shots, SourceLocation where) {
  const Caller caller{"broadcast_sm90", where};
  check_collective(c, caller);
  check_root(c, root, caller);
  VectorProgram made(c, false, false, whole_vectors(c), caller);
  made.add_words("begun", RanksBegin::words(c.ranks));
  made.add_words("arrived", RanksArrive::words(c.ranks));
  if (shots == Shots::two) made.add_words("handed_on", RanksArrive::words(c.ranks));
  return made.launching(broadcast_kernel_sm90(c, root, shots, caller));
}

}  // namespace tilewright::kernels
