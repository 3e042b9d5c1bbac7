#include "support/nearest_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace tilewright {
namespace {

constexpr std::size_t kMostLetters = 64;  // more are no slip, and take long

}  // namespace

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

const std::string& nearest_name(std::string_view name, const std::vector<std::string>& known) {
  const std::string_view begin = name.substr(0, kMostLetters);
  return *std::min_element(known.begin(), known.end(), [&](const auto& a, const auto& b) {
    return difference(begin, a) < difference(begin, b);
  });
}

std::string nearest_text(std::string_view name, const std::vector<std::string>& known) {
  if (known.empty() || name.size() > kMostLetters) return "";
  const std::string& nearest = nearest_name(name, known);
  if (difference(name, nearest) > 1 + name.size() / 4) return "";
  return fmt::format("; the nearest name is {}", nearest);
}

}  // namespace tilewright
