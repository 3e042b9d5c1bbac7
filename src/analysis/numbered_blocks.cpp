#include "analysis/numbered_blocks.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/definitions.h"
#include "target/target.h"
#include "target/warpgroups.h"

namespace tilewright::analysis {
namespace {

using ir::Key;
using ir::Op;
using ir::Operation;
using ir::ValueId;

constexpr std::int64_t kUnit = 8;  // rows of shared memory, that a block begins at a multiple of
constexpr std::int64_t kStages = 2,
                       kShare = 2;  // stages that half of the shared memory has room for

class NumberedBlocks {
 public:
  explicit NumberedBlocks(const ir::Kernel& kernel) : kernel_(kernel), steps_(kernel) {
    visit(kernel.body);
  }

  // Of the loops that one has become those with joined steps say it for all.
  std::vector<NumberedBlock> found() && {
    const auto is_said = [&](const NumberedBlock& each) {
      return each.together == 1 &&
             std::any_of(found_.begin(), found_.end(), [&](const NumberedBlock& other) {
               return other.together > 1 && other.tensor == each.tensor &&
                      other.loop.file == each.loop.file && other.loop.line == each.loop.line;
             });
    };
    std::vector<NumberedBlock> all;
    for (const NumberedBlock& each : found_) {
      if (!is_said(each)) all.push_back(each);
    }
    return all;
  }

 private:
  void visit(const ir::Block& block) {
    for (const Operation& o : block.body) {
      if (o.op == Op::for_loop && carries_tiles(o)) look_at(o);
      for (const ir::Block& inner : o.blocks) visit(inner);
    }
  }

  bool carries_tiles(const Operation& loop) const {
    return std::any_of(loop.results.begin(), loop.results.end(),
                       [&](ValueId value) { return kernel_.type(value).is_tile(); });
  }

  void look_at(const Operation& loop) {
    for (const Operation& o : loop.blocks[0].body) {
      if (o.op != Op::load || !o.attributes.has(Key::joined)) continue;
      const std::vector<std::int64_t>& part = o.attributes.integers(Key::joined);
      if (part[0] == 0) add(loop, o, {}, static_cast<int>(part[1]), {});
    }
    const NumberedSteps steps = steps_.of(loop);
    if (steps.numbers.empty()) return;
    const SourceLocation number = steps.numbers[0]->where;
    for (const Operation* load : steps.loads) {
      add(loop, *load, number, 1, "the target's schedules copy each block by itself");
    }
    for (const auto& [load, why] : steps.others) add(loop, *load, number, 1, why);
  }

  void add(const Operation& loop, const Operation& load, SourceLocation number, int together,
           const std::string& alone) {
    found_.push_back({kernel_.parameter_of(load.operands[0])->name, loop.where, load.where, number,
                      together, alone});
  }

