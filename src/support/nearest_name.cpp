#include "support/nearest_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace tilewright {

std::size_t difference(std::string_view name, std::string_view other) {
  std::vector<std::size_t> row(other.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < name.size(); ++i) {
    std::size_t before = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < other.size(); ++j) {
      const std::size_t exchanged = before + (name[i] == other[j] ? 0 : 1);
      before = row[j + 1];
      row[j + 1] = std::min({exchanged, before + 1, row[j] + 1});
    }
  }
  return row.back();
}

std::string nearest_text(std::string_view name, const std::vector<std::string>& known) {
  constexpr std::size_t kMostLetters = 64;  // longer ones are no slip, and take long
  if (known.empty() || name.size() > kMostLetters) return "";
  const auto nearest = std::min_element(
      known.begin(), known.end(),
      [&](const auto& a, const auto& b) { return difference(name, a) < difference(name, b); });
  if (difference(name, *nearest) > 1 + name.size() / 4) return "";
  return fmt::format("; the nearest name is {}", *nearest);
}

}  // namespace tilewright
