#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/processes.h"
#include "distributed/ranks.h"
#include "kernels/reference_exchanges.h"
#include "runtime/cuda_api.h"
#include "runtime/device.h"
#include "runtime/nvrtc.h"
#include "tilewright/kernels/collectives.h"
#include "tilewright/kernels/nodes.h"
#include "tilewright/program.h"

// Runs over two processes that are captured in a CUDA graph, and launched again and again.
namespace tilewright {
namespace {

using test::FileRanks;
using test::Processes;
using test::Voice;
using Clock = std::chrono::steady_clock;

constexpr int kPair = 2;

class GraphOfRuns {
 public:
  template <typename Record>
  GraphOfRuns(const runtime::Stream& stream, const Record& record) : stream_(stream) {
    check(function<int(CUstream_st*, int)>("cuStreamBeginCapture_v2")(stream.handle(), 2));
    record();
    void* graph = nullptr;
    check(function<int(CUstream_st*, void**)>("cuStreamEndCapture")(stream.handle(), &graph));
    check(function<int(void**, void*, unsigned long long)>("cuGraphInstantiateWithFlags")(
        &ready_, graph, 0));
    launch_ = function<int(void*, CUstream_st*)>("cuGraphLaunch");
  }
  void launch() const { check(launch_(ready_, stream_.handle())); }

 private:
  template <typename Function>
  static Function* function(const char* symbol) {
    Function* found = nullptr;
    runtime::cuda_driver().library.bind(found, symbol);
    return found;
  }
  static void check(int result) {
    if (result != 0) throw std::runtime_error("a graph call returns " + std::to_string(result));
  }

  const runtime::Stream& stream_;
  void* ready_ = nullptr;
  int (*launch_)(void*, CUstream_st*) = nullptr;
};

using References = std::vector<std::vector<double>>;
struct GraphedProgram {
  const char* name;
  Program program;
  References (*reference)(const std::vector<HostTensor>&);
  std::vector<std::int64_t> x, y;
};

// Kernels that take their epochs, and copies between words.
std::vector<GraphedProgram> graphed_programs() {
  constexpr std::int64_t kCount = 4096;
  return {{"reduce_scatter",
           kernels::reduce_scatter_sm90({f32, kPair}),
           kernels::parts_summed_reference,
           {kPair, kCount},
           {kCount}},
          {"all_to_all",
           kernels::vector_all_to_all_nodes({{f32, kPair}, 1}),
           kernels::exchanged_reference,
           {kPair, kCount},
           {kPair, kCount}}};
}

// One rank's tensors on its GPU, of other numbers in each round.
class GraphedRank {
 public:
  GraphedRank(const GraphedProgram& of, const Group& group)
      : of_(of),
        rank_(group.rank()),
        device_(runtime::Device::get(rank_)),
        stream_(device_),
        executable_(built(of.program, group)),
        x_(device_, inputs(0)[0].size_bytes(), "x"),
        y_(device_, HostTensor::zeros(f32, of.y).size_bytes(), "y") {}

  std::vector<HostTensor> inputs(int round) const {
    std::vector<HostTensor> all;
    for (int rank = 0; rank < kPair; ++rank) {
      all.push_back(
          HostTensor::random_normal(f32, of_.x, static_cast<std::uint64_t>(10 * round + rank)));
    }
    return all;
  }
  void pass(int round) {
    const std::vector<HostTensor> all = inputs(round);
    const HostTensor& own = all[static_cast<std::size_t>(rank_)];
    x_.upload(own.data(), own.size_bytes(), stream_);
    y_.fill(0xFF, stream_);
    stream_.synchronize();
  }
  void run() {
    executable_.run_in_group({{x_.data(), f32, of_.x, {}}, {y_.data(), f32, of_.y, {}}},
                             stream_.handle());
  }
  bool is_right(int round) {
    executable_.synchronize();
    HostTensor y = HostTensor::zeros(f32, of_.y);
    y_.download(y.data(), y.size_bytes(), stream_);
    stream_.synchronize();
    const References wanted = of_.reference(inputs(round));
    for (std::int64_t i = 0; i < y.elements(); ++i) {
      const double w = wanted[static_cast<std::size_t>(rank_)][static_cast<std::size_t>(i)];
      if (!(std::abs(y.flat(i) - w) <= 2e-6 * (1 + std::abs(w)))) return false;
    }
    return true;
  }
  // The best of some rounds, of fewer launches than the driver queues.
  template <typename Launch>
  double microseconds_on_the_host(const Launch& launch) {
    constexpr int kRounds = 20, kLaunches = 20;
    double best = 1e9;
    for (int round = 0; round < kRounds; ++round) {
      const Clock::time_point start = Clock::now();
      for (int i = 0; i < kLaunches; ++i) launch();
      const std::chrono::duration<double, std::micro> time = Clock::now() - start;
      best = std::min(best, time.count() / kLaunches);
      executable_.synchronize();
    }
    return best;
  }
  const runtime::Stream& stream() const { return stream_; }
  ProgramExecutable& executable() { return executable_; }

 private:
  static ProgramExecutable built(const Program& program, const Group& group) {
    CompileOptions options;
    options.device = group.rank();
    return compile(program, "cuda", group, options);
  }

  const GraphedProgram& of_;
  const int rank_;
  const runtime::Device& device_;
  const runtime::Stream stream_;
  ProgramExecutable executable_;
  const runtime::DeviceBuffer x_, y_;
};

TEST(GraphsGpu, LaunchRunsAgain) {
  {
    Processes look(1, [](int, const Voice& voice) {
      runtime::Nvrtc::get();
      const int count = runtime::Device::count();
      voice.say(count < kPair ? "too few GPUs" : runtime::Device::get(0).info().arch());
    });
    if (look.said(0) != "sm_90a") GTEST_SKIP() << look.said(0);
  }
  for (const GraphedProgram& each : graphed_programs()) {
    const FileRanks job;
    Processes ranks(kPair, [&](int number, const Voice& voice) {
      const Group group = job.join(number, kPair);
      GraphedRank rank(each, group);
      const auto say = [&](int round) { voice.say(rank.is_right(round) ? "right " : "wrong "); };
      rank.pass(0);
      rank.run();
      say(0);
      const double before = rank.microseconds_on_the_host([&] { rank.run(); });
      rank.executable().count_on_gpus();
      rank.pass(1);
      for (int i = 0; i < 3; ++i) rank.run();
      say(1);
      const GraphOfRuns graph(rank.stream(), [&] { rank.run(); });
      for (int round = 2; round < 5; ++round) {
        rank.pass(round);
        group.barrier("passed");
        for (int i = 0; i < 100; ++i) graph.launch();
        say(round);
      }
      // Runs and graphs take turns.
      rank.pass(5);
      group.barrier("passed");
      rank.run();
      graph.launch();
      say(5);
      const double graphs = rank.microseconds_on_the_host([&] { graph.launch(); }),
                   runs = rank.microseconds_on_the_host([&] { rank.run(); });
      std::printf(
          "TABLE %s rank %d, us on the host: %.2f a run, %.2f one that counts on the GPU, %.2f a "
          "graph's "
          "launch\n",
          each.name, number, before, runs, graphs);
      std::fflush(stdout);
    });
    for (int rank = 0; rank < kPair; ++rank) {
      EXPECT_EQ(ranks.said(rank), "right right right right right right ") << each.name;
    }
  }
}

}  // namespace
}  // namespace tilewright
