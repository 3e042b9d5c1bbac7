#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "compiler/device_tensors.h"
#include "kernels/execution.h"
#include "library/accuracy.h"
#include "library/workload.h"

// Calls of attention backward by its options, which a GPU and the simulated one both make.
namespace tilewright::test {

struct GradientCall {
  std::string name;
  std::string kernel;
  std::vector<std::string> settings;
};

inline void PrintTo(const GradientCall& call, std::ostream* out) { *out << call.name; }

// Every option with both schedules, and lengths around blocks of 64 and 128 queries, and of 128
// keys. Small enough to be simulated.
inline std::vector<GradientCall> gradient_calls() {
  std::vector<GradientCall> calls;
  const std::vector<std::pair<std::string, std::vector<std::string>>> options = {
      {"Full", {"queries=129", "keys=77"}},
      {"OneOfEach", {"queries=1", "keys=1", "batch=3"}},
      {"OneQuery", {"queries=1", "keys=129"}},
      {"OneKey", {"queries=129", "keys=1"}},
      {"NoQueries", {"queries=0", "keys=77"}},
      {"NoKeys", {"queries=77", "keys=0"}},
      {"Causal", {"queries=129", "keys=129", "causal=true"}},
      // Rows that see nothing; keys that nobody sees.
      {"CausalMoreQueries", {"queries=129", "keys=77", "causal=true"}},
      {"CausalMoreKeys", {"queries=77", "keys=129", "causal=true"}},
      {"Window", {"queries=129", "keys=200", "causal=true", "window=30"}},
      {"SharedHeads", {"queries=77", "keys=129", "heads=6", "batch=2", "causal=true"}},
      {"OneHeadOfKeys", {"queries=77", "keys=129", "heads=4", "kv_heads=1"}},
      {"Softcap", {"queries=77", "keys=129", "causal=true", "softcap=3"}},
      {"Sinks", {"queries=129", "keys=77", "causal=true", "sinks=true"}},
      {"LseGradient", {"queries=77", "keys=129", "lse_gradient=true"}},
      {"All",
       {"queries=129", "keys=129", "causal=true", "window=70", "softcap=3", "sinks=true",
        "lse_gradient=true", "dtype=f16"}},
  };
  for (const auto& [schedule, title] :
       {std::pair("tile", "Tile"), {"ordered", "Ordered"}, {"atomic", "Atomic"}}) {
    for (const char* dim : {"64", "128"}) {
      for (const auto& [name, differs] : options) {
        std::vector<std::string> settings = {std::string("schedule=") + schedule,
                                             std::string("dim=") + dim};
        // The first of two stands.
        const auto set = [&](const std::string& option, const std::string& value) {
          for (const std::string& each : differs) {
            if (each.rfind(option + "=", 0) == 0) return;
          }
          settings.push_back(option + "=" + value);
        };
        set("batch", "1");
        set("heads", "2");
        set("kv_heads", name == "SharedHeads" ? "2" : "1");
        settings.insert(settings.end(), differs.begin(), differs.end());
        calls.push_back({std::string(title) + dim + name, "attention_backward", settings});
      }
    }
  }
  const std::vector<std::pair<std::string, std::vector<std::string>>> packed = {
      {"Full", {}},
      {"Causal", {"causal=true"}},
      {"WindowSoftcap", {"causal=true", "window=30", "softcap=3"}},
      {"SinksLseGradient", {"causal=true", "sinks=true", "lse_gradient=true"}},
  };
  for (const char* dim : {"64", "128"}) {
    for (const auto& [name, differs] : packed) {
      std::vector<std::string> settings = {
          "schedule=tile", std::string("dim=") + dim,   "heads=2",
          "kv_heads=1",    "lengths_q=129,1,0,77,1,40", "lengths_k=77,1,129,0,129,100"};
      settings.insert(settings.end(), differs.begin(), differs.end());
      calls.push_back({std::string("Packed") + dim + name, "attention_varlen_backward", settings});
    }
  }
  return calls;
}

// The call's tensors, each among elements that are not a number: behind the ends of an axis.
class PaddedCall {
 public:
  explicit PaddedCall(const GradientCall& call, std::uint64_t seed = 3)
      : workload_(library::make_workload(find_kernel(call.kernel), call.settings, {}, seed)) {
    for (const HostTensor& tensor : workload_.tensors) {
      Padded padded(tensor.dtype(), tensor.shape());
      std::int64_t next = 0;
      padded.each(
          [&](const std::vector<std::int64_t>& index) { padded.set(index, tensor.flat(next++)); });
      tensors_.push_back(std::move(padded));
    }
  }
  const library::Workload& workload() const { return workload_; }
  std::size_t size() const { return tensors_.size(); }
  bool is_output(std::size_t tensor) const { return workload_.parameters[tensor]->is_output; }
  Padded& tensor(std::size_t number) { return tensors_[number]; }

  // Holds the outputs against float64; `got` are all tensors behind a run.
  void check(const std::vector<const Padded*>& got, library::Executed by) {
    for (std::size_t i = 0; i < size(); ++i) {
      if (!is_output(i)) continue;
      EXPECT_EQ(got[i]->written_outside(), 0) << workload_.parameters[i]->name;
      const std::vector<double> values = got[i]->values();
      HostTensor& output = workload_.tensors[i];
      for (std::int64_t k = 0; k < output.elements(); ++k) {
        output.set_flat(k, values[static_cast<std::size_t>(k)]);
      }
    }
    if (!reference_) reference_ = library::reference_of(workload_, by);
    const library::Comparison comparison = library::compare(workload_, *reference_);
    EXPECT_TRUE(comparison.ok()) << comparison.text();
  }

 private:
  library::Workload workload_;
  std::vector<Padded> tensors_;
  std::optional<library::Reference> reference_;
};

}  // namespace tilewright::test
