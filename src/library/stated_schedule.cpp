#include "library/stated_schedule.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ir/schedule.h"
#include "support/diagnostic.h"

namespace tilewright::library {
namespace {

// "NAME.stages" behind the prefix; the name is "" where there is none.
std::string kernel_of(std::string_view option) {
  option.remove_prefix(kFieldPrefix.size());
  const std::size_t dot = option.rfind('.');
  return std::string(option.substr(0, dot == std::string_view::npos ? 0 : dot));
}

void state(Schedule& schedule, std::string_view option, const std::string& value) {
  ir::state_field(schedule, option.substr(option.rfind('.') + 1), value, {});
  ir::check_ranges(schedule);
}

bool has_products(const ir::Kernel& kernel) {
  bool products = false;
  ir::for_each(kernel.body, [&](const ir::Operation& o) { products |= o.op == ir::Op::dot; });
  return products;
}

}  // namespace

std::string checked_field(const std::string& option, const std::string& value) {
  Schedule schedule;
  state(schedule, option, value);
  return ir::stated_fields(schedule).front().value;
}

void check_fields(const OptionValues& options, const compiler::Target& target) {
  if (target.kind != compiler::Target::Kind::cpu) return;
  for (const auto& [option, value] : options.all()) {
    if (!is_field(option)) continue;
    Diagnostic({},
               fmt::format("{} = {}: the target cpu has no fields of a schedule", option, value))
        .fix("leave it out, or name the target that it is for, such as sm_90a or sim:sm_90a")
        .raise();
  }
}

Schedule stated_schedule(const OptionValues& options) {
  Schedule schedule;
  for (const auto& [option, value] : options.all()) {
    if (!is_field(option)) continue;
    if (!kernel_of(option).empty()) {
      Diagnostic({}, fmt::format("{} = {}: it names a kernel of a program, and this is no program",
                                 option, value))
          .fix(fmt::format("state {}{}", kFieldPrefix, option.substr(option.rfind('.') + 1)))
          .raise();
    }
    state(schedule, option, value);
  }
  return schedule;
}

ProgramFields::ProgramFields(const OptionValues& options) {
  for (const auto& [option, value] : options.all()) {
    if (!is_field(option)) continue;
    fields_.push_back({kernel_of(option), option.substr(option.rfind('.') + 1), value});
  }
}

Schedule ProgramFields::of(const ir::Kernel& kernel) const {
  Schedule named, others;
  for (const Field& field : fields_) {
    if (field.kernel == kernel.name) state(named, field.name, field.value);
    if (field.kernel.empty() && has_products(kernel)) state(others, field.name, field.value);
  }
  return ir::merged(named, others);
}

void ProgramFields::check(const ir::Program& program) const {
  std::vector<std::string> all, with_products;
  for (const auto& kernel : program.kernels) {
    if (kernel->form != ir::Form::tile) continue;
    all.push_back(kernel->name);
    if (has_products(*kernel)) with_products.push_back(kernel->name);
  }
  for (const Field& field : fields_) {
    const bool is_named = !field.kernel.empty();
    if (is_named ? std::count(all.begin(), all.end(), field.kernel) != 0
                 : with_products.size() == 1) {
      continue;
    }
    const std::vector<std::string>& known = with_products.empty() ? all : with_products;
    const std::string which =
        is_named ? fmt::format("no kernel '{}' of the tile level", field.kernel)
        : with_products.empty()
            ? "no kernel of the tile level with products"
            : fmt::format("{} kernels of the tile level with products", with_products.size());
    Diagnostic({}, fmt::format("schedule: {} = {}: {} has {}", field.name, field.value,
                               program.name, which))
        .fix(with_products.empty()
                 ? "set schedule=tile: its explicit schedules say all of this themselves"
                 : fmt::format("name one of {}: set {}{}.{}={}", fmt::join(known, ", "),
                               kFieldPrefix, known.front(), field.name, field.value))
        .raise();
  }
}

}  // namespace tilewright::library
