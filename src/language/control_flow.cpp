#include <algorithm>
#include <map>

#include "language/tracer.h"

// Cells, and the blocks that carry their values: loops, branches, roles.
namespace tilewright {
namespace {

// Passes nest blocks further, and what is compiled takes time and stack by how deep they lie.
constexpr int kMaximumNesting = 128;

// Rewrites operands below `block`.
void replace_uses(ir::Block& block, const std::map<ir::ValueId, ir::ValueId>& to) {
  ir::for_each(block, [&](ir::Operation& operation) {
    for (ir::ValueId& operand : operation.operands) {
      const auto it = to.find(operand);
      if (it != to.end()) operand = it->second;
    }
  });
}

}  // namespace

int Tracer::open_cell(ir::ValueId initial, SourceLocation where) {
  cells_.push_back({initial, true, depth(), where});
  return static_cast<int>(cells_.size()) - 1;
}

void Tracer::close_cell(int slot) { cells_[slot].open = false; }

void Tracer::assign(int slot, ir::ValueId value, SourceLocation where) {
  CellState& cell = cells_[slot];
  const ir::Type &was = type(cell.value), &now = type(value);
  if (was != now) {
    Diagnostic(where, "assignment: the variable holds " + was.to_string() + ", the value is " +
                          now.to_string())
        .token("=")
        .note(cell.where, "the variable is made")
        .fix("give both the same shape and dtype; .cast(dtype) converts")
        .raise();
  }
  cell.value = value;
}

ir::ValueId Tracer::read(int slot, SourceLocation) { return cells_[slot].value; }

void Tracer::push(ir::Op op, std::vector<ir::ValueId> operands, SourceLocation where) {
  if (depth() > kMaximumNesting) {
    Diagnostic(where, std::string(ir::info(op).name) + ": blocks are nested more than " +
                          std::to_string(kMaximumNesting) + " deep")
        .note(frames_.back().where, "the one around it is opened")
        .fix("put fewer loops and conditions inside each other")
        .raise();
  }
  Frame frame;
  frame.op = op;
  frame.operands = std::move(operands);
  frame.where = where;
  frame.scope = static_cast<int>(scope_open_.size());
  scope_open_.push_back(true);
  frames_.push_back(std::move(frame));
}

Tracer::Frame Tracer::pop() {
  Frame frame = std::move(frames_.back());
  frames_.pop_back();
  scope_open_[frame.scope] = false;
  return frame;
}

// Every open cell becomes an argument; those that the body leaves alone are dropped when it ends.
void Tracer::carry_cells(Frame& frame) {
  for (std::size_t slot = 0; slot < cells_.size(); ++slot) {
    CellState& cell = cells_[slot];
    if (!cell.open || cell.value == ir::kNoValue) continue;
    frame.carried.push_back({static_cast<int>(slot), cell.value});
    const ir::ValueId argument = kernel_.add_value(type(cell.value));
    note(argument, frame.where);
    frame.block.arguments.push_back(argument);
    cell.value = argument;
  }
}

void Tracer::finish_loop(Frame frame, std::vector<ir::ValueId> leading,
                         std::vector<ir::ValueId> yielded) {
  ir::Operation operation;
  operation.op = frame.op;
  operation.where = frame.where;
  operation.operands = std::move(leading);
  const std::size_t first = frame.block.arguments.size() - frame.carried.size();
  std::vector<ir::ValueId> arguments(frame.block.arguments.begin(),
                                     frame.block.arguments.begin() + first);
  std::map<ir::ValueId, ir::ValueId> unchanged;
  for (std::size_t i = 0; i < frame.carried.size(); ++i) {
    const auto [slot, initial] = frame.carried[i];
    const ir::ValueId argument = frame.block.arguments[first + i];
    CellState& cell = cells_[slot];
    if (cell.value == argument) {
      unchanged[argument] = initial;
      cell.value = initial;
      continue;
    }
    arguments.push_back(argument);
    operation.operands.push_back(initial);
    yielded.push_back(cell.value);
    const ir::ValueId result = kernel_.add_value(type(argument));
    note(result, frame.where);
    operation.results.push_back(result);
    cell.value = result;
  }
  ir::Operation yield;
  yield.op = ir::Op::yield;
  yield.operands = std::move(yielded);
  yield.where = frame.where;
  frame.block.body.push_back(std::move(yield));
  replace_uses(frame.block, unchanged);
  frame.block.arguments = std::move(arguments);
  operation.blocks.push_back(std::move(frame.block));
  body().push_back(std::move(operation));
}

ir::ValueId Tracer::open_loop(ir::ValueId low, ir::ValueId high, ir::ValueId step,
                              SourceLocation where) {
  push(ir::Op::for_loop, {low, high, step}, where);
  const ir::ValueId index = kernel_.add_value(ir::Type::scalar(i32));
  note(index, where);
  frames_.back().block.arguments.push_back(index);
  carry_cells(frames_.back());
  return index;
}

void Tracer::close_loop() {
  Frame frame = pop();
  std::vector<ir::ValueId> leading = frame.operands;
  finish_loop(std::move(frame), std::move(leading), {});
}

void Tracer::trace_while(int condition_slot, FunctionRef<void()> body, SourceLocation where) {
  const ir::ValueId initial = cells_[condition_slot].value;
  push(ir::Op::while_loop, {}, where);
  cells_[condition_slot].open = false;  // not carried: inside the loop it holds true
  carry_cells(frames_.back());
  cells_[condition_slot].open = true;
  cells_[condition_slot].value = boolean(true, where);
  body();
  const ir::ValueId again = cells_[condition_slot].value;
  finish_loop(pop(), {initial}, {again});
  cells_[condition_slot].value = boolean(false, where);
}

void Tracer::trace_if(ir::ValueId condition, FunctionRef<void()> then,
                      FunctionRef<void()> otherwise, SourceLocation where) {
  std::vector<ir::ValueId> before;
  const auto values = [this] {
    std::vector<ir::ValueId> all;
    for (const CellState& cell : cells_) all.push_back(cell.open ? cell.value : ir::kNoValue);
    return all;
  };
  const auto branch = [&](FunctionRef<void()> body) {
    push(ir::Op::if_then, {}, where);
    if (body) body();
    std::vector<ir::ValueId> after = values();
    after.resize(before.size());
    for (std::size_t i = 0; i < before.size(); ++i) {
      if (before[i] != ir::kNoValue) cells_[i].value = before[i];
    }
    return std::pair(pop(), after);
  };
  before = values();
  auto [first, then_values] = branch(then);
  auto [second, else_values] = branch(otherwise);
  ir::Operation operation;
  operation.op = ir::Op::if_then;
  operation.operands = {condition};
  operation.where = where;
  ir::Operation then_yield, else_yield;
  then_yield.op = else_yield.op = ir::Op::yield;
  then_yield.where = else_yield.where = where;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (before[i] == ir::kNoValue) continue;
    if (then_values[i] == before[i] && else_values[i] == before[i]) continue;
    then_yield.operands.push_back(then_values[i]);
    else_yield.operands.push_back(else_values[i]);
    const ir::ValueId result = kernel_.add_value(type(before[i]));
    note(result, where);
    operation.results.push_back(result);
    cells_[i].value = result;
  }
  first.block.body.push_back(std::move(then_yield));
  second.block.body.push_back(std::move(else_yield));
  operation.blocks.push_back(std::move(first.block));
  operation.blocks.push_back(std::move(second.block));
  body().push_back(std::move(operation));
}

