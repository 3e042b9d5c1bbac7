#include "support/diagnostic.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "common/temporary_folder.h"
#include "support/intern.h"

namespace tilewright {
namespace {

namespace fs = std::filesystem;

// Works in a folder of its own, as a user would beside the source of a kernel.
class DiagnosticTest : public testing::Test {
 protected:
  void SetUp() override { fs::current_path(folder_); }
  void TearDown() override { fs::current_path(before_); }

  // A source whose line 3 is `line`.
  static void write(const fs::path& path, const std::string& line) {
    if (path.has_parent_path()) fs::create_directories(path.parent_path());
    std::ofstream(path) << "first\nsecond\n" << line << "\nfourth\n";
  }

  const fs::path before_ = fs::current_path();
  const test::TemporaryFolder temporary_;
  const fs::path folder_ = temporary_.path();
};

TEST_F(DiagnosticTest, ShowsPlaceLineCaretNotesAndFix) {
  write("attention.cpp", "  Tile s = dot(q, k.T());");
  const std::string text = Diagnostic({"attention.cpp", 3}, "dot: inner dimensions differ")
                               .token("dot")
                               .note({"attention.cpp", 1}, "q is loaded")
                               .note({}, "both are bf16")
                               .fix("load k with 64 columns")
                               .render();
  EXPECT_EQ(text,
            "attention.cpp:3: error: dot: inner dimensions differ\n"
            "    Tile s = dot(q, k.T());\n"
            "             ^\n"
            "  q is loaded at attention.cpp:1\n"
            "  both are bf16\n"
            "  fix: load k with 64 columns");
}

// Of a file's name that stands in a file, anybody may have written it.
TEST_F(DiagnosticTest, AClaimedPlaceShowsSourcesAlone) {
  const auto shown = [](const std::string& file) {
    return Diagnostic({intern_claimed(file), 3}, "m").render();
  };
  write("kernel.cpp", "Tile s = dot(q, k);");
  EXPECT_EQ(shown("kernel.cpp"), "kernel.cpp:3: error: m\n    Tile s = dot(q, k);\n    ^");
  EXPECT_EQ(shown((folder_ / "kernel.cpp").string()), shown("kernel.cpp"));
  for (const char* secret : {"shadow", "key.pem", ".netrc", "id_rsa", "notes.txt"}) {
    write(secret, "secret");
    EXPECT_EQ(shown(secret), std::string(secret) + ":3: error: m");
    // A place of the program's own is shown, whatever its name.
    EXPECT_NE(Diagnostic({intern(secret), 3}, "m").render().find("    secret"), std::string::npos);
  }
  fs::create_symlink("shadow", "linked.cpp");
  EXPECT_EQ(shown("linked.cpp"), "linked.cpp:3: error: m");
  fs::create_directory("folder.cpp");
  EXPECT_EQ(shown("folder.cpp"), "folder.cpp:3: error: m");
}

TEST_F(DiagnosticTest, AClaimedPlaceOfSomebodyElseIsShownBelowTheCurrentFolderAlone) {
  if (geteuid() != 0) GTEST_SKIP() << "only root gives a file away";
  write("theirs/kernel.py", "secret()");
  const fs::path file = folder_ / "theirs" / "kernel.py";
  ASSERT_EQ(chown(file.c_str(), 12345, 12345), 0);
  const auto text = [&] { return Diagnostic({intern_claimed(file.string()), 3}, "m").render(); };
  EXPECT_NE(text().find("secret()"), std::string::npos);
  fs::create_directory("elsewhere");
  fs::current_path(folder_ / "elsewhere");
  EXPECT_EQ(text().find("secret()"), std::string::npos);
}

TEST_F(DiagnosticTest, ControlCharactersDoNotReachTheTerminal) {
  write("a.cpp", "x = \x1b]0;title\x07 dot(y);");
  const std::string text = Diagnostic({intern("a.cpp"), 3}, "there is no \x1b[2J")
                               .token("dot")
                               .note({}, "\xc2\x9b")
                               .fix("name \r it")
                               .render();
  EXPECT_EQ(text,
            "a.cpp:3: error: there is no \\x1b[2J\n"
            "    x = \\x1b]0;title\\x07 dot(y);\n"
            "                         ^\n"
            "  \\xc2\\x9b\n"
            "  fix: name \\x0d it");
  EXPECT_EQ(format_location({"a\x1b.cpp", 3}), "a\\x1b.cpp:3");
}

TEST_F(DiagnosticTest, CaretPrefersTheTokenAsAWord) {
  write("a.cpp", "dotted = my_dot(dot(x));");
  EXPECT_EQ(Diagnostic({"a.cpp", 3}, "m").token("dot").render(),
            "a.cpp:3: error: m\n    dotted = my_dot(dot(x));\n                    ^");
}

TEST_F(DiagnosticTest, CaretFindsAnOperatorNextToWords) {
  write("a.cpp", "\tx = a+b;");
  EXPECT_EQ(Diagnostic({"a.cpp", 3}, "m").token("+").render(),
            "a.cpp:3: error: m\n    x = a+b;\n         ^");
}

TEST_F(DiagnosticTest, CaretFindsATokenInsideAWordWhenItStandsNowhereElse) {
  write("a.cpp", "int xdotx;");
  EXPECT_EQ(Diagnostic({"a.cpp", 3}, "m").token("dot").render(),
            "a.cpp:3: error: m\n    int xdotx;\n         ^");
}

TEST_F(DiagnosticTest, CaretStandsAtTheStartWhenTheTokenIsAbsent) {
  write("a.cpp", "   y = x;");
  EXPECT_EQ(Diagnostic({"a.cpp", 3}, "m").token("dot").render(),
            "a.cpp:3: error: m\n    y = x;\n    ^");
  EXPECT_EQ(Diagnostic({"a.cpp", 3}, "m").render(), "a.cpp:3: error: m\n    y = x;\n    ^");
}

TEST_F(DiagnosticTest, OfALongLineWhatLiesAroundTheCaret) {
  const std::string filler(400000, 'x');
  write("long.cpp", "first" + filler + " here " + filler + "last");
  const std::string text = Diagnostic({"long.cpp", 3}, "m").token("here").render();
  EXPECT_EQ(text, "long.cpp:3: error: m\n    ..." + filler.substr(0, 159) + " here " +
                      filler.substr(0, 75) + "...\n    " + std::string(163, ' ') + '^');
  // Whole characters: of two bytes each, the cut would fall into one.
  std::string umlauts;
  for (int i = 0; i < 300; ++i) umlauts += "ä";
  write("long.cpp", "y" + umlauts + "here" + umlauts);
  const std::string wide = Diagnostic({"long.cpp", 3}, "m").token("here").render();
  EXPECT_EQ(wide, "long.cpp:3: error: m\n    ..." + umlauts.substr(0, 160) + "here" +
                      umlauts.substr(0, 76) + "...\n    " + std::string(83, ' ') + '^');
  write("long.cpp", "here" + std::string(236, 'x'));
  EXPECT_EQ(Diagnostic({"long.cpp", 3}, "m").render(),
            "long.cpp:3: error: m\n    here" + std::string(236, 'x') + "\n    ^");
}

TEST_F(DiagnosticTest, CaretCountsCharactersAndKeepsTabs) {
  write("a.cpp", "\xC3\xA9\xE2\x82\xAC\tdot(x);\r");
  EXPECT_EQ(Diagnostic({"a.cpp", 3}, "m").token("dot").render(),
            "a.cpp:3: error: m\n    \xC3\xA9\xE2\x82\xAC\tdot(x);\n      \t^");
}

TEST_F(DiagnosticTest, MissingFileOrLineStillGivesTheMessage) {
  EXPECT_EQ(Diagnostic({"gone.cpp", 7}, "m").token("x").render(), "gone.cpp:7: error: m");
  write("a.cpp", "x");
  EXPECT_EQ(Diagnostic({"a.cpp", 99}, "m").render(), "a.cpp:99: error: m");
  fs::create_directory("folder");
  EXPECT_EQ(Diagnostic({"folder", 1}, "m").render(), "folder:1: error: m");
  write("blank.cpp", "   ");
  EXPECT_EQ(Diagnostic({"blank.cpp", 3}, "m").render(), "blank.cpp:3: error: m");
}

TEST_F(DiagnosticTest, NoLocation) {
  EXPECT_EQ(Diagnostic({}, "unknown option").fix("see --help").render(),
            "error: unknown option\n  fix: see --help");
  write("a.cpp", "x");
  EXPECT_EQ(Diagnostic({"a.cpp", 0}, "m").render(), "a.cpp: error: m");
}

TEST_F(DiagnosticTest, PathIsShortenedOnlyBelowTheCurrentFolder) {
  write(folder_ / "kernels" / "a.cpp", "x");
  const char* below = intern((folder_ / "kernels" / "a.cpp").string());
  EXPECT_EQ(format_location({below, 3}), "kernels/a.cpp:3");
  EXPECT_EQ(format_location({"/elsewhere/a.cpp", 3}), "/elsewhere/a.cpp:3");
  const char* sibling = intern(folder_.string() + "_sibling/a.cpp");
  EXPECT_EQ(format_location({sibling, 3}), std::string(sibling) + ":3");
  EXPECT_EQ(format_location({"kernels/a.cpp", 3}), "kernels/a.cpp:3");
}

TEST_F(DiagnosticTest, VanishedCurrentFolderKeepsThePath) {
  fs::create_directory("gone");
  fs::current_path("gone");
  fs::remove(folder_ / "gone");
  const char* file = intern((folder_ / "a.cpp").string());
  EXPECT_EQ(Diagnostic({file, 3}, "m").render(), std::string(file) + ":3: error: m");
}

TEST_F(DiagnosticTest, RaiseCarriesKindPlaceAndBareMessage) {
  write("a.cpp", "x = y;");
  try {
    Diagnostic({"a.cpp", 3}, "ring k_ring: full", ErrorKind::result).fix("wait").raise();
    FAIL() << "raise() returned";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::result);
    EXPECT_STREQ(error.location().file, "a.cpp");
    EXPECT_EQ(error.location().line, 3);
    EXPECT_EQ(error.message(), "ring k_ring: full");
    EXPECT_STREQ(error.what(), "a.cpp:3: error: ring k_ring: full\n    x = y;\n    ^\n  fix: wait");
  }
}

}  // namespace
}  // namespace tilewright
