#pragma once

#include <optional>
#include <string_view>

#include "tilewright/require.h"

// Claims as text: `registers <= 168`, `stages("K") >= 2`.
namespace tilewright::ir {

std::string_view name_of(Claim::Figure figure);
std::optional<Claim::Figure> find_figure(std::string_view name);
std::string_view symbol_of(Claim::Relation relation);
// Whether a claim about it names an instruction or a place.
bool is_named(Claim::Figure figure);

// Same claim, wherever it was made.
bool equal(const Claim& a, const Claim& b);

}  // namespace tilewright::ir
