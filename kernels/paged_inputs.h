#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tilewright/library.h"

// What attention over pages is given where nobody states it: lengths, tables of pages, caches.
namespace tilewright::kernels {

// Places of the tensors among the inputs.
enum PagedInput : std::size_t { kQ, kCuSeqlensQ, kLengths, kBlockTable, kK, kV };

// What a batch may have: keys of a sequence, and pages of all together.
struct PagedRoom {
  std::int64_t most_keys, page, pages;
};

// Of the first sequence as many as it may have, of the others less, and of some none; or of all
// `keys`, where that is not 0. Later ones have what room the earlier ones leave.
HostTensor drawn_lengths(std::int64_t batch, PagedRoom room, std::int64_t keys, std::uint64_t seed);

// As far as the table has room, or the vector that all share.
HostTensor random_lengths(const OptionValues& o, std::uint64_t seed);

// Pages in random order, no two alike while there are enough, and -1 for those that are missing.
// Behind a sequence's last page stands what no one may read: -1, or a page that does not exist.
HostTensor random_table(const OptionValues& o, std::uint64_t seed, const HostTensor& lengths);

// The same pages, sequence behind sequence: where those of each begin, and their end.
HostTensor indptr_of(const OptionValues& o, const HostTensor& lengths);

// Those pages in one vector; behind them, again, what no one may read.
HostTensor random_indices(const OptionValues& o, std::uint64_t seed, const HostTensor& indptr);

// The inputs with a table of rows in place of one in two vectors.
std::vector<HostTensor> with_block_table(const std::vector<HostTensor>& inputs, std::int64_t page);

// Of a tensor behind so many others: none has the numbers of another.
std::uint64_t own_seed(std::uint64_t seed, const std::vector<HostTensor>& before);

// Normal numbers where a sequence has a key, else NaN. Axes 0 and 1 are pages and their slots.
HostTensor poisoned_cache(DType dtype, const std::vector<std::int64_t>& shape, std::uint64_t seed,
                          const std::vector<HostTensor>& before, bool csr);

// Powers of two and others, of which no two heads have the same.
HostTensor cache_scales(const OptionValues& o, std::uint64_t seed);

}  // namespace tilewright::kernels
