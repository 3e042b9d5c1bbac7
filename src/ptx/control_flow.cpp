#include "ptx/control_flow.h"

#include <algorithm>

#include "ptx/record.h"

namespace tilewright::ptx {
namespace {

bool ends(const Instruction& instruction) {
  const std::string_view name = instruction.record->name;
  return name == "ret" || name == "exit" || name == "trap";
}

// The immediate post-dominators of basic blocks, by the algorithm of Cooper, Harvey and Kennedy on
// the reversed graph. Block `count` stands for the end.
class Joins {
 public:
  explicit Joins(const Kernel& kernel) : code_(kernel.instructions) {
    find_blocks();
    order();
    solve();
  }
  int of(int instruction) const {
    const int block = above_[block_of_[instruction]];
    return block < 0 || block == count_ ? static_cast<int>(code_.size()) : first_[block];
  }

 private:
  void find_blocks() {
    const int size = static_cast<int>(code_.size());
    std::vector<char> leads(code_.size() + 1, 0);
    leads[0] = 1;
    for (int i = 0; i < size; ++i) {
      if (code_[i].target >= 0) leads[code_[i].target] = leads[i + 1] = 1;
      if (ends(code_[i])) leads[i + 1] = 1;
    }
    for (int i = 0; i < size; ++i) {
      if (leads[i]) first_.push_back(i);
      block_of_.push_back(static_cast<int>(first_.size()) - 1);
    }
    count_ = static_cast<int>(first_.size());
    after_.resize(count_ + 1);
    before_.resize(count_ + 1);
    for (int block = 0; block < count_; ++block) {
      const int last = (block + 1 < count_ ? first_[block + 1] : size) - 1;
      const Instruction& instruction = code_[last];
      const auto lead_to = [&](int target) {
        const int next = target >= size ? count_ : block_of_[target];
        after_[block].push_back(next);
        before_[next].push_back(block);
      };
      if (instruction.target >= 0) lead_to(instruction.target);
      const bool always = instruction.guard < 0;
      if (ends(instruction)) lead_to(size);
      if (!(always && (instruction.target >= 0 || ends(instruction)))) lead_to(last + 1);
    }
  }

  // Blocks from the end on, each before those that lead to it as far as loops allow.
  void order() {
    number_.assign(count_ + 1, -1);
    std::vector<std::pair<int, std::size_t>> stack{{count_, 0}};
    std::vector<char> seen(count_ + 1, 0);
    seen[count_] = 1;
    while (!stack.empty()) {
      auto& [block, next] = stack.back();
      if (next < before_[block].size()) {
        const int from = before_[block][next++];
        if (seen[from]) continue;
        seen[from] = 1;
        stack.push_back({from, 0});
      } else {
        number_[block] = static_cast<int>(order_.size());
        order_.push_back(block);
        stack.pop_back();
      }
    }
  }

  int common(int a, int b) const {
    while (a != b) {
      while (number_[a] < number_[b]) a = above_[a];
      while (number_[b] < number_[a]) b = above_[b];
    }
    return a;
  }

  void solve() {
    above_.assign(count_ + 1, -1);
    above_[count_] = count_;
    for (bool changed = true; changed;) {
      changed = false;
      for (auto each = order_.rbegin(); each != order_.rend(); ++each) {
        if (*each == count_) continue;
        int found = -1;
        for (const int next : after_[*each]) {
          if (above_[next] < 0) continue;
          found = found < 0 ? next : common(found, next);
        }
        if (found != above_[*each]) {
          above_[*each] = found;
          changed = true;
        }
      }
    }
  }

  const std::vector<Instruction>& code_;
  int count_ = 0;
  std::vector<int> first_, block_of_;
  std::vector<std::vector<int>> after_, before_;
  std::vector<int> order_, number_, above_;
};

}  // namespace

void find_joins(Kernel& kernel) {
  if (kernel.instructions.empty()) return;
  const Joins joins(kernel);
  for (std::size_t i = 0; i < kernel.instructions.size(); ++i) {
    Instruction& instruction = kernel.instructions[i];
    if (instruction.target >= 0) instruction.join = joins.of(static_cast<int>(i));
  }
}

}  // namespace tilewright::ptx
