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

// In turn: lengths that differ are not mixed up.
struct Choice {
  const char* name;
  std::array<std::int64_t, 3> rows, counts;
};
constexpr std::array<Choice, 4> kChoices = {{{"above", {129, 257, 193}, {2, 7, 3}},
                                             {"below", {191, 127, 255}, {3, 13, 4}},
                                             {"few", {11, 5, 7}, {2, 3, 2}},
                                             {"one", {1, 1, 1}, {1, 1, 1}}}};

std::optional<std::int64_t> standard_of(const KernelOption& option) {
  std::int64_t value = 0;
  const char* const end = option.standard.data() + option.standard.size();
  if (std::from_chars(option.standard.data(), end, value).ptr != end) return {};
  return value;
}

// The nearest that the option takes.
std::int64_t allowed(const library::KernelSource& source, const KernelOption& option,
                     std::int64_t size) {
  const std::int64_t multiple = source.multiple_of(option.name);
  size = std::clamp(size, option.minimum, option.maximum);
  const std::int64_t up = (size + multiple - 1) / multiple * multiple;
  return up <= option.maximum ? up : size / multiple * multiple;
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
  return all;
}

}  // namespace tilewright::checks
