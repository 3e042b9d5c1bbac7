#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ir/dim_order.h"
#include "ir/program.h"
#include "ir/text_words.h"
#include "support/diagnostic.h"

namespace tilewright::ir {
namespace {

using ProgramKind = ProgramOperation::Kind;

// An operation of a program, and what may be wrong with it.
class OperationCheck {
 public:
  OperationCheck(const Program& program, const ProgramOperation& operation)
      : program_(program),
        operation_(operation),
        verb_(name_of(operation.kind)),
        rank_(program.streams[operation.stream].rank) {}

  void run() const {
    if (operation_.exchange >= 0) check_exchange();
    switch (operation_.kind) {
      case ProgramKind::launch:
        for (const ProgramPart& part : operation_.tensors) {
          check_inside(part);
          check_own(part);
        }
        check_written();
        return check_kernel();
      case ProgramKind::copy:
        check_inside(operation_.to);
        check_inside(operation_.from);
        check_written();
        return check_copy();
      case ProgramKind::zero:
        check_inside(operation_.to);
        check_own(operation_.to);
        return check_written();
      case ProgramKind::write:
      case ProgramKind::wait:
        check_inside(operation_.to);
        return check_word();
      case ProgramKind::record:
      case ProgramKind::wait_event:
        return;
    }
  }

 private:
  Diagnostic problem(const std::string& text) const {
    Diagnostic diagnostic(operation_.where, fmt::format("{}: {}", verb_, text));
    diagnostic.token(verb_);
    if (!program_.bound.empty()) diagnostic.note({}, "in this run " + values_text(program_.bound));
    return diagnostic;
  }
  const ProgramBuffer& buffer_of(const ProgramPart& part) const {
    return program_.buffers[part.buffer];
  }
  Diagnostic problem(const std::string& text, const ProgramPart& part) const {
    const ProgramBuffer& buffer = buffer_of(part);
    return problem(text).note(buffer.where, buffer.name + " is made");
  }

  void check_inside(const ProgramPart& part) const {
    const ProgramBuffer& buffer = buffer_of(part);
    if (!is_outside(part.starts, part.sizes, buffer.shape)) return;
    problem(fmt::format("{} elements from {} on are not inside of {} {}", braced(part.sizes),
                        braced(part.starts), buffer.name, braced(buffer.shape)),
            part)
        .fix("take parts that end where the buffer does, or make it larger")
        .raise();
  }

  void check_own(const ProgramPart& part) const {
    if (part.rank == rank_) return;
    const std::string name = name_of(program_, part.buffer, part.rank);
    if (operation_.kind == ProgramKind::zero) {
      problem(fmt::format("{} is set to zero in a stream of rank {}", name, rank_), part)
          .fix("set it to zero in a stream of its own rank, before others use it")
          .raise();
    }
    problem(fmt::format("{} is given to a launch on rank {}: a kernel gets the tensors of its own "
                        "rank",
                        name, rank_))
        .fix("declare it as Kernel::symmetric and reach the peer's by at(rank)")
        .raise();
  }

  void check_written() const {
    if (operation_.kind != ProgramKind::launch)
      return check_written(operation_.to, "this " + verb_);
    const Kernel& kernel = *program_.kernels[operation_.kernel];
    std::size_t tensor = 0;
    for (const Parameter& parameter : kernel.parameters) {
      if (!parameter.is_tensor() || tensor == operation_.tensors.size()) continue;
      const ProgramPart& part = operation_.tensors[tensor++];
      if (parameter.kind == Parameter::Kind::out || parameter.kind == Parameter::Kind::inout) {
        check_written(part, fmt::format("{}, as its {},", kernel.name, parameter.name));
      }
    }
  }
  void check_written(const ProgramPart& part, const std::string& by) const {
    if (buffer_of(part).kind != ProgramBuffer::Kind::in) return;
    problem(fmt::format("{} is passed to be read, and {} writes it", buffer_of(part).name, by),
            part)
        .fix("make it with Program::inout, or Program::out")
        .raise();
  }

