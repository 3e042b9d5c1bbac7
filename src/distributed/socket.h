#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "support/file_descriptor.h"

// Sockets that never block: whoever waits, waits until a deadline.
namespace tilewright::distributed {

using Clock = std::chrono::steady_clock;

// After which what was not there is looked for again.
constexpr std::chrono::milliseconds kBetweenTries{20};

// "12.5 s".
std::string seconds_text(std::chrono::milliseconds time);
// For poll(): 0 once it has passed.
int milliseconds_until(Clock::time_point deadline);

// Where somebody listens. Local ones are names in Linux's abstract namespace of sockets.
struct Endpoint {
  bool is_local = true;
  std::string name;  // or the address
  int port = 0;

  // "local:NAME", "tcp:ADDRESS:PORT".
  std::string text() const;
  static std::optional<Endpoint> parse(std::string_view text);
};

// Fills in the port where that is 0. Raises a usage error where the endpoint is taken, or no
// interface of this machine has the address.
FileDescriptor listen_at(Endpoint& endpoint);
// None where nobody has come.
FileDescriptor accept_one(const FileDescriptor& listener);
// None, and why, where nobody listens or the deadline passes.
FileDescriptor connect_to(const Endpoint& endpoint, Clock::time_point deadline, std::string& why);

struct PeerProcess {
  pid_t process = 0;  // 0 where another namespace hides it
  uid_t user = 0;
};
// Of a local connection's other end; nothing of others.
std::optional<PeerProcess> peer_process(const FileDescriptor& connection);
// Whether a connection's other end may be one of ours: who is local belongs to the same user.
bool is_same_user(const FileDescriptor& connection);

// What is sent at once, by a local connection with a descriptor.
struct Frame {
  enum class Kind : std::uint32_t { hello, members, refusal, message, alive, leave };
  Kind kind = Kind::hello;
  std::string payload;
  FileDescriptor attached;
};
constexpr std::size_t kLongestFrame = std::size_t{64} << 20;

// 0, or an errno: ETIMEDOUT once the deadline has passed. `attached` -1: none.
int send_frame(const FileDescriptor& connection, Frame::Kind kind, std::string_view payload,
               Clock::time_point deadline, int attached = -1);

// Puts frames together from what has come.
class FrameReader {
 public:
  explicit FrameReader(std::size_t longest = kLongestFrame) : longest_(longest) {}
  enum class Result { frame, nothing, ended, foreign };
  // Takes what is there, and no more than one frame. `nothing`: not yet a whole one. `foreign`:
  // what comes is not Tilewright's.
  Result read(const FileDescriptor& connection, Frame& frame);
  // Of a connection that has ended: an errno, or 0 where the other side closed it.
  int error() const { return error_; }

 private:
  Result receive(const FileDescriptor& connection, char* to, std::size_t bytes, std::size_t& done);

  struct Header {
    std::uint32_t magic, kind, bytes;
  };
  const std::size_t longest_;
  Header header_ = {};
  std::size_t header_done_ = 0, payload_done_ = 0;
  Frame frame_;
  int error_ = 0;
};

// Waits for one frame: nothing, and why, where none comes.
std::optional<Frame> receive_frame(const FileDescriptor& connection, Clock::time_point deadline,
                                   std::string& why);

}  // namespace tilewright::distributed
