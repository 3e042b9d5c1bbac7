#include "library/tuning/rule_writer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <sstream>

#include "library/schedule_rules.h"

namespace tilewright::library {
namespace {

// A part of the grid: for each axis the first of its values and the one behind the last.
using Box = std::vector<std::pair<std::size_t, std::size_t>>;

struct Leaf {
  Box box;
  std::string variant;
};

class Divider {
 public:
  Divider(const std::vector<TunedAxis>& axes, const std::vector<TunedPoint>& points,
          double tolerance)
      : axes_(axes), points_(points), tolerance_(tolerance) {}

  std::vector<Leaf> run() {
    Box all;
    for (const TunedAxis& axis : axes_) all.emplace_back(0, axis.values.size());
    return *divide(all, 0);  // at the least each point for itself
  }

 private:
  static bool is_inside(const TunedPoint& point, const Box& box) {
    for (std::size_t axis = 0; axis < box.size(); ++axis) {
      if (point.place[axis] < box[axis].first || point.place[axis] >= box[axis].second) {
        return false;
      }
    }
    return true;
  }

  // The variant that serves the whole box within the tolerance, the fastest such on the whole; ""
  // where there is none.
  std::string common_variant(const Box& box) const {
    std::map<std::string, std::pair<std::size_t, double>> sums;  // points served, log of slowness
    std::size_t count = 0;
    for (const TunedPoint& point : points_) {
      if (!is_inside(point, box) || point.seconds.empty()) continue;
      ++count;
      double best = INFINITY;
      for (const auto& [name, seconds] : point.seconds) best = std::min(best, seconds);
      for (const auto& [name, seconds] : point.seconds) {
        if (seconds > best * (1 + tolerance_)) continue;
        auto& [served, slowness] = sums[name];
        ++served;
        slowness += std::log(seconds / best);
      }
    }
    std::string found;
    for (const auto& [name, sum] : sums) {
      if (sum.first < count) continue;
      if (found.empty() || sum.second < sums[found].second) found = name;
    }
    return found;
  }

  bool has_points(const Box& box) const {
    return std::any_of(points_.begin(), points_.end(), [&](const TunedPoint& point) {
      return is_inside(point, box) && !point.seconds.empty();
    });
  }

  // Divides the box along this axis and those behind it into few parts that one variant each
  // serves; nothing where values that the box holds on an axis before want different ones.
  std::optional<std::vector<Leaf>> divide(const Box& box, std::size_t axis) const {
    if (axis == box.size()) {
      std::string variant = common_variant(box);
      if (!variant.empty()) return std::vector<Leaf>{{box, std::move(variant)}};
      if (has_points(box)) return std::nullopt;
      return std::vector<Leaf>();  // nothing runs there
    }
    std::vector<Leaf> leaves;
    Box part = box;
    for (std::size_t first = box[axis].first, end = first; first < box[axis].second; first = end) {
      end = first + 1;
      part[axis] = {first, end};
      auto run = divide(part, axis + 1);
      if (!run) return std::nullopt;
      // Longer, as long as it saves a part.
      for (; end < box[axis].second; ++end) {
        part[axis] = {end, end + 1};
        const auto single = divide(part, axis + 1);
        part[axis] = {first, end + 1};
        auto longer = divide(part, axis + 1);
        if (!single || !longer || longer->size() >= run->size() + single->size()) break;
        run = std::move(longer);
      }
      leaves.insert(leaves.end(), run->begin(), run->end());
    }
    return leaves;
  }

