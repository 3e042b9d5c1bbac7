#include "runtime/cubin.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>

#include "support/diagnostic.h"

namespace tilewright::runtime {
namespace {

// Attributes of the .nv.info sections. A record is (format, attribute, 16 bits); format kSized is
// followed by as many bytes as the 16 bits say, in every other format those bits are the value.
constexpr uint8_t kSized = 0x04;
constexpr uint8_t kFrameSize = 0x11;
constexpr uint8_t kMinStackSize = 0x12;
constexpr uint8_t kParameterBytes = 0x19;
constexpr uint8_t kRegisterCount = 0x2f;
// The mark of a kernel in a function symbol's st_other.
constexpr unsigned char kEntryMark = 0x10;
// Far longer than those of kernels. A table without ends would be searched for each name.
constexpr std::size_t kLongestName = 4096;

class Image {
 public:
  explicit Image(std::string_view bytes) : bytes_(bytes) {}

  template <typename T>
  T read(uint64_t offset) const {
    T value;
    std::memcpy(&value, slice(offset, sizeof(T)).data(), sizeof(T));
    return value;
  }

  std::string_view slice(uint64_t offset, uint64_t size) const {
    if (offset > bytes_.size() || size > bytes_.size() - offset) bad("an offset past its end");
    return bytes_.substr(offset, size);
  }

  std::string_view text(uint64_t offset, const Elf64_Shdr& table) const {
    const std::string_view strings = slice(table.sh_offset, table.sh_size);
    const std::string_view rest =
        strings.substr(offset < strings.size() ? offset : strings.size(), kLongestName + 1);
    if (rest.size() > kLongestName && rest.find('\0') == rest.npos) bad("a name without an end");
    return rest.substr(0, rest.find('\0'));
  }

  [[noreturn]] void bad(std::string_view why) const {
    Diagnostic({}, fmt::format("a cubin of {} bytes is damaged: {}", bytes_.size(), why),
               ErrorKind::internal)
        .fix("run `tilewright cache --clear` and compile again")
        .raise();
  }

 private:
  std::string_view bytes_;
};

struct Reader {
  explicit Reader(std::string_view bytes) : image(bytes) {
    const auto header = image.read<Elf64_Ehdr>(0);
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) image.bad("no ELF header");
    if (header.e_shentsize != sizeof(Elf64_Shdr)) image.bad("unknown section header size");
    for (uint64_t i = 0; i < header.e_shnum; ++i) {
      sections.push_back(image.read<Elf64_Shdr>(header.e_shoff + i * sizeof(Elf64_Shdr)));
    }
    names = section(header.e_shstrndx);
    for (const Elf64_Shdr& candidate : sections) {
      if (candidate.sh_type == SHT_SYMTAB) symbols = candidate;
    }
  }

  const Elf64_Shdr& section(uint64_t index) const {
    if (index >= sections.size()) image.bad("a section number past its last");
    return sections[index];
  }

  Elf64_Sym symbol(uint64_t index) const {
    return image.read<Elf64_Sym>(symbols.sh_offset + index * sizeof(Elf64_Sym));
  }

  std::string_view symbol_name(uint64_t index) const {
    return image.text(symbol(index).st_name, section(symbols.sh_link));
  }

  template <typename Visit>
  void attributes(const Elf64_Shdr& info, Visit visit) const {
    const std::string_view data = image.slice(info.sh_offset, info.sh_size);
    const Image records(data);
    uint64_t at = 0;
    while (at + 4 <= data.size()) {
      const auto format = records.read<uint8_t>(at);
      const auto attribute = records.read<uint8_t>(at + 1);
      const auto value = records.read<uint16_t>(at + 2);
      const uint64_t size = format == kSized ? value : 0;
      visit(attribute, value, Image(records.slice(at + 4, size)), size);
      at += 4 + size;
    }
  }

  Image image;
  std::vector<Elf64_Shdr> sections;
  Elf64_Shdr names = {};
  Elf64_Shdr symbols = {};
};

constexpr std::string_view kInfoPrefix = ".nv.info.";

}  // namespace

std::vector<CubinFunction> read_cubin(std::string_view bytes) {
  const Reader reader(bytes);
  std::map<std::string, CubinFunction, std::less<>> functions;
  for (uint64_t i = 0; i < reader.symbols.sh_size / sizeof(Elf64_Sym); ++i) {
    const Elf64_Sym symbol = reader.symbol(i);
    if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC) continue;
    const std::string name(reader.symbol_name(i));
    CubinFunction& found = functions[name];
    found.name = name;
    found.is_kernel = (symbol.st_other & kEntryMark) != 0;
    // A kernel without parameters has no record of their size.
    if (found.is_kernel) found.parameter_bytes = 0;
  }

  uint64_t attributes = 0;  // bytes of them
  for (const Elf64_Shdr& section : reader.sections) {
    const std::string_view name = reader.image.text(section.sh_name, reader.names);
    if (name == ".nv.info" || name.starts_with(kInfoPrefix)) {
      attributes += std::min(section.sh_size, uint64_t{bytes.size()});
      if (attributes > bytes.size()) reader.image.bad("sections that lie over each other");
    }
    if (name == ".nv.info") {
      reader.attributes(
          section, [&](uint8_t attribute, uint16_t, const Image& data, uint64_t size) {
            const bool stack = attribute == kFrameSize || attribute == kMinStackSize;
            if (size < 8 || (attribute != kRegisterCount && !stack)) return;
            const auto owner = functions.find(reader.symbol_name(data.read<uint32_t>(0)));
            if (owner == functions.end()) return;
            const int value = data.read<int32_t>(4);
            int& field = stack ? owner->second.stack_bytes : owner->second.registers;
            field = std::max(field, value);
          });
    } else if (name.starts_with(kInfoPrefix)) {
      const auto owner = functions.find(name.substr(kInfoPrefix.size()));
      if (owner == functions.end()) continue;
      reader.attributes(section, [&](uint8_t attribute, uint16_t value, const Image&, uint64_t) {
        if (attribute == kParameterBytes) owner->second.parameter_bytes = value;
      });
    }
  }

  std::vector<CubinFunction> result;
  for (auto& [name, value] : functions) result.push_back(std::move(value));
  return result;
}

std::optional<std::uint64_t> cubin_variable(std::string_view bytes, std::string_view name) {
  const Reader reader(bytes);
  for (uint64_t i = 0; i < reader.symbols.sh_size / sizeof(Elf64_Sym); ++i) {
    const Elf64_Sym symbol = reader.symbol(i);
    if (ELF64_ST_TYPE(symbol.st_info) != STT_OBJECT || reader.symbol_name(i) != name) continue;
    const Elf64_Shdr& section = reader.section(symbol.st_shndx);
    return reader.image.read<std::uint64_t>(section.sh_offset + symbol.st_value);
  }
  return std::nullopt;
}

}  // namespace tilewright::runtime
