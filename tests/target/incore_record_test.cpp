#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "common/error_text.h"
#include "compiler/compile_to_machine.h"
#include "simulator/machine/machine.h"
#include "target/core.h"
#include "target/target.h"
#include "tilewright/incore.h"

// Records of cores with explicit memories, and what they refuse at the author's line.
namespace tilewright::target {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using CoreEvent = tilewright::CoreEvent;

TEST(IncoreRecord, AgreesWithItself) {
  int cores = 0;
  for (const Target* target : targets()) {
    if (!target->core) continue;
    ++cores;
    SCOPED_TRACE(target->name);
    const Core& core = *target->core;
    const auto unit = [&](const std::string& name) { EXPECT_NE(core.unit(name), nullptr) << name; };
    const auto space = [&](const std::string& name) {
      EXPECT_TRUE(name.empty() || core.space(name) != nullptr) << name;
    };
    for (const CoreUnit& each : core.units) {
      EXPECT_NE(core.sequencer(each.sequencer), nullptr) << each.name;
      EXPECT_GT(each.depth, 0) << each.name;
    }
    for (const CoreSpace& each : core.spaces) {
      EXPECT_TRUE(each.sequencer.empty() || core.sequencer(each.sequencer) != nullptr);
      EXPECT_EQ(each.bytes % each.granule, 0) << each.name;
    }
    for (const CoreMove& each : core.moves) {
      unit(each.unit);
      space(each.from);
      space(each.to);
      EXPECT_GT(each.bytes, 0);
      EXPECT_NE(each.from, each.to);
    }
    for (const CoreProduct& each : core.products) {
      unit(each.unit);
      for (const std::string& name : {each.left, each.right, each.result}) space(name);
    }
    for (const CoreFunctions& each : core.functions) {
      unit(each.unit);
      for (const std::string& name : each.reads) space(name);
      for (const std::string& name : each.writes) space(name);
    }
    std::set<std::pair<std::string, std::string>> pairs;
    for (const CoreEventPair& each : core.events) {
      unit(each.from);
      unit(each.to);
      EXPECT_TRUE(pairs.emplace(each.from, each.to).second) << each.from << " " << each.to;
    }
    // What computes a way back to global memory exists from every result.
    for (const CoreProduct& each : core.products) {
      EXPECT_FALSE(core.moves_from(each.result).empty()) << each.result;
    }
  }
  EXPECT_EQ(cores, 3);
}

// Each element has a place of its own, inside of what the matrix takes, for sizes that are no
// multiples of a piece.
TEST(IncoreRecord, LayoutsPlaceEveryElementOnce) {
  for (const CoreLayout* layout :
       {&rows_layout(), &fractal_rows_layout(), &fractal_columns_layout(), &fractal_turned_layout(),
        &square_columns_layout()}) {
    SCOPED_TRACE(layout->name);
    for (const DType dtype : {f32, bf16, i8}) {
      for (const auto& [rows, columns] : {std::pair{16, 32}, {33, 20}, {1, 70}, {48, 64}}) {
        const Matrix matrix{rows, columns, dtype};
        std::set<std::int64_t> places;
        for (std::int64_t row = 0; row < rows; ++row) {
          for (std::int64_t column = 0; column < columns; ++column) {
            const std::int64_t place = layout->offset(matrix, row, column);
            EXPECT_TRUE(places.insert(place).second);
            EXPECT_EQ(place % size_of(dtype), 0);
            EXPECT_LE(place + size_of(dtype), layout->bytes(matrix));
          }
        }
      }
    }
  }
}

// By hand, of 32 x 64 bf16: pieces have 16 elements of 2 bytes in a row.
TEST(IncoreRecord, LayoutsAreThoseThatTheyAreNamedFor) {
  const Matrix m{32, 64, bf16};
  EXPECT_EQ(rows_layout().offset(m, 3, 5), (3 * 64 + 5) * 2);
  // Row 17 is row 1 of the second row of pieces, column 33 column 1 of the third piece.
  EXPECT_EQ(fractal_rows_layout().offset(m, 17, 33), (4 + 2) * 512 + 32 + 2);
  EXPECT_EQ(fractal_columns_layout().offset(m, 17, 33), (2 * 2 + 1) * 512 + 32 + 2);
  EXPECT_EQ(fractal_turned_layout().offset(m, 17, 33), (4 + 2) * 512 + 32 + 2);
  EXPECT_EQ(fractal_turned_layout().offset(m, 18, 33), (4 + 2) * 512 + 32 + 4);
  EXPECT_EQ(fractal_rows_layout().offset(m, 18, 33), (4 + 2) * 512 + 64 + 2);
  EXPECT_EQ(square_columns_layout().offset({32, 64, f32}, 17, 33), ((2 * 2 + 1) * 256 + 17) * 4);
  EXPECT_EQ(partitions_layout().offset(m, 17, 33), 66);
}

// Without the line of the source, which stands in a test with the words that are expected.
std::string refusal_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage) << error.what();
    std::istringstream lines(error.what());
    std::string text, before, line;
    while (std::getline(lines, line)) {
      const bool is_caret = line.find_first_not_of(" ^") == std::string::npos;
      if (!is_caret) text += before;
      before = is_caret ? "" : line + "\n";
    }
    return text + before;
  }
  return "no error";
}

