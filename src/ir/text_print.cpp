#include <fmt/format.h>

#include <iterator>

#include "ir/schedule.h"
#include "ir/text.h"
#include "ir/text_words.h"
#include "support/hash.h"

namespace tilewright::ir {
namespace {

std::string map_text(const IndexMap& map) {
  std::string text = "[";
  for (const IndexTerm& term : map) {
    if (text.size() > 1) text += ", ";
    text += fmt::format("{}:{}:{}", term.divisor, term.modulus, term.stride);
  }
  return text + "]";
}

struct AttributeText {
  std::string operator()(std::int64_t value) const { return std::to_string(value); }
  std::string operator()(double value) const { return number_text(value); }
  std::string operator()(const std::string& value) const { return quoted(value); }
  std::string operator()(const std::vector<std::int64_t>& value) const {
    return fmt::format("[{}]", fmt::join(value, ", "));
  }
  std::string operator()(Op value) const { return std::string(info(value).name); }
  std::string operator()(const Dim& value) const { return "dim(" + value.to_string() + ")"; }
  std::string operator()(const RegisterLayout& value) const {
    return "register_layout" + value.to_string();
  }
  std::string operator()(const SharedLayout& value) const {
    return "shared_layout" + value.to_string();
  }
  std::string operator()(const std::vector<IndexMap>& value) const {
    std::string text = "maps[";
    for (std::size_t i = 0; i < value.size(); ++i) text += (i ? ", " : "") + map_text(value[i]);
    return text + "]";
  }
};

class KernelPrinter {
 public:
  KernelPrinter(const Kernel& kernel, const TextOptions& options)
      : kernel_(kernel), options_(options) {}

  std::string print() {
    line(0, fmt::format("kernel {} {}", quoted(kernel_.name), name_of(kernel_.form)),
         kernel_.where);
    if (kernel_.target != implied_target(kernel_.form)) {
      line(0, "target " + quoted(kernel_.target));
    }
    for (const Dim& dim : kernel_.dims) line(0, dim_text(dim));
    for (const Parameter& parameter : kernel_.parameters) {
      std::string text = fmt::format("{} {}: {}", name_of(parameter.kind), parameter.name,
                                     tilewright::name_of(parameter.dtype));
      if (parameter.is_tensor()) text += "[" + dims_text(parameter.shape) + "]";
      line(0, text + " = " + value(parameter.value), parameter.where);
    }
    line(0, "grid (" + dims_text(kernel_.grid) + ")");
    if (kernel_.cluster != 1) line(0, fmt::format("cluster {}", kernel_.cluster));
    if (kernel_.cta_pairs) line(0, "cta_pairs");
    if (kernel_.threads != 0) line(0, fmt::format("threads {}", kernel_.threads));
    if (kernel_.resident != 1) line(0, fmt::format("resident {}", kernel_.resident));
    if (kernel_.shared_bytes != 0) line(0, fmt::format("shared_bytes {}", kernel_.shared_bytes));
    for (const Claim& claim : kernel_.claims) {
      if (options_.claims) line(0, "require " + claim.to_string(), claim.where);
    }
    for (const StatedField& field : stated_fields(kernel_.schedule)) {
      line(0, fmt::format("schedule {} = {}", field.name, field.value), field.where);
    }
    text_ += "body ";
    block(kernel_.body, 0);
    text_ += '\n';
    return std::move(text_);
  }

 private:
  static std::string value(ValueId id) { return "%" + std::to_string(id); }

  std::string typed(ValueId id) const {
    return value(id) + ": " +
           (id < kernel_.types.size() ? kernel_.types[id].to_string() : std::string("none"));
  }

  std::string location(SourceLocation where) const {
    return options_.locations ? location_text(where) : "";
  }

  void line(int indent, std::string_view content, SourceLocation where = {}) {
    text_.append(2 * indent, ' ');
    text_ += content;
    text_ += location(where) + '\n';
  }

  void block(const Block& block, int indent) {
    text_ += '(';
    for (std::size_t i = 0; i < block.arguments.size(); ++i) {
      text_ += (i ? ", " : "") + typed(block.arguments[i]);
    }
    text_ += ") {\n";
    for (const Operation& operation : block.body) print_operation(operation, indent + 1);
    text_.append(2 * indent, ' ');
    text_ += '}';
  }

  void print_operation(const Operation& operation, int indent) {
    text_.append(2 * indent, ' ');
    for (std::size_t i = 0; i < operation.results.size(); ++i) {
      text_ += (i ? ", " : "") + typed(operation.results[i]);
    }
    if (!operation.results.empty()) text_ += " = ";
    text_ += info(operation.op).name;
    for (std::size_t i = 0; i < operation.operands.size(); ++i) {
      text_ += (i ? ", " : " ") + value(operation.operands[i]);
    }
    const auto& attributes = operation.attributes.entries();
    for (std::size_t i = 0; i < attributes.size(); ++i) {
      text_ += fmt::format("{}{} = {}", i ? ", " : " {", name_of(attributes[i].first),
                           std::visit(AttributeText{}, attributes[i].second));
    }
    if (!attributes.empty()) text_ += '}';
    text_ += location(operation.where);
    for (const Block& inner : operation.blocks) {
      text_ += ' ';
      block(inner, indent);
    }
    text_ += '\n';
  }

  const Kernel& kernel_;
  const TextOptions& options_;
  std::string text_;
};

}  // namespace

std::string to_text(const Kernel& kernel, const TextOptions& options) {
  return KernelPrinter(kernel, options).print();
}

std::uint64_t form_hash(const Kernel& machine) {
  return hash64(to_text(machine, {.locations = false, .claims = false}));
}

}  // namespace tilewright::ir
