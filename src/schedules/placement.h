#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "analysis/extents.h"
#include "ir/ir.h"
#include "schedules/chosen.h"
#include "schedules/memory_order.h"
#include "target/target.h"
#include "target/warpgroups.h"

namespace tilewright::schedules {

using target::kGroupRows;

// The operation is in the way of an automatic schedule; `other` made what the reason names.
[[noreturn]] void unfit(const ir::Operation& operation, const std::string& why,
                        const std::string& fix, const ir::Operation* other = nullptr);

// A row or a column.
bool is_vector(const ir::Type& type);

// Which part of its stage a load fills, where several fill one, each as many rows behind the other;
// else 0.
std::int64_t part_of_stage(const ir::Operation& load);

// A tile as it was loaded or computed, and which part of it a product reads, perhaps transposed.
struct Source {
  const ir::Operation* load = nullptr;  // null for a computed one
  ir::ValueId value = ir::kNoValue;
  bool transposed = false;
  std::int64_t row = 0, rows = 0, column = 0, columns = 0;
};

// Where the tiles of a kernel lie, and how they are spread over warpgroups. Raises for a kernel
// that does not fit.
//
// Each warpgroup has 64 rows of every tile that has as many rows as the products' results, or 128
// of results in tensor memory where the kernel's schedule says so. Where there are no more than
// these and some results have more columns than one warpgroup holds, or the schedule says so, all
// warpgroups have the same rows, and the widest tiles are spread by columns. So they are where 128
// rows are in tensor memory and nothing but sums and elementwise operations uses them. Where
// products have different rows, those with the most are spread so that no two warpgroups have the
// same. Of the others several warpgroups have the same rows, and a part of the columns each where
// nothing but sums, stores and elementwise operations reads them, else all of them.
struct Placement {
  explicit Placement(const ir::Kernel& kernel);
  Source source_of(ir::ValueId value) const;
  // The loads that fill one stage together, in the order of their rows: of most loads themselves.
  const std::vector<const ir::Operation*>& stage_of(ir::ValueId load) const {
    return stages_.at(load);
  }
  // The first of them, which stands for the stage.
  ir::ValueId leader_of(ir::ValueId load) const { return stage_of(load)[0]->results[0]; }
  // Whether TMA may copy rows of the tensor. It takes strides of whole 16 bytes: those that a
  // launch gives are checked then, but a dense tensor whose rows are of another constant size has
  // none.
  bool copies_rows(const ir::Parameter& tensor) const;
  // Whether the scalar is computed from the argument.
  bool depends(ir::ValueId value, ir::ValueId argument) const;
  bool by_columns() const { return wide > 0; }
  // Whether products leave their results in tensor memory, and are over behind a commit.
  bool in_tensor_memory() const { return limits.tensor_columns > 0; }
  // The operation does not go with tiles that are spread by columns.
  [[noreturn]] void unfit_for_columns(const ir::Operation& operation, const std::string& why,
                                      const std::string& fix,
                                      const ir::Operation* other = nullptr) const;
  // The operation does not go with rows that several warpgroups have.
  [[noreturn]] void unfit_for_rows(const ir::Operation& operation) const;
  // Which parts warpgroups have, in words.
  std::string partition_text() const;
  // Whether the condition may differ from warp to warp.
  bool nearby(ir::ValueId condition) const;
  // Whether anything is loaded to shared memory inside.
  bool fills_rings(const ir::Block& block) const;
  // Whether a loaded tile passes through shared memory: products read it, or it comes in a loop and
  // each warpgroup reads its rows. Others go straight to registers, and so does what may have been
  // stored before: copies do not wait for stores.
  bool in_ring(const ir::Operation& load) const;
  // A row that a loop loads for all warpgroups, where it is sure that TMA may copy it: so it takes
  // no registers before it is read.
  bool row_in_ring(const ir::Operation& load) const;
  bool in_products(ir::ValueId load) const { return read_by_products.at(load); }
  // Whether other operations than products read it.
  bool in_registers(ir::ValueId load) const { return read_elsewhere.at(load); }
  // Whether the tile has as many rows as a product. A tile of one axis is a row or a column, as it
  // is reshaped.
  bool has_rows(ir::ValueId value) const;
  // In how many parts warpgroups have the tile: of its rows, and of its columns.
  int row_parts(ir::ValueId value) const;
  int column_parts(ir::ValueId value) const;
  // How many warpgroups have all of it between them. The others have the same again.
  int owners(ir::ValueId value) const { return row_parts(value) * column_parts(value); }
  // Whether warpgroups have parts of the tile: its rows.
  bool divided(ir::ValueId value) const { return row_parts(value) > 1; }
  // Whether a computed tile goes through shared memory, since warpgroups, or products, read more of
  // it than the part that each has computed.
  bool exchanged(ir::ValueId value) const { return exchanges.at(value); }
  // Whether the result of a transpose, a slice or a reshape has to be read from there.
  bool crosses(const ir::Operation& operation) const;
  // Whether a transposed tile is read by other than products and stores.
  bool turned(ir::ValueId value) const { return turned_.at(value); }
  // Whether any is: what is computed with it may then lie in warps by columns instead of by rows.
  bool turns() const { return std::find(turned_.begin(), turned_.end(), true) != turned_.end(); }
  // Whether a transposed tile is one that each warpgroup turns for itself.
  bool turned_in_registers(ir::ValueId value) const;
  // Whether the slice is of a tile that was loaded for products.
  bool for_products(const ir::Operation& slice) const;

  const ir::Kernel& kernel;
  const TargetLimits& limits;
  const MemoryOrder memory;
  const analysis::Extents extents;
  std::vector<const ir::Operation*> definitions;
  const bool declares;          // whether the author says of tiles how they lie
  bool agrees = false;          // whether warps have to agree on a condition that tiles decide
  std::int64_t rows = 0;        // of the results of products, the most
  std::int64_t wide = 0;        // columns of the tiles that are spread by columns; 0 where none are
  int group_rows = kGroupRows;  // of a warpgroup
  int groups = 1;               // warpgroups
  int ctas = 1;                 // of a multiprocessor

 private:
  void visit_rows(const ir::Operation& dot);
  void visit_dot(const ir::Operation& dot);
  void divide();
  void divide_columns();
  bool takes_whole_lanes() const;
  bool takes_whole_columns() const;
  void check_registers(const ir::Operation& dot) const;
  void check_multiple(const ir::Operation& dot, const char* axis, std::int64_t size,
                      std::int64_t unit) const;
  void read_by_product(const ir::Operation& dot, const Source& source, bool along_k);
  void check_panels(const ir::Operation& dot, const Source& right) const;
  void visit_left(const ir::Operation& dot);
  void visit_right(const ir::Operation& dot);
  void visit_reader(const ir::Operation& operation);
  void visit_moved(const ir::Operation& operation);
  void read(ir::ValueId value, const ir::Operation& by);
  void exchange(ir::ValueId value, const ir::Operation& by);
  void find_columns();
  void find_spread();
  bool takes_parts(const ir::Operation& dot) const;
  std::int64_t panel_columns(const ir::Type& type) const;

  void find_stages(const ir::Block& block);

  std::map<ir::ValueId, std::vector<const ir::Operation*>> stages_;
  std::int64_t widest_ = 0;                                  // columns of the products' results
  std::map<std::int64_t, const ir::Operation*> row_counts_;  // of products, and the first of each
  std::vector<bool> read_by_products, read_elsewhere, exchanges, in_loop, columns, turned_,
      spread_;  // of every value
};

}  // namespace tilewright::schedules
