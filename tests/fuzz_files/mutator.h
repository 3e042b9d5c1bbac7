#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "support/random.h"

namespace tilewright::fuzz_files {

// Makes inputs out of a corpus: bytes and numbers changed, pieces cut, repeated, nested and taken
// from elsewhere, words put in. The same seed gives the same inputs.
class Mutator {
 public:
  Mutator(std::vector<std::string> corpus, std::vector<std::string_view> words, std::uint64_t seed);
  std::string next();

 private:
  void change(std::string& text);
  std::string piece(const std::string& text);
  std::string number();
  void change_number(std::string& text);
  void nest(std::string& text);

  const std::vector<std::string> corpus_;
  const std::vector<std::string_view> words_;
  Random random_;
};

}  // namespace tilewright::fuzz_files
