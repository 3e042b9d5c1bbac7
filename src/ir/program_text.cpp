#include "ir/program_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ir/memory_order.h"
#include "ir/text.h"
#include "ir/text_dims.h"
#include "ir/text_scanner.h"
#include "ir/text_words.h"
#include "ir/verifier.h"

namespace tilewright::ir {
namespace {

using ProgramKind = ProgramOperation::Kind;

constexpr ProgramKind kProgramKinds[] = {
    ProgramKind::launch, ProgramKind::copy,   ProgramKind::zero,      ProgramKind::write,
    ProgramKind::wait,   ProgramKind::record, ProgramKind::wait_event};
constexpr std::string_view kBuffers[] = {"tensor",    "in",      "out",   "signals",
                                         "workspace", "scratch", "zeroed"};

class ProgramPrinter {
 public:
  explicit ProgramPrinter(const Program& program) : program_(program) {}

  std::string print() {
    line(fmt::format("program {} {} ranks", quoted(program_.name), program_.ranks), program_.where);
    for (const Dim& dim : program_.dims) line(dim_text(dim), {});
    for (const ProgramScalar& scalar : program_.scalars) {
      line(fmt::format("scalar {}: {}", quoted(scalar.name), tilewright::name_of(scalar.dtype)),
           scalar.where);
    }
    for (const ProgramBuffer& buffer : program_.buffers) {
      line(
          fmt::format("{} {}: {}[{}]", kBuffers[static_cast<int>(buffer.kind)], quoted(buffer.name),
                      tilewright::name_of(buffer.dtype), dims_text(buffer.shape)),
          buffer.where);
    }
    for (const ProgramStream& stream : program_.streams) {
      line(fmt::format("stream {} of {}", quoted(stream.name), stream.rank), stream.where);
    }
    for (const auto& kernel : program_.kernels) text_ += to_text(*kernel);
    reads(-1);
    for (const ProgramOperation& operation : program_.operations) {
      enter(operation.scope);
      this->operation(operation);
    }
    enter(-1);
    return std::move(text_);
  }

 private:
  void line(const std::string& words, SourceLocation where) {
    text_ += words + location_text(where) + '\n';
  }
  // What the scope reads where it begins.
  void reads(int scope) {
    for (const ProgramRead& each : program_.reads) {
      if (each.scope != scope) continue;
      line(fmt::format("read {} of {} [{}]", quoted(each.name),
                       quoted(program_.buffers[each.buffer].name), dims_text(each.element)),
           each.where);
    }
  }
  bool is_in(int scope, int outer) const {
    while (scope != outer && scope >= 0) scope = program_.scopes[scope].parent;
    return scope == outer;
  }
  // Ends the scopes that do not hold the wanted one, and begins those that do.
  void enter(int wanted) {
    for (; !is_in(wanted, scope_); scope_ = program_.scopes[scope_].parent) line("end", {});
    if (wanted == scope_) return;
    const ProgramScope& scope = program_.scopes[wanted];
    enter(scope.parent);
    if (scope.kind == ProgramScope::Kind::repeat) {
      line(fmt::format("repeat {} [{}]", quoted(scope.turn), scope.count.to_string()), scope.where);
    } else {
      line(fmt::format("when [{}] {} [{}]", scope.left.to_string(), name_of(scope.compare),
                       scope.right.to_string()),
           scope.where);
    }
    scope_ = wanted;
    reads(wanted);
  }
  std::string part(const ProgramPart& part) const {
    return fmt::format("{} of {} [{}] [{}]", quoted(program_.buffers[part.buffer].name), part.rank,
                       dims_text(part.starts), dims_text(part.sizes));
  }
  static std::string number(const RunNumber& number) {
    std::string text = fmt::format("{} + {} run", number.base, number.per_run);
    for (const RunNumber::Term& term : number.terms) {
      text += fmt::format(" + {} {}", term.factor,
                          term.scalar.empty() ? fmt::format("dim {}", term.dim.to_string())
                                              : "scalar " + quoted(term.scalar));
    }
    return text;
  }
  void operation(const ProgramOperation& operation) {
    const ProgramStream& stream = program_.streams[operation.stream];
    std::string words =
        fmt::format("{} {} of {}", name_of(operation.kind), quoted(stream.name), stream.rank);
    switch (operation.kind) {
      case ProgramKind::launch: {
        std::string tensors, scalars;
        for (const ProgramPart& tensor : operation.tensors) {
          tensors += (tensors.empty() ? "" : ", ") + part(tensor);
        }
        for (const RunNumber& scalar : operation.scalars) {
          scalars += (scalars.empty() ? "" : ", ") + number(scalar);
        }
        words += fmt::format(" kernel {} ({}) scalars ({}) epochs {} of {}", operation.kernel,
                             tensors, scalars, operation.epoch, operation.epochs_per_run);
        break;
      }
      case ProgramKind::copy:
        words += fmt::format(" to {} from {}", part(operation.to), part(operation.from));
        break;
      case ProgramKind::zero:
        words += " " + part(operation.to);
        break;
      case ProgramKind::write:
      case ProgramKind::wait:
        words += fmt::format(" {} value {}", part(operation.to), number(operation.value));
        if (operation.compare != Compare::ge) {
          words += fmt::format(" compare {}", name_of(operation.compare));
        }
        break;
      case ProgramKind::record:
      case ProgramKind::wait_event:
        words += fmt::format(" event {}", operation.event);
        break;
    }
    if (operation.exchange >= 0) {
      words += " exchange " + quoted(program_.buffers[operation.exchange].name);
    }
    line(words, operation.where);
  }

