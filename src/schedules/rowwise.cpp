#include "schedules/rowwise.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "language/explicit_tracing.h"
#include "schedules/memory_order.h"
#include "schedules/placement.h"
#include "schedules/retracing.h"
#include "schedules/row_spread.h"
#include "support/diagnostic.h"
#include "tilewright/asynchronous.h"

namespace tilewright::schedules {
namespace {

using ir::Key;
using ir::Op;
using ir::Operation;
using ir::Type;
using ir::ValueId;

constexpr std::int64_t kLoadedRegisters =
    64;  // of a thread, that loads may fill ahead of their use
using target::kGroupWarps;

// Records the kernel once more, at the explicit level, in one role.
class RowRetracing {
 public:
  explicit RowRetracing(const ir::Kernel& tile)
      : tile_(tile),
        spread_(tile),
        memory_(tile),
        kernel_(tile.name, tile.where),
        tracer_(Tracer::get("schedule", tile.where)),
        values_(tile.types.size(), ir::kNoValue) {}

  ir::Kernel run() {
    declare();
    kernel_.roles({RoleSpec(
                      "rows", warps(spread_.warps()), registers(spread_.registers()),
                      [this](Index group) {
                        group_.emplace(group);
                        retrace();
                      },
                      tile_.where)},
                  tile_.where);
    ir::Kernel scheduled = kernel_.finish();
    // Tiles are told how to lie where they begin; the others follow from their operands. A constant
    // that is smaller than the largest tile may begin a sum of which each lane keeps its part.
    ir::for_each(scheduled.body, [&](Operation& o) {
      if (o.op == Op::role) o.attributes.set(Key::threads, std::int64_t{32 * spread_.warps()});
      if (o.op != Op::load && o.op != Op::iota && o.op != Op::splat) return;
      const std::vector<std::int64_t>& shape = scheduled.type(o.results[0]).shape;
      if (o.op == Op::splat && shape != spread_.largest()) return;
      const ir::RegisterLayout layout = spread_.layout(shape);
      if (!layout.shape.empty()) o.attributes.set(Key::layout, layout);
    });
    return scheduled;
  }

 private:
  void declare() {
    parameters_ = redeclare(tile_, kernel_);
    for (const auto& [value, scalar] : parameters_.scalars) values_[value] = id(scalar);
    bool asks = false;
    ir::for_each(tile_.body, [&](const Operation& o) { asks |= o.op == Op::any; });
    if (asks) answers_.emplace(kernel_, "answers", spread_.warps(), tile_.where);
    if (memory_.any_meet() || asks)
      all_warps_.emplace(kernel_, 32 * spread_.warps(), 1, tile_.where);
    Dim ctas = 1;
    for (const Dim& extent : tile_.grid) ctas = ctas * extent;
    kernel_.ctas(ctas, 1, tile_.where);
  }

  void retrace() {
    const Tracer::At at(tracer_, tile_.where);
    Index rest = cta_index();
    for (std::size_t i = 0; i < tile_.grid.size(); ++i) {
      const bool last = i + 1 == tile_.grid.size();
      const Index extent(tile_.grid[i]);
      values_[tile_.body.arguments[i]] = id(last ? rest : rest % extent);
      if (!last) rest = rest / extent;
    }
    visit(tile_.body);
  }

  template <typename Value>
  ValueId id(const Value& value) {
    return tracer_.use(value.handle(), "schedule", tile_.where);
  }
  Index index(ValueId tile_value) { return Index(tracer_.handle(values_[tile_value])); }

  // Loads come first, with the addresses they need: reductions, at which warps wait for each other,
  // would else stand between one load and the next. Unless they took too many registers.
  void visit(const ir::Block& block) {
    std::vector<bool> recorded(block.body.size(), false);
    if (spread_.loaded_registers(tile_, block) <= kLoadedRegisters) {
      std::set<ValueId> later;  // what is made here, but not at once
      for (std::size_t i = 0; i < block.body.size(); ++i) {
        const Operation& o = block.body[i];
        recorded[i] = early(o) && std::none_of(o.operands.begin(), o.operands.end(),
                                               [&](ValueId v) { return later.count(v) != 0; });
        if (recorded[i]) {
          operation(o);
        } else {
          later.insert(o.results.begin(), o.results.end());
        }
      }
    }
    for (std::size_t i = 0; i < block.body.size(); ++i) {
      if (!recorded[i]) operation(block.body[i]);
    }
  }

