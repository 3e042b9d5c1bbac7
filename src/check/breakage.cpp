#include "check/breakage.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "support/diagnostic.h"

namespace tilewright::checks {
namespace {

using ir::Block;
using ir::Op;
using ir::Operation;

// The arrival that lets a producer fill a stage again, behind the wait for the products that read
// the stage.
class Release {
 public:
  explicit Release(ir::Kernel& machine) {
    ir::for_each(machine.body, [&](const Operation& operation) {
      if (operation.op == Op::tma_load) filled_.insert(operation.operands[3]);
      if (operation.op != Op::mbarriers) return;
      names_[operation.results[0]] = operation.attributes.text(ir::Key::name);
    });
    search(machine.body, 0);
  }

  bool found() const { return !places_.empty(); }

  // A line of the source may have become several operations: all of them.
  Breakage move() {
    const Place first =
        *std::max_element(places_.begin(), places_.end(),
                          [](const Place& a, const Place& b) { return a.depth < b.depth; });
    const Operation& arrival = first.block->body[static_cast<std::size_t>(first.arrival)];
    const SourceLocation where = arrival.where;
    Breakage breakage{
        fmt::format(
            "the mbarrier_arrive on {} stands before the wgmma_wait of {} instead of behind",
            names_[arrival.operands[0]],
            format_location(first.block->body[static_cast<std::size_t>(first.wait)].where)),
        where};
    for (const Place& place : places_) {
      const auto begin = place.block->body.begin();
      const SourceLocation own = (begin + place.arrival)->where;
      if (own.file != where.file || own.line != where.line) continue;
      std::rotate(begin + place.wait, begin + place.arrival, begin + place.arrival + 1);
    }
    return breakage;
  }

 private:
  struct Place {
    Block* block = nullptr;
    std::ptrdiff_t wait = 0, arrival = 0;
    int depth = 0;  // loops around it
  };

  void search(Block& block, int depth) {
    std::ptrdiff_t wait = -1;
    for (std::size_t i = 0; i < block.body.size(); ++i) {
      Operation& operation = block.body[i];
      const auto at = static_cast<std::ptrdiff_t>(i);
      if (operation.op == Op::wgmma_wait) wait = at;
      const bool releases =
          operation.op == Op::mbarrier_arrive && filled_.count(operation.operands[0]) == 0;
      if (releases && wait >= 0 && !defined_between(block, wait, operation)) {
        places_.push_back({&block, wait, at, depth});
      }
      const bool repeats = operation.op == Op::for_loop || operation.op == Op::while_loop;
      for (Block& inner : operation.blocks) search(inner, depth + (repeats ? 1 : 0));
    }
  }

  // Whether the operation needs what is made behind the place.
  static bool defined_between(const Block& block, std::ptrdiff_t first, const Operation& user) {
    for (const Operation* at = &block.body[static_cast<std::size_t>(first)]; at != &user; ++at) {
      for (const ir::ValueId result : at->results) {
        if (std::count(user.operands.begin(), user.operands.end(), result) > 0) return true;
      }
    }
    return false;
  }

  std::set<ir::ValueId> filled_;  // barriers on which copies complete
  std::map<ir::ValueId, std::string> names_;
  std::vector<Place> places_;
};

// The first warp_sync right before an arrival, of which one lane tells for the others.
class LaneOrder {
 public:
  explicit LaneOrder(ir::Kernel& machine) { search(machine.body); }

  bool found() const { return block_ != nullptr; }

  Breakage remove() {
    const auto at = block_->body.begin() + place_;
    Breakage breakage{"the warp_sync before the arrival is left out", at->where};
    block_->body.erase(at);
    return breakage;
  }

 private:
  void search(Block& block) {
    for (std::size_t i = 0; i < block.body.size() && !found(); ++i) {
      if (i + 1 < block.body.size() && block.body[i].op == Op::warp_sync &&
          block.body[i + 1].op == Op::mbarrier_arrive) {
        block_ = &block;
        place_ = static_cast<std::ptrdiff_t>(i);
      }
      for (Block& inner : block.body[i].blocks) search(inner);
    }
  }

  Block* block_ = nullptr;
  std::ptrdiff_t place_ = 0;
};

}  // namespace

Breakage break_kernel(ir::Kernel& machine, const std::string& name) {
  const auto nothing_to_break = [&](const char* what) {
    Diagnostic(machine.where,
               fmt::format("kernel {} {}: there is nothing to break", machine.name, what))
        .fix("break a kernel with a ring and products, such as attention_forward")
        .raise();
  };
  if (name == "warp_sync") {
    LaneOrder order(machine);
    if (!order.found()) nothing_to_break("has no warp_sync before an arrival");
    return order.remove();
  }
  if (name != "release") {
    Diagnostic({}, fmt::format("there is no breakage '{}'", name))
        .fix("use: release, warp_sync")
        .raise();
  }
  Release release(machine);
  if (!release.found()) nothing_to_break("releases no stage behind a wgmma_wait");
  return release.move();
}

}  // namespace tilewright::checks
