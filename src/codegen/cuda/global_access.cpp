#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "analysis/access_vectors.h"
#include "codegen/cuda/expressions.h"
#include "codegen/cuda/operations.h"

namespace tilewright::codegen {
namespace {

using ir::Key;
using ir::Operation;
using ir::ValueId;

// Of so many a thread asks each whether it exists; of more, first whether all of them do.
constexpr std::int64_t kFewVectors = 8;
// So many are loaded in front of the branch for rows that are not aligned. Their registers live
// through it: more would spill.
constexpr std::int64_t kVectorsInFront = 4;

// One load_registers, store_registers or red_registers: c0, c1, ... are the tensor's coordinates of
// this thread's register 0, e0, ... the limits, and register i is at c + d.
class GlobalAccess {
 public:
  GlobalAccess(Emitter& emitter, const Operation& operation)
      : emitter_(emitter),
        operation_(operation),
        loads_(!ir::info(operation.op).writes(ir::Memory::global)),
        adds_(!loads_ && ir::info(operation.op).reads(ir::Memory::global)),
        returns_(!loads_ && ir::info(operation.op).writes(ir::Memory::registers)),
        ordered_(operation.attributes.has(Key::semantics)),
        tensor_(operation.operands[loads_ ? 1 : 0]),
        array_(operation.operands[loads_ ? 0 : 1]),
        parameter_(*emitter.kernel().parameter_of(tensor_)),
        layout_(operation.attributes.register_layout()),
        count_(emitter.type(array_).elements()) {
    int axis = 0;
    for (const std::int64_t size : operation.attributes.integers(Key::sizes)) {
      tile_axis_.push_back(size == 0 ? -1 : axis++);
    }
    rank_ = static_cast<int>(tile_axis_.size());
    if (layout_.is_partial()) cannot_print(operation, "its layout holds partial sums");
    if (operation.operands.size() != 2 + 2 * tile_axis_.size() ||
        axis > static_cast<int>(layout_.shape.size())) {
      cannot_print(operation, "operands, sizes and layout disagree");
    }
    // Sums of 16 bits are by pairs whatever their order is.
    ordered_ |= adds_ && size_of(parameter_.dtype) == 2;
  }

  void print() {
    // Every thread loads what it holds; of those that hold the same, one stores.
    const std::string owners = loads_ ? "" : owner_condition(emitter_, layout_);
    // Memory that the kernel writes as well, perhaps through pointers to other types.
    const bool fenced = loads_ && !ordered_ && parameter_.kind != ir::Parameter::Kind::in;
    if (fenced) emitter_.line("compiler_fence();");
    emitter_.open(owners.empty() ? "" : fmt::format("if ({})", owners));
    std::vector<std::string> base{emitter_.pointer(tensor_)};
    if (parameter_.is_of_stream()) {
      base[0] = fmt::format("({}*)__builtin_assume_aligned({}, {})", memory_type(parameter_.dtype),
                            base[0], ir::kOwnedAlignment);
    }
    // Where a role's few numbers go, kept over its loops, would take registers from accumulators.
    const bool is_placed_here = adds_ || (!loads_ && count_ <= 2 && emitter_.role_warps > 0);
    for (int axis = 0; axis < rank_; ++axis) {
      const std::string first = first_coordinate(axis);
      emitter_.line(fmt::format("const int c{} = {};", axis,
                                is_placed_here ? fmt::format("here({})", first) : first));
      emitter_.line(fmt::format("const int e{} = {};", axis, end(axis)));
      base.push_back(scaled(fmt::format("(i64)c{}", axis), axis));
    }
    emitter_.line(
        fmt::format("{}* const first = {};", memory_type(parameter_.dtype), sum_text(base)));
    const int vector = analysis::elements_at_once(operation_, parameter_.dtype);
    if (ordered_) {
      print_ordered(vector > 1);
    } else if (vector > 1) {
      loads_ ? load_vectors(vector) : adds_ ? add_vectors(vector) : store_vectors(vector);
    } else {
      print_elements("0", fmt::format("{}", count_));
    }
    emitter_.close();
    if (returns_) give_to_all();
    if (fenced) emitter_.line("compiler_fence();");
  }

