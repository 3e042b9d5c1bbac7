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
  std::vector<std::pair<std::string, int>> copies;  // of each tensor map, or tile
  SourceLocation where;
  int count() const {
    int all = 0;
    for (const auto& [map, count] : copies) all += count;
    return all;
  }
  void add(const std::string& map, int times = 1) {
    const auto known = std::find_if(copies.begin(), copies.end(),
                                    [&](const auto& each) { return each.first == map; });
    if (known != copies.end()) {
      known->second += times;
    } else {
      copies.emplace_back(map, times);
    }
  }
  std::string text() const {
    std::vector<std::string> each;
    for (const auto& [map, count] : copies) each.push_back(fmt::format("{} of {}", count, map));
    return fmt::format("{}", fmt::join(each, ", "));
  }
};

class TierFinder {
 public:
  explicit TierFinder(const ir::Kernel& kernel)
      : kernel_(kernel), definitions_(analysis::definitions(kernel)) {
    visit(kernel.body);
  }
  std::vector<Tiers> found() && { return std::move(found_); }

 private:
  // The ways in which a block fills a stage: by its own copies, or by those of the branches of one
  // condition.
  std::vector<Fill> fills_of(const ir::Block& block) const {
    std::optional<Fill> fill;
    for (const ir::Operation& o : block.body) {
      if (o.op == ir::Op::mbarrier_expect_tx) fill = Fill{o.operands[0], {}, o.where};
      if (!fill) continue;
      add_copy(o, *fill);
      if (o.op != ir::Op::if_then || !fill->copies.empty()) continue;
      std::vector<Fill> all = copied_in(o, *fill);
      if (!all.empty()) return all;
    }
    return fill && !fill->copies.empty() ? std::vector{*fill} : std::vector<Fill>{};
  }

  void add_copy(const ir::Operation& o, Fill& fill) const {
    if (o.op != ir::Op::tma_load_tile || o.operands[2] != fill.barriers) return;
    const ir::Attributes& of_map = definitions_[o.operands[0]]->attributes;
    fill.add(of_map.text(ir::Key::name) + (of_map.has(ir::Key::ragged) ? " (cut)" : ""));
  }

  // The copies of each branch, and of those inside of it, of a stage that is expected.
  std::vector<Fill> copied_in(const ir::Operation& branch, const Fill& expected) const {
    std::vector<Fill> all;
    for (const ir::Block& block : branch.blocks) {
      Fill own = expected;
      std::vector<Fill> inside;
      for (const ir::Operation& o : block.body) {
        add_copy(o, own);
        if (o.op == ir::Op::if_then && inside.empty()) inside = copied_in(o, expected);
      }
      if (!own.copies.empty()) inside = {own};
      all.insert(all.end(), inside.begin(), inside.end());
    }
    return all;
  }

  // What the threads of one block load, and store in a stage that they then say is full.
  std::optional<Fill> fill_by_threads(const ir::Block& block) const {
    Fill fill;
    for (const ir::Operation& o : block.body) {
      add_stores(o, 1, fill);
      if (o.op != ir::Op::mbarrier_arrive || fill.copies.empty()) continue;
      fill.barriers = o.operands[0];
      return fill;
    }
    return std::nullopt;
  }

  // Of loops whose rounds are so many in each launch.
  void add_stores(const ir::Operation& o, std::int64_t rounds, Fill& fill) const {
    if (o.op == ir::Op::store_tile) {
      const ir::Operation* loaded = definitions_[o.operands[0]];
      if (!loaded || loaded->op != ir::Op::load) return;
      fill.where = loaded->where;
      fill.add(fmt::format("{}_{}", kernel_.parameter_of(loaded->operands[0])->name,
                           fmt::join(kernel_.type(o.operands[0]).shape, "x")),
               static_cast<int>(rounds));
    }
    if (o.op != ir::Op::for_loop) return;
    const auto bound = [&](int i) {
      return analysis::integer_constant(definitions_[o.operands[i]]);
    };
    const auto first = bound(0), end = bound(1), step = bound(2);
    if (!first || !end || !step || *step <= 0) return;
    for (const ir::Operation& inner : o.blocks[0].body) {
      add_stores(inner, rounds * ((*end - *first + *step - 1) / *step), fill);
    }
  }

  std::string ring_of(const Fill& fill) const {
    const std::string full = definitions_[fill.barriers]->attributes.text(ir::Key::name);
    return full.substr(0, full.rfind("_full"));
  }

  // How the branches of one condition, and of those inside of it, fill a ring's stage: none where
  // one of them fills no stage, or another ring's.
  std::vector<Fill> ways(const ir::Operation& branch) const {
    std::vector<Fill> all;
    for (const ir::Block& block : branch.blocks) {
      std::vector<Fill> own = fills_of(block);
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
    if (const std::optional<Fill> fill = fill_by_threads(block)) {
      found_.push_back({ring_of(*fill), {{1, fill->text()}}, true, fill->where});
    }
    if (add(fills_of(block))) return;
    for (const ir::Operation& o : block.body) {
      if (o.op == ir::Op::if_then && add(ways(o))) continue;
      for (const ir::Block& inner : o.blocks) visit(inner);
    }
  }

  // Several ways to fill one stage.
  bool add(const std::vector<Fill>& fills) {
    if (fills.size() < 2) return false;
    int most = 0;
    for (const Fill& fill : fills) most = std::max(most, fill.count());
    Tiers& tiers = found_.emplace_back(Tiers{ring_of(fills[0]), {}, false, fills[0].where});
    for (const Fill& fill : fills) tiers.ways.push_back({most / fill.count(), fill.text()});
    return true;
  }

  const ir::Kernel& kernel_;
  std::vector<const ir::Operation*> definitions_;
  std::vector<Tiers> found_;
};

}  // namespace

std::vector<Tiers> tiers_in(const ir::Kernel& scheduled) { return TierFinder(scheduled).found(); }

}  // namespace tilewright::explanations
