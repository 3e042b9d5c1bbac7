#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ir/program.h"

// What the functions that record a program share.
namespace tilewright {

// Raises where one depends on what the program has not declared; `in_scopes`: it may depend on what
// a run finds and on the turns around it.
void check_dims(const ir::Program& program, const std::vector<Dim>& dims, std::string_view verb,
                SourceLocation where, bool in_scopes = true);
// Whether it is the name of a turn, or of what was read, in the scopes that are being recorded.
bool is_of_open_scope(const ir::Program& program, const std::string& name);
// Raises where it is the name of one in another scope.
void refuse_number_of_scope(const ir::Program& program, const std::string& name,
                            std::string_view verb, SourceLocation where, bool in_scopes);
// Before the outermost scope that is being recorded.
std::vector<ir::ProgramOperation>::iterator begin_of_scopes(ir::Program& program);
// Raises for a launch whose signals count its epochs, in a scope; and for what is done at words.
void refuse_signals_in_scope(const ir::Program& program, const ir::ProgramOperation& launch);
void refuse_words_in_scope(const ir::Program& program, std::string_view verb, SourceLocation where);
// Raises where the number depends on what is not the program's.
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
