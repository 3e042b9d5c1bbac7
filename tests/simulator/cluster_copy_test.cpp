#include <gmock/gmock.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "ir/text.h"
#include "simulator/cluster_copy_kernel.h"
#include "simulator/faults/fault_kinds.h"
#include "simulator/machine/machine.h"
#include "simulator/one_launch.h"
#include "target/target.h"

// Copies to the shared memories of a cluster's CTAs: what arrives, and what orders it.
namespace tilewright {
namespace {

using test::lowered;
using ::testing::AllOf;
using ::testing::HasSubstr;

struct Execution {
  simulator::MachineReport report;
  HostTensor X, Y;
};

Execution execute(const ir::Kernel& machine, std::uint64_t seed,
                  std::int64_t columns = kExchangedColumns) {
  const std::vector<std::int64_t> shape{kPairedCtas * kTurns * kExchangedRows, columns};
  Execution run{{}, HostTensor::random_normal(bf16, shape, 1), HostTensor::poisoned(bf16, shape)};
  run.report = test::launch_once(machine, {{"X", &run.X}, {"Y", &run.Y}}, seed);
  return run;
}

TEST(ClusterCopy, BringsThePeersTiles) {
  const ir::Kernel machine = lowered(exchange());
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const Execution run = execute(machine, seed);
    ASSERT_TRUE(run.report.ok()) << run.report.faults.front().message;
    expect_exchanged(run.X, run.Y);
  }
}

// Parts of two panels each, which lie further apart where they come from.
TEST(ClusterCopy, BringsPartsOfRows) {
  constexpr int kColumns = 256;
  const Execution run = execute(lowered(exchange(ExchangeMistake::none, kColumns)), 0, kColumns);
  ASSERT_TRUE(run.report.ok()) << run.report.faults.front().message;
  expect_exchanged(run.X, run.Y);
}

TEST(ClusterCopy, SurvivesItsText) {
  for (const auto& [kernel, name] : {std::pair(exchange().finish(), "cluster_copy_tile %"),
                                     std::pair(lowered(exchange()), "cluster_copy %")}) {
    const std::string text = ir::to_text(kernel);
    EXPECT_THAT(text, HasSubstr(name));
    EXPECT_EQ(ir::to_text(ir::parse_text(text, "again.tw")), text);
  }
}

// The first fault of some schedules; "mismatch" where the results differ alone.
simulator::Fault fault_of(const ir::Kernel& machine) {
  const HostTensor wanted = execute(lowered(exchange()), 0).Y;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Execution run = execute(machine, seed);
    if (!run.report.ok()) return run.report.faults.front();
    if (run.Y != wanted) return {"mismatch", {}, {}, "", ""};
  }
  return {};
}

TEST(ClusterCopy, IsOrderedByFencesAndTheStagesConsumption) {
  const auto of = [](ExchangeMistake mistake) { return fault_of(lowered(exchange(mistake))); };
  EXPECT_EQ(of(ExchangeMistake::none).kind, "") << of(ExchangeMistake::none).message;
  const simulator::Fault unfenced = of(ExchangeMistake::written_fence);
  EXPECT_EQ(unfenced.kind, "proxy") << unfenced.message;
  EXPECT_THAT(unfenced.message, HasSubstr("read   cluster_copy"));
  const simulator::Fault reused = of(ExchangeMistake::second_source);
  EXPECT_EQ(reused.kind, "race") << reused.message;
  EXPECT_THAT(reused.message, AllOf(HasSubstr("read   cluster_copy"), HasSubstr("shared own")));
  const simulator::Fault overwritten = of(ExchangeMistake::read_fence);
  EXPECT_EQ(overwritten.kind, "race") << overwritten.message;
  EXPECT_THAT(overwritten.message,
              AllOf(HasSubstr("write  cluster_copy"), HasSubstr("shared others")));
}

