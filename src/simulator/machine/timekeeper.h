#pragma once

#include <cstdint>

namespace tilewright::simulator {

struct Event;
struct Warp;

// Says when a warp goes on, and when asynchronous work is over. An execution by it has what happens
// in the order of time.
class Timekeeper {
 public:
  virtual ~Timekeeper() = default;
  virtual std::int64_t time_of(const Warp& warp) = 0;
  virtual std::int64_t time_of(const Event& event) = 0;
};

}  // namespace tilewright::simulator
