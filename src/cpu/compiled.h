#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "analysis/repeated_stores.h"
#include "cpu/block_order.h"
#include "cpu/in_place.h"
#include "cpu/kernels.h"
#include "cpu/listing.h"
#include "cpu/program.h"
#include "ir/ir.h"
#include "support/arguments.h"
#include "tilewright/numerics.h"

namespace tilewright::cpu {

struct RunOptions {
  unsigned threads = 0;  // 0: thread_count()
  // A while_loop that runs longer is an error rather than a hang, as on the interpreter.
  std::int64_t while_limit = 100'000'000;
  // Values of the dimensions that no axis of a tensor is alone.
  std::map<std::string, std::int64_t> dims = {};
};

struct Launch;

// How long some blocks of a launch took on one thread.
struct Measurement {
  std::int64_t blocks = 0, measured = 0;  // of the launch, and those of them that ran
  double seconds = 0;                     // of these
  Profile profile;
};

// A kernel of the tile form, ready to run. It may run in several threads at once.
class CompiledKernel {
 public:
  // `kernels`: of the instruction set that is meant; null: this machine's.
  CompiledKernel(const ir::Kernel& kernel, const Numerics& numerics,
                 const Kernels* kernels = nullptr);

  CompiledKernel(const CompiledKernel&) = delete;
  CompiledKernel& operator=(const CompiledKernel&) = delete;

  // Raises what the interpreter raises for arguments that do not fit, for an index outside of its
  // tensor, for blocks that integers of the launch put outside of theirs, for scalars that
  // overflow, and for stores that all blocks along an axis of the grid do alike.
  void run(const Arguments& arguments, const RunOptions& options = {}) const;

  // The order in which several threads begin the blocks of such a launch: the longest first, unless
  // blocks add to memory in the order of their numbers.
  std::vector<std::int64_t> order_of_blocks(const Arguments& arguments, unsigned threads) const;

  // Runs blocks from all over the grid, for about so many seconds: the outputs are not those of a
  // launch. Raises what run raises.
  Measurement measure(const Arguments& arguments, double seconds) const;

  const Program& program() const { return program_; }
  const Kernels& kernels() const { return kernels_; }

 private:
  // What follows from the tensors' shapes and from nothing else of a launch.
  struct Bound;
  std::shared_ptr<const Bound> bound(const Arguments& arguments, const RunOptions& options) const;
  Bound bind_shapes(const Arguments& arguments, const RunOptions& options) const;
  // What the launch is but for its blocks' order; their number.
  std::int64_t bind(Launch& launch, const Arguments& arguments, const RunOptions& options,
                    unsigned threads) const;

  void check_present(const Arguments& arguments) const;

  // Empty: as they are numbered.
  std::vector<std::int64_t> sorted(const Launch& launch, std::int64_t count,
                                   unsigned threads) const;

  const ir::Kernel kernel_;
  const Numerics numerics_;
  const Kernels& kernels_;
  const Program program_;
  const BlockOrder order_;
  const For* const loop_;  // whose rounds blocks may go over together
  const std::vector<InPlace> in_place_;
  const std::vector<analysis::RepeatedStore> repeated_stores_;
  // Of the launch before: the next one mostly has the same shapes.
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const Bound> last_;
  // The tensors that were last found in memory: each asking takes as long as a small launch.
  mutable std::vector<std::pair<const std::byte*, std::vector<std::int64_t>>> present_;
};

}  // namespace tilewright::cpu
