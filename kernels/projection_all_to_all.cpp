#include "kernels/projection_all_to_all.h"

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/all_to_all_parts.h"
#include "kernels/gemm_sm90.h"
#include "kernels/rank_words.h"
#include "kernels/token_places.h"
#include "tilewright/plan_case.h"
#include "tilewright/target.h"

namespace tilewright::kernels {

void check_projection(const ProjectionAllToAll& o, const Caller& caller) {
  check_all_to_all(o.heads, caller);
  if (o.heads.dim == o.heads.dim_v) return;
  caller.refuse("dim_v is " + std::to_string(o.heads.dim_v) + " beside a dim of " +
                    std::to_string(o.heads.dim),
                "a projection's heads are of one width: take them alike, or all_to_all behind it");
}

namespace {

constexpr int kProjectedRows = 64, kProjectedDepth = 64;  // of a tile of the tile level
constexpr int kWidestTile = 256;

int all_heads(const AllToAll& o) { return o.heads + 2 * o.kv_heads; }

// X and the results, as a kernel or a program declares them.
struct ProjectionShapes {
  template <typename Declarer>
  ProjectionShapes(Declarer& declarer, const AllToAll& o, const DimFacts& of_k = {})
      : o(o),
        batch(declarer.dim("batch")),
        tokens(declarer.dim("tokens")),
        k(declarer.dim("k", of_k)) {}
  std::vector<Dim> own() const { return with_batch({tokens, k}); }
  std::vector<Dim> weights() const { return {all_heads(o) * o.dim, k}; }
  std::vector<Dim> bias() const { return {all_heads(o) * o.dim}; }
  std::vector<Dim> first_rows() const { return {o.ranks, batch + 1}; }
  std::vector<Dim> all(const ExchangedHeads& part) const {
    return with_batch({o.ranks * tokens, part.own, part.dim});
  }

  AllToAll o;
  Dim batch, tokens, k;

 private:
  std::vector<Dim> with_batch(std::vector<Dim> shape) const {
    if (!o.packed) shape.insert(shape.begin(), batch);
    return shape;
  }
};

// The heads of Q, of K or of V, of which the first is `first` of all.
Kernel pulled_projection(const ProjectionAllToAll& projection, const ExchangedHeads& part,
                         int first) {
  const AllToAll& o = projection.heads;
  Kernel kernel("projection_all_to_all");
  const ProjectionShapes shapes(kernel, o);
  const Tensor X = kernel.symmetric("X", o.dtype, shapes.own());
  const Tensor W = kernel.symmetric("W", o.dtype, shapes.weights());
  std::optional<Tensor> bias, first_rows;
  if (projection.bias) bias.emplace(kernel.symmetric("bias", o.dtype, shapes.bias()));
  if (o.packed) first_rows.emplace(kernel.in("cu_seqlens", i32, shapes.first_rows()));
  const Tensor Y = kernel.out("Y", o.dtype, shapes.all(part));
  const TokenPlaces places(o.ranks, shapes.batch, shapes.tokens, first_rows);
  const auto [tile, own_head, other] = kernel.grid(places.tiles(kProjectedRows), part.own, o.ranks);
  const auto [sequence, own, everywhere] = places.place(other, tile, kProjectedRows);
  const Index head = part.first(kernel.rank()) + own_head + first;
  const Block columns(head * o.dim, o.dim, (head + 1) * o.dim);
  Var sum{zeros({kProjectedRows, o.dim})};
  for (Block depth : blocks(shapes.k, kProjectedDepth)) {
    sum = dot(load(places.at(X.at(other), sequence, own, depth)),
              load(W.at(other)(columns, depth)).T(), sum);
  }
  Tile result = sum;
  if (bias) result = result + load(bias->at(other)(columns)).cast(f32).reshape({1, o.dim});
  store(places.at(Y, sequence, everywhere, own_head, all), result.cast(o.dtype));
  return kernel;
}

// Tiles of whole heads. What a warp stores at a time has columns of one of them: it has as many as
// are in 128 bytes, and less only at a tile's end.
Gemm projection_tiles(const AllToAll& o) {
  Gemm g;
  g.dtype = o.dtype;
  g.block_m = 128;
  g.warpgroups = 2;
  const int panel = 128 / size_of(o.dtype);
  g.block_n =
      plan_case("heads of whole panels", o.dim % panel == 0) ? kWidestTile / o.dim * o.dim : o.dim;
  return g;
}

// As a product counts rows, each rank's tokens have whole tiles of one sequence each.
class ProjectionSm90 : public GemmSm90 {
 public:
  ProjectionSm90(Kernel& kernel, const ProjectionAllToAll& projection, SharedPlan plan)
      : ProjectionSm90(kernel, projection.heads, tensors_of(kernel, projection), std::move(plan)) {
    plan_case("packed", o_.packed);
    plan_case("a bias", projection.bias);
    plan_case("fewer heads of keys than ranks", o_.kv_heads < o_.ranks);
  }

