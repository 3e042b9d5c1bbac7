#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "library/tuning/family.h"
#include "schedules/model.h"
#include "tilewright/library.h"

// The model of costs against times of variants that were measured
// (bench/data/measured_variants.txt).
namespace tilewright::library {
namespace {

struct Measured {
  std::string kernel, settings;
  std::vector<double> seconds, estimated;
};

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, at);) {
    part.erase(0, part.find_first_not_of(' '));
    parts.push_back(part);
  }
  return parts;
}

const target::Device& device_named(const std::string& name) {
  for (const target::Device& device : target::devices()) {
    if (device.name == name) return device;
  }
  throw std::out_of_range("no device is called " + name);
}

// What each variant of the line is estimated to take. The machine forms are made once.
Measured estimate_line(const std::string& line,
                       std::map<std::string, std::vector<FamilyMember>>& families) {
  const std::vector<std::string> fields = split(line, ';');
  Measured result{fields.at(0), fields.at(2), {}, {}};
  const LibraryKernel& kernel = find_kernel(result.kernel);
  const target::Device& device = device_named(fields.at(1));
  const OptionValues options = resolve_options(kernel, split(result.settings, ' '));
  std::string key = result.kernel;
  for (const std::string& setting : split(result.settings, ' ')) {
    const std::string name = setting.substr(0, setting.find('='));
    const bool is_of_the_form =
        name == "dim" || name == "causal" || name == "heads" || name == "kv_heads";
    if (is_of_the_form) key += " " + setting;
  }
  std::vector<FamilyMember>& family = families[key];
  if (family.empty()) family = family_of(kernel, options, "sm_90a");
  for (const std::string& entry : split(fields.at(3), ',')) {
    const std::vector<std::string> words = split(entry, ' ');
    const auto member = std::find_if(family.begin(), family.end(),
                                     [&](const FamilyMember& m) { return m.name == words[0]; });
    if (member == family.end()) continue;  // a variant that there is no more
    result.seconds.push_back(std::stod(words[1]) * 1e-6);
    result.estimated.push_back(estimate(kernel, *member, options, device).seconds);
  }
  return result;
}

std::vector<Measured> estimate_all() {
  std::ifstream file(TILEWRIGHT_SOURCE_DIR "/bench/data/measured_variants.txt");
  std::map<std::string, std::vector<FamilyMember>> families;
  std::vector<Measured> all;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line[0] != '#') all.push_back(estimate_line(line, families));
  }
  return all;
}

std::vector<double> ranks(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> rank(values.size());
  for (std::size_t i = 0; i < order.size(); ++i) rank[order[i]] = static_cast<double>(i);
  return rank;
}

double rank_correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const std::vector<double> x = ranks(a), y = ranks(b);
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += (x[i] - y[i]) * (x[i] - y[i]);
  const auto n = static_cast<double>(x.size());
  return 1 - 6 * sum / (n * (n * n - 1));
}

struct Errors {
  double mean_square = 0, near = 0;  // near: the share within 15 %
};

Errors errors_of(const std::vector<double>& estimated, const std::vector<double>& seconds) {
  Errors errors;
  const auto count = static_cast<double>(seconds.size());
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    const double error = std::log(estimated[i] / seconds[i]);
    errors.mean_square += error * error / count;
    errors.near += (std::abs(error) < std::log(1.15)) / count;
  }
  return errors;
}

// Of one size: those that rules and `tune` may choose, since no other is faster by a tenth.
Measured may_be_chosen(const Measured& all) {
  const double best = *std::min_element(all.seconds.begin(), all.seconds.end());
  Measured fast{all.kernel, all.settings, {}, {}};
  for (std::size_t i = 0; i < all.seconds.size(); ++i) {
    if (all.seconds[i] > 1.1 * best) continue;
    fast.seconds.push_back(all.seconds[i]);
    fast.estimated.push_back(all.estimated[i]);
  }
  return fast;
}

