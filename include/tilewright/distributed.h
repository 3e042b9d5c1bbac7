#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/error.h"

// Processes that work together, one for each rank: how they find each other, wait for each other
// and learn that one of them has died. Nothing here needs a GPU.
//
// What fails raises Error(usage) for what the caller said, naming the rank and the value, and
// Error(unavailable) for ranks that did not come, have died or are silent, naming them.
namespace tilewright {

// What a launcher has told this process by environment variables.
struct RankEnvironment {
  std::string launcher;  // "torchrun", "mpirun" (Open MPI), "PMI" (MPICH, Slurm)
  int rank = 0, size = 1;
  int local_rank = 0, local_size = 1;  // among the ranks of this machine: the number of its GPU
  std::string address;                 // of rank 0's machine, from torchrun; else empty
  int port = 0;                        // of torchrun's own store there; else 0
  std::string job;                     // the same in all ranks, another for another job
};

// Read from, in this order,
//   torchrun: RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT,
//     TORCHELASTIC_RUN_ID, TORCHELASTIC_RESTART_COUNT;
//   Open MPI's mpirun: OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK, _LOCAL_SIZE, and
//     PMIX_NAMESPACE or OMPI_MCA_ess_base_jobid;
//   PMI: PMI_RANK, PMI_SIZE, MPI_LOCALRANKID, MPI_LOCALNRANKS, and PMI_JOBID.
// Without the numbers of the machine all ranks are taken to be on one.
// None of these: nothing. Raises Error(usage) for a variable that is missing beside the others, is
// no number, or does not fit them.
std::optional<RankEnvironment> rank_environment();

// A store that all ranks reach, such as PyTorch's TCPStore. `wait` returns once the key is there,
// and raises, as `get` does, where it does not come in time.
struct KeyValueStore {
  std::function<void(const std::string& key, const std::string& value)> set;
  std::function<std::string(const std::string& key)> get;  // of a key that is there
  std::function<void(const std::string& key, std::chrono::milliseconds patience)> wait;
};

// How the ranks of a group find rank 0, to which each introduces itself. They show a token: who has
// another one is turned away. On one machine they talk through sockets in Linux's abstract
// namespace, which leave nothing behind however a process ends, and only with processes of the same
// user.
class Rendezvous {
 public:
  // Rank 0 writes where it listens, and a token that it draws, into a new file that its user alone
  // can read, and removes the file when all have come. What a rank 0 that was killed has left is
  // replaced.
  static Rendezvous file(std::string path);
  // Rank 0 listens at this address alone, and nowhere else. Port 1 to 65535; the token, at least
  // one character, keeps jobs apart and is sent as it is.
  static Rendezvous socket(std::string address, int port, std::string token);
  // Rank 0 sets this key. The token is drawn.
  static Rendezvous store(KeyValueStore store, std::string key = "tilewright");
  // By the MPI that the process has loaded, or else libmpi, which is then initialised. It also says
  // who is which rank; another group needs another of these. MPI itself knows no time-out.
  // Error(unavailable) where there is none.
  static Rendezvous mpi();
  // By rank_environment(): the ranks of one machine by the name of the job; those of several by a
  // socket at MASTER_ADDR and the port TILEWRIGHT_PORT (MASTER_PORT + 1 if that is not set), with
  // TILEWRIGHT_TOKEN, or else the job's name, as token. Error(usage) without a launcher, and where
  // there are several machines and no address.
  static Rendezvous environment();

  class Way;  // of Tilewright's own
  explicit Rendezvous(std::shared_ptr<Way> way) : way_(std::move(way)) {}
  Way& way() const { return *way_; }

