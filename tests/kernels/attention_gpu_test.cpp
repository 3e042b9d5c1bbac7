#include "tilewright/kernels/attention.h"

#include <gtest/gtest.h>

#include "common/error_text.h"
#include "kernels/gpu.h"
#include "tilewright/library.h"

namespace tilewright::kernels {
namespace {

using test::DeviceTensor;
using test::kLseTolerance;
using test::Padded;

struct Lengths {
  std::int64_t batch, queries, keys;
};

Attention attention(DType dtype, int dim, bool causal = false, int window = 0, int dim_v = 0) {
  Attention a;
  a.heads = 4;
  a.kv_heads = 2;
  a.dtype = dtype;
  a.dim = dim;
  a.dim_v = dim_v > 0 ? dim_v : dim;
  a.causal = causal;
  a.window = window;
  return with_sm90_blocks(a);
}

std::string setting(const char* name, std::int64_t value) {
  return std::string(name) + "=" + std::to_string(value);
}

class AttentionGpuTest : public test::HopperTest {
 protected:
  struct Tensors {
    DeviceTensor q, k, v, o, lse;
    std::vector<TensorRef> refs() const { return {q.ref(), k.ref(), v.ref(), o.ref(), lse.ref()}; }
    void poison(const runtime::Stream& stream) const {
      o.poison(stream);
      lse.poison(stream);
    }
    std::vector<std::byte> bits(const runtime::Stream& stream) const {
      std::vector<std::byte> bits = o.bits(stream);
      const std::vector<std::byte> more = lse.bits(stream);
      bits.insert(bits.end(), more.begin(), more.end());
      return bits;
    }
  };
  static std::vector<std::vector<std::int64_t>> shapes(const Attention& a, const Lengths& l) {
    return {{l.batch, l.queries, a.heads, a.dim},
            {l.batch, l.keys, a.kv_heads, a.dim},
            {l.batch, l.keys, a.kv_heads, a.dim_v}};
  }
  Tensors tensors(const Attention& a, const Lengths& l) const {
    const auto shape = shapes(a, l);
    return {{device(), stream(), Padded::normal(a.dtype, shape[0], 1)},
            {device(), stream(), Padded::normal(a.dtype, shape[1], 2)},
            {device(), stream(), Padded::normal(a.dtype, shape[2], 3)},
            {device(), stream(), Padded(a.dtype, {l.batch, l.queries, a.heads, a.dim_v})},
            {device(), stream(), Padded(f32, {l.batch, a.heads, l.queries})}};
  }

