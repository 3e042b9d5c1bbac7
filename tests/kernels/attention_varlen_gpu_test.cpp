#include <gtest/gtest.h>

#include "compiler/device_tensors.h"
#include "kernels/gpu.h"
#include "library/accuracy.h"
#include "tilewright/library.h"

namespace tilewright::kernels {
namespace {

// Kernels of the library by their options.
class AttentionVarlenGpuTest : public test::HopperTest {
 protected:
  static void check(const char* name, std::vector<std::string> settings) {
    std::string text;
    for (const std::string& setting : settings) text += setting + " ";
    SCOPED_TRACE(name + (" " + text));
    const LibraryKernel& entry = find_kernel(name);
    library::Workload workload = library::make_workload(entry, settings, {}, 3);
    const library::Reference reference =
        library::reference_of(workload, library::Executed::by_hardware);
    for (const bool automatic : {false, true}) {
      // The automatic schedule has not the registers for more.
      if (automatic && workload.options.integer("dim") > 128) continue;
      const Executable executable = compile(
          automatic ? entry.build(workload.options) : entry.schedules[0].build(workload.options),
          "cuda");
      workload.poison_outputs();
      compiler::DeviceTensors on_device(workload.tensors);
      // The second launch finds the tile counter as the first one left it.
      for (int launch = 0; launch < 2; ++launch) executable.run(on_device.refs());
      on_device.download(workload.tensors);
      const library::Comparison comparison = library::compare(workload, reference);
      EXPECT_TRUE(comparison.ok()) << (automatic ? "automatic: " : "sm90: ") << comparison.text();
    }
  }
};

TEST_F(AttentionVarlenGpuTest, SequencesOfAnyLength) {
  for (const char* dim : {"dim=64", "dim=128", "dim=192"}) {
    for (const char* mask : {"causal=false", "causal=true"}) {
      check("attention_varlen_forward", {"batch=9", "queries=1500", "heads=4", dim, mask});
      // Most have no query or one, and their keys are others.
      check("attention_varlen_forward",
            {"batch=300", "queries=200", "keys=900", "heads=2", "kv_heads=1", dim, mask});
    }
  }
  check("attention_varlen_forward", {"batch=1", "queries=517", "heads=2", "dim=128"});
  check("attention_varlen_forward", {"batch=5", "queries=700", "keys=0", "heads=2"});
}

TEST_F(AttentionVarlenGpuTest, WindowsCapsAndSinks) {
  for (const char* dim : {"dim=64", "dim=128"}) {
    check("attention_varlen_forward",
          {"batch=5", "queries=1200", "heads=4", dim, "causal=true", "window=90"});
    check("attention_varlen_forward",
          {"batch=5", "queries=900", "heads=4", dim, "softcap=5", "dtype=f16"});
    check("attention_varlen_forward",
          {"batch=5", "queries=900", "keys=300", "heads=4", dim, "causal=true", "sinks=true"});
  }
}

TEST_F(AttentionVarlenGpuTest, CapsAndSinksOfABatch) {
  for (const char* dim : {"dim=64", "dim=128", "dim=256"}) {
    check("attention_forward", {"queries=300", "keys=517", "heads=4", dim, "softcap=5"});
    check("attention_forward",
          {"queries=517", "keys=300", "heads=4", dim, "causal=true", "sinks=true"});
  }
}

}  // namespace
}  // namespace tilewright::kernels
