#include "kernels/gemm_sm90.h"

#include <algorithm>
#include <deque>
#include <span>
#include <string>

#include "tilewright/function_ref.h"
#include "tilewright/plan_case.h"
#include "tilewright/target.h"

namespace tilewright::kernels {
namespace {

// Clusters of so many CTAs that run at once. More than two leave some of a GPC's multiprocessors
// idle: cuOccupancyMaxActiveClusters says 39, 30, 17 and 15 on the H200's 132.
Dim resident_clusters(int ctas) {
  const Dim all = multiprocessors();
  switch (ctas) {
    case 3:  // only callers: no variant of the library has so many
      return all * 8 / 27;
    case 4:
      return all * 5 / 22;
    case 6:
      return all * 2 / 15;
    case 8:
      return all * 5 / 44;
    case 16:
      return all * 7 / 132;
    default:
      return all / ctas;
  }
}

// Of an operand in memory: `size` rows along k, or with them exchanged.
TileShape operand_tile(const Gemm& g, int size, bool transposed) {
  if (transposed) return {g.dtype, g.block_k, size};
  return {g.dtype, size, g.block_k};
}

}  // namespace

GemmParameters::GemmParameters(Kernel& kernel, const Gemm& g, const DimFacts& of_operands,
                               const DimFacts& of_results)
    : m(g.a_along_m ? kernel.dim("m", of_operands) : kernel.dim("m")),
      n(kernel.dim("n", of_results)),
      k(g.a_along_m && g.b_along_n ? kernel.dim("k") : kernel.dim("k", of_operands)),
      A(kernel.in("A", g.dtype, g.a_along_m ? std::vector<Dim>{k, m} : std::vector<Dim>{m, k})),
      B(kernel.in("B", g.dtype, g.b_along_n ? std::vector<Dim>{k, n} : std::vector<Dim>{n, k})),
      activation(g.activation) {
  if (plan_case("scaled sums", g.dtype == f8e4m3)) {
    scales = {kernel.in("scale_a", f32, {1}), kernel.in("scale_b", f32, {1})};
  }
  dtype = result_dtype(g);
  if (plan_case("a bias", g.bias)) bias = kernel.in("bias", dtype, {n});
  if (plan_case("a residual", g.residual)) residual = kernel.in("residual", dtype, {m, n});
  C.emplace(kernel.out("C", dtype, {m, n}));
  if (plan_case("sums are kept", g.keep_sums)) Z = kernel.out("Z", dtype, {m, n});
}

Tile GemmParameters::finished(const Tile& sums, const Block& rows, const Block& cols,
                              bool exchanged) const {
  Tile value = sums;
  if (bias) {
    const Tile row = load((*bias)(cols)).cast(f32);
    value = value + (exchanged ? row.reshape({cols.size(), 1}) : row.reshape({1, cols.size()}));
  }
  if (Z) {
    const Tile kept = value.cast(dtype);
    store((*Z)(rows, cols), exchanged ? kept.T() : kept);
  }
  if (activation != Activation::none) value = activate(activation, value);
  if (!residual) return value;
  const Tile added = load((*residual)(rows, cols)).cast(f32);
  return value + (exchanged ? added.T() : added);
}

std::optional<Tile> GemmParameters::scale() const {
  if (scales.empty()) return {};
  const Block only = Dim(1).block(0, 1);
  Tile product = load(scales[0](only));
  for (std::size_t i = 1; i < scales.size(); ++i) product = product * load(scales[i](only));
  return product.reshape({1, 1});
}

GemmSm90::GemmSm90(Kernel& kernel, const Gemm& g, GemmParameters parameters, SharedPlan plan,
                   DType staged)
    : g_(g),
      p_(std::move(parameters)),
      plan_(std::move(plan)),
      ring_(kernel, "ab", stages(plan_.stages),
            {operand_tile(g, g.block_m, g.a_along_m), operand_tile(g, g.block_n, g.b_along_n)}),
      staged_(staged),
      blocks_(divided(g) / 64 / g.warpgroups),
      share_(undivided(g) / g.split) {
  plan_case("shares A", g.share_a > 1);
  plan_case("shares B", g.share_b > 1);
  plan_case("several blocks of a warpgroup", blocks_ > 1);
  plan_case("several warpgroups", g.warpgroups > 1);
  plan_case("several runs of a store", plan_.runs.size() > 1);
  plan_case("runs of several lengths", plan_.runs.front() != plan_.runs.back());
  if (sharing() > 1) ring_.multicast(sharing());
  for (int block = 0; block < blocks_; ++block) {
    int first = 0;
    for (const int width : plan_.runs) {
      runs_.push_back({static_cast<int>(runs_.size()), block, first, width});
      first += width;
    }
  }
  for (const auto& [width, count] : plan_.staging) {
    for (int i = 0; i < count; ++i) {
      const std::string name = "c" + std::to_string(width) + "_" + std::to_string(i);
      staging_[width].emplace_back(kernel, name, staged_, (g.exchanged ? width : 64) * g.warpgroups,
                                   g.exchanged ? 64 : width, here());
    }
  }
  if (plan_case("operands exchanged", g.exchanged)) {
    warpgroup_.emplace(kernel, 128, g.warpgroups, here());
  }
  if (plan_case("k divided in a cluster", g.split > 1)) {
    exchange_.emplace(kernel, g, share_, plan_.runs.front());
  }
  if (plan_case("k divided by the grid", g.grid_split)) meeting_.emplace(kernel, g, runs_);
}

void GemmSm90::record(Kernel& kernel) {
  kernel.ctas(ctas(), sharing() * g_.split);
  const TargetLimits& limits = target_limits("sm_90a");
  const RegisterBudget few = registers(static_cast<int>(limits.least_role_registers));
  std::vector<RoleSpec> roles = {role("load", warps(1), few, [&] { load_tiles(); })};
  for (RoleSpec& more : more_roles(few)) roles.push_back(std::move(more));
  roles.push_back(role("math", warpgroups(g_.warpgroups),
                       registers(role_registers(limits, g_.warpgroups).computing),
                       [&](const Index& group) { multiply(group); }));
  kernel.roles(std::span<const RoleSpec>(roles));
}

// As many CTAs as have work, and as fit.
Dim GemmSm90::ctas() const {
  const int cluster = sharing() * g_.split;
  // One cluster more than run at once would begin when the others end.
  const Dim most = max(resident_clusters(cluster), 1);
  if (!g_.grid_split) return min(most, tile_count()) * cluster;
  return min(min(most, Meeting::kCtas / cluster), tile_count() * most_parts()) * cluster;
}

void GemmSm90::load_tiles() {
  each_tile([&](const Work& w) { load_tile(w); });
}

void GemmSm90::load_tile(const Work& w) {
  load_steps(w, [&](const Block& rows, const Block& depth) {
    return g_.a_along_m ? p_.A(depth, rows) : p_.A(rows, depth);
  });
}

void GemmSm90::load_steps(const Work& w,
                          FunctionRef<TensorView(const Block& rows, const Block& depth)> a) {
  const auto load = [&](const Block& depth) {
    ring_.produce([&](const Slot& slot) {
      load_operand([&](const Block& rows) { return a(rows, depth); }, w.rows, slot[0], g_.a_along_m,
                   g_.share_a, 1, &GemmSm90::across);
      load_b(w, depth, slot[1]);
    });
  };
  if (!w.backwards) {
    for (Block depth : blocks(p_.k, g_.block_k, w.first, w.last)) load(depth);
    return;
  }
  for (Index step : range(w.first, w.last)) {
    const Index number = select(*w.backwards, w.first + w.last - 1 - step, step);
    load(p_.k.block(number, g_.block_k));
  }
}

// What CTAs share each fetches a part of, for all `sharing` of them, which are `stride` apart;
// `place` is its own among them.
void GemmSm90::load_operand(FunctionRef<TensorView(const Block&)> view, const Block& rows,
                            const SharedView& to, bool transposed, int sharing, int stride,
                            Index (GemmSm90::*place)() const) {
  if (sharing == 1) return tma_load(view(rows), to);
  const int part = rows.size() / sharing;
  const Index own = (this->*place)();
  tma_load(view(rows.part(own, part)),
           transposed ? to.column_part(own, part) : to.rows(own * part, part),
           {Cache::normal, true, sharing, stride});
}

void GemmSm90::multiply(const Index& group) {
  scale_ = p_.scale();
  each_tile([&](const Work& w) { finish(w, products(w, group), group); });
  bulk_wait_read(0);  // shared memory must outlive what reads it
}

void GemmSm90::finish(const Work& w, const std::vector<Tile>& sums, const Index& group) {
  const Destination to = destination(w);
  const auto store_whole = [&] {
    store_runs(w, group, to, [&](const Run& run) { return scaled(part_of(sums, run)); });
  };
  if (g_.grid_split) {
    return when(w.parts == 1, store_whole, [&] { store_met(w, sums, group); });
  }
  if (g_.split == 1) return store_whole();
  give_parts(sums, group);
  Work own = w;
  Block& all = g_.exchanged ? own.rows : own.cols;
  all = all.part(split_rank(), share_);
  store_runs(own, group, to, [&](const Run& run) { return scaled(sum_parts(run, group)); });
  exchange_->read.wait();
}

void GemmSm90::each_tile(FunctionRef<void(const Work&)> body) {
  if (g_.grid_split) return each_part(body);
  const int ctas = sharing() * g_.split;
  for (Index t : range(cta_index() / ctas, tile_count(), cta_count() / ctas)) body(work(t));
}

GemmSm90::Work GemmSm90::work(const Index& tile) const {
  const Index steps = ceil_div(p_.k, g_.block_k);
  const auto [rows, cols] = place(tile);
  return {rows, cols, g_.split > 1 ? steps * split_rank() / g_.split : Index(0),
          g_.split > 1 ? steps * (split_rank() + 1) / g_.split : steps};
}

// Whole tiles while there is one for each cluster, then a part of one. What dimensions decide the
// launch computes: divisions by variables cost small products some tenths of a microsecond.
void GemmSm90::each_part(FunctionRef<void(const Work&)> body) {
  const Index steps = ceil_div(p_.k, g_.block_k), own = cta_index() / sharing();
  const Dim waves = tile_count() / clusters(), parts = this->parts();
  for (Index i : range(waves + select(own < left_over() * parts, 1, 0))) {
    const Condition whole = i < waves;
    const Index tile = select(whole, i * clusters() + own, waves * clusters() + own / parts);
    const Index part = own % parts;
    const auto [rows, cols] = place(tile);
    body(part_of_depth({rows, cols, select(whole, 0, steps * part / parts),
                        select(whole, steps, steps * (part + 1) / parts), select(whole, 0, part),
                        select(whole, 1, parts)}));
  }
}

Dim GemmSm90::parts() const {
  constexpr int kLeastSteps = 4;
  const Dim most = min(ceil_div(p_.k, g_.block_k) / kLeastSteps, most_parts());
  return max(min(clusters() / max(left_over(), 1), most), 1);
}

std::pair<Block, Block> GemmSm90::place(const Index& tile) const {
  constexpr int kBand = 8;  // rows of tiles whose A stays in L2 while B passes
  const Dim rows = tile_rows(), columns = tile_columns();
  const Dim last = max(rows % kBand, 1);  // rows of the last band where it is not whole
  const Index band = tile / (columns * kBand), in_band = tile % (columns * kBand);
  const Condition whole = band < rows / kBand;
  const Index column = select(whole, in_band / kBand, in_band / last);
  const Index row = band * kBand + in_band - column * select(whole, kBand, last);
  return {p_.m.block(rows_together() > 1 ? row * rows_together() + below() : row, g_.block_m),
          p_.n.block(g_.share_a > 1 ? column * g_.share_a + across() : column, g_.block_n)};
}

std::vector<Tile> GemmSm90::products(const Work& w, const Index& group) {
  std::deque<Cell<Pending>> products;
  for (int i = 0; i < blocks_; ++i) {
    products.emplace_back(as_pending(zeros({64, undivided(g_)})), here());
  }
  Cell<Index> held(0);
  const auto multiply = [&](const Index& first, const Index& last) {
    for (Index step : range(first, last)) {
      const Slot slot = ring_.consume();
      const std::vector<Pending> before(products.begin(), products.end());
      const SharedView &own = slot[g_.exchanged ? 1 : 0], &all = slot[g_.exchanged ? 0 : 1];
      const bool own_transposed = g_.exchanged ? g_.b_along_n : g_.a_along_m;
      const bool all_transposed = g_.exchanged ? g_.a_along_m : g_.b_along_n;
      for (int i = 0; i < blocks_; ++i) {
        const Index number = block_number(group, i);
        products[i] =
            wgmma(own_transposed ? own.column_part(number, 64).T() : own.rows(64 * number, 64),
                  all_transposed ? all : all.T(), before[i]);
      }
      // The products of one step stay in flight: the stage before is free only now.
      for (const Pending& product : before) retire(product);
      when(step > w.first, [&] { ring_.release(held); });
      held = slot.stage();
    }
  };
  Index first = w.first;
  for (int number = 1; number <= pauses(); ++number) {
    const Index last = w.first + (w.last - w.first) * number / (pauses() + 1);
    multiply(first, last);
    pause(number, w, group);
    first = last;
  }
  multiply(first, w.last);
  std::vector<Tile> sums;
  for (const Pending product : products) sums.push_back(wait(product));
  when(w.last > w.first, [&] { ring_.release(held); });
  return sums;
}

// The clusters that have parts of the tile leave in scratch memory what others store and meet at a
// word; then each stores its share of the runs, in each the sum over the parts from its own on.
void GemmSm90::store_met(const Work& w, const std::vector<Tile>& sums, const Index& group) {
  constexpr int kAhead = 4;                              // parts whose loads are under way together
  const Index first = cta_index() - w.part * sharing();  // the CTA that has the first part
  const auto left_by = [&](const Index& part, const Run& run, const Index& limit) {
    const int count = static_cast<int>(runs_.size());
    const Index cta = first + part * sharing();
    const Index row = ((cta * g_.warpgroups + group) * count + run.number) * 64;
    return meeting_->sums(Block(row, 64, limit), Dim(meeting_->width).block(0, run.width));
  };
  const auto is_own = [&](const Run& run) { return run.number % parts() == w.part; };
  const auto word = [&] {
    return meeting_->words((first * g_.warpgroups + group) * 4 + warp_index());
  };
  wait_for_stores(0);  // of whole tiles before, from the same staging tiles
  for (const Run& run : runs_) {
    when(!is_own(run), [&] { store(left_by(w.part, run, meeting_->rows), part_of(sums, run)); });
  }
  warp_sync();
  atomic_add(word(), 1, {Semantics::release, Scope::gpu});
  wait_flag(word(), Compare::ge, w.parts, {Semantics::acquire, Scope::gpu});
  for (const Run& run : runs_) {
    when(is_own(run), [&] {
      Var sum{part_of(sums, run)};
      for (Index next : range(1, w.parts, kAhead)) {
        std::vector<Tile> given;
        for (int i = 0; i < kAhead; ++i) {
          // Beyond the last part there is none: zeros.
          const Index limit = select(next + i < w.parts, meeting_->rows, 0);
          given.push_back(load(left_by((w.part + next + i) % parts(), run, limit)));
        }
        for (const Tile& part : given) sum = sum + part;
      }
      // A cluster has every second run at most.
      const bool is_again = std::any_of(runs_.begin(), runs_.end(), [&](const Run& before) {
        return before.number + 2 <= run.number && longest(before) == longest(run);
      });
      store_run(w, run, group, destination(w), scaled(sum), left_last(run),
                plan_case("a run takes the tile of one before", is_again) ? std::optional(0)
                                                                          : std::nullopt);
    });
  }
  warp_sync();  // no lane still looks at the word, which the last to leave sets back
  const Index before = atomic_add(word(), 1, {Semantics::relaxed, Scope::gpu});
  when(before == 2 * w.parts - 1, [&] {  // the last to leave
    atomic_add(word(), -2 * w.parts, {Semantics::relaxed, Scope::gpu});
  });
}

const SharedTile& GemmSm90::left_last(const Run& run) const {
  const std::vector<SharedTile>& tiles = staging_.at(longest(run));
  const auto uses = std::count_if(runs_.begin(), runs_.end(),
                                  [&](const Run& other) { return longest(other) == longest(run); });
  return tiles[(uses - 1) % tiles.size()];
}

// Into this CTA's shared memory, each CTA's share apart.
void GemmSm90::give_parts(const std::vector<Tile>& sums, const Index& group) {
  const int width = plan_.runs.front();
  for (int block = 0; block < blocks_; ++block) {
    for (int first = 0; first < undivided(g_); first += width) {
      exchange_->parts.store(part(first / share_, block_number(group, block), first % share_),
                             sums[block].slice({0, first}, {64, width}));
    }
  }
  exchange_->written.arrive();
  exchange_->written.wait();
}

// The sum over the cluster, in the order of its CTAs, of a run of this one's share.
Tile GemmSm90::sum_parts(const Run& run, const Index& group) {
  const Index own = part(split_rank(), block_number(group, run.block), run.first);
  const auto given = [&](int split) {
    if (sharing() == 1) return exchange_->parts.load(own, split);
    return exchange_->parts.load(own, shared_rank() + split * sharing());
  };
  Tile sum = given(0);
  for (int split = 1; split < g_.split; ++split) sum = sum + given(split);
  if (run.number + 1 == static_cast<int>(runs_.size())) exchange_->read.arrive();
  return sum;
}

// Where the run from `first` on of a CTA's share lies.
Index GemmSm90::part(const IndexOperand& cta, const Index& block, int first) {
  const int runs = static_cast<int>(plan_.runs.size());
  return (cta * (divided(g_) / 64) + block) * runs + first / plan_.runs.front();
}

Block GemmSm90::divided_part(const Work& w, const Run& run, const Index& group) const {
  return (g_.exchanged ? w.cols : w.rows).part(block_number(group, run.block), 64);
}

Block GemmSm90::whole_part(const Work& w, const Run& run) const {
  const Block& all = g_.exchanged ? w.rows : w.cols;
  return {all.start() + run.first, run.width, all.limit()};
}

int GemmSm90::staged_runs() const {
  int count = 0;
  for (const auto& [width, tiles] : staging_) count += static_cast<int>(tiles.size());
  return std::min(count, static_cast<int>(runs_.size()));
}

void GemmSm90::store_runs(const Work& w, const Index& group, const Destination& to,
                          FunctionRef<Tile(const Run&)> values) {
  store_runs(w, group, to, values, 0, static_cast<int>(runs_.size()));
}

void GemmSm90::store_runs(const Work& w, const Index& group, const Destination& to,
                          FunctionRef<Tile(const Run&)> values, int first, int last) {
  std::vector<const SharedTile*> staged;
  std::map<int, int> used;
  for (const Run& run : runs_) {
    const auto& [longest, tiles] = *staging_.lower_bound(run.width);
    staged.push_back(&tiles[used[longest]++ % tiles.size()]);
  }
  const int count = static_cast<int>(runs_.size());
  for (int number = first; number < last; ++number) {
    const Run& run = runs_[number];
    const SharedTile& tile = *staged[number];
    // The stores since its last use, perhaps in the tile of C before, may be under way.
    int since = 1;
    while (staged[(number - since + 2 * count) % count] != &tile) ++since;
    store_run(w, run, group, to, values(run), tile, since - 1);
  }
}

// With no more than `under_way` stores that still read shared memory, where a number is given.
void GemmSm90::store_run(const Work& w, const Run& run, const Index& group, const Destination& to,
                         const Tile& value, const SharedTile& staged,
                         std::optional<int> under_way) {
  const Block part = divided_part(w, run, group), whole = whole_part(w, run);
  const Tile finished =
      g_.exchanged ? p_.finished(value, whole, part, true) : p_.finished(value, part, whole);
  const Tile result = finished.cast(staged_);
  if (under_way) wait_for_stores(*under_way);
  if (g_.exchanged) {
    store_rows(whole, part, staged, group, to, result);
  } else {
    store_columns(part, whole, staged, group, to, result);
  }
}

// Each warp for its own; exchanged, the one that stores.
void GemmSm90::wait_for_stores(int under_way) {
  if (!g_.exchanged) return bulk_wait_read(under_way);
  when(warp_index() == 0, [&] { bulk_wait_read(under_way); });
}

// Each warp its own rows, of which it has all columns.
void GemmSm90::store_columns(const Block& rows, const Block& columns, const SharedTile& staged,
                             const Index& group, const Destination& to, const Tile& result) {
  warp_sync();
  store(staged.rows(64 * group, 64), result);
  fence_proxy_async();
  warp_sync();
  leave(to, rows.part(warp_index(), 16), columns, staged.rows(64 * group + 16 * warp_index(), 16));
  bulk_commit();
}

// All rows at once: each warp has columns of them.
void GemmSm90::store_rows(const Block& rows, const Block& columns, const SharedTile& staged,
                          const Index& group, const Destination& to, const Tile& result) {
  const SharedView place = staged.rows(staged.row_count() / g_.warpgroups * group, rows.size());
  const Condition stores = warp_index() == 0;
  warpgroup_->sync(group);
  store(place.T(), result);
  fence_proxy_async();
  warpgroup_->sync(group);
  when(stores, [&] {
    leave(to, rows, columns, place);
    bulk_commit();
  });
}

Kernel gemm_sm90(const Gemm& g, SourceLocation where) {
  const Caller caller{"gemm_sm90", where};
  check_sm90(g, caller);
  SharedPlan plan = plan_shared(g, caller, result_dtype(g));
  Kernel kernel(caller.function);
  // Rows of whole 16 bytes, as TMA takes.
  GemmParameters parameters(kernel, g, multiple_of(16 / size_of(g.dtype)), multiple_of(8));
  GemmSm90(kernel, g, std::move(parameters), std::move(plan), result_dtype(g)).record(kernel);
  return kernel;
}

}  // namespace tilewright::kernels
