#include "ir/verifier.h"

#include <algorithm>

#include "ir/verifier_context.h"
#include "support/diagnostic.h"

namespace tilewright::ir {

VerifierContext::VerifierContext(const Kernel& kernel, ErrorKind kind)
    : kernel_(kernel), kind_(kind), defined_by_(kernel.types.size(), nullptr) {}

void VerifierContext::fail_with(const std::string& message) const {
  std::string text =
      fmt::format("{}kernel \"{}\" ({} form): ", kind_ == ErrorKind::internal ? "verifier: " : "",
                  kernel_.name, name_of(kernel_.form));
  if (current_) text += std::string(info(current_->op).name) + ": ";
  Diagnostic(current_ && current_->where.file ? current_->where : kernel_.where, text + message,
             kind_)
      .raise();
}

std::string VerifierContext::describe(ValueId value) const {
  if (const Parameter* parameter = kernel_.parameter_of(value)) {
    return fmt::format("%{} ({})", value, parameter->name);
  }
  const Operation* by = value < defined_by_.size() ? defined_by_[value] : nullptr;
  if (!by) return fmt::format("%{}", value);
  const Attribute* name = by->attributes.find(Key::name);
  const std::string* text = name ? std::get_if<std::string>(name) : nullptr;
  return text ? fmt::format("%{} ({} {})", value, info(by->op).name, *text)
              : fmt::format("%{} ({})", value, info(by->op).name);
}

std::optional<std::int64_t> VerifierContext::constant(ValueId value) const {
  const Operation* by = defined_by_[value];
  if (!by || by->op != Op::constant) return std::nullopt;
  const Attribute* attribute = by->attributes.find(Key::value);
  const std::int64_t* integer = attribute ? std::get_if<std::int64_t>(attribute) : nullptr;
  return integer ? std::optional(*integer) : std::nullopt;
}

const Parameter& VerifierContext::tensor_of(ValueId tensor) const {
  const Parameter* parameter = kernel_.parameter_of(tensor);
  if (!parameter) fail("{} is a tensor but no parameter", describe(tensor));
  return *parameter;
}

const Operation& VerifierContext::map_operand(std::size_t i) const {
  const Operation* by = defined_by(current_->operands[i]);
  while (info(by->op).family == Family::map_choice) by = defined_by(by->operands[0]);
  return *by;
}

namespace {

class Verifier {
 public:
  Verifier(const Kernel& kernel, ErrorKind kind)
      : kernel_(kernel),
        context_(kernel, kind),
        defined_(kernel.types.size(), false),
        visible_(kernel.types.size(), false) {}

  void run() {
    verify_header();
    for (const Parameter& parameter : kernel_.parameters) {
      verify_value(parameter.value);
      define(parameter.value);
    }
    verify_parameters();
    const std::size_t indices = kernel_.form == Form::tile ? kernel_.grid.size() : 0;
    context_.require(kernel_.body.arguments.size() == indices,
                     "the body has {} arguments, expected {}: one for each axis of the grid in the "
                     "tile form, else none",
                     kernel_.body.arguments.size(), indices);
    for (const ValueId argument : kernel_.body.arguments) {
      verify_value(argument);
      context_.require(kernel_.type(argument) == Type::scalar(DType::i32),
                       "the grid index %{} is {}, expected i32", argument,
                       kernel_.type(argument).to_string());
    }
    verify_block(kernel_.body, nullptr);
  }

 private:
  void verify_header() {
    for (std::size_t i = 0; i < kernel_.dims.size(); ++i) {
      context_.require(kernel_.dims[i].kind() == Dim::Kind::symbol,
                       "dim {} is the expression {}, expected a symbol", i,
                       kernel_.dims[i].to_string());
      for (std::size_t j = 0; j < i; ++j) {
        context_.require(kernel_.dims[i].name() != kernel_.dims[j].name(),
                         "dim {} is declared twice", kernel_.dims[i].name());
      }
    }
    context_.require(!kernel_.grid.empty(), "the grid has no axes");
    for (const Dim& extent : kernel_.grid) verify_symbols(extent, true, "the grid");
    constexpr std::int64_t kLargest = std::int64_t{1} << 31;
    for (const std::int64_t number :
         {std::int64_t{kernel_.threads}, std::int64_t{kernel_.cluster},
          std::int64_t{kernel_.resident}, std::int64_t{kernel_.shared_bytes}}) {
      context_.require(
          number <= kLargest,
          "{} threads, clusters of {}, {} resident, {} bytes of shared memory, expected "
          "at most 2^31",
          kernel_.threads, kernel_.cluster, kernel_.resident, kernel_.shared_bytes);
    }
    if (kernel_.form == Form::tile) return;
    context_.require(kernel_.grid.size() == 1, "the grid has {} axes, expected 1 after tile form",
                     kernel_.grid.size());
    context_.require(kernel_.threads >= 1 && kernel_.cluster >= 1 && !kernel_.target.empty(),
                     "{} threads, clusters of {} CTAs, for the target \"{}\"", kernel_.threads,
                     kernel_.cluster, kernel_.target);
    context_.require(!kernel_.cta_pairs || kernel_.cluster % 2 == 0,
                     "cta_pairs in clusters of {} CTAs, expected an even number", kernel_.cluster);
  }

