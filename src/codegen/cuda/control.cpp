#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "codegen/cuda/expressions.h"
#include "codegen/cuda/operations.h"
#include "support/escape.h"

namespace tilewright::codegen {
namespace {

using ir::Key;
using ir::Op;
using ir::Operation;
using ir::ValueId;

std::string declare(const Emitter& emitter, ValueId value, std::string_view initial) {
  return fmt::format("{} {}{}{};", scalar_type(emitter.type(value).dtype), emitter.name(value),
                     initial.empty() ? "" : " = ", initial);
}

// Results are variables; inside the body the arguments are the same variables.
void declare_carried(Emitter& emitter, const Operation& operation, std::size_t first_operand,
                     std::size_t first_argument) {
  for (std::size_t i = 0; i < operation.results.size(); ++i) {
    emitter.line(declare(emitter, operation.results[i],
                         emitter.name(operation.operands[first_operand + i])));
    emitter.set_name(operation.blocks[0].arguments[first_argument + i],
                     emitter.name(operation.results[i]));
  }
}

std::vector<std::string> result_names(const Emitter& emitter, const Operation& operation) {
  std::vector<std::string> names;
  for (const ValueId result : operation.results) names.push_back(emitter.name(result));
  return names;
}

void print_inner(Emitter& emitter, const ir::Block& block, std::vector<std::string> yield_to) {
  emitter.yield_to.swap(yield_to);
  emitter.print_block(block);
  emitter.yield_to.swap(yield_to);
}

std::string warp_range(const Emitter& emitter, std::int64_t first, std::int64_t count) {
  const bool last = first + count >= emitter.kernel().threads / 32;
  if (count == 1) return fmt::format("warp == {}", first);
  if (first == 0) return fmt::format("warp < {}", count);
  if (last) return fmt::format("warp >= {}", first);
  return fmt::format("warp >= {} && warp < {}", first, first + count);
}

bool is_behind_role(const Emitter& emitter) {
  return emitter.previous && emitter.previous->op == Op::role;
}

// The roles of a warpgroup that share its registers stand inside its condition: it ends where the
// next operation is none of them.
void close_warpgroup(Emitter& emitter, const Operation* next, std::int64_t warpgroup) {
  const bool goes_on =
      next && next->op == Op::role && next->attributes.integer(Key::first_warp) / 4 == warpgroup;
  if (!emitter.in_warpgroup || goes_on) return;
  emitter.close();
  emitter.in_warpgroup = false;
}

}  // namespace

void print_for_loop(Emitter& emitter, const Operation& operation) {
  declare_carried(emitter, operation, 3, 1);
  const ir::Block& block = operation.blocks[0];
  const std::string& index = emitter.name(block.arguments[0]);
  emitter.line("#pragma unroll 1");
  emitter.open(fmt::format(
      "for ({} {} = {}; {} < {}; {} += {})", scalar_type(emitter.type(block.arguments[0]).dtype),
      index, emitter.name(operation.operands[0]), index, emitter.name(operation.operands[1]), index,
      emitter.name(operation.operands[2])));
  emitter.loops.push_back(index);
  print_inner(emitter, block, result_names(emitter, operation));
  emitter.loops.pop_back();
  emitter.close();
}

void print_while_loop(Emitter& emitter, const Operation& operation) {
  declare_carried(emitter, operation, 1, 0);
  const std::string condition =
      fmt::format("again_{}", operation.blocks[0].body.back().operands[0]);
  emitter.line(fmt::format("bool {} = {};", condition, emitter.name(operation.operands[0])));
  emitter.line("#pragma unroll 1");
  emitter.open(fmt::format("while ({})", condition));
  std::vector<std::string> to = result_names(emitter, operation);
  to.insert(to.begin(), condition);
  print_inner(emitter, operation.blocks[0], std::move(to));
  emitter.close();
}

void print_if_then(Emitter& emitter, const Operation& operation) {
  for (const ValueId result : operation.results) emitter.line(declare(emitter, result, ""));
  emitter.open(fmt::format("if ({})", emitter.name(operation.operands[0])));
  print_inner(emitter, operation.blocks[0], result_names(emitter, operation));
  if (operation.blocks[1].body.size() > 1 || !operation.results.empty()) {
    emitter.close();
    emitter.open("else");
    print_inner(emitter, operation.blocks[1], result_names(emitter, operation));
  }
  emitter.close();
}

void print_yield(Emitter& emitter, const Operation& operation) {
  struct Move {
    ValueId value;
    std::string to;
    std::string from;
  };
  std::vector<Move> moves;
  for (std::size_t i = 0; i < operation.operands.size(); ++i) {
    const std::string& from = emitter.name(operation.operands[i]);
    if (from != emitter.yield_to[i])
      moves.push_back({operation.operands[i], emitter.yield_to[i], from});
  }
  // A variable that is written before it is read goes through a copy.
  for (std::size_t i = 1; i < moves.size(); ++i) {
    const auto written = [&](const Move& earlier) { return earlier.to == moves[i].from; };
    if (std::none_of(moves.begin(), moves.begin() + static_cast<std::ptrdiff_t>(i), written))
      continue;
    const std::string copy = "next_" + moves[i].to;
    emitter.line(fmt::format("const {} {} = {};", scalar_type(emitter.type(moves[i].value).dtype),
                             copy, moves[i].from));
    moves[i].from = copy;
  }
  for (const Move& move : moves) emitter.line(fmt::format("{} = {};", move.to, move.from));
}

void print_set_max_registers(Emitter& emitter, const Operation& operation) {
  const ir::Attributes& attributes = operation.attributes;
  const std::int64_t first = attributes.integer_or(Key::first_warp, -1);
  const std::string call = fmt::format(
      "{}_registers<{}>();", attributes.integer(Key::increase) != 0 ? "increase" : "decrease",
      attributes.integer(Key::count));
  if (first < 0) return emitter.line(call);
  emitter.open(fmt::format("{}if ({})", is_behind_role(emitter) ? "else " : "",
                           warp_range(emitter, first, 4)));
  emitter.line(call);
  // What stands between the roles is for all warps.
  emitter.in_warpgroup = true;
  close_warpgroup(emitter, emitter.next, first / 4);
}

void print_role(Emitter& emitter, const Operation& operation) {
  const std::int64_t first = operation.attributes.integer(Key::first_warp);
  const std::int64_t warps = operation.attributes.integer(Key::warps);
  const ir::Block& block = operation.blocks[0];
  const Operation* const next = emitter.next;
  emitter.open(fmt::format("{}if ({})", is_behind_role(emitter) ? "else " : "",
                           warp_range(emitter, first, warps)));
  emitter.line(fmt::format("// {}", escaped_comment(operation.attributes.text(Key::name))));
  emitter.agent = Emitter::Agent::warp;
  emitter.first_warp = first;
  emitter.role_warps = warps;
  if (!block.arguments.empty()) {
    const ValueId group = block.arguments[0];
    if (warps <= 4) {
      emitter.set_name(group, "0");
    } else {
      emitter.line(fmt::format("const int {} = {} / 4;", emitter.name(group),
                               first == 0 ? "warp" : fmt::format("(warp - {})", first)));
    }
  }
  emitter.print_block(block);
  emitter.agent = Emitter::Agent::cta;
  emitter.first_warp = 0;
  emitter.role_warps = 0;
  emitter.close();
  close_warpgroup(emitter, next, first / 4);
}

void print_elect(Emitter& emitter, const Operation& operation) {
  const Emitter::Agent outer = emitter.agent;
  emitter.open(outer == Emitter::Agent::cta ? "if (threadIdx.x == 0)" : "if (lane == 0)");
  emitter.agent = Emitter::Agent::lane;
  emitter.print_block(operation.blocks[0]);
  emitter.agent = outer;
  emitter.close();
}

void print_check(Emitter& emitter, const Operation& operation) {
  std::vector<std::string> numbers;
  for (std::size_t i = 1; i < operation.operands.size(); ++i) {
    numbers.push_back(emitter.name(operation.operands[i]));
  }
  numbers.resize(ir::kCheckNumbers, "0");
  emitter.line(fmt::format("if (!{}) stop_at_check({}, {}, warp, {});",
                           emitter.name(operation.operands[0]), emitter.report(), emitter.checks++,
                           fmt::join(numbers, ", ")));
}

}  // namespace tilewright::codegen
