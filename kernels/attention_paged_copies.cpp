#include "kernels/attention_paged_copies.h"

#include <memory>
#include <numeric>
#include <vector>

#include "tilewright/kernels/softmax.h"
#include "tilewright/plan_case.h"

namespace tilewright::kernels {

PageCopies::PageCopies(const PagedParameters& p, int keys)
    : p_(p), keys_(keys), rows_(std::gcd(p.page, keys)) {
  plan_case("several pages a stage", count() > 1);
}

void PageCopies::produce(Ring& ring, const PagedWork& work, const Index& first, const Index& last,
                         const Load& load) const {
  const auto page_of = [&](const Index& j, int i) {
    return this->listed(work.item.sequence, work.keys, j, i);
  };
  std::vector<std::unique_ptr<Cell<Index>>> listed;
  for (int i = 0; i < count(); ++i) {
    listed.push_back(std::make_unique<Cell<Index>>(page_of(first, i)));
  }
  for (Index j : range(first, last)) {
    std::vector<PageSlots> copied;
    Cell<Index> missing(0);
    for (int i = 0; i < count(); ++i) {
      Cell<Index>& next = *listed[static_cast<std::size_t>(i)];
      const Index page = next;
      copied.push_back(slots(work.keys, j, i, page));
      missing = missing + PageCopies::missing(page, i);
      next = page_of(min(j + 1, last - 1), i);
    }
    ring.produce(missing, [&](const Slot& stage) {
      for (int i = 0; i < count(); ++i) {
        load(copied[static_cast<std::size_t>(i)], stage, i * rows_, rows_);
      }
    });
  }
}

Index PageCopies::listed(const Index& sequence, const Sequence& keys, const Index& j, int i) const {
  const Index key = min(first_key(j, i), keys.end() - 1);
  return p_.listed(sequence, key / p_.page);
}

PageSlots PageCopies::slots(const Sequence& keys, const Index& j, int i,
                            const Index& listed) const {
  const Index key = first_key(j, i);
  return p_.slots(Block(key, rows_, max(keys.end(), key)), listed);
}

Tile PageCopies::without(const Tile& scores, const Index& missing) const {
  const Tile copy = iota({1, keys_}, 1) / rows_;
  return where(((Tile({1, keys_}, missing) >> copy) & 1) != 0, kNone, scores);
}

}  // namespace tilewright::kernels
