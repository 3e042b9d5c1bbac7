#include "library/stated_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <functional>
#include <numeric>
#include <string_view>
#include <system_error>
#include <utility>

#include "support/diagnostic.h"
#include "support/number_formats.h"
#include "support/random.h"
#include "support/safetensors.h"

namespace tilewright::library {
namespace {

constexpr const char* kForms =
    "arange, zeros, full:0.5, uniform:-1:1, permutation, normal or rising:0 (a seed may follow "
    "the last four), or a file: x.npy, x.safetensors:key";

// How much larger the last ones of an axis are than the first. Scores of keys that rise so exceed
// those before them by more than any softmax lets them before it scales its sums anew.
constexpr double kMostRise = 16;

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at != std::string::npos;) {
    const std::size_t colon = text.find(':', at);
    words.push_back(text.substr(at, colon - at));
    at = colon == std::string::npos ? colon : colon + 1;
  }
  return words;
}

// A colon stands in the name of a file's tensor alone.
bool names_file(const std::string& text) {
  if (is_safetensors(text) || text.find('/') != std::string::npos) return true;
  if (text.find(':') != std::string::npos) return false;
  std::error_code error;
  return text.find('.') != std::string::npos || std::filesystem::exists(text, error);
}

// The largest finite number of a floating dtype.
double largest_of(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return 65504;
    case DType::f8e4m3:
      return 448;
    case DType::bf16:
      return 0x1.fep127;
    case DType::f32:
    case DType::i32:
    case DType::i64:
    case DType::i8:
    case DType::u8:
    case DType::u32:
    case DType::boolean:
      break;
  }
  return 0x1.fffffep127;
}

}  // namespace

// How a kind is written: so many numbers, behind which a seed may stand.
struct StatedInput::Form {
  std::string_view name;
  Kind kind;
  std::size_t numbers;
  bool has_seed;
  std::string_view example;
};

const StatedInput::Form* StatedInput::find_form(const std::string& name) {
  static constexpr std::array<Form, 7> kAll = {
      {{"arange", Kind::arange, 0, false, "arange"},
       {"zeros", Kind::zeros, 0, false, "zeros"},
       {"full", Kind::full, 1, false, "full:0.5"},
       {"uniform", Kind::uniform, 2, true, "uniform:-1:1"},
       {"permutation", Kind::permutation, 0, true, "permutation"},
       {"normal", Kind::normal, 0, true, "normal"},
       {"rising", Kind::rising, 1, true, "rising:0"}}};
  for (const Form& form : kAll) {
    if (form.name == name) return &form;
  }
  return nullptr;
}

void StatedInput::refuse(const std::string& problem, const std::string& fix) const {
  Diagnostic({}, fmt::format("--in {}={}: {}", tensor_, text_, problem)).fix(fix).raise();
}

double StatedInput::number(const std::string& word) const {
  double value = 0;
  const char* const end = word.data() + word.size();
  if (std::from_chars(word.data(), end, value) != std::from_chars_result{end, {}}) {
    refuse(fmt::format("'{}' is no number", word),
           fmt::format("write --in {}={}", tensor_, find_form(words_of(text_)[0])->example));
  }
  return value;
}

std::uint64_t StatedInput::seed_of(const std::string& word) const {
  std::uint64_t value = 0;
  const char* const end = word.data() + word.size();
  if (std::from_chars(word.data(), end, value) != std::from_chars_result{end, {}}) {
    refuse(fmt::format("'{}' is no seed", word),
           "a seed is an integer from 0 to 2^64 - 1; leave it out for that of --seed");
  }
  return value;
}

std::optional<StatedInput> StatedInput::parse(const std::string& text, const std::string& tensor) {
  const std::vector<std::string> words = words_of(text);
  const Form* const form = find_form(words[0]);
  if (!form) {
    if (names_file(text)) return {};
    StatedInput(text, tensor, Kind::zeros)
        .refuse(fmt::format("'{}' is neither a kind of numbers nor a file", words[0]),
                fmt::format("write one of: {}", kForms));
  }
  StatedInput stated(text, tensor, form->kind);
  const std::size_t given = words.size() - 1;
  if (given < form->numbers || given > form->numbers + (form->has_seed ? 1 : 0)) {
    stated.refuse(fmt::format("{} takes {} number{}{}, and {} stand there", form->name,
                              form->numbers, form->numbers == 1 ? "" : "s",
                              form->has_seed ? " and perhaps a seed" : "", given),
                  fmt::format("write --in {}={}", tensor, form->example));
  }
  if (form->numbers > 0) stated.low_ = stated.number(words[1]);
  if (form->numbers > 1) stated.high_ = stated.number(words[2]);
  if (given > form->numbers) stated.seed_ = stated.seed_of(words.back());
  const bool is_range = std::isfinite(stated.low_) && std::isfinite(stated.high_);
  if (form->kind == Kind::uniform && !(is_range && stated.low_ < stated.high_)) {
    stated.refuse(fmt::format("there is nothing from {} to below {}", words[1], words[2]),
                  fmt::format("write the smaller number first: --in {}=uniform:0:1", tensor));
  }
  return stated;
}

