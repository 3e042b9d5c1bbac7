#include "language/names.h"

#include <utility>

#include "ir/dim_values.h"
#include "ir/ir.h"
#include "support/characters.h"
#include "support/diagnostic.h"
#include "support/escape.h"

namespace tilewright {

void check_name(const std::string& name, const char* what, SourceLocation where) {
  if (is_identifier(name)) return;
  Diagnostic(where, std::string(what) + ": \"" + escaped_comment(name) + "\" is no name")
      .token(what)
      .fix("take letters, digits and _, and begin with a letter")
      .raise();
}

Dim declare_dim(std::vector<Dim>& known, std::string name, DimFacts facts, SourceLocation where) {
  check_name(name, "dim", where);
  if (name == ir::kRanks || name == ir::kMultiprocessors) {
    const std::string function = name == ir::kRanks ? "kernel.ranks()" : "multiprocessors()";
    Diagnostic(where, "dim: \"" + name + "\" is what " + function + " gives")
        .token("dim")
        .fix("take " + function + ", or another name")
        .raise();
  }
  for (const Dim& other : known) {
    if (other.name() == name) {
      Diagnostic(where, "dim: \"" + name + "\" is declared twice")
          .token("dim")
          .fix("use the Dim that the first declaration gave")
          .raise();
    }
  }
  if (!ir::are_possible(facts)) {
    Diagnostic(where, "dim: impossible facts of \"" + name + "\": multiple of " +
                          std::to_string(facts.multiple) + ", from " +
                          std::to_string(facts.minimum) + " to " + std::to_string(facts.maximum))
        .token("dim")
        .fix("take facts that a size of 0 to 2^31 - 1 has")
        .raise();
  }
  known.push_back(Dim::symbol(std::move(name), facts));
  return known.back();
}

}  // namespace tilewright
