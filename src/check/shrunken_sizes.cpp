#include "check/shrunken_sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "check/shrunken_axes.h"
#include "library/decided_options.h"

namespace tilewright::checks {
namespace {

// A launch refuses tensor maps with other strides (CUDA driver API, cuTensorMapEncodeTiled).
constexpr std::int64_t kMapStrideBytes = 16;

bool is_symbol(const Dim& dim, const std::string& name) {
  return dim.kind() == Dim::Kind::symbol && dim.name() == name;
}

// What rows of the option must be a multiple of, so that TMA can copy them. A store may have
// another way for such rows, but where there are several of them the launch refuses their stride.
std::int64_t multiple_of_rows(const SizedKernel& launched, const std::string& option,
                              bool of_loads_alone = false) {
  const ir::Kernel& machine = *launched.machine;
  std::set<ir::ValueId> loaded, stored_by_threads;
  std::map<ir::ValueId, ir::ValueId> chosen_from;
  ir::for_each(machine.body, [&](const ir::Operation& operation) {
    const ir::OpInfo& record = ir::info(operation.op);
    if (record.family == ir::Family::global_access && record.writes(ir::Memory::global)) {
      stored_by_threads.insert(operation.operands[0]);
    }
    if (operation.op == ir::Op::ragged_map) {
      chosen_from[operation.results[0]] = operation.operands[0];
    }
    if (operation.op != ir::Op::tma_load) return;
    const auto pair = chosen_from.find(operation.operands[0]);
    loaded.insert(pair == chosen_from.end() ? operation.operands[0] : pair->second);
  });
  std::int64_t multiple = 1;
  ir::for_each(machine.body, [&](const ir::Operation& operation) {
    if (operation.op != ir::Op::tensor_map) return;
    const ir::Parameter& tensor = *machine.parameter_of(operation.operands[0]);
    if (tensor.shape.size() < 2 || !is_symbol(tensor.shape.back(), option)) return;
    const bool has_several_rows =
        !of_loads_alone &&
        std::any_of(tensor.shape.begin(), tensor.shape.end() - 1, [&](const Dim& axis) {
          return axis.kind() == Dim::Kind::symbol && axis.name() != option &&
                 multiple_of_rows(launched, axis.name(), /*of_loads_alone=*/true) > 1;
        });
    const bool has_another_way = loaded.count(operation.results[0]) == 0 &&
                                 stored_by_threads.count(operation.operands[0]) != 0;
    if (of_loads_alone ? loaded.count(operation.results[0]) == 0
                       : has_another_way && !has_several_rows) {
      return;
    }
    multiple = std::lcm(multiple, kMapStrideBytes / size_of(tensor.dtype));
  });
  return multiple;
}

// Whether the dim is as large as the option: by its name, or since an axis has both.
bool stands_for(const SizedKernel& launched, const Dim& dim, const std::string& option) {
  if (dim.name() == option) return true;
  const auto options = launched.options_of_dims.find(dim.name());
  return options != launched.options_of_dims.end() && options->second.count(option) != 0;
}

// The next size that the option takes, and whose rows TMA can copy.
std::int64_t allowed(const std::vector<SizedKernel>& launched, const KernelOption& option,
                     std::int64_t size) {
  constexpr std::int64_t kRowMultiple = 8;
  if (size < option.minimum) {
    size = (option.minimum + kRowMultiple - 1) / kRowMultiple * kRowMultiple;
  }
  std::int64_t multiple = 1, most = option.maximum;
  for (const SizedKernel& each : launched) {
    for (const Dim& dim : each.dims) {
      if (!stands_for(each, dim, option.name)) continue;
      multiple = std::lcm(multiple, dim.facts().multiple);
      most = std::min(most, dim.facts().maximum);
    }
    multiple = std::lcm(multiple, multiple_of_rows(each, option.name));
  }
  const std::int64_t rounded_up = (size + multiple - 1) / multiple * multiple;
  return std::min(rounded_up, most / multiple * multiple);
}

std::int64_t most_stages(const std::vector<SizedKernel>& launched) {
  std::int64_t stages = 1;
  for (const SizedKernel& each : launched) {
    ir::for_each(each.machine->body, [&](const ir::Operation& operation) {
      if (operation.op != ir::Op::shared) return;
      stages = std::max(stages, operation.attributes.integer_or(ir::Key::stages, 1));
    });
  }
  return stages;
}

// The rows of a stage of the largest tiles that a ring holds.
std::int64_t rows_of_stage(const std::vector<SizedKernel>& launched) {
  std::int64_t rows = 1;
  for (const SizedKernel& each : launched) {
    ir::for_each(each.machine->body, [&](const ir::Operation& operation) {
      if (operation.op != ir::Op::shared) return;
      const std::vector<std::int64_t>& shape = each.machine->type(operation.results[0]).shape;
      if (operation.attributes.integer_or(ir::Key::stages, 1) < 2 || shape.size() < 2) return;
      rows = std::max(rows, shape[shape.size() - 2]);
    });
  }
  return rows;
}

// Of one workload: how long contractions and other lengths are, as functions of the axis.
struct Lengths {
  std::function<std::int64_t(const Axis&axis, std::int64_t block)> contraction, other;
  std::int64_t batch = 1;
};

struct Candidate {
  std::int64_t contraction = 0, other = 0;
};

constexpr std::int64_t kContractionTail = 16;

// The sizes that the settings leave open, of each choice of lengths.
class Sizer {
 public:
  Sizer(const LibraryKernel& kernel, const std::vector<std::string>& settings,
        const OptionValues& options, const std::vector<SizedKernel>& launched)
      : kernel_(kernel),
        options_(options),
        launched_(launched),
        axes_(axes_of(kernel, launched)),
        of_one_dim_(options_of_one_dim(launched)),
        rows_of_step_(rows_of_stage(launched)),
        is_set_(library::decided_options(kernel, settings)) {
    // Sequences of a packed batch share the lengths.
    for (const KernelOption& option : kernel.options) {
      const auto axis = axes_.find(option.name);
      if (option.is_length && axis != axes_.end() && axis->second.box == 0) sequences_ = 2;
      if (option.kind == KernelOption::Kind::lengths) counts_sequences_ = option.count;
    }
  }

