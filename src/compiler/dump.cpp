#include "compiler/dump.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>

#include "ir/program_text.h"
#include "ir/text.h"
#include "support/diagnostic.h"
#include "support/file.h"
#include "support/folder.h"
#include "support/hash.h"

namespace tilewright::compiler {
namespace {

namespace fs = std::filesystem;

// Names with a folder in them are none of ours.
void remove_listed(const fs::path& folder) {
  const std::string manifest = try_read_text((folder / kDumpManifest).string()).value_or("");
  for (const std::string_view name : lines_of(manifest)) {
    if (name.empty() || fs::path(name).filename() != name) continue;
    std::error_code failed;
    if (fs::is_regular_file(folder / name, failed)) fs::remove(folder / name, failed);
  }
}

// That of TILEWRIGHT_DUMP, which is made where it is missing.
std::optional<fs::path> dump_folder() {
  const char* folder = std::getenv("TILEWRIGHT_DUMP");
  if (folder == nullptr || *folder == '\0') return std::nullopt;
  make_folder(folder);
  return fs::path(folder);
}

// NAME.tw for the first text of this name that the process writes, NAME-2.tw for another one.
void write_once(const fs::path& folder, const std::string& name, const std::string& ending,
                const std::string& text) {
  static std::mutex mutex;
  static std::map<std::string, std::string> written;  // what the files have
  const std::lock_guard lock(mutex);
  const std::string hash = content_hash(text);
  for (int number = 1;; ++number) {
    const std::string which = number == 1 ? "" : fmt::format("-{}", number);
    const std::string path = (folder / (name + which + ending)).string();
    const auto [found, is_new] = written.try_emplace(path, hash);
    const bool is_there = fs::exists(path);
    if (!is_new && is_there && found->second != hash) continue;
    found->second = hash;
    if (is_new || !is_there) write_text(path, text);
    return;
  }
}

}  // namespace

std::string file_name(std::string name) {
  std::replace_if(
      name.begin(), name.end(),
      [](unsigned char c) { return std::isalnum(c) == 0 && c != '_' && c != '-'; }, '_');
  return name;
}

void write_dump(const std::string& folder, const std::vector<DumpFile>& files) {
  make_folder(folder);
  remove_listed(folder);
  // First the list: what a dump that fails half-way has written is then known to the next one.
  std::string names;
  for (const DumpFile& file : files) names += file.name + '\n';
  write_text((fs::path(folder) / kDumpManifest).string(), names);
  for (const DumpFile& file : files) {
    write_text((fs::path(folder) / file.name).string(), file.text);
  }
}

void dump_traced(const ir::Kernel& kernel) {
  if (const auto folder = dump_folder()) {
    write_once(*folder, file_name(kernel.name), ".tw", ir::to_text(kernel));
  }
}

void dump_program(const ir::Program& program) {
  if (const auto folder = dump_folder()) {
    const std::string ranks = program.ranks > 1 ? fmt::format("-{}ranks", program.ranks) : "";
    write_once(*folder, file_name(program.name) + ranks, ".twp", ir::to_text(program));
  }
}

}  // namespace tilewright::compiler
