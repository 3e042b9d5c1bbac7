#include <algorithm>
#include <deque>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "kernels/attention_paged_copies.h"
#include "kernels/attention_paged_plan.h"
#include "kernels/attention_paged_program.h"
#include "tilewright/function_ref.h"
#include "tilewright/hopper.h"
#include "tilewright/kernels/softmax.h"
#include "tilewright/plan_case.h"
#include "tilewright/target.h"

// Latent attention: a block of keys is in shared memory once, and its first columns are the values.
// The output of 64 rows has more columns than a warpgroup has registers for. So one warpgroup
// computes the scores, and hands the weights to two others, which compute a half of the output
// each.
//
// What bounds is how long a block's columns stay: from the first product that reads them to the
// last one, and as long again until others have come from memory. So queries are in registers as
// far as they meet values, which leaves room for a third block. Columns come in four rings, each
// loaded by a warp: the first and the last ones of the values, those between them, and those that
// are no values, which come back early. Weights are stored beside the next block's last scores,
// and meet the values while the softmax of these scores leaves the tensor cores to them.
namespace tilewright::kernels {
namespace {

constexpr int kLatentRows = kRowsOfPlan;
constexpr int kLatentKeys = kKeysOfBlock;  // of a stage
constexpr int kHalves = 2;                 // of the output
constexpr int kLatentPanel = 64;   // columns of 2 bytes, which shared memory swizzles together
constexpr int kMostColumns = 256;  // of the output, that a warpgroup has registers for
constexpr int kMostColumnsOfPiece = 128;
constexpr int kLatentBarrierBytes = 1 << 10;

// Of 512 that a thread of each of the four warpgroups has: of the scores' up to 96 are queries.
constexpr int kRegistersOfLoads = 24, kRegistersOfScores = 168, kRegistersOfValues = 160;

constexpr int kStagesOfTail = 2;    // which come back early
constexpr int kMostPagesAhead = 4;  // that a warp that loads has registers for

int tail_of(const PagedAttention& a) { return a.dim - a.dim_v; }

// Columns that a product of values has: of wider ones ptxas wants more registers than there are.
int columns_of_piece(const PagedAttention& a) {
  return std::gcd(a.dim_v / kHalves, kMostColumnsOfPiece);
}
int pieces_of(const PagedAttention& a) { return a.dim_v / columns_of_piece(a); }
int middle_of(const PagedAttention& a) { return a.dim_v - 2 * columns_of_piece(a); }

// Stages of blocks, and of their first piece fewer.
int fewer_stages(int stages) { return std::max(stages - 1, 2); }
int bytes_of_stages(const PagedAttention& a, int stages) {
  const int piece = columns_of_piece(a), tail = tail_of(a);
  const int columns =
      stages * (a.dim_v - piece) + fewer_stages(stages) * piece + kStagesOfTail * tail;
  return size_of(a.dtype) * (kLatentRows * (piece + tail + kLatentKeys) + kLatentKeys * columns) +
         size_of(f32) * kLatentRows + kLatentBarrierBytes;
}
int latent_stages_of(const PagedAttention& a) {
  const auto all = static_cast<int>(target_limits("sm_90a").shared_bytes);
  int stages = 1;
  while (bytes_of_stages(a, stages + 1) <= all) ++stages;
  return stages;
}

void check_latent_sm90(const PagedAttention& a, KeyParts keys, const Caller& caller) {
  check_paged(a, caller);
  if (keys == KeyParts::one) check_undivided(a, caller);
  if (!a.latent) caller.refuse("latent is not set", "take attention_paged_sm90");
  check_elements(a, caller);
  if (a.dim % kLatentPanel != 0 || latent_stages_of(a) < 2) {
    caller.refuse("dim is " + std::to_string(a.dim),
                  "take a multiple of 64, up to 576, or attention_paged");
  }
  if (a.dim_v % (kHalves * kLatentPanel) != 0 || a.dim_v > kHalves * kMostColumns) {
    caller.refuse("dim_v is " + std::to_string(a.dim_v),
                  "take a multiple of 128, up to 512, or attention_paged");
  }
  if (a.page % PageCopies::kRowUnit != 0) {
    caller.refuse("page is " + std::to_string(a.page),
                  "take a multiple of 8 slots, or attention_paged");
  }
}

// What the scores' warpgroup tells the others: a block's weights, and what sums of earlier ones are
// multiplied by. Behind the last block, what the output is multiplied by.
class Handover {
 public:
  Handover(Kernel& kernel, DType dtype)
      : weights_(kernel, "weights", dtype, kLatentRows, kLatentKeys),
        factors_(kernel, "factors", f32, 1, kLatentRows),
        given_(kernel, kThreads),
        taken_(kernel, kThreads) {}
  // The roles begin and end together: nothing is in the way of the first weights.
  void begin_taking() { taken_.arrive(); }
  void end_giving() { taken_.sync(); }

