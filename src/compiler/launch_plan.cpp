#include "compiler/launch_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "ir/binding.h"
#include "support/counted.h"
#include "support/diagnostic.h"
#include "support/number_formats.h"

namespace tilewright::compiler {
namespace {

constexpr int kMapAlignment = 16;

bool is_empty(const TensorArgument& tensor) {
  return std::count(tensor.shape.begin(), tensor.shape.end(), 0) != 0;
}

class Planner {
 public:
  Planner(const ir::Kernel& kernel, const Arguments& arguments, std::int64_t multiprocessors)
      : kernel_(kernel), arguments_(arguments) {
    check_counts();
    std::vector<ir::TensorShape> shapes;
    for (const TensorArgument& tensor : arguments.tensors) {
      shapes.push_back({tensor.name, tensor.dtype, tensor.shape, tensor.strides});
    }
    check_ranks();
    binding_ = ir::bind(kernel, shapes, multiprocessors, ir::given_ranks(kernel, arguments.ranks));
  }

  LaunchPlan run(const std::vector<codegen::LaunchParameter>& parameters) {
    if (is_empty_launch()) {
      plan_.empty = true;
      return std::move(plan_);
    }
    for (const codegen::LaunchParameter& parameter : parameters) add(parameter);
    ir::check_aliases(kernel_, arguments_.tensors);
    return std::move(plan_);
  }

  void check_stores(const std::vector<analysis::RepeatedStore>& repeated_stores) const {
    if (repeated_stores.empty()) return;
    std::vector<std::int64_t> grid;
    for (const Dim& extent : kernel_.tile_grid) grid.push_back(binding_.evaluate(extent));
    analysis::check_repeated_stores(repeated_stores, grid, arguments_.tensors);
  }

  void check_maps() {
    if (is_empty_launch()) return;
    const int count = static_cast<int>(map_operations().size());
    for (int number = 0; number < count; ++number) {
      if (map_parameter(number).is_owned()) continue;  // the runtime's
      map_specs(number, map_tensor(number).data);
    }
  }

 private:
  using Kind = codegen::LaunchParameter::Kind;

  // Arguments of tensors and of scalars are counted apart.
  void check_counts() {
    std::size_t tensors = 0, scalars = 0, workspaces = 0;
    for (const ir::Parameter& parameter : kernel_.parameters) {
      number_.push_back(parameter.is_tensor() ? tensors++ : scalars++);
      if (parameter.is_owned()) ++workspaces;
    }
    ir::check_scalars(kernel_, arguments_.scalars);
    // Workspaces, which are not the caller's, are in both numbers.
    if (tensors == arguments_.tensors.size()) return;
    std::size_t given = arguments_.tensors.size() - workspaces;
    const std::string gives =
        fmt::format("{}: the launch gives {}, and ", kernel_.name, counted(given, "tensor"));
    const auto missing = std::find_if(
        kernel_.parameters.begin(), kernel_.parameters.end(), [&](const ir::Parameter& parameter) {
          return parameter.is_tensor() && !parameter.is_owned() && given-- == 0;
        });
    Diagnostic(kernel_.where, missing == kernel_.parameters.end()
                                  ? fmt::format("{}it takes {}", gives, tensors - workspaces)
                                  : fmt::format("{}{} is missing", gives, missing->name))
        .fix("pass every tensor, in the order of their declaration")
        .raise();
  }

  void check_ranks() const {
    const auto fail = [this](const std::string& what, const std::string& fix) {
      Diagnostic(kernel_.where, "kernel " + kernel_.name + ": " + what).fix(fix).raise();
    };
    if (arguments_.ranks < 1 || arguments_.ranks > ir::kMaximumRanks) {
      fail(fmt::format("{} ranks", arguments_.ranks),
           fmt::format("launch on 1 to {}", ir::kMaximumRanks));
    }
    if (arguments_.rank < 0 || arguments_.rank >= arguments_.ranks) {
      fail(fmt::format("rank {} of {}", arguments_.rank, arguments_.ranks), "ranks count from 0");
    }
  }

