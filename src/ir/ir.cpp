#include "ir/ir.h"

#include <algorithm>
#include <bit>
#include <set>

#include "support/diagnostic.h"

namespace tilewright::ir {
namespace {

constexpr std::string_view kParameterKinds[] = {"in",        "out",     "inout",     "scalar",
                                                "workspace", "scratch", "symmetric", "signals"};

[[noreturn]] void missing(Key key, const char* type) {
  Diagnostic(
      {}, "an operation lacks the attribute \"" + std::string(name_of(key)) + "\" (" + type + ")",
      ErrorKind::internal)
      .raise();
}

template <typename T>
const T& get(const Attributes& attributes, Key key, const char* type) {
  const Attribute* attribute = attributes.find(key);
  const T* value = attribute ? std::get_if<T>(attribute) : nullptr;
  if (!value) missing(key, type);
  return *value;
}

}  // namespace

std::vector<std::int64_t> Parameter::constant_shape() const {
  std::vector<std::int64_t> sizes;
  for (const Dim& extent : shape) sizes.push_back(extent.constant());
  return sizes;
}

std::int64_t Parameter::element_count() const {
  std::int64_t count = 1;
  for (const Dim& extent : shape) count *= extent.constant();
  return count;
}

bool is_cooperative(const Kernel& kernel) {
  // Signals of this rank that the kernel itself changes, by the parameter and not through a peer.
  std::set<ValueId> own;
  for_each(kernel.body, [&](const Operation& operation) {
    if (info(operation.op).family == Family::word && info(operation.op).writes(Memory::global)) {
      own.insert(operation.operands[0]);
    }
  });
  bool waits = false;
  for_each(kernel.body, [&](const Operation& operation) {
    if (operation.op != Op::wait_flag) return;
    const ValueId tensor = operation.operands[0];
    const Parameter* const words = kernel.parameter_of(tensor);
    waits = waits || (words && (!words->is_symmetric() || own.count(tensor) != 0));
  });
  return waits;
}

std::string_view name_of(Parameter::Kind kind) { return kParameterKinds[static_cast<int>(kind)]; }

std::optional<Parameter::Kind> find_parameter_kind(std::string_view name) {
  const auto* found = std::find(std::begin(kParameterKinds), std::end(kParameterKinds), name);
  if (found == std::end(kParameterKinds)) return std::nullopt;
  return static_cast<Parameter::Kind>(found - std::begin(kParameterKinds));
}

std::int64_t Type::elements() const {
  std::int64_t n = 1;
  for (const std::int64_t extent : shape) n *= extent;
  return n;
}

bool has_elements(Type::Kind kind) {
  return kind != Type::Kind::none && kind != Type::Kind::mbarriers &&
         kind != Type::Kind::tensor_map && kind != Type::Kind::tensor_memory;
}

std::string Type::to_string() const {
  constexpr std::string_view names[] = {
      "none",      "scalar",    "tile",       "pending",       "tensor", "shared", "view",
      "mbarriers", "registers", "tensor_map", "tensor_memory", "memory", "window"};
  if (kind == Kind::scalar) return std::string(tilewright::name_of(dtype));
  std::string text(names[static_cast<int>(kind)]);
  if (kind == Kind::none || kind == Kind::tensor_map) return text;
  text += "<";
  if (has_elements(kind)) text += std::string(tilewright::name_of(dtype)) + ", ";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    text += (i ? "x" : "") + std::to_string(shape[i]);
  }
  if (!layout.lanes.empty()) text += ", " + layout.to_string();
  return text + ">";
}

bool operator==(const Type& a, const Type& b) {
  if (a.kind != b.kind || (has_elements(a.kind) && a.dtype != b.dtype) || a.shape != b.shape)
    return false;
  if (a.layout.lanes.empty() || b.layout.lanes.empty()) {
    return a.layout.lanes.empty() == b.layout.lanes.empty();
  }
  return a.layout == b.layout;
}

Attributes::Attributes() = default;
Attributes::Attributes(const Attributes&) = default;
Attributes::Attributes(Attributes&&) noexcept = default;
Attributes& Attributes::operator=(const Attributes&) = default;
Attributes& Attributes::operator=(Attributes&&) noexcept = default;
Attributes::~Attributes() = default;

Attributes::Attributes(std::initializer_list<std::pair<Key, Attribute>> list) {
  for (const auto& [key, value] : list) set(key, value);
}

const Attribute* Attributes::find(Key key) const {
  for (const auto& entry : entries_) {
    if (entry.first == key) return &entry.second;
  }
  return nullptr;
}

