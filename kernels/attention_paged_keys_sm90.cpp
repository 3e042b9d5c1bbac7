#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/attention_paged_lanes.h"
#include "tilewright/hopper.h"
#include "tilewright/kernels/softmax.h"
#include "tilewright/plan_case.h"

// Decoding, whose keys are the rows of the first product, and values' columns those of the second:
// a product has 64 rows at least, and 8 columns are enough. Eight heads then have an eighth of the
// scores and sums that they have as rows, of 64. Keys of e4m3, and those that threads gather, are
// the products' first operand in registers.
namespace tilewright::kernels {
namespace {

constexpr int kLeastColumns = 8;  // of a product
constexpr int kRowsOfProduct = 64;
constexpr int kMostFewColumns = 16, kSpareRegisters = 32;
constexpr int kThreadsOfLane = 128;

// A query's heads, or so many queries that they are 8.
PagedRows columns_of(const PagedAttention& a) {
  return {a, std::max(rows_of_plan(a).heads, kLeastColumns)};
}

// Elements of e4m3 are exact in f16, which products take beside more bits of the weights.
DType dtype_of_products(const PagedAttention& a) { return a.quantised ? f16 : a.dtype; }

// A block of elements of e4m3 has twice as many keys, so that what a block costs whatever its keys
// are is paid half as often. Of pages of fewer slots a stage of the ring would be many copies, and
// come back too late. A part of a fixed size is whole blocks.
int keys_of_block(const PagedAttention& a) {
  constexpr int kMost = 2 * kKeysOfBlock;
  const bool is_large =
      a.quantised && a.page % kKeysOfBlock == 0 && a.fixed_split_size % kMost == 0;
  return plan_case("blocks of 128 keys", is_large) ? kMost : kKeysOfBlock;
}

// Several products' first operands, {rows of all of them, columns}, in registers.
std::vector<Tile> in_registers_of_products(const Tile& rows) {
  const std::int64_t count = rows.shape()[0], columns = rows.shape()[1];
  const int products = static_cast<int>(count) / kRowsOfProduct;
  const Tile placed = in_registers(
      rows,
      {{{2, 1, 1}, {2, 0, 8}, {static_cast<int>(columns) / 8, 1, 8}, {products, 0, kRowsOfProduct}},
       {{4, 1, 2}, {8, 0, 1}},
       {{4, 0, 16}}});
  std::vector<Tile> parts;
  for (int i = 0; i < products; ++i) {
    parts.push_back(placed.slice({i * kRowsOfProduct, 0}, {kRowsOfProduct, columns}));
  }
  return parts;
}

// Keys as an operand in registers. A thread has two columns side by side, and two more 8
// columns on, of each 16. Of 64 columns these are 16 side by side here, which it loads at once. A
// product's columns may come in any order that is the same for both operands.
RegisterMap map_of_keys(int keys, int columns) {
  return {
      {{16, 1, 1}, {columns / 64, 1, 64}, {2, 0, 8}, {keys / kRowsOfProduct, 0, kRowsOfProduct}},
      {{4, 1, 16}, {8, 0, 1}},
      {{4, 0, 16}}};
}
Tile in_order_of_loads(const Tile& rows) {
  const std::int64_t count = rows.shape()[0], columns = rows.shape()[1];
  return rows.reshape({count, columns / 64, 4, 4, 2, 2})
      .permute({0, 1, 3, 4, 2, 5})
      .reshape({count, columns});
}

// Values, {keys, columns}, as operands in registers of several products {columns, keys}. A thread
// has two rows of each of these, which are columns side by side here: it loads them at once. So row
// (warp, i, g) of product n is column (warp, g, n, i).
RegisterMap map_of_values(int keys, int products) {
  return {{{2 * products, 1, 1}, {2, 0, 1}, {keys / 8, 0, 8}},
          {{4, 0, 2}, {8, 1, 2 * products}},
          {{4, 1, 16 * products}}};
}
std::vector<Tile> rows_of_products(const Tile& values) {
  const std::int64_t keys = values.shape()[0], columns = values.shape()[1];
  const int products = static_cast<int>(columns / kRowsOfProduct);
  return in_registers_of_products(
      values.reshape({keys, 4, 8, products, 2}).permute({3, 1, 4, 2, 0}).reshape({columns, keys}));
}
// The products' results, {columns of the product, rows}, as {rows, columns}.
Tile in_order_of_values(const std::vector<Tile>& sums) {
  const std::int64_t rows = sums[0].shape()[1];
  std::vector<Tile> parts;
  for (const Tile& sum : sums) {
    parts.push_back(
        sum.T().reshape({rows, 4, 2, 8}).permute({0, 1, 3, 2}).reshape({rows, kRowsOfProduct}));
  }
  if (parts.size() == 1) return parts[0];
  const auto single = [&](const Tile& part) { return part.reshape({rows, kRowsOfProduct, 1}); };
  return where(iota({1, 1, 2}, 2) == 0, single(parts[0]), single(parts[1]))
      .reshape({rows, kRowsOfProduct / 2, 2, 2})
      .permute({0, 1, 3, 2})
      .reshape({rows, 2 * kRowsOfProduct});
}

class KeysAsRows {
 public:
  KeysAsRows(Kernel& kernel, const PagedAttention& a, KeyParts keys)
      : a_(a),
        tile_(columns_of(a)),
        dtype_(dtype_of_products(a)),
        keys_(keys_of_block(a)),
        lanes_(kernel, a, keys, tile_, needs()),
        in_registers_(a.quantised || lanes_.copies.are_gathered()) {
    for (int i = 0; i < lanes_.count(); ++i) {
      own_.push_back(std::make_unique<Own>(kernel, a, tile_, keys_, std::to_string(i)));
    }
    lanes_.run(kernel,
               [this](int lane, Ring& keys, const PagedWork& work) { compute(lane, keys, work); });
    kernel.require({in_registers_ ? wgmma_rs : wgmma_ss, no_stack, no_spills});
  }