  void verify_symbols(const Dim& dim, bool may_use_multiprocessors, std::string_view what) {
    if (dim.is_constant()) return;
    if (dim.kind() != Dim::Kind::symbol) {
      verify_symbols(dim.lhs(), may_use_multiprocessors, what);
      verify_symbols(dim.rhs(), may_use_multiprocessors, what);
      return;
    }
    if (may_use_multiprocessors && dim.name() == kMultiprocessors) return;
    context_.require(std::find(kernel_.dims.begin(), kernel_.dims.end(), dim) != kernel_.dims.end(),
                     "{} uses the dim {}, which the kernel does not declare", what, dim.name());
  }

  void verify_parameters() {
    for (const Parameter& parameter : kernel_.parameters) {
      const auto same_name = [&](const Parameter& other) { return other.name == parameter.name; };
      context_.require(
          std::count_if(kernel_.parameters.begin(), kernel_.parameters.end(), same_name) == 1,
          "two parameters are named {}", parameter.name);
      for (const Dim& extent : parameter.shape) {
        verify_symbols(extent, false, "parameter " + parameter.name);
        context_.require(!extent.is_constant() || extent.constant() >= 0,
                         "parameter {} has an axis of size {}", parameter.name, extent.to_string());
      }
      const Type expected = parameter.is_tensor()
                                ? Type::of(Type::Kind::tensor, parameter.dtype,
                                           {static_cast<std::int64_t>(parameter.shape.size())})
                                : Type::scalar(parameter.dtype);
      context_.require(kernel_.type(parameter.value) == expected,
                       "parameter {} has a value of type {}, expected {}", parameter.name,
                       kernel_.type(parameter.value).to_string(), expected.to_string());
    }
  }

  void define(ValueId value) {
    context_.require(!defined_[value], "%{} is defined twice", value);
    defined_[value] = true;
    visible_[value] = true;
    scope_.push_back(value);
  }

  // That the value is in the table, with a type that makes sense.
  void verify_value(ValueId value) const {
    context_.require(value < defined_.size(), "defines %{}, but the kernel has only {} values",
                     value, defined_.size());
    const Type& type = kernel_.type(value);
    if (const std::string problem = type_problem(type); !problem.empty()) {
      context_.fail("%{} has the type {}: {}", value, type.to_string(), problem);
    }
  }

  std::string type_problem(const Type& type) const {
    using Kind = Type::Kind;
    if (type.is(Kind::none)) return "every value has a type";
    if (type.is_scalar() && !type.shape.empty()) return "a scalar has no shape";
    const bool one_size = type.is(Kind::registers) || type.is(Kind::mbarriers) ||
                          (type.is(Kind::tensor) && !type.is_peer());
    if (one_size && type.shape.size() != 1) return "expected one size";
    constexpr std::int64_t kMaximumElements = std::int64_t{1} << 31;
    std::int64_t elements = 1;
    for (const std::int64_t extent : type.shape) {
      // A tensor's only entry is its rank, which may be 0.
      if (extent < (type.is(Kind::tensor) ? 0 : 1)) return "sizes are at least 1";
      if (extent > kMaximumElements || (elements *= extent) > kMaximumElements) {
        return "more than 2^31 elements";
      }
    }
    // Far more than a thread has: each is looked at, one by one.
    constexpr std::int64_t kMaximumRegisters = 1 << 16;
    if (type.is(Kind::registers) && elements > kMaximumRegisters) {
      return "more than 2^16 elements of a thread";
    }
    if (type.layout.shape.empty() && type.layout.lanes.empty()) return {};
    if (kernel_.form != Form::scheduled || !(type.is_tile() || type.is(Kind::pending))) {
      return "only tiles of the scheduled form have layouts";
    }
    if (type.layout.shape != type.shape) return "its layout is of another shape";
    return type.layout.problem().value_or("");
  }

  void verify_block(const Block& block, const Operation* parent) {
    const std::size_t outside = scope_.size();
    for (const ValueId argument : block.arguments) define(argument);
    for (std::size_t i = 0; i < block.body.size(); ++i) {
      const Operation& operation = block.body[i];
      context_.enter(operation);
      context_.require(operation.op != Op::yield || (parent && i + 1 == block.body.size()),
                       "only the last operation of a nested block yields");
      verify_operation(operation, parent);
    }
    if (parent) verify_end(block, *parent);
    for (; scope_.size() > outside; scope_.pop_back()) visible_[scope_.back()] = false;
  }