  void give(const Tile& weights, const Tile& factors) {
    taken_.sync();
    tilewright::store(weights_, weights);
    give_factors(factors);
  }
  void give_last(const Tile& factors) {
    taken_.sync();
    give_factors(factors);
  }
  // Its products read the weights until `return_back`.
  SharedView take(std::deque<Var>& sums) {
    const Tile factors = take_factors();
    when(any_nearby(factors != 1), [&] {
      for (Var& sum : sums) sum = sum * factors;
    });
    return weights_;
  }
  Tile take_factors() {
    given_.sync();
    return load(factors_).reshape({kLatentRows, 1});
  }
  void return_back() { taken_.arrive(); }

 private:
  static constexpr int kThreads = 128 * (1 + kHalves);
  void give_factors(const Tile& factors) {
    tilewright::store(factors_, factors.T());
    fence_proxy_async();
    given_.arrive();
  }
  SharedTile weights_, factors_;
  NamedBarrier given_, taken_;
};

class LatentForward {
 public:
  LatentForward(Kernel& kernel, const PagedAttention& a, KeyParts keys)
      : a_(a),
        tile_(rows_of_plan(a)),
        p_(kernel, a),
        plan_(PagedPlan::declared(kernel, p_, tile_, keys)),
        stores_(kernel, a, p_, keys, tile_),
        items_(p_, tile_, stores_, plan_),
        copies_(p_, kLatentKeys, kMostPagesAhead),
        handover_(kernel, a.dtype) {
    const int all = latent_stages_of(a), piece = columns_of_piece(a);
    const auto declare = [&](std::optional<Ring>& ring, const char* name, int count, int columns) {
      ring.emplace(kernel, name, stages(count),
                   std::vector<TileShape>{{a.dtype, kLatentKeys, columns}}, here());
    };
    declare(first_, "first", fewer_stages(all), piece);
    first_->numbered();
    if (middle_of(a) > 0) {
      declare(middle_, "middle", all, middle_of(a));
    }
    declare(last_, "last", all, piece);
    std::vector<TileShape> queries{{a.dtype, kLatentRows, piece}};
    if (tail_of(a) > 0) {
      queries.push_back({a.dtype, kLatentRows, tail_of(a)});
      declare(tail_, "tail", kStagesOfTail, tail_of(a));
    }
    q_.emplace(kernel, "q", stages(1), queries, here());
    kernel.ctas(multiprocessors());
    std::vector<RoleSpec> roles;
    const auto load = [&](const char* name, const std::function<void(const PagedWork&)>& item) {
      roles.push_back(
          role(name, warps(1), registers(kRegistersOfLoads), [this, item] { each_item(item); }));
    };
    load("load_last", [this](const PagedWork& work) { load_last(work); });
    if (middle_) load("load_middle", [this](const PagedWork& work) { load_middle(work); });
    load("load_first", [this](const PagedWork& work) { load_first(work); });
    if (tail_) load("load_tail", [this](const PagedWork& work) { load_tail(work); });
    roles.push_back(role("scores", warpgroups(1), registers(kRegistersOfScores), [this] {
      each_item([&](const PagedWork& work) { compute_scores(work); });
      handover_.end_giving();
    }));
    for (int half = 0; half < kHalves; ++half) {
      roles.push_back(role("values" + std::to_string(half), warpgroups(1),
                           registers(kRegistersOfValues), [this, half] {
                             handover_.begin_taking();
                             each_item([&](const PagedWork& work) { compute_values(work, half); });
                           }));
    }
    kernel.roles(roles);
    kernel.require({wgmma_ss, wgmma_rs, no_stack, no_spills});
  }

 private:
  // Items of this CTA, the same for all roles.
  template <typename Body>
  void each_item(const Body& body) {
    const Index count = items_.count();
    for (Index round : range(ceil_div(max(count - cta_index(), 0), cta_count()))) {
      const PagedWork work(p_, tile_, items_.item(cta_index() + round * cta_count()));
      when(work.rows.start() < work.rows.limit(), [&] { body(work); });
    }
  }

