#include "size_axes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <sstream>

#include "support/diagnostic.h"

namespace tilewright::tools {
namespace {

using library::TunedAxis;

constexpr std::size_t kMaximumPoints = 4096;

[[noreturn]] void refuse_sizes(const std::string& message, const std::string& fix) {
  Diagnostic({}, message).fix(fix).raise();
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> words;
  std::istringstream in(text);
  for (std::string word; std::getline(in, word, separator);) words.push_back(word);
  return words;
}

const KernelOption& find_length(const LibraryKernel& kernel, const std::string& name) {
  std::vector<std::string> known;
  for (const KernelOption& option : kernel.options) {
    if (!option.is_length || option.kind != KernelOption::Kind::integer) continue;
    if (option.name == name) return option;
    known.push_back(option.name);
  }
  refuse_sizes(fmt::format("--sizes: {} has no length '{}'", kernel.name, name),
               fmt::format("name one of: {}; facts, which a build depends on, are set by --set",
                           fmt::join(known, ", ")));
}

TunedAxis parse_sizes(const LibraryKernel& kernel, const std::string& text) {
  TunedAxis axis;
  std::vector<std::string> parts = split(text, '=');
  if (parts.size() < 2 || text.back() == '=') {
    refuse_sizes(fmt::format("--sizes {}: no length and sizes", text), "write --sizes m=16,64,128");
  }
  for (const std::string& word : split(parts.back(), ',')) {
    std::int64_t value = 0;
    const auto [end, code] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (code != std::errc() || end != word.data() + word.size() || value < 1) {
      refuse_sizes(fmt::format("--sizes {}: '{}' is no size", text, word), "write sizes from 1 on");
    }
    axis.values.push_back(value);
  }
  parts.pop_back();
  for (const std::string& name : parts) axis.names.push_back(find_length(kernel, name).name);
  std::sort(axis.values.begin(), axis.values.end());
  axis.values.erase(std::unique(axis.values.begin(), axis.values.end()), axis.values.end());
  return axis;
}

}  // namespace

std::vector<TunedAxis> parse_axes(const LibraryKernel& kernel,
                                  const std::vector<std::string>& sizes) {
  std::vector<TunedAxis> axes;
  std::vector<std::string> seen;
  std::size_t points = 1;
  for (const std::string& text : sizes) {
    axes.push_back(parse_sizes(kernel, text));
    points *= axes.back().values.size();
    for (const std::string& name : axes.back().names) {
      if (std::count(seen.begin(), seen.end(), name) != 0) {
        refuse_sizes(fmt::format("--sizes: {} comes twice", name), "give all its sizes at once");
      }
      seen.push_back(name);
    }
  }
  if (points > kMaximumPoints) {
    refuse_sizes(fmt::format("--sizes make {} combinations", points),
                 fmt::format("name at most {} at a time", kMaximumPoints));
  }
  return axes;
}

std::vector<std::vector<std::size_t>> places_of(const std::vector<TunedAxis>& axes) {
  std::vector<std::vector<std::size_t>> places = {{}};
  for (const TunedAxis& axis : axes) {
    std::vector<std::vector<std::size_t>> longer;
    for (const std::vector<std::size_t>& place : places) {
      for (std::size_t i = 0; i < axis.values.size(); ++i) {
        longer.push_back(place);
        longer.back().push_back(i);
      }
    }
    places = std::move(longer);
  }
  return places;
}

std::vector<std::string> sizes_at(const std::vector<TunedAxis>& axes,
                                  const std::vector<std::size_t>& place) {
  std::vector<std::string> sizes;
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    for (const std::string& name : axes[axis].names) {
      sizes.push_back(fmt::format("{}={}", name, axes[axis].values[place[axis]]));
    }
  }
  return sizes;
}

}  // namespace tilewright::tools
