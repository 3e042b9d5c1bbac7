#include "simulator/faults/core_faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <string>
#include <utility>

#include "simulator/faults/sites.h"
#include "target/core.h"
#include "target/core_operands.h"
#include "target/target.h"

namespace tilewright::simulator {

using ir::Key;
using ir::Op;
using ir::Operation;
using ir::ValueId;

namespace {

const target::Core& core_of(const Sites& sites) { return *target::target_of(sites.kernel()).core; }

bool is_work(Op op) {
  const ir::Family family = ir::info(op).family;
  return family == ir::Family::core_copy || family == ir::Family::core_compute;
}

std::string text_of(const Sites& sites, const Site& site) {
  const ir::Attributes& attributes = site.operation->attributes;
  const std::string op(ir::info(site.op()).name);
  if (site.op() == Op::event_set || site.op() == Op::event_wait) {
    return fmt::format("{} {} -> {}", op, attributes.text(Key::from), attributes.text(Key::to));
  }
  if (site.op() == Op::memory) return op + " " + attributes.text(Key::name);
  for (const ValueId operand : site.operation->operands) {
    const Site* made = sites.definition(operand);
    if (made == nullptr || made->op() != Op::window) continue;
    return op + " " +
           sites.definition(made->operation->operands[0])->operation->attributes.text(Key::name);
  }
  return op;
}

bool is_constant(const Site* site) { return site != nullptr && site->op() == Op::constant; }

using Edit = std::function<void(ir::Kernel&, std::size_t number)>;

Mutant changed(const Sites& sites, const Site& site, std::string change, const Edit& edit) {
  Mutant mutant = mutant_at(sites, site, std::move(change));
  mutant.operation = text_of(sites, site);
  mutant.edit = [number = site.number, edit](ir::Kernel& kernel) { edit(kernel, number); };
  return mutant;
}

// Each such operation left out.
std::vector<Mutant> without(const Sites& sites, const std::function<bool(Op)>& is_such) {
  std::vector<Mutant> mutants;
  for (const Site& site : sites.all()) {
    if (!is_such(site.op())) continue;
    mutants.push_back(changed(sites, site, "left out", [](ir::Kernel& kernel, std::size_t number) {
      remove(kernel, number);
    }));
  }
  return mutants;
}

// Operand `operand` and a number.
Edit plus(std::size_t operand, std::int64_t more) {
  return [=](ir::Kernel& kernel, std::size_t number) {
    const ValueId by = insert_constant(kernel, number, more);
    const ValueId own = operation_at(kernel, number + 1).operands[operand];
    const ValueId sum = insert_scalar(kernel, number + 1, Op::add, {own, by});
    operation_at(kernel, number + 2).operands[operand] = sum;
  };
}

bool is_event(Op op) { return op == Op::event_set || op == Op::event_wait; }

std::vector<Mutant> seed_waits(const Sites& sites) {
  return without(sites, [](Op op) { return op == Op::event_wait; });
}
std::vector<Mutant> seed_sets(const Sites& sites) {
  return without(sites, [](Op op) { return op == Op::event_set; });
}
std::vector<Mutant> seed_barriers(const Sites& sites) {
  return without(sites, [](Op op) { return op == Op::unit_barrier; });
}

// Whether it puts into a window what that holds already: it adds 0 to whole numbers, or takes once.
bool keeps_all(const Sites& sites, const Operation& o) {
  if (o.op != Op::core_vector || o.operands.size() != 3) return false;
  if (!are_one_window(sites, o.operands[0], o.operands[1])) return false;
  const Site* number = sites.definition(o.operands[2]);
  if (number == nullptr || number->op() != Op::constant) return false;
  const auto& value = *number->operation->attributes.find(Key::value);
  const auto* real = std::get_if<double>(&value);
  const auto* whole = std::get_if<std::int64_t>(&value);
  const Op function = o.attributes.function();
  if (function == Op::add || function == Op::sub) return whole != nullptr && *whole == 0;
  if (function != Op::mul && function != Op::div) return false;
  return real != nullptr ? *real == 1 : whole != nullptr && *whole == 1;
}

std::vector<Mutant> seed_instructions(const Sites& sites) {
  std::vector<Mutant> mutants = without(sites, is_work);
  for (Mutant& mutant : mutants) {
    if (!keeps_all(sites, *sites.at(mutant.site).operation)) continue;
    mutant.equivalent = "it computes what lies there already";
  }
  return mutants;
}

std::vector<Mutant> seed_numbers(const Sites& sites) {
  std::vector<Mutant> mutants;
  for (const Site& site : sites.all()) {
    if (is_event(site.op()))
      mutants.push_back(changed(sites, site, "has the next number", plus(0, 1)));
  }
  return mutants;
}

std::vector<Mutant> seed_pairs(const Sites& sites) {
  std::vector<Mutant> mutants;
  const target::Core& core = core_of(sites);
  for (const Site& site : sites.all()) {
    if (!is_event(site.op())) continue;
    const bool sets = site.op() == Op::event_set;
    const std::string from = site.operation->attributes.text(Key::from);
    const std::string to = site.operation->attributes.text(Key::to);
    // Another unit of the same sequencer, which is satisfied by other work.
    for (const target::CoreEventPair& pair : core.events) {
      const std::string& kept = sets ? pair.to : pair.from;
      const std::string& other = sets ? pair.from : pair.to;
      if (kept != (sets ? to : from) || other == (sets ? from : to)) continue;
      if (core.unit(other)->sequencer != core.unit(sets ? from : to)->sequencer) continue;
      mutants.push_back(changed(sites, site, fmt::format("is of {} -> {}", pair.from, pair.to),
                                [pair](ir::Kernel& kernel, std::size_t number) {
                                  ir::Attributes& attributes =
                                      operation_at(kernel, number).attributes;
                                  attributes.set(Key::from, pair.from);
                                  attributes.set(Key::to, pair.to);
                                }));
      break;
    }
  }
  return mutants;
}

// In front of the work of its unit that it covers.
std::vector<Mutant> seed_early_sets(const Sites& sites) {
  std::vector<Mutant> mutants;
  for (const Site* site : sites.of(Op::event_set)) {
    const std::string& unit = site->operation->attributes.text(Key::from);
    const Site* before = sites.previous(*site);
    while (before != nullptr &&
           !(is_work(before->op()) && before->operation->attributes.text(Key::unit) == unit)) {
      before = sites.previous(*before);
    }
    if (before == nullptr) continue;
    mutants.push_back(changed(sites, *site, "comes before the work that it covers",
                              [target = before->number](ir::Kernel& kernel, std::size_t number) {
                                move(kernel, number, target, Side::before);
                              }));
  }
  return mutants;
}

std::vector<Mutant> seed_twice(const Sites& sites) {
  std::vector<Mutant> mutants;
  for (const Site& site : sites.all()) {
    if (!is_event(site.op())) continue;
    mutants.push_back(
        changed(sites, site, "done twice", [](ir::Kernel& kernel, std::size_t number) {
          insert(kernel, number, Side::after, operation_at(kernel, number));
        }));
  }
  return mutants;
}

// Of a memory of several stages.
std::vector<Mutant> seed_stages(const Sites& sites) {
  std::vector<Mutant> mutants;
  for (const Site* site : sites.of(Op::window)) {
    const ValueId memory = site->operation->operands[0];
    const std::int64_t stages = sites.kernel().type(memory).shape[0];
    if (stages < 2) continue;
    const auto of_memory = [&](const Site* other) {
      return other->operation->operands[0] == memory;
    };
    const std::vector<const Site*> windows = sites.of(Op::window);
    const bool is_alone = std::count_if(windows.begin(), windows.end(), of_memory) == 1;
    mutants.push_back(changed(
        sites, *site, "is of the next stage", [stages](ir::Kernel& kernel, std::size_t number) {
          const ValueId one = insert_constant(kernel, number, 1);
          const ValueId all = insert_constant(kernel, number + 1, stages);
          const ValueId own = operation_at(kernel, number + 2).operands[1];
          const ValueId next = insert_scalar(kernel, number + 2, Op::add, {own, one});
          const ValueId wrapped = insert_scalar(kernel, number + 3, Op::mod, {next, all});
          operation_at(kernel, number + 4).operands[1] = wrapped;
        }));
    if (is_alone) {
      mutants.back().equivalent =
          "nothing else takes its memory, whose stages change their numbers";
    }
  }
  return mutants;
}

std::vector<Mutant> seed_places(const Sites& sites) {
  std::vector<Mutant> mutants;
  const target::Core& core = core_of(sites);
  const target::CoreOperands operands(sites.kernel(), core);
  const auto moved = [](std::int64_t offset) {
    return [offset](ir::Kernel& kernel, std::size_t number) {
      operation_at(kernel, number).attributes.set(Key::offset, offset);
    };
  };
  const auto bytes_of = [&](const Operation& memory) {
    const ValueId value = memory.results[0];
    return memory.attributes.integer(Key::stages) *
           target::matrix_bytes(operands.space_of(value), operands.matrix_of(value));
  };
  for (const Site* site : sites.of(Op::memory)) {
    const target::CoreSpace& space = operands.space_of(site->operation->results[0]);
    const std::int64_t offset = site->operation->attributes.integer(Key::offset);
    mutants.push_back(
        changed(sites, *site, "begins between two granules", moved(offset + space.granule / 2)));
    mutants.push_back(changed(sites, *site, "ends a granule past its memory",
                              moved(space.bytes - bytes_of(*site->operation) + space.granule)));
    for (const Site* other : sites.of(Op::memory)) {
      if (other == site || &operands.space_of(other->operation->results[0]) != &space) continue;
      mutants.push_back(changed(
          sites, *site, "lies where " + other->operation->attributes.text(Key::name) + " does",
          moved(other->operation->attributes.integer(Key::offset))));
      mutants.back().equivalent =
          "in no order does one of the two find what the other has left: they are in use in turn";
      break;
    }
  }
  return mutants;
}

bool is_transfer(Op op) { return op == Op::core_load || op == Op::core_store; }

std::vector<Mutant> seed_turned(const Sites& sites) {
  std::vector<Mutant> mutants;
  for (const Site* site : sites.of(Op::window)) {
    mutants.push_back(changed(sites, *site, "turned", [](ir::Kernel& kernel, std::size_t number) {
      ir::Attributes& attributes = operation_at(kernel, number).attributes;
      attributes.set(Key::transposed, 1 - attributes.integer_or(Key::transposed, 0));
    }));
    const ir::Type& window = sites.kernel().type(site->operation->results[0]);
    const std::vector<Use> uses = sites.uses(site->operation->results[0]);
    const bool is_vector = std::min(window.shape[0], window.shape[1]) == 1;
    if (is_vector && std::all_of(uses.begin(), uses.end(), [&](const Use& use) {
          return is_transfer(sites.at(use.site).op());
        })) {
      mutants.back().equivalent = "a row and a column of a tensor's elements have one order";
    }
  }
  return mutants;
}

std::vector<Mutant> seed_sums(const Sites& sites) {
  std::vector<Mutant> mutants;
  for (const Site* site : sites.of(Op::core_matmul)) {
    mutants.push_back(changed(sites, *site, "adds where it should not, and the other way",
                              [](ir::Kernel& kernel, std::size_t number) {
                                const ValueId own = operation_at(kernel, number).operands[3];
                                const ValueId other = insert_scalar(kernel, number, Op::logical_not,
                                                                    {own}, DType::boolean);
                                operation_at(kernel, number + 1).operands[3] = other;
                              }));
  }
  return mutants;
}

// Whether a fill puts zeros into the memory, or into what is moved there.
bool is_zeroed(const Sites& sites, ValueId memory, int moves = 2) {
  const auto memory_of = [&](const Site* site, std::size_t operand) {
    return sites.definition(site->operation->operands[operand])->operation->operands[0];
  };
  for (const Site* fill : sites.of(Op::core_fill)) {
    const Site* number = sites.definition(fill->operation->operands[1]);
    if (memory_of(fill, 0) != memory || !is_constant(number)) continue;
    const auto* real = std::get_if<double>(number->operation->attributes.find(Key::value));
    if (real != nullptr && *real == 0) return true;
  }
  const std::vector<const Site*> all = sites.of(Op::core_move);
  return moves > 0 && std::any_of(all.begin(), all.end(), [&](const Site* move) {
           return memory_of(move, 0) == memory && is_zeroed(sites, memory_of(move, 1), moves - 1);
         });
}

const target::CoreProduct& product_of(const target::Core& core, const Operation& matmul) {
  const std::string& unit = matmul.attributes.text(Key::unit);
  return *std::find_if(core.products.begin(), core.products.end(),
                       [&](const auto& each) { return each.unit == unit; });
}

std::vector<Mutant> seed_depth(const Sites& sites) {
  std::vector<Mutant> mutants;
  for (const Site* site : sites.of(Op::core_matmul)) {
    if (site->operation->operands.size() < 5) continue;
    mutants.push_back(changed(sites, *site, "sums one less", plus(4, -1)));
    const target::CoreProduct& product = product_of(core_of(sites), *site->operation);
    const DType dtype = sites.kernel().type(site->operation->operands[1]).dtype;
    const auto k = sites.constant(site->operation->operands[4]);
    if (product.sums_pad && k && (*k - 1) % (product.piece_k_bytes / size_of(dtype)) != 0) {
      mutants.back().equivalent = "the last piece of k is summed whole";
    }
    mutants.push_back(changed(sites, *site, "sums all that the operands have room for",
                              [](ir::Kernel& kernel, std::size_t number) {
                                operation_at(kernel, number).operands.pop_back();
                              }));
    const auto memory = [&](std::size_t operand) {
      return sites.definition(site->operation->operands[operand])->operation->operands[0];
    };
    if (is_zeroed(sites, memory(1)) || is_zeroed(sites, memory(2))) {
      mutants.back().equivalent = "what lies behind k was filled with zeros";
    }
  }
  return mutants;
}

// The number of the first operand that is a start of an axis.
constexpr std::size_t kStarts = 2;

std::vector<Mutant> seed_starts(const Sites& sites) {
  std::vector<Mutant> mutants;
  for (const Site& site : sites.all()) {
    if (!is_transfer(site.op())) continue;
    const std::size_t rank = site.operation->attributes.integers(Key::sizes).size();
    for (std::size_t axis = 0; axis < rank; ++axis) {
      mutants.push_back(changed(sites, site, fmt::format("begins one later on axis {}", axis),
                                plus(kStarts + axis, 1)));
    }
  }
  return mutants;
}

std::int64_t number_of(const Site& constant) {
  return constant.operation->attributes.integer(Key::value);
}

// Whether it is the sum of the value and of so much, or more.
bool adds(const Sites& sites, const Site* sum, ValueId value, std::int64_t least) {
  if (sum == nullptr || sum->op() != Op::add) return false;
  const std::vector<ValueId>& operands = sum->operation->operands;
  for (const std::size_t which : {0U, 1U}) {
    const Site* more = sites.definition(operands[1 - which]);
    if (operands[which] == value && is_constant(more) && number_of(*more) >= least) return true;
  }
  return false;
}

// Whether the limit is the start and so much, or more.
bool is_behind(const Sites& sites, const Site* limit, ValueId start, std::int64_t least) {
  const Site* from = sites.definition(start);
  return (is_constant(limit) && is_constant(from) &&
          number_of(*limit) >= number_of(*from) + least) ||
         adds(sites, limit, start, least);
}

// Whether the limit is no less than the axis.
bool is_end(const Site& limit, const Dim& extent) {
  if (limit.op() == Op::dim) return limit.operation->attributes.dim() == extent;
  return is_constant(&limit) && extent.is_constant() && number_of(limit) >= extent.constant();
}

constexpr const char *kOneEarlier = "ends one earlier", *kOneLater = "ends one later";
constexpr const char* kEndsByItself = "the part ends there by itself";

std::vector<Mutant> seed_limits(const Sites& sites) {
  std::vector<Mutant> mutants;
  for (const Site& site : sites.all()) {
    if (!is_transfer(site.op())) continue;
    const std::vector<std::int64_t>& sizes = site.operation->attributes.integers(Key::sizes);
    const ValueId tensor = site.operation->operands[site.op() == Op::core_load ? 1 : 0];
    const ir::Parameter* parameter = sites.kernel().parameter_of(tensor);
    for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
      const std::size_t operand = kStarts + sizes.size() + axis;
      const Site* limit = sites.definition(site.operation->operands[operand]);
      const ValueId start = site.operation->operands[kStarts + axis];
      const std::int64_t size = std::max<std::int64_t>(sizes[axis], 1);
      mutants.push_back(
          changed(sites, site, fmt::format("{} on axis {}", kOneEarlier, axis), plus(operand, -1)));
      if (is_behind(sites, limit, start, size + 1)) mutants.back().equivalent = kEndsByItself;
      mutants.push_back(
          changed(sites, site, fmt::format("{} on axis {}", kOneLater, axis), plus(operand, 1)));
      if (limit != nullptr && parameter != nullptr && is_end(*limit, parameter->shape[axis])) {
        mutants.back().equivalent = "the tensor ends there by itself";
      }
      if (is_behind(sites, limit, start, size)) mutants.back().equivalent = kEndsByItself;
    }
  }
  return mutants;
}

// Of a sequencer of which a core has several.
std::vector<Mutant> seed_instances(const Sites& sites) {
  std::vector<Mutant> mutants;
  for (const Site* site : sites.of(Op::role)) {
    const target::CoreSequencer* sequencer =
        core_of(sites).sequencer(site->operation->attributes.text(Key::name));
    if (sequencer == nullptr || sequencer->count < 2) continue;
    for (const Use& use : sites.uses(site->operation->blocks[0].arguments[0])) {
      const Site& user = sites.at(use.site);
      mutants.push_back(changed(sites, user, "takes each core for the first one",
                                [operand = use.operand](ir::Kernel& kernel, std::size_t number) {
                                  const ValueId zero = insert_constant(kernel, number, 0);
                                  operation_at(kernel, number + 1).operands[operand] = zero;
                                }));
    }
  }
  return mutants;
}

std::vector<Mutant> seed_neighbours(const Sites& sites) {
  std::vector<Mutant> mutants;
  for (const Site* site : sites.of(Op::load_index)) {
    mutants.push_back(changed(sites, *site, "reads the next element",
                              plus(site->operation->operands.size() - 1, 1)));
    if (sites.uses(site->operation->results[0]).empty()) {
      mutants.back().equivalent = "this sequencer does not use it";
    }
  }
  return mutants;
}

}  // namespace

