#include "support/safetensors.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "support/diagnostic.h"
#include "support/file.h"

namespace tilewright {
namespace {

using nlohmann::json;

constexpr std::string_view kEnding = ".safetensors";
// The format's own limit, so that a damaged length is not taken for a long header.
constexpr uint64_t kMaxHeader = 100'000'000;
// The header, a tensor's entry and its lists take 3.
constexpr int kMaxNesting = 16;
constexpr int kMaxAxes = 64;
// What a tensor's entry may have of keys, numbers and the like.
constexpr int kMaxEntry = 1000;

struct TypeNames {
  std::string_view safetensors;
  std::string_view descr;
};

constexpr std::array<TypeNames, 12> kTypeNames = {{{"BF16", "bf16"},
                                                   {"F16", "<f2"},
                                                   {"F32", "<f4"},
                                                   {"F64", "<f8"},
                                                   {"F8_E4M3", "f8e4m3"},
                                                   {"I8", "|i1"},
                                                   {"U8", "|u1"},
                                                   {"I32", "<i4"},
                                                   {"I64", "<i8"},
                                                   {"U16", "<u2"},
                                                   {"U32", "<u4"},
                                                   {"BOOL", "|b1"}}};

bool has_ending(std::string_view text) {
  return text.size() >= kEnding.size() && text.substr(text.size() - kEnding.size()) == kEnding;
}

// The place of the ':' between file and key, or npos when there is no key. Folders, and keys, may
// have such a text in their names too: the last file that exists counts.
size_t separator(std::string_view text) {
  const std::string mark = std::string(kEnding) + ":";
  const auto place = [](size_t found) { return found + kEnding.size(); };
  const size_t last = text.rfind(mark);
  for (size_t at = last; at != text.npos; at = at == 0 ? text.npos : text.rfind(mark, at - 1)) {
    std::error_code ignored;
    if (std::filesystem::exists(text.substr(0, place(at)), ignored)) return place(at);
  }
  return last == text.npos || has_ending(text) ? text.npos : place(last);
}

[[noreturn]] void refuse(const std::string& text, const std::string& message,
                         const std::string& fix) {
  Diagnostic({}, fmt::format("{}: {}", text, message)).fix(fix).raise();
}

[[noreturn]] void refuse_damaged(const std::string& text, const std::string& message) {
  refuse(text, message, "write the file again with safetensors' save_file");
}

// What a JSON text nests at most: a recursion over its values must not exhaust the stack.
int nesting_of(std::string_view text) {
  int depth = 0, most = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      most = std::max(most, ++depth);
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return most;
}

// What a file says of its tensors: the keys of all, and the entry of one of them.
struct TensorsHeader {
  // Where a tensor's data lies, as far as its entry says so.
  struct Extent {
    int numbers = 0;  // those of data_offsets
    int64_t begin = 0, end = 0;
    bool is_whole() const { return numbers == 2 && begin <= end; }
  };
  std::vector<std::string> keys;
  std::vector<Extent> extents;  // of the keys
  json entry;                   // null where there is no such tensor
  int64_t data_at = 0;
};

std::string list_keys(const TensorsHeader& header) {
  constexpr size_t kShown = 20;
  const size_t count = header.keys.size();
  if (count == 0) return "the file holds no tensor";
  const auto end = header.keys.begin() + static_cast<std::ptrdiff_t>(std::min(count, kShown));
  std::string text = fmt::format("the keys are: {}", fmt::join(header.keys.begin(), end, ", "));
  if (count > kShown) text += fmt::format(" and {} more", count - kShown);
  return text;
}

void add_offset(TensorsHeader::Extent& extent, const json& value) {
  constexpr auto kMost = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  int64_t& offset = ++extent.numbers == 1 ? extent.begin : extent.end;
  offset = -1;
  if (value.is_number_unsigned() && value.get<uint64_t>() <= kMost) offset = value.get<int64_t>();
  if (offset < 0) extent.numbers = 3;  // for good: they are no begin and end
}

// Keeps nothing but the keys, where their data lies and the entry of `key`: a hostile header takes
// no memory otherwise.
void parse_header(const std::string& path, const std::string& text, const std::string& key,
                  TensorsHeader& header) {
  int size_of_entry = 0, entries = 0;
  bool in_entry = false, in_metadata = false, in_offsets = false;
  const auto keep = [&](int depth, json::parse_event_t event, json& value) {
    using Event = json::parse_event_t;
    if (depth == 0) return true;
    const bool is_key = event == Event::key;
    if (in_metadata && !is_key) {
      const bool fits = depth == 1 ? event == Event::object_start || event == Event::object_end
                                   : event == Event::value && value.is_string();
      if (!fits) refuse_damaged(path, "\"__metadata__\" is no object of texts");
    }
    if (depth == 2 && is_key) in_offsets = value == "data_offsets";
    if (depth == 3 && event == Event::value && in_offsets) add_offset(header.extents.back(), value);
    if (depth > 1 || !is_key) {
      size_of_entry += in_entry ? 1 : 0;
      if (size_of_entry <= kMaxEntry) return true;
      refuse_damaged(path, fmt::format("the entry of tensor \"{}\" is too long for one", key));
    }
    const auto name = value.get<std::string>();
    in_entry = name == key;
    in_metadata = name == "__metadata__";
    if (!in_metadata) {
      header.keys.push_back(name);
      header.extents.emplace_back();
    }
    if (in_entry && ++entries > 1) {
      refuse_damaged(path, fmt::format("the header names tensor \"{}\" twice", key));
    }
    return in_entry;
  };
  json read = json::parse(text, keep, false);
  if (!read.is_object()) refuse_damaged(path, "the header is not a JSON object");
  if (const auto found = read.find(key); found != read.end()) header.entry = std::move(*found);
}

TensorsHeader read_header(const InputFile& file, const std::string& key) {
  std::array<std::byte, 8> start{};
  if (file.size() < 8) {
    refuse_damaged(file.path(), fmt::format("is cut short: {} bytes, and the length of the header "
                                            "takes 8",
                                            file.size()));
  }
  file.read(0, start);
  uint64_t length = 0;
  for (size_t i = start.size(); i-- > 0;)
    length = length << 8 | std::to_integer<uint64_t>(start[i]);
  if (length > kMaxHeader) {
    refuse_damaged(file.path(), fmt::format("is not a safetensors file: its header would have {} "
                                            "bytes, and {} is the limit",
                                            length, kMaxHeader));
  }
  TensorsHeader header;
  header.data_at = 8 + static_cast<int64_t>(length);
  if (file.size() < header.data_at) {
    refuse_damaged(file.path(), fmt::format("is cut short: the header ends at byte {}, the file at "
                                            "{}",
                                            header.data_at, file.size()));
  }
  std::string text(length, '\0');
  file.read(8, std::as_writable_bytes(std::span(text)));
  if (nesting_of(text) > kMaxNesting) {
    refuse_damaged(file.path(), fmt::format("the header nests objects and arrays more than {} deep",
                                            kMaxNesting));
  }
  parse_header(file.path(), text, key, header);
  return header;
}

// Each byte behind the header is one tensor's, as the format asks.
void check_data(const std::string& path, const TensorsHeader& header, int64_t stored) {
  std::vector<size_t> order(header.keys.size());
  for (size_t i = 0; i < order.size(); ++i) {
    order[i] = i;
    if (header.extents[i].is_whole()) continue;
    refuse_damaged(path, fmt::format("tensor \"{}\" has no \"data_offsets\" of a begin and an end",
                                     header.keys[i]));
  }
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const TensorsHeader::Extent &x = header.extents[a], &y = header.extents[b];
    return std::pair(x.begin, x.end) < std::pair(y.begin, y.end);
  });
  int64_t end = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    const auto& [numbers, begin, own_end] = header.extents[order[i]];
    if (begin < end) {
      refuse_damaged(path, fmt::format("tensors \"{}\" and \"{}\" both have byte {} of the data",
                                       header.keys[order[i - 1]], header.keys[order[i]], begin));
    }
    if (begin > end) {
      refuse_damaged(path, fmt::format("bytes {} to {} of the data are no tensor's", end, begin));
    }
    end = own_end;
  }
  if (end < stored) {
    refuse_damaged(path, fmt::format("the last tensor ends at byte {} of the data, the file at {}",
                                     end, stored));
  }
}

