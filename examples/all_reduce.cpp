#include "all_reduce.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tilewright/program.h"

namespace tilewright::examples {

// Runs it on simulated GPUs, several schedules of three runs each, and compares all bits.
bool check(int ranks, int rows) {
  Program program("all_reduce", ranks);
  const Buffer x = program.buffer("x", f32, {rows, kColumns});
  const Buffer y = program.buffer("y", f32, {rows, kColumns});
  const Buffer parts = program.buffer("parts", f32, {2 * ranks, rows, kColumns});
  const Kernel kernel = all_reduce();
  program.on_each_rank([&](const Rank& rank) { rank.stream().launch(kernel, {x, y, parts}); });
  ProgramMemory memory(program);
  SimulationOptions options;
  options.schedules = 4;
  options.runs = 3;
  const SimulationReport report = simulate(program, memory, options);
  if (!report.ok()) {
    std::printf("%s\n", report.faults.front().text.c_str());
    return false;
  }
  for (std::int64_t i = 0; i < std::int64_t{rows} * kColumns; ++i) {
    float sum = 0;
    for (int rank = 0; rank < ranks; ++rank) sum += static_cast<float>(memory.at(x, rank).flat(i));
    for (int rank = 0; rank < ranks; ++rank) {
      if (memory.at(y, rank).flat(i) == sum) continue;
      std::printf("rank %d, element %lld: %g, expected %g\n", rank, static_cast<long long>(i),
                  memory.at(y, rank).flat(i), sum);
      return false;
    }
  }
  std::printf("all_reduce: %d ranks, %d rows: no faults, and the same bits in all ranks\n", ranks,
              rows);
  return true;
}

}  // namespace tilewright::examples

// "--ranks N": that many alone.
int main(int argc, char** argv) {
  try {
    std::vector<int> counts = {1, 2, 4};
    if (argc == 3 && std::string(argv[1]) == "--ranks") {
      counts = {std::atoi(argv[2])};
    } else if (argc > 1) {
      std::fprintf(stderr, "usage: %s [--ranks N]\n", argv[0]);
      return 2;
    }
    bool ok = true;
    for (const int ranks : counts) ok = tilewright::examples::check(ranks, 100 * ranks) && ok;
    return ok ? 0 : 1;
  } catch (const tilewright::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
