#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ptx/launch.h"
#include "tilewright/host_tensor.h"

// PTX that any compiler made, launched as a file says.
namespace tilewright::checks {

struct PtxLaunch {
  std::string kernel;  // empty: the only one
  ptx::LaunchInput input;
  std::vector<std::string> names;        // of the tensors
  std::vector<HostTensor> tensors;       // in the order of the arguments
  std::vector<std::size_t> of_argument;  // the tensor of each pointer among the parameters
};

// From the JSON that docs/debugging.md describes. Raises a usage error that names what is wrong in
// it. `seed` is of random tensors.
PtxLaunch read_ptx_launch(const std::string& text, const std::string& file, std::uint64_t seed);

struct PtxRun {
  ptx::LaunchReport report;
  std::vector<HostTensor> tensors;  // afterwards
};
// CTAs that the 132 multiprocessors of an H200 have room for by their threads and shared memory.
std::int64_t room_for_ctas(const ptx::Kernel& kernel, const ptx::LaunchInput& input);
inline constexpr std::int64_t kMostPtxOperations = 400'000'000;
// With the order of warps, and the instants of copies, that a seed draws; 0: each warp in its turn.
// Raises a usage error where the kernel cannot be launched so.
PtxRun run_ptx(const ptx::Module& module, const PtxLaunch& launch, std::uint64_t seed,
               std::int64_t most_operations = kMostPtxOperations);

// Whether two schedules have left more than sums whose terms came in another order: 2^-18 of the
// element or of the root mean square in f32, 2^-7 in f16 and bf16, nothing in other dtypes.
bool is_another_result(const HostTensor& first, const HostTensor& second);

}  // namespace tilewright::checks