void Attributes::set(Key key, Attribute value) {
  const auto at = std::lower_bound(entries_.begin(), entries_.end(), key,
                                   [](const auto& entry, Key k) { return entry.first < k; });
  if (at != entries_.end() && at->first == key) {
    at->second = std::move(value);
  } else {
    entries_.insert(at, {key, std::move(value)});
  }
}

void Attributes::erase(Key key) {
  entries_.erase(std::remove_if(entries_.begin(), entries_.end(),
                                [key](const auto& entry) { return entry.first == key; }),
                 entries_.end());
}

std::int64_t Attributes::integer(Key key) const { return get<std::int64_t>(*this, key, "integer"); }
std::int64_t Attributes::integer_or(Key key, std::int64_t otherwise) const {
  return has(key) ? integer(key) : otherwise;
}
const std::string& Attributes::text(Key key) const { return get<std::string>(*this, key, "text"); }
const std::vector<std::int64_t>& Attributes::integers(Key key) const {
  return get<std::vector<std::int64_t>>(*this, key, "integers");
}
Op Attributes::function(Key key) const { return get<Op>(*this, key, "function"); }
const Dim& Attributes::dim() const { return get<Dim>(*this, Key::dim, "dimension"); }
const RegisterLayout& Attributes::register_layout() const {
  return get<RegisterLayout>(*this, Key::layout, "register layout");
}
const SharedLayout& Attributes::shared_layout() const {
  return get<SharedLayout>(*this, Key::layout, "shared layout");
}
const std::vector<IndexMap>& Attributes::maps() const {
  return get<std::vector<IndexMap>>(*this, Key::maps, "register maps");
}

bool operator==(const Attributes& a, const Attributes& b) {
  return std::equal(a.entries_.begin(), a.entries_.end(), b.entries_.begin(), b.entries_.end(),
                    [](const auto& x, const auto& y) {
                      const auto *p = std::get_if<double>(&x.second),
                                 *q = std::get_if<double>(&y.second);
                      if (!p || !q) return x == y;
                      // 0 and -0 differ, a NaN is itself.
                      return x.first == y.first &&
                             std::bit_cast<std::uint64_t>(*p) == std::bit_cast<std::uint64_t>(*q);
                    });
}

Kernel::Kernel() = default;
Kernel::Kernel(const Kernel&) = default;
Kernel::Kernel(Kernel&&) noexcept = default;
Kernel& Kernel::operator=(const Kernel&) = default;
Kernel& Kernel::operator=(Kernel&&) noexcept = default;
Kernel::~Kernel() = default;

ValueId Kernel::add_value(Type type) {
  types.push_back(std::move(type));
  return static_cast<ValueId>(types.size() - 1);
}

const Parameter* Kernel::parameter_of(ValueId tensor) const {
  for (const Parameter& parameter : parameters) {
    if (parameter.value == tensor) return &parameter;
  }
  if (tensor >= types.size() || !types[tensor].is_peer()) return nullptr;
  const std::int64_t number = types[tensor].shape[1];
  return number < static_cast<std::int64_t>(parameters.size()) ? &parameters[number] : nullptr;
}

namespace {

class Renumbering {
 public:
  explicit Renumbering(const Kernel& kernel) : old_(kernel.types) {
    to_.assign(old_.size(), kNoValue);
  }

  void define(ValueId& value) {
    if (to_[value] == kNoValue) {
      to_[value] = static_cast<ValueId>(types_.size());
      types_.push_back(old_[value]);
    }
    value = to_[value];
  }
  void visit(Block& block) {
    for (ValueId& argument : block.arguments) define(argument);
    for (Operation& operation : block.body) {
      for (ValueId& operand : operation.operands) define(operand);
      // Results first, so that a loop's result is numbered before what its body computes, as in
      // the text, where it is written first.
      for (ValueId& result : operation.results) define(result);
      for (Block& inner : operation.blocks) visit(inner);
    }
  }
  std::vector<Type> take() { return std::move(types_); }

 private:
  const std::vector<Type>& old_;
  std::vector<ValueId> to_;
  std::vector<Type> types_;
};

}  // namespace

void canonicalise(Kernel& kernel) {
  Renumbering renumbering(kernel);
  for (Parameter& parameter : kernel.parameters) renumbering.define(parameter.value);
  renumbering.visit(kernel.body);
  kernel.types = renumbering.take();
}

}  // namespace tilewright::ir
