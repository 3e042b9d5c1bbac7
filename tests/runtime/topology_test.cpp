#include "runtime/topology.h"

#include <set>
#include <thread>

#include "fake_nvml/fake_nvml.h"
#include "runtime/dynamic_library.h"
#include "runtime/fake_driver.h"
#include "runtime/peers.h"

namespace tilewright::runtime {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Path = GpuLink::Path;

// Four GPUs of the fake driver, which the fake NVML knows.
class TopologyTest : public FakeDriverTest {
 protected:
  TopologyTest() : library_(DynamicLibrary::try_open(TILEWRIGHT_FAKE_NVML)) {
    nvml_ = static_cast<FakeNvmlState*>(library_.find("fake_nvml_state"));
    *nvml_ = {};
    state_->device_count = 4;
  }
  ~TopologyTest() override { *nvml_ = {}; }

  void join(int one, int other, int links) {
    nvml_->direct_links[one][other] = nvml_->direct_links[other][one] = links;
  }

  DynamicLibrary library_;
  FakeNvmlState* nvml_;

 private:
  const ScopedVariable path_{"TILEWRIGHT_NVML", TILEWRIGHT_FAKE_NVML};
};

TEST_F(TopologyTest, SwitchesJoinAllGpus) {
  for (int& links : nvml_->switch_links) links = 18;
  nvml_->link_megabytes = 26562;
  const Topology found = find_topology();
  EXPECT_EQ(found.source, "NVML 580.65.06");
  EXPECT_EQ(found.why_not_nvml, "");
  for (int from = 0; from < 4; ++from) {
    for (int to = 0; to < 4; ++to) {
      const GpuLink& link = found.link(from, to);
      EXPECT_TRUE(link.reaches && link.has_atomics);
      EXPECT_EQ(link.name, from == to ? "X" : "NV18");
      EXPECT_EQ(link.nvlinks, from == to ? 0 : 18);
      // 25 GB/s of data in each.
      EXPECT_NEAR(link.bytes_per_second, from == to ? 0 : 450e9, 0.1e9);
    }
  }
  EXPECT_EQ(found.gpus[2].uuid, "GPU-02020202-0202-0202-0202-020202020202");
  EXPECT_EQ(found.gpus[2].pci, "00000000:12:00.0");
  EXPECT_EQ(nvml_->starts, nvml_->ends);
  // Each order begins with another one.
  EXPECT_THAT(found.nearest(2), ElementsAre(3, 0, 1));
  EXPECT_THAT(found.ring(), ElementsAre(0, 1, 2, 3));
}

TEST_F(TopologyTest, AGpuWithFewerLinksToSwitchesIsSlower) {
  nvml_->switch_links[0] = nvml_->switch_links[1] = nvml_->switch_links[2] = 12;
  nvml_->switch_links[3] = 4;
  nvml_->link_megabytes = 25781;
  const Topology found = find_topology();
  EXPECT_EQ(found.link(0, 3).name, "NV4");
  EXPECT_NEAR(found.link(3, 1).bytes_per_second, 100e9, 0.1e9);
  EXPECT_NEAR(found.link(0, 1).bytes_per_second, 300e9, 0.1e9);
  EXPECT_THAT(found.nearest(2), ElementsAre(0, 1, 3));
}

// The ring follows the links, and not the numbers.
TEST_F(TopologyTest, RingsFollowTheFastestLinks) {
  join(0, 2, 4), join(2, 1, 4), join(1, 3, 4), join(3, 0, 4), join(0, 1, 1), join(2, 3, 1);
  nvml_->link_megabytes = 26562;
  const Topology found = find_topology();
  EXPECT_EQ(found.link(0, 2).name, "NV4");
  EXPECT_EQ(found.link(0, 1).name, "NV1");
  EXPECT_THAT(found.ring(), ElementsAre(0, 2, 1, 3));
  EXPECT_THAT(found.nearest(1), ElementsAre(2, 3, 0));
}

// Its first number is physical GPU 3, the second is 1: only these two are joined.
TEST_F(TopologyTest, NumbersAreThoseOfTheProcess) {
  join(3, 1, 6);
  state_->device_count = 3;
  state_->visible[0] = 4, state_->visible[1] = 2, state_->visible[2] = 1;
  nvml_->ancestor = 50;
  for (const int knows_no_uuid : {0, 1}) {
    nvml_->knows_no_uuid = knows_no_uuid;
    const Topology found = find_topology();
    EXPECT_EQ(found.gpus[0].pci, "00000000:13:00.0");
    EXPECT_EQ(found.link(0, 1).name, "NV6");
    EXPECT_EQ(found.link(1, 0).name, "NV6");
    EXPECT_EQ(found.link(0, 2).name, "SYS");
    EXPECT_NEAR(found.link(0, 1).bytes_per_second, 6 * 25e9, 1e6) << "by compute capability 9.0";
  }
}

TEST_F(TopologyTest, PcieHasItsWayAndItsRate) {
  nvml_->generation = 5, nvml_->width = 16;
  state_->without_atomics = 1;
  for (const auto& [ancestor, name] :
       {std::pair{10, "PIX"}, std::pair{20, "PXB"}, std::pair{30, "PHB"}, std::pair{40, "NODE"},
        std::pair{50, "SYS"}}) {
    nvml_->ancestor = ancestor;
    const GpuLink link = find_topology().link(1, 0);
    EXPECT_EQ(link.path, Path::pcie);
    EXPECT_EQ(link.name, name);
    EXPECT_NEAR(link.bytes_per_second, 63e9, 1e9);
    EXPECT_TRUE(link.reaches && !link.has_atomics);
    EXPECT_THAT(path_text(link), HasSubstr(name));
  }
}

TEST_F(TopologyTest, WithoutNvmlTheDriversAttributesDecide) {
  const ScopedVariable none("TILEWRIGHT_NVML", "/nonexistent/libnvidia-ml.so.1");
  Topology found = find_topology();
  EXPECT_EQ(found.source, "the driver's peer attributes");
  EXPECT_THAT(found.why_not_nvml, HasSubstr("/nonexistent/libnvidia-ml.so.1"));
  EXPECT_EQ(found.link(0, 1).path, Path::nvlink);
  EXPECT_EQ(found.link(0, 1).name, "NV");
  EXPECT_EQ(found.link(0, 1).bytes_per_second, 0);

  state_->without_atomics = 1;
  found = find_topology();
  EXPECT_EQ(found.link(0, 1).path, Path::pcie);
  EXPECT_TRUE(found.link(0, 1).reaches);

  state_->without_peers = 1;
  found = find_topology();
  EXPECT_EQ(found.link(0, 1).path, Path::unknown);
  EXPECT_FALSE(found.link(0, 1).reaches);
}

TEST_F(TopologyTest, NvmlThatDoesNotStartOrKnowsTooLittleIsNamed) {
  nvml_->init_result = 9;
  EXPECT_THAT(find_topology().why_not_nvml, HasSubstr("does not start"));
  nvml_->init_result = 0;
  nvml_->hidden = 1;
  const Topology found = find_topology();
  EXPECT_EQ(found.source, "the driver's peer attributes");
  EXPECT_THAT(found.why_not_nvml, HasSubstr("does not know all GPUs"));
  EXPECT_EQ(found.link(0, 3).name, "NV");
}

TEST_F(TopologyTest, AnUnknownNumberIsRefused) {
  const Topology found = find_topology();
  expect_error(ErrorKind::usage, {"from GPU 1 to GPU 4", "4 GPUs", "fix: "},
               [&] { found.link(1, 4); });
  expect_error(ErrorKind::usage, {"GPU -1"}, [&] { found.nearest(-1); });
}

TEST_F(TopologyTest, AGpuThatIsNotReachedIsRefusedWithTheWayToIt) {
  state_->without_peers = 1;
  nvml_->ancestor = 50;
  expect_error(ErrorKind::unavailable,
               {"GPU 0 does not reach the memory of GPU 1", "by PCIe across CPUs (SYS)", "doctor"},
               [] { reach_peer(Device::get(0), Device::get(1)); });
}

TEST_F(TopologyTest, NobodyElseIsTooMuch) {
  state_->device_count = 1;
  const Topology alone = find_topology();
  EXPECT_THAT(alone.ring(), ElementsAre(0));
  EXPECT_THAT(alone.nearest(0), ElementsAre());
  state_->device_count = 0;
  EXPECT_THAT(find_topology().ring(), ElementsAre());
}

// The same object for all who ask at once.
TEST_F(TopologyTest, IsFoundOnceByManyThreads) {
  std::vector<const Topology*> seen(8);
  std::vector<std::thread> threads;
  for (const Topology*& place : seen) threads.emplace_back([&place] { place = &topology(); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(std::set<const Topology*>(seen.begin(), seen.end()).size(), 1U);
}

}  // namespace
}  // namespace tilewright::runtime
