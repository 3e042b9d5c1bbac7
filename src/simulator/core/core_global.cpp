#include "simulator/core/core_global.h"

#include <fmt/format.h>

#include <algorithm>

#include "support/diagnostic.h"
#include "support/number_formats.h"

namespace tilewright::simulator {
namespace {

std::int64_t extent_in_elements(const TensorArgument& tensor) {
  std::int64_t last = 0;
  for (std::size_t axis = 0; axis < tensor.shape.size(); ++axis) {
    if (tensor.shape[axis] == 0) return 0;
    last += (tensor.shape[axis] - 1) * tensor.strides[axis];
  }
  return last + 1;
}

const ir::Operation& copy_of(const CoreItem& item) { return *item.operation; }

ir::ValueId tensor_value(const CoreItem& item) {
  return copy_of(item).operands[copy_of(item).op == ir::Op::core_load ? 1 : 0];
}

}  // namespace

CoreGlobal::CoreGlobal(const CoreLaunch& launch, CoreTouched* touched)
    : launch_(launch), touched_(touched) {
  if (touched_ != nullptr) {
    for (const TensorArgument& tensor : launch.arguments.tensors) {
      touched_->emplace_back(static_cast<std::size_t>(extent_in_elements(tensor)));
    }
  }
  for (const ir::Parameter& parameter : launch.kernel.parameters) {
    if (!parameter.is_tensor() || parameter.kind == ir::Parameter::Kind::in) continue;
    const TensorArgument& tensor = *launch.tensor_of[parameter.value];
    const auto elements = static_cast<std::size_t>(extent_in_elements(tensor));
    Written& written = written_[&tensor];
    written.writers.resize(elements);
    written.readers.resize(elements);
    written.starts_unwritten = parameter.kind == ir::Parameter::Kind::out ||
                               parameter.kind == ir::Parameter::Kind::scratch;
  }
}

const TensorArgument& CoreGlobal::tensor_of(const CoreItem& item) const {
  return *launch_.tensor_of[tensor_value(item)];
}

CoreGlobal::Written* CoreGlobal::written_of(const CoreItem& item) {
  const auto found = written_.find(&tensor_of(item));
  return found == written_.end() ? nullptr : &found->second;
}

std::vector<std::int64_t> CoreGlobal::elements(const CoreItem& item) const {
  const TensorArgument& tensor = tensor_of(item);
  const std::vector<std::int64_t>& sizes = copy_of(item).attributes.integers(ir::Key::sizes);
  const std::size_t rank = sizes.size();
  std::vector<std::int64_t> list{0}, longer;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    const std::int64_t start = item.bounds[axis];
    const std::int64_t limit = std::min(item.bounds[rank + axis], tensor.shape[axis]);
    const std::int64_t size = std::max<std::int64_t>(sizes[axis], 1);  // 0: indexed away
    longer.clear();
    longer.reserve(list.size() * static_cast<std::size_t>(size));
    for (const std::int64_t origin : list) {
      for (std::int64_t at = start; at < start + size; ++at) {
        const bool exists = origin >= 0 && at >= 0 && at < limit;
        longer.push_back(exists ? origin + at * tensor.strides[axis] : -1);
      }
    }
    list.swap(longer);
  }
  return list;
}

std::string CoreGlobal::index_outside(const CoreItem& item) const {
  const TensorArgument& tensor = tensor_of(item);
  const std::vector<std::int64_t>& sizes = copy_of(item).attributes.integers(ir::Key::sizes);
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    const std::int64_t index = item.bounds[axis];
    if (sizes[axis] != 0 || (index >= 0 && index < tensor.shape[axis])) continue;
    return fmt::format("index {} on axis {} of {}, whose size is {}", index, axis, tensor.name,
                       tensor.shape[axis]);
  }
  return "";
}

SourceLocation CoreGlobal::where(const CoreItem& item) const {
  return launch_.kernel.parameter_of(tensor_value(item))->where;
}

