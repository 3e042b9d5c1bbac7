#include "schedules/hopper.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>

#include "language/explicit_tracing.h"
#include "schedules/extents.h"
#include "schedules/placement.h"
#include "support/diagnostic.h"
#include "tilewright/hopper.h"

namespace tilewright::schedules {
namespace {

using ir::Key;
using ir::Op;
using ir::Operation;
using ir::Type;
using ir::ValueId;

constexpr std::int64_t kSharedBytes = 232448 - 1024;  // of a CTA, less barriers
constexpr int kMostStages = 4;

// Records the kernel once more, at the explicit level.
class Retracing {
 public:
  explicit Retracing(const ir::Kernel& tile)
      : tile_(tile),
        placement_(tile),
        extents_(tile),
        kernel_(tile.name, tile.where),
        tracer_(Tracer::get("schedule", tile.where)) {}

  ir::Kernel run() {
    declare();
    const int groups = static_cast<int>(placement_.rows / kGroupRows);
    kernel_.roles({RoleSpec(
                       "load", warps(1), registers(groups > 2 ? 32 : 24),
                       [&](Index) { retrace(true, Index(0)); }, tile_.where),
                   RoleSpec(
                       "math", warpgroups(groups), registers(groups > 2 ? 160 : 240),
                       [&](Index group) {
                         retrace(false, group);
                         if (stores_) bulk_wait(0, tile_.where);
                       },
                       tile_.where)},
                  tile_.where);
    return kernel_.finish();
  }

 private:
  void declare() {
    for (const Dim& dim : tile_.dims) kernel_.dim(dim.name(), dim.facts(), tile_.where);
    for (const ir::Parameter& p : tile_.parameters) {
      if (!p.is_tensor()) {
        Diagnostic(p.where, "schedule for sm_90a: the scalar parameter \"" + p.name + "\"")
            .fix("the automatic schedule does not take scalar parameters yet")
            .raise();
      }
      const Tensor tensor =
          p.kind == ir::Parameter::Kind::in    ? kernel_.in(p.name, p.dtype, p.shape, p.where)
          : p.kind == ir::Parameter::Kind::out ? kernel_.out(p.name, p.dtype, p.shape, p.where)
                                               : kernel_.inout(p.name, p.dtype, p.shape, p.where);
      tensors_.emplace(p.value, tensor);
    }
    Dim ctas = 1;
    for (const Dim& extent : tile_.grid) ctas = ctas * extent;
    kernel_.ctas(ctas, 1, tile_.where);
    // What is stored by TMA and what is loaded once take their place; loops share the rest.
    std::int64_t once = 0, in_loops = 0;
    ir::for_each(tile_.body, [&](const Operation& o) {
      if (o.op == Op::store && staged(o)) once += bytes_of(o.operands[1]);
    });
    measure(tile_.body, false, once, in_loops);
    const std::int64_t fit = in_loops == 0 ? 1 : (kSharedBytes - once) / in_loops;
    make_rings(tile_.body, false, static_cast<int>(std::clamp<std::int64_t>(fit, 1, kMostStages)));
  }

  std::int64_t bytes_of(ValueId tile) const {
    const Type& type = tile_.type(tile);
    return type.elements() * size_of(type.dtype);
  }

  void measure(const ir::Block& block, bool in_loop, std::int64_t& once,
               std::int64_t& in_loops) const {
    for (const Operation& o : block.body) {
      if (o.op == Op::load) (in_loop ? in_loops : once) += bytes_of(o.results[0]);
      const bool loop = o.op == Op::for_loop;
      for (const ir::Block& inner : o.blocks) measure(inner, in_loop || loop, once, in_loops);
    }
  }

  void make_rings(const ir::Block& block, bool in_loop, int loop_stages) {
    for (const Operation& o : block.body) {
      if (o.op == Op::load) {
        const Type& type = tile_.type(o.results[0]);
        if (type.shape.size() != 2) unfit(o, "a tile of other than two axes", "index axes away");
        rings_.emplace(
            o.results[0],
            std::make_unique<Ring>(
                kernel_, tile_.parameter_of(o.operands[0])->name, stages(in_loop ? loop_stages : 1),
                std::vector<TileShape>{
                    {type.dtype, static_cast<int>(type.shape[0]), static_cast<int>(type.shape[1])}},
                o.where));
      }
      const bool loop = o.op == Op::for_loop || o.op == Op::while_loop;
      for (const ir::Block& inner : o.blocks) make_rings(inner, in_loop || loop, loop_stages);
    }
  }

