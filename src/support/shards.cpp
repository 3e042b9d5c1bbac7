#include "tilewright/shards.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>

namespace tilewright {
namespace {

// Elements of a row-major tensor about an axis.
struct Around {
  Around(const HostTensor& tensor, int axis)
      : outer(1), row_bytes(size_of(tensor.dtype())), rows(tensor.shape()[axis]) {
    const auto at = tensor.shape().begin() + axis;
    outer = std::accumulate(tensor.shape().begin(), at, outer, std::multiplies<>());
    row_bytes = std::accumulate(at + 1, tensor.shape().end(), row_bytes, std::multiplies<>());
  }
  std::int64_t outer, row_bytes, rows;
};

void check_axis(const char* function, const HostTensor& tensor, int axis, SourceLocation where) {
  const int axes = static_cast<int>(tensor.shape().size());
  if (axis >= 0 && axis < axes) return;
  raise_usage(where, function,
              "axis " + std::to_string(axis) + " of a tensor of " + std::to_string(axes) + " axes",
              "axes count from 0");
}

void check_ranks(const char* function, int ranks, SourceLocation where) {
  if (ranks > 0) return;
  raise_usage(where, function, std::to_string(ranks) + " ranks", "there is at least one");
}

void check_alike(const char* function, const std::vector<HostTensor>& shards,
                 SourceLocation where) {
  check_ranks(function, static_cast<int>(shards.size()), where);
  for (std::size_t rank = 1; rank < shards.size(); ++rank) {
    if (shards[rank].shape() == shards[0].shape() && shards[rank].dtype() == shards[0].dtype()) {
      continue;
    }
    raise_usage(where, function,
                "the shard of rank " + std::to_string(rank) + " is not like that of rank 0",
                "shards of one dtype and shape");
  }
}

// Rows that follow each other in the whole and in a rank's shard.
struct Run {
  std::int64_t whole, shard, rows;
};

std::vector<Run> runs_of(std::int64_t rank, std::int64_t ranks, std::int64_t rows, Shards how) {
  if (how == Shards::contiguous) return {{rank * rows, 0, rows}};
  const std::int64_t early = (rows + 1) / 2, late = rows - early;
  return {{rank * early, 0, early}, {ranks * early + (ranks - 1 - rank) * late, early, late}};
}

void copy_rows(HostTensor& to, std::int64_t to_row, const HostTensor& from, std::int64_t from_row,
               std::int64_t rows, int axis) {
  const Around target(to, axis), source(from, axis);
  if (rows * target.row_bytes == 0) return;
  for (std::int64_t i = 0; i < target.outer; ++i) {
    std::memcpy(to.data() + (i * target.rows + to_row) * target.row_bytes,
                from.data() + (i * source.rows + from_row) * source.row_bytes,
                static_cast<std::size_t>(rows * target.row_bytes));
  }
}

HostTensor with_rows(const HostTensor& like, int axis, std::int64_t rows) {
  std::vector<std::int64_t> shape = like.shape();
  shape[axis] = rows;
  return HostTensor::zeros(like.dtype(), std::move(shape));
}

// Which heads a rank has: of fewer heads than ranks one.
Run heads_of(std::int64_t rank, std::int64_t ranks, std::int64_t heads) {
  return {rank * heads / ranks, 0, std::max<std::int64_t>(heads / ranks, 1)};
}

void check_heads(const char* function, std::int64_t heads, std::int64_t ranks,
                 SourceLocation where) {
  if (heads > 0 && (heads % ranks == 0 || ranks % heads == 0)) return;
  raise_usage(where, function,
              std::to_string(heads) + " heads for " + std::to_string(ranks) + " ranks",
              "one number is a multiple of the other");
}

}  // namespace

std::vector<HostTensor> shard(const HostTensor& whole, int axis, int ranks, Shards how,
                              SourceLocation where) {
  check_axis("shard", whole, axis, where);
  check_ranks("shard", ranks, where);
  const std::int64_t rows = whole.shape()[axis];
  if (rows % ranks != 0) {
    raise_usage(where, "shard",
                std::to_string(rows) + " rows of axis " + std::to_string(axis) + " for " +
                    std::to_string(ranks) + " ranks",
                "as many for each rank: packed sequences may be followed by rows of none");
  }
  std::vector<HostTensor> shards;
  for (int rank = 0; rank < ranks; ++rank) {
    HostTensor& own = shards.emplace_back(with_rows(whole, axis, rows / ranks));
    for (const Run& run : runs_of(rank, ranks, rows / ranks, how)) {
      copy_rows(own, run.shard, whole, run.whole, run.rows, axis);
    }
  }
  return shards;
}

HostTensor unshard(const std::vector<HostTensor>& shards, int axis, Shards how,
                   SourceLocation where) {
  check_alike("unshard", shards, where);
  check_axis("unshard", shards[0], axis, where);
  const auto ranks = static_cast<std::int64_t>(shards.size());
  const std::int64_t rows = shards[0].shape()[axis];
  HostTensor whole = with_rows(shards[0], axis, rows * ranks);
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    for (const Run& run : runs_of(rank, ranks, rows, how)) {
      copy_rows(whole, run.whole, shards[rank], run.shard, run.rows, axis);
    }
  }
  return whole;
}

std::vector<HostTensor> shard_heads(const HostTensor& whole, int axis, int ranks,
                                    SourceLocation where) {
  check_axis("shard_heads", whole, axis, where);
  check_ranks("shard_heads", ranks, where);
  const std::int64_t heads = whole.shape()[axis];
  check_heads("shard_heads", heads, ranks, where);
  std::vector<HostTensor> shards;
  for (int rank = 0; rank < ranks; ++rank) {
    const Run run = heads_of(rank, ranks, heads);
    copy_rows(shards.emplace_back(with_rows(whole, axis, run.rows)), 0, whole, run.whole, run.rows,
              axis);
  }
  return shards;
}

HostTensor unshard_heads(const std::vector<HostTensor>& shards, int axis, int heads,
                         SourceLocation where) {
  check_alike("unshard_heads", shards, where);
  check_axis("unshard_heads", shards[0], axis, where);
  const auto ranks = static_cast<std::int64_t>(shards.size());
  check_heads("unshard_heads", heads, ranks, where);
  HostTensor whole = with_rows(shards[0], axis, heads);
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    const Run run = heads_of(rank, ranks, heads);
    if (shards[rank].shape()[axis] != run.rows) {
      raise_usage(where, "unshard_heads",
                  std::to_string(shards[rank].shape()[axis]) + " heads in each of " +
                      std::to_string(ranks) + " ranks",
                  "of " + std::to_string(heads) + " heads each has " + std::to_string(run.rows));
    }
    copy_rows(whole, run.whole, shards[rank], 0, run.rows, axis);
  }
  return whole;
}

}  // namespace tilewright
