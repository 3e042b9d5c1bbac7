#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "library/accuracy.h"
#include "library/workload.h"
#include "tilewright/kernels/attention_ranks.h"
#include "tilewright/library_executable.h"

// Small attention over ranks, and an entry of the library on a target, against float64.
namespace tilewright::kernels::test_ranks {

inline SequenceParallelAttention small(int ranks, bool causal, Shards shards = Shards::contiguous) {
  SequenceParallelAttention o;
  Attention& a = o.attention;
  a.heads = 4;
  a.kv_heads = 2;
  a.dim = a.dim_v = 32;
  a.block_q = 64;
  a.block_k = 32;
  a.causal = causal;
  o.ranks = ranks;
  o.shards = shards;
  return o;
}

// Rows that a rank has. Packed sequences begin at these rows of all; none: of one length.
struct RankSizes {
  std::int64_t queries = 70, keys = 70, batch = 1;
  std::vector<double> first_query = {}, first_key = {};
  bool is_packed() const { return !first_query.empty(); }
  int axis() const { return is_packed() ? 0 : 1; }
};

// The entry's own meaning, reference and tensors.
inline void check_entry(const char* name, const std::vector<std::string>& more,
                        const char* target) {
  SCOPED_TRACE(more[1]);
  std::vector<std::string> settings = more;
  for (const std::string standard : {"heads=4", "kv_heads=2", "dim=16"}) {
    const std::string option = standard.substr(0, standard.find('=') + 1);
    const auto sets = [&](const std::string& each) { return each.rfind(option, 0) == 0; };
    if (std::none_of(more.begin(), more.end(), sets)) settings.push_back(standard);
  }
  library::Workload work = library::make_workload(find_kernel(name), settings, {}, 1);
  std::vector<TensorRef> tensors;
  for (HostTensor& tensor : work.tensors) tensors.push_back(ref(tensor));
  compile(*work.kernel, work.options, target).run(tensors);
  const library::Comparison comparison = library::compare(work, library::reference_of(work));
  EXPECT_TRUE(comparison.ok()) << comparison.text();
}

}  // namespace tilewright::kernels::test_ranks
