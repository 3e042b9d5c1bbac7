#include "runtime/build_cache.h"

#include <fmt/format.h>

#include <atomic>
#include <charconv>
#include <cstdio>
#include <cstdlib>

#include "support/file.h"
#include "support/hash.h"
#include "tilewright/error.h"

namespace tilewright::runtime {
namespace {

namespace fs = std::filesystem;

// An entry: this line, then "key hash count", then a line with the size of each part, then the
// parts. The hash covers everything that follows it.
constexpr std::string_view kMagic = "tilewright build 1\n";

std::string encode(std::string_view key, const std::vector<std::string>& parts) {
  std::string body = fmt::format("{}", parts.size());
  for (const std::string& part : parts) body += fmt::format(" {}", part.size());
  body += '\n';
  for (const std::string& part : parts) body += part;
  return fmt::format("{}{} {}\n{}", kMagic, key, content_hash(body), body);
}

std::optional<size_t> take_number(std::string_view& text) {
  size_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(parsed.ptr - text.data()));
  if (!text.empty()) text.remove_prefix(1);
  return value;
}

std::optional<std::vector<std::string>> decode(std::string_view key, std::string_view entry) {
  if (entry.substr(0, kMagic.size()) != kMagic) return std::nullopt;
  entry.remove_prefix(kMagic.size());
  const size_t line_end = entry.find('\n');
  if (line_end == std::string_view::npos) return std::nullopt;
  std::string_view body = entry.substr(line_end + 1);
  if (entry.substr(0, line_end) != fmt::format("{} {}", key, content_hash(body))) {
    return std::nullopt;
  }

  const auto count = take_number(body);
  if (!count) return std::nullopt;
  std::vector<size_t> sizes;
  for (size_t i = 0; i < *count; ++i) {
    const auto size = take_number(body);
    if (!size) return std::nullopt;
    sizes.push_back(*size);
  }
  std::vector<std::string> parts;
  for (const size_t size : sizes) {
    if (size > body.size()) return std::nullopt;
    parts.emplace_back(body.substr(0, size));
    body.remove_prefix(size);
  }
  return parts;
}

void warn_once(const fs::path& folder, std::string_view why) {
  static std::atomic<bool> warned = false;
  if (warned.exchange(true)) return;
  fmt::print(stderr,
             "warning: the build cache {} cannot be written ({}): every run compiles again\n"
             "  fix: make the folder writable, or set TILEWRIGHT_CACHE to one that is\n",
             folder.string(), why);
}

const char* environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

}  // namespace

fs::path BuildCache::default_folder() {
  if (const char* chosen = environment("TILEWRIGHT_CACHE")) return chosen;
  if (const char* cache = environment("XDG_CACHE_HOME")) return fs::path(cache) / "tilewright";
  if (const char* home = environment("HOME")) return fs::path(home) / ".cache" / "tilewright";
  return {};
}

std::string BuildCache::key(const std::vector<std::string_view>& inputs) {
  std::string text;
  for (const std::string_view input : inputs) {
    text += fmt::format("{}\n", input.size());
    text += input;
  }
  return content_hash(text);
}

fs::path BuildCache::entry_path(std::string_view key) const {
  return folder_ / (std::string(key) + ".build");
}

std::optional<std::vector<std::string>> BuildCache::load(std::string_view key) const {
  if (folder_.empty()) return std::nullopt;
  const fs::path path = entry_path(key);
  const std::optional<std::string> entry = try_read_text(path.string());
  if (!entry) return std::nullopt;
  auto parts = decode(key, *entry);
  if (!parts) {
    std::error_code ignored;
    fs::remove(path, ignored);
  }
  return parts;
}

void BuildCache::store(std::string_view key, const std::vector<std::string>& parts) const {
  if (folder_.empty()) return warn_once("(none)", "TILEWRIGHT_CACHE and HOME are not set");
  std::error_code failed;
  fs::create_directories(folder_, failed);
  if (failed) return warn_once(folder_, failed.message());

  try {
    // By rename: it replaces an equal entry, or adds the first.
    write_text(entry_path(key).string(), encode(key, parts));
  } catch (const Error& error) {
    warn_once(folder_, error.message());
  }
}

}  // namespace tilewright::runtime
