#include "explain/report/source_map.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>

#include "support/diagnostic.h"
#include "support/file.h"

namespace tilewright::explanations {
namespace {

std::vector<std::string> owned_lines(std::string_view text) {
  const std::vector<std::string_view> lines = lines_of(text);
  return {lines.begin(), lines.end()};
}

// The file's name and the line of a comment that is a place, and nothing else.
struct Comment {
  std::string_view name;
  int line;
};
std::optional<Comment> place_of(std::string_view text) {
  text.remove_prefix(std::min(text.size(), text.find_first_not_of(' ')));
  if (text.substr(0, 3) != "// ") return std::nullopt;
  text.remove_prefix(3);
  const std::size_t colon = text.rfind(':');
  if (colon == text.npos || text.find(' ') != text.npos) return std::nullopt;
  Comment comment{text.substr(0, colon), 0};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, comment.line);
  if (error != std::errc() || stop != end) return std::nullopt;
  return comment;
}

class Files {
 public:
  explicit Files(SourceMap& map) : map_(map) {}
  void add(SourceLocation where) {
    if (where.file == nullptr) return;
    const auto same = [&](const SourceFile& file) { return file.path == where.file; };
    if (std::any_of(map_.files.begin(), map_.files.end(), same)) return;
    map_.files.push_back({where.file, source_lines(where.file)});
  }
  int find(std::string_view name) const {
    for (std::size_t i = 0; i < map_.files.size(); ++i) {
      const std::string& path = map_.files[i].path;
      if (path.substr(path.find_last_of('/') + 1) == name) return static_cast<int>(i);
    }
    return -1;
  }

 private:
  SourceMap& map_;
};

}  // namespace

std::vector<std::string> source_lines(const char* file) {
  return owned_lines(try_read_source(file).value_or(""));
}

SourceMap source_map(const ir::Kernel& machine, std::string_view cuda) {
  SourceMap map;
  Files files(map);
  files.add(machine.where);
  ir::for_each(machine.body, [&](const ir::Operation& operation) { files.add(operation.where); });
  map.cuda = owned_lines(cuda);
  SourceMap::Place now;
  bool inside = false;
  for (std::size_t i = 0; i < map.cuda.size(); ++i) {
    if (!inside && map.cuda[i].rfind("extern \"C\" __global__", 0) == 0) {
      inside = true;
      map.kernel_line = static_cast<int>(i);
    }
    if (const auto comment = inside ? place_of(map.cuda[i]) : std::nullopt) {
      now = {files.find(comment->name), comment->line};
    }
    map.from.push_back(now);
  }
  return map;
}

}  // namespace tilewright::explanations
