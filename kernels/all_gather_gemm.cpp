#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/gemm_ranks_check.h"
#include "kernels/gemm_sm90.h"
#include "kernels/joined_rows.h"
#include "kernels/rank_words.h"
#include "kernels/row_push.h"

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
// push is in parts of the depth alone: the more, the less the tiles of one wave wait for the first.
struct Parts {
  int blocks, depths;
  int words() const { return blocks - 1 + depths; }  // of a rank
};
bool is_pushed(const AllGatherGemm& o) { return o.push || o.join_ranks; }
bool is_wide(const AllGatherGemm& o) { return o.gemm.block_n > 128; }
Parts parts_of(const AllGatherGemm& o) {
  if (o.join_ranks) return {1, 16};
  if (o.push) return {1, is_wide(o) ? 16 : 8};
  return o.ranks == 2 ? Parts{4, 4} : Parts{2, 1};
}
// Small pieces are on the link sooner, and it waits less for the next one (docs/log). Beside wide
// tiles, which need four stages of their own, shared memory has room for few.
RowPush::Plan push_plan(const AllGatherGemm& o) {
  return {.ranks = o.ranks,
          .dtype = o.gemm.dtype,
          .rows = 32,
          .depths = parts_of(o).depths,
          .stages = is_wide(o)     ? 2
                    : o.join_ranks ? 4
                                   : 8,
          .block_k = o.gemm.block_k};
}

// Rows of a block, which no tile lies across, and columns of a part of the depth.
Dim block_rows(const AllGatherGemm& o, const Dim& m) {
  const int tile = o.gemm.block_m * (o.share_ranks ? 1 : o.gemm.share_b);
  return ceil_div(m, tile * parts_of(o).blocks) * tile;
}
Dim part_depth(const AllGatherGemm& o, const Dim& k) {
  if (is_pushed(o)) return push_plan(o).part_depth(k);
  return ceil_div(k, parts_of(o).depths * o.gemm.block_k) * o.gemm.block_k;
}

// What a kernel gets.
struct GatherTensors {
  GatherTensors(Kernel& kernel, const AllGatherGemm& o)
      : m(kernel.dim("m")),
        n(kernel.dim("n", multiple_of(8))),
        k(kernel.dim("k", multiple_of(8))),
        A(kernel.in("A", o.gemm.dtype, {m, k})),
        B(kernel.in("B", o.gemm.dtype, {n, k})),
        C(kernel.out("C", o.gemm.dtype, {kernel.ranks(), m, n})),
        gathered(kernel.symmetric("gathered", o.gemm.dtype, gathered_shape(o, m, k))),
        arrived(kernel.symmetric("arrived", i32, {kernel.ranks() * parts_of(o).words()})) {}

  // Copy engines have one half, and wait.
  static std::vector<Dim> gathered_shape(const AllGatherGemm& o, const Dim& m, const Dim& k) {
    if (is_pushed(o)) return RowPush::shape(o.ranks, m, k);
    return {o.ranks * m, k};
  }

  Dim m, n, k;
  Tensor A, B, C;
  Tensor gathered;  // the others' rows; nothing where this rank's own would be
  Tensor arrived;   // how far each of them has come
};

class AllGatherSm90 : public GemmSm90 {
 public:
  AllGatherSm90(Kernel& kernel, const AllGatherGemm& o, const GatherTensors& of, SharedPlan plan)
      : GemmSm90(kernel, o.gemm, {of.m, of.n, of.k, of.A, of.B}, std::move(plan), o.gemm.dtype),
        o_(o),
        kernel_(kernel),
        ranks_(kernel.ranks()),
        of_(of) {
    if (o.push) push_.emplace(kernel, push_plan(o), of.A, of.m, of.k, of.gathered, of.arrived);
  }

 private:
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
    if (push_) return push_->rows_of(rank, rows, columns);
    // Behind a rank's last row is the next one's first, which may not be there yet.
    const Index first = rank * p_.m;
    return of_.gathered(Block(first + rows.start(), rows.size(), first + rows.limit()), columns);
  }

  void wait_for(const Work& w, const Index& depth) {
    if (push_) {
      push_->wait_for(w.rank, depth);
    } else {
      const Parts parts = parts_of(o_);
      const Index block = min(w.rows.start() / block_rows(o_, p_.m), parts.blocks - 1);
      const Index word = block + select(block == parts.blocks - 1, depth, 0);
      wait_flag(of_.arrived(w.rank * parts.words() + word), Compare::ge, kernel_.epoch(), kLearn);
    }
    fence_proxy_async_global();
  }

  std::vector<RoleSpec> more_roles(RegisterBudget budget) override {
    return push_ ? push_->roles(budget) : std::vector<RoleSpec>();
  }
  void finish(const Work& w, const std::vector<Tile>& sums, const Index& group) override {
    store_runs(
        w, group, [&](const Block& rows, const Block& cols) { return of_.C(w.rank, rows, cols); },
        [&](const Run& run) { return part_of(sums, run); });
  }

  const AllGatherGemm o_;
  Kernel& kernel_;
  const Dim ranks_;
  const GatherTensors of_;
  std::optional<RowPush> push_;
};

