#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/compile_to_machine.h"
#include "library/program_simulation.h"
#include "tilewright/kernel.h"
#include "tilewright/program.h"

// A rank that a list names, and that is not there.
namespace tilewright::checks {
namespace {

// Of two ranks, each reads the box of the one that the list names. The kernel may ask how many
// there are.
std::string said_of_rank(int number, bool checked, bool asks) {
  Kernel kernel("pick");
  const Tensor names = kernel.in("names", i32, {1}), Y = kernel.out("Y", f32, {16, 32});
  const Tensor box = kernel.symmetric("box", f32, {16, 32});
  kernel.grid(1);
  if (asks) kernel.ranks();
  const Index who = load_index(names(0));
  store(Y(all, all), load(box.at(who)(all, all)));
  Program program("pick", 2);
  const std::vector<Part> parts = {program.buffer("names", i32, {1}),
                                   program.buffer("y", f32, {16, 32}),
                                   program.buffer("box", f32, {16, 32})};
  program.on_each_rank([&](const Rank& rank) { rank.stream().launch(kernel, parts); });
  compiler::MachineOptions how;
  how.checked = checked;
  const ir::Kernel machine =
      compiler::compile_to_machine(kernel.finish(), ir::default_target(), how).kernel;
  library::ProgramTensors before = ProgramMemory(program).tensors, after;
  for (std::vector<HostTensor>& rank : before) rank[0].set_flat(0, number);
  simulator::MachineOptions options;
  options.multiprocessors = options.resident = 2;
  const simulator::MachineReport report =
      library::simulate_program(program.finish(), {machine}, before, &after, options, 1);
  if (!report.ok()) return report.faults[0].message;
  EXPECT_EQ(after[0][1], before[static_cast<std::size_t>(number)][2]);
  return "";
}

class RanksChecked : public testing::TestWithParam<bool> {};

TEST_P(RanksChecked, ARankThatIsNotThere) {
  for (const bool checked : {false, true}) {
    for (const int rank : {0, 1}) EXPECT_EQ(said_of_rank(rank, checked, GetParam()), "");
    for (const int rank : {-1, 2}) {
      const std::string said = said_of_rank(rank, checked, GetParam());
      // The kernel itself says it, and not who executes it.
      EXPECT_EQ(said.find("\n  check") != std::string::npos, checked) << said;
      if (checked) {
        EXPECT_THAT(
            said, testing::HasSubstr("box of rank " + std::to_string(rank) + ", and there are 2"));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(AsksForRanks, RanksChecked, testing::Bool());

}  // namespace
}  // namespace tilewright::checks
