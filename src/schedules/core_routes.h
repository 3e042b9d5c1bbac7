#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/core_window.h"
#include "language/core_tracing.h"
#include "schedules/core_values.h"

namespace tilewright::schedules {

// A memory on a value's way, or a place of global memory (space ""), that one unit writes and
// another reads, with a ring of stages between the two.
struct CoreStop {
  std::string space, name;
  DType dtype = DType::f32;
  ir::Extent2 extent;  // of what one instance holds
  ir::Extent2 whole;
  std::string writer, reader;
  int stages = 1;
  bool of_instance = false;  // a place of global memory for each instance of the sequencer
  std::unique_ptr<CoreMemory> memory;
  // Rows of all cores and stages below each other; of an instance a matrix for each of them.
  std::optional<Tensor> place;
  // Those that several loads have in common are waited for by the first and set by the last.
  std::shared_ptr<CoreEvent> full, free;
  bool opens = true, closes = true;
  // Of the role that is being traced.
  std::unique_ptr<Cell<Index>> next_written, next_read;
  std::optional<Index> written, read;
  bool is_ring() const { return writer != reader; }
};

// How a value gets from what makes it (a load, a product, vector work) to what takes it. A computed
// tile gets to its place in another shape by global memory.
struct CoreRoute {
  enum class Start : std::uint8_t { tensor, product, vector, reshape };
  Start start = Start::tensor;
  CoreEnd end = CoreEnd::vector;
  ir::ValueId base = ir::kNoValue;
  const ir::Operation* store = nullptr;  // where it ends in a tensor
  bool turned = false;
  std::vector<const target::CoreMove*> moves;
  std::size_t turn = 0;  // of the moves, the one that transposes; past the last where none does
  std::vector<CoreStop> stops;
  const ir::Operation* first = nullptr;  // that takes it, at the level of what makes it
  const ir::Operation* last = nullptr;
  const ir::Operation* load = nullptr;  // at which it is loaded, with others; null: at its own
  SourceLocation where;
};

// The shortest way for a value that ends as one of `goals`, transposed if it has to be. Null where
// there is none.
struct CoreWay {
  std::vector<const target::CoreMove*> moves;
  std::size_t turn = 0;
};
std::optional<CoreWay> find_way(const target::Core& core, const std::string& from,
                                const std::string& before, const std::vector<std::string>& goals,
                                const std::string& after, bool turns);

// From unit to unit, each of which can tell the next one and the other way round; `crosses`: by
// another sequencer, which hears all of one and is heard by all. Empty where there is none.
std::vector<std::string> find_order(const target::Core& core, const std::string& from,
                                    const std::string& to, bool crosses);

}  // namespace tilewright::schedules
