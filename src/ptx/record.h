#pragma once

#include <span>
#include <string_view>

#include "ptx/module.h"

namespace tilewright::ptx {

struct Execution;

// An instruction: what its text may be, and what it does.
struct Record {
  std::string_view name;  // the first words of its name
  // A letter an operand, those behind `?` may be left out: d what is written, s what is read,
  // v a vector or one register, a an address, w either an address or what is read, p `a|b` or one
  // register, l a label.
  std::string_view operands;
  std::string_view modifiers;  // that it may have
  std::string_view types;      // that its name may have, in any place; empty: none
  void (*execute)(Execution&) = nullptr;
};

// Whether the word of an instruction's name is a modifier or a type.
bool is_known_word(std::string_view word);

// Each list stands in the file that executes its instructions.
std::span<const Record> arithmetic_records();
std::span<const Record> float_records();
std::span<const Record> conversion_records();
std::span<const Record> control_records();
std::span<const Record> memory_records();
std::span<const Record> mbarrier_records();
std::span<const Record> bulk_records();
std::span<const Record> copy_records();
std::span<const Record> product_records();
std::span<const Record> tensor_memory_records();
std::span<const Record> launch_control_records();

// The records whose name is the longest beginning of the words: several where integers and floats
// have one name.
std::span<const Record* const> find_records(std::string_view words);
// Every record, in the order of the lists.
std::span<const Record* const> all_records();

}  // namespace tilewright::ptx
