#include "kernels/paged_inputs.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <utility>

#include "kernels/attention_paged_parameters.h"

namespace tilewright::kernels {
namespace {

std::int64_t integer_at(const HostTensor& tensor, std::int64_t at) {
  return static_cast<std::int64_t>(tensor.flat(at));
}

std::int64_t pages_of(const OptionValues& o, const HostTensor& lengths, std::int64_t b) {
  const std::int64_t page = o.integer("page");
  return (integer_at(lengths, b) + page - 1) / page;
}

// What stands behind the pages that sequences have: nobody may read it.
double unused_entry(const OptionValues& o, std::int64_t number) {
  return static_cast<double>(number % 2 == 0 ? -1 : o.integer("pages") + number);
}

// Whether the number-th of the `pages` that sequence b has is missing. Where lengths are drawn the
// first sequence lacks its last page but one, whatever `holes` says.
bool is_hole(const OptionValues& o, std::int64_t b, std::int64_t number, std::int64_t pages) {
  const bool is_drawn = o.integer("keys") == 0;
  if (is_drawn && b == 0 && pages > 2 && number == pages - 2) return true;
  const std::int64_t holes = o.integer("holes");
  return holes > 0 && (b + number) % holes == 0;
}

std::vector<std::int64_t> shuffled_pages(const OptionValues& o, std::uint64_t seed) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(o.integer("pages")));
  std::iota(order.begin(), order.end(), 0);
  std::mt19937_64 generator(seed + 2);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[generator() % i]);
  return order;
}

// The number-th page of sequence b, of the tensors in front of the cache.
std::int64_t page_in(const std::vector<HostTensor>& before, bool csr, std::int64_t b,
                     std::int64_t number) {
  const HostTensor& table = before[kBlockTable];
  const HostTensor& numbers = csr ? before[kBlockTable + 1] : table;
  const std::int64_t at = number + (csr ? integer_at(table, b) : b * table.shape()[1]);
  const std::int64_t end = csr ? numbers.elements() : (b + 1) * table.shape()[1];
  if (at < 0 || at >= end) {
    Caller{"attention_paged", {}}.refuse("lengths gives sequence " + std::to_string(b) + " " +
                                             std::to_string(integer_at(before[kLengths], b)) +
                                             " keys, and " +
                                             (csr ? "indices" : "its row of block_table") +
                                             " has no page " + std::to_string(number) + " of it",
                                         "give no sequence more keys than its pages have slots");
  }
  return integer_at(numbers, at);
}

}  // namespace

HostTensor drawn_lengths(std::int64_t batch, PagedRoom room, std::int64_t keys,
                         std::uint64_t seed) {
  std::mt19937_64 generator(seed + 1);
  std::vector<double> lengths;
  for (std::int64_t b = 0; b < batch; ++b) {
    const std::int64_t most = std::min(room.most_keys, room.pages * room.page);
    const auto drawn =
        static_cast<std::int64_t>(generator() % static_cast<std::uint64_t>(most + 1));
    const std::int64_t length = keys > 0 ? keys : b == 0 ? most : b == 2 ? 0 : drawn;
    room.pages = std::max<std::int64_t>(room.pages - (length + room.page - 1) / room.page, 0);
    lengths.push_back(static_cast<double>(length));
  }
  return HostTensor::from_values(i32, {batch}, lengths);
}

HostTensor random_lengths(const OptionValues& o, std::uint64_t seed) {
  const std::int64_t batch = o.integer("batch"), columns = o.integer("max_pages");
  const bool is_shared = o.has("csr") && o.boolean("csr");
  const std::int64_t pages = is_shared ? o.integer("entries") : batch * columns;
  return drawn_lengths(batch, {columns * o.integer("page"), o.integer("page"), pages},
                       o.integer("keys"), seed);
}

HostTensor random_table(const OptionValues& o, std::uint64_t seed, const HostTensor& lengths) {
  const std::int64_t pages = o.integer("pages"), columns = o.integer("max_pages");
  const std::vector<std::int64_t> order = shuffled_pages(o, seed);
  std::size_t next = 0;
  std::vector<double> table;
  for (std::int64_t b = 0; b < lengths.elements(); ++b) {
    for (std::int64_t column = 0; column < columns; ++column) {
      const bool is_used = column * o.integer("page") < integer_at(lengths, b) && pages > 0;
      const double number =
          is_used ? static_cast<double>(order[next++ % order.size()]) : unused_entry(o, column);
      const bool is_missing = is_used && is_hole(o, b, column, pages_of(o, lengths, b));
      table.push_back(is_missing ? -1 : number);
    }
  }
  return HostTensor::from_values(i32, {lengths.elements(), columns}, table);
}

