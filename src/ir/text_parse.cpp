#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/claim.h"
#include "ir/schedule.h"
#include "ir/text.h"
#include "ir/text_dims.h"
#include "ir/text_scanner.h"
#include "support/nearest_name.h"

namespace tilewright::ir {
namespace {

// What operations are called elsewhere: in C++, and in other languages of tiles.
constexpr std::pair<std::string_view, std::string_view> kOtherNames[] = {
    {"permute", "transpose"}, {"T", "transpose"},       {"where", "select"},
    {"matmul", "dot"},        {"full", "splat"},        {"broadcast", "splat"},
    {"arange", "iota"},       {"sum", "reduce"},        {"reduce_sum", "reduce"},
    {"reduce_max", "reduce"}, {"reduce_min", "reduce"}, {"negate", "neg"},
    {"subtract", "sub"},      {"multiply", "mul"},      {"divide", "div"},
    {"maximum", "max"},       {"minimum", "min"},       {"for", "for_loop"},
    {"while", "while_loop"},  {"if", "if_then"}};

std::vector<std::string> operation_names() {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kOperationCount; ++i) {
    names.emplace_back(info(static_cast<Op>(i)).name);
  }
  return names;
}

// Which operation an unknown name may mean. Names that are far from all say nothing.
std::string operation_meant(std::string_view name) {
  for (const auto& [other, operation] : kOtherNames) {
    if (name == other) return fmt::format("the operation that does this is {}", operation);
  }
  const std::vector<std::string> names = operation_names();
  if (nearest_text(name, names).empty()) return {};
  return fmt::format("the operation whose name is nearest is {}", nearest_name(name, names));
}

// Deeper than any kernel, shallow enough that hostile text cannot exhaust the stack.
constexpr int kMaximumNesting = 160;  // what passes make of a kernel, too

class KernelParser {
 public:
  KernelParser(std::string_view text, std::string_view file, int lines_before = 0,
               bool takes_places = true)
      : in_(text, file, lines_before, takes_places) {}

  Kernel parse() {
    header();
    const Dim multiprocessors = Dim::symbol(kMultiprocessors, at_least(1));
    bool has_grid = false;
    while (!in_.accept_word("body")) has_grid |= clause(multiprocessors);
    if (!has_grid) in_.expected("a \"grid\" line before the body");
    kernel_.body = block();
    if (!in_.at_end()) in_.expected("the end of the text");
    for (std::size_t id = 0; id < defined_.size(); ++id) {
      if (defined_[id]) continue;
      in_.fail(first_use_[id], fmt::format("%{} is used but never defined", text_id_[id]));
    }
    return std::move(kernel_);
  }

 private:
  void header() {
    const SourceLocation here = in_.next_location();
    in_.expect_word("kernel");
    const std::size_t name = in_.position();
    kernel_.name = in_.quoted("the kernel's name in quotes");
    if (!is_identifier(kernel_.name)) {
      in_.fail(name, "a kernel's name is of letters, digits and _, and begins with a letter");
    }
    const std::size_t begin = in_.position();
    const std::string_view form = in_.peek_word();
    for (const Form each : {Form::tile, Form::scheduled, Form::machine}) {
      if (name_of(each) != form) continue;
      kernel_.form = each;
      kernel_.target = implied_target(each);
      in_.accept_word(form);
      kernel_.where = in_.location_or(here);
      return;
    }
    in_.fail(begin, "expected the kernel's form: tile, scheduled or machine");
  }

  // One line before the body; whether it was the grid's.
  bool clause(const Dim& multiprocessors) {
    const std::size_t begin = in_.position();
    const SourceLocation here = in_.next_location();
    const std::string_view word = in_.peek_word();
    if (in_.accept_word("dim")) {
      dim_clause();
    } else if (in_.accept_word("target")) {
      kernel_.target = in_.quoted("the target's name in quotes");
    } else if (const auto kind = find_parameter_kind(word)) {
      in_.accept_word(word);
      parameter(*kind, here);
    } else if (in_.accept_word("grid")) {
      if (std::none_of(known_.begin(), known_.end(),
                       [](const Dim& dim) { return dim.name() == kMultiprocessors; })) {
        known_.push_back(multiprocessors);
      }
      kernel_.grid = dims('(', ')');
      return true;
    } else if (in_.accept_word("cluster")) {
      kernel_.cluster = in_.integer();
    } else if (in_.accept_word("cta_pairs")) {
      kernel_.cta_pairs = true;
    } else if (in_.accept_word("threads")) {
      kernel_.threads = in_.integer();
    } else if (in_.accept_word("resident")) {
      kernel_.resident = in_.integer();
    } else if (in_.accept_word("shared_bytes")) {
      kernel_.shared_bytes = in_.integer();
    } else if (in_.accept_word("require")) {
      claim(here);
    } else if (in_.accept_word("schedule")) {
      schedule(here);
    } else {
      in_.fail(begin,
               "expected target, dim, in, out, inout, scalar, workspace, scratch, symmetric, "
               "signals, grid, cluster, cta_pairs, threads, resident, shared_bytes, require, "
               "schedule or "
               "body");
    }
    return false;
  }