void CoreGlobal::order(const CoreItem& item, const std::vector<std::int64_t>& elements, bool writes,
                       std::int64_t block, const CoreAgent& by, const CoreClock& known,
                       FaultLog& log) {
  if (touched_ != nullptr) {
    const auto number = &tensor_of(item) - launch_.arguments.tensors.data();
    for (const std::int64_t element : elements) {
      if (element >= 0) (*touched_)[static_cast<std::size_t>(number)][element] |= writes ? 2 : 1;
    }
  }
  Written* written = written_of(item);
  if (written == nullptr) return;
  CoreAgent own = by;
  own.writes = writes;
  const auto conflicts = [&](const Access& access) {
    if (!access.agent.is_there()) return false;
    if (access.block != block) return true;
    return known[access.agent.queue] < access.agent.number && !access.agent.is(by);
  };
  const auto report = [&](const Access& access) {
    Fault fault = race(launch_, own, access.agent, tensor_of(item).name);
    if (access.block != block) {
      fault.message =
          fmt::format("{}: {} in block {} and {} in block {} touch one element of {}",
                      launch_.kernel.name, text_of(*by.operation), block,
                      text_of(*access.agent.operation), access.block, tensor_of(item).name);
      fault.missing = "parts of their own for blocks: they run in no order";
    }
    log.add(std::move(fault));
  };
  for (const std::int64_t element : elements) {
    if (element < 0) continue;
    Access& writer = written->writers[element];
    std::vector<Access>& readers = written->readers[element];
    if (conflicts(writer)) return report(writer);
    if (!writes) {
      if (readers.empty() || !readers.back().agent.is(by)) readers.push_back({block, own});
      continue;
    }
    const auto reader = std::find_if(readers.begin(), readers.end(), conflicts);
    if (reader != readers.end()) return report(*reader);
    readers.clear();
    writer = {block, own};
  }
}

CoreValues CoreGlobal::read(const CoreItem& item, const std::vector<std::int64_t>& elements,
                            Origins& origins) const {
  const TensorArgument& tensor = tensor_of(item);
  const auto found = written_.find(&tensor);
  CoreValues values(item.windows[0].seen(), tensor.dtype);
  const std::int64_t bytes = size_of(tensor.dtype);
  for (std::size_t i = 0; i < elements.size(); ++i) {
    if (elements[i] < 0) continue;
    const std::byte* memory = tensor.data + elements[i] * bytes;
    if (values.is_real()) {
      to_float(tensor.dtype, memory, &values.real[i], 1);
    } else {
      values.whole[i] = to_integer(tensor.dtype, memory);
    }
    const bool is_unwritten = found != written_.end() && found->second.starts_unwritten &&
                              !found->second.writers[elements[i]].agent.is_there();
    if (is_unwritten) {
      values.origin[i] = origins.of(item, fmt::format("element {} of {}, which nobody has written",
                                                      elements[i], tensor.name));
    }
  }
  return values;
}

void CoreGlobal::write(const CoreItem& item, const std::vector<std::int64_t>& elements,
                       const CoreValues& values, const Origins& origins, FaultLog& log) {
  const TensorArgument& tensor = tensor_of(item);
  const std::int64_t bytes = size_of(tensor.dtype);
  for (std::size_t i = 0; i < elements.size(); ++i) {
    if (elements[i] < 0) continue;
    std::byte* memory = tensor.data + elements[i] * bytes;
    if (values.is_real()) {
      from_float(tensor.dtype, &values.real[i], memory, 1);
    } else {
      from_integer(tensor.dtype, values.whole[i], memory);
    }
    if (const std::uint8_t origin = values.origin[i]; origin != 0) {
      Fault fault;
      fault.kind = "uninitialised";
      fault.first = copy_of(item).where;
      fault.second = origins.where(origin);
      fault.message =
          fmt::format("{}: {} writes an element of {} that was made of {}", launch_.kernel.name,
                      text_of(copy_of(item)), tensor.name, origins.text(origin));
      fault.missing =
          "a move or a fill that writes it, and where another unit does that, an event behind it";
      return log.add(std::move(fault));
    }
  }
}

}  // namespace tilewright::simulator