HostTensor indptr_of(const OptionValues& o, const HostTensor& lengths) {
  std::vector<double> indptr{0};
  for (std::int64_t b = 0; b < lengths.elements(); ++b) {
    indptr.push_back(indptr.back() + static_cast<double>(pages_of(o, lengths, b)));
  }
  return HostTensor::from_values(i32, {lengths.elements() + 1}, indptr);
}

HostTensor random_indices(const OptionValues& o, std::uint64_t seed, const HostTensor& indptr) {
  const auto used = static_cast<std::size_t>(indptr.flat(indptr.elements() - 1));
  const auto entries = static_cast<std::size_t>(o.integer("entries"));
  if (used > entries) {
    Caller{"attention_paged", {}}.refuse("entries is " + std::to_string(entries) +
                                             ", and the sequences have " + std::to_string(used) +
                                             " pages",
                                         "set entries to batch * max_pages, or give lengths");
  }
  const std::vector<std::int64_t> order = shuffled_pages(o, seed);
  std::vector<double> indices;
  for (std::size_t i = 0; i < entries; ++i) {
    indices.push_back(i < used ? static_cast<double>(order[i % order.size()])
                               : unused_entry(o, static_cast<std::int64_t>(i)));
  }
  for (std::int64_t b = 0; b + 1 < indptr.elements(); ++b) {
    const std::int64_t first = integer_at(indptr, b), end = integer_at(indptr, b + 1);
    for (std::int64_t at = first; at < end; ++at) {
      if (is_hole(o, b, at - first, end - first)) indices[static_cast<std::size_t>(at)] = -1;
    }
  }
  return HostTensor::from_values(i32, {o.integer("entries")}, indices);
}

std::vector<HostTensor> with_block_table(const std::vector<HostTensor>& inputs, std::int64_t page) {
  const HostTensor& lengths = inputs[kLengths];
  std::int64_t columns = 1;
  for (std::int64_t b = 0; b < lengths.elements(); ++b) {
    columns = std::max(columns, (integer_at(lengths, b) + page - 1) / page);
  }
  HostTensor table = HostTensor::zeros(i32, {lengths.elements(), columns});
  for (std::int64_t b = 0; b < lengths.elements(); ++b) {
    for (std::int64_t number = 0; number * page < integer_at(lengths, b); ++number) {
      table.set({b, number}, static_cast<double>(page_in(inputs, true, b, number)));
    }
  }
  std::vector<HostTensor> all = inputs;
  all.erase(all.begin() + kBlockTable);
  all[kBlockTable] = std::move(table);
  return all;
}

std::uint64_t own_seed(std::uint64_t seed, const std::vector<HostTensor>& before) {
  return seed + before.size();
}

HostTensor poisoned_cache(DType dtype, const std::vector<std::int64_t>& shape, std::uint64_t seed,
                          const std::vector<HostTensor>& before, bool csr) {
  const std::int64_t page = shape[1];
  const std::int64_t row =
      std::accumulate(shape.begin() + 2, shape.end(), std::int64_t{1}, std::multiplies<>());
  const HostTensor normal = HostTensor::random_normal(dtype, shape, own_seed(seed, before));
  HostTensor cache = HostTensor::poisoned(dtype, shape);
  const HostTensor& lengths = before[kLengths];
  const std::int64_t row_bytes = row * size_of(dtype);
  for (std::int64_t b = 0; b < lengths.elements(); ++b) {
    for (std::int64_t key = 0; key < integer_at(lengths, b); key += page) {
      const std::int64_t own = page_in(before, csr, b, key / page);
      if (own < 0 || own >= shape[0]) continue;
      const std::int64_t used = std::min(page, integer_at(lengths, b) - key);
      const std::byte* from = normal.data() + own * page * row_bytes;
      std::copy(from, from + used * row_bytes, cache.data() + own * page * row_bytes);
    }
  }
  return cache;
}

HostTensor cache_scales(const OptionValues& o, std::uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::vector<double> values;
  for (std::int64_t i = 0; i < o.integer("scales"); ++i) {
    values.push_back(0.5 + static_cast<double>(generator() % 256) / 128);
  }
  return HostTensor::from_values(f32, {o.integer("scales")}, values);
}

}  // namespace tilewright::kernels
