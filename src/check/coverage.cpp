#include "check/coverage.h"

#include <algorithm>
#include <bit>
#include <set>
#include <unordered_map>

#include "ir/binding.h"
#include "simulator/machine/cta.h"
#include "simulator/machine/launch.h"
#include "simulator/machine/machine.h"
#include "simulator/machine/recorder.h"

namespace tilewright::checks {
namespace {

std::uint32_t edges_of_comparison(std::int64_t a, std::int64_t b) {
  return a == b ? kEqual : a == b - 1 ? kOneLess : a == b + 1 ? kOneMore : kNoEdge;
}

std::uint32_t edges_of_division(std::int64_t a, std::int64_t b) {
  if (b == 0 || a < 0) return 0;
  const std::int64_t quotient = a / b;
  const std::uint32_t parts = quotient == 0   ? kNoPart
                              : quotient == 1 ? kOnePart
                              : quotient < 4  ? kFewParts
                                              : kManyParts;
  const std::int64_t remainder = a % b;
  std::uint32_t edges = remainder != 0 ? kRemainder : a != 0 ? kDivides : kNoEdge;
  if (b > 2 && remainder == b - 1) edges |= kOneLess;
  if (b > 2 && remainder == 1) edges |= kOneMore;
  return parts | edges;
}

// Whether another divisor has another result. Numbers below zero are taken to tell.
bool divisor_tells(ir::Op function, std::int64_t a, std::int64_t b, std::int64_t other) {
  if (a < 0 || b <= 0 || other <= 0) return true;
  return function == ir::Op::div ? a / b != a / other : a % b != a % other;
}
bool remainder_tells(std::int64_t a, std::int64_t b) {
  return a < b || b <= 0 || a / b != (a - (b - 1)) / b;
}

// Of an operation of two indices, which is one of these; else none.
std::uint32_t edges_of(ir::Op function, std::int64_t a, std::int64_t b) {
  if (function == ir::Op::div || function == ir::Op::mod) return edges_of_division(a, b);
  const bool compares =
      ir::info(function).is_comparison() || function == ir::Op::min || function == ir::Op::max;
  return compares ? edges_of_comparison(a, b) : kNoEdge;
}

// The comparisons and divisions of the dims that launches of a kernel compute.
class DimEdges {
 public:
  explicit DimEdges(const ir::Kernel& machine) {
    for (const Dim& dim : machine.grid) add(dim);
    ir::for_each(machine.body, [&](const ir::Operation& operation) {
      if (operation.op == ir::Op::dim) add(operation.attributes.dim());
    });
  }
  std::size_t count() const { return dims_.size(); }
  std::uint32_t edges(std::size_t number, const ir::Binding& binding) const {
    const Dim& dim = dims_[number];
    const std::int64_t a = binding.evaluate(dim.lhs()), b = binding.evaluate(dim.rhs());
    const bool compares = dim.kind() == Dim::Kind::min || dim.kind() == Dim::Kind::max;
    return compares ? edges_of_comparison(a, b) : edges_of_division(a, b);
  }

 private:
  void add(const Dim& dim) {
    if (dim.is_constant() || dim.kind() == Dim::Kind::symbol) return;
    if (!seen_.insert(dim.to_string()).second) return;
    add(dim.lhs());
    add(dim.rhs());
    switch (dim.kind()) {
      case Dim::Kind::floordiv:
      case Dim::Kind::ceildiv:
      case Dim::Kind::mod:
      case Dim::Kind::min:
      case Dim::Kind::max:
        dims_.push_back(dim);
        return;
      case Dim::Kind::constant:
      case Dim::Kind::symbol:
      case Dim::Kind::add:
      case Dim::Kind::sub:
      case Dim::Kind::mul:
        return;
    }
  }
  std::set<std::string> seen_;
  std::vector<Dim> dims_;
};

class Recorded : public simulator::Recorder {
 public:
  using Recorder::begin;
  using Recorder::starts;
  Recorded(const ir::Kernel& machine, std::int64_t multiprocessors)
      : multiprocessors_(multiprocessors) {
    ir::for_each(machine.body, [&](const ir::Operation& operation) {
      const std::size_t number = numbers_.size();
      numbers_.emplace(&operation, number);
    });
    coverage_.turns.resize(numbers_.size());
    first_.resize(numbers_.size());
    coverage_.executable.resize(numbers_.size());
    coverage_.edges.resize(numbers_.size());
    coverage_.divisor_tells.resize(numbers_.size());
    coverage_.less_tells.resize(numbers_.size());
    coverage_.remainder_tells.resize(numbers_.size());
  }
  Coverage take() { return std::move(coverage_); }

