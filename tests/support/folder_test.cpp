#include "support/folder.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "common/error_text.h"
#include "common/temporary_folder.h"

namespace tilewright {
namespace {

TEST(MakeFolder, MakesThoseAboveAndTakesOneThatIsThere) {
  const test::TemporaryFolder scratch;
  const std::string folder = scratch / "a/b/c";
  make_folder(folder);
  make_folder(folder);
  EXPECT_TRUE(std::filesystem::is_directory(folder));
}

TEST(MakeFolder, NamesWhatCannotBeOne) {
  for (const char* name : {"/dev/null", "/dev/null/x", "/proc/x"}) {
    const std::string text = test::usage_error_of([&] { make_folder(name); });
    EXPECT_NE(text.find(std::string(name) + ": cannot be made a folder"), std::string::npos)
        << text;
  }
}

}  // namespace
}  // namespace tilewright
