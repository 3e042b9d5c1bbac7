#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright {

// A regular file, open for reading. What fails is a usage error that names the file.
class InputFile {
 public:
  explicit InputFile(std::string path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const { return path_; }
  int64_t size() const { return size_; }

  // The bytes must exist: check against size() first, where the format can say what is missing.
  void read(int64_t offset, std::span<std::byte> bytes) const;

 private:
  std::string path_;
  int descriptor_;
  int64_t size_ = 0;
};

// A new file under a name that nobody has. It goes away with the object unless it was renamed, and
// when a signal ends a process that called remove_temporaries_on_signals().
class TemporaryFile {
 public:
  // `mode` as open() takes it. Where the file cannot be made, error() says why.
  TemporaryFile(const std::string& folder, unsigned mode, std::string_view ending = {});
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  // An errno; 0 while all went well.
  int error() const { return error_; }
  const std::string& path() const { return path_; }
  int descriptor() const { return descriptor_; }
  void write(const std::vector<std::span<const std::byte>>& parts);
  // Replaces what is there, all at once.
  void rename(const std::string& target);

 private:
  void note(int error) { error_ = error_ == 0 ? error : error_; }

  std::string path_;
  int descriptor_ = -1;
  int slot_ = -1;
  int error_ = 0;
  bool is_there_ = false;
};

// Those that are open now. A signal's handler may call it.
void remove_temporaries();
// For programs that own their signals: SIGHUP, SIGINT and SIGTERM, where they are not ignored, end
// the process as before, without a temporary file that stays behind.
void remove_temporaries_on_signals();

// What would keep write_file from this path, as far as it shows beforehand; empty where nothing
// would. For work that takes long before it writes.
std::string why_not_writable(const std::string& path);
// The parts, one after the other, appear as `path` all at once; when anything fails, which is a
// usage error, an old file stays as it was. The file has the old one's permissions, without the
// bits that make a program run as its owner.
void write_file(const std::string& path, const std::vector<std::span<const std::byte>>& parts);

// What read_text takes: more than any text that is meant.
constexpr std::int64_t kMaximumText = std::int64_t{256} << 20;
// All of a file. What fails is a usage error that names the file.
std::string read_text(const std::string& path);
// Nothing where there is no such regular file, or it cannot be read or is longer than that.
std::optional<std::string> try_read_text(const std::string& path);
void write_text(const std::string& path, std::string_view text);
// Without their ends.
std::vector<std::string_view> lines_of(std::string_view text);

}  // namespace tilewright
