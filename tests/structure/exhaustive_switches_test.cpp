#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

// A switch over an enumeration names every enumerator, so that a new one is an error of the
// compiler
// (-Werror=switch) wherever it matters. With a `default:` it would be forgotten in silence.
namespace tilewright::structure {
namespace {

namespace fs = std::filesystem;

// The text without comments and literals, whose characters become blanks; lines stay.
std::string code_of(const std::string& text) {
  std::string code = text;
  const auto blank = [&](std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < std::min(to, code.size()); ++i) {
      if (code[i] != '\n') code[i] = ' ';
    }
    return to;
  };
  for (std::size_t i = 0; i < code.size();) {
    if (text.compare(i, 2, "//") == 0) {
      i = blank(i, text.find('\n', i));
    } else if (text.compare(i, 2, "/*") == 0) {
      i = blank(i, text.find("*/", i) + 2);
    } else if (text.compare(i, 2, "R\"") == 0) {
      const std::string end = ")" + text.substr(i + 2, text.find('(', i) - i - 2) + "\"";
      i = blank(i, text.find(end, i) + end.size());
    } else if (text[i] == '"' || (text[i] == '\'' && (i == 0 || !std::isalnum(text[i - 1])))) {
      std::size_t end = i + 1;
      while (end < text.size() && text[end] != text[i]) end += text[end] == '\\' ? 2 : 1;
      i = blank(i, end + 1);
    } else {
      ++i;
    }
  }
  return code;
}

bool is_word(const std::string& code, std::size_t at, const std::string& word) {
  const auto part = [&](std::size_t i) {
    return i < code.size() && (std::isalnum(code[i]) != 0 || code[i] == '_');
  };
  return code.compare(at, word.size(), word) == 0 && (at == 0 || !part(at - 1)) &&
         !part(at + word.size());
}

// Lines of `default:` beside labels that are enumerators.
std::vector<int> defaults_of(const std::string& text) {
  struct Scope {
    bool is_switch = false;
    bool enumerators = false;
    int default_line = 0;
  };
  const std::string code = code_of(text);
  std::vector<Scope> scopes;
  std::vector<int> found;
  bool opens_switch = false;
  int line = 1;
  const auto innermost = [&] {
    return std::find_if(scopes.rbegin(), scopes.rend(), [](const Scope& s) { return s.is_switch; });
  };
  for (std::size_t i = 0; i < code.size(); ++i) {
    if (code[i] == '\n') ++line;
    if (is_word(code, i, "switch")) opens_switch = true;
    if (code[i] == '{') {
      scopes.push_back({opens_switch});
      opens_switch = false;
    }
    if (code[i] == '}' && !scopes.empty()) {
      if (scopes.back().default_line > 0 && scopes.back().enumerators) {
        found.push_back(scopes.back().default_line);
      }
      scopes.pop_back();
    }
    const auto scope = innermost();
    if (scope == scopes.rend()) continue;
    if (is_word(code, i, "case")) {
      const std::string label = code.substr(i, code.find_first_of("\n?", i) - i);
      scope->enumerators |= label.find("::") != std::string::npos;
    }
    if (is_word(code, i, "default") && code.find_first_not_of(' ', i + 7) == code.find(':', i)) {
      scope->default_line = line;
    }
  }
  return found;
}

TEST(ExhaustiveSwitches, AreSeenWhereTheyAreNot) {
  EXPECT_EQ(
      defaults_of("switch (op) {\n  case Op::add:\n    return 1;\n  default:\n    return 2;\n}"),
      std::vector<int>{4});
  EXPECT_EQ(defaults_of("switch (c) {\n  case 'a':\n    return 1;\n  default:\n    return 2;\n}"),
            std::vector<int>{});
  EXPECT_EQ(defaults_of("switch (op) {\n  case Op::add:  // default:\n    return \"default:\";\n}"),
            std::vector<int>{});
  // A switch of characters inside one of enumerators, and the other way round.
  EXPECT_EQ(defaults_of("switch (op) {\n  case Op::add: {\n    switch (n) {\n      case 1:\n"
                        "      default:\n        break;\n    }\n  }\n}"),
            std::vector<int>{});
  EXPECT_EQ(defaults_of("switch (n) {\n  case 1: {\n    switch (op) {\n      case Op::add:\n"
                        "      default:\n        break;\n    }\n  }\n  default:\n    break;\n}"),
            std::vector<int>{5});
}

TEST(ExhaustiveSwitches, NameEveryEnumerator) {
  for (const auto& entry :
       fs::recursive_directory_iterator(fs::path(TILEWRIGHT_SOURCE_DIR) / "src")) {
    const fs::path& path = entry.path();
    if (path.extension() != ".cpp" && path.extension() != ".h") continue;
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    for (const int line : defaults_of(text.str())) {
      ADD_FAILURE() << path.string() << ":" << line
                    << ": a default beside enumerators hides those that are forgotten; name them";
    }
  }
}

}  // namespace
}  // namespace tilewright::structure