// The exchange, whose copy has a constant as one of its operands, and perhaps fewer bytes.
ir::Kernel with_operand(std::size_t operand, std::int64_t value, std::int64_t bytes_less = 0) {
  ir::Kernel machine = lowered(exchange());
  const std::function<void(ir::Block&)> visit = [&](ir::Block& block) {
    for (std::size_t i = 0; i < block.body.size(); ++i) {
      for (ir::Block& inner : block.body[i].blocks) visit(inner);
      if (block.body[i].op != ir::Op::cluster_copy) continue;
      ir::Operation constant;
      constant.op = ir::Op::constant;
      constant.attributes.set(ir::Key::value, value);
      constant.results = {machine.add_value(ir::Type::scalar(i32))};
      ir::Operation& copy = block.body[i];
      copy.operands[operand] = constant.results[0];
      copy.attributes.set(ir::Key::bytes, copy.attributes.integer(ir::Key::bytes) - bytes_less);
      block.body.insert(block.body.begin() + static_cast<std::ptrdiff_t>(i++), constant);
    }
  };
  visit(machine.body);
  return machine;
}

TEST(ClusterCopy, StaysInItsPlacesAndItsCluster) {
  constexpr std::size_t kPlace = 2, kSource = 5, kCta = 6;  // operations.def
  constexpr std::int64_t kTile = kExchangedRows * kExchangedColumns * 2;
  const auto expect = [](std::size_t operand, std::int64_t value, const char* kind,
                         const char* message, std::int64_t bytes_less = 0) {
    const simulator::MachineReport report =
        execute(with_operand(operand, value, bytes_less), 0).report;
    ASSERT_FALSE(report.ok()) << message;
    EXPECT_EQ(report.faults.front().kind, kind) << report.faults.front().message;
    EXPECT_THAT(report.faults.front().message, HasSubstr(message));
  };
  expect(kSource, kTile + 16, "out_of_bounds", "shared own");
  expect(kPlace, 16, "out_of_bounds", "shared others");
  expect(kSource, 8, "misaligned", "shared own");
  expect(kPlace, 8, "misaligned", "shared others", 16);
  expect(kPlace, -16, "out_of_bounds", "shared others");
  expect(kCta, 2, "out_of_bounds", "a copy to CTA 2 of a cluster of 2");
  expect(kCta, -1, "out_of_bounds", "a copy to CTA -1 of a cluster of 2");
}

// Each CTA of a cluster of four copies a part of the rows, of which `options` says who gets them,
// and stores to Y all that it gets.
Kernel shared_rows(TmaOptions options) {
  const int receivers = options.receivers == 0 ? 4 : options.receivers;
  const int part = kExchangedRows / receivers;
  Kernel kernel("shared_rows");
  const Dim rows = 4 * kTurns * kExchangedRows;
  const Tensor X = kernel.in("X", bf16, {rows, kExchangedColumns});
  const Tensor Y = kernel.out("Y", bf16, {rows, kExchangedColumns});
  kernel.ctas(4, 4);
  Ring ring(kernel, "ring", stages(2), {{bf16, kExchangedRows, kExchangedColumns}});
  ring.multicast();
  const auto copy = [&] {
    for (Index turn : range(kTurns)) {
      ring.produce([&](const Slot& slot) {
        const Index member = cluster_rank() / options.stride % receivers;
        const Index first =
            cluster_rank() - member * options.stride;  // of those with the same rows
        const Index tile = first * kTurns + turn;
        tma_load(X(rows.block(tile * receivers + member, part), all),
                 slot[0].rows(member * part, part), options);
      });
    }
  };
  const auto keep = [&] {
    for (Index turn : range(kTurns)) {
      const Slot slot = ring.consume();
      store(Y(rows.block(cta_index() * kTurns + turn, kExchangedRows), all), load(slot));
      fence_proxy_async();
      ring.release(slot);
    }
  };
  kernel.roles({role("copy", warps(1), registers(24), copy),
                role("keep", warpgroups(1), registers(240), keep)});
  return kernel;
}

