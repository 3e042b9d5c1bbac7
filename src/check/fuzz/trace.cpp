#include "check/fuzz/recipe.h"
#include "check/fuzz/tracing.h"
#include "tilewright/hopper.h"
#include "tilewright/target.h"

namespace tilewright::checks::fuzz {
namespace {

constexpr int kGroupRows = 64;
const std::vector<Axis> kProductAxes{Axis::rows, Axis::columns};
const Cuts kProductCuts{1u << static_cast<unsigned>(Axis::rows),
                        1u << static_cast<unsigned>(Axis::columns)};

struct Operands {
  Operands(Tracing& tracing, const ExplicitPlan& plan)
      : a(tracing.input({Axis::rows, Axis::depth}, bf16, false)),
        b(plan.b_by_rows ? tracing.input({Axis::columns, Axis::depth}, bf16, false)
                         : tracing.input({Axis::depth, Axis::columns}, bf16, false)) {}
  Tensor a, b;
};

// What a kernel of the explicit level begins with, at the tile level.
Tile product(Tracing& tracing, const Recipe& recipe, const Tracing::Place& place) {
  const Operands in(tracing, recipe.plan);
  Var sum{zeros({place.rows, place.columns})};
  for (Block depth : blocks(tracing.depth, recipe.block_depth)) {
    const Tile a = load(in.a(place.rows, depth));
    const Tile b = recipe.plan.b_by_rows ? load(in.b(place.columns, depth)).T()
                                         : load(in.b(depth, place.columns));
    sum = dot(a, b, sum);
  }
  return sum;
}

// A ring that one warp fills for warpgroups of 64 rows each; CTAs of a cluster lie below each
// other and share B.
class ExplicitKernel {
 public:
  explicit ExplicitKernel(const Recipe& recipe)
      : recipe_(recipe),
        plan_(recipe.plan),
        kernel_("fuzz"),
        tracing_(kernel_, recipe, launch_),
        in_(tracing_, plan_),
        columns_(ceil_div(tracing_.columns, recipe.block_columns)),
        tiles_(ceil_div(tracing_.rows, kGroupRows * plan_.warpgroups * plan_.cluster) * columns_) {}

  Kernel trace(std::string_view target) {
    kernel_.target(target);
    const int cluster = plan_.cluster;
    kernel_.ctas(
        plan_.persistent ? min(multiprocessors() / cluster, tiles_) * cluster : tiles_ * cluster,
        cluster);
    const int wide = recipe_.block_columns, deep = recipe_.block_depth,
              own = wide * tiles_of_stage();
    Ring ring(kernel_, "ab", stages(plan_.stages),
              {{bf16, kGroupRows * plan_.warpgroups, deep},
               plan_.b_by_rows ? TileShape{bf16, own, deep} : TileShape{bf16, deep, own}});
    if (plan_.multicast) ring.multicast();
    const auto load_role = [&] {
      each_tile([&](const Index& row, const Index& column) { fill(ring, row, column); });
    };
    const auto math_role = [&](const Index& group) {
      each_tile([&](const Index& row, const Index& column) {
        const Index number = row * plan_.warpgroups + group;
        const Tile sum = multiply(ring, group, column);
        const auto rest = [&] {
          tracing_.run({tracing_.rows.block(number, kGroupRows),
                        tracing_.columns.block(column, wide), number, column},
                       {{sum, kProductAxes, kProductCuts}});
        };
        // Some groups of the last CTAs have no rows: `number` is an index of what they store.
        if (plan_.warpgroups * plan_.cluster == 1) return rest();
        when(number < ceil_div(tracing_.rows, kGroupRows), rest);
      });
    };
    const RoleRegisters share = role_registers(target_limits(target), plan_.warpgroups);
    kernel_.roles(
        {role("load", warps(1), registers(share.loading), load_role),
         role("math", warpgroups(plan_.warpgroups), registers(share.computing), math_role)});
    return std::move(kernel_);
  }

 private:
  template <typename Body>
  void each_tile(const Body& body) {
    const auto at = [&](const Index& tile) {
      body(tile / columns_ * plan_.cluster + cluster_rank(), tile % columns_);
    };
    if (!plan_.persistent) return at(cta_index() / plan_.cluster);
    for (Index tile : range(cta_index() / plan_.cluster, tiles_, cta_count() / plan_.cluster)) {
      at(tile);
    }
  }

