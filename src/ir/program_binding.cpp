#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "ir/program.h"
#include "ir/text_words.h"
#include "support/diagnostic.h"
#include "support/number_formats.h"

namespace tilewright::ir {
namespace {

// Of a run, which somebody has to hold in memory.
constexpr std::size_t kMostOperations = 1 << 20;

bool compares(Compare compare, std::int64_t left, std::int64_t right) {
  switch (compare) {
    case Compare::eq:
      return left == right;
    case Compare::ne:
      return left != right;
    case Compare::lt:
      return left < right;
    case Compare::le:
      return left <= right;
    case Compare::gt:
      return left > right;
    case Compare::ge:
      break;
  }
  return left >= right;
}

// What a run is given, in place of dims and scalars, and the turns of its scopes one after the
// other.
class ProgramBinder {
 public:
  ProgramBinder(const Program& program, DimValues values, std::vector<double> scalars = {},
                ReadBuffer contents = {})
      : program_(program),
        values_(std::move(values)),
        scalars_(std::move(scalars)),
        contents_(std::move(contents)) {}

  Program bind() {
    Program made = program_;
    made.dims.clear();
    made.scalars.clear();
    made.operations.clear();
    made.scopes.clear();
    made.reads.clear();
    for (ProgramBuffer& buffer : made.buffers) bind_buffer(buffer);
    scope(made, -1, 0, program_.operations.size());
    made.bound = values_;
    return made;
  }

  void bind_buffer(ProgramBuffer& buffer) {
    where_ = buffer.where;
    bind_dims(buffer.shape);
    if (has_room(buffer.dtype, buffer.shape)) return;
    Diagnostic(buffer.where, fmt::format("buffer {}: shape {}", buffer.name, braced(buffer.shape)))
        .token(buffer.name)
        .note({}, "in this run " + values_text(values_))
        .fix("take sizes from 0 on, of less than 2^63 bytes in all")
        .raise();
  }

 private:
  // The recorded operations from `first` to `last`, which stand in the scope.
  void scope(Program& made, int scope, std::size_t first, std::size_t last) {
    for (const ProgramRead& each : program_.reads) {
      if (each.scope == scope) values_[each.name] = read(made, each);
    }
    while (first < last) {
      const int inner = child_of(scope, program_.operations[first].scope);
      if (inner == scope) {
        operation(made, program_.operations[first++]);
        continue;
      }
      std::size_t end = first;
      while (end < last && child_of(scope, program_.operations[end].scope) == inner) ++end;
      enter(made, inner, first, end);
      first = end;
    }
  }
  // Of `outer` the scope inside of it in which `inner` lies; that itself where they are the same.
  int child_of(int outer, int inner) const {
    while (inner != outer && program_.scopes[inner].parent != outer) {
      inner = program_.scopes[inner].parent;
    }
    return inner;
  }
  void enter(Program& made, int number, std::size_t first, std::size_t last) {
    const ProgramScope& entered = program_.scopes[number];
    where_ = entered.where;
    if (entered.kind == ProgramScope::Kind::when) {
      if (compares(entered.compare, value_of(entered.left), value_of(entered.right))) {
        scope(made, number, first, last);
      }
    } else {
      const std::int64_t count = value_of(entered.count);
      if (count < 0) {
        problem(
            entered.where, "repeat",
            fmt::format("{} is {}, and nothing is done so often", entered.count.to_string(), count))
            .fix("a count from 0 on: max(count, 0) where it may be less")
            .raise();
      }
      for (std::int64_t turn = 0; turn < count; ++turn) {
        if (made.operations.size() > kMostOperations) {
          problem(entered.where, "repeat",
                  fmt::format("a run has more than {} operations", kMostOperations))
              .fix("leave the loop to a kernel's grid, or run less at a time")
              .raise();
        }
        values_[entered.turn] = turn;
        scope(made, number, first, last);
      }
      values_.erase(entered.turn);
    }
    for (const ProgramRead& each : program_.reads) {
      if (each.scope == number) values_.erase(each.name);
    }
  }

