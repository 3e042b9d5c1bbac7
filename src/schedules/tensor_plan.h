#pragma once

#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "schedules/placement.h"

namespace tilewright::schedules {

// Which columns of tensor memory the products of each warpgroup take: for their results, and for
// operands that are computed. Those that are never needed at once share columns. Of products of 64
// rows two warpgroups have the same columns, each half of the lanes.
//
// A result that only other products add to stays there: along products of a block, and through
// loops that carry it. Any other is loaded into registers where something first reads it.
class TensorPlan {
 public:
  struct Columns {
    int first = 0, count = 0;
  };

  // Raises where the columns of a CTA are not enough, for what takes them.
  explicit TensorPlan(const Placement& placement);

  // Of the CTA.
  int columns() const { return total_; }
  // Warpgroups that have the same columns: each of products of 64 rows has half of the lanes.
  int groups_of_columns() const { return 2 * kGroupRows / placement_.group_rows; }
  int width() const { return width_; }

  // Whether the value is made in tensor memory: a product's, or carried there.
  bool made_there(ir::ValueId value) const { return web_of_.count(value) != 0; }
  // Whether it stays there, for the product or the loop that alone takes it up.
  bool stays(ir::ValueId value) const { return stays_.count(value) != 0; }
  Columns result(ir::ValueId value) const;
  // Whether products of several kinds add to it: those are in no order by themselves.
  bool is_mixed(ir::ValueId value) const;
  // Of a first operand that registers hold.
  bool has_operand(const ir::Operation& dot) const { return operands_.count(&dot) != 0; }
  Columns operand(const ir::Operation& dot) const;
  // Whether somebody waits for the product in its own block: for its result, or for an operand that
  // is computed anew.
  bool is_awaited(const ir::Operation& dot) const;

 private:
  struct Use {
    const ir::Operation* by = nullptr;
    std::size_t operand = 0;
    const ir::Block* block = nullptr;
  };
  // From value to value, along which nothing else is done than to add products.
  struct Steps {
    std::vector<std::pair<ir::ValueId, ir::ValueId>> taken;
    bool multiplied = false;  // anything is added
  };
  struct Span {
    int begin = 0, end = 0;
  };
  struct Place {
    Span span;
    int columns = 0, first = 0;
    const ir::Operation* made = nullptr;
    const char* what = "";
    // Of the products that make it, which of their operands have another axis than k side by side.
    std::set<std::tuple<DType, bool, bool>> kinds = {};
  };

  void visit(const ir::Block& block);
  bool is_carried(const ir::Operation& loop, std::size_t i);
  bool reaches_yield(ir::ValueId value, const ir::Block& block, std::size_t index, Steps& steps,
                     bool in_branch = false);
  ir::ValueId taken_up(const Use& use, const ir::Block& block);
  ir::ValueId through_condition(ir::ValueId value, const ir::Block& block, Steps& steps);
  bool is_taken_up(ir::ValueId value);
  void join(ir::ValueId a, ir::ValueId b);
  ir::ValueId root(ir::ValueId value) const;
  void extend(ir::ValueId value, int begin, int end);
  int end_of(ir::ValueId value) const;
  int own_columns(ir::ValueId value) const;
  void find_results();
  void find_places();
  void place(std::vector<Place*> places);
  int runs_of_columns() const;
  void check_capacity(const std::vector<Place*>& places) const;

  const Placement& placement_;
  std::map<const ir::Operation*, Span> positions_;
  std::map<const ir::Operation*, const ir::Block*> block_of_;
  std::map<const ir::Block*, int> block_ends_;
  std::map<ir::ValueId, std::vector<Use>> uses_;
  std::map<ir::ValueId, const ir::Block*> defined_in_;
  std::vector<const ir::Operation*> dots_, loops_;
  std::map<std::pair<const ir::Operation*, std::size_t>, bool> carried_;
  std::map<ir::ValueId, ir::ValueId> web_of_;  // towards the root
  std::set<ir::ValueId> stays_;
  std::map<ir::ValueId, Place> results_;  // by root
  std::map<const ir::Operation*, Place> operands_;
  int position_ = 0, width_ = 0, total_ = 0;
};

}  // namespace tilewright::schedules