  const Program& program_;
  int scope_ = -1;  // that is being printed
  std::string text_;
};

class ProgramParser {
 public:
  ProgramParser(std::string_view text, std::string_view file,
                const std::function<void(const Kernel&)>& verify)
      : in_(text, file), file_(file), verify_(verify) {}

  Program parse() {
    const SourceLocation here = in_.next_location();
    in_.expect_word("program");
    program_.name = in_.quoted("the program's name in quotes");
    program_.ranks = in_.integer<int>("how many ranks there are");
    if (program_.ranks < 1 || program_.ranks > kMaximumRanks) {
      in_.expected(fmt::format("1 to {} ranks", kMaximumRanks));
    }
    in_.expect_word("ranks");
    program_.where = in_.location_or(here);
    while (!in_.at_end()) clause();
    if (program_.recording >= 0) in_.expected("the end of a repeat or when");
    for (std::size_t event = 0; event < recorded_.size(); ++event) {
      if (recorded_[event] < 0) {
        in_.fail(0, fmt::format("event {} is waited for and never recorded", event));
      }
    }
    program_.events = static_cast<int>(recorded_.size());
    return std::move(program_);
  }

 private:
  void clause() {
    const std::size_t begin = in_.position();
    const SourceLocation here = in_.next_location();
    if (in_.peek_word() == "kernel") return kernel();
    if (in_.accept_word("stream")) return stream(here);
    if (in_.accept_word("scalar")) return scalar(here);
    if (in_.accept_word("read")) return read(here);
    if (in_.accept_word("repeat")) return scope(ProgramScope::Kind::repeat, here);
    if (in_.accept_word("when")) return scope(ProgramScope::Kind::when, here);
    if (in_.accept_word("end")) return end_scope(begin);
    if (in_.accept_word("dim")) {
      program_.dims.push_back(read_dim_clause(in_, program_.dims));
      known_.push_back(program_.dims.back());
      return;
    }
    for (std::size_t kind = 0; kind < std::size(kBuffers); ++kind) {
      if (in_.accept_word(kBuffers[kind])) {
        return buffer(static_cast<ProgramBuffer::Kind>(kind), here);
      }
    }
    std::string known;
    for (const ProgramKind kind : kProgramKinds) {
      if (in_.accept_word(name_of(kind))) return operation(kind, begin, here);
      known += fmt::format(", {}", name_of(kind));
    }
    in_.fail(begin,
             fmt::format("expected dim, scalar, read, repeat, when, end, stream, kernel, {}{}",
                         fmt::join(kBuffers, ", "), known));
  }