int64_t count_of(const std::string& text, const json& value, std::string_view what) {
  if (!value.is_number_unsigned() ||
      value.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    refuse_damaged(text, fmt::format("{} holds {}, which is not a size", what, value.dump()));
  }
  return value.get<int64_t>();
}

std::vector<int64_t> counts_of(const std::string& text, const json& tensor, const char* name) {
  const auto found = tensor.find(name);
  if (found == tensor.end() || !found->is_array()) {
    refuse_damaged(text, fmt::format("the header gives no array \"{}\"", name));
  }
  if (found->size() > kMaxAxes) {
    refuse_damaged(text, fmt::format("\"{}\" has {} numbers, and {} is the limit", name,
                                     found->size(), kMaxAxes));
  }
  std::vector<int64_t> counts;
  for (const json& value : *found) counts.push_back(count_of(text, value, name));
  return counts;
}

std::string element_type(const std::string& text, const json& tensor) {
  const auto found = tensor.find("dtype");
  if (found == tensor.end() || !found->is_string()) {
    refuse_damaged(text, "the header gives no \"dtype\"");
  }
  const auto name = found->get<std::string>();
  std::string known;
  for (const TypeNames& type : kTypeNames) {
    if (type.safetensors == name) return std::string(type.descr);
    known += fmt::format("{}{}", known.empty() ? "" : ", ", type.safetensors);
  }
  refuse(text, fmt::format("has dtype {}; Tilewright reads {}", name, known),
         "save the tensor as one of these, such as tensor.to(torch.float32)");
}

}  // namespace

