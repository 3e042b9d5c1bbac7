#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "common/error_text.h"
#include "common/loaded_bounds.h"
#include "compiler/compile_to_machine.h"
#include "ir/text.h"
#include "tilewright/asynchronous.h"
#include "tilewright/compile.h"
#include "tilewright/host_tensor.h"

// Indices, blocks and ends that a launch gives, by a list or as a scalar, and that lie outside.
namespace tilewright {
namespace {

using test::blocks_by_number;
using test::list_of;
using test::rows_by_index;
using test::sequence;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

struct BoundsTarget {
  const char* target;
  const char* what;  // how messages of the target begin
  bool checked = false;
};
constexpr BoundsTarget kBoundsTargets[] = {{"interpreter", "error: load: "},
                                           {"sim:sm_90a", "out of bounds: "},
                                           {"sim:sm_90a", "out of bounds: ", true}};

std::string name_of(const BoundsTarget& target) {
  return std::string(target.target) + (target.checked ? ", checked" : "");
}

// What the target says of the kernel, launched with the list, X {128, 64} and Y {rows, 64}, with
// the source line that it shows; empty if nothing.
std::string whole_said(const Kernel& kernel, const BoundsTarget& target,
                       const std::vector<int>& numbers, std::int64_t rows) {
  HostTensor names = list_of(numbers), X = HostTensor::random_normal(bf16, {128, 64}, 1);
  HostTensor Y = HostTensor::zeros(f32, {rows, 64});
  CompileOptions options;
  options.checked = target.checked;
  try {
    compile(kernel, target.target, options).run({ref(names), ref(X), ref(Y)});
  } catch (const Error& error) {
    const std::string text = error.what();
    // The kernel itself has said it, and not who executes it.
    EXPECT_EQ(text.find("\n  check") != std::string::npos, target.checked) << text;
    return text;
  }
  return "";
}

std::string said(const Kernel& kernel, const BoundsTarget& target, const std::vector<int>& numbers,
                 std::int64_t rows) {
  return test::without_source_lines(whole_said(kernel, target, numbers, rows));
}

TEST(LoadedBounds, ARowThatIsNotThere) {
  const Kernel kernel = rows_by_index();
  for (const BoundsTarget& target : kBoundsTargets) {
    SCOPED_TRACE(name_of(target));
    EXPECT_EQ(said(kernel, target, {3, 127, 0}, 3), "");
    EXPECT_THAT(
        said(kernel, target, {3, 128, 0}, 3),
        AllOf(HasSubstr(std::string(target.what) + "index 128 on axis 0 of X, which has 128"),
              HasSubstr("loaded_bounds.h:27")));
    EXPECT_THAT(said(kernel, target, {3, -1, 0}, 3), HasSubstr("index -1 on axis 0 of X"));
  }
  EXPECT_THAT(said(kernel, kBoundsTargets[0], {3, 9999, 0}, 3),
              HasSubstr("computed from 9999, which is loaded at"));
}

TEST(LoadedBounds, ABlockThatIsNotThere) {
  for (const bool products : {false, true}) {
    const Kernel kernel = blocks_by_number(products);
    for (const BoundsTarget& target : kBoundsTargets) {
      SCOPED_TRACE(name_of(target) + (products ? " with products" : ""));
      EXPECT_EQ(said(kernel, target, {1, 0, 1}, 64), "");
      EXPECT_THAT(said(kernel, target, {1, -1}, 64),
                  HasSubstr(std::string(target.what) +
                            "a block that begins at -64 on axis 0 of X, which has 128"));
      EXPECT_THAT(said(kernel, target, {1, 2}, 64), HasSubstr("begins at 128 on axis 0 of X"));
    }
  }
}

TEST(LoadedBounds, ASequenceThatEndsBehindItsTensor) {
  const Kernel kernel = sequence();
  for (const BoundsTarget& target : kBoundsTargets) {
    SCOPED_TRACE(name_of(target));
    EXPECT_EQ(said(kernel, target, {100, 128}, 1), "");
    EXPECT_EQ(said(kernel, target, {128, 128}, 1), "");
    EXPECT_THAT(said(kernel, target, {100, 129}, 1),
                HasSubstr(std::string(target.what) +
                          "a block from 100 that ends at 129 on axis 0 of X, which has 128"));
    EXPECT_THAT(said(kernel, target, {-3, 100}, 1), HasSubstr("begins at -3 on axis 0 of X"));
  }
}

// Offsets that are no offsets, of which a kernel may make blocks that all lie inside.
TEST(LoadedBounds, SequencesOfAPackedAxis) {
  const Kernel kernel = test::packed_sums();
  for (const BoundsTarget& target : {BoundsTarget{"interpreter", ""},
                                     {"cpu", ""},
                                     {"sim:sm_90a", ""},
                                     {"sim:sm_90a", "", true},
                                     {"sim:sm_100a", ""},
                                     {"sim:incore", ""}}) {
    SCOPED_TRACE(name_of(target));
    EXPECT_EQ(said(kernel, target, {0, 60, 128}, 2), "");
    EXPECT_EQ(said(kernel, target, {5, 60, 60, 128}, 3), "");
    const struct {
      std::vector<int> ends;
      const char *says, *says_checked;
    } wrong[] = {
        {{0, 60, 129}, "ends{2} is 129, and may be 128 at most", "ends gives 129, and may give 60"},
        {{0, 100, 60}, "ends{2} is 60, less than 100 before it", "ends gives 60, and may give 100"},
        {{-3, 60, 128}, "ends{0} is -3, and may not be negative", "ends gives -3, and may give 0"}};
    for (const auto& each : wrong) {
      EXPECT_THAT(
          whole_said(kernel, target, each.ends, 2),
          AllOf(HasSubstr(target.checked ? each.says_checked : each.says),
                HasSubstr("loaded_bounds.h"), HasSubstr("packed.of(i)"), HasSubstr("fix: ")));
    }
  }
}

// Halos and blocks that exist whole reach out of their tensor, and are right.
TEST(LoadedBounds, ReachingOutOnPurposeStaysLegal) {
  Kernel kernel("halo");
  const Dim count = kernel.dim("count"), rows = kernel.dim("rows"), out = kernel.dim("out");
  const Tensor names = kernel.in("names", i32, {count}), X = kernel.in("X", bf16, {rows, 64});
  const Tensor Y = kernel.out("Y", f32, {out, 64});
  const auto [i] = kernel.grid(1);
  const Index first = load_index(names(i));
  Var sum{zeros({32, 64})};
  for (Index shift : range(4)) {
    const Index start = first + shift - 3;
    sum = sum + load(X(Block(start, 32, start + 32), all)).cast(f32);
  }
  store(Y(Block(0, 32, 32), all), sum);
  for (const BoundsTarget& target : kBoundsTargets) {
    SCOPED_TRACE(name_of(target));
    EXPECT_EQ(said(kernel, target, {0}, 32), "");
    EXPECT_EQ(said(kernel, target, {120}, 32), "");
  }
}

// But not those of which nothing lies in it.
TEST(LoadedBounds, AHaloThatLiesWhollyBefore) {
  Kernel kernel("halo_before");
  const Dim count = kernel.dim("count"), rows = kernel.dim("rows"), out = kernel.dim("out");
  const Tensor names = kernel.in("names", i32, {count}), X = kernel.in("X", bf16, {rows, 64});
  const Tensor Y = kernel.out("Y", f32, {out, 64});
  const auto [i] = kernel.grid(1);
  const Index start = load_index(names(i)) - 32;
  store(Y(Block(0, 32, 32), all), load(X(Block(start, 32, start + 32), all)).cast(f32));
  for (const BoundsTarget& target : kBoundsTargets) {
    SCOPED_TRACE(name_of(target));
    EXPECT_EQ(said(kernel, target, {1}, 32), "");
    EXPECT_THAT(said(kernel, target, {0}, 32), HasSubstr("begins at -32 on axis 0 of X"));
  }
}

// An index that the kernel counts itself is held against the axis as one that a launch gives.
TEST(LoadedBounds, ACountedIndexPastTheEnd) {
  Kernel kernel("rows_in_turn");
  const Dim rows = kernel.dim("rows"), out = kernel.dim("out");
  kernel.in("names", i32, {kernel.dim("count")});
  const Tensor X = kernel.in("X", bf16, {rows, 64}), Y = kernel.inout("Y", f32, {out, 64});
  const auto [i] = kernel.grid(2);
  store(Y(i + 2, all), load(X(i + 126, all)).cast(f32));
  for (const BoundsTarget& target : kBoundsTargets) {
    SCOPED_TRACE(name_of(target));
    EXPECT_EQ(said(kernel, target, {0}, 4), "");
    EXPECT_THAT(said(kernel, target, {0}, 3),
                AllOf(HasSubstr("index 3 on axis 0 of Y, which has 3"),
                      HasSubstr("loaded_bounds_test.cpp"), Not(HasSubstr("the launch gives"))));
  }
}

// At the explicit level too, whose kernels the interpreter does not run.
TEST(LoadedBounds, ACountedIndexOfAnExplicitKernel) {
  Kernel kernel("one_row_each");
  const Dim rows = kernel.dim("rows"), out = kernel.dim("out");
  kernel.in("names", i32, {kernel.dim("count")});
  const Tensor X = kernel.in("X", bf16, {rows, 64}), Y = kernel.inout("Y", f32, {out, 64});
  kernel.ctas(2);
  kernel.roles({role("copy", warps(1), registers(40), [&] {
    store(Y(cta_index() + 7, all), load(X(cta_index(), all)).cast(f32));
  })});
  for (const BoundsTarget& target : {kBoundsTargets[1], kBoundsTargets[2]}) {
    SCOPED_TRACE(name_of(target));
    EXPECT_EQ(said(kernel, target, {0}, 9), "");
    EXPECT_THAT(said(kernel, target, {0}, 8), HasSubstr("index 8 on axis 0 of Y, which has 8"));
  }
}

// What is said of a kernel whose CTA copies one page of X {4, 64, 64} by TMA; of a list {3}.
template <typename Page>
std::string said_of_copy(const BoundsTarget& target, int ctas, const Page& page) {
  Kernel kernel("pages");
  const Tensor names = kernel.in("names", i32, {kernel.dim("count")});
  const Dim pages = kernel.dim("pages");
  const Tensor X = kernel.in("X", bf16, {pages, 64, 64});
  const Tensor Y = kernel.out("Y", bf16, {ctas, 64, 64});
  kernel.ctas(ctas);
  Ring ring(kernel, "ring", stages(1), {{bf16, 64, 64}});
  const auto copy = [&] {
    ring.produce([&](const Slot& slot) { tma_load(X(page(names, pages), all, all), slot); });
  };
  const auto keep = [&] {
    const Slot slot = ring.consume();
    store(Y(cta_index(), all, all), load(slot));
    ring.release(slot);
  };
  kernel.roles({role("copy", warps(1), registers(40), copy),
                role("keep", warpgroups(1), registers(240), keep)});
  HostTensor list = list_of({3}), x = HostTensor::random_normal(bf16, {4, 64, 64}, 1);
  HostTensor y = HostTensor::poisoned(bf16, {ctas, 64, 64});
  CompileOptions options;
  options.checked = target.checked;
  try {
    compile(kernel, target.target, options).run({ref(list), ref(x), ref(y)});
  } catch (const Error& error) {
    return test::without_source_lines(error.what());
  }
  return "";
}

// Counted, or of a number that the launch gives. A block of one row may lie outside as any may.
TEST(LoadedBounds, AnIndexOfACopy) {
  for (const BoundsTarget& target : {kBoundsTargets[1], kBoundsTargets[2]}) {
    SCOPED_TRACE(name_of(target));
    const auto counted = [](const Tensor&, const Dim&) { return cta_index(); };
    const auto loaded = [](const Tensor& names, const Dim&) {
      return load_index(names(0)) + cta_index();
    };
    const auto block = [](const Tensor&, const Dim& pages) { return pages.block(cta_index(), 1); };
    EXPECT_EQ(said_of_copy(target, 4, counted), "");
    EXPECT_EQ(said_of_copy(target, 1, loaded), "");
    EXPECT_EQ(said_of_copy(target, 5, block), "");
    EXPECT_THAT(said_of_copy(target, 5, counted),
                AllOf(HasSubstr("index 4 on axis 0 of X, which has 4"),
                      HasSubstr("loaded_bounds_test.cpp"), Not(HasSubstr("the launch gives"))));
    EXPECT_THAT(said_of_copy(target, 2, loaded),
                AllOf(HasSubstr("index 4 on axis 0 of X, which has 4"),
                      HasSubstr("computed from 3, which the launch gives")));
  }
}

TEST(LoadedBounds, OnlyCheckedKernelsHaveChecks) {
  const ir::Kernel traced = rows_by_index().finish();
  const auto text = [&](bool checked) {
    compiler::MachineOptions options;
    options.checked = checked;
    return ir::to_text(compiler::compile_to_machine(traced, "sm_90a", options).kernel);
  };
  EXPECT_THAT(text(true), HasSubstr("check %"));
  EXPECT_THAT(text(false), Not(HasSubstr("check %")));
  EXPECT_EQ(text(false), ir::to_text(compiler::compile_to_machine(traced, "sm_90a").kernel));
}

}  // namespace
}  // namespace tilewright
