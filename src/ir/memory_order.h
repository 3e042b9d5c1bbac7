#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ir/ir.h"
#include "tilewright/memory_order.h"

// The attributes semantics, scope and compare, which are written as words.
namespace tilewright::ir {

std::string_view name_of(Semantics semantics);
std::string_view name_of(Scope scope);
std::string_view name_of(Compare compare);
std::optional<Semantics> find_semantics(std::string_view name);
std::optional<Scope> find_scope(std::string_view name);
std::optional<Compare> find_compare(std::string_view name);

// Whether a word compares so to a value: lt, le, gt and ge by the sign of the difference modulo
// 2^32, so that counts may run over.
bool holds(Compare compare, std::int32_t word, std::int32_t value);
// "==", "<", ...
std::string_view sign_of(Compare compare);

// Why the operation cannot have the semantics, and which it can; empty where it can.
std::string order_problem(Op op, Semantics semantics);

// What the attributes of a verified operation say, or leave to be what the operation is by itself.
MemoryOrder order_of(const Operation& operation);
Compare compare_of(const Operation& operation);
// Sets semantics and, but for a weak access, scope.
void set_order(Attributes& attributes, MemoryOrder order);

}  // namespace tilewright::ir
