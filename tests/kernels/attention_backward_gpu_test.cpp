#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/attention_backward_cases.h"
#include "kernels/gpu.h"
#include "tilewright/library_executable.h"

namespace tilewright {
namespace {

using test::DeviceTensor;
using test::GradientCall;

// A call's tensors on the GPU, the padding too.
class CallOnDevice {
 public:
  CallOnDevice(const runtime::Device& device, const runtime::Stream& stream,
               const GradientCall& call)
      : call_(call) {
    for (std::size_t i = 0; i < call_.size(); ++i) {
      tensors_.push_back(std::make_unique<DeviceTensor>(device, stream, call_.tensor(i)));
    }
  }
  const OptionValues& options() const { return call_.workload().options; }
  void poison(const runtime::Stream& stream) const {
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      if (call_.is_output(i)) tensors_[i]->poison(stream);
    }
  }
  void run(const LibraryExecutable& executable, const runtime::Stream& stream) const {
    std::vector<TensorRef> refs;
    for (const auto& tensor : tensors_) refs.push_back(tensor->ref());
    executable.run(refs, stream.handle());
  }
  void check(const runtime::Stream& stream) {
    std::vector<const test::Padded*> got;
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      if (call_.is_output(i)) tensors_[i]->download(stream);
      got.push_back(&tensors_[i]->host);
    }
    call_.check(got, library::Executed::by_hardware);
  }
  // Of the outputs, one behind the other, in memory that the next call writes over: new memory for
  // each of a thousand launches takes longer than they do.
  std::span<const std::byte> bits(const runtime::Stream& stream) {
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      if (call_.is_output(i)) bytes += tensors_[i]->bytes();
    }
    if (!bits_) bits_.emplace(stream.device(), bytes);
    auto* next = static_cast<std::byte*>(bits_->data());
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      if (!call_.is_output(i)) continue;
      tensors_[i]->download(next, stream);
      next += tensors_[i]->bytes();
    }
    stream.synchronize();
    return {static_cast<const std::byte*>(bits_->data()), bytes};
  }

 private:
  test::PaddedCall call_;
  std::vector<std::unique_ptr<DeviceTensor>> tensors_;
  std::optional<runtime::PinnedBuffer> bits_;
};

class AttentionBackwardGpuTest : public test::HopperTest {
 protected:
  void check(const GradientCall& call) const {
    CallOnDevice on_device(device(), stream(), call);
    const LibraryExecutable executable =
        compile(find_kernel(call.kernel), on_device.options(), "cuda");
    // The second launch finds sums and counters as the first one left them.
    for (int launch = 0; launch < 2; ++launch) {
      on_device.poison(stream());
      on_device.run(executable, stream());
      on_device.check(stream());
    }
  }
};

class GradientCalls : public AttentionBackwardGpuTest,
                      public testing::WithParamInterface<GradientCall> {};
INSTANTIATE_TEST_SUITE_P(Calls, GradientCalls, testing::ValuesIn(test::gradient_calls()),
                         [](const auto& info) { return info.param.name; });

TEST_P(GradientCalls, AgreeWithFloat64) { check(GetParam()); }

// As many blocks of keys as multiprocessors, and more.
std::vector<GradientCall> long_calls() {
  std::vector<GradientCall> calls;
  for (const char* schedule : {"tile", "ordered", "atomic"}) {
    for (const char* dim : {"64", "128"}) {
      for (const char* causal : {"false", "true"}) {
        calls.push_back({std::string(schedule) + "_" + dim + (*causal == 't' ? "_causal" : "_full"),
                         "attention_backward",
                         {std::string("schedule=") + schedule, std::string("dim=") + dim,
                          std::string("causal=") + causal, "batch=2", "queries=1000", "keys=1100",
                          "heads=16", "kv_heads=8"}});
      }
    }
  }
  // Of 144 blocks of keys the last wave of 132 multiprocessors is divided.
  for (const char* dim : {"64", "96", "128"}) {
    calls.push_back({std::string("atomic_") + dim + "_last_wave",
                     "attention_backward",
                     {"schedule=atomic", std::string("dim=") + dim, "batch=1", "queries=2100",
                      "keys=1100", "heads=16", "kv_heads=16"}});
  }
  for (const char* schedule : {"ordered", "atomic"}) {
    for (const char* dim : {"192", "256"}) {
      calls.push_back(
          {std::string(schedule) + "_" + dim + "_causal",
           "attention_backward",
           {std::string("schedule=") + schedule, std::string("dim=") + dim, "causal=true",
            "batch=2", "queries=1000", "keys=1100", "heads=4", "kv_heads=4"}});
    }
  }
  return calls;
}

