#include "ir/program_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "ir/text.h"
#include "ir/text_scanner.h"
#include "ir/text_words.h"
#include "ir/verifier.h"

namespace tilewright::ir {
namespace {

using Kind = ProgramOperation::Kind;

constexpr std::string_view kKinds[] = {"launch", "copy", "write", "wait", "record", "wait_event"};
constexpr std::string_view kBuffers[] = {"tensor", "signals", "workspace", "scratch"};

class ProgramPrinter {
 public:
  explicit ProgramPrinter(const Program& program) : program_(program) {}

  std::string print() {
    line(fmt::format("program {} {} ranks", quoted(program_.name), program_.ranks), program_.where);
    for (const ProgramBuffer& buffer : program_.buffers) {
      line(fmt::format("{} {}: {}[{}]", kBuffers[static_cast<int>(buffer.kind)],
                       quoted(buffer.name), name_of(buffer.dtype), fmt::join(buffer.shape, ", ")),
           buffer.where);
    }
    for (const ProgramStream& stream : program_.streams) {
      line(fmt::format("stream {} of {}", quoted(stream.name), stream.rank), stream.where);
    }
    for (const auto& kernel : program_.kernels) text_ += to_text(*kernel);
    for (const ProgramOperation& operation : program_.operations) this->operation(operation);
    return std::move(text_);
  }

 private:
  void line(const std::string& words, SourceLocation where) {
    text_ += words + location_text(where) + '\n';
  }
  std::string part(const ProgramPart& part) const {
    return fmt::format("{} of {} [{}] [{}]", quoted(program_.buffers[part.buffer].name), part.rank,
                       fmt::join(part.starts, ", "), fmt::join(part.sizes, ", "));
  }
  static std::string number(const RunNumber& number) {
    return fmt::format("{} + {} run", number.base, number.per_run);
  }
  void operation(const ProgramOperation& operation) {
    const ProgramStream& stream = program_.streams[operation.stream];
    std::string words = fmt::format("{} {} of {}", kKinds[static_cast<int>(operation.kind)],
                                    quoted(stream.name), stream.rank);
    switch (operation.kind) {
      case Kind::launch: {
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
      case Kind::copy:
        words += fmt::format(" to {} from {}", part(operation.to), part(operation.from));
        break;
      case Kind::write:
      case Kind::wait:
        words += fmt::format(" {} value {}", part(operation.to), number(operation.value));
        break;
      case Kind::record:
      case Kind::wait_event:
        words += fmt::format(" event {}", operation.event);
        break;
    }
    line(words, operation.where);
  }

  const Program& program_;
  std::string text_;
};

class ProgramParser {
 public:
  ProgramParser(std::string_view text, std::string_view file) : in_(text, file), file_(file) {}

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
    const std::string_view word = in_.peek_word();
    const auto index_in = [&](const auto& names) {
      return static_cast<int>(std::find(std::begin(names), std::end(names), word) -
                              std::begin(names));
    };
    if (const int kind = index_in(kBuffers); kind < static_cast<int>(std::size(kBuffers))) {
      in_.accept_word(word);
      return buffer(static_cast<ProgramBuffer::Kind>(kind), here);
    }
    const int kind = index_in(kKinds);
    if (kind == static_cast<int>(std::size(kKinds))) {
      in_.fail(begin, fmt::format("expected stream, kernel, {} or {}", fmt::join(kBuffers, ", "),
                                  fmt::join(kKinds, ", ")));
    }
    in_.accept_word(word);
    operation(static_cast<Kind>(kind), begin, here);
  }

  void kernel() {
    const std::size_t begin = in_.position();
    const Scanner::Passage passage = in_.through_line("}");
    // So that errors name the line of this text.
    const std::string text =
        std::string(static_cast<std::size_t>(passage.lines), '\n') + std::string(passage.text);
    Kernel kernel = parse_text(text, file_);
    // A hand has written it, and no pass.
    in_.within(begin, [&] { verify(kernel); });
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
    if (words && buffer.dtype != DType::i32) {
      in_.fail(at, "expected i32");
    }
    const std::size_t shape = in_.position();
    buffer.shape = in_.integers();
    if (words && buffer.shape.size() != 1) {
      in_.fail(shape, "expected one axis: words");
    }
    std::int64_t left = std::numeric_limits<std::int64_t>::max() / 16;
    for (const std::int64_t extent : buffer.shape) {
      if (extent < 0 || extent > left) in_.fail(shape, "there is no such shape");
      left /= std::max<std::int64_t>(extent, 1);
    }
    buffer.where = in_.location_or(here);
    program_.buffers.push_back(std::move(buffer));
  }

