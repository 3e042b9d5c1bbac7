#include "passes/join_copies.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "analysis/definitions.h"
#include "ir/builder.h"
#include "target/target.h"

namespace tilewright::passes {
namespace {

using ir::Builder;
using ir::Key;
using ir::Op;
using ir::Operation;
using ir::ValueId;

constexpr std::size_t kFirstStart = 4;  // behind the map, the view, the barriers and the index
constexpr std::size_t kRow = 2;         // of a view

// Of one block.
struct Copy {
  const Operation* operation = nullptr;
  const Operation* view = nullptr;
  std::int64_t row = 0;  // of the stage, with which it begins
};

// Copies that differ in their block and in their rows alone, in the order of these.
using Series = std::vector<Copy>;

// All copies of a stage: series of as many, with the same numbers of blocks on the axis.
struct Stage {
  std::vector<Series> series;
  std::size_t axis = 0;
};

class JoiningCopies {
 public:
  explicit JoiningCopies(ir::Kernel& kernel)
      : kernel_(kernel), before_(kernel), definitions_(analysis::definitions(before_)) {}

  int run() {
    visit(before_.body, kernel_.body);
    place_maps();
    return count_;
  }

 private:
  // `from` is the block as it was, of which `to` is the copy that changes.
  void visit(const ir::Block& from, ir::Block& to) {
    for (std::size_t i = 0; i < from.body.size(); ++i) {
      for (std::size_t b = 0; b < from.body[i].blocks.size(); ++b) {
        visit(from.body[i].blocks[b], to.body[i].blocks[b]);
      }
    }
    std::vector<Operation> old = std::move(to.body);
    to.body.clear();
    for (std::size_t i = 0; i < old.size();) {
      const std::size_t end = end_of_copies(from, i);
      const std::optional<Stage> stage = stage_of(from, i, end);
      if (!stage) {
        to.body.push_back(std::move(old[i++]));
        continue;
      }
      // What the copies read comes first.
      for (std::size_t j = i; j < end; ++j) {
        if (old[j].op != Op::tma_load_tile) to.body.push_back(std::move(old[j]));
      }
      Builder builder(kernel_, to, from.body[i].where);
      const auto all = static_cast<std::int64_t>(stage->series[0].size());
      const std::int64_t most =
          target::target_of(kernel_).limits.copy_extent / rows_of(stage->series[0][0]);
      fill(builder, *stage, part_of(all, std::min(all, most)));
      ++count_;
      i = end;
    }
  }

  // Of copies, and what of addresses stands between them, that begin at the operation.
  static std::size_t end_of_copies(const ir::Block& block, std::size_t first) {
    if (block.body[first].op != Op::tma_load_tile) return first;
    std::size_t end = first;
    for (std::size_t i = first; i < block.body.size(); ++i) {
      const Operation& o = block.body[i];
      if (o.op == Op::tma_load_tile) {
        end = i + 1;
      } else if (!ir::info(o.op).pure() || !o.blocks.empty()) {
        break;
      }
    }
    return end;
  }

  // The axes of which a copy takes one element, as it does of all in front of them; none of maps
  // whose copies may end early.
  std::vector<std::size_t> single_axes(const Operation& copy) const {
    const Operation* const map = definitions_[copy.operands[0]];
    if (!map || map->op != Op::tensor_map || map->attributes.has(Key::ragged) ||
        map->attributes.has(Key::peers)) {
      return {};
    }
    std::vector<std::size_t> axes;
    for (const std::int64_t size : map->attributes.integers(Key::box)) {
      if (size != 1) break;
      axes.push_back(axes.size());
    }
    return axes;
  }