  void check_kernel() const {
    try {
      check_launch(program_, operation_);
    } catch (const Error& error) {
      Diagnostic made = problem(error.message());
      made.note(error.location(), "the kernel says so");
      if (!error.fix().empty()) made.fix(error.fix());
      made.raise();
    }
  }

  void check_copy() const {
    const ProgramPart &to = operation_.to, &from = operation_.from;
    const ProgramBuffer &target = buffer_of(to), &source = buffer_of(from);
    bool differ = target.dtype != source.dtype || to.sizes.size() != from.sizes.size();
    for (std::size_t axis = 0; !differ && axis < to.sizes.size(); ++axis) {
      const Dim &a = to.sizes[axis], &b = from.sizes[axis];
      differ = a.is_constant() && b.is_constant() && a.constant() != b.constant();
    }
    if (differ) {
      problem(fmt::format("{} {} {} from {} {} {}", target.name, tilewright::name_of(target.dtype),
                          braced(to.sizes), source.name, tilewright::name_of(source.dtype),
                          braced(from.sizes)),
              to)
          .note(source.where, source.name + " is made")
          .fix("parts of the same shape and dtype")
          .raise();
    }
    if (!overlap(to, from)) return;
    problem(fmt::format("{} {} from {} on overlaps what is copied, from {} on", target.name,
                        braced(to.sizes), braced(to.starts), braced(from.starts)),
            to)
        .fix("copy through another buffer: copy engines keep no order among bytes")
        .raise();
  }

  // For certain: where dims are not bound, it shows once they are.
  static bool overlap(const ProgramPart& a, const ProgramPart& b) {
    if (a.buffer != b.buffer || a.rank != b.rank) return false;
    for (std::size_t axis = 0; axis < a.starts.size(); ++axis) {
      const Dim first = max(a.starts[axis], b.starts[axis]);
      const Dim end = min(a.starts[axis] + a.sizes[axis], b.starts[axis] + b.sizes[axis]);
      if (!first.is_constant() || !end.is_constant() || first.constant() >= end.constant()) {
        return false;
      }
    }
    return true;
  }

  // It has words of each rank, and is made of copies and words.
  void check_exchange() const {
    const ProgramBuffer& words = program_.buffers[operation_.exchange];
    const bool is_part = operation_.kind == ProgramKind::copy ||
                         operation_.kind == ProgramKind::write ||
                         operation_.kind == ProgramKind::wait;
    const bool has_words = words.kind == ProgramBuffer::Kind::signals &&
                           words.shape.front() == Dim(2 * program_.ranks);
    const bool is_own = operation_.kind == ProgramKind::copy
                            ? operation_.from.rank == rank_ && operation_.to.rank != rank_
                            : operation_.to.buffer == operation_.exchange &&
                                  operation_.to.starts.front().is_constant();
    if (is_part && has_words && is_own) return;
    problem(fmt::format("it is no part of an exchange of words {}", words.name))
        .note(words.where, words.name + " is made")
        .fix("Stream::exchange records such parts: what a rank has, and two words of each rank")
        .raise();
  }

  // One i32 word of signals, which holds integers: one that counts in halves would be rounded in
  // every other run.
  void check_word() const {
    const ProgramBuffer& buffer = buffer_of(operation_.to);
    const std::vector<Dim>& sizes = operation_.to.sizes;
    if (buffer.kind != ProgramBuffer::Kind::signals || sizes.size() != 1 || !(sizes[0] == 1)) {
      problem(fmt::format("{} {} is not one word of signals", buffer.name, braced(sizes)),
              operation_.to)
          .fix("a word of what Program::signals makes: ready[0]")
          .raise();
    }
    constexpr double kLimit = 0x1p31;
    const auto fits = [](double number) {
      return number >= -kLimit && number < 2 * kLimit && number == std::floor(number);
    };
    const RunNumber& value = operation_.value;
    if (!value.terms.empty() || (fits(value.base) && fits(value.per_run))) return;
    problem(fmt::format("{} + {} * run is no integer of 32 bits", value.base, value.per_run))
        .fix("words are i32: take whole numbers")
        .raise();
  }