 private:
  ValueId start(int axis) const { return operation_.operands[2 + axis]; }
  ValueId limit(int axis) const { return operation_.operands[2 + rank_ + axis]; }

  std::string scaled(const std::string& coordinate, int axis) {
    if (coordinate == "0" || axis == rank_ - 1) return coordinate;
    return fmt::format("{} * {}", coordinate, emitter_.stride(tensor_, axis));
  }

  std::string first_coordinate(int axis) {
    const std::string first = emitter_.constant(start(axis)) == std::optional<std::int64_t>(0)
                                  ? "0"
                                  : emitter_.name(start(axis));
    if (tile_axis_[axis] < 0) return first;
    return sum_text({first, thread_coordinate(emitter_, layout_, tile_axis_[axis])});
  }

  // That the coordinate does not lie before the tensor, where its block may begin there.
  std::string not_before(int axis, const std::string& coordinate) const {
    if (tile_axis_[axis] < 0 || emitter_.nonnegative(start(axis))) return {};
    return fmt::format("{} >= 0 && ", coordinate);
  }

  // What register i adds.
  std::string step(int axis, const std::string& i) {
    if (tile_axis_[axis] < 0) return "0";
    return index_text(coordinate_terms(layout_.registers, tile_axis_[axis]), i, count_);
  }

  // The limit, or the tensor's own size where that may be smaller.
  std::string end(int axis) {
    const Dim& size = parameter_.shape[axis];
    const Operation* made = emitter_.definition(limit(axis));
    const bool is_size = made && made->op == ir::Op::dim && made->attributes.dim() == size;
    const auto constant = emitter_.constant(limit(axis));
    if (is_size || (constant && *constant <= size.range().minimum))
      return emitter_.name(limit(axis));
    return fmt::format("minimum({}, {})", emitter_.name(limit(axis)), emitter_.dim(size));
  }

  std::string value(const std::string& i) const {
    const int per_register = packing(parameter_.dtype);
    if (per_register == 1) return fmt::format("{}[{}]", emitter_.name(array_), i);
    return fmt::format("({})({}[({}) / {}] >> ({}) % {} * {})", memory_type(parameter_.dtype),
                       emitter_.name(array_), i, per_register, i, per_register,
                       8 * size_of(parameter_.dtype));
  }

  // Where register i lies behind `first`, and whether it exists.
  struct Place {
    std::string offset, exists;
  };
  // Of `count` registers side by side in the innermost axis.
  Place place(const std::string& i, int count) {
    Place place;
    std::vector<std::string> offset;
    for (int axis = 0; axis < rank_; ++axis) {
      const std::string d = step(axis, i);
      const std::string coordinate = sum_text({fmt::format("c{}", axis), d});
      if (axis > 0) place.exists += " && ";
      place.exists += not_before(axis, coordinate);
      place.exists += axis + 1 < rank_ || count == 1
                          ? fmt::format("{} < e{}", coordinate, axis)
                          : fmt::format("{} + {} <= e{}", coordinate, count, axis);
      offset.push_back(scaled(d == "0" ? d : fmt::format("({})", d), axis));
    }
    place.offset = sum_text(offset);
    return place;
  }

  void print_elements(const std::string& from, const std::string& to) {
    const std::string i = from == "0" ? "i" : "j";
    emitter_.line("#pragma unroll");
    emitter_.open(fmt::format("for (int {} = {}; {} < {}; ++{})", i, from, i, to, i));
    const Place at = place(i, 1);
    if (ordered_) {
      ordered_element(i, at);
      return emitter_.close();
    }
    if (!loads_) {
      const std::string change = adds_ ? fmt::format("red_add(first + {}, {})", at.offset, value(i))
                                       : fmt::format("first[{}] = {}", at.offset, value(i));
      emitter_.line(fmt::format("if ({}) {};", at.exists, change));
      return emitter_.close();
    }
    set_element(i, fmt::format("{} ? first[{}] : ({})0", at.exists, at.offset,
                               memory_type(parameter_.dtype)));
    emitter_.close();
  }

