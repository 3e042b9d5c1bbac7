#include "explain/tensor_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "ir/tensor_descriptor.h"
#include "support/diagnostic.h"
#include "support/same_line.h"
#include "target/target.h"

namespace tilewright::explanations {
namespace {

using ir::Op;
using ir::Operation;
using ir::ValueId;

// An address as columns behind where a memory begins, and what depends on numbers that the kernel
// computes.
struct Place {
  std::int64_t offset = 0;
  std::string beyond;
};

struct Memory {
  std::string name;
  std::int64_t begin = 0, columns = 0;
};

// One behind the other.
std::vector<Memory> memories_of(const ir::Kernel& kernel) {
  std::vector<Memory> memories;
  std::int64_t begin = 0;
  ir::for_each(kernel.body, [&](const Operation& operation) {
    if (operation.op != Op::tensor_memory) return;
    const std::int64_t columns = kernel.type(operation.results[0]).shape[0];
    memories.push_back({operation.attributes.text(ir::Key::name), begin, columns});
    begin += columns;
  });
  return memories;
}

class Uses {
 public:
  explicit Uses(const ir::Kernel& kernel) : kernel_(kernel) {
    ir::for_each(kernel.body, [this](const Operation& operation) {
      for (const ValueId result : operation.results) made_by_[result] = &operation;
    });
    for (const Memory& memory : memories_of(kernel)) begins_[memory.name] = memory.begin;
  }

  std::vector<TensorUse> all() {
    for (const Operation& operation : kernel_.body.body) {
      if (operation.op != Op::role) continue;
      role_ = operation.attributes.text(ir::Key::name);
      ir::for_each(operation.blocks[0], [this](const Operation& o) { visit(o); });
    }
    return std::move(uses_);
  }

 private:
  const Operation* maker(ValueId value) const {
    const auto found = made_by_.find(value);
    return found == made_by_.end() ? nullptr : found->second;
  }
  std::optional<std::int64_t> number(ValueId value) const {
    const Operation* made = maker(value);
    if (made == nullptr || made->op != Op::constant) return {};
    return made->attributes.integer_or(ir::Key::value, 0);
  }

  void add_to(Place& place, ValueId value, std::int64_t times) const {
    constexpr std::int64_t kLane = 1 << 16;  // lanes are the upper half of an address
    const Operation* made = maker(value);
    if (const auto known = number(value)) {
      place.offset += *known * times % kLane;
    } else if (made != nullptr && made->op == Op::add) {
      add_to(place, made->operands[0], times);
      add_to(place, made->operands[1], times);
    } else if (made != nullptr && made->op == Op::mul && number(made->operands[1])) {
      add_to(place, made->operands[0], times * *number(made->operands[1]));
    } else if (made != nullptr && made->op == Op::shared_load) {
      // where the memory begins
    } else if (times % kLane != 0) {
      place.beyond = times == 1 ? "an index" : fmt::format("{} times an index", times);
    }
  }

  void add(const Operation& o, std::size_t memory, std::int64_t columns, bool reads, bool writes) {
    Place place;
    add_to(place, o.operands[memory + 1], 1);
    const Operation* held = maker(o.operands[memory]);
    const std::string name = held == nullptr ? std::string() : held->attributes.text(ir::Key::name);
    const std::string operation(ir::info(o.op).name);
    // Those of the line before that go on with its columns.
    for (auto use = uses_.rbegin(); use != uses_.rend() && is_beside(*use, o); ++use) {
      const std::int64_t end = std::max(use->first + use->columns, place.offset + columns);
      const std::int64_t first = std::min(use->first, place.offset);
      const bool same = use->operation == operation && use->memory == name &&
                        use->beyond == place.beyond && use->reads == reads &&
                        use->writes == writes && end - first <= use->columns + columns;
      if (!same) continue;
      use->first = first;
      use->columns = end - first;
      ++use->count;
      return;
    }
    uses_.push_back({role_, operation, name, reads, writes, begins_[name], place.offset, columns,
                     place.beyond, 1, o.where});
  }
  bool is_beside(const TensorUse& use, const Operation& o) const {
    return use.role == role_ && same_line(use.where, o.where);
  }

  void visit(const Operation& o) {
    const ir::Attributes& a = o.attributes;
    const ir::OpInfo& record = ir::info(o.op);
    constexpr std::int64_t kStep = 8;  // 32 bytes of each row
    if (record.family == ir::Family::tensor_access) {
      const bool loads = record.reads(ir::Memory::tensor);
      const std::int64_t registers = a.integer(ir::Key::count);
      const bool halves = a.integer_or(ir::Key::row_bytes, 0) != 0;
      add(o, loads ? 1 : 0, halves ? 2 * registers : registers, loads, !loads);
    }
    if (record.family == ir::Family::tensor_product) {
      ir::TensorProductShape shape;
      shape.m = a.integer(ir::Key::m);
      shape.n = a.integer(ir::Key::n);
      shape.ctas = kernel_.cta_pairs ? 2 : 1;
      add(o, 0, ir::result_columns(shape), false, true);
      if (o.op == Op::tcgen05_mma_ts) add(o, 2, kStep, true, false);
    }
    if (record.family == ir::Family::tensor_copy) {
      const std::int64_t columns = a.integer_or(ir::Key::row_bytes, 4 * kStep) / 4;
      add(o, 0, columns, o.op == Op::tcgen05_shift, true);
    }
  }

  const ir::Kernel& kernel_;
  std::map<ValueId, const Operation*> made_by_;
  std::map<std::string, std::int64_t> begins_;
  std::string role_;
  std::vector<TensorUse> uses_;
};

// Of all columns, each letter of which is so many.
std::string bar(const TensorUse& use, std::int64_t columns, std::int64_t of_letter) {
  std::string text(static_cast<std::size_t>((columns + of_letter - 1) / of_letter), '.');
  const char letter = !use.writes ? 'r' : !use.reads ? 'w' : 'b';
  const std::int64_t first = use.begin + use.first;
  for (std::int64_t column = first; column < first + use.columns; ++column) {
    const auto at = static_cast<std::size_t>(std::max<std::int64_t>(column, 0) / of_letter);
    if (at < text.size()) text[at] = letter;
  }
  return text;
}

}  // namespace

std::vector<TensorUse> tensor_uses(const ir::Kernel& machine) { return Uses(machine).all(); }

std::string tensor_memory_text(const ir::Kernel& machine) {
  std::int64_t columns = 0;
  std::string text;
  for (const Memory& memory : memories_of(machine)) {
    columns = memory.begin + memory.columns;
    text += fmt::format("  {:<14} columns {} to {}\n", memory.name, memory.begin, columns - 1);
  }
  if (columns == 0) return {};
  constexpr std::int64_t kMostLetters = 64;
  const std::int64_t of_letter = std::max<std::int64_t>(columns / kMostLetters, 1);
  text += fmt::format(
      "  in the order of each role, r read, w written, b both, a letter {} columns:\n", of_letter);
  for (const TensorUse& use : tensor_uses(machine)) {
    const std::int64_t first = use.begin + use.first;
    text += fmt::format("  {:<10} {:<14} {} {} to {}{}{} ({})\n", use.role, use.operation,
                        bar(use, columns, of_letter), first, first + use.columns - 1,
                        use.beyond.empty() ? "" : " and " + use.beyond,
                        use.count == 1 ? "" : fmt::format(", {} times", use.count),
                        format_location(use.where));
  }
  return text;
}

}  // namespace tilewright::explanations
