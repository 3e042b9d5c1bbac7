#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

// Everything of Tilewright that reads what somebody else may have written.
namespace tilewright::fuzz_files {

struct Reader {
  std::string_view name;
  // Reads the bytes as it would a user's file. What is wrong with them is an Error, and nothing
  // else; whatever else it throws, and what it calls a bug of Tilewright, is a finding.
  void (*read)(const std::string& bytes);
  // Words that its files are made of.
  std::vector<std::string_view> words;
};

std::span<const Reader> readers();

// Empty, or what is wrong with how the reader takes the bytes.
std::string finding(const Reader& reader, const std::string& bytes);

}  // namespace tilewright::fuzz_files
