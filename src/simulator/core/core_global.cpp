#include "simulator/core/core_global.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "analysis/access_bounds.h"
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

ir::ValueId tensor_value(const ir::Operation& access) {
  return access.operands[access.op == ir::Op::core_load ? 1 : 0];
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
    cover(tensor, true);
    const bool is_made = parameter.kind == ir::Parameter::Kind::out ||
                         parameter.kind == ir::Parameter::Kind::scratch;
    if (is_made) starts_unwritten_.insert(&tensor);
  }
  for (const ir::Parameter& parameter : launch.kernel.parameters) {
    if (!parameter.is_tensor() || parameter.kind != ir::Parameter::Kind::in) continue;
    cover(*launch.tensor_of[parameter.value], false);
  }
  for (Region& region : regions_) {
    const auto pieces = static_cast<std::size_t>((region.end - region.begin) / region.piece);
    region.writers.resize(pieces);
    region.readers.resize(pieces);
  }
}

// Regions that the tensor touches become one with it.
void CoreGlobal::cover(const TensorArgument& tensor, bool written) {
  const std::int64_t size = size_of(tensor.dtype);
  Region own;
  own.begin = tensor.data;
  own.end = tensor.data + extent_in_elements(tensor) * size;
  own.piece = size;
  if (own.begin == own.end) return;
  const auto touches = [&](const Region& other) {
    return other.begin < own.end && own.begin < other.end;
  };
  if (!written && std::none_of(regions_.begin(), regions_.end(), touches)) return;
  for (bool grows = true; grows;) {
    const auto other = std::find_if(regions_.begin(), regions_.end(), touches);
    grows = other != regions_.end();
    if (!grows) break;
    own.piece = std::gcd(std::gcd(own.piece, other->piece), own.begin - other->begin);
    own.piece = std::gcd(own.piece, own.end - other->end);
    own.begin = std::min(own.begin, other->begin);
    own.end = std::max(own.end, other->end);
    regions_.erase(other);
  }
  regions_.push_back(std::move(own));
}

const TensorArgument& CoreGlobal::tensor_of(const ir::Operation& access) const {
  return *launch_.tensor_of[tensor_value(access)];
}

const TensorArgument& CoreGlobal::tensor_of(const CoreItem& item) const {
  return tensor_of(copy_of(item));
}

CoreGlobal::Region* CoreGlobal::region_of(const std::byte* place) {
  const auto found = std::find_if(regions_.begin(), regions_.end(), [&](const Region& region) {
    return region.begin <= place && place < region.end;
  });
  return found == regions_.end() ? nullptr : &*found;
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

CoreGlobal::Outside CoreGlobal::outside(const CoreItem& item, std::int64_t instance) const {
  const TensorArgument& tensor = tensor_of(item);
  const std::vector<std::int64_t>& sizes = copy_of(item).attributes.integers(ir::Key::sizes);
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    const std::int64_t index = item.bounds[axis];
    if (sizes[axis] != 0 || (index >= 0 && index < tensor.shape[axis])) continue;
    return {fmt::format("index {} on axis {} of {}, whose size is {}", index, axis, tensor.name,
                        tensor.shape[axis]),
            "an index from 0 to the axis's last, or a condition around it"};
  }
  const auto found = launch_.checks.find(item.operation);
  if (found == launch_.checks.end()) return {};
  for (analysis::AxisCheck check : found->second) {
    // Where another instance's rows begin the sequencer's number decides, too.
    check.placed = check.placed && instance == 0;
    const std::string problem = analysis::describe_fault(check, item.bounds[check.axis],
                                                         item.bounds[sizes.size() + check.axis],
                                                         tensor.shape[check.axis], tensor.name);
    if (!problem.empty()) return {problem, "blocks inside of the tensor, or a condition (when)"};
  }
  return {};
}

SourceLocation CoreGlobal::where(const CoreItem& item) const {
  return launch_.kernel.parameter_of(tensor_value(copy_of(item)))->where;
}

