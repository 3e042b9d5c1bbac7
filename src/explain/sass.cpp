#include "explain/sass.h"

#include <fmt/format.h>

#include <cctype>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <span>
#include <vector>

#include "runtime/process.h"
#include "support/file.h"

namespace tilewright::explanations {
namespace {

namespace fs = std::filesystem;

// Of a disassembler: the largest kernels take a second.
constexpr std::chrono::seconds kPatience{60};

bool is_name(char c) { return std::isupper(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_name_or_digit(char c) { return is_name(c) || std::isdigit(static_cast<unsigned char>(c)); }

// The opcode behind an address "/*0a50*/" and an optional predicate "@!P0"; empty for other lines.
std::string_view opcode(std::string_view line) {
  const auto skip = [&line] {
    while (!line.empty() && std::isspace(static_cast<unsigned char>(line[0])))
      line.remove_prefix(1);
  };
  skip();
  if (line.substr(0, 2) != "/*") return {};
  const std::size_t end = line.find("*/");
  if (end == line.npos) return {};
  line.remove_prefix(end + 2);
  skip();
  if (!line.empty() && line[0] == '@') {
    line.remove_prefix(std::min(line.size(), line.find_first_of(" \t")));
    skip();
  }
  std::size_t length = 0;
  while (length < line.size() && is_name_or_digit(line[length])) ++length;
  return length > 0 && is_name(line[0]) ? line.substr(0, length) : std::string_view{};
}

}  // namespace

std::optional<std::string> find_disassembler() {
  // A name alone is looked for in PATH. Folder by folder: a chosen toolkit's tool comes before
  // another toolkit's.
  std::vector<std::string> folders = {""};
  if (const char* home = std::getenv("CUDA_HOME")) folders.push_back(std::string(home) + "/bin/");
  folders.push_back("/usr/local/cuda/bin/");
  for (const std::string& folder : folders) {
    for (const char* name : {"nvdisasm", "cuobjdump"}) {
      if (auto found = runtime::find_program(folder + name)) return found;
    }
  }
  return std::nullopt;
}

std::map<std::string, std::int64_t> count_sass(std::string_view listing) {
  std::map<std::string, std::int64_t> counts;
  while (!listing.empty()) {
    const std::size_t end = listing.find('\n');
    const std::string_view name = opcode(listing.substr(0, end));
    if (!name.empty()) ++counts[std::string(name)];
    listing.remove_prefix(end == listing.npos ? listing.size() : end + 1);
  }
  return counts;
}

Sass disassemble(std::string_view cubin) {
  Sass sass;
  const auto program = find_disassembler();
  if (!program) {
    sass.missing =
        "no disassembler is here: nvdisasm or cuobjdump of the CUDA toolkit, on the PATH or in "
        "$CUDA_HOME/bin";
    return sass;
  }
  TemporaryFile file(fs::temp_directory_path().string(), 0600, ".cubin");
  file.write({std::as_bytes(std::span(cubin.data(), cubin.size()))});
  if (file.error() != 0) {
    sass.missing = fmt::format("{}: cannot write: {}", file.path(), std::strerror(file.error()));
    return sass;
  }
  const bool dumps = program->ends_with("cuobjdump");
  const runtime::ProcessResult result =
      runtime::run_process(dumps ? std::vector<std::string>{*program, "-sass", file.path()}
                                 : std::vector<std::string>{*program, file.path()},
                           kPatience);
  if (result.status != 0) {
    sass.missing = *program + " failed: " + result.output.substr(0, result.output.find('\n'));
    return sass;
  }
  sass.text = result.output;
  sass.instructions = count_sass(sass.text);
  return sass;
}

}  // namespace tilewright::explanations
