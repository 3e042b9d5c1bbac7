#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "library/timing.h"
#include "library/tuning/family.h"
#include "library/tuning/rule_writer.h"

namespace tilewright::library {

struct TuneOptions {
  std::size_t keep = 8;      // variants that are measured at each point: the model's fastest
  double within = 2;         // ... of those that it says are at most so many times the fastest
  std::uint64_t seed = 0;    // of the random inputs
  std::int64_t rounds = 15;  // measurements of each
};

// What came of one variant at one point.
struct TuneEntry {
  std::string name;
  double predicted = 0;  // seconds
  double measured = 0;   // seconds, the median; 0 when it was not measured
  std::string skipped;   // why not
};

struct TuneResult {
  OptionValues options;            // with the point's sizes
  std::string standard;            // the variant that the present rules choose
  std::vector<TuneEntry> entries;  // the fastest first, by the clock, then by the model
  std::size_t slow = 0;            // skipped: too slow by the model
  std::size_t refused = 0;         // ... not for such options or sizes
  std::size_t failed = 0;          // ... the build, the launch or the result
};

// Ranks, builds and measures the variants of one kernel.
class Tuner {
 public:
  // `settings` are for all points: facts, and sizes that do not change.
  Tuner(const LibraryKernel& kernel, std::vector<std::string> settings,
        const compiler::Target& target, const TuneOptions& how);
  // Of these members, which are compared with the one of the name `standard`.
  Tuner(const LibraryKernel& kernel, std::vector<std::string> settings,
        const compiler::Target& target, const TuneOptions& how, std::vector<FamilyMember> members,
        std::string standard);
  ~Tuner();

  // The model's ranking at one point.
  TuneResult rank(const std::vector<std::string>& sizes) const;
  // How many variants the results keep, each of which is built once.
  std::size_t count_builds(const std::vector<TuneResult>& results) const;
  // Builds one variant for the GPU, from any thread; raises where that cannot be.
  using Builder = std::function<Launch(const ScheduleChoice&)>;
  // Builds them, several at once.
  void build(std::vector<TuneResult>& results, const Builder& builder,
             const std::function<void()>& progress);
  // Each variant's result is checked against that of the rules' present choice, then all are
  // measured in turn, with a cold L2 cache. cuda only.
  void measure(TuneResult& result);

  int multiprocessors() const { return multiprocessors_; }

 private:
  struct Built;
  const FamilyMember& member(const std::string& name) const;
  const Launch& standard_of(const TuneResult& result) const;
  std::vector<std::string> with(const std::vector<std::string>& sizes) const;

  const LibraryKernel& kernel_;
  const std::vector<std::string> settings_;
  const compiler::Target target_;
  const TuneOptions how_;
  int multiprocessors_;
  std::vector<FamilyMember> members_;
  std::string standard_;  // empty: what the rules choose
  std::map<std::string, std::unique_ptr<Built>> built_;
};

}  // namespace tilewright::library
