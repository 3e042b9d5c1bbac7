#include "schedules/followed_scalars.h"

#include <algorithm>
#include <cstdlib>

#include "ir/compare.h"

namespace tilewright::schedules {

using ir::Op;

std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

namespace {

FollowedScalar arithmetic(Op op, std::int64_t a, std::int64_t b) {
  switch (ir::as<ir::ArithmeticFunction>(op)) {
    case ir::ArithmeticFunction::add:
      return {a + b, true};
    case ir::ArithmeticFunction::sub:
      return {a - b, true};
    case ir::ArithmeticFunction::mul:
      return {a * b, true};
    case ir::ArithmeticFunction::div:
      return b > 0 ? FollowedScalar{floor_div(a, b), true} : FollowedScalar{};
    case ir::ArithmeticFunction::min:
      return {std::min(a, b), true};
    case ir::ArithmeticFunction::max:
      return {std::max(a, b), true};
    case ir::ArithmeticFunction::neg:
      return {-a, true};
    case ir::ArithmeticFunction::abs:
      return {std::abs(a), true};
    case ir::ArithmeticFunction::fma:
      break;
  }
  return {};
}

bool logic(Op op, bool a, bool b) {
  switch (ir::as<ir::LogicFunction>(op)) {
    case ir::LogicFunction::logical_and:
      return a && b;
    case ir::LogicFunction::logical_or:
      return a || b;
    case ir::LogicFunction::logical_not:
      return !a;
  }
  return false;
}

}  // namespace

FollowedScalar evaluate_scalar(Op op, std::int64_t a, std::int64_t b) {
  switch (ir::info(op).kind) {
    case ir::FunctionKind::arithmetic:
      return arithmetic(op, a, b);
    case ir::FunctionKind::division: {
      if (b <= 0) return {};
      return {op == Op::mod ? a - floor_div(a, b) * b : floor_div(a + b - 1, b), true};
    }
    case ir::FunctionKind::comparison:
      return {ir::compare(op, a, b), true};
    case ir::FunctionKind::logic:
      return {logic(op, a != 0, b != 0), true};
    case ir::FunctionKind::choice:
      return op == Op::cast ? FollowedScalar{a, true} : FollowedScalar{};
    case ir::FunctionKind::real:
    case ir::FunctionKind::bits:
      break;
  }
  return {};
}

}  // namespace tilewright::schedules
