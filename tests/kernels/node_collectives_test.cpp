#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "common/error_text.h"
#include "kernels/reference_exchanges.h"
#include "tilewright/compile.h"
#include "tilewright/kernels/nodes.h"

// Collectives over nodes, on the interpreter and on simulated GPUs, against float64. That data
// passes by NCCL instead is tested in tests/processes.
namespace tilewright::kernels {
namespace {

using testing::HasSubstr;

using References = std::vector<std::vector<double>>;
struct OverNodes {
  const char* name;
  Program (*program)(const NodeCollective&, SourceLocation);
  Program (*meaning)(const Collective&, SourceLocation);
  References (*reference)(const std::vector<HostTensor>&);
};
const OverNodes kOverNodes[] = {
    {"all_gather", all_gather_nodes, all_gather, gathered_reference},
    {"reduce_scatter", reduce_scatter_nodes, reduce_scatter, parts_summed_reference},
    {"vector_all_to_all", vector_all_to_all_nodes, vector_all_to_all, exchanged_reference}};

// Of sums in f32 that are rounded once, beside 8 summands.
double bound_of(DType dtype, double wanted) {
  const double last_place = dtype == bf16 ? 4.1e-3 : dtype == f16 ? 6e-4 : 1e-6;
  return last_place * std::abs(wanted) + 2e-6;
}

int elements_off(const OverNodes& op, DType dtype, ProgramMemory& memory) {
  std::vector<HostTensor> x;
  for (const std::vector<HostTensor>& of_rank : memory.tensors) x.push_back(of_rank[0]);
  const References wanted = op.reference(x);
  int off = 0;
  for (std::size_t rank = 0; rank < x.size(); ++rank) {
    const HostTensor& y = memory.tensors[rank][1];
    for (std::int64_t i = 0; i < y.elements(); ++i) {
      const double w = wanted[rank][static_cast<std::size_t>(i)];
      off += std::abs(y.flat(i) - w) <= bound_of(dtype, w) ? 0 : 1;  // what is no number is off
    }
  }
  return off;
}

// On what Y holds before the run, which is no number.
int off_on_the_interpreter(const OverNodes& op, DType dtype, const Program& program,
                           std::int64_t count) {
  ProgramMemory memory(program, {{"count", count}}, 3);
  std::vector<TensorRef> tensors;
  for (std::vector<HostTensor>& of_rank : memory.tensors) {
    for (const std::size_t i : {0, 1}) tensors.push_back(ref(of_rank[i]));
  }
  compile(program, "interpreter").run(tensors);
  return elements_off(op, dtype, memory);
}

TEST(NodeCollectives, AgreeWithFloat64OnTheInterpreter) {
  const NodeCollective cases[] = {{{bf16, 4}, 2}, {{f32, 6}, 3}, {{f16, 4}, 1}, {{bf16, 3}, 3}};
  for (const OverNodes& op : kOverNodes) {
    for (const NodeCollective& c : cases) {
      SCOPED_TRACE(testing::Message()
                   << op.name << ", " << c.vectors.ranks << " ranks, " << c.nodes << " nodes");
      for (const std::int64_t count : {0, 1, 1100}) {
        EXPECT_EQ(off_on_the_interpreter(op, c.vectors.dtype, op.program(c, {}), count), 0)
            << count;
      }
      EXPECT_EQ(off_on_the_interpreter(op, c.vectors.dtype, op.meaning(c.vectors, {}), 1100), 0);
    }
  }
}

// Streams, copies and words in any order, several runs ahead of each other.
TEST(NodeCollectives, AreWithoutFaultsOnSimulatedGpus) {
  for (const OverNodes& op : kOverNodes) {
    SCOPED_TRACE(op.name);
    const Program program = op.program({{bf16, 4}, 2}, {});
    ProgramMemory memory(program, {{"count", 1040}}, 3);
    SimulationOptions options;
    options.runs = 3;
    options.schedules = 2;
    options.multiprocessors = 1;
    const SimulationReport report = simulate(program, memory, options);
    EXPECT_TRUE(report.ok()) << report.faults.front().text;
    EXPECT_EQ(elements_off(op, bf16, memory), 0);
    memory.tensors[3][0].set_flat(7, memory.tensors[3][0].flat(7) + 0.25);
    EXPECT_GT(elements_off(op, bf16, memory), 0);
  }
}

TEST(NodeCollectives, WhatTheyDoNotTake) {
  EXPECT_THAT(test::usage_error_of([] {
                all_gather_nodes({{bf16, 4}, 3});
              }),
              HasSubstr("all_gather_nodes: 3 nodes for 4 ranks"));
  EXPECT_THAT(test::usage_error_of([] {
                reduce_scatter_nodes({{i32, 4}, 2});
              }),
              HasSubstr("reduce_scatter_nodes: vectors of i32"));
}

}  // namespace
}  // namespace tilewright::kernels
