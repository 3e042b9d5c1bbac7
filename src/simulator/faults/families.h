#pragma once

#include <vector>

#include "simulator/faults/fault_kinds.h"
#include "simulator/faults/sites.h"

// What seeds each kind of fault. A file a family.
namespace tilewright::simulator {

// barrier_faults.cpp
std::vector<Mutant> seed_first_parity(const Sites& sites);
std::vector<Mutant> seed_full_parity(const Sites& sites);
std::vector<Mutant> seed_empty_parity(const Sites& sites);
std::vector<Mutant> seed_arrivals(const Sites& sites);
std::vector<Mutant> seed_bytes(const Sites& sites);
std::vector<Mutant> seed_unpublished_barriers(const Sites& sites);
std::vector<Mutant> seed_named_barriers(const Sites& sites);

// ring_faults.cpp
std::vector<Mutant> seed_stage(const Sites& sites);
std::vector<Mutant> seed_phase(const Sites& sites);
std::vector<Mutant> seed_early_use(const Sites& sites);
std::vector<Mutant> seed_early_release(const Sites& sites);

// fence_faults.cpp
std::vector<Mutant> seed_unfenced_store(const Sites& sites);
std::vector<Mutant> seed_unfenced_product(const Sites& sites);
std::vector<Mutant> seed_wgmma_fence(const Sites& sites);

// completion_faults.cpp
std::vector<Mutant> seed_commit(const Sites& sites);
std::vector<Mutant> seed_product_wait(const Sites& sites);
std::vector<Mutant> seed_tensor_commit(const Sites& sites);
std::vector<Mutant> seed_tensor_load_wait(const Sites& sites);
std::vector<Mutant> seed_read_wait(const Sites& sites);
std::vector<Mutant> seed_full_wait(const Sites& sites);

// resource_faults.cpp
std::vector<Mutant> seed_budget(const Sites& sites);
std::vector<Mutant> seed_early_exit(const Sites& sites);
std::vector<Mutant> seed_signal(const Sites& sites);
std::vector<Mutant> seed_unreset_signal(const Sites& sites);
std::vector<Mutant> seed_wrong_reset(const Sites& sites);

// rank_faults.cpp
std::vector<Mutant> seed_rank_signal(const Sites& sites);
std::vector<Mutant> seed_same_epoch(const Sites& sites);

std::vector<Mutant> seed_relaxed_atomic(const Sites& sites);

// lane_faults.cpp
std::vector<Mutant> seed_unmet_lanes(const Sites& sites);
std::vector<Mutant> seed_parted_lanes(const Sites& sites);

// tile_faults.cpp
std::vector<Mutant> seed_wrong_division(const Sites& sites);
std::vector<Mutant> seed_multicast(const Sites& sites);
std::vector<Mutant> seed_other_map(const Sites& sites);

// value_faults.cpp
std::vector<Mutant> seed_wrong_elements(const Sites& sites);
std::vector<Mutant> seed_shifted_masks(const Sites& sites);
std::vector<Mutant> seed_wrong_weights(const Sites& sites);

}  // namespace tilewright::simulator