  Diagnostic problem(SourceLocation where, const std::string& verb, const std::string& text) const {
    Diagnostic made(where, verb + ": " + text);
    made.token(verb).note({}, "in this run " + values_text(values_));
    return made;
  }

  std::int64_t read(const Program& made, const ProgramRead& read) {
    where_ = read.where;
    const ProgramBuffer& buffer = made.buffers[read.buffer];
    std::vector<Dim> element = read.element;
    bind_dims(element);
    std::int64_t place = 0, stride = 1;
    bool is_inside = true;
    for (std::size_t axis = element.size(); axis-- > 0;) {
      const std::int64_t at = constant(element[axis]), extent = constant(buffer.shape[axis]);
      is_inside = is_inside && at >= 0 && at < extent;
      place += at * (buffer.strides.empty() ? stride : buffer.strides[axis]);
      stride *= extent;
    }
    if (!is_inside) {
      problem(read.where, "read",
              fmt::format("element {} is not inside of {} {}", braced(element), buffer.name,
                          braced(buffer.shape)))
          .note(buffer.where, buffer.name + " is made")
          .fix("keep it inside, or read it in a Program::when that holds where it is")
          .raise();
    }
    const BufferContents contents = contents_ ? contents_(read.buffer) : BufferContents{};
    if (contents.bytes < (place + 1) * size_of(buffer.dtype)) {
      problem(read.where, "read", "nobody has given what " + buffer.name + " holds")
          .note(buffer.where, buffer.name + " is made")
          .fix("run the program on tensors, or on a ProgramMemory")
          .raise();
    }
    return to_integer(buffer.dtype, contents.data + place * size_of(buffer.dtype));
  }

  void operation(Program& made, ProgramOperation operation) {
    where_ = operation.where;
    for (ProgramPart& part : operation.tensors) bind_part(part);
    bind_part(operation.to);
    bind_part(operation.from);
    for (RunNumber& scalar : operation.scalars) bind_number(scalar);
    bind_number(operation.value);
    made.bound = values_;
    check_operation(made, operation);
    // Each turn records an event of its own. One that no turn has recorded is not waited for.
    if (operation.kind == ProgramOperation::Kind::record && operation.scope >= 0) {
      operation.event = events_[operation.event] = made.events++;
    } else if (operation.kind == ProgramOperation::Kind::wait_event) {
      const auto found = events_.find(operation.event);
      if (found != events_.end()) {
        operation.event = found->second;
      } else if (is_recorded_in_scope(operation.event)) {
        return;
      }
    }
    operation.scope = -1;
    made.operations.push_back(std::move(operation));
  }
  bool is_recorded_in_scope(int event) const {
    return std::any_of(program_.operations.begin(), program_.operations.end(),
                       [&](const ProgramOperation& each) {
                         return each.kind == ProgramOperation::Kind::record &&
                                each.event == event && each.scope >= 0;
                       });
  }

  void bind_dims(std::vector<Dim>& dims) const {
    for (Dim& dim : dims) {
      if (!dim.is_constant()) dim = value_of(dim);
    }
  }
  void bind_part(ProgramPart& part) const {
    bind_dims(part.starts);
    bind_dims(part.sizes);
  }
  void bind_number(RunNumber& number) const {
    for (const RunNumber::Term& term : std::exchange(number.terms, {})) {
      number.base += term.factor * (term.scalar.empty() ? static_cast<double>(value_of(term.dim))
                                                        : scalar_of(term.scalar));
    }
  }
  std::int64_t value_of(const Dim& dim) const { return Binding(values_, where_).evaluate(dim); }
  double scalar_of(const std::string& name) const {
    for (std::size_t i = 0; i < scalars_.size(); ++i) {
      if (program_.scalars[i].name == name) return scalars_[i];
    }
    Diagnostic(where_, fmt::format("program {}: the scalar {} has no value", program_.name, name))
        .token(name)
        .fix("run the program on a caller's tensors and scalars, or launch with a number")
        .raise();
  }

