#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "api/program_ranks.h"
#include "compiler/build.h"
#include "compiler/compiled.h"
#include "ir/program.h"
#include "runtime/device.h"
#include "runtime/peers.h"
#include "tilewright/memory_order.h"

namespace tilewright {

// Waits of streams for words: those that the driver has, and for the other comparisons a kernel of
// one warp.
class WordWaits {
 public:
  // Builds the kernels that the program's waits need, for the ranks of this process.
  void build(const ir::Program& recorded, const ProgramRanks& ranks,
             const compiler::BuildOptions& options);
  // The driver's wait; nothing where a kernel waits.
  static std::optional<runtime::WordOperation> by_driver(std::byte* word, Compare compare,
                                                         std::int32_t value);
  void queue_kernel(int rank, const runtime::Stream& stream, std::byte* word, Compare compare,
                    std::int32_t value) const;

 private:
  std::map<std::pair<int, Compare>, std::unique_ptr<compiler::CompiledKernel>> kernels_;
};

}  // namespace tilewright