  // Registers are set from their first element on.
  void set_element(const std::string& i, const std::string& element) {
    const int per_register = packing(parameter_.dtype);
    if (per_register == 1) {
      return emitter_.line(fmt::format("{}[{}] = {};", emitter_.name(array_), i, element));
    }
    const std::string target = fmt::format("{}[{} / {}]", emitter_.name(array_), i, per_register);
    emitter_.line(fmt::format("const u32 element = {};", element));
    emitter_.line(fmt::format("{} = ({} % {} == 0 ? 0 : {}) | element << {} % {} * {};", target, i,
                              per_register, target, i, per_register,
                              8 * size_of(parameter_.dtype)));
  }

  // Each element by an instruction of its own, but for sums of two of 16 bits.
  void print_ordered(bool has_pairs) {
    if (!adds_ || size_of(parameter_.dtype) != 2 || !has_pairs) {
      return print_elements("0", fmt::format("{}", count_));
    }
    emitter_.line(fmt::format("const bool aligned = {};", aligned(2)));
    emitter_.line("#pragma unroll");
    emitter_.open(fmt::format("for (int i = 0; i < {}; i += 2)", count_));
    const Place at = place("i", 2);
    const std::string pair = fmt::format("{}[i / 2]", emitter_.name(array_));
    emitter_.open(fmt::format("if (aligned && {})", at.exists));
    emitter_.line(
        fmt::format("{}{}((u32*)(first + {}), {});", returns_ ? pair + " = " : std::string(),
                    ordered_pair(emitter_, operation_, parameter_.dtype), at.offset, pair));
    emitter_.close();
    emitter_.open("else");
    print_elements("i", "i + 2");
    emitter_.close();
    emitter_.close();
  }

  void ordered_element(const std::string& i, const Place& at) {
    const std::string address = fmt::format("first + {}", at.offset);
    const std::string call =
        fmt::format("{}({}{})", codegen::ordered_element(emitter_, operation_, parameter_.dtype),
                    address, loads_ ? std::string() : ", " + value(i));
    if (loads_) {
      return set_element(
          i, fmt::format("{} ? {} : ({})0", at.exists, call, memory_type(parameter_.dtype)));
    }
    if (!returns_) return emitter_.line(fmt::format("if ({}) {};", at.exists, call));
    const int per_register = packing(parameter_.dtype);
    if (per_register == 1) {
      return emitter_.line(
          fmt::format("if ({}) {}[{}] = {};", at.exists, emitter_.name(array_), i, call));
    }
    const std::string target = fmt::format("{}[{} / {}]", emitter_.name(array_), i, per_register);
    emitter_.line(
        fmt::format("if ({}) {} = ({} & ~(0xffffu << {} % 2 * 16)) | (u32){} << {} % 2 * 16;",
                    at.exists, target, target, i, call, i));
  }

  // What one lane of those that hold an element has been given.
  void give_to_all() {
    std::string repeated;
    std::int64_t divisor = 1;
    for (const ir::Mode& mode : layout_.lanes) {
      if (mode.kind == ir::ModeKind::replicate && mode.size > 1) {
        repeated += fmt::format(" - lane / {} % {} * {}", divisor, mode.size, divisor);
      }
      divisor *= mode.size;
    }
    if (repeated.empty()) return;
    emitter_.line("#pragma unroll");
    emitter_.line(
        fmt::format("for (int i = 0; i < {}; ++i) {}[i] = __shfl_sync(0xffffffffu, {}[i], lane{});",
                    register_count(emitter_.type(array_)), emitter_.name(array_),
                    emitter_.name(array_), repeated));
  }

