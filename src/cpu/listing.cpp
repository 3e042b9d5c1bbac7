#include "cpu/listing.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "cpu/layout.h"

namespace tilewright::cpu {
namespace {

// Starting an operation takes about as long as so many elements of one.
constexpr std::int64_t kTiny = 256;

std::int64_t elements_of(const Tile& tile) {
  std::int64_t count = 1;
  for (std::size_t axis = 0; axis < tile.rank; ++axis) {
    if (tile.strides[axis] != 0) count *= tile.shape[axis];
  }
  return count;
}

double bytes_of(const Tile& tile) {
  return static_cast<double>(elements_of(tile)) * bytes_of(tile.element);
}

std::string text_of(const Tile& tile) {
  const std::vector<std::int64_t> shape(
      tile.shape.begin(), tile.shape.begin() + static_cast<std::ptrdiff_t>(tile.rank));
  return std::string(name_of(static_cast<DType>(tile.element))) + " " + ir::shape_text(shape);
}

const char* name_of(Reduction function) {
  switch (function) {
    case Reduction::add:
      return "sum";
    case Reduction::min:
      return "minimum";
    case Reduction::max:
    case Reduction::count:
      break;
  }
  return "maximum";
}

class Listing {
 public:
  Listing(const Program& program, const Profile& profile) : program_(program), profile_(profile) {}

  void walk(const Block& block) {
    for (const Operation& operation : block) {
      const auto found = profile_.find(&operation);
      cost_ = found == profile_.end() ? Cost{} : found->second;
      std::visit([this](const auto& each) { list(each); }, operation);
    }
  }

  std::vector<ListedOperation> take() { return std::move(listed_); }

 private:
  const Tile& tile(TileId id) const { return program_.tiles[id]; }

  ListedOperation& add(std::string text, SourceLocation where, double bytes, double flops = 0,
                       Slow slow = Slow::no) {
    return listed_.emplace_back(ListedOperation{depth_, std::move(text), where, flops * part_,
                                                bytes * part_, slow, false, nullptr, false, cost_});
  }
  // Of one that goes over the elements of a tile.
  static Slow slow_of(const Tile& tile) {
    if (elements_of(tile) < kTiny) return Slow::tiny;
    return tile.element == Element::i64 ? Slow::wide_integers : Slow::no;
  }
  void move(const char* name, TileId from, TileId to, SourceLocation where) {
    add(std::string(name) + " " + text_of(tile(to)), where,
        bytes_of(tile(from)) + bytes_of(tile(to)), 0, slow_of(tile(to)));
  }

  // What products read with any strides, and functions of rows where these are whole vectors.
  void list(const Load& load) {
    const bool stays = load.in_place || load.in_place_by_rows;
    const bool is_copied = load.in_place && load.is_read_often;
    add("load " + text_of(tile(load.tile)) + (stays ? ", read where it lies" : "") +
            (is_copied ? ", or copied where rows are multiples of 1 KB apart" : ""),
        load.box.where, stays ? 0 : 2 * bytes_of(tile(load.tile)), 0,
        stays ? Slow::no : slow_of(tile(load.tile)));
  }
  void list(const Store& store) {
    add("store " + text_of(tile(store.tile)), store.box.where, 2 * bytes_of(tile(store.tile)), 0,
        slow_of(tile(store.tile)));
  }
  void list(const AwaitTurn&) { add("wait for the blocks before", {}, 0, 0, Slow::in_turn); }
  void list(const Apply& apply) {
    const Tile& result = tile(apply.result);
    double bytes = apply.is_kept ? bytes_of(result) : 0;
    const Tile* widest = &result;
    for (std::size_t i = 0; i < apply.operands.size(); ++i) {
      if (!apply.operands[i].is_tile()) continue;
      const Tile& source = tile(apply.operands[i].tile);
      if (i != apply.takes) bytes += bytes_of(source);
      if (cpu::bytes_of(source.element) > cpu::bytes_of(widest->element)) widest = &source;
    }
    const std::string_view name = apply.name;
    const bool computes = std::holds_alternative<Elementwise>(apply.run);
    const bool of_floats = is_float(static_cast<DType>(widest->element));
    const double flops = computes && of_floats
                             ? static_cast<double>(elements_of(result)) * (name == "fma" ? 2 : 1)
                             : 0;
    Slow slow = slow_of(result);
    if (slow != Slow::tiny && !of_floats && widest->element != Element::boolean) {
      const bool divides = name == "div" || name == "mod" || name == "ceildiv";
      if (widest->element == Element::i64) slow = Slow::wide_integers;
      if (divides) slow = Slow::integer_division;
    }
    const bool is_step = apply.takes != Apply::kNone;
    add(std::string(name) + " " + text_of(result) + (is_step ? ", with the one before" : "") +
            (apply.is_repeated ? ", computed again" : ""),
        apply.where, bytes, flops, slow);
  }
  void list(const Splat& splat) { fill("fill", splat.result, splat.where); }
  void list(const Count& count) { fill("indices", count.result, count.where); }
  void fill(const char* name, TileId result, SourceLocation where) {
    add(std::string(name) + " " + text_of(tile(result)), where, bytes_of(tile(result)));
  }
  void list(const Fold& fold) {
    const Tile& source = tile(fold.source);
    const bool of_floats = is_float(static_cast<DType>(source.element));
    const bool multiplies = fold.factor != kNone;
    const double flops = of_floats ? static_cast<double>(elements_of(source)) : 0;
    add(std::string(name_of(fold.function)) + (multiplies ? " of products " : " ") +
            text_of(source) + (fold.in_parts ? ", in parts" : "") +
            (fold.takes_from_register ? ", with the one before" : ""),
        fold.where,
        bytes_of(source) * (fold.takes_from_register ? 0
                            : multiplies             ? 2
                                                     : 1) +
            bytes_of(tile(fold.result)),
        flops * (multiplies ? 2 : 1), slow_of(source))
        .sums_in_parts = fold.in_parts;
  }
  void list(const Any& any) {
    add("any " + text_of(tile(any.source)), any.where, bytes_of(tile(any.source)), 0,
        slow_of(tile(any.source)));
  }
  void list(const Move& copy) {
    if (copy.is_done) return;
    if (!copy.is_factor) return move("move", copy.source, copy.result, copy.where);
    add("part " + text_of(tile(copy.result)) + ", read where it lies", copy.where, 0);
  }
  void list(const Reshape& reshape) {
    if (!reshape.is_done) move("reshape", reshape.source, reshape.result, reshape.where);
  }
  void list(const Multiply& product) {
    const Tile &a = tile(product.a), &b = tile(product.b), &c = tile(product.result);
    const std::int64_t terms = a.shape[product.a_transposed ? 0 : 1];
    const double flops = 2.0 * static_cast<double>(elements_of(c)) * static_cast<double>(terms);
    const auto factor = [](const Tile& tile, bool transposed) {
      return text_of(tile) + (transposed ? "^T" : "");
    };
    const bool apart = product.rounding == Rounding::apart && product.element == Element::f32;
    const double part = std::exchange(part_, 1);  // it is executed once for all strips
    add("dot " + factor(a, product.a_transposed) + " x " + factor(b, product.b_transposed) +
            (product.rounding == Rounding::pairs ? ", in pairs" : "") +
            (product.needed != kNone ? ", as far as the mask asks" : "") +
            (product.is_for_next_round ? ", but in the last round" : ""),
        product.where, bytes_of(a) + bytes_of(b) + bytes_of(c) * (product.accumulates ? 2 : 1),
        flops, apart ? Slow::rounded_apart : Slow::no)
        .product = &product;
    part_ = part;
  }

