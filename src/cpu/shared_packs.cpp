#include "cpu/shared_packs.h"

#include <algorithm>

#include "cpu/grid_axes.h"
#include "cpu/layout.h"
#include "cpu/tile_uses.h"

namespace tilewright::cpu {
namespace {

// Those of a thread, beside which the second-level cache has room for tiles.
constexpr std::int64_t kPacksBytes = 640 << 10;
// Where packs are forgotten so often in a row before a product finds any, the thread's blocks share
// none.
constexpr int kInVain = 2;

}  // namespace

void find_shared_factors(Program& program) {
  std::vector<bool> is_peer(program.tensors, false);
  // By TileId, of what products read in tensors.
  std::vector<Load*> loads(program.tiles.size(), nullptr);
  for_operations(program.body, [&](Operation& operation) {
    const auto* const peer = std::get_if<Peer>(&operation);
    auto* const load = std::get_if<Load>(&operation);
    const auto* const part = std::get_if<Move>(&operation);
    if (peer) is_peer[peer->result] = true;
    const bool is_fixed = load && load->in_place && load->is_constant && !is_peer[load->box.tensor];
    if (is_fixed) loads[load->tile] = load;
    if (part && part->is_factor) loads[part->result] = loads[part->source];
  });
  const GridAxes axes(program);
  for_operations(program.body, [&](Operation& operation) {
    auto* const product = std::get_if<Multiply>(&operation);
    if (product == nullptr || product->joins) return;
    Load* const load = loads[product->b];
    if (load == nullptr) return;
    product->shared_along = ~(axes.of(load->box.starts) | axes.of(load->box.limits));
    // A copy would be another one in each block.
    if ((product->shared_along & ((1u << program.grid.size()) - 1)) != 0)
      load->is_read_often = false;
    program.packs_bytes = kPacksBytes;
  });
  program.scratch_bytes = round_up(program.scratch_bytes, kAlignment);
}

SharedPacks::SharedPacks(const Program& program, const std::vector<std::int64_t>& grid,
                         std::byte* memory)
    : begin_(reinterpret_cast<float*>(memory)),
      end_(reinterpret_cast<float*>(memory + program.packs_bytes)),
      free_(begin_) {
  const auto longer = std::find_if(grid.begin(), grid.end(), [](auto count) { return count > 1; });
  if (longer != grid.end()) axis_ = 1u << (longer - grid.begin());
}

bool SharedPacks::have(const std::byte* b) const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [b](const Entry& entry) { return entry.b.data == b; });
}

Packs* SharedPacks::of(const Multiply& operation, const Product& product, std::int64_t block) {
  keep_last();
  if ((operation.shared_along & axis_) == 0 || product.m <= kFewRows || in_vain_ == kInVain) {
    return nullptr;
  }
  const auto known = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.b.data == product.b.data && entry.b.row_stride == product.b.row_stride &&
           entry.b.column_stride == product.b.column_stride && entry.element == product.element &&
           entry.n == product.n && entry.k == product.k;
  });
  if (known != entries_.end()) {
    ++found_;
    block_ = block;
    packs_ = {known->packs, true};
    return &packs_;
  }
  // Other blocks than those that it was packed for.
  if (block_ != block) forget();
  block_ = block;
  constexpr std::int64_t kColumns = 64;  // of a panel, at most
  if (end_ - free_ < product.k * round_up(product.n, kColumns)) return nullptr;
  packs_ = {free_, false};
  last_ = {product.b, product.element, product.n, product.k, free_};
  return &packs_;
}

// What the last product packed, if it was performed.
void SharedPacks::keep_last() {
  if (packs_.are_there || packs_.at == nullptr || packs_.at == free_) return;
  entries_.push_back(last_);
  free_ = packs_.at;
}

void SharedPacks::forget() {
  if (!entries_.empty()) in_vain_ = found_ == 0 ? in_vain_ + 1 : 0;
  entries_.clear();
  found_ = 0;
  free_ = begin_;
  packs_ = {};
}

}  // namespace tilewright::cpu
