#include "cpu/block_order.h"

#include <algorithm>

#include "cpu/engine.h"

namespace tilewright::cpu {
namespace {

// Blocks come in their own order where the longest is at most such a part of what a thread does:
// neighbours read the same memory, which is still in the caches then.
constexpr double kShortOf = 64;

// What is known of a scalar before a block's tiles are computed.
enum class Known : std::uint8_t { no, of_launch, of_block };

// Goes over the operations outside of loops and conditions.
class Scan {
 public:
  explicit Scan(const Program& program) : known_(program.scalars.size(), Known::of_launch) {
    for (const ScalarId index : program.grid) known_[index] = Known::of_block;
    for (const Operation& operation : program.body) {
      std::visit([&](const auto& each) { forget(each); }, operation);
    }
  }

  Known of(ScalarId scalar) const { return known_[scalar]; }
  // Whether it can be executed by itself: its operands are known.
  bool visit(const Compute& compute) {
    Known all = Known::of_launch;
    for (const ScalarId operand : compute.operands) join(all, operand);
    return define(compute.result, all);
  }
  bool visit(const MoveScalar& move) { return define(move.result, of(move.source)); }
  bool visit(const LoadIndex& load) {
    Known all = Known::of_launch;
    for (const ScalarId index : load.indices) join(all, index);
    return define(load.result, all);
  }
  bool visit(const auto&) { return false; }

 private:
  void join(Known& all, ScalarId operand) const {
    if (operand == kNone || all == Known::no) return;
    if (of(operand) != Known::of_launch) all = of(operand);
  }
  // What is set more than once stays unknown.
  bool define(ScalarId result, Known known) {
    if (of(result) != Known::no) known_[result] = known;
    return of(result) != Known::no;
  }

  // What only a block's tiles, or its loops and conditions, decide.
  void forget(const Any& any) { known_[any.result] = Known::no; }
  void forget(const For& loop) {
    known_[loop.index] = Known::no;
    forget(loop.body);
  }
  void forget(const While& loop) { forget(loop.body); }
  void forget(const If& choice) {
    forget(choice.then);
    forget(choice.otherwise);
  }
  void forget(const Block& block) {
    for (const Operation& operation : block) {
      std::visit([this](const auto& each) { forget(each); }, operation);
      if (const auto* compute = std::get_if<Compute>(&operation))
        known_[compute->result] = Known::no;
      if (const auto* move = std::get_if<MoveScalar>(&operation)) known_[move->result] = Known::no;
      if (const auto* load = std::get_if<LoadIndex>(&operation)) known_[load->result] = Known::no;
    }
  }
  void forget(const auto&) {}

  std::vector<Known> known_;
};

}  // namespace

BlockOrder::BlockOrder(const Program& program) {
  Scan scan(program);
  for (const Operation& operation : program.body) {
    if (std::visit([&](const auto& each) { return scan.visit(each); }, operation)) {
      scalars_.push_back(&operation);
    }
    const For* const loop = std::get_if<For>(&operation);
    if (loop == nullptr) continue;
    const Known low = scan.of(loop->low), high = scan.of(loop->high), step = scan.of(loop->step);
    if (low == Known::no || high == Known::no || step == Known::no) continue;
    loops_.push_back(loop);
    is_uneven_ = is_uneven_ || low == Known::of_block || high == Known::of_block;
  }
}

std::vector<std::int64_t> BlockOrder::longest_first(Engine& engine, std::int64_t count,
                                                    unsigned threads) const {
  struct Length {
    std::int64_t block;
    double operations;
  };
  std::vector<Length> lengths;
  lengths.reserve(static_cast<std::size_t>(count));
  double all = 0, longest = 0;
  for (std::int64_t block = 0; block < count; ++block) {
    lengths.push_back({block, engine.operations(block, scalars_, loops_)});
    all += lengths.back().operations;
    longest = std::max(longest, lengths.back().operations);
  }
  if (longest * threads * kShortOf <= all) return {};
  std::stable_sort(lengths.begin(), lengths.end(),
                   [](const Length& a, const Length& b) { return a.operations > b.operations; });
  std::vector<std::int64_t> order;
  order.reserve(lengths.size());
  for (const Length& each : lengths) order.push_back(each.block);
  return order;
}

}  // namespace tilewright::cpu
