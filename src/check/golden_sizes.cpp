#include "check/golden_sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "library/decided_options.h"
#include "library/stated_input.h"
#include "support/diagnostic.h"

namespace tilewright::checks {
namespace {

// A length whose standard is no more counts sequences, pages or the like, and not rows.
constexpr std::int64_t kCounts = 64;

// In turn: lengths that differ are not mixed up. Pages have as many rows as three of the largest
// tiles, and one more or less.
struct Choice {
  const char* name;
  std::array<std::int64_t, 3> rows, counts;
  std::int64_t rows_in_pages;
};
constexpr std::array<Choice, 4> kChoices = {{{"above", {129, 257, 193}, {2, 7, 3}, 385},
                                             {"below", {191, 127, 255}, {3, 13, 4}, 383},
                                             {"few", {11, 5, 7}, {2, 3, 2}, 21},
                                             {"one", {1, 1, 1}, {1, 1, 1}, 1}}};

std::optional<std::int64_t> integer_of(const std::string& text) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  if (std::from_chars(text.data(), end, value).ptr != end) return {};
  return value;
}
std::optional<std::int64_t> standard_of(const KernelOption& option) {
  return integer_of(option.standard);
}

// The nearest that the option takes.
std::int64_t allowed(const library::KernelSource& source, const KernelOption& option,
                     std::int64_t size) {
  const std::int64_t multiple = source.multiple_of(option.name);
  size = std::clamp(size, option.minimum, option.maximum);
  const std::int64_t up = (size + multiple - 1) / multiple * multiple;
  return up <= option.maximum ? up : size / multiple * multiple;
}

// What the option is, if it is an integer that is stated, or its standard.
std::int64_t value_of(const LibraryKernel& entry, const std::vector<std::string>& settings,
                      const std::string& name) {
  std::optional<std::int64_t> value;
  for (const KernelOption& option : entry.options) {
    if (option.name == name) value = integer_of(option.standard);
  }
  for (const std::string& setting : settings) {
    if (setting.starts_with(name + "=")) value = integer_of(setting.substr(name.size() + 1));
  }
  return std::max<std::int64_t>(value.value_or(1), 1);  // what is wrong is refused elsewhere
}

// Of a sequence, or half as many again for all of them: the first one has all of its pages, and
// most are read.
std::int64_t pages(const LibraryKernel& entry, const std::vector<std::string>& settings,
                   const KernelOption& option, const Choice& choice) {
  const std::int64_t page = value_of(entry, settings, option.count);
  const std::int64_t each = (choice.rows_in_pages + page - 1) / page;
  return option.sum.empty() ? each : each + (each + 1) / 2;
}

std::vector<std::string> lengths_of(const library::KernelSource& source,
                                    const std::vector<std::string>& settings,
                                    const Choice& choice) {
  const LibraryKernel& entry = source.entry();
  const std::set<std::string> decided = library::decided_options(entry, settings);
  std::vector<std::string> lengths;
  std::size_t rows = 0, counts = 0;
  for (const KernelOption& option : entry.options) {
    if (!option.is_length || option.kind != KernelOption::Kind::integer) continue;
    // Where 0 is usual, it says that the length is drawn or not asked.
    if (decided.contains(option.name) || standard_of(option) == 0) continue;
    if (!option.count.empty()) {
      const std::int64_t size = pages(entry, settings, option, choice);
      lengths.push_back(fmt::format("{}={}", option.name, allowed(source, option, size)));
      continue;
    }
    const std::int64_t size = standard_of(option).value_or(kCounts + 1) > kCounts
                                  ? choice.rows[rows++ % choice.rows.size()]
                                  : choice.counts[counts++ % choice.counts.size()];
    lengths.push_back(fmt::format("{}={}", option.name, allowed(source, option, size)));
  }
  return lengths;
}

std::vector<GoldenSizes> sizes_of(const library::KernelSource& source,
                                  const std::vector<std::string>& settings, bool from_files) {
  if (from_files || lengths_of(source, settings, kChoices[0]).empty()) {
    return {{"set", settings}};
  }
  std::vector<GoldenSizes> all;
  std::optional<Error> refused;
  for (const Choice& choice : kChoices) {
    GoldenSizes sizes{choice.name, settings};
    const std::vector<std::string> lengths = lengths_of(source, settings, choice);
    sizes.settings.insert(sizes.settings.end(), lengths.begin(), lengths.end());
    try {
      resolve_options(source.entry(), sizes.settings);
    } catch (const Error& error) {
      if (!refused) refused = error;
      continue;
    }
    const bool is_new = std::none_of(all.begin(), all.end(), [&](const GoldenSizes& other) {
      return other.settings == sizes.settings;
    });
    if (is_new) all.push_back(std::move(sizes));
  }
  if (all.empty()) throw Error(*refused);
  return all;
}

bool names_file(const std::map<std::string, std::string>& inputs) {
  return std::any_of(inputs.begin(), inputs.end(), [](const auto& input) {
    return !library::StatedInput::parse(input.second, input.first);
  });
}

}  // namespace

std::vector<GoldenSizes> golden_sizes(const library::KernelSource& source,
                                      const std::vector<std::string>& settings,
                                      const std::map<std::string, std::string>& inputs) {
  std::vector<GoldenSizes> all = sizes_of(source, settings, names_file(inputs));
  if (!source.entry().backward_of.empty()) return all;  // these are given the sums
  for (const LibraryTensor& tensor : source.entry().tensors) {
    if (!tensor.online_axis || inputs.contains(tensor.name)) continue;
    GoldenSizes rising{"rising", all.front().settings};
    rising.inputs[tensor.name] = fmt::format("rising:{}", *tensor.online_axis);
    all.push_back(std::move(rising));
  }
  std::set<std::string> drawn_with, stated;
  for (const LibraryTensor& tensor : source.entry().tensors) {
    (inputs.contains(tensor.name) ? stated : drawn_with).insert(tensor.drawn_with);
  }
  const std::set<std::string> decided = library::decided_options(source.entry(), settings);
  for (const std::string& option : drawn_with) {
    const std::string name = option.substr(0, option.find('='));
    if (name.empty() || stated.contains(option) || decided.contains(name)) continue;
    GoldenSizes more{name, all.front().settings};
    more.settings.push_back(option);
    all.push_back(std::move(more));
  }
  return all;
}

}  // namespace tilewright::checks
