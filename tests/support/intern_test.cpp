#include "support/intern.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace tilewright {
namespace {

TEST(InternTest, EqualTextsShareOnePointer) {
  const char* first = intern("attention.cpp");
  EXPECT_STREQ(first, "attention.cpp");
  EXPECT_EQ(intern(std::string("attention") + ".cpp"), first);
  EXPECT_NE(intern("gemm.cpp"), first);
}

TEST(InternTest, PointersSurviveGrowthAndThreads) {
  const char* first = intern("kept");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 2000; ++i) intern("name" + std::to_string(i));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_STREQ(first, "kept");
  EXPECT_EQ(intern("kept"), first);
  EXPECT_STREQ(intern("name1999"), "name1999");
}

}  // namespace
}  // namespace tilewright