// In the body of a sequencer of a kernel for `incore`.
std::string refused(const char* sequencer_name,
                    const std::function<void(Kernel&, const Tensor&)>& declare,
                    const std::function<void()>& body) {
  return refusal_of([&] {
    Kernel kernel("refused");
    kernel.target("incore");
    const Tensor X = kernel.inout("X", bf16, {64, 64});
    kernel.ctas(1);
    declare(kernel, X);
    kernel.roles({sequencer(sequencer_name, body)});
    compiler::compile_to_machine(kernel.finish(), "incore");
  });
}

TEST(IncoreErrors, NameTheLineTheValuesAndTheFix) {
  std::optional<CoreMemory> mat, left, right, acc, vec;
  std::optional<Tensor> x;
  const auto declare = [&](Kernel& kernel, const Tensor& X) {
    x = X;
    mat.emplace(kernel, "Mat", "mat", bf16, 64, 64, stages(2));
    left.emplace(kernel, "Left", "left", bf16, 64, 64);
    right.emplace(kernel, "Right", "right", bf16, 64, 64);
    acc.emplace(kernel, "Acc", "acc", f32, 64, 64);
    vec.emplace(kernel, "Vec", "vec", f32, 64, 64);
  };
  struct Case {
    const char* sequencer;
    std::function<void()> body;
    int line;
    std::vector<std::string> says;
  };
  const std::vector<Case> cases = {
      {"cube",
       [&] { move(*left, (*x)(all, all)); },
       __LINE__,
       {"move: nothing moves from GM to Left", "from GM there is a way to Mat by MTE2"}},
      {"cube",
       [&] { move(*mat, *left); },
       __LINE__,
       {"nothing moves from Left to Mat", "nothing leaves Left but what computes there"}},
      {"cube",
       [&] { move(CoreWindow(*mat).T(), (*x)(all, all)); },
       __LINE__,
       {"MTE2 does not transpose from GM to Mat"}},
      {"cube",
       [&] { move(*left, (*mat)[0].part(0, 0, 32, 64)); },
       __LINE__,
       {"move: from {32, 64} to {64, 64}"}},
      {"cube",
       [&] { move((*left)[0].part(0, 8, 16, 32), (*mat)[0].part(0, 0, 16, 32)); },
       __LINE__,
       {"row 0, column 8 lies at byte 16", "at a multiple of 512"}},
      {"cube", [&] { move(*left, (*mat)[2]); }, __LINE__, {"stage 2 of 2"}},
      {"cube",
       [&] { move(*left, (*mat)[0].part(32, 0, 64, 64)); },
       __LINE__,
       {"part: 64 rows from 32 on of 64"}},
      {"cube",
       [&] { matmul(*acc, *right, *left, false); },
       __LINE__,
       {"no unit multiplies Right x Left into Acc", "there is Left x Right -> Acc"}},
      {"cube",
       [&] { matmul(*acc, CoreWindow(*left).T(), *right, false); },
       __LINE__,
       {"left is transposed", "M takes left as {m, k}"}},
      {"cube",
       [&] { unit_barrier("V"); },
       __LINE__,
       {"V does it, which the role \"cube\" has not", "do it in the role \"vector\""}},
      {"cube", [&] { fill(*vec, 0); }, __LINE__, {"Vec is a memory of the sequencer \"vector\""}},
      {"vector", [&] { fill(*vec, 0, "VMTE3"); }, __LINE__, {"VMTE3 does not fill Vec"}},
      {"vector", [&] { fill(*vec, 0, "MTE2"); }, __LINE__, {"MTE2 does it, which the role"}},
      {"cube",
       [&] { iota(*mat, 0, 0); },
       __LINE__,
       {"iota: no unit computes in Mat", "V computes in Vec"}},
      {"vector",
       [&] { vector(VectorFunction::add, *vec, {*vec}); },
       __LINE__,
       {"add of 1 operands", "it takes 2"}},
      {"vector",
       [&] { reduce(Reduction::max, *vec, *vec, 1); },
       __LINE__,
       {"along axis 1 of {64, 64} into {64, 64}"}},
      {"vector",
       [&] {
         vector(VectorFunction::less, *vec, {*vec, 0});
       },
       __LINE__,
       {"the result is of f32", "a comparison makes bool"}},
      {"vector",
       [&] {
         vector(VectorFunction::select, *vec, {*vec, *vec, 0});
       },
       __LINE__,
       {"an operand is of f32, and not of bool"}},
      {"mte", [&] {}, __LINE__, {"incore has none of that name", "cube, vector"}},
  };
  for (const Case& each : cases) {
    const std::string message = refused(each.sequencer, declare, each.body);
    for (const std::string& part : each.says) EXPECT_THAT(message, HasSubstr(part));
    if (each.sequencer != std::string("mte")) {
      // A long body has its line before that of __LINE__.
      const std::string file = "incore_record_test.cpp:";
      EXPECT_THAT(message, AnyOf(HasSubstr(file + std::to_string(each.line)),
                                 HasSubstr(file + std::to_string(each.line - 1)),
                                 HasSubstr(file + std::to_string(each.line - 2))));
    }
  }
  std::optional<Tensor> input;
  const auto with_input = [&](Kernel& kernel, const Tensor&) {
    input = kernel.in("Given", f32, {64, 64});
    vec.emplace(kernel, "Vec", "vec", f32, 64, 64);
  };
  EXPECT_THAT(refused("vector", with_input, [&] { move((*input)(all, all), *vec); }),
              AllOf(HasSubstr("move: Given is an input"), HasSubstr("Given is declared")));
  const auto nothing = [](Kernel&, const Tensor&) {};
  EXPECT_THAT(
      refused(
          "cube", [](Kernel& kernel, const Tensor&) { CoreEvent(kernel, "FIX", "V"); }, [] {}),
      HasSubstr("there is no event from FIX to V"));
  EXPECT_THAT(
      refused(
          "cube", [](Kernel& kernel, const Tensor&) { CoreEvent(kernel, "MTE2", "MTE1", 9); },
          [] {}),
      HasSubstr("9 events from MTE2 to MTE1"));
  EXPECT_THAT(
      refused(
          "cube", [](Kernel& kernel, const Tensor&) { CoreEvent(kernel, "MTE2", "MTE1", 0); },
          [] {}),
      HasSubstr("ask for one or more"));
  EXPECT_THAT(
      refused(
          "cube",
          [](Kernel& kernel, const Tensor&) { CoreMemory(kernel, "L1", "a", bf16, 16, 16); },
          [] {}),
      HasSubstr("there is no memory L1"));
  EXPECT_THAT(refused("cube", nothing, [] { cluster_sync(); }),
              HasSubstr("cluster_sync: incore has no such operation"));
}

