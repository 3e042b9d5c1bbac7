#include "ir/claim.h"

#include <fmt/format.h>

#include <iterator>

namespace tilewright {
namespace {

constexpr std::string_view kFigures[] = {"registers",    "stack_bytes", "spill_bytes",
                                         "shared_bytes", "stages",      "instructions"};

}  // namespace

std::string Claim::to_string() const {
  const std::string subject = ir::is_named(figure)
                                  ? fmt::format("{}(\"{}\")", ir::name_of(figure), name)
                                  : std::string(ir::name_of(figure));
  return fmt::format("{} {} {}", subject, ir::symbol_of(relation), bound);
}

bool Claim::holds_of(std::int64_t found) const {
  switch (relation) {
    case Relation::at_most:
      return found <= bound;
    case Relation::at_least:
      return found >= bound;
    case Relation::equal:
      break;
  }
  return found == bound;
}

namespace ir {

std::string_view name_of(Claim::Figure figure) { return kFigures[static_cast<int>(figure)]; }

std::optional<Claim::Figure> find_figure(std::string_view name) {
  for (std::size_t i = 0; i < std::size(kFigures); ++i) {
    if (kFigures[i] == name) return static_cast<Claim::Figure>(i);
  }
  return std::nullopt;
}

std::string_view symbol_of(Claim::Relation relation) {
  constexpr std::string_view symbols[] = {"<=", ">=", "=="};
  return symbols[static_cast<int>(relation)];
}

bool is_named(Claim::Figure figure) {
  return figure == Claim::Figure::stages || figure == Claim::Figure::instructions;
}

bool equal(const Claim& a, const Claim& b) {
  return a.figure == b.figure && a.name == b.name && a.relation == b.relation && a.bound == b.bound;
}

}  // namespace ir
}  // namespace tilewright