// To all CTAs, to neighbours, and to those of a column.
TEST(Multicast, ReachesThoseThatAreStated) {
  struct Case {
    int receivers, stride;
    std::int64_t first[4];  // whose rows a CTA gets
  };
  const std::int64_t of_cta = kTurns * kExchangedRows;
  for (const Case& each : {Case{0, 1, {0, 0, 0, 0}}, {2, 1, {0, 0, 2, 2}}, {2, 2, {0, 1, 0, 1}}}) {
    const Execution run =
        execute(lowered(shared_rows({Cache::normal, true, each.receivers, each.stride})), 0);
    ASSERT_TRUE(run.report.ok()) << run.report.faults.front().message;
    for (std::int64_t row = 0; row < 4 * of_cta; ++row) {
      const std::int64_t from = each.first[row / of_cta] * of_cta + row % of_cta;
      for (std::int64_t column = 0; column < kExchangedColumns; ++column) {
        ASSERT_EQ(run.Y.at({row, column}), run.X.at({from, column})) << row << ", " << column;
      }
    }
  }
}

// What nobody has written is not worth sending.
TEST(ClusterCopy, SendsWhatWasWritten) {
  ir::Kernel machine = lowered(exchange());
  const std::function<void(ir::Block&)> leave_out_stores = [&](ir::Block& block) {
    for (ir::Operation& o : block.body) {
      for (ir::Block& inner : o.blocks) leave_out_stores(inner);
    }
    std::erase_if(block.body, [](const ir::Operation& o) {
      return ir::info(o.op).writes(ir::Memory::shared) && o.op != ir::Op::cluster_copy;
    });
  };
  leave_out_stores(machine.body);
  const simulator::MachineReport report = execute(machine, 0).report;
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.faults.front().kind, "uninitialised") << report.faults.front().message;
  EXPECT_THAT(report.faults.front().message,
              AllOf(HasSubstr("shared own"), HasSubstr("cluster_copy")));
}

// A CTA that ends takes along what a copy may still read of it.
TEST(ClusterCopy, ItsSourceStaysUntilItIsRead) {
  ir::Kernel machine = lowered(exchange());
  ir::Block* last_block = nullptr;
  std::size_t last = 0;
  const std::function<void(ir::Block&)> find = [&](ir::Block& block) {
    for (std::size_t i = 0; i < block.body.size(); ++i) {
      if (block.body[i].op == ir::Op::cluster_sync) last_block = &block, last = i;
      for (ir::Block& inner : block.body[i].blocks) find(inner);
    }
  };
  find(machine.body);
  ASSERT_NE(last_block, nullptr);
  last_block->body.erase(last_block->body.begin() + static_cast<std::ptrdiff_t>(last));
  const simulator::MachineReport report = execute(machine, 0).report;
  ASSERT_FALSE(report.ok());
  bool found = false;
  for (const simulator::Fault& fault : report.faults) {
    found = found || (fault.kind == "exit" &&
                      fault.message.find("read   cluster_copy") != std::string::npos);
  }
  EXPECT_TRUE(found) << report.faults.front().message;
}

// Waits, arrivals, bytes and CTAs, and the meeting before the end.
TEST(ClusterCopy, SeededFaultsAreFound) {
  const ir::Kernel machine = lowered(exchange());
  int copies = 0, found = 0;
  for (const simulator::FaultKind& kind : simulator::fault_kinds()) {
    for (const simulator::Mutant& mutant : simulator::mutants_of(kind, machine)) {
      const bool is_copy = mutant.operation.starts_with("cluster_copy");
      const bool concerns = is_copy || kind.number == 9 || kind.number == 14 || kind.number == 22;
      if (!concerns || !mutant.equivalent.empty()) continue;
      const simulator::Fault fault = fault_of(mutant.apply(machine));
      EXPECT_NE(fault.kind, "") << kind.name << ": " << mutant.change;
      EXPECT_NE(std::find(kind.classes.begin(), kind.classes.end(), fault.kind), kind.classes.end())
          << kind.name << ": " << mutant.change << " is found as " << fault.kind;
      copies += is_copy ? 1 : 0;
      ++found;
    }
  }
  EXPECT_EQ(copies, 2);  // to the other CTA, with fewer bytes
  EXPECT_GE(found, 6);
}

}  // namespace
}  // namespace tilewright
