#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "compiler/compile_to_machine.h"
#include "ir/program.h"
#include "library/program_simulation.h"
#include "tilewright/asynchronous.h"
#include "tilewright/kernels/attention_ranks.h"
#include "tilewright/program.h"
#include "tilewright/ranks.h"

// Drivers copy within a GPU by a kernel. One that holds all multiprocessors and waits for such a
// copy stands still; copies to other GPUs have engines of their own.
namespace tilewright::checks {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr int kMultiprocessors = 3, kSeeds = 8;

// The first fault of some schedules of two runs: its kind, what it says, and what is missing.
std::string fault_of(const Program& program, const ir::Program& bound, const DimValues& sizes) {
  std::vector<ir::Kernel> kernels;
  for (const auto& kernel : bound.kernels) {
    kernels.push_back(compiler::compile_to_machine(*kernel, ir::default_target()).kernel);
  }
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    simulator::MachineOptions options;
    options.seed = seed;
    options.multiprocessors = options.resident = kMultiprocessors;
    const simulator::MachineReport report = library::simulate_program(
        bound, kernels, ProgramMemory(program, sizes).tensors, nullptr, options, 2);
    if (report.ok()) continue;
    const simulator::Fault& fault = report.faults.front();
    return fault.kind + ": " + fault.message + "\n" + fault.missing;
  }
  return {};
}

struct Copied {
  int ctas = kMultiprocessors;
  bool fills = true;     // a CTA takes a multiprocessor's registers, else its shared memory
  bool before = false;   // the kernel, in its stream
  bool to_next = false;  // to the next rank, whose kernel waits for it
  int zeros = 0;         // instead of copies so many rows are set to zero; one has a word
};

// Each CTA waits until the tile is there, and stores it.
Kernel waiting(const Copied& how) {
  Kernel kernel("waiting");
  const Tensor X = kernel.in("X", f32, {16, 32});
  const Tensor there = kernel.symmetric("there", i32, {1});
  const Tensor Y = kernel.out("Y", f32, {how.ctas * 16, 32});
  kernel.ctas(how.ctas);
  const SharedTile room(kernel, "room", f32, how.fills ? 64 : 1024, 32);
  const auto wait = [&] {
    wait_flag(there(0), Compare::ge, kernel.epoch(), {Semantics::acquire, Scope::system});
  };
  std::vector<RoleSpec> roles{role("math", warps(1), registers(64), [&] {
    wait();
    const Tile x = load(X(all, all));
    store(room.rows(0, 16), x);
    store(Y(Dim(how.ctas * 16).block(cta_index(), 16), all), x);
  })};
  if (how.fills) roles.push_back(role("others", warps(4), registers(64), wait));
  kernel.roles(roles);
  return kernel;
}

std::string fault_of(const Copied& how) {
  Program program("copied", how.to_next ? 2 : 1);
  const Buffer from = program.in("from", f32, {16, 32});
  const Buffer Y = program.out("Y", f32, {how.ctas * 16, 32});
  const Buffer X = program.scratch("X", f32, {16, 32});
  const Buffer there = program.signals("there", 1);
  const Kernel kernel = waiting(how);
  const Buffer taken = program.signals("taken", 1);
  const RunNumber run = program.run();
  program.on_each_rank([&](const Rank& rank) {
    const Stream math = rank.stream("math");
    const Stream copies = how.before ? math : rank.stream("copies");
    const int to = how.to_next ? rank.next(1) : rank.number();
    if (how.to_next) copies.wait(taken[0], run - 1);
    if (how.zeros == 1) {
      copies.zero(Part(X).box({0, 0}, {1, 1}));
    } else if (how.zeros > 1) {
      copies.zero(Part(X).rows(0, how.zeros));
    } else {
      copies.copy(X.on(to), from);
    }
    copies.write(there.on(to)[0], run);
    math.launch(kernel, {X, there, Y});
    if (how.to_next) math.write(taken.on(rank.next(-1))[0], run);
  });
  return fault_of(program, ir::bind_program(program.finish(), DimValues{}, kMultiprocessors), {});
}

TEST(CopiesBesideKernels, WaitForAMultiprocessor) {
  EXPECT_THAT(fault_of(Copied{}), AllOf(HasSubstr("deadlock"), HasSubstr("math warp 0 of CTA"),
                                        HasSubstr("of waiting and 2 more  "),
                                        HasSubstr("waits for a multiprocessor: waiting, run "),
                                        HasSubstr("\ncopy before the launch, in its stream")));
}

// A word alone needs none.
TEST(CopiesBesideKernels, ZerosWaitForAMultiprocessorToo) {
  Copied zeros;
  zeros.zeros = 16;
  EXPECT_THAT(fault_of(zeros),
              AllOf(HasSubstr("deadlock"), HasSubstr("waits for a multiprocessor: waiting, run "),
                    HasSubstr("\nset to zero before the launch, in its stream")));
  zeros.zeros = 1;
  EXPECT_THAT(fault_of(zeros), Not(HasSubstr("deadlock")));
}

TEST(CopiesBesideKernels, RunBesideWhatLeavesAMultiprocessor) {
  Copied fewer, smaller, before, to_next;
  fewer.ctas = kMultiprocessors - 1;
  smaller.fills = false;
  before.before = true;
  to_next.to_next = true;
  for (const Copied& how : {fewer, smaller, before, to_next}) EXPECT_THAT(fault_of(how), IsEmpty());
}

// As attention by heads was once: a rank's own rows came beside the kernel.
TEST(CopiesBesideKernels, OwnRowsOfAttentionByHeads) {
  kernels::SequenceParallelAttention o;
  kernels::Attention& a = o.attention;
  a.heads = a.kv_heads = 6;
  a.dim = a.dim_v = 16;
  a.block_q = 64;
  a.block_k = 32;
  o.ranks = 2;
  const DimValues sizes{{"batch", 1}, {"queries", 70}, {"keys", 16}};
  const Program program = kernels::sequence_parallel_attention_heads_sm90(o);
  ir::Program bound = ir::bind_program(program.finish(), sizes, kMultiprocessors);
  EXPECT_THAT(fault_of(program, bound, sizes), IsEmpty());
  const int streams = static_cast<int>(bound.streams.size());
  for (int i = 0; i < streams; ++i) {
    ir::ProgramStream beside = bound.streams[static_cast<std::size_t>(i)];
    beside.name += "_beside";
    bound.streams.push_back(std::move(beside));
  }
  for (ir::ProgramOperation& operation : bound.operations) {
    const bool own = operation.to.rank == bound.streams[operation.stream].rank;
    if (own && operation.kind != ir::ProgramOperation::Kind::launch) operation.stream += streams;
  }
  EXPECT_THAT(fault_of(program, bound, sizes),
              AllOf(HasSubstr("deadlock"), HasSubstr("attention_ranks_heads_sm90.cpp"),
                    HasSubstr("waits for a multiprocessor: "
                              "sequence_parallel_attention_heads_sm90 of rank ")));
}

}  // namespace
}  // namespace tilewright::checks
