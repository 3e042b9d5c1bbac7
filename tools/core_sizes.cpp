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

// Of each option that axes are as long as, the most that a load or a store takes of one. What takes
// a tensor's only axis says so where nothing else does: a vector may be taken whole, whose elements
// belong to what is taken one by one.
std::map<std::string, std::int64_t> largest_parts(const LibraryKernel& entry,
                                                  const std::vector<ir::Kernel>& kernels) {
  std::map<std::string, std::int64_t> largest, of_vectors;
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
        std::int64_t& most =
            (sizes.size() == 1 ? of_vectors : largest)[parse_axis(tensor->shape[axis]).option];
        most = std::max({most, sizes[axis], std::int64_t{1}});
      }
    });
  }
  largest.merge(of_vectors);
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

void note_most(const Dim& dim, const std::function<void(const Dim& of, std::int64_t most)>& note) {
  if (dim.is_constant() || dim.kind() == Dim::Kind::symbol) return;
  const Dim a = dim.lhs(), b = dim.rhs();
  if (dim.kind() == Dim::Kind::min && b.is_constant()) note(a, b.constant());
  if (dim.kind() == Dim::Kind::min && a.is_constant()) note(b, a.constant());
  note_most(a, note);
  note_most(b, note);
}

// Of each length that is divided into so many parts at most, and into as many as it has blocks
// where these are fewer: the least of which a part has several blocks.
std::map<std::string, std::int64_t> beyond_most(const LibraryKernel& entry,
                                                const std::vector<ir::Kernel>& kernels) {
  std::map<std::string, std::int64_t> lengths;
  const auto note = [&](const Dim& of, std::int64_t most) {
    for (const KernelOption& option : entry.options) {
      if (option.kind != KernelOption::Kind::integer || !option.is_length) continue;
      bool is_of_it = false, is_of_others = false;
      const auto of_length = [&](std::int64_t length) {
        return of.evaluate([&](const std::string& name) {
          (name == option.name ? is_of_it : is_of_others) = true;
          return length;
        });
      };
      constexpr std::int64_t kLongest = 1 << 13;
      std::int64_t least = 1, enough = kLongest;
      if (of_length(kLongest) <= most || !is_of_it || is_of_others) continue;
      while (least < enough) {
        const std::int64_t middle = (least + enough) / 2;
        if (of_length(middle) > most) {
          enough = middle;
        } else {
          least = middle + 1;
        }
      }
      lengths[option.name] = std::max(lengths[option.name], enough);
    }
  };
  for (const ir::Kernel& kernel : kernels) {
    ir::for_each(kernel.body, [&](const ir::Operation& o) {
      if (o.op == ir::Op::dim) note_most(o.attributes.dim(), note);
    });
  }
  return lengths;
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
  const std::int64_t largest = largest_part(made.kernels);
  const auto block_of = [&, largest](const std::string& option) {
    const auto part = parts.find(option);
    return part == parts.end() ? largest : part->second;
  };
  // Each core takes several blocks of an axis, though these be of few elements.
  constexpr std::int64_t kMostBlocks = 8;
  const auto most_of = [&](const std::string& option) {
    return kMostBlocks * block_of(option) + 3;
  };
  // One element of so few is more than rounding.
  constexpr std::int64_t kMostOfPart = 65;
  const auto small_of = [&](const std::string& option) {
    return std::min({largest / 4 + 1, most_of(option), kMostOfPart});
  };
  const auto part_more = [](std::int64_t block) { return block + block / 4 + 1; };
  const auto block_of_parts = [&](const std::string& option) {
    const auto part = parts.find(option);
    return part == parts.end() ? std::int64_t{1} : part->second;
  };
  enum class Lengths : std::uint8_t { several, one_and_part, part, block, nothing, divided };
  // 0 stands for random ones there.
  const auto is_drawn = [](const KernelOption& option, Lengths which) {
    return option.standard == "0" && which >= Lengths::one_and_part;
  };
  // Random lengths are of what is kept in parts of `count`: of those a step takes so many.
  const auto step_of_parts = [&] {
    std::int64_t step = 1;
    for (const KernelOption& option : entry.options) {
      if (option.is_length && !option.count.empty()) {
        step = std::max(step, block_of_parts(option.count));
      }
    }
    return step;
  };
  const auto length_of = [&](const KernelOption& option, Lengths which) {
    const bool is_summed = option.minimum == 0 && !is_of_output(entry, option.name);
    const std::int64_t small = small_of(option.name);
    if (is_drawn(option, which)) {
      if (which == Lengths::one_and_part) return part_more(step_of_parts());
      return which == Lengths::nothing ? 7 : small / 2 + 1;
    }
    switch (which) {
      case Lengths::several:
        return std::min(2 * largest + largest / 2 + 3, most_of(option.name));
      case Lengths::one_and_part:
        // So many parts of others that each sequence has several.
        if (!option.count.empty()) return most_of(option.name);
        return part_more(block_of(option.name));
      case Lengths::block:
        // Its last element is the last of a block that is the first, too. What nothing takes in
        // blocks is there once.
        return std::min(small, std::max(block_of_parts(option.name) * 3 / 4, std::int64_t{1}));
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
  // What has not even two blocks as it stands gets several.
  const auto is_short = [&](const KernelOption& option, Lengths which) {
    return which == Lengths::several && parts.count(option.name) != 0 &&
           block_of(option.name) > 1 && options.integer(option.name) <= block_of(option.name);
  };
  const auto lengths = [&](Lengths which, bool also_short) {
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
      const bool is_raised = also_short && is_short(option, which);
      const bool grows = is_drawn(option, which) || is_raised;
      const std::int64_t own = is_raised ? 2 * block_of(option.name) + 2 : length_of(option, which);
      if (!grows && options.integer(option.name) <= own) continue;
      sizes.push_back(fmt::format("{}={}", option.name, own));
    }
    return sizes;
  };
  for (const Lengths which :
       {Lengths::several, Lengths::one_and_part, Lengths::part, Lengths::block, Lengths::nothing}) {
    std::vector<std::string> sizes = lengths(which, /*also_short=*/true);
    if (!is_possible(entry, joined(request.settings, sizes))) sizes = lengths(which, false);
    if (std::count(made.choices.begin(), made.choices.end(), sizes) == 0 &&
        is_possible(entry, joined(request.settings, sizes))) {
      made.choices.push_back(std::move(sizes));
    }
  }
  for (const auto& [option, length] : beyond_most(entry, made.kernels)) {
    std::vector<std::string> sizes = lengths(Lengths::part, false);
    std::erase_if(sizes, [&](const std::string& each) { return each.starts_with(option + "="); });
    // The last block is not the first of its part.
    sizes.push_back(fmt::format("{}={}", option, part_more(length) + block_of(option)));
    if (!is_set(request, option) && is_possible(entry, joined(request.settings, sizes))) {
      made.choices.push_back(std::move(sizes));
    }
  }
  made.divided = lengths(Lengths::divided, false);
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
