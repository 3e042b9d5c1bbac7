#include "codegen/print.h"
#include "compiler/build.h"
#include "compiler/compiled.h"
#include "compiler/device_tensors.h"
#include "runtime/device.h"
#include "runtime/nvrtc_available.h"
#include "simulator/tensor_litmus.h"

// Tensor memory on hardware, which scripts/first_light runs on the first GPU that has it: the same
// bits as in the model. No such GPU has run it yet.
namespace tilewright::simulator {
namespace {

struct TensorCase {
  std::string name, text;
};
void PrintTo(const TensorCase& each, std::ostream* out) { *out << each.name; }

std::string with(const std::string& from, const std::string& to) {
  std::string text = tensor_litmus::kernel();
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

// Each is clean in the model, whatever the order of the work.
std::vector<TensorCase> tensor_cases() {
  namespace t = tensor_litmus;
  const std::string stored =
      "    tcgen05_st %5, %43, %30 {count = 64, register = 0}\n"
      "    tcgen05_wait_st\n";
  return {
      {"Products", t::kernel()},
      {"OneProduct", with(t::products(), t::product(0, "%11"))},
      {"StoredAndLoadedAgain", with(t::kBefore, stored + t::kTensorLoad + t::kLoaded + t::kBefore)},
      {"OperandsThatAreCopied", t::copied_kernel()},
      {"RowsThatAreShifted", with(t::kCommit, "    tcgen05_shift %5, %40\n" + t::kCommit)},
      {"ColumnsThatAreTakenTwice",
       with(t::kCommit, t::kCommit + t::kSecond + "    tcgen05_dealloc %6, %45\n")},
      {"AFreshBarrierPassesThePhaseBefore",
       with(t::kAlloc, t::kAlloc + "    mbarrier_wait %24, %7, %7\n")},
  };
}

class TensorMemoryOnTheGpu : public testing::TestWithParam<TensorCase> {};
class TensorMemoryForTheGpu : public testing::TestWithParam<TensorCase> {};
const auto name_of_case = [](const auto& info) { return info.param.name; };
INSTANTIATE_TEST_SUITE_P(Rules, TensorMemoryOnTheGpu, testing::ValuesIn(tensor_cases()),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(Rules, TensorMemoryForTheGpu, testing::ValuesIn(tensor_cases()),
                         name_of_case);

compiler::GpuProgram tensor_program(const TensorCase& given) {
  compiler::GpuProgram program;
  program.machine = ir::parse_text(given.text, "kernel.tw");
  ir::verify(program.machine);
  program.source = codegen::print_cuda(program.machine);
  return program;
}

TEST_P(TensorMemoryOnTheGpu, AgreesWithTheModel) {
  const runtime::Device* device = nullptr;
  try {
    device = &runtime::Device::get();
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  if (device->info().arch() != "sm_100a") {
    GTEST_SKIP() << device->info().name << " is a GPU of " << device->info().arch()
                 << ", and the kernels are of sm_100a";
  }
  const tensor_litmus::Execution model(GetParam().text);
  ASSERT_TRUE(model.report.ok()) << first_message(model.report);
  compiler::GpuProgram program = tensor_program(GetParam());
  runtime::Build build = compiler::build(program, "sm_100a");
  const compiler::CompiledKernel kernel(std::move(program), std::move(build), *device);
  const runtime::Stream stream(*device);
  tensor_litmus::Execution real;
  std::vector<runtime::DeviceBuffer> buffers;
  std::vector<TensorRef> refs;
  for (MachineTensor* tensor : {&real.a, &real.b, &real.y}) {
    buffers.emplace_back(*device, tensor->bytes.size(), tensor->name);
    buffers.back().upload(tensor->bytes.data(), tensor->bytes.size(), stream);
    const TensorArgument argument = tensor->argument();
    refs.push_back({buffers.back().data(), tensor->dtype, argument.shape, argument.strides});
  }
  kernel.launch(stream, refs, {});
  buffers[2].download(real.y.bytes.data(), real.y.bytes.size(), stream);
  stream.synchronize();
  real.y.read_back();
  EXPECT_EQ(real.y.bytes, model.y.bytes);
}

// Needs no GPU.
TEST_P(TensorMemoryForTheGpu, IsCleanInTheModelAndBuilds) {
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const tensor_litmus::Execution model(GetParam().text, seed);
    ASSERT_TRUE(model.report.ok()) << first_message(model.report);
  }
  if (const std::string why = runtime::why_no_nvrtc("sm_100a"); !why.empty()) GTEST_SKIP() << why;
  EXPECT_FALSE(compiler::build(tensor_program(GetParam()), "sm_100a").kernel.cubin.empty());
}

}  // namespace
}  // namespace tilewright::simulator
