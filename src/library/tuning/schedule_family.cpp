#include "library/tuning/schedule_family.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "compiler/compile_to_machine.h"
#include "ir/schedule.h"
#include "ir/text.h"
#include "library/schedule_rules.h"
#include "library/stated_schedule.h"
#include "support/diagnostic.h"

namespace tilewright::library {
namespace {

// Beyond these nothing has been seen to gain.
const std::pair<const char*, std::vector<const char*>> kTried[] = {
    {"stages", {"1", "2", "3", "4", "5", "6", "8"}},
    {"warpgroups", {"1", "2", "3", "4", "8"}},
    {"partition", {"rows", "columns"}},
    {"ctas", {"1", "2", "3", "4", "6", "8"}},
    {"overlap", {"true", "false"}},
};

using Fields = std::vector<std::pair<std::string, std::string>>;

std::string name_of(const Fields& fields) {
  std::string name;
  for (const auto& [field, value] : fields) {
    name += fmt::format("{}{}={}", name.empty() ? "" : " ", field, value);
  }
  return name.empty() ? kCompilersChoice : name;
}

class Search {
 public:
  Search(const KernelSource& source, const OptionValues& options, const compiler::Target& target)
      : source_(source), options_(options), target_(target) {}

  ScheduleFamily run() {
    attempt({});
    std::vector<std::pair<std::string, std::vector<const char*>>> open;
    for (const auto& [field, values] : kTried) {
      if (options_.has(std::string(kFieldPrefix) + field)) continue;
      open.emplace_back(field, std::vector<const char*>());
      for (const char* value : values) {
        if (attempt({{field, value}})) open.back().second.push_back(value);
      }
    }
    combine(open, 0, {});
    return std::move(family_);
  }

 private:
  void combine(const std::vector<std::pair<std::string, std::vector<const char*>>>& open,
               std::size_t next, const Fields& fields) {
    if (next == open.size()) {
      if (fields.size() > 1) attempt(fields);
      return;
    }
    combine(open, next + 1, fields);
    for (const char* value : open[next].second) {
      Fields more = fields;
      more.emplace_back(open[next].first, value);
      combine(open, next + 1, more);
    }
  }

  // Whether it is a new member. The compiler's choice has to compile.
  bool attempt(const Fields& fields) {
    FamilyMember member{name_of(fields), target_.arch, {nullptr, options_, ""}, nullptr};
    for (const auto& [field, value] : fields) {
      member.choice.options.set(std::string(kFieldPrefix) + field, value);
    }
    auto lowered = std::make_unique<FamilyMember::Lowered>();
    try {
      const ir::Kernel traced = source_.traced(member.choice.options, target_);
      lowered->machine.push_back(compiler::compile_to_machine(traced, target_.arch).kernel);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::usage || fields.empty()) throw;
      family_.refused.push_back({member.name, error.message()});
      return false;
    }
    if (!forms_.insert(ir::form_hash(lowered->machine.front())).second) return false;
    member.lowered = std::move(lowered);
    family_.members.push_back(std::move(member));
    return true;
  }

  const KernelSource& source_;
  const OptionValues& options_;
  const compiler::Target& target_;
  ScheduleFamily family_;
  std::set<std::uint64_t> forms_;
};

}  // namespace

ScheduleFamily schedule_family(const KernelSource& source, const OptionValues& options,
                               const compiler::Target& target) {
  return Search(source, options, target).run();
}

}  // namespace tilewright::library
