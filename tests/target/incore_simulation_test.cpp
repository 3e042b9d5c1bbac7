#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "check/core_proof.h"
#include "compiler/compile_to_machine.h"
#include "incore_kernels.h"
#include "ir/text.h"
#include "simulator/machine/machine.h"
#include "support/arguments.h"
#include "target/core.h"
#include "target/target.h"
#include "target/verify.h"
#include "tilewright/compile.h"
#include "tilewright/host_tensor.h"
#include "tilewright/incore.h"

// Cores with explicit memories, simulated: what is right under every schedule gives the result, and
// each thing that is left out is a fault with its line.
// Behind the headers, in a namespace of its own.
#define main run_example
namespace incore_gemm {
#include "examples/incore_gemm.cpp"
}  // namespace incore_gemm
#undef main

namespace tilewright::simulator {
namespace {

using ir::Key;
using ir::Op;
using ir::Operation;
using testing::HasSubstr;

struct Product {
  HostTensor A, B, C;
  Product(std::int64_t m, std::int64_t n, std::int64_t k)
      : A(HostTensor::random_normal(bf16, {m, k}, 1)),
        B(HostTensor::random_normal(bf16, {n, k}, 2)),
        C(HostTensor::poisoned(bf16, {m, n})) {}

  Arguments arguments() {
    const auto argument = [](const char* name, HostTensor& tensor) {
      return TensorArgument{
          name, tensor.dtype(), tensor.shape(), {}, static_cast<std::byte*>(tensor.data()), {}};
    };
    Arguments arguments;
    arguments.tensors = {argument("A", A), argument("B", B), argument("C", C)};
    return arguments;
  }
  // Relative, in the root mean square; NaN where an element was not written.
  double error() const {
    double squares = 0, errors = 0;
    for (std::int64_t i = 0; i < C.shape()[0]; ++i) {
      for (std::int64_t j = 0; j < C.shape()[1]; ++j) {
        double wanted = 0;
        for (std::int64_t d = 0; d < A.shape()[1]; ++d) wanted += A.at({i, d}) * B.at({j, d});
        squares += wanted * wanted;
        errors += (C.at({i, j}) - wanted) * (C.at({i, j}) - wanted);
      }
    }
    return std::sqrt(errors / squares);
  }
  bool is_right() const { return error() < 3e-3; }
};

constexpr incore_gemm::Blocks kBlocks{32, 48, 64};

ir::Kernel machine_form(const Kernel& kernel) {
  const ir::Kernel& traced = kernel.finish();
  return compiler::compile_to_machine(traced, traced.target).kernel;
}

std::vector<ir::Kernel> products() {
  std::vector<ir::Kernel> all;
  all.push_back(machine_form(incore_gemm::gemm("incore", "cube", kBlocks)));
  all.push_back(machine_form(incore_gemm::gemm("incore_unified", "core", kBlocks)));
  all.push_back(machine_form(partitions_product()));
  return all;
}

MachineReport run(const ir::Kernel& machine, Product& product, std::uint64_t seed,
                  std::int64_t cores = 2) {
  MachineOptions options;
  options.seed = seed;
  options.multiprocessors = cores;
  return run_machine(machine, product.arguments(), options);
}

TEST(IncoreSimulation, ProductsAreRightUnderEverySchedule) {
  for (const ir::Kernel& machine : products()) {
    SCOPED_TRACE(machine.target);
    // Tails on every axis, one element, several blocks of a core, an odd number of steps.
    for (const auto& [m, n, k] :
         {std::tuple{70, 50, 100}, {1, 1, 1}, {64, 96, 64}, {33, 49, 130}}) {
      for (std::uint64_t seed = 0; seed < 4; ++seed) {
        Product product(m, n, k);
        const MachineReport report = run(machine, product, seed);
        ASSERT_TRUE(report.ok()) << report.faults.front().message;
        EXPECT_TRUE(product.is_right()) << m << " " << n << " " << k << ": " << product.error();
      }
    }
  }
}

// Of the tile level, as it is for any target: the automatic schedule places and orders.
ir::Kernel tile_product(bool a_along_m, bool b_along_n, DType result) {
  Kernel kernel("tile_product");
  const Dim m = kernel.dim("m"), n = kernel.dim("n"), k = kernel.dim("k");
  const Tensor A = a_along_m ? kernel.in("A", bf16, {k, m}) : kernel.in("A", bf16, {m, k});
  const Tensor B = b_along_n ? kernel.in("B", bf16, {k, n}) : kernel.in("B", bf16, {n, k});
  const Tensor C = kernel.out("C", result, {m, n});
  const auto [i, j] = kernel.grid(ceil_div(m, 32), ceil_div(n, 48));
  const Block rows = m.block(i, 32), cols = n.block(j, 48);
  Var sum{zeros({rows, cols})};
  for (Block depth : blocks(k, 64)) {
    const Tile a = a_along_m ? load(A(depth, rows)).T() : load(A(rows, depth));
    const Tile b = b_along_n ? load(B(depth, cols)) : load(B(cols, depth)).T();
    sum = sum + dot(a, b);
  }
  const Tile all = sum;
  store(C(rows, cols), result == f32 ? all : all.cast(result));
  return kernel.finish();
}

HostTensor turned(const HostTensor& tensor) {
  const std::int64_t rows = tensor.shape()[0], columns = tensor.shape()[1];
  HostTensor made = HostTensor::zeros(tensor.dtype(), {columns, rows});
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) made.set({j, i}, tensor.at({i, j}));
  }
  return made;
}