TEST(IncoreErrors, WhatDoesNotFitIsListed) {
  std::optional<CoreMemory> a, b;
  const std::string line = std::to_string(__LINE__ + 4);
  const std::string message = refused(
      "cube",
      [&](Kernel& kernel, const Tensor&) {
        a.emplace(kernel, "Left", "first", bf16, 128, 128);
        b.emplace(kernel, "Left", "second", bf16, 64, 144, stages(2));
      },
      [] {});
  EXPECT_THAT(message,
              HasSubstr("\"second\": 69632 bytes of Left are taken with it, and incore has "
                        "65536"));
  EXPECT_THAT(message, HasSubstr("32768 bytes: first"));
  EXPECT_THAT(message, HasSubstr("36864 bytes: second (2 stages)"));
}

// A memory can be filled to its last byte, and not by a granule more.
TEST(IncoreErrors, AMemoryHasItsBytes) {
  std::optional<CoreMemory> first, second;
  const auto filled = [&](int more) {
    return refused(
        "cube",
        [&](Kernel& kernel, const Tensor&) {
          first.emplace(kernel, "Left", "first", bf16, 128, 128, stages(2));
          if (more > 0) second.emplace(kernel, "Left", "second", bf16, 16, more);
        },
        [] {});
  };
  EXPECT_EQ(filled(0), "no error");
  EXPECT_THAT(filled(16), HasSubstr("66048 bytes of Left are taken with it, and incore has 65536"));
}

