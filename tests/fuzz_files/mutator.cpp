#include "fuzz_files/mutator.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace tilewright::fuzz_files {
namespace {

constexpr std::size_t kLongest = 1 << 18;

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

}  // namespace

Mutator::Mutator(std::vector<std::string> corpus, std::vector<std::string_view> words,
                 std::uint64_t seed)
    : corpus_(std::move(corpus)), words_(std::move(words)), random_(seed) {}

std::string Mutator::next() {
  std::string text = corpus_[random_.below(corpus_.size())];
  const int changes = 1 + random_.below(6);
  for (int i = 0; i < changes; ++i) change(text);
  if (text.size() > kLongest) text.resize(kLongest);
  return text;
}

// Short ones more often than long ones.
std::string Mutator::piece(const std::string& text) {
  if (text.empty()) return {};
  const std::size_t begin = random_.below(text.size());
  const std::size_t longest = std::size_t{1} << random_.below(10);
  return text.substr(begin, 1 + random_.below(longest));
}

std::string Mutator::number() {
  static constexpr const char* kNumbers[] = {"0",
                                             "1",
                                             "-1",
                                             "2",
                                             "3",
                                             "7",
                                             "8",
                                             "16",
                                             "31",
                                             "33",
                                             "64",
                                             "127",
                                             "128",
                                             "255",
                                             "256",
                                             "65535",
                                             "65536",
                                             "2147483647",
                                             "2147483648",
                                             "-2147483648",
                                             "4294967295",
                                             "4294967296",
                                             "1e308",
                                             "1e-320",
                                             "9223372036854775807",
                                             "9223372036854775808",
                                             "-9223372036854775808",
                                             "18446744073709551615"};
  return random_.of(kNumbers);
}

void Mutator::change_number(std::string& text) {
  const std::size_t from = random_.below(text.size());
  const auto begin =
      std::find_if(text.begin() + static_cast<std::ptrdiff_t>(from), text.end(), is_digit);
  const auto end = std::find_if_not(begin, text.end(), is_digit);
  text.replace(begin, end, number());
}

// A piece many times over, as brackets in brackets are.
void Mutator::nest(std::string& text) {
  const std::string part = piece(text).substr(0, 64);
  const std::size_t times = std::size_t{1} << random_.below(12);
  std::string many;
  for (std::size_t i = 0; i < times; ++i) many += part;
  text.insert(random_.below(text.size() + 1), many);
}

void Mutator::change(std::string& text) {
  if (text.empty()) text = corpus_[random_.below(corpus_.size())];
  if (text.empty()) text = "x";
  const std::size_t at = random_.below(text.size());
  switch (random_.below(11)) {
    case 0:
      text[at] = static_cast<char>(text[at] ^ (1 << random_.below(8)));
      return;
    case 1:
      text[at] = static_cast<char>(random_.below(256));
      return;
    case 2:
      text.erase(at, piece(text).size());
      return;
    case 3:
      text.insert(at, piece(text));
      return;
    case 4:
      text.insert(at, piece(corpus_[random_.below(corpus_.size())]));
      return;
    case 5: {
      const std::string part = piece(corpus_[random_.below(corpus_.size())]);
      text.replace(at, part.size(), part);
      return;
    }
    case 6:
      text.insert(at, std::string(words_[random_.below(words_.size())]) + " ");
      return;
    case 7: {
      const std::string_view word = words_[random_.below(words_.size())];
      text.replace(at, word.size(), word);
      return;
    }
    case 8:
    case 9:
      return change_number(text);
    case 10:
      if (random_.below(8) == 0) return nest(text);
      text.resize(at);
      return;
  }
}

}  // namespace tilewright::fuzz_files
