#include <gtest/gtest.h>

#include <string>

#include "simulator/litmus.h"

// The field of a descriptor that says how far a pattern of the swizzle begins off its place. All
// patterns begin at aligned addresses here: any other value would move every row.
namespace tilewright::simulator {
namespace {

TEST(BaseOffset, IsZero) {
  const std::string begin = "    fill %33, %28\n    wgmma_fence %32, %33\n",
                    end =
                        "    wgmma_commit\n"
                        "    wgmma_wait %33 {count = 0}\n";
  const std::string good = litmus(role("math", 0, 4, begin + product() + end));
  expect_clean(good);
  // Above the address, which has 14 bits, the field begins at bit 35.
  for (int field = 1; field < 8; ++field) {
    const std::int64_t bits = std::int64_t{2097216} | std::int64_t{field} << 35;
    expect_fault(changed(good, "descriptor_b = 2097216", "descriptor_b = " + std::to_string(bits)),
                 {"wgmma", "wgmma_rs", "", {}});
  }
}

}  // namespace
}  // namespace tilewright::simulator
