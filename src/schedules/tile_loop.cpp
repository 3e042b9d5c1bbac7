#include "schedules/tile_loop.h"

#include "schedules/block_turns.h"

namespace tilewright::schedules {

TileLoop::TileLoop(const Placement& placement, RoleValues& values, bool in_turn)
    : tile_(placement.kernel), values_(values), order_(placement), in_turn_(in_turn) {
  if (in_turn || !order_.counted()) return;
  next_.emplace(values.kernel().workspace("next_tile", 1, tile_.where));
  numbers_ = std::make_unique<Ring>(values.kernel(), "tile", stages(2), std::vector<TileShape>{},
                                    tile_.where);
  numbers_->numbered(static_cast<int>(tile_.grid.size()));
}

void TileLoop::each(const Body& tile) {
  const Tracer::At at(values_.tracer(), tile_.where);
  if (in_turn_ || !order_.counted()) return dealt(tile);
  return values_.loading() ? produced(tile) : consumed(tile);
}

void TileLoop::dealt(const Body& tile) {
  const IndexOperand first(cta_index(), tile_.where);
  for (Index number : range(first, order_.count(), cta_count())) {
    number_.emplace(number);
    tile(in_turn_ ? indices_of(tile_.grid, number) : order_.indices(number));
  }
}

void TileLoop::produced(const Body& tile) {
  const Dim tiles = order_.count();
  Cell<Condition> more(true);
  Cell<Index> next(cta_index());
  repeat_while(more, [&] {
    const Index number = next;
    more = number < tiles;
    when(
        number < tiles,
        [&] {
          // One tile ahead, so that nobody waits for the counter. Each tile fetches once: the last
          // fetch of all sets the counter back for the next launch.
          const Index fetched = atomic_add((*next_)(0), 1);
          when(fetched == tiles - 1, [&] { atomic_add((*next_)(0), 0 - Index(tiles)); });
          next = fetched + cta_count();
          const std::vector<Index> indices = order_.indices(number);
          numbers_->produce(std::vector<IndexOperand>(indices.begin(), indices.end()), tile_.where);
          tile(indices);
        },
        [&] {
          std::vector<IndexOperand> end(tile_.grid.size(), 0);
          end[0] = -1;
          numbers_->produce(end, tile_.where);
        });
  });
}

void TileLoop::consumed(const Body& tile) {
  Cell<Condition> more(true);
  repeat_while(more, [&] {
    const Slot slot = numbers_->consume();
    std::vector<Index> indices;
    for (std::size_t i = 0; i < tile_.grid.size(); ++i) {
      indices.push_back(slot.number(static_cast<int>(i)));
    }
    numbers_->release(slot);
    const Condition valid = indices[0] >= 0;
    more = valid;
    when(valid, [&] { tile(indices); });
  });
}

}  // namespace tilewright::schedules