  // A loop that only multiplies adds up its iterations behind them: what it takes is its product's.
  void list(const For& loop) {
    ListedOperation& own = add("for", loop.where, 0);
    own.is_block = true;
    const Cost of_loop = own.cost;
    const std::size_t first = listed_.size();
    nest(loop.body);
    if (!loop.joins) return;
    double others = 0;
    ListedOperation* product = nullptr;
    for (std::size_t i = first; i < listed_.size(); ++i) {
      if (listed_[i].product) {
        product = &listed_[i];
      } else {
        others += listed_[i].cost.seconds();
      }
    }
    if (product == nullptr || of_loop.count == 0) return;
    const double once = of_loop.shortest - others / static_cast<double>(of_loop.count);
    product->cost = {of_loop.count, std::max(0.0, once)};
  }
  // Each execution is of one strip's rows.
  void list(const Strips& strips) {
    add("in strips of " + std::to_string(strips.rows) + " rows", {}, 0).is_block = true;
    part_ = static_cast<double>(strips.rows) / static_cast<double>(strips.all);
    nest(strips.body);
    part_ = 1;
  }
  void list(const While& loop) {
    add("while", loop.where, 0).is_block = true;
    nest(loop.body);
  }
  void list(const If& choice) {
    add("if", choice.where, 0).is_block = true;
    nest(choice.then);
    if (choice.otherwise.empty()) return;
    cost_ = {};
    add("else", choice.where, 0).is_block = true;
    nest(choice.otherwise);
  }
  void nest(const Block& block) {
    ++depth_;
    walk(block);
    --depth_;
  }
  void list(const auto&) {}  // of scalars

  const Program& program_;
  const Profile& profile_;
  Cost cost_;
  std::size_t depth_ = 0;
  double part_ = 1;  // of the rows, that an execution goes over
  std::vector<ListedOperation> listed_;
};

}  // namespace

const char* reason_of(Slow slow) {
  switch (slow) {
    case Slow::no:
      break;
    case Slow::tiny:
      return "operations on fewer than 256 elements, which take longer to start than to do: give a "
             "block more rows, or larger tiles";
    case Slow::wide_integers:
      return "arithmetic in i64, of which a vector holds half as many as of i32: count in i32 "
             "where "
             "the numbers fit";
    case Slow::integer_division:
      return "division of integers, which has no vector instruction: divide scalars, or multiply";
    case Slow::rounded_apart:
      return "products of f32 whose multiplications and additions round apart, at half the rate: "
             "allow contract_fma";
    case Slow::in_turn:
      return "blocks add to memory in their order, so each waits for those before: add once, at "
             "the "
             "end of a block";
  }
  return "";
}

std::vector<ListedOperation> list_operations(const Program& program, const Profile& profile) {
  Listing listing(program, profile);
  listing.walk(program.body);
  return listing.take();
}

}  // namespace tilewright::cpu