  void kernel() {
    const Scanner::Passage passage = in_.through_line("}");
    // A hand has written it, and no pass.
    Kernel kernel = read_verified(
        passage.text, file_,
        [this](const Kernel& read) { verify_ ? verify_(read) : verify(read, ErrorKind::usage); },
        passage.lines);
    program_.kernels.push_back(std::make_shared<const Kernel>(std::move(kernel)));
    program_.kernel_texts.emplace_back(to_text(*program_.kernels.back(), {/*locations=*/false}));
  }

  void buffer(ProgramBuffer::Kind kind, SourceLocation here) {
    const std::size_t begin = in_.position();
    ProgramBuffer buffer;
    buffer.kind = kind;
    buffer.name = in_.quoted("the buffer's name in quotes");
    for (const ProgramBuffer& other : program_.buffers) {
      if (other.name == buffer.name) in_.fail(begin, "there is such a buffer already");
    }
    in_.expect(':');
    const std::size_t at = in_.position();
    buffer.dtype = in_.dtype();
    const bool words =
        kind == ProgramBuffer::Kind::signals || kind == ProgramBuffer::Kind::workspace;
    if (words && buffer.dtype != DType::i32) in_.fail(at, "expected i32");
    const std::size_t shape = in_.position();
    buffer.shape = numbers();
    if (words && buffer.shape.size() != 1) in_.fail(shape, "expected one axis: words");
    if (!has_room(buffer.dtype, buffer.shape)) in_.fail(shape, "there is no such shape");
    buffer.where = in_.location_or(here);
    program_.buffers.push_back(std::move(buffer));
  }

  void scalar(SourceLocation here) {
    const std::size_t begin = in_.position();
    ProgramScalar scalar;
    scalar.name = in_.quoted("the scalar's name in quotes");
    if (is_scalar(scalar.name)) in_.fail(begin, "there is such a scalar already");
    in_.expect(':');
    scalar.dtype = in_.dtype();
    scalar.where = in_.location_or(here);
    program_.scalars.push_back(std::move(scalar));
  }
  bool is_scalar(const std::string& name) const {
    return std::any_of(program_.scalars.begin(), program_.scalars.end(),
                       [&](const ProgramScalar& each) { return each.name == name; });
  }

  // A number that a run finds, which the dims behind it are expressions of.
  void name_number(std::size_t begin, const std::string& name, DimFacts facts) {
    for (const Dim& known : known_) {
      if (known.name() == name) in_.fail(begin, "there is such a number already");
    }
    known_.push_back(Dim::symbol(name, facts));
  }
  void read(SourceLocation here) {
    ProgramRead read;
    const std::size_t begin = in_.position();
    read.name = in_.quoted("a name in quotes");
    in_.expect_word("of");
    const std::size_t of = in_.position();
    read.buffer = buffer_number();
    const ProgramBuffer& buffer = program_.buffers[read.buffer];
    if (buffer.kind != ProgramBuffer::Kind::in || is_float(buffer.dtype)) {
      in_.fail(of, "expected integers that are passed to be read");
    }
    read.element = numbers();
    if (read.element.size() != buffer.shape.size()) in_.fail(of, "expected an index for each axis");
    read.scope = program_.recording;
    read.where = in_.location_or(here);
    name_number(begin, read.name, {1, INT32_MIN, INT32_MAX});
    program_.reads.push_back(std::move(read));
  }
  Dim one_number() {
    const std::size_t begin = in_.position();
    const std::vector<Dim> list = numbers();
    if (list.size() != 1) in_.fail(begin, "expected one number");
    return list.front();
  }
  void scope(ProgramScope::Kind kind, SourceLocation here) {
    ProgramScope scope;
    scope.kind = kind;
    scope.parent = program_.recording;
    known_before_.push_back(known_.size());
    if (kind == ProgramScope::Kind::repeat) {
      const std::size_t begin = in_.position();
      scope.turn = in_.quoted("the turn's name in quotes");
      scope.count = one_number();
      name_number(begin, scope.turn, {});
    } else {
      scope.left = one_number();
      scope.compare = compare();
      scope.right = one_number();
    }
    scope.where = in_.location_or(here);
    program_.recording = static_cast<int>(program_.scopes.size());
    program_.scopes.push_back(std::move(scope));
  }
  void end_scope(std::size_t begin) {
    if (program_.recording < 0) in_.fail(begin, "no repeat or when begins before it");
    program_.recording = program_.scopes[program_.recording].parent;
    known_.resize(known_before_.back(), Dim(0));
    known_before_.pop_back();
  }

