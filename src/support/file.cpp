#include "support/file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "support/diagnostic.h"

namespace tilewright {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& path, const char* what, int error) {
  Diagnostic({}, fmt::format("{}: {}: {}", path, what, std::strerror(error))).raise();
}

[[noreturn]] void fail_to_write(const std::string& path, const char* what, int error) {
  const bool is_full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  Diagnostic({}, fmt::format("{}: {}: {}", path, what, std::strerror(error)))
      .fix(is_full ? "make room there, or name a file elsewhere"
                   : "name a file in a folder that exists and that you may write to")
      .raise();
}

[[noreturn]] void refuse(const std::string& path, const char* why) {
  Diagnostic({}, fmt::format("{}: cannot read: {}", path, why))
      .fix("name a file that exists and that you may read")
      .raise();
}

// Returns 0, or the errno of what failed.
int write_all(int descriptor, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return 0;
}

int write_parts(int descriptor, const std::vector<std::span<const std::byte>>& parts) {
  for (const auto part : parts) {
    if (const int error = write_all(descriptor, part)) return error;
  }
  return 0;
}

// A pipe, a terminal or /dev/null is written to; renaming onto it would replace it.
void write_device(const std::string& path, const std::vector<std::span<const std::byte>>& parts) {
  // Without O_NONBLOCK, opening a pipe that nobody reads would wait for ever.
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0 && errno == ENXIO) {
    Diagnostic({}, fmt::format("{}: cannot write: nobody reads the pipe", path))
        .fix("begin to read it first, or name a file")
        .raise();
  }
  if (descriptor < 0) fail_to_write(path, "cannot write", errno);
  // The writes themselves wait for a slow reader.
  ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) & ~O_NONBLOCK);
  const int error = write_parts(descriptor, parts);
  ::close(descriptor);
  if (error != 0) fail_to_write(path, "cannot write", error);
}

// Names of temporary files where a signal's handler may read them.
struct Slot {
  std::atomic<bool> taken = false, ready = false;
  std::array<char, 4096> path;
};
std::array<Slot, 16> slots;

// -1 where all are taken or the path is too long: such a file stays behind after a signal.
int take_slot(const std::string& path) {
  for (std::size_t i = 0; i < slots.size() && path.size() < slots[i].path.size(); ++i) {
    if (slots[i].taken.exchange(true)) continue;
    std::memcpy(slots[i].path.data(), path.c_str(), path.size() + 1);
    slots[i].ready = true;
    return static_cast<int>(i);
  }
  return -1;
}

void free_slot(int slot) {
  if (slot < 0) return;
  slots[static_cast<std::size_t>(slot)].ready = false;
  slots[static_cast<std::size_t>(slot)].taken = false;
}

void remove_and_end(int signal) {
  remove_temporaries();
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

}  // namespace

TemporaryFile::TemporaryFile(const std::string& folder, unsigned mode, std::string_view ending) {
  static std::atomic<unsigned> counter = 0;
  do {
    // A short name, since a long one may be at the limit already.
    path_ = (fs::path(folder) / fmt::format(".tilewright.{}.{}{}", ::getpid(), ++counter, ending))
                .string();
    slot_ = take_slot(path_);
    // The kernel applies the process's umask: reading it would mean changing it for every thread.
    descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    is_there_ = descriptor_ >= 0;
    if (is_there_) return;
    error_ = errno;
    free_slot(std::exchange(slot_, -1));
  } while (std::exchange(error_, error_ == EEXIST ? 0 : error_) == EEXIST);
}

TemporaryFile::~TemporaryFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (is_there_) ::unlink(path_.c_str());
  free_slot(slot_);
}

void TemporaryFile::write(const std::vector<std::span<const std::byte>>& parts) {
  if (error_ == 0) note(write_parts(descriptor_, parts));
}

void TemporaryFile::rename(const std::string& target) {
  if (descriptor_ >= 0 && ::close(std::exchange(descriptor_, -1)) != 0) note(errno);
  if (error_ == 0 && std::rename(path_.c_str(), target.c_str()) != 0) note(errno);
  is_there_ = error_ != 0;
}

void remove_temporaries() {
  for (const Slot& slot : slots) {
    if (slot.ready) ::unlink(slot.path.data());
  }
}

