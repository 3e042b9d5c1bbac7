#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/ir.h"

// What the parts of the verifier share: the operation under scrutiny and who defined each value.
namespace tilewright::ir {

class VerifierContext {
 public:
  VerifierContext(const Kernel& kernel, ErrorKind kind);

  const Kernel& kernel() const { return kernel_; }
  void enter(const Operation& operation) { current_ = &operation; }
  void leave() { current_ = nullptr; }
  const Operation& operation() const { return *current_; }

  [[noreturn]] void fail_with(const std::string& message) const;
  template <typename... Arguments>
  [[noreturn]] void fail(fmt::format_string<Arguments...> text, Arguments&&... arguments) const {
    fail_with(fmt::format(text, std::forward<Arguments>(arguments)...));
  }
  // For arguments that cost nothing; where they are texts to be built, ask first and then fail.
  template <typename... Arguments>
  void require(bool good, fmt::format_string<Arguments...> text, Arguments&&... arguments) const {
    if (!good) fail(text, std::forward<Arguments>(arguments)...);
  }

  // Of the current operation.
  const Type& operand(std::size_t i) const { return kernel_.types[current_->operands[i]]; }
  const Type& result(std::size_t i = 0) const { return kernel_.types[current_->results[i]]; }
  std::size_t operand_count() const { return current_->operands.size(); }
  std::string operand_text(std::size_t i) const { return describe(current_->operands[i]); }
  std::int64_t integer(Key key, std::int64_t otherwise = 0) const {
    return current_->attributes.integer_or(key, otherwise);
  }
  const Attributes& attributes() const { return current_->attributes; }

  // "%7 (shared k_ring)": a value as messages name it.
  std::string describe(ValueId value) const;
  void define(ValueId value, const Operation& by) { defined_by_[value] = &by; }
  // Null for parameters and arguments of blocks.
  const Operation* defined_by(ValueId value) const { return defined_by_[value]; }
  std::optional<std::int64_t> constant(ValueId value) const;
  std::optional<std::int64_t> constant_operand(std::size_t i) const {
    return constant(current_->operands[i]);
  }
  const Parameter& tensor_of(ValueId tensor) const;
  // Operand i, a tensor map: what declares it, also where it is one of several.
  const Operation& map_operand(std::size_t i) const;

 private:
  const Kernel& kernel_;
  const ErrorKind kind_;  // of what is found
  const Operation* current_ = nullptr;
  std::vector<const Operation*> defined_by_;
};

// Operands, results and attributes against the tables.
void verify_signature(const VerifierContext& context);
// What the operation says of its types and attributes, by its family.
void verify_types(const VerifierContext& context);
// That the function is one that the record has for the dtype.
void verify_combined(const VerifierContext& context, DType dtype);
// verifier_tile.cpp
void verify_elementwise(const VerifierContext& context);
void verify_constant(const VerifierContext& context);
void verify_tile(const VerifierContext& context);
void verify_tile_access(const VerifierContext& context);
void verify_dot(const VerifierContext& context);
// verifier_asynchronous.cpp
void verify_place(const VerifierContext& context);
void verify_view(const VerifierContext& context);
void verify_wgmma_tile(const VerifierContext& context);
void verify_pending(const VerifierContext& context);
void verify_shared_tile(const VerifierContext& context);
void verify_fragment_tile(const VerifierContext& context);
void verify_tile_copy(const VerifierContext& context);
void verify_mbarrier(const VerifierContext& context);
void verify_named_barrier(const VerifierContext& context);
void verify_group_wait(const VerifierContext& context);
void verify_shared_word(const VerifierContext& context);
// Of a copy. Tensor map operand 0, coordinates from operand `first`.
void verify_coordinates(const VerifierContext& context, std::size_t first);
void verify_destination(const VerifierContext& context);
void verify_signalled(const VerifierContext& context);
void verify_barrier_index(const VerifierContext& context, std::size_t barriers);
// verifier_machine.cpp
void verify_computation(const VerifierContext& context);
void verify_global_access(const VerifierContext& context);
void verify_matrix(const VerifierContext& context);
void verify_elements(const VerifierContext& context);
void verify_words(const VerifierContext& context);
void verify_bulk_copy(const VerifierContext& context);
void verify_product(const VerifierContext& context);
void verify_register_budget(const VerifierContext& context);
void verify_check(const VerifierContext& context);
// verifier_tensor_memory.cpp
void verify_tensor_memory(const VerifierContext& context);
void verify_tensor_tile(const VerifierContext& context);
void verify_tensor_tile_product(const VerifierContext& context);
void verify_tensor_allocation(const VerifierContext& context);
void verify_tensor_access(const VerifierContext& context);
void verify_tensor_commit(const VerifierContext& context);
void verify_launch_control(const VerifierContext& context);
void verify_tensor_product(const VerifierContext& context);
void verify_tensor_copy(const VerifierContext& context);
// verifier_core.cpp
void verify_core_memory(const VerifierContext& context);
void verify_core_window(const VerifierContext& context);
void verify_core_copy(const VerifierContext& context);
void verify_core_compute(const VerifierContext& context);
// verifier_ranks.cpp
void verify_position(const VerifierContext& context);
void verify_peer(const VerifierContext& context);
void verify_map_choice(const VerifierContext& context);
void verify_copied_map(const VerifierContext& context);
void verify_word(const VerifierContext& context);
void verify_word_wait(const VerifierContext& context);
void verify_fence(const VerifierContext& context);
// Of an access to elements of the tensor: its order, and what it adds.
void verify_element_order(const VerifierContext& context, const Parameter& tensor);

}  // namespace tilewright::ir