void append(Measured& to, const Measured& from) {
  to.seconds.insert(to.seconds.end(), from.seconds.begin(), from.seconds.end());
  to.estimated.insert(to.estimated.end(), from.estimated.begin(), from.estimated.end());
}

// The bounds are a little below what was reached when the model was fitted
// (docs/log/2026-11-28-estimates-of-rows.md).
TEST(MeasuredVariantsTest, TheModelRanksThemAndIsNear) {
  std::vector<double> correlations;
  std::map<std::string, Measured> of_kernel;
  Measured fast;
  for (const Measured& each : estimate_all()) {
    append(of_kernel[each.kernel], each);
    append(fast, may_be_chosen(each));
    if (each.kernel != "gemm") continue;
    ASSERT_GT(each.seconds.size(), 60u) << each.settings;
    correlations.push_back(rank_correlation(each.estimated, each.seconds));
  }
  std::sort(correlations.begin(), correlations.end());
  EXPECT_GT(correlations.front(), 0.79) << "of the variants of the worst size";
  EXPECT_GT(correlations[correlations.size() / 2], 0.92) << "of the variants of half of the sizes";
  EXPECT_GT(fast.seconds.size(), 100u);
  EXPECT_GT(errors_of(fast.estimated, fast.seconds).near, 0.93);
  for (const auto& [name, all] : of_kernel) {
    SCOPED_TRACE(name);
    const Errors errors = errors_of(all.estimated, all.seconds);
    EXPECT_GT(rank_correlation(all.estimated, all.seconds), 0.985);
    EXPECT_LT(std::sqrt(errors.mean_square), schedules::kHeldOutError);
    EXPECT_GT(errors.near, name == "gemm" ? 0.88 : 0.92);
    EXPECT_GT(all.seconds.size(), 140u);
    RecordProperty(name + "_within", std::to_string(errors.near));
  }
}

// A program's units are those of all of its kernels.
TEST(ProgramEstimateTest, HasTheAdditionsOfItsKernels) {
  const LibraryKernel& kernel = find_kernel("attention_backward");
  const OptionValues options = resolve_options(kernel, {"dim=128", "heads=2", "queries=1024"});
  const std::vector<FamilyMember> family = family_of(kernel, options, "sm_90a");
  const auto member = std::find_if(family.begin(), family.end(),
                                   [](const FamilyMember& m) { return m.name == "atomic"; });
  ASSERT_NE(member, family.end());
  EXPECT_GT(estimate(kernel, *member, options, device_named("H200 SXM")).additions, 0);
}

// Two kernels in order; in no order sums are set to zero before, and converted behind them.
TEST(ProgramEstimateTest, ALaunchBehindAnotherOneTakesLess) {
  const LibraryKernel& kernel = find_kernel("attention_backward");
  const OptionValues options = resolve_options(kernel, {"dim=128", "heads=2", "queries=1024"});
  const std::vector<FamilyMember> family = family_of(kernel, options, "sm_90a");
  target::Device as_the_first = device_named("H200 SXM");
  const target::Device& device = device_named("H200 SXM");
  as_the_first.reached.next_launch_seconds = device.reached.launch_seconds;
  const double less = device.reached.launch_seconds - device.reached.next_launch_seconds;
  EXPECT_GT(less, 1e-6);
  for (const auto& [schedule, operations] : {std::pair("ordered", 2), {"atomic", 4}}) {
    const auto member = std::find_if(family.begin(), family.end(),
                                     [&](const FamilyMember& m) { return m.name == schedule; });
    ASSERT_NE(member, family.end());
    EXPECT_NEAR(estimate(kernel, *member, options, as_the_first).seconds -
                    estimate(kernel, *member, options, device).seconds,
                (operations - 1) * less, 1e-12)
        << schedule;
  }
}

}  // namespace
}  // namespace tilewright::library
