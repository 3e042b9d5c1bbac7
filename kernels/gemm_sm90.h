#pragma once

#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/gemm_sm90_plan.h"
#include "tilewright/function_ref.h"
#include "tilewright/hopper.h"
#include "tilewright/ranks.h"

// The pieces of products A B^T for sm_90a, of one GPU and of ranks.
namespace tilewright::kernels {

// A has the axes m and k, and n and k are those of B. Operations over ranks give it one more.
struct GemmParameters {
  // What an operand is contiguous along has `facts`, and so have C's rows.
  GemmParameters(Kernel& kernel, const Gemm& g, const DimFacts& of_operands = {},
                 const DimFacts& of_results = {});
  GemmParameters(Dim m, Dim n, Dim k, Tensor A, Tensor B)
      : m(std::move(m)), n(std::move(n)), k(std::move(k)), A(A), B(B) {}
  // What the sums are multiplied by, {1, 1}; nothing for 1.
  std::optional<Tile> scale() const;
  // What is stored of sums {rows, columns}, or {columns, rows} where they are exchanged. Keeps Z.
  Tile finished(const Tile& sums, const Block& rows, const Block& cols,
                bool exchanged = false) const;
  Dim m, n, k;
  Tensor A, B;
  std::vector<Tensor> scales;  // {1} each
  std::optional<Tensor> bias, residual, C, Z;
  Activation activation = Activation::none;
  DType dtype = bf16;  // of C and what is beside it
};

// Persistent: the CTAs, or clusters of them, go over C's tiles in bands of rows. A CTA's warp loads
// what its warpgroups multiply, which each have rows of C, or columns of it where the operands are
// exchanged: they then compute C^T = B A^T. With `split`, the CTAs of a cluster sum over their
// share of k each, exchange what they have through shared memory, and each stores its share of what
// is not divided among warpgroups.
//
// Operations over ranks say which tiles there are, where their rows of A come from, and what
// becomes of the sums.
class GemmSm90 {
 public:
  // What is stored through shared memory has the dtype `staged`.
  GemmSm90(Kernel& kernel, const Gemm& g, GemmParameters parameters, SharedPlan plan, DType staged);
  virtual ~GemmSm90() = default;
  GemmSm90(const GemmSm90&) = delete;
  GemmSm90& operator=(const GemmSm90&) = delete;

  // The kernel's CTAs and roles, which are load_tiles() and multiply().
  void record(Kernel& kernel);

 protected:
  struct Work {
    Block rows, cols;
    Index first, last;                        // blocks along k
    Index part = 0, parts = 1;                // in a grid split: which of how many
    Index rank = 0;                           // over ranks: whose rows these are
    Index number = 0;                         // of the tile, among those of the rank
    std::optional<Condition> backwards = {};  // along k, where it holds
  };
  // What a warpgroup stores at a time: 64 rows, or columns, of one of its blocks.
  struct Run {
    int number, block, first, width;
  };
  // Where results go.
  using Destination = std::function<TensorView(const Block& rows, const Block& cols)>;

  // Of the CTAs that share B's tiles, how many have rows of A that follow each other.
  virtual int rows_together() const { return g_.share_b; }
  // Roles of so many registers as the warp that loads has, which share its warpgroup.
  virtual std::vector<RoleSpec> more_roles(RegisterBudget) { return {}; }
  // Groups of tiles that clusters take, and this CTA's tile of one.
  virtual Dim tile_count() const { return tile_groups(); }
  virtual Work work(const Index& tile) const;
  virtual void load_tile(const Work& w);
  // In a grid split, which blocks along k a part has: `w` has a run of them.
  virtual Work part_of_depth(const Work& w) const { return w; }
  // Where a tile's results go.
  virtual Destination destination(const Work&) const { return *p_.C; }
  // How a warp's rows of a run leave shared memory, or where they are exchanged all of them.
  virtual void leave(const Destination& to, const Block& rows, const Block& cols,
                     const SharedView& from) {
    tma_store(to(rows, cols), from);
  }
  // What a warpgroup does beside the products of a tile, a third and two thirds on: the tensor
  // cores have one step of them meanwhile. Nothing where there is no pause.
  virtual int pauses() const { return 0; }
  virtual void pause(int, const Work&, const Index&) {}
  // What one of the warpgroups does with its sums.
  virtual void finish(const Work& w, const std::vector<Tile>& sums, const Index& group);
  virtual void multiply(const Index& group);

