#pragma once

#include <string>
#include <vector>

#include "tilewright/dim.h"
#include "tilewright/error.h"

namespace tilewright {

// Raises unless it is an identifier: names are words of the text of kernels and programs, and of
// CUDA C++. `what` is the function that was given it.
void check_name(const std::string& name, const char* what, SourceLocation where);

// Adds a symbol to those of a kernel or a program. Raises for a name that is taken, or that only
// the runtime gives a value, and for facts that no size fits.
Dim declare_dim(std::vector<Dim>& known, std::string name, DimFacts facts, SourceLocation where);

}  // namespace tilewright
