#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "simulator/machine/preparation.h"
#include "support/same_line.h"

// What asynchronous units execute: TMA's copies and wgmma's products.
namespace tilewright::simulator {

using ir::Key;
using ir::Op;
using ir::Operation;

// object: the allocation; detail: the transfer.
void Preparation::transfer(const Operation& operation) {
  const bool load = ir::info(operation.op).completion == ir::Completion::mbarrier;
  Transfer made;
  made.offset = operation.operands[2];
  made.step = operation.attributes.integer_or(Key::step, 0);
  if (load) {
    made.barriers = object(operation.operands[3]);
    made.barrier_index = operation.operands[4];
    signals(made.barriers);
    prepared_.barrier_arrays[made.barriers].transactions = true;
  }
  if (operation.op == Op::cluster_copy) {
    made.source = object(operation.operands[0]);
    made.source_offset = operation.operands[5];
    made.cta = operation.operands[6];
    made.bytes = operation.attributes.integer(Key::bytes);
  } else {
    tensor_transfer(operation, load ? 5 : 3, made);
  }
  Instruction& instruction = emit(operation);
  instruction.object = object(operation.operands[1]);
  instruction.detail = static_cast<int>(prepared_.transfers.size());
  prepared_.transfers.push_back(std::move(made));
}

void Preparation::choose_map(const Operation& operation) {
  const ir::ValueId chosen = operation.results[0], several = operation.operands[0];
  object_[chosen] = object(several);
  rank_[chosen] = rank(several);
  switch (ir::as<ir::MapChoiceOp>(operation.op)) {
    case ir::MapChoiceOp::peer_map:
      rank_[chosen] = operation.operands[1];
      return;
    case ir::MapChoiceOp::ragged_map:
      outside_[chosen] = operation.operands[1];
      return;
  }
}

// By the map that is the first operand; coordinates are those from `first` on.
void Preparation::tensor_transfer(const Operation& operation, int first, Transfer& made) {
  made.map = object(operation.operands[0]);
  made.rank = rank(operation.operands[0]);
  made.outside = outside_[operation.operands[0]];
  made.multicast = static_cast<std::uint64_t>(operation.attributes.integer_or(Key::multicast, 0));
  made.multicast_group = static_cast<int>(operation.attributes.integer_or(Key::multicast_group, 0));
  made.pair = operation.attributes.integer_or(Key::pair, 0) != 0;
  made.coordinates.assign(operation.operands.begin() + first, operation.operands.end());
  const TensorMap& map = prepared_.maps[made.map];
  made.bytes = map.box_bytes();
  if (static_cast<int>(made.coordinates.size()) != map.rank) {
    refuse(operation, fmt::format("{} coordinates for tensor {} of rank {}",
                                  made.coordinates.size(), map.name, map.rank));
  }
  made.checks = analysis::coordinate_checks(operation, first, *map.operation, integers_);
}

void Preparation::signals(int array) {
  std::vector<int>& list = prepared_.barrier_arrays[array].signallers;
  if (std::find(list.begin(), list.end(), role_) == list.end()) list.push_back(role_);
}

void Preparation::waits_for(int array) {
  std::vector<int>& list = prepared_.barrier_arrays[array].waiters;
  if (std::find(list.begin(), list.end(), role_) == list.end()) list.push_back(role_);
}

// A number that the kernel computes without saying a range may be any from `first` on.
void Preparation::comes_to_named(std::int64_t first, std::int64_t count) {
  std::array<std::vector<int>, 16>& users = prepared_.named_users;
  const auto barriers = static_cast<std::int64_t>(users.size());
  const std::int64_t end = count > 0 ? std::min(first + count, barriers) : barriers;
  for (std::int64_t number = std::max<std::int64_t>(first, 0); number < end; ++number) {
    std::vector<int>& list = users[number];
    if (std::find(list.begin(), list.end(), role_) == list.end()) list.push_back(role_);
  }
}

void Preparation::product(const Operation& operation) {
  const ir::Attributes& attributes = operation.attributes;
  const std::vector<ir::ValueId>& operands = operation.operands;
  const bool from_registers = operation.op == Op::wgmma_rs;
  Product made;
  made.n = static_cast<int>(attributes.integer(Key::n));
  made.k = static_cast<int>(attributes.integer(Key::k));
  made.accumulator = object(operands[0]);
  made.dtype = type(operands[1]).dtype;
  const std::size_t b = from_registers ? 2 : 3;
  if (from_registers) {
    made.a_array = object(operands[1]);
    made.a_element = static_cast<int>(attributes.integer(Key::register_)) * 4 / size_of(made.dtype);
  } else {
    made.a = {object(operands[1]), operands[2], attributes.integer_or(Key::step_a, 0),
              static_cast<std::uint64_t>(attributes.integer(Key::descriptor_a)) << 14,
              attributes.integer_or(Key::transpose_a, 0) != 0};
  }
  made.b = {object(operands[b]), operands[b + 1], attributes.integer_or(Key::step_b, 0),
            static_cast<std::uint64_t>(attributes.integer(Key::descriptor_b)) << 14,
            attributes.integer_or(Key::transpose_b, 0) != 0};
  made.accumulate = operands[b + 2];
  check_product(operation, made, type(operands[b]).dtype);
  join_run(operation, made);
  emit(operation).detail = static_cast<int>(prepared_.products.size());
  prepared_.products.push_back(made);
}

void Preparation::join_run(const Operation& operation, Product& made) {
  if (here() <= straight_ || prepared_.code.back().code != Code::product) return;
  const auto same_view = [](const MatrixOperand& a, const MatrixOperand& b) {
    return a.allocation == b.allocation && a.offset == b.offset;
  };
  const Operation& before = *prepared_.code.back().operation;
  const Product& last = prepared_.products.back();
  if (!same_line(before.where, operation.where) || last.a_array != made.a_array ||
      last.n != made.n || !same_view(last.a, made.a) || !same_view(last.b, made.b)) {
    return;
  }
  made.run = 0;
  std::size_t first = prepared_.products.size() - 1;
  while (prepared_.products[first].run == 0) --first;
  ++prepared_.products[first].run;
}

void Preparation::check_product(const Operation& operation, const Product& made,
                                DType b_type) const {
  const RegisterInfo& accumulator = prepared_.registers[made.accumulator];
  const Role& role = prepared_.roles[role_];
  if (made.n < 8 || made.n > 256 || made.n % 8 != 0 || made.k * size_of(made.dtype) != 32) {
    refuse(operation, fmt::format("n {} and k {} of {}; n is a multiple of 8 up to 256, k is 32 "
                                  "bytes",
                                  made.n, made.k, name_of(made.dtype)));
  }
  if (accumulator.dtype != DType::f32 || accumulator.elements != made.n / 2) {
    refuse(operation, fmt::format("accumulator {} has {} elements of {}; m64n{} takes {} of f32",
                                  accumulator.name, accumulator.elements,
                                  name_of(accumulator.dtype), made.n, made.n / 2));
  }
  if (!is_float(made.dtype) || made.dtype == DType::f32 || made.dtype != b_type) {
    refuse(operation, fmt::format("operands of {} and {}; both are bf16, f16 or f8e4m3",
                                  name_of(made.dtype), name_of(b_type)));
  }
  if ((made.a.transposed || made.b.transposed) && size_of(made.dtype) != 2) {
    refuse(operation, "an MN-major operand of 8-bit elements");
  }
  if (made.a_array >= 0 &&
      made.a_element + 16 / size_of(made.dtype) > prepared_.registers[made.a_array].elements) {
    refuse(operation, fmt::format("a's fragment ends past the {} elements of {}",
                                  prepared_.registers[made.a_array].elements,
                                  prepared_.registers[made.a_array].name));
  }
  if (role.first_warp % 4 != 0 || role.warps % 4 != 0) {
    refuse(operation, fmt::format("{} covers warps {} to {}, not whole warpgroups", role.name,
                                  role.first_warp, role.first_warp + role.warps - 1));
  }
}

}  // namespace tilewright::simulator