  // Gradients have outputs along all lengths: the last one then is as long as a contraction. False:
  // others have contractions anyway.
  bool let_last_length_differ() {
    const std::string* last = nullptr;
    std::size_t lengths = 0;
    for (const KernelOption& option : kernel_.options) {
      const auto axis = axes_.find(option.name);
      if (!option.is_length || axis == axes_.end() || axis->second.box <= 1) continue;
      if (!axis->second.is_output) return false;
      last = &option.name;
      ++lengths;
    }
    if (lengths < 2) return false;
    axes_.at(*last).is_output = false;
    return true;
  }

  // Whether some length that copies go along is none of an output.
  bool has_contractions() const {
    return std::any_of(kernel_.options.begin(), kernel_.options.end(), [&](const auto& option) {
      const auto axis = axes_.find(option.name);
      return option.is_length && axis != axes_.end() && axis->second.box > 1 &&
             !axis->second.is_output;
    });
  }

  std::vector<std::string> sizes(const Lengths& lengths) const {
    std::map<std::string, std::int64_t> sizes;
    for (const KernelOption& option : kernel_.options) {
      const auto found = axes_.find(option.name);
      if (found == axes_.end() || is_set_.count(option.name) != 0) continue;
      const Axis& axis = found->second;
      std::int64_t size = 0;
      if (counts_pages(option)) {
        size = pages(option, lengths);
      } else if (option.name == counts_sequences_) {
        size = sequences(lengths);
      } else if (option.is_length && axis.box > 1) {
        const std::int64_t block = axis.span * sequences_;
        size = axis.is_output ? lengths.other(axis, block) : lengths.contraction(axis, block);
        size = std::max<std::int64_t>(size, 0);
      } else if (option.is_length) {
        size = sequences(lengths);
      } else if (axis.box == 1 && !options_.has(option.standard)) {
        size = 2;
      } else {
        continue;
      }
      sizes[option.name] = allowed(launched_, option, size);
    }
    make_alike(sizes);
    std::vector<std::string> texts;
    for (const KernelOption& option : kernel_.options) {
      const auto size = sizes.find(option.name);
      if (size != sizes.end()) texts.push_back(fmt::format("{}={}", option.name, size->second));
    }
    return texts;
  }

