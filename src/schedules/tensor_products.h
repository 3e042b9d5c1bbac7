#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "schedules/products.h"
#include "schedules/tensor_plan.h"
#include "tilewright/blackwell.h"

namespace tilewright::schedules {

// Products whose results are in tensor memory (TensorPlan says where). Each warpgroup has products
// of its own, of 64 or 128 rows, which one thread of its first warp issues. An operand in registers
// is stored to tensor memory first. A result that registers need is loaded once its product's
// barrier is complete. What it adds to in registers is added then, or brought to tensor memory
// before.
class ProductsInTensorMemory final : public Products {
 public:
  ProductsInTensorMemory(const Placement& placement, const SharedPlan& plan, RoleValues& values,
                         TileLoads& loads, const std::vector<SharedTile>& buffers, Tracer& tracer)
      : Products(placement, plan, values, loads, buffers, tracer), places_(placement) {}

  bool declare() override;
  void begin_role(std::optional<NamedBarrier>& all) override;
  void end_role(std::optional<NamedBarrier>& all) override;
  void issue(const ir::Operation& dot) override;
  void release_behind(ir::ValueId load, const ir::Operation& o) override;
  bool in_registers(ir::ValueId result) const override { return !places_.made_there(result); }
  void enter(const ir::Operation& o) override;
  void leave(const ir::Operation& o) override;
  void finish_for(const ir::Operation& o) override;
  void finish_value(ir::ValueId value, const ir::Operation& o) override;
  std::size_t count() const override { return issued_; }
  void finish_from(std::size_t count, const ir::Operation& o) override;

 private:
  // A barrier of each warpgroup, which commits complete, and the phase that is waited for next.
  struct Completion {
    ir::ValueId barriers = ir::kNoValue;
    std::unique_ptr<Cell<Index>> phase;
  };
  // What nobody has waited for: a product, or what a loop or a condition has left.
  struct InFlight {
    std::size_t number;
    ir::ValueId result;
    ir::ValueId sum;          // in registers, that is added to the result; or none
    const ir::Operation* by;  // the product; null: nothing is committed yet
  };

  Completion completion(const std::string& name, SourceLocation where);
  TensorColumns columns(const TensorPlan::Columns& part, SourceLocation where) const;
  void by_first_warp(const std::function<void()>& body, SourceLocation where) const;
  void commit(const Completion& to, SourceLocation where);
  void wait(Completion& for_, SourceLocation where);
  void store(const TensorColumns& to, ir::ValueId tile, SourceLocation where);
  void finish_all(SourceLocation where);
  void finish(const InFlight& product, bool is_read, const ir::Operation& o);

  const TensorPlan places_;
  std::optional<TensorMemory> memory_;
  std::optional<NamedBarrier> group_;  // of each warpgroup
  std::map<const ir::Operation*, Completion> completions_;
  Completion late_;
  std::optional<TensorColumns> own_;
  std::vector<InFlight> in_flight_;
  std::size_t issued_ = 0;
  std::size_t over_ = 0;  // of those that nothing was committed for, which a later commit waits for
};

}  // namespace tilewright::schedules