  int columns() const { return columns_of_piece(a_); }
  int last_piece() const { return pieces_of(a_) - 1; }
  // Two tiles of heads read the same keys at about the same time. What one of them asks for late,
  // for want of stages, the other one asks for early, so that it is in L2 then: odd tiles have the
  // first and the last piece exchanged.
  Index first_column(const PagedWork& work, int piece) const {
    const bool is_end = piece == 0 || piece == last_piece();
    if (!is_end || !plan_case("heads in several tiles", tile_.head_blocks > 1)) {
      return piece * columns();
    }
    return select(work.item.head_block % 2 == 0, piece, last_piece() - piece) * columns();
  }
  Block piece_of_row(const PagedWork& work, int piece) const {
    return Block(first_column(work, piece), columns(), a_.dim);
  }
  Block middle_of_row() const { return Block(columns(), middle_of(a_), a_.dim); }
  Block tail_of_row() const { return Block(a_.dim_v, tail_of(a_), a_.dim); }

  // Queries that stay in registers come the way of the keys, in front of them.
  void load_last(const PagedWork& work) {
    q_->produce([&](const Slot& q) {
      load_queries(work, piece_of_row(work, last_piece()), q[0]);
      if (tail_) load_queries(work, tail_of_row(), q[1]);
    });
    each_block(work, [&](const CopiedBlock& block) {
      last_->produce([&](const Slot& stage) {
        load_keys(work, block, piece_of_row(work, last_piece()), stage);
      });
    });
  }
  void load_middle(const PagedWork& work) {
    middle_->produce([&](const Slot& stage) { load_queries(work, middle_of_row(), stage); });
    each_block(work, [&](const CopiedBlock& block) {
      middle_->produce([&](const Slot& stage) { load_keys(work, block, middle_of_row(), stage); });
    });
  }
  // Its stages have the numbers.
  void load_first(const PagedWork& work) {
    first_->produce(0,
                    [&](const Slot& stage) { load_queries(work, piece_of_row(work, 0), stage); });
    each_block(work, [&](const CopiedBlock& block) {
      first_->produce(block.missing[0], [&](const Slot& stage) {
        load_keys(work, block, piece_of_row(work, 0), stage);
      });
    });
  }
  void load_tail(const PagedWork& work) {
    each_block(work, [&](const CopiedBlock& block) {
      tail_->produce([&](const Slot& stage) { load_keys(work, block, tail_of_row(), stage); });
    });
  }

  void each_block(const PagedWork& work, const PageCopies::Bring& bring) const {
    const auto [first, last] = work.blocks_of_part(kLatentKeys);
    when(first < last,
         [&, first = first, last = last] { copies_.each_block(work, first, last, bring); });
  }
  void load_queries(const PagedWork& work, const Block& columns, const SharedView& to) const {
    const Block heads = Dim(a_.heads).block(work.item.head_block, tile_.heads);
    tma_load(p_.Q(work.rows, heads, columns), to);
  }
  void load_keys(const PagedWork& work, const CopiedBlock& block, const Block& columns,
                 const SharedView& to) const {
    copies_.load(block.copies, [&](const PageSlots& at, int row, int rows) {
      tma_load(p_.keys(at, work.kv_head, columns), to.rows(row, rows));
    });
  }

  SharedView of_middle(const Slot& stage, int piece) const {
    return stage[0].columns((piece - 1) * columns(), columns());
  }

  struct Queries {
    Slot shared;                // of the last piece, and the tail
    std::optional<Tile> first;  // in registers, as those of the middle
    std::vector<Tile> middle;
  };
  // The stages of a block, and its scores, which are on their way.
  struct Scores {
    Slot first, last;
    std::optional<Slot> middle, tail;
    Pending products;
  };

  // The last products have their queries in registers: beside these a warpgroup can store.
  Scores multiply(const Queries& queries, FunctionRef<void()> between = {}) {
    const Slot last = last_->consume();
    Pending products = wgmma(queries.shared[0], last.T());
    std::optional<Slot> tail, middle;
    if (tail_) {
      tail = tail_->consume();
      products = wgmma(queries.shared[1], tail->T(), products);
    }
    if (middle_) middle = middle_->consume();
    for (int piece = 1; piece < last_piece(); ++piece) {
      products = wgmma(queries.middle[static_cast<std::size_t>(piece - 1)],
                       of_middle(*middle, piece).T(), products);
    }
    if (between) between();
    const Slot first = first_->consume();
    products = wgmma(*queries.first, first.T(), products);
    return {first, last, middle, tail, products};
  }

