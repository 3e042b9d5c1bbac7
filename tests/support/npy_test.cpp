#include "support/npy.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "common/error_text.h"
#include "common/temporary_folder.h"

namespace tilewright {
namespace {

using test::usage_error_of;
using testing::ElementsAre;
using testing::HasSubstr;

class NpyTest : public testing::Test {
 protected:
  // A file as NumPy writes it: the dictionary, padded, behind magic, version and length.
  void write(const std::string& dictionary, const std::string& data, int version = 1) {
    std::string text = dictionary;
    const size_t length_bytes = version == 1 ? 2 : 4;
    while ((8 + length_bytes + text.size() + 1) % 64 != 0) text += ' ';
    text += '\n';
    std::string file = "\x93NUMPY";
    file += static_cast<char>(version);
    file += '\0';
    for (size_t i = 0; i < length_bytes; ++i) {
      file += static_cast<char>(text.size() >> 8 * i & 0xFF);
    }
    write_raw(file + text + data);
  }
  void write_typed(const std::string& descr, const std::string& data) {
    write("{'descr': '" + descr + "', 'fortran_order': False, 'shape': (2,), }", data);
  }
  void write_raw(const std::string& bytes) { std::ofstream(path_, std::ios::binary) << bytes; }
  std::string content() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // The text behind "error: PATH: ".
  std::string error(NpyRaw raw = NpyRaw::plain) const {
    const std::string text = usage_error_of([&] { read_npy(path_, raw); });
    const std::string start = "error: " + path_ + ": ";
    EXPECT_EQ(text.substr(0, start.size()), start);
    return text.substr(std::min(start.size(), text.size()));
  }

  static std::string text_of(const NpyArray& array) {
    return {reinterpret_cast<const char*>(array.data.data()), array.data.size()};
  }
  static std::vector<std::byte> bytes_of(const std::string& text) {
    std::vector<std::byte> bytes;
    for (const char c : text) bytes.push_back(static_cast<std::byte>(c));
    return bytes;
  }