TEST(IncoreSchedule, ProductsOfTilesAreRightOnEveryCore) {
  for (const target::Target* target : target::targets()) {
    if (!target->core) continue;
    for (const auto& [a_along_m, b_along_n] :
         {std::pair{false, false}, {false, true}, {true, true}, {true, false}}) {
      SCOPED_TRACE(target->name + (a_along_m ? " t" : " n") + (b_along_n ? "n" : "t"));
      const ir::Kernel machine =
          compiler::compile_to_machine(tile_product(a_along_m, b_along_n, bf16), target->name)
              .kernel;
      EXPECT_EQ(machine.target, target->name);
      for (const auto& [m, n, k] : {std::tuple{70, 50, 150}, {1, 1, 1}, {32, 96, 128}}) {
        for (std::uint64_t seed = 0; seed < 2; ++seed) {
          Product product(m, n, k);
          Arguments arguments = product.arguments();
          HostTensor A = turned(product.A), B = turned(product.B);
          if (a_along_m) {
            arguments.tensors[0].shape = A.shape();
            arguments.tensors[0].data = static_cast<std::byte*>(A.data());
          }
          if (b_along_n) {
            arguments.tensors[1].shape = B.shape();
            arguments.tensors[1].data = static_cast<std::byte*>(B.data());
          }
          MachineOptions options;
          options.seed = seed;
          options.multiprocessors = 2;
          const MachineReport report = run_machine(machine, arguments, options);
          ASSERT_TRUE(report.ok()) << report.faults.front().message;
          EXPECT_TRUE(product.is_right()) << m << " " << n << " " << k << ": " << product.error();
        }
      }
    }
  }
}

// A sum of nothing is 0, and written.
TEST(IncoreSchedule, OfNoDepthTheResultIsZero) {
  const ir::Kernel machine =
      compiler::compile_to_machine(tile_product(false, false, f32), "incore").kernel;
  std::vector<float> c(33 * 20, NAN);
  std::byte nothing[16] = {};
  Arguments arguments;
  arguments.tensors = {{"A", bf16, {33, 0}, {}, nothing, {}},
                       {"B", bf16, {20, 0}, {}, nothing, {}},
                       {"C", f32, {33, 20}, {}, reinterpret_cast<std::byte*>(c.data()), {}}};
  const MachineReport report = run_machine(machine, arguments, {});
  ASSERT_TRUE(report.ok()) << report.faults.front().message;
  for (const float element : c) EXPECT_EQ(element, 0);
}

