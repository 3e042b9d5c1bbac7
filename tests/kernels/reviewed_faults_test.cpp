#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "ir/program.h"
#include "tilewright/check_gradients.h"
#include "tilewright/compile.h"
#include "tilewright/error.h"
#include "tilewright/kernels/attention.h"
#include "tilewright/library.h"

// Faults that reviewers found in published programs for gradients of attention with shared heads
// and packed sequences. Here none of them is: a test for each.
namespace tilewright {
namespace {

using kernels::Attention;

Attention shared_attention(int heads, int kv_heads) {
  Attention a;
  a.heads = heads;
  a.kv_heads = kv_heads;
  a.dim = a.dim_v = 16;
  a.block_q = a.block_k = 16;
  return a;
}

// "The parts of dK and dV of each head that shares keys are added up in 16 bits": each addition
// then rounds, and the error grows with the heads. Here a CTA adds all of them in f32 and rounds
// once, so that 64 heads err by no more than one does.
TEST(ReviewedFaults, GradientsOfSharedHeadsAreAddedInF32) {
  const auto errors = [](int heads, bool packed) {
    const Attention a = shared_attention(heads, 1);
    GradientOptions options;
    options.directions = 1;
    GradientReport report;
    if (packed) {
      options.inputs = {{"cu_seqlens_q", HostTensor::from_values(i32, {3}, {0, 20, 33})},
                        {"cu_seqlens_k", HostTensor::from_values(i32, {3}, {0, 17, 40})}};
      options.sizes = {{"total_queries", 33}, {"total_keys", 40}};
      report = check_gradients(kernels::attention_varlen_forward(a),
                               kernels::attention_varlen_backward(a), options);
    } else {
      options.sizes = {{"batch", 1}, {"queries", 33}, {"keys", 40}};
      report =
          check_gradients(kernels::attention_forward(a), kernels::attention_backward(a), options);
    }
    EXPECT_TRUE(report.ok()) << report.text();
    return report.gradients;
  };
  for (const bool packed : {false, true}) {
    const std::vector<GradientCheck> one = errors(1, packed), many = errors(64, packed);
    for (const std::size_t gradient : {1, 2}) {  // dK, dV
      EXPECT_GT(one[gradient].own_error, 1e-3);
      EXPECT_LT(many[gradient].own_error, 1.2 * one[gradient].own_error)
          << many[gradient].gradient << (packed ? ", packed" : "");
    }
  }
}

// "Gradients are added in memory by one atomic for each element": the language has none of floating
// numbers, and every operation of a kernel of ours that writes a gradient stores a tile of it.
TEST(ReviewedFaults, NoGradientIsAddedElementByElement) {
  try {
    Kernel kernel("adds");
    const Tensor dQ = kernel.inout("dQ", f32, {64});
    const auto [x] = kernel.grid(64);
    atomic_add(dQ(x), 1);
    ADD_FAILURE() << "nothing was raised";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("dQ is not one element of an i32 vector"));
  }
  for (const char* name : {"attention_backward", "attention_varlen_backward"}) {
    const LibraryKernel& entry = find_kernel(name);
    const OptionValues options =
        resolve_options(entry, {"heads=8", "kv_heads=2", "dim=64", "sinks=true"});
    const Program program = build_program(entry, {nullptr, options, {}});
    std::set<std::string> written;
    for (const auto& kernel : program.finish().kernels) {
      ir::for_each(kernel->body, [&](const ir::Operation& operation) {
        if (!ir::info(operation.op).writes(ir::Memory::global)) return;
        ASSERT_EQ(operation.op, ir::Op::store) << kernel->name;
        const ir::Parameter* tensor = kernel->parameter_of(operation.operands[0]);
        ASSERT_NE(tensor, nullptr);
        written.insert(tensor->name);
        const bool is_wide = tensor->name == "dQ" || tensor->name == "dK" || tensor->name == "dV";
        if (is_wide) {
          EXPECT_GE(kernel->type(operation.operands[1]).elements(), 64 * 64) << tensor->name;
        }
      });
    }
    EXPECT_THAT(written, testing::ElementsAre("D", "L", "dK", "dQ", "dV", "dsinks")) << name;
  }
}

struct GradientTensors {
  HostTensor q, k, v, o, lse, dout, dq, dk, dv;
  std::vector<HostTensor> offsets;
};

std::vector<TensorRef> inputs_of(GradientTensors& t) {
  std::vector<TensorRef> inputs = {ref(t.q), ref(t.k), ref(t.v)};
  for (HostTensor& each : t.offsets) inputs.push_back(ref(each));
  return inputs;
}

void run_forward(const Attention& a, GradientTensors& t) {
  std::vector<TensorRef> tensors = inputs_of(t);
  for (HostTensor* each : {&t.o, &t.lse}) tensors.push_back(ref(*each));
  compile(t.offsets.empty() ? kernels::attention_forward(a) : kernels::attention_varlen_forward(a),
          "interpreter")
      .run(tensors);
}

void run_backward(const Attention& a, const char* target, GradientTensors& t) {
  std::vector<TensorRef> tensors = inputs_of(t);
  for (HostTensor* each : {&t.o, &t.lse, &t.dout, &t.dq, &t.dk, &t.dv}) {
    tensors.push_back(ref(*each));
  }
  compile(
      t.offsets.empty() ? kernels::attention_backward(a) : kernels::attention_varlen_backward(a),
      target)
      .run(tensors);
}

GradientTensors random_gradient_tensors(const std::vector<std::int64_t>& of_queries,
                                        const std::vector<std::int64_t>& of_keys,
                                        const std::vector<std::int64_t>& of_rows) {
  const auto random = [](const std::vector<std::int64_t>& shape, std::uint64_t seed) {
    return HostTensor::random_normal(bf16, shape, seed);
  };
  const auto empty = [](const std::vector<std::int64_t>& shape) {
    return HostTensor::poisoned(bf16, shape);
  };
  return {random(of_queries, 1),
          random(of_keys, 2),
          random(of_keys, 3),
          empty(of_queries),
          HostTensor::poisoned(f32, of_rows),
          random(of_queries, 4),
          empty(of_queries),
          empty(of_keys),
          empty(of_keys),
          {}};
}

// "The mask is written into the sums before the product, which then overwrites it". Here the mask
// is applied to the product: keys that a query does not see change nothing of its dQ, however large
// their scores would be.
TEST(ReviewedFaults, HiddenKeysStayHiddenBehindTheProduct) {
  constexpr std::int64_t kRows = 40, kSeen = 21;
  Attention a = shared_attention(2, 1);
  a.causal = true;
  for (const char* target : {"interpreter", "sim:sm_90a"}) {
    SCOPED_TRACE(target);
    if (std::string(target) != "interpreter") a.dim = a.dim_v = a.block_q = a.block_k = 64;
    const std::int64_t dim = a.dim;
    GradientTensors plain =
        random_gradient_tensors({1, kRows, 2, dim}, {1, kRows, 1, dim}, {1, 2, kRows});
    run_forward(a, plain);
    // With the same O and LSE: these hang on no hidden key either, but for their last bits.
    GradientTensors large = plain;
    for (std::int64_t i = kSeen * dim; i < kRows * dim; ++i) {
      large.k.set_flat(i, 40 * plain.k.flat(i));
      large.v.set_flat(i, 40 * plain.v.flat(i));
    }
    run_backward(a, target, plain);
    run_backward(a, target, large);
    std::int64_t changed = 0;
    for (std::int64_t i = 0; i < plain.dq.elements(); ++i) {
      const bool is_seen = i < kSeen * 2 * dim;
      if (is_seen) {
        ASSERT_EQ(plain.dq.flat(i), large.dq.flat(i)) << i;
      }
      changed += !is_seen && plain.dq.flat(i) != large.dq.flat(i);
    }
    EXPECT_GT(changed, 0) << "the keys are large enough to show";
  }
}

// "NaN in what pads the sums of a row, LSE and delta, comes into dK". Rows of no sequence, and a
// sequence of NaN between two others, leave these as they are; also where a tile of rows ends
// inside of a sequence.
TEST(ReviewedFaults, NaNOutsideOfASequenceReachesNoGradient) {
  constexpr std::int64_t kQueries = 60, kKeys = 50, kHeads = 2;
  const double nan = std::nan("");
  // Sequences of 17, 9 and 21 queries, and of 20, 8 and 15 keys; 13 and 7 rows belong to none.
  const std::vector<double> queries = {0, 17, 26, 47}, keys = {0, 20, 28, 43};
  for (const char* target : {"interpreter", "sim:sm_90a"}) {
    SCOPED_TRACE(target);
    Attention a = shared_attention(kHeads, 1);
    if (std::string(target) != "interpreter") a.dim = a.dim_v = a.block_q = a.block_k = 64;
    const std::int64_t dim = a.dim;
    GradientTensors plain =
        random_gradient_tensors({kQueries, kHeads, dim}, {kKeys, 1, dim}, {kHeads, kQueries});
    plain.offsets = {HostTensor::from_values(i32, {4}, queries),
                     HostTensor::from_values(i32, {4}, keys)};
    GradientTensors padded = plain;
    const auto is_other = [](const std::vector<double>& starts, std::int64_t row) {
      return row >= starts[3] || (row >= starts[1] && row < starts[2]);
    };
    for (std::int64_t row = 0; row < kQueries; ++row) {
      if (!is_other(queries, row)) continue;
      for (std::int64_t i = 0; i < kHeads * dim; ++i) {
        padded.q.set_flat(row * kHeads * dim + i, nan);
        padded.dout.set_flat(row * kHeads * dim + i, nan);
      }
    }
    for (std::int64_t row = 0; row < kKeys; ++row) {
      if (!is_other(keys, row)) continue;
      for (std::int64_t i = 0; i < dim; ++i) {
        padded.k.set_flat(row * dim + i, nan);
        padded.v.set_flat(row * dim + i, nan);
      }
    }
    for (GradientTensors* each : {&plain, &padded}) {
      run_forward(a, *each);  // O and LSE of these rows are NaN too
      run_backward(a, target, *each);
    }
    ASSERT_TRUE(std::isnan(padded.lse.at({0, 20})));
    const auto compare = [&](const HostTensor& got, const HostTensor& wanted,
                             const std::vector<double>& starts, std::int64_t row_elements) {
      for (std::int64_t row = 0; row < starts[3]; ++row) {
        if (is_other(starts, row)) continue;
        for (std::int64_t i = row * row_elements; i < (row + 1) * row_elements; ++i) {
          ASSERT_TRUE(std::isfinite(got.flat(i))) << "row " << row;
          ASSERT_EQ(got.flat(i), wanted.flat(i)) << "row " << row;
        }
      }
    };
    compare(padded.dq, plain.dq, queries, kHeads * dim);
    compare(padded.dk, plain.dk, keys, dim);
    compare(padded.dv, plain.dv, keys, dim);
  }
}

}  // namespace
}  // namespace tilewright
