#include "structure/include_directions.h"

#include <fmt/core.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string_view>

namespace tilewright::structure {
namespace {

namespace fs = std::filesystem;

struct Include {
  int line;
  std::string path;
  bool quoted;
};

std::vector<Include> includes_of(const fs::path& file) {
  std::vector<Include> includes;
  std::ifstream stream(file);
  std::string line;
  for (int number = 1; std::getline(stream, line); ++number) {
    std::string_view rest = line;
    const auto skip = [&rest](std::string_view text) {
      while (!rest.empty() && (rest.front() == ' ' || rest.front() == '\t')) rest.remove_prefix(1);
      if (rest.substr(0, text.size()) != text) return false;
      rest.remove_prefix(text.size());
      return true;
    };
    if (!skip("#") || !skip("include") || !skip("")) continue;
    if (rest.empty() || (rest.front() != '"' && rest.front() != '<')) continue;
    const bool quoted = rest.front() == '"';
    const auto end = rest.find(quoted ? '"' : '>', 1);
    if (end == std::string_view::npos) continue;
    includes.push_back({number, std::string(rest.substr(1, end - 1)), quoted});
  }
  return includes;
}

bool is_header(const fs::path& file) { return file.extension() == ".h"; }

std::vector<fs::path> sources_below(const fs::path& folder) {
  std::vector<fs::path> files;
  if (!fs::is_directory(folder)) return files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const auto extension = entry.path().extension();
    if (extension == ".h" || extension == ".cpp") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string first_folder(const std::string& path) { return path.substr(0, path.find('/')); }

bool starts_with(const std::string& text, std::string_view prefix) {
  return std::string_view(text).substr(0, prefix.size()) == prefix;
}

bool is_beside(const fs::path& file, const std::string& path) {
  return path.find("..") == std::string::npos && fs::exists(file.parent_path() / path);
}

// Included by a header, each of these slows down every file that includes the header.
bool is_heavy(const std::string& path) {
  return path == "iostream" || path == "regex" || path == "nlohmann/json.hpp" ||
         starts_with(path, "CLI/");
}

bool is_standard(const std::string& path) {
  static const std::set<std::string> c_headers = {"stdbool.h", "stddef.h", "stdint.h"};
  return path.find_first_of("./") == std::string::npos || c_headers.count(path) != 0;
}

class Checker {
 public:
  Checker(const fs::path& root, const IncludeRules& rules) : root_(root), rules_(rules) {
    for (const auto& [folder, rule] : rules) {
      if (starts_with(folder, "src/")) layers_.insert(folder.substr(4));
    }
    for (const std::string& layer : layers_) {
      for (const fs::path& file : sources_below(root / "src" / layer)) {
        if (file.extension() == ".cpp") owners_[file.stem().string()].insert(layer);
      }
    }
  }

  std::vector<std::string> run() {
    check_public_headers();
    check_unknown_layers();
    for (const auto& [folder, rule] : rules_) check_folder(folder, rule);
    return std::move(violations_);
  }

 private:
  void report(const fs::path& file, int line, const std::string& text) {
    violations_.push_back(
        fmt::format("{}:{}: {}", file.lexically_relative(root_).string(), line, text));
  }

  void check_public_headers() {
    for (const fs::path& file : sources_below(root_ / "include")) {
      for (const Include& include : includes_of(file)) {
        if (include.quoted && !starts_with(include.path, "tilewright/")) {
          report(file, include.line,
                 fmt::format("a public header includes \"{}\"; it may include \"tilewright/...\" "
                             "only",
                             include.path));
        }
        if (!include.quoted && !is_standard(include.path)) {
          report(file, include.line,
                 fmt::format("a public header includes <{}>, which is not of the C++ standard: a "
                             "consumer may not have it",
                             include.path));
        }
        check_weight(file, include);
      }
    }
  }

  void check_unknown_layers() {
    if (!fs::is_directory(root_ / "src")) return;
    std::set<std::string> unknown;
    for (const auto& entry : fs::directory_iterator(root_ / "src")) {
      const std::string name = entry.path().filename().string();
      if (entry.is_directory() && layers_.count(name) == 0) unknown.insert(name);
    }
    for (const std::string& name : unknown) {
      report(root_ / "src" / name, 0, "the folder is not listed in src/CMakeLists.txt");
    }
  }

  void check_folder(const std::string& folder, const IncludeRule& rule) {
    const bool is_layer = starts_with(folder, "src/");
    const std::string own = is_layer ? folder.substr(4) : folder;
    for (const fs::path& file : sources_below(root_ / folder)) {
      for (const Include& include : includes_of(file)) {
        check_weight(file, include);
        if (!include.quoted) continue;
        const std::string target = first_folder(include.path);
        if (target == own) continue;
        if (target == "tilewright") {
          if (is_layer) check_public_owner(file, include, own, rule);
          continue;
        }
        if (!is_layer && is_beside(file, include.path)) continue;
        check_layer(file, include, folder, rule);
      }
    }
  }

  void check_layer(const fs::path& file, const Include& include, const std::string& folder,
                   const IncludeRule& rule) {
    const std::string target = first_folder(include.path);
    if (layers_.count(target) == 0 || target == include.path) {
      report(
          file, include.line,
          fmt::format("\"{}\" is written neither relative to src/ nor to include/", include.path));
    } else if (rule.layers.count(target) == 0) {
      report(file, include.line,
             fmt::format("{} may not include {} (\"{}\"); it may include: {}", folder, target,
                         include.path, allowed(rule)));
    }
    for (const std::string& part : rule.refused) {
      if (include.path.find(part) == std::string::npos) continue;
      report(file, include.line,
             fmt::format("{} may not include \"{}\": headers named *{}* of other folders are "
                         "refused to it",
                         folder, include.path, part));
    }
  }

  // A public header belongs to the layers with a source file of its name, and is theirs to show.
  void check_public_owner(const fs::path& file, const Include& include, const std::string& own,
                          const IncludeRule& rule) {
    const auto found = owners_.find(fs::path(include.path).stem().string());
    if (found == owners_.end()) return;
    for (const std::string& owner : found->second) {
      if (owner == own || rule.layers.count(owner) != 0) return;
    }
    report(file, include.line,
           fmt::format("src/{} may not include {}, which \"{}\" belongs to (src/{}/{}.cpp); it may "
                       "include: {}",
                       own, *found->second.begin(), include.path, *found->second.begin(),
                       found->first, allowed(rule)));
  }

  void check_weight(const fs::path& file, const Include& include) {
    if (!is_header(file) || !is_heavy(include.path)) return;
    report(file, include.line,
           fmt::format("a header includes <{}>, which is slow to compile; include it in a .cpp",
                       include.path));
  }

  static std::string allowed(const IncludeRule& rule) {
    std::string text = "include/";
    for (const std::string& layer : rule.layers) text += ", " + layer;
    return text;
  }

  const fs::path root_;
  const IncludeRules& rules_;
  std::set<std::string> layers_;
  std::map<std::string, std::set<std::string>> owners_;  // layers by the stem of their .cpp files
  std::vector<std::string> violations_;
};

}  // namespace

IncludeRules read_include_rules(const std::string& text) {
  IncludeRules rules;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string folder;
    if (!(words >> folder)) continue;
    IncludeRule& rule = rules[folder];
    for (std::string word; words >> word;) {
      if (word.front() == '!') {
        rule.refused.push_back(word.substr(1));
      } else {
        rule.layers.insert(word);
      }
    }
  }
  return rules;
}

std::vector<std::string> include_violations(const fs::path& root, const IncludeRules& rules) {
  return Checker(root, rules).run();
}

}  // namespace tilewright::structure
