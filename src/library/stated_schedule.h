#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/target.h"
#include "ir/program.h"
#include "tilewright/library.h"
#include "tilewright/schedule.h"

// Options that every kernel has: the fields of a Schedule, "schedule.stages". Of a program's kernel
// "schedule.NAME.stages".
namespace tilewright::library {

inline constexpr std::string_view kFieldPrefix = "schedule.";

inline bool is_field(std::string_view option) { return option.starts_with(kFieldPrefix); }
// The value of such an option as it is compared. Raises a usage error for a field or a value that
// there is not.
std::string checked_field(const std::string& option, const std::string& value);
// The target cpu has no such fields. Raises a usage error where options state one for it.
void check_fields(const OptionValues& options, const compiler::Target& target);
// What the options state for a kernel that is none of a program's. Raises a usage error where they
// name one.
Schedule stated_schedule(const OptionValues& options);

// What the options state for the kernels of a program.
class ProgramFields {
 public:
  explicit ProgramFields(const OptionValues& options);
  // Fields that name no kernel are of those with products.
  Schedule of(const ir::Kernel& kernel) const;
  // Raises a usage error for fields whose kernel the program does not have, or has several of.
  void check(const ir::Program& program) const;

 private:
  struct Field {
    std::string kernel, name, value;  // no kernel: ""
  };
  std::vector<Field> fields_;
};

}  // namespace tilewright::library