  // All steps along k, with these rows and columns of A.
  void load_steps(const Work& w, FunctionRef<TensorView(const Block& rows, const Block& depth)> a);
  void load_b(const Work& w, const Block& depth, const SharedView& to) {
    const auto b = [&](const Block& cols) {
      return g_.b_along_n ? p_.B(depth, cols) : p_.B(cols, depth);
    };
    load_operand(b, w.cols, to, g_.b_along_n, g_.share_b, g_.share_a, &GemmSm90::below);
  }
  void each_tile(FunctionRef<void(const Work&)> body);
  // The groups of C's tiles, and this CTA's rows and columns in one of them, by number.
  Dim tile_groups() const { return tile_rows() * tile_columns(); }
  std::pair<Block, Block> place(const Index& tile) const;
  // All of a tile, by TMA; `values` gives a run's part of it, {64, width}.
  void store_runs(const Work& w, const Index& group, const Destination& to,
                  FunctionRef<Tile(const Run&)> values);
  // Runs first .. last - 1 of it: those before have been stored, and those behind will be.
  void store_runs(const Work& w, const Index& group, const Destination& to,
                  FunctionRef<Tile(const Run&)> values, int first, int last);
  // How many runs are staged before one waits for another.
  int staged_runs() const;
  const std::vector<Run>& runs() const { return runs_; }
  static Tile part_of(const std::vector<Tile>& sums, const Run& run) {
    return sums[run.block].slice({0, run.first}, {64, run.width});
  }
  // What is divided among warpgroups, and what is not, of a run.
  Block divided_part(const Work& w, const Run& run, const Index& group) const;
  Block whole_part(const Work& w, const Run& run) const;
  Tile scaled(const Tile& sum) const { return scale_ ? sum * *scale_ : sum; }
  // The CTAs that share tiles follow each other, row by row of their tiles.
  int sharing() const { return g_.share_a * g_.share_b; }
  // A CTA's place among those that share tiles.
  Index shared_rank() const { return g_.split > 1 ? cluster_rank() % sharing() : cluster_rank(); }

  // Its tile's place in the group's, counted from the left, and from above.
  Index across() const { return g_.share_b > 1 ? shared_rank() % g_.share_a : shared_rank(); }
  Index below() const { return g_.share_a > 1 ? shared_rank() / g_.share_a : shared_rank(); }

  const Gemm g_;
  const GemmParameters p_;
  SharedPlan plan_;
  Ring ring_;  // of the operands

 private:
  // In a grid split each cluster has one part at most. Each warp gives and takes its own rows.
  struct Meeting {
    static constexpr int kCtas = 160;
    Meeting(Kernel& kernel, const Gemm& g, const std::vector<Run>& runs)
        : rows(kCtas * g.warpgroups * static_cast<int>(runs.size()) * 64),
          width(runs.front().width),
          words(kernel.workspace("met", kCtas * g.warpgroups * 4)),
          sums(kernel.scratch("sums", rows, width)) {}
    int rows, width;
    Tensor words, sums;
  };
  struct Exchange {
    Exchange(Kernel& kernel, const Gemm& g, int share, int staged)
        : parts(kernel, "parts", g.split * divided(g) / 64 * (share / staged), staged),
          written(kernel, "written"),
          read(kernel, "read") {}
    SharedFragments parts;  // for each CTA of the cluster, its share
    ClusterBarrier written, read;
  };

  Dim ctas() const;
  void load_tiles();
  void load_operand(FunctionRef<TensorView(const Block&)> view, const Block& rows,
                    const SharedView& to, bool transposed, int sharing, int stride,
                    Index (GemmSm90::*place)() const);
  // A CTA's place among those that divide k.
  Index split_rank() const { return sharing() > 1 ? cluster_rank() / sharing() : cluster_rank(); }
  Dim tile_rows() const { return ceil_div(p_.m, g_.block_m * rows_together()); }
  Dim tile_columns() const { return ceil_div(p_.n, g_.block_n * g_.share_a); }

  void each_part(FunctionRef<void(const Work&)> body);
  Dim clusters() const { return max(ctas() / sharing(), 1); }
  // Tiles, or groups of them, of a wave that is not full, and among how many each is divided. The
  // rules count alike (bench/fit_gemm_rules.py).
  Dim left_over() const { return tile_count() % clusters(); }
  Dim parts() const;
  // More would take longer to add up than they save.
  int most_parts() const { return 4 * static_cast<int>(runs_.size()); }

  // The number in the tile of one of the warpgroup's blocks of 64.
  Index block_number(const Index& group, int block) const { return group * blocks_ + block; }
  std::vector<Tile> products(const Work& w, const Index& group);

  void store_met(const Work& w, const std::vector<Tile>& sums, const Index& group);
  // The longest run that takes the same staging tiles, and that of them from which the stores of a
  // whole tile leave last.
  int longest(const Run& run) const { return staging_.lower_bound(run.width)->first; }
  const SharedTile& left_last(const Run& run) const;

  void give_parts(const std::vector<Tile>& sums, const Index& group);
  Tile sum_parts(const Run& run, const Index& group);
  Index part(const IndexOperand& cta, const Index& block, int first);

  void store_run(const Work& w, const Run& run, const Index& group, const Destination& to,
                 const Tile& value, const SharedTile& staged, std::optional<int> under_way);
  void wait_for_stores(int under_way);
  void store_columns(const Block& rows, const Block& columns, const SharedTile& staged,
                     const Index& group, const Destination& to, const Tile& result);
  void store_rows(const Block& rows, const Block& columns, const SharedTile& staged,
                  const Index& group, const Destination& to, const Tile& result);

  DType staged_;
  int blocks_;                                      // of 64 that a warpgroup multiplies
  int share_;                                       // of what is not divided, how much a CTA stores
  std::vector<Run> runs_;                           // of a warpgroup, in the order of their stores
  std::map<int, std::vector<SharedTile>> staging_;  // by the longest run that it takes
  std::optional<NamedBarrier> warpgroup_;           // of each of them
  std::optional<Exchange> exchange_;
  std::optional<Meeting> meeting_;
  std::optional<Tile> scale_;  // of the role that multiplies
};

}  // namespace tilewright::kernels
