#include "simulator/core/core_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "analysis/access_bounds.h"
#include "simulator/evaluate_elementwise.h"
#include "simulator/tile_value.h"
#include "support/diagnostic.h"
#include "support/number_formats.h"
#include "target/target.h"

namespace tilewright::simulator {
namespace {

using ir::Key;
using ir::Op;
using ir::Operation;
using ir::ValueId;

ir::Binding bound(const ir::Kernel& kernel, const Arguments& arguments,
                  std::int64_t multiprocessors) {
  std::vector<ir::TensorShape> shapes;
  for (const TensorArgument& tensor : arguments.tensors) {
    shapes.push_back({tensor.name, tensor.dtype, tensor.shape, tensor.strides});
  }
  ir::check_scalars(kernel, arguments.scalars);
  return ir::bind(kernel, shapes, multiprocessors, ir::given_ranks(kernel, arguments.ranks));
}

template <typename List, typename Name>
int number_of(const List& list, const Name& fits) {
  return static_cast<int>(std::find_if(list.begin(), list.end(), fits) - list.begin());
}

class SequencerRun {
 public:
  SequencerRun(const CoreLaunch& launch, std::int64_t block, std::int64_t most)
      : launch_(launch), kernel_(launch.kernel), block_(block), most_(most) {
    numbers_.resize(kernel_.types.size());
    windows_.resize(kernel_.types.size());
    for (const ir::Parameter& parameter : kernel_.parameters) {
      if (!parameter.is_tensor()) set(parameter.value, launch.scalar_of[parameter.value]);
    }
  }

  void body(const ir::Block& block) {
    for (const Operation& o : block.body) {
      if (o.op != Op::role) run(o);
    }
  }

  CoreIssued role(const Operation& role, std::int64_t instance) {
    numbers_[role.blocks[0].arguments[0]].whole = instance;
    run(role.blocks[0]);
    return {std::move(items_), std::move(reads_)};
  }

 private:
  void set(ValueId value, double number) {
    numbers_[value] = {static_cast<std::int64_t>(number), static_cast<float>(number)};
  }
  std::int64_t whole(const Operation& o, std::size_t i) const {
    return numbers_[o.operands[i]].whole;
  }

  // What the block's yield names.
  std::vector<CoreNumber> run(const ir::Block& block) {
    for (const Operation& o : block.body) {
      if (o.op != Op::yield) {
        run(o);
        continue;
      }
      std::vector<CoreNumber> yielded;
      for (const ValueId value : o.operands) yielded.push_back(numbers_[value]);
      return yielded;
    }
    return {};
  }

  void run(const Operation& o) {
    const ir::OpInfo& record = ir::info(o.op);
    switch (record.family) {
      case ir::Family::constant:
        return constant(o);
      case ir::Family::position:
        numbers_[o.results[0]].whole = o.op == Op::cta_index ? block_ : launch_.blocks;
        return;
      case ir::Family::function:
        return function(o);
      case ir::Family::control:
        return control(o);
      case ir::Family::word:
        return load_index(o);
      case ir::Family::core_window:
        windows_[o.results[0]] = {launch_.place_of[o.operands[0]],
                                  whole(o, 1),
                                  whole(o, 2),
                                  whole(o, 3),
                                  ir::lying_extent(kernel_.type(o.results[0])),
                                  ir::is_transposed(o)};
        return;
      case ir::Family::core_copy:
      case ir::Family::core_compute:
      case ir::Family::core_event:
        return issue(o);
      case ir::Family::core_memory:
        return;
      case ir::Family::peer:  // target::verify has refused the others
      case ir::Family::map_choice:
      case ir::Family::place:
      case ir::Family::tile:
      case ir::Family::own_rows:
      case ir::Family::tile_access:
      case ir::Family::tile_product:
      case ir::Family::tile_copy:
      case ir::Family::pending:
      case ir::Family::view:
      case ir::Family::shared_tile:
      case ir::Family::fragment_tile:
      case ir::Family::tensor_tile:
      case ir::Family::tensor_tile_product:
      case ir::Family::prefetch:
      case ir::Family::array:
      case ir::Family::computation:
      case ir::Family::global_access:
      case ir::Family::matrix_access:
      case ir::Family::element_access:
      case ir::Family::fragment_access:
      case ir::Family::shared_word:
      case ir::Family::word_wait:
      case ir::Family::mbarrier:
      case ir::Family::named_barrier:
      case ir::Family::cta_barrier:
      case ir::Family::cluster_barrier:
      case ir::Family::fence:
      case ir::Family::lane_order:
      case ir::Family::check:
      case ir::Family::commit:
      case ir::Family::group_wait:
      case ir::Family::bulk_copy:
      case ir::Family::product:
      case ir::Family::product_fence:
      case ir::Family::tensor_allocation:
      case ir::Family::tensor_access:
      case ir::Family::tensor_wait:
      case ir::Family::tensor_product:
      case ir::Family::tensor_copy:
      case ir::Family::tensor_commit:
      case ir::Family::tensor_fence:
      case ir::Family::launch_control:
      case ir::Family::register_budget:
        Diagnostic(o.where, std::string(record.name) + ": no operation of a core",
                   ErrorKind::internal)
            .raise();
    }
  }

