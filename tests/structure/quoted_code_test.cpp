#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright::structure {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAreArray;

const fs::path kRoot = TILEWRIGHT_SOURCE_DIR;

std::vector<std::string> lines_of(const fs::path& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

// The function whose first line begins with `start`.
std::vector<std::string> function_of(const std::vector<std::string>& lines,
                                     const std::string& start) {
  std::vector<std::string> function;
  for (const std::string& line : lines) {
    if (function.empty() && line.rfind(start, 0) != 0) continue;
    function.push_back(line);
    if (line == "}") break;
  }
  return function;
}

// Checks every block of code behind a line `<!-- FILE: START -->`; returns how many there are.
int check_quotes(const fs::path& document) {
  constexpr std::string_view kOpen = "<!-- ", kClose = " -->";
  const std::vector<std::string> lines = lines_of(document);
  int count = 0;
  for (std::size_t i = 0; i + 1 < lines.size(); ++i) {
    const std::string& line = lines[i];
    const std::size_t colon = line.find(": ");
    if (line.rfind(kOpen, 0) != 0 || colon == std::string::npos || lines[i + 1] != "```cpp") {
      continue;
    }
    const std::string file = line.substr(kOpen.size(), colon - kOpen.size());
    const std::string start = line.substr(colon + 2, line.size() - colon - 2 - kClose.size());
    std::vector<std::string> quoted;
    for (std::size_t j = i + 2; j < lines.size() && lines[j] != "```"; ++j) {
      quoted.push_back(lines[j]);
    }
    EXPECT_THAT(quoted, ElementsAreArray(function_of(lines_of(kRoot / file), start)))
        << document << ":" << i + 1 << " quotes " << file << ", which reads differently";
    ++count;
  }
  return count;
}

TEST(QuotedCodeTest, TheReadmeShowsTheKernelThatIsBuilt) {
  EXPECT_GE(check_quotes(kRoot / "README.md"), 1);
}

TEST(QuotedCodeTest, TheDocumentsShowTheExamplesThatAreRun) {
  int count = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(kRoot / "docs")) {
    if (entry.path().extension() == ".md") count += check_quotes(entry.path());
  }
  EXPECT_GE(count, 1);
}

TEST(QuotedCodeTest, EachLessonShowsWhatItRuns) {
  int lessons = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(kRoot / "docs/tutorial")) {
    if (entry.path().filename() == "README.md") continue;
    EXPECT_GE(check_quotes(entry.path()), 1) << entry.path();
    ++lessons;
  }
  EXPECT_EQ(lessons, 8);
}

}  // namespace
}  // namespace tilewright::structure
