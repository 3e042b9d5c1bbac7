#include <gtest/gtest.h>

#include "kernels/moved_pages.h"
#include "tilewright/compile.h"

// Copies that end before the tensor does, some before they begin: ragged_map_gpu_test.cpp on the
// virtual GPU.
namespace tilewright::test {
namespace {

TEST(RaggedMapTest, CopiesMoveWhatExists) {
  for (const To to : {To::stored, To::added}) {
    const Executable executable = compile(move_page(to), "sim:sm_90a");
    for (const Moved& moved : moved_pages()) {
      std::vector<HostTensor> tensors = tensors_of(moved);
      const std::vector<HostTensor> given = tensors;
      executable.run({ref(tensors[0]), ref(tensors[1]), ref(tensors[2])});
      expect_moved(given, tensors, to, moved);
    }
  }
}

}  // namespace
}  // namespace tilewright::test