  void retrace(bool loading, const Index& group) {
    loading_ = loading;
    values_.assign(tile_.types.size(), ir::kNoValue);
    slots_.clear();
    ranges_.clear();
    all_true_.clear();
    group_ = tracer_.use(group.handle(), "schedule", tile_.where);
    const Tracer::At at(tracer_, tile_.where);
    Index rest = cta_index();
    for (std::size_t i = 0; i < tile_.grid.size(); ++i) {
      const bool last = i + 1 == tile_.grid.size();
      const Index extent(tile_.grid[i]);
      const Index place = last ? rest : rest % extent;
      // Where loops grow with the index, the longest blocks come first and the short ones fill up.
      values_[tile_.body.arguments[i]] = id(placement_.lengthens[i] ? extent - 1 - place : place);
      if (!last) rest = rest / extent;
    }
    visit(tile_.body);
  }

  ValueId id(const Index& index) { return tracer_.use(index.handle(), "schedule", tile_.where); }
  Index index(ValueId tile_value) { return Index(tracer_.handle(values_[tile_value])); }
  bool scalar(ValueId value) const { return tile_.type(value).is_scalar(); }

  // The part of a tile that one warpgroup has.
  Type local(Type type) const {
    if (type.is_tile() && !type.shape.empty() && type.shape[0] == placement_.rows) {
      type.shape[0] = kGroupRows;
    }
    return type;
  }

  void visit(const ir::Block& block) {
    std::map<ValueId, std::size_t> last_use;
    for (std::size_t i = 0; i < block.body.size(); ++i) {
      for (const ValueId operand : block.body[i].operands) last_use[operand] = i;
      for (const ir::Block& inner : block.body[i].blocks) {
        ir::for_each(inner, [&](const Operation& o) {
          for (const ValueId operand : o.operands) last_use[operand] = i;
        });
      }
    }
    // A transposed tile is its load.
    for (const Operation& o : block.body) {
      if (o.op == Op::transpose && last_use.count(o.results[0]) != 0) {
        std::size_t& last = last_use[o.operands[0]];
        last = std::max(last, last_use[o.results[0]]);
      }
    }
    std::vector<ValueId> held;
    for (std::size_t i = 0; i < block.body.size(); ++i) {
      const Operation& o = block.body[i];
      operation(o);
      if (loading_) continue;
      if (o.op == Op::load) held.push_back(o.results[0]);
      for (const ValueId load : held) {
        const auto last = last_use.find(load);
        const bool done = last == last_use.end() ? o.results.size() == 1 && o.results[0] == load
                                                 : last->second == i;
        if (done) rings_.at(load)->release(*slots_.at(load), o.where);
      }
    }
  }

  void operation(const Operation& o) {
    const Tracer::At at(tracer_, o.where);
    switch (o.op) {
      case Op::for_loop:
        return loop(o);
      case Op::if_then:
        return branch(o);
      case Op::while_loop:
        unfit(o, "a loop whose end the kernel decides", "use a loop over a range");
      case Op::yield:
      case Op::transpose:
        return;
      case Op::load:
        return load(o);
      case Op::any:
        unfit(o, "asks all warpgroups", "use where() instead of a condition");
      default:
        break;
    }
    const bool tile =
        std::any_of(o.results.begin(), o.results.end(), [&](ValueId r) { return !scalar(r); }) ||
        o.op == Op::store;
    if (loading_ && tile) return;
    switch (o.op) {
      case Op::dot:
        return dot(o);
      case Op::store:
        return store(o);
      case Op::iota:
        return iota(o);
      case Op::reduce:
        return reduce(o);
      case Op::select:
        return select(o);
      default:
        break;
    }
    note_range(o);
    std::vector<ValueId> operands;
    for (const ValueId operand : o.operands) operands.push_back(values_[operand]);
    values_[o.results[0]] = tracer_.emit(o.op, std::move(operands), local(tile_.type(o.results[0])),
                                         o.attributes, o.where);
  }

