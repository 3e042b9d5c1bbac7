#include "cpu/in_place.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "cpu/grid_axes.h"
#include "cpu/tile_uses.h"
#include "ir/overlap.h"
#include "support/diagnostic.h"

namespace tilewright::cpu {
namespace {

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

// Whether the block loads what it stores, and needs nothing of it behind the store. Then what it
// has loaded may lie where it stores.
bool ends_with_store(const Block& block, const Accesses& accesses) {
  std::vector<const Operation*> all;
  list_in_order(block, all);
  std::vector<TileId> loaded;  // and parts of it that are views
  std::size_t loads = 0;
  bool is_stored = false, ends = true;
  const auto is_loaded = [&](TileId tile) {
    return std::find(loaded.begin(), loaded.end(), tile) != loaded.end();
  };
  for (const Operation* const operation : all) {
    const auto* const load = std::get_if<Load>(operation);
    const auto* const store = std::get_if<Store>(operation);
    const auto is_of = [](const std::vector<const Box*>& boxes, const Box* box) {
      return std::find(boxes.begin(), boxes.end(), box) != boxes.end();
    };
    if (load && is_of(accesses.loads, &load->box)) {
      loaded.push_back(load->tile);
      ++loads;
      ends = ends && !is_stored;
    }
    const auto* const move = std::get_if<Move>(operation);
    if (move && move->is_factor && is_loaded(move->source)) loaded.push_back(move->result);
    const auto check = [&](TileId tile) { ends = ends && !(is_stored && is_loaded(tile)); };
    std::visit(TileUses{check, [](TileId) {}}, *operation);
    is_stored = is_stored || (store && is_of(accesses.stores, &store->box));
  }
  return is_stored && ends && loads == accesses.loads.size();
}

bool is_of_any(const Compute& compute, const std::vector<bool>& scalars) {
  return std::any_of(compute.operands.begin(), compute.operands.end(),
                     [&](ScalarId operand) { return operand != kNone && scalars[operand]; });
}

// Whether the scalars are others in each turn of the loop.
bool hang_on(const Program& program, const std::vector<ScalarId>& scalars, const For& loop) {
  std::vector<bool> depends(program.scalars.size(), false);
  depends[loop.index] = true;
  for (bool has_changed = true; has_changed;) {
    has_changed = false;
    for_operations(program.body, [&](const Operation& operation) {
      const auto* const compute = std::get_if<Compute>(&operation);
      if (compute == nullptr || depends[compute->result]) return;
      depends[compute->result] = is_of_any(*compute, depends);
      has_changed = has_changed || depends[compute->result];
    });
  }
  return std::any_of(scalars.begin(), scalars.end(),
                     [&](ScalarId scalar) { return scalar != kNone && depends[scalar]; });
}

// Whether each turn of the loops around the store stores elsewhere. False where they do not hold
// it.
bool stores_once(const Program& program, const Block& block, const Box& stored) {
  bool found = false;
  for (const Operation& operation : block) {
    if (const auto* const store = std::get_if<Store>(&operation)) {
      found = found || &store->box == &stored;
    } else if (const auto* const strips = std::get_if<Strips>(&operation)) {
      found = found || stores_once(program, strips->body, stored);
    } else if (const auto* const loop = std::get_if<For>(&operation)) {
      found = found ||
              (stores_once(program, loop->body, stored) && hang_on(program, stored.starts, *loop));
    } else if (const auto* const choice = std::get_if<If>(&operation)) {
      found = found || stores_once(program, choice->then, stored) ||
              stores_once(program, choice->otherwise, stored);
    }
  }
  return found;
}

// Whether blocks load nothing but what they store themselves, and before they do.
bool loads_what_it_stores(const Program& program, const Accesses& accesses) {
  if (accesses.loads.empty() && accesses.indices.empty()) return true;
  if (accesses.stores.empty()) return true;
  if (!accesses.indices.empty() || accesses.stores.size() != 1) return false;
  const Box& stored = *accesses.stores[0];
  const bool is_one = std::all_of(accesses.loads.begin(), accesses.loads.end(),
                                  [&](const Box* load) { return is_one_box(*load, stored); });
  if (!is_one || !stores_once(program, program.body, stored)) return false;
  bool ends = ends_with_store(program.body, accesses);
  for_operations(program.body, [&](const Operation& operation) {
    const auto* const loop = std::get_if<For>(&operation);
    ends = ends || (loop && ends_with_store(loop->body, accesses));
  });
  return ends;
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
      InPlace pair{input, output, 0, !loads_what_it_stores(program, found)};
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

namespace {

bool is_in_place(const InPlace& pair, const Arguments& arguments) {
  const TensorArgument& input = arguments.tensors[pair.input];
  const TensorArgument& output = arguments.tensors[pair.output];
  return input.data == output.data && ir::share_elements(input, output);
}

// All elements from this axis on, row by row.
void copy(const TensorArgument& from, std::size_t axis, const std::byte* data, std::byte*& to) {
  const std::int64_t bytes = from.element_bytes();
  if (axis == from.shape.size()) {
    to = std::copy_n(data, bytes, to);
    return;
  }
  if (axis + 1 == from.shape.size() && from.strides[axis] == 1) {
    to = std::copy_n(data, from.shape[axis] * bytes, to);
    return;
  }
  for (std::int64_t i = 0; i < from.shape[axis]; ++i) {
    copy(from, axis + 1, data + i * from.strides[axis] * bytes, to);
  }
}

}  // namespace

std::optional<CopiedInputs> copy_inputs(const std::vector<InPlace>& pairs,
                                        const Arguments& arguments) {
  std::optional<CopiedInputs> copied;
  for (const InPlace& pair : pairs) {
    if (!is_in_place(pair, arguments)) continue;
    const TensorArgument& input = arguments.tensors[pair.input];
    const TensorArgument& output = arguments.tensors[pair.output];
    if (input.strides == output.strides && !pair.needs_copy) continue;
    if (!copied) copied = {arguments, {}};
    TensorArgument& changed = copied->arguments.tensors[pair.input];
    if (changed.data != input.data) continue;  // of another output
    std::size_t bytes = static_cast<std::size_t>(input.element_bytes());
    for (const std::int64_t size : input.shape) bytes *= static_cast<std::size_t>(size);
    constexpr std::size_t kLine = 64;
    std::vector<std::byte>& memory = copied->memory.emplace_back(bytes + kLine);
    const auto past = reinterpret_cast<std::uintptr_t>(memory.data()) % kLine;
    changed.data = memory.data() + (kLine - past) % kLine;
    changed.strides = row_major_strides(input.shape);
    std::byte* to = changed.data;
    copy(input, 0, input.data, to);
  }
  return copied;
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
