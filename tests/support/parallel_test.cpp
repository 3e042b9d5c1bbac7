#include "support/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

namespace tilewright {
namespace {

TEST(ParallelTest, EachIsCalledOnce) {
  for (const unsigned threads : {1u, 3u, 100u}) {
    std::vector<std::atomic<int>> calls(57);
    std::atomic<bool> known = true;
    in_parallel(threads, calls.size(), [&](std::size_t i, unsigned thread) {
      ++calls[i];
      if (thread >= threads) known = false;
    });
    for (const std::atomic<int>& count : calls) EXPECT_EQ(count, 1);
    EXPECT_TRUE(known);
  }
  in_parallel(4, 0, [](std::size_t, unsigned) { FAIL(); });
}

TEST(ParallelTest, WhatTheFirstThrowsIsThrownAgainAndNoOtherIsBegun) {
  for (const unsigned threads : {1u, 4u}) {
    std::atomic<int> calls = 0;
    std::string thrown;
    try {
      in_parallel(threads, 1000, [&](std::size_t i, unsigned) {
        ++calls;
        throw std::runtime_error(std::to_string(i));
      });
    } catch (const std::runtime_error& error) {
      thrown = error.what();
    }
    EXPECT_EQ(thrown, "0");
    EXPECT_LE(calls, static_cast<int>(threads));
  }
}

TEST(ParallelTest, ThreadsThatNobodyAskedForAreAsManyAsCores) {
  EXPECT_GE(thread_count(0), 1u);
  EXPECT_EQ(thread_count(3), 3u);
}

}  // namespace
}  // namespace tilewright