  // The view of global memory that a load or store names; a row-spread one is the warpgroup's part.
  TensorView view(const Operation& o, std::size_t first, bool spread, int rows_of_warp = 0) {
    const std::vector<std::int64_t>& sizes = o.attributes.integers(Key::sizes);
    std::vector<Selector> selectors;
    bool rows = true;
    for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
      const Index start = index(o.operands[first + axis]);
      if (sizes[axis] == 0) {
        selectors.push_back(Selector(start));
        continue;
      }
      const Index limit = index(o.operands[first + sizes.size() + axis]);
      Block block(start, static_cast<int>(sizes[axis]), limit);
      if (rows && spread) {
        block = block.part(Index(tracer_.handle(group_)), kGroupRows);
        if (rows_of_warp > 0) block = block.part(warp_index(), rows_of_warp);
      }
      rows = false;
      selectors.push_back(Selector(block));
    }
    return TensorView(tensors_.at(o.operands[0]).handle(), std::move(selectors), o.where);
  }

  void load(const Operation& o) {
    Ring& ring = *rings_.at(o.results[0]);
    if (!loading_) {
      slots_[o.results[0]] = std::make_unique<Slot>(ring.consume(o.where));
      return;
    }
    if (!extents_.ends_with_tensor(o)) {
      unfit(o, "ends before its tensor does", "take blocks of the tensor's own dimension");
    }
    ring.produce([&](const Slot& slot) { tma_load(view(o, 1, false), slot, {}, o.where); },
                 o.where);
  }

  SharedView operand(ValueId value, bool spread) {
    bool transposed = false;
    const Operation* load = placement_.load_of(value, transposed);
    SharedView view = (*slots_.at(load->results[0]))[0];
    if (spread) view = view.rows(Index(tracer_.handle(group_)) * kGroupRows, kGroupRows);
    return transposed ? view.T() : view;
  }

  // A select of `value` where the elements of axis 1 exist, else of `neutral`.
  ValueId existing(ValueId tile_value, double neutral, const Operation& o) {
    ValueId value = values_[tile_value];
    const Type type = tracer_.type(value);
    for (const Extents::Bound& bound : extents_.of(tile_value, 1)) {
      const Index count = index(bound.limit) - index(bound.start);
      const auto clipped = [&, whole = value] {
        const Type row = Type::tile(i32, {1, type.shape[1]});
        Type truth = row;
        truth.dtype = DType::boolean;
        const ValueId column =
            tracer_.emit(Op::iota, {}, row, {{Key::axis, std::int64_t{1}}}, o.where);
        const ValueId inside = tracer_.emit(Op::lt, {column, id(count)}, truth, {}, o.where);
        return tracer_.emit(Op::select,
                            {inside, whole, tracer_.number(neutral, type.dtype, "extent", o.where)},
                            type, {}, o.where);
      };
      value = unless(Index(type.shape[1]) <= count, value, clipped, o);
    }
    return value;
  }

  void dot(const Operation& o) {
    bool transposed = false;
    const SharedView b = operand(o.operands[1], false);
    const Operation* left = placement_.load_of(o.operands[0], transposed);
    std::optional<Pending> product;
    const bool accumulates = o.operands.size() > 2;
    if (left) {
      const SharedView a = operand(o.operands[0], true);
      product = accumulates ? wgmma(a, b, tile(o.operands[2]), o.where) : wgmma(a, b, o.where);
    } else {
      // What does not exist of b arrives as zero; a's must be a number to vanish beside it.
      const Tile a(tracer_.handle(existing(o.operands[0], 0, o)));
      product = accumulates ? wgmma(a, b, tile(o.operands[2]), o.where) : wgmma(a, b, o.where);
    }
    values_[o.results[0]] = tracer_.use(wait(*product, o.where).handle(), "dot", o.where);
  }

  Tile tile(ValueId value) { return Tile(tracer_.handle(values_[value])); }

  // Whether a tile leaves through shared memory: 16-bit rows of a matrix, clipped where the tensor
  // ends, as TMA does it.
  bool staged(const Operation& o) const {
    const Type& type = tile_.type(o.operands[1]);
    return size_of(type.dtype) == 2 && type.shape.size() == 2 && type.shape[0] == placement_.rows &&
           type.shape[1] % 16 == 0 && o.attributes.integers(Key::sizes).back() != 0 &&
           extents_.ends_with_tensor(o);
  }