TEST(IncoreSchedule, SaysWhatItDoesNotTake) {
  const auto error_of = [](const std::function<void()>& run) -> std::string {
    try {
      run();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      return error.what();
    }
    return "no error";
  };
  compiler::MachineOptions options;
  options.schedule.warpgroups = 2;
  EXPECT_THAT(error_of([&] {
                compiler::compile_to_machine(tile_product(false, false, f32), "incore", options);
              }),
              HasSubstr("schedule: warpgroups = 2: incore has no such thing"));
  // More than a memory holds: one stage less where there is another.
  options.schedule = {};
  options.schedule.stages = 8;
  const compiler::MachineForm form =
      compiler::compile_to_machine(tile_product(false, false, f32), "incore", options);
  EXPECT_EQ(form.schedule.front().name, "stages");
  // A sequencer sees nothing of what units compute.
  Kernel sums("sums");
  const Tensor X = sums.in("X", f32, {64, 64}), Y = sums.out("Y", f32, {64, 64});
  sums.grid(1);
  Var x{load(X(all, all))};
  when(any(x > 1), [&] { x = x * 2; });
  store(Y(all, all), x);
  EXPECT_THAT(error_of([&] { compiler::compile_to_machine(sums.finish(), "incore"); }),
              HasSubstr("a condition on what was computed, which sequencers do not see"));
  Kernel error_function("error_function");
  const Tensor E = error_function.in("E", f32, {64, 64});
  const Tensor F = error_function.out("F", f32, {64, 64});
  error_function.grid(1);
  store(F(all, all), erf(load(E(all, all))));
  EXPECT_THAT(error_of([&] { compiler::compile_to_machine(error_function.finish(), "incore"); }),
              HasSubstr("V has no erf"));
  // More than a memory holds, with one stage each.
  Kernel large("large");
  const Tensor L = large.in("L", f32, {512, 512}), M = large.out("M", f32, {512, 512});
  large.grid(1);
  store(M(all, all), load(L(all, all)) * 2);
  EXPECT_THAT(error_of([&] { compiler::compile_to_machine(large.finish(), "incore"); }),
              HasSubstr("bytes of Vec are taken with it, and incore has 196608"));
}

TEST(IncoreSimulation, TheTextParsesBack) {
  for (const ir::Kernel& machine : products()) {
    EXPECT_TRUE(ir::equal(ir::parse_text(ir::to_text(machine), ""), machine));
  }
}

TEST(IncoreSimulation, UnitsWorkBesideEachOther) {
  const ir::Kernel machine = machine_form(incore_gemm::gemm("incore", "cube", kBlocks));
  Product product(128, 96, 512);
  const MachineReport report = run(machine, product, 1);
  ASSERT_TRUE(report.ok());
  std::int64_t busy = 0;
  constexpr std::int64_t kCores = 2;
  for (const UnitUse& unit : report.units) {
    std::int64_t parts = 0;
    for (const std::int64_t part : unit.over_time) parts += part;
    EXPECT_EQ(parts, unit.busy) << unit.name;
    EXPECT_LE(unit.busy, report.cycles * unit.instances);
    busy += unit.busy;
  }
  EXPECT_GT(busy, report.cycles * kCores);  // what one after the other could not
  // Whatever the order that the seed draws, the modelled time is the same.
  Product again(128, 96, 512);
  EXPECT_EQ(run(machine, again, 2).cycles, report.cycles);
}

