#pragma once

#include <cstdint>
#include <vector>

#include "tilewright/tensor_ref.h"

// By what launches that are alike are found again.
namespace tilewright::compiler {

// Everything of a launch's arguments, flat.
void make_key(const std::vector<TensorRef>& tensors, const std::vector<double>& scalars,
              std::vector<std::int64_t>& key);
std::uint64_t hash_of(const std::vector<std::int64_t>& key);

// Enough for the tensors of a model's layers; past it all are forgotten, which only costs time.
inline constexpr std::size_t kMaximumPrepared = 1024;

}  // namespace tilewright::compiler
