#include "distributed/lobby.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "distributed/packing.h"
#include "distributed/system_file.h"
#include "support/diagnostic.h"
#include "support/file.h"

namespace tilewright::distributed {
namespace {

using Ticket = Rendezvous::Way::Ticket;

constexpr std::size_t kLongestHello = 4096;
// What rank 0 needs to tell the others that it has given up.
constexpr std::chrono::milliseconds kGrace{5'000};
// So long after a failure rank 0 tells those who come of it.
constexpr std::chrono::milliseconds kForLatecomers{2'000};
constexpr std::size_t kMostNamed = 8;  // of those who were turned away
constexpr const char* kComeFix = "start all ranks within the group's patience, or raise it";
constexpr const char* kTokenFix =
    "the same token in all ranks of a job; another job needs an address, file or key of its own";

std::string hello_of(const Member& own, const std::string& token, int size) {
  return pack({kBuild, token, std::to_string(size), std::to_string(own.rank),
               std::to_string(own.process), own.host, own.machine, own.node, own.local.name,
               own.remote});
}

struct Hello {
  std::string build, token;
  int size = 0;
  Member member;
};

std::optional<Hello> parse_hello(std::string_view payload) {
  const auto fields = unpack(payload);
  if (!fields || fields->size() != 10) return std::nullopt;
  const auto size = parse_int((*fields)[2]), rank = parse_int((*fields)[3]),
             process = parse_int((*fields)[4]);
  if (!size || !rank || !process) return std::nullopt;
  return Hello{(*fields)[0],
               (*fields)[1],
               *size,
               {*rank,
                *process,
                (*fields)[5],
                (*fields)[6],
                (*fields)[7],
                {true, (*fields)[8], 0},
                (*fields)[9]}};
}

std::string list_of(const std::vector<Member>& members) {
  std::vector<std::string> fields;
  for (const Member& member : members) fields.push_back(hello_of(member, "", 0));
  return pack(fields);
}

std::optional<std::vector<Member>> parse_list(std::string_view payload) {
  const auto fields = unpack(payload);
  if (!fields) return std::nullopt;
  std::vector<Member> members;
  for (const std::string& field : *fields) {
    const std::optional<Hello> hello = parse_hello(field);
    if (!hello) return std::nullopt;
    members.push_back(hello->member);
  }
  return members;
}

// Why a rank cannot be part of the group.
struct Refusal {
  ErrorKind kind = ErrorKind::usage;
  std::string message, fix;
  // Of a rank of this job: then the group will never be whole.
  bool ends_all = true;
};

std::string packed(const Refusal& refusal) {
  return pack({std::to_string(static_cast<int>(refusal.kind)), refusal.message, refusal.fix});
}

[[noreturn]] void raise(const Refusal& refusal) {
  Diagnostic({}, refusal.message, refusal.kind).fix(refusal.fix).raise();
}

// The lobby, as rank 0 keeps it.
class Host {
 public:
  Host(FileDescriptor listener, std::string token, const Member& own, const Lobby& lobby)
      : listener_(std::move(listener)), token_(std::move(token)), lobby_(lobby) {
    seats_.resize(static_cast<std::size_t>(lobby.size));
    seats_[0].member = own;
  }

  std::vector<Member> gather() {
    while (!missing().empty() && Clock::now() < deadline_) {
      wait();
      admit();
      for (Seat& seat : seats_) notice_end(seat);
      std::erase_if(visitors_, [this](Visitor& visitor) { return is_done(visitor); });
    }
    if (!failure_ && !missing().empty()) fail(not_come());
    if (failure_) raise(*failure_);
    std::vector<Member> members;
    for (const Seat& seat : seats_) members.push_back(*seat.member);
    tell_all(Frame::Kind::members, list_of(members));
    return members;
  }

 private:
  struct Visitor {
    FileDescriptor connection;
    std::unique_ptr<FrameReader> reader;
  };
  struct Seat {
    std::optional<Member> member;
    FileDescriptor connection;
    std::unique_ptr<FrameReader> reader;
  };

  std::vector<int> missing() const {
    std::vector<int> ranks;
    for (std::size_t rank = 0; rank < seats_.size(); ++rank) {
      if (!seats_[rank].member) ranks.push_back(static_cast<int>(rank));
    }
    return ranks;
  }

  void wait() const {
    std::vector<pollfd> wanted{{listener_.get(), POLLIN, 0}};
    for (const Visitor& visitor : visitors_)
      wanted.push_back({visitor.connection.get(), POLLIN, 0});
    for (const Seat& seat : seats_) {
      if (seat.connection && !failure_) wanted.push_back({seat.connection.get(), POLLIN, 0});
    }
    poll(wanted.data(), wanted.size(), milliseconds_until(deadline_));
  }

  void admit() {
    while (FileDescriptor connection = accept_one(listener_)) {
      if (!is_same_user(connection)) continue;
      visitors_.push_back({std::move(connection), std::make_unique<FrameReader>(kLongestHello)});
    }
  }

  // Whether nothing more is expected of the visitor: it has a seat, or was turned away.
  bool is_done(Visitor& visitor) {
    Frame frame;
    const FrameReader::Result result = visitor.reader->read(visitor.connection, frame);
    if (result != FrameReader::Result::frame) return result != FrameReader::Result::nothing;
    const std::optional<Hello> hello = parse_hello(frame.payload);
    if (frame.kind != Frame::Kind::hello || !hello) return true;
    const std::optional<Refusal> refusal = refusal_of(*hello);
    if (refusal && refusal->ends_all) fail(*refusal);
    const bool is_stranger = refusal && !refusal->ends_all;
    if (is_stranger && turned_away_.size() < kMostNamed) turned_away_.insert(hello->member.rank);
    if (refusal || failure_) {
      tell(visitor.connection, Frame::Kind::refusal, packed(refusal ? *refusal : *failure_));
    } else {
      tell(visitor.connection, Frame::Kind::alive, {});
    }
    if (!refusal || refusal->ends_all) seat(hello->member, visitor);
    return true;
  }

  // Behind a failure only so that nobody waits for that rank.
  void seat(const Member& member, Visitor& visitor) {
    if (member.rank < 0 || member.rank >= lobby_.size) return;
    Seat& own = seats_[static_cast<std::size_t>(member.rank)];
    if (own.member) return;
    own.member = member;
    if (failure_) return;
    own.connection = std::move(visitor.connection);
    own.reader = std::move(visitor.reader);
  }

  std::optional<Refusal> refusal_of(const Hello& hello) const {
    const int rank = hello.member.rank;
    if (hello.token != token_) {
      return Refusal{ErrorKind::usage, fmt::format("rank {} has another token than rank 0", rank),
                     kTokenFix, /*ends_all=*/false};
    }
    if (hello.build != kBuild) {
      return Refusal{
          ErrorKind::usage,
          fmt::format("rank {} has Tilewright {}, and rank 0 has {}", rank, hello.build, kBuild),
          "the same Tilewright in all ranks"};
    }
    if (hello.size != lobby_.size) {
      return Refusal{ErrorKind::usage,
                     fmt::format("rank {} says that there are {} ranks, and rank 0 says {}", rank,
                                 hello.size, lobby_.size),
                     "the same size in all ranks"};
    }
    if (rank < 0 || rank >= lobby_.size) {
      return Refusal{ErrorKind::usage, fmt::format("rank {} of {} ranks", rank, lobby_.size),
                     fmt::format("ranks from 0 to {}", lobby_.size - 1)};
    }
    if (const auto& first = seats_[static_cast<std::size_t>(rank)].member) {
      return Refusal{ErrorKind::usage,
                     fmt::format("rank {} has come twice: {} and then {}", rank,
                                 process_text(*first), process_text(hello.member)),
                     "another rank for each process"};
    }
    return std::nullopt;
  }

  void notice_end(Seat& seat) {
    if (!seat.connection || failure_) return;
    Frame frame;
    if (seat.reader->read(seat.connection, frame) == FrameReader::Result::nothing) return;
    fail({ErrorKind::unavailable,
          fmt::format("{} came and ended before all had come", name_of(*seat.member)),
          "look for the error of that rank, and start the job again"});
  }

  static void tell(const FileDescriptor& connection, Frame::Kind kind, std::string_view payload) {
    send_frame(connection, kind, payload, Clock::now() + kGrace);
  }
  void tell_all(Frame::Kind kind, std::string_view payload) const {
    for (const Seat& seat : seats_) {
      if (seat.connection) tell(seat.connection, kind, payload);
    }
  }

  // The first one is what all are told.
  void fail(const Refusal& refusal) {
    if (failure_) return;
    failure_ = refusal;
    tell_all(Frame::Kind::refusal, packed(refusal));
    deadline_ = std::min(deadline_, Clock::now() + kForLatecomers);
  }

  Refusal not_come() const {
    const std::vector<int> ranks = missing();
    std::string text =
        fmt::format("{} {} of {} did not come within {}", ranks.size() == 1 ? "rank" : "ranks",
                    fmt::join(ranks, ", "), lobby_.size, seconds_text(lobby_.patience));
    if (turned_away_.empty()) return {ErrorKind::unavailable, text, kComeFix};
    text += fmt::format("; who called itself rank {} had another token, and was turned away",
                        fmt::join(turned_away_, ", "));
    return {ErrorKind::unavailable, text, kTokenFix};
  }

  const FileDescriptor listener_;
  const std::string token_;
  const Lobby lobby_;
  Clock::time_point deadline_ = lobby_.deadline;
  std::optional<Refusal> failure_;
  std::vector<Visitor> visitors_;
  std::vector<Seat> seats_;
  std::set<int> turned_away_;  // ranks that those without the token said they were
};

std::string draw_name() { return fmt::format("tilewright-{}-{}", getpid(), draw_token()); }

Meeting host(Rendezvous::Way& way, const Member& own, const std::string& address,
             const Lobby& lobby) {
  const Endpoint chosen =
      address.empty() ? Endpoint{true, draw_name(), 0} : Endpoint{false, address, 0};
  Ticket ticket = way.fixed().value_or(Ticket{chosen, draw_token()});
  FileDescriptor listener = listen_at(ticket.endpoint);
  way.publish(ticket);
  struct Withdrawn {
    ~Withdrawn() { way.withdraw(); }
    Rendezvous::Way& way;
  } const withdrawn{way};
  return {Host(std::move(listener), ticket.token, own, lobby).gather(), ticket.token};
}

[[noreturn]] void raise_not_come(const Rendezvous::Way& way, const Lobby& lobby,
                                 const std::string& why) {
  raise({ErrorKind::unavailable,
         fmt::format("rank 0 did not come to {} within {}: {}", way.text(),
                     seconds_text(lobby.patience), why),
         kComeFix});
}

// Until somebody listens where rank 0 should be. `why` is what the last try met.
FileDescriptor knock(Rendezvous::Way& way, const Lobby& lobby, std::string& token,
                     std::string& why) {
  while (Clock::now() < lobby.deadline) {
    if (const std::optional<Ticket> ticket = way.find(lobby.deadline)) {
      FileDescriptor connection = connect_to(ticket->endpoint, lobby.deadline, why);
      if (connection && is_same_user(connection)) {
        token = ticket->token;
        return connection;
      }
      why = fmt::format("{}: {}", ticket->endpoint.text(),
                        connection ? "who listens there belongs to another user" : why);
    }
    std::this_thread::sleep_for(kBetweenTries);
  }
  raise_not_come(way, lobby, why);
}

[[noreturn]] void raise_refused(std::string_view payload, const Rendezvous::Way& way) {
  const auto fields = unpack(payload);
  const auto kind = fields && fields->size() == 3 ? parse_int(fields->front()) : std::nullopt;
  if (!kind) {
    raise({ErrorKind::unavailable, fmt::format("who answers at {} is not rank 0", way.text()),
           "an address, file or key of this job's own"});
  }
  raise({static_cast<ErrorKind>(*kind), (*fields)[1], (*fields)[2]});
}

Meeting visit(Rendezvous::Way& way, const Member& own, const Lobby& lobby) {
  std::string why = "it has not said where it is";
  for (;;) {
    std::string token;
    const FileDescriptor connection = knock(way, lobby, token, why);
    send_frame(connection, Frame::Kind::hello, hello_of(own, token, lobby.size), lobby.deadline);
    const auto until = lobby.deadline + kGrace;
    std::optional<Frame> answer = receive_frame(connection, until, why);
    const bool has_seat = answer && answer->kind == Frame::Kind::alive;
    if (has_seat) answer = receive_frame(connection, until, why);
    if (answer && answer->kind == Frame::Kind::members) {
      if (auto members = parse_list(answer->payload)) return {*std::move(members), token};
    }
    if (answer) raise_refused(answer->payload, way);
    if (has_seat) {
      raise({ErrorKind::unavailable,
             fmt::format("rank 0 at {} ended before all had come: {}", way.text(), why),
             "look for the error of rank 0, and start the job again"});
    }
    // It was of a group before, whose lobby has closed.
    if (Clock::now() >= lobby.deadline) raise_not_come(way, lobby, why);
    std::this_thread::sleep_for(kBetweenTries);
  }
}

}  // namespace

std::string process_text(const Member& member) {
  return fmt::format("process {} on {}", member.process, member.host);
}

std::string name_of(const Member& member) {
  return fmt::format("rank {} ({})", member.rank, process_text(member));
}

Member introduce(int rank, std::string node) {
  Member own;
  own.rank = rank;
  own.process = getpid();
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  own.host = host;
  // Local sockets are those of a network namespace.
  char space[64] = {};
  if (readlink("/proc/self/ns/net", space, sizeof space - 1) < 0) space[0] = '\0';
  const std::string boot = read_system_file("/proc/sys/kernel/random/boot_id");
  own.machine = (boot.empty() ? own.host : boot) + space;
  own.node = std::move(node);
  own.local.name = draw_name();
  return own;
}

Meeting meet(Rendezvous::Way& way, const Member& own, const std::string& address,
             const Lobby& lobby) {
  return own.rank == 0 ? host(way, own, address, lobby) : visit(way, own, lobby);
}

std::string text_of(const Ticket& ticket) {
  return ticket.endpoint.text() + "\n" + ticket.token + "\n";
}

std::optional<Ticket> parse_ticket(std::string_view text) {
  const std::vector<std::string_view> lines = lines_of(text);
  if (lines.size() < 2) return std::nullopt;
  const std::optional<Endpoint> endpoint = Endpoint::parse(lines[0]);
  if (!endpoint || lines[1].empty()) return std::nullopt;
  return Ticket{*endpoint, std::string(lines[1])};
}

std::string draw_token() {
  unsigned char bytes[16];
  if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes) {
    raise({ErrorKind::unavailable, "the system has no random numbers", "a system with getrandom"});
  }
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

}  // namespace tilewright::distributed
