#include "ahead/c_variant.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "ahead/c_dims.h"
#include "compiler/launch_plan.h"
#include "compiler/zeroed_buffers.h"
#include "support/diagnostic.h"

namespace tilewright::ahead {
namespace {

using ir::ProgramBuffer;
using ir::ProgramOperation;
using LaunchKind = codegen::LaunchParameter::Kind;

class Writer {
 public:
  Writer(const Variant& variant, std::size_t first_kernel)
      : variant_(variant), program_(variant.program), first_kernel_(first_kernel) {}

  std::string text(std::size_t number) {
    out_ = fmt::format(
        "/* {} */\n"
        "static void variant_{}(tw_run* run, const tw_tensor* given, const double* scalars) {{\n",
        variant_.name, number);
    bind();
    place_buffers();
    out_ += "  (void)given;\n  (void)scalars;\n";
    for (const ProgramOperation& operation : program_.operations) {
      if (operation.kind == ProgramOperation::Kind::launch) {
        launch(operation);
      } else if (zeroed_before_.count(&operation) == 0) {
        zero(operation);
      }
    }
    return out_ + "}\n";
  }

 private:
  void bind() {
    std::vector<DimSource> tensors;
    for (std::size_t i = 0; i < program_.buffers.size(); ++i) {
      const ProgramBuffer& buffer = program_.buffers[i];
      if (!buffer.is_passed()) continue;
      buffer_[i] = fmt::format("given[{}]", tensors.size());
      tensors.push_back({buffer.name, buffer.shape});
    }
    out_ += c_binding(tensors, program_.dims, "given", "dim_", "  ", names_);
  }

  // What launches find as zeros comes first: one call sets it.
  void place_buffers() {
    std::string declared, placed;
    const auto place = [&](bool zeros) {
      for (std::size_t i = 0; i < program_.buffers.size(); ++i) {
        const ProgramBuffer& buffer = program_.buffers[i];
        if (buffer.is_passed() || begins_as_zeros(i) != zeros) continue;
        buffer_[i] = fmt::format("own_{}", i);
        declared += fmt::format("  tw_tensor own_{};\n", i);
        placed += fmt::format(
            "  {{ /* {} */\n    const int64_t shape[] = {};\n"
            "    own_{} = tw_own(run, {}, shape, {});\n  }}\n",
            buffer.name, c_list(buffer.shape, names_), i, buffer.shape.size(),
            size_of(buffer.dtype));
      }
    };
    place(true);
    const bool any_zeros = !placed.empty();
    if (any_zeros) {
      declared += "  int64_t zeros;\n";
      placed += "  zeros = run->workspace_bytes;\n";
    }
    place(false);
    out_ += declared + placed;
    out_ += "  if (tw_has_places(run) != TW_OK || run->mode == TW_MEASURE) return;\n";
    if (any_zeros) out_ += "  tw_zero_bytes(run, run->workspace, zeros);\n";
  }

  // A workspace, or what the program sets to zero before anything else.
  bool begins_as_zeros(std::size_t buffer) {
    const ProgramOperation* const zeros = compiler::first_zeros(program_, static_cast<int>(buffer));
    if (zeros != nullptr) zeroed_before_.insert(zeros);
    return zeros != nullptr || program_.buffers[buffer].kind == ProgramBuffer::Kind::workspace;
  }

  // Statements that make the part of a buffer the tensor `to`.
  std::string part(const ir::ProgramPart& part, const std::string& to, const std::string& indent) {
    const ProgramBuffer& buffer = program_.buffers[static_cast<std::size_t>(part.buffer)];
    const std::string& name = buffer_.at(static_cast<std::size_t>(part.buffer));
    const bool from_start =
        std::all_of(part.starts.begin(), part.starts.end(),
                    [](const Dim& start) { return start.is_constant() && start.constant() == 0; });
    if (from_start && part.sizes == buffer.shape) {
      return fmt::format("{}{} = {};\n", indent, to, name);
    }
    return fmt::format(
        "{0}{{\n{0}  const int64_t starts[] = {1}, sizes[] = {2};\n"
        "{0}  {3} = tw_part(run, &{4}, {5}, starts, sizes, {6});\n{0}}}\n",
        indent, c_list(part.starts, names_), c_list(part.sizes, names_), to, name,
        quoted(buffer.name), size_of(buffer.dtype));
  }

