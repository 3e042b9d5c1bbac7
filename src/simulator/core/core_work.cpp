#include "simulator/core/core_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace tilewright::simulator {
namespace {

using ir::Key;
using ir::Op;

bool writes(const CoreItem& item, std::size_t window) {
  return window == 0 && item.operation->op != Op::core_store;
}
// Whether the first window is also read.
bool adds(const CoreItem& item) {
  return item.operation->op == Op::core_matmul && item.numbers[0].whole != 0;
}

std::int64_t divided(double amount, double by) {
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(amount / by)));
}

}  // namespace

CoreWork::CoreWork(const CoreLaunch& launch, CoreGlobal& global, std::int64_t block,
                   std::size_t queues, FaultLog& log)
    : launch_(launch),
      core_(launch.core),
      global_(global),
      block_(block),
      log_(log),
      shared_(launch, queues, origins_, "") {
  for (const target::CoreSequencer& sequencer : core_.sequencers) {
    std::vector<CoreMemories>& own = own_.emplace_back();
    for (int i = 0; i < sequencer.count; ++i) {
      own.emplace_back(launch, queues, origins_, sequencer.name);
    }
  }
}

CoreMemories& CoreWork::memories(std::int64_t instance, const CoreWindowAt& window) {
  const target::CoreSpace& space = *launch_.places[window.place].space;
  if (space.sequencer.empty()) return shared_;
  const target::CoreSequencer* sequencer = core_.sequencer(space.sequencer);
  return own_[static_cast<std::size_t>(sequencer - core_.sequencers.data())][instance];
}

void CoreWork::order(std::int64_t instance, const CoreItem& item, const CoreAgent& by,
                     const CoreClock& known) {
  for (std::size_t i = 0; i < item.windows.size(); ++i) {
    if (writes(item, i) && !adds(item)) continue;
    memories(instance, item.windows[i]).order(item.windows[i], false, by, known, log_);
  }
  const bool stores = item.operation->op == Op::core_store;
  if (stores || item.operation->op == Op::core_load) {
    global_.order(item, global_.elements(item), stores, block_, by, known, log_);
  }
  for (std::size_t i = 0; i < item.windows.size(); ++i) {
    if (!writes(item, i)) continue;
    memories(instance, item.windows[i]).order(item.windows[i], true, by, known, log_);
  }
  check_overlap(instance, item);
}

void CoreWork::check_overlap(std::int64_t instance, const CoreItem& item) {
  for (std::size_t i = 1; i < item.windows.size(); ++i) {
    const CoreWindowAt &to = item.windows[0], &from = item.windows[i];
    CoreMemories& own = memories(instance, to);
    if (&own != &memories(instance, from) || !own.overlap(to, from)) continue;
    const auto name = [&](const CoreWindowAt& window) {
      return launch_.places[window.place].operation->attributes.text(Key::name);
    };
    log_.add({"overlap", item.operation->where, launch_.places[from.place].operation->where,
              fmt::format("{}: {} writes {} over a part of {}, which it reads", launch_.kernel.name,
                          text_of(*item.operation), name(to), name(from)),
              "a result that lies apart, or exactly where the operand does"});
    return;
  }
}

bool CoreWork::is_inside(std::int64_t instance, const CoreItem& item) const {
  for (const CoreWindowAt& window : item.windows) {
    std::string kind, fix;
    const std::string problem = shared_.problem_of(window, kind, fix);
    if (problem.empty()) continue;
    log_.add(
        {kind, item.operation->where, launch_.places[window.place].operation->where,
         fmt::format("{}: {}: {}", launch_.kernel.name, ir::info(item.operation->op).name, problem),
         fix});
    return false;
  }
  const Op op = item.operation->op;
  if (op == Op::core_load || op == Op::core_store) {
    const CoreGlobal::Outside outside = global_.outside(item, instance);
    if (!outside.problem.empty()) {
      log_.add({"out_of_bounds", item.operation->where, global_.where(item),
                fmt::format("{}: {}: {}", launch_.kernel.name, text_of(*item.operation),
                            outside.problem),
                outside.fix});
      return false;
    }
  }
  if (op == Op::core_matmul && item.numbers.size() > 1) {
    const std::int64_t k = item.numbers[1].whole, most = item.windows[1].seen().columns;
    if (k < 0 || k > most) {
      log_.add({"out_of_bounds",
                item.operation->where,
                {},
                fmt::format("{}: core_matmul: k is {}, and the operands have {}",
                            launch_.kernel.name, k, most),
                "a k from 0 to that"});
      return false;
    }
  }
  return true;
}