  void stream(SourceLocation here) {
    ProgramStream stream;
    stream.name = in_.quoted("the stream's name in quotes");
    stream.rank = rank();
    stream.where = in_.location_or(here);
    program_.streams.push_back(std::move(stream));
  }

  void operation(ProgramKind kind, std::size_t begin, SourceLocation here) {
    ProgramOperation operation;
    operation.kind = kind;
    operation.stream = stream_number();
    switch (kind) {
      case ProgramKind::launch:
        launch(operation);
        break;
      case ProgramKind::copy:
        in_.expect_word("to");
        operation.to = part();
        in_.expect_word("from");
        operation.from = part();
        break;
      case ProgramKind::zero:
        operation.to = part();
        break;
      case ProgramKind::write:
      case ProgramKind::wait:
        operation.to = part();
        in_.expect_word("value");
        operation.value = number();
        if (kind == ProgramKind::wait && in_.accept_word("compare")) operation.compare = compare();
        break;
      case ProgramKind::record:
      case ProgramKind::wait_event:
        event(operation);
        break;
    }
    if (in_.accept_word("exchange")) operation.exchange = buffer_number();
    operation.scope = program_.recording;
    const bool is_word = kind == ProgramKind::write || kind == ProgramKind::wait;
    if (operation.scope >= 0 && is_word) in_.fail(begin, "words stand in no repeat and no when");
    operation.where = in_.location_or(here);
    in_.within(begin, [&] { check_operation(program_, operation); });
    program_.operations.push_back(std::move(operation));
  }

  void launch(ProgramOperation& operation) {
    in_.expect_word("kernel");
    const std::size_t begin = in_.position();
    operation.kernel = in_.integer<int>("the kernel's number");
    if (operation.kernel < 0 || operation.kernel >= static_cast<int>(program_.kernels.size())) {
      in_.fail(begin, fmt::format("there is no kernel {}: {} stand before this line",
                                  operation.kernel, program_.kernels.size()));
    }
    in_.list('(', ')', [&] { operation.tensors.push_back(part()); });
    in_.expect_word("scalars");
    const std::size_t scalars = in_.position();
    in_.list('(', ')', [&] { operation.scalars.push_back(number()); });
    const auto& parameters = program_.kernels[operation.kernel]->parameters;
    const auto wanted = std::count_if(parameters.begin(), parameters.end(),
                                      [](const Parameter& each) { return !each.is_tensor(); });
    if (static_cast<std::int64_t>(operation.scalars.size()) != wanted) {
      in_.fail(scalars, fmt::format("the kernel has {} scalar parameters", wanted));
    }
    in_.expect_word("epochs");
    const std::size_t epochs = in_.position();
    operation.epoch = in_.integer();
    in_.expect_word("of");
    operation.epochs_per_run = in_.integer();
    constexpr std::int64_t kMostEpochs = 1 << 20;
    if (operation.epoch < 1 || operation.epoch > operation.epochs_per_run ||
        operation.epochs_per_run > kMostEpochs) {
      in_.fail(epochs, "expected the launch's number among those of a run");
    }
  }

