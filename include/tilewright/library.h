#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tilewright/dtype.h"
#include "tilewright/host_tensor.h"
#include "tilewright/kernel.h"
#include "tilewright/program.h"

// The kernels that come with Tilewright, each one entry: its options, schedules, rules, tensors,
// builders and float64 reference.
namespace tilewright {

struct KernelOption {
  // `lengths`: rows of each sequence of a packed tensor, as "128,77,0"; empty where they are not
  // set. `number`: a finite one, as "-0.5" or "1e-3".
  enum class Kind : std::uint8_t { integer, number, boolean, dtype, choice, lengths };
  std::string name;
  std::string description;
  Kind kind = Kind::integer;
  std::string standard;  // the value when it is not set; or the name of the option it then equals
  std::int64_t minimum = 0;  // of an integer
  std::int64_t maximum = INT32_MAX;
  std::vector<std::string> choices;  // of a dtype or a choice
  // Axes of tensors are as long as it, and a launch binds it: no build depends on it.
  bool is_length = false;
  // Values on which builds branch, the standard one among them or not, for who looks for all cases
  // of a kernel's plan (plan_case.h). Without any, booleans, dtypes and choices have all of theirs,
  // and an integer has its standard alone.
  std::vector<std::string> worth_trying = {};
  // It is a number of rows, such as a window: lengths about it are worth trying.
  bool counts_rows = false;
  // Of lengths: the options that their number and their sum set. Of a length in pages: `count` is
  // the option with the rows of a page, and `sum`, where all sequences share the pages, the one
  // with the most that a sequence has.
  std::string count = {};
  std::string sum = {};
};

// The values of all options of a kernel, and the schedule, if one is set. Asking for an option by
// its name raises Error(usage) where there is none, or where its value is not what is asked for: an
// integer, a number, true or false, the name of a dtype, lengths (none where they are not set).
class OptionValues {
 public:
  bool has(const std::string& name) const { return values_.count(name) != 0; }
  std::int64_t integer(const std::string& name) const;
  double number(const std::string& name) const;
  bool boolean(const std::string& name) const;
  DType dtype(const std::string& name) const;
  std::vector<std::int64_t> lengths(const std::string& name) const;
  const std::string& text(const std::string& name) const;
  const std::map<std::string, std::string>& all() const { return values_; }
  void set(const std::string& name, std::string value) { values_[name] = std::move(value); }

