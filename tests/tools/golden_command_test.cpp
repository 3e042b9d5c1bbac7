#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include "common/temporary_folder.h"
#include "library/tensor_file.h"
#include "support/safetensors.h"
#include "tilewright/host_tensor.h"
#include "tools/run_command.h"

// `tilewright golden` and `check`, with files that somebody has changed.
namespace tilewright::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class GoldenCommandTest : public testing::Test {
 protected:
  std::string data() const { return folder_ / "data"; }
  Answer golden(const std::string& line) const {
    return tilewright("golden " + line + " --out " + data());
  }
  Answer check(const std::string& more = "--target interpreter") const {
    return tilewright("check " + data() + " " + more);
  }
  Json manifest() const {
    std::ifstream file(data() + "/manifest.json");
    return Json::parse(file);
  }
  void write_manifest(const Json& json) const {
    std::ofstream(data() + "/manifest.json") << json.dump();
  }
  void write_inputs(const std::vector<std::pair<std::string, HostTensor>>& tensors,
                    const std::string& file = "set.inputs.safetensors") const {
    std::vector<std::pair<std::string, NpyArray>> arrays;
    for (const auto& [name, tensor] : tensors) {
      arrays.emplace_back(name, library::array_of(tensor));
    }
    write_safetensors(data() + "/" + file, arrays);
  }
  const TemporaryFolder folder_;
};

constexpr const char* kSmall = "gemm --set m=5 --set n=6 --set k=7 ";

TEST_F(GoldenCommandTest, WritesCasesWithTails) {
  const Answer written = golden("gemm --json");
  ASSERT_EQ(written.status, 0) << written.output;
  std::vector<std::string> names;
  const Json cases = written.json()["cases"];
  for (const Json& each : cases) {
    names.push_back(each["name"]);
    EXPECT_THAT(each["weaknesses"], IsEmpty());
  }
  EXPECT_THAT(names, testing::ElementsAre("above", "below", "few", "one"));
  const HostTensor a = library::read_tensor(data() + "/above.inputs.safetensors:A", "A", bf16);
  EXPECT_EQ(a.shape()[0] % 128, 1);
  EXPECT_EQ(read_safetensors(data() + "/above.expected.safetensors:C").descr, "<f8");
  const Answer checked = check("--target cpu --json");
  EXPECT_EQ(checked.status, 0) << checked.output;
  EXPECT_EQ(checked.json()["cases"].size(), 4u);
}

// Data of two kernels in one folder would be mixed.
TEST_F(GoldenCommandTest, RefusesAFolderOfAnotherKernel) {
  ASSERT_EQ(golden(kSmall).status, 0);
  EXPECT_EQ(golden("gemm --set m=4 --set n=6 --set k=7").status, 0);
  const std::string other = "golden softmax --set rows=3 --set columns=16 --out " + data();
  expect_failure(other, 2, {"has data of gemm, and this is softmax", "another folder"});
  EXPECT_EQ(manifest()["kernel"], "gemm");
  // What cannot be read is written anew.
  std::ofstream(data() + "/manifest.json") << "{";
  EXPECT_EQ(tilewright(other).status, 0);
}

// What another implementation has computed, in a file: right, wrong in one element, or missing.
TEST_F(GoldenCommandTest, HoldsOutputsOfOthersAgainstIt) {
  ASSERT_EQ(golden(kSmall).status, 0);
  expect_failure("check " + data(), 2,
                 {"there are no outputs of case set", "set.inputs.safetensors", "--target cpu"});
  const NpyArray expected = read_safetensors(data() + "/set.expected.safetensors:C");
  std::vector<double> values(30);
  std::memcpy(values.data(), expected.data.data(), expected.data.size());
  HostTensor c = HostTensor::from_values(bf16, {5, 6}, values);
  write_inputs({{"C", c}}, "set.outputs.safetensors");
  EXPECT_EQ(check("").status, 0) << check("").output;
  c.set_flat(7, c.flat(7) + 0.5);
  write_inputs({{"C", c}}, "set.outputs.safetensors");
  const Answer wrong = check("");
  EXPECT_EQ(wrong.status, 1);
  EXPECT_THAT(wrong.output, HasSubstr("C[1, 1] is "));
  EXPECT_THAT(wrong.output, HasSubstr("is expected"));
  // NaN of either sign.
  write_inputs({{"C", HostTensor::poisoned(bf16, {5, 6})}}, "set.outputs.safetensors");
  EXPECT_THAT(check("").output, HasSubstr("C[0, 0] is nan, and "));
  write_inputs({{"C", HostTensor::zeros(bf16, {6, 5})}}, "set.outputs.safetensors");
  expect_failure("check " + data(), 2, {"has shape {6, 5}, and {5, 6} is expected"});
  write_inputs({{"D", c}}, "set.outputs.safetensors");
  expect_failure("check " + data(), 2, {"there is no tensor \"C\"", "the keys are: D"});
}

