#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/ir.h"
#include "tilewright/target.h"

// What a machine is, as a value. Passes, schedules, printer and simulator read it by the name that
// a kernel has (ir::Kernel::target), and none of them asks which target it is.
namespace tilewright::target {

// How fast one multiprocessor is: what the model of costs and the time axis of traces are made of.
// In cycles where nothing else is said. An assumption is good enough to rank and to draw.
struct Rates {
  // In which a scheduler issues one instruction of a warp.
  int issue_float = 0;    // add, mul, fma
  int issue_integer = 0;  // comparisons, minimum, select, integers
  int issue_special = 0;  // exp2, rcp, log2
  int issue_shuffle = 0;
  int issue_control = 0;  // jumps, loops
  int issue_scalar = 0;
  int issue_asynchronous = 0;  // a copy or a product
  int barrier = 0;             // an arrival, or a wait for what is complete
  // Until what was asked for is there.
  int shared_latency = 0;  // a load by threads
  int global_latency = 0;  // a load by threads, or an atomic
  int copy_latency = 0;    // an asynchronous load, to its barrier's phase
  int store_latency = 0;   // an asynchronous store
  // A cycle.
  int shared_bytes = 0;   // of shared memory
  int l2_port_bytes = 0;  // that its port to L2 is wide; what kernels reach is the device's
  int fma = 0;            // of 16-bit products, dense; of 8-bit ones twice that
};

// What holds values, of whom (a CTA, a core), and how much of it there is: 0 where a device says.
struct Space {
  ir::Memory memory = ir::Memory::global;
  std::string name;   // "shared memory"
  std::string owner;  // "a CTA"
  std::int64_t bytes = 0;
};
// An operation may bring values from one memory to another.
struct Move {
  ir::Memory from, to;
  friend bool operator==(const Move&, const Move&) = default;
};

// What executes instructions of the machine form: by their names traces, estimates and
// explanations say what is busy.
struct Unit {
  std::string name;                  // "tensor cores"
  std::vector<ir::Family> families;  // that it executes
  std::vector<ir::Pipe> pipes;       // the same of functions of elements
};

// Products whose operands have a scale for every so many elements along the depth, by PTX's names.
// Records say which a machine has. No operation stands for them yet.
struct ScaledProducts {
  std::string kind;                  // "mxf4nvf4"
  std::vector<std::string> formats;  // of operands
  std::vector<std::string> scales;
  std::vector<std::int64_t> elements;  // that share a scale
  std::int64_t depth = 0;              // of one product
};

struct Core;  // core.h

// Where the elements of a product's result, or of its first operand in registers, have to lie.
using RegisterLayoutOf = ir::RegisterLayout (*)(std::int64_t rows, std::int64_t columns,
                                                DType element, SourceLocation where);

struct Target {
  std::string name;   // "sm_90a"
  std::string chips;  // whose they are, for errors: "NVIDIA Hopper: H100, H200, GH200"
  TargetLimits limits;
  Rates rates;

  std::vector<Space> spaces;
  std::vector<Move> moves;
  std::vector<DType> product_dtypes;  // of operands
  std::vector<ScaledProducts> scaled_products;
  RegisterLayoutOf accumulator = nullptr, product_operand = nullptr;
  bool float_pairs = false;  // an instruction multiplies or adds two f32 of a thread
  // Of another record, of which this one lacks nothing that kernels are written with: those for it
  // are compiled here too.
  std::string takes_kernels_of;
  std::vector<Unit> units;
  std::vector<ir::Family> operations;  // of the scheduled and the machine form, that it has
  std::vector<ir::Op> without;         // of these, single ones that it lacks
  // Of a core with explicit memories: what there is beside global memory. Null for all others.
  std::shared_ptr<const Core> core = nullptr;

  // The way of a kernel, by names that the layers list: passes from the simplified tile form to the
  // schedule (src/passes), schedules, of which the first that takes the kernel makes the scheduled
  // form (src/schedules), passes from there to the machine form, and the printer (src/codegen).
  std::vector<std::string_view> preparation, schedules, lowering;
  std::string_view printer;

  bool has(const ir::OpInfo& operation) const;
  bool has(Move move) const;
  // A move of the operation's that it lacks.
  std::optional<Move> missing_move(const ir::OpInfo& operation) const;
  const Space& space(ir::Memory memory) const;
  // What executes the family, or the instruction: one without a name where nothing does.
  const Unit& unit_of(ir::Family family) const;
  const Unit& unit_of(const ir::Operation& instruction) const;
  bool multiplies(DType operand) const;
  std::string product_dtype_list() const;  // "bf16, f16 or f8e4m3"
};

// One more record, which is found by its name until this goes: of machines that are tried out.
class AddedTarget {
 public:
  explicit AddedTarget(Target target);
  ~AddedTarget();
  AddedTarget(const AddedTarget&) = delete;
  AddedTarget& operator=(const AddedTarget&) = delete;

 private:
  std::string name_;
};

// The records of machines that have a machine form, in the order in which errors list them. The
// host's own processor (cpu.h) is none of them.
std::vector<const Target*> targets();
// The host's among them. A usage error for an unknown name, which lists the known ones.
const Target& find_target(std::string_view name, SourceLocation where = {});
// Whether what is written for the one target is compiled for the other: the same, or one that takes
// its kernels. Either may be no target's name.
bool takes_kernels(std::string_view target, std::string_view written_for);
// Of the kernel, which is past the tile form.
const Target& target_of(const ir::Kernel& kernel);

// CTAs of a machine form that one multiprocessor holds, by its registers, shared memory and
// threads. The build tells the assembler how many share the registers, so that a thread gets its
// share.
std::int64_t resident_ctas(const ir::Kernel& machine);

}  // namespace tilewright::target
