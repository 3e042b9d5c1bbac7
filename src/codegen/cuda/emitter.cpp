#include "codegen/cuda/emitter.h"

#include <fmt/format.h>

#include <cctype>

#include "analysis/nonnegative.h"
#include "codegen/cuda/expressions.h"
#include "codegen/cuda/operations.h"
#include "codegen/cuda/prelude.h"
#include "codegen/cuda/reserved_words.h"
#include "ir/text.h"
#include "support/diagnostic.h"
#include "support/escape.h"
#include "support/same_line.h"

namespace tilewright::codegen {

using ir::Key;
using ir::Operation;
using ir::ValueId;

std::string identifier(std::string_view text) {
  std::string result;
  for (const char c : text) {
    result += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  }
  if (result.empty() || std::isdigit(static_cast<unsigned char>(result[0])) != 0) {
    result.insert(0, "_");
  }
  return result;
}

void cannot_print(const Operation& operation, std::string_view why) {
  Diagnostic(operation.where, fmt::format("{}: {}", ir::info(operation.op).name, why),
             ErrorKind::internal)
      .raise();
}

namespace {

// What signals or waits, and what copies or products run beside the warp.
bool is_delayed(const Operation& operation) {
  const ir::OpInfo& record = ir::info(operation.op);
  return record.synchronises || record.touches(ir::Memory::barrier, ir::Proxy::generic) ||
         record.completion != ir::Completion::now ||
         (record.writes(ir::Memory::global, ir::Proxy::generic) && record.agent == ir::Agent::lane);
}

}  // namespace

Emitter::Emitter(const ir::Kernel& kernel, const PrintFlavour& flavour)
    : kernel_(kernel),
      flavour_(flavour),
      names_(kernel.types.size()),
      definitions_(kernel.types.size()),
      nonnegative_(analysis::nonnegative_values(kernel)),
      used_(kernel.types.size()) {
  for (ValueId i = 0; i < names_.size(); ++i) names_[i] = fmt::format("v{}", i);
  ir::for_each(kernel.body, [this](const Operation& operation) {
    for (const ValueId result : operation.results) definitions_[result] = &operation;
    for (const ValueId operand : operation.operands) used_[operand] = true;
  });
  for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
    const ir::Parameter& parameter = kernel.parameters[i];
    if (parameter.is_tensor()) continue;
    LaunchParameter launch;
    launch.kind = LaunchParameter::Kind::scalar;
    launch.index = static_cast<int>(i);
    launch.dtype = parameter.dtype;
    const std::string name = fmt::format("{}_{}", identifier(parameter.name), parameter.value);
    scalars_.push_back({launch, fmt::format("{} {}", scalar_type(parameter.dtype), name)});
    names_[parameter.value] = name;
  }
}

std::string Emitter::named(const Operation& operation) const {
  const ir::Attribute* name = operation.attributes.find(Key::name);
  return fmt::format("{}_{}", name ? identifier(std::get<std::string>(*name)) : "v",
                     operation.results.at(0));
}

std::optional<std::int64_t> Emitter::constant(ValueId value) const {
  const Operation* operation = definitions_[value];
  if (!operation || operation->op != ir::Op::constant) return std::nullopt;
  const auto* integer = std::get_if<std::int64_t>(operation->attributes.find(Key::value));
  return integer ? std::optional(*integer) : std::nullopt;
}

void Emitter::line(std::string_view text) {
  if (!same_line(where_, printed_where_)) {
    printed_where_ = where_;
    const std::string_view path(where_.file);
    append(fmt::format("// {}:{}", escaped_comment(path.substr(path.find_last_of('/') + 1)),
                       where_.line));
  }
  append(text);
}

void Emitter::append(std::string_view text) {
  body_.append(2 * indent_, ' ');
  body_ += text;
  body_ += '\n';
}

void Emitter::open(std::string_view head) {
  line(head.empty() ? "{" : fmt::format("{} {{", head));
  ++indent_;
}

void Emitter::close() {
  --indent_;
  append("}");
}

void Emitter::lane_line(std::string_view text) {
  switch (agent) {
    case Agent::cta:
      return line(fmt::format("if (threadIdx.x == 0) {}", text));
    case Agent::warp:
      return line(fmt::format("if (lane == 0) {}", text));
    case Agent::lane:
      return line(text);
  }
}

void Emitter::delay() {
  const std::uint64_t site = (*flavour_.delay_seed + ++delays_) * 0x9E3779B97F4A7C15u;
  line(fmt::format("inject_delay({}u, warp);", site >> 32));
}

void Emitter::print_block(const ir::Block& block) {
  for (std::size_t i = 0; i < block.body.size(); ++i) {
    const Operation& operation = block.body[i];
    const OperationPrinter print = printer_of(operation.op);
    if (!print) cannot_print(operation, "not an operation of the machine form");
    if (operation.where.file) where_ = operation.where;
    previous = i > 0 ? &operation - 1 : nullptr;
    next = i + 1 < block.body.size() ? &operation + 1 : nullptr;
    if (flavour_.delay_seed && is_delayed(operation)) delay();
    print(*this, operation);
  }
}

std::string Emitter::add_parameter(LaunchParameter launch, std::string type, std::string name) {
  const std::string what =
      fmt::format("{} {} {} {}", static_cast<int>(launch.kind), launch.index, launch.axis,
                  launch.kind == LaunchParameter::Kind::dim ? launch.dim.to_string() : "");
  const auto [entry, fresh] = parameter_names_.emplace(what, name);
  if (fresh) {
    std::vector<Parameter>& list = launch.kind == LaunchParameter::Kind::dim ? dims_ : tensors_;
    list.push_back({std::move(launch), fmt::format("{} {}", type, name)});
  }
  return entry->second;
}

