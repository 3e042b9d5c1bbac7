#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/ir.h"
#include "support/diagnostic.h"
#include "tilewright/function_ref.h"
#include "tilewright/kernel.h"

namespace tilewright {

// Records the operations of one kernel. At most one is current on a thread: the last one made.
class Tracer {
 public:
  Tracer(std::string name, SourceLocation where);
  ~Tracer();
  Tracer(const Tracer&) = delete;

  static Tracer* current();
  // Raises when no kernel is being traced.
  static Tracer& get(const char* what, SourceLocation where);
  // That of the value, whichever is being traced. Raises where its kernel has been destroyed.
  static const Tracer& of(const Handle& handle, const char* what);

  ir::Kernel& kernel() { return kernel_; }
  const ir::Kernel& finish();
  bool finished() const { return finished_; }
  // The kernel is lost: another may be traced.
  void abandon();

  // The id behind a handle; raises when it is of another kernel or no longer in scope.
  ir::ValueId use(const Handle& handle, const char* what, SourceLocation where);
  Handle handle(ir::ValueId id) { return Handle(this, id, serial_); }
  // Enters a value that no operation makes: a parameter. It is there everywhere, also where it was
  // declared inside a loop.
  Handle declare(ir::ValueId id, SourceLocation where) {
    note(id, where);
    scope_of_[id] = 0;
    return handle(id);
  }
  const ir::Type& type(ir::ValueId id) const { return kernel_.types[id]; }
  // Where the value was made.
  SourceLocation location(ir::ValueId id) const { return locations_[id]; }

  ir::Operation& append(ir::Op op, std::vector<ir::ValueId> operands, std::vector<ir::Type> results,
                        ir::Attributes attributes, SourceLocation where);
  ir::ValueId emit(ir::Op op, std::vector<ir::ValueId> operands, ir::Type result,
                   ir::Attributes attributes, SourceLocation where) {
    return append(op, std::move(operands), {std::move(result)}, std::move(attributes), where)
        .results[0];
  }
  ir::ValueId integer(std::int64_t value, SourceLocation where);
  // `what` asks for it: an element of the dtype.
  ir::ValueId number(double value, DType dtype, const char* what, SourceLocation where);
  ir::ValueId boolean(bool value, SourceLocation where);
  ir::ValueId dim(const Dim& dim, SourceLocation where);
  // Raises when a symbol of it is not this kernel's.
  void check_dim(const Dim& dim, SourceLocation where) const;
  // The same of how many `of` there are: 0 to 2^31 - 1 where that is known.
  void check_count(const Dim& count, const char* what, const char* of, SourceLocation where) const;
  // The value of a constant integer that was recorded in the block that is open.
  std::optional<std::int64_t> known(ir::ValueId id) const;
  // Raises for a division, or what is left of one, of integers by a number that is 0.
  void check_divisor(ir::Op op, ir::ValueId divisor, const char* what, SourceLocation where) const;
  // Whether the value is a dimension that is never less.
  bool reaches(ir::ValueId id, const Dim& dim) const;
  // Raises when the kernel takes nothing more, or is not the one that this thread traces.
  void require_open(const char* what, SourceLocation where) const;
  // Of integers.
  ir::ValueId arithmetic(ir::Op op, ir::ValueId a, ir::ValueId b, SourceLocation where);
  // A place (shared memory, barriers, tensor maps): recorded before everything else.
  ir::ValueId place(ir::Op op, std::vector<ir::ValueId> operands, ir::Type result,
                    ir::Attributes attributes, SourceLocation where);

  // Cells. Inside a loop or a branch a cell stands for a block argument or the branch's own value.
  int open_cell(ir::ValueId initial, SourceLocation where);
  void close_cell(int slot);
  void assign(int slot, ir::ValueId value, SourceLocation where);
  ir::ValueId read(int slot, SourceLocation where);

  // While it lives, everything recorded is at the user's line that called into the language.
  class At {
   public:
    // A schedule says for each operation that it records again whose line it is: `innermost`.
    At(Tracer& tracer, SourceLocation where, bool innermost = false)
        : tracer_(tracer), outer_(tracer.at_) {
      if (!outer_.file || (innermost && where.file)) tracer.at_ = where;
    }
    ~At() { tracer_.at_ = outer_; }
    At(const At&) = delete;

   private:
    Tracer& tracer_;
    SourceLocation outer_;
  };

