#include "explain/tiers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "analysis/definitions.h"

namespace tilewright::explanations {
namespace {

// The copies that fill a stage in one block.
struct Fill {
  ir::ValueId barriers = ir::kNoValue;
  std::vector<std::pair<std::string, int>> copies;  // of each tensor map
  SourceLocation where;
  int count() const {
    int all = 0;
    for (const auto& [map, count] : copies) all += count;
    return all;
  }
  std::string text() const {
    std::vector<std::string> each;
    for (const auto& [map, count] : copies) each.push_back(fmt::format("{} of {}", count, map));
    return fmt::format("{}", fmt::join(each, ", "));
  }
};

class TierFinder {
 public:
  explicit TierFinder(const ir::Kernel& kernel) : definitions_(analysis::definitions(kernel)) {
    visit(kernel.body);
  }
  std::vector<Tiers> found() && { return std::move(found_); }

 private:
  std::optional<Fill> fill_of(const ir::Block& block) const {
    std::optional<Fill> fill;
    for (const ir::Operation& o : block.body) {
      if (o.op == ir::Op::mbarrier_expect_tx) fill = Fill{o.operands[0], {}, o.where};
      if (o.op != ir::Op::tma_load_tile || !fill || o.operands[2] != fill->barriers) continue;
      const ir::Attributes& of_map = definitions_[o.operands[0]]->attributes;
      const std::string map =
          of_map.text(ir::Key::name) + (of_map.has(ir::Key::ragged) ? " (cut)" : "");
      const auto known = std::find_if(fill->copies.begin(), fill->copies.end(),
                                      [&](const auto& each) { return each.first == map; });
      if (known != fill->copies.end()) {
        ++known->second;
      } else {
        fill->copies.emplace_back(map, 1);
      }
    }
    return fill && !fill->copies.empty() ? fill : std::nullopt;
  }

  // How the branches of one condition, and of those inside of it, fill a ring's stage: none where
  // one of them fills no stage, or another ring's.
  std::vector<Fill> ways(const ir::Operation& branch) const {
    std::vector<Fill> all;
    for (const ir::Block& block : branch.blocks) {
      std::vector<Fill> own;
      if (const std::optional<Fill> fill = fill_of(block)) own.push_back(*fill);
      for (const ir::Operation& inner : block.body) {
        if (own.empty() && inner.op == ir::Op::if_then) own = ways(inner);
      }
      if (own.empty()) return {};
      all.insert(all.end(), own.begin(), own.end());
    }
    const bool is_one_ring = std::all_of(all.begin(), all.end(), [&](const Fill& each) {
      return each.barriers == all.front().barriers;
    });
    return is_one_ring ? all : std::vector<Fill>{};
  }

  void visit(const ir::Block& block) {
    for (const ir::Operation& o : block.body) {
      const std::vector<Fill> fills = o.op == ir::Op::if_then ? ways(o) : std::vector<Fill>{};
      if (fills.size() < 2) {
        for (const ir::Block& inner : o.blocks) visit(inner);
        continue;
      }
      int most = 0;
      for (const Fill& fill : fills) most = std::max(most, fill.count());
      std::string ring = definitions_[fills[0].barriers]->attributes.text(ir::Key::name);
      ring = ring.substr(0, ring.rfind("_full"));
      Tiers& tiers = found_.emplace_back(Tiers{std::move(ring), {}, fills[0].where});
      for (const Fill& fill : fills) {
        tiers.ways.push_back({most / fill.count(), fill.text()});
      }
    }
  }

  std::vector<const ir::Operation*> definitions_;
  std::vector<Tiers> found_;
};

}  // namespace

std::vector<Tiers> tiers_in(const ir::Kernel& scheduled) { return TierFinder(scheduled).found(); }

}  // namespace tilewright::explanations
