#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cfloat>
#include <charconv>
#include <cmath>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "ir/dim_values.h"
#include "library/decided_options.h"
#include "library/present_tensors.h"
#include "library/schedule_rules.h"
#include "library/stated_schedule.h"
#include "support/diagnostic.h"
#include "support/nearest_name.h"
#include "tilewright/library.h"

namespace tilewright {
namespace {

using Kind = KernelOption::Kind;

[[noreturn]] void fail(const std::string& message, const std::string& fix) {
  Diagnostic({}, message).fix(fix).raise();
}

template <typename List>
std::vector<std::string> names_of(const List& list) {
  std::vector<std::string> names;
  for (const auto& entry : list) names.push_back(entry.name);
  return names;
}

std::string names_text(const std::map<std::string, std::string>& values) {
  std::vector<std::string> names;
  for (const auto& [name, value] : values) names.push_back(name);
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string list_text(const std::vector<std::string>& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

// What stands between commas; nothing in an empty text.
std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    words.push_back(text.substr(0, comma));
    if (comma == text.npos) return words;
    text.remove_prefix(comma + 1);
    if (text.empty()) words.emplace_back();
  }
  return words;
}

std::optional<std::int64_t> number_of(std::string_view word) {
  std::int64_t number = 0;
  const char* const end = word.data() + word.size();
  if (std::from_chars(word.data(), end, number) != std::from_chars_result{end, {}}) return {};
  return number;
}

// Of all of the word, and finite.
std::optional<double> real_of(const std::string& word) {
  double number = 0;
  const char* const end = word.data() + word.size();
  if (std::from_chars(word.data(), end, number) != std::from_chars_result{end, {}}) return {};
  return std::isfinite(number) ? std::optional(number) : std::nullopt;
}

void check_lengths(const KernelOption& option, const std::string& subject,
                   const std::string& value) {
  std::int64_t sum = 0;
  for (const std::string_view word : words_of(value)) {
    const std::optional<std::int64_t> length = number_of(word);
    if (!length || *length < 0 || *length > option.maximum) {
      fail(fmt::format("{}: '{}' is no length", subject, word),
           fmt::format("write numbers from 0 to {} with commas between: set {}=128,77,0",
                       option.maximum, option.name));
    }
    sum += *length;
    if (sum > option.maximum) {
      fail(fmt::format("{}: the sum is more than {}", subject, option.maximum),
           "set fewer or shorter sequences");
    }
  }
}

// The value as the program compares it; raises when the option does not take it.
std::string checked_value(const LibraryKernel& kernel, const KernelOption& option,
                          const std::string& value) {
  const std::string subject = fmt::format("{}: {} = '{}'", kernel.name, option.name, value);
  switch (option.kind) {
    case Kind::integer: {
      std::int64_t number = 0;
      const auto [end, code] = std::from_chars(value.data(), value.data() + value.size(), number);
      const bool parsed = end == value.data() + value.size() && !value.empty();
      if (!parsed || code == std::errc::invalid_argument) {
        fail(subject + " is no integer",
             fmt::format("set {}={}", option.name, std::max<std::int64_t>(option.minimum, 1)));
      }
      if (code != std::errc() || number < option.minimum || number > option.maximum) {
        fail(fmt::format("{} is outside {} to {}", subject, option.minimum, option.maximum),
             fmt::format("set {} ({}) to a number in that range", option.name, option.description));
      }
      return std::to_string(number);
    }
    case Kind::number: {
      const std::optional<double> number = real_of(value);
      if (!number) fail(subject + " is no finite number", fmt::format("set {}=0.5", option.name));
      if (std::abs(*number) <= FLT_MAX) return value;
      fail(fmt::format("{} lies beyond f32, which ends at {}", subject, FLT_MAX),
           fmt::format("set {} to a smaller number", option.name));
    }
    case Kind::boolean:
      if (value == "true" || value == "1") return "true";
      if (value == "false" || value == "0") return "false";
      fail(subject + " is neither true nor false",
           fmt::format("set {}=true, or {}=false", option.name, option.name));
    case Kind::dtype:
    case Kind::choice:
      if (std::count(option.choices.begin(), option.choices.end(), value) == 0) {
        fail(subject + " is not known" + nearest_text(value, option.choices),
             fmt::format("set {} to one of: {}", option.name, list_text(option.choices)));
      }
      return value;
    case Kind::lengths:
      check_lengths(option, subject, value);
      return value;
  }
  return value;
}

std::string checked_schedule(const LibraryKernel& kernel, const std::string& value) {
  std::vector<std::string> known = names_of(kernel.schedules);
  known.insert(known.begin(), library::kTile);
  if (std::count(known.begin(), known.end(), value) == 0) {
    fail(fmt::format("{}: there is no schedule '{}'{}", kernel.name, value,
                     nearest_text(value, known)),
         fmt::format("set schedule to one of: {}", list_text(known)));
  }
  return value;
}

const KernelOption* find_option(const LibraryKernel& kernel, const std::string& name) {
  for (const KernelOption& option : kernel.options) {
    if (option.name == name) return &option;
  }
  return nullptr;
}

std::string checked_setting(const LibraryKernel& kernel, const std::string& name,
                            const std::string& value) {
  if (name == library::kSchedule) return checked_schedule(kernel, value);
  if (library::is_field(name)) return library::checked_field(name, value);
  const KernelOption* option = find_option(kernel, name);
  if (option != nullptr) return checked_value(kernel, *option, value);
  std::vector<std::string> known = names_of(kernel.options);
  known.emplace_back(library::kSchedule);
  known.emplace_back("schedule.stages and so on");
  // Lengths are options of kernels that take packed sequences.
  const bool is_lengths = name.rfind("lengths", 0) == 0;
  fail(fmt::format("{} has no option '{}'{}", kernel.name, name, nearest_text(name, known)),
       fmt::format("{}set one of: {}",
                   is_lengths ? "take the kernel of packed sequences (\"varlen\" in `tilewright "
                                "list`), or "
                              : "",
                   list_text(known)));
}

}  // namespace

const std::string& OptionValues::text(const std::string& name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) {
    fail(fmt::format("there is no option '{}' among these values", name),
         fmt::format("ask for one of: {}", names_text(values_)));
  }
  return found->second;
}

