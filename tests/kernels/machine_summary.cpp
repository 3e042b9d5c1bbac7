#include "kernels/machine_summary.h"

#include <fmt/format.h>

#include <map>
#include <vector>

namespace tilewright::kernels {
namespace {

using ir::Key;
using ir::Op;
using ir::Operation;

std::string joined(const std::vector<std::string>& parts) {
  return fmt::format("{}", fmt::join(parts, ", "));
}

// An operation with what sets it apart from others of its name; empty for index arithmetic, which
// changes with every pass and which nobody would read.
std::string called(const Operation& o) {
  const ir::OpInfo& record = ir::info(o.op);
  const std::string name(record.name);
  const ir::Attributes& attributes = o.attributes;
  if (record.elementwise() || record.family == ir::Family::constant || o.op == Op::yield ||
      record.family == ir::Family::position || o.op == Op::registers) {
    return {};
  }
  if (record.family == ir::Family::product) {
    return fmt::format("{} n{} k{}", name, attributes.integer(Key::n), attributes.integer(Key::k));
  }
  if (attributes.has(Key::threads)) {
    return fmt::format("{} of {}", name, attributes.integer(Key::threads));
  }
  if (attributes.has(Key::bytes)) {
    return fmt::format("{} of {} bytes", name, attributes.integer(Key::bytes));
  }
  // How many arrays it keeps in their registers.
  const bool keeps = o.op == Op::wgmma_fence || o.op == Op::wgmma_wait;
  const std::string pins = keeps ? fmt::format(" with {} pinned", o.operands.size()) : "";
  const bool waits = o.op == Op::wgmma_wait || o.op == Op::bulk_wait;
  return name + (waits ? fmt::format(" to {}", attributes.integer(Key::count)) : "") + pins;
}

std::string counted(const ir::Block& block) {
  std::map<std::string, int> counts;
  ir::for_each(block, [&](const Operation& o) {
    const std::string name = called(o);
    if (!name.empty()) ++counts[name];
  });
  std::vector<std::string> parts;
  for (const auto& [name, times] : counts) parts.push_back(fmt::format("{} {}", times, name));
  return joined(parts);
}

std::string place(const ir::Kernel& machine, const Operation& o) {
  const std::string& name = o.attributes.text(Key::name);
  const ir::Type& type = machine.type(o.results[0]);
  if (o.op == Op::mbarriers) {
    return fmt::format("{} {} of {}", name, type.shape[0], o.attributes.integer(Key::arrivals));
  }
  if (o.op == Op::tensor_map) {
    return fmt::format("{} swizzled by {}", name, o.attributes.integer(Key::swizzle));
  }
  return fmt::format("{} {} {}", name, name_of(type.dtype), fmt::join(type.shape, "x"));
}

}  // namespace

std::string summary_of(const ir::Kernel& machine) {
  std::string text = fmt::format("  {} threads, clusters of {}, {} bytes of shared memory",
                                 machine.threads, machine.cluster, machine.shared_bytes);
  for (const Dim& extent : machine.grid) text += fmt::format(", grid {}", extent.to_string());
  text += "\n";
  std::vector<std::string> shared, barriers, maps;
  ir::Block outside;
  for (const Operation& o : machine.body.body) {
    if (o.op == Op::shared) shared.push_back(place(machine, o));
    if (o.op == Op::mbarriers) barriers.push_back(place(machine, o));
    if (o.op == Op::tensor_map) maps.push_back(place(machine, o));
    if (!ir::info(o.op).is_place() && o.op != Op::role) outside.body.push_back(o);
  }
  if (!shared.empty()) text += fmt::format("  shared memory: {}\n", joined(shared));
  if (!barriers.empty()) text += fmt::format("  barriers: {}\n", joined(barriers));
  if (!maps.empty()) text += fmt::format("  tensor maps: {}\n", joined(maps));
  if (const std::string all = counted(outside); !all.empty()) {
    text += fmt::format("  all warps: {}\n", all);
  }
  for (const Operation& o : machine.body.body) {
    if (o.op != Op::role) continue;
    const std::int64_t first = o.attributes.integer(Key::first_warp);
    text += fmt::format("  {}, warps {} to {}, {} registers: {}\n", o.attributes.text(Key::name),
                        first, first + o.attributes.integer(Key::warps) - 1,
                        o.attributes.integer(Key::registers), counted(o.blocks[0]));
  }
  return text;
}

}  // namespace tilewright::kernels
