#include "schedules/retracing.h"

#include <algorithm>
#include <set>
#include <utility>

#include "schedules/placement.h"

namespace tilewright::schedules {

using ir::Key;
using ir::Op;
using ir::Operation;
using ir::Type;
using ir::ValueId;

namespace {

Tensor declared(const ir::Parameter& p, Kernel& kernel) {
  switch (p.kind) {
    case ir::Parameter::Kind::in:
      return kernel.in(p.name, p.dtype, p.shape, p.where);
    case ir::Parameter::Kind::out:
      return kernel.out(p.name, p.dtype, p.shape, p.where);
    case ir::Parameter::Kind::symmetric:
      return kernel.symmetric(p.name, p.dtype, p.shape, p.where);
    case ir::Parameter::Kind::inout:
    case ir::Parameter::Kind::scalar:
    case ir::Parameter::Kind::workspace:
    case ir::Parameter::Kind::scratch:
    case ir::Parameter::Kind::signals:
      break;
  }
  return kernel.inout(p.name, p.dtype, p.shape, p.where);
}

}  // namespace

Recording::Recording(const ir::Kernel& tile)
    : tile_(tile),
      kernel_(tile.name, tile.where),
      tracer_(Tracer::get("schedule", tile.where)),
      values_(tile.types.size(), ir::kNoValue) {
  kernel_.target(tile.target, tile.where);
}

void Recording::declare() {
  for (const Dim& dim : tile_.dims) {
    if (dim.name() == ir::kRanks) {
      kernel_.ranks(tile_.where);
    } else {
      kernel_.dim(dim.name(), dim.facts(), tile_.where);
    }
  }
  for (const ir::Parameter& p : tile_.parameters) {
    if (p.is_tensor()) {
      tensors_.emplace(p.value, declared(p, kernel_));
    } else {
      scalars_.emplace(p.value, kernel_.scalar(p.name, p.dtype, p.where));
    }
  }
}

void Recording::begin_block(const std::vector<Index>& indices) {
  values_.assign(tile_.types.size(), ir::kNoValue);
  for (const auto& [value, scalar] : scalars_) values_[value] = id(scalar);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    values_[tile_.body.arguments[i]] = id(indices[i]);
  }
}

Index Recording::number(const Operation& o, std::size_t operand) {
  if (!known(o.operands[operand])) {
    unfit(o, "where it reads depends on what was computed", "compute addresses from indices");
  }
  return index(o.operands[operand]);
}

std::vector<ValueId> Recording::operands(const Operation& o) {
  std::vector<ValueId> result;
  for (const ValueId operand : o.operands) {
    const auto tensor = tensors_.find(operand);
    result.push_back(tensor == tensors_.end() ? values_[operand] : id(tensor->second));
  }
  return result;
}

void Recording::peer(const Operation& o) {
  tensors_.insert_or_assign(o.results[0], tensor(o.operands[0]).at({number(o, 1), o.where}));
}

TensorView Recording::view(const Operation& o, std::size_t first, const Cut& cut) {
  const std::vector<std::int64_t>& sizes = o.attributes.integers(Key::sizes);
  std::vector<Selector> selectors;
  int seen = 0;
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    const Index start = number(o, first + axis);
    if (sizes[axis] == 0) {
      selectors.push_back(Selector(start));
      continue;
    }
    const Block block(start, static_cast<int>(sizes[axis]), number(o, first + sizes.size() + axis));
    selectors.push_back(Selector(cut ? cut(block, seen) : block));
    ++seen;
  }
  return TensorView(tensor(o.operands[0]).handle(), std::move(selectors), o.where);
}

std::vector<bool> Retracer::early(const ir::Block& block,
                                  const std::function<bool(const Operation&)>& fits) {
  std::vector<bool> result;
  std::set<ValueId> later;  // what is made here, but not at once
  for (const Operation& o : block.body) {
    result.push_back(fits(o) && std::none_of(o.operands.begin(), o.operands.end(),
                                             [&](ValueId v) { return later.count(v) != 0; }));
    if (!result.back()) later.insert(o.results.begin(), o.results.end());
  }
  return result;
}