  void store(const Operation& o) {
    const Type& type = tile_.type(o.operands[1]);
    if (!staged(o)) {
      const bool spread = type.shape[0] == placement_.rows;
      return tilewright::store(view(o, 2, spread), tile(o.operands[1]), o.where);
    }
    // Each warp sends its own 16 rows.
    const SharedTile staging(kernel_, tile_.parameter_of(o.operands[0])->name + "_staging",
                             type.dtype, static_cast<int>(type.shape[0]),
                             static_cast<int>(type.shape[1]), o.where);
    const Index first = Index(tracer_.handle(group_)) * kGroupRows;
    // A store inside a loop writes again what the copy before may still read.
    bulk_wait_read(0, o.where);
    warp_sync(o.where);
    tilewright::store(staging.rows(first, kGroupRows), tile(o.operands[1]), o.where);
    fence_proxy_async(o.where);
    warp_sync(o.where);
    tma_store(view(o, 2, true, 16), staging.rows(first + warp_index() * 16, 16), o.where);
    bulk_commit(o.where);
    stores_ = true;
  }

  void iota(const Operation& o) {
    const Type type = local(tile_.type(o.results[0]));
    ValueId value = tracer_.emit(Op::iota, {}, type, o.attributes, o.where);
    const int axis = static_cast<int>(o.attributes.integer(Key::axis));
    Index first(0);
    if (axis == 0 && type.shape[0] == kGroupRows) {
      first = Index(tracer_.handle(group_)) * kGroupRows;
      value = tracer_.emit(Op::add, {value, id(first)}, type, {}, o.where);
    }
    ranges_.insert_or_assign(o.results[0], Range{first, first + (type.shape[axis] - 1)});
    values_[o.results[0]] = value;
  }

  // The least and greatest element of a tile of integers, as scalars; and of a tile of booleans
  // whether all are true. A mask is asked once a block instead of once an element.
  struct Range {
    Index least, greatest;
  };
  std::optional<Range> range_of(ValueId value) {
    if (scalar(value)) return Range{index(value), index(value)};
    const auto at = ranges_.find(value);
    return at == ranges_.end() ? std::nullopt : std::optional<Range>(at->second);
  }

  void note_range(const Operation& o) {
    const Type& type = tile_.type(o.results[0]);
    if (!type.is_tile()) return;
    const bool compares = o.op == Op::lt || o.op == Op::le;
    if (o.op == Op::splat && type.dtype == i32) {
      ranges_.insert_or_assign(o.results[0], Range{index(o.operands[0]), index(o.operands[0])});
    } else if (o.op == Op::logical_and) {
      const auto a = all_true_.find(o.operands[0]), b = all_true_.find(o.operands[1]);
      if (a == all_true_.end() || b == all_true_.end()) return;
      all_true_.insert_or_assign(o.results[0], a->second && b->second);
    } else if (compares || ((o.op == Op::add || o.op == Op::sub) && type.dtype == i32)) {
      const auto integers = [&](ValueId v) { return tile_.type(v).dtype == i32; };
      if (!integers(o.operands[0]) || !integers(o.operands[1])) return;
      const auto a = range_of(o.operands[0]), b = range_of(o.operands[1]);
      if (!a || !b) return;
      if (compares) {
        const Condition all = o.op == Op::lt ? a->greatest < b->least : a->greatest <= b->least;
        all_true_.insert_or_assign(o.results[0], all);
      } else if (o.op == Op::add) {
        ranges_.insert_or_assign(o.results[0],
                                 Range{a->least + b->least, a->greatest + b->greatest});
      } else {
        ranges_.insert_or_assign(o.results[0],
                                 Range{a->least - b->greatest, a->greatest - b->least});
      }
    }
  }

  // A select whose condition holds for a whole block is skipped there.
  void select(const Operation& o) {
    const Type type = local(tile_.type(o.results[0]));
    const auto emit = [&] {
      return tracer_.emit(o.op,
                          {values_[o.operands[0]], values_[o.operands[1]], values_[o.operands[2]]},
                          type, o.attributes, o.where);
    };
    const auto all = all_true_.find(o.operands[0]);
    const bool whole = all != all_true_.end() && !scalar(o.operands[1]) &&
                       tracer_.type(values_[o.operands[1]]).shape == type.shape;
    if (!whole) {
      values_[o.results[0]] = emit();
      return;
    }
    values_[o.results[0]] = unless(all->second, values_[o.operands[1]], emit, o);
  }

