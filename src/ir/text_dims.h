#pragma once

#include <string_view>
#include <vector>

#include "ir/text_scanner.h"
#include "tilewright/dim.h"

// Dims as texts of kernels and programs have them.
namespace tilewright::ir {

// A new symbol, behind the word "dim"; text_words.h writes it.
Dim read_dim_clause(Scanner& in, const std::vector<Dim>& known);
// An expression that ends before one of `ends`.
Dim read_dim(Scanner& in, std::string_view ends, const std::vector<Dim>& known);
// A list of them, from `begin` through `end`.
std::vector<Dim> read_dims(Scanner& in, char begin, char end, const std::vector<Dim>& known);

}  // namespace tilewright::ir