const std::vector<FaultKind>& core_fault_kinds() {
  static const std::vector<FaultKind> kinds = {
      {41,
       "no wait for an event",
       {"race", "event", "exit", "uninitialised", "mismatch"},
       seed_waits,
       "no events"},
      {42, "an event is not set", {"deadlock", "race", "event"}, seed_sets, "no events"},
      {43,
       "an event of another number",
       {"deadlock", "race", "event", "exit", "out_of_bounds", "uninitialised"},
       seed_numbers,
       "no events"},
      {44,
       "an event of another unit",
       {"deadlock", "race", "event", "exit", "uninitialised"},
       seed_pairs,
       "no sequencer has two units with events to one unit"},
      {45,
       "an event before the work that it covers",
       {"race", "uninitialised"},
       seed_early_sets,
       "no events"},
      {46,
       "an event set or awaited once too often",
       {"event", "exit", "deadlock"},
       seed_twice,
       "no events"},
      {47, "no barrier of a unit", {"race", "uninitialised"}, seed_barriers, "no such barrier"},
      {kStageKind,
       "another stage",
       {"race", "uninitialised", "mismatch", "event"},
       seed_stages,
       "no memory of several stages"},
      {49,
       "a memory over another, past the end, or not aligned",
       {"race", "overlap", "uninitialised", "misaligned", "mismatch"},
       seed_places,
       "no memories"},
      {kInstructionKind,
       "an instruction left out",
       {"uninitialised", "mismatch", "race"},
       seed_instructions,
       "no instructions"},
      {51, "an operand turned", {"mismatch", "out_of_bounds"}, seed_turned, "no windows"},
      {52,
       "sums that begin or go on wrongly",
       {"uninitialised", "mismatch", "race"},
       seed_sums,
       "no products"},
      {53,
       "k past its end, or short of it",
       {"uninitialised", "mismatch", "out_of_bounds"},
       seed_depth,
       "no product has a tail"},
      {54,
       "a part of a tensor from another start",
       {"mismatch", "uninitialised", "race"},
       seed_starts,
       "neither loads nor stores"},
      {kLimitKind,
       "a part of a tensor to another end",
       {"mismatch", "uninitialised", "race"},
       seed_limits,
       "neither loads nor stores"},
      {56,
       "each core of several taken for the first",
       {"mismatch", "uninitialised", "race"},
       seed_instances,
       "one of each sequencer"},
      {57,
       "a neighbour in a table",
       {"mismatch", "uninitialised", "out_of_bounds"},
       seed_neighbours,
       "no tables"},
  };
  return kinds;
}

bool takes_more(const Mutant& mutant) { return mutant.change.rfind(kOneLater, 0) == 0; }
bool takes_less(const Mutant& mutant) { return mutant.change.rfind(kOneEarlier, 0) == 0; }

}  // namespace tilewright::simulator
