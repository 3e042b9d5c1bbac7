#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "ptx/control_flow.h"
#include "ptx/module.h"
#include "ptx/record.h"
#include "ptx/scanner.h"

namespace tilewright::ptx {
namespace {

constexpr std::string_view kModifierNames[] = {
#define TW_MODIFIER(name, text) text,
#include "ptx/modifiers.def"
#undef TW_MODIFIER
};

constexpr std::string_view kSpecialNames[] = {
    "%tid.x",        "%tid.y",           "%tid.z",
    "%ntid.x",       "%ntid.y",          "%ntid.z",
    "%ctaid.x",      "%ctaid.y",         "%ctaid.z",
    "%nctaid.x",     "%nctaid.y",        "%nctaid.z",
    "%laneid",       "%warpid",          "%clusterid.x",
    "%nclusterid.x", "%cluster_ctarank", "%cluster_nctarank",
    "%clock",        "%clock64",         "%globaltimer",
    "%smid",
};

// none: it names no type.
Type find_type(std::string_view name) {
  for (std::size_t i = 1; i < std::size(kTypes); ++i) {
    if (kTypes[i].name == name) return static_cast<Type>(i);
  }
  return Type::none;
}

bool has_word(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(' '), list.size());
    if (list.substr(0, end) == word) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

std::int64_t rounded_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

class Parser {
 public:
  Parser(std::string_view text, const std::string& file) : scan_(text, file) {}

  Module run() {
    while (scan_.peek().kind != Token::Kind::end) top_level();
    return std::move(module_);
  }

 private:
  // A pair of braces: registers, variables and labels that are known in it.
  struct Scope {
    std::map<std::string, int, std::less<>> registers, labels;
  };
  struct Jump {
    std::size_t instruction = 0;
    std::string label;
    std::size_t depth = 0;  // of the scope that it stands in
  };

  void top_level() {
    const Token token = scan_.take();
    if (token.is(".version")) {
      const int line = token.line;
      while (scan_.peek().kind != Token::Kind::end && scan_.peek().line == line) {
        module_.version += scan_.take().text;
      }
    } else if (token.is(".target")) {
      module_.target = scan_.word("a target");
      scan_.skip_line(token.line);
    } else if (token.is(".address_size")) {
      if (scan_.integer("the size of addresses") != 64) {
        scan_.fail(token.line, "addresses are not of 64 bits");
      }
    } else if (token.is(".file") || token.is(".loc")) {
      scan_.skip_line(token.line);
    } else if (token.is(".section")) {
      while (!scan_.peek().is("{")) scan_.take();
      skip_braces();
    } else if (token.is(".visible") || token.is(".weak") || token.is(".extern") ||
               token.is(".common")) {
      return;
    } else if (token.is(".entry")) {
      entry(token.line);
    } else if (token.is(".func")) {
      // A function is known once it is called, which is refused there.
      while (!scan_.peek().is(";") && !scan_.peek().is("{")) take_any();
      if (scan_.peek().is("{")) return skip_braces();
      scan_.expect(";");
    } else if (token.is(".global") || token.is(".const") || token.is(".shared")) {
      symbols_.push_back(variable(token.is(".shared") ? Space::shared : Space::global));
    } else {
      scan_.fail(token.line, fmt::format("{} is no directive that is known here", token.text));
    }
  }

  Token take_any() {
    if (scan_.peek().kind == Token::Kind::end) scan_.fail(scan_.peek().line, "the text ends early");
    return scan_.take();
  }

  void skip_braces() {
    scan_.expect("{");
    for (int depth = 1; depth > 0;) {
      const Token token = take_any();
      depth += token.is("{") ? 1 : token.is("}") ? -1 : 0;
    }
  }

  // Behind its space: .align 8 .b8 name[128] = {1, 2};
  Variable variable(Space space) {
    Variable made;
    made.space = space;
    Type type = Type::b8;
    for (;;) {
      const Token token = take_any();
      if (token.is(".align")) {
        made.alignment = scan_.integer("an alignment");
      } else if (token.text.starts_with('.') && token.text.size() > 1) {
        const Type found = find_type(token.text.substr(1));
        if (found != Type::none) type = found;
        if (found == Type::none && !token.is(".ptr") && !token.is(".global") &&
            !token.is(".shared")) {
          scan_.fail(token.line, fmt::format("{} is no type", token.text));
        }
      } else {
        made.name = token.text;
        break;
      }
    }
    made.bytes = size_of(type);
    made.alignment = std::max<std::int64_t>(made.alignment, made.bytes);
    while (scan_.accept("[")) {
      made.bytes *= scan_.peek().is("]") ? 0 : scan_.integer("a length");
      scan_.expect("]");
    }
    if (scan_.accept("=")) initial(made, size_of(type));
    if (space != Space::param) scan_.expect(";");
    if (made.alignment < 1 || made.bytes < 0 || made.bytes > (std::int64_t{1} << 32)) {
      scan_.fail(scan_.peek().line, fmt::format("{} has no such size", made.name));
    }
    return made;
  }