  // Element 0 of a symmetric tensor in a rank; null for ranks that are not there.
  std::byte* data_in(const TensorArgument& tensor, int rank) const {
    if (tensor.peers.empty()) return rank == arguments_.rank ? tensor.data : nullptr;
    const auto number = static_cast<std::size_t>(rank);
    return number < tensor.peers.size() ? tensor.peers[number] : nullptr;
  }

  void check_peers(std::size_t index) const {
    const TensorArgument& argument = tensor(index);
    const ir::Parameter& parameter = kernel_.parameters[index];
    if (is_empty(argument)) return;
    for (int rank = 0; rank < arguments_.ranks; ++rank) {
      if (data_in(argument, rank) != nullptr) continue;
      Diagnostic(parameter.where, fmt::format("tensor {} has no data in rank {} of {}",
                                              parameter.name, rank, arguments_.ranks))
          .token(parameter.name)
          .fix("allocate the tensor in every rank before the launch")
          .raise();
    }
  }

  const TensorArgument& tensor(std::size_t parameter) const {
    return arguments_.tensors[number_[parameter]];
  }

  bool is_empty_launch() { return outputs_are_empty(kernel_, arguments_) || !set_grid(); }

  // False when there is no CTA to launch.
  bool set_grid() {
    const std::int64_t ctas = kernel_.grid.empty() ? 1 : binding_.evaluate(kernel_.grid[0]);
    if (ctas == 0) return false;
    if (ctas > INT32_MAX) {
      Diagnostic(kernel_.where, fmt::format("kernel {} has {} CTAs, and a grid takes {}",
                                            kernel_.name, ctas, INT32_MAX))
          .fix("use larger tiles, or a persistent loop")
          .raise();
    }
    if (ctas % kernel_.cluster != 0) {
      Diagnostic(kernel_.where,
                 fmt::format("kernel {} has {} CTAs, no multiple of its cluster of {}",
                             kernel_.name, ctas, kernel_.cluster))
          .fix(fmt::format("round the number of CTAs up to a multiple of {}", kernel_.cluster))
          .raise();
    }
    plan_.shape.grid.x = static_cast<unsigned>(ctas);
    plan_.shape.block.x = static_cast<unsigned>(kernel_.threads);
    plan_.shape.cluster.x = static_cast<unsigned>(kernel_.cluster);
    plan_.shape.shared_bytes = static_cast<unsigned>(kernel_.shared_bytes);
    plan_.shape.cooperative = ir::is_cooperative(kernel_);
    return true;
  }

  template <typename T>
  void put(const T& value) {
    plan_.parameters.add(value);
  }

  void add(const codegen::LaunchParameter& parameter) {
    const auto index = static_cast<std::size_t>(parameter.index);
    switch (parameter.kind) {
      case Kind::tensor_map:
        return add_maps(parameter.index, {map_tensor(parameter.index).data}, 1);
      case Kind::peer_maps: {
        std::vector<std::byte*> data;
        for (int rank = 0; rank < arguments_.ranks; ++rank) {
          data.push_back(data_in(map_tensor(parameter.index), rank));
        }
        return add_maps(parameter.index, data, ir::kMaximumRanks);
      }
      case Kind::pointer:
        ir::check_memory(kernel_.parameters[index], tensor(index));
        put(tensor(index).data);
        return;
      case Kind::peer_pointers: {
        check_peers(index);
        std::array<std::byte*, ir::kMaximumRanks> pointers{};
        for (int rank = 0; rank < ir::kMaximumRanks; ++rank) {
          pointers[static_cast<std::size_t>(rank)] = data_in(tensor(index), rank);
        }
        put(pointers);
        return;
      }
      case Kind::rank:
        put(std::int32_t{arguments_.rank});
        return;
      case Kind::epoch:
        plan_.epoch = plan_.parameters.add(std::int32_t{arguments_.epoch});
        return;
      case Kind::epoch_word:
        plan_.epoch_word = plan_.parameters.add(static_cast<const std::int32_t*>(nullptr));
        return;
      case Kind::report:
        plan_.report = plan_.parameters.add(static_cast<codegen::CheckReport*>(nullptr));
        return;
      case Kind::watch:
        plan_.watch = plan_.parameters.add(static_cast<codegen::WatchReport*>(nullptr));
        return;
      case Kind::stride:
        put(tensor(index).strides[static_cast<std::size_t>(parameter.axis)]);
        return;
      case Kind::dim:
        put(checked_dim(parameter.dim));
        return;
      case Kind::scalar:
        add_scalar(parameter.dtype, arguments_.scalars[number_[index]]);
        return;
    }
  }

