#include <gmock/gmock.h>

#include "common/error_text.h"
#include "common/programs.h"
#include "tilewright/kernels/gemm.h"
#include "tilewright/library_executable.h"

namespace tilewright {
namespace {

using test::usage_error_of;
using testing::HasSubstr;

// What was moved from holds nothing, and every call of it is an error.
template <class Executable, class... Call>
void expect_refused(Executable moved, const Call&... calls) {
  const Executable taken = std::move(moved);
  const auto expect = [&](const auto& call) {
    EXPECT_THAT(usage_error_of([&] { call(moved); }), HasSubstr("it was moved from"));
  };
  (expect(calls), ...);
}

TEST(MovedFromTest, AKernelsExecutable) {
  HostTensor tensor = HostTensor::poisoned(f32, {1});
  expect_refused(
      compile(kernels::gemm({}), "interpreter"), [](const auto& e) { e.target(); },
      [&](const auto& e) { e.run({ref(tensor)}); },
      [&](const auto& e) { e.prepare({ref(tensor)}); });
}

TEST(MovedFromTest, ALibraryKernelsExecutable) {
  const LibraryKernel& gemm = find_kernel("gemm");
  HostTensor tensor = HostTensor::poisoned(f32, {1});
  expect_refused(
      compile(gemm, resolve_options(gemm, {"schedule=tile"}), "interpreter"),
      [&](const auto& e) { e.run({ref(tensor)}); },
      [&](const auto& e) { e.prepare({ref(tensor)}); }, [](const auto& e) { e.prepare(); },
      [](const auto& e) { e.variants(); });
}

TEST(MovedFromTest, AProgramsExecutable) {
  Program program("scaled");
  const Buffer x = program.in("x", f32, {test::kRows, test::kColumns});
  const Buffer y = program.out("y", f32, {test::kRows, test::kColumns});
  program.rank(0).stream().launch(test::scale(), {x, y}, {2});
  ProgramMemory memory(program);
  expect_refused(
      compile(program, "interpreter"), [](const auto& e) { e.run(std::vector<TensorRef>{}); },
      [](const auto& e) { e.prepare({}); }, [&](auto& e) { e.load(memory); },
      [](auto& e) { e.run(1); }, [&](const auto& e) { e.store(memory); });
}

}  // namespace
}  // namespace tilewright