  void fill(Ring& ring, const Index& row, const Index& column) {
    const Block rows = tracing_.rows.block(row, kGroupRows * plan_.warpgroups);
    const Block columns =
        tracing_.columns.block(column / tiles_of_stage(), recipe_.block_columns * tiles_of_stage());
    for (Block depth : blocks(tracing_.depth, recipe_.block_depth)) {
      ring.produce([&](const Slot& slot) {
        tma_load(in_.a(rows, depth), slot[0]);
        const Block& along = plan_.b_by_rows ? columns : depth;
        const int part = along.size() / plan_.cluster;
        const Block own = plan_.multicast ? along.part(cluster_rank(), part) : along;
        const SharedView to = plan_.multicast ? slot[1].rows(cluster_rank() * part, part) : slot[1];
        const TmaOptions options{Cache::normal, plan_.multicast};
        if (plan_.b_by_rows) return tma_load(in_.b(own, depth), to, options);
        tma_load(in_.b(own, columns), to, options);
      });
    }
  }

  int tiles_of_stage() const { return plan_.wide_stages ? 2 : 1; }

  // This tile's columns of a stage.
  SharedView own_columns(const SharedView& b, const Index& column) const {
    const int wide = recipe_.block_columns;
    if (!plan_.wide_stages) return plan_.b_by_rows ? b.T() : b;
    const Index which = column % tiles_of_stage();
    return plan_.b_by_rows ? b.rows(which * wide, wide).T() : b.column_part(which, wide);
  }

  // The part of a stage, of which two halves lie below or beside each other.
  Tile in_halves(const SharedView& a, const SharedView& b, const Index& column, Tile sum) const {
    const int half = recipe_.block_depth / 2;
    for (const int first : {0, half}) {
      const SharedView part = plan_.b_by_rows ? b.columns(first, half) : b.rows(first, half);
      sum = wait(wgmma(a.columns(first, half), own_columns(part, column), sum));
    }
    return sum;
  }

  Tile multiply(Ring& ring, const Index& group, const Index& column) {
    Var sum{zeros({kGroupRows, recipe_.block_columns})};
    for ([[maybe_unused]] Index step : range(ceil_div(tracing_.depth, recipe_.block_depth))) {
      const Slot slot = ring.consume();
      const SharedView a = slot[0].rows(kGroupRows * group, kGroupRows);
      const SharedView b = own_columns(slot[1], column);
      if (plan_.a_in_registers) {
        const Tile left = load(a);
        sum = wait(wgmma(left, b, sum));
        // The stage was read by threads, and the next copy into it is asynchronous.
        fence_proxy_async();
        warp_sync();
      } else if (plan_.halves) {
        sum = in_halves(a, slot[1], column, sum);
      } else {
        sum = wait(wgmma(a, b, sum));
      }
      ring.release(slot);
    }
    return sum;
  }

  const Recipe& recipe_;
  const ExplicitPlan& plan_;
  Kernel kernel_;
  Launch launch_;
  Tracing tracing_;
  const Operands in_;
  const Dim columns_, tiles_;
};

}  // namespace

Traced trace(const Recipe& recipe) {
  Traced traced{Kernel("fuzz"), {}};
  Tracing tracing(traced.kernel, recipe, traced.launch);
  const int bm = recipe.block_rows, bn = recipe.block_columns;
  const auto run = [&](const Tracing::Place& place) {
    std::vector<TileValue> given;
    if (recipe.style == Recipe::Style::explicit_level) {
      given.push_back({product(tracing, recipe, place), kProductAxes, kProductCuts});
    }
    tracing.run(place, given);
  };
  const Dim row_blocks = ceil_div(tracing.rows, bm);
  if (recipe.grid_of_columns) {
    const auto [x, y] = traced.kernel.grid(ceil_div(tracing.columns, bn), row_blocks);
    run({tracing.rows.block(y, bm), tracing.columns.block(x, bn), y, x});
  } else {
    const auto [y] = traced.kernel.grid(row_blocks);
    run({tracing.rows.block(y, bm), tracing.columns.block(0, bn), y, {}});
  }
  tracing.bind_dimensions();
  return traced;
}

Kernel trace_explicit(const Recipe& recipe, std::string_view target) {
  return ExplicitKernel(recipe).trace(target);
}

}  // namespace tilewright::checks::fuzz