  // The maps of the tensor that has its element 0 there, in each of the ranks; there is room for
  // those of `ranks`.
  void add_maps(int number, const std::vector<std::byte*>& data, std::size_t ranks) {
    const bool is_ragged = map_operation(number).attributes.has(ir::Key::ragged);
    const std::vector<runtime::TensorMap> room(ranks * (is_ragged ? 2 : 1));
    std::size_t offset = plan_.parameters.add(room.data(), room.size() * sizeof(room[0]),
                                              alignof(runtime::TensorMap));
    for (std::byte* const in_rank : data) {
      for (const runtime::TensorMapSpec& spec : map_specs(number, in_rank)) {
        plan_.maps.push_back({offset, spec});
        offset += sizeof(runtime::TensorMap);
      }
    }
  }

  std::int32_t checked_dim(const Dim& dim) const {
    const std::int64_t value = binding_.evaluate(dim);
    if (value < INT32_MIN || value > INT32_MAX) {
      Diagnostic(kernel_.where,
                 fmt::format("{} is {} in this launch of {}, and a kernel computes in "
                             "32 bits",
                             dim.to_string(), value, kernel_.name))
          .fix("split the problem into smaller launches")
          .raise();
    }
    return static_cast<std::int32_t>(value);
  }

  void add_scalar(DType dtype, double value) {
    switch (dtype) {
      case DType::f32:
        put(static_cast<float>(value));
        return;
      case DType::i64:
        put(static_cast<std::int64_t>(value));
        return;
      case DType::i32:
        put(static_cast<std::int32_t>(value));
        return;
      case DType::f16:
        put(float_to_f16(static_cast<float>(value)));
        return;
      case DType::bf16:
        put(float_to_bf16(static_cast<float>(value)));
        return;
      case DType::f8e4m3:
        put(float_to_f8e4m3(static_cast<float>(value)));
        return;
      case DType::boolean:
        put(value != 0);
        return;
      case DType::i8:
      case DType::u8:
      case DType::u32:
        break;  // no scalar is declared so
    }
  }

  const std::vector<const ir::Operation*>& map_operations() {
    if (map_operations_.empty()) {
      ir::for_each(kernel_.body, [this](const ir::Operation& operation) {
        if (operation.op == ir::Op::tensor_map) map_operations_.push_back(&operation);
      });
    }
    return map_operations_;
  }

  const ir::Operation& map_operation(int number) {
    return *map_operations()[static_cast<std::size_t>(number)];
  }

  const ir::Parameter& map_parameter(int number) {
    return *kernel_.parameter_of(map_operation(number).operands[0]);
  }

  // That of the parameter whose tensor the map describes.
  const TensorArgument& map_tensor(int number) {
    const ir::Parameter& parameter = map_parameter(number);
    const auto index = static_cast<std::size_t>(&parameter - kernel_.parameters.data());
    if (parameter.is_symmetric()) check_peers(index);
    return tensor(index);
  }

