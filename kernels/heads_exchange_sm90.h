#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/attention_ranks.h"

namespace tilewright::kernels {

// A tensor whose rows are divided among ranks, and memory of each rank for all rows of some of its
// own heads: statistics have no columns, and their rows last.
struct DividedTensor {
  std::string name;
  DType dtype;
  bool of_queries;
  int heads;               // of all
  int exchanged;           // of a rank, at once
  int kept;                // that the memory has: those, or more of the rank
  int dim;                 // 0 of statistics
  int multiple;            // of the rows that all heads' memory has
  bool own_stays = false;  // the rank's own rows are read where they are
};

enum class ExchangeWay { to_heads, back };

// Of packed sequences, what a kernel takes that also sends statistics by blocks (with multiples of
// them) of the axis: where sequences begin, and outputs of which it sets the rows of no sequence to
// zero.
struct PackedExchange {
  std::vector<DividedTensor> outputs;
};

// One kernel that brings the rows of all ranks to the heads of each, those of the `group`-th of its
// groups, or back. It takes of each tensor the rank's own rows and all of the heads;
// packed ones have no axis of sequences. Who waits for its stream has all that it sends.
Kernel heads_exchange_sm90(const SequenceParallelAttention& o, bool packed, int group,
                           ExchangeWay way, const std::vector<DividedTensor>& tensors,
                           const std::string& name,
                           const std::optional<PackedExchange>& sequences = {});

}  // namespace tilewright::kernels
