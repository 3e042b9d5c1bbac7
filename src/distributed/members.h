#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "distributed/links.h"
#include "distributed/regions.h"
#include "support/file_descriptor.h"
#include "tilewright/distributed.h"

namespace tilewright {

// What a Group stands for: operations of all ranks, over the links between them.
class Group::Members {
 public:
  Members(distributed::Meeting meeting, int rank, std::vector<FileDescriptor> connections,
          const GroupOptions& options);

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(links_.members().size()); }
  const std::vector<distributed::Member>& list() const { return links_.members(); }
  bool is_local(int rank) const;
  bool shares_memory(int rank) const;  // they are of one node
  // Of each rank, from 0 on in the order of the ranks.
  const std::vector<int>& nodes() const { return nodes_; }
  distributed::Links& links() { return links_; }
  distributed::Regions& regions() { return regions_; }
  std::chrono::milliseconds patience() const { return patience_; }
  // Of what comes behind the meeting, which may take longer than a test wants to wait for nobody.
  void set_patience(std::chrono::milliseconds patience) { patience_ = patience; }

  // What each rank gives, and a descriptor of each of this node that it may then use, if `attached`
  // is one.
  std::vector<distributed::Frame> exchange(std::string_view own, std::string_view name,
                                           int attached = -1);

 private:
  std::vector<distributed::Frame> try_exchange(std::string_view own, std::string_view name,
                                               int attached);
  distributed::Frame receive(int from, std::string_view name, distributed::Clock::time_point until);
  [[noreturn]] void raise_not_come(int first, std::string_view name);

  const int rank_;
  std::chrono::milliseconds patience_;
  distributed::Links links_;
  distributed::Regions regions_;
  const std::vector<int> nodes_;
  std::optional<Error> failure_;  // behind it the ranks no longer do the same
};

}  // namespace tilewright
