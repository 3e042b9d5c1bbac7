#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/dtype.h"

// A core whose program places every tile, starts every move and orders every unit itself, as a
// value. Verifier, placement, simulator, schedule and `explain` read it, and none of them asks
// which machine it is. The machines are made up of what public documents say of such cores
// (docs/incore.md): none of them is a product, and nothing of this has run on hardware.
namespace tilewright::target {

struct Matrix {
  std::int64_t rows = 0, columns = 0;
  DType dtype = DType::f32;
};

// Where the elements of a matrix lie in a space.
struct CoreLayout {
  std::string_view name, text;
  // Bytes from the matrix's start; in a space of partitions from its start in each.
  std::int64_t (*offset)(const Matrix& matrix, std::int64_t row, std::int64_t column) = nullptr;
  std::int64_t (*bytes)(const Matrix& matrix) = nullptr;
};

// Row after row.
const CoreLayout& rows_layout();
// Fractals are pieces of 16 rows x 32 bytes. Rows of them, or columns of them, each row-major.
const CoreLayout& fractal_rows_layout();
const CoreLayout& fractal_columns_layout();
// Rows of pieces of 32 bytes x 16 columns, each column-major.
const CoreLayout& fractal_turned_layout();
// Columns of pieces of 16 x 16 elements, whatever their size, each row-major.
const CoreLayout& square_columns_layout();
// A row in each partition.
const CoreLayout& partitions_layout();

// What issues instructions, in order, and waits for none of them.
struct CoreSequencer {
  std::string name;  // "cube"
  int count = 1;     // in a core
  int issue = 1;     // cycles of an instruction
};

// Executes the instructions of its queue, which start in order.
struct CoreUnit {
  std::string name;  // "MTE1", of which there is one for each of its sequencers
  std::string sequencer;
  int depth = 0;  // instructions in the queue, with the one that is executed
  // Each starts when the one before is over. Else one that needs another's result, or its place,
  // waits for a barrier of the unit.
  bool orders_itself = false;
};

// Pieces of so many bytes lie in groups of banks in turn, each of which serves one read a cycle:
// operands of one instruction that begin in the same groups wait for each other.
struct CoreBanks {
  int groups = 0;  // 0: none wait
  std::int64_t bytes = 0;
};

struct CoreSpace {
  std::string name;
  std::string sequencer;     // each has one of its own; empty: the core's
  std::int64_t bytes = 0;    // of each partition
  int partitions = 1;        // more: row r of a matrix lies in partition r
  std::int64_t granule = 0;  // bytes: of which matrices and windows begin at multiples
  const CoreLayout* layout = nullptr;
  CoreBanks banks = {};
};

// One way for values, by one unit. Empty names are global memory.
struct CoreMove {
  std::string from, to;
  std::string unit;
  bool transposes = false;  // it may
  // From one dtype to another; the same is always there.
  std::vector<std::pair<DType, DType>> conversions = {};
  // Of a load: each row is filled up with zeros to a multiple of so many bytes. What else does not
  // exist stays as it was.
  std::int64_t pad_bytes = 0;
  std::int64_t rows = 0, columns = 0;  // of one instruction, at most
  double bytes = 0;                    // a cycle
  int start = 0;                       // cycles
  // Between a memory and a tensor's part of three axes, of one instruction, at most: matrices whose
  // rows lie below each other.
  std::int64_t matrices = 1;
  // Of an instruction: with fewer bytes it takes longer to start than to move them.
  std::int64_t efficient = 0;
};

// Result = left x right, or added to what the result holds.
struct CoreProduct {
  std::string unit;
  std::string left, right, result;   // spaces
  bool left_transposed = false;      // the first operand lies as {k, m}
  std::vector<DType> dtypes;         // of operands; sums are of accumulator_dtype
  std::int64_t m = 0, n = 0, k = 0;  // at most
  // It works on whole pieces of such extents (k: bytes), which cost a cycle each.
  std::int64_t piece_m = 1, piece_n = 1, piece_k_bytes = 1;
  std::int64_t least_n = 1;  // n counts at least so much
  // The last piece of k is summed whole: what lies past k has to be zero.
  bool sums_pad = false;
  int start = 0;
};

// Functions of elements.
struct CoreFunctions {
  std::string unit;
  std::vector<std::string> reads, writes;  // spaces
  bool only_fills = false;
  double bytes = 0;  // of the widest that it reads or writes, a cycle
  int start = 0;
  std::vector<std::string_view> lacks = {};  // functions of elements, by their operations' names
};

// Events of a pair of units: numbers that one raises and the other waits for and takes from. Where
// a core has several of either, one raises all of the others', and a wait is for all of them.
struct CoreEventPair {
  std::string from, to;
  int ids = 0;
  int most = 1;  // that one may hold
};

struct Core {
  std::string global_name;  // "GM"
  int count = 8;            // of a device, at most
  std::vector<CoreSequencer> sequencers;
  std::vector<CoreUnit> units;
  std::vector<CoreSpace> spaces;
  std::vector<CoreMove> moves;
  std::vector<CoreProduct> products;
  std::vector<CoreFunctions> functions;
  std::vector<CoreEventPair> events;

  // Null where there is none.
  const CoreSequencer* sequencer(std::string_view name) const;
  const CoreUnit* unit(std::string_view name) const;
  const CoreSpace* space(std::string_view name) const;
  const CoreEventPair* event(std::string_view from, std::string_view to) const;
  std::string space_name(std::string_view space) const;  // of global memory too

  // "Mat by MTE2, Vec by MTE2": for errors.
  std::string moves_from(std::string_view space) const;
  std::string events_text() const;
  std::string spaces_text() const;
};

// Bytes of so many matrices one after the other, each at a multiple of the granule.
std::int64_t matrix_bytes(const CoreSpace& space, const Matrix& matrix);

}  // namespace tilewright::target