  // The same with fewer steps of contractions, one at least, where all lengths together are more
  // multiplications of one head than `most`.
  std::vector<std::string> sizes(const Lengths& lengths, std::int64_t most) const {
    std::vector<std::string> all = sizes(lengths);
    const std::int64_t work = multiplications(all);
    if (work <= most) return all;
    const auto fewer = [&](const Axis& axis, std::int64_t block) {
      const double part = static_cast<double>(most) / static_cast<double>(work);
      const auto length = static_cast<double>(lengths.contraction(axis, block));
      const auto steps = static_cast<std::int64_t>(length * part / static_cast<double>(block));
      return std::max<std::int64_t>(steps, 1) * block - kContractionTail;
    };
    return sizes({fewer, lengths.other, lengths.batch});
  }

  // The longest block of a length of each sort.
  std::int64_t block(bool of_output) const {
    std::int64_t longest = 1;
    for (const KernelOption& option : kernel_.options) {
      const auto axis = axes_.find(option.name);
      if (!option.is_length || axis == axes_.end() || axis->second.is_output != of_output) continue;
      longest = std::max(longest, axis->second.span * sequences_);
    }
    return longest;
  }

  // Of the candidate's lengths the product, which the axes of an output share.
  std::int64_t work(const Candidate& candidate) const {
    std::int64_t work = std::max<std::int64_t>(candidate.contraction, 64);
    for (const KernelOption& option : kernel_.options) {
      const auto axis = axes_.find(option.name);
      if (!option.is_length || axis == axes_.end() || axis->second.box <= 1) continue;
      if (axis->second.is_output) work *= std::max<std::int64_t>(candidate.other, 1);
    }
    return work;
  }

  // Numbers of rows among the options that are no sizes, such as a window: lengths at which a
  // kernel does something else.
  std::vector<std::int64_t> edges() const {
    std::vector<std::int64_t> edges;
    for (const KernelOption& option : kernel_.options) {
      if (option.counts_rows && options_.integer(option.name) > 0) {
        edges.push_back(options_.integer(option.name));
      }
    }
    return edges;
  }

 private:
  // Lengths that a kernel has one dim for are as long as the longest, or as one that is set.
  void make_alike(std::map<std::string, std::int64_t>& sizes) const {
    for (const std::set<std::string>& options : of_one_dim_) {
      std::int64_t longest = 0;
      for (const std::string& option : options) {
        const auto size = sizes.find(option);
        if (size != sizes.end()) longest = std::max(longest, size->second);
      }
      for (const std::string& option : options) {
        if (is_set_.count(option) != 0) longest = options_.integer(option);
      }
      for (const std::string& option : options) {
        const auto size = sizes.find(option);
        if (size != sizes.end()) size->second = longest;
      }
    }
  }

  static bool counts_pages(const KernelOption& option) {
    return option.is_length && option.kind == KernelOption::Kind::integer && !option.count.empty();
  }

  // Whether a kernel goes through the sequences themselves in blocks, such as one that plans.
  bool sequences_in_blocks() const {
    const auto axis = axes_.find(counts_sequences_);
    return axis != axes_.end() && axis->second.box > 1;
  }
  // No ring goes through them: a second block is enough, where they have few rows.
  std::int64_t sequences(const Lengths& lengths) const {
    constexpr std::int64_t kFew = 3, kMore = 24;
    if (!sequences_in_blocks()) return sequences_ * lengths.batch;
    const Axis& axis = axes_.at(counts_sequences_);
    return lengths.contraction(axis, axis.span) > 0 ? kFew + lengths.batch : axis.span + kMore;
  }

  // Pages of a sequence whose rows are as many as a contraction's, or of all sequences. Many
  // sequences have a step each.
  std::int64_t pages(const KernelOption& option, const Lengths& lengths) const {
    constexpr std::int64_t kMostSteps = 96;
    const std::int64_t count = sequences(lengths);
    const std::int64_t wanted = lengths.contraction({rows_of_step_}, rows_of_step_);
    const std::int64_t most = std::max<std::int64_t>(kMostSteps / count, 1) * rows_of_step_;
    const std::int64_t rows = std::max<std::int64_t>(std::min(wanted, most), 1);
    const std::int64_t page = options_.integer(option.count);
    const std::int64_t each = (rows + page - 1) / page;
    if (option.sum.empty()) return each;
    // Sequences share pages of a cache where it would be large.
    constexpr std::int64_t kOwnPages = 8;
    return each * (is_of_rows(option) ? std::min(count, kOwnPages) : count);
  }
  // Whether each stands for more than one element of a tensor.
  bool is_of_rows(const KernelOption& option) const {
    return std::any_of(kernel_.tensors.begin(), kernel_.tensors.end(),
                       [&](const LibraryTensor& tensor) {
                         return tensor.shape.size() > 1 && tensor.shape.front() == option.name;
                       });
  }

