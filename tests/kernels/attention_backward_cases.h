#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
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
  // Its place in the table of options by schedules and dims.
  std::size_t option = 0, column = 0;
};

inline void PrintTo(const GradientCall& call, std::ostream* out) { *out << call.name; }

// Every option with both schedules, and lengths around blocks of 64 and 128 queries, and of keys.
// Small enough to be simulated.
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
  using Dims = std::pair<std::string, std::string>;  // dim and dim_v
  const std::vector<std::pair<std::string, std::vector<Dims>>> schedules = {
      {"tile", {{"64", "64"}, {"128", "128"}}},
      {"ordered", {{"64", "64"}, {"128", "128"}, {"256", "256"}, {"192", "128"}}},
      {"atomic", {{"64", "64"}, {"128", "128"}, {"256", "256"}, {"192", "128"}}},
      {"split", {{"64", "64"}, {"128", "128"}}}};
  std::size_t column = 0;
  for (const auto& [schedule, dims] : schedules) {
    for (const auto& [dim, dim_v] : dims) {
      ++column;
      for (std::size_t option = 0; option < options.size(); ++option) {
        const auto& [name, differs] = options[option];
        // Its dK is 0 but for the rounding of sums, which grows with dim.
        if (name == "OneKey" && dim == "256") continue;
        std::vector<std::string> settings = {"schedule=" + schedule, "dim=" + dim,
                                             "dim_v=" + dim_v};
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
        std::string title = schedule;
        title.front() = static_cast<char>(std::toupper(title.front()));
        calls.push_back({title + dim + name, "attention_backward", settings, option, column});
      }
    }
    ++column;  // the next schedule has the options that this one does not have with the same dims
  }
  const std::vector<std::pair<std::string, std::vector<std::string>>> packed = {
      {"Full", {}},
      {"Causal", {"causal=true"}},
      {"WindowSoftcap", {"causal=true", "window=30", "softcap=3"}},
      {"SinksLseGradient", {"causal=true", "sinks=true", "lse_gradient=true"}},
      {"OneHeadOfKeys", {"causal=true"}},
  };
  for (const auto& [schedule, title] : {std::pair("tile", "Packed"),
                                        {"ordered", "PackedOrdered"},
                                        {"atomic", "PackedAtomic"},
                                        {"split", "PackedSplit"}}) {
    for (const char* dim : {"64", "128"}) {
      ++column;
      for (std::size_t option = 0; option < packed.size(); ++option) {
        const auto& [name, differs] = packed[option];
        std::vector<std::string> settings = {std::string("schedule=") + schedule,
                                             std::string("dim=") + dim,
                                             name == "OneHeadOfKeys" ? "heads=4" : "heads=2",
                                             "kv_heads=1",
                                             "lengths_q=129,1,0,77,1,40",
                                             "lengths_k=77,1,129,0,129,100"};
        settings.insert(settings.end(), differs.begin(), differs.end());
        calls.push_back({std::string(title) + dim + name, "attention_varlen_backward", settings,
                         option, column});
      }
    }
    ++column;
  }
  // Many sequences of many heads, whose blocks of keys are converted in several spans: one has its
  // blocks on both sides of a border.
  for (const char* causal : {"false", "true"}) {
    calls.push_back(
        {std::string("PackedSpans") + (causal[0] == 't' ? "Causal" : "Full"),
         "attention_varlen_backward",
         {"schedule=ordered", "dim=16", "dim_v=16", "heads=16", "kv_heads=16",
          std::string("causal=") + causal, "lengths_q=3,2,0,1,140,5,7,2,2,3,1,1,2,2,4,1,2",
          "lengths_k=2,3,4,0,400,260,1,2,2,2,3,4,1,1,2,2,2"},
         std::size_t{causal[0] == 'f'}});
  }
  // Dims whose rows do not fill shared memory's, and of which dQ is added as it is. Heads share
  // keys or have their own, whose gradients then leave without a sum over heads.
  const std::vector<std::pair<const char*, const char*>> dims = {
      {"16", "16"},   {"32", "32"},   {"48", "64"},   {"64", "32"},   {"80", "80"},
      {"96", "96"},   {"96", "64"},   {"112", "128"}, {"128", "112"}, {"128", "16"},
      {"256", "256"}, {"192", "128"}, {"160", "160"}, {"144", "80"},  {"64", "160"},
      {"256", "128"}, {"256", "192"}};
  for (const auto& [dim, dim_v] : dims) {
    for (const auto& [schedule, title] : {std::pair("ordered", "Ordered"), {"atomic", "Atomic"}}) {
      const bool has_own_keys = title[0] == 'A' || std::string(dim) == "192";
      const std::vector<std::string> settings = {std::string("schedule=") + schedule,
                                                 std::string("dim=") + dim,
                                                 std::string("dim_v=") + dim_v,
                                                 "heads=2",
                                                 has_own_keys ? "kv_heads=2" : "kv_heads=1",
                                                 "causal=true",
                                                 "softcap=3"};
      const std::string name = std::string(dim) + "And" + dim_v;
      GradientCall fixed{title + name, "attention_backward", settings};
      fixed.settings.insert(fixed.settings.end(), {"batch=1", "queries=129", "keys=140"});
      GradientCall ragged{"Packed" + (title + name), "attention_varlen_backward", settings};
      ragged.settings.insert(ragged.settings.end(),
                             {"lengths_q=129,1,0,77,1,40", "lengths_k=77,1,129,0,129,100"});
      calls.insert(calls.end(), {fixed, ragged});
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
