#include "distributed/socket.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "distributed/packing.h"
#include "support/diagnostic.h"

namespace tilewright::distributed {
namespace {

constexpr std::uint32_t kMagic = 0x31525754;  // "TWR1"

struct Address {
  sockaddr_storage storage = {};
  socklen_t bytes = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

Address local_address(const std::string& name) {
  sockaddr_un local = {};
  local.sun_family = AF_UNIX;
  // A zero before the name: no file, and gone with its listener.
  const std::size_t length = std::min(name.size(), sizeof local.sun_path - 1);
  std::memcpy(local.sun_path + 1, name.data(), length);
  Address address;
  std::memcpy(&address.storage, &local, sizeof local);
  address.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  return address;
}

Address tcp_address(const Endpoint& endpoint) {
  addrinfo wanted = {}, *found = nullptr;
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_NUMERICSERV;
  const int failed =
      getaddrinfo(endpoint.name.c_str(), std::to_string(endpoint.port).c_str(), &wanted, &found);
  if (failed != 0) {
    Diagnostic(
        {}, fmt::format("the address \"{}\" is not known: {}", endpoint.name, gai_strerror(failed)))
        .fix("an address of rank 0's machine, in numbers or by a name that this machine knows")
        .raise();
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
  Address address;
  std::memcpy(&address.storage, found->ai_addr, found->ai_addrlen);
  address.bytes = found->ai_addrlen;
  return address;
}

Address address_of(const Endpoint& endpoint) {
  return endpoint.is_local ? local_address(endpoint.name) : tcp_address(endpoint);
}

FileDescriptor new_socket(const Address& address) {
  FileDescriptor made(
      ::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!made) {
    Diagnostic({}, fmt::format("no socket can be made: {}", std::strerror(errno)),
               ErrorKind::unavailable)
        .fix("close files, or raise the limit (ulimit -n)")
        .raise();
  }
  return made;
}

void send_at_once(const FileDescriptor& connection) {
  const int yes = 1;
  // Of a local socket it fails, and nothing is lost.
  setsockopt(connection.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

int chosen_port(const FileDescriptor& listener) {
  Address address;
  address.bytes = sizeof address.storage;
  getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address.storage), &address.bytes);
  const void* at = &address.storage;
  return ntohs(address.storage.ss_family == AF_INET6
                   ? static_cast<const sockaddr_in6*>(at)->sin6_port
                   : static_cast<const sockaddr_in*>(at)->sin_port);
}

[[noreturn]] void raise_cannot_listen(const Endpoint& endpoint, int error) {
  if (error == EADDRINUSE) {
    Diagnostic({},
               fmt::format("{} is taken: somebody listens there, such as rank 0 of another job, "
                           "or a second rank 0 of this one",
                           endpoint.text()))
        .fix(endpoint.is_local ? "end the other job, or name this one otherwise; and one rank 0"
                               : "another port for each job, and one rank 0")
        .raise();
  }
  Diagnostic({}, fmt::format("{}: {}", endpoint.text(), std::strerror(error)))
      .fix(error == EADDRNOTAVAIL ? "an address of one of this machine's interfaces (ip address)"
                                  : "another address or port, on which this user may listen")
      .raise();
}

// 0, or an errno.
int wait_for(const FileDescriptor& connection, short events, Clock::time_point deadline) {
  for (;;) {
    pollfd wanted{connection.get(), events, 0};
    const int ready = poll(&wanted, 1, milliseconds_until(deadline));
    if (ready > 0) return 0;
    if (ready == 0) return ETIMEDOUT;
    if (errno != EINTR) return errno;
  }
}

int finish_connecting(const FileDescriptor& connection, Clock::time_point deadline) {
  if (const int failed = wait_for(connection, POLLOUT, deadline)) return failed;
  int error = 0;
  socklen_t bytes = sizeof error;
  getsockopt(connection.get(), SOL_SOCKET, SO_ERROR, &error, &bytes);
  return error;
}

// The header goes with the descriptor: whoever reads the header gets it.
ssize_t send_some(int to, std::string_view bytes, int attached) {
  iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  if (attached >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* const rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof attached);
    std::memcpy(CMSG_DATA(rights), &attached, sizeof attached);
  }
  return sendmsg(to, &message, MSG_NOSIGNAL);
}

// What came with the bytes; a second one, which nobody of ours sends, is closed.
FileDescriptor take_attached(msghdr& message) {
  FileDescriptor taken;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(part) + i * sizeof number, sizeof number);
      FileDescriptor one(number);
      if (!taken) taken = std::move(one);
    }
  }
  return taken;
}

}  // namespace

std::string seconds_text(std::chrono::milliseconds time) {
  return fmt::format("{:g} s", static_cast<double>(time.count()) / 1e3);
}

int milliseconds_until(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 1 << 30));
}

std::string Endpoint::text() const {
  return is_local ? "local:" + name : fmt::format("tcp:{}:{}", name, port);
}

