#include "target/target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <set>

#include "target/devices.h"

namespace tilewright::target {
namespace {

using testing::HasSubstr;

TEST(TargetTest, AnUnknownOneIsAnErrorThatListsTheKnown) {
  try {
    find_target("sm_80", {"kernel.cpp", 3});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_EQ(error.location().line, 3);
    EXPECT_THAT(error.what(), HasSubstr("there is no target 'sm_80'"));
    EXPECT_THAT(error.what(), HasSubstr("sm_90a"));
  }
}

// 64 K registers a multiprocessor in units of 8 a thread.
TEST(TargetTest, RegistersAreSharedOut) {
  const TargetLimits& limits = target_limits("sm_90a");
  EXPECT_EQ(launch_registers(limits, 128), 256) << "no role may ask for more";
  EXPECT_EQ(launch_registers(limits, 256), 256);
  EXPECT_EQ(launch_registers(limits, 384), 168);
  EXPECT_EQ(launch_registers(limits, 512), 128);
  EXPECT_EQ(launch_registers(limits, 640), 96);
  const int computing[] = {240, 240, 160, 112, 88, 80, 64};
  const int loading[] = {24, 24, 32, 32, 40, 24, 64};
  for (int groups = 1; groups <= 7; ++groups) {
    const RoleRegisters share = role_registers(limits, groups);
    EXPECT_EQ(share.computing, computing[groups - 1]) << groups;
    EXPECT_EQ(share.loading, loading[groups - 1]) << groups;
    EXPECT_LE((share.loading + groups * share.computing) * limits.group_threads(),
              limits.registers);
    EXPECT_GE(share.loading, limits.least_role_registers);
  }
}

TEST(TargetTest, RecordsAgreeWithThemselves) {
  for (const Target* target : targets()) {
    if (target->core) continue;  // incore_record_test.cpp
    SCOPED_TRACE(target->name);
    EXPECT_EQ(target->space(ir::Memory::shared).bytes, target->limits.shared_bytes);
    for (const Move& move : target->moves) {
      EXPECT_FALSE(target->space(move.from).name.empty());
      EXPECT_FALSE(target->space(move.to).name.empty());
    }
    EXPECT_NO_THROW(device_of(target->name));
    // A family or a pipe has one unit at most, and what runs beside the warps has one.
    std::set<ir::Family> families;
    std::set<ir::Pipe> pipes;
    for (const Unit& unit : target->units) {
      EXPECT_FALSE(unit.name.empty());
      for (const ir::Family family : unit.families) EXPECT_TRUE(families.insert(family).second);
      for (const ir::Pipe pipe : unit.pipes) EXPECT_TRUE(pipes.insert(pipe).second);
    }
    EXPECT_EQ(pipes.size(), static_cast<std::size_t>(ir::Pipe::split_exponent) + 1);
    for (std::size_t i = 0; i < ir::kOperationCount; ++i) {
      const ir::OpInfo& record = ir::info(static_cast<ir::Op>(i));
      const bool beside = record.completion != ir::Completion::now && record.in(ir::Form::machine);
      if (!beside || !target->has(record)) continue;
      EXPECT_EQ(families.count(record.family), 1u) << record.name;
    }
  }
}

// What the manuals say of compute capability 9.0, once more: whatever plans by another number would
// be refused or slow on a GPU alone.
TEST(TargetTest, TheNumbersOfAnSm90a) {
  const TargetLimits& limits = find_target("sm_90a").limits;
  EXPECT_EQ(limits.shared_bytes, 232448);
  EXPECT_EQ(limits.multiprocessor_shared_bytes, 233472);
  EXPECT_EQ(limits.reserved_shared_bytes, 1024);
  EXPECT_EQ(limits.registers, 65536);
  EXPECT_EQ(limits.thread_registers, 255);
  EXPECT_EQ(limits.lanes, 32);
  EXPECT_EQ(limits.threads, 1024);
  EXPECT_EQ(limits.multiprocessor_threads, 2048);
  EXPECT_EQ(limits.shared_alignment, 8 * 128);  // 8 rows of a swizzle of 128 bytes
  EXPECT_EQ(limits.barrier_bytes, 8);
  EXPECT_EQ(limits.register_unit, 8);
  EXPECT_EQ(limits.least_role_registers, 24);
  EXPECT_EQ(limits.most_role_registers, 256);
  EXPECT_EQ(limits.named_barriers, 16);
  EXPECT_EQ(limits.cluster, 16);
  EXPECT_EQ(limits.product_columns, 256);
  EXPECT_EQ(limits.product_column_unit, 8);
  EXPECT_EQ(limits.product_depth_bytes, 16 * 2);
  EXPECT_EQ(limits.product_groups, 7);
  EXPECT_EQ(limits.copy_axes, 5);
  EXPECT_EQ(limits.copy_extent, 256);
  EXPECT_EQ(limits.copy_bytes, 16);
  for (const Device* device : devices_of("sm_90a")) {
    EXPECT_EQ(device->multiprocessors, 132) << device->name;
    EXPECT_EQ(device->l2_size, 52428800) << device->name;
  }
}

// And of 10.0 and 11.0, where they differ.
TEST(TargetTest, TheNumbersOfBlackwell) {
  const Target &hopper = find_target("sm_90a"), &datacentre = find_target("sm_100a"),
               &thor = find_target("sm_110a");
  for (const Target* target : {&datacentre, &thor}) {
    SCOPED_TRACE(target->name);
    const TargetLimits& limits = target->limits;
    EXPECT_EQ(limits.shared_bytes, 232448);
    EXPECT_EQ(limits.registers, 65536);
    EXPECT_EQ(limits.threads, 1024);
    EXPECT_EQ(limits.cluster, 16);
    EXPECT_EQ(limits.group_rows, 64);
    EXPECT_EQ(limits.product_columns, 256);
    EXPECT_EQ(limits.product_column_unit, 16);
    EXPECT_EQ(limits.product_groups, 0);
    EXPECT_EQ(limits.tensor_lanes, 128);
    EXPECT_EQ(limits.tensor_columns, 512);
    EXPECT_EQ(limits.least_tensor_columns, 32);
    EXPECT_EQ(target->space(ir::Memory::tensor).bytes, 256 << 10);
    EXPECT_EQ(target->rates.fma, 2 * hopper.rates.fma);
    EXPECT_FALSE(target->has(ir::info(ir::Op::wgmma_ss)));
    EXPECT_FALSE(target->has(ir::info(ir::Op::wgmma_fence)));
    EXPECT_FALSE(target->has(ir::info(ir::Op::wgmma)));
    EXPECT_FALSE(target->has(ir::info(ir::Op::wgmma_commit)));
    EXPECT_FALSE(target->has(ir::info(ir::Op::wgmma_wait)));
    EXPECT_TRUE(target->has(ir::info(ir::Op::bulk_commit)));
    EXPECT_TRUE(target->has(ir::info(ir::Op::tcgen05_mma_ss)));
    EXPECT_TRUE(target->has(ir::info(ir::Op::tma_load)));
    EXPECT_EQ(target->unit_of(ir::Family::product).name, "");
    EXPECT_EQ(target->unit_of(ir::Family::tensor_product).name, "tensor cores");
    EXPECT_EQ(target->unit_of(ir::Family::bulk_copy).name, "TMA");
    // 32 bytes of each row, as of all products: f4 is two a byte, and f8 and below one.
    ASSERT_EQ(target->scaled_products.size(), 3u);
    const std::vector<std::int64_t> of_32{32}, of_either{16, 32};
    EXPECT_EQ(target->scaled_products[0].elements, of_32);
    EXPECT_EQ(target->scaled_products[1].elements, of_32);
    EXPECT_EQ(target->scaled_products[2].elements, of_either);
    for (const ScaledProducts& products : target->scaled_products) {
      const bool has_bytes = products.formats[0] == "e4m3";
      EXPECT_EQ(products.depth, (has_bytes ? 1 : 2) * limits.product_depth_bytes) << products.kind;
      for (const std::int64_t elements : products.elements) {
        EXPECT_EQ(products.depth % elements, 0) << products.kind;
      }
    }
    EXPECT_FALSE(target->multiplies(DType::u8)) << "formats of scaled products are no dtypes";
  }
  EXPECT_TRUE(hopper.scaled_products.empty());
  EXPECT_FALSE(hopper.has(ir::info(ir::Op::tcgen05_mma_ss)));
  EXPECT_FALSE(hopper.has(ir::info(ir::Op::tensor_memory)));
  EXPECT_EQ(device_of("sm_100a").multiprocessors, 148);
  EXPECT_EQ(device_of("sm_110a").multiprocessors, 20);
}

// Each is one that some instruction makes: without it that one is refused.
TEST(TargetTest, EveryMoveIsMissedWhereItIsNot) {
  for (const Target* target : targets()) {
    for (const Move& move : target->moves) {
      Target without = *target;
      std::erase(without.moves, move);
      bool missed = false;
      for (std::size_t i = 0; i < ir::kOperationCount; ++i) {
        const ir::OpInfo& record = ir::info(static_cast<ir::Op>(i));
        EXPECT_FALSE(target->has(record) && target->missing_move(record)) << record.name;
        missed = missed || without.missing_move(record) == move;
      }
      EXPECT_TRUE(missed) << target->space(move.from).name << " to " << target->space(move.to).name;
    }
  }
}

TEST(TargetTest, InstructionsHaveUnits) {
  const Target& target = find_target("sm_90a");
  const auto unit_of = [&](ir::Op op, std::optional<ir::Op> function = {}) {
    ir::Operation instruction;
    instruction.op = op;
    if (function) instruction.attributes.set(ir::Key::function, *function);
    return target.unit_of(instruction).name;
  };
  EXPECT_EQ(unit_of(ir::Op::wgmma_rs), "tensor cores");
  EXPECT_EQ(unit_of(ir::Op::tma_load), "TMA");
  EXPECT_EQ(unit_of(ir::Op::compute, ir::Op::exp2), "special function units");
  EXPECT_EQ(unit_of(ir::Op::compute, ir::Op::cast), "conversion units");
  EXPECT_EQ(unit_of(ir::Op::reduce_lanes, ir::Op::max), "arithmetic units");
  EXPECT_EQ(unit_of(ir::Op::copy), "arithmetic units");
  // Its function is what happens to memory, and not in a pipe of the multiprocessor.
  EXPECT_EQ(unit_of(ir::Op::tma_reduce, ir::Op::add), "TMA");
  EXPECT_EQ(unit_of(ir::Op::cta_sync), "");
}

TEST(TargetTest, EachDeviceIsOfATarget) {
  ASSERT_FALSE(devices().empty());
  for (const Device& device : devices()) {
    const Rates& rates = find_target(device.target).rates;
    // The peak is what the multiprocessors do at the clock: an operation is half of an fma.
    const double peak = 2.0 * rates.fma * device.multiprocessors * device.clock;
    EXPECT_NEAR(device.half_flops / peak, 1, 0.01) << device.name;
    EXPECT_LE(device.reached.clock, device.clock) << device.name;
    EXPECT_LE(device.reached.l2_bytes, rates.l2_port_bytes) << device.name;
    EXPECT_LE(device.reached.memory_bytes, device.memory_bytes) << device.name;
    EXPECT_LE(device.reached.product_share, 1) << device.name;
  }
}

TEST(TargetTest, DevicesDifferByRecord) {
  const Device& h200 = device_of("sm_90a");
  EXPECT_EQ(h200.name, "H200 SXM");
  EXPECT_EQ(h200.flops(DType::f8e4m3), h200.quarter_flops);
  EXPECT_EQ(h200.flops(DType::f16), h200.half_flops);
  EXPECT_EQ(h200.flops(DType::f32), h200.single_flops);
  EXPECT_LT(devices().at(1).memory_bytes, h200.memory_bytes);
  EXPECT_THROW(device_of("sm_80"), Error);
}

}  // namespace
}  // namespace tilewright::target
