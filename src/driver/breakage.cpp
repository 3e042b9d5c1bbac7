#include "driver/breakage.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>

#include "support/diagnostic.h"

namespace tilewright::driver {
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

  bool found() const { return block_ != nullptr; }

  Breakage move() {
    const auto wait = block_->body.begin() + wait_, arrival = block_->body.begin() + arrival_;
    Breakage breakage{
        fmt::format(
            "the mbarrier_arrive on {} stands before the wgmma_wait of {} instead of behind",
            names_[arrival->operands[0]], format_location(wait->where)),
        arrival->where};
    std::rotate(wait, arrival, arrival + 1);
    return breakage;
  }

 private:
  void search(Block& block, int depth) {
    std::ptrdiff_t wait = -1;
    for (std::size_t i = 0; i < block.body.size(); ++i) {
      Operation& operation = block.body[i];
      const auto at = static_cast<std::ptrdiff_t>(i);
      if (operation.op == Op::wgmma_wait) wait = at;
      const bool releases =
          operation.op == Op::mbarrier_arrive && filled_.count(operation.operands[0]) == 0;
      if (releases && wait >= 0 && depth > depth_ && !defined_between(block, wait, operation)) {
        block_ = &block;
        wait_ = wait;
        arrival_ = at;
        depth_ = depth;
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
  Block* block_ = nullptr;
  std::ptrdiff_t wait_ = 0, arrival_ = 0;
  int depth_ = -1;
};

}  // namespace

Breakage break_kernel(ir::Kernel& machine, const std::string& name) {
  if (name != "release") {
    Diagnostic({}, fmt::format("there is no breakage '{}'", name)).fix("use: release").raise();
  }
  Release release(machine);
  if (!release.found()) {
    Diagnostic(machine.where, fmt::format("kernel {} releases no stage behind a wgmma_wait: there "
                                          "is nothing to break",
                                          machine.name))
        .fix("break a kernel with a ring and products, such as attention_forward")
        .raise();
  }
  return release.move();
}

}  // namespace tilewright::driver
