#include "support/file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
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
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (descriptor < 0) fail(path, "cannot write", errno);
  const int error = write_parts(descriptor, parts);
  ::close(descriptor);
  if (error != 0) fail(path, "cannot write", error);
}

// Opens a new file in the folder, under a name that nobody has, and returns it with its path. The
// kernel applies the process's umask: reading it would mean changing it for every thread.
std::pair<int, std::string> create_temporary(const fs::path& folder) {
  static std::atomic<unsigned> counter = 0;
  for (;;) {
    // A short name, since a long one may be at the limit already.
    std::string path = (folder / fmt::format(".tilewright.{}.{}", ::getpid(), ++counter)).string();
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor >= 0 || errno != EEXIST) return {descriptor, std::move(path)};
  }
}

}  // namespace

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

void write_file(const std::string& path, const std::vector<std::span<const std::byte>>& parts) {
  struct stat old {};
  const bool exists = ::stat(path.c_str(), &old) == 0;
  if (exists && S_ISDIR(old.st_mode)) fail(path, "cannot write", EISDIR);
  if (exists && !S_ISREG(old.st_mode)) return write_device(path, parts);
  if (exists && ::access(path.c_str(), W_OK) != 0) fail(path, "cannot write", errno);

  // Behind a link it is the file that changes, not the link.
  std::error_code unresolved;
  fs::path target = exists ? fs::canonical(path, unresolved) : fs::path(path);
  if (unresolved) target = path;
  // The same folder, since a rename cannot cross file systems.
  const auto [descriptor, temporary] = create_temporary(target.parent_path());
  if (descriptor < 0) fail(path, "cannot write into its folder", errno);
  int error = write_parts(descriptor, parts);
  if (error == 0 && exists && ::fchmod(descriptor, old.st_mode & 07777) != 0) error = errno;
  if (::close(descriptor) != 0 && error == 0) error = errno;
  if (error == 0 && std::rename(temporary.c_str(), target.c_str()) != 0) error = errno;
  if (error == 0) return;
  ::unlink(temporary.c_str());
  fail(path, "cannot write", error);
}

std::string read_text(const std::string& path) {
  const InputFile file(path);
  std::string text(static_cast<size_t>(file.size()), '\0');
  file.read(0, std::as_writable_bytes(std::span(text.data(), text.size())));
  return text;
}

std::optional<std::string> try_read_text(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return std::nullopt;
  struct stat status {};
  bool readable = ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
  std::string text;
  char part[1 << 14];
  // To its end: files of the system say that their size is 0.
  while (readable) {
    const ssize_t count = ::read(descriptor, part, sizeof part);
    if (count == 0) break;
    readable = count > 0 || errno == EINTR;
    if (count > 0) text.append(part, static_cast<size_t>(count));
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