 private:
  // Sums of few columns leave registers to spare.
  LaneNeeds needs() const {
    const bool spares =
        plan_case("few columns of e4m3", a_.quantised && tile_.rows <= kMostFewColumns);
    return {.kept = Own::bytes(a_, tile_, keys_),
            .keys_of_stage = keys_,
            .spare_registers = spares ? kSpareRegisters : 0,
            .heads_together = spares};
  }
  // What a lane's products read beside the ring.
  struct Own {
    Own(Kernel& kernel, const PagedAttention& a, const PagedRows& tile, int keys,
        const std::string& number)
        : queries(kernel, "queries" + number, dtype_of_products(a), tile.rows, a.dim),
          weights(kernel, "weights" + number, dtype_of_products(a), tile.rows, keys),
          written(kernel, kThreadsOfLane) {
      if (plan_case("queries beyond f16", a.quantised && a.dtype != f16)) {
        factors.emplace(kernel, "factors" + number, f32, 1, tile.rows, here());
      }
    }
    // With what the four warps tell each other of maxima and sums.
    static int bytes(const PagedAttention& a, const PagedRows& tile, int keys) {
      return tile.rows * ((a.dim + keys) * size_of(a.dtype) + 3 * 4 * size_of(f32));
    }
    void meet() const {
      fence_proxy_async();
      written.sync();
    }
    SharedTile queries, weights;
    // What each row's scores are multiplied by: queries of bf16 may be beyond f16, so that a row is
    // divided by a power of two.
    std::optional<SharedTile> factors;
    mutable NamedBarrier written;
  };

  int parts() const { return keys_ / kRowsOfProduct; }  // of a block

