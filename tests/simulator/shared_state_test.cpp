// What the simulated GPU keeps of shared memory, against the same kept byte by byte and block by
// block.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "simulator/machine/cta.h"
#include "simulator/machine/prepared_kernel.h"
#include "simulator/machine/shadow.h"
#include "simulator/machine/shared_memory.h"

namespace tilewright::simulator {
namespace {

constexpr std::int64_t kBlocks = 12;

// Block, agent and epoch of an earlier access.
using Found = std::set<std::tuple<std::int64_t, int, Epoch>>;

class Shadows {
 public:
  Shadows() : regions_(kBlocks * ShadowBlock::kBytes), blocks_(kBlocks) {}

  // Where one of the blocks has the record, both find it, and the regions at the first such block.
  void touch(Access access, const BlockRun& run) {
    access.instruction = &instruction_;
    Found by_regions, by_blocks;
    regions_.touch(access, run, [&](const ShadowBlock::Record& record, std::int64_t block) {
      by_regions.insert({block, record.agent, record.epoch});
    });
    std::set<std::pair<int, Epoch>> seen;
    for (std::int64_t block = run.first; block < run.first + run.count; ++block) {
      blocks_[block].touch(access, run.bytes, [&](const ShadowBlock::Record& record) {
        by_blocks.insert({block, record.agent, record.epoch});
      });
    }
    for (const auto& each : by_regions) EXPECT_EQ(by_blocks.count(each), 1u);
    for (const auto& [block, agent, epoch] : by_blocks) {
      if (!seen.insert({agent, epoch}).second) continue;
      EXPECT_EQ(by_regions.count({block, agent, epoch}), 1u) << "block " << block;
    }
  }

 private:
  Instruction instruction_;
  ShadowMemory regions_;
  std::vector<ShadowBlock> blocks_;
};

TEST(ShadowMemory, FindsByRegionsWhatItFindsByBlocks) {
  std::mt19937 random(1);
  const auto below = [&](int bound) { return static_cast<int>(random() % bound); };
  for (int sequence = 0; sequence < 200; ++sequence) {
    Shadows shadows;
    for (int i = 0; i < 60; ++i) {
      Access access;
      access.agent = below(4);
      access.epoch = static_cast<Epoch>(1 + i / 4);
      access.write = below(3) == 0;
      access.atomic = below(16) == 0;
      BlockRun run;
      run.first = below(kBlocks);
      run.count = 1 + below(static_cast<int>(kBlocks - run.first));
      run.bytes.cells = ~std::uint64_t{0};
      if (below(3) == 0) run.bytes.cells >>= below(64);
      if (below(4) == 0) run.bytes = {std::uint64_t{1} << below(64), 0x00f0};
      shadows.touch(access, run);
    }
    // Everything that is left, block by block.
    for (std::int64_t block = 0; block < kBlocks; ++block) {
      Access last;
      last.agent = 9;
      last.write = true;
      shadows.touch(last, {block, 1, {~std::uint64_t{0}, Bytes::kWhole}});
    }
  }
}

TEST(SharedMemory, KnowsWhichBytesHoldSomething) {
  constexpr std::int64_t kBytes = 3 * 1024 + 512;
  std::mt19937 random(2);
  for (int sequence = 0; sequence < 100; ++sequence) {
    SharedMemory shared(kBytes);
    std::vector<bool> held(kBytes);
    for (int i = 0; i < 40; ++i) {
      // Some ranges of whole chunks, some of any bytes.
      const std::int64_t unit = random() % 2 ? 16 : 1;
      const std::int64_t first = static_cast<std::int64_t>(random() % (kBytes / unit)) * unit;
      const std::int64_t count =
          1 + static_cast<std::int64_t>(random() % ((kBytes - first) / unit));
      const bool holds = random() % 4 != 0;
      if (holds) {
        shared.hold(first, count * unit);
      } else {
        shared.poison(first, count * unit);
      }
      std::fill_n(held.begin() + first, count * unit, holds);
      const auto all = [&](std::int64_t from, std::int64_t bytes) {
        return std::all_of(held.begin() + from, held.begin() + from + bytes,
                           [](bool each) { return each; });
      };
      const std::int64_t from = static_cast<std::int64_t>(random() % (kBytes - 40));
      EXPECT_EQ(shared.initialised(from, 40), all(from, 40));
      EXPECT_EQ(shared.initialised(first, count * unit), holds);
      const std::int64_t chunk = from / 16 * 16;
      EXPECT_EQ(shared.chunk_initialised(chunk), all(chunk, 16));
      const std::uint64_t chunks = std::uint64_t{5} << random() % 62;
      bool pages = true;
      for (std::int64_t bit = 0; bit < 64; ++bit) {
        if (chunks >> bit & 1) pages = pages && all(bit * 16, 16) && all(1024 + bit * 16, 16);
      }
      EXPECT_EQ(shared.chunks_initialised(0, 2, chunks), pages);
    }
  }
}

TEST(RegisterArray, IsZeroAfterEachDeclaration) {
  RegisterArray array;
  for (int times = 0; times < 2; ++times) {
    array.declare(3);
    EXPECT_EQ(array.unwritten, 3);
    float* const last = array.row<float>(2);
    for (int lane = 0; lane < kLanes; ++lane) EXPECT_EQ(last[lane], 0);
    std::fill_n(last, kLanes, 1.0f);
    EXPECT_EQ(array.row<float>(2), last);
  }
  array.declare(1);
  EXPECT_EQ(array.row<std::uint8_t>(0)[kLanes - 1], 0);
}

}  // namespace
}  // namespace tilewright::simulator
