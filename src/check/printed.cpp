#include "check/printed.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "check/any_order.h"
#include "check/machine_events.h"
#include "compiler/check_report.h"
#include "compiler/launch_plan.h"
#include "compiler/simulation.h"
#include "compiler/written_tensors.h"
#include "library/differences.h"
#include "simulator/machine/global_memory.h"
#include "simulator/machine/machine.h"
#include "support/diagnostic.h"
#include "support/number_formats.h"

namespace tilewright::checks {
namespace {

using ptx::EventKind;

ptx::Type type_of(runtime::TensorMapType type) {
  switch (type) {
    case runtime::TensorMapType::u8:
      return ptx::Type::u8;
    case runtime::TensorMapType::u16:
      return ptx::Type::u16;
    case runtime::TensorMapType::u32:
      return ptx::Type::u32;
    case runtime::TensorMapType::i32:
      return ptx::Type::s32;
    case runtime::TensorMapType::u64:
      return ptx::Type::u64;
    case runtime::TensorMapType::i64:
      return ptx::Type::s64;
    case runtime::TensorMapType::f16:
      return ptx::Type::f16;
    case runtime::TensorMapType::f32:
      return ptx::Type::f32;
    case runtime::TensorMapType::f64:
      return ptx::Type::f64;
    case runtime::TensorMapType::bf16:
      return ptx::Type::bf16;
    case runtime::TensorMapType::tf32:
      return ptx::Type::tf32;
  }
  return ptx::Type::none;
}

ptx::TensorMap map_of(const runtime::TensorMapSpec& spec) {
  ptx::TensorMap map;
  map.name = spec.name;
  map.base = reinterpret_cast<std::uint64_t>(spec.base);
  map.rank = spec.rank;
  map.type = type_of(spec.type);
  map.swizzle =
      spec.swizzle == runtime::TensorMapSwizzle::none ? 0 : 16 << static_cast<int>(spec.swizzle);
  for (int axis = 0; axis < spec.rank; ++axis) {
    map.sizes[axis] = static_cast<std::int64_t>(spec.sizes[axis]);
    map.box[axis] = spec.box[axis];
    map.strides[axis] =
        axis == 0 ? ptx::size_of(map.type) : static_cast<std::int64_t>(spec.strides[axis - 1]);
  }
  return map;
}

// Functions that the printed kernel takes from CUDA's library.
bool has_library_function(const ir::Kernel& machine) {
  bool found = false;
  ir::for_each(machine.body, [&](const ir::Operation& operation) {
    const ir::Op op = operation.attributes.has(ir::Key::function) ? operation.attributes.function()
                                                                  : operation.op;
    found = found || op == ir::Op::erf || op == ir::Op::log1p || op == ir::Op::expm1;
  });
  return found;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

class Comparison {
 public:
  Comparison(const ir::Kernel& machine, const std::vector<codegen::LaunchParameter>& parameters,
             const ptx::Kernel& kernel, const Arguments& arguments, const PrintedOptions& options)
      : machine_(machine),
        parameters_(parameters),
        kernel_(kernel),
        options_(options),
        arguments_(arguments),
        written_(machine, arguments) {
    for (TensorArgument& tensor : arguments_.tensors) {
      if (!tensor.strides.empty()) continue;
      tensor.strides.assign(tensor.shape.size(), 1);
      for (std::size_t axis = tensor.shape.size(); axis-- > 1;) {
        tensor.strides[axis - 1] = tensor.strides[axis] * tensor.shape[axis];
      }
    }
  }

  PrintedDifference run() {
    simulator::MachineOptions how;
    how.seed = options_.seed;
    how.multiprocessors = options_.multiprocessors;
    how.resident = ir::is_cooperative(machine_) ? options_.multiprocessors : 1;
    how.counting_fills_gpu = false;  // as many at a time as execute() has
    how.check_order = false;
    how.by_instructions = true;
    how.recorder = &expected_;
    const simulator::MachineReport report = compiler::simulate(machine_, arguments_, how);
    if (!report.ok()) {
      const simulator::Fault& fault = report.faults.front();
      if (fault.kind != "check") return {"machine", 0, fault.message};
      failed_check_ = first_line(fault.message);
    }
    save();
    PrintedDifference difference = execute(ptx::Timing::early);
    if (difference.none() && options_.late) difference = execute(ptx::Timing::late);
    return difference;
  }

 private:
  void save() {
    for (const TensorArgument* tensor : written_.tensors()) {
      const auto range = simulator::GlobalMemory::range_of(*tensor);
      results_.emplace_back(range.begin, range.end);
    }
  }

  // Memory that the runtime has for the kernel, as Workspaces of the virtual GPU.
  Arguments with_owned() {
    Arguments complete = arguments_;
    owned_.clear();
    for (const ir::Parameter& parameter : machine_.parameters) {
      if (!parameter.is_owned()) continue;
      const bool is_scratch = parameter.kind == ir::Parameter::Kind::scratch;
      const auto& words = owned_.emplace_back(static_cast<std::size_t>(parameter.element_count()),
                                              is_scratch ? std::int32_t{-1} : std::int32_t{0});
      std::vector<std::int64_t> shape = parameter.constant_shape(), strides(shape.size(), 1);
      for (std::size_t axis = shape.size(); axis-- > 1;) {
        strides[axis - 1] = strides[axis] * shape[axis];
      }
      complete.tensors.push_back(
          {parameter.name,
           parameter.dtype,
           std::move(shape),
           std::move(strides),
           reinterpret_cast<std::byte*>(const_cast<std::int32_t*>(words.data())),
           {}});
    }
    return complete;
  }

  PrintedDifference execute(ptx::Timing timing) {
    written_.restore();
    complete_ = with_owned();
    compiler::LaunchPlan plan =
        compiler::plan_launch(machine_, parameters_, complete_, options_.multiprocessors);
    if (plan.empty) return {};
    ptx::LaunchInput input;
    input.grid = {plan.shape.grid.x, 1, 1};
    input.block = {plan.shape.block.x, 1, 1};
    input.cluster = plan.shape.cluster.x;
    if (kernel_.cluster != input.cluster) {
      return {
          "fault", kernel_.line,
          fmt::format("clusters of {}, and the launch is of {}", kernel_.cluster, input.cluster)};
    }
    input.dynamic_shared_bytes = plan.shape.shared_bytes;
    for (std::size_t i = 0; i < plan.maps.size(); ++i) {
      input.maps.push_back(map_of(plan.maps[i].spec));
      plan.parameters.set(plan.maps[i].offset, ptx::handle_of(i));
    }
    codegen::CheckReport check;
    if (plan.report) {
      plan.parameters.set(*plan.report, &check);
      const auto begin = reinterpret_cast<std::uint64_t>(&check);
      input.memory.push_back({"the report", begin, begin + sizeof(check)});
    }
    const std::vector<void*> values = plan.parameters.pointers();
    for (std::size_t i = 0; i < values.size() && i < kernel_.parameters.size(); ++i) {
      const auto* const bytes = static_cast<const std::byte*>(values[i]);
      input.parameters.emplace_back(bytes, bytes + kernel_.parameters[i].bytes);
    }
    for (const TensorArgument& tensor : complete_.tensors) {
      const auto range = simulator::GlobalMemory::range_of(tensor);
      input.memory.push_back({tensor.name, reinterpret_cast<std::uint64_t>(range.begin),
                              reinterpret_cast<std::uint64_t>(range.end)});
    }
    input.order = expected_.clusters;
    input.taken = expected_.taken;
    for (const MachineEvents::Addition& addition : expected_.additions) {
      const TensorArgument& tensor =
          complete_.tensors.at(static_cast<std::size_t>(addition.place >> 40));
      const std::byte* const word = tensor.data + (addition.place & ((std::int64_t{1} << 40) - 1));
      input.turns.push_back({reinterpret_cast<std::uint64_t>(word), addition.cta, addition.warp});
    }
    input.timing = timing;
    if (ir::is_cooperative(machine_)) input.resident = plan.shape.grid.x / input.cluster;
    input.check_order = options_.check_order;
    input.most_operations = 400'000'000;
    ptx::LaunchReport report = ptx::execute(kernel_, input);
    if (!failed_check_.empty() || check.written != 0) return compare_checks(check, report);
    // A fault may follow from what was out of order before it.
    if (PrintedDifference order = compare_events(report); !order.none()) {
      if (!report.faults.empty()) order.message += "\nthen: " + report.faults.front().message;
      return order;
    }
    if (!report.faults.empty()) {
      return {"fault", report.faults.front().line, report.faults.front().message};
    }
    return compare_results();
  }

  // Both have ended at a check, or should have.
  PrintedDifference compare_checks(const codegen::CheckReport& check,
                                   const ptx::LaunchReport& report) const {
    std::string said;
    if (check.written != 0) {
      said = first_line(compiler::failed_check(check, machine_).message);
    }
    const bool trapped = !report.faults.empty() && report.faults.front().kind == "trap";
    if (said == failed_check_ && trapped) return {};
    return {"check", report.faults.empty() ? 0 : report.faults.front().line,
            fmt::format("the PTX {} and reports '{}', the machine form '{}'",
                        trapped ? "traps" : "does not trap", said, failed_check_)};
  }

  // Words are named by their tensor, wherever it lies.
  std::vector<ptx::Event> named(std::vector<ptx::Event> events) const {
    for (ptx::Event& event : events) {
      const bool is_word = event.kind == EventKind::word_read ||
                           event.kind == EventKind::word_write || event.kind == EventKind::word_add;
      if (is_word) event.values[2] = place_of(event.values[2]);
    }
    return events;
  }
  // What is asked again and again is asked once.
  static std::vector<ptx::Event> without_repeats(const std::vector<ptx::Event>& events) {
    std::vector<ptx::Event> result;
    for (const ptx::Event& event : events) {
      const bool repeated = event.kind == EventKind::word_read && !result.empty() &&
                            result.back().kind == EventKind::word_read &&
                            result.back().values == event.values;
      if (!repeated) result.push_back(event);
    }
    return result;
  }
  std::int64_t place_of(std::int64_t address) const {
    const auto* const at = reinterpret_cast<const std::byte*>(address);
    for (std::size_t i = 0; i < complete_.tensors.size(); ++i) {
      const auto range = simulator::GlobalMemory::range_of(complete_.tensors[i]);
      if (range.has(at)) return word_place(i, at - complete_.tensors[i].data);
    }
    return -1;
  }

  PrintedDifference compare_events(const ptx::LaunchReport& report) const {
    const auto warps = static_cast<std::size_t>(machine_.threads / ptx::kLanes);
    const bool is_over = report.faults.empty();
    for (std::size_t w = 0; w < report.events.size(); ++w) {
      const std::vector<ptx::Event> wanted = without_repeats(expected_.events.at(w));
      const std::vector<ptx::Event> got = without_repeats(named(report.events[w]));
      const auto at = [&](std::size_t i) {
        return fmt::format("warp {} of CTA {}, synchronising instruction {}", w % warps, w / warps,
                           i);
      };
      for (std::size_t i = 0; i < std::min(wanted.size(), got.size()); ++i) {
        if (same(wanted[i], got[i])) continue;
        return {"order", got[i].line,
                fmt::format("{}: the PTX does {}, the machine form {}", at(i), got[i].text(),
                            wanted[i].text())};
      }
      if (got.size() > wanted.size()) {
        return {"order", got[wanted.size()].line,
                fmt::format("{}: the PTX does {}, the machine form nothing more", at(wanted.size()),
                            got[wanted.size()].text())};
      }
      if (got.size() < wanted.size() && is_over) {
        return {"order", 0,
                fmt::format("{}: the PTX does nothing more, the machine form {}", at(got.size()),
                            wanted[got.size()].text())};
      }
    }
    return {};
  }

  // Of what one lane does, it does not matter which.
  static bool same(const ptx::Event& a, const ptx::Event& b) {
    const bool single = (a.lanes & (a.lanes - 1)) == 0;
    const bool lanes = single ? (b.lanes & (b.lanes - 1)) == 0 : a.lanes == b.lanes;
    return a.kind == b.kind && a.values == b.values && lanes;
  }

  double bound_of(const TensorArgument& tensor) const {
    if (!is_float(tensor.dtype)) return 0;
    const bool is_wide = tensor.dtype == DType::f32;
    // Two units in the last place of each function, and what follows from them.
    double bound = has_library_function(machine_) ? (is_wide ? 1e-4 : 0x1p-7) : 0;
    // An order of the terms is the machine form's no more than the PTX's.
    if (added_in_any_order(machine_).count(tensor.name) > 0) {
      bound = std::max(bound, library::bound_of_any_order(tensor.dtype));
    }
    return bound;
  }

  PrintedDifference compare_results() const {
    for (std::size_t t = 0; t < results_.size(); ++t) {
      const TensorArgument& tensor = *written_.tensors()[t];
      const auto range = simulator::GlobalMemory::range_of(tensor);
      const std::optional<std::size_t> element = library::first_apart(
          tensor.dtype, {range.begin, range.end}, results_[t], bound_of(tensor));
      if (!element) continue;
      const std::size_t at = *element * static_cast<std::size_t>(size_of(tensor.dtype));
      return {"result", 0,
              fmt::format("element {} of {} in memory is {:.9g} by the PTX, {:.9g} by the machine "
                          "form",
                          *element, tensor.name, number_of(tensor.dtype, range.begin + at),
                          number_of(tensor.dtype, results_[t].data() + at))};
    }
    return {};
  }
  static float number_of(DType dtype, const std::byte* element) {
    if (!is_float(dtype)) return static_cast<float>(to_integer(dtype, element));
    float value = 0;
    to_float(dtype, element, &value, 1);
    return value;
  }

  const ir::Kernel& machine_;
  const std::vector<codegen::LaunchParameter>& parameters_;
  const ptx::Kernel& kernel_;
  const PrintedOptions& options_;
  Arguments arguments_, complete_;
  const compiler::WrittenTensors written_;
  MachineEvents expected_;
  std::string failed_check_;  // what the machine form ended with; empty: it came to its end
  std::vector<std::vector<std::byte>> results_;
  std::vector<std::vector<std::int32_t>> owned_;
};

}  // namespace

PrintedDifference compare_printed(const ir::Kernel& machine,
                                  const std::vector<codegen::LaunchParameter>& parameters,
                                  const ptx::Module& module, const Arguments& arguments,
                                  const PrintedOptions& options) {
  if (arguments.ranks > 1) {
    Diagnostic(machine.where,
               fmt::format("kernel {} runs on {} ranks, and the PTX of one is compared",
                           machine.name, arguments.ranks))
        .raise();
  }
  if (module.kernels.size() != 1) {
    return {"fault", 0, fmt::format("the PTX has {} kernels", module.kernels.size())};
  }
  if (compiler::outputs_are_empty(machine, arguments)) return {};
  return Comparison(machine, parameters, module.kernels.front(), arguments, options).run();
}

}  // namespace tilewright::checks
