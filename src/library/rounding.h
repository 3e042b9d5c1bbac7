#pragma once

#include <vector>

#include "library/workload.h"

// What a kernel rounds beside the results that it stores, as far as its tile-level definition or
// the sizes of its products say so.
namespace tilewright::library {

// The coarsest rounding of what products take, such as the weights of attention; 0 without any.
double rounding_of_operands(const Workload& workload);

// How far such roundings take a row of so many elements at most, relative to the row.
double error_of_terms(double rounding, double row);

// Relative root mean square of what tensor cores lose in sums of products of 8-bit floats; 0
// without any.
double error_of_byte_products(const Workload& workload);

// Of each output, what its errors are relative to at least.
std::vector<double> least_magnitudes(const Workload& workload);

}  // namespace tilewright::library
