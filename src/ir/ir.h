#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ir/layout.h"
#include "ir/operation_record.h"
#include "tilewright/dim.h"
#include "tilewright/dtype.h"
#include "tilewright/error.h"
#include "tilewright/require.h"
#include "tilewright/schedule.h"

// The intermediate representation: one node table (operations.def) in three forms.
//   tile       SSA tiles; no target, until passes plan a schedule for one
//   scheduled  SSA tiles with layout and role, asynchronous tokens
//   machine    destination-passing on register arrays and shared memory; SSA only for scalars
namespace tilewright::ir {

struct Type {
  enum class Kind : std::uint8_t {
    none,
    scalar,
    tile,
    pending,
    tensor,
    shared,
    view,
    mbarriers,
    registers,
    tensor_map,
    tensor_memory,
    memory,
    window
  };
  Kind kind = Kind::none;
  DType dtype = DType::i32;
  // tile, pending, view: extent of each axis. shared: {stages, rows, columns}. mbarriers: {count}.
  // tensor_memory: {columns}. memory: {stages, rows, columns}. window: {rows, columns}, as it lies
  // in memory.
  // registers: {elements of one thread}. tensor: {rank}; a peer's: {rank, number of the
  // parameter whose peer it is}. view: as it lies in memory, before any
  // transposition.
  std::vector<std::int64_t> shape;
  RegisterLayout layout;  // tile and pending in the scheduled form, once assigned; else empty

  static Type scalar(DType dtype) { return {Kind::scalar, dtype, {}, {}}; }
  static Type tile(DType dtype, std::vector<std::int64_t> shape) {
    return {Kind::tile, dtype, std::move(shape), {}};
  }
  static Type of(Kind kind, DType dtype = DType::i32, std::vector<std::int64_t> shape = {}) {
    return {kind, dtype, std::move(shape), {}};
  }
  bool is(Kind k) const { return kind == k; }
  bool is_tile() const { return kind == Kind::tile; }
  bool is_scalar() const { return kind == Kind::scalar; }
  bool is_peer() const { return kind == Kind::tensor && shape.size() == 2; }
  std::int64_t elements() const;
  std::string to_string() const;
  friend bool operator==(const Type& a, const Type& b);
  friend bool operator!=(const Type& a, const Type& b) { return !(a == b); }
};

// Whether values of the kind have a dtype.
bool has_elements(Type::Kind kind);

// A value is a number in its kernel's table.
using ValueId = std::uint32_t;
inline constexpr ValueId kNoValue = UINT32_MAX;

// From a destination's register index to a source's: evaluate(map, i). Empty for a scalar operand.
using IndexMap = std::vector<IndexTerm>;

using Attribute = std::variant<std::int64_t, double, std::string, std::vector<std::int64_t>, Op,
                               Dim, RegisterLayout, SharedLayout, std::vector<IndexMap>>;

// A few named attributes, sorted by key.
class Attributes {
 public:
  // Defined in ir.cpp, as those of Kernel: most files would instantiate them else.
  Attributes();
  Attributes(const Attributes&);
  Attributes(Attributes&&) noexcept;
  Attributes& operator=(const Attributes&);
  Attributes& operator=(Attributes&&) noexcept;
  ~Attributes();
  Attributes(std::initializer_list<std::pair<Key, Attribute>> list);
  bool has(Key key) const { return find(key) != nullptr; }
  const Attribute* find(Key key) const;
  void set(Key key, Attribute value);
  void erase(Key key);
  // Each raises an internal error when the attribute is missing or of another type.
  std::int64_t integer(Key key) const;
  std::int64_t integer_or(Key key, std::int64_t otherwise) const;
  const std::string& text(Key key) const;
  const std::vector<std::int64_t>& integers(Key key) const;
  Op function(Key key = Key::function) const;
  const Dim& dim() const;
  const RegisterLayout& register_layout() const;
  const SharedLayout& shared_layout() const;
  const std::vector<IndexMap>& maps() const;
  const std::vector<std::pair<Key, Attribute>>& entries() const { return entries_; }
  friend bool operator==(const Attributes& a, const Attributes& b);

