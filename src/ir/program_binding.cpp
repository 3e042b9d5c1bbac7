#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "ir/program.h"
#include "ir/text_words.h"
#include "support/diagnostic.h"

namespace tilewright::ir {
namespace {

// What a run is given, in place of dims and scalars.
class ProgramBinder {
 public:
  ProgramBinder(const Program& program, DimValues values, std::vector<double> scalars = {})
      : program_(program), values_(std::move(values)), scalars_(std::move(scalars)) {}

  Program bind() {
    Program made = program_;
    made.dims.clear();
    made.scalars.clear();
    made.bound = values_;
    for (ProgramBuffer& buffer : made.buffers) bind_buffer(buffer);
    for (ProgramOperation& operation : made.operations) {
      where_ = operation.where;
      for (ProgramPart& part : operation.tensors) bind_part(part);
      bind_part(operation.to);
      bind_part(operation.from);
      for (RunNumber& scalar : operation.scalars) bind_number(scalar);
      bind_number(operation.value);
      check_operation(made, operation);
    }
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
  const DimValues values_;
  const std::vector<double> scalars_;
  SourceLocation where_;
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
        .fix(fmt::format("give each dim one: ProgramMemory(program, {{{{\"{}\", 128}}}}), or --set "
                         "{}=128",
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
                     const DimValues& given) {
  const Kernel signature = signature_of(program);
  check_scalars(signature, scalars);
  const Binding binding = ir::bind(signature, shapes, multiprocessors, given);
  Program placed = program;
  std::size_t next = 0;
  for (ProgramBuffer& buffer : placed.buffers) {
    if (buffer.is_passed()) buffer.strides = shapes[next++].strides;
  }
  check_alike(program, shapes, next);
  return ProgramBinder(placed, binding.values(), scalars).bind();
}

Program bind_program(const Program& program, const DimValues& sizes, std::int64_t multiprocessors) {
  return ProgramBinder(program, checked_values(program, sizes, multiprocessors)).bind();
}

std::vector<std::vector<HostTensor>> initial_tensors(const Program& program, const DimValues& sizes,
                                                     std::uint64_t seed) {
  DimValues values = checked_values(program, sizes, 1);
  // Which hangs on the machine, as no caller's memory does.
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
