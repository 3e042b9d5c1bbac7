#include "passes/place_memories.h"

#include <string>

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
  for (const Operation& o : kernel.body.body) {
    if (!is_in(o, space)) continue;
    const std::int64_t stages = o.attributes.integer(Key::stages);
    error.note(o.where, std::to_string(bytes_of(kernel, space, o)) +
                            " bytes: " + o.attributes.text(Key::name) +
                            (stages > 1 ? " (" + std::to_string(stages) + " stages)" : ""));
  }
  error.token('"' + name + '"').fix("use smaller matrices or fewer stages").raise();
}

}  // namespace

void place_memories(ir::Kernel& kernel) {
  const target::Target& target = target::target_of(kernel);
  for (const target::CoreSpace& space : target.core->spaces) {
    std::int64_t end = 0;
    for (Operation& o : kernel.body.body) {
      if (!is_in(o, space)) continue;
      o.attributes.set(Key::offset, end);
      end += bytes_of(kernel, space, o);
      if (end > space.bytes) refuse(kernel, target, space, o, end);
    }
  }
  kernel.form = ir::Form::machine;
}

}  // namespace tilewright::passes