void remove_temporaries_on_signals() {
  for (const int number : {SIGHUP, SIGINT, SIGTERM}) {
    struct sigaction now {};
    if (::sigaction(number, nullptr, &now) != 0 || now.sa_handler == SIG_IGN) continue;
    struct sigaction own {};
    own.sa_handler = remove_and_end;
    ::sigaction(number, &own, nullptr);
  }
}

InputFile::InputFile(std::string path) : path_(std::move(path)) {
  // Without O_NONBLOCK, opening a pipe that nobody writes would wait for ever.
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) refuse(path_, std::strerror(errno));
  struct stat status {};
  const bool known = ::fstat(descriptor_, &status) == 0;
  if (!known || !S_ISREG(status.st_mode)) {
    ::close(descriptor_);
    refuse(path_, "not a regular file");
  }
  size_ = status.st_size;
}

InputFile::~InputFile() { ::close(descriptor_); }

void InputFile::read(int64_t offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t count = ::pread(descriptor_, bytes.data(), bytes.size(), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(path_, "cannot read", errno);
    if (count == 0) {
      Diagnostic({}, fmt::format("{}: ends at byte {} while it is read: another program is writing "
                                 "it",
                                 path_, offset))
          .raise();
    }
    bytes = bytes.subspan(static_cast<size_t>(count));
    offset += count;
  }
}

std::string why_not_writable(const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return "it is a folder";
  if (fs::exists(path, ignored)) {
    if (::access(path.c_str(), W_OK) != 0) return std::strerror(errno);
    if (!fs::is_regular_file(path, ignored)) return {};
  }
  fs::path folder = fs::path(path).parent_path();
  if (folder.empty()) folder = ".";
  if (!fs::is_directory(folder, ignored)) {
    return fmt::format("there is no folder {}", folder.string());
  }
  // The file appears by a rename inside its folder.
  if (::access(folder.c_str(), W_OK | X_OK) != 0) {
    return fmt::format("{}: {}", folder.string(), std::strerror(errno));
  }
  return {};
}

void write_file(const std::string& path, const std::vector<std::span<const std::byte>>& parts) {
  struct stat old {};
  const bool exists = ::stat(path.c_str(), &old) == 0;
  if (exists && S_ISDIR(old.st_mode)) fail_to_write(path, "cannot write", EISDIR);
  if (exists && !S_ISREG(old.st_mode)) return write_device(path, parts);
  if (exists && ::access(path.c_str(), W_OK) != 0) fail_to_write(path, "cannot write", errno);

  // Behind a link it is the file that changes, not the link.
  std::error_code unresolved;
  fs::path target = exists ? fs::canonical(path, unresolved) : fs::path(path);
  if (unresolved) target = path;
  // The same folder, since a rename cannot cross file systems.
  TemporaryFile file(target.parent_path().string(), exists ? 0600 : 0666);
  if (file.error() != 0) fail_to_write(path, "cannot write into its folder", file.error());
  file.write(parts);
  if (exists && ::fchmod(file.descriptor(), old.st_mode & 0777) != 0) {
    fail(path, "cannot set its permissions", errno);
  }
  file.rename(target.string());
  if (file.error() != 0) fail_to_write(path, "cannot write", file.error());
}

std::string read_text(const std::string& path) {
  const InputFile file(path);
  if (file.size() > kMaximumText) refuse(path, "it has more than 256 MiB");
  std::string text(static_cast<size_t>(file.size()), '\0');
  file.read(0, std::as_writable_bytes(std::span(text.data(), text.size())));
  return text;
}

std::optional<std::string> try_read_text(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return std::nullopt;
  struct stat status {};
  bool readable = ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) &&
                  status.st_size <= kMaximumText;
  std::string text;
  char part[1 << 14];
  // To its end: files of the system say that their size is 0.
  while (readable) {
    const ssize_t count = ::read(descriptor, part, sizeof part);
    if (count == 0) break;
    readable = count > 0 || errno == EINTR;
    if (count > 0) text.append(part, static_cast<size_t>(count));
    readable = readable && static_cast<int64_t>(text.size()) <= kMaximumText;
  }
  ::close(descriptor);
  return readable ? std::optional(std::move(text)) : std::nullopt;
}

void write_text(const std::string& path, std::string_view text) {
  write_file(path, {std::as_bytes(std::span(text))});
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
  return lines;
}

}  // namespace tilewright
