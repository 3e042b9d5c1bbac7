#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "support/diagnostic.h"

namespace tilewright::distributed {

// Of an error of this rank alone all ranks learn, and raise it: else they would wait for it.
class SharedFailure {
 public:
  template <typename Action>
  void attempt(const Action& action) {
    try {
      action();
    } catch (const Error& error) {
      own_ = error;
    }
  }
  std::string text() const { return own_ ? own_->message() : ""; }

  // `texts`: of each rank, "" for none.
  void raise_any(const std::vector<std::string>& texts) const {
    if (own_) throw *own_;
    for (std::size_t rank = 0; rank < texts.size(); ++rank) {
      if (texts[rank].empty()) continue;
      Diagnostic({}, fmt::format("rank {}: {}", rank, texts[rank]), ErrorKind::unavailable)
          .fix("look for the error of that rank")
          .raise();
    }
  }

 private:
  std::optional<Error> own_;
};

}  // namespace tilewright::distributed
