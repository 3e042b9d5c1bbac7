#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "common/error_text.h"
#include "kernels/library_case.h"
#include "kernels/reference.h"
#include "tilewright/kernels/attention.h"

namespace tilewright {
namespace {

using kernels::Attention;
using testing::HasSubstr;

// One call, and what of it differs.
struct BackwardCase {
  std::string name;
  Attention attention;
  std::int64_t batch, queries, keys;             // packed: of all sequences together
  std::vector<double> query_starts, key_starts;  // packed: batch + 1 each
  bool of_lse = false;
  double first_sink = 0;  // is added to that of the first head
  const char* target = "interpreter";
  std::optional<Order> order = {};  // by the explicit kernels, dQ summed so
  kernels::KeySums key_sums = kernels::KeySums::in_turn;
};

Attention backward_attention(int heads, int kv_heads, int dim, int dim_v) {
  Attention a;
  a.heads = heads;
  a.kv_heads = kv_heads;
  a.dim = dim;
  a.dim_v = dim_v;
  a.block_q = a.block_k = 64;
  a.dtype = f32;
  return a;
}

kernels::AttentionSizes sizes_of(const BackwardCase& c) {
  const Attention& a = c.attention;
  return {c.batch,    c.queries,
          c.keys,     a.heads,
          a.kv_heads, a.dim,
          a.dim_v,    a.causal,
          a.window,   a.scale > 0 ? a.scale : 1 / std::sqrt(static_cast<double>(a.dim)),
          a.softcap};
}

// Of the whole tensor, so that one bad head shows; 0 where both are 0.
double relative_error(const HostTensor& tensor, const std::vector<double>& reference) {
  double difference = 0, size = 0;
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    const double wanted = reference[static_cast<std::size_t>(i)], got = tensor.flat(i);
    if (!std::isfinite(got)) return std::numeric_limits<double>::infinity();
    difference += (got - wanted) * (got - wanted);
    size += wanted * wanted;
  }
  return difference == 0 ? 0 : std::sqrt(difference / size);
}

Program program_of(const BackwardCase& c) {
  const bool packed = !c.query_starts.empty();
  if (!c.order) {
    return packed ? kernels::attention_varlen_backward(c.attention, c.of_lse)
                  : kernels::attention_backward(c.attention, c.of_lse);
  }
  return packed
             ? kernels::attention_varlen_backward_sm90(c.attention, c.of_lse, *c.order, c.key_sums)
             : kernels::attention_backward_sm90(c.attention, c.of_lse, *c.order, c.key_sums);
}

class AttentionBackward : public testing::TestWithParam<BackwardCase> {};

TEST_P(AttentionBackward, AgreesWithFloat64) {
  const BackwardCase& c = GetParam();
  const Attention& a = c.attention;
  const bool packed = !c.query_starts.empty();
  const auto shape = [&](std::int64_t rows, int heads, int dim) {
    return packed ? std::vector<std::int64_t>{rows, heads, dim}
                  : std::vector<std::int64_t>{c.batch, rows, heads, dim};
  };
  const std::vector<std::int64_t> of_rows =
      packed ? std::vector<std::int64_t>{a.heads, c.queries}
             : std::vector<std::int64_t>{c.batch, a.heads, c.queries};
  HostTensor q = HostTensor::random_normal(a.dtype, shape(c.queries, a.heads, a.dim), 1);
  HostTensor k = HostTensor::random_normal(a.dtype, shape(c.keys, a.kv_heads, a.dim), 2);
  HostTensor v = HostTensor::random_normal(a.dtype, shape(c.keys, a.kv_heads, a.dim_v), 3);
  HostTensor dout = HostTensor::random_normal(a.dtype, shape(c.queries, a.heads, a.dim_v), 4);
  HostTensor dlse = HostTensor::random_normal(f32, of_rows, 5);
  HostTensor sinks = HostTensor::random_normal(f32, {a.heads}, 6);
  sinks.set_flat(0, sinks.flat(0) + c.first_sink);
  std::vector<HostTensor> offsets;
  if (packed) {
    offsets = {HostTensor::from_values(i32, {c.batch + 1}, c.query_starts),
               HostTensor::from_values(i32, {c.batch + 1}, c.key_starts)};
  }

  std::vector<HostTensor> inputs = {q, k, v};
  inputs.insert(inputs.end(), offsets.begin(), offsets.end());
  if (a.sinks) inputs.push_back(sinks);
  const std::vector<std::vector<double>> forward =
      packed ? kernels::attention_varlen_reference(sizes_of(c), inputs)
             : kernels::attention_reference(sizes_of(c), inputs);
  HostTensor o = HostTensor::from_values(a.dtype, dout.shape(), forward[0]);
  HostTensor lse = HostTensor::from_values(f32, of_rows, forward[1]);
  HostTensor dq = HostTensor::poisoned(a.dtype, q.shape());
  HostTensor dk = HostTensor::poisoned(a.dtype, k.shape());
  HostTensor dv = HostTensor::poisoned(a.dtype, v.shape());
  HostTensor dsinks = HostTensor::poisoned(f32, {a.heads});

  std::vector<TensorRef> tensors;
  const auto pass = [&](std::initializer_list<HostTensor*> more) {
    for (HostTensor* tensor : more) tensors.push_back(ref(*tensor));
  };
  pass({&q, &k, &v});
  for (HostTensor& tensor : offsets) pass({&tensor});
  if (a.sinks) pass({&sinks});
  pass({&o, &lse, &dout});
  if (c.of_lse) pass({&dlse});
  pass({&dq, &dk, &dv});
  if (a.sinks) pass({&dsinks});
  compile(program_of(c), c.target).run(tensors);

  const HostTensor none = HostTensor::poisoned(f32, {0});
  const std::vector<std::vector<double>> wanted = kernels::attention_backward_reference(
      sizes_of(c), {q, k, v, dout, c.of_lse ? dlse : none, a.sinks ? sinks : none}, offsets);
  const double bound = a.dtype == f32 ? 2e-6 : 6e-3;
  EXPECT_LT(relative_error(dq, wanted[0]), bound);
  EXPECT_LT(relative_error(dk, wanted[1]), bound);
  EXPECT_LT(relative_error(dv, wanted[2]), bound);
  if (a.sinks) {
    EXPECT_LT(relative_error(dsinks, wanted[3]), bound);
  }
}

std::vector<BackwardCase> backward_cases() {
  std::vector<BackwardCase> list;
  const auto add = [&](std::string name, std::int64_t queries, std::int64_t keys,
                       const std::function<void(BackwardCase&)>& change = {}) {
    BackwardCase c{std::move(name), backward_attention(4, 2, 32, 48), 2, queries, keys, {}, {}};
    if (change) change(c);
    list.push_back(c);
  };
  add("Full", 130, 200);
  add("OneOfEach", 1, 1);
  add("NoKeys", 5, 0);
  add("NoQueries", 0, 70);
  add("Causal", 200, 130, [](BackwardCase& c) { c.attention.causal = true; });
  add("CausalMoreKeys", 65, 129, [](BackwardCase& c) { c.attention.causal = true; });
  add("Window", 200, 230, [](BackwardCase& c) {
    c.attention.causal = true;
    c.attention.window = 70;
  });
  add("WindowOfOne", 70, 70, [](BackwardCase& c) {
    c.attention.causal = true;
    c.attention.window = 1;
  });
  add("Softcap", 70, 90, [](BackwardCase& c) { c.attention.softcap = 2; });
  add("SoftcapCausal", 90, 70, [](BackwardCase& c) {
    c.attention.causal = true;
    c.attention.softcap = 2;
  });
  add("Sinks", 90, 70, [](BackwardCase& c) {
    c.attention.causal = true;
    c.attention.sinks = true;
  });
  // Rows that do not exist have no LSE that a large sink is part of.
  add("OneLargeSinkOnTheSimulator", 90, 70, [](BackwardCase& c) {
    c.attention = backward_attention(2, 1, 64, 64);
    c.attention.dtype = bf16;
    c.attention.sinks = true;
    c.first_sink = 200;
    c.target = "sim:sm_90a";
  });
  add("SinksWithoutKeys", 90, 0, [](BackwardCase& c) {
    c.attention.sinks = true;
    c.of_lse = true;
  });
  add("LseGradient", 70, 90, [](BackwardCase& c) { c.of_lse = true; });
  add("LseGradientSinks", 70, 90, [](BackwardCase& c) { c.of_lse = c.attention.sinks = true; });
  add("Scale", 33, 70, [](BackwardCase& c) { c.attention.scale = 0.7; });
  add("OneHeadOfKeys", 70, 70, [](BackwardCase& c) { c.attention.kv_heads = 1; });
  add("Bf16", 130, 130, [](BackwardCase& c) {
    c.attention.dtype = bf16;
    c.attention.causal = true;
  });
  add("WideHeads", 70, 90, [](BackwardCase& c) {
    c.attention = backward_attention(2, 1, 192, 80);
    c.attention.softcap = 4;
  });
  add("OnTheSimulator", 130, 100, [](BackwardCase& c) {
    c.attention = backward_attention(2, 1, 64, 64);
    c.attention.dtype = bf16;
    c.attention.causal = true;
    c.batch = 1;
    c.target = "sim:sm_90a";
  });
  const auto packed = [](BackwardCase& c) {
    c.batch = 4;
    c.query_starts = {0, 70, 70, 71, 200};
    c.key_starts = {0, 130, 140, 140, 150};
    c.attention.causal = true;
  };
  add("Packed", 200, 150, packed);
  add("PackedWindowOnTheSimulator", 200, 150, [&](BackwardCase& c) {
    packed(c);
    c.attention = backward_attention(2, 1, 64, 64);
    c.attention.dtype = bf16;
    c.attention.causal = true;
    c.attention.window = 20;
    c.target = "sim:sm_90a";
  });
  // Tensors without rows, of which blocks that no sequence has are loaded all the same.
  const auto add_empty = [&](const std::string& name, std::int64_t queries, std::int64_t keys) {
    add(name, queries, keys, [&](BackwardCase& c) {
      c.batch = 1;
      c.query_starts = {0, static_cast<double>(queries)};
      c.key_starts = {0, static_cast<double>(keys)};
      c.attention = backward_attention(2, 1, 64, 64);
      c.attention.dtype = bf16;
      c.target = "sim:sm_90a";
    });
  };
  add_empty("PackedNoQueriesOnTheSimulator", 0, 70);
  add_empty("PackedNoKeysOnTheSimulator", 70, 0);
  add_empty("PackedNothingOnTheSimulator", 0, 0);
  add("PackedAll", 200, 150, [&](BackwardCase& c) {
    packed(c);
    c.attention.window = 20;
    c.attention.softcap = 3;
    c.attention.sinks = c.of_lse = true;
  });
  // The explicit kernels: lengths around blocks of 64 and 128 queries, and of keys.
  const auto add_in = [&](Order order, const std::string& name, std::int64_t queries,
                          std::int64_t keys, int dim,
                          const std::function<void(BackwardCase&)>& change = {}) {
    add((order == Order::any ? "Atomic" : "Ordered") + name, queries, keys, [&](BackwardCase& c) {
      c.attention = backward_attention(2, 1, dim, dim);
      c.attention.dtype = bf16;
      c.batch = 1;
      c.target = "sim:sm_90a";
      c.order = order;
      if (change) change(c);
      c.attention = kernels::with_sm90_backward_blocks(c.attention);
    });
  };
  const auto add_explicit = [&](const std::string& name, std::int64_t queries, std::int64_t keys,
                                int dim, const std::function<void(BackwardCase&)>& change = {}) {
    add_in(Order::any, name, queries, keys, dim, change);
    add_in(Order::blocks, name, queries, keys, dim, change);
  };
  // Of cases that do not look at how dQ is summed, one with each order in turn.
  int number = 0;
  const auto add_in_turn = [&](const std::string& name, std::int64_t queries, std::int64_t keys,
                               int dim, const std::function<void(BackwardCase&)>& change = {}) {
    add_in(number++ % 2 == 0 ? Order::blocks : Order::any, name, queries, keys, dim, change);
  };
  for (const int dim : {64, 128, 192, 256}) {
    const std::string suffix = std::to_string(dim);
    add_in_turn("Full" + suffix, 130, 200, dim);
    add_in_turn("CausalMoreQueries" + suffix, 300, 129, dim,
                [](BackwardCase& c) { c.attention.causal = true; });
    add_in_turn("CausalMoreKeys" + suffix, 65, 257, dim,
                [](BackwardCase& c) { c.attention.causal = true; });
    add_in_turn("WindowSoftcap" + suffix, 256, 256, dim, [](BackwardCase& c) {
      c.attention.causal = true;
      c.attention.window = 65;
      c.attention.softcap = 3;
    });
    add_in_turn("SinksLseGradient" + suffix, 64, 128, dim, [](BackwardCase& c) {
      c.attention.sinks = c.of_lse = true;
      c.first_sink = 200;
    });
    // Of one key dQ and dK would be 0 but for rounding.
    add_in_turn("OneQuery" + suffix, 1, 2, dim, [](BackwardCase& c) { c.batch = 3; });
    add_in_turn("NoKeys" + suffix, 5, 0, dim);
    add_in_turn("NoQueries" + suffix, 0, 70, dim);
    ++number;  // the next dims have the other order
  }
  add_in_turn("WideValues", 127, 127, 64, [](BackwardCase& c) { c.attention.dim_v = 128; });
  add_in_turn("NarrowValues", 63, 127, 128, [](BackwardCase& c) {
    c.attention.dim_v = 64;
    c.attention.dtype = f16;
  });
  // Halves of columns that end before their last panel does, or that have 32 of 64 bytes.
  for (const auto& [dim, dim_v] : {std::pair(144, 16), {16, 240}, {208, 80}, {64, 160}}) {
    add_in_turn("Dims" + std::to_string(dim) + "And" + std::to_string(dim_v), 130, 70, dim,
                [dim_v = dim_v](BackwardCase& c) { c.attention.dim_v = dim_v; });
  }
  // Few columns of queries and many of values: CTAs by themselves.
  add_explicit("WideValuesWindow", 150, 150, 64, [](BackwardCase& c) {
    c.attention.dim_v = 160;
    c.attention.causal = true;
    c.attention.window = 33;
    c.attention.softcap = 3;
  });
  add_explicit("WideHeads", 130, 140, 256, [](BackwardCase& c) {
    c.attention.heads = 6;
    c.attention.kv_heads = 2;
    c.attention.causal = true;
    c.batch = 2;
    c.attention.l2_bytes = 1 << 19;  // heads in several groups
  });
  add_explicit("Heads", 130, 140, 64, [](BackwardCase& c) {
    c.attention.heads = 6;
    c.attention.kv_heads = 2;
    c.attention.causal = true;
    c.batch = 2;
  });
  const auto split = [](BackwardCase& c) { c.key_sums = kernels::KeySums::apart; };
  add_in(Order::blocks, "SplitHeads", 130, 300, 64, [&](BackwardCase& c) {
    split(c);
    c.attention.heads = 6;
    c.attention.kv_heads = 2;
    c.attention.causal = true;
    c.batch = 2;
  });
  add_in(Order::blocks, "SplitPartsOfOneHead", 70, 140, 64, [&](BackwardCase& c) {
    split(c);
    c.attention.heads = 2;  // two parts, the fewest that are summed
    c.attention.kv_heads = 1;
  });
  add_in(Order::blocks, "SplitDims", 130, 140, 96, [&](BackwardCase& c) {
    split(c);
    c.attention.heads = 3;
    c.attention.dim_v = 48;
    c.attention.dtype = f16;
  });
  add_in(Order::blocks, "SplitNoQueries", 0, 70, 64, split);
  // Above 128 columns: warpgroups with halves of 96 columns, and pairs of CTAs that add panels
  // of 64.
  for (const auto& [dim, dim_v] : {std::pair(144, 144), {256, 256}, {256, 128}, {256, 80}}) {
    const auto wide = [dim_v = dim_v](BackwardCase& c) {
      c.attention.heads = 6;
      c.attention.kv_heads = 2;
      c.attention.dim_v = dim_v;
      c.attention.causal = true;
    };
    const std::string dims = std::to_string(dim) + "To" + std::to_string(dim_v);
    add_in_turn("WideParts" + dims, 130, 300, dim, wide);
    add_in(Order::blocks, "SplitWideParts" + dims, 130, 300, dim, [&](BackwardCase& c) {
      wide(c);
      split(c);
    });
    add_in(Order::blocks, "SplitWidePacked" + dims, 200, 150, dim, [&](BackwardCase& c) {
      packed(c);
      wide(c);
      split(c);
    });
    add_in_turn("WidePacked" + dims, 200, 150, dim, [&](BackwardCase& c) {
      packed(c);
      wide(c);
    });
  }
  const auto packed_heads = [&](BackwardCase& c) {
    packed(c);
    c.attention.heads = 6;
    c.attention.kv_heads = 2;
    c.attention.dim_v = 160;
    c.attention.causal = true;
  };
  add_explicit("WideValuesPacked", 200, 150, 64, packed_heads);
  add_in(Order::blocks, "SplitWideValuesPacked", 200, 150, 64, [&](BackwardCase& c) {
    packed_heads(c);
    split(c);
  });
  // Two parts, of two heads and of one; and one part.
  add_in_turn("WidePartsOfTwoHeadsAndOne", 3, 8600, 256, [](BackwardCase& c) {
    c.attention.heads = 3;
    c.attention.causal = true;
  });
  add_in(Order::blocks, "SplitWideHeadsInOnePart", 3, 8600, 256, [&](BackwardCase& c) {
    split(c);
    c.batch = 2;
    c.attention.heads = 2;
    c.attention.causal = true;
  });
  // More blocks of keys than 1.5 for each multiprocessor: two parts, of two heads and of one.
  add_in_turn("PartsOfTwoHeadsAndOne", 3, 8600, 64, [](BackwardCase& c) {
    c.batch = 2;
    c.attention.heads = 3;
    c.attention.causal = true;
  });
  // More than two blocks of keys for each: one part. In groups of a head each, which go through the
  // rows down and up in no order.
  add_in(Order::blocks, "HeadsInOnePart", 66, 8600, 64, [](BackwardCase& c) {
    c.batch = 4;
    c.attention.causal = true;
    c.attention.l2_bytes = 4000;
  });
  add_in(Order::blocks, "SplitHeadsInOnePart", 3, 8600, 64, [&](BackwardCase& c) {
    split(c);
    c.batch = 4;
    c.attention.causal = true;
  });
  // More blocks of rows to which nobody adds than there are CTAs.
  add_in(Order::blocks, "ManyRowsThatSeeNothing", 4500, 66, 128,
         [](BackwardCase& c) { c.attention.causal = true; });
  // Two heads, and then one: two have no more blocks of keys than there are multiprocessors.
  add_explicit("UnevenGroupsOfHeads", 3, 8300, 64, [](BackwardCase& c) {
    c.batch = 3;
    c.attention.heads = 1;
    c.attention.l2_bytes = 4000;
  });
  // Two groups of one head, each with more blocks of keys than there are multiprocessors.
  add_in_turn("WideGroupsOfHeads", 3, 8600, 144, [](BackwardCase& c) {
    c.batch = 2;
    c.attention.heads = 1;
    c.attention.l2_bytes = 4000;
  });
  return list;
}

// Behind the last key scores are 0. Beside those of some rows the weight would be infinite.
TEST(AttentionBackwardSm90, ScoresFarBelowZero) {
  for (const char* dim : {"dim=64", "dim=128", "dim=192", "dim=256"}) {
    test::expect_right(
        {"attention_backward",
         {dim, "heads=2", "kv_heads=1", "queries=128", "keys=3", "scale=20", "schedule=ordered"}},
        "sim:sm_90a");
  }
}

TEST(AttentionBackwardSm90, RefusesWhatItDoesNotTake) {
  const auto refused = [](const std::function<void(Attention&)>& change) {
    Attention a = backward_attention(2, 1, 64, 64);
    a.dtype = bf16;
    a = kernels::with_sm90_backward_blocks(a);
    change(a);
    return test::usage_error_of([&] { kernels::attention_backward_sm90(a, false, Order::any); });
  };
  EXPECT_THAT(refused([](Attention& a) { a.dim = 72; }), HasSubstr("dim is 72"));
  EXPECT_THAT(refused([](Attention& a) { a.dim = 168; }),
              HasSubstr("take a multiple of 16 up to 256"));
  EXPECT_THAT(refused([](Attention& a) { a.dim_v = 272; }), HasSubstr("dim_v is 272"));
  EXPECT_THAT(refused([](Attention& a) { a.dim_v = 256; }),
              HasSubstr("take with_sm90_backward_blocks(attention): 64 queries and 64 keys"));
  EXPECT_THAT(refused([](Attention& a) { a.dtype = f32; }), HasSubstr("dtype is f32"));
  EXPECT_THAT(refused([](Attention& a) { a.block_k = 64; }), HasSubstr("block_k 64"));
  EXPECT_THAT(refused([](Attention& a) { a.block_q = 64; }),
              HasSubstr("take with_sm90_backward_blocks(attention): 128 queries and 128 keys"));
  EXPECT_THAT(refused([](Attention& a) { a.heads = 3, a.kv_heads = 2; }), HasSubstr("heads 3"));
}

INSTANTIATE_TEST_SUITE_P(Cases, AttentionBackward, testing::ValuesIn(backward_cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace tilewright