  // `value` where the condition holds, which is asked once a block, else what `otherwise` records.
  ValueId unless(const Condition& condition, ValueId value,
                 const std::function<ValueId()>& otherwise, const Operation& o) {
    const int cell = tracer_.open_cell(value, o.where);
    tracer_.trace_if(
        tracer_.use(condition.handle(), "select", o.where), {},
        [&] { tracer_.assign(cell, otherwise(), o.where); }, o.where);
    const ValueId result = tracer_.read(cell, o.where);
    tracer_.close_cell(cell);
    return result;
  }

  void reduce(const Operation& o) {
    if (o.attributes.integer(Key::axis) != 1) {
      unfit(o, "along rows, which are spread over warps", "reduce along axis 1");
    }
    const Op function = o.attributes.function();
    const double infinity = std::numeric_limits<double>::infinity();
    const double neutral = function == Op::add ? 0 : function == Op::max ? -infinity : infinity;
    values_[o.results[0]] = tracer_.emit(Op::reduce, {existing(o.operands[0], neutral, o)},
                                         local(tile_.type(o.results[0])), o.attributes, o.where);
  }

  // Carried values become cells; the producer carries scalars only.
  struct Carried {
    std::size_t position;
    int slot;
  };

  void loop(const Operation& o) {
    if (loading_ && !has_loads(o.blocks[0])) {
      if (std::any_of(o.results.begin(), o.results.end(), [&](ValueId r) { return scalar(r); })) {
        unfit(o, "computes a number", "compute it outside of the loop");
      }
      return;
    }
    std::vector<Carried> cells;
    for (std::size_t i = 0; i < o.results.size(); ++i) {
      if (loading_ && !scalar(o.results[i])) continue;
      cells.push_back({i, tracer_.open_cell(values_[o.operands[3 + i]], o.where)});
    }
    const ir::Block& body = o.blocks[0];
    values_[body.arguments[0]] = tracer_.open_loop(values_[o.operands[0]], values_[o.operands[1]],
                                                   values_[o.operands[2]], o.where);
    for (const Carried& c : cells) {
      values_[body.arguments[1 + c.position]] = tracer_.read(c.slot, o.where);
    }
    visit(body);
    std::vector<ValueId> yielded;
    for (const Carried& c : cells)
      yielded.push_back(values_[body.body.back().operands[c.position]]);
    for (std::size_t i = 0; i < cells.size(); ++i)
      tracer_.assign(cells[i].slot, yielded[i], o.where);
    tracer_.close_loop();
    close(o, cells);
  }

  void branch(const Operation& o) {
    std::vector<Carried> cells;
    // A cell needs a value before the branches give it theirs.
    for (std::size_t i = 0; i < o.results.size(); ++i) {
      if (loading_ && !scalar(o.results[i])) continue;
      const Type type = local(tile_.type(o.results[i]));
      const ValueId zero = tracer_.number(0, type.dtype, "if", o.where);
      cells.push_back(
          {i, tracer_.open_cell(
                  type.is_scalar() ? zero : tracer_.emit(Op::splat, {zero}, type, {}, o.where),
                  o.where)});
    }
    const auto run = [&](const ir::Block& block) {
      return [this, &block, &cells, &o] {
        visit(block);
        for (const Carried& c : cells) {
          tracer_.assign(c.slot, values_[block.body.back().operands[c.position]], o.where);
        }
      };
    };
    tracer_.trace_if(values_[o.operands[0]], run(o.blocks[0]), run(o.blocks[1]), o.where);
    close(o, cells);
  }

  void close(const Operation& o, const std::vector<Carried>& cells) {
    for (const Carried& c : cells) {
      values_[o.results[c.position]] = tracer_.read(c.slot, o.where);
      tracer_.close_cell(c.slot);
    }
  }

  const ir::Kernel& tile_;
  const Placement placement_;
  const Extents extents_;
  Kernel kernel_;
  Tracer& tracer_;
  std::map<ValueId, Tensor> tensors_;
  std::map<ValueId, std::unique_ptr<Ring>> rings_;
  std::map<ValueId, std::unique_ptr<Slot>> slots_;
  std::map<ValueId, Range> ranges_;
  std::map<ValueId, Condition> all_true_;
  std::vector<ValueId> values_;  // of the tile form, in the role that is recorded
  bool loading_ = false;
  bool stores_ = false;  // by TMA
  ValueId group_ = ir::kNoValue;
};

}  // namespace

ir::Kernel schedule_for_hopper(const ir::Kernel& tile) { return Retracing(tile).run(); }

}  // namespace tilewright::schedules