std::int64_t OptionValues::integer(const std::string& name) const {
  const std::string& value = text(name);
  std::int64_t number = 0;
  const char* const end = value.data() + value.size();
  if (std::from_chars(value.data(), end, number) == std::from_chars_result{end, {}}) return number;
  fail(fmt::format("option {} = '{}' is no integer", name, value),
       fmt::format("ask for {} as what it is: text, dtype or boolean", name));
}

double OptionValues::number(const std::string& name) const {
  if (const std::optional<double> number = real_of(text(name))) return *number;
  fail(fmt::format("option {} = '{}' is no number", name, text(name)),
       fmt::format("ask for {} as what it is: text, dtype or boolean", name));
}

bool OptionValues::boolean(const std::string& name) const {
  const std::string& value = text(name);
  if (value == "true" || value == "false") return value == "true";
  fail(fmt::format("option {} = '{}' is neither true nor false", name, value),
       fmt::format("ask for {} as what it is: text, dtype or integer", name));
}

DType OptionValues::dtype(const std::string& name) const { return parse_dtype(text(name)); }

std::vector<std::int64_t> OptionValues::lengths(const std::string& name) const {
  const std::string& value = text(name);
  std::vector<std::int64_t> lengths;
  for (const std::string_view word : words_of(value)) {
    const std::optional<std::int64_t> length = number_of(word);
    if (!length) {
      fail(fmt::format("option {} = '{}' is no list of lengths", name, value),
           fmt::format("ask for {} as what it is: text, dtype, boolean or integer", name));
    }
    lengths.push_back(*length);
  }
  return lengths;
}

namespace {

// What lengths say of other options, and who says it.
class LengthFacts {
 public:
  LengthFacts(const LibraryKernel& kernel, const std::set<std::string>& set,
              const std::map<std::string, std::int64_t>& sizes)
      : kernel_(kernel), set_(set), sizes_(sizes) {}

  void add(const KernelOption& option, OptionValues& options) {
    const std::vector<std::int64_t> lengths = options.lengths(option.name);
    const std::string said = fmt::format("{} = '{}'", option.name, options.text(option.name));
    note(option.count, static_cast<std::int64_t>(lengths.size()), "has so many lengths", said,
         options);
    note(option.sum, std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}),
         "sums to so much", said, options);
  }

 private:
  void note(const std::string& name, std::int64_t value, const char* what, const std::string& said,
            OptionValues& options) {
    const auto check = [&](std::int64_t other, const std::string& by) {
      if (other == value) return;
      fail(fmt::format("{}: {} is {} by {}, and {} by {}, which {}", kernel_.name, name, other, by,
                       value, said, what),
           fmt::format("leave {} out, or give lengths that agree", name));
    };
    if (set_.count(name) != 0) check(options.integer(name), "what is set");
    if (const auto size = sizes_.find(name); size != sizes_.end()) check(size->second, "a file");
    const auto [found, is_new] = said_.try_emplace(name, value, said);
    if (!is_new) check(found->second.first, found->second.second);
    options.set(name, checked_setting(kernel_, name, std::to_string(value)));
  }

  const LibraryKernel& kernel_;
  const std::set<std::string>& set_;
  const std::map<std::string, std::int64_t>& sizes_;
  std::map<std::string, std::pair<std::int64_t, std::string>> said_;
};

}  // namespace

const LibraryKernel& find_kernel_among(const std::vector<LibraryKernel>& kernels,
                                       std::string_view name) {
  for (const LibraryKernel& kernel : kernels) {
    if (kernel.name == name) return kernel;
  }
  const std::vector<std::string> known = names_of(kernels);
  fail(fmt::format("there is no kernel '{}'{}", name, nearest_text(name, known)),
       fmt::format("name one of: {}", list_text(known)));
}

