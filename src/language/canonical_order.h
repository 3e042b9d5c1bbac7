#pragma once

#include "ir/ir.h"

namespace tilewright {

// Puts what C++ evaluates in an order of the compiler's choice, operands and arguments, into one
// order, so that every compiler's build records the same. Operations with effects keep their order.
// Pure scalars go before their first use; pure tiles stay between the effects they were written
// between, in the order in which they are first needed. What nothing needs is dropped.
void order_canonically(ir::Kernel& kernel);

}  // namespace tilewright
