#include "support/safetensors.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "common/error_text.h"
#include "common/temporary_folder.h"

namespace tilewright {
namespace {

using test::usage_error_of;
using testing::ElementsAre;

class SafetensorsTest : public testing::Test {
 protected:
  void write(const std::string& header, const std::string& data) {
    std::string length;
    for (size_t i = 0; i < 8; ++i) length += static_cast<char>(header.size() >> 8 * i & 0xFF);
    write_raw(length + header + data);
  }
  // One tensor named w, with eight bytes of data in the file.
  void write_entry(const std::string& entry) { write("{\"w\":" + entry + "}", "abcdefgh"); }
  void write_raw(const std::string& bytes) { std::ofstream(path_, std::ios::binary) << bytes; }

  NpyArray read(const std::string& key) const { return read_safetensors(path_ + ":" + key); }
  // The text behind "error: ", with the path written FILE.
  std::string error(const std::string& ending = ":w") const {
    std::string text = usage_error_of([&] { read_safetensors(path_ + ending); });
    for (auto at = text.find(path_); at != std::string::npos; at = text.find(path_)) {
      text.replace(at, path_.size(), "FILE");
    }
    EXPECT_EQ(text.substr(0, 11), "error: FILE");
    return text.substr(7);
  }

  test::TemporaryFolder folder_;
  std::string path_ = folder_ / "model.safetensors";
};

constexpr const char* kAgain = "\n  fix: write the file again with safetensors' save_file";

TEST_F(SafetensorsTest, ReadsOneTensorOfSeveral) {
  write(R"({"__metadata__":{"format":"pt"},"a":{"dtype":"I32","shape":[1],"data_offsets":[0,4]},)"
        R"("layer.0:w":{"dtype":"BF16","shape":[2,1],"data_offsets":[4,8]}}  )",
        "aaaawwww");
  const NpyArray array = read("layer.0:w");
  EXPECT_EQ(array.descr, "bf16");
  EXPECT_THAT(array.shape, ElementsAre(2, 1));
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(array.data.data()), array.data.size()),
            "wwww");
}

TEST_F(SafetensorsTest, ReadsWhatItWrites) {
  const auto bytes = [](const std::string& text) {
    std::vector<std::byte> all;
    for (const char c : text) all.push_back(std::byte(c));
    return all;
  };
  const NpyArray words{"bf16", {2, 1}, bytes("wwww")}, none{"<f8", {0, 3}, {}},
      one{"<i4", {1}, bytes("aaaa")};
  write_safetensors(path_, {{"a \"quoted\" name", words}, {"none", none}, {"b", one}});
  EXPECT_THAT(safetensors_keys(path_),
              testing::UnorderedElementsAre("a \"quoted\" name", "none", "b"));
  for (const auto& [key, array] :
       {std::pair("a \"quoted\" name", words), std::pair("none", none), std::pair("b", one)}) {
    const NpyArray got = read(key);
    EXPECT_EQ(got.descr, array.descr);
    EXPECT_EQ(got.shape, array.shape);
    EXPECT_EQ(got.data, array.data);
  }
  // Data begins at a multiple of 8 bytes, however long the header is.
  for (const char* key : {"k", "ke", "key"}) {
    write_safetensors(path_, {{key, words}});
    EXPECT_EQ(std::filesystem::file_size(path_) % 8, 4u) << key;
  }
}

