#include "simulator/machine/shadow.h"

#include <algorithm>

namespace tilewright::simulator {
namespace {

using Record = ShadowBlock::Record;

bool same_work(const Record& record, const Access& access) {
  return record.agent == access.agent && record.epoch == access.epoch &&
         record.cluster == access.cluster && record.instruction == access.instruction &&
         record.iteration == access.iteration;
}

void drop_empty(std::vector<Record>& records) {
  records.erase(std::remove_if(records.begin(), records.end(),
                               [](const Record& record) { return record.bytes.cells == 0; }),
                records.end());
}

void add(std::vector<Record>& records, const Access& access, const Bytes& bytes) {
  for (Record& record : records) {
    if (!same_work(record, access)) continue;
    if (record.bytes.mask == bytes.mask) {
      record.bytes.cells |= bytes.cells;
      return;
    }
    if (record.bytes.cells == bytes.cells) {
      record.bytes.mask |= bytes.mask;
      return;
    }
  }
  Record record;
  static_cast<Access&>(record) = access;
  record.bytes = bytes;
  records.push_back(record);
}

}  // namespace

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
    return add(writes_, access, bytes);
  }
  forget(reads_,
         [&](const Record& record) { return same_agent(record) && !same_work(record, access); });
  add(reads_, access, bytes);
}

void ByteSet::add(std::uint64_t address, std::int64_t bytes) {
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
  const auto before = [](const Cell& a, const Cell& b) { return a.number < b.number; };
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
