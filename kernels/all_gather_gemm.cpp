#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/gemm_ranks_check.h"
#include "kernels/gemm_sm90.h"
#include "kernels/rank_words.h"

namespace tilewright::kernels {
namespace {

Kernel pulled_all_gather(const AllGatherGemm& o) {
  const Gemm& g = o.gemm;
  Kernel kernel("all_gather_gemm");
  const Dim m = kernel.dim("m"), n = kernel.dim("n"), k = kernel.dim("k"), ranks = kernel.ranks();
  const Tensor A = kernel.symmetric("A", g.dtype, {m, k}), B = kernel.in("B", g.dtype, {n, k});
  const Tensor C = kernel.out("C", g.dtype, {ranks, m, n});
  const auto [x, y, from] = kernel.grid(ceil_div(n, g.block_n), ceil_div(m, g.block_m), ranks);
  const Block rows = m.block(y, g.block_m), cols = n.block(x, g.block_n);
  Var sum{zeros({rows, cols})};
  for (Block depth : blocks(k, g.block_k)) {
    sum = dot(load(A.at(from)(rows, depth)), load(B(cols, depth)).T(), sum);
  }
  store(C(from, rows, cols), sum);
  return kernel;
}

// How a rank's rows come to another one: in parts, each behind a word that counts up.
//
// Copy engines copy blocks of rows: copies of 16 MB reach nine tenths of the link's rate. Between
// two ranks the last block, which a product of two waves waits for, comes in parts of its depth; of
// more ranks there are few blocks, since the host queues each copy and each word. What the warps
// push is in parts of the depth alone: few where the second wave waits for them, many where one
// wave does.
struct Parts {
  int blocks, depths;
  int words() const { return blocks - 1 + depths; }  // of a rank
};
bool is_wide(const AllGatherGemm& o) { return o.gemm.block_n > 128; }
Parts parts_of(const AllGatherGemm& o) {
  if (o.push) return {1, is_wide(o) ? 16 : 4};
  return o.ranks == 2 ? Parts{4, 4} : Parts{2, 1};
}
// Rows and columns that a warp pushes at a time, and how many of them shared memory has room for:
// beside wide tiles, which need four stages of their own, few.
constexpr int kPushed = 64;
int push_stages(const AllGatherGemm& o) { return is_wide(o) ? 2 : 4; }

// Rows of a block, which no tile lies across, and columns of a part of the depth.
Dim block_rows(const AllGatherGemm& o, const Dim& m) {
  const int tile = o.gemm.block_m * (o.share_ranks ? 1 : o.gemm.share_b);
  return ceil_div(m, tile * parts_of(o).blocks) * tile;
}
Dim part_depth(const AllGatherGemm& o, const Dim& k) {
  const int unit = o.push ? std::max(kPushed, o.gemm.block_k) : o.gemm.block_k;
  return ceil_div(k, parts_of(o).depths * unit) * unit;
}

class AllGatherSm90 : public GemmSm90 {
 public:
  AllGatherSm90(Kernel& kernel, const AllGatherGemm& o, SharedPlan plan)
      : AllGatherSm90(kernel, o, std::move(plan), kernel.dim("m"), kernel.dim("n", multiple_of(8)),
                      kernel.dim("k", multiple_of(8))) {}

  // What is pushed has two halves, for every second run.
  static std::vector<Dim> gathered_shape(const AllGatherGemm& o, const Dim& m, const Dim& k) {
    if (o.push) return {2 * o.ranks, m, k};
    return {o.ranks * m, k};
  }

 private:
  AllGatherSm90(Kernel& kernel, const AllGatherGemm& o, SharedPlan plan, const Dim& m, const Dim& n,
                const Dim& k)
      : GemmSm90(
            kernel, o.gemm,
            {m, n, k, kernel.in("A", o.gemm.dtype, {m, k}), kernel.in("B", o.gemm.dtype, {n, k})},
            std::move(plan), o.gemm.dtype),
        o_(o),
        kernel_(kernel),
        ranks_(kernel.ranks()),
        C_(kernel.out("C", o.gemm.dtype, {ranks_, m, n})),
        gathered_(kernel.symmetric("gathered", o.gemm.dtype, gathered_shape(o, m, k))),
        arrived_(kernel.symmetric("arrived", i32, {ranks_ * parts_of(o).words()})) {
    if (o.push) {
      pushed_.emplace(kernel, "pushed", stages(push_stages(o)),
                      std::vector<TileShape>{{o.gemm.dtype, kPushed, kPushed}}, here());
      stored_.emplace(kernel, kWarpThreads * 2, 1, here());
    }
  }

  // This rank's own rows, then those of the rank before it, which pushes here first, and so on.
  Dim tile_count() const override {
    return o_.share_ranks ? tile_groups() : tile_groups() * ranks_;
  }
  int rows_together() const override { return o_.share_ranks ? 1 : g_.share_b; }
  Work work(const Index& tile) const override {
    Work w = GemmSm90::work(o_.share_ranks ? tile : tile % tile_groups());
    const Index distance = o_.share_ranks ? below() : tile / tile_groups();
    w.rank = (kernel_.rank() + ranks_ - distance) % ranks_;
    return w;
  }

