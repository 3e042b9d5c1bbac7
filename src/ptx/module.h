#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

// PTX as text says it: kernels, their registers and variables, and instructions whose names are
// looked up in one table of records.
namespace tilewright::ptx {

inline constexpr int kLanes = 32;
// One register of a warp: the bits of each lane's value, those above its type 0.
using Lanes = std::array<std::uint64_t, kLanes>;

enum class Modifier : std::uint8_t {
#define TW_MODIFIER(name, text) name,
#include "ptx/modifiers.def"
#undef TW_MODIFIER
  count
};
using Modifiers = std::bitset<static_cast<std::size_t>(Modifier::count)>;

enum class Type : std::uint8_t {
  none,
  pred,
  b8,
  b16,
  b32,
  b64,
  u8,
  u16,
  u32,
  u64,
  s8,
  s16,
  s32,
  s64,
  f16,
  f16x2,
  bf16,
  bf16x2,
  f32,
  f64,
  tf32,
  e4m3,
  e5m2,
  e4m3x2,
  e5m2x2,
  f32x2,
  b128  // of which a register keeps the first half
};
struct TypeInfo {
  std::string_view name;
  int bytes;  // of one element in memory
};
// In the order of Type.
inline constexpr TypeInfo kTypes[] = {
    {"none", 0}, {"pred", 1},  {"b8", 1},     {"b16", 2},    {"b32", 4},   {"b64", 8},  {"u8", 1},
    {"u16", 2},  {"u32", 4},   {"u64", 8},    {"s8", 1},     {"s16", 2},   {"s32", 4},  {"s64", 8},
    {"f16", 2},  {"f16x2", 4}, {"bf16", 2},   {"bf16x2", 4}, {"f32", 4},   {"f64", 8},  {"tf32", 4},
    {"e4m3", 1}, {"e5m2", 1},  {"e4m3x2", 2}, {"e5m2x2", 2}, {"f32x2", 8}, {"b128", 16}};
constexpr std::string_view name_of(Type type) {
  return kTypes[static_cast<std::size_t>(type)].name;
}
constexpr int size_of(Type type) { return kTypes[static_cast<std::size_t>(type)].bytes; }
constexpr bool is_signed(Type type) { return type >= Type::s8 && type <= Type::s64; }

enum class Space : std::uint8_t { generic, global, shared, local, param };

enum class Special : std::uint8_t {
  tid_x,
  tid_y,
  tid_z,
  ntid_x,
  ntid_y,
  ntid_z,
  ctaid_x,
  ctaid_y,
  ctaid_z,
  nctaid_x,
  nctaid_y,
  nctaid_z,
  laneid,
  warpid,
  clusterid_x,
  nclusterid_x,
  cluster_ctarank,
  cluster_nctarank,
  clock,
  clock64,
  globaltimer,
  smid,
};

struct Operand {
  enum class Kind : std::uint8_t { reg, constant, special, symbol, address, vector, sink, label };
  Kind kind = Kind::sink;
  bool negated = false;        // of a predicate
  int index = -1;              // of a register, a constant, a symbol; the instruction of a label
  int second = -1;             // of `a|b`
  std::int64_t offset = 0;     // of an address
  std::vector<Operand> parts;  // of a vector; of an address its base, then coordinates
};

struct Record;

struct Instruction {
  const Record* record = nullptr;
  Modifiers modifiers;
  Type type = Type::none;    // the first of its name
  Type second = Type::none;  // the one behind it
  int guard = -1;            // a predicate register
  bool guard_negated = false;
  std::vector<Operand> operands;
  int line = 0;
  int target = -1;  // of a branch
  int join = -1;    // where the lanes that part here meet again; past the end: where they end
  // Of the fields of a product's name: m64nNkK.
  int n = 0, k = 0;
  bool has(Modifier modifier) const { return modifiers[static_cast<std::size_t>(modifier)]; }
};

// A variable of a module or of a kernel.
struct Variable {
  std::string name;
  Space space = Space::global;
  std::int64_t bytes = 0;  // 0: as large as the launch says
  std::int64_t alignment = 1;
  std::int64_t offset = 0;         // in its space; of a kernel's parameters in these
  std::vector<std::byte> initial;  // of a global variable
};

struct Kernel {
  std::string name;
  int line = 0;
  std::vector<Variable> parameters;
  std::int64_t parameter_bytes = 0;
  std::vector<Variable> symbols;  // those of the module first
  std::int64_t static_shared_bytes = 0, local_bytes = 0;
  std::array<std::int64_t, 3> most_threads{};  // of .maxntid or .reqntid; 0: it says nothing
  std::int64_t cluster = 1;
  int registers = 0;
  std::vector<Type> register_types;
  std::vector<Lanes> constants;
  std::vector<Instruction> instructions;
};

struct Module {
  std::string version, target;
  std::vector<Kernel> kernels;
  const Kernel* find(std::string_view name) const;
};

// Raises a usage error that names the line for what is not PTX, and for instructions, modifiers and
// directives that are not known here. `file` is what errors call the text.
Module parse(std::string_view text, const std::string& file);

}  // namespace tilewright::ptx
