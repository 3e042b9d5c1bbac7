#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/ir.h"

// Sizes in C, by the functions of support.c.in.
namespace tilewright::ahead {

// What the symbols of dims are called where the text stands.
using DimNames = std::map<std::string, std::string>;

std::string c_number(std::int64_t number);
std::string c_text(const Dim& dim, const DimNames& names);
// "{a, b}".
std::string c_list(const std::vector<Dim>& dims, const DimNames& names);
// As a string of C.
std::string quoted(const std::string& text);
// "m, ceil_div(n, 64)".
std::string axes_text(const std::vector<Dim>& shape);

struct DimSource {
  std::string name;  // the tensor's, for messages
  std::vector<Dim> shape;
};
// Whether an axis says what the dim is.
bool is_said(const Dim& dim, const std::vector<DimSource>& tensors);
// Statements that find the dims from tensors, `tensor` and "[number]", in the order of the
// parameters, and check them: what the runtime's ir::bind does. `prefix` begins the names that they
// declare, which `names` then has.
std::string c_binding(const std::vector<DimSource>& tensors, const std::vector<Dim>& dims,
                      const std::string& tensor, const std::string& prefix,
                      const std::string& indent, DimNames& names);

}  // namespace tilewright::ahead
