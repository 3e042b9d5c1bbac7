#include "schedules/core_products.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ir/core_window.h"
#include "language/core_tracing.h"
#include "schedules/block_turns.h"
#include "schedules/core_tiles.h"
#include "schedules/retracing.h"
#include "target/core.h"
#include "target/target.h"

namespace tilewright::schedules {
namespace {

using ir::Extent2;
using ir::Key;
using ir::Op;
using ir::Operation;
using ir::ValueId;
using target::Core;
using target::CoreMove;

// A tile that is loaded, perhaps transposed.
struct Factor {
  const Operation* load = nullptr;
  bool transposed = false;
};

struct Plan {
  const Operation* loop = nullptr;
  const Operation* dot = nullptr;
  const Operation* store = nullptr;
  Factor a, b;
};

class Planner {
 public:
  explicit Planner(const ir::Kernel& tile) : tile_(tile), made_(tile.types.size(), nullptr) {
    ir::for_each(tile.body, [this](const Operation& o) {
      for (const ValueId result : o.results) made_[result] = &o;
    });
  }

  // Whether all of the kernel is what the plan says.
  bool run(Plan& plan) const {
    for (const Operation& o : tile_.body.body) {
      if (o.op == Op::for_loop && plan.loop == nullptr) {
        plan.loop = &o;
      } else if (o.op == Op::store && plan.store == nullptr) {
        plan.store = &o;
      } else if (!is_scalar(o) && o.op != Op::splat && o.op != Op::cast && o.op != Op::yield) {
        return false;
      }
    }
    return plan.loop != nullptr && plan.store != nullptr && is_product(plan) && is_stored(plan);
  }

 private:
  bool is_scalar(const Operation& o) const {
    return (ir::info(o.op).pure() || o.op == Op::load_index) && o.results.size() == 1 &&
           tile_.type(o.results[0]).is_scalar();
  }

  const Operation* made(ValueId value) const { return made_[value]; }

  bool is_zero(ValueId value) const {
    const Operation* splat = made(value);
    if (splat == nullptr || splat->op != Op::splat) return false;
    const Operation* number = made(splat->operands[0]);
    if (number == nullptr || number->op != Op::constant) return false;
    const auto* zero = std::get_if<double>(number->attributes.find(Key::value));
    return zero != nullptr && *zero == 0;
  }

  bool is_factor(ValueId value, Factor& factor) const {
    const Operation* o = made(value);
    while (o != nullptr && o->op == Op::transpose) {
      factor.transposed = !factor.transposed;
      o = made(o->operands[0]);
    }
    if (o == nullptr || o->op != Op::load) return false;
    factor.load = o;
    return tile_.type(o->results[0]).shape.size() == 2;
  }

  bool is_product(Plan& plan) const {
    const Operation& loop = *plan.loop;
    const ir::Block& body = loop.blocks[0];
    if (loop.results.size() != 1 || !is_zero(loop.operands[3])) return false;
    plan.dot = made(body.body.back().operands[0]);
    if (plan.dot == nullptr || plan.dot->op != Op::dot || plan.dot->operands.size() != 3 ||
        plan.dot->operands[2] != body.arguments[1]) {
      return false;
    }
    if (!is_factor(plan.dot->operands[0], plan.a) || !is_factor(plan.dot->operands[1], plan.b)) {
      return false;
    }
    return std::all_of(body.body.begin(), body.body.end(), [&](const Operation& o) {
      return is_scalar(o) || o.op == Op::load || o.op == Op::transpose || o.op == Op::yield ||
             &o == plan.dot;
    });
  }

  bool is_stored(const Plan& plan) const {
    const Operation* o = made(plan.store->operands[1]);
    if (o != nullptr && o->op == Op::cast) o = made(o->operands[0]);
    return o == plan.loop;
  }