  Tile weigh(const PagedWork& work, OnlineSoftmax& softmax, const Index& j, const Scores& block) {
    const auto [whole_first, whole_last] = work.mask.full(work.rows, work.keys, kLatentKeys);
    const std::vector<Index> missing = copies_.missing_of(block.first);
    Var scores{p_.capped(wait(block.products))};
    last_->release(block.last);
    if (tail_) tail_->release(*block.tail);
    if (middle_) middle_->release(*block.middle);
    first_->release(block.first);
    when(j < whole_first || j >= whole_last, [&] {
      const Tile s = scores;
      scores = work.mask.apply(s, work.rows, work.keys.block(j, kLatentKeys));
    });
    when(PageCopies::any(missing), [&] {
      const Tile s = scores;
      scores = copies_.without(s, missing);
    });
    const Tile s = scores;
    softmax.raise(s);
    return softmax.weights(s).cast(a_.dtype);
  }

  void compute_scores(const PagedWork& work) {
    const auto [first, last] = work.blocks_of_part(kLatentKeys);
    Queries queries{q_->consume(), {}, {}};
    if (middle_) {
      const Slot slot = middle_->consume();
      for (int piece = 1; piece < last_piece(); ++piece) {
        queries.middle.push_back(load(of_middle(slot, piece)));
      }
      fence_proxy_async();  // what was loaded from here TMA overwrites
      middle_->release(slot);
    }
    const Slot slot = first_->consume();
    queries.first = load(slot);
    fence_proxy_async();
    first_->release(slot);
    OnlineSoftmax softmax(kLatentRows, p_.scale, stores_.sinks(work));
    when(first < last, [&, first = first, last = last] {
      Var weights{weigh(work, softmax, first, multiply(queries))};
      for (Index j : range(first + 1, last)) {
        const Scores next = multiply(queries, [&] { handover_.give(weights, softmax.rescale()); });
        weights = weigh(work, softmax, j, next);
      }
      handover_.give(weights, softmax.rescale());
    });
    q_->release(queries.shared);
    handover_.give_last(softmax.normaliser());
    stores_.store_sums(work, softmax.log_sum_exp());
  }

  // Of the first piece and some behind it, or of the last one and the others.
  void compute_values(const PagedWork& work, int half) {
    const auto [first, last] = work.blocks_of_part(kLatentKeys);
    const int end = half == 0 ? 0 : last_piece(), count = pieces_of(a_) / kHalves;
    const int first_inside = half == 0 ? 1 : count;
    Ring& ring = half == 0 ? *first_ : *last_;
    // Queries, which are of no use here.
    if (half == 0) ring.release(ring.consume());
    if (middle_) middle_->release(middle_->consume());
    std::deque<Var> sums;
    for (int i = 0; i < count; ++i) sums.emplace_back(zeros({kLatentRows, columns()}));
    for ([[maybe_unused]] Index j : range(first, last)) {
      const SharedView weights = handover_.take(sums);
      const Slot stage = ring.consume();
      std::vector<Pending> pending{wgmma(weights, stage, sums[0])};
      std::optional<Slot> middle;
      if (middle_) middle = middle_->consume();
      for (int i = 1; i < count; ++i) {
        pending.push_back(wgmma(weights, of_middle(*middle, first_inside + i - 1),
                                sums[static_cast<std::size_t>(i)]));
      }
      for (std::size_t i = 0; i < pending.size(); ++i) {
        sums[i] = wait(pending[i]);
        if (i + 1 == pending.size()) handover_.return_back();
        if (i == 0) ring.release(stage);
      }
      if (middle_) middle_->release(*middle);
    }
    const Tile normaliser = handover_.take_factors();
    handover_.return_back();
    for (int i = 0; i < count; ++i) {
      const Index column = first_column(work, i == 0 ? end : first_inside + i - 1);
      stores_.store_outputs(work, Block(column, columns(), column + columns()),
                            sums[static_cast<std::size_t>(i)] * normaliser);
    }
  }

  const PagedAttention& a_;
  PagedRows tile_;
  PagedParameters p_;
  std::optional<PagedPlan> plan_;
  PagedStores stores_;
  PagedItems items_;
  PageCopies copies_;
  // Of columns of keys; `tail_`: of those that are no values. The first ring's stages have a
  // number: see PageCopies.
  std::optional<Ring> first_, middle_, last_, tail_;
  std::optional<Ring> q_;  // queries that are not in registers
  Handover handover_;
};

}  // namespace

Program attention_paged_mla_sm90(const PagedAttention& a, KeyParts keys, SourceLocation where) {
  check_latent_sm90(a, keys, {"attention_paged_mla_sm90", where});
  Kernel kernel(keys == KeyParts::one ? "attention_paged_whole" : "attention_paged_parts");
  LatentForward forward(kernel, a, keys);
  return paged_program("attention_paged_mla_sm90", a, kernel,
                       {keys, rows_of_plan(a), places(a, multiprocessors())});
}

}  // namespace tilewright::kernels