const target::CoreProduct& CoreWork::product_of(const CoreItem& item) const {
  const auto space = [&](std::size_t i) -> const std::string& {
    return launch_.places[item.windows[i].place].space->name;
  };
  return *std::find_if(
      core_.products.begin(), core_.products.end(), [&](const target::CoreProduct& each) {
        return each.result == space(0) && each.left == space(1) && each.right == space(2);
      });
}
const target::CoreMove& CoreWork::move_of(const CoreItem& item) const {
  const Op op = item.operation->op;
  const auto space = [&](std::size_t i) {
    return launch_.places[item.windows[i].place].space->name;
  };
  const std::string to = op == Op::core_store ? "" : space(0);
  const std::string from = op == Op::core_load ? "" : op == Op::core_store ? space(0) : space(1);
  const std::string& unit = core_.units[item.unit].name;
  return *std::find_if(core_.moves.begin(), core_.moves.end(), [&](const target::CoreMove& each) {
    return each.from == from && each.to == to && each.unit == unit;
  });
}
const target::CoreFunctions& CoreWork::functions_of(const CoreItem& item) const {
  const std::string& unit = core_.units[item.unit].name;
  return *std::find_if(core_.functions.begin(), core_.functions.end(),
                       [&](const target::CoreFunctions& each) { return each.unit == unit; });
}

// Of k so many are summed.
std::int64_t CoreWork::summed(const CoreItem& item) const {
  const target::CoreProduct& product = product_of(item);
  const std::int64_t all = item.windows[1].seen().columns;
  const std::int64_t k = item.numbers.size() > 1 ? item.numbers[1].whole : all;
  if (!product.sums_pad) return k;
  const std::int64_t piece =
      product.piece_k_bytes / size_of(launch_.places[item.windows[1].place].matrix.dtype);
  return std::min(all, (k + piece - 1) / piece * piece);
}

CoreCycles CoreWork::cycles_of(const CoreItem& item) const {
  const auto bytes = [&](std::size_t i) {
    const CoreWindowAt& window = item.windows[i];
    return static_cast<double>(window.lying.rows * window.lying.columns *
                               size_of(launch_.places[window.place].matrix.dtype));
  };
  if (ir::info(item.operation->op).family == ir::Family::core_copy) {
    const target::CoreMove& move = move_of(item);
    const double moved = bytes(item.windows.size() - 1);
    return {divided(moved, move.bytes), move.start, 0, moved < static_cast<double>(move.efficient)};
  }
  if (item.operation->op == Op::core_matmul) {
    const target::CoreProduct& product = product_of(item);
    const ir::Extent2 extent = item.windows[0].seen();
    const std::int64_t piece =
        product.piece_k_bytes / size_of(launch_.places[item.windows[1].place].matrix.dtype);
    const auto pieces = [](std::int64_t all, std::int64_t each) {
      return std::max<std::int64_t>(1, (all + each - 1) / each);
    };
    return {pieces(extent.rows, product.piece_m) *
                pieces(std::max(extent.columns, product.least_n), product.piece_n) *
                pieces(summed(item), piece),
            product.start};
  }
  const target::CoreFunctions& functions = functions_of(item);
  // Of the widest: a result of bool is small beside what was compared, and operands stretch.
  double widest = 0;
  for (std::size_t i = 0; i < item.windows.size(); ++i) widest = std::max(widest, bytes(i));
  const std::int64_t steps = divided(widest, functions.bytes);
  const std::int64_t each = read_cycles(item, static_cast<std::int64_t>(functions.bytes));
  return {steps * each, functions.start, steps * (each - 1)};
}

std::int64_t CoreWork::read_cycles(const CoreItem& item, std::int64_t bytes) const {
  const auto size_of_window = [&](const CoreWindowAt& window) {
    return window.lying.rows * window.lying.columns *
           size_of(launch_.places[window.place].matrix.dtype);
  };
  std::int64_t largest = 0, most = 1;
  for (std::size_t i = 1; i < item.windows.size(); ++i) {
    largest = std::max(largest, size_of_window(item.windows[i]));
  }
  std::map<const target::CoreSpace*, std::vector<std::int64_t>> reads;  // of each group of banks
  for (std::size_t i = 1; i < item.windows.size(); ++i) {
    const CoreWindowAt& window = item.windows[i];
    const CorePlace& place = launch_.places[window.place];
    const target::CoreBanks& banks = place.space->banks;
    // One that stretches is read once, and kept.
    if (banks.groups == 0 || size_of_window(window) < largest) continue;
    std::vector<std::int64_t>& served = reads[place.space];
    served.resize(static_cast<std::size_t>(banks.groups));
    const std::int64_t first = place.offset + window.stage * place.stage_bytes +
                               place.space->layout->offset(place.matrix, window.row, window.column);
    for (std::int64_t at = 0; at < std::min(bytes, largest); at += banks.bytes) {
      most = std::max(most, ++served[(first + at) / banks.bytes % banks.groups]);
    }
  }
  return most;
}