constexpr const char* kGather = R"(kernel "gather" tile
dim n
dim pages
in T: i32[n] = %0
in X: f32[pages, 16] = %1
out Y: f32[n, 16] = %2
grid (n)
body (%3: i32) {
  %4: i32 = load_index %0, %3
  %5: i32 = constant {value = 0}
  %6: i32 = constant {value = 16}
  %7: i32 = dim {dim = dim(pages)}
  %8: i32 = dim {dim = dim(n)}
  %9: tile<f32, 16> = load %1, %4, %5, %7, %6 {sizes = [0, 16]}
  store %2, %9, %3, %5, %8, %6 {sizes = [0, 16]}
}
)";

// Of several cases, the one in which the kernel refuses its inputs.
TEST_F(GoldenCommandTest, AnErrorNamesItsCase) {
  const std::string file = folder_ / "gather.tw";
  std::ofstream(file) << kGather;
  expect_failure("golden " + file + " --set pages=100 --in T=permutation --out " + data(), 2,
                 {"index ", "in case above: pages=100, n=1"});
  // Where all sizes are the user's there is one.
  const Answer set = golden(file + " --set pages=4 --set n=5 --in T=permutation");
  EXPECT_EQ(set.status, 2);
  EXPECT_THAT(set.output, Not(HasSubstr("in case")));
}

// Rows 16 and 20 of the faults that reviewers found: a page's neighbour is not its successor, and a
// table that silently became zeros is seen. What no page of the table names is NaN.
TEST_F(GoldenCommandTest, ReviewedFaults16And20APagedKernelOfAFile) {
  const std::string file = folder_ / "gather.tw";
  std::ofstream(file) << kGather;
  const std::string line = file + " --set n=4 --set pages=6 ";
  EXPECT_THAT(golden(line).output,
              HasSubstr("weakness: T: every number is 0: as a table it names one place alone"));
  EXPECT_THAT(golden(line + "--in T=arange").output,
              HasSubstr("weakness: T: the numbers count up from 0"));
  const Answer written = golden(line + "--in T=uniform:0:6:3");
  ASSERT_EQ(written.status, 0) << written.output;
  EXPECT_THAT(written.output, HasSubstr("NaN where nobody reads: "));
  EXPECT_TRUE(fs::exists(data() + "/kernel.tw"));
  fs::remove(file);
  EXPECT_EQ(check().status, 0) << check().output;
  EXPECT_EQ(manifest()["cases"][0]["inputs"][0]["stated"], "uniform:0:6:3");
  // The table becomes zeros behind the author's back.
  const HostTensor x = library::read_tensor(data() + "/set.inputs.safetensors:X", "X", f32);
  write_inputs({{"T", HostTensor::zeros(i32, {4})}, {"X", x}});
  const Answer weak = check();
  EXPECT_EQ(weak.status, 1) << weak.output;
  EXPECT_THAT(weak.output, HasSubstr("weak data: T: every number is 0"));
  EXPECT_THAT(weak.output, HasSubstr("uniform:0:6:3 is stated"));
}

