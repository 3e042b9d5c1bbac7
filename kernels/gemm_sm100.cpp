#include <algorithm>
#include <optional>

#include "kernels/gemm_sm90.h"
#include "tilewright/blackwell.h"
#include "tilewright/function_ref.h"
#include "tilewright/target.h"

namespace tilewright::kernels {
namespace {

constexpr int kRows = 128;   // of C, that one product has
constexpr int kStored = 64;  // columns of C, that a warp stores at a time
constexpr const char* kTarget = "sm_100a";

// A, B and the barriers of a stage; beside them each warp stages what it stores.
int stages_of(const Gemm& g, int columns) {
  const std::int64_t staging = std::int64_t{kRows} * kStored * size_of(result_dtype(g));
  const std::int64_t stage = std::int64_t{kRows + columns} * g.block_k * size_of(g.dtype);
  constexpr std::int64_t kBarriers = 2048;
  return static_cast<int>(std::min<std::int64_t>(
      6, (target_limits(kTarget).shared_bytes - staging - kBarriers) / stage));
}

void check_sm100(const Gemm& g, const Caller& caller) {
  if (g.dtype != bf16 && g.dtype != f16 && g.dtype != f8e4m3) {
    caller.refuse("dtype is " + std::string(name_of(g.dtype)),
                  "take bf16, f16 or f8e4m3; the target cpu takes f32 too");
  }
  if (g.block_m != kRows) {
    caller.refuse("block_m is " + std::to_string(g.block_m),
                  "a product of tensor memory has 128 rows");
  }
  if (g.block_n != 64 && g.block_n != 128 && g.block_n != 256) {
    caller.refuse("block_n is " + std::to_string(g.block_n), "take 64, 128 or 256");
  }
  if (g.block_k != 64 && g.block_k != 128) {
    caller.refuse("block_k is " + std::to_string(g.block_k), "take 64 or 128");
  }
  if (g.a_along_m || g.b_along_n) {
    caller.refuse("operands that are not contiguous along k", "leave these to gemm_sm90");
  }
  if (g.exchanged || g.grid_split || g.share_a * g.share_b * g.split != 1) {
    caller.refuse("operands exchanged, shared or k divided", "leave these to gemm_sm90");
  }
}

class GemmSm100 {
 public:
  GemmSm100(Kernel& kernel, const Gemm& g, GemmParameters parameters, GemmRoles roles)
      : g_(g),
        persistent_(roles != GemmRoles::one_tile),
        ctas_(roles == GemmRoles::pairs || roles == GemmRoles::handed_out ? 2 : 1),
        loaded_columns_(g.block_n / ctas_),
        p_(std::move(parameters)),
        columns_(ceil_div(p_.n, g.block_n)),
        tiles_(ceil_div(p_.m, kRows * ctas_) * columns_),
        ring_(kernel, "ab", stages(stages_of(g, loaded_columns_)),
              {{g.dtype, kRows, g.block_k}, {g.dtype, loaded_columns_, g.block_k}}),
        sums_(kernel, "sums", stages(persistent_ ? 2 : 1), {}),
        memory_(kernel, "tensor_memory", (persistent_ ? 2 : 1) * g.block_n,
                ctas_ == 2 ? CtaGroup::pair : CtaGroup::one),
        staging_(kernel, "c", result_dtype(g), kRows, kStored),
        allocated_(kernel, kMultiplying),
        stored_(kernel, kMultiplying) {
    if (ctas_ == 1) return;
    ring_.pairs();
    sums_.pairs();
    met_.emplace(kernel, "met", here());
    if (roles == GemmRoles::handed_out) handed_out_.emplace(kernel, "tiles", stages(2), here());
  }

  void record(Kernel& kernel) {
    const Dim clusters = persistent_ && !handed_out_ ? min(at_once(), tiles_) : tiles_;
    kernel.ctas(ctas_ == 1 ? clusters : clusters * ctas_, ctas_);
    std::vector<RoleSpec> roles{
        role("load", warps(1), registers(64), [&] { load_tiles(); }),
        role("multiply", warps(1), registers(64), [&] { multiply(); }),
        role("store", warpgroups(1), registers(200), [&] { store_tiles(); })};
    if (handed_out_) {
      roles.push_back(role("ask", warps(1), registers(64), [&] { handed_out_->ask(); }));
    }
    kernel.roles(roles);
  }

 private:
  static constexpr int kMultiplying = 32 + 128;  // threads of the two roles that use tensor memory

  // Clusters.
  Dim at_once() const { return ctas_ == 1 ? multiprocessors() : max(multiprocessors() / ctas_, 1); }

