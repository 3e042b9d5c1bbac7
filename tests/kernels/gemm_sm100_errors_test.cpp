#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "common/error_text.h"
#include "compiler/compile_to_machine.h"
#include "ir/verifier.h"
#include "kernels/execution.h"
#include "kernels/products.h"
#include "tilewright/blackwell.h"
#include "tilewright/hopper.h"
#include "tilewright/kernels/gemm.h"

// What gemm for sm_100a, and kernels with tensor memory, refuse.
namespace tilewright::kernels {
namespace {

using test::products;
using testing::HasSubstr;

std::string error_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_THAT(error.location().file, HasSubstr("gemm_sm100_errors_test.cpp")) << error.what();
    return test::without_source_lines(error.what());
  }
  return "no error";
}

TEST(GemmSm100Test, WhatItRefusesIsSaidAtTheCaller) {
  const auto refused = [](auto change) {
    return error_of([&] {
      Gemm g;
      change(g);
      gemm_sm100(g, GemmRoles::persistent);
    });
  };
  EXPECT_THAT(refused([](Gemm& g) { g.dtype = f32; }), HasSubstr("dtype is f32"));
  EXPECT_THAT(refused([](Gemm& g) { g.block_m = 64; }), HasSubstr("block_m is 64"));
  EXPECT_THAT(refused([](Gemm& g) { g.block_n = 96; }), HasSubstr("block_n is 96"));
  EXPECT_THAT(refused([](Gemm& g) { g.split = 2; }), HasSubstr("k divided"));
}

// Either GPU's products are an error at their line in a kernel for the other.
TEST(GemmSm100Test, ProductsAreThoseOfTheTarget) {
  EXPECT_THAT(error_of([] {
                Kernel kernel("k");
                kernel.ctas(1);
                const TensorMemory memory(kernel, "sums", 64);
              }),
              HasSubstr("sm_90a has no such operation"));
  EXPECT_THAT(error_of([] {
                Kernel kernel("k");
                kernel.target("sm_100a");
                kernel.ctas(1);
                SharedTile a(kernel, "a", bf16, 128, 64), b(kernel, "b", bf16, 64, 64);
                kernel.roles({role("math", warpgroups(1), registers(128),
                                   [&] { wait(wgmma(a.rows(0, 64), b.T())); })});
              }),
              HasSubstr("sm_100a has no such operation"));
}

// A kernel of one role that multiplies; `body` is called with its places.
template <typename Body>
std::string error_in_role(int columns, Body body) {
  return error_of([&] {
    Kernel kernel("k");
    kernel.target("sm_100a");
    kernel.ctas(1);
    const TensorMemory memory(kernel, "sums", columns);
    SharedTile a(kernel, "a", bf16, 128, 64), b(kernel, "b", bf16, 64, 64);
    kernel.roles({role("multiply", warps(1), registers(64), [&] {
      memory.allocate();
      body(memory.attach(), a, b);
    })});
  });
}

TEST(GemmSm100Test, OneWarpOfARoleUsesTensorMemory) {
  const auto error = [](const auto& body) {
    return error_of([&] {
      Kernel kernel("k");
      kernel.target("sm_100a");
      kernel.ctas(1);
      const TensorMemory memory(kernel, "sums", 64);
      const SharedTile a(kernel, "a", bf16, 128, 64), b(kernel, "b", bf16, 64, 64);
      kernel.roles({role("two", warps(2), registers(64), [&] { body(memory, a, b); })});
    });
  };
  const auto expect = [&](const std::string& what, const auto& body) {
    EXPECT_THAT(error(body),
                HasSubstr(what + ": every one of the 2 warps of the role \"two\" would do it"));
  };
  using Memory = TensorMemory;
  expect("allocate", [](const Memory& memory, const auto&...) { memory.allocate(); });
  expect("free", [](const Memory& memory, const auto&...) { memory.free(); });
  expect("relinquish_tensor_memory", [](const auto&...) { relinquish_tensor_memory(); });
  expect("mma", [](const Memory& memory, const auto& a, const auto& b) {
    mma(memory.attach(), a, b.T(), false);
  });
}