// Few rows: a tile has as many of each rank, its own first, so that B is read once. All tiles wait
// for all ranks, part by part of the depth; so of a tile that the grid divides each CTA has blocks
// of every part.
class JoinedGatherSm90 : public GemmSm90 {
 public:
  JoinedGatherSm90(Kernel& kernel, const AllGatherGemm& o, const GatherTensors& of, SharedPlan plan)
      : GemmSm90(kernel, o.gemm, {rows_of(kernel, o, of).all(), of.n, of.k, of.A, of.B},
                 std::move(plan), o.gemm.dtype),
        rows_(rows_of(kernel, o, of)),
        kernel_(kernel),
        of_(of),
        push_plan_(push_plan(o)),
        push_(kernel, push_plan_, of.A, of.m, of.k, of.gathered, of.arrived) {}

 private:
  static JoinedRows rows_of(Kernel& kernel, const AllGatherGemm& o, const GatherTensors& of) {
    return JoinedRows(kernel, o.ranks, o.gemm.block_m, of.m);
  }
  std::vector<RoleSpec> more_roles(RegisterBudget budget) override { return push_.roles(budget); }

  Work part_of_depth(const Work& w) const override {
    Work strided = w;
    strided.first = 0;
    strided.last = steps_before(w, ceil_div(p_.k, g_.block_k));
    return strided;
  }
  // Of the tile's part, blocks along k before the given one: every parts-th is its own.
  static Index steps_before(const Work& w, const Index& block) {
    return max(block - w.part + w.parts - 1, 0) / w.parts;
  }

  void load_tile(const Work& w) override {
    const Dim width = push_plan_.part_depth(p_.k) / g_.block_k;
    const Dim blocks = ceil_div(p_.k, g_.block_k);
    for (Index part : range(push_plan_.depths)) {
      each_other_rank(kernel_, rows_.ranks(),
                      [&](const Index& from) { push_.wait_for(from, part); });
      fence_proxy_async_global();
      const Index first = steps_before(w, min(part * width, blocks));
      const Index last = steps_before(w, min(part * width + width, blocks));
      for (Index step : range(first, last)) {
        const Block depth = p_.k.block(step * w.parts + w.part, g_.block_k);
        ring_.produce([&](const Slot& slot) {
          load_rows(w, depth, slot[0]);
          load_b(w, depth, slot[1]);
        });
      }
    }
  }
  void load_rows(const Work& w, const Block& depth, const SharedView& to) {
    const Block rows = rows_.of_tile(w.rows);
    tma_load(p_.A(rows, depth), to.rows(0, rows_.count()));
    for (int i = 1; i < rows_.ranks(); ++i) {
      tma_load(push_.rows_of(rows_.rank_at(i), rows, depth),
               to.rows(i * rows_.count(), rows_.count()));
    }
  }

  // Each warp stores rows of one rank.
  Destination destination(const Work&) const override {
    return [this](const Block& rows, const Block& cols) {
      const auto [rank, own] = rows_.of_part(rows);
      return of_.C(rank, own, cols);
    };
  }

  const JoinedRows rows_;
  Kernel& kernel_;
  const GatherTensors of_;
  const RowPush::Plan push_plan_;
  RowPush push_;
};

Kernel all_gather_kernel_sm90(const AllGatherGemm& o, const Caller& caller) {
  const int pushed = is_pushed(o) ? push_plan(o).shared_bytes() : 0;
  SharedPlan plan = plan_shared(o.gemm, caller, o.gemm.dtype, pushed);
  Kernel kernel(caller.function);
  const GatherTensors tensors(kernel, o);
  if (o.join_ranks) {
    JoinedGatherSm90(kernel, o, tensors, std::move(plan)).record(kernel);
  } else {
    AllGatherSm90(kernel, o, tensors, std::move(plan)).record(kernel);
  }
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
  if (o.join_ranks) {
    check_joined_sm90(o.gemm, o.ranks, caller);
  } else {
    check_ranks_sm90(o.gemm, o.ranks, o.share_ranks, caller);
  }
  Program program(caller.function, o.ranks, where);
  const DType dtype = o.gemm.dtype;
  const Dim m = program.dim("m"), n = program.dim("n", multiple_of(8));
  const Dim k = program.dim("k", multiple_of(8));
  const Buffer A = program.in("A", dtype, {m, k}), B = program.in("B", dtype, {n, k});
  const Buffer C = program.out("C", dtype, {o.ranks, m, n});
  const Kernel kernel = all_gather_kernel_sm90(o, caller);
  const Buffer gathered =
      program.scratch("gathered", dtype, GatherTensors::gathered_shape(o, m, k));
  const Buffer arrived = program.signals("arrived", o.ranks * parts_of(o).words());
  if (is_pushed(o)) {
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
