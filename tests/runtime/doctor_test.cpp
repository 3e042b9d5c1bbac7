#include "runtime/doctor.h"

#include <sys/stat.h>

#include <fstream>

#include "common/temporary_folder.h"
#include "runtime/runtime_test.h"

namespace tilewright::runtime {
namespace {

const MissingPart* part_about(const DoctorReport& report, const std::string& text) {
  for (const MissingPart& part : report.missing) {
    if (part.what.find(text) != std::string::npos) return &part;
  }
  return nullptr;
}

// A process of its own: another test may have loaded NVRTC or the fake driver into this one.
int examine_with_nothing() {
  setenv("TILEWRIGHT_CUDA_DRIVER", "/nonexistent/libcuda.so.1", 1);
  setenv("TILEWRIGHT_NVRTC", "/nonexistent/libnvrtc.so", 1);
  setenv("PATH", "/nonexistent", 1);
  const DoctorReport report = examine_machine();
  const MissingPart* compiler = part_about(report, "C++20 compiler");
  const MissingPart* nvrtc = part_about(report, "/nonexistent/libnvrtc.so");
  const MissingPart* driver = part_about(report, "/nonexistent/libcuda.so.1");
  const bool named = compiler != nullptr && nvrtc != nullptr && driver != nullptr;
  const bool explained = named && compiler->how_to_get_it.find("apt") != std::string::npos &&
                         nvrtc->how_to_get_it.find("pip install") != std::string::npos &&
                         driver->how_to_get_it.find("TILEWRIGHT_CUDA_DRIVER") != std::string::npos;
  const bool empty = report.compilers.empty() && report.gpus.empty() && !report.nvrtc &&
                     !report.driver_cuda_version;
  return explained && empty && !report.cpu.name.empty() && report.cpu.threads > 0 ? 0 : 1;
}

TEST(DoctorDeathTest, AMachineWithNothingIsToldHowToGetEach) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(_exit(examine_with_nothing()), testing::ExitedWithCode(0), "");
}

class DoctorCompilers : public testing::Test {
 protected:
  void add(const std::string& name, const std::string& version_line) {
    const std::string path = (folder_.path() / name).string();
    std::ofstream(path) << "#!/bin/sh\necho '" << version_line << "'\necho more\n";
    chmod(path.c_str(), 0755);
  }
  test::TemporaryFolder folder_;
  ScopedVariable path_{"PATH", folder_.path().string()};
};

TEST_F(DoctorCompilers, ReadsTheirVersions) {
  add("g++", "g++ (Debian 12.2.0-14+deb12u1) 12.2.0");
  add("clang++", "Debian clang version 14.0.6");
  const DoctorReport report = examine_machine();
  ASSERT_EQ(report.compilers.size(), 2U);
  EXPECT_EQ(report.compilers[0].name, "g++");
  EXPECT_EQ(report.compilers[0].version, "12.2.0");
  EXPECT_EQ(report.compilers[0].path, (folder_.path() / "g++").string());
  EXPECT_EQ(report.compilers[1].version, "14.0.6");
  EXPECT_EQ(part_about(report, "compiler (g++"), nullptr);
}

TEST_F(DoctorCompilers, AnOldOneIsNotEnough) {
  add("g++", "g++ (Ubuntu 9.4.0-1) 9.4.0");
  const MissingPart* part = nullptr;
  const DoctorReport report = examine_machine();
  part = part_about(report, "C++20 compiler");
  ASSERT_NE(part, nullptr);
  EXPECT_THAT(part->what, testing::HasSubstr("is g++ 9.4.0"));
}

}  // namespace
}  // namespace tilewright::runtime
