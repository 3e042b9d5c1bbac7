#pragma once

#include <cstddef>
#include <map>
#include <utility>

#include "simulator/faults/sites.h"

namespace tilewright::simulator {

// Follows a fact about each value, such as what an array may hold, through all branches and turns
// of loops. `Own` has
//   void visit(const ir::Operation&, const Site&, Facts&)   of an operation without blocks
//   static Fact either(Fact, Fact)                          what holds if one of the two does
// and makes ForwardWalk its friend. The fact of a value that is not in Facts is Fact{}.
template <typename Own, typename Fact>
class ForwardWalk {
 public:
  using Facts = std::map<ir::ValueId, Fact>;

  // What holds behind the block, whose first operation has this number.
  Facts block(const ir::Block& block, std::size_t number, Facts facts) {
    for (const ir::Operation& operation : block.body) {
      const Site& site = sites_.at(number);
      if (operation.blocks.empty()) {
        static_cast<Own*>(this)->visit(operation, site, facts);
      } else {
        facts = enter(operation, site, facts);
      }
      number = site.end;
    }
    return facts;
  }

 protected:
  explicit ForwardWalk(const Sites& sites) : sites_(sites) {}

  const Sites& sites_;

 private:
  // Whether `to` grows by it.
  static bool merge(Facts& to, const Facts& from) {
    bool grows = false;
    for (const auto& [value, fact] : from) {
      Fact& own = to[value];
      const Fact joined = Own::either(own, fact);
      grows = grows || !(joined == own);
      own = joined;
    }
    return grows;
  }

  Facts enter(const ir::Operation& operation, const Site& site, const Facts& before) {
    const bool loops = operation.op == ir::Op::for_loop || operation.op == ir::Op::while_loop;
    const bool one_of_two = operation.op == ir::Op::if_then && operation.blocks.size() == 2;
    Facts behind = one_of_two ? Facts{} : before;
    Facts at_start = before;
    for (bool grows = true; grows;) {
      std::size_t number = site.number + 1;
      for (const ir::Block& inner : operation.blocks) {
        merge(behind, block(inner, number, at_start));
        for (std::size_t i = 0; i < inner.body.size(); ++i) number = sites_.at(number).end;
      }
      grows = loops && merge(at_start, behind);
    }
    return behind;
  }
};

}  // namespace tilewright::simulator
