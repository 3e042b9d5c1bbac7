#include "cpu/in_place.h"

#include <algorithm>
#include <string>

#include "cpu/tile_uses.h"
#include "ir/overlap.h"
#include "support/diagnostic.h"

namespace tilewright::cpu {
namespace {

// The axes of the grid, a bit each, that scalars hang on.
class GridAxes {
 public:
  explicit GridAxes(const Program& program) : of_(program.scalars.size(), 0) {
    for (std::size_t axis = 0; axis < program.grid.size(); ++axis) {
      of_[program.grid[axis]] = 1u << axis;
    }
    // What a loop carries hangs on what its body computes.
    do {
      has_changed_ = false;
      for_operations(program.body, [this](const Operation& operation) {
        std::visit([this](const auto& each) { visit(each); }, operation);
      });
    } while (has_changed_);
  }

  std::uint32_t of(const std::vector<ScalarId>& scalars) const {
    std::uint32_t all = 0;
    for (const ScalarId scalar : scalars) all |= of_[scalar];
    return all;
  }

 private:
  static constexpr std::uint32_t kAll = UINT32_MAX;

  void visit(const Compute& compute) {
    for (const ScalarId operand : compute.operands) {
      if (operand != kNone) add(compute.result, of_[operand]);
    }
  }
  void visit(const MoveScalar& move) { add(move.result, of_[move.source]); }
  void visit(const LoadIndex& load) { add(load.result, of(load.indices)); }
  void visit(const For& loop) { add(loop.index, of({loop.low, loop.high, loop.step})); }
  void visit(const Any& any) { add(any.result, kAll); }
  void visit(const auto&) {}

  void add(ScalarId scalar, std::uint32_t axes) {
    has_changed_ = has_changed_ || (axes & ~of_[scalar]) != 0;
    of_[scalar] |= axes;
  }

  std::vector<std::uint32_t> of_;
  bool has_changed_ = false;
};

// What a program reads of one tensor, and stores to another one.
struct Accesses {
  std::vector<const Box*> loads, stores;
  std::vector<const LoadIndex*> indices;
};

Accesses accesses_of(const Program& program, TensorId input, TensorId output) {
  Accesses found;
  for_operations(program.body, [&](const Operation& operation) {
    const auto* const load = std::get_if<Load>(&operation);
    const auto* const store = std::get_if<Store>(&operation);
    const auto* const index = std::get_if<LoadIndex>(&operation);
    if (load && load->box.tensor == input) found.loads.push_back(&load->box);
    if (store && store->box.tensor == output) found.stores.push_back(&store->box);
    if (index && index->tensor == input) found.indices.push_back(index);
  });
  return found;
}

void list_in_order(const Block& block, std::vector<const Operation*>& all) {
  for (const Operation& operation : block) {
    const auto* const strips = std::get_if<Strips>(&operation);
    strips ? list_in_order(strips->body, all) : all.push_back(&operation);
  }
}

bool is_one_box(const Box& a, const Box& b) {
  return a.starts == b.starts && a.limits == b.limits && a.sizes == b.sizes;
}

// Whether the block loads what it stores at its end, and nothing else of the two tensors. Then what
// it has loaded may lie where it stores.
bool ends_with_store(const Block& block, const Accesses& accesses) {
  std::vector<const Operation*> all;
  list_in_order(block, all);
  std::size_t loads = 0;
  bool is_stored = false, ends = true;
  for (const Operation* const operation : all) {
    const auto* const load = std::get_if<Load>(operation);
    const auto* const store = std::get_if<Store>(operation);
    const auto is_of = [](const std::vector<const Box*>& boxes, const Box* box) {
      return std::find(boxes.begin(), boxes.end(), box) != boxes.end();
    };
    const bool is_of_scalars = std::holds_alternative<Compute>(*operation) ||
                               std::holds_alternative<MoveScalar>(*operation);
    ends = ends && (!is_stored || is_of_scalars);
    is_stored = is_stored || (store && is_of(accesses.stores, &store->box));
    if (load && is_of(accesses.loads, &load->box)) ++loads;
  }
  return is_stored && ends && loads == accesses.loads.size();
}

bool is_read_behind(const Program& program, const Accesses& accesses) {
  const bool is_one = accesses.stores.size() == 1 &&
                      std::all_of(accesses.loads.begin(), accesses.loads.end(), [&](auto* load) {
                        return is_one_box(*load, *accesses.stores[0]);
                      });
  bool ends = ends_with_store(program.body, accesses);
  for_operations(program.body, [&](const Operation& operation) {
    const auto* const loop = std::get_if<For>(&operation);
    ends = ends || (loop && ends_with_store(loop->body, accesses));
  });
  return !is_one || !ends;
}

}  // namespace

std::vector<InPlace> find_in_place(const ir::Kernel& kernel, const Program& program) {
  std::vector<ir::Parameter::Kind> kinds;
  for (const ir::Parameter& parameter : kernel.parameters) {
    if (parameter.is_tensor()) kinds.push_back(parameter.kind);
  }
  const GridAxes axes(program);
  std::vector<InPlace> pairs;
  for (std::size_t input = 0; input < kinds.size(); ++input) {
    for (std::size_t output = 0; output < kinds.size(); ++output) {
      const bool is_stored =
          kinds[output] == ir::Parameter::Kind::out || kinds[output] == ir::Parameter::Kind::inout;
      if (kinds[input] != ir::Parameter::Kind::in || !is_stored) continue;
      const Accesses found =
          accesses_of(program, static_cast<TensorId>(input), static_cast<TensorId>(output));
      InPlace pair{input, output, 0, is_read_behind(program, found)};
      for (const Box* const store : found.stores) {
        const std::uint32_t stored = axes.of(store->starts);
        for (const Box* const load : found.loads) {
          pair.shared_along |= stored & ~axes.of(load->starts);
        }
        for (const LoadIndex* const load : found.indices) {
          pair.shared_along |= stored & ~axes.of(load->indices);
        }
      }
      pairs.push_back(pair);
    }
  }
  return pairs;
}

bool is_in_place(const InPlace& pair, const Arguments& arguments) {
  const TensorArgument& input = arguments.tensors[pair.input];
  const TensorArgument& output = arguments.tensors[pair.output];
  return input.data == output.data && ir::share_elements(input, output);
}

void check_in_place(const std::vector<InPlace>& pairs, const ir::Kernel& kernel,
                    const Arguments& arguments, const std::vector<std::int64_t>& grid) {
  for (const InPlace& pair : pairs) {
    bool is_shared = false;
    for (std::size_t axis = 0; axis < grid.size(); ++axis) {
      is_shared = is_shared || ((pair.shared_along >> axis & 1) != 0 && grid[axis] > 1);
    }
    if (!is_shared || !is_in_place(pair, arguments)) continue;
    std::vector<const ir::Parameter*> parameters;
    for (const ir::Parameter& parameter : kernel.parameters) {
      if (parameter.is_tensor()) parameters.push_back(&parameter);
    }
    const ir::Parameter &input = *parameters[pair.input], &output = *parameters[pair.output];
    Diagnostic(output.where, "tensor " + output.name + " is stored to, and tensor " + input.name +
                                 " lies in the same memory: blocks of the grid read of it what "
                                 "others store")
        .token(output.name)
        .note(input.where, input.name + " is declared")
        .fix("pass memory of its own for " + output.name)
        .raise();
  }
}

}  // namespace tilewright::cpu