std::string Emitter::pointer(ValueId tensor) {
  if (type(tensor).is_peer()) return name(tensor);
  const ir::Parameter& parameter = *kernel_.parameter_of(tensor);
  LaunchParameter launch;
  launch.kind = LaunchParameter::Kind::pointer;
  launch.index = static_cast<int>(&parameter - kernel_.parameters.data());
  return add_parameter(launch, fmt::format("{}*", memory_type(parameter.dtype)),
                       fmt::format("{}_{}", identifier(parameter.name), tensor));
}

std::string Emitter::peer_pointers(ValueId tensor) {
  const ir::Parameter& parameter = *kernel_.parameter_of(tensor);
  LaunchParameter launch;
  launch.kind = LaunchParameter::Kind::peer_pointers;
  launch.index = static_cast<int>(&parameter - kernel_.parameters.data());
  return add_parameter(
      launch, fmt::format("const __grid_constant__ Peers<{}>", memory_type(parameter.dtype)),
      fmt::format("{}_{}_peers", identifier(parameter.name), parameter.value));
}

std::string Emitter::launch_number(LaunchParameter::Kind kind) {
  LaunchParameter launch;
  launch.kind = kind;
  if (kind == LaunchParameter::Kind::epoch_word)
    return add_parameter(launch, "const int*", "epoch");
  return add_parameter(launch, "int", kind == LaunchParameter::Kind::rank ? "rank" : "epoch");
}

std::string Emitter::report() {
  LaunchParameter launch;
  launch.kind = LaunchParameter::Kind::report;
  return add_parameter(launch, "i64*", "report");
}

std::string Emitter::watch() {
  LaunchParameter launch;
  launch.kind = LaunchParameter::Kind::watch;
  return add_parameter(launch, "i64*", "watch");
}

std::string Emitter::stride(ValueId tensor, int axis) {
  const ir::Parameter& parameter = *kernel_.parameter_of(tensor);
  if (parameter.is_of_stream()) {  // as the runtime lays it out
    std::int64_t elements = 1;
    for (std::size_t inner = axis + 1; inner < parameter.shape.size(); ++inner) {
      elements *= parameter.shape[inner].constant();
    }
    return std::to_string(elements);
  }
  LaunchParameter launch;
  launch.kind = LaunchParameter::Kind::stride;
  launch.index = static_cast<int>(&parameter - kernel_.parameters.data());
  launch.axis = axis;
  return add_parameter(
      launch, "i64",
      fmt::format("{}_{}_stride{}", identifier(parameter.name), parameter.value, axis));
}

std::string Emitter::dim(const Dim& dim) {
  if (dim.is_constant()) return std::to_string(dim.constant());
  LaunchParameter launch;
  launch.dim = dim;
  const std::string name = dim.kind() == Dim::Kind::symbol
                               ? fmt::format("dim_{}", identifier(dim.name()))
                               : fmt::format("dim{}", dims_.size());
  return add_parameter(launch, "int", name);
}

void Emitter::add_tensor_map(const Operation& operation) {
  LaunchParameter launch;
  const bool peers = operation.attributes.has(Key::peers);
  launch.kind = peers ? LaunchParameter::Kind::peer_maps : LaunchParameter::Kind::tensor_map;
  launch.index = static_cast<int>(tensor_maps_.size());
  set_name(operation.results[0], named(operation));
  const bool is_ragged = operation.attributes.has(Key::ragged);
  const std::string_view type =
      peers ? (is_ragged ? "PeerRaggedMaps" : "PeerMaps") : (is_ragged ? "RaggedMap" : "TensorMap");
  tensor_maps_.push_back(
      {launch, fmt::format("const __grid_constant__ {} {}", type, name(operation.results[0]))});
}

CudaSource Emitter::finish() {
  CudaSource source;
  source.entry = identifier(kernel_.name);
  if (is_reserved(source.entry)) source.entry += "_kernel";
  std::string signature;
  for (const auto* list : {&tensor_maps_, &tensors_, &dims_, &scalars_}) {
    for (const Parameter& parameter : *list) {
      signature += (signature.empty() ? "" : ", ") + parameter.declaration;
      source.parameters.push_back(parameter.launch);
    }
  }
  std::string functions;
  for (const auto& [name, text] : wrappers_) functions += text;
  // Which machine form this is, for who reads the cubin.
  std::string kernel =
      fmt::format("extern \"C\" __device__ unsigned long long tilewright_form = 0x{:016x};\n",
                  ir::form_hash(kernel_));
  kernel += "extern \"C\" __global__ void ";
  if (kernel_.cluster > 1) kernel += fmt::format("__cluster_dims__({}, 1, 1) ", kernel_.cluster);
  kernel += fmt::format("__launch_bounds__({}, {})\n{}({}) {{\n", kernel_.threads, kernel_.resident,
                        source.entry, signature);
  if (kernel_.shared_bytes > 0) {
    kernel +=
        "  extern __shared__ __align__(1024) u8 dynamic_shared[];\n"
        "  const u32 shared = (u32)__cvta_generic_to_shared(dynamic_shared);\n";
  }
  // Through a shuffle the compiler knows that the index is the same in all lanes.
  kernel +=
      "  const int warp = __shfl_sync(0xffffffffu, (int)threadIdx.x / 32, 0);\n"
      "  const int lane = (int)(threadIdx.x & 31u);\n";
  kernel += body_ + "}\n";
  source.text = fmt::format("// {}: {} threads, {} bytes of shared memory.\n",
                            escaped_comment(kernel_.name), kernel_.threads, kernel_.shared_bytes) +
                // A scalar that nothing uses is no mistake.
                "#pragma nv_diag_suppress 177\n" + prelude_for(functions + kernel) + functions +
                kernel;
  return source;
}

}  // namespace tilewright::codegen
