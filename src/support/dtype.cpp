#include "tilewright/dtype.h"

#include <array>
#include <string>

#include "support/diagnostic.h"
#include "support/escape.h"

namespace tilewright {
namespace {

struct Record {
  std::string_view name;
  int bytes;
  bool floating;
};

constexpr std::array<Record, 10> kTypes = {{{"f32", 4, true},
                                            {"f16", 2, true},
                                            {"bf16", 2, true},
                                            {"f8e4m3", 1, true},
                                            {"i32", 4, false},
                                            {"i64", 8, false},
                                            {"i8", 1, false},
                                            {"u8", 1, false},
                                            {"u32", 4, false},
                                            {"bool", 1, false}}};

const Record& record(DType type) {
  const auto number = static_cast<std::size_t>(type);
  if (number < kTypes.size()) return kTypes[number];
  Diagnostic({}, "there is no dtype of number " + std::to_string(number))
      .fix("take one that tilewright/dtype.h names, such as bf16")
      .raise();
}

}  // namespace

int size_of(DType type) { return record(type).bytes; }
bool is_float(DType type) { return record(type).floating; }
bool is_integer(DType type) { return !is_float(type) && type != DType::boolean; }
bool is_byte_integer(DType type) { return type == DType::i8 || type == DType::u8; }
bool is_memory_format(DType type) { return is_byte_integer(type) || type == DType::u32; }
std::string_view name_of(DType type) { return record(type).name; }

DType parse_dtype(std::string_view name) {
  std::string known;
  for (std::size_t i = 0; i < kTypes.size(); ++i) {
    if (kTypes[i].name == name) return static_cast<DType>(i);
    known += (i ? ", " : "") + std::string(kTypes[i].name);
  }
  Diagnostic({}, "unknown dtype \"" + escaped_comment(name) + "\"")
      .fix("use one of " + known)
      .raise();
}

}  // namespace tilewright