// Each length is the nearest that the kernel takes, and each case another one.
TEST_F(GoldenCommandTest, SizesThatTheKernelTakes) {
  std::string text = kGather;
  const std::string dim = "dim n\n";
  text.replace(text.find(dim), dim.size(), "dim n multiple_of(8) at_least(16) at_most(100)\n");
  const std::string file = folder_ / "gather.tw";
  std::ofstream(file) << text;
  const Answer written = golden(file + " --set pages=5 --in T=uniform:0:5 --json");
  ASSERT_EQ(written.status, 0) << written.output;
  std::vector<std::string> sizes;
  const Json cases = manifest()["cases"];
  for (const Json& each : cases) {
    sizes.push_back(each["name"].get<std::string>() + " " + each["settings"].dump());
  }
  EXPECT_THAT(sizes,
              testing::ElementsAre("above [\"n=96\",\"pages=5\"]", "few [\"n=16\",\"pages=5\"]"));
}

// Rows of the keys that no query sees are NaN.
TEST_F(GoldenCommandTest, PoisonsWhatNobodyReads) {
  ASSERT_EQ(golden("attention_varlen_forward --set heads=2 --set dim=16 --set lengths_q=5,0,7 "
                   "--set lengths_k=9,4,8")
                .status,
            0);
  const HostTensor k = library::read_tensor(data() + "/set.inputs.safetensors:K", "K", bf16);
  for (std::int64_t row = 0; row < 21; ++row) {
    EXPECT_EQ(std::isnan(k.at({row, 1, 15})), row >= 9 && row < 13) << row;
  }
  EXPECT_EQ(manifest()["cases"][0]["inputs"][1]["poisoned"], 4 * 2 * 16);
  EXPECT_EQ(check("--target cpu").status, 0) << check("--target cpu").output;
  // Somebody fills them in.
  std::vector<std::pair<std::string, HostTensor>> inputs;
  for (const char* name : {"Q", "K", "V", "cu_seqlens_q", "cu_seqlens_k"}) {
    const bool is_float = name[0] != 'c';
    inputs.emplace_back(name, library::read_tensor(data() + "/set.inputs.safetensors:" + name, name,
                                                   is_float ? bf16 : i32));
  }
  HostTensor& keys = inputs[1].second;
  for (std::int64_t i = 0; i < keys.elements(); ++i) {
    if (std::isnan(keys.flat(i))) keys.set_flat(i, 1);
  }
  write_inputs(inputs);
  const Answer filled = check();
  EXPECT_EQ(filled.status, 1);
  EXPECT_THAT(filled.output, HasSubstr("K: nobody reads 4 of 21 rows, which are not NaN"));
  EXPECT_THAT(filled.output, HasSubstr("K: these are not the numbers that the manifest was"));
}

// A program of several kernels, whose table names each page once and in no order.
TEST_F(GoldenCommandTest, AnOperationOfSeveralKernels) {
  const std::string line =
      "attention_paged --set heads=2 --set dim=32 --set batch=3 --set queries=3 --set pages=12 "
      "--set max_pages=4 --set page=4 --set keys=11";
  const Answer written = golden(line);
  ASSERT_EQ(written.status, 0) << written.output;
  EXPECT_THAT(written.output, HasSubstr("weakness: lengths: every number is 11"));
  EXPECT_THAT(written.output, Not(HasSubstr("weakness: block_table")));
  EXPECT_THAT(written.output, Not(HasSubstr("weakness: K")));
  EXPECT_THAT(manifest()["cases"][0]["inputs"].dump(), HasSubstr("poisoned"));
  const Json inputs = manifest()["cases"][0]["inputs"];
  for (const Json& input : inputs) {
    EXPECT_FALSE(input["dtype"] == "i32" && input.contains("poisoned")) << input;
  }
  EXPECT_EQ(check("--target cpu").status, 0) << check("--target cpu").output;
  EXPECT_THAT(golden(line + " --in block_table=zeros").output,
              HasSubstr("weakness: block_table: every number is 0"));
}

// Where sequences begin is asked by who makes O and LSE of gradients.
TEST_F(GoldenCommandTest, OffsetsThatLeadOutsideAreRefused) {
  for (const char* offsets : {"uniform:-50:-1", "uniform:60:90"}) {
    expect_failure(std::string("run attention_varlen_backward --target interpreter --set heads=2 "
                               "--set batch=8 --set queries=50 --in cu_seqlens_q=") +
                       offsets,
                   2, {"cu_seqlens_q gives a sequence rows ", ", and there are 50", "that ascend"});
  }
}

