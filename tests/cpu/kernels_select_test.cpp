#include <gtest/gtest.h>

#include <string>

#include "common/error_text.h"
#include "cpu/kernel_sets.h"

namespace tilewright::cpu {
namespace {

TEST(CpuKernelsSelect, TheBestSetIsTakenUnlessOneIsNamed) {
  const std::vector<const Kernels*> sets = sets_here();
  ASSERT_FALSE(sets.empty());
  EXPECT_EQ(&choose_kernels(nullptr), sets.back());
  EXPECT_EQ(&choose_kernels(""), sets.back());
  for (const Kernels* const set : sets) EXPECT_EQ(&choose_kernels(set->name), set);
}

TEST(CpuKernelsSelect, AnUnknownNameIsAnErrorThatListsTheOthers) {
  const std::string text = test::usage_error_of([] { choose_kernels("v5"); });
  EXPECT_NE(text.find("TILEWRIGHT_CPU_ISA is \"v5\""), std::string::npos) << text;
  EXPECT_NE(text.find("fix: use one of "), std::string::npos) << text;
  for (const Kernels* const set : sets_here()) {
    EXPECT_NE(text.find(set->name), std::string::npos) << text;
  }
}

#if defined(__x86_64__)
TEST(CpuKernelsSelect, ASetThatTheMachineLacksIsAnErrorByName) {
  for (const char* name : {"v2", "v3", "v4", "bf16", "amx"}) {
    if (find_kernels(name)) continue;
    const std::string text = test::usage_error_of([name] { choose_kernels(name); });
    EXPECT_NE(text.find(std::string("TILEWRIGHT_CPU_ISA is ") + name), std::string::npos) << text;
  }
}
#endif

// What a table lacks the IR has no function for.
TEST(CpuKernelsSelect, TablesOfAllSetsHaveTheSameEntries) {
  const std::vector<const Kernels*> sets = sets_here();
  for (const Kernels* const set : sets) {
    for (int f = 0; f < static_cast<int>(Function::count); ++f) {
      for (int lane = 0; lane < static_cast<int>(Lane::count); ++lane) {
        EXPECT_EQ(set->elementwise[f][lane] == nullptr, sets[0]->elementwise[f][lane] == nullptr);
      }
    }
  }
}

}  // namespace
}  // namespace tilewright::cpu