TEST(IncoreErrors, OtherTargetsHaveNoSuchMemories) {
  const std::string message = refusal_of([] {
    Kernel kernel("k");
    kernel.target("sm_90a");
    CoreMemory(kernel, "Mat", "a", bf16, 16, 16);
  });
  EXPECT_THAT(message, HasSubstr("sm_90a has no memories of this kind"));
  EXPECT_THAT(message, HasSubstr("incore, incore_unified, incore_partitions"));
}

// Positive elements of the columns that exist, and 0 else. Where `swapped` the columns that do not
// exist are chosen.
ir::Kernel positive_columns(bool swapped) {
  Kernel kernel("k");
  kernel.target("incore");
  const Dim n = kernel.dim("n");
  const Tensor X = kernel.in("X", f32, {8, n}), Y = kernel.out("Y", f32, {8, 16});
  kernel.ctas(1);
  CoreMemory x(kernel, "Vec", "x", f32, 8, 16), y(kernel, "Vec", "y", f32, 8, 16);
  CoreMemory at(kernel, "Vec", "at", i32, 1, 16), end(kernel, "Vec", "end", i32, 1, 1);
  CoreMemory exists(kernel, "Vec", "exists", DType::boolean, 1, 16);
  CoreMemory chosen(kernel, "Vec", "chosen", DType::boolean, 8, 16);
  CoreEvent loaded(kernel, "VMTE2", "V"), computed(kernel, "V", "VMTE3");
  kernel.roles({sequencer("vector", [&](const Index& instance) {
    when(instance == 0, [&] {
      move(x, X(all, n.block(0, 16)));
      loaded.set();
      iota(at, 1, 0);
      iota(end, 1, n);
      loaded.wait();
      unit_barrier("V");
      vector(VectorFunction::less, exists, {at, end});
      unit_barrier("V");
      if (swapped) {
        vector(VectorFunction::select, y, {exists, -1, x});
      } else {
        vector(VectorFunction::select, y, {exists, x, -1});
      }
      unit_barrier("V");
      vector(VectorFunction::less, chosen, {0, y});
      unit_barrier("V");
      vector(VectorFunction::logical_and, chosen, {chosen, exists});
      unit_barrier("V");
      vector(VectorFunction::logical_not, chosen, {chosen});
      unit_barrier("V");
      vector(VectorFunction::select, y, {chosen, 0, y});
      computed.set();
      computed.wait();
      move(Y(all, all), y);
    });
  })});
  return compiler::compile_to_machine(kernel.finish(), "incore").kernel;
}