// A length below nothing is none, and no length of nothing.
TEST_F(GoldenCommandTest, NegativeLengthsAreRefused) {
  for (const char* target : {"interpreter", "cpu", "sim:sm_90a"}) {
    expect_failure(std::string("run attention_paged --set batch=2 --set heads=1 --set dim=64 --set "
                               "pages=4 --set max_pages=2 --in lengths=full:-1 --target ") +
                       target,
                   target[0] == 's' ? 1 : 2, {"lengths{0} is -1, and may not be negative"});
  }
}

// An online softmax by blocks of 128 keys that lags, and scales its sums anew or forgets to, of
// one head and batch.
std::vector<std::pair<std::string, HostTensor>> lagging_attention(const std::string& inputs,
                                                                  bool scales) {
  const auto read = [&](const char* name) {
    return library::read_tensor(inputs + ":" + name, name, bf16);
  };
  const HostTensor q = read("Q"), k = read("K"), v = read("V");
  const std::int64_t queries = q.shape()[1], keys = k.shape()[1], dim = q.shape()[3];
  HostTensor o = HostTensor::zeros(bf16, q.shape()), lse = HostTensor::zeros(f32, {1, 1, queries});
  for (std::int64_t i = 0; i < queries; ++i) {
    double shift = -1e30, sum = 0;
    std::vector<double> total(static_cast<std::size_t>(dim));
    for (std::int64_t first = 0; first < keys; first += 128) {
      const std::int64_t last = std::min(first + 128, keys);
      std::vector<double> scores;
      for (std::int64_t j = first; j < last; ++j) {
        double score = 0;
        for (std::int64_t c = 0; c < dim; ++c) score += q.at({0, i, 0, c}) * k.at({0, j, 0, c});
        scores.push_back(score / std::sqrt(static_cast<double>(dim)));
      }
      const double maximum = *std::max_element(scores.begin(), scores.end());
      if (maximum > shift + 8 * std::log(2)) {
        sum *= std::exp(shift - maximum);
        for (double& each : total) each *= scales ? std::exp(shift - maximum) : 1;
        shift = maximum;
      }
      for (std::int64_t j = first; j < last; ++j) {
        const double weight = std::exp(scores[static_cast<std::size_t>(j - first)] - shift);
        sum += weight;
        for (std::int64_t c = 0; c < dim; ++c) {
          total[static_cast<std::size_t>(c)] += weight * v.at({0, j, 0, c});
        }
      }
    }
    lse.set_flat(i, shift + std::log(sum));
    for (std::int64_t c = 0; c < dim; ++c) {
      o.set_flat(i * dim + c, total[static_cast<std::size_t>(c)] / sum);
    }
  }
  return {{"O", o}, {"LSE", lse}};
}

// Numbers that are all alike never let a maximum rise by much. Those of the case `rising` do.
TEST_F(GoldenCommandTest, ASumThatIsNotScaledAnewIsFound) {
  const Answer written =
      golden("attention_forward --set heads=1 --set dim=16 --set batch=1 --json");
  ASSERT_EQ(written.status, 0) << written.output;
  EXPECT_EQ(manifest()["cases"][4]["inputs"][1]["stated"], "rising:1");
  const auto outputs = [&](bool scales) {
    for (const char* name : {"above", "below", "few", "one", "rising"}) {
      const std::string file = std::string("/") + name;
      write_inputs(lagging_attention(data() + file + ".inputs.safetensors", scales),
                   name + std::string(".outputs.safetensors"));
    }
  };
  outputs(/*scales=*/true);
  EXPECT_EQ(check("").status, 0) << check("").output;
  outputs(/*scales=*/false);
  const Answer wrong = check("--json");
  EXPECT_EQ(wrong.status, 1);
  for (const Json& each : wrong.json()["cases"]) {
    EXPECT_EQ(each["ok"], each["name"] != "rising") << each;
  }
}

