#pragma once

#include <functional>
#include <map>
#include <vector>

#include "schedules/products.h"
#include "tilewright/hopper.h"

namespace tilewright::schedules {

// Products of warpgroups, whose results are in registers: issued where the tile form has them, and
// waited for where something first needs them, or the registers or the stages that they read.
class ProductsInFlight final : public Products {
 public:
  using Products::Products;

  void issue(const ir::Operation& dot) override;
  void release_behind(ir::ValueId load, const ir::Operation& o) override;
  void carried(ir::ValueId from, ir::ValueId to) override { takes_over_[from] = to; }
  void finish_for(const ir::Operation& o) override;
  void finish_value(ir::ValueId value, const ir::Operation& o) override;
  std::size_t count() const override { return in_flight_.size(); }
  void finish_from(std::size_t count, const ir::Operation& o) override;

 private:
  // A product that has been issued and not been waited for.
  struct InFlight {
    ir::ValueId result;
    Pending product;
    ir::ValueId registers;              // its operand in registers, or none
    std::vector<ir::ValueId> reads;     // loads whose stages it reads
    std::vector<ir::ValueId> releases;  // loads that nothing reads after it
  };
  void finish_if(const std::function<bool(const InFlight&)>& predicate, const ir::Operation& o);

  std::vector<InFlight> in_flight_;  // in the order of their issue
  std::map<ir::ValueId, ir::ValueId> takes_over_;
};

}  // namespace tilewright::schedules
