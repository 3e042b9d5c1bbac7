#include "ir/operation_record.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "ir/multicast.h"
#include "ir/type_rules.h"

namespace tilewright::ir {
namespace {

TEST(OperationRecord, SaysWhatAnOperationTouchesAndWhenItIsOver) {
  const OpInfo& load = info(Op::tma_load);
  EXPECT_EQ(load.name, "tma_load");
  EXPECT_EQ(load.family, Family::bulk_copy);
  EXPECT_TRUE(load.reads(Memory::global, Proxy::async));
  EXPECT_FALSE(load.reads(Memory::global, Proxy::generic));
  EXPECT_TRUE(load.writes(Memory::shared));
  EXPECT_FALSE(load.reads(Memory::shared));
  EXPECT_EQ(load.agent, Agent::lane);
  EXPECT_EQ(load.completion, Completion::mbarrier);
  EXPECT_TRUE(load.in(Form::machine));
  EXPECT_FALSE(load.in(Form::scheduled));
  EXPECT_EQ(*info(Op::load_index).semantics.begin(), Semantics::weak);
}

// Axes of size 1 belong to none of them.
TEST(TypeRules, ReshapedAxesLeaveOutThoseOfSizeOne) {
  const auto groups = reshaped_axes({1, 4, 1, 8, 1}, {2, 1, 2, 8});
  ASSERT_EQ(groups.size(), 2u);
  using Axes = std::vector<std::size_t>;
  EXPECT_EQ(groups[0].from, (Axes{1}));
  EXPECT_EQ(groups[0].to, (Axes{0, 2}));
  EXPECT_EQ(groups[1].from, (Axes{3}));
  EXPECT_EQ(groups[1].to, (Axes{3}));
}

TEST(Multicast, DistancesAreCountedFromTheFirstCta) {
  EXPECT_EQ(multicast_stride(0b1), 1);
  EXPECT_EQ(multicast_stride(0b0011), 1);
  EXPECT_EQ(multicast_stride(0b0101), 2);
  EXPECT_EQ(multicast_stride(0b10100), 2);
}

TEST(OperationRecord, LeavesPureFunctionsAlone) {
  for (const Op op :
       {Op::add, Op::cast, Op::constant, Op::dot, Op::view, Op::warp_index, Op::own_end}) {
    EXPECT_TRUE(info(op).pure()) << info(op).name;
  }
  for (const Op op : {Op::if_then, Op::yield, Op::registers, Op::shared, Op::discard,
                      Op::as_pending, Op::load, Op::load_index, Op::fence, Op::fill}) {
    EXPECT_FALSE(info(op).pure()) << info(op).name;
  }
}

TEST(OperationRecord, KnowsEveryAttributeAndItsType) {
  const AttributeRule* bytes = info(Op::tma_load).find(Key::bytes);
  ASSERT_NE(bytes, nullptr);
  EXPECT_TRUE(bytes->required);
  EXPECT_EQ(bytes->type, AttributeType::integer);
  EXPECT_FALSE(info(Op::tma_load).find(Key::step)->required);
  EXPECT_EQ(info(Op::tma_load).find(Key::axis), nullptr);
  EXPECT_EQ(info(Op::shared).find(Key::layout)->type, AttributeType::shared_layout);
  EXPECT_EQ(info(Op::load_registers).find(Key::layout)->type, AttributeType::register_layout);
}

// Members have the numbers of their operations.
TEST(OperationRecord, NamesTheMembersOfFamilies) {
  EXPECT_EQ(as<FenceOp>(Op::fence_cluster), FenceOp::fence_cluster);
  EXPECT_EQ(as<RealFunction>(Op::exp2), RealFunction::exp2);
  EXPECT_EQ(info(Op::fence_cluster).family, Family::fence);
  EXPECT_EQ(info(Op::exp2).family, Family::function);
  EXPECT_EQ(info(Op::exp2).kind, FunctionKind::real);
}

// Whoever orders others says whose threads, by the record or by an attribute that it has to have.
TEST(OperationRecordTest, WhatOrdersThreadsHasAScope) {
  for (std::size_t i = 0; i < kOperationCount; ++i) {
    const OpInfo& record = info(static_cast<Op>(i));
    const AttributeRule* const says = record.find(Key::scope);
    const bool orders = record.semantics.count != 0 || record.family == Family::mbarrier ||
                        record.family == Family::named_barrier ||
                        record.family == Family::cta_barrier ||
                        record.family == Family::cluster_barrier;
    EXPECT_TRUE(!says || record.semantics.count != 0) << record.name;
    if (!orders) continue;
    EXPECT_NE(record.scope.has_value(), says && says->required) << record.name;
  }
  EXPECT_EQ(info(Op::cta_sync).scope, Scope::block);
  EXPECT_EQ(info(Op::cluster_sync).scope, Scope::cluster);
  EXPECT_EQ(info(Op::fence_cluster).scope, Scope::cluster);
  EXPECT_EQ(info(Op::warp_sync).scope, std::nullopt);
  EXPECT_EQ(info(Op::atomic_add).scope, Scope::gpu);
}

// What passes ask of a product, whichever target's.
TEST(OperationRecordTest, ProductsSayWhatRunsOn) {
  EXPECT_TRUE(info(Op::wgmma).is_asynchronous_product());
  EXPECT_FALSE(info(Op::dot).is_asynchronous_product());
  for (std::size_t i = 0; i < kOperationCount; ++i) {
    const OpInfo& record = info(static_cast<Op>(i));
    const bool product = record.family == Family::product || record.family == Family::tile_product;
    EXPECT_EQ(record.accumulator >= 0, product) << record.name;
    if (record.family == Family::product) {
      ASSERT_TRUE(record.made_of.has_value()) << record.name;
      EXPECT_TRUE(info(*record.made_of).is_asynchronous_product()) << record.name;
    }
  }
}

}  // namespace
}  // namespace tilewright::ir
