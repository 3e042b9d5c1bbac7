#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/host_tensor.h"

namespace tilewright::library {

// What an input holds, in words: "zeros", "full:0.5", "arange", "uniform:-1:1", "permutation",
// "normal", "rising:1". The last four may end in a seed of their own: "permutation:7",
// "uniform:-1:1:7".
class StatedInput {
 public:
  // Nothing for the name of a file. Text that is neither, and numbers that make no sense, are usage
  // errors that name the tensor.
  static std::optional<StatedInput> parse(const std::string& text, const std::string& tensor);

  // Elements in row-major order. Raises a usage error for what the dtype does not hold. `seed`
  // counts where the text states none.
  HostTensor values(DType dtype, const std::vector<std::int64_t>& shape, std::uint64_t seed) const;
  const std::string& text() const { return text_; }
  // The same words with this seed, where they state none and have any.
  std::string with_seed(std::uint64_t seed) const;

 private:
  enum class Kind : std::uint8_t { arange, zeros, full, uniform, permutation, normal, rising };
  struct Form;
  static const Form* find_form(const std::string& name);
  StatedInput(std::string text, std::string tensor, Kind kind)
      : text_(std::move(text)), tensor_(std::move(tensor)), kind_(kind) {}

  [[noreturn]] void refuse(const std::string& problem, const std::string& fix) const;
  double number(const std::string& word) const;
  std::uint64_t seed_of(const std::string& word) const;
  void check_kind(DType dtype, const std::vector<std::int64_t>& shape) const;
  void check_holds(DType dtype, double value) const;
  double draw_below(double low, double high, DType dtype, double part) const;

  std::string text_;
  std::string tensor_;
  Kind kind_;
  double low_ = 0, high_ = 0;  // of uniform; full has the first, and so has rising: its axis
  std::optional<std::uint64_t> seed_;
};

}  // namespace tilewright::library