  const Program& program_;
  DimValues values_;
  const std::vector<double> scalars_;
  const ReadBuffer contents_;
  SourceLocation where_;
  std::map<int, int> events_;  // that were recorded in scopes: the last of each
};

// Those of the dims and of what the runtime binds.
DimValues checked_values(const Program& program, const DimValues& sizes,
                         std::int64_t multiprocessors) {
  for (const auto& [name, size] : sizes) {
    const bool is_known = std::any_of(program.dims.begin(), program.dims.end(),
                                      [&](const Dim& dim) { return dim.name() == name; });
    if (is_known) continue;
    Diagnostic(program.where, fmt::format("program {}: there is no dim {}", program.name, name))
        .fix(program.dims.empty() ? "leave it out: the program has no dims"
                                  : "its dims are " + dims_text(program.dims))
        .raise();
  }
  for (const Dim& dim : program.dims) {
    if (sizes.count(dim.name()) != 0) continue;
    Diagnostic(program.where,
               fmt::format("program {}: the dim {} has no value", program.name, dim.name()))
        .fix(
            fmt::format("give each dim one: ProgramMemory(program, {{{{\"{}\", 128}}}}), or to the "
                        "command --set {}=128",
                        dim.name(), dim.name()))
        .raise();
  }
  Kernel dims;
  dims.name = program.name;
  dims.where = program.where;
  dims.dims = program.dims;
  return ir::bind(dims, {}, multiprocessors, sizes).values();
}

// Peers find in each other's memory what they know of their own.
void check_alike(const Program& program, const std::vector<TensorShape>& shapes,
                 std::size_t of_rank) {
  for (std::size_t i = of_rank; i < shapes.size(); ++i) {
    const TensorShape &shape = shapes[i], &first = shapes[i % of_rank];
    if (shape.strides == first.strides) continue;
    Diagnostic(program.where, fmt::format("program {}: {} has strides {{{}}}, and {} has {{{}}}",
                                          program.name, shape.name, fmt::join(shape.strides, ", "),
                                          first.name, fmt::join(first.strides, ", ")))
        .fix("give all ranks tensors that lie alike")
        .raise();
  }
}

}  // namespace

bool has_room(DType dtype, const std::vector<Dim>& shape) {
  std::int64_t left = std::numeric_limits<std::int64_t>::max() / 16 / size_of(dtype);
  return std::all_of(shape.begin(), shape.end(), [&](const Dim& extent) {
    if (!extent.is_constant()) return true;
    if (extent.constant() < 0 || extent.constant() > left) return false;
    left /= std::max<std::int64_t>(extent.constant(), 1);
    return true;
  });
}

std::string values_text(const DimValues& values) {
  std::string text;
  for (const auto& [name, value] : values) {
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", name, value);
  }
  return text;
}

Kernel signature_of(const Program& program) {
  Kernel signature;
  signature.name = program.name;
  signature.where = program.where;
  signature.dims = program.dims;
  for (int rank = 0; rank < program.ranks; ++rank) {
    for (std::size_t i = 0; i < program.buffers.size(); ++i) {
      const ProgramBuffer& buffer = program.buffers[i];
      if (!buffer.is_passed()) continue;
      Parameter& parameter = signature.parameters.emplace_back();
      parameter.kind = buffer.kind == ProgramBuffer::Kind::in    ? Parameter::Kind::in
                       : buffer.kind == ProgramBuffer::Kind::out ? Parameter::Kind::out
                                                                 : Parameter::Kind::inout;
      parameter.name = name_of(program, static_cast<int>(i), rank);
      parameter.dtype = buffer.dtype;
      parameter.shape = buffer.shape;
      parameter.where = buffer.where;
    }
  }
  for (const ProgramScalar& scalar : program.scalars) {
    Parameter& parameter = signature.parameters.emplace_back();
    parameter.kind = Parameter::Kind::scalar;
    parameter.name = scalar.name;
    parameter.dtype = scalar.dtype;
    parameter.where = scalar.where;
  }
  return signature;
}

Program bind_program(const Program& program, const std::vector<TensorShape>& shapes,
                     std::int64_t multiprocessors, const std::vector<double>& scalars,
                     const DimValues& given, const ReadBuffer& contents) {
  const Kernel signature = signature_of(program);
  check_scalars(signature, scalars);
  const Binding binding = ir::bind(signature, shapes, multiprocessors, given);
  Program placed = program;
  std::size_t next = 0;
  for (ProgramBuffer& buffer : placed.buffers) {
    if (buffer.is_passed()) buffer.strides = shapes[next++].strides;
  }
  check_alike(program, shapes, next);
  return ProgramBinder(placed, binding.values(), scalars, contents).bind();
}

Program bind_program(const Program& program, const DimValues& sizes, std::int64_t multiprocessors,
                     const ReadBuffer& contents) {
  return ProgramBinder(program, checked_values(program, sizes, multiprocessors), {}, contents)
      .bind();
}

ReadBuffer contents_of(const Program& program, const std::vector<TensorArgument>& passed) {
  return [&program, &passed](int buffer) -> BufferContents {
    const auto number = static_cast<std::size_t>(
        std::count_if(program.buffers.begin(), program.buffers.begin() + buffer,
                      [](const ProgramBuffer& each) { return each.is_passed(); }));
    if (number >= passed.size()) return {};
    const TensorArgument& tensor = passed[number];
    std::int64_t last = 0, stride = 1;
    for (std::size_t axis = tensor.shape.size(); axis-- > 0;) {
      if (tensor.shape[axis] == 0) return {};
      last += (tensor.shape[axis] - 1) * (tensor.strides.empty() ? stride : tensor.strides[axis]);
      stride *= tensor.shape[axis];
    }
    return {tensor.data, (last + 1) * size_of(tensor.dtype)};
  };
}

ReadBuffer contents_of(const std::vector<HostTensor>& tensors) {
  return [&tensors](int buffer) -> BufferContents {
    if (buffer >= static_cast<int>(tensors.size())) return {};
    const HostTensor& tensor = tensors[buffer];
    return {tensor.data(), static_cast<std::int64_t>(tensor.size_bytes())};
  };
}

std::vector<std::vector<HostTensor>> initial_tensors(const Program& program, const DimValues& sizes,
                                                     std::uint64_t seed) {
  DimValues values = checked_values(program, sizes, 1);
  // Which depends on the machine, as no caller's memory does.
  values.erase(kMultiprocessors);
  ProgramBinder binder(program, std::move(values));
  std::vector<std::vector<HostTensor>> tensors;
  for (int rank = 0; rank < program.ranks; ++rank) {
    std::vector<HostTensor>& buffers = tensors.emplace_back();
    for (ProgramBuffer buffer : program.buffers) {
      if (!buffer.outlives_runs()) {
        buffers.emplace_back();
        continue;
      }
      binder.bind_buffer(buffer);
      std::vector<std::int64_t> shape = constants(buffer.shape);
      if (buffer.kind == ProgramBuffer::Kind::out) {
        buffers.push_back(HostTensor::poisoned(buffer.dtype, std::move(shape)));
      } else if (is_float(buffer.dtype)) {
        buffers.push_back(HostTensor::random_normal(buffer.dtype, std::move(shape), seed++));
      } else {
        buffers.push_back(HostTensor::zeros(buffer.dtype, std::move(shape)));
      }
    }
  }
  return tensors;
}

}  // namespace tilewright::ir
