#include "library/timing.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <new>

namespace tilewright::library {
namespace {

constexpr std::size_t kHostRuns = 3;
constexpr double kHostSeconds = 1;
constexpr int kWarmUps = 3;
constexpr std::int64_t kGpuRuns = 20;
constexpr std::size_t kFlushFactor = 4;  // the buffer that evicts the cache, in sizes of it

// Memory that begins with a line of the caches, as that of other libraries' tensors does. Rows of a
// HostTensor, which the C library places 16 bytes behind a page, have vectors in two lines each.
constexpr std::align_val_t kLine{64};
struct Release {
  void operator()(std::byte* memory) const { ::operator delete(memory, kLine); }
};
using Lines = std::unique_ptr<std::byte, Release>;

Lines copy_of(const HostTensor& tensor) {
  Lines lines(static_cast<std::byte*>(::operator new(tensor.size_bytes(), kLine)));
  std::copy_n(tensor.data(), tensor.size_bytes(), lines.get());
  return lines;
}

}  // namespace

Timing time_on_host(const Launch& launch, std::vector<HostTensor>& tensors) {
  std::vector<TensorRef> refs;
  std::vector<Lines> copies;
  for (HostTensor& tensor : tensors) {
    copies.push_back(copy_of(tensor));
    refs.push_back(ref(tensor));
    refs.back().data = copies.back().get();
  }
  Timing timing;
  double total = 0;
  while (timing.seconds.size() < kHostRuns || total < kHostSeconds) {
    const auto start = std::chrono::steady_clock::now();
    launch(refs);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    timing.seconds.push_back(elapsed.count());
    total += elapsed.count();
  }
  std::sort(timing.seconds.begin(), timing.seconds.end());
  return timing;
}

std::vector<Timing> time_in_turn(const std::vector<Launch>& launches,
                                 const compiler::DeviceTensors& tensors, std::int64_t rounds) {
  const runtime::Device& device = tensors.stream().device();
  const std::vector<TensorRef> refs = tensors.refs();
  const runtime::DeviceBuffer flush(
      device, kFlushFactor * std::max<std::size_t>(device.info().l2_bytes, 1 << 20), "cache flush");
  for (const Launch& launch : launches) {
    for (int i = 0; i < kWarmUps; ++i) launch(refs);
  }
  // The flush keeps the GPU busy while the launch behind it is queued: the host's time is not in
  // what the events measure.
  std::vector<runtime::Event> starts, ends;
  for (std::int64_t round = 0; round < rounds; ++round) {
    for (const Launch& launch : launches) {
      starts.emplace_back(device);
      ends.emplace_back(device);
      flush.fill(static_cast<unsigned char>(round), tensors.stream());
      starts.back().record(tensors.stream());
      launch(refs);
      ends.back().record(tensors.stream());
    }
  }
  tensors.synchronize();
  std::vector<Timing> timings(launches.size());
  for (std::size_t i = 0; i < starts.size(); ++i) {
    timings[i % launches.size()].seconds.push_back(
        runtime::Event::elapsed_seconds(starts[i], ends[i]));
  }
  for (Timing& timing : timings) std::sort(timing.seconds.begin(), timing.seconds.end());
  return timings;
}

Timing time_on_gpu(const Launch& launch, const compiler::DeviceTensors& tensors) {
  return time_in_turn({launch}, tensors, kGpuRuns).front();
}

}  // namespace tilewright::library