  void load_tile(const Work& w) override {
    when(
        w.rank == kernel_.rank(), [&] { load_steps(w, p_.A); },
        [&] {
          const Dim steps = part_depth(o_, p_.k) / g_.block_k;
          for (Index depth : range(parts_of(o_).depths)) {
            Work part = w;
            part.first = min(depth * steps, w.last);
            part.last = min(depth * steps + steps, w.last);
            wait_for(w, depth);
            load_steps(part, [&](const Block& rows, const Block& columns) {
              return gathered_rows(w.rank, rows, columns);
            });
          }
        });
  }
  TensorView gathered_rows(const Index& rank, const Block& rows, const Block& columns) const {
    if (o_.push) return gathered_(pushed_slot(rank), rows, columns);
    // Behind a rank's last row is the next one's first, which may not be there yet.
    const Index first = rank * p_.m;
    return gathered_(Block(first + rows.start(), rows.size(), first + rows.limit()), columns);
  }

  void wait_for(const Work& w, const Index& depth) {
    const Parts parts = parts_of(o_);
    const Index first = w.rank * parts.words();
    const MemoryOrder order{Semantics::acquire, Scope::system};
    if (o_.push) {
      wait_flag(arrived_(first + depth), Compare::ge, kernel_.epoch() * pushes(depth), order);
    } else {
      const Index block = min(w.rows.start() / block_rows(o_, p_.m), parts.blocks - 1);
      const Index word = block + select(block == parts.blocks - 1, depth, 0);
      wait_flag(arrived_(first + word), Compare::ge, kernel_.epoch(), order);
    }
    fence_proxy_async_global();
  }

  // This rank's rows to all others, one part of the depth after the other, through a ring of its
  // own: the products wait for nothing of it.
  std::vector<RoleSpec> more_roles(RegisterBudget budget) override {
    if (!o_.push) return {};
    return {role("fetch", warps(1), budget, [this] { fetch(); }),
            role("push", warps(1), budget, [this] { push(); }),
            role("tell", warps(1), budget, [this] { tell(); })};
  }
  void each_piece(const std::function<void(const Block& rows, const Block& depth)>& body) {
    const Dim rows = ceil_div(p_.m, kPushed), columns = ceil_div(p_.k, kPushed);
    for (Index piece : range(cta_index(), rows * columns, cta_count())) {
      body(p_.m.block(piece % rows, kPushed), p_.k.block(piece / rows, kPushed));
    }
  }
  void fetch() {
    each_piece([&](const Block& rows, const Block& depth) {
      pushed_->produce([&](const Slot& slot) { tma_load(p_.A(rows, depth), slot[0]); });
    });
  }
  // A piece is on its way while the next one leaves.
  void push() {
    const Index me = kernel_.rank();
    Cell<Index> before(Index(kNone), here());
    const auto end_before = [&](int under_way) {
      when(before != kNone, [&] {
        bulk_wait(under_way);
        pushed_->release(before);
        stored_->sync();
      });
    };
    each_piece([&](const Block& rows, const Block& depth) {
      const Slot slot = pushed_->consume();
      each_other_rank(kernel_, o_.ranks, [&](const Index& to) {
        tma_store(gathered_.at(to)(pushed_slot(me), rows, depth), slot[0]);
      });
      bulk_commit();
      end_before(1);
      before = slot.stage();
    });
    end_before(0);
  }
  // It waits for what is on its way, and the warp that pushes does not.
  void tell() {
    each_piece([&](const Block&, const Block& depth) {
      stored_->sync();
      fence(Scope::system);  // once for all of them
      each_other_rank(kernel_, o_.ranks, [&](const Index& to) {
        const Index part = depth.start() / part_depth(o_, p_.k);
        atomic_add(arrived_.at(to)(kernel_.rank() * parts_of(o_).words() + part), 1,
                   {Semantics::relaxed, Scope::system});
      });
    });
  }
  // Of a part of the depth.
  Index pushes(const Index& depth) const {
    const Dim width = part_depth(o_, p_.k);
    const Index columns = ceil_div(min(max(p_.k - depth * width, 0), width), kPushed);
    return columns * ceil_div(p_.m, kPushed);
  }

  // A rank that begins run r + 1 has ended run r, for which the others pushed when they had ended
  // run r - 1: they read what two runs push and no more. Copy engines have one half, and wait.
  Index pushed_slot(const Index& rank) const { return kernel_.epoch() % 2 * ranks_ + rank; }
  void finish(const Work& w, const std::vector<Tile>& sums, const Index& group) override {
    store_runs(
        w, group, [&](const Block& rows, const Block& cols) { return C_(w.rank, rows, cols); },
        [&](const Run& run) { return part_of(sums, run); });
  }