  const ir::Kernel& tile_;
  std::vector<const Operation*> made_;
};

[[noreturn]] void refuse(const ir::Kernel& tile, const Operation& o, const std::string& problem) {
  Diagnostic(o.where, "schedule for " + tile.target + ": " + problem)
      .note(tile.where, "\"" + tile.name + "\" begins")
      .fix("write it at the explicit level (tilewright/incore.h)")
      .raise();
}

// The shortest, by its moves; empty where there is none.
std::vector<const CoreMove*> way(const Core& core, const std::string& from, const std::string& to) {
  std::map<std::string, std::vector<const CoreMove*>> known{{from, {}}};
  std::deque<std::string> next{from};
  while (!next.empty()) {
    const std::string at = next.front();
    next.pop_front();
    for (const CoreMove& move : core.moves) {
      if (move.from != at || known.count(move.to) != 0) continue;
      std::vector<const CoreMove*> longer = known[at];
      longer.push_back(&move);
      if (move.to == to) return longer;
      known[move.to] = std::move(longer);
      if (!move.to.empty()) next.push_back(move.to);
    }
  }
  return {};
}

// A memory on the way of an operand or of the result.
struct Stop {
  std::string space, name;
  DType dtype = DType::f32;
  Extent2 extent;
  bool turned = false;  // on the move into it
  SourceLocation where;
  std::unique_ptr<CoreMemory> memory;
};

class CoreRetracing final : public Retracer {
 public:
  CoreRetracing(const Plan& plan, Recording& values)
      : Retracer(values),
        plan_(plan),
        values_(values),
        core_(*target::target_of(tile_).core),
        product_(core_.products.front()) {
    extent_ = extent_of(plan.dot->results[0]);
    depth_ = extent_of(plan.dot->operands[0]).columns;
    a_ways_ = way(core_, "", product_.left);
    b_ways_ = way(core_, "", product_.right);
    back_ = way(core_, product_.result, "");
    check_ways();
    a_ = stops(plan.a, a_ways_, "a", plan.a.transposed != product_.left_transposed);
    b_ = stops(plan.b, b_ways_, "b", plan.b.transposed);
    plan_result();
    choose_stages();
  }

  ir::Kernel run() {
    values_.declare();
    declare();
    kernel_.ctas(min(multiprocessors(), blocks_of(tile_.grid)), 1, tile_.where);
    std::vector<RoleSpec> roles;
    for (const target::CoreSequencer& each : core_.sequencers) {
      if (used_.count(each.name) == 0) continue;
      roles.push_back(sequencer(
          each.name, [this, name = each.name] { retrace(name); }, tile_.where));
    }
    kernel_.roles(std::span<const RoleSpec>(roles), tile_.where);
    return kernel_.finish();
  }

  std::string stages_text() const {
    std::string text;
    for (const int count : load_stages_) text += (text.empty() ? "" : ", ") + std::to_string(count);
    for (const int count : result_stages_) text += ", " + std::to_string(count);
    return text;
  }

 private:
  void visit(const ir::Block&) override {}

  Extent2 extent_of(ValueId value) const {
    const std::vector<std::int64_t>& shape = tile_.type(value).shape;
    return {shape[0], shape[1]};
  }
  std::string owner(const std::string& unit) const { return core_.unit(unit)->sequencer; }

  void check_ways() {
    if (a_ways_.empty() || a_ways_.size() != b_ways_.size() || back_.empty()) {
      refuse(tile_, *plan_.dot, "no way leads to the operands of its products, and back");
    }
    std::vector<std::string> units;
    for (std::size_t i = 0; i < a_ways_.size(); ++i) {
      if (a_ways_[i]->unit != b_ways_[i]->unit) {
        refuse(tile_, *plan_.dot, "its products' operands are moved by different units");
      }
      units.push_back(a_ways_[i]->unit);
    }
    units.push_back(product_.unit);
    for (const CoreMove* move : back_) units.push_back(move->unit);
    for (const std::string& unit : units) {
      used_.insert(owner(unit));
      if (core_.sequencer(owner(unit))->count == 1) continue;
      refuse(tile_, *plan_.dot, "several sequencers would share " + unit + "'s work");
    }
  }

  // Those of an operand, which is turned on the last way that can do so.
  std::vector<Stop> stops(const Factor& factor, const std::vector<const CoreMove*>& ways,
                          const std::string& name, bool turns) const {
    std::size_t turn = ways.size();
    for (std::size_t i = 0; turns && i < ways.size(); ++i) {
      if (ways[i]->transposes) turn = i;
    }
    if (turns && turn == ways.size()) {
      refuse(tile_, *factor.load, "no way to " + ways.back()->to + " transposes");
    }
    std::vector<Stop> list;
    Extent2 extent = extent_of(factor.load->results[0]);
    for (std::size_t i = 0; i < ways.size(); ++i) {
      Stop stop;
      stop.space = ways[i]->to;
      stop.name = name + "_" + ways[i]->to;
      stop.dtype = tile_.type(factor.load->results[0]).dtype;
      stop.turned = i == turn;
      if (stop.turned) extent = ir::transposed(extent);
      stop.extent = extent;
      stop.where = factor.load->where;
      list.push_back(std::move(stop));
    }
    return list;
  }

