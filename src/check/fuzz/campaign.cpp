#include "check/fuzz/campaign.h"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include "check/fuzz/shrink.h"
#include "support/parallel.h"

namespace tilewright::checks::fuzz {
namespace {

using Clock = std::chrono::steady_clock;
using Kind = Verdict::Kind;

// What this thread judges, for a crash to name.
thread_local volatile std::uint64_t current_seed = 0;

extern "C" void name_seed(int signal) {
  char text[96];
  const int length = std::snprintf(text, sizeof(text), "error: the kernel of seed %llu crashes\n",
                                   static_cast<unsigned long long>(current_seed));
  if (length > 0) std::fwrite(text, 1, static_cast<std::size_t>(length), stderr);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Refusals of one reason differ in their numbers and layouts.
std::string reason(const std::string& message) {
  std::string text;
  bool digits = false;
  bool layout = false;
  for (const char c : message) {
    if (c == '[') text += "[...]";
    layout = (layout || c == '[') && c != ']';
    if (layout || c == ']') continue;
    const bool digit = c >= '0' && c <= '9';
    if (digit && !digits) text += 'N';
    if (!digit) text += c;
    digits = digit;
  }
  return text;
}

const char* name_of(Recipe::Style style) {
  switch (style) {
    case Recipe::Style::rows:
      return "without products";
    case Recipe::Style::products:
      return "with products";
    case Recipe::Style::explicit_level:
      break;
  }
  return "explicit level";
}

class Campaign {
 public:
  Campaign(const CampaignOptions& options, const std::function<void()>& progress)
      : options_(options),
        progress_(progress),
        current_(thread_count(static_cast<unsigned>(std::max(options.threads, 0)))) {}

  CampaignReport run() {
    const Clock::time_point start = Clock::now();
    for (const int fault : {SIGSEGV, SIGABRT, SIGFPE, SIGILL}) std::signal(fault, name_seed);
    std::thread watch([this] { watch_over(); });
    std::exception_ptr error;
    try {
      in_parallel(static_cast<unsigned>(current_.size()), static_cast<std::size_t>(options_.count),
                  [this](std::size_t i, unsigned thread) {
                    work(current_[thread], options_.seed + static_cast<std::uint64_t>(i));
                  });
    } catch (...) {
      error = std::current_exception();
    }
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    ended_.notify_all();
    watch.join();
    for (const int fault : {SIGSEGV, SIGABRT, SIGFPE, SIGILL}) std::signal(fault, SIG_DFL);
    if (error) std::rethrow_exception(error);
    report_.seconds = seconds_since(start);
    return std::move(report_);
  }

 private:
  // What a thread is at.
  struct Current {
    bool busy = false;
    std::uint64_t seed = 0;
    Clock::time_point since;
  };

  void work(Current& current, std::uint64_t seed) {
    if (failed_) return;
    begin(current, seed);
    try {
      judge_recipe(current, seed);
    } catch (...) {  // no GPU here
      end(current);
      throw;
    }
    end(current);
  }

  void judge_recipe(Current& current, std::uint64_t seed) {
    const Recipe recipe = random_recipe(seed);
    Verdict verdict = judge(recipe, options_.target, options_.machine);
    std::optional<Failure> failure;
    if (verdict.failed() && options_.first) {
      failed_ = true;
      failure = Failure{seed, verdict, recipe, verdict};
    } else if (verdict.failed()) {
      failure = shrink(current, seed, recipe, std::move(verdict));
    }
    const std::lock_guard lock(mutex_);
    count(recipe, failure ? failure->verdict : verdict);
    if (failure) report_.failures.push_back(std::move(*failure));
  }

  void begin(Current& current, std::uint64_t seed) {
    current_seed = seed;
    const std::lock_guard lock(mutex_);
    current = {true, seed, Clock::now()};
  }

  void end(Current& current) {
    const std::lock_guard lock(mutex_);
    current.busy = false;
  }

  Failure shrink(Current& current, std::uint64_t seed, const Recipe& recipe, Verdict verdict) {
    Failure failure{seed, std::move(verdict), {}, {}};
    // The same kind of fault in the same execution: not just any.
    const auto fails = [&](const Recipe& candidate) {
      begin(current, seed);
      const Verdict again = judge(candidate, options_.target, options_.machine);
      return again.kind == failure.verdict.kind && again.stage == failure.verdict.stage &&
             (again.kind != Kind::internal || reason(again.text) == reason(failure.verdict.text));
    };
    failure.recipe = shrunken(recipe, fails);
    failure.shrunken = judge(failure.recipe, options_.target, options_.machine);
    return failure;
  }

  // With the lock held.
  void count(const Recipe& recipe, const Verdict& verdict) {
    ++report_.kernels;
    report_.checked += verdict.checked;
    if (verdict.kind == Kind::agrees) {
      ++report_.agreed;
      ++report_.styles[name_of(recipe.style)];
    }
    report_.undecided += verdict.kind == Kind::undecided;
    if (verdict.kind == Kind::refused) ++report_.refusals[reason(verdict.text)];
    if (progress_) progress_();
  }

  void watch_over() {
    std::unique_lock lock(mutex_);
    while (!ended_.wait_for(lock, std::chrono::seconds(1), [this] { return done_; })) {
      for (const Current& current : current_) {
        if (!current.busy || seconds_since(current.since) < options_.patience) continue;
        // A thread that hangs cannot be ended alone.
        fmt::print(stderr,
                   "error: the kernel of seed {} has not ended after {} s\n"
                   "  fix: replay it with --count 1 --seed {}\n",
                   current.seed, options_.patience, current.seed);
        std::fflush(stderr);
        std::_Exit(1);
      }
    }
  }

  const CampaignOptions& options_;
  const std::function<void()>& progress_;
  std::vector<Current> current_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool done_ = false;
  std::atomic<bool> failed_ = false;  // and nothing more is begun
  CampaignReport report_;
};

}  // namespace

CampaignReport run_campaign(const CampaignOptions& options, const std::function<void()>& progress) {
  return Campaign(options, progress).run();
}

}  // namespace tilewright::checks::fuzz
