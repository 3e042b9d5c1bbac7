#include <cstdio>
#include <cstdlib>
#include <string>

#include "tilewright/distributed.h"

// Processes that share memory of the host, without a GPU: each writes its number into the memory of
// all others, and adds up what it was given. Started by torchrun or mpirun, or by hand, once for
// each rank; alone it is the only one:
//
//   for rank in 0 1 2; do build/release/examples/example_processes /tmp/job $rank 3 & done; wait

using namespace tilewright;

namespace {

Group join(int argc, char** argv) {
  if (argc == 4) {
    GroupOptions options;
    options.rank = std::atoi(argv[2]);
    options.size = std::atoi(argv[3]);
    return Group(Rendezvous::file(argv[1]), options);
  }
  if (rank_environment()) return Group(Rendezvous::environment());
  GroupOptions alone;
  alone.rank = 0;
  alone.size = 1;
  return Group(Rendezvous::file("unused"), alone);
}

int sum_of_numbers(const Group& group) {
  const std::size_t bytes = sizeof(int) * static_cast<std::size_t>(group.size());
  SymmetricArena arena(group, 4096, "arena", SymmetricArena::Memory::host);
  const std::size_t numbers = arena.allocate(bytes, "numbers");
  for (int rank = 0; rank < group.size(); ++rank) {
    reinterpret_cast<int*>(arena.at(rank) + numbers)[group.rank()] = group.rank() + 1;
  }
  group.barrier("all have written");
  int sum = 0;
  for (int from = 0; from < group.size(); ++from) {
    sum += reinterpret_cast<const int*>(arena.at(group.rank()) + numbers)[from];
  }
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 1 && argc != 4) {
    std::fprintf(stderr, "usage: %s [FILE RANK SIZE]\n", argv[0]);
    return 2;
  }
  try {
    const Group group = join(argc, argv);
    const int sum = sum_of_numbers(group), wanted = group.size() * (group.size() + 1) / 2;
    std::printf("rank %d of %d: the sum is %d\n", group.rank(), group.size(), sum);
    return sum == wanted ? 0 : 1;
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.kind());
  }
}
