#include "runtime/build_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <span>
#include <thread>
#include <utility>

#include "support/diagnostic.h"
#include "support/escape.h"
#include "support/file.h"
#include "support/hash.h"
#include "support/messages.h"

namespace tilewright::runtime {
namespace {

namespace fs = std::filesystem;

// An entry: this line, then the hash of everything that follows it, then a line with how many
// inputs and parts there are and the size of each, then these.
constexpr std::string_view kMagic = "tilewright build 2\n";
constexpr std::string_view kEnding = ".build";
constexpr std::string_view kTemporary = ".tilewright.";
// How long one waits for another's build, and how often it looks.
constexpr std::chrono::seconds kLongestBuild{60};
constexpr std::chrono::milliseconds kLook{5};
// More than any cubin with its PTX and source.
constexpr std::int64_t kMaximumEntry = std::int64_t{256} << 20;

std::string encode(const BuildCache::Inputs& inputs, const std::vector<std::string>& parts) {
  std::string body = fmt::format("{} {}", inputs.size(), parts.size());
  for (const std::string_view input : inputs) body += fmt::format(" {}", input.size());
  for (const std::string& part : parts) body += fmt::format(" {}", part.size());
  body += '\n';
  for (const std::string_view input : inputs) body += input;
  for (const std::string& part : parts) body += part;
  return fmt::format("{}{}\n{}", kMagic, content_hash(body), body);
}

std::optional<std::size_t> take_number(std::string_view& text) {
  std::size_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(parsed.ptr - text.data()));
  if (!text.empty()) text.remove_prefix(1);
  return value;
}

std::optional<BuildCache::Entry> decode(std::string_view text) {
  if (text.substr(0, kMagic.size()) != kMagic) return std::nullopt;
  text.remove_prefix(kMagic.size());
  const std::size_t line_end = text.find('\n');
  if (line_end == std::string_view::npos) return std::nullopt;
  std::string_view body = text.substr(line_end + 1);
  if (text.substr(0, line_end) != content_hash(body)) return std::nullopt;

  const auto input_count = take_number(body), part_count = take_number(body);
  if (!input_count || !part_count) return std::nullopt;
  std::vector<std::size_t> sizes;
  for (std::size_t i = 0; i < *input_count + *part_count; ++i) {
    const auto size = take_number(body);
    if (!size) return std::nullopt;
    sizes.push_back(*size);
  }
  BuildCache::Entry entry;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] > body.size()) return std::nullopt;
    (i < *input_count ? entry.inputs : entry.parts).emplace_back(body.substr(0, sizes[i]));
    body.remove_prefix(sizes[i]);
  }
  return entry;
}

// Of these inputs.
std::optional<std::vector<std::string>> decode(const BuildCache::Inputs& inputs,
                                               std::string_view text) {
  auto entry = decode(text);
  if (!entry ||
      !std::equal(inputs.begin(), inputs.end(), entry->inputs.begin(), entry->inputs.end())) {
    return std::nullopt;
  }
  return std::move(entry->parts);
}

// An open file or folder; -1: none.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  explicit operator bool() const { return number_ >= 0; }
  int number() const { return number_; }
  int release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

// Root may change anything anyway.
bool is_trusted(uid_t owner) { return owner == ::geteuid() || owner == 0; }