  const ir::Kernel& kernel_;
  const FindNumberedSteps steps_;
  std::vector<NumberedBlock> found_;
};

}  // namespace

FindNumberedSteps::FindNumberedSteps(const ir::Kernel& kernel)
    : kernel_(kernel), definitions_(analysis::definitions(kernel)), readers_(kernel.types.size()) {
  ir::for_each(kernel.body, [&](const Operation& o) {
    for (const ValueId operand : o.operands) readers_[operand].push_back(&o);
  });
}

NumberedSteps FindNumberedSteps::of(const Operation& loop) const {
  NumberedSteps steps;
  const ir::Block& body = loop.blocks[0];
  // What scalars of the step are computed from: its index, and numbers that are loaded by it.
  std::set<ValueId> inside(body.arguments.begin(), body.arguments.end());
  std::set<ValueId> known{body.arguments[0]}, varying = inside, numbered;
  std::vector<const Operation*> loads;
  for (const Operation& o : body.body) {
    inside.insert(o.results.begin(), o.results.end());
    const auto any_of = [&](const std::set<ValueId>& set) {
      return std::any_of(o.operands.begin(), o.operands.end(),
                         [&](ValueId v) { return set.count(v) != 0; });
    };
    const bool all_known = std::all_of(o.operands.begin(), o.operands.end(), [&](ValueId v) {
      return inside.count(v) == 0 || known.count(v) != 0;
    });
    if (o.op == Op::load && any_of(numbered)) loads.push_back(&o);
    const bool is_scalar = all_known && o.blocks.empty() && o.results.size() == 1 &&
                           kernel_.type(o.results[0]).is_scalar();
    const bool loads_number = o.op == Op::load_index && any_of(varying);
    // A number by which another one is found would be waited for.
    const bool is_plain = o.op == Op::load_index ? is_input(o) && !any_of(numbered)
                                                 : ir::info(o.op).pure() && is_scalar;
    if (is_scalar && is_plain) {
      known.insert(o.results[0]);
      steps.scalars.insert(&o);
    }
    if (o.results.size() == 1 && (any_of(varying) || !o.blocks.empty())) {
      varying.insert(o.results[0]);
    }
    if (is_scalar && is_plain && loads_number) steps.numbers.push_back(&o);
    if (o.results.size() == 1 && (loads_number || any_of(numbered))) numbered.insert(o.results[0]);
  }
  if (steps.numbers.empty()) return steps;
  if (integer_constant(definitions_[loop.operands[2]]) != 1) return steps;
  std::int64_t rows = 0, bytes = 0;
  for (const Operation* load : loads) {
    std::string why = why_alone(*load, varying, numbered);
    const bool all_known =
        std::all_of(load->operands.begin(), load->operands.end(),
                    [&](ValueId v) { return inside.count(v) == 0 || known.count(v) != 0; });
    if (why.empty() && !all_known) why = "its place is more than a number that the step loads";
    const std::int64_t own = kernel_.type(load->results[0]).shape[0];
    if (why.empty() && rows != 0 && own != rows) why = "other blocks have other rows";
    if (!why.empty()) {
      steps.others.push_back({load, why});
      continue;
    }
    rows = own;
    bytes += bytes_of(*load);
    steps.loads.push_back(load);
  }
  if (steps.loads.empty()) return steps;
  const std::int64_t room = target::target_of(kernel_).limits.shared_bytes / (kStages * kShare);
  for (std::int64_t n = target::kGroupRows / rows; n > 1 && steps.together == 1; n /= 2) {
    if (n * bytes <= room) steps.together = static_cast<int>(n);
  }
  if (steps.together > 1) return steps;
  for (const Operation* load : steps.loads) {
    steps.others.push_back(
        {load, fmt::format("stages of 2 steps, of {} bytes each, leave too little shared memory",
                           bytes)});
  }
  steps.loads.clear();
  return steps;
}

std::string FindNumberedSteps::why_alone(const Operation& load, const std::set<ValueId>& varying,
                                         const std::set<ValueId>& numbered) const {
  if (!is_for_products(load)) return "not products alone read it, as it was loaded";
  const std::int64_t rows = kernel_.type(load.results[0]).shape[0];
  if (2 * rows > target::kGroupRows) {
    return fmt::format("a block has {} rows, and a stage no more than {}", rows,
                       std::max<std::int64_t>(rows, target::kGroupRows));
  }
  if (rows % kUnit != 0 || target::kGroupRows % rows != 0) {
    return fmt::format("a block has {} rows, which do not fill a stage of {}", rows,
                       target::kGroupRows);
  }
  const std::size_t axes = load.attributes.integers(Key::sizes).size();
  int differ = 0;
  bool by_number = false;
  for (std::size_t axis = 0; axis < axes; ++axis) {
    differ += static_cast<int>(varying.count(load.operands[1 + axis]));
    by_number |= numbered.count(load.operands[1 + axis]) != 0 &&
                 load.attributes.integers(Key::sizes)[axis] == 0;
  }
  if (differ != 1 || !by_number) return "blocks of two steps differ in more than a number";
  return {};
}

bool FindNumberedSteps::is_input(const Operation& access) const {
  return kernel_.parameter_of(access.operands[0])->kind == ir::Parameter::Kind::in;
}

// Whether nothing but products read the tile, or parts of it.
bool FindNumberedSteps::is_for_products(const Operation& load) const {
  if (kernel_.type(load.results[0]).shape.size() != 2 || !is_input(load)) return false;
  std::vector<ValueId> open = load.results;
  bool any = false;
  while (!open.empty()) {
    const std::vector<const Operation*>& readers = readers_[open.back()];
    open.pop_back();
    for (const Operation* o : readers) {
      any |= o->op == Op::dot;
      if (o->op == Op::dot) continue;
      if (o->op != Op::transpose && o->op != Op::slice) return false;
      open.push_back(o->results[0]);
    }
  }
  return any;
}

std::int64_t FindNumberedSteps::bytes_of(const Operation& load) const {
  const ir::Type& type = kernel_.type(load.results[0]);
  return type.elements() * size_of(type.dtype);
}

std::vector<NumberedBlock> numbered_blocks(const ir::Kernel& kernel) {
  return NumberedBlocks(kernel).found();
}

}  // namespace tilewright::analysis