  void initial(Variable& made, int bytes) {
    made.initial.resize(static_cast<std::size_t>(made.bytes));
    const auto put = [&](std::int64_t at) {
      const std::int64_t value = scan_.integer("a number");
      if (at + bytes > made.bytes) scan_.fail(scan_.peek().line, "more values than elements");
      std::memcpy(made.initial.data() + at, &value, static_cast<std::size_t>(bytes));
    };
    if (!scan_.accept("{")) return put(0);
    std::int64_t at = 0;
    do {
      put(at);
      at += bytes;
    } while (scan_.accept(","));
    scan_.expect("}");
  }

  void entry(int line) {
    kernel_ = {};
    kernel_.line = line;
    kernel_.name = scan_.word("a kernel's name");
    scopes_.assign(1, {});
    jumps_.clear();
    kernel_.symbols = symbols_;
    if (scan_.accept("(")) parameters();
    while (!scan_.peek().is("{")) kernel_directive();
    scan_.expect("{");
    block();
    if (!jumps_.empty()) {
      scan_.fail(kernel_.instructions[jumps_[0].instruction].line,
                 fmt::format("there is no label {}", jumps_[0].label));
    }
    for (Variable& symbol : kernel_.symbols) {
      if (symbol.space == Space::shared && symbol.bytes > 0)
        place(symbol, kernel_.static_shared_bytes);
      if (symbol.space == Space::local) place(symbol, kernel_.local_bytes);
    }
    find_joins(kernel_);
    module_.kernels.push_back(std::move(kernel_));
  }

  static void place(Variable& symbol, std::int64_t& end) {
    symbol.offset = rounded_up(end, symbol.alignment);
    end = symbol.offset + symbol.bytes;
  }

  void parameters() {
    if (scan_.accept(")")) return;
    do {
      scan_.expect(".param");
      kernel_.parameters.push_back(variable(Space::param));
      place(kernel_.parameters.back(), kernel_.parameter_bytes);
    } while (scan_.accept(","));
    scan_.expect(")");
    for (const Variable& each : kernel_.parameters) kernel_.symbols.push_back(each);
  }

  void kernel_directive() {
    const Token token = take_any();
    std::array<std::int64_t, 3> numbers{1, 1, 1};
    std::size_t count = 0;
    if (scan_.peek().kind == Token::Kind::number) {
      do {
        const std::int64_t number = scan_.integer("a number");
        if (count < 3) numbers[count++] = number;
      } while (scan_.accept(","));
    }
    if (token.is(".maxntid") || token.is(".reqntid")) {
      kernel_.most_threads = numbers;
    } else if (token.is(".reqnctapercluster")) {
      kernel_.cluster = numbers[0];
    } else if (!token.is(".minnctapersm") && !token.is(".maxnreg") &&
               !token.is(".explicitcluster") && !token.is(".maxclusterrank")) {
      scan_.fail(token.line, fmt::format("{} is no directive that is known here", token.text));
    }
  }

