#pragma once

#include <map>
#include <set>
#include <vector>

#include "ir/core_window.h"
#include "ir/ir.h"
#include "target/core.h"

// What a tile kernel's values are to a core with explicit memories, which sees all in two axes.
namespace tilewright::schedules {

// What takes a value.
enum class CoreEnd : std::uint8_t { left, right, vector, tensor };

struct CoreUse {
  const ir::Operation* by = nullptr;
  CoreEnd end = CoreEnd::vector;
  bool turned = false;
};

class CoreTiles {
 public:
  CoreTiles(const ir::Kernel& tile, const target::Core& core);

  // The value that it is another view of: transposed, reshaped, or converted on the way.
  struct Seen {
    ir::ValueId base = ir::kNoValue;
    bool turned = false;
  };
  Seen seen(ir::ValueId value) const;
  ir::Extent2 extent(ir::ValueId base) const { return extents_[base]; }
  // As which it is taken.
  DType dtype(ir::ValueId base) const { return dtypes_[base]; }
  const ir::Operation* made(ir::ValueId value) const { return made_[value]; }
  const std::vector<CoreUse>& uses(ir::ValueId base) const { return uses_[base]; }
  bool is_used(ir::ValueId base, CoreEnd end) const;

  // The operation of the value's own block in which the other one stands.
  const ir::Operation* at_level(ir::ValueId value, const ir::Operation* by) const;
  // By vector operations alone, or by all.
  const ir::Operation* last_use(ir::ValueId base) const;
  bool comes_before(const ir::Operation* a, const ir::Operation* b) const {
    return numbers_.at(a) < numbers_.at(b);
  }
  bool is_of_kernel(ir::ValueId value) const { return blocks_[value] == &tile_.body; }

  // A loop whose results are sums that its products add to where they lie, from 0 on.
  bool accumulates(const ir::Operation& loop) const { return accumulating_.count(&loop) != 0; }
  // The value that a product makes: of an accumulating loop its result.
  ir::ValueId product_of(const ir::Operation& dot) const;
  // Whether the turns are the blocks of a dimension, of which there are none only where it is 0:
  // what would be loaded then does not exist.
  bool loads_nothing_without_a_turn(const ir::Operation& loop) const;
  // That is added to what is no place of products.
  bool adds_by_itself(const ir::Operation& dot) const;
  // A scalar in every element, which operations take as it is.
  bool is_number(ir::ValueId base) const;
  // A computed tile in another shape, whose elements lie elsewhere there.
  bool moves_elements(const ir::Operation& o) const;
  // Elementwise work of several axes of rows, of which an operand has one alone: what two axes do
  // not show.
  bool stretches_inside(const ir::Operation& o) const;
  // Whether a condition is what was computed, each row's own.
  const ir::Operation* computed_condition(const ir::Operation& if_then) const;
  bool has_tiles(const ir::Operation& o) const { return with_tiles_.count(&o) != 0; }
  bool is_tile(ir::ValueId value) const { return tile_.type(value).is(ir::Type::Kind::tile); }

 private:
  void number(const ir::Block& block, const ir::Operation* parent);
  bool is_zero(ir::ValueId value) const;
  bool is_accumulating(const ir::Operation& loop) const;
  bool only_moved(ir::ValueId value) const;
  bool only_stored(ir::ValueId value) const;
  void alias(const ir::Operation& o, const target::Core& core);
  void use(const ir::Operation& o);
  // Whether other operands than a number are as large as the result, which has its extent of them.
  bool spans_without(const ir::Operation& by, ir::ValueId number) const;

  struct Raw {
    const ir::Operation* by;
    std::size_t operand;
  };
  const ir::Kernel& tile_;
  std::vector<const ir::Operation*> made_;
  std::vector<const ir::Block*> blocks_;  // by value: where it is made
  std::vector<std::vector<Raw>> raw_;
  std::vector<Seen> seen_;
  std::vector<ir::Extent2> extents_;
  std::vector<DType> dtypes_;
  std::vector<std::vector<CoreUse>> uses_;
  std::map<const ir::Operation*, int> numbers_;
  std::map<const ir::Operation*, const ir::Operation*> parents_;
  std::map<const ir::Operation*, const ir::Block*> block_of_;
  std::set<const ir::Operation*> accumulating_, with_tiles_;
  std::map<const ir::Operation*, ir::ValueId> summed_in_;  // by product
};

}  // namespace tilewright::schedules