 private:
  struct Tensors {
    ProjectionShapes shapes;
    Tensor X, W;
    std::optional<Tensor> bias;
    TokenPlaces places;
    std::vector<ExchangedHeads> parts;
    std::vector<Tensor> results;
  };
  static Tensors tensors_of(Kernel& kernel, const ProjectionAllToAll& projection) {
    const AllToAll& o = projection.heads;
    const ProjectionShapes shapes(kernel, o, multiple_of(8));
    const Tensor X = kernel.in("X", o.dtype, shapes.own());
    const Tensor W = kernel.in("W", o.dtype, shapes.weights());
    std::optional<Tensor> bias, first_rows;
    if (projection.bias) bias.emplace(kernel.in("bias", o.dtype, shapes.bias()));
    if (o.packed) first_rows.emplace(kernel.in("cu_seqlens", i32, shapes.first_rows()));
    Tensors tensors{shapes,
                    X,
                    W,
                    bias,
                    TokenPlaces(o.ranks, shapes.batch, shapes.tokens, first_rows),
                    exchanged(o, Direction::to_heads),
                    {}};
    for (const ExchangedHeads& part : tensors.parts) {
      tensors.results.push_back(
          kernel.symmetric(part.name + std::string("_all"), o.dtype, shapes.all(part)));
    }
    return tensors;
  }
  static GemmParameters product_of(const AllToAll& o, const Tensors& tensors) {
    const Dim rows = tensors.places.tiles(projection_tiles(o).block_m);
    GemmParameters parameters(rows * projection_tiles(o).block_m, all_heads(o) * o.dim,
                              tensors.shapes.k, tensors.X, tensors.W);
    parameters.bias = tensors.bias;
    return parameters;
  }
  ProjectionSm90(Kernel& kernel, const AllToAll& o, const Tensors& tensors, SharedPlan plan)
      : GemmSm90(kernel, projection_tiles(o), product_of(o, tensors), std::move(plan), o.dtype),
        o_(o),
        kernel_(kernel),
        tensors_(tensors),
        begun_(kernel, o.ranks),
        arrived_(kernel, o.ranks),
        sent_(kernel, kGroupThreads + kWarpThreads, g_.warpgroups) {}

  // Ranks begin with the heads of different ones, so that no link has all of it at a time. A tile's
  // rows are those of all tokens: where they are among its own, the warp that loads knows.
  Work work(const Index& tile) const override {
    Work w = GemmSm90::work(tile);
    const Dim columns = ceil_div(p_.n, g_.block_n);
    const Index column = w.cols.start() / g_.block_n;
    const Index first = (kernel_.rank() + 1) * columns / o_.ranks;
    w.cols = p_.n.block((column + first) % columns, g_.block_n);
    w.number = w.rows.start() / g_.block_m;
    w.rows = place(w).all;
    return w;
  }
  TokenPlaces::Place place(const Work& w) const {
    return tensors_.places.place(kernel_.rank(), w.number, g_.block_m);
  }
  void load_tile(const Work& w) override {
    const TokenPlaces::Place at = place(w);
    load_steps(w, [&](const Block&, const Block& depth) {
      return tensors_.places.at(p_.A, at.sequence, at.own, depth);
    });
  }