  bool loads_input(const Operation& o) const {
    return o.op == Op::load && tile_.parameter_of(o.operands[0])->kind == ir::Parameter::Kind::in;
  }
  // Reads what never changes, or computes a number of such.
  bool early(const Operation& o) const {
    return loads_input(o) || (ir::info(o.op).pure() && tile_.type(o.results[0]).is_scalar());
  }

  void operation(const Operation& o) {
    const Tracer::At at(tracer_, o.where, true);
    switch (o.op) {
      case Op::for_loop:
        return loop(o);
      case Op::if_then:
        return branch(o);
      case Op::while_loop:
        return repeat(o);
      case Op::any:
        return any(o);
      case Op::yield:
        return;
      case Op::store:
        return store(o);
      case Op::peer:
        parameters_.tensors.insert_or_assign(
            o.results[0],
            parameters_.tensors.at(o.operands[0]).at({index(o.operands[1]), o.where}));
        return;
      default:
        break;
    }
    const bool reads = o.op == Op::load || o.op == Op::load_index;
    if (reads && memory_.after_store(o)) all_warps_->sync();
    std::vector<ValueId> operands;
    for (const ValueId operand : o.operands) {
      const auto tensor = parameters_.tensors.find(operand);
      operands.push_back(tensor == parameters_.tensors.end()
                             ? values_[operand]
                             : tracer_.use(tensor->second.handle(), "schedule", o.where));
    }
    values_[o.results[0]] =
        tracer_.emit(o.op, std::move(operands), tile_.type(o.results[0]), o.attributes, o.where);
    if (reads && memory_.stored(o) && !keeps_to_itself(o)) all_warps_->sync();
  }

  // Whether each element is read and written by one thread alone.
  bool keeps_to_itself(const Operation& load) const {
    const std::vector<std::int64_t>& shape = tile_.type(load.results[0]).shape;
    if (load.op != Op::load || memory_.after_store(load) || memory_.stored_elsewhere(load) ||
        shape != spread_.largest()) {
      return false;
    }
    const ir::RegisterLayout layout = spread_.layout(shape);
    const auto alone = [](const std::vector<ir::Mode>& modes) {
      return std::none_of(modes.begin(), modes.end(), [](const ir::Mode& mode) {
        return mode.kind == ir::ModeKind::replicate && mode.size > 1;
      });
    };
    return alone(layout.lanes) && alone(layout.warps);
  }

  // Each warp knows of its own elements; what one has found, all have to know.
  void any(const Operation& o) {
    const ValueId own =
        tracer_.emit(Op::any, {values_[o.operands[0]]}, tile_.type(o.results[0]), {}, o.where);
    answers_->store(*group_ * kGroupWarps + warp_index(),
                    select(Condition(tracer_.handle(own)), 1, 0), o.where);
    all_warps_->sync();
    Index found = 0;
    for (int warp = 0; warp < spread_.warps(); ++warp) {
      found = max(found, answers_->load(warp, o.where));
    }
    values_[o.results[0]] = id(found > 0);
    // Before the next answer takes the place of this one.
    all_warps_->sync();
  }

  void store(const Operation& o) {
    const std::vector<std::int64_t>& sizes = o.attributes.integers(Key::sizes);
    std::vector<Selector> selectors;
    for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
      const ValueId first = o.operands[2 + axis], end = o.operands[2 + sizes.size() + axis];
      if (sizes[axis] == 0) {
        selectors.push_back(Selector(index(first)));
        continue;
      }
      selectors.push_back(Selector(Block(index(first), static_cast<int>(sizes[axis]), index(end))));
    }
    tilewright::store(
        TensorView(parameters_.tensors.at(o.operands[0]).handle(), std::move(selectors), o.where),
        Tile(tracer_.handle(values_[o.operands[1]])), o.where);
  }