namespace {

Fault index_race(const CoreLaunch& launch, const ir::Operation& reads, const ir::Operation& writes,
                 const std::string& written) {
  Fault fault;
  fault.kind = "race";
  fault.first = reads.where;
  fault.second = writes.where;
  fault.message = fmt::format("{}: {} reads memory of {} that {} writes", launch.kernel.name,
                              text_of(reads), written, text_of(writes));
  fault.missing =
      "memory of its own for what is read: units do not tell sequencers when they are done";
  return fault;
}

}  // namespace

void CoreGlobal::order_indices(const std::vector<CoreIndexRead>& reads, FaultLog& log) {
  for (const CoreIndexRead& read : reads) {
    Region* region = region_of(read.place);
    if (region == nullptr) continue;
    const std::int64_t size = size_of(launch_.tensor_of[read.by->operands[0]]->dtype);
    for (std::int64_t at = (read.place - region->begin) / region->piece,
                      end = at + size / region->piece;
         at < end; ++at) {
      region->indices[at] = read.by;
      const CoreAgent& writer = region->writers[at].agent;
      if (!writer.is_there()) continue;
      log.add(index_race(launch_, *read.by, *writer.operation, tensor_of(*writer.operation).name));
      return;
    }
  }
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
  const TensorArgument& tensor = tensor_of(item);
  Region* region = region_of(tensor.data);
  if (region == nullptr) return;
  CoreAgent own = by;
  own.writes = writes;
  const auto conflicts = [&](const Access& access) {
    if (!access.agent.is_there()) return false;
    if (access.block != block) return true;
    return known[access.agent.queue] < access.agent.number && !access.agent.is(by);
  };
  const auto report = [&](const Access& access) {
    const TensorArgument& other = tensor_of(*access.agent.operation);
    const bool shared = &other != &tensor;
    const std::string place =
        shared ? fmt::format("memory that {} and {} share", tensor.name, other.name) : tensor.name;
    Fault fault = race(launch_, own, access.agent, place);
    if (access.block != block) {
      fault.message = fmt::format("{}: {} in block {} and {} in block {} touch one element of {}",
                                  launch_.kernel.name, text_of(*by.operation), block,
                                  text_of(*access.agent.operation), access.block, place);
      fault.missing = "parts of their own for blocks: they run in no order";
    }
    if (shared) fault.missing += "; or memory of its own for one of the two tensors";
    log.add(std::move(fault));
  };
  const std::int64_t size = size_of(tensor.dtype), pieces = size / region->piece;
  const std::int64_t first = (tensor.data - region->begin) / region->piece;
  for (const std::int64_t element : elements) {
    if (element < 0) continue;
    for (std::int64_t at = first + element * pieces; at < first + (element + 1) * pieces; ++at) {
      Access& writer = region->writers[at];
      std::vector<Access>& readers = region->readers[at];
      if (conflicts(writer)) return report(writer);
      if (!writes) {
        if (readers.empty() || !readers.back().agent.is(by)) readers.push_back({block, own});
        continue;
      }
      if (const auto index = region->indices.find(at); index != region->indices.end()) {
        return log.add(index_race(launch_, *index->second, *own.operation, tensor.name));
      }
      const auto reader = std::find_if(readers.begin(), readers.end(), conflicts);
      if (reader != readers.end()) return report(*reader);
      readers.clear();
      writer = {block, own};
    }
  }
}

CoreValues CoreGlobal::read(const CoreItem& item, const std::vector<std::int64_t>& elements,
                            Origins& origins) {
  const TensorArgument& tensor = tensor_of(item);
  const Region* region = starts_unwritten_.count(&tensor) != 0 ? region_of(tensor.data) : nullptr;
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
    const bool is_unwritten =
        region != nullptr &&
        !region->writers[(memory - region->begin) / region->piece].agent.is_there();
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
