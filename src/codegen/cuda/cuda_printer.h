#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/ir.h"

// The machine form as CUDA C++.
namespace tilewright::codegen {

// One parameter of the printed kernel's signature: what a launch has to pass.
struct LaunchParameter {
  enum class Kind : std::uint8_t {
    tensor_map,     // index: the n-th tensor_map operation of the body; 128 bytes by value, of
                    // a ragged one twice
    peer_maps,      // the same for each of ir::kMaximumRanks
    pointer,        // index: the tensor's in Kernel::parameters
    peer_pointers,  // the same for each of ir::kMaximumRanks
    stride,         // index as pointer, axis; i64, in elements
    rank,           // i32
    epoch,          // i32
    epoch_word,     // its address, of a kernel whose launches find it in memory
    report,         // of a check that fails: CheckReport, in memory that the host reads
    watch,          // of waits that last too long: WatchReport, likewise
    dim,            // i32
    scalar,         // index: in Kernel::parameters; dtype
  };
  Kind kind = Kind::dim;
  int index = 0;
  int axis = 0;
  Dim dim;
  DType dtype = DType::i32;
};

// What a kernel with checks writes before it ends itself, as the prelude's stop_at_check does.
struct CheckReport {
  std::int64_t written = 0;  // not 0 once all of it is there
  std::int64_t taken = 0;    // by the thread that writes it
  std::int64_t check = 0;    // its number among the kernel's operations check
  std::int64_t cta = 0, warp = 0;
  std::int64_t numbers[ir::kCheckNumbers] = {};
};

// What waits that last too long write before they end their kernel, as the prelude's
// report_wait does. The host fills in how long that is.
struct WatchReport {
  static constexpr int kWaits = 32;
  struct Wait {
    std::int64_t written = 0;  // not 0 once all of it is there
    std::int64_t number = 0;   // Key::watched of the operation
    std::int64_t cta = 0, warp = 0;
    std::int64_t index = 0;             // of the word or barrier
    std::int64_t value = 0, found = 0;  // waited for: a word's value or a parity; what is there
    std::int64_t outer = 0, inner = 0;  // of the loops around it, the outermost and innermost index
  };
  std::int64_t nanoseconds = 0;  // a wait may last; that for a barrier twice as long
  std::int64_t taken = 0;        // by how many waits
  Wait waits[kWaits];
};

struct CudaSource {
  std::string entry;
  std::string text;
  std::vector<LaunchParameter> parameters;  // in the order of the signature
};

// One self-contained translation unit: it includes nothing and asks for no library. One operation
// becomes one group of statements; everything that could be decided is in the machine form.
// Compile with fmad off: the IR contracts where it wants to.
CudaSource print_cuda(const ir::Kernel& machine);
// The same of launches that are repeated as they are, in a CUDA graph: they find their epoch in
// memory.
CudaSource print_cuda_with_epoch_word(const ir::Kernel& machine);

}  // namespace tilewright::codegen
