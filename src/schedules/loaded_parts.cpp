#include "schedules/loaded_parts.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "analysis/access_bounds.h"
#include "analysis/definitions.h"
#include "ir/builder.h"

namespace tilewright::schedules {
namespace {

using ir::Key;
using ir::Op;
using ir::Operation;
using ir::ValueId;

class LoadingParts {
 public:
  explicit LoadingParts(ir::Kernel& kernel) : kernel_(kernel) {
    const std::vector<const Operation*> definitions = analysis::definitions(kernel);
    const analysis::LoadedIntegers integers(kernel);
    ir::for_each(kernel.body, [&](const Operation& o) {
      if (o.op != Op::slice) return;
      const Operation* load = definitions[o.operands[0]];
      if (load == nullptr || load->op != Op::load || !is_own(*load, o, integers)) return;
      parts_[o.operands[0]].push_back(o);
      moved_.insert(o.results[0]);
    });
  }

  bool any() const { return !parts_.empty(); }

  void visit(ir::Block& block) {
    std::vector<Operation> old = std::move(block.body);
    block.body.clear();
    for (Operation& o : old) {
      for (ir::Block& inner : o.blocks) visit(inner);
      if (o.op == Op::slice && moved_.count(o.results[0]) != 0) continue;
      const auto found = o.op == Op::load ? parts_.find(o.results[0]) : parts_.end();
      block.body.push_back(std::move(o));
      if (found == parts_.end()) continue;
      const Operation load = block.body.back();
      for (const Operation& part : found->second) add(block, load, part);
    }
  }

 private:
  // Those of the tensor that are axes of the tile.
  static std::vector<std::size_t> axes_of(const Operation& load) {
    const std::vector<std::int64_t>& sizes = load.attributes.integers(Key::sizes);
    std::vector<std::size_t> axes;
    for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
      if (sizes[axis] != 0) axes.push_back(axis);
    }
    return axes;
  }
  bool is_own(const Operation& load, const Operation& part,
              const analysis::LoadedIntegers& integers) const {
    const std::vector<std::size_t> axes = axes_of(load);
    const std::vector<std::int64_t>& shape = kernel_.type(part.results[0]).shape;
    const std::vector<analysis::AxisCheck> checks = analysis::axis_checks(load, 1, integers);
    return std::none_of(checks.begin(), checks.end(), [&](const analysis::AxisCheck& check) {
      const auto axis = std::find(axes.begin(), axes.end(), check.axis);
      return axis != axes.end() && shape[axis - axes.begin()] != check.size;
    });
  }
  void add(ir::Block& block, const Operation& load, const Operation& part) {
    const std::vector<std::int64_t>& offsets = part.attributes.integers(Key::offsets);
    const std::vector<std::int64_t> shape = kernel_.type(part.results[0]).shape;
    const std::vector<std::size_t> axes = axes_of(load);
    std::vector<std::int64_t> sizes = load.attributes.integers(Key::sizes);
    Operation own = load;
    own.results = part.results;
    own.where = part.where;
    ir::Builder at(kernel_, block, part.where);
    for (std::size_t i = 0; i < axes.size(); ++i) {
      sizes[axes[i]] = shape[i];
      if (offsets[i] == 0) continue;
      ValueId& start = own.operands[1 + axes[i]];
      start = at.binary(Op::add, start, at.constant(offsets[i]));
    }
    own.attributes.set(Key::sizes, std::move(sizes));
    block.body.push_back(std::move(own));
  }

  ir::Kernel& kernel_;
  std::map<ValueId, std::vector<Operation>> parts_;  // of each load
  std::set<ValueId> moved_;
};

}  // namespace

void load_parts(ir::Kernel& kernel) {
  LoadingParts parts(kernel);
  if (!parts.any()) return;
  parts.visit(kernel.body);
  load_parts(kernel);  // a part of a part is one of a load now
}

}  // namespace tilewright::schedules
