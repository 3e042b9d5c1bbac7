#include "compiler/dump.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
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

using Clock = fs::file_time_type::clock;
// Files have the time of the system's last tick, which can be 10 ms behind the clock.
const Clock::time_point kProcessBegan = Clock::now() - std::chrono::milliseconds(10);

// Keeps other processes from writing there, where the folder's file system can do that.
class FolderLock {
 public:
  explicit FolderLock(const fs::path& folder)
      : descriptor_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (descriptor_ >= 0) ::flock(descriptor_, LOCK_EX);
  }
  ~FolderLock() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int descriptor_;
};

// Of a process that runs beside this one. An older file is of an earlier run.
bool is_of_another_process(const fs::path& path) {
  std::error_code failed;
  const Clock::time_point written = fs::last_write_time(path, failed);
  return !failed && written >= kProcessBegan;
}

// NAME.tw for the first text of this name, NAME-2.tw for another one.
void write_once(const fs::path& folder, const std::string& name, const std::string& ending,
                const std::string& text) {
  static std::mutex mutex;
  static std::map<std::string, std::string> written;  // what the files have
  const std::lock_guard lock(mutex);
  const FolderLock folder_lock(folder);
  const std::string hash = content_hash(text);
  for (int number = 1;; ++number) {
    const std::string which = number == 1 ? "" : fmt::format("-{}", number);
    const std::string path = (folder / (name + which + ending)).string();
    const auto found = written.find(path);
    const bool is_ours = found != written.end() && fs::exists(path);
    if (is_ours && found->second == hash) return;
    const bool is_taken = is_ours || is_of_another_process(path);
    if (is_taken && try_read_text(path) != text) continue;
    if (!is_taken) write_text(path, text);
    written[path] = hash;
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