  // What there is of the map in one rank, in which element 0 is `data`: of a ragged one that for
  // boxes inside and that for boxes outside.
  std::vector<runtime::TensorMapSpec> map_specs(int number, std::byte* data) {
    const ir::Operation& operation = map_operation(number);
    const ir::Parameter& parameter = map_parameter(number);
    const TensorArgument& argument = map_tensor(number);
    const std::vector<std::int64_t>& box = operation.attributes.integers(ir::Key::box);
    const int rank = static_cast<int>(argument.shape.size());
    const std::int64_t element = size_of(argument.dtype);

    runtime::TensorMapSpec spec;
    spec.name = parameter.name;
    spec.where = operation.where;
    spec.type = tensor_map_type(argument.dtype);
    spec.swizzle = tensor_map_swizzle(operation.attributes.integer(ir::Key::swizzle));
    spec.rank = rank;
    // Of short rows a tile has all boxes at once, each of which would fetch its neighbour's 128
    // bytes into L2 as well.
    // An export decides alike (ahead/support.c.in).
    constexpr std::int64_t kNarrow = 128, kShort = 256;
    if (box.back() * element <= kNarrow && argument.shape.back() * element <= kShort) {
      spec.promotion = runtime::TensorMapPromotion::bytes128;
    }
    spec.base = is_empty(argument) ? address_of_another() : data;
    std::int64_t dense = element;
    for (int i = 0; i < rank && i < 5; ++i) {  // innermost first
      const auto axis = static_cast<std::size_t>(rank - 1 - i);
      // TMA has no axis without elements. What it may touch then is the first of another tensor.
      const std::int64_t size = is_empty(argument) ? 1 : argument.shape[axis];
      spec.sizes[i] = static_cast<std::uint64_t>(size);
      spec.box[i] = static_cast<std::uint32_t>(box[axis]);
      // Along an axis of one element nothing steps: its stride, which may be anything, is the one
      // that a dense tensor would have.
      std::int64_t stride = argument.strides[axis] * element;
      if (size == 1) stride = (dense + 15) / 16 * 16;
      if (i > 0) spec.strides[i - 1] = checked_stride(operation, parameter, axis, stride);
      dense = stride * static_cast<std::int64_t>(spec.sizes[i]);
    }
    runtime::check(spec);
    const ir::Attribute* ragged = operation.attributes.find(ir::Key::ragged);
    if (!ragged) return {spec};
    const auto axis = rank - 1 - static_cast<int>(std::get<std::int64_t>(*ragged));
    return ragged_pair(spec, axis, is_empty(argument));
  }

  // With the axis on which a copy says where it ends (operations.def). TMA touches the address
  // where a map begins for boxes that lie wholly outside: those take the map that begins with the
  // tensor. Every other copy adds at least what is subtracted here.
  static std::vector<runtime::TensorMapSpec> ragged_pair(runtime::TensorMapSpec spec, int axis,
                                                         bool is_empty) {
    const std::uint64_t rows = spec.sizes[axis], stride = spec.strides[axis - 1];
    spec.sizes[spec.rank] = rows + 1;
    spec.strides[spec.rank - 1] = stride;
    spec.box[spec.rank] = 1;
    ++spec.rank;
    runtime::TensorMapSpec shifted = spec;
    if (!is_empty) {
      const auto begin = reinterpret_cast<std::uintptr_t>(spec.base);
      shifted.base = reinterpret_cast<void*>(begin - rows * stride);
    }
    return {shifted, spec};
  }

  // What the runtime would say of TMA's axes, said of the tensor's, at the line that copies.
  std::uint64_t checked_stride(const ir::Operation& map, const ir::Parameter& parameter,
                               std::size_t axis, std::int64_t bytes) const {
    const std::int64_t unit = kMapAlignment;
    const std::int64_t element = size_of(parameter.dtype);
    if (bytes >= 0 && bytes % unit == 0) return static_cast<std::uint64_t>(bytes);
    const std::string subject = fmt::format("tensor {}: the stride of axis {} is {} elements",
                                            parameter.name, axis, bytes / element);
    if (bytes < 0) {
      Diagnostic(map.where, subject + ", negative")
          .token(parameter.name)
          .note(parameter.where, parameter.name + " is declared")
          .fix("pass a contiguous copy")
          .raise();
    }
    Diagnostic(map.where, fmt::format("{} ({} bytes), and TMA takes multiples of {} bytes", subject,
                                      bytes, unit))
        .token(parameter.name)
        .note(parameter.where, parameter.name + " is declared")
        .fix(fmt::format("pad axis {} to {} elements", axis + 1,
                         (bytes + unit - 1) / unit * unit / element))
        .raise();
  }