  void begin(const simulator::Launch& launch) override {
    functions_ = &launch.kernel.scalar_operations;
    std::vector<ir::TensorShape> shapes;
    for (const TensorArgument& tensor : launch.arguments.tensors) {
      shapes.push_back({tensor.name, tensor.dtype, tensor.shape, tensor.strides});
    }
    const ir::Kernel& machine = *launch.kernel.source;
    const ir::Binding binding = ir::bind(machine, shapes, multiprocessors_,
                                         ir::given_ranks(machine, launch.arguments.ranks));
    const DimEdges dims(machine);
    for (std::size_t i = 0; i < dims.count(); ++i) {
      coverage_.edges.push_back(dims.edges(i, binding));
    }
    coverage_.phases.assign(static_cast<std::size_t>(launch.kernel.barriers), 0);
    for (const simulator::BarrierArray& array : launch.kernel.barrier_arrays) {
      coverage_.wanted.insert(coverage_.wanted.end(), static_cast<std::size_t>(array.count),
                              Coverage::phases_wanted(array.arrivals));
    }
    code_ = launch.kernel.code.data();
    of_code_.clear();
    for (const simulator::Instruction& instruction : launch.kernel.code) {
      const auto found = numbers_.find(instruction.operation);
      of_code_.push_back(found == numbers_.end() ? kNone : found->second);
      if (found != numbers_.end()) coverage_.executable[found->second] = true;
    }
  }
  void starts(const simulator::Warp& warp, const simulator::Instruction& instruction) override {
    const std::size_t number = of_code_[static_cast<std::size_t>(&instruction - code_)];
    if (number == kNone) return;
    const simulator::Warp*& first = first_[number];
    if (!first) first = &warp;
    std::uint64_t& turns = coverage_.turns[number];
    if (first == &warp && turns < Coverage::kTurns) ++turns;
    if (instruction.code == simulator::Code::function) {
      note_function(warp, instruction, number);
    } else if (instruction.code == simulator::Code::loop_test) {
      coverage_.edges[number] |=
          edges_of_comparison(warp.integer(instruction.a), warp.integer(instruction.b));
    }
  }
  void phase_completed(const simulator::Cta& cta, int barrier) override {
    std::uint64_t& most = coverage_.phases[static_cast<std::size_t>(barrier)];
    const auto number = static_cast<std::size_t>(barrier);
    most = std::max(most, std::min(cta.barriers[number].phase, coverage_.wanted[number]));
  }

 private:
  void note_function(const simulator::Warp& warp, const simulator::Instruction& instruction,
                     std::size_t number) {
    const simulator::ScalarOperation& function =
        (*functions_)[static_cast<std::size_t>(instruction.detail)];
    if (function.operands.size() != 2 || function.operand_type != DType::i32) return;
    const std::int64_t a = warp.integer(function.operands[0]);
    const std::int64_t b = warp.integer(function.operands[1]);
    coverage_.edges[number] |= edges_of(function.function, a, b);
    if (function.function != ir::Op::div && function.function != ir::Op::mod) return;
    if (divisor_tells(function.function, a, b, b + 1)) coverage_.divisor_tells[number] = true;
    // The mutant divides by one at least.
    const std::int64_t less = std::max<std::int64_t>(b - 1, 1);
    if (divisor_tells(function.function, a, b, less)) coverage_.less_tells[number] = true;
    if (remainder_tells(a, b)) coverage_.remainder_tells[number] = true;
  }