bool drop_site(ir::Block& block, const std::function<bool(const Operation&)>& is_site, int& site) {
  for (std::size_t i = 0; i < block.body.size(); ++i) {
    if (is_site(block.body[i]) && site-- == 0) {
      block.body.erase(block.body.begin() + static_cast<std::ptrdiff_t>(i));
      return true;
    }
    for (ir::Block& inner : block.body[i].blocks) {
      if (drop_site(inner, is_site, site)) return true;
    }
  }
  return false;
}

bool drop(ir::Kernel& kernel, int site, const std::function<bool(const Operation&)>& is_site) {
  return drop_site(kernel.body, is_site, site);
}

// A product whose negative elements become 0: the matrix core hands on what it has stored, and each
// vector core takes its own half of the rows.
Kernel handed_on() {
  Kernel kernel("handed_on");
  kernel.target("incore");
  const Dim m = kernel.dim("m");
  const Tensor A = kernel.in("A", bf16, {m, 64}), B = kernel.in("B", bf16, {48, 64});
  const Tensor T = kernel.out("T", f32, {m, 48}), Y = kernel.out("Y", f32, {m, 48});
  kernel.ctas(1);
  CoreMemory a(kernel, "Mat", "a", bf16, 32, 64), b(kernel, "Mat", "b", bf16, 48, 64);
  CoreMemory left(kernel, "Left", "left", bf16, 32, 64),
      right(kernel, "Right", "right", bf16, 64, 48);
  CoreMemory sums(kernel, "Acc", "sums", f32, 32, 48), x(kernel, "Vec", "x", f32, 16, 48);
  CoreEvent loaded(kernel, "MTE2", "MTE1"), fed(kernel, "MTE1", "M"), summed(kernel, "M", "FIX");
  CoreEvent stored(kernel, "FIX", "VMTE2");  // to both vector cores
  CoreEvent taken(kernel, "VMTE2", "V"), made(kernel, "V", "VMTE3");
  kernel.roles({sequencer("cube",
                          [&] {
                            move(a, A(m.block(0, 32), all));
                            move(b, B(all, all));
                            loaded.set();
                            loaded.wait();
                            move(left, a);
                            move(right, CoreWindow(b).T());
                            fed.set();
                            fed.wait();
                            matmul(sums, left, right, false);
                            summed.set();
                            summed.wait();
                            move(T(m.block(0, 32), all), sums);
                            stored.set();
                          }),
                sequencer("vector", [&](const Index& instance) {
                  stored.wait();
                  move(x, T(m.block(instance, 16), all));
                  taken.set();
                  taken.wait();
                  vector(VectorFunction::maximum, x, {x, 0});
                  made.set();
                  made.wait();
                  move(Y(m.block(instance, 16), all), x);
                })});
  return kernel;
}

Arguments with_results(Product& product, std::vector<float>& t, std::vector<float>& y) {
  Arguments arguments = product.arguments();
  arguments.tensors.pop_back();
  for (const auto& [name, values] : {std::pair{"T", &t}, {"Y", &y}}) {
    arguments.tensors.push_back(
        {name, f32, {27, 48}, {}, reinterpret_cast<std::byte*>(values->data()), {}});
  }
  return arguments;
}

