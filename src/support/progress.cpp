#include "support/progress.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace tilewright {
namespace {

constexpr std::chrono::milliseconds kInterval(100);
constexpr std::string_view kClearLine = "\r\033[K";

bool is_capable_terminal(int descriptor) {
  const char* terminal = std::getenv("TERM");
  return isatty(descriptor) == 1 && terminal != nullptr && std::string_view(terminal) != "dumb";
}

size_t terminal_width(int descriptor) {
  winsize size{};
  return ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

// A bar that cannot be shown is no reason to stop the work.
void print(int descriptor, std::string_view text) {
  if (write(descriptor, text.data(), text.size()) < 0) return;
}

}  // namespace

ProgressBar::ProgressBar(std::string label, int64_t total, int descriptor)
    : label_(std::move(label)),
      total_(std::max<int64_t>(total, 1)),
      descriptor_(descriptor),
      shown_(is_capable_terminal(descriptor)) {
  if (shown_) draw(0);
}

ProgressBar::~ProgressBar() {
  if (shown_) print(descriptor_, kClearLine);
}

void ProgressBar::advance(int64_t steps) {
  const int64_t done = done_.fetch_add(steps, std::memory_order_relaxed) + steps;
  if (!shown_) return;
  // Whoever finds the bar being drawn goes on with its work.
  const std::unique_lock lock(drawing_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  if (std::chrono::steady_clock::now() - last_drawn_ >= kInterval) draw(done);
}

void ProgressBar::draw(int64_t done) {
  constexpr size_t kWidth = 20;
  const int64_t shown = std::clamp<int64_t>(done, 0, total_);
  const auto filled = static_cast<size_t>(static_cast<double>(shown) / total_ * kWidth);
  std::string line = fmt::format("{} [{:#<{}}{:.<{}}] {}/{}", label_, "", filled, "",
                                 kWidth - filled, shown, total_);
  // A line that wraps could not be cleared.
  line.resize(std::min(line.size(), terminal_width(descriptor_) - 1));
  print(descriptor_, std::string(kClearLine) + line);
  last_drawn_ = std::chrono::steady_clock::now();
}

}  // namespace tilewright