OptionValues resolve_options(const LibraryKernel& kernel, const std::vector<std::string>& settings,
                             const std::map<std::string, std::int64_t>& sizes) {
  OptionValues options;
  std::set<std::string> seen;
  for (const std::string& setting : settings) {
    const std::size_t at = setting.find('=');
    if (at == std::string::npos || at == 0) {
      fail(fmt::format("'{}' is no setting", setting), "write name=value, such as dim=128");
    }
    const std::string name = setting.substr(0, at), value = setting.substr(at + 1);
    if (!seen.insert(name).second) {
      fail(fmt::format("{} is set twice, the second time to '{}'", name, value), "set it once");
    }
    options.set(name, checked_setting(kernel, name, value));
  }
  LengthFacts facts(kernel, seen, sizes);
  for (const KernelOption& option : kernel.options) {
    if (option.kind != Kind::lengths) continue;
    const bool follows =
        options.has(option.standard) && seen.count(option.sum) + sizes.count(option.sum) == 0;
    if (!options.has(option.name)) {
      options.set(option.name, follows ? options.text(option.standard) : "");
    }
    if (!options.text(option.name).empty()) facts.add(option, options);
  }
  for (const KernelOption& option : kernel.options) {
    if (options.has(option.name)) continue;
    const auto given = sizes.find(option.name);
    if (given != sizes.end()) {
      options.set(option.name, checked_value(kernel, option, std::to_string(given->second)));
      continue;
    }
    // The options that others follow stand before them.
    const auto followed = options.all().find(option.standard);
    options.set(option.name, followed != options.all().end() ? followed->second : option.standard);
  }
  kernel.check(options);
  return options;
}

namespace library {

std::set<std::string> decided_options(const LibraryKernel& kernel,
                                      const std::vector<std::string>& settings) {
  std::set<std::string> names;
  std::set<std::string> lengths;
  for (const std::string& setting : settings) {
    const std::size_t at = setting.find('=');
    names.insert(setting.substr(0, at));
    if (at != std::string::npos && at + 1 < setting.size()) lengths.insert(setting.substr(0, at));
  }
  for (const KernelOption& option : kernel.options) {
    if (option.kind != Kind::lengths) continue;
    const bool follows = lengths.count(option.standard) != 0 && names.count(option.sum) == 0;
    if (follows) lengths.insert(option.name);
    if (lengths.count(option.name) != 0) names.insert({option.name, option.count, option.sum});
  }
  return names;
}

}  // namespace library

LibraryAxis parse_axis(const std::string& text) {
  const auto number = [&](std::string_view digits) {
    std::int64_t value = 0;
    const char* const end = digits.data() + digits.size();
    if (std::from_chars(digits.data(), end, value) == std::from_chars_result{end, {}}) return value;
    fail(fmt::format("'{}' is no axis", text), "write name, name + n or n");
  };
  if (text.find_first_not_of("0123456789") == text.npos) return {"", number(text)};
  if (text.find_first_of("()*/%-") != text.npos) return {"", 0, true};
  const std::size_t plus = text.find(" + ");
  if (plus == text.npos) return {text, 0};
  return {text.substr(0, plus), number(std::string_view(text).substr(plus + 3))};
}

bool is_present(const LibraryTensor& tensor, const OptionValues& options) {
  if (tensor.option.empty()) return true;
  return tensor.option[0] == '!' ? !options.boolean(tensor.option.substr(1))
                                 : options.boolean(tensor.option);
}

std::vector<const LibraryTensor*> tensors_of(const LibraryKernel& kernel,
                                             const OptionValues& options) {
  std::vector<const LibraryTensor*> tensors;
  for (const LibraryTensor& tensor : kernel.tensors) {
    if (is_present(tensor, options)) tensors.push_back(&tensor);
  }
  return tensors;
}

DType dtype_of(const LibraryTensor& tensor, const OptionValues& options) {
  return tensor.dtype ? *tensor.dtype : options.dtype("dtype");
}

namespace {

std::int64_t value_of_expression(const std::string& text, const LibraryTensor& tensor,
                                 const OptionValues& options) {
  std::vector<Dim> known;
  for (const auto& [name, value] : options.all()) known.push_back(Dim::symbol(name));
  const auto value_of = [&](const std::string& name) { return options.integer(name); };
  const Dim axis = Dim::parse(text, known);
  const std::int64_t size = axis.evaluate(value_of);
  if (size >= 0) return size;
  Diagnostic({}, fmt::format("axis {} of tensor {} is {}, of {}", text, tensor.name, size,
                             ir::values_text(axis, value_of)))
      .fix("set other sizes: an axis has 0 elements or more")
      .raise();
}

}  // namespace

std::vector<std::int64_t> shape_of(const LibraryTensor& tensor, const OptionValues& options) {
  std::vector<std::int64_t> shape;
  for (const std::string& text : tensor.shape) {
    const LibraryAxis axis = parse_axis(text);
    if (axis.is_expression) {
      shape.push_back(value_of_expression(text, tensor, options));
    } else {
      shape.push_back((axis.option.empty() ? 0 : options.integer(axis.option)) + axis.more);
    }
  }
  return shape;
}

}  // namespace tilewright