// What is not chosen may be anything, also what nobody has written.
TEST(IncoreRecord, VectorsCompareAndSelect) {
  constexpr std::int64_t kExist = 5;  // a load fills rows up to 8
  std::vector<float> x(8 * kExist), y(8 * 16, NAN);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 37 % 101) - 50;
  Arguments arguments;
  arguments.tensors = {{"X", f32, {8, kExist}, {}, reinterpret_cast<std::byte*>(x.data()), {}},
                       {"Y", f32, {8, 16}, {}, reinterpret_cast<std::byte*>(y.data()), {}}};
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    simulator::MachineOptions options;
    options.seed = seed;
    const simulator::MachineReport report =
        simulator::run_machine(positive_columns(false), arguments, options);
    ASSERT_TRUE(report.ok()) << report.faults.front().message;
  }
  for (std::int64_t i = 0; i < 8 * 16; ++i) {
    const std::int64_t column = i % 16;
    const float wanted = column < kExist ? std::max(x[i / 16 * kExist + column], 0.0f) : 0.0f;
    EXPECT_EQ(y[i], wanted) << i;
  }
  const simulator::MachineReport report =
      simulator::run_machine(positive_columns(true), arguments, {});
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.faults.front().kind, "uninitialised");
}

// A record that is made up here is as good as one of the house: nobody asks for names.
TEST(IncoreRecord, AnotherMachineIsARecordAlone) {
  Target small = find_target("incore");
  small.name = "tiny";
  Core core = *small.core;
  for (CoreSpace& space : core.spaces) space.bytes = 2048;
  small.core = std::make_shared<const Core>(core);
  const AddedTarget added(small);
  Kernel kernel("k");
  kernel.target("tiny");
  const Tensor X = kernel.in("X", f32, {8, 32}), Y = kernel.out("Y", f32, {8, 32});
  kernel.ctas(1);
  CoreMemory x(kernel, "Vec", "x", f32, 8, 32);
  CoreMemory maximum(kernel, "Vec", "maximum", f32, 8, 1);
  CoreEvent loaded(kernel, "VMTE2", "V"), computed(kernel, "V", "VMTE3");
  kernel.roles({sequencer("vector", [&](const Index& instance) {
    when(instance == 0, [&] {
      move(x, X(all, all));
      loaded.set();
      loaded.wait();
      reduce(Reduction::max, maximum, x, 1);
      unit_barrier("V");
      vector(VectorFunction::subtract, x, {x, maximum});
      unit_barrier("V");
      vector(VectorFunction::exp, x, {x});
      computed.set();
      computed.wait();
      move(Y(all, all), x);
    });
  })});
  const ir::Kernel machine = compiler::compile_to_machine(kernel.finish(), "tiny").kernel;
  std::vector<float> x_values(8 * 32), y(8 * 32, NAN);
  for (std::size_t i = 0; i < x_values.size(); ++i) {
    x_values[i] = static_cast<float>(i * 37 % 101) / 50;
  }
  Arguments arguments;
  arguments.tensors = {{"X", f32, {8, 32}, {}, reinterpret_cast<std::byte*>(x_values.data()), {}},
                       {"Y", f32, {8, 32}, {}, reinterpret_cast<std::byte*>(y.data()), {}}};
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    simulator::MachineOptions options;
    options.seed = seed;
    const simulator::MachineReport report = simulator::run_machine(machine, arguments, options);
    ASSERT_TRUE(report.ok()) << report.faults.front().message;
  }
  for (std::size_t row = 0; row < 8; ++row) {
    float most = -1;
    for (std::size_t i = 0; i < 32; ++i) most = std::max(most, x_values[row * 32 + i]);
    for (std::size_t i = row * 32; i < row * 32 + 32; ++i) {
      EXPECT_NEAR(y[i], std::exp(x_values[i] - most), 1e-5);
    }
  }
  // Without one of the barriers the second function may read what the first has not written.
  ir::Kernel mutant = machine;
  ir::Block* body = nullptr;
  ir::for_each(mutant.body, [&](ir::Operation& o) {
    for (ir::Block& block : o.blocks) {
      for (const ir::Operation& inner : block.body) {
        if (inner.op == ir::Op::unit_barrier) body = &block;
      }
    }
  });
  ASSERT_NE(body, nullptr);
  std::erase_if(body->body, [](const ir::Operation& o) { return o.op == ir::Op::unit_barrier; });
  const simulator::MachineReport report = simulator::run_machine(mutant, arguments, {});
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.faults.front().kind, "race");
  EXPECT_EQ(report.faults.front().missing, "unit_barrier(\"V\") between the two");
}

