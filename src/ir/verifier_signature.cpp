#include <array>
#include <cctype>

#include "ir/verifier_context.h"

namespace tilewright::ir {
namespace {

// Attributes: name:type, a suffix ? where it may be absent. Types: integer, value (integer or
// number), text, list, function, dim, register_layout, shared_layout, maps.
struct AttributeRow {
  Op op;
  std::string_view attributes;
};

constexpr AttributeRow kAttributes[] = {
    {Op::constant, "value:value"},
    {Op::dim, "dim:dim"},
    {Op::load, "sizes:list layout:register_layout?"},
    {Op::store, "sizes:list"},
    {Op::iota, "axis:integer layout:register_layout?"},
    {Op::splat, "layout:register_layout?"},
    {Op::reduce, "function:function axis:integer partial:integer? first:integer? count:integer?"},
    {Op::transpose, "permutation:list"},
    {Op::slice, "offsets:list"},
    {Op::own_first, "count:integer"},
    {Op::own_end, "count:integer"},
    {Op::load_index, "semantics:text? scope:text?"},
    {Op::store_index, "semantics:text scope:text?"},
    {Op::atomic_add, "semantics:text? scope:text?"},
    {Op::reduce_add, "semantics:text scope:text"},
    {Op::wait_flag, "compare:text semantics:text scope:text"},
    {Op::fence, "scope:text"},
    {Op::shared, "name:text layout:shared_layout stages:integer offset:integer? scratch:integer?"},
    {Op::mbarriers, "name:text arrivals:integer offset:integer?"},
    {Op::tensor_map, "name:text box:list swizzle:integer ragged:integer? peers:integer?"},
    {Op::role, "name:text first_warp:integer warps:integer registers:integer? threads:integer?"},
    {Op::view, "column:integer? transposed:integer?"},
    {Op::tma_load_tile, "cache:integer? multicast:integer? multicast_group:integer?"},
    {Op::any, "partial:integer?"},
    {Op::mul, "partial:integer?"},
    {Op::lt, "partial:integer?"},
    {Op::le, "partial:integer?"},
    {Op::fma, "partial:integer?"},
    {Op::complete, "function:function first:integer?"},
    {Op::convert, "layout:register_layout? offsets:list? first:integer?"},
    {Op::wait, "count:integer?"},
    {Op::retire, "count:integer?"},
    {Op::mbarrier_expect_tx, "bytes:integer"},
    {Op::named_sync, "first:integer threads:integer count:integer?"},
    {Op::named_arrive, "first:integer threads:integer count:integer?"},
    {Op::bulk_wait, "count:integer read:integer?"},
    {Op::registers, "name:text?"},
    {Op::copy, "offset:integer?"},
    {Op::compute, "function:function maps:maps"},
    {Op::coordinate, "axis:integer layout:register_layout"},
    {Op::reduce_registers, "function:function maps:maps"},
    {Op::reduce_lanes, "function:function masks:list"},
    {Op::load_registers, "sizes:list layout:register_layout"},
    {Op::store_registers, "sizes:list layout:register_layout"},
    {Op::store_matrix,
     "register:integer step:integer? row_bytes:integer column_bytes:integer "
     "swizzle_divisor:integer swizzle_mask:integer count:integer? transposed:integer?"},
    {Op::load_matrix,
     "register:integer step:integer? row_bytes:integer column_bytes:integer "
     "swizzle_divisor:integer swizzle_mask:integer count:integer? transposed:integer?"},
    {Op::store_elements,
     "layout:register_layout row_bytes:integer swizzle_divisor:integer "
     "swizzle_mask:integer panel_columns:integer panel_bytes:integer vector:integer?"},
    {Op::load_elements,
     "layout:register_layout row_bytes:integer swizzle_divisor:integer "
     "swizzle_mask:integer panel_columns:integer panel_bytes:integer vector:integer?"},
    {Op::tma_load,
     "step:integer? bytes:integer cache:integer? multicast:integer? multicast_group:integer?"},
    {Op::tma_store, "step:integer?"},
    {Op::wgmma_ss,
     "n:integer k:integer descriptor_a:integer descriptor_b:integer step_a:integer? "
     "step_b:integer? transpose_a:integer? transpose_b:integer?"},
    {Op::wgmma_rs,
     "n:integer k:integer descriptor_b:integer register:integer step_b:integer? "
     "transpose_b:integer?"},
    {Op::wgmma_wait, "count:integer"},
    {Op::mbarrier_init, "arrivals:integer"},
    {Op::set_max_registers, "count:integer increase:integer"},
};

std::string_view attributes_of(Op op) {
  for (const AttributeRow& row : kAttributes) {
    if (row.op == op) return row.attributes;
  }
  return {};
}

// In the order of Attribute's alternatives.
constexpr std::array<std::string_view, std::variant_size_v<Attribute>> kTypeNames = {
    "integer", "number",          "text",          "list", "function",
    "dim",     "register_layout", "shared_layout", "maps"};

bool has_type(const Attribute& attribute, std::string_view type) {
  return kTypeNames[attribute.index()] == type || (type == "value" && attribute.index() < 2);
}

void verify_attributes(const VerifierContext& context) {
  const Attributes& attributes = context.attributes();
  std::size_t known = 0;
  for (std::string_view rest = attributes_of(context.operation().op); !rest.empty();) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    std::string_view entry = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const bool optional = entry.back() == '?';
    if (optional) entry.remove_suffix(1);
    const std::size_t colon = entry.find(':');
    const std::string_view name = entry.substr(0, colon), type = entry.substr(colon + 1);
    const Attribute* attribute = attributes.find(*find_key(name));
    context.require(attribute || optional, "lacks the attribute \"{}\" ({})", name, type);
    if (!attribute) continue;
    ++known;
    context.require(has_type(*attribute, type), "the attribute \"{}\" is of type {}, expected {}",
                    name, kTypeNames[attribute->index()], type);
  }
  if (known == attributes.entries().size()) return;
  for (const auto& [key, value] : attributes.entries()) {
    const std::string entry = fmt::format(" {}:", name_of(key));
    const std::string table = fmt::format(" {}", attributes_of(context.operation().op));
    context.require(table.find(entry) != table.npos, "has no attribute \"{}\"", name_of(key));
  }
}

struct Letter {
  char letter;
  std::string_view name;
};
constexpr Letter kLetters[] = {{'i', "an integer scalar"},
                               {'s', "a scalar"},
                               {'c', "a boolean scalar"},
                               {'t', "a tile"},
                               {'p', "a pending tile"},
                               {'a', "a tile or a pending one"},
                               {'T', "a tensor"},
                               {'H', "a shared allocation"},
                               {'V', "a view of shared memory"},
                               {'B', "mbarriers"},
                               {'R', "a register array"},
                               {'m', "a tensor map"},
                               {'.', "anything"}};

bool accepts(char letter, const Type& type) {
  using Kind = Type::Kind;
  switch (letter) {
    case 'i':
      return type.is_scalar() && is_integer(type.dtype);
    case 's':
      return type.is_scalar();
    case 'c':
      return type.is_scalar() && type.dtype == DType::boolean;
    case 't':
      return type.is_tile();
    case 'p':
      return type.is(Kind::pending);
    case 'a':
      return type.is_tile() || type.is(Kind::pending);
    case 'T':
      return type.is(Kind::tensor);
    case 'H':
      return type.is(Kind::shared);
    case 'V':
      return type.is(Kind::view);
    case 'B':
      return type.is(Kind::mbarriers);
    case 'R':
      return type.is(Kind::registers);
    case 'm':
      return type.is(Kind::tensor_map);
    default:
      return !type.is(Kind::none);
  }
}

std::string_view letter_name(char letter) {
  for (const Letter& entry : kLetters) {
    if (entry.letter == letter) return entry.name;
  }
  return "?";
}

// `pattern` as operations.def writes operands and results.
void verify_values(const VerifierContext& context, std::string_view pattern,
                   const std::vector<ValueId>& values, std::string_view what) {
  std::size_t next = 0;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char letter = pattern[i];
    const char suffix = i + 1 < pattern.size() ? pattern[i + 1] : ' ';
    const bool any = suffix == '*', optional = suffix == '?';
    if (any || optional) ++i;
    std::size_t end = any ? values.size() : next + 1;
    if (optional && next == values.size()) end = next;
    for (; next < end; ++next) {
      context.require(next < values.size(), "has {} {}s, expected {} as {} {}", values.size(), what,
                      letter_name(letter), what, next);
      const Type& type = context.kernel().types[values[next]];
      if (accepts(letter, type)) continue;
      context.fail("{} {} is {}, which is {}, expected {}", what, next,
                   context.describe(values[next]), type.to_string(), letter_name(letter));
    }
  }
  context.require(next == values.size(), "has {} {}s, expected {}", values.size(), what, next);
}

}  // namespace

void verify_signature(const VerifierContext& context) {
  const Operation& operation = context.operation();
  const OpInfo& record = info(operation.op);
  const Form form = context.kernel().form;
  context.require(record.in(form), "does not exist in the {} form", name_of(form));
  verify_values(
      context,
      record.elementwise() ? std::string_view("...").substr(0, record.arity) : record.operands,
      operation.operands, "operand");
  verify_values(context, record.results, operation.results, "result");
  verify_attributes(context);
}

}  // namespace tilewright::ir