  void claim(SourceLocation here) {
    const std::size_t begin = in_.position();
    const auto figure = find_figure(in_.word("a figure such as registers"));
    if (!figure) in_.fail(begin, "there is no such figure to make a claim about");
    std::string name;
    if (is_named(*figure)) {
      in_.expect('(');
      name = in_.quoted("a name in quotes");
      in_.expect(')');
    }
    const Claim::Relation relation = in_.accept('<')   ? Claim::Relation::at_most
                                     : in_.accept('>') ? Claim::Relation::at_least
                                                       : Claim::Relation::equal;
    if (relation == Claim::Relation::equal) in_.expect('=');
    in_.expect('=');
    const std::int64_t bound = in_.integer();
    kernel_.claims.emplace_back(*figure, std::move(name), relation, bound, in_.location_or(here));
  }

  void schedule(SourceLocation here) {
    const std::size_t begin = in_.position();
    const std::string field(in_.word("a field such as stages"));
    in_.expect('=');
    const std::string_view value = in_.peek_word();
    if (!in_.accept_word(value)) in_.expected("a value");
    const SourceLocation where = in_.location_or(here);
    in_.within(begin, [&] {
      state_field(kernel_.schedule, field, value, where);
      check_ranges(kernel_.schedule);
    });
  }

  void dim_clause() {
    kernel_.dims.push_back(read_dim_clause(in_, kernel_.dims));
    known_.push_back(kernel_.dims.back());
  }

  void parameter(Parameter::Kind kind, SourceLocation here) {
    Parameter parameter;
    parameter.kind = kind;
    parameter.name = in_.word("a parameter's name");
    in_.expect(':');
    parameter.dtype = in_.dtype();
    Type type = Type::scalar(parameter.dtype);
    if (parameter.is_tensor()) {
      parameter.shape = dims('[', ']');
      type = Type::of(Type::Kind::tensor, parameter.dtype,
                      {static_cast<std::int64_t>(parameter.shape.size())});
    }
    in_.expect('=');
    const std::size_t begin = in_.position();
    parameter.value = define(begin, value_number(), std::move(type));
    parameter.where = in_.location_or(here);
    kernel_.parameters.push_back(std::move(parameter));
  }

  std::vector<Dim> dims(char begin, char end) { return read_dims(in_, begin, end, known_); }

  // The bracketed token that begins here.
  template <typename Layout>
  Layout layout() {
    const std::size_t begin = in_.position();
    if (!in_.next_is('[')) in_.expected("a layout in brackets");
    std::string token(in_.until("]"));
    in_.expect(']');
    token += ']';
    return in_.within(begin, [&] { return Layout::parse(token); });
  }

  Type type() {
    constexpr std::string_view names[] = {
        "none",      "scalar",    "tile",       "pending",       "tensor", "shared", "view",
        "mbarriers", "registers", "tensor_map", "tensor_memory", "memory", "window"};
    const std::string_view name = in_.peek_word();
    const auto* found = std::find(std::begin(names), std::end(names), name);
    if (found == std::end(names) || name == "scalar") return Type::scalar(in_.dtype());
    in_.accept_word(name);
    Type type = Type::of(static_cast<Type::Kind>(found - names));
    if (type.is(Type::Kind::none) || type.is(Type::Kind::tensor_map)) return type;
    in_.expect('<');
    if (has_elements(type.kind)) {
      type.dtype = in_.dtype();
      in_.expect(',');
    }
    if (!in_.next_is('>') && !in_.next_is(',')) {
      do type.shape.push_back(in_.integer("a size"));
      while (in_.accept('x'));
    }
    if (in_.accept(',')) type.layout = layout<RegisterLayout>();
    in_.expect('>');
    return type;
  }

  std::uint64_t value_number() {
    in_.expect('%');
    return in_.integer<std::uint64_t>("a value's number");
  }

  // Numbers of the text in order of appearance.
  ValueId id_of(std::size_t position, std::uint64_t number) {
    const auto [entry, fresh] = ids_.emplace(number, static_cast<ValueId>(kernel_.types.size()));
    if (fresh) {
      kernel_.add_value({});
      defined_.push_back(false);
      first_use_.push_back(position);
      text_id_.push_back(number);
    }
    return entry->second;
  }

  ValueId define(std::size_t position, std::uint64_t number, Type type) {
    const ValueId id = id_of(position, number);
    if (defined_[id]) in_.fail(position, fmt::format("%{} is defined twice", number));
    defined_[id] = true;
    kernel_.types[id] = std::move(type);
    return id;
  }

  ValueId definition() {
    const std::size_t begin = in_.position();
    const std::uint64_t number = value_number();
    in_.expect(':');
    return define(begin, number, type());
  }