  void zero(const ProgramOperation& operation) {
    const ProgramBuffer& buffer = program_.buffers[static_cast<std::size_t>(operation.to.buffer)];
    out_ += fmt::format("  {{\n    tw_tensor to;\n{}    tw_zero(run, &to, {});\n  }}\n",
                        part(operation.to, "to", "    "), size_of(buffer.dtype));
  }

  std::string number(const RunNumber& number) const {
    std::string text = fmt::format("{:#.17g}", number.base);
    for (const RunNumber::Term& term : number.terms) {
      text +=
          fmt::format(" + {:#.17g} * {}", term.factor,
                      term.scalar.empty() ? fmt::format("(double){}", c_text(term.dim, names_))
                                          : fmt::format("scalars[{}]", scalar_number(term.scalar)));
    }
    return text;
  }

  std::size_t scalar_number(const std::string& name) const {
    for (std::size_t i = 0; i < program_.scalars.size(); ++i) {
      if (program_.scalars[i].name == name) return i;
    }
    internal("the scalar " + name + " is none of the program's");
  }

  [[noreturn]] static void internal(const std::string& what) {
    Diagnostic({}, what, ErrorKind::internal).raise();
  }

  void launch(const ProgramOperation& operation) {
    const auto index = static_cast<std::size_t>(operation.kernel);
    const compiler::GpuProgram& built = variant_.kernels[index].program;
    const ir::Kernel& kernel = built.machine;
    out_ += fmt::format("  {{ /* {} */\n    tw_tensor tensors[{}];\n", kernel.name,
                        operation.tensors.size());
    for (std::size_t i = 0; i < operation.tensors.size(); ++i) {
      out_ += part(operation.tensors[i], fmt::format("tensors[{}]", i), "    ");
    }
    out_ += "    if (run->status != TW_OK) return;\n";
    // A kernel alone has the program's dims.
    DimNames own = variant_.is_kernel ? names_ : DimNames();
    std::vector<DimSource> sources;
    for (const ir::Parameter& parameter : kernel.parameters) {
      if (parameter.is_tensor()) sources.push_back({parameter.name, parameter.shape});
    }
    if (!variant_.is_kernel) out_ += c_binding(sources, kernel.dims, "tensors", "k_", "    ", own);
    out_ += fmt::format("    const int64_t ctas = {};\n",
                        kernel.grid.empty() ? "1" : c_text(kernel.grid[0], own));
    out_ += fmt::format("    if (ctas > 0 && ({})) {{\n", has_work(kernel));
    parameters(operation, built, own);
    out_ += fmt::format("      tw_queue(run, {}, ctas, {}, {}, {}, {}, parameters);\n    }}\n",
                        first_kernel_ + index, kernel.cluster, kernel.threads, kernel.shared_bytes,
                        ir::is_cooperative(kernel) ? 1 : 0);
    out_ += "  }\n";
  }

  // Whether one of the outputs has an element.
  static std::string has_work(const ir::Kernel& kernel) {
    std::vector<std::string> outputs;
    std::size_t tensor = 0;
    for (const ir::Parameter& parameter : kernel.parameters) {
      if (!parameter.is_tensor()) continue;
      const std::size_t number = tensor++;
      if (parameter.is_owned() || parameter.kind == ir::Parameter::Kind::in) continue;
      outputs.push_back(fmt::format("tw_elements(&tensors[{}]) > 0", number));
    }
    return outputs.empty() ? "1" : fmt::format("{}", fmt::join(outputs, " || "));
  }