TEST_F(SafetensorsTest, ADeepHeaderIsRefused) {
  // With the header itself, and the tensor's entry.
  const auto nested = [&](std::size_t depth) {
    write_entry("{\"dtype\":" + std::string(depth - 2, '[') + std::string(depth - 2, ']') + "}");
    return error().find("nests objects and arrays") != std::string::npos;
  };
  EXPECT_FALSE(nested(16));
  EXPECT_TRUE(nested(17));
  const std::string deep(200'000, '[');
  write_entry("{\"dtype\":" + deep + std::string(deep.size(), ']') + "}");
  EXPECT_EQ(error(), std::string("FILE: the header nests objects and arrays more than 16 "
                                 "deep") +
                         kAgain);
  write_entry("{\"dtype\":\"" + deep + "\"}");
  EXPECT_NE(error().find("has dtype [[["), std::string::npos) << "brackets in a text nest nothing";
  write_entry("{\"dtype\":\"\\\"" + deep + "\"}");
  EXPECT_NE(error().find("has dtype \"[["), std::string::npos)
      << "nor behind a quote that is escaped";
}

TEST_F(SafetensorsTest, EveryType) {
  const std::pair<const char*, const char*> types[] = {
      {"BF16", "bf16"},      {"F16", "<f2"}, {"F32", "<f4"}, {"F64", "<f8"},
      {"F8_E4M3", "f8e4m3"}, {"I32", "<i4"}, {"I64", "<i8"}, {"U16", "<u2"},
      {"BOOL", "|b1"},       {"I8", "|i1"},  {"U8", "|u1"}};
  for (const auto& [name, descr] : types) {
    const int bytes = npy_element_size(descr);
    write("{\"w\":{\"dtype\":\"" + std::string(name) + "\",\"shape\":[],\"data_offsets\":[0," +
              std::to_string(bytes) + "]}}",
          std::string(static_cast<std::size_t>(bytes), 'a'));
    EXPECT_EQ(read("w").descr, descr);
  }
}

// What a hostile header says of other tensors is not kept, and what it says of this one is bounded.
TEST_F(SafetensorsTest, AHostileHeaderTakesNoMemory) {
  std::string many = "{}";
  for (int i = 0; i < 2000; ++i) many += ",{}";
  write("{\"other\":{\"all\":[" + many +
            "],\"data_offsets\":[8,8]},\"w\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]"
            "}}",
        "abcdefgh");
  EXPECT_EQ(read("w").data.size(), 8u);
  write_entry("[" + many + "]");
  EXPECT_EQ(error(), std::string("FILE: the entry of tensor \"w\" is too long for one") + kAgain);
  std::string ones = "1";
  for (int i = 0; i < 99; ++i) ones += ",1";
  write_entry("{\"dtype\":\"U8\",\"shape\":[" + ones + "],\"data_offsets\":[0,1]}");
  EXPECT_EQ(error(),
            std::string("FILE:w: \"shape\" has 100 numbers, and 64 is the limit") + kAgain);
  const std::string entry = "{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]}";
  write("{\"w\":" + entry + ",\"v\":1,\"w\":" + entry + "}", "abcdefgh");
  EXPECT_EQ(error(), std::string("FILE: the header names tensor \"w\" twice") + kAgain);
}

TEST_F(SafetensorsTest, AFolderMayBeNamedLikeAFileWithAKey) {
  const std::string folder = folder_ / "a.safetensors:b";
  std::filesystem::create_directory(folder);
  path_ = folder + "/model.safetensors";
  write_entry("{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]}");
  EXPECT_EQ(read("w").data.size(), 8u);
  EXPECT_EQ(error(":x.safetensors:w"),
            "FILE: there is no tensor \"x.safetensors:w\"\n  fix: the keys are: w");
  EXPECT_EQ(error(""), "FILE: no tensor is named\n  fix: write FILE:KEY; the keys are: w");
}

TEST_F(SafetensorsTest, RecognisesItsPaths) {
  EXPECT_TRUE(is_safetensors("a/model.safetensors:q"));
  EXPECT_TRUE(is_safetensors("model.safetensors"));
  EXPECT_FALSE(is_safetensors("q.npy"));
  EXPECT_FALSE(is_safetensors("model.safetensors.npy"));
}

TEST_F(SafetensorsTest, MissingFile) {
  EXPECT_EQ(error(),
            "FILE: cannot read: No such file or directory\n"
            "  fix: name a file that exists and that you may read");
}

TEST_F(SafetensorsTest, UnknownKeyListsTheKeys) {
  write_entry(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})");
  EXPECT_EQ(error(":v"), "FILE: there is no tensor \"v\"\n  fix: the keys are: w");
  EXPECT_EQ(error(":"), "FILE: there is no tensor \"\"\n  fix: the keys are: w");
  EXPECT_EQ(error(""), "FILE: no tensor is named\n  fix: write FILE:KEY; the keys are: w");
  write(R"({"__metadata__":{}})", "");
  EXPECT_EQ(error(":__metadata__"),
            "FILE: there is no tensor \"__metadata__\"\n  fix: the file holds no tensor");
}

TEST_F(SafetensorsTest, ManyKeysAreCutOff) {
  std::string header, keys;
  for (int i = 10; i < 35; ++i) {
    header += (i > 10 ? ",\"k" : "{\"k") + std::to_string(i) + "\":{}";
    if (i < 30) keys += (i > 10 ? ", k" : "k") + std::to_string(i);
  }
  write(header + "}", "");
  EXPECT_EQ(error(),
            "FILE: there is no tensor \"w\"\n  fix: the keys are: " + keys + " and 5 more");
}

TEST_F(SafetensorsTest, CutShortOrNotOfThisFormat) {
  write_raw("abc");
  EXPECT_EQ(
      error(),
      std::string("FILE: is cut short: 3 bytes, and the length of the header takes 8") + kAgain);
  write_raw(std::string(7, '\0') + "\x40 more");
  EXPECT_EQ(error(), std::string("FILE: is not a safetensors file: its header would have "
                                 "4611686018427387904 bytes, and 100000000 is the limit") +
                         kAgain);
  write_raw(std::string("\x10\0\0\0\0\0\0\0{}", 10));
  EXPECT_EQ(error(),
            std::string("FILE: is cut short: the header ends at byte 24, the file at 10") + kAgain);
  for (const char* header : {"{\"w\":", "[]", ""}) {
    write(header, "");
    EXPECT_EQ(error(), std::string("FILE: the header is not a JSON object") + kAgain);
  }
}

TEST_F(SafetensorsTest, DamagedEntries) {
  const auto expect = [&](const std::string& entry, const std::string& what) {
    write_entry(entry);
    EXPECT_EQ(error(), "FILE:w: " + what + kAgain) << entry;
  };
  expect("3", "the header's entry is not a JSON object");
  expect(R"({"shape":[2],"data_offsets":[0,8]})", "the header gives no \"dtype\"");
  expect(R"({"dtype":"F32","data_offsets":[0,8]})", "the header gives no array \"shape\"");
  expect(R"({"dtype":"F32","shape":[2]})", "the header gives no array \"data_offsets\"");
  expect(R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})",
         "shape holds -2, which is not a size");
  expect(R"({"dtype":"F32","shape":[2.5],"data_offsets":[0,8]})",
         "shape holds 2.5, which is not a size");
  expect(R"({"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,8]})",
         "shape holds 18446744073709551615, which is not a size");
  expect(R"({"dtype":"F32","shape":[2],"data_offsets":[0]})",
         "\"data_offsets\" [0] are not a begin and an end");
  expect(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8,8]})",
         "\"data_offsets\" [0, 8, 8] are not a begin and an end");
  expect(R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})",
         "\"data_offsets\" [8, 0] are not a begin and an end");
  expect(R"({"dtype":"F32","shape":[2],"data_offsets":[4,12]})",
         "is cut short: the tensor ends at byte 12 of the data, the file at 8");
  expect(R"({"dtype":"U8","shape":[9],"data_offsets":[0,9]})",
         "is cut short: the tensor ends at byte 9 of the data, the file at 8");
  expect(R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})",
         "holds 8 bytes; shape [3] of F32 has 12");
  expect(R"({"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]})",
         "has shape [4294967296, 4294967296], which overflows 2^63 bytes");
}