// Pages of a cache rise in the order in which they lie, and sequences have them in any order.
TEST_F(GoldenCommandTest, RisingPages) {
  const Answer written = golden(
      "attention_paged --set heads=2 --set dim=32 --set batch=3 --set queries=3 --set pages=12 "
      "--set max_pages=4 --set page=16 --json");
  ASSERT_EQ(written.status, 0) << written.output;
  const Json cases = manifest()["cases"];
  EXPECT_EQ(cases[cases.size() - 2]["name"], "rising");
  EXPECT_EQ(check("--target cpu").status, 0) << check("--target cpu").output;
}

// Pages that a sequence lacks, whose keys nobody sees: who takes -1 for page 0 is found.
TEST_F(GoldenCommandTest, HolesInATable) {
  const std::string kernel = "attention_paged --set heads=2 --set dim=32 --set page=16 ";
  for (const bool csr : {false, true}) {
    const Answer written = golden(kernel + (csr ? "--set csr=true --json" : "--json"));
    ASSERT_EQ(written.status, 0) << written.output;
    const Json holes = manifest()["cases"].back();
    EXPECT_EQ(holes["name"], "holes");
    EXPECT_THAT(holes["weaknesses"], IsEmpty()) << holes;
    EXPECT_EQ(check("--target cpu").status, 0) << check("--target cpu").output;
    const std::string name = csr ? "indices" : "block_table", file = "/holes.inputs.safetensors:";
    HostTensor table = library::read_tensor(data() + file + name, name, i32);
    EXPECT_EQ(table.flat(0), -1);
    EXPECT_NE(table.flat(1), -1);
    table.set_flat(0, 0);
    std::vector<std::pair<std::string, HostTensor>> inputs;
    for (const Json& each : holes["inputs"]) {
      const auto own = each["name"].get<std::string>();
      const DType dtype = each["dtype"] == "i32" ? i32 : bf16;
      inputs.emplace_back(
          own, own == name ? table : library::read_tensor(data() + file + own, own, dtype));
    }
    write_inputs(inputs, "holes.inputs.safetensors");
    const Answer wrong = check("--target cpu");
    EXPECT_EQ(wrong.status, 1);
    EXPECT_THAT(wrong.output, HasSubstr("O["));
  }
}

// Nobody draws a table that is stated.
TEST_F(GoldenCommandTest, NoHolesInAStatedTable) {
  const std::string line =
      "attention_paged --set heads=1 --set dim=16 --set batch=1 --set queries=1 --set pages=2 "
      "--set max_pages=2 --in ";
  ASSERT_EQ(golden(line + "block_table=permutation").status, 0);
  EXPECT_EQ(manifest()["cases"].back()["name"], "rising");
}

// The keys of a sequence are those of three tiles of 128, and most of what a table has is read.
TEST_F(GoldenCommandTest, PagesOfSeveralTiles) {
  const Answer written =
      golden("attention_paged --set csr=true --set heads=2 --set dim=16 --set page=24 --json");
  ASSERT_EQ(written.status, 0) << written.output;
  std::vector<std::string> pages;
  const Json cases = manifest()["cases"];
  for (const Json& each : cases) {
    EXPECT_TRUE(each["weaknesses"].empty()) << each;
    for (const Json& setting : each["settings"]) {
      const auto text = setting.get<std::string>();
      if (text.starts_with("max_pages=") || text.starts_with("entries=")) pages.push_back(text);
    }
  }
  EXPECT_THAT(pages,
              testing::ElementsAre("entries=26", "max_pages=17", "entries=24", "max_pages=16",
                                   "entries=2", "max_pages=1", "entries=2", "max_pages=1",
                                   "entries=26", "max_pages=17", "entries=26", "max_pages=17"));
}

// Who adds an exponential's logarithm to a large maximum has no digits left of it.
TEST_F(GoldenCommandTest, RowsOfLargeNumbers) {
  for (const char* kernel : {"softmax", "cross_entropy"}) {
    for (const char* number : {"1e12", "1e17", "-1e30"}) {
      const std::string command = std::string("run ") + kernel +
                                  " --target cpu --set dtype=f32 --set rows=3 --set columns=40 "
                                  "--check --in X=full:" +
                                  number;
      const Answer run = tilewright(command);
      EXPECT_EQ(run.status, 0) << command << "\n" << run.output;
    }
  }
}