void CoreWork::execute(std::int64_t instance, const CoreItem& item) {
  const auto read = [&](std::size_t i) {
    return memories(instance, item.windows[i]).read(item.windows[i], item);
  };
  const auto dtype_of = [&](std::size_t i) {
    return launch_.places[item.windows[i].place].matrix.dtype;
  };
  const auto write = [&](const CoreValues& values, const std::vector<bool>* exists = nullptr) {
    memories(instance, item.windows[0]).write(item.windows[0], values, exists);
  };
  const ir::Operation& o = *item.operation;
  if (o.op == Op::core_load) return load(instance, item);
  if (o.op == Op::core_store) {
    const DType to = launch_.tensor_of[o.operands[0]]->dtype;
    return global_.write(item, global_.elements(item), converted(read(0), to, o.where), origins_,
                         log_);
  }
  if (o.op == Op::core_move) return write(converted(read(1), dtype_of(0), o.where));
  CoreValues result(item.windows[0].seen(), dtype_of(0));
  if (o.op == Op::core_matmul) {
    if (adds(item)) result = read(0);
    multiply(read(1), read(2), summed(item), result);
  } else if (o.op == Op::core_vector) {
    function(instance, item, result);
  } else if (o.op == Op::core_reduce) {
    reduce_along(o.attributes.function(), o.attributes.integer(Key::axis), read(1), result,
                 o.where);
  } else if (o.op == Op::core_fill) {
    std::fill(result.real.begin(), result.real.end(), item.numbers[0].real);
    std::fill(result.whole.begin(), result.whole.end(), item.numbers[0].whole);
  } else {
    const bool is_row = o.attributes.integer(Key::axis) == 0;
    for (std::size_t i = 0; i < result.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      result.whole[i] = item.numbers[0].whole +
                        (is_row ? at / result.extent.columns : at % result.extent.columns);
    }
  }
  write(result);
}

void CoreWork::load(std::int64_t instance, const CoreItem& item) {
  const std::vector<std::int64_t> elements = global_.elements(item);
  CoreValues values = global_.read(item, elements, origins_);
  const target::CoreMove& move = move_of(item);
  std::vector<bool> written(elements.size());
  const std::int64_t pad = move.pad_bytes / size_of(values.dtype);
  const std::int64_t columns = values.extent.columns;
  for (std::int64_t row = 0; row < values.extent.rows; ++row) {
    std::int64_t last = 0;  // behind the last that exists
    for (std::int64_t column = 0; column < columns; ++column) {
      const bool exists = elements[row * columns + column] >= 0;
      written[row * columns + column] = exists;
      if (exists) last = column + 1;
    }
    if (pad == 0 || last == 0) continue;
    const std::int64_t end = std::min(columns, (last + pad - 1) / pad * pad);
    for (std::int64_t column = last; column < end; ++column) {
      written[row * columns + column] = true;  // with the zeros that the values began with
    }
  }
  const CoreWindowAt& window = item.windows[0];
  CoreMemories& own = memories(instance, window);
  const DType to = launch_.places[window.place].matrix.dtype;
  own.write(window, converted(values, to, item.operation->where), &written);
}

void CoreWork::function(std::int64_t instance, const CoreItem& item, CoreValues& result) {
  const ir::Operation& o = *item.operation;
  std::vector<CoreValues> matrices;
  matrices.reserve(item.windows.size());
  for (std::size_t i = 1; i < item.windows.size(); ++i) {
    matrices.push_back(memories(instance, item.windows[i]).read(item.windows[i], item));
  }
  std::vector<CoreOperandValue> operands;
  std::size_t next_matrix = 0, next_number = 0;
  for (std::size_t i = 1; i < o.operands.size(); ++i) {
    const ir::Type& type = launch_.kernel.type(o.operands[i]);
    if (type.is_scalar()) {
      operands.push_back({nullptr, item.numbers[next_number++], type.dtype});
    } else {
      operands.push_back({&matrices[next_matrix++], {}, type.dtype});
    }
  }
  apply(o.attributes.function(), operands, result, o.where);
}

}  // namespace tilewright::simulator
