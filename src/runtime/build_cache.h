#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright::runtime {

// A folder of build results, each a file named by the hash of everything that it was built from.
// Any number of threads and processes may use one folder at once: an entry appears whole, by
// rename, and never changes. A folder that cannot be written only costs time: one warning on
// stderr.
class BuildCache {
 public:
  explicit BuildCache(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // $TILEWRIGHT_CACHE, else $XDG_CACHE_HOME/tilewright, else ~/.cache/tilewright. Without any of
  // them the cache keeps nothing.
  static std::filesystem::path default_folder();

  const std::filesystem::path& folder() const { return folder_; }

  // The hash of the inputs. Their boundaries count: {"ab", "c"} is not {"a", "bc"}.
  static std::string key(const std::vector<std::string_view>& inputs);

  // Removes an entry that is damaged (cut short, altered, or of another key) and finds nothing
  // then.
  std::optional<std::vector<std::string>> load(std::string_view key) const;
  void store(std::string_view key, const std::vector<std::string>& parts) const;

 private:
  std::filesystem::path entry_path(std::string_view key) const;

  std::filesystem::path folder_;
};

}  // namespace tilewright::runtime
