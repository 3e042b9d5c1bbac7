#include "distributed/links.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <utility>

#include "distributed/packing.h"
#include "support/diagnostic.h"

namespace tilewright::distributed {
namespace {

// So that a rank is not taken for silent because one of its heartbeats came late.
constexpr int kHeartbeats = 4;

FileDescriptor watch_process(const FileDescriptor& connection) {
  const std::optional<PeerProcess> peer = peer_process(connection);
  if (!peer || peer->process <= 0) return {};
  return FileDescriptor(static_cast<int>(syscall(SYS_pidfd_open, peer->process, 0)));
}

bool is_ready(const FileDescriptor& descriptor) {
  pollfd wanted{descriptor.get(), POLLIN, 0};
  return descriptor && poll(&wanted, 1, 0) > 0;
}

bool has_room(const FileDescriptor& connection) {
  pollfd wanted{connection.get(), POLLOUT, 0};
  return poll(&wanted, 1, 0) > 0;
}

}  // namespace

Links::Links(std::vector<Member> members, int own, std::vector<FileDescriptor> connections,
             std::chrono::milliseconds silence)
    : members_(std::move(members)),
      own_(own),
      silence_(silence),
      process_(getpid()),
      links_(members_.size()),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  for (std::size_t rank = 0; rank < links_.size(); ++rank) {
    Link& link = links_[rank];
    link.connection = std::move(connections[rank]);
    link.is_open = static_cast<bool>(link.connection);
    if (link.is_open) link.process = watch_process(link.connection);
    link.heard = Clock::now();
  }
  // Signals are for the program's own threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  watcher_ = std::thread([this] { watch(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Links::require_own_process(std::string_view name) const {
  if (getpid() == process_) return;
  Diagnostic({}, fmt::format("process {} comes to {}, and it was forked from process {}, which is "
                             "rank {}",
                             getpid(), name, process_, own_))
      .fix("use the group in the process that has joined it; a child joins one of its own")
      .raise();
}

Links::~Links() {
  if (getpid() != process_) {
    // There is no such thread here, and the connections are shared with the parent.
    new std::thread(std::move(watcher_));
    return;
  }
  is_ending_ = true;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof one);
  watcher_.join();
  std::vector<std::string> fields;
  for (const LostRank& lost : lost_) {
    fields.push_back(std::to_string(lost.rank));
    fields.push_back(lost.why);
  }
  for (Link& link : links_) {
    if (link.is_open) send_frame(link.connection, Frame::Kind::leave, pack(fields), Clock::now());
  }
}

void Links::send(int to, std::string_view payload, Clock::time_point deadline, int attached) {
  Link& link = links_[static_cast<std::size_t>(to)];
  const std::lock_guard lock(link.sending);
  send_frame(link.connection, Frame::Kind::message, payload, deadline, attached);
}

std::optional<Frame> Links::receive(int from, std::string_view waiting_for,
                                    Clock::time_point deadline) {
  Link& link = links_[static_cast<std::size_t>(from)];
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, deadline,
                      [&] { return !link.messages.empty() || !lost_.empty() || link.has_left; });
  if (!link.messages.empty()) {
    Frame frame = std::move(link.messages.front());
    link.messages.pop_front();
    return frame;
  }
  raise_lost(waiting_for);
  if (link.has_left) {
    Diagnostic({},
               fmt::format("{} has left the group, and rank {} waits for it in {}",
                           name_of(members_[static_cast<std::size_t>(from)]), own_, waiting_for),
               ErrorKind::unavailable)
        .fix("look for the error of that rank, or do the same operations in all ranks")
        .raise();
  }
  return std::nullopt;
}

bool Links::has_come(int from) const {
  const std::lock_guard lock(mutex_);
  return !links_[static_cast<std::size_t>(from)].messages.empty();
}

std::vector<LostRank> Links::lost() const {
  const std::lock_guard lock(mutex_);
  return lost_;
}

void Links::require_all(std::string_view waiting_for) const {
  const std::lock_guard lock(mutex_);
  raise_lost(waiting_for);
  for (const Member& member : members_) {
    if (!links_[static_cast<std::size_t>(member.rank)].has_left) continue;
    Diagnostic({},
               fmt::format("{} has left the group, and rank {} waits for {}", name_of(member), own_,
                           waiting_for),
               ErrorKind::unavailable)
        .fix("look for the error of that rank")
        .raise();
  }
}