  // All copies of the range, where they are a stage of several blocks.
  std::optional<Stage> stage_of(const ir::Block& block, std::size_t first, std::size_t end) const {
    std::vector<Series> all;
    std::optional<std::size_t> axis;
    for (std::size_t i = first; i < end; ++i) {
      const Operation& o = block.body[i];
      if (o.op != Op::tma_load_tile) continue;
      const Operation* const view = definitions_[o.operands[1]];
      if (!view || view->op != Op::view || single_axes(o).empty()) return {};
      const auto row = analysis::integer_constant(definitions_[view->operands[kRow]]);
      if (!row) return {};
      const Copy copy{&o, view, *row};
      const auto own = std::find_if(all.begin(), all.end(), [&](const Series& series) {
        const auto differs = differing_axis(series.back(), copy);
        return differs && (!axis || axis == differs);
      });
      if (own == all.end()) {
        all.push_back({copy});
      } else {
        axis = differing_axis(own->back(), copy);
        own->push_back(copy);
      }
    }
    if (!axis) return {};
    for (const Series& series : all) {
      if (series.size() != all[0].size()) return {};
      for (std::size_t i = 0; i < series.size(); ++i) {
        const ValueId number = number_of(series[i], *axis);
        if (number != number_of(all[0][i], *axis) || is_loaded(number)) return {};
      }
    }
    return Stage{std::move(all), *axis};
  }

  static ValueId number_of(const Copy& copy, std::size_t axis) {
    return copy.operation->operands[kFirstStart + axis];
  }

  // Where they are alike but for one block and the rows behind each other.
  std::optional<std::size_t> differing_axis(const Copy& a, const Copy& b) const {
    const Operation &x = *a.operation, &y = *b.operation;
    if (x.operands[0] != y.operands[0] || x.operands[2] != y.operands[2] ||
        x.operands[3] != y.operands[3] || !(x.attributes == y.attributes)) {
      return {};
    }
    if (b.row != a.row + rows_of(a) || !in_same_columns(*a.view, *b.view)) return {};
    std::optional<std::size_t> axis;
    for (std::size_t i = kFirstStart; i < x.operands.size(); ++i) {
      if (x.operands[i] == y.operands[i]) continue;
      if (axis) return {};
      axis = i - kFirstStart;
    }
    const std::vector<std::size_t> single = single_axes(x);
    const bool is_single = axis && std::find(single.begin(), single.end(), *axis) != single.end();
    return is_single ? axis : std::nullopt;
  }

  static bool in_same_columns(const Operation& a, const Operation& b) {
    if (!(a.attributes == b.attributes) || a.operands.size() != b.operands.size()) return false;
    for (std::size_t i = 0; i < a.operands.size(); ++i) {
      if (i != kRow && a.operands[i] != b.operands[i]) return false;
    }
    return true;
  }

  std::int64_t rows_of(const Copy& copy) const {
    return kernel_.type(copy.operation->operands[1]).shape[0];
  }

  // Whether it is computed from a number that is loaded, and not handed on by a loop.
  bool is_loaded(ValueId value) const {
    const Operation* const made = definitions_[value];
    if (!made || !made->blocks.empty()) return false;
    return made->op == Op::load_index ||
           std::any_of(made->operands.begin(), made->operands.end(),
                       [this](ValueId operand) { return is_loaded(operand); });
  }

  // The largest part of the copies that is no more than the most.
  static std::int64_t part_of(std::int64_t copies, std::int64_t most) {
    while (copies % most != 0) --most;
    return most;
  }

  // Fills the stage by so many copies together where their blocks follow each other, or by fewer.
  void fill(Builder& at, const Stage& stage, std::int64_t together) {
    const auto all = static_cast<std::int64_t>(stage.series[0].size());
    if (together == 1) return copy(at, stage, together);
    at.if_then(
        follow(at, stage, together),
        [&](Builder& then) {
          copy(then, stage, together);
          return std::vector<ValueId>{};
        },
        [&](Builder& otherwise) {
          fill(otherwise, stage, part_of(all, together / 2));
          return std::vector<ValueId>{};
        });
  }

