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
  std::vector<std::unique_ptr<Cell<Index>>> listed;
  for (int i = 0; i < count(); ++i) {
    listed.push_back(std::make_unique<Cell<Index>>(page_of(work, first, i)));
  }
  for (Index j : range(first, last)) {
    std::vector<PageSlots> copied;
    Cell<Index> missing(0);
    for (int i = 0; i < count(); ++i) {
      Cell<Index>& next = *listed[static_cast<std::size_t>(i)];
      const Index page = next;
      copied.push_back(p_.slots(keys_of(work, j, i), page));
      missing = missing + select(page == -1, 1 << i, 0);
      next = page_of(work, min(j + 1, last - 1), i);
    }
    ring.produce(missing, [&](const Slot& stage) {
      for (int i = 0; i < count(); ++i) {
        load(copied[static_cast<std::size_t>(i)], stage, i * rows_, rows_);
      }
    });
  }
}

// What the i-th copy of block j brings; behind the sequence's last page, nothing of that page.
Block PageCopies::keys_of(const PagedWork& work, const Index& j, int i) const {
  const Index key = j * keys_ + i * rows_;
  return Block(key, rows_, max(work.keys.end(), key));
}

Index PageCopies::page_of(const PagedWork& work, const Index& j, int i) const {
  const Index key = min(j * keys_ + i * rows_, work.keys.end() - 1);
  return load_index(p_.block_table(work.item.sequence, key / p_.page));
}

Tile PageCopies::without(const Tile& scores, const Index& missing) const {
  const Tile copy = iota({1, keys_}, 1) / rows_;
  return where(((Tile({1, keys_}, missing) >> copy) & 1) != 0, kNone, scores);
}

}  // namespace tilewright::kernels
