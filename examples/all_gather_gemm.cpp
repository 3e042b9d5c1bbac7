// Y = relu(X) W^T on several ranks, each of which has a part of X's rows and its own columns of W:
// the host's side. The copy engines bring the other ranks' rows while the products of those that
// are here already are computed.

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "example.h"
#include "tilewright/distributed.h"
#include "tilewright/program.h"

using namespace tilewright;

namespace {

Kernel relu() {
  Kernel kernel("relu");
  const Dim m = kernel.dim("m"), k = kernel.dim("k");
  const Tensor X = kernel.in("X", bf16, {m, k}), Y = kernel.out("Y", bf16, {m, k});
  const auto [x] = kernel.grid(ceil_div(m, 16));
  const Block rows = m.block(x, 16);
  for (Block cols : blocks(k, 64)) {
    store(Y(rows, cols), max(load(X(rows, cols)).cast(f32), 0).cast(bf16));
  }
  return kernel;
}

Kernel multiply() {
  Kernel kernel("multiply");
  const Dim m = kernel.dim("m"), n = kernel.dim("n", multiple_of(8));
  const Dim k = kernel.dim("k", multiple_of(8));
  const Tensor A = kernel.in("A", bf16, {m, k}), B = kernel.in("B", bf16, {n, k});
  const Tensor C = kernel.out("C", bf16, {m, n});
  const auto [x, y] = kernel.grid(ceil_div(n, 128), ceil_div(m, 128));
  const Block rows = m.block(y, 128), cols = n.block(x, 128);
  Var acc{zeros({rows, cols})};
  for (Block depth : blocks(k, 64)) acc = acc + dot(load(A(rows, depth)), load(B(cols, depth)).T());
  store(C(rows, cols), acc);
  return kernel;
}

struct Layer {
  int ranks = 3;
  std::int64_t m = 72, n = 136, k = 64;  // of one rank
};

struct LayerProgram {
  Program program;
  Buffer X, W, Y;
};

LayerProgram all_gather_gemm(const Layer& layer) {
  Program program("all_gather_gemm", layer.ranks);
  const std::int64_t m = layer.m, k = layer.k, all_m = layer.ranks * m;
  const Buffer X = program.buffer("X", bf16, {m, k}), W = program.buffer("W", bf16, {layer.n, k});
  const Buffer rows = program.buffer("rows", bf16, {m, k});  // relu(X), which the others pull
  const Buffer gathered = program.buffer("gathered", bf16, {all_m, k});
  const Buffer Y = program.buffer("Y", bf16, {all_m, layer.n});
  // Words in each rank, one for each other rank, that count up with the runs.
  const Buffer made = program.signals("made", layer.ranks);
  const Buffer taken = program.signals("taken", layer.ranks);

  program.on_each_rank([&](const Rank& rank) {
    const Stream math = rank.stream("math"), pull = rank.stream("pull");
    const int me = rank.number();
    for (int d = 1; d < rank.count(); ++d) {
      math.wait(taken[rank.next(d)], program.run() - 1);  // what the run before has made
    }
    math.launch(relu(), {X, rows});
    for (int d = 1; d < rank.count(); ++d) {
      math.write(made.on(rank.next(d))[me], program.run());
    }
    math.launch(multiply(), {rows, W, Y.rows(me * m, m)});
    for (int d = 1; d < rank.count(); ++d) {
      const int peer = rank.next(d);
      pull.wait(made[peer], program.run());
      pull.copy(gathered.rows(peer * m, m), rows.on(peer));
      pull.write(taken.on(peer)[me], program.run());
      math.wait(pull.record());
      math.launch(multiply(), {gathered.rows(peer * m, m), W, Y.rows(peer * m, m)});
    }
  });
  return {program, X, W, Y};
}

std::vector<double> reference(const Layer& layer, LayerProgram& made, ProgramMemory& memory,
                              int rank) {
  const HostTensor& W = memory.at(made.W, rank);
  std::vector<double> Y;
  for (std::int64_t i = 0; i < layer.ranks * layer.m; ++i) {
    const HostTensor& X = memory.at(made.X, static_cast<int>(i / layer.m));
    for (std::int64_t j = 0; j < layer.n; ++j) {
      double sum = 0;
      for (std::int64_t d = 0; d < layer.k; ++d) {
        sum += std::max(X.at({i % layer.m, d}), 0.0) * W.at({j, d});
      }
      Y.push_back(sum);
    }
  }
  return Y;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    bool on_gpus = false, in_processes = false, usage = argc % 2 == 0;
    std::optional<int> ranks;
    for (int i = 1; i + 1 < argc; i += 2) {
      const std::string option = argv[i], value = argv[i + 1];
      if (option == "--ranks") {
        ranks = std::atoi(value.c_str());
      } else if (option == "--target" && value == "cuda") {
        on_gpus = true;
      } else if (option == "--target" && value == "processes") {
        on_gpus = in_processes = true;
      } else {
        usage = true;
      }
    }
    if (usage) {
      std::fprintf(stderr, "usage: %s [--ranks N] [--target cuda|processes]\n", argv[0]);
      return 2;
    }
    Layer layer;
    if (on_gpus) layer.ranks = 2;
    if (ranks) layer.ranks = *ranks;
    // Started by torchrun or mpirun, once for each rank.
    std::optional<Group> group;
    if (in_processes) group.emplace(Rendezvous::environment());
    if (group) layer.ranks = group->size();
    LayerProgram made = all_gather_gemm(layer);
    ProgramMemory memory(made.program);
    if (on_gpus) {
      CompileOptions options;
      if (group) options.device = rank_environment()->local_rank;
      ProgramExecutable executable =
          group ? compile(made.program, "cuda", *group, options) : compile(made.program, "cuda");
      executable.load(memory);
      executable.run(10);
      executable.store(memory);
    } else {
      SimulationOptions options;
      options.schedules = 4;
      const SimulationReport report = simulate(made.program, memory, options);
      if (!report.ok()) {
        std::printf("%s\nreplay with seed %llu\n", report.faults.front().text.c_str(),
                    static_cast<unsigned long long>(report.seed));
        return 1;
      }
    }
    double worst = 0;
    for (int rank = 0; rank < layer.ranks; ++rank) {
      if (group && rank != group->rank()) continue;
      worst = std::max(worst, examples::relative_error(memory.at(made.Y, rank),
                                                       reference(layer, made, memory, rank)));
    }
    std::printf("all_gather_gemm: %d ranks, %s; relative RMS error %.2e against float64\n",
                layer.ranks,
                in_processes ? "each a process"
                : on_gpus    ? "on GPUs"
                             : "simulated without a fault",
                worst);
    return worst < 4e-3 ? 0 : 1;  // bf16 rounds the result by 2^-9 at most
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.kind());
  }
}
