#pragma once

#include <cstdint>

// What references spend their time with, compiled for the vectors that the machine has.
namespace tilewright::kernels {

double product_of_rows(const double* a, const double* b, std::int64_t count);
// Adds `factor` times the row to the sums.
void add_times(double factor, const double* row, double* sums, std::int64_t count);

}  // namespace tilewright::kernels
