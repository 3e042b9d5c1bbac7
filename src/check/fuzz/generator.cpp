#include <algorithm>

#include "check/fuzz/recipe.h"
#include "support/random.h"

namespace tilewright::checks::fuzz {
namespace {

using StepKind = Step::Kind;

// How often each kind of step is taken, of the kernels with products and of those without.
struct Weight {
  StepKind kind;
  int rows, products, epilogue;
};
constexpr Weight kWeights[] = {
    {StepKind::load, 14, 12, 8},       {StepKind::unary, 16, 12, 16},
    {StepKind::binary, 22, 16, 20},    {StepKind::select, 6, 5, 6},
    {StepKind::mask, 7, 7, 7},         {StepKind::cast, 6, 5, 5},
    {StepKind::reduce, 12, 8, 8},      {StepKind::dot, 0, 18, 0},
    {StepKind::dot_of_parts, 0, 7, 0}, {StepKind::reshape, 3, 2, 0},
    {StepKind::slice, 4, 6, 4},        {StepKind::transpose, 3, 5, 0},
    {StepKind::scalar, 3, 2, 2},       {StepKind::coordinates, 3, 2, 3},
    {StepKind::loop, 10, 12, 0},       {StepKind::when, 4, 4, 4},
    {StepKind::store, 6, 5, 5},        {StepKind::update, 3, 2, 0},
};

constexpr int kDeepest = 2;  // loops and conditions inside each other

class Generator {
 public:
  Generator(Random& random, Recipe::Style style) : random_(random), style_(style) {}

  std::vector<Step> steps(int count, int depth) {
    std::vector<Step> result;
    for (int i = 0; i < count; ++i) result.push_back(step(depth));
    return result;
  }

 private:
  int weight(const Weight& w, int depth) const {
    if (depth >= kDeepest && (w.kind == StepKind::loop || w.kind == StepKind::when)) return 0;
    if (style_ == Recipe::Style::rows) return w.rows;
    return style_ == Recipe::Style::products ? w.products : w.epilogue;
  }
  Step step(int depth) {
    int total = 0;
    for (const Weight& w : kWeights) total += weight(w, depth);
    int drawn = random_.below(total);
    Step step;
    for (const Weight& w : kWeights) {
      step.kind = w.kind;
      if ((drawn -= weight(w, depth)) < 0) break;
    }
    // Mostly what was made last.
    for (int* which : {&step.a, &step.b, &step.c}) {
      *which = random_.chance(60) ? random_.below(3) : random_.below(12);
    }
    step.n = random_.below(1 << 16);
    if (step.kind == StepKind::loop) step.inner = steps(2 + random_.below(5), depth + 1);
    if (step.kind == StepKind::when) step.inner = steps(1 + random_.below(3), depth + 1);
    return step;
  }

  Random& random_;
  Recipe::Style style_;
};

void draw_rows(Random& random, Recipe& recipe) {
  recipe.block_rows = random.of({1, 2, 4, 8, 16, 3, 32});
  recipe.block_columns = random.of({32, 64, 128, 96, 256, 512, 100});
  while (recipe.block_rows * recipe.block_columns > 8192) recipe.block_rows /= 2;
  recipe.block_depth = random.of({32, 64, 16});
  recipe.inner = random.of({32, 64, 16, 8});
  recipe.grid_of_columns = random.chance(40);
}

void draw_products(Random& random, Recipe& recipe) {
  const bool is_explicit = recipe.style == Recipe::Style::explicit_level;
  recipe.block_rows = is_explicit ? 64 : random.of({64, 64, 128, 128, 192});
  recipe.block_columns = random.of({16, 32, 64, 64, 96, 128});
  recipe.block_depth = random.of({16, 32, 64, 64, 48});
  recipe.inner = random.of({16, 32, 64, 64});
  recipe.grid_of_columns = is_explicit || random.chance(70);
}

// An extent that is cut somewhere: short, whole, or with a tail.
std::int64_t extent(Random& random, int block, int blocks) {
  switch (random.below(5)) {
    case 0:
      return block;
    case 1:
      return 1 + random.below(block);
    case 2:
      return block * (1 + random.below(blocks));
    default:
      return 1 + random.below(block * blocks);
  }
}

// A loop within a loop, in one of ten: drawn apart, so that others are what they are without it.
void add_nest(Recipe& recipe) {
  Random random(recipe.seed + 1);
  if (recipe.style == Recipe::Style::explicit_level || !random.chance(10)) return;
  Step step;
  step.kind = StepKind::nest;
  for (int* which : {&step.a, &step.b, &step.c}) *which = random.below(12);
  step.n = random.below(1 << 16);
  const int place = random.below(static_cast<int>(recipe.steps.size()) + 1);
  recipe.steps.insert(recipe.steps.begin() + place, step);
}

}  // namespace

Recipe random_recipe(std::uint64_t seed) {
  Random random(seed);
  Recipe recipe;
  const int drawn = random.below(100);
  recipe.style = drawn < 45   ? Recipe::Style::rows
                 : drawn < 85 ? Recipe::Style::products
                              : Recipe::Style::explicit_level;
  recipe.seed = random.next();
  if (recipe.style == Recipe::Style::rows) {
    draw_rows(random, recipe);
  } else {
    draw_products(random, recipe);
  }
  recipe.sizes.rows = extent(random, recipe.block_rows, 3);
  recipe.sizes.columns = extent(random, recipe.block_columns, recipe.grid_of_columns ? 2 : 1);
  recipe.sizes.columns = std::min<std::int64_t>(
      recipe.sizes.columns, recipe.grid_of_columns ? 1024 : recipe.block_columns);
  // At the explicit level what does not exist of a product is zero, and takes part.
  if (recipe.style == Recipe::Style::explicit_level) {
    recipe.sizes.columns = recipe.block_columns * (1 + random.below(2));
    if (random.chance(60)) recipe.sizes.rows = recipe.block_rows * (1 + random.below(3));
  }
  recipe.sizes.depth = extent(random, recipe.block_depth, 3);
  if (random.chance(3)) recipe.sizes.depth = 0;
  ExplicitPlan& plan = recipe.plan;
  plan.stages = 1 + random.below(4);
  plan.warpgroups = 1 + random.below(3);
  plan.persistent = random.chance(50);
  plan.a_in_registers = random.chance(30);
  plan.b_by_rows = random.chance(50);
  plan.cluster = random.chance(30) ? 2 : 1;
  plan.multicast = plan.cluster > 1 && random.chance(80);
  // Columns that lie side by side are named by whole runs of a swizzle.
  plan.wide_stages = random.chance(40) && (plan.b_by_rows || recipe.block_columns % 64 == 0);
  plan.halves = random.chance(40) && !plan.a_in_registers && recipe.block_depth % 32 == 0;
  recipe.steps = Generator(random, recipe.style).steps(3 + random.below(10), 0);
  add_nest(recipe);
  return recipe;
}

namespace {
int steps_of(const std::vector<Step>& steps) {
  int count = 0;
  for (const Step& step : steps) count += 1 + steps_of(step.inner);
  return count;
}
}  // namespace

int steps_of(const Recipe& recipe) { return steps_of(recipe.steps); }

}  // namespace tilewright::checks::fuzz
