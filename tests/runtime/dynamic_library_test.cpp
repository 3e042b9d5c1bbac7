#include "runtime/dynamic_library.h"

#include <sys/stat.h>

#include <fstream>

#include "common/temporary_folder.h"
#include "runtime/runtime_test.h"

namespace tilewright::runtime {
namespace {

TEST(DynamicLibrary, BindsFunctionsAndKnowsItsFile) {
  const DynamicLibrary library =
      DynamicLibrary::open_first({"mathematics", {"libnonexistent.so.1", "libm.so.6"}, "install"});
  EXPECT_THAT(library.path(), testing::AllOf(testing::StartsWith("/"), testing::HasSubstr("libm")));
  double (*cosine)(double) = nullptr;
  ASSERT_TRUE(library.bind(cosine, "cos"));
  EXPECT_EQ(cosine(0.0), 1.0);
  EXPECT_FALSE(library.bind(cosine, "no_such_function"));
  EXPECT_EQ(cosine, nullptr);
}

TEST(DynamicLibrary, AnErrorNamesEveryCandidateAndTheFix) {
  expect_error(
      ErrorKind::unavailable, {"the thing", "liba.so.7", "/nonexistent/b.so", "fix: buy one"}, [] {
        DynamicLibrary::open_first({"the thing", {"liba.so.7", "/nonexistent/b.so"}, "buy one"});
      });
}

TEST(DynamicLibrary, AFileThatIsNoLibraryIsExplained) {
  const test::TemporaryFolder folder;
  const std::string path = (folder.path() / "broken.so").string();
  std::ofstream(path) << "this is text";
  expect_error(ErrorKind::unavailable, {"the thing cannot be loaded", path + ": file too short"},
               [&] {
                 DynamicLibrary::open_first({"the thing", {path}, "buy one"});
               });
}

TEST(DynamicLibrary, APipeIsRefusedRatherThanWaitedFor) {
  const test::TemporaryFolder folder;
  const std::string pipe = folder / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::string why;
  EXPECT_FALSE(DynamicLibrary::try_open(pipe, &why));
  EXPECT_EQ(why, pipe + ": not a regular file");
}

TEST(DynamicLibrary, MovesWithItsHandle) {
  DynamicLibrary first = DynamicLibrary::try_open("libm.so.6");
  DynamicLibrary second = std::move(first);
  EXPECT_TRUE(second);
  EXPECT_NE(second.find("cos"), nullptr);
  DynamicLibrary third;
  EXPECT_FALSE(third);
  EXPECT_EQ(third.find("cos"), nullptr);
  third = std::move(second);
  EXPECT_NE(third.find("cos"), nullptr);
}

}  // namespace
}  // namespace tilewright::runtime