  // Sums, and what is between them and global memory, in the tensor's dtype once a way converts.
  void plan_result() {
    const DType wanted = tile_.type(plan_.store->operands[1]).dtype;
    DType dtype = tile_.type(plan_.dot->results[0]).dtype;
    std::string space = product_.result;
    for (const CoreMove* move : back_) {
      Stop stop;
      stop.space = space;
      stop.name = "c_" + space;
      stop.dtype = dtype;
      stop.extent = extent_;
      stop.where = plan_.store->where;
      result_.push_back(std::move(stop));
      const auto& known = move->conversions;
      if (std::find(known.begin(), known.end(), std::pair{dtype, wanted}) != known.end()) {
        dtype = wanted;
      }
      space = move->to;
    }
    if (dtype != wanted) {
      refuse(tile_, *plan_.store, "no way back makes " + std::string(name_of(wanted)) + " of sums");
    }
  }

  // As many as there is room for, up to what is asked for: rings with the most give way first.
  void choose_stages() {
    const int most = tile_.schedule.stages.value_or(2);
    load_stages_.assign(a_.size(), most);
    result_stages_.assign(result_.size(), most);
    for (const target::CoreSpace& space : core_.spaces) {
      while (true) {
        std::int64_t bytes = 0;
        int* largest = nullptr;
        const auto add = [&](const Stop& stop, int& count) {
          if (stop.space != space.name) return;
          bytes += count *
                   target::matrix_bytes(space, {stop.extent.rows, stop.extent.columns, stop.dtype});
          if (count > 1 && (largest == nullptr || count > *largest)) largest = &count;
        };
        for (std::size_t i = 0; i < a_.size(); ++i) {
          add(a_[i], load_stages_[i]);
          add(b_[i], load_stages_[i]);
        }
        for (std::size_t i = 0; i < result_.size(); ++i) add(result_[i], result_stages_[i]);
        if (bytes <= space.bytes || largest == nullptr) break;
        --*largest;
      }
    }
  }

  void declare() {
    const auto make = [&](Stop& stop, int count) {
      stop.memory = std::make_unique<CoreMemory>(
          kernel_, stop.space, stop.name, stop.dtype, static_cast<int>(stop.extent.rows),
          static_cast<int>(stop.extent.columns), stages(count), stop.where);
    };
    for (std::size_t i = 0; i < a_.size(); ++i) {
      make(a_[i], load_stages_[i]);
      make(b_[i], load_stages_[i]);
      const std::string& next = i + 1 < a_.size() ? a_ways_[i + 1]->unit : product_.unit;
      loads_.push_back(std::make_unique<CoreRing>(kernel_, a_ways_[i]->unit, next,
                                                  stages(load_stages_[i]), plan_.dot->where));
    }
    for (std::size_t i = 0; i < result_.size(); ++i) {
      make(result_[i], result_stages_[i]);
      const std::string& before = i == 0 ? product_.unit : back_[i - 1]->unit;
      results_.push_back(std::make_unique<CoreRing>(kernel_, before, back_[i]->unit,
                                                    stages(result_stages_[i]), plan_.store->where));
    }
  }

  // What one sequencer issues.
  void retrace(const std::string& own) {
    const Tracer::At at(tracer_, tile_.where);
    const IndexOperand first(cta_index(), tile_.where);
    for (Index number : range(first, blocks_of(tile_.grid), cta_count())) {
      values_.begin_block(indices_of(tile_.grid, number));
      scalars(tile_.body);
      if (owner(product_.unit) == own) {
        results_[0]->produce([&](const Index& sum) { steps(own, &sum); }, plan_.dot->where);
      } else if (loads(own)) {
        steps(own, nullptr);
      }
      for (std::size_t i = 0; i < back_.size(); ++i) {
        if (owner(back_[i]->unit) == own) take_back(i);
      }
    }
  }

  bool loads(const std::string& own) const {
    return std::any_of(a_ways_.begin(), a_ways_.end(),
                       [&](const CoreMove* move) { return owner(move->unit) == own; });
  }

  void scalars(const ir::Block& block) {
    for (const Operation& o : block.body) {
      if (o.results.size() != 1 || !tile_.type(o.results[0]).is_scalar()) continue;
      const Tracer::At at(tracer_, o.where, true);
      repeat(o, o.attributes);
    }
  }

