#pragma once

#include <string>
#include <string_view>

#include "command.h"
#include "compiler/target.h"
#include "library/kernel_source.h"

// `simulate` of programs, and of kernels that reach other ranks.
namespace tilewright::tools {

// Whether the name is that of a file as TILEWRIGHT_DUMP writes it of a Program.
bool is_program_file(const std::string& name);
int simulate_program(const Request& request, const compiler::Target& target);
// The kernel of a file, launched once in each rank.
int simulate_ranks(const Request& request, const library::KernelSource& source,
                   const compiler::Target& target);
// An operation of the library that is a program.
int simulate_operation(const Request& request, const library::KernelSource& source,
                       const compiler::Target& target);
// Raises where the request asks a kernel that runs alone for what programs have.
void refuse_program_options(const Request& request, std::string_view kernel);

}  // namespace tilewright::tools