 private:
  std::map<std::string, std::string> values_;
};

struct LibraryTensor {
  std::string name;
  // The integer options that its axes are as long as; "batch + 1" is one more.
  std::vector<std::string> shape;
  bool is_output = false;
  std::optional<DType> dtype;  // nothing: the option dtype
  // What it holds when no file is given; nothing: normal numbers. Tensors of one seed fit together.
  // `before` are those that stand before it.
  std::function<HostTensor(const OptionValues&, std::uint64_t seed,
                           const std::vector<HostTensor>& before)>
      values = {};
  std::string option = {};  // there only if this option is true
  // i32: the option of lengths whose sequences' first rows it holds, and their end, where it is
  // set.
  std::string lengths = {};
  // Of an output: an input too, which holds what is given before each launch.
  bool is_inout = false;
  // In place of `values`, over ranks: what each rank has of it. `before` are the tensors that stand
  // before it, all of rank 0, then all of rank 1, and so on.
  std::function<std::vector<HostTensor>(const OptionValues&, const std::vector<HostTensor>& before)>
      values_of_ranks = {};
  // Where a sum goes along this axis that is scaled anew when a place outweighs those before it, as
  // an online softmax's does along keys.
  std::optional<int> online_axis = {};
  // An option that lets it hold something more where it is drawn, with a value: "holes=3". Golden
  // data has a case more of it.
  std::string drawn_with = {};
  bool is_input() const { return !is_output || is_inout; }
};

// An explicit version of a kernel for one target; the tile-level definition is its meaning. It is
// built when a launch first needs it, once, whatever the lengths.
struct LibrarySchedule {
  std::string name;
  std::string target;  // "sm_90a"
  std::string description;
  std::function<Kernel(const OptionValues&)> build;
  // In place of build, of an operation that is a program.
  std::function<Program(const OptionValues&)> build_program = {};
};

// Which schedule serves a launch of which sizes, of one kernel or several: docs/schedules.md.
struct ScheduleRules {
  std::string target;  // "sm_90a"
  std::string file;    // for messages
  std::string text;
};

struct LibraryKernel {
  std::string name;
  std::string description;
  std::vector<KernelOption> options;
  std::vector<LibraryTensor> tensors;      // in the order of the kernel's parameters
  std::vector<std::string> scalars = {};   // the options whose values a launch is given beside them
  std::vector<LibrarySchedule> schedules;  // of one target, the best first
  std::vector<ScheduleRules> rules;        // one for a target at most; without, the first schedule
  std::function<Kernel(const OptionValues&)> build;
  // Of gradients: the name of the kernel that they are of. Their tensors are those of its tensors
  // and, named dX, the gradients of X.
  std::string backward_of = {};
  // The definition in other blocks, the largest first, without a target: the first that fits serves
  // a machine whose memories have no room for those of `build` or `build_program`.
  std::vector<LibrarySchedule> blocks = {};
  // In place of build: the operation is a program of one rank and one stream, on tensors that are
  // its in, out and inout buffers.
  std::function<Program(const OptionValues&)> build_program;
  bool is_program() const { return build_program != nullptr; }
  // The program has as many ranks as the option `ranks` says, each of which has each of the
  // tensors. What takes or gives tensors has all of rank 0, then all of rank 1, and so on.
  bool over_ranks = false;
  // What the options' own ranges do not say: raises a usage error.
  std::function<void(const OptionValues&)> check;
  // The outputs, row-major, in float64 throughout.
  std::function<std::vector<std::vector<double>>(const OptionValues&,
                                                 const std::vector<HostTensor>& inputs)>
      reference;
  // The same outputs as the kernel's own types round them: how far from the reference rounding
  // takes a result. Without it the interpreter runs what `build` or `build_program` gives; where
  // there is neither, the dtypes of the outputs say it.
  std::function<std::vector<std::vector<double>>(const OptionValues&,
                                                 const std::vector<HostTensor>& inputs)>
      rounded = {};
  // Without inputs where it depends on what they hold, as the sequences' lengths: of equal ones.
  std::function<double(const OptionValues&, const std::vector<HostTensor>& inputs)>
      floating_operations;
};

const std::vector<LibraryKernel>& kernel_library();
// An unknown name is a usage error that lists the known ones and says which is nearest.
const LibraryKernel& find_kernel(std::string_view name);
const LibraryKernel& find_kernel_among(const std::vector<LibraryKernel>& kernels,
                                       std::string_view name);

// Checks each setting "name=value" against the kernel's options and fills in what is not set: from
// `sizes`, which holds axes of tensors that are given, else the option's standard. `schedule` is
// known to every kernel: "tile", or the name of one of its schedules; it is left out where it is
// not set. So is `schedule.stages`, and the other fields that a Schedule may state of a tile-level
// kernel (schedule.h), which come before the kernel's own. Lengths say what their count and sum
// are. Lengths that others follow stand for these, too, unless the others' sum is set. Raises
// Error(usage) for what is no setting or stands twice, for an unknown option, schedule or value,
// and for options that do not fit together.
OptionValues resolve_options(const LibraryKernel& kernel, const std::vector<std::string>& settings,
                             const std::map<std::string, std::int64_t>& sizes = {});

// An axis "name", "name + n" or "n" (without an option) of a LibraryTensor, in elements. An n that
// is no number of 64 bits is a usage error. Any other text is an expression of options, as
// Dim::to_string writes it: `option` is empty then, and a tensor's size does not say what they are.
struct LibraryAxis {
  std::string option;
  std::int64_t more = 0;
  bool is_expression = false;
};
LibraryAxis parse_axis(const std::string& text);
// The kernel's tensors that are there with these options, in their order. Here and below, options
// without one that a tensor names are a usage error.
std::vector<const LibraryTensor*> tensors_of(const LibraryKernel& kernel,
                                             const OptionValues& options);
DType dtype_of(const LibraryTensor& tensor, const OptionValues& options);
std::vector<std::int64_t> shape_of(const LibraryTensor& tensor, const OptionValues& options);

// What a launch of the options' sizes is served by.
struct ScheduleChoice {
  const LibrarySchedule* schedule = nullptr;  // null: the tile-level definition
  OptionValues options;                       // that it is built with
  std::string why;                            // the rule's place and line, or what was set
};

struct ScheduleOptions {
  int multiprocessors = 0;  // 0: its first GPU's; an H200's for targets without one
  // A folder with files of rules, named as the built-in ones or KERNEL.TARGET.txt, that replace
  // these; empty: that which the environment names in TILEWRIGHT_SCHEDULES, if any.
  std::string rules_folder = {};
};

// The schedule that was set, else what the kernel's rules for the target choose. Raises
// Error(usage) when the schedule that was set is for another target, and for rules that cannot be
// read.
ScheduleChoice choose_schedule(const LibraryKernel& kernel, const OptionValues& options,
                               std::string_view target, const ScheduleOptions& how = {});

// The kernel that was chosen; of an operation that is a program, that. Raise Error(usage) for an
// operation that is the other, and for options that its author refuses.
Kernel build_choice(const LibraryKernel& kernel, const ScheduleChoice& choice);
Program build_program(const LibraryKernel& kernel, const ScheduleChoice& choice);

}  // namespace tilewright