// A cache that keeps what no token is written to.
TEST_F(GoldenCommandTest, WhatIsGivenAndWritten) {
  const Answer written = golden("kv_append --set kv_heads=2 --set dim=32");
  ASSERT_EQ(written.status, 0) << written.output;
  EXPECT_THAT(written.output, Not(HasSubstr("weakness")));
  EXPECT_EQ(check("--target cpu").status, 0) << check("--target cpu").output;
}

TEST_F(GoldenCommandTest, KnownWeaknessesAreShownAndNewOnesFail) {
  ASSERT_EQ(golden(std::string(kSmall) + "--in A=full:1").status, 0);
  const Answer known = check();
  EXPECT_EQ(known.status, 0);
  EXPECT_THAT(known.output, HasSubstr("known weakness: A: every number is 1"));
  Json json = manifest();
  json["cases"][0]["weaknesses"] = Json::array();
  json["cases"][0]["outputs"][0]["allowed"]["row"] = 3;
  write_manifest(json);
  const Answer unknown = check();
  EXPECT_EQ(unknown.status, 1);
  EXPECT_THAT(unknown.output, HasSubstr("weak data: A: every number is 1"));
  EXPECT_THAT(unknown.output,
              HasSubstr("weak data: C: an error of 3 of what is wanted is allowed"));
}

// An input that is stated needs no file.
TEST_F(GoldenCommandTest, InputsMayBeStatedAlone) {
  ASSERT_EQ(golden(std::string(kSmall) + "--in A=uniform:-1:1 --in B=uniform:-2:2 --seed 5").status,
            0);
  fs::remove(data() + "/set.inputs.safetensors");
  EXPECT_EQ(check().status, 0) << check().output;
  Json json = manifest();
  json["cases"][0]["inputs"][0]["seed"] = 6;
  write_manifest(json);
  EXPECT_EQ(check().status, 1);
}

TEST_F(GoldenCommandTest, WhatIsWrongWithTheFilesIsSaid) {
  expect_failure("check " + data(), 2, {"manifest.json: cannot read"});
  expect_failure("golden all_gather --out " + data(), 2, {"runs over ranks"});
  expect_failure("golden gemm", 2, {"--out is required"});
  expect_failure("golden gemm --in A=permutation --out " + data(), 2,
                 {"--in A=permutation: A is bf16"});
  ASSERT_EQ(golden(kSmall).status, 0);
  const Json good = manifest();
  const auto refused = [&](const std::string& pointer, const Json& value,
                           const std::vector<std::string>& parts) {
    Json json = good;
    json[Json::json_pointer(pointer)] = value;
    write_manifest(json);
    SCOPED_TRACE(pointer);
    expect_failure("check " + data() + " --target interpreter", 2, parts);
  };
  refused("/kernel", "gem", {"there is no kernel 'gem'"});
  refused("/kernel", 3, {"manifest.json", "\"kernel\" is 3, no text"});
  refused("/tilewright_golden", 2, {"\"tilewright_golden\": 1"});
  refused("/cases", Json::array(), {"cases is empty"});
  refused("/cases/0/name", "../set", {"no part of a file's name"});
  refused("/cases/0/more", 1, {"cases[0] has an entry \"more\"", "take one of: name"});
  refused("/cases/0/settings", {"m=-1"}, {"m = '-1' is outside"});
  refused("/cases/0/inputs/0/dtype", "f31", {"cases[0].inputs[0]: "});
  refused("/cases/0/inputs/0/dtype", "f32", {"A is f32 {5, 7}, and the settings make it bf16"});
  refused("/cases/0/inputs/0/shape", {-1}, {"cases[0].inputs[0].shape[0] is -1, no size"});
  refused("/cases/0/inputs/0/shape", {5.5, 7}, {"cases[0].inputs[0].shape[0] is 5.5, no size"});
  refused("/cases/0/inputs/0/shape", {5, 8}, {"A is bf16 {5, 8}, and the settings make it bf16"});
  refused("/cases/0/inputs/1/name", "A", {"cases[0].inputs names A twice"});
  refused("/cases/0/inputs/1/name", "D", {"gemm has no input 'D'"});
  refused("/cases/0/inputs/0/seed", -1, {"seed is -1"});
  refused("/cases/0/inputs/0/stated", "zeross", {"'zeross' is neither"});
  refused("/cases/0/inputs/0/stated", "../other.npy", {"A is stated as '../other.npy', a file"});
  refused("/cases/0/outputs/0/allowed/whole", -1, {"\"whole\" is -1, no bound"});
  refused("/cases/0/outputs/0/allowed/least", 2, {"allowed.least is 2", "write at most 1"});
  refused("/cases/0/outputs", Json::array(), {"does not describe output C of gemm"});
  const Json output = good["cases"][0]["outputs"][0];
  refused("/cases/0/outputs", {output, output}, {"cases[0].outputs names C twice"});
  std::ofstream(data() + "/manifest.json") << "{\"cases\": [";
  expect_failure("check " + data(), 2, {"is no JSON"});
  std::ofstream(data() + "/manifest.json") << std::string(100000, '[');
  expect_failure("check " + data(), 2, {"nest more than 16 deep"});
  write_manifest(good);
  for (const NpyArray& array : {NpyArray{"<f8", {6, 5}, std::vector<std::byte>(30 * 8)},
                                NpyArray{"<f4", {5, 6}, std::vector<std::byte>(30 * 4)}}) {
    write_safetensors(data() + "/set.expected.safetensors", {{"C", array}});
    expect_failure("check " + data() + " --target interpreter", 2,
                   {"holds " + array.descr + " of shape", "results of C are F64 {5, 6}"});
  }
  std::ofstream(data() + "/set.expected.safetensors") << "short";
  expect_failure("check " + data() + " --target interpreter", 2, {"is cut short"});
}

