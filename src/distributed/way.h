#pragma once

#include <optional>
#include <string>

#include "distributed/socket.h"
#include "tilewright/distributed.h"

namespace tilewright {

// How those who come learn where rank 0 is.
class Rendezvous::Way {
 public:
  struct Ticket {
    distributed::Endpoint endpoint;
    std::string token;
  };
  struct Place {
    int rank = 0, size = 1;
  };

  virtual ~Way() = default;
  // For errors: "the file /home/me/job".
  virtual std::string text() const = 0;
  // Who this process is, where the way knows.
  virtual std::optional<Place> place() { return std::nullopt; }
  // Where rank 0 is to listen; nothing: it chooses, and draws the token.
  virtual std::optional<Ticket> fixed() const { return std::nullopt; }
  // By rank 0, which listens by then.
  virtual void publish(const Ticket&) {}
  // By the others, again until somebody answers there.
  virtual std::optional<Ticket> find(distributed::Clock::time_point deadline) = 0;
  // By rank 0, when all have come or it has given up.
  virtual void withdraw() noexcept {}
};

namespace distributed {

std::string text_of(const Rendezvous::Way::Ticket& ticket);
std::optional<Rendezvous::Way::Ticket> parse_ticket(std::string_view text);
// 32 hexadecimal digits that nobody guesses.
std::string draw_token();

}  // namespace distributed
}  // namespace tilewright
