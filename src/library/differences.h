#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "library/workload.h"

// Whether two executions of a kernel gave the same: bit by bit, or but for the order of sums.
namespace tilewright::library {

// Of an element by its number: "[0, 3]".
std::string index_text(const std::vector<std::int64_t>& shape, std::int64_t index);

// How far elements may be apart that are sums of terms in any order, or follow from such: relative
// to the larger of an element and the root mean square of all. 0 of integers.
double bound_of_any_order(DType dtype);

// The first element that is further from `wanted` than the bound. What is no number in both is the
// same, and so are zeros of both signs.
std::optional<std::size_t> first_apart(DType dtype, std::span<const std::byte> got,
                                       std::span<const std::byte> wanted, double bound);

// The first element of an output that is not, bit by bit, that of another execution: "C[0, 3] is 1,
// and 2 `of_what`". Outputs of these names may differ by bound_of_any_order(). Empty: there is
// none.
std::string first_difference(const Workload& workload, const Workload& other,
                             const std::string& of_what,
                             const std::set<std::string>& in_any_order = {});

}  // namespace tilewright::library