  void constant(const Operation& o) {
    CoreNumber& result = numbers_[o.results[0]];
    if (o.op == Op::dim) {
      result.whole = launch_.binding.evaluate(o.attributes.dim());
      return;
    }
    const ir::Attribute* value = o.attributes.find(Key::value);
    if (const auto* integer = std::get_if<std::int64_t>(value)) {
      result.whole = *integer;
    } else {
      result.real =
          round_to(kernel_.type(o.results[0]).dtype, static_cast<float>(std::get<double>(*value)));
    }
  }

  template <typename T>
  void evaluated(const Operation& o, T CoreNumber::*member) {
    const Elementwise how{o.op, kernel_.type(o.results[0]).dtype, o.where};
    T values[3] = {};
    const T* operands[3] = {};
    for (std::size_t i = 0; i < o.operands.size(); ++i) {
      values[i] = numbers_[o.operands[i]].*member;
      operands[i] = &values[i];
    }
    if (ir::info(o.op).is_comparison()) {
      std::uint8_t result = 0;
      compare<T>(how, 1, operands[0], operands[1], &result);
      numbers_[o.results[0]].whole = result;
      return;
    }
    evaluate(how, 1, operands, &(numbers_[o.results[0]].*member));
  }

  void function(const Operation& o) {
    CoreNumber& result = numbers_[o.results[0]];
    const DType first = kernel_.type(o.operands[0]).dtype;
    if (o.op == Op::select) {
      result = whole(o, 0) != 0 ? numbers_[o.operands[1]] : numbers_[o.operands[2]];
      return;
    }
    if (o.op == Op::cast) return cast(o, first, result);
    if (held(first) == Held::boolean) {
      const Elementwise how{o.op, DType::boolean, o.where};
      const std::uint8_t a = whole(o, 0) != 0, b = o.operands.size() > 1 && whole(o, 1) != 0;
      const std::uint8_t* const operands[] = {&a, &b};
      std::uint8_t answer = 0;
      if (ir::info(o.op).is_comparison()) {
        compare<std::uint8_t>(how, 1, &a, &b, &answer);
      } else {
        evaluate(how, 1, operands, &answer);
      }
      result.whole = answer;
      return;
    }
    if (held(first) == Held::real) return evaluated(o, &CoreNumber::real);
    evaluated(o, &CoreNumber::whole);
  }

  void cast(const Operation& o, DType from, CoreNumber& result) const {
    const DType to = kernel_.type(o.results[0]).dtype;
    const Elementwise how{Op::cast, to, o.where};
    const CoreNumber source = numbers_[o.operands[0]];
    if (held(from) == Held::real) {
      held(to) == Held::real ? convert<float, float>(how, 1, &source.real, &result.real)
                             : convert<float, std::int64_t>(how, 1, &source.real, &result.whole);
    } else {
      held(to) == Held::real
          ? convert<std::int64_t, float>(how, 1, &source.whole, &result.real)
          : convert<std::int64_t, std::int64_t>(how, 1, &source.whole, &result.whole);
    }
  }

  void control(const Operation& o) {
    switch (ir::as<ir::ControlOp>(o.op)) {
      case ir::ControlOp::for_loop:
        return for_loop(o);
      case ir::ControlOp::while_loop:
        return while_loop(o);
      case ir::ControlOp::if_then:
        return give(o, run(o.blocks[whole(o, 0) != 0 ? 0 : 1]), 0);
      case ir::ControlOp::yield:
      case ir::ControlOp::role:
      case ir::ControlOp::elect:
        return;
    }
  }