  const std::int64_t multiprocessors_;
  const std::vector<simulator::ScalarOperation>* functions_ = nullptr;
  static constexpr std::size_t kNone = SIZE_MAX;
  std::unordered_map<const ir::Operation*, std::size_t> numbers_;
  const simulator::Instruction* code_ = nullptr;
  std::vector<std::size_t> of_code_;           // the operation's number, of each instruction
  std::vector<const simulator::Warp*> first_;  // that came to each operation
  Coverage coverage_;
};

}  // namespace

std::uint64_t Coverage::phases_wanted(int arrivals) {
  return static_cast<std::uint64_t>(std::max(4, arrivals + 2));
}

std::uint64_t Coverage::gain(const Coverage& other) const {
  std::uint64_t gain = 0;
  const auto add = [&](const std::vector<std::uint64_t>& own,
                       const std::vector<std::uint64_t>& more) {
    for (std::size_t i = 0; i < more.size(); ++i) {
      const std::uint64_t had = i < own.size() ? own[i] : 0;
      gain += more[i] > had ? more[i] - had : 0;
    }
  };
  add(turns, other.turns);
  add(phases, other.phases);
  for (std::size_t i = 0; i < other.edges.size(); ++i) {
    const std::uint32_t had = i < edges.size() ? edges[i] : 0;
    gain += static_cast<std::uint64_t>(std::popcount(other.edges[i] & ~had));
  }
  return gain;
}

void Coverage::add(const Coverage& other) {
  if (executable.empty()) executable = other.executable;
  if (wanted.empty()) wanted = other.wanted;
  const auto take = [](std::vector<std::uint64_t>& own, const std::vector<std::uint64_t>& more) {
    own.resize(std::max(own.size(), more.size()));
    for (std::size_t i = 0; i < more.size(); ++i) own[i] = std::max(own[i], more[i]);
  };
  take(turns, other.turns);
  take(phases, other.phases);
  edges.resize(std::max(edges.size(), other.edges.size()));
  for (std::size_t i = 0; i < other.edges.size(); ++i) edges[i] |= other.edges[i];
}

std::vector<const ir::Operation*> Coverage::missing(const ir::Kernel& machine) const {
  std::vector<const ir::Operation*> list;
  std::size_t number = 0;
  ir::for_each(machine.body, [&](const ir::Operation& operation) {
    const std::size_t own = number++;
    if (own < executable.size() && executable[own] && turns[own] == 0) list.push_back(&operation);
  });
  return list;
}

Coverage coverage_of(const ir::Kernel& machine, const Arguments& arguments,
                     std::int64_t multiprocessors, std::uint64_t seed, std::int64_t& operations,
                     bool control_only) {
  Recorded recorded(machine, multiprocessors);
  simulator::MachineOptions options;
  options.control_only = control_only;
  // What is executed is the same; whether it is in order, the proof looks at.
  options.check_order = false;
  options.multiprocessors = multiprocessors;
  options.seed = seed;
  options.recorder = &recorded;
  operations += simulator::run_machine(machine, arguments, options).operations;
  return recorded.take();
}

Covering covering(const ir::Kernel& machine,
                  const std::vector<std::function<library::Workload()>>& candidates,
                  std::int64_t multiprocessors, std::uint64_t seed, std::int64_t operations,
                  Coverage& reached, std::size_t most_sizes) {
  Covering found;
  std::vector<CoveredRun>& all = found.runs;
  constexpr double kOfAnyRun = 100'000;  // operations that take as long as a run's begin and end
  std::int64_t executed = 0;
  while (all.size() < candidates.size() && executed < operations) {
    library::Workload workload = candidates[all.size()]();
    CoveredRun& run = all.emplace_back();
    run.coverage =
        coverage_of(machine, workload.arguments(), multiprocessors, seed, run.operations);
    executed += run.operations;
  }
  const auto take = [&](std::size_t number) {
    reached.add(all[number].coverage);
    found.chosen.push_back(number);
  };
  // A remainder may matter only where something else has one too: one run that meets most at once.
  const auto met = [](const CoveredRun& run) {
    int met = 0;
    for (const std::uint32_t edges : run.coverage.edges) met += std::popcount(edges);
    return met;
  };
  const auto richest =
      std::max_element(all.begin(), all.end(),
                       [&](const CoveredRun& a, const CoveredRun& b) { return met(a) < met(b); });
  if (richest != all.end() && reached.gain(richest->coverage) > 0) {
    take(static_cast<std::size_t>(richest - all.begin()));
  }
  for (;;) {
    std::size_t best = all.size();
    double most = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const double gain = static_cast<double>(reached.gain(all[i].coverage)) /
                          (kOfAnyRun + static_cast<double>(all[i].operations));
      if (gain <= most) continue;
      most = gain;
      best = i;
    }
    if (best == all.size() || found.chosen.size() == most_sizes) return found;
    take(best);
  }
}

}  // namespace tilewright::checks