  // One warp waits for what is on its way, tells it, and waits for the others' words.
  std::vector<RoleSpec> more_roles(RegisterBudget budget) override {
    return {role("tell", warps(1), budget, [this] {
      begun_.tell();
      for (int group = 0; group < g_.warpgroups; ++group) sent_.sync(group);
      arrived_.tell_all();
      arrived_.wait_all();
    })};
  }
  void multiply(const Index& group) override {
    GemmSm90::multiply(group);
    bulk_wait(0);
    sent_.sync(group);
  }
  void finish(const Work& w, const std::vector<Tile>& sums, const Index& group) override {
    begun_.wait();  // nobody reads the run before any more
    fence_proxy_async_global();
    sequence_.emplace(place(w).sequence);
    store_runs(w, group, nullptr, [&](const Run& run) { return part_of(sums, run); });
    sequence_.reset();
  }
  void leave(const Destination&, const Block& rows, const Block& cols,
             const SharedView& from) override {
    const Index head = cols.start() / o_.dim, column = cols.start() % o_.dim;
    const Block columns(column, cols.size(), o_.dim);
    int first = 0;
    for (std::size_t i = 0; i < tensors_.parts.size(); ++i) {
      const ExchangedHeads& part = tensors_.parts[i];
      const auto send = [&](const Index& rank, const Index& own_head) {
        tma_store(
            tensors_.places.at(tensors_.results[i].at(rank), *sequence_, rows, own_head, columns),
            from);
      };
      const Index of = head - first;
      when(of >= 0 && of < part.heads, [&] {
        if (part.heads >= o_.ranks) return send(of / part.own, of % part.own);
        const int ranks = o_.ranks / part.heads;  // that have the head
        for (Index other : range(ranks)) send(of * ranks + other, 0);
      });
      first += part.heads;
    }
  }

  static constexpr int kGroupThreads = 128, kWarpThreads = 32;
  const AllToAll o_;
  Kernel& kernel_;
  const Tensors tensors_;
  RanksBegin begun_;
  RanksArrive arrived_;
  NamedBarrier sent_;              // of each warpgroup and the warp that tells
  std::optional<Index> sequence_;  // of the tile that is stored
};

// The tensors that a caller passes.
struct ProjectionProgram {
  ProjectionProgram(const ProjectionAllToAll& projection, const Caller& caller,
                    const DimFacts& of_k)
      : program(caller.function, projection.heads.ranks, caller.where),
        shapes(program, projection.heads, of_k),
        parts(exchanged(projection.heads, Direction::to_heads)) {
    const AllToAll& o = projection.heads;
    inputs = {program.in("X", o.dtype, shapes.own()), program.in("W", o.dtype, shapes.weights())};
    if (projection.bias) inputs.push_back(program.in("bias", o.dtype, shapes.bias()));
    if (o.packed) inputs.push_back(program.in("cu_seqlens", i32, shapes.first_rows()));
    for (const ExchangedHeads& part : parts) {
      results.push_back(program.out(part.name + std::string("_all"), o.dtype, shapes.all(part)));
    }
  }
  Program program;
  ProjectionShapes shapes;
  std::vector<ExchangedHeads> parts;
  std::vector<Part> inputs, results;
};

}  // namespace

Program projection_all_to_all(const ProjectionAllToAll& projection, SourceLocation where) {
  const Caller caller{"projection_all_to_all", where};
  check_projection(projection, caller);
  const ProjectionProgram made(projection, caller, {});
  std::vector<Kernel> kernels;
  int first = 0;
  for (const ExchangedHeads& part : made.parts) {
    kernels.push_back(pulled_projection(projection, part, first));
    first += part.heads;
  }
  made.program.on_each_rank([&](const Rank& rank) {
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      std::vector<Part> tensors = made.inputs;
      tensors.push_back(made.results[i]);
      rank.stream().launch(kernels[i], tensors);
    }
  });
  return made.program;
}

Program projection_all_to_all_sm90(const ProjectionAllToAll& projection, SourceLocation where) {
  const Caller caller{"projection_all_to_all_sm90", where};
  const AllToAll& o = projection.heads;
  check_projection(projection, caller);
  if (o.dim > kWidestTile) {
    caller.refuse("dim is " + std::to_string(o.dim),
                  "take at most " + std::to_string(kWidestTile) +
                      ", the columns of a tile, or all_to_all behind a gemm");
  }
  check_all_to_all_sm90(o, Direction::to_heads, caller);
  const Gemm tiles = projection_tiles(o);
  check_sm90(tiles, caller);
  SharedPlan plan = plan_shared(tiles, caller, o.dtype);
  Kernel kernel(caller.function);
  ProjectionSm90(kernel, projection, std::move(plan)).record(kernel);
  ProjectionProgram made(projection, caller, multiple_of(8));
  std::vector<Part> tensors = made.inputs;
  tensors.insert(tensors.end(), made.results.begin(), made.results.end());
  tensors.push_back(made.program.signals("begun", RanksBegin::words(o.ranks)));
  tensors.push_back(made.program.signals("arrived", RanksArrive::words(o.ranks)));
  made.program.on_each_rank([&](const Rank& rank) { rank.stream().launch(kernel, tensors); });
  return made.program;
}

}  // namespace tilewright::kernels