  // Rows may start anywhere: whether this thread's rows all lie where vectors may.
  std::string aligned(int vector) {
    const int bytes = vector * size_of(parameter_.dtype);
    std::vector<std::string> addresses{"(u64)first"};
    for (int axis = 0; axis + 1 < rank_; ++axis) {
      if (step(axis, "i") == "0") continue;
      addresses.push_back(
          fmt::format("(u64)({} * {})", emitter_.stride(tensor_, axis), size_of(parameter_.dtype)));
    }
    return fmt::format("(({}) & {}) == 0", fmt::join(addresses, " | "), bytes - 1);
  }

  // A vector of registers as the functions of the prelude take it.
  std::string registers_at(const std::string& i) const {
    const int per_register = packing(parameter_.dtype);
    return fmt::format("{} + {}", emitter_.name(array_),
                       per_register == 1 ? i : fmt::format("{} / {}", i, per_register));
  }

  // Each vector has to lie before the limit as a whole.
  void store_vectors(int vector) {
    const int bytes = vector * size_of(parameter_.dtype);
    emitter_.line(fmt::format("const bool aligned = {};", aligned(vector)));
    emitter_.line("#pragma unroll");
    emitter_.open(fmt::format("for (int i = 0; i < {}; i += {})", count_, vector));
    const Place at = place("i", vector);
    emitter_.open(fmt::format("if (aligned && {})", at.exists));
    emitter_.line(
        fmt::format("store_vector_{}(first + {}, {});", bytes, at.offset, registers_at("i")));
    emitter_.close();
    emitter_.open("else");
    print_elements("i", fmt::format("i + {}", vector));
    emitter_.close();
    emitter_.close();
  }

  std::string red(int vector, const std::string& offset, const char* is_aligned) const {
    return fmt::format("red_add_vector_{}(first + {}, {}, {})", vector * size_of(parameter_.dtype),
                       offset, registers_at("i"), is_aligned);
  }

  // One test for all vectors of a tensor whose rows follow each other, since their places differ by
  // constants then: a test or a product of strides for each would wait for the one before.
  void add_vectors(int vector) {
    emitter_.line(fmt::format("const bool aligned = {};", aligned(vector)));
    std::vector<std::string> conditions{"aligned"};
    std::vector<std::string> offset{step(rank_ - 1, "i")};
    std::int64_t stride = 1;
    for (int axis = rank_ - 2; axis >= 0; --axis) {
      const Dim& size = parameter_.shape[axis + 1];
      if (!size.is_constant()) return add_each(vector);
      stride *= size.constant();
      const std::string d = step(axis, "i");
      if (d == "0") continue;
      conditions.push_back(fmt::format("{} == {}", emitter_.stride(tensor_, axis), stride));
      offset.push_back(fmt::format("({}) * {}", d, stride));
    }
    conditions.push_back(place("0", vector).exists);
    conditions.push_back(place(std::to_string(count_ - vector), vector).exists);
    emitter_.open(fmt::format("if ({})", fmt::join(conditions, " && ")));
    emitter_.line("#pragma unroll");
    emitter_.line(fmt::format("for (int i = 0; i < {}; i += {}) {};", count_, vector,
                              red(vector, sum_text(offset), "true")));
    emitter_.close();
    emitter_.open("else");
    add_each(vector);
    emitter_.close();
  }

  void add_each(int vector) {
    emitter_.line("#pragma unroll");
    emitter_.open(fmt::format("for (int i = 0; i < {}; i += {})", count_, vector));
    const Place at = place("i", vector);
    emitter_.line(fmt::format("if ({}) {};", at.exists, red(vector, at.offset, "aligned")));
    if (!vectors_are_whole(vector)) {
      emitter_.open("else");
      print_elements("i", fmt::format("i + {}", vector));
      emitter_.close();
    }
    emitter_.close();
  }

  // Whether of every vector all elements exist or none. The tensor may end before the limit.
  bool vectors_are_whole(int vector) const {
    const auto first = emitter_.constant(start(rank_ - 1)),
               end = emitter_.constant(limit(rank_ - 1));
    return first && end && *first % vector == 0 && *end % vector == 0 &&
           *end <= parameter_.shape[rank_ - 1].range().minimum;
  }