TEST(IncoreSimulation, CoresHandOnThroughGlobalMemory) {
  const ir::Kernel machine = machine_form(handed_on());
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    Product product(27, 48, 64);  // the second vector core has fewer rows
    std::vector<float> t(27 * 48, NAN), y(27 * 48, NAN);
    const Arguments arguments = with_results(product, t, y);
    MachineOptions options;
    options.seed = seed;
    const MachineReport report = run_machine(machine, arguments, options);
    ASSERT_TRUE(report.ok()) << report.faults.front().message;
    for (std::int64_t i = 0; i < 27; ++i) {
      for (std::int64_t j = 0; j < 48; ++j) {
        double wanted = 0;
        for (std::int64_t d = 0; d < 64; ++d) {
          wanted += product.A.at({i, d}) * product.B.at({j, d});
        }
        EXPECT_NEAR(y[i * 48 + j], std::max(wanted, 0.0), 1e-3);
      }
    }
  }
  // Nobody sets what both wait for; nobody waits either.
  for (const bool waits : {false, true}) {
    ir::Kernel mutant = machine;
    for (const Op op : {Op::event_set, Op::event_wait}) {
      if (op == Op::event_wait && waits) continue;
      EXPECT_TRUE(drop(mutant, 0, [&](const Operation& o) {
        return o.op == op && o.attributes.text(Key::to) == "VMTE2";
      }));
    }
    Product product(27, 48, 64);
    std::vector<float> t(27 * 48, NAN), y(27 * 48, NAN);
    const Arguments arguments = with_results(product, t, y);
    const MachineReport report = run_machine(mutant, arguments, {});
    ASSERT_FALSE(report.ok());
    const std::string& kind = report.faults.front().kind;
    EXPECT_TRUE(waits ? kind == "deadlock" : kind == "race" || kind == "uninitialised") << kind;
  }
}

// Blocks run in no order: what two of them store has no value.
TEST(IncoreSimulation, BlocksThatStoreOneElementAreFound) {
  for (const bool apart : {true, false}) {
    Kernel kernel("stored");
    kernel.target("incore");
    const Dim m = kernel.dim("m");
    const Tensor X = kernel.in("X", f32, {m, 48}), Y = kernel.out("Y", f32, {m, 48});
    kernel.ctas(2);
    CoreMemory x(kernel, "Vec", "x", f32, 16, 48);
    CoreEvent taken(kernel, "VMTE2", "VMTE3");
    kernel.roles({sequencer("vector", [&](const Index& instance) {
      const Block rows = m.block(apart ? cta_index() * 2 + instance : instance, 16);
      move(x, X(rows, all));
      taken.set();
      taken.wait();
      move(Y(rows, all), x);
    })});
    std::vector<float> from(64 * 48, 1.0F), to(64 * 48, NAN);
    Arguments arguments;
    for (const auto& [name, values] : {std::pair{"X", &from}, {"Y", &to}}) {
      arguments.tensors.push_back(
          {name, f32, {64, 48}, {}, reinterpret_cast<std::byte*>(values->data()), {}});
    }
    const MachineReport report = run_machine(machine_form(kernel), arguments, {});
    ASSERT_EQ(report.ok(), apart);
    if (apart) continue;
    EXPECT_EQ(report.faults.front().kind, "race");
    EXPECT_THAT(report.faults.front().message, HasSubstr("touch one element of Y"));
  }
}

// Y = X[n], one vector core's, in parts of four rows: in each loop one more of where they begin.
// The number of the event is a scalar too.
Kernel taken_apart() {
  Kernel kernel("taken_apart");
  kernel.target("incore");
  const Tensor X = kernel.in("X", f32, {3, 16, 48}), Y = kernel.out("Y", f32, {16, 48});
  const Index n(kernel.scalar("n", i32)), event(kernel.scalar("event", i32));
  kernel.ctas(1);
  CoreMemory x(kernel, "Vec", "x", f32, 16, 48);
  CoreEvent taken(kernel, "VMTE2", "VMTE3");
  kernel.roles({sequencer("vector", [&](const Index& instance) {
    when(instance == 0, [&] {
      move(x, X(n, all, all));
      taken.set(event);
      taken.wait(event);
      for (Index half : range(2)) {
        for (Index part : range(2)) {
          const Index first = half * 8 + part * 4;
          move(Y(Dim(16).block(first / 4, 4), all),
               CoreWindow(x).part(half * 8, 0, 8, 48).part(part * 4, 0, 4, 48));
        }
      }
    });
  })});
  return kernel;
}

