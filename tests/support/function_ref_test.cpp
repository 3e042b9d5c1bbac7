#include "tilewright/function_ref.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "tilewright/error.h"

namespace tilewright {
namespace {

int twice(int x) { return 2 * x; }

int call(FunctionRef<int(int)> f, int x) { return f ? f(x) : -1; }

TEST(FunctionRefTest, CallsWhatItRefersTo) {
  int offset = 1;
  const auto add = [&](int x) { return x + offset; };
  offset = 10;
  EXPECT_EQ(call(add, 1), 11);
  EXPECT_EQ(call([](int x) { return x - 1; }, 1), 0);
  EXPECT_EQ(call(std::function<int(int)>(add), 2), 12);
}

TEST(FunctionRefTest, TakesAFunctionAndAPointerToOne) {
  EXPECT_EQ(call(twice, 4), 8);
  EXPECT_EQ(call(&twice, 5), 10);
}

TEST(FunctionRefTest, CopiesNothing) {
  int calls = 0;
  auto count = [calls](int x) mutable { return calls += x; };
  EXPECT_EQ(call(count, 2), 2);
  EXPECT_EQ(call(count, 3), 5);
  const FunctionRef<int(int)> ref = count, copy = ref;
  EXPECT_EQ(copy(1), 6);
  EXPECT_EQ(ref(1), 7);
}

TEST(FunctionRefTest, MovesArgumentsThrough) {
  const auto take = [](std::unique_ptr<int> p) { return *p; };
  const FunctionRef<int(std::unique_ptr<int>)> ref = take;
  EXPECT_EQ(ref(std::make_unique<int>(3)), 3);
  const auto add_one = [](int& x) { ++x; };
  const FunctionRef<void(int&)> change = add_one;
  int x = 1;
  change(x);
  EXPECT_EQ(x, 2);
}

TEST(FunctionRefTest, ConvertsTheResultAndDropsIt) {
  const auto text = [] { return "text"; };
  EXPECT_EQ(FunctionRef<std::string()>(text)(), "text");
  int calls = 0;
  const auto count = [&] { return ++calls; };
  const FunctionRef<void()> drop = count;
  drop();
  EXPECT_EQ(calls, 1);
}

TEST(FunctionRefTest, IsNoneWhenEmpty) {
  EXPECT_EQ(call({}, 1), -1);
  EXPECT_EQ(call(nullptr, 1), -1);
  EXPECT_EQ(call(std::function<int(int)>(), 1), -1);
  EXPECT_EQ(call(FunctionRef<int(int)>(), 1), -1);
}

TEST(FunctionRefTest, ToCallNoneIsAnError) {
  const std::function<int(int)> empty;
  int (*const null)(int) = nullptr;
  EXPECT_EQ(call(null, 1), -1);
  for (const FunctionRef<int(int)>& none :
       {FunctionRef<int(int)>(empty), FunctionRef<int(int)>(null), FunctionRef<int(int)>()}) {
    EXPECT_THROW(none(1), Error);
  }
}

template <typename T>
constexpr bool kTaken = std::is_convertible_v<T, FunctionRef<int(int)>>;
static_assert(kTaken<int (*)(int)> && kTaken<const std::function<int(int)>&>);
static_assert(!kTaken<int> && !kTaken<std::string (*)(int)> && !kTaken<int (*)()>);

}  // namespace
}  // namespace tilewright
