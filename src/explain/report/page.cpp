#include "explain/report/page.h"

#include <nlohmann/json.hpp>

#include "explain/report/explanation_json.h"
#include "explain/report/layout_svg.h"
#include "explain/report/page_files.h"
#include "explain/report/page_text.h"
#include "explain/report/pipeline_graph.h"
#include "explain/report/source_map.h"
#include "support/diagnostic.h"

namespace tilewright::explanations {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kDiffContext = 3;

Json stage_diffs(const Explanation& explanation) {
  Json stages = Json::array();
  for (const ExplainedStage& stage : explanation.stages) {
    stages.push_back({{"name", stage.name},
                      {"milliseconds", stage.milliseconds},
                      {"changed", stage.changed},
                      {"diff", ir::format_diff(stage.diff, kDiffContext)}});
  }
  return stages;
}

Json source_of(const Explanation& explanation) {
  const SourceMap map = source_map(explanation.last, explanation.cuda);
  Json files = Json::array();
  for (const SourceFile& file : map.files) {
    files.push_back({{"path", format_location({file.path.c_str(), 0})}, {"lines", file.lines}});
  }
  Json from = Json::array();
  for (const SourceMap::Place& place : map.from) from.push_back({place.file, place.line});
  return {{"files", files}, {"cuda", map.cuda}, {"from", from}, {"kernel_line", map.kernel_line}};
}

Json flow_of(const GraphFlow& flow) {
  Json where = Json::array();
  for (const SourceLocation& place : flow.where) where.push_back(format_location(place));
  return {{"role", flow.role},   {"operation", flow.operation},
          {"place", flow.place}, {"tensor", flow.tensor},
          {"reads", flow.reads}, {"writes", flow.writes},
          {"count", flow.count}, {"where", where}};
}

Json pipeline_of(const Explanation& explanation) {
  const PipelineGraph graph = pipeline_graph(explanation.last);
  Json roles = Json::array(), places = Json::array(), tensors = Json::array(),
       flows = Json::array();
  for (const GraphRole& role : graph.roles) {
    roles.push_back({{"name", role.name},
                     {"first_warp", role.first_warp},
                     {"warps", role.warps},
                     {"registers", role.registers},
                     {"where", format_location(role.where)}});
  }
  for (const GraphPlace& place : graph.places) {
    places.push_back({{"name", place.name},
                      {"barriers", place.kind == GraphPlace::Kind::barriers},
                      {"contents", place.contents},
                      {"stages", place.stages},
                      {"bytes", place.bytes},
                      {"offset", place.offset},
                      {"arrivals", place.arrivals},
                      {"where", format_location(place.where)}});
  }
  for (const GraphTensor& tensor : graph.tensors) {
    tensors.push_back(
        {{"name", tensor.name}, {"kind", tensor.kind}, {"contents", tensor.contents}});
  }
  for (const GraphFlow& flow : graph.flows) flows.push_back(flow_of(flow));
  return {{"roles", roles},
          {"places", places},
          {"tensors", tensors},
          {"flows", flows},
          {"shared_bytes", graph.shared_bytes},
          {"threads", graph.threads},
          {"cluster", graph.cluster}};
}

Json layouts_of(const Explanation& explanation) {
  Json layouts = Json::array();
  if (!explanation.scheduled) return layouts;
  for (const LayoutPicture& picture : layout_pictures(*explanation.scheduled)) {
    layouts.push_back({{"title", picture.title}, {"svg", picture.svg}});
  }
  return layouts;
}

}  // namespace

namespace {

Json data_of(const Explanation& explanation) {
  return {{"summary", Json::parse(explanation_json(explanation))},
          {"stages", stage_diffs(explanation)},
          {"source", source_of(explanation)},
          {"pipeline", pipeline_of(explanation)},
          {"layouts", layouts_of(explanation)},
          {"ptx", explanation.ptx},
          {"sass", explanation.sass.text}};
}

// Sources may hold any bytes.
std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string page_of(const std::string& data) {
  return html_document(
      {"tilewright explain", kPageHtml, {kPageCss}, {kPageScript, kDrawingsScript}}, data);
}

}  // namespace

std::string page_data(const Explanation& explanation) { return text_of(data_of(explanation)); }

std::string page_data(const ProgramExplanation& program) {
  Json json = Json::parse(explanation_json(program));
  Json kernels = Json::array();
  for (const Explanation& kernel : program.kernels) {
    Json& data = kernels.emplace_back(data_of(kernel));
    // What is known of the program as a whole.
    data["summary"]["roofline"] = json["roofline"];
    data["summary"]["schedule"] = json["schedule"];
  }
  json["kernels"] = std::move(kernels);
  return text_of(json);
}

std::vector<compiler::DumpFile> layout_files(const Explanation& explanation) {
  std::vector<compiler::DumpFile> files;
  if (!explanation.scheduled) return files;
  for (const LayoutPicture& picture : layout_pictures(*explanation.scheduled)) {
    files.push_back({compiler::file_name(picture.name) + ".svg", picture.svg});
  }
  return files;
}

std::string page(const Explanation& explanation) { return page_of(page_data(explanation)); }

std::string page(const ProgramExplanation& program) { return page_of(page_data(program)); }

}  // namespace tilewright::explanations
