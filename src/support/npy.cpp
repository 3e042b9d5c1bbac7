#include "support/npy.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <span>

#include "support/diagnostic.h"
#include "support/file.h"

namespace tilewright {
namespace {

struct ElementType {
  std::string_view descr;
  int64_t bytes;
};

constexpr std::array<ElementType, 12> kElementTypes = {{{"<f2", 2},
                                                        {"<f4", 4},
                                                        {"<f8", 8},
                                                        {"<u2", 2},
                                                        {"<u4", 4},
                                                        {"<i4", 4},
                                                        {"<i8", 8},
                                                        {"|i1", 1},
                                                        {"|u1", 1},
                                                        {"|b1", 1},
                                                        {"bf16", 2},
                                                        {"f8e4m3", 1}}};
constexpr size_t kNumpyTypes = 10;  // those at the front, which stand so in a file

constexpr std::string_view kMagic = "\x93NUMPY";

// Far more than the entries take that are read.
constexpr int64_t kMaxNpyHeader = 1 << 20;

struct Header {
  std::string descr;
  std::vector<int64_t> shape;
};

[[noreturn]] void fail(const std::string& path, const std::string& message,
                       const std::string& fix) {
  Diagnostic({}, fmt::format("{}: {}", path, message)).fix(fix).raise();
}

[[noreturn]] void fail_damaged(const std::string& path, const std::string& message) {
  fail(path, message, "write the file again with numpy.save");
}

// The header is a Python dictionary with three entries, all of which must be there.
class HeaderParser {
 public:
  HeaderParser(const std::string& path, std::string_view text) : path_(path), text_(text) {}

  Header parse() {
    Header header;
    std::optional<bool> fortran_order;
    bool has_descr = false, has_shape = false;
    expect('{');
    while (!take('}')) {
      const std::string key = string();
      expect(':');
      if (key == "descr") {
        skip_space();
        if (!rest().empty() && rest().front() == '[') {
          fail(path_, "has a structured dtype; Tilewright reads arrays of numbers",
               "save one field: numpy.save(path, array['field'])");
        }
        header.descr = string();
        has_descr = true;
      } else if (key == "fortran_order") {
        fortran_order = boolean();
      } else if (key == "shape") {
        header.shape = tuple();
        has_shape = true;
      } else {
        fail_damaged(path_, fmt::format("the header has an unknown entry '{}'", key));
      }
      if (!take(',')) {
        expect('}');
        break;
      }
    }
    if (!has_descr || !fortran_order || !has_shape) {
      fail_damaged(path_, fmt::format("the header has no '{}'", !has_descr       ? "descr"
                                                                : !fortran_order ? "fortran_order"
                                                                                 : "shape"));
    }
    skip_space();
    if (!rest().empty()) damaged("nothing more");
    if (*fortran_order) {
      fail(path_, "is in Fortran (column-major) order; Tilewright reads C (row-major) order",
           "save numpy.ascontiguousarray(array)");
    }
    return header;
  }

 private:
  std::string_view rest() const { return text_.substr(at_); }

  [[noreturn]] void damaged(std::string_view expected) const {
    fail_damaged(path_, fmt::format("the header is damaged: byte {} should be {}", at_, expected));
  }

  void skip_space() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }

  bool take(char c) {
    skip_space();
    if (rest().empty() || rest().front() != c) return false;
    ++at_;
    return true;
  }

  void expect(char c) {
    if (!take(c)) damaged(fmt::format("'{}'", c));
  }

  std::string string() {
    skip_space();
    const char quote = rest().empty() ? '\0' : rest().front();
    if (quote != '\'' && quote != '"') damaged("a quoted string");
    const auto end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) damaged("a string that ends");
    const std::string value(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return value;
  }

  bool boolean() {
    skip_space();
    for (const std::string_view word : {"True", "False"}) {
      if (rest().substr(0, word.size()) != word) continue;
      at_ += word.size();
      return word == "True";
    }
    damaged("True or False");
  }

  std::vector<int64_t> tuple() {
    std::vector<int64_t> values;
    expect('(');
    while (!take(')')) {
      skip_space();
      int64_t value = 0;
      const auto parsed = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
      if (parsed.ec == std::errc::result_out_of_range) damaged("a size below 2^63");
      if (parsed.ec != std::errc{} || value < 0) damaged("a size");
      at_ = static_cast<size_t>(parsed.ptr - text_.data());
      values.push_back(value);
      if (!take(',')) {
        expect(')');
        break;
      }
    }
    return values;
  }

