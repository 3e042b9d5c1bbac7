#include "passes/pipeline.h"
#include "simulator/machine/fault_log.h"
#include "simulator/machine_kernels.h"
#include "tilewright/hopper.h"

// Faults that values do not show: all inputs are the same number everywhere.
namespace tilewright::simulator {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kScheduledRuns = 10;

MachineOptions checked(std::uint64_t seed) {
  MachineOptions options;
  options.seed = seed;
  options.provenance = true;
  options.stop_at_first = false;
  return options;
}

// A fault is known by both of its places.
TEST(FaultLog, KeepsWhatIsNotTheSameOnce) {
  MachineReport report;
  FaultLog log(report, false);
  const auto at = [](int line) {
    SourceLocation where = here();
    where.line = line;
    return where;
  };
  log.add({"race", at(1), at(2), "first", ""});
  log.add({"race", at(1), at(2), "again", ""});
  log.add({"race", at(1), at(3), "another second place", ""});
  log.add({"race", at(4), at(2), "another first place", ""});
  log.add({"proxy", at(1), at(2), "another kind", ""});
  ASSERT_EQ(report.faults.size(), 4u);
  EXPECT_EQ(report.faults[1].message, "another second place");
}

// The first fault of the kind; empty when there is none.
Fault provenance_fault(const MachineReport& report) {
  for (const Fault& fault : report.faults) {
    if (fault.kind == "provenance") return fault;
  }
  return {};
}

Fault gemm_fault(const std::string& text, std::uint64_t seed, bool control_only = false) {
  GemmTensors tensors(64, 128, 128);
  const auto constant = [](MachineTensor& tensor) {
    std::fill(tensor.values.begin(), tensor.values.end(), 0.5f);
    from_float(tensor.dtype, tensor.values.data(), tensor.bytes.data(), tensor.values.size());
  };
  constant(tensors.a);
  constant(tensors.b);
  MachineOptions options = checked(seed);
  options.control_only = control_only;
  const MachineReport report = run(text, {&tensors.a, &tensors.b, &tensors.c}, options);
  if (report.ok() && !control_only) {
    EXPECT_LT(tensors.error(), 1e-6);
  }
  return provenance_fault(report);
}

void expect_places(const Fault& fault, int first, int second) {
  EXPECT_EQ(fault.kind, "provenance");
  EXPECT_EQ(fault.first.line, first) << fault.message;
  EXPECT_EQ(fault.second.line, second) << fault.message;
}

TEST(MachineProvenance, GemmIsClean) {
  for (std::uint64_t seed = 0; seed < kScheduledRuns; ++seed) {
    EXPECT_EQ(gemm_fault(gemm_text(), seed).message, "");
    EXPECT_EQ(gemm_fault(gemm_text(), seed, /*control_only=*/true).message, "");
  }
}

TEST(MachineProvenance, AStageThatDoesNotAdvance) {
  const std::string text =
      changed(gemm_text(), "%68: i32 = mul %65, %26", "%68: i32 = mul %20, %26");
  for (std::uint64_t seed = 0; seed < kScheduledRuns; ++seed) {
    for (const bool control_only : {false, true}) {
      const Fault fault = gemm_fault(text, seed, control_only);
      expect_places(fault, line_of(text, "wgmma_ss %61"), line_of(text, "tma_load %11"));
      EXPECT_THAT(fault.message,
                  AllOf(HasSubstr("acc adds the product of A[stage 1], from A["),
                        HasSubstr(", 64] on, and B[stage 0], from B[0, 0] on: 64 apart along k"),
                        HasSubstr("write  tma_load"), HasSubstr("read   wgmma_ss")));
      EXPECT_THAT(fault.missing, HasSubstr("advance B as A: the stage that is read"));
    }
  }
}

TEST(MachineProvenance, ABlockFurtherInOneOperand) {
  std::string text = changed(gemm_text(), "%43, %47, %36", "%43, %90, %36");
  text = changed(text, "      tma_load %10", "      %90: i32 = add %47, %23\n      tma_load %10");
  for (std::uint64_t seed = 0; seed < kScheduledRuns; ++seed) {
    const Fault fault = gemm_fault(text, seed);
    expect_places(fault, line_of(text, "wgmma_ss %61"), line_of(text, "tma_load %11"));
    EXPECT_THAT(fault.message, HasSubstr(", 0] on, and B[stage 0], from B[0, 64] on"));
  }
}

TEST(MachineProvenance, AProductThatSkipsAStep) {
  const std::string text =
      changed(gemm_text(), "step_a = 64, step_b = 64", "step_a = 64, step_b = 96");
  const Fault fault = gemm_fault(text, 0);
  EXPECT_EQ(fault.first.line, line_of(text, "step_a = 64"));
  EXPECT_THAT(fault.message, HasSubstr("16 apart along k"));
}

TEST(MachineProvenance, CostsNothingThatIsSeenWhenOff) {
  const std::string text =
      changed(gemm_text(), "%68: i32 = mul %65, %26", "%68: i32 = mul %20, %26");
  GemmTensors tensors(64, 128, 128);
  EXPECT_TRUE(run_seed(text, {&tensors.a, &tensors.b, &tensors.c}, 0).ok());
}

// O = (Q K^T) V over two blocks of 64 keys and two heads, and what is wrong with it.
enum class Defect {
  none,
  v_not_advanced,   // both products read the first block of V
  k_behind,         // the second block of K is the first once more
  k_and_v_crossed,  // blocks 0, 1 of K and 1, 0 of V
  panels_swapped,   // the halves of K's columns
  halves_swapped,   // of V's rows of a block
  v_of_other_head,  // in the second block
  k_of_two_blocks,  // the second half of a block of K is that of the other one
  v_panels_apart,   // the right half of V's columns lies a block further
  paged,            // nothing: parts of K and V lie in other heads by turns
};

constexpr int kKeys = 128, kDim = 128;

tilewright::Kernel attention(Defect defect) {
  tilewright::Kernel kernel("attention");
  const Dim keys = kernel.dim("keys"), heads = kernel.dim("heads");
  const Tensor Q = kernel.in("Q", bf16, {64, kDim});
  const Tensor K = kernel.in("K", bf16, {keys, heads, kDim});
  const Tensor V = kernel.in("V", bf16, {keys, heads, kDim});
  const Tensor O = kernel.out("O", f32, {64, kDim});
  kernel.ctas(1);
  Ring ring(kernel, "parts", stages(1),
            {{bf16, 64, kDim}, {bf16, kKeys, kDim}, {bf16, kKeys, kDim}});
  const auto load_part = [&](const Tensor& tensor, int rows, int head, int panel,
                             const SharedView& to) {
    tma_load(tensor(keys.block(rows, 32), head, Dim(kDim).block(panel, 64)), to);
  };
  const auto load_all = [&](const Slot& slot) {
    tma_load(Q(all, all), slot[0]);
    for (int part = 0; part < 4; ++part) {
      for (int panel = 0; panel < 2; ++panel) {
        int k_rows = part, v_rows = part, k_panel = panel;
        if (defect == Defect::k_behind) k_rows = part % 2;
        if (defect == Defect::k_and_v_crossed) v_rows = (part + 2) % 4;
        if (defect == Defect::halves_swapped) v_rows = part ^ 1;
        if (defect == Defect::panels_swapped) k_panel = 1 - panel;
        if (defect == Defect::k_of_two_blocks && part % 2) k_rows = 4 - part;
        if (defect == Defect::v_panels_apart && panel) v_rows = part ^ 2;
        if (defect == Defect::paged) k_rows = v_rows = part / 2;
        const int k_head = defect == Defect::paged && part % 2 == 0;
        const int v_head = defect == Defect::v_of_other_head ? part >= 2 : k_head;
        load_part(K, k_rows, k_head, k_panel, slot[1].rows(32 * part, 32).columns(64 * panel, 64));
        load_part(V, v_rows, v_head, panel, slot[2].rows(32 * part, 32).columns(64 * panel, 64));
      }
    }
  };
  kernel.roles({role("load", warps(1), registers(24), [&] { ring.produce(load_all); }),
                role("math", warpgroups(1), registers(240), [&] {
                  const Slot slot = ring.consume();
                  Var acc{zeros({64, kDim})};
                  for (int block = 0; block < 2; ++block) {
                    const SharedView k = slot[1].rows(64 * block, 64);
                    const SharedView v =
                        slot[2].rows(defect == Defect::v_not_advanced ? 0 : 64 * block, 64);
                    const Tile s = wait(wgmma(slot[0], k.T()));
                    const Tile weights = (s * 0.125f).cast(bf16);
                    acc = wait(wgmma(weights, v, acc));
                    const Tile sum = acc;
                    acc = sum * 0.5f;
                  }
                  ring.release(slot);
                  store(O(all, all), acc);
                })});
  return kernel;
}

Fault attention_fault(Defect defect, std::uint64_t seed) {
  ir::Kernel machine = attention(defect).finish();
  passes::lower_to_machine(machine);
  MachineTensor q("Q", DType::bf16, {64, kDim}), k("K", DType::bf16, {kKeys, 2, kDim}),
      v("V", DType::bf16, {kKeys, 2, kDim}), o("O", DType::f32, {64, kDim});
  Arguments arguments;
  for (MachineTensor* tensor : {&q, &k, &v, &o}) {
    from_float(tensor->dtype, tensor->values.data(), tensor->bytes.data(), tensor->values.size());
    arguments.tensors.push_back(tensor->argument());
  }
  return provenance_fault(run_machine(machine, arguments, checked(seed)));
}

TEST(MachineProvenance, AttentionIsClean) {
  for (std::uint64_t seed = 0; seed < kScheduledRuns; ++seed) {
    EXPECT_EQ(attention_fault(Defect::none, seed).message, "");
    EXPECT_EQ(attention_fault(Defect::paged, seed).message, "");
  }
}

struct Case {
  const char* name;
  Defect defect;
  std::vector<std::string> says;
};
void PrintTo(const Case& each, std::ostream* out) { *out << each.name; }

class MachineProvenanceOfAttention : public ::testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(
    Defects, MachineProvenanceOfAttention,
    ::testing::Values(
        Case{"VNotAdvanced",
             Defect::v_not_advanced,
             {"K[64, 0, 0]", "V[0, 0, 0]", "64 apart along keys"}},
        Case{"KBehind", Defect::k_behind, {"K[0, 0, 0]", "V[64, 0, 0]", "64 apart along keys"}},
        Case{"KAndVCrossed", Defect::k_and_v_crossed, {"K[0, 0, 0]", "V[64, 0, 0]"}},
        Case{"PanelsSwapped", Defect::panels_swapped, {"parts1", "64 apart along the sum, -64 in"}},
        Case{"HalvesSwapped", Defect::halves_swapped, {"32 apart along keys"}},
        Case{"VOfOtherHead", Defect::v_of_other_head, {"V[64, 1, 0]", "only that of"}},
        Case{"KOfTwoBlocks",
             Defect::k_of_two_blocks,
             {"parts1 is not one box of a tensor: behind K[31, 0, 0] lies K[96, 0, 0]"}},
        Case{"VPanelsApart",
             Defect::v_panels_apart,
             {"parts2 is not one box", "V[0, 0, 56] lies V[64, 0, 64]"}}),
    [](const auto& info) { return info.param.name; });

TEST_P(MachineProvenanceOfAttention, IsReportedWithBothLines) {
  for (std::uint64_t seed = 0; seed < kScheduledRuns; ++seed) {
    const Fault fault = attention_fault(GetParam().defect, seed);
    ASSERT_EQ(fault.kind, "provenance");
    for (const std::string& part : GetParam().says) EXPECT_THAT(fault.message, HasSubstr(part));
    EXPECT_THAT(fault.message, AllOf(HasSubstr("write  tma_load"), HasSubstr("read   wgmma_")));
    EXPECT_GT(fault.first.line, 0);
    EXPECT_GT(fault.second.line, 0);
    EXPECT_NE(fault.first.line, fault.second.line);
  }
}

}  // namespace
}  // namespace tilewright::simulator