// Whether nobody else may change it.
bool is_private(const struct stat& status) {
  return is_trusted(status.st_uid) && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

// The folder, or none and why. Where there is no such folder, `why` is empty.
Descriptor open_folder(const fs::path& folder, std::string& why) {
  Descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat status {};
  if (!opened || ::fstat(opened.number(), &status) != 0) {
    if (errno != ENOENT) why = std::strerror(errno);
    return Descriptor(-1);
  }
  if (is_private(status)) return opened;
  why = !is_trusted(status.st_uid) ? fmt::format("it belongs to user {}", status.st_uid)
                                   : "others may write to it";
  return Descriptor(-1);
}

Descriptor make_cache_folder(const fs::path& folder, std::string& why) {
  std::error_code ignored;
  fs::create_directories(folder.parent_path(), ignored);
  const int failed = ::mkdir(folder.c_str(), 0700) == 0 ? 0 : errno;
  Descriptor opened = open_folder(folder, why);
  if (!opened && why.empty()) why = fmt::format("it cannot be made: {}", std::strerror(failed));
  return opened;
}

std::optional<std::string> read_entry(const Descriptor& file) {
  struct stat status {};
  if (::fstat(file.number(), &status) != 0 || !S_ISREG(status.st_mode) || !is_private(status) ||
      status.st_size > kMaximumEntry) {
    return std::nullopt;
  }
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t at = 0;
  while (at < text.size()) {
    const ssize_t count = ::read(file.number(), text.data() + at, text.size() - at);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return std::nullopt;
    at += static_cast<std::size_t>(count);
  }
  return text;
}

void remove_entry(const Descriptor& folder, const std::string& name) {
  if (::unlinkat(folder.number(), name.c_str(), 0) == 0) return;
  ::unlinkat(folder.number(), name.c_str(), AT_REMOVEDIR);  // where it is empty
}

void warn_once(const fs::path& folder, std::string_view why) {
  static std::mutex mutex;
  static std::set<std::string> warned;
  const std::lock_guard lock(mutex);
  if (!warned.insert(folder.string()).second) return;
  say(Message::warning,
      fmt::format("warning: the build cache {} cannot be used ({}): every run compiles again\n"
                  "  fix: set TILEWRIGHT_CACHE to a folder of yours alone (chown, chmod 700) on a "
                  "disk with room, or to off",
                  escaped_lines(folder.string()), escaped_lines(why)));
}

const char* environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

std::string entry_name(const BuildCache::Inputs& inputs) {
  return BuildCache::key(inputs).append(kEnding);
}

}  // namespace

bool BuildCache::is_off() {
  const char* chosen = environment("TILEWRIGHT_CACHE");
  return chosen != nullptr && std::string_view(chosen) == "off";
}

fs::path BuildCache::default_folder() {
  if (is_off()) return {};
  if (const char* chosen = environment("TILEWRIGHT_CACHE")) return chosen;
  if (const char* cache = environment("XDG_CACHE_HOME")) return fs::path(cache) / "tilewright";
  if (const char* home = environment("HOME")) return fs::path(home) / ".cache" / "tilewright";
  return {};
}

std::string BuildCache::key(const Inputs& inputs) {
  std::string text;
  for (const std::string_view input : inputs) {
    text += fmt::format("{}\n", input.size());
    text += input;
  }
  return content_hash(text);
}

