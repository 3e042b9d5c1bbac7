#include "language/explicit_tracing.h"
#include "target/target.h"
#include "tilewright/blackwell.h"

namespace tilewright {

using ir::Key;
using ir::Op;
using ir::Type;

// Reads and makes columns of tensor memory.
class TensorTracing {
 public:
  static ir::ValueId memory(Tracer& tracer, const TensorColumns& columns, const char* what,
                            SourceLocation where) {
    return tracer.use(columns.memory_, what, where);
  }
  static ir::ValueId address(Tracer& tracer, const TensorColumns& columns, const char* what,
                             SourceLocation where) {
    return tracer.use(columns.address_, what, where);
  }
};

void require_one_warp(const Tracer& tracer, const char* what, SourceLocation where) {
  const Tracer::Role& role = *tracer.role();
  if (role.warps == 1 || tracer.in_condition()) return;
  Diagnostic(where, std::string(what) + ": every one of the " + std::to_string(role.warps) +
                        " warps of the role \"" + role.name + "\" would do it")
      .token(what)
      .fix("give the role warps(1), or let one warp do it: when(warp_index() == 0, ...)")
      .raise();
}

namespace {

constexpr int kAllRows = 128, kHalfRows = 64;  // of products

constexpr std::int64_t kPair = 2;  // CTAs

// PTX knows one .cta_group in a kernel.
void agree_on_pairs(Tracer& tracer, CtaGroup group, const std::string& name, ir::ValueId own,
                    SourceLocation where) {
  const bool pairs = group == CtaGroup::pair;
  for (const ir::Operation& o : tracer.places()) {
    if (o.op != Op::tensor_memory || o.results[0] == own) continue;
    if (tracer.kernel().cta_pairs == pairs) continue;
    Diagnostic(where, "TensorMemory \"" + name + "\": is of " +
                          (pairs ? "pairs of CTAs" : "one CTA") + ", and \"" +
                          o.attributes.text(Key::name) + "\" is not")
        .token('"' + name + '"')
        .note(o.where, "declared here")
        .fix("give all of them the same CtaGroup")
        .raise();
  }
  tracer.kernel().cta_pairs = pairs;
}

}  // namespace

TensorColumns TensorColumns::columns(const IndexOperand& first, int count) const {
  Tracer& tracer = in_role("columns", first.where);
  const auto known = tracer.known(tracer.use(first.index.handle(), "columns", first.where));
  if (count <= 0 || count > count_ || (known && (*known < 0 || *known + count > count_))) {
    Diagnostic(first.where, "columns: " + std::to_string(count) + " from " +
                                (known ? std::to_string(*known) : "an index on") + " of " +
                                std::to_string(count_))
        .token("columns")
        .fix("take columns that lie inside")
        .raise();
  }
  TensorColumns part = *this;
  const Tracer::At at(tracer, first.where);
  part.address_ = (Index(address_) + first.index).handle();
  part.count_ = count;
  return part;
}

TensorColumns TensorColumns::half(const IndexOperand& which) const {
  Tracer& tracer = in_role("half", which.where);
  const auto known = tracer.known(tracer.use(which.index.handle(), "half", which.where));
  if (rows_ != kAllRows || (known && *known != 0 && *known != 1)) {
    Diagnostic(which.where, "half: " + (known ? std::to_string(*known) : "an index") +
                                " of columns of " + std::to_string(rows_) + " rows")
        .token("half")
        .fix("take 0 or 1, of columns that have " + std::to_string(kAllRows) + " rows")
        .raise();
  }
  if (tracer.kernel().cta_pairs) {
    Diagnostic(which.where, "half: the kernel's products are those of pairs of CTAs")
        .token("half")
        .fix("a half is of products of one CTA: take TensorMemory without CtaGroup::pair")
        .raise();
  }
  TensorColumns part = *this;
  const Tracer::At at(tracer, which.where);
  constexpr int kHalfLanes = 16 << 16;  // in an address
  part.address_ = (Index(address_) + which.index * kHalfLanes).handle();
  part.rows_ = kHalfRows;
  return part;
}

Condition is_first_of_pair(SourceLocation where) {
  const Tracer::At at(in_role("is_first_of_pair", where), where);
  return cluster_rank(where) % kPair == 0;
}

TensorMemory::TensorMemory(Kernel& kernel, std::string name, int columns, CtaGroup group,
                           SourceLocation where)
    : columns_(columns) {
  Tracer& tracer = ExplicitTracing::scheduled(kernel, "TensorMemory", where);
  memory_ = tracer.handle(tracer.place(Op::tensor_memory, {},
                                       Type::of(Type::Kind::tensor_memory, i32, {columns}),
                                       {{Key::name, name}}, where));
  const TargetLimits& limits = target::target_of(tracer.kernel()).limits;
  const bool is_power = columns > 0 && (columns & (columns - 1)) == 0;
  if (!is_power || columns < limits.least_tensor_columns || columns > limits.tensor_columns) {
    Diagnostic(where, "TensorMemory \"" + name + "\": " + std::to_string(columns) + " columns")
        .token('"' + name + '"')
        .fix("take a power of two from " + std::to_string(limits.least_tensor_columns) + " to " +
             std::to_string(limits.tensor_columns))
        .raise();
  }
  agree_on_pairs(tracer, group, name, memory_.id(), where);
  constexpr std::int64_t kWords = 4;  // rows of shared memory are 16 bytes
  address_ =
      tracer.handle(tracer.place(Op::shared, {}, Type::of(Type::Kind::shared, i32, {1, 1, kWords}),
                                 {{Key::name, name + "_address"},
                                  {Key::layout, ir::SharedLayout::row_major({1, kWords}, 4)},
                                  {Key::stages, std::int64_t{1}}},
                                 where));
}

void TensorMemory::allocate(SourceLocation where) const {
  Tracer& tracer = in_role("allocate", where);
  require_one_warp(tracer, "allocate", where);
  if (const std::int64_t ctas = tracer.kernel().cluster;
      tracer.kernel().cta_pairs && ctas % kPair != 0) {
    Diagnostic(where,
               "allocate: tensor memory of pairs of CTAs, in clusters of " + std::to_string(ctas))
        .token("allocate")
        .fix("give Kernel::ctas a cluster of 2, or of another even number")
        .raise();
  }
  plain(tracer, Op::tcgen05_alloc,
        {tracer.use(memory_, "allocate", where), tracer.use(address_, "allocate", where),
         tracer.integer(0, where)},
        {}, where);
}

TensorColumns TensorMemory::attach(SourceLocation where) const {
  Tracer& tracer = in_role("attach", where);
  TensorColumns all;
  all.memory_ = memory_;
  all.address_ = tracer.handle(tracer.emit(
      Op::shared_load, {tracer.use(address_, "attach", where), tracer.integer(0, where)},
      Type::scalar(i32), {}, where));
  all.count_ = columns_;
  return all;
}

void TensorMemory::free(SourceLocation where) const {
  Tracer& tracer = in_role("free", where);
  require_one_warp(tracer, "free", where);
  const TensorColumns all = attach(where);
  plain(tracer, Op::tcgen05_dealloc,
        {TensorTracing::memory(tracer, all, "free", where),
         TensorTracing::address(tracer, all, "free", where)},
        {}, where);
}

void relinquish_tensor_memory(SourceLocation where) {
  Tracer& tracer = in_role("relinquish_tensor_memory", where);
  require_one_warp(tracer, "relinquish_tensor_memory", where);
  plain(tracer, Op::tcgen05_relinquish, {}, {}, where);
}

namespace {

struct Factor {
  ir::ValueId id;
  DType dtype;
  std::int64_t rows, columns;
};

Factor factor(Tracer& tracer, const SharedView& view, SourceLocation where) {
  const ir::ValueId id = ExplicitTracing::emit(tracer, view, "mma", where);
  copied_panels(tracer, view, "mma", where);
  const auto [rows, columns] = ExplicitTracing::product_shape(view);
  return {id, tracer.type(id).dtype, rows, columns};
}

[[noreturn]] void refuse(const std::string& problem, const std::string& fix, SourceLocation where) {
  Diagnostic(where, "mma: " + problem).token("mma").fix(fix).raise();
}

std::string text_of(const Factor& f) {
  return std::string(name_of(f.dtype)) + " {" + std::to_string(f.rows) + ", " +
         std::to_string(f.columns) + "}";
}

// What a product of these asks of its result.
void check(Tracer& tracer, const TensorColumns& to, const Factor& a, const Factor& b,
           SourceLocation where) {
  const target::Target& target = target::target_of(tracer.kernel());
  const TargetLimits& limits = target.limits;
  const std::string both = ": a " + text_of(a) + " x b " + text_of(b);
  if (a.columns != b.rows) {
    refuse("inner dimensions differ" + both, "b is {k, n}; .T() transposes a view", where);
  }
  if (a.dtype != b.dtype) refuse("dtypes differ" + both, "load both with one dtype", where);
  if (!target.multiplies(b.dtype)) {
    refuse("no such product" + both, "use " + target.product_dtype_list(), where);
  }
  const std::int64_t ctas = tracer.kernel().cta_pairs ? kPair : 1;
  // Then the second half of the result's columns lies in the lanes behind those of the first.
  const bool halves_columns = ctas == kPair && a.rows == kHalfRows;
  if (a.rows != to.rows() && !halves_columns) {
    refuse("the result has " + std::to_string(to.rows()) + " rows" + both,
           "take that many rows of a" + std::string(ctas == kPair ? ", or 64 in each CTA" : ""),
           where);
  }
  const std::int64_t k = limits.product_depth_bytes / size_of(b.dtype);
  if (b.rows % k != 0) {
    refuse("k is no multiple of " + std::to_string(k) + both, "pad the tile", where);
  }
  const std::int64_t most = limits.product_columns / ctas;
  const std::int64_t wanted = b.columns * ctas / (halves_columns ? 2 : 1);
  if (b.columns % limits.product_column_unit != 0 || b.columns > most) {
    refuse("n is no multiple of " + std::to_string(limits.product_column_unit) + " up to " +
               std::to_string(most) + (ctas > 1 ? ", of each CTA of a pair" : "") + both,
           "split b", where);
  }
  if (to.count() != wanted) {
    refuse("the result takes " + std::to_string(wanted) + " columns, and " +
               std::to_string(to.count()) + " are given",
           "take as many: columns(first, " + std::to_string(wanted) + ")", where);
  }
}

void record(Tracer& tracer, const TensorColumns& to, ir::ValueId a, const Factor& b,
            const Condition& accumulate, const ir::ValueId* a_address, SourceLocation where) {
  require_one_warp(tracer, "mma", where);
  plain(tracer, Op::tcgen05_fence_after, {}, {}, where);
  std::vector<ir::ValueId> operands{TensorTracing::memory(tracer, to, "mma", where),
                                    TensorTracing::address(tracer, to, "mma", where), a, b.id,
                                    tracer.use(accumulate.handle(), "mma", where)};
  ir::Attributes attributes;
  if (a_address) {
    operands.push_back(*a_address);
    if (to.rows() != kAllRows) attributes.set(Key::m, std::int64_t{to.rows()});
  }
  plain(tracer, Op::tcgen05_mma, std::move(operands), std::move(attributes), where);
}

}  // namespace

void mma(const TensorColumns& to, const SharedView& a, const SharedView& b,
         const Condition& accumulate, SourceLocation where) {
  Tracer& tracer = in_role("mma", where);
  const Factor left = factor(tracer, a, where), right = factor(tracer, b, where);
  check(tracer, to, left, right, where);
  record(tracer, to, left.id, right, accumulate, nullptr, where);
}

void mma(const TensorColumns& to, const TensorColumns& a, const SharedView& b,
         const Condition& accumulate, SourceLocation where) {
  Tracer& tracer = in_role("mma", where);
  const Factor right = factor(tracer, b, where);
  const ir::ValueId left = TensorTracing::memory(tracer, a, "mma", where);
  check(tracer, to, {left, right.dtype, a.rows(), a.count() * 4 / size_of(right.dtype)}, right,
        where);
  const ir::ValueId address = TensorTracing::address(tracer, a, "mma", where);
  record(tracer, to, left, right, accumulate, &address, where);
}

Tile load(const TensorColumns& from, SourceLocation where) {
  Tracer& tracer = in_role("load", where);
  plain(tracer, Op::tcgen05_fence_after, {}, {}, where);
  const Tile tile(
      tracer.handle(tracer.emit(Op::tcgen05_load,
                                {TensorTracing::memory(tracer, from, "load", where),
                                 TensorTracing::address(tracer, from, "load", where)},
                                Type::tile(f32, {from.rows(), from.count()}), {}, where)));
  plain(tracer, Op::tcgen05_fence_before, {}, {}, where);
  return tile;
}

void store(const TensorColumns& to, const Tile& tile, SourceLocation where) {
  Tracer& tracer = in_role("store", where);
  const ir::ValueId source = tracer.use(tile.handle(), "store", where);
  const Type type = tracer.type(source);
  const bool fits = type.shape.size() == 2 && type.shape[0] == to.rows() &&
                    type.dtype != DType::boolean &&
                    type.shape[1] * size_of(type.dtype) == std::int64_t{to.count()} * 4;
  if (!fits) {
    Diagnostic(where, "store: the tile is " + type.to_string() + ", the columns are " +
                          std::to_string(to.count()) + " of " + std::to_string(to.rows()) +
                          " rows and 32 bits")
        .token("store")
        .fix("both must agree; .cast(dtype) converts")
        .raise();
  }
  plain(tracer, Op::tcgen05_fence_after, {}, {}, where);
  plain(tracer, Op::tcgen05_store,
        {TensorTracing::memory(tracer, to, "store", where),
         TensorTracing::address(tracer, to, "store", where), source},
        {}, where);
  plain(tracer, Op::tcgen05_fence_before, {}, {}, where);
}

}  // namespace tilewright