  const std::string& path_;
  std::string_view text_;
  size_t at_ = 0;
};

// Our name of the file's element type.
std::string element_type(const std::string& path, const std::string& descr, NpyRaw raw) {
  const bool two_bytes = descr == "<u2" || descr == "|V2" || descr == "<V2";
  const bool one_byte = descr == "|u1" || descr == "|V1" || descr == "<V1";
  if (raw == NpyRaw::bf16 && two_bytes) return "bf16";
  if (raw == NpyRaw::f8e4m3 && one_byte) return "f8e4m3";
  if (descr.find('V') != std::string::npos) {
    fail(path,
         fmt::format("has dtype '{}', bytes without a meaning; '|V2' is read where a bf16 tensor "
                     "is wanted, '|V1' where an f8e4m3 tensor is",
                     descr),
         "save array.astype('<f4')");
  }
  const auto numpy_types = std::span(kElementTypes).first(kNumpyTypes);
  for (const ElementType& type : numpy_types) {
    if (type.descr == descr) return descr;
  }
  std::string known;
  for (const ElementType& type : numpy_types) {
    if (!descr.empty() && descr.front() == '>' && type.descr.substr(1) == descr.substr(1)) {
      fail(path, fmt::format("is big-endian ('{}'); Tilewright reads little-endian", descr),
           fmt::format("save array.astype('{}')", type.descr));
    }
    known += fmt::format("{}'{}'", known.empty() ? "" : ", ", type.descr);
  }
  fail(path, fmt::format("has dtype '{}'; Tilewright reads {}", descr, known),
       "save array.astype('<f4')");
}

// The value at the front of `bytes`, which are little-endian.
uint64_t little_endian(std::span<const std::byte> bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | std::to_integer<uint64_t>(bytes[i]);
  return value;
}

std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string header_text(const NpyArray& array) {
  const std::string descr = array.descr == "bf16"     ? "<u2"
                            : array.descr == "f8e4m3" ? "|u1"
                                                      : array.descr;
  // A Python tuple of one needs its comma.
  std::string text =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}", descr,
                  fmt::join(array.shape, ", "), array.shape.size() == 1 ? "," : "");
  const bool version_1 = text.size() + 64 + 1 <= 65535;
  std::string start(kMagic);
  start += version_1 ? '\1' : '\2';
  start += '\0';
  const size_t length_bytes = version_1 ? 2 : 4;
  // The format asks that the data start at a multiple of 64.
  while ((start.size() + length_bytes + text.size() + 1) % 64 != 0) text += ' ';
  text += '\n';
  for (size_t i = 0; i < length_bytes; ++i) start += static_cast<char>(text.size() >> 8 * i & 0xFF);
  return start + text;
}

}  // namespace

int64_t npy_element_size(std::string_view descr) {
  for (const ElementType& type : kElementTypes) {
    if (type.descr == descr) return type.bytes;
  }
  return 0;
}

int64_t npy_data_size(std::string_view descr, const std::vector<int64_t>& shape) {
  int64_t size = npy_element_size(descr);
  for (const int64_t extent : shape) {
    if (extent < 0) return -1;
    if (extent > 0 && size > std::numeric_limits<int64_t>::max() / extent) return -1;
    size *= extent;
  }
  return size;
}

NpyArray read_npy(const std::string& path, NpyRaw raw) {
  const InputFile file(path);
  const auto need = [&](int64_t bytes, std::string_view what) {
    if (file.size() >= bytes) return;
    fail_damaged(path, fmt::format("is cut short: {} ends at byte {}, the file at {}", what, bytes,
                                   file.size()));
  };

  std::array<std::byte, 12> start{};
  const auto magic = std::span(start).first(kMagic.size());
  if (file.size() >= static_cast<int64_t>(kMagic.size())) file.read(0, magic);
  if (!std::ranges::equal(magic, as_bytes(kMagic))) {
    fail(path, "is not a .npy file: it does not start with \\x93NUMPY", "write it with numpy.save");
  }
  need(8, "the version");
  file.read(0, std::span(start).first(8));
  const int version = std::to_integer<int>(start[6]);
  if (version < 1 || version > 3) {
    fail(path, fmt::format("has version {} of the .npy format; Tilewright reads 1 to 3", version),
         "write it with numpy.save");
  }
  const int64_t length_bytes = version == 1 ? 2 : 4;
  const int64_t header_at = 8 + length_bytes;
  need(header_at, "the length of the header");
  file.read(0, std::span(start).first(static_cast<size_t>(header_at)));
  const auto length = static_cast<int64_t>(
      little_endian(std::span(start).subspan(8, static_cast<size_t>(length_bytes))));
  if (length > kMaxNpyHeader) {
    fail_damaged(
        path, fmt::format("has a header of {} bytes, and {} is the limit", length, kMaxNpyHeader));
  }
  const int64_t data_at = header_at + length;
  need(data_at, "the header");
  std::string text(static_cast<size_t>(length), '\0');
  file.read(header_at, std::as_writable_bytes(std::span(text)));

  Header header = HeaderParser(path, text).parse();
  NpyArray array{element_type(path, header.descr, raw), std::move(header.shape), {}};
  const int64_t size = npy_data_size(array.descr, array.shape);
  if (size < 0 || size > std::numeric_limits<int64_t>::max() - data_at) {
    fail_damaged(path, fmt::format("has shape ({}) of '{}', which overflows 2^63 bytes",
                                   fmt::join(array.shape, ", "), header.descr));
  }
  if (file.size() != data_at + size) {
    fail_damaged(
        path, fmt::format("holds {} bytes of data; shape ({}) of '{}' has {}",
                          file.size() - data_at, fmt::join(array.shape, ", "), header.descr, size));
  }
  array.data.resize(static_cast<size_t>(size));
  file.read(data_at, array.data);
  return array;
}

void write_npy(const std::string& path, const NpyArray& array) {
  const int64_t size = npy_data_size(array.descr, array.shape);
  if (npy_element_size(array.descr) == 0 || size != static_cast<int64_t>(array.data.size())) {
    Diagnostic({},
               fmt::format("{}: an array of '{}' and shape ({}) was given {} bytes, not {}", path,
                           array.descr, fmt::join(array.shape, ", "), array.data.size(), size),
               ErrorKind::internal)
        .raise();
  }
  const std::string header = header_text(array);
  write_file(path, {as_bytes(header), array.data});
}

}  // namespace tilewright
