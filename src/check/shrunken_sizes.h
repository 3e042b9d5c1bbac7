#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/ir.h"
#include "tilewright/library.h"

namespace tilewright::checks {

enum class Sizes : std::uint8_t {
  // Each contraction has stages + 1 steps or more (twice as many where clusters divide it), one or
  // none; each other length a few blocks; all end in a tail; and there are two heads.
  usual,
  // More steps, or a part of one block alone, which come to code that is seldom executed.
  further,
  // Many more, small ones first: lengths that are equal or one off, that lie at the edge of a
  // window, or are several times as long, of one head and of several blocks. Of these
  // covering_sizes() takes those that come to something.
  candidates,
};

// What to run a kernel on so that its pipelines wrap around and all of its code is executed, with
// little work: for the sizes that `settings` leave open, several choices of "name=value". Needs the
// kernel as the options build it.
std::vector<std::vector<std::string>> shrunken_sizes(const LibraryKernel& kernel,
                                                     const std::vector<std::string>& settings,
                                                     const OptionValues& options,
                                                     const ir::Kernel& machine, Sizes which);

// How many multiprocessors there are for them: as many as a cluster has CTAs, or for two clusters
// where these wait for each other, and for the further sizes five.
std::int64_t shrunken_multiprocessors(const ir::Kernel& machine, bool further = false);

}  // namespace tilewright::checks
