#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "check/sized_kernels.h"
#include "ir/ir.h"
#include "ir/program.h"
#include "tilewright/library.h"

namespace tilewright::checks {

enum class Sizes : std::uint8_t {
  // Each contraction has stages + 1 steps or more (twice as many where clusters divide it), one or
  // none; each other length a few blocks; all end in a tail; and there are two heads.
  usual,
  // More steps, or a part of one block alone, which come to code that is seldom executed.
  further,
  // Of gradients, few tiles of many steps each, which multiprocessors share that would be idle.
  shared,
  // Many more, small ones first: lengths that are equal or one off, that lie at the edge of a
  // window, or are several times as long, of one head and of several blocks. Of these
  // covering() takes those (coverage.h) that come to something.
  candidates,
};

// What to run a kernel on so that its pipelines wrap around and all of its code is executed, with
// little work: for the sizes that `settings` leave open, several choices of "name=value". Needs the
// kernel as the options build it.
std::vector<std::vector<std::string>> shrunken_sizes(const LibraryKernel& kernel,
                                                     const std::vector<std::string>& settings,
                                                     const OptionValues& options,
                                                     const ir::Kernel& machine, Sizes which);

// The same for several kernels: the pipelines of all wrap around. What a kernel hands to the next
// has no tensor of the library's entry, and is as long as its axes say.
std::vector<std::vector<std::string>> shrunken_sizes(const LibraryKernel& kernel,
                                                     const std::vector<std::string>& settings,
                                                     const OptionValues& options,
                                                     const std::vector<SizedKernel>& launched,
                                                     Sizes which);

// How many multiprocessors there are for them: as many as a cluster has CTAs, or for two clusters
// where these wait for other ranks or for each other, and for each other in the further sizes five.
std::int64_t shrunken_multiprocessors(const ir::Kernel& machine, bool further = false);
// How many execute one cluster of any of a program's kernels.
std::int64_t largest_cluster(const std::vector<ir::Kernel>& machine);
// For a program: those of the kernel that wants most. Where its sizes depend on their number,
// `usual` as well: on few of them such a program divides nothing. At last those of one cluster,
// which takes all numbers from a word in their order.
std::vector<std::int64_t> shrunken_multiprocessors(const ir::Program& program,
                                                   const std::vector<ir::Kernel>& machine,
                                                   std::int64_t usual);

}  // namespace tilewright::checks