// A folder from a stranger reads nothing elsewhere, and sends a terminal nothing that it obeys.
TEST_F(GoldenCommandTest, AHostileFolderReadsNothingElse) {
  ASSERT_EQ(golden(kSmall).status, 0);
  const Json good = manifest();
  Json json = good;
  json["cases"][0]["inputs"][0]["hash"] = "\x1b[2J";
  json["cases"][0]["weaknesses"] = {"\x1b]0;owned\x07"};
  write_manifest(json);
  const Answer said = check();
  EXPECT_EQ(said.status, 1);
  EXPECT_THAT(said.output, HasSubstr("hash \\x1b[2J)"));
  EXPECT_THAT(said.output, HasSubstr("known weakness: \\x1b]0;owned\\x07"));
  EXPECT_THAT(said.output, Not(HasSubstr("\x1b")));
  json = good;
  json["cases"][0]["inputs"][0]["shape"] = std::vector<int>(100, 1);
  write_manifest(json);
  expect_failure("check " + data() + " --target interpreter", 2,
                 {"cases[0].inputs[0].shape has 100 axes, and 64 is the limit"});
  json = good;
  json["kernel"] = "kernel.tw";
  write_manifest(json);
  std::ofstream(folder_ / "secret") << "a secret";
  const auto link = [&](const std::string& file, const std::string& more) {
    const fs::path path = data() + "/" + file;
    const bool was_there = fs::exists(path);
    if (was_there) fs::rename(path, folder_ / "kept");
    fs::create_symlink(folder_ / "secret", path);
    SCOPED_TRACE(file);
    expect_failure("check " + data() + more, 2,
                   {file + ": is a link to ", "secret, which is not in that folder", "cp -rL"});
    fs::remove(path);
    if (was_there) fs::rename(folder_ / "kept", path);
  };
  const std::string own = " --target interpreter";
  link("kernel.tw", own);
  write_manifest(good);
  link("manifest.json", own);
  link("set.inputs.safetensors", own);
  link("set.expected.safetensors", own);
  link("set.outputs.safetensors", "");
  // Inside of the folder, and to the folder itself, links are as good as files.
  fs::rename(data() + "/set.inputs.safetensors", data() + "/numbers");
  fs::create_symlink("numbers", data() + "/set.inputs.safetensors");
  fs::create_directory_symlink(data(), folder_ / "other.safetensors:name");
  EXPECT_EQ(tilewright("check " + (folder_ / "other.safetensors:name") + own).status, 0);
}

}  // namespace
}  // namespace tilewright::test