  // The product of the lengths that copies go along.
  std::int64_t multiplications(const std::vector<std::string>& sizes) const {
    std::int64_t work = 1;
    for (const KernelOption& option : kernel_.options) {
      const auto axis = axes_.find(option.name);
      if (!option.is_length || axis == axes_.end() || axis->second.box <= 1) continue;
      for (const std::string& size : sizes) {
        if (size.rfind(option.name + "=", 0) != 0) continue;
        work *= std::max<std::int64_t>(std::stoll(size.substr(option.name.size() + 1)), 1);
      }
    }
    return work;
  }

  const LibraryKernel& kernel_;
  const OptionValues& options_;
  const std::vector<SizedKernel>& launched_;
  Axes axes_;
  const std::vector<std::set<std::string>> of_one_dim_;
  const std::int64_t rows_of_step_;
  std::string counts_sequences_;  // the option that does
  const std::set<std::string> is_set_;
  std::int64_t sequences_ = 1;
};

// More than that takes longer to execute than a size is worth: multiplications of one head's
// products.
// A contraction of nothing leaves an output to be written.
constexpr std::int64_t kMostWork = 250'000'000;

std::vector<Candidate> candidates_of(const Sizer& sizer, std::int64_t steps) {
  const std::int64_t across = sizer.block(false), along = sizer.block(true);
  std::vector<std::int64_t> lengths = {1, along, across, along + across, 2 * along - 24};
  for (const std::int64_t times : {steps, 2 * steps, 4 * steps}) {
    lengths.push_back(times * across - 16);
  }
  for (const std::int64_t edge : sizer.edges()) {
    for (const std::int64_t length :
         {edge, edge + along, 2 * edge + across, 4 * edge + 3 * across, 8 * edge + 5 * along}) {
      lengths.push_back(length);
    }
  }
  std::vector<Candidate> candidates;
  for (const std::int64_t length : lengths) {
    for (const std::int64_t more : {-1, 0, 1}) {
      candidates.push_back({length + more, length});
      candidates.push_back({length + across + more, length});
    }
    for (const std::int64_t tiles : {1, 6, 20}) candidates.push_back({length, tiles * along - 24});
  }
  // Contractions that are longer by so much that a row's first one begins a block, and one off.
  for (const std::int64_t edge : sizer.edges()) {
    for (const std::int64_t more : {-2, -1, 0, 1}) {
      candidates.push_back({3 * along + edge % across + more, 3 * along});
    }
    // And so long that the edge lies within the rows of one tile, which nothing else cuts short.
    for (const std::int64_t tiles : {1, 2}) {
      candidates.push_back({tiles * along + edge + across - along / 2, tiles * along});
    }
  }
  candidates.erase(
      std::remove_if(candidates.begin(), candidates.end(),
                     [&](const Candidate& candidate) { return sizer.work(candidate) > kMostWork; }),
      candidates.end());
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) {
                     return a.contraction * a.other < b.contraction * b.other;
                   });
  return candidates;
}

}  // namespace

