#include "passes/allocate_shared.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "support/diagnostic.h"
#include "target/target.h"

namespace tilewright::passes {
namespace {

using ir::Key;
using ir::Op;
using ir::Operation;

// Conversions of a role, which follow each other, lie in one place.
struct Place {
  std::vector<Operation*> operations;
  std::int64_t bytes = 0, alignment = 0;
  std::int64_t scratch = 0;  // 0: of none
};

Place measure(const ir::Kernel& kernel, const TargetLimits& limits, Operation& o) {
  if (o.op == Op::mbarriers) {
    const std::int64_t bytes = limits.barrier_bytes;
    return {{&o}, bytes * kernel.type(o.results[0]).shape[0], bytes};
  }
  const ir::SharedLayout& layout = o.attributes.shared_layout();
  // TMA and swizzled tiles repeat every 1024 bytes; 128 serve the rest.
  return {{&o},
          layout.size_bytes() * o.attributes.integer(Key::stages),
          std::max<std::int64_t>(layout.alignment(), 128),
          o.attributes.integer_or(Key::scratch, 0)};
}

void add(std::vector<Place>& places, Place place) {
  const auto same = std::find_if(places.begin(), places.end(), [&](const Place& p) {
    return p.scratch != 0 && p.scratch == place.scratch;
  });
  if (same == places.end()) return places.push_back(std::move(place));
  same->operations.push_back(place.operations[0]);
  same->bytes = std::max(same->bytes, place.bytes);
  same->alignment = std::max(same->alignment, place.alignment);
}

// All allocations may be held at once.
void check_tensor_memory(const ir::Kernel& kernel, const target::Target& target) {
  std::int64_t columns = 0;
  const Operation* last = nullptr;
  for (const Operation& o : kernel.body.body) {
    if (o.op != Op::tensor_memory) continue;
    columns += kernel.type(o.results[0]).shape[0];
    last = &o;
  }
  const std::int64_t available = target.limits.tensor_columns;
  if (columns <= available) return;
  Diagnostic error(last->where, "\"" + kernel.name + "\" takes " + std::to_string(columns) +
                                    " columns of tensor memory, and a multiprocessor of " +
                                    target.name + " has " + std::to_string(available));
  for (const Operation& o : kernel.body.body) {
    if (o.op != Op::tensor_memory) continue;
    error.note(o.where, std::to_string(kernel.type(o.results[0]).shape[0]) +
                            " columns: " + o.attributes.text(Key::name));
  }
  error.token("TensorMemory").fix("take fewer, or use columns again").raise();
}

}  // namespace

void allocate_shared(ir::Kernel& kernel) {
  const target::Target& target = target::target_of(kernel);
  check_tensor_memory(kernel, target);
  const TargetLimits& limits = target.limits;
  const target::Space& space = target.space(ir::Memory::shared);
  std::vector<Place> places;
  for (Operation& o : kernel.body.body) {
    if (o.op == Op::shared || o.op == Op::mbarriers) add(places, measure(kernel, limits, o));
  }
  // The most aligned first, so that nothing is lost between them.
  std::stable_sort(places.begin(), places.end(),
                   [](const Place& a, const Place& b) { return a.alignment > b.alignment; });
  std::int64_t end = 0;
  for (const Place& place : places) {
    end = (end + place.alignment - 1) / place.alignment * place.alignment;
    for (Operation* o : place.operations) o->attributes.set(Key::offset, end);
    end += place.bytes;
  }
  if (end > space.bytes) {
    std::sort(places.begin(), places.end(),
              [](const Place& a, const Place& b) { return a.bytes > b.bytes; });
    Diagnostic error(kernel.where, "\"" + kernel.name + "\" needs " + std::to_string(end) +
                                       " bytes of " + space.name + "; " + space.owner + " has " +
                                       std::to_string(space.bytes) + " on " + target.name);
    error.token(kernel.name);
    std::vector<SharedMemoryExceeded::Use> uses;
    for (const Place& place : places) {
      const ir::Attributes& attributes = place.operations[0]->attributes;
      const std::string stages =
          attributes.has(Key::stages)
              ? " (" + std::to_string(attributes.integer(Key::stages)) + " stages)"
              : "";
      uses.emplace_back(place.operations[0]->where, std::to_string(place.bytes) + " bytes: " +
                                                        attributes.text(Key::name) + stages);
      error.note(uses.back().first, uses.back().second);
    }
    error.fix("use smaller tiles or fewer stages");
    std::int64_t conversions = 0;
    for (const Place& place : places) {
      // What aligning them may cost comes on top.
      if (place.scratch != 0) conversions += place.bytes + limits.shared_alignment;
    }
    try {
      error.raise();
    } catch (const Error& raised) {
      throw SharedMemoryExceeded(raised, conversions, end - space.bytes, std::move(uses));
    }
  }
  kernel.shared_bytes = end;
}

}  // namespace tilewright::passes
