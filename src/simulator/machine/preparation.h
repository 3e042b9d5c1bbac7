#pragma once

#include <string>
#include <utility>
#include <vector>

#include "analysis/loaded_integers.h"
#include "ir/binding.h"
#include "simulator/machine/prepared_kernel.h"

namespace tilewright::simulator {

[[noreturn]] void refuse(const ir::Operation& operation, const std::string& why);

// Turns a kernel into a PreparedKernel. Structure, places and scalars are in prepared_kernel.cpp,
// copies and products in prepare_units.cpp, the other instructions in prepare_instructions.cpp.
class Preparation {
 public:
  Preparation(const ir::Kernel& kernel, const Arguments& arguments, std::int64_t multiprocessors);
  PreparedKernel run();

 private:
  void parameters();
  Instruction& emit(Code code, const ir::Operation* operation);
  // What the operation's family does.
  Instruction& emit(const ir::Operation& operation);
  void move(const ir::Operation& operation, const std::vector<ir::ValueId>& to,
            const std::vector<ir::ValueId>& from, std::size_t skip_to, std::size_t skip_from);
  // The operands of the yield that ends the block; empty when it has none.
  const std::vector<ir::ValueId>& yielded(const ir::Block& body) const;
  void block(const ir::Block& body);
  void control(const ir::Operation& operation);
  void for_loop(const ir::Operation& operation);
  void while_loop(const ir::Operation& operation);
  void if_then(const ir::Operation& operation);
  void role(const ir::Operation& operation);
  Slot new_slot();
  Slot zero();
  void place(const ir::Operation& operation);
  void shared(const ir::Operation& operation);
  void mbarriers(const ir::Operation& operation);
  void tensor_map(const ir::Operation& operation);
  void registers(const ir::Operation& operation);
  void constant(const ir::Operation& operation);
  void position(const ir::Operation& operation);
  void scalar(const ir::Operation& operation);
  int here() const { return static_cast<int>(prepared_.code.size()); }
  int object(ir::ValueId value) const { return object_[value]; }
  const ir::Type& type(ir::ValueId value) const { return kernel_.type(value); }
  const RegisterInfo& array_info(ir::ValueId value) const {
    return prepared_.registers[object(value)];
  }

  void computation(const ir::Operation& operation);
  void copy(const ir::Operation& operation);
  void compute(const ir::Operation& operation);
  void coordinate(const ir::Operation& operation);
  void check_indices(const ir::Operation& operation, const std::vector<int>& index,
                     const RegisterInfo& array) const;
  void reduce_registers(const ir::Operation& operation);
  void reduce_lanes(const ir::Operation& operation);
  void check_spread(const ir::Operation& operation, const Spread& spread,
                    const RegisterInfo& array) const;
  void access_global(const ir::Operation& operation);
  void matrix(const ir::Operation& operation);
  void access_elements(const ir::Operation& operation);
  void access_fragment(const ir::Operation& operation);
  void transfer(const ir::Operation& operation);
  void tensor_transfer(const ir::Operation& operation, int first, Transfer& made);
  void shared_word(const ir::Operation& operation);
  void word(const ir::Operation& operation);
  void find_uses_of_words();
  void mbarrier(const ir::Operation& operation);
  // Whose tensor or map the operand is; none: this rank's.
  Slot rank(ir::ValueId value) const { return rank_[value]; }
  void choose_map(const ir::Operation& operation);
  void signals(int array);
  void waits_for(int array);
  void comes_to_named(std::int64_t first, std::int64_t count);
  void product(const ir::Operation& operation);
  void join_run(const ir::Operation& operation, Product& made);
  void check_product(const ir::Operation& operation, const Product& made, DType b_type) const;
  // prepare_tensor_memory.cpp
  void tensor_memory(const ir::Operation& operation);
  void tensor_allocation(const ir::Operation& operation);
  void launch_control(const ir::Operation& operation);
  void tensor_access(const ir::Operation& operation);
  void tensor_product(const ir::Operation& operation);
  void tensor_copy(const ir::Operation& operation);
  void tensor_commit(const ir::Operation& operation);
  void visit(const ir::Operation& operation);
  // That each instruction whose record has global or shared memory names the tensor, the
  // allocation.
  void check_places() const;

  const ir::Kernel& kernel_;
  const Arguments& arguments_;
  ir::Binding binding_;
  analysis::LoadedIntegers integers_;
  PreparedKernel prepared_;
  std::vector<int> object_;    // of a value: its tensor, map, allocation, barriers or array
  std::vector<Slot> rank_;     // of a value: of a peer's tensor or map
  std::vector<Slot> outside_;  // of a map that one of a ragged pair is: which of them
  int role_ = 0;
  bool in_role_ = false;
  bool elected_ = false;
  Slot loop_ = ir::kNoValue;  // the index of the innermost for_loop
  Slot zero_ = ir::kNoValue;
  int straight_ = 0;  // no jump leads between the instructions from here on
};

}  // namespace tilewright::simulator
