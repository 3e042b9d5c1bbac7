#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "distributed/socket.h"
#include "distributed/way.h"
#include "tilewright/version.h"

// Where the ranks of a group introduce themselves to rank 0, and learn who the others are.
namespace tilewright::distributed {

// What all ranks have: the release, and the number of what they send each other between releases.
inline constexpr const char* kBuild = TILEWRIGHT_VERSION ", frames 3";

struct Member {
  int rank = 0;
  int process = 0;
  std::string host;     // its name, for a person
  std::string machine;  // the same for processes that reach each other's local sockets
  std::string node;     // of those of one machine: the same for those that share memory
  Endpoint local;       // where it listens for the others of its machine
  std::string remote;   // for the others, an endpoint's text; empty: nowhere
};

// "process 4711 on node3"; "rank 2 (process 4711 on node3)".
std::string process_text(const Member& member);
std::string name_of(const Member& member);

// This process, still without endpoints, of the node of that name.
Member introduce(int rank, std::string node = {});

struct Lobby {
  int size = 1;
  std::chrono::milliseconds patience{};
  Clock::time_point deadline;
};

struct Meeting {
  std::vector<Member> members;  // in the order of their ranks
  std::string token;            // which they show each other
};

// Returns once all have come. `own` is this process's; rank 0 holds the lobby where the way says,
// or at the address `address`, or else on this machine. Raises a usage error for a rank that does
// not fit the others, in all that are concerned, and Error(unavailable) that names the ranks that
// have not come before the deadline.
Meeting meet(Rendezvous::Way& way, const Member& own, const std::string& address,
             const Lobby& lobby);

}  // namespace tilewright::distributed