  // None is outside of the tensor: such a one is found where it is copied alone.
  ValueId follow(Builder& at, const Stage& stage, std::int64_t together) {
    const Series& series = stage.series[0];
    const Operation& map = *definitions_[series[0].operation->operands[0]];
    const ValueId extent = at.dim(kernel_.parameter_of(map.operands[0])->shape[stage.axis]);
    std::optional<ValueId> all;
    const auto also = [&](ValueId holds) {
      all = all ? at.binary(Op::logical_and, *all, holds) : holds;
    };
    for (std::size_t i = 0; i < series.size(); i += static_cast<std::size_t>(together)) {
      const ValueId first = number_of(series[i], stage.axis);
      const auto further = [&](std::int64_t k) {
        return at.binary(Op::add, first, at.constant(k));
      };
      also(at.binary(Op::le, further(together), extent));
      for (std::int64_t k = 1; k < together; ++k) {
        also(at.binary(Op::eq, number_of(series[i + static_cast<std::size_t>(k)], stage.axis),
                       further(k)));
      }
    }
    return *all;
  }

  void copy(Builder& at, const Stage& stage, std::int64_t together) {
    for (std::size_t i = 0; i < stage.series[0].size(); i += static_cast<std::size_t>(together)) {
      for (const Series& series : stage.series) {
        const Operation& first = *series[i].operation;
        std::vector<ValueId> operands = first.operands;
        at.at(first.where);
        if (together > 1) {
          operands[0] = wider(operands[0], stage.axis, together);
          ir::Type view = kernel_.type(operands[1]);
          view.shape[0] *= together;
          operands[1] =
              at.value(Op::view, series[i].view->operands, view, series[i].view->attributes);
        }
        at.append(first.op, std::move(operands), {}, first.attributes);
      }
    }
  }

  // The map whose box has so many blocks of the axis.
  ValueId wider(ValueId map, std::size_t axis, std::int64_t blocks) {
    const auto [made, is_new] = wider_.try_emplace({map, blocks}, ir::kNoValue);
    if (!is_new) return made->second;
    Operation wide = *definitions_[map];
    std::vector<std::int64_t> box = wide.attributes.integers(Key::box);
    box[axis] = blocks;
    const std::string tensor = kernel_.parameter_of(wide.operands[0])->name + "_";
    std::string rest = wide.attributes.text(Key::name).substr(tensor.size());
    if (wide.attributes.has(Key::single)) {
      std::vector<std::int64_t> single = wide.attributes.integers(Key::single);
      if (std::erase(single, static_cast<std::int64_t>(axis)) > 0) rest.erase(0, 2);  // "1x"
      wide.attributes.set(Key::single, std::move(single));
    }
    wide.attributes.set(Key::name, tensor + std::to_string(blocks) + "x" + rest);
    wide.attributes.set(Key::box, std::move(box));
    wide.results = {kernel_.add_value(kernel_.type(map))};
    made->second = wide.results[0];
    maps_[map].push_back(std::move(wide));
    return made->second;
  }

  // Behind those that they are wider than.
  void place_maps() {
    std::vector<Operation> placed;
    for (Operation& o : kernel_.body.body) {
      const auto own = o.op == Op::tensor_map ? maps_.find(o.results[0]) : maps_.end();
      placed.push_back(std::move(o));
      if (own == maps_.end()) continue;
      for (Operation& wide : own->second) placed.push_back(std::move(wide));
    }
    kernel_.body.body = std::move(placed);
  }

  ir::Kernel& kernel_;
  const ir::Kernel before_;
  const std::vector<const Operation*> definitions_;
  std::map<std::pair<ValueId, std::int64_t>, ValueId> wider_;
  std::map<ValueId, std::vector<Operation>> maps_;  // by those that they are wider than
  int count_ = 0;
};

}  // namespace

int join_copies(ir::Kernel& kernel) { return JoiningCopies(kernel).run(); }

}  // namespace tilewright::passes