// As the format's own reader refuses them.
TEST_F(SafetensorsTest, EachByteOfTheDataIsOneTensors) {
  const auto entry = [](int begin, int end) {
    return fmt::format(R"({{"dtype":"U8","shape":[{}],"data_offsets":[{},{}]}})", end - begin,
                       begin, end);
  };
  const auto expect = [&](const std::string& header, const std::string& what) {
    write("{" + header + "}", "abcdefgh");
    EXPECT_EQ(error(), "FILE: " + what + kAgain) << header;
  };
  const std::string whole = "\"w\":" + entry(0, 8);
  write("{\"none\":" + entry(4, 4) + ",\"b\":" + entry(4, 8) + ",\"w\":" + entry(0, 4) + "}",
        "abcdefgh");
  EXPECT_EQ(read("w").data.size(), 4u);
  EXPECT_EQ(read("none").data.size(), 0u);
  expect("\"w\":" + entry(0, 5) + ",\"v\":" + entry(4, 8),
         R"(tensors "w" and "v" both have byte 4 of the data)");
  expect(whole + ",\"v\":" + entry(0, 8), R"(tensors "w" and "v" both have byte 0 of the data)");
  expect("\"w\":" + entry(0, 3) + ",\"v\":" + entry(4, 8),
         "bytes 3 to 4 of the data are no tensor's");
  expect("\"w\":" + entry(2, 8), "bytes 0 to 2 of the data are no tensor's");
  expect("\"w\":" + entry(0, 7), "the last tensor ends at byte 7 of the data, the file at 8");
  for (const char* bad : {"3", "{}", R"({"data_offsets":[8]})", R"({"data_offsets":[8,8,8]})",
                          R"({"data_offsets":[9,8]})", R"({"data_offsets":[8,-8]})",
                          R"({"data_offsets":[8.0,8.0]})", R"({"data_offsets":["8",8]})"}) {
    expect(whole + ",\"v\":" + bad, R"(tensor "v" has no "data_offsets" of a begin and an end)");
  }
  for (const char* bad : {"3", "[]", "\"text\"", R"({"a":3})", R"({"a":{}})", R"({"a":["b"]})"}) {
    expect(std::string("\"__metadata__\":") + bad + "," + whole,
           R"("__metadata__" is no object of texts)");
  }
}

TEST_F(SafetensorsTest, UnknownType) {
  write_entry(R"({"dtype":"C64","shape":[1],"data_offsets":[0,8]})");
  EXPECT_EQ(error(),
            "FILE:w: has dtype C64; Tilewright reads BF16, F16, F32, F64, F8_E4M3, I8, U8, I32, "
            "I64, U16, U32, "
            "BOOL\n  fix: save the tensor as one of these, such as tensor.to(torch.float32)");
}

}  // namespace
}  // namespace tilewright