 private:
  std::shared_ptr<Way> way_;
};

struct GroupOptions {
  // Both, or neither: then the launcher or MPI says so. 0 <= rank < size <= 1024.
  int rank = -1, size = -1;
  // Ranks of one machine that name different nodes reach none of each other's memory, as if they
  // were on different machines. Empty: what TILEWRIGHT_NODE says, or else one node a machine.
  std::string node;
  // One of this machine's addresses, by which ranks on other machines reach this one. Empty: all
  // ranks are on this machine, and no network is used but for Rendezvous::socket.
  std::string address;
  // Until all have come, and of each operation of the group.
  std::chrono::milliseconds patience{60'000};
  // A rank from which nothing has come for so long has died, or its machine has. A rank whose
  // process ends on the same machine is known at once. At least 100 ms.
  std::chrono::milliseconds silence{10'000};
};

// A rank that has died, or is taken for dead.
struct LostRank {
  int rank = 0;
  std::string why;  // "its process 4711 has ended"
};

// The processes of one job. Copies stand for the same membership, which ends with the last of them:
// in any order among the ranks, and the others are told. A thread watches the other ranks. The
// operations are for one thread at a time, and all ranks do the same ones in the same order: where
// one does another, both are named. Behind an error they raise that error again.
class Group {
 public:
  // Returns when all ranks have come.
  explicit Group(const Rendezvous& rendezvous, const GroupOptions& options = {});

  int rank() const;
  int size() const;
  std::chrono::milliseconds patience() const;
  // The numbers of the ranks on this machine, in order.
  std::vector<int> local_ranks() const;
  // Of each rank its node, whose ranks reach each other's memory; counted from 0 in the order of
  // their first ranks.
  const std::vector<int>& nodes() const;

  // Returns when all ranks have come to the barrier of this name.
  void barrier(std::string_view name = "barrier") const;
  // What each rank has given, in their order; at most 64 MiB each.
  std::vector<std::string> all_gather(std::string_view own, std::string_view name) const;

  // Those known by now, in the order in which they were missed. Safe from any thread.
  std::vector<LostRank> lost() const;
  // Raises Error(unavailable), which names them and what is waited for, if there are any or one has
  // left. Safe from any thread.
  void require_all(std::string_view waiting_for) const;

  class Members;  // of Tilewright's own
  const std::shared_ptr<Members>& members() const { return members_; }

 private:
  std::shared_ptr<Members> members_;
};

// Memory that every rank has, of the same size, and that all ranks of one node reach: each maps
// what the others have made, so that every rank's is there by its address. It is handed over as
// file descriptors, and has no name by which it could stay behind: it lives while somebody maps it.
// Where a GPU of the group cannot do that, as in some containers, it is handed over as IPC handles.
// So it is where TILEWRIGHT_GPU_SHARING is "ipc" in one rank. A rank's memory is then freed when
// the others, as far as they live, have given it up. Ranks may end in any order.
class SymmetricArena {
 public:
  enum class Memory { host, gpu };

  // By all ranks, with the same bytes, more than 0, and the same name. The memory is shared memory
  // of the host, of zeros; or that of the GPU of this number, of anything, which the GPUs of the
  // other ranks of the node reach too. Raises Error(usage) for sizes that differ;
  // Error(unavailable), in all ranks, where one has no room, or does not reach another one's.
  SymmetricArena(const Group& group, std::size_t bytes, std::string name, Memory memory,
                 int device = 0);
  // No other rank is waited for. Work on a GPU that uses it has ended by then.
  ~SymmetricArena();
  SymmetricArena(SymmetricArena&&) noexcept;
  SymmetricArena& operator=(SymmetricArena&&) noexcept;

  std::size_t size() const;
  const Group& group() const;
  // The first byte of that rank's, in this process. Error(usage) for no such rank, and for one of
  // another node.
  std::byte* at(int rank) const;
  // By all ranks, in the same order: the offset, the same in all of them, of so many bytes that
  // nobody has yet, at a multiple of the alignment, a power of two. Nothing is given back. Raises
  // Error(usage) where it is full, and where ranks ask for different things.
  std::size_t allocate(std::size_t bytes, std::string_view name, std::size_t alignment = 256);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tilewright
