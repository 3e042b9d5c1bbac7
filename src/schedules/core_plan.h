#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "schedules/core_routes.h"

// How a tile kernel's values get from unit to unit of a core with explicit memories, and where
// vector work keeps them: decided before anything is recorded.
namespace tilewright::schedules {

// Of vector work, in which values follow each other.
struct CoreBuffer {
  ir::Extent2 extent;
  DType dtype = DType::f32;
  std::int64_t pitch = 0;  // columns with those that bring each row to where windows may begin
  bool reserved = false;   // by a loop that carries it
  SourceLocation where;    // of the first that makes it
  std::unique_ptr<CoreMemory> memory;
};

class CorePlan {
 public:
  explicit CorePlan(const ir::Kernel& tile);
  CorePlan(const CorePlan&) = delete;

  struct Place {
    const ir::Operation* o;
    const ir::Block* block;
  };
  // A load or a store, the outermost loop around it, and all that it stands in.
  struct Access {
    const ir::Operation* o;
    const ir::Operation* loop;
    std::vector<Place> around;
  };

  // "v3_0_Mat0 2, ...": the stages of each memory.
  std::string stages_text() const;

 protected:
  [[noreturn]] void refuse(const ir::Operation& o, const std::string& problem,
                           const std::string& fix =
                               "write it at the explicit level "
                               "(tilewright/incore.h)") const;
  [[noreturn]] void refuse_turned(const ir::Operation& o) const;
  std::string owner(const std::string& unit) const;
  bool splits(const ir::Block& block) const;
  static std::vector<std::size_t> axes_of(const std::vector<std::int64_t>& sizes);
  bool is_split(ir::Extent2 extent) const;
  ir::Extent2 part_of(ir::Extent2 extent) const;
  void routes(const ir::Block& block);
  void route_uses(const ir::Operation& o, ir::ValueId base, CoreRoute::Start start);
  void route_uses(const ir::Operation& o, ir::ValueId base, CoreRoute::Start start, CoreEnd end);
  CoreRoute* find_route(ir::ValueId base, CoreEnd end, bool turned);
  void add_route(const ir::Operation& o, ir::ValueId base, CoreRoute::Start start, CoreEnd end,
                 bool turned, const ir::Operation* store);
  void add_reshape(const ir::Operation& o);
  void make_stops(CoreRoute& route, const ir::Operation& o, const std::string& from,
                  const std::string& before, const std::string& after);
  // What orders loads and stores of a tensor that is loaded once something was stored there.
  void find_orders();
  // Whether instances of a sequencer load and store it that may have each other's rows.
  bool is_crossed(const std::vector<Access>& accesses) const;
  bool moves_with(const ir::Block& body, const ir::Operation& store) const;
  bool is_stored_over(const std::vector<Access>& accesses) const;
  void order_units(const ir::Operation& o, const std::string& before, const std::string& own);
  void stages_ahead(const ir::Block& block);
  void choose_stages();
  // Lets one more load have its events in common with the one before; false where none can.
  bool join_loads(const ir::Block& block, const std::function<bool(const CoreStop&)>& counts);
  std::int64_t bytes(const CoreStop& stop) const;
  // The way that a value of vector work starts on, if that is all that becomes of it.
  CoreRoute* only_route(ir::ValueId base);
  std::int64_t pitch_of(ir::ValueId base) const;
  int take(ir::ValueId base);
  bool dies_at(ir::ValueId base, const ir::Operation& o) const;
  // Frees what no operation behind this one takes.
  void bury(const ir::Operation& o, const std::set<int>& kept);
  // A result in the place of an operand that ends here.
  int in_place(const ir::Operation& o, const std::vector<ir::ValueId>& operands,
               ir::ValueId result);
  // Whether the vector unit makes its result, a tile that has a place of its own.
  bool is_vector_work(const ir::Operation& o) const;
  void plan(const ir::Block& block);
  void plan_loop(const ir::Operation& o, const std::function<void(ir::ValueId, int)>& hold);

  const ir::Kernel& tile_;
  const target::Core& core_;
  const target::CoreProduct& product_;
  const target::CoreFunctions& vector_;  // of the unit that computes what no product is
  const CoreTiles tiles_;
  const int instances_;  // of the vector unit
  int parts_ = 1;        // into which they split rows
  std::vector<CoreRoute> routes_;
  std::set<std::string> used_;  // sequencers
  // Of a loop what runs a step ahead: what is loaded, and products of that alone.
  std::map<const ir::Operation*, std::set<const ir::Operation*>> ahead_;
  std::set<ir::ValueId> reloaded_;  // tensors
  // Of such a load or store what waits for what is before it: units, of which each tells the next
  // one, and then the other way round. A single one waits for itself.
  std::map<const ir::Operation*, std::vector<std::vector<std::string>>> orders_;
  std::set<std::pair<std::string, std::string>> hops_;  // of those, from the first on
  std::vector<CoreBuffer> buffers_;
  std::map<ir::ValueId, int> buffer_;

 private:
  std::set<ir::ValueId> by_rows_;  // taken a few rows at a time
  std::set<int> free_;
  std::set<ir::ValueId> buried_;
};

}  // namespace tilewright::schedules
