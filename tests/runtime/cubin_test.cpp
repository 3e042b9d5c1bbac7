#include "runtime/cubin.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>

#include "runtime/runtime_test.h"

namespace tilewright::runtime {
namespace {

std::string kept_cubin() {
  std::ifstream file(TILEWRIGHT_SOURCE_DIR "/tests/fuzz_files/corpus/cubin/kernel.cubin",
                     std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

template <typename T>
T value_at(const std::string& bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}
template <typename T>
void write_at(std::string& bytes, std::size_t offset, const T& value) {
  std::memcpy(bytes.data() + offset, &value, sizeof(T));
}

// The offset of the first section of a type.
std::size_t section_of(const std::string& cubin, std::uint32_t type) {
  const auto header = value_at<Elf64_Ehdr>(cubin, 0);
  for (std::size_t i = 0; i < header.e_shnum; ++i) {
    const std::size_t offset = header.e_shoff + i * sizeof(Elf64_Shdr);
    if (value_at<Elf64_Shdr>(cubin, offset).sh_type == type) return offset;
  }
  return 0;
}

TEST(Cubin, HasItsKernel) {
  const auto functions = read_cubin(kept_cubin());
  ASSERT_EQ(functions.size(), 1U);
  EXPECT_TRUE(functions[0].is_kernel);
  EXPECT_GT(functions[0].registers, 0);
}

// What ptxas says of a kernel's own frame, and of those of what it calls with it.
TEST(Cubin, TheStackIsTheLargestThatIsSaid) {
  for (const char attribute : {'\x11', '\x12'}) {
    std::string cubin = kept_cubin();
    const std::size_t record = cubin.find(std::string{'\x04', attribute, '\x08', '\0'});
    ASSERT_NE(record, cubin.npos);
    write_at(cubin, record + 8, std::int32_t{640});
    EXPECT_EQ(read_cubin(cubin).at(0).stack_bytes, 640);
  }
}

TEST(Cubin, AnOffsetThatWrapsIsPastTheEnd) {
  std::string cubin = kept_cubin();
  auto header = value_at<Elf64_Ehdr>(cubin, 0);
  header.e_shoff = UINT64_MAX - sizeof(Elf64_Shdr) + 1;
  write_at(cubin, 0, header);
  expect_error(ErrorKind::internal, {"is damaged", "an offset past its end"},
               [&] { read_cubin(cubin); });
}

// A file of 5 MB would else be read for a minute: each of its sections holds all of it.
TEST(Cubin, SectionsThatLieOverEachOtherAreNotReadAgainAndAgain) {
  std::string cubin = kept_cubin();
  constexpr std::uint32_t kInfo = 0x70000000;
  constexpr std::size_t kSections = 60'000, kRecords = 60'000;
  auto header = value_at<Elf64_Ehdr>(cubin, 0);
  auto info = value_at<Elf64_Shdr>(cubin, section_of(cubin, kInfo));
  const std::string table = cubin.substr(header.e_shoff, header.e_shnum * sizeof(Elf64_Shdr));
  info.sh_offset = cubin.size();
  info.sh_size = 4 * kRecords;
  for (std::size_t i = 0; i < kRecords; ++i) cubin += std::string("\x03\x19\x08\0", 4);
  header.e_shoff = cubin.size();
  cubin += table;
  const std::string entry(reinterpret_cast<const char*>(&info), sizeof(info));
  for (std::size_t i = header.e_shnum; i < kSections; ++i) cubin += entry;
  header.e_shnum = kSections;
  write_at(cubin, 0, header);
  expect_error(ErrorKind::internal, {"is damaged", "lie over each other"},
               [&] { read_cubin(cubin); });
}

TEST(Cubin, ANameWithoutAnEndIsDamaged) {
  std::string cubin = kept_cubin();
  const std::size_t symbols = section_of(cubin, SHT_SYMTAB);
  const auto header = value_at<Elf64_Ehdr>(cubin, 0);
  const std::size_t strings =
      header.e_shoff + value_at<Elf64_Shdr>(cubin, symbols).sh_link * sizeof(Elf64_Shdr);
  auto table = value_at<Elf64_Shdr>(cubin, strings);
  table.sh_offset = cubin.size();
  table.sh_size = 1 << 20;
  cubin += std::string(table.sh_size, 'x');
  write_at(cubin, strings, table);
  expect_error(ErrorKind::internal, {"is damaged", "a name without an end"},
               [&] { read_cubin(cubin); });
}

}  // namespace
}  // namespace tilewright::runtime