  // At least one: a sum of nothing is 0.
  void steps(const std::string& own, const Index* sum) {
    const Operation& loop = *plan_.loop;
    const Tracer::At at(tracer_, loop.where, true);
    const Index low = values_.index(loop.operands[0]), high = values_.index(loop.operands[1]);
    const ValueId end = values_.id(max(high, low + 1));
    const ValueId index =
        tracer_.open_loop(values_.id(low), end, values_[loop.operands[2]], loop.where);
    values_[loop.blocks[0].arguments[0]] = index;
    scalars(loop.blocks[0]);
    const Index rest = rest_of_depth();
    if (owner(a_ways_[0]->unit) == own) {
      loads_[0]->produce(
          [&](const Index& stage) {
            fetch(plan_.a, a_[0], stage, rest, plan_.a.transposed);
            fetch(plan_.b, b_[0], stage, rest, !plan_.b.transposed);
          },
          plan_.dot->where);
    }
    for (std::size_t i = 1; i < a_.size(); ++i) {
      if (owner(a_ways_[i]->unit) != own) continue;
      loads_[i - 1]->consume(
          [&](const Index& from) {
            loads_[i]->produce(
                [&](const Index& to) {
                  pass_on(a_[i - 1], from, a_[i], to);
                  pass_on(b_[i - 1], from, b_[i], to);
                },
                plan_.dot->where);
          },
          plan_.dot->where);
    }
    if (sum != nullptr) {
      loads_.back()->consume(
          [&](const Index& from) {
            const Tracer::At line(tracer_, plan_.dot->where, true);
            const CoreWindow left = (*a_.back().memory)[from];
            matmul((*result_[0].memory)[*sum], product_.left_transposed ? left.T() : left,
                   (*b_.back().memory)[from], Index(tracer_.handle(index)) > low, rest,
                   plan_.dot->where);
          },
          plan_.dot->where);
    }
    tracer_.close_loop();
  }

  // Of the sum's elements of this step those that exist.
  Index rest_of_depth() {
    const Operation& load = *plan_.a.load;
    const std::vector<std::int64_t>& sizes = load.attributes.integers(Key::sizes);
    std::vector<std::size_t> axes;
    for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
      if (sizes[axis] != 0) axes.push_back(axis);
    }
    const std::size_t axis = axes[plan_.a.transposed ? 0 : 1];
    const Index start = values_.number(load, 1 + axis);
    const Index limit = min(values_.number(load, 1 + sizes.size() + axis),
                            Index(tile_.parameter_of(load.operands[0])->shape[axis], load.where));
    return max(min(limit - start, static_cast<int>(depth_)), 0);
  }

  // What a unit sums beyond the end has to be zero, where the load itself leaves it as it was.
  void fetch(const Factor& factor, Stop& stop, const Index& stage, const Index& rest,
             bool depth_is_rows) {
    const Tracer::At at(tracer_, factor.load->where, true);
    const CoreWindow window = (*stop.memory)[stage];
    const CoreMove& move = *(&stop == &a_[0] ? a_ways_ : b_ways_)[0];
    if (product_.sums_pad && (depth_is_rows || move.pad_bytes < product_.piece_k_bytes)) {
      when(
          rest < static_cast<int>(depth_),
          [&] {
            fill(window, 0, factor.load->where);
            unit_barrier(move.unit, factor.load->where);
          },
          {}, factor.load->where);
    }
    tilewright::move(stop.turned ? window.T() : window, values_.view(*factor.load, 1),
                     factor.load->where);
  }

  void pass_on(const Stop& before, const Index& from, const Stop& next, const Index& to) {
    const Tracer::At at(tracer_, next.where, true);
    const CoreWindow window = (*before.memory)[from];
    tilewright::move((*next.memory)[to], next.turned ? window.T() : window, next.where);
  }

  void take_back(std::size_t i) {
    const Tracer::At at(tracer_, plan_.store->where, true);
    results_[i]->consume(
        [&](const Index& from) {
          const CoreWindow window = (*result_[i].memory)[from];
          if (i + 1 == result_.size()) {
            return tilewright::move(values_.view(*plan_.store, 2), window, plan_.store->where);
          }
          results_[i + 1]->produce(
              [&](const Index& to) {
                tilewright::move((*result_[i + 1].memory)[to], window, plan_.store->where);
              },
              plan_.store->where);
        },
        plan_.store->where);
  }

  const Plan& plan_;
  Recording& values_;
  const Core& core_;
  const target::CoreProduct& product_;
  Extent2 extent_;          // of a block of sums
  std::int64_t depth_ = 0;  // of a step
  std::vector<const CoreMove*> a_ways_, b_ways_, back_;
  std::vector<Stop> a_, b_, result_;
  std::vector<int> load_stages_, result_stages_;
  std::vector<std::unique_ptr<CoreRing>> loads_, results_;
  std::set<std::string> used_;  // sequencers
};

}  // namespace

bool is_core_product(const ir::Kernel& tile) {
  Plan plan;
  return Planner(tile).run(plan);
}

Scheduled schedule_core_product(const ir::Kernel& tile) {
  check_core_fields(tile);
  Plan plan;
  Planner(tile).run(plan);
  Recording values(tile);
  CoreRetracing retracing(plan, values);
  Scheduled made{retracing.run(), {}};
  made.fields = {chosen("stages", tile.schedule.stages, retracing.stages_text())};
  return made;
}

}  // namespace tilewright::schedules
