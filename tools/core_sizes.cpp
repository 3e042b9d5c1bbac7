#include "core_sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "check/shrunken_sizes.h"
#include "library/workload.h"
#include "simulate_faults.h"

namespace tilewright::tools {
namespace {

// Of each option that axes are as long as, the most that a load or a store takes of one.
std::map<std::string, std::int64_t> largest_parts(const LibraryKernel& entry,
                                                  const std::vector<ir::Kernel>& kernels) {
  std::map<std::string, std::int64_t> largest;
  for (const ir::Kernel& kernel : kernels) {
    ir::for_each(kernel.body, [&](const ir::Operation& o) {
      if (o.op != ir::Op::core_load && o.op != ir::Op::core_store) return;
      const ir::Parameter* parameter =
          kernel.parameter_of(o.operands[o.op == ir::Op::core_load ? 1 : 0]);
      const auto tensor =
          std::find_if(entry.tensors.begin(), entry.tensors.end(),
                       [&](const LibraryTensor& each) { return each.name == parameter->name; });
      const std::vector<std::int64_t>& sizes = o.attributes.integers(ir::Key::sizes);
      if (tensor == entry.tensors.end() || tensor->shape.size() != sizes.size()) return;
      for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
        std::int64_t& most = largest[parse_axis(tensor->shape[axis]).option];
        most = std::max({most, sizes[axis], std::int64_t{1}});
      }
    });
  }
  largest.erase("");
  return largest;
}

// Of any load: the blocks of lengths that no tensor tells.
std::int64_t largest_part(const std::vector<ir::Kernel>& kernels) {
  std::int64_t largest = 1;
  for (const ir::Kernel& kernel : kernels) {
    ir::for_each(kernel.body, [&](const ir::Operation& o) {
      if (o.op != ir::Op::core_load) return;
      for (const std::int64_t size : o.attributes.integers(ir::Key::sizes)) {
        largest = std::max(largest, size);
      }
    });
  }
  return largest;
}

bool is_set(const Request& request, const std::string& option) {
  return std::any_of(
      request.settings.begin(), request.settings.end(),
      [&](const std::string& each) { return each.substr(0, each.find('=')) == option; });
}

// Options may say more of each other than their ranges do.
bool is_possible(const LibraryKernel& entry, const std::vector<std::string>& settings) {
  try {
    library::make_workload(entry, settings, {}, 0);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::usage) throw;
    return false;
  }
  return true;
}

bool is_of_output(const LibraryKernel& entry, const std::string& option) {
  return std::any_of(entry.tensors.begin(), entry.tensors.end(), [&](const LibraryTensor& tensor) {
    return tensor.is_output &&
           std::any_of(tensor.shape.begin(), tensor.shape.end(),
                       [&](const std::string& axis) { return parse_axis(axis).option == option; });
  });
}

}  // namespace

