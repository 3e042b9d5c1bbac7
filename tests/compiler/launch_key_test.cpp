#include "compiler/launch_key.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace tilewright::compiler {
namespace {

struct Launch {
  std::vector<TensorRef> tensors;
  std::vector<double> scalars;
};

void* address(std::uintptr_t number) { return reinterpret_cast<void*>(number); }

// Of a launch that is prepared once the next one like it takes the arguments: what is not in the
// key would be that of the first.
TEST(LaunchKey, TellsLaunchesApartByEveryArgument) {
  const Launch launch{{{address(0x1000), f32, {6, 4}, {4, 1}}, {address(0x2000), f32, {6}, {}}},
                      {0.5, 0}};
  const std::function<void(Launch&)> changes[] = {
      [](Launch&) {},
      [](Launch& other) { other.tensors[0].data = address(0x1010); },
      [](Launch& other) { other.tensors[1].data = address(0x1000); },
      [](Launch& other) { other.tensors[0].dtype = i32; },
      [](Launch& other) {
        other.tensors[0].shape = {4, 6};
      },
      [](Launch& other) { other.tensors[1].shape = {5}; },
      [](Launch& other) {
        other.tensors[0].strides = {8, 1};
      },
      [](Launch& other) { other.tensors[0].strides = {}; },
      [](Launch& other) { std::swap(other.tensors[0], other.tensors[1]); },
      [](Launch& other) { other.scalars[0] = 0.25; },
      [](Launch& other) { other.scalars[1] = -0.0; },
      [](Launch& other) { std::swap(other.scalars[0], other.scalars[1]); },
  };
  std::vector<std::vector<std::int64_t>> keys;
  for (const auto& change : changes) {
    Launch changed = launch;
    change(changed);
    make_key(changed.tensors, changed.scalars, keys.emplace_back());
    for (std::size_t other = 0; other + 1 < keys.size(); ++other) {
      EXPECT_NE(keys.back(), keys[other]) << keys.size() - 1 << " and " << other;
      EXPECT_NE(hash_of(keys.back()), hash_of(keys[other])) << keys.size() - 1 << " and " << other;
    }
  }
  // Whatever the key held before.
  std::vector<std::int64_t> again = keys.back();
  make_key(launch.tensors, launch.scalars, again);
  EXPECT_EQ(again, keys.front());
}

}  // namespace
}  // namespace tilewright::compiler
