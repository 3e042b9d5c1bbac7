#include "bench_link.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "json_text.h"
#include "runtime/device.h"
#include "runtime/topology.h"
#include "support/diagnostic.h"
#include "tilewright/kernels/link.h"

// Rates and latencies between two GPUs, beside what the links are built for.
namespace tilewright::tools {
namespace {

using Clock = std::chrono::steady_clock;
using kernels::LinkCopy;
using kernels::LinkSignal;
using kernels::Transfer;

constexpr std::int64_t kRowBytes = kernels::kLinkColumns * 4;
constexpr std::int64_t kCheckedRows = 3001;

struct Way {
  Transfer how;
  const char* name;
};
constexpr Way kWays[] = {{Transfer::engine_push, "copy engine, pushed by the source"},
                         {Transfer::engine_pull, "copy engine, pulled by the target"},
                         {Transfer::thread_push, "threads of all SMs, pushed"},
                         {Transfer::thread_pull, "threads of all SMs, pulled"},
                         {Transfer::tma_push, "TMA of all SMs, pushed"},
                         {Transfer::tma_pull, "TMA of all SMs, pulled"}};

struct GpuPair {
  int from, to;
  int ranks() const { return std::max(from, to) + 1; }
};

struct Rate {
  std::string name;
  bool is_right = false;
  std::optional<double> one_way, both_ways;  // bytes a second, each way
};

struct Latency {
  std::string name;
  double seconds;
};

double seconds_of(const std::function<void()>& work) {
  const Clock::time_point start = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Of one of many runs in a row: what begins and ends them is taken out.
double seconds_a_run(const std::function<void(int runs)>& run) {
  constexpr int kFew = 4, kMany = 24;
  run(kFew);
  std::vector<double> times;
  for (int round = 0; round < 5; ++round) {
    const double few = seconds_of([&] { run(kFew); });
    times.push_back((seconds_of([&] { run(kMany); }) - few) / (kMany - kFew));
  }
  std::sort(times.begin(), times.end());
  return std::max(times[times.size() / 2], 1e-9);
}

bool have_same_bits(const HostTensor& one, const HostTensor& other) {
  const char* const first = reinterpret_cast<const char*>(one.data());
  return std::equal(first, first + one.size_bytes(), reinterpret_cast<const char*>(other.data()));
}

// Both ways, of a size whose last tile is not full.
bool moves_all(const LinkCopy& timed) {
  LinkCopy copy = timed;
  copy.scratch = false;
  const Program program = kernels::link_copy(copy);
  ProgramMemory memory(program, {{"rows", kCheckedRows}});
  for (std::vector<HostTensor>& of_rank : memory.tensors) {
    of_rank[1] = HostTensor::poisoned(f32, of_rank[1].shape());
  }
  const std::vector<std::vector<HostTensor>> sent = memory.tensors;
  ProgramExecutable executable = compile(program, "cuda");
  executable.load(memory);
  executable.run(2);
  executable.store(memory);
  return have_same_bits(memory.tensors[copy.to][1], sent[copy.from][0]) &&
         have_same_bits(memory.tensors[copy.from][1], sent[copy.to][0]);
}

double rate_of(const LinkCopy& copy, std::int64_t bytes) {
  const std::int64_t rows = bytes / kRowBytes;
  const Program program = kernels::link_copy(copy);
  ProgramExecutable executable = compile(program, "cuda");
  executable.load(ProgramMemory(program, {{"rows", rows}}));
  return static_cast<double>(rows * kRowBytes) /
         seconds_a_run([&](int runs) { executable.run(runs); });
}

Rate measure(const Way& way, const GpuPair& pair, std::int64_t bytes) {
  LinkCopy copy{way.how, pair.ranks(), pair.from, pair.to, true, true};
  Rate rate{way.name, moves_all(copy), {}, {}};
  rate.both_ways = rate_of(copy, bytes);
  copy.both_ways = false;
  rate.one_way = rate_of(copy, bytes);
  return rate;
}

// For GPUs that do not reach each other: in pieces through memory of the host's, of which the one
// GPU fills some while the other empties others.
class StagedCopy {
 public:
  StagedCopy(const GpuPair& pair, std::size_t bytes)
      : bytes_((bytes + kPiece - 1) / kPiece * kPiece),
        from_(runtime::Device::get(pair.from)),
        to_(runtime::Device::get(pair.to)),
        source_(from_, bytes_, "source"),
        target_(to_, bytes_, "target"),
        stage_(from_, kStages * kPiece),
        out_(from_),
        in_(to_) {
    for (std::size_t i = 0; i < kStages; ++i) {
      filled_.emplace_back(from_, runtime::Event::Timing::off);
      emptied_.emplace_back(to_, runtime::Event::Timing::off);
    }
  }

  Rate measure() {
    source_.fill(0x5A, out_);
    target_.fill(0xFF, in_);
    in_.synchronize();
    run(1);
    std::vector<unsigned char> got(bytes_);
    target_.download(got.data(), bytes_, in_);
    in_.synchronize();
    const bool is_right =
        std::all_of(got.begin(), got.end(), [](unsigned char byte) { return byte == 0x5A; });
    const double seconds = seconds_a_run([this](int runs) { run(runs); });
    return {
        "staged through the host's memory", is_right, static_cast<double>(bytes_) / seconds, {}};
  }

 private:
  static constexpr std::size_t kPiece = std::size_t{4} << 20, kStages = 4;

  void run(int runs) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(runs) * bytes_ / kPiece; ++i) {
      const std::size_t at = i * kPiece % bytes_, stage = i % kStages;
      char* const staged = static_cast<char*>(stage_.data()) + stage * kPiece;
      out_.wait(emptied_[stage]);
      source_.download(staged, kPiece, out_, at);
      filled_[stage].record(out_);
      in_.wait(filled_[stage]);
      target_.upload(staged, kPiece, in_, at);
      emptied_[stage].record(in_);
    }
    in_.synchronize();
  }

