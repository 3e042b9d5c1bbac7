#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ir/program.h"

// What the functions that record a program share.
namespace tilewright {

// Raises where the number hangs on what is not the program's.
void check_number(const ir::Program& program, const RunNumber& number, std::string_view verb,
                  SourceLocation where);
// The part of rank `own` where it names none.
ir::ProgramPart resolve(const ir::Program& program, const std::shared_ptr<ir::Program>& of,
                        int buffer, int rank, int own, const std::vector<Dim>& starts,
                        const std::vector<Dim>& sizes, std::string_view verb, SourceLocation where);
// Checks the operation, and sets to zero before what it uses of such memory.
void record_operation(ir::Program& program, ir::ProgramOperation operation);
// The number of the new buffer.
int add_buffer(ir::Program& program, ir::ProgramBuffer::Kind kind, std::string name, DType dtype,
               std::vector<Dim> shape, SourceLocation where);

}  // namespace tilewright
