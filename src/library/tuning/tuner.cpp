#include "library/tuning/tuner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "library/accuracy.h"
#include "library/schedule_choice.h"
#include "library/timing.h"
#include "runtime/device.h"
#include "support/diagnostic.h"
#include "support/parallel.h"

namespace tilewright::library {
namespace {

constexpr std::int64_t kComparedElements = 1 << 18;  // of each output, evenly spread

// Normal numbers repeat after so many: making them takes longer than all measurements otherwise. A
// prime, so that no row is like the one before.
constexpr std::int64_t kPeriod = 1048573;

HostTensor repeated_normal(DType dtype, const std::vector<std::int64_t>& shape,
                           std::uint64_t seed) {
  HostTensor tensor = HostTensor::zeros(dtype, shape);
  const HostTensor period =
      HostTensor::random_normal(dtype, {std::min(kPeriod, tensor.elements())}, seed);
  for (std::size_t at = 0; at < tensor.size_bytes(); at += period.size_bytes()) {
    std::copy_n(period.data(), std::min(period.size_bytes(), tensor.size_bytes() - at),
                tensor.data() + at);
  }
  return tensor;
}

std::vector<HostTensor> make_tensors(const LibraryKernel& kernel, const OptionValues& options,
                                     std::uint64_t seed) {
  std::vector<HostTensor> tensors;
  for (const LibraryTensor* tensor : tensors_of(kernel, options)) {
    const DType dtype = dtype_of(*tensor, options);
    const std::vector<std::int64_t> shape = shape_of(*tensor, options);
    tensors.push_back(!tensor->is_input() ? HostTensor::poisoned(dtype, shape)
                      : tensor->values    ? tensor->values(options, seed, tensors)
                                          : repeated_normal(dtype, shape, seed + tensors.size()));
  }
  return tensors;
}

std::vector<double> looked_at(const HostTensor& tensor) {
  const std::int64_t count = tensor.elements();
  const std::int64_t step = std::max<std::int64_t>(1, count / kComparedElements) | 1;
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; i += step) values.push_back(tensor.flat(i));
  return values;
}

// Of the elements that are looked at, one row: the largest error as a share of what rounding
// explains of both. Infinite where `got` alone is no number.
double difference(const HostTensor& got, const HostTensor& wanted) {
  const std::vector<double> have = looked_at(got), want = looked_at(wanted);
  const std::vector<std::int64_t> shape = {static_cast<std::int64_t>(want.size())};
  OutputComparison result{
      {}, errors_of(have, want, shape), allowed_errors({}, wanted.dtype(), shape), {}};
  // What is rounded on the way, in each of both, reaches some elements several times over.
  constexpr double kRoundings = 4;
  return result.share() / kRoundings;
}

bool is_measurable(const TuneEntry& entry) { return entry.skipped.empty(); }

// What variants compute of the same inputs, against what one of them did.
class ResultCheck {
 public:
  ResultCheck(const std::vector<const LibraryTensor*>& parameters, std::vector<HostTensor> tensors)
      : tensors_(std::move(tensors)), on_device_(tensors_) {
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      if (parameters[i]->is_output) outputs_.push_back(i);
      if (parameters[i]->is_inout) given_.emplace(i, tensors_[i]);
    }
  }
  const compiler::DeviceTensors& on_device() const { return on_device_; }

  void compute(const Launch& launch) {
    for (const std::size_t i : outputs_) {
      const auto own = given_.find(i);
      own == given_.end() ? on_device_.poison(i) : on_device_.upload(i, own->second);
    }
    launch(on_device_.refs());
    for (const std::size_t i : outputs_) on_device_.download(i, tensors_[i]);
  }
  // The last result is what others are held against; false where it has elements that are no
  // numbers.
  bool keep() {
    wanted_ = tensors_;
    return std::none_of(outputs_.begin(), outputs_.end(), [this](std::size_t output) {
      const std::vector<double> values = looked_at(tensors_[output]);
      return std::any_of(values.begin(), values.end(), [](double x) { return std::isnan(x); });
    });
  }
  double worst() const {
    double largest = 0;
    for (const std::size_t i : outputs_) {
      largest = std::max(largest, difference(tensors_[i], wanted_[i]));
    }
    return largest;
  }

 private:
  std::vector<HostTensor> tensors_, wanted_;
  const compiler::DeviceTensors on_device_;
  std::vector<std::size_t> outputs_;
  std::map<std::size_t, HostTensor> given_;  // of outputs that are inputs too
};

}  // namespace

struct Tuner::Built {
  Launch launch;  // null where it failed
  std::string failure;
};

Tuner::~Tuner() = default;

Tuner::Tuner(const LibraryKernel& kernel, std::vector<std::string> settings,
             const compiler::Target& target, const TuneOptions& how)
    : Tuner(kernel, settings, target, how,
            family_of(kernel, resolve_options(kernel, settings), target.arch), "") {}

Tuner::Tuner(const LibraryKernel& kernel, std::vector<std::string> settings,
             const compiler::Target& target, const TuneOptions& how,
             std::vector<FamilyMember> members, std::string standard)
    : kernel_(kernel),
      settings_(std::move(settings)),
      target_(target),
      how_(how),
      members_(std::move(members)),
      standard_(std::move(standard)) {
  multiprocessors_ = target.kind == compiler::Target::Kind::cuda
                         ? runtime::Device::get(0).info().multiprocessors
                         : multiprocessors_of(target.arch);
}