CoreSizes core_sizes(
    const Request& request, const LibraryKernel& entry,
    const std::function<std::vector<ir::Kernel>(const std::vector<std::string>& settings)>& build) {
  CoreSizes made{build(request.settings), {}, {}};
  std::vector<std::string> counts;
  const OptionValues options = resolve_options(entry, request.settings);
  const std::map<std::string, std::int64_t> parts = largest_parts(entry, made.kernels);
  // What is taken one by one, such as heads, is there twice.
  constexpr std::int64_t kCount = 2;
  for (const KernelOption& option : entry.options) {
    const auto found = parts.find(option.name);
    const bool is_count = option.kind == KernelOption::Kind::integer && !option.is_length &&
                          found != parts.end() && found->second == 1 &&
                          !options.has(option.standard);
    if (!is_count || is_set(request, option.name) || options.integer(option.name) <= kCount)
      continue;
    counts.push_back(fmt::format("{}={}", option.name, kCount));
  }
  if (!counts.empty()) made.kernels = build(joined(request.settings, counts));
  // Lengths are of several blocks, with a tail, of one and a part, where a second stage has held
  // nothing yet, and of a part. Then what is summed over is empty. Packed sequences differ, and one
  // of them has no rows.
  const std::int64_t largest = largest_part(made.kernels), small = largest / 4 + 1;
  const auto block_of = [&, largest](const std::string& option) {
    const auto part = parts.find(option);
    return part == parts.end() ? largest : part->second;
  };
  const auto part_more = [](std::int64_t block) { return block + block / 4 + 1; };
  enum class Lengths : std::uint8_t { several, one_and_part, part, nothing, divided };
  // 0 stands for random ones there.
  const auto is_drawn = [](const KernelOption& option, Lengths which) {
    return option.standard == "0" && which >= Lengths::part;
  };
  const auto length_of = [&](const KernelOption& option, Lengths which) {
    const bool is_summed = option.minimum == 0 && !is_of_output(entry, option.name);
    if (is_drawn(option, which)) return which == Lengths::nothing ? 7 : small / 2 + 1;
    switch (which) {
      case Lengths::several:
        return 2 * largest + largest / 2 + 3;
      case Lengths::one_and_part:
        return part_more(block_of(option.name));
      case Lengths::part:
        break;
      case Lengths::nothing:
        return is_summed ? 0 : small;
      case Lengths::divided:
        // More parts than one step of what joins them takes.
        return is_summed ? 16 * block_of(option.name) + part_more(block_of(option.name)) : small;
    }
    return small;
  };
  const auto lengths = [&](Lengths which) {
    std::vector<std::string> sizes = counts;
    std::set<std::string> decided;
    for (const KernelOption& option : entry.options) {
      const bool is_open = !is_set(request, option.name) && !is_set(request, option.count) &&
                           !is_set(request, option.sum);
      if (option.kind != KernelOption::Kind::lengths || which == Lengths::several || !is_open) {
        continue;
      }
      // Where a sequence begins is told from the next one's beginning by blocks that are between.
      const std::int64_t block = block_of(option.sum);
      std::vector<std::int64_t> rows{2, 0, 3, 1, 1};
      if (which == Lengths::one_and_part) rows = {part_more(block), block * 3 / 4 + 1, 0, 3};
      // Some have rows and nothing to sum over.
      if (!is_of_output(entry, option.sum)) std::reverse(rows.begin(), rows.end());
      sizes.push_back(fmt::format("{}={}", option.name, fmt::join(rows, ",")));
      decided.insert({option.count, option.sum});
    }
    for (const KernelOption& option : entry.options) {
      const bool is_number = option.kind == KernelOption::Kind::integer && option.is_length;
      if (!is_number || is_set(request, option.name) || decided.count(option.name) != 0) continue;
      const std::int64_t own = length_of(option, which);
      if (!is_drawn(option, which) && options.integer(option.name) <= own) continue;
      sizes.push_back(fmt::format("{}={}", option.name, own));
    }
    return sizes;
  };
  for (const Lengths which :
       {Lengths::several, Lengths::one_and_part, Lengths::part, Lengths::nothing}) {
    // A kernel of somebody's own may want something to sum.
    if (which == Lengths::nothing && request.kernel.ends_with(".tw")) continue;
    std::vector<std::string> sizes = lengths(which);
    if (std::count(made.choices.begin(), made.choices.end(), sizes) == 0 &&
        is_possible(entry, joined(request.settings, sizes))) {
      made.choices.push_back(std::move(sizes));
    }
  }
  made.divided = lengths(Lengths::divided);
  if (!is_possible(entry, joined(request.settings, made.divided))) made.divided.clear();
  // What the user has set is refused where it is run.
  if (made.choices.empty()) made.choices.push_back(counts);
  return made;
}

std::vector<std::pair<std::vector<std::string>, std::int64_t>> sizes_on_cores(
    const CoreSizes& sizes, const ir::Program& program) {
  std::vector<std::pair<std::vector<std::string>, std::int64_t>> made;
  for (const std::vector<std::string>& choice : sizes.choices) {
    made.emplace_back(choice, kCoresOfSizes);
  }
  const std::vector<std::int64_t> counts =
      checks::shrunken_multiprocessors(program, sizes.kernels, kManyCores);
  const bool divides = std::count(counts.begin(), counts.end(), kManyCores) != 0;
  if (divides && !sizes.divided.empty()) made.emplace_back(sizes.divided, kManyCores);
  return made;
}

}  // namespace tilewright::tools
