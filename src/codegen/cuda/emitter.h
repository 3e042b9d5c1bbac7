#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/cuda/cuda_printer.h"

namespace tilewright::codegen {

struct PrintFlavour {
  // With a seed, operations whose time others rely on are delayed (delays.h).
  std::optional<std::uint64_t> delay_seed = {};
  bool has_epoch_word = false;
};

// The text of the body while it grows, and the names of its values.
class Emitter {
 public:
  explicit Emitter(const ir::Kernel& kernel, const PrintFlavour& flavour = {});

  const ir::Kernel& kernel() const { return kernel_; }
  const ir::Type& type(ir::ValueId value) const { return kernel_.type(value); }
  // What the value is called in the text: a local, a parameter or a literal.
  const std::string& name(ir::ValueId value) const { return names_[value]; }
  void set_name(ir::ValueId value, std::string name) { names_[value] = std::move(name); }
  // "label_12" for the result of an operation that has a name.
  std::string named(const ir::Operation& operation) const;
  // The value of an integer or boolean constant.
  std::optional<std::int64_t> constant(ir::ValueId value) const;
  const ir::Operation* definition(ir::ValueId value) const { return definitions_[value]; }
  bool nonnegative(ir::ValueId value) const { return nonnegative_[value]; }
  bool is_used(ir::ValueId value) const { return used_[value]; }

  void line(std::string_view text);
  void open(std::string_view head);  // "head {", and indents
  void close();
  // For one lane of the warp; outside every role for one thread of the CTA.
  void lane_line(std::string_view text);
  void print_block(const ir::Block& block);

  // Parameters of the signature, made when first asked for.
  // Of a peer's tensor it is what the operation was called.
  std::string pointer(ir::ValueId tensor);
  std::string peer_pointers(ir::ValueId tensor);
  // This launch's rank or epoch.
  std::string launch_number(LaunchParameter::Kind kind);
  bool has_epoch_word() const { return flavour_.has_epoch_word; }
  // Where checks report.
  std::string report();
  // Where waits that last too long report.
  std::string watch();
  std::string stride(ir::ValueId tensor, int axis);
  std::string dim(const Dim& dim);
  void add_tensor_map(const ir::Operation& operation);
  // Whether the tensor map is two, or two for each rank.
  bool is_ragged(ir::ValueId map) const { return definition(map)->attributes.has(ir::Key::ragged); }
  // A function made for this kernel's instructions: called `name`, printed once.
  void add_wrapper(const std::string& name, std::string text) {
    wrappers_.emplace(name, std::move(text));
  }

  CudaSource finish();

  // Where the operation being printed stands.
  enum class Agent : std::uint8_t { cta, warp, lane };
  Agent agent = Agent::cta;
  std::int64_t first_warp = 0;  // of the role
  std::int64_t role_warps = 0;
  bool in_warpgroup = false;  // inside the condition of one that roles share
  int checks = 0;             // printed so far
  // In the same block; null at its ends.
  const ir::Operation* previous = nullptr;
  const ir::Operation* next = nullptr;
  // The indices of the loops around the operation, the outermost first.
  std::vector<std::string> loops;
  // Where yield puts its operands.
  std::vector<std::string> yield_to;

 private:
  struct Parameter {
    LaunchParameter launch;
    std::string declaration;
  };
  void append(std::string_view text);
  void delay();
  std::string add_parameter(LaunchParameter launch, std::string type, std::string name);

  const ir::Kernel& kernel_;
  const PrintFlavour flavour_;
  std::uint64_t delays_ = 0;
  std::string body_;
  int indent_ = 1;
  SourceLocation where_;          // of the operation being printed
  SourceLocation printed_where_;  // the last that became a comment
  std::vector<std::string> names_;
  std::vector<const ir::Operation*> definitions_;
  std::vector<bool> nonnegative_, used_;
  std::map<std::string, std::string> wrappers_;
  std::map<std::string, std::string> parameter_names_;  // by what they hold
  std::vector<Parameter> tensor_maps_, tensors_, dims_, scalars_;
};

// An identifier of C++ out of any text.
std::string identifier(std::string_view text);

// What cannot be printed is a bug of the passes before.
[[noreturn]] void cannot_print(const ir::Operation& operation, std::string_view why);

}  // namespace tilewright::codegen
