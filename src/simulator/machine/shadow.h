#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "simulator/machine/clock.h"
#include "tilewright/memory_order.h"

namespace tilewright::simulator {

struct Instruction;

// Who has accessed some bytes of a block of memory.
struct Access {
  const Instruction* instruction = nullptr;
  int agent = 0;
  Epoch epoch = 0;
  Epoch issued = 0;           // of the issuing warp's elected lane: what it hands on later
  std::uint32_t cluster = 0;  // in the order of their start
  std::int32_t iteration = -1;
  std::int32_t cta = 0;
  std::int16_t warp = 0, role = 0;
  bool write = false;
  bool async = false;  // by the async proxy
  // Atomic accesses do not race with each other where the scope of each has the other's thread.
  bool atomic = false;
  Scope scope = Scope::gpu;
  std::int16_t rank = 0;
  std::uint32_t accumulator = 0;  // of a product in tensor memory: the address of its result
};

// Whether the scope, seen from the access, has the threads of the other one.
inline bool includes(Scope scope, const Access& access, const Access& other) {
  switch (scope) {
    case Scope::block:
      return access.cluster == other.cluster && access.cta == other.cta;
    case Scope::cluster:
      return access.cluster == other.cluster;
    case Scope::gpu:
      return access.rank == other.rank;
    case Scope::system:
      break;
  }
  return true;
}

// Of one proxy: atomics of threads and of TMA do not see each other's.
inline bool both_atomic(const Access& a, const Access& b) {
  return a.atomic && b.atomic && a.async == b.async && includes(a.scope, a, b) &&
         includes(b.scope, b, a);
}

// Bytes of one block of 1024: cells of 16 bytes, and which bytes of each of these.
struct Bytes {
  static constexpr std::int64_t kCell = 16;
  static constexpr std::uint16_t kWhole = 0xffff;
  std::uint64_t cells = 0;
  std::uint16_t mask = kWhole;
  bool meets(const Bytes& other) const { return (cells & other.cells) && (mask & other.mask); }
  // Takes the bytes of `other` away as far as one mask can say it.
  void remove(const Bytes& other) {
    if ((mask & ~other.mask) == 0) cells &= ~other.cells;
  }
  // First and last of them, in their block.
  std::pair<std::int64_t, std::int64_t> extent() const;
};

// What has been done to 1024 bytes of memory: of each byte the last write, and since then the last
// read of each agent.
class ShadowBlock {
 public:
  static constexpr std::int64_t kBytes = 1024, kCell = Bytes::kCell;
  struct Record : Access {
    Bytes bytes;
  };

  // Calls `judge(record)` for each earlier access that must come before this one, then remembers
  // it.
  template <typename Judge>
  void touch(const Access& access, const Bytes& bytes, Judge judge) {
    for (const Record& record : writes_) {
      if (record.bytes.meets(bytes) && !both_atomic(record, access)) judge(record);
    }
    if (access.write) {
      for (const Record& record : reads_) {
        if (record.bytes.meets(bytes) && !both_atomic(record, access)) judge(record);
      }
    }
    remember(access, bytes);
  }
  // Visits each earlier access that conflicts with this one, atomic or not.
  template <typename Visit>
  void for_conflicts(const Access& access, const Bytes& bytes, Visit visit) const {
    for (const Record& record : writes_) {
      if (record.bytes.meets(bytes)) visit(record);
    }
    if (!access.write) return;
    for (const Record& record : reads_) {
      if (record.bytes.meets(bytes)) visit(record);
    }
  }
  // Visits the bytes of each write that has not been written over.
  template <typename Visit>
  void for_writes(Visit visit) const {
    for (const Record& record : writes_) visit(record.bytes);
  }