  void give(const Operation& o, const std::vector<CoreNumber>& values, std::size_t first) {
    for (std::size_t i = 0; i < o.results.size(); ++i) numbers_[o.results[i]] = values[first + i];
  }

  void for_loop(const Operation& o) {
    const std::int64_t high = whole(o, 1), step = whole(o, 2);
    if (step <= 0) {
      Diagnostic(o.where, "the loop's step is " + std::to_string(step), ErrorKind::result)
          .fix("a step is 1 or more")
          .raise();
    }
    std::vector<CoreNumber> carried;
    for (std::size_t i = 3; i < o.operands.size(); ++i) carried.push_back(numbers_[o.operands[i]]);
    const ir::Block& body = o.blocks[0];
    for (std::int64_t i = whole(o, 0); i < high; i += step) {
      spend(o);
      numbers_[body.arguments[0]].whole = i;
      for (std::size_t j = 0; j < carried.size(); ++j) numbers_[body.arguments[j + 1]] = carried[j];
      carried = run(body);
    }
    give(o, carried, 0);
  }

  void while_loop(const Operation& o) {
    std::vector<CoreNumber> carried;
    for (const ValueId operand : o.operands) carried.push_back(numbers_[operand]);
    const ir::Block& body = o.blocks[0];
    while (carried[0].whole != 0) {
      spend(o);
      for (std::size_t j = 1; j < carried.size(); ++j) numbers_[body.arguments[j - 1]] = carried[j];
      carried = run(body);
    }
    give(o, carried, 1);
  }

  // The element of an input.
  void load_index(const Operation& o) {
    const TensorArgument& tensor = *launch_.tensor_of[o.operands[0]];
    const ir::Parameter& parameter = *kernel_.parameter_of(o.operands[0]);
    if (parameter.kind != ir::Parameter::Kind::in) {
      Diagnostic(o.where, "load_index: " + parameter.name + " may be written by the kernel")
          .note(parameter.where, parameter.name + " is declared")
          .fix(
              "a core reads indices of inputs: its units do not tell its sequencers when they are "
              "done")
          .raise();
    }
    std::int64_t element = 0;
    for (std::size_t axis = 0; axis < tensor.shape.size(); ++axis) {
      const std::int64_t index = whole(o, axis + 1);
      if (index < 0 || index >= tensor.shape[axis]) {
        Diagnostic(o.where,
                   fmt::format("load_index: index {} on axis {} of {}, whose size is {}", index,
                               axis, tensor.name, tensor.shape[axis]),
                   ErrorKind::result)
            .note(parameter.where, parameter.name + " is declared")
            .fix("keep it below the size")
            .raise();
      }
      element += index * tensor.strides[axis];
    }
    const std::byte* const place = tensor.data + element * size_of(tensor.dtype);
    const analysis::IndexClaim claim(o);
    analysis::LoadedIndex index{tensor.name, {}, place, tensor.strides[0]};
    for (std::size_t axis = 0; axis < tensor.shape.size(); ++axis) {
      index.at.push_back(whole(o, axis + 1));
    }
    if (claim.at_most) index.at_most = launch_.binding.evaluate(*claim.at_most);
    if (const std::string fault = analysis::describe_fault(claim, index); !fault.empty()) {
      Diagnostic(o.where, "load_index: " + fault, ErrorKind::result)
          .note(parameter.where, parameter.name + " is declared")
          .fix(analysis::fix_of(claim, index))
          .raise();
    }
    reads_.push_back({&o, place});
    numbers_[o.results[0]].whole = to_integer(tensor.dtype, place);
  }

  // Each is kept until its block is over: more of them than of turns of loops would fill the
  // memory.
  static constexpr std::size_t kMostItems = 4'000'000;

  void spend(const Operation& o) {
    if (--most_ >= 0 && items_.size() < kMostItems) return;
    Diagnostic(o.where,
               fmt::format("{}: a sequencer issues {} instructions of block {} and does not end",
                           kernel_.name, items_.size(), block_),
               ErrorKind::result)
        .fix("let the loop end, whose end may be read or computed; or take smaller sizes")
        .raise();
  }

