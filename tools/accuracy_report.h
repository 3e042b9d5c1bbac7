#pragma once

#include <nlohmann/json_fwd.hpp>

#include "library/accuracy.h"

// How the command tells of results that were compared.
namespace tilewright::tools {

// A line for each output, and below one that is wrong its worst element.
void print_comparison(const library::Comparison& comparison);

// Of each output its errors and what is allowed; null is an infinite error.
nlohmann::ordered_json json_of(const library::Comparison& comparison);

}  // namespace tilewright::tools
