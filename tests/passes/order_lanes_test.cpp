#include "passes/order_lanes.h"

#include "passes/pass_case.h"
#include "simulator/litmus.h"

namespace tilewright::passes {
namespace {

using simulator::litmus;
using simulator::role;

const std::string kArrive = "    mbarrier_arrive %20, %0\n";
const std::string kWait = "    mbarrier_wait %20, %0, %0\n";
const std::string kStore = "    shared_store %22, %0, %7\n";
const std::string kSync = "    warp_sync\n";
const std::string kCommit = "    bulk_commit\n";
const std::string kBulkWait = "    bulk_wait {count = 0, read = 1}\n";

// Each takes a number of its own for what it makes.
std::string load(int id) { return fmt::format("    %{}: i32 = shared_load %22, %0\n", id); }

std::string loop(const std::string& body) {
  return "    for_loop %0, %8, %1 (%70: i32) {\n" + body + "    yield\n    }\n";
}

std::string condition(const std::string& then, const std::string& otherwise) {
  return "    if_then %10 () {\n" + then + "    yield\n    } () {\n" + otherwise +
         "    yield\n    }\n";
}

std::string elect(const std::string& body) {
  return "    elect () {\n" + body + "    yield\n    }\n";
}

std::string of_one_role(const std::string& body) { return litmus(role("one", 0, 1, body)); }

// With warp_syncs where `wanted` has them, and no others.
void expect_order(const std::string& body, const std::string& wanted) {
  test::expect_pass(order_lanes, of_one_role(body), of_one_role(wanted));
}
void expect_kept(const std::string& body) { expect_order(body, body); }

TEST(OrderLanes, OneLaneActsBehindWhatAllHaveAccessed) {
  expect_order(load(60) + kArrive + kArrive, load(60) + kSync + kArrive + kArrive);
  expect_order(load(60) + elect(kArrive), load(60) + kSync + elect(kArrive));
  expect_order(simulator::store_tile() + simulator::copy_tile_out(),
               simulator::store_tile() + kSync + simulator::copy_tile_out());
  // What neither reads nor writes memory.
  expect_kept(kWait + kArrive);
}

TEST(OrderLanes, AllAccessMemoryBehindWhatOneLaneWroteOrWaitedFor) {
  expect_order(kStore + load(60) + load(61), kStore + kSync + load(60) + load(61));
  expect_order(kBulkWait + simulator::store_tile(), kBulkWait + kSync + simulator::store_tile());
  expect_order(elect(kWait) + load(60), elect(kWait) + kSync + load(60));
  const std::string flag =
      "    wait_flag %90, %0, %7 {compare = \"eq\", semantics = \"acquire\", scope = \"gpu\"}\n";
  expect_order(elect(flag) + load(60), elect(flag) + kSync + load(60));
  expect_kept(flag + load(60));
  // A wait of all lanes tells each of them.
  expect_kept(kWait + load(60));
  expect_kept(kStore + kArrive + kCommit);
  // One lane reads what it wrote.
  expect_kept(elect(kStore + load(60)));
}

// Each lane learns by its own elements, and hands on by them what it knows.
TEST(OrderLanes, ElementsThatAreReadInAnOrderTellAllLanes) {
  const auto elements = [](const char* order) {
    return fmt::format(
        "    load_registers %30, %92, %0, %0, %16, %16 {{sizes = [16, 16], layout = "
        "register_layout[16x16|r:8@1:1|l:2@1:8,16@0:1]{}}}\n",
        order);
  };
  const std::string acquiring = elements(", semantics = \"acquire\", scope = \"gpu\"");
  expect_order(acquiring + load(60), acquiring + kSync + load(60));
  expect_kept(elements("") + load(60));
}

TEST(OrderLanes, ASynchronisationThatIsThereServes) {
  expect_kept(load(60) + kSync + kArrive);
  expect_kept(kBulkWait + kSync + load(60));
  expect_kept(load(60) + "    named_sync %0 {first = 1, threads = 32}\n" + kArrive);
  expect_order(load(60) + kSync + load(61) + kArrive,
               load(60) + kSync + load(61) + kSync + kArrive);
}

TEST(OrderLanes, BranchesAreOrderedEachByItself) {
  expect_order(condition(load(60), "") + kArrive, condition(load(60), "") + kSync + kArrive);
  expect_order(load(60) + condition(kArrive, ""), load(60) + condition(kSync + kArrive, ""));
  expect_order(load(60) + condition(kArrive, load(61)) + kArrive,
               load(60) + condition(kSync + kArrive, load(61)) + kSync + kArrive);
  expect_kept(load(60) + condition(kSync, kSync) + kArrive);
}

TEST(OrderLanes, ALoopComesBehindItselfAndMayHaveNoTurn) {
  expect_order(loop(kArrive + load(60)), loop(kSync + kArrive + load(60)));
  expect_order(loop(load(60) + kStore), loop(kSync + load(60) + kSync + kStore));
  expect_order(load(60) + loop(kArrive) + kArrive,
               load(60) + loop(kSync + kArrive) + kSync + kArrive);
  expect_order("    while_loop %10 () {\n" + kArrive + load(60) + "    yield %10\n    }\n",
               "    while_loop %10 () {\n" + kSync + kArrive + load(60) + "    yield %10\n    }\n");
}

TEST(OrderLanes, ARoleComesBehindWhatStandsBeforeTheRoles) {
  const std::string text = litmus("  shared_store %22, %0, %7\n" + role("one", 0, 1, load(60)));
  test::expect_pass(order_lanes, text,
                    litmus("  shared_store %22, %0, %7\n" + role("one", 0, 1, kSync + load(60))));
}

// What the simulated GPU calls a race for want of a warp_sync is none behind the pass.
TEST(OrderLanes, RacesBetweenLanesAreGone) {
  const auto ordered = [](const std::string& text) {
    ir::Kernel kernel = test::parsed(text);
    order_lanes(kernel);
    return ir::to_text(kernel);
  };
  const std::string overwrite = kWait + kStore;
  const std::string released =
      litmus(role("reader", 0, 1, load(60) + kArrive) + role("writer", 1, 1, overwrite));
  simulator::expect_fault(
      released, {"race", "shared_load %22", "shared_store %22, %0, %7", {"warp_sync in reader"}});
  simulator::expect_clean(ordered(released));
  const std::string written = of_one_role(kStore + load(60));
  simulator::expect_fault(written,
                          {"race", "shared_store %22, %0, %7", "shared_load %22", {"warp_sync"}});
  simulator::expect_clean(ordered(written));
  // The elected lane alone knows that the copy has read the tile.
  const std::string stored =
      of_one_role(simulator::copy_tile_out() + kBulkWait + simulator::store_tile());
  simulator::expect_fault(stored, {"race", "tma_store", "store_matrix", {"bulk_wait"}});
  simulator::expect_clean(ordered(stored));
}

}  // namespace
}  // namespace tilewright::passes
