#include "library/tensor_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>

#include "common/error_text.h"
#include "common/temporary_folder.h"
#include "support/npy.h"

namespace tilewright::library {
namespace {

using test::TemporaryFolder;
using test::usage_error_of;
using testing::AllOf;
using testing::HasSubstr;

TEST(TensorFileTest, EveryDtypeSurvives) {
  const TemporaryFolder folder;
  for (const DType dtype : {f32, f16, bf16, f8e4m3, i32, i64, i8, u8, u32}) {
    SCOPED_TRACE(name_of(dtype));
    const HostTensor tensor = HostTensor::from_values(dtype, {2, 3}, {0, 1, -2, 3.5, 100, -0.25});
    write_tensor(folder / "x.npy", tensor);
    EXPECT_EQ(read_tensor(folder / "x.npy", "X", dtype), tensor);
  }
}

TEST(TensorFileTest, Bf16IsWrittenAsF32AndReadFromItByRounding) {
  const TemporaryFolder folder;
  write_tensor(folder / "x.npy", HostTensor::from_values(bf16, {1}, {1.5}));
  EXPECT_EQ(read_npy(folder / "x.npy").descr, "<f4");
  write_tensor(folder / "y.npy", HostTensor::from_values(f32, {1}, {1.001}));
  EXPECT_EQ(read_tensor(folder / "y.npy", "Y", bf16).flat(0), 1.0);
}

TEST(TensorFileTest, RawWordsAreBf16WhereThatIsWanted) {
  const TemporaryFolder folder;
  write_npy(folder / "x.npy", {"<u2", {1}, {std::byte{0x80}, std::byte{0x3f}}});
  EXPECT_EQ(read_tensor(folder / "x.npy", "X", bf16).flat(0), 1.0);
}

TEST(TensorFileTest, AnotherDtypeIsAnError) {
  const TemporaryFolder folder;
  write_tensor(folder / "x.npy", HostTensor::zeros(f32, {4}));
  EXPECT_THAT(
      usage_error_of([&] { read_tensor(folder / "x.npy", "Q", f16); }),
      AllOf(HasSubstr("x.npy: holds <f4, and tensor Q is f16"), HasSubstr("array.astype('<f2')")));
  write_tensor(folder / "i.npy", HostTensor::zeros(i32, {4}));
  EXPECT_THAT(usage_error_of([&] { read_tensor(folder / "i.npy", "Q", bf16); }),
              AllOf(HasSubstr("holds <i4, and tensor Q is bf16"), HasSubstr("'<f4'")));
  EXPECT_THAT(usage_error_of([&] { read_tensor(folder / "none.npy", "Q", bf16); }),
              HasSubstr("none.npy: cannot read"));
}

TEST(TensorFileTest, WhatCannotBeWrittenIsFoundBefore) {
  const TemporaryFolder folder;
  EXPECT_NO_THROW(check_writable(folder / "new.npy", "O"));
  EXPECT_FALSE(std::filesystem::exists(folder / "new.npy"));
  EXPECT_THAT(usage_error_of([&] { check_writable(folder.path().string(), "O"); }),
              HasSubstr("output O cannot be written there: it is a folder"));
  EXPECT_THAT(usage_error_of([&] { check_writable(folder / "none/y.npy", "O"); }),
              HasSubstr("there is no folder"));
  EXPECT_NO_THROW(check_writable("/dev/null", "O"));
  if (geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  write_tensor(folder / "old.npy", HostTensor::zeros(f32, {1}));
  chmod((folder / "old.npy").c_str(), 0444);
  EXPECT_THAT(usage_error_of([&] { check_writable(folder / "old.npy", "O"); }),
              HasSubstr("Permission denied"));
}

}  // namespace
}  // namespace tilewright::library
