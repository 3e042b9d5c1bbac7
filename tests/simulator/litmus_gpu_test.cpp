#include "compiler/build.h"
#include "compiler/compiled.h"
#include "compiler/device_tensors.h"
#include "kernels/gpu.h"
#include "simulator/litmus.h"

// Litmus tests on hardware: what the simulated GPU calls clean computes there what it computes
// here. Whose outcome is a hang or whatever comes first is left out.
namespace tilewright::simulator {
namespace {

struct GpuCase {
  std::string name;
  std::string text;
  int x = 0;    // the first element of X afterwards
  float y = 0;  // every element of Y; -1: those of A
};
void PrintTo(const GpuCase& each, std::ostream* out) { *out << each.name; }

std::string count(int id, int element, int value) {
  return fmt::format("    %{}: i32 = atomic_add %90, %{}, %{}\n", id, element, value);
}
const std::string kAddIt =
    "    %60: i32 = shared_load %22, %0\n    %61: i32 = atomic_add %90, %0, %60\n";

std::vector<GpuCase> barriers() {
  const std::string parity_one = "    mbarrier_wait %20, %0, %1\n";
  const std::string arrive = "    named_arrive %0 {first = 1, threads = 64}\n";
  const std::string sync = "    named_sync %0 {first = 1, threads = 64}\n";
  const std::string pair = "  %40: i32 = cluster_rank\n  %41: i32 = sub %1, %40\n";
  return {
      {"FreshBarrierPassesParityOne", litmus(role("one", 0, 1, parity_one + count(60, 0, 1))), 1},
      {"OneFlipPassesParityZero", litmus(role("one", 0, 1, kArrive + kWait + count(60, 0, 1))), 1},
      {"MbarrierHandsOn",
       litmus(role("writer", 0, 1, kStore + kArrive) + role("reader", 1, 1, kWait + kAddIt)), 7},
      {"NamedArrivalHandsOn",
       litmus(role("writer", 0, 1, kStore + arrive) + role("reader", 1, 1, sync + kAddIt)), 7},
      {"WarpSyncHandsOn", litmus(role("one", 0, 1, kStore + "    warp_sync\n" + kAddIt)), 7},
      {"RemoteArrivalCompletesThePeersPhase",
       litmus(pair + "  mbarrier_arrive %20, %0, %41\n  mbarrier_wait %20, %0, %0\n" +
                  role("one", 0, 1, count(60, 0, 3)) + "  cluster_sync\n",
              {1, 128, 2}),
       6},
      {"IncreaseWaitsForADecrease",
       litmus(role("less", 0, 4, "    set_max_registers {count = 160, increase = 0}\n") +
                  role("more", 4, 4,
                       "    set_max_registers {count = 176, increase = 1}\n" + count(60, 0, 1)),
              {1, 384}),
       4},
      {"AtomicAdditionsOfCtasAddUp", litmus(role("one", 0, 1, count(60, 0, 5)), {1, 128, 1, 20}),
       100},
  };
}

std::vector<GpuCase> proxies() {
  const std::string sync = "    named_sync %0 {first = 1, threads = 64}\n";
  const std::string fence = "    fence_proxy_async\n";
  const std::string product_of_ones =
      "    fill %33, %27\n    named_sync %0 {first = 1, threads = 160}\n    wgmma_fence %33, "
      "%32\n" +
      product() +
      "    wgmma_commit\n    wgmma_wait %33 {count = 0}\n"
      "    compute %30, %33 {function = cast, maps = maps[[1:8:1]]}\n"
      "    store_registers %92, %30, %0, %0, %16, %16 {sizes = [64, 16], layout = "
      "register_layout[64x16|r:2@1:1,2@0:8,2@1:8|l:4@1:2,8@0:1|w:4@0:16]}\n";
  const std::string write_ones =
      "    store_elements %30, %23, %0 {layout = register_layout[16x16|r:8@1:2|l:2@1:1,16@0:1], "
      "row_bytes = 16, swizzle_divisor = 1, swizzle_mask = 0, panel_columns = 8, panel_bytes = "
      "256}\n" +
      fence + "    named_sync %0 {first = 1, threads = 160}\n";
  return {
      {"CopyIsStored", litmus(role("one", 0, 1, copy_tile_out() + kBulkWait)), 0, -1},
      {"SecondCopyIsWaitedFor",
       litmus(role("one", 0, 1,
                   store_tile() + fence + "    warp_sync\n" + copy_tile_in() +
                       "    mbarrier_wait %21, %1, %0\n" + copy_tile_out() + kBulkWait)),
       0, -1},
      {"FenceByTheWriter",
       litmus(role("writer", 0, 1, store_tile() + fence + sync) +
              role("storer", 1, 1, sync + copy_tile_out() + kBulkWait)),
       0, 1},
      {"FenceByTheIssuer",
       litmus(role("writer", 0, 1, store_tile() + sync) +
              role("storer", 1, 1, sync + fence + copy_tile_out() + kBulkWait)),
       0, 1},
      {"SourceIsFreedByTheWaitForReads",
       litmus(
           role("storer", 0, 1,
                copy_tile_out() + "    bulk_wait {count = 0, read = 1}\n" + kArrive + kBulkWait) +
           role("writer", 1, 1, kWait + store_tile())),
       0, -1},
      {"ProductReadsWhatThreadsWrote",
       litmus("  %27: f32 = constant {value = 0.0}\n" + role("math", 0, 4, product_of_ones) +
                  role("writer", 4, 1, write_ones),
              {1, 256}),
       0, 16},
  };
}

std::vector<GpuCase> all_cases() {
  std::vector<GpuCase> cases = barriers();
  for (GpuCase& each : proxies()) cases.push_back(std::move(each));
  return cases;
}

struct Tensors {
  MachineTensor x{"X", DType::i32, {64}}, a{"A", DType::bf16, {16, 16}},
      y{"Y", DType::bf16, {16, 16}};
  Tensors() {
    std::fill(x.bytes.begin(), x.bytes.end(), std::byte{0});
    a.randomise(1);
  }
};

void expect_results(const GpuCase& given, const Tensors& tensors) {
  EXPECT_EQ(tensors.x.integer(0), given.x);
  for (std::size_t i = 0; i < tensors.y.values.size() && given.y != 0; ++i) {
    ASSERT_EQ(tensors.y.values[i], given.y < 0 ? tensors.a.values[i] : given.y) << i;
  }
}

compiler::GpuProgram program_of(const GpuCase& given) {
  compiler::GpuProgram program;
  program.machine = ir::parse_text(given.text, "kernel.tw");
  ir::verify(program.machine);
  program.source = codegen::print_cuda(program.machine);
  return program;
}

class LitmusOnTheGpu : public test::HopperTest, public ::testing::WithParamInterface<GpuCase> {};
INSTANTIATE_TEST_SUITE_P(Rules, LitmusOnTheGpu, ::testing::ValuesIn(all_cases()),
                         [](const auto& info) { return info.param.name; });

TEST_P(LitmusOnTheGpu, AgreesWithTheModel) {
  compiler::GpuProgram program = program_of(GetParam());
  runtime::Build build = compiler::build(program, "sm_90a");
  const compiler::CompiledKernel kernel(std::move(program), std::move(build), device());
  Tensors tensors;
  std::vector<runtime::DeviceBuffer> buffers;
  std::vector<TensorRef> refs;
  for (MachineTensor* tensor : {&tensors.x, &tensors.a, &tensors.y}) {
    buffers.emplace_back(device(), tensor->bytes.size(), tensor->name);
    buffers.back().upload(tensor->bytes.data(), tensor->bytes.size(), stream());
    const TensorArgument argument = tensor->argument();
    refs.push_back({buffers.back().data(), tensor->dtype, argument.shape, argument.strides});
  }
  kernel.launch(stream(), refs, {});
  buffers[0].download(tensors.x.bytes.data(), tensors.x.bytes.size(), stream());
  buffers[2].download(tensors.y.bytes.data(), tensors.y.bytes.size(), stream());
  stream().synchronize();
  tensors.y.read_back();
  expect_results(GetParam(), tensors);
}

// Needs no GPU: what hardware is to run is clean here, computes the same and is accepted by NVRTC.
class LitmusForTheGpu : public ::testing::TestWithParam<GpuCase> {};
INSTANTIATE_TEST_SUITE_P(Rules, LitmusForTheGpu, ::testing::ValuesIn(all_cases()),
                         [](const auto& info) { return info.param.name; });

TEST_P(LitmusForTheGpu, IsCleanInTheModel) {
  for (std::uint64_t seed = 0; seed < kLitmusSeeds; ++seed) {
    Tensors tensors;
    const MachineReport report =
        run_seed(GetParam().text, {&tensors.x, &tensors.a, &tensors.y}, seed);
    ASSERT_TRUE(report.ok()) << first_message(report);
    expect_results(GetParam(), tensors);
  }
}

TEST_P(LitmusForTheGpu, Builds) {
  try {
    runtime::Nvrtc::get();
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  const compiler::GpuProgram program = program_of(GetParam());
  const runtime::Build build = compiler::build(program, "sm_90a");
  const auto* resources = build.kernel.report.find(program.source.entry);
  // What set_max_registers counts with: else it would wait for ever.
  if (resources && GetParam().text.find("set_max_registers") != std::string::npos) {
    EXPECT_EQ(resources->registers, 168);
  }
}

}  // namespace
}  // namespace tilewright::simulator