std::string StatedInput::with_seed(std::uint64_t seed) const {
  const bool has_seed = find_form(words_of(text_)[0])->has_seed;
  return has_seed && !seed_ ? fmt::format("{}:{}", text_, seed) : text_;
}

void StatedInput::check_holds(DType dtype, double value) const {
  if (is_float(dtype)) {
    if (!std::isfinite(value)) {
      if (dtype != DType::f8e4m3 || std::isnan(value)) return;
    } else if (std::abs(value) <= largest_of(dtype)) {
      return;
    }
    refuse(fmt::format("{} is {}, which ends at {}, and {} lies beyond", tensor_, name_of(dtype),
                       largest_of(dtype), value),
           "take smaller numbers");
  }
  const auto [low, high] = range_of(dtype);
  if (value != std::nearbyint(value)) {
    refuse(fmt::format("{} is {}, and {} is no integer", tensor_, name_of(dtype), value),
           "take whole numbers");
  }
  if (value < static_cast<double>(low) || value > static_cast<double>(high)) {
    refuse(fmt::format("{} is {}, from {} to {}, and {} lies outside", tensor_, name_of(dtype), low,
                       high, value),
           "take numbers in that range");
  }
}

void StatedInput::check_kind(DType dtype, const std::vector<std::int64_t>& shape) const {
  const std::int64_t elements =
      std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
  const auto last = static_cast<double>(elements - 1);
  switch (kind_) {
    case Kind::permutation:
      if (is_float(dtype)) {
        refuse(
            fmt::format("{} is {}, and a permutation is one of indices", tensor_, name_of(dtype)),
            fmt::format("--in {}=uniform:-1:1, or arange", tensor_));
      }
      [[fallthrough]];
    case Kind::arange:
      if (elements > 0) check_holds(dtype, last);
      return;
    case Kind::full:
      return check_holds(dtype, low_);
    case Kind::uniform:
      check_holds(dtype, low_);
      return check_holds(dtype, is_integer(dtype) ? high_ - 1 : high_);
    case Kind::rising:
      if (low_ != std::floor(low_) || low_ < 0 || low_ >= static_cast<double>(shape.size())) {
        refuse(fmt::format("{} has no axis {}", tensor_, low_),
               fmt::format("axes count from 0 to {}", shape.size() - 1));
      }
      [[fallthrough]];
    case Kind::normal:
      if (is_integer(dtype)) {
        refuse(fmt::format("{} is {}, and normal numbers are no integers", tensor_, name_of(dtype)),
               fmt::format("--in {}=uniform:0:8, or permutation", tensor_));
      }
      return;
    case Kind::zeros:
      return;
  }
}

// Of integers one below `high`. Rounding to the dtype may come to a float's `high` itself.
double StatedInput::draw_below(double low, double high, DType dtype, double part) const {
  const double value = low + (high - low) * part;
  return is_integer(dtype) ? std::min(std::floor(value), high - 1) : value;
}

HostTensor StatedInput::values(DType dtype, const std::vector<std::int64_t>& shape,
                               std::uint64_t seed) const {
  HostTensor tensor = HostTensor::zeros(dtype, shape);
  const std::int64_t count = tensor.elements();
  check_kind(dtype, shape);
  const auto fill = [&](auto&& value_of) {
    for (std::int64_t i = 0; i < count; ++i) tensor.set_flat(i, value_of(i));
  };
  Random random(seed_.value_or(seed));
  switch (kind_) {
    case Kind::zeros:
      break;
    case Kind::arange:
      fill([](std::int64_t i) { return static_cast<double>(i); });
      break;
    case Kind::full:
      fill([this](std::int64_t) { return low_; });
      break;
    case Kind::uniform:
      fill([&](std::int64_t) { return draw_below(low_, high_, dtype, random.uniform()); });
      break;
    case Kind::permutation: {
      std::vector<std::int64_t> order(static_cast<std::size_t>(count));
      std::iota(order.begin(), order.end(), 0);
      for (std::size_t i = order.size(); i > 1; --i)
        std::swap(order[i - 1], order[random.below(i)]);
      fill([&](std::int64_t i) { return static_cast<double>(order[static_cast<std::size_t>(i)]); });
      break;
    }
    case Kind::normal:
      return HostTensor::random_normal(dtype, shape, seed_.value_or(seed));
    case Kind::rising: {
      tensor = HostTensor::random_normal(dtype, shape, seed_.value_or(seed));
      const auto axis = static_cast<std::size_t>(low_);
      const std::int64_t inner =
          std::accumulate(shape.begin() + static_cast<std::ptrdiff_t>(axis) + 1, shape.end(),
                          std::int64_t{1}, std::multiplies<>());
      const std::int64_t last = std::max<std::int64_t>(shape[axis] - 1, 1);
      fill([&](std::int64_t i) {
        const auto place = static_cast<double>(i / inner % shape[axis]);
        return tensor.flat(i) * (1 + (kMostRise - 1) * place / static_cast<double>(last));
      });
      break;
    }
  }
  return tensor;
}

}  // namespace tilewright::library