  void event(ProgramOperation& operation) {
    in_.expect_word("event");
    const std::size_t begin = in_.position();
    operation.event = in_.integer<int>("the event's number");
    if (operation.event < 0 || operation.event > 1 << 20) in_.fail(begin, "no event's number");
    if (recorded_.size() <= static_cast<std::size_t>(operation.event)) {
      recorded_.resize(operation.event + 1, -1);
    }
    int& rank = recorded_[operation.event];
    const int own = program_.streams[operation.stream].rank;
    if (operation.kind == ProgramKind::record) {
      if (rank >= 0) in_.fail(begin, "the event is recorded already");
      rank = own;
    } else if (rank != own) {
      in_.fail(begin, "the event is not recorded before this line, in the same rank");
    }
  }

  int rank() {
    in_.expect_word("of");
    const std::size_t begin = in_.position();
    const int rank = in_.integer<int>("a rank");
    if (rank < 0 || rank >= program_.ranks) {
      in_.fail(begin, fmt::format("expected a rank from 0 to {}", program_.ranks - 1));
    }
    return rank;
  }
  int stream_number() {
    const std::size_t begin = in_.position();
    const std::string name = in_.quoted("the stream's name in quotes");
    const int rank = this->rank();
    for (std::size_t i = 0; i < program_.streams.size(); ++i) {
      const ProgramStream& stream = program_.streams[i];
      if (stream.name == name && stream.rank == rank) return static_cast<int>(i);
    }
    in_.fail(begin, fmt::format("there is no stream {} of rank {}", name, rank));
  }
  std::vector<Dim> numbers() { return read_dims(in_, '[', ']', known_); }
  RunNumber number() {
    const double base = in_.number();
    in_.expect('+');
    const double per_run = in_.number();
    in_.expect_word("run");
    RunNumber number(base, per_run);
    while (in_.accept('+')) number.terms.push_back(term());
    return number;
  }
  RunNumber::Term term() {
    RunNumber::Term term;
    term.factor = in_.number();
    if (in_.accept_word("dim")) {
      term.dim = read_dim(in_, " ,)@", known_);
      return term;
    }
    in_.expect_word("scalar");
    const std::size_t begin = in_.position();
    term.scalar = in_.quoted("a scalar's name in quotes");
    if (!is_scalar(term.scalar)) in_.fail(begin, "there is no such scalar");
    return term;
  }
  Compare compare() {
    const std::size_t begin = in_.position();
    const auto found = find_compare(in_.word("a comparison"));
    if (!found) in_.fail(begin, "expected eq, ne, lt, le, gt or ge");
    return *found;
  }
  int buffer_number() {
    const std::size_t begin = in_.position();
    const std::string name = in_.quoted("a buffer's name in quotes");
    const auto found = std::find_if(program_.buffers.begin(), program_.buffers.end(),
                                    [&](const ProgramBuffer& each) { return each.name == name; });
    if (found == program_.buffers.end()) in_.fail(begin, "there is no such buffer");
    return static_cast<int>(found - program_.buffers.begin());
  }
  ProgramPart part() {
    ProgramPart part;
    part.buffer = buffer_number();
    part.rank = rank();
    part.starts = numbers();
    part.sizes = numbers();
    return part;
  }

  Scanner in_;
  const std::string file_;
  const std::function<void(const Kernel&)>& verify_;
  Program program_;
  std::vector<Dim> known_{Dim::symbol(kMultiprocessors, at_least(1))};
  std::vector<std::size_t> known_before_;  // each scope that is open
  std::vector<int> recorded_;              // of each event: in which rank; -1: not yet
};

}  // namespace

std::string to_text(const Program& program) { return ProgramPrinter(program).print(); }

Program parse_program(std::string_view text, std::string_view file_name,
                      const std::function<void(const Kernel&)>& verify) {
  return ProgramParser(text, file_name, verify).parse();
}

}  // namespace tilewright::ir