  // Whether rows of the tensor lie where vectors may: the same for all of its rows, so that ptxas
  // asks once for all loads, however many blocks of it they have.
  std::string rows_are_aligned(int vector) {
    std::vector<std::string> addresses{fmt::format("(u64){}", emitter_.pointer(tensor_))};
    const auto add = [&](const std::string& elements) {
      addresses.push_back(fmt::format("(u64)({} * {})", elements, size_of(parameter_.dtype)));
    };
    for (int axis = 0; axis + 1 < rank_; ++axis) add(emitter_.stride(tensor_, axis));
    add(fmt::format("c{}", rank_ - 1));
    return fmt::format("(({}) & {}) == 0", fmt::join(addresses, " | "),
                       vector * size_of(parameter_.dtype) - 1);
  }

  // One test for all vectors: a branch at each would wait for the one before. Where the limit falls
  // between two vectors each of them exists as its first element does. A few vectors are loaded in
  // front of the branch, so that those of several loads are on their way together.
  void load_vectors(int vector) {
    const std::string inner = fmt::format("c{}", rank_ - 1);
    emitter_.line(fmt::format("const bool aligned = {} && {}((e{} - {}) & {}) == 0;",
                              rows_are_aligned(vector), not_before(rank_ - 1, inner), rank_ - 1,
                              inner, vector - 1));
    const std::int64_t vectors = count_ / vector;
    if (vectors <= kVectorsInFront) {
      load_each_vector(vector, "aligned && ");
      emitter_.open("if (!aligned)");
    } else {
      emitter_.open("if (aligned)");
      if (vectors <= kFewVectors) {
        load_each_vector(vector, "");
      } else {
        emitter_.open(fmt::format("if ({})", all_exist()));
        load_each_vector(vector, std::nullopt);
        emitter_.close();
        emitter_.open("else");
        load_each_vector(vector, "");
        emitter_.close();
      }
      emitter_.close();
      emitter_.open("else");
    }
    print_elements("0", fmt::format("{}", count_));
    emitter_.close();
  }

  // Each under `condition` where it exists; without one all do. What is evicted first is so by
  // vectors alone: as many hints as elements take registers.
  void load_each_vector(int vector, const std::optional<std::string>& condition) {
    const bool once = operation_.attributes.has(Key::cache);
    emitter_.line("#pragma unroll");
    emitter_.open(fmt::format("for (int i = 0; i < {}; i += {})", count_, vector));
    const Place at = place("i", 1);
    emitter_.line(fmt::format("load_{}vector_{}({}, first + {}, {});", once ? "streamed_" : "",
                              vector * size_of(parameter_.dtype), registers_at("i"), at.offset,
                              condition ? *condition + at.exists : "true"));
    emitter_.close();
  }

  // Whether all registers of the thread exist: the last of them on every axis does.
  std::string all_exist() const {
    std::string text;
    for (int axis = 0; axis < rank_; ++axis) {
      std::int64_t last = 0;
      if (tile_axis_[axis] >= 0) {
        const auto terms = coordinate_terms(layout_.registers, tile_axis_[axis]);
        for (std::int64_t i = 0; i < count_; ++i) last = std::max(last, ir::evaluate(terms, i));
      }
      text += fmt::format("{}{}c{} + {} < e{}", axis == 0 ? "" : " && ",
                          not_before(axis, fmt::format("c{}", axis)), axis, last, axis);
    }
    return text;
  }

  Emitter& emitter_;
  const Operation& operation_;
  bool loads_, adds_;
  bool returns_;  // what was in memory before
  bool ordered_;  // each element's access is
  ValueId tensor_, array_;
  const ir::Parameter& parameter_;
  const ir::RegisterLayout& layout_;
  std::int64_t count_;
  std::vector<int> tile_axis_;
  int rank_ = 0;
};

}  // namespace

void print_global_access(Emitter& emitter, const Operation& operation) {
  GlobalAccess(emitter, operation).print();
}

}  // namespace tilewright::codegen
