#include <fmt/format.h>

#include <algorithm>

#include "codegen/cuda/expressions.h"
#include "codegen/cuda/operations.h"

namespace tilewright::codegen {
namespace {

using ir::Key;
using ir::Operation;
using ir::ValueId;

// One store_registers: c0, c1, ... are the tensor's coordinates of this thread's register 0, e0,
// ... the limits, and register i is at c + d.
class GlobalStore {
 public:
  GlobalStore(Emitter& emitter, const Operation& operation)
      : emitter_(emitter),
        operation_(operation),
        tensor_(operation.operands[0]),
        source_(operation.operands[1]),
        parameter_(*emitter.kernel().parameter_of(tensor_)),
        layout_(operation.attributes.register_layout()),
        count_(emitter.type(source_).elements()) {
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
  }

  void print() {
    const std::string owners = owner_condition();
    emitter_.open(owners.empty() ? "" : fmt::format("if ({})", owners));
    std::vector<std::string> base{emitter_.pointer(tensor_)};
    for (int axis = 0; axis < rank_; ++axis) {
      emitter_.line(fmt::format("const int c{} = {};", axis, first_coordinate(axis)));
      emitter_.line(fmt::format("const int e{} = {};", axis, end(axis)));
      base.push_back(scaled(fmt::format("(i64)c{}", axis), axis));
    }
    emitter_.line(
        fmt::format("{}* const first = {};", memory_type(parameter_.dtype), sum_text(base)));
    if (const int vector = vector_elements(); vector > 1) {
      print_vectors(vector);
    } else {
      emitter_.line("#pragma unroll");
      emitter_.open(fmt::format("for (int i = 0; i < {}; ++i)", count_));
      print_element("i");
      emitter_.close();
    }
    emitter_.close();
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

  // Of threads that hold the same elements, one stores them.
  std::string owner_condition() {
    std::string text;
    const auto add = [&](const std::vector<ir::Mode>& modes, const std::string& index,
                         std::int64_t threads) {
      std::int64_t divisor = 1;
      for (const ir::Mode& mode : modes) {
        if (mode.kind == ir::ModeKind::replicate && mode.size > 1) {
          text += fmt::format("{}{} == 0", text.empty() ? "" : " && ",
                              index_text({{divisor, mode.size, 1}}, index, threads));
        }
        divisor *= mode.size;
      }
    };
    add(layout_.lanes, "lane", 32);
    add(layout_.warps,
        emitter_.first_warp == 0 ? "warp" : fmt::format("warp - {}", emitter_.first_warp),
        emitter_.kernel().threads / 32);
    return text;
  }

  // Registers that lie side by side in a row of the tensor, as many as one store takes.
  int vector_elements() const {
    const int inner = tile_axis_[rank_ - 1];
    if (inner < 0 || layout_.registers.empty()) return 1;
    const ir::Mode& mode = layout_.registers.front();
    if (mode.kind != ir::ModeKind::distribute || mode.axis != inner || mode.stride != 1) return 1;
    const int bytes = size_of(parameter_.dtype);
    if (bytes > 4) return 1;
    int elements = 16 / bytes;
    while (elements > 1 && mode.size % elements != 0) elements /= 2;
    return elements * bytes < 4 ? 1 : elements;
  }

  std::string value(const std::string& i) const {
    const int per_register = packing(parameter_.dtype);
    if (per_register == 1) return fmt::format("{}[{}]", emitter_.name(source_), i);
    return fmt::format("({})({}[({}) / {}] >> ({}) % {} * {})", memory_type(parameter_.dtype),
                       emitter_.name(source_), i, per_register, i, per_register,
                       8 * size_of(parameter_.dtype));
  }

  void print_element(const std::string& i) {
    std::string condition;
    std::vector<std::string> offset;
    for (int axis = 0; axis < rank_; ++axis) {
      const std::string d = step(axis, i);
      condition += fmt::format("{}{} < e{}", condition.empty() ? "" : " && ",
                               sum_text({fmt::format("c{}", axis), d}), axis);
      offset.push_back(scaled(d == "0" ? d : fmt::format("({})", d), axis));
    }
    emitter_.line(fmt::format("if ({}) first[{}] = {};", condition, sum_text(offset), value(i)));
  }

  // Rows may start anywhere: one test for this thread says whether vectors may be used, and each
  // vector has to lie before the limit as a whole.
  void print_vectors(int vector) {
    const int bytes = vector * size_of(parameter_.dtype);
    std::vector<std::string> addresses{"(u64)first"};
    for (int axis = 0; axis + 1 < rank_; ++axis) {
      if (step(axis, "i") == "0") continue;
      addresses.push_back(
          fmt::format("(u64)({} * {})", emitter_.stride(tensor_, axis), size_of(parameter_.dtype)));
    }
    emitter_.line(fmt::format("const bool aligned = (({}) & {}) == 0;", fmt::join(addresses, " | "),
                              bytes - 1));
    emitter_.line("#pragma unroll");
    emitter_.open(fmt::format("for (int i = 0; i < {}; i += {})", count_, vector));
    std::string condition = "aligned";
    std::vector<std::string> offset;
    for (int axis = 0; axis < rank_; ++axis) {
      const std::string d = step(axis, "i");
      const std::string coordinate = sum_text({fmt::format("c{}", axis), d});
      condition += axis + 1 < rank_ ? fmt::format(" && {} < e{}", coordinate, axis)
                                    : fmt::format(" && {} + {} <= e{}", coordinate, vector, axis);
      offset.push_back(scaled(d == "0" ? d : fmt::format("({})", d), axis));
    }
    emitter_.open(fmt::format("if ({})", condition));
    const int words = bytes / 4;
    const std::string index =
        packing(parameter_.dtype) == 1 ? "i" : fmt::format("i / {}", packing(parameter_.dtype));
    emitter_.line(fmt::format("store_vector_{}(first + {}, {} + {});", 4 * words, sum_text(offset),
                              emitter_.name(source_), index));
    emitter_.close();
    emitter_.open("else");
    emitter_.line("#pragma unroll");
    emitter_.open(fmt::format("for (int j = i; j < i + {}; ++j)", vector));
    print_element("j");
    emitter_.close();
    emitter_.close();
    emitter_.close();
  }

  Emitter& emitter_;
  const Operation& operation_;
  ValueId tensor_, source_;
  const ir::Parameter& parameter_;
  const ir::RegisterLayout& layout_;
  std::int64_t count_;
  std::vector<int> tile_axis_;
  int rank_ = 0;
};

}  // namespace

void print_store_registers(Emitter& emitter, const Operation& operation) {
  GlobalStore(emitter, operation).print();
}

}  // namespace tilewright::codegen