  void issue(const Operation& o) {
    spend(o);
    CoreItem item;
    item.operation = &o;
    for (const ValueId operand : o.operands) {
      const ir::Type& type = kernel_.type(operand);
      if (type.is(ir::Type::Kind::window)) item.windows.push_back(windows_[operand]);
      if (type.is_scalar()) item.numbers.push_back(numbers_[operand]);
    }
    const target::Core& core = launch_.core;
    std::string unit;
    if (o.op == Op::event_set || o.op == Op::event_wait) {
      const std::string &from = o.attributes.text(Key::from), &to = o.attributes.text(Key::to);
      item.kind = o.op == Op::event_set ? CoreItem::Kind::set : CoreItem::Kind::wait;
      item.id = whole(o, 0);
      item.event = number_of(core.events, [&](const target::CoreEventPair& each) {
        return each.from == from && each.to == to;
      });
      unit = o.op == Op::event_set ? from : to;
    } else {
      unit = o.attributes.text(Key::unit);
      if (o.op == Op::unit_barrier) item.kind = CoreItem::Kind::barrier;
    }
    if (ir::info(o.op).family == ir::Family::core_copy && o.op != Op::core_move) {
      for (const CoreNumber& number : item.numbers) item.bounds.push_back(number.whole);
    }
    item.unit = number_of(core.units, [&](const target::CoreUnit& u) { return u.name == unit; });
    items_.push_back(std::move(item));
  }

  const CoreLaunch& launch_;
  const ir::Kernel& kernel_;
  const std::int64_t block_;
  std::int64_t most_;
  std::vector<CoreNumber> numbers_;    // by value
  std::vector<CoreWindowAt> windows_;  // by value
  std::vector<CoreItem> items_;
  std::vector<CoreIndexRead> reads_;
};

}  // namespace

CoreLaunch::CoreLaunch(const ir::Kernel& kernel, const Arguments& arguments,
                       std::int64_t multiprocessors)
    : kernel(kernel),
      arguments(arguments),
      core(*target::target_of(kernel).core),
      operands(kernel, core),
      binding(bound(kernel, arguments, multiprocessors)),
      blocks(binding.evaluate(kernel.grid[0])),
      place_of(kernel.types.size(), -1),
      tensor_of(kernel.types.size()),
      scalar_of(kernel.types.size()) {
  std::size_t next_tensor = 0, next_scalar = 0;
  for (const ir::Parameter& parameter : kernel.parameters) {
    if (parameter.is_tensor()) {
      tensor_of[parameter.value] = &arguments.tensors.at(next_tensor++);
    } else {
      scalar_of[parameter.value] = arguments.scalars.at(next_scalar++);
    }
  }
  for (const Operation& o : kernel.body.body) {
    if (o.op != Op::memory) continue;
    place_of[o.results[0]] = static_cast<int>(places.size());
    CorePlace place;
    place.operation = &o;
    place.space = &operands.space_of(o.results[0]);
    place.space_number = static_cast<int>(place.space - core.spaces.data());
    place.matrix = operands.matrix_of(o.results[0]);
    place.stages = o.attributes.integer(Key::stages);
    place.offset = o.attributes.integer(Key::offset);
    place.stage_bytes = target::matrix_bytes(*place.space, place.matrix);
    places.push_back(place);
  }
  bool reads = !scalar_of.empty();
  ir::for_each(kernel.body, [&](const Operation& o) { reads = reads || o.op == Op::load_index; });
  if (!reads) return;
  const analysis::LoadedIntegers integers(kernel);
  ir::for_each(kernel.body, [&](const Operation& o) {
    if (o.op != Op::core_load && o.op != Op::core_store) return;
    std::vector<analysis::AxisCheck> own = analysis::axis_checks(o, 2, integers);
    std::erase_if(own, [](const analysis::AxisCheck& check) { return check.size == 0; });
    if (!own.empty()) checks.emplace(&o, std::move(own));
  });
}

CoreIssued issued_by(const CoreLaunch& launch, const ir::Operation& role, std::int64_t block,
                     std::int64_t instance, std::int64_t most) {
  SequencerRun run(launch, block, most);
  run.body(launch.kernel.body);
  return run.role(role, instance);
}

}  // namespace tilewright::simulator