  void parameters(const ProgramOperation& operation, const compiler::GpuProgram& built,
                  const DimNames& names) {
    const ir::Kernel& kernel = built.machine;
    std::vector<std::size_t> places;  // of each parameter, among the tensors or the scalars
    std::size_t tensors = 0, scalars = 0;
    for (const ir::Parameter& each : kernel.parameters) {
      places.push_back(each.is_tensor() ? tensors++ : scalars++);
    }
    std::vector<const ir::Operation*> maps;
    ir::for_each(kernel.body, [&](const ir::Operation& each) {
      if (each.op == ir::Op::tensor_map) maps.push_back(&each);
    });
    std::string declared, filled;
    std::vector<std::string> passed;
    for (std::size_t i = 0; i < built.source.parameters.size(); ++i) {
      const codegen::LaunchParameter& parameter = built.source.parameters[i];
      const auto index = static_cast<std::size_t>(parameter.index);
      const auto declare = [&](const char* type, const std::string& value) {
        filled += fmt::format("      {} p{} = {};\n", type, i, value);
        passed.push_back(fmt::format("&p{}", i));
      };
      switch (parameter.kind) {
        case LaunchKind::tensor_map:
          declared += fmt::format("      tw_map map{};\n", i);
          filled += map(kernel, *maps[index], places, i, operation.tensors.size());
          passed.push_back(fmt::format("p{}", i));
          break;
        case LaunchKind::pointer:
          declare("void*", fmt::format("tensors[{}].data", places[index]));
          break;
        case LaunchKind::stride:
          declare("int64_t", fmt::format("tensors[{}].strides[{}]", places[index], parameter.axis));
          break;
        case LaunchKind::dim:
          declare("int32_t", fmt::format("tw_i32(run, {}, {})", quoted(parameter.dim.to_string()),
                                         c_text(parameter.dim, names)));
          break;
        case LaunchKind::scalar:
          declare(parameter.dtype == DType::f32 ? "float" : "int32_t",
                  fmt::format("({})({})", parameter.dtype == DType::f32 ? "float" : "int32_t",
                              number(operation.scalars[places[index]])));
          break;
        case LaunchKind::peer_maps:  // refused when it was built
        case LaunchKind::peer_pointers:
        case LaunchKind::rank:
        case LaunchKind::epoch:
        case LaunchKind::epoch_word:
        case LaunchKind::report:
        case LaunchKind::watch:
          internal("a parameter that has no form in C");
      }
    }
    out_ += declared + filled;
    out_ += passed.empty() ? "      void** parameters = NULL;\n"
                           : fmt::format("      void* parameters[{}];\n", passed.size());
    for (std::size_t i = 0; i < passed.size(); ++i) {
      out_ += fmt::format("      parameters[{}] = {};\n", i, passed[i]);
    }
  }

  static std::string map(const ir::Kernel& kernel, const ir::Operation& operation,
                         const std::vector<std::size_t>& places, std::size_t number,
                         std::size_t tensors) {
    const ir::Parameter& parameter = *kernel.parameter_of(operation.operands[0]);
    const auto place = static_cast<std::size_t>(&parameter - kernel.parameters.data());
    const ir::Attribute* ragged = operation.attributes.find(ir::Key::ragged);
    return fmt::format(
        "      static const uint32_t box{0}[] = {{{1}}};\n"
        "      void* p{0} = tw_encode(run, &map{0}, {2}, &tensors[{3}], {4}, {5}, {6}, box{0}, "
        "{7},\n"
        "                            tw_any(tensors, {8}));\n",
        number, fmt::join(operation.attributes.integers(ir::Key::box), ", "),
        quoted(parameter.name), places[place],
        static_cast<int>(compiler::tensor_map_type(parameter.dtype)), size_of(parameter.dtype),
        static_cast<int>(
            compiler::tensor_map_swizzle(operation.attributes.integer(ir::Key::swizzle))),
        ragged ? std::get<std::int64_t>(*ragged) : -1, tensors);
  }

  const Variant& variant_;
  const ir::Program& program_;
  const std::size_t first_kernel_;
  DimNames names_;                             // of the program's dims
  std::map<std::size_t, std::string> buffer_;  // what each is called
  std::set<const ProgramOperation*> zeroed_before_;
  std::string out_;
};

}  // namespace

std::string c_variant(const Variant& variant, std::size_t number, std::size_t first_kernel) {
  return Writer(variant, first_kernel).text(number);
}

}  // namespace tilewright::ahead