std::vector<std::string> Tuner::with(const std::vector<std::string>& sizes) const {
  std::vector<std::string> all = settings_;
  all.insert(all.end(), sizes.begin(), sizes.end());
  return all;
}

const FamilyMember& Tuner::member(const std::string& name) const {
  return *std::find_if(members_.begin(), members_.end(),
                       [&](const FamilyMember& each) { return each.name == name; });
}

TuneResult Tuner::rank(const std::vector<std::string>& sizes) const {
  TuneResult result;
  result.options = resolve_options(kernel_, with(sizes));
  ScheduleOptions where;
  where.multiprocessors = multiprocessors_;
  result.standard = standard_.empty()
                        ? name_of(choose_schedule(kernel_, result.options, target_.arch, where))
                        : standard_;
  double fastest = std::numeric_limits<double>::infinity();
  for (const FamilyMember& each : members_) {
    TuneEntry entry;
    entry.name = each.name;
    entry.predicted = std::numeric_limits<double>::infinity();
    try {
      entry.predicted = estimate(kernel_, each, result.options, multiprocessors_).seconds;
      fastest = std::min(fastest, entry.predicted);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::internal) throw;
      entry.skipped = error.message();
      ++result.refused;
    }
    result.entries.push_back(std::move(entry));
  }
  std::stable_sort(
      result.entries.begin(), result.entries.end(),
      [](const TuneEntry& a, const TuneEntry& b) { return a.predicted < b.predicted; });
  std::size_t kept = 0;
  for (TuneEntry& entry : result.entries) {
    if (!is_measurable(entry)) continue;
    if (entry.name == result.standard) continue;  // what the others are compared with
    if (kept < how_.keep && entry.predicted <= how_.within * fastest) {
      ++kept;
      continue;
    }
    entry.skipped = fmt::format("{:.2f} times the fastest by the model", entry.predicted / fastest);
    ++result.slow;
  }
  return result;
}

std::size_t Tuner::count_builds(const std::vector<TuneResult>& results) const {
  std::set<std::string> names;
  for (const TuneResult& result : results) {
    for (const TuneEntry& entry : result.entries) {
      if (is_measurable(entry) && built_.count(entry.name) == 0) names.insert(entry.name);
    }
  }
  return names.size();
}

void Tuner::build(std::vector<TuneResult>& results, const Builder& builder,
                  const std::function<void()>& progress) {
  std::vector<std::string> names;
  for (const TuneResult& result : results) {
    for (const TuneEntry& entry : result.entries) {
      if (!is_measurable(entry)) continue;
      const auto [found, is_new] = built_.try_emplace(entry.name, nullptr);
      if (!is_new) continue;
      found->second = std::make_unique<Built>();
      names.push_back(entry.name);
    }
  }
  in_parallel(thread_count(0), names.size(), [&](std::size_t i, unsigned) {
    Built& built = *built_.at(names[i]);
    try {
      built.launch = builder(member(names[i]).choice);
    } catch (const Error& error) {
      built.failure = error.message();
    }
    progress();
  });
  for (TuneResult& result : results) {
    for (TuneEntry& entry : result.entries) {
      if (!is_measurable(entry)) continue;
      entry.skipped = built_.at(entry.name)->failure;
      if (!is_measurable(entry)) ++result.failed;
    }
  }
}

const Launch& Tuner::standard_of(const TuneResult& result) const {
  const auto standard = built_.find(result.standard);
  if (standard != built_.end() && standard->second->launch) {
    return standard->second->launch;
  }
  Diagnostic(
      {}, fmt::format("{}: {}, which the rules choose here, cannot be built: {}", kernel_.name,
                      result.standard, standard == built_.end() ? "" : standard->second->failure))
      .fix("set schedule to another")
      .raise();
}

void Tuner::measure(TuneResult& result) {
  ResultCheck results(tensors_of(kernel_, result.options),
                      make_tensors(kernel_, result.options, how_.seed));
  results.compute(standard_of(result));
  if (!results.keep()) {
    Diagnostic({},
               fmt::format("{}: {}, which the rules choose here, leaves elements that are no "
                           "numbers",
                           kernel_.name, result.standard),
               ErrorKind::result)
        .fix(fmt::format("see where: tilewright run {} --check", kernel_.name))
        .raise();
  }
  std::vector<TuneEntry*> measured;
  std::vector<Launch> launches;
  for (TuneEntry& entry : result.entries) {
    if (!is_measurable(entry)) continue;
    const Launch& launch = built_.at(entry.name)->launch;
    results.compute(launch);
    if (const double share = results.worst(); !(share <= 1)) {
      entry.skipped = fmt::format("differs from {} by {:.3g} times what rounding explains",
                                  result.standard, share);
      ++result.failed;
      continue;
    }
    measured.push_back(&entry);
    launches.push_back(launch);
  }
  const std::vector<Timing> timings = time_in_turn(launches, results.on_device(), how_.rounds);
  for (std::size_t i = 0; i < measured.size(); ++i) measured[i]->measured = timings[i].median();
  std::stable_sort(result.entries.begin(), result.entries.end(),
                   [](const TuneEntry& a, const TuneEntry& b) {
                     if ((a.measured > 0) != (b.measured > 0)) return a.measured > 0;
                     return a.measured < b.measured;
                   });
}

}  // namespace tilewright::library
