#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "ptx/launch_test_kernel.h"

// What the execution says of instructions that order others: a printed kernel is held to it.
namespace tilewright::ptx {
namespace {

using testing::ElementsAre;

// All events of one thread, by kind and without the address of a word.
std::vector<std::string> events_of(const std::string& body) {
  const test::Ran ran = test::run(test::kernel_text("", body), 1);
  EXPECT_EQ(ran.fault(), "") << body;
  std::vector<std::string> texts;
  for (Event event : ran.report.events.at(0)) {
    const bool is_word = event.kind == EventKind::word_read ||
                         event.kind == EventKind::word_write || event.kind == EventKind::word_add;
    if (is_word) event.values.erase(event.values.begin() + 2);
    const std::string text = event.text();
    texts.push_back(text.substr(0, text.find(" by")));
  }
  return texts;
}

constexpr const char* kScopes[] = {"cta", "cluster", "gpu", "sys"};
constexpr int kRelaxed = 1, kAcquire = 2, kRelease = 3, kBoth = 4, kGpu = 2, kSystem = 3;

TEST(PtxEvents, NameSemanticsAndScope) {
  struct Case {
    const char* text;  // with a place for the scope
    const char* kind;
    int semantics;
    const char* value;
  };
  const Case cases[] = {
      {"ld.relaxed.{}.global.u32 %r1, [%rd0];", "word_read", kRelaxed, ""},
      {"ld.acquire.{}.global.u32 %r1, [%rd0];", "word_read", kAcquire, ""},
      {"st.relaxed.{}.global.u32 [%rd0], 7;", "word_write", kRelaxed, ", 7"},
      {"st.release.{}.global.u32 [%rd0], 7;", "word_write", kRelease, ", 7"},
      {"atom.{}.global.add.u32 %r1, [%rd0], 7;", "word_add", kRelaxed, ", 7"},
      {"atom.relaxed.{}.global.add.u32 %r1, [%rd0], 7;", "word_add", kRelaxed, ", 7"},
      {"atom.acquire.{}.global.add.u32 %r1, [%rd0], 7;", "word_add", kAcquire, ", 7"},
      {"atom.release.{}.global.add.u32 %r1, [%rd0], 7;", "word_add", kRelease, ", 7"},
      {"atom.acq_rel.{}.global.add.u32 %r1, [%rd0], 7;", "word_add", kBoth, ", 7"},
      {"red.relaxed.{}.global.add.u32 [%rd0], 7;", "word_add", kRelaxed, ", 7"},
      {"red.release.{}.global.add.u32 [%rd0], 7;", "word_add", kRelease, ", 7"},
  };
  for (const Case& each : cases) {
    for (int scope = 0; scope < 4; ++scope) {
      const std::string text = fmt::format(fmt::runtime(each.text), kScopes[scope]);
      SCOPED_TRACE(text);
      EXPECT_THAT(events_of(text), ElementsAre(fmt::format("{}({}, {}{})", each.kind,
                                                           each.semantics, scope, each.value)));
    }
  }
}

// What PTX takes where the text says nothing of it.
TEST(PtxEvents, SayWhatIsLeftOut) {
  EXPECT_THAT(events_of("ld.global.u32 %r1, [%rd0]; st.global.u32 [%rd0], 7;"), ElementsAre());
  EXPECT_THAT(events_of("ld.volatile.global.u32 %r1, [%rd0];"),
              ElementsAre(fmt::format("word_read({}, {})", kRelaxed, kSystem)));
  EXPECT_THAT(events_of("st.volatile.global.u32 [%rd0], 7;"),
              ElementsAre(fmt::format("word_write({}, {}, 7)", kRelaxed, kSystem)));
  EXPECT_THAT(events_of("atom.global.add.u32 %r1, [%rd0], 7;"),
              ElementsAre(fmt::format("word_add({}, {}, 7)", kRelaxed, kGpu)));
  // Sums of numbers order nothing.
  EXPECT_THAT(events_of("mov.f32 %f0, 0f3f800000; red.relaxed.gpu.global.add.f32 [%rd0], %f0;"),
              ElementsAre());
}

TEST(PtxEvents, NameTheScopeOfAFence) {
  for (int scope = 0; scope < 4; ++scope) {
    for (const char* kind : {"acq_rel", "sc"}) {
      EXPECT_THAT(events_of(fmt::format("fence.{}.{};", kind, kScopes[scope])),
                  ElementsAre(fmt::format("fence({})", scope)));
    }
  }
  EXPECT_THAT(events_of("membar.cta; membar.gl; membar.sys;"),
              ElementsAre("fence(0)", "fence(2)", "fence(3)"));
  EXPECT_THAT(events_of("fence.proxy.async.shared::cta;"), ElementsAre("fence_proxy_async()"));
  EXPECT_THAT(events_of("fence.proxy.async.global;"), ElementsAre("fence_proxy_async_global()"));
  EXPECT_THAT(events_of("fence.proxy.async;"),
              ElementsAre("fence_proxy_async()", "fence_proxy_async_global()"));
}

}  // namespace
}  // namespace tilewright::ptx
