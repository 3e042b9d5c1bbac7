#include "explain/report/explanation_json.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "explain/tensor_memory.h"
#include "support/diagnostic.h"

namespace tilewright::explanations {
namespace {

using Json = nlohmann::ordered_json;

Json known(std::int64_t value) { return value < 0 ? Json() : Json(value); }

Json stages_of(const Explanation& explanation) {
  Json stages = Json::array();
  for (const ExplainedStage& stage : explanation.stages) {
    int added = 0, removed = 0;
    for (const ir::DiffLine& line : stage.diff) {
      added += line.kind == ir::DiffLine::Kind::added;
      removed += line.kind == ir::DiffLine::Kind::removed;
    }
    stages.push_back({{"name", stage.name},
                      {"milliseconds", stage.milliseconds},
                      {"changed", stage.changed},
                      {"lines_added", added},
                      {"lines_removed", removed}});
  }
  return stages;
}

Json roofline_of(const std::optional<Work>& known, std::string_view target) {
  if (!known) return {};
  const Work& work = *known;
  Json devices = Json::array();
  for (const RooflinePoint& point : roofline(work, target)) {
    devices.push_back({{"device", point.device->name},
                       {"source", point.device->source},
                       {"peak_flops_per_second", point.device->flops(work.dtype)},
                       {"bytes_per_second", point.device->memory_bytes},
                       {"ridge", point.ridge},
                       {"bound", point.memory_bound ? "memory" : "arithmetic"},
                       {"flops_per_second", point.flops_per_second},
                       {"seconds", point.seconds}});
  }
  return {{"flops", work.flops},
          {"bytes", work.bytes},
          {"flops_per_byte", work.intensity()},
          {"devices", devices}};
}

Json cost_of(const schedules::Estimate& cost) {
  Json parts = Json::object();
  for (const schedules::EstimatePart& part : schedules::kEstimateParts) {
    parts[std::string(part.key)] = cost.*part.seconds;
  }
  return {{"seconds", cost.seconds},
          {"bound", cost.bound},
          {"parts", parts},
          {"ctas", cost.ctas},
          {"ctas_a_multiprocessor", cost.resident},
          {"shared_bytes", cost.shared_bytes}};
}

Json schedule_of(const std::optional<library::ScheduleReport>& given) {
  if (!given) return {};
  const library::ScheduleReport& report = *given;
  Json alternatives = Json::array();
  for (const library::ScheduleReport::Alternative& other : report.alternatives) {
    alternatives.push_back({{"name", other.name},
                            {"cost", cost_of(other.estimate)},
                            {"product_flops", other.product_flops}});
  }
  const bool known = report.no_estimate.empty();
  return {{"chosen", report.chosen},
          {"because", report.why},
          {"variants", report.variants},
          {"cost", known ? cost_of(report.estimate) : Json()},
          {"cost_missing", report.no_estimate},
          {"product_flops", known ? Json(report.product_flops) : Json()},
          {"alternatives", alternatives},
          {"refused", report.refused}};
}

Json numerics_of(const Explanation& explanation) {
  Json rewrites = Json::object();
  for (const AppliedRewrite& applied : explanation.rewrites) {
    rewrites[applied.rewrite->name] = {{"allowed", applied.allowed},
                                       {"count", applied.count},
                                       {"effect", applied.rewrite->effect}};
  }
  Json approximations = Json::array();
  for (const compiler::Approximation& each : explanation.approximations) {
    approximations.push_back(
        {{"function", each.function}, {"instruction", each.instruction}, {"count", each.count}});
  }
  return {{"rewrites", rewrites}, {"approximations", approximations}};
}

Json claims_of(const Explanation& explanation) {
  Json claims = Json::array();
  for (const compiler::CheckedClaim& checked : explanation.claims) {
    claims.push_back({{"claim", checked.claim.to_string()},
                      {"found", checked.found ? Json(*checked.found) : Json()},
                      {"holds", checked.found ? Json(checked.holds()) : Json()},
                      {"where", format_location(checked.claim.where)}});
  }
  return claims;
}

Json cpu_of(const Explanation& explanation) {
  if (!explanation.cpu) return {};
  const CpuList& list = *explanation.cpu;
  const cpu::Program& program = list.compiled->program();
  Json operations = Json::array(), measured, peaks, bound;
  for (const cpu::ListedOperation& each : list.operations) {
    operations.push_back({{"depth", each.depth},
                          {"text", each.text},
                          {"where", format_location(each.where)},
                          {"is_block", each.is_block},
                          {"flops", each.flops},
                          {"bytes", each.bytes},
                          {"count", each.cost.count},
                          {"seconds", each.cost.seconds()}});
  }
  if (list.measurement) {
    measured = {{"blocks", list.measurement->blocks},
                {"measured", list.measurement->measured},
                {"seconds", list.measurement->seconds}};
  }
  if (list.peaks) {
    peaks = {{"threads", list.peaks->threads},
             {"flops_per_second", list.peaks->flops_per_second},
             {"bytes_per_second", list.peaks->bytes_per_second}};
  }
  if (list.peaks && explanation.work) {
    const CpuRoofline line = roofline(*list.peaks, *explanation.work);
    bound = {{"ridge", line.ridge},
             {"bound", line.memory_bound ? "memory" : "arithmetic"},
             {"flops_per_second", line.flops_per_second},
             {"seconds", line.seconds}};
  }
  return {{"instruction_set", list.compiled->kernels().name},
          {"arena_bytes", program.arena_bytes},
          {"packing_bytes", program.scratch_bytes},
          {"operations", operations},
          {"measured", measured},
          {"peaks", peaks},
          {"roofline", bound},
          {"slow", slow_parts(list)}};
}

}  // namespace

std::string explanation_json(const Explanation& explanation) {
  const Resources& resources = explanation.resources;
  Json decisions = Json::array();
  for (const compiler::Decision& decision : explanation.decisions) {
    decisions.push_back({{"what", decision.what}, {"why", decision.why}});
  }
  Json fields = Json::object();
  for (const schedules::ChosenField& field : explanation.fields) {
    fields[field.name] = {{"value", field.value},
                          {"by", field.stated ? "author" : "compiler"},
                          {"where", format_location(field.where)}};
  }
  Json additions = Json::array();
  for (const compiler::Addition& each : explanation.additions) {
    additions.push_back({{"tensor", each.tensor},
                         {"instruction", each.instruction},
                         {"count", each.count},
                         {"any_order", !each.ordered},
                         {"where", format_location(each.where)}});
  }
  Json tiers = Json::array();
  for (const Tiers& each : explanation.tiers) {
    Json ways = Json::array();
    for (const Tiers::Way& way : each.ways) {
      ways.push_back({{"together", way.together}, {"copies", way.copies}});
    }
    tiers.push_back({{"ring", each.ring},
                     {"ways", ways},
                     {"by_threads", each.by_threads},
                     {"where", format_location(each.where)}});
  }
  Json shared = Json::object();
  for (const compiler::SharedUse& use : explanation.shared) shared[use.name] = use.bytes;
  Json memories = Json::array();
  for (const MemoryUse& use : explanation.memories) {
    memories.push_back({{"name", use.name},
                        {"space", use.space},
                        {"matrix", use.shape},
                        {"stages", use.stages},
                        {"bytes", use.bytes},
                        {"of", use.of}});
  }
  Json tensor_memory = Json::array();
  if (resources.tensor_columns > 0) {
    for (const TensorUse& use : tensor_uses(explanation.last)) {
      tensor_memory.push_back({{"role", use.role},
                               {"operation", use.operation},
                               {"memory", use.memory},
                               {"reads", use.reads},
                               {"writes", use.writes},
                               {"begin", use.begin},
                               {"first", use.first},
                               {"columns", use.columns},
                               {"beyond", use.beyond},
                               {"count", use.count},
                               {"where", format_location(use.where)}});
    }
  }
  const Json json = {{"kernel", explanation.kernel},
                     {"target", explanation.target},
                     {"stages", stages_of(explanation)},
                     {"front_end_milliseconds", explanation.front_end_milliseconds},
                     {"build_milliseconds", explanation.build_milliseconds},
                     {"from_cache", explanation.from_cache},
                     {"resources",
                      {{"registers", known(resources.registers)},
                       {"stack_bytes", known(resources.stack_bytes)},
                       {"spill_bytes", known(resources.spill_bytes)},
                       {"shared_bytes", known(resources.shared_bytes)},
                       {"tensor_columns", known(resources.tensor_columns)}}},
                     {"shared", shared},
                     {"memories", memories},
                     {"tensor_memory", tensor_memory},
                     {"instructions", explanation.instructions},
                     {"units", explanation.units},
                     {"sass_instructions", explanation.sass.instructions},
                     {"sass_missing", explanation.sass.missing},
                     {"numerics", numerics_of(explanation)},
                     {"claims", claims_of(explanation)},
                     {"cpu", cpu_of(explanation)},
                     {"roofline", roofline_of(explanation.work, explanation.target)},
                     {"schedule", schedule_of(explanation.schedule)},
                     {"schedule_fields", fields},
                     {"form", fmt::format("{:016x}", explanation.form)},
                     {"tiers", tiers},
                     {"decisions", decisions},
                     {"additions", additions},
                     {"warnings", explanation.warnings},
                     {"failures", explanation.failures}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

std::string explanation_json(const ProgramExplanation& program) {
  Json steps = Json::array(), kernels = Json::array();
  for (const ProgramExplanation::Step& step : program.steps) {
    steps.push_back({{"text", step.text}, {"kernel", step.kernel}, {"where", step.where}});
  }
  for (const Explanation& kernel : program.kernels) {
    kernels.push_back(Json::parse(explanation_json(kernel)));
  }
  Json memory = Json::object();
  for (const OwnMemory& own : program.memory) memory[own.name] = own.bytes;
  const Json json = {{"program", program.program},
                     {"target", program.target},
                     {"steps", steps},
                     {"memory", memory},
                     {"roofline", roofline_of(program.work, program.target)},
                     {"schedule", schedule_of(program.schedule)},
                     {"kernels", kernels}};
  return json.dump(2);
}

}  // namespace tilewright::explanations