TEST(IncoreSimulation, NumbersThatARunSays) {
  const ir::Kernel machine = machine_form(taken_apart());
  std::vector<float> x(4 * 16 * 48), y;
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  const auto run_with = [&](int n, int event) {
    y.assign(16 * 48, NAN);
    Arguments arguments;
    // A fourth one lies behind those that the tensor has.
    arguments.tensors = {{"X", f32, {3, 16, 48}, {}, reinterpret_cast<std::byte*>(x.data()), {}},
                         {"Y", f32, {16, 48}, {}, reinterpret_cast<std::byte*>(y.data()), {}}};
    arguments.scalars = {static_cast<double>(n), static_cast<double>(event)};
    return run_machine(machine, arguments, {});
  };
  const MachineReport report = run_with(2, 0);
  ASSERT_TRUE(report.ok()) << report.faults.front().message;
  for (std::size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], x[2 * 16 * 48 + i]) << i;
  for (const int n : {-1, 3}) {
    const MachineReport outside = run_with(n, 0);
    if (!outside.ok()) continue;
    for (std::size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], 0) << n << ", " << i;
  }
  const int ids = target::find_target("incore").core->event("VMTE2", "VMTE3")->ids;
  EXPECT_TRUE(run_with(1, ids - 1).ok());
  for (const int event : {-1, ids}) {
    const MachineReport none = run_with(1, event);
    ASSERT_FALSE(none.ok()) << event;
    EXPECT_EQ(none.faults.front().kind, "out_of_bounds") << none.faults.front().message;
  }
}

// Two memories that share a place: what the one holds the other writes over; and an instruction
// that writes over what it still reads.
TEST(IncoreSimulation, WhatAnotherMemoryHasLeftIsNoResult) {
  for (const bool in_place : {false, true}) {
    Kernel kernel("shared_place");
    kernel.target("incore_unified");
    const Tensor X = kernel.in("X", f32, {16, 64});
    const Tensor Y = kernel.out("Y", in_place ? bf16 : f32, {16, 64});
    kernel.ctas(1);
    CoreMemory x(kernel, "Vec", "x", f32, 16, 64);
    CoreMemory y(kernel, "Vec", "y", in_place ? bf16 : f32, 16, 64);
    CoreEvent loaded(kernel, "MTE2", "V"), made(kernel, "V", "MTE3");
    kernel.roles({sequencer("core", [&] {
      move(x, X(all, all));
      loaded.set();
      loaded.wait();
      if (in_place) {
        vector(VectorFunction::convert, y, {x});
      } else {
        fill(y, 1);
        unit_barrier("V");
        vector(VectorFunction::add, y, {x, 1});
      }
      made.set();
      made.wait();
      move(Y(all, all), y);
    })});
    std::vector<float> from(16 * 64, 1.0F), to(16 * 64, NAN);
    Arguments arguments;
    arguments.tensors = {
        {"X", f32, {16, 64}, {}, reinterpret_cast<std::byte*>(from.data()), {}},
        {"Y", in_place ? bf16 : f32, {16, 64}, {}, reinterpret_cast<std::byte*>(to.data()), {}}};
    ir::Kernel machine = machine_form(kernel);
    ASSERT_TRUE(run_machine(machine, arguments, {}).ok());
    ir::for_each(machine.body, [](Operation& o) {
      if (o.op == Op::memory) o.attributes.set(Key::offset, std::int64_t{0});
    });
    const MachineReport report = run_machine(machine, arguments, {});
    ASSERT_FALSE(report.ok());
    const Fault& fault = report.faults.front();
    EXPECT_EQ(fault.kind, in_place ? "overlap" : "uninitialised");
    EXPECT_THAT(fault.message, HasSubstr(in_place ? "writes y over a part of x, which it reads"
                                                  : "of x (Vec), over which y has been written"));
  }
}

