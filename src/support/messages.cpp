#include "support/messages.h"

#include <fmt/format.h>

#include <cstdio>
#include <mutex>
#include <utility>

namespace tilewright {
namespace {

struct Sink {
  std::mutex mutex;
  MessageSink send;
};

// Never destroyed: threads may speak while a program ends.
Sink& sink() {
  static auto& sink = *new Sink;
  return sink;
}

}  // namespace

void send_messages_to(MessageSink send) {
  const std::lock_guard lock(sink().mutex);
  sink().send = std::move(send);
}

void say(Message kind, const std::string& text) {
  const std::lock_guard lock(sink().mutex);
  if (sink().send) {
    sink().send(kind, text);
  } else if (kind == Message::warning) {
    fmt::print(stderr, "{}\n", text);
  }
}

}  // namespace tilewright