  const std::vector<TunedAxis>& axes_;
  const std::vector<TunedPoint>& points_;
  const double tolerance_;
};

// m, or max(m, max(n, k)) of sizes that are tuned as one.
std::string size_of(const TunedAxis& axis) {
  std::string text = axis.names.back();
  for (std::size_t i = axis.names.size() - 1; i-- > 0;) {
    text = fmt::format("max({}, {})", axis.names[i], text);
  }
  return text;
}

// A range reaches to its largest value: what lies between two that were measured belongs to the
// larger one. The first rule that holds counts, so that no range needs its lower end.
std::string condition_of(const Leaf& leaf, const std::vector<TunedAxis>& axes) {
  std::vector<std::string> terms;
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    const std::size_t end = leaf.box[axis].second;
    if (end == axes[axis].values.size()) continue;
    terms.push_back(fmt::format("{} <= {}", size_of(axes[axis]), axes[axis].values[end - 1]));
  }
  return fmt::format("{}", fmt::join(terms, " and "));
}

// A rule that the one behind it would replace by the same.
void drop_covered(std::vector<Leaf>& leaves) {
  for (std::size_t i = leaves.size(); i-- > 1;) {
    const Leaf& before = leaves[i - 1];
    const Leaf& after = leaves[i];
    bool covered = before.variant == after.variant;
    for (std::size_t axis = 0; axis < after.box.size(); ++axis) {
      covered = covered && before.box[axis].second <= after.box[axis].second;
    }
    if (covered) leaves.erase(leaves.begin() + static_cast<std::ptrdiff_t>(i - 1));
  }
}

double slowness(const std::vector<TunedPoint>& points, const std::vector<Leaf>& leaves) {
  double worst = 1;
  for (const TunedPoint& point : points) {
    double best = INFINITY;
    for (const auto& [name, seconds] : point.seconds) best = std::min(best, seconds);
    for (const Leaf& leaf : leaves) {
      bool serves = true;
      for (std::size_t axis = 0; axis < leaf.box.size(); ++axis) {
        serves = serves && point.place[axis] < leaf.box[axis].second;
      }
      if (!serves) continue;
      const auto found = point.seconds.find(leaf.variant);
      if (found != point.seconds.end()) worst = std::max(worst, found->second / best);
      break;
    }
  }
  return worst;
}

std::string heading_of(const std::string& facts) {
  return "# tuned for " + (facts.empty() ? std::string("all") : facts) + ":";
}

}  // namespace

TunedRules make_rules(const std::vector<TunedAxis>& axes, const std::vector<TunedPoint>& points,
                      const std::string& facts, double tolerance) {
  TunedRules rules;
  std::set<std::string> variants;
  std::vector<Leaf> leaves = Divider(axes, points, tolerance).run();
  drop_covered(leaves);
  for (const Leaf& leaf : leaves) {
    variants.insert(leaf.variant);
    std::string condition = condition_of(leaf, axes);
    if (condition.empty()) {
      condition = facts;
    } else if (!facts.empty()) {
      condition = facts + " and " + condition;
    }
    rules.lines.push_back((condition.empty() ? "else" : "when " + condition) +
                          ": schedule=" + leaf.variant);
  }
  rules.variants = variants.size();
  rules.worst = slowness(points, leaves);
  return rules;
}

std::string update_rules(const std::string& text, const LibraryKernel& kernel,
                         const std::string& target, const TunedRules& rules,
                         const std::string& facts, const std::string& remark) {
  const std::string heading = heading_of(facts);
  std::vector<std::string> lines = {fmt::format("{} {}", heading, remark)};
  lines.insert(lines.end(), rules.lines.begin(), rules.lines.end());
  lines.emplace_back();  // a tuned part ends at an empty line

  std::vector<std::string> kept;
  std::istringstream in(text);
  std::string part;  // the heading of the tuned part that a line is in
  bool has_header = false, has_last = facts.empty();
  for (std::string line; std::getline(in, line);) {
    if (!has_header && !line.empty() && line[0] != '#') {
      has_header = true;
      continue;
    }
    if (line.rfind("# tuned for ", 0) == 0) part = line;
    const bool is_replaced = part.rfind(heading, 0) == 0 && !part.empty();
    // Rules without facts of their own serve all: only one set of them is of use.
    const bool is_kept = facts.empty() ? !part.empty() && !is_replaced : !is_replaced;
    if (is_kept) kept.push_back(line);
    has_last = has_last || (is_kept && line.rfind("else", 0) == 0);
    if (line.empty()) part.clear();
  }
  if (!has_last) kept.push_back("else: schedule=" + first_schedule(kernel, target));
  kept.insert(facts.empty() ? kept.end() : kept.begin(), lines.begin(), lines.end());
  while (!kept.empty() && kept.back().empty()) kept.pop_back();
  return fmt::format("{}\n{}\n", rule_header(kernel.name, target), fmt::join(kept, "\n"));
}

}  // namespace tilewright::library
