#include "check/shrunken_sizes.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "check/library_machine.h"
#include "library/kernel_source.h"

// The small sizes in which faults are looked for.
namespace tilewright::checks {
namespace {

using test::machine_of;

TEST(ShrunkenSizes, ShrinkOpenSizesToAFewBlocks) {
  const LibraryKernel& entry = find_kernel("attention_forward");
  const std::vector<std::string> settings = {"schedule=sm90", "batch=2", "heads=4"};
  const ir::Kernel machine = machine_of(entry, settings);
  // Blocks of 192 query and 128 key rows, rings of four stages.
  const std::vector<std::vector<std::string>> sizes =
      shrunken_sizes(entry, settings, resolve_options(entry, settings), machine, Sizes::usual);
  ASSERT_EQ(sizes.size(), 6u);
  EXPECT_EQ(sizes[0], (std::vector<std::string>{"queries=552", "keys=624"}));
  EXPECT_EQ(sizes[1], (std::vector<std::string>{"queries=824", "keys=752"}));
  EXPECT_EQ(sizes[2], (std::vector<std::string>{"queries=744", "keys=880"}));
  EXPECT_EQ(sizes[4], (std::vector<std::string>{"queries=552", "keys=0"}));
  EXPECT_EQ(sizes[5], (std::vector<std::string>{"queries=824", "keys=496"}));
}

// Sequences of a packed batch are two at least, and share the lengths.
TEST(ShrunkenSizes, ShrinkPackedLengthsOfTwoSequences) {
  const LibraryKernel& entry = find_kernel("attention_varlen_forward");
  const std::vector<std::string> settings = {"schedule=sm90", "dim=64"};
  EXPECT_THAT(shrunken_sizes(entry, settings, resolve_options(entry, settings),
                             machine_of(entry, settings), Sizes::usual)
                  .front(),
              testing::UnorderedElementsAre("batch=2", "heads=2", "queries=1128", "keys=1264"));
}

std::vector<std::vector<std::string>> sizes_of_program(const std::string& name,
                                                       const std::vector<std::string>& settings,
                                                       Sizes which) {
  const LibraryKernel& entry = find_kernel(name);
  const OptionValues options = resolve_options(entry, settings);
  const library::KernelSource source(entry);
  const ir::Program program = source.program(options, compiler::parse_target("sm_90a"));
  std::vector<ir::Kernel> machine;
  for (const auto& kernel : program.kernels) {
    machine.push_back(compiler::compile_to_machine(*kernel, "sm_90a").kernel);
  }
  return shrunken_sizes(entry, settings, options, sized_kernels(entry, program, machine), which);
}

// Pages of 16 rows, so many of a sequence that the ring of its keys wraps around. A kernel that
// plans goes through 128 sequences at a time: of few rows each there is a second block of them.
TEST(ShrunkenSizes, ShrinkACacheToThePagesOfARing) {
  const auto sizes = [](const char* schedule) {
    return sizes_of_program("attention_paged",
                            {schedule, "page=16", "dim=64", "dim_v=64", "heads=2", "kv_heads=1"},
                            Sizes::usual);
  };
  EXPECT_THAT(sizes("schedule=sm90").front(),
              testing::UnorderedElementsAre("batch=2", "queries=168", "pages=62", "max_pages=31",
                                            "entries=62"));
  EXPECT_THAT(sizes("schedule=sm90_planned"), testing::Contains(testing::Contains("batch=88")));
}

// All lengths are those of outputs: keys are fewer than rows by blocks in some sizes, so that rows
// see none, and more in others.
TEST(ShrunkenSizes, LengthsOfGradientsDiffer) {
  constexpr int kBlock = 64;
  for (const Sizes which : {Sizes::usual, Sizes::candidates}) {
    int fewer = 0, more = 0;
    for (const std::vector<std::string>& sizes :
         sizes_of_program("attention_backward", {"schedule=tile", "heads=2"}, which)) {
      const auto of = [&](const std::string& name) {
        const auto found = std::find_if(sizes.begin(), sizes.end(), [&](const std::string& size) {
          return size.rfind(name, 0) == 0;
        });
        return found == sizes.end() ? 0 : std::stoi(found->substr(name.size()));
      };
      fewer += of("queries=") - of("keys=") > kBlock;
      more += of("keys=") - of("queries=") > kBlock;
    }
    EXPECT_GT(fewer, 0);
    EXPECT_GT(more, 0);
  }
}

// 27 steps of 128 rows and a part, for two blocks of keys. Pages have no such size.
TEST(ShrunkenSizes, FewTilesOfGradientsHaveManySteps) {
  EXPECT_THAT(sizes_of_program("attention_backward", {"schedule=atomic"}, Sizes::shared),
              testing::ElementsAre(testing::AllOf(testing::Contains("queries=3560"),
                                                  testing::Contains("keys=240"))));
  EXPECT_THAT(sizes_of_program("attention_paged", {"schedule=tile"}, Sizes::shared),
              testing::IsEmpty());
}

// Its kernels have one dim for both, since each rank's queries are as many as its keys.
TEST(ShrunkenSizes, LengthsOfOneDimAreTheSame) {
  for (const char* name : {"ring_attention", "ring_attention_backward"}) {
    for (const Sizes which : {Sizes::usual, Sizes::further, Sizes::candidates}) {
      for (const std::vector<std::string>& sizes :
           sizes_of_program(name, {"schedule=sm90", "causal=true"}, which)) {
        std::set<std::string> lengths;
        for (const std::string& size : sizes) {
          if (size.rfind("queries=", 0) == 0) lengths.insert(size.substr(8));
          if (size.rfind("keys=", 0) == 0) lengths.insert(size.substr(5));
        }
        EXPECT_EQ(lengths.size(), 1u) << name;
      }
    }
  }
}

// One of those for what these do not come to is a part of a single block.
TEST(ShrunkenSizes, HaveASizeWithinABlock) {
  const LibraryKernel& entry = find_kernel("attention_forward");
  const std::vector<std::string> settings = {"schedule=sm90", "batch=2", "heads=4"};
  const std::vector<std::vector<std::string>> sizes =
      shrunken_sizes(entry, settings, resolve_options(entry, settings), machine_of(entry, settings),
                     Sizes::further);
  EXPECT_EQ(sizes[6], (std::vector<std::string>{"queries=168", "keys=112"}));
}

// Long lengths that are equal, and a contraction that is one longer.
TEST(ShrunkenSizes, HaveLengthsThatAreEqualAndOneOff) {
  const LibraryKernel& entry = find_kernel("attention_forward");
  const std::vector<std::string> settings = {"schedule=sm90", "batch=2", "heads=4"};
  EXPECT_THAT(shrunken_sizes(entry, settings, resolve_options(entry, settings),
                             machine_of(entry, settings), Sizes::further),
              testing::IsSupersetOf(std::vector<std::vector<std::string>>{
                  {"queries=1152", "keys=1152"}, {"queries=1152", "keys=1153"}}));
}

// Of a cluster's CTAs four share the rows of A, or take their turns at k, and each axis is as long
// as those that lie along it need.
TEST(ShrunkenSizes, ShrinkEachAxisByTheCtasAlongIt) {
  const LibraryKernel& entry = find_kernel("gemm");
  const auto sizes_of = [&](const std::string& schedule) {
    const std::vector<std::string> settings = {"schedule=" + schedule};
    return shrunken_sizes(entry, settings, resolve_options(entry, settings),
                          machine_of(entry, settings), Sizes::usual)
        .front();
  };
  // Tiles of 128 x 128 in rings of six stages; of 64 x 128, two of them below each other, in rings
  // of seven, of which each of four CTAs along k fills its own.
  EXPECT_EQ(sizes_of("128x128_a4"), (std::vector<std::string>{"m=232", "n=1000", "k=432"}));
  EXPECT_EQ(sizes_of("64x128_b2_split4"), (std::vector<std::string>{"m=232", "n=232", "k=2032"}));
}

}  // namespace
}  // namespace tilewright::checks
