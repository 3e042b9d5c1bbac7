#include "check/fuzz/shrink.h"

#include <iterator>

namespace tilewright::checks::fuzz {
namespace {

class Shrinker {
 public:
  Shrinker(Recipe recipe, const std::function<bool(const Recipe&)>& fails, int attempts)
      : best_(std::move(recipe)), fails_(fails), left_(attempts) {}

  Recipe run() {
    do {
      progress_ = false;
      remove_steps();
      shrink_sizes();
      shrink_plan();
      shrink_numbers();
    } while (progress_ && left_ > 0);
    return best_;
  }

 private:
  bool accept(const Recipe& candidate) {
    if (left_-- <= 0 || !fails_(candidate)) return false;
    best_ = candidate;
    return progress_ = true;
  }

  // The list of steps at a path of positions.
  static std::vector<Step>& list_at(Recipe& recipe, const std::vector<std::size_t>& path) {
    std::vector<Step>* list = &recipe.steps;
    for (const std::size_t position : path) list = &(*list)[position].inner;
    return *list;
  }

  void remove_steps() { remove_steps({}); }
  void remove_steps(const std::vector<std::size_t>& path) {
    for (std::size_t run = list_at(best_, path).size(); run > 0; run /= 2) {
      for (std::size_t end = list_at(best_, path).size(); end >= run && end > 0;) {
        Recipe candidate = best_;
        std::vector<Step>& list = list_at(candidate, path);
        const auto first = list.begin() + static_cast<std::ptrdiff_t>(end - run);
        list.erase(first, first + static_cast<std::ptrdiff_t>(run));
        accept(candidate);
        end -= run;
      }
    }
    for (std::size_t i = list_at(best_, path).size(); i-- > 0;) {
      if (list_at(best_, path)[i].inner.empty()) continue;
      Recipe candidate = best_;
      std::vector<Step>& list = list_at(candidate, path);
      std::vector<Step> inner = std::move(list[i].inner);
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
      list.insert(list.begin() + static_cast<std::ptrdiff_t>(i),
                  std::make_move_iterator(inner.begin()), std::make_move_iterator(inner.end()));
      if (accept(candidate)) continue;
      std::vector<std::size_t> deeper = path;
      deeper.push_back(i);
      remove_steps(deeper);
    }
  }

  template <typename Number>
  void lower(Number Recipe::*member, std::initializer_list<Number> to) {
    for (const Number value : to) {
      if (!(value < best_.*member)) continue;
      Recipe candidate = best_;
      candidate.*member = value;
      if (accept(candidate)) return;
    }
  }

  bool products_exist_whole() const { return best_.style == Recipe::Style::explicit_level; }
  void shrink_sizes() {
    for (std::int64_t Sizes::*size : {&Sizes::rows, &Sizes::columns, &Sizes::depth}) {
      for (const std::int64_t value :
           {std::int64_t{1}, best_.sizes.*size / 2, best_.sizes.*size - 1}) {
        const bool whole = size == &Sizes::columns && products_exist_whole();
        if (value < 1 || value >= best_.sizes.*size ||
            (whole && value % best_.block_columns != 0)) {
          continue;
        }
        Recipe candidate = best_;
        candidate.sizes.*size = value;
        if (accept(candidate)) break;
      }
    }
    const bool products = best_.style != Recipe::Style::rows;
    if (products) {
      lower(&Recipe::block_rows, {64, 128});
    } else {
      lower(&Recipe::block_rows, {1, 2, 4, 8});
    }
    if (!products_exist_whole()) lower(&Recipe::block_columns, {16, 32, 64});
    lower(&Recipe::block_depth, {16, 32});
    lower(&Recipe::inner, {16, 32});
    // One block of columns holds them all where the grid has none.
    if (!best_.grid_of_columns && best_.sizes.columns > best_.block_columns) {
      best_.sizes.columns = best_.block_columns;
    }
    if (!products_exist_whole()) lower(&Recipe::grid_of_columns, {false});
  }

  void shrink_plan() {
    if (best_.style != Recipe::Style::explicit_level) return;
    const ExplicitPlan small{1, 1, 1, false, false, false, false, false, false};
    const auto take = [&](auto member) {
      Recipe candidate = best_;
      if (candidate.plan.*member == small.*member) return;
      candidate.plan.*member = small.*member;
      accept(candidate);
    };
    take(&ExplicitPlan::multicast);
    if (!best_.plan.multicast) take(&ExplicitPlan::cluster);
    take(&ExplicitPlan::stages);
    take(&ExplicitPlan::warpgroups);
    take(&ExplicitPlan::persistent);
    take(&ExplicitPlan::a_in_registers);
    take(&ExplicitPlan::wide_stages);
    take(&ExplicitPlan::halves);
    if (!best_.plan.wide_stages) take(&ExplicitPlan::b_by_rows);
  }

  void shrink_numbers() { shrink_numbers({}); }
  void shrink_numbers(const std::vector<std::size_t>& path) {
    for (std::size_t i = 0; i < list_at(best_, path).size(); ++i) {
      for (int Step::*number : {&Step::a, &Step::b, &Step::c}) {
        if (list_at(best_, path)[i].*number == 0) continue;
        Recipe candidate = best_;
        list_at(candidate, path)[i].*number = 0;
        accept(candidate);
      }
      std::vector<std::size_t> deeper = path;
      deeper.push_back(i);
      if (!list_at(best_, path)[i].inner.empty()) shrink_numbers(deeper);
    }
  }

  Recipe best_;
  const std::function<bool(const Recipe&)>& fails_;
  int left_;
  bool progress_ = false;
};

}  // namespace

Recipe shrunken(Recipe recipe, const std::function<bool(const Recipe&)>& fails, int attempts) {
  return Shrinker(std::move(recipe), fails, attempts).run();
}

}  // namespace tilewright::checks::fuzz