  static constexpr int kNone = -1, kWarpThreads = 32;
  const AllGatherGemm o_;
  Kernel& kernel_;
  Dim ranks_;
  Tensor C_;
  Tensor gathered_;  // the others' rows; nothing where this rank's own would be
  Tensor arrived_;
  std::optional<Ring> pushed_;
  std::optional<NamedBarrier> stored_;  // of the warps that push and that tell
};

Kernel all_gather_kernel_sm90(const AllGatherGemm& o, const Caller& caller) {
  const int pushed = o.push ? push_stages(o) * kPushed * kPushed * size_of(o.gemm.dtype) : 0;
  SharedPlan plan = plan_shared(o.gemm, caller, o.gemm.dtype, pushed);
  Kernel kernel(caller.function);
  AllGatherSm90(kernel, o, std::move(plan)).record(kernel);
  return kernel;
}

// A rank's rows to all others, by copy engines: two of them where there is more than one other
// rank, since one reaches less than what may leave a GPU.
class GatherCopies {
 public:
  GatherCopies(const AllGatherGemm& o, const Program& program, const Rank& rank, const Dim& m,
               const Dim& k)
      : o_(o), parts_(parts_of(o)), program_(program), rank_(rank), m_(m), k_(k) {
    for (int i = 0; i < std::min(o.ranks - 1, 2); ++i) {
      streams_.push_back(rank.stream("push" + std::to_string(i)));
    }
  }

  // Behind the words that say that the others have read what the run before has copied.
  void issue(const Buffer& A, const Buffer& gathered, const Buffer& arrived, const Buffer& taken) {
    const int others = o_.ranks - 1, words = parts_.words();
    for (const Stream& stream : streams_) {
      for (int d = 1; d <= others; ++d) stream.wait(taken[rank_.next(d)], program_.run() - 1);
    }
    for (int number = 0; number < words * others; ++number) {
      const int word = number % words, to = rank_.next(1 + number / words);
      const Place place = place_of(word);
      const Stream& stream = streams_[number % streams_.size()];
      stream.copy(
          gathered.on(to).box({rank_.number() * m_ + place.row, place.column},
                              {place.rows, place.columns}),
          A.rows(place.row, place.rows).box({0, place.column}, {place.rows, place.columns}));
      stream.write(arrived.on(to)[rank_.number() * words + word], program_.run());
    }
  }

 private:
  struct Place {
    Dim row, rows, column, columns;
  };
  Place place_of(int word) const {
    const int block = std::min(word, parts_.blocks - 1);
    const Dim most = block_rows(o_, m_), row = min(block * most, m_);
    if (block < parts_.blocks - 1) return {row, min(most, m_ - row), 0, k_};
    const Dim depth = part_depth(o_, k_), column = min((word - block) * depth, k_);
    return {row, m_ - row, column, min(depth, k_ - column)};
  }

  const AllGatherGemm& o_;
  Parts parts_;
  const Program& program_;
  const Rank& rank_;
  Dim m_, k_;
  std::vector<Stream> streams_;
};

}  // namespace

Program all_gather_gemm(const AllGatherGemm& o, SourceLocation where) {
  check_all_gather(o, {"all_gather_gemm", where});
  Program program("all_gather_gemm", o.ranks, where);
  const Dim m = program.dim("m"), n = program.dim("n"), k = program.dim("k");
  const Buffer A = program.in("A", o.gemm.dtype, {m, k}), B = program.in("B", o.gemm.dtype, {n, k});
  const Buffer C = program.out("C", o.gemm.dtype, {o.ranks, m, n});
  const Kernel kernel = pulled_all_gather(o);
  program.on_each_rank([&](const Rank& rank) { rank.stream().launch(kernel, {A, B, C}); });
  return program;
}

Program all_gather_gemm_sm90(const AllGatherGemm& o, SourceLocation where) {
  const Caller caller{"all_gather_gemm_sm90", where};
  check_all_gather(o, caller);
  check_ranks_sm90(o.gemm, o.ranks, o.share_ranks, caller);
  Program program(caller.function, o.ranks, where);
  const DType dtype = o.gemm.dtype;
  const Dim m = program.dim("m"), n = program.dim("n", multiple_of(8));
  const Dim k = program.dim("k", multiple_of(8));
  const Buffer A = program.in("A", dtype, {m, k}), B = program.in("B", dtype, {n, k});
  const Buffer C = program.out("C", dtype, {o.ranks, m, n});
  const Kernel kernel = all_gather_kernel_sm90(o, caller);
  const Buffer gathered =
      program.scratch("gathered", dtype, AllGatherSm90::gathered_shape(o, m, k));
  const Buffer arrived = program.signals("arrived", o.ranks * parts_of(o).words());
  if (o.push) {
    program.on_each_rank([&](const Rank& rank) {
      rank.stream().launch(kernel, {A, B, C, gathered, arrived});
    });
    return program;
  }
  // Words of each other rank that count up with the runs whose rows it has read.
  const Buffer taken = program.signals("taken", o.ranks);
  program.on_each_rank([&](const Rank& rank) {
    const Stream math = rank.stream("math");
    const int me = rank.number();
    GatherCopies(o, program, rank, m, k).issue(A, gathered, arrived, taken);
    math.launch(kernel, {A, B, C, gathered, arrived});
    for (int d = 1; d < rank.count(); ++d) {
      math.write(taken.on(rank.next(d))[me], program.run());
    }
  });
  return program;
}

}  // namespace tilewright::kernels
