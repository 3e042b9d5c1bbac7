#include "timeout.h"

#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmath>
#include <string_view>

#include "support/file.h"
#include "tilewright/error.h"

namespace tilewright::tools {
namespace {

// Of functions that a signal's handler may call alone.
void end(int) {
  remove_temporaries();
  constexpr std::string_view kMessage =
      "error: the command takes longer than --timeout\n"
      "  fix: take smaller sizes or fewer schedules, or a longer --timeout\n";
  const ssize_t ignored = ::write(STDERR_FILENO, kMessage.data(), kMessage.size());
  (void)ignored;
  ::_exit(static_cast<int>(ErrorKind::result));
}

}  // namespace

void end_after(double seconds) {
  struct sigaction action {};
  action.sa_handler = end;
  ::sigaction(SIGALRM, &action, nullptr);
  const double whole = std::floor(seconds);
  itimerval timer{};
  timer.it_value.tv_sec = static_cast<time_t>(whole);
  timer.it_value.tv_usec = static_cast<suseconds_t>((seconds - whole) * 1e6);
  ::setitimer(ITIMER_REAL, &timer, nullptr);
}

}  // namespace tilewright::tools