bool Tracer::in_condition() const {
  return std::any_of(frames_.begin(), frames_.end(),
                     [](const Frame& frame) { return frame.op == ir::Op::if_then; });
}

void Tracer::trace_block(ir::Op op, ir::Attributes attributes, FunctionRef<void()> body,
                         SourceLocation where) {
  std::vector<ir::ValueId> before;
  for (const CellState& cell : cells_) before.push_back(cell.value);
  push(op, {}, where);
  body();
  Frame frame = pop();
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (cells_[i].open && cells_[i].value != before[i]) {
      Diagnostic(where,
                 std::string(ir::info(op).name) + ": a variable made outside is assigned inside")
          .note(cells_[i].where, "the variable is made")
          .fix("make the variable inside: what one role or lane computes is not seen by the others")
          .raise();
    }
  }
  ir::Operation operation;
  operation.op = op;
  operation.attributes = std::move(attributes);
  operation.where = where;
  ir::Operation yield;
  yield.op = ir::Op::yield;
  yield.where = where;
  frame.block.body.push_back(std::move(yield));
  operation.blocks.push_back(std::move(frame.block));
  this->body().push_back(std::move(operation));
}

void Tracer::trace_role(const ir::Attributes& attributes, FunctionRef<void(Index)> body,
                        SourceLocation where) {
  in_role_ = true;
  role_ = {attributes.text(ir::Key::name),
           static_cast<int>(attributes.integer(ir::Key::first_warp)),
           static_cast<int>(attributes.integer(ir::Key::warps)), ++role_serial_};
  ir::ValueId group = ir::kNoValue;
  trace_block(
      ir::Op::role, attributes,
      [&] {
        group = kernel_.add_value(ir::Type::scalar(i32));
        note(group, where);
        frames_.back().block.arguments.push_back(group);
        for (const auto& position : on_role) position(true);
        body(Index(handle(group)));
        for (const auto& position : on_role) position(false);
      },
      where);
  in_role_ = false;
}

}  // namespace tilewright
