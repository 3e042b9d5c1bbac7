#include "tilewright/kernels/collectives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "common/error_text.h"
#include "library/accuracy.h"
#include "tilewright/library_executable.h"

// Collectives over ranks, on simulated GPUs and on the interpreter, against float64.
namespace tilewright::kernels {
namespace {

using testing::HasSubstr;

using Vectors = std::vector<HostTensor>;  // of each rank

// What rank `rank` should have, in float64, by the X of all.
using Expected = std::function<std::vector<double>(const Vectors& x, std::int64_t rank)>;

std::vector<double> numbers(const HostTensor& tensor, std::int64_t first, std::int64_t count) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(tensor.flat(first + i));
  return values;
}

// The part of X that is its `number`-th of `count` elements, summed.
std::vector<double> sums(const Vectors& x, std::int64_t number, std::int64_t count) {
  std::vector<double> total(static_cast<std::size_t>(count));
  for (const HostTensor& of_rank : x) {
    for (std::int64_t i = 0; i < count; ++i) {
      total[static_cast<std::size_t>(i)] += of_rank.flat(number * count + i);
    }
  }
  return total;
}

std::vector<double> all_of(const Vectors& x, std::int64_t) {
  std::vector<double> all;
  for (const HostTensor& of_rank : x) {
    const std::vector<double> own = numbers(of_rank, 0, of_rank.elements());
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}
std::vector<double> all_summed(const Vectors& x, std::int64_t) {
  return sums(x, 0, x.front().elements());
}
std::vector<double> own_summed(const Vectors& x, std::int64_t rank) {
  return sums(x, rank, x.front().elements() / static_cast<std::int64_t>(x.size()));
}
Expected that_of(std::size_t root) {
  return [root](const Vectors& x, std::int64_t) { return numbers(x[root], 0, x[root].elements()); };
}

// A sum of up to 8 numbers in f32 that is rounded once: of bf16 by half of its last place.
double rounding(DType dtype) { return dtype == bf16 ? 4.1e-3 : dtype == f16 ? 6e-4 : 1e-6; }

// How many elements are further off than rounding takes them, beside the numbers that were added.
int elements_off(const ProgramMemory& memory, DType dtype, const Expected& expected) {
  Vectors x;
  for (const std::vector<HostTensor>& of_rank : memory.tensors) x.push_back(of_rank[0]);
  int off = 0;
  for (std::size_t rank = 0; rank < x.size(); ++rank) {
    const HostTensor& y = memory.tensors[rank][1];
    const std::vector<double> wanted = expected(x, static_cast<std::int64_t>(rank));
    for (std::int64_t i = 0; i < y.elements(); ++i) {
      const double w = wanted[static_cast<std::size_t>(i)];
      const double bound = rounding(dtype) * std::abs(w) + 1e-6;
      off += std::abs(y.flat(i) - w) <= bound ? 0 : 1;  // what is no number is off
    }
  }
  return off;
}

struct VectorRuns {
  std::int64_t count = 1000;
  std::uint64_t seed = 0;
  int schedules = 1, runs = 3, multiprocessors = 2;
};

ProgramMemory collected(const Program& program, const VectorRuns& how) {
  ProgramMemory memory(program, {{"count", how.count}}, 3);
  SimulationOptions options;
  options.seed = how.seed;
  options.schedules = how.schedules;
  options.runs = how.runs;
  options.multiprocessors = how.multiprocessors;
  const SimulationReport report = simulate(program, memory, options);
  EXPECT_TRUE(report.ok()) << report.faults.front().text;
  return memory;
}

void check_collective_of(const Program& program, const Collective& c, const VectorRuns& how,
                         const Expected& expected) {
  SCOPED_TRACE(testing::Message() << program.name() << ", " << c.ranks << " ranks, " << how.count
                                  << " of " << name_of(c.dtype));
  EXPECT_EQ(elements_off(collected(program, how), c.dtype, expected), 0);
}

void check_all(const Collective& c, const VectorRuns& how) {
  check_collective_of(all_gather_sm90(c), c, how, all_of);
  check_collective_of(reduce_scatter_sm90(c), c, how, own_summed);
  const int root = c.ranks - 1;
  for (const Shots shots : {Shots::one, Shots::two}) {
    SCOPED_TRACE(shots == Shots::one ? "one shot" : "two shots");
    check_collective_of(all_reduce_sm90(c, shots), c, how, all_summed);
    check_collective_of(broadcast_sm90(c, root, shots), c, how, that_of(root));
  }
}

TEST(CollectivesTest, OfTwoFourAndEightRanks) {
  check_all({bf16, 2}, {.count = 9000});
  check_all({f32, 4}, {.count = 5004, .runs = 2, .multiprocessors = 1});
  check_all({f16, 8}, {.count = 3000, .runs = 2, .multiprocessors = 1});
}

// Fewer elements than ranks have parts, or none.
TEST(CollectivesTest, LittleAndNothing) {
  check_all({bf16, 3}, {.count = 8, .runs = 2, .multiprocessors = 1});
  check_all({bf16, 2}, {.count = 0, .runs = 2, .multiprocessors = 1});
}

// Whatever comes first, however it travels, and in every rank.
TEST(CollectivesTest, SumsHaveTheSameBits) {
  const Collective c{bf16, 3};
  const HostTensor first =
      collected(all_reduce_sm90(c, Shots::one), {.multiprocessors = 1}).tensors[0][1];
  for (const Shots shots : {Shots::one, Shots::two}) {
    const ProgramMemory memory =
        collected(all_reduce_sm90(c, shots), {.seed = 9, .runs = 2, .multiprocessors = 1});
    for (const std::vector<HostTensor>& of_rank : memory.tensors) EXPECT_EQ(of_rank[1], first);
  }
}

TEST(CollectivesTest, BoundSeesASummandThatIsLeftOut) {
  const Collective c{bf16, 2};
  ProgramMemory memory = collected(all_reduce_sm90(c, Shots::one), {.multiprocessors = 1});
  ASSERT_EQ(elements_off(memory, bf16, all_summed), 0);
  memory.tensors[1][0].set_flat(5, memory.tensors[1][0].flat(5) + 0.25);
  EXPECT_GT(elements_off(memory, bf16, all_summed), 0);
}

TEST(CollectivesTest, WhatTheyDoNotTake) {
  EXPECT_THAT(test::usage_error_of([] { all_gather_sm90({bf16, 9}); }), HasSubstr("9 ranks"));
  EXPECT_THAT(test::usage_error_of([] { all_reduce({i32, 2}); }), HasSubstr("vectors of i32"));
  EXPECT_THAT(test::usage_error_of([] {
                broadcast_sm90({bf16, 2}, 2, Shots::one);
              }),
              HasSubstr("root 2 of 2 ranks"));
  const Program program = all_gather_sm90({bf16, 2});
  EXPECT_THAT(test::usage_error_of([&] {
                ProgramMemory(program, {{"count", 12}});
              }),
              HasSubstr("count"));
}

// The entries' own meanings, references and tensors, on the interpreter.
TEST(ExchangesAndCollectives, AgreeWithFloat64OnTheInterpreter) {
  const std::vector<std::string> heads = {"batch=2", "queries=21", "heads=6"};
  for (const auto& [name, sizes] : std::vector<std::pair<const char*, std::vector<std::string>>>{
           {"all_to_all", {"keys=9", "kv_heads=1", "dim=16", "dim_v=8"}},
           {"all_to_all_varlen", {"keys=9", "kv_heads=3", "dim=16", "dim_v=8"}},
           {"all_to_all_back", {"dim_v=16"}},
           {"all_to_all_varlen_back", {"dim_v=16"}},
           {"all_gather", {}},
           {"reduce_scatter", {}},
           {"all_reduce", {}},
           {"broadcast", {"root=1"}}}) {
    SCOPED_TRACE(name);
    std::vector<std::string> settings = sizes;
    settings.push_back("ranks=3");
    const bool exchanges = std::string(name).find("to_all") != std::string::npos;
    if (exchanges) settings.insert(settings.end(), heads.begin(), heads.end());
    if (!exchanges) settings.push_back("count=1100");
    library::Workload work = library::make_workload(find_kernel(name), settings, {}, 1);
    std::vector<TensorRef> tensors;
    for (HostTensor& tensor : work.tensors) tensors.push_back(ref(tensor));
    compile(*work.kernel, work.options, "interpreter").run(tensors);
    const library::Comparison comparison = library::compare(work, library::reference_of(work));
    EXPECT_TRUE(comparison.ok()) << comparison.text();
  }
}

}  // namespace
}  // namespace tilewright::kernels