  void verify_operation(const Operation& operation, const Operation* parent) {
    for (const ValueId operand : operation.operands) {
      context_.require(operand < defined_.size(), "uses the value %{}, but the kernel has only {}",
                       operand, defined_.size());
      if (visible_[operand]) continue;
      context_.fail(
          "uses {} {}", context_.describe(operand),
          defined_[operand] ? "outside the block that defines it" : "before its definition");
    }
    for (const ValueId result : operation.results) verify_value(result);
    verify_signature(context_);
    for (const Key key : {Key::dim, Key::at_most}) {
      const Attribute* const given = operation.attributes.find(key);
      if (given) verify_symbols(std::get<Dim>(*given), true, "it");
    }
    verify_placement(operation, parent);
    verify_types(context_);
    // Blocks first: they must not see the results.
    verify_blocks(operation);
    context_.enter(operation);
    for (const ValueId result : operation.results) {
      define(result);
      context_.define(result, operation);
    }
  }

  void verify_placement(const Operation& operation, const Operation* parent) {
    const bool place = info(operation.op).family == Family::place;
    context_.require(!place || !parent, "is inside a block; places are made at the kernel's top");
    context_.require(!place || !after_role_, "comes after a role; places are made before");
    context_.require(operation.op != Op::role || !parent,
                     "is inside a block; roles are at the kernel's top");
    after_role_ |= operation.op == Op::role;
  }

  std::vector<Type> types(const std::vector<ValueId>& values, std::size_t skip) const {
    std::vector<Type> result;
    for (std::size_t i = skip; i < values.size(); ++i) result.push_back(kernel_.type(values[i]));
    return result;
  }

  void require_same(const std::vector<Type>& have, const std::vector<Type>& want,
                    std::string_view what, std::string_view other) const {
    context_.require(have.size() == want.size(), "{}: {}, but {}: {}", what, have.size(), other,
                     want.size());
    for (std::size_t i = 0; i < have.size(); ++i) {
      if (have[i] == want[i]) continue;
      context_.fail("{}: number {} is {}, but of {} it is {}", what, i, have[i].to_string(), other,
                    want[i].to_string());
    }
  }

  // How many blocks the operation owns; `arguments` become theirs.
  std::size_t verify_control(const Operation& operation, std::vector<Type>& arguments) {
    switch (as<ControlOp>(operation.op)) {
      case ControlOp::for_loop: {
        arguments = types(operation.operands, 3);
        verify_carried(arguments);
        const Type index = context_.operand(0);
        if (context_.operand(1) != index || context_.operand(2) != index) {
          context_.fail("low, high and step are {}, {} and {}, expected one type",
                        index.to_string(), context_.operand(1).to_string(),
                        context_.operand(2).to_string());
        }
        const auto step = context_.constant_operand(2);
        context_.require(!step || *step > 0, "the step is {}, expected a positive one",
                         step.value_or(0));
        require_same(types(operation.results, 0), arguments, "results", "carried values");
        arguments.insert(arguments.begin(), index);
        return 1;
      }
      case ControlOp::while_loop:
        arguments = types(operation.operands, 1);
        verify_carried(arguments);
        require_same(types(operation.results, 0), arguments, "results", "carried values");
        return 1;
      case ControlOp::if_then:
        verify_carried(types(operation.results, 0));
        return 2;
      case ControlOp::role:
        arguments = {Type::scalar(DType::i32)};
        return 1;
      case ControlOp::elect:
        return 1;
      case ControlOp::yield:
        break;
    }
    return 0;
  }

  void verify_blocks(const Operation& operation) {
    std::vector<Type> arguments;
    const bool control = info(operation.op).family == Family::control;
    const std::size_t blocks = control ? verify_control(operation, arguments) : 0;
    context_.require(operation.blocks.size() == blocks, "has {} blocks, expected {}",
                     operation.blocks.size(), blocks);
    for (const Block& block : operation.blocks) {
      context_.enter(operation);
      for (const ValueId argument : block.arguments) verify_value(argument);
      require_same(types(block.arguments, 0), arguments, "arguments of the block",
                   "what it is given");
      verify_block(block, &operation);
    }
  }

  void verify_carried(const std::vector<Type>& carried) const {
    for (const Type& type : carried) {
      context_.require(type.is_scalar() || type.is_tile() || type.is(Type::Kind::pending),
                       "carries a value of type {}, expected scalars, tiles or pending tiles",
                       type.to_string());
    }
  }

  void verify_end(const Block& block, const Operation& parent) {
    context_.enter(parent);
    context_.require(!block.body.empty() && block.body.back().op == Op::yield,
                     "its block does not end in a yield");
    context_.enter(block.body.back());
    std::vector<Type> expected = types(parent.results, 0);
    if (parent.op == Op::while_loop) {
      expected.insert(expected.begin(), Type::scalar(DType::boolean));
    }
    require_same(types(block.body.back().operands, 0), expected, "yielded values",
                 parent.op == Op::while_loop
                     ? "the condition and the carried values"
                     : "results of the " + std::string(info(parent.op).name));
  }

  const Kernel& kernel_;
  VerifierContext context_;
  std::vector<bool> defined_;
  std::vector<bool> visible_;
  std::vector<ValueId> scope_;  // what is visible, in order of definition
  bool after_role_ = false;
};

}  // namespace

void verify(const Kernel& kernel, ErrorKind kind) { Verifier(kernel, kind).run(); }

}  // namespace tilewright::ir
