#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "ir/ir.h"
#include "language/tracer.h"
#include "tilewright/hopper.h"

// A schedule records a tile kernel once more, at the explicit level: what all schedules share.
namespace tilewright::schedules {

// The kernel that is being recorded, and what the values of the tile form are in it.
class Recording {
 public:
  explicit Recording(const ir::Kernel& tile);
  virtual ~Recording() = default;
  Recording(const Recording&) = delete;

  const ir::Kernel& tile() const { return tile_; }
  Kernel& kernel() { return kernel_; }
  Tracer& tracer() { return tracer_; }

  // Declares the tile kernel's dimensions and parameters once more, in their order.
  void declare();
  // Begins the block of the grid with these indices: only they and the parameters are known.
  void begin_block(const std::vector<Index>& indices);

  ir::ValueId& operator[](ir::ValueId value) { return values_[value]; }
  bool known(ir::ValueId value) const { return values_[value] != ir::kNoValue; }
  template <typename Value>
  ir::ValueId id(const Value& value) {
    return tracer_.use(value.handle(), "schedule", tile_.where);
  }
  Index index(ir::ValueId value) { return Index(tracer_.handle(values_[value])); }
  Tile tile(ir::ValueId value) { return Tile(tracer_.handle(values_[value])); }
  const Tensor& tensor(ir::ValueId tensor) const { return tensors_.at(tensor); }
  bool scalar(ir::ValueId value) const { return tile_.type(value).is_scalar(); }
  // Of what is recorded for the value: a schedule may give each role a part.
  virtual ir::Type local(ir::ValueId value) const { return tile_.type(value); }
  // A scalar operand that says where memory is read or written. Raises where it is not known.
  Index number(const ir::Operation& o, std::size_t operand);
  // What the operation reads: values, and tensors.
  std::vector<ir::ValueId> operands(const ir::Operation& o);
  // The tensor of another rank.
  void peer(const ir::Operation& o);

  // Of the blocks of a view, the one along an axis that its tile has.
  using Cut = std::function<Block(const Block& block, int axis)>;
  // The view that a load or store names, whose starts begin at operand `first`.
  TensorView view(const ir::Operation& o, std::size_t first, const Cut& cut = {});

 private:
  const ir::Kernel& tile_;
  Kernel kernel_;
  Tracer& tracer_;
  std::map<ir::ValueId, Tensor> tensors_;  // parameters, and peers of them
  std::map<ir::ValueId, Scalar> scalars_;
  std::vector<ir::ValueId> values_;
};

// Records the operations of a tile kernel in their order. A schedule says what becomes of each, and
// hands on those that stay what they are.
class Retracer {
 protected:
  explicit Retracer(Recording& recording)
      : tile_(recording.tile()),
        kernel_(recording.kernel()),
        tracer_(recording.tracer()),
        recording_(recording) {}
  ~Retracer() = default;

  virtual void visit(const ir::Block& block) = 0;
  // Whether the role has the result of a loop or a condition.
  virtual bool carries(ir::ValueId) const { return true; }
  // The arguments of a loop's body are there, and nothing of it is recorded.
  virtual void enter(const ir::Operation&) {}

  // Of the block's operations those that `fits` takes and that need nothing of the others: they may
  // be recorded first.
  static std::vector<bool> early(const ir::Block& block,
                                 const std::function<bool(const ir::Operation&)>& fits);
  // The same operation, of what its operands have become.
  void repeat(const ir::Operation& o, const ir::Attributes& attributes);
  // The condition of a warp holds if it does of any: each leaves its answer, and all meet.
  void any(const ir::Operation& o, const Index& group, int warps);
  void for_loop(const ir::Operation& o);
  void while_loop(const ir::Operation& o);
  void if_then(const ir::Operation& o);

  const ir::Kernel& tile_;
  Kernel& kernel_;
  Tracer& tracer_;
  std::optional<SharedIntegers> answers_;  // of each warp
  std::optional<NamedBarrier> all_warps_;

 private:
  // A carried value becomes a cell.
  struct Carried {
    std::size_t position;
    int slot;
  };
  // For those results that are carried, whose first values are operands from `first` on.
  std::vector<Carried> open_cells(const ir::Operation& o, std::size_t first);
  void read_cells(const std::vector<Carried>& cells, const ir::Block& body, std::size_t first,
                  const ir::Operation& o);
  // What the block yields from `first` on.
  void assign_cells(const std::vector<Carried>& cells, const ir::Block& block, std::size_t first,
                    const ir::Operation& o);
  void close_cells(const std::vector<Carried>& cells, const ir::Operation& o);

  Recording& recording_;
};

}  // namespace tilewright::schedules