  void compute(int lane, Ring& keys, const PagedWork& work) const {
    const Own& own = *own_[static_cast<std::size_t>(lane)];
    const PagedParameters& p = lanes_.p;
    const auto [first, last] = work.blocks_of_part(keys_);
    const auto [whole_first, whole_last] = work.mask.full(work.rows, work.keys, keys_);
    const HeadScale key_scale = p.key_scale(work.kv_head);
    const HeadScale value_scale = p.value_scale(work.kv_head);
    store_queries(own, work);
    own.meet();
    std::optional<Tile> factors;
    if (own.factors) {
      factors = key_scale(load(*own.factors).reshape({tile_.rows, 1}));
      own.written.sync();  // where an item has no keys nothing else keeps the next one's back
    }
    const auto of_elements = [&](const Tile& scores) {
      return factors ? scores * *factors : key_scale(scores);
    };
    EagerSoftmax softmax(tile_.rows, p.scale, lanes_.stores.sinks(work));
    std::deque<Var> sums;
    for (int i = 0; i < a_.dim_v / kRowsOfProduct; ++i)
      sums.emplace_back(zeros({kRowsOfProduct, tile_.rows}));
    for (Index j : range(first, last)) {
      const Slot slot = keys.consume();
      const std::vector<Index> missing = lanes_.copies.missing_of(slot);
      const SharedView stored_values = lanes_.values(lane, slot);
      const std::vector<Pending> products = of_keys(lanes_.keys(lane, slot), own.queries);
      const std::vector<Tile> values = values_in_registers(stored_values);
      if (in_registers_) {
        // What was loaded from here TMA overwrites.
        if (!lanes_.copies.are_gathered()) fence_proxy_async();
        keys.release(slot);
      }
      std::deque<Var> scores;  // of each product's keys
      for (const Pending& product : products) {
        scores.emplace_back(p.capped(of_elements(wait(product).T())));
      }
      const auto each = [&](const auto& changed) {
        for (int i = 0; i < static_cast<int>(scores.size()); ++i) {
          Var& own_scores = scores[static_cast<std::size_t>(i)];
          own_scores = changed(Tile(own_scores), i);
        }
      };
      when(j < whole_first || j >= whole_last, [&] {
        each([&](const Tile& s, int i) {
          const Index block = j * parts() + i;
          return work.mask.apply(s, work.rows, work.keys.block(block, kRowsOfProduct));
        });
      });
      when(PageCopies::any(missing), [&] {
        each([&](const Tile& s, int i) {
          return lanes_.copies.without(s, missing, i * kRowsOfProduct);
        });
      });
      const std::vector<Tile> weights = softmax.weights({scores.begin(), scores.end()});
      for (int i = 0; i < parts(); ++i) {
        store(own.weights.columns(i * kRowsOfProduct, kRowsOfProduct),
              weights[static_cast<std::size_t>(i)].cast(dtype_));
      }
      own.meet();
      const Tile rescale = softmax.rescale().T();
      std::vector<Pending> pending;
      for (std::size_t i = 0; i < sums.size(); ++i) {
        const Tile sum = sums[i] * rescale;
        pending.push_back(
            in_registers_
                ? wgmma(values[i], own.weights.T(), sum)
                : wgmma(stored_values.columns(static_cast<int>(i) * kRowsOfProduct, kRowsOfProduct)
                            .T(),
                        own.weights.T(), sum));
      }
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = wait(pending[i]);
      if (!in_registers_) keys.release(slot);
    }
    const Tile normaliser = softmax.normaliser().T();
    std::vector<Tile> outputs;
    for (const Var& sum : sums) outputs.push_back(value_scale(sum * normaliser));
    if (in_registers_) {
      lanes_.stores.store_outputs(work, all, in_order_of_values(outputs));
    } else {
      for (int i = 0; i < static_cast<int>(outputs.size()); ++i) {
        lanes_.stores.store_outputs(work, Block(i * kRowsOfProduct, kRowsOfProduct, a_.dim_v),
                                    outputs[static_cast<std::size_t>(i)].T());
      }
    }
    lanes_.stores.store_sums(work, softmax.log_sum_exp());
  }

  void store_queries(const Own& own, const PagedWork& work) const {
    Tile q = load(work.of_queries(lanes_.p.Q)).reshape({tile_.rows, a_.dim});
    if (own.factors) {
      const Tile wide = q.cast(f32), top = reduce_max(abs(wide), 1);
      const Tile factor = where(top > 0, exp2(floor(log2(top))), 1);
      store(*own.factors, factor.T());
      q = (wide / factor).cast(f16);
    }
    store(own.queries, in_registers_ ? in_order_of_loads(q) : q);
  }

  // For each 64 keys, {keys, rows}.
  std::vector<Pending> of_keys(const SharedView& stored, const SharedView& queries) const {
    if (!in_registers_) return {wgmma(stored, queries.T())};
    const Tile keys = in_order_of_loads(loaded(stored, map_of_keys(keys_, a_.dim)));
    std::vector<Pending> products;
    for (const Tile& rows : in_registers_of_products(keys)) {
      products.push_back(wgmma(rows, queries.T()));
    }
    return products;
  }

  // For each product, unless these read values where they are.
  std::vector<Tile> values_in_registers(const SharedView& stored) const {
    if (!in_registers_) return {};
    return rows_of_products(loaded(stored, map_of_values(keys_, a_.dim_v / kRowsOfProduct)));
  }

  Tile loaded(const SharedView& stored, const RegisterMap& map) const {
    const Tile tile = in_registers(load(stored), map);
    return a_.quantised ? tile.cast(dtype_) : tile;
  }

  const PagedAttention& a_;
  PagedRows tile_;
  DType dtype_;
  int keys_;  // of a block
  PagedLanes lanes_;
  bool in_registers_;  // keys and values, as products take them
  std::vector<std::unique_ptr<Own>> own_;
};

}  // namespace

Program attention_paged_keys_sm90(const PagedAttention& a, KeyParts keys, SourceLocation where) {
  return program_of_lanes<KeysAsRows>(a, keys, /*gathers=*/true,
                                      {"attention_paged_keys_sm90", where});
}

}  // namespace tilewright::kernels