std::string verifier_error(const ir::Kernel& kernel) {
  try {
    ir::verify(kernel);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// What the language refuses first, and the verifier where a kernel comes from elsewhere.
TEST(GemmSm100Test, AProductFitsItsTensorMemory) {
  Kernel kernel("k");
  kernel.target("sm_100a");
  kernel.ctas(1);
  const TensorMemory memory(kernel, "sums", 64);
  const SharedTile a(kernel, "a", bf16, 128, 64), b(kernel, "b", bf16, 64, 64);
  kernel.roles({role("multiply", warps(1), registers(64), [&] {
    memory.allocate();
    mma(memory.attach(), a, b.T(), false);
    memory.free();
  })});
  ir::Kernel traced = kernel.finish();
  EXPECT_EQ(verifier_error(traced), "no error");
  ir::for_each(traced.body, [&](const ir::Operation& o) {
    if (o.op != ir::Op::tensor_memory) return;
    traced.types[o.results[0]] = ir::Type::of(ir::Type::Kind::tensor_memory, i32, {32});
  });
  EXPECT_THAT(verifier_error(traced), HasSubstr("takes 64 columns of"));
}

TEST(GemmSm100Test, AHalfMovesWholeMatrices) {
  const auto error = [](int columns) -> std::string {
    Kernel kernel("k");
    kernel.target("sm_100a");
    kernel.ctas(1);
    const Tensor C = kernel.out("C", f32, {64, columns});
    const TensorMemory memory(kernel, "sums", 64);
    try {
      kernel.roles({role("read", warpgroups(1), registers(128), [&] {
        store(C(all, all), load(memory.attach().half(0).columns(0, columns)));
      })});
      return verifier_error(kernel.finish());
    } catch (const Error& error) {
      return error.what();
    }
  };
  EXPECT_EQ(error(8), "no error");
  EXPECT_THAT(error(4), HasSubstr("moves 4 columns of 64 rows, expected a multiple of 8"));
}

TEST(GemmSm100Test, MisuseOfTensorMemoryIsAnErrorAtItsLine) {
  EXPECT_THAT(error_in_role(96, [](const auto&...) {}), HasSubstr("\"sums\": 96 columns"));
  EXPECT_THAT(error_in_role(16, [](const auto&...) {}), HasSubstr("from 32 to 512"));
  EXPECT_THAT(error_in_role(64, [](const TensorColumns& all, const SharedTile& a,
                                   const SharedTile&) { mma(all, a, a.T(), false); }),
              HasSubstr("the result takes 128 columns, and 64 are given"));
  EXPECT_THAT(error_in_role(128, [](const TensorColumns& all, const SharedTile& a,
                                    const SharedTile& b) { mma(all, a, b.T(), false); }),
              HasSubstr("the result takes 64 columns, and 128 are given"));
  EXPECT_THAT(error_in_role(64, [](const TensorColumns& all, const SharedTile& a,
                                   const SharedTile& b) { mma(all, a.columns(0, 32), b, false); }),
              HasSubstr("inner dimensions differ: a bf16 {128, 32} x b bf16 {64, 64}"));
  EXPECT_THAT(error_in_role(64, [](const TensorColumns& all, const SharedTile& a,
                                   const SharedTile& b) { mma(all, a.rows(0, 64), b.T(), false); }),
              HasSubstr("the result has 128 rows: a bf16 {64, 64}"));
  EXPECT_THAT(error_in_role(64, [](const TensorColumns& all, const SharedTile&,
                                   const SharedTile&) { all.columns(32, 64); }),
              HasSubstr("columns: 64 from 32 of 64"));
  EXPECT_THAT(error_in_role(64, [](const TensorColumns& all, const SharedTile&,
                                   const SharedTile&) { all.half(2); }),
              HasSubstr("half: 2 of columns of 128 rows"));
  EXPECT_THAT(error_in_role(64, [](const TensorColumns& all, const SharedTile&,
                                   const SharedTile&) { all.half(0).half(0); }),
              HasSubstr("half: 0 of columns of 64 rows"));
}

// Hand-overs that are no rings: each CTA loads, multiplies and stores twice, by one place of each.
struct HandOver {
  int arrivals = 1;  // of a phase of what has been loaded
  FirstPhase first = FirstPhase::before;
  bool commits = true;
};
Kernel handed_over(const HandOver& how) {
  Kernel kernel("handed_over");
  kernel.target("sm_100a");
  const Tensor A = kernel.in("A", bf16, {256, 64}), B = kernel.in("B", bf16, {64, 64}),
               C = kernel.out("C", f32, {256, 64});
  kernel.ctas(1);
  const SharedTile a(kernel, "a", bf16, 128, 64), b(kernel, "b", bf16, 64, 64);
  const TensorMemory memory(kernel, "memory", 64);
  const Barrier loaded(kernel, "loaded", how.arrivals), multiplied(kernel, "multiplied", 1),
      stored(kernel, "stored", 4);
  NamedBarrier allocated(kernel, 160), freed(kernel, 160);
  kernel.roles({role("load", warps(1), registers(64),
                     [=] {
                       for (const Block rows : blocks(Dim(256), 128)) {
                         multiplied.wait(how.first);  // nobody reads a and b
                         loaded.load([&] {
                           tma_load(A(rows, all), a);
                           tma_load(B(all, all), b);
                         });
                       }
                     }),
                role("multiply", warps(1), registers(64),
                     [&] {
                       memory.allocate();
                       allocated.sync();
                       for ([[maybe_unused]] Index i : range(2)) {
                         loaded.wait();
                         stored.wait(FirstPhase::before);
                         mma(memory.attach(), a, b.T(), false);
                         how.commits ? multiplied.commit() : multiplied.arrive();
                       }
                       freed.sync();
                       memory.free();
                     }),
                role("store", warpgroups(1), registers(128), [&] {
                  allocated.sync();
                  for (const Block rows : blocks(Dim(256), 128)) {
                    multiplied.wait();
                    store(C(rows, all), load(memory.attach()));
                    stored.arrive();
                  }
                  freed.sync();
                })});
  return kernel;
}

TEST(GemmSm100Test, BarriersHandOverWhatIsNoRing) {
  const auto fault = [](const HandOver& how, std::uint64_t seed) {
    test::Padded a = test::Padded::normal(bf16, {256, 64}, 1),
                 b = test::Padded::normal(bf16, {64, 64}, 2), c(f32, {256, 64});
    Arguments arguments;
    arguments.tensors = {a.argument("A"), b.argument("B"), c.argument("C")};
    simulator::MachineOptions options;
    options.seed = seed;
    const auto report = simulator::run_machine(
        compiler::compile_to_machine(handed_over(how).finish(), "sm_100a").kernel, arguments,
        options);
    if (!report.ok()) return report.faults[0].kind;
    EXPECT_LT(test::relative_error(c, products(a, b)), test::kTolerance);
    return std::string();
  };
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    EXPECT_EQ(fault({}, seed), "");
    EXPECT_EQ(fault({.arrivals = 2}, seed), "deadlock");
    EXPECT_EQ(fault({.first = FirstPhase::own}, seed), "deadlock");
    EXPECT_EQ(fault({.commits = false}, seed), "race");
  }
  EXPECT_THAT(error_of([] { handed_over({.arrivals = 0}); }), HasSubstr("\"loaded\": 0 arrivals"));
  EXPECT_THAT(error_of([] {
                Kernel kernel("k");
                kernel.target("sm_100a");
                const Barrier barrier(kernel, "barrier", 1);
                kernel.roles({role("wait", warps(1), registers(64), [&] {
                  barrier.wait();
                  barrier.wait(FirstPhase::before);
                })});
              }),
              HasSubstr("the role \"wait\" has begun with the other phase"));
  EXPECT_THAT(error_of([] {
                Kernel kernel("k");
                kernel.target("sm_100a");
                const Barrier barrier(kernel, "barrier", 1);
                kernel.roles({role("commit", warps(2), registers(64), [&] { barrier.commit(); })});
              }),
              HasSubstr("commit: every one of the 2 warps of the role \"commit\" would do it"));
  EXPECT_THAT(error_of([] {
                Kernel kernel("k");
                kernel.target("sm_100a");
                const Tensor X = kernel.in("X", bf16, {64, 64});
                const Barrier barrier(kernel, "barrier", 1);
                const SharedTile tile(kernel, "tile", bf16, 64, 64);
                kernel.roles({role("load", warps(2), registers(64),
                                   [&] { barrier.load([&] { tma_load(X(all, all), tile); }); })});
              }),
              HasSubstr("load: every one of the 2 warps of the role \"load\" would do it"));
}

// As error_in_role, with tensor memory and a ring of pairs.
template <typename Body>
std::string error_in_pair(int cluster, Body body) {
  return error_of([&] {
    Kernel kernel("k");
    kernel.target("sm_100a");
    kernel.ctas(6, cluster);
    const TensorMemory memory(kernel, "sums", 64, CtaGroup::pair);
    SharedTile a(kernel, "a", bf16, 128, 64), b(kernel, "b", bf16, 64, 64);
    Ring ring(kernel, "ring", stages(1), {{bf16, 128, 64}});
    ring.pairs();
    kernel.roles({role("multiply", warps(1), registers(64), [&] {
      memory.allocate();
      body(memory.attach(), a, b, ring);
    })});
  });
}

TEST(GemmSm100Test, MisuseOfPairsIsAnErrorAtItsLine) {
  using All = TensorColumns;
  EXPECT_THAT(error_in_pair(2, [](const auto&...) {}), HasSubstr("no error"));
  EXPECT_THAT(error_in_pair(2, [](const All& all, const auto&...) { all.half(0); }),
              HasSubstr("half: the kernel's products are those of pairs of CTAs"));
  EXPECT_THAT(error_in_pair(3, [](const auto&...) {}),
              HasSubstr("tensor memory of pairs of CTAs, in clusters of 3"));
  EXPECT_THAT(error_in_pair(2, [](const All& all, const auto& a, const auto& b,
                                  const Ring&) { mma(all, a, b.T(), false); }),
              HasSubstr("the result takes 128 columns, and 64 are given"));
  EXPECT_THAT(error_in_pair(2, [](const All& all, const auto& a, const auto&,
                                  const Ring&) { mma(all, a, a.rows(0, 24).T(), false); }),
              HasSubstr("n is no multiple of 16 up to 128, of each CTA of a pair"));
  EXPECT_THAT(error_of([] {
                Kernel kernel("k");
                kernel.target("sm_100a");
                kernel.ctas(2, 2);
                const TensorMemory one(kernel, "one", 64);
                const TensorMemory two(kernel, "two", 64, CtaGroup::pair);
              }),
              HasSubstr("TensorMemory \"two\": is of pairs of CTAs, and \"one\" is not"));
  EXPECT_THAT(error_of([] {
                Kernel kernel("k");
                kernel.target("sm_100a");
                kernel.ctas(2, 2);
                Ring ring(kernel, "ring", stages(1), {});
                ring.pairs();
                kernel.roles({role("wait", warps(1), registers(64), [&] { ring.consume(); })});
              }),
              HasSubstr("the ring \"ring\" is of pairs of CTAs, and the kernel's tensor memory is "
                        "not"));
  EXPECT_THAT(
      error_of([] {
        Kernel kernel("k");
        kernel.target("sm_100a");
        kernel.ctas(2, 2);
        const TensorMemory memory(kernel, "sums", 64, CtaGroup::pair);
        Ring ring(kernel, "ring", stages(1), {});
        kernel.roles({role("multiply", warps(1), registers(64), [&] {
          memory.allocate();
          ring.commit(ring.reserve());
        })});
      }),
      HasSubstr("commit: the ring \"ring\" is of this CTA, and the products are of a pair"));
  EXPECT_THAT(error_of([] {
                Kernel kernel("k");
                kernel.target("sm_100a");
                kernel.ctas(2, 2);
                const Tensor X = kernel.in("X", bf16, {128, 64});
                const TensorMemory memory(kernel, "sums", 64, CtaGroup::pair);
                Ring ring(kernel, "ring", stages(1), {{bf16, 128, 64}});
                ring.pairs();
                const auto load = [&] {
                  ring.produce([&](const Slot& slot) { tma_load(X(all, all), slot[0]); });
                };
                const auto read = [&] { ring.release(ring.consume()); };
                kernel.roles({role("load", warps(1), registers(64), load),
                              role("read", warps(1), registers(64), read)});
              }),
              HasSubstr("release: threads release what is loaded into the ring \"ring\""));
  EXPECT_THAT(error_of([] {
                Kernel kernel("k");
                kernel.target("sm_100a");
                kernel.ctas(2);
                GridTiles tiles(kernel, "tiles", stages(1));
                kernel.roles({role("ask", warps(2), registers(64), [&] { tiles.ask(); })});
              }),
              HasSubstr("ask: the role \"ask\" has 2 warps"));
}

TEST(GemmSm100Test, TooManyColumnsAreAnErrorAtTheirDeclaration) {
  const std::string message = error_of([] {
    Kernel kernel("k");
    kernel.target("sm_100a");
    kernel.ctas(1);
    const TensorMemory first(kernel, "first", 512), second(kernel, "second", 32);
    kernel.roles({role("multiply", warps(1), registers(64), [&] {
      first.allocate();
      first.free();
    })});
    compiler::compile_to_machine(kernel.finish(), "sm_100a");
  });
  EXPECT_THAT(message,
              HasSubstr("\"k\" takes 544 columns of tensor memory, and a multiprocessor of "
                        "sm_100a has 512"));
}

}  // namespace
}  // namespace tilewright::kernels