// Two temporaries of the vector unit in one place: the second is written once the first is used up,
// which the unit itself, or its barrier, says. `again`: the first is used once more behind.
Kernel two_lives(bool waits, bool again, bool loops) {
  Kernel kernel("lives");
  kernel.target("narrow");
  const Tensor X = kernel.in("X", f32, {8, 32}), Y = kernel.out("Y", f32, {8, 32});
  kernel.ctas(1);
  CoreMemory x(kernel, "Vec", "x", f32, 8, 32), y(kernel, "Vec", "y", f32, 8, 32);
  CoreMemory first(kernel, "Vec", "first", f32, 8, 32), second(kernel, "Vec", "second", f32, 8, 32);
  CoreEvent loaded(kernel, "VMTE2", "V"), computed(kernel, "V", "VMTE3");
  kernel.roles({sequencer("vector", [&](const Index& instance) {
    const auto work = [&] {
      vector(VectorFunction::multiply, first, {x, 2});
      unit_barrier("V");
      vector(VectorFunction::add, y, {first, 1});
      if (waits) unit_barrier("V");
      vector(VectorFunction::multiply, second, {x, 3});
      unit_barrier("V");
      vector(VectorFunction::add, y, {y, second});
      if (again) vector(VectorFunction::add, y, {y, first});
    };
    when(instance == 0, [&] {
      move(x, X(all, all));
      loaded.set();
      loaded.wait();
      if (loops) {
        for ([[maybe_unused]] Index turn : range(2)) {
          work();
          unit_barrier("V");
        }
      } else {
        work();
      }
      computed.set();
      computed.wait();
      move(Y(all, all), y);
    });
  })});
  return kernel;
}

