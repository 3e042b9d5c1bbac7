#include "check/addition_orders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace tilewright::checks {
namespace {

using simulator::MachineOptions;
using simulator::MachineReport;

// Two warps stand before each of three additions. What the first one releases is waited for where
// it takes all of them, and so it is of the second one.
class TwoTakers {
 public:
  MachineReport run(const MachineOptions& machine) {
    seeds.push_back(machine.seed);
    MachineReport report;
    report.operations = 100;
    report.stood = {2, 2, 2};
    report.arrivals.counted = {{"kernel", 0}, {"kernel", 1}};
    std::uint64_t second = 0;  // how many it takes
    for (int i = 0; i < 3; ++i) second += (machine.seed >> (i * simulator::kBitsOfHanded) & 15) > 0;
    if (second == 0) report.arrivals.awaited = {{"kernel", 0}};
    if (second == 3) report.arrivals.awaited = {{"kernel", 1}};
    if (second == faulty) report.faults.push_back({"race", {}, {}, "race", {}});
    return report;
  }
  AdditionOrders orders(std::int64_t operations) {
    return each_order({}, operations,
                      [this](const MachineOptions& machine) { return run(machine); });
  }
  std::vector<std::uint64_t> seeds;
  std::uint64_t faulty = UINT64_MAX;
};

TEST(AdditionOrders, AreEightOfThreeChoices) {
  TwoTakers takers;
  const AdditionOrders orders = takers.orders(10'000);
  EXPECT_TRUE(orders.all);
  EXPECT_EQ(orders.phases.size(), 8u);
  EXPECT_EQ(orders.operations, 800);
  EXPECT_TRUE(orders.arrivals.all_awaited());
  EXPECT_THAT(takers.seeds, testing::UnorderedElementsAre(0x000, 0x100, 0x010, 0x110, 0x001, 0x101,
                                                          0x011, 0x111));
}

TEST(AdditionOrders, OfMoreThanThereIsTimeForOneWarpTakesAll) {
  TwoTakers takers;
  const AdditionOrders orders = takers.orders(200);
  EXPECT_FALSE(orders.all);
  EXPECT_EQ(takers.seeds.size(), 3u);
  EXPECT_EQ(takers.seeds.back(), 0x1111'1111'1111'1111u);
  EXPECT_TRUE(orders.arrivals.all_awaited());
  // A fault that shows there alone.
  takers.faulty = 3;
  const AdditionOrders found = takers.orders(200);
  EXPECT_EQ(found.fault.kind, "race");
  EXPECT_EQ(found.seed, 0x1111'1111'1111'1111u);
}

TEST(AdditionOrders, EndWithTheFirstFault) {
  TwoTakers takers;
  takers.faulty = 0;
  EXPECT_EQ(takers.orders(10'000).seed, 0u);
  EXPECT_EQ(takers.seeds.size(), 1u);
}

}  // namespace
}  // namespace tilewright::checks