  // Calls `body` with the rows of C that this CTA has, and with the number of the block of columns.
  void each_tile(FunctionRef<void(const Block& rows, const Index& columns)> body) {
    const auto tile = [&](const Index& number) {
      const Index first = number / columns_ * ctas_;
      body(p_.m.block(ctas_ == 1 ? first : first + cluster_rank(), kRows), number % columns_);
    };
    if (handed_out_) return handed_out_->each([&](const Index& cta) { tile(cta / ctas_); });
    if (!persistent_) return tile(cta_index());
    if (ctas_ == 1) {
      for (Index number : range(cta_index(), tiles_, cta_count())) tile(number);
      return;
    }
    for (Index number : range(cta_index() / ctas_, tiles_, cta_count() / ctas_)) tile(number);
  }

  void load_tiles() {
    each_tile([&](const Block& rows, const Index& columns) {
      const Index own = ctas_ == 1 ? columns : columns * ctas_ + cluster_rank();
      const Block cols = p_.n.block(own, loaded_columns_);
      for (Block depth : blocks(p_.k, g_.block_k)) {
        ring_.produce([&](const Slot& slot) {
          tma_load(p_.A(rows, depth), slot[0]);
          tma_load(p_.B(cols, depth), slot[1]);
        });
      }
    });
    // The first CTA's products tell this one that they have read a stage: not behind its end.
    for (int stage = 0; ctas_ == 2 && stage < stages_of(g_, loaded_columns_); ++stage) {
      ring_.reserve();
    }
  }

  void multiply() {
    memory_.allocate();
    allocated_.sync();
    const TensorColumns all = memory_.attach();
    each_tile([&](const Block&, const Index&) {
      if (ctas_ == 1) return multiply_tile(all);
      when(is_first_of_pair(), [&] { multiply_tile(all); });
    });
    relinquish_tensor_memory();  // another CTA's may begin
    stored_.sync();              // nobody reads what is freed
    memory_.free();
  }

  void multiply_tile(const TensorColumns& all) {
    const Slot sum = sums_.reserve();
    const TensorColumns to = all.columns(sum.stage() * g_.block_n, g_.block_n);
    for (Index step : range(ceil_div(p_.k, g_.block_k))) {
      const Slot slot = ring_.consume();
      mma(to, slot[0], slot[1].T(), step > 0);
      ring_.release_behind_products(slot);
    }
    sums_.commit(sum);
  }

  void store_tiles() {
    allocated_.sync();
    const TensorColumns all = memory_.attach();
    const std::optional<Tile> scale = p_.scale();
    each_tile([&](const Block& rows, const Index& number) {
      const Block cols = p_.n.block(number, g_.block_n);
      const Slot sum = sums_.consume();
      for (int first = 0; first < g_.block_n; first += kStored) {
        const Tile sums = sums_of(all.columns(sum.stage() * g_.block_n + first, kStored));
        const Tile part = scale ? sums * *scale : sums;
        if (first + kStored == g_.block_n) sums_.release(sum);
        const Block columns{cols.start() + first, kStored, cols.limit()};
        store_part(rows, columns, p_.finished(part, rows, columns));
      }
    });
    bulk_wait_read(0);  // shared memory must outlive what reads it
    if (met_) {         // a pair frees what nobody reads in either CTA
      met_->arrive();
      met_->wait();
    }
    stored_.sync();
  }

  // Without a k nobody has written them.
  Tile sums_of(const TensorColumns& columns) {
    Var sums{zeros({kRows, kStored})};
    when(Index(p_.k) > 0, [&] { sums = load(columns); });
    return sums;
  }

  // Each warp the 32 rows whose lanes it reads.
  void store_part(const Block& rows, const Block& columns, const Tile& part) {
    constexpr int kWarpRows = kRows / 4;
    bulk_wait_read(0);
    warp_sync();
    store(staging_, part.cast(result_dtype(g_)));
    fence_proxy_async();
    warp_sync();
    tma_store((*p_.C)(rows.part(warp_index(), kWarpRows), columns),
              staging_.rows(warp_index() * kWarpRows, kWarpRows));
    bulk_commit();
  }

  const Gemm g_;
  const bool persistent_;
  const int ctas_;            // that have a tile together
  const int loaded_columns_;  // of B's block, that each of them loads
  const GemmParameters p_;
  const Dim columns_;  // blocks of C's
  const Dim tiles_;
  Ring ring_, sums_;
  const TensorMemory memory_;
  const SharedTile staging_;
  NamedBarrier allocated_, stored_;
  std::optional<ClusterBarrier> met_;
  std::optional<GridTiles> handed_out_;
};

}  // namespace

Kernel gemm_sm100(const Gemm& g, GemmRoles roles, SourceLocation where) {
  check_sm100(g, {"gemm_sm100", where});
  Kernel kernel("gemm_sm100");
  kernel.target(kTarget);
  GemmParameters parameters(kernel, g, multiple_of(16 / size_of(g.dtype)), multiple_of(8));
  GemmSm100(kernel, g, std::move(parameters), roles).record(kernel);
  return kernel;
}

}  // namespace tilewright::kernels
