#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ir/ir.h"
#include "support/diagnostic.h"

namespace tilewright::test {

// The compiler of the printed text moves what it likes across a product, but for the registers that
// the wgmma_fence in front of it and a wgmma_wait behind it name: its result, and the operand that
// it reads from registers. What is not named so, by the places of the products.
inline std::vector<std::string> unpinned_registers(const ir::Kernel& machine) {
  std::vector<std::string> unpinned;
  std::set<ir::ValueId> fenced, awaited;
  std::vector<std::pair<ir::ValueId, const ir::Operation*>> used;
  ir::for_each(machine.body, [&](const ir::Operation& o) {
    if (o.op == ir::Op::wgmma_fence) fenced = {o.operands.begin(), o.operands.end()};
    if (o.op == ir::Op::wgmma_wait) awaited.insert(o.operands.begin(), o.operands.end());
    if (o.op != ir::Op::wgmma_ss && o.op != ir::Op::wgmma_rs) return;
    for (std::size_t i = 0; i < (o.op == ir::Op::wgmma_rs ? 2 : 1); ++i) {
      used.emplace_back(o.operands[i], &o);
      if (fenced.count(o.operands[i]) != 0) continue;
      unpinned.push_back(fmt::format("the fence of {}: {}", format_location(o.where),
                                     i == 0 ? "the result" : "the operand"));
    }
  });
  for (const auto& [array, product] : used) {
    if (awaited.count(array) != 0) continue;
    unpinned.push_back(fmt::format("no wait: registers of {}", format_location(product->where)));
  }
  return unpinned;
}

}  // namespace tilewright::test
