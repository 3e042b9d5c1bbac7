#include "simulator/faults/sites.h"

#include <utility>

namespace tilewright::simulator {

using ir::Key;
using ir::Op;
using ir::ValueId;

namespace {

struct Position {
  ir::Block* block = nullptr;
  std::size_t index = 0;
};

std::size_t size_of_tree(const ir::Operation& operation) {
  std::size_t size = 1;
  for (const ir::Block& block : operation.blocks) {
    for (const ir::Operation& inner : block.body) size += size_of_tree(inner);
  }
  return size;
}

Position find(ir::Block& block, std::size_t number) {
  for (std::size_t i = 0; i < block.body.size(); ++i) {
    if (number == 0) return {&block, i};
    const std::size_t size = size_of_tree(block.body[i]);
    if (number >= size) {
      number -= size;
      continue;
    }
    --number;
    for (ir::Block& inner : block.body[i].blocks) {
      std::size_t inside = 0;
      for (const ir::Operation& operation : inner.body) inside += size_of_tree(operation);
      if (number < inside) return find(inner, number);
      number -= inside;
    }
  }
  return {};
}

bool is_place(const ir::Type& type) {
  using Kind = ir::Type::Kind;
  return type.is(Kind::mbarriers) || type.is(Kind::shared) || type.is(Kind::tensor_map) ||
         type.is(Kind::registers) || type.is(Kind::tensor) || type.is(Kind::tensor_memory);
}

}  // namespace

// What decides whether a fault matters may take longer than what a compilation asks.
Sites::Sites(const ir::Kernel& kernel)
    : kernel_(kernel), not_less_(kernel, 10 * analysis::NotLess::kUsualSteps) {
  definitions_.assign(kernel.types.size(), kNoSite);
  uses_.resize(kernel.types.size());
  arguments_.resize(kernel.types.size());
  index(kernel.body, kNoSite, 0, kNoSite);
}

void Sites::index(const ir::Block& block, std::size_t parent, std::size_t number,
                  std::size_t role) {
  for (std::size_t i = 0; i < block.arguments.size(); ++i) {
    arguments_[block.arguments[i]] = {parent, i};
  }
  for (const ir::Operation& operation : block.body) {
    const std::size_t site = sites_.size();
    sites_.push_back({site, &operation, parent, number, 0, role, {}});
    for (const ValueId value : operation.results) definitions_[value] = site;
    for (std::size_t i = 0; i < operation.operands.size(); ++i) {
      uses_[operation.operands[i]].push_back({site, i});
    }
    for (std::size_t i = 0; i < operation.blocks.size(); ++i) {
      const ir::Block& inner = operation.blocks[i];
      index(inner, site, i, operation.op == Op::role ? site : role);
      const bool yields = !inner.body.empty() && inner.body.back().op == Op::yield;
      sites_[site].yields.push_back(yields ? sites_.size() - 1 : kNoSite);
    }
    sites_[site].end = sites_.size();
  }
}

std::vector<const Site*> Sites::of(Op op) const {
  std::vector<const Site*> result;
  for (const Site& site : sites_) {
    if (site.op() == op) result.push_back(&site);
  }
  return result;
}

const Site* Sites::definition(ValueId value) const {
  return definitions_[value] == kNoSite ? nullptr : &sites_[definitions_[value]];
}

std::optional<std::int64_t> Sites::constant(ValueId value) const {
  const Site* site = definition(value);
  if (!site || site->op() != Op::constant) return std::nullopt;
  const ir::Attribute* number = site->operation->attributes.find(Key::value);
  if (!number || !std::holds_alternative<std::int64_t>(*number)) return std::nullopt;
  return std::get<std::int64_t>(*number);
}

std::string Sites::name(ValueId place) const {
  const Site* site = definition(place);
  if (site && site->operation->attributes.has(Key::name)) {
    return site->operation->attributes.text(Key::name);
  }
  const ir::Parameter* parameter = kernel_.parameter_of(place);
  return parameter ? parameter->name : std::string();
}

const Site* Sites::next(const Site& site) const {
  if (site.end >= sites_.size()) return nullptr;
  const Site& other = sites_[site.end];
  return other.parent == site.parent && other.block == site.block ? &other : nullptr;
}

const Site* Sites::previous(const Site& site) const {
  const Site* found = nullptr;
  for (std::size_t i = site.number; i-- > 0;) {
    if (sites_[i].parent != site.parent || sites_[i].block != site.block) continue;
    found = &sites_[i];
    break;
  }
  return found;
}

const Site* Sites::parent(const Site& site) const {
  return site.parent == kNoSite ? nullptr : &sites_[site.parent];
}

const Site* Sites::beside(const Site& outer, const Site& inner) const {
  const Site* site = &inner;
  while (site && (site->parent != outer.parent || site->block != outer.block)) site = parent(*site);
  return site;
}

Use Sites::start_of(ValueId argument) const {
  const auto& [site, number] = arguments_[argument];
  if (site == kNoSite) return {};
  // for_loop: low, high, step, carried... and index, carried...; while_loop: condition, carried...
  if (sites_[site].op() == Op::for_loop) return {site, number == 0 ? 0 : number + 2};
  if (sites_[site].op() == Op::while_loop) return {site, number + 1};
  return {};
}

std::vector<Use> Sites::sources(ValueId value) const {
  std::vector<Use> result;
  const auto add_yield = [&](const Site& of, std::size_t block, std::size_t operand) {
    if (of.yields[block] != kNoSite) result.push_back({of.yields[block], operand});
  };
  const Argument& argument = arguments_[value];
  if (argument.site != kNoSite) {
    const Use start = start_of(value);
    if (start.site == kNoSite) return {};
    result.push_back(start);
    const Site& loop = sites_[argument.site];
    if (loop.op() == Op::while_loop) add_yield(loop, 0, argument.number + 1);
    if (loop.op() == Op::for_loop && argument.number > 0) add_yield(loop, 0, argument.number - 1);
    return result;
  }
  const Site* made = definition(value);
  if (!made) return {};
  const ir::Operation& operation = *made->operation;
  std::size_t position = 0;
  while (operation.results[position] != value) ++position;
  if (operation.op == Op::for_loop) {
    result.push_back({made->number, position + 3});
    add_yield(*made, 0, position);
  } else if (operation.op == Op::while_loop) {
    result.push_back({made->number, position + 1});
    add_yield(*made, 0, position + 1);
  } else if (operation.op == Op::if_then) {
    for (std::size_t i = 0; i < operation.blocks.size(); ++i) add_yield(*made, i, position);
  }
  return result;
}

ir::Operation& operation_at(ir::Kernel& kernel, std::size_t number) {
  const Position at = find(kernel.body, number);
  return at.block->body[at.index];
}

void remove(ir::Kernel& kernel, std::size_t number) {
  const Position at = find(kernel.body, number);
  at.block->body.erase(at.block->body.begin() + static_cast<std::ptrdiff_t>(at.index));
}

void insert(ir::Kernel& kernel, std::size_t number, Side side, ir::Operation operation) {
  const Position at = find(kernel.body, number);
  const std::size_t index = at.index + (side == Side::after ? 1 : 0);
  at.block->body.insert(at.block->body.begin() + static_cast<std::ptrdiff_t>(index),
                        std::move(operation));
}

void move(ir::Kernel& kernel, std::size_t number, std::size_t target, Side side) {
  ir::Operation operation = operation_at(kernel, number);
  const std::size_t size = size_of_tree(operation);
  insert(kernel, target, side, std::move(operation));
  remove(kernel, target < number ? number + size : number);
}

ValueId insert_scalar(ir::Kernel& kernel, std::size_t before, Op op, std::vector<ValueId> operands,
                      DType dtype, ir::Attributes attributes) {
  const ValueId result = kernel.add_value(ir::Type::scalar(dtype));
  ir::Operation made{op,       std::move(operands),
                     {result}, std::move(attributes),
                     {},       operation_at(kernel, before).where};
  insert(kernel, before, Side::before, std::move(made));
  return result;
}

ValueId insert_constant(ir::Kernel& kernel, std::size_t before, std::int64_t value) {
  return insert_scalar(kernel, before, Op::constant, {}, DType::i32, {{Key::value, value}});
}

Mutant mutant_at(const Sites& sites, const Site& site, std::string change) {
  Mutant mutant;
  mutant.where = site.operation->where;
  mutant.site = site.number;
  mutant.operation = std::string(ir::info(site.op()).name);
  for (const auto* values : {&site.operation->operands, &site.operation->results}) {
    for (const ValueId value : *values) {
      if (is_place(sites.kernel().type(value))) mutant.operation += " " + sites.name(value);
    }
  }
  mutant.change = std::move(change);
  return mutant;
}

Mutant left_out(const Sites& sites, const Site& site) {
  Mutant mutant = mutant_at(sites, site, "left out");
  mutant.edit = [number = site.number](ir::Kernel& kernel) { remove(kernel, number); };
  return mutant;
}

}  // namespace tilewright::simulator
