#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "check/ranks_subject.h"
#include "kernels/all_to_all_parts.h"
#include "kernels/collectives_sm90.h"
#include "kernels/rank_words.h"
#include "tilewright/kernels/attention_ranks.h"

// Faults between the ranks of exchanges and collectives, seeded at every site, and found: signals
// behind a wait for the copies' sources alone (16), relaxed, of the GPU alone, early, or none,
// waits that are relaxed or left out (23), and words that do not count up with the runs (24). A
// rank may be a run ahead in each, and a kernel behind the exchange still read what it has brought.
namespace tilewright::checks {
namespace {

using namespace kernels;

void expect_faults_found(const RanksSubject& subject, int signals, int copies) {
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    ASSERT_EQ(subject.symptom(subject.machine(), seed, 3), "");
  }
  EXPECT_GE(subject.expect_found(23, 3), signals);
  EXPECT_GE(subject.expect_found(24, 3), 1);
  EXPECT_EQ(subject.expect_found(16, 3), copies);
}

// What an exchange gives is copied on: the next run's comes in while that may still read.
Program exchange_and_copy(const AllToAll& o, Direction direction) {
  const bool back = direction == Direction::back;
  Program program("exchange", o.ranks);
  const ExchangeDims dims(program, o, direction);
  std::vector<Part> tensors;
  std::vector<std::pair<Buffer, Buffer>> results;
  for (const ExchangedHeads& part : exchanged(o, direction)) {
    tensors.push_back(program.in(std::string("from_") + part.name, o.dtype,
                                 back ? dims.all(part) : dims.own(part)));
  }
  for (const ExchangedHeads& part : exchanged(o, direction)) {
    const std::vector<Dim> shape = back ? dims.own(part) : dims.all(part);
    const std::string name = part.name;
    results.emplace_back(program.out(name, o.dtype, shape),
                         program.out("kept_" + name, o.dtype, shape));
    tensors.push_back(results.back().first);
  }
  tensors.push_back(program.signals("begun", RanksBegin::words(o.ranks)));
  tensors.push_back(program.signals("arrived", RanksArrive::words(o.ranks)));
  const Kernel kernel = all_to_all_kernel_sm90(o, direction, {"exchange", {}});
  program.on_each_rank([&](const Rank& rank) {
    rank.stream().launch(kernel, tensors);
    for (const auto& [result, kept] : results) rank.stream().copy(kept, result);
  });
  return program;
}

TEST(ExchangeFaults, OfAnAllToAll) {
  AllToAll o;
  o.heads = o.kv_heads = 2;
  o.dim = o.dim_v = 16;
  RanksSubject there(exchange_and_copy(o, Direction::to_heads),
                     {{"batch", 1}, {"queries", 70}, {"keys", 9}}, 2);
  RanksSubject back(exchange_and_copy(o, Direction::back), {{"batch", 1}, {"queries", 70}}, 2);
  for (RanksSubject* subject : {&there, &back}) {
    subject->strict = true;  // what TMA writes others may have read by threads
    expect_faults_found(*subject, 11, 1);
  }
}

// Each rank stores what it makes of its heads where the rows belong, and tells so behind all of its
// warps.
TEST(ExchangeFaults, OfAttentionByHeads) {
  SequenceParallelAttention o;
  Attention& a = o.attention;
  a.heads = a.kv_heads = 2;
  a.dim = a.dim_v = 16;
  a.block_q = 64;
  a.block_k = 32;
  o.ranks = 2;
  RanksSubject subject(sequence_parallel_attention_heads_sm90(o),
                       {{"batch", 1}, {"queries", 70}, {"keys", 16}}, 2);
  subject.has_callers = true;
  ASSERT_EQ(subject.symptom(subject.machine(), 0, 2), "");
  EXPECT_GE(subject.expect_found(20, 2), 1);
}

struct OfVectors {
  Kernel kernel;
  bool many_x = false, many_y = false;
  Dim slots = 0;
  std::vector<const char*> words;
};

// As of exchanges.
void expect_faults_found(const Collective& c, const OfVectors& of, int signals) {
  SCOPED_TRACE(of.kernel.name());
  Program program("collective", c.ranks);
  const Dim count = program.dim("count", multiple_of(8));
  const auto shape = [&](bool many) {
    return many ? std::vector<Dim>{c.ranks, count} : std::vector<Dim>{count};
  };
  const Buffer X = program.in("X", c.dtype, shape(of.many_x));
  const Buffer Y = program.out("Y", c.dtype, shape(of.many_y));
  const Buffer kept = program.out("kept", c.dtype, shape(of.many_y));
  std::vector<Part> tensors{X, Y};
  if (!(of.slots == Dim(0))) {
    tensors.push_back(program.scratch("slots", c.dtype, {2, c.ranks, of.slots}));
  }
  for (const char* name : of.words) {
    const bool begins = name == std::string("begun");
    tensors.push_back(
        program.signals(name, begins ? RanksBegin::words(c.ranks) : RanksArrive::words(c.ranks)));
  }
  program.on_each_rank([&](const Rank& rank) {
    rank.stream().launch(of.kernel, tensors);
    rank.stream().copy(kept, Y);
  });
  expect_faults_found({program, {{"count", 4104}}, 2}, signals, 0);
}

TEST(ExchangeFaults, OfCollectives) {
  const Collective two{bf16, 2}, three{bf16, 3};
  const Dim count = Dim::symbol("count", multiple_of(8));
  expect_faults_found(
      two, {all_gather_kernel_sm90(two, {"all_gather", {}}), false, true, 0, {"begun", "arrived"}},
      10);
  expect_faults_found(
      two,
      {reduce_scatter_kernel_sm90(two, {"reduce_scatter", {}}), true, false, count, {"arrived"}},
      6);
  expect_faults_found(
      two,
      {all_reduce_kernel_sm90(two, Shots::one, {"one_shot", {}}), false, false, count, {"arrived"}},
      6);
  expect_faults_found(two,
                      {all_reduce_kernel_sm90(two, Shots::two, {"two_shots", {}}),
                       false,
                       false,
                       part_of_vector(two, count, 2),
                       {"arrived", "summed"}},
                      10);
  expect_faults_found(three,
                      {broadcast_kernel_sm90(three, 1, Shots::two, {"broadcast", {}}),
                       false,
                       false,
                       0,
                       {"begun", "arrived", "handed_on"}},
                      12);
}

}  // namespace
}  // namespace tilewright::checks