  test::TemporaryFolder folder_;
  std::string path_ = folder_ / "q.npy";
};

TEST_F(NpyTest, AHeaderOfAnyLengthIsNotRead) {
  write_raw(std::string("\x93NUMPY\x02\x00\xff\xff\xff\x7f", 12) + "{");
  EXPECT_THAT(usage_error_of([&] { read_npy(path_); }), HasSubstr("1048576 is the limit"));
}

TEST_F(NpyTest, ReadsEachVersion) {
  for (const int version : {1, 2, 3}) {
    write("{'descr': '<i4', 'fortran_order': False, 'shape': (1, 2), }", "abcdefgh", version);
    const NpyArray array = read_npy(path_);
    EXPECT_EQ(array.descr, "<i4");
    EXPECT_THAT(array.shape, ElementsAre(1, 2));
    EXPECT_EQ(text_of(array), "abcdefgh");
  }
}

TEST_F(NpyTest, ReadsScalarsEmptyArraysAndOtherSpellings) {
  write("{'descr': '|b1', 'fortran_order': False, 'shape': (), }", "x");
  EXPECT_TRUE(read_npy(path_).shape.empty());
  write("{'descr': '<f8', 'fortran_order': False, 'shape': (3, 0), }", "");
  EXPECT_THAT(read_npy(path_).shape, ElementsAre(3, 0));
  write("{\"shape\":(2,),\"fortran_order\":False,\"descr\":\"<f2\"}", "abcd");
  EXPECT_EQ(text_of(read_npy(path_)), "abcd");
}

TEST_F(NpyTest, WrittenFilesAreNumpysOwn) {
  write_npy(path_, {"<f2", {2}, bytes_of("abcd")});
  const std::string dictionary = "{'descr': '<f2', 'fortran_order': False, 'shape': (2,), }";
  const std::string expected = std::string("\x93NUMPY\1\0\x76\0", 10) + dictionary +
                               std::string(128 - 10 - dictionary.size() - 1, ' ') + "\nabcd";
  EXPECT_EQ(content(), expected);
}

TEST_F(NpyTest, EveryTypeAndRankRoundTrips) {
  for (const char* descr : {"<f2", "<f4", "<f8", "<u2", "<i4", "<i8", "|i1", "|u1", "|b1"}) {
    for (const std::vector<int64_t>& shape :
         {std::vector<int64_t>{}, {3}, {2, 0}, {2, 3}, {1, 2, 3, 4, 5}}) {
      NpyArray array{descr, shape, {}};
      array.data.resize(static_cast<size_t>(npy_data_size(descr, shape)));
      for (size_t i = 0; i < array.data.size(); ++i) array.data[i] = static_cast<std::byte>(i * 7);
      write_npy(path_, array);
      const NpyArray back = read_npy(path_);
      EXPECT_EQ(back.descr, descr);
      EXPECT_EQ(back.shape, shape);
      EXPECT_EQ(back.data, array.data);
    }
  }
}

TEST_F(NpyTest, AHeaderTooLongForVersion1) {
  NpyArray array{"|u1", std::vector<int64_t>(30000, 1), bytes_of("x")};
  write_npy(path_, array);
  EXPECT_EQ(content()[6], '\2');
  EXPECT_EQ(read_npy(path_).shape, array.shape);
  // Around the longest header of version 1, its filling included.
  for (std::size_t rank = 21790; rank < 21850; rank += 3) {
    array.shape.assign(rank, 1);
    write_npy(path_, array);
    EXPECT_EQ(read_npy(path_).shape.size(), rank);
  }
}

TEST_F(NpyTest, RawWordsAreBf16OrF8OnlyWhenAskedFor) {
  for (const char* descr : {"<u2", "|V2", "<V2"}) {
    write_typed(descr, "abcd");
    EXPECT_EQ(read_npy(path_, NpyRaw::bf16).descr, "bf16") << descr;
  }
  for (const char* descr : {"|u1", "|V1", "<V1"}) {
    write_typed(descr, "ab");
    EXPECT_EQ(read_npy(path_, NpyRaw::f8e4m3).descr, "f8e4m3") << descr;
  }
  write_typed("<u2", "abcd");
  EXPECT_EQ(read_npy(path_).descr, "<u2");
  write_typed("<f4", "abcdefgh");
  EXPECT_EQ(read_npy(path_, NpyRaw::bf16).descr, "<f4");
  write_typed("|V2", "abcd");
  EXPECT_EQ(error(),
            "has dtype '|V2', bytes without a meaning; '|V2' is read where a bf16 tensor is "
            "wanted, '|V1' where an f8e4m3 tensor is\n  fix: save array.astype('<f4')");
}

TEST_F(NpyTest, RawTypesAreWrittenAsIntegers) {
  write_npy(path_, {"bf16", {2}, bytes_of("abcd")});
  EXPECT_EQ(read_npy(path_).descr, "<u2");
  EXPECT_EQ(read_npy(path_, NpyRaw::bf16).descr, "bf16");
  write_npy(path_, {"f8e4m3", {2}, bytes_of("ab")});
  EXPECT_EQ(read_npy(path_, NpyRaw::f8e4m3).descr, "f8e4m3");
}

TEST_F(NpyTest, Missing) {
  EXPECT_EQ(error(),
            "cannot read: No such file or directory\n"
            "  fix: name a file that exists and that you may read");
}

TEST_F(NpyTest, NotAnNpyFile) {
  const std::string expected =
      "is not a .npy file: it does not start with \\x93NUMPY\n  fix: write it with numpy.save";
  for (const char* bytes : {"", "\x93NUM", "PK\3\4 a .npz is a zip archive"}) {
    write_raw(bytes);
    EXPECT_EQ(error(), expected);
  }
}

TEST_F(NpyTest, UnknownVersion) {
  write("{}", "", 4);
  EXPECT_EQ(error(),
            "has version 4 of the .npy format; Tilewright reads 1 to 3\n  fix: write it with "
            "numpy.save");
}

TEST_F(NpyTest, CutShortAnywhere) {
  const std::string again = "\n  fix: write the file again with numpy.save";
  write("{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }", "abcdefgh");
  const std::string whole = content();
  ASSERT_EQ(whole.size(), 136u);
  write_raw(whole.substr(0, 7));
  EXPECT_EQ(error(), "is cut short: the version ends at byte 8, the file at 7" + again);
  write_raw(whole.substr(0, 9));
  EXPECT_EQ(error(),
            "is cut short: the length of the header ends at byte 10, the file at 9" + again);
  write_raw(whole.substr(0, 40));
  EXPECT_EQ(error(), "is cut short: the header ends at byte 128, the file at 40" + again);
  write_raw(whole.substr(0, 133));
  EXPECT_EQ(error(), "holds 5 bytes of data; shape (2) of '<i4' has 8" + again);
  write_raw(whole + "!");
  EXPECT_EQ(error(), "holds 9 bytes of data; shape (2) of '<i4' has 8" + again);
}

TEST_F(NpyTest, FortranOrder) {
  write("{'descr': '<f4', 'fortran_order': True, 'shape': (1, 1), }", "abcd");
  EXPECT_EQ(error(),
            "is in Fortran (column-major) order; Tilewright reads C (row-major) order\n  fix: save "
            "numpy.ascontiguousarray(array)");
}

TEST_F(NpyTest, BigEndian) {
  write_typed(">f4", "abcdefgh");
  EXPECT_EQ(error(),
            "is big-endian ('>f4'); Tilewright reads little-endian\n  fix: save "
            "array.astype('<f4')");
  write_typed(">i8", std::string(16, 'x'));
  EXPECT_THAT(error(), HasSubstr("fix: save array.astype('<i8')"));
}

TEST_F(NpyTest, UnknownType) {
  const std::string known =
      "; Tilewright reads '<f2', '<f4', '<f8', '<u2', '<u4', '<i4', '<i8', '|i1', '|u1', '|b1'\n  "
      "fix: "
      "save "
      "array.astype('<f4')";
  // "bf16" is a name of ours and not of the file's.
  for (const std::string descr : {"<c8", "|O", "", ">c8", "bf16"}) {
    write_typed(descr, "abcdefgh");
    EXPECT_EQ(error(), "has dtype '" + descr + "'" + known);
  }
}

TEST_F(NpyTest, StructuredType) {
  write("{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (2,), }", "abcdefgh");
  EXPECT_EQ(error(),
            "has a structured dtype; Tilewright reads arrays of numbers\n  fix: save one field: "
            "numpy.save(path, array['field'])");
}

TEST_F(NpyTest, OverflowingSizes) {
  const std::string again = "\n  fix: write the file again with numpy.save";
  write("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", "");
  EXPECT_EQ(error(),
            "has shape (4294967296, 4294967296) of '<f4', which overflows 2^63 bytes" + again);
  // The elements alone fit in 2^63 bytes, but not behind the header.
  write("{'descr': '|u1', 'fortran_order': False, 'shape': (9223372036854775807,), }", "");
  EXPECT_EQ(error(),
            "has shape (9223372036854775807) of '|u1', which overflows 2^63 bytes" + again);
  write("{'descr': '|u1', 'fortran_order': False, 'shape': (9223372036854775808,), }", "");
  EXPECT_THAT(error(), HasSubstr("the header is damaged: byte 51 should be a size below 2^63"));
}

TEST_F(NpyTest, DamagedHeaders) {
  const auto expect = [&](const std::string& dictionary, const std::string& what) {
    write(dictionary, "");
    EXPECT_EQ(error(), what + "\n  fix: write the file again with numpy.save") << dictionary;
  };
  expect("[]", "the header is damaged: byte 0 should be '{'");
  expect("{", "the header is damaged: byte 54 should be a quoted string");
  expect("{'descr: 1}", "the header is damaged: byte 1 should be a string that ends");
  expect("{'descr' '<f4'}", "the header is damaged: byte 9 should be ':'");
  expect("{'descr': '<f4' 'shape': (1,)}", "the header is damaged: byte 16 should be '}'");
  expect("{'descr': <f4}", "the header is damaged: byte 10 should be a quoted string");
  expect("{'fortran_order': 0}", "the header is damaged: byte 18 should be True or False");
  expect("{'shape': (-1,)}", "the header is damaged: byte 11 should be a size");
  expect("{'shape': (1 2)}", "the header is damaged: byte 13 should be ')'");
  expect("{'shape': 3}", "the header is damaged: byte 10 should be '('");
  expect("{'order': True}", "the header has an unknown entry 'order'");
  expect("{}", "the header has no 'descr'");
  expect("{'descr': '<f4'}", "the header has no 'fortran_order'");
  expect("{'descr': '<f4', 'fortran_order': False}", "the header has no 'shape'");
  expect("{'descr': '<f4', 'fortran_order': False, 'shape': (0,)} x",
         "the header is damaged: byte 56 should be nothing more");
}

TEST_F(NpyTest, WritingWhatDoesNotFitItsShapeIsABug) {
  try {
    write_npy(path_, {"<f4", {2}, bytes_of("abcd")});
    FAIL() << "no error was raised";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::internal);
    EXPECT_THAT(error.what(), HasSubstr("shape (2) was given 4 bytes, not 8"));
  }
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST(NpySizeTest, CountsAndOverflows) {
  EXPECT_EQ(npy_element_size("bf16"), 2);
  EXPECT_EQ(npy_element_size("<c8"), 0);
  EXPECT_EQ(npy_data_size("<f4", {}), 4);
  EXPECT_EQ(npy_data_size("<f4", {2, 3}), 24);
  EXPECT_EQ(npy_data_size("<f4", {0, 3}), 0);
  EXPECT_EQ(npy_data_size("<f4", {-1}), -1);
  EXPECT_EQ(npy_data_size("<f8", {int64_t{1} << 60}), -1);
  EXPECT_EQ(npy_data_size("|u1", {int64_t{1} << 62, 1}), int64_t{1} << 62);
}

}  // namespace
}  // namespace tilewright
