#include "schedules/placement.h"

#include <algorithm>

#include "analysis/definitions.h"
#include "schedules/declared_maps.h"
#include "support/diagnostic.h"

namespace tilewright::schedules {

using ir::Op;
using ir::Operation;
using ir::Type;
using ir::ValueId;

namespace {

constexpr std::int64_t kMostGroups = 4;
constexpr std::int64_t kCopiedRows = 8;
constexpr std::int64_t kBesideResults = 26;  // registers, of a product (ptxas, C7602)

bool is_part(Op op) { return op == Op::transpose || op == Op::slice; }

// As the kernel's author calls it.
std::string_view called(const Operation& o) {
  if (o.op == Op::transpose) {
    return o.attributes.integers(ir::Key::permutation).size() == 2 ? ".T()" : "permute";
  }
  if (o.op == Op::if_then) return "when";
  if (o.op == Op::while_loop) return "repeat_while";
  return ir::info(o.op).name;
}

std::int64_t round_up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

void unfit(const Operation& o, const std::string& why, const std::string& fix,
           const Operation* other) {
  Diagnostic error(o.where, "schedule: " + std::string(called(o)) + ": " + why);
  if (other) error.note(other->where, "that is made");
  error.token(called(o)).fix(fix).raise();
}

void Placement::unfit_for_columns(const Operation& o, const std::string& why,
                                  const std::string& fix, const Operation* other) const {
  const Schedule& stated = kernel.schedule;
  const std::string what = std::string(called(o)) + ": " + why;
  const std::string rows_fix = "state partition = rows, or leave it to the compiler";
  const auto raise = [&](const char* name, const auto& field) {
    refused(name, field, what).note(o.where, "the operation is").fix(rows_fix).raise();
  };
  if (wide <= limits.product_columns && stated.partition.is_set()) {
    raise("partition", stated.partition);
  }
  if (wide <= limits.product_columns) raise("warpgroups", stated.warpgroups);
  unfit(o, why, fix, other);
}

bool is_vector(const Type& type) {
  return type.elements() == *std::max_element(type.shape.begin(), type.shape.end());
}

bool Placement::copies_rows(const ir::Parameter& tensor) const {
  const Dim& last = tensor.shape.back();
  return !last.is_constant() || last.constant() * size_of(tensor.dtype) % limits.copy_bytes == 0;
}

std::int64_t part_of_stage(const Operation& load) {
  return load.attributes.has(ir::Key::joined) ? load.attributes.integers(ir::Key::joined)[0] : 0;
}

Placement::Placement(const ir::Kernel& kernel)
    : kernel(kernel),
      limits(target::target_of(kernel).limits),
      memory(kernel),
      extents(kernel),
      definitions(analysis::definitions(kernel)),
      declares(declares_maps(kernel)),
      read_by_products(kernel.types.size(), false),
      read_elsewhere(kernel.types.size(), false),
      exchanges(kernel.types.size(), false),
      in_loop(kernel.types.size(), false),
      columns(kernel.types.size(), false),
      turned_(kernel.types.size(), false),
      spread_(kernel.types.size(), false) {
  find_stages(kernel.body);
  ir::for_each(kernel.body, [&](const Operation& o) {
    if (o.op == Op::dot) visit_rows(o);
    agrees |= o.op == Op::any && !o.attributes.has(ir::Key::partial);
  });
  if (rows == 0) {
    Diagnostic(kernel.where, "schedule: \"" + kernel.name + "\" has no product")
        .fix("take the target cpu, or write it at the explicit level")
        .raise();
  }
  ir::for_each(kernel.body, [&](const Operation& o) {
    if (o.op == Op::dot) visit_dot(o);
  });
  divide();
  find_columns();
  find_spread();
  ir::for_each(kernel.body, [&](const Operation& o) {
    if (o.op == Op::dot) check_registers(o);
  });
  ir::for_each(kernel.body, [&](const Operation& o) {
    if (o.op == Op::dot) {
      visit_left(o);
      visit_right(o);
    }
  });
  ir::for_each(kernel.body, [&](const Operation& o) {
    if (o.op != Op::for_loop) return;
    ir::for_each(o.blocks[0], [&](const Operation& inner) {
      for (const ValueId result : inner.results) in_loop[result] = true;
    });
  });
  ir::for_each(kernel.body, [&](const Operation& o) {
    if (o.op == Op::discard) {
      read_by_products[o.operands[0]] = kernel.type(o.operands[0]).shape[0] != 1;
    } else {
      visit_reader(o);
    }
  });
}

void Placement::find_stages(const ir::Block& block) {
  std::vector<const Operation*> stage;
  for (const Operation& o : block.body) {
    for (const ir::Block& inner : o.blocks) find_stages(inner);
    if (o.op != Op::load) continue;
    if (part_of_stage(o) == 0) stage.clear();
    stage.push_back(&o);
    for (const Operation* part : stage) stages_[part->results[0]] = stage;
  }
}

bool Placement::depends(ValueId value, ValueId argument) const {
  if (value == argument) return true;
  const Operation* o = definitions[value];
  if (!o || !ir::info(o->op).elementwise()) return false;
  return std::any_of(o->operands.begin(), o->operands.end(),
                     [&](ValueId operand) { return depends(operand, argument); });
}

Source Placement::source_of(ValueId value) const {
  const Operation* o = definitions[value];
  const bool matrix = kernel.type(value).shape.size() == 2;  // a vector is no product's operand
  if (o && is_part(o->op) && matrix) {
    Source source = source_of(o->operands[0]);
    if (o->op == Op::transpose) {
      source.transposed = !source.transposed;
      return source;
    }
    const std::vector<std::int64_t>& offsets = o->attributes.integers(ir::Key::offsets);
    const Type& type = kernel.type(value);
    const std::size_t first = source.transposed ? 1 : 0;
    source.row += offsets[first];
    source.column += offsets[1 - first];
    source.rows = type.shape[first];
    source.columns = type.shape[1 - first];
    // A part of a computed tile is a tile of its own.
    if (source.load) return source;
  }
  const Type& type = kernel.type(value);
  Source source;
  source.load = o && o->op == Op::load ? o : nullptr;
  source.value = value;
  source.rows = type.shape[0];
  source.columns = matrix ? type.shape[1] : 1;
  return source;
}

bool Placement::row_in_ring(const Operation& load) const {
  const Type& type = kernel.type(load.results[0]);
  const ir::Parameter& tensor = *kernel.parameter_of(load.operands[0]);
  const auto whole_copies = [&](std::int64_t elements) {
    return elements * size_of(type.dtype) % limits.copy_bytes == 0;
  };
  return type.shape.size() == 2 && type.shape[0] == 1 && in_loop[load.results[0]] &&
         tensor.kind == ir::Parameter::Kind::in && type.shape[1] <= limits.copy_extent &&
         whole_copies(type.shape[1]) && whole_copies(tensor.shape.back().range().multiple) &&
         extents.clips_boxes(load);
}

bool Placement::in_ring(const Operation& load) const {
  const Type& type = kernel.type(load.results[0]);
  if (read_by_products[load.results[0]] || row_in_ring(load)) return true;
  return !memory.after_store(load) && in_loop[load.results[0]] && type.shape.size() == 2 &&
         type.shape[0] == rows && type.shape[1] % 16 == 0 &&
         copies_rows(*kernel.parameter_of(load.operands[0])) && extents.clips_boxes(load);
}

void Placement::visit_rows(const Operation& o) {
  const Type& result = kernel.type(o.results[0]);
  const std::int64_t count = result.shape[0];
  if (count % kGroupRows != 0 || count > kMostGroups * kGroupRows) {
    unfit(o, std::to_string(count) + " rows",
          "use tiles of 64, 128, 192 or 256 rows; a block may reach beyond its dimension");
  }
  row_counts_.emplace(count, &o);
  rows = std::max(rows, count);
}

void Placement::visit_dot(const Operation& o) {
  const Type &a = kernel.type(o.operands[0]), &result = kernel.type(o.results[0]);
  if (size_of(a.dtype) > 2) {
    unfit(o, "operands are " + std::string(name_of(a.dtype)), "convert them to bf16 or f16");
  }
  check_multiple(o, "k", a.shape[1], limits.product_depth_bytes / size_of(a.dtype));
  check_multiple(o, "n", result.shape[1], limits.product_column_unit);
  widest_ = std::max(widest_, result.shape[1]);
  if (result.shape[1] <= limits.product_columns) return;
  if (rows != kGroupRows || result.shape[1] > 2 * limits.product_columns ||
      (wide != 0 && wide != result.shape[1])) {
    unfit(
        o,
        std::to_string(result.shape[0]) + " x " + std::to_string(result.shape[1]) + " results" +
            (rows == result.shape[0] ? "" : ", beside others of " + std::to_string(rows) + " rows"),
        "use at most 256 columns, or 64 rows and at most 512 columns, of one width");
  }
  wide = result.shape[1];
}

// A warpgroup has 64 rows of a product's results: two columns of them a register. Of 128 rows a
// thread has one.
void Placement::check_registers(const Operation& o) const {
  const Type& result = kernel.type(o.results[0]);
  const std::int64_t columns = result.shape[1] / column_parts(o.results[0]);
  const std::int64_t threads = (groups + 1) * limits.group_threads();
  if (threads > limits.threads) {
    refused("warpgroups", kernel.schedule.warpgroups,
            "with the warpgroup that loads a CTA has " + std::to_string(threads) + " threads of " +
                std::to_string(limits.threads))
        .fix("state at most " + std::to_string(limits.threads / limits.group_threads() - 1))
        .raise();
  }
  const std::int64_t count = launch_registers(limits, ctas * threads);
  const std::int64_t of_register = 2 * kGroupRows / group_rows;
  const std::int64_t most = of_register * (count - kBesideResults) / limits.product_column_unit *
                            limits.product_column_unit;
  if (columns <= most) return;
  const std::string why = std::to_string(result.shape[0]) + " x " +
                          std::to_string(result.shape[1]) + " results take " +
                          std::to_string(columns / of_register) + " registers of a thread beside " +
                          std::to_string(kBesideResults) + " others, and with ";
  const std::string has = std::to_string(count);
  if (ctas > 1) {
    refused("ctas", kernel.schedule.ctas,
            why + "so many CTAs of " + std::to_string(threads) + " threads there are " + has)
        .note(o.where, "the product is")
        .fix("state fewer, or take narrower results")
        .raise();
  }
  if (kernel.schedule.warpgroups.is_set() && by_columns()) {
    refused("warpgroups", kernel.schedule.warpgroups,
            why + std::to_string(threads) + " threads there are " + has)
        .note(o.where, "the product is")
        .fix("take narrower results")
        .raise();
  }
  unfit(o, why + "so many rows there are " + has,
        "use at most " + std::to_string(most) + " columns, or fewer rows");
}

void Placement::check_multiple(const Operation& o, const char* axis, std::int64_t size,
                               std::int64_t unit) const {
  if (size % unit == 0) return;
  const std::string other = std::to_string(round_up(size, unit));
  unfit(o,
        std::string(axis) + " is " + std::to_string(size) + " in a " +
            kernel.type(o.operands[0]).to_string() + " x b " +
            kernel.type(o.operands[1]).to_string() + ", and products take multiples of " +
            std::to_string(unit),
        "load blocks of " + other + " along it: Dim(" + std::to_string(size) + ").block(0, " +
            other + "); what does not exist is left out");
}

void Placement::read_by_product(const Operation& o, const Source& source, bool along_k) {
  const DType dtype = kernel.type(source.value).dtype;
  if (size_of(dtype) == 1 && !along_k) {
    unfit(o, "an operand of " + std::string(name_of(dtype)) + " does not lie along k in memory",
          "let k be the last axis of its tensor: dot(A(m, k), B(n, k).T())");
  }
  if (memory.after_store(*source.load)) {
    unfit(*source.load,
          "products read it, which are loaded ahead, and the kernel stores to its tensor before",
          "keep what was stored in a Var, or store to another tensor");
  }
  read_by_products[source.value] = true;
}

// Warpgroups read whole panels of the columns.
void Placement::check_panels(const Operation& o, const Source& b) const {
  const Type& type = kernel.type(b.value);
  const int bytes = size_of(type.dtype);
  const std::int64_t panel = panel_columns(type), own = wide / groups;
  if (own % panel == 0) return;
  const std::int64_t whole = ir::widest_swizzle(1 << 10) / bytes * groups;
  unfit_for_columns(o,
                    std::to_string(wide) + " columns over " + std::to_string(groups) +
                        " warpgroups are " + std::to_string(own) + " for each, and " +
                        type.to_string() + " lies in panels of " + std::to_string(panel) +
                        " columns",
                    "use a multiple of " + std::to_string(whole) + " columns, or at most " +
                        std::to_string(limits.product_columns),
                    b.load);
}

void Placement::visit_left(const Operation& o) {
  const Source a = source_of(o.operands[0]);
  if (a.load) {
    read_by_product(o, a, !a.transposed);
  } else if (by_columns() && (a.transposed || a.columns == wide)) {
    unfit_for_columns(o, "its first operand is spread over warpgroups by columns",
                      "use at most 256 columns for what products read");
  } else if (a.transposed) {
    const Type& type = kernel.type(a.value);
    if (size_of(type.dtype) != 2) {
      unfit(o,
            "its first operand is a computed tile, transposed: " + type.to_string() + " with .T()",
            "convert it to bf16 or f16 before .T()", definitions[a.value]);
    }
    exchange(a.value, o);
  }
}

void Placement::visit_right(const Operation& o) {
  const Source b = source_of(o.operands[1]);
  if (b.load) {
    if (by_columns() && b.columns == wide && !b.transposed) check_panels(o, b);
    read_by_product(o, b, b.transposed);
    return;
  }
  const Type& type = kernel.type(b.value);
  const std::string computed = "its second operand is a computed tile, " + type.to_string();
  if (by_columns()) {
    unfit_for_columns(o, computed,
                      "use at most 256 columns, so that warpgroups have rows of their own");
  }
  if (size_of(type.dtype) != 2) unfit(o, computed, "convert it to bf16 or f16");
  exchange(b.value, o);
}

// A column, or a row, of numbers takes the first row of its place.
void Placement::exchange(ValueId value, const Operation& o) {
  const Type& type = kernel.type(value);
  const bool vector = is_vector(type);
  const std::int64_t row_bytes = (vector ? type.elements() : type.shape[1]) * size_of(type.dtype);
  if (type.dtype == DType::boolean || row_bytes % limits.copy_bytes != 0 ||
      (!vector && (type.shape.size() != 2 || type.shape[0] % kCopiedRows != 0))) {
    unfit(o,
          "warpgroups pass " + type.to_string() +
              " to each other, which goes by rows of whole 16 bytes, 8 rows together",
          "give it such a shape and dtype: booleans as 0 and 1, more columns for narrow dtypes",
          definitions[value]);
  }
  exchanges[value] = true;
}

bool Placement::crosses(const Operation& o) const {
  if (o.op != Op::transpose && o.op != Op::slice && o.op != Op::reshape) return false;
  const ValueId from = o.operands[0], to = o.results[0];
  if (o.op == Op::transpose) {
    const bool rows_stay = o.attributes.integers(ir::Key::permutation)[0] == 0;
    return !rows_stay && (divided(from) || divided(to));
  }
  if (o.op == Op::reshape) return divided(from) != divided(to);
  return divided(from) && kernel.type(from).shape[0] != kernel.type(to).shape[0];
}

void Placement::visit_moved(const Operation& o) {
  if (!crosses(o)) return;
  const Type &was = kernel.type(o.operands[0]), &is = kernel.type(o.results[0]);
  const std::int64_t first = o.op == Op::slice ? o.attributes.integers(ir::Key::offsets)[0] : 0;
  if (!is_vector(was) && (o.op == Op::reshape || was.shape.size() > 2)) {
    unfit(o,
          was.to_string() + " to " + is.to_string() +
              ": its rows are spread over warpgroups, and change their places",
          "keep the first axis as it is, or take tiles of 64 rows");
  }
  if (o.op == Op::slice &&
      (is_vector(was) || first % kCopiedRows != 0 || is.shape[0] % kCopiedRows != 0)) {
    unfit(o,
          std::to_string(is.shape[0]) + " rows from " + std::to_string(first) + " of " +
              was.to_string() + ", whose rows are spread over warpgroups",
          "take multiples of 8 rows, from a multiple of 8");
  }
  exchange(o.operands[0], o);
}

void Placement::visit_reader(const Operation& o) {
  for (std::size_t i = 0; i < o.operands.size(); ++i) {
    const ValueId operand = o.operands[i];
    const Operation* from = definitions[operand];
    const bool by_product = o.op == Op::dot && i < 2;
    if (by_product || !kernel.type(operand).is_tile()) continue;
    if (o.op == Op::transpose || (o.op == Op::slice && for_products(o))) continue;
    if (!from || from->op != Op::transpose) {
      if (from && from->op == Op::slice && for_products(*from)) {
        unfit(o, "reads a part of a tile that was loaded for products", "load the part");
      }
      read(operand, o);
      if (o.op == Op::slice || o.op == Op::reshape) visit_moved(o);
      continue;
    }
    read(from->operands[0], *from);
    const std::vector<std::int64_t>& shape = kernel.type(operand).shape;
    // A store takes its elements from wherever they lie, but for rows of more than one axis that
    // warpgroups have parts of.
    const bool simple = shape.size() == 2 || !divided(from->operands[0]);
    if (simple && (o.op == Op::store || o.op == Op::red_tile)) continue;
    if (by_columns() && std::count(shape.begin(), shape.end(), wide) != 0) {
      unfit_for_columns(*from, "of a tile that is spread over warpgroups by columns",
                        "use at most 256 columns");
    }
    turned_[operand] = true;
    visit_moved(*from);
    if (o.op == Op::slice || o.op == Op::reshape) visit_moved(o);
  }
}

bool Placement::turned_in_registers(ValueId value) const {
  const Operation* o = definitions[value];
  return o && o->op == Op::transpose && (!turned_[value] || !crosses(*o));
}

bool Placement::for_products(const Operation& slice) const {
  const Source source = source_of(slice.results[0]);
  return source.load && read_by_products[source.value];
}

void Placement::read(ValueId value, const Operation& o) {
  const Operation* from = definitions[value];
  if (!from || from->op != Op::load) return;
  read_elsewhere[value] = true;
  if (in_ring(*from) && !row_in_ring(*from) && kernel.type(value).shape[0] != rows) {
    unfit(o,
          "reads a loaded tile of " + std::to_string(kernel.type(value).shape[0]) +
              " rows that lies in shared memory for products of " + std::to_string(rows),
          "load it once more for this");
  }
}

bool Placement::nearby(ValueId condition) const {
  const Operation* o = definitions[condition];
  if (!o) return false;
  if (o->op == Op::any) return o->attributes.has(ir::Key::partial);
  return ir::info(o->op).elementwise() &&
         std::any_of(o->operands.begin(), o->operands.end(),
                     [&](ValueId operand) { return nearby(operand); });
}

bool Placement::fills_rings(const ir::Block& block) const {
  bool any = false;
  ir::for_each(block, [&](const Operation& o) { any |= o.op == Op::load && in_ring(o); });
  return any;
}

}  // namespace tilewright::schedules
