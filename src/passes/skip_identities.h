#pragma once

#include "ir/ir.h"

namespace tilewright::passes {

// Tile form: a product with a factor that a condition leaves at 1 is computed under the same
// condition, where the factor is smaller than the result. Must come after fold_accumulators, which
// looks for additions of the product.
void skip_identities(ir::Kernel& kernel);

}  // namespace tilewright::passes
