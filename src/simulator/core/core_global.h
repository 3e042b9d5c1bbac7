#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "simulator/core/core_memory.h"

namespace tilewright::simulator {

// Of each tensor of a launch, of each element from its first to its last: whether it was read (bit
// 0), and written (bit 1).
using CoreTouched = std::vector<std::vector<std::uint8_t>>;

// Global memory that the kernel may write: who has accessed it. Cores order nothing among each
// other, so that what two of them do to one element is in no order. Tensors may share memory.
class CoreGlobal {
 public:
  explicit CoreGlobal(const CoreLaunch& launch, CoreTouched* touched = nullptr);

  // Elements of the part of a tensor that an instruction names: where they lie, row-major in the
  // part, and -1 for those that do not exist. Raises a fault for one that is indexed away outside.
  std::vector<std::int64_t> elements(const CoreItem& item) const;
  // What of the part lies where it must not, and what mends it: an index outside of its axis, or a
  // block that integers of the launch put outside of its tensor. Empty where nothing does.
  struct Outside {
    std::string problem, fix;
  };
  Outside outside(const CoreItem& item, std::int64_t instance) const;
  // Where its tensor is declared.
  SourceLocation where(const CoreItem& item) const;
  void order(const CoreItem& item, const std::vector<std::int64_t>& elements, bool writes,
             std::int64_t block, const CoreAgent& by, const CoreClock& known, FaultLog& log);
  // What sequencers read as indices, which no event orders: a fault where the kernel writes it.
  void order_indices(const std::vector<CoreIndexRead>& reads, FaultLog& log);
  CoreValues read(const CoreItem& item, const std::vector<std::int64_t>& elements,
                  Origins& origins);
  // Faults where what nobody wrote would be written.
  void write(const CoreItem& item, const std::vector<std::int64_t>& elements,
             const CoreValues& values, const Origins& origins, FaultLog& log);

 private:
  struct Access {
    std::int64_t block = -1;
    CoreAgent agent;
  };
  // Memory of tensors of which one is written, in pieces of so many bytes.
  struct Region {
    const std::byte *begin = nullptr, *end = nullptr;
    std::int64_t piece = 0;
    std::vector<Access> writers;
    std::vector<std::vector<Access>> readers;  // since then
    std::map<std::int64_t, const ir::Operation*> indices;
  };
  void cover(const TensorArgument& tensor, bool written);
  const TensorArgument& tensor_of(const CoreItem& item) const;
  Region* region_of(const std::byte* place);
  const TensorArgument& tensor_of(const ir::Operation& access) const;

  const CoreLaunch& launch_;
  CoreTouched* const touched_;  // null: nobody asks
  std::vector<Region> regions_;
  std::set<const TensorArgument*> starts_unwritten_;
};

}  // namespace tilewright::simulator
