#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "compiler/device_tensors.h"
#include "kernels/gpu.h"
#include "kernels/paged_alone.h"
#include "kernels/paged_runs.h"
#include "library/accuracy.h"
#include "tilewright/library_executable.h"

namespace tilewright {
namespace {

class AttentionPagedGpuTest : public test::HopperTest {
 protected:
  static void run(library::Workload& work) {
    compiler::DeviceTensors on_device(work.tensors);
    compile(*work.kernel, work.options, "cuda").run(on_device.refs());
    on_device.download(work.tensors);
  }
};

// fixed_split_size, by every schedule that divides keys.
TEST_F(AttentionPagedGpuTest, ASequenceAloneHasTheBitsThatItHasAmongOthers) {
  const std::vector<std::string> sizes = {"heads=16",    "kv_heads=4", "max_pages=40",
                                          "pages=280",   "batch=7",    "lengths_q=1,5,0,40,1,1,2",
                                          "causal=true", "sinks=true", "fixed_split_size=128"};
  for (const char* kernel : {"attention_paged", "attention_paged_fp8", "attention_paged_mla"}) {
    for (const char* schedule : {"tile", "sm90_split", "sm90_planned"}) {
      SCOPED_TRACE(std::string(kernel) + " " + schedule);
      std::vector<std::string> settings = sizes;
      settings.emplace_back(std::string("schedule=") + schedule);
      if (std::string(kernel) == "attention_paged_mla") std::erase(settings, "kv_heads=4");
      library::Workload batch = library::make_workload(find_kernel(kernel), settings, {}, 3);
      run(batch);
      const library::Comparison comparison =
          library::compare(batch, library::reference_of(batch, library::Executed::by_hardware));
      EXPECT_TRUE(comparison.ok()) << comparison.text();
      for (const std::int64_t b : {0, 1, 3, 5}) {
        library::Workload own = test::alone(batch, b, 100 * b);
        run(own);
        EXPECT_TRUE(test::same_bits(batch, b, own)) << "sequence " << b;
      }
    }
  }
}

// Pages that follow each other are copied together, others one by one. Plans leave some of these
// sequences whole.
TEST_F(AttentionPagedGpuTest, NeighbouringPagesHaveTheBitsOfOthers) {
  struct Form {
    const char* kernel;
    const char* schedule;
  };
  // Of a kernel's forms one reference: it takes longer than all else here.
  std::map<std::string, library::Reference> references;
  for (const Form& form :
       {Form{"attention_paged", "sm90"}, Form{"attention_paged", "sm90_planned"},
        Form{"attention_paged", "sm90_chunks"}, Form{"attention_paged_fp8", "sm90_planned"},
        Form{"attention_paged_mla", "sm90_planned"}}) {
    SCOPED_TRACE(std::string(form.kernel) + " " + form.schedule);
    std::vector<std::string> settings = {"heads=8",
                                         "kv_heads=2",
                                         "page=16",
                                         "max_pages=70",
                                         "pages=420",
                                         "batch=6",
                                         "causal=true",
                                         "lengths_q=1,20,1,0,1,70",
                                         "window=700",
                                         "sinks=true",
                                         std::string("schedule=") + form.schedule};
    if (std::string(form.kernel) == "attention_paged_mla") std::erase(settings, "kv_heads=2");
    library::Workload shuffled = library::make_workload(find_kernel(form.kernel), settings, {}, 3);
    library::Workload in_runs = test::in_runs(shuffled, 4);
    run(shuffled);
    run(in_runs);
    const auto [at, is_new] = references.try_emplace(form.kernel);
    if (is_new) at->second = library::reference_of(shuffled, library::Executed::by_hardware);
    const library::Comparison comparison = library::compare(shuffled, at->second);
    EXPECT_TRUE(comparison.ok()) << comparison.text();
    for (const std::size_t i : test::outputs_of(shuffled)) {
      EXPECT_EQ(in_runs.tensors[i], shuffled.tensors[i]) << i;
    }
  }
}

}  // namespace
}  // namespace tilewright
