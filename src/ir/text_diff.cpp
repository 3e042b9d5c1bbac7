#include "ir/text_diff.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "support/characters.h"

namespace tilewright::ir {
namespace {

struct Line {
  std::string_view text;
  std::string skeleton;  // without the numbers of values
  std::vector<std::string_view> values;
};

std::vector<Line> split(std::string_view text) {
  std::vector<Line> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    Line line;
    line.text = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    for (std::size_t i = 0; i < line.text.size(); ++i) {
      line.skeleton += line.text[i];
      if (line.text[i] != '%') continue;
      const std::size_t begin = i + 1;
      while (i + 1 < line.text.size() && is_digit(line.text[i + 1])) ++i;
      line.values.push_back(line.text.substr(begin, i + 1 - begin));
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

using Pairs = std::vector<std::pair<std::size_t, std::size_t>>;

// The lines of a longest common subsequence of the skeletons (Myers, "An O(ND) difference algorithm
// and its variations", 1986): furthest[k] is how far into `a` the path on diagonal k reaches.
Pairs common_lines(const std::vector<Line>& a, const std::vector<Line>& b) {
  const auto n = static_cast<std::ptrdiff_t>(a.size()), m = static_cast<std::ptrdiff_t>(b.size());
  const auto same = [&](std::ptrdiff_t x, std::ptrdiff_t y) {
    return a[static_cast<std::size_t>(x)].skeleton == b[static_cast<std::size_t>(y)].skeleton;
  };
  std::vector<std::ptrdiff_t> furthest(static_cast<std::size_t>(2 * (n + m) + 3), 0);
  const std::ptrdiff_t middle = n + m + 1;
  const auto at = [&](std::ptrdiff_t k) -> std::ptrdiff_t& {
    return furthest[static_cast<std::size_t>(middle + k)];
  };
  // The diagonals -d..d as they stood before step d.
  std::vector<std::vector<std::ptrdiff_t>> steps;
  const auto from_above = [](const auto& reach, std::ptrdiff_t k, std::ptrdiff_t d) {
    return k == -d || (k != d && reach(k - 1) < reach(k + 1));
  };
  std::ptrdiff_t d = 0;
  for (bool done = false; !done; ++d) {
    steps.emplace_back(furthest.begin() + (middle - d - 1), furthest.begin() + (middle + d + 2));
    for (std::ptrdiff_t k = -d; k <= d && !done; k += 2) {
      std::ptrdiff_t x = from_above(at, k, d) ? at(k + 1) : at(k - 1) + 1;
      if (d == 0) x = 0;
      while (x < n && x - k < m && same(x, x - k)) ++x;
      at(k) = x;
      done = x >= n && x - k >= m;
    }
  }
  Pairs pairs;
  std::ptrdiff_t x = n, y = m;
  for (--d; d >= 0; --d) {
    const std::vector<std::ptrdiff_t>& step = steps[static_cast<std::size_t>(d)];
    const auto reach = [&](std::ptrdiff_t k) { return step[static_cast<std::size_t>(k + d + 1)]; };
    const std::ptrdiff_t k = x - y;
    const std::ptrdiff_t previous = from_above(reach, k, d) ? k + 1 : k - 1;
    const std::ptrdiff_t from_x = d == 0 ? 0 : reach(previous);
    const std::ptrdiff_t from_y = d == 0 ? 0 : from_x - previous;
    while (x > from_x && y > from_y) {
      --x;
      --y;
      pairs.emplace_back(static_cast<std::size_t>(x), static_cast<std::size_t>(y));
    }
    x = from_x;
    y = from_y;
  }
  std::reverse(pairs.begin(), pairs.end());
  return pairs;
}

// One renaming of values, found line by line.
class Renaming {
 public:
  bool explains(const Line& a, const Line& b) {
    bool all = true;
    for (std::size_t i = 0; i < a.values.size(); ++i) {
      const auto to = to_b_.emplace(a.values[i], b.values[i]).first;
      const auto from = to_a_.emplace(b.values[i], a.values[i]).first;
      all = all && to->second == b.values[i] && from->second == a.values[i];
    }
    return all;
  }

 private:
  std::unordered_map<std::string_view, std::string_view> to_b_, to_a_;
};

}  // namespace

std::vector<DiffLine> text_diff(std::string_view before, std::string_view after) {
  const std::vector<Line> a = split(before), b = split(after);
  std::vector<DiffLine> result;
  std::size_t i = 0, j = 0;
  const auto emit = [&](DiffLine::Kind kind, const Line& line) {
    result.push_back({kind, std::string(line.text)});
  };
  const auto advance = [&](std::size_t to_i, std::size_t to_j) {
    while (i < to_i) emit(DiffLine::Kind::removed, a[i++]);
    while (j < to_j) emit(DiffLine::Kind::added, b[j++]);
  };
  Renaming renaming;
  for (const auto& [x, y] : common_lines(a, b)) {
    const bool same = renaming.explains(a[x], b[y]);
    advance(x + (same ? 0 : 1), y + (same ? 0 : 1));
    if (!same) continue;
    emit(DiffLine::Kind::same, b[y]);
    ++i;
    ++j;
  }
  advance(a.size(), b.size());
  return result;
}

std::string format_diff(const std::vector<DiffLine>& lines, int context) {
  std::vector<bool> shown(lines.size(), false);
  const auto reach = static_cast<std::size_t>(context);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].kind == DiffLine::Kind::same) continue;
    const std::size_t end = std::min(lines.size(), i + reach + 1);
    for (std::size_t j = i - std::min(i, reach); j < end; ++j) shown[j] = true;
  }
  std::string text;
  bool gap = false;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (!shown[i]) {
      gap = true;
      continue;
    }
    if (gap) text += "...\n";
    gap = false;
    text += static_cast<char>(lines[i].kind) + (" " + lines[i].text) + '\n';
  }
  return text;
}

}  // namespace tilewright::ir