// What has been read is written over by another unit.
TEST(IncoreSimulation, ReadersOfGlobalMemoryAreOverBeforeItIsWritten) {
  for (const bool waits : {true, false}) {
    Kernel kernel("overwritten");
    kernel.target("incore");
    const Tensor X = kernel.inout("X", f32, {16, 48});
    kernel.ctas(1);
    CoreMemory x(kernel, "Vec", "x", f32, 16, 48), y(kernel, "Vec", "y", f32, 16, 48);
    CoreEvent taken(kernel, "VMTE2", "VMTE3"), made(kernel, "V", "VMTE3");
    kernel.roles({sequencer("vector", [&](const Index& instance) {
      when(instance == 0, [&] {
        move(x, X(all, all));
        if (waits) taken.set();
        fill(y, 1);
        made.set();
        made.wait();
        if (waits) taken.wait();
        move(X(all, all), y);
      });
    })});
    std::vector<float> values(16 * 48, 0.0F);
    Arguments arguments;
    arguments.tensors = {{"X", f32, {16, 48}, {}, reinterpret_cast<std::byte*>(values.data()), {}}};
    const MachineReport report = run_machine(machine_form(kernel), arguments, {});
    ASSERT_EQ(report.ok(), waits);
    if (waits) continue;
    EXPECT_EQ(report.faults.front().kind, "race");
  }
}

// A text that somebody has changed is refused, not executed.
TEST(IncoreSimulation, ChangedFormsAreRefused) {
  const ir::Kernel machine = machine_form(incore_gemm::gemm("incore", "cube", kBlocks));
  const auto is_refused =
      [&](const std::function<bool(ir::Kernel & kernel, Operation & o)>& change) {
        ir::Kernel changed = machine;
        bool done = false;
        ir::for_each(changed.body, [&](Operation& o) { done = done || change(changed, o); });
        EXPECT_TRUE(done);
        try {
          target::verify(changed, ErrorKind::usage);
        } catch (const Error&) {
          return true;
        }
        return false;
      };
  EXPECT_FALSE(is_refused([](ir::Kernel&, Operation& o) { return o.op == Op::window; }));
  // A memory of a row or a column less than its windows have, of fewer stages.
  for (const std::size_t axis : {1U, 2U}) {
    EXPECT_TRUE(is_refused([&](ir::Kernel& kernel, Operation& o) {
      if (o.op != Op::memory) return false;
      --kernel.types[o.results[0]].shape[axis];
      return true;
    }));
  }
  // Other parts of a tensor than their windows.
  for (const Op op : {Op::core_load, Op::core_store}) {
    for (const std::size_t axis : {0U, 1U}) {
      EXPECT_TRUE(is_refused([&](ir::Kernel&, Operation& o) {
        if (o.op != op) return false;
        std::vector<std::int64_t> sizes = o.attributes.integers(Key::sizes);
        --sizes[axis];
        o.attributes.set(Key::sizes, sizes);
        return true;
      }));
    }
  }
}

// ---- Seeded faults.

TEST(IncoreFaults, AreFoundAtEverySite) {
  // The last piece of k has one element: else it would be summed with one less, too.
  std::vector<checks::CoreCase> cases;
  for (const auto& [m, n, k] : {std::tuple{34, 50, 209}, {40, 50, 136}}) {
    cases.push_back([m = m, n = n, k = k](const std::vector<ir::Kernel>& kernels,
                                          MachineOptions options, const ProgramMutant*) {
      Product product(m, n, k);
      options.multiprocessors = 1;
      checks::CoreRun made;
      made.report = run_machine(kernels.front(), product.arguments(), options);
      made.bits = checks::bits_of({product.C});
      if (!product.is_right()) made.mismatch = "C";
      return made;
    });
  }
  checks::ProofOptions how;
  how.schedules = 1;  // each finds the same
  how.threads = 1;
  using Verdict = checks::MutantResult::Verdict;
  // A third of each kernel's. `simulate --faults` makes all of them.
  how.parts = 3;
  for (const ir::Kernel& machine : products()) {
    int caught = 0;
    for (const checks::MutantResult& result : checks::prove_cores({machine}, cases, how)) {
      SCOPED_TRACE(machine.target + ": " + std::string(result.kind->name) + ": " +
                   result.mutant.operation + " " + result.mutant.change);
      EXPECT_NE(result.verdict, Verdict::undecided) << result.reason;
      EXPECT_NE(result.verdict, Verdict::unreached);
      // Ends that tensors have by themselves.
      if (result.kind->number != 55) {
        EXPECT_NE(result.verdict, Verdict::equivalent);
      }
      caught += result.verdict == Verdict::caught;
      if (result.verdict != Verdict::caught || result.fault.kind == "mismatch") continue;
      EXPECT_NE(result.fault.first.file, nullptr) << result.fault.message;
    }
    EXPECT_GE(caught, 25) << machine.target;
    ++how.part;
  }
}

