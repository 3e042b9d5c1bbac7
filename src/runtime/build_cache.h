#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright::runtime {

// A folder of build results, each a file named by the hash of everything that it was built from,
// which it holds too: an entry is taken only where all of it is the same. Any number of threads and
// processes may use one folder at once: an entry appears whole, by rename, and never changes.
//
// What is read runs on the user's GPU. So the folder must be the user's own or root's, and entries
// are such regular files, that nobody else may write to. A folder that cannot be used only costs
// time: one warning for each.
class BuildCache {
 public:
  explicit BuildCache(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // $TILEWRIGHT_CACHE, else $XDG_CACHE_HOME/tilewright, else ~/.cache/tilewright. Without any of
  // them, and where the first one is "off", there is none: the cache keeps nothing.
  static std::filesystem::path default_folder();
  static bool is_off();

  const std::filesystem::path& folder() const { return folder_; }

  // What a result is built from, in order. Boundaries count: {"ab", "c"} is not {"a", "bc"}.
  using Inputs = std::vector<std::string_view>;
  static std::string key(const Inputs& inputs);

  // Removes an entry that is damaged (cut short, altered, of other inputs, no regular file, or
  // others' to write) and finds nothing then.
  std::optional<std::vector<std::string>> load(const Inputs& inputs) const;
  // Whether the cache keeps it. Where it cannot, a warning says why, once for a folder.
  bool store(const Inputs& inputs, const std::vector<std::string>& parts) const;

  // The right to build what load() has not found, until it is destroyed. It waits for another
  // thread or process that has it, but not for ever: what that one stores can then be loaded.
  // Where the cache keeps nothing, nobody waits.
  class Turn {
   public:
    Turn(const BuildCache& cache, const Inputs& inputs);
    ~Turn();
    Turn(const Turn&) = delete;

   private:
    std::string path_;
    int file_ = -1;
  };

  struct Entry {
    std::vector<std::string> inputs, parts;
  };
  // All that are whole, in the order of their names.
  std::vector<Entry> entries() const;

  struct State {
    std::int64_t entries = 0, bytes = 0;
    std::string unusable;  // why nothing is read or kept; empty: it is
  };
  // Makes the folder where there is none: only that tells whether it can be used.
  State state() const;
  // Removes every entry, and what a process that was killed has left. The folder is then private
  // to the user. Raises Error(usage) where it is not the user's.
  State clear() const;

 private:
  std::filesystem::path folder_;
};

}  // namespace tilewright::runtime
