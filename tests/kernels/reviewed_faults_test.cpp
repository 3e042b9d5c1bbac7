#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "common/error_text.h"
#include "compiler/additions.h"
#include "compiler/compile_to_machine.h"
#include "ir/program.h"
#include "library/accuracy.h"
#include "library/workload.h"
#include "tilewright/check_gradients.h"
#include "tilewright/compile.h"
#include "tilewright/error.h"
#include "tilewright/kernels/attention.h"
#include "tilewright/library.h"
#include "tilewright/library_executable.h"

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

// The same of the kernels for Hopper, of which parts of the heads go through a block of keys for
// themselves: their sums meet in memory, in f32.
TEST(ReviewedFaults, PartsOfSharedHeadsAreAddedInF32) {
  for (const char* schedule : {"ordered", "atomic", "split"}) {
    for (const char* dim : {"16", "144"}) {
      SCOPED_TRACE(std::string(schedule) + ", " + dim);
      const auto errors = [&](const std::string& heads) {
        library::Workload work =
            library::make_workload(find_kernel("attention_backward"),
                                   {"heads=" + heads, "kv_heads=1", "queries=33", "keys=40",
                                    std::string("dim=") + dim, std::string("schedule=") + schedule},
                                   {}, 1);
        std::vector<TensorRef> tensors;
        for (HostTensor& tensor : work.tensors) tensors.push_back(ref(tensor));
        compile(*work.kernel, work.options, "sim:sm_90a").run(tensors);
        return library::compare(work, library::reference_of(work)).outputs;
      };
      const auto one = errors("1"), many = errors("32");
      for (const std::size_t gradient : {1, 2}) {  // dK, dV
        EXPECT_GT(one[gradient].errors.whole, 1e-3);
        EXPECT_LT(many[gradient].errors.whole, 1.2 * one[gradient].errors.whole)
            << many[gradient].name;
      }
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
    EXPECT_THAT(test::without_source_lines(error.what()),
                testing::HasSubstr("dQ is not one element of an i32 vector"));
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

// Where kernels for Hopper add to memory, a thread adds four elements at a time.
TEST(ReviewedFaults, SumsInMemoryAreAddedByFour) {
  for (const char* name : {"attention_backward", "attention_varlen_backward"}) {
    for (const char* dim : {"64", "96", "128", "192", "256"}) {
      for (const char* schedule : {"ordered", "atomic", "split"}) {
        SCOPED_TRACE(std::string(name) + " " + schedule + " " + dim);
        const OptionValues options =
            resolve_options(find_kernel(name), {"heads=8", "kv_heads=2", std::string("dim=") + dim,
                                                std::string("schedule=") + schedule});
        const ScheduleChoice choice = choose_schedule(find_kernel(name), options, "sm_90a");
        std::size_t places = 0;
        const Program program = build_program(find_kernel(name), choice);
        for (const auto& kernel : program.finish().kernels) {
          const auto machine = compiler::compile_to_machine(*kernel, "sm_90a").kernel;
          for (const compiler::Addition& addition : compiler::additions_in(machine)) {
            EXPECT_EQ(addition.instruction, "red.global.add.v4.f32") << addition.tensor;
            ++places;
          }
        }
        EXPECT_GE(places, 1u);
      }
    }
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

// How a backward pass is executed: its meaning, by the compiler's schedule, or the kernels that are
// written for Hopper.
enum class By { interpreter, schedule, kernels };
constexpr By kAllWays[] = {By::interpreter, By::schedule, By::kernels};

// In blocks that Hopper takes.
Attention shared_attention(int heads, int kv_heads, By by) {
  Attention a = shared_attention(heads, kv_heads);
  if (by != By::interpreter) a.dim = a.dim_v = a.block_q = a.block_k = 64;
  return a;
}

Program backward_of(const Attention& a, bool packed, By by) {
  if (by != By::kernels) {
    return packed ? kernels::attention_varlen_backward(a) : kernels::attention_backward(a);
  }
  const Attention blocks = kernels::with_sm90_backward_blocks(a);
  return packed ? kernels::attention_varlen_backward_sm90(blocks)
                : kernels::attention_backward_sm90(blocks);
}

void run_backward(const Attention& a, By by, GradientTensors& t) {
  std::vector<TensorRef> tensors = inputs_of(t);
  for (HostTensor* each : {&t.o, &t.lse, &t.dout, &t.dq, &t.dk, &t.dv}) {
    tensors.push_back(ref(*each));
  }
  compile(backward_of(a, !t.offsets.empty(), by),
          by == By::interpreter ? "interpreter" : "sim:sm_90a")
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
  for (const By by : kAllWays) {
    SCOPED_TRACE(static_cast<int>(by));
    Attention a = shared_attention(2, 1, by);
    a.causal = true;
    const std::int64_t dim = a.dim;
    GradientTensors plain =
        random_gradient_tensors({1, kRows, 2, dim}, {1, kRows, 1, dim}, {1, 2, kRows});
    run_forward(a, plain);
    // With the same O and LSE: these depend on no hidden key either, but for their last bits.
    GradientTensors large = plain;
    for (std::int64_t i = kSeen * dim; i < kRows * dim; ++i) {
      large.k.set_flat(i, 40 * plain.k.flat(i));
      large.v.set_flat(i, 40 * plain.v.flat(i));
    }
    run_backward(a, by, plain);
    run_backward(a, by, large);
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
  for (const By by : kAllWays) {
    SCOPED_TRACE(static_cast<int>(by));
    const Attention a = shared_attention(kHeads, 1, by);
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
      run_backward(a, by, *each);
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

// Row 17, "dimension expressions from an outer scope are rejected". Here a dim is an expression
// everywhere: in shapes, grids and blocks, whoever made it.
TEST(ReviewedFaults, DimensionsMayBeExpressionsOfAnOuterScope) {
  Kernel kernel("doubled_slots");
  const Dim pages = kernel.dim("pages"), page = kernel.dim("page");
  const Dim slots = pages * page;
  const auto double_rows = [&](const Tensor& from, const Tensor& to, const Index& number) {
    const Block rows = slots.block(number, 8);
    store(to(rows), load(from(rows)) * 2);
  };
  kernel.in("cache", f32, {pages, page});
  const Tensor X = kernel.in("X", f32, {slots}), Y = kernel.out("Y", f32, {slots});
  const auto [number] = kernel.grid(ceil_div(slots, 8));
  double_rows(X, Y, number);

  HostTensor cache = HostTensor::zeros(f32, {5, 7});
  HostTensor x = HostTensor::random_normal(f32, {35}, 1), y = HostTensor::poisoned(f32, {35});
  compile(kernel, "interpreter").run({ref(cache), ref(x), ref(y)});
  for (std::int64_t i = 0; i < 35; ++i) EXPECT_EQ(y.flat(i), 2 * x.flat(i)) << i;
}

}  // namespace
}  // namespace tilewright