  void check(const Executable& executable, const Attention& a, const Lengths& l) const {
    SCOPED_TRACE(testing::Message()
                 << l.batch << " x " << l.queries << " queries x " << l.keys << " keys");
    Tensors t = tensors(a, l);
    executable.run(t.refs(), {}, stream().handle());
    t.o.download(stream());
    t.lse.download(stream());
    const auto shape = shapes(a, l);
    const LibraryKernel& library = find_kernel("attention_forward");
    const std::vector<std::vector<double>> wanted = library.reference(
        resolve_options(
            library,
            {setting("batch", l.batch), setting("queries", l.queries), setting("keys", l.keys),
             setting("heads", a.heads), setting("kv_heads", a.kv_heads), setting("dim", a.dim),
             setting("dim_v", a.dim_v), setting("causal", a.causal), setting("window", a.window)}),
        {HostTensor::random_normal(a.dtype, shape[0], 1),
         HostTensor::random_normal(a.dtype, shape[1], 2),
         HostTensor::random_normal(a.dtype, shape[2], 3)});
    EXPECT_LT(test::relative_error(t.o.host, wanted[0]), tolerance(a.dtype));
    EXPECT_LT(test::relative_error(t.lse.host, wanted[1]), kLseTolerance);
    EXPECT_EQ(t.o.host.written_outside(), 0);
    EXPECT_EQ(t.lse.host.written_outside(), 0);
  }
};

struct Variant {
  const char* name;
  DType dtype;
  int dim;
  bool causal;
  int window;
  int dim_v = 0;  // 0: dim
};
void PrintTo(const Variant& variant, std::ostream* out) { *out << variant.name; }
class AttentionVariants : public AttentionGpuTest, public testing::WithParamInterface<Variant> {
 protected:
  Attention options() const {
    const Variant& v = GetParam();
    return attention(v.dtype, v.dim, v.causal, v.window, v.dim_v);
  }
};
INSTANTIATE_TEST_SUITE_P(
    All, AttentionVariants,
    testing::Values(
        Variant{"bf16_64", bf16, 64, false, 0}, Variant{"bf16_128", bf16, 128, false, 0},
        Variant{"f16_64", f16, 64, false, 0}, Variant{"f16_128", f16, 128, false, 0},
        Variant{"bf16_64_causal", bf16, 64, true, 0},
        Variant{"bf16_128_causal", bf16, 128, true, 0}, Variant{"f16_64_causal", f16, 64, true, 0},
        Variant{"f16_128_causal", f16, 128, true, 0}, Variant{"bf16_64_window", bf16, 64, true, 60},
        Variant{"bf16_128_window", bf16, 128, true, 200},
        Variant{"f16_64_window1", f16, 64, true, 1}, Variant{"f16_128_window", f16, 128, true, 130},
        Variant{"bf16_80", bf16, 80, false, 0}, Variant{"bf16_96_causal", bf16, 96, true, 0},
        Variant{"bf16_160_causal", bf16, 160, true, 0}, Variant{"bf16_192", bf16, 192, false, 0},
        Variant{"bf16_192_128_causal", bf16, 192, true, 0, 128},
        Variant{"bf16_256", bf16, 256, false, 0}, Variant{"f16_256_causal", f16, 256, true, 0},
        Variant{"bf16_256_window", bf16, 256, true, 100}),
    [](const auto& info) { return info.param.name; });

TEST_P(AttentionVariants, Lengths) {
  const Executable executable = compile(attention_forward_sm90(options()), "cuda");
  const std::int64_t lengths[] = {0, 1, 17, 129, 300, 517};
  for (const std::int64_t queries : lengths) {
    for (const std::int64_t keys : lengths) check(executable, options(), {1, queries, keys});
  }
  check(executable, options(), {3, 200, 150});
  check(executable, options(), {0, 128, 128});
}

TEST_P(AttentionVariants, AutomaticSchedule) {
  const Executable executable = compile(attention_forward(with_tile_blocks(options())), "cuda");
  for (const Lengths& l :
       {Lengths{1, 0, 128}, {1, 17, 0}, {2, 129, 300}, {1, 517, 129}, {2, 2400, 300}}) {
    check(executable, options(), l);
  }
}

TEST_P(AttentionVariants, MoreTilesThanMultiprocessors) {
  check(compile(attention_forward_sm90(options()), "cuda"), options(), {2, 2400, 300});
}

TEST_P(AttentionVariants, EveryLaunchGivesTheSameBits) {
  const Executable executable = compile(attention_forward_sm90(options()), "cuda");
  const Tensors t = tensors(options(), {2, 2400, 517});
  std::vector<std::byte> first;
  for (int launch = 0; launch < 10; ++launch) {
    t.poison(stream());
    executable.run(t.refs(), {}, stream().handle());
    const std::vector<std::byte> bits = t.bits(stream());
    if (launch == 0) first = bits;
    ASSERT_EQ(bits, first) << "launch " << launch;
  }
}

TEST_F(AttentionGpuTest, SharedHeads) {
  for (const int kv_heads : {1, 4}) {
    Attention a = attention(bf16, 64, true);
    a.kv_heads = kv_heads;
    check(compile(attention_forward_sm90(a), "cuda"), a, {2, 129, 300});
  }
}

// Each stream has a workspace of its own: launches that overlap must not take each other's tiles.
// A causal mask makes tiles so unequal that some CTAs end, and let those of the other launch in,
// while others have tiles left to take.
TEST_F(AttentionGpuTest, TwoStreamsAtOnce) {
  const Attention a = attention(bf16, 128, true);
  const Executable executable = compile(attention_forward_sm90(a), "cuda");
  const runtime::Stream other(device());
  const Tensors mine = tensors(a, {2, 2400, 2400}), its = tensors(a, {2, 1500, 2400});
  executable.run(mine.refs(), {}, stream().handle());
  executable.run(its.refs(), {}, stream().handle());
  const std::vector<std::byte> my_bits = mine.bits(stream()), its_bits = its.bits(stream());
  for (int round = 0; round < 20; ++round) {
    // Poisoned before each launch: what one leaves out, the launch before it must not have written.
    for (int launch = 0; launch < 3; ++launch) {
      mine.poison(stream());
      executable.run(mine.refs(), {}, stream().handle());
      its.poison(other);
      executable.run(its.refs(), {}, other.handle());
    }
    ASSERT_EQ(mine.bits(stream()), my_bits) << "round " << round;
    ASSERT_EQ(its.bits(other), its_bits) << "round " << round;
  }
}

TEST_F(AttentionGpuTest, MisalignedTensorsAreRefused) {
  const Attention a = attention(bf16, 64);
  const Executable executable = compile(attention_forward_sm90(a), "cuda");
  const Tensors t = tensors(a, {1, 64, 64});
  for (const std::ptrdiff_t offset : {1, 2, 8}) {
    const std::string error = test::usage_error_of([&] {
      executable.run({t.q.ref(), t.k.ref(offset), t.v.ref(), t.o.ref(), t.lse.ref()}, {},
                     stream().handle());
    });
    EXPECT_NE(error.find("K"), std::string::npos) << error;
    EXPECT_NE(error.find("16"), std::string::npos) << error;
  }
  const std::string error = test::usage_error_of([&] {
    executable.run({t.q.ref(), t.k.ref(), t.v.ref(), t.o.ref(), t.lse.ref(2)}, {},
                   stream().handle());
  });
  EXPECT_NE(error.find("tensor LSE of f32"), std::string::npos) << error;
}

}  // namespace
}  // namespace tilewright::kernels
