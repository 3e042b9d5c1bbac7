#include "target/incore.h"

#include <string_view>
#include <utility>

namespace tilewright::target {
namespace {

constexpr std::int64_t kPartitionKib = 1024;

}  // namespace

Target incore_partitions() {
  Core c;
  c.global_name = "HBM";
  const char* const names[] = {"load", "store", "tensor", "vector", "scalar"};
  for (const char* name : names) {
    c.sequencers.push_back({name, 1, 60});
    c.units.push_back({name, name, 16});
  }
  // Its engines finish one instruction before they start the next; copies run beside each other.
  for (std::size_t i = 2; i < c.units.size(); ++i) c.units[i].orders_itself = true;
  c.spaces = {{"SBUF", "", 192 * kPartitionKib, 128, 32, &partitions_layout()},
              {"PSUM", "", 16 * kPartitionKib, 128, 64, &partitions_layout()}};
  c.moves = {
      {"", "SBUF", "load", true, {}, 0, 128, 65535, 128, 1400, 4095, 64 * kPartitionKib},
      {"SBUF", "", "store", false, {}, 0, 128, 65535, 128, 1400, 4095, 64 * kPartitionKib},
      {"PSUM", "SBUF", "vector", false, {{f32, f16}, {f32, bf16}}, 0, 128, 4096, 512, 60},
      {"PSUM", "SBUF", "scalar", false, {{f32, f16}, {f32, bf16}}, 0, 128, 4096, 512, 60},
  };
  CoreProduct product{"tensor", "SBUF", "SBUF", "PSUM", true, {bf16, f16, f32}, 128, 512, 128};
  product.piece_m = 128;
  product.piece_k_bytes = 256;
  product.least_n = 64;
  product.start = 64;
  c.products = {product};
  c.functions = vector_functions({{"vector", {"SBUF", "PSUM"}, {"SBUF"}, false, 512, 60},
                                  {"scalar", {"SBUF", "PSUM"}, {"SBUF"}, false, 512, 60},
                                  {"load", {}, {"SBUF"}, true, 512, 60}});
  for (const char* a : names) {
    for (const char* b : names) {
      if (std::string_view(a) != b) c.events.push_back({a, b, 32, 1 << 15});
    }
  }
  return core_target("incore_partitions", "a made-up core: memories of 128 partitions",
                     std::move(c));
}

}  // namespace tilewright::target
