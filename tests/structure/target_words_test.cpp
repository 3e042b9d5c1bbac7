#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

// What works on kernels before their target is known names nothing that only some targets have.
namespace tilewright::structure {
namespace {

namespace fs = std::filesystem;

const fs::path kRepository = TILEWRIGHT_SOURCE_DIR;

// Files by the beginning of their path: their ends may be anything.
constexpr std::string_view kIndependent[] = {
    "include/tilewright/dim.",
    "include/tilewright/numerics.",
    "include/tilewright/kernels/softmax.",
    "src/language/control_flow.",
    "src/language/index.",
    "src/language/mask.",
    "src/language/ragged.",
    "src/language/tile.",
    "src/language/canonical_order.",
    "src/analysis/definitions.",
    "src/analysis/extents.",
    "src/analysis/hidden.",
    "src/analysis/linear.",
    "src/analysis/nonnegative.",
    "src/analysis/not_less.",
    "src/passes/simplify.",
    "src/passes/eliminate_",
    "src/passes/hoist.",
    "src/passes/materialise_extents.",
    "src/passes/drop_selects.",
    "src/passes/fold_accumulators.",
    "src/passes/skip_identities.",
    "src/passes/peel_masks.",
    "src/passes/separate_columns.",
    "src/simulator/evaluate_",
    "src/simulator/interpreter.",
    "src/simulator/tensor_access.",
    "src/simulator/tile_reduction.",
    "src/simulator/tile_value.",
    "kernels/reference.",
};

// Wherever they stand in a word, in small letters.
constexpr std::string_view kRefused[] = {
    "wgmma",  "warpgroup", "tcgen05", "tma",  "mbarrier", "setmaxnreg", "own_first", "own_end",
    "hopper", "blackwell", "sm_90",   "sm90", "sm_100",   "65536",      "232448"};

bool is_independent(const std::string& path) {
  return std::any_of(std::begin(kIndependent), std::end(kIndependent),
                     [&](std::string_view start) { return path.starts_with(start); });
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// "tma" in TMA and tma_load, not in "ultimate".
bool names(const std::string& line, std::string_view word) {
  for (std::size_t at = line.find(word); at != std::string::npos; at = line.find(word, at + 1)) {
    if (at == 0 || std::isalpha(static_cast<unsigned char>(line[at - 1])) == 0) return true;
  }
  return false;
}

TEST(TargetWordsTest, TheTileFormKnowsNoTarget) {
  std::size_t read = 0;
  for (const char* folder : {"include", "src", "kernels"}) {
    for (const fs::directory_entry& entry :
         fs::recursive_directory_iterator(kRepository / folder)) {
      const std::string path = fs::relative(entry.path(), kRepository).generic_string();
      if (!is_independent(path)) continue;
      ++read;
      std::ifstream file(entry.path());
      int number = 0;
      for (std::string line; std::getline(file, line);) {
        ++number;
        for (const std::string_view word : kRefused) {
          EXPECT_FALSE(names(lower(line), word))
              << path << ":" << number << " names " << word
              << ", and what it works on knows no target: say what it is, or move it to where a "
                 "target's record lists it";
        }
      }
    }
  }
  EXPECT_GE(read, std::size(kIndependent)) << "a file has been moved";
}

// Cores with explicit memories are their records: nothing else asks for a name of a machine, of a
// memory or of a unit.
TEST(TargetWordsTest, NobodyAsksWhichCoreItIs) {
  constexpr std::string_view kNames[] = {"\"incore", "\"Mat\"",  "\"Left\"", "\"Right\"", "\"Acc\"",
                                         "\"Vec\"",  "\"SBUF\"", "\"PSUM\"", "\"MTE",     "\"FIX\"",
                                         "\"cube\"", "\"GM\"",   "\"HBM\""};
  std::size_t records = 0;
  for (const char* folder : {"src", "kernels", "tools"}) {
    for (const fs::directory_entry& entry :
         fs::recursive_directory_iterator(kRepository / folder)) {
      const std::string path = fs::relative(entry.path(), kRepository).generic_string();
      const std::string ending = entry.path().extension().string();
      if (ending != ".cpp" && ending != ".h") continue;
      std::ifstream file(entry.path());
      const bool is_record = path.starts_with("src/target/incore");
      std::size_t named = 0;
      int number = 0;
      for (std::string line; std::getline(file, line);) {
        ++number;
        line = line.substr(0, line.find("//"));  // comments may give examples
        for (const std::string_view name : kNames) {
          if (line.find(name) == std::string::npos) continue;
          ++named;
          EXPECT_TRUE(is_record) << path << ":" << number << " names " << name
                                 << ": ask the record (src/target/core.h)";
        }
      }
      records += is_record && named > 0;
    }
  }
  EXPECT_EQ(records, 3u) << "a record has been moved";
}

}  // namespace
}  // namespace tilewright::structure