  // Structured control flow.
  ir::ValueId open_loop(ir::ValueId low, ir::ValueId high, ir::ValueId step, SourceLocation where);
  void close_loop();
  void trace_if(ir::ValueId condition, FunctionRef<void()> then, FunctionRef<void()> otherwise,
                SourceLocation where);
  void trace_while(int condition_slot, FunctionRef<void()> body, SourceLocation where);
  // A block without carried values: elect.
  void trace_block(ir::Op op, ir::Attributes attributes, FunctionRef<void()> body,
                   SourceLocation where);
  void trace_role(const ir::Attributes& attributes, FunctionRef<void(Index)> body,
                  SourceLocation where);
  std::vector<Handle> open_grid(std::vector<Dim> extents, SourceLocation where);
  // Raises when the kernel has a grid.
  void require_no_grid(const char* what, SourceLocation where) const;
  bool nested() const { return frames_.size() > 1; }
  bool in_condition() const;

  // At the tile level a tensor that is added to is not accessed otherwise: blocks of the grid that
  // run at once would find some of the additions. Raises where it is.
  enum class Access : std::uint8_t { addition_in_order, addition_in_any, other };
  void note_access(const ir::Parameter& tensor, Access access, const char* what,
                   SourceLocation where);

  // Explicit level.
  void make_scheduled(SourceLocation where);
  void name_target(std::string_view name, SourceLocation where);
  struct Role {
    std::string name;
    int first_warp, warps;
    int serial;
  };
  const Role* role() const { return in_role_ ? &role_ : nullptr; }
  const std::vector<ir::Operation>& places() const { return places_; }
  ir::Operation& place_operation(ir::ValueId place);
  std::vector<ir::Operation>& body() { return frames_.back().block.body; }
  // How deep in loops and branches the recording is; a cell may only be made where it is outermost.
  int depth() const { return static_cast<int>(frames_.size()); }
  int next_named_barrier = 1;
  std::map<std::pair<std::string, std::string>, int> next_event;  // from unit to unit
  // What syncs and arrivals ask of the CTA, whose warps are known last.
  struct BarrierUse {
    const char* what;
    int threads;
    SourceLocation where;
  };
  std::vector<BarrierUse> barrier_uses;
  std::vector<std::function<void(bool begin)>> on_role;  // rings keep a position for each role
  // The stage of a ring that is being filled: tma_load adds its bytes.
  struct Filling {
    ir::ValueId barriers, stage;
    std::int64_t bytes;
    int depth;
    std::int64_t multicast;  // CTAs that a multicast load writes; 0: the ring takes none
    bool pair;               // the barrier is that of the first CTA of a pair
  };
  std::optional<Filling> filling;
  // The rank whose tensor each peer is.
  std::map<ir::ValueId, ir::ValueId> rank_of_peer;
  // One for each tensor and set of attributes.
  ir::ValueId tensor_map(ir::ValueId tensor, ir::Attributes attributes, SourceLocation where);

 private:
  struct Frame {
    ir::Block block;
    // Of a loop: the value each cell had before, in order of the block's arguments.
    std::vector<std::pair<int, ir::ValueId>> carried;
    ir::Op op = ir::Op::role;
    std::vector<ir::ValueId> operands;
    SourceLocation where;
    int scope = 0;
  };
  struct CellState {
    ir::ValueId value = ir::kNoValue;
    bool open = false;
    int depth = 0;
    SourceLocation where;
  };

  void push(ir::Op op, std::vector<ir::ValueId> operands, SourceLocation where);
  Frame pop();
  void carry_cells(Frame& frame);
  void finish_loop(Frame frame, std::vector<ir::ValueId> leading, std::vector<ir::ValueId> yielded);
  void note(ir::ValueId id, SourceLocation where);
  // Raises when the operation is not of the kernel's form, or not for the role's warps, or for more
  // than the one lane that is elected.
  void check_place(ir::Op op, SourceLocation where) const;
  // Raises when the target of an explicit kernel lacks the operation, or what it moves.
  void check_record(ir::Op op, SourceLocation where) const;
  static void check_size(const ir::Type& type, const std::string& what, SourceLocation where);

  ir::Kernel kernel_;
  SourceLocation target_where_;    // where the author names the target
  SourceLocation explicit_where_;  // of the first explicit operation
  SourceLocation at_;
  std::uint64_t serial_;
  std::vector<Frame> frames_;
  std::vector<ir::Operation> places_;
  std::vector<CellState> cells_;
  std::vector<SourceLocation> locations_;
  std::map<ir::ValueId, Dim> dims_;  // values that are dimensions or numbers
  // The first access to each tensor of a kernel of the tile level.
  std::map<ir::ValueId, std::pair<Access, SourceLocation>> accesses_;
  std::vector<int> scope_of_;     // of every value
  std::vector<bool> scope_open_;  // of every scope ever opened
  bool finished_ = false;
  bool in_role_ = false;
  Role role_{};
  int role_serial_ = 0;
};

}  // namespace tilewright
