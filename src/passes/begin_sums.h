#pragma once

#include "ir/ir.h"

namespace tilewright::passes {

// Numerics: dot(a, b) - d becomes dot(a, b, 0 - d), where d is a column, or a row that there are
// registers for before the products begin, and the product has no other use. So nothing is left to
// subtract when the product is over. Returns how many. Must come after what asks for products that
// begin with nothing, and before issue_products.
int begin_sums(ir::Kernel& kernel);

}  // namespace tilewright::passes
