#include "distributed/entrance.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "distributed/packing.h"
#include "support/diagnostic.h"

namespace tilewright::distributed {
namespace {

constexpr std::chrono::seconds kForAnIntroduction{5};
constexpr int kMillisecondsBetweenLooks = 200;
constexpr const char* kUnreachedFix =
    "look whether that process still runs, and whether a firewall is between the two";

Endpoint endpoint_of(const Member& member, const Member& for_whom) {
  if (member.machine == for_whom.machine) return member.local;
  if (const std::optional<Endpoint> remote = Endpoint::parse(member.remote)) return *remote;
  Diagnostic({}, fmt::format("{} is on another machine than {}, or in another network namespace, "
                             "and has no address",
                             name_of(member), name_of(for_whom)))
      .fix("GroupOptions::address in each rank: an address of its machine")
      .raise();
}

// None, and the first failure, where it is not reached.
FileDescriptor call(const Member& member, const Member& own, const std::string& token,
                    const Lobby& lobby, std::string& failure) {
  const Endpoint endpoint = endpoint_of(member, own);
  std::string why;
  // It listened before it came to the lobby: if nobody does now, it has ended.
  FileDescriptor connection = connect_to(endpoint, lobby.deadline, why);
  if (connection && !is_same_user(connection)) {
    why = "who listens there is another user";
    connection.reset();
  }
  if (!connection) {
    if (failure.empty()) {
      failure = fmt::format("{} does not reach {} at {}: {}", name_of(own), name_of(member),
                            endpoint.text(), why);
    }
    return connection;
  }
  send_frame(connection, Frame::Kind::hello, pack({token, std::to_string(own.rank)}),
             lobby.deadline);
  return connection;
}

// Of a rank on this machine: that of another one may be out of reach for other reasons.
bool has_ended(const Member& member, const Member& own) {
  const Endpoint endpoint = endpoint_of(member, own);
  std::string why;
  return endpoint.is_local && !connect_to(endpoint, Clock::now(), why);
}

const Member* first_missing(const std::vector<Member>& members, int own,
                            const std::vector<FileDescriptor>& connections) {
  const auto missing = std::find_if(members.begin() + own + 1, members.end(), [&](const Member& m) {
    return !connections[static_cast<std::size_t>(m.rank)];
  });
  return missing == members.end() ? nullptr : &*missing;
}

[[noreturn]] void raise_not_called(const Member& missing, const Member& own, bool has_ended) {
  Diagnostic(
      {},
      fmt::format("{} {} {}", name_of(missing),
                  has_ended ? "ended before it had called" : "did not call in time", name_of(own)),
      ErrorKind::unavailable)
      .fix(kUnreachedFix)
      .raise();
}

}  // namespace

Entrance::Entrance(Member& own, const std::string& address) {
  local_ = listen_at(own.local);
  if (address.empty()) return;
  Endpoint remote{false, address, 0};
  remote_ = listen_at(remote);
  own.remote = remote.text();
}

void Entrance::admit(const FileDescriptor& listener, const Meeting& meeting, int own,
                     std::vector<FileDescriptor>& connections) {
  if (!listener) return;
  while (FileDescriptor connection = accept_one(listener)) {
    seat(std::move(connection), meeting, own, connections);
  }
}

void Entrance::seat(FileDescriptor connection, const Meeting& meeting, int own,
                    std::vector<FileDescriptor>& connections) {
  if (!is_same_user(connection)) return;
  std::string why;
  const auto hello = receive_frame(connection, Clock::now() + kForAnIntroduction, why);
  const auto fields = hello ? unpack(hello->payload) : std::nullopt;
  if (!fields || fields->size() != 2 || fields->front() != meeting.token) return;
  const int rank = parse_int(fields->back()).value_or(-1);
  if (rank <= own || rank >= static_cast<int>(connections.size())) return;
  connections[static_cast<std::size_t>(rank)] = std::move(connection);
}

std::vector<FileDescriptor> Entrance::connect(const Meeting& meeting, int own,
                                              const Lobby& lobby) const {
  const std::vector<Member>& members = meeting.members;
  const Member& self = members[static_cast<std::size_t>(own)];
  // First of all, so that all ranks say that there is no way, and none waits.
  for (const Member& member : members) {
    for (const Member& other : members) endpoint_of(member, other);
  }
  std::vector<FileDescriptor> connections(members.size());
  // All of them, before one that has ended is named: else those of the others that wait for this
  // rank would name it.
  std::string failure;
  for (int rank = 0; rank < own; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    connections[at] = call(members[at], self, meeting.token, lobby, failure);
  }
  if (!failure.empty()) {
    Diagnostic({}, failure, ErrorKind::unavailable).fix(kUnreachedFix).raise();
  }
  const auto admit_all = [&] {
    admit(local_, meeting, own, connections);
    admit(remote_, meeting, own, connections);
  };
  while (const Member* const missing = first_missing(members, own, connections)) {
    pollfd wanted[] = {{local_.get(), POLLIN, 0}, {remote_.get(), POLLIN, 0}};
    const int patience = std::min(kMillisecondsBetweenLooks, milliseconds_until(lobby.deadline));
    const bool is_gone = poll(wanted, 2, patience) == 0 && has_ended(*missing, self);
    // It may have called before it closed its entrance.
    admit_all();
    if (connections[static_cast<std::size_t>(missing->rank)]) continue;
    if (is_gone || Clock::now() >= lobby.deadline) raise_not_called(*missing, self, is_gone);
  }
  return connections;
}

}  // namespace tilewright::distributed
