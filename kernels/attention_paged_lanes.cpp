#include "kernels/attention_paged_lanes.h"

#include <algorithm>
#include <string>
#include <utility>

#include "tilewright/plan_case.h"
#include "tilewright/target.h"

namespace tilewright::kernels {
namespace {

constexpr int kPanelOfLanes = 64;  // columns of 2 bytes, which shared memory swizzles together
constexpr int kMostColumnsOfLanes = 128;  // Q and the sums of more take too many registers
constexpr int kBarrierBytesOfLanes = 1 << 10;

// That a thread of each lane's products leaves to those that load: the numbers of a stage's pages,
// and of the next one's, where copies go, or the rows that are gathered.
constexpr int kRegistersOfCopies = 16;
constexpr int kRegistersOfGathering = 80;
constexpr int kKeysGathered = 16;  // at once, and as many values
constexpr int kFewCopies = 4;      // of a stage
constexpr int kPadding = 16;  // bytes behind rows that threads store, against conflicts of banks

// Of one lane.
std::vector<TileShape> tiles_of_lane(const PagedAttention& a, int keys, bool gathered) {
  std::vector<TileShape> tiles;
  for (const int columns : {a.dim, a.dim_v}) {
    TileShape tile{dtype_of_keys(a), keys, columns};
    if (gathered) tile.map = SharedMap{0, kPadding / size_of(tile.dtype), 0};
    tiles.push_back(tile);
  }
  return tiles;
}

int stages_of_lanes(const std::vector<TileShape>& tiles, int kept) {
  int stage = 0;
  for (const TileShape& tile : tiles) {
    stage += tile.rows * (tile.columns * size_of(tile.dtype) + (tile.map ? kPadding : 0));
  }
  const int all = static_cast<int>(target_limits("sm_90a").shared_bytes) - kBarrierBytesOfLanes;
  return (all / kLanesOfPages - kept) / stage;
}

int registers_of_loading(const PageCopies& copies, int spare) {
  if (copies.are_gathered()) return kRegistersOfGathering;
  return std::max(spare, plan_case("many copies a stage", copies.count() > kFewCopies)
                             ? kRegistersOfCopies
                             : 0);
}

// Rows of a warp that loads them: as many elements side by side as all lanes have, up to 16 bytes.
RegisterMap map_of_rows(DType dtype, int rows, int columns) {
  const int vector = std::min(16 / size_of(dtype), rows * columns / 32), across = columns / vector;
  return {{{vector, 1, 1}, {rows * across / 32, 0, 32 / across}},
          {{across, 1, vector}, {32 / across, 0, 1}},
          {}};
}

}  // namespace

void check_lanes(const PagedAttention& a, KeyParts keys, bool gathers, const Caller& caller) {
  check_paged(a, caller);
  if (keys == KeyParts::one) check_undivided(a, caller);
  if (a.latent) caller.refuse("latent is set", "take attention_paged_mla_sm90");
  check_elements(a, caller);
  for (const auto& [name, dim] : {std::pair("dim", a.dim), {"dim_v", a.dim_v}}) {
    if (dim % kPanelOfLanes == 0 && dim <= kMostColumnsOfLanes) continue;
    caller.refuse(std::string(name) + " is " + std::to_string(dim),
                  "take 64 or 128, or attention_paged");
  }
  if (!gathers && a.page % PageCopies::kRowUnit != 0) {
    caller.refuse("page is " + std::to_string(a.page),
                  "take a multiple of 8 slots, or attention_paged_keys_sm90, which gathers others");
  }
}

PagedLanes::Rings::Rings(Kernel& kernel, const PageCopies& copies, const std::string& number,
                         const std::vector<TileShape>& stage, int count)
    : items(kernel, "items" + number, stages(2), {}, here()),
      keys(kernel, "keys" + number, stages(count), stage, here()) {
  items.numbered(PagedItem::kNumbers);
  keys.numbered(copies.numbers());
}

PagedLanes::PagedLanes(Kernel& kernel, const PagedAttention& a, KeyParts keys,
                       const PagedRows& tile, const LaneNeeds& needs)
    : a_(a),
      item_(rows_of_plan(a)),
      tile_(tile),
      p(kernel, a),
      plan_(PagedPlan::declared(kernel, p, item_, keys)),
      stores(kernel, a, p, keys, item_, tile_),
      keys_of_stage_(needs.keys_of_stage),
      items_(p, item_, stores, plan_),
      next_item_(kernel.workspace("next_item", 1)),
      copies(p, needs.keys_of_stage),
      registers_of_loading_(registers_of_loading(copies, needs.spare_registers)) {
  const std::vector<TileShape> tiles = tiles_of_lane(a, keys_of_stage_, copies.are_gathered());
  const bool are_together =
      plan_case("heads loaded together", needs.heads_together && heads_go_together(keys));
  const int together = are_together ? count() : 1;
  std::vector<TileShape> stage;
  for (int i = 0; i < together; ++i) stage.insert(stage.end(), tiles.begin(), tiles.end());
  for (int i = 0; i < count() / together; ++i) {
    rings_.push_back(std::make_unique<Rings>(kernel, copies, std::to_string(i), stage,
                                             stages_of_lanes(tiles, needs.kept)));
  }
}

// A stage of many copies takes one warp too long: both lanes would wait for it. By a plan, whose
// items may be short, it also looks for the next one often. Blocks of 64 keys leave it no time.
bool PagedLanes::heads_go_together(KeyParts keys) const {
  const bool has_time = keys != KeyParts::planned || keys_of_stage_ > kKeysOfBlock;
  return a_.kv_heads % count() == 0 && item_.head_blocks == 1 && has_time &&
         !copies.are_gathered() && copies.count() <= kFewCopies;
}

void PagedLanes::run(Kernel& kernel, const Compute& compute) const {
  const RoleRegisters share = role_registers(target_limits("sm_90a"), count());
  std::vector<RoleSpec> roles;
  for (int i = 0; i < static_cast<int>(rings_.size()); ++i) {
    roles.push_back(role("load" + std::to_string(i), warps(1),
                         registers(share.loading + count() * registers_of_loading_),
                         [this, i] { load_items(*rings_[static_cast<std::size_t>(i)], i); }));
  }
  for (int i = 0; i < count(); ++i) {
    roles.push_back(role("math" + std::to_string(i), warpgroups(1),
                         registers(share.computing - registers_of_loading_),
                         [this, &compute, i] { compute_items(i, compute); }));
  }
  kernel.ctas(multiprocessors());
  kernel.roles(roles);
}

// Items are handed out as lanes become free, since sequences have any length. Those of heads that
// go together follow each other, and are handed out as one.
void PagedLanes::load_items(const Rings& rings, int number) const {
  const int together = heads_together(), at_once = count() / together;
  const Index all = items_.count() / together;
  Cell<Index> item(cta_index() * at_once + number);
  Cell<Condition> more(true);
  repeat_while(more, [&] {
    const Index now = item;
    more = now < all;
    when(
        now < all,
        [&] {
          load_item(rings, items_.item(now * together));
          // Not before its copies are on their way: who fetches early keeps an item from a lane
          // that is free. The last fetch of all sets the counter back for the next launch.
          const Index fetched = atomic_add(next_item_(0), 1);
          when(fetched == all - 1, [&] { atomic_add(next_item_(0), 0 - all); });
          item = fetched + cta_count() * at_once;
        },
        [&] {
          rings.items.produce(PagedItem{-1, 0, 0, 0, 0, 0}.numbers());
        });
  });
}

// An item's rows may be several tiles, of which those without queries are left out.
void PagedLanes::load_item(const Rings& rings, const PagedItem& item) const {
  const PagedWork whole(p, item_, item);
  if (item_.rows == tile_.rows) return load_tile(rings, whole);
  const int each = tile_.queries(), most = item_.queries() / each;
  const Index queries = min(whole.rows.limit() - whole.rows.start(), item_.queries());
  for (Index part : range(ceil_div(max(queries, 0), each))) {
    PagedItem own = item;
    own.block = item.block * most + part;
    load_tile(rings, PagedWork(p, tile_, own));
  }
}

void PagedLanes::load_tile(const Rings& rings, const PagedWork& work) const {
  const auto [first, last] = work.blocks_of_part(keys_of_stage_);
  when(work.rows.start() < work.rows.limit(), [&, first = first, last = last] {
    rings.items.produce(work.item.numbers());
    when(first < last, [&] {
      if (copies.are_gathered()) {
        return copies.each_gathered(
            work, first, last, kKeysGathered / copies.rows(),
            [&](const std::vector<Index>& missing, const auto& each_run) {
              rings.keys.produce({missing.begin(), missing.end()}, [&](const Slot& stage) {
                each_run([&](const Index& row, const std::vector<PageSlots>& slots) {
                  gather(slots, work.kv_head, stage, row);
                });
              });
            });
      }
      copies.produce(rings.keys, work, first, last,
                     [&](const PageSlots& at, const Slot& stage, int row, int rows) {
                       const auto each_head = [&](auto&& bring) {
                         for (int i = 0; i < heads_together(); ++i) bring(i, work.kv_head + i);
                       };
                       each_head([&](int lane, const Index& head) {
                         tma_load(p.keys(at, head), keys(lane, stage).rows(row, rows));
                       });
                       each_head([&](int lane, const Index& head) {
                         tma_load(p.values(at, head), values(lane, stage).rows(row, rows));
                       });
                     });
    });
  });
}

// Many rows are on their way before the first is stored.
void PagedLanes::gather(const std::vector<PageSlots>& slots, const Index& kv_head,
                        const Slot& stage, const Index& row) const {
  const int rows = copies.rows();
  const DType dtype = dtype_of_keys(a_);
  std::vector<Tile> keys, values;
  for (const PageSlots& at : slots) {
    keys.push_back(tilewright::load(p.keys(at, kv_head), map_of_rows(dtype, rows, a_.dim)));
    values.push_back(tilewright::load(p.values(at, kv_head), map_of_rows(dtype, rows, a_.dim_v)));
  }
  for (int i = 0; i < static_cast<int>(slots.size()); ++i) {
    store(stage[0].rows(row + i * rows, rows), keys[static_cast<std::size_t>(i)]);
    store(stage[1].rows(row + i * rows, rows), values[static_cast<std::size_t>(i)]);
  }
}

void PagedLanes::compute_items(int lane, const Compute& compute) const {
  const Rings& rings = rings_of(lane);
  Cell<Condition> more(true);
  repeat_while(more, [&] {
    const Slot slot = rings.items.consume();
    PagedItem item = PagedItem::of(slot);
    item.head_block = item.head_block + head_of(lane);
    rings.items.release(slot);
    const Condition is_item = item.sequence >= 0;
    more = is_item;
    when(is_item, [&] { compute(lane, rings.keys, PagedWork(p, tile_, item)); });
  });
}

}  // namespace tilewright::kernels