  void loop(const Operation& o) {
    const ir::Block& body = o.blocks[0];
    std::vector<int> cells;
    for (std::size_t i = 0; i < o.results.size(); ++i) {
      cells.push_back(tracer_.open_cell(values_[o.operands[3 + i]], o.where));
    }
    values_[body.arguments[0]] = tracer_.open_loop(values_[o.operands[0]], values_[o.operands[1]],
                                                   values_[o.operands[2]], o.where);
    for (std::size_t i = 0; i < cells.size(); ++i) {
      values_[body.arguments[1 + i]] = tracer_.read(cells[i], o.where);
    }
    visit(body);
    assign(cells, body, o);
    tracer_.close_loop();
    close(o, cells);
  }

  void repeat(const Operation& o) {
    const ir::Block& body = o.blocks[0];
    const int condition = tracer_.open_cell(values_[o.operands[0]], o.where);
    std::vector<int> cells;
    for (std::size_t i = 0; i < o.results.size(); ++i) {
      cells.push_back(tracer_.open_cell(values_[o.operands[1 + i]], o.where));
    }
    tracer_.trace_while(
        condition,
        [&] {
          for (std::size_t i = 0; i < cells.size(); ++i) {
            values_[body.arguments[i]] = tracer_.read(cells[i], o.where);
          }
          visit(body);
          assign_all(condition, cells, body, o);
        },
        o.where);
    tracer_.close_cell(condition);
    close(o, cells);
  }

  void assign_all(int condition, const std::vector<int>& cells, const ir::Block& block,
                  const Operation& o) {
    const std::vector<ValueId>& yielded = block.body.back().operands;
    std::vector<ValueId> now;
    for (const ValueId value : yielded) now.push_back(values_[value]);
    tracer_.assign(condition, now[0], o.where);
    for (std::size_t i = 0; i < cells.size(); ++i) {
      tracer_.assign(cells[i], now[1 + i], o.where);
    }
  }

  void branch(const Operation& o) {
    std::vector<int> cells;
    // A cell needs a value before the branches give it theirs.
    for (const ValueId result : o.results) {
      const Type& type = tile_.type(result);
      const ValueId zero = tracer_.number(0, type.dtype, "if", o.where);
      cells.push_back(tracer_.open_cell(
          type.is_scalar() ? zero : tracer_.emit(Op::splat, {zero}, type, {}, o.where), o.where));
    }
    const auto run = [&](const ir::Block& block) {
      return [this, &block, &cells, &o] {
        visit(block);
        assign(cells, block, o);
      };
    };
    tracer_.trace_if(values_[o.operands[0]], run(o.blocks[0]), run(o.blocks[1]), o.where);
    close(o, cells);
  }

  // All that the block yields is read before a cell changes.
  void assign(const std::vector<int>& cells, const ir::Block& block, const Operation& o) {
    std::vector<ValueId> yielded;
    for (const ValueId value : block.body.back().operands) yielded.push_back(values_[value]);
    for (std::size_t i = 0; i < cells.size(); ++i) tracer_.assign(cells[i], yielded[i], o.where);
  }

  void close(const Operation& o, const std::vector<int>& cells) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      values_[o.results[i]] = tracer_.read(cells[i], o.where);
      tracer_.close_cell(cells[i]);
    }
  }

  const ir::Kernel& tile_;
  const RowSpread spread_;
  const MemoryOrder memory_;
  Kernel kernel_;
  Tracer& tracer_;
  std::vector<ValueId> values_;  // of the tile form, in what is recorded
  Parameters parameters_;
  std::optional<NamedBarrier> all_warps_;
  std::optional<SharedIntegers> answers_;  // of each warp
  std::optional<Index> group_;             // warpgroup
};

}  // namespace

ir::Kernel schedule_rowwise(const ir::Kernel& tile) { return RowRetracing(tile).run(); }

}  // namespace tilewright::schedules
