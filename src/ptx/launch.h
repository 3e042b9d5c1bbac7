#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ptx/module.h"

// Executes a PTX kernel warp by warp: 32 lanes that part and meet, CTAs with shared memory and
// barriers, clusters, bulk copies and products.
namespace tilewright::ptx {

// What a tensor map describes, the contiguous axis first.
struct TensorMap {
  std::string name;
  std::uint64_t base = 0;
  int rank = 0;
  std::array<std::int64_t, 5> sizes{}, strides{}, box{};  // strides in bytes
  Type type = Type::b16;                                  // of an element
  int swizzle = 0;                                        // bytes; 0: none
};

// No more than 2^31 where the product is larger.
std::int64_t volume(const std::array<std::int64_t, 3>& extents);

// Global memory that the launch may use.
struct Region {
  std::string name;
  std::uint64_t begin = 0, end = 0;  // addresses of the host
};

// Atomic additions to a word come in this order, as far as the launch says one.
struct WordTurn {
  std::uint64_t address = 0;
  std::int64_t cta = 0;
  int warp = 0;
};

// Of a bulk copy: it is over when it is issued, or not before something waits for it.
enum class Timing : std::uint8_t { early, late };

struct LaunchInput {
  std::array<std::int64_t, 3> grid{1, 1, 1}, block{1, 1, 1};
  std::int64_t cluster = 1;
  std::int64_t dynamic_shared_bytes = 0;
  // The values of the kernel's parameters; a tensor map's is handle_of(its number in `maps`).
  std::vector<std::vector<std::byte>> parameters;
  std::vector<TensorMap> maps;
  std::vector<Region> memory;
  std::vector<std::int64_t> order;  // of the clusters; empty: ascending
  std::int64_t resident = 1;        // clusters at a time
  // More than that, where those that run wait for others.
  std::int64_t most_resident = 1;
  std::vector<WordTurn> turns;
  // The first CTAs of the clusters that a cluster takes over, each time that it asks; then there is
  // none. They are not in `order`.
  std::map<std::int64_t, std::vector<std::int64_t>> taken;
  Timing timing = Timing::early;
  // Whether warps' accesses to the same bytes of shared memory are ordered by barriers.
  bool check_order = false;
  std::uint64_t seed = 0;  // of the order of warps; 0: each in its turn
  std::int64_t most_operations = std::int64_t{1} << 32;
};

std::array<std::byte, 128> handle_of(std::size_t map);

// What synchronises warps, or runs beside them. `values` are said with each.
enum class EventKind : std::uint8_t {
  mbarrier_init,           // barrier, arrivals
  mbarrier_expect_tx,      // barrier, bytes
  mbarrier_arrive,         // barrier, count
  mbarrier_arrive_remote,  // barrier, rank of the CTA
  mbarrier_wait,           // barrier, parity
  named_sync,              // number, threads
  named_arrive,            // number, threads
  cluster_arrive,
  cluster_wait,
  warp_sync,
  fence_barrier_init,
  fence_proxy_async,
  fence_proxy_async_global,
  fence,  // scope: 0 CTA, 1 cluster, 2 GPU, 3 system
  bulk_commit,
  bulk_wait,       // groups that may be pending
  bulk_wait_read,  // as bulk_wait
  tensor_load,     // map, shared address, barrier, CTAs (0: the own), rank, coordinates
  cluster_copy,    // from, to, bytes, barrier, rank of the CTA
  tensor_store,    // map, shared address, reduction (0: none), rank, coordinates
  product,         // n, k, type, A in registers, start of A and B, accumulate
  product_fence,
  product_commit,
  product_wait,  // groups that may be pending
  registers,     // count, increase
  word_read,     // semantics, scope, address
  word_write,    // semantics, scope, address, value
  word_add,      // semantics, scope, address, value
};
std::string_view name_of(EventKind kind);

struct Event {
  EventKind kind = EventKind::warp_sync;
  std::uint32_t lanes = 0;
  int line = 0;
  std::vector<std::int64_t> values;
  std::string text() const;
};

struct Fault {
  std::string
      kind;      // deadlock, divergence, uninitialised, out_of_bounds, misaligned, mbarrier, ...
  int line = 0;  // of the PTX
  std::string message;
};

struct LaunchReport {
  std::vector<Fault> faults;
  std::vector<std::vector<Event>> events;  // of each warp of each CTA
  std::int64_t operations = 0;             // instructions of warps
};

LaunchReport execute(const Kernel& kernel, const LaunchInput& input);

}  // namespace tilewright::ptx
