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

// The parts, one after the other, appear as `path` all at once; when anything fails, which is a
// usage error, an old file stays as it was.
void write_file(const std::string& path, const std::vector<std::span<const std::byte>>& parts);

// All of a file. What fails is a usage error that names the file.
std::string read_text(const std::string& path);
// Nothing where there is no such regular file, or it cannot be read.
std::optional<std::string> try_read_text(const std::string& path);
void write_text(const std::string& path, std::string_view text);
// Without their ends.
std::vector<std::string_view> lines_of(std::string_view text);

}  // namespace tilewright
