#include "tilewright/kernels/gemm.h"

#include <gtest/gtest.h>

#include "common/error_text.h"
#include "common/printing.h"
#include "kernels/gpu.h"
#include "tilewright/library.h"

namespace tilewright::kernels {
namespace {

using test::DeviceTensor;
using test::Padded;

class GemmGpuTest : public test::HopperTest {
 protected:
  struct Tensors {
    DeviceTensor a, b, c;
    std::vector<TensorRef> refs() const { return {a.ref(), b.ref(), c.ref()}; }
  };
  Tensors tensors(std::int64_t m, std::int64_t n, std::int64_t k, DType dtype) const {
    return {{device(), stream(), Padded::normal(dtype, {m, k}, 1)},
            {device(), stream(), Padded::normal(dtype, {n, k}, 2)},
            {device(), stream(), Padded(dtype, {m, n})}};
  }

  void check(const Executable& executable, std::int64_t m, std::int64_t n, std::int64_t k,
             DType dtype) const {
    SCOPED_TRACE(testing::Message() << m << " x " << n << " x " << k);
    Tensors t = tensors(m, n, k, dtype);
    executable.run(t.refs(), {}, stream().handle());
    t.c.download(stream());
    const LibraryKernel& library = find_kernel("gemm");
    const std::vector<std::vector<double>> wanted = library.reference(
        resolve_options(library, {}),
        {HostTensor::random_normal(dtype, {m, k}, 1), HostTensor::random_normal(dtype, {n, k}, 2)});
    EXPECT_LT(test::relative_error(t.c.host, wanted[0]), tolerance(dtype));
    EXPECT_EQ(t.c.host.written_outside(), 0);
  }
};

class GemmSchedules : public GemmGpuTest,
                      public testing::WithParamInterface<std::pair<int, DType>> {
 protected:
  Gemm options() const {
    Gemm g;
    g.share_b = GetParam().first;
    g.dtype = GetParam().second;
    return g;
  }
};
INSTANTIATE_TEST_SUITE_P(All, GemmSchedules,
                         testing::Values(std::pair{1, bf16}, std::pair{1, f16}, std::pair{2, bf16},
                                         std::pair{2, f16}),
                         [](const auto& info) {
                           return std::string(name_of(info.param.second)) + "_cluster" +
                                  std::to_string(info.param.first);
                         });

TEST_P(GemmSchedules, Lengths) {
  const Executable executable = compile(gemm_sm90(options()), "cuda");
  for (const std::int64_t m : {0, 1, 17, 129, 300, 517})
    check(executable, m, 136, 64, options().dtype);
  for (const std::int64_t n : {0, 8, 24, 136, 304, 520})
    check(executable, 129, n, 72, options().dtype);
  for (const std::int64_t k : {0, 8, 24, 136, 304, 520})
    check(executable, 300, 264, k, options().dtype);
}

TEST_F(GemmGpuTest, AutomaticSchedule) {
  const Executable executable = compile(gemm({}), "cuda");
  for (const std::int64_t m : {0, 1, 129, 517}) check(executable, m, 264, 200, bf16);
  check(executable, 1500, 4104, 0, bf16);
}

TEST_P(GemmSchedules, MoreTilesThanMultiprocessors) {
  check(compile(gemm_sm90(options()), "cuda"), 1500, 4104, 136, options().dtype);
}

TEST_P(GemmSchedules, EveryLaunchGivesTheSameBits) {
  const Executable executable = compile(gemm_sm90(options()), "cuda");
  const Tensors t = tensors(517, 2056, 328, options().dtype);
  std::vector<std::byte> first;
  for (int launch = 0; launch < 10; ++launch) {
    t.c.poison(stream());
    executable.run(t.refs(), {}, stream().handle());
    const std::vector<std::byte> bits = t.c.bits(stream());
    if (launch == 0) first = bits;
    ASSERT_EQ(bits, first) << "launch " << launch;
  }
}

TEST_F(GemmGpuTest, MisalignedTensorsAreRefused) {
  const Executable executable = compile(gemm_sm90({}), "cuda");
  const Tensors t = tensors(64, 64, 64, bf16);
  for (const std::ptrdiff_t offset : {1, 2, 8}) {
    const std::string error = test::usage_error_of([&] {
      executable.run({t.a.ref(), t.b.ref(offset), t.c.ref()}, {}, stream().handle());
    });
    EXPECT_NE(error.find("B"), std::string::npos) << error;
    EXPECT_NE(error.find("16"), std::string::npos) << error;
  }
}

}  // namespace
}  // namespace tilewright::kernels
