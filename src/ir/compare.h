#pragma once

#include "ir/operation_record.h"

namespace tilewright::ir {

// What a comparison says of two numbers.
template <typename T>
bool compare(Op comparison, T a, T b) {
  switch (as<ComparisonFunction>(comparison)) {
    case ComparisonFunction::lt:
      return a < b;
    case ComparisonFunction::le:
      return a <= b;
    case ComparisonFunction::eq:
      return a == b;
    case ComparisonFunction::ne:
      return a != b;
  }
  return false;
}

}  // namespace tilewright::ir