// The kinds that some schedule shows, and a message of each: what is found first hangs on it.
std::map<std::string, std::string> messages(const ir::Kernel& mutant) {
  std::map<std::string, std::string> found;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    Product product(70, 50, 200);
    for (const Fault& fault : run(mutant, product, seed).faults) {
      found[fault.kind] += fault.message + "\n" + fault.missing + "\n";
    }
  }
  return found;
}

// What a fault is called, and which lines and fix it names.
TEST(IncoreFaults, AreNamed) {
  const ir::Kernel machine = machine_form(incore_gemm::gemm("incore", "cube", kBlocks));
  const auto is_of = [](const Operation& o, const char* from, const char* to) {
    return ir::info(o.op).family == ir::Family::core_event && o.op != Op::unit_barrier &&
           o.attributes.text(Key::from) == from && o.attributes.text(Key::to) == to;
  };
  const auto without = [&](Op op, const char* from, const char* to, int site) {
    ir::Kernel mutant = machine;
    EXPECT_TRUE(
        drop(mutant, site, [&](const Operation& o) { return o.op == op && is_of(o, from, to); }));
    return messages(mutant);
  };
  const auto without_any = [&](const char* from, const char* to) {
    ir::Kernel mutant = machine;
    while (drop(mutant, 0, [&](const Operation& o) { return is_of(o, from, to); })) {
    }
    return messages(mutant);
  };
  // Nothing says that what is read has been loaded.
  std::string message = without_any("MTE2", "MTE1")["race"];
  EXPECT_THAT(message, HasSubstr("(MTE1) may read a[stage 0] (Mat) before "
                                 "core_load at "));
  EXPECT_THAT(message, HasSubstr("incore_gemm.cpp:44 (MTE2) is over"));
  EXPECT_THAT(message, HasSubstr("an event from MTE2, set behind the first, to MTE1"));
  // Nothing says that a stage is free again: one buffer late.
  message = without_any("MTE1", "MTE2")["race"];
  EXPECT_THAT(message, HasSubstr("(MTE2) may write a[stage"));
  // The wait alone is missing: what it is for is raised twice.
  message = without(Op::event_wait, "MTE1", "MTE2", 0)["event"];
  EXPECT_THAT(message, HasSubstr("event 0 from MTE1 to MTE2 may be set while it is still up"));
  // The set that a wait is for.
  message = without(Op::event_set, "MTE2", "MTE1", 0)["deadlock"];
  EXPECT_THAT(message, HasSubstr("MTE1 waits for event"));
  // What takes the last events back.
  message = without(Op::event_wait, "FIX", "M", 1)["exit"];
  EXPECT_THAT(message, HasSubstr("from FIX to M is still up at the end"));
  // A result of what nobody loaded.
  ir::Kernel unloaded = machine;
  EXPECT_TRUE(drop(unloaded, 1, [](const Operation& o) { return o.op == Op::core_load; }));
  message = messages(unloaded)["uninitialised"];
  EXPECT_THAT(message, HasSubstr("writes an element of C that was made of row 0, column 0 of b "
                                 "(Mat), which nobody has written"));
}

}  // namespace
}  // namespace tilewright::simulator