  // The driver wants a valid one, and TMA may touch it.
  void* address_of_another() const {
    for (const TensorArgument& argument : arguments_.tensors) {
      const auto address = reinterpret_cast<std::uintptr_t>(argument.data);
      if (!is_empty(argument) && address != 0) {
        return reinterpret_cast<void*>(address / kMapAlignment * kMapAlignment);
      }
    }
    return nullptr;
  }

  const ir::Kernel& kernel_;
  const Arguments& arguments_;
  std::vector<std::size_t> number_;  // of each parameter, among the tensors or the scalars
  std::vector<const ir::Operation*> map_operations_;
  ir::Binding binding_;
  LaunchPlan plan_;
};

}  // namespace

runtime::TensorMapType tensor_map_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return runtime::TensorMapType::f32;
    case DType::f16:
      return runtime::TensorMapType::f16;
    case DType::bf16:
      return runtime::TensorMapType::bf16;
    case DType::i32:
      return runtime::TensorMapType::i32;
    case DType::i64:
      return runtime::TensorMapType::i64;
    case DType::u32:
      return runtime::TensorMapType::u32;
    case DType::f8e4m3:
    case DType::i8:
    case DType::u8:
    case DType::boolean:
      break;
  }
  return runtime::TensorMapType::u8;
}

runtime::TensorMapSwizzle tensor_map_swizzle(std::int64_t bytes) {
  switch (bytes) {
    case 32:
      return runtime::TensorMapSwizzle::bytes32;
    case 64:
      return runtime::TensorMapSwizzle::bytes64;
    case 128:
      return runtime::TensorMapSwizzle::bytes128;
    default:
      return runtime::TensorMapSwizzle::none;
  }
}

bool outputs_are_empty(const ir::Kernel& kernel, const Arguments& arguments) {
  bool any = false;
  std::size_t tensor = 0;
  for (const ir::Parameter& parameter : kernel.parameters) {
    if (!parameter.is_tensor() || parameter.is_owned()) continue;
    if (tensor >= arguments.tensors.size()) return false;  // that they are too few is told later
    const TensorArgument& argument = arguments.tensors[tensor++];
    if (parameter.kind == ir::Parameter::Kind::in) continue;
    if (!is_empty(argument)) return false;
    any = true;
  }
  return any;
}

LaunchPlan plan_launch(const ir::Kernel& machine,
                       const std::vector<codegen::LaunchParameter>& parameters,
                       const Arguments& arguments, std::int64_t multiprocessors,
                       const std::vector<analysis::RepeatedStore>& repeated_stores) {
  Planner planner(machine, arguments, multiprocessors);
  planner.check_stores(repeated_stores);
  return planner.run(parameters);
}

namespace {

// With those that are not the caller's.
Arguments complete(const ir::Kernel& kernel, const Arguments& arguments) {
  Arguments all = arguments;
  std::size_t tensors = 0;
  for (const ir::Parameter& parameter : kernel.parameters) {
    if (!parameter.is_tensor() || tensors++ < all.tensors.size()) continue;
    if (!parameter.is_owned()) break;  // that they are too few is told
    const std::vector<std::int64_t> shape = parameter.constant_shape();
    all.tensors.push_back({parameter.name, parameter.dtype, shape, row_major_strides(shape)});
  }
  return all;
}

}  // namespace

void check_tensor_maps(const ir::Kernel& machine, const Arguments& arguments,
                       std::int64_t multiprocessors) {
  Planner(machine, complete(machine, arguments), multiprocessors).check_maps();
}

void check_sizes(const ir::Kernel& kernel, const Arguments& arguments,
                 std::int64_t multiprocessors) {
  Planner(kernel, complete(kernel, arguments), multiprocessors);
}

}  // namespace tilewright::compiler
