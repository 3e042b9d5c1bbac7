#include "tilewright/kernels/kv_append.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <string>
#include <vector>

#include "kernels/caller.h"
#include "kernels/kv_append_check.h"
#include "kernels/token_heads.h"
#include "tilewright/plan_case.h"

namespace tilewright::kernels {
namespace {

// The new rows of keys or values, and the cache that they go to. Latent ones have no axis of heads.
class Appended {
 public:
  Appended(const KvAppend& a, const Tensor& rows, const Tensor& cache,
           const std::optional<Tensor>& scale)
      : latent_(a.latent), rows_(rows), cache_(cache), dtype_(a.cache), scale_(scale) {}

  Tile row(const Index& token, const Block& heads, const Block& columns) const {
    return load(latent_ ? rows_(Block(token, 1, token + 1), columns)
                        : rows_(token, heads, columns));
  }
  // Stores what stands for columns of the row, in f32 or the rows' own dtype.
  void append(const Index& page, const Index& slot, const Block& heads, const Block& columns,
              const Tile& values) const {
    store(latent_ ? cache_(page, Block(slot, 1, slot + 1), columns)
                  : cache_(page, slot, heads, columns),
          as_stored(values, heads));
  }

 private:
  Tile as_stored(const Tile& values, const Block& heads) const {
    if (!scale_) return values.cast(dtype_);
    const Tile scale = load((*scale_)(heads)).reshape({heads.size(), 1});
    return (values.cast(f32) / scale).cast(dtype_);
  }
  bool latent_;
  Tensor rows_, cache_;
  DType dtype_;  // of the cache
  std::optional<Tensor> scale_;
};

// Blocks of the grid have as many tokens as make a few KB: of short rows one is too little to wait
// for.
int tokens_of_block(const KvAppend& a, int heads) {
  constexpr int kBytes = 4 << 10, kMostTokens = 8;
  const int row = heads * (a.latent ? a.dim : a.dim + a.dim_v) * size_of(a.dtype);
  return std::clamp(kBytes / row, 1, kMostTokens);
}

// So many columns from `first` on, in pieces of powers of two: a piece's rows are vectors of
// threads that are as many as a power of two. Whole vectors that reach behind the last column end
// there, as long as a thread has one of them: two pieces would be twice the instructions.
std::vector<Block> pieces_of(int first, int count, int element_bytes) {
  constexpr int kVectorBytes = 16, kBlockBytes = 128 * kVectorBytes;
  const auto piece = [&](int left) {
    const auto columns = static_cast<unsigned>(left);
    const int above = static_cast<int>(std::bit_ceil(columns));
    const bool is_one =
        left * element_bytes % kVectorBytes == 0 && above * element_bytes <= kBlockBytes;
    return is_one ? above : static_cast<int>(std::bit_floor(columns));
  };
  std::vector<Block> pieces;
  for (const int end = first + count; first < end;) {
    const int size = piece(end - first), next = std::min(first + size, end);
    pieces.push_back(Block(first, size, next));
    first = next;
  }
  return pieces;
}

}  // namespace

void check_append(const KvAppend& a, const Caller& caller) {
  if (!a.latent) {
    caller.check_positive("kv_heads", a.kv_heads);
    caller.check_positive("dim_v", a.dim_v);
  }
  caller.check_positive("dim", a.dim);
  caller.check_positive("page", a.page);
  if (a.rotary_dim < 0 || a.rotary_dim > a.dim || a.rotary_dim % 2 != 0) {
    caller.refuse(
        "rotary_dim is " + std::to_string(a.rotary_dim) + ", and dim is " + std::to_string(a.dim),
        "rotate an even number of a key's elements, no more than it has");
  }
  if (a.cache != a.dtype && a.cache != f8e4m3) {
    caller.refuse("the cache is " + std::string(name_of(a.cache)) + ", and the new rows are " +
                      std::string(name_of(a.dtype)),
                  "take a cache of the same dtype, or of f8e4m3");
  }
  if (a.latent && a.cache != a.dtype) {
    caller.refuse("latent is set, and the cache is " + std::string(name_of(a.cache)),
                  "take a cache of the rows' dtype, which attention_paged_mla reads");
  }
}

Kernel kv_append(const KvAppend& options, SourceLocation where) {
  check_append(options, {"kv_append", where});
  KvAppend a = options;
  if (a.latent) a.kv_heads = 1;
  Kernel kernel("kv_append");
  const Dim tokens = kernel.dim("tokens"), batch = kernel.dim("batch");
  const Dim pages = kernel.dim("pages"), max_pages = kernel.dim("max_pages");
  const Tensor K = a.latent ? kernel.in("KV", a.dtype, {tokens, a.dim})
                            : kernel.in("K", a.dtype, {tokens, a.kv_heads, a.dim});
  std::optional<Tensor> V;
  if (!a.latent) V = kernel.in("V", a.dtype, {tokens, a.kv_heads, a.dim_v});
  const Tensor sequences = kernel.in("sequences", i32, {tokens});
  const Tensor positions = kernel.in("positions", i32, {tokens});
  const Tensor block_table = kernel.in("block_table", i32, {batch, max_pages});
  std::optional<Tensor> cos_sin, K_scale, V_scale;
  if (plan_case("keys are rotated", a.rotary_dim > 0)) {
    cos_sin = kernel.in("cos_sin", f32, {kernel.dim("positions"), a.rotary_dim});
  }
  if (plan_case("the cache is quantised", a.cache != a.dtype)) {
    K_scale = kernel.in("K_scale", f32, {a.kv_heads});
    V_scale = kernel.in("V_scale", f32, {a.kv_heads});
  }
  const Tensor K_cache = a.latent
                             ? kernel.inout("KV_cache", a.cache, {pages, a.page, a.dim})
                             : kernel.inout("K_cache", a.cache, {pages, a.page, a.kv_heads, a.dim});
  const Appended keys(a, K, K_cache, K_scale);
  std::optional<Appended> values;
  if (V) {
    const std::vector<Dim> shape{pages, a.page, a.kv_heads, a.dim_v};
    values.emplace(a, *V, kernel.inout("V_cache", a.cache, shape), V_scale);
  }

  const int size = heads_of_block(a.kv_heads, a.latent ? a.dim : std::max(a.dim, a.dim_v));
  const int together = tokens_of_block(a, size);
  const auto [x, t] =
      kernel.grid(ceil_div(Dim(a.kv_heads), Dim(size)), ceil_div(tokens, Dim(together)));
  const Block heads = Dim(a.kv_heads).block(x, size);
  const int half = a.rotary_dim / 2, first = a.latent ? a.dim - a.rotary_dim : 0;
  const std::vector<Block> rest =
      pieces_of(a.latent ? 0 : a.rotary_dim, a.dim - a.rotary_dim, size_of(a.dtype));
  const Block low = columns_of(first, half), high = columns_of(first + half, half);
  const Block all_values = columns_of(0, a.dim_v);
  // All rows are on their way before anyone knows where the first goes.
  struct Row {
    Index sequence, position;
    Condition is_appended;
    std::optional<Tile> values, low, high;
    std::vector<Tile> rest;
  };
  std::vector<Row> rows;
  for (int i = 0; i < together; ++i) {
    const Index number = t * together + i, token = together > 1 ? min(number, tokens - 1) : t;
    const Index position = load_index(positions(token));
    const Condition is_appended = together > 1 ? number < tokens && position >= 0 : position >= 0;
    Row row{load_index(sequences(token)), position, is_appended, {}, {}, {}, {}};
    if (values) row.values = values->row(token, heads, all_values);
    for (const Block& columns : rest) row.rest.push_back(keys.row(token, heads, columns));
    if (cos_sin) row.low = keys.row(token, heads, low), row.high = keys.row(token, heads, high);
    rows.push_back(row);
  }
  const auto append = [&](const Row& row, const Index& page) {
    const Index slot = row.position % a.page;
    if (values) values->append(page, slot, heads, all_values, *row.values);
    for (std::size_t i = 0; i < rest.size(); ++i) {
      keys.append(page, slot, heads, rest[i], row.rest[i]);
    }
    if (!cos_sin) return;
    const Tile cosine = load((*cos_sin)(row.position, columns_of(0, half))).reshape({1, half});
    const Tile sine = load((*cos_sin)(row.position, columns_of(half, half))).reshape({1, half});
    const Tile left = row.low->cast(f32), right = row.high->cast(f32);
    keys.append(page, slot, heads, low, left * cosine - right * sine);
    keys.append(page, slot, heads, high, right * cosine + left * sine);
  };
  // Nor does the number of one row's page wait for that of another. Rows that are not appended have
  // no place in the table; where there is one that is, the table has a first number.
  Condition any = rows[0].is_appended;
  for (std::size_t i = 1; i < rows.size(); ++i) any = any || rows[i].is_appended;
  when(any, [&] {
    std::vector<Index> numbers;
    for (const Row& row : rows) {
      const auto or_first = [&](const Index& index) { return select(row.is_appended, index, 0); };
      numbers.push_back(
          load_index(block_table(or_first(row.sequence), or_first(row.position / a.page))));
    }
    for (std::size_t i = 0; i < rows.size(); ++i) {
      when(rows[i].is_appended && numbers[i] >= 0, [&] { append(rows[i], numbers[i]); });
    }
  });
  return kernel;
}

}  // namespace tilewright::kernels
