#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "simulator/core/core_stream.h"
#include "simulator/machine/fault_log.h"
#include "support/arguments.h"

// What lies in the memories of a core, who wrote it, and whether anybody did.
namespace tilewright::simulator {

// An instruction that has started: its queue's number, and its own in that.
struct CoreAgent {
  int queue = -1;
  std::int32_t issued = 0;  // as which of its sequencer's instructions
  std::int64_t number = 0;  // from 1 on
  const ir::Operation* operation = nullptr;
  std::int16_t unit = 0;
  std::int8_t issuer = -1;  // the sequencer's instance
  bool writes = false;      // what the access was
  bool is_there() const { return operation != nullptr; }
  bool is(const CoreAgent& other) const { return queue == other.queue && number == other.number; }
};
// Of each queue so many instructions are known to be over.
using CoreClock = std::vector<std::int64_t>;

// "core_move at gemm.cpp:12"
std::string text_of(const ir::Operation& instruction);

// Where elements came from that nobody wrote: 0 of those that are fine.
class Origins {
 public:
  static constexpr std::uint8_t kUnwritten = 1;
  // That the instruction has taken an element that nobody wrote.
  std::uint8_t of(const CoreItem& reader, const std::string& what);
  SourceLocation where(std::uint8_t origin) const { return list_[origin].where; }
  const std::string& text(std::uint8_t origin) const { return list_[origin].text; }

 private:
  struct Origin {
    SourceLocation where;
    std::string text;
  };
  std::vector<Origin> list_{{}, {}};
  std::map<const ir::Operation*, std::uint8_t> known_;
};

// A matrix as units see it: reals or whole numbers, row-major.
struct CoreValues {
  ir::Extent2 extent;
  DType dtype = DType::f32;
  std::vector<float> real;
  std::vector<std::int64_t> whole;
  std::vector<std::uint8_t> origin;  // of each element

  CoreValues(ir::Extent2 extent, DType dtype);
  bool is_real() const { return is_float(dtype); }
  std::size_t size() const { return origin.size(); }
};

// Orders accesses to one memory: whichever of two that conflict comes second has to know that the
// first is over.
class CoreOrder {
 public:
  CoreOrder(std::size_t cells, std::size_t queues);
  // The agent that it conflicts with; one that is not there where there is none.
  CoreAgent read(std::size_t cell, CoreAgent by, const CoreClock& known);
  CoreAgent write(std::size_t cell, CoreAgent by, const CoreClock& known);

 private:
  std::size_t queues_;
  std::vector<CoreAgent> writers_;
  std::vector<CoreAgent> readers_;  // since then, of each queue the last
};

// The memories of one sequencer's instance, or those that all of a core share: of no sequencer. No
// more of them than the kernel has a use for.
class CoreMemories {
 public:
  CoreMemories(const CoreLaunch& launch, std::size_t queues, Origins& origins,
               std::string_view sequencer);

  // Where the window's elements lie, row-major as they lie.
  const std::vector<std::int64_t>& addresses(const CoreWindowAt& window);
  // What is wrong with the place of a window; empty where nothing is.
  std::string problem_of(const CoreWindowAt& window, std::string& kind, std::string& fix) const;

  // Whether elements of the one lie on other elements of the other.
  bool overlap(const CoreWindowAt& a, const CoreWindowAt& b);
  // Raises a fault where the access is in no order with another one.
  void order(const CoreWindowAt& window, bool writes, const CoreAgent& by, const CoreClock& known,
             FaultLog& log);
  CoreValues read(const CoreWindowAt& window, const CoreItem& reader);
  // Those elements that `exists` says, or all.
  void write(const CoreWindowAt& window, const CoreValues& values,
             const std::vector<bool>* exists = nullptr);
  // "row 3, column 0 of a (Mat)".
  std::string element_text(const CoreWindowAt& window, std::int64_t row, std::int64_t column) const;

 private:
  struct Space {
    std::int64_t partition_bytes = 0;  // that are used
    std::vector<std::byte> bytes;
    std::vector<std::uint8_t> origin;  // of each byte
    std::vector<std::int16_t>
        place;  // of each byte, the number of the memory that it is written in
    std::unique_ptr<CoreOrder> order;
  };
  struct Lying {
    std::vector<std::int64_t> addresses;
    std::vector<std::size_t> cells;
  };
  using Key = std::tuple<int, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t>;

  Space& space_of(const CoreWindowAt& window) {
    return spaces_[launch_.places[window.place].space_number];
  }
  const Lying& lying(const CoreWindowAt& window);

  const CoreLaunch& launch_;
  Origins& origins_;
  std::vector<Space> spaces_;  // by their numbers in the record
  std::map<Key, Lying> lying_;
};

// The fault of two accesses in no order, of which this one came second. Of one sequencer the author
// wrote them in the order in which it has issued them.
Fault race(const CoreLaunch& launch, CoreAgent second, CoreAgent first, const std::string& place);

}  // namespace tilewright::simulator