  const Program& program_;
  const ProgramOperation& operation_;
  const std::string verb_;
  const int rank_;
};

}  // namespace

bool is_outside(const std::vector<Dim>& starts, const std::vector<Dim>& sizes,
                const std::vector<Dim>& of) {
  if (starts.size() != of.size() || sizes.size() != of.size()) return true;
  for (std::size_t axis = 0; axis < of.size(); ++axis) {
    const Dim &start = starts[axis], &size = sizes[axis], &extent = of[axis];
    if (never_less(-1, start) || never_less(-1, size)) return true;
    if (start.is_constant() && size.is_constant() && extent.is_constant()) {
      if (start.constant() > extent.constant() - size.constant()) return true;
      continue;
    }
    // Both: of a start that nothing is known of, the size alone may be too large.
    if (never_less(size, extent + 1) || never_less(start + size, extent + 1)) return true;
  }
  return false;
}

std::string braced(const std::vector<Dim>& dims) { return "{" + dims_text(dims) + "}"; }

void check_launch(const Program& program, const ProgramOperation& launch) {
  const Kernel& kernel = *program.kernels[launch.kernel];
  std::vector<TensorShape> shapes;
  bool known = true;
  for (const ProgramPart& part : launch.tensors) {
    const ProgramBuffer& buffer = program.buffers[part.buffer];
    TensorShape& shape = shapes.emplace_back();
    shape.name = buffer.name;
    shape.dtype = buffer.dtype;
    shape.strides = buffer.strides;
    for (const Dim& size : part.sizes) {
      shape.sizes.push_back(size.is_constant() ? size.constant() : kUnknownSize);
      known = known && size.is_constant();
    }
  }
  if (known) {
    ir::bind(kernel, shapes, 1, given_ranks(kernel, program.ranks));
  } else {
    check_known(kernel, shapes);
  }
  std::vector<double> scalars;
  // Any integer stands for what a run is given.
  for (const RunNumber& scalar : launch.scalars) {
    scalars.push_back(scalar.terms.empty() ? scalar.at(1) : 0);
  }
  check_scalars(kernel, scalars);
}

void check_operation(const Program& program, const ProgramOperation& operation) {
  OperationCheck(program, operation).run();
}

void check_count(const Program& program, const char* what, std::int64_t count) {
  if (count >= 1) return;
  Diagnostic(program.where, fmt::format("program {}: {} {}", program.name, count, what))
      .fix("ask for one or more")
      .raise();
}

void check_tensors(const Program& program, const std::vector<std::vector<HostTensor>>& tensors) {
  const auto fail = [&program](const std::string& problem) {
    Diagnostic(program.where, fmt::format("program {}: {}", program.name, problem))
        .fix("make the ProgramMemory of this program, when all of its buffers are there")
        .raise();
  };
  if (tensors.size() != static_cast<std::size_t>(program.ranks)) {
    fail(fmt::format("memory of {} ranks for {}", tensors.size(), program.ranks));
  }
  for (int rank = 0; rank < program.ranks; ++rank) {
    const std::vector<HostTensor>& given = tensors[rank];
    if (given.size() > program.buffers.size()) {
      fail(fmt::format("memory of {} buffers for {}", given.size(), program.buffers.size()));
    }
    for (std::size_t i = 0; i < program.buffers.size(); ++i) {
      const ProgramBuffer& buffer = program.buffers[i];
      if (!buffer.outlives_runs()) continue;
      const std::string name = name_of(program, static_cast<int>(i), rank);
      if (i >= given.size()) {
        if (buffer.is_passed()) fail("the memory has no " + name);
        continue;
      }
      if (given[i].dtype() == buffer.dtype && given[i].shape() == constants(buffer.shape)) continue;
      fail(fmt::format("the memory has {} {{{}}} for {}, which is {} {}",
                       tilewright::name_of(given[i].dtype()), fmt::join(given[i].shape(), ", "),
                       name, tilewright::name_of(buffer.dtype), braced(buffer.shape)));
    }
  }
}

}  // namespace tilewright::ir
