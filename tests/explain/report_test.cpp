#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "common/programs.h"
#include "explain/report/layout_svg.h"
#include "explain/report/page.h"
#include "explain/report/pipeline_graph.h"
#include "explain/report/source_map.h"
#include "ir/text.h"
#include "tilewright/explain.h"
#include "tilewright/kernels/attention.h"
#include "tilewright/kernels/gemm.h"

namespace tilewright::explanations {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

const Explanation& attention() {
  static const Explanation explanation = [] {
    // Nothing of what is tested needs a cubin.
    setenv("TILEWRIGHT_NVRTC", "/nonexistent/libnvrtc.so", 1);
    const compiler::Target target = compiler::parse_target("sm_90a");
    return explain(
        [] { return kernels::attention_forward_sm90(kernels::with_sm90_blocks({.dim = 128})); },
        target);
  }();
  return explanation;
}

const GraphFlow* find_flow(const PipelineGraph& graph, const std::string& role,
                           const std::string& operation, const std::string& place) {
  for (const GraphFlow& flow : graph.flows) {
    const bool same_place = flow.place < 0 ? place.empty() : graph.places[flow.place].name == place;
    if (graph.roles[flow.role].name == role && flow.operation == operation && same_place) {
      return &flow;
    }
  }
  return nullptr;
}

TEST(PipelineGraphTest, SaysWhoMovesWhat) {
  const PipelineGraph graph = pipeline_graph(attention().last);
  ASSERT_EQ(graph.roles.size(), 2u);
  EXPECT_EQ(graph.roles[1].name, "math");
  EXPECT_EQ(graph.roles[1].first_warp, 4);
  EXPECT_EQ(graph.threads, 512);

  const GraphFlow* load = find_flow(graph, "load", "tma_load", "kv0");
  ASSERT_NE(load, nullptr);
  EXPECT_TRUE(load->writes && !load->reads);
  EXPECT_EQ(graph.tensors.at(load->tensor).name, "K");
  EXPECT_EQ(graph.places.at(load->place).stages, 3);
  EXPECT_EQ(graph.places.at(load->place).bytes, 3 * 128 * 128 * 2);
  ASSERT_EQ(load->where.size(), 1u);
  EXPECT_THAT(load->where[0].file, HasSubstr("attention_sm90_forward.h"));

  const GraphFlow* product = find_flow(graph, "math", "wgmma_rs", "kv1");
  ASSERT_NE(product, nullptr);
  EXPECT_TRUE(product->reads && !product->writes);
  EXPECT_EQ(find_flow(graph, "load", "wgmma_rs", "kv1"), nullptr);

  const GraphFlow* out = find_flow(graph, "math", "tma_store", "o");
  ASSERT_NE(out, nullptr);
  EXPECT_TRUE(out->reads);
  EXPECT_EQ(graph.tensors.at(out->tensor).name, "O");
  EXPECT_NE(find_flow(graph, "math", "mbarrier_wait", "kv_full"), nullptr);
  EXPECT_NE(find_flow(graph, "load", "mbarrier_wait", "kv_empty"), nullptr);
  EXPECT_NE(find_flow(graph, "math", "store_registers", ""), nullptr);
}

TEST(PipelineGraphTest, PlacesDoNotOverlap) {
  const PipelineGraph graph = pipeline_graph(attention().last);
  for (const GraphPlace& a : graph.places) {
    EXPECT_LE(a.offset + a.bytes, graph.shared_bytes) << a.name;
    for (const GraphPlace& b : graph.places) {
      const bool apart = a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset;
      EXPECT_TRUE(apart || a.name == b.name) << a.name << " and " << b.name;
    }
  }
}

TEST(SourceMapTest, EveryLineOfTheKernelHasItsPlace) {
  const SourceMap map = source_map(attention().last, attention().cuda);
  ASSERT_EQ(map.cuda.size(), map.from.size());
  int products = 0;
  for (std::size_t i = 0; i < map.cuda.size(); ++i) {
    if (map.cuda[i].find("wgmma_rs_m64") == std::string::npos) continue;
    if (static_cast<int>(i) < map.kernel_line) {
      EXPECT_EQ(map.from[i].file, -1) << map.cuda[i];
      continue;
    }
    ++products;
    ASSERT_GE(map.from[i].file, 0) << map.cuda[i];
    const SourceFile& file = map.files[map.from[i].file];
    EXPECT_THAT(file.lines.at(map.from[i].line - 1), HasSubstr("wgmma(weights, v"));
  }
  EXPECT_GT(products, 0);
}

TEST(SourceMapTest, OnlyWholeCommentsArePlaces) {
  const ir::Kernel kernel = ir::parse_text(
      "kernel \"k\" machine @\"/folder/k.cpp\":3\ngrid (1)\nthreads 128\nbody () {\n"
      "  cta_sync @\"/folder/k.cpp\":7\n}\n",
      "k.tw");
  const SourceMap map = source_map(kernel,
                                   "// k.cpp:1\n"
                                   "extern \"C\" __global__ void k() {\n"
                                   "  // math: warps of a role: 4\n"
                                   "  // k.cpp:7\n"
                                   "  __syncthreads();\n"
                                   "}\n");
  ASSERT_EQ(map.files.size(), 1u);
  EXPECT_TRUE(map.files[0].lines.empty()) << "there is no such file";
  EXPECT_EQ(map.kernel_line, 1);
  EXPECT_EQ(map.from[0].file, -1);
  EXPECT_EQ(map.from[2].file, -1);
  EXPECT_EQ(map.from[4].file, 0);
  EXPECT_EQ(map.from[4].line, 7);
}

int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// The accumulator of wgmma as PTX draws it: lane 4 holds columns 0 and 1 of row 1, lane 5 the next
// two; eight rows further down are registers 2 and 3.
TEST(LayoutSvgTest, DrawsTheAccumulator) {
  const std::string svg = register_layout_svg(ir::wgmma_accumulator(64, 16), "sums <f32>");
  EXPECT_EQ(count_of(svg, "<rect"), 1 + 64 * 8);
  EXPECT_THAT(svg, HasSubstr("row 1, columns 0 to 1: warp 0, lane 4, registers 0-1<"));
  EXPECT_THAT(svg, HasSubstr("row 9, columns 2 to 3: warp 0, lane 5, registers 2-3<"));
  EXPECT_THAT(svg, HasSubstr("row 16, columns 0 to 1: warp 1, lane 0, registers 0-1<"));
  EXPECT_THAT(svg, HasSubstr("sums &lt;f32>"));
  EXPECT_EQ(svg.find("the first 64"), svg.npos);
}

TEST(LayoutSvgTest, SaysWhatIsCutAndWhoElseHoldsAnElement) {
  EXPECT_THAT(register_layout_svg(ir::wgmma_accumulator(64, 64), "wide"),
              HasSubstr("the first 64 x 32 elements"));
  const ir::RegisterLayout rows = ir::wgmma_accumulator(64, 64).reduce(1, ir::Reduction::complete);
  EXPECT_THAT(register_layout_svg(rows, "rows"), HasSubstr("lane 4, registers 0 and 3 more"));
}

// Rows of 128 bytes, whose 16-byte chunks are exchanged by the row's last three bits.
TEST(LayoutSvgTest, DrawsTheSwizzle) {
  const std::string svg = shared_layout_svg(ir::SharedLayout::panels(64, 64, 2, 128), "tile");
  EXPECT_THAT(svg, HasSubstr("row 0, columns 8 to 15: byte 16, banks 4 to 7<"));
  EXPECT_THAT(svg, HasSubstr("row 3, columns 8 to 15: byte 416, banks 8 to 11<"));
  EXPECT_EQ(count_of(svg, "<rect"), 1 + 2 * 16 * 8);
  EXPECT_EQ(shared_layout_svg(ir::SharedLayout::row_major({1, 2}, 4), "numbers"), "");
}

TEST(LayoutSvgTest, EveryLayoutOfAKernelOnce) {
  std::set<std::string> names, drawings;
  for (const LayoutPicture& picture : layout_pictures(*attention().scheduled)) {
    EXPECT_TRUE(names.insert(picture.name).second) << picture.name;
    EXPECT_TRUE(drawings.insert(picture.svg).second) << picture.title;
    EXPECT_EQ(count_of(picture.svg, "<g>"), count_of(picture.svg, "</g>"));
  }
  EXPECT_EQ(names.count("shared-kv0"), 1u);
  EXPECT_GE(names.size(), 8u);
}

TEST(PageTest, TheDataIsComplete) {
  const Json data = Json::parse(page_data(attention()));
  EXPECT_EQ(data["summary"]["kernel"], "attention_forward_sm90");
  EXPECT_EQ(data["stages"].size(), data["summary"]["stages"].size());
  EXPECT_EQ(data["source"]["cuda"].size(), data["source"]["from"].size());
  EXPECT_EQ(data["pipeline"]["roles"].size(), 2u);
  EXPECT_GE(data["layouts"].size(), 8u);
}

// One document: what the script reads is what was written, and nothing is fetched.
TEST(PageTest, IsOneDocument) {
  Explanation explanation = attention();
  explanation.warnings = {"</script><b>warning</b> /*page.js*/"};
  const std::string text = page(explanation);
  EXPECT_EQ(count_of(text, "</script>"), 2);
  EXPECT_EQ(count_of(text, "<b>warning"), 0);
  EXPECT_EQ(text.find("src=\"http"), text.npos);
  EXPECT_EQ(text.find("href=\"http"), text.npos);
  EXPECT_EQ(text.find("url("), text.npos);
  EXPECT_EQ(text.find("@import"), text.npos);
  const std::string open = "<script type=\"application/json\" id=\"data\">";
  const std::size_t begin = text.find(open) + open.size();
  const Json data = Json::parse(text.substr(begin, text.find("</script>", begin) - begin));
  EXPECT_EQ(data, Json::parse(page_data(explanation)));
}

TEST(PageTest, OfAKernelOfOnesOwn) {
  setenv("TILEWRIGHT_NVRTC", "/nonexistent/libnvrtc.so", 1);
  Kernel kernel = kernels::gemm({});
  kernel.require({instructions("wgmma") >= 1000});
  const Json json = Json::parse(explain_json(kernel, "sm_90a"));
  EXPECT_EQ(json["claims"][0]["holds"], false);
  EXPECT_THAT(json["failures"][0].get<std::string>(), HasSubstr("report_test.cpp"));
  EXPECT_TRUE(json["roofline"].is_null());
  EXPECT_TRUE(json["schedule"].is_null());  // nothing chooses among kernels of one's own
  EXPECT_THAT(explain_page(kernel, "sm_90a", Numerics::strict()), HasSubstr("\"allowed\":false"));
}

// Bytes change lanes between two products, through a place in shared memory that bears no name; and
// a tile of three axes is drawn by the rows of the first two.
TEST(PageTest, OfAProgramShowsWhatItQueuesAndEachKernel) {
  setenv("TILEWRIGHT_NVRTC", "/nonexistent/libnvrtc.so", 1);
  const test::AllLengths all;
  const Json json = Json::parse(explain_json(all.program, "sm_90a"));
  EXPECT_EQ(json["program"], "all_lengths");
  ASSERT_EQ(json["kernels"].size(), 2u);
  EXPECT_EQ(json["kernels"][1]["kernel"], "add");
  std::vector<std::string> steps;
  for (const Json& step : json["steps"]) steps.push_back(step["text"]);
  EXPECT_THAT(steps,
              testing::ElementsAre("launch scale {x, scaled}, stream main",
                                   "copy scaled to y {rows, 32} from {0, 0}, stream main",
                                   "launch scale {scaled, scaled}, stream main",
                                   "zero sum, stream main", "launch add {scaled, sum}, stream main",
                                   "copy sum to y {rows, 32} from {rows, 0}, stream main"));
  EXPECT_EQ(json["steps"][4]["kernel"], 1);
  EXPECT_EQ(json["steps"][1]["kernel"], -1);
  const Json data =
      Json::parse(page_data(explain(all.program.finish(), compiler::parse_target("sm_90a"))));
  ASSERT_EQ(data["kernels"].size(), 2u);
  for (const Json& kernel : data["kernels"]) {
    EXPECT_FALSE(kernel["source"]["cuda"].empty());
    EXPECT_FALSE(kernel["pipeline"]["roles"].empty());
  }
  EXPECT_EQ(data["steps"], json["steps"]);
  EXPECT_THAT(explain_page(all.program, "sm_90a"), HasSubstr("program-steps"));
}

TEST(PageTest, OfAKernelWithAConversionAndThreeAxes) {
  setenv("TILEWRIGHT_NVRTC", "/nonexistent/libnvrtc.so", 1);
  Kernel kernel("quantised");
  const Dim m = kernel.dim("m");
  const Tensor A = kernel.in("A", f8e4m3, {m, 64}), B = kernel.in("B", f8e4m3, {64, 64});
  const Tensor C = kernel.out("C", f32, {m, 64});
  const auto [i] = kernel.grid(ceil_div(m, 128));
  const Block own = m.block(i, 128);
  const Tile b = load(B(all, all)), first = dot(load(A(own, all)), b.T());
  const Tile sums = dot((first * 0.05).cast(f8e4m3), b.T());
  const Tile pairs = sums.reshape({128, 32, 2});
  store(C(own, all), (pairs + iota({1, 1, 2}, 2).cast(f32)).reshape({128, 64}));
  const std::string text = explain_page(kernel, "sm_90a");
  EXPECT_NE(text.find("64x32x2 in registers"), text.npos);  // of a warpgroup
}

TEST(PageTest, TheTileLevelHasOneToo) {
  const Explanation explanation =
      explain([] { return kernels::gemm({}); }, compiler::parse_target("interpreter"));
  const Json data = Json::parse(page_data(explanation));
  EXPECT_TRUE(data["pipeline"]["roles"].empty());
  EXPECT_TRUE(data["source"]["cuda"].empty());
  EXPECT_TRUE(data["layouts"].empty());
  EXPECT_THAT(page(explanation), HasSubstr("tilewright explain"));
}

TEST(PageTest, OfTheCpuListsOperations) {
  const Explanation explanation =
      explain([] { return kernels::gemm({}); }, compiler::parse_target("cpu"));
  const Json list = Json::parse(page_data(explanation))["summary"]["cpu"];
  const Json& operations = list["operations"];
  const auto product = std::find_if(operations.begin(), operations.end(), [](const Json& each) {
    return each["text"].get<std::string>().rfind("dot ", 0) == 0;
  });
  ASSERT_NE(product, operations.end());
  EXPECT_EQ((*product)["depth"], 1);  // in the loop over k
  EXPECT_EQ((*product)["is_block"], false);
  EXPECT_THAT(page(explanation), HasSubstr("id=\"cpu-list\""));
}

// Scores are computed as far as the mask asks in the blocks that it cuts, of which the loop over
// the others is peeled.
TEST(PageTest, OfTheCpuSaysWhichProductsAMaskBounds) {
  kernels::Attention attention;
  attention.dtype = f32;
  attention.causal = true;
  const Explanation explanation =
      explain([&] { return kernels::attention_forward(attention); }, compiler::parse_target("cpu"));
  const Json list = Json::parse(page_data(explanation))["summary"]["cpu"]["operations"];
  const auto count = [&](std::string_view text) {
    return std::count_if(list.begin(), list.end(), [&](const Json& each) {
      return each["text"].get<std::string>().find(text) != std::string::npos;
    });
  };
  EXPECT_EQ(count("dot "), 4);
  EXPECT_EQ(count("as far as the mask asks"), 1);
}

// What a loop hands on to its next round alone, the last one leaves out; a sum that is stored
// behind it is none of this.
TEST(PageTest, OfTheCpuSaysWhichProductsTheLastRoundLeavesOut) {
  const auto record = [] {
    Kernel kernel("rounds");
    const Dim n = kernel.dim("n");
    const Tensor A = kernel.in("A", bf16, {n, 32}), C = kernel.out("C", f32, {n, 32});
    const Tensor D = kernel.out("D", f32, {32, 32});
    kernel.grid(1);
    Var before{zeros({32, 32})}, sum{zeros({32, 32})};
    for (Block rows : blocks(n, 32)) {
      const Tile a = load(A(rows, all));
      const Tile now = before;
      store(C(rows, all), dot(a, now.cast(bf16)));
      before = now + dot(a.T(), a);
      sum = sum + dot(a, a.T());
    }
    store(D(all, all), sum);
    return kernel;
  };
  const Explanation explanation = explain(record, compiler::parse_target("cpu"));
  const Json list = Json::parse(page_data(explanation))["summary"]["cpu"]["operations"];
  std::vector<std::string> left_out;
  for (const Json& each : list) {
    const auto text = each["text"].get<std::string>();
    if (text.find("but in the last round") != std::string::npos) left_out.push_back(text);
  }
  ASSERT_EQ(left_out.size(), 1);
  EXPECT_THAT(left_out[0], HasSubstr("^T x"));
}

}  // namespace
}  // namespace tilewright::explanations
