#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "common/error_text.h"
#include "common/temporary_folder.h"
#include "library/decided_options.h"
#include "library/tensor_file.h"
#include "library/workload.h"
#include "tilewright/error.h"
#include "tilewright/library.h"

// Lengths of packed sequences as an option of a kernel.
namespace tilewright {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Settings = std::vector<std::string>;

const LibraryKernel& packed() { return find_kernel("attention_varlen_forward"); }

std::vector<std::int64_t> numbers_of(const HostTensor& tensor) {
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    numbers.push_back(static_cast<std::int64_t>(tensor.flat(i)));
  }
  return numbers;
}

std::string refusal_of(const Settings& settings, const std::map<std::string, std::int64_t>& sizes) {
  try {
    resolve_options(packed(), settings, sizes);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return test::without_source_lines(error.what());
  }
  ADD_FAILURE() << "nothing was raised";
  return {};
}

TEST(Lengths, DecideCountAndSum) {
  const OptionValues options = resolve_options(packed(), {"lengths_q=128,77,0"});
  EXPECT_THAT(options.lengths("lengths_q"), ElementsAre(128, 77, 0));
  EXPECT_EQ(options.integer("batch"), 3);
  EXPECT_EQ(options.integer("queries"), 205);
  // K's are Q's where nothing is said of them.
  EXPECT_THAT(options.lengths("lengths_k"), ElementsAre(128, 77, 0));
  EXPECT_EQ(options.integer("keys"), 205);
}

TEST(Lengths, OfQueriesAndOfKeysMayDiffer) {
  const OptionValues options =
      resolve_options(packed(), {"lengths_k=5,0,9", "lengths_q=128,77,0", "batch=3"});
  EXPECT_EQ(options.integer("queries"), 205);
  EXPECT_EQ(options.integer("keys"), 14);
  const OptionValues keys = resolve_options(packed(), {"lengths_q=3,4", "keys=100"});
  EXPECT_EQ(keys.integer("keys"), 100);
  EXPECT_THAT(keys.lengths("lengths_k"), ElementsAre());
}

TEST(Lengths, NoneAreTheStandard) {
  const OptionValues options = resolve_options(packed(), {});
  EXPECT_THAT(options.lengths("lengths_q"), ElementsAre());
  EXPECT_EQ(options.integer("batch"), 4);
  EXPECT_EQ(options.integer("queries"), 1024);
}

TEST(Lengths, BadListsAreNamed) {
  EXPECT_THAT(refusal_of({"lengths_q=128,x,0"}, {}),
              HasSubstr("lengths_q = '128,x,0': 'x' is no length"));
  EXPECT_THAT(refusal_of({"lengths_q=128,-7"}, {}), HasSubstr("'-7' is no length"));
  EXPECT_THAT(refusal_of({"lengths_q=1,,2"}, {}), HasSubstr("'' is no length"));
  EXPECT_THAT(refusal_of({"lengths_q=1,"}, {}), HasSubstr("'' is no length"));
  EXPECT_THAT(refusal_of({"lengths_q=,1"}, {}), HasSubstr("'' is no length"));
  EXPECT_THAT(refusal_of({"lengths_q=1.5"}, {}), HasSubstr("set lengths_q=128,77,0"));
  EXPECT_THAT(refusal_of({"lengths_q=99999999999999999999"}, {}),
              HasSubstr("'99999999999999999999' is no length"));
  EXPECT_THAT(refusal_of({"lengths_q=2000000000,2000000000"}, {}),
              HasSubstr("'2000000000,2000000000': the sum is more than "));
  EXPECT_THAT(refusal_of({"lengths_q=2000000000,2000000000"}, {}), HasSubstr("fix: set fewer or"));
}

TEST(Lengths, ThatDisagreeAreNamedWithBothValues) {
  EXPECT_THAT(refusal_of({"batch=2", "lengths_q=1,2,3"}, {}),
              HasSubstr("batch is 2 by what is set, and 3 by lengths_q = '1,2,3', which has so "
                        "many lengths"));
  EXPECT_THAT(refusal_of({"queries=5", "lengths_q=1,2,3"}, {}),
              HasSubstr("queries is 5 by what is set, and 6 by lengths_q = '1,2,3', which sums "
                        "to so much"));
  EXPECT_THAT(refusal_of({"lengths_q=1,2,3", "lengths_k=1,2"}, {}),
              HasSubstr("batch is 3 by lengths_q = '1,2,3', and 2 by lengths_k = '1,2'"));
  EXPECT_THAT(refusal_of({"lengths_q=1,2,3"}, {{"queries", 7}}),
              HasSubstr("queries is 7 by a file, and 6"));
}

TEST(Lengths, AreThoseOfTheTensors) {
  for (const char* name : {"attention_varlen_forward", "attention_varlen_backward"}) {
    const library::Workload workload = library::make_workload(
        find_kernel(name), {"lengths_q=12,0,7", "lengths_k=1,20,2", "heads=1"}, {}, 0);
    EXPECT_THAT(numbers_of(workload.tensors[3]), ElementsAre(0, 12, 12, 19)) << name;
    EXPECT_THAT(numbers_of(workload.tensors[4]), ElementsAre(0, 1, 21, 23)) << name;
    EXPECT_EQ(workload.tensors[0].shape()[0], 19);
    EXPECT_EQ(workload.tensors[1].shape()[0], 23);
  }
}

TEST(Lengths, AndAFileOfFirstRowsAreTooMuch) {
  const test::TemporaryFolder folder;
  const std::string file = folder / "starts.npy";
  library::write_tensor(file, HostTensor::from_values(i32, {3}, {0, 5, 9}));
  const auto made = [&](const Settings& settings) {
    return library::make_workload(packed(), settings, {{"cu_seqlens_q", file}}, 0);
  };
  EXPECT_EQ(made({"queries=9"}).options.integer("batch"), 2);
  try {
    made({"lengths_q=5,4"});
    ADD_FAILURE() << "nothing was raised";
  } catch (const Error& error) {
    EXPECT_THAT(test::without_source_lines(error.what()),
                HasSubstr("cu_seqlens_q comes from --in, and lengths_q is set "
                          "to '5,4'"));
  }
}

TEST(Lengths, CountAsWork) {
  const auto work = [](const Settings& settings) {
    return packed().floating_operations(resolve_options(packed(), settings), {});
  };
  // Two products of 2 * 64 * 8 heads for each of 10 * 10 + 20 * 20 scores.
  EXPECT_EQ(work({"lengths_q=10,20"}), 4.0 * 64 * 8 * 500);
  EXPECT_EQ(work({"lengths_q=10,20", "lengths_k=1,2"}), 4.0 * 64 * 8 * 50);
  EXPECT_EQ(work({"queries=30", "batch=2"}), 4.0 * 64 * 8 * 450);
}

TEST(Lengths, DecideOtherOptions) {
  using library::decided_options;
  EXPECT_THAT(decided_options(packed(), {"lengths_q=1,2", "dim=64"}),
              ElementsAre("batch", "dim", "keys", "lengths_k", "lengths_q", "queries"));
  EXPECT_THAT(decided_options(packed(), {"lengths_q=1,2", "keys=64"}),
              ElementsAre("batch", "keys", "lengths_q", "queries"));
  EXPECT_THAT(decided_options(packed(), {"lengths_q="}), ElementsAre("lengths_q"));
}

}  // namespace
}  // namespace tilewright