class LongGradientCalls : public GradientCalls {};
INSTANTIATE_TEST_SUITE_P(Calls, LongGradientCalls, testing::ValuesIn(long_calls()),
                         [](const auto& info) { return info.param.name; });

TEST_P(LongGradientCalls, AgreeWithFloat64) { check(GetParam()); }

// The schedule by default (Tile: of what that does not take), while another stream takes
// multiprocessors and memory away from it.
class DeterministicGradients : public AttentionBackwardGpuTest,
                               public testing::WithParamInterface<GradientCall> {};
INSTANTIATE_TEST_SUITE_P(
    Calls, DeterministicGradients,
    testing::Values(
        GradientCall{"Fixed",
                     "attention_backward",
                     {"batch=2", "queries=300", "keys=333", "heads=4", "kv_heads=2", "dim=128",
                      "dtype=f16", "causal=true", "sinks=true", "lse_gradient=true"}},
        GradientCall{"Tile",
                     "attention_backward",
                     {"schedule=tile", "batch=2", "queries=300", "keys=333", "heads=4",
                      "kv_heads=2", "dim=96", "causal=true"}},
        // As many blocks of keys as multiprocessors, and more.
        GradientCall{"Long",
                     "attention_backward",
                     {"batch=1", "queries=200", "keys=1100", "heads=16", "kv_heads=16", "dim=64"}},
        GradientCall{"Wide",
                     "attention_backward",
                     {"batch=1", "queries=300", "keys=1100", "heads=8", "kv_heads=8", "dim=256",
                      "causal=true"}},
        // Warpgroups that divide the products.
        GradientCall{"Divided",
                     "attention_backward",
                     {"batch=1", "queries=300", "keys=1100", "heads=8", "kv_heads=4", "dim=192",
                      "dim_v=128", "causal=true"}},
        GradientCall{"OwnKeys",
                     "attention_backward",
                     {"batch=1", "queries=700", "keys=1100", "heads=16", "kv_heads=16", "dim=128"}},
        GradientCall{"WideCausal",
                     "attention_backward",
                     {"batch=1", "queries=1100", "keys=1100", "heads=8", "kv_heads=8", "dim=256",
                      "causal=true"}},
        GradientCall{"DividedCausal",
                     "attention_backward",
                     {"batch=1", "queries=1100", "keys=1100", "heads=8", "kv_heads=8", "dim=192",
                      "dim_v=128", "causal=true"}},
        // Heads that go through the rows of a window together.
        GradientCall{"Window",
                     "attention_backward",
                     {"batch=2", "queries=1100", "keys=1100", "heads=16", "kv_heads=16", "dim=64",
                      "causal=true", "window=128"}},
        GradientCall{"Packed",
                     "attention_varlen_backward",
                     {"lengths_q=129,1,0,300", "lengths_k=77,129,77,333", "heads=4", "kv_heads=2",
                      "dim=64", "causal=true"}}),
    [](const auto& info) { return info.param.name; });

TEST_P(DeterministicGradients, AThousandLaunchesGiveTheSameBits) {
  CallOnDevice mine(device(), stream(), GetParam());
  const LibraryExecutable executable =
      compile(find_kernel(GetParam().kernel), mine.options(), "cuda");
  const CallOnDevice its(device(), stream(),
                         {"other",
                          "attention_backward",
                          {"schedule=atomic", "batch=1", "queries=1000", "keys=1000", "heads=8",
                           "kv_heads=8", "dim=64", "causal=true"}});
  const LibraryExecutable busy = compile(find_kernel("attention_backward"), its.options(), "cuda");
  const runtime::Stream other(device());
  mine.run(executable, stream());
  const std::span<const std::byte> of_first = mine.bits(stream());
  const std::vector<std::byte> first(of_first.begin(), of_first.end());
  for (int launch = 0; launch < 1000; ++launch) {
    its.run(busy, other);
    mine.poison(stream());
    mine.run(executable, stream());
    ASSERT_EQ(std::memcmp(mine.bits(stream()).data(), first.data(), first.size()), 0)
        << "launch " << launch;
  }
  other.synchronize();
}

}  // namespace
}  // namespace tilewright