  const std::size_t bytes_;  // whole pieces
  const runtime::Device& from_;
  const runtime::Device& to_;
  const runtime::DeviceBuffer source_, target_;
  const runtime::PinnedBuffer stage_;
  const runtime::Stream out_, in_;
  std::vector<runtime::Event> filled_, emptied_;
};

// One way, of which a run has two for each round.
Latency measure_signal(const char* name, const GpuPair& pair, int rounds, bool by_streams) {
  const Program program =
      kernels::link_signal({pair.ranks(), pair.from, pair.to, rounds, by_streams});
  ProgramExecutable executable = compile(program, "cuda");
  return {name, seconds_a_run([&](int runs) { executable.run(runs); }) / (2 * rounds)};
}

GpuPair pair_of(const Request& request, const Topology& found) {
  if (found.gpus.size() < 2) {
    Diagnostic(
        {},
        fmt::format("bench link measures two GPUs, and this process sees {}", found.gpus.size()),
        ErrorKind::unavailable)
        .fix("a machine with two GPUs; CUDA_VISIBLE_DEVICES may hide one")
        .raise();
  }
  const std::vector<int> gpus = request.gpus.empty() ? std::vector<int>{0, 1} : request.gpus;
  if (gpus.size() != 2 || gpus[0] == gpus[1]) {
    Diagnostic({}, "bench link: --gpus takes two different numbers").fix("--gpus 0,1").raise();
  }
  found.link(gpus[0], gpus[1]);  // refuses other numbers
  return {gpus[0], gpus[1]};
}

struct LinkReport {
  std::vector<Rate> rates;
  std::vector<Latency> latencies;
  bool ok() const {
    return std::all_of(rates.begin(), rates.end(), [](const Rate& rate) { return rate.is_right; });
  }
};

LinkReport measure_all(const GpuPair& pair, const GpuLink& link, std::int64_t bytes) {
  LinkReport report;
  if (link.reaches) {
    for (const Way& way : kWays) report.rates.push_back(measure(way, pair, bytes));
    report.latencies.push_back(measure_signal("signal of a kernel to a kernel", pair, 1000, false));
    report.latencies.push_back(measure_signal("write of a stream to a stream", pair, 20, true));
  }
  report.rates.push_back(StagedCopy(pair, static_cast<std::size_t>(bytes)).measure());
  return report;
}

std::string text_of(const std::optional<double>& rate, double allowed) {
  if (!rate) return fmt::format("{:>14}", "-");
  const std::string share = allowed > 0 ? fmt::format("{:6.2f}", *rate / allowed) : "      ";
  return fmt::format("{:8.1f}{}", *rate / 1e9, share);
}

void print(const LinkReport& report, const GpuLink& link) {
  fmt::print("{:<36}{:>8}{:>6}{:>8}{:>6}\n", "GB/s, and of what the link allows", "one way", "",
             "both", "");
  for (const Rate& rate : report.rates) {
    fmt::print("{:<36}{}{}{}\n", rate.name, text_of(rate.one_way, link.bytes_per_second),
               text_of(rate.both_ways, link.bytes_per_second),
               rate.is_right ? "" : "  WRONG: not what was sent has come");
  }
  for (const Latency& latency : report.latencies) {
    fmt::print("{:<36}{:8.2f} us\n", latency.name, latency.seconds * 1e6);
  }
}

nlohmann::ordered_json json_of(const LinkReport& report) {
  const auto number = [](const std::optional<double>& value) {
    return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
  };
  nlohmann::ordered_json rates = nlohmann::ordered_json::array(), latencies = rates;
  for (const Rate& rate : report.rates) {
    rates.push_back({{"name", rate.name},
                     {"ok", rate.is_right},
                     {"one_way", number(rate.one_way)},
                     {"both_ways", number(rate.both_ways)}});
  }
  for (const Latency& latency : report.latencies) {
    latencies.push_back({{"name", latency.name}, {"seconds", latency.seconds}});
  }
  return {{"rates", rates}, {"latencies", latencies}};
}

}  // namespace

int bench_link(const Request& request) {
  const Topology& found = topology();
  const GpuPair pair = pair_of(request, found);
  const GpuLink& link = found.link(pair.from, pair.to);
  const std::string allowed = link.bytes_per_second > 0
                                  ? fmt::format("{:.0f} GB/s each way", link.bytes_per_second / 1e9)
                                  : "of a rate that nobody says";
  const LinkReport report = measure_all(pair, link, request.mebibytes << 20);
  if (request.json) {
    nlohmann::ordered_json json = json_of(report);
    json["ok"] = report.ok();
    json["gpus"] = {pair.from, pair.to};
    json["path"] = link.name;
    json["reaches"] = link.reaches;
    json["allowed"] = link.bytes_per_second;
    json["source"] = found.source;
    fmt::print("{}\n", json_text(json));
    return report.ok() ? 0 : 1;
  }
  fmt::print("GPU {} to GPU {} {}, {} ({})\n", pair.from, pair.to, runtime::path_text(link),
             allowed, found.source);
  if (!link.reaches) {
    fmt::print(
        "neither reaches the other's memory: kernels and copies of the one do not get there\n");
  }
  print(report, link);
  return report.ok() ? 0 : 1;
}

}  // namespace tilewright::tools
