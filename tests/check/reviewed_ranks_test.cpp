#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "codegen/print.h"
#include "common/error_text.h"
#include "common/schedules.h"
#include "ir/memory_order.h"
#include "ir/program.h"
#include "ir/text.h"
#include "ir/verifier.h"
#include "tilewright/compile.h"
#include "tilewright/hopper.h"
#include "tilewright/kernels/all_to_all.h"
#include "tilewright/kernels/attention.h"
#include "tilewright/kernels/attention_ranks.h"
#include "tilewright/program.h"
#include "tilewright/ranks.h"

// Faults that reviewers found in published programs over several ranks, each rebuilt in a few
// lines. Those of gradients: tests/kernels/reviewed_faults_test.cpp.
namespace tilewright {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// Row 2, "maximum lengths are declared that the batch exceeds: an overrun". Here none is declared.
// Offsets that lead past the tensor are an error, and nothing behind it is written.
TEST(ReviewedRankFaults, LengthsBeyondTheTensorAreNoOverrun) {
  constexpr std::int64_t kRows = 40, kBehind = 30;
  kernels::Attention a;
  a.heads = a.kv_heads = 1;
  const Executable attention = compile(kernels::attention_varlen_forward(a), "interpreter");
  HostTensor rows = HostTensor::random_normal(bf16, {kRows, 1, 64}, 1);
  HostTensor lse = HostTensor::poisoned(f32, {1, kRows});
  HostTensor o = HostTensor::zeros(bf16, {kRows + kBehind, 1, 64});
  const auto run = [&](double end) {
    HostTensor starts = HostTensor::from_values(i32, {3}, {0, 20, end});
    attention.run({ref(rows),
                   ref(rows),
                   ref(rows),
                   ref(starts),
                   ref(starts),
                   {o.data(), bf16, {kRows, 1, 64}, {}},
                   ref(lse)});
  };
  run(kRows);
  EXPECT_THAT(test::usage_error_of([&] { run(60); }),
              HasSubstr("cu_seqlens_q{2} is 60, and may be 40 at most"));
  for (std::int64_t row = kRows; row < kRows + kBehind; ++row) {
    EXPECT_EQ(o.at({row, 0, 0}), 0) << row;
  }
}

// Row 3, "heads are local in the help, and global in the code". Those that are set are of all
// ranks, and what a rank has follows from them: its tensors have as many.
TEST(ReviewedRankFaults, HeadsAreThoseOfAllRanks) {
  kernels::AllToAll exchange;
  exchange.ranks = 4;
  exchange.heads = 8;
  exchange.kv_heads = 2;
  EXPECT_EQ(exchange.own_heads(), 2);
  EXPECT_EQ(exchange.own_kv_heads(), 1);
  std::map<std::string, std::int64_t> heads;
  const Program program = kernels::all_to_all(exchange);
  for (const ir::ProgramBuffer& buffer : program.finish().buffers) {
    const std::size_t axis = buffer.shape.size() - 2;
    if (buffer.shape.size() > 2) heads[buffer.name] = ir::constant(buffer.shape[axis]);
  }
  EXPECT_EQ(heads.at("Q"), 8);
  EXPECT_EQ(heads.at("K"), 2);
  EXPECT_EQ(heads.at("Q_all"), 2);
  EXPECT_EQ(heads.at("K_all"), 1);
}

// Row 5, "a tile that straddles the midpoint of a zig-zag shard is sent to the wrong rank", and row
// 7, "a rank computes its part of the attention alone, and nothing brings the parts together": here
// halves of a shard end inside of a tile, and all ranks' results together are the attention of the
// whole.
TEST(ReviewedRankFaults, ZigZagShardsGiveTheWholeAttention) {
  constexpr int kOfRanks = 2;
  constexpr std::int64_t kAllRows = 84;  // 42 a rank, in halves of 21
  kernels::SequenceParallelAttention parallel;
  parallel.ranks = kOfRanks;
  parallel.shards = Shards::zig_zag;
  kernels::Attention& a = parallel.attention;
  a.heads = 2;
  a.kv_heads = 1;
  a.causal = true;
  a.block_q = a.block_k = 32;
  HostTensor q = HostTensor::random_normal(bf16, {1, kAllRows, 2, 64}, 1);
  HostTensor k = HostTensor::random_normal(bf16, {1, kAllRows, 1, 64}, 2);
  HostTensor v = HostTensor::random_normal(bf16, {1, kAllRows, 1, 64}, 3);
  HostTensor wanted = HostTensor::poisoned(bf16, {1, kAllRows, 2, 64});
  HostTensor lse = HostTensor::poisoned(f32, {1, 2, kAllRows});
  compile(kernels::attention_forward(a), "interpreter")
      .run({ref(q), ref(k), ref(v), ref(wanted), ref(lse)});

  std::vector<HostTensor> tensors;
  for (int rank = 0; rank < kOfRanks; ++rank) {
    for (const HostTensor* whole : {&q, &k, &v}) {
      tensors.push_back(shard(*whole, 1, kOfRanks, Shards::zig_zag)[rank]);
    }
    tensors.push_back(HostTensor::poisoned(bf16, {1, kAllRows / kOfRanks, 2, 64}));
    tensors.push_back(HostTensor::poisoned(f32, {1, 2, kAllRows / kOfRanks}));
  }
  std::vector<TensorRef> refs;
  for (HostTensor& tensor : tensors) refs.push_back(ref(tensor));
  compile(kernels::sequence_parallel_attention(parallel), "interpreter").run(refs);
  const HostTensor got = unshard({tensors[3], tensors[8]}, 1, Shards::zig_zag);
  for (std::int64_t i = 0; i < got.elements(); ++i) {
    ASSERT_NEAR(got.flat(i), wanted.flat(i), 0.02) << "element " << i;
  }
}

// Row 4, "heads that are no multiple of the KV heads index past the buffer".
TEST(ReviewedRankFaults, HeadsThatDoNotDivideAreRefused) {
  kernels::Attention a;
  a.heads = 6;
  a.kv_heads = 4;
  EXPECT_THAT(test::usage_error_of([&] { kernels::attention_varlen_forward(a); }),
              AllOf(HasSubstr("reviewed_ranks_test.cpp"),
                    HasSubstr("heads 6 is not a multiple of kv_heads 4")));
}

// Row 6, "Q is packed with K's lengths": rows of one packed axis are no rows of another's tensor.
TEST(ReviewedRankFaults, QueriesHaveLengthsOfTheirOwn) {
  Kernel kernel("pack");
  const Dim batch = kernel.dim("batch"), queries = kernel.dim("queries"), keys = kernel.dim("keys");
  const Tensor Q = kernel.in("Q", bf16, {queries, 64});
  const Tensor of_keys = kernel.in("of_keys", i32, {batch + 1});
  const Ragged ragged(keys, of_keys);
  EXPECT_THAT(test::usage_error_of([&] { load(Q(ragged.of(0).block(0, 64), all)); }),
              HasSubstr("axis 0 of Q is queries, and the block is of a sequence of keys"));
}

// What the verifier says of a kernel's text; empty where nothing.
std::string verdict_of(const std::string& text) {
  try {
    ir::verify(ir::parse_text(text, "kernel.tw"));
  } catch (const Error& error) {
    return test::without_source_lines(error.what());
  }
  return {};
}

// Row 13, "scope and semantics are spelled four times in four layers". An operation's record is
// asked by the language, the verifier and the simulator, and the printed instruction has the same
// words.
TEST(ReviewedRankFaults, ScopeAndSemanticsAreThoseOfOneRecord) {
  const std::pair<ir::Op, const char*> accesses[] = {
      {ir::Op::load_index, "%30: i32 = load_index %0, %11 {"},
      {ir::Op::store_index, "store_index %0, %11, %12 {"},
      {ir::Op::atomic_add, "%30: i32 = atomic_add %0, %11, %12 {"},
      {ir::Op::reduce_add, "reduce_add %0, %11, %12 {"},
      {ir::Op::wait_flag, "wait_flag %0, %11, %12 {compare = \"ge\", "},
      {ir::Op::load_registers, "load_registers %20, %0, %11, %12 {sizes = [32], layout = LAYOUT, "},
      {ir::Op::store_registers,
       "store_registers %0, %20, %11, %12 {sizes = [32], layout = LAYOUT, "},
      {ir::Op::red_registers,
       "red_registers %0, %20, %11, %12 {function = add, sizes = [32], layout = LAYOUT, "},
      {ir::Op::atomic_registers,
       "atomic_registers %0, %20, %11, %12 {function = add, sizes = [32], layout = LAYOUT, "}};
  constexpr std::string_view kPtxScopes[] = {"cta", "cluster", "gpu", "sys"};
  for (const auto& [op, text] : accesses) {
    for (const Semantics semantics :
         {Semantics::relaxed, Semantics::acquire, Semantics::release, Semantics::acq_rel}) {
      for (const Scope scope : {Scope::block, Scope::cluster, Scope::gpu, Scope::system}) {
        std::string access = text;
        if (const std::size_t at = access.find("LAYOUT"); at != std::string::npos) {
          access.replace(at, 6, "register_layout[32|l:32@0:1]");
        }
        const std::string order = fmt::format("semantics = \"{}\", scope = \"{}\"",
                                              ir::name_of(semantics), ir::name_of(scope));
        const std::string kernel = fmt::format(
            "kernel \"k\" machine\ninout X: i32[64] = %0\ngrid (1)\nthreads 32\nshared_bytes 0\n"
            "body () {{\n  %11: i32 = constant {{value = 3}}\n  %12: i32 = constant {{value = "
            "35}}\n"
            "  role {{name = \"r\", first_warp = 0, warps = 1}} (%13: i32) {{\n"
            "    %20: registers<i32, 1> = registers {{name = \"x\"}}\n    fill %20, %12\n"
            "    {}{}}}\n    yield\n  }}\n}}\n",
            access, order);
        SCOPED_TRACE(std::string(ir::info(op).name) + " " + order);
        const bool takes = ir::order_problem(op, semantics).empty();
        const std::string refused = verdict_of(kernel);
        EXPECT_EQ(refused.empty(), takes) << refused;
        if (!takes) continue;
        const std::string words =
            fmt::format(".{}.{}.", ir::name_of(semantics), kPtxScopes[static_cast<int>(scope)]);
        EXPECT_THAT(codegen::print(ir::parse_text(kernel, "kernel.tw")).text, HasSubstr(words));
      }
    }
  }
}

constexpr int kReducing = 2, kReducedRows = 64, kReducedColumns = 32;

// Every rank scatters parts of X to slots of the others, and sums what has come in the order of the
// ranks.
Kernel scatter_and_reduce(bool meets) {
  Kernel kernel("scatter_and_reduce");
  const Tensor X = kernel.in("X", f32, {kReducing, kReducedRows, kReducedColumns});
  const Tensor Y = kernel.out("Y", f32, {kReducedRows, kReducedColumns});
  const Tensor slots =
      kernel.symmetric("slots", f32, {2, kReducing, kReducedRows, kReducedColumns});
  RankBarrier scattered(kernel, "scattered");
  const Index me = kernel.rank(), turn = kernel.epoch();
  kernel.ctas(1);
  kernel.roles({role("all", warpgroups(1), registers(128), [&] {
    for (Index to : range(kReducing)) {
      store(slots.at(to)(turn % 2, me, all, all), load(X(to, all, all)));
    }
    if (meets) scattered.sync(turn);
    Var sum{zeros({kReducedRows, kReducedColumns})};
    for (Index from : range(kReducing)) sum = sum + load(slots(turn % 2, from, all, all));
    store(Y(all, all), sum);
  })});
  return kernel;
}

Program reducing(bool meets) {
  Program program("reducing", kReducing);
  const Buffer x = program.buffer("x", f32, {kReducing, kReducedRows, kReducedColumns});
  const Buffer y = program.buffer("y", f32, {kReducedRows, kReducedColumns});
  const Buffer slots = program.buffer("slots", f32, {2, kReducing, kReducedRows, kReducedColumns});
  program.on_each_rank([&](const Rank& rank) {
    rank.stream().launch(scatter_and_reduce(meets), {x, y, slots});
  });
  return program;
}

// Row 14, "the barrier between scatter and reduce is commented out".
TEST(ReviewedRankFaults, ABarrierIsMissingBetweenScatterAndReduce) {
  test::expect_clean(reducing(true), {4, 3});
  test::expect_fault(reducing(false), {4, 1}, "race",
                     AllOf(HasSubstr("race: global slots of rank"), HasSubstr("load_registers")));
}

// And "signals are reset by who has waited for them": a word that the sender sets in its next run
// may be set back behind that. Words that count up have nothing to set back.
TEST(ReviewedRankFaults, SignalsThatAreResetAreARace) {
  for (const bool resets : {false, true}) {
    Program program("pushes", 2);
    const Buffer x = program.buffer("x", f32, {64}), y = program.buffer("y", f32, {64});
    const Buffer z = program.buffer("z", f32, {64});
    const Buffer sent = program.signals("sent", 1), taken = program.signals("taken", 1);
    const Stream push = program.rank(0).stream(), take = program.rank(1).stream();
    const RunNumber one = resets ? RunNumber(1) : program.run();
    push.wait(taken[0], program.run() - 1);
    push.copy(y.on(1), x);
    push.write(sent.on(1)[0], one);
    take.wait(sent[0], one);
    take.copy(z, y);
    take.write(taken.on(0)[0], program.run());
    if (resets) take.write(sent[0], 0);
    if (!resets) {
      test::expect_clean(program, {6, 4});
      continue;
    }
    int found = 0;
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
      ProgramMemory memory(program);
      const SimulationReport report = test::simulate_seed(program, seed, 4, memory);
      if (report.ok()) continue;
      ++found;
      EXPECT_THAT(test::text_of(report), HasSubstr("sent of rank 1"));
    }
    EXPECT_GT(found, 0);
  }
}

}  // namespace
}  // namespace tilewright
