#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/error_text.h"
#include "kernels/attention_ranks_case.h"

// Attention whose keys go round the ranks, and its gradients.
namespace tilewright::kernels {
namespace {

using test_ranks::check_entry;
using test_ranks::small;
using testing::HasSubstr;

// Of any heads, with tails, masks, halves of an odd number of rows, and nothing at all.
TEST(RingAttention, AgreesWithFloat64OnTheInterpreter) {
  const std::vector<std::string> masked = {"ranks=2",     "queries=21", "keys=17",
                                           "causal=true", "window=20",  "shards=zig_zag",
                                           "softcap=15",  "sinks=true", "batch=2"};
  const std::vector<std::string> of_three = {"ranks=3", "queries=20", "keys=33", "causal=true",
                                             "batch=3"};
  for (const char* name : {"ring_attention", "ring_varlen_attention", "ring_attention_backward",
                           "ring_varlen_attention_backward"}) {
    SCOPED_TRACE(name);
    std::vector<std::string> settings = masked;
    if (std::string(name).find("backward") != std::string::npos) {
      settings.push_back("lse_gradient=true");
    }
    check_entry(name, settings, "interpreter");
    check_entry(name, of_three, "interpreter");
  }
  // The first rows see no key of any rank.
  check_entry("ring_attention", {"ranks=2", "queries=21", "keys=17", "causal=true"}, "interpreter");
  check_entry("ring_attention_backward", {"ranks=2", "queries=0", "keys=5"}, "interpreter");
  check_entry("ring_varlen_attention", {"ranks=4", "queries=5", "keys=1", "batch=1"},
              "interpreter");
  check_entry("sequence_parallel_varlen_attention_backward",
              {"ranks=2", "queries=45", "keys=41", "batch=3", "causal=true"}, "interpreter");
  check_entry("sequence_parallel_varlen_attention_backward",
              {"ranks=3", "queries=20", "keys=33", "batch=2", "sinks=true"}, "interpreter");
}

// Their weight of a large sink is infinite, and they have no part in its gradient.
TEST(RingAttention, RowsOfNoSequenceBesideLargeSinks) {
  library::Workload work = library::make_workload(find_kernel("ring_varlen_attention_backward"),
                                                  {"ranks=2", "queries=20", "keys=20", "batch=2",
                                                   "heads=2", "kv_heads=1", "dim=16", "sinks=true"},
                                                  {}, 1);
  std::vector<TensorRef> tensors;
  std::vector<const HostTensor*> gradients;
  for (std::size_t i = 0; i < work.tensors.size(); ++i) {
    HostTensor& tensor = work.tensors[i];
    const std::string& name = work.parameters[i]->name;
    if (name.rfind("cu_seqlens", 0) == 0) tensor = HostTensor::from_values(i32, {3}, {5, 25, 35});
    for (std::int64_t j = 0; name == "sinks" && j < 2; ++j) tensor.set({j}, 100);
    for (std::int64_t j = 0; name == "LSE" && j < tensor.elements(); ++j) tensor.set_flat(j, 103);
    if (name == "dsinks") gradients.push_back(&tensor);
    tensors.push_back(ref(tensor));
  }
  compile(*work.kernel, work.options, "interpreter").run(tensors);
  ASSERT_FALSE(gradients.empty());
  for (const HostTensor* gradient : gradients) {
    for (std::int64_t j = 0; j < 2; ++j) EXPECT_TRUE(std::isfinite(gradient->at({j}))) << j;
  }
}

// Halves of an odd number of rows, a piece that sees nothing of a rank, and several tiles of it.
TEST(RingAttention, ExplicitSteps) {
  for (const std::vector<std::string>& settings : std::vector<std::vector<std::string>>{
           {"schedule=sm90", "ranks=2", "queries=149", "keys=149", "causal=true", "shards=zig_zag",
            "sinks=true"},
           {"schedule=sm90", "ranks=3", "queries=21", "keys=70", "batch=2"},
           {"schedule=sm90", "ranks=3", "queries=20", "keys=20", "causal=true", "softcap=15"}}) {
    check_entry("ring_attention", settings, "sim:sm_90a");
  }
  SequenceParallelAttention o = small(2, false);
  o.attention.window = 5;
  o.attention.causal = true;
  EXPECT_THAT(test::usage_error_of([&] { ring_attention_sm90(o); }), HasSubstr("window is 5"));
  const auto refused = [&] {
    return test::usage_error_of([&] { ring_attention_backward_sm90(o); });
  };
  EXPECT_THAT(refused(), HasSubstr("window is 5"));
  o.attention.window = 0;
  o.attention.dim_v = 144;
  EXPECT_THAT(refused(), HasSubstr("dim_v is 144"));
  EXPECT_THAT(refused(), HasSubstr("fix: take a multiple of 16 up to 128, or the tile level"));
}

// Halves that are no whole blocks, keys that a step shows to nobody, who adds last and who does not
// convert what is summed, and nothing at all.
TEST(RingAttention, ExplicitStepsOfGradients) {
  for (const std::vector<std::string>& settings : std::vector<std::vector<std::string>>{
           {"ranks=2", "queries=149", "keys=149", "causal=true", "shards=zig_zag"},
           {"ranks=4", "queries=20", "keys=20", "causal=true", "dim=64", "sinks=true",
            "lse_gradient=true"},
           {"ranks=3", "queries=21", "keys=140", "softcap=15", "dim=80"},
           {"ranks=2", "queries=5", "keys=0"}}) {
    std::vector<std::string> all = {"schedule=sm90", "heads=2", "kv_heads=1"};
    all.insert(all.end(), settings.begin(), settings.end());
    check_entry("ring_attention_backward", all, "sim:sm_90a");
  }
}

// What a rank has at a step comes while it works at the step before, and ranks are a run ahead of
// each other.
TEST(RingAttention, IsWithoutFaultsOnSimulatedGpus) {
  SequenceParallelAttention o = small(3, true);
  o.attention.heads = o.attention.kv_heads = 1;
  o.attention.dim = o.attention.dim_v = 16;
  o.attention.block_q = o.attention.block_k = 64;
  SequenceParallelAttention explicit_steps = o;
  explicit_steps.attention = with_sm90_backward_blocks(o.attention);
  const DimValues rows = {{"batch", 1}, {"queries", 20}},
                  both = {{"batch", 1}, {"queries", 20}, {"keys", 20}};
  for (const auto& [program, sizes] : std::vector<std::pair<Program, DimValues>>{
           {ring_attention(o), both},
           {ring_attention_backward(o), both},
           {ring_attention_sm90(o), both},
           {ring_attention_backward_sm90(explicit_steps), rows}}) {
    ProgramMemory memory(program, sizes, 7);
    SimulationOptions options;
    options.schedules = 4;
    options.runs = 3;
    const SimulationReport report = simulate(program, memory, options);
    EXPECT_TRUE(report.ok()) << report.faults.front().text;
  }
}

}  // namespace
}  // namespace tilewright::kernels
