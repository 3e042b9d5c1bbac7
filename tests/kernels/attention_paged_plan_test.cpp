#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "common/error_text.h"
#include "kernels/attention_paged_parameters.h"
#include "kernels/one_multiprocessor.h"
#include "library/accuracy.h"
#include "tilewright/compile.h"
#include "tilewright/host_tensor.h"
#include "tilewright/kernels/attention_paged.h"
#include "tilewright/library_executable.h"

// attention_paged_plan, and attention that is given its plan.
namespace tilewright {
namespace {

using testing::AllOf;
using testing::HasSubstr;

using PlanSettings = std::vector<std::string>;

const PlanSettings kPlannedSizes = {
    "dim=64",     "heads=6",    "kv_heads=2", "max_pages=5", "lengths_q=1,30,0,2",
    "sinks=true", "causal=true"};

void run_planned(library::Workload& work, const char* target) {
  std::vector<TensorRef> tensors;
  for (HostTensor& tensor : work.tensors) tensors.push_back(ref(tensor));
  compile(*work.kernel, work.options, target).run(tensors);
}

void expect_right_planned(const library::Workload& work) {
  const library::Comparison comparison = library::compare(work, library::reference_of(work));
  EXPECT_TRUE(comparison.ok()) << comparison.text();
}

library::Workload planned_workload(const char* kernel, PlanSettings settings) {
  settings.emplace_back("planned=true");
  return library::make_workload(find_kernel(kernel), settings, {}, 5);
}

TEST(AttentionPagedPlanTest, AgreesWithPlainLoops) {
  for (const char* target : {"interpreter", "cpu", "sim:sm_90a"}) {
    for (const PlanSettings& settings :
         {PlanSettings{"batch=300", "heads=16", "kv_heads=2", "window=100"},
          {"lengths_q=1,40,0,30", "heads=70", "latent=true", "multiprocessors=20"},
          {"batch=5", "heads=6", "kv_heads=2", "fixed_split_size=128"}}) {
      SCOPED_TRACE(std::string(target) + " " + settings[0]);
      library::Workload work =
          library::make_workload(find_kernel("attention_paged_plan"), settings, {}, 5);
      run_planned(work, target);
      expect_right_planned(work);
    }
  }
}

// By which a schedule looks for an item's sequence. Sequences without items have the number of the
// one behind them, and are not found.
TEST(AttentionPagedPlanTest, FindsTheLastNumberThatIsNotPast) {
  Kernel kernel("search");
  const Dim count = kernel.dim("count", at_least(1)), most = kernel.dim("most");
  const Tensor numbers = kernel.in("numbers", i32, {count});
  const Tensor found = kernel.inout("found", i32, {most});
  const Tensor halves = kernel.inout("halves", i32, {most});
  kernel.ctas(1);
  kernel.roles({role("search", warps(1), registers(32), [&] {
    for (Index wanted : range(most)) {
      const Index by_halves = kernels::last_not_past_by_halves(numbers, count, wanted);
      atomic_add(halves(wanted), by_halves);
      atomic_add(found(wanted), kernels::last_not_past(numbers, count, wanted));
    }
  })});
  const auto search = compile(kernel, "sim:sm_90a");
  for (const int size : {1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 21, 64, 65, 70}) {
    std::vector<double> ascending{0};
    for (int i = 1; i < size; ++i) ascending.push_back(ascending.back() + i * i % 3);
    const int wanted = static_cast<int>(ascending.back()) + 3;
    HostTensor of = HostTensor::from_values(i32, {size}, ascending);
    HostTensor said = HostTensor::zeros(i32, {wanted});
    HostTensor halves = said;
    search.run({ref(of), ref(said), ref(halves)});
    for (int i = 0; i < wanted; ++i) {
      const auto past = std::upper_bound(ascending.begin(), ascending.end(), i);
      for (const HostTensor* each : {&said, &halves}) {
        ASSERT_EQ(each->flat(i), past - ascending.begin() - 1) << i << " in " << size;
      }
    }
  }
}

// Sequences of one length, on a GPU of 132 multiprocessors: whole where parts would end no earlier.
TEST(AttentionPagedPlanTest, DividesNothingInVain) {
  struct Alike {
    std::int64_t batch;
    double keys;
    PlanSettings settings;
    double parts;
  };
  const PlanSettings latent = {"heads=128", "latent=true"};
  const PlanSettings shared = {"heads=32", "kv_heads=8"};
  for (const Alike& alike : {Alike{64, 8192, latent, 1},
                             {128, 4096, latent, 1},
                             {16, 8192, latent, 4},
                             {48, 8192, latent, 4},
                             {32, 4096, shared, 1},
                             {64, 4096, shared, 1},
                             {16, 4096, shared, 2},
                             {1, 262144, shared, 33},
                             {1, 262144, {"heads=32", "kv_heads=8", "window=128"}, 4}}) {
    PlanSettings settings = alike.settings;
    settings.push_back("batch=" + std::to_string(alike.batch));
    library::Workload work =
        library::make_workload(find_kernel("attention_paged_plan"), settings, {}, 5);
    for (std::int64_t b = 0; b < alike.batch; ++b) work.tensors[1].set_flat(b, alike.keys);
    run_planned(work, "interpreter");
    expect_right_planned(work);
    EXPECT_EQ(work.tensors[2].flat(alike.batch), static_cast<double>(alike.batch) * alike.parts)
        << alike.batch << " x " << alike.keys << " " << settings[0];
  }
}

// Of 132 multiprocessors a plan has more parts than one of them has memory for, which is 10.
// Plans that are stated are of longer sequences, of which a table with more room tells.
TEST(AttentionPagedPlanTest, APlanOfALargerGpuFits) {
  const std::vector<double> own;
  for (const auto& [split, stated] :
       {std::pair{"fixed_split_size=0", own},
        {"fixed_split_size=64", std::vector<double>{0, 20, 60, 60, 80}},
        // The second sequence has two tiles, and the room that the first leaves is odd.
        {"fixed_split_size=0", std::vector<double>{0, 1, 21, 21, 29}}}) {
    SCOPED_TRACE(split);
    PlanSettings settings = kPlannedSizes;
    std::erase(settings, "max_pages=5");
    settings.insert(settings.end(), {"max_pages=40", "pages=160", split});
    library::ProgramWorkload work;
    work.workload = planned_workload("attention_paged", settings);
    if (!stated.empty()) work.workload.tensors.back() = HostTensor::from_values(i32, {5}, stated);
    test::simulate_on_one_multiprocessor(work);
    expect_right_planned(work.workload);
  }
}

struct Planned {
  const char* target;
  const char* kernel;
  PlanSettings settings;
};
std::vector<Planned> planned_forms() {
  PlanSettings fixed = kPlannedSizes;
  fixed.emplace_back("fixed_split_size=64");
  return {{"interpreter", "attention_paged", kPlannedSizes},
          {"cpu", "attention_paged", kPlannedSizes},
          {"sim:sm_90a", "attention_paged", kPlannedSizes},
          {"sim:sm_90a", "attention_paged", fixed},
          {"sim:sm_90a",
           "attention_paged_mla",
           {"dim=192", "dim_v=128", "heads=6", "max_pages=5", "lengths_q=1,30,0,2"}}};
}

// Rules choose the schedule that takes the plan. By one of other lengths results are right too.
TEST(AttentionPagedPlanTest, AttentionTakesAPlanOfAnyLengths) {
  for (const Planned& form : planned_forms()) {
    SCOPED_TRACE(std::string(form.kernel) + " on " + form.target);
    library::Workload work = planned_workload(form.kernel, form.settings);
    run_planned(work, form.target);
    expect_right_planned(work);
    // Of no keys: a part for each tile, of which the second sequence has one, two or three.
    HostTensor& plan = work.tensors.back();
    const auto items = [&](std::int64_t b) { return plan.flat(b + 1) - plan.flat(b); };
    const double tiles = std::string(form.kernel) == "attention_paged_mla" ? 4 : 2;
    ASSERT_GE(items(0), 1);
    plan = HostTensor::from_values(i32, {5}, {0, 1, 1 + tiles, 1 + tiles, 2 + tiles});
    work.poison_outputs();
    run_planned(work, form.target);
    expect_right_planned(work);
  }
}

TEST(AttentionPagedPlanTest, APlanOfAnotherBatchIsNamed) {
  for (const Planned& form : planned_forms()) {
    SCOPED_TRACE(std::string(form.kernel) + " on " + form.target);
    library::Workload work = planned_workload(form.kernel, form.settings);
    std::vector<double> right;
    for (std::int64_t i = 0; i < 5; ++i) right.push_back(work.tensors.back().flat(i));
    work.tensors.back() = HostTensor::from_values(i32, {4}, {0, 1, 2, 3});
    EXPECT_THAT(test::usage_error_of([&] { run_planned(work, form.target); }),
                HasSubstr("the dim batch is 4 by axis 0 of cu_seqlens_q, but 3 by axis 0 of plan"));
    if (std::string(form.target) != "sim:sm_90a") continue;
    // Of as many sequences with other queries, of none, and with an item more, which is no part of
    // the second sequence's tiles.
    const std::vector<std::vector<double>> others = {
        {0, 1, 2, 3, 4},
        {0, 0, 0, 0, 0},
        {right[0], right[1], right[2] + 1, right[3] + 1, right[4] + 1}};
    for (const std::vector<double>& other : others) {
      work.tensors.back() = HostTensor::from_values(i32, {5}, other);
      std::string text;
      try {
        run_planned(work, form.target);
      } catch (const Error& error) {
        text = test::without_source_lines(error.what());
      }
      EXPECT_THAT(text, AllOf(HasSubstr("kernels/attention_paged_plan.cpp"),
                              HasSubstr("index 5 on axis 0 of plan, which has 5")));
    }
  }
}

// From C++: one plan for two layers.
TEST(AttentionPagedPlanTest, OnePlanServesSeveralLayers) {
  const char* const target = "sim:sm_90a";
  library::Workload first = planned_workload("attention_paged", kPlannedSizes);
  library::Workload second = first;
  second.tensors[0] = HostTensor::random_normal(bf16, first.tensors[0].shape(), 8);
  kernels::PagedAttention a;
  a.heads = 6;
  a.kv_heads = 2;
  a.dim = a.dim_v = 64;
  HostTensor plan = HostTensor::poisoned(i32, {5});
  compile(kernels::attention_paged_plan(a), target)
      .run({ref(first.tensors[1]), ref(first.tensors[2]), ref(plan)});
  for (library::Workload* layer : {&first, &second}) {
    layer->tensors.back() = plan;
    run_planned(*layer, target);
  }
  expect_right_planned(first);
  expect_right_planned(second);
}

TEST(AttentionPagedPlanTest, WhatItRefuses) {
  kernels::PagedAttention a;
  EXPECT_THAT(test::usage_error_of([&] { kernels::attention_paged_plan(a, 0); }),
              HasSubstr("multiprocessors is 0"));
  for (const int size : {-64, 32}) {
    a.fixed_split_size = size;
    EXPECT_THAT(test::usage_error_of([&] { kernels::attention_paged_plan(a); }),
                HasSubstr("fixed_split_size is " + std::to_string(size)));
  }
}

}  // namespace
}  // namespace tilewright