TEST(IncoreRecord, MemoriesShareAPlaceOnceOneIsUsedUp) {
  Target narrow = find_target("incore");
  narrow.name = "narrow";
  Core core = *narrow.core;
  for (CoreSpace& space : core.spaces) space.bytes = 3 * 1024;  // for three of the four
  narrow.core = std::make_shared<const Core>(core);
  const AddedTarget added(narrow);
  for (const bool loops : {false, true}) {
    const ir::Kernel machine =
        compiler::compile_to_machine(two_lives(true, false, loops).finish(), "narrow").kernel;
    std::map<std::string, std::int64_t> offsets;
    for (const ir::Operation& o : machine.body.body) {
      if (o.op != ir::Op::memory) continue;
      offsets[o.attributes.text(ir::Key::name)] = o.attributes.integer(ir::Key::offset);
    }
    EXPECT_EQ(offsets["first"], offsets["second"]);
    EXPECT_NE(offsets["x"], offsets["y"]);
    std::vector<float> x(8 * 32), y(8 * 32, NAN);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 37);
    Arguments arguments;
    arguments.tensors = {{"X", f32, {8, 32}, {}, reinterpret_cast<std::byte*>(x.data()), {}},
                         {"Y", f32, {8, 32}, {}, reinterpret_cast<std::byte*>(y.data()), {}}};
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      simulator::MachineOptions options;
      options.seed = seed;
      const simulator::MachineReport report = simulator::run_machine(machine, arguments, options);
      ASSERT_TRUE(report.ok()) << report.faults.front().message;
      for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], 5 * x[i] + 1);
    }
  }
  // Nothing says that the first is used up, or it is not: all four are listed with their lines.
  for (const bool waits : {false, true}) {
    const std::string text = test::usage_error_of([&] {
      compiler::compile_to_machine(two_lives(waits, /*again=*/waits, false).finish(), "narrow");
    });
    EXPECT_THAT(
        text, testing::AllOf(testing::HasSubstr("\"second\": 4096 bytes of Vec are taken with it"),
                             testing::HasSubstr("1024 bytes: first at "),
                             testing::HasSubstr("1024 bytes: x at ")));
  }
}

// What a kernel of the explicit level has to name, as the document lists it.
std::string text_of(const Target& target) {
  const Core& core = *target.core;
  std::string text = target.name + '\n';
  const auto line = [&](const std::string& what, const std::string& is) {
    text += fmt::format("  {:<9} {}\n", what, is);
  };
  for (const CoreSequencer& each : core.sequencers) {
    std::vector<std::string> units;
    for (const CoreUnit& unit : core.units) {
      if (unit.sequencer == each.name) units.push_back(unit.name);
    }
    line("sequencer", fmt::format("{}{}: {}", each.name,
                                  each.count > 1 ? fmt::format(" ({} of them)", each.count) : "",
                                  fmt::join(units, ", ")));
  }
  for (const CoreSpace& each : core.spaces) {
    line("memory",
         fmt::format("{}, {} KiB{}: {}; windows begin at multiples of {} bytes", each.name,
                     each.bytes / 1024,
                     each.partitions > 1 ? fmt::format(" x {} partitions", each.partitions) : "",
                     each.layout->text, each.granule));
  }
  for (const CoreMove& each : core.moves) {
    line("way",
         fmt::format("{} to {} by {}{}{}", core.space_name(each.from), core.space_name(each.to),
                     each.unit, each.transposes ? ", may transpose" : "",
                     each.conversions.empty() ? "" : ", f32 also to f16 and bf16"));
  }
  for (const CoreProduct& each : core.products) {
    line("product",
         fmt::format("{}{} x {} to {} by {}", each.left, each.left_transposed ? ".T()" : "",
                     each.right, each.result, each.unit));
  }
  for (const CoreFunctions& each : core.functions) {
    line("function", fmt::format("{} {} {}", each.unit, each.only_fills ? "fills" : "computes in",
                                 fmt::join(each.writes, ", ")));
  }
  std::map<int, std::vector<std::string>> pairs;
  for (const CoreEventPair& each : core.events) {
    if (each.from < each.to) pairs[each.ids].push_back(each.from + " and " + each.to);
  }
  const std::size_t all = core.units.size() * (core.units.size() - 1) / 2;
  for (const auto& [ids, list] : pairs) {
    line("events", fmt::format("{} each way between {}", ids,
                               list.size() == all ? "any two units"
                                                  : fmt::format("{}", fmt::join(list, ", "))));
  }
  return text;
}

TEST(IncoreRecord, StandsInTheDocument) {
  std::ifstream file(std::string(TILEWRIGHT_SOURCE_DIR) + "/docs/incore.md");
  const std::string document((std::istreambuf_iterator<char>(file)), {});
  for (const Target* each : targets()) {
    if (each->core) {
      EXPECT_THAT(document, HasSubstr(text_of(*each)));
    }
  }
}

}  // namespace
}  // namespace tilewright::target
