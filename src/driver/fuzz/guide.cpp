#include "driver/fuzz/guide.h"

#include <algorithm>
#include <cctype>
#include <exception>
#include <string>
#include <utility>

#include "driver/build.h"
#include "driver/fuzz/random.h"
#include "ir/ir.h"
#include "support/hash.h"
#include "tilewright/error.h"

namespace tilewright::driver::fuzz {
namespace {

std::uint64_t hash_of(const std::string& text) { return hash64({text.data(), text.size()}); }

class Features {
 public:
  void visit(const ir::Kernel& kernel, const ir::Block& block, const std::string& around) {
    for (const ir::Operation& operation : block.body) {
      std::string text = around + std::string(ir::info(operation.op).name);
      for (const ir::Key key : {ir::Key::function, ir::Key::axis, ir::Key::count, ir::Key::read,
                                ir::Key::transpose_a, ir::Key::transpose_b, ir::Key::multicast}) {
        const ir::Attribute* value = operation.attributes.find(key);
        if (!value) continue;
        if (const auto* number = std::get_if<std::int64_t>(value)) {
          text += ' ' + std::to_string(*number);
        }
        if (const auto* function = std::get_if<ir::Op>(value)) {
          text += ' ' + std::string(ir::info(*function).name);
        }
      }
      for (const auto* values : {&operation.operands, &operation.results}) {
        for (const ir::ValueId value : *values) {
          const ir::Type& type = kernel.type(value);
          text += ' ' + std::to_string(static_cast<int>(type.kind)) +
                  std::string(name_of(type.dtype)) + type.layout.to_string();
        }
      }
      found.insert(hash_of(text));
      const std::string inside =
          around.substr(0, around.find('>')) + std::string(ir::info(operation.op).name) + '>';
      for (const ir::Block& inner : operation.blocks) visit(kernel, inner, inside);
    }
  }

  std::set<std::uint64_t> found;
};

// Apart from the numbers in it.
std::string reason(const Error& error) {
  std::string text = error.message();
  text.erase(std::remove_if(text.begin(), text.end(),
                            [](unsigned char c) { return std::isdigit(c) != 0; }),
             text.end());
  return text;
}

std::vector<Step>& any_list(Recipe& recipe, Random& random) {
  std::vector<Step>* list = &recipe.steps;
  while (random.chance(50)) {
    std::vector<std::vector<Step>*> inner;
    for (Step& step : *list) {
      if (!step.inner.empty()) inner.push_back(&step.inner);
    }
    if (inner.empty()) break;
    list = inner[static_cast<std::size_t>(random.below(static_cast<int>(inner.size())))];
  }
  return *list;
}

void change(Recipe& recipe, Random& random) {
  Recipe other = random_recipe(random.next());
  while (other.style != recipe.style) other = random_recipe(random.next());
  std::vector<Step>& steps = any_list(recipe, random);
  const auto place = [&](std::size_t count) {
    return static_cast<std::ptrdiff_t>(random.below(static_cast<int>(count)));
  };
  switch (random.below(6)) {
    case 0:  // sizes and blocks belong together
      std::swap(recipe.steps, other.steps);
      std::swap(recipe, other);
      return;
    case 1:
      recipe.plan = other.plan;
      return;
    case 2:
      if (steps.size() > 1) steps.erase(steps.begin() + place(steps.size()));
      return;
    case 3:
      steps.insert(steps.begin() + place(steps.size() + 1),
                   other.steps[static_cast<std::size_t>(place(other.steps.size()))]);
      return;
    case 4:
      if (!steps.empty()) {
        steps.insert(steps.begin() + place(steps.size() + 1),
                     Step(steps[static_cast<std::size_t>(place(steps.size()))]));
      }
      return;
    default:
      if (!steps.empty()) {
        Step& step = steps[static_cast<std::size_t>(place(steps.size()))];
        (random.chance(50) ? step.a : step.b) = random.below(6);
        if (random.chance(60)) step.n = random.below(1 << 16);
      }
  }
}

}  // namespace

std::set<std::uint64_t> features_of(const Recipe& recipe) {
  Features features;
  try {
    const ir::Kernel kernel = recipe.style == Recipe::Style::explicit_level
                                  ? trace_explicit(recipe).finish()
                                  : trace(recipe).kernel.finish();
    passes::Rewrites rewrites;
    const ir::Kernel machine =
        lower(kernel, rewrites, [&](const Stage& stage, const ir::Kernel& now) {
          if (stage.changed) features.found.insert(hash_of(stage.name));
          if (stage.name == "assign_layouts") features.visit(now, now.body, "");
        });
    features.visit(machine, machine.body, "");
  } catch (const Error& error) {
    features.found.insert(hash_of(reason(error)));
  } catch (const std::exception& error) {
    features.found.insert(hash_of(error.what()));
  }
  return features.found;
}

Recipe Guide::next(std::uint64_t seed) {
  // Other numbers than those that the seed's own recipe begins with.
  Random random(~seed);
  if (kept_.empty() || random.chance(40)) return random_recipe(seed);
  // What was new last has the most neighbours that nobody has seen.
  const int count = static_cast<int>(kept_.size());
  const int back = std::min(random.below(count), random.below(count));
  Recipe recipe = kept_[static_cast<std::size_t>(count - 1 - back)];
  recipe.seed = random.next();
  const int changes = 1 + random.below(3);
  for (int i = 0; i < changes; ++i) change(recipe, random);
  return recipe;
}

void Guide::learn(const Recipe& recipe) {
  const std::size_t before = known_.size();
  known_.merge(features_of(recipe));
  if (known_.size() > before) kept_.push_back(recipe);
}

}  // namespace tilewright::driver::fuzz