std::vector<std::vector<std::string>> shrunken_sizes(const LibraryKernel& kernel,
                                                     const std::vector<std::string>& settings,
                                                     const OptionValues& options,
                                                     const std::vector<SizedKernel>& launched,
                                                     Sizes which) {
  const std::int64_t steps = most_stages(launched) + 1;
  bool cooperative = false, clusters = false;
  for (const SizedKernel& each : launched) {
    cooperative = cooperative || ir::is_cooperative(*each.machine);
    clusters = clusters || each.machine->cluster > 1;
  }
  const std::int64_t few = clusters || cooperative ? 2 : 3;
  const std::int64_t parts = cooperative ? 2 : 1;
  const Sizer alike(kernel, settings, options, launched);
  Sizer sizer = alike;
  const bool is_apart = sizer.let_last_length_differ();
  std::vector<std::vector<std::string>> result;
  if (which == Sizes::candidates) {
    for (const Candidate& candidate : candidates_of(sizer, steps)) {
      const auto is = [](std::int64_t length) {
        return [length](const Axis&, std::int64_t) { return length; };
      };
      // So many that what comes to the end of a sequence is not the end of the run.
      constexpr std::int64_t kWork = 400'000;
      const std::int64_t work = candidate.contraction * candidate.other;
      // Of these some that groups of sequences divide, and some that they do not.
      const auto number = static_cast<std::int64_t>(result.size());
      const std::int64_t batch =
          std::clamp<std::int64_t>(kWork / std::max<std::int64_t>(work, 1), 2, 14) + number % 4;
      result.push_back(sizer.sizes({is(candidate.contraction), is(candidate.other), batch}));
    }
    std::set<std::vector<std::string>> seen;
    result.erase(std::remove_if(result.begin(), result.end(),
                                [&](const auto& sizes) { return !seen.insert(sizes).second; }),
                 result.end());
    return result;
  }
  // Of the last block all rows but these: some of each warpgroup's, or of the first one's alone.
  // The tails differ from those of contractions, so that diagonals cross blocks.
  const auto small_tail = [](std::int64_t) { return std::int64_t{24}; };
  const auto large_tail = [](std::int64_t box) { return box * 3 / 4 / 16 * 16 - 8; };
  struct Choice {
    std::int64_t contraction, other;
    std::int64_t (*tail)(std::int64_t box);
    std::int64_t batch = 1;
  };
  std::vector<Choice> usual = {{steps, few, small_tail},
                               {steps + 1, 2 * few - 1, large_tail},
                               {steps + 2, few + 1, small_tail},
                               {1, few, small_tail},
                               {0, few, small_tail},
                               // The next tile begins in the stages of this one's begin.
                               {steps - 1, 2 * few - 1, large_tail}};
  // Without a contraction the last three are as long as the first two. So the last length is one
  // block in one of these, and many times as long as the others in the next one: rows that see no
  // keys, and keys that no rows see.
  if (is_apart) {
    usual[3] = {1, 4 * few, small_tail};
    usual[4] = {2 * few, 1, small_tail};
  }
  std::vector<Choice> others = {{steps + 3, few + 2, large_tail, 2},
                                {2 * steps + 1, 2 * few, small_tail, 3},
                                {3 * steps, few + 1, large_tail, 1},
                                {2, 4 * few, small_tail, 1},
                                {3 * steps + 2, 4 * few, small_tail, 2},
                                {5 * steps, 3 * few, large_tail, 3},
                                {1, 1, small_tail, 1},
                                // Stages of what is loaded once a tile are used again, and
                                // no step's stages order that.
                                {1, few, small_tail, 3},
                                // One tile, of which all have parts where they share it.
                                {3 * steps, 1, small_tail, 1}};
  // Where no length is a contraction, rings go along the outputs' own.
  if (steps > 2 && !sizer.has_contractions()) others.push_back({1, 4 * steps, small_tail});
  constexpr std::int64_t kManySteps = 28;
  const std::vector<Choice> shared =
      is_apart ? std::vector<Choice>{{1, kManySteps, small_tail}} : std::vector<Choice>();
  const std::int64_t most = which == Sizes::further ? 2 * kMostWork : INT64_MAX;
  for (const Choice& choice : which == Sizes::further  ? others
                              : which == Sizes::shared ? shared
                                                       : usual) {
    const bool is_alike = which == Sizes::usual && result.size() != 3 && result.size() != 4;
    result.push_back((is_alike ? alike : sizer)
                         .sizes({[&](const Axis&, std::int64_t block) {
                                   return choice.contraction * parts * block - kContractionTail;
                                 },
                                 [&](const Axis& axis, std::int64_t block) {
                                   return choice.other * block - choice.tail(axis.box);
                                 },
                                 choice.batch},
                                most));
  }
  if (which == Sizes::further) {
    // Long ones of equal lengths, where tiles follow each other many times, and one off.
    std::int64_t length = 6 * sizer.block(true);
    for (const std::int64_t edge : sizer.edges()) {
      length = std::max(length, 4 * edge + 3 * sizer.block(false));
    }
    for (const std::int64_t more : {0, 1}) {
      result.push_back(sizer.sizes({[&](const Axis&, std::int64_t) { return length + more; },
                                    [&](const Axis&, std::int64_t) { return length; }},
                                   most));
    }
  }
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

std::vector<std::vector<std::string>> shrunken_sizes(const LibraryKernel& kernel,
                                                     const std::vector<std::string>& settings,
                                                     const OptionValues& options,
                                                     const ir::Kernel& machine, Sizes which) {
  return shrunken_sizes(kernel, settings, options, {{&machine, kernel.tensors, machine.dims}},
                        which);
}

}  // namespace tilewright::checks