std::optional<std::vector<std::string>> BuildCache::load(const Inputs& inputs) const {
  if (folder_.empty()) return std::nullopt;
  std::string why;
  const Descriptor folder = open_folder(folder_, why);
  if (!why.empty()) warn_once(folder_, why);
  if (!folder) return std::nullopt;
  const std::string name = entry_name(inputs);
  // Neither through a link, nor waiting for who writes to a pipe.
  const Descriptor file(
      ::openat(folder.number(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file && errno == ENOENT) return std::nullopt;
  const std::optional<std::string> entry = file ? read_entry(file) : std::nullopt;
  auto parts = entry ? decode(inputs, *entry) : std::nullopt;
  if (!parts) remove_entry(folder, name);
  return parts;
}

BuildCache::Turn::Turn(const BuildCache& cache, const Inputs& inputs) {
  std::string ignored;
  if (cache.folder_.empty() || !make_cache_folder(cache.folder_, ignored)) return;
  path_ = (cache.folder_ / fmt::format("{}{}.turn", kTemporary, key(inputs))).string();
  const auto until = std::chrono::steady_clock::now() + kLongestBuild;
  for (;;) {
    Descriptor file(::open(path_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
    while (file && ::flock(file.number(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK || std::chrono::steady_clock::now() > until) return;
      std::this_thread::sleep_for(kLook);
    }
    struct stat own {
    }, named{};
    if (!file || ::fstat(file.number(), &own) != 0) return;
    // Who had the turn before has removed its file.
    if (::stat(path_.c_str(), &named) != 0 || named.st_ino != own.st_ino) continue;
    file_ = file.release();
    return;
  }
}

BuildCache::Turn::~Turn() {
  if (file_ < 0) return;
  ::unlink(path_.c_str());
  ::close(file_);
}

bool BuildCache::store(const Inputs& inputs, const std::vector<std::string>& parts) const {
  const auto refused = [](const fs::path& folder, std::string_view why) {
    warn_once(folder, why);
    return false;
  };
  if (folder_.empty()) {
    return is_off() ? false : refused("(none)", "TILEWRIGHT_CACHE and HOME are not set");
  }
  std::string why;
  if (!make_cache_folder(folder_, why)) return refused(folder_, why);

  const std::string name = entry_name(inputs), text = encode(inputs, parts);
  // By rename: it replaces an equal entry, or adds the first.
  TemporaryFile file(folder_.string(), 0600);
  file.write({std::as_bytes(std::span(text.data(), text.size()))});
  file.rename((folder_ / name).string());
  return file.error() == 0 || refused(folder_, std::strerror(file.error()));
}

std::vector<BuildCache::Entry> BuildCache::entries() const {
  std::set<fs::path> files;
  std::error_code failed;
  for (const fs::directory_entry& file : fs::directory_iterator(folder_, failed)) {
    if (file.path().extension() == kEnding) files.insert(file.path());
  }
  std::vector<Entry> entries;
  for (const fs::path& path : files) {
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    const std::optional<std::string> text = file ? read_entry(file) : std::nullopt;
    auto entry = text ? decode(*text) : std::nullopt;
    if (entry) entries.push_back(*std::move(entry));
  }
  return entries;
}

BuildCache::State BuildCache::state() const {
  State state;
  if (folder_.empty()) {
    state.unusable = is_off() ? "TILEWRIGHT_CACHE is off" : "TILEWRIGHT_CACHE and HOME are not set";
    return state;
  }
  make_cache_folder(folder_, state.unusable);
  std::error_code failed;
  for (const fs::directory_entry& file : fs::directory_iterator(folder_, failed)) {
    struct stat status {};
    const bool is_entry = file.path().extension() == kEnding &&
                          ::lstat(file.path().c_str(), &status) == 0 && S_ISREG(status.st_mode);
    if (!is_entry) continue;
    ++state.entries;
    state.bytes += status.st_size;
  }
  return state;
}

BuildCache::State BuildCache::clear() const {
  const State before = state();
  std::error_code failed;
  if (folder_.empty() || !fs::exists(folder_, failed)) return before;
  const Descriptor folder(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat status {};
  const auto refuse = [&](const std::string& problem) {
    Diagnostic({}, fmt::format("{}: the cache cannot be cleared: {}", folder_.string(), problem))
        .fix("set TILEWRIGHT_CACHE to a folder of yours")
        .raise();
  };
  if (!folder || ::fstat(folder.number(), &status) != 0) refuse(std::strerror(errno));
  if (status.st_uid != ::geteuid()) refuse(fmt::format("it belongs to user {}", status.st_uid));
  // Nobody is shut out of /tmp.
  if ((status.st_mode & S_ISVTX) != 0) refuse("it is made to be shared: its sticky bit is set");
  std::vector<fs::path> own, others;
  for (const fs::directory_entry& file : fs::directory_iterator(folder_, failed)) {
    const bool is_own = file.path().extension() == kEnding ||
                        file.path().filename().string().starts_with(kTemporary);
    (is_own ? own : others).push_back(file.path());
  }
  constexpr mode_t kOthersWrite = S_IWGRP | S_IWOTH;
  if ((status.st_mode & kOthersWrite) != 0) {
    // It may be shared for what it holds.
    if (own.empty() && !others.empty()) {
      refuse(fmt::format("others may write to it, and it holds {} and no built kernels",
                         others.front().filename().string()));
    }
    // First, so that nobody adds to it.
    if (::fchmod(folder.number(), status.st_mode & 07777 & ~kOthersWrite) != 0) {
      refuse(std::strerror(errno));
    }
  }
  for (const fs::path& path : own) fs::remove_all(path, failed);
  return before;
}

}  // namespace tilewright::runtime
