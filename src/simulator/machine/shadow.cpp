#include "simulator/machine/shadow.h"

#include <algorithm>

#include "simulator/machine/prepared_kernel.h"
#include "support/same_line.h"

namespace tilewright::simulator {
namespace {

using Record = ShadowBlock::Record;

// What a report would say of both in the same words.
bool same_place(const Instruction* a, const Instruction* b) {
  return a == b || (a->op == b->op && same_line(a->where(), b->where()));
}

bool same_work(const Record& record, const Access& access) {
  return record.agent == access.agent && record.epoch == access.epoch &&
         record.cluster == access.cluster && record.iteration == access.iteration &&
         // Products are in order by it.
         record.accumulator == access.accumulator &&
         same_place(record.instruction, access.instruction);
}

void drop_empty(std::vector<Record>& records) {
  records.erase(std::remove_if(records.begin(), records.end(),
                               [](const Record& record) { return record.bytes.cells == 0; }),
                records.end());
}

Record record_of(const Access& access, const Bytes& bytes) {
  Record record;
  static_cast<Access&>(record) = access;
  record.bytes = bytes;
  return record;
}

// Whether the bytes could be added to the record as one mask has it, and have been.
bool takes_in(Record& record, const Bytes& bytes) {
  if (record.bytes.mask == bytes.mask) {
    record.bytes.cells |= bytes.cells;
  } else if (record.bytes.cells == bytes.cells) {
    record.bytes.mask |= bytes.mask;
  } else {
    return false;
  }
  return true;
}

}  // namespace

std::pair<std::int64_t, std::int64_t> Bytes::extent() const {
  std::int64_t first = 0, last = 63;
  while (!(cells >> first & 1)) ++first;
  while (!(cells >> last & 1)) --last;
  std::int64_t low = 0, high = kCell - 1;
  while (!(mask >> low & 1)) ++low;
  while (!(mask >> high & 1)) --high;
  return {first * kCell + low, last * kCell + high};
}

void ShadowBlock::remember(const Access& access, const Bytes& bytes) {
  const auto forget = [&](std::vector<Record>& records, auto may_go) {
    bool emptied = false;
    for (Record& record : records) {
      if (!may_go(record)) continue;
      record.bytes.remove(bytes);
      emptied = emptied || record.bytes.cells == 0;
    }
    if (emptied) drop_empty(records);
  };
  const auto same_agent = [&](const Record& record) {
    return record.agent == access.agent && record.cluster == access.cluster;
  };
  if (access.write) {
    // Whoever comes after this write comes after what it came after. Atomic accesses need not have
    // come one after the other.
    const auto before = [&](const Record& record) {
      return !(record.atomic && access.atomic) || same_agent(record);
    };
    forget(writes_, before);
    forget(reads_, before);
    const bool known = std::any_of(writes_.begin(), writes_.end(), [&](Record& record) {
      return same_work(record, access) && takes_in(record, bytes);
    });
    if (!known) writes_.push_back(record_of(access, bytes));
    return;
  }
  remember_read(access, bytes);
}

void ShadowBlock::remember_read(const Access& access, const Bytes& bytes) {
  Record* free = nullptr;  // one of the agent's that this read leaves nothing of
  bool emptied = false, known = false;
  for (Record& record : reads_) {
    if (record.agent != access.agent || record.cluster != access.cluster) continue;
    if (same_work(record, access)) {
      known = known || takes_in(record, bytes);
      continue;
    }
    record.bytes.remove(bytes);
    if (record.bytes.cells != 0) continue;
    emptied = emptied || free != nullptr;
    free = &record;
  }
  if (!known && free) {
    static_cast<Access&>(*free) = access;
    free->bytes = bytes;
    free = nullptr;
  } else if (!known) {
    reads_.push_back(record_of(access, bytes));
  }
  if (emptied || free) drop_empty(reads_);
}

ShadowMemory::ShadowMemory(std::int64_t bytes) : regions_(bytes / ShadowBlock::kBytes + 2) {
  const auto end = static_cast<std::int64_t>(regions_.size()) - 1;
  regions_[end].begin = end;
  join(0, end);
}

void ShadowMemory::split_at(std::int64_t block) {
  Region& before = regions_[regions_[block].begin];
  Region& behind = regions_[block];
  const std::int64_t end = before.begin + before.size;
  behind.state = before.state;
  behind.size = end - block;
  before.size = block - before.begin;
  for (std::int64_t i = block; i < end; ++i) regions_[i].begin = block;
}

void ShadowMemory::join(std::int64_t begin, std::int64_t end) {
  if (regions_[begin].size == end - begin) return;
  regions_[begin].size = end - begin;
  for (std::int64_t i = begin; i < end; ++i) regions_[i].begin = begin;
}

void ByteSet::add_parts(std::uint64_t address, std::int64_t bytes) {
  const std::uint64_t end = address + bytes;
  while (address < end) {
    const std::uint64_t cell = address / ShadowBlock::kCell;
    const std::uint64_t stop = std::min(end, (cell + 1) * ShadowBlock::kCell);
    const std::uint32_t below = (1u << (stop - cell * ShadowBlock::kCell)) - 1;
    const std::uint32_t before = (1u << (address - cell * ShadowBlock::kCell)) - 1;
    const auto mask = static_cast<std::uint16_t>(below & ~before);
    if (!cells_.empty() && cells_.back().number == cell) {
      cells_.back().mask |= mask;
    } else {
      cells_.push_back({cell, mask});
    }
    address = stop;
  }
}

void ByteSet::sort() {
  const auto before = [](const ByteCell& a, const ByteCell& b) { return a.number < b.number; };
  if (!std::is_sorted(cells_.begin(), cells_.end(), before)) {
    std::sort(cells_.begin(), cells_.end(), before);
  }
  std::size_t last = 0;
  for (std::size_t i = 1; i < cells_.size(); ++i) {
    if (cells_[i].number == cells_[last].number) {
      cells_[last].mask |= cells_[i].mask;
    } else {
      cells_[++last] = cells_[i];
    }
  }
  if (!cells_.empty()) cells_.resize(last + 1);
}

}  // namespace tilewright::simulator