  Block block() {
    Block block;
    in_.list('(', ')', [&] { block.arguments.push_back(definition()); });
    const std::size_t begin = in_.position();
    in_.expect('{');
    if (++nesting_ > kMaximumNesting) {
      in_.fail(begin, fmt::format("blocks are nested more than {} deep", kMaximumNesting));
    }
    while (!in_.accept('}')) block.body.push_back(operation());
    --nesting_;
    return block;
  }

  Operation operation() {
    Operation operation;
    const SourceLocation here = in_.next_location();
    if (in_.next_is('%')) {
      do operation.results.push_back(definition());
      while (in_.accept(','));
      in_.expect('=');
    }
    operation.op = op("an operation or '}'");
    // Operands stay on the line: the next line may begin with a result.
    if (in_.line_continues_with('%')) {
      do {
        const std::size_t begin = in_.position();
        operation.operands.push_back(id_of(begin, value_number()));
      } while (in_.accept(','));
    }
    if (in_.line_continues_with('{')) attributes(operation.attributes);
    operation.where = in_.location_or(here);
    while (in_.next_is('(')) operation.blocks.push_back(block());
    return operation;
  }

  Op op(std::string_view what) {
    const std::size_t begin = in_.position();
    const std::string_view name = in_.word(what);
    const auto result = find_op(name);
    if (!result) {
      in_.fail(begin, fmt::format("unknown operation \"{}\"", name), operation_meant(name));
    }
    return *result;
  }

  void attributes(Attributes& attributes) {
    in_.expect('{');
    do {
      const std::size_t begin = in_.position();
      const std::string_view name = in_.word("an attribute's name");
      const auto key = find_key(name);
      if (!key) in_.fail(begin, fmt::format("unknown attribute \"{}\"", name));
      if (attributes.has(*key)) in_.fail(begin, fmt::format("{} is given twice", name));
      in_.expect('=');
      attributes.set(*key, attribute());
    } while (in_.accept(','));
    in_.expect('}');
  }

  Attribute attribute() {
    if (in_.next_is_number()) return in_.number();
    if (in_.next_is('"')) return in_.quoted("a text");
    if (in_.next_is('[')) return in_.integers();
    const std::string_view word = in_.peek_word();
    if (word.empty() || is_digit(word[0])) {
      return in_.integer(
          "an integer, a number, a text, a list, a function, dim(...), "
          "register_layout[...], shared_layout[...] or maps[...]");
    }
    if (in_.accept_word("nan")) return not_a_number();
    if (in_.accept_word("register_layout")) return layout<RegisterLayout>();
    if (in_.accept_word("shared_layout")) return layout<SharedLayout>();
    if (in_.accept_word("maps")) return maps();
    const Op function = op("a function");
    if (function != Op::dim || !in_.accept('(')) return function;
    const Dim result = read_dim(in_, ")", known_);
    in_.expect(')');
    return result;
  }

  // Behind the word nan: nothing, or the bits in parentheses, as in nan(0x7ff8000000000001).
  double not_a_number() {
    if (!in_.accept('(')) return std::numeric_limits<double>::quiet_NaN();
    const std::size_t begin = in_.position();
    const std::string_view text = in_.until(")");
    const char* const end = text.data() + text.size();
    std::uint64_t bits = 0;
    const bool is_read =
        text.substr(0, 2) == "0x" && std::from_chars(text.data() + 2, end, bits, 16).ptr == end;
    const double value = std::bit_cast<double>(bits);
    if (!is_read || value == value) in_.fail(begin, "expected 0x and the bits of a NaN");
    in_.expect(')');
    return value;
  }

  std::vector<IndexMap> maps() {
    std::vector<IndexMap> list;
    in_.list('[', ']', [&] { list.push_back(map()); });
    return list;
  }

  IndexMap map() {
    IndexMap terms;
    in_.list('[', ']', [&] {
      IndexTerm term;
      term.divisor = in_.integer();
      in_.expect(':');
      term.modulus = in_.integer();
      in_.expect(':');
      term.stride = in_.integer();
      terms.push_back(term);
    });
    return terms;
  }

  Scanner in_;
  Kernel kernel_;
  std::vector<Dim> known_;
  std::unordered_map<std::uint64_t, ValueId> ids_;
  // Of every value: whether it is defined, where it appeared first, its number in the text.
  std::vector<bool> defined_;
  std::vector<std::size_t> first_use_;
  std::vector<std::uint64_t> text_id_;
  int nesting_ = 0;
};

}  // namespace

Kernel parse_text(std::string_view text, std::string_view file_name) {
  return KernelParser(text, file_name).parse();
}

Kernel read_verified(std::string_view text, std::string_view file_name,
                     const std::function<void(const Kernel&)>& verify, int lines_before) {
  Kernel kernel = KernelParser(text, file_name, lines_before).parse();
  try {
    verify(kernel);
  } catch (const Error&) {
    // Of the same kernel with the places where it stands in this text.
    verify(KernelParser(text, file_name, lines_before, false).parse());
    throw;
  }
  return kernel;
}

}  // namespace tilewright::ir