bool is_safetensors(std::string_view text) {
  return has_ending(text) || separator(text) != std::string_view::npos;
}

NpyArray read_safetensors(const std::string& text) {
  const auto colon = separator(text);
  const InputFile file(text.substr(0, colon));
  const std::string key = colon == std::string::npos ? "" : text.substr(colon + 1);
  const TensorsHeader header = read_header(file, key);
  if (colon == std::string::npos) {
    refuse(text, "no tensor is named", fmt::format("write {}:KEY; {}", text, list_keys(header)));
  }
  const json& entry = header.entry;
  if (key == "__metadata__" || entry.is_null()) {
    refuse(file.path(), fmt::format("there is no tensor \"{}\"", key), list_keys(header));
  }
  if (!entry.is_object()) refuse_damaged(text, "the header's entry is not a JSON object");

  NpyArray array{element_type(text, entry), counts_of(text, entry, "shape"), {}};
  const std::vector<int64_t> offsets = counts_of(text, entry, "data_offsets");
  const int64_t stored = file.size() - header.data_at;
  if (offsets.size() != 2 || offsets[0] > offsets[1]) {
    refuse_damaged(text, fmt::format("\"data_offsets\" [{}] are not a begin and an end",
                                     fmt::join(offsets, ", ")));
  }
  if (offsets[1] > stored) {
    refuse_damaged(text,
                   fmt::format("is cut short: the tensor ends at byte {} of the data, the file "
                               "at {}",
                               offsets[1], stored));
  }
  const int64_t size = npy_data_size(array.descr, array.shape);
  if (size < 0) {
    refuse_damaged(text, fmt::format("has shape [{}], which overflows 2^63 bytes",
                                     fmt::join(array.shape, ", ")));
  }
  if (size != offsets[1] - offsets[0]) {
    refuse_damaged(
        text, fmt::format("holds {} bytes; shape [{}] of {} has {}", offsets[1] - offsets[0],
                          fmt::join(array.shape, ", "), entry["dtype"].get<std::string>(), size));
  }
  check_data(file.path(), header, stored);
  array.data.resize(static_cast<size_t>(size));
  file.read(header.data_at + offsets[0], array.data);
  return array;
}

std::vector<std::string> safetensors_keys(const std::string& path) {
  return read_header(InputFile(path), "").keys;
}

void write_safetensors(const std::string& path,
                       const std::vector<std::pair<std::string, NpyArray>>& tensors) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  std::size_t end = 0;
  for (const auto& [key, array] : tensors) {
    const auto type =
        std::find_if(kTypeNames.begin(), kTypeNames.end(),
                     [&](const TypeNames& each) { return each.descr == array.descr; });
    if (type == kTypeNames.end() || header.contains(key)) {
      Diagnostic({}, fmt::format("{}: tensor {} of '{}' cannot be written", path, key, array.descr),
                 ErrorKind::internal)
          .raise();
    }
    header[key] = {{"dtype", type->safetensors},
                   {"shape", array.shape},
                   {"data_offsets", {end, end + array.data.size()}}};
    end += array.data.size();
  }
  // The data begins at a multiple of 8 bytes, as the format asks.
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::array<std::byte, 8> length{};
  for (std::size_t i = 0; i < length.size(); ++i)
    length[i] = std::byte(text.size() >> 8 * i & 0xff);
  std::vector<std::span<const std::byte>> parts = {length, std::as_bytes(std::span(text))};
  for (const auto& [key, array] : tensors) parts.emplace_back(array.data);
  write_file(path, parts);
}

}  // namespace tilewright