void Retracer::repeat(const Operation& o, const ir::Attributes& attributes) {
  const ValueId result = o.results[0];
  recording_[result] =
      tracer_.emit(o.op, recording_.operands(o), recording_.local(result), attributes, o.where);
}

void Retracer::any(const Operation& o, const Index& group, int warps) {
  const Condition own(tracer_.handle(
      tracer_.emit(Op::any, recording_.operands(o), tile_.type(o.results[0]), {}, o.where)));
  answers_->store(group * target::kGroupWarps + warp_index(), select(own, 1, 0), o.where);
  all_warps_->sync();
  Index found = 0;
  for (int warp = 0; warp < warps; ++warp) found = max(found, answers_->load(warp, o.where));
  recording_[o.results[0]] = recording_.id(found > 0);
  // Before the next answer takes the place of this one.
  all_warps_->sync();
}

void Retracer::for_loop(const Operation& o) {
  const ir::Block& body = o.blocks[0];
  const std::vector<Carried> cells = open_cells(o, 3);
  recording_[body.arguments[0]] = tracer_.open_loop(
      recording_[o.operands[0]], recording_[o.operands[1]], recording_[o.operands[2]], o.where);
  read_cells(cells, body, 1, o);
  enter(o);
  visit(body);
  assign_cells(cells, body, 0, o);
  tracer_.close_loop();
  close_cells(cells, o);
}

void Retracer::while_loop(const Operation& o) {
  const ir::Block& body = o.blocks[0];
  const int condition = tracer_.open_cell(recording_[o.operands[0]], o.where);
  const std::vector<Carried> cells = open_cells(o, 1);
  tracer_.trace_while(
      condition,
      [&] {
        read_cells(cells, body, 0, o);
        visit(body);
        tracer_.assign(condition, recording_[body.body.back().operands[0]], o.where);
        assign_cells(cells, body, 1, o);
      },
      o.where);
  tracer_.close_cell(condition);
  close_cells(cells, o);
}

void Retracer::if_then(const Operation& o) {
  std::vector<Carried> cells;
  // A cell needs a value before the branches give it theirs.
  for (std::size_t i = 0; i < o.results.size(); ++i) {
    if (!carries(o.results[i])) continue;
    const Type type = recording_.local(o.results[i]);
    ValueId value = tracer_.number(0, type.dtype, "if", o.where);
    if (!type.is_scalar()) value = tracer_.emit(Op::splat, {value}, type, {}, o.where);
    cells.push_back({i, tracer_.open_cell(value, o.where)});
  }
  const auto run = [&](const ir::Block& block) {
    return [this, &block, &cells, &o] {
      visit(block);
      assign_cells(cells, block, 0, o);
    };
  };
  tracer_.trace_if(recording_[o.operands[0]], run(o.blocks[0]), run(o.blocks[1]), o.where);
  close_cells(cells, o);
}

std::vector<Retracer::Carried> Retracer::open_cells(const Operation& o, std::size_t first) {
  std::vector<Carried> cells;
  for (std::size_t i = 0; i < o.results.size(); ++i) {
    if (!carries(o.results[i])) continue;
    cells.push_back({i, tracer_.open_cell(recording_[o.operands[first + i]], o.where)});
  }
  return cells;
}

void Retracer::read_cells(const std::vector<Carried>& cells, const ir::Block& body,
                          std::size_t first, const Operation& o) {
  for (const Carried& c : cells) {
    recording_[body.arguments[first + c.position]] = tracer_.read(c.slot, o.where);
  }
}

void Retracer::assign_cells(const std::vector<Carried>& cells, const ir::Block& block,
                            std::size_t first, const Operation& o) {
  const std::vector<ValueId>& yielded = block.body.back().operands;
  for (const Carried& c : cells) {
    tracer_.assign(c.slot, recording_[yielded[first + c.position]], o.where);
  }
}

void Retracer::close_cells(const std::vector<Carried>& cells, const Operation& o) {
  for (const Carried& c : cells) {
    recording_[o.results[c.position]] = tracer_.read(c.slot, o.where);
    tracer_.close_cell(c.slot);
  }
}

}  // namespace tilewright::schedules