void Links::raise_lost(std::string_view waiting_for) const {
  if (lost_.empty()) return;
  std::vector<std::string> texts;
  for (const LostRank& lost : lost_) {
    texts.push_back(
        fmt::format("{}: {}", name_of(members_[static_cast<std::size_t>(lost.rank)]), lost.why));
  }
  Diagnostic(
      {},
      fmt::format("lost {}; rank {} waits for {}", fmt::join(texts, ", and "), own_, waiting_for),
      ErrorKind::unavailable)
      .fix("look for the error of the rank that is named first, and start the job again")
      .raise();
}

void Links::watch() {
  const auto interval = silence_ / kHeartbeats;
  Clock::time_point next = Clock::now();
  while (!is_ending_) {
    wait_for_something();
    read_all();
    const Clock::time_point now = Clock::now();
    if (now < next) continue;
    // A thread that did not run itself has heard nobody, and knows nothing.
    const bool was_stopped = now > next + interval;
    next = now + interval;
    send_heartbeats();
    if (was_stopped) {
      for (Link& link : links_) link.heard = now;
    } else {
      notice_silence(now);
    }
  }
}

void Links::wait_for_something() const {
  std::vector<pollfd> wanted{{wake_.get(), POLLIN, 0}};
  for (const Link& link : links_) {
    if (!link.is_open) continue;
    wanted.push_back({link.connection.get(), POLLIN, 0});
    if (link.process) wanted.push_back({link.process.get(), POLLIN, 0});
  }
  poll(wanted.data(), wanted.size(), static_cast<int>((silence_ / kHeartbeats).count()));
}

void Links::read_all() {
  for (const Member& member : members_) {
    Link& link = links_[static_cast<std::size_t>(member.rank)];
    if (link.is_open) read(member.rank, link);
  }
}

void Links::read(int rank, Link& link) {
  // Asked first: what it has sent before its end is read below.
  const bool has_ended = is_ready(link.process);
  Frame frame;
  for (;;) {
    const FrameReader::Result result = link.reader.read(link.connection, frame);
    if (result == FrameReader::Result::nothing) break;
    if (result == FrameReader::Result::ended) {
      const int error = link.reader.error();
      return lose(rank, error == 0 ? "its connection has ended, as when its process does"
                                   : fmt::format("its connection: {}", std::strerror(error)));
    }
    if (result == FrameReader::Result::foreign) return lose(rank, "it sends what is no message");
    link.heard = Clock::now();
    if (frame.kind == Frame::Kind::leave) return note_leaving(link, frame.payload);
    if (frame.kind != Frame::Kind::message) continue;
    const std::lock_guard lock(mutex_);
    link.messages.push_back(std::move(frame));
    changed_.notify_all();
  }
  if (has_ended) lose(rank, "its process has ended");
}

void Links::note_leaving(Link& link, std::string_view payload) {
  const std::vector<std::string> fields = unpack(payload).value_or(std::vector<std::string>());
  for (std::size_t i = 0; i + 1 < fields.size(); i += 2) {
    const int gone = parse_int(fields[i]).value_or(-1);
    if (gone < 0 || gone >= static_cast<int>(links_.size())) continue;
    lose(gone, fields[i + 1]);
  }
  const std::lock_guard lock(mutex_);
  link.is_open = false;
  link.has_left = true;
  changed_.notify_all();
}

void Links::lose(int rank, const std::string& why) {
  Link& link = links_[static_cast<std::size_t>(rank)];
  const std::lock_guard lock(mutex_);
  // Somebody else may have known it before. Of itself a rank has no connection.
  if (!link.is_open) return;
  link.is_open = false;
  lost_.push_back({rank, why});
  changed_.notify_all();
}

void Links::send_heartbeats() {
  for (Link& link : links_) {
    // Who is sending is heard without one. A frame goes out whole, or not at all.
    const std::unique_lock lock(link.sending, std::try_to_lock);
    if (link.is_open && lock && has_room(link.connection)) {
      send_frame(link.connection, Frame::Kind::alive, {}, Clock::now());
    }
  }
}

void Links::notice_silence(Clock::time_point now) {
  for (const Member& member : members_) {
    const Link& link = links_[static_cast<std::size_t>(member.rank)];
    if (!link.is_open || now - link.heard <= silence_) continue;
    lose(member.rank, fmt::format("nothing has come from it for {}, as when it is stopped or its "
                                  "machine is gone",
                                  seconds_text(silence_)));
  }
}

}  // namespace tilewright::distributed
