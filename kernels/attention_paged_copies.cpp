#include "kernels/attention_paged_copies.h"

#include <memory>
#include <numeric>
#include <vector>

#include "tilewright/kernels/softmax.h"
#include "tilewright/plan_case.h"

namespace tilewright::kernels {

PageCopies::PageCopies(const PagedParameters& p, int keys, int most_ahead)
    : p_(p), keys_(keys), rows_(std::gcd(p.page, keys)), reads_ahead_(count() <= most_ahead) {
  plan_case("several pages a stage", count() > 1);
  plan_case("whole pages, several a stage", rows_ == p.page && count() > 1 && reads_ahead_);
  plan_case("pages gathered by threads", are_gathered());
}

void PageCopies::each_block(const Blocks& blocks, const Bring& bring) const {
  const Index first_of_rows = first_copy(blocks.mask, blocks.rows, blocks.keys);
  const auto page_of = [&](const Index& j, int i) {
    return listed(blocks.sequence, blocks.keys, first_of_rows, blocks.block(j), i);
  };
  if (!plan_case("the table read a block ahead", reads_ahead_)) {
    for (Index j : range(blocks.first, blocks.last)) {
      ListedBlock pages{blocks.block(j), {}};
      for (int i = 0; i < count(); ++i) pages.listed.push_back(page_of(j, i));
      bring_block(blocks.keys, pages, bring);
    }
    return;
  }
  std::vector<std::unique_ptr<Cell<Index>>> next;
  for (int i = 0; i < count(); ++i) {
    next.push_back(std::make_unique<Cell<Index>>(page_of(blocks.first, i)));
  }
  for (Index j : range(blocks.first, blocks.last)) {
    ListedBlock pages{blocks.block(j), {}};
    for (int i = 0; i < count(); ++i) {
      Cell<Index>& ahead = *next[static_cast<std::size_t>(i)];
      pages.listed.push_back(ahead);
      ahead = page_of(min(j + 1, blocks.last - 1), i);
    }
    bring_block(blocks.keys, pages, bring);
  }
}

void PageCopies::each_block(const PagedWork& work, const Index& first, const Index& last,
                            const Bring& bring) const {
  const auto ascending = [](const Index& j) { return j; };
  each_block({work.item.sequence, work.keys, work.mask, work.rows, first, last, ascending}, bring);
}

void PageCopies::each_gathered(const PagedWork& work, const Index& first, const Index& last,
                               int together, const BringRuns& bring) const {
  constexpr int kAsked = 8;  // whether they are missing, at once
  const Index first_of_rows = first_copy(work.mask, work.rows, work.keys);
  for (Index j : range(first, last)) {
    const auto page_of = [&](const Index& i) {
      return listed(work.item.sequence, work.keys, first_of_rows, j, i);
    };
    std::vector<std::unique_ptr<Cell<Index>>> bits;
    for (int number = 0; number < numbers(); ++number) {
      Cell<Index>& own = *bits.emplace_back(std::make_unique<Cell<Index>>(0));
      const int behind = (number + 1) * kBitsOfNumber - kAsked;  // the last ones, asked first
      for (Index run : range(kBitsOfNumber / kAsked)) {
        std::vector<Index> asked;
        for (int i = 0; i < kAsked; ++i) asked.push_back(page_of(behind - run * kAsked + i));
        own = own * (1 << kAsked) + missing(asked)[0];
      }
    }
    std::vector<Index> numbers_of_stage;
    for (const auto& own : bits) numbers_of_stage.push_back(*own);
    bring(numbers_of_stage, [&](const TakeRun& take) {
      for (Index run : range(count() / together)) {
        std::vector<PageSlots> copies;
        for (int i = 0; i < together; ++i) {
          const Index number = run * together + i;
          copies.push_back(slots_of_copy(work.keys, j, number, page_of(number)));
        }
        take(run * (together * rows_), copies);
      }
    });
  }
}

void PageCopies::produce(Ring& ring, const PagedWork& work, const Index& first, const Index& last,
                         const Fill& fill) const {
  each_block(work, first, last, [&](const CopiedBlock& block) {
    ring.produce(block.missing[0], [&](const Slot& stage) {
      load(block.copies,
           [&](const PageSlots& at, int row, int rows) { fill(at, stage, row, rows); });
    });
  });
}

Index PageCopies::first_copy(const Mask& mask, const Block& rows, const Sequence& keys) const {
  return p_.window() > 0 ? mask.visible(rows, keys, rows_).first : Index(0);
}

Index PageCopies::listed(const Index& sequence, const Sequence& keys, const Index& first_copy,
                         const Index& j, const Index& i) const {
  const Index copy = j * count() + i;
  const Index seen = p_.window() > 0 ? max(copy, first_copy) : copy;
  const Index key = min(seen * rows_, keys.end() - 1);
  const Index listed = p_.listed(sequence, key / p_.page);
  return p_.window() > 0 ? select(copy < first_copy, -1, listed) : listed;
}

std::vector<Index> PageCopies::missing(const std::vector<Index>& listed) const {
  std::vector<Index> missing(static_cast<std::size_t>(numbers()), Index(0));
  for (std::size_t i = 0; i < listed.size(); ++i) {
    Index& number = missing[i / kBitsOfNumber];
    number = number + select(listed[i] == -1, 1 << i % kBitsOfNumber, 0);
  }
  return missing;
}

Condition PageCopies::is_whole(const Sequence& keys, const ListedBlock& pages) const {
  Condition whole = first_key(pages.block, 0) + keys_ <= keys.end();
  for (const Index& number : pages.listed) whole = whole && number >= 0;
  return whole;
}

void PageCopies::bring_block(const Sequence& keys, const ListedBlock& pages,
                             const Bring& bring) const {
  const auto with = [&](bool whole) { bring({slots(keys, pages, whole), missing(pages.listed)}); };
  when(
      is_whole(keys, pages), [&] { with(true); }, [&] { with(false); });
}

PageSlots PageCopies::slots_of_copy(const Sequence& keys, const Index& j, const Index& i,
                                    const Index& listed) const {
  const Index key = first_key(j, i);
  return p_.slots(Block(key, rows_, max(keys.end(), key)), listed);
}

std::vector<PageSlots> PageCopies::slots(const Sequence& keys, const ListedBlock& pages,
                                         bool whole) const {
  std::vector<PageSlots> copies;
  for (int i = 0; i < count(); ++i) {
    const Index& number = pages.listed[static_cast<std::size_t>(i)];
    if (!whole) {
      copies.push_back(slots_of_copy(keys, pages.block, i, number));
      continue;
    }
    const Index slot = rows_ == p_.page ? Index(0) : first_key(pages.block, i) % p_.page;
    copies.push_back({number, Block(slot, rows_, p_.page)});
  }
  return copies;
}

void PageCopies::load(const std::vector<PageSlots>& copies, const Load& load) const {
  const int rows = keys_ / static_cast<int>(copies.size());
  for (std::size_t i = 0; i < copies.size(); ++i) load(copies[i], static_cast<int>(i) * rows, rows);
}

std::vector<Index> PageCopies::missing_of(const Slot& stage) const {
  std::vector<Index> missing;
  for (int i = 0; i < numbers(); ++i) missing.push_back(stage.number(i));
  return missing;
}

Condition PageCopies::any(const std::vector<Index>& missing) {
  Condition any = missing[0] != 0;
  for (std::size_t i = 1; i < missing.size(); ++i) any = any || missing[i] != 0;
  return any;
}

Tile PageCopies::without(const Tile& scores, const std::vector<Index>& missing, int first) const {
  const std::int64_t keys = scores.shape()[1];
  const Tile copy = (iota({1, keys}, 1) + first) / rows_;
  Tile bits({1, keys}, missing[0]);
  for (std::size_t i = 1; i < missing.size(); ++i) {
    bits = where(copy < static_cast<int>(i) * kBitsOfNumber, bits, Tile({1, keys}, missing[i]));
  }
  const Tile bit = missing.size() > 1 ? copy % kBitsOfNumber : copy;
  return where(((bits >> bit) & 1) != 0, kNone, scores);
}

}  // namespace tilewright::kernels