std::optional<Endpoint> Endpoint::parse(std::string_view text) {
  const auto colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const std::string_view kind = text.substr(0, colon);
  text.remove_prefix(colon + 1);
  if (kind == "local") return Endpoint{true, std::string(text), 0};
  const auto last = text.rfind(':');
  if (kind != "tcp" || last == std::string_view::npos) return std::nullopt;
  const std::optional<int> port = parse_int(text.substr(last + 1));
  if (!port) return std::nullopt;
  return Endpoint{false, std::string(text.substr(0, last)), *port};
}

FileDescriptor listen_at(Endpoint& endpoint) {
  constexpr int kWaiting = 1024;
  const Address address = address_of(endpoint);
  FileDescriptor listener = new_socket(address);
  const int yes = 1;
  // Connections of a job that has ended may linger; a second listener is refused all the same.
  setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (bind(listener.get(), address.get(), address.bytes) != 0 ||
      ::listen(listener.get(), kWaiting) != 0) {
    raise_cannot_listen(endpoint, errno);
  }
  if (!endpoint.is_local) endpoint.port = chosen_port(listener);
  return listener;
}

FileDescriptor accept_one(const FileDescriptor& listener) {
  FileDescriptor connection(
      accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (connection) send_at_once(connection);
  return connection;
}

FileDescriptor connect_to(const Endpoint& endpoint, Clock::time_point deadline, std::string& why) {
  const Address address = address_of(endpoint);
  FileDescriptor connection = new_socket(address);
  int error = connect(connection.get(), address.get(), address.bytes) == 0 ? 0 : errno;
  if (error == EINPROGRESS) error = finish_connecting(connection, deadline);
  if (error != 0) {
    why = error == ECONNREFUSED ? "nobody listens there" : std::strerror(error);
    return {};
  }
  send_at_once(connection);
  return connection;
}

std::optional<PeerProcess> peer_process(const FileDescriptor& connection) {
  int family = 0;
  socklen_t bytes = sizeof family;
  getsockopt(connection.get(), SOL_SOCKET, SO_DOMAIN, &family, &bytes);
  ucred peer = {};
  bytes = sizeof peer;
  if (family != AF_UNIX ||
      getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0) {
    return std::nullopt;
  }
  return PeerProcess{peer.pid, peer.uid};
}

bool is_same_user(const FileDescriptor& connection) {
  const std::optional<PeerProcess> peer = peer_process(connection);
  return !peer || peer->user == geteuid();
}

int send_frame(const FileDescriptor& connection, Frame::Kind kind, std::string_view payload,
               Clock::time_point deadline, int attached) {
  const std::uint32_t header[] = {kMagic, static_cast<std::uint32_t>(kind),
                                  static_cast<std::uint32_t>(payload.size())};
  std::string bytes(reinterpret_cast<const char*>(header), sizeof header);
  bytes += payload;
  std::string_view left = bytes;
  while (!left.empty()) {
    const ssize_t sent = send_some(connection.get(), left, attached);
    if (sent >= 0) {
      attached = -1;
      left.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (const int failed = wait_for(connection, POLLOUT, deadline)) return failed;
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

FrameReader::Result FrameReader::receive(const FileDescriptor& connection, char* to,
                                         std::size_t bytes, std::size_t& done) {
  while (done < bytes) {
    iovec part{to + done, bytes - done};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    alignas(cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))] = {};
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t count = recvmsg(connection.get(), &message, MSG_CMSG_CLOEXEC);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Result::nothing;
    if (count <= 0) {
      error_ = count < 0 ? errno : 0;
      return Result::ended;
    }
    if (FileDescriptor attached = take_attached(message)) frame_.attached = std::move(attached);
    done += static_cast<std::size_t>(count);
  }
  return Result::frame;
}

FrameReader::Result FrameReader::read(const FileDescriptor& connection, Frame& frame) {
  const Result header =
      receive(connection, reinterpret_cast<char*>(&header_), sizeof header_, header_done_);
  if (header_done_ >= sizeof header_.magic && header_.magic != kMagic) return Result::foreign;
  if (header != Result::frame) return header;
  if (header_.bytes > longest_ || header_.kind > static_cast<std::uint32_t>(Frame::Kind::leave)) {
    return Result::foreign;
  }
  frame_.payload.resize(header_.bytes);
  const Result payload = receive(connection, frame_.payload.data(), header_.bytes, payload_done_);
  if (payload != Result::frame) return payload;
  frame_.kind = static_cast<Frame::Kind>(header_.kind);
  frame = std::exchange(frame_, Frame());
  header_done_ = payload_done_ = 0;
  return Result::frame;
}

std::optional<Frame> receive_frame(const FileDescriptor& connection, Clock::time_point deadline,
                                   std::string& why) {
  FrameReader reader;
  Frame frame;
  for (;;) {
    switch (reader.read(connection, frame)) {
      case FrameReader::Result::frame:
        return frame;
      case FrameReader::Result::ended:
        why = "the connection ended";
        return std::nullopt;
      case FrameReader::Result::foreign:
        why = "who answers is not Tilewright";
        return std::nullopt;
      case FrameReader::Result::nothing:
        break;
    }
    if (const int failed = wait_for(connection, POLLIN, deadline)) {
      why = failed == ETIMEDOUT ? "no answer has come" : std::strerror(failed);
      return std::nullopt;
    }
  }
}

}  // namespace tilewright::distributed
