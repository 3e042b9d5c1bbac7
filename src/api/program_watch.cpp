#include "api/program_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

#include "ir/memory_order.h"
#include "ir/program_exchanges.h"
#include "runtime/peers.h"
#include "support/diagnostic.h"

namespace tilewright {
namespace {

using Clock = std::chrono::steady_clock;
using Kind = ir::ProgramOperation::Kind;

// Kernels report their own waits first, and end then.
constexpr double kForKernels = 1;

std::uint32_t& word_of(const runtime::PinnedBuffer& counts, std::size_t stream) {
  return static_cast<std::uint32_t*>(counts.data())[stream];
}

}  // namespace

ProgramWatch::ProgramWatch(const ir::Program& bound, const ProgramRanks& ranks, double seconds)
    : program_(bound),
      ranks_(ranks),
      seconds_(seconds),
      streams_(bound.streams.size()),
      counts_(ranks.device(ranks.own().front()),
              std::max<std::size_t>(bound.streams.size(), 1) * sizeof(std::uint32_t)) {
  std::memset(counts_.data(), 0, counts_.size());
  for (const int rank : ranks.own()) asks_.try_emplace(rank, ranks.device(rank));
  for (const ir::ProgramOperation& operation : bound.operations) {
    streams_[static_cast<std::size_t>(operation.stream)].operations.push_back(&operation);
  }
}

void ProgramWatch::note(const ir::ProgramOperation& operation, const runtime::Stream& stream) {
  const auto number = static_cast<std::size_t>(operation.stream);
  const runtime::WordOperation count{runtime::WordOperation::Kind::write, &word_of(counts_, number),
                                     static_cast<std::int32_t>(++streams_[number].queued)};
  runtime::queue_words(stream, {&count, 1}, "how far a stream has come");
}

std::uint32_t ProgramWatch::done(std::size_t stream) const {
  return std::atomic_ref(word_of(counts_, stream)).load(std::memory_order_relaxed);
}

void ProgramWatch::wait_for(const ProgramRanks::Streams& streams) const {
  std::vector<std::uint32_t> before;
  Clock::time_point since = Clock::now();
  const auto limit = std::chrono::duration<double>(seconds_ + kForKernels);
  while (!std::all_of(streams.begin(), streams.end(),
                      [](const runtime::Stream* each) { return runtime::is_idle(*each); })) {
    std::vector<std::uint32_t> now;
    for (std::size_t i = 0; i < streams_.size(); ++i) now.push_back(done(i));
    if (now != std::exchange(before, now)) since = Clock::now();
    if (Clock::now() - since > limit) {
      Diagnostic(program_.where,
                 fmt::format("program {} stands still: nothing has gone on for {} s{}",
                             program_.name, seconds_, text()),
                 ErrorKind::result)
          .fix("simulate() the program: it says who waits for whom")
          .raise();
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

std::string ProgramWatch::text() const {
  std::string lines;
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    if (done(i) != streams_[i].queued) lines += line(i);
  }
  return lines;
}

std::string ProgramWatch::line(std::size_t stream) const {
  const std::vector<const ir::ProgramOperation*>& operations = streams_[stream].operations;
  const std::uint32_t over = done(stream);
  const ir::ProgramOperation& next = *operations[over % operations.size()];
  const std::int64_t run = over / operations.size() + 1;
  std::string what;
  switch (next.kind) {
    case Kind::wait: {
      const std::optional<ir::MeetingWait> meeting = ir::meeting_wait(program_, next);
      what = "waits for " + (meeting ? meeting->text + ", " : "") + wait_text(next, run);
      break;
    }
    case Kind::launch:
      what = fmt::format("has not ended kernel {}",
                         program_.kernels[static_cast<std::size_t>(next.kernel)]->name);
      break;
    case Kind::copy:
    case Kind::zero:
    case Kind::write:
    case Kind::record:
    case Kind::wait_event:
      what = fmt::format("has not ended its {}", name_of(next.kind));
      break;
  }
  if (next.exchange >= 0) {
    what += fmt::format(", in exchange {}{}", program_.buffers[next.exchange].name,
                        ranks_.nodes() != nullptr ? ", or what other nodes send" : "");
  }
  const std::string writers = next.kind == Kind::wait ? writers_of(next.to) : std::string();
  return fmt::format("\n  {}  {}  {} (run {}){}", name_of(program_, program_.streams[stream]),
                     format_location(next.where), what, run, writers);
}

// What is there is asked of the copy engine, since the stream itself stands still.
std::string ProgramWatch::wait_text(const ir::ProgramOperation& wait, std::int64_t run) const {
  const std::int64_t start = ir::constant(wait.to.starts.front());
  const Asks& asks = asks_.at(program_.streams[static_cast<std::size_t>(wait.stream)].rank);
  const std::byte* const words = ranks_.at(wait.to.buffer, wait.to.rank);
  runtime::copy_async(asks.found.data(), words + start * std::int64_t{sizeof(std::int32_t)},
                      sizeof(std::int32_t), asks.stream);
  asks.stream.synchronize();
  std::int32_t value = 0;
  std::memcpy(&value, asks.found.data(), sizeof(value));
  return fmt::format("{}[{}] {} {}, which is {}", name_of(program_, wait.to.buffer, wait.to.rank),
                     start, ir::sign_of(wait.compare), ir::word_value(wait.value, run), value);
}

std::string ProgramWatch::writers_of(const ir::ProgramPart& words) const {
  std::string text;
  const std::string word = name_of(program_, words.buffer, words.rank);
  for (const ir::ProgramOperation& each : program_.operations) {
    const std::string stream =
        name_of(program_, program_.streams[static_cast<std::size_t>(each.stream)]);
    if (each.kind == Kind::write && each.to.buffer == words.buffer && each.to.rank == words.rank) {
      text +=
          fmt::format("\n    {}[{}] is written by {} at {}", word,
                      ir::constant(each.to.starts.front()), stream, format_location(each.where));
    } else if (each.kind == Kind::launch && writes(program_, each, words.buffer)) {
      text += fmt::format("\n    {} may be written by kernel {}, which {} launches at {}", word,
                          program_.kernels[static_cast<std::size_t>(each.kernel)]->name, stream,
                          format_location(each.where));
    }
  }
  return text.empty() ? fmt::format("\n    nothing writes {}", word) : text;
}

std::string ProgramWatch::writers_of(const ir::ProgramOperation& launch,
                                     const std::string& parameter) const {
  std::size_t tensor = 0;
  for (const ir::Parameter& each :
       program_.kernels[static_cast<std::size_t>(launch.kernel)]->parameters) {
    if (!each.is_tensor()) continue;
    if (each.name == parameter) return writers_of(launch.tensors[tensor]);
    ++tensor;
  }
  return {};
}

}  // namespace tilewright