  void stream(SourceLocation here) {
    ProgramStream stream;
    stream.name = in_.quoted("the stream's name in quotes");
    stream.rank = rank();
    stream.where = in_.location_or(here);
    program_.streams.push_back(std::move(stream));
  }

  void operation(Kind kind, std::size_t begin, SourceLocation here) {
    ProgramOperation operation;
    operation.kind = kind;
    operation.stream = stream_number();
    switch (kind) {
      case Kind::launch:
        launch(operation);
        break;
      case Kind::copy:
        in_.expect_word("to");
        operation.to = part();
        in_.expect_word("from");
        operation.from = part();
        if (operation.to.sizes != operation.from.sizes ||
            program_.buffers[operation.to.buffer].dtype !=
                program_.buffers[operation.from.buffer].dtype) {
          in_.fail(begin, "a copy between parts of different shapes or dtypes");
        }
        break;
      case Kind::write:
      case Kind::wait: {
        const std::size_t at = in_.position();
        operation.to = part();
        if (program_.buffers[operation.to.buffer].kind != ProgramBuffer::Kind::signals ||
            operation.to.sizes != std::vector<std::int64_t>{1}) {
          in_.fail(at, "expected one word of signals");
        }
        in_.expect_word("value");
        operation.value = number();
        break;
      }
      case Kind::record:
      case Kind::wait_event:
        event(operation);
        break;
    }
    operation.where = in_.location_or(here);
    if (kind == Kind::launch) in_.within(begin, [&] { check_launch(program_, operation); });
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
    in_.list('(', ')', [&] {
      const std::size_t at = in_.position();
      operation.tensors.push_back(part());
      if (operation.tensors.back().rank != program_.streams[operation.stream].rank) {
        in_.fail(at, "a launch gets the tensors of its own rank");
      }
    });
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
    if (operation.kind == Kind::record) {
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
  RunNumber number() {
    const double base = in_.number();
    in_.expect('+');
    const double per_run = in_.number();
    in_.expect_word("run");
    return {base, per_run};
  }
  ProgramPart part() {
    const std::size_t begin = in_.position();
    const std::string name = in_.quoted("a buffer's name in quotes");
    const auto found = std::find_if(program_.buffers.begin(), program_.buffers.end(),
                                    [&](const ProgramBuffer& each) { return each.name == name; });
    if (found == program_.buffers.end()) in_.fail(begin, "there is no such buffer");
    ProgramPart part;
    part.buffer = static_cast<int>(found - program_.buffers.begin());
    part.rank = rank();
    part.starts = in_.integers();
    part.sizes = in_.integers();
    bool inside =
        part.starts.size() == found->shape.size() && part.sizes.size() == found->shape.size();
    for (std::size_t axis = 0; inside && axis < found->shape.size(); ++axis) {
      inside = part.starts[axis] >= 0 && part.sizes[axis] >= 0 &&
               part.sizes[axis] <= found->shape[axis] &&
               part.starts[axis] <= found->shape[axis] - part.sizes[axis];
    }
    if (!inside) {
      in_.fail(begin, fmt::format("the box is not inside of {} [{}]", name,
                                  fmt::join(found->shape, ", ")));
    }
    return part;
  }

  Scanner in_;
  const std::string file_;
  Program program_;
  std::vector<int> recorded_;  // of each event: in which rank; -1: not yet
};

}  // namespace

std::string to_text(const Program& program) { return ProgramPrinter(program).print(); }

Program parse_program(std::string_view text, std::string_view file_name) {
  return ProgramParser(text, file_name).parse();
}

}  // namespace tilewright::ir
