#include "passes/place_memories.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "passes/core_lives.h"
#include "support/diagnostic.h"
#include "target/core.h"
#include "target/target.h"

namespace tilewright::passes {
namespace {

using ir::Key;
using ir::Operation;

std::int64_t bytes_of(const ir::Kernel& kernel, const target::CoreSpace& space,
                      const Operation& memory) {
  const ir::Type& type = kernel.type(memory.results[0]);
  return type.shape[0] * target::matrix_bytes(space, {type.shape[1], type.shape[2], type.dtype});
}

bool is_in(const Operation& o, const target::CoreSpace& space) {
  return o.op == ir::Op::memory && o.attributes.text(Key::space) == space.name;
}

[[noreturn]] void refuse(const ir::Kernel& kernel, const target::Target& target,
                         const target::CoreSpace& space, const Operation& last,
                         std::int64_t wanted) {
  const std::string per = space.partitions > 1 ? " in each partition" : "";
  const std::string& name = last.attributes.text(Key::name);
  Diagnostic error(last.where, "\"" + name + "\": " + std::to_string(wanted) + " bytes of " +
                                   space.name + per + " are taken with it, and " + target.name +
                                   " has " + std::to_string(space.bytes));
  std::map<std::int64_t, std::string> at;
  for (const Operation& o : kernel.body.body) {
    if (!is_in(o, space)) continue;
    const std::int64_t stages = o.attributes.integer(Key::stages);
    std::string text = std::to_string(bytes_of(kernel, space, o)) +
                       " bytes: " + o.attributes.text(Key::name) +
                       (stages > 1 ? " (" + std::to_string(stages) + " stages)" : "");
    if (o.attributes.has(Key::offset)) {
      const auto [first, is_first] =
          at.emplace(o.attributes.integer(Key::offset), o.attributes.text(Key::name));
      if (!is_first) text += ", in the place of " + first->second;
    }
    error.note(o.where, text);
  }
  error.token('"' + name + '"').fix("use smaller matrices or fewer stages").raise();
}

// One behind the other. The end of all.
std::int64_t place_apart(ir::Kernel& kernel, const target::CoreSpace& space) {
  std::int64_t end = 0;
  for (Operation& o : kernel.body.body) {
    if (!is_in(o, space)) continue;
    o.attributes.set(Key::offset, end);
    end += bytes_of(kernel, space, o);
  }
  return end;
}

// Each as low as those let it whose lives are not over before its own begins, or the other way
// round.
void place_by_lives(ir::Kernel& kernel, const target::Target& target,
                    const target::CoreSpace& space) {
  struct Placed {
    const Operation* memory;
    std::int64_t begin, end;
  };
  const CoreLives lives(kernel, *target.core);
  std::vector<Placed> placed;
  std::int64_t end = 0;
  for (Operation& o : kernel.body.body) {
    if (is_in(o, space)) o.attributes.erase(Key::offset);
  }
  for (Operation& o : kernel.body.body) {
    if (!is_in(o, space)) continue;
    const std::int64_t bytes = bytes_of(kernel, space, o);
    std::int64_t at = 0;
    for (bool moved = true; moved;) {
      moved = false;
      for (const Placed& other : placed) {
        const bool meets = at < other.end && other.begin < at + bytes;
        if (!meets || lives.may_share(*other.memory, o)) continue;
        at = other.end;
        moved = true;
      }
    }
    o.attributes.set(Key::offset, at);
    placed.push_back({&o, at, at + bytes});
    end = std::max(end, at + bytes);
    if (end > space.bytes) refuse(kernel, target, space, o, end);
  }
}

}  // namespace

void place_memories(ir::Kernel& kernel) {
  const target::Target& target = target::target_of(kernel);
  for (const target::CoreSpace& space : target.core->spaces) {
    if (place_apart(kernel, space) > space.bytes) place_by_lives(kernel, target, space);
  }
  kernel.form = ir::Form::machine;
}

}  // namespace tilewright::passes