 private:
  std::vector<std::pair<Key, Attribute>> entries_;
};

struct Operation;

struct Block {
  std::vector<ValueId> arguments;
  std::vector<Operation> body;
};

struct Operation {
  Op op = Op::constant;
  std::vector<ValueId> operands;
  std::vector<ValueId> results;
  Attributes attributes;
  std::vector<Block> blocks;
  SourceLocation where;
};

// What a product's result is added to; none where it starts anew.
inline ValueId accumulator_of(const Operation& product) {
  const auto at = static_cast<std::size_t>(info(product.op).accumulator);
  return at < product.operands.size() ? product.operands[at] : kNoValue;
}

// Of what the runtime owns, in bytes.
constexpr int kOwnedAlignment = 16;

struct Parameter {
  // A workspace is zeros that the runtime owns and that every launch leaves zero; in scratch
  // memory, which it owns too, a launch finds anything. A symmetric tensor is there in every rank,
  // which read and write each other's. So are signals, which the runtime owns: zeros at first, then
  // what the launches before have left.
  enum class Kind : std::uint8_t { in, out, inout, scalar, workspace, scratch, symmetric, signals };
  Kind kind = Kind::in;
  std::string name;
  DType dtype = DType::f32;
  std::vector<Dim>
      shape;  // of a tensor; row-major unless a launch gives strides; innermost stride 1
  ValueId value = kNoValue;
  SourceLocation where;
  bool is_tensor() const { return kind != Kind::scalar; }
  bool is_workspace() const { return kind == Kind::workspace; }
  bool is_symmetric() const { return kind == Kind::symmetric || kind == Kind::signals; }
  // By the runtime, not by the caller.
  bool is_owned() const { return is_of_stream() || kind == Kind::signals; }
  // Of what is owned: each stream has its own.
  bool is_of_stream() const { return kind == Kind::workspace || kind == Kind::scratch; }
  // Of what is owned, whose elements have 4 bytes.
  std::vector<std::int64_t> constant_shape() const;
  std::int64_t element_count() const;
};

std::string_view name_of(Parameter::Kind kind);
std::optional<Parameter::Kind> find_parameter_kind(std::string_view name);

struct Kernel {
  Kernel();
  Kernel(const Kernel&);
  Kernel(Kernel&&) noexcept;
  Kernel& operator=(const Kernel&);
  Kernel& operator=(Kernel&&) noexcept;
  ~Kernel();

  std::string name;
  Form form = Form::tile;
  std::string target;     // whose record it is compiled by; none in the tile form as it is traced
  std::vector<Dim> dims;  // the symbols, in order of declaration
  std::vector<Parameter> parameters;
  std::vector<Dim> grid;       // tile form: one index each, x first. Else CTAs of one axis.
  std::vector<Dim> tile_grid;  // what an automatic schedule's CTAs share; no part of the text
  std::int64_t cluster = 1;    // CTAs of a cluster along x
  bool cta_pairs = false;      // tensor memory and its products are of two CTAs of a cluster each
  std::int64_t threads = 0;    // scheduled, machine: of a CTA
  std::int64_t resident = 1;   // scheduled, machine: CTAs that share a multiprocessor's registers
  std::int64_t shared_bytes = 0;  // machine, once allocated: dynamic shared memory
  Block body;                     // tile form: its arguments are the grid's indices
  std::vector<Claim> claims;      // of the author, about what it is compiled to
  Schedule schedule;              // tile form: what is said of how to compile it
  std::vector<Type> types;        // of every value
  SourceLocation where;

  ValueId add_value(Type type);
  const Type& type(ValueId value) const { return types[value]; }
  // Of a tensor or a peer's; null for other values.
  const Parameter* parameter_of(ValueId tensor) const;
  // Workspaces and signals follow the tensors that a launch is given.
  bool has_owned() const { return !parameters.empty() && parameters.back().is_owned(); }
};

// The target that is meant where nobody names one: by an explicit kernel without Kernel::target, by
// a text, and by whoever checks a kernel of the tile form. Products at the explicit level
// (tilewright/hopper.h) are there for this one alone.
constexpr std::string_view default_target() { return "sm_90a"; }
// What the kernel's text leaves out.
constexpr std::string_view implied_target(Form form) {
  return form == Form::tile ? "" : default_target();
}

// Whether a product goes on reading the operand, a tile in registers, until it is waited for.
inline bool is_read_in_flight(const Kernel& kernel, const Operation& o, std::size_t operand) {
  const OpInfo& record = info(o.op);
  return record.is_asynchronous_product() && record.reads(Memory::registers, Proxy::async) &&
         static_cast<int>(operand) != record.accumulator &&
         kernel.type(o.operands[operand]).is_tile();
}

// The most numbers that an operation check reports.
inline constexpr std::size_t kCheckNumbers = 4;

// The symbol that a launch binds to the number of multiprocessors of its device.
inline constexpr const char* kMultiprocessors = "multiprocessors";
// The symbol that a launch binds to the number of ranks.
inline constexpr const char* kRanks = "ranks";
// As many as a kernel's parameters have room for: 8 tensor maps of each tensor that peers copy.
inline constexpr int kMaximumRanks = 8;

// Renumbers values in order of definition and forgets unused ones, so that equal kernels print and
// hash the same whatever built them.
void canonicalise(Kernel& kernel);

// Whether a warp waits for a word that is in this rank alone, which other CTAs set: then all CTAs
// have to run at once, as in a cooperative launch.
bool is_cooperative(const Kernel& kernel);

// Calls `visit(operation)` for every operation below, parents first.
template <typename Visit>
void for_each(const Block& block, Visit&& visit) {
  for (const Operation& operation : block.body) {
    visit(operation);
    for (const Block& inner : operation.blocks) for_each(inner, visit);
  }
}
template <typename Visit>
void for_each(Block& block, Visit&& visit) {
  for (Operation& operation : block.body) {
    visit(operation);
    for (Block& inner : operation.blocks) for_each(inner, visit);
  }
}

}  // namespace tilewright::ir
