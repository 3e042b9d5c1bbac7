#pragma once

#include <cstdint>

// How an access to memory orders other accesses, and for whom: the terms of PTX.
namespace tilewright {

// weak: by this thread alone, while no other writes. relaxed: not torn, and orders nothing else.
// release: what this thread has done, and what it knows of, is there for whoever acquires it.
enum class Semantics : std::uint8_t { weak, relaxed, acquire, release, acq_rel };

// The threads that take part: of the block (CTA), the cluster, the GPU, or all GPUs and the host.
enum class Scope : std::uint8_t { block, cluster, gpu, system };

// The scope of a weak access says nothing.
struct MemoryOrder {
  Semantics semantics;
  Scope scope;
};

// What a signal's word is to be, beside the value waited for.
enum class Compare : std::uint8_t { eq, ne, lt, le, gt, ge };

}  // namespace tilewright