  // Up to its closing brace.
  void block() {
    while (!scan_.accept("}")) statement();
    // What jumps to labels of this scope does so from here or from inner ones.
    const Scope& scope = scopes_.back();
    for (std::size_t i = 0; i < jumps_.size();) {
      Jump& jump = jumps_[i];
      const auto found = scope.labels.find(jump.label);
      if (jump.depth < scopes_.size() || found == scope.labels.end()) {
        jump.depth = std::min(jump.depth, scopes_.size() - 1);
        ++i;
        continue;
      }
      kernel_.instructions[jump.instruction].target = found->second;
      jumps_.erase(jumps_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    scopes_.pop_back();
  }

  void statement() {
    const Token token = scan_.peek();
    if (token.kind == Token::Kind::end) scan_.fail(token.line, "the kernel does not end");
    if (scan_.accept("{")) {
      scopes_.emplace_back();
      return block();
    }
    if (scan_.accept(";")) return;
    if (token.is("@")) return instruction();
    if (token.kind != Token::Kind::word) {
      scan_.fail(token.line, fmt::format("{} is no instruction", token.text));
    }
    if (token.is(".loc") || token.is(".file")) {
      scan_.take();
      return scan_.skip_line(token.line);
    }
    if (token.is(".pragma")) {
      while (!scan_.peek().is(";")) take_any();
      return scan_.expect(";");
    }
    if (scan_.accept(".reg")) return registers();
    for (const auto& [name, space] :
         {std::pair<std::string_view, Space>{".shared", Space::shared}, {".local", Space::local}}) {
      if (scan_.accept(name)) return void(kernel_.symbols.push_back(variable(space)));
    }
    if (token.text[0] == '.') {
      scan_.fail(token.line, fmt::format("{} is no directive that is known here", token.text));
    }
    instruction();
  }

  void registers() {
    const std::string_view word = scan_.word("a type");
    const Type type = word.size() > 1 ? find_type(word.substr(1)) : Type::none;
    if (type == Type::none)
      scan_.fail(scan_.peek().line, fmt::format("{} is no type of registers", word));
    constexpr std::int64_t kMost = 1 << 20;
    do {
      const int line = scan_.peek().line;
      const std::string name(scan_.word("a register's name"));
      if (scan_.accept("<")) {
        const std::int64_t count = scan_.integer("a count");
        scan_.expect(">");
        if (count < 0 || kernel_.registers + count > kMost) {
          scan_.fail(line, fmt::format("more than {} registers", kMost));
        }
        for (std::int64_t i = 0; i < count; ++i) add_register(name + std::to_string(i), type);
      } else {
        add_register(name, type);
      }
    } while (scan_.accept(","));
    scan_.expect(";");
  }

  void add_register(const std::string& name, Type type) {
    scopes_.back().registers[name] = kernel_.registers++;
    kernel_.register_types.push_back(type);
  }

  std::optional<int> find_register(std::string_view name) const {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      const auto found = scope->registers.find(name);
      if (found != scope->registers.end()) return found->second;
    }
    return std::nullopt;
  }

  void instruction() {
    Instruction made;
    made.line = scan_.peek().line;
    if (scan_.accept("@")) {
      made.guard_negated = scan_.accept("!");
      const std::string_view name = scan_.word("a predicate");
      const auto found = find_register(name);
      if (!found) scan_.fail(made.line, fmt::format("there is no register {}", name));
      made.guard = *found;
    }
    const std::string_view name = scan_.word("an instruction");
    if (made.guard < 0 && scan_.accept(":")) {
      scopes_.back().labels[std::string(name)] = static_cast<int>(kernel_.instructions.size());
      return;
    }
    name_of_instruction(made, name);
    while (!scan_.accept(";")) {
      made.operands.push_back(operand(made));
      if (!scan_.peek().is(";")) scan_.expect(",");
    }
    check_operands(made, name);
    kernel_.instructions.push_back(std::move(made));
  }

  void name_of_instruction(Instruction& made, std::string_view name) {
    const std::span<const Record* const> records = find_records(name);
    if (records.empty()) {
      scan_.fail(made.line, fmt::format("the instruction {} is not known here", name));
    }
    std::string_view unknown;
    for (const Record* record : records) {
      Instruction read = made;
      read.record = record;
      unknown = read_words(read, name.substr(record->name.size()));
      if (unknown.empty()) return void(made = std::move(read));
    }
    scan_.fail(made.line, fmt::format("{} of {} is not known here", unknown, name));
  }

  // The first of the words that the record does not have; empty where it has all.
  static std::string_view read_words(Instruction& made, std::string_view rest) {
    while (!rest.empty()) {
      rest.remove_prefix(1);
      const std::size_t end = std::min(rest.find('.'), rest.size());
      const std::string_view word = rest.substr(0, end);
      rest.remove_prefix(end);
      if (has_word(made.record->modifiers, word)) {
        const auto* found = std::find(std::begin(kModifierNames), std::end(kModifierNames), word);
        made.modifiers.set(static_cast<std::size_t>(found - std::begin(kModifierNames)));
      } else if (const Type type = find_type(word);
                 type != Type::none && has_word(made.record->types, word)) {
        // Of three types the last two are the same, and of four the first and the last.
        if (made.type == Type::none) {
          made.type = type;
        } else if (made.second == Type::none) {
          made.second = type;
        }
      } else if (!shape(made, word)) {
        return word.empty() ? std::string_view(".") : word;
      }
    }
    return {};
  }

  // m64n128k16.
  static bool shape(Instruction& made, std::string_view word) {
    if (made.record->name != "wgmma.mma_async" || !word.starts_with("m64n")) return false;
    const std::size_t k = word.find('k');
    if (k == std::string_view::npos) return false;
    const auto number = [](std::string_view digits) {
      int value = 0;
      for (const char c : digits)
        value = c < '0' || c > '9' || value > 999 ? -1 : value * 10 + c - '0';
      return value;
    };
    made.n = number(word.substr(4, k - 4));
    made.k = number(word.substr(k + 1));
    return made.n > 0 && made.n <= 256 && made.n % 8 == 0 && made.k > 0 && made.k <= 32;
  }

  Operand operand(Instruction& made) {
    const Token token = scan_.peek();
    if (scan_.accept("!")) {
      Operand inner = operand(made);
      inner.negated = true;
      return inner;
    }
    if (scan_.accept("[")) return address(made);
    if (scan_.accept("{")) return vector(made);
    if (token.kind == Token::Kind::number || token.is("-")) return number();
    const std::string_view name = scan_.word("an operand");
    Operand made_operand;
    const auto found = find_register(name);
    if (found || name == "_") {
      if (found) made_operand.kind = Operand::Kind::reg;
      made_operand.index = found.value_or(-1);
      if (scan_.accept("|")) {
        const std::string_view second = scan_.word("a predicate");
        const auto other = find_register(second);
        if (!other && second != "_") {
          scan_.fail(token.line, fmt::format("there is no register {}", second));
        }
        made_operand.second = other.value_or(-1);
      }
      return made_operand;
    }
    const auto* special = std::find(std::begin(kSpecialNames), std::end(kSpecialNames), name);
    if (special != std::end(kSpecialNames)) {
      made_operand.kind = Operand::Kind::special;
      made_operand.index = static_cast<int>(special - std::begin(kSpecialNames));
      return made_operand;
    }
    for (std::size_t i = kernel_.symbols.size(); i-- > 0;) {
      if (kernel_.symbols[i].name != name) continue;
      made_operand.kind = Operand::Kind::symbol;
      made_operand.index = static_cast<int>(i);
      return made_operand;
    }
    if (name[0] == '%' || made.record->operands.find('l') == std::string_view::npos) {
      scan_.fail(token.line, fmt::format("there is no register or variable {}", name));
    }
    made_operand.kind = Operand::Kind::label;
    jumps_.push_back({kernel_.instructions.size(), std::string(name), scopes_.size()});
    return made_operand;
  }

  Operand number() {
    const bool negative = scan_.accept("-");
    const Token token = scan_.take();
    if (token.kind != Token::Kind::number) {
      scan_.fail(token.line, fmt::format("{} is no number", token.text));
    }
    Operand made;
    made.kind = Operand::Kind::constant;
    made.index = static_cast<int>(kernel_.constants.size());
    kernel_.constants.emplace_back().fill(negative ? 0 - token.bits : token.bits);
    return made;
  }

  Operand vector(Instruction& made) {
    Operand all;
    all.kind = Operand::Kind::vector;
    if (scan_.accept("}")) return all;
    do {
      all.parts.push_back(operand(made));
    } while (scan_.accept(","));
    scan_.expect("}");
    return all;
  }

  Operand address(Instruction& made) {
    Operand all;
    all.kind = Operand::Kind::address;
    all.parts.push_back(operand(made));
    if (scan_.accept("+")) {
      all.offset = scan_.integer("an offset");
    } else if (scan_.peek().is("-")) {
      all.offset = scan_.integer("an offset");
    }
    while (scan_.accept(",")) {
      const Operand more = operand(made);
      all.parts.insert(all.parts.end(), more.parts.begin(), more.parts.end());
    }
    scan_.expect("]");
    return all;
  }

  void check_operands(const Instruction& made, std::string_view name) {
    using Kind = Operand::Kind;
    std::size_t at = 0;
    bool optional = false;
    for (const char letter : made.record->operands) {
      if (letter == ' ') continue;
      if (letter == '?') {
        optional = true;
        continue;
      }
      if (at == made.operands.size()) {
        if (optional) return;
        scan_.fail(made.line, fmt::format("{} with {} operands", name, at));
      }
      const Kind kind = made.operands[at++].kind;
      const bool value = kind == Kind::reg || kind == Kind::constant || kind == Kind::special ||
                         kind == Kind::symbol;
      const bool fits = letter == 'd'   ? kind == Kind::reg || kind == Kind::sink
                        : letter == 'p' ? kind == Kind::reg
                        : letter == 's' ? value
                        : letter == 'v' ? kind == Kind::vector || value
                        : letter == 'a' ? kind == Kind::address
                        : letter == 'w' ? kind == Kind::address || value
                                        : kind == Kind::label;
      if (!fits) scan_.fail(made.line, fmt::format("{}: operand {} is of another kind", name, at));
    }
    if (at < made.operands.size()) {
      scan_.fail(made.line, fmt::format("{} with {} operands", name, made.operands.size()));
    }
  }

  Scanner scan_;
  Module module_;
  std::vector<Variable> symbols_;  // of the module
  Kernel kernel_;
  std::vector<Scope> scopes_;
  std::vector<Jump> jumps_;
};

}  // namespace

bool is_known_word(std::string_view word) {
  return find_type(word) != Type::none ||
         std::find(std::begin(kModifierNames), std::end(kModifierNames), word) !=
             std::end(kModifierNames);
}

const Kernel* Module::find(std::string_view name) const {
  for (const Kernel& kernel : kernels) {
    if (kernel.name == name) return &kernel;
  }
  return nullptr;
}

Module parse(std::string_view text, const std::string& file) { return Parser(text, file).run(); }

}  // namespace tilewright::ptx
