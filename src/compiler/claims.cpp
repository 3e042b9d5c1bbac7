#include "compiler/claims.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "compiler/build.h"
#include "ir/claim.h"
#include "tilewright/target.h"

namespace tilewright::compiler {
namespace {

using Figure = Claim::Figure;

// What does not become an instruction of the GPU.
bool is_structure(const ir::Operation& operation) {
  static const std::set<ir::Op> kStructure = {
      ir::Op::constant, ir::Op::dim,       ir::Op::for_loop,  ir::Op::while_loop,
      ir::Op::if_then,  ir::Op::yield,     ir::Op::role,      ir::Op::elect,
      ir::Op::shared,   ir::Op::mbarriers, ir::Op::registers, ir::Op::tensor_map};
  return kStructure.count(operation.op) != 0;
}

// Of the place, or of the ring: it may have several tiles, and always has a barrier for each stage.
std::int64_t stages_of(const Claim& claim, const ir::Kernel& machine) {
  constexpr std::string_view full = "_full";
  std::vector<std::string> known;
  for (const ir::Operation& operation : machine.body.body) {
    std::string name;
    std::int64_t stages = 0;
    if (operation.op == ir::Op::shared) {
      name = operation.attributes.text(ir::Key::name);
      stages = operation.attributes.integer(ir::Key::stages);
    } else if (operation.op == ir::Op::mbarriers) {
      name = operation.attributes.text(ir::Key::name);
      if (name.size() <= full.size() || !name.ends_with(full)) continue;
      name.resize(name.size() - full.size());
      stages = machine.type(operation.results[0]).elements();
    } else {
      continue;
    }
    if (name == claim.name) return stages;
    if (std::count(known.begin(), known.end(), name) == 0) known.push_back(name);
  }
  Diagnostic(claim.where, fmt::format("require: {} has no ring or shared tile named \"{}\"",
                                      machine.name, claim.name))
      .token(claim.name)
      .fix(known.empty() ? "leave the claim out: the kernel uses no shared memory"
                         : fmt::format("name one of: {}", fmt::join(known, ", ")))
      .raise();
}

std::optional<std::int64_t> found_value(const Claim& claim, const ir::Kernel& machine,
                                        const runtime::FunctionResources* resources) {
  const auto known = [](int value) {
    return value < 0 ? std::nullopt : std::optional<std::int64_t>(value);
  };
  switch (claim.figure) {
    case Figure::shared_bytes:
      return machine.shared_bytes;
    case Figure::stages:
      return stages_of(claim, machine);
    case Figure::instructions:
      break;
    case Figure::registers:
      return resources ? known(resources->registers) : std::nullopt;
    case Figure::stack_bytes:
      return resources ? known(resources->stack_bytes) : std::nullopt;
    case Figure::spill_bytes:
      return resources ? known(resources->spill_bytes()) : std::nullopt;
  }
  const auto counts = count_instructions(machine);
  const auto at = counts.find(claim.name);
  return at == counts.end() ? 0 : at->second;
}

std::string fix_for(const Claim& claim, std::int64_t found, const ir::Kernel& machine) {
  const bool too_many = found > claim.bound;
  switch (claim.figure) {
    case Figure::registers:
      return too_many ? "a smaller tile, more warpgroups to share its rows, or fewer values that "
                        "live at once"
                      : "claim what it takes";
    case Figure::stack_bytes:
    case Figure::spill_bytes:
      return "keep fewer values in registers (a smaller tile, more warpgroups, a larger register "
             "budget for the role), and index register arrays with constants only";
    case Figure::shared_bytes:
      return "fewer stages in the largest ring, or a smaller tile";
    case Figure::stages:
      return too_many ? "claim fewer, or give the ring fewer"
                      : fmt::format(
                            "make room for more: a smaller tile, or fewer stages elsewhere; "
                            "the kernel takes {} of the {} bytes of a CTA",
                            machine.shared_bytes, target_limits(machine.target).shared_bytes);
    case Figure::instructions:
      break;
  }
  if (claim.name == "convert" && too_many) {
    return "let tiles that meet be made alike: `tilewright explain` (or explain_json) names the "
           "lines at which they are not";
  }
  const std::optional<ir::Op> op = ir::find_op(claim.name);
  const bool is_product = op && ir::info(*op).family == ir::Family::product && !too_many;
  if (is_product && ir::info(*op).reads(ir::Memory::registers, ir::Proxy::async)) {
    return "a product takes its first operand from registers when a tile that was computed, or "
           "loaded to registers, is given to it";
  }
  if (is_product) {
    return "a product takes its first operand from shared memory when a tile that was loaded "
           "there is given to it";
  }
  return "see where each operation comes from with `tilewright explain --dump`, or change the "
         "claim";
}

// The word of the author's line to point at: wgmma_rs stands for itself.
std::string token_of(const Claim& claim) {
  if (claim.figure == Figure::instructions || claim.figure == Figure::stages) return claim.name;
  if (claim.relation != Claim::Relation::equal || claim.bound != 0) {
    return std::string(ir::name_of(claim.figure));
  }
  if (claim.figure == Figure::stack_bytes) return "no_stack";
  if (claim.figure == Figure::spill_bytes) return "no_spills";
  return std::string(ir::name_of(claim.figure));
}

}  // namespace

std::map<std::string, std::int64_t> count_instructions(const ir::Kernel& kernel) {
  std::map<std::string, std::int64_t> counts;
  if (const std::size_t converted = conversions_in(kernel).size(); converted != 0) {
    counts["convert"] = static_cast<std::int64_t>(converted);
  }
  ir::for_each(kernel.body, [&](const ir::Operation& operation) {
    if (is_structure(operation)) return;
    const ir::OpInfo& record = ir::info(operation.op);
    ++counts[std::string(record.name)];
    if (record.made_of) ++counts[std::string(ir::info(*record.made_of).name)];
  });
  return counts;
}

std::vector<CheckedClaim> check_claims(const ir::Kernel& machine,
                                       const runtime::FunctionResources* resources) {
  std::vector<CheckedClaim> checked;
  for (const Claim& claim : machine.claims) {
    checked.push_back({claim, found_value(claim, machine, resources)});
  }
  return checked;
}

Diagnostic diagnostic_of(const CheckedClaim& checked, const ir::Kernel& machine) {
  const Claim& claim = checked.claim;
  Diagnostic text(claim.where, fmt::format("require: {}: {}, and it is {}", machine.name,
                                           claim.to_string(), *checked.found));
  text.token(token_of(claim)).fix(fix_for(claim, *checked.found, machine));
  return text;
}

void enforce_claims(const ir::Kernel& machine, const runtime::FunctionResources* resources) {
  for (const CheckedClaim& checked : check_claims(machine, resources)) {
    if (!checked.holds()) diagnostic_of(checked, machine).raise();
  }
}

}  // namespace tilewright::compiler