 private:
  void remember(const Access& access, const Bytes& bytes);
  void remember_read(const Access& access, const Bytes& bytes);
  std::vector<Record> writes_, reads_;
};

// Blocks one behind the other of which an access touches the same bytes.
struct BlockRun {
  std::int64_t first = 0, count = 1;  // numbers of blocks
  Bytes bytes;
  bool is_whole() const { return bytes.cells == ~std::uint64_t{0} && bytes.mask == Bytes::kWhole; }
};

// What has been done to the shared memory of a CTA. Blocks that one access wrote and that have been
// accessed alike since then are one region: a box of TMA or an operand of wgmma costs what one of
// its blocks does.
class ShadowMemory {
 public:
  explicit ShadowMemory(std::int64_t bytes);

  // As ShadowBlock::touch, of all blocks of the run: calls `judge(record, block)` with the first
  // block of each region.
  template <typename Judge>
  void touch(const Access& access, const BlockRun& run, Judge judge) {
    const std::int64_t end = run.first + run.count;
    split(run.first);
    split(end);
    for (std::int64_t block = run.first; block < end; block += regions_[block].size) {
      regions_[block].state.touch(access, run.bytes,
                                  [&](const ShadowBlock::Record& record) { judge(record, block); });
    }
    // Of what was there this write alone is left.
    if (access.write && !access.atomic && run.is_whole()) join(run.first, end);
  }

 private:
  // Of the blocks where no region begins `begin` alone counts.
  struct Region {
    std::int64_t begin = 0;  // of the region that has the block
    std::int64_t size = 0;
    ShadowBlock state;  // of each of its blocks
  };
  // Lets a region begin at the block.
  void split(std::int64_t block) {
    if (regions_[block].begin != block) split_at(block);
  }
  void split_at(std::int64_t block);
  // Makes one region of those from `begin` on.
  void join(std::int64_t begin, std::int64_t end);
  std::vector<Region> regions_;  // a block each, and one behind the last
};

// Which bytes of the 16 from `number` times 16 on.
struct ByteCell {
  std::uint64_t number = 0;
  std::uint16_t mask = 0;
};

// A set of bytes, gathered access by access and then visited block by block.
class ByteSet {
 public:
  void add(std::uint64_t address, std::int64_t bytes) {
    const auto count = static_cast<std::uint64_t>(bytes);
    if ((address | count) % ShadowBlock::kCell != 0) return add_parts(address, bytes);
    const std::uint64_t first = address / ShadowBlock::kCell,
                        end = first + count / ShadowBlock::kCell;
    for (std::uint64_t cell = first; cell < end; ++cell) cells_.push_back({cell, Bytes::kWhole});
  }
  // Those of the cells, `by` cells further.
  void add(const std::vector<ByteCell>& cells, std::uint64_t by) {
    for (const ByteCell& cell : cells) cells_.push_back({cell.number + by, cell.mask});
  }
  // Each once, in order; the set is empty afterwards.
  std::vector<ByteCell> take() {
    sort();
    return std::exchange(cells_, {});
  }
  void clear() { cells_.clear(); }
  // `visit(address of the block, Bytes)`; the set is empty afterwards.
  template <typename Visit>
  void drain(Visit visit);

 private:
  void add_parts(std::uint64_t address, std::int64_t bytes);
  void sort();
  std::vector<ByteCell> cells_;
};

template <typename Visit>
void ByteSet::drain(Visit visit) {
  sort();
  constexpr std::uint64_t kCells = ShadowBlock::kBytes / ShadowBlock::kCell;
  for (std::size_t i = 0; i < cells_.size();) {
    const std::uint64_t block = cells_[i].number / kCells;
    std::uint64_t whole = 0;
    for (; i < cells_.size() && cells_[i].number / kCells == block; ++i) {
      const std::uint64_t cell = std::uint64_t{1} << cells_[i].number % kCells;
      if (cells_[i].mask == Bytes::kWhole) {
        whole |= cell;
      } else {
        visit(block * ShadowBlock::kBytes, Bytes{cell, cells_[i].mask});
      }
    }
    if (whole) visit(block * ShadowBlock::kBytes, Bytes{whole, Bytes::kWhole});
  }
  cells_.clear();
}

}  // namespace tilewright::simulator
