#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "compiler/target.h"
#include "ir/ir.h"
#include "ir/program.h"
#include "tilewright/library.h"

// The kernel that a command names.
namespace tilewright::library {

// One of the library, or of a file that holds its text (ir/text.h), as `explain --dump` and
// the environment's TILEWRIGHT_DUMP write it. A file's kernel gets an entry as the library's have:
// its dims are options, floating inputs are random and integers are zeros, and the reference is
// what the interpreter computes in float64 from the tile form; of other forms, one execution by the
// simulated GPU.
class KernelSource {
 public:
  explicit KernelSource(const LibraryKernel& entry) : entry_(&entry) {}
  static KernelSource of_file(const std::string& path);
  // The same of a file's text; `path` is what errors name.
  static KernelSource of_text(std::string text, const std::string& path);
  const LibraryKernel& entry() const { return *entry_; }
  bool is_file() const { return file_ != nullptr; }
  // A file's kernel in the machine form, which is executed as it is: no pass has anything to do.
  bool is_compiled() const;
  // A file's kernel that does (library/program_source.h) runs as a program alone: its entry has
  // options, and tensors of which the names and the axes that are dims mean something.
  bool reaches_ranks() const;
  // Of a file: its text.
  const std::string& file_text() const { return text_; }
  // Which multiples a length may be: 1 of those of the library.
  std::int64_t multiple_of(const std::string& option) const;
  // The sizes of one of a file's tensors, where others are these: by their numbers among the
  // entry's tensors. Raises a usage error where they do not say it.
  std::vector<std::int64_t> shape_of(
      std::size_t tensor, const std::map<std::size_t, std::vector<std::int64_t>>& known) const;
  // As it was traced, for the target.
  ir::Kernel traced(const OptionValues& options, const compiler::Target& target) const;
  // The same of an entry that is a program.
  ir::Program program(const OptionValues& options, const compiler::Target& target) const;

 private:
  KernelSource() = default;
  std::shared_ptr<const ir::Kernel> file_;  // null: of the library
  std::string text_;
  std::shared_ptr<const LibraryKernel> own_;
  const LibraryKernel* entry_ = nullptr;
};

}  // namespace tilewright::library
