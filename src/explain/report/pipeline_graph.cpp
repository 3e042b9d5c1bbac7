#include "explain/report/pipeline_graph.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "compiler/build.h"
#include "support/same_line.h"

namespace tilewright::explanations {
namespace {

using ir::Key;
using ir::Op;
using ir::Operation;
using ir::Type;
using ir::ValueId;

class Builder {
 public:
  explicit Builder(const ir::Kernel& kernel) : kernel_(kernel) {}

  PipelineGraph build() {
    graph_.shared_bytes = kernel_.shared_bytes;
    graph_.threads = kernel_.threads;
    graph_.cluster = kernel_.cluster;
    for (const ir::Parameter& parameter : kernel_.parameters) add_tensor(parameter);
    for (const Operation& operation : kernel_.body.body) {
      if (operation.op == Op::shared || operation.op == Op::mbarriers) add_place(operation);
      if (operation.op == Op::tensor_map) {
        tensor_of_[operation.results[0]] = tensor_of_.at(operation.operands[0]);
      }
      if (operation.op == Op::role) add_role(operation);
    }
    return std::move(graph_);
  }

 private:
  void add_tensor(const ir::Parameter& parameter) {
    if (!parameter.is_tensor()) return;
    std::vector<std::string> shape;
    for (const Dim& dim : parameter.shape) shape.push_back(dim.to_string());
    tensor_of_[parameter.value] = static_cast<int>(graph_.tensors.size());
    graph_.tensors.push_back(
        {parameter.name, std::string(ir::name_of(parameter.kind)),
         fmt::format("{}[{}]", name_of(parameter.dtype), fmt::join(shape, ", "))});
  }

  void add_place(const Operation& operation) {
    const ir::Attributes& attributes = operation.attributes;
    GraphPlace place;
    place.name = attributes.text(Key::name);
    place.bytes = compiler::bytes_of(kernel_, operation);
    place.offset = attributes.integer_or(Key::offset, 0);
    place.where = operation.where;
    if (operation.op == Op::mbarriers) {
      place.kind = GraphPlace::Kind::barriers;
      place.contents = "mbarrier";
      place.stages = kernel_.type(operation.results[0]).elements();
      place.arrivals = attributes.integer(Key::arrivals);
    } else {
      place.contents = fmt::format("{} {}", name_of(kernel_.type(operation.results[0]).dtype),
                                   fmt::join(attributes.shared_layout().shape, "x"));
      place.stages = attributes.integer(Key::stages);
    }
    place_of_[operation.results[0]] = static_cast<int>(graph_.places.size());
    graph_.places.push_back(std::move(place));
  }

  void add_role(const Operation& role) {
    graph_.roles.push_back({role.attributes.text(Key::name),
                            role.attributes.integer(Key::first_warp),
                            role.attributes.integer(Key::warps),
                            role.attributes.integer_or(Key::registers, 0), role.where});
    for (const ir::Block& block : role.blocks) {
      ir::for_each(block, [this](const Operation& operation) { visit(operation); });
    }
  }

  // The same place may be both operands of a product: one flow.
  void visit(const Operation& operation) {
    const ir::OpInfo& info = ir::info(operation.op);
    if (info.family == ir::Family::peer || info.family == ir::Family::map_choice) {
      tensor_of_[operation.results[0]] = tensor_of_.at(operation.operands[0]);
      return;
    }
    std::vector<int> places;
    int tensor = -1;
    for (const ValueId operand : operation.operands) {
      if (const auto at = place_of_.find(operand); at != place_of_.end()) {
        if (std::count(places.begin(), places.end(), at->second) == 0) places.push_back(at->second);
      }
      if (const auto at = tensor_of_.find(operand); at != tensor_of_.end()) tensor = at->second;
    }
    for (const int place : places) {
      const bool barrier = graph_.places[place].kind == GraphPlace::Kind::barriers;
      const ir::Memory memory = barrier ? ir::Memory::barrier : ir::Memory::shared;
      note(operation, place, tensor, info.reads(memory), info.writes(memory));
    }
    if (places.empty() && tensor >= 0) {
      note(operation, -1, tensor, info.reads(ir::Memory::global), info.writes(ir::Memory::global));
    }
  }

  void note(const Operation& operation, int place, int tensor, bool reads, bool writes) {
    const std::size_t role = graph_.roles.size() - 1;
    const auto [at, fresh] =
        flow_of_.emplace(std::make_tuple(role, operation.op, place, tensor), graph_.flows.size());
    if (fresh) {
      graph_.flows.push_back(
          {role, std::string(ir::info(operation.op).name), place, tensor, reads, writes, 0, {}});
    }
    GraphFlow& flow = graph_.flows[at->second];
    ++flow.count;
    const auto same = [&](SourceLocation other) { return same_line(other, operation.where); };
    if (std::none_of(flow.where.begin(), flow.where.end(), same)) {
      flow.where.push_back(operation.where);
    }
  }

  const ir::Kernel& kernel_;
  PipelineGraph graph_;
  std::map<ValueId, int> place_of_, tensor_of_;
  std::map<std::tuple<std::size_t, Op, int, int>, std::size_t> flow_of_;
};

}  // namespace

PipelineGraph pipeline_graph(const ir::Kernel& machine) { return Builder(machine).build(); }

}  // namespace tilewright::explanations
